"""Reductions over the taps of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder

UNROLLED_TAPS = 25
"""The maximum number of unrolled taps."""

Bounds = tuple[Expr, Expr]


def add_taps(
    b: KernelBuilder,
    bounds: Sequence[Bounds],
    start: SSAValue,
    add: Callable[[Sequence[Expr], SSAValue], SSAValue],
    most: int,
) -> SSAValue:
    """
    Apply `add` to a value, tap by tap, for all taps within bounds from the first to the last.

    The inner dimensions are unrolled as long as their bounds are known and there are no more than
    `most` unrolled taps.
    """
    loops = unrolled_from(bounds, most)

    def add_unrolled(outer: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value = values[0]
        for inner in indices(bounds[loops:]):
            value = add([*outer, *inner], value)
        return [value]

    return b.carry_nest(bounds[:loops], [start], add_unrolled)[0]


def unrolled_from(bounds: Sequence[Bounds], most: int) -> int:
    """The first dimension of a window from which on it is straight-line code."""
    sizes = [(upper - lower).value for lower, upper in bounds]
    first = len(sizes)
    total = 1
    while first:
        size = sizes[first - 1]
        if size is None or bounds[first - 1][0].value is None or total * size > most:
            break
        total *= size
        first -= 1
    return first


def indices(bounds: Sequence[Bounds]) -> list[list[Expr]]:
    """All taps within bounds that are known."""
    if not bounds:
        return [[]]
    (lower, upper), rest = bounds[0], indices(bounds[1:])
    assert lower.value is not None
    assert upper.value is not None
    return [[Expr.const(k), *inner] for k in range(lower.value, upper.value) for inner in rest]


def first_of(bounds: Sequence[Bounds]) -> list[Bounds]:
    """The bounds of the first tap alone; of none if there is none."""
    return [(lower, minimum(lower + 1, upper)) for lower, upper in bounds]


def window_range(
    position: Expr, kernel: Expr, dim: Expr, stride: int, dilation: int, begin: Expr, end: Expr
) -> tuple[Expr, Expr]:
    """The kernel offsets k with 0 <= position * stride + k * dilation - begin < dim."""
    origin = position * stride - begin
    lower = Expr.const(0) if begin == 0 else maximum((-origin).ceildiv(dilation), 0)
    upper = kernel if end == 0 else minimum((dim - origin).ceildiv(dilation), kernel)
    return lower, upper


def position_range(
    offset: Expr, size: Expr, dim: Expr, stride: int, begin: Expr, end: Expr
) -> tuple[Expr, Expr]:
    """The window positions o < size with 0 <= o * stride + offset - begin < dim."""
    origin = offset - begin
    lower = Expr.const(0) if begin == 0 else maximum((-origin).ceildiv(stride), 0)
    upper = size if end == 0 else minimum((dim - origin).ceildiv(stride), size)
    return lower, upper


def least(b: KernelBuilder, op: PoolOp) -> SSAValue:
    """What the maximum of a window begins with."""
    if op.from_lowest.value.data:
        return b.floating(float(np.finfo(np.float32).min), f32)
    return scalars.lowest(b, element_type(op.input))


def larger_one(b: KernelBuilder, op: PoolOp, total: SSAValue, value: SSAValue) -> SSAValue:
    """The larger one of two values in a window; with NaN as the pool has it."""
    element = element_type(op.input)
    if op.keeps_nan.value.data:
        return scalars.maximum(b, value, total, element)  # whether `value` is NaN need not wait
    return scalars.larger(b, total, value, element)


def window_count(op: PoolOp, at: Sequence[Expr], bounds: Sequence[Bounds]) -> Expr:
    """The divisor of an average."""
    return product(counted(op, d, at[d + 2], part) for d, part in enumerate(bounds))


def counted(op: PoolOp, axis: int, position: Expr, bounds: Bounds) -> Expr:
    """
    What the divisor of an average counts along a spatial axis; `bounds` are those of the taps
    within the input.
    """
    kernel, dilation = op.kernel.data[axis], ints(op.dilations)[axis]
    begin, end, overhang = (pads.data[axis] for pads in (op.pads_begin, op.pads_end, op.overhang))
    if not op.count_pads.value.data:
        lower, upper = bounds
        count, outside = upper - lower, (begin, end)
    elif overhang == 0:
        return kernel
    else:
        padded = dims_of(op.input)[axis + 2] + end - overhang
        room = padded - (position * ints(op.strides)[axis] - begin)
        count, outside = minimum(kernel, room.ceildiv(dilation)), (overhang,)
    # Windows that lie farther outside would count less than nothing.
    is_near = all(_is_at_most(pad, kernel * dilation) for pad in outside)
    return count if is_near else maximum(count, 0)


def _is_at_most(pad: Expr, limit: Expr) -> bool:
    """False if it is not known."""
    room = (limit - pad).value
    return pad == 0 or (room is not None and room >= 0)
