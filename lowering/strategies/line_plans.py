"""The sizes of bands and tiles of convolutions of row-major images, and what they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import TypeAlias

from lowerdeck.dialects.buffer.vector import LARGEST_STRIDE
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, numpy_dtype, static_shape
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.sums import is_in_parts, terms_of_part
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL
from lowerdeck.lowering.strategies.costs import (
    Scored,
    distance_cycles,
    fits,
    least,
    likely_shape,
    reduction_cycles,
    scored,
    tiles,
)
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.strategies.line_windows import (
    MOST_UNROLLED,
    Window,
    has_to_be_copied,
    is_unrolled,
    line_of,
    pitch_of,
    windows_of,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target, are_even

VECTOR, BAND_ROWS, BAND_COLUMNS = "vector", "rows", "columns"
"""Parameters of a schedule: the lanes, and the rows and columns of results in a band."""

COPIED = "copied"
"""The parameter of a schedule that copies inputs though taps could read them as they lie: 1."""

ROW, COLUMNS = "row", "v"
"""The labels of the loops over the rows of a band, and over vectors of columns."""

OPEN_ROWS, OPEN_COLUMNS = 16, 64
"""Of a band, where the image has an unknown number of them."""

FEW_VECTORS = 4
"""Of a row, which may take much of the stack."""

FEW_INPUTS = 4
"""Vectors of a tile that compilers keep in registers, even if these are all in use."""

WELL_DIVIDED = 1.03
"""How many times as long as its multiply-adds alone a convolution takes where tiles suit it."""

SURELY_BETTER = 1.05
"""By how much another band than the largest one has to be better."""

SPARE_REGISTERS = 3
"""That compilers do not use for a tile if they keep numbers for what follows it."""

Tile: TypeAlias = tuple[int, int, int]
"""Filters, rows, and vectors of columns."""


@record
class Plan:
    """The sizes of bands and tiles, and the estimated cycles of the convolution."""

    cycles: float
    lanes: int
    rows: int
    columns: int
    tile: Tile
    filters_last: bool
    """All filters of a tile of positions come before the next one."""
    copied: bool
    """Inputs are copied that need not be."""

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
                *([(COPIED, 1)] if self.copied else []),
            ),
        )


@record
class _Sums:
    """The sums of a band, and which tiles may divide them."""

    target: Target
    sizes: Tile
    taps: Sequence[int]
    """Channels of a group, then taps by axis."""
    bytes_: tuple[int, int]
    """Of the inputs and of the filters."""

    def tiles(self) -> Iterator[Tile]:
        """Tiles that fit into the registers."""
        most = (min(size, limit) for size, limit in zip(self.sizes, (8, 4, 4), strict=True))
        counts, belows, numbers = (range(1, limit + 1) for limit in most)
        for tile in product(counts, belows, numbers):
            if fits(self.target, tile[0], tile[1] * tile[2]) and self._keeps_registers(tile):
                yield tile

    def _keeps_registers(self, tile: Tile) -> bool:
        """True if compilers do not run out of registers for what stands around a tile."""
        count, inputs = tile[0], tile[1] * tile[2]
        # Many inputs need a register to spare: else they are loaded again for each filter.
        if inputs > FEW_INPUTS and (count + 1) * inputs + 2 >= self.target.machine.registers:
            return False
        if prod(self.taps[1:]) == 1 or self.sizes[2] % tile[2] == 0 or not self.filters_last(tile):
            return True
        return self._has_room(count, inputs)

    def _has_room(self, count: int, inputs: int) -> bool:
        """
        True if the numbers that the sums of filters that are left over begin with, which compilers
        keep in registers if filters are the inner loop around those over channels and taps, and
        columns are left over, too, need none of a tile.
        """
        rest = self.sizes[0] % count
        return (
            rest == 0
            or (count + 1) * inputs + 1 + rest + SPARE_REGISTERS <= self.target.machine.registers
        )

    def filters_last(self, tile: Tile) -> bool:
        """
        Whether filters are the inner loop over tiles, so that the inputs of a tile of positions
        stay in the cache and the filters are read again for each. Short sums are stored along rows,
        which memory takes as streams, if results do not stay in the L2 cache and inputs do.
        """
        inputs, filters = self.bytes_
        results = inputs // self.taps[0] * self.sizes[0]
        if results > self.target.machine.l2_bytes and inputs <= self.target.machine.l2_bytes // 4:
            return False
        tiles_of_filters = -(-self.sizes[0] // tile[0])
        tiles_of_positions = -(-(self.sizes[1] * self.sizes[2]) // (tile[1] * tile[2]))

        def read(own: int, times: int) -> int:
            return own * (times if own > self.target.machine.l1_bytes // 2 else 1)

        by_position = read(filters, tiles_of_positions) + inputs
        return by_position < read(inputs, tiles_of_filters) + filters

    def loads_again(self, tile: Tile) -> bool:
        """True if compilers load the inputs of a tile for each of its filters."""
        depth, *taps = self.taps
        is_few = tile[0] <= self.target.costs.folded_loads < self.sizes[0]
        return is_few and is_in_parts(depth, terms_of_part(prod(taps)))

    def written_out(self, *, is_open: bool) -> Iterator[Tile]:
        """Tiles of one filter that are written out; of a row of unknown length if `is_open`."""
        _, rows, vectors = self.sizes
        for below in range(1, min(rows, 4) + 1):
            # Of an unknown number of vectors few are left over.
            for number in range(1, min(vectors, 2 if is_open else 4) + 1):
                is_short = below * number * prod(self.taps) <= MOST_UNROLLED
                if is_short and fits(self.target, below, number):
                    yield 1, below, number


@record
class _Planner:
    """Finds the best tiles for bands of one convolution."""

    op: ConvOp
    target: Target
    threads: int
    windows: Sequence[Window]
    weight: Sequence[int]
    lanes: int

    @property
    def is_written_out(self) -> bool:
        return is_unrolled(self.weight, self.op.groups.data)

    @property
    def _size(self) -> int:
        """Of an element, in bytes."""
        return numpy_dtype(element_type(self.op.result)).itemsize

    def plan(self, bands: _Bands, band: tuple[int, int]) -> Plan:
        """The tiles for bands of these rows and columns, or smaller ones that threads can share."""
        op, target, lanes, weight = self.op, self.target, self.lanes, self.weight
        shape, groups = likely_shape(op), op.groups.data
        outer, filters = shape[0] * groups * prod(shape[2:-2]), weight[0] // groups
        rows, columns = band = _shared(op, band, (outer, lanes, self.threads))
        vectors = -(-columns // lanes)
        bytes_ = weight[1] * rows * columns, filters * prod(weight[1:])
        sums = _Sums(
            target,
            (filters, rows, vectors),
            weight[1:],
            (bytes_[0] * self._size, bytes_[1] * self._size),
        )
        each, tile = least(self._ways(bands, band, sums))
        if bands.is_copied:
            each += _copy_cycles(self.windows, bands.line, band, lanes, sums)
        number = -(-shape[-1] // columns)
        number *= -(-shape[-2] // rows) if len(self.windows) > 1 else 1
        last = sums.filters_last(tile)
        is_own = bands.is_copied and not has_to_be_copied(self.windows)
        return Plan(outer * number * each, lanes, rows, columns, tile, last, is_own)

    def _ways(self, bands: _Bands, band: tuple[int, int], sums: _Sums) -> Scored[Tile]:
        """Tiles of a band with the cycles of its sums."""
        if not self.is_written_out:
            return scored(sums.tiles(), lambda tile: _cycles(bands, band, sums, tile))
        width, (_, rows, vectors) = dims_of(self.op.result)[-1].value, sums.sizes
        is_open = width is None
        kept = 0.0
        if bands.is_copied and (is_open or width < self.lanes):
            kept = rows * (vectors * 4 + self.target.costs.row_cycles)

        def cost(tile: Tile) -> float:
            return kept + _unrolled_cycles(self.windows, (rows, vectors), tile, self.target)

        return scored(sums.written_out(is_open=is_open), cost)

    def better(self, plan: Plan, bands: _Bands) -> Plan:
        """
        Another plan, of bands that suit tiles or of inputs that are copied, if it is surely better,
        and what it keeps stays in the L2 cache beside the filters of a tile.
        """
        shape, each_filter = likely_shape(self.op), prod(self.weight[1:])
        products = prod(shape) * each_filter / self.lanes
        least_cycles = products / self.target.machine.multiply_adds_per_cycle
        if self.is_written_out or plan.cycles <= least_cycles * WELL_DIVIDED:
            return plan
        copied = replace(bands, is_copied=True)

        def stays(plan: Plan) -> bool:
            kept = copied.bytes_of(plan.rows, plan.columns)
            return (
                kept + plan.tile[0] * each_filter * self._size <= self.target.machine.l2_bytes // 2
            )

        others = filter(stays, [self.plan(copied, band) for band in copied.others()])
        best = min(others, key=lambda plan: plan.cycles, default=plan)
        return best if best.cycles * SURELY_BETTER < plan.cycles else plan


def plan_lines(op: ConvOp, target: Target, threads: int = 1) -> Plan | None:
    """
    The best plan for a convolution of row-major images, whose bands so many threads can share
    evenly; None if there is none.
    """
    weight, windows = static_shape(op.weight), windows_of(op)
    if weight is None or windows is None or 0 in weight or not is_of(op, f32, f64):
        return None
    if 0 in likely_shape(op) or windows[-1].stride > LARGEST_STRIDE:
        return None
    is_copied, is_written_out = has_to_be_copied(windows), is_unrolled(weight, op.groups.data)
    lanes = _lanes(op, target, is_kept=is_written_out and is_copied)
    if lanes is None:
        return None
    planner = _Planner(op, target, threads, windows, weight, lanes)
    bands = _Bands(
        op, windows, line_of(windows, apart=not is_written_out), lanes, is_copied, target
    )
    if (band := bands.largest()) is None:
        return None
    return planner.better(planner.plan(bands, band), bands)


def _lanes(op: ConvOp, target: Target, *, is_kept: bool) -> int | None:
    """
    Of vectors of results; None if rows are too short for any. Those of results that are kept may
    reach beyond a row, by less than half.
    """
    most, width = target.lanes_of(element_type(op.result)), dims_of(op.result)[-1].value
    lanes = most
    while width is not None and lanes > max(2 * width - 1 if is_kept else width, 1):
        lanes //= 2
    return lanes if lanes >= min(FEWEST_LANES, max(most, 2)) else None


def _cycles(bands: _Bands, band: tuple[int, int], sums: _Sums, tile: Tile) -> float:
    """Of the sums of a band, in tiles that are loops."""
    target, sizes, depth = sums.target, sums.sizes, sums.taps[0]
    loads = partial(_loads, times=tile[0] if sums.loads_again(tile) else 1)
    cycles = reduction_cycles(target, sizes, tile, prod(sums.taps), loads)
    visits = depth * prod(-(-size // part) for size, part in zip(sizes, tile, strict=True))
    if not bands.is_copied:
        return cycles + distance_cycles(bands.op, target, depth=depth, visits=visits)
    # The more lines are kept for a band, the later they come; products hide that of few.
    kept = bands.bytes_of(*band)
    if kept <= target.machine.l1_bytes // 2:
        return cycles
    costs = target.costs
    each = costs.kept_line_cycles + costs.more_kept_line_cycles * kept / target.machine.l2_bytes
    late = visits * bands.lines_of(tile) * each - costs.hidden_share * cycles
    return cycles + max(late, 0.0)


def _copy_cycles(
    windows: Sequence[Window],
    line: tuple[Window, int],
    band: tuple[int, int],
    lanes: int,
    sums: _Sums,
) -> float:
    """Of copying the inputs under a band."""
    rows, columns = band
    lines = sums.taps[0] * prod(window.taps for window in windows[:-2])
    lines *= windows[-2].kept(rows) if len(windows) > 1 else 1
    kept = windows[-1].kept(columns) / lanes * (2 if line[0].stride > 1 else 1)
    return lines * (3 * kept + sums.target.costs.row_cycles)


def _loads(tile: Sequence[int], times: int) -> int:
    """Of one step: vectors that are not aligned take two lines, and are loaded so many times."""
    count, below, number = tile
    return count + 2 * times * below * number


def _unrolled_cycles(
    windows: Sequence[Window],
    sizes: tuple[int, int],
    tile: tuple[int, int, int],
    target: Target,
) -> float:
    """Of a band, where the rows of a tile share the inputs they load."""
    costs, machine = target.costs, target.machine
    taps = prod(window.taps for window in windows)
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
                sums * taps / machine.multiply_adds_per_cycle,
                read / machine.loads_per_cycle,
                taps * machine.latency_cycles,
            )
            cycles += rows * columns * (step + costs.tile_cycles / 2 + sums)
    return cycles


def _shared(op: ConvOp, band: tuple[int, int], numbers: tuple[int, int, int]) -> tuple[int, int]:
    """
    A band that is smaller if threads could not share bands evenly, by how often there are as many,
    the lanes and the threads.
    """
    (rows, columns), (outer, lanes, threads) = band, numbers
    sizes = [dim.value for dim in dims_of(op.result)[2:]]
    height, width = sizes[-2] if len(sizes) > 1 else 1, sizes[-1]
    if height is None or width is None:
        return band
    below, beside = -(-height // rows), -(-width // columns)
    if are_even(outer * below * beside, threads):
        return band
    for number in range(below + 1, min(below + threads, height + 1)):
        if -(-height // -(-height // number)) == number and are_even(
            outer * number * beside, threads
        ):
            return -(-height // number), columns
    for number in range(beside + 1, beside + threads):
        wide = -(-width // (number * lanes)) * lanes
        if -(-width // wide) == number and are_even(outer * below * number, threads):
            return rows, min(wide, columns)
    return band


@record
class _Bands:
    """The rows and columns of results that may be computed at a time."""

    op: ConvOp
    windows: Sequence[Window]
    line: tuple[Window, int]
    lanes: int
    is_copied: bool
    """Inputs are."""
    target: Target

    @property
    def _sizes(self) -> tuple[int | None, int | None]:
        """The height and the width of the result: one row if it is a line."""
        sizes = [dim.value for dim in dims_of(self.op.result)[2:]]
        return sizes[-2] if len(sizes) > 1 else 1, sizes[-1]

    def bytes_of(self, rows: int, columns: int) -> int:
        """Of the lines that are kept for a band."""
        below = 1 if len(self.windows) == 1 else self.windows[-2].kept(rows)
        depth, element = dims_of(self.op.weight)[1].value or 0, element_type(self.op.result)
        lines = depth * prod(window.taps for window in self.windows[:-2]) * below
        pitch = pitch_of(self.line, columns, self.lanes)
        return lines * len(self.line[0].phases) * pitch * numpy_dtype(element).itemsize

    def lines_of(self, tile: Tile) -> float:
        """Lines of the cache that a tile reads of a channel."""
        _, rows, vectors = tile
        below = 1 if len(self.windows) == 1 else self.windows[-2].kept(rows)
        outer = prod(window.taps for window in self.windows[:-2])
        window, scale = self.line
        read = vectors * self.lanes * scale + window.reach // window.stride
        size = numpy_dtype(element_type(self.op.result)).itemsize
        return (
            outer
            * below
            * len(window.phases)
            * max(read * size / self.target.machine.line_bytes, 1.0)
        )

    def largest(self) -> tuple[int, int] | None:
        """As many as may be; None if the inputs under one row are too many."""
        (height, width), lanes, is_line = self._sizes, self.lanes, len(self.windows) == 1
        most_rows = OPEN_ROWS if height is None else height
        columns = OPEN_COLUMNS if width is None else width
        if not self.is_copied:
            return min(most_rows, 64), min(columns, 1 << 12)
        parts = 1
        whole = columns
        # On the stack; what is longer than a few vectors can be shorter.
        most, few = self.target.limits.stack_bytes, FEW_VECTORS
        while self.bytes_of(1, columns) > (most if columns <= few * lanes else most // few):
            if columns <= lanes:
                return None
            parts += 1
            columns = max(-(-whole // (parts * lanes)) * lanes, lanes)
        rows = most_rows
        # Rows under the windows of two bands are copied twice.
        near = self.target.machine.l1_bytes // 2
        while rows > 1 and self.bytes_of(rows, columns) > (
            near if rows > 2 * self.windows[-2].taps else 8 * near
        ):
            rows -= 1
        if height is not None and not is_line:
            rows = -(-height // -(-height // rows))
        return rows, min(columns, whole)

    def others(self) -> Iterator[tuple[int, int]]:
        """
        Those that may be better divided into tiles than the largest one: of an even number of rows,
        of all columns, or of one or two vectors. None for images of unknown sizes.
        """
        (height, width), lanes, most = self._sizes, self.lanes, self.largest()
        if height is None or width is None or most is None:
            return
        rows = {min(count, height) for count in (2, 4, most[0] // 2 * 2, most[0]) if count}
        columns = {min(count, width) for count in (most[1], width, lanes, 2 * lanes)}
        yield from product(sorted(rows), sorted(columns))
