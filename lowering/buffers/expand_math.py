"""
`expand-math`: f32 functions of the C library become straight-line arithmetic, which has a vector
form for every op.

Errors are the largest found over all f32, in units in the last place, with a fused multiply-add and
without. exp is right where its result is subnormal and zero from 2^-126.5 down.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.core.types import f32

I32 = IntegerType(32)

ROUND = 1.5 * 2**23
"""Numbers near this have no fraction, and their bits are those of this plus an integer."""

MANTISSA_BITS, EXPONENT_BIAS = 23, 127
SIGN, MAGNITUDE = -(1 << 31), (1 << 31) - 1

LOG2_E = 1.44269504
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
"""ln 2 in two parts; the first has 15 bits, so that integers of 8 times it are exact."""

EXP_SHORT = (1.0, 1.0, 0.49999994, 0.166665211, 0.0416682661, 0.00836868398, 0.00138209516)
"""exp(r) for |r| <= ln(2) / 2; relative error 2^-28. Polynomials begin with the constant term."""

EXP_LONG = (
    *(1.0, 1.0, 0.5, 0.166666955),
    *(0.0416668616, 0.00832767133, 0.00138978008, 0.000225604628),
)
"""exp(r) for -ln(2) / 2 <= r <= ln(2); relative error 2^-29, 2^-28 above ln(2) / 2."""

TANH_SMALL = (-0.333332837, 0.133314833, -0.0537427738, 0.0206480622, -0.00571406353)
"""(tanh(x) / x - 1) / x^2 as a polynomial of x^2."""
TANH_SPLIT, TANH_ONE = 0.625, 9.02
"""Where the two forms meet, and from where on tanh is 1."""

ERF_SMALL = (
    *(0.128379166, -0.376125336, 0.112819925),
    *(-0.0267681349, 0.00499119423, -0.000596761703),
)
"""erf(x) / x - 1 as a polynomial of x^2."""
ERF_LARGE = (
    *(-0.128717512, -0.634846687, -0.106777877),
    *(0.0242546219, -0.00388396438, 0.000383197126, -0.000017285347),
)
"""ln(1 - erf(x)) / x + 1 for x > 0."""
ERF_SPLIT, ERF_ONE = 0.927734375, 4.0
"""The polynomials for erf and log were found by N. Juffa."""

LOG = (
    *(1.0, -0.5, 0.333331972, -0.2499962, 0.200120345, -0.166846126),
    *(0.139814854, -0.121483512, 0.140869141, -0.130310059),
)
"""ln(1 + f) / f for -1/3 <= f <= 1/3."""
TWO_THIRDS_BITS = 0x3F2AAAAB
SMALLEST_NORMAL, SUBNORMAL_SHIFT = 2.0**-126, 23


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


class Expansion:
    """Builds what takes the place of one op."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        """Append an op with one result."""
        self.ops.append(op)
        return op.results[0]

    def real(self, value: float) -> SSAValue:
        """A constant in f32."""
        return self._constants.get(FloatAttr(value, f32))

    def integer(self, value: int) -> SSAValue:
        """A constant in i32."""
        return self._constants.get(IntegerAttr(value, I32))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """a * b + c"""
        return self.add(math.FmaOp(a, b, c))

    def polynomial(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """c0 + c1 x + c2 x^2 + ..., from the last to the first."""
        total = self.real(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = self.fma(total, x, self.real(coefficient))
        return total

    def bits(self, x: SSAValue) -> SSAValue:
        """A number's bits as an integer."""
        return self.add(arith.BitcastOp(x, I32))

    def number(self, bits: SSAValue) -> SSAValue:
        """The number with these bits."""
        return self.add(arith.BitcastOp(bits, f32))

    def choose(
        self, predicate: str, a: SSAValue, b: SSAValue, yes: SSAValue, no: SSAValue
    ) -> SSAValue:
        """a predicate b ? yes : no"""
        return self.add(arith.SelectOp(self.add(arith.CmpfOp(a, b, predicate)), yes, no))

    def split_sign(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The sign's bit and the magnitude."""
        bits = self.bits(x)
        sign = self.add(arith.AndIOp(bits, self.integer(SIGN)))
        return sign, self.number(self.add(arith.AndIOp(bits, self.integer(MAGNITUDE))))

    def with_sign(self, sign: SSAValue, magnitude: SSAValue) -> SSAValue:
        """What `split_sign` took apart."""
        return self.number(self.add(arith.OrIOp(self.bits(magnitude), sign)))

    def power_of_two(self, shifted: SSAValue) -> SSAValue:
        """2^n for `shifted` = ROUND + n: zero for n = -127."""
        width = self.integer(MANTISSA_BITS)
        exponent = self.add(arith.ShLIOp(self.bits(shifted), width))
        one = self.integer(EXPONENT_BIAS << MANTISSA_BITS)
        return self.number(self.add(arith.AddiOp(exponent, one)))

    def reduced(self, x: SSAValue, shifted: SSAValue, scale: float) -> SSAValue:
        """x - n ln(2) / scale for `shifted` = ROUND + n."""
        n = self.add(arith.SubfOp(shifted, self.real(ROUND)))
        rest = self.fma(n, self.real(-LN2_HIGH / scale), x)
        return self.fma(n, self.real(-LN2_LOW / scale), rest)


def expand_exp(e: Expansion, x: SSAValue) -> SSAValue:
    """
    2^n p(x - n ln 2) with n = x / ln 2 rounded, at most 127: what is above overflows in p.

    0.92 ulp, 1.15 without fma.
    """
    # Here 2^n is zero already; so the rest needs no care.
    x = e.add(arith.MaximumfOp(x, e.real(-88.0)))
    shifted = e.fma(x, e.real(LOG2_E), e.real(ROUND))
    shifted = e.add(arith.MinimumfOp(shifted, e.real(ROUND + EXPONENT_BIAS)))
    p = e.polynomial(e.reduced(x, shifted, 1.0), EXP_LONG)
    return e.add(arith.MulfOp(p, e.power_of_two(shifted)))


def _small_exp(e: Expansion, x: SSAValue, factor: float) -> tuple[SSAValue, SSAValue]:
    """p and s with exp(factor x) = p s, for a power of two and |factor x| < 87."""
    shifted = e.fma(x, e.real(LOG2_E * factor), e.real(ROUND))
    coefficients = [c * factor**k for k, c in enumerate(EXP_SHORT)]
    p = e.polynomial(e.reduced(x, shifted, factor), coefficients)
    return p, e.power_of_two(shifted)


def expand_tanh(e: Expansion, x: SSAValue) -> SSAValue:
    """
    An odd polynomial for small x, 1 - 2 / (exp(2 x) + 1) for others.

    1.37 ulp, with fma and without.
    """
    sign, magnitude = e.split_sign(x)
    square = e.add(arith.MulfOp(x, x))
    factor = e.add(arith.MulfOp(e.polynomial(square, TANH_SMALL), square))
    small = e.fma(factor, magnitude, magnitude)
    one = e.real(1.0)
    limited = e.add(arith.MinimumfOp(magnitude, e.real(TANH_ONE)))
    p, scale = _small_exp(e, limited, 2.0)
    quotient = e.add(arith.DivfOp(e.real(2.0), e.fma(p, scale, one)))
    large = e.add(arith.SubfOp(one, quotient))
    return e.with_sign(sign, e.choose("olt", magnitude, e.real(TANH_SPLIT), small, large))


def expand_erf(e: Expansion, x: SSAValue) -> SSAValue:
    """
    An odd polynomial for small x, 1 - exp(x q(x)) for others.

    1.06 ulp, 1.15 without fma.
    """
    sign, magnitude = e.split_sign(x)
    magnitude = e.add(arith.MinimumfOp(magnitude, e.real(ERF_ONE)))
    square = e.add(arith.MulfOp(magnitude, magnitude))
    small = e.fma(e.polynomial(square, ERF_SMALL), magnitude, magnitude)
    minus = e.add(arith.NegfOp(magnitude))
    exponent = e.fma(e.polynomial(magnitude, ERF_LARGE), magnitude, minus)
    p, scale = _small_exp(e, exponent, 1.0)
    large = e.fma(e.add(arith.NegfOp(p)), scale, e.real(1.0))
    return e.with_sign(sign, e.choose("olt", magnitude, e.real(ERF_SPLIT), small, large))


def expand_log(e: Expansion, x: SSAValue) -> SSAValue:
    """
    n ln 2 + ln(1 + f) for x = 2^n (1 + f), 2/3 <= 1 + f < 4/3.

    0.85 ulp, 1.07 without fma.
    """
    zero, infinity = e.real(0.0), e.real(python_math.inf)
    smallest = e.real(SMALLEST_NORMAL)
    lifted = e.add(arith.MulfOp(x, e.real(2.0**SUBNORMAL_SHIFT)))
    normal = e.choose("olt", x, smallest, lifted, x)
    offset = e.choose("olt", x, smallest, e.real(-float(SUBNORMAL_SHIFT)), zero)
    bits = e.bits(normal)
    above = e.add(arith.SubiOp(bits, e.integer(TWO_THIRDS_BITS)))
    exponent = e.add(arith.AndIOp(above, e.integer(-(1 << MANTISSA_BITS))))
    one_plus_f = e.number(e.add(arith.SubiOp(bits, exponent)))
    f = e.add(arith.SubfOp(one_plus_f, e.real(1.0)))
    n = e.fma(e.add(arith.SIToFPOp(exponent, f32)), e.real(2.0**-MANTISSA_BITS), offset)
    square = e.add(arith.MulfOp(f, f))
    # Even and odd powers by themselves: half as long a chain.
    even, odd = e.polynomial(square, LOG[3::2]), e.polynomial(square, LOG[4::2])
    tail = e.fma(odd, f, even)
    for coefficient in LOG[2:0:-1]:
        tail = e.fma(tail, f, e.real(coefficient))
    result = e.fma(n, e.real(LN2_HIGH + LN2_LOW), e.fma(tail, square, f))
    result = e.choose("olt", x, infinity, result, x)
    special = e.choose("oeq", x, zero, e.real(-python_math.inf), e.real(python_math.nan))
    return e.choose("ogt", x, zero, result, special)


EXPANSIONS: dict[type[Operation], Callable[[Expansion, SSAValue], SSAValue]] = {
    math.ExpOp: expand_exp,
    math.TanhOp: expand_tanh,
    math.ErfOp: expand_erf,
    math.LogOp: expand_log,
}


def expand_function(function: FuncOp) -> None:
    """Expand all of a kernel."""
    constants = Constants(function)
    found = [op for op in function.walk() if type(op) in EXPANSIONS and op.results[0].type == f32]
    for op in found:
        expansion = Expansion(constants)
        result = EXPANSIONS[type(op)](expansion, op.operands[0])
        block = op.parent
        assert block is not None
        block.insert_ops_before(expansion.ops, op)
        for new in expansion.ops:
            new.location = op.location
        op.results[0].replace_all_uses_with(result)
        op.detach()
        op.erase()


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """
    Rewrite `math.exp`, `math.tanh`, `math.erf` and `math.log` of f32 in every kernel to arithmetic
    without branches, at most 1.4 ulp off; 1 / (1 + exp(-x)) is then at most 2.5 ulp off.

    NaN, infinities and the sign of zero come out as the C library has them. f64 stays as it is.
    """

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                expand_function(function)
