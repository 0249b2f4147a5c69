"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.types import dims_of, f16, f64, i1, is_float
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.passes.legalize.common.activation import (
    gelu,
    log_sigmoid,
    logit,
    replaced_below,
    selu,
    sharp_softplus,
    softshrink,
    swiglu,
)
from lowerdeck.passes.legalize.common.functions import FUNCTIONS, KEPT, PAIRS, close_to, truth
from lowerdeck.passes.legalize.common.losses import clip_by_norm, log_loss, smoothed
from lowerdeck.passes.legalize.common.movement import at_axis
from lowerdeck.passes.legalize.common.requantize import round_away
from lowerdeck.passes.legalize.common.special import (
    apply,
    bessel_i0,
    erfinv,
    expm1,
    lgamma,
    round_at,
)
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue

# Two operands


def aligned(builder: PaddleLegalizer, *names: str) -> list[TensorValue]:
    """
    Operands in one type. Where an axis is given, the dimensions of the one with fewer of them
    begin there in the other one; ones at its end that are too many go.
    """
    a, b = builder.pair(*names)
    axis = builder.integer("axis", -1) if builder.has("axis") else -1
    if axis == -1 or len(a.dims) == len(b.dims):
        return [a, b]
    rank = max(len(a.dims), len(b.dims))
    return [at_axis(builder, value, axis, rank) for value in (a, b)]


_PAIRS = pairs("""
    add=add subtract=sub minus=sub multiply=mul elementwise_pow=pow remainder=mod
    heaviside=heaviside equal=eq not_equal=ne less_than=lt less_equal=le greater_than=gt
    greater_equal=ge
""")


@legalizes(*_PAIRS)
def legalize_pair(builder: PaddleLegalizer) -> Results:
    """Functions of two elements."""
    return PAIRS[_PAIRS[builder.name]](*aligned(builder, "x", "y"))


@legalizes("divide")
def legalize_quotient(builder: PaddleLegalizer) -> Results:
    """Quotients of integers are rounded toward zero, unless the result is of floats."""
    a, b = aligned(builder, "x", "y")
    if is_float(builder.element()) and not is_float(a.element):
        a, b = a.cast(builder.element()), b.cast(builder.element())
    return builder.add(core.DivOp(a.value, b.value))


@legalizes("maximum", "minimum", "fmax", "fmin")
def legalize_extremum(builder: PaddleLegalizer) -> Results:
    """NaN is the extremum; in a ProgramDesc only if it is the second operand; or it is none."""
    a, b = aligned(builder, "x", "y")
    is_max = "max" in builder.name
    if builder.is_old and is_float(a.element) and not builder.name.startswith("f"):
        better = a.gt(b) if is_max else a.lt(b)
        return builder.select(better.value, a.value, b.value)
    name = {"maximum": "max", "minimum": "min"}.get(builder.name, builder.name)
    return PAIRS[name](a, b)


@legalizes("floor_divide")
def legalize_floor_divide(builder: PaddleLegalizer) -> Results:
    """Rounded down."""
    a, b = aligned(builder, "x", "y")
    if not is_float(a.element):
        return a.quotient(b).value
    if builder.is_old:
        return (a / b).floor().value
    return builder.torch("floor_divide.default", a.element, self=a.value, other=b.value)


@legalizes("pow")
def legalize_scalar_power(builder: PaddleLegalizer) -> Results:
    """Powers by a number; squares and roots are no powers."""
    x = builder.value("x")
    exponent = None if builder.optional("y") is not None else builder.number("y")
    if exponent in (1, 2):
        return x.value if exponent == 1 else (x * x).value
    if exponent == 0.5 and is_float(x.element):
        return builder.narrow(apply(core.SqrtOp, builder.wide()))
    wide = builder.wide() if is_float(x.element) else x
    y = builder.scalar_of("y", wide.element)
    return builder.narrow(PAIRS["pow"](wide, y))


@legalizes(*(f"logical_{name}" for name in ("and", "or", "xor", "not")))
@legalizes(*(f"bitwise_{name}" for name in ("and", "or", "xor", "not")))
def legalize_bits(builder: PaddleLegalizer) -> Results:
    """Bits, or truth values."""
    kind, _, name = builder.name.partition("_")
    if name == "not":
        x = builder.value("x")
        return (~(truth(x) if kind == "logical" else x)).value
    a, b = builder.pair("x", "y")
    if kind == "logical":
        a, b = truth(a), truth(b)
    return PAIRS[name](a, b)


