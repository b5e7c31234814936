"""What attention is a function of, and what it gives: the same for every backend."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor


class Operands(NamedTuple):
    """The tensors that attention is a function of, as the operator takes them; their gradients go by the same names."""

    x: Any  # [S, H, C]
    target: Any = None  # [T, H, C]
    att: Any = None  # [H, C]
    edge_attr: Any = None  # [E, D]
    edge_weight: Any = None  # [D, H, C]
    given: Any = None  # [E, H] logits
    scale: Any = None  # [1, H] or [E, H]
    shift: Any = None  # [E, H]
    q: Any = None  # [1, H] or [E, H]
    keep: Any = None  # [E, H]
    bias: Any = None  # [H, C] or [1, C]


class Structure(NamedTuple):
    """The edges sorted by target and by source, as :class:`~ltga.kernels.Neighbourhoods` has them."""

    ptr: Tensor
    col: Tensor
    perm: Tensor
    tptr: Tensor
    tcol: Tensor
    tpos: Tensor


class Kind(NamedTuple):
    """Which attention: codes of scoring and normaliser, and what goes with them."""

    scoring: int
    normalizer: int
    slope: float
    dot_scale: float
    average: bool
    q_in_csr_order: bool = False
    backend: str = ""  # "triton" for its programs on CPU tensors, which is for tests; else the device decides
    dropout: float = 0.0  # of the weights, by a hash of the key below; masks of another origin come as ``keep``
    key: int = 0


class Results(NamedTuple):
    """What attention gives; per-edge values in CSR order."""

    out: Tensor  # [T, H, C] or [T, 1, C]
    weights: Tensor  # [E, H]
    logits: Tensor  # [E, H]
    raw: Tensor  # [E, H] logits before they were scaled, empty if they were not


class Needed(NamedTuple):
    """Which gradients are wanted among those that cost something."""

    x: bool
    edge_attr: bool
    q: bool
    given: bool
    shift: bool
