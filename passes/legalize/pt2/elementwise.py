"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
    is_float,
    is_integer,
    is_unsigned,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common import activation
from lowerdeck.passes.legalize.common.divisors import common_divisor
from lowerdeck.passes.legalize.common.functions import (
    FUNCTIONS,
    KEPT,
    PAIRS,
    finite,
    floor_quotient,
    shifted_right,
    truncated,
    truth,
)
from lowerdeck.passes.legalize.common.promotion import Number, promoted, wide_element, wide_type
from lowerdeck.passes.legalize.common.special import (
    angle_of,
    apply,
    bessel_i0,
    erfc,
    erfinv,
    expm1,
    hypot,
    is_negative,
    log1p,
    logaddexp,
    neighbor,
    round_at,
)
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Handler, Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue, broadcast_values

Function: TypeAlias = "Callable[[TensorValue], TensorValue]"
Activation: TypeAlias = "Callable[[TensorValue, Sequence[Any]], TensorValue]"
Combination: TypeAlias = "Callable[[TensorValue, TensorValue], TensorValue]"

# Two operands


def _operands(builder: Pt2Legalizer, *names: str) -> list[TensorValue]:
    """Arguments in the type to which they are promoted; by default the first two."""
    names = names or tuple(builder.op.schema.arguments)[:2]
    element = builder.promoted(*names)
    if not is_float(element) and is_float(builder.element()):
        element = builder.element()
    return [builder.operand(name, element) for name in names]


def _combined(function: Combination) -> Handler:
    """A function of operands in one type."""
    return lambda builder: function(*_operands(builder))


_PAIRS = pairs("""
    maximum=max minimum=min max.other=max min.other=min fmax=fmax fmin=fmin
    remainder=mod fmod=rem heaviside=heaviside bitwise_and=and bitwise_or=or bitwise_xor=xor
    __and__=and __or__=or __xor__=xor eq=eq ne=ne lt=lt le=le gt=gt ge=ge not_equal=ne less=lt
    less_equal=le greater=gt greater_equal=ge
""")

legalizes.rows({name: _combined(PAIRS[function]) for name, function in _PAIRS.items()})


@legalizes("logical_and", "logical_or", "logical_xor")
def legalize_logic(builder: Pt2Legalizer) -> Results:
    """Of what is not zero."""
    return PAIRS[builder.name.removeprefix("logical_")](*map(truth, _operands(builder)))


@legalizes("add", "sub", "rsub", "subtract")
def legalize_sum(builder: Pt2Legalizer) -> Results:
    """self + alpha * other; Boolean sums are or."""
    a, b = _operands(builder)
    alpha = builder.get("alpha")
    if a.element == i1:
        if builder.name != "add":
            builder.refuse("a difference of truth values", "a sum")
        return a | (b & builder.operand("alpha", i1))
    if builder.name == "rsub":
        a, b = b, a
    element = a.element
    if alpha != 1:  # half precision is rounded once
        a, b = _wide(a), _wide(b) * _wide(builder.operand("alpha", element))
    return (a + b if builder.name == "add" else a - b).cast(element)


def _factors(builder: Pt2Legalizer, element: Attribute) -> tuple[TensorValue, TensorValue]:
    """Of half precision they are f32 if the second is a scalar, which is not rounded first."""
    other = builder.optional("other")
    a, wide = builder.operand("self", element), wide_type(element)
    if other is not None and rank_of(other):
        return a, builder.operand("other", element)
    return a.cast(wide), builder.operand("other", wide)


@legalizes("mul", "multiply")
def legalize_product(builder: Pt2Legalizer) -> Results:
    """The product of two."""
    element = builder.promoted("self", "other")
    a, b = _factors(builder, element)
    return (a * b).cast(element)


