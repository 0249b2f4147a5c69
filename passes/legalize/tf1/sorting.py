"""Operators that order elements."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.unique import unique


@legalizes("TopK")
def legalize_top_k_attribute(lower: Tf1Legalizer) -> Results:
    return _top_k(lower, Expr.const(lower.attrs.int("k")))


@legalizes("TopKV2")
def legalize_top_k(lower: Tf1Legalizer) -> Results:
    return _top_k(lower, size_of(lower, lower.operand("k"), "k"))


def _top_k(lower: Tf1Legalizer, k: Expr) -> Results:
    """Along the last axis; results that need not be sorted are so, too."""
    lower.attrs.ignore("sorted")
    x = lower.operand("input")
    axis = lower.axis(-1, rank_of(x))
    _require_at_most(lower, k, dims_of(x)[axis])
    values, indices = lower.insert(TopKOp(x, k, axis))
    return [values, lower.cast(indices, lower.result_element(1))]


def _require_at_most(lower: Tf1Legalizer, k: Expr, size: Expr) -> None:
    if None not in (k.value, size.value) and (k.value or 0) > (size.value or 0):
        lower.refuse(f"the {k} best of {size} elements", "no more than there are")


@legalizes("NthElement")
def legalize_nth_element(lower: Tf1Legalizer) -> Results:
    """The element with `n` smaller (or, in reverse, larger) ones before it in each row."""
    x = lower.operand("input")
    axis = lower.axis(-1, rank_of(x))
    n = size_of(lower, lower.operand("n"), "n")
    _require_at_most(lower, n + 1, dims_of(x)[axis])
    values = lower.insert(TopKOp(x, n + 1, axis, lower.attrs.flag("reverse")))[0]
    return [lower.squeeze(lower.slice_axis(values, axis, n, 1), [axis])]


@legalizes("Unique", "UniqueWithCounts")
def legalize_unique(lower: Tf1Legalizer) -> Results:
    """The different elements of a vector, in the order of their first places."""
    return _unique(lower, 0)


@legalizes("UniqueV2", "UniqueWithCountsV2")
def legalize_unique_axis(lower: Tf1Legalizer) -> Results:
    """The different parts along an axis; without one, of a vector."""
    axes = lower.require_ints(lower.operand("axis"), "the axis")
    return _unique(lower, lower.axis(axes[0] if axes else 0, rank_of(lower.operand("x"))))


def _unique(lower: Tf1Legalizer, axis: int) -> Results:
    x = Quantity.of(lower, lower.operand("x"))
    values, _, places, counts = unique(lower, x, axis, ordered=False)
    index = lower.result_element(1)
    results: list[SSAValue] = [values, lower.cast(places, index), lower.cast(counts, index)]
    return results[: len(lower.op.outputs)]


@legalizes("InvertPermutation")
def legalize_invert_permutation(lower: Tf1Legalizer) -> Results:
    """y[x[i]] = i."""
    x = lower.operand("x")
    places = Quantity.iota(lower, dims_of(x)[0])
    zeros = lower.broadcast(lower.scalar(0, i64), dims_of(x))
    found = lower.add(ScatterElementsOp(zeros, x, places.value, 0))
    return [lower.cast(found, lower.result_element())]
