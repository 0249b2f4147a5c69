"""Building what takes the place of a function: straight-line arithmetic of f32 or f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import EXACT, FuncOp
from lowerdeck.dialects.core.types import f32, f64
from lowerdeck.dialects.walking import all_ops

I32, I64 = IntegerType(32), IntegerType(64)

ROUND = 1.5 * 2**23
"""Numbers of f32 near this have no fraction, and their bits are those of this plus an integer."""
ROUND_F64 = 1.5 * 2**52
"""The same of f64."""

MANTISSA_BITS, EXPONENT_BIAS = 23, 127
MANTISSA_BITS_F64, EXPONENT_BIAS_F64 = 52, 1023

ROUND_EXPONENT = ROUND + EXPONENT_BIAS
"""The bits of this plus an integer are, moved up to the exponent, two to the power of it."""


@dataclass(eq=False)
class Constants:
    """The constants of a function, each made once, ahead of everything else."""

    function: FuncOp

    def __post_init__(self) -> None:
        self._known: dict[Attribute, SSAValue] = {}

    def get(self, value: FloatAttr | IntegerAttr) -> SSAValue:
        """The value of an attribute."""
        if value not in self._known:
            op = arith.ConstantOp(value)
            block = self.function.body.block
            first = block.first_op
            assert first is not None
            block.insert_op_before(op, first)
            self._known[value] = op.result
        return self._known[value]


Real: TypeAlias = Float32Type | Float64Type


class Expansion:
    """Builds what takes the place of one op, in the arithmetic of a type."""

    def __init__(self, constants: Constants, type_: Real = f32) -> None:
        self._constants = constants
        self.type = type_
        self.integers = I32 if type_ == f32 else I64
        self.ops: list[Operation] = []

    def of(self, type_: Real) -> Expansion:
        """The same in the arithmetic of another type."""
        other = Expansion(self._constants, type_)
        other.ops = self.ops
        return other

    def add(self, op: Operation) -> SSAValue:
        """Append an op with one result."""
        self.ops.append(op)
        return op.results[0]

    def real(self, value: float) -> SSAValue:
        """A constant."""
        return self._constants.get(FloatAttr(value, self.type))

    def integer(self, value: int) -> SSAValue:
        """A constant as wide."""
        return self._constants.get(IntegerAttr(value, self.integers))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c"""
        return self.add(math.FmaOp(a, b, c))

    def polynomial(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """c0 + c1 x + c2 x^2 + ..., from the last to the first."""
        total = self.real(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = self.fma(total, x, self.real(coefficient))
        return total

    def polynomial_by_pairs(
        self, x: SSAValue, square: SSAValue, coefficients: Sequence[float]
    ) -> SSAValue:
        """(c0 + c1 x) + (c2 + c3 x) x^2 + ...: a shorter chain than one power after another."""
        pairs = [
            self.polynomial(x, coefficients[first : first + 2])
            for first in range(0, len(coefficients), 2)
        ]
        total = pairs.pop()
        while pairs:
            total = self.fma(total, square, pairs.pop())
        return total

    def bits(self, x: SSAValue) -> SSAValue:
        """A number's bits as an integer."""
        return self.add(arith.BitcastOp(x, self.integers))

    def number(self, bits: SSAValue) -> SSAValue:
        """The number with these bits."""
        return self.add(arith.BitcastOp(bits, self.type))

    def choose(
        self, predicate: str, a: SSAValue, b: SSAValue, yes: SSAValue, no: SSAValue
    ) -> SSAValue:
        """a predicate b ? yes : no"""
        return self.add(arith.SelectOp(self.add(arith.CmpfOp(a, b, predicate)), yes, no))

    def split_sign(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The sign's bit and the magnitude."""
        bits, lowest = self.bits(x), -1 << (self.type.bitwidth - 1)
        sign = self.add(arith.AndIOp(bits, self.integer(lowest)))
        return sign, self.number(self.add(arith.AndIOp(bits, self.integer(~lowest))))

    def with_sign(self, sign: SSAValue, magnitude: SSAValue) -> SSAValue:
        """What `split_sign` took apart."""
        return self.number(self.add(arith.OrIOp(self.bits(magnitude), sign)))

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a + b"""
        return self.add(arith.AddfOp(a, b))

    def minus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b"""
        return self.add(arith.SubfOp(a, b))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a * b"""
        return self.add(arith.MulfOp(a, b))

    def over(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a / b"""
        return self.add(arith.DivfOp(a, b))

    def magnitude(self, x: SSAValue) -> SSAValue:
        """|x|"""
        return self.add(math.AbsFOp(x))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """a predicate b"""
        return self.add(arith.CmpfOp(a, b, predicate))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """condition ? yes : no"""
        return self.add(arith.SelectOp(condition, yes, no))

    def rarely(
        self,
        condition: SSAValue,
        rare: Callable[[Expansion], Sequence[SSAValue]],
        usual: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """`usual`, but what `rare` builds where a condition holds that hardly ever does."""
        other = Expansion(self._constants, self.type)
        results = rare(other)
        block = Block()
        block.add_ops([*other.ops, scf.YieldOp(*results)])
        types = [value.type for value in usual]
        otherwise = Region(Block([scf.YieldOp(*usual)]))
        op = scf.IfOp(condition, types, Region(block), otherwise)
        self.ops.append(op)
        return list(op.results)

    def rounded(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """ROUND + n for the integer n next to x, which is not large, and n."""
        return self._rounded(x, self.real(ROUND if self.type == f32 else ROUND_F64))

    def exponent(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """2^n for the integer n next to x, within the range of exponents, and n."""
        is_short = self.type == f32
        shift = ROUND_EXPONENT if is_short else ROUND_F64 + EXPONENT_BIAS_F64
        shifted, n = self._rounded(x, self.real(shift))
        return self.power_of_two(shifted), n

    def _rounded(self, x: SSAValue, shift: SSAValue) -> tuple[SSAValue, SSAValue]:
        shifted = self.plus(x, shift)
        return shifted, self.minus(shifted, shift)

    def power_of_two(self, shifted: SSAValue) -> SSAValue:
        """
        2^n for n added to the number that rounds and the bias, which is ROUND_EXPONENT for f32:
        zero there for an exponent of -127.
        """
        digits = MANTISSA_BITS if self.type == f32 else MANTISSA_BITS_F64
        return self.number(self.add(arith.ShLIOp(self.bits(shifted), self.integer(digits))))


def mark_exact(ops: Sequence[Operation]) -> None:
    """Say of arithmetic in f64 that it is there for its digits: nothing makes f32 of it."""
    for op in ops:
        for inner in all_ops(op):
            types: list[Attribute] = [*inner.operand_types, *inner.result_types]
            if f64 in types:
                inner.attributes[EXACT] = UnitAttr()
