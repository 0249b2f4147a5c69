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
from lowerdeck.passes.legalize.movement import concat
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import size_of, sizes_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("ScatterNd")
def legalize_scatter_nd(lower: Tf1Legalizer) -> Results:
    """Updates of one place add up; the rest is zero."""
    indices, updates = lower.operand("indices"), lower.operand("updates")
    if element_type(updates) == i1:
        lower.refuse("a sum of truth values", "numbers")
    shape = sizes_of(lower, lower.operand("shape"), "the shape")
    zeros = lower.broadcast(lower.scalar(0, updates), shape)
    return [lower.add(ScatterNdOp(zeros, indices, updates, "add"))]


_SCATTERS = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "ScatterNdNonAliasingAdd": "add",
}


@legalizes(*_SCATTERS)
def legalize_tensor_scatter(lower: Tf1Legalizer) -> Results:
    x, indices, updates = lower.op.inputs
    if lower.op_type == "TensorScatterSub":
        updates = lower.add(NegOp(updates))
    return [lower.add(ScatterNdOp(x, indices, updates, _SCATTERS[lower.op_type]))]


@legalizes("InplaceUpdate", "InplaceAdd", "InplaceSub")
def legalize_inplace(lower: Tf1Legalizer) -> Results:
    """Rows of `x` replaced, or with `v` added or subtracted."""
    x, rows, updates = (lower.operand(name) for name in ("x", "i", "v"))
    kind = "none" if lower.op_type == "InplaceUpdate" else "add"
    if lower.op_type == "InplaceSub":
        updates = lower.add(NegOp(updates))
    places = Quantity.of(lower, lower.reshape(rows, [product(dims_of(rows)), 1])).cast(i64)
    updates = lower.reshape(updates, [places.dims[0], *dims_of(x)[1:]])
    # TensorFlow counts rows around.
    places = places % Quantity.dim(lower, dims_of(x)[0])
    return [lower.add(ScatterNdOp(x, places.value, updates, kind))]


@legalizes("SparseToDense")
def legalize_sparse_to_dense(lower: Tf1Legalizer) -> Results:
    """The default everywhere but at the indices: a scalar, a vector or rows of coordinates."""
    lower.attrs.ignore("validate_indices")
    indices, values = lower.operand("sparse_indices"), lower.operand("sparse_values")
    shape = sizes_of(lower, lower.operand("output_shape"), "the shape")
    if rank_of(indices) < 2:
        indices = lower.reshape(indices, [product(dims_of(indices)), 1])
    updates = lower.broadcast(values, dims_of(indices)[:1])
    start = lower.broadcast(lower.operand("default_value"), shape)
    return [lower.add(ScatterNdOp(start, indices, updates))]


@legalizes("DynamicStitch", "ParallelDynamicStitch")
def legalize_dynamic_stitch(lower: Tf1Legalizer) -> Results:
    """The parts of all operands at their indices; of two for one place, the later."""
    indices, parts = lower.operands("indices"), lower.operands("data")
    rest = dims_of(parts[0])[rank_of(indices[0]) :]
    counts = [product(dims_of(value)) for value in indices]
    flat = [lower.reshape(value, [n]) for value, n in zip(indices, counts, strict=True)]
    rows = [lower.reshape(part, [n, *rest]) for part, n in zip(parts, counts, strict=True)]
    places = concat(lower, flat, 0)
    total = _count(lower, Quantity.of(lower, places))
    start = lower.broadcast(lower.scalar(0, parts[0]), [total, *rest])
    places = lower.unsqueeze(places, [1])
    return [lower.add(ScatterNdOp(start, places, concat(lower, rows, 0)))]


