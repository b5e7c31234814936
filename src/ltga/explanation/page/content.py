"""What the page shows, as one JSON-able dictionary: numbers for the overview, packed arrays for the view."""

from __future__ import annotations

from typing import Any

import numpy as np

from ltga.explanation.graphs import Graphs
from ltga.explanation.node_classes import NodeClasses
from ltga.explanation.node_values import NodeValues
from ltga.explanation.page.about import About
from ltga.explanation.page.about_classes import about_classes
from ltga.explanation.page.about_graphs import about_graphs
from ltga.explanation.page.about_links import about_links
from ltga.explanation.page.about_values import about_values
from ltga.explanation.page.packing import has_one_index_per_head, pack
from ltga.explanation.page.sample import PAGE_BYTES, Sample, choose_nodes, sample_words
from ltga.explanation.pairs_of_nodes import Links
from ltga.explanation.result import Explanation
from ltga.nn.methods import find_method
from ltga.train.record import plain


def page_content(explanation: Explanation, most: int = PAGE_BYTES) -> dict[str, Any]:
    """Everything ``page.html`` and its scripts read, with at most about ``most`` bytes of nodes and edges."""
    record, run = explanation.record, explanation.typed
    method = find_method(run.config.method)
    about = _about(explanation, most)
    own_index = not has_one_index_per_head(explanation)
    sample = about.sample or choose_nodes(explanation, about.wanted, own_index, most, about.node_bytes)
    packed = pack(explanation, sample, about.of_nodes)
    edges = int((~explanation.self_loop).sum())
    content = {
        "title": f"{method.label} on {explanation.dataset.name}",
        "method": {"label": method.label, "about": method.about},
        "task": run.config.task or "node classification",
        "seed": run.config.seed,
        "split": run.config.split,
        "id": run.id,
        "letter": "α" if explanation.normalizer == "entmax" else "q",
        "normalizer": explanation.normalizer,
        "learned": method.learns_index,
        "layers": explanation.num_layers,
        "heads": explanation.num_heads,
        "nodes": len(sample.nodes),
        "all_nodes": explanation.num_nodes,
        "edges": edges,
        "sizes": about.sizes,
        "kind": about.kind,
        "words": about.words,
        "names": list(about.names),
        "node_names": _taken(explanation.node_names, sample),
        "node_ids": _taken(explanation.node_ids, sample),
        "scores": about.scores,
        "best_epoch": run.best_epoch,
        "trajectory": record["trajectory"]["q"],
        "head_table": explanation.heads().to_dict("records"),
        "zero_share": explanation.zero_share,
        "zero_share_with_loops": float(explanation.ignored.mean()) if explanation.ignored.size else 0.0,
        "unanimous": int((explanation.unanimous & ~explanation.self_loop).sum()),
        "planted": _planted(explanation),
        "sample": about.sample_words or sample_words(explanation, sample),
        "exact": packed.exact,
        "arrays": packed.arrays,
        **about.sections(_Places(sample)),
    }
    return plain(content)  # type: ignore[no-any-return]


class _Places:
    """From a node's number to its place in the page; -1 where it has none, or no neighbourhood there."""

    def __init__(self, sample: Sample) -> None:
        self._place = np.full(len(sample.has_row), -1)
        self._place[sample.nodes] = np.arange(len(sample.nodes))
        self._has_row = sample.has_row

    def __call__(self, nodes: Any) -> np.ndarray:
        nodes = np.asarray(nodes, dtype=int)
        known = np.where(nodes >= 0, nodes, 0)
        return np.where((nodes >= 0) & self._has_row[known], self._place[known], -1)


def _about(explanation: Explanation, most: int) -> About:
    if isinstance(explanation, NodeClasses):
        return about_classes(explanation)
    if isinstance(explanation, NodeValues):
        return about_values(explanation)
    if isinstance(explanation, Links):
        return about_links(explanation)
    assert isinstance(explanation, Graphs)
    return about_graphs(explanation, most)


def _taken(names: Any, sample: Sample) -> list[str] | None:
    return None if names is None else [str(names[node]) for node in sample.nodes]


def _planted(explanation: Explanation) -> dict[str, float] | None:
    """How much of what was ignored is known noise, where the dataset knows."""
    planted = explanation.planted
    if planted is None:
        return None
    zeros = int(explanation.ignored[:, ~explanation.self_loop].sum())
    noise = int(explanation.ignored[:, planted].sum())
    share = float(planted[~explanation.self_loop].mean())
    return {"of_edges": share, "of_ignored": noise / zeros if zeros else float("nan")}
