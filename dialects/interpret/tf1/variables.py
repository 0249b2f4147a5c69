"""Variables that never change: a handle stands for the value itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.types import element_type, numpy_dtype, static_shape
from lowerdeck.dialects.interpret.tf1.registry import Array, dtype_of, fail, kernel
from lowerdeck.dialects.tf1.ops import VALUE, VARIABLES, Tf1Op, variable_type


@kernel(*sorted(VARIABLES))
def run_variable(op: Tf1Op, _: Sequence[Any]) -> Array:
    """The value, read-only and not copied."""
    value = op.properties.get(VALUE)
    if not isinstance(value, BlobAttr):
        fail("the variable has no value")
    type_ = variable_type(op)
    return value.data.array(numpy_dtype(element_type(type_)), static_shape(type_) or ())


@kernel("ReadVariableOp")
def run_read(_: Tf1Op, args: Sequence[Any]) -> Any:
    """The value that the handle stands for."""
    return args[0]


@kernel("VariableShape")
def run_shape(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The shape of the value."""
    return np.array(args[0].shape, dtype_of(op, "out_type"))


@kernel("IsVariableInitialized", "VarIsInitializedOp")
def run_is_initialized(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Always: what has no value is not in the graph."""
    return np.array(True)
