"""How windows run that combine each channel by itself: depthwise convolutions and pools."""

from __future__ import annotations

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.kernels.convolution import OUTPUT_CHANNEL
from lowerdeck.lowering.kernels.depthwise import can_be_blocked_depthwise
from lowerdeck.lowering.kernels.pooling import can_be_blocked_pool
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import (
    Choice,
    assumed_shape,
    blocked_constants,
    is_constant,
    layout_in,
    schedule_rule,
    tiles,
)
from lowerdeck.lowering.targets import Machine

_LARGEST_TILE = 16
"""Outputs that stand side by side at most: more make the code long, and save nothing."""

_TILE_CYCLES = 12.0
"""About what it takes to begin a tile: weights that are read again, and the loop."""

_VARIANT_CYCLES = 60.0
"""What it is worth to have one nest fewer for what remains at the end of a dimension."""


@schedule_rule(ConvOp)
def choose_depthwise(kernel: KernelOp, op: ConvOp, machine: Machine) -> Choice | None:
    """
    A tile is a row of outputs of one block of channels, so that they share what they read while it
    is in registers.
    """
    target = kernel.layout_at(len(kernel.inputs))
    shape, w = assumed_shape(op.result), static_shape(op.weight)
    if w is None or not is_constant(kernel, op.weight):
        return None
    if not can_be_blocked_depthwise(op, layout_in(kernel, op.input), target):
        return None
    lanes = target.inner(1)
    layouts = blocked_constants(kernel, lanes)
    layouts[op.weight] = LayoutAttr.blocked(len(w), 0, lanes)
    spatial = [f"x{axis}" for axis in range(len(shape) - 2)]
    tile = depthwise_tile(shape[-1], w[-1], machine)
    return Choice(
        Schedule(((spatial[-1], tile),), order=("n", OUTPUT_CHANNEL, *spatial)),
        layouts,
    )


def depthwise_tile(columns: int, taps: int, machine: Machine) -> int:
    """How many outputs of a depthwise convolution stand side by side."""
    return columns_of_tile(columns, taps, machine.registers - 2 * taps - 2)


@schedule_rule(PoolOp)
def choose_pool(kernel: KernelOp, op: PoolOp, machine: Machine) -> Choice | None:
    """As a depthwise convolution, without weights."""
    target = kernel.layout_at(len(kernel.inputs))
    if not can_be_blocked_pool(op, layout_in(kernel, op.input), target):
        return None
    taps, shape = constants(op.kernel.data), assumed_shape(op.result)
    assert taps is not None
    spatial = [f"x{axis}" for axis in range(len(shape) - 2)]
    tile = columns_of_tile(shape[-1], taps[-1], machine.registers - 2 * taps[-1] - 2)
    sizes = ((spatial[-1], tile),)
    return Choice(Schedule(sizes), blocked_constants(kernel, target.inner(1)))


def columns_of_tile(columns: int, taps: int, most: int) -> int:
    """How many outputs side by side, with so many taps each, take least time."""

    def cost(count: int) -> float:
        parts = list(tiles(columns, count))
        work = sum(number * (size * taps + _TILE_CYCLES) for number, size in parts)
        return work + _VARIANT_CYCLES * len(parts)

    return min(range(1, max(1, min(columns, most, _LARGEST_TILE)) + 1), key=cost)
