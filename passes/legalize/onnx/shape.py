"""Shapes as values, and operators that change only the shape."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import (
    Axes,
    extended_dims,
    kept_dims,
    length_of,
    resolved_shape,
    without_ones,
)


@legalizes("Identity")
def legalize_identity(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    return [builder.operand(0)]


@legalizes("Shape")
def legalize_shape(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """`start` and `end` (from version 15) select dimensions as a Python slice does."""
    dims = dims_of(builder.operand(0))
    if op.since_version >= 15:
        dims = dims[builder.attrs.int("start") : builder.attrs.opt_int("end")]
    return [builder.dims(dims)]


@legalizes("Size")
def legalize_size(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    return [builder.dims([product(dims_of(builder.operand(0)))], [])]


@legalizes("Reshape", until=4)
def legalize_reshape_attribute(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The shape is an attribute in version 1."""
    x = builder.operand("data")
    builder.attrs.ignore("consumed_inputs")
    shape = builder.dims(builder.attrs.ints("shape"))
    return [builder.reshape(x, resolved_shape(builder, x, shape, allow_zero=False))]


@legalizes("Reshape", since=5)
def legalize_reshape(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("data")
    allow_zero = op.since_version >= 14 and builder.attrs.flag("allowzero")
    return [builder.reshape(x, resolved_shape(builder, x, builder.operand("shape"), allow_zero))]


@legalizes("Flatten")
def legalize_flatten(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("input")
    axis, rank = builder.attrs.int("axis"), rank_of(x)
    if not -rank <= axis <= rank:
        builder.refuse(f"axis {axis}", f"-{rank} to {rank}")
    return [builder.flatten(x, axis + rank if axis < 0 else axis)]


@legalizes("Squeeze")
def legalize_squeeze(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The axes are an attribute before version 13; without any, dimensions that are one go."""
    x = builder.operand("data")
    axes = _axes(op, builder, rank_of(x))
    if axes is None:
        return [without_ones(builder, x)]
    if axes.known is None:
        return [builder.reshape(x, kept_dims(builder, x, axes))]
    for axis in axes.known:
        if (size := dims_of(x)[axis].value) not in (None, 1):
            builder.refuse(f"dimension {axis} of {size}", "1")
    return [builder.squeeze(x, axes.known)]


def _axes(op: OnnxOp, builder: OnnxLegalizer, rank: int) -> Axes | None:
    if op.since_version < 13:
        numbers = builder.attrs.opt_ints("axes")
        return None if numbers is None else Axes(builder.axes(numbers, rank))
    value = builder.input("axes")
    return None if value is None else Axes.of(builder, value, rank)


@legalizes("Unsqueeze")
def legalize_unsqueeze(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The axes count in the result."""
    x = builder.operand("data")
    if op.since_version < 13:
        numbers = builder.attrs.ints("axes")
        return [builder.unsqueeze(x, builder.axes(numbers, rank_of(x) + len(numbers)))]
    value = builder.operand("axes")
    axes = Axes.of(builder, value, rank_of(x) + length_of(builder, value, "axes"))
    if axes.known is None:
        return [builder.reshape(x, extended_dims(builder, x, axes))]
    return [builder.unsqueeze(x, axes.known)]
