"""Products of packed bytes in tiles of matrices, on processors that multiply those at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.tiles import MOST_ROWS, TILE, Windows, words_of
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    is_constant,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN, panels, row_labels
from lowerdeck.lowering.targets.base import F32_BYTES, FEWEST_LANES, Target

PACKINGS = (Packing.UNSIGNED_LEFT, Packing.UNSIGNED_RIGHT, Packing.HALVES)
"""Those that tiles have."""


class MatrixTiles(Strategy):
    """
    Two by two tiles of the result at a time, whose sums are put into a small buffer, where the
    epilogue takes them from. A constant right matrix is packed in panels of as many columns, a
    left one in tiles.
    """

    name = "matrix_tiles"
    anchors = (MatmulOp,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        if target.isa.tiles is None or op.packing is None or op.packing.data not in PACKINGS:
            return
        values = (op.lhs, op.rhs)
        if any(position_of(kernel, value) is None for value in values):
            return
        layouts = [layout_out(kernel), *(layout_in(kernel, value) for value in values)]
        if not all(layout.is_row_major for layout in layouts) or not dims_of(op.lhs)[-1].value:
            return
        labels = row_labels(len(dims_of(op.result)))
        order = (*labels[:-1], COLUMN, labels[-1])
        if _size(op.rhs) <= _size(op.lhs):
            order = (*labels, COLUMN)
        is_packed = self._is_packed(kernel, op)
        cycles = _cycles(op, target, is_packed=is_packed)
        lanes = ((COLUMN, target.lanes),)
        yield Candidate(cycles, Schedule(self.name, order=order, lanes=lanes))

    @staticmethod
    def _is_packed(kernel: KernelOp, op: MatmulOp) -> bool:
        return is_constant(kernel, op.rhs) and dims_of(op.rhs)[-1].value is not None

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        found = left_in_tiles(kernel, op, dims_of(op.lhs)[-1].value or 0)
        if self._is_packed(kernel, op):
            found[op.rhs] = panels(len(dims_of(op.rhs)), MOST_ROWS)
        return found

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(MatmulOp, k.kernel)
        *batch, rows, columns = dims_of(op.result)
        sizes = dict(zip(row_labels(len(batch) + 2), batch, strict=False))
        row = schedule.order[-1] if schedule.order[-1] != COLUMN else schedule.order[-2]
        for first, count, height in blocks_of(rows):
            for start, number, width in blocks_of(columns):
                counts = {**sizes, row: count, COLUMN: number}
                labels = [(label, counts[label]) for label in schedule.order]
                with k.builder.labeled_nest(labels, parallel=True) as at:
                    place = dict(zip(schedule.order, at, strict=True))
                    corner = (first + place[row] * MOST_ROWS, start + place[COLUMN] * MOST_ROWS)
                    outer = [place[label] for label in sizes]
                    block(k, op, (*outer, *corner), (height, width), schedule.vector(COLUMN))
        k.builder.release_tiles()


def left_in_tiles(
    kernel: KernelOp, op: MatmulOp, depth: int, parts: int = 1
) -> dict[SSAValue, LayoutAttr]:
    """
    The layout of a constant left matrix whose rows are so long, in some equal parts: one tile after
    the other, for two by two of which memory is read in order. None if the tiles of a row are not
    equal.
    """
    words, rank = words_of(depth // parts), len(dims_of(op.lhs))
    if not is_constant(kernel, op.lhs) or not TILE // 2 < words < depth:
        return {}
    batch, m, k = [Piece(axis) for axis in range(rank - 2)], rank - 2, rank - 1
    pieces = [Piece(m, MOST_ROWS), Piece(k, words), Piece(m, 1, MOST_ROWS), Piece(k, 1, words)]
    return {op.lhs: LayoutAttr.of([*batch, *pieces])}


def lies_in_tiles(k: KernelLowering, op: MatmulOp) -> bool:
    """True if the left matrix has the layout of `left_in_tiles`."""
    layout = k.builder.layouts.get(k.inputs[op.lhs])
    return layout is not None and not layout.is_row_major


def blocks_of(size: Expr) -> Iterator[tuple[Expr, Expr, Expr]]:
    """The first element, the number and the size of whole blocks, then of what is left over."""
    whole = size // MOST_ROWS
    if whole != 0:
        yield Expr.const(0), whole, Expr.const(MOST_ROWS)
    if (rest := size - whole * MOST_ROWS) != 0:
        yield whole * MOST_ROWS, rest.ceildiv(MOST_ROWS), rest


@record
class Panels:
    """Columns of the right matrix and of the result that lie in buffers."""

    right: SSAValue
    result: SSAValue
    column: Expr
    """The first of a block, in both."""
    depth: int
    """Rows of the right matrix, the last of which may be zeros."""


@record
class Image:
    """A right matrix whose columns are windows of an image."""

    value: SSAValue
    start: Index
    """The place of the first element of the first window."""
    windows: Windows


def block(
    k: KernelLowering,
    op: MatmulOp,
    corner: Index,
    sizes: tuple[Expr, Expr],
    lanes: int,
    panels: Panels | Image | None = None,
) -> None:
    """
    A block of the result, from its corner on: its sums, then the epilogue of each row. The right
    matrix and the result may be those of `panels`, or the right matrix in an image.
    """
    b, (rows, columns) = k.builder, sizes
    assert op.packing is not None
    batch, depth = dims_of(op.result)[:-2], dims_of(op.lhs)[-1].value or 0
    left, right = (
        broadcast_index(corner[:-2], dims_of(factor)[:-2], batch) for factor in (op.lhs, op.rhs)
    )
    tiled = lies_in_tiles(k, op)
    total = b.scratch(element_type(op.result), [MOST_ROWS, MOST_ROWS])
    packing = op.packing.data
    if isinstance(panels, Image):
        factors, sums = (k.inputs[op.lhs], k.inputs[panels.value]), (rows, columns, depth)
        starts = ([*left, corner[-2], 0], panels.start)
        b.dot_tiles(factors, total, starts, sums, packing, tiled=tiled, windows=panels.windows)
        panels = None
    else:
        if panels is None:
            factors, first_column = (k.inputs[op.lhs], k.inputs[op.rhs]), corner[-1]
        else:
            factors, first_column, right = (k.inputs[op.lhs], panels.right), panels.column, []
            depth = panels.depth
        whole = depth if words_of(depth) > TILE // 2 else depth // TILE * TILE
        for first, words in ((0, whole), (whole, depth - whole)):
            if words:
                starts = ([*left, corner[-2], first], [*right, first, first_column])
                sums = (rows, columns, words)
                b.dot_tiles(factors, total, starts, sums, packing, adds=first > 0, tiled=tiled)
    with b.loop(rows) as row:
        for first, count, width in vectors_of(columns, lanes):
            mode = "lanes" if width > 1 else None
            with b.loop(count) as number, b.loop(width, mode=mode) as lane:
                column = first + number * width + lane
                place = [*corner[:-2], corner[-2] + row, corner[-1] + column]
                value = k.finished(op, place, b.load(total, [row, column]))
                if panels is None:
                    b.store(value, k.outputs[0], place)
                else:
                    b.store(value, panels.result, [corner[-2] + row, panels.column + column])


def vectors_of(size: Expr, lanes: int) -> Iterator[tuple[Expr, Expr, int]]:
    """
    The first element, the number and the lanes of vectors, then of shorter ones. The last one of a
    known size begins within the one before where single elements were left.
    """
    first, width, last = Expr.const(0), lanes, 0
    while width:
        if (count := (size - first) // width) != 0:
            yield first, count, width
            last = width
        first = first + count * width
        if first == size:
            return
        is_short = width // 2 < FEWEST_LANES or size.value is None
        width = min(width - 1, 1) if is_short else width // 2
        if width == 1 and last > 1 and size.value is not None:
            yield size - last, Expr.const(1), last
            return


def _size(value: SSAValue) -> int:
    return prod(assumed_shape(value))


def _cycles(op: MatmulOp, target: Target, *, is_packed: bool) -> float:
    """Estimated cycles of all products."""
    *batch, rows, columns = assumed_shape(op.result)
    sizes, factors = (rows, columns, assumed_shape(op.lhs)[-1]), (_size(op.lhs), _size(op.rhs))
    cycles = block_cycles(target, sizes, factors, is_packed=is_packed)
    return target.machine.tile_start_cycles + prod(batch) * cycles


def block_cycles(
    target: Target, sizes: tuple[int, int, int], factors: tuple[int, int], *, is_packed: bool
) -> float:
    """
    Estimated cycles of rows, columns and words: for products or loads of tiles, but at least for
    what comes from the L2 cache: factors, of so many words, that do not fit in the L1 cache, but
    for the larger one where several blocks read it one after the other.
    """
    machine, (rows, columns, depth) = target.machine, sizes
    total, words = 0.0, words_of(depth)
    steps = depth // words if words > TILE // 2 else -(-depth // TILE)
    # Of a depth that leaves a narrow tile over, each block has both shapes.
    shape = 2 * machine.tile_shape_cycles if depth > steps * words else 0.0
    is_small = rows <= MOST_ROWS if factors[1] > factors[0] else columns <= MOST_ROWS
    is_far = (max if is_small else min)(factors) * F32_BYTES > machine.l1_bytes // 2
    for height, vertical in _counts(rows):
        for width, horizontal in _counts(columns):
            across = 1 if is_packed or columns % TILE == 0 else 2
            lines = (across * width + height) * TILE
            step = max(
                height * width * machine.tile_product_cycles,
                (height + across * width) * machine.tile_load_cycles,
                lines * machine.l2_line_cycles if is_far else 0.0,
            )
            total += vertical * horizontal * (steps * step + machine.tile_store_cycles + shape)
    return total


def _counts(size: int) -> Sequence[tuple[int, int]]:
    """By how many tiles side by side, how often."""
    rest = -(-(size % MOST_ROWS) // TILE)
    return [(2, size // MOST_ROWS), *([(rest, 1)] if rest else [])]
