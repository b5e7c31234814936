"""The graph that a command is given; what was mended in it is for the command to print, not for a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from ltga.cli.terminal import say
from ltga.data import Dataset, MendedWarning, Preparation, load_dataset, load_graph, open_graph_folder
from ltga.data.dataset_names import looks_like_a_path
from ltga.data.graph_folder_files import is_graph_folder


@contextmanager
def mended_is_said(console: Console) -> Iterator[None]:
    """Lines for the terminal in place of the warning that a library's user gets."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MendedWarning)
        yield
    for warning in caught:
        if isinstance(warning.message, MendedWarning):
            for note in warning.message.notes:
                say(console, note)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


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


def open_given(
    name: str, data: Path | None, convention: str | None = None, preparation: Preparation | None = None
) -> Any:
    """As :func:`load_any`, but a graph folder is opened, not loaded."""
    path = Path(name).expanduser()
    if convention is None and preparation is None and looks_like_a_path(name) and is_graph_folder(path):
        return open_graph_folder(path)
    return load_any(name, data, convention, preparation)
