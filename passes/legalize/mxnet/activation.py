"""Activation functions and softmax."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lowerdeck.dialects.core.elementwise import SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, is_float, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.activation import elu, leaky_relu, softplus, softsign
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_SELU = 1.6732632423543772, 1.0507009873554805


_ACTIVATIONS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "relu": lambda x: x.maximum(0),
    "sigmoid": lambda x: apply(SigmoidOp, x),
    "tanh": lambda x: apply(TanhOp, x),
    "softrelu": softplus,
    "softsign": softsign,
}


@legalizes("Activation")
def legalize_activation(builder: MxnetLegalizer) -> Results:
    """One of several functions."""
    return _ACTIVATIONS[builder.choice("act_type", *_ACTIVATIONS)](builder.value())


@legalizes("LeakyReLU")
def legalize_leaky_relu(builder: MxnetLegalizer) -> Results:
    """Functions that are linear, or the identity, above zero."""
    x = builder.value()
    match builder.choice("act_type", "leaky", "prelu", "rrelu", "elu", "selu", "gelu"):
        case "leaky":
            return leaky_relu(x, builder.number("slope"))
        case "rrelu":
            return leaky_relu(
                x, (builder.number("lower_bound") + builder.number("upper_bound")) / 2
            )
        case "elu":
            return elu(x, builder.number("slope"))
        case "selu":
            return elu(x, _SELU[0]) * _SELU[1]
        case "gelu":
            return builder.torch("gelu.default", self=x.value, approximate="none")
        case _:
            return x.lt(0).where(x * _slopes(builder, x), x)


def _slopes(builder: MxnetLegalizer, x: TensorValue) -> TensorValue:
    """The slopes below zero: one for all, one a channel, or of any shape that broadcasts."""
    gamma = builder.value("gamma").cast(x.element)
    rank = len(x.dims)
    if len(gamma.dims) == 1 and rank > 1:
        return gamma.column(rank, 1)
    return gamma


@legalizes("softmax", "softmin", "log_softmax")
def legalize_softmax(builder: MxnetLegalizer) -> Results:
    """Along an axis, of x by a temperature; elements from a length on have no part."""
    source = builder.input()
    axis = builder.along(source)
    stated = element_type(source)
    element = builder.dtype("dtype", stated if is_float(stated) else f32)
    x = builder.wide(source)
    x = x.cast(f64) if element == f64 else x
    if builder.name == "softmin":
        x = -x
    if (temperature := builder.get("temperature")) not in (None, 1.0):
        x = x / float(temperature)
    is_log = builder.name == "log_softmax"
    if not builder.flag("use_length"):
        return builder.cast(builder.add(SoftmaxOp(x.value, axis, log=is_log)), element)
    inside = _inside(builder, x, axis)
    lowest = builder.known(float("-inf"), x.element)
    found = builder.add(SoftmaxOp(inside.where(x, lowest).value, axis, log=is_log))
    kept = inside.where(TensorValue(builder, found), 0)
    return builder.cast(kept.value, element)


def _inside(builder: MxnetLegalizer, x: TensorValue, axis: int) -> TensorValue:
    """Which elements lie before the length of their row."""
    length = builder.index(builder.input("length"))
    dims = list(length.dims)
    dims.insert(axis, x.dims[axis] * 0 + 1)
    place = TensorValue.iota(builder, x.dims[axis]).column(len(x.dims), axis)
    return place.lt(length.reshape(dims))


@legalizes("SoftmaxOutput")
def legalize_softmax_output(builder: MxnetLegalizer) -> Results:
    """Along the channels, the last axis, or all but the first one."""
    x = builder.input()
    if builder.flag("multi_output") or builder.flag("preserve_shape"):
        axis = 1 if builder.flag("multi_output") else -1
        return builder.add(SoftmaxOp(x, builder.axis(axis, rank_of(x))))
    dims = dims_of(x)
    builder.axis(0, len(dims))
    rows = builder.reshape(x, [dims[0], product(dims[1:])])
    return builder.reshape(builder.add(SoftmaxOp(rows, 1)), dims)


@legalizes("SoftmaxActivation")
def legalize_softmax_activation(builder: MxnetLegalizer) -> Results:
    """Along the channels, or the last axis."""
    x = builder.input()
    axis = 1 if builder.choice("mode", "instance", "channel") == "channel" else -1
    return builder.add(SoftmaxOp(x, builder.axis(axis, rank_of(x))))
