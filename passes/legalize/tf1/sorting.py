"""Operators that order elements."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.unique import unique
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("TopK")
def legalize_top_k_attribute(builder: Tf1Legalizer) -> Results:
    return _top_k(builder, Expr.const(builder.attrs.int("k")))


@legalizes("TopKV2")
def legalize_top_k(builder: Tf1Legalizer) -> Results:
    return _top_k(builder, size_of(builder, builder.operand("k"), "k"))


def _top_k(builder: Tf1Legalizer, k: Expr) -> Results:
    """Along the last axis; results that need not be sorted are so, too."""
    builder.attrs.ignore("sorted")
    x = builder.operand("input")
    axis = builder.axis(-1, rank_of(x))
    _require_at_most(builder, k, dims_of(x)[axis])
    values, indices = builder.insert(TopKOp(x, k, axis))
    return [values, builder.cast(indices, builder.result_element(1))]


def _require_at_most(builder: Tf1Legalizer, k: Expr, size: Expr) -> None:
    if None not in (k.value, size.value) and (k.value or 0) > (size.value or 0):
        builder.refuse(f"the {k} best of {size} elements", "no more than there are")


@legalizes("NthElement")
def legalize_nth_element(builder: Tf1Legalizer) -> Results:
    """The element with `n` smaller (or, in reverse, larger) ones before it in each row."""
    x = builder.operand("input")
    axis = builder.axis(-1, rank_of(x))
    n = size_of(builder, builder.operand("n"), "n")
    _require_at_most(builder, n + 1, dims_of(x)[axis])
    values = builder.insert(TopKOp(x, n + 1, axis, builder.attrs.flag("reverse")))[0]
    return [builder.squeeze(builder.slice_axis(values, axis, n, 1), [axis])]


@legalizes("Unique", "UniqueWithCounts")
def legalize_unique(builder: Tf1Legalizer) -> Results:
    """The different elements of a vector, in the order of their first places."""
    return _unique(builder, 0)


@legalizes("UniqueV2", "UniqueWithCountsV2")
def legalize_unique_axis(builder: Tf1Legalizer) -> Results:
    """The different parts along an axis; without one, of a vector."""
    axes = builder.require_ints(builder.operand("axis"), "the axis")
    return _unique(builder, builder.axis(axes[0] if axes else 0, rank_of(builder.operand("x"))))


def _unique(builder: Tf1Legalizer, axis: int) -> Results:
    x = TensorValue.of(builder, builder.operand("x"))
    values, _, places, counts = unique(builder, x, axis, ordered=False)
    index = builder.result_element(1)
    results: list[SSAValue] = [values, builder.cast(places, index), builder.cast(counts, index)]
    return results[: len(builder.op.outputs)]


@legalizes("InvertPermutation")
def legalize_invert_permutation(builder: Tf1Legalizer) -> Results:
    """y[x[i]] = i."""
    x = builder.operand("x")
    places = TensorValue.iota(builder, dims_of(x)[0])
    zeros = builder.broadcast(builder.scalar(0, i64), dims_of(x))
    found = builder.add(ScatterElementsOp(zeros, x, places.value, 0))
    return [builder.cast(found, builder.result_element())]
