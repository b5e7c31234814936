r"""The entropic index q as a module: frozen, one scalar, one per head, or one per edge by a small gate.

A learned index is bounded, :math:`q = 1 + \delta\tanh(a)`, or free above 0, :math:`q = e^a`. It starts at exactly
1, where the layer is GATv2, unless told otherwise. The same modules serve as the alpha of entmax attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.edge_mlp import EdgeMLP
from ltga.nn.entitlement import know
from ltga.nn.modifiers import EdgeBias, Temperature

Granularity = Literal["global", "layer", "head", "edge"]
Form = Literal["tanh", "log"]
AT_BOUND = 0.98  # of the way from 1 to the bound, where tanh has a slope of 4 %
LOWEST, HIGHEST = 1 / 16, 16.0  # of an index learned by its logarithm


class EntropicIndex(nn.Module):
    """Turns a layer's endpoint embeddings ``[S, H, C]``, ``[T, H, C]`` into q, ``[1, H]`` or ``[E, H]``.

    An index of your own needs ``forward(source, target, edge_index)`` and nothing else; per-edge values come in the
    order of ``edge_index``, in which sources stand first and self-loops last.

    >>> class ByDegree(EntropicIndex):
    ...     def forward(self, source, target, edge_index):
    ...         degree = torch.bincount(edge_index[1], minlength=len(target))
    ...         return (2 - 1 / degree[edge_index[1]]).unsqueeze(1).expand(-1, source.size(1))
    """

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Back to q = 1."""

    def shannon_penalty(self) -> Tensor:
        """Mean of (q - 1)^2 over the index values; for a gate, over the edges of the passes since the last backward."""
        raise NotImplementedError


class FrozenIndex(EntropicIndex):
    """A constant q that is never trained and not part of the state dict.

    >>> FrozenIndex(1.5)
    FrozenIndex(1.5)
    """

    def __init__(self, value: float) -> None:
        super().__init__()
        if not -1.0 < value < 4.0:
            raise InputError(f"index: a frozen q must lie in (-1, 4), got {value:g}")
        self.value = float(value)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        return self.per_head(source.size(1), source)

    def per_head(self, heads: int, like: Tensor) -> Tensor:
        """q ``[1, H]``, which here depends on no embedding; of the type of ``like``."""
        return torch.full((1, heads), self.value, dtype=like.dtype, device=like.device)

    def shannon_penalty(self) -> Tensor:
        return torch.tensor((self.value - 1.0) ** 2)

    def extra_repr(self) -> str:
        return f"{self.value:g}"


class LearnedIndex(EntropicIndex):
    r"""One learned scalar, or one per head: :math:`q = 1 + \delta\tanh(a)`, never outside :math:`1 \pm \delta`.

    Args:
        heads: number of heads, or ``None`` for a single value shared by all of them.
        delta: half-width of the interval q may move in.
        start: q at the start and after a reset.

    >>> LearnedIndex(heads=4, delta=1.0).q().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, heads: int | None, delta: float = 1.0, start: float = 1.0) -> None:
        super().__init__()
        self.delta = _positive(delta)
        self.start = float(start)
        self.raw = nn.Parameter(torch.empty(1 if heads is None else heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the start."""
        nn.init.constant_(self.raw, unbounded(self.start, self.delta))

    def q(self) -> Tensor:
        """Current values, ``[1]`` or ``[H]``."""
        return bounded(self.raw, self.delta)

    def at_bound(self) -> float:
        """Share of the values that have come as close to a bound as matters: :data:`AT_BOUND` of the way."""
        return ((self.q().detach() - 1).abs() > AT_BOUND * self.delta).double().mean().item()

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        return self.per_head(source.size(1), source)

    def per_head(self, heads: int, like: Tensor) -> Tensor:
        """q ``[1, H]``, which here depends on no embedding."""
        if self.raw.numel() not in (1, heads):
            raise InputError(f"index: has {self.raw.numel()} values for a layer with {heads} heads")
        return self.q().expand(1, heads)

    def shannon_penalty(self) -> Tensor:
        return ((self.q() - 1) ** 2).mean()

    def extra_repr(self) -> str:
        start = "" if self.start == 1 else f", start={self.start:g}"
        return f"{self.raw.numel()}, delta={self.delta:g}{start}"


class LogIndex(LearnedIndex):
    r"""One learned scalar, or one per head, by its logarithm: :math:`q = e^a`, anywhere above 0.

    A step of the optimiser changes q by a share of itself, so it neither saturates at a bound nor creeps along it.
    Values are held between 1/16 and 16, where attention is flat or a maximum for all purposes.

    >>> LogIndex(heads=2, start=2.0).q().tolist()
    [2.0, 2.0]
    """

    def __init__(self, heads: int | None, start: float = 1.0) -> None:
        super().__init__(heads, 1.0, start)

    def reset_parameters(self) -> None:
        """Back to the start."""
        if not LOWEST <= self.start <= HIGHEST:
            raise InputError(f"start: must lie in [{LOWEST:g}, {HIGHEST:g}], got {self.start:g}")
        nn.init.constant_(self.raw, math.log(self.start))

    def q(self) -> Tensor:
        """Current values, ``[1]`` or ``[H]``."""
        return torch.exp(self.raw.clamp(math.log(LOWEST), math.log(HIGHEST)))

    def at_bound(self) -> float:
        q = self.q().detach()
        return ((q <= LOWEST) | (q >= HIGHEST)).double().mean().item()

    def extra_repr(self) -> str:
        return f"{self.raw.numel()}, start={self.start:g}"


