"""Your own graph: from a file or folder, or from a PyG `Data`, without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.assemble import assemble
from ltga.data.bounds import in_a_line
from ltga.data.catalogue import known_by_sha256
from ltga.data.dataset import Dataset
from ltga.data.dataset_names import GRAPH_SUFFIXES, looks_like_a_path
from ltga.data.graph_files import is_table_source, read_graph_file
from ltga.data.graph_folder import open_graph_folder
from ltga.data.graph_folder_files import is_graph_folder
from ltga.data.npz import read_npz
from ltga.data.obtain import sha256_of
from ltga.data.preparation import Preparation
from ltga.data.prepare import prepared_dataset
from ltga.data.splits import stratified_masks
from ltga.data.tensor_files import TensorFile, check_suffix
from ltga.errors import DataError, InputError

_FILE = TensorFile("ltga-data", "a graph written by ltga.data.save_data", DataError)
_NOT_IN_NUMPY = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)


def load_own_graph(path: str | Path, convention: str | None = None, preparation: Preparation | None = None) -> Any:
    """A dataset from `path`: a `Dataset`, or a `NodeDataset` if tables hold a number or several labels to predict.

    | file | what is in it |
    | --- | --- |
    | a folder, or one of its tables | `edges` and `nodes`, `.csv` or `.parquet` |
    | `.graphml`, `.gexf`, `.gml`, `.mtx` | a graph of another program |
    | `.edges`, `.edgelist`, `.txt`, `.csv`, `.tsv` | an edge in each line |
    | `.npz` | arrays in the schema of the heterophilous-graphs benchmark |
    | `.safetensors` | what `save_data` wrote |

    `convention` says what a stored edge means. If left out: what the file says, else "undirected, once" for npz (as
    in the Platonov files) and "directed", each row a message from source to target, for tables. `preparation` says what
    is done to tables, and is for the first three rows only. Without splits of its own the graph gets ten seeded
    stratified ones, 60/20/20.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    try:
        return _load(path, convention, preparation)
    except MemoryError:
        raise DataError(f"{path}: needs more memory than there is; make the graph or its features smaller") from None


def preparation_for(name: Any, preparation: Preparation | None, task: str | None) -> Preparation | None:
    """How tables are prepared for a task: for links nothing has to be known of nodes, so labels are not asked for."""
    if task != "link" or not isinstance(name, str | Path):
        return preparation
    path = Path(name).expanduser()
    if not looks_like_a_path(str(name)) or not is_table_source(path) or is_graph_folder(path):
        return preparation
    chosen = preparation or Preparation()
    return Preparation(**{**chosen.model_dump(), "predict": "links"}) if chosen.predict == "auto" else chosen


def is_for_links(dataset: Any) -> bool:
    """Whether a graph was read for its links alone, and its labels mean nothing."""
    reading = getattr(dataset, "reading", None) or {}
    return bool(reading.get("preparation", {}).get("options", {}).get("predict") == "links")


def _load(path: Path, convention: str | None, preparation: Preparation | None) -> Any:
    where = str(path)
    if is_graph_folder(path):
        if convention is not None or preparation is not None:
            raise InputError("convention: a graph folder has its own, and finished features; leave out both options")
        return open_graph_folder(path).dataset()
    if is_table_source(path):
        options = preparation or Preparation()
        if convention is not None:
            options = options.with_convention(convention)
        return prepared_dataset(read_graph_file(path, options), options)
    if preparation is not None:
        raise InputError(f"prepare: {path.suffix or path.name} holds finished features; give it with tables only")
    if path.suffix == ".npz":
        known, file = known_by_sha256().get(sha256_of(path), (None, None))
        facts = known if known is not None and known.packed == file else None
        arrays = read_npz(path)
        meaning = convention or (facts.convention if facts else arrays.convention) or "undirected, once"
        name = facts.name if facts else path.stem
        reading = {"format": "npz", "path": str(path.resolve()), "name": name, "convention": meaning}
        return assemble(arrays, name, meaning, where, facts=facts, provenance={"path": where}, reading=reading)
    if path.suffix == ".safetensors":
        if convention is not None:
            raise InputError("convention: a saved Data keeps its edge_index as it is; leave convention out")
        try:
            dataset = dataset_from_data(load_data(path), name=path.stem)
        except InputError as error:
            raise DataError(f"{path}: {error}") from None
        dataset.reading = {"format": "safetensors", "path": str(path.resolve()), "name": path.stem}
        return dataset
    if path.suffix in (".pt", ".pth", ".pkl"):
        raise DataError(
            f"{path}: pickled files can run code when read and are not accepted; load it yourself where you "
            "trust it and store it with ltga.data.save_data(data, 'graph.safetensors')"
        )
    raise DataError(
        f"{path}: not a known format; give a folder with edges.csv and nodes.csv (or .parquet), "
        f"{', '.join(GRAPH_SUFFIXES)}, .npz in the schema, or .safetensors written by ltga.data.save_data"
    )


