"""Preparation of tables against pandas and scikit-learn; all problems at once; the same again on another graph."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ltga.data import (
    FittedPreparation,
    MendedWarning,
    Preparation,
    PreparedGraph,
    Tables,
    as_graph,
    as_tables,
    load_dataset,
    prepare_like,
    read_again,
)
from ltga.data.prepare import prepare
from ltga.data.table_cells import days_of, kind_of, numbers_of, text_of
from ltga.data.table_files import read_frame
from ltga.errors import DataError, InputError, RecordError

RNG = np.random.default_rng(0)
COUNT = 200


def people(**changes: Any) -> pd.DataFrame:
    income = RNG.lognormal(10, 1, COUNT)
    income[::7] = np.nan
    table = {
        "id": [f"p{at}" for at in range(COUNT)],
        "label": np.where(np.arange(COUNT) % 3 == 0, "churned", "stayed"),
        "income": income,
        "age": RNG.integers(18, 90, COUNT),
        "city": RNG.choice(["Rome", "Bonn", "Oslo"], COUNT),
        **changes,
    }
    return pd.DataFrame({name: column for name, column in table.items() if column is not None})


def ties(**changes: Any) -> pd.DataFrame:
    ends = RNG.integers(0, COUNT, (600, 2))
    return pd.DataFrame({"source": [f"p{a}" for a in ends[:, 0]], "target": [f"p{b}" for b in ends[:, 1]], **changes})


def fitted(nodes: pd.DataFrame, edges: pd.DataFrame | None = None, **options: Any) -> PreparedGraph:
    return Preparation(**options).fit((nodes, ties() if edges is None else edges))


def column(graph: PreparedGraph, name: str) -> np.ndarray:
    names = graph.arrays.feature_names
    assert names is not None
    return graph.arrays.x[:, names.index(name)]


def test_numbers_and_categories_are_those_of_scikit_learn() -> None:
    nodes = people()
    graph = fitted(nodes)
    imputer, scaler = SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
    filled = imputer.fit_transform(nodes[["income", "age"]])
    np.testing.assert_allclose(column(graph, "income"), scaler.fit_transform(filled[:, :1])[:, 0], rtol=1e-5)
    np.testing.assert_allclose(column(graph, "age"), scaler.fit_transform(filled[:, 1:2])[:, 0], atol=1e-6)
    np.testing.assert_array_equal(column(graph, "income is missing"), filled[:, 2])
    hot = OneHotEncoder(sparse_output=False).fit(nodes[["city"]])
    towns = np.stack([column(graph, f"city={town}") for town in hot.categories_[0]], axis=1)
    np.testing.assert_array_equal(towns, hot.transform(nodes[["city"]]))
    assert graph.arrays.feature_names == (
        "income", "income is missing", "age", "city=Bonn", "city=Oslo", "city=Rome"
    )  # fmt: skip


@pytest.mark.parametrize(("how", "strategy"), [("mean", "mean"), ("median", "median"), ("zero", "constant")])
def test_empty_cells_are_filled_as_asked(how: str, strategy: str) -> None:
    nodes = people()
    graph = fitted(nodes, empty_cells=how, indicator=False, scale="none")
    expected = SimpleImputer(strategy=strategy, fill_value=0.0).fit_transform(nodes[["income"]])
    np.testing.assert_allclose(column(graph, "income"), expected[:, 0], rtol=1e-6)
    assert "income is missing" not in (graph.arrays.feature_names or ())


def test_another_graph_is_prepared_with_the_numbers_of_the_first() -> None:
    nodes = people()
    first = fitted(nodes)
    stored = json.loads(json.dumps(first.fitted.model_dump(mode="json"), allow_nan=False))
    again = FittedPreparation.model_validate(stored)
    assert again == first.fitted
    other = people(income=RNG.normal(size=COUNT), city=["Rome"] * COUNT).drop(columns="label")
    applied = again.apply((other, ties()))
    scaler = StandardScaler().fit(SimpleImputer(strategy="median").fit_transform(nodes[["income"]]))
    np.testing.assert_allclose(
        column(applied, "income"), scaler.transform(other[["income"]].to_numpy())[:, 0], rtol=1e-4
    )
    assert applied.arrays.feature_names == first.arrays.feature_names
    assert (applied.arrays.y == -1).all() and applied.arrays.class_names == ("churned", "stayed")
    data = applied.data()
    assert data.x.shape == (COUNT, 6) and data.validate()


def test_the_same_tables_give_the_same_graph() -> None:
    nodes, edges = people(), ties(weight=RNG.random(600), kind=RNG.choice(["call", "sms"], 600))
    first = fitted(nodes, edges)
    again = first.fitted.apply((nodes, edges))
    assert first.dataset().fingerprint == again.dataset().fingerprint


def test_a_new_category_or_class_is_refused_or_other() -> None:
    nodes, edges = people(), ties()
    new = nodes.assign(city=["Paris", *nodes["city"][1:]], label=["gone", *nodes["label"][1:]])
    with pytest.raises(DataError, match=r"2 problems.*label is 'gone'.*row 1: city is 'Paris', which was not there"):
        fitted(nodes, edges).fitted.apply((new, edges))
    other = fitted(nodes, edges, new_category="other").fitted.apply((new, edges))
    hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(nodes[["city"]])
    np.testing.assert_array_equal(other.arrays.x[:, 3:], hot.transform(new[["city"]]))
    assert other.arrays.y[0] == -1 and len(other.problems.notes) >= 2


def test_a_column_that_is_gone_is_named() -> None:
    nodes, edges = people(), ties()
    with pytest.raises(DataError, match="column 'age' is missing, on which the model relies"):
        fitted(nodes, edges).fitted.apply((nodes.drop(columns="age"), edges))


def test_many_categories_are_hashed_and_names_left_out() -> None:
    nodes = people(code=[f"c{at % 50}" for at in range(COUNT)], name=[f"name {at}" for at in range(COUNT)])
    graph = fitted(nodes, hash_columns=16)
    hashed = np.stack([column(graph, f"code#{at}") for at in range(16)], axis=1)
    assert (hashed.sum(axis=1) == 1).all()
    for code, rows in nodes.groupby("code").indices.items():  # equal codes, equal columns
        assert (hashed[rows] == hashed[rows[0]]).all(), code
    assert len(np.unique(hashed, axis=0)) > 8
    assert not any(name.startswith("name") for name in graph.arrays.feature_names or ())
    assert fitted(nodes, categories="drop").arrays.x.shape[1] == 3
    assert fitted(nodes, categories="one-hot").arrays.x.shape[1] == 3 + 3 + 50 + COUNT
    with pytest.raises(DataError, match=r"3 problems.*city: text with 3 different values.*choose categories="):
        fitted(nodes, categories="error")


def test_dates_are_days_since_1970() -> None:
    dates = pd.date_range("2020-02-27", periods=COUNT, freq="36h")
    expected = (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    for cells in (dates, dates.strftime("%Y-%m-%dT%H:%M:%S"), dates.tz_localize("UTC")):
        graph = fitted(people(joined=cells), scale="none")
        np.testing.assert_allclose(column(graph, "joined"), expected, rtol=1e-7)
    day_first = people(joined=dates.normalize().strftime("%d.%m.%Y"))
    graph = fitted(day_first, scale="none", date_format="%d.%m.%Y")
    np.testing.assert_allclose(column(graph, "joined"), np.floor(expected), rtol=1e-7)
    assert "joined" not in str(fitted(people(joined=dates), dates="drop").arrays.feature_names)
    with pytest.raises(DataError, match="joined: holds dates; choose dates="):
        fitted(people(joined=dates), dates="error")


@pytest.mark.parametrize("rule", ["sum", "mean", "first"])
def test_repeated_edges_are_merged_as_pandas_groups_them(rule: str) -> None:
    edges = ties(weight=RNG.random(600), length=RNG.random(600))
    edges = pd.concat([edges, edges[:200].assign(weight=1.5), edges[100:150].assign(length=7.0)])
    graph = fitted(people(), edges, repeated_edges=rule, scale="none")
    groups = edges.groupby(["source", "target"])
    expected = pd.DataFrame({
        "weight": groups["weight"].agg(rule), "length": groups["length"].agg("first" if rule == "first" else "mean")
    })  # fmt: skip
    ids = np.array(graph.node_ids)
    assert graph.arrays.edge_attr is not None
    found = pd.DataFrame(graph.arrays.edge_attr, columns=["weight", "length"])
    found.index = pd.MultiIndex.from_arrays([ids[graph.arrays.edges[:, 0]], ids[graph.arrays.edges[:, 1]]])
    assert len(found) == len(expected)
    np.testing.assert_allclose(found.loc[expected.index], expected, rtol=1e-6)


@pytest.mark.parametrize(("rule", "weight"), [("mean", 3.5), ("sum", 7.0), ("first", 2.0)])
def test_an_edge_beside_its_reverse(rule: str, weight: float) -> None:
    nodes = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", "a"], "f": [1, 2, 3]})
    edges = pd.DataFrame({"source": [1, 2, 3], "target": [2, 1, 1], "weight": [2.0, 5.0, 1.0]})
    graph = fitted(nodes, edges, convention="undirected, once", reversed_edges=rule, scale="none").dataset().data
    pairs = dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_attr[:, 0].tolist()))
    assert pairs == {(0, 1): weight, (1, 0): weight, (0, 2): 1.0, (2, 0): 1.0}
    directed = fitted(nodes, edges, scale="none")
    assert directed.dataset().data.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 0]]
    assert any("the other way round" in note for note in directed.problems.notes)
    for option in ({"convention": "undirected, once", "reversed_edges": "error"}, {"convention": "both directions"}):
        with pytest.raises(DataError, match=r"row [23]: (is an earlier edge the other way|has no row the other way)"):
            fitted(nodes, edges, **option)


def test_edge_attributes_are_standardised_after_merging() -> None:
    edges = ties(weight=RNG.random(600) * 50_000)
    edges = pd.concat([edges, edges[:99]])
    graph = fitted(people(), edges)
    assert graph.arrays.edge_attr is not None
    summed = edges.groupby(["source", "target"])["weight"].sum().to_numpy()
    expected = StandardScaler().fit_transform(summed[:, None])
    np.testing.assert_allclose(np.sort(graph.arrays.edge_attr[:, 0]), np.sort(expected[:, 0]), atol=1e-5)


def test_equal_weights_of_repeated_edges_are_counted() -> None:
    nodes = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", "a"], "f": [1, 2, 3]})
    edges = pd.DataFrame({"source": [1, 1, 2], "target": [2, 2, 3], "weight": [1, 1, 1]})
    graph = fitted(nodes, edges, scale="none")
    assert graph.arrays.edge_attr is not None and graph.arrays.edge_attr.tolist() == [[2.0], [1.0]]
    assert fitted(nodes, edges, repeated_edges="mean").arrays.edge_attr is None


def test_graphs_without_features_get_structural_ones() -> None:
    bare = people(income=None, age=None, city=None)
    graph = fitted(bare)
    assert graph.arrays.feature_names == ("log-degree", "pagerank", "clustering", "core")
    np.testing.assert_allclose(graph.arrays.x.mean(axis=0), 0, atol=1e-5)
    both = fitted(people(), structure="degree,random-walk-3")
    assert both.arrays.x.shape[1] == 6 + 4
    with pytest.raises(DataError, match="no feature columns are left"):
        fitted(bare, structure="none")


def test_positions_in_one_graph_mean_nothing_in_another() -> None:
    nodes, edges = people(), ties()
    graph = fitted(nodes, edges, structure="laplacian-3")
    np.testing.assert_array_equal(graph.fitted.apply((nodes, edges)).arrays.x, graph.arrays.x)
    with pytest.raises(DataError, match="another graph than the one whose Laplacian places the nodes"):
        graph.fitted.apply((nodes, edges[:-1]))


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(
        b"id,label,age,town,kind\na,x,1,R\xf6m,k\nb,y,2,B,k\nb,x,three,B,k\nc,,,B,k\nd,x,5\n,x,6,B,k\n"
    )
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,1\na,z,2\nb,c,x\nc,a,1\na,b,7\nb,a,1\nc,c,1\n")
    options = Preparation()
    outcome = prepare(as_tables(tmp_path, options), options)
    assert outcome.graph is None
    told = {(Path(problem.where).name, problem.what.split(",")[0], problem.count, problem.rows, problem.weight)
            for problem in outcome.problems}  # fmt: skip
    assert {
        ("nodes.csv", "is not utf-8 text (byte 0xf6)", 1, (1,), "error"),
        ("nodes.csv", "3 fields", 1, (5,), "error"),
        ("nodes.csv", "id is blank", 1, (6,), "error"),
        ("nodes.csv", "id 'b' repeats row 2", 1, (3,), "error"),
        ("nodes.csv", "age is 'three'", 1, (3,), "error"),
        ("nodes.csv", "label 'y' appears once", 1, (2,), "note"),
        ("edges.csv", "target 'z' is not an id in " + str(tmp_path / "nodes.csv"), 1, (2,), "error"),
        ("edges.csv", "weight is 'x'", 1, (3,), "error"),
        ("edges.csv", "repeats an earlier edge", 1, (5,), "mended"),
        ("edges.csv", "is an earlier edge the other way round", 1, (6,), "note"),
        ("edges.csv", "joins a node with itself", 1, (7,), "note"),
    } <= told
    assert ("nodes.csv, label", "1 of 6 labels are not known", 1, (), "note") in told
    with pytest.raises(DataError, match="7 problems") as caught:
        load_dataset(tmp_path)
    assert "\n" not in str(caught.value)
    mended = Preparation(
        encoding="cp1252", repeated_ids="first", stray_cells="empty", unknown_ids="drop", label="label"
    )
    (tmp_path / "nodes.csv").write_bytes(
        (tmp_path / "nodes.csv").read_bytes().replace(b"d,x,5\n,x,6,B,k\n", b"d,y,5,,k\n")
    )
    graph = load_dataset(tmp_path, preparation=mended)
    assert graph.node_ids == ("a", "b", "c", "d")
    assert "town=Röm" in (graph.feature_names or ())


def test_whoever_does_not_read_notes_is_warned(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "nodes.csv", index=False)
    pd.concat([ties()[:50]] * 2).to_csv(tmp_path / "edges.csv", index=False)
    with pytest.warns(MendedWarning, match=r"mended: .*repeats an earlier edge.*\| .*income is empty.*dataset\.notes"):
        load_dataset(tmp_path)
    people(income=None).to_csv(tmp_path / "nodes.csv", index=False)
    ties().drop_duplicates().to_csv(tmp_path / "edges.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset(tmp_path)


def test_rows_keep_their_numbers_when_others_are_left_out() -> None:
    nodes = pd.DataFrame({"id": ["a", "a", "b"], "label": ["x", "x", "y"], "f": ["1", "2", ""]})
    edges = pd.DataFrame({"source": ["q", "a", "b"], "target": ["a", "b", "a"], "weight": ["1", "", "2"]})
    graph = fitted(nodes, edges, repeated_ids="first", unknown_ids="drop")
    empty = [problem for problem in graph.problems if "is empty" in problem.what]
    assert [problem.rows for problem in empty] == [(3,), (2,)]


LABELS: list[tuple[list[Any], str | None]] = [
    (["", None, "-1", ""] * 10, "all labels are missing"),
    (["a", "a", "", "a"] * 10, "the only label is 'a'; classification needs at least two"),
    ([f"n{at}" for at in range(40)], "40 different labels .* look like names"),
    ([at + 0.5 for at in range(40)], "look like numbers to predict"),
    (["a", "b"] * 19 + ["once", "b"], None),
]


@pytest.mark.parametrize(("labels", "message"), LABELS, ids=["missing", "one", "names", "numbers", "fine"])
def test_labels_that_cannot_be_learnt(labels: list[Any], message: str | None) -> None:
    nodes = pd.DataFrame({"id": range(40), "label": labels, "f": range(40)})
    edges = pd.DataFrame({"source": range(39), "target": range(1, 40)})
    if message is None:
        assert any("'once' appears once" in note for note in fitted(nodes, edges).problems.notes)
        return
    with pytest.raises(DataError, match=message):
        fitted(nodes, edges, predict="class")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": "none"}, "there is no option 'scales'; did you mean 'scale'"),
        ({"scale": "robust"}, "prepare: scale: .*'standard' or 'none', got 'robust'"),
        ({"structure": "degre"}, "did you mean 'degree'"),
        ({"encoding": "utf-9"}, "encoding: no such encoding"),
        ({"one_hot_limit": 0}, "one_hot_limit: .*greater than or equal to 1"),
        ({"convention": "sideways"}, "convention: "),
        ({"date_format": "day"}, "date_format: is no format of dates"),
        ({"date_format": "%Q"}, "date_format: is no format of dates"),
        ({"source": "a", "target": "a"}, "source and target are both 'a'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Preparation(**options)


def test_words_of_the_command_line() -> None:
    assert Preparation.from_words(["drop=a, b", "indicator=false"]).changed == {"drop": ["a", "b"], "indicator": False}
    for words, message in ((["label"], "option=value"), (["label=a", "label=b"], "contradicts itself")):
        with pytest.raises(InputError, match=message):
            Preparation.from_words(words)


def test_a_graph_is_read_again_from_what_it_says(tmp_path: Path) -> None:
    nodes, edges = people(), ties(weight=RNG.random(600))
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_csv(tmp_path / "edges.csv", index=False)
    graph = load_dataset(tmp_path, convention="undirected, once", preparation=Preparation(scale="none", drop=("age",)))
    assert graph.data.is_undirected()
    reading = json.loads(json.dumps(graph.reading, allow_nan=False))
    assert Path(reading["path"]).is_absolute()
    again = read_again(reading)
    assert again.fingerprint == graph.fingerprint and again.name == graph.name and again.reading == graph.reading
    moved = read_again({**reading, "path": "gone"}, tmp_path)
    assert moved.fingerprint == graph.fingerprint
    grown = prepare_like(reading, (pd.concat([nodes, nodes[:1].assign(id="new", label="")]), edges))
    assert torch.equal(grown.data().x[:-1], graph.data.x) and grown.node_ids[-1] == "new"
    made = Preparation().fit((nodes, edges)).dataset()
    with pytest.raises(InputError, match=r"made in memory \(frames\); pass the graph itself"):
        read_again(made.reading or {})
    assert read_again(made.reading or {}, (nodes, edges)).fingerprint == made.fingerprint
    for broken in ({}, {"format": "tables"}, {**reading, "preparation": {"options": {}}}):
        with pytest.raises(RecordError, match="reading: "):
            read_again(broken)


def test_splits_are_read_again_and_passed_over_elsewhere(tmp_path: Path) -> None:
    nodes = people(split=["train", "train", "val", "test"] * (COUNT // 4))
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    ties().to_csv(tmp_path / "edges.csv", index=False)
    graph = load_dataset(tmp_path)
    assert graph.num_splits == 1 and read_again(graph.reading or {}).fingerprint == graph.fingerprint
    bare = prepare_like(graph.reading or {}, (nodes.assign(label="", split="someday"), ties()))
    assert bare.arrays.masks is None and bare.problems.errors == []


def test_columns_that_are_not_there_are_named() -> None:
    for option, name in (("drop", "agee"), ("categorical", "agee"), ("split", "part"), ("weight", "strength")):
        with pytest.raises(DataError, match=rf"{option}={name}: there is no such column") as caught:
            fitted(people(), ties(weight=1.0), **{option: name if option in ("split", "weight") else (name,)})
        assert option not in ("drop", "categorical") or "did you mean 'age'" in str(caught.value)
    assert "age" not in (fitted(people(), drop=("age",)).arrays.feature_names or ())
    coded = fitted(people(age=RNG.integers(0, 3, COUNT)), categorical=("age",)).arrays.feature_names
    assert {"age=0", "age=1", "age=2"} <= set(coded or ())


def test_known_and_packed_graphs_are_read_again(tmp_path: Path) -> None:
    graph = load_dataset("csbm:num_nodes=60,snr=2")
    assert read_again(graph.reading or {}).fingerprint == graph.fingerprint
    path = tmp_path / "mine.npz"
    np.savez(path, node_features=np.eye(8), node_labels=np.arange(8) % 2, edges=np.array([[0, 1], [2, 3]]))
    graph = load_dataset(path, convention="directed")
    assert read_again(graph.reading or {}).fingerprint == graph.fingerprint
    with pytest.raises(InputError, match=r"prepare: \.npz holds finished features"):
        load_dataset(path, preparation=Preparation())
    with pytest.raises(InputError, match="prepare: a known dataset is prepared already"):
        load_dataset("cora", preparation=Preparation())


def test_cells_of_every_kind() -> None:
    assert text_of(pd.Series([True, 1, 1.0, None, "  x ", 2.5], dtype=object)).to_pylist() == [
        "True", "1", "1", "", "x", "2.5"
    ]  # fmt: skip
    assert text_of(pd.Series(["a", "b", "a"], dtype="category")).to_pylist() == ["a", "b", "a"]
    assert text_of(pd.Series(["\udcff"], dtype=object)).to_pylist() == ["\\udcff"]
    numbers = numbers_of(pd.Series(["1", "0", " 2e3 ", "?", "x", "1e39", "NaN"]))
    np.testing.assert_array_equal(numbers.values, [1, 0, 2000, np.nan, np.nan, np.nan, np.nan])
    assert numbers.empty.tolist() == [False, False, False, True, False, False, True]
    assert numbers.stray.tolist() == [False, False, False, False, True, True, False]
    assert days_of(pd.Series(["2024-02-30"])).stray.all()
    kinds = [["1", "2", "x"], ["1", "x", "y"], ["", ""], ["true", "false"], [{"a": 1}, None], ["2024-01-01", "-"]]
    assert [kind_of(pd.Series(cells)) for cells in kinds] == [
        "number", "category", "number", "number", "nested", "date"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", "a,b\r\n1,2\r\n\r\n3,4", "a ,b\n1, x y \n", "a\tb,c\n1,2\n", "a,b\n,\n"]
)
def test_the_quick_csv_reader_is_the_careful_one(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())

    def cells() -> list[Any]:
        frame = read_frame(path)
        return [list(frame.columns), *(text_of(frame[name]).to_pylist() for name in frame)]

    quick = cells()
    monkeypatch.setattr("ltga.data.table_files._plain_csv", lambda *_: None)
    assert cells() == quick


@pytest.mark.parametrize("sign", [";", "\t"])
def test_other_signs_between_columns(sign: str, tmp_path: Path) -> None:
    nodes, edges = people(), ties()
    nodes.to_csv(tmp_path / "nodes.csv", index=False, sep=sign)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    expected = fitted(nodes, edges).arrays.x
    np.testing.assert_allclose(Preparation().fit(tmp_path).arrays.x, expected, atol=1e-6)


@pytest.mark.parametrize("cells", [["1,5", "2,25", "3,75"], ["1.234,5", "12", "7,1"], ["12 345", "9'000", "x"]])
def test_numbers_of_other_countries_are_no_categories(cells: list[str]) -> None:
    nodes = pd.DataFrame({"id": [1, 2, 3], "label": ["a", "b", "a"], "f": cells})
    with pytest.raises(DataError, match=r"row [12]: f is '.*', expected a finite number"):
        fitted(nodes, pd.DataFrame({"source": [1, 2], "target": [2, 3]}))


def test_nodes_called_by_anything() -> None:
    grid = nx.grid_2d_graph(3, 4)
    nx.set_node_attributes(grid, {node: "ab"[sum(node) % 2] for node in grid}, "label")
    graph = as_graph(grid)
    assert graph.node_ids is not None and graph.node_ids[1] == "(0, 1)"
    assert graph.data.num_edges == 2 * grid.number_of_edges()


def test_tables_say_what_they_are() -> None:
    assert repr(Tables(ties(), people())) == "Tables('graph', 200 rows of nodes, 600 rows of edges)"
    with pytest.raises(InputError, match="edges: expected a data frame, got list"):
        Tables([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["Yes", "yes", "no", "no"], "'Yes' and 'yes' differ in capitals only"),
        (["1", "2.5", "1", "2.5"], "2 different numbers"),
        (["1", "2", "1", "2"], None),
        (["1", "01", "1", "2"], "'01' and '1' are one number; taken as 2 classes; write it in one way if they are one"),
        (["1", "1.0", "2", "2.0"], "'1' and '1.0' are one number, and so are 1 more; taken as 4 classes"),
    ],
)
def test_labels_that_may_be_meant_otherwise_are_told(labels: list[str], said: str | None) -> None:
    nodes = pd.DataFrame({"id": list("abcd"), "label": labels, "age": [1, 2, 3, 4]})
    graph = fitted(nodes, pd.DataFrame({"source": list("abc"), "target": list("bcd")}))
    notes = " ".join(graph.problems.notes)
    assert not re.search("different|capitals|one number", notes) if said is None else said in notes


def test_true_among_other_numbers_has_strayed_there() -> None:
    assert numbers_of(pd.Series(["True", "false", "1", "0", ""])).values[:4].tolist() == [1, 0, 1, 0]
    assert numbers_of(pd.Series(["1", "2.5", "True"])).stray.tolist() == [False, False, True]


def test_ids_lose_the_spaces_around_them_and_it_is_said() -> None:
    nodes = pd.DataFrame({"id": [" a", "b", "c", "d"], "label": list("xyxy"), "age": [1, 2, 3, 4]})
    graph = fitted(nodes, pd.DataFrame({"source": list("abc"), "target": ["b", "c", "d "]}))
    assert graph.node_ids == ("a", "b", "c", "d")
    assert "id ' a' has spaces around it; the spaces are taken off, in predictions too" in " ".join(
        graph.problems.notes
    )


@pytest.mark.parametrize("options", [{"drop": "id"}, {"drop": "target"}, {"categorical": "label"}])
def test_columns_that_are_no_features_are_not_chosen_among_them(options: dict[str, str]) -> None:
    with pytest.raises(DataError, match="and is no feature; leave the option out"):
        fitted(people(), **options)
    assert fitted(people(), drop="label", predict="links").arrays.x.shape[0] == len(people())
