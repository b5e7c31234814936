"""Inner loops over channels, written as vector code for LLVM.

numba's own loops reload and store their running sums for every edge, because LLVM cannot prove that two
arrays do not overlap. Here the sums of a chunk of channels stay in registers while a whole list of
edges passes by, which is most of what makes the sweeps fast.

All arrays are C-contiguous and addressed by flat positions; callers guarantee that they lie inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

TAIL = 8  # the last channels are handled together too, with the lanes beyond them masked
WIDTHS = (32, TAIL)  # channels handled at once: 32 floats fill four of the sixteen AVX2 registers
WIDE, NARROW = (64, *WIDTHS), (16, TAIL)  # for loops with one, and with two sums and more to keep
CACHE_LINE = 64
RELAXED = ("contract", "reassoc", "nsz")
WORD = ir.IntType(64)


class _Emitter:
    """Addresses, loads and stores of chunks of one element type inside the function being compiled."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self._typed = list(zip(signature.args, arguments, strict=True))
        self._mask: Any = None  # lanes in use, while the tail is being handled
        self.element = context.get_value_type(signature.args[0].dtype)

    def array(self, number: int) -> Any:
        """The data pointer of an argument."""
        kind, value = self._typed[number]
        return self.context.make_array(kind)(self.context, self.builder, value).data

    def integer(self, number: int) -> Any:
        kind, value = self._typed[number]
        return self.context.cast(self.builder, value, kind, types.intp)

    def scalar(self, number: int) -> Any:
        kind, value = self._typed[number]
        return self.context.cast(self.builder, value, kind, self._typed[0][0].dtype)

    def entry(self, number: int, position: Any) -> Any:
        """An element of an argument; integers widened to 64 bits."""
        value = self.builder.load(self.builder.gep(self.array(number), [position]))
        if isinstance(value.type, ir.IntType) and value.type.width < WORD.width:
            return self.builder.sext(value, WORD)
        return value

    def vector(self, width: int) -> Any:
        return ir.VectorType(self.element, width)

    def zeros(self, width: int) -> Any:
        return ir.Constant(self.vector(width), [0.0] * width)

    def spread(self, value: Any, width: int) -> Any:
        """One number in every lane."""
        empty = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
        first = self.builder.insert_element(empty, value, ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
        return self.builder.shuffle_vector(first, empty, lanes)

    def _address(self, base: Any, position: Any, width: int) -> Any:
        return self.builder.bitcast(self.builder.gep(base, [position]), self.vector(width).as_pointer())

    def load(self, base: Any, position: Any, width: int) -> Any:
        address = self._address(base, position, width)
        if self._mask is None:
            return self.builder.load(address, align=self._bytes())
        arguments = [address, ir.IntType(32)(self._bytes()), self._mask, self.zeros(width)]
        return self._masked("load", self.vector(width), arguments)

    def store(self, value: Any, base: Any, position: Any, width: int) -> None:
        address = self._address(base, position, width)
        if self._mask is None:
            self.builder.store(value, address, align=self._bytes())
        else:
            arguments = [value, address, ir.IntType(32)(self._bytes()), self._mask]
            self._masked("store", ir.VoidType(), arguments)

    def _masked(self, what: str, result: Any, arguments: list[Any]) -> Any:
        """LLVM's load or store that does not touch memory in masked lanes."""
        element = "f32" if isinstance(self.element, ir.FloatType) else "f64"
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        name = f"llvm.masked.{what}.v{TAIL}{element}.p0"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def _bytes(self) -> int:
        return 4 if isinstance(self.element, ir.FloatType) else 8

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=RELAXED)

    def multiply_add(self, a: Any, b: Any, c: Any, flags: tuple[str, ...] = RELAXED) -> Any:
        return self.builder.fadd(self.builder.fmul(a, b, flags=flags), c, flags=flags)

    def chunks(self, channels: Any, widths: tuple[int, ...] = WIDTHS) -> Iterator[tuple[int, Any]]:
        """Cut ``channels`` into chunks, widest first; what the caller emits runs for every chunk."""
        begin = WORD(0)
        for width in widths:
            whole = self.builder.and_(self.builder.sub(channels, begin), WORD(-width))
            end = self.builder.add(begin, whole)
            with cgutils.for_range_slice(self.builder, begin, end, WORD(width), WORD) as (position, _):
                yield width, position
            begin = end
        with self.builder.if_then(self.builder.icmp_signed("<", begin, channels)):
            lane = ir.IntType(32)
            left = self.builder.trunc(self.builder.sub(channels, begin), lane)
            numbers = ir.Constant(ir.VectorType(lane, TAIL), list(range(TAIL)))
            self._mask = self.builder.icmp_signed("<", numbers, self.spread(left, TAIL))
            yield TAIL, begin
            self._mask = None

    def halved(self, value: Any, width: int, to: int) -> Any:
        """Add the halves of a vector together until it has ``to`` lanes."""
        while width > to:
            width //= 2
            low, high = ([*range(start, start + width)] for start in (0, width))
            lanes = ir.VectorType(ir.IntType(32), width)
            value = self.add(
                self.builder.shuffle_vector(value, value, ir.Constant(lanes, low)),
                self.builder.shuffle_vector(value, value, ir.Constant(lanes, high)),
            )
        return value

    def reduced(self, channels: Any, term: Any) -> Any:
        """The sum over channels of ``term(width, position, running)``, which adds to its running vector."""
        running = {width: cgutils.alloca_once_value(self.builder, self.zeros(width)) for width in WIDTHS}
        for width, position in self.chunks(channels):
            place = running[width]
            self.builder.store(term(width, position, self.builder.load(place)), place)
        total = self.zeros(TAIL)
        for width, place in running.items():
            total = self.add(total, self.halved(self.builder.load(place), width, TAIL))
        return self.builder.extract_element(self.halved(total, TAIL, 1), ir.IntType(32)(0))


