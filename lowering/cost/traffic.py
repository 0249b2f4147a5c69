"""
How many lines a kernel brings from beyond a cache.

Of a loop whose iterations touch no more than the cache holds, each line comes once. Of any other,
each iteration brings its own again. A run whose data all fit finds them where the last run left
them.

Lines that lie side by side are asked for ahead. Where the order of loops jumps from one page to
another before it goes on, no stream is there yet, and each page may have to be looked up in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import TransposeOp, lanes_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import Interval, interval
from lowerdeck.dialects.records import record
from lowerdeck.lowering.loops.estimate import ASSUMED_SIZE, Values, estimated_range, middle_values
from lowerdeck.lowering.targets.machine import Machine

_PAGES_OF_STREAM = 2
"""Of a run in memory, before lines come as fast as they can."""


@record
class Lines:
    """Those that come; of those that are written, each goes, too."""

    read: float
    written: float
    apart: float = 0.0
    """Of all, those of runs so short that no stream brings them."""
    walks: float = 0.0
    """Pages that are looked up in tables for them."""

    def without(self, others: Lines) -> Lines:
        """Those that are not among others."""
        read, written = self.read - others.read, self.written - others.written
        return Lines(max(read, 0.0), max(written, 0.0))


@record
class _Access:
    """Loads or stores that differ in constants: where, by the variables of loops."""

    ref: SSAValue
    map: Sequence[Expr]
    """Without constants."""
    indices: Sequence[SSAValue]
    lanes: int
    along: int
    """The dimension of the lanes."""
    writes: bool
    constants: Sequence[set[int]]
    """By dimension."""


@dataclass(eq=False)
class _Loop:
    """The outermost has one iteration."""

    range: tuple[int, int, int]
    variable: SSAValue | None
    accesses: dict[tuple[object, ...], _Access] = field(
        default_factory=dict[tuple[object, ...], _Access]
    )
    loops: list[_Loop] = field(default_factory=list["_Loop"])

    @property
    def trips(self) -> int:
        first, end, step = self.range
        return max(-(-(end - first) // step), 0)


def lines_from_beyond(
    function: kernel.FuncOp, machine: Machine, caches: Sequence[int]
) -> list[Lines]:
    """The lines that caches of so many bytes do not hold when they are needed."""
    values = middle_values(function.body.block)
    top = _Loop((0, 1, 1), None)
    _build(function.body.block, values, top)
    counter = _Counter(machine, values)
    return [counter.beyond(top, size) for size in caches]


def _build(block: Block, values: Values, into: _Loop) -> None:
    for op in block.ops:
        if isinstance(op, kernel.ForOp):
            inner = _Loop(estimated_range(op, values), op.body.block.args[0])
            into.loops.append(inner)
            _build(op.body.block, values, inner)
        elif isinstance(op, (kernel.LoadOp, kernel.StoreOp)):
            _add(op, into)
        elif not isinstance(op, TransposeOp):
            for region in op.regions:
                for inside in region.blocks:
                    _build(inside, values, into)


def _add(op: kernel.LoadOp | kernel.StoreOp, into: _Loop) -> None:
    """Put an access to those that differ in constants only."""
    is_load = isinstance(op, kernel.LoadOp)
    lanes = max(lanes_of(op.result.type if is_load else op.value.type), 1)
    map_, along = op.map.data, len(op.map.data) - 1
    if is_load:
        lanes = lanes * (op.stride.data if op.stride is not None else 1)
        lanes = max(lanes // (op.repeat.data if op.repeat is not None else 1), 1)
        along = along if op.axis is None else op.axis.data
    constants = [_constant(expr) for expr in map_]
    rest = [expr - number for expr, number in zip(map_, constants, strict=True)]
    key = (op.ref, tuple(rest), tuple(op.indices), lanes, along, not is_load)
    known = into.accesses.setdefault(
        key, _Access(op.ref, rest, op.indices, lanes, along, not is_load, [set() for _ in map_])
    )
    for numbers, number in zip(known.constants, constants, strict=True):
        numbers.add(number)


def _constant(expr: Expr) -> int:
    return sum(number for monomial, number in expr.terms if not monomial)


_Ranges = Mapping[SSAValue, tuple[int, int, int]]
"""Of the variables of loops that run: first, last and how many."""


@dataclass(frozen=True)
class _Found:
    """Lines; how many of them are apart from others; and walks for them."""

    number: float = 0.0
    apart: float = 0.0
    walks: float = 0.0

    def __add__(self, other: _Found) -> _Found:
        return _Found(
            self.number + other.number, self.apart + other.apart, self.walks + other.walks
        )

    def __mul__(self, times: float) -> _Found:
        return _Found(self.number * times, self.apart * times, self.walks * times)


_Lines = dict[tuple[SSAValue, bool], _Found]
"""By buffer, and whether they are written."""


@record
class _Box:
    """Where accesses are."""

    sides: tuple[tuple[int, int, int], ...]
    """By dimension: the first and the last value of an index, and how many there are."""
    most: float
    """Lines: no more than those of all accesses, each by itself."""
    apart: float
    """The share of lines that no stream brings."""
    walks: float
    """By line."""


@dataclass
class _Counter:
    machine: Machine
    values: Values
    known: dict[tuple[_Loop, tuple[SSAValue, ...]], _Lines] = field(
        default_factory=dict[tuple[_Loop, tuple[SSAValue, ...]], _Lines]
    )
    """What a loop touches, by the variables that run."""

    @property
    def line_bytes(self) -> int:
        return self.machine.line_bytes

    def beyond(self, top: _Loop, cache_bytes: int) -> Lines:
        """What a cache of so many bytes does not hold."""
        if self.bytes_of(top, {}) <= cache_bytes:
            return Lines(0.0, 0.0)
        found = self.lines(top, {}, cache_bytes)
        written = sum(own.number for (_, writes), own in found.items() if writes)
        total = sum(found.values(), _Found())
        return Lines(total.number - written, written, total.apart, total.walks)

    def lines(self, loop: _Loop, running: _Ranges, cache_bytes: int) -> _Lines:
        """The lines that all iterations of a loop bring."""
        if self.bytes_of(loop, running, inside=True) <= cache_bytes:
            return self._distinct(loop, running)
        total: _Lines = {}
        own = _Loop(loop.range, loop.variable, loop.accesses)
        for part in [self._distinct(own, running, inside=True)] + [
            self.lines(inner, running, cache_bytes) for inner in loop.loops
        ]:
            for key, number in part.items():
                total[key] = total.get(key, _Found()) + number * loop.trips
        return total

    def bytes_of(self, loop: _Loop, running: _Ranges, *, inside: bool = False) -> float:
        """What a loop touches; `inside`: what one iteration of it does."""
        found = self._distinct(loop, running, inside=inside)
        refs: dict[SSAValue, float] = {}
        for (ref, _), number in found.items():
            refs[ref] = max(refs.get(ref, 0.0), number.number)
        return sum(refs.values()) * self.line_bytes

    def _distinct(self, loop: _Loop, running: _Ranges, *, inside: bool = False) -> _Lines:
        ranges = dict(running)
        if not inside:
            _run(ranges, loop)
        key = loop, tuple(ranges)
        if (known := self.known.get(key)) is not None:
            return known
        boxes: dict[tuple[SSAValue, bool], list[_Box]] = {}
        self._collect(loop, ranges, boxes)
        written = {ref for ref, writes in boxes if writes}
        found = {key: self._of_boxes(key[0], own) for key, own in boxes.items()}
        # What is read and written comes once.
        self.known[key] = {own: n for own, n in found.items() if own[1] or own[0] not in written}
        return self.known[key]

    def _collect(
        self, loop: _Loop, ranges: _Ranges, boxes: dict[tuple[SSAValue, bool], list[_Box]]
    ) -> None:
        for access in loop.accesses.values():
            boxes.setdefault((access.ref, access.writes), []).append(self._box(access, ranges))
        for inner in loop.loops:
            own = dict(ranges)
            _run(own, inner)
            if inner.trips:
                self._collect(inner, own, boxes)

    def _box(self, access: _Access, ranges: _Ranges) -> _Box:
        own: dict[str, Interval] = {}
        counts: dict[str, int] = {}
        for k, index in enumerate(access.indices):
            middle = self.values.get(index)
            if (found := ranges.get(index)) is not None:
                own[f"d{k}"], counts[f"d{k}"] = found[:2], found[2]
            elif middle is not None:
                own[f"d{k}"], counts[f"d{k}"] = (middle, middle), 1
        dims = ref_type(access.ref).dims.data
        sides: list[tuple[int, int, int]] = []
        for axis, (expr, dim, numbers) in enumerate(
            zip(access.map, dims, access.constants, strict=True)
        ):
            lanes = access.lanes if axis == access.along else 1
            size = dim.value if dim.value is not None else ASSUMED_SIZE
            span = interval(expr, own)
            if span is None:
                # An index from data may be any.
                sides.append((0, size - 1, size))
                continue
            first, last = span[0] + min(numbers), span[1] + max(numbers) + lanes - 1
            first, last = max(min(first, size - 1), 0), max(min(last, size - 1), 0)
            number = prod(counts.get(name, 1) for name in expr.symbols) * len(numbers) * lanes
            sides.append((first, last, max(min(number, last - first + 1), 1)))
        times = prod(number for _, _, number in ranges.values())
        times *= prod(len(numbers) for numbers in access.constants)
        elements = max(self.line_bytes // ref_type(access.ref).item_size, 1)
        return _Box(
            tuple(sides), times * max(access.lanes / elements, 1.0), *self._jumps(access, ranges)
        )

    def _jumps(self, access: _Access, ranges: _Ranges) -> tuple[float, float]:
        """
        What share of the lines of an access no stream brings, and walks by line: where loops jump
        to another page, from the innermost one outward.
        """
        page, run = self.machine.page_bytes, access.lanes * ref_type(access.ref).item_size
        copies = self._copies(access)
        places = {
            f"d{k}": ranges[index][0] if index in ranges else self.values.get(index, ASSUMED_SIZE)
            for k, index in enumerate(access.indices)
        }
        pages = 0.0
        for variable, (first, last, count) in reversed([*ranges.items()]):
            # Streams side by side are one as soon as each reaches the next.
            while copies and copies[0][0] <= run:
                step, number = copies.pop(0)
                run += step * (number - 1)
            if count < 2:
                continue
            there = {
                f"d{k}": places[f"d{k}"] + (last - first) // (count - 1)
                for k, index in enumerate(access.indices)
                if index is variable
            }
            step = abs(self._byte(access, {**places, **there}) - self._byte(access, places))
            if pages and step < page:
                break  # what is on these pages comes next
            if step >= max(page, run + 1):
                pages = max(pages, run / page, 1.0) * count
            elif not pages:
                run += step * (count - 1)
        if not pages:
            return 0.0, 0.0
        apart = min(_PAGES_OF_STREAM * page / run, 1.0)
        walks = 1 / max(min(run, page) / self.line_bytes, 1.0)
        return apart, walks if pages > self.machine.far_pages else 0.0

    @staticmethod
    def _copies(access: _Access) -> list[tuple[int, int]]:
        """How many bytes copies of an access lie apart, and how many there are, nearest first."""
        type_ = ref_type(access.ref)
        return sorted(
            ((max(numbers) - min(numbers)) // (len(numbers) - 1) * stride, len(numbers))
            for numbers, stride in zip(
                access.constants,
                (type_.item_size * (s.value or ASSUMED_SIZE) for s in type_.strides.data),
                strict=True,
            )
            if len(numbers) > 1
        )

    @staticmethod
    def _byte(access: _Access, places: Mapping[str, int]) -> int:
        """Where an access is, without what is constant."""
        type_, place = ref_type(access.ref), 0
        for expr, stride in zip(access.map, type_.strides.data, strict=True):
            known = {name: places.get(name, ASSUMED_SIZE) for name in expr.symbols}
            place += expr.evaluate(known) * (stride.value or ASSUMED_SIZE)
        return type_.item_size * place

    def _of_boxes(self, ref: SSAValue, boxes: Sequence[_Box]) -> _Found:
        """Those of all boxes together: no more than those of what is around them."""
        type_, separate = ref_type(ref), _Found()
        distinct = set(boxes)
        for box in distinct:
            number = min(_lines(box.sides, type_, self.line_bytes), box.most)
            separate += _Found(1.0, box.apart, box.walks) * number
        if len(distinct) == 1:
            return separate
        around = [_around(sides) for sides in zip(*(box.sides for box in distinct), strict=True)]
        most = _lines(around, type_, self.line_bytes)
        return separate * min(most / separate.number, 1.0) if separate.number else separate


def _around(sides: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    firsts, lasts, numbers = zip(*sides, strict=True)
    first, last = min(firsts), max(lasts)
    return first, last, min(last - first + 1, sum(numbers))


def _run(ranges: dict[SSAValue, tuple[int, int, int]], loop: _Loop) -> None:
    if loop.variable is not None and loop.trips:
        first, _, step = loop.range
        ranges[loop.variable] = (first, first + (loop.trips - 1) * step, loop.trips)


def _lines(sides: Sequence[tuple[int, int, int]], type_: RefType, line_bytes: int) -> float:
    """Of a box of elements: rows that fill their dimension lie side by side with the next ones."""
    if not sides:
        return 1.0
    elements_in_line = max(line_bytes // type_.item_size, 1)
    run, rows, is_whole = 1.0, 1.0, True
    for (first, last, number), dim in zip(reversed(sides), reversed(type_.dims.data), strict=True):
        span = last - first + 1
        if is_whole:
            apart = span / number
            run *= span if apart < elements_in_line else number * elements_in_line
            is_whole = number == (dim.value if dim.value is not None else ASSUMED_SIZE)
        else:
            rows *= number
    return rows * max(run / elements_in_line, 1.0)
