"""Nodes and edges as the page stores them: typed arrays in base64, of the whole graph or of a part of it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from ltga.explanation.page.sample import Sample
from ltga.explanation.result import Explanation


@dataclass(frozen=True)
class Packed:
    """What the page's scripts unpack, and whether logits are in single precision."""

    arrays: dict[str, dict[str, str]]
    exact: bool


def pack(explanation: Explanation, sample: Sample, of_nodes: dict[str, np.ndarray]) -> Packed:
    """Edges sorted by target, and what is known of nodes ``[N, ...]`` (of all; those of the page are taken).

    Of the logits only the gap to the best in the neighbourhood matters, so that is what is stored.
    """
    source, target = explanation.edge_index
    mine = np.flatnonzero(sample.has_row[target])
    order = mine[np.argsort(target[mine], kind="stable")]
    place = np.full(explanation.num_nodes, -1)
    place[sample.nodes] = np.arange(len(sample.nodes))
    degrees = np.bincount(place[target[order]], minlength=len(sample.nodes))
    q = explanation.q
    q = q[:, 0] if has_one_index_per_head(explanation) else q[:, order]
    real = np.float32 if sample.exact else np.float16
    arrays = {
        "start": np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint32),
        "source": place[source[order]].astype(np.uint32),
        "gap": _gaps(explanation)[:, order].astype(real),
        "q": q.astype(real),
    }
    if not sample.whole:
        arrays |= {"number": sample.nodes.astype(np.uint32), "row": sample.has_row[sample.nodes].astype(np.uint8)}
    if explanation.planted is not None:
        arrays["planted"] = explanation.planted[order].astype(np.uint8)
    for name, values in of_nodes.items():
        arrays[name] = values[sample.nodes]
    return Packed({name: packed(values) for name, values in arrays.items()}, sample.exact)


def has_one_index_per_head(explanation: Explanation) -> bool:
    """Whether all edges of a head share their q."""
    return bool((explanation.q == explanation.q[:, :1]).all())


def packed(values: np.ndarray) -> dict[str, str]:
    """An array for ``unpack`` of data.js."""
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return {"type": values.dtype.name, "base64": base64.b64encode(little.tobytes()).decode()}


def _gaps(explanation: Explanation) -> np.ndarray:
    """``[L, E, H]``: how far each logit lies below the highest of its neighbourhood."""
    gaps = np.empty_like(explanation.logits)
    target = explanation.edge_index[1]
    for layer, logits in enumerate(explanation.logits):
        top = np.full((explanation.num_nodes, explanation.num_heads), -np.inf, dtype=logits.dtype)
        np.maximum.at(top, target, logits)
        gaps[layer] = top[target] - logits
    return np.minimum(gaps, 60_000)  # float16 ends at 65,504
