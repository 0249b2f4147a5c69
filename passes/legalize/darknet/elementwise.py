"""Functions of one element, and sums and products of several results."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.darknet.shapes import image_of, step_of
from lowerdeck.passes.legalize.darknet.activation import of_shortcut
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.darknet.tree import of_tree
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


@legalizes("activation")
def legalize_activation(builder: DarknetLegalizer) -> Results:
    return [builder.activated(builder.x).value]


@legalizes("sam")
def legalize_sam(builder: DarknetLegalizer) -> Results:
    """The product with another result of the same sizes."""
    (other,) = builder.inputs("others")
    return [builder.activated(builder.x * TensorValue(builder, other)).value]


@legalizes("scale_channels")
def legalize_scale_channels(builder: DarknetLegalizer) -> Results:
    """Another result times a number for each channel, or with `scale_wh` for each place."""
    (other,) = builder.inputs("others")
    return [builder.activated(TensorValue(builder, other) * builder.x).value]


@legalizes("control_channels")
def legalize_control_channels(builder: DarknetLegalizer) -> Results:
    """Another result times a number for each channel."""
    (other,) = builder.inputs("others")
    return [(TensorValue(builder, other) * builder.x).value]


@legalizes("shift_channels")
def legalize_shift_channels(builder: DarknetLegalizer) -> Results:
    """Another result plus a number for each channel."""
    (other,) = builder.inputs("others")
    return [(TensorValue(builder, other) + builder.x).value]


@legalizes("shortcut")
def legalize_shortcut(builder: DarknetLegalizer) -> Results:
    """
    The input plus other results, as far as both have channels, each times its weights if it has
    any. Of a larger image it takes places as far apart as that is larger.
    """
    channels = image_of(builder.shapes[0])[0]
    weights = _factors(builder)
    total = builder.x
    for number, other in enumerate(builder.sources):
        own = image_of(builder.shapes[number])[0]
        common = min(own, channels)
        part = _common(builder, other, common)
        if weights is not None:
            factor = weights.pick(0, number)
            if factor.dims:
                factor = TensorValue(builder, builder.slice_axis(factor.value, 0, 0, common))
            part = part * factor.column(4, 1) if factor.dims else part * factor
        if number and own < channels:
            head = TensorValue(builder, builder.slice_axis(total.value, 1, 0, common)) + part
            tail = builder.slice_axis(total.value, 1, common, channels - common)
            total = concat([head, TensorValue(builder, tail)], 1)
        else:
            total = total + part if number else part
    return [of_shortcut(builder, total, builder.text("activation")).value]


def _common(builder: DarknetLegalizer, value: SSAValue, channels: int) -> TensorValue:
    """The first channels of a result, at as many places as the input has."""
    image = image_of(builder.shapes[0])
    step = step_of(image, builder.shape_of_item(value))
    whole = [builder.batch, channels, *image[1:]]
    return TensorValue(builder, builder.slice(value, [0] * 4, whole, [1, 1, step, step]))


def _factors(builder: DarknetLegalizer) -> TensorValue | None:
    """
    The weights of a `shortcut`, [inputs] or [inputs, channels]; as DarkNet stores them for
    inference, where the least is 0.001 with `relu` (`fuse_conv_batchnorm`).
    """
    if not builder.inputs("weights"):
        return None
    weights = builder.taken()
    match builder.text("weights_normalization"):
        case "relu" | "avg_relu":
            parts = weights.maximum(float(np.float32(0.001)))
        case "softmax":
            parts = (weights - weights.reduce("max", [0], keep_dims=True)).exp()
        case _:
            return weights
    return parts / (parts.reduce("sum", [0], keep_dims=True) + 1e-4)


@legalizes("softmax")
def legalize_softmax(builder: DarknetLegalizer) -> Results:
    """
    Over the numbers of each of several groups, or with `spatial` over channels, or with `tree` over
    those of one parent.
    """
    keys, shape = builder.keys, builder.shapes[0]
    temperature = builder.number("temperature")
    x = builder.x
    x = x if temperature == 1 else x / TensorValue.number(builder, temperature, f32)
    if keys["tree"] is not None:
        classes = int(np.prod(shape))
        return [of_tree(x.reshape([builder.batch, classes]), 1, builder.parents(classes)).value]
    if not keys["spatial"]:
        groups = builder.integer("groups")
        x = x.reshape([builder.batch, groups, int(np.prod(shape)) // groups])
    axis = 1 if keys["spatial"] else 2
    result = builder.add(SoftmaxOp(x.value, axis))
    return [builder.row(result)]
