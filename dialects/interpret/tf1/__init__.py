"""
Reference semantics of the tf1 dialect: one kernel an operator, written from TensorFlow's
documentation, and the execution of graphs with control flow in them.

A value is a numpy array; a handle is the object behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.types import element_type, numpy_dtype
from lowerdeck.dialects.interpret.tf1 import (
    array,
    functions,
    gradients,
    image,
    linear,
    math,
    recurrent,
    reduce,
    tensor_array,
    tensor_list,
    variables,
)
from lowerdeck.dialects.interpret.tf1.registry import KERNELS
from lowerdeck.dialects.tf1.attributes import CONTROL, RESOURCE, VARIANT
from lowerdeck.dialects.tf1.ops import Tf1Op

__all__ = ["has_kernel", "run_op"]

# Importing a topic registers its kernels.
_TOPICS = (
    array,
    functions,
    gradients,
    image,
    linear,
    math,
    recurrent,
    reduce,
    tensor_array,
    tensor_list,
    variables,
)


def has_kernel(op_type: str) -> bool:
    """True if an operator can be run."""
    return op_type in KERNELS


def run_op(op: Operation, args: Sequence[Any], run_region: object = None) -> list[Any]:
    """
    The results of an op of the tf1 dialect for the values of its operands, None for control.

    InterpretationError if it has no kernel, or its inputs are not what it takes. The operators of
    control flow have none: they mean something only in a graph.
    """
    if not isinstance(op, Tf1Op) or (function := KERNELS.get(op.op_type)) is None:
        raise InterpretationError(f"'{op.name}' has no reference")
    data = [a for a, v in zip(args, op.operands, strict=True) if v.type != CONTROL]
    try:
        with np.errstate(all="ignore"):
            found = function(op, data)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise InterpretationError(f"cannot be run: {error}") from error
    outputs = list(cast(tuple[Any, ...], found)) if isinstance(found, tuple) else [found]
    types = [value.type for value in op.outputs]
    if len(outputs) != len(types):
        raise InterpretationError(f"made {len(outputs)} outputs, expected {len(types)}")
    checked = [_checked(value, type_) for value, type_ in zip(outputs, types, strict=True)]
    return [*checked, *[None] * (len(op.results) - len(types))]


def _checked(value: Any, type_: Attribute) -> Any:
    """The value as an array of the element type that is declared."""
    if type_ in (RESOURCE, VARIANT) or isinstance(value, tensor_array.TensorArray):
        return value
    array = np.asarray(value)
    if array.dtype != (expected := numpy_dtype(element_type(type_))):
        raise InterpretationError(f"gave {array.dtype}, declared {expected}")
    return array
