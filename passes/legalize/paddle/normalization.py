"""Normalizations."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.normalization import (
    affine,
    by_groups,
    by_last_axes,
    by_root_mean_square,
    by_statistics,
    local_response,
    spectral_norm,
)
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes


@legalizes("batch_norm", "sync_batch_norm")
def legalize_batch_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of the training."""
    if not (builder.flag("is_test") or builder.flag("use_global_stats")):
        builder.refuse("batch_norm in training", "is_test", "call model.eval()")
    parameters = [builder.optional(name) for name in ("scale", "bias", "mean", "variance")]
    x = builder.first(builder.input("x"))
    found = by_statistics(builder, x, parameters, builder.real("epsilon"))
    return builder.results(out=builder.back(found))


@legalizes("layer_norm", "skip_layernorm")
def legalize_layer_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of the last dimensions, of a sum in optimized files."""
    x = builder.input("x")
    if builder.name == "skip_layernorm":
        x = (builder.value("x") + builder.value("y")).value
    scale, bias = builder.optional("scale"), builder.optional("bias")
    axis, epsilon = builder.integer("begin_norm_axis"), builder.real("epsilon")
    return builder.results(out=by_last_axes(builder, x, scale, bias, epsilon, axis))


@legalizes("group_norm", "instance_norm")
def legalize_group_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of groups of channels, or of each one."""
    is_group = builder.name == "group_norm"
    x = builder.first(builder.input("x")) if is_group else builder.input("x")
    groups = Expr.const(builder.integer("groups")) if is_group else dims_of(x)[1]
    scale, bias = builder.optional("scale"), builder.optional("bias")
    found, _, _ = by_groups(builder, x, groups, scale, bias, builder.real("epsilon"))
    return builder.results(y=builder.back(found) if is_group else found)


@legalizes("rms_norm")
def legalize_rms_norm(builder: PaddleLegalizer) -> Results:
    """By the mean of squares of the last dimensions."""
    count = len(builder.ints_of("normalized_shape")) if builder.get("normalized_shape") else 1
    scale = builder.optional("scale")
    bias = builder.optional("bias") if builder.has("bias") else None
    epsilon = builder.real("epsilon")
    return builder.results(
        y=builder.narrow(by_root_mean_square(builder.wide(), count, scale, bias, epsilon))
    )


@legalizes("spectral_norm")
def legalize_spectral_norm(builder: PaddleLegalizer) -> Results:
    """By the largest singular value of the weights as a matrix."""
    weight, u, v = (builder.value(name) for name in ("weight", "u", "v"))
    axis, steps = builder.along(weight.value, "dim"), builder.integer("power_iters")
    return spectral_norm(weight, axis, u, v, steps, builder.real("eps"))


@legalizes("lrn")
def legalize_lrn(builder: PaddleLegalizer) -> Results:
    """By the squares of neighboring channels."""
    x = builder.first(builder.input("x"))
    size = builder.integer("n")
    reach = (size - 1) // 2, size // 2
    alpha, k, beta = (builder.real(name) for name in ("alpha", "k", "beta"))
    found = local_response(builder, x, 1, reach, alpha, k, beta)
    return builder.results(out=builder.back(found))


@legalizes("affine_channel")
def legalize_affine_channel(builder: PaddleLegalizer) -> Results:
    """x * scale + bias, of each channel."""
    x = builder.value("x")
    axis = len(x.dims) - 1 if builder.text("data_layout") == "NHWC" else 1
    dims = [dim if k == axis else 1 for k, dim in enumerate(x.dims)]
    return affine(x, builder.optional("scale"), builder.optional("bias"), dims)
