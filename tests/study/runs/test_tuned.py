"""Tuned rows: chosen on validation, never on test, over the same seeds for every candidate."""

from typing import Any

import pytest

from ltga.errors import InputError
from ltga.study.tuned import ENTMAX, ENTMAX_TUNED, FROZEN_Q, FROZEN_Q_ORACLE, FROZEN_Q_TUNED, TUNED_ROWS, tuned
from oracles.records import make_record


def run(method: str, seed: int, val: float, test: float, dataset: str = "g") -> dict[str, Any]:
    return make_record(dataset, method, seed, test=test, val=val)


def grid(val: list[float], test: list[float], seed: int = 1, dataset: str = "g") -> list[dict[str, Any]]:
    return [run(method, seed, v, t, dataset) for method, v, t in zip(FROZEN_Q, val, test, strict=True)]


def test_validation_decides_and_test_only_in_the_oracle() -> None:
    records = grid([0.1, 0.2, 0.9, 0.3, 0.4, 0.5], [0.9, 0.8, 0.1, 0.7, 0.6, 0.5])
    assert tuned(records, FROZEN_Q_TUNED)["g"].method == "frozen-q1.0"
    assert tuned(records, FROZEN_Q_ORACLE)["g"].method == "frozen-q0.5"
    assert [row.name for row in TUNED_ROWS if row.chosen_on == "test"] == ["frozen-q-oracle"]


def test_tuned_on_validation_does_not_even_look_at_test() -> None:
    records = [run(method, 1, val, 0.0) for method, val in zip(ENTMAX, (0.1, 0.3, 0.2))]
    for record in records:
        del record["metrics"]["test"]
    assert tuned(records, ENTMAX_TUNED)["g"].method == "entmax-1.5"


def test_the_mean_over_seeds_decides_and_brings_all_its_runs() -> None:
    first = grid([0.9, 0.5, 0.5, 0.5, 0.5, 0.6], [0.0] * 6, seed=1)
    second = grid([0.1, 0.5, 0.5, 0.5, 0.5, 0.6], [0.0] * 6, seed=2)
    chosen = tuned(second + first, FROZEN_Q_TUNED)["g"]
    assert chosen.method == "frozen-q2.0" and chosen.scores["frozen-q0.5"] == pytest.approx(0.5)
    assert chosen.records == (first[5], second[5])


def test_each_dataset_has_its_own_choice_and_other_methods_do_not_matter() -> None:
    records = grid([1, 0, 0, 0, 0, 0], [0] * 6, dataset="a") + grid([0, 0, 0, 0, 0, 1], [0] * 6, dataset="b")
    found = tuned([*records, run("gat", 1, 1.0, 1.0, "a")], FROZEN_Q_TUNED)
    assert {name: chosen.method for name, chosen in found.items()} == {"a": "frozen-q0.5", "b": "frozen-q2.0"}


def test_only_seeds_that_every_candidate_has_are_compared() -> None:
    lucky = run("frozen-q0.5", 2, 1.0, 1.0)
    records = [*grid([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0] * 6), lucky]
    chosen = tuned(records, FROZEN_Q_TUNED)["g"]
    assert chosen.method == "frozen-q2.0" and len(chosen.records) == 1
    assert tuned(records[1:], FROZEN_Q_TUNED) == {}  # q = 0.5 has seed 2 only: nothing in common


def test_a_tie_goes_to_the_first_and_a_run_given_twice_is_refused() -> None:
    records = grid([0.5] * 6, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert tuned(records, FROZEN_Q_TUNED)["g"].method == "frozen-q0.5"
    with pytest.raises(InputError, match=r"g, frozen-q0\.5, seed 1 appears twice"):
        tuned([*records, records[0]], FROZEN_Q_TUNED)
