"""`loop-to-scan`: what a loop reads and writes slice by slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.control_flow import LoopOp, yielded
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.enums import ScatterReduction
from lowerdeck.dialects.core.tensor import GatherOp, ReshapeOp, ScatterNdOp, SliceOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_integer
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.loops.loops import (
    FreshSymbols,
    enclosing_loops,
    iteration_index,
    known_trips,
    limits,
    replace_loop,
    trip_limits,
    yield_values,
)
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter


def _is_inside(index: Expr, dim: Expr, loop: LoopOp) -> bool:
    """True if k + a or a - k, k the number of the iteration, is always within a dimension."""
    if loop.iteration is None:
        return False
    name = loop.iteration.data
    first, number = index.substitute({name: 0}), Expr.symbol(name)
    if index not in (first + number, first - number):
        return False
    for trips in trip_limits(loop):
        last = index.substitute({name: trips - 1})
        low, high = (first, last) if index == first + number else (last, first)
        if _is_nonnegative(low) and _is_nonnegative(dim - 1 - high):
            return True
    return False


def _is_nonnegative(value: Expr) -> bool:
    return value.value is not None and value.value >= 0


class ReadStep(Pattern[Expr]):
    """gather(x, k) -> slice(x, k), k the iteration, and inside"""

    name = "read-step"
    roots = (GatherOp,)
    ranked = True

    def match(self, op: GatherOp) -> Match[Expr] | None:
        wide, greatest = _without_casts(op.indices)
        if (index := iteration_index(wide)) is None or not index.symbols:
            return None
        dim = dims_of(op.input)[op.axis.data]
        # Of an index inside of the dimension no cast has changed anything.
        if greatest is not None and (dim.value is None or dim.value - 1 > greatest):
            return None
        loop = _loop_of(index, op)
        if loop is None or not _is_inside(index, dim, loop):
            return None
        return Match((op,), f"slice {index} of {dim}", index)

    def rewrite(self, match: Match[Expr], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, GatherOp)
        axis, sizes = op.axis.data, list(dims_of(op.input))
        starts = [Expr.const(0)] * len(sizes)
        starts[axis], sizes[axis] = match.data, Expr.const(1)
        part = rewriter.add(SliceOp(op.input, starts, sizes))
        rewriter.replace(op, ReshapeOp(part.result, dims_of(op.result)))


def _loop_of(index: Expr, op: Operation) -> LoopOp | None:
    """The innermost loop the number of whose iteration the index depends on."""
    for loop in enclosing_loops(op):
        if loop.iteration is not None and loop.iteration.data in index.symbols:
            return loop
    return None


def _without_casts(value: SSAValue) -> tuple[SSAValue, int | None]:
    """The integer that is cast and reshaped, and the greatest one that fits into each type."""
    greatest: int | None = None
    while isinstance(op := value.owner, CastOp | ReshapeOp) and is_integer(element_type(op.input)):
        if isinstance(op, CastOp):
            most = limits(op.to)[1]
            greatest = most if greatest is None else min(greatest, most)
        value = op.input
    return value, greatest


class CollectSteps(Pattern[dict[int, ScatterNdOp]]):
    """loop(trip n, y) { slice k of y = f(k) } -> the slices as a scan output"""

    name = "collect-steps"
    roots = (LoopOp,)

    def __init__(self, fresh: FreshSymbols) -> None:
        self._fresh = fresh

    def match(self, op: LoopOp) -> Match[dict[int, ScatterNdOp]] | None:
        if op.iteration is None or (trips := known_trips(op)) is None:
            return None
        writes = {
            index: write
            for index in range(len(op.inits))
            if (write := _write(op, index, trips)) is not None
        }
        if not writes:
            return None
        return Match((op, *writes.values()), f"{len(writes)} outputs", writes)

    def rewrite(self, match: Match[dict[int, ScatterNdOp]], rewriter: Rewriter) -> None:
        op, writes = match.root, match.data
        assert isinstance(op, LoopOp)
        last = op.body.block.last_op
        assert last is not None
        rows: list[SSAValue] = []
        for write in writes.values():
            rows.append(_row(write.updates, last, rewriter))
        kept = [value for index, value in enumerate(yielded(op.body)) if index not in writes]
        yield_values(op, [*kept, *rows], rewriter)
        for write in writes.values():
            rewriter.erase(write)
        replace_loop(
            op,
            rewriter,
            trip_count=op.trip_count,
            condition=None,
            collected=list(writes),
            count=self._fresh.next(),
        )


def _row(updates: SSAValue, anchor: Operation, rewriter: Rewriter) -> SSAValue:
    """The only slice of a tensor; what legalization has made the tensor of, if it is that."""
    dims, made = dims_of(updates)[1:], updates.owner
    if isinstance(made, ReshapeOp) and dims_of(made.input) == dims:
        return made.input
    return rewriter.insert_before(anchor, ReshapeOp(updates, dims)).result


def _write(op: LoopOp, index: int, trips: Expr) -> ScatterNdOp | None:
    """The op that writes slice k of a carried tensor in iteration k, if that is its only use."""
    argument, value = op.carried_args[index], op.yielded_carried[index]
    write = value.owner
    if not isinstance(write, ScatterNdOp) or write.parent is not op.body.block:
        return None
    if write.input is not argument or write.reduction.data is not ScatterReduction.NONE:
        return None
    if not argument.has_one_use() or not value.has_one_use():
        return None
    assert op.iteration is not None
    dims, rows = dims_of(argument), dims_of(write.updates)
    is_next = iteration_index(write.indices) == Expr.symbol(op.iteration.data)
    fills = not op.made_dims[index] and dims[0] == trips
    # One index for a slice along the first dimension, and the slice is as large as any other.
    fits = dims_of(write.indices) == (1, 1) and rows == (1, *dims[1:])
    return write if is_next and fills and fits else None


class LoopToScanPass(PatternPass):
    """
    Slices that a loop reads and writes one after the other: inputs by the number of the iteration,
    and outputs that are stacked, as TensorArrays are after legalization.

    - gather(x, i) -> slice(x, i), in iteration k of a loop with a trip count [i = k + a or a - k as
      an expression, and always inside of the dimension]
    - loop(trip n, y) { f(k) to slice k of y } -> the stacked f(0), f(1), ..., and no y [y has n
      slices along its first dimension; nothing else reads or writes it in the loop]

    `count-iterations` gives loops their trip counts and indices these expressions. The initial
    values of y do not matter: each is overwritten. A loop that may end before has to keep those
    behind its end; what it writes is updated in place.
    """

    name = "loop-to-scan"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [ReadStep(), CollectSteps(FreshSymbols(module))]
