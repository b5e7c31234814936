"""A whole layer as one step of autograd: its projections, attention over sorted edges, and the bias.

The numbers are those of :mod:`.projection` and :mod:`.attention` one after the other. On graphs of some hundred nodes
the handing over from one step of autograd to the next costs as much as the arithmetic, so there is a single one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels.codes import SOFTMAX
from ltga.kernels.operators import attention_torch, small_graph
from ltga.kernels.operators.dispatch import Unsaved, differentiable_gradients, wants_definition
from ltga.kernels.operators.operands import Kind, Needed, Operands, Results, Structure
from ltga.kernels.operators.projection import product
from ltga.kernels.operators.small_graph import Gradients, Scored, Wanted, came_back_whole, is_small
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.neighbourhoods import Neighbourhoods

_NO_RAW = {dtype: torch.empty(0, 0, dtype=dtype, device="cpu") for dtype in (torch.float32, torch.float64)}


class LayerOperands(NamedTuple):
    """The tensors that a layer is a function of; all of one type, on the CPU, of shapes that fit."""

    x: Tensor  # [N, F]
    left: Tensor  # [H * C, F]
    left_bias: Tensor | None  # [H * C]
    right: Tensor  # [H * C, F]
    right_bias: Tensor | None  # [H * C]
    att: Tensor  # [1, H, C]
    q: Tensor  # [1, H] or [E, H]; with a bound [H], numbers of which 1 + bound tanh is taken
    keep: Tensor | None  # [E, H]
    bias: Tensor | None  # [H * C] or [C]
    edge_attr: Tensor | None = None  # [E, D], in the order of the graph's edge_index
    edge_weight: Tensor | None = None  # [H * C, D]


def attend_features(operands: LayerOperands, graph: Neighbourhoods, kind: Kind, bound: float = 0.0) -> Tensor:
    """GATv2's attention over the nodes of ``x``, ``[N, H * C]`` or ``[N, C]``; the graph must be one of ours.

    With a ``bound`` above 0, q is 1 + bound tanh of ``operands.q``.
    """
    if torch.is_grad_enabled():
        return _Layer.apply(*operands, graph, kind, bound)  # type: ignore[no-any-return]
    if bound > 0:
        operands = operands._replace(q=_bounded(operands.q, bound)[0])
    return _forward(operands, Structure(*graph.structure), kind).out


def _bounded(raw: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    """(q [1, H], the hyperbolic tangent that it is made of)."""
    bent = torch.tanh(raw)
    return ((bent if bound == 1.0 else bent * bound) + 1).unsqueeze(0), bent


class _Attended(NamedTuple):
    out: Tensor
    scored: Scored
    weights: Tensor  # [E, H]
    logits: Tensor  # [E, H]


def _forward(given: LayerOperands, graph: Structure, kind: Kind) -> _Attended:
    source, target = product(given.x, given.left, given.left_bias), product(given.x, given.right, given.right_bias)
    scored = _scored(given, source, target)
    if is_small(graph.col.size(0), given.x.size(0)):
        out, weights, logits = small_graph.forward(scored, graph, kind)
        return _Attended(out, scored, weights, logits)
    from ltga.kernels.operators import attention_numba

    out = buffers.empty((len(given.x), given.att.size(2) * (1 if kind.average else given.att.size(1))), source.dtype)
    found = attention_numba.forward(_attended(scored), graph, kind, out)
    return _Attended(out, scored, found.weights, found.logits)


def _scored(given: LayerOperands, source: Tensor, target: Tensor) -> Scored:
    weight = given.edge_weight
    if weight is not None:
        # A copy, since the backward pass scores the edges again: the parameter may change until then.
        weight = weight.t().clone(memory_format=torch.contiguous_format).view(-1, *given.att.shape[1:])
    return Scored(source, target, given.att, given.q, given.keep, given.bias, given.edge_attr, weight)


def _attended(scored: Scored) -> Operands:
    _, heads, channels = scored.att.shape
    bias = None if scored.bias is None else scored.bias.view(-1, channels)
    nodes = scored.source.view(-1, heads, channels), scored.target.view(-1, heads, channels)
    edges = scored.edge_attr, scored.edge_weight
    return Operands(*nodes, scored.att.view(heads, channels), *edges, q=scored.q, keep=scored.keep, bias=bias)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        given, (graph, ctx.kind, ctx.bound) = LayerOperands(*inputs[:-3]), inputs[-3:]
        graph, bent = Structure(*graph.structure), None
        if ctx.bound > 0:
            q, bent = _bounded(given.q, ctx.bound)
            given = given._replace(q=q)
        out, scored, *made = _forward(given, graph, ctx.kind)
        # The values of weights are needed for the gradient of x and for second derivatives only, those of biases for
        # the latter only: until then they may change.
        weights = (given.left, given.right) if given.x.requires_grad else (None, None)
        saved = (given.x, *weights, bent, *scored._replace(bias=None), *made, *graph)
        ctx.save_for_backward(*saved)
        ctx.shapes = _shapes(saved)
        ctx.unsaved = Unsaved(*given[1:5], given.bias, None if bent is None else inputs[6], given.edge_weight)
        ctx.set_materialize_grads(False)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple:  # type: ignore[override]
        if grad is None:
            return (None,) * (len(LayerOperands._fields) + 3)
        saved = ctx.saved_tensors
        if _shapes(saved) != ctx.shapes:
            raise InputError(
                "backward: a hook on saved tensors gave back other shapes than it was given; compiled code would read "
                "past their ends"
            )
        x, left, right, bent, *rest = saved
        scored, (weights, logits, *arrays) = Scored(*rest[: len(Scored._fields)]), rest[len(Scored._fields) :]
        graph, need = Structure(*arrays), _by_name(ctx.needs_input_grad)
        if ctx.kind.normalizer == SOFTMAX:
            need = need._replace(q=False)
        if wants_definition(grad):
            return (*_by_definition(ctx, x, scored, graph, need, grad), None, None, None)
        wanted = Wanted(need.x or need.left or need.left_bias, need.q, need.edge_attr)
        found = _gradients(grad, scored, graph, (weights, logits), ctx.kind, wanted)
        to_left, to_right, gx = found.source, found.target, None
        if need.x:
            gx = torch.mm(to_left, left, out=buffers.empty(tuple(x.shape), x.dtype)).addmm_(to_right, right)
        return (
            gx,
            to_left.t() @ x if need.left else None,
            to_left.sum(0) if need.left_bias else None,
            to_right.t() @ x if need.right else None,
            to_right.sum(0) if need.right_bias else None,
            found.att if need.att else None,
            _gradient_of_index(found.q, bent, ctx.bound) if need.q else None,
            None,
            found.bias if need.bias else None,
            found.edge_attr if need.edge_attr else None,
            found.edge_weight.flatten(1).t() if need.edge_weight else None,
            None,
            None,
            None,
        )


def _gradients(
    grad: Tensor, scored: Scored, graph: Structure, made: tuple[Tensor, Tensor], kind: Kind, need: Wanted
) -> Gradients:
    """Gradients of what attention is made of, from that of the output, the weights and the logits."""
    if is_small(len(made[0]), len(scored.source)) and came_back_whole(scored, graph, made, grad.dtype):
        return small_graph.backward(grad, scored, graph, made, kind, need)
    from ltga.kernels.operators.attention_numba import partial_gradients, total

    operands = _attended(scored)
    _, heads, channels = scored.att.shape
    upstream = grad.reshape(-1, 1 if kind.average else heads, channels)
    results = Results(grad, *made, _NO_RAW[grad.dtype])
    needed = Needed(need.source, need.edge_attr, need.q, False, False)
    found = partial_gradients(upstream, None, operands, graph, results, kind, needed)
    shared = total(found.q)[None] if need.q and len(scored.q) == 1 else found.q
    to_source, to_target = (torch.from_numpy(each.reshape(-1, heads * channels)) for each in (found.x, found.target))
    of_att, of_bias = torch.from_numpy(total(found.att)[None]), torch.from_numpy(total(found.bias).reshape(-1))
    of_q, of_edges = torch.from_numpy(shared).to(grad.dtype), torch.from_numpy(total(found.edge_weight))
    return Gradients(to_source, to_target, of_att, of_q, of_bias, torch.from_numpy(found.edge_attr), of_edges)


def _shapes(saved: tuple[Tensor | None, ...]) -> list[torch.Size | None]:
    return [None if value is None else value.shape for value in saved]


def _by_name(needs_input_grad: tuple[bool, ...]) -> Any:
    return LayerOperands(*needs_input_grad[: len(LayerOperands._fields)])  # type: ignore[arg-type]


def _gradient_of_index(grad: Tensor, bent: Tensor | None, bound: float) -> Tensor:
    """Of q, or of what it was bounded from."""
    if bent is None:
        return grad
    return torch.ops.aten.tanh_backward(grad[0] if bound == 1.0 else bound * grad[0], bent)  # type: ignore[no-any-return]


def _by_definition(
    ctx: Any, x: Tensor, scored: Scored, graph: Structure, need: Any, grad: Tensor
) -> list[Tensor | None]:
    """Gradients that can be differentiated again."""
    *linears, bias, raw, edge_weight = ctx.unsaved.values()
    q = scored.q if raw is None else raw
    given = LayerOperands(x, *linears, scored.att, q, scored.keep, bias, scored.edge_attr, edge_weight)  # type: ignore[call-arg]

    def definition(*own: Any) -> tuple[Tensor]:
        mine = LayerOperands(*own)
        mine = mine._replace(q=_bounded(mine.q, ctx.bound)[0]) if ctx.bound > 0 else mine
        source, target = F.linear(mine.x, mine.left, mine.left_bias), F.linear(mine.x, mine.right, mine.right_bias)
        return (attention_torch.forward(_attended(_scored(mine, source, target)), graph, ctx.kind)[0].flatten(1),)

    return differentiable_gradients(definition, given, need, (grad,))
