"""``tune``: what it chooses, by independent scores; that a search goes on where it was; what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, mean_absolute_error

from ltga import fit, load_run, tune
from ltga.data import Dataset, NodeDataset, csbm, make_target
from ltga.errors import InputError, LTGAError, TrainingError
from ltga.train.tuning.search_space import SPACE, Choices, Range, search_space
from ltga.train.tuning.trials import Trial

QUICK = {"epochs": 12, "hidden_channels": 4, "heads": 2, "backend": "torch", "patience": 50}
METHODS = ["gatv2", "ltga-head"]


@pytest.fixture(scope="module")
def graph() -> Dataset:
    return csbm(num_nodes=90, seed=3)


def what(trials: tuple[Trial, ...]) -> list[Any]:
    return [(t.number, t.method, dict(t.settings), t.run, t.score, t.state) for t in trials]


def test_the_best_is_the_best_on_validation_and_the_usual_settings_are_among_the_trials(
    graph: Dataset, tmp_path: Path
) -> None:
    tuned = tune(graph, METHODS, 6, store=tmp_path, protocol=QUICK)
    val = graph.split(0)[1].numpy()
    accuracies = []
    for trial in tuned.trials:
        again = fit(graph, trial.method, 1, protocol={**QUICK, **trial.settings})  # what anybody would do by hand
        assert again.record["id"] == trial.run and (tmp_path / f"{trial.run}.json").exists()
        predicted = again.arrays["log_probs"].argmax(1)
        accuracies.append(accuracy_score(graph.data.y.numpy()[val], predicted[val]))
        assert trial.score == pytest.approx(accuracies[-1])
    assert len(set(accuracies)) > 1
    assert tuned.best.number == 1 + int(np.argmax(accuracies)) and tuned.metric == "accuracy"
    usual = {"num_layers": 2, "dropout": 0.4, "lr": 0.01, "weight_decay": 0.0005, "residual": False}
    assert [(t.method, dict(t.settings)) for t in tuned.trials[:2]] == [(name, usual) for name in METHODS]
    assert tuned.run.metrics == load_run(tmp_path / f"{tuned.best.run}.json").metrics
    frame = tuned.to_frame()
    assert list(frame["validation"]) == [t.score for t in tuned.trials] and "lr" in frame and len(repr(tuned)) < 300


def test_an_error_is_minimised(tmp_path: Path) -> None:
    data = csbm(num_nodes=90, seed=3).data
    number = data.x[:, 0] + 0.1 * torch.arange(90)
    numbers = NodeDataset("numbers", data, make_target(number, "y", "number"))
    tuned = tune(numbers, ["gatv2"], 4, store=tmp_path, protocol=QUICK)
    val = numbers.split(0)[1]
    errors = []
    for trial in tuned.trials:
        predicted = load_run(tmp_path / f"{trial.run}.json").predict(data)
        errors.append(mean_absolute_error(number[val].numpy(), predicted[val].numpy()))
        assert trial.score == pytest.approx(errors[-1], rel=1e-4)
    assert tuned.metric == "mae" and tuned.best.number == 1 + int(np.argmin(errors))
    assert tuned.best_of("gatv2") is tuned.best


class Died(Exception):
    """Stands in for a process that is killed."""


@pytest.mark.parametrize("prune", [False, True])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(
    graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prune: bool
) -> None:
    monkeypatch.setattr("ltga.train.tuning.search.LOOK_EVERY", 2)
    monkeypatch.setattr("ltga.train.tuning.search.FIRST_LOOK", 2)
    asked: dict[str, Any] = {"protocol": QUICK, "prune": prune}
    whole = tune(graph, METHODS, 14, store=tmp_path / "whole", **asked)
    epochs = 0

    def dies(info: object) -> None:
        nonlocal epochs
        epochs += 1
        if epochs == 45:
            raise Died

    with pytest.raises(Died):
        tune(graph, METHODS, 14, store=tmp_path / "parts", callbacks=[dies], **asked)
    again = tune(graph, METHODS, 14, store=tmp_path / "parts", **asked)
    assert what(again.trials) == what(whole.trials) and what((again.best,)) == what((whole.best,))
    reused = [trial.reused for trial in again.trials]
    assert 2 <= reused.count(True) < 14 and reused == sorted(reused, reverse=True)
    more = tune(graph, METHODS, 15, store=tmp_path / "parts", **asked)
    assert what(more.trials[:14]) == what(whole.trials)
    assert [trial.reused for trial in more.trials] == 14 * [True] + [False]
    cut = [trial.run for trial in whole.trials if trial.state == "cut short"]
    assert bool(cut) == prune
    stored = {path.stem for path in (tmp_path / "whole").glob("*.json")}
    assert stored == {trial.run for trial in whole.trials} - set(cut)


def test_trials_asked_for_at_once_are_the_same_whoever_makes_them(graph: Dataset, tmp_path: Path) -> None:
    first = tune(graph, METHODS, 8, store=tmp_path / "a", protocol=QUICK, jobs=3)
    for run in [first.trials[4].run, first.trials[0].run]:  # as if another process had been quicker
        fit(graph, *_of(first, run)).save(tmp_path / "b")
    second = tune(graph, METHODS, 8, store=tmp_path / "b", protocol=QUICK, jobs=3)
    assert what(first.trials) == what(second.trials)
    assert [t.number for t in second.trials if t.reused] == [1, 5]


def _of(tuned: Any, run: str) -> tuple[Any, ...]:
    trial = next(t for t in tuned.trials if t.run == run)
    return trial.method, 1, None, {**QUICK, **trial.settings}


def test_a_rate_that_diverges_is_a_failed_trial_and_is_not_tried_again(graph: Dataset, tmp_path: Path) -> None:
    wild = {"search": {"lr": [0.01, 1e30]}, "protocol": QUICK}
    tuned = tune(graph, ["gatv2"], 6, store=tmp_path, **wild)  # type: ignore[arg-type]
    states = {(trial.settings["lr"], trial.state, trial.score is None) for trial in tuned.trials}
    assert states == {(0.01, "done", False), (1e30, "failed", True)}
    again = tune(graph, ["gatv2"], 6, store=tmp_path, **wild)  # type: ignore[arg-type]
    assert all(trial.reused for trial in again.trials)
    with pytest.raises(TrainingError, match="none of 2 trials came to an end"):
        tune(graph, ["gatv2"], 2, store=tmp_path, search={"lr": [1e30]}, protocol=QUICK)


def test_a_timeout_ends_between_trials(graph: Dataset, tmp_path: Path) -> None:
    assert len(tune(graph, METHODS, 50, store=tmp_path, protocol=QUICK, timeout=1e-3).trials) == 1


def test_the_seed_decides_what_is_tried(graph: Dataset, tmp_path: Path) -> None:
    first, second = (tune(graph, ["gatv2"], 3, store=tmp_path, protocol=QUICK, seed=seed) for seed in (1, 2))
    assert first.trials[0].run == second.trials[0].run and first.trials[2].run != second.trials[2].run


def test_every_default_lies_in_the_space() -> None:
    from ltga.train.left_to_the_graph import settle
    from ltga.train.protocol import Protocol
    from ltga.train.tasks.task_run import KINDS, protocol_for

    for given in [Protocol.recommended(), Protocol.paper(), *(protocol_for(task, None) for task in KINDS)]:
        protocol, _ = settle(given, 1000, 0.5)
        assert all(values.holds(getattr(protocol, name)) for name, values in SPACE.items())


def test_the_space() -> None:
    assert "residual" not in search_space(["gatv2", "linkx"])
    asked = search_space(["gatv2"], ["lr"], {"heads": [1, 3], "kappa": (1, 8), "warmup": (0, 9), "dropout": None})
    assert asked["heads"] == Choices((1, 3)) and "lr" not in asked and "dropout" not in asked
    assert isinstance(asked["kappa"], Range) and isinstance(asked["kappa"].low, float)
    assert asked["warmup"] == Range(0, 9)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"trials": 0}, "trials: expected a whole number from 1, got 0"),
    ({"trials": True}, "trials: expected a whole number"),
    ({"jobs": 1.5}, "jobs: expected a whole number"),
    ({"timeout": 0}, "timeout: expected seconds above 0"),
    ({"timeout": float("nan")}, "timeout: expected seconds above 0"),
    ({"seed": -1}, "seed: expected a whole number from 0"),
    ({"seed": 1 << 33}, "seed: of a search must be below"),
    ({"methods": []}, "methods: give at least one"),
    ({"methods": ["gatv3"]}, "did you mean 'gatv2'"),
    ({"protocol": 3}, "protocol: expected a Protocol or a mapping"),
    ({"protocol": {"epoch": 3}}, "did you mean 'epochs'"),
    ({"search": {"lrr": (0.1, 0.2)}}, "search: lrr: the protocol has no such setting"),
    ({"search": {"lr": (0.2, 0.1)}}, "search: lr: a range goes from the lower to the higher end"),
    ({"search": {"lr": []}}, r"search: lr: expected \(low, high\) or a list"),
    ({"search": {"heads": ["8"]}}, "search: heads: expected a value like 8, got '8'"),
    ({"search": {"lr": 0.1}}, r"search: lr: expected \(low, high\) or a list"),
    ({"search": {"dropout": (0.5, 1.5)}}, "search: dropout: .*less than 1"),
    ({"search": {"lr": (0.1, 0.2)}, "protocol": {"lr": 0.1}}, "search: lr is also set to one value"),
    ({"search": {"residual": [True, False]}, "methods": ["gatv2", "linkx"]}, "linkx has no residual connection"),
    ({"options": {"each": 3}}, "options: node classification has none"),
    ({"task": "graph"}, "task: .* is for node classification"),
]


@pytest.mark.parametrize(("arguments", "culprit"), BAD, ids=[str(row[0])[:40] for row in BAD])
def test_bad_input_leaves_nothing_behind(
    graph: Dataset, tmp_path: Path, arguments: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(LTGAError, match=culprit) as caught:
        tune(graph, **{"methods": METHODS, "trials": 1, "store": tmp_path / "runs", **arguments})
    assert len(str(caught.value).splitlines()) == 1 and not (tmp_path / "runs").exists()


def test_without_optuna_the_message_says_what_to_install(
    graph: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"optuna is not installed; pip install 'ltga\[tune\]'"):
        tune(graph, METHODS, 1, store=tmp_path)
