"""Numbers that were not made here say so, in every form a table has."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ltga.study import EXPERIMENTS, Store
from ltga.study.archive import unpack_archive, write_archive
from ltga.study.report import Study, write_report
from ltga.study.report.sections import make_section
from oracles.records import make_record, write_records

NAME = "old_records.jsonl.gz"
SENTENCE = f"2 of 4 runs imported from {NAME}."


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """GATv2 imported, GAT made here."""
    write_archive(tmp_path / NAME, [make_record(method="gatv2", seed=seed, test=0.5 + seed / 10) for seed in (1, 2)])
    write_records(tmp_path / "store", [make_record(method="gat", seed=seed) for seed in (1, 2)])
    assert unpack_archive(tmp_path / NAME, Store(tmp_path / "store")) == (2, 0)
    return tmp_path / "store"


def test_every_form_of_a_table_says_it(store: Path, tmp_path: Path) -> None:
    written = write_report([EXPERIMENTS["headline"]], store, tmp_path / "out", tmp_path / "no data")
    assert (written.runs, written.imported) == (4, 2)
    tables = tmp_path / "out" / "tables"
    for name in ("headline", "headline-tests"):
        assert SENTENCE.replace("_", r"\_") in (tables / f"{name}.md").read_text()
        assert SENTENCE.replace("_", r"\_") in (tables / f"{name}.tex").read_text()
    rows = {row[""] if "" in row else row["method"]: row for row in _rows(tables / "headline.csv")}
    assert rows["GATv2"]["imported"] == f"2 of 2 runs imported from {NAME}." and rows["GAT"]["imported"] == ""
    assert {row["imported"] for row in _rows(tables / "headline-tests.csv")} == {SENTENCE}
    behind = _rows(tables / "headline.runs.csv")
    assert {row["row"]: row["imported"] for row in behind if row["column"] == "texas"} == {"GAT": "", "GATv2": NAME}
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count(SENTENCE) == 3 and f'"{NAME}"' in page  # the section, two tables, and the runs behind a cell
    assert SENTENCE.replace("_", r"\_") in (tmp_path / "out" / "README.md").read_text()


def test_a_report_straight_from_an_archive_says_so_too(store: Path, tmp_path: Path) -> None:
    section = make_section(Study(tmp_path / NAME, tmp_path / "no data"), EXPERIMENTS["q-trajectories"])
    assert section.imported == ""  # none of its runs is in there
    section = make_section(Study(tmp_path / NAME, tmp_path / "no data"), EXPERIMENTS["headline"])
    assert all(table.imported == f"2 of 2 runs imported from {NAME}." for table in section.tables)


def test_the_table_of_tests_counts_the_runs_of_both_initialisations(tmp_path: Path) -> None:
    made = [
        make_record(method=m, seed=s, init=i)
        for m in ("gatv2", "ltga-edge")
        for s in (1, 2)
        for i in ("paper", "paired")
    ]
    write_archive(tmp_path / NAME, made)
    section = make_section(Study(tmp_path / NAME, tmp_path / "no data"), EXPERIMENTS["headline"])
    tests = next(table for table in section.tables if table.name == "headline-tests")
    assert tests.imported == f"8 of 8 runs imported from {NAME}."


def test_runs_made_here_say_nothing(tmp_path: Path) -> None:
    write_records(tmp_path / "store", [make_record(method="gat", seed=seed) for seed in (1, 2)])
    write_report([EXPERIMENTS["headline"]], tmp_path / "store", tmp_path / "out", tmp_path / "no data")
    for path in (tmp_path / "out").rglob("*.md"):
        assert "imported" not in path.read_text()
    assert "imported" not in (tmp_path / "out" / "tables" / "headline.csv").read_text()


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
