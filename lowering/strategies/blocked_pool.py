"""Pools over channel blocks: the lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from itertools import product as combinations
from math import inf, prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.taps import (
    UNROLLED_TAPS,
    Bounds,
    add_taps,
    first_of,
    indices,
    larger_one,
    least,
    window_count,
    window_range,
)
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.channel_blocks import linked_wishes
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.costs import row_tiles
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    blocked_constants,
    layout_in,
    layout_out,
    the,
)


class BlockedPool(Strategy):
    """Like a depthwise convolution, without weights."""

    name = "blocked_pool"
    anchors = (PoolOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        return linked_wishes(kernel, setting)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(PoolOp, kernel)
        if not can_be_blocked_pool(op, layout_in(kernel, op.input), layout_out(kernel)):
            return
        taps, shape = constants(op.kernel.data), assumed_shape(op.result)
        assert taps is not None
        last = f"x{len(shape[2:]) - 1}"
        target = setting.target
        most = target.machine.registers - 2 * taps[-1] - 2
        blocks = -(-shape[1] // layout_out(kernel).inner(1))
        rows = shape[0] * blocks * prod(shape[2:-1]) * prod(taps[:-1])
        for cycles, columns in row_tiles(target, shape[-1], taps[-1], most):
            yield Candidate(rows * cycles, Schedule(self.name, ((last, columns),)))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        return blocked_constants(kernel, layout_out(kernel).inner(1))

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_blocks(k, the(PoolOp, k.kernel))


def can_be_blocked_pool(op: PoolOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """True for f32 with known windows, if input and output have the same channel blocks."""
    return (
        element_type(op.result) == f32
        and target.inner(1) > 1
        and source.inner(1) == target.inner(1)
        and constants(op.kernel.data) is not None
        and constants((*op.pads_begin.data, *op.pads_end.data)) is not None
    )


@record
class Span:
    """Outputs along one dimension; `is_whole` if their windows lie within the input."""

    lower: Expr
    upper: Expr
    is_whole: bool


def spans(op: PoolOp, axis: int) -> list[Span]:
    """
    The outputs along a spatial dimension: those at the borders, and the interior. If its size is
    unknown, all windows are clipped, unless there is no padding.
    """
    size, dim = dims_of(op.result)[axis + 2], dims_of(op.input)[axis + 2]
    kernel, begin, end = (
        values.data[axis].value for values in (op.kernel, op.pads_begin, op.pads_end)
    )
    assert kernel is not None
    assert begin is not None
    if size.value is None or dim.value is None:
        return [Span(Expr.const(0), size, begin == 0 and end == 0)]
    stride, reach = ints(op.strides)[axis], (kernel - 1) * ints(op.dilations)[axis]
    first = min(-(-begin // stride), size.value)
    last = max(first, min((dim.value - 1 - reach + begin) // stride + 1, size.value))
    places = [0, first, last, size.value]
    return [
        Span(Expr.const(lower), Expr.const(upper), number == 1)
        for number, (lower, upper) in enumerate(pairwise(places))
        if lower < upper
    ]


def _lower_blocks(k: KernelLowering, op: PoolOp) -> None:
    """
    One loop nest for the outputs whose windows lie within the input, with unrolled taps, and nests
    for those at the borders, whose windows are clipped.
    """
    dims = dims_of(op.result)
    for parts in combinations(*(spans(op, axis) for axis in range(len(dims) - 2))):
        _lower_part(k, op, parts)


def _lower_part(k: KernelLowering, op: PoolOp, parts: Sequence[Span]) -> None:
    b, dims = k.builder, dims_of(op.result)
    lanes = k.output_layout().inner(1)
    # Only whole windows have the labels that a schedule tiles.
    spatial = [
        (f"{'x' if part.is_whole else 'border'}{axis}", part.upper - part.lower)
        for axis, part in enumerate(parts)
    ]
    blocks = dims[1].ceildiv(lanes)
    with (
        b.labeled_nest([("n", dims[0]), (OUTPUT_CHANNEL, blocks), *spatial], parallel=True) as at,
        b.loop(lanes, label="lane", mode="lanes") as lane,
    ):
        positions = [i + part.lower for i, part in zip(at[2:], parts, strict=True)]
        where = [at[0], at[1] * lanes + lane, *positions]
        k.finish(op, where, _combined(k, op, where, parts))


def _combined(k: KernelLowering, op: PoolOp, at: Index, parts: Sequence[Span]) -> SSAValue:
    b, dims, kernel = k.builder, dims_of(op.input), op.kernel.data
    strides, dilations, begin = ints(op.strides), ints(op.dilations), op.pads_begin.data
    bounds = [
        (Expr.const(0), kernel[d])
        if part.is_whole
        else window_range(
            at[d + 2], kernel[d], dims[d + 2], strides[d], dilations[d], begin[d], Expr.const(1)
        )
        for d, part in enumerate(parts)
    ]

    def element_under(taps: Sequence[Expr]) -> SSAValue:
        where = [
            at[d + 2] * strides[d] + tap * dilations[d] - begin[d] for d, tap in enumerate(taps)
        ]
        return k.element(op.input, [*at[:2], *where])

    def add(taps: Sequence[Expr], value: SSAValue) -> SSAValue:
        if op.kind.data == PoolKind.MAX:
            return larger_one(b, op, value, element_under(taps))
        return scalars.add(b, value, element_under(taps))

    def keep_nan(taps: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [scalars.unless_nan(b, element_under(taps), values[0])]

    if op.kind.data == PoolKind.MAX and _by_columns(op, parts):
        return _largest_of_columns(b, op, bounds, element_under)
    start = least(b, op) if op.kind.data == PoolKind.MAX else b.floating(0.0, f32)
    most = min(kernel[-1].value or 0, UNROLLED_TAPS)
    total = add_taps(b, bounds, start, add, most)
    if op.keeps_first.value.data:
        total = b.carry_nest(first_of(bounds), [total], keep_nan)[0]
    if op.kind.data == PoolKind.AVERAGE:
        return scalars.mul(b, total, _reciprocal(k, window_count(op, at, bounds)))
    return total


def _by_columns(op: PoolOp, parts: Sequence[Span]) -> bool:
    """True if the columns of windows may be combined first, and are as often as they are shared."""
    taps = constants(op.kernel.data)
    is_small = taps is not None and 0 < prod(taps) <= UNROLLED_TAPS
    return is_small and all(part.is_whole for part in parts) and not op.finds_first


def _largest_of_columns(
    b: KernelBuilder,
    op: PoolOp,
    bounds: Sequence[Bounds],
    element_under: Callable[[Sequence[Expr]], SSAValue],
) -> SSAValue:
    """The windows side by side have the same code for columns that they share: it is run once."""
    start = [] if op.keeps_nan.value.data else [least(b, op)]
    columns: list[SSAValue] = []
    for column in indices(bounds[-1:]):
        elements = [element_under([*rest, *column]) for rest in indices(bounds[:-1])]
        columns.append(reduce(partial(larger_one, b, op), [*start, *elements]))
    return reduce(partial(larger_one, b, op), columns)


def _reciprocal(k: KernelLowering, count: Expr) -> SSAValue:
    b = k.builder
    if count.value is not None:
        # Times infinity, a sum of nothing is NaN.
        return b.floating(1.0 / count.value if count.value else inf, f32)
    number = scalars.cast(b, b.as_integer(count), i64, f32)
    return b.add(arith.DivfOp(b.floating(1.0, f32), number))
