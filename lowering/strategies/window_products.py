"""Products whose right matrix is what windows see: it is copied a band of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.tiles import MOST_ROWS, TILE, Windows, words_in_tiles, words_of
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.index_maps import broadcast_index, linear_index
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import COUNTED_ROWS, MatmulOp, WindowsOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, i32, numpy_dtype
from lowerdeck.dialects.dims import Expr, ExprLike, constants, product
from lowerdeck.lowering.nests.contraction import add_product, added_to, factor_element
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.costs import of_busiest
from lowerdeck.lowering.strategies.depthwise_words import FINISHING_CYCLES
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    is_constant,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.strategies.matrix_tiles import (
    PACKINGS,
    Image,
    Panels,
    block,
    block_cycles,
    blocks_of,
    left_in_tiles,
    lies_in_tiles,
    vectors_of,
)
from lowerdeck.lowering.strategies.tiled_matmul import (
    COLUMN,
    for_elements,
    most_sums,
    product_tiles,
    row_labels,
    with_sum,
)
from lowerdeck.lowering.targets.base import F32_BYTES, Target

BAND = "band"
"""The parameter of a schedule: rows of windows whose columns are copied at a time."""

TILES = "tiles"
"""The parameter of a schedule that multiplies tiles of matrices: 1."""

IN_PLACE = "in_place"
"""The parameter of a schedule that copies nothing: 1."""

_COPY_CYCLES, _TILE_COPY_CYCLES = 1.5, 4.5
"""Of a vector, from one cache to the other, and where tiles are loaded of it, which wait for it."""

_LINE_CYCLES = 1.0
"""Of a line that is loaded into a tile; of two for a row that begins anywhere."""


def can_be_in_bands(
    taps: Sequence[int], rows: Expr, counts: Sequence[Expr], target: Target
) -> bool:
    """
    True for windows of several taps, in known numbers, that fill more than half of the L2 cache as
    columns of so many rows, while those of a row of them fit into a quarter.
    """
    sizes = constants([rows, *counts])
    if sizes is None or len(taps) < 2 or prod(taps) == 1:
        return False
    part, row = target.machine.l2_bytes // 4, sizes[0] * prod(sizes[2:]) * F32_BYTES
    least = target.machine.l1_bytes if target.isa.tiles is not None else 2 * part
    return row <= part and row * sizes[1] > least


class WindowProducts(Strategy):
    """
    Of a band of rows of windows the columns are copied into a small buffer, then multiplied: in
    tiles of matrices where there are such, else in tiles of rows by vectors of columns. Rows of the
    buffer are an odd number of lines apart, so that they do not share few places in a cache. Where
    vectors fill the rows of windows, and adjacent windows begin at adjacent positions, columns may
    be read from the image in place; so may tiles that fill the rows, each of one tap.
    """

    name = "window_products"
    anchors = (MatmulOp,)
    parameters = (BAND, TILES, IN_PLACE)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        windows = op.rhs.owner
        if not isinstance(windows, WindowsOp) or element_type(windows.result) != i32:
            return
        if target.lanes_of(i32) == 1:
            return
        layouts = [layout_out(kernel), *(layout_in(kernel, v) for v in (op.lhs, windows.input))]
        if not all(layout.is_row_major for layout in layouts):
            return
        counts = constants(windows.counts)
        if counts is None or len(counts) < 2:
            return
        depth, height = assumed_shape(op.rhs)[-2], assumed_shape(op.result)[-2]
        images = prod(assumed_shape(op.result)[:-2])
        for band in _bands(counts, depth, images, setting):
            columns = band * prod(counts[1:])
            parts = images * -(-counts[0] // band)
            vectors = depth * -(-columns // target.lanes)
            for cycles, schedule in self._ways(kernel, (height, columns, depth), setting):
                in_tiles = _has_tiles(schedule)
                copied = (_TILE_COPY_CYCLES if in_tiles else _COPY_CYCLES) * vectors
                own = Schedule(
                    self.name,
                    schedule.tiles,
                    schedule.order,
                    schedule.lanes,
                    parameters=((BAND, band), *schedule.parameters),
                )
                cycles = of_busiest(parts * (cycles + copied), parts, setting)
                if in_tiles:
                    cycles += target.machine.tile_start_cycles
                yield Candidate(cycles, own)
        if ints(windows.strides)[-1] != 1 or op.is_split:
            return
        if (cycles := _cycles_in_tiles(kernel, op, windows, target)) is not None:
            own = Schedule(
                self.name, lanes=((COLUMN, target.lanes),), parameters=((IN_PLACE, 1), (TILES, 1))
            )
            parts = images * counts[0]
            cycles = of_busiest(images * cycles, parts, setting) + target.machine.tile_start_cycles
            yield Candidate(cycles, own)
        if counts[-1] % target.lanes or element_type(op.result) != i32:
            return
        parts = images * prod(counts[:-1])
        for cycles, schedule in self._ways(kernel, (height, counts[-1], depth), setting):
            if not _has_tiles(schedule):
                own = replace(schedule, parameters=((IN_PLACE, 1),))
                yield Candidate(of_busiest(parts * cycles, parts, setting), own)

    def _ways(
        self, kernel: KernelOp, sizes: tuple[int, int, int], setting: Setting
    ) -> Iterator[tuple[float, Schedule]]:
        """Ways to multiply rows by columns of so many words, with their cycles."""
        op, target, (rows, columns, depth) = the(MatmulOp, kernel), setting.target, sizes
        row, lanes = row_labels(len(dims_of(op.result)))[-1], ((COLUMN, target.lanes),)
        is_packed = op.packing is not None and op.packing.data in PACKINGS
        if target.isa.tiles is not None and is_packed:
            depth = _depth(kernel, op)
            sizes, factors = (rows, columns, depth), (rows * depth, depth * columns)
            cycles = block_cycles(target, sizes, factors, is_packed=False)
            yield cycles, Schedule(self.name, lanes=lanes, parameters=((TILES, 1),))
        if element_type(op.result) != i32:
            return
        scaled = for_elements(target, i32, i32)
        most = most_sums(kernel, target)
        for cycles, tile in product_tiles(scaled, rows, columns, depth, most=most):
            if op.is_split and tile[0] > COUNTED_ROWS:
                continue
            tiles, width = ((row, tile[0]), (COLUMN, tile[1])), ((COLUMN, scaled.lanes),)
            order = (row, COLUMN) if depth * columns > rows * depth else (COLUMN, row)
            yield cycles, Schedule(self.name, tiles, order, width)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        if not _has_tiles(schedule):
            return {}
        if schedule.get(IN_PLACE) is None:
            return left_in_tiles(kernel, op, _depth(kernel, op))
        windows = op.rhs.owner
        assert isinstance(windows, WindowsOp)
        depth, parts = dims_of(op.lhs)[-1].value or 0, product(windows.taps.data).value or 1
        return left_in_tiles(kernel, op, depth, parts)

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(MatmulOp, k.kernel)
        windows, band = op.rhs.owner, schedule.get(BAND)
        assert isinstance(windows, WindowsOp)
        if schedule.get(IN_PLACE) is not None:
            if _has_tiles(schedule):
                _lower_in_tiles(k, op, windows, schedule.vector(COLUMN))
            else:
                _lower_in_place(k, op, windows)
            return
        counts = constants(windows.counts)
        assert counts is not None
        assert band is not None
        batch, depth = dims_of(op.result)[:-2], dims_of(op.lhs)[-1].value or 0
        labels = list(zip(row_labels(len(batch) + 2), batch, strict=False))
        whole = counts[0] // band
        for first, count, size in ((0, whole, band), (whole * band, 1, counts[0] % band)):
            if not count or not size:
                continue
            nest = k.builder.labeled_nest([*labels, ("band", count)], parallel=True)
            with nest as (*outer, number):
                start = number * band + first
                most = words_in_tiles(depth) if lies_in_tiles(k, op) else depth
                panel = _copied(k, windows, outer, start, size, schedule.vector(COLUMN), most)
                corner = (*outer, start * prod(counts[1:]))
                sizes = (dims_of(op.result)[-2], Expr.const(size * prod(counts[1:])))
                found = k.builder.scratch(element_type(k.roots[0]), [*sizes])
                if _has_tiles(schedule):
                    width = schedule.vector(COLUMN)
                    _multiply_in_tiles(k, op, (panel, found), corner, sizes, width, most)
                else:
                    _multiply(k, op, (panel, found), corner, sizes, schedule)
                _store(k, found, corner, sizes, schedule.vector(COLUMN))
        if _has_tiles(schedule):
            k.builder.release_tiles()


def _lower_in_place(k: KernelLowering, op: MatmulOp, windows: WindowsOp) -> None:
    """Rows of windows one after the other, each with all rows of the left matrix."""
    batch, counts = dims_of(op.result)[:-2], windows.counts
    labels = row_labels(len(batch) + 2)
    outer = [*zip(labels, batch, strict=False), *((f"y{k}", n) for k, n in enumerate(counts[:-1]))]
    inner = [(labels[-1], dims_of(op.result)[-2]), (COLUMN, counts[-1])]
    with k.builder.labeled_nest([*outer, *inner], parallel=True) as at:
        image, place, row = at[: len(batch)], [*at[len(batch) : -2], at[-1]], at[-2]
        where = [*image, row, linear_index(place, counts)]
        last, start = op, k.builder.integer(0, i32)
        if (found := added_to(op)) is not None:
            last, other = found
            start = k.operand(other, where, dims_of(op.result))
        k.finish(last, where, _sum_in_place(k, op, windows, (image, row, place), start))


def _sum_in_place(
    k: KernelLowering,
    op: MatmulOp,
    windows: WindowsOp,
    at: tuple[Sequence[Expr], Expr, Sequence[Expr]],
    start: SSAValue,
) -> SSAValue:
    """Of a row of the left matrix and a window."""
    (image, row, place), taps = at, windows.taps.data
    left = broadcast_index(image, dims_of(op.lhs)[:-2], dims_of(op.result)[:-2])
    strides, dilations = ints(windows.strides), ints(windows.dilations)

    def add_one(i: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        *tap, channel = i
        steps = zip(place, tap, strides, dilations, strict=True)
        inside = [at * stride + offset * dilation for at, offset, stride, dilation in steps]
        word = k.element(windows.input, [*image, channel, *inside])
        number = linear_index(tap, taps) * windows.channels + channel
        weight = factor_element(k, op, 0, [*left, row, number])
        return [add_product(k, op, weight, word, values[0])]

    sizes = [(Expr.const(0), size) for size in (*taps, windows.channels)]
    return k.builder.carry_nest(sizes, [start], add_one)[0]


def _cycles_in_tiles(
    kernel: KernelOp, op: MatmulOp, windows: WindowsOp, target: Target
) -> float | None:
    """
    Estimated cycles of an image whose windows are loaded as tiles, which begin anywhere; None if
    they cannot be.
    """
    packing, machine = op.packing, target.machine
    if target.isa.tiles is None or packing is None or packing.data not in PACKINGS:
        return None
    taps, counts = constants(windows.taps.data), constants(windows.counts)
    channels, height = windows.channels.value, assumed_shape(op.result)[-2]
    space = constants(dims_of(windows.input)[-len(windows.taps.data) :])
    if taps is None or counts is None or space is None or not channels:
        return None
    words, width = words_of(channels), _width(counts[-1])
    if width is None or not (channels < TILE or words > TILE // 2):
        return None
    steps = prod(taps) * (channels // words)
    # What is read again for each block of columns, or of rows.
    sizes = (height * steps * words, channels * prod(space))
    is_far = MOST_ROWS * steps * words * F32_BYTES > machine.l1_bytes
    total = 0.0
    for across, number in zip((2, 1), _tiles_of(counts, width)[1:], strict=True):
        # Of a block, vectors that are not full are finished, too.
        columns = across * width
        parts = vectors_of(Expr.const(columns), target.lanes)
        vectors = sum(count.value or 0 for _, count, _ in parts)
        short = FINISHING_CYCLES * (vectors - columns / target.lanes)
        for down, blocks in ((2, height // MOST_ROWS), (-(-(height % MOST_ROWS) // TILE), 1)):
            lines = down * TILE + 2 * across * words
            far = down * TILE if is_far else 0
            far += across * words if sizes[0] > sizes[1] else 0
            products = across * down * machine.tile_product_cycles
            step = max(products, lines * _LINE_CYCLES, far * machine.l2_line_cycles)
            if down:
                each = machine.tile_store_cycles + down * TILE * short
                total += number * blocks * (steps * step + each)
    return total


def _width(columns: int) -> int | None:
    """The columns of a tile: as many in all of them, and more than half of one."""
    if columns <= TILE:
        return columns
    return next((width for width in range(TILE, TILE // 2, -1) if columns % width == 0), None)


def _tiles_of(counts: Sequence[int], width: int) -> tuple[int, int, int]:
    """The dimension along which tiles come in pairs; how many pairs there are, and single ones."""
    across = counts[-1] // width
    along, tiles = (len(counts) - 2, counts[-2]) if across == 1 else (len(counts) - 1, across)
    others = prod(counts[:along])
    return along, others * (tiles // 2), others * (tiles % 2)


def _lower_in_tiles(k: KernelLowering, op: MatmulOp, windows: WindowsOp, lanes: int) -> None:
    """
    Two by two tiles at a time, those of columns side by side or, where a row of windows is one, in
    two rows.
    """
    b, counts = k.builder, constants(windows.counts)
    spatial, taps = len(windows.taps.data), constants(windows.taps.data)
    assert counts is not None
    assert taps is not None
    width = _width(counts[-1])
    assert width is not None
    batch, rows = dims_of(op.result)[:-2], dims_of(op.result)[-2]
    strides, dilations = ints(windows.strides), ints(windows.dilations)
    axis = len(dims_of(windows.input)) - 1 - spatial
    offsets = [
        [at * dilation for at, dilation in zip(tap, dilations, strict=True)]
        for tap in np.ndindex(*taps)
    ]
    along, *_ = _tiles_of(counts, width)
    unit = width if along == spatial - 1 else 1
    tiles = counts[along] // unit
    across = [0] * spatial
    across[along] = unit * strides[along]
    left_size, image_size = (prod(assumed_shape(value)) for value in (op.lhs, windows.input))
    labels = list(zip(row_labels(len(batch) + 2), batch, strict=False))
    for pairs, first, columns in ((tiles // 2, 0, 2 * width), (tiles % 2, tiles - 1, width)):
        if not pairs:
            continue
        places = Windows(axis, offsets, across if columns > width else ())
        outer = [(f"y{number}", size) for number, size in enumerate(counts[:along])]
        for top, count, height in blocks_of(rows):
            nest: list[tuple[str, ExprLike]] = [*outer, ("part", pairs)]
            block_of_rows: tuple[str, ExprLike] = ("m", count)
            is_outer = left_size > image_size
            sizes = [block_of_rows, *nest] if is_outer else [*nest, block_of_rows]
            with b.labeled_nest([*labels, *sizes], parallel=True) as at:
                image, inner = at[: len(batch)], at[len(batch) :]
                down, *where = inner if is_outer else [inner[-1], *inner[:-1]]
                where[-1] = (where[-1] * 2 + first) * unit
                where += [Expr.const(0)] * (spatial - len(where))
                start = [at * stride for at, stride in zip(where, strides, strict=True)]
                corner = (*image, top + down * MOST_ROWS, linear_index(where, windows.counts))
                right = Image(windows.input, (*image, Expr.const(0), *start), places)
                block(k, op, corner, (height, Expr.const(columns)), lanes, right)
    b.release_tiles()


def _has_tiles(schedule: Schedule) -> bool:
    return schedule.get(TILES) is not None


def _depth(kernel: KernelOp, op: MatmulOp) -> int:
    """The words of a column in tiles: zeros follow where weights are constant and may have them."""
    depth = dims_of(op.lhs)[-1].value or 0
    return words_in_tiles(depth) if is_constant(kernel, op.lhs) else depth


def _bands(counts: Sequence[int], depth: int, images: int, setting: Setting) -> Iterator[int]:
    """As many rows as fit into a part of the L2 cache, but some for each thread."""
    row = depth * prod(counts[1:]) * F32_BYTES
    most = max(setting.target.machine.l2_bytes // 4 // row, 1)
    if images < setting.threads:
        most = min(most, max(counts[0] // (2 * setting.threads), 1))
    yield min(most, counts[0])


def _copied(
    k: KernelLowering,
    windows: WindowsOp,
    outer: Sequence[Expr],
    start: Expr,
    size: int,
    lanes: int,
    most: int,
) -> SSAValue:
    """The columns of so many rows of windows from one on, and zeros up to a number of words."""
    b, taps = k.builder, windows.taps.data
    counts = constants(windows.counts)
    assert counts is not None
    inner, width = counts[1:-1], counts[-1]
    depth = product([*taps, windows.channels]).value or 0
    lines = -(-size * prod(inner) * width // lanes) | 1
    panel = b.scratch(element_type(windows.result), [most, lines * lanes])
    with b.nest([most - depth, lines]) as (row, line), b.loop(lanes, mode="lanes") as lane:
        b.store(b.integer(0, i32), panel, [row + depth, line * lanes + lane])
    strides, dilations = ints(windows.strides), ints(windows.dilations)
    with b.nest([*taps, windows.channels, size, *inner]) as at:
        tap, channel, places = at[: len(taps)], at[len(taps)], at[len(taps) + 1 :]
        row = linear_index(tap, taps) * windows.channels + channel
        line = linear_index(places, [Expr.const(size), *map(Expr.const, inner)]) * width
        places = [start + places[0], *places[1:]]
        for first, number, vector in vectors_of(Expr.const(width), lanes):
            mode = "lanes" if vector > 1 else None
            with b.loop(number) as run, b.loop(vector, mode=mode) as lane:
                column = first + run * vector + lane
                steps = zip([*places, column], tap, strides, dilations, strict=True)
                inside = [
                    place * stride + offset * dilation for place, offset, stride, dilation in steps
                ]
                value = k.element(windows.input, [*outer, channel, *inside])
                b.store(value, panel, [row, line + column])
    return panel


def _multiply(
    k: KernelLowering,
    op: MatmulOp,
    buffers: tuple[SSAValue, SSAValue],
    corner: Sequence[Expr],
    sizes: tuple[Expr, Expr],
    schedule: Schedule,
) -> None:
    """All rows by the columns of a panel, which begin at a column of the result, in a buffer."""
    (*outer, first), (rows, columns), (panel, found) = corner, sizes, buffers
    label = row_labels(len(outer) + 2)[-1]
    with k.builder.labeled_nest([(label, rows), (COLUMN, columns)]) as (row, column):
        place = [*outer, row, first + column]
        total = with_sum(k, op, place, (panel, column), height=schedule.tile(label))
        k.builder.store(k.finished(*total), found, [row, column])


def _multiply_in_tiles(
    k: KernelLowering,
    op: MatmulOp,
    buffers: tuple[SSAValue, SSAValue],
    corner: Sequence[Expr],
    sizes: tuple[Expr, Expr],
    lanes: int,
    depth: int,
) -> None:
    """Likewise, in blocks; those of columns are the outer loop, so that weights stay."""
    (*outer, start), b, (panel, found) = corner, k.builder, buffers
    for left, number, width in blocks_of(sizes[1]):
        for top, count, height in blocks_of(sizes[0]):
            with b.nest([number, count]) as (across, down):
                column = left + across * MOST_ROWS
                place = (*outer, top + down * MOST_ROWS, start + column)
                panels = Panels(panel, found, column, depth)
                block(k, op, place, (height, width), lanes, panels)


def _store(
    k: KernelLowering,
    found: SSAValue,
    corner: Sequence[Expr],
    sizes: tuple[Expr, Expr],
    lanes: int,
) -> None:
    """What is in a buffer row by row: of many rows at a time, no line would be written whole."""
    (*outer, first), (rows, columns), b = corner, sizes, k.builder
    lanes *= F32_BYTES // numpy_dtype(element_type(k.roots[0])).itemsize or 1
    with b.loop(rows) as row:
        for begin, number, vector in vectors_of(columns, lanes):
            mode = "lanes" if vector > 1 else None
            with b.loop(number) as run, b.loop(vector, mode=mode) as lane:
                column = begin + run * vector + lane
                value = b.load(found, [row, column])
                b.store(value, k.outputs[0], [*outer, row, first + column])
