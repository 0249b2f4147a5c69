"""
Boxes that are kept because no better one overlaps them.

A tile of boxes at a time is held, in vectors, against all that have been kept before it; then its
own boxes get their turns. So boxes behind the last one that may be kept are never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.types import dims_of, element_type, i1
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import KernelLowering, anchor
from lowerdeck.lowering.nests.selection import AT_ONCE

TILE = AT_ONCE * AT_ONCE
"""
Boxes of a tile, whole vectors of any target: what is kept before it is sought once for all of them,
and their sides, areas and largest overlaps stay in the L1 cache together.
"""

_SIDES: Exact[range] = range(4)
"""Left, top, right and bottom."""

_HIGH: Exact[float] = 0.5
"""Limits above this one shrink."""


@record
class _Box:
    """Values, or the buffers of those of a tile."""

    sides: Sequence[SSAValue]
    """Left, top, right and bottom."""
    area: SSAValue
    label: SSAValue | None

    @property
    def parts(self) -> list[SSAValue]:
        """All that there is of it."""
        return [*self.sides, self.area, *([] if self.label is None else [self.label])]

    def at(self, b: KernelBuilder, lane: Expr) -> _Box:
        """A box of a tile."""
        *sides, area = (b.load(part, [lane]) for part in (*self.sides, self.area))
        return _Box(sides, area, None if self.label is None else b.load(self.label, [lane]))


@anchor(SuppressOp, alone=True)
def lower_suppress(k: KernelLowering, op: SuppressOp) -> None:
    """Groups are independent."""
    with k.builder.nest(dims_of(op.alive)[:1], parallel=True) as at:
        _Sweep(k, op, at[0]).lower()


class _Sweep:
    """The boxes of one group in their order."""

    def __init__(self, k: KernelLowering, op: SuppressOp, group: Expr) -> None:
        self._k, self._op, self._group, self._b = k, op, group, k.builder
        self._element, self._count = element_type(op.boxes), dims_of(op.alive)[1]
        self._size = TILE
        if (count := self._count.value) is not None:
            self._size = min(TILE, max(-(-count // AT_ONCE), 1) * AT_ONCE)
        *sides, area, self._largest = (self._scratch(self._element) for _ in (*_SIDES, 0, 0))
        label = None if op.labels is None else self._scratch(element_type(op.labels))
        self._held = _Box(sides, area, label)

    def _scratch(self, element: Attribute) -> SSAValue:
        return self._b.scratch(scalars.compute_type(element), [self._size])

    def lower(self) -> None:
        """At first none is kept. Behind its last box, a tile holds what counts for nothing."""
        b = self._b
        with b.loop(self._size) as lane:
            for part in (*self._held.parts, self._largest):
                b.store(scalars.constant(b, 0, ref_type(part).element), part, [lane])
        with b.loop(self._count) as place:
            b.store(b.integer(0, i1), self._k.outputs[0], [self._group, place])
        limit = scalars.widen(b, self._k.element(self._op.limit, ()))
        tiles = (self._count + (self._size - 1)) // self._size
        b.carry(tiles, [b.integer(0, i64), limit], self._tile)

    def _tile(self, number: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """
        The number of boxes that are kept, and the limit, after one more tile; one without a box
        that is alive, or after the last that may be kept, is passed over.
        """
        b, start = self._b, number * self._size
        inside = minimum(self._size, self._count - start)
        (is_any,) = b.carry(
            inside,
            [b.integer(0, i1)],
            lambda lane, found: [b.add(arith.OrIOp(found[0], self._is_alive(start + lane)))],
        )
        runs = b.add(arith.AndIOp(is_any, self._has_room(values[0])))
        none = b.integer(0, i64)
        length, before = (
            b.from_integer(b.add(arith.SelectOp(runs, b.as_integer(bound), none)))
            for bound in (inside, start)
        )
        with b.loop(length) as lane:
            box = self._box(start + lane)
            for value, part in zip(box.parts, self._held.parts, strict=True):
                b.store(value, part, [lane])
            b.store(scalars.lowest(b, self._element), self._largest, [lane])
        with b.loop(before) as place:
            with b.when(b.load(self._k.outputs[0], [self._group, place])):
                self._hold_against(self._box(place))
        return b.carry(length, values, lambda lane, own: self._turn(start, lane, own))

    def _turn(self, start: Expr, lane: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """A box is kept if it may be, and others are then held against it."""
        b, (kept, limit), element = self._b, values, self._element
        is_kept = b.add(arith.AndIOp(self._fits(lane, limit), self._is_alive(start + lane)))
        is_kept = b.add(arith.AndIOp(is_kept, self._has_room(kept)))
        b.store(is_kept, self._k.outputs[0], [self._group, start + lane])
        with b.when(is_kept):
            self._hold_against(self._held.at(b, lane))
        after = scalars.add(b, kept, b.add(arith.ExtUIOp(is_kept, i64)))
        if self._op.decay is None:
            return [after, limit]
        is_high = scalars.compare(b, "gt", limit, scalars.constant(b, _HIGH, element), element)
        lower = self._product(limit, self._number(self._op.shrinking))
        shrinks = b.add(arith.AndIOp(is_kept, is_high))
        return [after, b.add(arith.SelectOp(shrinks, lower, limit))]

    def _fits(self, lane: Expr, limit: SSAValue) -> SSAValue:
        """True if a box overlaps none that is kept too much."""
        b, largest = self._b, self._b.load(self._largest, [lane])
        if self._op.strict is not None:
            return scalars.compare(b, "le", largest, limit, self._element)
        is_more = scalars.compare(b, "gt", largest, limit, self._element)
        return b.add(arith.XOrIOp(is_more, b.integer(1, i1)))

    def _has_room(self, kept: SSAValue) -> SSAValue:
        most = self._b.as_integer(self._op.most_kept)
        return self._b.add(arith.CmpiOp(kept, most, "slt"))

    def _is_alive(self, place: Expr) -> SSAValue:
        return self._k.element(self._op.alive, [self._group, place])

    # Boxes

    def _box(self, place: Expr) -> _Box:
        at, op = [self._group, place], self._op
        sides = [
            scalars.widen(self._b, self._k.element(op.boxes, [*at, Expr.const(side)]))
            for side in _SIDES
        ]
        lengths = [self._with_border(self._sub(sides[axis + 2], sides[axis])) for axis in (0, 1)]
        label = None
        if op.labels is not None:
            label = scalars.widen(self._b, self._k.element(op.labels, at))
        return _Box(sides, self._product(lengths[0], lengths[1]), label)

    def _hold_against(self, kept: _Box) -> None:
        """The overlap of each box of the tile with one that is kept counts from here on."""
        b = self._b
        combine = scalars.larger if self._op.strict is None else scalars.maximum
        with b.loop(self._size) as lane:
            overlap = self._overlap(kept, self._held.at(b, lane))
            old = b.load(self._largest, [lane])
            b.store(combine(b, old, overlap, self._element), self._largest, [lane])

    def _overlap(self, one: _Box, other: _Box) -> SSAValue:
        b, element, zero = self._b, self._element, self._number(0)
        lengths = [self._shared_length(axis, one.sides, other.sides) for axis in (0, 1)]
        shared = self._product(lengths[0], lengths[1])
        union = self._sub(self._rounded(arith.AddfOp(one.area, other.area)), shared)
        if self._op.strict is None:
            overlap = self._rounded(arith.DivfOp(shared, union))
        else:
            # The area of a box with a NaN corner is NaN; what it shares need not be.
            is_shared = scalars.compare(b, "gt", shared, zero, element)
            are_numbers = b.add(arith.CmpfOp(one.area, other.area, "ord"))
            is_shared = b.add(arith.AndIOp(is_shared, are_numbers))
            divisor = b.add(arith.SelectOp(is_shared, union, self._number(1)))
            quotient = self._rounded(arith.DivfOp(shared, divisor))
            overlap = b.add(arith.SelectOp(is_shared, quotient, zero))
        if self._op.labels is None or one.label is None or other.label is None:
            return overlap
        is_same = scalars.compare(b, "eq", one.label, other.label, element_type(self._op.labels))
        return b.add(arith.SelectOp(is_same, overlap, zero))

    def _shared_length(
        self, axis: int, one: Sequence[SSAValue], other: Sequence[SSAValue]
    ) -> SSAValue:
        b, element, zero = self._b, self._element, self._number(0)
        first = scalars.larger(b, one[axis], other[axis], element)
        end, other_end = one[axis + 2], other[axis + 2]
        is_first = scalars.compare(b, "lt", end, other_end, element)
        last = b.add(arith.SelectOp(is_first, end, other_end))
        length = self._sub(last, first)
        shared = scalars.larger(b, zero, self._with_border(length), element)
        if self._op.must_meet is None:
            return shared
        meets = scalars.compare(b, "ge", length, zero, element)
        return b.add(arith.SelectOp(meets, shared, zero))

    # Arithmetic, rounded after each op

    def _number(self, value: float) -> SSAValue:
        b, element = self._b, self._element
        return scalars.rounded(b, scalars.constant(b, value, element), element)

    def _rounded(self, op: arith.MulfOp | arith.AddfOp | arith.SubfOp | arith.DivfOp) -> SSAValue:
        return scalars.rounded(self._b, self._b.add(op), self._element)

    def _product(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._rounded(arith.MulfOp(lhs, rhs))

    def _sub(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._rounded(arith.SubfOp(lhs, rhs))

    def _with_border(self, length: SSAValue) -> SSAValue:
        if self._op.border is None:
            return length
        return self._rounded(arith.AddfOp(length, self._number(self._op.margin)))
