"""Neighbourhoods against scipy and brute force; the cache: hits, changes in place, lifetime, threads."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import add_self_loops, remove_self_loops

from ltga import LTGAError
from ltga.kernels import Neighbourhoods, assume_constant, neighbourhoods
from ltga.kernels.runtime.neighbourhoods import _known, mean_features, sorted_structure, with_self_loops
from ltga.kernels.runtime.neighbourhoods import neighbourhoods as module_function
from ltga.nn import LTGAConv


@st.composite
def graphs(draw):
    sources, targets = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    pairs = draw(st.lists(st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1)), max_size=30))
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous(), sources, targets


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_against_brute_force(graph):
    edge_index, sources, targets = graph
    nb = Neighbourhoods.build(edge_index, sources, targets)
    edges = edge_index.t().tolist()
    ptr, col, perm, tptr, tcol, tpos = (array.tolist() for array in nb.structure)
    for i in range(targets):
        # Stable: a row lists its edges in the caller's order.
        assert perm[ptr[i] : ptr[i + 1]] == [k for k, edge in enumerate(edges) if edge[1] == i]
    assert col == [edges[k][0] for k in perm]
    assert ptr[0] == tptr[0] == 0
    assert ptr[-1] == tptr[-1] == len(edges)
    for j in range(sources):
        slots = range(tptr[j], tptr[j + 1])
        assert sorted(perm[tpos[s]] for s in slots) == [k for k, edge in enumerate(edges) if edge[0] == j]
        for s in slots:
            assert edges[perm[tpos[s]]] == [j, tcol[s]]
    assert [array.dtype for array in nb.structure] == [
        torch.int64, torch.int32, torch.int32, torch.int64, torch.int32, torch.int32,
    ]  # fmt: skip
    assert all(array.is_contiguous() for array in nb.structure)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.booleans(), st.booleans(), st.sampled_from([torch.int64, torch.int32]))
def test_counting_gives_what_sorting_gives(graph, loops, flip, dtype):
    """The compiled pass against torch's stable sort, which other devices use."""
    edge_index, sources, targets = graph
    nb = neighbourhoods((edge_index.flip(0) if flip else edge_index).to(dtype), sources, targets, loops, flip)
    edges = with_self_loops(edge_index, min(sources, targets)) if loops else edge_index
    assert torch.equal(nb.edge_index, edges)
    for ours, theirs in zip(nb.structure, sorted_structure(edges, sources, targets), strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_against_scipy():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.unique(torch.randint(0, 300, (2, 2000), generator=generator), dim=1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=generator)]
    nb = Neighbourhoods.build(edge_index, 300, 300)
    order = np.arange(1, edge_index.size(1) + 1)
    matrix = scipy.sparse.coo_matrix((order, (edge_index[1], edge_index[0])), shape=(300, 300))
    ours = scipy.sparse.csr_matrix((nb.perm.numpy() + 1, nb.col.numpy(), nb.ptr.numpy()), shape=(300, 300))
    assert (matrix.tocsr() != ours).nnz == 0
    back = scipy.sparse.csr_matrix(
        (nb.perm.numpy()[nb.tpos.numpy()] + 1, nb.tcol.numpy(), nb.tptr.numpy()), shape=(300, 300)
    )
    assert (matrix.tocsr().T.tocsr() != back).nnz == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_self_loops_are_replaced_in_pygs_order(dtype):
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 1, 0, 2]], dtype=dtype)
    wanted = [[0, 1, 0, 1, 2, 3], [1, 0, 0, 1, 2, 3]]
    assert with_self_loops(edge_index, 4).tolist() == wanted
    assert neighbourhoods(edge_index, 4, 4, True).edge_index.tolist() == wanted
    assert neighbourhoods(edge_index, 4, 4, False).edge_index.tolist() == edge_index.tolist()
    assert neighbourhoods(edge_index, 5, 3, True).edge_index.tolist() == [[0, 1, 0, 1, 2], [1, 0, 0, 1, 2]]


def test_same_tensor_same_object():
    edge_index = torch.tensor([[0, 1], [1, 2]])
    first = neighbourhoods(edge_index, 3, 3, True)
    assert neighbourhoods(edge_index, 3, 3, True) is first
    assert neighbourhoods(edge_index, 3, 3, False) is not first
    assert neighbourhoods(edge_index, 4, 3, True) is not first
    assert neighbourhoods(edge_index.clone(), 3, 3, True) is not first
    assert neighbourhoods(edge_index, 3, 3, True) is first


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.__setitem__((0, 0), 2),
        lambda e: e.add_(0).flip(0),
        lambda e: e[0].fill_(2),
        lambda e: e.t().copy_(torch.tensor([[2, 0], [2, 1]])),
    ],
)
def test_a_change_in_place_is_noticed(change):
    edge_index = torch.tensor([[0, 1], [1, 2]])
    first = neighbourhoods(edge_index, 3, 3, False)
    before = first.edge_index.clone()
    change(edge_index)
    second = neighbourhoods(edge_index, 3, 3, False)
    assert second is not first
    assert torch.equal(second.edge_index, edge_index)
    assert torch.equal(first.edge_index, before)  # what was handed out stays as it was
    conv = LTGAConv(4, 2)
    x = torch.randn(3, 4)
    assert torch.equal(conv(x, edge_index), conv(x, edge_index.clone()))


def test_a_change_out_of_range_is_noticed():
    edge_index = torch.tensor([[0, 1], [1, 2]])
    neighbourhoods(edge_index, 3, 3, False)
    edge_index[0, 0] = 3
    with pytest.raises(LTGAError, match="source 3"):
        neighbourhoods(edge_index, 3, 3, False)


