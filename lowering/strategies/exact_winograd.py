"""
Convolutions of bytes by Winograd's algorithm in integers: the same sums, from a fourth of the
products, which are those of pairs of 16 bits.

The matrices are integers (`exact_matrices`), so that each output comes out as a multiple of the
sum. All is computed modulo 2^32. The odd factor of the multiple goes by its inverse, the power of
two by a shift, and what is left of 32 bits has to hold the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, product
from math import prod

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.buffer.kernel import WORD_BYTES
from lowerdeck.dialects.buffer.vector import DotPairsOp
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.control_flow import KernelOp, yielded
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, is_unsigned, rank_of, static_shape
from lowerdeck.dialects.core.winograd import exact_matrices, exact_taps
from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.contraction import added_to
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.byte_sums import is_byte
from lowerdeck.lowering.strategies.costs import least
from lowerdeck.lowering.strategies.depthwise_words import (
    COLUMNS,
    LINE,
    as_unsigned,
    lanes_of_rows,
    vector_of_bytes,
    zero_byte,
)
from lowerdeck.lowering.strategies.facts import layout_in, layout_out, position_of, the
from lowerdeck.lowering.strategies.line_sums import is_finished_alike
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN, for_elements, product_tiles
from lowerdeck.lowering.strategies.winograd import WINDOW, slab
from lowerdeck.lowering.strategies.winograd_transforms import transform
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target

ROW = "m"
"""The label of the loop over output channels in the products; that over tiles is `n`."""

GROUP, BLOCK, VECTOR, PARTS = "group", "block", "vector", "parts"
"""
Parameters of a schedule: rows of tiles that are transformed at a time, output channels whose
products are transformed back before the next ones, the lanes of transforms, and the parts for
threads: of the groups, or, if there is one group, of the channels.
"""

SIZE: Exact[int] = 4
"""Outputs of a tile, in rows and columns."""

WORD_BITS: Exact[int] = 32
"""Of sums."""

HALF_BITS: Exact[int] = 16
"""Of each number of a pair."""

_LINE: Exact[int] = 16
"""Elements of 32 bits in a cache line, for the layout of the memory between the steps."""

BYTE_BITS: Exact[int] = 8
"""Of inputs."""

LARGEST_BYTE: Exact[int] = 255
"""Without a sign."""


@record
class Geometry:
    """The sizes of a convolution in tiles."""

    images: int
    filters: int
    pairs: int
    """Of input channels."""
    rows: int
    columns: int
    """Of tiles in an image."""
    lanes: int
    """Tiles of a row that are transformed at a time."""

    @staticmethod
    def of(op: ConvOp, target: Target) -> Geometry | None:
        """None where sizes are not known."""
        shape, weight = static_shape(op.result), static_shape(op.weight)
        if shape is None or weight is None:
            return None
        rows, columns = (-(-size // SIZE) for size in shape[2:])
        pairs = -(-weight[1] // 2)
        lanes = lanes_of_rows(columns, target)
        return Geometry(shape[0], shape[1], pairs, rows, columns, lanes)

    @property
    def vectors(self) -> int:
        """Vectors of tiles of a row."""
        return -(-self.columns // self.lanes)


def pitch_of(tiles: int, lanes: int) -> int:
    """
    Elements from the tiles of a channel to those of the next: an odd number of cache lines, because
    lines whose distance is a power of two would conflict, as far as vectors reach.
    """
    return (-(-(tiles + lanes) // _LINE) | 1) * _LINE


VALUES = SIZE + WINDOW[0] - 1
"""Rows and columns of a transformed tile."""


class ExactWinograd(Strategy):
    """
    F(4 x 4, 3 x 3) of row-major images of bytes, a group of rows of tiles after the other. The
    lanes are tiles. Two channels share an i32: their transforms are computed at once, as the number
    that is the sum of one and 2^16 times the other.
    """

    name = "exact_winograd"
    anchors = (ConvOp,)
    parameters = (GROUP, BLOCK, VECTOR, PARTS)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        if not has_exact_tiles(op, setting.target) or not is_exact(op, kernel):
            return
        if any(position_of(kernel, value) is None for value in op.factors):
            return
        layouts = (layout_in(kernel, op.input), layout_out(kernel))
        if not all(layout.is_row_major for layout in layouts):
            return
        if is_finished_alike(yielded(kernel.body), op):
            ahead = position_of(kernel, op.weight)
            for cycles, schedule in plans(op, setting):
                yield Candidate(cycles, replace(schedule, prefetch=ahead))

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        weight, height = the(ConvOp, kernel).weight, schedule.tile(ROW)
        outer = [Piece(2), Piece(COLUMNS), Piece(0, height), Piece(1, 2)]
        pieces = [*outer, *([Piece(0, 1, height)] if height > 1 else []), Piece(1, 1, 2)]
        return {weight: LayoutAttr.of(pieces, winograd=SIZE, exact=True)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        _Tiles(k, the(ConvOp, k.kernel), schedule).lower()


def has_exact_tiles(op: ConvOp, target: Target) -> bool:
    """
    True for a convolution of images of bytes of known sizes by bytes with signs and without zero
    points, 3 x 3 of them and with steps of 1, with one zero point or none, on a target that
    multiplies as many bytes at a time as numbers of 16 bits twice over.
    """
    lanes = target.lanes_of(i32)
    if lanes == 1 or not (target.isa.quads and target.isa.pairs) or target.isa.tiles is not None:
        return False
    if op.accumulator != i32 or rank_of(op.input) != 2 + 2 or op.groups.data != 1:
        return False
    shape, weight = static_shape(op.result), static_shape(op.weight)
    if shape is None or static_shape(op.input) is None or weight is None or 0 in (*shape, *weight):
        return False
    if weight[2:] != WINDOW or {*ints(op.strides), *ints(op.dilations)} != {1}:
        return False
    if constants([*op.pads_begin.data, *op.pads_end.data]) is None:
        return False
    if not all(map(is_byte, op.factors)) or is_unsigned(element_type(op.weight)):
        return False
    if op.zero_points and any(dim != 1 for dim in dims_of(op.zero_points[0])):
        return False
    return min(shape[2:]) >= SIZE


def is_exact(op: ConvOp, kernel: KernelOp | None = None) -> bool:
    """True if the numbers of bits are enough for the weights, which have to be known."""

    def known(value: SSAValue) -> np.ndarray | None:
        if kernel is not None and isinstance(value.owner, Block):
            value = kernel.inputs[kernel.body.block.args.index(value)]
        try:
            return constant_array(value)
        except ElidedBlobError:
            return None  # nothing is compiled

    weight = known(op.weight)
    if weight is None:
        return False
    limits, low, high = np.iinfo(np.int8), -LARGEST_BYTE, LARGEST_BYTE
    if op.zero_points:
        zeros = [known(value) for value in op.zero_points]
        if zeros[1] is None or zeros[1].any():
            return False
        if zeros[0] is not None:
            limits = np.iinfo(zeros[0].dtype)
            low, high = (int(end) - int(zeros[0].reshape(())) for end in (limits.min, limits.max))
    elif is_unsigned(element_type(op.input)):
        low = 0
    else:
        low, high = int(limits.min), int(limits.max)
    low, high = min(low, 0), max(high, 0)
    exact = exact_matrices(SIZE, WINDOW[0])
    # The sums of products of the largest positive and negative inputs.
    rows = np.array(exact.matrices.inputs, np.int64)
    inputs = np.einsum("ik,jl->ijkl", rows, rows).reshape(VALUES**2, -1)
    bits = max((factors_of_two(multiple) for multiple in exact.multiples), default=0)
    most = 1 << (WORD_BITS - 2 * bits - 1)
    if _largest(inputs, low, high) >= 1 << (HALF_BITS - 1):
        return False
    if _largest(weight.astype(np.int64).reshape(len(weight), -1), low, high) >= most:
        return False
    return int(np.abs(exact_taps(weight, SIZE)).max()) < 1 << (HALF_BITS - 1)


def factors_of_two(number: int) -> int:
    """How often 2 divides a number."""
    return (number & -number).bit_length() - 1


def _largest(factors: np.ndarray, low: int, high: int) -> int:
    """The largest magnitude of sums of numbers from a range that includes 0, by rows of factors."""
    positive, negative = np.maximum(factors, 0).sum(-1), np.maximum(-factors, 0).sum(-1)
    sums = [positive * high - negative * low, negative * high - positive * low]
    return int(np.max(sums))


def saves_products(op: ConvOp, target: Target) -> bool:
    """True if the estimate is lower than that of all products."""
    shape, weight = static_shape(op.result), static_shape(op.weight)
    assert shape is not None
    assert weight is not None
    setting = Setting(target)
    scaled = for_elements(target, i32, i32)
    words = -(-weight[1] // WORD_BYTES) * prod(WINDOW)
    plain, _ = least(product_tiles(scaled, shape[1], prod(shape[2:]), words))
    own = [cycles for cycles, _ in plans(op, setting)]
    return bool(own) and min(own) < shape[0] * plain


def plans(op: ConvOp, setting: Setting) -> Iterator[tuple[float, Schedule]]:
    """
    Ways to divide tiles and channels: products with a part of the channels are to stay in the L2
    cache; of transformed inputs that do not, each part brings what is missing again.
    """
    target, threads = setting.target, setting.threads
    machine, g = target.machine, Geometry.of(op, target)
    assert g is not None
    scaled = for_elements(target, i32, i32)
    values = VALUES**2
    weight_bytes = values * g.filters * g.pairs * WORD_BYTES
    for group in (size for size in range(1, g.rows + 1) if g.rows % size == 0):
        row_bytes = values * pitch_of(group * g.columns, g.lanes) * WORD_BYTES
        columns = -(-group * g.columns // FEWEST_LANES) * FEWEST_LANES
        groups = g.images * g.rows // group
        turns, shares = -(-groups // threads), threads if groups == 1 else 1
        transforms = turns * group * _cycles_to_transform(g, group, target) / shares
        # What is larger is read once.
        order = (ROW, COLUMN) if g.filters > columns else (COLUMN, ROW)
        for cycles, (height, count) in product_tiles(scaled, g.filters, columns, g.pairs):
            tiles, most = -(-g.filters // height), machine.l2_bytes // 2 // (height * row_bytes)
            # Of the busiest thread.
            own = -(-tiles // shares)
            even = (n for n in range(1, own + 1) if tiles % n == own % n == 0)
            block = max(n for n in even if n <= max(most, 1))
            missing = max((g.pairs + block * height) * row_bytes - machine.l2_bytes, 0)
            brought = own // block * missing / machine.shared_bytes_per_cycle
            products = values * cycles * own / tiles + brought
            # The first group reads weights from memory, the others from the cache that cores share.
            first = max(products, weight_bytes / machine.memory_bytes_per_cycle)
            again = max(products, weight_bytes / machine.shared_bytes_per_cycle)
            sizes = ((GROUP, group), (BLOCK, block * height), (VECTOR, g.lanes), (PARTS, threads))
            yield (
                first + (turns - 1) * again + transforms,
                Schedule(
                    ExactWinograd.name,
                    ((ROW, height), (COLUMN, count)),
                    ("v0", "v1", *order),
                    ((COLUMN, scaled.lanes),),
                    parameters=sizes,
                ),
            )


class _Tiles:
    """The loops over all tiles."""

    def __init__(self, k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
        self._k, self._b, self._op = k, k.builder, op
        self._exact = exact_matrices(SIZE, WINDOW[0])
        self._group, self._block = schedule.parameter(GROUP), schedule.parameter(BLOCK)
        self._lanes, self._parts = schedule.parameter(VECTOR), schedule.parameter(PARTS)
        _, self._filters, self._height, self._width = (d.value or 0 for d in dims_of(op.result))
        self._channels = dims_of(op.weight)[1].value or 0
        self._pairs = -(-self._channels // 2)
        self._rows, self._columns = (-(-n // SIZE) for n in (self._height, self._width))
        self._vectors = -(-self._columns // self._lanes)
        self._is_signed = not is_unsigned(element_type(op.input))
        self._last: Operation = op
        self._added: SSAValue | None = None
        if (found := added_to(op)) is not None:
            self._last, self._added = found
        self._pitch = pitch_of(self._group * self._columns, self._lanes)
        self._groups = dims_of(op.result)[0] * (self._rows // self._group)
        self._shares_channels = self._parts > 1 and self._groups == 1
        counts = [1 if self._shares_channels else self._parts, self._parts]
        sizes = [slab(count, self._pitch, 1) for count in (self._pairs, self._block)]
        workspace = [
            k.scratch(i32, [count, VALUES**2, size])
            for count, size in zip(counts, sizes, strict=True)
        ]
        self._inputs, self._sums = workspace

    def lower(self) -> None:
        """
        Each part of the groups has its own workspace, so that threads can share them. Of a single
        group threads share the channels, first those of inputs, then those of outputs.
        """
        b, each, none = self._b, self._rows // self._group, Expr.const(0)
        if self._shares_channels:
            with b.nest([self._parts], parallel=True) as (part,):
                self._transform_inputs(none, none, none, self._share(part, self._pairs))
            with b.nest([self._parts], parallel=True) as (part,):
                self._compute(part, none, (none, none), self._share(part, self._blocks))
            return
        with b.nest([self._parts], parallel=True) as (part,):
            first, last = self._share(part, self._groups)
            with b.loop(last, first) as number:
                image = b.computed(number // each)
                top = b.computed(number % each * self._group)
                self._transform_inputs(part, image, top, (none, Expr.const(self._pairs)))
                self._compute(part, part, (image, top), (none, Expr.const(self._blocks)))

    @property
    def _blocks(self) -> int:
        return -(-self._filters // self._block)

    def _share(self, part: Expr, count: Expr | int) -> tuple[Expr, Expr]:
        """The range of a part."""
        return part * count // self._parts, (part + 1) * count // self._parts

    def _compute(
        self, part: Expr, inputs: Expr, at: tuple[Expr, Expr], blocks: tuple[Expr, Expr]
    ) -> None:
        """Some blocks of channels of a group, from inputs in their place of the workspace."""
        (image, top), (first, last) = at, blocks
        with self._b.loop(last, first) as block:
            channel = block * self._block
            self._multiply(part, inputs, channel)
            self._transform_sums(part, image, top, channel)

    def _transform_inputs(
        self, part: Expr, image: Expr, top: Expr, pairs: tuple[Expr, Expr]
    ) -> None:
        """Pairs of channels: their rows under a group of tiles, with padding, are copied first."""
        b, op = self._b, self._op
        height, width = (dim.value or 0 for dim in dims_of(op.input)[2:])
        above, before = (pad.value or 0 for pad in op.pads_begin.data)
        lines = self._group * SIZE + VALUES - SIZE
        last = max(self._columns - self._lanes, 0) if self._vectors > 1 else 0
        reach = max((last + self._lanes) * SIZE + WORD_BYTES, before + width)
        pitch = -(-reach // LINE) * LINE
        copy = b.scratch(i8, [2, lines, pitch])
        zero = zero_byte(self._k, op, image)
        with b.nest([2, lines, pitch // LINE]) as (half, line, number):
            with b.loop(LINE, mode="lanes") as lane:
                b.store(zero, copy, [half, line, number * LINE + lane])
        first = b.computed(maximum(above - top * SIZE, 0))
        end = b.computed(minimum(height + above - top * SIZE, lines))
        lanes = vector_of_bytes(width)
        shift = self._shift(zero)
        with b.loop(pairs[1], pairs[0]) as pair:
            for half in range(2):
                channel = minimum(pair * 2 + half, self._channels - 1)
                with b.loop(end, first) as line, b.nest([-(-width // lanes)]) as (number,):
                    column = minimum(number * lanes, width - lanes)
                    with b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
                        at = [image, channel, top * SIZE + line - above, column + lane]
                        value = as_unsigned(b, op, self._k.element(op.input, at))
                        b.store(value, copy, [half, line, column + lane + before])
            with b.nest([self._group, self._vectors]) as (row, vector):
                column = minimum(vector * self._lanes, last)
                with b.loop(self._lanes, mode="lanes") as lane:
                    place = (row * SIZE, (column + lane) * SIZE)
                    words = [self._words(copy, i, place) for i in range(VALUES)]
                    tile = [list(_pairs(b, line)) for line in words]
                    to = row * self._columns + column + lane
                    found = transform(b, self._exact.matrices.inputs, tile)
                    for number in range(VALUES**2):
                        value = found[number // VALUES][number % VALUES]
                        if (times := self._times_zero(number)) and shift is not None:
                            part_of = b.add(arith.MuliOp(shift, b.integer(times, i32)))
                            value = scalars.sub(b, value, part_of)
                        at = [part, number, pair * self._pitch + to]
                        b.store(_as_pair(b, value), self._inputs, at)

    def _times_zero(self, number: int) -> int:
        """How many times a transformed value has what is added to all inputs."""
        sums = [int(sum(row)) for row in self._exact.matrices.inputs]
        return sums[number // VALUES] * sums[number % VALUES]

    def _words(
        self, copy: SSAValue, line: int, place: tuple[Expr, Expr]
    ) -> list[tuple[SSAValue, SSAValue]]:
        """The bytes of a line of a tile, of each of two channels."""
        row, column = place
        at = [
            [[half, row + line, column + first] for half in range(2)]
            for first in range(0, VALUES, WORD_BYTES)
        ]
        return [(self._b.load_word(copy, low), self._b.load_word(copy, high)) for low, high in at]

    def _shift(self, zero: SSAValue) -> SSAValue | None:
        """A pair of zero points; None if they are 0."""
        if not self._op.zero_points and not self._is_signed:
            return None
        b = self._b
        wide = b.add(arith.ExtUIOp(zero, i32))
        return b.add(arith.MuliOp(wide, b.integer((1 << HALF_BITS) + 1, i32)))

    def _multiply(self, part: Expr, transformed: Expr, first: Expr) -> None:
        b, weight = self._b, self._k.inputs[self._op.weight]
        columns = -(-self._group * self._columns // FEWEST_LANES) * FEWEST_LANES
        sizes = [("v0", VALUES), ("v1", VALUES), (ROW, self._block), (COLUMN, columns)]
        with b.labeled_nest(sizes) as (i, j, row, column):
            number = i * VALUES + j

            def add_pair(pair: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                factor = b.load_word(weight, [first + row, pair * 2, i, j])
                at = [transformed, number, pair * self._pitch + column]
                inputs = b.load(self._inputs, at)
                return [b.add(DotPairsOp(factor, inputs, values[0]))]

            (total,) = b.carry(self._pairs, [b.integer(0, i32)], add_pair)
            b.store(total, self._sums, [part, number, row * self._pitch + column])

    def _transform_sums(self, part: Expr, image: Expr, top: Expr, first: Expr) -> None:
        """The outputs of some channels, in a buffer from which they are moved to their places."""
        b, element = self._b, element_type(self._k.roots[0])
        width = self._vectors * self._lanes * SIZE
        # Behind the last channel products with zeros fill a tile.
        with b.loop(minimum(self._filters - first, self._block)) as row:
            channel = first + row
            starts = self._starts(image, channel)
            with b.nest([self._group]) as (down,):
                found = b.scratch(element, [SIZE, width])
                last = max(self._columns - self._lanes, 0) if self._vectors > 1 else 0
                with b.nest([self._vectors]) as (vector,):
                    column = minimum(vector * self._lanes, last)
                    squares = [b.scratch(element, [SIZE, self._lanes]) for _ in range(SIZE)]
                    with b.loop(self._lanes, mode="lanes") as lane:
                        tile = row * self._pitch + down * self._columns + column + lane
                        sums = [b.load(self._sums, [part, n, tile]) for n in range(VALUES**2)]
                        sums = [sums[i * VALUES :][:VALUES] for i in range(VALUES)]
                        outputs = transform(b, self._exact.matrices.outputs, sums)
                        for i in range(SIZE):
                            for j in range(SIZE):
                                total = _total(b, outputs[i][j], (i, j), starts)
                                at = [
                                    image,
                                    channel,
                                    (top + down) * SIZE + i,
                                    (column + lane) * SIZE + j,
                                ]
                                value = self._k.finished(self._last, at, total)
                                b.store(value, squares[i], [j, lane])
                    for i, square in enumerate(squares):
                        b.transpose(square)
                        with (
                            b.loop(SIZE, mode="unroll") as number,
                            b.loop(self._lanes, mode="lanes") as lane,
                        ):
                            value = b.load(square, [number, lane])
                            at = column * SIZE + number * self._lanes + lane
                            b.store(value, found, [i, at])
                self._move(found, image, channel, top + down)

    def _starts(self, image: Expr, channel: Expr) -> dict[int, SSAValue]:
        """
        What is added to sums that a shift makes of multiples, by the bits that it drops: the bias,
        less what keeps them from being negative.
        """
        b, op = self._b, self._op
        start = b.integer(0, i32)
        if op.bias is not None:
            start = self._k.element(op.bias, [channel])
        if self._added is not None:
            none = Expr.const(0)
            value = self._k.operand(self._added, [image, channel, none, none], dims_of(op.result))
            start = scalars.add(b, start, value)
        twos = [factors_of_two(multiple) for multiple in self._exact.multiples]
        return {
            bits: scalars.sub(b, start, b.integer(1 << (WORD_BITS - 1 - bits), i32))
            for bits in sorted({x + y for x in twos for y in twos})
        }

    def _move(self, found: SSAValue, image: Expr, channel: Expr, row: Expr) -> None:
        """Those of a row of tiles that lie in the image."""
        b, lanes = self._b, vector_of_bytes(self._width)
        lines = b.computed(minimum(self._height - row * SIZE, SIZE))
        with b.nest([lines, -(-self._width // lanes)]) as (line, number):
            column = minimum(number * lanes, self._width - lanes)
            with b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
                value = b.load(found, [line, column + lane])
                at = [image, channel, row * SIZE + line, column + lane]
                b.store(value, self._k.outputs[0], at)


def _pairs(b: KernelBuilder, words: Sequence[tuple[SSAValue, SSAValue]]) -> Iterator[SSAValue]:
    """The values of a line of a tile, of two channels each."""
    mask, half = b.integer(LARGEST_BYTE, i32), b.integer(HALF_BITS, i32)
    for number in range(VALUES):
        found, byte = words[number // WORD_BYTES], number % WORD_BYTES
        if byte:
            bits = b.integer(byte * BYTE_BITS, i32)
            found = [b.add(arith.ShRUIOp(word, bits)) for word in found]
        if byte < WORD_BYTES - 1:
            found = [b.add(arith.AndIOp(word, mask)) for word in found]
        low, high = found
        yield b.add(arith.OrIOp(low, b.add(arith.ShLIOp(high, half))))


def _as_pair(b: KernelBuilder, value: SSAValue) -> SSAValue:
    """The two numbers of 16 bits of which a value is one and 2^16 times the other."""
    sign = b.integer(1 << (HALF_BITS - 1), i32)
    return b.add(arith.XOrIOp(scalars.add(b, value, sign), sign))


def _total(
    b: KernelBuilder, value: SSAValue, place: tuple[int, int], starts: Mapping[int, SSAValue]
) -> SSAValue:
    """The sum of which a value is a multiple modulo 2^32, on top of what it starts with."""
    times = prod(exact_matrices(SIZE, WINDOW[0]).multiples[k] for k in place)
    bits = factors_of_two(times)
    inverse = b.integer(pow(times >> bits, -1, 1 << WORD_BITS), i32)
    half = b.integer(1 << (WORD_BITS - 1), i32)
    value = scalars.add(b, scalars.mul(b, value, inverse), half)
    value = b.add(arith.ShRUIOp(value, b.integer(bits, i32)))
    return scalars.add(b, value, starts[bits])


@cache
def _operations() -> tuple[int, int]:
    """Of the transforms of a tile of inputs, and of sums."""
    exact = exact_matrices(SIZE, WINDOW[0])
    twos = [factors_of_two(multiple) for multiple in exact.multiples]
    before, behind = Block(), Block()
    b = KernelBuilder(before)
    word = b.integer(0, i32)
    words = [(word, word) for _ in range(0, VALUES, WORD_BYTES)]
    tile = [list(_pairs(b, words)) for _ in range(VALUES)]
    for value in chain(*transform(b, exact.matrices.inputs, tile)):
        _as_pair(b, value)
    b = KernelBuilder(behind)
    word = b.integer(0, i32)
    tile = transform(b, exact.matrices.outputs, [[word] * VALUES] * VALUES)
    starts = {x + y: word for x in twos for y in twos}
    for i, j in product(range(SIZE), repeat=2):
        _total(b, tile[i][j], (i, j), starts)
    first, last = (
        sum(not isinstance(op, arith.ConstantOp) for op in block.ops) for block in (before, behind)
    )
    return first, last


def _cycles_to_transform(g: Geometry, group: int, target: Target) -> float:
    """
    Of all channels of a row of tiles: the operations, what is loaded and stored, and, of inputs,
    the copies of lines.
    """
    machine, (first, last) = target.machine, _operations()
    bytes_ = max(g.lanes * WORD_BYTES, machine.unit_bytes)
    moved = VALUES**2 * (1 / machine.stores_per_cycle + 1 / machine.loads_per_cycle)
    each = g.pairs * first + g.filters * last
    cycles = each / machine.operations_per_cycle + (g.pairs + g.filters) * moved
    lines = 2 * g.pairs * (group * SIZE + VALUES - SIZE) / group
    line = -(-g.columns * SIZE // target.vector_bytes)
    copied = lines * line * (1 / machine.stores_per_cycle + 1 / machine.loads_per_cycle)
    return g.vectors * cycles * bytes_ / target.vector_bytes + copied
