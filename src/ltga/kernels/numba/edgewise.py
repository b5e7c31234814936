"""Loops over edges that know their row, four heads at a time: what the normalisers of :mod:`.normalise` do row by row.

A row of a small graph has some three edges, and a loop over so few costs more to begin and to end than it does. Here
edges follow one another whatever row they are in; a row's running values are put down after each of its edges, so that
the last one stays. The operations and their order are those of the loops over rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ltga.kernels.numba.vectors import RELAXED, WORD, _flat

GROUP = 4  # heads
_LAST = ("rows", "start", "first", "last", "heads")  # what every loop takes after its arrays


class _Edge:
    """An edge and four heads of it in the function being compiled: loads and stores by the names of arguments."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, names: Sequence[str]) -> None:
        self.builder, self._vector = builder, ir.VectorType(ir.DoubleType(), GROUP)
        self._given = {name: pair for name, *pair in zip(names, signature.args, arguments, strict=True)}
        self._context, self._arrays = context, {}
        for name, (kind, value) in self._given.items():
            if isinstance(kind, types.Array):
                self._arrays[name] = context.make_array(kind)(context, builder, value).data
        self.at: dict[str, Any] = {}  # position by what an array has entries for

    def integer(self, name: str) -> Any:
        kind, value = self._given[name]
        return self._context.cast(self.builder, value, kind, types.intp)

    def number(self, value: float) -> Any:
        return ir.Constant(self._vector, [value] * GROUP)

    def row_of(self, k: Any) -> Any:
        value = self.builder.load(self.builder.gep(self._arrays["rows"], [k]))
        return self.builder.sext(value, WORD) if value.type.width < WORD.width else value

    def in_all_lanes(self, flag: Any) -> Any:
        empty = ir.Constant(ir.VectorType(flag.type, GROUP), ir.Undefined)
        first = self.builder.insert_element(empty, flag, ir.IntType(32)(0))
        return self.builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), GROUP), [0] * GROUP))

    def load(self, name: str, of: str) -> Any:
        """Entries in double precision; ``of`` the graph's edges, the panel's edges, or its rows."""
        place, kind = self._place(name, of)
        value = self.builder.load(place, align=4 if kind == ir.FloatType() else 8)
        return value if kind == ir.DoubleType() else self.builder.fpext(value, self._vector)

    def store(self, name: str, of: str, value: Any) -> None:
        place, kind = self._place(name, of)
        value = value if kind == ir.DoubleType() else self.builder.fptrunc(value, ir.VectorType(kind, GROUP))
        self.builder.store(value, place, align=4 if kind == ir.FloatType() else 8)

    def rounded(self, name: str, value: Any) -> Any:
        """As it would come back from that array."""
        kind = self._context.get_value_type(self._given[name][0].dtype)
        if kind == ir.DoubleType():
            return value
        return self.builder.fpext(self.builder.fptrunc(value, ir.VectorType(kind, GROUP)), self._vector)

    def _place(self, name: str, of: str) -> tuple[Any, Any]:
        kind = self._context.get_value_type(self._given[name][0].dtype)
        address = self.builder.gep(self._arrays[name], [self.at[of]])
        return self.builder.bitcast(address, ir.VectorType(kind, GROUP).as_pointer()), kind


def _loop(*arrays: str, running: str = "", begin: float = 0.0) -> Callable[[Callable[..., Any]], Any]:
    """Make ``body(edge, builder, value)`` an intrinsic for edges first..last, the first of them in row ``start``.

    With an array ``running`` of rows, the body turns a row's value into the next; it begins with ``begin``.
    """
    names = (*arrays, *_LAST)

    def decorate(body: Callable[..., Any]) -> Any:
        def typed(typingctx: Any, *kinds: Any) -> Any:
            if not _flat(*kinds[: len(arrays) + 1]):
                return None

            def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                edge = _Edge(context, builder, signature, arguments, names)
                heads, first = edge.integer("heads"), edge.integer("first")
                with cgutils.for_range_slice(builder, WORD(0), heads, WORD(GROUP), WORD) as (head, _):
                    carried = cgutils.alloca_once_value(builder, edge.number(begin))
                    before = cgutils.alloca_once_value(builder, WORD(-1))
                    with cgutils.for_range_slice(builder, first, edge.integer("last"), WORD(1), WORD) as (k, _):
                        row = edge.row_of(k)
                        fresh = edge.in_all_lanes(builder.icmp_signed("!=", row, builder.load(before)))
                        value = builder.select(fresh, edge.number(begin), builder.load(carried))
                        builder.store(row, before)
                        for of, number in (("edges", k), ("panel", builder.sub(k, first))):
                            edge.at[of] = builder.add(builder.mul(number, heads), head)
                        row = builder.sub(row, edge.integer("start"))
                        edge.at["rows"] = builder.add(builder.mul(row, heads), head)
                        found = body(edge, builder, value)
                        if running:
                            builder.store(found, carried)
                            edge.store(running, "rows", found)
                return context.get_dummy_value()

            return types.void(*kinds), codegen

        # numba counts an intrinsic's arguments by its signature.
        scope: dict[str, Any] = {"typed": typed, "__name__": __name__}
        given, name = ", ".join(("typingctx", *names)), body.__name__
        exec(f"def {name}({given}):\n    return typed({given})", scope)
        scope[name].__doc__, scope[name].__qualname__ = body.__doc__, name
        return intrinsic(scope[name])

    return decorate


