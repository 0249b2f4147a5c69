"""Matrix products: tiles of rows of the left matrix by vectors of columns of the right one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import COUNTED_ROWS, MatmulOp, WindowsOp
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    is_integer,
    numpy_dtype,
    static_shape,
)
from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.lowering.loops.parameters import REST, average_tiles, parts_of
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.contraction import add_product, add_rests, added_to, factor_element
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.maps import code_of, scale_of, zero_of
from lowerdeck.lowering.nests.sums import PART, sum_in_parts
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.conversions import is_made_by_maps
from lowerdeck.lowering.strategies.costs import (
    Scored,
    conversion_cycles,
    fits,
    late_cycles,
    of_busiest,
    rows_that_stay,
    scored,
)
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    assumed_size,
    in_blocks,
    is_constant,
    is_of,
    layout_in,
    layout_out,
    position_of,
    stored,
    the,
)
from lowerdeck.lowering.targets.base import F32_BYTES, FEWEST_LANES, Target, are_even
from lowerdeck.lowering.targets.machine import Machine

COLUMN = "n"
"""The label of the loop over columns of a product. `m` is the loop over rows, and `b0`, `b1`, ...
are those over the matrices of a batch."""


WIDTH = "width"
"""The parameter of a schedule whose last vector of columns overlaps the one before: the lanes."""

PANELS = "panels"
"""The parameter of a schedule whose right matrix is copied into panels first: 1."""

WIDE = "wide"
"""The parameter of a schedule that copies a panel of the right matrix, widened if it is narrow,
before rows are multiplied by it: 1. The panel stays in the L2 cache, as copies of the whole matrix
might not."""

WIDENING_CYCLES = 1.0
"""Of a vector of weights, which takes instructions that do not multiply."""

MOST_OF_FEW = 16
"""Vectors of columns beyond which it does not matter how the last one is computed; half as many of
a right matrix that does not stay in the L2 cache, whose rows are far apart."""

AHEAD = 2
"""Tiles of rows from which on the next panel is asked for while they read one."""

MOST_OF_REST = 5
"""Rows that are one tile if an open number of them leaves so many. All of a panel is read for each
tile, and the sums of fewer wait for each other."""

FEW_ROWS = 4
"""Of the left matrix: the right one is read once for all of them."""


class TiledMatmul(Strategy):
    """
    Panels of columns are the outer loop if the right matrix is larger than the left one, so that
    the larger one is read once, unless the result is much larger than both. A constant right matrix
    is packed, panel after panel; another one is copied into panels first where reading it as it
    lies takes longer.
    """

    name = "tiled_matmul"
    anchors = (MatmulOp,)
    parameters = (WIDTH, PANELS, REST, WIDE)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        element = element_type(op.result)
        if op.packing is not None and op.packing.data is Packing.HALVES and not target.isa.halves:
            return
        if isinstance(op.rhs.owner, WindowsOp):
            return  # each row of a window would be looked for
        is_packed_in_words = op.packing is not None or is_integer(element)
        if target.lanes_of(element) == 1 or not (is_of(op, f32, f64) or is_packed_in_words):
            return
        if element == f64 and any(
            element_type(value) != f64 for value in (*kernel.inputs, *kernel.results)
        ):
            return
        target = for_elements(target, element, element_type(op.rhs))
        if not (layout_out(kernel).is_row_major and layout_in(kernel, op.rhs).is_row_major):
            return
        axis = tiled_axis(op)
        dims = dims_of(op.result)
        is_open = dims[-1].value is None and is_of(op, f32, f64)
        rows, columns, depth = map(assumed_size, (dims[axis], dims[-1], op.depth))
        labels = row_labels(len(dims))
        row = labels.pop(axis)
        rows_first, columns_first = (*labels, row, COLUMN), (*labels, COLUMN, row)
        depth += (op.rests or 0) // 2
        orders = [rows_first, columns_first]
        if _size(op.rhs) > _size(op.lhs) and not _is_mostly_result(op, target):
            orders.reverse()
        is_packed = is_constant(kernel, op.rhs) and len(dims_of(op.rhs)) == 2
        most = most_sums(kernel, target) if is_integer(element) else None
        if not is_packed:
            rest, width = _overlapping(op, target.lanes)
            columns += width - rest if rest else 0
        matrices = prod(map(assumed_size, dims[:-1])) // rows
        is_narrow = element == f32 and stored(op.rhs) is not op.rhs
        vectors = depth * columns / target.lanes if is_narrow else 0.0
        ways: list[_Way] = [
            (matrices * (cycles + vectors * WIDENING_CYCLES * -(-rows // tile[0])), tile, ())
            for cycles, tile in product_tiles(
                _for_narrow(target, element_type(stored(op.rhs))) if is_narrow else target,
                rows,
                columns,
                depth,
                most=most,
                is_strided=not is_packed,
                is_open=dims[axis].value is None,
                is_asked=is_narrow,
            )
            if not op.is_split or tile[0] <= COUNTED_ROWS
        ]
        if is_narrow and is_packed and dims[-1].value is not None:
            copied = 2 * vectors * WIDENING_CYCLES
            ways += _ways_of_wide(op, target, copied)
        elif not is_packed and _can_be_wide(kernel, op):
            ways += _ways_of_wide(op, target, _cycles_to_copy(op, target))
        if not is_packed and _can_be_copied(kernel, op):
            copied = _size(op.rhs) * conversion_cycles(target)
            ways += [
                (matrices * cycles + copied, tile, ((PANELS, 1),))
                for cycles, tile in product_tiles(target, rows, columns, depth)
                if not op.is_split or tile[0] <= COUNTED_ROWS
            ]
        rest = ((REST, MOST_OF_REST),) if dims[axis].value is None else ()
        for cycles, (height, count), own in () if is_open else ways:
            for factor, order in zip((1.0, target.costs.other_order), orders, strict=True):
                ahead, is_wide = None, (WIDE, 1) in own
                if is_wide and order != rows_first:
                    continue  # a panel is the outer loop anyway
                # A panel that is read only once is over too soon to ask for the next one meanwhile.
                is_soon = rows < AHEAD * height and stored(op.rhs) is op.rhs
                if is_packed and order == columns_first and not (is_soon or is_wide):
                    ahead = position_of(kernel, op.rhs)
                tiles, lanes = ((row, height), (COLUMN, count)), ((COLUMN, target.lanes),)
                schedule = Schedule(self.name, tiles, order, lanes, ahead, parameters=(*own, *rest))
                parts = _parts(op, schedule, setting.threads)
                if is_wide:
                    factor, parts = 1.0, _panels_of(op) * -(-columns // (count * target.lanes))
                yield Candidate(of_busiest(cycles * factor, parts, setting), schedule)
        # Of a packed matrix short vectors of columns are as good; single ones are not.
        is_ragged = not is_packed or columns % FEWEST_LANES != 0
        if is_open or (dims[-1].value is not None and is_of(op, f32, f64) and is_ragged):
            for cycles, schedule in _ways_of_few(
                target,
                (labels, row),
                (rows, columns, depth),
                self.name,
                is_open=is_open,
                is_open_below=bool(rest),
            ):
                if rest:
                    schedule = replace(schedule, parameters=(*schedule.parameters, *rest))
                parts = _parts(op, schedule, setting.threads)
                cycles += vectors * WIDENING_CYCLES * -(-rows // schedule.tile(row))
                yield Candidate(of_busiest(matrices * cycles, parts, setting), schedule)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        found: dict[SSAValue, LayoutAttr] = {}
        rows = len(dims_of(op.result)) - 2
        height = schedule.tile(row_labels(rows + 2)[-1])
        is_plain = op.packing is not None and not op.is_split and len(dims_of(op.lhs)) == 2
        if is_plain and height > 1 and is_constant(kernel, op.lhs) and tiled_axis(op) == rows:
            # [m / height][k][m % height]: words of the rows of a tile are read one after the other.
            found[op.lhs] = LayoutAttr.of([Piece(0, height), Piece(1), Piece(0, 1, height)])
        is_copied = is_constant(kernel, op.rhs) or schedule.get(PANELS) is not None
        if not is_copied or schedule.get(WIDTH) is not None:
            return found
        width = schedule.vector(COLUMN) * schedule.tile(COLUMN)
        return {**found, op.rhs: panels(len(dims_of(op.rhs)), width)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """Independent loops over the elements of the result, and a sum in each of them."""
        op = the(MatmulOp, k.kernel)
        dims = dims_of(op.result)
        labels = [*row_labels(len(dims)), COLUMN]
        height = schedule.tile(labels[-2])
        if schedule.get(WIDE) is not None:
            _lower_wide(k, op, schedule)
            return
        if (width := schedule.get(WIDTH)) is None:
            rest, last = _overlapping(op, schedule.vector(COLUMN))
            if not k.layout_of(op.rhs).is_row_major:
                rest = 0  # vectors of panels
            sizes = [*dims[:-1], dims[-1] - rest]
            with k.builder.labeled_nest(list(zip(labels, sizes, strict=True)), parallel=True) as at:
                finish(k, op, at, height=height)
            if rest:
                rows = list(zip(labels, dims, strict=False))[:-1]
                with (
                    k.builder.labeled_nest(rows, parallel=True) as at,
                    k.builder.loop(last, mode="lanes") as lane,
                ):
                    finish(k, op, [*at, dims[-1] - last + lane], height=height)
            return
        sizes = [*dims[:-1], _vectors(dims[-1], width)]
        with k.builder.labeled_nest(list(zip(labels, sizes, strict=True)), parallel=True) as at:
            _finish_vector(k, op, at, width)
        if dims[-1].value is None:
            for size in dict.fromkeys((FEWEST_LANES, 1)):
                count = _vectors(dims[-1], size, width)
                with k.builder.nest([*dims[:-1], count], parallel=True) as at:
                    _finish_vector(k, op, at, size)
                width = size


def _vectors(columns: Expr, width: int, wider: int | None = None) -> Expr:
    """
    Vectors of columns, the last of which may begin early: none where an unknown number of columns
    does not fill one, or fills a wider one.
    """
    if columns.value is not None:
        return columns.ceildiv(width)
    count = minimum((columns + (width - 1)) // width, columns // width * 2)
    return count if wider is None else maximum(count - columns // wider * (2 * wider), 0)


def _overlapping(op: MatmulOp, lanes: int) -> tuple[int, int]:
    """
    How many of known columns of integers whole vectors leave, and the lanes of the vector with
    which they end, so that no column is alone: some are computed twice, which gives the same. None
    where shorter vectors hold them, or there are fewer than fill a vector.
    """
    columns = dims_of(op.result)[-1].value
    if not is_integer(element_type(op.result)) or columns is None or columns < lanes:
        return 0, lanes
    rest, width = columns % lanes, min(FEWEST_LANES, lanes)
    if rest % width == 0:
        return 0, lanes
    while width < rest:
        width *= 2
    return rest, width


def _finish_vector(k: KernelLowering, op: MatmulOp, at: Index, width: int) -> None:
    """A vector of columns at an index, the last of which ends with the last column."""
    first = minimum(at[-1] * width, dims_of(op.result)[-1] - width)
    lanes = k.builder.loop(width, mode="lanes") if width > 1 else nullcontext(Expr.const(0))
    with lanes as lane:
        finish(k, op, [*at[:-1], first + lane])


def _lower_wide(k: KernelLowering, op: MatmulOp, schedule: Schedule) -> None:
    """Panel after panel of columns: its weights as they are computed with, then all rows."""
    b, dims, depth = k.builder, dims_of(op.result), op.depth.value or 0
    lanes = schedule.vector(COLUMN)
    width, columns = lanes * schedule.tile(COLUMN), dims[-1].value or 0
    rows = list(zip(row_labels(len(dims)), dims[:-1], strict=True))
    matrices = len(dims) - 2 if len(dims_of(op.rhs)) > 2 else 0
    for first, count, size in (
        (0, columns // width, width),
        (columns // width * width, min(columns % width, 1), columns % width),
    ):
        if not count:
            continue
        with b.labeled_nest([*rows[:matrices], ("panel", count)], parallel=True) as outer:
            batch, start = outer[:-1], outer[-1] * width + first
            right = broadcast_index(batch, dims_of(op.rhs)[:-2], dims[:matrices])
            wide = b.scratch(element_type(op.result), [depth, -(-size // lanes) * lanes])
            with b.loop(depth) as i:
                for begin in range(0, size, lanes):
                    with b.loop(min(lanes, size - begin), mode="lanes") as lane:
                        value = k.element(op.rhs, [*right, i, start + begin + lane])
                        b.store(value, wide, [i, lane + begin])
            with b.labeled_nest([*rows[matrices:], (COLUMN, size)]) as at:
                place = [*batch, *at[:-1], start + at[-1]]
                k.finish(op, place, column_sum(k, op, place, (wide, at[-1])))


_Way: TypeAlias = "tuple[float, tuple[int, int], tuple[tuple[str, int], ...]]"
"""Cycles, rows and vectors of a tile, and parameters."""


def _ways_of_wide(op: MatmulOp, target: Target, copied: float) -> Iterator[_Way]:
    """With a panel that stays in the L2 cache, where all panels take `copied` cycles to copy."""
    *batch, rows, columns = assumed_shape(op.result)
    axis, depth = tiled_axis(op), assumed_size(op.depth)
    tiled = assumed_shape(op.result)[axis]
    matrices = prod(batch) * rows // tiled
    machine, left = target.machine, _size(op.lhs) * F32_BYTES
    most = machine.l2_bytes // 2 // (depth * target.vector_bytes)
    # All rows are read for each panel.
    again = left / machine.shared_bytes_per_cycle if left > machine.l2_bytes // 2 else 0.0
    is_open = dims_of(op.result)[axis].value is None
    for cycles, tile in product_tiles(target, tiled, columns, depth, is_open=is_open):
        if tile[1] <= most:
            number = -(-columns // (tile[1] * target.lanes))
            yield matrices * cycles + copied + (number - 1) * again, tile, ((WIDE, 1),)


def _can_be_wide(kernel: KernelOp, op: MatmulOp) -> bool:
    """
    True for a right matrix that is computed, whose depth and columns are known, not of words. One
    that maps make for this kernel alone can be made in panels, so that it is written once.
    """
    depth, columns = dims_of(op.rhs)[-2:]
    is_known = depth.value is not None and columns.value is not None
    is_real = op.packing is None and not is_integer(element_type(op.result)) and not op.is_split
    position = position_of(kernel, op.rhs)
    if position is None or kernel.is_constant(position):
        return False
    return is_known and is_real and not is_made_by_maps(kernel, kernel.inputs[position])


def _panels_of(op: MatmulOp) -> int:
    """The matrices whose panels are copied, each for itself."""
    return prod(assumed_shape(op.result)[:-2]) if len(dims_of(op.rhs)) > 2 else 1


def _cycles_to_copy(op: MatmulOp, target: Target) -> float:
    """Of all panels of a right matrix: its lines come from where they are, and are stored."""
    machine, (depth, columns) = target.machine, assumed_shape(op.rhs)[-2:]
    line = machine.l2_line_cycles
    if _size(op.rhs) * F32_BYTES > machine.l2_bytes:
        line = machine.line_bytes / machine.shared_bytes_per_cycle
    lines = target.vector_bytes / machine.line_bytes
    each = line * lines + 1 / machine.stores_per_cycle
    return _panels_of(op) * depth * -(-columns // target.lanes) * each


def _parts(op: MatmulOp, schedule: Schedule, threads: int) -> float:
    """
    The iterations of a schedule that so many threads share: those of the outermost loop over tiles,
    the last of which may be smaller, or of two loops if these are too few to be divided evenly and
    lie in each other, which `parallelize` makes one.
    """
    dims = assumed_shape(op.result)
    sizes = dict(zip([*row_labels(len(dims)), COLUMN], dims, strict=True))
    if (width := schedule.get(WIDTH)) is not None:
        sizes[COLUMN] = -(-sizes[COLUMN] // width)
    steps = {label: schedule.tile(label) * schedule.vector(label) for label in sizes}
    order = [*(label for label in sizes if label not in schedule.order), *schedule.order]
    loops = [label for label in order if sizes[label] > steps[label]]
    if not loops:
        return 1
    parts = sizes[loops[0]] / steps[loops[0]]
    if are_even(int(parts), threads) or len(loops) == 1:
        return parts
    inner, step = sizes[loops[1]], steps[loops[1]]
    return parts * (inner // step) if inner % step == 0 else parts


def _can_be_copied(kernel: KernelOp, op: MatmulOp) -> bool:
    """True for a computed right matrix of known sizes."""
    is_known = static_shape(op.rhs) is not None and position_of(kernel, op.rhs) is not None
    return is_known and not is_constant(kernel, op.rhs)


def _is_mostly_result(op: MatmulOp, target: Target) -> bool:
    """
    True if the right matrix stays in the L2 cache and the result does not: short sums are stored
    along rows then, which memory takes as streams.
    """
    return (
        _size(op.rhs) * F32_BYTES <= target.machine.l2_bytes // 2
        and _size(op.result) * F32_BYTES > target.machine.l2_bytes
    )


def _ways_of_few(
    target: Target,
    labels: tuple[list[str], str],
    sizes: tuple[int, int, int],
    name: str,
    *,
    is_open: bool,
    is_open_below: bool,
) -> Iterator[tuple[float, Schedule]]:
    """
    For few columns that do not fill vectors, or an unknown number: the last vector begins early
    enough to end with the last column, so that some columns are computed twice.
    """
    (outer, row), (rows, columns, depth) = labels, sizes
    width = target.lanes
    while width > max(columns, 1):
        width //= 2
    stays = depth * columns * F32_BYTES <= target.machine.l2_bytes // 2
    most = (MOST_OF_FEW if stays else MOST_OF_FEW // 2) * target.lanes
    is_for_few = width >= FEWEST_LANES and columns % width != 0 and columns <= most
    if not (is_open or is_for_few):
        return
    vectors = -(-columns // width)
    ways = [
        (height, count)
        for count in range(1, vectors + 1)
        for height in range(1, min(rows, target.machine.registers) + 1)
        if fits(target, height, count)
    ]

    def cost(tile: tuple[int, int]) -> float:
        height, count = tile
        is_last = rows <= height
        return sum(
            below * trips * _cycles((number, width), depth, target, is_last, columns)
            for below, number in _row_tiles(rows, height, is_open=is_open_below)
            for trips, width in _tiles(vectors, count, 1)
        )

    for cycles, (height, count) in scored(ways, cost):
        tiles, order = ((row, height), (COLUMN, count)), (*outer, row, COLUMN)
        yield cycles, Schedule(name, tiles, order, parameters=((WIDTH, width),))


def for_elements(target: Target, element: Attribute, weight: Attribute) -> Target:
    """
    The target scaled for sums of type `element`: the cost rules assume four bytes for an element of
    `weight`, so the caches are scaled to hold as many elements. Integer products need two
    registers.
    """
    if element == f32:
        return target
    size, own = numpy_dtype(weight).itemsize, target.machine
    machine = replace(
        _for_size(own, size),
        l1_bytes=own.l1_bytes * F32_BYTES // size,
        line_bytes=own.line_bytes * F32_BYTES // numpy_dtype(element).itemsize,
        registers=own.registers - (2 if is_integer(element) else 0),
    )
    lanes = {"f32": target.lanes_of(element)}
    return replace(target, lanes_by_element=lanes, machine=machine)


def _for_narrow(target: Target, weight: Attribute) -> Target:
    """The target for sums of f32 whose weights are stored so, by the same cost rules."""
    own, size = target.machine, numpy_dtype(weight).itemsize
    machine = replace(
        _for_size(own, size),
        line_bytes=own.line_bytes * F32_BYTES // size,
        shared_bytes_per_cycle=own.shared_bytes_per_cycle * F32_BYTES / size,
    )
    return replace(target, machine=machine)


def _for_size(own: Machine, size: int) -> Machine:
    """A machine whose far caches and pages hold as many elements of four bytes as of `size`."""
    return replace(
        own,
        l2_bytes=own.l2_bytes * F32_BYTES // size,
        page_bytes=own.page_bytes * F32_BYTES // size,
    )


def row_labels(rank: int) -> list[str]:
    """The labels of the loops over all dimensions of a result of this rank but the last."""
    return [*(f"b{axis}" for axis in range(rank - 2)), "m"]


def panels(rank: int, width: int) -> LayoutAttr:
    """[..., n / width][k][n % width] of a matrix [..., k, n]."""
    batch = [Piece(axis) for axis in range(rank - 2)]
    columns = rank - 1
    return LayoutAttr.of([*batch, Piece(columns, width), Piece(rank - 2), Piece(columns, 1, width)])


def _size(value: SSAValue) -> int:
    return prod(assumed_shape(value))


def tiled_axis(op: MatmulOp) -> int:
    """The rows; with only one row, the matrices of a batch that share the same right matrix."""
    dims, right = dims_of(op.result), dims_of(op.rhs)
    rows = axis = len(dims) - 2
    while axis and dims[axis] == 1:
        axis -= 1
        position = axis - len(dims) + len(right)
        if position >= 0 and right[position] != 1:
            return rows
    return rows if dims[axis] == 1 else axis


def most_sums(kernel: KernelOp, target: Target) -> int:
    """
    Vectors of sums in a tile whose epilogue may be long, as that of quantization is: it is repeated
    for each of them.
    """
    maps = sum(not isinstance(op, ConstantOp | YieldOp) for op in kernel.body.block.ops)
    return max(target.limits.tile_maps // maps, FEWEST_LANES)


def product_tiles(
    target: Target,
    rows: int,
    columns: int,
    depth: int,
    vectors: Iterable[int] | None = None,
    *,
    most: int | None = None,
    is_strided: bool = False,
    is_open: bool = False,
    is_asked: bool = False,
) -> Scored[tuple[int, int]]:
    """
    Rows and vectors of tiles for a product with sums of `depth` terms; `vectors` limits the choice,
    and so does `most`, the number of vectors of sums. With `is_strided`, the rows of a panel lie
    apart; with `is_open`, their number is assumed; with `is_asked`, panels are asked for ahead.
    """
    most_again = target.machine.registers
    if vectors is None:
        # A panel is read once for each row tile: if there are several, it stays in the L2 cache.
        most_again = max(1, target.machine.l2_bytes // 2 // (depth * target.vector_bytes))
        widest = min(target.limits.stream_vectors, columns // target.lanes)
        if is_strided and rows <= FEW_ROWS:
            # The longer its rows, the better.
            widest = min(target.machine.registers // 2 // max(rows, 1), columns // target.lanes)
        vectors = range(1, max(1, widest) + 1)
    is_far = (
        is_strided and rows <= FEW_ROWS and depth * columns * F32_BYTES > target.machine.l2_bytes
    )
    pitch = columns if is_strided else None
    is_large = depth * columns * F32_BYTES > target.machine.l2_bytes
    sums_in_flight = target.machine.latency_cycles * target.machine.multiply_adds_per_cycle

    def cost(tile: tuple[int, int]) -> float:
        height, count = tile
        waits = not (is_strided or is_asked) and rows < AHEAD * height
        # Each row of a panel has to be found by itself.
        apart = depth * target.costs.row_cycles if is_far and count * target.lanes < columns else 0
        cycles = 0.0
        for trips, width in _tiles(columns, count, target.lanes):
            brought = 0.0
            if is_large:
                brought = _cycles_to_bring((height, width), depth, target, waits)
            for number, count in _row_tiles(rows, height, is_open=is_open):
                own = _cycles((count, width), depth, target, rows <= height, pitch)
                # Loads run ahead as far as sums do not wait for each other: in the first tile, or
                # in all of an open number, where the next panel is asked for meanwhile.
                hidden = own * min(count * width / sums_in_flight, 1.0)
                late = max(brought - hidden * (number if is_open else 1), 0.0)
                cycles += trips * (number * (own + apart) + (0.0 if is_open else late))
                brought = late if is_open else 0.0
            cycles += trips * brought
        return cycles

    candidates = [
        (height, count)
        for count in vectors
        for height in range(1, min(rows, target.machine.registers) + 1)
        if fits(target, height, count)
        and (most is None or height * count <= most)
        and (rows <= height or count <= most_again)
    ]
    return scored(candidates, cost)


def _cycles(
    tile: tuple[int, int], depth: int, target: Target, is_last: bool, pitch: int | None
) -> float:
    """
    Estimated cycles of one tile: for multiply-adds or loads, but at least the latency of a sum, and
    at least the L2 time of a panel that does not fit in the L1 cache (or that no other tile reads:
    `is_last`), and of rows that conflict in the cache because of their distance. Rows of a panel
    that is not packed are `pitch` columns apart: vectors may lie in two lines each, the pages of
    rows may have to be found, and lines that conflict are late.
    """
    (rows, vectors), machine = tile, target.machine
    sums, loads = rows * vectors, rows + vectors
    panel_bytes = depth * vectors * target.vector_bytes
    panel_lines = vectors * target.vector_bytes / machine.line_bytes
    is_far = is_last or panel_bytes > machine.l1_bytes // 2
    far_lines = panel_lines if is_far else 0.0
    if rows > rows_that_stay(depth * F32_BYTES, target):
        far_lines += rows
    split, found = 0.0, 0.0
    if pitch is not None:
        split = vectors * machine.split_load_cycles if pitch % target.lanes else 0.0
        new = min(pitch * F32_BYTES / machine.page_bytes, 1)
        found = new * target.costs.page_cycles if depth * new > machine.pages else 0.0
        found += panel_lines * late_cycles(depth, pitch * F32_BYTES, target)
    step_cycles = max(
        sums / machine.multiply_adds_per_cycle,
        loads / machine.loads_per_cycle,
        machine.latency_cycles,
        far_lines * machine.l2_line_cycles,
        split,
    )
    return depth * (step_cycles + found) + target.costs.tile_cycles + sums


def _cycles_to_bring(tile: tuple[int, int], depth: int, target: Target, waits: bool) -> float:
    """
    Estimated cycles in which the first tile of a panel brings it from the cache that cores share,
    or from memory. If it `waits` for lines that nothing has asked for ahead, as many are on their
    way as operations in flight ask for.
    """
    rows, vectors = tile
    panel_bytes = depth * vectors * target.vector_bytes
    cycles = panel_bytes / target.machine.shared_bytes_per_cycle
    operations = rows * vectors + rows + vectors
    return max(cycles, depth * operations * target.machine.wait_cycles if waits else 0)


def _row_tiles(rows: int, height: int, *, is_open: bool) -> Sequence[tuple[float, int]]:
    """How many tiles of which number of rows there are."""
    return average_tiles(rows, height, MOST_OF_REST) if is_open else _tiles(rows, height, 1)


@lru_cache
def _tiles(size: int, count: int, step: int) -> Sequence[tuple[int, int]]:
    """How many tiles of which number of steps there are."""
    parts = parts_of(Expr.const(size), count, step)
    trips = [((part.upper - part.lower).value or 0) // part.step for part in parts]
    return [(number, part.count) for number, part in zip(trips, parts, strict=True)]


def finish(k: KernelLowering, op: MatmulOp, at: Index, *, height: int = 1) -> None:
    """An element of the result, in a tile of so many rows."""
    k.finish(*with_sum(k, op, at, height=height))


def with_sum(
    k: KernelLowering,
    op: MatmulOp,
    at: Index,
    panel: tuple[SSAValue, Expr] | None = None,
    *,
    height: int = 1,
) -> tuple[Operation, Index, SSAValue]:
    """
    The op that an element is known of, its index, and the element: the sum of `column_sum`, or that
    and what is added to it.
    """
    if (found := added_to(op)) is None:
        return op, at, column_sum(k, op, at, panel, height=height)
    total, other = found
    start = k.operand(other, at, dims_of(total.result))
    return total, at, column_sum(k, op, at, panel, height=height, start=start)


def column_sum(
    k: KernelLowering,
    op: MatmulOp,
    at: Index,
    panel: tuple[SSAValue, Expr] | None = None,
    *,
    height: int = 1,
    start: SSAValue | None = None,
) -> SSAValue:
    """
    The sum of products, of a column of a panel if there is one, in a tile of so many rows; one of
    integers may begin with something.
    """
    b, dims = k.builder, dims_of(op.result)
    left = [*broadcast_index(at[:-2], dims_of(op.lhs)[:-2], dims[:-2]), at[-2]]
    right = broadcast_index(at[:-2], dims_of(op.rhs)[:-2], dims[:-2])
    element = element_type(op.result)
    zero = scalars.constant(b, 0, element) if start is None else start

    def value(i: Expr) -> SSAValue:
        if panel is not None:
            return b.load(panel[0], [i, panel[1]])
        return factor_element(k, op, 1, [*right, i, at[-1]])

    def add_one(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [add_product(k, op, factor_element(k, op, 0, [*left, i]), value(i), values[0])]

    depth = op.depth
    blocks = in_blocks(op.rhs) if panel is None else None
    if blocks is not None and blocks.axis.data == len(right):
        return _sum_of_blocks(k, op, blocks, (left, right, at[-1]))
    if depth.value is None or is_integer(element):
        return add_rests(k, op, b.carry(depth, [zero], add_one)[0], left, value, height)
    return sum_in_parts(
        b,
        depth.value,
        PART,
        zero,
        lambda first, count, start: b.carry(
            count, [start], lambda i, values: add_one(first + i, values)
        )[0],
    )


def _sum_of_blocks(
    k: KernelLowering,
    op: MatmulOp,
    weight: DequantizeOp,
    places: tuple[Sequence[Expr], Sequence[Expr], Expr],
) -> SSAValue:
    """
    The sum over blocks of weights, two of which lie in a byte: of the products with their codes
    less the zero point times the sum of the left row, times the scale.
    """
    b, (left, right, column) = k.builder, places
    size, block = weight.size.data, weight.block.data
    none = scalars.constant(b, 0, f32)

    def add_one(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor, (products, total) = k.element(op.lhs, [*left, i]), values
        code = code_of(k, weight, [*right, i, column])
        return [b.fma(factor, code, products), scalars.add(b, total, factor)]

    def add_block(first: Expr, count: int, total: SSAValue) -> SSAValue:
        sums: Sequence[SSAValue] = [none, none]
        if count > 1:
            sums = b.carry(
                count // 2,
                sums,
                lambda i, values: add_one(first + i * 2 + 1, add_one(first + i * 2, values)),
            )
        if count % 2:
            sums = add_one(first + (count - 1), sums)
        place = [*right, first, column]
        zero = b.add(arith.NegfOp(zero_of(k, weight, place)))
        return b.fma(b.fma(zero, sums[1], sums[0]), scale_of(k, weight, place), total)

    total = none
    if whole := size // block:
        total = b.carry(whole, [none], lambda i, values: [add_block(i * block, block, values[0])])[
            0
        ]
    if rest := size % block:
        total = add_block(Expr.const(size - rest), rest, total)
    return total
