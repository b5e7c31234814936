"""Tables from hand-made records, against numpy, scipy and statsmodels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ltga.study import EXPERIMENTS
from ltga.study.report.accuracy import accuracy_table
from ltga.study.report.pivots import DEPTH, Q_ANALYSIS, SWEEP, SYNTHETIC, calibration_table
from ltga.study.report.sections import PARTS, make_section
from ltga.study.report.significance import datasets_table, primary_table, ranks_table, seeds_table
from ltga.study.report.tables import Cell, Table
from oracles.records import make_record

TEN = range(1, 11)


def at(table: Table, column: str, **row: str) -> Cell:
    """The cell of a column in the one row whose named columns have these texts."""
    heads = [head.label for head in table.columns]
    (found,) = (
        line
        for line in table.rows
        if all(line[heads.index(name.replace("_", " "))].text == text for name, text in row.items())
    )
    return found[heads.index(column)]


def accuracies(records: list[Any]) -> dict[tuple[str, str], dict[int, float]]:
    """(dataset, method) -> seed -> test accuracy, read independently of the package."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for record in records:
        config = record["config"]
        by_seed = found.setdefault((config["dataset"]["name"], config["method"]), {})
        by_seed[config["seed"]] = record["metrics"]["test"]["accuracy"]
    return found


def headline(datasets: list[str], shift: float = 0.0, **settings: Any) -> list[Any]:
    """Ten seeds of all headline methods, the later ones better, with noise."""
    rng = np.random.default_rng(1)
    methods = EXPERIMENTS["headline"].methods
    return [
        make_record(
            dataset, method, seed, test=round(0.5 + shift + 0.01 * k + rng.normal(0, 0.02), 6), q=1.2, **settings
        )
        for dataset in datasets
        for k, method in enumerate(methods)
        for seed in TEN
    ]


def test_headline_cells_averages_and_ranks(study: Callable[..., Any]) -> None:
    records = [*headline(["texas", "cora", "gum-syntax"]), make_record("wisconsin", "gat", 1, test=0.4)]
    table = accuracy_table(study(records), EXPERIMENTS["headline"], ranks=True)
    values = {key: list(by_seed.values()) for key, by_seed in accuracies(records).items()}
    cell = at(table, "texas", method="GATv2")
    assert cell.number == pytest.approx(100 * np.mean(values["texas", "gatv2"])) and cell.reference == "59.2±5.5"
    assert len(cell.runs) == 10 and {run.id for run in cell.runs} <= {record["id"] for record in records}
    assert at(table, "wisconsin", method="GAT").partial and at(table, "wisconsin", method="GCN").missing
    stand_in = at(table, "gum-syntax", method="GAT")
    assert stand_in.stand_in == "roman-empire" and stand_in.reference is None and len(stand_in.runs) == 10
    assert (
        at(table, "roman-empire", method="GAT").reference == "56.1±0.7"
        and at(table, "roman-empire", method="GAT").missing
    )
    # Averages and ranks: only texas and cora, where all methods have the same seeds; the stand-in is left out.
    means = np.array([[np.mean(values[d, m]) for m in EXPERIMENTS["headline"].methods] for d in ("texas", "cora")])
    assert at(table, "mean of 2", method="GAT").number == pytest.approx(100 * means[:, 1].mean())
    assert at(table, "mean of 2", method="GAT").reference == f"{(59.2 + 80.4) / 2:.1f}"
    assert len(at(table, "mean of 2", method="GAT").runs) == len(at(table, "average rank", method="GAT").runs) == 20
    ranks = np.mean([stats.rankdata(-row) for row in means], axis=0)
    assert [row[-1].number for row in table.rows] == pytest.approx(ranks)
    assert sum(row[1].best for row in table.rows) == 1


def test_a_method_with_other_seeds_keeps_a_dataset_out_of_the_average(study: Callable[..., Any]) -> None:
    records = headline(["texas", "cora"])
    left_out = make_record("cora", "gcn", 10)["id"]
    records = [record for record in records if record["id"] != left_out]
    table = accuracy_table(study(records), EXPERIMENTS["headline"])
    assert table.columns[-1].label == "mean of 1" and table.columns[-1].note == "texas"


