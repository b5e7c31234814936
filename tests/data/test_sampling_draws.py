"""How likely neighbours are drawn, by weight and before a time; threads that change nothing; other PyG models."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
import scipy.stats
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.nn.models import GAT
from torch_geometric.utils import trim_to_layer

from ltga.data import NeighborSampler
from ltga.data.prefetch import prefetched
from ltga.errors import InputError
from ltga.nn import LTGA


def star(leaves: int, **attributes: torch.Tensor) -> Data:
    edge_index = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)])
    return Data(edge_index=edge_index, num_nodes=leaves + 1, **attributes)


def subsets_drawn(sampler: NeighborSampler, draws: int, seed: int = 0) -> Counter:
    generator = torch.Generator().manual_seed(seed)
    return Counter(tuple(sorted(sampler.sample([0], generator).edges.tolist())) for _ in range(draws))


def fits(counts: Counter, probabilities: dict[tuple[int, ...], float], draws: int) -> float:
    """The p-value of the counts under the probabilities."""
    assert set(counts) <= set(probabilities)
    observed = [counts.get(subset, 0) for subset in probabilities]
    return float(scipy.stats.chisquare(observed, [draws * p for p in probabilities.values()]).pvalue)


# By Floyd's algorithm; the same with many picks; and in one pass over the edges (more than 32 picks).
@pytest.mark.parametrize(("leaves", "fanout"), [(6, 2), (8, 7), (40, 39), (36, 34)])
def test_subsets_are_uniform(leaves: int, fanout: int) -> None:
    draws = 6000
    every = list(itertools.combinations(range(leaves), fanout))
    counts = subsets_drawn(NeighborSampler(star(leaves), [fanout]), draws)
    assert fits(counts, dict.fromkeys(every, 1 / len(every)), draws) > 1e-4


def test_many_nodes_of_one_batch_draw_alike_and_apart() -> None:
    """4,000 nodes of 7 edges each, 3 drawn: places are uniform, and neighbours agree no more than by chance."""
    nodes, degree, fanout = 4000, 7, 3
    source = torch.arange(nodes * degree) % nodes
    data = Data(edge_index=torch.stack([source, torch.arange(nodes).repeat_interleave(degree)]), num_nodes=nodes)
    sample = NeighborSampler(data, [fanout]).sample(range(nodes))
    slots = (sample.edges % degree).view(nodes, fanout)
    assert scipy.stats.chisquare(slots.flatten().bincount(minlength=degree)).pvalue > 1e-4
    drawn = torch.zeros(nodes, degree).scatter_(1, slots, 1.0)
    common = (drawn[1:] * drawn[:-1]).sum(1).mean()
    assert common == pytest.approx(fanout * fanout / degree, abs=0.05)


def test_weights_are_those_of_successive_draws() -> None:
    weight = torch.tensor([1.0, 5.0, 0.0, 2.0, 0.5, 3.0])
    probabilities: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(np.flatnonzero(weight).tolist(), 3):
        left, chance = float(weight.sum()), 1.0
        for edge in order:
            chance *= float(weight[edge]) / left
            left -= float(weight[edge])
        subset = tuple(sorted(order))
        probabilities[subset] = probabilities.get(subset, 0.0) + chance
    assert sum(probabilities.values()) == pytest.approx(1)
    draws = 6000
    sampler = NeighborSampler(star(6, w=weight), [3], weight_attr="w")
    assert fits(subsets_drawn(sampler, draws), probabilities, draws) > 1e-4
    # The same test must notice draws that take no notice of the weights.
    alike = NeighborSampler(star(6, w=(weight > 0).float()), [3], weight_attr="w")
    assert fits(subsets_drawn(alike, draws), probabilities, draws) < 1e-9
    assert NeighborSampler(star(6, w=weight), [6], weight_attr="w").sample([0]).edges.tolist() == [0, 1, 3, 4, 5]
    assert NeighborSampler(star(6, w=weight), [-1], weight_attr="w").sample([0]).edges.tolist() == list(range(6))


def timed_graph(nodes: int = 40, edges: int = 400) -> Data:
    generator = torch.Generator().manual_seed(5)
    return Data(
        edge_index=torch.randint(0, nodes, (2, edges), generator=generator),
        x=torch.randn(nodes, 3, generator=generator),
        when=torch.randint(0, 50, (edges,), generator=generator),
        num_nodes=nodes,
    )


@pytest.mark.parametrize("fanout", [[-1, -1], [3, 2]])
def test_only_earlier_edges_are_seen(fanout: list[int]) -> None:
    data = timed_graph()
    seeds, times = torch.tensor([4, 9, 4, 30]), torch.tensor([10, 50, 35, 0])
    sampler = NeighborSampler(data, fanout, seeds, 4, shuffle=False, time_attr="when", input_time=times)
    (batch,) = list(sampler)
    assert batch.n_id[:4].tolist() == seeds.tolist() and batch.batch[:4].tolist() == [0, 1, 2, 3]
    assert batch.seed_time.tolist() == times.tolist()
    assert len(set(zip(batch.batch.tolist(), batch.n_id.tolist()))) == batch.num_nodes
    assert batch.batch[batch.edge_index[0]].equal(batch.batch[batch.edge_index[1]])
    assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
    assert (data.when[batch.e_id] < times[batch.batch[batch.edge_index[1]]]).all()
    # Seed by seed, by brute force: how many edges every reached node has to show.
    for tree, (seed, time) in enumerate(zip(seeds.tolist(), times.tolist())):
        allowed = [e for e in range(400) if data.when[e] < time]
        mine = (batch.batch == tree)[batch.edge_index[1]]
        drawn = Counter(batch.n_id[batch.edge_index[1, mine]].tolist())
        found, frontier = {seed}, {seed}
        for limit in fanout:
            reached = set()
            for node in frontier:
                incoming = [e for e in allowed if data.edge_index[1, e] == node]
                assert drawn[node] == (len(incoming) if limit == -1 else min(limit, len(incoming)))
                edges = batch.e_id[mine].tolist()
                reached |= {int(data.edge_index[0, e]) for e in edges if data.edge_index[1, e] == node}
            frontier = reached - found
            found |= reached
        assert found == set(batch.n_id[batch.batch == tree].tolist())


def test_times_and_weights_together() -> None:
    data = star(5, w=torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0]), when=torch.tensor([0, 9, 1, 2, 3]))
    settings = {"weight_attr": "w", "time_attr": "when", "input_time": torch.tensor([3])}
    (batch,) = NeighborSampler(data, [3], torch.tensor([0]), **settings)
    assert sorted(batch.e_id.tolist()) == [2, 3]


@pytest.mark.parametrize("timed", [False, True])
def test_threads_change_nothing(timed: bool) -> None:
    data = timed_graph(300, 4000)
    settings = {"time_attr": "when", "input_time": torch.arange(300) % 50} if timed else {}
    passes = []
    for threads in (0, 1, 2, 8):
        sampler = NeighborSampler(data, [4, 3], batch_size=17, seed=3, threads=threads, **settings)
        passes.append([batch.to_dict() for _ in range(2) for batch in sampler])
    for other in passes[1:]:
        for ours, theirs in zip(passes[0], other, strict=True):
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(torch.as_tensor(ours[k]), torch.as_tensor(theirs[k])) for k in ours)


INTERPRETED = """
import torch
from torch_geometric.data import Data
from ltga.data import NeighborSampler
edges = torch.randint(0, 50, (2, 900), generator=torch.Generator().manual_seed(0))
data = Data(edge_index=edges, num_nodes=50, w=torch.arange(900) % 7)
samplers = [NeighborSampler(data, fanout, batch_size=10, weight_attr=w) for fanout, w in (([5, 40], None), ([3], "w"))]
print([sample.edges.tolist() for sampler in samplers for sample in sampler.epoch(0)])
"""


def test_without_a_compiler_the_draws_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    exec(INTERPRETED, {})
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", INTERPRETED]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == capsys.readouterr().out != "[]"


def test_prefetching_runs_ahead_stops_and_raises() -> None:
    begun, gate = [], threading.Event()

    def work(job: int) -> int:
        begun.append(job)
        if job == 1:
            gate.wait(5)
        if job == 3:
            raise InputError("job: is the third")
        return job

    results = prefetched(work, range(10), threads=1)
    assert next(results) == 0
    while 1 not in begun:
        pass  # begun while nobody asks for it
    gate.set()
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(InputError, match="third"):
        next(results)
    assert max(begun) <= 4
    before = threading.active_count()
    stopped = prefetched(abs, range(100), threads=3)
    next(stopped)
    stopped.close()
    assert threading.active_count() <= before


def test_the_layout_is_neighbor_loaders() -> None:
    data = timed_graph(200, 2000)
    nodes = torch.randperm(200, generator=torch.Generator().manual_seed(1))[:60]
    for batch in NeighborSampler(data, [4, 3], nodes, batch_size=16):
        assert nodes[batch.input_id].equal(batch.n_id[: batch.batch_size])
        assert sum(batch.num_sampled_nodes) == batch.num_nodes and sum(batch.num_sampled_edges) == batch.num_edges
        assert batch.num_sampled_nodes[0] == batch.batch_size
        ends = np.cumsum(batch.num_sampled_nodes)
        first, second = batch.edge_index.split(batch.num_sampled_edges, dim=1)
        assert first[1].max() < ends[0] <= second[1].min() and first[0].max() < ends[1]


@pytest.mark.parametrize("make", [
    lambda: GraphSAGE(3, 8, num_layers=2, out_channels=2),
    lambda: GAT(3, 8, num_layers=2, out_channels=2, v2=True, heads=2),
    lambda: LTGA(3, 2, hidden_channels=4, heads=2),
])  # fmt: skip
def test_other_models_compute_the_whole_graphs_numbers_and_train(make) -> None:
    data = timed_graph(200, 1200)
    torch.manual_seed(0)
    model = make().eval()
    whole = model(data.x, data.edge_index)
    for batch in NeighborSampler(data, [-1, -1], batch_size=50):
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(out, whole[batch.n_id[: batch.batch_size]], atol=1e-5, rtol=1e-5)
    if isinstance(model, GraphSAGE):  # PyG's own way to skip what a layer does not need
        batch = next(iter(NeighborSampler(data, [5, 3], batch_size=20)))
        x, edge_index = batch.x, batch.edge_index
        for layer in range(2):
            x, edge_index, _ = trim_to_layer(layer, batch.num_sampled_nodes, batch.num_sampled_edges, x, edge_index)
            x = model.convs[layer](x, edge_index)
            x = model.act(x) if layer == 0 else x
        torch.testing.assert_close(x[:20], model(batch.x, batch.edge_index)[:20], atol=1e-5, rtol=1e-5)
    labels = (data.x[:, 0] > 0).long()
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(8):
        total = 0.0
        for batch in NeighborSampler(data, [5, 3], batch_size=64):
            optimizer.zero_grad()
            logits = model.train()(batch.x, batch.edge_index)[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(logits, labels[batch.n_id[: batch.batch_size]])
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total)
    assert losses[-1] < losses[0]


BAD = [
    ({"weight_attr": "nothing"}, "weight_attr: data.nothing is not a tensor"),
    ({"weight_attr": "negative"}, "weight_attr: edge 3 has weight -1"),
    ({"time_attr": "when"}, "input_time: goes with time_attr"),
    ({"input_time": torch.zeros(40)}, "input_time: goes with time_attr"),
    ({"time_attr": "when", "input_time": torch.zeros(3)}, "input_time: expected a number for each of 40 seeds"),
    ({"time_attr": "huge", "input_time": torch.zeros(40)}, "time_attr: .* use a coarser unit"),
    ({"time_attr": "when", "input_time": torch.full((40,), torch.nan)}, "input_time: number 0 is not a time"),
    ({"threads": -1}, "threads: expected a whole number from 0"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_arguments_are_named(changes: dict, message: str) -> None:
    data = timed_graph()
    data.negative = torch.where(torch.arange(400) == 3, -1.0, 1.0)
    data.huge = torch.full((400,), 2**60)
    with pytest.raises(InputError, match=message):
        NeighborSampler(data, [2], **changes)


def test_seeds_with_times_come_from_the_sampler() -> None:
    sampler = NeighborSampler(timed_graph(), [2], time_attr="when", input_time=torch.zeros(40))
    with pytest.raises(InputError, match="seeds: have no times here"):
        sampler.sample([1])
