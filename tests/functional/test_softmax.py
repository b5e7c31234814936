"""The q-softmax: regimes, gradients, ragged against dense, masked and extreme rows."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltga import LTGAError
from ltga.functional import q_softmax, segment_q_softmax

INDICES = [0.3, 0.999999, 1.0, 1.000001, 1.5, 2.0, 2.5]
INDEX = torch.tensor([2, 0, 0, 2, 4, 2, 0, 4])


def scores(seed=0, heads=3):
    return torch.randn(len(INDEX), heads, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def test_q_one_is_softmax():
    z = 5 * scores()
    assert torch.allclose(q_softmax(z, 1.0), torch.softmax(z, -1), rtol=1e-13)


def test_paper_counterexample():
    assert torch.allclose(q_softmax(torch.tensor([1.0, 0.5]), 2.0), torch.tensor([2 / 3, 1 / 3]))


def test_exact_zeros_begin_at_the_predicted_gap():
    q = 1.8
    gap = 1 / (q - 1)
    z = torch.tensor([0.0, -gap + 1e-6, -gap, -gap - 1e-6], dtype=torch.double)
    assert (q_softmax(z, q) > 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("q", INDICES)
def test_gradcheck_dense(q):
    z = (0.4 * scores()).requires_grad_()
    index = torch.tensor(q, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: q_softmax(a, b, dim=1), (z, index), atol=1e-7)


@pytest.mark.parametrize("shape", [(), (3,), (8, 3), (8, 1)])
@pytest.mark.parametrize("q", INDICES)
def test_gradcheck_segments_every_granularity(q, shape):
    z = (0.4 * scores()).requires_grad_()
    index = torch.full(shape, q, dtype=torch.double, requires_grad=True)
    run = lambda a, b: segment_q_softmax(a, b, index=INDEX, num_segments=6)  # noqa: E731
    assert torch.autograd.gradcheck(run, (z, index), atol=1e-7)


def test_gradient_through_the_maximum_matters():
    """Detaching the maximum, as a softmax implementation may, gives another gradient when q != 1."""
    z = scores()[:, 0].clone().requires_grad_()
    weights = torch.arange(8, dtype=torch.double)
    (kept,) = torch.autograd.grad((q_softmax(z, 1.5) * weights).sum(), z)
    from ltga.functional import exp_q

    y = exp_q(z - z.max().detach(), 1.5)
    (detached,) = torch.autograd.grad((y / y.sum() * weights).sum(), z)
    assert not torch.allclose(kept, detached, atol=1e-3)
    assert abs(kept.sum()) < 1e-12  # the map is shift-invariant as a whole


def test_segments_equal_dense_rows():
    z, q = scores(), torch.tensor([0.5, 1.0, 2.2], dtype=torch.double)
    ragged = segment_q_softmax(z, q, index=INDEX, num_segments=5)
    for segment in range(5):
        rows = segment == INDEX
        assert torch.allclose(ragged[rows], q_softmax(z[rows], q, dim=0), rtol=1e-13)
    order = INDEX.argsort(stable=True)
    ptr = torch.tensor([0, 3, 3, 6, 6, 8])
    assert torch.allclose(segment_q_softmax(z[order], q, ptr=ptr), ragged[order], rtol=1e-13)


def test_segment_lengths_zero_one_and_huge():
    sizes = torch.tensor([0, 1, 100_000, 0, 5])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    z = torch.randn(int(sizes.sum()), 2, generator=torch.Generator().manual_seed(3))
    for q in (0.5, 1.0, 1.5):
        p = segment_q_softmax(z, q, ptr=ptr)
        totals = torch.stack([p[a:b].sum(0) for a, b in itertools.pairwise(ptr)])
        assert torch.allclose(totals, (sizes > 0).float().unsqueeze(1).expand(-1, 2), atol=1e-4)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(-(2.0**127), 2.0**127, width=32), min_size=1, max_size=6),
    st.floats(-1, 4, width=32),
)
def test_any_finite_scores_give_a_distribution(values, q):
    z = torch.tensor(values, requires_grad=True)
    index = torch.tensor(q, requires_grad=True)
    p = q_softmax(z, index)
    (p * torch.arange(len(values))).sum().backward()
    assert torch.isfinite(p).all() and torch.isfinite(z.grad).all() and torch.isfinite(index.grad)
    assert (p >= 0).all() and p.sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("q", [0.0, 1.0, 1.5])
def test_masked_scores(q):
    z = torch.tensor([[0.3, -torch.inf, 1.0], [-torch.inf] * 3], requires_grad=True)
    p = q_softmax(z, q)
    p[:, 0].sum().backward()
    assert p[0, 1] == 0 and p[1].eq(0).all()
    assert torch.allclose(p[0, [0, 2]], q_softmax(z[0, [0, 2]].detach(), q))
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one"),
        ({"index": torch.tensor([0, -1])}, r"index: values must lie in \[0"),
        ({"index": torch.tensor([0, 5]), "num_segments": 3}, "found 5"),
        ({"index": torch.tensor([0])}, "1 entries for 2"),
        ({"index": torch.tensor([0.0, 1.0])}, "1-D integer"),
        ({"ptr": torch.tensor([0, 3])}, "rise from 0 to 2"),
        ({"ptr": torch.tensor([0, 2]), "num_segments": 4}, "num_segments"),
    ],
)
def test_bad_segments_are_named(arguments, message):
    with pytest.raises(LTGAError, match=message):
        segment_q_softmax(torch.zeros(2), 1.0, **arguments)