def dataset_from_data(data: Data, name: str = "graph", seed: int = 0) -> Dataset:
    """A dataset from a PyG `Data`, with its own masks (`[N]` or PyG's `[N, S]`) or seeded splits.

    >>> data = Data(x=torch.eye(6), y=torch.tensor([0, 1] * 3), edge_index=torch.tensor([[0], [1]]))
    >>> dataset_from_data(data).num_splits
    10
    """
    for key in ("x", "y", "edge_index"):
        if not isinstance(data.get(key), Tensor):
            raise InputError(f"data: data.{key} is missing; a graph needs x, y and edge_index")
    if not isinstance(data.x.shape, torch.Size) or data.x.layout != torch.strided:
        raise InputError("data: data.x is sparse; pass dense features, data.x.to_dense()")
    if data.x.dim() != 2:
        raise InputError(f"data: expected data.x of shape [nodes, features], got {list(data.x.shape)}")
    if data.x.is_complex():
        raise InputError("data: data.x is complex; pass real features, for example data.x.abs()")
    graph = data.clone()
    graph.x = data.x.to(torch.float32)
    graph.y = _labels(data)
    edge_attr = data.get("edge_attr")
    if isinstance(edge_attr, Tensor) and edge_attr.dtype in _NOT_IN_NUMPY:
        graph.edge_attr = edge_attr.to(torch.float32)
    given = [key for key in ("train_mask", "val_mask", "test_mask") if isinstance(data.get(key), Tensor)]
    if len(given) not in (0, 3):
        raise InputError(f"data: found {', '.join(given)} only; give train_mask, val_mask and test_mask, or none")
    if given:
        masks = [mask.t() if mask.dim() == 2 else mask for mask in (_mask(data, key) for key in given)]
    else:
        masks = [torch.from_numpy(mask) for mask in stratified_masks(graph.y.cpu().numpy(), seed=seed)]
    for key in given:
        del graph[key]
    return Dataset(
        name,
        graph,
        *masks,
        class_names=_class_names(data),
        provenance={"splits": "as given" if given else f"stratified 60/20/20, seed {seed}"},
    )


def _labels(data: Data) -> Tensor:
    """Labels `[N]` as int64."""
    y: Tensor = data.y
    if y.dim() == 2 and y.shape[1] == 1:  # OGB stores labels as a column
        y = y.squeeze(1)
    if y.dim() != 1 or y.shape[0] != data.x.shape[0]:
        raise InputError(
            f"data: expected one int64 label for each of {data.x.shape[0]} nodes, got data.y of shape {list(y.shape)}; "
            "a node has one class (take y.argmax(dim=1) of one-hot labels)"
        )
    if y.is_floating_point() or y.is_complex():
        raise InputError("data: data.y holds fractions; node classification needs whole-number labels")
    if y.dtype == torch.uint64 and y.numel() and int(y.numpy(force=True).max()) > torch.iinfo(torch.int64).max:
        raise InputError("data: data.y holds labels beyond 2^63; number the classes 0, 1, 2, ...")
    return y.to(torch.int64)


def _mask(data: Data, key: str) -> Tensor:
    mask: Tensor = data[key]
    if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError(f"data: data.{key} must hold true/false (or 0/1) only; for node numbers make a mask of them")
    return mask.bool()


def _class_names(data: Data) -> list[str] | None:
    names = data.get("class_names")
    if names is None:
        return None
    if isinstance(names, np.ndarray | Tensor):
        names = names.tolist()
    if not isinstance(names, list | tuple) or any(isinstance(name, list | tuple | dict) for name in names):
        raise InputError("data: data.class_names must be a list of names, one for each class")
    return [str(name) for name in names]


def save_data(data: Data, path: str | Path) -> Path:
    """Store a PyG `Data` as safetensors: tensors, and text, numbers or lists of them; never pickle.

    >>> import tempfile
    >>> data = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), class_names=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_data(save_data(data, f"{folder}/graph.safetensors"))
    Data(x=[2, 3], edge_index=[2, 1], class_names=[2])
    """
    check_suffix(path)
    tensors: dict[str, Tensor] = {}
    plain: dict[str, Any] = {}
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor):
            if value.layout != torch.strided:
                raise InputError(f"data: {key} is a sparse tensor; convert it with .to_dense()")
            tensors[key] = value
        else:
            plain[key] = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        attributes = json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(
            f"data: of {', '.join(plain)} some are no tensors, text, numbers or lists of them; convert them"
        ) from None
    return _FILE.write(path, tensors, {"attributes": attributes, "order": json.dumps(list(data.to_dict()))})


def load_data(path: str | Path) -> Data:
    """The PyG `Data` that `save_data` stored."""
    tensors, metadata = _FILE.read(path)
    try:
        attributes = json.loads(metadata["attributes"])
        if not isinstance(attributes, dict) or set(attributes) & set(tensors):
            raise ValueError("it says of one thing two things")
        values: dict[str, Any] = {**tensors, **attributes}
        order = json.loads(metadata["order"])
        if sorted(order) != sorted(values):
            raise ValueError("it lists other things than it holds")
        if any(key.startswith("_") for key in order):
            raise ValueError("it names things as no Data does")
        return Data(**{key: values[key] for key in order})
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: its description is damaged ({in_a_line(error)})") from None
