"""Attention by the definitions in :mod:`ltga.functional`, which torch can differentiate as often as one likes."""

from __future__ import annotations

import torch
from torch import Tensor

from ltga.functional.graph import aggregate_edges, normalise_edges, score_edges
from ltga.kernels.codes import GATV2, NORMALIZERS
from ltga.kernels.operators.dropout import with_mask
from ltga.kernels.operators.operands import Kind, Operands, Structure


def forward(operands: Operands, graph: Structure, kind: Kind) -> tuple[Tensor, Tensor]:
    """(out, weights in CSR order); see :func:`ltga.kernels.attend`."""
    given = with_mask(operands, len(graph.col), kind)
    targets, order = len(graph.ptr) - 1, graph.perm.long()
    edges = torch.stack(
        [graph.col.long(), torch.repeat_interleave(torch.arange(targets, device=graph.ptr.device), graph.ptr.diff())]
    )

    def sorted_by_target(value: Tensor) -> Tensor:
        return value if len(value) == 1 else value.index_select(0, order)

    if given.given is not None:
        logits = given.given.index_select(0, order)
    else:
        edge = None
        if given.edge_attr is not None:
            edge = torch.einsum("ed,dhc->ehc", given.edge_attr.index_select(0, order), given.edge_weight)
        name = "gatv2" if kind.scoring == GATV2 else "dot"
        logits = score_edges(given.x, given.target, edges, name, given.att, kind.slope, edge)
        logits = logits if name == "gatv2" else logits * (kind.dot_scale * given.x.size(2) ** 0.5)
    logits = logits if given.scale is None else logits * sorted_by_target(given.scale)
    logits = logits if given.shift is None else logits + given.shift.index_select(0, order)
    normalizer = next(name for name, code in NORMALIZERS.items() if code == kind.normalizer)
    q = given.q if kind.q_in_csr_order else sorted_by_target(given.q)
    weights = normalise_edges(logits, q, edges[1], targets, normalizer)
    kept = weights if given.keep is None else weights * given.keep.index_select(0, order)
    out = aggregate_edges(kept, given.x, edges, targets)
    out = out.mean(1, keepdim=True) if kind.average else out
    return out if given.bias is None else out + given.bias, weights
