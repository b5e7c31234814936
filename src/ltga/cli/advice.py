"""One sentence about graphs like this one, from the experiment *when* (docs/when.md), where that bears it."""

from __future__ import annotations

from ltga.data import Dataset, GraphFolder
from ltga.data.graph_summary import summarise

LEAST_TEACHING, MOST_AGREEMENT = 0.1, 0.5  # of the nodes, and of the edges
LIKE_THIS, FASTER, MORE_ACCURATE = 13, 12, 11  # of our graphs; a test counts them again


def advice(graph: Dataset | GraphFolder) -> list[str]:
    """What learned alpha did on graphs with as many labels and as little agreement; empty for other graphs.

    >>> from ltga.data import csbm
    >>> advice(csbm(num_nodes=200, homophily=0.9))
    []
    """
    if isinstance(graph, GraphFolder):  # its edges stay on disk
        return []
    told = summarise(graph)
    if told.homophily is None or told.homophily > MOST_AGREEMENT or told.train < LEAST_TEACHING * told.nodes:
        return []
    return [
        f"Median degree {told.median_degree:g}, {100 * told.homophily:.0f} % of the edges within a class: on {FASTER} "
        f"of {LIKE_THIS} graphs like this (at most half within a class, at least a tenth of the nodes to learn from) a "
        f"learned α learned faster than softmax, on {MORE_ACCURATE} it was more accurate in the end."
    ]
