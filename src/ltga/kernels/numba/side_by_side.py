"""Inner loops over a node's edges with all heads side by side, for graphs whose nodes have few edges.

:mod:`.vectors` takes one head at a time, which lists its edges anew and ends a loop of some three rounds that no
processor can foresee. Here the sums of all heads stay in registers while a node's edges pass by once. The terms are
those of :mod:`.vectors`, added up one after the other.

Channels must be a multiple of ``LANES``. A head leaves out edges on which its factor is zero, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ltga.kernels.numba.vectors import TAIL, WORD, _Emitter, _flat

LANES = 16  # channels handled at once, all of one head


def _parts(emit: _Emitter, width: Any, channels: Any, head: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Cut ``width`` flat positions, the first of them of ``head``, into vectors: (where each begins, its head)."""
    builder, begin = emit.builder, WORD(0)
    for count in (4 if isinstance(emit.element, ir.FloatType) else 2, 1):
        size = count * LANES
        whole = builder.and_(builder.sub(width, begin), WORD(-size))
        end = builder.add(begin, whole)
        with cgutils.for_range_slice(builder, begin, end, WORD(size), WORD) as (position, _):
            columns = [builder.add(position, WORD(LANES * part)) for part in range(count)]
            yield columns, [builder.add(head, builder.udiv(column, channels)) for column in columns]
        begin = end


def _some(emit: _Emitter, *factors: Any) -> Any:
    """Lanes in which a factor is not zero."""
    found = None
    for factor in factors:
        here = emit.builder.fcmp_unordered("!=", factor, emit.zeros(LANES))
        found = here if found is None else emit.builder.or_(found, here)
    return found


def _kept(emit: _Emitter, place: Any, where: Any, value: Any) -> None:
    """A new value for a running sum in those lanes."""
    emit.builder.store(emit.builder.select(where, value, emit.builder.load(place)), place)


@intrinsic
def gather_heads(  # type: ignore[no-untyped-def]
    typingctx, total, at, base, base_at, table, stride, offset, rows, factors, head, heads, first, last, width, channels
):
    """total[at + c] = base[base_at + c] + sum of factors[k, h] * table[rows[k] * stride + offset + c].

    For k in first..last and c below ``width``, of which the first is of ``head``.
    """
    if not _flat(total, base, table, rows, factors):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        for columns, own in _parts(emit, emit.integer(13), emit.integer(14), emit.integer(9)):
            starts = [emit.load(emit.array(2), builder.add(emit.integer(3), c), LANES) for c in columns]
            running = [cgutils.alloca_once_value(builder, start) for start in starts]
            inside = [builder.add(emit.integer(6), c) for c in columns]
            with cgutils.for_range_slice(builder, emit.integer(11), emit.integer(12), WORD(1), WORD) as (k, _):
                row = builder.mul(emit.entry(7, k), emit.integer(5))
                edge = builder.mul(k, emit.integer(10))
                for c, h, place in zip(inside, own, running, strict=True):
                    factor = emit.spread(emit.entry(8, builder.add(edge, h)), LANES)
                    term = emit.load(emit.array(4), builder.add(row, c), LANES)
                    added = emit.multiply_add(factor, term, builder.load(place))
                    _kept(emit, place, _some(emit, factor), added)
            for c, place in zip(columns, running, strict=True):
                emit.store(builder.load(place), emit.array(0), builder.add(emit.integer(1), c), LANES)
        return context.get_dummy_value()

    return types.void(
        total, at, base, base_at, table, stride, offset, rows, factors, head, heads, first, last, width, channels
    ), codegen  # fmt: skip


@intrinsic
def gatv2_target_heads(  # type: ignore[no-untyped-def]
    typingctx, grad_target, at, grad_att, att_at, att, target, source, rows, factors, heads, first, last, channels,
    slope,
):  # fmt: skip
    """:func:`~.vectors.gatv2_target_gradient` of all heads, with factors[k, h] for the edges k in first..last."""
    if not _flat(grad_target, grad_att, att, target, source, rows, factors):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        heads, channels = emit.integer(9), emit.integer(12)
        width = builder.mul(heads, channels)
        for columns, own in _parts(emit, width, channels, WORD(0)):
            slopes = emit.spread(emit.scalar(13), LANES)
            here = [emit.load(emit.array(5), builder.add(emit.integer(1), c), LANES) for c in columns]
            before = [emit.load(emit.array(2), builder.add(emit.integer(3), c), LANES) for c in columns]
            passed = [cgutils.alloca_once_value(builder, emit.zeros(LANES)) for _ in columns]
            scored = [cgutils.alloca_once_value(builder, start) for start in before]
            with cgutils.for_range_slice(builder, emit.integer(10), emit.integer(11), WORD(1), WORD) as (k, _):
                row, edge = builder.mul(emit.entry(7, k), width), builder.mul(k, heads)
                for part, (c, h) in enumerate(zip(columns, own, strict=True)):
                    t = emit.add(emit.load(emit.array(6), builder.add(row, c), LANES), here[part])
                    full = emit.spread(emit.entry(8, builder.add(edge, h)), LANES)
                    active, some = builder.fcmp_ordered(">", t, emit.zeros(LANES)), _some(emit, full)
                    f = builder.select(active, full, builder.fmul(full, slopes))
                    _kept(emit, passed[part], some, emit.add(builder.load(passed[part]), f))
                    _kept(emit, scored[part], some, emit.multiply_add(f, t, builder.load(scored[part])))
            for part, c in enumerate(columns):
                gradient = builder.fmul(builder.load(passed[part]), emit.load(emit.array(4), c, LANES))
                emit.store(gradient, emit.array(0), builder.add(emit.integer(1), c), LANES)
                emit.store(builder.load(scored[part]), emit.array(2), builder.add(emit.integer(3), c), LANES)
        return context.get_dummy_value()

    return types.void(
        grad_target, at, grad_att, att_at, att, target, source, rows, factors, heads, first, last, channels, slope
    ), codegen


