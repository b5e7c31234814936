"""Loading a ``GATv2Conv`` checkpoint into an ``LTGAConv``."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


def start_of_what_is_absent(
    module: nn.Module,
    state: dict,
    prefix: str,
    metadata: Any,
    strict: bool,
    missing: list,
    unexpected: list,
    errors: list,
) -> None:
    """Put what such a checkpoint does not know to its start, q = 1."""
    own = ("index.", "modifier.", "att_target")
    if f"{prefix}lin_l.weight" not in state or f"{prefix}att" not in state:  # no checkpoint of such a layer
        return
    if any(name.startswith(tuple(prefix + part for part in own)) for name in state):
        return
    for part in ("index", "modifier"):
        inner: Any = getattr(module, part)
        if inner is not None and hasattr(inner, "reset_parameters"):
            fresh = copy.deepcopy(inner)
            with torch.random.fork_rng(devices=[]):  # loading draws no random numbers
                fresh.reset_parameters()
            state.update({f"{prefix}{part}.{name}": value for name, value in fresh.state_dict().items()})
    if isinstance(module.att_target, Tensor):
        state[f"{prefix}att_target"] = module.att_target.detach()
