"""Products of one row with a matrix of numbers of four bits: sums of products of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.kernel import WORD_BYTES
from lowerdeck.dialects.buffer.vector import DotSmallQuadsOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.quantize import MIDDLE, DequantizeOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, static_shape
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.maps import scale_of
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.costs import are_shared
from lowerdeck.lowering.strategies.facts import (
    in_blocks,
    is_constant,
    is_of,
    layout_in,
    layout_out,
    position_of,
    the,
)
from lowerdeck.lowering.strategies.streamed_matmul import CHUNK, PARTS_OF_A_THREAD
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN
from lowerdeck.lowering.targets.base import Target

PAIR: Exact[int] = 2
"""Numbers of four bits in a byte."""

RUN: Exact[int] = PAIR * WORD_BYTES
"""Numbers of four bits in a word."""

DIGITS: Exact[int] = 3
"""Bytes of a number that stands for an element of the row; the last one has a sign."""

LONGEST_BLOCK: Exact[int] = 256
"""Of weights that share a scale: the larger the largest number, the less is left of the others."""

_BYTE: Exact[int] = 8
"""Its bits."""

_CODE: Exact[int] = 4
"""The bits of a number of which a byte holds two."""

_CODES: Exact[int] = 0x0F0F0F0F
"""The lower codes of the bytes of a word."""

_ONES: Exact[int] = 0x01010101
"""Ones in the bytes of a word."""

_MAGNITUDE: Exact[int] = 0x7FFFFFFF
"""All bits of an f32 but its sign: of what is not negative, integers have the order of numbers."""

_FRACTION: Exact[int] = 23
"""Bits of the fraction of an f32, which lies below the exponent."""

_EXPONENTS: Exact[int] = 255
"""The exponent of infinities and NaN; those of a number and of its reciprocal add up to 254."""

_SHIFT: Exact[float] = float(1 << 21)
"""A row is scaled to less than 4 by a power of two, then by this one to 23 bits and a sign."""

_LARGEST: Exact[int] = (1 << _FRACTION) - 1
"""Of the integers that stand for a row; rounding gives one more."""


class CodeProducts(Strategy):
    """
    Elements of the row become integers of 24 bits, of one scale for each block of weights, the
    power of two that the largest one needs. Their bytes are multiplied by codes, four by four, in
    sums that are exact; the codes less their zero point, that is, since the sums begin with that.
    An integer is off by half, 2^-24 of the largest element, which sums in f32 lose, too: their
    codes are as far from the zero point.
    """

    name = "code_products"
    anchors = (MatmulOp,)
    parameters = (CHUNK,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        weight = in_blocks(op.rhs)
        if weight is None or not _is_for(kernel, op, weight, target):
            return
        columns, depth = dims_of(op.result)[-1].value or 0, weight.size.data
        machine, position = target.machine, position_of(kernel, op.rhs)
        each = 1 if target.lanes in target.isa.quads else DIGITS
        row = depth * target.costs.element_cycles
        # In registers there are sums, their total, words of the row, of codes, and a mask.
        most = (machine.registers - PAIR * (DIGITS + 2)) // (DIGITS + 1)
        for count in range(max(min(most, columns // target.lanes), 1), 0, -1):
            products, others = PAIR * DIGITS * count * each, DIGITS * count
            step = max(
                products / machine.multiply_adds_per_cycle,
                (products + others) / machine.operations_per_cycle,
                (PAIR * DIGITS + count) / machine.loads_per_cycle,
                PAIR * machine.latency_cycles,
            )
            steps = depth // RUN + 2 * (depth // weight.block.data)
            cycles = -(-columns // (count * target.lanes)) * steps * step + row
            chunk = _chunk(columns, count * target.lanes, cycles, setting)
            yield Candidate(
                cycles,
                Schedule(
                    self.name,
                    ((COLUMN, count),),
                    (COLUMN,),
                    ((COLUMN, target.lanes),),
                    position,
                    parameters=((CHUNK, chunk),),
                ),
            )

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        weight = in_blocks(op.rhs)
        assert weight is not None
        width = schedule.vector(COLUMN) * schedule.tile(COLUMN)
        panel, column = Piece(1, width), Piece(1, 1, width)
        words = weight.block.data // RUN
        # A word has bytes that lie apart, so that words of the row are made of vectors of it.
        inner = [Piece(0, 1, words), column, Piece(0, words, WORD_BYTES)]
        codes = LayoutAttr.of([panel, Piece(0, WORD_BYTES * words), *inner])
        others = [weight.scale, *([] if weight.zero is None else [weight.zero])]
        plain = LayoutAttr.of([panel, Piece(0), column])
        return {weight.codes: codes, **dict.fromkeys(others, plain)}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op, b = the(MatmulOp, k.kernel), k.builder
        columns, chunk = dims_of(op.result)[-1].value or 0, schedule.parameter(CHUNK)
        whole = columns // chunk * chunk
        for first, count, size in ((0, whole // chunk, chunk), (whole, 1, columns - whole)):
            if not count or not size:
                continue
            with b.labeled_nest([("chunk", count)], parallel=True) as (number,):
                row = _Row(k, op, schedule.vector(COLUMN))
                with b.labeled_nest([(COLUMN, size)], parallel=True) as (column,):
                    at = [Expr.const(0)] * (len(dims_of(op.result)) - 1)
                    place = [*at, number * chunk + first + column]
                    k.finish(op, place, row.product(place[-1]))


def _is_for(kernel: KernelOp, op: MatmulOp, weight: DequantizeOp, target: Target) -> bool:
    """
    True for one row and constant weights in blocks along it that words divide, on a target that
    multiplies four bytes at a time.
    """
    isa, shape = target.isa, static_shape(op.result)
    if target.lanes not in isa.quads and target.lanes not in isa.small_quads:
        return False
    if shape is None or any(size != 1 for size in shape[:-1]) or shape[-1] < target.lanes:
        return False
    depth, block = weight.size.data, weight.block.data
    is_even = depth % block == 0 and block % (RUN * PAIR) == 0 and block <= LONGEST_BLOCK
    if not is_even or weight.axis.data != 0 or depth * DIGITS > target.limits.stack_bytes:
        return False
    if not is_of(op, f32) or not (layout_out(kernel).is_row_major):
        return False
    constants = [op.rhs, *weight.operands[1:]]
    return layout_in(kernel, op.lhs).is_row_major and all(
        is_constant(kernel, value) for value in constants
    )


def _chunk(columns: int, width: int, cycles: float, setting: Setting) -> int:
    """The columns for which the row is made integers once: so many that threads get equal work."""
    panels, threads = -(-columns // width), setting.threads
    if not are_shared(cycles, setting):
        return panels * width
    most = PARTS_OF_A_THREAD * threads
    even = (parts for parts in range(most, 0, -threads) if panels % parts == 0)
    return -(-panels // next(even, most)) * width


class _Row:
    """A row as integers: the words of each block, what sums begin with, and scales."""

    def __init__(self, k: KernelLowering, op: MatmulOp, lanes: int) -> None:
        weight = in_blocks(op.rhs)
        assert weight is not None
        self._k, self._op, self._weight = k, op, weight
        b, self._block = k.builder, weight.block.data
        self._lanes = gcd(self._block // WORD_BYTES, lanes)
        blocks = weight.size.data // self._block
        self._words = b.scratch(i32, [blocks, DIGITS, self._block // WORD_BYTES])
        self._starts = b.scratch(i32, [blocks, DIGITS])
        self._scales = b.scratch(f32, [blocks])
        with b.loop(blocks) as block:
            self._make(block)

    def _elements(self, block: Expr, lane: Expr) -> list[SSAValue]:
        """Those whose bytes are in one word."""
        apart = self._block // WORD_BYTES
        none = [Expr.const(0)] * (len(dims_of(self._op.lhs)) - 1)
        first = block * self._block + lane
        places = [first + number * apart for number in range(WORD_BYTES)]
        return [self._k.element(self._op.lhs, [*none, place]) for place in places]

    def _make(self, block: Expr) -> None:
        """The words of a block."""
        b, words, lanes = self._k.builder, self._block // WORD_BYTES, self._lanes
        mask = b.integer(_MAGNITUDE, i32)

        def largest(lane: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            elements = [
                b.add(arith.AndIOp(b.add(arith.BitcastOp(x, i32)), mask))
                for first in range(0, words, lanes)
                for x in self._elements(block, lane + first)
            ]
            return [b.add(arith.MaxSIOp(values[0], reduce(self._larger, elements)))]

        none = b.integer(0, i32)
        bits = b.carry(lanes, [none], largest, mode="lanes")[0]
        exponent = b.add(arith.ShRUIOp(bits, b.integer(_FRACTION, i32)))
        exponent = b.add(arith.MaxSIOp(exponent, b.integer(2, i32)))
        limit = b.integer(_EXPONENTS, i32)
        is_finite = b.add(arith.CmpiOp(exponent, limit, "slt"))
        scale = self._power(b.add(arith.SubiOp(limit, exponent)))
        back = self._power(b.add(arith.SubiOp(exponent, b.integer(1, i32))))
        wrong = b.add(arith.BitcastOp(bits, f32))
        wrong = b.add(arith.SubfOp(wrong, wrong))
        b.store(b.add(arith.SelectOp(is_finite, back, wrong)), self._scales, [block])

        def add_words(lane: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            sums = [none] * DIGITS
            for first in range(0, words, lanes):
                whole: list[SSAValue] = []
                for x in self._elements(block, lane + first):
                    x = b.add(arith.MulfOp(x, scale))
                    x = b.add(arith.MulfOp(x, b.floating(_SHIFT, f32)))
                    x = b.add(arith.FPToSIOp(b.add(math.RoundEvenOp(x)), i32))
                    whole.append(b.add(arith.MinSIOp(x, b.integer(_LARGEST, i32))))
                for digit in range(DIGITS):
                    word = self._word(whole, digit)
                    b.store(word, self._words, [block, digit, lane + first])
                    ones = b.integer(_ONES, i32)
                    sums[digit] = _added(b, word, ones, digit, sums[digit])
            return [b.add(arith.AddiOp(*each)) for each in zip(values, sums, strict=True)]

        sums = b.carry(lanes, [none] * DIGITS, add_words, mode="lanes")
        factor = b.integer(-MIDDLE if self._weight.zero is None else -1, i32)
        for digit, total in enumerate(sums):
            b.store(b.add(arith.MuliOp(total, factor)), self._starts, [block, digit])

    def _larger(self, a: SSAValue, c: SSAValue) -> SSAValue:
        return self._k.builder.add(arith.MaxSIOp(a, c))

    def _power(self, exponent: SSAValue) -> SSAValue:
        """The power of two that has an exponent."""
        b = self._k.builder
        bits = b.add(arith.ShLIOp(exponent, b.integer(_FRACTION, i32)))
        return b.add(arith.BitcastOp(bits, f32))

    def _word(self, numbers: Sequence[SSAValue], digit: int) -> SSAValue:
        """One byte of each of four integers."""
        b = self._k.builder
        bytes_: list[SSAValue] = []
        for place, number in enumerate(numbers):
            byte = b.add(arith.AndIOp(number, b.integer((1 << _BYTE) - 1 << _BYTE * digit, i32)))
            shift = _BYTE * (place - digit)
            if shift:
                kind = arith.ShLIOp if shift > 0 else arith.ShRUIOp
                byte = b.add(kind(byte, b.integer(abs(shift), i32)))
            bytes_.append(byte)
        return reduce(lambda a, c: b.add(arith.OrIOp(a, c)), bytes_)

    def product(self, column: Expr) -> SSAValue:
        """The sum of products with a column."""
        b, weight = self._k.builder, self._weight
        codes, mask = self._k.inputs[weight.codes], b.integer(_CODES, i32)

        def add_block(block: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def add_word(word: Expr, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
                pairs = b.load_word(codes, [block * (self._block // PAIR) + word, column])
                upper = b.add(arith.ShRUIOp(pairs, b.integer(_CODE, i32)))
                found = list(sums)
                for number, each in enumerate((pairs, upper)):
                    own = b.add(arith.AndIOp(each, mask))
                    for digit in range(DIGITS):
                        x = b.load(self._words, [block, digit, word * PAIR + number])
                        found[digit] = _added(b, x, own, digit, found[digit])
                return found

            starts = [self._start(block, digit, column) for digit in range(DIGITS)]
            low, middle, high = b.carry(self._block // RUN, starts, add_word)
            low = b.add(arith.AddiOp(low, b.add(arith.ShLIOp(middle, b.integer(_BYTE, i32)))))
            total = b.fma(
                b.add(arith.SIToFPOp(high, f32)),
                b.floating((1 << 2 * _BYTE) / _SHIFT, f32),
                scalars.mul(b, b.add(arith.SIToFPOp(low, f32)), b.floating(1 / _SHIFT, f32)),
            )
            scale = scale_of(self._k, weight, [block * self._block, column])
            scale = scalars.mul(b, scale, b.load(self._scales, [block]))
            return [b.fma(total, scale, values[0])]

        blocks = weight.size.data // self._block
        return b.carry(blocks, [b.floating(0.0, f32)], add_block)[0]

    def _start(self, block: Expr, digit: int, column: Expr) -> SSAValue:
        """What takes the zero point from all codes of a block."""
        b, weight = self._k.builder, self._weight
        start = b.load(self._starts, [block, digit])
        if weight.zero is None:
            return start
        zero = b.add(arith.ExtUIOp(self._k.element(weight.zero, [block, column]), i32))
        return b.add(arith.MuliOp(zero, start))


def _added(b: KernelBuilder, x: SSAValue, codes: SSAValue, digit: int, total: SSAValue) -> SSAValue:
    """A total and the products of bytes of a row, of which only the last ones have signs."""
    factors = (codes, x) if digit == DIGITS - 1 else (x, codes)
    return b.add(DotSmallQuadsOp(*factors, total))
