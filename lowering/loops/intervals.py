"""The interval of an index, and whether two regions of a buffer can overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import Bound, OpenInterval, open_interval
from lowerdeck.dialects.records import record


@record
class Interval:
    """Integers from `low` to `high`, both included."""

    low: Expr
    high: Expr

    @staticmethod
    def of(bounds: OpenInterval) -> Interval:
        """The interval between bounds."""
        return Interval(Expr.of(bounds[0]), Expr.of(bounds[1]))

    @property
    def bounds(self) -> OpenInterval:
        """The ends, as numbers if they are constant."""
        return _bound(self.low), _bound(self.high)

    def is_before(self, other: Interval) -> bool:
        """True if every integer here is provably less than every integer there."""
        gap = (other.low - self.high).value
        return gap is not None and gap > 0


def _bound(expr: Expr) -> Bound:
    return expr if expr.value is None else expr.value


Intervals = Mapping[SSAValue, Interval]
"""The intervals of loop variables."""


def interval_of(expr: Expr, operands: Sequence[SSAValue], known: Intervals) -> Interval | None:
    """The interval of an expression over operands d0, d1, ...; None if it cannot be determined."""
    places = [known.get(value) for value in operands]
    ranges = by_operand([None if place is None else place.bounds for place in places])
    found = open_interval(expr, ranges)
    return None if found is None else Interval.of(found)


def range_of(loop: kernel.ForOp, known: Intervals) -> Interval | None:
    """The interval of the variable of a loop, if the loop runs at all."""
    lower, upper, step = (interval_of(expr, loop.indices, known) for expr in loop.range.data)
    if lower is None or upper is None:
        return None
    last = upper.high - 1
    if step is not None and (stride := step.low.value) and lower.low == lower.high:
        last = lower.low + (last - lower.low) // stride * stride
    return Interval(lower.low, last)


@record
class Access:
    """A load or store: the buffer, and the interval of each index, None if unknown."""

    ref: SSAValue
    is_store: bool
    indices: tuple[Interval | None, ...]

    def meets(self, other: Access) -> bool:
        """False if the two access different buffers, or certainly differ in an index."""
        if self.ref is not other.ref:
            return False
        return not any(
            a is not None and b is not None and (a.is_before(b) or b.is_before(a))
            for a, b in zip(self.indices, other.indices, strict=True)
        )


def accesses_in(op: Operation, known: Intervals | None = None) -> list[Access]:
    """Every load and store of an op and its nested ops, except borders, which meet no other."""
    inner = dict(known or {})
    if isinstance(op, kernel.ForOp) and (own := range_of(op, inner)) is not None:
        inner[op.body.block.args[0]] = own
    if isinstance(op, kernel.StoreOp) and op.border is not None:
        return []
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        return [_access(op, inner)]
    found: list[Access] = []
    for nested in (op for region in op.regions for block in region.blocks for op in block.ops):
        if isinstance(nested, kernel.ApplyOp):
            place = interval_of(nested.map.data[0], nested.indices, inner)
            if place is not None:
                inner[nested.result] = place
        found += accesses_in(nested, inner)
    return found


def _access(op: kernel.LoadOp | kernel.StoreOp, known: Intervals) -> Access:
    is_store = isinstance(op, kernel.StoreOp)
    indices = [interval_of(expr, op.indices, known) for expr in op.map.data]
    for axis, extent in op.extents.items():
        if (last := indices[axis]) is not None:
            indices[axis] = Interval(last.low, last.high + extent - 1)
    return Access(op.ref, is_store, tuple(indices))


def are_independent(ops: Sequence[Operation]) -> bool:
    """True if none of the ops stores to an element that another one loads or stores."""
    accesses = [accesses_in(op) for op in ops]
    return not any(
        (mine.is_store or other.is_store) and mine.meets(other)
        for number, first in enumerate(accesses)
        for second in accesses[:number]
        for mine in first
        for other in second
    )
