"""
Functions of f32 that are computed in f64 and rounded once: errors are a little over half a unit in
the last place.

Polynomials interpolate at Chebyshev's nodes; the comments say how far off they are.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import RemfOp
from lowerdeck.dialects.core.types import f32, f64
from lowerdeck.lowering.buffers.expansion import EXPONENT_BIAS_F64, MANTISSA_BITS_F64, Expansion

PI = python_math.pi
LN2 = python_math.log(2.0)

SIN = (
    *(0.9999999999956379, -0.16666666631363722, 0.008333328760359809),
    *(-0.0001983919553145304, 2.7172838545909384e-06),
)
"""sin(r) / r as a polynomial of r^2 for |r| <= pi / 4: 2^-37."""
COS = (
    *(0.9999999999999438, -0.4999999999934585, 0.04166666654311522),
    *(-0.0013888880352523878, 2.479892016494646e-05, -2.7172811458681326e-07),
)
"""cos(r) as a polynomial of r^2: 2^-43."""
TAN = (
    *(1.000000000083575, 0.3333333114538974, 0.1333342702531121),
    *(0.05395291777365388, 0.021994089007993774, 0.008302076493918169),
    *(0.005044660209129147, -0.00064463974033811, 0.0020600447108362384),
)
"""tan(r) / r as a polynomial of r^2: 2^-33."""
SINH = (
    *(0.9999999999999205, 0.16666666667239327, 0.008333333266545869),
    *(0.00019841298317149254, 2.755183485237489e-06, 2.5538205221156536e-08),
)
"""sinh(x) / x as a polynomial of x^2 for |x| <= 1: 2^-43."""
EXP = (
    *(0.9999999999591618, 0.9999999999954646, 0.500000010852759, 0.1666666678719516),
    *(0.04166621610603964, 0.00833328329295277, 0.0013948725566063458, 0.00019907732801207004),
)
"""exp(r) for |r| <= ln(2) / 2: 2^-34."""
EXP2 = (
    *(0.9999999999595618, 0.6931471805568324, 0.24022651213498092, 0.055504109063258665),
    *(0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296),
    *(1.5303700711365693e-05,),
)
"""2^r for |r| <= 1 / 2: 2^-34."""
LOG = (
    *(1.9999999999999465, 0.6666666667971963, 0.3999999484730419),
    *(0.28572170986780887, 0.22174038511684124, 0.19611286237866007),
)
"""2 atanh(s) / s as a polynomial of s^2 for |s| <= 0.172: 2^-45."""
LOG2 = (
    *(2.885390081777927, 0.9617966939243131, 0.5770780172560378, 0.41219840046505485),
    *(0.32061650335968256, 0.26144042332141254, 0.24296332611259117),
)
"""The same over ln(2): 2^-52."""

ASINH = (1.0, -1 / 6, 3 / 40, -15 / 336)
"""asinh(x) / x as a polynomial of x^2, and that of atanh."""
ATANH = (1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9)
SERIES_END = 2.0**-5
"""Up to where they are series."""

HALF_PI = (1.5707963109016418, 1.5893254773528196e-08)
"""In two parts, the first of 25 bits: integers below 2^28 times it are exact."""
LARGE = 2.0**28
TWO_OVER_PI = tuple(
    map(
        float.fromhex,
        (
            *("0x1.45f306p-1", "0x1.b93910p-26", "0x1.529fc0p-52", "0x1.3abe88p-75"),
            *("0x1.ea69bap-97", "0x1.81b6c4p-121", "0x1.2b3278p-145", "0x1.0e4104p-170"),
        ),
    )
)
"""In parts of 24 bits: products with an f32 are exact."""

HALF_ROOT_BITS = 0x3FE6A09E667F3BCD
"""The bits of the root of 1 / 2."""
EXPONENT_NUMBER = 0x433 << MANTISSA_BITS_F64
"""The bits of 2^52, which small integers are put into."""

MOST_FACTORS = 32
"""Of a power that is a product."""

MOST_TIMES = 2.0**26
"""From where on a quotient of f32 may be too near an integer for f64."""

LIMIT = 1000.0
"""Beyond it exp2 is zero or infinity in f32."""


def _wide(expand: Callable[..., SSAValue]) -> Callable[..., SSAValue]:
    """The function in f64 as one of f32."""

    def narrow(e: Expansion, *operands: SSAValue) -> SSAValue:
        wide = [e.add(arith.ExtFOp(operand, f64)) for operand in operands]
        return e.add(arith.TruncFOp(expand(e.of(f64), *wide), f32))

    return narrow


def _exp(e: Expansion, x: SSAValue) -> SSAValue:
    """2^n p(x - n ln 2), zero and infinity where f32 has no number."""
    x = e.add(arith.MinimumfOp(e.add(arith.MaximumfOp(x, e.real(-700.0))), e.real(700.0)))
    power, n = e.exponent(e.times(x, e.real(1 / LN2)))
    return e.times(e.polynomial(e.fma(n, e.real(-LN2), x), EXP), power)


def _exponent_and_quotient(e: Expansion, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """k and (m - 1) / (m + 1) for x = 2^k m > 0, where m lies around 1."""
    bits = e.bits(x)
    above = e.add(arith.SubiOp(bits, e.integer(HALF_ROOT_BITS)))
    exponent = e.add(arith.AndIOp(above, e.integer(-1 << MANTISSA_BITS_F64)))
    m = e.number(e.add(arith.SubiOp(bits, exponent)))
    bias = e.integer(EXPONENT_BIAS_F64 << MANTISSA_BITS_F64)
    shifted = e.add(
        arith.ShRUIOp(e.add(arith.AddiOp(exponent, bias)), e.integer(MANTISSA_BITS_F64))
    )
    number = e.number(e.add(arith.OrIOp(shifted, e.integer(EXPONENT_NUMBER))))
    k = e.minus(number, e.real(2.0**MANTISSA_BITS_F64 + EXPONENT_BIAS_F64))
    one = e.real(1.0)
    return k, e.over(e.minus(m, one), e.plus(m, one))


def _log(e: Expansion, x: SSAValue) -> SSAValue:
    """Of numbers above zero, and as C has it of others."""
    k, s = _exponent_and_quotient(e, x)
    result = e.fma(k, e.real(LN2), e.times(s, e.polynomial(e.times(s, s), LOG)))
    return _with_ends_of_log(e, x, result)


def _with_ends_of_log(e: Expansion, x: SSAValue, result: SSAValue) -> SSAValue:
    """-infinity of zero, infinity of infinity, NaN of what is below zero and of NaN."""
    zero, infinity = e.real(0.0), e.real(python_math.inf)
    result = e.choose("olt", x, infinity, result, x)
    special = e.choose("oeq", x, zero, e.real(-python_math.inf), e.real(python_math.nan))
    return e.choose("ogt", x, zero, result, special)


def _reduced(e: Expansion, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x - n pi / 2 for the next n, and the bits of a number whose last two are those of n."""
    shifted, n = e.rounded(e.times(x, e.real(2 / PI)))
    rest = e.fma(n, e.real(-HALF_PI[0]), x)
    rest = e.fma(n, e.real(-HALF_PI[1]), rest)
    magnitude = e.magnitude(x)
    is_large = e.compare("oge", magnitude, e.real(LARGE))
    is_finite = e.compare("olt", magnitude, e.real(python_math.inf))
    condition = e.add(arith.AndIOp(is_large, is_finite))
    rest, shifted = e.rarely(condition, lambda r: _reduced_by_parts(r, x), (rest, shifted))
    return rest, e.bits(shifted)


