"""Reductions along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter, ReductionParameter
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.enums import ReduceKind
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ints
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.exporters.caffe.net import Blob, Fields, Net, converts, recognizes
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number


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
            return net.scaled(along_axes(net, negated, axes, "max", shape), -1)
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
    return along_axes(net, net.blob(value), axes, operation, shape)


_OPERATIONS = {
    "sum": ReductionParameter.SUM,
    "mean": ReductionParameter.MEAN,
    "sumsq": ReductionParameter.SUMSQ,
    "asum": ReductionParameter.ASUM,
}


def along_axes(
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
