"""Operators that order elements."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.unique import unique


@legalizes("TopK")
def legalize_top_k(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """`k` is an attribute before version 10. Results that need not be sorted are so, too."""
    x = lower.operand("X")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    if op.since_version < 10:
        k = Expr.const(lower.attrs.int("k"))
    else:
        k = size_of(lower, lower.operand("K"), "k")
    largest = True
    if op.since_version >= 11:
        largest = lower.attrs.flag("largest")
        lower.attrs.ignore("sorted")
    size = dims_of(x)[axis]
    if None not in (k.value, size.value) and (k.value or 0) > (size.value or 0):
        lower.refuse(f"the {k} best of {size} elements", "no more than there are")
    return lower.insert(TopKOp(x, k, axis, largest))


@legalizes("Unique")
def legalize_unique(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    The different elements (or parts along `axis`), and of each the first place and the number, and
    for each element of the input its place among them.

    Parts are sorted by their elements in C order; unsorted results are ordered by the first place.
    """
    x = Quantity.of(lower, lower.operand("X"))
    axis = lower.attrs.opt_int("axis")
    ordered = lower.attrs.flag("sorted")
    if axis is None:
        x, axis = x.reshape([product(x.dims)]), 0
    axis = lower.axis(axis, len(x.dims))
    return unique(lower, x, axis, ordered)
