"""Which convolutions run by Winograd's algorithm, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.dialects.dims import exprs
from lowerdeck.lowering.kernels.convolution import OUTPUT_CHANNEL
from lowerdeck.lowering.kernels.winograd import GROUP, PARTS, TILE, Geometry, can_be_winograd
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import (
    Choice,
    assumed_shape,
    blocked_constants,
    fits,
    is_constant,
    layout_in,
    reduction_cycles,
    schedule_rule,
)
from lowerdeck.lowering.targets import Machine

SIZES = (4, 2)
"""Outputs of a tile, in rows and columns."""

_VALUE_CYCLES = 7
"""About what it takes to transform one vector of values."""

_CACHED = 8
"""Bytes a cycle that come from the cache shared by the cores."""

_UNCACHED = 3.5
"""Bytes a cycle that come from memory."""

_EFFICIENCY = 0.85
"""What sums reach of the speed that they have in registers."""


_LARGEST_GROUP = 256
"""Tiles that are transformed and multiplied at a time."""


@dataclass(frozen=True)
class Plan:
    """One way to run a convolution, and about how long it takes."""

    cycles: float
    size: int = 0
    group: int = 0
    count: int = 0
    rows: int = 0


@schedule_rule(ConvOp, first=True)
def choose_winograd(kernel: KernelOp, op: ConvOp, machine: Machine) -> Choice | None:
    """
    By cost, against the direct sum. With strict accuracy, in the smaller tiles only. Where sizes
    are known only at run time, for an image of assumed size.
    """
    if not is_constant(kernel, op.weight):
        return None
    source, target = layout_in(kernel, op.input), kernel.layout_at(len(kernel.inputs))
    best = direct_plan(op, target.inner(1), machine)
    for size in SIZES:
        if size > 2 and machine.strict:
            continue
        if can_be_winograd(op, size, source, target):
            plan = winograd_plan(op, size, target.inner(1), machine)
            best = min(best, plan, key=lambda each: each.cycles)
    if not best.size:
        return None
    lanes = target.inner(1)
    layouts = blocked_constants(kernel, lanes)
    layouts[op.weight] = transformed_weight(best.size, lanes, best.count)
    sizes = ((TILE, best.rows), (OUTPUT_CHANNEL, best.count))
    parameters = ((GROUP, best.group), (PARTS, machine.threads))
    order = ("v0", "v1", OUTPUT_CHANNEL, TILE)
    ahead = kernel.body.block.args.index(op.weight)
    return Choice(Schedule((*sizes, *parameters), order, prefetch=ahead), layouts)


def transformed_weight(size: int, lanes: int, count: int) -> LayoutAttr:
    """[value][value][oc / (count lanes)][ic][oc / lanes % count][oc % lanes]."""
    pieces = [Piece(2), Piece(3), Piece(0, lanes * count), Piece(1)]
    if count > 1:
        pieces.append(Piece(0, lanes, count))
    return LayoutAttr.of([*pieces, Piece(0, 1, lanes)], winograd=size)


def likely_shape(value: SSAValue) -> list[int]:
    """A shape to choose by: one image where their number is known only at run time."""
    shape = assumed_shape(value)
    return shape if dims_of(value)[0].value is not None else [1, *shape[1:]]


def direct_plan(op: ConvOp, lanes: int, machine: Machine) -> Plan:
    """The direct sum at full speed."""
    shape, weight = likely_shape(op.result), static_shape(op.weight)
    assert weight is not None
    blocks = -(-shape[1] // max(lanes, 1))
    products = shape[0] * prod(shape[2:]) * blocks * prod(weight[1:])
    cycles = products / 2 / machine.threads / _EFFICIENCY
    return Plan(max(cycles, prod(weight) * 4 / _UNCACHED))


def winograd_plan(op: ConvOp, size: int, lanes: int, machine: Machine) -> Plan:
    """The group of tiles and the tile of a product that take least."""
    shape, weight = likely_shape(op.result), static_shape(op.weight)
    assert weight is not None
    g = Geometry.of(size, weight[2], exprs(shape))
    tiles = g.tiles.value
    assert tiles is not None
    blocks_in, blocks_out = -(-weight[1] // lanes), -(-shape[1] // lanes)
    values = g.values**2
    slab = blocks_out * lanes * weight[1] * 4
    transforms = tiles * values * (blocks_in + blocks_out) * _VALUE_CYCLES / machine.threads
    is_open = static_shape(op.result) is None
    plans: list[Plan] = []
    for group in range(4, _LARGEST_GROUP + 1) if is_open else _group_sizes(tiles, machine.threads):
        turns = -(-tiles // group) / machine.threads
        cycles, count, rows = _product(blocks_out, group, weight[1], machine)
        if is_open and group % rows:
            # How many tiles the last group has is not known, but the others have whole products.
            continue
        scratch = values * group * (blocks_in + blocks_out) * lanes * 4
        spilled = max(0, scratch - machine.l2 * 3 // 4) / _CACHED / 4
        # The first group gets the weights from memory, the others from where there is room.
        fits_l2 = values * slab + scratch <= machine.l2
        again = cycles if fits_l2 else max(cycles, slab / _CACHED)
        products = values * (max(cycles, slab / _UNCACHED) + (turns - 1) * again)
        plans.append(Plan(products + turns * spilled + transforms, size, group, count, rows))
    return min(plans, key=lambda plan: plan.cycles)


def _group_sizes(tiles: int, threads: int) -> Sequence[int]:
    """The sizes of groups of which every thread does as many."""
    sizes = {-(-tiles // (turns * threads)) for turns in range(1, -(-tiles // threads) + 1)}
    return sorted(size for size in sizes if 4 <= size <= _LARGEST_GROUP) or [
        min(tiles, _LARGEST_GROUP)
    ]


def _product(blocks: int, group: int, depth: int, machine: Machine) -> tuple[float, int, int]:
    """The cycles of one product, and its tile: vectors of output channels, and tiles."""
    candidates = [
        (count, rows)
        for count in range(1, min(blocks, 4) + 1)
        for rows in range(1, min(group, machine.registers) + 1)
        if fits(machine, rows, count)
    ]
    return min(
        (reduction_cycles([blocks, group], tile, depth, sum) / _EFFICIENCY, *tile)
        for tile in candidates
    )
