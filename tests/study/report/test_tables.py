"""Cells, marks and the three formats, with strings that would like to be markup."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from ltga.study.report.render import FORMATS, escape_latex, runs_to_csv, to_csv, to_latex, to_markdown
from ltga.study.report.tables import PERCENT, Behind, Cell, Column, Table, mark_best, mean_cell

HOSTILE = "<script>alert(1)</script> | _x_ & \\input{/etc/passwd} $x$ % =1+1\n## oops"


def runs(*values: float) -> list[Behind]:
    return [Behind({"id": f"run{k}", "config": {"seed": k}}, value) for k, value in enumerate(values, start=1)]


def states(cell: Cell) -> list[str]:
    return [name for name in ("missing", "partial", "best", "same") if getattr(cell, name)]


def test_a_cell_is_the_mean_and_sample_deviation_of_its_runs() -> None:
    values = [0.5, 0.61, 0.57, 0.4]
    cell = mean_cell(runs(*values), 4, PERCENT, reference="50.0±1.0")
    assert cell.number == pytest.approx(100 * np.mean(values))
    assert cell.text == f"{100 * np.mean(values):.1f}±{100 * np.std(values, ddof=1):.1f}"
    assert cell.difference == pytest.approx(100 * np.mean(values) - 50)
    assert [run.value for run in cell.runs] == pytest.approx([100 * value for value in values])
    assert states(cell) == []


def test_what_is_missing_or_partial_says_so_and_has_no_number() -> None:
    missing = mean_cell([], 10, PERCENT, reference="50.0±1.0", stand_in="roman-empire")
    assert states(missing) == ["missing"] and missing.stand_in == "roman-empire" and missing.shown == "not run"
    assert missing.number is None and missing.difference is None
    assert states(mean_cell(runs(0.5, 0.6), 10, PERCENT)) == ["partial"]
    assert mean_cell(runs(0.5), 1, PERCENT).text == "50.0"  # no spread of a single run
    assert states(mean_cell(runs(0.5, 0.6), 2, PERCENT, "55.0±7.1")) == ["same"]


def test_best_is_marked_among_equals_only() -> None:
    rows = [(mean_cell(runs(*values), 2, PERCENT),) for values in ((0.5, 0.6), (0.55, 0.55), (0.9,), (0.1, 0.2), ())]
    assert [row[0].best for row in mark_best(rows, 0)] == [True, True, False, False, False]
    assert [row[0].best for row in mark_best(rows, 0, lowest=True)] == [False, False, False, True, False]
    assert not any(row[0].best for row in mark_best(rows[2:3], 0))


@pytest.fixture
def table() -> Table:
    best = Cell(**{**mean_cell(runs(0.5, 0.7), 10, PERCENT, "61.0±1.0").__dict__, "best": True})
    rows = (
        (Cell(HOSTILE, stand_in="roman-empire"), best),
        (Cell("b"), mean_cell([], 10, PERCENT, "1.0±0.1")),
    )
    columns = (Column("method", numeric=False), Column(HOSTILE))
    return Table("name", HOSTILE, columns, rows, note=HOSTILE, warnings=(HOSTILE,))


def test_markdown_is_one_table_without_markup_of_others(table: Table) -> None:
    text = to_markdown(table)
    assert "<script>" not in text and "\n## oops" not in text and "(stand-in)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 and all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
    assert "**60.0±14.1** (2 of 10 runs; paper 61.0±1.0, −1.0)" in rows[2]
    assert "*not run* (paper 1.0±0.1)" in rows[3]


def test_csv_reads_back_and_is_no_formula(table: Table) -> None:
    lines = list(csv.reader(io.StringIO(to_csv(table))))
    assert [len(line) for line in lines] == [4, 4, 4]
    assert lines[1][1:] == ["60.0±14.1", "61.0±1.0", "-1"]
    assert lines[2][1:] == ["not run", "1.0±0.1", ""]
    behind = list(csv.DictReader(io.StringIO(runs_to_csv(table))))
    assert [(line["seed"], line["value"], line["run"]) for line in behind] == [("1", "50", "run1"), ("2", "70", "run2")]
    formula = Table("n", "t", (Column("=cmd|' /C calc'!A0", numeric=False),), ((Cell("@SUM(1)"),),))
    assert list(csv.reader(io.StringIO(to_csv(formula)))) == [["'=cmd|' /C calc'!A0"], ["'@SUM(1)"]]


def test_latex_commands_in_names_are_text(table: Table) -> None:
    text = to_latex(table)
    assert r"\input" not in text and r"\textbackslash{}input\{/etc/passwd\}" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].strip().splitlines()[1:]
    assert len(body) == 2 and all(len(re.findall(r"(?<!\\)&", line)) == 1 and line.endswith(r"\\") for line in body)
    assert re.sub(r"\\[#$%&_{}]|\\[a-z]+\{\}|\$[-\\a-z^0-9]+\$", "", escape_latex(HOSTILE)).isascii()
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


def test_every_format_takes_an_empty_table() -> None:
    empty = Table("n", "t", (Column("a"),), (), warnings=("no run yet",))
    assert all(isinstance(render(empty), str) for render in FORMATS.values())
