"""Operators that make tensors from numbers and sizes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.types import dims_of, i64, is_float
from lowerdeck.passes.legalize.common.generators import range_of
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Fill")
def legalize_fill(builder: Tf1Legalizer) -> Results:
    value = builder.reshape(builder.operand("value"), [])
    return [builder.broadcast(value, sizes_of(builder, builder.operand("dims"), "the shape"))]


@legalizes("Empty")
def legalize_empty(builder: Tf1Legalizer) -> Results:
    """Zeros, also where TensorFlow leaves what is in memory."""
    builder.attrs.ignore("init")
    shape = sizes_of(builder, builder.operand("shape"), "the shape")
    return [builder.broadcast(builder.scalar(0, builder.result_element()), shape)]


@legalizes("ZerosLike")
def legalize_zeros_like(builder: Tf1Legalizer) -> Results:
    return [_filled(builder, builder.operand("x"), 0)]


@legalizes("OnesLike")
def legalize_ones_like(builder: Tf1Legalizer) -> Results:
    return [_filled(builder, builder.operand("x"), 1)]


def _filled(builder: Tf1Legalizer, like: SSAValue, number: int) -> SSAValue:
    return builder.broadcast(builder.scalar(number, like), dims_of(like))


@legalizes("Range")
def legalize_range(builder: Tf1Legalizer) -> Results:
    """Floats are counted in their own type, and each is the one before plus delta."""
    parts = [builder.reshape(value, []) for value in builder.op.inputs]
    start, limit, delta = (TensorValue.of(builder, part) for part in parts)
    if not is_float(start.element):
        return [range_of(builder, start, limit, delta)]
    steps = ((limit - start) / delta).abs().ceil().cast(i64)
    places = TensorValue.iota(builder, size_of(builder, steps.value, "the length"))
    terms = places.eq(0).where(start, delta)
    return [builder.add(CumulativeOp("sum", terms.value, 0))]


@legalizes("LinSpace")
def legalize_lin_space(builder: Tf1Legalizer) -> Results:
    """start + i * step, and at the end `stop` itself; a lone element is `start`."""
    start, stop = (TensorValue.of(builder, builder.operand(name)) for name in ("start", "stop"))
    count = size_of(builder, builder.operand("num"), "the length")
    if count == 1:
        return [start.reshape([1]).value]
    last = TensorValue.dim(builder, count - 1)
    places = TensorValue.iota(builder, count)
    inner = start + (stop - start) / last.cast(start.element) * places.cast(start.element)
    ends = places.eq(last).where(stop, inner)
    return [places.eq(0).where(start, ends).value]


@legalizes("OneHot")
def legalize_one_hot(builder: Tf1Legalizer) -> Results:
    """Indices outside of 0 .. depth - 1 select nothing."""
    indices = TensorValue.of(builder, builder.operand("indices")).cast(i64)
    depth = size_of(builder, builder.operand("depth"), "the depth")
    axis = builder.axis(builder.attrs.int("axis"), len(indices.dims) + 1)
    hot = one_hot(indices, depth, axis)
    on, off = (builder.reshape(builder.operand(name), []) for name in ("on_value", "off_value"))
    return [builder.select(hot.value, on, off)]
