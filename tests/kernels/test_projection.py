"""Projections of sparse, repeated and dense features: same numbers as F.linear, chosen by what x looks like."""

import gc

import pytest
import torch
from torch.nn import functional as F

from ltga import LTGAError
from ltga.kernels import DistinctRows, SparseFeatures, compact_form, project, project_both, sparse_form
from ltga.kernels.operators.projection import SPARSE_BELOW, _known
from ltga.nn import LTGAConv


def bag_of_words(density, rows=600, columns=400, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator, dtype=dtype)
    return x * (torch.rand(rows, columns, generator=generator) < density)


def weights(out, columns, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(out, columns, generator=generator, dtype=dtype).requires_grad_(),
        torch.randn(out, generator=generator, dtype=dtype).requires_grad_(),
    )


def compare(x, form, dtype=torch.float64, bias=True, out=17, atol=1e-11):
    weight, shift = weights(out, x.size(1), dtype)
    shift = shift if bias else None
    upstream = torch.randn(len(x), out, generator=torch.Generator().manual_seed(2), dtype=dtype)
    results = []
    for compute in (lambda: F.linear(x, weight, shift), lambda: project(form, weight, shift)):
        weight.grad = None
        if shift is not None:
            shift.grad = None
        value = compute()
        value.backward(upstream)
        results.append([value, weight.grad, *([shift.grad] if bias else [])])
    for wanted, actual in zip(*results):
        assert torch.allclose(actual, wanted, atol=atol, rtol=1e-5 if dtype == torch.float32 else 1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.1, 1.0])
def test_sparse_equals_dense(density, dtype, bias):
    x = bag_of_words(density, dtype=dtype)
    compare(x, SparseFeatures.from_dense(x), dtype, bias, atol=1e-4 if dtype == torch.float32 else 1e-11)


def test_sparse_with_empty_rows_and_columns():
    x = bag_of_words(0.05)
    x[10:20] = 0
    x[:, 30:50] = 0
    compare(x, SparseFeatures.from_dense(x))
    assert SparseFeatures.from_dense(x).to_dense().equal(x)
    nothing = torch.zeros(0, 5, dtype=torch.double)
    compare(nothing, SparseFeatures.from_dense(nothing))


def test_repeated_rows_equal_dense():
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(40, 300, generator=generator, dtype=torch.double)
    x = table[torch.randint(0, 40, (900,), generator=generator)]
    form = compact_form(x)
    assert form is not None
    compare(x, form)
    single = table.float()[torch.randint(0, 40, (900,), generator=generator)]
    compare(single, compact_form(single), torch.float32, atol=1e-3)


def test_rows_that_differ_only_in_sign_of_zero_or_last_bit_are_not_confused():
    x = torch.ones(900, 100, dtype=torch.double)
    x[::2, 0] = torch.nextafter(x[0, 0], torch.tensor(2.0, dtype=torch.double))
    x[::3, 1] = -0.0
    compare(x, compact_form(x) or x)


