"""
What the loops over bands of results of one convolution of row-major images share: its sizes, and
loops over vectors of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, static_shape
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.taps import Bounds, window_range
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.line_plans import (
    BAND_COLUMNS,
    BAND_ROWS,
    COLUMNS,
    COPIED,
    ROW,
    VECTOR,
)
from lowerdeck.lowering.strategies.line_windows import (
    has_to_be_copied,
    is_unrolled,
    line_of,
    pitch_of,
    windows_of,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES


@record
class Span:
    """A part of an axis of the result."""

    first: Expr
    count: Expr


Place: TypeAlias = "Sequence[Expr]"


@record
class Part:
    """Vectors that are alike in all rows: `body` of each, by its number and two places of a row."""

    first: Expr
    last: Expr
    body: Callable[[Expr, Place, Place], None]


@record
class Band:
    """Where a band is: of which image, group, and slice of volumes; its rows and columns."""

    image: Expr
    group: Expr
    slice: Sequence[Expr]
    down: Sequence[Span]
    """Of one row; none if results are lines."""
    across: Span

    @property
    def first_row(self) -> Expr:
        """The first row of results."""
        return self.down[0].first if self.down else Expr.const(0)


class BandLoops:
    """The sizes of one convolution, and loops over parts of a band."""

    def __init__(self, k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
        self.k, self.b, self.op = k, k.builder, op
        windows, weight = windows_of(op), static_shape(op.weight)
        assert windows is not None
        assert weight is not None
        self.windows, self.weight = windows, weight
        self.dims, self.inputs = dims_of(op.result), dims_of(op.input)
        self.lanes = schedule.parameter(VECTOR)
        self.rows, self.columns = (schedule.parameter(name) for name in (BAND_ROWS, BAND_COLUMNS))
        self.tile = schedule.tile(ROW), schedule.tile(COLUMNS)
        self.is_filters_last = schedule.order[-1] == OUTPUT_CHANNEL
        self.is_unrolled = is_unrolled(weight, op.groups.data)
        self.line = line_of(windows, apart=not self.is_unrolled)
        self.pitch = pitch_of(self.line, self.columns, self.lanes)
        width = self.dims[-1].value
        is_short = width is None or width < self.lanes
        self.is_kept = self.is_unrolled and is_short and has_to_be_copied(windows)
        self.filters = weight[0] // op.groups.data
        self.element = element_type(op.input)
        self.is_copied = schedule.get(COPIED) is not None or has_to_be_copied(windows)

    def span(self, axis: int, number: Expr, size: int) -> Span:
        """
        A part of an axis, `size` results long; the last one begins early enough to be so, or is
        shorter if the axis may be.
        """
        b, whole = self.b, self.dims[axis]
        if whole.value is not None:
            return Span(b.computed(minimum(number * size, whole - size)), Expr.const(size))
        first = number * size
        return Span(first, b.computed(minimum(whole - first, size)))

    def over_rows(
        self, rows: Bounds, parts: Iterable[Part], at: Callable[[Expr], tuple[Place, Place]]
    ) -> None:
        """
        All parts of some rows, row by row. If it is not known how many vectors of each kind there
        are, the rows are the inner loop: many short loops of unknown length are predicted badly.
        """
        b, (lower, upper) = self.b, rows
        if self.dims[-1].value is not None:
            with b.loop(upper, lower) as row:
                for part in parts:
                    with b.loop(part.last, part.first) as vector:
                        part.body(vector, *at(row))
            return
        for part in parts:
            with b.loop(part.last, part.first) as vector, b.loop(upper, lower) as row:
                part.body(vector, *at(row))

    def pieces(self, count: Expr) -> list[tuple[int, Expr]]:
        """
        The lanes of vectors of `count` columns, and how many: the last one ends with the last
        column, even if some are done twice then. If the number is not known, in shorter vectors
        where it is too small for one.
        """
        b, lanes = self.b, self.lanes
        if count.value is not None:
            while lanes > max(count.value, 1):
                lanes //= 2
            return [(lanes, count.ceildiv(lanes))] if count.value else []
        pieces: list[tuple[int, Expr]] = []
        rest = Expr.const(1)
        for width in dict.fromkeys((lanes, min(lanes, FEWEST_LANES))):
            fitting = b.computed(minimum(count // width, 1) * rest)
            pieces.append((width, b.computed(count.ceildiv(width) * fitting)))
            rest = rest - fitting
        pieces.append((1, b.computed(count * rest)))
        return pieces

    def vector(self, number: Expr, width: int, count: Expr, body: Callable[[Expr], None]) -> None:
        """`body` for the columns of a vector."""
        start = self.column(number, width, count)
        with self.b.loop(width, mode="lanes" if width > 1 else None) as lane:
            body(start + lane)

    def column(self, number: Expr, width: int, count: Expr | None) -> Expr:
        """The first one of a vector, which ends with the last of `count` if that matters."""
        start = number * width
        if count is None or count % width == 0:
            return start
        return minimum(start, count - width)

    def slice_bounds(self, place: Place) -> list[Bounds]:
        """The taps of outer axes that lie on the image, of a slice of the result."""
        found: list[Bounds] = []
        for axis, position in enumerate(place):
            w, dim = self.windows[axis], self.inputs[axis + 2]
            lower, upper = window_range(
                position, Expr.const(w.taps), dim, w.stride, w.dilation, w.begin, w.end
            )
            found.append((self.b.computed(lower), self.b.computed(upper)))
        return found

    def slice_place(self, place: Place, taps: Sequence[Expr]) -> list[Expr]:
        """The slice of the image under taps of outer axes."""
        return [
            position * w.stride + tap * w.dilation - w.begin
            for position, w, tap in zip(place, self.windows, taps, strict=False)
        ]
