"""Reductions, running sums, extrema and order."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes

_REDUCTIONS = {
    "ReduceSum": "sum.dim_IntList",
    "ReduceMean": "mean.dim",
    "ReduceMax": "amax.default",
    "ReduceMin": "amin.default",
    "ReduceAll": "all.dims",
    "ReduceAny": "any.dims",
}


@legalizes(*_REDUCTIONS)
def legalize_reduction(builder: MindirLegalizer) -> Results:
    """Along the axes; all of them where none are given."""
    x, axes, keep = _parts(builder)
    if not axes:
        return [builder.stated_cast(x)]
    return builder.torch(_REDUCTIONS[builder.name], self=x, dim=axes, keepdim=keep)


def _parts(builder: MindirLegalizer) -> tuple[SSAValue, list[int], bool]:
    x = builder.input()
    axes = builder.axes_in("axis", rank_of(x))
    if builder.has("skip_mode") and builder.flag("skip_mode") and not builder.get("axis"):
        axes = []
    return x, axes, builder.flag("keep_dims")


@legalizes("ReduceProd", "ProdExt")
def legalize_product(builder: MindirLegalizer) -> Results:
    """The product along the axes."""
    if builder.name == "ReduceProd":
        x, axes, keep = _parts(builder)
    else:
        x, keep = builder.input(), builder.flag("keepdim")
        axes = builder.axes_in("dim", rank_of(x))
    x = builder.stated_cast(x)
    found = builder.reduce("prod", builder.cast(x, wide_element(x)), axes, keep)
    return [builder.stated_cast(found)]


@legalizes("Max", "Min")
def legalize_extremum(builder: MindirLegalizer) -> Results:
    """The largest or smallest element of all."""
    x = builder.input()
    return [builder.reduce(builder.name.lower(), x, list(range(rank_of(x))))]


@legalizes("ReduceStd", "VarMean", "StdMean")
def legalize_deviation(builder: MindirLegalizer) -> Results:
    """The standard deviation or variance, and the mean."""
    x = builder.input()
    if builder.name == "ReduceStd":
        axes, keep = builder.axes_in("axis", rank_of(x)), builder.flag("keep_dims")
        correction = int(builder.flag("unbiased"))
    else:
        axes, keep = builder.axes_in("dim", rank_of(x)), builder.flag("keepdim")
        correction = builder.integer("correction", 1)
    both = {"self": x, "dim": axes, "correction": correction, "keepdim": keep}
    found = builder.torch("var_mean.correction", **both)
    if builder.name == "VarMean":
        return found
    return [*builder.torch("sqrt.default", [builder.element()], self=found[0]), found[1]]


@legalizes("Std", "Var")
def legalize_spread(builder: MindirLegalizer) -> Results:
    """The standard deviation or variance."""
    x = builder.input()
    axes = builder.axes_in("dim", rank_of(x))
    return builder.torch(
        f"{builder.name.lower()}.correction",
        self=x,
        dim=axes,
        correction=builder.integer("correction", 1),
        keepdim=builder.flag("keepdim"),
    )


@legalizes("Norm", "LpNorm", "LpNormV2", "LinalgVectorNorm")
def legalize_norm(builder: MindirLegalizer) -> Results:
    """The sum of powers, and the root of it."""
    x = builder.input()
    axis, keep = ("axis", "keep_dims") if builder.name == "LpNorm" else ("dim", "keepdim")
    power = "ord" if builder.name == "LinalgVectorNorm" else "p"
    return builder.torch(
        "linalg_vector_norm.default",
        self=x,
        ord=builder.number(power),
        dim=builder.axes_in(axis, rank_of(x)),
        keepdim=builder.flag(keep),
    )


# Softmax, places and order


@legalizes("Softmax")
def legalize_softmax(builder: MindirLegalizer) -> Results:
    """Along one axis, or several as if they were one."""
    x = builder.input()
    axes = builder.axes_in("axis", rank_of(x))
    if len(axes) == 1:
        return [builder.add(SoftmaxOp(x, axes[0]))]
    kept = [k for k in range(rank_of(x)) if k not in axes]
    order = [*kept, *axes]
    moved = builder.transpose(x, order)
    flat = builder.add(SoftmaxOp(builder.flatten(moved, len(kept)), 1))
    back = builder.reshape(flat, dims_of(moved))
    return [builder.transpose(back, [order.index(k) for k in range(len(order))])]


@legalizes("Argmax", "Argmin", "ArgMaxExt", "ArgMinExt")
def legalize_place(builder: MindirLegalizer) -> Results:
    """The place of the first extremum."""
    x = builder.input()
    is_new = builder.name.endswith("Ext")
    name, keep = ("dim", builder.flag("keepdim")) if is_new else ("axis", False)
    if builder.get(name) is None:
        x, axis = builder.reshape(x, [product(dims_of(x))]), 0
    else:
        axis = builder.axis(builder.integer(name), max(rank_of(x), 1))
    kind = "max" if "max" in builder.name.lower() else "min"
    x = x if rank_of(x) else builder.reshape(x, [1])
    return [builder.stated_cast(builder.add(ArgReduceOp(kind, x, axis, keep)))]


@legalizes("ArgMaxWithValue", "ArgMinWithValue")
def legalize_place_and_value(builder: MindirLegalizer) -> Results:
    """The place of the first extremum, and the extremum."""
    x, keep = builder.input(), builder.flag("keep_dims")
    axis = builder.axis(builder.integer("axis"), rank_of(x))
    kind = "max" if "Max" in builder.name else "min"
    place = builder.add(ArgReduceOp(kind, x, axis, keep))
    return [builder.stated_cast(place), builder.reduce(kind, x, [axis], keep)]


@legalizes("CumSum", "CumProd")
def legalize_running(builder: MindirLegalizer) -> Results:
    """Running sums or products, from either end, with the element itself or without it."""
    x = builder.input()
    axis = builder.axis(builder.integer("axis"), rank_of(x))
    kind = "sum" if builder.name == "CumSum" else "prod"
    backward = builder.flag("reverse")
    return [builder.add(CumulativeOp(kind, x, axis, builder.flag("exclusive"), backward))]


@legalizes("Cummax", "Cummin")
def legalize_running_extremum(builder: MindirLegalizer) -> Results:
    """The largest or smallest element so far, and its place."""
    x = builder.input()
    axis = builder.axis(builder.integer("axis"), rank_of(x))
    target = f"{builder.name.lower()}.default"
    values, places = builder.torch(target, [builder.element(), i64], self=x, dim=axis)
    return [values, None if places is None else builder.stated_cast(places, 1)]


@legalizes("Sort", "ArgSort")
def legalize_sort(builder: MindirLegalizer) -> Results:
    """The elements in order, and their places; of equal ones in the order of the places."""
    x = builder.input()
    name = "axis" if builder.name == "Sort" else "dim"
    axis = builder.axis(builder.integer(name), rank_of(x))
    largest = builder.flag("descending")
    values, places = builder.insert(TopKOp(x, dims_of(x)[axis], axis, largest=largest))
    if builder.name == "ArgSort":
        return [builder.stated_cast(places)]
    return [values, builder.stated_cast(places, 1)]


@legalizes("TopK")
def legalize_top_k(builder: MindirLegalizer) -> Results:
    """The largest elements of the last axis, and their places."""
    x = builder.input()
    count = builder.expr("k")
    values, places = builder.insert(TopKOp(x, count, rank_of(x) - 1, largest=True))
    return [values, builder.stated_cast(places, 1)]
