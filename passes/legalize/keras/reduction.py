"""Functions of `keras.ops` of many elements: reductions, norms, running sums, and orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import i32, is_float
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.normalization import by_length
from lowerdeck.passes.legalize.common.order import middle
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float, named_element, truth
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied


def reduced_axes(builder: KerasLegalizer, x: TensorValue) -> tuple[list[int], bool]:
    """The axes of a reduction, all of them without any, and whether they stay as ones."""
    axis = builder.config("axis", builder.argument(1, "axis"))
    return builder.axes_of(axis, len(x.dims)), bool(builder.config("keepdims", False))


_REDUCTIONS = {"Sum": "sum", "Max": "max", "Min": "min", "Prod": "prod", "Mean": "mean"}


@legalizes(*_REDUCTIONS)
def legalize_reduction(builder: KerasLegalizer) -> Results:
    """Along axes; the mean is one of floats."""
    x = builder.x()
    axes, keep = reduced_axes(builder, x)
    kind = _REDUCTIONS[builder.op_type]
    if builder.config("initial") is not None or builder.config("dtype") is not None:
        builder.refuse("a reduction with a type or a beginning", "without")
    if kind == "mean":
        return [mean(builder, as_float(x).value, axes, keep)]
    if kind in ("sum", "prod") and not is_float(x.element) and x.element != i32:
        builder.refuse(f"the {kind} of {x.element}", "floats")
    return [builder.reduce(kind, x.value, axes, keep)]


@legalizes("Any", "All")
def legalize_truth(builder: KerasLegalizer) -> Results:
    """True if one element is, or all are."""
    x = builder.x()
    axes, keep = reduced_axes(builder, x)
    kind = "max" if builder.op_type == "Any" else "min"
    return [builder.reduce(kind, truth(x).value, axes, keep)]


@legalizes("Ptp")
def legalize_range(builder: KerasLegalizer) -> Results:
    """How far the largest element and the least are apart."""
    x = builder.x()
    axes, keep = reduced_axes(builder, x)
    return [(x.reduce("max", axes, keep) - x.reduce("min", axes, keep)).value]


@legalizes("Nanmax", "Nanmin", "Nanprod")
def legalize_known(builder: KerasLegalizer) -> Results:
    """Reductions of what is not NaN; the extremum of nothing is."""
    x = as_float(builder.x())
    axes, keep = reduced_axes(builder, x)
    is_none, kind = x.ne(x), builder.op_type.removeprefix("Nan")
    neutral = {"prod": 1.0, "max": -math.inf, "min": math.inf}[kind]
    known = is_none.where(TensorValue.number(builder, neutral, x.element), x)
    found = known.reduce(kind, axes, keep)
    if kind == "prod":
        return [found.value]
    nan = TensorValue.number(builder, math.nan, x.element)
    return [is_none.reduce("min", axes, keep).where(nan, found).value]


@legalizes("Argmax", "Argmin")
def legalize_arg_extremum(builder: KerasLegalizer) -> Results:
    """The first place of the extremum along an axis."""
    x = builder.x()
    if builder.config("axis") is None:
        builder.refuse("an extremum of all elements", "along an axis")
    axis = builder.one_axis(len(x.dims))
    name = "ArgMax" if builder.op_type == "Argmax" else "ArgMin"
    place = builder.tensor(np.array(axis, np.int32))
    (value,) = applied(builder, name, x.value, place, output_type=i32)
    return [builder.unsqueeze(value, [axis]) if builder.config("keepdims", False) else value]


# Moments and norms


def _variance(x: TensorValue, axes: Sequence[int], keep: bool) -> TensorValue:
    """The mean square of what differs from the mean."""
    builder = x.builder
    rest = x - TensorValue(builder, mean(builder, x.value, axes, keep_dims=True))
    return TensorValue(builder, mean(builder, (rest * rest).value, axes, keep))


@legalizes("Var", "Std")
def legalize_variance(builder: KerasLegalizer) -> Results:
    """The variance, or its root."""
    x = as_float(builder.x())
    value = _variance(x, *reduced_axes(builder, x))
    return [(value if builder.op_type == "Var" else apply(core.SqrtOp, value)).value]


@legalizes("Moments")
def legalize_moments(builder: KerasLegalizer) -> Results:
    """The mean and the variance."""
    builder.ignore("synchronized")
    x, keep = as_float(builder.x()), bool(builder.config("keepdims", False))
    axes = builder.axes_of(builder.config("axes"), len(x.dims))
    return [mean(builder, x.value, axes, keep), _variance(x, axes, keep).value]


@legalizes("Norm")
def legalize_norm(builder: KerasLegalizer) -> Results:
    """The length of vectors, in the usual sense or by another power."""
    x, order = as_float(builder.x()), builder.config("ord")
    axes, keep = reduced_axes(builder, x)
    is_word = isinstance(order, str) and order != "inf"
    if order not in (None, "fro") and (len(axes) != 1 or is_word):
        builder.refuse(f"the norm {order} along {len(axes)} axes", "of vectors, or 'fro'")
    return [_length(x, axes, 2 if order in (None, "fro") else order, keep).value]


def _length(x: TensorValue, axes: Sequence[int], order: Any, keep: bool) -> TensorValue:
    """The p-norm along axes."""
    builder, size, power = x.builder, x.abs(), PAIRS["pow"]
    if order in (math.inf, "inf"):
        return size.reduce("max", axes, keep)
    if order == 2:
        return apply(core.SqrtOp, (x * x).reduce("sum", axes, keep))
    if order == 1:
        return size.reduce("sum", axes, keep)
    exponent, inverse = (
        TensorValue.number(builder, number, x.element) for number in (float(order), 1 / order)
    )
    return power(power(size, exponent).reduce("sum", axes, keep), inverse)


@legalizes("Normalize")
def legalize_normalize(builder: KerasLegalizer) -> Results:
    """Vectors by their lengths, which are at least the epsilon."""
    x, order = as_float(builder.x()), builder.config("order", 2)
    axes = [builder.one_axis(len(x.dims))]
    epsilon = builder.config("epsilon")
    epsilon = 1e-7 if epsilon is None else float(epsilon)
    if order == 2:
        return [by_length(x, axes, epsilon * epsilon).value]
    return [(x / _length(x, axes, order, True).maximum(epsilon)).value]


@legalizes("LayerNorm", "RMSNorm")
def legalize_normalized(builder: KerasLegalizer) -> Results:
    """By mean and deviation, or by the root of the mean square, along an axis or several."""
    x, epsilon = as_float(builder.x()), builder.config("epsilon")
    axes = builder.axes_of(builder.config("axis", -1), len(x.dims))
    # What is called RMS scaling divides by the deviation from the mean, too, but leaves the mean.
    rest, is_scaled = x, bool(builder.config("rms_scaling", False))
    if builder.op_type == "LayerNorm":
        rest = x - TensorValue(builder, mean(builder, x.value, axes, keep_dims=True))
    square = TensorValue(builder, mean(builder, (rest * rest).value, axes, keep_dims=True))
    deviation = apply(core.SqrtOp, square + float(1e-7 if epsilon is None else epsilon))
    y = (x if is_scaled else rest) / deviation
    shape = [dim if axis in axes else 1 for axis, dim in enumerate(x.dims)]
    names = ("scale",) if builder.op_type == "RMSNorm" else ("gamma", "beta")[: 2 - is_scaled]
    for k, name in enumerate(names, 1):
        if (given := builder.argument(k, name)) is not None:
            other = TensorValue.of(builder, builder.number_like(given, y.value)).cast(y.element)
            if name != "scale" and len(other.dims) != len(shape):
                other = other.reshape(shape)
            y = y + other if name == "beta" else y * other
    return [y.value]


# Along an axis


@legalizes("Median")
def legalize_median(builder: KerasLegalizer) -> Results:
    """The middle of the elements in order, or the mean of the two."""
    x = as_float(builder.x())
    axes, keep = reduced_axes(builder, x)
    found = middle(x, axes, x.element, lower=False, skips=False)
    return [found.value if keep else builder.squeeze(found.value, axes)]


@legalizes("TopK")
def legalize_top_k(builder: KerasLegalizer) -> Results:
    """The largest elements of the last dimension, and where they are."""
    builder.ignore("sorted")
    x = builder.x()
    values, places = builder.insert(TopKOp(x.value, builder.integer("k"), len(x.dims) - 1))
    return [values, builder.cast(places, i32)]


@legalizes("Cumsum", "Cumprod")
def legalize_running(builder: KerasLegalizer) -> Results:
    """Sums or products of all elements up to each."""
    x, dtype = builder.x(), builder.config("dtype")
    if dtype is not None:
        x = x.cast(named_element(builder, dtype))
    elif x.element == i1:
        x = x.cast(i32)
    x, axis = builder.along(x)
    kind = "sum" if builder.op_type == "Cumsum" else "prod"
    return [builder.add(CumulativeOp(kind, x.value, axis))]