def test_an_entry_dies_with_its_tensor():
    gc.collect()
    before = len(_known)
    edge_index = torch.tensor([[0, 1], [1, 2]])
    held = weakref.ref(neighbourhoods(edge_index, 3, 3, True))
    neighbourhoods(edge_index, 3, 3, False)
    assert len(_known) == before + 2
    del edge_index
    gc.collect()
    assert len(_known) == before
    assert held() is None


def test_many_short_lived_graphs_do_not_pile_up():
    """Mini-batches: ids are reused, entries must not be."""
    gc.collect()
    before = len(_known)
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        edge_index = torch.randint(0, 9, (2, 12), generator=generator)
        assert torch.equal(neighbourhoods(edge_index, 9, 9, False).edge_index, edge_index)
    del edge_index
    assert len(_known) == before


def test_inference_mode():
    conv = LTGAConv(4, 2, heads=2)
    x = torch.randn(3, 4)
    wanted = conv(x, torch.tensor([[0, 1], [1, 2]]))
    with torch.inference_mode():
        edge_index = torch.tensor([[0, 1], [1, 2]])
        assert torch.equal(conv(x, edge_index), wanted)
        edge_index[0, 0] = 2
        assert torch.equal(conv(x, edge_index), conv(x, torch.tensor([[2, 1], [1, 2]])))
    normal = torch.tensor([[0, 1], [1, 2]])
    with torch.inference_mode():
        first = conv(x, normal)
    leaf = x.clone().requires_grad_()
    out = conv(leaf, normal)  # what inference mode cached must still serve training
    assert torch.equal(out, first)
    out.sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("form", ["EdgeIndex", "flipped flow"])
def test_edge_index_objects_and_the_other_flow_are_sorted_once(form, monkeypatch):
    """A caller who passes the same tensor twice does not pay for sorting twice."""
    from torch_geometric import EdgeIndex

    from ltga.kernels import neighbourhoods as function

    code = __import__("sys").modules[function.__module__]
    calls = []
    original = code._built
    monkeypatch.setattr(code, "_built", lambda *args: calls.append(1) or original(*args))
    edge_index = torch.tensor([[0, 1], [1, 2]])
    conv = LTGAConv(4, 2, flow="source_to_target" if form == "EdgeIndex" else "target_to_source")
    given_graph = EdgeIndex(edge_index, sparse_size=(3, 3)) if form == "EdgeIndex" else edge_index
    for _ in range(3):
        conv(torch.randn(3, 4), given_graph)
    assert len(calls) == 1


def test_from_many_threads():
    edge_index = torch.randint(0, 500, (2, 5000), generator=torch.Generator().manual_seed(0))
    wanted = Neighbourhoods.build(edge_index, 500, 500)
    wrong = []

    def work(number):
        generator = torch.Generator().manual_seed(number)
        for _ in range(20):
            if not torch.equal(neighbourhoods(edge_index, 500, 500, False).perm, wanted.perm):
                wrong.append("shared")
            own = torch.randint(0, 9, (2, 20), generator=generator)
            if not torch.equal(neighbourhoods(own, 9, 9, False).edge_index, own):
                wrong.append("own")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (torch.tensor([[0], [3]]), "target 3"),
        (torch.tensor([[-1], [0]]), "source -1"),
        (torch.tensor([[0], [-(2**40)]]), "target"),
        (torch.tensor([[2**40], [0]]), "source"),
        (torch.tensor([0, 1]), "shape"),
        (torch.zeros(3, 2, dtype=torch.long), "shape"),
        (torch.zeros(2, 2), "integers"),
        (torch.zeros(2, 2, dtype=torch.bool), "integers"),
        (torch.zeros(2, 0), "integers"),
        ([[0], [1]], "tensor"),
    ],
)
def test_malformed(edge_index, message):
    for self_loops in (True, False):
        with pytest.raises(LTGAError, match=message):
            neighbourhoods(edge_index, 3, 3, self_loops)


def test_copies_and_devices():
    nb = neighbourhoods(torch.tensor([[0, 1], [1, 2]]), 3, 3, False)
    assert torch.equal(copy.deepcopy(nb).perm, nb.perm)
    moved = nb.to("cpu")
    assert all(torch.equal(a, b) for a, b in zip(moved.structure, nb.structure))
    assert moved.num_edges == 2
    assert module_function is neighbourhoods


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("nodes", "edges"), [(3, 0), (40, 90), (30, 3000)])
def test_features_of_self_loops_are_pygs(nodes, edges, dtype):
    edge_index, edge_attr = torch.randint(0, nodes, (2, edges)), torch.randn(edges, 3, dtype=dtype)
    kept, expected = add_self_loops(*remove_self_loops(edge_index, edge_attr), fill_value="mean", num_nodes=nodes)
    graph = neighbourhoods(edge_index, nodes, nodes, True)
    for order in (edge_attr, edge_attr.t().contiguous().t(), torch._neg_view(-edge_attr)):
        torch.testing.assert_close(mean_features(edge_index, order, graph), expected)
    assert torch.equal(graph.edge_index, kept)


@pytest.mark.parametrize("changed", [1, 7, -1])
def test_features_of_other_edges_than_promised(changed):
    """Once constant, edges are not looked at again; room made for other edges must not be written past."""
    edge_index = assume_constant(torch.arange(5).repeat(2, 40))
    layer = LTGAConv(4, 8, heads=2, edge_dim=3)
    given = torch.randn(5, 4), edge_index, torch.randn(200, 3)
    layer(*given)
    edge_index.numpy()[1, :] = changed
    with pytest.raises(LTGAError, match="edges have changed"):
        layer(*given)
