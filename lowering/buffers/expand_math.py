"""
`expand-math`: f32 functions of the C library become straight-line arithmetic, which has a vector
form for every op.

Errors are the largest found over all f32, in units in the last place, with a fused multiply-add and
without. exp is right where its result is subnormal and zero from 2^-126.5 down.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.core.types import f32, f64
from lowerdeck.lowering.buffers.expansion import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    ROUND,
    Constants,
    Expansion,
    mark_exact,
)
from lowerdeck.lowering.buffers.functions_by_f64 import BY_F64
from lowerdeck.lowering.buffers.functions_of_f64 import OF_F64
from lowerdeck.lowering.nests.lower import remove_unused

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


def _reduced(e: Expansion, x: SSAValue, shifted: SSAValue, scale: float) -> SSAValue:
    """x - n ln(2) / scale for `shifted` = ROUND + n."""
    n = e.minus(shifted, e.real(ROUND))
    rest = e.fma(n, e.real(-LN2_HIGH / scale), x)
    return e.fma(n, e.real(-LN2_LOW / scale), rest)


def expand_exp(e: Expansion, x: SSAValue) -> SSAValue:
    """
    2^n p(x - n ln 2) with n = x / ln 2 rounded, at most 127: what is above overflows in p.

    0.92 ulp, 1.15 without fma.
    """
    # Here 2^n is zero already; so the rest needs no care.
    x = e.add(arith.MaximumfOp(x, e.real(-88.0)))
    shifted = e.fma(x, e.real(LOG2_E), e.real(ROUND))
    shifted = e.add(arith.MinimumfOp(shifted, e.real(ROUND + EXPONENT_BIAS)))
    p = e.polynomial(_reduced(e, x, shifted, 1.0), EXP_LONG)
    return e.add(arith.MulfOp(p, e.power_of_two(shifted)))


def _small_exp(e: Expansion, x: SSAValue, factor: float) -> tuple[SSAValue, SSAValue]:
    """p and s with exp(factor x) = p s, for a power of two and |factor x| < 87."""
    shifted = e.fma(x, e.real(LOG2_E * factor), e.real(ROUND))
    coefficients = [c * factor**k for k, c in enumerate(EXP_SHORT)]
    p = e.polynomial(_reduced(e, x, shifted, factor), coefficients)
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


Expand: TypeAlias = Callable[..., SSAValue]

EXPANSIONS: Mapping[tuple[type[Operation], Attribute], Expand] = {
    (math.ExpOp, f32): expand_exp,
    (math.TanhOp, f32): expand_tanh,
    (math.ErfOp, f32): expand_erf,
    (math.LogOp, f32): expand_log,
    **{(op, f32): expand for op, expand in BY_F64.items()},
    **{(op, f64): expand for op, expand in OF_F64.items()},
}


def expand_function(function: FuncOp) -> None:
    """Expand all of a kernel."""
    constants, is_expanded = Constants(function), False
    for op in list(function.walk()):
        if not op.results or (expand := EXPANSIONS.get((type(op), op.results[0].type))) is None:
            continue
        is_expanded = True
        expansion = Expansion(constants, f32 if op.results[0].type == f32 else f64)
        result = expand(expansion, *op.operands)
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


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """
    Rewrite functions in every kernel to arithmetic, which has a vector form for every op.

    Of f32, all of them: exp, tanh, erf and log are at most 1.4 ulp off, which makes
    1 / (1 + exp(-x)) at most 2.5 ulp off; the others are computed in f64, and rounded once. Of f64,
    exp, log, tanh, sin, cos and atan, at most 1.5 ulp off; the others stay as they are.

    NaN, infinities and the sign of zero come out as the C library has them.
    """

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                expand_function(function)
