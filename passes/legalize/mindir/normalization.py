"""Normalizations, and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.normalization import by_statistics, local_response
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes


@legalizes("BatchNorm")
def legalize_batch_norm(builder: MindirLegalizer) -> Results:
    """By the moments of the training."""
    if builder.flag("is_training"):
        builder.refuse("moments of the batch", "is_training false", "export it for inference")
    x = builder.first(builder.input("input_x"))
    parameters = [builder.input(name) for name in ("scale", "bias", "mean", "variance")]
    return builder.back(by_statistics(builder, x, parameters, builder.real("epsilon")))


@legalizes("LayerNorm", "LayerNormV3")
def legalize_layer_norm(builder: MindirLegalizer) -> Results:
    """By the moments of the last axes."""
    x = builder.input()
    rank = rank_of(x)
    first = builder.axis(builder.integer("begin_norm_axis"), rank)
    if builder.axis(builder.integer("begin_params_axis"), rank) != first:
        builder.refuse("'begin_params_axis' that differs", "that of 'begin_norm_axis'")
    found = builder.torch(
        "layer_norm.default",
        [builder.element()],
        input=x,
        normalized_shape=[_size(builder, dim) for dim in dims_of(x)[first:]],
        weight=builder.input("gamma"),
        bias=builder.input("beta"),
        eps=builder.number("epsilon"),
    )
    return [found[0], None, None]


def _size(builder: MindirLegalizer, dim: Expr) -> int | SSAValue:
    return builder.dims([dim], []) if dim.value is None else dim.value


@legalizes("GroupNorm")
def legalize_group_norm(builder: MindirLegalizer) -> Results:
    """By the moments of groups of channels."""
    found = builder.torch(
        "group_norm.default",
        [builder.element()],
        input=builder.input(),
        num_groups=builder.integer("num_groups"),
        weight=builder.get("weight"),
        bias=builder.get("bias"),
        eps=builder.number("eps"),
    )
    return [found[0], None, None]


@legalizes("RmsNorm")
def legalize_rms_norm(builder: MindirLegalizer) -> Results:
    """By the root of the mean square of the last axes."""
    x, gamma = builder.input("x"), builder.input("gamma")
    sizes = [_size(builder, dim) for dim in dims_of(x)[rank_of(x) - rank_of(gamma) :]]
    found = builder.torch(
        "rms_norm.default",
        [builder.element()],
        input=x,
        normalized_shape=sizes,
        weight=gamma,
        eps=builder.number("epsilon"),
    )
    return [found[0], None]


@legalizes("L2Normalize")
def legalize_unit_length(builder: MindirLegalizer) -> Results:
    """x / sqrt(max(sum(x^2), epsilon))"""
    x = builder.value()
    axes = builder.axes_in("axis", len(x.dims))
    total = (x * x).reduce("sum", axes, keep_dims=True)
    return [(x / apply(SqrtOp, total.maximum(builder.real("epsilon")))).value]


@legalizes("LRN")
def legalize_by_neighbors(builder: MindirLegalizer) -> Results:
    """By the squares of neighboring channels."""
    x, radius = builder.input(), builder.integer("depth_radius")
    alpha, bias, beta = (builder.real(name) for name in ("alpha", "bias", "beta"))
    return local_response(builder, x, 1, (radius, radius), alpha, bias, beta)


# Recurrent layers


@legalizes("LSTM")
def legalize_lstm(builder: MindirLegalizer) -> Results:
    """
    One layer [time, batch, size] in one direction. The weights are one vector: those of the input,
    those of the state, and the biases; the gates are in PyTorch's order.
    """
    if builder.integer("num_layers") != 1 or builder.flag("bidirectional"):
        builder.refuse("several layers in one op", "one layer in one direction")
    if builder.integer("proj_size", 0):
        builder.refuse("a projection", "proj_size 0")
    if float(builder.number("dropout", 0.0)):
        builder.refuse("random numbers", "dropout 0")
    x, h, c = (builder.input(name) for name in ("input", "h", "c"))
    size, hidden = builder.integer("input_size"), builder.integer("hidden_size")
    flat = builder.reshape(builder.input("w"), [_count(builder, size, hidden)])
    shapes = [[4 * hidden, size], [4 * hidden, hidden]]
    if builder.flag("has_bias"):
        shapes.append([4 * hidden])
    params = _cut(builder, flat, shapes)
    if builder.flag("has_bias"):
        zero = builder.broadcast(builder.scalar(0, x), [4 * hidden])
        params.append(zero)
    element = element_type(x)
    found = builder.torch(
        "lstm.input",
        [element] * 3,
        input=x,
        hx=[h, c],
        params=params,
        has_biases=builder.flag("has_bias"),
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
        batch_first=False,
    )
    return [*found, None, None]


def _count(builder: MindirLegalizer, size: int, hidden: int) -> int:
    return 4 * hidden * (size + hidden + int(builder.flag("has_bias")))


def _cut(
    builder: MindirLegalizer, flat: SSAValue, shapes: Sequence[Sequence[int]]
) -> list[SSAValue]:
    """Parts of a vector, one after the other."""
    found: list[SSAValue] = []
    start = 0
    for shape in shapes:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        part = builder.slice(flat, [start], [count])
        found.append(builder.reshape(part, list(shape)))
        start += count
    return found
