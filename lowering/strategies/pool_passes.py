"""The loops of pools whose windows are combined line by line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import product as combinations
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f64
from lowerdeck.dialects.dims import Expr, ExprLike, constants, maximum, minimum, product
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.taps import (
    UNROLLED_TAPS,
    Bounds,
    add_taps,
    counted,
    first_of,
    larger_one,
    least,
    unrolled_from,
    window_range,
)
from lowerdeck.lowering.strategies.base import FEWEST_TO_SHARE
from lowerdeck.lowering.targets.base import FEWEST_LANES

WAY, VECTOR, ROWS, COLUMNS = "way", "vector", "rows", "columns"
"""What a schedule has: how windows are combined, the lanes of vectors, and how many rows and
columns of results are made at a time."""

FEW_CUT = 4
"""Elements under the windows that are cut off at one end of a row, at most, where those are
combined one by one, without a copy of the row."""

SIDE_BY_SIDE = 4
"""Vectors whose elements are combined in one loop, so that they need not wait for each other."""

ONE = Expr.const(1)

Body = Callable[[Expr, Expr], None]
"""Given a column and a lane: 0 where the column is that of the lane."""


class Way(IntEnum):
    """How windows are combined."""

    AT_ONCE = 0
    """All elements in their order."""
    DOWN_FIRST = 1
    """Those of each column, and of all slices of a volume; then along the line of columns."""
    ALONG_FIRST = 2
    """Along each row, then the rows, in their order: of equal elements the first one is found."""


def vectors_along(op: PoolOp, lanes: int) -> int:
    """The lanes of vectors of elements that lie as far apart as windows; 1 if that is too far."""
    return lanes if ints(op.strides)[-1] <= LARGEST_STRIDE else 1


def has_few_cut(op: PoolOp) -> bool:
    """
    True if few windows are cut off at the ends of rows, of few elements side by side, each with
    some on the image, and none is read again for NaN.
    """
    kernel, begin, end = (x.data[-1].value for x in (op.kernel, op.pads_begin, op.pads_end))
    if kernel is None or begin is None or end is None or begin + end >= kernel:
        return False
    is_few = -(-max(begin, end) // ints(op.strides)[-1]) * kernel <= FEW_CUT
    return is_few and ints(op.dilations)[-1] == 1 and not op.keeps_first.value.data


@record
class Line:
    """Results along one axis, and the inputs under their windows, counted from the first one."""

    first: Expr
    count: Expr
    """Of results."""
    begin: Expr
    """Where the first input is, which may lie before the image."""
    size: Expr
    """Of inputs."""
    lower: Expr
    upper: Expr
    """The inputs between these lie on the image."""
    most: int
    """Inputs under as many results as there can be."""


@record
class Vectors:
    """Columns in vectors: of how many lanes, and how many of them."""

    count: Expr | None
    """Of columns, with the last of which the last vector ends; None if that does not matter."""
    pieces: tuple[tuple[int, Expr], ...]

    def apart(self) -> list[Vectors]:
        """
        Each by itself, for loops around it, if they are alternatives of which one is taken: what
        that is need not be found out in each row.
        """
        if all(runs.value is not None for _, runs in self.pieces):
            return [self]
        return [Vectors(self.count, (piece,)) for piece in self.pieces]

    @property
    def once(self) -> Expr:
        """0 if there are none, and else 1."""
        (_, first), *others = self.pieces
        return ONE if others or first.value is not None else minimum(first, 1)


class Passes:
    """The loops of one pool."""

    def __init__(self, k: KernelLowering, op: PoolOp, schedule: Schedule) -> None:
        self._k, self._op, self._b = k, op, k.builder
        self._element = element_type(op.input)
        self._type = scalars.compute_type(self._element)
        kernel = constants(op.kernel.data)
        assert kernel is not None
        self._kernel, self._strides, self._dilations = kernel, ints(op.strides), ints(op.dilations)
        self._dims, self._inputs = dims_of(op.result), dims_of(op.input)
        self._way = Way(schedule.parameter(WAY))
        self._vector = schedule.parameter(VECTOR)
        self._rows, self._columns = schedule.parameter(ROWS), schedule.parameter(COLUMNS)
        block = k.output_layout().inner(1)
        self._block = [block] if block > 1 else []
        """The lanes, where they are channels."""
        self._outside: list[Expr] = []
        """The place of a plane, or of a slice of volumes."""

    def build(self) -> None:
        """
        Tiles of some rows and columns of a plane, each by itself. Where there are few planes, tiles
        of rows are dealt out to threads.
        """
        dims, names = self._dims, [f"x{axis}" for axis in range(len(self._kernel))]
        channels = dims[1].ceildiv(self._block[0]) if self._block else dims[1]
        planes = [("n", dims[0]), ("c", channels)]
        rows = [(name, dims[-2].ceildiv(self._rows)) for name in names[-2:-1]]
        slices = list(zip(names[:-2], dims[2:-2], strict=True))
        count = (dims[0] * channels).value
        few = count is not None and count < FEWEST_TO_SHARE
        outer = [*rows, *planes] if few else [*planes, *rows]
        order = [*outer, *slices, (names[-1], dims[-1].ceildiv(self._columns))]
        with self._b.labeled_nest(order, parallel=True) as at:
            place = dict(zip((label for label, _ in order), at, strict=True))
            self._outside = [place[label] for label, _ in (*planes, *slices)]
            across = self._line(-1, place[names[-1]], self._columns)
            down = [self._line(-2, place[name], self._rows) for name in names[-2:-1]]
            if self._way == Way.AT_ONCE:
                self._at_once(down, across)
            elif self._way == Way.DOWN_FIRST:
                self._down_first(down, across)
            else:
                self._along_first(down[0], across)

    def _line(self, axis: int, number: Expr, size: int) -> Line:
        """A part of an axis, `size` results long or less at the end."""
        b, stride = self._b, self._strides[axis]
        reach = (self._kernel[axis] - 1) * self._dilations[axis]
        first, whole = number * size, self._dims[axis]
        count = Expr.const(size) if whole % size == 0 else b.computed(minimum(whole - first, size))
        begin = b.computed(first * stride - self._op.pads_begin.data[axis])
        inputs = (count - 1) * stride + reach + 1
        lower, upper = Expr.const(0), inputs
        if self._op.pads_begin.data[axis] != 0:
            lower = b.computed(minimum(maximum(-begin, 0), inputs))
        if self._op.pads_end.data[axis] != 0:
            upper = b.computed(maximum(minimum(self._inputs[axis] - begin, inputs), lower))
        return Line(first, count, begin, inputs, lower, upper, (size - 1) * stride + reach + 1)

    # The three ways

    def _at_once(self, down: Sequence[Line], across: Line) -> None:
        """No window is cut off at the ends of a row."""
        table = self._table(across)
        results = self._vectors(across.count, vectors_along(self._op, self._vector))
        for (part, is_whole), piece in combinations(self._row_parts(down), results.apart()):
            with self._each(down, part, piece.once) as rows:
                bounds = [*self._outer_bounds(down, rows, is_whole=is_whole), self._along]
                factor = self._factor(down, rows)

                def result(column: Expr, lane: Expr) -> None:
                    def read(taps: Sequence[Expr]) -> SSAValue:
                        where = self._under(-1, column, taps[-1])
                        return self._input(self._outer_place(down, rows, taps), across, where, lane)

                    value = self._with_first(self._combined(bounds, read), bounds, read)
                    self._finish(down, rows, across, (column, lane), value, (table, factor))

                self._each_vector(piece, result, bounds)

    def _down_first(self, down: Sequence[Line], across: Line) -> None:
        """A line for each row of results, with what lies outside of the image at its ends."""
        table = self._table(across)
        lines = self._scratch([self._rows for _ in down], across)
        inputs = self._vectors(across.upper - across.lower, self._vector)
        results = self._vectors(across.count, vectors_along(self._op, self._vector))
        with self._each(down) as rows:
            self._fill_ends(across, lines, rows)
        for (part, is_whole), piece in combinations(self._row_parts(down), inputs.apart()):
            with self._each(down, part, piece.once) as rows:
                bounds = self._outer_bounds(down, rows, is_whole=is_whole)

                def below(column: Expr, lane: Expr) -> None:
                    where = across.lower + column

                    def read(taps: Sequence[Expr]) -> SSAValue:
                        return self._input(self._outer_place(down, rows, taps), across, where, lane)

                    value = self._with_first(self._combined(bounds, read), bounds, read)
                    self._keep(value, lines, [*rows, self._shift + where], lane)

                self._each_vector(piece, below, bounds)
        if self._keeps_first and across.lower != 0:
            with self._each(down) as rows:
                self._repeat_firsts(across, lines, rows)
        for piece in results.apart():
            with self._each(down, None, piece.once) as rows:
                factor = self._factor(down, rows)

                def result(column: Expr, lane: Expr) -> None:
                    read = self._reader(lines, rows, column, lane)
                    value = self._combined([self._along], read, is_clean=True)
                    value = self._with_first(value, [self._along], read)
                    self._finish(down, rows, across, (column, lane), value, (table, factor))

                self._each_vector(piece, result, [self._along])

    def _along_first(self, down: Line, across: Line) -> None:
        """
        A line for each row of inputs, of each slice, as long as that of results; those outside of
        the image are there, too. Where windows are cut off at its sides, rows are copied before,
        unless those few windows are combined one by one.
        """
        b, table = self._b, self._table(across)
        slices = self._slice_bounds()
        lines = self._scratch([*self._kernel[:-2], down.most])
        is_cut = across.lower != 0 or across.upper != across.size
        whole = (Expr.const(0), across.count)
        if is_cut and has_few_cut(self._op) and not self._block:
            is_cut, whole = False, self._whole_windows_of(across, len(self._kernel) - 1)
        # All slices, if what comes first in a window is read again.
        kept = list(self._kernel[:-2]) if self._keeps_first else []
        image = self._scratch([*kept, down.most], across) if is_cut else None
        inputs = self._vectors(across.upper - across.lower, self._vector)
        lanes = vectors_along(self._op, self._vector)
        in_line = self._vectors(whole[1] - whole[0], lanes, is_open=is_cut)
        results = self._vectors(across.count, lanes if self._keeps_first else self._vector)
        with self._loops(slices) as taps:
            in_slice = taps if kept else []
            for lower, upper in ((Expr.const(0), down.lower), (down.upper, down.size)):
                if lower != upper:
                    with b.loop(upper, lower) as row:
                        self._fill(lines, [*taps, row], Expr.const(0), across.count)
            if image is not None:
                with b.loop(down.upper, down.lower) as row:
                    self._fill_ends(across, image, [*in_slice, row])
                    place = [*self._slice_place(taps), down.begin + row]

                    def copied(column: Expr, lane: Expr) -> None:
                        where = across.lower + column
                        value = self._input(place, across, where, lane)
                        self._keep(value, image, [*in_slice, row, self._shift + where], lane)

                    self._each_vector(inputs, copied)
                    self._repeat_firsts(across, image, [*in_slice, row])

            def combine(row: Expr, column: Expr, lane: Expr, *, is_at_end: bool) -> None:
                place = [*self._slice_place(taps), down.begin + row]

                def read(tap: Sequence[Expr]) -> SSAValue:
                    where = self._under(-1, column, tap[0])
                    where = self._nearest(across, where) if is_at_end else where
                    return self._input(place, across, where, lane)

                reads = read
                if image is not None:
                    reads = self._reader(image, [*in_slice, row], column, lane)
                value = self._combined([self._along], reads)
                self._keep(value, lines, [*taps, row, column], lane)

            for ends in ((Expr.const(0), whole[0]), (whole[1], across.count)):
                with self._few(ends) as columns:
                    for column in columns:
                        with b.loop(down.upper, down.lower) as row:
                            combine(row, column, Expr.const(0), is_at_end=True)
            for piece in in_line.apart():
                upper = down.lower + (down.upper - down.lower) * piece.once
                with b.loop(upper, down.lower) as row:

                    def along(column: Expr, lane: Expr) -> None:
                        combine(row, whole[0] + column, lane, is_at_end=False)

                    self._each_vector(piece, along, [self._along])
        bounds = [*slices, (Expr.const(0), Expr.const(self._kernel[-2]))]
        for piece in results.apart():
            with self._each([down], None, piece.once) as rows:
                factor = self._factor([down], rows)
                firsts = [
                    (b.computed(lower), b.computed(upper))
                    for lower, upper in (
                        self._outer_bounds([down], rows) if self._keeps_first else []
                    )
                ]

                def result(column: Expr, lane: Expr) -> None:
                    def read(taps: Sequence[Expr]) -> SSAValue:
                        row = self._under(-2, rows[0], taps[-1])
                        return self._kept(lines, [*taps[:-1], row, column], lane)

                    def first(taps: Sequence[Expr]) -> SSAValue:
                        if image is not None:
                            row = self._under(-2, rows[0], taps[-1])
                            read = self._reader(image, [*taps[:-1], row], column, lane)
                            return read([Expr.const(0)])
                        place = self._outer_place([down], rows, taps)
                        where = self._under(-1, column, Expr.const(0))
                        return self._input(place, across, where, lane)

                    value = self._combined(bounds, read, is_clean=True)
                    value = self._with_first(value, firsts, first)
                    self._finish([down], rows, across, (column, lane), value, (table, factor))

                self._each_vector(piece, result, bounds)

    # Loops

    @contextmanager
    def _each(
        self, down: Sequence[Line], part: Bounds | None = None, once: Expr = ONE
    ) -> Generator[list[Expr]]:
        """
        Every row of a tile, or of a part of it, if `once` is 1, and none if it is 0; of lines alone
        there are none.
        """
        if part is None:
            counts = [line.count * once for line in down] or [once] * (once != ONE)
            with self._b.nest(counts) as rows:
                yield rows if down else []
            return
        lower, upper = part
        with self._b.loop(lower + (upper - lower) * once, lower) as row:
            yield [row]

    def _row_parts(self, down: Sequence[Line]) -> list[tuple[Bounds | None, bool]]:
        """
        The rows of a tile, and whether no window of theirs is cut off: those whose number is known
        are one part, which `peel` cuts.
        """
        axis = len(self._kernel) - 2
        if not down or self._inputs[axis + 2].value is not None:
            return [(None, False)]
        (line,) = down
        first, last = self._whole_windows_of(line, axis)
        return [
            ((Expr.const(0), first), False),
            ((first, last), True),
            ((last, line.count), False),
        ]

    @contextmanager
    def _loops(self, bounds: Sequence[Bounds]) -> Generator[list[Expr]]:
        if not bounds:
            yield []
            return
        (lower, upper), rest = bounds[0], bounds[1:]
        with self._b.loop(upper, lower) as outer, self._loops(rest) as inner:
            yield [outer, *inner]

    @contextmanager
    def _few(self, ends: Bounds) -> Generator[list[Expr]]:
        """Columns: each by its number, if that is known; else that of a loop."""
        lower, upper = ends
        if lower.value is not None and upper.value is not None:
            yield [Expr.const(column) for column in range(lower.value, upper.value)]
            return
        with self._b.loop(upper, lower) as column:
            yield [column]

    def _whole_windows_of(self, line: Line, axis: int) -> Bounds:
        """Those of the results of a line whose windows lie on the image."""
        b, stride, begin = self._b, self._strides[axis], self._op.pads_begin.data[axis]
        reach = (self._kernel[axis] - 1) * self._dilations[axis]
        first = begin.ceildiv(stride) - line.first
        last = (self._inputs[axis + 2] - 1 - reach + begin) // stride + 1 - line.first
        lower = b.computed(minimum(maximum(first, 0), line.count))
        return lower, b.computed(maximum(minimum(last, line.count), lower))

    def _nearest(self, across: Line, where: Expr) -> Expr:
        """An element of the image that lies under the same window, if not this one."""
        return maximum(minimum(where, across.upper - 1), across.lower)

    def _vectors(self, count: Expr, lanes: int, *, is_open: bool = False) -> Vectors:
        """
        How `count` columns are cut into vectors: the last one ends with the last column, even if
        some columns are done twice then. An unknown number, into shorter vectors if it is too small
        for one. With `is_open` there may be columns behind the last one.
        """
        b = self._b
        if self._block:
            return Vectors(None, ((1, count),))
        if is_open and lanes > 1:
            return Vectors(None, ((lanes, b.computed(count.ceildiv(lanes))),))
        size, rest = count.value, Expr.const(1)
        while size is not None and lanes > max(size, 1):
            lanes //= 2
        pieces: list[tuple[int, Expr]] = []
        tried = [lanes] if size is not None else [lanes, FEWEST_LANES]
        for width in dict.fromkeys(lanes for lanes in tried if lanes >= FEWEST_LANES):
            fits = b.computed(minimum(count // width, 1) * rest)
            pieces.append((width, b.computed(count.ceildiv(width) * fits)))
            rest = rest - fits
        pieces.append((1, b.computed(count * rest)))
        return Vectors(count, tuple((width, runs) for width, runs in pieces if runs != 0))

    def _each_vector(self, vectors: Vectors, body: Body, bounds: Sequence[Bounds] = ()) -> None:
        """`body` for each column: several vectors in one loop over the elements of windows."""
        is_loop = unrolled_from(bounds, UNROLLED_TAPS) > 0
        for width, runs in vectors.pieces:

            def one(number: Expr, width: int = width) -> None:
                if self._block:
                    self._in_lanes(number, body)
                elif width == 1:
                    body(number, Expr.const(0))
                else:
                    self._vector_at(number, width, body, vectors.count)

            is_wide = width > 1 or bool(self._block)
            self._run(runs, SIDE_BY_SIDE if is_loop and is_wide else 1, one)

    def _vector_at(self, number: Expr, width: int, body: Body, count: Expr | None) -> None:
        start = number * width
        if count is not None and count % width != 0:
            start = minimum(start, count - width)
        with self._b.loop(width, mode="lanes") as lane:
            body(start + lane, Expr.const(0))

    def _in_lanes(self, column: Expr, body: Body) -> None:
        with self._b.loop(self._block[0], mode="lanes") as lane:
            body(column, lane)

    def _run(self, count: Expr, together: int, body: Callable[[Expr], None]) -> None:
        """A loop, so many iterations side by side."""
        b, done = self._b, Expr.const(0)
        if together > 1 and (groups := count // together) != 0:
            with b.nest([groups]) as (group,), b.loop(together, mode="unroll") as number:
                body(group * together + number)
            done = groups * together
        if (rest := count - done) != 0:
            is_short = rest.value is not None and together > 1
            with b.loop(rest, mode="unroll" if is_short else None) as number:
                body(done + number)

    # Lines that are kept

    def _scratch(self, rows: Sequence[int], across: Line | None = None) -> SSAValue:
        """Lines of results, or of the inputs under them, with room for whole vectors at the end."""
        pitch = self._columns if across is None else self._shift + across.most
        if not self._block:
            last = 0 if across is None else (-self._columns % self._vector) * self._strides[-1]
            pitch = -(-(pitch + last) // self._vector) * self._vector
        return self._b.scratch(self._type, [*rows, pitch, *self._block])

    @property
    def _shift(self) -> int:
        """Where a line of inputs begins, so that vectors of those on the image are aligned."""
        begin = self._op.pads_begin.data[-1].value or 0
        return 0 if self._block else -begin % self._vector

    def _keep(self, value: SSAValue, lines: SSAValue, at: Sequence[ExprLike], lane: Expr) -> None:
        self._b.store(value, lines, [*at, *(lane for _ in self._block)])

    def _kept(self, lines: SSAValue, at: Sequence[ExprLike], lane: Expr) -> SSAValue:
        return self._b.load(lines, [*at, *(lane for _ in self._block)])

    def _reader(
        self, lines: SSAValue, rows: Sequence[Expr], column: Expr, lane: Expr
    ) -> Callable[[Sequence[Expr]], SSAValue]:
        """What lies under the window of a column, along a line."""
        return lambda tap: self._kept(
            lines, [*rows, self._shift + self._under(-1, column, tap[0])], lane
        )

    def _fill_ends(self, line: Line, lines: SSAValue, rows: Sequence[Expr]) -> None:
        """
        What lies outside of the image takes no part. In whole vectors: the rest is to be set after
        that.
        """
        width = 1 if self._block else self._vector
        if line.lower != 0:
            self._fill(lines, rows, Expr.const(0), line.lower + self._shift)
        if line.upper != line.size:
            first = (line.upper + self._shift) // width * width
            self._fill(lines, rows, first, line.size + self._shift - first)

    def _repeat_firsts(self, line: Line, lines: SSAValue, rows: Sequence[Expr]) -> None:
        """
        Where windows begin before the image: what they find there first. It does not matter that
        this is part of the window twice.
        """
        if not self._keeps_first or line.lower == 0:
            return
        b, dilation = self._b, self._dilations[-1]
        with b.loop(line.lower) as column:
            first = column + (line.lower - column).ceildiv(dilation) * dilation
            with b.loop(minimum(first + 1, line.upper), first) as place:

                def copied(to: Expr, lane: Expr) -> None:
                    value = self._kept(lines, [*rows, self._shift + place], lane)
                    self._keep(value, lines, [*rows, self._shift + to], lane)

                if self._block:
                    self._in_lanes(column, copied)
                else:
                    copied(column, Expr.const(0))

    def _fill(self, lines: SSAValue, rows: Sequence[Expr], first: Expr, count: Expr) -> None:
        """Nothing, yet."""
        b, width = self._b, 1 if self._block else self._vector
        with b.loop(count.ceildiv(width)) as number:
            with b.loop(self._vector, mode="lanes") as lane:
                column = first + number * width
                place = [column, lane] if self._block else [column + lane]
                b.store(self._nothing(), lines, [*rows, *place])

    # Windows

    @property
    def _along(self) -> Bounds:
        """All elements of a window in a row."""
        return Expr.const(0), Expr.const(self._kernel[-1])

    def _under(self, axis: int, result: Expr, tap: Expr) -> Expr:
        """An element of a window, counted from the first input of the line."""
        return result * self._strides[axis] + tap * self._dilations[axis]

    def _range(self, axis: int, position: Expr) -> Bounds:
        """The elements of a window along an axis that lie on the image."""
        op, d = self._op, axis
        kernel, dim = Expr.const(self._kernel[d]), self._inputs[d + 2]
        begin, end = op.pads_begin.data[d], op.pads_end.data[d]
        return window_range(position, kernel, dim, self._strides[d], self._dilations[d], begin, end)

    def _slice_bounds(self) -> list[Bounds]:
        return [self._range(axis, position) for axis, position in enumerate(self._outside[2:])]

    def _slice_place(self, taps: Sequence[Expr]) -> list[Expr]:
        """The slice of the input under an element of a window."""
        begin = self._op.pads_begin.data
        return [
            self._under(axis, position, taps[axis]) - begin[axis]
            for axis, position in enumerate(self._outside[2:])
        ]

    def _outer_bounds(
        self, down: Sequence[Line], rows: Sequence[Expr], *, is_whole: bool = False
    ) -> list[Bounds]:
        """Of windows of rows; `is_whole` if those are not cut off above or below."""
        axis = len(self._kernel) - 2
        if is_whole:
            return [*self._slice_bounds(), (Expr.const(0), Expr.const(self._kernel[axis]))]
        below = [self._range(axis, d.first + row) for d, row in zip(down, rows, strict=True)]
        return [*self._slice_bounds(), *below]

    def _outer_place(
        self, down: Sequence[Line], rows: Sequence[Expr], taps: Sequence[Expr]
    ) -> list[Expr]:
        """The slice and the row of the input under an element of a window."""
        axis = len(self._kernel) - 2
        below = [
            line.begin + self._under(axis, row, taps[axis])
            for line, row in zip(down, rows, strict=True)
        ]
        return [*self._slice_place(taps), *below]

    def _input(self, outer: Sequence[Expr], across: Line, where: Expr, lane: Expr) -> SSAValue:
        at = [*self._plane(lane), *outer, across.begin + where]
        return scalars.widen(self._b, self._k.element(self._op.input, at))

    def _plane(self, lane: Expr) -> list[Expr]:
        image, channel = self._outside[:2]
        return [image, channel * self._block[0] + lane if self._block else channel]

    @property
    def _is_max(self) -> bool:
        return self._op.kind.data == PoolKind.MAX

    @property
    def _keeps_first(self) -> bool:
        return bool(self._op.keeps_first.value.data)

    def _with_first(
        self, value: SSAValue, bounds: Sequence[Bounds], read: Callable[[Sequence[Expr]], SSAValue]
    ) -> SSAValue:
        """NaN, if the first element of the window is and that counts."""
        if not self._keeps_first:
            return value
        return self._b.carry_nest(
            first_of(bounds),
            [value],
            lambda taps, values: [scalars.unless_nan(self._b, read(taps), values[0])],
        )[0]

    def _nothing(self) -> SSAValue:
        """What leaves every element as it is."""
        b = self._b
        return least(b, self._op) if self._is_max else b.floating(0.0, self._type)

    def _combined(
        self,
        bounds: Sequence[Bounds],
        read: Callable[[Sequence[Expr]], SSAValue],
        *,
        is_clean: bool = False,
    ) -> SSAValue:
        """The elements of a window; `is_clean` if they are results already, which any begins."""

        def add(taps: Sequence[Expr], value: SSAValue) -> SSAValue:
            if self._is_max:
                return larger_one(self._b, self._op, value, read(taps))
            return scalars.add(self._b, value, read(taps))

        if is_clean and unrolled_from(bounds, UNROLLED_TAPS) == 0:
            ranges = [range(lower.value or 0, upper.value or 0) for lower, upper in bounds]
            first, *others = ([Expr.const(k) for k in taps] for taps in combinations(*ranges))
            value = read(first)
            for taps in others:
                value = add(taps, value)
            return value
        return add_taps(self._b, bounds, self._nothing(), add, UNROLLED_TAPS)

    def _finish(
        self,
        down: Sequence[Line],
        rows: Sequence[Expr],
        across: Line,
        place: tuple[Expr, Expr],
        value: SSAValue,
        average: tuple[SSAValue | None, SSAValue | None],
    ) -> None:
        column, lane = place
        if self._op.kind.data == PoolKind.AVERAGE:
            value = self._averaged(value, column, *average)
        below = [line.first + row for line, row in zip(down, rows, strict=True)]
        at = [*self._plane(lane), *self._outside[2:], *below, across.first + column]
        self._k.finish(self._op, at, scalars.narrow(self._b, value, self._element))

    # Averages

    def _averaged(
        self, value: SSAValue, column: Expr, table: SSAValue | None, factor: SSAValue | None
    ) -> SSAValue:
        """
        Divided by the elements of a window: those along the row, which the table says for each
        column, times the others, or times a factor for the rows whose windows are cut off. In f64
        by a division, otherwise by multiplication with reciprocals.
        """
        b, others = self._b, prod(self._kernel[:-1])
        if table is None:
            whole = self._kernel[-1] * others
            scale = b.floating(self._share(whole), self._type)
        else:
            scale = b.load(table, [column])
        if self._type == f64:
            scale = scale if factor is None else scalars.mul(b, scale, factor)
            return b.add(arith.DivfOp(value, scale))
        value = scalars.mul(b, value, scale)
        return value if factor is None else scalars.mul(b, value, factor)

    def _share(self, count: float) -> float:
        """What a sum is divided by in f64; what others are multiplied with."""
        return count if self._type == f64 else 1.0 / count

    def _table(self, across: Line) -> SSAValue | None:
        """The scale for each column of a tile, if windows of an average are cut off along a row."""
        axis = len(self._kernel) - 1
        if self._op.kind.data != PoolKind.AVERAGE or self._is_whole(axis):
            return None
        b, others = self._b, prod(self._kernel[:-1])
        table = b.scratch(self._type, [self._columns + self._vector])
        with b.loop(across.count.ceildiv(self._vector)) as number:
            with b.loop(self._vector, mode="lanes") as lane:
                whole = self._share(self._kernel[-1] * others)
                b.store(b.floating(whole, self._type), table, [number * self._vector + lane])
        first, last = self._whole_windows(axis)
        begin = b.computed(minimum(maximum(first - across.first, 0), across.count))
        end = b.computed(maximum(minimum(last - across.first, across.count), begin))
        for lower, upper in ((Expr.const(0), begin), (end, across.count)):
            if lower != upper:
                with b.loop(upper, lower) as column:
                    count = self._as_float(self._count(axis, across.first + column) * others)
                    b.store(self._inverse(count), table, [column])
        return table

    def _inverse(self, count: SSAValue) -> SSAValue:
        b = self._b
        if self._type == f64:
            return count
        return b.add(arith.DivfOp(b.floating(1.0, self._type), count))

    def _factor(self, down: Sequence[Line], rows: Sequence[Expr]) -> SSAValue | None:
        """What the scale is to be corrected by, if windows may be cut off along other axes."""
        positions = [*self._outside[2:], *(d.first + r for d, r in zip(down, rows, strict=True))]
        axes = [axis for axis in range(len(positions)) if not self._is_whole(axis)]
        if self._op.kind.data != PoolKind.AVERAGE or not axes:
            return None
        b = self._b
        whole = b.floating(prod(self._kernel[axis] for axis in axes), self._type)
        count = self._as_float(product(self._count(axis, positions[axis]) for axis in axes))
        terms = (count, whole) if self._type == f64 else (whole, count)
        return b.add(arith.DivfOp(*terms))

    def _as_float(self, count: Expr) -> SSAValue:
        return scalars.cast(self._b, self._b.as_integer(count), i64, self._type)

    def _is_whole(self, axis: int) -> bool:
        """True if every window has all elements that are counted."""
        op = self._op
        if op.count_pads.value.data:
            return op.overhang.data[axis] == 0
        return op.pads_begin.data[axis] == 0 and op.pads_end.data[axis] == 0

    def _count(self, axis: int, position: Expr) -> Expr:
        """The elements of a window that are counted along an axis."""
        return counted(self._op, axis, position, self._range(axis, position))

    def _room(self, axis: int) -> Expr:
        """What is counted along an axis, from where the first window begins."""
        op = self._op
        room = self._inputs[axis + 2] + op.pads_begin.data[axis]
        if op.count_pads.value.data:
            room = room + op.pads_end.data[axis] - op.overhang.data[axis]
        return room

    def _whole_windows(self, axis: int) -> Bounds:
        """The first window along an axis with all elements, and the first one behind it without."""
        stride, reach = self._strides[axis], (self._kernel[axis] - 1) * self._dilations[axis]
        first = Expr.const(0)
        if not self._op.count_pads.value.data:
            first = self._op.pads_begin.data[axis].ceildiv(stride)
        return first, (self._room(axis) - 1 - reach) // stride + 1
