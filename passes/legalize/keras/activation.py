"""Activation functions by name, and the layers that are one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import ErfOp, SigmoidOp, SqrtOp, TanhOp
from lowerdeck.dialects.core.reduce import CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import f16
from lowerdeck.dialects.keras.classes import INACTIVE
from lowerdeck.passes.legalize.common import activation as common
from lowerdeck.passes.legalize.common.special import apply, log1p
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def sigmoid(x: TensorValue) -> TensorValue:
    """1 / (1 + exp(-x))"""
    return apply(SigmoidOp, x)


def tanh(x: TensorValue) -> TensorValue:
    """The hyperbolic tangent."""
    return apply(TanhOp, x)


def softmax(x: TensorValue, axis: int = -1) -> TensorValue:
    """exp(x) / sum(exp(x)) along the axis"""
    return TensorValue(x.builder, x.builder.add(SoftmaxOp(x.value, axis % len(x.dims))))


def masked(scores: TensorValue, mask: TensorValue | None, half: float) -> TensorValue:
    """Scores that are lowered where a mask does not hold: by 1e9, of half precision by `half`."""
    if mask is None:
        return scores
    return scores + (~mask).cast(scores.element) * (-half if scores.element == f16 else -1e9)


def masked_softmax(
    builder: KerasLegalizer,
    scores: TensorValue,
    mask: TensorValue | None,
    function: Callable[[TensorValue], TensorValue],
    *,
    as_layer: bool = True,
) -> TensorValue:
    """
    A softmax of what a mask leaves; of nothing, equal shares, or zeros where the layer does it and
    the version is one that has them.
    """
    shares = function(masked(scores, mask, 3e4))
    if mask is None or not as_layer or not builder.config("zero_masked", False):
        return shares
    return mask.where(shares, 0)


def gelu(x: TensorValue, approximate: bool = False) -> TensorValue:
    """x times the normal distribution's share below it."""
    if approximate:
        inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
        return x * 0.5 * (tanh(inner) + 1)
    return x * 0.5 * (apply(ErfOp, x * math.sqrt(0.5)) + 1)


def _hard_tanh(x: TensorValue) -> TensorValue:
    return x.clip(-1, 1)


def _relu6(x: TensorValue) -> TensorValue:
    return x.clip(0, 6)


def hard_sigmoid(x: TensorValue) -> TensorValue:
    """Keras 3: relu6(x + 3) / 6"""
    return _relu6(x + 3) * (1 / 6)


def _soft_shrink(x: TensorValue) -> TensorValue:
    return x.gt(0.5).where(x - 0.5, x.lt(-0.5).where(x + 0.5, x * 0))


def _sparse_plus(x: TensorValue) -> TensorValue:
    middle = (x + 1) * (x + 1) * 0.25
    return x.le(-1).where(x * 0, x.lt(1).where(middle, x))


def sparsemax(x: TensorValue, axis: int = -1) -> TensorValue:
    """
    x less a number, at least 0. Keras adds up all running sums of what is kept where arXiv
    1602.02068 has the last one, so that only a single one that is kept stays a probability.
    """
    builder, axis = x.builder, axis % len(x.dims)
    values, _ = builder.insert(TopKOp(x.value, x.dims[axis], axis))
    ordered = TensorValue(builder, values)
    sums = TensorValue(builder, builder.add(CumulativeOp("sum", values, axis)))
    rank = index_vector(builder, x.dims[axis], len(x.dims), axis).cast(x.element) + 1
    is_kept = (ordered * rank + 1).gt(sums)
    count = is_kept.cast(x.element).reduce("sum", [axis], True)
    total = is_kept.where(sums, 0).reduce("sum", [axis], True)
    return (x - (total - 1) / count).maximum(0)


_FUNCTIONS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "linear": lambda x: x,
    "relu": common.relu,
    "relu6": _relu6,
    "elu": lambda x: common.elu(x, 1.0),
    "selu": lambda x: common.elu(x, _SELU_ALPHA) * _SELU_SCALE,
    "celu": lambda x: common.elu(x, 1.0),
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * tanh(common.softplus(x)),
    "softplus": common.softplus,
    "softsign": common.softsign,
    "sigmoid": sigmoid,
    "hard_sigmoid": hard_sigmoid,
    "hard_silu": lambda x: x * hard_sigmoid(x),
    "hard_swish": lambda x: x * hard_sigmoid(x),
    "hard_tanh": _hard_tanh,
    "tanh": tanh,
    "tanh_shrink": lambda x: x - tanh(x),
    "soft_shrink": _soft_shrink,
    "hard_shrink": lambda x: x.abs().gt(0.5).where(x, 0),
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": lambda x: (x * 0.5 + 0.5).clip(0, 1),
    "squareplus": lambda x: (x + apply(SqrtOp, x * x + 4)) * 0.5,
    "leaky_relu": lambda x: common.leaky_relu(x, 0.2),
    "log_sigmoid": lambda x: -common.softplus(-x),
    "log_softmax": lambda x: common.log_softmax(x, len(x.dims) - 1),
    "softmax": softmax,
    "sparsemax": sparsemax,
    "exponential": lambda x: x.exp(),
}

_OLD: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "hard_sigmoid": lambda x: common.hard_sigmoid(x, 0.2, 0.5),
}
"""What Keras 1 and 2 mean by a word."""


