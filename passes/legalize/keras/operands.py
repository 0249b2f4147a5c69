"""Operands of several types: the type of the result, in Keras' rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    bf16,
    element_named,
    element_of,
    element_type,
    f16,
    f32,
    i64,
    is_float,
    numpy_dtype,
)
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


def as_float(x: TensorValue) -> TensorValue:
    """Floats, which integers become."""
    return x if is_float(x.element) else x.cast(f32)


def truth(x: TensorValue) -> TensorValue:
    """Truth values; numbers are true unless they are zero."""
    return x if x.element == i1 else x.ne(0)


def named_element(builder: KerasLegalizer, name: Any) -> Attribute:
    """An element type by its name."""
    element = i64 if name == "int" else element_named(name)
    if element is None:
        builder.refuse(f"the type {str(name)[:40]}", "one of numbers")
    return element


def common_type(builder: KerasLegalizer, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values in the type that all of them have in common; floats win over integers."""
    if not values:
        builder.refuse("no arguments", "tensors")
    elements = list(dict.fromkeys(element_type(value) for value in values))
    if len(elements) == 1:
        return list(values)
    element = _promoted(elements)
    return [builder.cast(value, element) for value in values]


def _promoted(elements: Sequence[Attribute]) -> Attribute:
    floats = [element for element in elements if is_float(element)]
    if {f16, bf16} <= set(floats):
        return f32
    if floats:
        return max(floats, key=lambda element: numpy_dtype(element).itemsize)
    if set(elements) == {i1}:
        return i1
    found = np.result_type(*(numpy_dtype(element) for element in elements))
    return f32 if found.kind == "f" else element_of(found)


def inputs(builder: KerasLegalizer, count: int) -> list[TensorValue]:
    """The first `count` arguments, which are tensors, in one type."""
    values = common_type(builder, [builder.input(k) for k in range(count)])
    return [TensorValue(builder, value) for value in values]


def pair(builder: KerasLegalizer) -> tuple[TensorValue, TensorValue]:
    """Two arguments, tensors or numbers, in one type."""
    first = builder.argument(0, "x1", builder.keyword("x"))
    second = builder.argument(1, "x2", builder.keyword("y"))
    return both(builder, first, second)


def both(builder: KerasLegalizer, first: Any, second: Any) -> tuple[TensorValue, TensorValue]:
    """Two tensors, or a tensor and a number, in one type."""
    found = [cast("SSAValue", v) for v in (first, second) if isinstance(v, SSAValue)]
    like = found[0] if found else None
    values = [builder.number_like(value, like) for value in (first, second)]
    one, other = common_type(builder, values)
    return TensorValue.of(builder, one), TensorValue.of(builder, other)
