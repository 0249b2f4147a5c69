"""Operators that order elements."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.unique import unique
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("TopK")
def legalize_top_k(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """`k` is an attribute before version 10. Results that need not be sorted are so, too."""
    x = builder.operand("X")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    if op.since_version < 10:
        k = Expr.const(builder.attrs.int("k"))
    else:
        k = size_of(builder, builder.operand("K"), "k")
    largest = True
    if op.since_version >= 11:
        largest = builder.attrs.flag("largest")
        builder.attrs.ignore("sorted")
    size = dims_of(x)[axis]
    if None not in (k.value, size.value) and (k.value or 0) > (size.value or 0):
        builder.refuse(f"the {k} best of {size} elements", "no more than there are")
    return builder.insert(TopKOp(x, k, axis, largest))


@legalizes("Unique")
def legalize_unique(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The different elements (or parts along `axis`), and of each the first place and the number, and
    for each element of the input its place among them.

    Parts are sorted by their elements in C order; unsorted results are ordered by the first place.
    """
    x = TensorValue.of(builder, builder.operand("X"))
    axis = builder.attrs.opt_int("axis")
    ordered = builder.attrs.flag("sorted")
    if axis is None:
        x, axis = x.reshape([product(x.dims)]), 0
    axis = builder.axis(axis, len(x.dims))
    return unique(builder, x, axis, ordered)
