"""Sums, products and functions of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import EltwiseParameter
from lowerdeck.dialects.caffe.shapes import Shape
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_type, f32
from lowerdeck.exporters.caffe.net import Array, Blob, Fields, Net, Weight, converts, recognizes
from lowerdeck.passes.fuse.logarithms import log1p_of
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.linear.affine import chain_of, is_representable
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number

_MOST_FACTORS = 16
"""The factors of a product that are looked at."""

# Functions of one element

_FUNCTIONS: Mapping[type[Operation], str] = {
    e.AbsOp: "AbsVal",
    e.ExpOp: "Exp",
    e.LogOp: "Log",
    e.RectifyOp: "ReLU",
    e.SigmoidOp: "Sigmoid",
    e.TanhOp: "TanH",
}


@converts(*_FUNCTIONS)
def _function(net: Net, op: e.UnaryOp) -> Blob:
    return net.layer(_FUNCTIONS[type(op)], [net.blob(op.input)])


@converts(e.NegOp)
def _neg(net: Net, op: e.NegOp) -> Blob:
    return net.scaled(net.blob(op.input), -1)


@converts(e.SqrtOp)
def _sqrt(net: Net, op: e.UnaryOp) -> Blob:
    return net.layer("Power", [net.blob(op.input)], power=0.5)


# Constants that meet a blob


class Along(NamedTuple):
    """A constant that runs along consecutive dimensions of a blob."""

    axis: int
    values: Array


def along(array: Array, shape: Shape) -> Along:
    """The dimensions along which a constant, which broadcasts to a shape, is not the same."""
    sizes = [1] * (len(shape) - array.ndim) + list(array.shape)
    varied = [axis for axis, size in enumerate(sizes) if size != 1]
    if not varied:
        return Along(0, array.reshape(()))
    first, last = varied[0], varied[-1] + 1
    run = array.reshape(sizes[first:last])
    return Along(first, np.ascontiguousarray(np.broadcast_to(run, shape[first:last])))


def _place(axis: int, values: Array) -> Fields:
    """The fields that say where a scale or bias runs: all that is no default."""
    fields: Fields = {}
    if axis != 1:
        fields["axis"] = axis
    if values.ndim != 1:
        fields["num_axes"] = values.ndim
    return fields


def scaled_by(net: Net, x: Blob, scale: Array, shift: Array | None = None) -> Blob:
    """x * scale + shift, where both broadcast to x."""
    factor = along(scale, x.shape)
    offset = None if shift is None else along(shift, x.shape)
    if factor.values.ndim == 0 and (offset is None or offset.values.ndim == 0):
        return net.scaled(x, float(factor.values), 0 if offset is None else float(offset.values))
    whole = np.broadcast_shapes(scale.shape, () if shift is None else shift.shape)
    axis, run = along(np.broadcast_to(scale, whole), x.shape)
    weights = [Weight.of(run)]
    if shift is not None:
        weights.append(Weight.of(along(np.broadcast_to(shift, whole), x.shape).values))
    has_bias = True if shift is not None else None
    return net.layer("Scale", [x], weights, bias_term=has_bias, **_place(axis, run))


def shifted_by(net: Net, x: Blob, shift: Array) -> Blob:
    """x + shift, which broadcasts to x."""
    axis, run = along(shift, x.shape)
    if run.ndim == 0:
        return net.scaled(x, 1, float(run))
    # Scale is known to more readers of nets than Bias.
    weights = [Weight.of(np.ones_like(run)), Weight.of(run)]
    return net.layer("Scale", [x], weights, bias_term=True, **_place(axis, run))


# Two operands


class Operands(NamedTuple):
    """The operands of a binary op: blobs, or arrays if they are constants."""

    left: Blob | Array
    right: Blob | Array
    shape: Shape


def _operands(net: Net, op: e.BinaryOp) -> Operands:
    """The operands; a blob that meets a larger constant has the result's shape."""
    shape = net.shape(op.result)
    sides: list[Blob | Array] = []
    for value in (op.lhs, op.rhs):
        array = net.array(value)
        sides.append(net.blob(value) if array is None else array)
    if not any(isinstance(side, Blob) for side in sides):
        sides[0] = net.blob(op.lhs)  # a model without inputs
    if any(not isinstance(side, Blob) for side in sides):
        sides = [net.tiled(side, shape) if isinstance(side, Blob) else side for side in sides]
    return Operands(sides[0], sides[1], shape)


