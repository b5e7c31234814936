"""The hand-written vector loops against plain numpy, for widths around every chunk size."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from ltga.kernels.numba import vectors  # noqa: E402

CHANNELS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 18, 31, 32, 33, 47, 63, 64, 65, 96, 100, 130]
TYPES = [np.float32, np.float64]


@numba.njit
def call_dot(a, a_at, b, b_at, channels):
    return vectors.dot(a, a_at, b, b_at, channels)


@numba.njit
def call_logit(source, source_at, target, target_at, att, att_at, channels, slope):
    return vectors.gatv2_logit(source, source_at, target, target_at, att, att_at, channels, slope)


@numba.njit
def call_gather(total, at, base, base_at, table, stride, offset, rows, factors, first, last, channels):
    vectors.gather_sum(total, at, base, base_at, table, stride, offset, rows, factors, first, last, channels)


@numba.njit
def call_scatter(table, stride, rows, factors, first, last, source, at, channels):
    vectors.scatter_add(table, stride, rows, factors, first, last, source, at, channels)


@numba.njit
def call_target(gt, at, ga, ga_at, att, target, source, stride, offset, rows, factors, count, channels, slope):
    vectors.gatv2_target_gradient(
        gt, at, ga, ga_at, att, target, source, stride, offset, rows, factors, count, channels, slope
    )


@numba.njit
def call_source(gs, at, source, att, target, stride, offset, up, up_stride, up_offset, rows, w, f, count, c, slope):
    vectors.gatv2_source_gradient(
        gs, at, source, att, target, stride, offset, up, up_stride, up_offset, rows, w, f, count, c, slope
    )


@numba.njit
def call_prefetch(array, position, channels):
    vectors.prefetch(array, position, channels)


def draw(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def close(actual, wanted, dtype):
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", CHANNELS)
def test_sums_over_channels(channels, dtype):
    rng = np.random.default_rng(channels)
    a, b, att = draw(rng, dtype, 3, channels), draw(rng, dtype, 4, channels), draw(rng, dtype, 2, channels)
    close(call_dot(a, channels, b, 2 * channels, channels), a[1] @ b[2], dtype)
    t = a[1] + b[2]
    wanted = att[1] @ np.where(t > 0, t, 0.2 * t)
    close(call_logit(a, channels, b, 2 * channels, att, channels, channels, dtype(0.2)), wanted, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", CHANNELS)
def test_gather_and_scatter(channels, dtype):
    """Only the addressed part of an array changes, and repeated rows count twice."""
    rng = np.random.default_rng(channels)
    table, total, base = draw(rng, dtype, 9, 3, channels), draw(rng, dtype, 4, channels), draw(rng, dtype, 2, channels)
    rows, factors = np.array([8, 0, 3, 3, 7], np.int32), draw(rng, dtype, 5)
    wanted = total.copy()
    wanted[2] = base[1] + (factors[1:4, None] * table[rows[1:4], 1]).sum(0)
    call_gather(
        total, 2 * channels, base, channels, table, 3 * channels, channels, rows, factors, 1, 4, channels
    )  # fmt: skip
    close(total, wanted, dtype)
    flat, source = draw(rng, dtype, 9, channels), draw(rng, dtype, 2, channels)
    wanted = flat.copy()
    np.add.at(wanted, rows[1:4], factors[1:4, None] * source[1])
    call_scatter(flat, channels, rows, factors, 1, 4, source, channels, channels)
    close(flat, wanted, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", CHANNELS)
def test_gradient_loops(channels, dtype):
    rng = np.random.default_rng(channels)
    x, target, up = (draw(rng, dtype, 6, 2, channels) for _ in range(3))
    att, slope = draw(rng, dtype, 2, channels), dtype(0.2)
    rows, factors, weights = np.array([5, 1, 1, 2], np.int32), draw(rng, dtype, 4), draw(rng, dtype, 4)
    stride, at = 2 * channels, 3 * 2 * channels + channels  # node 3, head 1

    t = x[rows, 1] + target[3, 1]
    f = factors[:, None] * np.where(t > 0, 1, slope)
    grad_target, grad_att = np.zeros_like(target), draw(rng, dtype, 2, channels)
    wanted_target, wanted_att = np.zeros_like(target), grad_att.copy()
    wanted_target[3, 1] = att[1] * f.sum(0)
    wanted_att[1] += (f * t).sum(0)
    call_target(
        grad_target, at, grad_att, channels, att, target, x, stride, channels, rows, factors, 4, channels, slope
    )  # fmt: skip
    close(grad_target, wanted_target, dtype)
    close(grad_att, wanted_att, dtype)

    t = target[rows, 1] + x[3, 1]
    f = factors[:, None] * np.where(t > 0, 1, slope)
    grad_x, wanted = np.zeros_like(x), np.zeros_like(x)
    wanted[3, 1] = att[1] * f.sum(0) + (weights[:, None] * up[rows, 1]).sum(0)
    call_source(
        grad_x, at, x, att, target, stride, channels, up, stride, channels, rows, weights, factors, 4, channels, slope
    )  # fmt: skip
    close(grad_x, wanted, dtype)


def test_prefetch_changes_nothing():
    values = np.arange(100.0)
    call_prefetch(values, 3, 90)
    assert (values == np.arange(100.0)).all()


def test_only_contiguous_arrays_compile():
    with pytest.raises(numba.core.errors.TypingError):
        call_dot(np.zeros((4, 4))[:, ::2], 0, np.zeros(4), 0, 2)
