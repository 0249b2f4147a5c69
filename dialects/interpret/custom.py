"""The meaning of operators from outside, which their plugins give in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.core.operators import OPERATORS, CustomOperator, Parameters
from lowerdeck.dialects.interpret.errors import InterpretError


def operator_named(name: str) -> CustomOperator:
    """The operator; InterpretError if no plugin has defined it."""
    if name not in OPERATORS:
        raise InterpretError(f"no plugin defines {name}; load the one that does")
    return OPERATORS[name]


def compute(
    operator: CustomOperator, arrays: Sequence[NDArray[Any]], parameters: Parameters
) -> list[NDArray[Any]]:
    """The results for the values of all inputs; InterpretError names the operator."""
    try:
        results = list(operator.compute([_read_only(array) for array in arrays], parameters))
    except Exception as error:  # whatever the code of a plugin raises
        text = f"{operator.name}: its meaning in numpy fails: {type(error).__name__}: {error}"
        raise InterpretError(text) from error
    if len(results) != len(operator.outputs):
        expected = len(operator.outputs)
        raise InterpretError(f"{operator.name} computes {len(results)} results, not {expected}")
    return [np.asarray(result) for result in results]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
