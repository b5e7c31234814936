"""What is known already of the nodes that a run predicts: their true labels, and the part of the split each was in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ltga.data import GraphFolder
from ltga.data.table_targets import SEPARATOR
from ltga.errors import LTGAError
from ltga.train.finished import Run
from ltga.train.run_graph import GraphToPredict
from ltga.train.tasks.choose import fingerprint

PARTS = ("train", "val", "test")


def known_columns(run: Run, given: GraphToPredict, names: Sequence[str], kind: str = "classes") -> dict[str, Any]:
    """Columns ``label``, and ``part`` on the run's own graph; none where no label is known.

    Args:
        names: what the run calls its classes or labels; those of the graph win.
        kind: ``"classes"``, ``"labels"`` or ``"number"``.
    """
    y = given.data.target.y if isinstance(given.data, GraphFolder) else given.data.get("y")
    if not isinstance(y, Tensor) or len(y) != len(given.ids) or y.dim() != (2 if kind == "labels" else 1):
        return {}
    values = y.numpy(force=True)
    if not (values >= 0 if kind == "classes" else ~np.isnan(values)).any():
        return {}
    labels = values.astype(np.float32) if kind == "number" else _said(values, given.names or names, kind)
    parts = _parts(run, given)
    return {"label": labels} if parts is None else {"label": labels, "part": parts}


def _said(values: np.ndarray, names: Sequence[str], kind: str) -> list[Any]:
    """Labels as the column ``predicted`` has them; ``None`` where one of them is not known."""
    if kind == "classes":
        codes = values.astype(np.int64).tolist()
        return [None if code < 0 else names[code] if code < len(names) else str(code) for code in codes]
    known = ~np.isnan(values).any(axis=1)
    each = ([name for name, value in zip(names, row) if value == 1] for row in values)
    return [(SEPARATOR.join(some) or SEPARATOR) if told else None for some, told in zip(each, known)]


def _parts(run: Run, given: GraphToPredict) -> list[str | None] | None:
    """Where each node was in the run's split; ``None`` unless this is the graph that the run was made on."""
    config = run.typed.config
    try:
        dataset = given.dataset()
        if dataset is None or fingerprint(dataset) != config.dataset.fingerprint:
            return None
        masks = [mask.numpy(force=True) for mask in dataset.split(config.split)]
    except LTGAError:  # too little is known to learn from it, so nobody has
        return None
    found = np.full(len(masks[0]), None, dtype=object)
    for name, mask in zip(PARTS, masks):
        found[mask] = name
    return list(found)
