"""Which backends this machine has."""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

# Found without importing them, which takes longer than the rest of the package.
_compiles = find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
_has_triton = find_spec("triton") is not None

MOST_CHANNELS = 1024  # of a head, that a Triton program can hold


def has_compiled_kernels() -> bool:
    """Whether numba is here and compiles; interpreted (NUMBA_DISABLE_JIT=1) its loops would take for ever."""
    return _compiles


def has_triton() -> bool:
    """Whether Triton is installed; not whether there is a device for it."""
    return _has_triton


def is_interpreted() -> bool:
    """Whether Triton runs programs in Python, on CPU tensors: slowly, for tests (``TRITON_INTERPRET=1``)."""
    return os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")


def runs_triton(device: torch.device) -> bool:
    """Whether Triton's programs can work on tensors of ``device``; torch calls ROCm's devices cuda too.

    >>> runs_triton(torch.device("meta"))
    False
    """
    return has_triton() and (device.type == "cuda" or (device.type == "cpu" and is_interpreted()))