def test_tuned_rows_are_chosen_on_validation_and_need_the_whole_grid(study: Callable[..., Any]) -> None:
    best_val, best_test = "entmax-1.5", "sparsemax"
    records = [
        make_record(
            "texas", method, seed, test=0.9 if method == best_test else 0.5, val=0.8 if method == best_val else 0.2
        )
        for method in ("entmax-1.2", best_val, best_test)
        for seed in TEN
    ] + [make_record("cora", "entmax-1.2", 1)]
    table = accuracy_table(study(records), EXPERIMENTS["entmax"])
    cell = at(table, "texas", method="α-entmax (tuned on validation)")
    assert cell.text == "50.0±0.0" and cell.note == "chose α-entmax, α = 1.5"
    assert at(table, "cora", method="α-entmax (tuned on validation)").missing
    assert "α-entmax (tuned on validation) chose: α-entmax, α = 1.5 on texas." in table.note  # in every format


def test_paired_cells_stand_beside_our_own_under_the_papers_initialisation(study: Callable[..., Any]) -> None:
    records = headline(["texas"]) + headline(["texas"], shift=0.1, init="paired")
    table = accuracy_table(study(records), EXPERIMENTS["headline-paired"])
    assert table.reference == "paper's init"
    assert all(
        row[1].difference == pytest.approx(10, abs=0.06) for row in table.rows
    )  # the reference is printed to 0.1


def test_primary_comparisons_against_scipy_and_statsmodels(study: Callable[..., Any]) -> None:
    datasets = ["cora", "texas", "gum-syntax"]
    records = headline(datasets) + headline(["cora"], init="paired")[:-60]  # paired: gcn only, which is no comparison
    table = primary_table(study(records), EXPERIMENTS["headline"])
    assert len(table.rows) == 14 and any("no run under paired" in warning for warning in table.warnings)
    assert any("cora share one public split" in warning for warning in table.warnings)
    accuracy = accuracies(records)
    p = []
    for dataset in datasets:
        for method in ("ltga-edge", "ltga-head"):
            a, b = (np.array([accuracy[dataset, m][seed] for seed in TEN]) for m in (method, "gatv2"))
            normal = stats.shapiro(a - b).pvalue >= 0.05
            p.append(stats.ttest_rel(a, b).pvalue if normal else stats.wilcoxon(a - b).pvalue)
            label = {"ltga-edge": "LTGA-Edge – GATv2", "ltga-head": "LTGA-Head – GATv2"}[method]
            cell = at(table, "Δ (points)", dataset=dataset, comparison=label)
            assert cell.number == pytest.approx(100 * np.mean(a - b)) and len(cell.runs) == 20
            d = at(table, "Cohen's d", dataset=dataset, comparison=label).number
            assert d == pytest.approx(np.mean(a - b) / np.std(a - b, ddof=1))
            assert at(table, "p", dataset=dataset, comparison=label).number == pytest.approx(p[-1])
            overlap = at(table, "p (splits overlap)", dataset=dataset, comparison=label).number
            ratio = {"cora": None, "texas": 37 / 87, "gum-syntax": 5721 / 11440}[dataset]  # test over training nodes
            if ratio is None:  # one public split
                assert overlap is None
            else:
                t = np.mean(a - b) / np.sqrt((1 / len(a) + ratio) * np.var(a - b, ddof=1))
                assert overlap == pytest.approx(2 * stats.t.sf(abs(t), len(a) - 1))
    adjusted = multipletests([*p, *[1.0] * 8], method="holm")[1][:6]  # the eight that were not run count as well
    column = [column.label for column in table.columns].index("p (Holm)")
    found = [row[column].number for row in table.rows if row[3].number]
    assert sorted(found) == pytest.approx(sorted(adjusted))
    assert at(table, "Δ (points)", dataset="pubmed", comparison="LTGA-Edge – GATv2").missing


