"""Normalizations."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.normalization import (
    affine,
    by_groups,
    by_last_axes,
    by_root_mean_square,
    by_statistics,
    deviation,
    moments,
)
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_no_update")
@legalizes("_native_batch_norm_legit_no_training")
def legalize_batch_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of the training."""
    x = builder.input("input")
    if builder.has("training") and builder.flag("training"):
        if builder.optional("running_mean") is not None:
            builder.refuse("batch_norm in training", "evaluation", "call model.eval()")
        return _by_moments(builder, x, False)
    return _by_statistics(builder, x)


def _by_statistics(builder: Pt2Legalizer, x: SSAValue) -> Results:
    names = ("weight", "bias", "running_mean", "running_var")
    parameters = [builder.optional(name) for name in names]
    found = by_statistics(builder, x, parameters, builder.real("eps"))
    return [found, None, None, None][: len(builder.op.results)]


@legalizes(
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit.no_stats", "instance_norm"
)
def legalize_batch_moments(builder: Pt2Legalizer) -> Results:
    """By the moments of the batch, or of each image."""
    x = builder.input("input")
    is_instance = builder.name == "instance_norm"
    if is_instance and not builder.flag("use_input_stats"):
        return _by_statistics(builder, x)
    if is_instance and builder.optional("running_mean") is not None:
        builder.refuse("instance_norm in training", "evaluation", "call model.eval()")
    if not is_instance and not builder.flag("training"):
        builder.refuse("moments of the training", "those of the batch")
    return _by_moments(builder, x, is_instance)


def _by_moments(builder: Pt2Legalizer, x: SSAValue, is_instance: bool) -> list[SSAValue | None]:
    """By its own moments; these, and what becomes of the ones of the training."""
    element, x = element_type(x), builder.cast(x, wide_element(x))
    axes = [k for k in range(rank_of(x)) if k != 1 and not (is_instance and k == 0)]
    center, rest, variance = moments(builder, x, axes)
    eps = float(builder.number("eps"))
    size = deviation(builder, variance, eps)
    y = TensorValue(builder, rest) / TensorValue(builder, size)
    column = [dims_of(x)[1], *[1] * (rank_of(x) - 2)]
    y = affine(y, builder.optional("weight"), builder.optional("bias"), column)
    if is_instance or len(builder.op.results) == 1:
        return [y.cast(element).value]
    one = TensorValue.of(builder, builder.squeeze(size, axes))
    average = builder.squeeze(center, axes)
    found = y, TensorValue(builder, average), 1 / one
    results: list[SSAValue | None] = [value.cast(element).value for value in found]
    if len(builder.op.results) > 3:
        count = TensorValue.dim(builder, product(dims_of(x)[k] for k in axes)).cast(one.element)
        plain = TensorValue.of(builder, builder.squeeze(variance, axes))
        unbiased = plain * (count / (count - 1.0))
        momentum = float(builder.number("momentum"))
        pairs = (("running_mean", TensorValue(builder, average)), ("running_var", unbiased))
        for name, new in pairs:
            old = builder.value(name)
            results.append((new.cast(old.element) * momentum + old * (1 - momentum)).value)
    return results


@legalizes("layer_norm", "native_layer_norm")
def legalize_layer_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of the last dimensions."""
    x, eps = builder.input("input"), builder.real("eps")
    axis = rank_of(x) - len(builder.exprs_of("normalized_shape"))
    scale, bias = builder.optional("weight"), builder.optional("bias")
    y = by_last_axes(builder, x, scale, bias, eps, axis)
    if builder.name == "layer_norm":
        return y
    if not any(builder.wants(k) for k in range(1, len(builder.op.results))):
        return [y, None, None]
    wide = builder.cast(x, wide_element(x))
    center, _, variance = moments(builder, wide, list(range(axis, rank_of(x))))
    inverse = 1 / TensorValue(builder, deviation(builder, variance, eps))
    return [y, builder.cast(center, builder.element(1)), inverse.cast(builder.element(2))]


@legalizes("rms_norm")
def legalize_rms_norm(builder: Pt2Legalizer) -> Results:
    """By the mean of squares of the last dimensions."""
    x = builder.value("input")
    wide = x.cast(wide_element(x.value))
    count = len(builder.exprs_of("normalized_shape"))
    tiny = float(cast("Any", ml_dtypes.finfo(numpy_dtype(wide.element))).eps)
    eps = float(builder.number("eps", tiny))
    y = by_root_mean_square(wide, count, builder.optional("weight"), None, eps)
    return y.cast(x.element)


@legalizes("group_norm", "native_group_norm")
def legalize_group_norm(builder: Pt2Legalizer) -> Results:
    """By the moments of groups of channels."""
    x = builder.input("input")
    groups = builder.integer("num_groups" if builder.has("num_groups") else "group")
    scale, bias = builder.optional("weight"), builder.optional("bias")
    y, center, size = by_groups(builder, x, Expr.const(groups), scale, bias, builder.real("eps"))
    if builder.name == "group_norm":
        return y
    dims = [dims_of(x)[0], groups]
    found = [value.reshape(dims) for value in (center, 1 / size)]
    return [y, *(value.cast(builder.element(k)) for k, value in enumerate(found, 1))]
