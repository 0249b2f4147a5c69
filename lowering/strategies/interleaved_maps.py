"""
Maps whose result has few elements in its innermost dimension, along which no input is contiguous:
vectors along the dimension before it are interleaved in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from lowerdeck.dialects.buffer.kernel import lane_type
from lowerdeck.dialects.buffer.vector import factors_of, lane_bits
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import assumed_shape, layout_out
from lowerdeck.lowering.strategies.map_squares import (
    LARGEST_SIDE,
    fewest_lanes,
    lies_along,
    may_be_across,
    plain_loops,
)

AT_ONCE = "at_once"
"""The parameter of a schedule: rows of a few elements that are stored at once."""


class InterleavedMaps(Strategy):
    """
    For one row-major result that ends with few elements, and inputs that are contiguous along the
    dimension before them, as the plain loops show. Its last two dimensions become one, so that the
    vectors of interleaved elements lie side by side.
    """

    name = "interleaved_maps"
    anchors = ()
    parameters = (AT_ONCE,)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        if setting.target.lanes == 1 or len(kernel.results) != 1 or kernel.view is not None:
            return
        layout, dims = layout_out(kernel), dims_of(kernel.results[0])
        if not layout.is_row_major or layout.rank < 2 or not may_be_across(kernel):
            return
        few, along = dims[-1].value, layout.rank - 2
        if few is None or not 2 <= few <= LARGEST_SIDE:
            return
        lanes, loops = rows_at_once(kernel, setting), plain_loops(kernel)
        if lanes is None or loops is None or not lies_along(loops, layout, along, lanes):
            return
        cycles = interleaving_cycles(kernel, lanes, setting)
        yield Candidate(cycles, Schedule(self.name, parameters=((AT_ONCE, lanes),)))

    def joined(self, kernel: KernelOp, schedule: Schedule) -> int:
        return 2

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """
        As many elements of each of the few rows as a vector has, side by side in memory then. The
        remainder is computed one by one.
        """
        interleave(k, schedule)


def rows_at_once(kernel: KernelOp, setting: Setting) -> int | None:
    """The rows that fill a vector, no more than there are; None if these are too few."""
    result = kernel.results[0]
    bits, rows = lane_bits(lane_type(element_type(result))), dims_of(result)[-2].value
    lanes = min(setting.target.vector_bits // bits, LARGEST_SIDE)
    while rows is not None and lanes > max(rows, 1):
        lanes //= 2
    return lanes if lanes >= fewest_lanes(bits) else None


def interleaving_cycles(kernel: KernelOp, lanes: int, setting: Setting) -> float:
    """Each vector is loaded, goes through the steps of each factor of a row, and is stored."""
    shape = assumed_shape(kernel.results[0])
    steps = setting.target.costs.element_cycles + sum(f - 1 for f in factors_of(shape[-1]))
    return prod(shape) * steps / lanes


def interleave(k: KernelLowering, schedule: Schedule) -> None:
    """Store the elements of a value whose last two dimensions are one in the result."""
    b, joined = k.builder, k.roots[0].owner
    if not isinstance(joined, ReshapeOp):
        raise LoweringError(
            k.kernel, f"'{schedule.strategy}' stores the last two dimensions as one"
        )
    *outer, size, _ = dims_of(joined.input)
    lanes, labels = schedule.parameter(AT_ONCE), [(f"d{k}", dim) for k, dim in enumerate(outer)]
    whole = size // lanes
    for start, count, step in (
        (Expr.const(0), whole, lanes),
        (whole * lanes, size - whole * lanes, 1),
    ):
        if count == 0:
            continue
        with b.labeled_nest([*labels, (f"d{len(outer)}", count)], parallel=True) as at:
            *front, number = at
            _rows(k, joined, front, start + number * step, step)


def _rows(k: KernelLowering, joined: ReshapeOp, front: Index, first: Expr, lanes: int) -> None:
    """So many rows of a few elements each, from the first one on."""
    b, few = k.builder, dims_of(joined.input)[-1].value
    assert few is not None
    if lanes == 1:
        for column in map(Expr.const, range(few)):
            value = k.element(joined.input, [*front, first, column])
            b.store(value, k.outputs[0], [*front, first * few + column])
        return
    square = b.scratch(element_type(joined.result), [few, lanes])
    for row in map(Expr.const, range(few)):
        with b.loop(lanes, mode="lanes") as lane:
            value = k.element(joined.input, [*front, first + lane, row])
            b.store(value, square, [row, lane])
    b.transpose(square)
    with b.loop(few, mode="unroll") as row, b.loop(lanes, mode="lanes") as lane:
        place = first * few + row * lanes + lane
        b.store(b.load(square, [row, lane]), k.outputs[0], [*front, place])
