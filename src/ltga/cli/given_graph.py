"""The graph that a command is given; what was mended in it is for the command to print, not for a warning."""

from __future__ import annotations

import warnings
from pathlib import Path

from ltga.data import Dataset, GraphFolder, MendedWarning, Preparation, load_graph, open_graph_folder
from ltga.data.dataset_names import looks_like_a_path
from ltga.data.graph_folder_files import is_graph_folder


def load_given(
    name: str, data: Path | None, convention: str | None = None, preparation: Preparation | None = None
) -> Dataset:
    """The graph called ``name``, or at that path; ``data`` is the folder of known ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MendedWarning)
        return load_graph(name, data, convention=convention, preparation=preparation)


def open_given(
    name: str, data: Path | None, convention: str | None = None, preparation: Preparation | None = None
) -> Dataset | GraphFolder:
    """As :func:`load_given`, but a graph folder is opened, not loaded."""
    path = Path(name).expanduser()
    if convention is None and preparation is None and looks_like_a_path(name) and is_graph_folder(path):
        return open_graph_folder(path)
    return load_given(name, data, convention, preparation)
