"""
Functions of f64, at most 1.5 units in the last place off.

Polynomials interpolate at Chebyshev's nodes to about 2^-54 of the whole.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from lowerdeck.lowering.buffers.expansion import EXPONENT_BIAS_F64, MANTISSA_BITS_F64, Expansion
from lowerdeck.lowering.buffers.functions_by_f64 import (
    EXPONENT_NUMBER,
    HALF_ROOT_BITS,
    repeated_product,
    whole_exponent,
)

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts; integers of some thousands times the first are exact."""

EXP = (
    *(0.5, 0.16666666666666666, 0.04166666666666668, 0.008333333333333333),
    *(0.0013888888888879075, 0.000198412698412633, 2.480158733643726e-05),
    *(2.755731924721541e-06, 2.755726328441651e-07, 2.5052071097844777e-08),
    *(2.0918135766484712e-09, 1.6086626642965137e-10),
)
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2."""
LOG = (
    *(0.666666666666667, 0.3999999999989819, 0.28571428626570206, 0.2222221103781659),
    *(0.18182896183483085, 0.15331487235865734, 0.14619343453512615),
)
"""(2 atanh(s) / s - 2) / s^2 as a polynomial of s^2 for |s| <= 0.172."""
TANH = (
    *(-0.3333333333333333, 0.13333333333333333, -0.0539682539682536, 0.02186948853612935),
    *(-0.008863235528937866, 0.0035921280149849334, -0.001455834073197924),
    *(0.0005900243334839051, -0.00023910757250025918, 9.680943521624041e-05),
    *(-3.890849770067712e-05, 1.5014299115711977e-05, -4.945692670034688e-06),
    *(9.916372416416241e-07,),
)
"""(tanh(x) / x - 1) / x^2 as a polynomial of x^2 for |x| <= 0.6."""
TANH_SPLIT, TANH_ONE = 0.6, 20.0
"""Where the two forms meet, and from where on tanh is 1."""
SIN = (
    *(-0.16666666666666666, 0.008333333333333331, -0.00019841269841265065),
    *(2.7557319219339167e-06, -2.5052106232447578e-08, 1.6058531618986147e-10),
    *(-7.586697117706918e-13,),
)
"""(sin(r) / r - 1) / r^2 as a polynomial of r^2 for |r| <= pi / 4."""
COS = (
    *(0.041666666666666664, -0.0013888888888888887, 2.4801587301584645e-05),
    *(-2.7557319221402824e-07, 2.087675579108042e-09, -1.1470460887609959e-11),
    *(4.7458719020432915e-14,),
)
"""(cos(r) - 1 + r^2 / 2) / r^4 as a polynomial of r^2."""
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""In three parts, two of 33 bits: integers below 2^20 times those are exact."""
LARGE = 2.0**20
ATAN = (
    *(-0.3333333333333333, 0.1999999999999997, -0.1428571428570596, 0.11111111110149922),
    *(-0.0909090903311181, 0.07692305617869367, -0.06666618690270118),
    *(0.05881605406582395, -0.05255120874455882, 0.04701802228655186),
    *(-0.04037306510850071, 0.02916553894887765, -0.012510628447639081),
)
"""(atan(z) / z - 1) / z^2 as a polynomial of z^2 for |z| <= 7 / 16."""
ATAN_POINTS = (
    (7 / 16, 0.5, 0.4636476090008061, 2.2698777452961687e-17),
    (11 / 16, 1.0, 0.7853981633974483, 3.061616997868383e-17),
    (19 / 16, 1.5, 0.982793723247329, 1.3903311031230998e-17),
    (39 / 16, 0.0, 1.5707963267948966, 6.123233995736766e-17),
)
"""From where on which numbers lie near one, and what its arcus tangent is, in two parts; the last
one stands for infinity."""