@intrinsic
def gatv2_source_heads(  # type: ignore[no-untyped-def]
    typingctx, grad_source, at, source, att, target, upstream, up_stride, up_less, rows, edges, weights, factors, heads,
    first, last, channels, slope,
):  # fmt: skip
    """:func:`~.vectors.gatv2_source_gradient` of all heads, for the edges k = edges[m] to rows[m], m in first..last.

    A head's upstream gradient begins ``up_less`` channels times its number before its own channels.
    """
    if not _flat(grad_source, source, att, target, upstream, rows, edges, weights, factors):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        heads, channels = emit.integer(12), emit.integer(15)
        width = builder.mul(heads, channels)
        for columns, own in _parts(emit, width, channels, WORD(0)):
            slopes = emit.spread(emit.scalar(16), LANES)
            here = [emit.load(emit.array(2), builder.add(emit.integer(1), c), LANES) for c in columns]
            passed = [cgutils.alloca_once_value(builder, emit.zeros(LANES)) for _ in columns]
            sent = [cgutils.alloca_once_value(builder, emit.zeros(LANES)) for _ in columns]
            above = [builder.sub(c, builder.mul(h, emit.integer(7))) for c, h in zip(columns, own, strict=True)]
            with cgutils.for_range_slice(builder, emit.integer(13), emit.integer(14), WORD(1), WORD) as (m, _):
                node, edge = emit.entry(8, m), builder.mul(emit.entry(9, m), heads)
                row, up = builder.mul(node, width), builder.mul(node, emit.integer(6))
                for part, (c, h) in enumerate(zip(columns, own, strict=True)):
                    t = emit.add(emit.load(emit.array(4), builder.add(row, c), LANES), here[part])
                    full = emit.spread(emit.entry(11, builder.add(edge, h)), LANES)
                    weight = emit.spread(emit.entry(10, builder.add(edge, h)), LANES)
                    active, some = builder.fcmp_ordered(">", t, emit.zeros(LANES)), _some(emit, full, weight)
                    f = builder.select(active, full, builder.fmul(full, slopes))
                    _kept(emit, passed[part], some, emit.add(builder.load(passed[part]), f))
                    gradient = emit.load(emit.array(5), builder.add(up, above[part]), LANES)
                    added = emit.multiply_add(weight, gradient, builder.load(sent[part]))
                    _kept(emit, sent[part], some, added)
            for part, c in enumerate(columns):
                att_here = emit.load(emit.array(3), c, LANES)
                total = emit.multiply_add(builder.load(passed[part]), att_here, builder.load(sent[part]))
                emit.store(total, emit.array(0), builder.add(emit.integer(1), c), LANES)
        return context.get_dummy_value()

    return types.void(
        grad_source, at, source, att, target, upstream, up_stride, up_less, rows, edges, weights, factors, heads,
        first, last, channels, slope,
    ), codegen  # fmt: skip


@intrinsic
def gatv2_edge_gradient(  # type: ignore[no-untyped-def]
    typingctx, through, through_at, grad_att, att_at, grad_target, at, source, source_at, target, target_at, att,
    gradient, slope, channels,
):  # fmt: skip
    """One head of one edge: with t = source + target and f = gradient (times slope where t <= 0),

    grad_att += f * t, through = f * att and grad_target += through. ``att`` and ``target`` are read at ``target_at``.
    """
    if not _flat(through, grad_att, grad_target, source, target, att):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        for width, c in emit.chunks(emit.integer(13), (LANES, TAIL)):
            own, to_att = builder.add(emit.integer(9), c), builder.add(emit.integer(3), c)
            to_target = builder.add(emit.integer(5), c)
            left = emit.load(emit.array(6), builder.add(emit.integer(7), c), width)
            t = emit.add(left, emit.load(emit.array(8), own, width))
            full = emit.spread(emit.scalar(11), width)
            active = builder.fcmp_ordered(">", t, emit.zeros(width))
            f = builder.select(active, full, builder.fmul(full, emit.spread(emit.scalar(12), width)))
            emit.store(emit.multiply_add(f, t, emit.load(emit.array(2), to_att, width)), emit.array(2), to_att, width)
            passed = builder.fmul(f, emit.load(emit.array(10), own, width))
            emit.store(passed, emit.array(0), builder.add(emit.integer(1), c), width)
            sent = builder.fadd(emit.load(emit.array(4), to_target, width), passed)
            emit.store(sent, emit.array(4), to_target, width)
        return context.get_dummy_value()

    return types.void(
        through, through_at, grad_att, att_at, grad_target, at, source, source_at, target, target_at, att, gradient,
        slope, channels,
    ), codegen  # fmt: skip
