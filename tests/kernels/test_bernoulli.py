"""torch's own dropout is the oracle: masks, gradients and the generator's state afterwards must be the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import LTGAError
from ltga.kernels import Part, SparseFeatures, counter_dropout, torch_dropout
from ltga.kernels.numba.mersenne import next_block, temper
from ltga.kernels.operators import bernoulli
from ltga.kernels.operators.bernoulli import FEWEST, _draws_as_torch_does, draw
from ltga.nn import LTGA

needs_torchs_own_generator = pytest.mark.skipif(
    not _draws_as_torch_does(), reason="torch draws from another generator on this processor"
)


def _after(seed: int, words: int) -> None:
    """Leave torch's generator ``words`` 32-bit words past a seed, so that draws begin anywhere in a block."""
    torch.manual_seed(seed)
    if words:
        torch.rand(words)


def test_the_generator_is_the_mersenne_twister_of_numpy() -> None:
    legacy = np.random.RandomState(5)
    _, key, position, *_ = legacy.get_state()  # type: ignore[misc]
    assert position == 624  # nothing drawn yet: the next word comes from the next block
    new = np.empty(624, np.uint32)
    next_block(key.astype(np.uint32), new)
    wanted = legacy.randint(0, 2**32, 624, dtype=np.uint32)
    assert [temper(word) for word in new] == wanted.tolist()


@needs_torchs_own_generator
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.4, 0.5, 0.9])
@pytest.mark.parametrize("words", [0, 1, 2, 311, 623, 624, 625, 1247])
def test_same_mask_same_gradient_same_state(words: int, p: float, dtype: torch.dtype) -> None:
    x = torch.randn(7, FEWEST // 7 + 3, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_()
    results = []
    for dropout in (F.dropout, torch_dropout):
        _after(3, words)
        out = dropout(x, p)
        state = torch.get_rng_state()
        (gradient,) = torch.autograd.grad(out.square().sum(), x)
        results.append((out, gradient, state, torch.rand(3), torch.randn(3)))
    for ours, theirs in zip(*results):
        assert torch.equal(ours, theirs)


@needs_torchs_own_generator
@pytest.mark.parametrize("words", [0, 1, 623])
@pytest.mark.parametrize("count", [FEWEST, FEWEST + 1, 10 * FEWEST])
def test_some_of_the_draws_are_those_of_all_of_them(count: int, words: int) -> None:
    choice = torch.Generator().manual_seed(1)
    everywhere = torch.arange(count)
    for wanted in (everywhere[:0], everywhere[-1:], everywhere, torch.randperm(count, generator=choice)[:99].sort()[0]):
        _after(2, words)
        drawn = torch.empty(count).bernoulli_(0.6) != 0
        state = torch.get_rng_state()
        _after(2, words)
        assert torch.equal(draw(count, 0.6, wanted), drawn[wanted])
        assert torch.equal(torch.get_rng_state(), state)


def test_sparse_features_drop_what_dense_ones_would() -> None:
    x = torch.zeros(90, 80)
    x.view(-1)[::7] = torch.rand(len(x.view(-1)[::7])) + 0.5
    sparse = SparseFeatures.from_dense(x)
    for p in (0.4, 1.0):
        model = LTGA(80, 2, dropout=p).train()
        torch.manual_seed(4)
        wanted = F.dropout(x, p)
        torch.manual_seed(4)
        dropped = model._drop(sparse, 0, None)
        assert isinstance(dropped, SparseFeatures) and torch.equal(dropped.to_dense(), wanted)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("training", [True, False])
def test_nothing_and_everything(p: float, training: bool) -> None:
    x = torch.randn(100, 100)
    assert torch.equal(torch_dropout(x, p, training), F.dropout(x, p, training))


def test_second_derivative() -> None:
    x = torch.randn(80, 80, dtype=torch.double, requires_grad=True)
    torch.manual_seed(1)
    (first,) = torch.autograd.grad(torch_dropout(x, 0.3).pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.manual_seed(1)
    (wanted,) = torch.autograd.grad(F.dropout(x, 0.3).pow(3).sum(), x, create_graph=True)
    (wanted,) = torch.autograd.grad(wanted.sum(), x)
    torch.testing.assert_close(second, wanted)


def test_where_torch_draws_otherwise_torch_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bernoulli, "_draws_as_torch_does", lambda: False)
    monkeypatch.setattr(bernoulli, "_draw", lambda *_: pytest.fail("drew by itself"))
    x = torch.randn(100, 100)
    torch.manual_seed(1)
    wanted = F.dropout(x, 0.4)
    torch.manual_seed(1)
    assert torch.equal(torch_dropout(x, 0.4), wanted)
    torch.manual_seed(1)
    assert torch.equal(draw(10000, 0.6, torch.tensor([3, 5])), (wanted != 0).view(-1)[[3, 5]])


def test_unsorted_numbers_are_drawn_in_their_own_order() -> None:
    wanted = torch.tensor([9000, 3, 3, 7000])
    torch.manual_seed(1)
    drawn = torch.empty(10_000).bernoulli_(0.6) != 0
    torch.manual_seed(1)
    assert torch.equal(draw(10_000, 0.6, wanted), drawn[wanted])


@pytest.mark.parametrize("wanted", [[-1, 2], [2, 10_000]])
def test_numbers_beyond_the_draws_are_refused(wanted: list[int]) -> None:
    with pytest.raises(LTGAError, match="wanted"):
        draw(10_000, 0.6, torch.tensor(wanted))


@pytest.mark.parametrize("kind", ["torch", "counter"])
def test_a_part_must_be_one_of_the_array(kind: str) -> None:
    for rows in (torch.arange(4), torch.arange(5) + 6, torch.arange(5) - 1, torch.arange(5).int()):
        part = Part(rows, 10)
        with pytest.raises(LTGAError, match="part"):
            if kind == "torch":
                torch_dropout(torch.ones(5, 3), 0.5, part=part)
            else:
                counter_dropout(torch.ones(5, 3), 0.5, (1, 2), part)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_part_is_dropped_as_it_would_be_in_the_whole(dtype: torch.dtype) -> None:
    rows = torch.tensor([7, 0, 3000, 2])
    torch.manual_seed(1)
    wanted = F.dropout(torch.ones(4000, 6, dtype=dtype), 0.3)[rows]
    torch.manual_seed(1)
    assert torch.equal(torch_dropout(torch.ones(4, 6, dtype=dtype), 0.3, part=Part(rows, 4000)), wanted)


def test_transforms_of_functions_see_a_derivative() -> None:
    x = torch.randn(80, 80)

    def loss(x: Tensor) -> Tensor:
        torch.manual_seed(1)
        return torch_dropout(x, 0.3).square().sum()

    torch.manual_seed(1)
    wanted = 2 * F.dropout(x, 0.3) / 0.7
    torch.testing.assert_close(torch.func.grad(loss)(x), wanted)


def test_the_trial_leaves_the_generator_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    _draws_as_torch_does.__wrapped__()
    assert torch.equal(torch.get_rng_state(), before)
