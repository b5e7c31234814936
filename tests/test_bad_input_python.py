"""Bad input from Python and from files: one line that names the culprit, and nothing half-written left behind."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import ltga
from ltga import LTGAClassifier, LTGAConv, Nodes, Protocol, build_model, fit, load_dataset, load_run
from ltga.data import (
    Dataset,
    Preparation,
    collection_from_data,
    csbm,
    dataset_from_data,
    digits_noise,
    load_data,
    make_target,
    save_data,
    split_links,
)  # fmt: skip
from ltga.errors import LTGAError
from ltga.functional import entmax, q_softmax, segment_q_softmax

QUICK = {"epochs": 1, "hidden_channels": 2, "heads": 1}
NAN = float("nan")


def graph(**changes: Any) -> Data:
    generator = torch.Generator().manual_seed(0)
    values: dict[str, Any] = {
        "x": torch.randn(20, 3, generator=generator),
        "y": torch.arange(20) % 2,
        "edge_index": torch.randint(0, 20, (2, 40), generator=generator),
        **changes,
    }
    return Data(**{key: value for key, value in values.items() if value is not None})


def changed(tensor: torch.Tensor, at: Any, value: float) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[at] = value
    return tensor


def masks(train: range, val: range, test: range) -> dict[str, torch.Tensor]:
    numbers = torch.arange(20)
    parts = {"train_mask": train, "val_mask": val, "test_mask": test}
    return {name: torch.isin(numbers, torch.tensor(list(part), dtype=torch.long)) for name, part in parts.items()}


def train_on(**changes: Any) -> Any:
    return fit(graph(**changes), "ltga-head", protocol=QUICK)


def convolve(x: Any = None, edge_index: Any = None, edge_attr: Any = None, **settings: Any) -> Any:
    x = graph().x if x is None else x
    return LTGAConv(3, 2, **settings)(x, graph().edge_index if edge_index is None else edge_index, edge_attr)


def classify(X: Any = None, y: Any = None, edge_index: Any = None, fit_with: Any = None, **settings: Any) -> Any:
    classifier = LTGAClassifier(**{**QUICK, **settings})
    X, y = graph().x if X is None else X, graph().y if y is None else y
    return classifier.fit(X, y, graph().edge_index if edge_index is None else edge_index, **(fit_with or {}))


VALUES: list[tuple[str, Callable[[], Any], str]] = [
    # The graph
    ("NaN feature", lambda: train_on(x=changed(graph().x, (4, 1), NAN)), r"feature \[1\] of node 4 is nan"),
    ("infinite feature", lambda: train_on(x=changed(graph().x, (4, 1), float("inf"))), "of node 4 is inf"),
    ("features without columns", lambda: train_on(x=torch.ones(20, 0)), r"\[nodes, features\], got \[20, 0\]"),
    ("features as a list of numbers", lambda: train_on(x=torch.ones(20)), r"\[nodes, features\], got \[20\]"),
    ("sparse features", lambda: train_on(x=torch.eye(20).to_sparse()), r"data\.x is sparse"),
    ("complex features", lambda: train_on(x=torch.ones(20, 3, dtype=torch.complex64)), r"data\.x .*complex"),
    ("no features", lambda: train_on(x=None), r"data\.x is missing"),
    ("no labels", lambda: train_on(y=None), r"data\.y is missing"),
    ("no edges", lambda: train_on(edge_index=None), r"data\.edge_index is missing"),
    ("classes that may be numbers", lambda: train_on(y=(torch.arange(20) % 2).float()), r"for classes give y.long\(\)"),
    ("a number that is constant", lambda: train_on(y=torch.full((20,), 2.5)), "the target is 2.5 for every node"),
    ("a number that is missing", lambda: train_on(y=torch.full((20,), NAN)), "the target of every node is missing"),
    ("a number that is infinite", lambda: train_on(y=changed(torch.rand(20), 3, float("inf"))), "of node 3 is inf"),
    ("numbers for some nodes", lambda: train_on(y=torch.rand(19)), "20 nodes but 19 with a target"),
    ("labels that are counts", lambda: train_on(y=torch.arange(40).reshape(20, 2)), "of node 1 is 2; use 0, 1"),
    ("a label that all have", lambda: train_on(y=torch.ones(20, 2).long()), "label '0' is 1 for every node"),
    ("labels of three dimensions", lambda: train_on(y=torch.ones(20, 2, 2)), "one value for every node, got a target"),
    ("training on no graphs", lambda: fit([], "gcn", protocol=QUICK), "expected a list of PyG Data"),
    ("few graphs", lambda: fit([graph(y=n % 2) for n in range(6)], "gcn", protocol=QUICK), "6 items for 10 folds"),
    ("a graph without a target", lambda: fit([graph(y=None)] * 30, "gcn", protocol=QUICK), "graph 0 has no y"),
    ("links of a graph with few edges", lambda: fit(graph(edge_index=torch.tensor([[0], [1]])), "gcn", task="link"),
     "1 edges are too few to hold out"),
    ("a task for nobody", lambda: fit(graph(), "gcn", task="community"), "task: got 'community'; use one of"),
    ("graphs of one graph", lambda: fit(graph(), "gcn", task="graph"), "graph is for node classification"),
    ("options without a task", lambda: fit(graph(), "gcn", options={"each": 3}), "node classification has none"),
    ("a label out of range", lambda: train_on(y=changed(graph().y, 3, -2)), "node 3 has label -2"),
    ("too few labels", lambda: train_on(y=torch.arange(19) % 2), "one int64 label for each of 20 nodes"),
    ("a single class", lambda: train_on(y=torch.zeros(20, dtype=torch.long)), "at least two"),
    ("all unlabelled", lambda: train_on(y=torch.full((20,), -1)), "at least two"),
    ("an edge to nowhere", lambda: train_on(edge_index=changed(graph().edge_index, (1, 7), 20)), "edge 7 joins"),
    ("a negative index", lambda: train_on(edge_index=changed(graph().edge_index, (0, 7), -1)), "edge 7 joins"),
    ("edges as fractions", lambda: train_on(edge_index=graph().edge_index.float()), "int64 edge_index"),
    ("edges the other way round", lambda: train_on(edge_index=graph().edge_index.T), r"edge_index of shape \[2, E\]"),
    ("too few edge attributes", lambda: train_on(edge_attr=torch.ones(39)), r"edge_attr of shape \[40, D\]"),
    ("NaN edge attribute", lambda: train_on(edge_attr=changed(torch.ones(40), 5, NAN)), "of edge 5 is nan"),
    ("overlapping parts", lambda: train_on(**masks(range(10), range(9, 15), range(15, 20))), "node 9 is in train and"),
    ("no training nodes", lambda: train_on(**masks(range(0), range(10), range(10, 20))), "no training nodes"),
    ("no validation nodes", lambda: train_on(**masks(range(10), range(0), range(10, 20))), "no validation nodes"),
    ("only a training mask", lambda: train_on(train_mask=torch.ones(20) > 0), "found train_mask only"),
    ("masks of another length", lambda: train_on(**{k: v[:9] for k, v in masks(*[range(3)] * 3).items()}), "train"),
    ("an unlabelled training node", lambda: train_on(
        y=changed(graph().y, 2, -1), **masks(range(10), range(10, 15), range(15, 20))), "node 2 is unlabelled"),
    ("class names that repeat", lambda: train_on(class_names=["a", "a"]), "class names repeat"),
    ("a heterogeneous graph", lambda: fit(HeteroData(), "gcn"), "dataset: expected a Dataset, a PyG Data"),
    ("a number for a graph", lambda: fit(7), "dataset: expected"),
    ("features as a list", lambda: dataset_from_data(graph(x=[[1.0]] * 20)), r"data\.x is missing"),
    # Settings
    ("an unknown method", lambda: fit(graph(), "ltga-egde"), "did you mean 'ltga-edge'"),
    ("an unknown dataset", lambda: load_dataset("coraa"), "did you mean 'cora'"),
    ("an unknown knob", lambda: load_dataset("csbm:degre=3"), "csbm has no setting 'degre'"),
    ("a knob that is no number", lambda: load_dataset("csbm:degree=many"), "degree must be a"),
    ("a negative seed", lambda: fit(graph(), seed=-1), "seed: expected a whole number from 0, got -1"),
    ("a split that is not there", lambda: fit(graph(), split=10), "split: got 10"),
    ("an unknown setting", lambda: Protocol(epoch=3), "epoch: the protocol has no such setting; did you mean 'epochs'"),
    ("no heads", lambda: Protocol(heads=0), "heads: .*greater than or equal to 1 or 'auto', got 0"),
    ("dropout of everything", lambda: Protocol(dropout=1), "dropout: .*less than 1, got 1"),
    ("a learning rate of NaN", lambda: Protocol(lr=NAN), "lr: .*got nan"),
    ("a negative warm-up", lambda: Protocol(warmup=-1), "warmup: .*got -1"),
    ("delta beyond the range", lambda: Protocol(delta=3.5), r"delta: .*got 3\.5"),
    ("an unknown backend", lambda: Protocol(backend="cuda"), "backend: .*got 'cuda'"),
    ("text for a number", lambda: Protocol(epochs="many"), "epochs: .*got 'many'"),
    ("linkx with residuals", lambda: fit(graph(), "linkx", protocol={"residual": True}), "residual: linkx has no such"),
    ("gcn in batches", lambda: fit(graph(), "gcn", minibatch={}), "minibatch: gcn needs the whole graph"),
    ("fan-outs and layers", lambda: fit(graph(), minibatch={"fanout": (1, 2, 3)}), "fanout: has 3 numbers"),
    ("no digits neighbours", lambda: digits_noise(k=0), "k: got 0"),
    ("no csbm nodes", lambda: csbm(num_nodes=0), "num_nodes: "),
    # Layers and models
    ("a layer without heads", lambda: convolve(heads=0), "heads: expected a whole number from 1, got 0"),
    ("a layer without outputs", lambda: LTGAConv(3, 0), "out_channels: expected a whole number from 1, got 0"),
    ("a layer with dropout 2", lambda: convolve(dropout=2.0), r"dropout: must lie in \[0, 1\]"),
    ("a frozen q out of range", lambda: convolve(index=9.0), r"q must lie in \(-1, 4\), got 9"),
    ("a frozen q of NaN", lambda: convolve(index=NAN), r"q must lie in \(-1, 4\), got nan"),
    ("an unknown index", lambda: convolve(index="node"), "index: expected 'global'"),
    ("delta of zero", lambda: convolve(delta=0.0), r"delta: must lie in \(0, 3\]"),
    ("an unknown scoring", lambda: convolve(scoring="mlp"), "scoring: expected one of"),
    ("an unknown normaliser", lambda: convolve(normalizer="l2"), "normalizer: expected one of"),
    ("an unknown modifier", lambda: convolve(modifier="edge"), "modifier: expected"),
    ("an unknown layer backend", lambda: convolve(backend="cuda"), "backend: expected one of"),
    ("features of another width", lambda: convolve(x=torch.ones(20, 4)), "x: has 4 features"),
    ("features that are whole numbers", lambda: convolve(x=torch.ones(20, 3).long()), "x: expected a floating-point"),
    ("features in double precision", lambda: convolve(x=graph().x.double()), "x: is torch.float64"),
    ("a layer's edge to nowhere", lambda: convolve(edge_index=torch.tensor([[0], [20]])), "edge 0 has target 20"),
    ("attributes nobody asked for", lambda: convolve(edge_attr=torch.ones(40, 1)), "edge_attr: given, but"),
    ("a model without layers", lambda: build_model("gatv2", 3, 2, num_layers=0), "num_layers: expected a whole number"),
    ("a model with dropout 2", lambda: ltga.LTGA(3, 2, dropout=2.0), r"dropout: must lie in \[0, 1\], got 2"),
    ("a model with a typo", lambda: build_model("gcn", 3, 2, hiden_channels=4), "did you mean 'hidden_channels'"),
    ("a model without classes", lambda: ltga.LTGA(3, 0), "num_classes: expected a whole number from 1, got 0"),
    ("entmax at infinity", lambda: entmax(torch.ones(3), float("inf")), "alpha: must be finite"),
    ("q that does not fit", lambda: q_softmax(torch.ones(3), torch.ones(2)), "q: "),
    ("segments that do not fit", lambda: segment_q_softmax(torch.ones(3), 1.0, index=torch.zeros(2).long()), "index"),
    # The classifier
    ("no edges at all", lambda: LTGAClassifier().fit(graph().x, graph().y), "edge_index: is missing"),
    ("edges twice", lambda: classify(X=Nodes(graph().x, graph().edge_index)), "X is Nodes and has its own edges"),
    ("edges in rows", lambda: classify(edge_index=graph().edge_index.T), r"transpose it with edge_index\.T"),
    ("text features", lambda: classify(X=[["a"]] * 20), "X: expected numbers"),
    ("NaN in X", lambda: classify(X=changed(graph().x, (4, 1), NAN)), "of node 4 is nan"),
    ("continuous targets", lambda: classify(y=np.linspace(0, 1, 20)), "y: Unknown label type: continuous"),
    ("targets of another length", lambda: classify(y=[0, 1]), "y: expected one label for each of 20 rows"),
    ("-1 and 1 as classes", lambda: classify(y=np.where(graph().y > 0, 1, -1)), "-1 means unlabelled"),
    ("mixed labels", lambda: classify(y=np.array(["a", 1] * 10, dtype=object)), "y: labels are a mixture of int, str"),
    ("a validation mask of numbers", lambda: classify(fit_with={"val_mask": [1]}), "val_mask: expected 20 booleans"),
    ("validating everything", lambda: classify(fit_with={"val_mask": np.ones(20, bool)}), "no training nodes"),
    ("no validation share", lambda: classify(validation_fraction=0.0), "validation_fraction: must lie between"),
    ("a random state of text", lambda: classify(random_state="one"), "random_state: expected"),
    ("a classifier's bad setting", lambda: classify(heads=0), "heads: .*got 0"),
    ("another graph's features", lambda: classify().predict(torch.ones(5, 9), [[0], [1]]), "data: has 9 features"),
    # Other tasks
    ("a constant target", lambda: make_target([2.5, 2.5], "height"), "height: the target is 2.5 for every node"),
    ("a target missing everywhere", lambda: make_target([NAN, NAN], "height"), "height: the target of every node is"),
    ("no graphs", lambda: collection_from_data([]), "graphs: expected a list of PyG Data"),
    ("a class of one graph", lambda: collection_from_data([graph(y=int(at > 0)) for at in range(30)]), "class 0"),
    ("a target nobody has", lambda: load_dataset("twitch-de:target=height"), "use target=mature"),
    ("holding out everything", lambda: split_links(graph(), val=0.5, test=0.5), "val: got 0.5"),
    ("a kind of negatives", lambda: split_links(graph()).negatives("test", "hard"), "kind: got 'hard'"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "message"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_bad_values(act: Callable[[], Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(act, message, tmp_path)


def check(act: Callable[[], Any], message: str, folder: Path) -> None:
    """``act`` raises one line that names the culprit and leaves ``folder`` as it was."""
    before = contents(folder)
    with pytest.raises(LTGAError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=True)
    return buffer.getvalue()


def archive(path: Path, **changes: Any) -> Path:
    """A small graph as npz, with members replaced, added (bytes) or left out (None)."""
    members: dict[str, Any] = {
        "node_features": np.ones((6, 2), dtype=np.float32),
        "node_labels": np.arange(6) % 2,
        "edges": np.array([[0, 1], [2, 3]]),
        **changes,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            if content is not None:
                packed.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
    return path


def tables(folder: Path, nodes: str = "id,label,f\na,x,1\nb,y,2\n", edges: str = "source,target\na,b\n") -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def truncated(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def saved_run(folder: Path) -> Path:
    return fit(graph(), "gatv2", protocol=QUICK).save(folder)


def edited(path: Path, **changes: Any) -> Path:
    """A record without checksums, as earlier versions wrote them, and with changes."""
    path.write_text(json.dumps({**json.loads(path.read_text()), "checksums": None, **changes}))
    return path


def better(path: Path) -> Path:
    """A record whose test accuracy somebody has improved by hand."""
    record = json.loads(path.read_text())
    record["metrics"]["test"]["accuracy"] = 0.987654321
    path.write_text(json.dumps(record))
    return path


class Planted:
    """Would leave a file behind if it were unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return Path.touch, (self.folder / "pwned",)


