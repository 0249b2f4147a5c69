"""Normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.types import dims_of, f32, rank_of
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.passes.legalize.common.normalization import by_length, deviation, moments
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _axes(builder: KerasLegalizer, rank: int, default: int = -1) -> list[int]:
    return builder.axes_of(builder.config("axis", default), rank)


def _along(builder: KerasLegalizer, name: str, x: TensorValue, axes: Sequence[int]) -> TensorValue:
    """A variable that extends along axes of x."""
    shape: list[ExprLike] = [1] * len(x.dims)
    for axis in axes:
        shape[axis] = x.dims[axis]
    builder.require_shape(name, *(x.dims[axis].value for axis in axes))
    value = builder.weights[name]
    return TensorValue(builder, builder.reshape(builder.cast(value, x.element), shape))


def _scaled(builder: KerasLegalizer, x: TensorValue, axes: Sequence[int]) -> TensorValue:
    """Times gamma, plus beta, as far as they are there."""
    if "gamma" in builder.weights:
        x = x * _along(builder, "gamma", x, axes)
    if "beta" in builder.weights:
        x = x + _along(builder, "beta", x, axes)
    return x


@legalizes("BatchNormalization")
def legalize_batch_normalization(builder: KerasLegalizer) -> Results:
    """By the statistics of training."""
    builder.ignore("scale", "center", "fused", "renorm")
    builder.has(1, "mask")  # it matters in training
    given = builder.input()
    x = TensorValue(builder, builder.cast(given, wide_element(given)))
    axes = _axes(builder, len(x.dims))
    center = _along(builder, "moving_mean", x, axes)
    variance = _along(builder, "moving_variance", x, axes)
    spread = TensorValue(builder, deviation(builder, variance.value, builder.real("epsilon", 1e-3)))
    y = _scaled(builder, (x - center) / spread, axes)
    return [builder.cast(y.value, given)]


@legalizes("LayerNormalization")
def legalize_layer_normalization(builder: KerasLegalizer) -> Results:
    """By the mean and variance along axes."""
    builder.ignore("scale", "center")
    given = builder.input()
    x = builder.cast(given, wide_element(given))
    axes = _axes(builder, rank_of(x))
    epsilon = builder.real("epsilon", 1e-3)
    _, rest, variance = moments(builder, x, axes)
    spread = deviation(builder, variance, epsilon)
    # What is called RMS scaling divides by the deviation from the mean, too, but leaves the mean.
    dividend = x if builder.config("rms_scaling", False) else rest
    y = TensorValue(builder, dividend) / TensorValue(builder, spread)
    return [builder.cast(_scaled(builder, y, axes).value, given)]


def _root_mean_square(
    builder: KerasLegalizer, x: TensorValue, axes: Sequence[int], epsilon: float
) -> TensorValue:
    square = mean(builder, (x * x).value, axes, keep_dims=True)
    return x / TensorValue(builder, deviation(builder, square, epsilon))


@legalizes("RMSNormalization")
def legalize_rms_normalization(builder: KerasLegalizer) -> Results:
    """By the root of the mean of squares; factors are along the last dimensions, whatever axes."""
    x = builder.x()
    y = _root_mean_square(builder, x, _axes(builder, len(x.dims)), builder.real("epsilon", 1e-6))
    return [(y * TensorValue(builder, builder.cast(builder.weights["scale"], x.element))).value]


@legalizes("GroupNormalization")
def legalize_group_normalization(builder: KerasLegalizer) -> Results:
    """By the mean and variance of groups of channels; -1 groups are as many as channels."""
    builder.ignore("scale", "center")
    x = builder.x()
    rank = len(x.dims)
    (axis,) = _axes(builder, rank)
    channels = x.dims[axis]
    groups = builder.integer("groups", 32)
    count = channels if groups == -1 else channels * 0 + groups
    dims = list(x.dims)
    grouped = x.reshape([*dims[:axis], count, channels // count, *dims[axis + 1 :]])
    axes = [k for k in range(1, rank + 1) if k != axis]
    _, rest, variance = moments(builder, grouped.value, axes)
    spread = deviation(builder, variance, builder.real("epsilon", 1e-3))
    y = (TensorValue(builder, rest) / TensorValue(builder, spread)).reshape(dims)
    return [_scaled(builder, y, [axis]).value]


@legalizes("UnitNormalization")
def legalize_unit_normalization(builder: KerasLegalizer) -> Results:
    """By the norm along axes, which is at least 1e-12, or before Keras 3 1e-6."""
    x, least = builder.x(), 1e-12 if builder.version < 3 else 1e-24
    return [by_length(x, _axes(builder, len(x.dims)), least).value]


@legalizes("Normalization")
def legalize_normalization(builder: KerasLegalizer) -> Results:
    """By given numbers, or those that were found from data; inverted, back again."""
    x = builder.x()
    axis = builder.config("axis")
    axes = builder.axes_of([] if axis is None else axis, len(x.dims))
    if axes != sorted(axes):
        builder.refuse(f"the axes {axes}", "axes in order")
    center, variance = (_statistic(builder, name, x, axes) for name in ("mean", "variance"))
    spread = apply(SqrtOp, variance).maximum(1e-7)
    if builder.config("invert", False):
        return [(x * spread + center).value]
    return [((x - center) / spread).value]


def _statistic(
    builder: KerasLegalizer, name: str, x: TensorValue, axes: Sequence[int]
) -> TensorValue:
    shape = [1] * len(x.dims)
    for axis in axes:
        size = dims_of(x.value)[axis].value
        if size is None:
            builder.refuse(f"axis {axis} of a size that is not known", "a number")
        shape[axis] = size
    given = builder.config(name)
    if given is None:
        value = TensorValue.of(builder, builder.require_weight(name))
        return value.cast(x.element).reshape(shape)
    array = np.array(given, np.float32)
    if array.size == 1:
        array = np.broadcast_to(array.reshape(()), shape)
    elif array.size != math.prod(shape):
        builder.refuse(f"{array.size} numbers as {name}", f"{math.prod(shape)}")
    value = TensorValue(builder, array.reshape(shape))
    assert value.element == f32
    return value.cast(x.element)


@legalizes("Rescaling")
def legalize_rescaling(builder: KerasLegalizer) -> Results:
    """Times a scale, plus an offset."""
    x = builder.x()
    element = builder.element
    if element is not None:
        x = x.cast(element)
    scale, offset = builder.config("scale"), builder.config("offset", 0.0)
    for value, is_product in ((scale, True), (offset, False)):
        number = TensorValue(builder, np.array(value, np.float32)).cast(x.element)
        x = x * number if is_product else x + number
    return [x.value]
