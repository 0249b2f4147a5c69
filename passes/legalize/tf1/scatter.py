"""Operators that write elements to places that a tensor names, and sums over such places."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.base import require
from lowerdeck.dialects.core.elementwise import DivOp, NegOp, SqrtOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    i1,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("ScatterNd")
def legalize_scatter_nd(builder: Tf1Legalizer) -> Results:
    """Updates of one place add up; the rest is zero."""
    indices, updates = builder.operand("indices"), builder.operand("updates")
    if element_type(updates) == i1:
        builder.refuse("a sum of truth values", "numbers")
    shape = sizes_of(builder, builder.operand("shape"), "the shape")
    zeros = builder.broadcast(builder.scalar(0, updates), shape)
    return [builder.add(ScatterNdOp(zeros, indices, updates, "add"))]


_SCATTERS = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "ScatterNdNonAliasingAdd": "add",
}


@legalizes(*_SCATTERS)
def legalize_tensor_scatter(builder: Tf1Legalizer) -> Results:
    x, indices, updates = builder.op.inputs
    if builder.op_type == "TensorScatterSub":
        updates = builder.add(NegOp(updates))
    return [builder.add(ScatterNdOp(x, indices, updates, _SCATTERS[builder.op_type]))]


@legalizes("InplaceUpdate", "InplaceAdd", "InplaceSub")
def legalize_inplace(builder: Tf1Legalizer) -> Results:
    """Rows of `x` replaced, or with `v` added or subtracted."""
    x, rows, updates = (builder.operand(name) for name in ("x", "i", "v"))
    kind = "none" if builder.op_type == "InplaceUpdate" else "add"
    if builder.op_type == "InplaceSub":
        updates = builder.add(NegOp(updates))
    places = TensorValue.of(builder, builder.reshape(rows, [product(dims_of(rows)), 1])).cast(i64)
    updates = builder.reshape(updates, [places.dims[0], *dims_of(x)[1:]])
    # TensorFlow counts rows around.
    places = places % TensorValue.dim(builder, dims_of(x)[0])
    return [builder.add(ScatterNdOp(x, places.value, updates, kind))]


@legalizes("SparseToDense")
def legalize_sparse_to_dense(builder: Tf1Legalizer) -> Results:
    """The default everywhere but at the indices: a scalar, a vector or rows of coordinates."""
    builder.attrs.ignore("validate_indices")
    indices, values = builder.operand("sparse_indices"), builder.operand("sparse_values")
    shape = sizes_of(builder, builder.operand("output_shape"), "the shape")
    if rank_of(indices) < 2:
        indices = builder.reshape(indices, [product(dims_of(indices)), 1])
    updates = builder.broadcast(values, dims_of(indices)[:1])
    start = builder.broadcast(builder.operand("default_value"), shape)
    return [builder.add(ScatterNdOp(start, indices, updates))]


@legalizes("DynamicStitch", "ParallelDynamicStitch")
def legalize_dynamic_stitch(builder: Tf1Legalizer) -> Results:
    """The parts of all operands at their indices; of two for one place, the later."""
    indices, parts = builder.operands("indices"), builder.operands("data")
    rest = dims_of(parts[0])[rank_of(indices[0]) :]
    counts = [product(dims_of(value)) for value in indices]
    flat = [builder.reshape(value, [n]) for value, n in zip(indices, counts, strict=True)]
    rows = [builder.reshape(part, [n, *rest]) for part, n in zip(parts, counts, strict=True)]
    places = concat(builder, flat, 0)
    total = _count(builder, TensorValue.of(builder, places))
    start = builder.broadcast(builder.scalar(0, parts[0]), [total, *rest])
    places = builder.unsqueeze(places, [1])
    return [builder.add(ScatterNdOp(start, places, concat(builder, rows, 0)))]


def _count(builder: Tf1Legalizer, places: TensorValue) -> Expr:
    """One more than the largest of the places; 0 if there are none."""
    if places.array is not None:
        return Expr.const(int(max(places.array.reshape(-1), default=-1)) + 1)
    highest = places.cast(i64).reduce("max", [0]).maximum(-1)
    return size_of(builder, (highest + 1).value, "the number of parts")


# Segments


def extreme(element: Attribute, *, highest: bool) -> float:
    """The largest (or least) number of an element type that is not infinite."""
    dtype = numpy_dtype(element)
    if is_float(element):
        largest = float(cast(Any, ml_dtypes.finfo(dtype)).max)
        return largest if highest else -largest
    require(dtype.kind in "iu", f"{element} has no numbers")
    limits = np.iinfo(dtype)
    return int(limits.max) if highest else int(limits.min)


def _identity(kind: str, element: Attribute) -> float:
    """What `kind` of no elements is."""
    match kind:
        case "add":
            return 0
        case "mul":
            return 1
        case _:
            return extreme(element, highest=kind == "min")


def combined(
    builder: Tf1Legalizer, kind: str, data: SSAValue, numbers: SSAValue, count: Expr
) -> SSAValue:
    """
    Part s of the result combines the parts of `data` whose number is s.

    Numbers have one dimension or more, the first ones of `data`. Negative numbers drop the part.
    """
    rest = dims_of(data)[rank_of(numbers) :]
    parts = product(dims_of(numbers))
    rows = builder.reshape(data, [parts, *rest])
    places = TensorValue.of(builder, builder.reshape(numbers, [parts, 1])).cast(i64)
    identity = _identity(kind, element_type(data))
    start = builder.scalar(identity, data)
    if places.array is not None and bool((places.array >= 0).all()):
        start = builder.broadcast(start, [count, *rest])
        return builder.add(ScatterNdOp(start, places.value, rows, kind))
    # One part more takes what is dropped.
    places = places.lt(0).where(TensorValue.dim(builder, count), places)
    start = builder.broadcast(start, [count + 1, *rest])
    found = builder.add(ScatterNdOp(start, places.value, rows, kind))
    return builder.slice_axis(found, 0, 0, count)


_UNSORTED = {
    "UnsortedSegmentSum": "add",
    "UnsortedSegmentProd": "mul",
    "UnsortedSegmentMax": "max",
    "UnsortedSegmentMin": "min",
}


@legalizes(*_UNSORTED)
def legalize_unsorted_segment(builder: Tf1Legalizer) -> Results:
    """Segments without elements have the sum 0, the product 1, the lowest or highest number."""
    count = size_of(builder, builder.operand("num_segments"), "the number of segments")
    data, numbers = builder.operand("data"), builder.operand("segment_ids")
    return [combined(builder, _UNSORTED[builder.op_type], data, numbers, count)]


@legalizes("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def legalize_segment(builder: Tf1Legalizer) -> Results:
    """As many segments as the last number says; those without elements are 0, or 1 as product."""
    kind = builder.op_type.removeprefix("Segment")
    return [_segments(builder, kind, builder.operand("data"), builder.operand("segment_ids"))]


@legalizes(
    "SparseSegmentSum",
    "SparseSegmentMean",
    "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)
def legalize_sparse_segment(builder: Tf1Legalizer) -> Results:
    """Segments of the rows at the indices."""
    builder.attrs.ignore("sparse_gradient")
    kind = builder.op_type.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    rows = builder.add(GatherOp(builder.operand("data"), builder.operand("indices"), 0))
    count = None
    if builder.op_type.endswith("WithNumSegments"):
        count = size_of(builder, builder.operand("num_segments"), "the number of segments")
    return [_segments(builder, kind, rows, builder.operand("segment_ids"), count)]


_SORTED = {"Sum": "add", "Mean": "add", "SqrtN": "add", "Prod": "mul", "Max": "max", "Min": "min"}


def _segments(
    builder: Tf1Legalizer, kind: str, data: SSAValue, numbers: SSAValue, count: Expr | None = None
) -> SSAValue:
    if count is None:
        count = _count(builder, TensorValue.of(builder, numbers))
    found = combined(builder, _SORTED[kind], data, numbers, count)
    if kind in ("Sum", "Prod"):
        return found
    sizes = _sizes(builder, data, numbers, count)
    if kind in ("Max", "Min"):
        is_empty = TensorValue.of(builder, sizes).eq(0)
        return builder.select(is_empty.value, builder.scalar(0, found), found)
    divisor = TensorValue.of(builder, sizes).maximum(1).value
    if kind == "SqrtN":
        divisor = builder.add(SqrtOp(divisor))
    return builder.add(DivOp(found, divisor))


def _sizes(builder: Tf1Legalizer, data: SSAValue, numbers: SSAValue, count: Expr) -> SSAValue:
    """The number of parts of each segment, in the element type of `data`, as a column."""
    ones = builder.broadcast(builder.scalar(1, data), dims_of(numbers))
    sizes = combined(builder, "add", ones, numbers, count)
    return builder.reshape(sizes, [count, *[1] * (rank_of(data) - 1)])
