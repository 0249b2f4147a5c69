"""
`expand-math`: f32 functions of the C library become straight-line arithmetic, which has a vector
form for every op.

Errors are the largest found over all f32, in units in the last place, with a fused multiply-add and
without. exp is right where its result is subnormal and zero from 2^-126.5 down.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import AT_MOST_ZERO, SHORT, FuncOp, SigmoidOp
from lowerdeck.dialects.core.elementwise import SHORT_ERF, SHORT_ERF_LIMIT
from lowerdeck.dialects.core.types import bf16, f16, f32, f64
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.buffers.expansion import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    ROUND_EXPONENT,
    Constants,
    Expansion,
    mark_exact,
)
from lowerdeck.lowering.buffers.functions_by_f64 import BY_F64
from lowerdeck.lowering.buffers.functions_of_f64 import OF_F64
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.nests.lower import remove_unused
from lowerdeck.lowering.targets.base import Target

LOG2_E, LN2 = 1.44269504, 0.693147182
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
"""ln 2 in two parts; the first has 15 bits, so that small integers times it are exact."""

EXP_SHORT = (1.0, 1.0, 0.49999994, 0.166665211, 0.0416682661, 0.00836868398, 0.00138209516)
"""exp(r) for |r| <= ln(2) / 2; relative error 2^-28. Polynomials begin with the constant term."""

EXP_LONG = (
    *(1.0, 1.0, 0.5, 0.166666955),
    *(0.0416668616, 0.00832767133, 0.00138978008, 0.000225604628),
)
"""exp(r) for -ln(2) / 2 <= r <= ln(2); relative error 2^-29, 2^-28 above ln(2) / 2."""

TANH = (-1.0, 0.66666168, -0.333334923, 0.133872941, -0.0444751643)
"""((1 - exp(-2 s)) / 2 - s) / s^2 for |s| <= ln(2) / 4; of its result, 2^-26."""
TANH_ONE = 9.02
"""From where on tanh is 1."""

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
ASIN = (0.166667536, 0.0749524161, 0.0454770960, 0.0241476111, 0.0422185473)
"""(asin(s) / s - 1) / s^2 as a polynomial of s^2 for s <= 1 / 2: 2^-27 of asin(s)."""
ATAN = (
    *(-0.333331525, 0.199937731, -0.142110556, 0.106660031),
    *(-0.0755221099, 0.0432118215, -0.016367903, 0.0029206858),
)
"""(atan(t) / t - 1) / t^2 as a polynomial of t^2 for t <= 1; of atan(t), 2^-25.8."""
HALF_PI, HALF_PI_LOW = 1.57079637, -4.37113883e-8
"""Half of pi in two parts."""

TWO_THIRDS_BITS = 0x3F2AAAAB
SMALLEST_NORMAL, SUBNORMAL_SHIFT = 2.0**-126, 23


def _reduced(e: Expansion, x: SSAValue, shifted: SSAValue) -> SSAValue:
    """x - n ln(2) for `shifted` = ROUND_EXPONENT + n."""
    n = e.minus(shifted, e.real(ROUND_EXPONENT))
    rest = e.fma(n, e.real(-LN2_HIGH), x)
    return e.fma(n, e.real(-LN2_LOW), rest)


def expand_exp(e: Expansion, x: SSAValue) -> SSAValue:
    """
    2^n p(x - n ln 2) with n = x / ln 2 rounded, at most 127: what is above overflows in p.

    0.92 ulp, 1.15 without fma.
    """
    # Here 2^n is zero already; so the rest needs no care.
    x = e.add(arith.MaximumfOp(x, e.real(-88.0)))
    shifted = e.fma(x, e.real(LOG2_E), e.real(ROUND_EXPONENT))
    shifted = e.add(arith.MinimumfOp(shifted, e.real(ROUND_EXPONENT + EXPONENT_BIAS)))
    p = e.polynomial(_reduced(e, x, shifted), EXP_LONG)
    return e.add(arith.MulfOp(p, e.power_of_two(shifted)))


def _small_exp(e: Expansion, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """p and s with exp(x) = p s, for a power of two and -88 <= x < 87; s is zero at the end."""
    shifted = e.fma(x, e.real(LOG2_E), e.real(ROUND_EXPONENT))
    return e.polynomial(_reduced(e, x, shifted), EXP_SHORT), e.power_of_two(shifted)


def expand_exp_at_most_one(e: Expansion, x: SSAValue) -> SSAValue:
    """The same for x <= 0, where a shorter polynomial is enough: 0.9 ulp."""
    p, scale = _small_exp(e, e.add(arith.MaximumfOp(x, e.real(-88.0))))
    return e.times(p, scale)


def expand_sigmoid(e: Expansion, x: SSAValue) -> SSAValue:
    """
    2^n / ((2^n + (exp(-s) - 1)) + 1) for x = n ln(2) + s: zero where 2^n is, and nothing overflows.
    exp(-s) - 1 is added first, and the sum with 1 is exact or nearly so, for either sign of x.

    2.0 ulp, with fma and without.
    """
    limited = e.add(arith.MaximumfOp(x, e.real(-88.0)))
    limited = e.add(arith.MinimumfOp(limited, e.real(88.0)))
    shifted = e.fma(limited, e.real(LOG2_E), e.real(ROUND_EXPONENT))
    # In terms of s, the signs of the coefficients alternate.
    mirrored = [c * (-1) ** power for power, c in enumerate(EXP_SHORT)]
    s, scale = _reduced(e, limited, shifted), e.power_of_two(shifted)
    # exp(-s) begins with one.
    rest = e.fma(e.polynomial(s, mirrored[1:]), s, scale)
    return e.over(scale, e.plus(rest, e.real(1.0)))


def expand_tanh(e: Expansion, x: SSAValue) -> SSAValue:
    """
    For |x| = s + k ln(2) / 2 with an integer k, h = 2^(k - 1), and u = (1 - exp(-2 s)) / 2:
    (h - 1/2 + u) / (h + 1/2 - u). Both are summed from exact numbers, so that neither has the error
    of the other.

    1.93 ulp, 1.96 without fma: the worst of all x of f32.
    """
    sign, magnitude = e.split_sign(x)
    limited = e.add(arith.MinimumfOp(magnitude, e.real(TANH_ONE)))
    shift, half = e.real(ROUND_EXPONENT - 1.0), e.real(0.5)
    shifted = e.fma(limited, e.real(2.0 * LOG2_E), shift)
    s = e.fma(e.minus(shifted, shift), e.real(-0.5 * LN2), limited)
    square = e.times(s, s)
    u = e.fma(e.polynomial_by_pairs(s, square, TANH), square, s)
    power = e.power_of_two(shifted)
    numerator, denominator = e.plus(e.minus(power, half), u), e.minus(e.plus(power, half), u)
    return e.with_sign(sign, e.over(numerator, denominator))


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
    p, scale = _small_exp(e, exponent)
    large = e.fma(e.add(arith.NegfOp(p)), scale, e.real(1.0))
    return e.with_sign(sign, e.choose("olt", magnitude, e.real(ERF_SPLIT), small, large))


def expand_short_erf(e: Expansion, x: SSAValue) -> SSAValue:
    """An odd polynomial, which is limited as its operand is."""

    def limited(value: SSAValue, limit: float) -> SSAValue:
        value = e.add(arith.MinimumfOp(value, e.real(limit)))
        return e.add(arith.MaximumfOp(value, e.real(-limit)))

    t = limited(x, SHORT_ERF_LIMIT)
    return limited(e.times(e.polynomial(e.times(t, t), SHORT_ERF), t), 1.0)


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


def _half_angle(e: Expansion, magnitude: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    Whether m = |x| <= 1 / 2; s, and r with s + r = asin(s), for s = m then and the root of
    (1 - m) / 2 else, where asin(s) is half of acos(m).
    """
    half = e.real(0.5)
    is_small = e.compare("ole", magnitude, half)
    rest = e.fma(magnitude, e.real(-0.5), half)
    square = e.select(is_small, e.times(magnitude, magnitude), rest)
    s = e.select(is_small, magnitude, e.add(math.SqrtOp(rest)))
    return is_small, s, e.times(e.times(e.polynomial(square, ASIN), square), s)


