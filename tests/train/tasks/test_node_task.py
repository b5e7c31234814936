"""Numbers and several labels per node: losses, scales, metrics, predictions, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, mean_absolute_error, r2_score
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import scatter

import ltga
from ltga.data import NodeDataset, csbm, make_target, neighbour_classes
from ltga.errors import InputError
from ltga.train.protocol import Protocol
from ltga.train.tasks.objectives import Labels, Number, Scale, objective_for

QUICK = {"epochs": 40, "dropout": 0.0, "hidden_channels": 8, "heads": 2}
NAN = float("nan")


@pytest.fixture(scope="module")
def graph() -> Data:
    return csbm(num_nodes=150, seed=1).data


@pytest.fixture(scope="module")
def heights(graph: Data) -> NodeDataset:
    """A number that depends on the features of a node and of its neighbours."""
    source, target = graph.edge_index
    around = scatter(graph.x[source, 0], target, dim_size=150, reduce="mean")
    y = 100 + 20 * graph.x[:, 0] + 20 * around
    y[7] = NAN
    return NodeDataset("heights", graph, make_target(y, "heights"))


def test_a_number_is_learned_and_scored_in_its_units(heights: NodeDataset) -> None:
    run = ltga.fit(heights, "ltga-head", protocol=QUICK)
    predicted, y = run.predict(heights), heights.data.y
    test = heights.split(0)[2]
    assert predicted.shape == (150,)
    assert run.metrics["mae"] == pytest.approx(mean_absolute_error(y[test], predicted[test]), rel=1e-5)
    assert run.metrics["r2"] == pytest.approx(r2_score(y[test], predicted[test]), rel=1e-4)
    assert run.metrics["r2"] > 0.4
    assert run.record["metric"] == "mae" and run.record["config"]["task"] == "node regression"
    course = run.record["trajectory"]
    assert max(course["val_score"]) == course["val_score"][run.record["best_epoch"] - 1]
    assert -max(course["val_score"]) == pytest.approx(run.record["metrics"]["val"]["mae"], rel=1e-4)
    assert course["val_accuracy"][0] is None and run.record["attention"]


def test_runs_are_the_same_for_a_seed_and_come_back_from_a_file(heights: NodeDataset, tmp_path: Path) -> None:
    runs = [ltga.fit(heights, "ltga-edge", seed=3, protocol={**QUICK, "epochs": 4}) for _ in range(2)]
    assert runs[0].record["metrics"] == runs[1].record["metrics"] and runs[0].record["id"] == runs[1].record["id"]
    loaded = ltga.load_run(runs[0].save(tmp_path))
    assert loaded.predict(heights).equal(runs[0].predict(heights)) and loaded.metrics == runs[0].metrics
    other = ltga.fit(heights, "ltga-edge", seed=4, split=2, protocol={**QUICK, "epochs": 4})
    assert other.record["metrics"] != runs[0].record["metrics"]


def test_all_attention_methods_of_a_seed_begin_alike(heights: NodeDataset) -> None:
    protocol = {**QUICK, "epochs": 1, "index_start": 1.0}
    first = {m: ltga.fit(heights, m, protocol=protocol).record["trajectory"]["train_loss"][0]
             for m in ("gatv2", "ltga-head", "gatv2-temperature")}  # fmt: skip
    assert first["ltga-head"] == pytest.approx(first["gatv2"]) == pytest.approx(first["gatv2-temperature"])


def test_a_skewed_number_is_learned_as_its_logarithm_unless_told_otherwise(graph: Data) -> None:
    y = (3 * graph.x[:, 0]).exp() * 100
    skewed = NodeDataset("skewed", graph, make_target(y, "skewed"))
    run = ltga.fit(skewed, "features", protocol={**QUICK, "epochs": 3})
    assert run.record["target"]["log"] is True and run.record["metric"] == "log_mae"
    assert {"mae", "log_mae", "log_r2"} <= run.metrics.keys()
    assert bool((run.predict(skewed) > -1).all())
    test = skewed.split(0)[2]
    logs = r2_score(y[test].double().log1p(), run.predict(skewed)[test].double().log1p())
    assert run.metrics["log_r2"] == pytest.approx(logs, rel=1e-3)
    plain = ltga.fit(skewed, "features", protocol={**QUICK, "epochs": 3}, options={"log": False})
    assert plain.record["target"]["log"] is False and "log_mae" not in plain.metrics
    assert plain.record["id"] != run.record["id"]


def test_a_scale_goes_there_and_back_and_knows_the_training_part_only(heights: NodeDataset) -> None:
    train = heights.split(0)[0].nonzero().squeeze(1)
    _, y, said = objective_for(heights.target, train, "mae", Protocol(metric="auto"), None, "node regression")
    known = heights.target.y[train]
    assert said["shift"] == pytest.approx(known[~known.isnan()].mean().item(), rel=1e-6)
    assert float(y[train][~known.isnan()].std(correction=0)) == pytest.approx(1, rel=1e-4)
    for log in (False, True):
        scale = Scale.of(torch.tensor([0.0, 10.0, 1000.0]), log)
        there = scale.scaled(torch.tensor([0.0, 5.0, 77.0]))
        assert torch.allclose(scale.natural(there).float(), torch.tensor([0.0, 5.0, 77.0]), atol=1e-3)


def test_predictions_of_a_logarithm_end_at_twice_the_training_range() -> None:
    y = torch.tensor([3.0, 40.0, 500.0, 60_000.0])
    scale = Scale.of(y, log=True)
    ends = [1.5, 120_000.0]
    wild = torch.tensor([-1e9, -60.0, 60.0, 1e9])  # outputs of a network, of which expm1 alone would make 1e100 and inf
    assert scale.predicted(wild).numpy() == pytest.approx([ends[0], ends[0], ends[1], ends[1]])
    assert torch.allclose(scale.predicted(scale.scaled(y)).float(), y, rtol=1e-4)  # what is within is left alone
    objective, truth = Number("log_mae", scale), scale.scaled(torch.tensor([3.0, 1e7]))  # a truth beyond the ends stays
    found = objective.metrics(torch.tensor([[90.0], [90.0]]), truth)
    assert found["mae"] == pytest.approx(np.abs(ends[1] - np.array([3.0, 1e7])).mean(), rel=1e-4)
    assert found["log_mae"] == pytest.approx(np.abs(np.log1p(ends[1]) - np.log1p([3.0, 1e7])).mean(), rel=1e-4)
    assert Scale.of(y, log=False).predicted(torch.tensor([1e9])).item() > 1e12  # a plain number has no such ends
    of_old = Scale.said({"log": True, "shift": scale.shift, "scale": scale.scale})
    assert of_old.predicted(torch.tensor([60.0])).item() > 1e40  # a stored run keeps the numbers it had


def test_a_run_of_a_skewed_number_never_predicts_beyond_its_ends(heights: NodeDataset) -> None:
    skewed = NodeDataset("skewed", heights.data, make_target((heights.target.y / 10).exp(), "skewed"))
    run = ltga.fit(skewed, "features", protocol={**QUICK, "epochs": 1, "lr": 50.0}, options={"log": True})
    said, predicted = run.record["target"], run.predict(skewed).double()
    known = skewed.target.y[skewed.split(0)[0]]
    assert said["highest"] > float(known[~known.isnan()].max())
    assert said["lowest"] * (1 - 1e-6) <= float(predicted.min()) and float(predicted.max()) <= said["highest"] * (
        1 + 1e-6
    )


@pytest.mark.parametrize("weights", [None, torch.tensor([2.0, 0.5, 1.0])])
def test_the_loss_of_labels_is_torchs_over_what_is_known(weights: torch.Tensor | None) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20, 3, generator=generator, requires_grad=True)
    y = (torch.rand(20, 3, generator=generator) < 0.5).float()
    y[::3, 1] = NAN
    loss = Labels("loss", weights).loss(logits, y)
    each = F.binary_cross_entropy_with_logits(logits.detach(), y.nan_to_num(), reduction="none", pos_weight=weights)
    known = ~y.isnan()
    assert loss.item() == pytest.approx(float((each * known).sum() / known.sum()), rel=1e-6)
    loss.backward()
    assert bool((logits.grad[~known] == 0).all()) and bool((logits.grad[known] != 0).all())


def test_several_labels_are_learned_and_predicted(tmp_path: Path) -> None:
    dataset = neighbour_classes(csbm(num_nodes=150, degree=3, seed=2))
    run = ltga.fit(dataset, "gatv2", protocol=QUICK)
    predicted = run.predict(dataset)
    test = dataset.split(0)[2]
    assert predicted.shape == dataset.data.y.shape and set(predicted.unique().tolist()) <= {0, 1}
    truth = dataset.data.y[test].numpy().ravel()
    assert run.metrics["micro_f1"] == pytest.approx(f1_score(truth, predicted[test].numpy().ravel()))
    assert {"macro_f1", "average_precision", "roc_auc"} <= run.metrics.keys()
    assert torch.allclose(run.predict_proba(dataset), torch.from_numpy(run.arrays["outputs"]).sigmoid(), atol=1e-5)


def test_whole_numbers_in_a_table_are_labels_and_fractions_a_number(graph: Data) -> None:
    data = Data(x=graph.x, edge_index=graph.edge_index, y=(graph.x[:, :2] > 0).long())
    run = ltga.fit(data, "features", protocol={**QUICK, "epochs": 5})
    assert run.record["config"]["task"] == "multi-label nodes" and run.predict(data).shape == (150, 2)
    data.y = graph.x[:, 0]
    assert ltga.fit(data, "gcn", protocol={**QUICK, "epochs": 2}).record["config"]["task"] == "node regression"


def test_masks_of_a_data_are_kept(graph: Data) -> None:
    number = torch.arange(150)
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.x[:, 0] * 3.3, train_mask=number < 50,
                val_mask=(number >= 50) & (number < 100), test_mask=number >= 140)  # fmt: skip
    run = ltga.fit(data, "features", protocol={**QUICK, "epochs": 2})
    predicted = run.predict(data)[140:]
    assert run.metrics["mae"] == pytest.approx(mean_absolute_error(data.y[140:], predicted), rel=1e-4)


def test_sampled_neighbourhoods_do_for_numbers_too(heights: NodeDataset) -> None:
    run = ltga.fit(heights, "ltga-head", protocol={**QUICK, "epochs": 5}, minibatch={"batch_size": 32, "fanout": 5})
    assert run.metrics["r2"] < 1 and run.record["config"]["minibatch"]["batch_size"] == 32


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a metric of classes", {"protocol": {"metric": "accuracy"}}, "metric: 'accuracy' does not fit node regression"),
    ("an option of another task", {"options": {"batch_size": 3}}, "node regression has no setting 'batch_size'"),
    ("an option with a typo", {"options": {"lgo": True}}, "no setting 'lgo'; did you mean 'log'"),
    ("log as text", {"options": {"log": "yes"}}, "log: expected True, False or nothing"),
    ("another task", {"task": "graph"}, "task: heights is for node regression; use task='node'"),
    ("no such task", {"task": "edges"}, "task: got 'edges'; use one of 'node', 'link', 'graph'"),
    ("a split that is not there", {"split": 99}, "split: got 99"),
    ("no seed", {"seed": -1}, "seed: expected a whole number from 0"),
    ("weights of no classes", {"protocol": {"class_weights": True}}, "node regression has no classes to weigh"),
    ("its links", {"task": "link"}, "task: heights is for node regression; use task='node'"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(heights: NodeDataset, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ltga.fit(heights, **{"method": "features", **settings})
    assert "\n" not in str(caught.value)


def test_data_that_could_be_two_things_is_asked_about(graph: Data) -> None:
    data = Data(x=graph.x, edge_index=graph.edge_index, y=(graph.x[:, 0] > 0).float())
    with pytest.raises(InputError, match=r"for classes give y.long\(\)"):
        ltga.fit(data)
    negative = NodeDataset("n", graph, make_target(graph.x[:, 0], "n"))
    with pytest.raises(InputError, match="log: the target has negative values"):
        ltga.fit(negative, options={"log": True})
    run = ltga.fit(negative, "features", protocol={**QUICK, "epochs": 1})
    with pytest.raises(InputError, match="data: has 3 features, the network was trained on"):
        run.predict(Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0], [1]])))
    with pytest.raises(InputError, match="node regression has no pairs"):
        run.predict(negative, torch.zeros(2, 1, dtype=torch.long))
