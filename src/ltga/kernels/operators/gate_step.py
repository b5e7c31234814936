"""The edge gate from a layer's features to q of every edge, as one step of autograd; see :mod:`.layer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.kernels.operators.dispatch import Unsaved, differentiable_gradients, wants_definition
from ltga.kernels.operators.edge_gate import edge_mlp_arrays, edge_mlp_gradients, plain_edge_mlp
from ltga.kernels.operators.projection import product
from ltga.kernels.runtime.neighbourhoods import Neighbourhoods


class GateOperands(NamedTuple):
    """The tensors that the gate's values are a function of; all of one type, on the CPU, of shapes that fit."""

    x: Tensor  # [N, F]
    left: Tensor  # [H * C, F]
    left_bias: Tensor | None  # [H * C]
    right: Tensor  # [H * C, F]
    right_bias: Tensor | None  # [H * C]
    hidden: Tensor  # [D, 2 * C], of the attending node first
    hidden_bias: Tensor  # [D]
    out: Tensor  # [H, D]
    out_bias: Tensor  # [H]


def gate_features(operands: GateOperands, graph: Neighbourhoods, bound: float) -> Tensor:
    """1 + bound tanh of the gate on every edge, ``[E, H]`` in CSR order."""
    if torch.is_grad_enabled():
        return _Gate.apply(*operands, graph, bound)  # type: ignore[no-any-return]
    return _forward(operands, graph, bound)[1][-1]


class _Half(NamedTuple):
    """One end's part of the hidden layer: the embeddings' averages over heads are averages of weights."""

    weight: Tensor  # [D, C]
    mean: Tensor  # [C, F]
    mean_bias: Tensor | None  # [C]

    @classmethod
    def of(cls, weight: Tensor, linear: Tensor, bias: Tensor | None, heads: int) -> _Half:
        mean = linear.view(heads, weight.size(1), -1).mean(0)
        return cls(weight, mean, None if bias is None else bias.view(heads, -1).mean(0))

    def linear(self) -> tuple[Tensor, Tensor | None]:
        return self.weight @ self.mean, None if self.mean_bias is None else self.weight @ self.mean_bias

    def gradients(self, grad: Tensor, x: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of the weight, and of the layer's linear and its bias."""
        of_average = grad.t() @ x
        of_weight, of_mean = of_average @ self.mean.t(), self.weight.t() @ of_average
        of_linear = (of_mean.expand(heads, *of_mean.shape) / heads).view(-1, x.size(1))
        if self.mean_bias is None:
            return of_weight, of_linear, None
        summed = grad.sum(0)
        of_bias = (self.weight.t() @ summed).expand(heads, -1) / heads
        return of_weight + torch.outer(summed, self.mean_bias), of_linear, of_bias.reshape(-1)


def _halves(given: GateOperands) -> tuple[_Half, _Half]:
    """Of targets and of sources."""
    heads = given.out.size(0)
    attending, neighbour = given.hidden.split(given.hidden.size(1) // 2, dim=1)
    first = _Half.of(attending, given.right, given.right_bias, heads)
    return first, _Half.of(neighbour, given.left, given.left_bias, heads)


def _forward(
    given: GateOperands, graph: Neighbourhoods, bound: float
) -> tuple[tuple[_Half, _Half], tuple[Tensor, ...]]:
    """The halves of the hidden layer, and (hidden layer of targets, of sources, q)."""
    first, second = halves = _halves(given)
    per_target = product(given.x, *first.linear()) + given.hidden_bias
    per_source = product(given.x, *second.linear())
    q = edge_mlp_arrays(per_target, per_source, given.out, given.out_bias, graph.structure, True, bound)
    return halves, (per_target, per_source, q)


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        given, graph, ctx.bound = GateOperands(*inputs[:-2]), inputs[-2], inputs[-1]
        (first, second), made = _forward(given, graph, ctx.bound)
        means = first.mean, first.mean_bias, second.mean, second.mean_bias
        ctx.save_for_backward(given.x, given.hidden, given.out, *means, *made, *graph.structure)
        ctx.unsaved = Unsaved(*given[1:5], given.hidden_bias, given.out_bias)
        ctx.set_materialize_grads(False)
        return made[-1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple:  # type: ignore[override]
        if grad is None:
            return (None,) * (len(GateOperands._fields) + 2)
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad  # read once: checkpoints give them a single time
        (x, hidden, out, *means, per_target, per_source, q), structure = saved[:-6], saved[-6:]
        if wants_definition(grad):
            *linears, hidden_bias, out_bias = ctx.unsaved.values()
            given = GateOperands(x, *linears, hidden, hidden_bias, out, out_bias)  # type: ignore[call-arg]

            def definition(*own: Any) -> tuple[Tensor]:
                return (_definition(GateOperands(*own), structure, ctx.bound),)

            return (*differentiable_gradients(definition, given, needed, (grad,)), None, None)
        to_target, to_source, to_out, to_out_bias = edge_mlp_gradients(
            grad.contiguous(), q, per_target, per_source, out, structure, True, ctx.bound
        )
        attending, neighbour = hidden.split(hidden.size(1) // 2, dim=1)
        first, second = _Half(attending, *means[:2]), _Half(neighbour, *means[2:])
        of_attending, to_right, to_right_bias = first.gradients(to_target, x, out.size(0))
        of_neighbour, to_left, to_left_bias = second.gradients(to_source, x, out.size(0))
        gx = to_source @ second.linear()[0] + to_target @ first.linear()[0] if needed[0] else None
        found = (
            gx, to_left, to_left_bias, to_right, to_right_bias, torch.cat([of_attending, of_neighbour], 1),
            to_target.sum(0), to_out, to_out_bias,
        )  # fmt: skip
        return (*(value if need else None for value, need in zip(found, needed)), None, None)


def _definition(given: GateOperands, structure: Sequence[Tensor], bound: float) -> Tensor:
    first, second = _halves(given)
    per_target = F.linear(given.x, *first.linear()) + given.hidden_bias
    per_source = F.linear(given.x, *second.linear())
    return plain_edge_mlp(per_target, per_source, given.out, given.out_bias, *structure[:3], True, bound)  # type: ignore[call-arg, arg-type]
