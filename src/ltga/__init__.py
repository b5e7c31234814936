"""LTGA: graph attention whose normalisation learns how sparse to be."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ltga.errors import LTGAError

if TYPE_CHECKING:
    from ltga.data import Dataset, Nodes, load_dataset
    from ltga.explanation.explain import explain
    from ltga.nn import LTGA, LTGAConv, build_model
    from ltga.train import LTGAClassifier, Protocol, Run, fit, load_run, tune

__version__ = "0.1.0"
__all__ = [
    "LTGA",
    "Dataset",
    "LTGAClassifier",
    "LTGAConv",
    "LTGAError",
    "Nodes",
    "Protocol",
    "Run",
    "__version__",
    "assume_constant",
    "build_model",
    "explain",
    "fit",
    "load_dataset",
    "load_run",
    "tune",
]

_HOME = {
    "assume_constant": "ltga.kernels",
    "Dataset": "ltga.data",
    "Nodes": "ltga.data",
    "load_dataset": "ltga.data",
    "LTGA": "ltga.nn",
    "LTGAConv": "ltga.nn",
    "build_model": "ltga.nn",
    "LTGAClassifier": "ltga.train",
    "explain": "ltga.explanation.explain",
    "Protocol": "ltga.train",
    "Run": "ltga.train",
    "fit": "ltga.train",
    "load_run": "ltga.train",
    "tune": "ltga.train",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that ``import ltga`` is instant."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'ltga' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
