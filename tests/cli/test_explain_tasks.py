"""``ltga explain`` and ``ltga train --page`` on every task, as a user types it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ltga
from fixtures.task_runs import DATA, QUICK, shaken
from ltga.cli import main
from ltga.cli.app import app

WIDE = {"COLUMNS": "200"}


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env=WIDE)
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of graphs, and the record of a run on it."""
    folder = tmp_path_factory.mktemp("own") / "rings"
    folder.mkdir()
    names = [f"ring-{number}" for number in range(40)]
    rng = np.random.default_rng(0)
    pd.DataFrame({"graph_id": names, "label": ["odd", "even"] * 20}).to_csv(folder / "graphs.csv", index=False)
    nodes = [{"graph_id": name, "id": f"bead {at}", "size": 3 * rng.normal()} for at in range(4) for name in names]
    pd.DataFrame(nodes).to_csv(folder / "nodes.csv", index=False)
    around = [(f"bead {at}", f"bead {(at + 1) % 4}") for at in range(4)]
    edges = [{"graph_id": name, "source": one, "target": other} for name in names for one, other in around]
    pd.DataFrame(edges).to_csv(folder / "edges.csv", index=False)
    return folder, shaken(ltga.load_dataset(folder)).save(folder.parent / "runs")


def test_a_graph_of_many(rings: tuple[Path, Path], tmp_path: Path) -> None:
    page, table = tmp_path / "page.html", tmp_path / "edges.csv"
    shown = output("explain", str(rings[1]), "--item", "ring-7", "--page", str(page), "--csv", str(table))
    assert "graph classification, test accuracy" in shown
    assert "Graph ring-7: target even" in shown and "Graphs of which most is ignored" in shown
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert "bead 3" in shown and "bead 3" in page.read_text("utf-8")
    frame = pd.read_csv(table)
    assert set(frame["graph"]) == {f"ring-{number}" for number in range(40)}
    apart = frame[~frame["self_loop"]]
    beads = apart[["source_name", "target_name"]].apply(lambda column: column.str.removeprefix("bead ").astype(int))
    assert ((beads["source_name"] + 1) % 4 == beads["target_name"]).all()  # as the table of edges has them


def test_a_pair_of_nodes_by_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    people = [f"p{number}" for number in range(60)]
    frame = {"id": people, "label": ["a", "b"] * 30, "age": rng.normal(size=60), "pay": rng.normal(size=60)}
    folder = tmp_path / "people"
    folder.mkdir()
    pd.DataFrame(frame).to_csv(folder / "nodes.csv", index=False)
    ends = rng.choice(people, (200, 2))
    ends = pd.DataFrame(ends[ends[:, 0] < ends[:, 1]], columns=["source", "target"]).drop_duplicates()
    ends.to_csv(folder / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)
    small = [part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")]
    links = ["--task", "link", "--convention", "undirected, once"]
    train = ["train", "people/", *links, "--method", "ltga-head", "--seeds", "1"]
    assert "Open pairs.html" in output(*train, *small, "--page", "pairs.html")
    (record,) = Path("runs").glob("*.json")
    shown = output("explain", record.stem[:8], "--item", "p3,p4", "--parquet", "all.parquet")
    assert "Nodes p3 and p4:" in shown and "probability of an edge 0." in shown and "ranked last" in shown
    assert set(pd.read_parquet("all.parquet")["source_id"]) <= set(people)
    assert "Node p5" in output("explain", record.stem[:8], "--node", "p5")
    assert "p5" in Path("pairs.html").read_text("utf-8")


def test_bad_input(rings: tuple[Path, Path], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def line(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["ltga", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        (said,) = capsys.readouterr().err.strip().splitlines()
        return str(said)

    page = tmp_path / "page.html"
    assert "graph: rings has no graph 'ring-70'" in line(
        "explain", str(rings[1]), "--item", "ring-70", "--page", str(page)
    )
    assert "--csv: cannot write" in line("explain", str(rings[1]), "--csv", str(tmp_path / "no" / "edges.csv"))
    data = DATA["links"]()
    record = shaken(data, "link").save(tmp_path / "runs")
    assert "pass the data itself" in line("explain", str(record), "--page", str(page))
    assert "is no folder with graphs.csv" in line("explain", str(rings[1]), "--graph", "csbm:num_nodes=60")
    assert not page.exists()
