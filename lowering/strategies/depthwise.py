"""Depthwise convolution, over channel blocks: the lanes are channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.taps import UNROLLED_TAPS, add_taps
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.conv_lines import plan_lines
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    conv_wishes,
    has_border,
    is_depthwise,
    spatial_labels,
)
from lowerdeck.lowering.strategies.costs import (
    Scored,
    conversion_cycles,
    likely_shape,
    scored,
    tiles,
)
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    blocked_constants,
    can_be_packed,
    is_of,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.targets.base import Target

LOOP_CYCLES = 2
"""Of the loop over the rows of a window."""


class Depthwise(Strategy):
    """
    A tile is a row of outputs of one channel block, so that they share the inputs they load while
    these are in registers.
    """

    name = "depthwise"
    anchors = (ConvOp,)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        if not is_depthwise(op):
            return None
        return conv_wishes(kernel, op, saved=_saved_by_blocks(op, setting.target))

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, result = the(ConvOp, kernel), layout_out(kernel)
        shape, w = likely_shape(op), static_shape(op.weight)
        if w is None or not can_be_packed(kernel, op.weight):
            return
        if not can_be_blocked_depthwise(op, layout_in(kernel, op.input), result):
            return
        *outer, last = [f"x{axis}" for axis in range(len(shape) - 2)]
        blocks = -(-shape[1] // result.inner(1))
        rows = shape[0] * blocks * prod(shape[2:-1]) / setting.threads
        step = ints(op.strides)[-1], ints(op.dilations)[-1]
        for cycles, columns in depthwise_tiles(shape[-1], w[2:], setting.target, step):
            order = ("n", OUTPUT_CHANNEL, *outer, last)
            yield Candidate(rows * cycles, Schedule(self.name, ((last, columns),), order))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, lanes = the(ConvOp, kernel), layout_out(kernel).inner(1)
        layouts = blocked_constants(kernel, lanes)
        layouts[op.weight] = LayoutAttr.blocked(len(dims_of(op.weight)), 0, lanes)
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _lower_blocks(k, the(ConvOp, k.kernel))


def _saved_by_blocks(op: ConvOp, target: Target) -> float:
    """
    What it takes more in row-major layout than in blocks, in copies of the result from one layout
    to the other.
    """
    costs, shape = target.costs, likely_shape(op)
    width, taps = max(shape[-1], 1), prod(assumed_shape(op.weight)[2:])
    elements = max(prod(shape), 1)
    lines = plan_lines(op, target)
    if lines is None:
        # Plain loops go over a row of the result for each tap.
        row = costs.row_cycles + 2 * width / target.lanes
        cycles = taps * row / width
    else:
        blocked = taps * width / target.machine.multiply_adds_per_cycle + costs.row_cycles
        cycles = lines.cycles / elements - blocked / width / target.lanes
    return max(0.0 if lines else 1.0, cycles / conversion_cycles(target))


def depthwise_tiles(
    columns: int, taps: Sequence[int], target: Target, step: tuple[int, int] = (1, 1)
) -> Scored[int]:
    """
    The number of adjacent outputs; the cycles are those of one row. `step` gives the stride and the
    dilation along it.
    """
    costs, (stride, dilation), row = target.costs, step, taps[-1]
    machine = target.machine
    # Inputs and weights that registers do not hold beside the sums are read where they are used.
    sums = max(machine.registers - 2 * row - 2, machine.registers // 2)
    most = min(columns, sums, target.limits.row_outputs)

    def cycles_of(size: int) -> float:
        """Of a tile: weights are loaded, and inputs, which outputs have in common."""
        read = len({x * stride + tap * dilation for x in range(size) for tap in range(row)})
        loads = (row + read) / machine.loads_per_cycle
        products = size * row / machine.multiply_adds_per_cycle
        return prod(taps[:-1]) * (max(products, loads) + LOOP_CYCLES) + costs.row_cycles

    def cost(count: int) -> float:
        parts = list(tiles(columns, count))
        cycles = sum(number * cycles_of(size) for number, size in parts)
        return cycles + costs.variant_cycles * len(parts)

    return scored(range(1, max(1, most) + 1), cost)


def can_be_blocked_depthwise(op: ConvOp, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for f32 if input and output have the same blocks, and the input has a border as wide as the
    padding."""
    taps = [tap.value for tap in dims_of(op.weight)[2:]]
    return (
        is_depthwise(op)
        and is_of(op, f32)
        and target.inner(1) > 1
        and source.inner(1) == target.inner(1)
        and None not in taps
        and has_border(op, source)
    )


def _lower_blocks(k: KernelLowering, op: ConvOp) -> None:
    """
    The sum for one output element runs over the taps. Those along the last dimension are unrolled:
    columns of a tile share their loads, and one loop carries the sums of all of them.
    """
    b, dims = k.builder, dims_of(op.result)
    lanes = k.output_layout().inner(1)
    spatial = spatial_labels(dims[2:])
    blocks = dims[1].ceildiv(lanes)
    with (
        b.labeled_nest([("n", dims[0]), (OUTPUT_CHANNEL, blocks), *spatial], parallel=True) as at,
        b.loop(lanes, label="lane", mode="lanes") as lane,
    ):
        where = [at[0], at[1] * lanes + lane, *at[2:]]
        k.finish(op, where, depthwise_sum(k, op, where))


def depthwise_sum(k: KernelLowering, op: ConvOp, at: Sequence[Expr]) -> SSAValue:
    """The sum over the taps, for one element of the result."""
    b = k.builder
    start = (
        scalars.constant(b, 0, element_type(op.input))
        if op.bias is None
        else k.element(op.bias, [at[1]])
    )

    def add_product(taps: Sequence[Expr], value: SSAValue) -> SSAValue:
        where = [
            position * stride + tap * dilation - pad
            for position, stride, tap, dilation, pad in zip(
                at[2:], ints(op.strides), taps, ints(op.dilations), op.pads_begin.data, strict=True
            )
        ]
        weight = k.element(op.weight, [at[1], Expr.const(0), *taps])
        return b.fma(k.element(op.input, [*at[:2], *where]), weight, value)

    taps = dims_of(op.weight)[2:]
    most = min(taps[-1].value or 0, UNROLLED_TAPS)
    return add_taps(b, [(Expr.const(0), tap) for tap in taps], start, add_product, most)
