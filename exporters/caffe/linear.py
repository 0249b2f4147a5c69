"""Convolutions, and what is added to them and to products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lowerdeck.dialects.caffe.shapes import Shape
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.tensor import PadOp, TransposeOp, ints
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.exporters.caffe.elementwise import along
from lowerdeck.exporters.caffe.movement import padded, transposed
from lowerdeck.exporters.caffe.net import Array, Blob, Fields, Net, Weight, converts, recognizes
from lowerdeck.exporters.caffe.products import has_weights, inner_product
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number

# Windows


class Range(NamedTuple):
    """What is asked of one dimension of a layer whose padding is the same on both sides."""

    pad: int
    start: int
    """How many results before those that are wanted the layer makes."""


def numbers(dims: DimsAttr, what: str) -> list[int]:
    """Sizes that are numbers; refused if they depend on symbols."""
    found = [dim.value for dim in dims.data]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        listed = ", ".join(map(str, dims.data))
        refuse(f"{what} of [{listed}]", "numbers", "give the shapes with --input-shape")
    return known


def windows(kernel: Sequence[int], **lists: Sequence[int]) -> Fields:
    """
    The fields of the windows: as few as possible, but for volumes one for each dimension, because
    some readers of nets do not take one for all.
    """
    fields: Fields = {}
    for name, default, values in (
        ("kernel", None, list(kernel)),
        ("stride", 1, list(lists["stride"])),
        ("pad", 0, list(lists["pad"])),
    ):
        if all(value == default for value in values):
            continue
        if len(set(values)) == 1 and len(values) <= 2:
            fields["kernel_size" if name == "kernel" else name] = [values[0]]
        elif len(values) == 2:
            fields[f"{name}_h"], fields[f"{name}_w"] = values
        else:
            fields["kernel_size" if name == "kernel" else name] = values
    dilation = list(lists["dilation"])
    if any(value != 1 for value in dilation):
        is_one = len(set(dilation)) == 1 and len(dilation) <= 2
        fields["dilation"] = dilation[:1] if is_one else dilation
    return fields


def _unpadded(net: Net, op: ConvOp) -> tuple[Blob, list[int]]:
    """
    The input of a convolution and its padding before it, zeros that the model pads it with
    included, also if it brings the dimensions into another order behind them.
    """
    begins, value = numbers(op.pads_begin, "padding"), op.input
    order = list(range(len(begins) + 2))
    if (transpose := producer(value, TransposeOp)) is not None:
        order, value = ints(transpose.permutation), transpose.input
    pad = producer(value, PadOp)
    if pad is None or pad.mode.data != PadMode.CONSTANT:
        return net.blob(op.input), begins
    sides = [[dim.value for dim in dims.data] for dims in (pad.begin, pad.end)]
    low, high = ([side[axis] for axis in order] for side in sides)
    is_around_planes = not any((*low[:2], *high[:2])) and all(
        size is not None and size >= 0 for size in (*low, *high)
    )
    if not is_around_planes or (pad.value is not None and number(pad.value) != 0):
        return net.blob(op.input), begins
    more = [size for size in low[2:] if size is not None]
    x = transposed(net, net.blob(pad.input), order)
    return x, [begin + size for begin, size in zip(begins, more, strict=True)]


def _ranges(net: Net, op: ConvOp, shape: Shape, begins: Sequence[int]) -> list[Range]:
    """The least padding of each dimension with which the layer's windows include those of `op`."""
    result, kernel = net.shape(op.result), net.shape(op.weight)[2:]
    found: list[Range] = []
    for axis, (k, stride, dilation, begin) in enumerate(
        zip(kernel, ints(op.strides), ints(op.dilations), begins, strict=True), 2
    ):
        extent, start = (k - 1) * dilation + 1, 0
        if begin < 0:
            # The first windows of the layer are before the first one that is wanted.
            start = -(begin // stride)
        while True:
            pad = begin + start * stride
            count = (shape[axis] + 2 * pad - extent) // stride + 1
            if pad >= 0 and count >= start + result[axis]:
                break
            start += 1
        found.append(Range(pad, start))
    return found


def _cut(net: Net, x: Blob, starts: Sequence[int], shape: Sequence[int]) -> Blob:
    """The range of each spatial dimension that is wanted."""
    for axis, start in enumerate(starts, 2):
        x = net.cut(x, axis, start, shape[axis])
    return x


# Convolutions


@converts(ConvOp)
def _conv(net: Net, op: ConvOp) -> Blob:
    return convolution(net, op, None if op.bias is None else net.weight(op.bias, "a bias"))


def convolution(net: Net, op: ConvOp, bias: Weight | None) -> Blob:
    """The layer of a convolution with another bias."""
    if op.zero_points:
        refuse("a convolution with zero points", "one of floats")
    weight = net.weight(op.weight, "a weight of Convolution, the nearest layer,")
    x, begins = _unpadded(net, op)
    ranges = _ranges(net, op, x.shape, begins)
    fields = windows(
        weight.shape[2:],
        stride=ints(op.strides),
        pad=[each.pad for each in ranges],
        dilation=ints(op.dilations),
    )
    result = net.layer(
        "Convolution",
        [x],
        [weight, *([] if bias is None else [bias])],
        origin=op,
        num_output=weight.shape[0],
        bias_term=None if bias is not None else False,
        group=None if op.groups.data == 1 else op.groups.data,
        **fields,
    )
    return _cut(net, result, [each.start for each in ranges], net.shape(op.result))


@converts(ConvTransposeOp)
def _conv_transpose(net: Net, op: ConvTransposeOp) -> Blob:
    return deconvolution(net, op, None if op.bias is None else net.weight(op.bias, "a bias"))


def deconvolution(net: Net, op: ConvTransposeOp, bias: Weight | None) -> Blob:
    """The layer of a transposed convolution with another bias."""
    weight = net.weight(op.weight, "a weight of Deconvolution, the nearest layer,")
    shape = net.shape(op.result)
    pads: list[int] = []
    starts: list[int] = []
    missing: list[int] = []
    ends = numbers(op.pads_end, "padding")
    for begin, end, extra in zip(
        numbers(op.pads_begin, "padding"), ends, ints(op.output_padding), strict=True
    ):
        if begin < 0:
            refuse(f"padding of {begin} before the result", "at least 0")
        pads.append(max(min(begin, end - extra), 0))
        starts.append(begin - pads[-1])
        missing.append(max(extra - end, 0))
    is_short = any(missing)
    result = net.layer(
        "Deconvolution",
        [net.blob(op.input)],
        [weight, *([] if bias is None or is_short else [bias])],
        origin=op,
        num_output=weight.shape[1] * op.groups.data,
        bias_term=None if bias is not None and not is_short else False,
        group=None if op.groups.data == 1 else op.groups.data,
        **windows(weight.shape[2:], stride=ints(op.strides), pad=pads, dilation=ints(op.dilations)),
    )
    if is_short:
        # Behind the last element that the input reaches there is nothing but the bias.
        result = padded(net, result, [0, 0, *[0] * len(missing)], [0, 0, *missing], 0)
    result = _cut(net, result, starts, shape)
    if is_short and bias is not None:
        result = net.layer("Bias", [result], [bias], suffix="bias")
    return result


# With the sum behind them


@recognizes(e.AddOp)
def _with_bias(net: Net, op: e.AddOp) -> Blob | None:
    """A convolution or product, without bias yet, plus one number a channel."""
    shift, shape = net.array(op.rhs), net.shape(op.result)
    if shift is None or not op.lhs.has_one_use() or net.shape(op.lhs) != shape:
        return None
    if (product := producer(op.lhs, MatmulOp)) is not None:
        if not has_weights(net, product):
            return None
        bias = _vector(shift, shape, len(shape) - 1)
        return None if bias is None else inner_product(net, product, bias)
    if (bias := _vector(shift, shape, 1)) is None:
        return None
    conv = producer(op.lhs, ConvOp)
    if conv is not None and conv.bias is None:
        return convolution(net, conv, bias)
    transposed = producer(op.lhs, ConvTransposeOp)
    if transposed is not None and transposed.bias is None:
        return deconvolution(net, transposed, bias)
    return None


def _vector(shift: Array, shape: Sequence[int], axis: int) -> Weight | None:
    """One number for each element along an axis, if a shift differs along no other."""
    found, run = along(shift, tuple(shape))
    if run.ndim == 0 or (found, run.ndim) == (axis, 1):
        return Weight.of(np.ascontiguousarray(np.broadcast_to(run, shape[axis : axis + 1])))
    return None
