"""
Convolutions and matrix products in plain loops.

Full-precision floats and integers accumulate in a row of the output buffer, so that the inner loop
runs along it at unit stride; half precision accumulates one element at a time in f32. Factors that
are narrower than the accumulator are widened, and zero points subtracted, where they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.vector import (
    DotHalvesOp,
    DotPairsOp,
    DotQuadsOp,
    DotSmallQuadsOp,
    WidenPairsOp,
)
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.linear import (
    COUNTED_ROWS,
    ContractionOp,
    ConvOp,
    ConvTransposeOp,
    MatmulOp,
)
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, is_integer
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor
from lowerdeck.lowering.nests.taps import position_range, window_range


def accumulates_in_place(element: object) -> bool:
    """False for half precision: rounding every partial sum would lose digits."""
    return element not in (f16, bf16)


def _add_product(
    k: KernelLowering, accumulator: SSAValue, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    b = k.builder
    product = scalars.mul(b, scalars.widen(b, lhs), scalars.widen(b, rhs))
    return scalars.add(b, accumulator, product)


def add_product(
    k: KernelLowering, op: ContractionOp, lhs: SSAValue, rhs: SSAValue, total: SSAValue
) -> SSAValue:
    """The total with the product of two factors as `factor_element` gives them."""
    if isinstance(op, MatmulOp) and op.packing is not None:
        match op.packing.data:
            case Packing.PAIRS:
                return k.builder.add(DotPairsOp(lhs, rhs, total))
            case Packing.UNSIGNED_LEFT:
                return k.builder.add(DotQuadsOp(lhs, rhs, total))
            case Packing.HALVES:
                return k.builder.add(DotHalvesOp(lhs, rhs, total))
            case Packing.UNSIGNED_RIGHT:
                return k.builder.add(DotQuadsOp(rhs, lhs, total))
            case Packing.SPLIT_LEFT:
                return k.builder.add(DotSmallQuadsOp(rhs, lhs, total))
    return scalars.multiply_add(k.builder, lhs, rhs, total)


def added_to(op: ContractionOp) -> tuple[AddOp, SSAValue] | None:
    """
    The sum of integers with what is added to them, and that, where nothing else reads the sums:
    they may begin with it, for the order of integers does not matter.
    """
    result = op.results[0]
    if not is_integer(element_type(result)) or not result.has_one_use():
        return None
    (use,) = result.uses
    total = use.operation
    if not isinstance(total, AddOp) or dims_of(total.result) != dims_of(result):
        return None
    return total, total.operands[1 - use.index]


def add_rests(
    k: KernelLowering,
    op: MatmulOp,
    total: SSAValue,
    left: Index,
    right: Callable[[Expr], SSAValue],
    height: int = 1,
) -> SSAValue:
    """
    The total with what stands behind a row of a split lhs: `right` gives elements by row. So many
    rows, from a multiple of it on, are a tile, and have as many elements.
    """
    if not op.is_split or not op.rests:
        return total
    assert height <= COUNTED_ROWS
    depth, b = op.depth, k.builder
    first = [*left[:-1], left[-1] // height * height]
    number = scalars.cast(b, k.element(op.lhs, [*first, depth]), i32, i64)

    def add_one(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        place, word = (k.element(op.lhs, [*left, depth + i * 2 + n]) for n in (1, 2))
        row = b.from_integer(scalars.cast(b, place, i32, i64))
        return [add_product(k, op, word, right(row), values[0])]

    return b.carry(b.from_integer(number), [total], add_one)[0]


def factor_element(k: KernelLowering, op: ContractionOp, number: int, at: Index) -> SSAValue:
    """A factor's element as multiplied: in the accumulation type, without its zero point."""
    value, to = op.factors[number], element_type(op.results[0])
    result = k.element(value, at)
    if element_type(value) == to and not op.zero_points:
        return result
    if isinstance(op, MatmulOp) and op.packing is not None:
        if op.packing.data is Packing.HALVES:
            return result
        return k.builder.add(WidenPairsOp(result))
    result = scalars.cast(k.builder, result, element_type(value), to)
    if not op.zero_points or _is_zero(zero := op.zero_points[number]):
        return result
    element = k.operand(zero, at, dims_of(value))
    return scalars.sub(k.builder, result, scalars.cast(k.builder, element, element_type(zero), to))


def _is_zero(value: SSAValue) -> bool:
    """True for a literal zero: a constant of one element is one in a kernel."""
    return isinstance(value.owner, ConstantOp) and not value.owner.array.any()


def _divisor(channels: Expr) -> Expr:
    """Channels of a group; if there are none, no element is ever computed."""
    return Expr.const(1) if channels == 0 else channels


