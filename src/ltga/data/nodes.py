"""`Nodes`: features with the edges attached, in a form that scikit-learn can split."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from ltga.data.dataset import check_graph
from ltga.errors import DataError, InputError


class Nodes:
    """Nodes of a graph, as the `X` of a scikit-learn style estimator.

    Taking rows (`nodes[train]`) chooses nodes and keeps the whole graph, so a split over nodes hides
    labels, never edges or features: `cross_val_score(LTGAClassifier(), nodes, y, cv=5)`.

    Args:
        features: `[N, F]` array, data frame, tensor or scipy sparse matrix (made dense).
        edge_index: `[2, E]` sources and targets, or a scipy sparse adjacency `[N, N]` whose entry (i, j)
            is an edge from i to j. Messages run from source to target, so give both directions if the
            graph is undirected.
        edge_attr: `[E]` or `[E, D]` edge attributes, in the order of `edge_index`.

    >>> nodes = Nodes([[0.0], [1.0], [2.0]], [[0, 1], [1, 2]])
    >>> nodes[[2, 0]]
    Nodes(2 of 3 nodes, 2 edges, 1 features)
    """

    def __init__(self, features: Any, edge_index: Any, edge_attr: Any = None) -> None:
        x = _numbers(features, "X")
        if x.dim() != 2:
            raise InputError(f"X: expected features of shape [N, F], got {list(x.shape)}")
        self.data = Data(x=x, edge_index=_edges(edge_index, len(x)))
        if edge_attr is not None:
            if _is_sparse(edge_index):
                raise InputError("edge_attr: has no order to follow beside a sparse adjacency; give edge_index [2, E]")
            self.data.edge_attr = _numbers(edge_attr, "edge_attr")
        try:
            check_graph(self.data, "graph", needs=("x", "edge_index"))
        except DataError as error:
            raise InputError(str(error)) from None
        self.index = np.arange(len(x))  # the chosen nodes, numbered as in the whole graph
        self._memo: dict[str, str] = {}  # shared by all choices of nodes of this graph

    @property
    def shape(self) -> tuple[int, int]:
        """(chosen nodes, features)."""
        return len(self.index), self.data.x.size(1)

    @property
    def fingerprint(self) -> str:
        """A sha256 of the whole graph, whichever nodes are chosen."""
        if not self._memo:
            digest = hashlib.sha256()
            for part in (self.data.x, self.data.edge_index, self.data.get("edge_attr")):
                if part is not None:
                    digest.update(f"{tuple(part.shape)}".encode())
                    if part.numel():  # a graph may have no edges, and no bytes have no view
                        digest.update(memoryview(part.contiguous().numpy()).cast("B"))
            self._memo["sha256"] = digest.hexdigest()
        return self._memo["sha256"]

    def with_features(self, features: Any) -> Nodes:
        """The same choice of nodes in the same graph, with other features `[N, F']` for all of its N nodes."""
        x = _numbers(features, "features")
        if x.dim() != 2 or len(x) != self.data.x.size(0):
            raise InputError(f"features: expected a row for each of {self.data.x.size(0)} nodes, got {list(x.shape)}")
        other = Nodes(x, self.data.edge_index, self.data.get("edge_attr"))
        other.index = self.index
        return other

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        # Refused, because what comes out of a step that works on arrays has no edges any more.
        raise InputError(
            "X: an array of Nodes has no edges; in a pipeline write OnFeatures(StandardScaler()) (from ltga.data) "
            "instead of StandardScaler(), elsewhere take the features nodes.data.x[nodes.index]"
        )

    def __iter__(self) -> Iterator[Nodes]:
        return (self[row] for row in range(len(self)))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> Nodes:
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # how scikit-learn writes it
            rows = rows[0]
        try:
            chosen = np.atleast_1d(self.index[rows])
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(f"nodes: cannot choose rows of {len(self)} nodes ({error})") from None
        if chosen.ndim != 1:
            raise InputError(f"nodes: rows of shape {list(chosen.shape)} cannot be chosen; give a flat list or mask")
        part = copy.copy(self)
        part.index = chosen
        return part

    def __repr__(self) -> str:
        nodes, edges = self.data.x.size(0), self.data.edge_index.size(1)
        return f"Nodes({len(self)} of {nodes} nodes, {edges} edges, {self.data.x.size(1)} features)"


def _numbers(values: Any, name: str) -> Tensor:
    """Anything array-like as float32."""
    if _is_sparse(values):
        values = values.toarray()
    if isinstance(values, Tensor):
        values = values.detach().to_dense() if values.layout != torch.strided else values.detach()
        values = (values if values.is_complex() else values.to(torch.float32)).numpy(force=True)
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise InputError(f"{name}: has masked values; fill them, for example with {name}.filled(0)")
        values = np.ma.getdata(values)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufOU":  # numpy would drop imaginary parts and count days
            raise InputError(f"{name}: expected numbers, got {given.dtype}")
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is refused
            return torch.from_numpy(np.array(given, dtype=np.float32, order="C"))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: expected numbers, got something else ({error})") from None


def _is_sparse(values: Any) -> bool:  # scipy's own claims a type that mypy knows too little of
    return bool(scipy.sparse.issparse(values))


def _edges(given: Any, num_nodes: int) -> Tensor:
    if _is_sparse(given):
        if given.shape != (num_nodes, num_nodes):
            raise InputError(f"edge_index: an adjacency of {num_nodes} nodes is square, got {list(given.shape)}")
        matrix = given.tocoo()
        kept = matrix.data != 0
        return torch.from_numpy(np.stack([matrix.row[kept], matrix.col[kept]]).astype(np.int64))
    if isinstance(given, Tensor):
        if given.layout != torch.strided or given.is_floating_point() or given.is_complex():
            kind = given.dtype if given.layout == torch.strided else given.layout
            raise InputError(f"edge_index: expected whole numbers of shape [2, E], got a tensor of {kind}")
        given = given.numpy(force=True)
    try:
        edges = np.asarray(given)
    except ValueError as error:
        raise InputError(f"edge_index: expected whole numbers of shape [2, E] ({error})") from None
    if edges.ndim != 2 or edges.shape[0] != 2:
        hint = "; transpose it with edge_index.T" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InputError(f"edge_index: expected shape [2, E], got {list(edges.shape)}{hint}")
    if edges.size and edges.dtype.kind not in "iu":
        raise InputError(f"edge_index: expected whole numbers, got {edges.dtype}")
    if edges.size and int(edges.max()) >= num_nodes:  # before a number beyond int64 turns into another
        raise InputError(f"edge_index: holds node {int(edges.max())}, but nodes are numbered 0 to {num_nodes - 1}")
    return torch.from_numpy(edges.astype(np.int64))
