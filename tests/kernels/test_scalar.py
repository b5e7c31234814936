"""The kernels' own exp, expm1, tanh, log, log1p, exp_q and curvature against mpmath, in double precision."""

import mpmath
import numpy as np
import pytest

numba = pytest.importorskip("numba")

from ltga.kernels.numba import scalar  # noqa: E402

EPS = np.finfo(np.float64).eps
mpmath.mp.dps = 50


@numba.njit
def each(function, x):
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = function(x[k])
    return out


@numba.njit
def each_pair(function, x, d):
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = function(x[k], d[k])
    return out


@numba.njit
def each_curvature(x, d):
    out = np.empty_like(x)
    for k in range(len(x)):
        out[k] = scalar.curvature(x[k], d[k], 1.0 / (1.0 + d[k] * x[k]))
    return out


def relative(actual, wanted):
    return np.array([float(abs(mpmath.mpf(float(a)) - w) / abs(w)) if w else abs(a) for a, w in zip(actual, wanted)])


def spread(low, high, count, seed):
    """Log-uniform magnitudes."""
    return 10 ** np.random.default_rng(seed).uniform(np.log10(low), np.log10(high), count)


def test_exp():
    rng = np.random.default_rng(0)
    x = np.concatenate([
        rng.uniform(-707, 0, 400), rng.uniform(-2, 2, 300), rng.uniform(0, 708, 100), -spread(1e-300, 1, 100, 1),
        np.log(2) * np.arange(-1000, 0, 37), np.log(2) * (np.arange(-1000, 0, 37) + 0.5), [0.0, -0.0],
    ])  # fmt: skip
    x = x[x > -707.9]
    assert relative(each(scalar.exp, x), [mpmath.exp(float(v)) for v in x]).max() <= 2 * EPS
    assert each(scalar.exp, np.array([-708.5, -1e4, -1e300, -np.inf])).tolist() == [0.0] * 4


def test_tanh():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-20, 20, 300), rng.uniform(-1, 1, 300), spread(1e-300, 1, 100, 2), [0.0, 800, -800]]
    )
    actual = each(scalar.tanh, x)
    assert max(abs(float(a - mpmath.tanh(float(v)))) for a, v in zip(actual, x)) <= 4 * EPS
    assert each(scalar.tanh, np.array([0.0, -0.0, np.inf, -np.inf])).tolist() == [0.0, 0.0, 1.0, -1.0]
    assert np.isnan(each(scalar.tanh, np.array([np.nan]))).all()


def test_log():
    x = np.concatenate([spread(1e-300, 1e300, 2000, 6), 1 + spread(1e-15, 0.5, 500, 7), 1 - spread(1e-15, 0.5, 500, 8)])
    assert relative(each(scalar.log, x), [mpmath.log(float(v)) for v in x]).max() <= 3 * EPS
    assert each(scalar.log, np.array([1.0]))[0] == 0.0


def test_expm1():
    x = np.concatenate([-spread(1e-300, 700, 2000, 9), spread(1e-300, 700, 2000, 10), [0.5, -0.5]])
    assert relative(each(scalar.expm1, x), [mpmath.expm1(float(v)) for v in x]).max() <= 6 * EPS
    assert each(scalar.expm1, np.array([0.0]))[0] == 0.0


def test_log1p():
    rng = np.random.default_rng(0)
    u = np.concatenate([
        rng.uniform(-0.999, 1, 500), spread(1e-300, 1e300, 400, 1), -spread(1e-300, 0.999, 300, 2),
        -1 + spread(1e-15, 1e-1, 100, 3), [-0.5, -0.29289321881345254, 0.41421356237309515, 1.0],
    ])  # fmt: skip
    assert relative(each(scalar.log1p, u), [mpmath.log1p(float(v)) for v in u]).max() <= 3 * EPS
    assert each(scalar.log1p, np.array([0.0]))[0] == 0.0


def exact_exp_q(x, d):
    x, d = mpmath.mpf(float(x)), mpmath.mpf(float(d))
    u = d * x
    if u <= -1:
        return mpmath.mpf(0)
    return mpmath.exp(x) if d == 0 else mpmath.exp(mpmath.log1p(u) / d)


def samples():
    rng = np.random.default_rng(5)
    d = np.concatenate(
        [rng.uniform(-1.9, 2.9, 700), spread(1e-12, 1e-1, 300, 6), -spread(1e-12, 1e-1, 300, 7), np.zeros(50)]
    )
    x = -np.concatenate([rng.uniform(0, 80, 650), spread(1e-12, 80, 700, 8)])
    rng.shuffle(d)
    return x, d[: len(x)]


def test_exp_q():
    x, d = samples()
    actual = each_pair(scalar.exp_q, x, d)
    u = d * x
    inside = u > -1 + 1e-9  # at the very edge d * x itself rounds to one side or the other
    wanted = [exact_exp_q(a, b) for a, b in zip(x[inside], d[inside])]
    ratio = np.array([float(mpmath.log1p(v) / v) if v else 1.0 for v in u[inside].tolist()])
    allowed = 4 * EPS * (1 + np.abs(x[inside] * ratio) + np.abs(x[inside] / (1 + u[inside])))
    normal = np.array([w > 1e-300 for w in wanted])
    assert (relative(actual[inside], wanted)[normal] <= allowed[normal]).all()
    assert (actual[u <= -1] == 0).all()


def test_exp_q_at_special_points():
    x = np.array([0.0, -0.0, -np.inf, -1e300, -1.0, -1.0, -1e-300, -1e-300, -1e-300, -5e-324, -1e30, -1e30])
    d = np.array([0.7, -0.7, 0.5, 0.5, 1.0, 1.0 + 1e-9, 1.0, -1.0, 0.5, 1.0, 0.0, -0.5])
    actual = each_pair(scalar.exp_q, x, d)
    assert np.isfinite(actual).all()
    wanted = [float(exact_exp_q(a, b)) if np.isfinite(a) and a > -1e300 else 0.0 for a, b in zip(x, d)]
    np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=0)


def test_curvature():
    """d log exp_q(x) / dq = (u/(1+u) - log(1+u)) / d^2."""
    x, d = samples()
    inside = d * x > -0.999
    x, d = x[inside], d[inside]
    wanted = []
    for a, b in zip(x.tolist(), d.tolist()):
        u, delta = mpmath.mpf(b) * mpmath.mpf(a), mpmath.mpf(b)
        wanted.append(-(mpmath.mpf(a) ** 2) / 2 if b == 0 else (u / (1 + u) - mpmath.log1p(u)) / delta**2)
    allowed = 1e-12 + 16 * EPS * np.abs(d * x) / np.abs(1 + d * x)
    assert (relative(each_curvature(x, d), wanted) <= allowed).all()


@pytest.mark.parametrize(("x", "q"), [(-2.0, 0.4), (-0.5, 1.7), (-0.2, 2.6), (-3.0, 1.000001)])
def test_curvature_is_the_derivative_of_the_logarithm(x, q):
    slope = mpmath.diff(lambda t: mpmath.log(1 + (t - 1) * x) / (t - 1), q)
    actual = each_curvature(np.array([x]), np.array([q - 1.0]))[0]
    assert float(actual) == pytest.approx(float(slope), rel=1e-9)
