"""
How many lines a kernel brings from beyond a cache.

Of a loop whose iterations touch no more than the cache holds, each line comes once. Of any other,
each iteration brings its own again. A run whose data all fit finds them where the last run left
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import interval
from lowerdeck.lowering.cost.nests import NO_SCHEDULE, Chain
from lowerdeck.lowering.loops.estimate import (
    ASSUMED_SIZE,
    Values,
    estimated_trips,
    middle_values,
)
from lowerdeck.lowering.targets.base import Target

_WRITTEN = 2
"""A line that is written comes first, and goes afterwards."""


@dataclass(frozen=True)
class _Access:
    """A load or store: where, by the variables of loops."""

    ref: SSAValue
    map: Sequence[Expr]
    indices: Sequence[SSAValue]
    weight: int


@dataclass
class _Loop:
    """A loop over tiles or steps; the outermost has one iteration."""

    trips: int
    variable: SSAValue | None
    step: int
    accesses: list[_Access] = field(default_factory=list[_Access])
    loops: list[_Loop] = field(default_factory=list["_Loop"])

    def all_accesses(self) -> Iterator[_Access]:
        yield from self.accesses
        for loop in self.loops:
            yield from loop.all_accesses()


@dataclass
class _Nest:
    top: _Loop
    within: dict[SSAValue, int]
    """Elements of a variable that one tile has."""


def lines_from_beyond(function: kernel.FuncOp, target: Target, cache_bytes: int) -> float:
    """The lines that a cache of so many bytes does not hold when they are needed."""
    schedule = NO_SCHEDULE if function.schedule is None else function.schedule.data
    nest = _Nest(_Loop(1, None, 1), {})
    values = middle_values(function.body.block)
    _build(function.body.block, (schedule, values), nest.top, nest.within)
    counter = _Counter(target.machine.line_bytes, cache_bytes, nest.within)
    if counter.bytes_of(nest.top, {}) <= cache_bytes:
        return 0.0
    return sum(counter.lines(nest.top, {}).values())


def _build(
    block: Block, around: tuple[Schedule, Values], into: _Loop, within: dict[SSAValue, int]
) -> None:
    schedule, values = around
    for op in block.ops:
        if isinstance(op, kernel.ForOp):
            chain = Chain.of(op, schedule, values)
            inner = into
            if op.mode is not None:
                # Lanes and copies side by side are inside of all loops.
                within[op.body.block.args[0]] = estimated_trips(op, values)
                _build(op.body.block, around, into, within)
                continue
            if chain is None:
                inner = _Loop(estimated_trips(op, values), op.body.block.args[0], 1)
                into.loops.append(inner)
                _build(op.body.block, around, inner, within)
                continue
            for label in chain.order:
                loop, step = chain.loops[label], chain.step(label)
                extent = estimated_trips(loop, values)
                variable = loop.body.block.args[0]
                within[variable] = min(step, extent)
                new = _Loop(-(-extent // step), variable, step)
                inner.loops.append(new)
                inner = new
            _build(chain.body.body.block, around, inner, within)
        elif isinstance(op, kernel.LoadOp):
            into.accesses.append(_Access(op.ref, op.map.data, op.indices, 1))
        elif isinstance(op, kernel.StoreOp):
            into.accesses.append(_Access(op.ref, op.map.data, op.indices, _WRITTEN))
        else:
            for region in op.regions:
                for inside in region.blocks:
                    _build(inside, around, into, within)


Extents = Mapping[SSAValue, int]
"""How many elements of a variable loops run through."""


@dataclass
class _Counter:
    line_bytes: int
    cache_bytes: int
    within: Mapping[SSAValue, int]

    def lines(self, loop: _Loop, running: Extents) -> dict[SSAValue, float]:
        """By buffer, the lines that all iterations of a loop bring."""
        if self.bytes_of(loop, running, inside=True) <= self.cache_bytes:
            return self._distinct(loop, running)
        total: dict[SSAValue, float] = {}
        for part in [self.lines(inner, running) for inner in loop.loops]:
            for ref, number in part.items():
                total[ref] = total.get(ref, 0.0) + number * loop.trips
        return total

    def bytes_of(self, loop: _Loop, running: Extents, *, inside: bool = False) -> float:
        """What a loop touches; `inside`: what one iteration of it does."""
        found = self._distinct(loop, running, inside=inside, is_weighted=False)
        return sum(found.values()) * self.line_bytes

    def _distinct(
        self, loop: _Loop, running: Extents, *, inside: bool = False, is_weighted: bool = True
    ) -> dict[SSAValue, float]:
        found: dict[SSAValue, float] = {}
        extents = dict(running)
        if not inside:
            _extend(extents, loop, self.within)
        self._collect(loop, extents, found, is_weighted=is_weighted)
        return found

    def _collect(
        self, loop: _Loop, extents: Extents, found: dict[SSAValue, float], *, is_weighted: bool
    ) -> None:
        for access in loop.accesses:
            lines = self._of_access(access, extents) * (access.weight if is_weighted else 1)
            found[access.ref] = max(found.get(access.ref, 0.0), lines)
        for inner in loop.loops:
            own = dict(extents)
            _extend(own, inner, self.within)
            self._collect(inner, own, found, is_weighted=is_weighted)

    def _of_access(self, access: _Access, extents: Extents) -> float:
        type_ = ref_type(access.ref)
        ranges = {
            f"d{k}": (0, extents.get(index, self.within.get(index, 1)) - 1)
            for k, index in enumerate(access.indices)
        }
        counts = [
            _values(expr, ranges, dim)
            for expr, dim in zip(access.map, type_.dims.data, strict=True)
        ]
        return _lines(counts, type_, self.line_bytes)


def _extend(extents: dict[SSAValue, int], loop: _Loop, within: Mapping[SSAValue, int]) -> None:
    if loop.variable is not None:
        whole = (loop.trips - 1) * loop.step + min(loop.step, within.get(loop.variable, 1))
        extents[loop.variable] = max(whole, 1)


def _values(expr: Expr, ranges: Mapping[str, tuple[int, int]], dim: Expr) -> tuple[int, int, int]:
    """How many values an index has, from the first to the last of how many, and of how many."""
    size = dim.value if dim.value is not None else ASSUMED_SIZE
    places = [high + 1 for name, (_, high) in ranges.items() if name in expr.symbols]
    found = interval(expr, ranges)
    span = size if found is None else max(min(found[1] - found[0] + 1, size), 1)
    return min(span, prod(places)) if places else 1, span if places else 1, size


def _lines(counts: Sequence[tuple[int, int, int]], type_: RefType, line_bytes: int) -> float:
    """Of a box of elements: rows that fill their dimension lie side by side with the next ones."""
    elements_in_line = max(line_bytes // type_.item_size, 1)
    run, rows, is_whole = 1.0, 1.0, True
    for number, span, size in reversed(counts):
        if is_whole and run * span >= run:
            apart = span / number
            run *= span if apart < elements_in_line else number * elements_in_line
            is_whole = number == size
        else:
            rows *= number
    return rows * max(run / elements_in_line, 1.0)
