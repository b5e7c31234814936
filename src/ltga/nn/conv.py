"""LTGAConv: GATv2's layer with the softmax replaced by one that learns how sparse to be."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot
from torch_geometric.utils import add_self_loops, remove_self_loops

from ltga.errors import InputError
from ltga.functional.graph import aggregate_edges
from ltga.kernels import (
    NORMALIZERS,
    DistinctRows,
    Neighbourhoods,
    Part,
    SparseFeatures,
    compact_form,
    counter_dropout,
    project,
    project_both,
    torch_dropout,
    used_again,
)
from ltga.nn.adjacency import graph_of, pack_attention
from ltga.nn.checks import check_dropout, check_features, check_same_dtype, check_size
from ltga.nn.edge_step import EdgeStep
from ltga.nn.fused_gate import FusedGate, watched
from ltga.nn.index import EntropicIndex, make_index, make_modifier

Features = Tensor | SparseFeatures | DistinctRows
HAS_NUMBA = importlib.util.find_spec("numba") is not None


@dataclass(frozen=True)
class Attention:
    """What a layer did on every edge, in the order of ``edge_index`` (self-loops last).

    Attributes:
        edge_index: ``[2, E]``.
        logits, q, weights: ``[E, H]``; a weight of exactly 0 means that the head ignores the edge.
    """

    edge_index: Tensor
    logits: Tensor
    q: Tensor
    weights: Tensor

    @property
    def ignored(self) -> Tensor:
        """Edges that every head ignores, ``[E]`` boolean."""
        return (self.weights == 0).all(dim=1)


class LTGAConv(GATv2Conv):
    r"""Graph attention with a learned entropic index: a drop-in replacement for PyG's ``GATv2Conv``.

    .. math::
        h'_i = \sum_{j\in N(i)} \alpha_{ij}\, W_l h_j, \qquad
        \alpha_{ij} = \frac{\exp_q(e_{ij}-c_i)}{\sum_k \exp_q(e_{ik}-c_i)}, \qquad
        e_{ij} = a^\top\mathrm{LeakyReLU}(W_l h_j + W_r h_i + W_e e_{ij}),

    with :math:`c_i = \max_k e_{ik}`. At q = 1 (the start) this is GATv2, number for number and with the
    same random numbers; for q > 1 weak edges get a weight of exactly zero; for q < 1 the tails are heavy.

    Args:
        in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim,
            fill_value, bias, share_weights, residual: as in ``GATv2Conv``.
        index: who owns q: ``"global"`` or ``"layer"`` (one value), ``"head"``, ``"edge"`` (a small gate on
            the endpoints), a number (frozen), or an :class:`~ltga.nn.EntropicIndex` shared between layers.
        scoring: ``"gatv2"``, ``"gat"`` (v1), ``"dot"`` (scaled dot product of ``lin_r`` and ``lin_l``) or ``"qkv"``
            (the same with keys of their own, ``lin_key``: ``lin_l`` makes the messages only).
        normalizer: ``"q_softmax"``, ``"entmax"`` (the index is then its alpha) or ``"softmax"``.
        delta: q stays in (1 - delta, 1 + delta).
        modifier: ``None``, ``"edge-bias"``, ``"edge-scale"`` or ``"temperature"``: change the logits
            instead of, or besides, the index.
        backend: ``"auto"``, ``"torch"`` (the definition) or ``"numba"`` (fused CPU kernels).

    Shapes:
        x ``[N, F]``, or a pair ``([S, F_s], [T, F_t])``; edge_index ``[2, E]``, ``EdgeIndex``, or a
        transposed sparse adjacency; edge_attr ``[E, D]``; output ``[N, H * C]``, or ``[N, C]`` if averaged.

    A node without incoming edges gets the bias (plus residual). Duplicate edges count twice.

    >>> conv = LTGAConv(16, 8, heads=2)
    >>> conv(torch.randn(3, 16), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 16])
    """

    att: nn.Parameter | None  # type: ignore[assignment]

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        share_weights: bool = False,
        residual: bool = False,
        *,
        index: str | float | EntropicIndex = "head",
        scoring: str = "gatv2",
        normalizer: str = "q_softmax",
        delta: float = 1.0,
        modifier: str | None = None,
        backend: str = "auto",
        **kwargs: Any,
    ) -> None:
        for name, value, allowed in (
            ("scoring", scoring, ("gatv2", "gat", "dot", "qkv")),
            ("normalizer", normalizer, tuple(NORMALIZERS)),
            ("backend", backend, ("auto", "torch", "numba")),
        ):
            if value not in allowed:
                raise InputError(f"{name}: expected one of {', '.join(map(repr, allowed))}, got {value!r}")
        check_size("out_channels", out_channels)
        check_size("heads", heads)
        check_dropout("dropout", dropout)
        super().__init__(
            in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim,
            fill_value, bias, share_weights, residual, **kwargs,
        )  # fmt: skip
        # PyG keeps the general propagate beside the one it generates per class; explainers need it.
        type(self)._orig_propagate = MessagePassing.propagate
        self.scoring, self.normalizer, self.backend = scoring, normalizer, backend
        # Built after GATv2's own parameters, so that those see the same random numbers as in GATv2Conv.
        self.index = make_index(index, out_channels, heads, delta)
        self.modifier = make_modifier(modifier, out_channels, heads)
        if scoring == "gat":
            self.att_target = nn.Parameter(torch.empty(1, heads, out_channels))
            glorot(self.att_target)
        else:
            self.register_parameter("att_target", None)
        if scoring in ("dot", "qkv"):
            self.register_parameter("att", None)  # a dot product has no attention vector to learn
        sources = in_channels if isinstance(in_channels, int) else in_channels[0]
        self.lin_key = None
        if scoring == "qkv":
            self.lin_key = Linear(sources, heads * out_channels, bias=bias, weight_initializer="glorot")
        self.dropout_key: tuple[int, ...] | None = None  # if set, attention dropout depends on it alone
        self.dropout_part: Part | None = None  # if set, attention dropout treats the edges as these of a larger graph
        self.register_load_state_dict_pre_hook(_keep_index_if_absent)

    def reset_parameters(self) -> None:
        """Redraw the weights and put the index back to q = 1."""
        if self.__dict__.get("_modules", {}).get("index") is None:  # called by GATv2Conv's constructor
            super().reset_parameters()
            return
        att, self.att = (
            self.att,
            self.att if self.att is not None else nn.Parameter(torch.empty(1, self.heads, 1)),
        )
        super().reset_parameters()
        self.att = att
        glorot(self.att_target)
        if self.lin_key is not None:
            self.lin_key.reset_parameters()
        self.index.reset_parameters()
        if self.modifier is not None:
            self.modifier.reset_parameters()  # type: ignore[operator]

    def forward(  # type: ignore[override]
        self,
        x: Tensor | tuple[Tensor, Tensor] | SparseFeatures,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
        size: tuple[int, int] | None = None,
    ) -> Any:
        """Attend and aggregate.

        Args:
            x: node features, or a pair (sources, targets).
            edge_index: ``[2, E]`` or any adjacency PyG's layers take.
            edge_attr: ``[E, D]`` (or ``[E]``) edge features if ``edge_dim`` was set.
            return_attention_weights: if true, also return ``(edge_index, weights)`` as ``GATv2Conv`` does.
            size: (sources, targets), checked against ``x`` if given; with a single ``x`` its first rows may be
                the only targets.
        """
        step, residual = self._prepare(x, edge_index, edge_attr, size)
        keep = self._dropout_mask(step.source, step.graph.num_edges)
        weights = None
        if self._fused(step.source) and not self._needs_messages():
            out, csr_weights = step.fused(keep)
            if return_attention_weights:
                weights = step.in_callers_order(csr_weights)
                weights = weights if keep is None else weights * keep
        else:
            _, weights = step.plain()
            weights = weights if keep is None else weights * keep
            out = self._aggregate(step, weights)
        if residual is not None:
            out = out + residual
        if return_attention_weights:
            assert weights is not None
            return pack_attention(edge_index, self._oriented(step.graph.edge_index), weights, out)
        return out

    @torch.no_grad()
    def attend(
        self, x: Tensor | tuple[Tensor, Tensor] | SparseFeatures, edge_index: Any, edge_attr: Tensor | None = None
    ) -> Attention:
        """Look inside: logits, q and weights of every edge, without dropout or gradients.

        >>> inside = LTGAConv(4, 2).attend(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
        >>> inside.weights.shape
        torch.Size([5, 1])
        """
        step, _ = self._prepare(x, edge_index, edge_attr, None)
        logits, weights = step.fused_logits_and_weights() if self._fused(step.source) else step.plain()
        return Attention(
            self._oriented(step.graph.edge_index), logits, step.q_in_callers_order().expand_as(logits), weights
        )

    def _prepare(
        self, x: Any, edge_index: Any, edge_attr: Tensor | None, size: tuple[int, int] | None
    ) -> tuple[EdgeStep, Tensor | None]:
        """Everything attention needs, and the residual term."""
        pair = self._features(x, size)
        shape = (-1, self.heads, self.out_channels)
        residual = None if self.res is None else self._project(self.res, pair[1])
        if self.share_weights and pair[0] is pair[1]:
            source = target = self._project(self.lin_l, pair[0])
        elif isinstance(x, Tensor) and x.requires_grad and self._plain_product(x, self.lin_l, self.lin_r):
            weights = ((linear.weight, linear.bias) for linear in (self.lin_l, self.lin_r))
            source, target = project_both(x, pair[1].size(0), *weights)
        else:
            source, target = self._project(self.lin_l, pair[0]), self._project(self.lin_r, pair[1])
        source, target = source.view(shape), target.view(shape)
        key = None if self.lin_key is None else self._project(self.lin_key, pair[0]).view(shape)
        sizes = (source.size(0), target.size(0))
        graph, attributes = self._graph(edge_index, edge_attr, *sizes)
        shortcuts = FusedGate(self, source, target, pair, graph) if self._fused(source) else None
        q = self.index(source, target, graph.edge_index, shortcuts)
        scale = shift = None
        if self.modifier is not None:
            scale, shift = self.modifier(source, target, graph.edge_index, shortcuts)
        in_csr_order = shortcuts is not None and self.index.csr_order and len(q) == graph.num_edges
        return EdgeStep(self, source, target, key, graph, attributes, q, in_csr_order, scale, shift), residual

    def _features(self, x: Any, size: tuple[int, int] | None) -> tuple[Features, Features]:
        """(source features, target features), checked, in the cheapest form for a product."""
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
        source = self._cheapest(pair[0])
        if not single:
            return source, source if pair[1] is pair[0] else self._cheapest(pair[1])
        if size is None or not narrower:
            return source, source
        return source, source[: size[1]] if isinstance(source, Tensor) else source.head(size[1])

    def _cheapest(self, x: Tensor | SparseFeatures) -> Features:
        """Sparse or repeated features as such, once they are seen to be constant."""
        if not isinstance(x, Tensor) or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return x
        if not self._fused(x) or x.dtype != self.lin_l.weight.dtype or not used_again(x):
            return x
        compact = compact_form(x)
        return x if compact is None else compact

    def _project(self, linear: nn.Module, x: Features) -> Tensor:
        if self._plain_product(x, linear):
            return project(x, linear.weight, linear.bias)  # type: ignore[arg-type]
        out: Tensor = linear(x if isinstance(x, Tensor) else x.to_dense())
        return out

    def _plain_product(self, x: Features, *linears: nn.Module) -> bool:
        """Whether these linears are nothing but products, once the features are found to fit them."""
        values = x if isinstance(x, Tensor) else x.values
        plain = self._fused(values)
        for linear in linears:
            lazy = isinstance(linear.weight, nn.UninitializedParameter)
            if not lazy and x.size(1) != linear.weight.size(1):  # type: ignore[operator]
                raise InputError(f"x: has {x.size(1)} features, the layer was built for {linear.weight.size(1)}")  # type: ignore[operator]
            check_same_dtype(values, linear.weight, "x")  # type: ignore[arg-type]
            plain = plain and not lazy and not watched(linear)
        return plain

    def _graph(
        self, edge_index: Any, edge_attr: Tensor | None, sources: int, targets: int
    ) -> tuple[Neighbourhoods, Tensor | None]:
        """The neighbourhoods attention runs over, and edge features in the same order."""
        graph, plain, values = graph_of(edge_index, sources, targets, self.add_self_loops, self.flow, self.fill_value)
        if edge_attr is None and values is None:
            return graph, None
        edge_attr = values if edge_attr is None else edge_attr
        if not isinstance(edge_attr, Tensor) or not edge_attr.is_floating_point():
            kind = edge_attr.dtype if isinstance(edge_attr, Tensor) else type(edge_attr).__name__
            raise InputError(f"edge_attr: expected a floating-point tensor [E, D], got {kind}")
        if self.lin_edge is None:
            raise InputError("edge_attr: given, but the layer was built without edge_dim; pass edge_dim=...")
        edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
        edges = graph.num_edges if plain is None else plain.size(1)
        fits = edge_attr.dim() == 2 and self.edge_dim in (-1, edge_attr.size(1))
        if not fits or len(edge_attr) != edges:
            raise InputError(f"edge_attr: expected [{edges}, {self.edge_dim}], got {list(edge_attr.shape)}")
        if isinstance(self.lin_edge.weight, nn.UninitializedParameter):
            self.lin_edge(edge_attr[:1])
        check_same_dtype(edge_attr, self.lin_edge.weight, "edge_attr")
        if self.add_self_loops and plain is not None:
            kept, edge_attr = remove_self_loops(plain, edge_attr)
            _, edge_attr = add_self_loops(kept, edge_attr, fill_value=self.fill_value, num_nodes=min(sources, targets))
        return graph, edge_attr

    def _dropout_mask(self, like: Tensor, edges: int) -> Tensor | None:
        """0 or 1/(1-p) per edge and head, drawn exactly as ``F.dropout`` on the weights would."""
        if not self.training or self.dropout == 0.0:
            return None
        ones = torch.ones(edges, self.heads, dtype=like.dtype, device=like.device)
        if self.dropout_key is not None:
            return counter_dropout(ones, self.dropout, self.dropout_key, self.dropout_part)
        return torch_dropout(ones, self.dropout, part=self.dropout_part)

    def _needs_messages(self) -> bool:
        """Explainers and hooks look at messages; everyone else gets the path without them."""
        return bool(
            self.explain or self._message_forward_hooks or self._message_forward_pre_hooks
            or self._aggregate_forward_hooks or self._propagate_forward_hooks or self._edge_update_forward_hooks
            or self._propagate_forward_pre_hooks or self._aggregate_forward_pre_hooks or self.aggr not in ("add", "sum")
            or (self.lin_edge is not None and watched(self.lin_edge))
        )  # fmt: skip

    def _fused(self, x: Tensor) -> bool:
        if self.backend == "torch":
            return False
        able = HAS_NUMBA and x.device.type == "cpu"
        if self.backend == "numba" and not able:
            raise InputError(f"backend: 'numba' needs numba and CPU tensors, got {x.device}; use backend='auto'")
        return able

    def _aggregate(self, step: EdgeStep, weights: Tensor) -> Tensor:
        """Weighted sums in plain torch, through PyG's messages where somebody looks at them."""
        if self._needs_messages():
            # propagate_type: (x: PairTensor, alpha: Tensor)
            out = self.propagate(self._oriented(step.graph.edge_index), x=(step.source, step.target), alpha=weights)
        else:
            out = aggregate_edges(weights, step.source, step.graph.edge_index, step.graph.num_targets)
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        return out if self.bias is None else out + self.bias

    def _oriented(self, edge_index: Tensor) -> Tensor:
        """From (source, target) back to the caller's orientation."""
        return edge_index if self.flow == "source_to_target" else edge_index.flip(0)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, "
            f"index={self.index!r})"
        )


def _keep_index_if_absent(
    module: nn.Module,
    state: dict,
    prefix: str,
    metadata: Any,
    strict: bool,
    missing: list,
    unexpected: list,
    errors: list,
) -> None:
    """Let a ``GATv2Conv`` checkpoint load: what it does not know stays at its start, q = 1."""
    own = module.state_dict()
    new = [name for name in own if name.startswith(("index.", "modifier.", "att_target"))]
    if not any(prefix + name in state for name in new):
        for name in new:
            state[prefix + name] = own[name]