def activated(builder: KerasLegalizer, x: TensorValue, given: Any) -> TensorValue:
    """An activation as a configuration names it."""
    name = given
    if isinstance(given, dict):
        entry = cast("dict[str, Any]", given)
        name = entry.get("config") if entry.get("class_name") == "function" else None
        if isinstance(entry.get("config"), dict):
            name = _of_layer(builder, entry)
    if name is None and given is None:
        return x
    function = _FUNCTIONS.get(str(name))
    if builder.version < 3:
        function = _OLD.get(str(name), function)
    if function is None:
        builder.refuse(f"the activation {given}", "one of Keras' own")
    return function(x)


def _of_layer(builder: KerasLegalizer, entry: Mapping[str, Any]) -> str:
    """The function that a layer with its own configuration as an activation is."""
    names = {"ReLU": "relu", "Softmax": "softmax"}
    plain: Mapping[str, Any] = {"max_value": None, "negative_slope": 0.0, "threshold": 0.0}
    config = entry["config"]
    fits = all(config.get(name, value) == value for name, value in plain.items())
    found = names.get(str(entry.get("class_name")))
    if found is None or not fits or config.get("axis", -1) != -1:
        builder.refuse(f"the activation {entry.get('class_name')}", "a function")
    return found


def finished(builder: KerasLegalizer, value: SSAValue) -> Results:
    """The result of a layer that ends with an activation."""
    return [activated(builder, TensorValue(builder, value), builder.config("activation")).value]


@legalizes("Activation")
def legalize_activation(builder: KerasLegalizer) -> Results:
    """A function by its name."""
    return finished(builder, builder.input())


@legalizes(*INACTIVE)
def legalize_inactive(builder: KerasLegalizer) -> Results:
    """Nothing is done but in training."""
    builder.ignore_configuration()
    return [builder.input()]


@legalizes("LeakyReLU")
def legalize_leaky_relu(builder: KerasLegalizer) -> Results:
    """Below zero another slope, `alpha` in Keras 2."""
    slope = builder.real("negative_slope", builder.real("alpha", 0.3))
    return [common.leaky_relu(builder.x(), slope).value]


@legalizes("ELU")
def legalize_elu(builder: KerasLegalizer) -> Results:
    """Below zero alpha * (exp(x) - 1)."""
    return [common.elu(builder.x(), builder.real("alpha", 1.0)).value]


@legalizes("ThresholdedReLU")
def legalize_thresholded_relu(builder: KerasLegalizer) -> Results:
    """Zero up to a threshold."""
    return [common.thresholded_relu(builder.x(), builder.real("theta", 1.0)).value]


@legalizes("PReLU")
def legalize_prelu(builder: KerasLegalizer) -> Results:
    """Below zero a slope for each element, which is one along the shared axes."""
    builder.ignore("shared_axes")
    x, alpha = builder.x(), TensorValue(builder, builder.require_weight("alpha"))
    return [(common.relu(x) - alpha * common.relu(-x)).value]


@legalizes("ReLU")
def legalize_relu(builder: KerasLegalizer) -> Results:
    """From the threshold on x, up to a maximum; below it slope * (x - threshold)."""
    x = builder.x()
    slope = float(builder.config("negative_slope") or 0.0)
    threshold = float(builder.config("threshold") or 0.0)
    limit = builder.config("max_value")
    if slope == 0 and threshold == 0:
        y = common.relu(x)
    else:
        y = x.lt(threshold).where((x - threshold) * slope, x)
    return [(y if limit is None else y.minimum(float(limit))).value]


@legalizes("Softmax")
def legalize_softmax(builder: KerasLegalizer) -> Results:
    """Along one axis or several; what a mask leaves out gets nothing."""
    x = builder.x()
    builder.ignore("zero_masked")
    given = builder.argument(1, "mask")
    mask = None if given is None else TensorValue(builder, builder.input(1, "mask"))
    if mask is not None and mask.element != i1:
        mask = mask.ne(0)
    axis = builder.config("axis", -1)
    if not isinstance(axis, int | list):
        builder.refuse(f"the axis {axis}", "an axis or several")
    axes = builder.axes([axis] if isinstance(axis, int) else cast("list[int]", axis), len(x.dims))
    return [masked_softmax(builder, x, mask, lambda scores: softmax_over(scores, axes)).value]


def softmax_over(x: TensorValue, axes: Sequence[int]) -> TensorValue:
    """Over all of some axes together."""
    if len(axes) == 1:
        return softmax(x, axes[0])
    shifted = (x - x.reduce("max", axes, True)).exp()
    return shifted / shifted.reduce("sum", axes, True)


_OPERATIONS = {
    "Relu": "relu",
    "Relu6": "relu6",
    "Sigmoid": "sigmoid",
    "Silu": "silu",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Selu": "selu",
    "HardSigmoid": "hard_sigmoid",
    "HardSilu": "hard_silu",
    "LogSigmoid": "log_sigmoid",
    "Tanh": "tanh",
}


@legalizes(*_OPERATIONS)
def legalize_function(builder: KerasLegalizer) -> Results:
    """A function of `keras.ops`."""
    return [_FUNCTIONS[_OPERATIONS[builder.op_type]](builder.x()).value]


@legalizes("Gelu")
def legalize_gelu(builder: KerasLegalizer) -> Results:
    """By tanh unless it is said not to be."""
    return [gelu(builder.x(), bool(builder.config("approximate", True))).value]


@legalizes("Sparsemax")
def legalize_sparsemax(builder: KerasLegalizer) -> Results:
    """Along an axis."""
    return [sparsemax(builder.x(), builder.integer("axis", -1)).value]


@legalizes("Log1p")
def legalize_log1p(builder: KerasLegalizer) -> Results:
    """log(1 + x)"""
    return [log1p(builder.x()).value]
