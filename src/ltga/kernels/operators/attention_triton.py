"""Attention on a GPU: arrays made ready, programs started over whole rows and over parts of long ones, sums added."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ltga.kernels.codes import DOT, ENTMAX, GATV2, GIVEN, Q_SOFTMAX, SOFTMAX
from ltga.kernels.operators.dropout import threshold
from ltga.kernels.operators.operands import Kind, Needed, Operands, Results, Structure
from ltga.kernels.operators.program_launch import Arguments, launch, row_parts, whole_rows
from ltga.kernels.operators.softmax_triton import softmax_online
from ltga.kernels.runtime.long_rows import LongRows, long_rows
from ltga.kernels.triton import attend_gradients as back
from ltga.kernels.triton.attend_rows import KNOWN, forward_rows, join_parts
from ltga.kernels.triton.dropout_hash import dropout_elements
from ltga.kernels.triton.edge_gradients import backward_edge_features, backward_edge_weight
from ltga.kernels.triton.row_weights import long_row_statistics
from ltga.kernels.triton.tiles import PROGRAMS, tiles


def forward(operands: Operands, graph: Structure, kind: Kind) -> Results:
    """(out, weights, logits, unscaled logits); see :func:`ltga.kernels.attend`."""
    given, x, acc = _contiguous(operands), operands.x, _wide(operands.x)
    nodes, (_, heads, channels), edges = len(graph.ptr) - 1, x.shape, len(graph.col)
    weights, logits = (x.new_empty(edges, heads, dtype=acc) for _ in range(2))
    raw = x.new_empty((0, 0) if given.scale is None else (edges, heads), dtype=acc)
    out = x.new_empty(nodes, heads, channels, dtype=acc if kind.average else x.dtype)
    arguments = {
        **_given(given, graph, kind), "raw": raw, "logits": logits, "weights": weights, "given": given.given,
        "shift": given.shift, "SCORING": kind.scoring, "NORMALIZER": kind.normalizer,
    }  # fmt: skip
    bias = None if kind.average else given.bias
    if kind.normalizer == SOFTMAX:
        softmax_online(arguments, graph, bias, out)
    else:
        _score_and_sum(arguments, graph, bias, out)
    if kind.average:
        out = out.mean(1, keepdim=True)
        out = (out if given.bias is None else out + given.bias).to(x.dtype)
    return Results(out, weights, logits, raw)


def aggregate(weights: Tensor, x: Tensor, graph: Structure) -> Tensor:
    """Weighted sums over incoming edges; see :func:`ltga.kernels.aggregate`."""
    out = x.new_empty(len(graph.ptr) - 1, x.size(1), x.size(2))
    kind = Kind(GIVEN, SOFTMAX, 0.0, 0.0, False)
    arguments = {
        **_given(_contiguous(Operands(x)), graph, kind), "weights": weights.contiguous(), "raw": None, "logits": None,
        "given": None, "shift": None, "SCORING": GIVEN, "NORMALIZER": KNOWN.value,
    }  # fmt: skip
    _score_and_sum(arguments, graph, None, out)
    return out


def dot(key: Tensor, query: Tensor, graph: Structure, scale: float) -> Tensor:
    """scale <query_i, key_j> of every edge and head, in the caller's order; see :func:`ltga.kernels.edge_dot`."""
    operands, kind = _contiguous(Operands(key, query)), Kind(DOT, SOFTMAX, 0.0, scale, False)
    logits = key.new_empty(len(graph.col), key.size(1), dtype=_wide(key))
    arguments = {
        **_given(operands, graph, kind), "raw": None, "logits": logits, "weights": None, "given": None, "shift": None,
        "SCORING": kind.scoring, "NORMALIZER": KNOWN.value, "SCORE": True, "SUM": False, "stats": None, "out": None,
        "bias": None,
    }  # fmt: skip
    _over_rows(forward_rows, graph.ptr, len(graph.ptr) - 1, long_rows(graph.ptr, len(graph.col)), arguments)
    return torch.empty_like(logits).index_copy_(0, graph.perm.long(), logits).to(key.dtype)


