"""`ltga check` on what is no single graph of classes, and on a folder named without a slash."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from ltga.cli.app import app
from ltga.data import Preparation, load_dataset
from ltga.data.dataset_names import looks_like_a_path
from ltga.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "many"
    made.mkdir()
    names = [f"g{at}" for at in range(40)]
    pd.DataFrame({"graph_id": names, "label": ["ring", "chain"] * 20}).to_csv(made / "graphs.csv", index=False)
    nodes = [{"graph_id": name, "id": at, "size": at} for name in names for at in range(3)]
    edges = [{"graph_id": name, "source": at, "target": at + 1} for name in names for at in range(2)]
    pd.DataFrame(nodes).to_csv(made / "nodes.csv", index=False)
    pd.DataFrame(edges).to_csv(made / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return made


def test_many_graphs_are_checked(folder: Path) -> None:
    said = CliRunner().invoke(app, ["check", "many"])  # without a slash
    assert said.exit_code == 0, said.output
    assert "graph classification" in said.output and "graphs 40" in said.output and "nodes 120" in said.output
    summary = json.loads(CliRunner().invoke(app, ["check", "many/", "--json"]).output)["summary"]
    assert summary["targets"] == ["chain", "ring"] and summary["train"] + summary["val"] + summary["test"] == 40


def test_options_that_would_do_nothing_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="links are predicted in one graph"):
        load_dataset(folder, preparation=Preparation(predict="links"))
    with pytest.raises(InputError, match="convention: got 'sideways'"):
        load_dataset(folder, convention="sideways")


def test_a_known_dataset_wins_over_a_folder_of_its_name(folder: Path) -> None:
    Path("cora").mkdir()
    assert looks_like_a_path("many") and not looks_like_a_path("cora") and not looks_like_a_path("manny")
