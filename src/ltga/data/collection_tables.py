"""Your own collection of graphs as tables in a folder: nodes and edges with a graph id, and a table of the graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.errors import DataError

if TYPE_CHECKING:
    from ltga.data.collection import GraphCollection

GRAPH = "graph_id"
SMILES = "smiles"


def is_collection(folder: str | Path) -> bool:
    """Whether a path is a folder with a table of graphs."""
    return any((Path(folder).expanduser() / f"graphs{suffix}").exists() for suffix in SUFFIXES)


@dataclass(frozen=True, eq=False)
class CollectionTables:
    """The tables of a folder before anything is done to them; molecules have one of graphs only.

    Attributes:
        folder: where they are.
        frames: `graphs`, and `nodes` and `edges` unless the graphs are molecules.
        paths: of the tables, as a message calls them.
        problems: what is wrong with them as files.
    """

    folder: Path
    frames: dict[str, pd.DataFrame]
    paths: dict[str, str]
    problems: Problems = field(default_factory=Problems)

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def of_molecules(self) -> bool:
        return "nodes" not in self.frames


def read_collection(folder: str | Path, options: Preparation) -> CollectionTables:
    """All tables of a folder, whole; what cannot be read as a table is raised, of all of them at once."""
    folder = Path(folder).expanduser()
    tables = CollectionTables(folder, {}, {})
    _read(tables, "graphs", options.encoding)
    if SMILES not in tables.frames.get("graphs", ()):
        for stem in ("nodes", "edges"):
            _read(tables, stem, options.encoding)
    if len(tables.frames) < len(tables.paths):
        tables.problems.refuse(str(folder))
    return tables


def _read(tables: CollectionTables, stem: str, encoding: str) -> None:
    found = [path for suffix in SUFFIXES if (path := tables.folder / f"{stem}{suffix}").exists()]
    tables.paths[stem] = str(found[0] if found else tables.folder)
    if len(found) != 1:
        state = "both are there" if found else "neither is there"
        what = f"expected {stem}.csv or {stem}.parquet, but {state}"
        tables.problems.add(str(tables.folder), what, 1, "give one of them", "error")
        return
    try:
        frame = read_frame(found[0], encoding, tables.problems)
    except DataError as error:
        where, _, what = str(error).partition(": ")
        tables.problems.add(where, what, 1, "mend or replace the file", "error")
        return
    tables.frames[stem] = frame.set_axis([str(column) for column in frame], axis=1)


def load_collection(folder: str | Path, preparation: Preparation | None = None) -> GraphCollection:
    """A collection from a folder of CSV or Parquet tables.

    - `graphs`: column `graph_id`; a column `label` (classes, or numbers if they look so), one other column (a number,
      or classes if it is text), or several columns of 0, 1 and blank (labels); optionally `split` (train, val, test or
      blank) and `smiles`. `Preparation(label=...)` names the column or columns.
    - `nodes`: columns `graph_id` and `id` (unique within a graph); all others are features.
    - `edges`: columns `graph_id`, `source`, `target`; all others are attributes. A row is an edge from source to target
      unless the `convention` says otherwise.

    Columns become numbers as those of a single graph do (`ltga.data.Preparation`): what is decided (categories,
    fillings, means and scales) is decided on all graphs, labelled or not, and kept for others. With `smiles` the tables
    of nodes and edges are not needed: `ltga.data.molecules` makes them. Everything that is wrong is one message.

    Args:
        folder: where the tables are.
        preparation: what is done to them.
    """
    from ltga.data.prepare_collection import accepted_collection  # it stands on this module

    options = preparation or Preparation()
    prepared = accepted_collection(read_collection(folder, options), options)
    collection = prepared.collection()
    prepared.problems.warn(str(folder))
    return collection
