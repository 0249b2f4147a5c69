"""Patches of two images compared at displacements (Dosovitskiy et al., FlowNet)."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.dims import Expr, exprs
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.movement import concat, pad
from lowerdeck.passes.legalize.common.pooling import pool
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


@record
class Displacements:
    """Which patches are compared, and how."""

    size: int
    """The side of a patch."""
    most: int
    """The largest displacement."""
    stride: int
    """From patch to patch."""
    step: int
    """From displacement to displacement."""
    padding: int
    multiplies: bool
    """Products; else sizes of differences."""


def correlation(
    builder: Legalizer, images: Sequence[TensorValue], rule: Displacements
) -> TensorValue:
    """The mean over each patch and all channels, [N, displacements, rows, columns]."""
    batch, channels, *space = images[0].dims
    if channels.value is None or min(rule.stride, rule.step, rule.size) < 1:
        builder.refuse("an open number of channels or a stride below 1", "known ones from 1 on")
    reach, radius = rule.most // rule.step, (rule.size - 1) // 2
    room = 2 * rule.padding - 2 * (rule.most + radius) + rule.stride - 1
    extent = [((dim + room) // rule.stride - 1) * rule.stride + rule.size for dim in space]
    amounts = exprs([0, 0, rule.padding, rule.padding])
    left, right = (pad(builder, image.value, amounts, amounts) for image in images)
    zero = [Expr.const(0)] * 2
    strides = [rule.stride] * 2
    window = Window(tuple(exprs([rule.size] * 2)), strides, [1, 1], zero, zero, zero)
    dims = [batch, channels, *extent]
    first = TensorValue(builder, builder.slice(left, [0, 0, rule.most, rule.most], dims))
    parts: list[TensorValue] = []
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            starts = [0, 0, rule.most + down * rule.step, rule.most + across * rule.step]
            there = TensorValue(builder, builder.slice(right, starts, dims))
            terms = first * there if rule.multiplies else (first - there).abs()
            total = terms.reduce("sum", [1], keep_dims=True)
            parts.append(TensorValue(builder, pool(builder, "sum", total.value, window)))
    whole = TensorValue(builder, concat(builder, [part.value for part in parts], 1))
    return whole / float(rule.size * rule.size * channels.value)
