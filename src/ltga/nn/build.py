"""``build_model``: from a method's name to its network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ltga.errors import InputError, did_you_mean
from ltga.nn.backbones import ClassicStack, SeparatedStack
from ltga.nn.backbones.stack import SLOT
from ltga.nn.baselines import FAGCN, GAT, GCN, GIN, GPRGNN, H2GCN, LINKX, GATv2, Perceptron
from ltga.nn.interface import Network
from ltga.nn.methods import Method, find_method
from ltga.nn.network import LTGA

NETWORKS: Mapping[str, Callable[..., Network]] = {
    "ltga": LTGA,
    "gcn": GCN,
    "gat": GAT,
    "gatv2": GATv2,
    "h2gcn": H2GCN,
    "gprgnn": GPRGNN,
    "fagcn": FAGCN,
    "linkx": LINKX,
    "classic": ClassicStack,
    "separated": SeparatedStack,
    "gin": GIN,
    "perceptron": Perceptron,
}


def build_model(method: str, in_channels: int, num_classes: int, *, init: str = "paper", **overrides: Any) -> Network:
    """The network of a method, with fresh weights.

    Args:
        method: a name of ``ltga.nn.methods.METHODS``.
        in_channels: width F of the node features.
        num_classes: number of classes C.
        init: with ``"paired"``, GAT and GATv2 are built from ``LTGAConv``, so that they can share
            weights and dropout with the others (see :func:`~ltga.nn.initialize.initialize`).
        overrides: arguments of the network: ``hidden_channels``, ``heads``, ``num_layers``, ``dropout``,
            and what else it takes. ``linkx`` needs ``num_nodes``.

    >>> model = build_model("ltga-edge", 1433, 7)  # Cora
    >>> sum(parameter.numel() for parameter in model.parameters())
    1528255
    """
    entry = find_method(method)
    network, settings = form(entry, init)
    arguments = {**settings, **overrides}
    known = accepted_arguments(network)
    for key in arguments:
        if key not in known:
            hint = did_you_mean(key, known, f"it takes {', '.join(sorted(known))}")
            raise InputError(f"{key}: {entry.name} has no such setting; {hint}")
    if "num_nodes" in known and "num_nodes" not in arguments:
        raise InputError(f"num_nodes: {entry.name} has a weight per node; pass num_nodes=...")
    return NETWORKS[network](in_channels, num_classes, **arguments)


def form(entry: Method, init: str) -> tuple[str, Mapping[str, Any]]:
    """Which network builds a method under an initialisation, and its settings.

    >>> form(find_method("gatv2"), "paper")[0], form(find_method("gatv2"), "paired")[0]
    ('gatv2', 'ltga')
    """
    if init == "paired" and entry.paired is not None:
        return "ltga", entry.paired
    return entry.network, entry.settings


def accepted_arguments(network: str) -> frozenset[str]:
    """The keyword arguments a network takes.

    >>> "residual" in accepted_arguments("gcn"), "residual" in accepted_arguments("linkx")
    (True, False)
    """
    parameters = inspect.signature(NETWORKS[network]).parameters.values()
    slot = SLOT if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters) else ()
    return frozenset([p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY] + list(slot))
