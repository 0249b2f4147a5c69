"""Layers that bring blobs to a scale, given or found."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import LRNParameter
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind
from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ints
from lowerdeck.exporters.caffe.elementwise import along, product_of, scaled_by
from lowerdeck.exporters.caffe.linear import numbers
from lowerdeck.exporters.caffe.net import Array, Blob, Fields, Net, Weight, converts, recognizes
from lowerdeck.exporters.caffe.reductions import along_axes, mean_of
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.values import number, uniform_value

# Batch normalization


@converts(BatchNormOp)
def _batch_norm(net: Net, op: BatchNormOp) -> Blob:
    """
    BatchNorm, whose statistics are divided by a third blob, which is 1; then Scale, unless there is
    none. The channels are dimension 1.
    """
    x = net.blob(op.input)
    whole, axis = x.shape, op.axis.data
    if axis != 1:
        x = net.reshaped(x, [prod(whole[:axis]), whole[axis], prod(whole[axis + 1 :])])
    mean, variance = (net.weight(value, "a statistic") for value in (op.mean, op.variance))
    one = Weight.of(np.ones(1, np.float32))
    x = net.layer("BatchNorm", [x], [mean, variance, one], **_epsilon(op.epsilon.value.data))
    scale, bias = (net.weight(value, "a parameter") for value in (op.scale, op.bias))
    is_unbiased = uniform_value(op.bias) == 0
    if not is_unbiased or uniform_value(op.scale) != 1:
        names = source_names(op, 2)
        # A Scale layer of the source has a name of its own.
        own = names[1] if len(names) == 2 else None
        x = net.layer(
            "Scale",
            [x],
            [scale] if is_unbiased else [scale, bias],
            suffix="scale",
            name=own,
            bias_term=None if is_unbiased else True,
        )
    return net.reshaped(x, whole)


def _epsilon(epsilon: float) -> Fields:
    """The field, unless it has its default."""
    return {"eps": None if np.float32(epsilon) == np.float32(1e-5) else epsilon}


# By the moments of the blob


def _own_moments(net: Net, x: Blob, axis: int, epsilon: float) -> Blob:
    """(x - mean) / sqrt(variance + epsilon) over the dimensions from `axis` on."""
    rows = net.reshaped(x, [1, prod(x.shape[:axis]), prod(x.shape[axis:])])
    normal = net.layer("BatchNorm", [rows], _statistics(rows), use_global_stats=False, eps=epsilon)
    return net.reshaped(normal, x.shape)


def _by_own_squares(net: Net, x: Blob, op: LayerNormOp) -> Blob:
    """x by its root mean square over the dimensions from `axis` on."""
    axis, epsilon = op.axis.data, op.epsilon.value.data
    count = prod(x.shape[axis:])
    rows = [*x.shape[:axis], *[1] * (x.rank - axis)]
    total = along_axes(net, x, list(range(axis, x.rank)), "sumsq", rows)
    power: Fields = {"scale": 1 / count}
    if op.late_epsilon is None:
        inverse = net.layer("Power", [total], power=-0.5, shift=epsilon or None, **power)
    else:
        root = net.layer("Power", [total], power=0.5, **power)
        inverse = net.layer("Power", [root], power=-1, shift=epsilon or None)
    return product_of(net, x, inverse, x.shape)


def _statistics(x: Blob) -> list[Weight]:
    """Blobs that a layer has and does not read."""
    channels = x.shape[1]
    zeros, ones = np.zeros(channels, np.float32), np.ones(channels, np.float32)
    return [Weight.of(zeros), Weight.of(ones), Weight.of(np.ones(1, np.float32))]


@converts(LayerNormOp)
def _layer_norm(net: Net, op: LayerNormOp) -> Blob:
    x = net.blob(op.input)
    if op.uncentered is not None:
        result = _by_own_squares(net, x, op)
    elif op.late_epsilon is not None:
        refuse("a deviation to which epsilon is added", "a variance")
    else:
        result = _own_moments(net, x, op.axis.data, op.epsilon.value.data)
    scale = net.array(op.scale)
    bias = None if op.bias is None else net.array(op.bias)
    if scale is None or (op.bias is not None and bias is None):
        refuse("a parameter that depends on data", "a constant")
    if bias is None and (scale == 1).all():
        return result
    return scaled_by(net, result, scale, bias)


class _Centered(NamedTuple):
    """x - mean(x) over some axes, and what it is divided by."""

    x: SSAValue
    axes: list[int]


def _centered(rest: SSAValue, variance: SSAValue) -> _Centered | None:
    """What a value is centered of, if another one is the mean of its squares."""
    difference, moment = producer(rest, e.SubOp), mean_of(variance)
    mean = None if difference is None else mean_of(difference.rhs)
    square = None if moment is None else producer(moment.input, e.MulOp)
    if difference is None or moment is None or mean is None or square is None:
        return None
    is_square = square.lhs is rest and square.rhs is rest
    if not is_square or mean.input is not difference.lhs or mean.axes != moment.axes:
        return None
    if not mean.keep_dims or not moment.keep_dims or rest.type != difference.lhs.type:
        return None
    return _Centered(mean.input, mean.axes)


@recognizes(e.DivOp)
def _normalized(net: Net, op: e.DivOp) -> Blob | None:
    """(x - mean) / sqrt(variance + epsilon), of all but the channels or of the last dimensions"""
    root = producer(op.rhs, e.SqrtOp)
    total = None if root is None else producer(root.input, e.AddOp)
    if total is None or (epsilon := number(total.rhs)) is None:
        return None
    found = _centered(op.lhs, total.lhs)
    if found is None:
        return None
    x = net.blob(found.x)
    if found.axes == [axis for axis in range(x.rank) if axis != 1]:
        own: Fields = {**_epsilon(epsilon), "use_global_stats": False}
        return net.layer("BatchNorm", [x], _statistics(x), **own)
    if found.axes == list(range(found.axes[0], x.rank)) and found.axes[0] > 0:
        return _own_moments(net, x, found.axes[0], epsilon)
    return None


@recognizes(e.DivOp)
def _mvn(net: Net, op: e.DivOp) -> Blob | None:
    """(x - mean) / (sqrt(variance) + epsilon) of each channel or item"""
    total = producer(op.rhs, e.AddOp)
    root = None if total is None else producer(total.lhs, e.SqrtOp)
    if total is None or root is None or (epsilon := number(total.rhs)) is None:
        return None
    found = _centered(op.lhs, root.input)
    if found is None:
        return None
    x = net.blob(found.x)
    first = found.axes[0]
    if x.rank != 4 or found.axes != list(range(first, x.rank)) or first not in (1, 2):
        return None
    is_default = np.float32(epsilon) == np.float32(1e-9)
    across = True if first == 1 else None
    return net.layer("MVN", [x], across_channels=across, eps=None if is_default else epsilon)


@recognizes(e.SubOp)
def _mean_taken_off(net: Net, op: e.SubOp) -> Blob | None:
    """x - mean(x) of each channel or item"""
    mean = mean_of(op.rhs)
    if mean is None or mean.input is not op.lhs or not mean.keep_dims:
        return None
    x = net.blob(op.lhs)
    first = mean.axes[0]
    if x.rank != 4 or mean.axes != list(range(first, x.rank)) or first not in (1, 2):
        return None
    across = True if first == 1 else None
    return net.layer("MVN", [x], across_channels=across, normalize_variance=False)


@recognizes(e.MulOp)
def _scaled_length(net: Net, op: e.MulOp) -> Blob | None:
    """scale * x / sqrt(sum of squares + epsilon), with one scale a channel or one for all"""
    quotient, scale = producer(op.lhs, e.DivOp), net.array(op.rhs)
    if quotient is None or scale is None or not quotient.result.has_one_use():
        return None
    axis, run = along(scale, net.shape(op.result))
    if quotient.result.type != op.result.type or (run.ndim, axis) not in ((0, 0), (1, 1)):
        return None
    return _by_length(net, quotient, run)


@recognizes(e.DivOp)
def _length(net: Net, op: e.DivOp) -> Blob | None:
    """x / sqrt(sum of squares + epsilon)"""
    return _by_length(net, op, np.ones((), np.float32))


def _by_length(net: Net, op: e.DivOp, scale: Array) -> Blob | None:
    """A Normalize layer, whose sum is over the channels or over all of an item."""
    root = producer(op.rhs, e.SqrtOp)
    total = None if root is None else producer(root.input, e.AddOp)
    reduce = None if total is None else producer(total.lhs, ReduceOp)
    if total is None or reduce is None or not net.has("Normalize"):
        return None
    epsilon, x = number(total.rhs), op.lhs
    is_kept = bool(reduce.keep_dims.value.data)
    if epsilon is None or reduce.kind.data != ReduceKind.SUM or not is_kept:
        return None
    rank, axes = len(net.shape(x)), ints(reduce.axes)
    across = axes == list(range(1, rank))
    if not _squares(reduce.input, x) or not 2 <= rank <= 4 or not (across or axes == [1]):
        return None
    is_default = np.float32(epsilon) == np.float32(1e-10)
    return net.layer(
        "Normalize",
        [net.blob(x)],
        [Weight.of(scale)],
        across_spatial=None if across else False,
        channel_shared=None if scale.ndim == 0 else False,
        eps=None if is_default else epsilon,
    )


# By neighbors


@recognizes(e.DivOp)
def _lrn(net: Net, op: e.DivOp) -> Blob | None:
    """x / (k + alpha * sum of squares)^beta, of neighboring channels or of a window"""
    power = producer(op.rhs, e.PowOp)
    if power is None or (beta := number(power.rhs)) is None:
        return None
    k, alpha, value = 0.0, 1.0, power.lhs
    if (total := producer(value, e.AddOp)) is not None and number(total.rhs) is not None:
        k, value = number(total.rhs) or 0.0, total.lhs
    if (product := producer(value, e.MulOp)) is not None and number(product.rhs) is not None:
        alpha, value = number(product.rhs) or 0.0, product.lhs
    if producer(value, ReshapeOp) is not None:
        return _across_channels(net, op.lhs, value, (k, alpha, beta))
    return _within_channel(net, op.lhs, value, (k, alpha, beta))


def _across_channels(
    net: Net, x: SSAValue, total: SSAValue, numbers_: tuple[float, float, float]
) -> Blob | None:
    """By the sum of squares along one dimension, which is put in the place of the channels."""
    reshape = producer(total, ReshapeOp)
    pool = None if reshape is None else producer(reshape.input, PoolOp)
    rows = None if pool is None else producer(pool.input, ReshapeOp)
    if (
        pool is None
        or rows is None
        or pool.kind.data != PoolKind.SUM
        or not _squares(rows.input, x)
    ):
        return None
    size = numbers(pool.kernel, "a kernel")
    if size[1:] != [1] or size[0] % 2 == 0 or not _is_centered(pool, size):
        return None
    whole, split = net.shape(x), net.shape(pool.input)
    axis = next(
        (
            axis
            for axis in range(len(whole))
            if split == (prod(whole[:axis]), 1, whole[axis], prod(whole[axis + 1 :]))
        ),
        None,
    )
    if axis is None:
        return None
    k, alpha, beta = numbers_
    blob = net.blob(x)
    if axis != 1 or blob.rank != 4:
        blob = net.reshaped(blob, [split[0], split[2], split[3], 1])
    result = net.layer(
        "LRN",
        [blob],
        local_size=None if size[0] == 5 else size[0],
        alpha=_of_f32(alpha * size[0]),
        beta=None if beta == 0.75 else beta,
        k=None if k == 1 else k,
    )
    return net.reshaped(result, whole)


def _within_channel(
    net: Net, x: SSAValue, total: SSAValue, numbers_: tuple[float, float, float]
) -> Blob | None:
    """By the mean of squares of windows, in which padding counts."""
    pool = producer(total, PoolOp)
    k, alpha, beta = numbers_
    if pool is None or pool.kind.data != PoolKind.AVERAGE or not _squares(pool.input, x) or k != 1:
        return None
    size = numbers(pool.kernel, "a kernel")
    is_counted = bool(pool.count_pads.value.data)
    if len(size) != 2 or size[0] != size[1] or size[0] % 2 == 0 or not is_counted:
        return None
    if not _is_centered(pool, size) or any(numbers(pool.overhang, "an overhang")):
        return None
    return net.layer(
        "LRN",
        [net.blob(x)],
        norm_region=LRNParameter.WITHIN_CHANNEL,
        local_size=None if size[0] == 5 else size[0],
        alpha=alpha,
        beta=None if beta == 0.75 else beta,
    )


def _of_f32(value: float) -> float:
    """A number of which f32 keeps as few digits as it takes."""
    return float(np.float32(value))


def _squares(value: SSAValue, x: SSAValue) -> bool:
    square = producer(value, e.MulOp)
    return square is not None and square.lhs is x and square.rhs is x


def _is_centered(pool: PoolOp, size: list[int]) -> bool:
    """True if each element has a window around it."""
    reach = [(each - 1) // 2 for each in size]
    pads = [numbers(dims, "padding") for dims in (pool.pads_begin, pool.pads_end)]
    is_dense = {*ints(pool.strides), *ints(pool.dilations)} == {1}
    return is_dense and pads == [reach, reach]
