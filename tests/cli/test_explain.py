"""``ltga explain`` as a user types it."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from ltga.cli import main
from ltga.cli.app import app
from ltga.data import csbm, load_dataset, save_data
from ltga.train import Run, fit

SMALL = {"epochs": 2, "hidden_channels": 3, "heads": 2, "init": "paired"}


@pytest.fixture(scope="module")
def run() -> Run:
    return fit(csbm(num_nodes=60, snr=4), "frozen-q2.0", protocol=SMALL)


@pytest.fixture
def record(run: Run, tmp_path: Path) -> Path:
    return run.save(tmp_path / "runs")


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The one line on stderr of a command that must end with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["ltga", "explain", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_summary_files_and_page(run: Run, record: Path, tmp_path: Path) -> None:
    page, parquet, graphml = (tmp_path / name for name in ("page.html", "edges.parquet", "graph.graphml"))
    outputs = ["--page", str(page), "--parquet", str(parquet), "--graphml", str(graphml)]
    result = CliRunner().invoke(app, ["explain", str(record), "--node", "7", *outputs], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    accuracy = f"{100 * run.metrics['accuracy']:.1f} %"
    assert "q = 2.0 (frozen) on csbm" in result.output and accuracy in result.output
    frame = pd.read_parquet(parquet)
    heads = frame.groupby(["layer", "head"])["ignored"].mean()
    for share in heads:
        assert f"{100 * share:.1f} %" in result.output
    zeros = frame[~frame["self_loop"]].groupby("position")["ignored"].agg(["any", "all"]).sum()
    assert f"{zeros['any']:,} are ignored by some head and {zeros['all']:,} by every head" in result.output
    assert "Node 7: class" in result.output and "itself" in result.output
    assert page.read_text("utf-8").startswith("<!doctype html>") and graphml.stat().st_size > 0


def test_a_record_without_its_suffix_and_a_folder_with_one(record: Path) -> None:
    for name in (record.with_suffix(""), record.parent):
        assert CliRunner().invoke(app, ["explain", str(name)]).exit_code == 0


def test_your_own_graph_is_named_with_an_option(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(20, 4, generator=generator), y=torch.arange(20) % 2,
        edge_index=torch.randint(0, 20, (2, 60), generator=generator), class_names=["[red]a[/red]", "b"],
    )  # fmt: skip
    path = save_data(data, tmp_path / "mine.safetensors")
    record = fit(load_dataset(path), "frozen-q2.0", protocol=SMALL).save(tmp_path / "runs")
    result = CliRunner().invoke(app, ["explain", str(record), "--graph", str(path), "--node", "0"])
    assert result.exit_code == 0, result.output
    assert "[red]a[/red]" in result.output  # a name is not markup


def test_bad_input(record: Path, run: Run, tmp_path: Path, capsys, monkeypatch) -> None:
    def line(*arguments: str) -> str:
        return fails(list(arguments), capsys, monkeypatch)

    assert "no such record" in line(str(tmp_path / "nothing.json"))
    assert "--page: cannot write" in line(str(record), "--page", str(tmp_path / "no" / "page.html"))
    assert "node: got 60" in line(str(record), "--node", "60")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "RUN: " in line(str(empty)) and not list(empty.iterdir())
    gcn = fit(csbm(num_nodes=60, snr=4), "gcn", protocol=SMALL).save(tmp_path / "other")
    page = tmp_path / "page.html"
    assert "gcn has no attention" in line(str(gcn), "--page", str(page))
    both = str(tmp_path / "both.csv")
    assert "--parquet: both.csv: it is written as .parquet" in line(str(record), "--parquet", both)
    assert "--csv: both.txt: it is written as .csv" in line(str(record), "--csv", str(tmp_path / "both.txt"))
    assert "--convention: the run's own graph is read as it was" in line(str(record), "--convention", "directed")
    assert "not the graph of this run" in line(str(record), "--graph", "csbm:num_nodes=80")
    assert not page.exists()
