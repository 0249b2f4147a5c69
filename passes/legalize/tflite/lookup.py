"""Rows of tables: embeddings."""

from __future__ import annotations

import numpy as np

from lowerdeck.dialects.core.elementwise import MulOp, SqrtOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, is_integer, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


@legalizes("EMBEDDING_LOOKUP")
def legalize_lookup(builder: TfliteLegalizer) -> Results:
    """Rows by their numbers; those of integers become floats if the result is of floats."""
    indices, table = builder.input(0), builder.input(1)
    rows = builder.add(GatherOp(table, indices, 0))
    if not is_integer(element_type(rows)) or builder.element() != f32:
        return [rows]
    q = builder.quantization(1)
    value = TensorValue(builder, builder.cast(rows, f32))
    if not q.is_per_channel:
        return [builder.add(MulOp(value.value, builder.scalar(q.scale, f32)))]
    scales = builder.tensor(np.array(q.scales, np.float32))
    own = builder.add(GatherOp(scales, indices, 0))
    own = builder.reshape(own, [*dims_of(own), *[1] * (rank_of(rows) - rank_of(own))])
    return [(value * TensorValue(builder, own)).value]


@legalizes("EMBEDDING_LOOKUP_SPARSE")
def legalize_sparse_lookup(builder: TfliteLegalizer) -> Results:
    """
    For each place of a dense tensor the sum of the rows that belong there, by their weights; or
    that by the sum of the weights, or by the root of the sum of their squares.
    """
    ids, indices, shape, weights, table = (builder.input(k) for k in range(5))
    combiner = builder.option("combiner") or "SUM"
    dims = builder.require_ints(shape, "the shape of the lookup")
    outer, inner = dims[:-1], dims_of(table)[1:]
    count, depth = product(dims_of(ids)), len(dims)
    rows = TensorValue(builder, builder.add(GatherOp(table, ids, 0)))
    weight = TensorValue(builder, weights)
    scaled = rows * weight.reshape([count, *[1] * len(inner)])
    # Which place a row belongs to: all of its coordinates but the last.
    where = TensorValue(builder, builder.cast(indices, i64))
    place = TensorValue(builder, builder.slice_axis(where.value, 1, 0, depth - 1))
    zeros = builder.broadcast(builder.scalar(0, f32), [*outer, *inner])
    total = builder.add(ScatterNdOp(zeros, place.value, scaled.value, "add"))
    if combiner == "SUM":
        return [total]
    parts = weight if combiner == "MEAN" else weight * weight
    none = builder.broadcast(builder.scalar(0, f32), outer)
    sums = TensorValue(builder, builder.add(ScatterNdOp(none, place.value, parts.value, "add")))
    if combiner == "SQRTN":
        sums = TensorValue(builder, builder.add(SqrtOp(sums.value)))
    sums = sums.reshape([*outer, *[1] * len(inner)])
    divided = TensorValue(builder, total) / sums.eq(0).where(sums + 1, sums)
    return [divided.value]
