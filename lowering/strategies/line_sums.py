"""Convolution of row-major images: the sums of a band of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import bit_width, dims_of, element_type, is_integer
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.loops.parameters import parts_of
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.sums import sum_over_channels
from lowerdeck.lowering.nests.taps import Bounds
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.line_bands import Band, BandLoops, Part, Place
from lowerdeck.lowering.strategies.line_plans import COLUMNS, ROW
from lowerdeck.lowering.strategies.line_windows import Window, shift_of
from lowerdeck.lowering.targets.base import BYTE_BITS


class LineSums:
    """The sums of a band, of inputs in `lines`, or as they lie in the image if there are none."""

    def __init__(self, loops: BandLoops, band: Band, lines: SSAValue | None) -> None:
        self._loops, self._band, self._lines = loops, band, lines
        self._k, self._b, self._op = loops.k, loops.b, loops.op

    def build(self, *, is_single: bool) -> None:
        """The results of the band; threads share its filters if it `is_single`."""
        if self._loops.is_unrolled:
            self._multiply_unrolled()
            return
        b, across = self._b, self._band.across
        rows = [(ROW, span.count) for span in self._band.down]
        for width, runs in self._loops.pieces(across.count):
            # Short vectors of an open row are few, and have no tiles.
            label = COLUMNS if width == self._loops.lanes else "short"
            labels = [(OUTPUT_CHANNEL, Expr.const(self._loops.filters)), *rows, (label, runs)]
            # In the order of the schedule: the last vector of a row is split off, and its loop,
            # then in two parts, could not be moved out of another one.
            if self._loops.is_filters_last and not is_single:
                labels = [*labels[1:], labels[0]]
            with b.labeled_nest(labels, parallel=is_single) as at:
                indices = {name: index for (name, _), index in zip(labels, at, strict=True)}
                number, vector = indices[OUTPUT_CHANNEL], indices[label]
                row = [indices[name] for name, _ in rows]

                def result(
                    column: Expr, number: Expr = number, row: Sequence[Expr] = tuple(row)
                ) -> None:
                    at = self._place(number, row, across.first + column)
                    place = (row, column)
                    start = self._start(at)

                    def product(
                        channel: Expr, taps: Sequence[Expr], values: Sequence[SSAValue]
                    ) -> Sequence[SSAValue]:
                        value = self._input(channel, taps, place, at)
                        weight = self._k.element(self._op.weight, [at[1], channel, *taps])
                        return [b.fma(value, weight, values[0])]

                    channels, taps = self._loops.weight[1], prod(self._loops.weight[2:])
                    bounds = self._loops.slice_bounds(self._band.slice)
                    bounds += [_all(window) for window in self._loops.windows[-2:]]
                    total = sum_over_channels(b, (channels, 1, taps), bounds, start, product)
                    self._k.finish(self._op, at, total)

                self._loops.vector(vector, width, across.count, result)

    def _place(self, number: Expr, row: Sequence[Expr], column: Expr) -> list[Expr]:
        """The index of a result: that of a filter of the group, in a row of the band."""
        channel = self._band.group * self._loops.filters + number
        below = [span.first + r for span, r in zip(self._band.down, row, strict=True)]
        return [self._band.image, channel, *self._band.slice, *below, column]

    def _start(self, at: Sequence[Expr]) -> SSAValue:
        if self._op.bias is None:
            return scalars.constant(self._b, 0, self._loops.element)
        return self._k.element(self._op.bias, [at[1]])

    def _multiply_unrolled(self) -> None:
        """
        One filter: tiles of rows and vectors, written out line by line of the inputs, each of which
        is loaded once for all rows of the tile.
        """
        b, loops, across = self._b, self._loops, self._band.across
        rows = self._band.down[0].count if self._band.down else Expr.const(1)
        kept, pieces = None, loops.pieces(across.count)
        if loops.is_kept:
            pitch = -(-loops.columns // loops.lanes) * loops.lanes
            kept = b.scratch(loops.element, [loops.rows, pitch])
            pieces = [(loops.lanes, across.count.ceildiv(loops.lanes))]
        for width, runs in pieces:
            for below in parts_of(rows, loops.tile[0], 1):
                for along in parts_of(runs, loops.tile[1] if width == loops.lanes else 1, 1):
                    counts = [(part.upper - part.lower) // part.step for part in (below, along)]
                    with b.nest(counts) as (row, vector):
                        first = below.lower + row * below.step
                        firsts = [
                            loops.column(
                                along.lower + vector * along.step + k,
                                width,
                                None if loops.is_kept else across.count,
                            )
                            for k in range(along.step)
                        ]
                        with b.loop(width, mode="lanes" if width > 1 else None) as lane:
                            columns = [column + lane for column in firsts]
                            tile = ([first + k for k in range(below.step)], columns)
                            self._write_out(kept, tile)
        if kept is not None:
            self._finish_kept(kept, rows)

    def _finish_kept(self, kept: SSAValue, rows: Expr) -> None:
        """Results that vectors reaching beyond rows have left."""
        b, none, across = self._b, Expr.const(0), self._band.across
        is_worth = is_finished_alike(self._k.roots, self._op)
        finished = self._finished(kept) if is_worth else None

        def finish_vector(width: int, vector: Expr, row: Place, _: Place) -> None:
            def finish(column: Expr) -> None:
                at = self._place(none, row if self._band.down else [], across.first + column)
                value = b.load(kept if finished is None else finished, [*row, column])
                if finished is None:
                    self._k.finish(self._op, at, value)
                else:
                    b.store(value, self._k.outputs[0], at)

            self._loops.vector(vector, width, across.count, finish)

        parts = [
            Part(none, runs, partial(finish_vector, width))
            for width, runs in self._loops.pieces(across.count)
        ]
        self._loops.over_rows((none, rows), parts, lambda row: ([row], ()))

    def _finished(self, kept: SSAValue) -> SSAValue:
        """What follows, of all that vectors have left, in whole vectors."""
        b, lanes, none = self._b, self._loops.lanes, Expr.const(0)
        dims = ref_type(kept).dims.data
        finished = b.scratch(element_type(self._k.roots[0]), dims)
        at = self._place(none, [none] if self._band.down else [], self._band.across.first)
        with b.loop(dims[0]) as row, b.loop(dims[1] // lanes) as vector:
            with b.loop(lanes, mode="lanes") as lane:
                place = [row, vector * lanes + lane]
                value = self._k.finished(self._op, at, b.load(kept, place))
                b.store(value, finished, place)
        return finished

    def _write_out(
        self, kept: SSAValue | None, tile: tuple[Sequence[Expr], Sequence[Expr]]
    ) -> None:
        """The sums of some rows and columns, from the lines of the inputs."""
        b, none, (rows, columns) = self._b, Expr.const(0), tile
        down, across = self._band.down, self._band.across
        window = self._loops.windows[-2] if down else Window(1, 1, 1, none, none)
        step = window.stride // window.step
        every = [(row, column) for row in range(len(rows)) for column in range(len(columns))]
        where = {
            (row, column): self._place(
                none, [rows[row]] if down else [], across.first + columns[column]
            )
            for row, column in every
        }
        start = self._start(where[0, 0])

        def add_lines(outer: Sequence[Expr], values: Sequence[SSAValue]) -> list[SSAValue]:
            totals = dict(zip(every, values, strict=True))
            for line in range(window.kept(len(rows))):
                # Which tap of the window of each row lies there.
                taps = {
                    row: (line - row * step) // window.dilation
                    for row in range(len(rows))
                    if (line - row * step) % window.dilation == 0
                    and 0 <= line - row * step <= window.reach
                }
                for tap in range(self._loops.windows[-1].taps) if taps else ():
                    self._add_tap((where, columns), (outer, taps, tap), totals)
            return [totals[place] for place in every]

        results = b.carry_nest(
            self._loops.slice_bounds(self._band.slice), [start] * len(every), add_lines
        )
        for (row, column), total in zip(every, results, strict=True):
            if kept is None:
                self._k.finish(self._op, where[row, column], total)
            else:
                b.store(total, kept, [rows[row], columns[column]])

    def _add_tap(
        self,
        results: tuple[Mapping[tuple[int, int], Sequence[Expr]], Sequence[Expr]],
        taps: tuple[Sequence[Expr], Mapping[int, int], int],
        totals: dict[tuple[int, int], SSAValue],
    ) -> None:
        """Add what lies on one line, under one tap along it, to the sums of each row."""
        b, none, (where, columns), (outer, below, along) = self._b, Expr.const(0), results, taps
        has_rows = len(self._loops.windows) > 1

        def at(row: int) -> list[Expr]:
            return [*outer, *([Expr.const(below[row])] if has_rows else []), Expr.const(along)]

        weights = {
            row: self._k.element(self._op.weight, [where[0, 0][1], none, *at(row)]) for row in below
        }
        first = min(below)
        for number, column in enumerate(columns):
            place = where[first, number]
            row = [place[-2] - self._band.first_row] if has_rows else []
            value = self._input(none, at(first), (row, column), place)
            for own, weight in weights.items():
                totals[own, number] = b.fma(value, weight, totals[own, number])

    def _input(
        self,
        channel: Expr,
        taps: Sequence[Expr],
        place: tuple[Sequence[Expr], Expr],
        at: Sequence[Expr],
    ) -> SSAValue:
        """The input under a tap of the window of a result."""
        windows, (row, column) = self._loops.windows, place
        if self._lines is None:
            where = [
                position * w.stride + tap * w.dilation - w.begin
                for position, w, tap in zip(at[2:], windows, taps, strict=True)
            ]
            first = self._band.group * self._loops.weight[1]
            return self._k.element(self._op.input, [at[0], first + channel, *where])
        below = [
            r * (w.stride // w.step) + tap * w.dilation
            for r, w, tap in zip(row, windows[-2:-1], taps[-2:-1], strict=True)
        ] or [Expr.const(0)]
        (window, scale), tap = self._loops.line, taps[-1]
        offset = tap * window.dilation
        phase = tap % window.period
        outer = list(taps[: max(len(windows) - 2, 0)])
        along = column * scale + offset // window.stride + shift_of(window, self._loops.lanes)
        return self._b.load(self._lines, [channel, *outer, *below, phase, along])


def is_finished_alike(roots: Sequence[SSAValue], op: ConvOp) -> bool:
    """
    True if what follows depends on the channel alone, and gives bytes: these take
    less time to move than to compute in the shorter vectors that a row is made of.
    """
    element = element_type(roots[0])
    is_of_bytes = is_integer(element) and bit_width(element) == BYTE_BITS
    return is_of_bytes and depends_on_channels(roots, op)


def depends_on_channels(roots: Sequence[SSAValue], op: ConvOp) -> bool:
    """True if what follows depends on the sum and on the channel alone."""
    (root, *others), result = roots, op.result
    if others:
        return False
    pending, space = [root], len(dims_of(result)) - 2
    while pending:
        value = pending.pop()
        if value is result:
            continue
        if isinstance(value.owner, Block | ConstantOp):
            dims = dims_of(value)[max(len(dims_of(value)) - space, 0) :]
            if any(dim != 1 for dim in dims):
                return False
        elif isinstance(value.owner, ELEMENTWISE):
            pending += value.owner.operands
        else:
            return False
    return True


def _all(window: Window) -> Bounds:
    return Expr.const(0), Expr.const(window.taps)