def objects(folder: Path) -> np.ndarray:
    array = np.empty(1, dtype=object)
    array[0] = Planted(folder)
    return array


def file(path: Path, content: bytes = b"") -> Path:
    path.write_bytes(content)
    return path


def pickled(folder: Path) -> Path:
    torch.save({"x": torch.ones(2)}, folder / "graph.pt")
    return folder / "graph.pt"


# What to prepare in a folder, what to do with it, and what the message says.
FILES: list[tuple[str, Callable[[Path], Any], Callable[[Any], Any], str]] = [
    ("a missing file", lambda d: d / "gone.npz", load_dataset, r"gone\.npz: no such file or folder"),
    ("a missing folder", lambda d: d / "gone", load_dataset, "gone: no such file or folder"),
    ("an empty folder", lambda d: d, load_dataset, r"expected edges\.csv or edges\.parquet, but neither"),
    ("an unknown format", lambda d: file(d / "graph.xml"), load_dataset, r"graph\.xml: not a known format"),
    ("an empty file", lambda d: file(d / "graph.npz"), load_dataset, "damaged or not an npz file"),
    ("wrong columns", lambda d: tables(d, "name,label,f\na,x,1\n"), load_dataset, "column 'id' is missing; found name"),
    ("wrong edge columns", lambda d: tables(d, edges="from,to\na,b\n"), load_dataset, "column 'source' is missing"),
    ("an id that is not there", lambda d: tables(d, edges="source,target\na,c\n"), load_dataset, "target 'c' is not"),
    ("a NaN cell", lambda d: tables(d, "id,label,f\na,x,nan\nb,y,2\n"), lambda d: load_dataset(
        d, preparation=Preparation(empty_cells="error")), "row 1: f is empty"),
    ("all labels missing", lambda d: tables(d, "id,label,f\na,,1\nb,-1,2\n"), load_dataset, "all labels are missing"),
    ("an option that is not there", lambda d: tables(d), lambda d: load_dataset(
        d, preparation=Preparation(scales="none")), "no option 'scales'"),
    ("a category that was not there", lambda d: tables(d), lambda d: Preparation().fit(d).fitted.apply(
        tables(d, "id,label,f\na,x,1\nb,zzz,2\n")), "label is 'zzz', a class that was not there"),
    ("one class in a table", lambda d: tables(d, "id,label,f\na,x,1\nb,x,2\n"), load_dataset, "at least two"),
    ("no train rows", lambda d: tables(d, "id,label,f,split\na,x,1,val\nb,y,2,test\n"), load_dataset, "no train node"),
    ("a table that is not text", lambda d: file(tables(d) / "nodes.csv", b"\xff\xfe\x00").parent, load_dataset,
     r"nodes\.csv: is not utf-8 text"),
    ("a broken parquet", lambda d: file(d / "nodes.parquet", b"PAR1").with_name(
        file(d / "edges.parquet", b"PAR1").name).parent, load_dataset, r"parquet: cannot be read as a parquet table"),
    ("a truncated npz", lambda d: truncated(archive(d / "g.npz")), load_dataset, r"g\.npz: damaged or not an npz"),
    ("pickled arrays", lambda d: archive(d / "g.npz", edges=objects(d)), load_dataset, "holds Python objects"),
    ("a missing array", lambda d: archive(d / "g.npz", edges=None), load_dataset, "array 'edges' is missing"),
    ("labels as text", lambda d: archive(d / "g.npz", node_labels=np.array(["a"] * 6)), load_dataset,
     "node_labels must hold whole numbers"),
    ("an npz edge to nowhere", lambda d: archive(d / "g.npz", edges=np.array([[0, 6]])), load_dataset,
     "edge row 1 joins"),
    ("overlapping npz masks", lambda d: archive(d / "g.npz", **dict.fromkeys(
        ("train_masks", "val_masks", "test_masks"), np.ones((1, 6), dtype=bool))), load_dataset, "train and val"),
    ("path traversal", lambda d: archive(d / "g.npz", edges=None, **{"../../edges": np.array([[0, 1]])}), load_dataset,
     "array 'edges' is missing"),
    ("a header that lies", lambda d: archive(
        d / "g.npz", edges=npy(np.zeros((2, 2), int)).replace(b"(2, 2)", b"(9, 9)")), load_dataset,
     r"edges\.npy declares shape \[9, 9\]"),
    ("a zip bomb", lambda d: archive(d / "g.npz", features_shape=np.array([10**7, 10**7]), node_features=None,
        features_data=np.ones(1), features_indices=np.zeros(1, int), features_indptr=np.array([0, 1])), load_dataset,
     "more than the limit"),
    ("a swapped dataset", lambda d: archive(d / "cora.npz"), lambda path: load_dataset("cora", path.parent),
     r"cora\.npz: .*not the file it claims to be"),
    ("a pickled graph", pickled, load_dataset, "pickled files can run code"),
    ("a damaged saved graph", lambda d: truncated(save_data(graph(), d / "g.safetensors")), load_data, "damaged"),
    ("a graph to a wrong name", lambda d: d / "g.pt", lambda path: save_data(graph(), path), r"ends in \.safetensors"),
    ("a graph under a file", lambda d: file(d / "f") / "g.safetensors", lambda path: save_data(graph(), path),
     r"g\.safetensors: cannot be written"),
    ("a run that is not there", lambda d: d / "gone.json", load_run, "no such record"),
    ("a run that is no record", lambda d: file(d / "r.json", b"[]"), load_run, "not the record of a run"),
    ("a truncated record", lambda d: truncated(saved_run(d)), load_run, "damaged, or not a record"),
    ("a run without weights", lambda d: saved_run(d), lambda path: (
        path.with_suffix(".safetensors").rename(path.with_suffix(".away")), load_run(path)), "missing or damaged"),
    ("a record of another shape", lambda d: edited(saved_run(d), model={}), load_run, "do not fit the model"),
    ("weights of another size", lambda d: edited(saved_run(d), model={
        "in_channels": 9, "num_classes": 2, "num_nodes": 20, "edge_dim": None}), load_run, "do not fit the model"),
    ("a record edited by hand", lambda d: better(saved_run(d)), load_run, "its results have changed since it was"),
    ("a run under another name", lambda d: saved_run(d).rename(d / f"{'b' * 64}.json"), load_run, "of another run"),
    ("a run under a file", lambda d: file(d / "f"), lambda path: saved_run(path / "runs"), "runs: cannot be written"),
    ("a classifier that is not there", lambda d: d / "gone.safetensors", LTGAClassifier.load, "no such file"),
    ("a graph for a classifier", lambda d: save_data(graph(), d / "g.safetensors"), LTGAClassifier.load,
     r"not a classifier written by LTGAClassifier\.save"),
    ("a classifier under a file", lambda d: file(d / "f") / "c.safetensors", lambda path: classify().save(path),
     r"c\.safetensors: cannot be written"),
    ("a classifier to a wrong name", lambda d: d / "c.pkl", lambda path: classify().save(path),
     r"ends in \.safetensors"),
]  # fmt: skip


