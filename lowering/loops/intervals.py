"""The interval of an index, and whether two regions of a buffer can overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.types import ref_type
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
class Offsets:
    """Where elements lie in memory: `first` and up, by multiples of each of some strides."""

    first: int
    strides: tuple[tuple[int, int], ...]
    """Each with the largest of its multiples."""

    @staticmethod
    def of(op: kernel.LoadOp | kernel.StoreOp, known: Intervals) -> Offsets | None:
        """None if they are no sum of multiples of indices from a number to a number."""
        offset = ref_type(op.ref).offset(op.map.data)
        ranges = by_operand([known.get(value) for value in op.indices])
        first, strides = 0, list[tuple[int, int]]()
        for monomial, n in offset.terms:
            if not monomial:
                first += n
                continue
            place = ranges.get(monomial[0].name) if len(monomial) == 1 else None
            if monomial[0].kind != "symbol" or place is None:
                return None
            low, high = place.low.value, place.high.value
            if low is None or high is None:
                return None
            first += n * (low if n > 0 else high)
            strides.append((abs(n), max(high - low, 0)))
        for axis, extent in op.extents.items():
            if (stride := ref_type(op.ref).strides.data[axis].value) is None or stride < 0:
                return None
            strides.append((stride, extent - 1))
        return Offsets(first, tuple(strides))

    def are_apart(self, other: Offsets) -> bool:
        """
        True if no offset is in both: these and those lie in two intervals that do not meet, or do
        so modulo one of their strides, for example from row to row.
        """
        ahead = other.first - self.first
        if ahead >= self._length() or -ahead >= other._length():
            return True
        moduli = {n for n, _ in (*self.strides, *other.strides) if n > 1}
        return any(ahead % n >= self._length(n) and -ahead % n >= other._length(n) for n in moduli)

    def _length(self, modulus: int = 0) -> int:
        """Of the interval in which the offsets lie, modulo a number."""
        return 1 + sum(n * most for n, most in self.strides if not modulus or n % modulus)


@record
class Access:
    """
    A load or store: the buffer, and the interval of each index, None if unknown, and the offsets,
    None if they are not known.
    """

    ref: SSAValue
    is_store: bool
    indices: tuple[Interval | None, ...]
    offsets: Offsets | None

    def meets(self, other: Access) -> bool:
        """False if the two access different buffers, or certainly different elements."""
        if self.ref is not other.ref:
            return False
        if any(
            a is not None and b is not None and (a.is_before(b) or b.is_before(a))
            for a, b in zip(self.indices, other.indices, strict=True)
        ):
            return False
        one, two = self.offsets, other.offsets
        return one is None or two is None or not one.are_apart(two)


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
    return Access(op.ref, is_store, tuple(indices), Offsets.of(op, known))


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
