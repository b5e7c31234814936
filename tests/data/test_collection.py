"""Collections of graphs: the value, a list of `Data`, and folders of tables, sound and not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from ltga.data import (
    GraphCollection,
    Preparation,
    collection_from_data,
    load_collection,
    load_dataset,
    load_graph,
    make_target,
)
from ltga.errors import DataError, InputError, LTGAError

NAN = float("nan")


def graphs(count: int = 40, **changes: Any) -> list[Data]:
    generator = torch.Generator().manual_seed(1)
    made = []
    for at in range(count):
        nodes = 3 + at % 4
        values = {
            "x": torch.randn(nodes, 2, generator=generator),
            "edge_index": torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes]),
            "edge_attr": torch.rand(nodes, generator=generator),
            "y": at % 2,
        }
        made.append(Data(**{key: changes[key](at) if key in changes else value for key, value in values.items()}))
    return made


def test_a_list_of_data() -> None:
    given = graphs()
    collection = collection_from_data(given, "rings")
    assert repr(collection) == "GraphCollection('rings', 40 graphs, 2 features, graph classification of 2, 10 splits)"
    assert (len(collection), collection.num_features, collection.edge_dim) == (40, 2, 1)
    assert collection.y.tolist() == [0, 1] * 20
    assert given[1].y == 1 and given[1].edge_attr.dim() == 1  # the caller's graphs stay as they were
    train, _, test = collection.split(4)
    assert [graph.num_nodes for graph in collection[test]] == [given[at].num_nodes for at in test.nonzero().flatten()]
    assert len(collection[3:6]) == 3 and len(list(collection)) == 40
    batch = next(iter(DataLoader(collection[train], batch_size=16)))
    assert (batch.y.shape, batch.edge_attr.shape[1], batch.num_graphs) == ((16,), 1, 16)
    assert collection.fingerprint == collection_from_data(given, "rings").fingerprint
    given[7].x = given[7].x + 1
    assert collection.fingerprint != collection_from_data(given, "rings").fingerprint


def test_numbers_and_labels() -> None:
    numbers = collection_from_data(graphs(y=lambda at: torch.tensor([NAN if at == 5 else at / 3])))
    assert (numbers.task, numbers.metric) == ("graph regression", "rmse")
    assert sum(int(numbers.split(fold)[2].sum()) for fold in range(10)) == 39
    labels = collection_from_data(graphs(y=lambda at: torch.tensor([[at % 2, NAN if at < 9 else at % 3 == 0]])))
    assert (labels.task, labels.metric, tuple(labels.y.shape)) == ("multi-label graphs", "roc_auc", (40, 2))
    batch = next(iter(DataLoader(labels.graphs, batch_size=8)))
    assert batch.y.shape == (8, 2)
    assert collection_from_data(graphs(y=lambda at: at), kind="number").task == "graph regression"


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: collection_from_data([]), "graphs: expected a list of PyG Data"),
    (lambda: collection_from_data([1, 2]), "graphs: expected a list of PyG Data"),  # type: ignore[list-item]
    (lambda: collection_from_data(graphs(y=lambda at: None if at == 3 else 1)), "graph 3 has no y"),
    (lambda: collection_from_data(graphs(y=lambda at: at % 2 if at else 0.5)), "y differs from graph to graph"),
    (lambda: collection_from_data(graphs(y=lambda at: torch.ones(1 + at % 2))), "y differs from graph to graph"),
    (lambda: collection_from_data(graphs(y=lambda at: 1)), "every graph that has a class has 1"),
    (lambda: collection_from_data(graphs(y=lambda at: 0.25)), "the target is 0.25 for every graph"),
    (lambda: collection_from_data(graphs(y=lambda at: -1)), "the target of every graph is missing"),
    (lambda: collection_from_data(graphs(y=lambda at: 2 if at == 9 else at % 2)), "class 2 appears once"),
    (lambda: collection_from_data(graphs(x=lambda at: torch.ones(9, 1 + at // 20))), "graph 20 has 2 features"),
    (lambda: collection_from_data(graphs(x=lambda at: torch.ones(9 * (at != 4), 2))), r"graph 4: .*got \[0, 2\]"),
    (lambda: collection_from_data(graphs(x=lambda at: torch.full((9, 2), NAN))), "graph 0: feature .* is nan"),
    (lambda: collection_from_data(graphs(x=lambda at: None)), r"graph 0: data\.x is missing"),
    (lambda: collection_from_data(graphs(edge_attr=lambda at: None if at == 6 else torch.ones(3 + at % 4))),
     "edge attributes of graph 6 are not like"),
    (lambda: collection_from_data(graphs(edge_index=lambda at: torch.tensor([[0], [at]]), edge_attr=lambda at: None)),
     "graph 4: edge 0 joins"),
    (lambda: collection_from_data(graphs(12)), "12 items for 10 folds"),
    (lambda: GraphCollection("few", graphs(3), make_target([0, 1], "few")), "3 graphs but 2 targets"),
    (lambda: GraphCollection("few", graphs(4), make_target([0, 1] * 2, "few"), groups=["a"]), "4 graphs but 1 groups"),
    (lambda: collection_from_data(graphs())[torch.ones(3, dtype=torch.bool)], "mask: 3 flags for 40 graphs"),
    (lambda: collection_from_data(graphs()).split(10), "has 10 splits"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message"), BAD, ids=[message for _, message in BAD])
def test_unsound_lists_are_refused_by_name(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(LTGAError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)


def frames(collection: list[Data]) -> dict[str, pd.DataFrame]:
    nodes, edges = [], []
    for at, graph in enumerate(collection):
        for node, (width, height) in enumerate(graph.x.tolist()):
            nodes.append({"graph_id": f"g{at}", "id": f"n{node}", "width": width, "height": height})
        for (source, target), weight in zip(graph.edge_index.t().tolist(), graph.edge_attr.tolist()):
            edges.append({"graph_id": f"g{at}", "source": f"n{source}", "target": f"n{target}", "weight": weight})
    names = [f"g{at}" for at in range(len(collection))]
    whole = pd.DataFrame({"graph_id": names, "label": [["no", "yes"][int(graph.y)] for graph in collection]})
    return {"nodes": pd.DataFrame(nodes), "edges": pd.DataFrame(edges), "graphs": whole}


def write(folder: Path, tables: dict[str, pd.DataFrame], suffix: str = "csv") -> Path:
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        if suffix == "csv":
            table.to_csv(folder / f"{name}.csv", index=False)
        else:
            table.to_parquet(folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_folder_of_tables(suffix: str, shuffled: bool, tmp_path: Path) -> None:
    given = graphs()
    tables = frames(given)
    if shuffled:  # rows of several graphs may stand mixed; each graph keeps the order of its own
        order = tables["nodes"].groupby("graph_id").cumcount().sort_values(kind="stable").index
        tables["nodes"] = tables["nodes"].loc[order]
        tables["edges"] = tables["edges"].iloc[::-1]
    collection = load_dataset(write(tmp_path / "rings", tables, suffix), preparation=Preparation(scale="none"))
    assert isinstance(collection, GraphCollection)
    assert collection.name == "rings"
    assert collection.target.names == ("no", "yes")
    assert collection.graph_names is not None and collection.graph_names[:2] == ("g0", "g1")
    for ours, graph in zip(collection, given, strict=True):
        assert torch.equal(ours.x, graph.x)
        assert int(ours.y) == graph.y
        expected = {(*edge, weight) for edge, weight in zip(map(tuple, graph.edge_index.t().tolist()), graph.edge_attr)}
        found = dict(zip(map(tuple, ours.edge_index.t().tolist()), ours.edge_attr[:, 0].tolist()))
        assert found == {(source, target): float(weight) for source, target, weight in expected}


def test_splits_numbers_and_labels_of_tables(tmp_path: Path) -> None:
    tables = frames(graphs())
    tables["graphs"]["split"] = ["train", "val", "test", ""] * 10
    collection = load_collection(write(tmp_path / "split", tables))
    assert [mask.nonzero().flatten()[:2].tolist() for mask in collection.split(0)] == [[0, 4], [1, 5], [2, 6]]
    tables["graphs"] = tables["graphs"][["graph_id"]].assign(mass=[at / 4 if at else None for at in range(40)])
    number = load_collection(write(tmp_path / "number", tables))
    assert (number.target.kind, number.target.names, bool(number.target.known[0])) == ("number", ("mass",), False)
    tables["graphs"] = tables["graphs"][["graph_id"]].assign(a=[0, 1] * 20, b=[None, 1, 0, 1] * 10)
    labels = load_collection(write(tmp_path / "labels", tables))
    assert (labels.target.kind, labels.target.names) == ("labels", ("a", "b"))
    assert bool(labels.y[0, 1].isnan())
    tables["graphs"] = tables["graphs"][["graph_id"]].assign(label=["None", "nan", "10", "9"] * 10)
    odd = write(tmp_path / "odd", tables)
    assert load_collection(odd, Preparation(missing_labels="class")).target.names == ("10", "9", "None", "nan")
    with pytest.raises(DataError, match=r"label is 'None' or 'nan' \(20 rows\); choose missing_labels=unknown"):
        load_collection(odd)
    tables["graphs"]["label"] = [10, 9] * 20
    assert load_collection(write(tmp_path / "whole", tables)).target.names == ("9", "10")


def test_molecules_in_a_table(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table = pd.DataFrame({"graph_id": range(40), "smiles": ["C" * (1 + at) for at in range(40)], "target": range(40)})
    collection = load_dataset(write(tmp_path / "chains", {"graphs": table}))
    assert [graph.num_nodes for graph in collection] == list(range(1, 41))
    table.loc[[3, 9], "smiles"] = ["C1CC", "nonsense"]
    with pytest.raises(
        DataError, match=r"graphs\.csv: row 4: smiles does not parse \(3: not a SMILES, 9: .*\(2 rows\)"
    ):
        load_dataset(write(tmp_path / "chains", {"graphs": table}))


def broken(change: Callable[[dict[str, pd.DataFrame]], Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        tables = frames(graphs())
        change(tables)
        return write(folder, tables)

    return make


def put(table: str, row: int, column: str, value: Any) -> Callable[[dict[str, pd.DataFrame]], None]:
    def change(tables: dict[str, pd.DataFrame]) -> None:
        tables[table] = tables[table].astype({column: object})
        tables[table].loc[row, column] = value

    return change


def cut(table: str, rows: slice) -> Callable[[dict[str, pd.DataFrame]], None]:
    return lambda tables: tables.update({table: tables[table].drop(tables[table].index[rows])})


UNSOUND: list[tuple[Callable[[Path], Path], str]] = [
    (broken(cut("nodes", slice(0, 3))), r"graphs\.csv: row 1: graph has no nodes in .*nodes\.csv \(g0\)"),
    (broken(cut("graphs", slice(0, 1))), r"nodes\.csv: row 1: graph_id 'g0' is not in .*graphs\.csv \(3 rows\)"),
    (broken(put("nodes", 4, "width", "tall")), r"nodes\.csv: row 5: width is 'tall', expected"),
    (broken(put("nodes", 4, "id", "n0")), r"nodes\.csv: row 5: id 'n0 of graph g1' repeats row 4"),
    (broken(put("edges", 2, "target", "n9")), r"edges\.csv: row 3: target 'n9 of graph g0' is not an id in"),
    (broken(put("graphs", 2, "graph_id", "g1")), r"graphs\.csv: row 3: graph_id 'g1' repeats an earlier one"),
    (broken(put("graphs", 2, "label", "perhaps")), "row 3: label 'perhaps' appears once; merge it"),
    (broken(lambda t: t["graphs"].update({"label": ["no"] * 40})), "the only label is 'no'"),
    (broken(lambda t: t["graphs"].drop(columns="label", inplace=True)), r"graphs\.csv: no target"),
    (broken(lambda t: t["graphs"].insert(1, "split", "dev")), r"row 1: split must be .*none \(40 rows\)"),
    (broken(lambda t: t["graphs"].__setitem__("label", "")), "all labels are missing"),
    (broken(lambda t: t["nodes"].drop(columns="id", inplace=True)), r"nodes\.csv: column 'id' is missing"),
    (broken(lambda t: t.pop("nodes")), r"expected nodes\.csv or nodes\.parquet, but neither"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), UNSOUND, ids=[message for _, message in UNSOUND])
def test_unsound_tables_are_refused_by_name(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(folder)
    assert "\n" not in str(caught.value)


def test_all_problems_at_once(tmp_path: Path) -> None:
    def change(tables: dict[str, pd.DataFrame]) -> None:
        put("nodes", 4, "width", "tall")(tables)
        put("edges", 2, "target", "n9")(tables)
        tables["graphs"]["label"] = "same"

    with pytest.raises(DataError) as caught:
        load_dataset(broken(change)(tmp_path / "mine"))
    for part in ("width is 'tall'", "target 'n9 of graph g0' is not", "the only label is 'same'"):
        assert part in str(caught.value)


def test_text_that_is_not_unicode(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", frames(graphs()))
    (folder / "graphs.csv").write_bytes(b"graph_id,label\n\xff\xfe,1\n")
    with pytest.raises(DataError, match=r"graphs\.csv: row 1: is not utf-8 text"):
        load_dataset(folder)


def test_what_needs_one_graph_with_classes_says_so(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", frames(graphs()))
    with pytest.raises(InputError, match="dataset: mine is for graph classification; give a graph with a class for"):
        load_graph(folder)
    assert load_graph("csbm:num_nodes=100").num_classes == 2


def test_settings_of_collections() -> None:
    with pytest.raises(InputError, match="attributes must be 0 or 1"):
        load_dataset("mutag:attributes=2")
    with pytest.raises(InputError, match="scale must be 0 or 1"):
        load_dataset("enzymes:attributes=1,scale=3")
    with pytest.raises(InputError, match="scale is for attributes; write enzymes:attributes=1,scale=1"):
        load_dataset("enzymes:scale=1")
    with pytest.raises(InputError, match="mutag has no setting 'edges'"):
        load_dataset("mutag:edges=2")
    for name in ("esol", "umls"):
        with pytest.raises(InputError, match=f"{name} is fixed and takes no settings"):
            load_dataset(f"{name}:attributes=1")


@pytest.mark.data
def test_published_graphs_are_judged_as_their_authors_do(data_root: Path) -> None:
    assert load_dataset("mutag", root=data_root).metric == "accuracy"  # though two thirds are of one class