def _reduced_by_parts(e: Expansion, x: SSAValue) -> Sequence[SSAValue]:
    """The same of any number: products with parts of 2 / pi, without multiples of 4."""
    total, error = e.real(0.0), e.real(0.0)
    for part in TWO_OVER_PI:
        term = e.times(x, e.real(part))
        _, fours = e.rounded(e.times(term, e.real(0.25)))
        rest = e.minus(term, e.times(fours, e.real(4.0)))
        # What is larger has no bits below 8.
        term = e.choose("olt", e.magnitude(term), e.real(2.0**51), rest, e.real(0.0))
        added = e.plus(total, term)
        back = e.minus(added, total)
        lost = e.plus(e.minus(total, e.minus(added, back)), e.minus(term, back))
        total, error = added, e.plus(error, lost)
    shifted, n = e.rounded(total)
    fraction = e.plus(e.minus(total, n), error)
    return e.times(fraction, e.real(PI / 2)), shifted


def _is_odd(e: Expansion, bits: SSAValue) -> SSAValue:
    last = e.add(arith.AndIOp(bits, e.integer(1)))
    return e.add(arith.CmpiOp(last, e.integer(0), "ne"))


def _of_quarter(e: Expansion, rest: SSAValue, quarter: SSAValue) -> SSAValue:
    """The sine of an angle in a quarter of the circle."""
    square = e.times(rest, rest)
    sine, cosine = e.times(rest, e.polynomial(square, SIN)), e.polynomial(square, COS)
    value = e.select(_is_odd(e, quarter), cosine, sine)
    second = e.add(arith.AndIOp(quarter, e.integer(2)))
    sign = e.add(arith.ShLIOp(second, e.integer(62)))
    return e.number(e.add(arith.XOrIOp(e.bits(value), sign)))


