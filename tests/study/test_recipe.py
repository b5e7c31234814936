"""Tables of the recipe's runs, on records made up so that the answer is known."""

from typing import Any

import pytest
from scipy import stats

from ltga.study.recipe import against_rows, bar_rows


def record(method: str, seed: int, test: float) -> dict[str, Any]:
    return {
        "id": "0" * 64,
        "config": {"dataset": {"name": "cora"}, "method": method, "seed": seed},
        "metrics": {"test": {"accuracy": test}, "val": {"accuracy": test}},
        "trajectory": {"q": []},
        "best_epoch": 1,
    }


def test_differences_are_paired_and_their_p_is_holms() -> None:
    softmax = [0.80, 0.81, 0.79, 0.82, 0.80]
    scores = {"frozen-q2.0": [0.82, 0.83, 0.80, 0.85, 0.81], "sparsemax": [0.79, 0.83, 0.78, 0.82, 0.81]}
    records = [record("gatv2", seed, value) for seed, value in enumerate(softmax)]
    for method, values in scores.items():
        records += [record(method, seed, value) for seed, value in enumerate(values)]
    header, rows = against_rows(records, ["cora"])
    cells = {row[1]: dict(zip(header, row)) for row in rows}
    plain = {name: stats.ttest_rel(values, softmax).pvalue for name, values in scores.items()}
    q2, sparse = cells["q = 2.0 (frozen)"], cells["sparsemax"]
    assert q2["against GATv2, same seeds"] == "+1.8, ahead on 5 of 5"
    assert sparse["against GATv2, same seeds"] == "+0.2, ahead on 2 of 5"
    assert float(q2["p"]) == pytest.approx(min(1, 2 * plain["frozen-q2.0"]), abs=6e-4)
    assert float(sparse["p"]) == pytest.approx(plain["sparsemax"], abs=6e-4)
    assert cells["GATv2"]["p"] == ""


def test_two_pairs_get_no_p() -> None:
    records = [record(method, seed, 0.5 + seed / 10) for method in ("gatv2", "sparsemax") for seed in (1, 2)]
    header, rows = against_rows(records, ["cora"])
    assert dict(zip(header, rows[1]))["p"] == ""


def test_a_bar_is_the_gap_to_the_best_rival_of_each_budget_over_the_seeds_all_have() -> None:
    def run(method: str, seed: int, early: float, late: float) -> dict[str, Any]:
        course = {"val_accuracy": [early] * 30 + [late] * 170, "q": [{"mean": [[1.2, 1.7]] * 200}]}
        return {**record(method, seed, late), "trajectory": course, "best_epoch": 40}

    records = [run("gatv2", seed, 0.3, 0.9) for seed in (1, 2)]
    records += [run("entmax-1.5", seed, 0.4 + seed / 100, 0.8) for seed in (1, 2, 3)]
    records += [run("entmax-head", seed, 0.4, 0.85) for seed in (1, 2)]
    header, rows = bar_rows(records, ["cora", "pubmed"])
    assert len(rows) == 1
    cells = dict(zip(header, rows[0]))
    assert cells["seeds"] == "2"
    assert cells["by epoch 20"] == "-1.5±0.5 (α-entmax, α = 1.5)"
    assert cells["by epoch 40"] == cells["test"] == "-5.0±0.0 (GATv2)"
    assert cells["fixed index that validation prefers"] == "GATv2"
    assert cells["learned, lowest to highest head"] == "1.20 to 1.70"
