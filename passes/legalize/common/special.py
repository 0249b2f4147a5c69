"""Functions that lose digits if they are written as their definitions."""

from __future__ import annotations

import math
import sys

from lowerdeck.dialects.core.elementwise import (
    AtanOp,
    ErfOp,
    PowOp,
    SignOp,
    SinhOp,
    SqrtOp,
    UnaryOp,
)
from lowerdeck.dialects.core.types import f16, f32, f64
from lowerdeck.passes.legalize.tensor_value import TensorValue


def apply(function: type[UnaryOp], x: TensorValue) -> TensorValue:
    """A function of one element that `TensorValue` has no method for."""
    return TensorValue(x.builder, x.builder.add(function(x.value)))


def is_negative(x: TensorValue) -> TensorValue:
    """True below zero, and for the negative zero."""
    return x.lt(0) | (x.eq(0) & (1 / x).lt(0))


def hypot(x: TensorValue, y: TensorValue) -> TensorValue:
    """The length of the vector (x, y) without overflow; infinite where one of them is."""
    x, y = x.abs(), y.abs()
    large, small = x.maximum(y), x.minimum(y)
    ratio = large.eq(0).where(large * 0 + small * 0, small / large)
    length = large * apply(SqrtOp, ratio * ratio + 1)
    endless = TensorValue.number(x.builder, math.inf, x.element)
    return (x.eq(math.inf) | y.eq(math.inf)).where(endless, length)


def angle_of(y: TensorValue, x: TensorValue) -> TensorValue:
    """The angle of the point (x, y), f32 or f64, which also depends on the signs of zeros."""
    small, large = x.abs().minimum(y.abs()), x.abs().maximum(y.abs())
    zero = TensorValue.number(x.builder, 0, x.element)
    # Two zeros are the angle 0, two infinities are that of the diagonal.
    ratio = large.eq(0).where(zero, small.eq(large).where(zero + 1, small / large))
    angle = apply(AtanOp, ratio)
    angle = y.abs().gt(x.abs()).where(math.pi / 2 - angle, angle)
    angle = is_negative(x).where(math.pi - angle, angle)
    return is_negative(y).where(-angle, angle)


def logaddexp(x: TensorValue, y: TensorValue, unit: float = 1.0) -> TensorValue:
    """log(exp(x) + exp(y)), relative to the larger one; to the base exp(1 / unit)."""
    gap = -(x - y).abs()
    found = x.maximum(y) + log1p((gap * unit).exp()) / unit
    return (x.eq(y) & x.abs().eq(math.inf)).where(x, found)


def round_at(x: TensorValue, decimals: int) -> TensorValue:
    """Floats to so many decimals, or tens, hundreds and so on if negative; halves to even."""
    if not decimals:
        return x.round()
    factor = power_of_ten(abs(decimals))
    return (x * factor).round() / factor if decimals > 0 else (x / factor).round() * factor


def power_of_ten(exponent: int) -> float:
    """Infinite where no double is so large."""
    if exponent < 0:
        return 10.0**exponent
    return float(10**exponent) if exponent <= sys.float_info.max_10_exp else math.inf


def rounded(x: TensorValue) -> TensorValue:
    """Halves away from zero."""
    size = x.abs()
    whole = size.floor()
    up = (size - whole).ge(0.5).where(whole + 1, whole)
    return x.lt(0).where(-up, up)


def toward_zero(x: TensorValue) -> TensorValue:
    """Floats as f16, cut off instead of rounded."""
    near = x.cast(f16)
    size = near.cast(x.element).abs()
    # More than half of the distance to the neighbor, and less than one.
    step = (size * 2.0**-11).maximum(0.75 * 2.0**-24)
    cut = (size - step).cast(f16)
    return (size.gt(x.abs()) & size.lt(math.inf)).where(near.lt(0).where(-cut, cut), near)


