"""What a layer asks of its arguments, and what it says if they are not so."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.kernels import SparseFeatures


def check_features(x: Any) -> None:
    """Raise unless ``x`` is a matrix of numbers."""
    if isinstance(x, SparseFeatures):
        return
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        found = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x)
        raise InputError(f"x: expected a floating-point tensor of shape [N, F], got {found}")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise unless ``value`` is one of the words ``allowed``."""
    if value not in allowed:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_size(name: str, value: Any) -> None:
    """Raise unless ``value`` counts something."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name}: expected a whole number from 1, got {value!r}")


def check_dropout(name: str, value: Any) -> None:
    """Raise unless ``value`` is a probability."""
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name}: must lie in [0, 1], got {value!r}")


def check_network(num_classes: Any, hidden_channels: Any, heads: Any, num_layers: Any, dropout: Any) -> None:
    """Raise unless a network can have these sizes."""
    check_size("num_classes", num_classes)
    check_size("hidden_channels", hidden_channels)
    check_size("heads", heads)
    check_size("num_layers", num_layers)
    check_dropout("dropout", dropout)


def check_same_dtype(values: Tensor, weight: Tensor, name: str) -> None:
    """Raise unless a layer of such weights can take such values."""
    if values.dtype != weight.dtype and not torch.is_autocast_enabled(values.device.type):
        raise InputError(f"{name}: is {values.dtype}, the layer's parameters are {weight.dtype}; convert one of them")


def checked_edge_features(edge_attr: Any, edges: int, edge_dim: int | None, linear: nn.Module | None) -> Tensor:
    """``edge_attr`` as ``[E, D]``, found to fit the edges and the layer; initialises a lazy ``linear``."""
    if not isinstance(edge_attr, Tensor) or not edge_attr.is_floating_point():
        kind = edge_attr.dtype if isinstance(edge_attr, Tensor) else type(edge_attr).__name__
        raise InputError(f"edge_attr: expected a floating-point tensor [E, D], got {kind}")
    if linear is None:
        raise InputError("edge_attr: given, but the layer was built without edge_dim; pass edge_dim=...")
    edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
    fits = edge_attr.dim() == 2 and (edge_dim == -1 or edge_attr.size(1) == edge_dim)
    if not fits or edge_attr.size(0) != edges:
        raise InputError(f"edge_attr: expected [{edges}, {edge_dim}], got {list(edge_attr.shape)}")
    weight = linear._parameters.get("weight")
    if isinstance(weight, nn.UninitializedParameter):
        linear(edge_attr[:1])
        weight = linear._parameters.get("weight")
    if isinstance(weight, Tensor):
        check_same_dtype(edge_attr, weight, "edge_attr")
    return edge_attr
