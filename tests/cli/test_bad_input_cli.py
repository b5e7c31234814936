"""Bad input on the command line: one line that names the culprit, exit code 2, nothing left behind."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.graphs import QUICK, tiny_graph, write_collection, write_graph, write_tables

Make = Callable[[Path], list[object]]


def given(*arguments: object) -> Make:
    """A command line that needs no files."""
    return lambda folder: list(arguments)


def graph(**changes: Any) -> Make:
    """Training on a graph with something wrong in it."""
    return lambda folder: ["train", write_graph(folder / "graph.npz", **changes)]


def own(*options: object) -> Make:
    """Training on a sound graph with something wrong in the options."""
    return lambda folder: ["train", write_graph(folder / "graph.npz"), *options]


def tables(edges: str | None = None, nodes: str | None = None) -> Make:
    return lambda folder: ["train", write_tables(folder / "tables", edges, nodes)]


def table_options(*options: str) -> Make:
    """Training on sound tables with something wrong in how they are to be prepared."""
    return lambda folder: [
        "train", write_tables(folder / "tables"), *(word for option in options for word in ("--prepare", option))
    ]  # fmt: skip


def many(table: str, change: Callable[[str], str] | bytes, *options: object) -> Make:
    """Training on forty graphs with something wrong in one of their tables."""

    def make(folder: Path) -> list[object]:
        path = write_collection(folder / "many") / f"{table}.csv"
        path.write_bytes(change if isinstance(change, bytes) else change(path.read_text()).encode())
        return ["train", folder / "many", *options]

    return make


def molecules(words: list[str], *options: object) -> Make:
    """Training on molecules, some of which are none."""

    def make(folder: Path) -> list[object]:
        (folder / "drugs").mkdir()
        rows = "".join(f"m{at},{word},{at}\n" for at, word in enumerate(words))
        (folder / "drugs" / "graphs.csv").write_text(f"graph_id,smiles,mass\n{rows}")
        return ["train", folder / "drugs", *options]

    return make


def typed(text: str) -> Make:
    def make(folder: Path) -> list[object]:
        (folder / "family").mkdir()
        (folder / "family" / "triples.csv").write_text(text)
        return ["train", folder / "family"]

    return make


def labelled(word: str) -> Callable[[str], str]:
    """Every graph has this label."""
    return lambda text: re.sub(r",[ab]\n", f",{word}\n", text)


def file(name: str, content: bytes, *before: object) -> Make:
    """A command line whose last argument is a file with this content."""

    def make(folder: Path) -> list[object]:
        (folder / name).write_bytes(content)
        return [*before, folder / name]

    return make


def config(text: str) -> Make:
    return file("settings.toml", text.encode(), "train", "--config")


def without_nodes(folder: Path) -> list[object]:
    (write_tables(folder / "tables") / "nodes.csv").unlink()
    return ["train", folder / "tables"]


def truncated(folder: Path) -> list[object]:
    path = write_graph(folder / "graph.npz")
    path.write_bytes(path.read_bytes()[:400])
    return ["train", path]


def changed(name: str, at: Any, value: Any) -> dict[str, np.ndarray]:
    values = tiny_graph()[name].copy()
    values[at] = value
    return {name: values}


NONE, ALL = np.zeros(24, dtype=bool), np.ones(24, dtype=bool)
NODES = "id,label,x\na,0,1\nb,1,2\nc,0,3\nd,1,4\n"
EDGES = "source,target\na,b\n"

ENTITIES = b'<!DOCTYPE a [<!ENTITY b "c">]><graphml>&b;</graphml>'

ROWS: list[tuple[str, Make, str]] = [
    # Usage
    ("unknown command", given("trian"), r"No such command 'trian'.*ltga --help"),
    ("unknown option", given("train", "--seed", 3), r"--seed\b.*--seeds"),
    ("an argument too many", given("train", "cora", "texas"), "texas"),
    ("option without value", given("train", "--method"), "--method"),
    ("no seeds", given("train", "--seeds", 0), "--seeds.*greater than or equal to 1"),
    ("negative seeds", given("train", "--seeds", -3), "--seeds.*greater than or equal to 1"),
    ("seeds in words", given("train", "--seeds", "three"), "--seeds.*valid integer.*got 'three'"),
    # Names
    ("misspelt dataset", given("train", "coar"), "'coar'; did you mean 'cora'"),
    ("unknown dataset", given("train", "zzzz"), "'zzzz'; known are cora"),
    ("empty dataset", given("train", " "), "no dataset is called ' '"),
    ("unknown task", given("train", "cora", "--task", "edges"), "--task: got 'edges'; use one of node, link, graph"),
    ("a task that does not fit", own("--task", "graph"), "task: graph is for node classification; use task="),
    ("a page of links", own("--task", "link", "--page", "no/out.html"), "--page: cannot write no/out.html"),
    ("no such negatives", own("--task", "link", "--set", "negatives=hard"), "negatives: got 'hard'; use one of"),
    (
        "text for a number of negatives",
        own("--task", "link", "--set", "each=few"),
        "--set each: expected a whole number",
    ),
    (
        "a setting of another task",
        own("--task", "link", "--set", "batch_size=3"),
        "no setting 'batch_size'; it has neg",
    ),
    (
        "misspelt setting of a task",
        own("--task", "link", "--set", "epoch=3"),
        "epoch: the protocol has no such setting",
    ),
    ("a metric that does not fit links", own("--task", "link", "--set", "metric=accuracy"), "does not fit link pred"),
    ("a node's weights for links", own("--task", "link", "--method", "linkx"), "linkx has a weight for every node"),
    ("unknown target", given("train", "twitch-de:target=age"), "twitch-de has no 'target=age'; use target="),
    ("misspelt method", given("train", "--method", "gatv2,ltga-heads"), "'ltga-heads'; did you mean 'ltga-head'"),
    ("unknown method", given("train", "--method", "zzzz"), "'zzzz'; known are gcn"),
    ("empty method", given("train", "--method", ""), "no method is called ''"),
    ("unknown knob", given("train", "digits-noise:noise=3"), "'noise'; use k, planted_per_edge"),
    ("knob out of range", given("train", "digits-noise:k=0"), "k: got 0"),
    ("knobs of a fixed graph", given("train", "cora:k=3"), "cora has no setting 'k'"),
    # Settings
    ("misspelt setting", given("train", "--set", "epoch=5"), "--set epoch: .*did you mean 'epochs'"),
    ("setting without value", given("train", "--set", "epochs"), "--set: expected key=value, got 'epochs'"),
    ("setting with blank value", given("train", "--set", "epochs="), "--set: expected key=value, got 'epochs='"),
    ("setting without key", given("train", "--set", "=5"), "--set: expected key=value, got '=5'"),
    ("setting that contradicts itself", given("train", "--set", "lr=1", "--set", "lr=2"), "--set lr: contradicts"),
    ("no epochs", given("train", "--set", "epochs=0"), "--set epochs: .*greater than or equal to 1, got '0'"),
    ("epochs in words", given("train", "--set", "epochs=many"), "--set epochs: .*valid integer.*got 'many'"),
    ("half an epoch", given("train", "--set", "epochs=1.5"), "--set epochs: .*integer.*'1.5'"),
    ("dropout of everything", given("train", "--set", "dropout=1"), "--set dropout: .*less than 1"),
    ("rate not a number", given("train", "--set", "lr=nan"), "--set lr: .*finite number"),
    ("unknown initialisation", given("train", "--set", "init=random"), "--set init: .*'paper' or 'paired'"),
    ("residual LINKX", own("--method", "gatv2,linkx", "--set", "residual=true"), "residual: linkx has no residual"),
    ("convention of a known graph", given("train", "digits-noise", "--convention", "directed"), "convention: "),
    ("unknown convention", own("--convention", "sideways"), "convention: got 'sideways'; use one of"),
    ("a rate that diverges", own("--method", "gatv2", "--set", "lr=1e30", "--set", "epochs=9"), "loss is .* at epoch"),
    ("unknown metric", own("--metric", "hits"), "error: --metric: .*'loss'.* got 'hits'"),
    ("a metric twice", own("--metric", "loss", "--set", "metric=accuracy"), "--metric: says loss, --set metric says"),
    # Tuning
    ("tune a misspelt dataset", given("tune", "coar"), "'coar'; did you mean 'cora'"),
    ("tune a misspelt method", given("tune", "-q", "cora", "--method", "gatv3"), "'gatv3'; did you mean 'gatv2'"),
    ("no trials", given("tune", "cora", "--trials", 0), "--trials.*greater than or equal to 1"),
    ("no jobs", given("tune", "cora", "--jobs", 0), "--jobs.*greater than or equal to 1"),
    ("no time", given("tune", "digits-noise", "-q", "--timeout", 0), "timeout: expected seconds above 0"),
    ("a search of nothing", given("tune", "cora", "--search", "lr"), "--search: expected name=low..high or"),
    ("a search of no setting", given("tune", "cora", "--search", "rate=1,2"), "--search: rate: the protocol has no"),
    ("a range upside down", given("tune", "cora", "--search", "lr=1..0.1"), "--search: lr: a range goes from"),
    (
        "a search twice",
        given("tune", "cora", "--search", "lr=1,2", "--search", "lr=3,4"),
        "--search: lr is given twice",
    ),
    ("text for a number", given("tune", "cora", "--search", "heads=few,many"), "--search: heads: .*valid integer"),
    (
        "searched and set",
        given("tune", "cora", "--search", "lr=1,2", "--set", "lr=1"),
        "--search: lr is also set to one",
    ),
    ("tune into a file", file("store", b"", "tune", "digits-noise", "-q", "--out"), "--out: .*store is a file; give a"),
    # The settings file
    ("missing settings", given("train", "--config", "nowhere.toml"), r"--config: nowhere\.toml .*No such file"),
    ("settings in a folder", given("train", "--config", "."), r"--config: \. cannot be read"),
    ("broken TOML", config("epochs = = 3"), r"settings\.toml is not valid TOML .*line 1"),
    (
        "TOML that is no text",
        file("s.toml", b"\xff\xfe\x00", "train", "--config"),
        r"s\.toml is not UTF-8 text; it looks like utf-16",
    ),
    ("misspelt TOML key", config("metod = 'gcn'"), r"settings\.toml: metod: no such key; did you mean 'method'"),
    ("TOML key in the wrong place", config("epochs = 3"), r"settings\.toml: epochs: .*below \[protocol\]"),
    ("misspelt TOML setting", config("[protocol]\nepoch = 3"), r"settings\.toml: epoch: .*did you mean 'epochs'"),
    ("bad TOML setting", config("[protocol]\nepochs = -1"), r"settings\.toml: epochs: .*got -1"),
    ("TOML number for a truth", config("[protocol]\nepochs = true"), r"settings\.toml: epochs: .*got True"),
    ("no seeds in TOML", config("seeds = 0"), r"settings\.toml: seeds: expected at least 1, got 0"),
    ("TOML seeds in words", config("seeds = 'three'"), r"settings\.toml: seeds: expected int, got 'three'"),
    ("unknown TOML method", config("method = 'ltga-heads'"), "'ltga-heads'; did you mean 'ltga-head'"),
    ("TOML methods that are numbers", config("method = [1]"), "no method is called 1"),
    # Files
    ("missing graph", given("train", "nowhere.npz"), r"nowhere\.npz: no such file"),
    ("missing folder", given("train", "./nowhere"), "nowhere: no such file or folder"),
    ("a pickle", file("graph.pt", b"\x80\x04", "train"), r"graph\.pt: pickled files can run code"),
    ("another format", file("graph.xlsx", b"PK", "train"), r"graph\.xlsx: not a known format"),
    ("not a zip", file("graph.npz", b"not a zip", "train"), r"graph\.npz: damaged or not an npz"),
    ("half a zip", truncated, r"graph\.npz: damaged or not an npz"),
    ("objects", graph(node_labels=np.array([{}] * 24, dtype=object)), "node_labels.* holds Python objects"),
    ("no labels", graph(node_labels=None), r"graph\.npz: array 'node_labels' is missing"),
    ("NaN feature", graph(**changed("node_features", (4, 1), np.nan)), r"feature \[1\] of node 4 is nan"),
    ("label below -1", graph(**changed("node_labels", 3, -2)), "node 3 has label -2"),
    ("label without name", graph(class_names=["a", "b"], **changed("node_labels", 3, 9)), "node 3 has label 9"),
    ("fractional labels", graph(node_labels=np.full(24, 0.5)), "node_labels must hold whole numbers"),
    ("edge to nowhere", graph(**changed("edges", (5, 1), 99)), r"edge row 6 joins \[5, 99\]"),
    ("edges of three", graph(edges=np.zeros((4, 3), dtype=int)), r"edges of shape \[E, 2\]"),
    ("overlapping splits", graph(val_masks=ALL), "node 0 is in train and val"),
    ("empty training set", graph(train_masks=NONE), "split 0 has no training nodes"),
    ("empty validation set", graph(val_masks=NONE), "split 0 has no validation nodes"),
    ("a mask too few", graph(test_masks=None), "found train_masks, val_masks only"),
    ("one class", graph(node_labels=np.zeros(24, dtype=int)), "at least two"),
    # Tables
    ("no node table", without_nodes, r"tables: expected nodes\.csv or nodes\.parquet"),
    ("wrong edge columns", tables(edges="from,to\na,b\n"), r"edges\.csv: column 'source' is missing; found from, to"),
    ("wrong node columns", tables(EDGES, "node,label,x\na,0,1\n"), r"nodes\.csv: column 'id' is missing"),
    (
        "ids with .0",
        tables("source,target\n0.0,1\n", "id,label\n0,a\n1,b\n"),
        r"'0.0' is not an id .*write 0 \(programs",
    ),
    ("fanout of other layers", own("--batch-size", "4", "--fanout", "3,2,1", "--method", "gatv2"), "has 3 numbers"),
    ("a blank end of an edge", tables("source,target\n,a\n", NODES), r"edges\.csv: row 1: source is blank"),
    ("edge to an unknown id", tables("source,target\na,z\n", NODES), r"edges\.csv: row 1: target 'z' is not an id"),
    ("feature in words", tables(EDGES, NODES + "e,1,tall\n"), r"nodes\.csv: row 5: x is 'tall'"),
    ("infinity in a table", tables(EDGES, NODES + "e,1,inf\n"), r"nodes\.csv: row 5: x is 'inf'"),
    (
        "decimal commas",
        tables(EDGES, NODES + 'e,1,"1,5"\nf,1,"2,5"\n'),
        r"row 5: x is '1,5', .*looks like numbers with a decimal comma .*; choose decimal=,; if not, mend it",
    ),
    (
        "a unit",
        tables(EDGES, NODES + "e,1,5 kg\n"),
        r"row 5: x is '5 kg', .*looks like numbers with 'kg'; choose units",
    ),
    ("NA among labels", tables(EDGES, NODES + "e,NA,5\n"), r"row 5: label is 'NA'; choose missing_labels=unknown if"),
    ("an id twice", tables(EDGES, NODES + "a,1,5\n"), r"nodes\.csv: row 5: id 'a' repeats row 1"),
    ("a short row", tables(EDGES, NODES + "e,1\n"), r"nodes\.csv: row 5: 2 fields"),
    ("labels of one class", tables(EDGES, NODES.replace(",1,", ",0,")), "the only label is '0'.*at least two"),
    ("no labels in a table", tables(EDGES, "id,label,x\na,,1\nb,-1,2\n"), "all labels are missing"),
    (
        "names for labels",
        tables(EDGES, "id,label,x\n" + "".join(f"a{i},b{i},1\n" for i in range(30))),
        "look like names",
    ),
    (
        "several faults",
        tables("source,target\na,z\n", NODES + "a,1,tall\n"),
        "3 problems.*'tall'.*'z'|3 problems.*'z'.*'tall'",
    ),
    # Preparation
    ("misspelt option", table_options("scales=none"), "--prepare: there is no option 'scales'; did you mean 'scale'"),
    ("unknown choice", table_options("scale=robust"), "--prepare: scale: .*'standard' or 'none', got 'robust'"),
    ("preparation without value", table_options("scale="), "--prepare: expected option=value, got 'scale='"),
    ("an option twice", table_options("scale=none", "scale=standard"), "--prepare: scale contradicts itself"),
    ("unknown structure", table_options("structure=degre"), "'degre'; did you mean 'degree'"),
    ("unknown encoding", table_options("encoding=utf9"), "--prepare: encoding: no such encoding"),
    (
        "a label column that is not there",
        table_options("label=churn"),
        "'churn' is missing; found id, label, x1, x2",
    ),
    ("preparing a known graph", given("train", "cora", "--prepare", "scale=none"), "prepare: a known dataset"),
    ("preparing an npz", own("--prepare", "scale=none"), r"prepare: \.npz holds finished features"),
    # Graphs of other programs
    ("missing graphml", given("check", "gone.graphml"), r"gone\.graphml: no such file"),
    ("graphml with entities", file("g.graphml", ENTITIES, "check"), r"g\.graphml: defines XML entities"),
    ("damaged graphml", file("g.graphml", b"<graphml>", "train"), r"g\.graphml: damaged, or not XML"),
    ("damaged gml", file("g.gml", b"graph [", "train"), r"g\.gml: cannot be read as gml"),
    ("edges that are no text", file("g.edges", b"a \xff\n", "train"), r"g\.edges: is not utf-8 text"),
    ("an empty list of edges", file("g.edges", b"# none\n", "train"), r"g\.edges: has no edges"),
    ("check nothing", given("check"), "Missing argument"),
    ("check a misspelt dataset", given("check", "coar"), "'coar'; did you mean 'cora'"),
    ("check an unknown format", file("graph.xlsx", b"PK", "check"), r"graph\.xlsx: not a known format"),
    (
        "check in an unknown convention",
        lambda folder: ["check", write_tables(folder / "tables"), "--convention", "sideways"],
        "convention: got 'sideways'; use one of",
    ),
    # Where things are and go
    ("missing data folder", given("train", "cora", "--data", "nowhere"), r"--data.*nowhere"),
    ("data folder that is a file", file("data.txt", b"", "datasets", "--data"), r"--data.*data\.txt"),
    ("store below a file", lambda f: own("--out", f / "graph.npz" / "runs")(f), r"--out: cannot write in .*graph\.npz"),
    (
        "store that is a file",
        lambda f: own("--out", f / "graph.npz")(f),
        r"--out: .*graph\.npz is a file; give a folder",
    ),
    ("store in /proc", own("--out", "/proc/runs"), "--out: cannot write in /proc/runs"),
    ("page in no folder", own("--page", "nowhere/page.html"), "--page: cannot write nowhere/page.html"),
    ("page over a folder", lambda f: own("--page", f)(f), "--page: cannot write"),
    # Many graphs, typed links
    ("graphs that are no text", many("graphs", b"graph_id,label\ng\xff,a\n"), r"graphs\.csv: row 1: is not utf-8 text"),
    ("graphs in UTF-16", many("nodes", "graph_id,id\n".encode("utf-16")), r"nodes\.csv: is not utf-8.*like utf-16"),
    ("a graph without nodes", many("graphs", lambda t: t + "g40,a\n"), r"graph has no nodes in .*nodes\.csv \(g40\)"),
    ("nodes of no graph", many("nodes", lambda t: t + "g99,0,1\n"), r"row 161: graph_id 'g99' is not in .*graphs\.csv"),
    ("a class of one graph", many("graphs", lambda t: t.replace("g3,b", "g3,c")), r"row 4: label 'c' appears once"),
    ("graphs of one class", many("graphs", labelled("a")), "the only label is 'a'"),
    ("no graph has a label", many("graphs", labelled("")), "all labels are missing"),
    (
        "a constant number",
        many("graphs", lambda t: labelled("3.5")(t).replace("label", "height")),
        r"height: is 3\.5 for every graph that has it; there is nothing to learn",
    ),
    ("an edge across graphs", many("edges", lambda t: t + "g0,0,9\n"), "target '9 of graph g0' is not an id in"),
    ("text among numbers of graphs", many("nodes", lambda t: t.replace("g5,2,1.2", "g5,2,big")), "size is 'big'"),
    ("a Laplacian of graphs", many("nodes", str, "--prepare", "structure=laplacian-2"), "a Laplacian places the nodes"),
    ("no such column of graphs", many("nodes", str, "--prepare", "label=colour"), "column 'colour' is missing"),
    ("links of many graphs", many("nodes", str, "--prepare", "predict=links"), "links are predicted in one graph"),
    ("no convention of graphs", many("nodes", str, "--convention", "sideways"), "convention: got 'sideways'"),
    ("triples of two", typed("head,relation\na,r\n"), r"triples\.csv: column 'tail' is missing"),
    ("a blank in a triple", typed("head,relation,tail\na,r,b\n,r,c\n"), "row 2: head is blank"),
    ("one triple", typed("head,relation,tail\na,r,b\n"), "1 are too few to hold some out"),
    ("a metric that is none, for graphs", many("nodes", str, "--metric", "f2"), "--metric: input should be"),
    ("tune on no engine", given("tune", "cora", "--engine", "slurm"), "--engine: expected 'ray', got 'slurm'"),
    ("tune at an address alone", given("tune", "cora", "--address", "a:1"), "--address: .*give --engine ray too"),
    # Other commands
    ("doctor without data folder", given("doctor", "--data", "nowhere"), r"--data.*nowhere"),
    ("reproduce a misspelt method", given("reproduce", "--methods", "gatv3"), "'gatv3'; did you mean 'gat"),
    ("reproduce a misspelt dataset", given("reproduce", "--datasets", "texs"), "'texs'; did you mean 'texas'"),
    ("reproduce one seed", given("reproduce", "--seeds", 1), "--seeds.*greater than or equal to 2"),
    ("reproduce into no folder", given("reproduce", "--out", "nowhere/t.md"), "--out: cannot write nowhere/t.md"),
    ("reproduce into a file", file("store", b"", "reproduce", "--store"), "--store: .*store is a file; give a folder"),
    ("an unknown work", given("bench", "--work", "zzzz"), "zzzz"),
]
RECORDS: list[tuple[str, Make, str]] = [
    ("a GPU that is not there", own("--device", "cuda"), r"device: torch finds no GPU here, got 'cuda'"),
    (
        "no device at all",
        own("--device", "tpu"),
        r"device: expected 'auto', 'cpu', 'cuda' or one like 'cuda:1', got 'tpu'",
    ),
    (
        "a GPU for links that is not there",
        own("--task", "link", "--device", "cuda:3"),
        r"device: torch finds no GPU here, got 'cuda:3'",
    ),
    (
        "the CPU's kernels on a GPU",
        own("--device", "cuda", "--set", "backend=numba"),
        r"device: backend='numba' is compiled for the CPU only; use device='cpu'",
    ),
    ("a missing record", given("explain", "nowhere.json"), r"nowhere\.json: no such record"),
    ("a damaged record", file("run.json", b"{", "explain"), r"run\.json: damaged, or not a record"),
    ("another JSON file", file("run.json", b"{}", "explain"), r"run\.json: not the record of a run"),
]


def test_a_molecule_that_does_not_parse(ltga: Any, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    words = ["C" * (1 + at) for at in range(40)]
    words[7] = "C1CC"
    refused(ltga(*molecules(words)(tmp_path)), r"graphs\.csv: row 8: smiles does not parse \(m7: ")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("make", "culprit"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_bad_input(ltga: Any, tmp_path: Path, make: Make, culprit: str) -> None:
    arguments = make(tmp_path)
    if arguments[0] == "train":
        arguments[1:1] = ["-q", *(("--set", "backend=torch") if "--set" in arguments else QUICK)]
    before = files_in(tmp_path)
    refused(ltga(*arguments), culprit)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(("make", "culprit"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_bad_records(ltga: Any, tmp_path: Path, make: Make, culprit: str) -> None:
    pytest.importorskip("ltga.cli.explain_command")
    refused(ltga(*make(tmp_path)), culprit)


def refused(outcome: Any, culprit: str) -> None:
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1, outcome.err
    assert outcome.err.startswith("error: ")
    assert re.search(culprit, outcome.err), outcome.err


def test_there_are_many_rows_and_no_two_alike() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 35


def test_debug_shows_the_traceback() -> None:
    from ltga.cli import main
    from ltga.errors import LTGAError

    with pytest.raises(LTGAError, match="coar"):
        main(["train", "coar", "--debug"])


def test_html_and_markup_in_names_are_harmless(ltga: Any, tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "[bold]b[/nonsense]"]
    path = write_graph(tmp_path / "a[bold]b<i>.npz", class_names=names)
    outcome = ltga("train", path, "--method", "ltga-head", "--seeds", 1, *QUICK)
    assert outcome.code == 0
    assert "a[bold]b<i>: 24 nodes" in outcome.err
    for page in (tmp_path / "runs").glob("*.html"):
        assert page.name.startswith("a-bold-b-i-ltga-head-")  # and the run's short id
        assert "<script>alert" not in page.read_text()


@pytest.mark.parametrize("limit", [100, 6000])
def test_a_full_disk_leaves_nothing(ltga: Any, tmp_path: Path, limit: int) -> None:
    """The limit stops the first file of a run, or the record after smaller files were written."""
    arguments = own("--method", "ltga-edge", "--seeds", 1, "-q", *QUICK)(tmp_path)
    ltga(*arguments)  # compiled kernels are files too, and must not be what meets the limit
    shutil.rmtree(tmp_path / "runs")
    before, usual = files_in(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, usual[1]))
    try:
        outcome = ltga(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    refused(outcome, r"--out: runs: cannot be written \(File too large\)")
    assert files_in(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_results_that_cannot_be_printed() -> None:
    command = [sys.executable, "-m", "ltga", "methods"]
    with Path("/dev/full").open("w") as full:
        outcome = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert outcome.returncode == 2
    assert outcome.stderr == "error: output: cannot be read or written (No space left on device)\n"
