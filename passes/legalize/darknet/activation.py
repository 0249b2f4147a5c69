"""The activation functions of DarkNet (`src/activations.c`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from lowerdeck.dialects.core.elementwise import RectifyOp, SigmoidOp, TanhOp
from lowerdeck.passes.legalize.common import activation
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

_Function: TypeAlias = "Callable[[TensorValue], TensorValue]"

_SMALL = 1e-4
"""What is added to sums over channels."""


def logistic(x: TensorValue) -> TensorValue:
    """1 / (1 + exp(-x))"""
    return apply(SigmoidOp, x)


def _selu(x: TensorValue) -> TensorValue:
    return activation.elu(x, 1.6732) * 1.0507


def _gelu(x: TensorValue) -> TensorValue:
    inner = apply(TanhOp, x * 0.797885 + x * x * x * 0.035677)
    return x * (inner + 1) * 0.5


def _plse(x: TensorValue) -> TensorValue:
    inside = x * 0.125 + 0.5
    above = x.gt(4).where((x - 4) * 0.01 + 1, inside)
    return x.lt(-4).where((x + 4) * 0.01, above)


def _stair(x: TensorValue) -> TensorValue:
    """Half of the floor where that is even, else on the way to the next one."""
    floor = x.floor()
    half = (x * 0.5).floor()
    is_even = (floor * 0.5).floor().eq(floor * 0.5)
    return is_even.where(half, x - floor + half)


def _lhtan(x: TensorValue) -> TensorValue:
    return x.lt(0).where(x * 0.001, x.gt(1).where((x - 1) * 0.001 + 1, x))


def _relu(x: TensorValue) -> TensorValue:
    return apply(RectifyOp, x)


_EVERYWHERE: Mapping[str, _Function] = {
    "elu": lambda x: activation.elu(x, 1),
    "gelu": _gelu,
    "hardtan": lambda x: x.clip(-1, 1),
    "leaky": lambda x: activation.leaky_relu(x, 0.1),
    "lhtan": _lhtan,
    "linear": lambda x: x,
    "loggy": lambda x: logistic(x) * 2 - 1,
    "logistic": logistic,
    "plse": _plse,
    "ramp": lambda x: _relu(x) + x * 0.1,
    "relie": lambda x: activation.leaky_relu(x, 0.01),
    "relu": _relu,
    "relu6": lambda x: x.maximum(0).minimum(6),
    "revleaky": lambda x: activation.leaky_relu(x, 0.1),
    "selu": _selu,
    "stair": _stair,
    "tanh": lambda x: apply(TanhOp, x),
}


def _mish(x: TensorValue) -> TensorValue:
    return x * apply(TanhOp, activation.softplus(x))


def _hard_mish(x: TensorValue) -> TensorValue:
    inner = x.gt(-2).where(x * x * 0.5 + x, 0)
    return x.gt(0).where(x, inner)


_OF_CONVOLUTIONS: Mapping[str, _Function] = {
    "hard_mish": _hard_mish,
    "mish": _mish,
    "swish": lambda x: x * logistic(x),
}


def _of_channels(x: TensorValue) -> TensorValue:
    """Positive parts over their sum."""
    positive = x.maximum(0)
    return positive / (positive.reduce("sum", [1], keep_dims=True) + _SMALL)


def _softmax_of_channels(x: TensorValue) -> TensorValue:
    powers = x.exp()
    return powers / (powers.reduce("sum", [1], keep_dims=True) + _SMALL)


_AMONG_CHANNELS: Mapping[str, _Function] = {
    "normalize_channels": _of_channels,
    "normalize_channels_softmax": _softmax_of_channels,
    "normalize_channels_softmax_maxval": lambda x: _softmax_of_channels(
        x - x.reduce("max", [1], keep_dims=True)
    ),
}


def activated(
    builder: Legalizer, x: TensorValue, name: str, *, among_channels: bool = False
) -> TensorValue:
    """
    An activation function by its name. Those of convolutions, which are `among_channels`, are
    refused elsewhere: DarkNet makes zeros of everything there.
    """
    known = dict(_EVERYWHERE)
    if among_channels:
        known |= {**_OF_CONVOLUTIONS, **_AMONG_CHANNELS}
    function = known.get(name)
    if function is None:
        builder.refuse(f"activation={name}", f"one of {', '.join(sorted(known))}")
    return function(x)


def of_shortcut(builder: Legalizer, x: TensorValue, name: str) -> TensorValue:
    """The activation function of a `shortcut`, which may be one of two of convolutions, too."""
    if name in ("mish", "swish"):
        return _OF_CONVOLUTIONS[name](x)
    return activated(builder, x, name)