def _exp(e: Expansion, x: SSAValue) -> SSAValue:
    """2^n (1 + r + r^2 p(r)); 2^n in two factors, so that only the last product is rounded."""
    x = e.add(arith.MaximumfOp(x, e.real(-746.0)))
    x = e.add(arith.MinimumfOp(x, e.real(710.0)))
    _, n = e.rounded(e.times(x, e.real(python_math.log2(python_math.e))))
    r = e.fma(n, e.real(-LN2_LOW), e.fma(n, e.real(-LN2_HIGH), x))
    p = e.plus(e.real(1.0), e.fma(e.times(r, r), e.polynomial(r, EXP), r))
    power, half = e.exponent(e.times(n, e.real(0.5)))
    other, _ = e.exponent(e.minus(n, half))
    return e.times(e.times(p, power), other)


def _log(e: Expansion, x: SSAValue) -> SSAValue:
    """k ln 2 + ln(m) for x = 2^k m: f - f^2 / 2 + s (f^2 / 2 + s^2 p(s^2)) with s = f / (2 + f)."""
    zero, smallest = e.real(0.0), e.real(2.0**-1022)
    is_small = e.compare("olt", x, smallest)
    normal = e.select(is_small, e.times(x, e.real(2.0**54)), x)
    offset = e.select(is_small, e.real(-54.0), zero)
    bits = e.bits(normal)
    above = e.add(arith.SubiOp(bits, e.integer(HALF_ROOT_BITS)))
    exponent = e.add(arith.AndIOp(above, e.integer(-1 << MANTISSA_BITS_F64)))
    f = e.minus(e.number(e.add(arith.SubiOp(bits, exponent))), e.real(1.0))
    bias = e.integer(EXPONENT_BIAS_F64 << MANTISSA_BITS_F64)
    shifted = e.add(
        arith.ShRUIOp(e.add(arith.AddiOp(exponent, bias)), e.integer(MANTISSA_BITS_F64))
    )
    number = e.number(e.add(arith.OrIOp(shifted, e.integer(EXPONENT_NUMBER))))
    k = e.plus(e.minus(number, e.real(2.0**MANTISSA_BITS_F64 + EXPONENT_BIAS_F64)), offset)
    s = e.over(f, e.plus(e.real(2.0), f))
    square = e.times(s, s)
    rest = e.times(square, e.polynomial(square, LOG))
    half_square = e.times(e.times(e.real(0.5), f), f)
    tail = e.fma(s, e.plus(half_square, rest), e.times(k, e.real(LN2_LOW)))
    inner = e.minus(e.minus(half_square, tail), f)
    result = e.minus(e.times(k, e.real(LN2_HIGH)), inner)
    result = e.choose("olt", x, e.real(python_math.inf), result, x)
    special = e.choose("oeq", x, zero, e.real(-python_math.inf), e.real(python_math.nan))
    return e.choose("ogt", x, zero, result, special)


def _tanh(e: Expansion, x: SSAValue) -> SSAValue:
    """An odd polynomial for small x, 1 - 2 / (exp(2 x) + 1) for others."""
    magnitude, square = e.magnitude(x), e.times(x, x)
    small = e.fma(e.times(e.polynomial(square, TANH), square), x, x)
    limited = e.add(arith.MinimumfOp(magnitude, e.real(TANH_ONE)))
    power = _exp(e, e.plus(limited, limited))
    quotient = e.over(e.real(2.0), e.plus(power, e.real(1.0)))
    large = e.minus(e.real(1.0), quotient)
    value = e.choose("olt", magnitude, e.real(TANH_SPLIT), small, large)
    return e.add(math.CopySignOp(value, x))


