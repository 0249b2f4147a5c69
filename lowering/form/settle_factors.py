"""
`settle-factors`: real factors of requantization as integers.

Rounding, with a product in f64 or by an integer, is a function of the sum that never decreases: it
is known by where it steps. In a few limits it has a few hundred steps, and a multiplier with which
all of them lie at the same sums gives the same integers for every sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.enums import Rounding
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.types import bit_width, dims_of, element_type, i32, is_unsigned
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

BITS: Exact[int] = 31
"""Of a multiplier, and of the size of a sum but for the lowest."""
STEPS: Exact[int] = 1 << 16
"""As many as limits of 16 bits have on either side."""
EXPONENTS: Exact[tuple[int, int]] = (-31, 30)
"""Of `core.requantize`."""

HALF: Exact[float] = 0.5
"""From an integer to where the next one begins."""
LEVELS: Exact[int] = 3
"""A sum, the product in it, and the factors of that."""

Factors = tuple[NDArray[np.int32], NDArray[np.int32]]


def multiplier_of(factor: float, steps: int, largest: int) -> tuple[int, int] | None:
    """
    Multiplier m and exponent e so that, for all integers x up to `largest` (at most 2^31) and down
    to -`largest`, (x m + 2^(30-e)) / 2^(31-e), rounded down, is x * factor in f64, rounded to the
    nearest integer, halves away from zero, or both are at least `steps`, or at most -`steps`.

    For n from 1 to `steps` let t be the least x >= 0 whose product in f64 is at least n - 1/2:
    rounded, that of x is at least n if and only if x >= t, and at most -n if and only if x <= -t,
    as the product in f64 of -x is that of x with another sign. With a = (2n - 1) 2^(30-e) the other
    quotient is at least n if and only if x m >= a, and at most -n if and only if -x m > a. So all
    are equal if (t - 1) m < a < t m for each n; of t above `largest`, `largest` m < a. These say
    between which integers m is. None if there is none, or e is not from -31 to 30.
    """
    if not math.isfinite(factor) or factor < 0:
        return None
    exponent = math.frexp(factor)[1]
    halves = np.arange(1, steps + 1) - HALF
    with np.errstate(over="ignore", divide="ignore"):
        near = np.minimum(np.ceil(halves / factor), 2.0 * largest + 2)
    first = np.full(steps, -1, np.int64)
    for distance in (1, 0, -1):
        x = np.maximum(near + distance, 0)
        first = np.where(x * factor >= halves, x.astype(np.int64), first)
    is_reached = (first >= 0) & (first <= largest)
    count = int(is_reached.sum())
    if count == 0:
        return 0, 0
    if not EXPONENTS[0] <= exponent <= EXPONENTS[1]:
        return None
    unit, n = 1 << (BITS - 1 - exponent), np.arange(1, count + 1)
    t, a = first[:count], (2 * n - 1) * unit
    least = int((a // t).max()) + 1
    # No n has a limit above where t is 1: its result at 0 is less than n whatever m is.
    above = (-(-a[t > 1] // (t[t > 1] - 1))).tolist()
    if count < steps:
        above.append(-(-(2 * count + 1) * unit // largest))
    most = min(above, default=1 << BITS) - 1
    return (least, exponent) if least <= min(most, (1 << BITS) - 1) else None


def largest_of(value: SSAValue, levels: int = LEVELS) -> int:
    """A limit of the size of integers of at most 32 bits, by so many levels of what makes them."""
    element, op = element_type(value), value.owner
    limit = 1 << (bit_width(element) - (0 if is_unsigned(element) else 1))
    if levels == 0:
        return limit
    if isinstance(op, ConstantOp) and (array := _known(value)) is not None:
        return int(np.abs(array.astype(np.int64)).max(initial=0))
    if isinstance(op, AddOp):
        return min(limit, sum(largest_of(term, levels - 1) for term in op.operands))
    if isinstance(op, MatmulOp) and op.packing is None:
        depth = dims_of(op.lhs)[-1].value
        sizes = [largest_of(factor, levels - 1) for factor in (op.lhs, op.rhs)]
        for number, zero in enumerate(op.zeros):
            sizes[number] += largest_of(zero, levels - 1)
        if depth is not None:
            return min(limit, depth * sizes[0] * sizes[1])
    return limit


def _known(value: SSAValue) -> NDArray[np.generic] | None:
    try:
        return constant_array(value)
    except ElidedBlobError:
        return None


class SettleFactors(Pattern[Factors]):
    """requantize real(x, f) -> requantize single(x, m, e) [f constant; the same for every sum]"""

    name = "settle-factors"
    roots = (RequantizeOp,)

    def match(self, op: Operation) -> Match[Factors] | None:
        assert isinstance(op, RequantizeOp)
        if op.rounding.data is not Rounding.REAL or element_type(op.input) != i32:
            return None
        factors, zero = _known(op.multiplier), op.zero.data
        steps = max(op.high.data - zero, zero - op.low.data, 0)
        if factors is None or steps > STEPS:
            return None
        largest, pairs = largest_of(op.input), list[tuple[int, int]]()
        for factor in factors.reshape(-1).tolist():
            pair = multiplier_of(factor, steps, largest)
            if pair is None:
                return None
            pairs.append(pair)
        numbers = np.array(pairs, np.int32).reshape(-1, 2)
        parts = [numbers[:, part].reshape(factors.shape) for part in range(2)]
        return Match((op,), "integers step where the products do", (parts[0], parts[1]))

    def rewrite(self, match: Match[Factors], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, RequantizeOp)
        multiplier, exponent = (
            rewriter.insert_before(op, ConstantOp.of(part.copy())).result for part in match.data
        )
        limits = {"zero": op.zero.data, "low": op.low.data, "high": op.high.data}
        rounding = Rounding.SINGLE
        new = RequantizeOp(rounding, op.input, multiplier, exponent, **limits, to=op.to)
        rewriter.replace(op, new)


class SettleFactorsPass(ModulePass):
    """
    requantize real(x, f) -> requantize single(x, m, e) [f constant; the same for every sum that is
    possible; targets without vectors]

    Microcontrollers multiply floats of 64 bits in software. The integers m are searched between the
    limits at which a result would be another one.
    """

    name = "settle-factors"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_named(options_of(ctx).target).lanes == 1:
            pattern = SettleFactors()
            apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