def _count(lower: Tf1Legalizer, places: Quantity) -> Expr:
    """One more than the largest of the places; 0 if there are none."""
    if places.array is not None:
        return Expr.const(int(max(places.array.reshape(-1), default=-1)) + 1)
    highest = places.cast(i64).reduce("max", [0]).maximum(-1)
    return size_of(lower, (highest + 1).value, "the number of parts")


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
    lower: Tf1Legalizer, kind: str, data: SSAValue, numbers: SSAValue, count: Expr
) -> SSAValue:
    """
    Part s of the result combines the parts of `data` whose number is s.

    Numbers have one dimension or more, the first ones of `data`. Negative numbers drop the part.
    """
    rest = dims_of(data)[rank_of(numbers) :]
    parts = product(dims_of(numbers))
    rows = lower.reshape(data, [parts, *rest])
    places = Quantity.of(lower, lower.reshape(numbers, [parts, 1])).cast(i64)
    identity = _identity(kind, element_type(data))
    start = lower.scalar(identity, data)
    if places.array is not None and bool((places.array >= 0).all()):
        start = lower.broadcast(start, [count, *rest])
        return lower.add(ScatterNdOp(start, places.value, rows, kind))
    # One part more takes what is dropped.
    places = places.lt(0).where(Quantity.dim(lower, count), places)
    start = lower.broadcast(start, [count + 1, *rest])
    found = lower.add(ScatterNdOp(start, places.value, rows, kind))
    return lower.slice_axis(found, 0, 0, count)


_UNSORTED = {
    "UnsortedSegmentSum": "add",
    "UnsortedSegmentProd": "mul",
    "UnsortedSegmentMax": "max",
    "UnsortedSegmentMin": "min",
}


@legalizes(*_UNSORTED)
def legalize_unsorted_segment(lower: Tf1Legalizer) -> Results:
    """Segments without elements have the sum 0, the product 1, the lowest or highest number."""
    count = size_of(lower, lower.operand("num_segments"), "the number of segments")
    data, numbers = lower.operand("data"), lower.operand("segment_ids")
    return [combined(lower, _UNSORTED[lower.op_type], data, numbers, count)]


@legalizes("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def legalize_segment(lower: Tf1Legalizer) -> Results:
    """As many segments as the last number says; those without elements are 0, or 1 as product."""
    kind = lower.op_type.removeprefix("Segment")
    return [_segments(lower, kind, lower.operand("data"), lower.operand("segment_ids"))]


@legalizes(
    "SparseSegmentSum",
    "SparseSegmentMean",
    "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)
def legalize_sparse_segment(lower: Tf1Legalizer) -> Results:
    """Segments of the rows at the indices."""
    lower.attrs.ignore("sparse_gradient")
    kind = lower.op_type.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    rows = lower.add(GatherOp(lower.operand("data"), lower.operand("indices"), 0))
    count = None
    if lower.op_type.endswith("WithNumSegments"):
        count = size_of(lower, lower.operand("num_segments"), "the number of segments")
    return [_segments(lower, kind, rows, lower.operand("segment_ids"), count)]


_SORTED = {"Sum": "add", "Mean": "add", "SqrtN": "add", "Prod": "mul", "Max": "max", "Min": "min"}


def _segments(
    lower: Tf1Legalizer, kind: str, data: SSAValue, numbers: SSAValue, count: Expr | None = None
) -> SSAValue:
    if count is None:
        count = _count(lower, Quantity.of(lower, numbers))
    found = combined(lower, _SORTED[kind], data, numbers, count)
    if kind in ("Sum", "Prod"):
        return found
    sizes = _sizes(lower, data, numbers, count)
    if kind in ("Max", "Min"):
        is_empty = Quantity.of(lower, sizes).eq(0)
        return lower.select(is_empty.value, lower.scalar(0, found), found)
    divisor = Quantity.of(lower, sizes).maximum(1).value
    if kind == "SqrtN":
        divisor = lower.add(SqrtOp(divisor))
    return lower.add(DivOp(found, divisor))


def _sizes(lower: Tf1Legalizer, data: SSAValue, numbers: SSAValue, count: Expr) -> SSAValue:
    """The number of parts of each segment, in the element type of `data`, as a column."""
    ones = lower.broadcast(lower.scalar(1, data), dims_of(numbers))
    sizes = combined(lower, "add", ones, numbers, count)
    return lower.reshape(sizes, [count, *[1] * (rank_of(data) - 1)])
