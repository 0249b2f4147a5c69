"""Activation functions by name, and the layers that are one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SigmoidOp, SqrtOp, TanhOp
from lowerdeck.dialects.core.reduce import CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import f16
from lowerdeck.dialects.keras.classes import INACTIVE
from lowerdeck.passes.legalize.common import activation as common
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float, truth
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
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


def _hard_sigmoid(x: TensorValue) -> TensorValue:
    """Keras 3: relu6(x + 3) / 6"""
    return (x + 3).clip(0, 6) * (1 / 6)


def _soft_shrink(x: TensorValue, limit: float = 0.5) -> TensorValue:
    return x.gt(limit).where(x - limit, x.lt(-limit).where(x + limit, x * 0))


def _hard_shrink(x: TensorValue, limit: float = 0.5) -> TensorValue:
    return x.abs().gt(limit).where(x, 0)


def _square_plus(x: TensorValue, b: float = 4.0) -> TensorValue:
    return (x + apply(SqrtOp, x * x + b)) * 0.5


def _celu(x: TensorValue, alpha: float) -> TensorValue:
    return x.maximum(0) + common.elu((x * (1 / alpha)).minimum(0), 1.0) * alpha


def _sparse_plus(x: TensorValue) -> TensorValue:
    middle = (x + 1) * (x + 1) * 0.25
    return x.le(-1).where(x * 0, x.lt(1).where(middle, x))


def _gated(x: TensorValue, axis: int = -1) -> TensorValue:
    """One half by the logistic function of the other."""
    half, axis = x.dims[axis] // 2, axis % len(x.dims)
    one, other = x.builder.split(x.value, axis, [half, half])
    return TensorValue(x.builder, one) * sigmoid(TensorValue(x.builder, other))


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
    "relu6": lambda x: x.clip(0, 6),
    "elu": lambda x: common.elu(x, 1.0),
    "selu": lambda x: common.elu(x, _SELU_ALPHA) * _SELU_SCALE,
    "celu": lambda x: common.elu(x, 1.0),
    "glu": _gated,
    "gelu": lambda x: common.gelu(x, False),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * tanh(common.softplus(x)),
    "softplus": common.softplus,
    "softsign": common.softsign,
    "sigmoid": sigmoid,
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": lambda x: x * _hard_sigmoid(x),
    "hard_swish": lambda x: x * _hard_sigmoid(x),
    "hard_tanh": lambda x: x.clip(-1, 1),
    "tanh": tanh,
    "tanh_shrink": lambda x: x - tanh(x),
    "soft_shrink": _soft_shrink,
    "hard_shrink": _hard_shrink,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": lambda x: (x * 0.5 + 0.5).clip(0, 1),
    "squareplus": _square_plus,
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


_WITH_NUMBER: Mapping[
    str, tuple[Callable[[TensorValue, float], TensorValue], tuple[str, ...], float]
] = {
    "Celu": (_celu, ("alpha",), 1.0),
    "ELU": (common.elu, ("alpha",), 1.0),
    "Elu": (common.elu, ("alpha",), 1.0),
    "HardShrink": (_hard_shrink, ("threshold",), 0.5),
    "LeakyReLU": (common.leaky_relu, ("negative_slope", "alpha"), 0.3),
    "LeakyRelu": (common.leaky_relu, ("negative_slope",), 0.2),
    "SoftShrink": (_soft_shrink, ("threshold",), 0.5),
    "Squareplus": (_square_plus, ("b",), 4.0),
    "ThresholdedReLU": (common.thresholded_relu, ("theta",), 1.0),
}
"""Functions with a number: what it is called in Keras 3, and before that; and the usual one."""


@legalizes(*_WITH_NUMBER)
def legalize_with_number(builder: KerasLegalizer) -> Results:
    """Layers and functions of `keras.ops` with a number."""
    function, names, number = _WITH_NUMBER[builder.op_type]
    for name in reversed(names):
        number = builder.real(name, number)
    return [function(as_float(builder.x()), number).value]


@legalizes("Threshold")
def legalize_threshold(builder: KerasLegalizer) -> Results:
    """x above a threshold, else a value."""
    x = as_float(builder.x())
    other = TensorValue.number(builder, builder.real("default_value"), x.element)
    return [x.gt(builder.real("threshold")).where(x, other).value]


@legalizes("PReLU")
def legalize_prelu(builder: KerasLegalizer) -> Results:
    """Below zero a slope for each element, which is one along the shared axes."""
    builder.ignore("shared_axes")
    x, alpha = builder.x(), TensorValue(builder, builder.require_weight("alpha"))
    return [(common.relu(x) - alpha * common.relu(-x)).value]


@legalizes("LayerScale")
def legalize_scale(builder: KerasLegalizer) -> Results:
    """Times a factor for each channel, as ConvNeXt has it."""
    builder.ignore("init_values", "projection_dim")
    return [(builder.x() * TensorValue(builder, builder.require_weight("gamma"))).value]


@legalizes("ReLU")
def legalize_relu(builder: KerasLegalizer) -> Results:
    """
    Above the threshold x, within 0 and the maximum if there is one; else slope * (x - threshold).
    """
    x = builder.x()
    slope = float(builder.config("negative_slope") or 0.0)
    threshold = float(builder.config("threshold") or 0.0)
    limit = builder.config("max_value")
    if slope == 0 and threshold == 0:
        y = common.relu(x)
        return [(y if limit is None else y.minimum(float(limit))).value]
    above = x if limit is None else x.clip(0, float(limit))
    return [x.gt(threshold).where(above, (x - threshold) * slope if slope else 0).value]


@legalizes("Softmax")
def legalize_softmax(builder: KerasLegalizer) -> Results:
    """Along one axis or several; what a mask leaves out gets nothing."""
    x = builder.x()
    builder.ignore("zero_masked")
    mask = truth(builder.x(1, "mask")) if builder.has(1, "mask") else None
    axis = builder.config("axis", -1)
    if not isinstance(axis, int | list):
        builder.refuse(f"the axis {axis}", "an axis or several")
    axes = builder.axes_of(axis, len(x.dims))
    return [masked_softmax(builder, x, mask, lambda scores: softmax_over(scores, axes)).value]


def softmax_over(x: TensorValue, axes: Sequence[int]) -> TensorValue:
    """Over all of some axes together."""
    if len(axes) == 1:
        return softmax(x, axes[0])
    shifted = (x - x.reduce("max", axes, True)).exp()
    return shifted / shifted.reduce("sum", axes, True)


_OPERATIONS = pairs("""
    HardSigmoid=hard_sigmoid HardSilu=hard_silu HardTanh=hard_tanh LogSigmoid=log_sigmoid
    Relu6=relu6 Relu=relu Selu=selu Sigmoid=sigmoid Silu=silu Softplus=softplus Softsign=softsign
    SparsePlus=sparse_plus SparseSigmoid=sparse_sigmoid TanhShrink=tanh_shrink Tanh=tanh
""")


@legalizes(*_OPERATIONS)
def legalize_function(builder: KerasLegalizer) -> Results:
    """A function of `keras.ops`: of floats, but for those that leave integers what they are."""
    x = builder.x() if builder.op_type in ("Relu", "Relu6") else as_float(builder.x())
    return [_FUNCTIONS[_OPERATIONS[builder.op_type]](x).value]


@legalizes("Gelu")
def legalize_gelu(builder: KerasLegalizer) -> Results:
    """By tanh unless it is said not to be."""
    return [common.gelu(as_float(builder.x()), bool(builder.config("approximate", True))).value]


_ALONG = {"Glu": _gated, "LogSoftmax": common.log_softmax, "Sparsemax": sparsemax}


@legalizes(*_ALONG)
def legalize_along_axis(builder: KerasLegalizer) -> Results:
    """Along an axis."""
    x = as_float(builder.x())
    return [_ALONG[builder.op_type](x, builder.one_axis(len(x.dims))).value]