@pytest.mark.parametrize(("prepare", "act", "message"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_bad_files(prepare: Callable[[Path], Any], act: Callable[[Any], Any], message: str, tmp_path: Path) -> None:
    given = prepare(tmp_path)
    before = set(contents(tmp_path))
    with pytest.raises(LTGAError, match=message) as caught:
        act(given)
    assert "\n" not in str(caught.value)
    moved = {name.replace(".away", ".safetensors") for name in contents(tmp_path)}
    assert moved == before
    assert "pwned" not in before


WRITERS: dict[str, Callable[[Path, Any], Any]] = {
    "graph": lambda folder, made: save_data(graph(), folder / "g.safetensors"),
    "run": lambda folder, made: made.run_.save(folder),
    "classifier": lambda folder, made: made.save(folder / "c.safetensors"),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_disk_that_takes_no_more_leaves_nothing_behind(write: Callable[[Path, Any], Any], tmp_path: Path) -> None:
    made = classify()
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # no file may grow beyond 100 bytes
    try:
        with pytest.raises(LTGAError, match=r"cannot be written \(File too large\)") as caught:
            write(tmp_path, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    write(tmp_path, made)  # and with room again it works
    assert all(not path.name.startswith(".") for path in tmp_path.iterdir())


def test_the_tables_are_long_enough() -> None:
    rows = [row[0] for row in VALUES] + [row[0] for row in FILES]
    assert len(rows) == len(set(rows)) >= 100


def test_a_dataset_that_is_sound_passes() -> None:
    """The same helpers without a fault: what the tables refuse is refused for the fault alone."""
    assert isinstance(dataset_from_data(graph()), Dataset)
    assert train_on(**masks(range(10), range(10, 15), range(15, 20))).record["epochs"] == 1
    assert convolve().shape == (20, 2)
    assert classify().predict(graph().x, graph().edge_index).shape == (20,)


def test_files_that_are_sound_pass(tmp_path: Path) -> None:
    assert load_dataset(archive(tmp_path / "g.npz")).num_classes == 2
    assert load_dataset(tables(tmp_path)).num_classes == 2
    assert load_run(saved_run(tmp_path)).record["epochs"] == 1
