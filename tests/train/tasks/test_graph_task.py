"""Whole graphs: batches change nothing, folds are kept, missing labels are left out, structure is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, root_mean_squared_error
from torch_geometric.data import Data

import ltga
from ltga.data import GraphCollection, collection_from_data, make_target
from ltga.errors import InputError
from ltga.train.protocol import Protocol
from ltga.train.tasks import graph_task
from ltga.train.tasks.task_options import TaskOptions
from ltga.train.tasks.task_run import plan_task

QUICK = {"epochs": 3, "hidden_channels": 4, "heads": 2, "num_layers": 2}
NAN = float("nan")


def ring_or_star(number: int) -> Data:
    """The same features everywhere: only edges tell a ring (class 0) from a star (class 1)."""
    size = 6 + number % 3
    nodes = torch.arange(size)
    half = torch.stack([nodes, (nodes + 1) % size]) if number % 2 == 0 else torch.stack([nodes[1:] * 0, nodes[1:]])
    edges = torch.cat([half, half.flip(0)], dim=1)
    x = torch.cat([torch.ones(size, 1), (nodes == 0).float().unsqueeze(1)], dim=1)
    return Data(x=x, edge_index=edges, y=number % 2)


def labelled(kind: str) -> GraphCollection:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(60):
        graph = ring_or_star(number)
        graph.x = torch.randn(graph.x.shape[0], 3, generator=generator)
        graph.edge_attr = torch.randn(graph.edge_index.shape[1], 2, generator=generator)
        mean = graph.x.mean(0)
        graph.y = mean[0] * 10 if kind == "number" else (mean[:2] > 0).float()
        if kind == "labels" and number % 4 == 0:
            graph.y[number % 2] = NAN
        graphs.append(graph)
    return collection_from_data(graphs, kind)


def test_structure_is_learned_by_attention_and_cannot_be_without_it() -> None:
    graphs = [ring_or_star(number) for number in range(60)]
    settings = {**QUICK, "epochs": 25, "hidden_channels": 8, "lr": 0.02}
    found = {m: ltga.fit(graphs, m, protocol=settings) for m in ("ltga-head", "gin", "features")}
    assert found["ltga-head"].metrics["accuracy"] == found["gin"].metrics["accuracy"] == 1.0
    assert found["features"].metrics["accuracy"] <= 0.7
    assert found["ltga-head"].predict(graphs[:4]).tolist() == [0, 1, 0, 1]
    assert found["ltga-head"].predict(graphs[1]).tolist() == [1]
    assert found["ltga-head"].predict_proba(graphs[:4]).sum(1).tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("method", ["ltga-edge", "gatv2", "gcn", "features", "gin"])
def test_a_graph_alone_and_among_others_gets_the_same(method: str) -> None:
    collection = labelled("number")
    run = ltga.fit(collection, method, protocol=QUICK)
    together = run.predict(collection)
    alone = torch.cat([run.predict(graph) for graph in collection[:5]])
    assert torch.allclose(together[:5], alone, atol=1e-4)
    test = collection.split(0)[2]
    assert run.metrics["rmse"] == pytest.approx(root_mean_squared_error(collection.y[test], together[test]), rel=1e-4)
    assert run.record["metric"] == "rmse" and run.record["config"]["options"] == {
        "batch_size": 32, "readout": "mean-max-sum", "log": None
    }  # fmt: skip


def test_missing_labels_are_left_out(tmp_path: Path) -> None:
    collection = labelled("labels")
    run = ltga.fit(collection, "ltga-head", protocol=QUICK, options={"batch_size": 7})
    assert run.record["metric"] == "roc_auc" and run.record["config"]["task"] == "multi-label graphs"
    loaded = ltga.load_run(run.save(tmp_path))
    assert loaded.predict_proba(collection).equal(run.predict_proba(collection))
    assert loaded.predict(collection).unique().tolist() in ([0, 1], [0], [1])


def test_an_epoch_takes_every_training_graph_once_in_an_order_of_its_own() -> None:
    collection = labelled("number")
    planned = plan_task(collection, "ltga-head", protocol=QUICK, options={"batch_size": 7})
    model = graph_task.build("ltga-head", planned.protocol, graph_task.shape(collection), TaskOptions())
    prepared = graph_task.prepare(collection, 3, model, planned.protocol, planned.options, 1, None)
    orders = []
    for epoch in (1, 2, 1):
        steps = list(prepared.task.steps(epoch))
        orders.append(torch.cat([step.train for step in steps]))
        assert [step.batch.num_graphs for step in steps[:-1]] == [7] * (len(steps) - 1)
        first = steps[0]
        assert first.batch.x[first.batch.batch == 2].equal(collection[int(first.train[2])].x)
    train = collection.split(3)[0].nonzero().squeeze(1)
    assert orders[0].sort().values.equal(train) and orders[0].equal(orders[2]) and not orders[0].equal(orders[1])


def test_runs_are_the_same_for_a_seed_and_folds_differ() -> None:
    collection = labelled("number")
    runs = [ltga.fit(collection, "entmax-head", seed=seed, protocol=QUICK).record for seed in (1, 1, 2)]
    assert runs[0]["metrics"] == runs[1]["metrics"] != runs[2]["metrics"]
    assert [record["config"]["split"] for record in runs] == [0, 0, 1]


def test_attention_methods_share_weights_batches_and_dropout() -> None:
    collection = labelled("number")
    settings = {**QUICK, "epochs": 1, "dropout": 0.3, "warmup": 5, "index_start": 1.0}
    losses = {m: ltga.fit(collection, m, protocol=settings).record["trajectory"]["train_loss"]
              for m in ("gatv2", "ltga-head", "gatv2-temperature")}  # fmt: skip
    assert losses["ltga-head"] == pytest.approx(losses["gatv2"], rel=1e-4)


def test_accuracy_is_scikit_learns_and_a_metric_can_be_chosen() -> None:
    graphs = collection_from_data([ring_or_star(number) for number in range(60)], "rings")
    run = ltga.fit(graphs, "gcn", protocol=QUICK)
    test = graphs.split(0)[2]
    assert run.metrics["accuracy"] == accuracy_score(graphs.y[test], run.predict(graphs)[test])
    chosen = ltga.fit(graphs, "gcn", protocol={**QUICK, "metric": "roc_auc", "class_weights": True})
    assert chosen.record["metric"] == "roc_auc"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("nodes of one graph", {"method": "linkx"}, "linkx has a weight for every node of one graph and is not"),
    ("sampled neighbourhoods", {"minibatch": {"batch_size": 3}}, "minibatch: is for nodes"),
    ("no batch", {"options": {"batch_size": 0}}, "batch_size: expected a whole number from 1, got 0"),
    ("log of labels", {"options": {"log": True}}, "multi-label graphs has no setting 'log'"),
    ("links", {"task": "link"}, "labels is for multi-label graphs; use task='graph'"),
    ("a metric of numbers", {"protocol": {"metric": "accuracy"}}, "'accuracy' does not fit multi-label graphs"),
    ("options as text", {"options": "batch_size"}, "options: expected a mapping, got str"),
]


@pytest.mark.parametrize(("settings", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ltga.fit(labelled("labels"), **{"method": "features", **settings})


def test_what_cannot_be_predicted_on_is_named() -> None:
    run = ltga.fit(labelled("number"), "features", protocol={**QUICK, "epochs": 1})
    good = labelled("number")[0]
    bad = Data(x=torch.ones(3, 9), edge_index=good.edge_index[:, :2])
    for given, message in (
        ([good, bad], "data: graph 1: has 9 features"),
        ([], "at least one"),
        ("x", "expected a Gr"),
    ):
        with pytest.raises(InputError, match=message):
            run.predict(given)
    with pytest.raises(InputError, match="graph regression has no pairs"):
        run.predict(good, good.edge_index)


def test_the_protocol_of_a_task_gives_way_to_what_is_asked_for() -> None:
    rings = GraphCollection("rings", [ring_or_star(n) for n in range(40)], make_target([0, 1] * 20, "rings"))
    assert plan_task(rings, "gatv2").protocol.num_layers == 3
    assert plan_task(rings, "gatv2", protocol={"num_layers": 1}).protocol.num_layers == 1
    assert plan_task(rings, "gatv2", protocol=Protocol()).protocol == Protocol()


def test_explaining_such_a_run_asks_for_its_graphs() -> None:
    run = ltga.fit(labelled("number"), "ltga-head", protocol={**QUICK, "epochs": 1})
    with pytest.raises(InputError, match=r"dataset: the run was made on .*; pass the data itself"):
        ltga.explain(run)
