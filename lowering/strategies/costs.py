"""The cost model of strategies: cycles of sums in register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import gcd, log2, prod
from typing import TypeVar

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.facts import assumed_shape, item_bytes
from lowerdeck.lowering.targets.base import F32_BYTES, Target

T = TypeVar("T")
Scored = list[tuple[float, T]]
"""Alternatives with their cycles."""


def scored(ways: Iterable[T], cost: Callable[[T], float]) -> Scored[T]:
    """Each alternative with its cost."""
    return [(cost(way), way) for way in ways]


def least(ways: Scored[T]) -> tuple[float, T]:
    """The alternative with the lowest cost; of equal ones the first."""
    return min(ways, key=lambda way: way[0])


@lru_cache(maxsize=1 << 12)
def tiles(size: int, tile: int) -> tuple[tuple[int, int], ...]:
    """The tiles that a dimension is divided into: their number and size, main tiles first."""
    whole, rest = divmod(size, tile)
    main = ((whole, tile),) if whole else ()
    return (*main, (1, rest)) if rest else main


def reduction_cycles(
    target: Target,
    sizes: Sequence[int],
    tile: Sequence[int],
    depth: int,
    loads: Callable[[Sequence[int]], int],
) -> float:
    """
    Estimated cycles to compute sums of `depth` products in tiles of accumulators: the maximum of
    the time for multiply-adds, for loads, and the latency of a sum.
    """
    costs, machine, cycles = target.costs, target.machine, 0.0
    extents = [tiles(size, part) for size, part in zip(sizes, tile, strict=True)]
    for variant in product(*extents):
        count, sums, shape = 1, 1, [extent for _, extent in variant]
        for number, extent in variant:
            count *= number
            sums *= extent
        step_cycles = max(
            sums / machine.multiply_adds_per_cycle,
            loads(shape) / machine.loads_per_cycle,
            machine.latency_cycles,
        )
        cycles += count * (depth * step_cycles + costs.tile_cycles + sums)
    return cycles


def fits(target: Target, rows: int, vectors: int) -> bool:
    """True if the accumulators of a tile, a row of weights and an input fit in the registers."""
    return rows * vectors + vectors + 1 < target.machine.registers


def window_loads(tile: Sequence[int]) -> int:
    """Loads for one step of a tile of output channel blocks, rows and columns."""
    return tile[0] + tile[1] * tile[2]


@lru_cache(maxsize=1 << 10)
def window_sum_tiles(
    target: Target, sizes: tuple[int, int, int], depth: int, *, even_only: bool = False
) -> Scored[tuple[int, int, int]]:
    """
    Tiles of sums of `depth` products, as output channel blocks, rows and columns; with `even_only`,
    the tile divides the blocks.
    """
    blocks, height, width = sizes
    candidates = [
        (count, rows, columns)
        for count in range(1, min(blocks, 6) + 1)
        for rows in range(1, min(height, 4) + 1)
        for columns in range(1, min(width, target.machine.registers) + 1)
        if fits(target, rows * columns, count)
    ]
    # If a tile reads much data, its blocks should divide their total number evenly.
    block_bytes = depth * target.vector_bytes
    most_uneven_blocks = 0 if even_only else target.machine.l2_bytes // 8 // block_bytes
    return scored(
        [t for t in candidates if t[0] <= most_uneven_blocks or blocks % t[0] == 0],
        lambda tile: reduction_cycles(target, sizes, tile, depth, window_loads),
    )


def likely_shape(op: ConvOp | ConvTransposeOp) -> list[int]:
    """A result shape to estimate with: one image where their number is not known."""
    return likely_images(op.result)


def likely_images(value: SSAValue) -> list[int]:
    """The assumed shape of images, one where their number is not known."""
    shape = assumed_shape(value)
    return shape if dims_of(value)[0].value is not None else [1, *shape[1:]]


def direct_cycles(op: ConvOp, lanes: int, setting: Setting) -> float:
    """The cycles of the products of a convolution in channel blocks, with the best tile."""
    shape, weight = likely_shape(op), static_shape(op.weight)
    assert weight is not None
    blocks = -(-shape[1] // max(lanes, 1))
    products = shape[0] * prod(shape[2:]) * blocks * prod(weight[1:])
    costs, machine = setting.target.costs, setting.target.machine
    cycles = products / machine.multiply_adds_per_cycle / setting.threads / costs.efficiency
    weight_bytes = prod(weight) * item_bytes(op.weight)
    return max(cycles, weight_bytes / machine.memory_bytes_per_cycle)


def rows_that_stay(pitch: int, target: Target) -> int:
    """
    How many rows that lie `pitch` bytes apart the L1 cache can hold a line of: those whose distance
    is a multiple of a page have one place, with as many ways.
    """
    machine = target.machine
    return machine.l1_ways * (machine.page_bytes // gcd(machine.page_bytes, pitch))


def late_cycles(rows: int, pitch: int, target: Target) -> float:
    """
    What a line takes besides its load where lines of `rows`, `pitch` bytes apart, are read in turn,
    again and again: 0 if the L1 cache can hold all of them. Pages may lie side by side in memory,
    so that the L2 cache has as few places for them.
    """
    costs, machine = target.costs, target.machine
    if not costs.apart_line_cycles or rows <= rows_that_stay(pitch, target):
        return 0.0
    way = machine.l2_bytes // machine.l2_ways
    if rows < machine.l2_ways * (way // gcd(way, pitch)):
        return costs.apart_line_cycles
    return machine.line_bytes / machine.shared_bytes_per_cycle


def distance_cycles(op: ConvOp, target: Target, *, depth: int, visits: float) -> float:
    """
    Cycles that it takes because channels of a row-major input lie apart: tiles read `depth` of them
    one after the other, and `visits` in all. Their pages have to be found, and their lines may have
    too few places in the caches. 0 if sizes are not known.
    """
    sizes = constants(dims_of(op.input)[2:])
    if sizes is None:
        return 0.0
    pitch = prod(sizes) * item_bytes(op.input)
    new = min(pitch / target.machine.page_bytes, 1)
    found = new * target.costs.page_cycles if depth * new >= target.machine.pages else 0.0
    return visits * (found + late_cycles(depth, pitch, target))


def are_shared(cycles: float, setting: Setting) -> bool:
    """True for a kernel of so many cycles if threads share it, unless a loop calls it."""
    return setting.threads > 1 and cycles >= setting.target.costs.shared_steps


def of_busiest(cycles: float, parts: float, setting: Setting) -> float:
    """
    The cycles of a kernel whose loops have so many equal parts, of which the last may be a fraction
    of one, as if all threads had as much to do as the busiest one; those of one thread for a kernel
    that threads do not share.
    """
    if not are_shared(cycles, setting):
        return cycles
    threads, whole = setting.threads, int(parts)
    # A thread that has one part less takes what is left.
    busiest = -(-whole // threads) if whole % threads else whole / threads + parts - whole
    return cycles * busiest * threads / parts


def conversion_cycles(target: Target) -> float:
    """To bring one element from one layout into another."""
    costs = target.costs
    moved = 2 * F32_BYTES / target.machine.l2_copy_bytes_per_cycle
    return (costs.element_cycles + log2(target.lanes)) / target.lanes + moved


def in_proportion(whole: float, ways: Scored[T]) -> Scored[T]:
    """
    Scales the estimates so that the best alternative takes `whole`, the known total, and the others
    keep their ratio to it.
    """
    best, _ = least(ways)
    return [(whole * (cost / best), way) for cost, way in ways]


def row_tiles(target: Target, columns: int, taps: int, most: int) -> Scored[int]:
    """The number of adjacent outputs, with so many taps each; `most` fit in the registers."""
    costs, most = target.costs, min(columns, most, target.limits.row_outputs)

    def cost(count: int) -> float:
        parts = list(tiles(columns, count))
        cycles = sum(number * (size * taps + costs.row_cycles) for number, size in parts)
        return cycles + costs.variant_cycles * len(parts)

    return scored(range(1, max(1, most) + 1), cost)
