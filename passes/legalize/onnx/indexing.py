"""Operators that read or write elements at places that a tensor names."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import (
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ScatterElementsOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.selection import nonzero, one_hot, reverse_sequence
from lowerdeck.passes.legalize.sizes import size_of

_REDUCTIONS = ("none", "add", "mul", "max", "min")


@legalizes("Gather")
def legalize_gather(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, indices = lower.operand("data"), lower.operand("indices")
    return [lower.add(GatherOp(x, indices, lower.axis(lower.attrs.int("axis"), rank_of(x))))]


@legalizes("GatherElements")
def legalize_gather_elements(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, indices = lower.operand("data"), lower.operand("indices")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    return [lower.add(GatherElementsOp(x, indices, axis))]


@legalizes("GatherND")
def legalize_gather_nd(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, indices = lower.operand("data"), lower.operand("indices")
    batch = lower.attrs.int("batch_dims") if op.since_version >= 12 else 0
    return [lower.add(GatherNdOp(x, indices, batch))]


@legalizes("Scatter", "ScatterElements")
def legalize_scatter_elements(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, indices, updates = (lower.operand(name) for name in ("data", "indices", "updates"))
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    # The shapes are the same in a valid model; their dimensions may have other names.
    updates = lower.reshape(updates, dims_of(indices))
    return [lower.add(ScatterElementsOp(x, indices, updates, axis, _reduction(op, lower)))]


@legalizes("ScatterND")
def legalize_scatter_nd(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x, indices, updates = (lower.operand(name) for name in ("data", "indices", "updates"))
    return [lower.add(ScatterNdOp(x, indices, updates, _reduction(op, lower)))]


def _reduction(op: OnnxOp, lower: OnnxLegalizer) -> str:
    """Reductions came with version 16, max and min with 18."""
    if op.since_version < 16:
        return "none"
    return lower.attrs.string("reduction", among=_REDUCTIONS)


@legalizes("TensorScatter")
def legalize_tensor_scatter(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The updates take the places from `write_indices[batch]` on along `axis`."""
    x, updates = lower.operand("past_cache"), lower.operand("update")
    mode = lower.attrs.string("mode", among=("linear", "circular"))
    rank = rank_of(x)
    lower.require_rank(updates, rank, "update")
    axis = lower.axis(lower.attrs.int("axis"), rank)
    places = Quantity.iota(lower, dims_of(updates)[axis]).column(rank, axis)
    if (starts := lower.input("write_indices")) is not None:
        places = places + Quantity.of(lower, starts).cast(i64).column(rank, 0)
    if mode == "circular":
        places = places % Quantity.dim(lower, dims_of(x)[axis])
    indices = places.broadcast(dims_of(updates))
    return [lower.add(ScatterElementsOp(x, indices.value, updates, axis))]


@legalizes("OneHot")
def legalize_one_hot(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Indices out of [-depth, depth) select nothing."""
    indices = Quantity.of(lower, lower.operand("indices")).cast(i64)
    depth_value = lower.cast(lower.reshape(lower.operand("depth"), []), i64)
    depth = size_of(lower, depth_value, "the depth")
    axis = lower.axis(lower.attrs.int("axis"), len(indices.dims) + 1)
    wrapped = indices.lt(0).where(indices + Quantity.dim(lower, depth), indices)
    hot = one_hot(wrapped, depth, axis)
    values = lower.operand("values")
    off, on = (lower.squeeze(lower.slice_axis(values, 0, k, 1), [0]) for k in range(2))
    return [lower.select(hot.value, on, off)]


@legalizes("NonZero")
def legalize_nonzero(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    x = lower.operand("X")
    return [nonzero(lower, x if rank_of(x) else lower.reshape(x, [1]))]


@legalizes("Compress")
def legalize_compress(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The parts along `axis` (or the elements) at which the condition, a vector, holds."""
    x, condition = lower.operand("input"), lower.operand("condition")
    axis = lower.attrs.opt_int("axis")
    if axis is None:
        x, axis = lower.reshape(x, [product(dims_of(x))]), 0
    places = lower.squeeze(nonzero(lower, condition), [0])
    return [lower.add(GatherOp(x, places, lower.axis(axis, rank_of(x))))]


@legalizes("ReverseSequence")
def legalize_reverse_sequence(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Along the time axis, the first `sequence_lens[batch]` elements in reverse."""
    x, lens = lower.operand("input"), lower.operand("sequence_lens")
    batch, time = lower.attrs.int("batch_axis"), lower.attrs.int("time_axis")
    if {batch, time} != {0, 1}:
        lower.refuse(f"batch_axis {batch} and time_axis {time}", "0 and 1")
    return [reverse_sequence(lower, x, Quantity.of(lower, lens).cast(i64), batch, time)]


@legalizes("ArrayFeatureExtractor", domain="ai.onnx.ml")
def legalize_array_feature_extractor(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The columns of the last dimension that `Y` names; a vector is one row."""
    x, columns = lower.operand("X"), lower.operand("Y")
    columns = lower.reshape(columns, [product(dims_of(columns))])
    x = x if rank_of(x) > 1 else lower.unsqueeze(x, [0])
    return [lower.add(GatherOp(x, columns, rank_of(x) - 1))]
