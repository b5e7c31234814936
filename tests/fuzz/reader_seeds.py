"""Small valid files of every format, ways to spoil them, and how each is read."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
import torch
from safetensors.torch import save

from fuzz.mutations import spoil_array, spoil_bytes, spoil_json, spoil_text
from ltga.data import Dataset, Preparation, as_graph, load_dataset, save_data, syntax_graph
from ltga.data.assemble import assemble
from ltga.data.geom_gcn import read_geom_gcn
from ltga.data.planetoid import PARTS, read_planetoid
from ltga.train import LTGAClassifier

Files = dict[str, bytes]
Arrays = dict[str, np.ndarray]
NODES = 12
BY_KIND = Preparation(label="kind")  # GEXF and GML show a label beside a node


class Format:
    """One format: `seeds`, sets of files that read well; `spoil`, a set made bad; `read`, what a user would call."""

    def __init__(self, seeds: list[Files], read: Callable[[Path], Any], structural: Callable[..., Files] | None = None):
        self.seeds, self.read, self.structural = seeds, read, structural

    def spoil(self, rng: random.Random) -> Files:
        """A seed with one of its files changed, as bytes, as text or in its structure."""
        at = rng.randrange(len(self.seeds))
        files = dict(self.seeds[at])
        if self.structural is not None and rng.random() < 0.6:
            return self.structural(files, rng, at)
        name = rng.choice(sorted(files))
        try:
            text = files[name].decode("ascii")
        except UnicodeDecodeError:
            text = ""
        if text and rng.random() < 0.7:
            files[name] = spoil_text(text, rng).encode()
        else:
            files[name] = spoil_bytes(files[name], rng, rng.choice(list(files.values())))
        return files


# npz


def graphs() -> list[Arrays]:
    rng = np.random.default_rng(0)
    parts = np.arange(NODES) % 4
    base = {"node_labels": np.arange(NODES) % 3, "edges": rng.permutation(NODES).reshape(-1, 2)}
    dense = (rng.random((NODES, 4)) * (rng.random((NODES, 4)) < 0.5)).astype(np.float32)
    matrix = scipy.sparse.csr_matrix(dense)
    masks = {"train_masks": [parts < 2], "val_masks": [parts == 2], "test_masks": [parts == 3]}
    return [
        base | {"node_features": dense} | {key: np.array(mask) for key, mask in masks.items()},
        base | {
            "features_data": matrix.data, "features_indices": matrix.indices, "features_indptr": matrix.indptr,
            "features_shape": np.array([NODES, 4]),
        },
        base | {
            "word_vectors": dense[:3].astype(np.float16), "node_words": np.arange(NODES) % 3,
            "words_utf8": np.frombuffer("à\nb\nc".encode(), dtype=np.uint8), "class_names": np.array(["x", "y", "z"]),
            "edge_features": np.arange(6.0), "edge_convention": np.array("directed"),
        },
    ]  # fmt: skip


def packed(members: dict[str, bytes], rng: random.Random | None = None) -> bytes:
    stream = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng is None else rng.choice([0, 8, 8, 8, 12, 14])
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def spoil_npz(files: Files, rng: random.Random, at: int) -> Files:
    arrays = graphs()[at]
    key = rng.choice(sorted(arrays))
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    kind = rng.randrange(5)
    if kind == 0:
        del members[f"{key}.npy"]
    elif kind == 1:  # with a checksum that is right, so that the damage gets past the archive
        members[f"{key}.npy"] = spoil_bytes(members[f"{key}.npy"], rng)
    elif kind == 2:
        header, _, rest = members[f"{key}.npy"].partition(b"\n")
        text = spoil_text(header[10:].decode(), rng).encode() + b"\n"
        members[f"{key}.npy"] = header[:8] + struct.pack("<H", len(text) % 65536) + text + rest
    else:
        members[f"{key}.npy"] = npy(spoil_array(arrays[key], rng))
    return {"graph.npz": packed(members, rng)}


# Tables

NODE_TABLE: dict[str, list[Any]] = {
    "id": [*"abcdefghijkl"], "label": ["0", "1", "2"] * 4, "split": ["train", "train", "val", "test"] * 3,
    "height": [i / 2 for i in range(NODES)], "width": list(range(NODES)),
}  # fmt: skip
EDGE_TABLE: dict[str, list[Any]] = {"source": [*"abcdef"], "target": [*"bcdefa"], "weight": [0.5] * 6}


def as_csv(table: dict[str, list[Any]]) -> bytes:
    rows = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values()))]
    return ("\n".join(rows) + "\n").encode()


def as_parquet(table: Any, compression: str = "snappy") -> bytes:
    stream = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), stream, compression=compression)
    return stream.getvalue()


def spoil_parquet(files: Files, rng: random.Random, at: int) -> Files:
    name, columns = rng.choice([("nodes.parquet", NODE_TABLE), ("edges.parquet", EDGE_TABLE)])
    columns, key = dict(columns), rng.choice(sorted(columns))
    count = len(columns[key])
    odd: list[Callable[[], Any]] = [
        lambda: pa.array([[1.0]] * count), lambda: pa.array([{"a": 1}] * count), lambda: pa.nulls(count),
        lambda: pa.array([b"\xff"] * count), lambda: pa.array([2**63 + i for i in range(count)], pa.uint64()),
        lambda: pa.array(range(count), pa.timestamp("ns")), lambda: pa.array(["x"] * count).dictionary_encode(),
        lambda: pa.array(range(count), pa.decimal128(30, 2)), lambda: pa.array([None, *range(count - 1)]),
        lambda: pa.array([True] * count), lambda: pa.array([float("nan")] * count),
        lambda: pa.array(range(count), pa.date32()),
        lambda: pa.array([rng.choice(["", "²", "-1", "nan", "9" * 5000]) for _ in range(count)]),
        lambda: pa.array(range(count), pa.duration("s")), lambda: pa.array([1e39] * count),
    ]  # fmt: skip
    columns[key] = rng.choice(odd)()
    table = pa.table(columns)
    if rng.random() < 0.3:
        table = table.replace_schema_metadata({b"pandas": rng.choice([b"{", b"[]", b'{"index_columns": 3}', b"\xff"])})
    if rng.random() < 0.2:
        table = table.rename_columns([rng.choice([*table.column_names, "", "id"]) for _ in table.column_names])
    return files | {name: as_parquet(table, rng.choice(["none", "gzip", "zstd"]))}


# safetensors


def torch_graph() -> dict[str, torch.Tensor]:
    first = graphs()[0]
    parts = torch.arange(NODES) % 4
    return {
        "x": torch.from_numpy(first["node_features"]), "y": torch.from_numpy(first["node_labels"]),
        "edge_index": torch.from_numpy(first["edges"].T.copy()), "edge_attr": torch.ones(6, 2),
        "train_mask": parts < 2, "val_mask": parts == 2, "test_mask": parts == 3,
    }  # fmt: skip


KINDS = [torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int32, torch.uint8, torch.uint64, torch.bool,
         torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2]  # fmt: skip


def spoil_safetensors(files: Files, rng: random.Random, at: int) -> Files:
    ((name, content),) = files.items()
    if rng.random() < 0.5:
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        if rng.random() < 0.5:
            key = rng.choice(sorted(set(header["__metadata__"]) - {"format", "version"}))
            inner = (
                json.dumps(spoil_json(json.loads(header["__metadata__"][key]), rng))
                if rng.random() < 0.7
                else "[" * 9999
            )
            header["__metadata__"][key] = inner
        else:
            header = spoil_json(header, rng)
        text = json.dumps(header).encode()
        return {name: struct.pack("<Q", len(text)) + text + content[8 + length :]}
    if name != "graph.safetensors":
        return {name: spoil_bytes(content, rng)}
    tensors = torch_graph()
    key = rng.choice(sorted(tensors))
    if rng.random() < 0.5:
        tensors[key] = tensors[key].to(rng.choice(KINDS))
    else:
        changed = spoil_array(tensors[key].numpy(), rng)
        if changed.dtype.kind in "biuf" and changed.dtype.isnative:
            tensors[key] = torch.from_numpy(np.array(changed, order="C"))
    order = json.dumps([*tensors, "class_names", "note"])
    attributes = spoil_json({"class_names": ["a", "b", "c"], "note": [1, {"k": 2.5}]}, rng)
    order = order if isinstance(attributes, dict) and len(attributes) == 2 else json.dumps(list(tensors))
    known = {"format": "ltga-data", "version": "1", "attributes": json.dumps(attributes), "order": order}
    return {name: save({key: value.contiguous() for key, value in tensors.items()}, metadata=known)}


# Planetoid and Geom-GCN


def planetoid() -> Files:
    """520 nodes: 6 to learn from, 500 to validate with, 10 to test."""
    rng = np.random.default_rng(0)
    features = scipy.sparse.csr_matrix((rng.random((520, 3)) < 0.5).astype(np.float32))
    one_hot = np.eye(3, dtype=np.int32)[np.arange(520) % 3]
    graph: dict[int, list[int]] = defaultdict(list)
    for node in range(60):
        graph[node].append((node + 1) % 60)
        graph[(node + 1) % 60].append(node)
    parts = {
        "x": features[:6], "y": one_hot[:6], "tx": features[510:], "ty": one_hot[510:], "allx": features[:510],
        "ally": one_hot[:510], "graph": graph,
    }  # fmt: skip
    index = "\n".join(str(node) for node in rng.permutation(np.arange(510, 520))) + "\n"
    return {key: pickle.dumps(value, 3) for key, value in parts.items()} | {"test.index": index.encode()}


def geom_gcn(positions: bool) -> Files:
    rows = [",".join(map(str, (i % 5, 4 + i % 2) if positions else (i % 2, 1, 0, i % 3 % 2))) for i in range(NODES)]
    head = "node_id\tfeature(feature_amount:6)\tlabel\n" if positions else "node_id\tfeature\tlabel\n"
    nodes = head + "".join(f"{i}\t{row}\t{i % 3}\n" for i, row in enumerate(rows))
    edges = "node_id\tnode_id\n" + "".join(f"{i}\t{(i * 5 + 1) % NODES}\n" for i in range(NODES))
    parts = np.arange(NODES) % 4
    masks = {"train_mask": parts < 2, "val_mask": parts == 2, "test_mask": parts == 3}
    split = packed({f"{key}.npy": npy(mask.astype(np.uint8)) for key, mask in masks.items()})
    return {"nodes.txt": nodes.encode(), "edges.txt": edges.encode(), "split.npz": split}


def read_planetoid_folder(folder: Path) -> Dataset:
    return assemble(read_planetoid({part: folder / part for part in PARTS}), "p", "both directions", str(folder))


def read_geom_gcn_folder(folder: Path) -> Dataset:
    arrays = read_geom_gcn(folder / "nodes.txt", folder / "edges.txt", [folder / "split.npz"])
    return assemble(arrays, "g", "directed", str(folder))


# CoNLL-U


def conllu() -> Files:
    lines = [
        f"{i}\tw{i}\t_\t{'PUNCT' if i == 5 else 'X'}\t_\t_\t{i - 1}\t{'root' if i == 1 else 'obj:a'}\t_\t_"
        for i in range(1, 7)
    ]
    sentence = "\n".join(["# text = x", "1-2\tw\t_\t_\t_\t_\t_\t_\t_\t_", *lines])
    return {"bank.conllu": f"{sentence}\n\n{sentence}\n".encode()}


def read_conllu(folder: Path) -> Dataset:
    text = (folder / "bank.conllu").read_bytes().decode("utf-8", "replace")
    return syntax_graph(text, {"w1": np.ones(3), "w2": np.zeros(3)}, num_relations=2)


def foreign(suffix: str, folder: Path) -> Files:
    """A graph that networkx wrote, with attributes of several kinds."""
    ring = nx.cycle_graph(NODES)
    for node in ring:
        ring.nodes[node].update(label=str(node % 3), kind="xyz"[node % 3], height=node / 2)
    nx.set_edge_attributes(ring, 0.5, "weight")
    path = folder / f"g.{suffix}"
    getattr(nx, f"write_{suffix}")(ring, path)
    return {path.name: path.read_bytes()}


def read_edge_list(folder: Path) -> Dataset:
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "label": [0, 1, 0]})
    return as_graph(folder / "g.edges", nodes=nodes)


def classifier(folder: Path) -> Files:
    first = graphs()[0]
    model = LTGAClassifier("ltga-head", epochs=1, hidden_channels=2, heads=1)
    names = np.array(["a", "b", "c"])[first["node_labels"]]
    model.fit(first["node_features"], names, first["edges"].T)
    return {"model.safetensors": model.save(folder / "model.safetensors").read_bytes()}


def formats(folder: Path) -> dict[str, Format]:
    """Every format by name; `folder` is scratch space."""
    from torch_geometric.data import Data

    data = Data(**torch_graph(), class_names=["a", "b", "c"], note=[1, {"k": 2.5}])
    saved = save_data(data, folder / "graph.safetensors").read_bytes()
    archives = [{"graph.npz": packed({f"{k}.npy": npy(v) for k, v in arrays.items()})} for arrays in graphs()]
    text, columns = ({f"{n}.{s}": w(t) for n, t in (("nodes", NODE_TABLE), ("edges", EDGE_TABLE))} for s, w in (
        ("csv", as_csv), ("parquet", as_parquet)))  # fmt: skip
    return {
        "npz": Format(archives, lambda folder: load_dataset(folder / "graph.npz"), spoil_npz),
        "csv": Format([text], load_dataset),
        "parquet": Format([columns], load_dataset, spoil_parquet),
        "graphml": Format([foreign("graphml", folder)], lambda f: load_dataset(f / "g.graphml")),
        "gexf": Format([foreign("gexf", folder)], lambda f: load_dataset(f / "g.gexf", preparation=BY_KIND)),
        "gml": Format([foreign("gml", folder)], lambda f: load_dataset(f / "g.gml", preparation=BY_KIND)),
        "edge list": Format([{"g.edges": b"# a list\na b 1\nb c 2\nc a 0.5\n"}], read_edge_list),
        "safetensors": Format(
            [{"graph.safetensors": saved}], lambda f: load_dataset(f / "graph.safetensors"), spoil_safetensors),
        "planetoid": Format([planetoid()], read_planetoid_folder),
        "geom-gcn": Format([geom_gcn(False), geom_gcn(True)], read_geom_gcn_folder),
        "conllu": Format([conllu()], read_conllu),
        "classifier": Format(
            [classifier(folder)], lambda f: LTGAClassifier.load(f / "model.safetensors"), spoil_safetensors),
    }  # fmt: skip
