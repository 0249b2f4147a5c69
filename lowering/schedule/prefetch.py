"""`prefetch`: ask for the weights that a kernel reads next while it computes with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import PrefetchOp, lanes_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.schedule.indices import Indices
from lowerdeck.lowering.schedule.parameters import SCHEDULE, Schedule
from lowerdeck.lowering.schedule.unroll import limit_by_parents

LINE = 64
"""Bytes that come into the cache at once."""


def prefetch(function: FuncOp, ref: SSAValue) -> None:
    """Prefetch in every innermost reduction that reads vectors of a buffer."""
    for loop in list(function.walk()):
        if not isinstance(loop, ForOp) or not loop.inits:
            continue
        loads = [
            op
            for op in loop.body.block.ops
            if isinstance(op, LoadOp) and op.ref is ref and lanes_of(op.result.type)
        ]
        if loads:
            _prefetch_next(loop, loads)


def _prefetch_next(loop: ForOp, loads: Sequence[LoadOp]) -> None:
    """
    Ask for what lies one panel behind what an iteration reads. The iterations of a loop around it
    that read the same panel take turns with the lines.
    """
    type_ = ref_type(loads[0].ref)
    indices = Indices()
    limit_by_parents(loads[0], indices)
    places = [indices.read(load.map.data, load.indices) for load in loads]
    offsets = [type_.offset(place) for place in places]
    line = LINE // type_.item_size
    spans = [
        (distance, distance + lanes_of(load.result.type))
        for load, offset in zip(loads, offsets, strict=True)
        if (distance := (offset - offsets[0]).value) is not None
    ]
    if len(spans) < len(loads) or min(spans)[0] < 0:
        return
    lines = -(-max(spans)[1] // line)
    sweep, turns = _sweep(loop, offsets[0], indices)
    each = -(-lines // turns)
    first = loop.body.block.first_op
    assert first is not None
    for number in range(each):
        turn = Expr.const(number) if sweep is None else (sweep * each + number) % lines
        offset = offsets[0] + _panel(loop, type_, places[0], indices) + turn * line
        (place,), operands = indices.write([offset])
        new = PrefetchOp(loads[0].ref, place, operands)
        new.location = loads[0].location
        loop.body.block.insert_op_before(new, first)


def _panel(loop: ForOp, type_: RefType, place: Sequence[Expr], indices: Indices) -> Expr:
    """
    The size of what is read for one panel: what lies further in than the dimensions that depend on
    independent loops, which are those with labels.
    """
    others = {
        str(indices.symbol(parent.body.block.args[0]))
        for parent in _loops_around(loop)
        if parent.label is not None
    }
    for index, stride in reversed(list(zip(place, type_.strides.data, strict=True))):
        if index.symbols & others:
            return stride
    return type_.elements


def _loops_around(loop: ForOp) -> Iterator[ForOp]:
    parent = loop.parent_op()
    while isinstance(parent, ForOp):
        yield parent
        parent = parent.parent_op()


def _sweep(loop: ForOp, offset: Expr, indices: Indices) -> tuple[Expr | None, int]:
    """The innermost loop that repeats a reduction with the same weights, and its trips."""
    for parent in _loops_around(loop):
        symbol = indices.symbol(parent.body.block.args[0])
        lower, upper, step = (bound.value for bound in parent.range.data)
        if str(symbol) not in offset.symbols and (lower, step) == (0, 1) and (upper or 0) > 1:
            return symbol, upper or 1
    return None, 1


@dataclass(frozen=True)
class PrefetchPass(ModulePass):
    """
    Where the `schedule` of a kernel names a buffer in `prefetch`, each step of a reduction that
    reads vectors of it asks for what lies one panel further on: a panel is what all reductions read
    for one iteration of the loops with labels. Behind the last one lie the weights of the next
    kernel.
    """

    name = "prefetch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            schedule = Schedule.of(function.attributes.get(SCHEDULE))
            if schedule is not None and schedule.prefetch is not None:
                prefetch(function, function.body.block.args[schedule.prefetch])
