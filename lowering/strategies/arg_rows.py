"""Where the largest or smallest elements of rows are: the lanes are elements of one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.reduction import arg_element, arg_step, is_better
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import assumed_size, layout_in, the
from lowerdeck.lowering.targets.base import FEWEST_LANES

VECTOR = "vector"
"""What a schedule has: the lanes."""


class ArgRows(Strategy):
    """
    Each lane finds the best of its elements, and the number of the vector where that was; then the
    lanes are compared. Ties go to the first or the last element of the row, as asked.
    """

    name = "arg_rows"
    anchors = (ArgReduceOp,)
    parameters = (VECTOR,)
    looks_around = False
    is_computed = True

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ArgReduceOp, kernel)
        size = assumed_size(dims_of(op.input)[-1])
        type_ = scalars.compute_type(element_type(op.input))
        lanes = min(setting.target.lanes_of(type_), setting.target.lanes_of(i32))
        is_row = op.axis.data == len(dims_of(op.input)) - 1
        if not is_row or not layout_in(kernel, op.input).is_row_major or lanes < FEWEST_LANES:
            return
        if lanes <= size < 1 << (i32.width.data - 1):
            yield Candidate(0.0, Schedule(self.name, parameters=((VECTOR, lanes),)))

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op, lanes = the(ArgReduceOp, k.kernel), schedule.parameter(VECTOR)
        with k.builder.nest(dims_of(op.result), parallel=True) as at:
            k.finish(op, at, _place(k, op, at, lanes))


def _place(k: KernelLowering, op: ArgReduceOp, at: Index, lanes: int) -> SSAValue:
    b, size = k.builder, dims_of(op.input)[-1]
    first = arg_element(k, op, at, Expr.const(0))
    bests, numbers = b.scratch(first.type, [lanes]), b.scratch(i32, [lanes])
    with b.loop(lanes, mode="lanes") as lane:

        def step(number: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = arg_element(k, op, at, number * lanes + lane)
            wins = is_better(b, op, value, values[0])
            here = scalars.cast(b, b.as_integer(number), i64, i32)
            return [
                b.add(arith.SelectOp(wins, value, values[0])),
                b.add(arith.SelectOp(wins, here, values[1])),
            ]

        # Until a lane finds a better one, it has the first element of the row.
        found = b.carry(size // lanes, [first, b.integer(-1, i32)], step)
        b.store(found[0], bests, [lane])
        b.store(found[1], numbers, [lane])

    def compare(lane: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, zero = b.load(bests, [lane]), b.integer(0, i64)
        number = scalars.cast(b, b.load(numbers, [lane]), i32, i64)
        own = scalars.add(b, scalars.mul(b, number, b.integer(lanes, i64)), b.as_integer(lane))
        is_first = b.add(arith.CmpiOp(number, zero, "slt"))
        place = b.add(arith.SelectOp(is_first, zero, own))
        wins = _wins(b, op, (value, place), (values[0], values[1]))
        return [
            b.add(arith.SelectOp(wins, value, values[0])),
            b.add(arith.SelectOp(wins, place, values[1])),
        ]

    best = b.carry(lanes, [first, b.integer(0, i64)], compare)
    return b.carry(
        size,
        best,
        lambda position, values: arg_step(k, op, at, position, values),
        size // lanes * lanes,
    )[1]


Item = tuple[SSAValue, SSAValue]
"""An element and its index."""


def _wins(b: KernelBuilder, op: ArgReduceOp, one: Item, other: Item) -> SSAValue:
    """Better, or as good and before the other, or behind it if the last is asked for."""
    (value, place), (best, where) = one, other
    order = "sgt" if op.last_index.value.data else "slt"
    is_nearer = b.add(arith.CmpiOp(place, where, order))
    is_worse = is_better(b, op, best, value, or_equal=False)
    is_as_good = b.add(arith.XOrIOp(is_worse, b.integer(1, i1)))
    tie = b.add(arith.AndIOp(is_as_good, is_nearer))
    return b.add(arith.OrIOp(is_better(b, op, value, best, or_equal=False), tie))
