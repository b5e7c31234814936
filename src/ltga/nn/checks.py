"""What a layer asks of its arguments, and what it says if they are not so."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from ltga.errors import InputError
from ltga.kernels import SparseFeatures


def check_features(x: Any) -> None:
    """Raise unless ``x`` is a matrix of numbers."""
    if isinstance(x, SparseFeatures):
        return
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        found = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x)
        raise InputError(f"x: expected a floating-point tensor of shape [N, F], got {found}")


def check_size(name: str, value: Any) -> None:
    """Raise unless ``value`` counts something."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name}: expected a whole number from 1, got {value!r}")


def check_dropout(name: str, value: Any) -> None:
    """Raise unless ``value`` is a probability."""
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name}: must lie in [0, 1], got {value!r}")


def check_same_dtype(values: Tensor, weight: Tensor, name: str) -> None:
    """Raise unless a layer of such weights can take such values."""
    if values.dtype != weight.dtype and not torch.is_autocast_enabled(values.device.type):
        raise InputError(f"{name}: is {values.dtype}, the layer's parameters are {weight.dtype}; convert one of them")
