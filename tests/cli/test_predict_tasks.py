"""``ltga predict`` for whole graphs and for links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ltga as library
from cli.graphs import write_collection, write_tables
from ltga.errors import LTGAError

QUICK = {"epochs": 2, "hidden_channels": 4, "heads": 1, "num_layers": 1}


def store(source: Path, folder: Path, **how: Any) -> Path:
    record = library.fit(source, "gatv2", protocol=QUICK, **how).save(folder)
    return Path(record)


@pytest.mark.parametrize("column", ["label", "height"])
def test_graphs_of_the_run_and_of_another_folder(ltga: Any, tmp_path: Path, column: str) -> None:
    record = store(write_collection(tmp_path / "many", column), tmp_path / "runs")
    out = tmp_path / "out.csv"
    assert ltga("predict", record, "--out", out).code == 0
    own = pd.read_csv(out)
    assert list(own["graph"][:2]) == ["g0", "g1"] and len(own) == 40
    run = library.load_run(record)
    if column == "label":
        assert list(own) == ["graph", "predicted", "p_a", "p_b"]
        assert own["p_a"][0] == pytest.approx(float(run.predict_proba(library.load_dataset(tmp_path / "many"))[0, 0]))
    else:
        assert list(own) == ["graph", "predicted"]
    other = write_collection(tmp_path / "other", column)
    pd.read_csv(other / "graphs.csv")[["graph_id"]].to_csv(other / "graphs.csv", index=False)
    assert ltga("predict", record, other, "--out", out).code == 0
    assert pd.read_csv(out).equals(own)


def test_pairs_of_nodes(ltga: Any, tmp_path: Path) -> None:
    record = store(write_tables(tmp_path / "mine"), tmp_path / "runs", task="link")
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.parquet"
    pairs.write_text("source,target,note\nn0,n1,\n,,\nn3,n20,new\n,,\n")
    assert ltga("predict", record, "--pairs", pairs, "--out", out).code == 0
    found = pd.read_parquet(out)
    assert list(found) == ["source", "target", "predicted", "p_edge"] and list(found["target"]) == ["n1", "n20"]
    assert found["p_edge"].between(0, 1).all()
    pairs.write_text("source,target\nn0,n1\n,\nn3,nobody\n")
    assert "row 3: the graph has no node 'nobody'" in ltga("predict", record, "--pairs", pairs, "--out", out).err
    pairs.write_text("source,target,note\nn0,n1,\n,,new\n")
    assert "row 2: the graph has no node ''" in ltga("predict", record, "--pairs", pairs, "--out", out).err
    again = library.load_run(record).predict_table(
        pairs=pd.DataFrame({"source": ["n0", "", "n3"], "target": ["n1", None, "n2"]})
    )
    assert again.index.tolist() == [0, 1] and again["target"].tolist() == ["n1", "n2"]


def test_tails_of_typed_links(ltga: Any, tmp_path: Path) -> None:
    people = [f"person {number}" for number in range(30)]
    rows = [
        (people[at], ("knows", "likes")[step % 2], people[(at + step) % 30]) for at in range(30) for step in (1, 2, 5)
    ]
    folder = tmp_path / "family"
    folder.mkdir()
    pd.DataFrame(rows, columns=["head", "relation", "tail"]).to_csv(folder / "triples.csv", index=False)
    links = library.load_dataset(f"{folder}/")
    record = library.fit(links, "gatv2", protocol={"epochs": 1, "hidden_channels": 4, "heads": 1}).save(
        tmp_path / "runs"
    )
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    pairs.write_text("head,relation\nperson 3,likes\n")
    assert ltga("predict", record, "--pairs", pairs, "--out", out).code == 0
    found = pd.read_csv(out)
    assert list(found) == ["head", "relation", "predicted", "p_tail"] and found["predicted"][0] in people


def test_bad_input(ltga: Any, tmp_path: Path) -> None:
    graphs = store(write_collection(tmp_path / "many"), tmp_path / "runs")
    links = store(write_tables(tmp_path / "mine"), tmp_path / "runs", task="link")
    pairs, out = tmp_path / "pairs.csv", tmp_path / "out.csv"
    pairs.write_text("source,target\nn0,n1\nn0,nobody\n")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("from,to\nn0,n1\n")
    itself, wide = tmp_path / "itself.csv", tmp_path / "wide.csv"
    itself.write_text("source,target\nn0,n1\nn1,n1\n")
    wide.write_text("source,target\nn0,n1\n", encoding="utf-16")
    for words, message in (
        (("predict", graphs, "--pairs", pairs), "pairs: the run is for graph classification; leave it out"),
        (("predict", graphs, tmp_path / "mine"), "is no folder with graphs.csv"),
        (("predict", links), "give a table with columns source, target"),
        (("predict", links, "--pairs", pairs), "row 2: the graph has no node 'nobody'"),
        (("predict", links, "--pairs", wrong), "column 'source' is missing"),
        (("predict", links, "--pairs", tmp_path / "no.csv"), "no such file"),
        (("predict", links, "--pairs", out), "--out: "),
        (("predict", links, "--pairs", itself), "row 2: a link of a node to itself is not predicted"),
        (("predict", links, "--pairs", wide), "is not utf-8 text; it looks like utf-16; convert it"),
        (("predict", links, "--pairs", tmp_path / "pairs.txt"), "pairs are read from .csv or .parquet"),
    ):
        said = ltga(*words, "--out", out)
        assert said.code == 2 and message in said.err and len(said.err.strip().splitlines()) == 1, said.err
        assert "encoding=" not in said.err and not out.exists()  # predict has no such option


def test_molecules_and_other_graphs_are_not_taken_for_each_other(ltga: Any, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    (tmp_path / "drugs").mkdir()
    rows = "".join(f"m{at},{'ab'[at % 2]},{'C' * (1 + at % 7)}{'ON'[at % 2]}\n" for at in range(40))
    (tmp_path / "drugs" / "graphs.csv").write_text("graph_id,label,smiles\n" + rows)
    many = write_collection(tmp_path / "many")
    drugs, paths = (store(tmp_path / name, tmp_path / "runs") for name in ("drugs", "many"))
    said = ltga("predict", drugs, many)
    assert said.code == 2 and "graphs.csv: has no column 'smiles', and the run is on molecules; add it" in said.err
    said = ltga("predict", paths, tmp_path / "drugs")
    assert said.code == 2 and "has molecules, in column 'smiles', and the run is on graphs of a node" in said.err


def test_graphs_in_memory_and_pairs_as_data_frames(tmp_path: Path) -> None:
    run = library.load_run(store(write_collection(tmp_path / "many"), tmp_path / "runs"))
    own = library.load_dataset(tmp_path / "many")
    whole = run.predict_table()
    assert run.predict_table(own).equals(whole)
    assert run.predict_table(list(own)[:3])["predicted"].tolist() == whole["predicted"][:3].tolist()
    assert run.predict_table(own[4])["graph"].tolist() == [0]
    with pytest.raises(LTGAError, match="expected a folder of graphs, a collection, a Data or a list of them, got int"):
        run.predict_table(7)
    links = library.load_run(store(write_tables(tmp_path / "mine"), tmp_path / "runs", task="link"))
    pairs = pd.DataFrame({"source": ["n0"], "target": ["n1"]}, index=[9])
    assert links.predict_table(pairs=pairs)["target"].tolist() == ["n1"]
    with pytest.raises(LTGAError, match="pairs: column 'source' is there twice"):
        links.predict_table(pairs=pd.concat([pairs, pairs], axis=1))


def test_links_of_a_graph_with_edge_attributes(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "weighed")
    edges = pd.read_csv(folder / "edges.csv")
    edges.assign(weight=range(len(edges))).to_csv(folder / "edges.csv", index=False)
    run = library.load_run(store(folder, tmp_path / "runs", task="link"))
    found = run.predict_table(pairs=pd.DataFrame({"source": ["n0"], "target": ["n1"]}))
    assert found["p_edge"].between(0, 1).all()
