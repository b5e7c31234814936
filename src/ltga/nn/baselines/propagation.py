"""Fixed sparse propagation matrices of a graph, built once and applied fast in both directions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from ltga.errors import GraphError
from ltga.kernels.operators.weighted_sum import Incidence, sums_compiled, weighted_sum
from ltga.kernels.runtime.memo import TensorMemo
from ltga.kernels.runtime.neighbourhoods import check_edge_index

T = TypeVar("T")


def sound_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """``edge_index`` as int64, after :class:`GraphError` if it is no list of edges between ``num_nodes`` nodes.

    PyG's layers notice some faults late and others never: an out-of-range self-loop is dropped without a word.

    >>> sound_edges(torch.tensor([[7], [7]]), 3)
    Traceback (most recent call last):
    ...
    ltga.errors.GraphError: edge_index: edge 0 has source 7, but there are 3 source nodes ...
    """
    if torch.compiler.is_compiling():  # the values are not known while a graph is being captured
        return edge_index.long()
    if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
        raise GraphError(f"edge_index: expected shape [2, E], got layout {edge_index.layout}; pass its indices")
    check_edge_index(edge_index, num_nodes, num_nodes)
    return edge_index.long()


class OncePerGraph(Generic[T]):
    """Remembers what ``build(edge_index, num_nodes, dtype)`` made of a graph, for as long as its tensor lives.

    The edges are checked when they are new. What is remembered is left out of copies and pickles of a model.

    >>> degree = OncePerGraph(lambda edge_index, n, dtype: edge_index[1].bincount(minlength=n))
    >>> edge_index = torch.tensor([[0, 1], [1, 2]])
    >>> degree(edge_index, 3, torch.float32) is degree(edge_index, 3, torch.float32)
    True
    >>> edge_index.numpy()[1, 0] = 2
    >>> degree(edge_index, 3, torch.float32)
    tensor([0, 0, 2])
    """

    def __init__(self, build: Callable[[Tensor, int, torch.dtype], T]) -> None:
        self._build = build
        self._known: TensorMemo[T] = TensorMemo()

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> T:
        on_cpu = isinstance(edge_index, Tensor) and edge_index.device.type == "cpu"
        lasting = isinstance(edge_index, Tensor) and edge_index.layout == torch.strided
        lasting = lasting and (on_cpu or not edge_index.is_inference())  # else there is no telling whether it changed
        value = self._known.get(edge_index, (num_nodes, dtype)) if lasting else None
        if value is None:
            content = self._known.content(edge_index) if lasting and on_cpu else None
            # Outside inference mode, so that what is kept can later serve training too.
            with torch.inference_mode(False), torch.no_grad():
                value = self._build(sound_edges(edge_index, num_nodes), num_nodes, dtype)
            if lasting:
                self._known.put(edge_index, (num_nodes, dtype), content, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._build,)


@dataclass(frozen=True, eq=False)
class WeightedEdges:
    """Edges ``[2, E]`` with a fixed weight each ``[E]``, between as many sources and targets as ``sizes`` says."""

    edge_index: Tensor
    weight: Tensor
    sizes: tuple[int, int]

    @cached_property
    def incidence(self) -> Incidence:
        """The same edges sorted, for compiled sums."""
        with torch.inference_mode(False):  # what is kept must be usable in training later
            return Incidence.of(self.edge_index, *self.sizes)


class SparseOperator:
    r"""The linear map :math:`X \mapsto A X` of a fixed sparse matrix, differentiable in :math:`X`.

    Compiled sums over its entries where those can be had; elsewhere torch's sparse product, which keeps :math:`A` and
    :math:`A^\top` in CSR form, because transposing in every backward pass costs several times the product itself.

    Args:
        matrix: scipy sparse :math:`A` of shape ``[N, M]``; the operator takes ``[M, F]`` to ``[N, F]``.
        dtype, device: of the operator's values.

    >>> shift = SparseOperator(sp.csr_matrix([[0.0, 2.0], [0.0, 0.0]]), torch.float32, torch.device("cpu"))
    >>> shift(torch.tensor([[1.0], [3.0]]))
    tensor([[6.],
            [0.]])
    """

    def __init__(self, matrix: sp.csr_matrix, dtype: torch.dtype, device: torch.device) -> None:
        matrix.sum_duplicates()
        self._matrix, self._dtype, self._device = matrix, dtype, device

    @cached_property
    def edges(self) -> WeightedEdges:
        """Every entry as an edge from its column to its row, row by row."""
        entries = self._matrix.tocoo()
        with torch.inference_mode(False):
            edge_index = torch.from_numpy(np.stack([entries.col, entries.row]).astype(np.int64))
            weight = torch.from_numpy(entries.data).to(self._dtype)
        return WeightedEdges(edge_index, weight, (self._matrix.shape[1], self._matrix.shape[0]))

    @cached_property
    def products(self) -> tuple[Tensor, Tensor]:
        """The matrix and its transpose as torch takes them."""
        with torch.inference_mode(False):
            matrix, transpose = (
                _to_torch_csr(matrix, self._dtype, self._device) for matrix in (self._matrix, self._matrix.T.tocsr())
            )
        return matrix, transpose

    def __call__(self, x: Tensor) -> Tensor:
        if sums_compiled(x):
            return weighted_sum(x, self.edges.weight, self.edges.incidence)
        out: Tensor = _SparseProduct.apply(x, *self.products)  # type: ignore[no-untyped-call]
        return out


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ grad.contiguous(), None, None


def _to_torch_csr(matrix: sp.csr_matrix, dtype: torch.dtype, device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        # torch calls its CSR layout beta once per process; the product used here is stable.
        warnings.filterwarnings("ignore", message="Sparse (CSR|invariant)", category=UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr),
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            device=device,
        )


def gcn_edges(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> WeightedEdges:
    r"""Edges and weights of GCN's :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2}`.

    Missing self-loops are added; degrees count incoming edges.

    >>> gcn_edges(torch.tensor([[0], [1]]), 2, torch.float32).weight
    tensor([0.7071, 1.0000, 0.5000])
    """
    edges, weight = gcn_norm(edge_index, None, num_nodes, dtype=dtype)
    return WeightedEdges(edges, weight, (num_nodes, num_nodes))


def gcn_operator(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> SparseOperator:
    """:func:`gcn_edges` as a matrix: row i gathers what arrives at node i.

    >>> gcn_operator(torch.tensor([[0], [1]]), 2, torch.float32)(torch.eye(2))
    tensor([[1.0000, 0.0000],
            [0.7071, 0.5000]])
    """
    edges = gcn_edges(edge_index, num_nodes, dtype)
    source, target = edges.edge_index.cpu().numpy()
    matrix = sp.csr_matrix((edges.weight.cpu().numpy(), (target, source)), shape=edges.sizes)
    return SparseOperator(matrix, dtype, edge_index.device)


def hop_matrices(edge_index: Tensor, num_nodes: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Who is exactly one hop and who is exactly two hops away, as boolean matrices ``[N, N]``.

    Row i of the first marks the nodes other than i with an edge to i; row i of the second those
    from which i is reached in two such steps but not in one, and not i itself. Repeated edges and
    self-loops make no difference.

    >>> one, two = hop_matrices(torch.tensor([[0, 1, 2], [1, 2, 2]]), 3)
    >>> one.toarray().astype(int).tolist(), two.toarray().astype(int).tolist()
    ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 0, 0], [1, 0, 0]])
    """
    source, target = edge_index.cpu().numpy()
    keep = source != target
    source, target = source[keep], target[keep]
    shape = (num_nodes, num_nodes)
    one = sp.csr_matrix((np.ones(source.size, dtype=bool), (target, source)), shape=shape)
    within_one = one + sp.identity(num_nodes, dtype=bool, format="csr")
    two = sp.csr_matrix((one @ one) > within_one)
    return one, two


def symmetric_normalized(adjacency: sp.csr_matrix) -> sp.csr_matrix:
    r""":math:`D_{\mathrm{in}}^{-1/2} A D_{\mathrm{out}}^{-1/2}`, zero where a degree is zero.

    On an undirected graph both degrees agree and this is the usual :math:`D^{-1/2} A D^{-1/2}`. On a
    directed one it keeps the messages of nodes that nobody points to, which the in-degree alone
    would wipe out.

    >>> symmetric_normalized(sp.csr_matrix([[0, 1], [0, 0]])).toarray().tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    adjacency = sp.csr_matrix(adjacency, dtype=np.float64)
    scale = []
    for axis in (1, 0):
        degree = np.asarray(adjacency.sum(axis=axis)).ravel()
        scale.append(sp.diags(np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)))
    return sp.csr_matrix(scale[0] @ adjacency @ scale[1])
