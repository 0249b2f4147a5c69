"""Layers that choose, join and rearrange numbers."""

from __future__ import annotations

import numpy as np

from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.darknet.shapes import image_of, integer, positive
from lowerdeck.passes.legalize.common.movement import concat, enlarged
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("dropout", "empty", "contrastive", "cost")
def legalize_same(builder: DarknetLegalizer) -> Results:
    """Nothing, but in training."""
    return [builder.input()]


@legalizes("route")
def legalize_route(builder: DarknetLegalizer) -> Results:
    """Results of other layers joined, or of each the part `group_id` of `groups`."""
    groups = integer(builder.keys, "groups")
    number = integer(builder.keys, "group_id")
    is_image = len(builder.layer.result) == 3
    parts = [value if is_image else builder.row(value) for value in builder.sources]
    if groups > 1:
        sizes = [TensorValue(builder, part).dims[1] // groups for part in parts]
        parts = [
            builder.slice_axis(part, 1, size * number, size)
            for part, size in zip(parts, sizes, strict=True)
        ]
    return [concat(builder, parts, 1)]


@legalizes("history")
def legalize_history(builder: DarknetLegalizer) -> Results:
    """An image and, as there is one step of time, zeros in place of those before it."""
    channels, *sizes = image_of(builder.shapes[0])
    rest = builder.layer.result[0] - channels
    if rest == 0:
        return [builder.input()]
    zeros = builder.broadcast(builder.scalar(0, f32), [builder.batch, rest, *sizes])
    return [concat(builder, [builder.input(), zeros], 1)]


@legalizes("implicit")
def legalize_implicit(builder: DarknetLegalizer) -> Results:
    """Weights as they are, for each item."""
    weights = builder.unsqueeze(builder.take(), [0])
    return [builder.broadcast(weights, [builder.integer("batch"), *builder.layer.result])]


@legalizes("crop")
def legalize_crop(builder: DarknetLegalizer) -> Results:
    """The middle, brought from 0 .. 1 to -1 .. 1 without `noadjust`."""
    channels, *sizes = image_of(builder.shapes[0])
    planes = builder.layer.result[1:]
    starts = [(size - plane) // 2 for size, plane in zip(sizes, planes, strict=True)]
    part = builder.slice(builder.input(), [0, 0, *starts], [builder.batch, channels, *planes])
    if builder.flag("noadjust"):
        return [part]
    return [(TensorValue(builder, part) * 2 - 1).value]


@legalizes("upsample")
def legalize_upsample(builder: DarknetLegalizer) -> Results:
    """Each number `stride` times along both dimensions; -stride sums what it would repeat."""
    channels, height, width = image_of(builder.shapes[0])
    stride = integer(builder.keys, "stride")
    if stride > 0:
        result = enlarged(
            builder.x.reshape([builder.batch, channels, height, width]), 2, [stride] * 2
        )
    else:
        inner = [height // -stride, -stride, width // -stride, -stride]
        blocks = builder.x.reshape([builder.batch, channels, *inner])
        result = blocks.reduce("sum", [3, 5])
    result = result.reshape([builder.batch, *builder.layer.result])
    scale = builder.number("scale")
    return [(result if scale == 1 else result * float(np.float32(scale))).value]


@legalizes("reorg3d")
def legalize_reorg3d(builder: DarknetLegalizer) -> Results:
    """Blocks of an image become channels: those of the first place in a block come first."""
    channels, height, width = image_of(builder.shapes[0])
    (stride,) = positive(builder.keys, "stride")
    if builder.flag("reverse"):
        builder.refuse("reverse=1", "0: DarkNet reads beyond the image", "use [reorg]")
    inner = [channels, height // stride, stride, width // stride, stride]
    blocks = builder.x.reshape([builder.batch, *inner]).transpose([0, 3, 5, 1, 2, 4])
    return [blocks.reshape([builder.batch, *builder.layer.result]).value]


@legalizes("reorg")
def legalize_reorg(builder: DarknetLegalizer) -> Results:
    """
    As `reorg3d`, but the numbers are taken for those of an image with as many channels fewer and
    as much larger; what comes of it is then written as the smaller image. With `reverse` channels
    become blocks.
    """
    channels, height, width = image_of(builder.shapes[0])
    (stride,) = positive(builder.keys, "stride")
    if channels % (stride * stride):
        builder.refuse(f"{channels} channels", f"a multiple of {stride * stride}")
    few = channels // (stride * stride)
    if builder.flag("reverse"):
        blocks = builder.x.reshape([builder.batch, stride, stride, few, height, width])
        moved = blocks.transpose([0, 3, 4, 1, 5, 2])
    else:
        blocks = builder.x.reshape([builder.batch, few, height, stride, width, stride])
        moved = blocks.transpose([0, 3, 5, 1, 2, 4])
    return [moved.reshape([builder.batch, *builder.layer.result]).value]
