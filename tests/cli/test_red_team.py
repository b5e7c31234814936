"""What a red team met at the command line: each of its questions has an answer in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cli.graphs import QUICK, write_collection, write_tables
from ltga.data import open_graph_folder

FAST = ("--method", "ltga-head", "--seeds", "1", *QUICK)


def people(**columns: Any) -> pd.DataFrame:
    base = {"id": [f"n{at}" for at in range(24)], "label": [at % 2 for at in range(24)], "age": range(24)}
    return pd.DataFrame({**base, **columns})


def write(folder: Path, nodes: pd.DataFrame, edges: str | None = None) -> str:
    return f"{write_tables(folder, edges, nodes.to_csv(index=False))}/"


def test_convert_takes_text_with_prepare_and_says_so_without(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write(tmp_path / "people", people(town=["Rome", "Oslo"] * 12))
    refused = ltga("convert", folder, "out", "-q")
    assert refused.code == 2 and "'Rome', expected a finite number; choose --prepare categories=auto" in refused.err
    assert not Path("out").exists()
    done = ltga("convert", folder, "out", "-q", "--prepare", "categories=one-hot")
    assert done.code == 0, done.err
    assert open_graph_folder("out").num_features == 3  # age and two towns
    wrong = ltga("convert", folder, "again", "--prepare", "category=one-hot")
    assert wrong.code == 2 and "--prepare: there is no option 'category'" in wrong.err


def test_a_new_category_is_an_error_or_other_by_choice(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write(tmp_path / "people", people(town=["Rome", "Oslo"] * 12))
    assert ltga("train", folder, "-q", *FAST).code == 0
    run = next(Path("runs").glob("*.json"))
    other = write(tmp_path / "other", people(town=["Rome", "Oslo", "Bonn"] * 8))
    refused = ltga("predict", run, other)
    assert refused.code == 2 and "'Bonn', which was not there before" in refused.err
    assert ltga("predict", run, other, "--new-category", "other").code == 0
    assert len(pd.read_csv("predictions.csv")) == 24
    assert ltga("predict", run, other, "--new-category", "error").code == 2
    typo = ltga("predict", run, other, "--new-category", "none")
    assert typo.code == 2 and "--new-category: got 'none'; use 'error' or 'other'" in typo.err


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (
            [f"{at + 1}.01.2020" for at in range(24)],
            "choose date_format=%d.%m.%Y ; if not, mend",
        ),  # else a version number
        ([f"1/{at + 1}/2020" for at in range(24)], "choose date_format=%m/%d/%Y to"),
        ([f"{at % 12 + 1}/1/2020" for at in range(24)], "choose date_format=%d/%m/%Y or date_format=%m/%d/%Y to"),
    ],
)
def test_dates_in_other_orders_are_told(ltga: Callable[..., Any], tmp_path: Path, cells: list[str], hint: str) -> None:
    folder = write(tmp_path / "people", people(since=cells))
    outcome = ltga("check", folder)
    assert hint.replace(" ;", ";") in outcome.out, outcome.out
    assert outcome.code == (2 if "if not" in hint else 0)
    taken = ltga("check", folder, "--prepare", f"date_format={hint.split()[1].partition('=')[2]}")
    assert "taken as days since 1970" in taken.out and "look like dates" not in taken.out


def test_empty_text_cells_and_contradictions_are_told(ltga: Callable[..., Any], tmp_path: Path) -> None:
    nodes = people(town=["Rome", "", "Oslo"] * 8)
    twice = pd.concat([nodes, pd.DataFrame({"id": ["n3", "n4"], "label": [0, 0], "age": [3, 4], "town": ["", "Rome"]})])
    edges = "source,target,weight\nn1,n2,3\nn2,n3,1\nn1,n2,5\nn2,n3,1\n"
    outcome = ltga("check", write(tmp_path / "people", twice, edges), "--prepare", "repeated_ids=first")
    assert outcome.code == 0, outcome.err
    lines = {line for line in outcome.out.splitlines() if "town is empty" in line}
    assert len(lines) == 1 and " 8 " in lines.pop() and "a category of its own" in outcome.out
    row = next(line for line in outcome.out.splitlines() if "has two different labels" in line)
    assert "id 'n3'" in row and " 1 " in row and " 25 " in row  # n4 is labelled 0 both times
    row = next(line for line in outcome.out.splitlines() if "is not what an earlier row says" in line)
    assert "'n1' to 'n2'" in row and " 3 " in row


def test_alpha_is_not_called_q(ltga: Callable[..., Any], tmp_path: Path) -> None:
    outcome = ltga(
        "train", write(tmp_path / "people", people()), "--method", "entmax-head,ltga-head", "--seeds", "1", *QUICK
    )
    lines = [line for line in outcome.err.splitlines() if ", seed 1:" in line]
    assert ", α " in lines[0] and ", q " not in lines[0] and ", q " in lines[1]


def test_one_class_in_the_test_part_is_said_and_not_a_lost_comparison(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write(tmp_path / "people", people(label=["a"] * 23 + ["b"]))
    done = ltga("train", folder, "-q", *FAST)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "There is no roc_auc where the test part has one class only" in said and "does not beat" not in said
    pytest.importorskip("optuna")
    refused = ltga("tune", folder, "-q", "--trials", "1", "--method", "ltga-head", *QUICK)
    assert refused.code == 2 and "the validation part has no roc_auc" in refused.err


def test_no_label_at_all_is_written_as_it_is_read(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = write(tmp_path / "people", people(red=[1] + [0] * 11 + [1] + [0] * 11, blue=[0, 1] + [0] * 22))
    prepare = ("--prepare", "label=red,blue")
    assert ltga("train", folder, "-q", *prepare, *FAST[:4], "--set", "epochs=40").code == 0
    record = next(Path("runs").glob("*.json"))
    assert ltga("predict", record, "--out", "out.csv").code == 0
    found = pd.read_csv("out.csv", keep_default_na=False)
    none = (found["p_red"] <= 0.5) & (found["p_blue"] <= 0.5)
    assert none.any() and set(found["predicted"][none]) == {";"}


def test_faults_are_named_once(ltga: Callable[..., Any], tmp_path: Path) -> None:
    wrong = ltga("check", write(tmp_path / "people", people()), "--prepare", "structure=degre")
    assert wrong.code == 2 and "--prepare: structure: no feature is called 'degre'" in wrong.err
    many = write_collection(tmp_path / "many")
    graphs = many / "graphs.csv"
    graphs.write_text(graphs.read_text().replace("graph_id", "graph"))
    assert "column 'graph_id' is missing; found graph, label; rename one, or add it" in ltga("check", many).err


def test_edges_alone_are_told_how_they_can_be_read(ltga: Callable[..., Any], tmp_path: Path) -> None:
    folder = Path(write(tmp_path / "people", people()))
    (folder / "nodes.csv").unlink()
    refused = ltga("check", folder)
    assert refused.code == 2 and "are a file of another name, calls.csv for example" in refused.err
    (folder / "edges.csv").rename(tmp_path / "calls.csv")
    assert ltga("check", tmp_path / "calls.csv", "--prepare", "predict=links").code == 0
