"""Operators that make tensors from numbers and sizes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.types import dims_of, i64, is_float
from lowerdeck.passes.legalize.generators import range_of
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.selection import one_hot
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Fill")
def legalize_fill(lower: Tf1Legalizer) -> Results:
    value = lower.reshape(lower.operand("value"), [])
    return [lower.broadcast(value, sizes_of(lower, lower.operand("dims"), "the shape"))]


@legalizes("Empty")
def legalize_empty(lower: Tf1Legalizer) -> Results:
    """Zeros, also where TensorFlow leaves what is in memory."""
    lower.attrs.ignore("init")
    shape = sizes_of(lower, lower.operand("shape"), "the shape")
    return [lower.broadcast(lower.scalar(0, lower.result_element()), shape)]


@legalizes("ZerosLike")
def legalize_zeros_like(lower: Tf1Legalizer) -> Results:
    return [_filled(lower, lower.operand("x"), 0)]


@legalizes("OnesLike")
def legalize_ones_like(lower: Tf1Legalizer) -> Results:
    return [_filled(lower, lower.operand("x"), 1)]


def _filled(lower: Tf1Legalizer, like: SSAValue, number: int) -> SSAValue:
    return lower.broadcast(lower.scalar(number, like), dims_of(like))


@legalizes("Range")
def legalize_range(lower: Tf1Legalizer) -> Results:
    """Floats are counted in their own type, and each is the one before plus delta."""
    parts = [lower.reshape(value, []) for value in lower.op.inputs]
    start, limit, delta = (Quantity.of(lower, part) for part in parts)
    if not is_float(start.element):
        return [range_of(lower, start, limit, delta)]
    steps = ((limit - start) / delta).abs().ceil().cast(i64)
    places = Quantity.iota(lower, size_of(lower, steps.value, "the length"))
    terms = places.eq(0).where(start, delta)
    return [lower.add(CumulativeOp("sum", terms.value, 0))]


@legalizes("LinSpace")
def legalize_lin_space(lower: Tf1Legalizer) -> Results:
    """start + i * step, and at the end `stop` itself; a lone element is `start`."""
    start, stop = (Quantity.of(lower, lower.operand(name)) for name in ("start", "stop"))
    count = size_of(lower, lower.operand("num"), "the length")
    if count == 1:
        return [start.reshape([1]).value]
    last = Quantity.dim(lower, count - 1)
    places = Quantity.iota(lower, count)
    inner = start + (stop - start) / last.cast(start.element) * places.cast(start.element)
    ends = places.eq(last).where(stop, inner)
    return [places.eq(0).where(start, ends).value]


@legalizes("OneHot")
def legalize_one_hot(lower: Tf1Legalizer) -> Results:
    """Indices outside of 0 .. depth - 1 select nothing."""
    indices = Quantity.of(lower, lower.operand("indices")).cast(i64)
    depth = size_of(lower, lower.operand("depth"), "the depth")
    axis = lower.axis(lower.attrs.int("axis"), len(indices.dims) + 1)
    hot = one_hot(indices, depth, axis)
    on, off = (lower.reshape(lower.operand(name), []) for name in ("on_value", "off_value"))
    return [lower.select(hot.value, on, off)]
