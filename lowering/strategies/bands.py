"""
A convolution and the depthwise one after it in one kernel, by bands of rows: the intermediate
tensor is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelBody, KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32, static_shape
from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.conv_sums import conv_sum
from lowerdeck.lowering.strategies.costs import (
    fits,
    least,
    reduction_cycles,
    window_loads,
    window_sum_tiles,
)
from lowerdeck.lowering.strategies.depthwise import depthwise_sum, depthwise_tiles
from lowerdeck.lowering.strategies.direct import packed_weight
from lowerdeck.lowering.strategies.facts import blocked_constants, item_bytes, layout_in, layout_out

BAND, PARTS = "band", "parts"
"""Parameters of a schedule: the rows of results in a band, and the number of parts, for threads,
into which bands are divided."""

MADE_BLOCK, MADE_COLUMN = "mc", "m1"
"""The labels of the loops over channel blocks and columns of the intermediate tensor; the loop
over columns of results has the label of any convolution. The number of blocks in a tile is the
number that is computed, and read, before the next ones."""


class Bands(Strategy):
    """
    A tile of the first convolution for the rows of a band, and one of the depthwise convolution
    after it. `fuse-bands` forms the kernels for it, where that pays.
    """

    name = "bands"
    anchors = (ConvOp, ConvOp)
    parameters = (BAND, PARTS)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        first, second = convolutions_of(kernel)
        taps, columns = static_shape(second.weight), dims_of(second.result)[-1].value
        if taps is None or columns is None:
            return
        _, depthwise_columns = least(depthwise_tiles(columns, taps, setting.target))
        for plan in plans(first, second, layout_out(kernel).inner(1), setting):
            tiles = (
                (MADE_COLUMN, plan.columns),
                (MADE_BLOCK, plan.count),
                ("x1", depthwise_columns),
            )
            own = ((BAND, plan.band), (PARTS, setting.threads))
            order = (MADE_COLUMN, MADE_BLOCK, "x1")
            yield Candidate(plan.cycles, Schedule(self.name, tiles, order, parameters=own))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        first, second = convolutions_of(kernel)
        lanes = layout_out(kernel).inner(1)
        layouts = blocked_constants(kernel, lanes)
        block = layout_in(kernel, first.input).inner(1)
        layouts[first.weight] = packed_weight(first, block, lanes, schedule.tile(MADE_BLOCK))
        layouts[second.weight] = LayoutAttr.blocked(len(dims_of(second.weight)), 0, lanes)
        return layouts

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        BandLowering(k, *convolutions_of(k.kernel), schedule).lower()


def convolutions_of(kernel: KernelBody) -> tuple[ConvOp, ConvOp]:
    """The two convolutions of a kernel that has two."""
    first, second = (op for op in kernel.body.block.ops if isinstance(op, ConvOp))
    return first, second


@record
class BandPlan:
    """One way to run the two convolutions."""

    cycles: float
    """For one image, of all threads together, without the cost that all plans share."""
    count: int
    """Channel blocks that are computed at a time."""
    columns: int
    """Columns of a tile of the first convolution."""
    band: int
    """Rows of results in a band."""


def plans(first: ConvOp, second: ConvOp, lanes: int, setting: Setting) -> Iterator[BandPlan]:
    """None if sizes are not known, or a band does not fit in any cache."""
    g, weight = Geometry.of(second), static_shape(first.weight)
    if g is not None and weight is not None:
        yield from _plans(g, weight, lanes, setting)


def estimates(
    first: ConvOp, second: ConvOp, lanes: int, setting: Setting
) -> tuple[float, float] | None:
    """
    The cycles of two convolutions in bands, with smaller tiles and rows that threads recompute, and
    separately, with the memory traffic of the intermediate tensor, and where threads share it their
    meeting between the two and the rows that each reads of another's.

    None if there are no bands, or one thread has the intermediate tensor in the L2 cache without
    them.
    """
    target, threads = setting.target, setting.threads
    g, weight = Geometry.of(second), static_shape(first.weight)
    best = min((plan.cycles for plan in plans(first, second, lanes, setting)), default=None)
    if g is None or weight is None or best is None:
        return None
    blocks = -(-weight[0] // lanes)
    between_bytes = (
        blocks * lanes * (g.height + g.above + g.below) * g.read * item_bytes(first.result)
    )
    machine = target.machine
    is_near = between_bytes <= machine.l2_bytes // 2
    if is_near and threads == 1:
        return None
    inputs = prod(dim.value or 1 for dim in dims_of(first.input))
    weight_bytes = prod(weight) * item_bytes(first.weight)
    if prod(weight) > inputs and weight_bytes > machine.l1_bytes:
        # They come from memory, and the convolution by itself prefetches them.
        return None
    apart, _ = least(window_sum_tiles(target, (blocks, g.height, g.width), prod(weight[1:])))
    if not is_near:
        apart += between_bytes / machine.l2_return_bytes_per_cycle
    if threads > 1:
        lines = max(g.span - g.stride, 0) * (threads - 1) * g.read * blocks
        apart += threads * machine.barrier_cycles + lines * machine.jump_line_cycles
    return best, apart


@record
class Geometry:
    """
    The rows and columns of a depthwise convolution and of its input, all of them constants.
    """

    height: int
    """Rows of the intermediate tensor."""
    width: int
    rows: int
    """Rows of results."""
    columns: int
    stride: int
    """Row stride."""
    span: int
    """Rows that one row of results spans in its input."""
    above: int
    """Rows of padding."""
    left: int
    """Columns of padding."""
    read: int
    """Columns that are read or computed, with the padding."""
    band: int
    """Rows of results in a band; the last band may have fewer."""

    @staticmethod
    def of(op: ConvOp, band: int | None = None) -> Geometry | None:
        """For a depthwise convolution in bands, or in one band; None if a size is not known."""
        spatial = constants([*dims_of(op.input)[2:], *dims_of(op.result)[2:]])
        taps, pads = constants(dims_of(op.weight)[2:]), constants(op.pads_begin.data)
        if spatial is None or taps is None or pads is None or len(taps) != 2:
            return None
        height, width, rows, columns = spatial
        spans = [(tap - 1) * d + 1 for tap, d in zip(taps, ints(op.dilations), strict=True)]
        strides = ints(op.strides)
        read = max((columns - 1) * strides[1] + spans[1], pads[1] + width)
        band = rows if band is None else min(band, rows)
        return Geometry(
            height, width, rows, columns, strides[0], spans[0], pads[0], pads[1], read, band
        )

    @property
    def bands(self) -> int:
        """The number of bands."""
        return -(-self.rows // self.band)

    @property
    def window(self) -> int:
        """Rows that a band reads."""
        return (self.band - 1) * self.stride + self.span

    @property
    def below(self) -> int:
        """Rows of padding that are read after the last row."""
        return max((self.rows - 1) * self.stride + self.span - self.above - self.height, 0)


class BandLowering:
    """
    Lowers the two convolutions of a kernel.

    Each part of the bands, for threads, has its own memory for the rows that one band reads of a
    few channel blocks: first their columns of padding are set to zero, and then, for these channel
    blocks, band after band is computed into it and read immediately. Rows that the next band reads
    again are moved to the front.
    """

    def __init__(
        self, k: KernelLowering, first: ConvOp, second: ConvOp, schedule: Schedule
    ) -> None:
        self._k, self._b, self._first, self._second = k, k.builder, first, second
        g = Geometry.of(second, schedule.parameter(BAND))
        assert g is not None
        self._g = g
        self._lanes = k.output_layout().inner(1)
        self._count = schedule.tile(MADE_BLOCK)
        self._parts = schedule.parameter(PARTS)
        channels = dims_of(second.result)[1].value
        assert channels is not None
        self._groups = -(-channels // self._lanes) // self._count
        sizes = [self._parts, self._count, g.window, g.read, self._lanes]
        self._memory = k.scratch(f32, sizes)

    def lower(self) -> None:
        """Parts of the bands are independent."""
        b, bands = self._b, self._g.bands
        with b.nest([self._parts], parallel=True) as (part,):
            begin, end = part * bands // self._parts, (part + 1) * bands // self._parts
            self._clear_columns(part)
            with b.nest([dims_of(self._second.result)[0], self._groups]) as (image, group):
                with b.loop(end, begin) as band:
                    self._lower_band(part, image, group, band, b.computed(band - begin))

    def _lower_band(self, part: Expr, image: Expr, group: Expr, band: Expr, number: Expr) -> None:
        """The band of this number in its part."""
        b, g = self._b, self._g
        begin = band * g.band
        top = begin * g.stride - g.above
        kept = self._keep_rows(part, number)
        above = b.computed(minimum(maximum(-top, 0), g.window)) if g.above else Expr.const(0)
        end = b.computed(maximum(minimum(g.height - top, g.window), above))
        if g.above:
            self._clear_rows(part, Expr.const(0), above)
        if g.below:
            self._clear_rows(part, end, Expr.const(g.window))
        self._make(part, image, group, top, (b.computed(maximum(above, kept)), end))
        self._read(part, image, group, begin, b.computed(minimum(g.band, g.rows - begin)))

    def _keep_rows(self, part: Expr, number: Expr) -> Expr:
        """Move rows that this band reads again to the front, except in the first; their number."""
        b, g = self._b, self._g
        step = g.band * g.stride
        if g.bands == 1 or g.window <= step:
            return Expr.const(0)
        kept = b.computed((g.window - step) * minimum(number, 1))
        with b.nest([self._count]) as (block,), b.loop(kept) as row, b.nest([g.read]) as (column,):
            with b.loop(self._lanes, mode="lanes") as lane:
                value = b.load(self._memory, [part, block, row + step, column, lane])
                b.store(value, self._memory, [part, block, row, column, lane])
        return kept

    def _clear_columns(self, part: Expr) -> None:
        g = self._g
        for lower, upper in ((0, g.left), (g.left + g.width, g.read)):
            if lower < upper:
                rows = (Expr.const(0), Expr.const(g.window))
                self._clear(part, rows, (lower, upper))

    def _clear_rows(self, part: Expr, lower: Expr, upper: Expr) -> None:
        self._clear(part, (lower, upper), (self._g.left, self._g.left + self._g.width))

    def _clear(self, part: Expr, rows: tuple[Expr, Expr], columns: tuple[int, int]) -> None:
        """Set rows and columns of the memory to zero."""
        b = self._b
        with b.nest([self._count]) as (block,), b.loop(rows[1], rows[0]) as row:
            with b.loop(columns[1], columns[0]) as column:
                with b.loop(self._lanes, mode="lanes") as lane:
                    zero = scalars.constant(b, 0, f32)
                    b.store(zero, self._memory, [part, block, row, column, lane])

    def _make(
        self, part: Expr, image: Expr, group: Expr, top: Expr, rows: tuple[Expr, Expr]
    ) -> None:
        """Compute rows of the intermediate tensor; `top` is its row at row 0 of the memory."""
        b, k, op = self._b, self._k, self._first
        labels = [(MADE_COLUMN, self._g.width), (MADE_BLOCK, self._count)]
        with b.loop(rows[1], rows[0]) as row, b.labeled_nest(labels) as (column, block):
            with b.loop(self._lanes, label="lane", mode="lanes") as lane:
                channel = (group * self._count + block) * self._lanes + lane
                where = [image, channel, top + row, column]
                zero = scalars.constant(b, 0, f32)
                start = zero if op.bias is None else k.element(op.bias, [channel])
                total = conv_sum(k, op, where, start)
                k.bind(op.result, lambda _: total)
                value = k.element(self._second.input, where)
                b.store(value, self._memory, [part, block, row, column + self._g.left, lane])

    def _read(self, part: Expr, image: Expr, group: Expr, begin: Expr, rows: Expr) -> None:
        """Compute `rows` rows of results, from `begin` on."""
        b, k, op, g = self._b, self._k, self._second, self._g
        top = begin * g.stride - g.above
        with (
            b.nest([self._count]) as (block,),
            b.loop(rows) as row,
            b.labeled_nest([("x1", g.columns)]) as (column,),
            b.loop(self._lanes, label="lane", mode="lanes") as lane,
        ):

            def element(at: Index) -> SSAValue:
                *_, row, column = at
                return b.load(self._memory, [part, block, row - top, column + g.left, lane])

            k.bind(op.input, element)
            channel = (group * self._count + block) * self._lanes + lane
            where = [image, channel, begin + row, column]
            k.finish(op, where, depthwise_sum(k, op, where))


def _plans(g: Geometry, weight: Sequence[int], lanes: int, setting: Setting) -> Iterator[BandPlan]:
    target, threads = setting.target, setting.threads
    blocks, depth = -(-weight[0] // lanes), prod(weight[1:])
    for count in range(1, min(blocks, target.limits.band_blocks) + 1):
        if blocks % count or (
            count > 1 and depth * count * target.vector_bytes > target.machine.l1_bytes // 2
        ):
            continue
        columns = [n for n in range(1, g.width + 1) if fits(target, n, count)]
        for band in _band_sizes(g, count * target.vector_bytes, setting):
            made, moved, busy = _rows(g, band, threads)
            move_cycles = (
                moved
                * g.read
                * blocks
                * target.vector_bytes
                / target.machine.l2_copy_bytes_per_cycle
            )
            band_cycles = -(-g.rows // band) * (blocks // count) * target.costs.band_cycles
            for number in columns:
                sum_cycles = reduction_cycles(
                    target, (blocks, made, g.width), (count, 1, number), depth, window_loads
                )
                cycles = (sum_cycles + move_cycles + band_cycles) * busy
                yield BandPlan(cycles, count, number, band)


def _band_sizes(g: Geometry, pixel: int, setting: Setting) -> list[int]:
    """Band sizes in rows that are as equal as possible and stay in the L2 cache."""
    rows = setting.target.machine.l2_bytes // 4 // (g.read * pixel)
    most = (rows - g.span) // g.stride + 1
    if most < 1:
        return []
    fewest = -(-g.rows // most)
    numbers = {fewest, -(-fewest // setting.threads) * setting.threads}
    return sorted({-(-g.rows // number) for number in numbers})


def _rows(g: Geometry, band: int, threads: int) -> tuple[int, int, float]:
    """
    The rows of the intermediate tensor that are computed and those that are moved, and the ratio of
    the busiest thread's work to an equal share.
    """
    bands = -(-g.rows // band)
    again = max(g.span - g.stride, 0)
    made = g.height + again * (min(threads, bands) - 1)
    return made, again * (bands - 1), -(-bands // threads) * threads / bands
