"""Reductions along axes, and what orders elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.tensor import ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    i1,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import minimum, product
from lowerdeck.passes.legalize.common.normalization import moments
from lowerdeck.passes.legalize.common.reduction import mean, norm
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _axes(builder: MxnetLegalizer, x: SSAValue, name: str = "axis") -> list[int]:
    """The axes that are reduced: those that are named, or the others; without any, all."""
    rank = rank_of(x)
    found = builder.sizes(name)
    is_given = bool(found) or (builder.is_numpy and builder.get(name) is not None)
    axes = sorted(builder.axes(found, rank)) if is_given else list(range(rank))
    if builder.has("exclude") and builder.flag("exclude") and is_given:
        return [axis for axis in range(rank) if axis not in axes]
    return axes


def _shaped(builder: MxnetLegalizer, x: SSAValue, axes: Sequence[int], found: SSAValue) -> SSAValue:
    """
    What was reduced, with its axes kept, in the shape of the result. Where nothing is left, that of
    older operators has one dimension.
    """
    if builder.has("keepdims") and builder.flag("keepdims"):
        return found
    left = builder.squeeze(found, axes)
    return builder.least_vector(left) if rank_of(x) else left


@legalizes("sum", "mean", "prod", "max", "min", "nansum", "nanprod", "_square_sum")
@legalizes("_np_sum", "_npi_mean", "_np_prod", "_np_max", "_np_min")
def legalize_reduction(builder: MxnetLegalizer) -> Results:
    """Along axes; of half precision sums are made in f32."""
    x = builder.input()
    kind = builder.name.rpartition("_")[2].removeprefix("nan")
    axes = _axes(builder, x)
    if builder.has("initial"):
        builder.absent("initial")
    value = TensorValue.of(builder, x)
    if builder.name == "_square_sum":
        value = value * value
    if builder.name.startswith("nan"):
        value = value.eq(value).where(value, 0 if kind == "sum" else 1)
    element = _result_element(builder, kind, value.element)
    if kind in ("max", "min"):
        return _shaped(builder, x, axes, builder.reduce(kind, value.value, axes, True))
    wide = value.cast(f32 if element in (f16, bf16) else element).value
    is_mean = kind == "mean" and axes
    found = mean(builder, wide, axes, True) if is_mean else builder.reduce(kind, wide, axes, True)
    return builder.cast(_shaped(builder, x, axes, found), element)


def _result_element(builder: MxnetLegalizer, kind: str, element: Attribute) -> Attribute:
    """The element type of the result: numpy's operators widen integers."""
    if builder.has("dtype") and builder.get("dtype") is not None:
        return builder.dtype()
    if is_float(element) or kind in ("max", "min"):
        return element
    if kind == "mean":
        return f32 if builder.is_numpy else element
    return i64 if element == i1 else element


@legalizes("_np_any", "_np_all")
def legalize_truth(builder: MxnetLegalizer) -> Results:
    """Whether any or all elements are not zero."""
    x = builder.input("data")
    axes = _axes(builder, x)
    kind = "max" if builder.name == "_np_any" else "min"
    found = builder.reduce(kind, TensorValue.of(builder, x).ne(0).value, axes, True)
    return _shaped(builder, x, axes, found)


@legalizes("norm", "_npi_norm")
def legalize_norm(builder: MxnetLegalizer) -> Results:
    """The root of the sum of squares, or the sum of absolute values; that of numpy of vectors."""
    x, order = builder.input(), builder.number("ord")
    axes = _axes(builder, x)
    is_flat = builder.get("axis") is None and (order == 2 or not axes)
    is_vector = not builder.is_numpy or len(axes) == 1 or is_flat
    if order not in (1, 2) or not is_vector:
        builder.refuse(f"a norm of order {order} of axes {axes}", "one of vectors, of order 1 or 2")
    found = norm(builder.wide(x).abs(), axes, True, float(order))
    found = found.cast(builder.dtype("out_dtype")) if builder.has("out_dtype") else found
    return _shaped(builder, x, axes, found.value)


@legalizes("multi_sum_sq")
def legalize_sums_of_squares(builder: MxnetLegalizer) -> Results:
    """The sum of squares of each tensor."""
    parts: list[SSAValue] = []
    for value in builder.inputs("data"):
        wide = builder.wide(value)
        total = (wide * wide).reduce("sum", list(range(len(wide.dims))))
        parts.append(total.reshape([1]).value)
    return builder.torch("cat.default", f32, tensors=parts, dim=0)


@legalizes("moments")
def legalize_moments(builder: MxnetLegalizer) -> Results:
    """The mean and the variance."""
    x = builder.wide(builder.input()).value
    axes = _axes(builder, x, "axes")
    center, _, variance = moments(builder, x, axes)
    return [
        builder.cast(_shaped(builder, x, axes, each), builder.element())
        for each in (center, variance)
    ]


