"""Sparse tensors in products, sums and other shapes, with and without values; greedy CTC."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(11)
    places = np.array([[0, 1], [0, 3], [2, 0], [2, 2], [4, 3]], np.int64)
    values = record.input(random.random(5).astype(np.float32) + 1)
    indices = record.input(places, [None, 2])
    shape = record.input(np.array([5, 4], np.int64), [2])
    tall = record.input(random.random((4, 3)).astype(np.float32) + 1)
    wide = record.input(random.random((3, 5)).astype(np.float32) + 1)
    dense = record.input(random.random((5, 4)).astype(np.float32) + 1)
    row = record.input(random.random((1, 4)).astype(np.float32) + 1)
    product = raw.SparseTensorDenseMatMul(a_indices=indices, a_values=values, a_shape=shape, b=tall)
    record.case("matmul", product)
    product = raw.SparseTensorDenseMatMul(
        a_indices=indices, a_values=values, a_shape=shape, b=wide, adjoint_a=True, adjoint_b=True
    )
    record.case("matmul_adjoint", product)
    record.case(
        "add", raw.SparseTensorDenseAdd(a_indices=indices, a_values=values, a_shape=shape, b=dense)
    )
    for name in ("Add", "Mul", "Div"):
        for other, operand in (("dense", dense), ("row", row)):
            op = getattr(raw, f"SparseDenseCwise{name}")
            value = op(sp_indices=indices, sp_values=values, sp_shape=shape, dense=operand)
            record.case(f"elementwise_{name}_{other}", value)
    for name in ("Sum", "Max"):
        for axes in ([0], [1], [-1, 0], []):
            for keeps in (False, True):
                value = getattr(raw, f"SparseReduce{name}")(
                    input_indices=indices,
                    input_values=-values,
                    input_shape=shape,
                    reduction_axes=axes,
                    keep_dims=keeps,
                )
                number = "_".join(map(str, axes)).replace("-", "m")
                record.case(f"reduce_{name}_{number}_{keeps}", value)
    mixed = record.input(places[[3, 0, 4, 2, 1]], [None, 2])
    found = raw.SparseReorder(input_indices=mixed, input_values=values, input_shape=shape)
    record.case("reorder_indices", found.output_indices)
    record.case("reorder_values", found.output_values)
    for name, new in (("open", [2, -1]), ("flat", [20]), ("three", [2, 5, 2])):
        reshaped = raw.SparseReshape(input_indices=indices, input_shape=shape, new_shape=new)
        record.case(f"reshape_{name}_indices", reshaped.output_indices)
        record.case(f"reshape_{name}_shape", reshaped.output_shape)
    nothing = record.input(np.zeros((0, 2), np.int64), [None, 2])
    no_values = record.input(np.zeros(0, np.float32))
    for name, where, what in (
        ("some", indices, values),
        ("mixed", mixed, values),
        ("none", nothing, no_values),
    ):
        filled = raw.SparseFillEmptyRows(
            indices=where, values=what, dense_shape=shape, default_value=np.float32(7)
        )
        for field in filled._fields:
            record.case(f"fill_{name}_{field}", getattr(filled, field))
    record.case(
        "matmul_none",
        raw.SparseTensorDenseMatMul(a_indices=nothing, a_values=no_values, a_shape=shape, b=tall),
    )
    flags = {"a_is_sparse": True, "b_is_sparse": True}
    record.case("matmul_of_zeros", raw.SparseMatMul(a=tall, b=wide, **flags))
    half = tf.cast(wide, tf.bfloat16)
    record.case("matmul_of_half", raw.SparseMatMul(a=wide, b=half, transpose_b=True, **flags))
    scores = random.normal(0, 1, (7, 3, 4)).astype(np.float32)
    scores[1:3, 0] = scores[0, 0]
    scores[:, 2] = [0, 0, 0, 9]
    given = record.input(scores, [None, None, 4])
    lengths = record.input(np.array([7, 4, 6], np.int32))
    for merges in (False, True):
        for blank in (-1, 1):
            decoded = raw.CTCGreedyDecoder(
                inputs=given, sequence_length=lengths, merge_repeated=merges, blank_index=blank
            )
            for field in decoded._fields:
                name = f"ctc_{merges}_{'last' if blank < 0 else blank}_{field}"
                record.case(name, getattr(decoded, field))