def _combined(net: Net, left: Blob, right: Blob, shape: Shape, type_: str) -> Blob:
    """A Scale or Bias layer of two blobs of which one is the result's shape, or one of tiles."""
    for whole, part in ((left, right), (right, left)):
        run = _run_of(part, shape)
        if whole.shape == shape and run is not None:
            axis, covered = run
            part = net.reshaped(part, covered)
            return net.layer(type_, [whole, part], axis=None if axis == 1 else axis)
    both = [net.tiled(left, shape), net.tiled(right, shape)]
    operation = EltwiseParameter.PROD if type_ == "Scale" else None
    return net.layer("Eltwise", both, operation=operation)


def _run_of(part: Blob, shape: Shape) -> tuple[int, Shape] | None:
    """The dimensions of a shape that a blob covers; None if it does not cover all of them."""
    sizes = [1] * (len(shape) - part.rank) + list(part.shape)
    varied = [axis for axis, size in enumerate(sizes) if size != 1]
    first, last = (varied[0], varied[-1] + 1) if varied else (0, 1)
    while first > 0 and shape[first - 1] == 1:
        first -= 1  # an image by itself is a batch, too
    run = tuple(sizes[first:last])
    return (first, run) if run == shape[first:last] else None


@converts(e.AddOp)
def _add(net: Net, op: e.AddOp) -> Blob:
    left, right, shape = _operands(net, op)
    if not isinstance(left, Blob):
        left, right = right, left
    assert isinstance(left, Blob)
    if not isinstance(right, Blob):
        return shifted_by(net, left, right)
    if left.shape == right.shape:
        return net.layer("Eltwise", [left, right])
    return _combined(net, left, right, shape, "Bias")


@converts(e.SubOp)
def _sub(net: Net, op: e.SubOp) -> Blob:
    left, right, shape = _operands(net, op)
    if not isinstance(right, Blob):
        assert isinstance(left, Blob)
        return shifted_by(net, left, -right)
    if not isinstance(left, Blob):
        return scaled_by(net, right, np.array(-1, np.float32), left)
    if left.shape == right.shape:
        return net.layer("Eltwise", [left, right], coeff=[1, -1])
    return _combined(net, left, net.scaled(right, -1, suffix="negative"), shape, "Bias")


@converts(e.MulOp)
def _mul(net: Net, op: e.MulOp) -> Blob:
    left, right, shape = _operands(net, op)
    if not isinstance(left, Blob):
        left, right = right, left
    assert isinstance(left, Blob)
    if not isinstance(right, Blob):
        return scaled_by(net, left, right)
    return product_of(net, left, right, shape)


def product_of(net: Net, left: Blob, right: Blob, shape: Shape) -> Blob:
    """The product of two blobs that broadcast to a shape."""
    if left.shape == right.shape:
        return net.layer("Eltwise", [left, right], operation=EltwiseParameter.PROD)
    return _combined(net, left, right, shape, "Scale")


@converts(e.DivOp)
def _div(net: Net, op: e.DivOp) -> Blob:
    left, right, shape = _operands(net, op)
    if not isinstance(right, Blob):
        assert isinstance(left, Blob)
        with np.errstate(divide="ignore"):
            return scaled_by(net, left, (1 / right.astype(np.float64)).astype(np.float32))
    inverse = net.layer("Power", [right], power=-1, suffix="inverse")
    if isinstance(left, Blob):
        return product_of(net, left, inverse, shape)
    return inverse if (left == 1).all() else scaled_by(net, inverse, left)


@converts(e.PowOp)
def _pow(net: Net, op: e.PowOp) -> Blob:
    exponent = number(op.rhs)
    if exponent is None:
        refuse("an exponent that differs between elements", "one number")
    x = net.tiled(net.blob(op.lhs), net.shape(op.result))
    return net.layer("Power", [x], power=exponent)


@converts(e.MaxOp)
def _max(net: Net, op: e.MaxOp) -> Blob:
    left, right, shape = _operands(net, op)
    for x, bound in ((left, right), (right, left)):
        if isinstance(x, Blob) and not isinstance(bound, Blob) and bound.size == 1:
            low = float(bound.reshape(()))
            return net.layer("ReLU", [x]) if low == 0 else net.layer("Clip", [x], min=low, max=inf)
    both = [_as_blob(net, side, shape) for side in (left, right)]
    return net.layer("Eltwise", both, operation=EltwiseParameter.MAX)


