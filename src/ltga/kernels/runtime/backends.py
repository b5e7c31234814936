"""Which backends this machine has."""

from __future__ import annotations

import os
from importlib.util import find_spec

# Found without importing numba, which takes longer than the rest of the package.
_compiles = find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def has_compiled_kernels() -> bool:
    """Whether numba is here and compiles; interpreted (NUMBA_DISABLE_JIT=1) its loops would take for ever."""
    return _compiles