def _of_quarter(e: Expansion, x: SSAValue, first: int) -> SSAValue:
    """The sine of x and `first` quarters of the circle."""
    shifted, n = e.rounded(e.times(x, e.real(2 / python_math.pi)))
    # r + tail = x - n pi / 2
    high = e.fma(n, e.real(-HALF_PI[0]), x)
    middle = e.times(n, e.real(HALF_PI[1]))
    rest = e.minus(high, middle)
    lost = e.minus(e.minus(high, rest), middle)
    low = e.minus(e.times(n, e.real(HALF_PI[2])), lost)
    r = e.minus(rest, low)
    tail = e.minus(e.minus(rest, r), low)
    z = e.times(r, r)
    half_z = e.times(e.real(0.5), z)
    cube = e.times(z, r)
    # sin(r + tail) = r + r^3 p + tail (1 - r^2 / 2), cos(r + tail) = 1 - r^2 / 2 + r^4 p - r tail
    by_tail = e.fma(e.minus(e.real(0.0), half_z), tail, tail)
    sine = e.plus(r, e.fma(cube, e.polynomial(z, SIN), by_tail))
    main = e.minus(e.real(1.0), half_z)
    left = e.minus(e.minus(e.real(1.0), main), half_z)
    small = e.minus(e.times(e.times(z, z), e.polynomial(z, COS)), e.times(r, tail))
    cosine = e.plus(main, e.plus(left, small))
    quarter = e.add(arith.AddiOp(e.bits(shifted), e.integer(first)))
    last = e.add(arith.AndIOp(quarter, e.integer(1)))
    value = e.select(e.add(arith.CmpiOp(last, e.integer(0), "ne")), cosine, sine)
    second = e.add(arith.AndIOp(quarter, e.integer(2)))
    sign = e.add(arith.ShLIOp(second, e.integer(62)))
    return e.number(e.add(arith.XOrIOp(e.bits(value), sign)))


def _atan(e: Expansion, x: SSAValue) -> SSAValue:
    """atan(c) + atan(z) with z = (x - c) / (1 + c x) for a near c, -1 / x for large x."""
    t, one = e.magnitude(x), e.real(1.0)
    near, high, low = e.real(0.0), e.real(0.0), e.real(0.0)
    for first, point, *parts in ATAN_POINTS:
        is_above = e.compare("ogt", t, e.real(first))
        near, high, low = (
            e.select(is_above, e.real(new), old)
            for new, old in zip((point, *parts), (near, high, low), strict=True)
        )
    is_far = e.compare("ogt", t, e.real(ATAN_POINTS[-1][0]))
    top = e.select(is_far, e.real(-1.0), e.minus(t, near))
    bottom = e.select(is_far, t, e.fma(near, t, one))
    z = e.over(top, bottom)
    square = e.times(z, z)
    rest = e.fma(e.times(square, z), e.polynomial(square, ATAN), low)
    value = e.plus(high, e.plus(z, rest))
    # A zero keeps its sign.
    return e.add(math.CopySignOp(value, x))


def _by_quarters(
    first: int, function: type[math.SinOp | math.CosOp]
) -> Callable[[Expansion, SSAValue], SSAValue]:
    """Sine or cosine; of large numbers that of the C library."""

    def expand(e: Expansion, x: SSAValue) -> SSAValue:
        is_large = e.compare("oge", e.magnitude(x), e.real(LARGE))
        usual = _of_quarter(e, x, first)
        if first == 0:
            # Zero with its sign.
            usual = e.choose("oeq", x, e.real(0.0), x, usual)
        return e.rarely(is_large, lambda r: [r.add(function(x))], [usual])[0]

    return expand


def _pow(e: Expansion, x: SSAValue, y: SSAValue) -> SSAValue | None:
    """Two products or one quotient: more would cost digits, which the C library has."""
    count = whole_exponent(y)
    if count == -1:
        return e.over(e.real(1.0), x)
    return repeated_product(e, x, count) if count == 3 else None


OF_F64: Mapping[type[Operation], Callable[..., SSAValue | None]] = {
    math.ExpOp: _exp,
    math.LogOp: _log,
    math.TanhOp: _tanh,
    math.AtanOp: _atan,
    math.SinOp: _by_quarters(0, math.SinOp),
    math.CosOp: _by_quarters(1, math.CosOp),
    math.PowFOp: _pow,
}
"""By op; None where it stays as it is."""
