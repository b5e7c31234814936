"""How much memory full-batch training will need, from sizes alone, before anything of that size is made."""

from __future__ import annotations

from collections.abc import Mapping

from ltga.data.sampling import check_whole

# Bytes for each of the numbers in `terms`, fitted by benchmarks/memory.py to the peaks of whole runs of `ltga.fit`:
# training, evaluation and what is looked at afterwards. A test compares them with benchmarks/results/memory.json.
PER_HEAD: Mapping[str, float] = {
    "inputs": 12.3, "projected": 16.2, "attention": 26.3, "edges": 193.4, "process": 6.2e6,
}  # fmt: skip
PER_EDGE: Mapping[str, float] = {
    "inputs": 17.1, "projected": 18.3, "attention": 35.3, "edges": 209.3, "process": 0.0,
}  # fmt: skip
# Estimates were within this share of the measured peaks, on sizes that were not used to fit them too.
TOLERANCE = 0.25


def full_batch_bytes(
    nodes: int,
    edges: int,
    features: int,
    hidden: int,
    heads: int,
    layers: int,
    classes: int,
    *,
    edge_gate: bool = False,
) -> int:
    """The peak memory of training an attention network on a whole graph with the compiled kernels, in bytes.

    That is beside the graph itself and what the process has loaded; within 25 % of measured peaks.

    Args:
        nodes, edges, features, classes: of the graph; self-loops, which the layer adds, not counted.
        hidden, heads, layers: of the network, as ``hidden_channels``, ``heads`` and ``num_layers`` of the protocol.
        edge_gate: whether every edge has an index of its own (``ltga-edge``).

    >>> sizes = {"nodes": 10**7, "edges": 10**8, "features": 64, "hidden": 64, "heads": 8, "layers": 2, "classes": 8}
    >>> full_batch_bytes(**sizes) > 50 * 2**30
    True
    """
    sizes = {
        "nodes": nodes, "edges": edges, "features": features, "hidden": hidden, "heads": heads, "layers": layers,
        "classes": classes,
    }  # fmt: skip
    for name, size in sizes.items():
        check_whole(name, size, 0 if name == "edges" else 1)
    constants = PER_EDGE if edge_gate else PER_HEAD
    return int(sum(constants[name] * count for name, count in terms(**sizes).items()))


def terms(
    nodes: int, edges: int, features: int, hidden: int, heads: int, layers: int, classes: int
) -> dict[str, float]:
    """What memory grows with: numbers that exist for nodes and for edges, and edges themselves."""
    all_edges = edges + nodes  # a self-loop each
    return {
        "inputs": nodes * (features + heads * hidden * (layers - 1)),
        "projected": nodes * heads * (hidden * (layers - 1) + classes),
        "attention": all_edges * heads * layers,
        "edges": all_edges,
        "process": 1.0,
    }
