"""Changes at inference against a network computed node by node in numpy."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.errors import InputError
from ltga.functional import q_softmax
from ltga.nn.network import LTGA
from ltga.study.analyses.counterfactual import (
    clamped,
    counterfactuals,
    random_pruning,
    restored,
    softmax_without,
)
from ltga.study.analyses.inputs import task_of
from ltga.train import fit


def by_hand(model, x, edge_index, weigh):
    """The network with GATv2 scores, node by node; ``weigh(layer, head, edges, logits)`` gives the weights."""
    x = x.double().numpy()
    nodes = len(x)
    edges = [edge for edge in edge_index.t().tolist() if edge[0] != edge[1]] + [[i, i] for i in range(nodes)]
    for layer, conv in enumerate(model.convs):
        state = {name: value.double().numpy() for name, value in conv.state_dict().items()}
        heads, channels = conv.heads, conv.out_channels
        left, right = (
            (x @ state[f"{side}.weight"].T + state[f"{side}.bias"]).reshape(nodes, heads, channels)
            for side in ("lin_l", "lin_r")
        )
        out = np.zeros((nodes, heads, channels))
        for i in range(nodes):
            own = [k for k, edge in enumerate(edges) if edge[1] == i]
            sources = [edges[k][0] for k in own]
            for h in range(heads):
                total = left[sources, h] + right[i, h]
                logits = np.where(total > 0, total, 0.2 * total) @ state["att"][0, h]
                out[i, h] = weigh(layer, h, own, logits) @ left[sources, h]
        x = (out.reshape(nodes, -1) if conv.concat else out.mean(1)) + state["bias"]
        if layer < len(model.convs) - 1:
            x = np.where(x > 0, x, np.expm1(x))
    return x


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@pytest.fixture(params=["torch", "numba"])
def network(request):
    torch.manual_seed(0)
    model = LTGA(3, 2, hidden_channels=2, heads=2, index="head", backend=request.param).eval()
    for conv, q in zip(model.convs, ([-0.5, 2.0], [1.5, -1.0])):  # below and above 1
        conv.index.raw.data = torch.tensor(q)
        conv.att.data *= 3
    x, edge_index = torch.randn(9, 3), torch.randint(0, 9, (2, 40))
    return model, x, edge_index


def test_restore(network):
    model, x, edge_index = network
    before = model(x, edge_index)
    with torch.no_grad(), restored(model):
        changed = model(x, edge_index)
    assert np.allclose(changed, by_hand(model, x, edge_index, lambda *a: softmax(a[3])), atol=1e-4)
    assert torch.equal(model(x, edge_index), before) and not torch.allclose(changed, before, atol=1e-3)


def test_clamp(network):
    model, x, edge_index = network
    q = [conv.index.q().clamp(min=1).detach() for conv in model.convs]

    def weigh(layer, head, own, logits):
        return q_softmax(torch.from_numpy(logits), q[layer][head].double()).numpy()

    with torch.no_grad(), clamped(model):
        assert np.allclose(model(x, edge_index), by_hand(model, x, edge_index, weigh), atol=1e-4)
        assert min(layer.q.min() for layer in model.attend(x, edge_index)) == 1
    assert [float(values.min()) < 1 for values in model.index_values()] == [True, True]


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_clamp_of_an_edge_gate(backend):
    torch.manual_seed(1)
    model = LTGA(3, 2, hidden_channels=2, heads=2, index="edge", backend=backend).eval()
    for conv in model.convs:
        torch.nn.init.normal_(conv.index.gate.out.weight, std=2)
    x, edge_index = torch.randn(9, 3), torch.randint(0, 9, (2, 40))
    free = model.attend(x, edge_index)[0]
    with clamped(model):
        held = model.attend(x, edge_index)[0]
    assert (free.q < 1).any() and (free.q > 1).any()
    assert torch.allclose(held.q, free.q.clamp(min=1))
    assert torch.allclose(held.logits, free.logits)


def test_softmax_without_edges(network):
    model, x, edge_index = network
    pruned = [layer.weights == 0 for layer in model.attend(x, edge_index)]
    assert all(mask.any() for mask in pruned)

    def weigh(layer, head, own, logits):
        gone = pruned[layer][own, head].numpy()
        weights = np.zeros(len(own))
        weights[~gone] = softmax(logits[~gone])
        return weights

    with torch.no_grad(), softmax_without(model, pruned):
        assert np.allclose(model(x, edge_index), by_hand(model, x, edge_index, weigh), atol=1e-4)
        for layer, mask in zip(model.attend(x, edge_index), pruned):
            assert torch.equal(layer.weights == 0, mask)
    assert all(conv.modifier is None for conv in model.convs)


@pytest.mark.parametrize("modifier", ["edge-bias", "edge-scale", "temperature"])
def test_pruning_comes_on_top_of_a_modifier(modifier):
    torch.manual_seed(2)
    model = LTGA(3, 2, hidden_channels=2, heads=2, index=1.0, modifier=modifier).eval()
    for parameter in model.index_parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, edge_index = torch.randn(9, 3), torch.randint(0, 9, (2, 40))
    free = model.attend(x, edge_index)[0]
    pruned = torch.rand(free.weights.shape) < 0.4
    pruned[free.edge_index[0] == free.edge_index[1]] = False
    with softmax_without(model, [pruned, pruned]):
        kept = model.attend(x, edge_index)[0].weights
    left = torch.where(pruned, 0.0, free.weights)
    total = torch.zeros(9, 2).index_add(0, free.edge_index[1], left)
    assert torch.allclose(kept, left / total[free.edge_index[1]], atol=1e-5)


def test_an_error_inside_leaves_the_model_as_it_was(network):
    model, x, edge_index = network
    before = model(x, edge_index)
    with pytest.raises(RuntimeError), restored(model):
        raise RuntimeError
    assert torch.equal(model(x, edge_index), before)


@pytest.fixture
def neighbourhoods():
    rng = np.random.default_rng(3)
    target = rng.integers(0, 12, 90)  # some may be empty
    return rng.random((90, 3)) < 0.4, target, rng.random(90) < 0.8


def test_random_pruning_keeps_the_rate_of_every_neighbourhood_and_head(neighbourhoods):
    pruned, target, eligible = neighbourhoods
    drawn = random_pruning(pruned, target, eligible, np.random.default_rng(0))
    assert np.array_equal(drawn[~eligible], pruned[~eligible])
    for node in range(12):
        own = target == node
        assert np.array_equal(drawn[own].sum(0), pruned[own].sum(0))
        assert np.array_equal(drawn[own & eligible].sum(0), pruned[own & eligible].sum(0))
    assert not np.array_equal(drawn, pruned)


def test_random_pruning_is_uniform():
    """Which 2 of 5 edges go: all 10 pairs come up equally often, and heads are drawn apart."""
    pruned = np.zeros((5, 2), dtype=bool)
    pruned[:2] = True
    rng = np.random.default_rng(4)
    draws = np.stack([random_pruning(pruned, np.zeros(5, int), np.ones(5, bool), rng) for _ in range(3000)])
    codes = (draws * (2 ** np.arange(5))[None, :, None]).sum(1)  # [3000, 2]
    for head in range(2):
        _, counts = np.unique(codes[:, head], return_counts=True)
        assert len(counts) == 10 and stats.chisquare(counts).pvalue > 1e-3
    assert np.mean(codes[:, 0] == codes[:, 1]) == pytest.approx(0.1, abs=0.03)


def test_nothing_eligible_changes_nothing(neighbourhoods):
    pruned, target, _ = neighbourhoods
    assert np.array_equal(random_pruning(pruned, target, np.zeros(90, bool), np.random.default_rng(0)), pruned)


@pytest.mark.parametrize("method", ["frozen-q2.0", "ltga-edge", "sparsemax"])
def test_the_table_of_a_run(pruning_run_of, graph, method):
    run = pruning_run_of(method)
    frame = counterfactuals(run, graph, draws=2)
    assert frame["counterfactual"].tolist() == [
        "learned", "restore", "clamp", "selected", *["random"] * 2, *["random-neighbours"] * 2,
    ]  # fmt: skip
    first = frame.iloc[0]
    assert first["accuracy"] == run.metrics["accuracy"] and first["nll"] == pytest.approx(run.metrics["nll"], rel=1e-5)
    zeros = np.mean([layer["zero_fraction"] for layer in run.record["attention"]])
    rates = frame.set_index("counterfactual")["zero_fraction"]
    assert rates["learned"] == pytest.approx(zeros) and zeros > 0.05 and rates["restore"] == 0
    assert np.allclose(rates.drop(["restore", "clamp"]), zeros)
    assert np.allclose(frame["accuracy_change"], frame["accuracy"] - first["accuracy"])
    assert (frame["accuracy_change"].abs() <= frame["changed"] + 1e-12).all()
    assert frame.equals(counterfactuals(run, graph, draws=2))
    assert not frame.equals(counterfactuals(run, graph, draws=2, seed=1))


def test_random_neighbours_leaves_self_loops_as_the_model_has_them():
    """On a directed ring every node has one neighbour and itself, so that nothing is left to chance."""
    ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(6))
    masks = torch.zeros(3, 60, dtype=torch.bool)
    masks[0, :20], masks[1, 20:30], masks[2, 30:] = True, True, True
    dataset = Dataset("ring", Data(x=x, y=torch.arange(60) % 2, edge_index=ring), *masks)
    run = fit(dataset, "frozen-q2.0", protocol={"epochs": 1, "hidden_channels": 3, "heads": 2})
    for conv in run.model.convs:
        conv.att.data *= 10
    nll = counterfactuals(run, dataset, draws=3).set_index("counterfactual")["nll"]
    assert np.allclose(nll["random-neighbours"], nll["selected"])
    assert not np.isclose(nll["random"], nll["selected"]).any()


def test_a_model_that_prunes_nothing_is_indifferent(run_of, graph):
    frame = counterfactuals(run_of("frozen-q1.0"), graph, draws=1)
    assert np.allclose(frame["accuracy_change"], 0) and np.allclose(frame["nll"], frame["nll"][0])


def test_restore_of_a_real_run_is_the_same_network_with_softmax(run_of, graph):
    run = run_of("frozen-q2.0")
    task = task_of(run, graph)
    softmax_network = LTGA(graph.data.x.size(1), graph.num_classes, hidden_channels=3, heads=2, index=1.0)
    softmax_network.load_state_dict(run.model.state_dict())
    with torch.no_grad():
        expected = softmax_network.eval()(task.x, task.edge_index).argmax(1)
    accuracy = float((expected[task.test] == task.y[task.test]).double().mean())
    frame = counterfactuals(run, graph, draws=1).set_index("counterfactual")
    assert math.isclose(frame.loc["restore"]["accuracy"], accuracy)


def test_bad_input(run_of, graph):
    with pytest.raises(InputError, match="gatv2 has no entropic index"):
        counterfactuals(run_of("gatv2"), graph)
    with pytest.raises(InputError, match="draws"):
        counterfactuals(run_of("ltga-head"), graph, draws=0)
    train, val, test = graph.split(0)
    without_test = Dataset("no test", graph.data, train, val, torch.zeros_like(test))
    run = fit(without_test, "ltga-head", protocol={"epochs": 1, "hidden_channels": 2, "heads": 1})
    with pytest.raises(InputError, match="no test nodes"):
        counterfactuals(run, without_test)
