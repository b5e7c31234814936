"""Links: nothing held out is seen, negatives are what they say, and clustered graphs are learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

import ltga
from ltga.data import csbm, split_links
from ltga.errors import InputError
from ltga.nn.decoders import LinkNetwork
from ltga.train.tasks import link_task
from ltga.train.tasks.link_task import Walks
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_run import plan_task
from ltga.train.tasks.task_scores import link_scores

QUICK = {"epochs": 30, "hidden_channels": 8, "heads": 2, "dropout": 0.0}


@pytest.fixture(scope="module")
def caves() -> Data:
    """Ten groups of ten with many edges inside and few between; features say nothing but a node's name."""
    graph = nx.random_partition_graph([10] * 10, 0.7, 0.01, seed=0)
    edges = torch.tensor(list(graph.edges)).t()
    return Data(x=torch.eye(100), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


@pytest.mark.parametrize(("method", "decoder", "least"), [("ltga-head", "dot", 0.85), ("gatv2", "mlp", 0.6)])
def test_edges_of_a_clustered_graph_are_found(
    caves: Data, method: str, decoder: str, least: float, tmp_path: Path
) -> None:
    run = ltga.fit(caves, method, protocol=QUICK, task="link", options={"decoder": decoder, "negatives": "random"})
    assert not run.record["config"]["protocol"]["residual"]  # a name carried along would be learned by heart
    assert run.metrics["roc_auc"] > least and run.metrics["mrr"] > 0.2
    assert run.record["test_against"].keys() == {"two-hop", "degree"}
    links = split_links(caves, seed=0)
    inside, outside = torch.tensor([[1], [2]]), torch.tensor([[1], [95]])
    probabilities = run.predict_proba(links, torch.cat([inside, outside], dim=1))
    assert probabilities[0] > probabilities[1]
    loaded = ltga.load_run(run.save(tmp_path))
    assert loaded.predict(links.data, inside).equal(run.predict(links, inside))


def test_edges_mean_in_prediction_what_they_mean_in_training(caves: Data) -> None:
    """Training passes messages both ways, so a table that has every edge once must not be read as one-way streets."""
    run = ltga.fit(caves, "gatv2", protocol={**QUICK, "epochs": 3}, task="link")
    pairs = torch.randint(0, 100, (2, 50))
    expected = run.predict_proba(caves, pairs)
    once = caves.edge_index[:, caves.edge_index[0] < caves.edge_index[1]]
    loops = torch.arange(100).repeat(2, 1)
    for edge_index in (once, once.flip(0), torch.cat([once, once, loops], dim=1)):
        torch.testing.assert_close(run.predict_proba(Data(x=caves.x, edge_index=edge_index), pairs), expected)


def test_features_of_their_own_are_carried_along_unless_they_are_names(caves: Data) -> None:
    telling = Data(x=torch.randn(100, 5), edge_index=caves.edge_index)
    assert plan_task(split_links(telling), "gatv2").protocol.residual
    assert not plan_task(split_links(caves), "gatv2").protocol.residual
    assert plan_task(split_links(caves), "gatv2", protocol={"residual": True}).protocol.residual


def test_metrics_are_those_of_the_stored_nodes_and_the_stated_negatives(caves: Data) -> None:
    links = split_links(caves, "caves", seed=4)
    run = ltga.fit(links, "gcn", protocol={**QUICK, "epochs": 2}, options={"decoder": "dot", "each": 5})
    nodes = torch.from_numpy(run.arrays["nodes"])
    for kind, found in (("two-hop", run.metrics), ("degree", run.record["test_against"]["degree"])):
        pairs = torch.cat([links.positives("test").unsqueeze(-1), links.negatives("test", kind, 5)], dim=-1)
        spread = (nodes - nodes.mean(1, keepdim=True)) / (nodes.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        by_hand = link_scores((spread[pairs[0]] * spread[pairs[1]]).sum(-1))
        assert found == pytest.approx(by_hand, rel=1e-3)
    assert run.record["config"]["options"] == {"negatives": "two-hop", "each": 5, "decoder": "dot"}


def test_held_out_edges_are_neither_passed_along_nor_trained_on(caves: Data) -> None:
    planned = plan_task(ltga.train.tasks.choose.choose(caves, "link"), "ltga-head", protocol=QUICK)
    links = planned.data
    seen = {frozenset(edge) for edge in links.data.edge_index.t().tolist()}
    hidden = {frozenset(edge) for part in ("val", "test") for edge in links.positives(part).t().tolist()}
    assert not seen & hidden and len(hidden) > 20
    model = link_task.build("ltga-head", planned.protocol, link_task.shape(links), TaskOptions())
    task = link_task.prepare(links, 0, model, planned.protocol, planned.options, 1, None).task
    drawn = [torch.cat([step.pairs for step in task.steps(epoch)], dim=1) for epoch in (1, 2, 1)]
    assert drawn[0].equal(drawn[2]) and not drawn[0].equal(drawn[1])
    asked = [frozenset(edge) for edge in drawn[0][:, :, 0].t().tolist()]
    assert set(asked) == seen and len(asked) == len(seen)
    for step in task.steps(3):  # what is asked for is not passed along, all the rest is, both ways
        passed = [frozenset(edge) for edge in step.edge_index.t().tolist()]
        wanted = {frozenset(edge) for edge in step.pairs[:, :, 0].t().tolist()}
        assert set(passed) == seen - wanted and len(passed) == 2 * len(seen - wanted)
        assert links.train[:, step.train].t().sort(1).values.equal(step.pairs[:, :, 0].t().sort(1).values)
    against = {frozenset(edge) for edge in drawn[0][:, :, 1:].flatten(1).t().tolist()}
    assert not against & seen
    # A pair that is held out may be drawn, as nobody may know that it is an edge.
    steps = [step for epoch in range(10) for step in task.steps(epoch)]
    ever = [frozenset(edge) for step in steps for edge in step.pairs[:, :, 1].t().tolist()]
    assert set(ever) & hidden


def test_walks_go_two_steps_and_give_up_where_there_is_nobody() -> None:
    star = torch.stack([torch.zeros(4, dtype=torch.long), torch.arange(1, 5)])
    walks = Walks(torch.cat([star, star.flip(0)], dim=1), 7)
    pairs = walks.beside(star.flip(0), torch.Generator().manual_seed(0))
    for near, far in pairs[:, :, 2].t().tolist():
        assert far in ({5, 6} if near == 0 else {1, 2, 3, 4} - {near})
    full = torch.combinations(torch.arange(3)).t()
    stuck = Walks(torch.cat([full, full.flip(0)], dim=1), 3).beside(full, torch.Generator().manual_seed(0))
    assert stuck[0, :, 1:].equal(stuck[1, :, 1:])


def test_the_decoders_do_not_care_which_end_comes_first() -> None:
    for decoder in ("dot", "mlp"):
        model = LinkNetwork(ltga.nn.LTGA(4, 6, hidden_channels=2, heads=2), 6, decoder).eval()
        nodes, pairs = torch.randn(5, 6), torch.tensor([[0, 1, 2], [3, 4, 0]])
        assert model.score(nodes, pairs).equal(model.score(nodes, pairs.flip(0)))


def test_runs_are_the_same_for_a_seed_and_splits_follow_it() -> None:
    dataset = csbm(num_nodes=100)
    settings = {**QUICK, "epochs": 3}
    runs = [ltga.fit(dataset, "ltga-edge", seed, protocol=settings, task="link").record for seed in (1, 1, 2)]
    assert runs[0]["metrics"] == runs[1]["metrics"] != runs[2]["metrics"]
    assert runs[0]["config"]["dataset"]["fingerprint"] != runs[2]["config"]["dataset"]["fingerprint"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "negatives",
        {"options": {"negatives": "hard"}},
        "negatives: got 'hard'; use one of 'random', 'two-hop', 'degree'",
    ),
    ("decoder", {"options": {"decoder": "cos"}}, "decoder: got 'cos'"),
    ("each", {"options": {"each": True}}, "each: expected a whole number from 1"),
    ("split", {"split": -1}, "split: got -1"),
    ("metric", {"protocol": {"metric": "accuracy"}}, "'accuracy' does not fit link prediction"),
]


@pytest.mark.parametrize(("settings", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(caves: Data, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ltga.fit(caves, "gcn", task="link", **settings)


def test_pairs_that_cannot_be_judged_are_named(caves: Data) -> None:
    run = ltga.fit(caves, "gcn", protocol={**QUICK, "epochs": 1}, task="link")
    for pairs, message in (
        (None, "pairs: for links give the pairs"),
        (torch.tensor([[0], [100]]), "nodes are numbered 0 to 99"),
        (torch.tensor([0, 1]), "expected whole numbers of shape"),
        ([[0], [1]], "expected whole numbers of shape"),
    ):
        with pytest.raises(InputError, match=message):
            run.predict(caves, pairs)
