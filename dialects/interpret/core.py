"""
The meaning of every `core` op without regions, in numpy.

Integers are exact and wrap around. Narrow floats (f16, bf16) are computed in float32; sums, matrix
products and transcendental functions in float64 and in a fixed order without BLAS. Each result is
rounded once. So the values are the same from run to run, and constant folding may use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

# These modules register the meaning of ops.
from lowerdeck.dialects.interpret import core_custom as core_custom
from lowerdeck.dialects.interpret import core_elementwise as core_elementwise
from lowerdeck.dialects.interpret import core_linear as core_linear
from lowerdeck.dialects.interpret import core_movement as core_movement
from lowerdeck.dialects.interpret import core_reduce as core_reduce
from lowerdeck.dialects.interpret import core_suppress as core_suppress
from lowerdeck.dialects.interpret.core_numbers import EVALUATORS, Array, Symbols
from lowerdeck.dialects.interpret.errors import InterpretError, describe


def evaluate(op: Operation, args: Sequence[Array], symbols: Symbols) -> list[Array]:
    """
    The results of `op` for the values of its (present) operands.

    `symbols` holds every dimension symbol that the op's properties use. InterpretError if the op
    has no meaning here or its operands do not fit at run time (an index out of range, ...).
    """
    evaluator = EVALUATORS.get(type(op))
    if evaluator is None:
        raise InterpretError(f"{describe(op)}: no meaning in the core interpreter")
    try:
        with np.errstate(all="ignore"):
            results = evaluator(op, args, symbols)
    except KeyError as error:
        raise InterpretError(f"{describe(op)}: the symbol {error} has no value here") from error
    except (InterpretError, TypeError, ValueError, IndexError) as error:
        raise InterpretError(f"{describe(op)}: {error}") from error
    if not isinstance(results, tuple):
        results = (results,)
    return [np.asarray(result) for result in cast(tuple[Any, ...], results)]


def is_evaluable(op: Operation) -> bool:
    """True if `evaluate` knows the op."""
    return type(op) in EVALUATORS
