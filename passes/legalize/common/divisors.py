"""Divisors of integers."""

from __future__ import annotations

from lowerdeck.dialects.core.types import is_unsigned
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

_STEPS = 92
"""No two numbers of 64 bits need more."""


def common_divisor(builder: Legalizer, a: TensorValue, b: TensorValue) -> TensorValue:
    """The greatest common divisor of integers of one shape, by Euclid's steps."""

    def step(inner: CoreBuilder, number: Expr, state: State) -> tuple[State, State]:
        del inner, number
        x, y = state
        is_done = y.eq(0)
        rest = PAIRS["rem"](x, is_done.where(x * 0 + 1, y))
        return (is_done.where(x, y), is_done.where(y, rest)), ()

    last, _ = run_steps(builder, Expr.const(_STEPS), [a.value, b.value], step)
    found = TensorValue(builder, last[0])
    return found if is_unsigned(found.element) else found.abs()