@converts(e.MinOp)
def _min(net: Net, op: e.MinOp) -> Blob:
    left, right, shape = _operands(net, op)
    for x, bound in ((left, right), (right, left)):
        if isinstance(x, Blob) and not isinstance(bound, Blob) and bound.size == 1:
            return net.layer("Clip", [x], min=-inf, max=float(bound.reshape(())))
    both = [_as_blob(net, side, shape) for side in (left, right)]
    negated = [net.scaled(x, -1, suffix="negative") for x in both]
    largest = net.layer("Eltwise", negated, operation=EltwiseParameter.MAX, suffix="max")
    return net.scaled(largest, -1)


def _as_blob(net: Net, side: Blob | Array, shape: Shape) -> Blob:
    if isinstance(side, Blob):
        return net.tiled(side, shape)
    whole = np.ascontiguousarray(np.broadcast_to(side, shape))
    return net.blob(ConstantOp.of(whole).result)


# Several ops as one layer


@recognizes(e.AddOp, e.SubOp)
def _scale_and_bias(net: Net, op: e.BinaryOp) -> Blob | None:
    """x * s + t, of constants"""
    product, shift = producer(op.lhs, e.MulOp), net.array(op.rhs)
    if product is None or shift is None or not product.result.has_one_use():
        return None
    scale, shape = net.array(product.rhs), net.shape(op.result)
    if scale is None or net.shape(product.lhs) != shape:
        return None
    x = net.blob(product.lhs)
    return scaled_by(net, x, scale, -shift if isinstance(op, e.SubOp) else shift)


@recognizes(e.MulOp, e.DivOp)
def _bias_and_scale(net: Net, op: e.BinaryOp) -> Blob | None:
    """(x + t) * s, of constants, if x * s + t * s is as exact"""
    chain = chain_of(op)
    if chain is None or element_type(op.result) != f32:
        return None
    scale, shift = chain.affine.parts
    if scale is None or shift is None or net.shape(chain.input) != net.shape(op.result):
        return None
    if not is_representable(scale, f32) or not is_representable(shift, f32):
        return None
    x = net.blob(chain.input)
    return scaled_by(net, x, scale.astype(np.float32), shift.astype(np.float32))


@recognizes(e.MinOp, e.MaxOp)
def _clip(net: Net, op: e.BinaryOp) -> Blob | None:
    """min(max(x, low), high), or max(min(x, high), low)"""
    other = e.MaxOp if isinstance(op, e.MinOp) else e.MinOp
    inner, outer_bound = producer(op.lhs, other), number(op.rhs)
    if inner is None or outer_bound is None or not inner.result.has_one_use():
        return None
    inner_bound = number(inner.rhs)
    if inner_bound is None or net.shape(inner.lhs) != net.shape(op.result):
        return None
    low, high = sorted((inner_bound, outer_bound))
    if (inner_bound == low) != isinstance(inner, e.MaxOp) and low != high:
        return None
    return _clipped(net, net.blob(inner.lhs), low, high)


def _clipped(net: Net, x: Blob, low: float, high: float) -> Blob:
    if net.has("ReLU6") and (low, high) == (0, 6):
        return net.layer("ReLU6", [x])
    return net.layer("Clip", [x], min=low, max=high)


@recognizes(e.SelectOp)
def _clip_of_caffe(net: Net, op: e.SelectOp) -> Blob | None:
    """min(x, high) where it is at least low, else low"""
    compare, capped = producer(op.condition, e.CompareOp), producer(op.on_true, e.MinOp)
    low, high = number(op.on_false), None if capped is None else number(capped.rhs)
    if compare is None or capped is None or low is None or high is None:
        return None
    is_bound = compare.lhs is op.on_true and number(compare.rhs) == low
    if not is_bound or compare.predicate.data != "ge" or capped.lhs.type != op.result.type:
        return None
    return net.layer("Clip", [net.blob(capped.lhs)], min=low, max=high)


@recognizes(e.SelectOp)
def _larger(net: Net, op: e.SelectOp) -> Blob | None:
    """x where it is larger than y, else y"""
    compare = producer(op.condition, e.CompareOp)
    if compare is None or compare.predicate.data != "gt":
        return None
    x, y = op.on_true, op.on_false
    is_same = compare.lhs is x and compare.rhs is y and x.type == y.type == op.result.type
    if not is_same or net.array(x) is not None or net.array(y) is not None:
        return None
    return net.layer("Eltwise", [net.blob(x), net.blob(y)], operation=EltwiseParameter.MAX)


@recognizes(e.MaxOp)
def _leaky_relu(net: Net, op: e.MaxOp) -> Blob | None:
    """max(x, slope * x), with a slope from 0 to 1"""
    for x, scaled in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        product = producer(scaled, e.MulOp)
        if product is None or product.lhs is not x or not product.result.has_one_use():
            continue
        slope = number(product.rhs)
        if slope is not None and 0 <= slope <= 1 and x.type == op.result.type:
            return net.layer("ReLU", [net.blob(x)], negative_slope=slope)
    return None


