"""LTGAConv: GATv2's layer with the softmax replaced by one that learns how sparse to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex as PygEdgeIndex
from torch_geometric.nn import GATv2Conv, MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot
from torch_geometric.typing import OptPairTensor, OptTensor, PairTensor  # noqa: F401  (PyG reads the comments below)

from ltga.errors import InputError
from ltga.functional.graph import normalise_edges, score_pairs
from ltga.kernels import NORMALIZERS, Neighbourhoods, Part, SparseFeatures, counter_dropout, torch_dropout
from ltga.kernels.neighbourhoods import Edges
from ltga.nn.adjacency import edges_of, pack_attention
from ltga.nn.checkpoints import start_of_what_is_absent
from ltga.nn.checks import check_dropout, check_size, checked_edge_features
from ltga.nn.entitlement import MESSAGE_METHODS, is_ordinary, is_plain_linear, may_compile, sums_plain_messages
from ltga.nn.fused_attention import (
    AttentionInputs,
    Scores,
    fused_attention,
    fused_logits_and_weights,
    in_callers_order,
    weights_type,
)
from ltga.nn.fused_gate import index_of, modifiers_of, own_copy
from ltga.nn.index import EntropicIndex, make_index, make_modifier
from ltga.nn.projections import feature_pair, head_mean, projected, projected_both


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
        self.register_load_state_dict_pre_hook(start_of_what_is_absent)

    def reset_parameters(self) -> None:
        """Redraw the weights and put the index back to q = 1."""
        if not hasattr(self, "index"):  # called by GATv2Conv's constructor
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
        inputs = self._inputs(x, edge_index, edge_attr, size)
        weights = None
        if isinstance(inputs.edges, Neighbourhoods):
            keep = self._dropout_mask(
                inputs.edges.num_edges, weights_type(inputs, self._scores()), inputs.source.device
            )
            out, csr_weights = fused_attention(inputs, self._scores(), keep, self.bias, not self.concat)
            if return_attention_weights:
                weights = in_callers_order(inputs.edges, csr_weights)
                weights = weights if keep is None else weights * keep
        else:
            weights = self._plain_weights(inputs)
            out = self._plain_sum(inputs, weights)
        if inputs.residual is not None:
            out = out + inputs.residual
        if return_attention_weights:
            assert weights is not None
            return pack_attention(edge_index, self._handed_out(inputs.edges), weights, out)
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
        inputs = self._inputs(x, edge_index, edge_attr, None)
        q = inputs.q
        if isinstance(inputs.edges, Neighbourhoods):
            logits, weights = fused_logits_and_weights(inputs, self._scores())
            q = in_callers_order(inputs.edges, q) if inputs.q_in_csr_order else q
        else:
            logits, weights = self._plain_logits(inputs), self._plain_weights(inputs, dropout=False)
        return Attention(self._handed_out(inputs.edges), logits, q.expand_as(logits), weights)

    def edge_update(  # type: ignore[override]
        self,
        x_j: Tensor,
        x_i: Tensor,
        key_j: OptTensor,
        edge_attr: OptTensor,
        q: Tensor,
        scale: OptTensor,
        shift: OptTensor,
        dropout: bool,
        index: Tensor,
        dim_size: int | None,
    ) -> Tensor:
        """Attention weights ``[E, H]`` by the definitions in :mod:`ltga.functional`, dropout included."""
        logits = self._logits(x_j, x_i, key_j, edge_attr, scale, shift)
        weights = normalise_edges(logits, q, index, dim_size, self.normalizer)  # type: ignore[arg-type]
        keep = self._dropout_mask(weights.size(0), weights.dtype, weights.device) if dropout else None
        return weights if keep is None else weights * keep

    def _logits(
        self,
        x_j: Tensor,
        x_i: Tensor,
        key_j: Tensor | None,
        edge_attr: Tensor | None,
        scale: Tensor | None,
        shift: Tensor | None,
    ) -> Tensor:
        shape = (-1, self.heads, self.out_channels)
        edge = None if edge_attr is None else self.lin_edge(edge_attr).view(shape)
        scoring, key = (self.scoring, x_j) if key_j is None else ("dot", key_j)
        logits = score_pairs(key, x_i, scoring, self.att, self.negative_slope, edge, self.att_target)
        logits = logits if scale is None else logits * scale
        return logits if shift is None else logits + shift

    def _plain_weights(self, inputs: AttentionInputs, dropout: bool = True) -> Tensor:
        # edge_updater_type: (x: PairTensor, key: OptPairTensor, edge_attr: OptTensor, q: Tensor, scale: OptTensor, shift: OptTensor, dropout: bool)  # noqa: E501
        return self.edge_updater(  # type: ignore[no-any-return]
            self._oriented(inputs.edges.edge_index), x=(inputs.source, inputs.target), key=(inputs.key, None),
            edge_attr=inputs.attributes, q=inputs.q, scale=inputs.scale, shift=inputs.shift, dropout=dropout,
        )  # fmt: skip

    def _plain_logits(self, inputs: AttentionInputs) -> Tensor:
        j, i = inputs.edges.edge_index
        key = None if inputs.key is None else inputs.key[j]
        return self._logits(inputs.source[j], inputs.target[i], key, inputs.attributes, inputs.scale, inputs.shift)

    def _plain_sum(self, inputs: AttentionInputs, weights: Tensor) -> Tensor:
        """Weighted sums through PyG's messages, which hooks, explainers and overrides see."""
        edge_index = self._oriented(inputs.edges.edge_index)
        # propagate_type: (x: PairTensor, alpha: Tensor)
        out = self.propagate(edge_index, x=(inputs.source, inputs.target), alpha=weights)
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        return out if self.bias is None else out + self.bias

    def _inputs(
        self, x: Any, edge_index: Any, edge_attr: Tensor | None, size: tuple[int, int] | None
    ) -> AttentionInputs:
        """Everything attention needs: embeddings, edges, index and modifiers of the logits."""
        compiled = may_compile(self.backend, x)
        pair = feature_pair(x, size, compact=compiled and is_plain_linear(self.lin_l))
        shape = (-1, self.heads, self.out_channels)
        residual = None if self.res is None else projected(self.res, pair.target, compiled)
        if self.share_weights and pair.source is pair.target:
            source = target = projected(self.lin_l, pair.source, compiled)
        else:
            source, target = projected_both(self.lin_l, self.lin_r, pair, compiled)
        source, target = source.view(shape), target.view(shape)
        key = None if self.lin_key is None else projected(self.lin_key, pair.source, compiled).view(shape)
        strange = isinstance(edge_index, Tensor) and not (
            is_ordinary(edge_index) or isinstance(edge_index, PygEdgeIndex)
        )
        fused = compiled and not strange and self._may_fuse(source, target, key)
        edges, attributes = self._edges(edge_index, edge_attr, source.size(0), target.size(0), fused)

        def node_terms(attending: Tensor, neighbour: Tensor) -> tuple[Tensor, Tensor]:
            if not (is_plain_linear(self.lin_l) and is_plain_linear(self.lin_r)):
                return target.mean(1) @ attending.t(), source.mean(1) @ neighbour.t()
            first = head_mean(self.lin_r, pair.target, self.heads, attending)
            return first, head_mean(self.lin_l, pair.source, self.heads, neighbour)

        terms = node_terms if fused else None
        q, in_csr_order = index_of(self.index, source, target, edges, terms)
        scale, shift = modifiers_of(self.modifier, source, target, edges, terms)
        return AttentionInputs(source, target, key, residual, edges, attributes, q, in_csr_order, scale, shift)

    def _scores(self) -> Scores:
        edge_weight = None if self.lin_edge is None else self.lin_edge.weight
        return Scores(self.scoring, self.normalizer, self.att, self.att_target, edge_weight, self.negative_slope)

    def _edges(
        self, edge_index: Any, edge_attr: Tensor | None, sources: int, targets: int, fused: bool
    ) -> tuple[Edges, Tensor | None]:
        """The edges attention runs over, and edge features in the same order."""
        if self.flow != "source_to_target" and sources != targets:
            raise InputError("flow: 'target_to_source' needs one x for both ends; flip edge_index instead")

        def check(edge_attr: Any, edges: int) -> Tensor:
            return checked_edge_features(edge_attr, edges, self.edge_dim, self.lin_edge)

        return edges_of(
            edge_index, edge_attr, sources, targets, self.add_self_loops, self.flow, self.fill_value, fused, check
        )

    def _dropout_mask(self, edges: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
        """0 or 1/(1-p) per edge and head, drawn exactly as ``F.dropout`` on the weights would."""
        if not self.training or self.dropout == 0.0:
            return None
        ones = torch.ones(edges, self.heads, dtype=dtype, device=device)
        if self.dropout_key is not None:
            return counter_dropout(ones, self.dropout, self.dropout_key, self.dropout_part)
        return torch_dropout(ones, self.dropout, part=self.dropout_part)

    def _may_fuse(self, *embeddings: Tensor | None) -> bool:
        """Whether the fused kernels are what PyG's message passing would give, with nobody to see a difference."""
        linear, parameters = self.lin_edge, (self.att, self.att_target, self.bias, *embeddings)
        if linear is not None and not (is_plain_linear(linear) and linear.bias is None):
            return False
        ordinary = torch.compiler.is_compiling() or all(value is None or is_ordinary(value) for value in parameters)
        return ordinary and sums_plain_messages(self, _MESSAGES)

    def _oriented(self, edge_index: Tensor) -> Tensor:
        """From (source, target) back to the caller's orientation."""
        return edge_index if self.flow == "source_to_target" else edge_index.flip(0)

    def _handed_out(self, edges: Edges) -> Tensor:
        return self._oriented(own_copy(edges))

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, "
            f"index={self.index!r})"
        )


# As they are now: a user may change the class later, and then messages are no longer ours.
_MESSAGES = {name: getattr(LTGAConv, name) for name in MESSAGE_METHODS}
