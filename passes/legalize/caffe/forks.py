"""Layers of forks that compute each element by itself, move elements, or change sizes."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import InterpParameter
from lowerdeck.dialects.caffe.fork_shapes import interp_sizes, upsample_factors
from lowerdeck.dialects.core.elementwise import SigmoidOp, TanhOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, f32, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.caffe.elementwise import rectified
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common import activation
from lowerdeck.passes.legalize.common.blocks import shuffled_channels
from lowerdeck.passes.legalize.common.interpolation import weighted_taps
from lowerdeck.passes.legalize.common.movement import concat, enlarged
from lowerdeck.passes.legalize.common.selection import nonzero
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue

# Neurons


@legalizes("CReLU")
def legalize_crelu(builder: CaffeLegalizer) -> Results:
    """x and -x behind each other, as ReLU has both."""
    p = builder.layer.crelu_param
    x = builder.bottom
    parts = [rectified(part, p.negative_slope).value for part in (x, -x)]
    return [concat(builder, parts, builder.axis(p.concat_axis, len(builder.shape)))]


@legalizes("HardSwish", "HSwish")
def legalize_hard_swish(builder: CaffeLegalizer) -> Results:
    """x * min(max(x + 3, 0), 6) / 6"""
    x = builder.bottom
    return [(x * _six(x) / 6).value]


@legalizes("HSigmoid")
def legalize_hard_sigmoid(builder: CaffeLegalizer) -> Results:
    """min(max(x + 3, 0), 6) / 6"""
    return [(_six(builder.bottom) / 6).value]


def _six(x: TensorValue) -> TensorValue:
    return (x + 3).maximum(0).minimum(6)


@legalizes("Mish")
def legalize_mish(builder: CaffeLegalizer) -> Results:
    """x * tanh(log(1 + exp(x)))"""
    x = builder.bottom
    return [(x * apply(TanhOp, activation.softplus(x))).value]


@legalizes("SiLU")
def legalize_silu(builder: CaffeLegalizer) -> Results:
    """x * sigmoid(x)"""
    return [(builder.bottom * apply(SigmoidOp, builder.bottom)).value]


@legalizes("Axpy")
def legalize_axpy(builder: CaffeLegalizer) -> Results:
    """A number for each plane times the second bottom, plus the third."""
    scale, x, y = (TensorValue(builder, bottom) for bottom in builder.bottoms)
    ones = [1] * (len(x.dims) - 2)
    return [(scale.reshape([*x.dims[:2], *ones]) * x + y).value]


# Movement


@legalizes("Filter")
def legalize_filter(builder: CaffeLegalizer) -> Results:
    """The items of all bottoms for which the last one is not zero."""
    *values, selector = builder.bottoms
    chosen = nonzero(builder, builder.reshape(selector, [dims_of(selector)[0]]))
    index = builder.reshape(chosen, [dims_of(chosen)[1]])
    return [builder.add(GatherOp(value, index, 0, inside=True)) for value in values]


@legalizes("Reorg")
def legalize_reorg(builder: CaffeLegalizer) -> Results:
    """Each channel's elements as `stride` x `stride` groups of channels of smaller planes."""
    stride, (n, channels, height, width) = builder.layer.reorg_param.stride, builder.shape
    rows, columns = height // stride, width // stride
    parts = builder.reshape(builder.x, [n, channels, rows, stride, columns, stride])
    moved = builder.transpose(parts, [0, 3, 5, 1, 2, 4])
    return [builder.reshape(moved, [n, channels * stride * stride, rows, columns])]


@legalizes("Reverse")
def legalize_reverse(builder: CaffeLegalizer) -> Results:
    """The elements along the axis, the last one first."""
    axis = builder.axis(builder.layer.reverse_param.axis, rank_of(builder.x))
    return [builder.flip(builder.x, [axis])]


@legalizes("ShuffleChannel")
def legalize_shuffle_channel(builder: CaffeLegalizer) -> Results:
    """The first channels of all groups, then the second ones, and so on."""
    group = builder.layer.shuffle_channel_param.group
    return [shuffled_channels(builder, builder.x, group)]


@legalizes("ContinuationIndicator")
def legalize_continuation_indicator(builder: CaffeLegalizer) -> Results:
    """What an LSTM's `cont` says of whole sequences: 0 for the first step, 1 for all others."""
    p = builder.layer.continuation_indicator_param
    cont = np.ones((p.time_step, p.batch_size), np.float32)
    cont[0] = 0
    return [builder.tensor(cont)]


# Sizes


@legalizes("Interp")
def legalize_interp(builder: CaffeLegalizer) -> Results:
    """Bilinear interpolation, in which the corners of both planes lie on each other."""
    p = builder.layer.interp_param
    height, width = builder.shape[2:]
    if height.value is None or width.value is None:
        builder.refuse(f"a plane of {height} by {width}", "numbers", "give the shape of the input")
    inner, outer = interp_sizes(p, height.value, width.value)
    x = _cropped(builder, p, inner)
    if inner == outer:
        return [x]
    # Rows first: Caffe sums the neighbors in a row before those above each other.
    for axis in (3, 2):
        x = _stretched(builder, x, axis, inner[axis - 2], outer[axis - 2])
    return [x]


def _cropped(
    builder: CaffeLegalizer, parameters: InterpParameter, inner: tuple[int, ...]
) -> SSAValue:
    start = -parameters.pad_beg
    return builder.slice(builder.x, [0, 0, start, start], [*builder.shape[:2], *inner])


def _stretched(builder: CaffeLegalizer, x: SSAValue, axis: int, old: int, new: int) -> SSAValue:
    ratio = np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
    place = ratio * np.arange(new, dtype=np.float32)
    low = np.minimum(place.astype(np.int64), old - 1)
    after = place - low.astype(np.float32)
    index = np.stack([low, np.minimum(low + 1, old - 1)], 1)
    weights = np.stack([np.float32(1) - after, after], 1)
    known = (TensorValue(builder, array) for array in (index, weights))
    return weighted_taps(builder, x, axis, *known, inside=True)


@legalizes("Upsample")
def legalize_upsample(builder: CaffeLegalizer) -> Results:
    """
    Each element several times in both directions; with a mask, the elements where the mask says
    that they lie in their plane, and zeros.
    """
    p, (n, channels, height, width) = builder.layer.upsample_param, builder.shape
    high, wide = upsample_factors(p)
    if len(builder.bottoms) == 1:
        return [enlarged(TensorValue.of(builder, builder.x), 2, [high, wide]).value]
    rows, columns = height * high - int(p.pad_out_h), width * wide - int(p.pad_out_w)
    if p.HasField("upsample_h"):
        rows, columns = Expr.const(p.upsample_h), Expr.const(p.upsample_w)
    values, places = (
        builder.reshape(bottom, [n, channels, height * width]) for bottom in builder.bottoms
    )
    zeros = builder.broadcast(builder.scalar(0, f32), [n, channels, rows * columns])
    # Of several elements for one place the last one stays.
    spread = builder.add(ScatterElementsOp(zeros, builder.cast(places, i64), values, 2))
    return [builder.reshape(spread, [n, channels, rows, columns])]
