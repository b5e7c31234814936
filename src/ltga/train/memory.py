"""How much memory full-batch training will need, from sizes alone, before anything of that size is made."""

from __future__ import annotations

from ltga.errors import InputError


def terms(
    nodes: int, edges: int, features: int, hidden: int, heads: int, layers: int, classes: int
) -> dict[str, float]:
    """What memory grows with: numbers that exist for nodes and for edges, and edges themselves."""
    widths = [heads * hidden] * (layers - 1) + [heads * classes]
    all_edges = edges + nodes  # a self-loop each
    return {
        "inputs": nodes * (features + heads * hidden * (layers - 1)),
        "projected": nodes * sum(widths),
        "attention": all_edges * heads * layers,
        "edges": all_edges,
        "process": 1.0,
    }
