r"""The entropic index q as a module: frozen, one scalar, one per head, or one per edge by a small gate.

Every learned index is bounded, :math:`q = 1 + \delta\tanh(a)`, and starts at exactly 1, where the
layer is GATv2. The same modules serve as the alpha of entmax attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.nn.entitlement import is_plain_linear, know

Granularity = Literal["global", "layer", "head", "edge"]
GATE_WIDTH = 8
Modifiers = tuple[Tensor | None, Tensor | None]


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
        return torch.full((1, source.size(1)), self.value, dtype=source.dtype, device=source.device)

    def shannon_penalty(self) -> Tensor:
        return torch.tensor((self.value - 1.0) ** 2)

    def extra_repr(self) -> str:
        return f"{self.value:g}"


class LearnedIndex(EntropicIndex):
    r"""One learned scalar, or one per head: :math:`q = 1 + \delta\tanh(a)`, a = 0 at the start.

    Args:
        heads: number of heads, or ``None`` for a single value shared by all of them.
        delta: half-width of the interval q may move in.

    >>> LearnedIndex(heads=4, delta=1.0).q().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, heads: int | None, delta: float = 1.0) -> None:
        super().__init__()
        self.delta = _positive(delta)
        self.raw = nn.Parameter(torch.zeros(1 if heads is None else heads))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.raw)

    def q(self) -> Tensor:
        """Current values, ``[1]`` or ``[H]``."""
        return bounded(self.raw, self.delta)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        if self.raw.numel() not in (1, source.size(1)):
            raise InputError(f"index: has {self.raw.numel()} values for a layer with {source.size(1)} heads")
        return self.q().expand(1, source.size(1))

    def shannon_penalty(self) -> Tensor:
        return ((self.q() - 1) ** 2).mean()

    def extra_repr(self) -> str:
        return f"{self.raw.numel()}, delta={self.delta:g}"


class EdgeMLP(nn.Module):
    """A two-layer perceptron on the endpoints of every edge, zero at the start; ``[E, H]``.

    The endpoints' embeddings are averaged over heads and enter as (attending node, neighbour). The
    first layer is applied to nodes and only its few outputs are gathered, so nothing of size
    edges x features exists.

    Args:
        channels: channels C of one head.
        heads: outputs per edge.

    >>> mlp = EdgeMLP(channels=4, heads=2)
    >>> mlp(torch.randn(3, 2, 4), torch.randn(3, 2, 4), torch.tensor([[0, 1], [2, 2]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, channels: int, heads: int, width: int = GATE_WIDTH) -> None:
        super().__init__()
        self.channels = channels
        self.hidden = nn.Linear(2 * channels, width)
        self.out = nn.Linear(width, heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.hidden.reset_parameters()
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Tensor:
        self.check(source)
        i, j = edge_index[1], edge_index[0]
        attending, neighbour = target.mean(1), source.mean(1)
        if not is_plain_linear(self.hidden):  # somebody hooked or replaced it: it must be called
            hidden = self.hidden(torch.cat([attending.index_select(0, i), neighbour.index_select(0, j)], dim=1))
        else:
            left, right = self.hidden.weight.split(self.channels, dim=1)
            per_target, per_source = nn.functional.linear(attending, left, self.hidden.bias), neighbour @ right.t()
            hidden = per_target.index_select(0, i) + per_source.index_select(0, j)
        out: Tensor = self.out(torch.relu(hidden))
        return out

    def check(self, source: Tensor) -> None:
        """Raise unless the layer has the heads and channels that this was built for."""
        heads = getattr(self.out, "out_features", source.size(1))
        if source.size(2) != self.channels or heads != source.size(1):
            raise InputError(
                f"index: the gate was built for {heads} heads of {self.channels} channels, "
                f"the layer has {source.size(1)} of {source.size(2)}"
            )


class GatedIndex(EntropicIndex):
    r"""One q per edge and head, :math:`q_{ij} = 1 + \delta\tanh(g_\phi(z_i, z_j))`, exactly 1 at the start.

    >>> GatedIndex(channels=4, heads=2)(torch.ones(2, 2, 4), torch.ones(2, 2, 4), torch.tensor([[0], [1]]))
    tensor([[1., 1.]], grad_fn=<AddBackward0>)
    """

    def __init__(self, channels: int, heads: int, delta: float = 1.0) -> None:
        super().__init__()
        self.delta = _positive(delta)
        self.gate = EdgeMLP(channels, heads)
        self.keep_q = False  # whether shannon_penalty will be asked for; q of every pass is kept only then
        self.listener: Callable[[GatedIndex, Tensor], None] | None = None  # sees q of every pass, edges in any order
        self._seen: list[Tensor] = []  # q of every pass since the last backward

    def reset_parameters(self) -> None:
        self.gate.reset_parameters()

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


class EdgeBias(nn.Module):
    """Capacity-matched control: the edge MLP added to the logits (``[E, H]``), q left at 1."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.gate = EdgeMLP(channels, heads)

    def reset_parameters(self) -> None:
        self.gate.reset_parameters()

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Modifiers:
        return self.modifiers(self.gate(source, target, edge_index))

    def modifiers(self, gate: Tensor) -> Modifiers:
        """(factor, summand) of the logits from the MLP's output ``[E, H]``."""
        return None, gate


class EdgeScale(EdgeBias):
    """Capacity-matched control: logits times exp of the edge MLP (``[E, H]``), q left at 1."""

    def modifiers(self, gate: Tensor) -> Modifiers:
        return torch.exp(gate), None


class Temperature(nn.Module):
    """Capacity-matched control: logits times exp of one number per head, q left at 1."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(heads))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.raw)

    def forward(self, source: Tensor, target: Tensor, edge_index: Tensor) -> Modifiers:
        return torch.exp(self.raw).unsqueeze(0), None


def make_index(index: str | float | EntropicIndex, channels: int, heads: int, delta: float) -> EntropicIndex:
    """The index module for what a caller may pass as ``index``."""
    if isinstance(index, EntropicIndex):
        return index
    if isinstance(index, int | float) and not isinstance(index, bool):
        return FrozenIndex(float(index))
    if index in ("global", "layer"):
        return LearnedIndex(None, delta)
    if index == "head":
        return LearnedIndex(heads, delta)
    if index == "edge":
        return GatedIndex(channels, heads, delta)
    raise InputError(f"index: expected 'global', 'layer', 'head', 'edge', a number or an index module, got {index!r}")


def make_modifier(modifier: str | None, channels: int, heads: int) -> nn.Module | None:
    """The logit modifier for what a caller may pass as ``modifier``."""
    if modifier is None:
        return None
    if modifier == "edge-bias":
        return EdgeBias(channels, heads)
    if modifier == "edge-scale":
        return EdgeScale(channels, heads)
    if modifier == "temperature":
        return Temperature(heads)
    raise InputError(f"modifier: expected 'edge-bias', 'edge-scale', 'temperature' or None, got {modifier!r}")


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
    return 1 + delta * torch.tanh(raw)


def _positive(delta: float) -> float:
    if not 0 < delta <= 3:
        raise InputError(f"delta: must lie in (0, 3], got {delta!r}")
    return float(delta)


know(EdgeMLP, GatedIndex, EdgeBias, EdgeScale)