def _flat(*arrays: Any) -> bool:
    return all(isinstance(array, types.Array) and array.layout == "C" for array in arrays)


@intrinsic
def prefetch(typingctx, array, position, channels):  # type: ignore[no-untyped-def]
    """Ask for array[position .. position + channels] to be brought into cache."""
    if not _flat(array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
        hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        step = CACHE_LINE // emit._bytes()
        flags = [ir.IntType(32)(value) for value in (0, 2, 1)]  # to read, into the second cache, data
        with cgutils.for_range_slice(builder, WORD(0), emit.integer(2), WORD(step), WORD) as (at, _):
            address = builder.gep(emit.array(0), [builder.add(emit.integer(1), at)])
            builder.call(hint, [builder.bitcast(address, byte), *flags])
        return context.get_dummy_value()

    return types.void(array, position, channels), codegen


@intrinsic
def dot(typingctx, a, a_at, b, b_at, channels):  # type: ignore[no-untyped-def]
    """Sum over c of a[a_at + c] * b[b_at + c]."""
    if not _flat(a, b):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)

        def term(width: int, c: Any, running: Any) -> Any:
            left = emit.load(emit.array(0), builder.add(emit.integer(1), c), width)
            right = emit.load(emit.array(2), builder.add(emit.integer(3), c), width)
            return emit.multiply_add(left, right, running)

        return emit.reduced(emit.integer(4), term)

    return a.dtype(a, a_at, b, b_at, channels), codegen


