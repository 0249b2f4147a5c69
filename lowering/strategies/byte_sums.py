"""
Sums of products of bytes on processors without vectors: words of four bytes, widened to pairs.

A word takes one load, and two instructions widen it; what does not fill a word is one byte at a
time. Zero points are subtracted where bytes are widened, so padding is what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.vector import AddBytesOp, DotPairsOp
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ContractionOp, ConvOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    is_integer,
    is_unsigned,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.contraction import add_product, factor_element
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.taps import window_range
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.conv_sums import (
    OUTPUT_CHANNEL,
    POSITION,
    is_depthwise,
    is_in_line,
    place_of,
    spatial_labels,
    spatial_loops,
)
from lowerdeck.lowering.strategies.costs import tiles
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    is_constant,
    layout_in,
    position_of,
    the,
)
from lowerdeck.lowering.targets.base import Target

WORD: Exact[int] = 4
"""Bytes of a word."""
HALF: Exact[int] = 16
"""Bits of a half of a word."""
PAIRS = 2
"""Of halves, that a word is widened to."""

GROUP, BLOCK = "group", "block"
"""The labels of the loops over groups of channels, and over words of them."""


class ByteSums(Strategy):
    """
    Convolutions: words of adjacent input channels, where channels lie innermost, for tiles of
    positions by output channels. Depthwise ones: a word of channels at a time, one product each.
    """

    name = "byte_sums"
    anchors = (ConvOp,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(ConvOp, kernel)
        if not has_byte_sums(kernel, op, setting.target):
            return
        if is_depthwise(op):
            if _has_words(op, layout_in(kernel, op.input)):
                yield Candidate(1.0, Schedule(self.name))
            return
        shape, w = assumed_shape(op.result), assumed_shape(op.weight)
        labels = [label for label, _ in spatial_labels(dims_of(op.result)[2:])]
        space = [POSITION] if is_in_line(kernel, op) else labels
        width = prod(shape[2:]) if space == [POSITION] else shape[-1]
        # Windows at an edge have fewer taps than those beside them.
        is_even = op.pads_begin.data[-1] == 0 == op.pads_end.data[-1]
        sizes = (width if is_even else 1, w[0] // op.groups.data)
        words = prod(w[2:]) * -(-w[1] // WORD)
        rows = op.groups.data * prod(shape[:1] + shape[2:]) // max(sizes[0], 1)
        for tile in tiles_of_words(setting.target, sizes):
            order = ("n", *space, GROUP, OUTPUT_CHANNEL)
            names = (space[-1], OUTPUT_CHANNEL)
            schedule = Schedule(self.name, tuple(zip(names, tile, strict=True)), order)
            yield Candidate(rows * cycles_of_words(setting.target, sizes, tile, words), schedule)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(ConvOp, kernel)
        outputs, depth = (dims_of(op.weight)[axis].value or 0 for axis in (0, 1))
        taps = [Piece(axis) for axis in range(2, rank_of(op.weight))]
        if is_depthwise(op):
            return {op.weight: LayoutAttr.of([Piece(1), *taps, Piece(0)])}
        count = schedule.tile(OUTPUT_CHANNEL)
        if count == 1 or depth % WORD or outputs // op.groups.data % count:
            return {op.weight: LayoutAttr.of([Piece(0), *taps, Piece(1)])}
        pieces = [Piece(0, count), *taps, Piece(1, WORD), Piece(0, 1, count), Piece(1, 1, WORD)]
        return {op.weight: LayoutAttr.of(pieces)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(ConvOp, k.kernel)
        if is_depthwise(op):
            _lower_depthwise(k, op)
        else:
            _lower_sums(k, op, schedule)


def has_byte_sums(kernel: KernelOp, op: ConvOp, target: Target) -> bool:
    """
    True for a convolution of bytes with constant weights, of known channels and taps, whose zero
    points are the same for all terms of a sum, on a target that widens words.
    """
    if not target.isa.byte_additions or op.accumulator != i32 or not dims_of(op.input)[2:]:
        return False
    shape = static_shape(op.weight)
    if shape is None or not all(shape) or not is_constant(kernel, op.weight):
        return False
    is_read = all(value in kernel.body.block.args for value in op.factors)
    return is_read and all(_is_of_bytes(op, number) for number in range(2))


def tiles_of_words(target: Target, sizes: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """
    Positions by output channels whose sums registers hold, with the pairs of these positions and of
    one output channel, an address and a zero point of each factor, and the end of the loop. No
    output channels are left over: they would be code of their own.
    """
    registers = range(1, target.machine.registers)
    for positions, outputs in product(registers, registers):
        others = PAIRS * positions + PAIRS + 2 * 2 + 1
        is_small = positions * outputs + others <= target.machine.registers
        if is_small and positions <= max(sizes[0], 1) and sizes[1] % outputs == 0:
            yield positions, outputs


def cycles_of_words(
    target: Target, sizes: tuple[int, int], tile: tuple[int, int], words: int
) -> float:
    """Of as many sums: each word is loaded and widened for a tile."""
    parts = list(product(*(tiles(size, part) for size, part in zip(sizes, tile, strict=True))))
    cycles = target.costs.variant_cycles * len(parts)
    for (count, positions), (times, outputs) in parts:
        widened, products = (positions + outputs) * (1 + PAIRS), PAIRS * positions * outputs
        step = widened + products + target.machine.loop_cycles
        cycles += count * times * (words * step + target.costs.row_cycles)
    return cycles


def image_of_words(kernel: KernelOp, op: ConvOp, target: Target) -> int | None:
    """The position of the input whose channels such a convolution wants innermost; else None."""
    depth = dims_of(op.input)[1] if is_depthwise(op) else dims_of(op.weight)[1]
    is_long = (depth.value or 0) >= WORD
    return position_of(kernel, op.input) if is_long and has_byte_sums(kernel, op, target) else None


def is_byte(value: SSAValue) -> bool:
    """True for integers of 8 bits."""
    element = element_type(value)
    return is_integer(element) and bit_width(element) == HALF // PAIRS


def channels_last(rank: int) -> LayoutAttr:
    """NHWC, for tensors in NCHW."""
    return LayoutAttr.of([Piece(axis) for axis in (0, *range(2, rank), 1)])


def _is_of_bytes(op: ContractionOp, number: int) -> bool:
    """
    True if a factor and its zero point have 8 bits, and that is one, or one for each index of the
    first dimension.
    """
    values = [op.factors[number], *([op.zero_points[number]] if op.zero_points else [])]
    if not all(map(is_byte, values)):
        return False
    inner = dims_of(values[-1])
    inner = inner[1:] if len(inner) == rank_of(values[0]) else inner
    return len(values) == 1 or all(dim == 1 for dim in inner)


def _has_words(op: ConvOp, layout: LayoutAttr) -> bool:
    """True if there are words of channels of a group in an input that lies so."""
    if layout.is_padded or layout.data.winograd or layout.data.pieces[-1] != Piece(1):
        return False
    depth = dims_of(op.input)[1] if is_depthwise(op) else dims_of(op.weight)[1]
    return (depth.value or 0) >= WORD


def _lower_sums(k: KernelLowering, op: ConvOp, schedule: Schedule) -> None:
    """Each result is a sum over taps and channels."""
    dims = dims_of(op.result)
    depth, size = dims_of(op.weight)[1], dims[1] // op.groups.data
    groups = [(GROUP, Expr.const(op.groups.data)), (OUTPUT_CHANNEL, size)]
    with k.builder.labeled_nest(
        [("n", dims[0]), *spatial_loops(op, schedule), *groups], parallel=True
    ) as at:
        where = [at[0], at[-2] * size + at[-1], *place_of(op, at[1:-2])]
        k.finish(op, where, _sum(k, op, where, at[-2] * depth))


def _sum(k: KernelLowering, op: ConvOp, at: Index, first: Expr) -> SSAValue:
    """The bias and the products, words of channels before single ones."""
    b, depth = k.builder, dims_of(op.weight)[1].value
    assert depth is not None
    words = depth // WORD if _has_words(op, k.layout_of(op.input)) else 0

    def add_word(i: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        *taps, word = i
        x = pairs_of_word(k, op, 0, [at[0], first + word * WORD, *_where(op, at, taps)])
        w = pairs_of_word(k, op, 1, [at[1], word * WORD, *taps])
        return [with_pairs(k, x, w, values[0])]

    def add_one(i: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        *taps, channel = i
        x = factor_element(k, op, 0, [at[0], first + channel, *_where(op, at, taps)])
        return [add_product(k, op, x, factor_element(k, op, 1, [at[1], channel, *taps]), values[0])]

    total, bounds = _bias(k, op, at[1]), _bounds(op, at)
    for lower, upper, add in ((0, words, add_word), (words * WORD, depth, add_one)):
        if lower < upper:
            channels = (Expr.const(lower), Expr.const(upper))
            total = b.carry_nest([*bounds, channels], [total], add)[0]
    return total


def _lower_depthwise(k: KernelLowering, op: ConvOp) -> None:
    """Sums of a word of channels at a time, then those of single ones."""
    b, dims = k.builder, dims_of(op.result)
    channels = dims[1].value
    assert channels is not None
    words, rest = divmod(channels, WORD)
    outer = [("n", dims[0]), *spatial_labels(dims[2:])]
    with b.labeled_nest([*outer, (BLOCK, Expr.const(words))], parallel=True) as at:
        places = [[at[0], at[-1] * WORD + number, *at[1:-1]] for number in range(WORD)]
        for where, total in zip(places, _sums_of_word(k, op, places), strict=True):
            k.finish(op, where, total)
    if rest:
        with b.labeled_nest([*outer, (OUTPUT_CHANNEL, Expr.const(rest))], parallel=True) as at:
            where = [at[0], at[-1] + words * WORD, *at[1:-1]]

            def add_one(taps: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                x = factor_element(k, op, 0, [*where[:2], *_where(op, where, taps)])
                w = factor_element(k, op, 1, [where[1], Expr.const(0), *taps])
                return [add_product(k, op, x, w, values[0])]

            start = [_bias(k, op, where[1])]
            k.finish(op, where, b.carry_nest(_bounds(op, where), start, add_one)[0])


def _sums_of_word(k: KernelLowering, op: ConvOp, places: Sequence[Index]) -> Sequence[SSAValue]:
    """
    Of four adjacent channels: the even ones are the halves of one pair, the odd ones those of
    the other."""
    at = places[0]

    def add(taps: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        x = pairs_of_word(k, op, 0, [*at[:2], *_where(op, at, taps)])
        w = pairs_of_word(k, op, 1, [at[1], Expr.const(0), *taps])
        return [
            scalars.multiply_add(k.builder, half(k, x[odd]), half(k, w[odd]), value)
            for value, (half, odd) in zip(values, _HALVES, strict=True)
        ]

    return k.builder.carry_nest(_bounds(op, at), [_bias(k, op, where[1]) for where in places], add)


def _low(k: KernelLowering, pair: SSAValue) -> SSAValue:
    b = k.builder
    return b.add(arith.ExtSIOp(b.add(arith.TruncIOp(pair, i16)), i32))


def _high(k: KernelLowering, pair: SSAValue) -> SSAValue:
    return _low(k, k.builder.add(arith.ShRUIOp(pair, k.builder.integer(HALF, i32))))


_HALVES: Sequence[tuple[Callable[[KernelLowering, SSAValue], SSAValue], int]] = (
    (_low, 0),
    (_low, 1),
    (_high, 0),
    (_high, 1),
)
"""Where in the even and the odd pair the bytes of a word are, in order."""


def with_pairs(
    k: KernelLowering, x: Sequence[SSAValue], w: Sequence[SSAValue], total: SSAValue
) -> SSAValue:
    """A sum, and the products of the pairs of two words."""
    for left, right in zip(x, w, strict=True):
        total = k.builder.add(DotPairsOp(left, right, total))
    return total


def pairs_of_word(
    k: KernelLowering, op: ContractionOp, number: int, at: Index
) -> tuple[SSAValue, SSAValue]:
    """The even and the odd bytes of a word of a factor, without zero points, in 16 bits each."""
    b, value = k.builder, op.factors[number]
    word, base = b.load_word(k.inputs[value], at), _base(k, op, number, at)
    unsigned = is_unsigned(element_type(value))
    return (
        b.add(AddBytesOp(word, base, unsigned=unsigned)),
        b.add(AddBytesOp(word, base, odd=True, unsigned=unsigned)),
    )


_LOW, _BOTH = (1 << HALF) - 1, (1 << HALF) + 1
"""The bits of the lower half, and a one in each."""


def _base(k: KernelLowering, op: ContractionOp, number: int, at: Index) -> SSAValue:
    """The negative zero point of a factor in both halves."""
    b = k.builder
    if not op.zero_points:
        return b.integer(0, i32)
    zero = op.zero_points[number]
    known = constant_array(zero)
    if known is not None and known.size == 1:
        return b.integer((-int(known.reshape(())) & _LOW) * _BOTH, i32)
    element = k.operand(zero, at, dims_of(op.factors[number]))
    wide = scalars.cast(b, element, element_type(zero), i32)
    half = b.add(arith.AndIOp(b.add(arith.SubiOp(b.integer(0, i32), wide)), b.integer(_LOW, i32)))
    return b.add(arith.MuliOp(half, b.integer(_BOTH, i32)))


def _bias(k: KernelLowering, op: ConvOp, channel: Expr) -> SSAValue:
    return k.builder.integer(0, i32) if op.bias is None else k.element(op.bias, [channel])


def _bounds(op: ConvOp, at: Index) -> list[tuple[Expr, Expr]]:
    """The taps of a window that lie within the input."""
    x, w = dims_of(op.input)[2:], dims_of(op.weight)[2:]
    pads = zip(op.pads_begin.data, op.pads_end.data, strict=True)
    steps = zip(ints(op.strides), ints(op.dilations), strict=True)
    return [
        window_range(position, taps, size, stride, dilation, begin, end)
        for position, taps, size, (stride, dilation), (begin, end) in zip(
            at[2:], w, x, steps, pads, strict=True
        )
    ]


def _where(op: ConvOp, at: Index, taps: Sequence[Expr]) -> list[Expr]:
    """Where in the input a tap of the window of a result lies."""
    return [
        position * stride + tap * dilation - pad
        for position, stride, tap, dilation, pad in zip(
            at[2:], ints(op.strides), taps, ints(op.dilations), op.pads_begin.data, strict=True
        )
    ]