@legalizes("div", "divide", "true_divide", "floor_divide")
def legalize_quotient(builder: Pt2Legalizer) -> Results:
    """Quotients of integers are floats unless they are rounded."""
    mode = builder.get("rounding_mode") if builder.has("rounding_mode") else None
    if builder.name == "floor_divide":
        mode = "floor"
    element = builder.promoted("self", "other")
    if mode is None and not is_float(element):
        element = builder.element()
    a, b = _factors(builder, element)
    if is_float(element):
        found = floor_quotient(a, b) if mode == "floor" else a / b
        return (truncated(found) if mode == "trunc" else found).cast(element)
    return a.quotient(b) if mode == "floor" else PAIRS["div"](a, b)


@legalizes("pow", "float_power")
def legalize_power(builder: Pt2Legalizer) -> Results:
    """Powers; small plain exponents are products."""
    element = builder.promoted("self", "exponent")
    element = builder.element() if builder.name == "float_power" else element
    a = builder.operand("self", element)
    exponent = builder.get("exponent")
    if element == i1:  # of a plain truth value
        return a | (~builder.operand("exponent", i1))
    if exponent == 2:
        return a * a
    if exponent in (0.5, -0.5) and is_float(element) and element != f16:
        return FUNCTIONS["sqrt" if exponent > 0 else "rsqrt"](_wide(a)).cast(element)
    return builder.add(core.PowOp(a.value, builder.operand("exponent", element).value))


