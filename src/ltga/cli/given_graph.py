"""The graph that a command is given; what was mended in it is for the command to print, not for a warning."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ltga.data import Dataset, MendedWarning, Preparation, load_dataset, load_graph


def load_given(
    name: str, data: Path | None, convention: str | None = None, preparation: Preparation | None = None
) -> Dataset:
    """The graph called ``name``, or at that path; ``data`` is the folder of known ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MendedWarning)
        return load_graph(name, data, convention=convention, preparation=preparation)


def load_any(name: str, data: Path | None, convention: str | None, preparation: Preparation | None) -> Any:
    """The same, whatever there is to predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MendedWarning)
        return load_dataset(name, data, convention=convention, preparation=preparation)
