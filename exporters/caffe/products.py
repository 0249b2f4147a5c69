"""Products of matrices: with weights, and of two blobs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import EltwiseParameter
from lowerdeck.dialects.caffe.shapes import Shape
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.exporters.caffe.movement import transposed
from lowerdeck.exporters.caffe.net import Array, Blob, Net, Weight, converts
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.machinery.driver import producer

MOST_TERMS = 1 << 26
"""The terms of a product of two blobs, each an element of one more blob: 256 MB."""


@converts(MatmulOp)
def _matmul(net: Net, op: MatmulOp) -> Blob:
    if op.zero_points:
        refuse("a product with zero points", "one of floats")
    if has_weights(net, op):
        return inner_product(net, op, None)
    if 0 in (*net.shape(op.lhs), *net.shape(op.rhs)):
        refuse("a product of no elements", "at least one")
    return _product_with_left(net, op) or _product(net, op)


def has_weights(net: Net, op: MatmulOp) -> bool:
    """True if the right factor is a constant matrix."""
    matrix = net.array(op.rhs)
    return matrix is not None and matrix.ndim == 2


def inner_product(net: Net, op: MatmulOp, bias: Weight | None) -> Blob:
    """The layer of a product with a constant matrix; it flattens what comes in by itself."""
    matrix = net.array(op.rhs)
    assert matrix is not None
    if op.zero_points:
        refuse("a product with zero points", "one of floats")
    x, axis = net.blob(op.lhs), len(net.shape(op.lhs)) - 1
    reshape = producer(op.lhs, ReshapeOp)
    if reshape is not None:
        before, after = net.shape(reshape.input), net.shape(op.lhs)
        if len(before) > axis and before[:axis] == after[:axis]:
            x = net.blob(reshape.input)
    return net.layer(
        "InnerProduct",
        [x],
        [Weight.of(np.ascontiguousarray(matrix.T)), *([] if bias is None else [bias])],
        origin=op,
        num_output=matrix.shape[1],
        bias_term=None if bias is not None else False,
        axis=None if axis == 1 else axis,
    )


def product_with_ones(net: Net, x: Blob, channels: int, suffix: str) -> Blob:
    """The sum of the channels, so many times."""
    return _convolved(net, x, np.ones((channels, x.shape[1]), np.float32), suffix)


def _convolved(net: Net, x: Blob, matrix: Array, suffix: str = "", group: int = 1) -> Blob:
    """A matrix times the channels at each place: those of its group, if there are several."""
    return net.layer(
        "Convolution",
        [x],
        [Weight.of(matrix.reshape(*matrix.shape, 1, 1))],
        suffix=suffix,
        num_output=matrix.shape[0],
        bias_term=False,
        group=None if group == 1 else group,
        kernel_size=[1],
    )


# A constant on the left


def _product_with_left(net: Net, op: MatmulOp) -> Blob | None:
    """A constant matrix, or one for each of the right, as the kernels of a convolution."""
    left, right = net.array(op.lhs), net.shape(op.rhs)
    if left is None or net.array(op.rhs) is not None:
        return None
    *batch, rows, inner = left.shape
    whole, columns = tuple(right[:-2]), right[-1]
    if prod(batch) == 1:
        x = net.reshaped(net.blob(op.rhs), [prod(whole), inner, columns, 1])
        found = _convolved(net, x, left.reshape(rows, inner))
    elif tuple(batch) == whole:
        count = prod(batch)
        x = net.reshaped(net.blob(op.rhs), [1, count * inner, columns, 1])
        found = _convolved(net, x, left.reshape(count * rows, inner), group=count)
    else:
        return None
    return net.reshaped(found, net.shape(op.result))


# Two blobs


def _product(net: Net, op: MatmulOp) -> Blob:
    """
    The sum of all products of two elements, which are one blob, along the inner dimension.

    The blob is [batch, rows, inner, columns]. If a factor is a transposed value, this one is read
    as it is, and the order of the blob is another: [batch, rows, columns, inner] for the right
    factor, [batch, inner, rows, columns] for the left one.

    What has fewer dimensions than the blob is repeated by the Scale that multiplies, or by a
    convolution with ones, which more readers of nets know than Tile. Sums are convolutions with
    ones, too, or products if they are along the last dimension.
    """
    left, right, shape = net.shape(op.lhs), net.shape(op.rhs), net.shape(op.result)
    if prod(right[:-2]) == 1:
        # The rows of all batches are those of one matrix.
        left, right = (1, prod(left[:-1]), left[-1]), right[-2:]
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    rows, inner, columns = left[-2], left[-1], right[-1]
    terms = prod(batch) * rows * inner * columns
    if terms > MOST_TERMS:
        refuse(
            f"a product of two values that depend on data, with {terms} terms",
            f"at most {MOST_TERMS} in a blob: no layer of Caffe multiplies two matrices, and "
            "Scale and Eltwise, the nearest ones, give all terms before they are added",
            "end the model before it with --output, or export ONNX",
        )
    if (flipped := _flipped(net, op.rhs)) is not None:
        x = _batches(net, net.blob(op.lhs), left, batch)
        y = _batches(net, flipped, (*right[:-2], columns, inner), batch)
        found = _sums_of_rows(net, x, y)
    elif prod(left[:-2]) == prod(net.shape(op.lhs)[:-2]) and (
        (flipped := _flipped(net, op.lhs)) is not None
    ):
        x = _batches(net, flipped, (*left[:-2], inner, rows), batch)
        y = _batches(net, net.blob(op.rhs), right, batch)
        found = _sums_of_columns(net, x, y)
    else:
        x = _batches(net, net.blob(op.lhs), left, batch)
        y = _batches(net, net.blob(op.rhs), right, batch)
        found = _sums_inside(net, x, y)
    return net.reshaped(found, shape)


def _flipped(net: Net, value: SSAValue) -> Blob | None:
    """
    A matrix, or several, with the last two dimensions swapped, if that needs less moving than the
    value as it is: its last dimension is the last but one of what it transposes.
    """
    transpose = producer(value, TransposeOp)
    if transpose is None:
        return None
    order = ints(transpose.permutation)
    if order[-2] != len(order) - 1:
        return None
    return transposed(net, net.blob(transpose.input), [*order[:-2], order[-1], order[-2]])


def _batches(net: Net, x: Blob, shape: Sequence[int], batch: Shape) -> Blob:
    """A blob in a shape, its batch dimensions repeated to others, as a list of matrices."""
    x = net.reshaped(x, shape)
    matrix = tuple(shape[-2:])
    if prod(shape[:-2]) != prod(batch):
        x = net.tiled(x, (*batch, *matrix))
    return net.reshaped(x, (prod(batch), *matrix))


def _repeated(net: Net, x: Blob, axis: int, times: int) -> Blob:
    """A blob so many times along a new dimension."""
    shape = [*x.shape[:axis], times, *x.shape[axis:]]
    if times > 1:
        columns = net.reshaped(x, [prod(x.shape[:axis]), 1, prod(x.shape[axis:]), 1])
        x = product_with_ones(net, columns, times, "tile")
    return net.reshaped(x, shape)


def _sums_inside(net: Net, x: Blob, y: Blob) -> Blob:
    """[batch, rows, inner] times [batch, inner, columns]"""
    (batch, rows, inner), columns = x.shape, y.shape[2]
    terms = net.layer("Scale", [_repeated(net, y, 1, rows), x], suffix="terms", axis=0)
    if inner == 1:
        return terms
    # Each row by itself, because convolutions add channels.
    channels = net.reshaped(terms, [batch * rows, inner, columns, 1])
    return product_with_ones(net, channels, 1, "")


def _sums_of_columns(net: Net, x: Blob, y: Blob) -> Blob:
    """[batch, inner, rows] times [batch, inner, columns]"""
    wide = _repeated(net, y, 2, x.shape[2])
    terms = net.layer("Scale", [wide, x], suffix="terms", axis=0)
    return product_with_ones(net, terms, 1, "")


def _sums_of_rows(net: Net, x: Blob, y: Blob) -> Blob:
    """[batch, rows, inner] times [batch, columns, inner]"""
    (batch, rows, inner), columns = x.shape, y.shape[1]
    wide = _repeated(net, x, 2, columns)
    if batch == 1:
        matrix = net.reshaped(y, [columns, inner])
        terms = net.layer("Scale", [wide, matrix], suffix="terms", axis=2)
    else:
        both = [wide, _repeated(net, y, 1, rows)]
        terms = net.layer("Eltwise", both, suffix="terms", operation=EltwiseParameter.PROD)
    terms = net.reshaped(terms, [batch * rows * columns, inner])
    ones = Weight.of(np.ones((1, inner), np.float32))
    return net.layer("InnerProduct", [terms], [ones], num_output=1, bias_term=False)
