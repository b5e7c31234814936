"""LTGAConv: GATv2's layer with the softmax replaced by one that learns how sparse to be."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.inits import glorot
from torch_geometric.typing import OptPairTensor, OptTensor, PairTensor  # noqa: F401  (PyG reads the comments below)

from ltga.errors import InputError
from ltga.functional.graph import normalise_edges, score_pairs
from ltga.kernels import NORMALIZERS, Neighbourhoods, SparseFeatures
from ltga.kernels.runtime.neighbourhoods import Edges
from ltga.nn.adjacency import edges_of, pack_attention
from ltga.nn.arguments import check_choice, check_dropout, check_size, checked_edge_features
from ltga.nn.attention_inputs import Attention, AttentionInputs, Scores
from ltga.nn.checkpoints import start_of_what_is_absent
from ltga.nn.entitlement import MESSAGE_METHODS, is_plain_linear, may_compile, may_fuse, may_launch
from ltga.nn.fused_attention import Drop, fused_attention, fused_logits_and_weights, in_callers_order, kernels_agree
from ltga.nn.fused_gate import index_of, modifiers_of, own_copy
from ltga.nn.index import EntropicIndex, make_index
from ltga.nn.masks import Draws
from ltga.nn.modifiers import make_modifier
from ltga.nn.one_step import in_one_step, may_take_one_step
from ltga.nn.projections import embed, feature_pair


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
        delta: q stays in (1 - delta, 1 + delta), unless ``index_form`` is ``"log"``.
        index_form, index_start: how a learned q is held, ``"tanh"`` or ``"log"`` (q = e^a), and where it starts.
        modifier: ``None``, ``"edge-bias"``, ``"edge-scale"`` or ``"temperature"``: change the logits
            instead of, or besides, the index.
        backend: ``"auto"``, ``"torch"`` (the definition), ``"numba"`` (fused CPU kernels) or ``"triton"`` (GPUs).

    Shapes:
        x ``[N, F]``, or a pair ``([S, F_s], [T, F_t])``; edge_index ``[2, E]``, ``EdgeIndex``, or a
        transposed sparse adjacency; edge_attr ``[E, D]``; output ``[N, H * C]``, or ``[N, C]`` if averaged.

    A node without incoming edges gets the bias (plus residual). Duplicate edges count twice.

    >>> conv = LTGAConv(16, 8, heads=2)
    >>> conv(torch.randn(3, 16), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 16])
    """

    att: nn.Parameter | None  # type: ignore[assignment]
    # GAT's scores of both ends in one compiled pass; networks with published numbers do without, it rounds otherwise.
    joint_scores = False

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
        index_form: str = "tanh",
        index_start: float = 1.0,
        modifier: str | None = None,
        backend: str = "auto",
        **kwargs: Any,
    ) -> None:
        check_choice("scoring", scoring, ("gatv2", "gat", "dot", "qkv"))
        check_choice("normalizer", normalizer, tuple(NORMALIZERS))
        check_choice("backend", backend, ("auto", "torch", "numba", "triton"))
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
        self.index = make_index(index, out_channels, heads, delta, index_form, index_start)
        self.modifier = make_modifier(modifier, out_channels, heads)
        self.lin_key, att_target = None, None
        if scoring == "gat":
            att_target = nn.Parameter(torch.empty(1, heads, out_channels))
            glorot(att_target)
        self.register_parameter("att_target", att_target)
        if scoring in ("dot", "qkv"):
            self.register_parameter("att", None)  # a dot product has no attention vector to learn
        if scoring == "qkv":
            sources = in_channels if isinstance(in_channels, int) else in_channels[0]
            self.lin_key = Linear(sources, heads * out_channels, bias=bias, weight_initializer="glorot")
        self.register_load_state_dict_pre_hook(start_of_what_is_absent)

    def reset_parameters(self) -> None:
        """Redraw the weights and put the index back to q = 1."""
        super().reset_parameters()
        if not hasattr(self, "index"):  # called by GATv2Conv's constructor
            return
        glorot(self.att_target)
        for part in (self.lin_key, self.index, self.modifier):
            if part is not None:
                part.reset_parameters()  # type: ignore[operator]

    def forward(  # type: ignore[override]
        self,
        x: Tensor | tuple[Tensor, Tensor] | SparseFeatures,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
        size: tuple[int, int] | None = None,
        draws: Draws | None = None,
    ) -> Any:
        """Attend and aggregate.

        Args:
            x: node features, or a pair (sources, targets).
            edge_index: ``[2, E]`` or any adjacency PyG's layers take.
            edge_attr: ``[E, D]`` (or ``[E]``) edge features if ``edge_dim`` was set.
            return_attention_weights: if true, also return ``(edge_index, weights)`` as ``GATv2Conv`` does.
            size: (sources, targets), checked against ``x`` if given; with a single ``x`` its first rows may be
                the only targets.
            draws: where the dropout of attention weights takes its random numbers from; torch if left out.
        """
        draws = (draws or Draws()) if self.training and self.dropout > 0.0 else None
        simple = size is None and not return_attention_weights
        if simple and may_take_one_step(self, x, edge_index, edge_attr, _STEPS):
            return in_one_step(self, x, edge_index, edge_attr, draws)
        inputs, weights = self._inputs(x, edge_index, edge_attr, size), None
        if isinstance(inputs.edges, Neighbourhoods):
            scores = self._scores()
            drop = Drop.of(draws, self.dropout, inputs, scores, whole=bool(return_attention_weights))
            out, csr_weights = fused_attention(inputs, scores, drop, self.bias, not self.concat)
            if return_attention_weights:
                weights = in_callers_order(inputs.edges, csr_weights)
                weights = weights if drop.keep is None else weights * drop.keep
        else:
            weights = self._plain_weights(inputs, draws)
            out = self._plain_sum(inputs, weights)
        if inputs.residual is not None:
            out = out + inputs.residual
        if return_attention_weights:
            assert weights is not None
            return pack_attention(edge_index, self._oriented(own_copy(inputs.edges)), weights, out)
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
            logits, weights = self._plain_logits(inputs), self._plain_weights(inputs, None)
        return Attention(self._oriented(own_copy(inputs.edges)), logits, q.expand_as(logits), weights)

    def edge_update(  # type: ignore[override]
        self,
        x_j: Tensor,
        x_i: Tensor,
        key_j: OptTensor,
        edge_attr: OptTensor,
        q: Tensor,
        scale: OptTensor,
        shift: OptTensor,
        draws: Draws | None,
        index: Tensor,
        dim_size: int | None,
    ) -> Tensor:
        """Attention weights ``[E, H]`` by the definitions in :mod:`ltga.functional`, dropout included."""
        logits = self._logits(x_j, x_i, key_j, edge_attr, scale, shift)
        weights = normalise_edges(logits, q, index, dim_size, self.normalizer)  # type: ignore[arg-type]
        if draws is None:
            return weights
        return weights * draws.mask(len(weights), self.heads, self.dropout, weights.dtype, weights.device)

    def _logits(
        self, x_j: Tensor, x_i: Tensor, key_j: OptTensor, edge_attr: OptTensor, scale: OptTensor, shift: OptTensor
    ) -> Tensor:
        shape = (-1, self.heads, self.out_channels)
        edge = None if edge_attr is None else self.lin_edge(edge_attr).view(shape)
        scoring, key = (self.scoring, x_j) if key_j is None else ("dot", key_j)
        logits = score_pairs(key, x_i, scoring, self.att, self.negative_slope, edge, self.att_target)
        logits = logits if scale is None else logits * scale
        return logits if shift is None else logits + shift

    def _plain_weights(self, inputs: AttentionInputs, draws: Draws | None) -> Tensor:
        # edge_updater_type: (x: PairTensor, key: OptPairTensor, edge_attr: OptTensor, q: Tensor, scale: OptTensor, shift: OptTensor, draws: Optional[Draws])  # noqa: E501
        return self.edge_updater(  # type: ignore[no-any-return]
            self._oriented(inputs.edges.edge_index), x=(inputs.source, inputs.target), key=(inputs.key, None),
            edge_attr=inputs.attributes, q=inputs.q, scale=inputs.scale, shift=inputs.shift, draws=draws,
        )  # fmt: skip

    def _plain_logits(self, inputs: AttentionInputs) -> Tensor:
        j, i = inputs.edges.edge_index
        ends = inputs.source[j], inputs.target[i], None if inputs.key is None else inputs.key[j]
        return self._logits(*ends, inputs.attributes, inputs.scale, inputs.shift)

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
        linears = self.lin_l, self.lin_r, self.lin_key, self.res
        own = embed(pair, *linears, (self.heads, self.out_channels), self.share_weights, compiled)
        launched = may_launch(self, x) and kernels_agree(self, own.source)
        fused = (compiled or launched) and may_fuse(self, edge_index, (own.source, own.target, own.key), _MESSAGES)
        edges, attributes = self._edges(edge_index, edge_attr, own.source.size(0), own.target.size(0), fused)
        q, in_csr_order = index_of(self.index, own, edges, compiled)
        scale, shift = modifiers_of(self.modifier, own, edges, compiled)
        nodes = own.source, own.target, own.key, own.residual
        backend = "triton" if launched else ""
        return AttentionInputs(*nodes, edges, attributes, q, in_csr_order, scale, shift, backend)

    def _scores(self) -> Scores:
        edge_weight = None if self.lin_edge is None else self.lin_edge.weight
        vectors = self.att, self.att_target, edge_weight
        return Scores(self.scoring, self.normalizer, *vectors, self.negative_slope, self.joint_scores)

    def _edges(
        self, edge_index: Any, edge_attr: Tensor | None, sources: int, targets: int, fused: bool
    ) -> tuple[Edges, Tensor | None]:
        """The edges attention runs over, and edge features in the same order."""
        if self.flow != "source_to_target" and sources != targets:
            raise InputError("flow: 'target_to_source' needs one x for both ends; flip edge_index instead")
        check = partial(checked_edge_features, edge_dim=self.edge_dim, linear=self.lin_edge)
        return edges_of(
            edge_index, edge_attr, sources, targets, self.add_self_loops, self.flow, self.fill_value, fused, check
        )

    def _oriented(self, edge_index: Tensor) -> Tensor:
        """From (source, target) back to the caller's orientation."""
        return edge_index if self.flow == "source_to_target" else edge_index.flip(0)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, index={self.index!r})"


# As they are now: a user may change the class later, and then messages are no longer ours.
_MESSAGES = {name: getattr(LTGAConv, name) for name in (*MESSAGE_METHODS, "_logits", "_plain_weights", "_plain_sum")}
_STEPS = {**_MESSAGES, **{name: getattr(LTGAConv, name) for name in ("_inputs", "_edges", "_scores")}}
