"""What a model remembers from call to call: inputs that are what outputs were the last time."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.names import STATES, value_names
from lowerdeck.dialects.core.types import element_type, numpy_dtype, static_shape
from lowerdeck.dialects.records import record


@record
class State:
    """One state of a function."""

    before: str
    """The name of the input that holds it."""
    after: str
    """The name of the output that holds it after the call."""
    initial: NDArray[Any]
    """What it holds before the first call."""


def states_of(function: func.FuncOp) -> list[State]:
    """The states of a function, in order."""
    entries = function.attributes.get(STATES)
    if not isinstance(entries, ArrayAttr):
        return []
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    # Where nothing needs what a state was, it is no input any more.
    types = {
        **dict(zip(value_names(function.res_attrs, len(outputs)), outputs, strict=True)),
        **dict(zip(value_names(function.arg_attrs, len(inputs)), inputs, strict=True)),
    }
    return [_state(entry, types) for entry in cast("ArrayAttr[Attribute]", entries)]


def _state(entry: Attribute, types: dict[str, Attribute]) -> State:
    before, after, initial = cast("ArrayAttr[Attribute]", entry).data
    name = cast(StringAttr, before).data
    type_ = types.get(name, types[cast(StringAttr, after).data])
    shape, dtype = static_shape(type_) or (), numpy_dtype(element_type(type_))
    found = isinstance(initial, BlobAttr)
    value = initial.data.array(dtype, shape) if found else np.zeros(shape, dtype)
    return State(name, cast(StringAttr, after).data, value)


def states_in(entries: Attribute | None) -> list[tuple[str, str, bytes | None]]:
    """The names of inputs and outputs that are states, and their first bytes; None for zeros."""
    if not isinstance(entries, ArrayAttr):
        return []
    found: list[tuple[str, str, bytes | None]] = []
    for entry in cast("ArrayAttr[Attribute]", entries):
        before, after, initial = cast("ArrayAttr[Attribute]", entry).data
        data = initial.data.data.tobytes() if isinstance(initial, BlobAttr) else None
        found.append((cast(StringAttr, before).data, cast(StringAttr, after).data, data))
    return found
