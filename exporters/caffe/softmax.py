"""Softmax and its logarithm."""

from __future__ import annotations

from math import prod

from lowerdeck.dialects.caffe.caffe_pb2 import PoolingParameter
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.exporters.caffe.net import Blob, Fields, Net, converts
from lowerdeck.exporters.caffe.products import product_with_ones
from lowerdeck.passes.legalize.legalizer import refuse


@converts(SoftmaxOp)
def _softmax(net: Net, op: SoftmaxOp) -> Blob:
    x, axis = net.blob(op.input), op.axis.data
    if op.is_log:
        return _log_softmax(net, x, axis)
    return net.layer("Softmax", [x], axis=None if axis == 1 else axis)


def _log_softmax(net: Net, x: Blob, axis: int) -> Blob:
    """
    x - m - log(sum(exp(x - m))), where m is the maximum along the axis, which becomes that of the
    channels.

    A Log of a Softmax would be -infinity where a probability is too small for a float. Sums over
    channels, and copies for each of them, are convolutions with ones, which more readers of nets
    know than Reduction, Bias and Tile.

    The maximum that Pooling finds passes over NaN, and is no less than the lowest float. That makes
    no difference: with a NaN the sum is NaN, and so is the result where there is nothing but
    -infinity, as -infinity less the logarithm of 0.
    """
    whole, size = x.shape, x.shape[axis]
    if 0 in whole:
        refuse("the softmax of no elements", "at least one")
    before, behind = prod(whole[:axis]), prod(whole[axis + 1 :])
    rows = net.reshaped(x, [before, size, behind, 1])
    columns = net.reshaped(x, [before, 1, size, behind])
    window: Fields = {"kernel_h": size, "kernel_w": 1}
    largest = net.layer("Pooling", [columns], suffix="max", pool=PoolingParameter.MAX, **window)
    largest = net.reshaped(largest, [before, 1, behind, 1])
    rest = _less(net, rows, largest, "difference")
    powers = net.layer("Exp", [rest], suffix="exp")
    total = product_with_ones(net, powers, 1, "sum")
    result = _less(net, rest, net.layer("Log", [total], suffix="log"), "")
    return net.reshaped(result, whole)


def _less(net: Net, x: Blob, row: Blob, suffix: str) -> Blob:
    """x - row, which is the same for each channel."""
    rows = product_with_ones(net, row, x.shape[1], "tile")
    return net.layer("Eltwise", [x, rows], suffix=suffix, coeff=[1, -1])
