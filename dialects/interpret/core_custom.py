"""Operators from outside in the interpreter of `core`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.interpret.core_numbers import Array, Symbols, meaning_of
from lowerdeck.dialects.interpret.custom import compute, operator_named


@meaning_of(CustomOp)
def _custom(op: CustomOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, ...]:
    results = compute(operator_named(op.operator.data), args, op.values)
    memory = op.results[len(results) :]  # of workspace, which nothing reads
    sizes = ([dim.evaluate(symbols) for dim in dims_of(value)] for value in memory)
    return (*results, *(np.zeros(size, np.uint8) for size in sizes))
