"""Your own graph as two tables, edges and nodes, in a folder."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ltga.data.graph_tables import Tables
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_files import SUFFIXES, read_frame
from ltga.errors import DataError


def find_tables(folder: Path) -> tuple[Path, Path]:
    """The edge and node tables of a folder: `edges.csv` or `.parquet`, `nodes.csv` or `.parquet`."""
    found: list[Path] = []
    for stem in ("edges", "nodes"):
        candidates = [folder / f"{stem}{suffix}" for suffix in SUFFIXES if (folder / f"{stem}{suffix}").exists()]
        if len(candidates) != 1:
            state = "neither is there" if not candidates else "both are there"
            alone = "; edges alone, for links, are a file of another name, calls.csv for example"
            hint = alone if found and not candidates else ""
            raise DataError(f"{folder}: expected {stem}.csv or {stem}.parquet, but {state}{hint}")
        found.append(candidates[0])
    return found[0], found[1]


def read_folder(folder: Path, options: Preparation) -> Tables:
    """The two tables of a folder, whole, with what is wrong with them as files."""
    paths, problems = find_tables(folder), Problems()
    frames: list[pd.DataFrame] = []
    for path in paths:
        try:
            frames.append(read_frame(path, options.encoding, problems))
        except DataError as error:
            where, _, what = str(error).partition(": ")
            problems.add(where, what, 1, "mend or replace the file", "error")
    if len(frames) < len(paths):  # one cannot be read at all; say so of both at once
        problems.refuse(str(folder))
    edges, nodes = frames
    return Tables(
        edges, nodes, folder.resolve().name, str(folder), str(paths[1]), str(paths[0]),
        origin={"format": "tables", "path": str(folder.resolve())}, problems=problems,
    )  # fmt: skip
