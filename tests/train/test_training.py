"""Warm-up, prior, pairing, determinism, and what happens when a run does not go to plan."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data import Dataset
from ltga.errors import InputError, TrainingError
from ltga.nn.interface import Network
from ltga.nn.methods import METHODS
from ltga.nn.network import LTGA
from ltga.train import EpochInfo, Protocol, fit
from ltga.train.assembly import make_task
from ltga.train.loop import train
from ltga.train.observe import observe
from ltga.train.optimizer import DecoupledAdam
from oracles.records import without_surroundings


def means(run: Any) -> list[list[list[float]]]:
    """q per layer, epoch and head."""
    return [layer["mean"] for layer in run.record["trajectory"]["q"]]


@pytest.mark.parametrize("method", ["ltga-global", "ltga-layer", "ltga-head", "ltga-edge", "dot-ltga-head"])
def test_q_is_exactly_one_until_the_warmup_ends(small: Dataset, quick: dict, method: str) -> None:
    run = fit(small, method, protocol=Protocol(warmup=3, epochs=6, **quick))
    for layer in means(run):
        assert all(q == 1.0 for head in layer[:3] for q in head)
        assert all(q != 1.0 for q in layer[3])
    assert all(norm > 0 for norm in run.record["trajectory"]["index_gradient_norm"])
    if method == "ltga-global":
        assert means(run)[0] == means(run)[1]


def test_edge_gates_report_their_spread(small: Dataset, quick: dict) -> None:
    run = fit(small, "ltga-edge", protocol=Protocol(warmup=1, epochs=8, **quick))
    spread = run.record["trajectory"]["q"][0]["std"]
    assert spread[0] == [0.0, 0.0] and min(spread[-1]) > 0
    best, layer = run.record["best_epoch"], run.record["trajectory"]["q"][1]
    observed = torch.from_numpy(run.arrays["layer2_q"]).double().mean(0)
    torch.testing.assert_close(observed, torch.tensor(layer["mean"][best - 1]).double(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("method", ["ltga-head", "ltga-edge"])
def test_the_prior_pulls_q_to_one(small: Dataset, quick: dict, method: str) -> None:
    ends = []
    for prior in (0.0, 100.0):
        run = fit(small, method, protocol=Protocol(warmup=0, epochs=30, patience=30, prior=prior, **quick))
        ends.append(max(abs(q - 1) for layer in means(run) for q in layer[-1]))
    assert ends[1] < ends[0] / 4


def test_a_network_of_ones_own_is_trained_by_the_same_loop(small: Dataset) -> None:
    class Perceptron(Network):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(small.data.x.size(1), small.num_classes)

        def hidden(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
            return x

        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
            return self.linear(x)

    for init in ("paper", "paired"):
        protocol = Protocol(epochs=5, prior=0.1, init=init)
        model = Perceptron()
        task = make_task(small, 0, model, protocol)
        outcome = train(model, task, protocol, seed=1)
        assert len(outcome.history) == 5 and all(info.q == [] for info in outcome.history)
        assert outcome.history[-1].train_loss < outcome.history[0].train_loss
        numbers, arrays = observe(model, task)
        assert "attention" not in numbers and set(arrays) == {"log_probs"}


def test_the_penalty_counts_a_shared_index_once() -> None:
    model = LTGA(4, 2, heads=2, index="global")
    with torch.no_grad():
        model.convs[0].index.raw.fill_(0.3)
    assert model.shannon_penalty().item() == pytest.approx(float(torch.tanh(torch.tensor(0.3)) ** 2))


def test_the_record_says_how_many_heads_ended_at_a_bound(small: Dataset, quick: dict) -> None:
    protocol = Protocol(epochs=1, **quick)
    assert fit(small, "ltga-head", protocol=protocol).record["heads_at_bound"] == [0.0, 0.0]
    fast = protocol.with_overrides(warmup=0, kappa=0.001)  # one step of the index takes it to an end of its interval
    assert fit(small, "ltga-head", protocol=fast).record["heads_at_bound"] == [1.0, 1.0]
    for method in ("gatv2", "frozen-q2.0", "ltga-edge"):
        assert "heads_at_bound" not in fit(small, method, protocol=protocol).record


def test_kappa_and_decay_act_where_they_should() -> None:
    model = LTGA(4, 2, heads=2, index="head")
    optimizer = DecoupledAdam(model, Protocol(lr=0.1, kappa=5, warmup=1, weight_decay=0.1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.numel() > 2 else torch.ones_like(parameter)
    model.convs[1].bias.grad.zero_()
    optimizer.step(1)
    assert model.convs[0].index.raw.equal(torch.zeros(2))
    assert not model.convs[0].lin_l.weight.equal(before["convs.0.lin_l.weight"])  # decay alone moves it
    optimizer.step(2)
    torch.testing.assert_close(model.convs[0].index.raw, torch.full((2,), -0.02))  # the first Adam step


def test_paired_methods_agree_until_the_warmup_ends(small: Dataset, quick: dict) -> None:
    losses = {}
    for method in ("gatv2", "ltga-head", "ltga-edge", "frozen-q1.0", "gatv2-temperature", "gatv2-edge-bias"):
        protocol = Protocol(init="paired", warmup=4, epochs=8, **quick)
        losses[method] = fit(small, method, 2, protocol=protocol).record["trajectory"]["train_loss"]
    for method, values in losses.items():
        assert values[:5] == pytest.approx(losses["gatv2"][:5], rel=1e-5), method
    assert losses["ltga-head"][5:] != pytest.approx(losses["gatv2"][5:], rel=1e-5)


def test_every_method_trains(small: Dataset, quick: dict) -> None:
    for init in ("paper", "paired"):
        for method in METHODS:
            run = fit(small, method, protocol=Protocol(init=init, epochs=2, **quick))
            assert run.record["config"]["method"] == method and 0 <= run.metrics["accuracy"] <= 1
            assert ("attention" in run.record) == (
                METHODS[method].network in ("ltga", "gat", "gatv2", "classic", "separated")
            )


def test_the_same_run_gives_the_same_record(small: Dataset, quick: dict) -> None:
    for init in ("paper", "paired"):
        protocol = Protocol(init=init, epochs=4, warmup=1, **quick)
        first = fit(small, "ltga-edge", 3, protocol=protocol)
        torch.rand(7)
        second = fit(small, "ltga-edge", 3, protocol=protocol)
        assert without_surroundings(first.record) == without_surroundings(second.record)
        assert all((first.arrays[name] == second.arrays[name]).all() for name in first.arrays)


def test_how_features_lie_in_memory_makes_no_difference(small: Dataset, quick: dict) -> None:
    columns_first = small.data.clone()
    columns_first.x = small.data.x.t().contiguous().t()
    turned = Dataset(small.name, columns_first, *(mask.unsqueeze(0) for mask in small.split(0)))
    straight = Dataset(small.name, small.data, *(mask.unsqueeze(0) for mask in small.split(0)))
    first, second = (fit(graph, "gatv2", 1, protocol=Protocol(epochs=3, **quick)) for graph in (straight, turned))
    assert not turned.data.x.is_contiguous()
    assert without_surroundings(first.record) == without_surroundings(second.record)


def test_the_callers_random_numbers_are_left_alone(small: Dataset, quick: dict) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(small, "gatv2", protocol=Protocol(epochs=1, **quick))
    assert torch.rand(3).equal(expected)


def test_an_interrupted_run_keeps_the_best_so_far(small: Dataset, quick: dict) -> None:
    def stop(info: EpochInfo) -> None:
        if info.epoch == 3:
            raise KeyboardInterrupt

    run = fit(small, "ltga-head", protocol=Protocol(**quick), callbacks=[stop])
    assert run.record["interrupted"] and run.record["stopped"] == "interrupted"
    assert run.record["epochs"] == 3 and 1 <= run.record["best_epoch"] <= 3
    val = run.record["trajectory"]["val_loss"]
    assert run.record["metrics"]["val"]["nll"] == pytest.approx(min(val), rel=1e-5)


def test_a_loss_that_is_not_finite_stops_the_run(small: Dataset, quick: dict) -> None:
    data = small.data.clone()
    data.x = data.x * 1e30
    masks = [mask.unsqueeze(0) for mask in small.split(0)]
    with pytest.raises(TrainingError, match=r"loss is (nan|inf) at epoch \d; a lower learning rate"):
        fit(Dataset("huge", data, *masks), "ltga-head", protocol=Protocol(**quick))


def test_best_epoch_and_patience(small: Dataset, quick: dict) -> None:
    seen: list[EpochInfo] = []
    run = fit(small, "gatv2", protocol=Protocol(patience=3, **quick), callbacks=[seen.append])
    losses = run.record["trajectory"]["val_loss"]
    assert run.record["best_epoch"] == losses.index(min(losses)) + 1
    assert run.record["stopped"] == "patience" and run.record["epochs"] == run.record["best_epoch"] + 3
    assert [info.epoch for info in seen] == list(range(1, len(losses) + 1))


def test_your_own_graph_with_edge_attributes(quick: dict) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 40, (2, 120), generator=generator)
    data = Data(
        x=torch.randn(40, 5, generator=generator), y=torch.arange(40) % 3, edge_index=edges,
        edge_attr=torch.randn(120, generator=generator),
    )  # fmt: skip
    for method in ("ltga-edge", "gat", "gcn", "linkx"):
        run = fit(data, method, protocol={"epochs": 2, **quick})
        assert run.record["model"]["edge_dim"] == 1
    deep = fit(data, "ltga-edge", protocol={"epochs": 2, "num_layers": 4, "residual": True, **quick})
    assert len(deep.record["attention"]) == 4
    assert fit(data, "ltga-head", protocol={"epochs": 2, "num_layers": 1, **quick}).record["epochs"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "ltga-edges"}, "did you mean 'ltga-edge'"),
        ({"seed": -1}, "seed: expected"),
        ({"seed": True}, "seed: expected"),
        ({"split": 99}, "split: got 99"),
        ({"protocol": 3}, "protocol: expected"),
        ({"protocol": {"lrr": 1}}, "lrr: the protocol has no such setting"),
        ({"method": "linkx", "protocol": {"residual": True}}, "residual: linkx has no such setting"),
    ],
)
def test_bad_arguments(small: Dataset, arguments: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        fit(small, **arguments)
    assert message in str(error.value)


def test_no_validation_nodes(small: Dataset) -> None:
    train, val, test = small.split(0)
    dataset = Dataset("blind", small.data, train, torch.zeros_like(val), test)
    with pytest.raises(InputError, match="no validation nodes"):
        fit(dataset, "gcn")
    with pytest.raises(InputError, match="dataset: expected"):
        fit(3)  # type: ignore[arg-type]