def _sin(e: Expansion, x: SSAValue) -> SSAValue:
    return _of_quarter(e, *_reduced(e, x))


def _cos(e: Expansion, x: SSAValue) -> SSAValue:
    rest, quarter = _reduced(e, x)
    return _of_quarter(e, rest, e.add(arith.AddiOp(quarter, e.integer(1))))


def _tan(e: Expansion, x: SSAValue) -> SSAValue:
    rest, quarter = _reduced(e, x)
    value = e.times(rest, e.polynomial(e.times(rest, rest), TAN))
    return e.select(_is_odd(e, quarter), e.over(e.real(-1.0), value), value)


def _sinh(e: Expansion, x: SSAValue) -> SSAValue:
    magnitude = e.magnitude(x)
    small = e.times(x, e.polynomial(e.times(x, x), SINH))
    up = _exp(e, magnitude)
    large = e.times(e.minus(up, e.over(e.real(1.0), up)), e.real(0.5))
    signed = e.add(math.CopySignOp(large, x))
    return e.choose("olt", magnitude, e.real(1.0), small, signed)


def _cosh(e: Expansion, x: SSAValue) -> SSAValue:
    up = _exp(e, e.magnitude(x))
    return e.times(e.plus(up, e.over(e.real(1.0), up)), e.real(0.5))


def _asinh(e: Expansion, x: SSAValue) -> SSAValue:
    magnitude, square = e.magnitude(x), e.times(x, x)
    small = e.times(x, e.polynomial(square, ASINH))
    root = e.add(math.SqrtOp(e.plus(square, e.real(1.0))))
    large = e.add(math.CopySignOp(_log(e, e.plus(magnitude, root)), x))
    return e.choose("olt", magnitude, e.real(SERIES_END), small, large)


def _acosh(e: Expansion, x: SSAValue) -> SSAValue:
    one = e.real(1.0)
    root = e.add(math.SqrtOp(e.times(e.minus(x, one), e.plus(x, one))))
    return e.choose("oge", x, one, _log(e, e.plus(x, root)), e.real(python_math.nan))


def _atanh(e: Expansion, x: SSAValue) -> SSAValue:
    one = e.real(1.0)
    small = e.times(x, e.polynomial(e.times(x, x), ATANH))
    large = e.times(_log(e, e.over(e.plus(one, x), e.minus(one, x))), e.real(0.5))
    return e.choose("olt", e.magnitude(x), e.real(SERIES_END), small, large)


def whole_exponent(y: SSAValue) -> int | None:
    """The exponent, if it is known to be a whole number for which few products are enough."""
    source = y.owner.input.owner if isinstance(y.owner, arith.ExtFOp) else y.owner
    if not isinstance(source, arith.ConstantOp) or not isinstance(source.value, FloatAttr):
        return None
    number = source.value.value.data
    return int(number) if number.is_integer() and 0 < abs(number) <= MOST_FACTORS else None


