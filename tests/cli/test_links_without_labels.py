"""Links of graphs that have no labels: from the command line, from Python, and never taken for classes."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

import ltga
from ltga.cli.app import app
from ltga.data import Preparation, load_dataset
from ltga.errors import InputError

QUICK = {"epochs": 1, "hidden_channels": 4, "heads": 1}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "les.graphml"
    nx.write_graphml(nx.les_miserables_graph(), path)
    return path


def test_links_need_no_labels(file: Path) -> None:
    with pytest.raises(Exception, match=r"column 'label' is missing.*links need none \(predict=links\)"):
        ltga.fit(file)
    run = ltga.fit(file, "gatv2", task="link", protocol=QUICK)
    assert run.task == "link prediction" and 0 <= run.metrics["mrr"] <= 1


def test_what_was_read_for_links_is_not_classified(file: Path) -> None:
    graph = load_dataset(file, preparation=Preparation(predict="links"))
    with pytest.raises(InputError, match="was read for its links"):
        ltga.fit(graph, "gatv2", protocol=QUICK)


def test_check_and_train_say_links(file: Path, tmp_path: Path) -> None:
    checked = CliRunner().invoke(app, ["check", str(file), "--prepare", "predict=links"])
    assert checked.exit_code == 0 and "for its links" in checked.output and "classes" not in checked.output
    words = [
        "train",
        str(file),
        "--prepare",
        "predict=links",
        "--method",
        "gatv2",
        "--seeds",
        "1",
        "--out",
        str(tmp_path),
    ]
    trained = CliRunner().invoke(app, [*words, *(f"--set={key}={value}" for key, value in QUICK.items())])
    assert trained.exit_code == 0 and "common neighbours" in trained.output, trained.output


@pytest.mark.parametrize(
    ("count", "structure", "said"),
    [
        (3, "auto", "3 edges are too few to hold out 0.05 and 0.1 of them; give more"),
        (40, "laplacian-4", "held out to be predicted; choose other features for links, for example structure="),
    ],
)
def test_check_refuses_what_training_refuses(count: int, structure: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("source,target\n" + "".join(f"n{at},n{at + 1}\n" for at in range(count)))
    words = [str(path), "--prepare", "predict=links", "--prepare", f"structure={structure}"]
    for command in (["check"], ["check", "--json"], ["train", "--task", "link"]):
        outcome = CliRunner().invoke(app, [command[0], *words, *command[1:]])
        assert outcome.exit_code != 0 and said in str(outcome.exception), outcome.output
        assert "can be trained on" not in outcome.output
