"""How much memory full-batch training will need, from sizes alone, before anything of that size is made."""

from __future__ import annotations

from collections.abc import Mapping

from ltga.data.sampling import check_whole
from ltga.errors import InputError
from ltga.nn.build import form
from ltga.nn.methods import find_method
from ltga.train.protocol import Protocol

# Bytes for each of the numbers in `terms`, fitted by benchmarks/memory.py to the peaks of whole runs of `ltga.fit`:
# training, evaluation and what is looked at afterwards. A test compares them with what it recorded.
CONSTANTS: Mapping[str, Mapping[str, float]] = {
    "fused": {"inputs": 12.3, "projected": 16.2, "attention": 26.3, "edges": 193.4, "process": 6.2e6},
    "edge gate": {"inputs": 15.75, "projected": 17.85, "attention": 23.36, "edges": 491.2, "process": 0.0},
    "messages": {
        "inputs": 22.98,
        "projected": 30.28,
        "attention": 0.0,
        "messages": 15.63,
        "edges": 332.2,
        "process": 107.3e6,
    },
}
# Estimates were within this share of the measured peaks, on sizes that were not used to fit them too. With an edge gate
# the peak of one and the same run varies by a quarter, and its constants are fitted to the larger of two runs.
TOLERANCE: Mapping[str, float] = {"fused": 0.25, "edge gate": 0.35, "messages": 0.25}


def full_batch_bytes(
    nodes: int,
    edges: int,
    features: int,
    hidden: int,
    heads: int,
    layers: int,
    classes: int,
    *,
    computed: str = "fused",
) -> int:
    """The peak memory of training an attention network on a whole graph, in bytes.

    That is beside the graph itself and what the process has loaded, and within ``TOLERANCE`` of measured peaks: a
    quarter, with an edge gate 35 %.

    Args:
        nodes, edges, features, classes: of the graph; self-loops, which the layer adds, not counted.
        hidden, heads, layers: of the network, as ``hidden_channels``, ``heads`` and ``num_layers`` of the protocol.
        computed: how, see :func:`computed_as`.

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
    if computed not in CONSTANTS:
        raise InputError(f"computed: got {computed!r}; use one of {', '.join(map(repr, CONSTANTS))}")
    counts = terms(**sizes)
    return int(sum(constant * counts[name] for name, constant in CONSTANTS[computed].items()))


def computed_as(method: str, protocol: Protocol) -> str | None:
    """How a method is computed under a protocol; ``None`` if it is no attention method, for which there is no estimate.

    "fused": by the kernels, with an index per head or none; "edge gate": the same with something learned for every
    edge; "messages": with a message of its own on every edge, as PyG's layers do and plain torch does.

    >>> computed_as("ltga-edge", Protocol()), computed_as("gatv2", Protocol()), computed_as("gcn", Protocol())
    ('edge gate', 'messages', None)
    """
    network, settings = form(find_method(method), protocol.init)
    if network in ("gat", "gatv2") or (network == "ltga" and protocol.backend == "torch"):
        return "messages"
    if network != "ltga":
        return None
    gated = settings.get("index") == "edge" or settings.get("modifier") in ("edge-bias", "edge-scale")
    return "edge gate" if gated else "fused"


def terms(
    nodes: int, edges: int, features: int, hidden: int, heads: int, layers: int, classes: int
) -> dict[str, float]:
    """What memory grows with: numbers that exist for nodes and for edges, and edges themselves."""
    all_edges = edges + nodes  # a self-loop each
    channels = heads * (hidden * (layers - 1) + classes)
    return {
        "inputs": nodes * (features + heads * hidden * (layers - 1)),
        "projected": nodes * channels,
        "attention": all_edges * heads * layers,
        "messages": all_edges * channels,
        "edges": all_edges,
        "process": 1.0,
    }
