"""Pools whose windows are combined in two passes, along lines of the image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.enums import PoolKind
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, is_float, numpy_dtype
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.taps import UNROLLED_TAPS
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.channel_blocks import linked_wishes
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    blocked_constants,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.strategies.pool_passes import (
    COLUMNS,
    ROWS,
    VECTOR,
    WAY,
    Passes,
    Way,
    has_few_cut,
    vectors_along,
)
from lowerdeck.lowering.targets.base import FEWEST_LANES

LINE_BYTES = 4 << 10
"""Of the part of a row that is worked on at a time."""

TILE_BYTES = 16 << 10
"""Of what is kept in between: it stays in the L1 cache with what is read and written."""

MOST_BYTES = 64 << 10
"""Of what is kept for one row of results alone: it lies on the stack."""

OPEN_ROWS, OPEN_COLUMNS = 16, 64
"""At a time, of images whose size is not known."""

LONGEST_SUM = 1 << 12
"""Elements of a window that are added up in their own precision, at most."""

FEW_TAPS = 16
"""Windows of so many elements are faster as a whole, where channels are the lanes."""

STALL = 16
"""Cycles to begin with the lines of a tile: what has just been stored is read in other pieces."""


class SeparablePool(Strategy):
    """
    Of row-major images, whose columns are the lanes, or of channels in blocks, which are.

    Windows first go down their columns, so that there is one line to go along; where of equal
    elements the first one counts, as of zeros with their sign, first along the rows.
    """

    name = "separable_pool"
    anchors = (PoolOp,)
    parameters = (WAY, VECTOR, ROWS, COLUMNS)

    def wishes(self, kernel: KernelOp, setting: Setting) -> Wishes | None:
        return linked_wishes(kernel, setting)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(PoolOp, kernel)
        if not is_separable(op) or setting.target.lanes == 1:
            return
        block = _block(kernel, op)
        if not block and dims_of(op.result)[-1] == 1 and dims_of(op.input)[-1] != 1:
            return  # plain loops have vectors along the window
        lanes = block or _lanes(op, setting)
        if block is None or lanes < FEWEST_LANES:
            return
        if block and prod(_windows(op)[0]) <= FEW_TAPS:
            return
        for way in _ways(op):
            if block and way == Way.AT_ONCE:
                continue  # that is what `blocked_pool` does
            if (tile := _tile(op, way, lanes, block or 1)) is not None:
                own = ((WAY, way), (VECTOR, lanes), (ROWS, tile[0]), (COLUMNS, tile[1]))
                cycles = _cycles(op, way, lanes, tile, is_blocked=bool(block))
                yield Candidate(cycles, Schedule(self.name, parameters=own))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        block = layout_out(kernel).inner(1)
        return blocked_constants(kernel, block) if block > 1 else {}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        Passes(k, the(PoolOp, k.kernel), schedule).build()


def is_separable(op: PoolOp) -> bool:
    """True for known windows of elements that there are vectors for."""
    kernel, element = constants(op.kernel.data), element_type(op.result)
    if kernel is None or prod(kernel) == 0:
        return False
    if op.kind.data == PoolKind.MAX:
        return is_float(element) or numpy_dtype(element).itemsize < 8
    return is_float(element) and prod(kernel) <= LONGEST_SUM


def _block(kernel: KernelOp, op: PoolOp) -> int | None:
    """The channels of a block, if input and result have the same; 0 if both are row-major."""
    layouts = (layout_in(kernel, op.input), layout_out(kernel))
    blocks = {layout.inner(1) for layout in layouts}
    if any(_pieces(layout) != _pieces(LayoutAttr.row_major(layout.rank)) for layout in layouts):
        is_known = element_type(op.result) == f32 and len(blocks) == 1 and min(blocks) > 1
        return min(blocks) if is_known else None
    return 0


def _pieces(layout: LayoutAttr) -> list[tuple[int, int | None]]:
    return [(piece.axis, piece.size) for piece in layout.data.pieces]


def _lanes(op: PoolOp, setting: Setting) -> int:
    """Of a vector of columns; 1 if there are too few."""
    lanes = setting.target.lanes_of(scalars.compute_type(element_type(op.result)))
    while lanes > max(assumed_shape(op.result)[-1], assumed_shape(op.input)[-1]):
        lanes //= 2
    return lanes


def _ways(op: PoolOp) -> Iterator[Way]:
    """Those that give the right element; a window that is cut off along a row needs a line."""
    kernel, _, reaches = _windows(op)
    is_cut = op.pads_begin.data[-1] != 0 or op.pads_end.data[-1] != 0
    begin = op.pads_begin.data[-1].value
    if op.keeps_first.value.data and begin is not None and begin > reaches[-1]:
        return  # there may be a window that has no first element
    if not is_cut and prod(kernel) <= UNROLLED_TAPS:
        yield Way.AT_ONCE
    if prod(kernel[:-1]) == 1 or not op.finds_first:
        yield Way.DOWN_FIRST
    else:
        yield Way.ALONG_FIRST


def _tile(op: PoolOp, way: Way, lanes: int, block: int) -> tuple[int, int] | None:
    """Rows and columns of results at a time; None if one row of a few is too much."""
    bytes_ = numpy_dtype(scalars.compute_type(element_type(op.result))).itemsize * block
    kernel, strides, reaches = _windows(op)
    height, width = ([None, *(dim.value for dim in dims_of(op.result)[2:])])[-2:]
    columns = OPEN_COLUMNS if width is None else max(width, 1)
    if way == Way.AT_ONCE:
        return 1, columns
    step = 1 if block > 1 else lanes
    is_cut = any(pads.data[-1] != 0 for pads in (op.pads_begin, op.pads_end))
    is_copied = is_cut and not (block == 1 and has_few_cut(op))
    rows = 1 if len(kernel) == 1 else OPEN_ROWS if height is None else max(height, 1)

    def size(rows: int, columns: int) -> int:
        line = (columns - 1) * strides[-1] + reaches[-1] + 1 + step
        if way == Way.DOWN_FIRST:
            return rows * line * bytes_
        inputs = (rows - 1) * strides[-2] + reaches[-2] + 1
        if not is_copied:
            line = 0
        return inputs * (line + (columns + step) * prod(kernel[:-2])) * bytes_

    most = max((max(LINE_BYTES, 16 * block * 4) // bytes_ - reaches[-1]) // strides[-1], step)
    parts = -(-columns // most)
    while True:
        tile = columns if parts == 1 else -(-columns // (parts * step)) * step
        if size(1, tile) <= MOST_BYTES:
            break
        if tile <= step:
            return None
        parts *= 2
    # Rows under the windows of two tiles are combined twice.
    fewest = 1 if way == Way.DOWN_FIRST or len(kernel) == 1 else 2 * (reaches[-2] + 1)
    while rows > max(fewest // strides[-2 % len(kernel)], 1) and size(rows, tile) > TILE_BYTES:
        rows = -(-rows // 2)
    while rows > 1 and size(rows, tile) > MOST_BYTES:
        rows = -(-rows // 2)
    return rows, tile


def _windows(op: PoolOp) -> tuple[tuple[int, ...], Sequence[int], list[int]]:
    """Sizes and strides of windows, and how far their last elements are from the first ones."""
    kernel = constants(op.kernel.data)
    assert kernel is not None
    reaches = [(size - 1) * d for size, d in zip(kernel, ints(op.dilations), strict=True)]
    return kernel, ints(op.strides), reaches


def _cycles(op: PoolOp, way: Way, lanes: int, tile: tuple[int, int], *, is_blocked: bool) -> float:
    """By the vectors that are loaded and combined, or stored: a cycle each."""
    kernel, strides, reaches = _windows(op)
    shape, (rows, columns) = assumed_shape(op.result), tile
    columns, tiles = min(columns, shape[-1]), -(-shape[-1] // columns)
    inputs = (columns - 1) * strides[-1] + reaches[-1] + 1
    if is_blocked:
        shape[1] = -(-shape[1] // lanes)
        results, line, along = columns, inputs, kernel[-1]
    else:
        results, line = _vectors_of(columns, lanes), _vectors_of(inputs, lanes)
        along = kernel[-1] * (lanes if vectors_along(op, lanes) == 1 else strides[-1])
    outer = prod(kernel[:-1])
    if way == Way.AT_ONCE:
        row = results * (outer * along + 1.0)
    elif way == Way.DOWN_FIRST:
        row = line * (outer + 1) + results * (along + 1) + STALL / rows
    else:
        lines = ((rows - 1) * strides[-2] + reaches[-2] + 1) / rows * prod(kernel[:-2])
        row = lines * (2 * line + results * (along + 1)) + results * (outer + 1) + STALL / rows
    return prod(shape[:-1]) * tiles * row


def _vectors_of(columns: int, lanes: int) -> int:
    """The vectors of columns, shorter ones if there are too few for one."""
    while lanes > max(columns, 1):
        lanes //= 2
    return -(-columns // lanes)