@legalizes("bitwise_left_shift", "bitwise_right_shift")
def legalize_shift(builder: PaddleLegalizer) -> Results:
    """Shifts that keep the sign."""
    if not builder.flag("is_arithmetic"):
        builder.refuse("a logical shift", "an arithmetic one")
    x, y = builder.input("x"), builder.input("y")
    return builder.torch(f"{builder.name}.Tensor", self=x, other=y)


# One operand

_UNARY: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    **FUNCTIONS,
    "erfinv": lambda x: erfinv(x.maximum(-1).minimum(1)),
    "gammaln": lgamma,
    "i0": bessel_i0,
    "swish": lambda x: x * apply(core.SigmoidOp, x),
    "tanh_shrink": lambda x: x - apply(core.TanhOp, x),
    "softsign": lambda x: x / (x.abs() + 1),
    "logsigmoid": log_sigmoid,
    "angle": lambda x: x.lt(0).where(x * 0 + math.pi, x * 0),
}


@legalizes(*_UNARY)
def legalize_unary(builder: PaddleLegalizer) -> Results:
    """
    Functions of floats; those of half precision are computed in f32 and rounded once. In a
    ProgramDesc `digamma` of zero is NaN, as of the other poles.
    """
    x = builder.wide()
    if builder.name == "digamma" and builder.is_old:
        x = x.ne(0).where(x, -1)
    if builder.name == "i0" and x.element == f64:
        builder.refuse("f64", "f32")
    return builder.narrow(_UNARY[builder.name](x))


_KEPT: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    **KEPT,
    "relu": lambda x: x.gt(0).where(x, 0) if is_float(x.element) else x.maximum(0),
    "sign": lambda x: apply(core.SignOp, x),
    "rint": lambda x: x.round() if is_float(x.element) else x,
}


@legalizes(*_KEPT)
def legalize_kept(builder: PaddleLegalizer) -> Results:
    """Functions that integers have, too. NaN is no number above zero."""
    return _KEPT[builder.name](builder.value(builder.only)).value


@legalizes("round")
def legalize_round(builder: PaddleLegalizer) -> Results:
    """Halves to even numbers; in a ProgramDesc away from zero."""
    x = builder.value("x")
    if not is_float(x.element):
        return x.value
    return (round_away(x) if builder.is_old else round_at(x, builder.integer("decimals"))).value


@legalizes("isclose", "allclose")
def legalize_close(builder: PaddleLegalizer) -> Results:
    """Whether |x - y| is at most atol + rtol * |y|."""
    a, b = (value.cast(f64) for value in builder.pair("x", "y"))
    # A ProgramDesc has the bounds as texts.
    texts = (builder.get(name) for name in ("rtol", "atol"))
    rtol, atol = (
        float(text) if isinstance(text, str) else builder.number(name)
        for name, text in zip(("rtol", "atol"), texts, strict=True)
    )
    close = close_to(a, b, rtol, atol, equal_nan=builder.flag("equal_nan"))
    is_all = builder.name == "allclose"
    return close.reduce("min", list(range(len(close.dims)))) if is_all else close


@legalizes("equal_all")
def legalize_equal_all(builder: PaddleLegalizer) -> Results:
    """Whether all elements are equal, and the shapes, too."""
    a, b = builder.pair("x", "y")
    if a.dims != b.dims:
        sizes = (a.dims, b.dims)
        if len(a.dims) == len(b.dims) and any(d.value is None for part in sizes for d in part):
            builder.refuse(f"open sizes {[str(d) for d in a.dims]}", "known ones")
        return builder.scalar(0, i1)
    return a.eq(b).reduce("min", list(range(len(a.dims)))).value


# Activations with parameters


def _below(x: TensorValue, low: TensorValue) -> TensorValue:
    """x, or another function of it below zero."""
    return x.lt(0).where(low, x)


