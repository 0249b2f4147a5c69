"""
Convolution of row-major images: the lanes are adjacent results of a row, and weights are broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, inf, prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    numpy_dtype,
    static_shape,
)
from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.lowering.loops.parameters import parts_of
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.sums import sum_over_channels
from lowerdeck.lowering.nests.taps import Bounds, window_range
from lowerdeck.lowering.strategies.base import (
    FEWEST_TO_SHARE,
    Candidate,
    Setting,
    Strategy,
    Wishes,
)
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    can_be_blocked,
    conv_wishes,
    crosses_groups,
    is_depthwise,
    lanes_of_conv,
)
from lowerdeck.lowering.strategies.costs import (
    conversion_cycles,
    direct_cycles,
    fits,
    least,
    likely_images,
    likely_shape,
    page_cycles,
    reduction_cycles,
    scored,
    tiles,
)
from lowerdeck.lowering.strategies.facts import (
    is_constant,
    is_of,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.strategies.winograd import winograd_cycles
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target

VECTOR, BAND_ROWS, BAND_COLUMNS = "vector", "rows", "columns"
"""Parameters of a schedule: the lanes, and the rows and columns of results in a band."""

ROW, COLUMNS = "row", "v"
"""The labels of the loops over the rows of a band, and over vectors of columns."""

MOST_UNROLLED = 400
"""Multiply-adds of a tile that is written out."""

BAND_BYTES = 16 << 10
"""Of the inputs under a band: they stay in the L1 cache with what is written."""

MOST_BYTES = 1 << 18
"""Of the inputs under a band of one row: they lie on the stack."""

OPEN_ROWS, OPEN_COLUMNS = 16, 64
"""Of a band, where the image has an unknown number of them."""

FEW_INPUTS = 4
"""Vectors of a tile that compilers keep in registers, even if these are all in use."""

SPARE_REGISTERS = 3
"""That compilers do not use for a tile if they keep numbers for what follows it."""


@dataclass(frozen=True)
class Window:
    """What a convolution reads along an axis."""

    taps: int
    stride: int
    dilation: int
    begin: Expr
    """Padding before the image."""
    end: Expr

    @property
    def reach(self) -> int:
        """How far the last tap is from the first one."""
        return (self.taps - 1) * self.dilation

    @property
    def is_padded(self) -> bool:
        return self.begin != 0 or self.end != 0

    @property
    def step(self) -> int:
        """From one input that is kept to the next one: of single taps, others are left out."""
        return self.stride if self.taps == 1 else 1

    def kept(self, results: int) -> int:
        """The inputs under some adjacent results that are kept."""
        return ((results - 1) * self.stride + self.reach) // self.step + 1

    @property
    def period(self) -> int:
        """So many taps further, one lies at the same place along a row, modulo the stride."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def phases(self) -> list[int]:
        """Where along a row taps lie, modulo the stride: that of each tap of a period."""
        taps = range(min(self.taps, self.period))
        return [tap * self.dilation % self.stride for tap in taps]


