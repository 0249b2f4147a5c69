"""Reductions along dimensions, and where the largest elements are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter, ReductionParameter
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.enums import ExtremumKind, ReduceKind
from lowerdeck.dialects.core.reduce import ArgReduceOp, ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp, TopKOp, ints
from lowerdeck.dialects.core.types import f32, static_shape
from lowerdeck.exporters.caffe.movement import picked
from lowerdeck.exporters.caffe.net import Blob, Fields, Net, converts, recognizes
from lowerdeck.passes.driver import producer
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.values import number


class Mean(NamedTuple):
    """The mean of a value along axes."""

    input: SSAValue
    axes: list[int]
    keep_dims: bool
    """The axes stay as ones."""


def mean_of(value: SSAValue) -> Mean | None:
    """The mean that a value is: a sum, divided by the number of elements."""
    owner = value.owner
    if not isinstance(owner, e.DivOp | e.MulOp):
        return None
    total, factor = owner.lhs, number(owner.rhs)
    if total.type != value.type or factor is None:
        return None
    if (reshape := producer(total, ReshapeOp)) is not None and reshape.result.has_one_use():
        total = reshape.input
    reduce = producer(total, ReduceOp)
    if reduce is None or reduce.kind.data != ReduceKind.SUM:
        return None
    shape = static_shape(reduce.input)
    if shape is None:
        return None
    axes = ints(reduce.axes)
    count = prod(shape[axis] for axis in axes)
    if count == 0:
        return None
    wanted = count if isinstance(owner, e.DivOp) else float(np.float32(1 / count))
    if factor != wanted:
        return None
    ones = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return Mean(reduce.input, axes, static_shape(value) == ones)


@recognizes(e.DivOp, e.MulOp)
def _mean(net: Net, op: e.BinaryOp) -> Blob | None:
    """A sum divided by the number of its elements"""
    found = mean_of(op.result)
    if found is None:
        return None
    return _reduced(net, found.input, found.axes, "mean", net.shape(op.result))


@converts(ReduceOp)
def _reduce(net: Net, op: ReduceOp) -> Blob:
    shape, axes = net.shape(op.result), ints(op.axes)
    if 0 in net.shape(op.input):
        refuse("the reduction of no elements", "at least one")
    match op.kind.data:
        case ReduceKind.SUM:
            return _sum(net, op)
        case ReduceKind.MAX:
            return _reduced(net, op.input, axes, "max", shape)
        case ReduceKind.MIN:
            negated = net.scaled(net.blob(op.input), -1, suffix="negative")
            return net.scaled(_along_axes(net, negated, axes, "max", shape), -1)
        case _:
            refuse("a product along dimensions", "a sum, a mean, a maximum or a minimum")


def _sum(net: Net, op: ReduceOp) -> Blob:
    axes = ints(op.axes)
    rank = len(net.shape(op.input))
    value, operation = op.input, "sum"
    if axes == list(range(axes[0], rank)):
        product, absolute = producer(value, e.MulOp), producer(value, e.AbsOp)
        if product is not None and product.lhs is product.rhs:
            value, operation = product.lhs, "sumsq"
        elif absolute is not None:
            value, operation = absolute.input, "asum"
    return _reduced(net, value, axes, operation, net.shape(op.result))


def _reduced(
    net: Net, value: SSAValue, axes: Sequence[int], operation: str, shape: Sequence[int]
) -> Blob:
    return _along_axes(net, net.blob(value), axes, operation, shape)


_OPERATIONS = {
    "sum": ReductionParameter.SUM,
    "mean": ReductionParameter.MEAN,
    "sumsq": ReductionParameter.SUMSQ,
    "asum": ReductionParameter.ASUM,
}


def _along_axes(
    net: Net, x: Blob, axes: Sequence[int], operation: str, shape: Sequence[int]
) -> Blob:
    """
    What is left of a blob along axes, in the shape that it has then.

    Planes are pooled, the last dimensions are reduced by a Reduction layer, and others are pooled
    as planes of one column; of several ranges, each by itself.
    """
    is_trailing = list(axes) == list(range(axes[0], x.rank))
    if x.rank == 4 and list(axes) == [2, 3] and operation in ("mean", "max"):
        return net.reshaped(_pooled(net, x, operation), shape)
    if is_trailing and operation in _OPERATIONS:
        axis = axes[0]
        field = None if operation == "sum" else _OPERATIONS[operation]
        result = net.layer("Reduction", [x], operation=field, axis=axis or None)
        return net.reshaped(result, shape)
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    for run in runs:
        first, last = run[0], run[-1] + 1
        count, whole = prod(x.shape[first:last]), x.shape
        columns = [prod(whole[:first]), 1, count, prod(whole[last:])]
        column = _pooled(net, net.reshaped(x, columns), operation, count)
        x = net.reshaped(column, [*whole[:first], *[1] * len(run), *whole[last:]])
        if operation == "sum":
            x = net.scaled(x, count, suffix="count")
    return net.reshaped(x, shape)


def _pooled(net: Net, x: Blob, operation: str, height: int | None = None) -> Blob:
    """Whole planes, or columns of a height, as one element each."""
    if operation not in ("mean", "max", "sum"):
        refuse(f"a reduction '{operation}' along inner dimensions", "one along the last ones")
    fields: Fields = {"global_pooling": True}
    if height is not None and x.shape[3] != 1:
        fields = {"kernel_h": height, "kernel_w": 1}
    pool = PoolingParameter.MAX if operation == "max" else PoolingParameter.AVE
    return net.layer("Pooling", [x], suffix="" if height is None else "pool", pool=pool, **fields)


# Places


@recognizes(TopKOp)
def _largest(net: Net, op: TopKOp) -> list[Blob] | None:
    """The largest elements along an axis; equal ones are equal in any order"""
    if not op.largest.value.data:
        return None
    x = net.blob(op.input)
    if (backward := _reversed(op.input, op.axis.data)) is not None:
        x = net.blob(backward)
    values = net.layer("ArgMax", [x], axis=op.axis.data, out_max_val=True, top_k=_count(op))
    return [values, values]


def _count(op: TopKOp) -> int | None:
    """The number of elements, unless it is that of ArgMax without one."""
    count = op.k.data[0].value
    if count is None:
        refuse(f"the {op.k.data[0]} largest elements", "a number of them")
    return None if count == 1 else count


def _reversed(value: SSAValue, axis: int) -> SSAValue | None:
    """What a value is, read from the end of an axis; None if it is not."""
    part = producer(value, SliceOp)
    if part is None:
        return None
    shape, whole = static_shape(part.result), static_shape(part.input)
    starts, steps = ([expr.value for expr in dims.data] for dims in (part.starts, part.steps))
    if shape is None or shape != whole:
        return None
    backward = [-1 if each == axis else 1 for each in range(len(shape))]
    last = [shape[axis] - 1 if each == axis else 0 for each in range(len(shape))]
    return part.input if (starts, steps) == (last, backward) else None


@recognizes(e.CastOp)
def _places(net: Net, op: e.CastOp) -> Blob | None:
    """The places of the largest elements, or how far they are from the end, as floats"""
    if op.to != f32:
        return None
    value, distance = op.input, None
    if (difference := producer(value, e.SubOp)) is not None:
        value, distance = difference.rhs, number(difference.lhs)
    found = producer(value, TopKOp)
    if found is None or value is not found.indices or not found.largest.value.data:
        return None
    axis = found.axis.data
    last = net.shape(found.input)[axis] - 1
    backward = _reversed(found.input, axis)
    if backward is not None and distance == last:
        # Of equal elements Caffe takes the last one first.
        return net.layer("ArgMax", [net.blob(backward)], axis=axis, top_k=_count(found))
    if difference is not None:
        return None
    x = net.blob(found.input)
    x = picked(net, x, axis, range(last + 1)[::-1])
    places = net.layer("ArgMax", [x], axis=axis, top_k=_count(found))
    return net.scaled(places, -1, last, suffix="place")


@recognizes(e.CastOp)
def _arg_max(net: Net, op: e.CastOp) -> Blob | None:
    """The place of the largest element along an axis, as a float"""
    found = producer(op.input, ArgReduceOp)
    if found is None or op.to != f32:
        return None
    x, axis = net.blob(found.input), found.axis.data
    if found.kind.data == ExtremumKind.MIN:
        x = net.scaled(x, -1, suffix="negative")
    is_last = bool(found.last_index.value.data)
    if not is_last:
        # Of equal elements Caffe takes the last one, which is the first one from behind.
        x = picked(net, x, axis, range(x.shape[axis])[::-1])
    place = net.layer("ArgMax", [x], axis=axis)
    if not is_last:
        place = net.scaled(place, -1, x.shape[axis] - 1, suffix="place")
    return net.reshaped(place, net.shape(op.result))
