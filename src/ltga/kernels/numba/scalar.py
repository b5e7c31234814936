"""The deformed exponential, compiled without branches so that loops over it become vector code.

The same formulas as :mod:`ltga.functional`, in double precision. The library's exp and log1p would be
calls, and a loop with calls does not vectorise; the short polynomials here are accurate to 1 ulp or so
(tests compare them with mpmath) and about four times as fast.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numba import config, njit


def _cache_folder() -> str:
    """Where compiled code is kept, by the content of all sources with compiled functions, or code for them, in them.

    numba notices when a function's own file changes, but not when a function it calls lives in another
    file; one folder per state of the sources does.
    """
    digest = hashlib.sha256()
    here = Path(__file__)
    for source in [here.parents[1] / "codes.py", *sorted(here.parent.glob("*.py"))]:
        content = source.read_bytes()
        emits = b"from numba.extending import intrinsic" in content  # what callers are compiled with
        if emits or b"from ltga.kernels.numba.scalar import" in content or source == here or source.stem == "codes":
            digest.update(content)
    base = Path(config.CACHE_DIR) if config.CACHE_DIR else platformdirs.user_cache_path("ltga") / "kernels"
    return str(base / digest.hexdigest()[:16])


_FOLDER = _cache_folder()


def compiled(**options: Any) -> Callable[[Callable], Callable]:
    """Compile on first use, without the GIL, and keep the code on disk."""

    def decorate(function: Callable) -> Callable:
        usual, config.CACHE_DIR = config.CACHE_DIR, _FOLDER
        try:
            return _forgiving(njit(nogil=True, cache=True, error_model="numpy", **options)(function))
        finally:
            config.CACHE_DIR = usual

    return decorate


def _forgiving(dispatcher: Any) -> Any:
    """Compile again where the code on disk cannot be read; numba would fail until somebody deletes the file."""
    files = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if files is None:  # not compiled at all (NUMBA_DISABLE_JIT), or another numba
        return dispatcher
    load, load_index = files.load, files._load_index

    def index_or_nothing() -> dict:
        try:
            return load_index()  # type: ignore[no-any-return]
        except Exception:  # a damaged pickle can raise nearly anything
            Path(files._index_path).unlink(missing_ok=True)
            return {}

    def data_or_nothing(key: Any) -> Any:
        try:
            return load(key)
        except Exception:
            Path(files._index_path).unlink(missing_ok=True)
            return None

    files._load_index, files.load = index_or_nothing, data_or_nothing
    return dispatcher


# Sums may be reordered so that they vectorise; infinities and NaN keep their meaning.
reordered = partial(compiled, fastmath={"reassoc", "contract", "nsz"})
# For what is called per row and allocates nothing: counting references to its arrays costs more than a short row.
borrowing = partial(compiled, _nrt=False)
row = partial(reordered, _nrt=False)
# For short loops called per edge and head, where a call would cost as much as the loop.
leaf = partial(row, forceinline=True)
inlined = partial(borrowing, forceinline=True, fastmath={"contract", "nsz"})

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer and leaves that in the low bits
SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD - (1023 << 52))
SHIFT = np.uint64(52)
TWO52_BITS = np.int64(0x4330000000000000)
ONE_BITS = np.int64(1023 << 52)
SMALLEST_EXPONENT = -708.0


@inlined()
def exp(x):  # type: ignore[no-untyped-def]
    """e^x for x <= 709; 0 below -708."""
    bounded = min(max(x, SMALLEST_EXPONENT), 709.0)
    shifted = bounded * LOG2_E + ROUND
    n = shifted - ROUND
    r = (bounded - n * LN2_HIGH) - n * LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64) if x > SMALLEST_EXPONENT else 0.0


@inlined()
def tanh(x):  # type: ignore[no-untyped-def]
    """Hyperbolic tangent to an absolute error of 1e-15, exactly 0 at 0."""
    e = exp(-2.0 * abs(x))
    t = (1.0 - e) / (1.0 + e)
    t = t if x >= 0.0 else -t
    return t if x == x else x


@inlined()
def log1p(u):  # type: ignore[no-untyped-def]
    """log(1 + u) for u > -1, accurate near 0."""
    w = 1.0 + u
    return log_near(w, (u - (w - 1.0)) / w)


@inlined()
def log(w):  # type: ignore[no-untyped-def]
    """Natural logarithm of a positive normal number."""
    return log_near(w, 0.0)


@inlined()
def log_near(w, correction):  # type: ignore[no-untyped-def]
    """log(w) plus a small correction."""
    bits = np.float64(w).view(np.int64)
    exponent = np.int64(np.uint64(bits - SQRT_HALF_BITS) >> SHIFT)
    k = np.int64(exponent | TWO52_BITS).view(np.float64) - 4503599627371519.0
    m = np.int64(bits - (exponent << 52) + ONE_BITS).view(np.float64)  # in [sqrt(1/2), sqrt(2))
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    p = 1.0 / 21.0
    p = p * t + 1.0 / 19.0
    p = p * t + 1.0 / 17.0
    p = p * t + 1.0 / 15.0
    p = p * t + 1.0 / 13.0
    p = p * t + 1.0 / 11.0
    p = p * t + 1.0 / 9.0
    p = p * t + 1.0 / 7.0
    p = p * t + 1.0 / 5.0
    p = p * t + 1.0 / 3.0
    return k * LN2_HIGH + (2.0 * s + (2.0 * s * t * p + (k * LN2_LOW + correction)))


@inlined()
def expm1(x):  # type: ignore[no-untyped-def]
    """e^x - 1 for x <= 709, accurate near 0."""
    p = 1.0 / 6227020800.0
    p = p * x + 1.0 / 479001600.0
    p = p * x + 1.0 / 39916800.0
    p = p * x + 1.0 / 3628800.0
    p = p * x + 1.0 / 362880.0
    p = p * x + 1.0 / 40320.0
    p = p * x + 1.0 / 5040.0
    p = p * x + 1.0 / 720.0
    p = p * x + 1.0 / 120.0
    p = p * x + 1.0 / 24.0
    p = p * x + 1.0 / 6.0
    p = p * x + 0.5
    p = p * x + 1.0
    return p * x if abs(x) < 0.5 else exp(x) - 1.0


@inlined()
def exp_q(x, d):  # type: ignore[no-untyped-def]
    """exp_q(x) for x <= 0 and d = q - 1; masked (0) from -1e300 down."""
    u = d * x
    v = max(u if abs(u) > 1e-290 else 1e-290, -0.9999999999999999)  # not 0: log1p(v)/v is 1 for tiny v
    y = exp(x * (log1p(v) / v))
    y = y if u > -1.0 else 0.0
    return (y if u == u else u) if x > -1e300 else 0.0


@inlined()
def curvature(x, d, inverse):  # type: ignore[no-untyped-def]
    """d log(exp_q(x)) / dq inside the support, x^2 g(u) with u = d x and inverse = 1 / (1 + u).

    g(u) = (u / (1 + u) - log1p(u)) / u^2, by its series where the difference would cancel; within 1e-12.
    """
    u = d * x
    near = abs(u) < 2e-3
    v = 1.0 if near else u
    ratio = x / v
    by_difference = ratio * ratio * (v * inverse - log1p(v))
    g = -0.5 + u * (2.0 / 3.0 + u * (-0.75 + u * (0.8 + u * (-5.0 / 6.0 + u * (6.0 / 7.0)))))
    return x * x * g if near else by_difference


@inlined()
def by_alpha(p, log_p, x, s, d):  # type: ignore[no-untyped-def]
    """dp / dalpha of entmax with nu held: p times the curvature at x = (p^d - 1) / d, with s = p^(1 - d).

    Where p^d is small, 1 + d x has lost it to rounding (and is zero in the end); there it is taken from log p.
    """
    t = d * log_p
    near = t > -1.0
    v = x if near else 0.0
    w = d if d != 0.0 else 1.0
    return p * curvature(v, d, 1.0 / (1.0 + d * v)) if near else (p * (1.0 - t) - s) / (w * w)
