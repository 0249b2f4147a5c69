"""
Convolutions by Winograd's algorithm: inputs are transformed tile by tile, one matrix product for
each element of a transformed tile sums over the channels, and outputs are transformed back.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from math import inf, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32, i64, static_shape
from lowerdeck.dialects.core.winograd import matrices
from lowerdeck.dialects.dims import Expr, constants, exprs, maximum, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.conv_sums import OUTPUT_CHANNEL, can_be_blocked
from lowerdeck.lowering.strategies.costs import (
    Scored,
    fits,
    least,
    likely_shape,
    reduction_cycles,
    tiles,
)
from lowerdeck.lowering.strategies.facts import (
    blocked_constants,
    is_constant,
    layout_in,
    layout_out,
    position_of,
    stored,
    the,
)
from lowerdeck.lowering.strategies.winograd_transforms import transform
from lowerdeck.lowering.targets.base import F32_BYTES, Target

TILE = "tile"
"""The label of the loop over tiles in the matrix products; the loop over output channel blocks has
the label that convolutions use."""

SIZE, GROUP, PARTS = "size", "group", "parts"
"""Parameters of a schedule: outputs of a tile, in rows and columns; the number of tiles that are
transformed and multiplied at a time, so that they stay in the cache; and the number of parts, for
threads, into which groups are divided."""

SIZES: Exact[tuple[int, ...]] = (4, 2)
"""The supported tile sizes: outputs in rows and columns."""

WINDOW: Exact[tuple[int, int]] = (3, 3)
"""The taps of windows that are supported."""

_COORDINATES: Exact[int] = 3
"""Of a tile: its image, the first row and the first column."""

_MOST_VECTORS = 4
"""Of output channels, in a tile of a product."""

_LINE = 16
"""f32 elements in a cache line, for the layout of the memory between the steps."""


class Winograd(Strategy):
    """
    F(m x m, 3 x 3) along the last two dimensions, where windows have a single element along all
    others, whose positions are images: with strict accuracy in the smaller tiles only. For sizes
    known only at run time, estimates are those of an image of assumed size. A dilated convolution
    is one for each of the images of every d-th row and column.
    """

    name = "winograd"
    anchors = (ConvOp,)
    parameters = (SIZE, GROUP, PARTS)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        if not _can_be_transformed(kernel, op):
            return
        source, result = layout_in(kernel, op.input), layout_out(kernel)
        for size in SIZES:
            if size > 2 and setting.strict:
                continue
            if not can_be_winograd(op, size, source, result):
                continue
            for plan in plans(op, size, result.inner(1), setting):
                yield Candidate(
                    plan.cycles,
                    Schedule(
                        self.name,
                        ((TILE, plan.rows), (OUTPUT_CHANNEL, plan.count)),
                        ("v0", "v1", OUTPUT_CHANNEL, TILE),
                        prefetch=position_of(kernel, op.weight),
                        parameters=((SIZE, size), (GROUP, plan.group), (PARTS, setting.threads)),
                    ),
                )

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op, lanes = the(ConvOp, kernel), layout_out(kernel).inner(1)
        layouts = blocked_constants(kernel, lanes)
        count = schedule.tile(OUTPUT_CHANNEL)
        rank = len(dims_of(op.weight))
        layouts[op.weight] = transformed_weight(rank, schedule.parameter(SIZE), lanes, count)
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        WinogradLowering(k, the(ConvOp, k.kernel), schedule).lower()


@record
class Plan:
    """One way to divide tiles into groups, and the estimated cycles of the convolution."""

    cycles: float
    group: int
    count: int
    """Vectors of output channels in a tile of a product."""
    rows: int
    """Tiles of the image in a tile of a product."""


def plans(op: ConvOp, size: int, lanes: int, setting: Setting) -> Iterator[Plan]:
    """For each group size the tile of a product with the lowest estimate."""
    target, threads, costs = setting.target, setting.threads, setting.target.costs
    machine = target.machine
    shape, weight = likely_shape(op), static_shape(op.weight)
    assert weight is not None
    g, groups = Geometry.of(op, size, exprs(shape)), op.groups.data
    tiles = g.tiles.value
    assert tiles is not None
    blocks_in, blocks_out = -(-weight[1] // lanes) * groups, -(-shape[1] // lanes)
    values = g.values**2
    slab_bytes = blocks_out * lanes * weight[1] * F32_BYTES
    transform_cycles = tiles * values * (blocks_in + blocks_out) * costs.transform_cycles / threads
    is_open = static_shape(op.result) is None
    most = target.limits.group_tiles
    for group in range(4, most + 1) if is_open else _group_sizes(tiles, threads, most):
        turns = -(-tiles // group) / threads
        cycles, (count, rows) = _product(blocks_out // groups, group, weight[1], target, groups)
        if is_open and group % rows:
            # The number of tiles in the last group is unknown; the others have whole products.
            continue
        scratch_bytes = values * group * (blocks_in + blocks_out) * lanes * F32_BYTES
        spill_cycles = (
            max(0, scratch_bytes - machine.l2_bytes * 3 // 4) / machine.shared_bytes_per_cycle / 4
        )
        # The first group reads the weights from memory, the others from the L2 cache or beyond.
        fits_l2 = values * slab_bytes + scratch_bytes <= machine.l2_bytes
        first = max(cycles, slab_bytes / machine.memory_bytes_per_cycle)
        again = cycles if fits_l2 else max(cycles, slab_bytes / machine.shared_bytes_per_cycle)
        product_cycles = values * (first + (turns - 1) * again)
        total_cycles = product_cycles + turns * spill_cycles + transform_cycles
        yield Plan(total_cycles, group, count, rows)


def _group_sizes(tiles: int, threads: int, most: int) -> Sequence[int]:
    """The group sizes, up to `most` tiles, that give every thread the same number of groups."""
    sizes = {-(-tiles // (turns * threads)) for turns in range(1, -(-tiles // threads) + 1)}
    return sorted(size for size in sizes if 4 <= size <= most) or [min(tiles, most)]


@lru_cache
def _tile_cycles(target: Target, depth: int) -> Mapping[tuple[int, int], float]:
    """The cycles of each tile of a product: vectors of output channels, and tiles of the image."""
    most = target.machine.registers
    known = [(count, rows) for count in range(1, _MOST_VECTORS + 1) for rows in range(1, most + 1)]
    return {tile: reduction_cycles(target, tile, tile, depth, sum) for tile in known}


@lru_cache(maxsize=1 << 12)
def _product(
    blocks: int, group: int, depth: int, target: Target, times: int
) -> tuple[float, tuple[int, int]]:
    """
    The cycles of one product, so many times, and its tile: vectors of output channels, and tiles.
    If there are several, no tile belongs to two of them.
    """
    known, efficiency = _tile_cycles(target, depth), target.costs.efficiency
    heights = [tiles(group, rows) for rows in range(1, min(group, target.machine.registers) + 1)]
    ways: Scored[tuple[int, int]] = []
    for count in range(1, min(blocks, _MOST_VECTORS) + 1):
        if times > 1 and blocks % count:
            continue
        widths = tiles(blocks, count)
        for rows, height in enumerate(heights, 1):
            if not fits(target, rows, count):
                break  # nor do more
            # `reduction_cycles` of [blocks, group], of whose tiles there are few different ones.
            cycles = 0.0
            for number, vectors in widths:
                for more, images in height:
                    cycles += number * more * known[vectors, images]
            ways.append((times * cycles / efficiency, (count, rows)))
    return least(ways)


def _can_be_transformed(kernel: KernelOp, op: ConvOp) -> bool:
    """True for constant weights of all their bits, which sums of them need."""
    return is_constant(kernel, op.weight) and stored(op.weight) is op.weight


def transformed_weight(rank: int, size: int, lanes: int, count: int) -> LayoutAttr:
    """[value][value][oc / (count lanes)][ic][oc / lanes % count][oc % lanes]."""
    pieces = [*map(Piece, range(2, rank)), Piece(0, lanes * count), Piece(1)]
    if count > 1:
        pieces.append(Piece(0, lanes, count))
    return LayoutAttr.of([*pieces, Piece(0, 1, lanes)], winograd=size)


def can_be_winograd(op: ConvOp, size: int, source: LayoutAttr, target: LayoutAttr) -> bool:
    """
    True for windows of 3 x 3 in the last two dimensions, of stride 1 there, and of a single element
    in all others; in groups of whole blocks if any, with at least a tile of outputs if all sizes
    are constants, as those of a dilated convolution have to be, and with the same channel blocks in
    input and output.
    """
    shape, weight = static_shape(op.result), static_shape(op.weight)
    if weight is None or not can_be_blocked(op, source, target):
        return False
    dilations, groups, lanes = ints(op.dilations)[-2:], op.groups.data, target.inner(1)
    if len(weight) < 2 + 2 or weight[-2:] != WINDOW or set(weight[2:-2]) - {1}:
        return False
    if set(ints(op.strides)[-2:]) != {1}:
        return False
    if shape is None:
        is_large = set(dilations) == {1}
    else:
        is_large = all(
            extent // dilation >= size
            for extent, dilation in zip(shape[-2:], dilations, strict=True)
        )
    is_whole = groups == 1 or (weight[0] // groups % lanes == 0 and weight[1] % lanes == 0)
    return is_large and is_whole and source.inner(1) == lanes


def winograd_cycles(kernel: KernelOp, op: ConvOp, setting: Setting) -> float:
    """The estimate of the best plan, were input and output in channel blocks; infinite for none."""
    pads, lanes = constants((*op.pads_begin.data, *op.pads_end.data)), setting.target.lanes
    rank = len(dims_of(op.input))
    if pads is None or lanes == 1 or Winograd.name in setting.disabled:
        return inf
    if not _can_be_transformed(kernel, op):
        return inf
    result = LayoutAttr.blocked(rank, 1, lanes)
    source = result.padded((0, 0, *pads[: rank - 2]), (0, 0, *pads[rank - 2 :]))
    sizes = [size for size in SIZES if size == 2 or not setting.strict]
    return min(
        (
            plan.cycles
            for size in sizes
            if can_be_winograd(op, size, source, result)
            for plan in plans(op, size, lanes, setting)
        ),
        default=inf,
    )


@record
class Geometry:
    """The sizes of a convolution in tiles."""

    size: int
    """Rows and columns of outputs in a tile."""
    taps: int
    height: Expr
    width: Expr
    rows: Expr
    """Rows of tiles in an image; in one of those between each other, if there are several."""
    columns: Expr
    """Columns of tiles in an image."""
    tiles: Expr
    """All tiles."""
    dilations: tuple[int, int]
    """Of rows and columns: so many images lie between each other in each direction."""

    @staticmethod
    def of(
        op: ConvOp,
        size: int,
        shape: Sequence[Expr],
        computed: Callable[[Expr], Expr] = lambda size: size,
    ) -> Geometry:
        """
        For outputs of shape N, C, ..., H, W; `computed` replaces expressions computed from them.
        """
        batch, _, *outer, height, width = shape
        weight = static_shape(op.weight)
        assert weight is not None
        below, across = ints(op.dilations)[-2:]
        rows = computed(height.ceildiv(below).ceildiv(size))
        columns = computed(width.ceildiv(across).ceildiv(size))
        images = prod(outer, start=batch)
        tiles = computed(images * below * across * rows * columns)
        return Geometry(size, weight[-1], height, width, rows, columns, tiles, (below, across))

    @property
    def values(self) -> int:
        """Rows and columns of a transformed tile."""
        return self.size + self.taps - 1


def slab(blocks: int, tiles: int, lanes: int) -> int:
    """
    Elements between two slabs of transformed values: an odd number of cache lines, because slabs
    whose distance is a power of two would conflict in the cache.
    """
    lines = -(-blocks * tiles * lanes // _LINE)
    return (lines | 1) * _LINE


@record
class Place:
    """The location of the outputs of a tile."""

    image: Expr
    """In row-major order of the batch and all dimensions before the last two."""
    top: Expr
    left: Expr
    above: Expr
    """The number of outputs in a column that belong to the previous tile."""
    before: Expr
    """The number of outputs in a row that belong to the previous tile."""


class WinogradLowering:
    """
    Lowers one convolution.

    If all sizes are constants, the last tiles of an image begin early enough to be whole, and so
    does the last group of tiles. If a size is known only at run time, the image may be too small
    for that: a tile reads the last row or column of its image in place of those beyond it, and
    stores only outputs within the image; and groups have equal sizes, or slightly smaller ones.
    """

    def __init__(self, k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
        self._k, self._b, self._op = k, k.builder, op
        dims, weight = dims_of(op.result), static_shape(op.weight)
        assert weight is not None
        self._channels, groups = weight[1], op.groups.data
        self._lanes = k.output_layout().inner(1)
        self._rows = schedule.tile(TILE)
        self._g = Geometry.of(op, schedule.parameter(SIZE), dims, k.builder.computed)
        self._is_open = self._g.tiles.value is None
        group, parts = schedule.parameter(GROUP), schedule.parameter(PARTS)
        self._group, self._parts = group, parts
        self._each_in, self._each_out = (
            -(-n // self._lanes) for n in (weight[1], weight[0] // groups)
        )
        self._blocks_in, self._blocks_out = self._each_in * groups, self._each_out * groups
        values = self._g.values**2
        sizes = [slab(n, group, self._lanes) for n in (self._blocks_in, self._blocks_out)]
        self._inputs, self._outputs = (k.scratch(f32, [parts, values, size]) for size in sizes)

    def lower(self) -> None:
        """Each part of the groups has its own workspace, so that threads can share them."""
        tiles = self._g.tiles
        each = self._open_group() if self._is_open else Expr.const(self._group)
        groups = tiles.ceildiv(each)
        with self._b.nest([self._parts], parallel=True) as (part,):
            first, last = part * groups // self._parts, (part + 1) * groups // self._parts
            with self._b.loop(last, first) as group:
                begin = group * each
                if self._is_open:
                    start, count = begin, self._b.computed(minimum(each, tiles - begin))
                else:
                    start, count = self._b.computed(minimum(begin, tiles - each)), each
                if self._is_open:
                    self._note_places(start, count)
                self._transform_inputs(part, start, count)
                self._multiply(part, count)
                self._transform_outputs(part, start, begin - start, count)

    def _open_group(self) -> Expr:
        """
        The number of tiles in a group: equal for all groups, and a multiple of the tiles in a
        product as long as there are that many.
        """
        b, tiles = self._b, self._g.tiles
        rows = self._rows
        turns = b.computed(maximum(tiles.ceildiv(self._group * self._parts), 1))
        each = tiles.ceildiv(turns * self._parts).ceildiv(rows) * rows
        return b.computed(maximum(minimum(each, self._group), 1))

    def _positions(self, image: Expr) -> tuple[Expr, list[Expr]]:
        """Of an image: its number in the batch, and its position in the dimensions before rows."""
        positions: list[Expr] = []
        for size in reversed(dims_of(self._op.result)[2:-2]):
            positions.insert(0, self._b.computed(image % size))
            image = self._b.computed(image // size)
        return image, positions

    def _place(self, tile: Expr) -> Place:
        """The location of a tile by number."""
        g = self._g
        row, column = tile // g.columns % g.rows * g.size, tile % g.columns * g.size
        image, (below, across) = tile // (g.rows * g.columns), g.dilations
        first_row, first_column = image // across % below, image % across
        image = image // (below * across)
        top, left = row, column
        if not self._is_open:
            top = minimum(row, (g.height - first_row).ceildiv(below) - g.size)
            left = minimum(column, (g.width - first_column).ceildiv(across) - g.size)
        places = (
            *(image, first_row + top * below, first_column + left * across),
            *(row - top, column - left),
        )
        return Place(*map(self._b.computed, places))

    def _note_places(self, start: Expr, count: Expr) -> None:
        """
        Store the locations of the tiles of a group, for all channel blocks: division by a size that
        is not constant is slow.
        """
        b = self._b
        self._places = b.scratch(i64, [self._group, _COORDINATES])
        with b.loop(count) as tile:
            place = self._place(b.computed(start + tile))
            for number, value in enumerate((place.image, place.top, place.left)):
                b.store(b.as_integer(value), self._places, [tile, number])

    def _noted_place(self, tile: Expr) -> Place:
        b, none = self._b, Expr.const(0)
        noted = [b.load(self._places, [tile, number]) for number in range(_COORDINATES)]
        image, top, left = map(b.from_integer, noted)
        return Place(image, top, left, none, none)

    @contextmanager
    def _each(
        self, blocks: int, start: Expr, first: Expr, last: Expr
    ) -> Generator[tuple[Expr, Expr, Place]]:
        """
        Loops over channel blocks and the tiles of a group from the first one up to the last: yields
        the block, the tile, and its location.
        """
        b = self._b
        with b.nest([blocks]) as (block,), b.loop(last, first) as tile:
            if self._is_open:
                yield block, tile, self._noted_place(tile)
            else:
                yield block, tile, self._place(b.computed(start + tile))

    def _window(self, axis: int, first: Expr, size: Expr) -> list[Expr]:
        """The rows or columns of inputs that a tile reads, counted from the padding."""
        g = self._g
        window = [first + i * g.dilations[axis] for i in range(g.values)]
        if not self._is_open or size % g.size == 0:
            return window
        # A tile begins within the image, so that its first window is whole.
        last = size + g.taps - 2
        behind = [self._b.computed(minimum(at, last)) for at in window[g.taps :]]
        return [*window[: g.taps], *behind]

    def _transform_inputs(self, part: Expr, start: Expr, count: Expr) -> None:
        b, k, g = self._b, self._k, self._g
        matrix = matrices(g.size, g.taps).inputs
        *before, top, left = [pad.value or 0 for pad in self._op.pads_begin.data]
        strides = ints(self._op.strides)[:-2]
        with self._each(self._blocks_in, start, Expr.const(0), count) as (block, tile, place):
            batch, positions = self._positions(place.image)
            outer = [
                position * stride - pad
                for position, stride, pad in zip(positions, strides, before, strict=True)
            ]
            rows = self._window(0, place.top, g.height)
            columns = self._window(1, place.left, g.width)
            with b.loop(self._lanes, mode="lanes") as lane:
                channel = block * self._lanes + lane
                inputs = [
                    [
                        k.element(
                            self._op.input,
                            [batch, channel, *outer, row - top, column - left],
                        )
                        for column in columns
                    ]
                    for row in rows
                ]
                to = (block * self._group + tile) * self._lanes + lane
                for i, row in enumerate(transform(b, matrix, inputs)):
                    for j, value in enumerate(row):
                        b.store(value, self._inputs, [part, Expr.const(i * g.values + j), to])

    def _multiply(self, part: Expr, tiles: Expr) -> None:
        b, k, lanes = self._b, self._k, self._lanes
        weight = k.inputs[self._op.weight]
        count = self._g.values
        labels = [("v0", count), ("v1", count), (OUTPUT_CHANNEL, self._blocks_out)]
        single = [Expr.const(0)] * (len(dims_of(self._op.weight)) - 2 - 2)
        with b.labeled_nest([*labels, (TILE, tiles)]) as (i, j, block, tile):
            with b.loop(lanes, mode="lanes") as lane:
                first = block // self._each_out * self._each_in

                def add_product(
                    source: Expr, at: Sequence[Expr], values: Sequence[SSAValue]
                ) -> Sequence[SSAValue]:
                    place = ((first + source) * self._group + tile) * lanes + at[-1]
                    value = b.load(self._inputs, [part, i * count + j, place])
                    channels = [block * lanes + lane, source * lanes + at[-1]]
                    return [b.fma(value, b.load(weight, [*channels, *single, i, j]), values[0])]

                whole, rest = divmod(self._channels, lanes)
                total: Sequence[SSAValue] = [scalars.constant(b, 0, f32)]
                if whole:
                    bounds = [(Expr.const(0), Expr.const(size)) for size in (whole, lanes)]
                    total = b.carry_nest(
                        bounds, total, lambda at, values: add_product(at[0], at, values)
                    )
                if rest:
                    total = b.carry_nest(
                        [(Expr.const(0), Expr.const(rest))],
                        total,
                        lambda at, values: add_product(Expr.const(whole), at, values),
                    )
                place = (block * self._group + tile) * lanes + lane
                b.store(total[0], self._outputs, [part, i * count + j, place])

    def _transform_outputs(self, part: Expr, start: Expr, done: Expr, count: Expr) -> None:
        """The tiles from `done` on; those before belong to the previous group."""
        b, k, g = self._b, self._k, self._g
        matrix = matrices(g.size, g.taps).outputs
        with self._each(self._blocks_out, start, done, count) as (block, tile, place):
            with b.loop(self._lanes, mode="lanes") as lane:
                channel = block * self._lanes + lane
                source = (block * self._group + tile) * self._lanes + lane
                products = [
                    [
                        b.load(self._outputs, [part, Expr.const(i * g.values + j), source])
                        for j in range(g.values)
                    ]
                    for i in range(g.values)
                ]
                bias = None if self._op.bias is None else k.element(self._op.bias, [channel])
                self._finish(transform(b, matrix, products, bias), place, channel)

    def _finish(self, tile: Sequence[Sequence[SSAValue]], place: Place, channel: Expr) -> None:
        """Store the outputs that lie in the image and belong to no other tile."""
        g, size = self._g, range(self._g.size)
        batch, outer = self._positions(place.image)

        def store_row(i: int) -> None:
            for j in size:
                with self._if_own(1, j, place.left, place.before):
                    row, column = place.top + i * g.dilations[0], place.left + j * g.dilations[1]
                    where = [batch, channel, *outer, row, column]
                    self._k.finish(self._op, where, tile[i][j])

        for i in size:
            with self._if_own(0, i, place.top, place.above):
                store_row(i)

    def _if_own(
        self, axis: int, number: int, first: Expr, done: Expr
    ) -> AbstractContextManager[None]:
        """For a row (axis 0) or column of a tile: whether it is to be stored."""
        b, g = self._b, self._g
        size, tiles = ((g.height, g.rows), (g.width, g.columns))[axis]
        if self._is_open:
            if size % g.size == 0:
                return nullcontext()
            # A tile begins within the image.
            inside = b.compare_index("slt", first + number, size) if number else None
            return nullcontext() if inside is None else b.when(inside, in_lanes=True)
        # The smallest of the images that lie between each other has the most of them twice.
        most = (tiles * g.size - size // g.dilations[axis]).value
        assert most is not None
        if number >= most:
            return nullcontext()
        return b.when(b.compare_index("sge", number, done), in_lanes=True)