class ConvLines(Strategy):
    """
    A band of some rows at a time: the inputs under it are copied with their padding, those of
    strided windows apart by their place modulo the stride, so that every tap reads whole vectors.
    Nothing is copied where windows neither reach beyond the image nor have a stride.

    For groups of any size, sizes known or not, and weights that may be computed.
    """

    name = "conv_lines"
    anchors = (ConvOp,)
    parameters = (VECTOR, BAND_ROWS, BAND_COLUMNS)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        op = the(ConvOp, kernel)
        image = position_of(kernel, op.input)
        if image is None or is_depthwise(op) or setting.target.lanes == 1:
            return None
        leaves = not any(isinstance(use.operation, KernelOp) for use in kernel.results[0].uses)
        if not leaves or isinstance(kernel.inputs[image].owner, KernelOp):
            return None
        plan, in_blocks = plan_lines(op, setting.target), _cycles_in_blocks(kernel, op, setting)
        if plan is None or plan.cycles / setting.threads > in_blocks:
            return None
        if dims_of(op.result)[-1].value is None and in_blocks < inf:
            return None  # rows may be too short for vectors
        border = (0,) * (2 * len(dims_of(op.input)))
        return conv_wishes(kernel, op, works_on_rows=True, border=border)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        plain = LayoutAttr.row_major(len(dims_of(op.input))).data.pieces
        layouts = (layout_in(kernel, op.input), layout_out(kernel))
        if any(layout.data.pieces != plain for layout in layouts):
            return
        if (plan := plan_lines(op, setting.target)) is not None:
            yield Candidate(plan.cycles / setting.threads, plan.schedule(self.name))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, filters = the(ConvOp, kernel), schedule.tile(OUTPUT_CHANNEL)
        if filters == 1 or not is_constant(kernel, op.weight):
            return {}
        axes = range(1, len(dims_of(op.weight)))
        pieces = [Piece(0, filters), *map(Piece, axes), Piece(0, 1, filters)]
        return {op.weight: LayoutAttr.of(pieces)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _Lowering(k, the(ConvOp, k.kernel), schedule).build()


def _cycles_in_blocks(kernel: KernelOp, op: ConvOp, setting: Setting) -> float:
    """Of the same convolution over channel blocks, with both conversions."""
    lanes, weight = setting.target.lanes, static_shape(op.weight)
    pads = constants((*op.pads_begin.data, *op.pads_end.data))
    if weight is None or pads is None:
        return inf
    rank = len(weight)
    result = LayoutAttr.blocked(rank, 1, lanes)
    begin, end = pads[: rank - 2], pads[rank - 2 :]
    source = result.padded((0, 0, *begin), (0, 0, *end))
    if not can_be_blocked(op, source, result):
        return inf
    cycles = direct_cycles(op, lanes, setting)
    if crosses_groups(op, result):
        cycles *= 1 + lanes * op.groups.data / weight[0]
    elif op.groups.data > 1:
        cycles *= lanes / lanes_of_conv(op, result)
    cycles = min(cycles, winograd_cycles(kernel, op, setting))
    # An input without a border is read as it lies.
    moved = prod(likely_shape(op)) + (prod(likely_images(op.input)) if any(pads) else 0)
    return cycles + moved * conversion_cycles(setting.target) / setting.threads


def windows_of(op: ConvOp) -> list[Window] | None:
    """By axis; None if the number of taps is not known."""
    taps = constants(dims_of(op.weight)[2:])
    if taps is None:
        return None
    entries = zip(
        taps,
        ints(op.strides),
        ints(op.dilations),
        op.pads_begin.data,
        op.pads_end.data,
        strict=True,
    )
    return [Window(*entry) for entry in entries]


@dataclass(frozen=True)
class Plan:
    """The sizes of bands and tiles, and the estimated cycles of the convolution."""

    cycles: float
    lanes: int
    rows: int
    columns: int
    tile: tuple[int, int, int]
    """Filters, rows, and vectors of columns."""
    filters_last: bool
    """All filters of a tile of positions come before the next one."""

    def schedule(self, name: str) -> Schedule:
        """With the tile as that of the innermost loops."""
        filters, rows, vectors = self.tile
        return Schedule(
            name,
            ((OUTPUT_CHANNEL, filters), (ROW, rows), (COLUMNS, vectors)),
            (ROW, COLUMNS, OUTPUT_CHANNEL) if self.filters_last else (OUTPUT_CHANNEL, ROW, COLUMNS),
            parameters=(
                (VECTOR, self.lanes),
                (BAND_ROWS, self.rows),
                (BAND_COLUMNS, self.columns),
            ),
        )


def plan_lines(op: ConvOp, target: Target) -> Plan | None:
    """The best plan for a convolution of row-major images; None if there is none."""
    weight, windows = static_shape(op.weight), windows_of(op)
    if weight is None or windows is None or 0 in weight or not is_of(op, f32, f64):
        return None
    element = element_type(op.result)
    shape, across = likely_shape(op), windows[-1]
    if 0 in shape or across.stride > LARGEST_STRIDE:
        return None
    lanes = target.lanes_of(element)
    width = dims_of(op.result)[-1].value
    is_kept = is_unrolled(weight, op.groups.data) and _is_copied(windows)
    # Vectors of results that are kept may reach beyond a row, by less than half.
    while width is not None and lanes > max(2 * width - 1 if is_kept else width, 1):
        lanes //= 2
    if lanes < min(FEWEST_LANES, max(target.lanes_of(element), 2)):
        return None
    size = numpy_dtype(element).itemsize
    line = line_of(windows, apart=not is_unrolled(weight, op.groups.data))
    sizes = _band(op, windows, line, (weight[1], lanes, size))
    if sizes is None:
        return None
    rows, columns = sizes
    groups, taps = op.groups.data, prod(weight[1:])
    filters, vectors = weight[0] // groups, -(-columns // lanes)
    read = weight[1] * rows * columns * size, filters * prod(weight[1:]) * size
    if is_unrolled(weight, groups):
        ways = [
            (1, below, number)
            for below in range(1, min(rows, 4) + 1)
            # Of an unknown number of vectors few are left over.
            for number in range(1, min(vectors, 4 if width is not None else 2) + 1)
            if below * number * taps <= MOST_UNROLLED and fits(target, below, number)
        ]
        each, tile = least(
            scored(ways, lambda tile: _unrolled_cycles(windows, (rows, vectors), tile, target))
        )
        if is_kept and (width is None or width < lanes):
            each += rows * (vectors * 4 + target.costs.row_cycles)
    else:
        ways = [
            (count, below, number)
            for count in range(1, min(filters, 8) + 1)
            for below in range(1, min(rows, 4) + 1)
            for number in range(1, min(vectors, 4) + 1)
            if fits(target, count, below * number)
            # Many inputs need a register to spare: else they are loaded again for each filter.
            and (
                below * number <= FEW_INPUTS or (count + 1) * below * number + 2 < target.registers
            )
            and (
                prod(weight[2:]) == 1
                or vectors % number == 0
                or not _filters_last(
                    read, (filters, rows * vectors), (count, below, number), target
                )
                or _has_room(target, filters, count, below * number)
            )
        ]
        sizes = [filters, rows, vectors]

        def cost(tile: tuple[int, int, int]) -> float:
            cycles = reduction_cycles(target.costs, sizes, tile, taps, _loads)
            if _is_copied(windows):
                return cycles
            number = prod(-(-size // part) for size, part in zip(sizes, tile, strict=True))
            return cycles + page_cycles(op, target, depth=weight[1], visits=number * weight[1])

        each, tile = least(scored(ways, cost))
    copied = 0.0
    if _is_copied(windows):
        lines = weight[1] * prod(w.taps for w in windows[:-2])
        lines *= windows[-2].kept(rows) if len(windows) > 1 else 1
        kept = across.kept(columns) / lanes * (2 if line[0].stride > 1 else 1)
        copied = lines * (3 * kept + target.costs.row_cycles)
    bands = prod(shape[2:-2]) * -(-shape[-1] // columns)
    bands *= -(-shape[-2] // rows) if len(windows) > 1 else 1
    filters_last = _filters_last(read, (filters, rows * vectors), tile, target)
    cycles = shape[0] * groups * bands * (each + copied)
    return Plan(cycles, lanes, rows, columns, tile, filters_last)


def _has_room(target: Target, filters: int, count: int, inputs: int) -> bool:
    """
    True if the numbers that the sums of filters that are left over begin with, which compilers keep
    in registers if filters are the inner loop around those over channels and taps, and columns are
    left over, too, need none of a tile.
    """
    rest = filters % count
    return rest == 0 or (count + 1) * inputs + 1 + rest + SPARE_REGISTERS <= target.registers


def _filters_last(
    bytes_: tuple[int, int], sizes: tuple[int, int], tile: tuple[int, int, int], target: Target
) -> bool:
    """
    Whether filters are the inner loop over tiles, so that the inputs of a tile of positions stay in
    the cache and the filters are read again for each; by the bytes of both in a band.
    """
    inputs, filters = bytes_
    count, positions = tile[0], tile[1] * tile[2]

    def read(own: int, times: int) -> int:
        return own * (times if own > target.l1_bytes // 2 else 1)

    again = [-(-size // part) for size, part in zip(sizes, (count, positions), strict=True)]
    return read(filters, again[1]) + inputs < read(inputs, again[0]) + filters


def is_unrolled(weight: Sequence[int], groups: int) -> bool:
    """
    True for single filters of few taps on one channel: a tile is written out, without a loop over
    them.
    """
    return weight[0] == groups and weight[1] == 1 and prod(weight[2:]) <= MOST_UNROLLED


def _loads(tile: Sequence[int]) -> int:
    """Of one step: vectors that are not aligned take two lines."""
    count, below, number = tile
    return count + 2 * below * number


def _unrolled_cycles(
    windows: Sequence[Window],
    sizes: tuple[int, int],
    tile: tuple[int, int, int],
    target: Target,
) -> float:
    """Of a band, where the rows of a tile share the inputs they load."""
    costs, taps = target.costs, prod(window.taps for window in windows)
    cycles = 0.0
    for rows, below in tiles(sizes[0], tile[1]):
        for columns, number in tiles(sizes[1], tile[2]):
            lines = windows[-2].kept(below) if len(windows) > 1 else 1
            outer = prod(window.taps for window in windows[:-2])
            read = (
                outer * lines * windows[-1].taps * number * (2 if windows[-1].stride == 1 else 3)
                + below * taps
            )
            sums = below * number
            step = max(
                sums * taps / costs.multiply_adds_per_cycle,
                read / costs.loads_per_cycle,
                taps * costs.latency_cycles,
            )
            cycles += rows * columns * (step + costs.tile_cycles / 2 + sums)
    return cycles


def _is_copied(windows: Sequence[Window]) -> bool:
    """True if the inputs under a band do not lie as taps read them."""
    return windows[-1].stride > 1 or any(window.is_padded for window in windows[-2:])


def _band(
    op: ConvOp,
    windows: Sequence[Window],
    line: tuple[Window, int],
    numbers: tuple[int, int, int],
) -> tuple[int, int] | None:
    """
    Rows and columns of results at a time, by the channels of a group, the lanes and the bytes of an
    element; None if the inputs under one row are too many.
    """
    depth, lanes, size = numbers
    height, width = (None, *(dim.value for dim in dims_of(op.result)[2:]))[-2:]
    is_line = len(windows) == 1
    most_rows = 1 if is_line else OPEN_ROWS if height is None else height
    columns = OPEN_COLUMNS if width is None else width
    if not _is_copied(windows):
        return (most_rows if is_line or height is None else min(height, 64)), min(columns, 1 << 12)
    lines = depth * prod(window.taps for window in windows[:-2])

    def bytes_(rows: int, columns: int) -> int:
        below = 1 if is_line else windows[-2].kept(rows)
        return lines * below * len(line[0].phases) * pitch_of(line, columns, lanes) * size

    parts = 1
    whole = columns
    while bytes_(1, columns) > (MOST_BYTES if columns <= 4 * lanes else MOST_BYTES // 4):
        if columns <= lanes:
            return None
        parts += 1
        columns = max(-(-whole // (parts * lanes)) * lanes, lanes)
    rows = most_rows
    # Rows under the windows of two bands are copied twice.
    while rows > 1 and bytes_(rows, columns) > (
        BAND_BYTES if rows > 2 * windows[-2].taps else 8 * BAND_BYTES
    ):
        rows -= 1
    if height is not None and not is_line:
        rows = -(-height // -(-height // rows))
    return rows, min(columns, whole)


def line_of(windows: Sequence[Window], *, apart: bool) -> tuple[Window, int]:
    """
    How a copied row is read: the window along it, and how far apart results begin. With `apart`,
    lines hold every `stride`-th input.
    """
    window = windows[-1]
    return (window, 1) if apart else (replace(window, stride=1), window.stride)


def pitch_of(line: tuple[Window, int], columns: int, lanes: int) -> int:
    """Elements of a line of one phase, under whole vectors of results."""
    window, scale = line
    results = -(-columns // lanes) * lanes
    used = shift_of(window, lanes) + results * scale + window.reach // window.stride
    return -(-used // lanes) * lanes


def shift_of(window: Window, lanes: int) -> int:
    """Where a line begins, so that vectors of what lies on the image are aligned."""
    return -(window.begin.value or 0) % lanes if window.stride == 1 else 0


@dataclass(frozen=True)
class _Span:
    """A part of an axis of the result."""

    first: Expr
    count: Expr


@dataclass(frozen=True)
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


Place: TypeAlias = "Sequence[Expr]"


@dataclass(frozen=True)
class _Part:
    """Vectors that are alike in all rows: `body` of each, by its number and two places of a row."""

    first: Expr
    last: Expr
    body: Callable[[Expr, Place, Place], None]


class _Lowering:
    """The loops of one convolution."""

    def __init__(self, k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
        self._k, self._b, self._op = k, k.builder, op
        windows, weight = windows_of(op), static_shape(op.weight)
        assert windows is not None
        assert weight is not None
        self._windows, self._weight = windows, weight
        self._dims, self._inputs = dims_of(op.result), dims_of(op.input)
        self._lanes = schedule.parameter(VECTOR)
        self._rows, self._columns = (schedule.parameter(name) for name in (BAND_ROWS, BAND_COLUMNS))
        self._tile = schedule.tile(ROW), schedule.tile(COLUMNS)
        self._is_unrolled = is_unrolled(weight, op.groups.data)
        self._line = line_of(windows, apart=not self._is_unrolled)
        self._pitch = pitch_of(self._line, self._columns, self._lanes)
        width = self._dims[-1].value
        is_short = width is None or width < self._lanes
        self._is_kept = self._is_unrolled and is_short and _is_copied(windows)
        self._filters = weight[0] // op.groups.data
        self._element = element_type(op.input)
        self._is_copied = _is_copied(windows)

    def build(self) -> None:
        """
        A band of one group at a time. Where there are few groups and images, bands of rows are
        dealt out to threads.
        """
        b, dims = self._b, self._dims
        planes = [("n", dims[0]), ("g", Expr.const(self._op.groups.data))]
        outer = [(f"z{axis}", dim) for axis, dim in enumerate(dims[2:-2])]
        bands = [("y", dim.ceildiv(self._rows)) for dim in dims[2:][-2:-1]]
        columns = ("x", dims[-1].ceildiv(self._columns))
        count = (dims[0] * self._op.groups.data).value
        few = count is not None and count < FEWEST_TO_SHARE
        order = [*bands, *planes] if few else [*planes, *bands]
        order = [*order, *outer, columns]
        # Threads share the filters of a single band, if there is nothing to be copied before.
        self._is_single = not self._is_copied and all(size == 1 for _, size in order)
        with b.labeled_nest(order, parallel=True) as at:
            place = dict(zip((label for label, _ in order), at, strict=True))
            self._image, self._group = place["n"], place["g"]
            self._slice = [place[label] for label, _ in outer]
            down = [self._span(-2, place["y"], self._rows) for _ in bands]
            across = self._span(-1, place["x"], self._columns)
            self._first_row = down[0].first if down else Expr.const(0)
            lines = self._copied(down, across) if self._is_copied else None
            self._multiply(lines, down, across)

    def _span(self, axis: int, number: Expr, size: int) -> _Span:
        """
        A part of an axis, `size` results long; the last one begins early enough to be so, or is
        shorter if the axis may be.
        """
        b, whole = self._b, self._dims[axis]
        if whole.value is not None:
            return _Span(b.computed(minimum(number * size, whole - size)), Expr.const(size))
        first = number * size
        return _Span(first, b.computed(minimum(whole - first, size)))

    # The inputs under a band

    def _copied(self, down: Sequence[_Span], across: _Span) -> SSAValue:
        """
        Lines by channel, the taps of outer axes, rows, and phases. Those of slices outside of the
        image are not set: nothing reads them.
        """
        b, windows = self._b, self._windows
        phases = self._line[0].phases
        rows = windows[-2].kept(self._rows) if down else 1
        outer = [window.taps for window in windows[:-2]]
        lines = b.scratch(self._element, [self._weight[1], *outer, rows, len(phases), self._pitch])
        self._on_row = [self._row_of(phase, across) for phase in phases]
        with b.nest([Expr.const(self._weight[1])]) as (channel,):
            self._copy_slices(lines, [channel], self._slice_bounds(), down, across)
        return lines

    def _copy_slices(
        self,
        lines: SSAValue,
        at: Sequence[Expr],
        bounds: Sequence[Bounds],
        down: Sequence[_Span],
        across: _Span,
    ) -> None:
        if bounds:
            (lower, upper), rest = bounds[0], bounds[1:]
            with self._b.loop(upper, lower) as tap:
                self._copy_slices(lines, [*at, tap], rest, down, across)
            return
        source = [
            self._image,
            self._group * self._weight[1] + at[0],
            *self._slice_place(at[1:]),
        ]
        if not down:
            for part in self._parts(lines):
                with self._b.loop(part.last, part.first) as vector:
                    part.body(vector, [*at, Expr.const(0)], source)
            return
        b, window, (span,) = self._b, self._windows[-2], down
        first = span.first * window.stride - window.begin
        count = (span.count - 1) * (window.stride // window.step) + (window.reach + 1)
        lower, upper = self._on_image(-2, first, window.step, count)
        for begin, end in ((Expr.const(0), lower), (upper, count)):
            if begin != end:
                with b.loop(end, begin) as row:
                    self._clear_row(lines, [*at, row])
        self._over_rows(
            (lower, upper),
            self._parts(lines),
            lambda row: ([*at, row], [*source, first + row * window.step]),
        )

    def _over_rows(
        self, rows: Bounds, parts: Iterable[_Part], at: Callable[[Expr], tuple[Place, Place]]
    ) -> None:
        """
        All parts of some rows, row by row. If it is not known how many vectors of each kind there
        are, the rows are the inner loop: many short loops of unknown length are predicted badly.
        """
        b, (lower, upper) = self._b, rows
        if self._dims[-1].value is not None:
            with b.loop(upper, lower) as row:
                for part in parts:
                    with b.loop(part.last, part.first) as vector:
                        part.body(vector, *at(row))
            return
        for part in parts:
            with b.loop(part.last, part.first) as vector, b.loop(upper, lower) as row:
                part.body(vector, *at(row))

    def _on_image(self, axis: int, first: Expr, step: int, count: Expr) -> Bounds:
        """Of `count` places `step` apart from the first one on: those on the image."""
        b, window = self._b, self._windows[axis]
        lower, upper = Expr.const(0), count
        if window.begin != 0:
            lower = b.computed(minimum(maximum((-first).ceildiv(step), 0), count))
        if window.end != 0:
            behind = (self._inputs[axis] - first).ceildiv(step)
            upper = b.computed(maximum(minimum(behind, count), lower))
        return lower, upper

    def _clear_row(self, lines: SSAValue, at: Sequence[Expr]) -> None:
        for number in range(len(self._line[0].phases)):
            part = self._cleared(lines, number, Expr.const(0), Expr.const(self._pitch))
            with self._b.loop(part.last, part.first) as vector:
                part.body(vector, at, ())

    def _cleared(self, lines: SSAValue, phase: int, first: Expr, last: Expr) -> _Part:
        """From the beginning of a vector to the end of one."""
        b, lanes = self._b, self._lanes

        def clear(number: Expr, at: Place, source: Place) -> None:
            with b.loop(lanes, mode="lanes") as lane:
                zero = scalars.constant(b, 0, self._element)
                b.store(zero, lines, [*at, Expr.const(phase), number * lanes + lane])

        return _Part(first // lanes, last.ceildiv(lanes), clear)

    def _row_of(self, phase: int, across: _Span) -> _Row:
        """The same for all lines of one phase."""
        window, scale = self._line
        first = across.first * self._windows[-1].stride + (phase - window.begin)
        count = (across.count - 1) * scale + ((window.reach - phase) // window.stride + 1)
        lower, upper = self._on_image(-1, first, window.stride, count)
        read = count
        if self._is_kept:
            read += (across.count.ceildiv(self._lanes) * self._lanes - across.count) * scale
        return _Row(first, count, read, lower, upper, self._pieces(upper - lower))

    def _parts(self, lines: SSAValue) -> Iterator[_Part]:
        """What is stored of each row: zeros beside the image, then what lies on it."""
        stride, shift = self._line[0].stride, shift_of(self._line[0], self._lanes)
        for number, row in enumerate(self._on_row):
            if row.lower != 0:
                yield self._cleared(lines, number, Expr.const(0), row.lower + shift)
            if row.upper != row.read:
                yield self._cleared(lines, number, row.upper + shift, row.read + shift)
            for width, runs in row.pieces:
                yield _Part(
                    Expr.const(0),
                    runs,
                    partial(self._copy_vector, lines, (number, row), (stride, shift), width),
                )

    def _copy_vector(
        self,
        lines: SSAValue,
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
            value = self._k.element(self._op.input, [*source, row.first + place * stride])
            self._b.store(value, lines, [*at, Expr.const(number), place + shift])

        self._vector(vector, width, row.upper - row.lower, copy)

    # Vectors of columns

    def _pieces(self, count: Expr) -> list[tuple[int, Expr]]:
        """
        The lanes of vectors of `count` columns, and how many: the last one ends with the last
        column, even if some are done twice then. If the number is not known, in shorter vectors
        where it is too small for one.
        """
        b, lanes = self._b, self._lanes
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

    def _vector(self, number: Expr, width: int, count: Expr, body: Callable[[Expr], None]) -> None:
        """`body` for the columns of a vector."""
        start = self._column(number, width, count)
        with self._b.loop(width, mode="lanes" if width > 1 else None) as lane:
            body(start + lane)

    # Sums

    def _multiply(self, lines: SSAValue | None, down: Sequence[_Span], across: _Span) -> None:
        b = self._b
        if self._is_unrolled:
            self._multiply_unrolled(lines, down, across)
            return
        rows = [(ROW, span.count) for span in down]
        for width, runs in self._pieces(across.count):
            # Short vectors of an open row are few, and have no tiles.
            label = COLUMNS if width == self._lanes else "short"
            labels = [(OUTPUT_CHANNEL, Expr.const(self._filters)), *rows, (label, runs)]
            with b.labeled_nest(labels, parallel=self._is_single) as (number, *row, vector):

                def result(
                    column: Expr, number: Expr = number, row: Sequence[Expr] = tuple(row)
                ) -> None:
                    at = self._place(number, down, row, across.first + column)
                    place = (row, column)
                    start = self._start(at)

                    def product(
                        channel: Expr, taps: Sequence[Expr], values: Sequence[SSAValue]
                    ) -> Sequence[SSAValue]:
                        value = self._input(lines, channel, taps, place, at)
                        weight = self._k.element(self._op.weight, [at[1], channel, *taps])
                        return [b.fma(value, weight, values[0])]

                    channels, taps = self._weight[1], prod(self._weight[2:])
                    bounds = [*self._slice_bounds(), *(_all(w) for w in self._windows[-2:])]
                    total = sum_over_channels(b, (channels, 1, taps), bounds, start, product)
                    self._k.finish(self._op, at, total)

                self._vector(vector, width, across.count, result)

    def _place(
        self, number: Expr, down: Sequence[_Span], row: Sequence[Expr], column: Expr
    ) -> list[Expr]:
        """The index of a result: that of a filter of the group, in a row of the band."""
        channel = self._group * self._filters + number
        below = [span.first + r for span, r in zip(down, row, strict=True)]
        return [self._image, channel, *self._slice, *below, column]

    def _start(self, at: Sequence[Expr]) -> SSAValue:
        if self._op.bias is None:
            return scalars.constant(self._b, 0, self._element)
        return self._k.element(self._op.bias, [at[1]])

    def _multiply_unrolled(
        self, lines: SSAValue | None, down: Sequence[_Span], across: _Span
    ) -> None:
        """
        One filter: tiles of rows and vectors, written out line by line of the inputs, each of which
        is loaded once for all rows of the tile.
        """
        b = self._b
        rows = down[0].count if down else Expr.const(1)
        kept, pieces = None, self._pieces(across.count)
        if self._is_kept:
            pitch = -(-self._columns // self._lanes) * self._lanes
            kept = b.scratch(self._element, [self._rows, pitch])
            pieces = [(self._lanes, across.count.ceildiv(self._lanes))]
        for width, runs in pieces:
            for below in parts_of(rows, self._tile[0], 1):
                for along in parts_of(runs, self._tile[1] if width == self._lanes else 1, 1):
                    counts = [(part.upper - part.lower) // part.step for part in (below, along)]
                    with b.nest(counts) as (row, vector):
                        first = below.lower + row * below.step
                        firsts = [
                            self._column(
                                along.lower + vector * along.step + k,
                                width,
                                None if self._is_kept else across.count,
                            )
                            for k in range(along.step)
                        ]
                        with b.loop(width, mode="lanes" if width > 1 else None) as lane:
                            columns = [column + lane for column in firsts]
                            tile = ([first + k for k in range(below.step)], columns)
                            self._write_out((lines, kept), down, across, tile)
        if kept is not None:
            self._finish_kept(kept, rows, down, across)

    def _finish_kept(
        self, kept: SSAValue, rows: Expr, down: Sequence[_Span], across: _Span
    ) -> None:
        """Results that vectors reaching beyond rows have left."""
        b, none = self._b, Expr.const(0)

        def finish_vector(width: int, vector: Expr, row: Place, _: Place) -> None:
            def finish(column: Expr) -> None:
                at = self._place(none, down, row if down else [], across.first + column)
                self._k.finish(self._op, at, b.load(kept, [*row, column]))

            self._vector(vector, width, across.count, finish)

        parts = [
            _Part(none, runs, partial(finish_vector, width))
            for width, runs in self._pieces(across.count)
        ]
        self._over_rows((none, rows), parts, lambda row: ([row], ()))

    def _column(self, number: Expr, width: int, count: Expr | None) -> Expr:
        """The first one of a vector, which ends with the last of `count` if that matters."""
        start = number * width
        if count is None or count % width == 0:
            return start
        return minimum(start, count - width)

    def _write_out(
        self,
        buffers: tuple[SSAValue | None, SSAValue | None],
        down: Sequence[_Span],
        across: _Span,
        tile: tuple[Sequence[Expr], Sequence[Expr]],
    ) -> None:
        """The sums of some rows and columns, from the lines of the inputs."""
        b, none, (lines, kept) = self._b, Expr.const(0), buffers
        rows, columns = tile
        window = self._windows[-2] if down else Window(1, 1, 1, none, none)
        step = window.stride // window.step
        every = [(row, column) for row in range(len(rows)) for column in range(len(columns))]
        where = {
            (row, column): self._place(
                none, down, [rows[row]] if down else [], across.first + columns[column]
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
                for tap in range(self._windows[-1].taps) if taps else ():
                    self._add_tap(lines, (where, columns), (outer, taps, tap), totals)
            return [totals[place] for place in every]

        results = b.carry_nest(self._slice_bounds(), [start] * len(every), add_lines)
        for (row, column), total in zip(every, results, strict=True):
            if kept is None:
                self._k.finish(self._op, where[row, column], total)
            else:
                b.store(total, kept, [rows[row], columns[column]])

    def _add_tap(
        self,
        lines: SSAValue | None,
        results: tuple[Mapping[tuple[int, int], Sequence[Expr]], Sequence[Expr]],
        taps: tuple[Sequence[Expr], Mapping[int, int], int],
        totals: dict[tuple[int, int], SSAValue],
    ) -> None:
        """Add what lies on one line, under one tap along it, to the sums of each row."""
        b, none, (where, columns), (outer, below, along) = self._b, Expr.const(0), results, taps
        has_rows = len(self._windows) > 1

        def at(row: int) -> list[Expr]:
            return [*outer, *([Expr.const(below[row])] if has_rows else []), Expr.const(along)]

        weights = {
            row: self._k.element(self._op.weight, [where[0, 0][1], none, *at(row)]) for row in below
        }
        first = min(below)
        for number, column in enumerate(columns):
            place = where[first, number]
            row = [place[-2] - self._first_row] if has_rows else []
            value = self._input(lines, none, at(first), (row, column), place)
            for own, weight in weights.items():
                totals[own, number] = b.fma(value, weight, totals[own, number])

    def _input(
        self,
        lines: SSAValue | None,
        channel: Expr,
        taps: Sequence[Expr],
        place: tuple[Sequence[Expr], Expr],
        at: Sequence[Expr],
    ) -> SSAValue:
        """The input under a tap of the window of a result."""
        windows, (row, column) = self._windows, place
        if lines is None:
            where = [
                position * w.stride + tap * w.dilation - w.begin
                for position, w, tap in zip(at[2:], windows, taps, strict=True)
            ]
            first = self._group * self._weight[1]
            return self._k.element(self._op.input, [at[0], first + channel, *where])
        below = [
            r * (w.stride // w.step) + tap * w.dilation
            for r, w, tap in zip(row, windows[-2:-1], taps[-2:-1], strict=True)
        ] or [Expr.const(0)]
        (window, scale), tap = self._line, taps[-1]
        offset = tap * window.dilation
        phase = tap % window.period
        outer = list(taps[: max(len(windows) - 2, 0)])
        along = column * scale + offset // window.stride + shift_of(window, self._lanes)
        return self._b.load(lines, [channel, *outer, *below, phase, along])

    def _slice_bounds(self) -> list[Bounds]:
        """The taps of outer axes that lie on the image."""
        found: list[Bounds] = []
        for axis, position in enumerate(self._slice):
            w, dim = self._windows[axis], self._inputs[axis + 2]
            lower, upper = window_range(
                position, Expr.const(w.taps), dim, w.stride, w.dilation, w.begin, w.end
            )
            found.append((self._b.computed(lower), self._b.computed(upper)))
        return found

    def _slice_place(self, taps: Sequence[Expr]) -> list[Expr]:
        return [
            position * w.stride + tap * w.dilation - w.begin
            for position, w, tap in zip(self._slice, self._windows, taps, strict=False)
        ]


def _all(window: Window) -> Bounds:
    return Expr.const(0), Expr.const(window.taps)
