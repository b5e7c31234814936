"""The baselines and the edges they are given: bad ones are named, and changed ones are noticed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ltga.errors import GraphError, InputError
from ltga.kernels.runtime.fingerprint import assume_constant
from ltga.nn.baselines import FAGCN, GAT, GCN, GPRGNN, H2GCN, LINKX, GATv2

NETWORKS = [GCN, GAT, GATv2, H2GCN, GPRGNN, FAGCN, LINKX]
EDGES = [[0, 1, 2, 4], [1, 2, 3, 0]]
OTHER = [[0, 5, 2, 4], [1, 2, 4, 3]]


def build(network: Any) -> nn.Module:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"num_nodes": 6} if network is LINKX else {}
    return network(5, 3, hidden_channels=4, heads=2, dropout=0.0, **settings).eval()


@pytest.fixture
def x() -> Tensor:
    return torch.randn(6, 5, generator=torch.Generator().manual_seed(1))


BAD: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "fractions": (lambda e: e.float(), "expected integers, got torch.float32"),
    "booleans": (lambda e: e.bool(), "expected integers, got torch.bool"),
    "bytes": (lambda e: e.to(torch.uint8), "expected integers, got torch.uint8"),
    "rows": (lambda e: e.T, r"expected shape \[2, E\], got \[4, 2\]"),
    "one row": (lambda e: e[0], r"expected shape \[2, E\], got \[4\]"),
    "a batch": (lambda e: e[None], r"expected shape \[2, E\], got \[1, 2, 4\]"),
    "beyond the nodes": (lambda e: e + 2, "has source 6, but there are 6 source nodes"),
    "far beyond": (lambda e: e + 10**12, "edge 3 has source 1000000000004"),
    "negative": (lambda e: e - 1, "edge 0 has source -1"),
    "a self-loop of nobody": (lambda e: torch.tensor([[0, 6], [1, 6]]), "edge 1 has source 6"),
    "a list": (lambda e: e.tolist(), "expected a tensor"),
    "an array": (lambda e: e.numpy(), "expected a tensor"),
    "nothing": (lambda e: None, "expected a tensor"),
    "a matrix": (lambda e: torch.eye(6).to_sparse(), "layout torch.sparse_coo; pass its indices"),
    "a two-row matrix": (lambda e: torch.ones(2, 3).to_sparse_csr(), "layout torch.sparse_csr; pass its indices"),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_edges_are_named(kind: str, network: Any, x: Tensor) -> None:
    model = build(network)
    good = torch.tensor(EDGES)
    make, message = BAD[kind]
    for _ in range(2):  # before and after the model has seen a good graph
        with pytest.raises(GraphError, match=message):
            model(x, make(good))
        model(x, good)


@pytest.mark.parametrize("network", NETWORKS)
def test_short_integers_and_no_edges_work(network: Any, x: Tensor) -> None:
    model = build(network)
    edges = torch.tensor(EDGES)
    torch.testing.assert_close(model(x, edges.int()), model(x, edges))
    assert model(x, edges[:, :0]).isfinite().all()


@pytest.mark.parametrize("network", NETWORKS)
def test_no_nodes(network: Any) -> None:
    if network is LINKX:
        with pytest.raises(InputError, match="num_nodes: expected a whole number from 1, got 0"):
            LINKX(5, 3, num_nodes=0)
        return
    assert build(network)(torch.zeros(0, 5), torch.zeros(2, 0, dtype=torch.long)).shape == (0, 3)


def through_numpy(edges: Tensor) -> None:
    edges.numpy()[:] = OTHER


def through_data(edges: Tensor) -> None:
    edges.data = torch.tensor(OTHER)


def in_data(edges: Tensor) -> None:
    edges.data.copy_(torch.tensor(OTHER))


def in_place(edges: Tensor) -> None:
    edges.copy_(torch.tensor(OTHER))


def one_entry(edges: Tensor) -> None:
    edges.detach().numpy()[0, 1] = 5
    edges.detach().numpy()[1, 2:] = [4, 3]


def in_inference_mode(edges: Tensor) -> None:
    with torch.inference_mode():
        edges.copy_(torch.tensor(OTHER))


CHANGES = [through_numpy, through_data, in_data, in_place, one_entry, in_inference_mode]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_graph_is_noticed(change: Callable[[Tensor], None], network: Any, x: Tensor) -> None:
    model = build(network)
    edges = torch.tensor(EDGES)
    before = model(x, edges)
    torch.testing.assert_close(model(x, edges), before, rtol=0, atol=0)
    change(edges)
    expected = build(network)(x, torch.tensor(OTHER))
    torch.testing.assert_close(model(x, edges), expected, rtol=0, atol=0)
    assert not torch.equal(before, expected)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_changed_array_behind_a_tensor_is_noticed(network: Any, x: Tensor) -> None:
    model, array = build(network), np.array(EDGES)
    edges = torch.from_numpy(array)
    model(x, edges)
    array[:] = OTHER
    torch.testing.assert_close(model(x, edges), build(network)(x, torch.tensor(OTHER)), rtol=0, atol=0)
    array[0, 0] = 99  # and what has become wrong is not hidden by what was remembered
    with pytest.raises(GraphError, match="edge 0 has source 99"):
        model(x, edges)


@pytest.mark.parametrize("network", NETWORKS)
def test_promised_edges_and_inference_tensors(network: Any, x: Tensor) -> None:
    model = build(network)
    expected = [build(network)(x, torch.tensor(edges)) for edges in (EDGES, OTHER)]
    promised = assume_constant(torch.tensor(EDGES))
    torch.testing.assert_close(model(x, promised), expected[0], rtol=0, atol=0)
    promised.copy_(torch.tensor(OTHER))  # torch counts this
    torch.testing.assert_close(model(x, promised), expected[1], rtol=0, atol=0)
    promised.data = torch.tensor(EDGES)
    torch.testing.assert_close(model(x, promised), expected[0], rtol=0, atol=0)
    with torch.inference_mode():
        inner = torch.tensor(EDGES)
        torch.testing.assert_close(model(x, inner), expected[0], rtol=0, atol=0)
        inner.copy_(torch.tensor(OTHER))
        torch.testing.assert_close(model(x, inner), expected[1], rtol=0, atol=0)


@pytest.mark.parametrize("network", [GCN, H2GCN, GPRGNN, FAGCN])
def test_an_unchanged_graph_is_prepared_once(network: Any, x: Tensor) -> None:
    model, edges = build(network), torch.tensor(EDGES)
    memory = next(value for value in vars(model).values() if type(value).__name__ == "OncePerGraph")
    built = []
    original = memory._build
    memory._build = lambda *arguments: built.append(1) or original(*arguments)
    for _ in range(3):
        model(x, edges)
    assert built == [1]
    memory._build = original
    assert copy.deepcopy(model)(x, edges).shape == (6, 3)