class GatedIndex(EntropicIndex):
    r"""One q per edge and head, :math:`q_{ij} = 1 + \delta\tanh(g_\phi(z_i, z_j))`, the same everywhere at the start.

    >>> GatedIndex(channels=4, heads=2)(torch.ones(2, 2, 4), torch.ones(2, 2, 4), torch.tensor([[0], [1]]))
    tensor([[1., 1.]], grad_fn=<AddBackward0>)
    """

    def __init__(self, channels: int, heads: int, delta: float = 1.0, start: float = 1.0) -> None:
        super().__init__()
        self.delta = _positive(delta)
        self.start = float(start)
        self.gate = EdgeMLP(channels, heads)
        self.keep_q = False  # whether shannon_penalty will be asked for; q of every pass is kept only then
        self.listener: Callable[[GatedIndex, Tensor], None] | None = None  # sees q of every pass, edges in any order
        self._seen: list[Tensor] = []  # q of every pass since the last backward
        self.to_start()

    def reset_parameters(self) -> None:
        """Back to the start, with a fresh gate."""
        self.gate.reset_parameters()
        self.to_start()

    def to_start(self) -> None:
        """Every edge's q to the start, for a gate whose output weights are zero."""
        nn.init.constant_(self.gate.out.bias, unbounded(self.start, self.delta))

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        return self.note(bounded(self.gate(source, target, edge_index), self.delta))

    def note(self, q: Tensor) -> Tensor:
        """Take down what a pass gave, for whoever asked; returns it."""
        if torch.compiler.is_compiling():
            return q
        if self.listener is not None:
            self.listener(self, q)
        if self.keep_q and self.training and torch.is_grad_enabled():
            self._seen = [*self._seen[-63:], q]
            if q.requires_grad:
                q.register_hook(lambda _: self._seen.clear())
        return q

    def shannon_penalty(self) -> Tensor:
        if not self._seen:
            raise InputError(
                "shannon_penalty: the edges' q is not known yet; set index.keep_q = True, then run the layer in "
                "training mode"
            )
        return ((torch.cat(self._seen) - 1) ** 2).mean()

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_seen": [], "listener": None}  # what is bound to a graph cannot be copied or stored


def make_index(
    index: str | float | EntropicIndex, channels: int, heads: int, delta: float, form: str = "tanh", start: float = 1.0
) -> EntropicIndex:
    """The index module for what a caller may pass as ``index``; a gate is always bounded."""
    if isinstance(index, EntropicIndex):
        return index
    if isinstance(index, int | float) and not isinstance(index, bool):
        return FrozenIndex(float(index))
    if form not in get_args(Form):
        raise InputError(f"index_form: expected 'tanh' or 'log', got {form!r}")
    if index in ("global", "layer", "head"):
        values = heads if index == "head" else None
        return LearnedIndex(values, delta, start) if form == "tanh" else LogIndex(values, start)
    if index == "edge":
        return GatedIndex(channels, heads, delta, start)
    raise InputError(f"index: expected 'global', 'layer', 'head', 'edge', a number or an index module, got {index!r}")


def index_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of ``model`` that shape the attention rather than the features, each once.

    >>> sum(p.numel() for p in index_parameters(LearnedIndex(8)))
    8
    """
    seen: set[int] = set()
    for module in model.modules():
        if isinstance(module, EntropicIndex | EdgeBias | Temperature):
            for parameter in module.parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter


def bounded(raw: Tensor, delta: float) -> Tensor:
    """1 + delta * tanh(raw): smooth, monotone, exactly 1 at 0."""
    bent = torch.tanh(raw)
    return 1 + (bent if delta == 1.0 else delta * bent)


def unbounded(q: float, delta: float) -> float:
    """The number of which :func:`bounded` makes ``q``.

    >>> unbounded(1.0, 1.0), round(float(bounded(torch.tensor(unbounded(1.5, 2.0)), 2.0)), 6)
    (0.0, 1.5)
    """
    if not abs(q - 1) < delta:
        raise InputError(f"start: must lie inside (1 - delta, 1 + delta) = ({1 - delta:g}, {1 + delta:g}), got {q:g}")
    return math.atanh((q - 1) / delta)


def _positive(delta: float) -> float:
    if not 0 < delta <= 3:
        raise InputError(f"delta: must lie in (0, 3], got {delta!r}")
    return float(delta)


know(FrozenIndex, LearnedIndex, LogIndex, GatedIndex)