@intrinsic
def gatv2_logit(typingctx, source, source_at, target, target_at, att, att_at, channels, slope):  # type: ignore[no-untyped-def]
    """Sum over c of att[c] * leaky_relu(source[c] + target[c])."""
    if not _flat(source, target, att):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)

        def term(width: int, c: Any, running: Any) -> Any:
            left = emit.load(emit.array(0), builder.add(emit.integer(1), c), width)
            right = emit.load(emit.array(2), builder.add(emit.integer(3), c), width)
            factor = emit.load(emit.array(4), builder.add(emit.integer(5), c), width)
            t = emit.add(left, right)
            bent = builder.fmul(t, emit.spread(emit.scalar(7), width))
            active = builder.fcmp_ordered(">", t, emit.zeros(width))
            return emit.multiply_add(factor, builder.select(active, t, bent), running)

        return emit.reduced(emit.integer(6), term)

    return source.dtype(source, source_at, target, target_at, att, att_at, channels, slope), codegen


def _gathering(name: str, flags: tuple[str, ...]) -> Any:
    def gather(  # type: ignore[no-untyped-def]
        typingctx, total, at, base, base_at, table, stride, offset, rows, factors, first, last, channels
    ):
        """total[at + c] = base[base_at + c] + sum of factors[m] * table[rows[m] * stride + offset + c], first..last."""
        if not _flat(total, base, table, rows, factors):
            return None

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emit = _Emitter(context, builder, signature, arguments)
            for width, c in emit.chunks(emit.integer(11), WIDE):
                place, column = builder.add(emit.integer(1), c), builder.add(emit.integer(6), c)
                start = emit.load(emit.array(2), builder.add(emit.integer(3), c), width)
                running = cgutils.alloca_once_value(builder, start)
                with cgutils.for_range_slice(builder, emit.integer(9), emit.integer(10), WORD(1), WORD) as (m, _):
                    row = builder.add(builder.mul(emit.entry(7, m), emit.integer(5)), column)
                    factor = emit.spread(emit.entry(8, m), width)
                    term = emit.load(emit.array(4), row, width)
                    builder.store(emit.multiply_add(factor, term, builder.load(running), flags), running)
                emit.store(builder.load(running), emit.array(0), place, width)
            return context.get_dummy_value()

        return types.void(
            total, at, base, base_at, table, stride, offset, rows, factors, first, last, channels
        ), codegen  # fmt: skip

    gather.__name__ = gather.__qualname__ = name
    return intrinsic(gather)


gather_sum = _gathering("gather_sum", RELAXED)
# Every product rounded before it is added, as when torch makes messages and then adds them up: the same bits.
gather_sum_rounded = _gathering("gather_sum_rounded", ())


@intrinsic
def scatter_add(typingctx, table, stride, rows, factors, first, last, source, at, channels):  # type: ignore[no-untyped-def]
    """table[rows[m] * stride + c] += factors[m] * source[at + c] for m in first..last."""
    if not _flat(table, rows, factors, source):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        for width, c in emit.chunks(emit.integer(8), WIDE):
            values = emit.load(emit.array(6), builder.add(emit.integer(7), c), width)
            with cgutils.for_range_slice(builder, emit.integer(4), emit.integer(5), WORD(1), WORD) as (m, _):
                row = builder.add(builder.mul(emit.entry(2, m), emit.integer(1)), c)
                factor = emit.spread(emit.entry(3, m), width)
                value = emit.multiply_add(factor, values, emit.load(emit.array(0), row, width))
                emit.store(value, emit.array(0), row, width)
        return context.get_dummy_value()

    return types.void(table, stride, rows, factors, first, last, source, at, channels), codegen