@legalizes("_npi_var", "_npi_std")
def legalize_variance(builder: MxnetLegalizer) -> Results:
    """The variance, or its root, with numbers of degrees of freedom."""
    x = builder.input()
    axes = _axes(builder, x)
    if builder.get("dtype") is not None:
        x = builder.cast(x, builder.dtype())
    wide = builder.wide(x)
    given: dict[str, Any] = {"dim": axes, "correction": builder.integer("ddof"), "keepdim": True}
    target = f"{builder.name.removeprefix('_npi_')}.correction"
    found = builder.torch(target, wide.element, self=wide.value, **given)
    element = element_type(x) if is_float(element_type(x)) else f32
    return builder.cast(_shaped(builder, x, axes, found), element)


@legalizes("_npi_average")
def legalize_average(builder: MxnetLegalizer) -> Results:
    """The mean, weighted or not, and the sum of weights."""
    x = builder.input()
    axes = _axes(builder, x)
    wide = builder.wide(x)
    if not builder.flag("weighted"):
        return _shaped(builder, x, axes, mean(builder, wide.value, axes, keep_dims=True))
    weights = builder.value("weights").cast(wide.element)
    if len(weights.dims) == 1 and len(wide.dims) > 1:
        if len(axes) != 1:
            builder.refuse("weights of one dimension", "one axis")
        weights = weights.column(len(wide.dims), axes[0])
    weights = weights.broadcast(wide.dims)
    total = weights.reduce("sum", axes, keep_dims=True)
    found = (wide * weights).reduce("sum", axes, keep_dims=True) / total
    return [_shaped(builder, x, axes, each.value) for each in (found, total)]


@legalizes("argmax", "argmin", "argmax_channel", "_npi_argmax", "_npi_argmin")
def legalize_arg(builder: MxnetLegalizer) -> Results:
    """The first place of the largest or smallest element: f32, or i64 of numpy."""
    x = builder.input()
    kind = "min" if builder.name.endswith("argmin") else "max"
    given = 1 if builder.name == "argmax_channel" else builder.get("axis")
    if given is None:
        flat = builder.reshape(x, [product(dims_of(x))])
        whole = builder.reshape(builder.add(ArgReduceOp(kind, flat, 0)), [1] * rank_of(x))
        found = _shaped(builder, x, list(range(rank_of(x))), whole)
    else:
        axis = builder.axis(cast(int, given), rank_of(x))
        found = _shaped(builder, x, [axis], builder.add(ArgReduceOp(kind, x, axis, True)))
    return builder.cast(found, i64 if builder.is_numpy else f32)


@legalizes("_np_cumsum")
def legalize_cumsum(builder: MxnetLegalizer) -> Results:
    """Running sums."""
    x, axis = _flat_or_along(builder)
    return builder.add(CumulativeOp("sum", builder.cast(x, builder.dtype()), axis))


# Order


def _flat_or_along(builder: MxnetLegalizer) -> tuple[SSAValue, int]:
    """The tensor and an axis; without one the tensor as a vector."""
    x = builder.input()
    if builder.get("axis") is None:
        return builder.reshape(x, [product(dims_of(x))]), 0
    return x, builder.along(x)


@legalizes("topk")
def legalize_top_k(builder: MxnetLegalizer) -> Results:
    """The largest or smallest elements, their places, or which ones they are."""
    source = builder.input()
    x, axis = _flat_or_along(builder)
    count = builder.integer("k")
    size = dims_of(x)[axis]
    wanted = size if count < 1 else minimum(size, count)
    values, places = builder.insert(TopKOp(x, wanted, axis, largest=not builder.flag("is_ascend")))
    element = builder.dtype("dtype", f32)
    match builder.choice("ret_typ", "indices", "value", "both", "mask"):
        case "value":
            return values
        case "indices":
            return builder.cast(places, element)
        case "both":
            return [values, builder.cast(places, element)]
        case _:
            zeros = builder.broadcast(builder.scalar(0, x), dims_of(x))
            ones = builder.broadcast(builder.scalar(1, x), dims_of(places))
            mask = builder.add(ScatterElementsOp(zeros, places, ones, axis))
            return builder.reshape(mask, dims_of(source))


@legalizes("sort", "argsort")
def legalize_sort(builder: MxnetLegalizer) -> Results:
    """The elements in order, or their places; of equal ones in the order of their places."""
    x, axis = _flat_or_along(builder)
    largest = not builder.flag("is_ascend")
    values, places = builder.insert(TopKOp(x, dims_of(x)[axis], axis, largest=largest))
    if builder.name == "sort":
        return values
    return builder.cast(places, builder.dtype("dtype", f32))
