"""Runs as one tidy table, and tables as declared pivots of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ltga.study import EXPERIMENTS, Experiment
from ltga.study.experiment import grid, sweep
from ltga.study.paper import printed_tables as tables
from ltga.study.report.pivot import DATASET, METHOD, Measure, Pivot
from ltga.study.report.pivots import SWEEP
from ltga.study.report.run_table import (
    MEASURES,
    by_setting,
    complete_datasets,
    finished,
    mean_accuracies,
    on_common_seeds,
    run_table,
    synthetic_runs,
    tuned_runs,
)
from ltga.study.report.tables import PERCENT, THREE
from oracles.records import make_record

MINE = Experiment("mine", "Mine", "tab:mine", "this", grid(["texas", "gum-syntax"], ["gat", "ltga-head"], [1, 2]))
ACCURACY = Measure("accuracy", "accuracy", PERCENT)
RECORDS = [
    make_record("texas", "gat", 1, test=0.5),
    make_record("texas", "gat", 2, test=0.6),
    make_record("texas", "ltga-head", 2, test=0.7, q=1.5, zeros=0.25),
]


def test_a_row_per_run_that_is_wanted_with_what_varied_and_what_was_measured(study: Callable[..., Any]) -> None:
    runs = run_table(study(RECORDS), MINE)
    assert runs[["dataset", "method", "seed"]].values.tolist() == [
        [dataset, method, seed]
        for dataset in ("texas", "gum-syntax") for method in ("gat", "ltga-head") for seed in (1, 2)
    ]  # fmt: skip
    assert finished(runs)["id"].tolist() == [record["id"] for record in RECORDS]
    assert set(MEASURES) <= set(runs) and runs["homophily"].iloc[0] == pytest.approx(0.11, abs=0.01)
    (last,) = finished(runs).tail(1).to_dict("records")
    assert (last["accuracy"], last["q"], last["zeros"], last["num_layers"]) == (0.7, pytest.approx(1.5), 0.25, 2)
    assert runs["q"].isna().sum() == len(runs) - 1 and not any(runs["changed"])


def test_what_a_record_does_not_say_is_nan(study: Callable[..., Any]) -> None:
    record = make_record("texas", "gat", 1)
    record["metrics"]["test"] = {"accuracy": 0.5, "nll": None}
    record["attention"] = []
    (run,) = finished(run_table(study([record]), MINE)).to_dict("records")
    assert run["accuracy"] == 0.5 and all(pd.isna(run[name]) for name in ("nll", "ece", "zeros", "first_top", "q"))


def test_the_default_belongs_to_every_setting_that_is_swept(study: Callable[..., Any]) -> None:
    specs = (
        *sweep(["texas"], ["ltga-head"], [1], "prior", [0.5, 0.0]),
        *sweep(["texas"], ["ltga-head"], [1], "kappa", [5.0]),
    )
    both = grid(["texas"], ["ltga-head"], [1], prior=0.5, kappa=5.0)
    runs = by_setting(run_table(study([]), Experiment("s", "S", "l", "x", (*specs, *both))))
    assert runs[["setting", "value"]].values.tolist() == [
        ["prior", 0.0],
        ["prior", 0.5],
        ["kappa", 1.0],
        ["kappa", 5.0],
    ]
    assert by_setting(run_table(study([]), MINE)).empty


def test_only_seeds_that_all_have_compare(study: Callable[..., Any]) -> None:
    runs = finished(run_table(study(RECORDS), MINE))
    assert on_common_seeds(runs, "method")["id"].tolist() == [RECORDS[1]["id"], RECORDS[2]["id"]]
    assert complete_datasets(runs, ["gat"]) == ("texas",) and complete_datasets(runs, ["gat", "ltga-head"]) == ()
    assert complete_datasets(runs, ["gat"], without=["texas"]) == ()
    assert mean_accuracies(runs, ["gat"], ["texas"]).loc["texas", "gat"] == pytest.approx(0.55)


def test_synthetic_graphs_are_told_by_degree_and_signal(study: Callable[..., Any]) -> None:
    runs = synthetic_runs(study([]), EXPERIMENTS["synthetic"])
    assert runs["degree"].is_monotonic_increasing and runs["snr"].nunique() > 1 and runs["degree"].nunique() > 1


def test_a_tuned_row_has_the_runs_of_its_choice(study: Callable[..., Any]) -> None:
    made = [
        make_record("texas", method, seed, test=0.5, val=0.8 if method == "sparsemax" else 0.2)
        for method in ("entmax-1.2", "entmax-1.5", "sparsemax")
        for seed in (1, 2)
    ]
    runs = tuned_runs(study(made), EXPERIMENTS["entmax"])
    row = runs[(runs["method"] == "entmax-tuned") & (runs["dataset"] == "texas")]
    assert len(row) == 10 and set(row["chosen"]) == {"sparsemax"}
    assert finished(row)["id"].tolist() == [record["id"] for record in made[-2:]]
    assert finished(runs[(runs["method"] == "entmax-tuned") & (runs["dataset"] != "texas")]).empty


def test_a_pivot_has_a_row_per_key_and_a_column_per_measure(study: Callable[..., Any]) -> None:
    printed = pd.DataFrame([{"dataset": "texas", "method": "gat", "accuracy": "54.0±1.0"}])
    table = Pivot((DATASET, METHOD), (ACCURACY, Measure("q", "q", THREE)), "note", printed=printed)(
        study(RECORDS), MINE
    )
    assert [column.label for column in table.columns] == ["dataset", "method", "accuracy", "q"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["texas", "GAT", "55.0±7.1", "n/a"], ["texas", "LTGA-Head", "70.0", "1.500"],
        ["gum-syntax", "GAT", "", ""], ["gum-syntax", "LTGA-Head", "", ""],
    ]  # fmt: skip
    first, last = table.rows[0][2], table.rows[3][2]
    assert first.reference == "54.0±1.0" and first.difference == pytest.approx(1) and len(first.runs) == 2
    assert table.rows[1][2].partial and last.missing and last.stand_in == "roman-empire" and last.reference is None


def test_a_pivot_across_repeats_its_measures(study: Callable[..., Any]) -> None:
    table = Pivot((METHOD,), (ACCURACY,), "note", across="dataset")(study(RECORDS), MINE)
    heads = [(column.label, column.stand_in) for column in table.columns]
    assert heads == [("method", None), ("texas accuracy", None), ("gum-syntax accuracy", "roman-empire")]
    assert [row[1].text for row in table.rows] == ["55.0±7.1", "70.0"]


def test_facts_and_spreads(study: Callable[..., Any]) -> None:
    measures = (
        Measure("homophily", "homophily", THREE, shows="fact"),
        Measure("s.d.", "accuracy", THREE, shows="spread"),
    )
    texas, other = Pivot((DATASET,), measures, "note")(study(RECORDS[:2]), MINE).rows
    assert texas[1].text and not texas[1].runs and texas[2].number == pytest.approx(0.0707, abs=1e-4)
    assert other[2].text == "" and other[2].missing


def test_what_one_table_shows_is_a_reference_for_another(study: Callable[..., Any]) -> None:
    shown = Pivot((METHOD,), (ACCURACY,), "note").shown(run_table(study(RECORDS), MINE))
    assert shown.to_dict("records") == [
        {"method": "gat", "accuracy": "55.0±7.1"}, {"method": "ltga-head", "accuracy": "70.0"}
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ACCURACY", "GRANULARITY_Q", "Q_ANALYSIS", "SWEEPS", "DEPTH", "PRUNED_EDGES", "GATE"])
def test_the_papers_tables_have_the_shape_of_run_tables(name: str) -> None:
    table = getattr(tables, name)
    keys = [key for key in ("dataset", "method", "setting", "value", "num_layers", "layer") if key in table]
    assert keys and not table.duplicated(keys).any()
    texts = table.drop(columns=keys).to_numpy().ravel()
    assert all(isinstance(text, str) or pd.isna(text) for text in texts)


def test_a_sweep_finds_what_the_paper_prints_at_its_value(study: Callable[..., Any]) -> None:
    table = SWEEP(study([]), EXPERIMENTS["sweep-cross"])
    printed = {(row[0].text, row[1].text, row[2].text): [cell.reference for cell in row[3:]] for row in table.rows}
    assert printed["amazon-ratings", "κ", "5"] == ["42.4±0.8", "1.098", None]
    assert printed["cora", "T_w", "0"] == ["81.1±0.8", "1.014", None]
    assert printed["cora", "T_w", "50"] == ["81.1±0.8", "1.000", None]


def test_a_run_table_is_made_once_for_a_study(study: Callable[..., Any]) -> None:
    found = study(RECORDS)
    assert run_table(found, MINE) is run_table(found, MINE)
    assert run_table(study([]), MINE) is not run_table(found, MINE)