def negative_part(op: e.SelectOp) -> tuple[SSAValue, SSAValue] | None:
    """x and y if an op is x, or y where x is below zero."""
    compare = producer(op.condition, e.CompareOp)
    if compare is None or number(compare.rhs) != 0:
        return None
    x = compare.lhs
    if x.type != op.result.type:
        return None
    match compare.predicate.data:
        case "lt" | "le" if op.on_false is x:
            return x, op.on_true
        case "gt" | "ge" if op.on_true is x:
            return x, op.on_false
        case _:
            return None


@recognizes(e.SelectOp)
def _prelu(net: Net, op: e.SelectOp) -> Blob | None:
    """x, or slope * x below zero: one slope, or one a channel"""
    found = negative_part(op)
    product = None if found is None else producer(found[1], e.MulOp)
    if found is None or product is None or product.lhs is not found[0]:
        return None
    x, slope = found[0], net.array(product.rhs)
    if slope is None:
        return None
    axis, run = along(slope, net.shape(x))
    if run.ndim == 0:
        return net.layer("ReLU", [net.blob(x)], negative_slope=float(run))
    if (axis, run.ndim) != (1, 1):
        return None
    return net.layer("PReLU", [net.blob(x)], [Weight.of(run)])


@recognizes(e.SelectOp)
def _elu(net: Net, op: e.SelectOp) -> Blob | None:
    """x, or alpha * (exp(x) - 1) below zero"""
    found = negative_part(op)
    if found is None:
        return None
    x, below = found
    alpha = 1.0
    if (product := producer(below, e.MulOp)) is not None:
        if (factor := number(product.rhs)) is None:
            return None
        alpha, below = factor, product.lhs
    if (powers := _less_one(below)) is None or (exp := producer(powers, e.ExpOp)) is None:
        return None
    capped = producer(exp.input, e.MinOp)
    is_capped = capped is not None and capped.lhs is x and number(capped.rhs) == 0
    if exp.input is not x and not is_capped:
        return None
    return net.layer("ELU", [net.blob(x)], alpha=None if alpha == 1 else alpha)


def _less_one(value: SSAValue) -> SSAValue | None:
    """y if a value is y - 1."""
    for cls, amount in ((e.SubOp, 1), (e.AddOp, -1)):
        op = producer(value, cls)
        if op is not None and number(op.rhs) == amount:
            return op.lhs
    return None


@recognizes(e.SelectOp)
def _kept(net: Net, op: e.SelectOp) -> Blob | None:
    """y where c is not zero, else 0, if c is a factor of y: then y is 0 there by itself"""
    compare = producer(op.condition, e.CompareOp)
    if compare is None or number(compare.rhs) != 0 or number(op.on_true) != 0:
        return None
    if compare.predicate.data != "eq" or net.shape(op.on_false) != net.shape(op.result):
        return None
    return net.blob(op.on_false) if _has_factor(op.on_false, compare.lhs) else None


def _has_factor(value: SSAValue, factor: SSAValue) -> bool:
    """True if a value is a product, of a few products, with a factor."""
    pending = [value]
    for current in pending:
        if current is factor:
            return True
        if len(pending) < _MOST_FACTORS and (product := producer(current, e.MulOp)) is not None:
            pending += product.operands
    return False


@recognizes(e.CastOp)
def _threshold(net: Net, op: e.CastOp) -> Blob | None:
    """1 above a threshold, else 0"""
    compare = producer(op.input, e.CompareOp)
    if compare is None or compare.predicate.data != "gt":
        return None
    threshold = number(compare.rhs)
    if threshold is None or net.shape(compare.lhs) != net.shape(op.result):
        return None
    return net.layer("Threshold", [net.blob(compare.lhs)], threshold=threshold or None)


@recognizes(e.AddOp)
def _bnll(net: Net, op: e.AddOp) -> Blob | None:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|))"""
    positive = producer(op.lhs, e.MaxOp)
    if positive is None or number(positive.rhs) != 0 or (inner := log1p_of(op.rhs)) is None:
        return None
    chain: Sequence[type[Operation]] = (e.ExpOp, e.NegOp, e.AbsOp)
    for cls in chain:
        step = inner.owner
        if not isinstance(step, cls):
            return None
        inner = step.operands[0]
    if inner is not positive.lhs or inner.type != op.result.type:
        return None
    return net.layer("BNLL", [net.blob(inner)])
