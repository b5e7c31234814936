"""Reader for the Twitch graphs: edges, multi-hot features of one space for all languages, and three targets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ltga.data.bounds import in_a_line
from ltga.data.table_files import read_frame
from ltga.data.text_files import read_text
from ltga.errors import DataError

# The features of every language: games, places and habits are numbered once for all of them.
FEATURES = 3170
_TARGETS = ("mature", "views", "days")


@dataclass(frozen=True)
class TwitchArrays:
    """Features `[N, 3170]` of 0 and 1, stored edges `[E, 2]`, and a column `[N]` per target."""

    x: np.ndarray
    edges: np.ndarray
    targets: dict[str, np.ndarray]


def read_twitch(paths: Sequence[Path]) -> TwitchArrays:
    """The graph in the files of one language: edges, features, targets. `mature` is 0 or 1, the others are counts."""
    edges, features, targets = paths
    table = _Table(targets, ("new_id", *_TARGETS))
    nodes = table.whole("new_id")
    if not np.array_equal(np.sort(nodes), np.arange(nodes.size)):
        raise DataError(f"{targets}: expected new_id 0 to {nodes.size - 1}, each once")
    order = np.argsort(nodes)
    values = {"mature": table.flags("mature"), "views": table.whole("views"), "days": table.whole("days")}
    pairs = _Table(edges, ("from", "to"))
    return TwitchArrays(
        x=_multi_hot(features, nodes.size),
        edges=np.stack([pairs.whole("from"), pairs.whole("to")], axis=1),
        targets={name: column[order] for name, column in values.items()},
    )


def _multi_hot(path: Path, nodes: int) -> np.ndarray:
    try:
        listed = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not the JSON it should be ({in_a_line(error)}); fetch it again") from None
    if not isinstance(listed, dict) or set(listed) != {str(node) for node in range(nodes)}:
        raise DataError(f"{path}: expected a list of features for each node 0 to {nodes - 1}")
    x = np.zeros((nodes, FEATURES), dtype=np.float32)
    for node, columns in listed.items():
        if not isinstance(columns, list) or any(type(at) is not int or not 0 <= at < FEATURES for at in columns):
            raise DataError(f"{path}: node {node}: expected feature numbers from 0 to {FEATURES - 1}")
        x[int(node), columns] = 1.0  # some are listed twice
    return x


class _Table:
    """A CSV file, which knows its name for error messages."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path = path
        self.frame = read_frame(path)
        missing = [column for column in columns if column not in self.frame.columns]
        if missing:
            raise DataError(f"{path}: column {missing[0]!r} is missing")

    def whole(self, column: str) -> np.ndarray:
        values = pd.to_numeric(self.frame[column], errors="coerce").to_numpy(dtype=np.float64)
        bad = np.flatnonzero(~((values == np.floor(values)) & (values >= 0) & (values < 2**53)))
        if bad.size:
            shown = str(self.frame[column].iloc[int(bad[0])])[:40]
            raise DataError(f"{self.path}: row {bad[0] + 1}: {column} is {shown!r}, expected a whole number")
        return values.astype(np.int64)

    def flags(self, column: str) -> np.ndarray:
        text = self.frame[column].astype(str)
        bad = np.flatnonzero(~text.isin(["True", "False"]).to_numpy())
        if bad.size:
            raise DataError(f"{self.path}: row {bad[0] + 1}: {column} is {text.iloc[int(bad[0])][:40]!r}, not a flag")
        return (text == "True").to_numpy(dtype=np.int64)