def repeated_product(e: Expansion, x: SSAValue, count: int) -> SSAValue:
    """x times itself."""
    if count == 1:
        return x
    root = repeated_product(e, x, count // 2)
    square = e.times(root, root)
    return e.times(square, x) if count % 2 else square


def _pow(e: Expansion, x: SSAValue, y: SSAValue) -> SSAValue:
    """
    2^(y log2 |x|); the sign, and what has no logarithm, as C has it. Products, where the exponent
    is a small integer.
    """
    if (count := whole_exponent(y)) is not None:
        power = repeated_product(e, x, abs(count))
        return power if count > 0 else e.over(e.real(1.0), power)
    zero, one, infinity = e.real(0.0), e.real(1.0), e.real(python_math.inf)
    magnitude = e.magnitude(x)
    k, s = _exponent_and_quotient(e, magnitude)
    log2 = e.plus(k, e.times(s, e.polynomial(e.times(s, s), LOG2)))
    log2 = _with_ends_of_log(e, magnitude, log2)
    # Of 1, whatever the exponent.
    exponent = e.choose("oeq", log2, zero, zero, e.times(y, log2))
    limited = e.add(arith.MaximumfOp(exponent, e.real(-LIMIT)))
    limited = e.add(arith.MinimumfOp(limited, e.real(LIMIT)))
    scale, n = e.exponent(limited)
    power = e.times(e.polynomial(e.minus(limited, n), EXP2), scale)
    is_whole = e.compare("oeq", e.add(math.FloorOp(y)), y)
    half = e.times(y, e.real(0.5))
    is_odd = e.add(arith.AndIOp(is_whole, e.compare("une", e.add(math.FloorOp(half)), half)))
    signed = e.select(is_odd, e.add(math.CopySignOp(power, x)), power)
    is_negative = e.add(
        arith.AndIOp(e.compare("olt", x, zero), e.compare("olt", magnitude, infinity))
    )
    is_root = e.add(arith.AndIOp(is_negative, e.compare("une", e.add(math.FloorOp(y)), y)))
    result = e.select(is_root, e.real(python_math.nan), signed)
    is_one = e.add(arith.OrIOp(e.compare("oeq", x, one), e.compare("oeq", y, zero)))
    return e.select(is_one, one, result)


def _remainder(e: Expansion, x: SSAValue, y: SSAValue) -> SSAValue:
    """
    x - n y for the quotient n, whose floor is right and times y exact where it is below 2^26; of
    others, and of what is not finite, that of the C library.
    """
    wide = e.of(f64)
    a, b = (wide.add(arith.ExtFOp(value, f64)) for value in (x, y))
    size, divisor = wide.magnitude(a), wide.magnitude(b)
    quotient = wide.over(size, divisor)
    is_large = wide.compare("oge", quotient, wide.real(MOST_TIMES))
    is_other = wide.compare("uno", quotient, quotient)
    is_small = wide.compare("oeq", divisor, wide.real(python_math.inf))
    is_rare = wide.add(arith.OrIOp(wide.add(arith.OrIOp(is_large, is_other)), is_small))
    times = wide.add(math.FloorOp(quotient))
    rest = wide.fma(wide.add(arith.NegfOp(times)), divisor, size)
    usual = wide.add(arith.TruncFOp(wide.add(math.CopySignOp(rest, a)), f32))
    return e.rarely(is_rare, lambda r: [r.add(RemfOp(x, y))], [usual])[0]


BY_F64: Mapping[type[Operation], Callable[..., SSAValue]] = {
    math.SinOp: _wide(_sin),
    math.CosOp: _wide(_cos),
    math.TanOp: _wide(_tan),
    math.SinhOp: _wide(_sinh),
    math.CoshOp: _wide(_cosh),
    math.AsinhOp: _wide(_asinh),
    math.AcoshOp: _wide(_acosh),
    math.AtanhOp: _wide(_atanh),
    math.PowFOp: _wide(_pow),
    RemfOp: _remainder,
}
"""By op; each of an expansion in f32 and operands of f32."""
