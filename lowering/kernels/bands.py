"""
A convolution and a depthwise one behind it in one kernel, by bands of rows: the tensor between them
is never in memory as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.convolution import conv_sum
from lowerdeck.lowering.kernels.depthwise import depthwise_sum
from lowerdeck.lowering.kernels.lower import Index, KernelLowering, pair, parameter
from lowerdeck.lowering.kernels.winograd import PARTS

BAND = "band"
"""What a schedule has under `tile`: the rows of results that a band has. `PARTS` says into how many
parts, for threads, bands are dealt."""

MADE_BLOCK, MADE_COLUMN = "mc", "m1"
"""The labels of the loops over blocks of channels and columns of the tensor in between; the loop
over columns of results is labeled as that of any convolution. How many blocks a tile has is how
many are made, and read, before the next ones."""


@dataclass(frozen=True)
class Geometry:
    """
    The rows and columns of a depthwise convolution and of what it reads, all of them numbers.
    """

    height: int
    """Rows of the tensor in between."""
    width: int
    rows: int
    """Rows of results."""
    columns: int
    stride: int
    """From row to row."""
    span: int
    """Rows that one row of results reads, with those in between."""
    above: int
    """Rows of padding."""
    left: int
    """Columns of padding."""
    read: int
    """Columns that are read or made, with the padding."""
    band: int
    """Rows of results in a band; the last one may have fewer."""

    @staticmethod
    def of(op: ConvOp, band: int | None = None) -> Geometry | None:
        """Of a depthwise convolution in bands, or in one; None if a size is not known."""
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
        """How many bands there are."""
        return -(-self.rows // self.band)

    @property
    def window(self) -> int:
        """Rows that a band reads."""
        return (self.band - 1) * self.stride + self.span

    @property
    def below(self) -> int:
        """Rows of padding that are read behind the last row."""
        return max((self.rows - 1) * self.stride + self.span - self.above - self.height, 0)


class BandLowering:
    """
    Lowers the two convolutions of a kernel.

    Each part of the bands, for threads, has memory of its own for the rows that one band reads of a
    few blocks of channels: first their columns of padding are set to zero, and then, for these
    blocks of channels, band after band is made in it and read at once. What the next band reads
    again is moved to the front.
    """

    def __init__(self, k: KernelLowering, first: ConvOp, second: ConvOp, g: Geometry) -> None:
        self._k, self._b, self._first, self._second = k, k.builder, first, second
        self._g = g
        self._lanes = k.output_layout().inner(1)
        self._count = parameter(k.kernel, MADE_BLOCK) or 1
        self._parts = parameter(k.kernel, PARTS) or 1
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
        """Move to the front what this band reads again, if it is not the first one: how much."""
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
        """Rows of the tensor in between; `top` is the row of it that row 0 of the memory is."""
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
        """So many rows of results, from `begin` on."""
        b, k, op, g = self._b, self._k, self._second, self._g
        top = begin * g.stride - g.above
        with (
            b.nest([self._count]) as (block,),
            b.loop(rows) as row,
            b.labeled_nest([("x1", g.columns)]) as (column,),
            b.loop(self._lanes, label="lane", mode="lanes") as lane,
        ):

            def element(at: Index) -> SSAValue:
                return b.load(self._memory, [part, block, at[2] - top, at[3] + g.left, lane])

            k.bind(op.input, element)
            channel = (group * self._count + block) * self._lanes + lane
            where = [image, channel, begin + row, column]
            k.finish(op, where, depthwise_sum(k, op, where))


@pair(ConvOp, ConvOp)
def lower_bands(k: KernelLowering, first: ConvOp, second: ConvOp) -> None:
    """Of one image after the other."""
    geometry = Geometry.of(second, parameter(k.kernel, BAND))
    assert geometry is not None
    BandLowering(k, first, second, geometry).lower()


def convolutions_in_bands(kernel: KernelOp) -> tuple[ConvOp, ConvOp] | None:
    """The two convolutions of a kernel; None if it has others."""
    found = [op for op in kernel.body.block.ops if isinstance(op, ConvOp)]
    return (found[0], found[1]) if len(found) == 2 else None