def _bias(k: KernelLowering, op: ConvOp | ConvTransposeOp, channel: Expr) -> SSAValue:
    if op.bias is None:
        return scalars.constant(k.builder, 0, element_type(op.result))
    return scalars.widen(k.builder, k.element(op.bias, [channel]))


def _first_channel(op: ConvOp, channel: Expr) -> Expr:
    """The first input channel of the group that an output channel belongs to."""
    channels, depth = dims_of(op.weight)[:2]
    if op.groups.data == 1:
        return Expr.const(0)
    return channel // _divisor(channels // op.groups.data) * depth


@anchor(ConvOp, accumulating=True)
def lower_conv(k: KernelLowering, op: ConvOp) -> None:
    """
    One row of outputs at a time; the bias starts the sum. An epilogue that ends in another type
    takes each sum from a register.
    """
    own = element_type(op.result)
    if not accumulates_in_place(own) or element_type(k.roots[0]) != own:
        _conv_by_element(k, op)
        return
    b, out = k.builder, k.outputs[0]
    dims = dims_of(op.result)
    row = dims[-1]
    with b.nest(dims[:-1], parallel=True) as at:
        bias = _bias(k, op, at[1])
        with b.loop(row) as x:
            b.store(bias, out, [*at, x])
        _conv_row(k, op, at)
        if k.has_epilogue(op):
            with b.loop(row) as x:
                k.finish_in_place(op, [*at, x])


