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
from lowerdeck.passes.legalize.common.selection import nonzero, one_hot, reverse_sequence
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue

_REDUCTIONS = ("none", "add", "mul", "max", "min")


@legalizes("Gather")
def legalize_gather(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, indices = builder.operand("data"), builder.operand("indices")
    return [builder.add(GatherOp(x, indices, builder.axis(builder.attrs.int("axis"), rank_of(x))))]


@legalizes("GatherElements")
def legalize_gather_elements(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, indices = builder.operand("data"), builder.operand("indices")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    return [builder.add(GatherElementsOp(x, indices, axis))]


@legalizes("GatherND")
def legalize_gather_nd(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, indices = builder.operand("data"), builder.operand("indices")
    batch = builder.attrs.int("batch_dims") if op.since_version >= 12 else 0
    return [builder.add(GatherNdOp(x, indices, batch))]


@legalizes("Scatter", "ScatterElements")
def legalize_scatter_elements(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, indices, updates = (builder.operand(name) for name in ("data", "indices", "updates"))
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    # The shapes are the same in a valid model; their dimensions may have other names.
    updates = builder.reshape(updates, dims_of(indices))
    return [builder.add(ScatterElementsOp(x, indices, updates, axis, _reduction(op, builder)))]


@legalizes("ScatterND")
def legalize_scatter_nd(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x, indices, updates = (builder.operand(name) for name in ("data", "indices", "updates"))
    return [builder.add(ScatterNdOp(x, indices, updates, _reduction(op, builder)))]


def _reduction(op: OnnxOp, builder: OnnxLegalizer) -> str:
    """Reductions came with version 16, max and min with 18."""
    if op.since_version < 16:
        return "none"
    return builder.attrs.string("reduction", among=_REDUCTIONS)


@legalizes("TensorScatter")
def legalize_tensor_scatter(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The updates take the places from `write_indices[batch]` on along `axis`."""
    x, updates = builder.operand("past_cache"), builder.operand("update")
    mode = builder.attrs.string("mode", among=("linear", "circular"))
    rank = rank_of(x)
    builder.require_rank(updates, rank, "update")
    axis = builder.axis(builder.attrs.int("axis"), rank)
    places = TensorValue.iota(builder, dims_of(updates)[axis]).column(rank, axis)
    if (starts := builder.input("write_indices")) is not None:
        places = places + TensorValue.of(builder, starts).cast(i64).column(rank, 0)
    if mode == "circular":
        places = places % TensorValue.dim(builder, dims_of(x)[axis])
    indices = places.broadcast(dims_of(updates))
    return [builder.add(ScatterElementsOp(x, indices.value, updates, axis))]


@legalizes("OneHot")
def legalize_one_hot(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Indices out of [-depth, depth) select nothing."""
    indices = TensorValue.of(builder, builder.operand("indices")).cast(i64)
    depth_value = builder.cast(builder.reshape(builder.operand("depth"), []), i64)
    depth = size_of(builder, depth_value, "the depth")
    axis = builder.axis(builder.attrs.int("axis"), len(indices.dims) + 1)
    wrapped = indices.lt(0).where(indices + TensorValue.dim(builder, depth), indices)
    hot = one_hot(wrapped, depth, axis)
    values = builder.operand("values")
    off, on = (builder.squeeze(builder.slice_axis(values, 0, k, 1), [0]) for k in range(2))
    return [builder.select(hot.value, on, off)]


@legalizes("NonZero")
def legalize_nonzero(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    x = builder.operand("X")
    return [nonzero(builder, x if rank_of(x) else builder.reshape(x, [1]))]


@legalizes("Compress")
def legalize_compress(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The parts along `axis` (or the elements) at which the condition, a vector, holds."""
    x, condition = builder.operand("input"), builder.operand("condition")
    axis = builder.attrs.opt_int("axis")
    if axis is None:
        x, axis = builder.reshape(x, [product(dims_of(x))]), 0
    places = builder.squeeze(nonzero(builder, condition), [0])
    return [builder.add(GatherOp(x, places, builder.axis(axis, rank_of(x))))]


@legalizes("ReverseSequence")
def legalize_reverse_sequence(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Along the time axis, the first `sequence_lens[batch]` elements in reverse."""
    x, lens = builder.operand("input"), builder.operand("sequence_lens")
    batch, time = builder.attrs.int("batch_axis"), builder.attrs.int("time_axis")
    if {batch, time} != {0, 1}:
        builder.refuse(f"batch_axis {batch} and time_axis {time}", "0 and 1")
    return [reverse_sequence(builder, x, TensorValue.of(builder, lens).cast(i64), batch, time)]


@legalizes("ArrayFeatureExtractor", domain="ai.onnx.ml")
def legalize_array_feature_extractor(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The columns of the last dimension that `Y` names; a vector is one row."""
    x, columns = builder.operand("X"), builder.operand("Y")
    columns = builder.reshape(columns, [product(dims_of(columns))])
    x = x if rank_of(x) > 1 else builder.unsqueeze(x, [0])
    return [builder.add(GatherOp(x, columns, rank_of(x) - 1))]
