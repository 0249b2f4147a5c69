"""Whether a function may store its result over an operand that it still reads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.vector import PrefetchOp
from lowerdeck.dialects.dims import Atom, Expr, constants
from lowerdeck.dialects.intervals import Bound, OpenInterval, open_interval
from lowerdeck.dialects.records import record
from lowerdeck.dialects.sizes import is_never_negative


@record
class Spot:
    """
    A load or a store: its position in the text, the loops around it, and the elements it accesses,
    of which `extents` are adjacent.
    """

    number: int
    block: Block
    loops: tuple[str, ...]
    indices: tuple[Expr, ...]
    extents: tuple[int, ...]


class Spots:
    """The loads and stores of a function, with indices over symbols of its loops."""

    def __init__(self, function: kernel.FuncOp) -> None:
        self.ranges: dict[str, OpenInterval | None] = {}
        """The ranges of loop variables; None for values loaded from memory."""
        self.trips: dict[str, Expr] = {}
        """The greatest possible trip count of each loop."""
        self.loads: dict[SSAValue, list[Spot]] = {}
        self.stores: dict[SSAValue, list[Spot]] = {}
        self.others: set[SSAValue] = set()
        """Buffers with any other use."""
        self._symbols: dict[SSAValue, Expr] = {}
        self._count = 0
        self._visit(function.body.block, ())

    def passed_between(self, first: Spot, second: Spot, number: int) -> Expr:
        """How far the loops between two spots in the text go along an axis."""
        own = {*first.loops, *second.loops}
        found: dict[str, Expr] = {}
        for spot in itertools.chain(*self.loads.values(), *self.stores.values()):
            if not first.number < spot.number < second.number or number >= len(spot.indices):
                continue
            split = by_loops(spot.indices[number], frozenset(self.trips))
            steps = split[0].items() if split is not None else ()
            found |= {name: self.trips[name] * step for name, step in steps if step > 0}
        passed = {name: way for name, way in found.items() if name not in own}
        known = (way for name, way in passed.items() if is_never_negative(self.trips[name]))
        return sum(known, Expr.const(0))

    def _visit(self, block: Block, loops: tuple[str, ...]) -> None:
        for op in block.ops:
            self._count += 1
            match op:
                case kernel.LoadOp():
                    self.loads.setdefault(op.ref, []).append(self._spot(op, loops, block))
                case kernel.StoreOp():
                    self.stores.setdefault(op.ref, []).append(self._spot(op, loops, block))
                case kernel.ForOp():
                    self._visit(op.body.block, (*loops, self._enter(op)))
                case kernel.ApplyOp():
                    (self._symbols[op.result],) = self._read(op.map.data, op.indices)
                case PrefetchOp():
                    pass
                case _:
                    self._visit_other(op, loops)

    def _visit_other(self, op: Operation, loops: tuple[str, ...]) -> None:
        self.others.update(op.operands)
        for result in op.results:
            self._unknown(result)
        for region in op.regions:
            for block in region.blocks:
                self._visit(block, loops)

    def _enter(self, loop: kernel.ForOp) -> str:
        """The symbol of the iteration number; the loop variable is computed from it."""
        lower, upper, step = self._read(loop.range.data, loop.indices)
        name = f"%{len(self._symbols)}"
        self._symbols[loop.body.block.args[0]] = lower + step * Expr.symbol(name)
        self.trips[name] = trips = (upper - lower).ceildiv(step)
        bounds = open_interval(trips, self.ranges)
        self.ranges[name] = None if bounds is None else (0, bounds[1] - 1)
        return name

    def _unknown(self, value: SSAValue) -> None:
        name = f"%{len(self._symbols)}"
        self._symbols[value] = Expr.symbol(name)
        self.ranges[name] = None

    def _read(self, exprs: Iterable[Expr], operands: Sequence[SSAValue]) -> list[Expr]:
        names = by_operand([self._symbols[value] for value in operands])
        return [expr.substitute(names) for expr in exprs]

    def _spot(
        self, op: kernel.LoadOp | kernel.StoreOp, loops: tuple[str, ...], block: Block
    ) -> Spot:
        indices = tuple(self._read(op.map.data, op.indices))
        extents = tuple(op.extents.get(axis, 1) for axis in range(len(indices)))
        return Spot(self._count, block, loops, indices, extents)


@record
class _Axis:
    """
    One index of a load and a store: the same multiples of the variables of their common loops, and
    the ranges of the terms added to them.
    """

    steps: Mapping[str, int]
    load: OpenInterval
    store: OpenInterval

    @property
    def differs_at_once(self) -> bool:
        """True if the two indices differ within one iteration of the loops."""
        return _is_below(self.load[1], self.store[0]) or _is_below(self.store[1], self.load[0])

    def differs_between(self, trips: Mapping[str, Expr]) -> bool:
        """
        True if the two indices differ between iterations with different values of one of these
        variables: each step exceeds the sum of all smaller steps and the added terms.
        """
        gaps = (self.load[1] - Expr.of(self.store[0]), self.store[1] - Expr.of(self.load[0]))
        numbers = constants(gaps)
        if numbers is None:
            return False
        reach = max(numbers)
        for name, step in sorted(self.steps.items(), key=lambda item: abs(item[1])):
            if abs(step) <= reach:
                return False
            # Only the last step may have an unknown trip count.
            count = trips[name].value
            reach = math.inf if count is None else reach + abs(step) * (count - 1)
        return True


def _is_below(high: Bound, low: Bound) -> bool:
    gap = (Expr.of(low) - high).value
    return gap is not None and gap > 0


class Overwriting:
    """What is known of functions whose only result may overwrite an operand."""

    def __init__(self) -> None:
        self._spots: dict[kernel.FuncOp, Spots] = {}
        self._known: dict[tuple[kernel.FuncOp, int], bool] = {}

    def is_safe(self, function: kernel.FuncOp, operand: int) -> bool:
        """
        True if the function may store its only result in the buffer of an operand: no element is
        loaded from there after a store to it.
        """
        key = (function, operand)
        if key not in self._known:
            self._known[key] = self._is_safe(function, operand)
        return self._known[key]

    def _is_safe(self, function: kernel.FuncOp, operand: int) -> bool:
        if function not in self._spots:
            self._spots[function] = Spots(function)
        spots, arguments = self._spots[function], function.body.block.args
        source, target = arguments[operand], arguments[-1]
        if source in spots.others or target in spots.others or source in spots.stores:
            return False
        loads, stores = spots.loads.get(source, ()), spots.stores.get(target, ())
        return all(_is_safe_pair(load, store, spots) for store in stores for load in loads)


def _is_safe_pair(load: Spot, store: Spot, spots: Spots) -> bool:
    """
    True if no iteration loads an element that another one, or itself before, has stored.

    If the outermost loops differ, threads may be in both: then the two must never meet.
    """
    shared = common_loops(load.loops, store.loops)
    axes = [
        axis
        for number in range(len(load.indices))
        if (axis := _axis(load, store, number, frozenset(shared), spots)) is not None
    ]

    def never_meet() -> bool:
        numbers = range(len(load.indices))
        return any(axis.differs_at_once for axis in axes) or (
            load.block is not store.block
            and any(_are_apart(load, store, number, spots) for number in numbers)
        )

    if not shared and load.block is not store.block:
        return never_meet()
    telling = [axis for axis in axes if axis.differs_between(spots.trips)]
    told = {name for axis in telling for name in axis.steps}
    if any(name not in told and spots.trips[name] != 1 for name in shared):
        return False
    return load.number < store.number or never_meet()


def _are_apart(load: Spot, store: Spot, number: int, spots: Spots) -> bool:
    """
    True if, along one axis, one of them is beyond the other in all iterations. What loops between
    the two in the text pass over lies between them: rows are shared out like that where their
    number is open.
    """
    first, second = sorted((load, store), key=lambda spot: spot.number)
    ends = _ends(first.indices[number], spots)
    others = _ends(second.indices[number], spots)
    if ends is None or others is None:
        return False
    between = spots.passed_between(first, second, number)
    (low, high), (least, most) = ends, others
    after = least - high - first.extents[number]
    before = low - most - second.extents[number]
    return any(is_never_negative(gap) for gap in (after - between, after, before))


def _ends(index: Expr, spots: Spots) -> tuple[Expr, Expr] | None:
    """The least and the greatest value of an index; None if it is not linear in its loops."""
    split = by_loops(index, frozenset(spots.trips))
    if split is None:
        return None
    steps, low = split
    high = low
    for name, step in steps.items():
        reach = (spots.trips[name] - 1) * step
        low, high = (low, high + reach) if step > 0 else (low + reach, high)
    # Other values of the function are no sizes: they may be negative.
    if any(name in spots.ranges for name in low.symbols | high.symbols):
        return None
    return low, high


def common_loops(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The loops around both, from the outermost one inward."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return [name for name, _ in pairs]


def _axis(
    load: Spot, store: Spot, number: int, shared: frozenset[str], spots: Spots
) -> _Axis | None:
    """The relation of one index of both; None if the index is not affine."""
    parts = [by_loops(spot.indices[number], shared) for spot in (load, store)]
    known = [part for part in parts if part is not None]
    if len(known) < 2 or known[0][0] != known[1][0]:
        return None
    bounds: list[OpenInterval] = []
    for spot, (_, rest) in zip((load, store), known, strict=True):
        if (found := open_interval(rest, spots.ranges)) is None:
            return None
        bounds.append((found[0], found[1] + spot.extents[number] - 1))
    return _Axis(known[0][0], *bounds)


def by_loops(expr: Expr, names: frozenset[str]) -> tuple[dict[str, int], Expr] | None:
    """An expression as multiples of names and the added term; None if it is not linear in them."""
    steps: dict[str, int] = {}
    rest: list[tuple[tuple[Atom, ...], int]] = []
    for monomial, coefficient in expr.terms:
        if names.isdisjoint(Expr(((monomial, 1),)).symbols):
            rest.append((monomial, coefficient))
        elif len(monomial) == 1 and monomial[0].kind == "symbol":
            steps[monomial[0].name] = coefficient
        else:
            return None
    return steps, Expr(tuple(rest))
