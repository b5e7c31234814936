"""What is remembered about a tensor is used only while the tensor holds what it held, however it was changed."""

import gc
import threading

import numpy as np
import pytest
import torch

from ltga import LTGAError
from ltga.kernels import SparseFeatures, assume_constant, compact_form, neighbourhoods
from ltga.kernels.runtime.fingerprint import fingerprint, is_assumed_constant
from ltga.kernels.runtime.memo import TensorMemo
from ltga.nn import LTGA, LTGAConv


def through_numpy(tensor):
    tensor.numpy()[0, 0] = 2


def through_data(tensor):
    tensor.data[0, 0] = 2


def by_other_data(tensor):
    other = tensor.clone()
    other[0, 0] = 2
    tensor.data = other


def by_other_data_in_place(tensor):
    tensor.data.copy_(by_hand(tensor))


def by_hand(tensor):
    other = tensor.clone()
    other[0, 0] = 2
    return other


def by_torch(tensor):
    tensor[0, 0] = 2


def through_a_view(tensor):
    tensor.view(-1)[0] = 2


def through_dlpack(tensor):
    torch.from_dlpack(tensor)[0, 0] = 2


def through_the_storage(tensor):
    tensor.untyped_storage().copy_(by_hand(tensor).untyped_storage())


CHANGES = [
    through_numpy, through_data, by_other_data, by_other_data_in_place, by_torch, through_a_view, through_dlpack,
    through_the_storage,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("origin", ["torch", "numpy", "inference"])
def test_a_changed_graph_is_noticed(change, origin):
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    if origin == "numpy":
        edges = torch.from_numpy(edges.numpy().copy())
    x, conv = torch.randn(4, 5), LTGAConv(5, 3, heads=2)
    with torch.inference_mode(origin == "inference"):
        edges = edges.clone() if origin == "inference" else edges
        before = conv(x, edges)
        try:
            change(edges)
        except RuntimeError:
            pytest.skip("torch does not let an inference tensor be changed so")
        after, wanted = conv(x, edges), conv(x, edges.clone())
    assert torch.equal(after, wanted) and not torch.allclose(after, before)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("kind", ["sparse", "repeated"])
def test_changed_features_are_noticed(change, kind):
    generator = torch.Generator().manual_seed(0)
    if kind == "sparse":
        x = (torch.rand(600, 200, generator=generator) < 0.02).float()
    else:
        x = torch.randn(20, 200, generator=generator)[torch.arange(600) % 20].contiguous()
    edges = torch.randint(0, 600, (2, 900), generator=generator)
    for model in (LTGAConv(200, 4), LTGA(200, 3, hidden_channels=4, heads=2).eval()):
        first = [model(x, edges) for _ in range(3)][-1]  # by now the cheaper form is in use
        assert compact_form(x) is not None
        keep = x.clone()
        change(x)
        after, wanted = model(x, edges), model(x.clone(), edges)
        assert torch.allclose(after, wanted, atol=1e-5) and not torch.allclose(after, first, atol=1e-5)
        x = keep


def test_the_hash_sees_every_bit_the_order_the_type_and_the_shape():
    generator = np.random.default_rng(0)
    for size in (1, 3, 16, 17, 1000, 70_001):
        x = torch.from_numpy(generator.integers(0, 50, size))
        before = fingerprint(x)
        assert fingerprint(x.clone()) == before
        for position in {0, size // 2, size - 1}:
            bit = 1 << int(generator.integers(63))
            x[position] ^= bit
            assert fingerprint(x) != before, (size, position, bit)
            x[position] ^= bit
        assert fingerprint(x) == before
        if size > 2:
            swapped = x.clone()
            swapped[0], swapped[-1] = x[-1] + 1, x[0] + 1
            assert len({before, fingerprint(swapped), fingerprint(x.flip(0) + 1)}) == 3
    x = torch.zeros(6)
    kinds = [x, x.view(2, 3), x.view(3, 2), x.int(), x.double(), torch.zeros(7), torch.zeros(0), -x]
    assert len({fingerprint(kind) for kind in kinds}) == len(kinds)


def test_no_two_of_many_small_changes_share_a_hash():
    edges = torch.randint(0, 1000, (2, 3000), generator=torch.Generator().manual_seed(1))
    seen = {fingerprint(edges)}
    for position in range(3000):
        old = int(edges[0, position])
        edges[0, position] = (old + 1) % 1000
        seen.add(fingerprint(edges))
        edges[0, position] = old
    assert len(seen) == 3001


def test_the_hash_does_not_depend_on_threads_layout_or_alignment():
    x = torch.randn(1000, 333)
    wanted, threads = fingerprint(x), torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        assert fingerprint(x) == wanted
    torch.set_num_threads(threads)
    assert fingerprint(x.t().contiguous().t()) == wanted
    shifted = torch.empty(x.numel() + 1)[1:].view_as(x).copy_(x)  # 4 bytes off
    assert shifted.data_ptr() % 8 and fingerprint(shifted) == wanted


def test_a_promise_spares_the_hash_but_not_torchs_own_count(monkeypatch):
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    promised = assume_constant(edges)
    assert promised.data_ptr() == edges.data_ptr() and torch.equal(promised, edges)
    first = neighbourhoods(promised, 3, 3, False)
    monkeypatch.setattr("ltga.kernels.runtime.memo.content_of", lambda tensor: pytest.fail("not believed"))
    assert neighbourhoods(promised, 3, 3, False) is first
    monkeypatch.undo()
    edges[0, 0] = 2  # by torch, on the original: noticed all the same
    assert neighbourhoods(promised, 3, 3, False) is not first


def test_what_wants_gradients_is_not_constant():
    with pytest.raises(LTGAError, match="tensor: wants gradients"):
        assume_constant(torch.zeros(3, requires_grad=True))


def test_a_promise_ends_with_its_tensor():
    from ltga.kernels.runtime.fingerprint import _constant

    gc.collect()
    before = len(_constant)
    promised = assume_constant(torch.zeros(3))
    assert is_assumed_constant(promised) and len(_constant) == before + 1
    del promised
    gc.collect()
    assert len(_constant) == before and not is_assumed_constant(torch.zeros(3))


def test_many_threads_may_ask_at_once():
    memo, faults = TensorMemo(), []

    def work(number):
        for k in range(200):
            x = torch.full((8,), float(number * 1000 + k))
            memo.put(x, "sum", memo.content(x), float(x.sum()))
            if memo.get(x, "sum") != float(x.sum()):
                faults.append((number, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not faults and len(memo) == 0


def test_features_that_were_dense_may_become_sparse_and_the_other_way():
    x = torch.randn(600, 200)
    conv, edges = LTGAConv(200, 2), torch.randint(0, 600, (2, 100))
    for _ in range(3):
        conv(x, edges)
    assert compact_form(x) is None
    x.numpy()[:] = 0
    assert torch.allclose(conv(x, edges), conv(x.clone(), edges), atol=1e-6)
    sparse = torch.zeros(600, 200)
    assert isinstance(compact_form(sparse), SparseFeatures)
    sparse.numpy()[:] = 1
    assert compact_form(sparse) is None or torch.equal(compact_form(sparse).to_dense(), sparse)


@pytest.mark.parametrize("nodes", [100, 40_000])  # remembered by a copy, and by a hash
def test_a_write_behind_torchs_back_is_noticed_at_any_size(nodes):
    edges = torch.arange(2 * nodes).remainder(nodes).view(2, nodes)
    first = neighbourhoods(edges, nodes, nodes, False)
    assert neighbourhoods(edges, nodes, nodes, False) is first
    edges.numpy()[0, nodes // 2] = 0
    second = neighbourhoods(edges, nodes, nodes, False)
    assert second is not first
    assert torch.equal(second.edge_index, edges)
