"""
Depthwise convolutions of bytes of row-major images, where the processor puts bytes in any order:
the lanes are adjacent results of a row, and each multiplies four adjacent bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import WORD_BYTES
from lowerdeck.dialects.buffer.vector import DotQuadsOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.control_flow import KernelOp, yielded
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, is_unsigned, rank_of, static_shape
from lowerdeck.dialects.dims import Expr, constants, minimum
from lowerdeck.lowering.loops.parameters import parts_of
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.contraction import added_to
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.byte_sums import is_byte
from lowerdeck.lowering.strategies.conv_sums import is_depthwise
from lowerdeck.lowering.strategies.costs import tiles
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    is_constant,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.strategies.line_sums import depends_on_channels
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target

ROWS, VECTOR = "rows", "vector"
"""Parameters of a schedule: rows of a tile, and the lanes."""

CHANNELS: Exact[int] = 16
"""Channels whose weights lie side by side: so many lanes compute what zero points add."""

SIGN: Exact[int] = 128
"""What makes a byte with a sign one without."""

ONES: Exact[int] = 0x01010101
"""Ones in the bytes of a word."""

COLUMNS: Exact[int] = 3
"""The last dimension of images and of weights."""

MOST_ROWS = 4
"""Of a tile: of more, code becomes long and saves little."""

FINISHING_CYCLES = 6
"""Of a vector of sums that becomes bytes."""

LINE: Exact[int] = 32
"""Bytes that the length of a copied row is a multiple of."""


class DepthwiseWords(Strategy):
    """
    A channel at a time: the image is copied with its padding, the zero point, then each tile of
    rows loads a vector of words of each row under it once. Weights are words of taps of a row,
    with zeros behind the last one. Zero points of bytes are kept, and what they add to the sums of
    a channel is subtracted from what they begin with.
    """

    name = "depthwise_words"
    anchors = (ConvOp,)
    parameters = (ROWS, VECTOR)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        if not has_words(op, setting.target) or not is_constant(kernel, op.weight):
            return
        if any(position_of(kernel, value) is None for value in op.factors):
            return
        layouts = (layout_in(kernel, op.input), layout_out(kernel))
        if not all(layout.is_row_major for layout in layouts):
            return
        shape, (_, _, height, width) = assumed_shape(op.result), assumed_shape(op.weight)
        target, words = setting.target, -(-width // WORD_BYTES)
        ways = {False, depends_on_channels(yielded(kernel.body), op)}
        stride, dilation = ints(op.strides)[0], ints(op.dilations)[0]
        each = 1 / target.machine.loads_per_cycle + 1 / target.machine.stores_per_cycle
        for lanes in {lanes_of_rows(shape[-1], target, is_alike=is_alike) for is_alike in ways}:
            vectors = -(-shape[-1] // lanes)
            moved = -(-shape[-1] // vector_of_bytes(shape[-1])) if lanes > shape[-1] else 0
            for rows in range(1, min(MOST_ROWS, shape[2]) + 1):
                cycles = shape[2] * moved * each
                for count, size in tiles(shape[2], rows):
                    lines = len(_lines(size, height, stride, dilation))
                    products = size * (height * words + FINISHING_CYCLES)
                    cycles += count * vectors * (2 * lines * words + products)
                    cycles += target.costs.variant_cycles / shape[1]
                cycles *= shape[0] * shape[1] / setting.threads
                parameters = ((ROWS, rows), (VECTOR, lanes))
                yield Candidate(cycles, Schedule(self.name, parameters=parameters))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        blocks = [Piece(0, CHANNELS), Piece(1), Piece(2), Piece(COLUMNS, WORD_BYTES)]
        pieces = [*blocks, Piece(0, 1, CHANNELS), Piece(COLUMNS, 1, WORD_BYTES)]
        return {the(ConvOp, kernel).weight: LayoutAttr.of(pieces)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(ConvOp, k.kernel)
        batch, channels = dims_of(op.result)[0], dims_of(op.result)[1].value
        assert channels is not None
        blocks, rest = divmod(channels, CHANNELS)
        for first, count, size in ((0, blocks, CHANNELS), (blocks * CHANNELS, 1, rest)):
            if not count or not size:
                continue
            nest = k.builder.labeled_nest([("n", batch), ("block", count)], parallel=True)
            with nest as (image, block):
                _Channels(k, op, schedule, image, block * size + first, size).build()


def has_words(op: ConvOp, target: Target) -> bool:
    """
    True for a depthwise convolution of images of bytes, by bytes with signs and without zero
    points, of known sizes, of which a channel with its padding is small enough to be copied, on a
    target that loads words that have bytes in common.
    """
    lanes = target.lanes_of(i32)
    if not is_depthwise(op) or op.accumulator != i32 or rank_of(op.input) != 2 + 2:
        return False
    sizes = constants([*dims_of(op.result)[1:], *dims_of(op.input)[1:]])
    pads = constants([*op.pads_begin.data, *op.pads_end.data])
    if sizes is None or pads is None or static_shape(op.weight) is None or 0 in sizes:
        return False
    if not all(map(is_byte, op.factors)) or is_unsigned(element_type(op.weight)):
        return False
    if op.zero_points:
        zero, other = op.zero_points
        dims = dims_of(zero)
        inner = dims[1:] if len(dims) == rank_of(op.input) else dims
        if any(dim != 1 for dim in inner) or not _is_zero(other):
            return False
    stride = ints(op.strides)[1]
    if ints(op.dilations)[1] != 1 or (lanes, stride) not in target.isa.overlapping_words:
        return False
    height, pitch = _size_of_lines(op, lanes_of_rows(sizes[2], target))
    return sizes[2] >= FEWEST_LANES and height * pitch <= target.limits.stack_bytes


def _is_of_channels(value: SSAValue, op: ConvOp) -> bool:
    """True for what is one number for all places of a channel, in memory."""
    space = rank_of(op.result) - 2
    is_read = isinstance(value.owner, Block | ConstantOp)
    return is_read and all(dim == 1 for dim in dims_of(value)[-space:])


def _is_zero(value: SSAValue) -> bool:
    array = constant_array(value)
    return array is not None and not array.any()


def lanes_of_rows(width: int, target: Target, *, is_alike: bool = True) -> int:
    """
    Of vectors of a row of so many results. Where what follows is alike at all places, one that is
    longer may reach beyond the row, by less than half: results are moved then.
    """
    lanes = target.lanes_of(i32)
    while lanes > FEWEST_LANES and lanes >= (2 * width if is_alike else width + 1):
        lanes //= 2
    return lanes


def _lines(rows: int, height: int, stride: int, dilation: int) -> list[int]:
    """The rows under windows of adjacent results, from the first one."""
    return sorted({row * stride + tap * dilation for row in range(rows) for tap in range(height)})


def _size_of_lines(op: ConvOp, lanes: int) -> tuple[int, int]:
    """Rows of the copy of a channel, and bytes of each, as far as vectors read them."""
    (rows, columns), (height, width) = assumed_shape(op.result)[2:], assumed_shape(op.weight)[2:]
    down, across = ints(op.strides)
    words = -(-width // WORD_BYTES)
    read = (-(-columns // lanes) * lanes - 1) * across + words * WORD_BYTES
    begin, end = (pads.data[1].value or 0 for pads in (op.pads_begin, op.pads_end))
    whole = begin + (dims_of(op.input)[COLUMNS].value or 0) + end
    count = (rows - 1) * down + (height - 1) * ints(op.dilations)[0] + 1
    return count, -(-max(read, whole) // LINE) * LINE


class _Channels:
    """The loops over some channels of one image."""

    def __init__(
        self,
        k: KernelLowering,
        op: ConvOp,
        schedule: Schedule,
        image: Expr,
        first: Expr,
        count: int,
    ) -> None:
        self._k, self._b, self._op = k, k.builder, op
        self._image, self._first, self._count = image, first, count
        self._rows, self._lanes = schedule.parameter(ROWS), schedule.parameter(VECTOR)
        self._shape = [dim.value or 0 for dim in dims_of(op.result)]
        self._taps = [dim.value or 0 for dim in dims_of(op.weight)[2:]]
        self._words = -(-self._taps[1] // WORD_BYTES)
        self._last: Operation = op
        self._added: SSAValue | None = None
        if (found := added_to(op)) is not None and _is_of_channels(found[1], op):
            self._last, self._added = found
        size = _size_of_lines(op, self._lanes)
        self._height, self._pitch = size
        self._lines = self._b.scratch(i8, [self._height, self._pitch])
        self._starts = self._b.scratch(i32, [CHANNELS])

    def build(self) -> None:
        """All of them."""
        padding = zero_byte(self._k, self._op, self._image)
        with self._b.nest([self._height, self._pitch // LINE]) as (row, line):
            with self._b.loop(LINE, mode="lanes") as lane:
                self._b.store(padding, self._lines, [row, line * LINE + lane])
        self._store_starts(padding)
        width, found = self._shape[-1], None
        if width < self._lanes:
            found = self._b.scratch(element_type(self._k.roots[0]), [self._shape[2], self._lanes])
        with self._b.loop(self._count) as channel:
            self._copy(self._first + channel)
            self._multiply(channel, found)
            if found is not None:
                self._move(found, self._first + channel)

    def _store_starts(self, padding: SSAValue) -> None:
        """What the sums of each channel begin with: all channels lie in lanes."""
        b, op = self._b, self._op
        zero = b.add(arith.MuliOp(b.add(arith.ExtUIOp(padding, i32)), b.integer(ONES, i32)))
        mode = "lanes" if self._count == CHANNELS else None
        with b.loop(self._count, mode=mode) as channel:
            excess = b.integer(0, i32)
            for weight in self._weights(channel).values():
                excess = b.add(DotQuadsOp(zero, weight, excess))
            start, at = b.integer(0, i32), self._first + channel
            if op.bias is not None:
                start = self._k.element(op.bias, [at])
            if self._added is not None:
                none = Expr.const(0)
                place = [self._image, at, none, none]
                value = self._k.operand(self._added, place, dims_of(op.result))
                start = b.add(arith.AddiOp(start, value))
            b.store(b.add(arith.SubiOp(start, excess)), self._starts, [channel])

    def _weights(self, channel: Expr) -> Mapping[tuple[int, int], SSAValue]:
        """The words of a channel, by row and number."""
        weight, first = self._k.inputs[self._op.weight], self._first + channel
        places = [(tap, word) for tap in range(self._taps[0]) for word in range(self._words)]
        return {
            (tap, word): self._b.load_word(weight, [first, 0, tap, word * WORD_BYTES])
            for tap, word in places
        }

    def _copy(self, channel: Expr) -> None:
        """What lies on the image, between the padding."""
        b, op = self._b, self._op
        height, width = (dim.value or 0 for dim in dims_of(op.input)[2:])
        above, before = (pad.value or 0 for pad in op.pads_begin.data)
        read = min(height, self._height - above), min(width, self._pitch - before)
        lanes = vector_of_bytes(read[1])
        with b.nest([read[0], -(-read[1] // lanes)]) as (row, vector):
            column = minimum(vector * lanes, read[1] - lanes)
            with b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
                value = self._k.element(op.input, [self._image, channel, row, column + lane])
                at = [row + above, column + lane + before]
                b.store(as_unsigned(self._b, self._op, value), self._lines, at)

    def _multiply(self, channel: Expr, found: SSAValue | None) -> None:
        """The results of a channel, into a buffer if vectors reach beyond rows."""
        b, width = self._b, self._shape[-1]
        weights, start = self._weights(channel), b.load(self._starts, [channel])
        for part in parts_of(Expr.const(self._shape[2]), self._rows, 1):
            count = ((part.upper - part.lower).value or 0) // part.step
            with b.nest([count, -(-width // self._lanes)]) as (tile, vector):
                first = part.lower + tile * part.step
                column = vector * self._lanes
                if found is None:
                    column = minimum(column, width - self._lanes)
                with b.loop(self._lanes, mode="lanes") as lane:
                    place = (first, column + lane)
                    for row, total in self._sums(place, part.step, weights, start):
                        at = [self._image, self._first + channel, first + row, place[1]]
                        if found is None:
                            self._k.finish(self._last, at, total)
                        else:
                            at[-1] = Expr.const(0)
                            value = self._k.finished(self._last, at, total)
                            b.store(value, found, [first + row, place[1]])

    def _sums(
        self,
        place: tuple[Expr, Expr],
        rows: int,
        weights: Mapping[tuple[int, int], SSAValue],
        start: SSAValue,
    ) -> Iterator[tuple[int, SSAValue]]:
        """Those of some rows from one on, line by line."""
        (stride, across), dilation = ints(self._op.strides), ints(self._op.dilations)[0]
        (first, column), totals = place, [start] * rows
        for line in _lines(rows, self._taps[0], stride, dilation):
            taps = _taps_on(line, rows, self._taps[0], (stride, dilation))
            for word in range(self._words):
                at = [first * stride + line, column * across + word * WORD_BYTES]
                value = self._b.load_word(self._lines, at)
                for row, tap in taps:
                    op = DotQuadsOp(value, weights[tap, word], totals[row])
                    totals[row] = self._b.add(op)
        yield from enumerate(totals)

    def _move(self, found: SSAValue, channel: Expr) -> None:
        """The results of a channel to where they belong."""
        b, (*_, rows, width) = self._b, self._shape
        lanes = vector_of_bytes(width)
        with b.nest([rows, -(-width // lanes)]) as (row, vector):
            column = minimum(vector * lanes, width - lanes)
            with b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
                value = b.load(found, [row, column + lane])
                b.store(value, self._k.outputs[0], [self._image, channel, row, column + lane])


def _taps_on(line: int, rows: int, height: int, steps: Sequence[int]) -> Sequence[tuple[int, int]]:
    """Which rows of results have a tap on a row of the image, and which it is."""
    stride, dilation = steps
    distances = [(row, line - row * stride) for row in range(rows)]
    return [
        (row, distance // dilation)
        for row, distance in distances
        if distance % dilation == 0 and 0 <= distance // dilation < height
    ]


def vector_of_bytes(size: int) -> int:
    """Lanes of vectors that so many bytes are moved by, the last of which overlaps."""
    return min(1 << (size.bit_length() - 1), 2 * LINE)


def as_unsigned(b: KernelBuilder, op: ConvOp, byte: SSAValue) -> SSAValue:
    """A byte of the input without a sign: one with a sign as one that is larger by 128."""
    if is_unsigned(element_type(op.input)):
        return byte
    return b.add(arith.XOrIOp(byte, b.integer(-SIGN, i8)))


def zero_byte(k: KernelLowering, op: ConvOp, image: Expr) -> SSAValue:
    """What lies beside an image, without a sign: its zero point."""
    if not op.zero_points:
        return as_unsigned(k.builder, op, k.builder.integer(0, i8))
    none = Expr.const(0)
    zero = k.operand(op.zero_points[0], [image, none, none, none], dims_of(op.input))
    return as_unsigned(k.builder, op, zero)
