"""Reductions, softmax, running sums, extrema and order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherOp, TopKOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    i1,
    i32,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.normalization import wide_element
from lowerdeck.passes.legalize.common.order import kth, most_frequent
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.reduction import mean, norm
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, broadcast_values, stack
from lowerdeck.passes.legalize.tf1.applied import applied


def _axes(builder: Pt2Legalizer, x: SSAValue) -> tuple[list[int], bool]:
    """The reduced dimensions, and whether they stay."""
    axes = list(range(rank_of(x)))
    if builder.has("dim"):
        axes = builder.axes_of("dim", rank_of(x))
    return axes, builder.has("keepdim") and builder.flag("keepdim")


@legalizes("sum", "mean", "prod", "nansum", "nanmean")
def legalize_sum(builder: Pt2Legalizer) -> Results:
    """Sums of narrow integers are of 64 bits."""
    x = builder.cast(builder.input(), builder.element())
    axes, keep = _axes(builder, x)
    if builder.name == "mean":
        return mean(builder, x, axes, keep)
    x = builder.cast(x, wide_element(x))  # half precision is added up in f32
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
    place = _place(builder, x, builder.name, axes[0], keep)
    return [builder.reduce(builder.name, x, axes, keep), place]


def _place(builder: Pt2Legalizer, x: SSAValue, kind: str, axis: int, keep: bool) -> SSAValue:
    """Where the first extremum is, or the first NaN: it comes before all other numbers."""
    found = builder.add(ArgReduceOp(kind, x, axis, keep))
    if not is_float(element_type(x)):
        return found
    has_nan, first = _first_nan(builder, x, axis, keep)
    return builder.select(has_nan, first, found)


def _first_nan(
    builder: Pt2Legalizer, x: SSAValue, axis: int, keep: bool
) -> tuple[SSAValue, SSAValue]:
    """Whether there is a NaN along an axis, and where the first one is."""
    value = TensorValue(builder, x)
    is_nan = value.ne(value)
    has_nan = is_nan.reduce("max", [axis], keep)
    place = builder.add(ArgReduceOp("max", is_nan.cast(i32).value, axis, keep))
    return has_nan.value, place


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
        found = _place(builder, flat, kind, 0, False)
        return builder.reshape(found, [Expr.const(1)] * rank_of(x)) if keep else found
    return _place(builder, x, kind, builder.dim(), keep)


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
    x = builder.input()
    wide = f32 if element_type(x) in (f16, bf16) else element_type(x)
    value = builder.cast(x, wide)
    axes, keep = _axes(builder, x)
    if builder.has("correction"):
        correction = float(builder.number("correction", 1))
    else:
        correction = float(builder.flag("unbiased"))
    center = mean(builder, value, axes, True)
    rest = TensorValue(builder, value) - TensorValue(builder, center)
    total = (rest * rest).reduce("sum", axes, keep)
    count = TensorValue.dim(builder, product(dims_of(x)[axis] for axis in axes)).cast(wide)
    found = total / (count - correction).maximum(0.0)
    if builder.name.startswith("std"):
        found = apply(SqrtOp, found)
    results = [found.cast(element_type(x)).value]
    if builder.name.endswith("mean"):
        middle = center if keep else builder.squeeze(center, axes)
        results.append(builder.cast(middle, element_type(x)))
    return results


@legalizes("logsumexp")
def legalize_logsumexp(builder: Pt2Legalizer) -> Results:
    """log(sum(exp(x))), relative to the largest."""
    x = builder.floating()
    axes, keep = _axes(builder, x.value)
    top = x.reduce("max", axes, True)
    finite = top.abs().eq(math.inf)
    base = TensorValue(builder, builder.select(finite.value, builder.scalar(0, x.value), top.value))
    total = (x - base).exp().reduce("sum", axes, True).log() + base
    return total.value if keep else builder.squeeze(total.value, axes)


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
        gap = (builder.stated("x1") - builder.stated("x2") + builder.number("eps")).abs()
        last, keep = [len(gap.dims) - 1], builder.flag("keepdim")
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
    """Along a dimension."""
    x = builder.cast(builder.input(), builder.element())
    if not rank_of(x):
        value = TensorValue.of(builder, x)
        zero = value * 0
        return zero if "log" in builder.name else zero + 1
    axis = builder.axis(builder.integer("dim"), rank_of(x))
    found = builder.add(SoftmaxOp(x, axis, log="log" in builder.name))
    if builder.name == "_safe_softmax":  # a row of -inf gives zeros
        hidden = TensorValue.of(builder, x).eq(-math.inf).reduce("min", [axis], keep_dims=True)
        found = builder.select(hidden.value, builder.scalar(0, found), found)
    return found


# Running


@legalizes("cumsum", "cumprod")
def legalize_running(builder: Pt2Legalizer) -> Results:
    """Running sums and products."""
    x = builder.cast(builder.input(), builder.element())
    if not rank_of(x):
        return x
    kind = {"cumsum": "sum", "cumprod": "prod"}[builder.name]
    axis = builder.axis(builder.integer("dim"), rank_of(x))
    found = builder.add(CumulativeOp(kind, builder.cast(x, wide_element(x)), axis))
    return builder.cast(found, builder.element())


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
    rank = len(x.dims)
    if not rank:
        return [x.value, builder.scalar(0, i64)]
    axis = builder.axis(builder.integer("dim"), rank)
    order = [axis, *(k for k in range(rank) if k != axis)]
    rows = x.transpose(order).value
    length, rest = dims_of(rows)[0], dims_of(rows)[1:]
    is_max = builder.name == "cummax"

    def step(inner: Pt2Legalizer, number: Expr, state: State) -> tuple[State, State]:
        index = inner.dims([number], [])
        row = TensorValue(inner, inner.add(GatherOp(rows, index, 0, inside=True)))
        best, where = state
        better = row.ge(best) if is_max else row.le(best)
        if is_float(row.element):
            better = (better & best.eq(best)) | row.ne(row)
        better = better | TensorValue(inner, index).eq(0)
        best = better.where(row, best)
        where = better.where(TensorValue(inner, inner.broadcast(index, rest)), where)
        return (best, where), (best, where)

    first = builder.broadcast(builder.scalar(0, rows), rest)
    nowhere = builder.broadcast(builder.scalar(0, i64), rest)
    _, results = run_steps(builder, length, [first, nowhere], step)
    back = [order.index(k) for k in range(rank)]
    return [builder.transpose(value, back) for value in results]


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
    else:
        axis, keep = builder.axis(builder.integer("dim"), rank_of(x)), builder.flag("keepdim")
    dim = dims_of(x)[axis]
    k = (dim - 1) // 2 if builder.name == "median" else builder.expr("k") - 1
    results = kth(builder, x, axis, k, keep)
    if builder.name == "median" and is_float(element_type(x)):
        has_nan, first = _first_nan(builder, x, axis, keep)
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


@legalizes("nanmedian")
def legalize_nanmedian(builder: Pt2Legalizer) -> Results:
    """The lower one of those in the middle that are numbers, and where it is."""
    values, places, back = _in_order(builder)
    count = values.eq(values).cast(i64).reduce("sum", [len(values.dims) - 1], keep_dims=True)
    middle = (count - 1).maximum(0) // 2
    found = [_at(part, middle) for part in (values, places)]
    return [back(part) for part in found][: len(builder.op.results)]


@legalizes("quantile", "nanquantile")
def legalize_quantile(builder: Pt2Legalizer) -> Results:
    """Between two neighbors of the order, for one number or several."""
    values, _, back = _in_order(builder)
    last = len(values.dims) - 1
    given = builder.optional("q")
    plain = (
        [float(builder.number("q"))]
        if given is None
        else builder.require_constant(given, "'q'").reshape(-1).tolist()
    )
    count = TensorValue.dim(builder, values.dims[last]).reshape([1] * (last + 1))
    if builder.name == "nanquantile":
        count = values.eq(values).cast(i64).reduce("sum", [last], keep_dims=True)
    has_nan = values.ne(values).reduce("max", [last], keep_dims=True)
    results: list[TensorValue] = []
    for q in plain:
        place = ((count - 1).cast(values.element) * q).maximum(0)
        mode = builder.text("interpolation", "linear")
        place = {"lower": place.floor, "higher": place.ceil, "nearest": place.round}.get(
            mode, lambda place=place: place
        )()
        low = place.floor()
        a, b = (_at(values, index.cast(i64)) for index in (low, place.ceil()))
        weight = place - low
        if mode == "midpoint":
            weight = weight.gt(0).cast(values.element) * 0.5
        found = weight.lt(0.5).where(a + weight * (b - a), b - (b - a) * (1 - weight))
        if builder.name == "quantile":
            found = has_nan.where(found * math.nan, found)
        results.append(TensorValue(builder, back(found)))
    if given is None or not rank_of(given):
        return results[0]
    return stack(results, 0)


def _in_order(
    builder: Pt2Legalizer,
) -> tuple[TensorValue, TensorValue, Callable[[TensorValue], SSAValue]]:
    """
    The elements along a dimension, or all of them, in ascending order along the last one; their
    places; and what makes a result of one of each.
    """
    x = builder.input()
    rank, keep = rank_of(x), builder.has("keepdim") and builder.flag("keepdim")
    whole = not rank or not builder.has("dim") or builder.get("dim") is None
    axis = 0 if whole else builder.dim()
    order = [0] if whole else [*(k for k in range(rank) if k != axis), axis]
    rows = builder.reshape(x, [product(dims_of(x))]) if whole else builder.transpose(x, order)
    last = len(order) - 1
    values, places = builder.insert(TopKOp(rows, dims_of(rows)[last], last, largest=False))

    def back(found: TensorValue) -> SSAValue:
        if whole:
            return found.reshape([1] * (rank if keep else 0)).value
        if not keep:
            return builder.squeeze(found.value, [last])
        return builder.transpose(found.value, [order.index(k) for k in range(rank)])

    return TensorValue(builder, values), TensorValue(builder, places), back


def _at(values: TensorValue, index: TensorValue) -> TensorValue:
    """The elements at places along the last dimension, one in each row."""
    builder, last = values.builder, len(values.dims) - 1
    wide = index.broadcast([*values.dims[:last], 1])
    return TensorValue(builder, builder.add(GatherElementsOp(values.value, wide.value, last)))
