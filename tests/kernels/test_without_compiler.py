"""Damaged code on disk is compiled again; without a compiler everything works in plain torch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ltga.kernels.operators.dropout import _counter_dropout, plain_mask
from ltga.kernels.runtime.fingerprint import mix_key

PROGRAM = """
import torch
from ltga.nn import LTGA, LTGAConv
from ltga.nn.masks import Draws
torch.manual_seed(0)
x, edges = torch.randn(40, 8), torch.randint(0, 40, (2, 200))
conv = LTGAConv(8, 4, heads=2, index="edge", dropout=0.3)
out = conv(x, edges, draws=Draws((1, 2)))
out.sum().backward()
print(float(out.double().abs().sum()), float(conv.att.grad.double().abs().sum()))
"""


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("damage", ["index", "data"])
def test_damaged_code_is_compiled_again(damage: str, tmp_path: Path) -> None:
    program = """
import numpy as np
from ltga.kernels.numba.hashing import hash_words
parts = np.zeros(1, np.uint64)
hash_words(0, 0, 8, np.arange(8, dtype=np.uint64), parts)
print(parts[0])
"""
    wanted = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    files = sorted(tmp_path.rglob("*.nbi" if damage == "index" else "*.nbc"))
    assert files
    for how in (b"", b"\x80", None):
        for path in files:
            if path.exists():
                path.write_bytes(path.read_bytes()[:-7] if how is None else how)
        assert run(program, NUMBA_CACHE_DIR=str(tmp_path)) == wanted
        files = sorted(tmp_path.rglob("*.nbi" if damage == "index" else "*.nbc"))


def test_without_compilation_plain_torch_gives_the_same() -> None:
    wanted, actual = (run(PROGRAM, NUMBA_DISABLE_JIT=flag) for flag in ("0", "1"))
    assert [float(v) for v in actual.split()] == pytest.approx([float(v) for v in wanted.split()], rel=1e-5)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("shape", [(3, 5), (7, 1024), (1, 3000), (2, 0)])
def test_dropout_draws_the_same_mask_either_way(shape: tuple[int, int], p: float) -> None:
    key, x = mix_key((4, 5)), torch.ones(shape, dtype=torch.double)
    assert np.array_equal(plain_mask(shape, p, key), _counter_dropout(x, p, key).numpy())
    rows = torch.arange(shape[0]).flip(0) * 3
    assert np.array_equal(plain_mask(shape, p, key, rows), _counter_dropout(x, p, key, rows).numpy())
