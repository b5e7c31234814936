"""What is known about the compiled kernels without running them."""

from __future__ import annotations

from pathlib import Path


def kernel_folder() -> Path:
    """Where compiled code is kept for the present kernel sources."""
    from ltga.kernels.numba import scalar

    return Path(scalar._FOLDER)


def compiled_kernels() -> int:
    """How many functions are compiled already and wait on disk; 0 before first use."""
    return sum(1 for _ in kernel_folder().rglob("*.nbi"))
