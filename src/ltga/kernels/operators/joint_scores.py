"""GAT's logits where one embedding serves both ends of an edge: two products per node, one sum per edge.

In plain torch every product is an array [N, H, C] on the way there and two on the way back; here nothing of that size
exists but the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ltga.errors import InputError
from ltga.kernels.operators.checks import check_features, check_graph
from ltga.kernels.operators.dispatch import differentiable_gradients, wants_definition
from ltga.kernels.runtime import buffers
from ltga.kernels.runtime.threads import row_blocks, run_blocks


def joint_scores(x: Tensor, left: Tensor, right: Tensor, structure: tuple[Tensor, ...], slope: float) -> Tensor:
    """leaky_relu(<left, x_j> + <right, x_i>) of every edge from j to i and head, ``[E, H]`` in the caller's order.

    Args:
        x: ``[N, H, C]``, on the CPU.
        left, right: ``[H, C]``, for the source and the target.
        structure: ``Neighbourhoods.structure`` of a graph with N sources and N targets.

    >>> from ltga.kernels import neighbourhoods
    >>> graph = neighbourhoods(torch.tensor([[0], [1]]), 2, 2, self_loops=False)
    >>> x = torch.tensor([[[1.0]], [[3.0]]])
    >>> joint_scores(x, torch.tensor([[2.0]]), torch.tensor([[1.0]]), graph.structure, 0.2).tolist()
    [[5.0]]
    """
    check_features("x", x, "")
    check_graph(structure, len(x))
    if len(structure[0]) != len(x) + 1:
        raise InputError(f"x: has {len(x)} rows for {len(structure[0]) - 1} targets; both ends must be the same nodes")
    for name, value in (("left", left), ("right", right)):
        if value.shape != x.shape[1:] or value.dtype != x.dtype or not value.is_cpu:
            raise InputError(f"{name}: expected {x.dtype} {list(x.shape[1:])}, got {value.dtype} {list(value.shape)}")
    found: Tensor = _JointScores.apply(x, left, right, *structure, slope)
    return found


class _JointScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, left: Tensor, right: Tensor, *rest: Any) -> Tensor:
        from ltga.kernels.numba.joint_rows import edge_scores, node_scores

        *structure, slope = rest
        given = tuple(map(_array, (x, left, right)))
        scores = x.new_empty(len(x), 2, x.size(1))
        out = buffers.empty((len(structure[1]), x.size(1)), x.dtype)
        ptr, col, perm = (array.numpy() for array in structure[:3])
        edges = (ptr, col, perm, scores.numpy(), given[0].dtype.type(slope), out.numpy())
        blocks = row_blocks(ptr)
        run_blocks(blocks, lambda _, first, last: node_scores(first, last, *given, edges[3]))
        run_blocks(blocks, lambda _, first, last: edge_scores(first, last, *edges))
        ctx.save_for_backward(x, left, right, scores, *structure)
        ctx.slope = slope
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        from ltga.kernels.numba.joint_rows import node_gradients, source_gradients, target_gradients

        x, left, right, scores, *structure = ctx.saved_tensors
        nothing = (None,) * (len(structure) + 1)
        if wants_definition(grad):

            def definition(*own: Any) -> tuple[Tensor]:
                settings: Any = (*structure[:3], ctx.slope)
                return (plain_joint_scores(*own, *settings),)

            need = ctx.needs_input_grad[:3]
            return (*differentiable_gradients(definition, (x, left, right), need, (grad,)), *nothing)
        ptr, col, perm, tptr, _, tpos = (array.numpy() for array in structure)
        given = tuple(map(_array, (x, left, right)))
        blocks, back = row_blocks(ptr), row_blocks(tptr)
        passed = buffers.empty(tuple(grad.shape), x.dtype).numpy()
        grad_scores, grad_x = np.empty(scores.shape, passed.dtype), buffers.empty(tuple(x.shape), x.dtype)
        vectors = np.zeros((len(blocks), 2, *left.shape), passed.dtype)
        edges = (ptr, col, perm, scores.numpy(), passed.dtype.type(ctx.slope), _array(grad), passed, grad_scores)
        nodes = (*given, grad_scores, grad_x.numpy(), vectors)
        run_blocks(blocks, lambda _, first, last: target_gradients(first, last, *edges))
        run_blocks(back, lambda _, first, last: source_gradients(first, last, tptr, tpos, passed, grad_scores))
        run_blocks(blocks, lambda block, first, last: node_gradients(block, first, last, *nodes))
        return (grad_x, *torch.from_numpy(vectors.sum(0)), *nothing)


def _array(value: Tensor) -> np.ndarray:
    return value.detach().contiguous().numpy()


def plain_joint_scores(
    x: Tensor, left: Tensor, right: Tensor, ptr: Tensor, col: Tensor, perm: Tensor, slope: float
) -> Tensor:
    """:func:`joint_scores` in plain torch."""
    target = torch.repeat_interleave(torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff())
    sums = (x * left).sum(-1).index_select(0, col.long()) + (x * right).sum(-1).index_select(0, target)
    return F.leaky_relu(sums, slope).index_select(0, perm.long().argsort())