def test_a_test_that_cannot_succeed_is_named(study: Callable[..., Any]) -> None:
    # Two distinct differences are not normal, so Wilcoxon over four pairs: its smallest p is 1/8.
    second = {1: 0.60, 2: 0.60, 3: 0.60, 4: 0.90}
    records = [make_record("texas", "gatv2", seed, test=0.5) for seed in second]
    records += [make_record("texas", "ltga-edge", seed, test=value) for seed, value in second.items()]
    table = primary_table(study(records), EXPERIMENTS["headline"])
    assert any("could not have reached 0.05" in warning and "texas" in warning for warning in table.warnings)
    assert "cannot reach" in at(table, "remarks", dataset="texas", comparison="LTGA-Edge – GATv2").text


def test_seeds_are_compared_in_the_papers_direction(study: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    noise = {seed: rng.normal(0, 0.01) for seed in TEN}
    records = [
        make_record("texas", m, s, test=0.5 + noise[s] * k + 0.05 * k)
        for k, m in enumerate(("gat", "ltga-edge"))
        for s in TEN
    ]
    table = seeds_table(study(records), EXPERIMENTS["pairwise-seeds"])
    cell = at(table, "Δ (points)", dataset="texas", comparison="LTGA-Edge – GAT")
    assert cell.number == pytest.approx(5 + 100 * np.mean(list(noise.values()))) and cell.reference == "−0.5"
    assert at(table, "wins/losses/ties", dataset="texas", comparison="LTGA-Edge – GAT").text == "10/0/0"
    assert at(table, "P(better)", dataset="texas", comparison="LTGA-Edge – GAT").number == 1
    low, high = (
        float(x.replace("−", "-"))
        for x in at(table, "95 % interval", dataset="texas", comparison="LTGA-Edge – GAT").text.split(" to ")
    )
    assert low <= cell.number <= high


def test_datasets_as_observations(study: Callable[..., Any]) -> None:
    table = datasets_table(study(headline(["texas", "cora", "citeseer", "gum-syntax"])), EXPERIMENTS["pairwise"])
    heads = "LTGA-Edge_against"
    row = {heads: "GCN"}
    assert at(table, "datasets", **row).text == "3"  # without the stand-in
    assert at(table, "Δ (points)", **row).reference == "+4.7"  # (58.6 + 81.2 + 69.1 - 45.9 - 80.5 - 68.3) / 3
    assert at(table, "wins/losses/ties", **row).text == "3/0/0"
    assert at(table, "remarks", **{heads: "LINKX"}).text == "no dataset with both"


def test_ranks_and_friedman(study: Callable[..., Any]) -> None:
    records = headline(["texas", "cora", "gum-syntax"])
    table = ranks_table(study(records), EXPERIMENTS["critical-difference"])
    values, methods = accuracies(records), EXPERIMENTS["headline"].methods
    datasets = ("texas", "cora", "gum-syntax")
    means = np.array([[np.mean(list(values[d, m].values())) for m in methods] for d in datasets])
    test = stats.friedmanchisquare(*means.T)
    assert f"χ² = {test.statistic:.2f}, p = {test.pvalue:.3f}" in table.note
    assert [row[1].number for row in table.rows] == sorted(np.mean([stats.rankdata(-row) for row in means], axis=0))
    assert "stand-in" in table.warnings[0] and all(row[1].reference is None for row in table.rows)


def test_learned_q_is_that_of_the_kept_epoch(study: Callable[..., Any]) -> None:
    records = [make_record("texas", "ltga-head", seed, q=1.4 + 0.1 * seed, zeros=0.25) for seed in (1, 2)]
    table = Q_ANALYSIS(study(records), EXPERIMENTS["q-analysis"])
    assert at(table, "mean q", dataset="texas").number == pytest.approx(1.55)
    assert at(table, "s.d. of q", dataset="texas").number == pytest.approx(np.std([1.5, 1.6], ddof=1))
    assert at(table, "exact zeros", dataset="texas").text == "0.250"
    assert at(table, "mean q", dataset="roman-empire").missing


def test_sweeps_share_the_default_run(study: Callable[..., Any]) -> None:
    records = [make_record("gum-syntax", "ltga-head", s, test=0.7, q=1.5) for s in range(1, 6)]
    records += [make_record("gum-syntax", "ltga-head", s, test=0.6, q=1.1, prior=0.5) for s in range(1, 4)]
    table = SWEEP(study(records), EXPERIMENTS["sweep-lambda"])
    assert at(table, "accuracy (%)", dataset="gum-syntax", value="0").text == "70.0±0.0"
    cell = at(table, "accuracy (%)", dataset="gum-syntax", value="0.5")
    assert cell.partial and cell.stand_in == "roman-empire"
    assert at(table, "mean q", dataset="gum-syntax", value="0.5").number == pytest.approx(1.1)
    assert at(table, "mean q", dataset="roman-empire", value="0.5").reference == "1.128"


def test_under_paired_initialisation_sweeps_and_q_have_our_own_numbers_beside(study: Callable[..., Any]) -> None:
    records = [
        make_record("gum-syntax", "ltga-head", 1, test=test, q=q, prior=prior, init=init)
        for test, q, prior, init in ((0.6, 1.2, 0.0, "paper"), (0.7, 1.5, 0.0, "paired"), (0.5, 1.1, 0.5, "paired"))
    ]
    found = study(records)
    table = SWEEP(found, EXPERIMENTS["sweep-lambda-paired"])
    assert table.reference == "paper's init"
    assert at(table, "accuracy (%)", dataset="gum-syntax", value="0").reference == "60.0"
    assert at(table, "accuracy (%)", dataset="gum-syntax", value="0.5").reference is None
    assert at(table, "mean q", dataset="roman-empire", value="0.5").reference is None  # what the paper prints is not it
    q = Q_ANALYSIS(found, EXPERIMENTS["q-analysis-paired"])
    assert at(q, "mean q", dataset="gum-syntax").reference == "1.200" and q.reference == "paper's init"
    assert at(q, "mean q", dataset="roman-empire").reference is None


def test_rows_that_were_not_run_still_have_the_papers_difference_and_p(study: Callable[..., Any]) -> None:
    table = seeds_table(study(headline(["texas"])), EXPERIMENTS["pairwise-seeds"])
    where = {"dataset": "roman-empire", "comparison": "LTGA-Edge – GATv2"}
    assert at(table, "Δ (points)", **where).reference == "+1.4" and at(table, "p", **where).reference == "0.006"
    assert at(table, "p", dataset="texas", comparison="LTGA-Edge – GAT").reference == "0.780"


def test_depth_and_synthetic(study: Callable[..., Any]) -> None:
    records = [
        make_record("cora", "gcn", s, test=0.8 if n == 2 else 0.4, num_layers=n) for s in range(1, 6) for n in (2, 8)
    ]
    records.append(make_record("csbm:degree=20,seed=3,snr=0.25", "ltga-head", 3, test=0.61))
    found = study(records)
    depth = DEPTH(found, EXPERIMENTS["depth"])
    assert at(depth, "8 layers: accuracy (%)", dataset="cora", method="GCN").difference == pytest.approx(40 - 44.5)
    assert at(depth, "4 layers: accuracy (%)", dataset="cora", method="GCN").missing
    table = SYNTHETIC(found, EXPERIMENTS["synthetic"])
    assert at(table, "signal 0.25", degree="20", method="LTGA-Head").text == "61.0"


def test_calibration_marks_the_lower(study: Callable[..., Any]) -> None:
    records = [make_record("texas", m, s, ece=e) for m, e in (("gat", 0.2), ("ltga-head", 0.1)) for s in TEN]
    table = calibration_table(study(records), EXPERIMENTS["calibration"])
    assert at(table, "ECE", dataset="texas", method="LTGA-Head").best
    assert not at(table, "ECE", dataset="texas", method="GAT").best


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_section_even_without_runs(study: Callable[..., Any], name: str) -> None:
    section = make_section(study([]), EXPERIMENTS[name])
    assert section.done == 0 and not section.drawings and "None of its runs" in section.remarks[-1]
    assert not any(cell.runs for table in section.tables for row in table.rows for cell in row)
    assert set(PARTS) <= set(EXPERIMENTS)
