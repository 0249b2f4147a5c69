"""Convolution of row-major images: the copies of the inputs under a band of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.ir import SSAValue

from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.taps import Bounds
from lowerdeck.lowering.strategies.line_bands import Band, BandLoops, Part, Place
from lowerdeck.lowering.strategies.line_windows import shift_of


@record
class _Row:
    """What is copied of a row of the image."""

    first: Expr
    """The place of the first input."""
    count: Expr
    """Of inputs, some of which lie outside of the image."""
    read: Expr
    """Of places that are read: vectors of results that are kept may reach beyond the row. What
    lies there does not matter, but subnormal numbers in it would take time."""
    lower: Expr
    upper: Expr
    """Those between these lie on it."""
    pieces: Sequence[tuple[int, Expr]]
    """Vectors of these."""


def copied_lines(loops: BandLoops, band: Band) -> SSAValue:
    """
    The inputs under a band, as lines by channel, the taps of outer axes, rows, and phases. Those of
    slices outside of the image are not set: nothing reads them.
    """
    copies = _Copies(loops, band)
    copies.build()
    return copies.lines


class _Copies:
    """The loops that copy the inputs under a band."""

    def __init__(self, loops: BandLoops, band: Band) -> None:
        self._loops, self._band, self._b = loops, band, loops.b
        windows, phases = loops.windows, loops.line[0].phases
        rows = windows[-2].kept(loops.rows) if band.down else 1
        sizes = [*(window.taps for window in windows[:-2]), rows, len(phases), loops.pitch]
        self.lines = self._b.scratch(loops.element, [loops.weight[1], *sizes])
        self._on_row = [self._row_of(phase) for phase in phases]

    def build(self) -> None:
        """Copy all lines."""
        with self._b.nest([Expr.const(self._loops.weight[1])]) as (channel,):
            self._copy_slices([channel], self._loops.slice_bounds(self._band.slice))

    def _copy_slices(self, at: Sequence[Expr], bounds: Sequence[Bounds]) -> None:
        if bounds:
            (lower, upper), rest = bounds[0], bounds[1:]
            with self._b.loop(upper, lower) as tap:
                self._copy_slices([*at, tap], rest)
            return
        source = [
            self._band.image,
            self._band.group * self._loops.weight[1] + at[0],
            *self._loops.slice_place(self._band.slice, at[1:]),
        ]
        if not self._band.down:
            for part in self._parts():
                with self._b.loop(part.last, part.first) as vector:
                    part.body(vector, [*at, Expr.const(0)], source)
            return
        b, window, (span,) = self._b, self._loops.windows[-2], self._band.down
        first = span.first * window.stride - window.begin
        count = (span.count - 1) * (window.stride // window.step) + (window.reach + 1)
        lower, upper = self._on_image(-2, first, window.step, count)
        for begin, end in ((Expr.const(0), lower), (upper, count)):
            if begin != end:
                with b.loop(end, begin) as row:
                    self._clear_row([*at, row])
        self._loops.over_rows(
            (lower, upper),
            self._parts(),
            lambda row: ([*at, row], [*source, first + row * window.step]),
        )

    def _on_image(self, axis: int, first: Expr, step: int, count: Expr) -> Bounds:
        """Of `count` places `step` apart from the first one on: those on the image."""
        b, window = self._b, self._loops.windows[axis]
        lower, upper = Expr.const(0), count
        if window.begin != 0:
            lower = b.computed(minimum(maximum((-first).ceildiv(step), 0), count))
        if window.end != 0:
            behind = (self._loops.inputs[axis] - first).ceildiv(step)
            upper = b.computed(maximum(minimum(behind, count), lower))
        return lower, upper

    def _clear_row(self, at: Sequence[Expr]) -> None:
        for number in range(len(self._loops.line[0].phases)):
            part = self._cleared(number, Expr.const(0), Expr.const(self._loops.pitch))
            with self._b.loop(part.last, part.first) as vector:
                part.body(vector, at, ())

    def _cleared(self, phase: int, first: Expr, last: Expr) -> Part:
        """From the beginning of a vector to the end of one."""
        b, lanes = self._b, self._loops.lanes

        def clear(number: Expr, at: Place, source: Place) -> None:
            with b.loop(lanes, mode="lanes") as lane:
                zero = scalars.constant(b, 0, self._loops.element)
                b.store(zero, self.lines, [*at, Expr.const(phase), number * lanes + lane])

        return Part(first // lanes, last.ceildiv(lanes), clear)

    def _row_of(self, phase: int) -> _Row:
        """The same for all lines of one phase."""
        loops, across = self._loops, self._band.across
        window, scale = loops.line
        first = across.first * loops.windows[-1].stride + (phase - window.begin)
        count = (across.count - 1) * scale + ((window.reach - phase) // window.stride + 1)
        lower, upper = self._on_image(-1, first, window.stride, count)
        read = count
        if loops.is_kept:
            whole = across.count.ceildiv(loops.lanes) * loops.lanes
            read += (whole - across.count) * scale
        return _Row(first, count, read, lower, upper, loops.pieces(upper - lower))

    def _parts(self) -> Iterator[Part]:
        """What is stored of each row: zeros beside the image, then what lies on it."""
        stride, shift = self._loops.line[0].stride, shift_of(self._loops.line[0], self._loops.lanes)
        for number, row in enumerate(self._on_row):
            if row.lower != 0:
                yield self._cleared(number, Expr.const(0), row.lower + shift)
            if row.upper != row.read:
                yield self._cleared(number, row.upper + shift, row.read + shift)
            for width, runs in row.pieces:
                yield Part(
                    Expr.const(0),
                    runs,
                    partial(self._copy_vector, (number, row), (stride, shift), width),
                )

    def _copy_vector(
        self,
        phase: tuple[int, _Row],
        steps: tuple[int, int],
        width: int,
        vector: Expr,
        at: Place,
        source: Place,
    ) -> None:
        (number, row), (stride, shift) = phase, steps

        def copy(column: Expr) -> None:
            place = row.lower + column
            value = self._loops.k.element(
                self._loops.op.input, [*source, row.first + place * stride]
            )
            self._b.store(value, self.lines, [*at, Expr.const(number), place + shift])

        self._loops.vector(vector, width, row.upper - row.lower, copy)
