"""What needs no network answers before torch is imported: typos, what is not there, lists, and tables to be mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.graphs import QUICK, write_tables
from ltga import errors
from ltga.cli.early_checks import parse_fanout, parse_seconds
from ltga.errors import InputError

# Several commands in one process: whichever imports something of weight is named, and so is what it imported.
PROGRAM = """
import json, sys
from ltga.cli import main

for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as ended:
        wanted = 0 if words[0] == "runs" else 2
        assert ended.code == wanted, (words, ended.code)
    heavy = {"torch", "torch_geometric", "numba", "sklearn", "scipy.stats"} & set(sys.modules)
    assert not heavy, (words, heavy)
"""


def without_torch(folder: Path, *commands: list[str]) -> str:
    here = {**os.environ, "PYTHONPATH": str(Path(errors.__file__).parents[1])}
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    ended = subprocess.run(program, cwd=folder, env=here, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_typos_and_what_is_not_there_do_not_wait_for_torch(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables")
    said = without_torch(
        tmp_path,
        ["train", "cora", "--prepare", "label=lable"],
        ["train", "tables/", "--prepare", "lable=x"],
        ["train", "cora", "--fanout", "1,x"],
        ["train", "cora", "--fanout", "3,2,1"],
        ["train", "tables/", "--convention", "x"],
        ["train", "cora", "--device", "gpu"],
        ["train", "cora", "--set", "epoch=3"],
        ["train", "cora", "--task", "link", "--set", "each=few"],
        ["train", "mutag", "--method", "gatvv2"],
        ["train", "nope/"],
        ["train", "cora", "--page", "x.pdf"],
        ["train", "cora", "--checkpoint-every", "soon"],
        ["check", "nope/"],
        ["tune", "--search", "lrr=1..2"],
        ["tune", "--timeout", "-1"],
        ["explain", "zzzz"],
        ["predict", "zzzz"],
        ["convert", "nope", "out"],
        ["convert", "cora", "out", "--features", "float8"],
    )
    assert len(said.splitlines()) == said.count("error: ") == 19


def test_tables_that_a_person_must_mend_do_not_wait_for_torch(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", edges="from,to\n1,2\n")
    assert "column 'source' is missing" in without_torch(tmp_path, ["check", "tables/"])


def test_runs_are_listed_without_torch(ltga: Any, tmp_path: Path) -> None:
    write_tables(tmp_path / "tables")
    arguments = ("--method", "gatv2", "--seeds", 2, "--prepare", "convention=directed", *QUICK)
    assert ltga("train", "tables/", *arguments).code == 0
    ids = sorted(path.stem[:8] for path in (tmp_path / "runs").glob("*.json"))
    shown = without_torch(tmp_path, ["runs"], ["runs", *ids], ["runs", "runs", ids[0]], ["runs", ids[0], "--json"])
    assert all(shown.count(run) >= 2 for run in ids)


@pytest.mark.parametrize("text", ["", "a", "10,", "1.5"])
def test_a_fanout_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--fanout: expected numbers like 10 or 15,10"):
        parse_fanout(text)


@pytest.mark.parametrize("text", ["soon", "3 days", "-1", "nan"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--checkpoint-every: expected a time like 90s, 3min or 1h"):
        parse_seconds(text)