@legalizes("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def legalize_shift(builder: Pt2Legalizer) -> Results:
    """Shifts of integers, which keep the sign to the right; too far is zero, or the sign."""
    a, b = _operands(builder)
    if not is_integer(a.element):
        builder.refuse(f"shifts of {a.element}", "integers")
    last = bit_width(a.element) - 1
    is_inside = b.ge(0) & b.le(last)
    near = is_inside.where(b, b * 0 + last)
    to_left = "left" in builder.name or builder.name == "__lshift__"
    moved = PAIRS["shl"](a, near) if to_left else shifted_right(a, near)
    return is_inside.where(moved, 0) if to_left or is_unsigned(a.element) else moved


@legalizes("bitwise_not", "logical_not")
def legalize_not(builder: Pt2Legalizer) -> Results:
    """All bits, or the truth value."""
    return ~(truth(builder.value()) if builder.name == "logical_not" else builder.value())


@legalizes("where")
def legalize_where(builder: Pt2Legalizer) -> Results:
    """Elements of the one or the other."""
    if not builder.has("self"):
        from lowerdeck.passes.legalize.pt2.indexing import legalize_nonzero_numpy

        return legalize_nonzero_numpy(builder)
    a, b = _operands(builder, "self", "other")
    return builder.select(truth(builder.value("condition")).value, a.value, b.value)


@legalizes("masked_fill")
def legalize_masked_fill(builder: Pt2Legalizer) -> Results:
    """Another value where a mask holds."""
    x = builder.value()
    value = builder.operand("value", x.element)
    return builder.select(builder.input("mask"), value.value, x.value)


@legalizes("clamp", "clip", "clamp_min", "clamp_max", "hardtanh")
def legalize_clamp(builder: Pt2Legalizer) -> Results:
    """Between bounds of which each may be left out; the upper one wins."""
    keeps_type = builder.name == "hardtanh"
    low, high = ("min_val", "max_val") if keeps_type else ("min", "max")
    given = [n for n in (low, high) if builder.has(n) and builder.get(n) is not None]
    element = builder.element() if keeps_type else builder.promoted("self", *given)
    x = builder.operand("self", element)
    x = x.maximum(builder.operand(low, element)) if low in given else x
    return x.minimum(builder.operand(high, element)) if high in given else x


# Functions of one operand

_UNARY: Mapping[str, Function] = {
    **FUNCTIONS,
    **{f"arc{name[1:]}": function for name, function in FUNCTIONS.items() if name[0] == "a"},
    "exp2": lambda x: _power(2.0, x),
    "erfc": erfc,
    "erfinv": erfinv,
    "mish": lambda x: x * apply(core.TanhOp, activation.softplus(x)),
    "log_sigmoid": lambda x: x.minimum(0) - log1p((-x.abs()).exp()),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "hardsigmoid": lambda x: (x + 3).maximum(0).minimum(6) / 6,
    "hardswish": lambda x: x * (x + 3).maximum(0).minimum(6) / 6,
    "selu": lambda x: activation.selu(x, 1.0507009873554805, 1.6732632423543772),
    "sinc": lambda x: x.eq(0).where(x * 0 + 1, (x * math.pi).sin() / (x * math.pi)),
    "entr": lambda x: x.eq(0).where(x * x, x.lt(0).where(x * 0 + -math.inf, -(x * x.log()))),
    "ndtr": lambda x: x.lt(0).where(
        erfc(-x * math.sqrt(0.5)) * 0.5, apply(core.ErfOp, x * math.sqrt(0.5)) * 0.5 + 0.5
    ),
}


def _power(base: float, x: TensorValue) -> TensorValue:
    return PAIRS["pow"](TensorValue.number(x.builder, base, x.element), x)


def _wide(x: TensorValue) -> TensorValue:
    """Half precision in f32."""
    return x.cast(wide_element(x.value))


def _computed(function: Activation, *names: str) -> Handler:
    """
    A function of a float and of numbers, the arguments `names`. Of half precision it is computed in
    f32 and rounded once.
    """

    def handler(builder: Pt2Legalizer) -> Results:
        x = builder.floating()
        numbers = [None if builder.get(n) is None else builder.number(n) for n in names]
        return function(_wide(x), numbers).cast(x.element)

    return handler


def _plain(function: Function) -> Activation:
    return lambda x, _: function(x)


legalizes.rows({name: _computed(_plain(function)) for name, function in _UNARY.items()})


def _kept(function: Function) -> Handler:
    """A function that integers have, too."""
    return lambda builder: function(builder.value())


def _sign(x: TensorValue) -> TensorValue:
    """That of NaN is zero."""
    if is_unsigned(x.element):
        return x if x.element == i1 else x.minimum(1)
    sign = apply(core.SignOp, x)
    return x.eq(x).where(sign, 0) if is_float(x.element) else sign


_KEPT: Mapping[str, Function] = {
    **{name: function for name, function in KEPT.items() if name != "square"},
    "fix": KEPT["trunc"],
    "frac": lambda x: x - KEPT["trunc"](x),
    "neg": lambda x: -x,
    "negative": lambda x: -x,
    "relu": lambda x: x.maximum(0),
    "positive": lambda x: x,
    "sign": _sign,
    "sgn": _sign,
    "isposinf": lambda x: x.eq(math.inf) if is_float(x.element) else x.ne(x),
    "isneginf": lambda x: x.eq(-math.inf) if is_float(x.element) else x.ne(x),
    "signbit": lambda x: is_negative(x) if is_float(x.element) else x.lt(0),
}

legalizes.rows({name: _kept(function) for name, function in _KEPT.items()})
legalizes.rows({"square": lambda x: x.stated() * x.stated()})  # of a truth value an integer


@legalizes("round")
def legalize_round(builder: Pt2Legalizer) -> Results:
    """Halves to even, at a number of decimals."""
    x, decimals = builder.value(), builder.integer("decimals") if builder.has("decimals") else 0
    return round_at(_wide(x), decimals).cast(x.element) if is_float(x.element) else x


@legalizes("nan_to_num")
def legalize_nan_to_num(builder: Pt2Legalizer) -> Results:
    """Other numbers for NaN and infinities."""
    high, low = (builder.get(name) for name in ("posinf", "neginf"))
    return finite(builder.value(), builder.number("nan", 0.0), high, low)


# Activations with parameters


def _rrelu(x: TensorValue, low: float, high: float, training: bool) -> TensorValue:
    """With the mean of the slopes that it has in training."""
    if training:
        refuse("random numbers", "evaluation", "call model.eval()")
    return x.gt(0).where(x, x * ((low + high) / 2))


_ACTIVATIONS: Mapping[str, Activation] = {
    "elu alpha scale input_scale": lambda x, n: activation.scaled_elu(x, *n),
    "celu alpha": lambda x, n: x.lt(0).where(expm1(x.minimum(0) / n[0]) * n[0], x),
    "leaky_relu negative_slope": lambda x, n: x.gt(0).where(x, x * n[0]),
    "softplus beta threshold": lambda x, n: activation.sharp_softplus(x, *n),
    "rrelu lower upper training": lambda x, n: _rrelu(x, *n),
}
"""Operators and their numbers."""

for _key, _function in _ACTIVATIONS.items():
    legalizes(_key.split()[0])(_computed(_function, *_key.split()[1:]))


@legalizes("gelu")
def legalize_gelu(builder: Pt2Legalizer) -> Results:
    """By the error function, or by tanh."""
    by_tanh = builder.text("approximate", "none") == "tanh"
    return _computed(lambda x, _: activation.gelu(x, by_tanh))(builder)


@legalizes("prelu", "_prelu_kernel")
def legalize_prelu(builder: Pt2Legalizer) -> Results:
    """x, or a multiple of it below zero, one for each channel."""
    x, slope = builder.value(), builder.value("weight")
    if builder.name == "prelu" and len(x.dims) > 1:
        count = slope.dims[0] if slope.dims else 1
        slope = slope.reshape([count, *[1] * (len(x.dims) - 2)])
    slope = slope if x.dims else slope.reshape([])
    return x.gt(0).where(x, x * slope)


@legalizes("threshold")
def legalize_threshold(builder: Pt2Legalizer) -> Results:
    """x above a threshold, else a value."""
    x = builder.value()
    value = builder.operand("value", x.element)
    return x.le(builder.operand("threshold", x.element)).where(value, x)


@legalizes("hardshrink", "softshrink")
def legalize_shrink(builder: Pt2Legalizer) -> Results:
    """Zero within a limit, which is of the type of x; others remain, or are nearer to zero."""
    x = builder.floating()
    limit = builder.operand("lambd", x.element)
    return activation.shrunk(x, limit, nearer=builder.name == "softshrink")


@legalizes("glu")
def legalize_glu(builder: Pt2Legalizer) -> Results:
    """The first half times the sigmoid of the second."""
    x = builder.input()
    axis = builder.dim(default=-1)
    half = dims_of(x)[axis] // 2
    a, b = (TensorValue(builder, part) for part in builder.split(x, axis, [half, half]))
    return (_wide(a) * apply(core.SigmoidOp, _wide(b))).cast(builder.element())


@legalizes("logit")
def legalize_logit(builder: Pt2Legalizer) -> Results:
    """log(x / (1 - x)), x between eps and 1 - eps; half precision is rounded at each step."""
    x = builder.floating()
    if builder.get("eps") is not None:
        x = x.clip(builder.number("eps"), 1 - builder.number("eps"))
    return activation.logit(x, 0)


# Functions of two operands


def _in_floats(function: Combination) -> Handler:
    """A function of two floats; of half precision it is computed in f32 and rounded once."""

    def handler(builder: Pt2Legalizer) -> Results:
        a, b = builder.stated("self"), builder.stated("other")
        return function(_wide(a), _wide(b)).cast(a.element)

    return handler


def _times_log(function: Function) -> Combination:
    """x times the logarithm of y, 0 (not -0) where x is zero and y is a number"""
    return lambda x, y: (x.eq(0) & y.eq(y)).where(x * x, x * function(y))


_OF_FLOATS: Mapping[str, Combination] = {
    "atan2": angle_of,
    "arctan2": angle_of,
    "hypot": hypot,
    "copysign": lambda a, b: is_negative(b).where(-a.abs(), a.abs()),
    "ldexp": lambda a, b: a * _power(2.0, b),
    "logaddexp": logaddexp,
    "logaddexp2": lambda a, b: logaddexp(a, b, math.log(2)),
    "xlogy": _times_log(lambda y: y.log()),
    "xlog1py": _times_log(log1p),
}

legalizes.rows({name: _in_floats(function) for name, function in _OF_FLOATS.items()})


@legalizes("nextafter")
def legalize_next(builder: Pt2Legalizer) -> Results:
    """The neighbor in the direction of another number."""
    a, b = (builder.stated(name) for name in ("self", "other"))
    if a.element != f32:
        builder.refuse(f"{a.element}", "f32")
    return neighbor(a, b)


@legalizes("lerp")
def legalize_lerp(builder: Pt2Legalizer) -> Results:
    """Between two tensors."""
    a, b = (_wide(builder.stated(name)) for name in ("self", "end"))
    w = builder.operand("weight", a.element)
    near = a + w * (b - a)
    return w.abs().lt(0.5).where(near, b - (b - a) * (1 - w)).cast(builder.element())


@legalizes("addcmul", "addcdiv")
def legalize_addc(builder: Pt2Legalizer) -> Results:
    """self + value * product or quotient"""
    x, a, b = (_wide(builder.stated(name)) for name in ("self", "tensor1", "tensor2"))
    term = a * b if builder.name == "addcmul" else a / b
    return (x + term * builder.operand("value", x.element)).cast(builder.element())


@legalizes("special_i0", "i0", "special_i0e")
def legalize_bessel(builder: Pt2Legalizer) -> Results:
    """The modified Bessel function, maybe times exp(-|x|); in f64 its digits would be too few."""
    x = builder.floating()
    if x.element == f64:
        builder.refuse("f64", "f32")
    scaled = builder.name.endswith("e")
    return bessel_i0(x.cast(f32), scaled=scaled).cast(x.element)


@legalizes("gcd", "lcm")
def legalize_divisor(builder: Pt2Legalizer) -> Results:
    """The greatest common divisor, and the product by it."""
    a, b = broadcast_values(*_operands(builder))
    found = common_divisor(builder, a, b)
    if builder.name == "gcd":
        return found
    multiple = PAIRS["div"](a, found.maximum(1)) * b
    return multiple if is_unsigned(found.element) else multiple.abs()


# Types and copies

_WORD = 32


@legalizes("clone", "alias", "detach", "lift", "lift_fresh", "lift_fresh_copy", "contiguous")
@legalizes("resolve_conj", "resolve_neg", "cpu", "_to_cpu", "pin_memory", "copy_strided")
def legalize_identity(builder: Pt2Legalizer) -> Results:
    """The value itself."""
    return builder.input()


@legalizes("_to_copy", "to", "type_as", "convert_element_type")
def legalize_cast(builder: Pt2Legalizer) -> Results:
    """Another type of elements; truth values are what is not zero."""
    return converted(builder, builder.input())


def converted(builder: Pt2Legalizer, x: SSAValue) -> SSAValue:
    """A value in the type that the file states."""
    target = builder.element()
    if target == i1:
        return truth(TensorValue.of(builder, x)).value
    if is_float(element_type(x)) and is_integer(target) and bit_width(target) < _WORD:
        x = builder.cast(x, i32)  # narrow integers are the low bits of a word
    return builder.cast(x, target)


@legalizes("copy")
def legalize_copy(builder: Pt2Legalizer) -> Results:
    """The elements of the source, in the type and shape of `self`."""
    source = converted(builder, builder.input("src"))
    return builder.broadcast(source, dims_of(builder.input()))


@legalizes("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def legalize_dropout(builder: Pt2Legalizer) -> Results:
    """Nothing happens outside of training."""
    if builder.flag("train") or (builder.name == "native_dropout" and builder.get("train") is None):
        builder.refuse("random numbers", "a model in evaluation mode", "call model.eval()")
    return [builder.input("input"), None][: len(builder.op.results)]


# Symbols

_SYMBOLIC: Mapping[str, Combination] = {
    **{name: PAIRS[name] for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}_": PAIRS[name] for name in ("and", "or")},
    **{f"sym_{name}": PAIRS[name] for name in ("max", "min")},
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "truediv": lambda a, b: a.cast(f64) / b.cast(f64),
    "pow": lambda a, b: _symbolic_power(a, b),
}


def _symbolic_power(a: TensorValue, b: TensorValue) -> TensorValue:
    """A product if the exponent is a small number, so that a size remains one."""
    count = None if b.array is None else b.array.item()
    if a.element == i64 and isinstance(count, int) and 0 <= count <= _MOST_FACTORS:
        found = TensorValue.number(a.builder, 1, i64)
        for _ in range(count):
            found = found * a
        return found
    return PAIRS["pow"](a.cast(f64), b.cast(f64))


_MOST_FACTORS = 8


@legalizes(*(f"torch.{n}" if n.startswith("sym") else f"_operator.{n}" for n in _SYMBOLIC))
def legalize_symbolic(builder: Pt2Legalizer) -> Results:
    """Arithmetic of sizes."""
    name = builder.op.op_type.split(".")[1]
    symbolic: list[Number] = [builder.get(key) for key in ("a", "b")]
    has_bool = any(isinstance(s, SSAValue) and element_type(s) == i1 for s in symbolic)
    has_float = any(
        element_type(s) == f64 if isinstance(s, SSAValue) else isinstance(s, float)
        for s in symbolic
    )
    element = i1 if has_bool else f64 if has_float else i64
    a, b = (builder.operand(key, element) for key in ("a", "b"))
    return _SYMBOLIC[name](a, b)


legalizes.rows(
    {
        "torch.sym_not": lambda builder: ~builder.value("a"),
        "torch.sym_float": lambda builder: builder.value("a").cast(f64),
        "_operator.neg": lambda builder: -builder.value("a"),
        "_operator.pos": lambda builder: builder.value("a"),
    }
)


@legalizes("math.trunc", "math.floor", "math.ceil", "torch.sym_int")
def legalize_symbolic_rounding(builder: Pt2Legalizer) -> Results:
    """A whole number, which may be a size."""
    x = TensorValue.of(builder, builder.input("x" if builder.has("x") else "a"))
    name = builder.op.op_type.split(".")[1]
    if is_float(x.element):
        x = KEPT[name if name in ("floor", "ceil") else "trunc"](x)
    found = size_of(builder, x.cast(i64).value, "a size")
    return TensorValue.dim(builder, found)


@legalizes("torch.sym_ite")
def legalize_symbolic_choice(builder: Pt2Legalizer) -> Results:
    """One of two numbers."""
    element = promoted([builder.get(key) for key in ("t", "f")])
    chosen, other = (builder.operand(key, element) for key in ("t", "f"))
    return builder.operand("b", i1).where(chosen, other)


@legalizes("torch.sym_sum")
def legalize_symbolic_sum(builder: Pt2Legalizer) -> Results:
    """The sum of sizes."""
    terms = builder.exprs_of("args")
    return TensorValue.dim(builder, sum(terms, Expr.const(0)))


@legalizes("sym_size", "sym_numel")
def legalize_size(builder: Pt2Legalizer) -> Results:
    """A size, as an integer."""
    x = builder.input()
    if builder.name == "sym_numel":
        return TensorValue.dim(builder, product(dims_of(x)))
    return TensorValue.dim(builder, dims_of(x)[builder.dim()])


@legalizes("_shape_as_tensor")
def legalize_shape(builder: Pt2Legalizer) -> Results:
    """All sizes, as a vector."""
    return builder.dims(dims_of(builder.input()))


@legalizes("is_nonzero")
def legalize_truth(builder: Pt2Legalizer) -> Results:
    """Whether the only element is not zero."""
    return truth(builder.value().reshape([]))


@legalizes("_local_scalar_dense", "item")
def legalize_item(builder: Pt2Legalizer) -> Results:
    """The only element."""
    return builder.cast(builder.reshape(builder.input(), []), builder.element())