@intrinsic
def gatv2_target_gradient(  # type: ignore[no-untyped-def]
    typingctx,
    grad_target,
    at,
    grad_att,
    att_at,
    att,
    target,
    source,
    stride,
    offset,
    rows,
    factors,
    count,
    channels,
    slope,
):
    """With t = source[rows[m]] + target and f = factors[m] (times slope where t <= 0), sums over the list:

    grad_target[at] = att * sum of f, grad_att[att_at] += sum of f * t. ``target`` is read at ``at``, ``att``
    at ``offset``, ``source`` at rows[m] * stride + offset.
    """
    if not _flat(grad_target, grad_att, att, target, source, rows, factors):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        for width, c in emit.chunks(emit.integer(12), NARROW):
            place, column = builder.add(emit.integer(1), c), builder.add(emit.integer(8), c)
            here = builder.add(emit.integer(3), c)
            own = emit.load(emit.array(5), place, width)
            slopes = emit.spread(emit.scalar(13), width)
            passed = cgutils.alloca_once_value(builder, emit.zeros(width))
            scored = cgutils.alloca_once_value(builder, emit.load(emit.array(2), here, width))
            with cgutils.for_range_slice(builder, WORD(0), emit.integer(11), WORD(1), WORD) as (m, _):
                row = builder.add(builder.mul(emit.entry(9, m), emit.integer(7)), column)
                t = emit.add(emit.load(emit.array(6), row, width), own)
                full = emit.spread(emit.entry(10, m), width)
                active = builder.fcmp_ordered(">", t, emit.zeros(width))
                f = builder.select(active, full, builder.fmul(full, slopes))
                builder.store(emit.add(builder.load(passed), f), passed)
                builder.store(emit.multiply_add(f, t, builder.load(scored)), scored)
            att_here = emit.load(emit.array(4), column, width)
            emit.store(builder.fmul(builder.load(passed), att_here), emit.array(0), place, width)
            emit.store(builder.load(scored), emit.array(2), here, width)
        return context.get_dummy_value()

    return types.void(
        grad_target, at, grad_att, att_at, att, target, source, stride, offset, rows, factors, count, channels, slope
    ), codegen


@intrinsic
def gatv2_source_gradient(  # type: ignore[no-untyped-def]
    typingctx, grad_source, at, source, att, target, stride, offset, upstream, up_stride, up_offset,
    rows, weights, factors, count, channels, slope,
):  # fmt: skip
    """grad_source[at] = sum of weights[m] * upstream[rows[m]] + att * sum of f, with f = factors[m] (times
    slope where source[at] + target[rows[m]] <= 0). ``att`` is read at ``offset``.
    """
    if not _flat(grad_source, source, att, target, upstream, rows, weights, factors):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emit = _Emitter(context, builder, signature, arguments)
        for width, c in emit.chunks(emit.integer(14), NARROW):
            place = builder.add(emit.integer(1), c)
            column, up_column = builder.add(emit.integer(6), c), builder.add(emit.integer(9), c)
            own = emit.load(emit.array(2), place, width)
            slopes = emit.spread(emit.scalar(15), width)
            passed = cgutils.alloca_once_value(builder, emit.zeros(width))
            sent = cgutils.alloca_once_value(builder, emit.zeros(width))
            with cgutils.for_range_slice(builder, WORD(0), emit.integer(13), WORD(1), WORD) as (m, _):
                node = emit.entry(10, m)
                row = builder.add(builder.mul(node, emit.integer(5)), column)
                t = emit.add(emit.load(emit.array(4), row, width), own)
                full = emit.spread(emit.entry(12, m), width)
                active = builder.fcmp_ordered(">", t, emit.zeros(width))
                f = builder.select(active, full, builder.fmul(full, slopes))
                builder.store(emit.add(builder.load(passed), f), passed)
                row = builder.add(builder.mul(node, emit.integer(8)), up_column)
                weight = emit.spread(emit.entry(11, m), width)
                gradient = emit.load(emit.array(7), row, width)
                builder.store(emit.multiply_add(weight, gradient, builder.load(sent)), sent)
            att_here = emit.load(emit.array(3), column, width)
            total = emit.multiply_add(builder.load(passed), att_here, builder.load(sent))
            emit.store(total, emit.array(0), place, width)
        return context.get_dummy_value()

    return types.void(
        grad_source, at, source, att, target, stride, offset, upstream, up_stride, up_offset,
        rows, weights, factors, count, channels, slope,
    ), codegen  # fmt: skip