def dot_gradients(grad: Tensor, key: Tensor, query: Tensor, graph: Structure, scale: float) -> tuple[Tensor, Tensor]:
    """Gradients of (key, query): sums over outgoing and over incoming edges."""
    perm, wide = graph.perm.long(), scale * grad.to(_wide(key))
    incoming = wide.index_select(0, perm)
    outgoing = incoming.index_select(0, graph.tpos.long())
    back = Structure(graph.tptr, graph.tcol, graph.perm, graph.ptr, graph.col, graph.tpos)
    return aggregate(outgoing, query, back), aggregate(incoming, key, graph)


def dropped(x: Tensor, p: float, key: int, rows: Tensor | None) -> Tensor:
    """``x`` after dropout by the CPU's hash; see :func:`ltga.kernels.counter_dropout`."""
    x, (limit, factor), block = x.detach().contiguous(), threshold(p), 1024
    out = torch.empty_like(x)
    if x.numel():
        with torch.cuda.device_of(x):
            dropout_elements[(-(-x.numel() // block),)](
                x, rows, out, key, x.numel(), x.size(-1), LIMIT=limit, FACTOR=factor, BLOCK=block
            )
    return out


def _score_and_sum(arguments: Arguments, graph: Structure, bias: Tensor | None, out: Tensor) -> None:
    """Fill in logits, weights and ``out``: whole rows by one program each, long ones by one for each part."""
    nodes, edges, (_, heads, channels) = len(graph.ptr) - 1, len(graph.col), out.shape
    plan = long_rows(graph.ptr, edges)
    scored = arguments["NORMALIZER"] != KNOWN.value
    whole = {**arguments, **whole_rows(graph.ptr, nodes, plan), "bias": bias, "stats": None, "out": out}
    if scored:
        launch(forward_rows, (nodes, heads), whole | {"SCORE": True, "SUM": False})
    launch(forward_rows, (nodes, heads), whole | {"SCORE": False, "SUM": True})
    if plan.parts == 0:
        return
    parts = row_parts(graph.ptr, nodes, plan)
    acc = _wide(out)
    stats = out.new_empty(plan.parts, 3, heads, dtype=torch.float64)
    partial = out.new_empty(plan.parts, heads, channels, dtype=acc)
    split = {**arguments, **parts, "bias": None, "stats": stats, "out": partial}
    if scored:
        launch(forward_rows, (plan.parts, heads), split | {"SCORE": True, "SUM": False})
        _long_row_statistics(split, plan, heads)
    launch(forward_rows, (plan.parts, heads), split | {"SCORE": False, "SUM": True})
    _join(partial, bias, out, parts, plan)


def backward(
    grad_out: Tensor,
    grad_weights: Tensor | None,
    operands: Operands,
    graph: Structure,
    results: Results,
    kind: Kind,
    need: Needed,
) -> Operands:
    """Gradients by the operands' names; empty where they are not needed."""
    given, x = _contiguous(operands), operands.x
    grad_score = torch.empty_like(results.weights)
    found = _room_for_gradients(given, results.weights, kind, need)
    arguments = {
        **_given(given, graph, kind), "raw": results.raw, "logits": results.logits, "weights": results.weights,
        "grad_out": grad_out.contiguous(), "grad_score": grad_score, "grad_kept": torch.empty_like(grad_score),
        "SCORING": kind.scoring,
        "SHARE": 1.0 / x.size(1) if kind.average else 1.0, "AVERAGE": kind.average,
    }  # fmt: skip
    shared = _backward_targets(arguments, grad_weights, found, graph, kind, need)
    if kind.scoring != GIVEN and given.edge_attr is not None:
        shared = shared._replace(edge_weight=_backward_edges(arguments, found.edge_attr, graph))
    if need.x:
        _backward_sources(arguments, graph, found.x)
    return found._replace(
        **{name: value for name, value in shared._asdict().items() if value is not None},
        bias=grad_out.sum(0, dtype=_wide(x)),
    )


def _backward_targets(
    arguments: Arguments, grad_weights: Tensor | None, found: Operands, graph: Structure, kind: Kind, need: Needed
) -> Operands:
    """The sweep over destinations; returns gradients of what all rows share."""
    nodes, edges, heads = len(graph.ptr) - 1, len(graph.col), arguments["heads"]
    channels, plan, weights = arguments["channels"], long_rows(graph.ptr, edges), arguments["weights"]
    blocks = [min(count, PROGRAMS) for count in (nodes, plan.parts)]
    scored, scale = kind.scoring == GATV2, arguments["scale"]
    sums = Operands(
        None,
        att=weights.new_empty(sum(blocks), heads, channels) if scored else None,
        q=weights.new_empty(sum(blocks), heads) if need.q and not arguments["PER_EDGE"] else None,
        scale=weights.new_empty(sum(blocks), heads) if scale is not None and len(scale) == 1 else None,
    )
    per_edge = {
        "grad_weights": grad_weights,
        "grad_q": found.q if need.q and arguments["PER_EDGE"] else None,
        "grad_scale": found.scale if arguments["SCALE_PER_EDGE"] else None,
        "grad_shift": found.shift if need.shift else None,
        "grad_given": found.given if need.given else None,
        "NORMALIZER": kind.normalizer,
    }
    for part, (start, count) in enumerate(((0, blocks[0]), (blocks[0], blocks[1]))):
        if count == 0:
            continue
        own = {f"part_{name}": _after(getattr(sums, name), start) for name in ("att", "q", "scale")}
        each = arguments | per_edge | own
        items = plan.parts if part else nodes
        sums_of_rows = weights.new_empty(items, 4, heads, dtype=torch.float64 if kind.normalizer == ENTMAX else None)
        each |= {"items": items, "stats": None, "sums": sums_of_rows}
        each |= {**whole_rows(graph.ptr, nodes, plan), "grad_target": found.target}
        if part:
            partial = weights.new_empty(plan.parts, heads, channels)
            stats = weights.new_empty(plan.parts, 3, heads, dtype=torch.float64)
            each |= {**row_parts(graph.ptr, nodes, plan), "stats": stats, "grad_target": partial}
            if kind.normalizer == Q_SOFTMAX:
                _long_row_statistics(each | {"NORMALIZER": SOFTMAX}, plan, heads)
        launch(back.backward_targets, (count, heads), each | {"FIRST": True})
        launch(back.backward_targets, (count, heads), each | {"FIRST": False})
        if part and kind.scoring != GIVEN:
            _join(partial, None, found.target, row_parts(graph.ptr, nodes, plan), plan)
    q = None if sums.q is None else sums.q.sum(0, keepdim=True).to(arguments["q"].dtype)
    return Operands(
        None,
        att=None if sums.att is None else sums.att.sum(0),
        q=q,
        scale=None if sums.scale is None else sums.scale.sum(0, keepdim=True),
    )


def _backward_edges(arguments: Arguments, grad_edge_attr: Tensor, graph: Structure) -> Tensor:
    """Gradients of edge features, into ``grad_edge_attr`` if that is wanted, and of their projection."""
    nodes, edges, features = len(graph.ptr) - 1, len(graph.col), arguments["features"]
    plan, heads, channels = long_rows(graph.ptr, edges), arguments["heads"], arguments["channels"]
    blocks = [min(count, PROGRAMS // 16) for count in (nodes, plan.parts)]
    sums = arguments["weights"].new_empty(sum(blocks), features, heads, channels)
    for rows, items, count, start in (
        (whole_rows(graph.ptr, nodes, plan), nodes, blocks[0], 0),
        (row_parts(graph.ptr, nodes, plan), plan.parts, blocks[1], blocks[0]),
    ):
        each = arguments | rows | {"items": items, "part_weight": sums[start:], "grad_edge_attr": grad_edge_attr}
        launch(backward_edge_weight, (count, features), each, by_heads=False)
        if grad_edge_attr.numel():
            launch(backward_edge_features, (items, features), each, by_heads=False)
    return sums.sum(0)


def _backward_sources(arguments: Arguments, graph: Structure, grad_x: Tensor) -> None:
    """The sweep over sources."""
    plan, sources = long_rows(graph.tptr, len(graph.tcol)), len(graph.tptr) - 1
    heads, channels = arguments["heads"], arguments["channels"]
    each = arguments | {"col": graph.tcol, "position": graph.tpos}
    launch(back.backward_sources, (sources, heads), each | whole_rows(graph.tptr, sources, plan) | {"grad_x": grad_x})
    if plan.parts:
        parts = row_parts(graph.tptr, sources, plan)
        partial = arguments["weights"].new_empty(plan.parts, heads, channels)
        launch(back.backward_sources, (plan.parts, heads), each | parts | {"grad_x": partial})
        _join(partial, None, grad_x, parts, plan)


def _room_for_gradients(given: Operands, like: Tensor, kind: Kind, need: Needed) -> Operands:
    """Tensors to write gradients to, empty where they are not needed."""
    x, edges, heads = given.x, len(like), like.size(1)
    scored = kind.scoring != GIVEN
    with_edges = scored and given.edge_attr is not None

    def room(shape: Any, needed: bool, dtype: torch.dtype = like.dtype) -> Tensor:
        return like.new_empty(shape if needed else (0,) * len(shape), dtype=dtype)

    per_edge = (edges, heads)
    return Operands(
        x=room(x.shape, need.x, x.dtype),
        target=room(given.target.shape if scored else (0, 0, 0), scored, x.dtype),
        att=room((heads, x.size(2)), False) if kind.scoring != DOT else like.new_zeros(heads, x.size(2)),
        edge_attr=room(given.edge_attr.shape if with_edges else (0, 0), with_edges and need.edge_attr),
        edge_weight=room((0, 0, 0), False),
        given=room(per_edge, need.given),
        scale=room(per_edge, given.scale is not None and len(given.scale) != 1),
        shift=room(per_edge, need.shift),
        q=room(per_edge, need.q and len(given.q) != 1, given.q.dtype),
    )


def _given(given: Operands, graph: Structure, kind: Kind) -> Arguments:
    """What every kernel may want to know; it takes what it names."""
    x, scale, q = given.x, given.scale, given.q
    scored = kind.scoring != GIVEN
    heads, channels = x.size(1), x.size(2)
    limit, factor = threshold(kind.dropout)
    return {
        "col": graph.col, "perm": graph.perm, "x": x, "target": given.target if scored else None,
        "att": given.att if kind.scoring == GATV2 else None,
        "edge_attr": given.edge_attr if scored else None, "edge_weight": given.edge_weight if scored else None,
        "features": given.edge_attr.size(1) if scored and given.edge_attr is not None else 0,
        "scale": scale, "q": q, "q_order": None if kind.q_in_csr_order else graph.perm, "keep": given.keep,
        "heads": heads, "channels": channels, "SLOPE": kind.slope, "DOT_SCALE": kind.dot_scale,
        "SCALE_PER_EDGE": scale is not None and len(scale) != 1, "PER_EDGE": q is not None and len(q) != 1,
        "LIMIT": limit, "FACTOR": factor, "key": kind.key, **tiles(heads, channels, x.dtype)._asdict(),
    }  # fmt: skip


def _long_row_statistics(arguments: Arguments, plan: LongRows, heads: int) -> None:
    launch(long_row_statistics, (plan.parts, heads), arguments)


def _join(partial: Tensor, bias: Tensor | None, out: Tensor, parts: Arguments, plan: LongRows) -> None:
    heads, channels = partial.shape[1:]
    own = {"partial": partial, "bias": bias, "out": out, "heads": heads, "channels": channels}
    launch(join_parts, (plan.parts, heads), own | parts | tiles(heads, channels, partial.dtype)._asdict())


def _over_rows(kernel: Any, ptr: Tensor, rows: int, plan: LongRows, arguments: Arguments) -> None:
    """A kernel over whole rows, then over parts of long ones."""
    heads = arguments["heads"]
    launch(kernel, (rows, heads), arguments | whole_rows(ptr, rows, plan))
    launch(kernel, (plan.parts, heads), arguments | row_parts(ptr, rows, plan))


def _after(sums: Tensor | None, start: int) -> Tensor | None:
    return None if sums is None else sums[start:]


def _wide(x: Tensor) -> torch.dtype:
    """The type of sums."""
    return torch.promote_types(x.dtype, torch.float32)


def _contiguous(operands: Operands) -> Operands:
    return Operands(*(None if value is None else value.detach().contiguous() for value in operands))