def cbrt(x: TensorValue) -> TensorValue:
    """The real cubic root, which has the sign of x."""
    builder, size = x.builder, x.abs()
    third = TensorValue.number(builder, 1 / 3, x.element)
    root = TensorValue(builder, builder.add(PowOp(size.value, third.value)))
    # One step of Newton's method takes the rounding of the exponent away.
    better = root - (root - size / (root * root)) * (1 / 3)
    is_plain = x.ne(0) & size.lt(math.inf)
    return is_plain.where(better, root) * apply(SignOp, x)


def log1p(x: TensorValue) -> TensorValue:
    """log(1 + x), also where 1 + x rounds x away: what was lost scales with the logarithm"""
    total = x + 1
    exact = total.log() * (x / (total - 1))
    return total.eq(1).where(x, total.abs().lt(math.inf).where(exact, total.log()))


def expm1(x: TensorValue) -> TensorValue:
    """exp(x) - 1 = 2 exp(x / 2) sinh(x / 2), where the difference cancels nothing"""
    half = x * 0.5
    small = apply(SinhOp, half.clip(-1, 1)) * half.exp() * 2
    return x.abs().lt(1).where(small, x.exp() - 1)


_ERFC = (
    -1.3026537197817094,
    0.6419697923564902,
    0.019476473204185836,
    -0.009561514786808632,
    -0.0009465953444820369,
    0.00036683949785276145,
    4.252332480690777e-05,
    -2.0278578112534242e-05,
    -1.6242900046470256e-06,
    1.3036558355805232e-06,
    1.5626441722066142e-08,
    -8.523809591492654e-08,
    6.5290544390988515e-09,
    5.059343495551469e-09,
    -9.91364156493033e-10,
    -2.273651222931836e-10,
    9.646791102015527e-11,
    2.394038083039114e-12,
    -6.886027526497553e-12,
    8.94487927309072e-13,
    3.1309213993429637e-13,
    -1.1270822361367307e-13,
    3.810905255194566e-16,
    7.106097613608709e-15,
    -1.523028201456581e-15,
    -9.457494571343037e-17,
    1.2102371892294039e-16,
    -2.8166630877978534e-17,
)
"""
The Chebyshev coefficients of log(erfc(x) exp(x^2) / t) over t = 2 / (2 + x), for x from zero on.

Fitted to 50 digits; the first half gives the precision of f32.
"""


