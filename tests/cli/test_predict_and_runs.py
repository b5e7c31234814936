"""``ltga predict`` and ``ltga runs``: from a folder of tables to predictions with people's own ids."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.graphs import write_collection
from ltga.data import MendedWarning, Preparation, load_dataset
from ltga.errors import InputError
from ltga.train import load_run

QUICK = ("--set", "epochs=3", "--set", "hidden_channels=4", "--set", "heads=2", "--set", "backend=torch")


def write_customers(folder: Path, count: int = 60, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    folder.mkdir()
    ids = [f"c{number:03d}" for number in range(count)]
    label = np.where(rng.random(count) < 0.5, "yes", "no")
    nodes = pd.DataFrame(
        {"id": ids, "label": label, "income": rng.normal(40_000, 50_000, count), "town": rng.choice(["a", "b"], count)}
    )
    nodes.loc[::4, "label"] = None
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges = pd.DataFrame({"source": rng.choice(ids, 150), "target": rng.choice(ids, 150)}).query("source != target")
    edges.to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture
def trained(ltga: Any, tmp_path: Path) -> tuple[Path, Path]:
    graph = write_customers(tmp_path / "customers")
    outcome = ltga("train", f"{graph}/", "--method", "ltga-head", "--seeds", 1, "--convention", "undirected, once",
                   "--out", tmp_path / "runs", *QUICK)  # fmt: skip
    assert outcome.code == 0, outcome.err
    return graph, tmp_path / "runs"


def test_predictions_have_peoples_ids_and_are_those_of_the_run(ltga: Any, tmp_path: Path, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    out = tmp_path / "p.csv"
    outcome = ltga("predict", record.stem[:6], "--runs", runs, "--out", out)
    assert outcome.code == 0, outcome.err
    frame = pd.read_csv(out)
    assert frame["node"].tolist() == [f"c{number:03d}" for number in range(60)]
    run = load_run(record)
    np.testing.assert_allclose(frame[["p_no", "p_yes"]], np.exp(run.arrays["log_probs"]), atol=1e-5)
    expected = np.array(["no", "yes"])[run.arrays["log_probs"].argmax(1)]
    assert frame["predicted"].tolist() == expected.tolist()
    assert np.allclose(frame[["p_no", "p_yes"]].sum(1), 1)
    truth = pd.read_csv(trained[0] / "nodes.csv", keep_default_na=False)["label"]
    assert list(frame.columns) == ["node", "predicted", "p_no", "p_yes", "label", "part"]
    assert frame["label"].fillna("").tolist() == truth.tolist()
    assert (frame["part"].isna() == frame["label"].isna()).all()
    tested = frame[frame["part"] == "test"]
    assert (tested["label"] == tested["predicted"]).mean() == pytest.approx(run.metrics["accuracy"])


def test_labels_of_another_graph_are_beside_what_is_predicted(ltga: Any, tmp_path: Path, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    other = write_customers(tmp_path / "others", 30, seed=7)
    assert ltga("predict", record, f"{other}/", "--out", tmp_path / "p.csv").code == 0
    frame = pd.read_csv(tmp_path / "p.csv")
    assert "part" not in frame and frame["label"].isna().sum() == 8  # every fourth is not known


def test_another_graph_is_prepared_as_the_first_was(ltga: Any, tmp_path: Path, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    other = write_customers(tmp_path / "others", 30, seed=7)
    nodes = pd.read_csv(other / "nodes.csv").drop(columns="label")  # nobody knows their labels
    nodes.to_csv(other / "nodes.csv", index=False)
    outcome = ltga("predict", record, f"{other}/", "--out", tmp_path / "p.parquet")
    assert outcome.code == 0, outcome.err
    frame = pd.read_parquet(tmp_path / "p.parquet")
    assert len(frame) == 30 and "label" not in frame


def test_explain_opens_the_run_of_an_undirected_table_graph(ltga: Any, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    outcome = ltga("explain", record, "--node", "c003")
    assert outcome.code == 0, outcome.err


def test_runs_are_listed_compared_and_deleted(ltga: Any, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    rows = json.loads(ltga("runs", runs, "--json").out)
    assert [row["id"] for row in rows] == [record.stem]
    expected = {"epochs": 3, "hidden_channels": 4, "heads": 2, "backend": "torch"}
    assert rows[0]["protocol"] == "recommended" and rows[0]["settings"] == expected
    assert record.stem[:8] in ltga("runs", runs, record.stem[:5]).out
    for name in (f"notes-{record.stem[:8]}.html", f"mine-{record.stem[:7]}.html"):
        (runs / name).write_text("of somebody else")
    assert len(list(runs.glob("*.html"))) == 3
    outcome = ltga("runs", runs, record.stem[:5], "--delete")
    assert outcome.code == 0 and list(runs.glob(f"{record.stem}*")) == []
    assert sorted(page.name[:5] for page in runs.glob("*.html")) == ["mine-", "notes"]
    assert f"deleted its page customers-ltga-head-{record.stem[:8]}.html" in " ".join(outcome.out.split())


def test_bad_input(ltga: Any, tmp_path: Path, trained: Any) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    for arguments, message in [
        (("predict", "zzzz", "--runs", runs), "no run in .* begins with 'zzzz'"),
        (
            ("predict", record, "--out", tmp_path / "p.xlsx"),
            "--out: p.xlsx: predictions are written as .csv",
        ),
        (("predict", record, tmp_path / "nowhere.csv"), "nowhere.csv"),
        (("runs", tmp_path / "nowhere"), "there is no folder"),
        (("runs", runs, "--delete"), "say which runs"),
    ]:
        outcome = ltga(*arguments)
        assert outcome.code == 2 and len(outcome.err.strip().splitlines()) == 1, outcome.err
        assert re.search(message, outcome.err), outcome.err
    assert not (tmp_path / "p.xlsx").exists()


def test_a_run_is_short_in_a_notebook(trained: Any) -> None:
    _, runs = trained
    run = load_run(next(runs.glob("*.json")))
    assert len(repr(run)) < 200 and "ltga-head" in repr(run)
    assert run._repr_html_().startswith("<table>") and "customers" in run._repr_html_()
    assert len(run.plot().axes) == 5  # loss, index, confusion and its colours, calibration


def test_python_gives_the_table_that_the_command_writes(
    ltga: Any, tmp_path: Path, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    other = write_customers(tmp_path / "others", 30, seed=7)
    assert ltga("predict", record, f"{other}/", "--out", tmp_path / "p.csv").code == 0
    monkeypatch.chdir(tmp_path)
    for short in (record.stem[:8], f"runs/{record.stem[:8]}"):
        frame = load_run(short).predict_table(f"{other}/")
        pd.testing.assert_frame_equal(frame, pd.read_csv(tmp_path / "p.csv"), check_dtype=False)


def test_tables_prepared_by_what_is_in_them_are_not_predicted_on(tmp_path: Path, trained: Any) -> None:
    graph, runs = trained
    run = load_run(next(runs.glob("*.json")))
    other = write_customers(tmp_path / "others", 30, seed=7)
    scaled_anew = load_dataset(f"{other}/", convention="undirected, once")
    for ask in (run.predict, run.predict_proba, run.predict_table):
        with pytest.raises(InputError, match="give their path to"):
            ask(scaled_anew)
    own = load_dataset(f"{graph}/", convention="undirected, once")
    assert run.predict(own).equal(run.predict_proba(own).argmax(1))
    assert run.predict_table(own)["node"].tolist() == list(own.node_ids)
    with pytest.raises(InputError, match="predict_table takes a path"):
        run.predict(f"{other}/")


def test_a_short_id_needs_no_folder(ltga: Any, tmp_path: Path, trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, runs = trained
    (record,) = runs.glob("*.json")
    monkeypatch.chdir(tmp_path)
    (row,) = json.loads(ltga("runs", record.stem[:5], "--json").out)
    assert row["id"] == record.stem
    assert "there is no folder nofolder" in ltga("runs", "nofolder").err
    assert "no run in runs begins with 'abcdef'" in ltga("runs", "abcdef", "--delete").err and record.exists()
    assert ltga("runs", record.stem[:5], "--delete").code == 0 and not record.exists()


def test_runs_side_by_side_say_what_differs(ltga: Any, tmp_path: Path, trained: Any, monkeypatch: Any) -> None:
    graph, runs = trained
    first = next(runs.glob("*.json")).stem
    options = ("--convention", "undirected, once", "--prepare", "drop=town", "--prepare", "scale=none")
    arguments = ("--method", "gatv2", "--seeds", 1, *options, *QUICK, "--set", "lr=0.05", "--out", runs)
    assert ltga("train", f"{graph}/", *arguments).code == 0
    second = next(path.stem for path in runs.glob("*.json") if path.stem != first)
    monkeypatch.chdir(tmp_path)
    said = ltga("runs", first[:6], second[:6]).out
    cells = {words[0]: words[1:] for line in said.splitlines() if (words := re.split(" {2,}", line.strip()))}
    assert cells[first[:8]] == [second[:8]]  # the heading
    assert cells["method"] == ["ltga-head", "gatv2"] and cells["lr"] == ["0.01", "0.05"]
    assert cells["--prepare drop"] == ["-", "town"] and "epochs" not in cells
    assert len(cells["test accuracy"]) == len(cells["val ece"]) == 2
    (row,) = [line for line in ltga("runs").out.splitlines() if second[:8] in line]
    assert "--prepare drop=town, 2 more" in row and "scale" not in row
    assert "--prepare scale" in ltga("runs", second[:6]).out
    (listed,) = json.loads(ltga("runs", second[:6], "--json").out)
    assert listed["prepared"]["drop"] == "town" and set(listed["metrics"]) == {"train", "val", "test"}


def test_the_runs_own_graph_is_predicted_as_it_is_now(ltga: Any, tmp_path: Path, trained: Any) -> None:
    """It may have grown, lost its labels, and have what the run has not seen: as if its path were given."""
    graph, runs = trained
    (record,) = runs.glob("*.json")
    nodes = pd.read_csv(graph / "nodes.csv").drop(columns="label")
    nodes.loc[0, ["town", "income"]] = ["new town", None]
    nodes.to_csv(graph / "nodes.csv", index=False)
    outcome = ltga("predict", record, "--out", tmp_path / "p.csv")
    assert outcome.code == 2 and "choose new_category=other" in outcome.err
    tables = []
    for given in ((), (f"{graph}/",)):
        outcome = ltga("predict", record, *given, "--new-category", "other", "--out", tmp_path / "p.csv")
        assert outcome.code == 0, outcome.err
        assert "income is empty; filled with" in outcome.err and "'new town', which was not there" in outcome.err
        tables.append((tmp_path / "p.csv").read_bytes())
    assert tables[0] == tables[1]
    with pytest.warns(MendedWarning, match="income is empty") as caught:
        load_run(record).predict_table(new_category="other")
    assert len(caught[0].message.notes) >= 2  # type: ignore[union-attr]


def test_another_table_may_be_written_otherwise(ltga: Any, tmp_path: Path, trained: Any) -> None:
    """The same customers from a program with decimal commas, one of them twice and one edge to a stranger."""
    graph, runs = trained
    (record,) = runs.glob("*.json")
    other = tmp_path / "other"
    other.mkdir()
    nodes, edges = pd.read_csv(graph / "nodes.csv"), pd.read_csv(graph / "edges.csv")
    again = pd.concat([nodes, nodes.iloc[[3]]]).to_csv(index=False, sep=";", decimal=",").replace("a", "ä")
    (other / "nodes.csv").write_bytes(again.replace("läbel", "label").encode("cp1252"))
    pd.concat([edges, pd.DataFrame({"source": ["x"], "target": ["c000"]})]).to_csv(other / "edges.csv", index=False)
    chosen = ("decimal=,", "encoding=cp1252", "repeated_ids=first", "unknown_ids=drop", "new_category=other")
    words = [word for option in chosen for word in ("--prepare", option)]
    outcome = ltga("predict", record, f"{other}/", *words, "--out", tmp_path / "other.csv")
    assert outcome.code == 0 and "the first kept (repeated_ids=first)" in outcome.err, outcome.err
    nodes.assign(town=nodes["town"].replace("a", "elsewhere")).to_csv(graph / "nodes.csv", index=False)
    assert ltga("predict", record, "--new-category", "other", "--out", tmp_path / "own.csv").code == 0
    mine, theirs = (pd.read_csv(tmp_path / name) for name in ("own.csv", "other.csv"))
    pd.testing.assert_frame_equal(mine[["node", "predicted", "p_no"]], theirs[["node", "predicted", "p_no"]], atol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("scale=none",), "--prepare: scale: stays as the run was trained; for another table one may choose encoding,"),
        (("decimals=,",), "--prepare: there is no option 'decimals'; did you mean 'decimal'"),
        (("decimal=;",), "--prepare: decimal: "),
        (("decimal",), "--prepare: expected option=value, got 'decimal'"),
        (("thousands=,", "decimal=,"), "prepare: decimal and thousands are both ','"),
    ],
)
def test_what_a_model_learned_with_is_not_chosen_anew(ltga: Any, trained: Any, words: Any, message: str) -> None:
    graph, runs = trained
    given = [word for option in words for word in ("--prepare", option)]
    outcome = ltga("predict", *runs.glob("*.json"), f"{graph}/", *given)
    assert outcome.code == 2 and message in outcome.err and outcome.err.count("\n") == 1
    assert not Path("predictions.csv").exists()


@pytest.mark.parametrize(
    ("before", "changes", "message"),
    [
        ({"thousands": ","}, {"decimal": ","}, "decimal: ',' is thousands in the run's tables; say .* thousands=none"),
        ({"thousands": "'"}, {"thousands": "."}, "thousands: '.' is decimal in the run's tables; say .* decimal=,"),
        ({"decimal": ","}, {"thousands": ","}, "thousands: ',' is decimal in the run's tables; say .* decimal=[.]"),
    ],
)
def test_a_sign_that_the_run_took_otherwise_is_said_to_be_so(before: Any, changes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Preparation(**before).for_another(changes)
    assert Preparation(thousands=",").for_another({"decimal": ",", "thousands": "none"}).decimal == ","


def test_options_of_tables_need_tables(ltga: Any, trained: Any) -> None:
    graph, runs = trained
    run = load_run(next(runs.glob("*.json")))
    for given in (load_dataset(f"{graph}/"), load_dataset(f"{graph}/").data):
        with pytest.raises(InputError, match="prepare: decimal: no tables are prepared for this prediction"):
            run.predict_table(given, prepare={"decimal": ","})


def test_molecules_that_cannot_be_read_are_left_out_by_choice(ltga: Any, tmp_path: Path) -> None:
    """Three typos among ten thousand candidates once meant training again."""
    pytest.importorskip("rdkit")
    smiles = ["C" * (1 + at % 7) + ("O" if at % 2 else "N") for at in range(40)]
    rows = [f"m{at},{'ab'[at % 2]},{text}" for at, text in enumerate(smiles)]
    for name, also in (("known", ""), ("asked", "m40,a,C1CC\nm41,b,CO\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graphs.csv").write_text("graph_id,label,smiles\n" + "\n".join(rows) + "\n" + also)
    assert ltga("train", f"{tmp_path}/known/", "--method", "ltga-head", "--seeds", 1, *QUICK, "-q").code == 0
    (record,) = Path("runs").glob("*.json")
    refused = ltga("predict", record, f"{tmp_path}/asked/")
    assert refused.code == 2 and "m40: not a SMILES" in refused.err and "choose bad_smiles=drop" in refused.err
    done = ltga("predict", record, f"{tmp_path}/asked/", "--prepare", "bad_smiles=drop")
    assert done.code == 0 and "left out (bad_smiles=drop)" in done.err, done.err
    assert pd.read_csv("predictions.csv")["graph"].tolist() == [f"m{at}" for at in range(42) if at != 40]


def test_edges_that_are_lost_in_prediction_are_counted(ltga: Any, tmp_path: Path) -> None:
    graph = write_customers(tmp_path / "customers")
    arguments = ("--seeds", 1, "--method", "ltga-head", "--prepare", "unknown_ids=drop", "--out", tmp_path / "runs")
    assert ltga("train", f"{graph}/", *arguments, *QUICK).code == 0
    (record,) = (tmp_path / "runs").glob("*.json")
    edges = pd.read_csv(graph / "edges.csv")
    edges.loc[5:, "source"] = edges.loc[5:, "source"].str.upper()
    edges.to_csv(graph / "edges.csv", index=False)
    outcome = ltga("predict", record, f"{graph}/", "--out", tmp_path / "p.csv")
    assert outcome.code == 0 and f"({len(edges) - 5} rows); left out (unknown_ids=drop)" in outcome.err
    (row,) = json.loads(ltga("runs", tmp_path / "runs", "--json").out)
    assert row["prepared"] == {"unknown_ids": "drop"} and row["path"] == str(graph.resolve())
    assert "--prepare unknown_ids=drop" in ltga("runs", tmp_path / "runs").out


def test_runs_on_graphs_of_one_name_say_which(ltga: Any, tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        graph = write_customers(tmp_path / place / "customers", seed=len(place))
        assert (
            ltga("train", f"{graph}/", "--seeds", 1, "--method", "gatv2", "--out", tmp_path / "runs", *QUICK).code == 0
        )
    shown = ltga("runs", tmp_path / "runs").out
    assert "here/customers)" in shown and "there/customers)" in shown


def test_one_graph_is_not_many_and_a_table_no_record(ltga: Any, tmp_path: Path, trained: Any) -> None:
    graph, runs = trained
    (record,) = runs.glob("*.json")
    outcome = ltga("predict", record, write_collection(tmp_path / "many"), "--out", tmp_path / "p.csv")
    assert outcome.code == 2 and "holds many graphs, and the run is on the nodes of one" in outcome.err
    for command in ("predict", "explain"):
        outcome = ltga(command, graph / "nodes.csv")
        assert outcome.code == 2 and "delete" not in outcome.err and "first digits of its id" in outcome.err
    assert ltga("explain", record.stem[:6], "--runs", runs).code == 0


def test_nothing_that_is_read_is_written_over(ltga: Any, tmp_path: Path, trained: Any) -> None:
    graph, runs = trained
    (record,) = runs.glob("*.json")
    other = write_customers(tmp_path / "others", 30, seed=7)
    (tmp_path / "link").symlink_to(other)
    for arguments in (
        ("predict", record, other, "--out", other / "nodes.csv"),
        ("predict", record, other / "edges.csv", "--out", other / "nodes.csv"),
        ("predict", record, other, "--out", "link/edges.csv"),
        ("predict", record, other, "--out", other / "nodes.parquet"),  # beside nodes.csv neither could be read
        ("predict", record, "--out", graph / "nodes.csv"),
        ("predict", record, other, "--out", graph / "nodes.csv"),  # what the run learned from
        ("explain", record, "--csv", graph / "edges.csv"),
        ("explain", record, "--graph", other, "--parquet", other / "graphs.parquet"),
    ):
        before = {path: path.read_bytes() for folder in (graph, other) for path in folder.iterdir()}
        outcome = ltga(*arguments)
        assert outcome.code == 2 and "is the name of a file that is read; choose another one" in outcome.err
        assert before == {path: path.read_bytes() for folder in (graph, other) for path in folder.iterdir()}
    assert ltga("predict", record, other, "--out", other / "predictions.csv").code == 0
