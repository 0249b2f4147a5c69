"""Shapes as values, and operators that change only the shape."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import (
    Axes,
    axes_of_one,
    extended_dims,
    kept_dims,
    length_of,
    resolved_shape,
)


@legalizes("Identity")
def legalize_identity(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    return [lower.operand(0)]


@legalizes("Shape")
def legalize_shape(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """`start` and `end` (from version 15) select dimensions as a Python slice does."""
    dims = dims_of(lower.operand(0))
    if op.since_version >= 15:
        dims = dims[lower.attrs.int("start") : lower.attrs.opt_int("end")]
    return [lower.dims(dims)]


@legalizes("Size")
def legalize_size(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    return [lower.dims([product(dims_of(lower.operand(0)))], [])]


@legalizes("Reshape", until=4)
def legalize_reshape_attribute(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The shape is an attribute in version 1."""
    x = lower.operand("data")
    lower.attrs.ignore("consumed_inputs")
    shape = lower.dims(lower.attrs.ints("shape"))
    return [lower.reshape(x, resolved_shape(lower, x, shape, allow_zero=False))]


@legalizes("Reshape", since=5)
def legalize_reshape(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("data")
    allow_zero = op.since_version >= 14 and lower.attrs.flag("allowzero")
    return [lower.reshape(x, resolved_shape(lower, x, lower.operand("shape"), allow_zero))]


@legalizes("Flatten")
def legalize_flatten(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("input")
    axis, rank = lower.attrs.int("axis"), rank_of(x)
    if not -rank <= axis <= rank:
        lower.refuse(f"axis {axis}", f"-{rank} to {rank}")
    return [lower.flatten(x, axis + rank if axis < 0 else axis)]


@legalizes("Squeeze")
def legalize_squeeze(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The axes are an attribute before version 13; without any, all dimensions of one go."""
    x = lower.operand("data")
    axes = _axes(op, lower, rank_of(x))
    if axes is None:
        return [lower.squeeze(x, axes_of_one(lower, x))]
    if axes.known is None:
        return [lower.reshape(x, kept_dims(lower, x, axes))]
    for axis in axes.known:
        if (size := dims_of(x)[axis].value) not in (None, 1):
            lower.refuse(f"dimension {axis} of {size}", "1")
    return [lower.squeeze(x, axes.known)]


def _axes(op: OnnxOp, lower: OnnxLegalizer, rank: int) -> Axes | None:
    if op.since_version < 13:
        numbers = lower.attrs.opt_ints("axes")
        return None if numbers is None else Axes(lower.axes(numbers, rank))
    value = lower.input("axes")
    return None if value is None else Axes.of(lower, value, rank)


@legalizes("Unsqueeze")
def legalize_unsqueeze(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The axes count in the result."""
    x = lower.operand("data")
    if op.since_version < 13:
        numbers = lower.attrs.ints("axes")
        return [lower.unsqueeze(x, lower.axes(numbers, rank_of(x) + len(numbers)))]
    value = lower.operand("axes")
    axes = Axes.of(lower, value, rank_of(x) + length_of(lower, value, "axes"))
    if axes.known is None:
        return [lower.reshape(x, extended_dims(lower, x, axes))]
    return [lower.unsqueeze(x, axes.known)]