def erfc(x: TensorValue) -> TensorValue:
    """1 - erf(x), with its relative precision where it is small; x is f32 or f64"""
    size = x.abs()
    t = 2 / (size + 2)
    series = _chebyshev(t, _ERFC if x.element == f64 else _ERFC[: len(_ERFC) // 2])
    tail = t * (series - size * size).exp()
    return x.lt(0).where(2 - tail, tail)


def _chebyshev(t: TensorValue, coefficients: tuple[float, ...]) -> TensorValue:
    """The sum of Chebyshev polynomials over 0 .. 1, by Clenshaw's recurrence."""
    first, *others, last = coefficients
    twice = t * 4 - 2
    after = t * 0
    value = after + last
    for coefficient in reversed(others):
        value, after = twice * value - after + coefficient, value
    return (twice * value + first) * 0.5 - after


def erfinv(x: TensorValue) -> TensorValue:
    """The inverse of the error function: an approximation, and two steps of Newton's."""
    a = 0.147
    log = ((1 - x) * (1 + x)).log()
    half = log * 0.5 + 2 / (math.pi * a)
    root = apply(SqrtOp, (apply(SqrtOp, half * half - log * (1 / a)) - half).maximum(0.0))
    y = x.lt(0).where(-root, root)
    for _ in range(3):
        slope = (-(y * y)).exp() * (2 / math.sqrt(math.pi))
        # Near the ends the complement tells small differences.
        gap = y.abs().lt(1).where(apply(ErfOp, y) - x, _gap(x, y))
        step = gap / slope
        y = step.abs().lt(math.inf).where(y - step / (1 + y * step), y)
    return x.abs().eq(1).where(x * math.inf, y)


def _gap(x: TensorValue, y: TensorValue) -> TensorValue:
    """erf(y) - x by the complements of their sizes."""
    gap = (1 - x.abs()) - erfc(y.abs())
    return x.lt(0).where(-gap, gap)


_LANCZOS = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def lgamma(x: TensorValue) -> TensorValue:
    """log |gamma(x)|, by Lanczos' sum; below a half by reflection."""
    # Next to one and two the terms cancel.
    x, element = x.cast(f64), x.element
    size = x.lt(0.5).where(1 - x, x) - 1
    total = size * 0 + 0.99999999999980993
    for number, coefficient in enumerate(_LANCZOS, 1):
        total = total + coefficient / (size + number)
    t = size + (len(_LANCZOS) - 0.5)
    large = (size + 0.5) * t.log() - t + total.log() + 0.5 * math.log(2 * math.pi)
    # The distance to the nearest integer keeps its digits near one.
    sine = ((x - x.round()) * math.pi).sin()
    low = math.log(math.pi) - sine.abs().log() - large
    found = x.lt(0.5).where(low, large)
    return x.abs().eq(math.inf).where(x.abs(), found).cast(element)


def digamma(x: TensorValue) -> TensorValue:
    """The derivative of log gamma: an asymptotic series behind ten steps, and reflection."""
    is_low = x.lt(0.0)
    y = is_low.where(1 - x, x)
    before = y * 0
    for number in range(10):
        before = before - 1 / (y + number)
    z = 1 / (y + 10)
    square = z * z
    series = square * 0
    for coefficient in (691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12):
        series = (series - coefficient) * square
    value = before + (y + 10).log() - z * 0.5 - series
    # The distance to the nearest pole keeps its digits near one.
    part = (x - x.round()) * math.pi
    reflected = value - part.cos() / part.sin() * math.pi
    value = x.eq(math.inf).where(x, value)
    # On both sides of zero it grows without bound, to either side.
    value = x.eq(0.0).where(-1 / x, value)
    pole = is_low & x.eq(x.floor())
    return pole.where(x * math.nan, is_low.where(reflected, value))


_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_FAR = (
    0.39894228,
    0.01328592,
    0.00225319,
    -0.00157565,
    0.00916281,
    -0.02057706,
    0.02635537,
    -0.01647633,
    0.00392377,
)


def bessel_i0(x: TensorValue, *, scaled: bool = False) -> TensorValue:
    """The modified Bessel function of order zero, or it times exp(-|x|), to seven digits."""
    size = x.abs()
    inner = _polynomial(size * size * (1 / 3.75**2), _NEAR)
    large = size.maximum(3.75)
    outer = _polynomial(3.75 / large, _FAR) / apply(SqrtOp, large)
    if scaled:
        inner = inner * (-size).exp()
    else:
        outer = outer * large.exp()
    return size.lt(3.75).where(inner, outer)


def _polynomial(x: TensorValue, coefficients: tuple[float, ...]) -> TensorValue:
    total = x * 0 + coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def neighbor(a: TensorValue, b: TensorValue) -> TensorValue:
    """
    The neighbor of an f32 in the direction of another: in f64, a little more than half of its
    distance away, and rounded.
    """
    x, y = a.cast(f64), b.cast(f64)
    step = (x.abs() * (1.25 * 2.0**-24)).maximum(2.0**-149)
    moved = y.gt(x).where(x + step, x - step).cast(f32)
    largest = (2 - 2.0**-23) * 2.0**127
    moved = a.eq(math.inf).where(TensorValue.number(a.builder, largest, f32), moved)
    moved = a.eq(-math.inf).where(TensorValue.number(a.builder, -largest, f32), moved)
    found = a.eq(b).where(b, moved)
    return (a.ne(a) | b.ne(b)).where(a + b, found)
