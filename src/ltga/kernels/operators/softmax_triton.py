"""Softmax on a GPU: every feature is read once, the weights are written from the logits afterwards."""

from __future__ import annotations

from torch import Tensor

from ltga.kernels.operators.operands import Structure
from ltga.kernels.operators.program_launch import Arguments, launch, row_parts, whole_rows
from ltga.kernels.runtime.long_rows import long_rows
from ltga.kernels.triton.softmax_rows import forward_softmax, join_softmax, softmax_weights


def softmax_online(arguments: Arguments, graph: Structure, bias: Tensor | None, out: Tensor) -> None:
    """Fill in logits, weights and ``out``: whole rows by one program each, long ones by one for each part."""
    nodes, weights, (_, heads, channels) = len(graph.ptr) - 1, arguments["weights"], out.shape
    plan = long_rows(graph.ptr, len(graph.col))
    stats = weights.new_empty(nodes, 2, heads)
    own = {**arguments, "bias": bias, "stats": stats, "out": out}
    rows, parts = whole_rows(graph.ptr, nodes, plan), row_parts(graph.ptr, nodes, plan)
    launch(forward_softmax, (nodes, heads), own | rows)
    launch(softmax_weights, (nodes, heads), own | rows)
    if plan.parts == 0:
        return
    part_stats = weights.new_empty(plan.parts, 2, heads)
    partial = weights.new_empty(plan.parts, heads, channels)
    launch(forward_softmax, (plan.parts, heads), own | parts | {"stats": part_stats, "out": partial})
    launch(join_softmax, (plan.parts, heads), own | parts | {"part_stats": part_stats, "partial": partial})
    launch(softmax_weights, (plan.parts, heads), own | parts)