def _rrelu(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    if not builder.flag("is_test"):
        builder.refuse("random numbers", "is_test", "call model.eval()")
    return _below(x, x * ((builder.number("lower") + builder.number("upper")) / 2))


def _slopes(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    """One slope for all, for each channel, or for each element of an image."""
    slope = builder.value("alpha").cast(x.element)
    rank = len(x.dims)
    match builder.text("mode"):
        case "all":
            return slope.reshape([1] * rank)
        case "channel":
            axis = rank - 1 if builder.is_last else min(1, rank - 1)
            return slope.reshape([product(slope.dims)]).column(rank, axis)
        case _:
            return slope.reshape([1, *x.dims[1:]])


Activation: TypeAlias = "Callable[[TensorValue, Sequence[float]], TensorValue]"
_ACTIVATIONS: Mapping[str, Activation] = {
    "leaky_relu negative_slope": lambda x, n: _below(x, x * n[0]),
    "elu alpha": lambda x, n: _below(x, expm1(x.minimum(0)) * n[0]),
    "celu alpha": lambda x, n: _below(x, expm1(x.minimum(0) / n[0]) * n[0]),
    "selu scale alpha": lambda x, n: selu(x, *n),
    "gelu approximate": lambda x, n: gelu(x, bool(n[0])),
    "hardsigmoid slope offset": lambda x, n: (x * n[0] + n[1]).maximum(0).minimum(1),
    "hardswish offset threshold scale": lambda x, n: x * (x + n[0]).maximum(0).minimum(n[1]) / n[2],
    "hardtanh t_min t_max": lambda x, n: x.maximum(n[0]).minimum(n[1]),
    "brelu t_min t_max": lambda x, n: x.maximum(n[0]).minimum(n[1]),
    "stanh scale_a scale_b": lambda x, n: apply(core.TanhOp, x * n[0]) * n[1],
    "mish": lambda x, _: x * apply(core.TanhOp, sharp_softplus(x, 1.0, 20.0)),
    "softplus beta threshold": lambda x, n: sharp_softplus(x, *n),
    "hardshrink threshold": lambda x, n: (x.ge(-n[0]) & x.le(n[0])).where(x * 0, x),
    "softshrink threshold": lambda x, n: softshrink(x, *n),
    "thresholded_relu threshold value": lambda x, n: replaced_below(x, *n),
    "logit eps": lambda x, n: logit(x, *n),
}
"""Operators and their numbers."""

_BY_NAME = {key.split()[0]: (key.split()[1:], made) for key, made in _ACTIVATIONS.items()}


@legalizes(*_BY_NAME)
def legalize_activation(builder: PaddleLegalizer) -> Results:
    """Functions of floats with a few numbers; those of half precision are computed in f32."""
    names, function = _BY_NAME[builder.name]
    x, numbers = builder.wide(), [builder.real(name) for name in names]
    if builder.name == "thresholded_relu" and builder.is_old:  # which keeps signs of zero
        return builder.narrow(x * x.gt(numbers[0]).cast(x.element))
    return builder.narrow(function(x, numbers))


# Scales, bounds, types


_BLIND = frozenset("add conv2d conv3d depthwise_conv2d exp layer_norm matmul scale softmax".split())
"""What reads 0 and -0 alike; sums, too, of which few are of zeros."""


def _is_blind(reader: Operation) -> bool:
    """True if an op reads 0 and -0 alike; so does whoever calls the model."""
    is_known = isinstance(reader, PaddleOp) and reader.schema.target in _BLIND
    return is_known or isinstance(reader, ReturnOp)


@legalizes("scale")
def legalize_scale(builder: PaddleLegalizer) -> Results:
    """x * scale + bias, or (x + bias) * scale. A bias of zero makes 0 of -0."""
    x = builder.value("x")
    y = builder.wide() if is_float(x.element) else x
    scale, bias = (builder.scalar_of(name, y.element) for name in ("scale", "bias"))
    late = builder.flag("bias_after_scale")
    y = y if late or bias.is_all(0) else y + bias
    y = y if scale.is_all(1) else y * scale
    is_told = not all(_is_blind(use.operation) for use in builder.op.results[0].uses)
    if not bias.is_all(0) or (is_float(x.element) and is_told):
        y = y + bias if late else y
    return builder.narrow(y)


def _smoothed(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    given = builder.optional("prior_dist") is not None
    return smoothed(x, builder.value("prior_dist") if given else None, builder.number("epsilon"))


def _in_shard(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    """The place in a shard, or another number for what is in others."""
    size = -(-builder.integer("index_num") // builder.integer("nshards"))
    ignored = TensorValue.number(builder, builder.integer("ignore_value"), x.element)
    return (x // size).eq(builder.integer("shard_id")).where(x % size, ignored)


def _gated(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    """Without y, x is both halves."""
    return swiglu(x, None if builder.optional("y") is None else builder.wide("y"))


def _largest_of_groups(builder: PaddleLegalizer, x: TensorValue) -> TensorValue:
    """The largest of `groups` neighboring channels."""
    axis, groups = builder.along(x.value), builder.integer("groups")
    dims = [*x.dims[:axis], x.dims[axis] // groups, groups, *x.dims[axis + 1 :]]
    return x.reshape(dims).reduce("max", [axis + 1])


def _chosen(builder: PaddleLegalizer, condition: TensorValue) -> TensorValue:
    a, b = builder.pair("x", "y")
    return TensorValue(builder, builder.select(truth(condition).value, a.value, b.value))


Formula: TypeAlias = "Callable[[PaddleLegalizer, TensorValue], TensorValue]"

_OF_FLOATS: Mapping[str, Formula] = {
    "clip_by_norm": lambda b, x: clip_by_norm(x, b.number("max_norm")),
    "log_loss": lambda b, x: log_loss(x, b.wide("label"), b.number("epsilon")),
    "swiglu": _gated,
    "rrelu": _rrelu,
    "prelu": lambda b, x: x.gt(0).where(x, x * _slopes(b, x)),
}

_OF_ANY: Mapping[str, Formula] = {
    "increment": lambda b, x: x + b.scalar_of("value", x.element),
    "clip": lambda b, x: x.maximum(b.scalar_of("min", x.element)).minimum(
        b.scalar_of("max", x.element)
    ),
    "is_empty": lambda b, x: TensorValue.dim(b, product(x.dims)).eq(0),
    "numel": lambda b, x: TensorValue.dim(b, product(x.dims)).cast(b.element()),
    "atleast_vector": lambda b, x: x if x.dims else x.reshape([1]),
    "label_smooth": _smoothed,
    "maxout": _largest_of_groups,
    "shard_index": _in_shard,
    "where": _chosen,
}


@legalizes(*_OF_FLOATS, *_OF_ANY)
def legalize_formula(builder: PaddleLegalizer) -> Results:
    """Of the first operand, in at least single precision or as it is."""
    if (formula := _OF_FLOATS.get(builder.name)) is not None:
        return builder.results(out=builder.narrow(formula(builder, builder.wide())))
    return _OF_ANY[builder.name](builder, builder.value(builder.only)).value


@legalizes("cast")
def legalize_cast(builder: PaddleLegalizer) -> Results:
    """Another type of elements; truth values are what is not zero."""
    x = builder.value("x")
    if builder.dtype() == i1:
        return truth(x).value
    if builder.dtype() == f16 and is_float(x.element):
        return builder.rounded(x.value, f16)
    return builder.torch("_to_copy.default", builder.dtype(), self=x.value)


@legalizes("assign", "share_data", "npu_identity", "print", "depend", "assign_array", "conj")
@legalizes("assign_out", "share_var")
def legalize_identity(builder: PaddleLegalizer) -> Results:
    """The values themselves."""
    names = [*builder.operator.declared.operands]
    name = next((name for name in names if builder.get(name) is not None), names[0])
    return builder.inputs(name) if builder.name == "share_var" else [builder.input(name)]


@legalizes("dropout")
def legalize_dropout(builder: PaddleLegalizer) -> Results:
    """Nothing happens outside of training, but that one mode scales then."""
    if not builder.flag("is_test"):
        builder.refuse("random numbers", "is_test", "call model.eval()")
    x = builder.value("x")
    if builder.text("mode") == "downgrade_in_infer":
        x = x * (1 - builder.scalar_of("p", x.element))
    return builder.results(out=x.value)


def _with_size_of(builder: PaddleLegalizer) -> SSAValue:
    """One number everywhere, with one size of another tensor."""
    sizes, source = builder.exprs_of("shape"), dims_of(builder.input("input"))
    to = builder.axis(builder.integer("output_dim_idx"), len(sizes))
    sizes[to] = source[builder.axis(builder.integer("input_dim_idx"), len(source))]
    return builder.broadcast(builder.scalar_of("value", builder.dtype()).value, sizes)


legalizes.rows(
    {
        "add_n": lambda b: reduce(PAIRS["add"], (TensorValue.of(b, v) for v in b.inputs("inputs"))),
        "full_batch_size_like": _with_size_of,
        "shape": lambda b: b.cast(b.dims(dims_of(b.input("input"))), b.element()),
        "shape64": lambda b: b.dims(dims_of(b.input("input"))),
    }
)
