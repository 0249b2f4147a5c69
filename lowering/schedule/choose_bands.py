"""Whether a convolution and a depthwise one behind it run by bands of rows, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.lowering.kernels.bands import BAND, MADE_BLOCK, MADE_COLUMN, Geometry
from lowerdeck.lowering.kernels.winograd import PARTS
from lowerdeck.lowering.schedule.choose_windows import depthwise_tile
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import (
    Choice,
    blocked_constants,
    fits,
    layout_in,
    packed_weight,
    reduction_cycles,
    window_sums_tile,
)
from lowerdeck.lowering.targets import Machine

_SAVED = 14
"""Bytes a cycle of a tensor that need not leave the second cache and come back to it."""

_MOVED = 32
"""Bytes a cycle that are moved within the second cache."""

_BAND_CYCLES = 200.0
"""About what it takes to begin a band."""

_MOST_BLOCKS = 8
"""Blocks of channels that are made at a time, at most."""


@dataclass(frozen=True)
class BandPlan:
    """One way to run the two."""

    cycles: float
    """For one image, of all threads together; what is common to all ways is left out."""
    count: int
    """Blocks of channels that are made at a time."""
    columns: int
    """Columns of a tile of the first convolution."""
    band: int
    """Rows of results in a band."""


def best_plan(first: ConvOp, second: ConvOp, lanes: int, machine: Machine) -> BandPlan | None:
    """What takes least by estimate; None if sizes are not known, or a band fits into no cache."""
    g, weight = Geometry.of(second), static_shape(first.weight)
    if g is None or weight is None:
        return None
    return min(_plans(g, weight, lanes, machine), key=lambda plan: plan.cycles, default=None)


def is_worth_bands(first: ConvOp, second: ConvOp, lanes: int, machine: Machine) -> bool:
    """
    True if the tensor in between would not stay in the second cache, and to have it there is worth
    more than what bands take: smaller tiles, and rows that threads make twice.
    """
    g, weight = Geometry.of(second), static_shape(first.weight)
    plan = best_plan(first, second, lanes, machine)
    if g is None or weight is None or plan is None:
        return False
    blocks = -(-weight[0] // lanes)
    size = blocks * lanes * (g.height + g.above + g.below) * g.read * 4
    if size <= machine.l2 // 2:
        return False
    inputs = prod(dim.value or 1 for dim in dims_of(first.input))
    if prod(weight) > inputs:
        # They come from memory, and by itself the convolution asks for them ahead of their use.
        return False
    sizes, depth = (blocks, g.height, g.width), prod(weight[1:])
    tile = window_sums_tile(machine, sizes, depth)
    return plan.cycles < reduction_cycles(sizes, tile, depth, _loads) + size / _SAVED


def choose_bands(
    kernel: KernelOp, first: ConvOp, second: ConvOp, machine: Machine
) -> Choice | None:
    """The tile of a convolution for the rows of a band, and that of a depthwise one behind it."""
    lanes = kernel.layout_at(len(kernel.inputs)).inner(1)
    plan, taps = best_plan(first, second, lanes, machine), static_shape(second.weight)
    if plan is None or taps is None:
        return None
    columns = dims_of(second.result)[-1].value
    assert columns is not None
    sizes = (
        (MADE_COLUMN, plan.columns),
        (MADE_BLOCK, plan.count),
        ("x1", depthwise_tile(columns, taps[-1], machine)),
        (BAND, plan.band),
        (PARTS, machine.threads),
    )
    layouts = blocked_constants(kernel, lanes)
    block = layout_in(kernel, first.input).inner(1)
    layouts[first.weight] = packed_weight(first, block, lanes, plan.count)
    layouts[second.weight] = LayoutAttr.blocked(len(taps), 0, lanes)
    return Choice(Schedule(sizes, (MADE_COLUMN, MADE_BLOCK, "x1")), layouts)


def _loads(tile: Sequence[int]) -> int:
    return tile[0] + tile[1] * tile[2]


def _plans(g: Geometry, weight: Sequence[int], lanes: int, machine: Machine) -> Iterator[BandPlan]:
    blocks, depth = -(-weight[0] // lanes), prod(weight[1:])
    for count in range(1, min(blocks, _MOST_BLOCKS) + 1):
        if blocks % count or (count > 1 and depth * count * lanes * 4 > machine.l1 // 2):
            continue
        columns = [n for n in range(1, g.width + 1) if fits(machine, n, count)]
        for band in _band_sizes(g, count * lanes * 4, machine):
            made, moved, busy = _rows(g, band, machine.threads)
            moves = moved * g.read * blocks * lanes * 4 / _MOVED
            bands = -(-g.rows // band) * (blocks // count) * _BAND_CYCLES
            for number in columns:
                sums = reduction_cycles((blocks, made, g.width), (count, 1, number), depth, _loads)
                yield BandPlan((sums + moves + bands) * busy, count, number, band)


def _band_sizes(g: Geometry, pixel: int, machine: Machine) -> list[int]:
    """Rows of bands that differ as little as can be and stay in the second cache."""
    rows = machine.l2 // 4 // (g.read * pixel)
    most = (rows - g.span) // g.stride + 1
    if most < 1:
        return []
    fewest = -(-g.rows // most)
    numbers = {fewest, -(-fewest // machine.threads) * machine.threads}
    return sorted({-(-g.rows // number) for number in numbers})


def _rows(g: Geometry, band: int, threads: int) -> tuple[int, int, float]:
    """
    The rows of the tensor in between that are made and those that are moved, and how much more the
    busiest thread has than if all had alike.
    """
    bands = -(-g.rows // band)
    again = max(g.span - g.stride, 0)
    made = g.height + again * (min(threads, bands) - 1)
    return made, again * (bands - 1), -(-bands // threads) * threads / bands