def _angle_from(
    e: Expansion, whole: tuple[SSAValue, SSAValue], k: SSAValue, s: SSAValue, r: SSAValue
) -> SSAValue:
    """w + k (s + r) for a number w in two parts, zero or above k s, and k a power of two."""
    high = e.fma(k, s, whole[0])
    lost = e.fma(k, s, e.minus(whole[0], high))
    return e.plus(high, e.plus(e.fma(k, r, whole[1]), lost))


def expand_asin(e: Expansion, x: SSAValue) -> SSAValue:
    """
    The angle, and for |x| > 1 / 2 half of pi less twice the half angle.

    1.2 ulp, with fma and without.
    """
    sign, magnitude = e.split_sign(x)
    is_small, s, r = _half_angle(e, magnitude)
    large = _angle_from(e, (e.real(HALF_PI), e.real(HALF_PI_LOW)), e.real(-2.0), s, r)
    return e.with_sign(sign, e.select(is_small, e.plus(s, r), large))


def expand_acos(e: Expansion, x: SSAValue) -> SSAValue:
    """
    Half of pi less the angle, and for |x| > 1 / 2 twice the half angle, or pi less that.

    1.2 ulp, with fma and without.
    """
    sign, magnitude = e.split_sign(x)
    is_small, s, r = _half_angle(e, magnitude)
    is_negative = e.compare("olt", x, e.real(0.0))
    signed = e.with_sign(sign, e.select(is_small, e.real(1.0), e.real(2.0)))
    k = e.select(is_small, e.add(arith.NegfOp(signed)), signed)

    def whole(half: float) -> SSAValue:
        large = e.select(is_negative, e.real(2.0 * half), e.real(0.0))
        return e.select(is_small, e.real(half), large)

    return _angle_from(e, (whole(HALF_PI), whole(HALF_PI_LOW)), k, s, r)