def _conv_row(k: KernelLowering, op: ConvOp, at: Index) -> None:
    """Add to a row of outputs all products with its windows."""
    b, out = k.builder, k.outputs[0]
    x, w, size = dims_of(op.input), dims_of(op.weight), dims_of(op.result)[-1]
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin, end = op.pads_begin.data, op.pads_end.data
    first = _first_channel(op, at[1])
    bounds = [(Expr.const(0), w[1])]
    for d, position in enumerate(at[2:]):
        bounds.append(
            window_range(position, w[d + 2], x[d + 2], strides[d], dilations[d], begin[d], end[d])
        )
    bounds.append((Expr.const(0), w[-1]))

    def add_products(indices: Sequence[Expr], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        channel, *taps = indices
        weight = factor_element(k, op, 1, [at[1], *indices])
        rows = [
            position * stride + tap * dilation - pad
            for position, tap, stride, dilation, pad in zip(
                at[2:], taps, strides, dilations, begin, strict=False
            )
        ]
        offset = taps[-1] * dilations[-1]
        lower, upper = position_range(offset, size, x[-1], strides[-1], begin[-1], end[-1])
        with b.loop(upper, lower) as o:
            column = o * strides[-1] + offset - begin[-1]
            value = factor_element(k, op, 0, [at[0], first + channel, *rows, column])
            b.store(_add_product(k, b.load(out, [*at, o]), value, weight), out, [*at, o])
        return []

    b.carry_nest(bounds, [], add_products)


def _conv_by_element(k: KernelLowering, op: ConvOp) -> None:
    x, w = dims_of(op.input), dims_of(op.weight)
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin, end = op.pads_begin.data, op.pads_end.data
    with k.builder.nest(dims_of(op.result), parallel=True) as at:
        first = _first_channel(op, at[1])
        bounds = [(Expr.const(0), w[1])]
        for d, position in enumerate(at[2:]):
            bounds.append(
                window_range(
                    position, w[d + 2], x[d + 2], strides[d], dilations[d], begin[d], end[d]
                )
            )

        def add_product(
            indices: Sequence[Expr], values: Sequence[SSAValue], at: Index = at, first: Expr = first
        ) -> Sequence[SSAValue]:
            channel, *taps = indices
            where = [
                position * strides[d] + tap * dilations[d] - begin[d]
                for d, (position, tap) in enumerate(zip(at[2:], taps, strict=True))
            ]
            value = factor_element(k, op, 0, [at[0], first + channel, *where])
            return [_add_product(k, values[0], value, factor_element(k, op, 1, [at[1], *indices]))]

        total = k.builder.carry_nest(bounds, [_bias(k, op, at[1])], add_product)[0]
        k.finish(op, at, scalars.narrow(k.builder, total, element_type(op.result)))


@anchor(ConvTransposeOp, accumulating=True)
def lower_conv_transpose(k: KernelLowering, op: ConvTransposeOp) -> None:
    """Start a plane of outputs with the bias, then add every input times the kernel to it."""
    if not accumulates_in_place(element_type(op.result)):
        raise LoweringError(op, "half precision is not lowered; cast to f32 before it")
    b, out = k.builder, k.outputs[0]
    dims = dims_of(op.result)
    with b.nest(dims[:2], parallel=True) as at:
        bias = _bias(k, op, at[1])
        with b.nest(dims[2:]) as where:
            b.store(bias, out, [*at, *where])
        _scatter_products(k, op, at)
        if k.has_epilogue(op):
            with b.nest(dims[2:]) as where:
                k.finish_in_place(op, [*at, *where])


def _scatter_products(k: KernelLowering, op: ConvTransposeOp, at: Index) -> None:
    b, out = k.builder, k.outputs[0]
    x, w, dims = dims_of(op.input), dims_of(op.weight), dims_of(op.result)
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin = op.pads_begin.data
    channels = x[1] // op.groups.data
    first, local = at[1] // _divisor(w[1]) * channels, at[1] % _divisor(w[1])

    def add_products(indices: Sequence[Expr], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        channel, *taps = indices
        weight = factor_element(k, op, 1, [first + channel, local, *taps])
        offsets = [tap * dilation for tap, dilation in zip(taps, dilations, strict=True)]
        bounds: list[tuple[Expr, Expr]] = []
        for d, offset in enumerate(offsets):
            # The end always needs its test: output_padding and pads move it independently.
            lower, upper = position_range(
                offset, x[d + 2], dims[d + 2], strides[d], begin[d], Expr.const(1)
            )
            bounds.append((lower, upper))

        def add_one(sources: Sequence[Expr], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            where = [
                source * strides[d] + offsets[d] - begin[d] for d, source in enumerate(sources)
            ]
            value = factor_element(k, op, 0, [at[0], first + channel, *sources])
            target = [*at, *where]
            b.store(_add_product(k, b.load(out, target), value, weight), out, target)
            return []

        b.carry_nest(bounds, [], add_one)
        return []

    b.carry_nest([(Expr.const(0), size) for size in (channels, *w[2:])], [], add_products)


@anchor(MatmulOp, accumulating=True)
def lower_matmul(k: KernelLowering, op: MatmulOp) -> None:
    """One row of the result at a time: rows of the right matrix, weighted by the left row."""
    dims = dims_of(op.result)
    batch, inner = dims[:-2], op.depth
    own = element_type(op.result)
    if op.is_split or not accumulates_in_place(own) or element_type(k.roots[0]) != own:
        _matmul_by_element(k, op)
        return
    b, out = k.builder, k.outputs[0]
    zero = scalars.constant(b, 0, element_type(op.result))
    with b.nest(dims[:-1], parallel=True) as at:
        row = at[-1]
        left = broadcast_index(at[:-1], dims_of(op.lhs)[:-2], batch)
        right = broadcast_index(at[:-1], dims_of(op.rhs)[:-2], batch)
        with b.loop(dims[-1]) as n:
            b.store(zero, out, [*at, n])
        with b.loop(inner) as i:
            scale = factor_element(k, op, 0, [*left, row, i])
            with b.loop(dims[-1]) as n:
                value = factor_element(k, op, 1, [*right, i, n])
                before = b.load(out, [*at, n])
                b.store(_add_to(k, op, before, scale, value), out, [*at, n])
        if k.has_epilogue(op):
            with b.loop(dims[-1]) as n:
                k.finish_in_place(op, [*at, n])


def _add_to(
    k: KernelLowering, op: MatmulOp, total: SSAValue, lhs: SSAValue, rhs: SSAValue
) -> SSAValue:
    if op.packing is not None:
        return add_product(k, op, lhs, rhs, total)
    return _add_product(k, total, lhs, rhs)


def _matmul_by_element(k: KernelLowering, op: MatmulOp) -> None:
    dims = dims_of(op.result)
    with k.builder.nest(dims, parallel=True) as at:
        left = [*broadcast_index(at[:-2], dims_of(op.lhs)[:-2], dims[:-2]), at[-2]]
        right = broadcast_index(at[:-2], dims_of(op.rhs)[:-2], dims[:-2])
        total = _sum_at(k, op, left, [*right], at[-1])
        k.finish(op, at, scalars.narrow(k.builder, total, element_type(op.result)))


def _sum_at(k: KernelLowering, op: MatmulOp, left: Index, right: Index, column: Expr) -> SSAValue:
    """The sum for a row of lhs and a column of a matrix of rhs."""

    def value(i: Expr) -> SSAValue:
        return factor_element(k, op, 1, [*right, i, column])

    def add_one(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [_add_to(k, op, values[0], factor_element(k, op, 0, [*left, i]), value(i))]

    zero = scalars.constant(k.builder, 0, element_type(op.result))
    return add_rests(k, op, k.builder.carry(op.depth, [zero], add_one)[0], left, value)
