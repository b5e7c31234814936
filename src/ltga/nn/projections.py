"""From node features to a layer's embeddings: the cheapest product that equals a call of its linears."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ltga.errors import InputError
from ltga.kernels import DistinctRows, SparseFeatures, compact_form, project, project_both
from ltga.nn.arguments import check_features, check_same_dtype
from ltga.nn.entitlement import is_plain_linear

Features = Tensor | SparseFeatures | DistinctRows


class FeaturePair(NamedTuple):
    """Source and target features; with ``shared`` the targets are the first of the sources."""

    source: Features
    target: Features
    shared: bool


def feature_pair(x: Any, size: tuple[int, int] | None, compact: bool) -> FeaturePair:
    """Source and target features from what a layer was given, checked.

    With ``compact``, sparse or repeated features come as such once they are seen to be constant.
    """
    single = not isinstance(x, tuple | list)
    pair = (x, x) if single else tuple(x)
    if len(pair) != 2 or pair[0] is None or pair[1] is None:
        raise InputError("x: expected a tensor or a pair (source features, target features), neither None")
    for features in pair:
        check_features(features)
    sizes = (pair[0].size(0), pair[1].size(0))
    narrower = single and size is not None and size[0] == sizes[0] and 0 <= size[1] < sizes[0]
    if size is not None and tuple(size) != sizes and not narrower:
        raise InputError(f"size: is {tuple(size)}, but x has {sizes[0]} sources and {sizes[1]} targets")
    source = _cheapest(pair[0], compact)
    if not single:
        shared = pair[1] is pair[0]
        return FeaturePair(source, source if shared else _cheapest(pair[1], compact), shared)
    if size is None or not narrower:
        return FeaturePair(source, source, True)
    return FeaturePair(source, source[: size[1]] if isinstance(source, Tensor) else source.head(size[1]), True)


def _cheapest(x: Tensor | SparseFeatures, compact: bool) -> Features:
    if not isinstance(x, Tensor) or not compact or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return x
    found = compact_form(x, search=False)
    return x if found is None else found


@dataclass(frozen=True, eq=False)
class Embeddings:
    """What a layer makes of its features, before it looks at any edge."""

    source: Tensor  # [S, H, C]
    target: Tensor  # [T, H, C]
    key: Tensor | None  # [S, H, C] if it is not the source
    residual: Tensor | None  # [T, H * C] or [T, C]
    features: FeaturePair
    linears: tuple[nn.Module, nn.Module]  # of sources and targets

    def averaged(self, attending: Tensor, neighbour: Tensor) -> tuple[Tensor, Tensor]:
        """Weights ``[K, C]`` times the embeddings averaged over heads: of targets ``[T, K]``, of sources ``[S, K]``."""
        left, right = self.linears
        if not (is_plain_linear(left) and is_plain_linear(right)):
            return self.target.mean(1) @ attending.t(), self.source.mean(1) @ neighbour.t()
        heads = self.source.size(1)
        first = head_mean(right, self.features.target, heads, attending)
        return first, head_mean(left, self.features.source, heads, neighbour)


def embed(
    x: FeaturePair,
    left: nn.Module,
    right: nn.Module,
    key: nn.Module | None,
    residual: nn.Module | None,
    shape: tuple[int, int],
    shared: bool,
    compiled: bool,
) -> Embeddings:
    """Embeddings of ``shape`` (heads, channels) by a layer's linears; with ``shared`` one serves both ends."""
    rest = None if residual is None else projected(residual, x.target, compiled)
    if shared and x.source is x.target:
        source = target = projected(left, x.source, compiled)
    else:
        source, target = projected_both(left, right, x, compiled)
    keys = None if key is None else projected(key, x.source, compiled).view(-1, *shape)
    return Embeddings(source.view(-1, *shape), target.view(-1, *shape), keys, rest, x, (left, right))


def projected(linear: nn.Module, x: Features, compiled: bool) -> Tensor:
    """``linear(x)``."""
    if fits_plain_linear(linear, x) and compiled:
        return project(x, linear.weight, linear.bias)  # type: ignore[arg-type]
    out: Tensor = linear(x if isinstance(x, Tensor) else x.to_dense())
    return out


def projected_both(left: nn.Module, right: nn.Module, x: FeaturePair, compiled: bool) -> tuple[Tensor, Tensor]:
    """(left(x.source), right(x.target)); where one tensor feeds both and wants a gradient, that is made at once."""
    one = compiled and x.shared and isinstance(x.source, Tensor) and x.source.requires_grad
    if one and fits_plain_linear(left, x.source) and fits_plain_linear(right, x.source):
        weights = ((linear.weight, linear.bias) for linear in (left, right))
        return project_both(x.source, x.target.size(0), *weights)  # type: ignore[arg-type]
    return projected(left, x.source, compiled), projected(right, x.target, compiled)


def head_mean(linear: nn.Module, x: Features, heads: int, weight: Tensor) -> Tensor:
    """``weight`` [K, C] times the projection of ``x`` averaged over heads, without that average.

    Weights are averaged instead of embeddings: a thin product, and nothing [N, H, C] on the way back.
    """
    average = weight @ linear.weight.view(heads, weight.size(1), -1).mean(0)  # type: ignore[operator]
    bias = None if linear.bias is None else weight @ linear.bias.view(heads, -1).mean(0)  # type: ignore[operator]
    return project(x, average, bias)


def fits_plain_linear(linear: nn.Module, x: Features) -> bool:
    """Whether ``linear`` is nothing but a product; if it is, the features must fit it."""
    weight = linear._parameters.get("weight")  # a parametrised weight may change by being looked at
    if not is_plain_linear(linear) or isinstance(weight, nn.UninitializedParameter):
        return False
    assert isinstance(weight, Tensor)
    if x.size(1) != weight.size(1):
        raise InputError(f"x: has {x.size(1)} features, the layer was built for {weight.size(1)}")
    check_same_dtype(x if isinstance(x, Tensor) else x.values, weight, "x")
    return True
