"""Settings that the recommended protocol leaves to the graph: the network's width and the start of its index."""

from __future__ import annotations

from typing import Any

from ltga.train.protocol import Protocol

# Why these: docs/recipe.md.
LARGE = 20_000  # nodes from which the network is as wide as the paper's
WIDTHS = {False: {"hidden_channels": 32, "heads": 4}, True: {"hidden_channels": 64, "heads": 8}}
ENOUGH_LABELS = 0.1  # training nodes, as a share of all, from which attention is sparse from the start


def settle(protocol: Protocol, nodes: int, teaching: float) -> tuple[Protocol, dict[str, Any]]:
    """The protocol for a graph of so many nodes of which a share teaches, and what it said before where it changed.

    >>> settled, before = settle(Protocol.recommended(), 3_000, 0.5)
    >>> settled.hidden_channels, settled.heads, settled.index_start
    (32, 4, 1.5)
    >>> before
    {'hidden_channels': 'auto', 'heads': 'auto', 'index_start': 'auto'}
    >>> settle(Protocol.recommended(heads=2), 100_000, 0.01)[0].index_start
    1.0
    """
    widths = WIDTHS[nodes >= LARGE]
    known = {**widths, "index_start": 1.5 if teaching >= ENOUGH_LABELS else 1.0}
    open_ones = [name for name in known if getattr(protocol, name) == "auto"]
    if not open_ones:
        return protocol, {}
    settled = protocol.with_overrides(**{name: known[name] for name in open_ones})
    return settled, dict.fromkeys(open_ones, "auto")