@_loop("tops", "logits", running="tops", begin=-math.inf)
def row_tops(edge: _Edge, builder: Any, top: Any) -> Any:
    """The largest logit of a row; NaN if there is one."""
    value = edge.load("logits", "edges")
    rises = builder.or_(builder.fcmp_ordered(">", value, top), builder.fcmp_unordered("uno", value, value))
    return builder.select(rises, value, top)


@_loop("gaps", "logits", "tops")
def row_gaps(edge: _Edge, builder: Any, _: Any) -> None:
    """Logits less their row's largest."""
    edge.store("gaps", "panel", builder.fsub(edge.load("logits", "edges"), edge.load("tops", "rows")))


@_loop("totals", "numbers", running="totals")
def row_totals(edge: _Edge, builder: Any, total: Any) -> Any:
    return builder.fadd(total, edge.load("numbers", "panel"))


@_loop("weights", "numbers", "factors")
def row_shares(edge: _Edge, builder: Any, _: Any) -> None:
    """Numbers, rounded as weights are, times their row's factor."""
    number = edge.rounded("weights", edge.load("numbers", "panel"))
    edge.store("weights", "edges", builder.fmul(number, edge.load("factors", "rows")))


@_loop("means", "weights", "grad", running="means")
def row_means(edge: _Edge, builder: Any, mean: Any) -> Any:
    """The sum of weight times gradient. Products of floats are exact here, so nothing depends on how it is added."""
    product = builder.fmul(edge.load("weights", "edges"), edge.load("grad", "edges"), flags=RELAXED)
    return builder.fadd(mean, product, flags=RELAXED)


@_loop("grad", "weights", "means")
def softmax_gradient(edge: _Edge, builder: Any, _: Any) -> None:
    """grad = weight * (grad - mean)."""
    edge.store("grad", "edges", _weighed_slack(edge, builder))


@_loop("ties", "gaps", "common", "weights", "logits", "grad", "tops", "means", running="ties")
def gaps_and_slack(edge: _Edge, builder: Any, ties: Any) -> Any:
    """Gaps (0 where the weight is), weight * (grad - mean), and how many attain the largest logit."""
    weight, logit, top = edge.load("weights", "edges"), edge.load("logits", "edges"), edge.load("tops", "rows")
    some = builder.fcmp_unordered("!=", weight, edge.number(0.0))
    edge.store("gaps", "panel", builder.select(some, builder.fsub(logit, top), edge.number(0.0)))
    edge.store("common", "panel", _weighed_slack(edge, builder))
    attained = builder.fcmp_ordered("==", logit, top)
    return builder.fadd(ties, builder.select(attained, edge.number(1.0), edge.number(0.0)))


@_loop("totals", "grad", "numbers", running="totals")
def totals_into_grad(edge: _Edge, builder: Any, total: Any) -> Any:
    """Numbers become the gradient and are added up."""
    number = edge.load("numbers", "panel")
    edge.store("grad", "edges", number)
    return builder.fadd(total, number)


@_loop("grad", "logits", "tops", "parts")
def less_part_of_top(edge: _Edge, builder: Any, _: Any) -> None:
    """grad -= the row's part where the logit is the largest."""
    attained = builder.fcmp_ordered("==", edge.load("logits", "edges"), edge.load("tops", "rows"))
    part = builder.select(attained, edge.load("parts", "rows"), edge.number(0.0))
    edge.store("grad", "edges", builder.fsub(edge.load("grad", "edges"), part))


def _weighed_slack(edge: _Edge, builder: Any) -> Any:
    slack = builder.fsub(edge.load("grad", "edges"), edge.load("means", "rows"))
    return builder.fmul(edge.load("weights", "edges"), slack)
