"""Functions that lose digits if they are written as their definitions."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.elementwise import SinhOp, UnaryOp
from lowerdeck.dialects.core.types import f64
from lowerdeck.passes.legalize.tensor_value import TensorValue


def apply(function: type[UnaryOp], x: TensorValue) -> TensorValue:
    """A function of one element that `TensorValue` has no method for."""
    return TensorValue(x.builder, x.builder.add(function(x.value)))


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
