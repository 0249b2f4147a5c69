"""Operators that run functions, and what counts as true for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import Array, kernel, scalar
from lowerdeck.dialects.tf1.functions import CALLS, CASES, IFS, Use, uses_of
from lowerdeck.dialects.tf1.ops import Tf1Op

Call = Callable[[str, Sequence[Any]], Sequence[Any]]
"""Runs the function of a symbol."""


def is_true(value: Array) -> bool:
    """True for a scalar that is not zero or empty, and for another tensor that has elements."""
    if value.ndim:
        return value.size > 0
    return bool(value.item() if value.dtype == object else value != 0)


@kernel("ToBool")
def run_to_bool(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Whether a value counts as true."""
    return np.array(is_true(args[0]))


def run_functions(op: Tf1Op, args: Sequence[Any], call: Call) -> list[Any]:
    """The results of a node that runs functions."""
    uses = uses_of(op.signature, op.properties)

    def run(use: Use, values: Sequence[Any]) -> list[Any]:
        return list(call(use.function, values))

    if op.op_type in CALLS:
        return run(uses[0], args)
    if op.op_type in IFS:
        return run(uses[0] if is_true(args[0]) else uses[1], args[1:])
    if op.op_type in CASES:
        index = scalar(args[0])
        return run(uses[index] if 0 <= index < len(uses) else uses[-1], args[1:])
    values = list(args)
    while is_true(run(uses[0], values)[0]):
        values = run(uses[1], values)
    return values
