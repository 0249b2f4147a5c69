"""Conversion between element types, with the saturation that narrow floats have in ONNX."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
from xdsl.dialects.builtin import Float8E8M0FNUType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import MaxOp, MinOp
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    StringType,
    element_type,
    f32,
    i32,
    is_integer,
    numpy_dtype,
)
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.movement import bitcast
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes


@legalizes("Cast")
def legalize_cast(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The value in the element type `to`."""
    if op.since_version == 1:
        to = onnx.TensorProto.DataType.Value(builder.attrs.string("to"))
    else:
        to = builder.attrs.int("to")
    saturate = _saturates(op, builder)
    return [convert(builder, builder.operand(0), builder.element(to), saturate=saturate)]


@legalizes("CastLike")
def legalize_cast_like(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The value in the element type of the second operand."""
    to, saturate = element_type(builder.operand(1)), _saturates(op, builder)
    return [convert(builder, builder.operand(0), to, saturate=saturate)]


@legalizes("BitCast")
def legalize_bitcast(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The bits of the value as elements of type `to`."""
    return [bitcast(builder, builder.operand(0), builder.element(builder.attrs.int("to")))]


def _saturates(op: OnnxOp, builder: OnnxLegalizer) -> bool:
    builder.attrs.ignore("round_mode")  # it concerns float8e8m0 alone, which is refused
    return "saturate" not in op.schema.attributes or builder.attrs.flag("saturate")


def convert(
    builder: OnnxLegalizer, value: SSAValue, to: Attribute, *, saturate: bool = True
) -> SSAValue:
    """
    The value in another element type.

    A narrow type is read through f32 (or i32), which holds all of its values. A narrow float is
    written saturated to its finite range; without `saturate`, what exceeds it becomes an infinity
    or, in types without one, NaN. Types without either always saturate.
    """
    source = element_type(value)
    if isinstance(source, StringType) or isinstance(to, StringType | Float8E8M0FNUType):
        builder.refuse(f"a conversion of {source} to {to}", "types of numbers")
    if source == to:
        return value
    if source not in COMPUTABLE:
        value = builder.cast(value, i32 if is_integer(source) else f32)
    if to in COMPUTABLE or is_integer(to):
        return builder.cast(value, to)
    value = builder.cast(value, f32)
    if saturate or not _has_overflow(to):
        limit = _largest(to)
        value = builder.add(MinOp(value, builder.scalar(limit, f32)))
        value = builder.add(MaxOp(value, builder.scalar(-limit, f32)))
    return builder.cast(value, to)


def _has_overflow(element: Attribute) -> bool:
    """True if the type has an infinity or NaN."""
    with np.errstate(all="ignore"):
        return not np.isfinite(np.array(np.inf).astype(numpy_dtype(element)).astype(np.float32))


def _largest(element: Attribute) -> float:
    return float(cast(Any, ml_dtypes.finfo(numpy_dtype(element))).max)
