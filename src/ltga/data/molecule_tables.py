"""The molecules of a table of graphs: those that can be read, and what becomes of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from torch_geometric.data import Data

from ltga.data.molecules import read_molecules
from ltga.data.preparation import Preparation
from ltga.data.problems import Problems
from ltga.data.table_cells import text_of

_NAMED = 3  # molecules that cannot be read, in a message


@dataclass(frozen=True, eq=False)
class ReadableMolecules:
    """Graphs, the rows of the table that they are, and the names and reasons of those that are left out."""

    graphs: list[Data]
    rows: np.ndarray
    left_out: tuple[str, ...]


def readable_molecules(
    smiles: pd.Series, ids: pa.Array, options: Preparation, where: str, problems: Problems
) -> ReadableMolecules:
    """The molecules of a column; the others are an error, or left out if the options say so."""
    read = read_molecules(text_of(smiles).to_pylist())
    bad = tuple(f"{ids[position].as_py()[:40]}: {reason}" for position, reason in read.unparsable)
    rows = np.array(read.positions, dtype=np.int64)
    if bad:
        named = ", ".join(bad[:_NAMED]) + (f", and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else "")
        what, at = f"{smiles.name} does not parse ({named})", np.array([position for position, _ in read.unparsable])
        if options.bad_smiles == "drop":
            problems.add(where, what, at, "left out (bad_smiles=drop), in predictions too", "mended")
        else:
            problems.add(where, what, at, "mend it, or choose bad_smiles=drop", "error")
            rows = np.arange(len(smiles))  # targets are looked at in all rows
    if not read.graphs and options.bad_smiles == "drop":
        problems.add(where, f"no {smiles.name} can be read", len(smiles), "give some molecules", "error")
    return ReadableMolecules(read.graphs, rows, bad if options.bad_smiles == "drop" else ())
