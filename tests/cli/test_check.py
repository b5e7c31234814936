"""``ltga check``: problems, what is done, and the graph that comes of it; and what follows for train and explain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import networkx as nx

from cli.graphs import QUICK, write_graph, write_tables
from ltga.data import load_dataset
from ltga.train import fit

MESSY_NODES = "id,label,height,town\n" + "".join(
    f"n{i},{'ab'[i // 2 % 2]},{'' if i == 5 else 1000 * i},{['Rome', 'Oslo', 'Bonn'][i % 3]}\n" for i in range(24)
)
MESSY_EDGES = (
    "source,target,weight\n" + "".join(f"n{i},n{(i + 1) % 24},{i}\n" for i in range(24)) + "n3,n4,5\nn8,n7,1\n"
)


def messy(folder: Path) -> Path:
    return write_tables(folder / "messy", MESSY_EDGES, MESSY_NODES)


def test_a_graph_that_can_be_trained_on(ltga: Any, tmp_path: Path) -> None:
    outcome = ltga("check", messy(tmp_path))
    assert (outcome.code, outcome.err) == (0, "")
    for line in (
        r"1  25  *repeats an earlier edge, 'n3' to 'n4'  *made one edge, weights added \(repeated_edges=sum\)  *mended",
        r"1  6  *height is empty  *filled with 12000 .*\(empty_cells=median\)  *mended",
        r"nodes\.csv, town  *1  *text with 3 different values, 'Rome' for example  *a column of 0 and 1 for each",
        r"Preparation: convention=directed; scale=standard; structure=none; repeated_edges=sum;",
        r"edges \(messages\)  *25",
        r"features  *5",
        r"classes  *2: a 50.0 %, b 50.0 %",
        r"homophily of edges  *0\.480",
        r"messy can be trained on\.",
    ):
        assert re.search(line, outcome.out), (line, outcome.out)


def test_choices_are_heard_and_printed(ltga: Any, tmp_path: Path) -> None:
    chosen = ("--prepare", "repeated_edges=first", "--prepare", "scale=none", "--convention", "undirected, once")
    outcome = ltga("check", messy(tmp_path), *chosen)
    assert outcome.code == 0
    assert "convention=undirected, once (chosen); scale=none (chosen)" in outcome.out
    assert "the first kept (repeated_edges=first)" in outcome.out
    assert "weights averaged (reversed_edges=mean)" in outcome.out
    answer = json.loads(ltga("check", messy(tmp_path), *chosen, "--json").out)
    assert answer["trainable"] and answer["summary"]["edges"] == 48
    assert answer["preparation"]["options"]["scale"] == "none"
    assert answer["features"] == ["height", "height is missing", "town=Bonn", "town=Oslo", "town=Rome"]


def test_all_faults_are_listed_and_one_line_says_no(ltga: Any, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "bad", MESSY_EDGES + "n1,zz,x\n", MESSY_NODES + "n1,a,tall,Rome\n")
    outcome = ltga("check", folder)
    assert outcome.code == 2
    assert len(outcome.err.splitlines()) == 1 and outcome.err.startswith("error: ")
    assert "4 problems" in outcome.err
    for fault in ("'zz' is not an id", "weight is 'x'", "id 'n1' repeats row 2", "height is 'tall'"):
        assert fault in outcome.out and fault in outcome.err
    answer = ltga("check", folder, "--json")
    assert answer.code == 2 and json.loads(answer.out)["trainable"] is False


def test_known_packed_and_foreign_graphs(ltga: Any, tmp_path: Path) -> None:
    assert "csbm:num_nodes=60 can be trained on" in ltga("check", "csbm:num_nodes=60").out
    outcome = ltga("check", write_graph(tmp_path / "mine.npz"))
    assert (outcome.code, "Nothing is wrong with it." in outcome.out) == (0, True)
    nx.write_graphml(nx.karate_club_graph(), tmp_path / "club.graphml")
    outcome = ltga("check", tmp_path / "club.graphml", "--prepare", "label=club")
    assert outcome.code == 0 and "made from the edges: log-degree" in outcome.out


def test_a_foreign_graph_is_trained_on(ltga: Any, tmp_path: Path) -> None:
    nx.write_graphml(nx.karate_club_graph(), tmp_path / "club.graphml")
    arguments = ("--prepare", "label=club", "--method", "ltga-head", "--seeds", 1, *QUICK)
    outcome = ltga("train", tmp_path / "club.graphml", *arguments)
    assert outcome.code == 0, outcome.err
    assert "club: 34 nodes, 156 edges, 2 classes" in outcome.err
    assert "made from the edges" in outcome.err  # what was done by default is said


def test_the_run_of_an_undirected_table_is_explained(ltga: Any, tmp_path: Path) -> None:
    folder, undirected = messy(tmp_path), ("--convention", "undirected, once", "--prepare", "scale=none")
    outcome = ltga("train", folder, *undirected, "--method", "ltga-head", "--seeds", 1, *QUICK)
    assert outcome.code == 0, outcome.err
    (record,) = (tmp_path / "runs").glob("*.json")
    outcome = ltga("explain", record, "--graph", folder, *undirected)
    assert outcome.code == 0 and "Of 48 edges" in outcome.out


def test_a_node_is_explained_by_its_id(ltga: Any, tmp_path: Path) -> None:
    folder = messy(tmp_path)
    run = fit(load_dataset(folder), "ltga-head", protocol={"epochs": 2, "hidden_channels": 2, "heads": 2})
    record = run.save(tmp_path / "runs")
    outcome = ltga("explain", record, "--graph", folder, "--node", "n4")
    assert outcome.code == 0, outcome.err
    assert "Node n4: class a" in outcome.out and "\n        n3 " in outcome.out
    outcome = ltga("explain", record, "--graph", folder, "--node", "n99")
    assert outcome.code == 2 and "messy has no node 'n99'; did you mean 'n9'" in outcome.err
