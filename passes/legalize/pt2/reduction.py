"""Reductions, softmax, running sums, extrema and order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.reduce import CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.activation import safe_softmax
from lowerdeck.passes.legalize.common.order import (
    first_extremum,
    first_nan,
    kth,
    middle_number,
    most_frequent,
    quantiles,
    running_extremum,
)
from lowerdeck.passes.legalize.common.promotion import wide_element, wide_type
from lowerdeck.passes.legalize.common.reduction import (
    ReducedAxes,
    log_sum_exp,
    mean,
    norm,
    variance,
)
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, broadcast_values, stack
from lowerdeck.passes.legalize.tf1.applied import applied


def _axes(builder: Pt2Legalizer, x: SSAValue) -> tuple[list[int], bool]:
    """The reduced dimensions, and whether they stay."""
    axes = list(range(rank_of(x)))
    if builder.has("dim"):
        no_axes = builder.name in ("any", "all") and builder.get("dim") == []
        axes = [] if no_axes else builder.axes_of("dim", rank_of(x))
    return axes, builder.has("keepdim") and builder.flag("keepdim")


@legalizes("sum", "mean", "prod", "nansum", "nanmean")
def legalize_sum(builder: Pt2Legalizer) -> Results:
    """Sums of narrow integers are of 64 bits; half precision is added up in f32."""
    x = builder.input()
    axes, keep = _axes(builder, x)
    if builder.name == "mean":
        x = builder.cast(x, wide_type(builder.element()))
        return builder.cast(mean(builder, x, axes, keep), builder.element())
    x = builder.cast(builder.cast(x, builder.element()), wide_type(builder.element()))
    if builder.name == "prod":
        return builder.cast(builder.reduce("prod", x, axes, keep), builder.element())
    value = TensorValue.of(builder, x)
    if builder.name.startswith("nan"):
        is_nan = value.ne(value)
        value = TensorValue(builder, builder.select(is_nan.value, builder.scalar(0, x), x))
        total = value.reduce("sum", axes, keep)
        if builder.name == "nanmean":
            count = (~is_nan).cast(total.element).reduce("sum", axes, keep)
            total = total / count
        return total.cast(builder.element())
    return builder.cast(builder.reduce("sum", x, axes, keep), builder.element())


@legalizes("amax", "amin")
def legalize_extremum(builder: Pt2Legalizer) -> Results:
    """The largest or smallest element."""
    x = builder.input()
    axes, keep = _axes(builder, x)
    return builder.reduce(builder.name[1:], x, axes, keep)


@legalizes("max", "min")
def legalize_max(builder: Pt2Legalizer) -> Results:
    """The extremum of all, or along a dimension with where it is first."""
    x = builder.input()
    if not builder.has("dim"):
        return builder.reduce(builder.name, x, list(range(rank_of(x))))
    axes, keep = _axes(builder, x)
    if not axes:
        return [x, builder.scalar(0, i64)]
    place = first_extremum(builder, x, builder.name, axes[0], keep)
    return [builder.reduce(builder.name, x, axes, keep), place]


@legalizes("aminmax")
def legalize_aminmax(builder: Pt2Legalizer) -> Results:
    """Both extrema."""
    x = builder.input()
    whole = builder.get("dim") is None or not rank_of(x)
    axes = list(range(rank_of(x))) if whole else [builder.dim()]
    keep = builder.flag("keepdim")
    return [builder.reduce(kind, x, axes, keep) for kind in ("min", "max")]


@legalizes("argmax", "argmin")
def legalize_arg(builder: Pt2Legalizer) -> Results:
    """Where the first extremum is."""
    x = builder.input()
    kind, keep = builder.name[3:], builder.flag("keepdim")
    if element_type(x) == i1:
        x = builder.cast(x, i64)
    if builder.get("dim") is None or not rank_of(x):
        flat = builder.reshape(x, [product(dims_of(x))])
        found = first_extremum(builder, flat, kind, 0, False)
        return builder.reshape(found, [Expr.const(1)] * rank_of(x)) if keep else found
    return first_extremum(builder, x, kind, builder.dim(), keep)


@legalizes("any", "all")
def legalize_any(builder: Pt2Legalizer) -> Results:
    """Whether one element, or each, is not zero."""
    x = builder.value()
    truth = x if x.element == i1 else x.ne(builder.known(0, x.element))
    axes, keep = _axes(builder, x.value)
    found = truth.reduce("max" if builder.name == "any" else "min", axes, keep)
    return found.cast(builder.element())  # of bytes, a byte


@legalizes("count_nonzero")
def legalize_count(builder: Pt2Legalizer) -> Results:
    """How many are not zero."""
    x = builder.value()
    truth = x if x.element == i1 else x.ne(builder.known(0, x.element))
    axes, _ = _axes(builder, x.value)
    return truth.cast(i64).reduce("sum", axes)


@legalizes("var", "std", "var_mean", "std_mean")
def legalize_variance(builder: Pt2Legalizer) -> Results:
    """The sum of squares by the count less a correction."""
    x = builder.value()
    axes, keep = _axes(builder, x.value)
    if builder.has("correction"):
        correction = float(builder.number("correction", 1))
    else:
        correction = float(builder.flag("unbiased"))
    found, center = variance(x.cast(wide_element(x.value)), axes, keep, correction)
    if builder.name.startswith("std"):
        found = apply(SqrtOp, found)
    results = [found, center] if builder.name.endswith("mean") else [found]
    return [each.cast(x.element) for each in results]


@legalizes("logsumexp")
def legalize_logsumexp(builder: Pt2Legalizer) -> Results:
    """log(sum(exp(x))), relative to the largest."""
    x = builder.floating().value
    axes, keep = _axes(builder, x)
    return log_sum_exp(ReducedAxes(builder, rank_of(x), axes), x, keep)


@legalizes("dist", "pairwise_distance", "cdist", "_euclidean_dist")
def legalize_distance(builder: Pt2Legalizer) -> Results:
    """Norms of differences."""
    if builder.has("x2") and builder.name != "pairwise_distance":
        a, b = (TensorValue.of(builder, builder.input(n)) for n in ("x1", "x2"))
        a = TensorValue.of(builder, builder.unsqueeze(a.value, [len(a.dims) - 1]))
        b = TensorValue.of(builder, builder.unsqueeze(b.value, [len(b.dims) - 2]))
        gap = (a - b).abs()
        order = float(builder.number("p")) if builder.has("p") else 2.0
        return norm(gap, [len(gap.dims) - 1], False, order)
    if builder.name == "pairwise_distance":
        element = builder.promoted("x1", "x2")
        gap = builder.operand("x1", element) - builder.operand("x2", element)
        gap = (gap.cast(builder.element()) + builder.number("eps")).abs()
        last, keep = [len(gap.dims) - 1][: len(gap.dims)], builder.flag("keepdim")
        return norm(gap, last, keep, float(builder.number("p")))
    gap = (builder.stated() - builder.stated("other")).abs()
    return norm(gap, list(range(len(gap.dims))), False, float(builder.number("p")))


@legalizes("cosine_similarity")
def legalize_cosine(builder: Pt2Legalizer) -> Results:
    """The product of normalized vectors."""
    a, b = broadcast_values(builder.stated("x1"), builder.stated("x2"))
    rank = len(a.dims)
    axes = [builder.axis(builder.integer("dim"), rank)] if rank else []
    eps = builder.number("eps")
    sizes = [norm(v.abs(), axes, True, 2.0).maximum(eps) for v in (a, b)]
    return ((a / sizes[0]) * (b / sizes[1])).reduce("sum", axes)


# Softmax


@legalizes("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
def legalize_softmax(builder: Pt2Legalizer) -> Results:
    """Along a dimension; half precision is rounded once."""
    x = builder.cast(builder.input(), builder.element())
    element, x = element_type(x), builder.cast(x, wide_element(x))
    if not rank_of(x):
        value = TensorValue.of(builder, x)
        zero = value * 0
        return (zero if "log" in builder.name else zero + 1).cast(element)
    axis = builder.axis(builder.integer("dim"), rank_of(x))
    if builder.name == "_safe_softmax":
        return safe_softmax(TensorValue.of(builder, x), axis).cast(element)
    return builder.cast(builder.add(SoftmaxOp(x, axis, log="log" in builder.name)), element)


# Running


@legalizes("cumsum", "cumprod")
def legalize_running(builder: Pt2Legalizer) -> Results:
    """Running sums and products."""
    x = builder.cast(builder.input(), builder.element())
    if not rank_of(x):
        return x
    kind, axis = builder.name[len("cum") :], builder.axis(builder.integer("dim"), rank_of(x))
    y = builder.add(CumulativeOp(kind, builder.cast(x, wide_element(x)), axis))
    is_sum = kind == "sum" and is_float(element_type(x))  # which begins with 0: -0 becomes 0
    return builder.cast((TensorValue(builder, y) + 0).value if is_sum else y, builder.element())


@legalizes("logcumsumexp")
def legalize_running_logsumexp(builder: Pt2Legalizer) -> Results:
    """Running log(sum(exp(x)))."""
    x = builder.floating().value
    if not rank_of(x):
        return x
    axis = builder.tensor(np.array(builder.axis(builder.integer("dim"), rank_of(x)), np.int32))
    return applied(builder, "CumulativeLogsumexp", x, axis)


@legalizes("cummax", "cummin")
def legalize_running_extremum(builder: Pt2Legalizer) -> Results:
    """The extremum so far, and where the last one is; NaN is more than all."""
    x = builder.value()
    if not x.dims:
        return [x.value, builder.scalar(0, i64)]
    axis = builder.axis(builder.integer("dim"), len(x.dims))
    return running_extremum(builder, x, axis, is_max=builder.name == "cummax")


# Order


@legalizes("topk")
def legalize_topk(builder: Pt2Legalizer) -> Results:
    """The k largest or smallest, in order."""
    x = builder.input()
    if not rank_of(x):
        return [x, builder.scalar(0, i64)]
    op = TopKOp(x, builder.expr("k"), builder.dim(), builder.flag("largest"))
    return list(builder.insert(op))


@legalizes("sort", "argsort", "msort")
def legalize_sort(builder: Pt2Legalizer) -> Results:
    """All elements in order; equal ones keep theirs."""
    x = builder.input()
    if not rank_of(x):
        zero = builder.scalar(0, i64)
        return {"argsort": [zero], "msort": [x]}.get(builder.name, [x, zero])
    axis = 0 if builder.name == "msort" else builder.axis(builder.integer("dim"), rank_of(x))
    descending = builder.flag("descending") if builder.has("descending") else False
    results = list(builder.insert(TopKOp(x, dims_of(x)[axis], axis, descending)))
    if builder.name == "argsort":
        return results[1]
    return results[:1] if builder.name == "msort" else results


@legalizes("kthvalue", "median")
def legalize_kth(builder: Pt2Legalizer) -> Results:
    """One place of the order; the median is the lower one, or NaN."""
    x = builder.input()
    if not rank_of(x):
        return [x, builder.scalar(0, i64)][: len(builder.op.results)]
    if builder.name == "median" and not builder.has("dim"):
        x, axis, keep = builder.reshape(x, [product(dims_of(x))]), 0, False
        if dims_of(x)[0] == 0 and is_float(element_type(x)):
            return builder.scalar(math.nan, x)
    else:
        axis, keep = builder.axis(builder.integer("dim"), rank_of(x)), builder.flag("keepdim")
    dim = dims_of(x)[axis]
    k = (dim - 1) // 2 if builder.name == "median" else builder.expr("k") - 1
    results = kth(builder, x, axis, k, keep)
    if builder.name == "median" and is_float(element_type(x)):
        has_nan, first = first_nan(builder, x, axis, keep)
        results[0] = builder.select(has_nan, builder.scalar(math.nan, x), results[0])
        results[1] = builder.select(has_nan, first, results[1])
    return results[: len(builder.op.results)]


@legalizes("mode")
def legalize_mode(builder: Pt2Legalizer) -> Results:
    """The most frequent element, and where it is last."""
    x = builder.input()
    if not rank_of(x):
        return [x, builder.scalar(0, i64)]
    return most_frequent(builder, x, builder.dim(), builder.flag("keepdim"))


def _rows(builder: Pt2Legalizer) -> tuple[TensorValue, Callable[[TensorValue], SSAValue]]:
    """
    The elements along a dimension, or all of them, as the last dimension, and what makes a result
    of one of each.
    """
    x = builder.input()
    rank, keep = rank_of(x), builder.has("keepdim") and builder.flag("keepdim")
    whole = not rank or not builder.has("dim") or builder.get("dim") is None
    axis = 0 if whole else builder.dim()
    order = [0] if whole else [*(k for k in range(rank) if k != axis), axis]
    rows = builder.reshape(x, [product(dims_of(x))]) if whole else builder.transpose(x, order)

    def back(found: TensorValue) -> SSAValue:
        if whole:
            return found.reshape([1] * (rank if keep else 0)).value
        if not keep:
            return builder.squeeze(found.value, [len(order) - 1])
        return builder.transpose(found.value, [order.index(k) for k in range(rank)])

    return TensorValue(builder, rows), back


@legalizes("nanmedian")
def legalize_nanmedian(builder: Pt2Legalizer) -> Results:
    """The lower one of those in the middle that are numbers, and where it is."""
    rows, back = _rows(builder)
    return [back(part) for part in middle_number(rows)][: len(builder.op.results)]


@legalizes("quantile", "nanquantile")
def legalize_quantile(builder: Pt2Legalizer) -> Results:
    """Between two neighbors of the order, for one number or several."""
    rows, back = _rows(builder)
    given = builder.optional("q")
    parts = [builder.number("q")] if given is None else builder.require_constant(given, "'q'")
    mode, skips = builder.text("interpolation", "linear"), builder.name == "nanquantile"
    plain = [float(part) for part in np.reshape(parts, -1)]
    found = [TensorValue(builder, back(each)) for each in quantiles(rows, plain, mode, skips=skips)]
    return found[0] if given is None or not rank_of(given) else stack(found, 0)