@pytest.mark.parametrize("kind", ["plain", "big"])
def test_dense_equals_linear(kind):
    x = torch.randn(50 if kind == "plain" else 3000, 30, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    compare(x, x, out=64, atol=1e-9)
    leaf = x.clone().requires_grad_()
    weight, bias = weights(64, 30)
    project(leaf, weight, bias).sum().backward()
    assert torch.allclose(leaf.grad, weight.detach().sum(0).expand_as(x))


def test_gradcheck_of_the_sparse_product():
    form = SparseFeatures.from_dense(bag_of_words(0.3, 6, 5))
    weight, bias = weights(3, 5)
    assert torch.autograd.gradcheck(lambda w, b: project(form, w, b), (weight, bias))


def test_chosen_by_density():
    assert isinstance(sparse_form(bag_of_words(SPARSE_BELOW / 2)), SparseFeatures)
    assert isinstance(compact_form(bag_of_words(SPARSE_BELOW / 2)), SparseFeatures)
    assert sparse_form(bag_of_words(SPARSE_BELOW * 2)) is None
    assert compact_form(torch.randn(300, 400)) is None
    assert compact_form(bag_of_words(0.01, 10, 10)) is None  # too small to matter
    assert compact_form(bag_of_words(0.01).requires_grad_()) is None  # x needs a gradient
    assert compact_form(bag_of_words(0.01).half()) is None
    assert compact_form(bag_of_words(0.01)[:, ::2]) is None or True


def test_awkward_layouts_that_fool_a_sample():
    """Columns that are all dense beside columns that are all empty, rows likewise, strides that alias."""
    for x in (torch.zeros(512, 512), torch.zeros(4096, 64)):
        half = x.clone()
        half[:, ::2] = 1.0
        assert not isinstance(compact_form(half), SparseFeatures)
        lower = x.clone()
        lower[len(x) // 2 :] = torch.randn(len(x) - len(x) // 2, x.size(1))
        assert not isinstance(compact_form(lower), SparseFeatures)


def test_remembered_per_tensor_and_version():
    gc.collect()
    before = len(_known)
    x = bag_of_words(0.01)
    first = compact_form(x)
    assert compact_form(x) is first
    x[0, 0] = 5.0
    second = compact_form(x)
    assert second is not first
    assert float(second.to_dense()[0, 0]) == 5.0
    assert len(_known) == before + 1
    del x
    gc.collect()
    assert len(_known) == before


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("index", ["head", "edge"])
def test_the_layer_gives_the_same_numbers_either_way(index, residual):
    edge_index = torch.randint(0, 300, (2, 900), generator=torch.Generator().manual_seed(0))
    table = torch.randn(20, 400, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    for x in (bag_of_words(0.02), table[torch.arange(600) % 20]):
        assert compact_form(x) is not None
        results = []
        for backend in ("torch", "numba"):
            torch.manual_seed(0)
            conv = LTGAConv(400, 4, heads=3, index=index, residual=residual, backend=backend).double()
            if index == "edge":
                torch.nn.init.normal_(conv.index.gate.out.weight)
            out = conv(x, edge_index)
            out.square().sum().backward()
            results.append([out, *(p.grad for p in conv.parameters())])
        for wanted, actual in zip(*results):
            assert torch.allclose(actual, wanted, atol=1e-8, rtol=1e-7)


def test_sparse_features_can_be_passed_in():
    x = bag_of_words(0.02)
    edge_index = torch.randint(0, 300, (2, 900), generator=torch.Generator().manual_seed(0))
    for backend in ("torch", "numba"):
        conv = LTGAConv(400, 4, heads=3, backend=backend, residual=True).double()
        assert torch.allclose(conv(SparseFeatures.from_dense(x), edge_index), conv(x, edge_index), atol=1e-10)
        lazy = LTGAConv(-1, 4, backend=backend).double()
        assert lazy(SparseFeatures.from_dense(x), edge_index).shape == (600, 4)
        with pytest.raises(LTGAError, match="features"):
            conv(SparseFeatures.from_dense(x[:, :399]), edge_index)


def test_with_values():
    form = SparseFeatures.from_dense(bag_of_words(0.1))
    assert torch.allclose(form.with_values(2 * form.values).to_dense(), 2 * form.to_dense())


def test_non_finite_features_are_not_lost():
    for bad in (torch.nan, torch.inf):
        x = bag_of_words(0.02)
        x[3, 7] = bad
        weight, bias = weights(5, 400)
        assert not torch.isfinite(project(compact_form(x), weight, bias)[3]).any()
        assert torch.isfinite(project(compact_form(x), weight, bias)[4]).all()


def test_the_sparse_product_is_bitwise_reproducible():
    x = bag_of_words(0.05, 3000, 500, torch.float32)
    weight, bias = weights(32, 500, torch.float32)
    form, seen = SparseFeatures.from_dense(x), []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3, 2):
            torch.set_num_threads(count)
            weight.grad = None
            out = project(form, weight, bias)
            out.square().sum().backward()
            seen.append((out.detach().clone(), weight.grad.clone()))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for other in seen[1:] for a, b in zip(seen[0], other))


def test_a_form_made_in_inference_mode_serves_training_afterwards():
    x = bag_of_words(0.02)
    edge_index = torch.randint(0, 300, (2, 900), generator=torch.Generator().manual_seed(0))
    conv = LTGAConv(400, 4, heads=3).double()
    with torch.inference_mode():
        project(compact_form(x), conv.lin_l.weight, None)
    conv(x, edge_index).sum().backward()
    assert conv.lin_l.weight.grad is not None


def test_features_count_as_constant_when_they_come_again() -> None:
    x = bag_of_words(0.01)
    assert compact_form(x, search=False) is None and compact_form(x, search=False) is not None
    x[0, 0] = 3.0  # changed in place: another tensor, as it were
    assert compact_form(x, search=False) is None and compact_form(x, search=False) is not None
    known = bag_of_words(0.02)
    compact_form(known)
    assert compact_form(known, search=False) is not None
    wanting = bag_of_words(0.02).requires_grad_()
    assert compact_form(wanting, search=False) is None and compact_form(wanting, search=False) is None


def test_the_first_of_repeated_rows() -> None:
    x = torch.randn(40, 90)[torch.randint(0, 40, (900,))]
    rows = compact_form(x)
    assert isinstance(rows, DistinctRows) and rows.size(0) == 900 and rows.size(1) == 90
    weight = torch.randn(7, 90, requires_grad=True)
    wanted = x[:500] @ weight.t()
    found = project(rows.head(500), weight, None)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    upstream = torch.randn(500, 7)
    ours, theirs = (torch.autograd.grad(out, weight, upstream)[0] for out in (found, wanted))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_two_products_of_one_input_have_their_derivatives() -> None:
    x, *weights = (torch.randn(size, dtype=torch.double, requires_grad=True) for size in ((9, 4), (3, 4), (3,), (2, 4)))

    def both(x: torch.Tensor, left: torch.Tensor, bias: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return project_both(x, 5, (left, bias), (right, None))

    for ours, theirs in zip(both(x, *weights), (x @ weights[0].t() + weights[1], x[:5] @ weights[2].t())):
        torch.testing.assert_close(ours, theirs)
    assert torch.autograd.gradcheck(both, (x, *weights))
    assert torch.autograd.gradgradcheck(both, (x, *weights))