def expand_atan(e: Expansion, x: SSAValue) -> SSAValue:
    """
    An odd polynomial of |x| or, where that is less, of 1 / |x|, which half of pi is the rest of.

    1.53 ulp, 1.7 without fma.
    """
    sign, magnitude = e.split_sign(x)
    one = e.real(1.0)
    is_large = e.compare("ogt", magnitude, one)
    t = e.over(e.select(is_large, one, magnitude), e.select(is_large, magnitude, one))
    square = e.times(t, t)
    angle = e.fma(e.times(e.polynomial(square, ATAN), square), t, t)
    rest = e.plus(e.real(HALF_PI), e.minus(e.real(HALF_PI_LOW), angle))
    return e.with_sign(sign, e.select(is_large, rest, angle))


def narrow_to_half(type_: Attribute, wide: Expansion, x: SSAValue) -> SSAValue | None:
    """
    An f64 as f16 or bf16 by way of f32, which is rounded to odd: what is cut off leaves a last bit
    of one, so that it is neither a half nor nothing when it is rounded again (Boldo and Melquiond,
    2008).
    """
    if x.type != f64:
        return None
    e = wide.of(f32)
    rounded = e.add(arith.TruncFOp(x, f32))
    back = e.add(arith.ExtFOp(rounded, f64))
    is_above = wide.compare("ogt", wide.magnitude(back), wide.magnitude(x))
    bits = e.bits(rounded)
    below = e.add(arith.SubiOp(bits, e.integer(1)))
    toward_zero = e.select(is_above, below, bits)
    odd = e.add(arith.OrIOp(toward_zero, e.integer(1)))
    is_cut = wide.compare("une", back, x)
    return e.add(arith.TruncFOp(e.number(e.select(is_cut, odd, toward_zero)), type_))


Expand: TypeAlias = Callable[..., SSAValue | None]

EXPANSIONS: Mapping[tuple[type[Operation], Attribute], Expand] = {
    (math.ExpOp, f32): expand_exp,
    (SigmoidOp, f32): expand_sigmoid,
    (math.TanhOp, f32): expand_tanh,
    (math.ErfOp, f32): expand_erf,
    (math.LogOp, f32): expand_log,
    (math.AsinOp, f32): expand_asin,
    (math.AcosOp, f32): expand_acos,
    (math.AtanOp, f32): expand_atan,
    **{(arith.TruncFOp, half): partial(narrow_to_half, half) for half in (f16, bf16)},
    **{(op, f32): expand for op, expand in BY_F64.items()},
    **{(op, f64): expand for op, expand in OF_F64.items()},
}


def expand_function(function: FuncOp) -> None:
    """Expand all of a kernel."""
    constants, is_expanded = Constants(function), False
    for op in all_ops(function):
        if not op.results or (expand := EXPANSIONS.get((type(op), op.results[0].type))) is None:
            continue
        if expand is expand_exp and AT_MOST_ZERO in op.attributes:
            expand = expand_exp_at_most_one
        if expand is expand_erf and SHORT in op.attributes:
            expand = expand_short_erf
        expansion = Expansion(constants, f32 if op.results[0].type == f32 else f64)
        if (result := expand(expansion, *op.operands)) is None:
            continue
        is_expanded = True
        mark_exact(expansion.ops)
        block = op.parent
        assert block is not None
        block.insert_ops_before(expansion.ops, op)
        for new in expansion.ops:
            new.location = op.location
        op.results[0].replace_all_uses_with(result)
        op.detach()
        op.erase()
    if is_expanded:
        remove_unused(function.body.block)


class ExpandMathPass(FunctionPass):
    """
    Rewrite functions in every kernel to arithmetic, which has a vector form for every op.

    Of f32, all of them: exp, erf, log, asin and acos are at most 1.4 ulp off, atan, tanh and
    1 / (1 + exp(-x)) at most 2; the others are computed in f64, and rounded once; powers
    with small integers are products there, and remainders exact; f64 becomes f16 and bf16 by f32,
    rounded to odd. Of f64, exp, log, tanh, sin, cos, atan and third powers, at most 1.5 ulp off;
    the others stay as they are.

    NaN, infinities and the sign of zero come out as the C library has them.
    """

    name = "expand-math"

    def run(self, function: FuncOp, target: Target) -> None:
        expand_function(function)
