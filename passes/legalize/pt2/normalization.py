"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.normalization import deviation, moments, wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _channels(builder: Pt2Legalizer, name: str, fill: float, x: SSAValue) -> SSAValue:
    """A number for each channel."""
    value = builder.optional(name)
    if value is not None:
        return builder.cast(value, x)
    return builder.broadcast(builder.scalar(fill, x), [dims_of(x)[1]])


@legalizes(
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_batch_norm_no_update",
)
def legalize_batch_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of the training."""
    x = builder.input("input")
    if builder.has("training") and builder.flag("training"):
        if builder.optional("running_mean") is not None:
            builder.refuse("batch_norm in training", "evaluation", "call model.eval()")
        return _by_moments(builder, x, False)
    return [normalized(builder, x), None, None, None][: len(builder.op.results)]


def normalized(builder: Pt2Legalizer, x: SSAValue) -> SSAValue:
    """By the moments that are given."""
    element = element_type(x)
    wide = builder.cast(x, wide_element(x))
    op = BatchNormOp(
        wide,
        _channels(builder, "weight", 1.0, wide),
        _channels(builder, "bias", 0.0, wide),
        _channels(builder, "running_mean", 0.0, wide),
        _channels(builder, "running_var", 1.0, wide),
        float(builder.number("eps")),
    )
    return builder.cast(builder.add(op), element)


@legalizes(
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit.no_stats", "instance_norm"
)
def legalize_batch_moments(builder: Pt2Legalizer) -> Results:
    """By the moments of the batch, or of each image."""
    x = builder.input("input")
    is_instance = builder.name == "instance_norm"
    if is_instance and not builder.flag("use_input_stats"):
        return normalized(builder, x)
    if is_instance and builder.optional("running_mean") is not None:
        builder.refuse("instance_norm in training", "evaluation", "call model.eval()")
    if not is_instance and not builder.flag("training"):
        builder.refuse("moments of the training", "those of the batch")
    return _by_moments(builder, x, is_instance)


def _by_moments(builder: Pt2Legalizer, x: SSAValue, is_instance: bool) -> list[SSAValue | None]:
    """By its own moments; these, and what becomes of the ones of the training."""
    axes = [k for k in range(rank_of(x)) if k != 1 and not (is_instance and k == 0)]
    center, rest, variance = moments(builder, x, axes)
    eps = float(builder.number("eps"))
    size = deviation(builder, variance, eps)
    y = TensorValue(builder, rest) / TensorValue(builder, size)
    y = _affine(builder, y, "weight", "bias", [dims_of(x)[1], *[1] * (rank_of(x) - 2)])
    if is_instance or len(builder.op.results) == 1:
        return [y.value]
    one = TensorValue.of(builder, builder.squeeze(size, axes))
    average = builder.squeeze(center, axes)
    results: list[SSAValue | None] = [y.value, average, (1 / one).value]
    if len(builder.op.results) > 3:
        count = TensorValue.dim(builder, product(dims_of(x)[k] for k in axes)).cast(one.element)
        plain = TensorValue.of(builder, builder.squeeze(variance, axes))
        unbiased = plain * (count / (count - 1.0))
        momentum = float(builder.number("momentum"))
        pairs = (("running_mean", TensorValue(builder, average)), ("running_var", unbiased))
        for name, new in pairs:
            old = builder.value(name)
            results.append((new * momentum + old * (1 - momentum)).value)
    return results


def _affine(
    builder: Pt2Legalizer, y: TensorValue, weight: str, bias: str, dims: Sequence[Expr | int]
) -> TensorValue:
    """y * weight + bias, as far as they are there."""
    if (scale := builder.optional(weight)) is not None:
        y = y * TensorValue.of(builder, builder.cast(scale, y.element)).reshape(dims)
    if builder.has(bias) and (shift := builder.optional(bias)) is not None:
        y = y + TensorValue.of(builder, builder.cast(shift, y.element)).reshape(dims)
    return y


@legalizes("layer_norm", "native_layer_norm")
def legalize_layer_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of the last dimensions."""
    x = builder.input("input")
    element = element_type(x)
    wide = builder.cast(x, wide_element(x))
    shape = builder.exprs_of("normalized_shape")
    axis = rank_of(x) - len(shape)
    scale, bias = builder.optional("weight"), builder.optional("bias")
    scale = (
        builder.broadcast(builder.scalar(1.0, wide), shape)
        if scale is None
        else builder.cast(scale, wide)
    )
    bias = None if bias is None else builder.cast(bias, wide)
    eps = float(builder.number("eps"))
    y = builder.cast(builder.add(LayerNormOp(wide, scale, bias, eps, axis)), element)
    if builder.name == "layer_norm":
        return y
    if not any(builder.wants(k) for k in range(1, len(builder.op.results))):
        return [y, None, None]
    axes = list(range(axis, rank_of(x)))
    center, _, variance = moments(builder, wide, axes)
    inverse = 1 / TensorValue(builder, deviation(builder, variance, eps))
    return [y, builder.cast(center, element), inverse.cast(element).value]


@legalizes("rms_norm")
def legalize_rms_norm(builder: Pt2Legalizer) -> Results:
    """By the mean of squares of the last dimensions."""
    x = builder.input("input")
    element = element_type(x)
    wide = TensorValue.of(builder, builder.cast(x, wide_element(x)))
    shape = builder.exprs_of("normalized_shape")
    axes = list(range(rank_of(x) - len(shape), rank_of(x)))
    tiny = float(cast("Any", ml_dtypes.finfo(numpy_dtype(wide.element))).eps)
    squares = mean(builder, (wide * wide).value, axes, True)
    y = wide / TensorValue(builder, deviation(builder, squares, builder.number("eps", tiny)))
    return _affine(builder, y, "weight", "none", shape).cast(element)


@legalizes("group_norm", "native_group_norm")
def legalize_group_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of groups of channels."""
    x = builder.input("input")
    groups = builder.integer("num_groups" if builder.has("num_groups") else "group")
    batch, channels, *space = dims_of(x)
    element = element_type(x)
    wide = builder.cast(x, wide_element(x))
    split = builder.reshape(wide, [batch, groups, channels // groups, *space])
    center, rest, variance = moments(builder, split, list(range(2, rank_of(split))))
    eps = float(builder.number("eps"))
    size = TensorValue(builder, deviation(builder, variance, eps))
    y = (TensorValue(builder, rest) / size).reshape(dims_of(x))
    y = _affine(builder, y, "weight", "bias", [channels, *[1] * len(space)]).cast(element)
    if builder.name == "group_norm":
        return y
    average = builder.reshape(center, [batch, groups])
    return [y.value, builder.cast(average, element), (1 / size).reshape([batch, groups]).value]
