"""The door to a layer in one step of autograd: for the plain layer on ordinary tensors, which is most of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ltga.kernels import NORMALIZERS, SCORINGS, LayerOperands, Neighbourhoods, attend_features, neighbourhoods
from ltga.kernels.operators.dispatch import is_observed
from ltga.kernels.operators.operands import Kind
from ltga.kernels.operators.projection import may_be_compact
from ltga.nn.entitlement import has_methods, is_ordinary, is_plain_linear, is_untouched, may_compile, may_fuse
from ltga.nn.fused_gate import gated, has_plain_bound, may_fuse_gate
from ltga.nn.index import FrozenIndex, GatedIndex, LearnedIndex, LogIndex
from ltga.nn.masks import Draws

_TYPES = (torch.float32, torch.float64)
_ORDINARY = (nn.Parameter, Tensor)  # and not those that have no values yet
_ABSENT = object()
_BOUNDED = {
    name: getattr(LearnedIndex, name) for name in ("q", "per_head")
}  # as now: a user may change the class later


def may_take_one_step(layer: Any, x: Any, edge_index: Any, edge_attr: Any, methods: Mapping[str, Any]) -> bool:
    """Whether :func:`in_one_step` is what ``layer`` would give; whatever is unusual or wrong goes the long way."""
    if is_observed() or torch.is_autocast_enabled("cpu") or not may_compile(layer.backend, x):
        return False
    if not _is_matrix(x) or may_be_compact(x) or not (is_ordinary(edge_index) and edge_index.is_cpu):
        return False
    if layer.scoring != "gatv2" or layer.share_weights or edge_index.layout is not torch.strided:
        return False
    parts = layer._modules
    if parts.get("modifier") is not None or parts.get("res") is not None:
        return False
    if edge_attr is not None and not _edges_fit(layer, x, edge_index, edge_attr):
        return False
    return _parameters_fit(layer, x) and may_fuse(layer, edge_index, (), methods)


def _edges_fit(layer: Any, x: Tensor, edge_index: Tensor, edge_attr: Any) -> bool:
    """Whether the features of edges, and their weights, are what the layer was built for."""
    linear = layer._modules.get("lin_edge")
    if linear is None or not is_plain_linear(linear) or not (_is_matrix(edge_attr) and edge_attr.is_cpu):
        return False
    edges, features = edge_attr.shape
    weight, shape = linear.weight, (layer.heads * layer.out_channels, features)
    if features == 0 or edge_index.shape != (2, edges) or weight.shape != shape or not weight.is_cpu:
        return False
    return linear.bias is None and weight.dtype == edge_attr.dtype == x.dtype  # type: ignore[no-any-return]


def _parameters_fit(layer: Any, x: Tensor) -> bool:
    """Whether everything the layer would read is where it belongs, untouched, and of the type of ``x``."""
    heads, channels, parts, own = layer.heads, layer.out_channels, layer._modules, layer._parameters
    width, index = heads * channels, parts["index"]
    expected = [(own, "att", (1, heads, channels)), (own, "bias", (width if layer.concat else channels,))]
    linears = [(parts["lin_l"], (width, x.size(1))), (parts["lin_r"], (width, x.size(1)))]
    if type(index) is GatedIndex:
        if not may_fuse_gate(index):
            return False
        gate = index.gate
        linears += [(gate.hidden, (gate.hidden.weight.size(0), 2 * channels))]
        linears += [(gate.out, (heads, gate.hidden.weight.size(0)))]
    elif not is_untouched(index, FrozenIndex, LearnedIndex, LogIndex):
        return False
    for linear, shape in linears:
        if not is_plain_linear(linear):
            return False
        expected += [(linear._parameters, "weight", shape), (linear._parameters, "bias", shape[:1])]
    dtype = x.dtype
    for values, name, shape in expected:
        value = values.get(name, _ABSENT)
        if value is None and name == "bias":
            continue
        if type(value) not in _ORDINARY or value.dtype != dtype or value.shape != shape or not value.is_cpu:
            return False
    return True


def in_one_step(layer: Any, x: Any, edge_index: Tensor, edge_attr: Tensor | None, draws: Draws | None) -> Tensor:
    """``layer`` on what :func:`may_take_one_step` has looked at; dropout by ``draws`` if any."""
    attributes = None
    if edge_attr is None:
        flip = layer.flow != "source_to_target"
        graph = neighbourhoods(edge_index, len(x), len(x), layer.add_self_loops, flip)
    else:
        graph, attributes = layer._edges(edge_index, edge_attr, len(x), len(x), True)
    q, in_csr_order, bound = _index(layer, x, graph)
    q = q if q.dtype == x.dtype else q.to(x.dtype)
    keep = None
    if draws is not None:
        keep = draws.mask(graph.num_edges, layer.heads, layer.dropout, x.dtype, x.device)
    left, right = layer.lin_l, layer.lin_r
    edges = (None, None) if attributes is None else (attributes, layer.lin_edge.weight)
    ends = left.weight, left.bias, right.weight, right.bias
    operands = LayerOperands(x, *ends, layer.att, q, keep, layer.bias, *edges)
    kind = Kind(
        SCORINGS["gatv2"], NORMALIZERS[layer.normalizer], layer.negative_slope, layer.out_channels**-0.5,
        not layer.concat, in_csr_order,
    )  # fmt: skip
    return attend_features(operands, graph, kind, bound)


def _index(layer: Any, x: Tensor, graph: Neighbourhoods) -> tuple[Tensor, bool, float]:
    """q, whether it stands in CSR order, and its bound if that is still to be put on."""
    index = layer._modules["index"]
    if isinstance(index, GatedIndex):
        return gated(index, x, (layer.lin_l, layer.lin_r), layer.heads, graph), True, 0.0
    raw = index._parameters.get("raw")
    bounded = type(index) is LearnedIndex and has_plain_bound(index) and has_methods(index, _BOUNDED)
    if bounded and is_ordinary(raw) and raw.shape == (layer.heads,) and raw.dtype == x.dtype and raw.is_cpu:
        return raw, False, index.delta
    return index.per_head(layer.heads, x), False, 0.0


def _is_matrix(x: Any) -> bool:
    return is_ordinary(x) and x.dim() == 2 and x.dtype in _TYPES and x.layout is torch.strided
