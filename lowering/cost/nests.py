"""How a schedule runs the loops of a kernel: tiles, their number, and what lies inside of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp, StoreOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import interval
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.estimate import Values, estimated_trips
from lowerdeck.lowering.loops.parameters import REST, Part, parts_of
from lowerdeck.lowering.loops.reductions import find_reductions
from lowerdeck.lowering.loops.tile import nest_of, order_of

NO_SCHEDULE = Schedule("")


def has_vectors(function: FuncOp, schedule: Schedule) -> bool:
    """True if a kernel says itself which of its loops become vectors."""
    loops = (op for op in function.walk() if isinstance(op, ForOp))
    return bool(schedule.lanes) or any(loop.mode is not None for loop in loops)


def is_vectorizable(loop: ForOp) -> bool:
    """
    True for a loop whose accesses, and those of the loops in it, are side by side or all the same,
    and that carries nothing but reductions.
    """
    variable = loop.body.block.args[0]
    if find_reductions(loop) is None:
        return False
    for op in all_ops(loop.body):
        if isinstance(op, ForOp):
            if variable in op.indices or op.mode is not None:
                return False
        elif op.regions or not _is_side_by_side(op, variable):
            return False
    return True


def _is_side_by_side(op: Operation, variable: SSAValue) -> bool:
    """True for anything but a load or store whose places lie apart for the values of a variable."""
    if not isinstance(op, (LoadOp, StoreOp)):
        return True
    names = {f"d{k}" for k, index in enumerate(op.indices) if index is variable}
    *outer, last = op.map.data or (Expr.const(0),)
    if any(names & expr.symbols for expr in outer):
        return False
    if not names & last.symbols:
        return True
    places = {name: (0, int(name in names)) for name in last.symbols}
    found = interval(last, places)
    return found is not None and found[1] - found[0] == 1


@dataclass(frozen=True)
class Chain:
    """Labeled loops in one another, of which a schedule makes tiles."""

    loops: Mapping[str, ForOp]
    order: Sequence[str]
    """From the outermost inward, as the loops over tiles are to run."""
    schedule: Schedule
    values: Values
    """Of the variables of loops, as they are assumed."""

    @staticmethod
    def of(top: ForOp, schedule: Schedule, values: Values) -> Chain | None:
        """The chain that begins with a loop; None if a schedule does not touch it."""
        if top.inits or top.label is None or top.mode is not None:
            return None
        loops = {loop.label.data: loop for loop in nest_of(top) if loop.label is not None}
        return Chain(loops, order_of(list(loops), schedule.order), schedule, values)

    @property
    def body(self) -> ForOp:
        """The innermost loop as it was built."""
        return list(self.loops.values())[-1]

    def step(self, label: str) -> int:
        """Elements of a whole tile."""
        return self.schedule.tile(label) * self.schedule.vector(label)

    def parts(self, label: str) -> list[tuple[int, Part]]:
        """The tiles of a loop: how many of each kind."""
        trips = estimated_trips(self.loops[label], self.values)
        count, lanes = self.schedule.tile(label), self.schedule.vector(label)
        if count * lanes == 1:
            return [(trips, Part(Expr.const(0), Expr.const(trips), 1, 1))]
        found = parts_of(Expr.const(trips), count, lanes, self.schedule.get(REST) or 0)
        ends = ((part.upper - part.lower).value or 0 for part in found)
        return [(-(-end // part.step), part) for end, part in zip(ends, found, strict=True)]

    def starts(self) -> float:
        """How often its loops over tiles begin."""
        begun, total = 1, 0
        for label in self.order:
            total += begun
            begun *= sum(count for count, _ in self.parts(label))
        return total

    def variants(self) -> Iterator[tuple[int, Mapping[str, Part]]]:
        """How many tiles of each shape there are: whole ones, and those at the ends."""
        labels = list(self.loops)
        for parts in product(*(self.parts(label) for label in labels)):
            number = prod(count for count, _ in parts)
            yield number, dict(zip(labels, (part for _, part in parts), strict=True))
