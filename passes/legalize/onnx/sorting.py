"""Operators that order elements."""

from __future__ import annotations

from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import Legalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.sizes import size_of


@legalizes("TopK")
def legalize_top_k(op: OnnxOp, lower: Legalizer) -> Results:
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
