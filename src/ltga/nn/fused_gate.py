"""The edge gate's shortcuts through the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ltga.kernels import Neighbourhoods, edge_mlp, project
from ltga.nn.index import bounded

if TYPE_CHECKING:
    from ltga.nn.conv import LTGAConv


@dataclass(frozen=True, eq=False)
class FusedGate:
    """See :class:`~ltga.nn.index.Shortcuts`."""

    conv: LTGAConv
    source: Tensor  # [S, H, C]
    target: Tensor  # [T, H, C]
    features: Any  # (source features, target features), dense or compact
    graph: Neighbourhoods

    def node_terms(self, attending: Tensor, neighbour: Tensor) -> tuple[Tensor, Tensor]:
        left, right = self.conv.lin_l, self.conv.lin_r
        if watched(left) or watched(right):  # a hook may change the embeddings
            return self.target.mean(1) @ attending.t(), self.source.mean(1) @ neighbour.t()
        return self._head_mean(right, self.features[1], attending), self._head_mean(left, self.features[0], neighbour)

    def _head_mean(self, linear: nn.Module, x: Any, weight: Tensor) -> Tensor:
        """``weight`` [K, C] times the projection of ``x`` averaged over heads, without that average.

        Weights are averaged instead of embeddings: a thin product, and nothing [N, H, C] on the way back.
        """
        shape = (self.conv.heads, self.conv.out_channels)
        average = weight @ linear.weight.view(*shape, -1).mean(0)  # type: ignore[operator]
        bias = None if linear.bias is None else weight @ linear.bias.view(shape).mean(0)  # type: ignore[operator]
        return project(x, average, bias)

    def edge_outputs(
        self, per_target: Tensor, per_source: Tensor, last: nn.Linear, csr_order: bool, bound: float
    ) -> Tensor:
        if watched(last):
            j, i = self.graph.edge_index[:, self.graph.perm.long()] if csr_order else self.graph.edge_index
            out = last(torch.relu(per_target.index_select(0, i) + per_source.index_select(0, j)))
            return bounded(out, bound) if bound > 0 else out
        wide = torch.promote_types(self.source.dtype, torch.float32)
        parts = (per_target, per_source, last.weight, last.bias)
        return edge_mlp(*(part.to(wide) for part in parts), *self.graph.structure, csr_order, bound)  # type: ignore[no-any-return]


def watched(module: nn.Module) -> bool:
    """Whether somebody registered hooks, which only a real call of the module fires."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
