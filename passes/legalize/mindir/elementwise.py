"""Arithmetic, element by element, and on numbers of the graph."""

from __future__ import annotations

from lowerdeck.dialects.core.elementwise import SigmoidOp
from lowerdeck.dialects.core.types import dims_of, f32, is_float, rank_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.activation import softsign
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue

_ARITHMETIC = {
    "Add": "add.Tensor",
    "TensorAdd": "add.Tensor",
    "Sub": "sub.Tensor",
    "Mul": "mul.Tensor",
}


def _pair(builder: MindirLegalizer) -> tuple[TensorValue, TensorValue]:
    """The first two arguments, in one type."""
    first, second = builder.common(*list(builder.op.schema.arguments)[:2])
    return TensorValue.of(builder, first), TensorValue.of(builder, builder.cast(second, first))


@legalizes(*_ARITHMETIC)
def legalize_arithmetic(builder: MindirLegalizer) -> Results:
    """Tensors or numbers."""
    first, second = builder.common(*list(builder.op.schema.arguments)[:2])
    return builder.torch(_ARITHMETIC[builder.name], self=first, other=second)


@legalizes("Div", "RealDiv", "TruncateDiv")
def legalize_division(builder: MindirLegalizer) -> Results:
    """Of integers the quotient is a float, or without its fraction, as the result's type says."""
    first, second = builder.common(*list(builder.op.schema.arguments)[:2])
    if is_float(builder.element()) and builder.name != "TruncateDiv":
        return builder.torch("div.Tensor", self=first, other=second)
    return builder.torch("div.Tensor_mode", self=first, other=second, rounding_mode="trunc")


@legalizes("DivMod", "DivMods")
def legalize_rounded_division(builder: MindirLegalizer) -> Results:
    """The quotient rounded as it says."""
    first, second = builder.common("input", "other")
    is_exact = builder.get("rounding_mode") is None
    rounding = None if is_exact else builder.choice("rounding_mode", "", "trunc", "floor") or None
    return builder.torch("div.Tensor_mode", self=first, other=second, rounding_mode=rounding)


@legalizes("DivNoNan", "MulNoNan", "Xdivy")
def legalize_without_nan(builder: MindirLegalizer) -> Results:
    """Zero where the divisor, the second factor, or the dividend of `Xdivy` is zero."""
    x, y = _pair(builder)
    result = x * y if builder.name == "MulNoNan" else x / y
    is_zero = (x if builder.name == "Xdivy" else y).eq(0)
    zero = TensorValue.number(builder, 0, x.element)
    return [is_zero.where(zero, result).value]


@legalizes("Xlogy")
def legalize_times_logarithm(builder: MindirLegalizer) -> Results:
    """x log(y), zero where x is zero unless y is NaN."""
    x, y = _pair(builder)
    zero = TensorValue.number(builder, 0, x.element)
    return [(x.eq(0) & y.eq(y)).where(zero, x * y.log()).value]


@legalizes("Heaviside")
def legalize_step(builder: MindirLegalizer) -> Results:
    """0 for negative numbers, 1 for positive ones, else the second."""
    x, y = _pair(builder)
    zero, one = (TensorValue.number(builder, n, x.element) for n in (0, 1))
    return [x.lt(0).where(zero, x.gt(0).where(one, y)).value]


@legalizes("SquaredDifference")
def legalize_squared_difference(builder: MindirLegalizer) -> Results:
    """(x - y)^2"""
    x, y = _pair(builder)
    return [((x - y) * (x - y)).value]


@legalizes("Softsign")
def legalize_softsign(builder: MindirLegalizer) -> Results:
    """x / (1 + |x|)"""
    return [softsign(builder.value()).value]


@legalizes("GeluExt")
def legalize_gelu(builder: MindirLegalizer) -> Results:
    """By erf, or by tanh."""
    kind = builder.choice("approximate", "none", "tanh")
    return builder.torch("gelu.default", self=builder.input(), approximate=kind)


@legalizes("Mish", "MishExt")
def legalize_mish(builder: MindirLegalizer) -> Results:
    """x n / (n + 2) with n = e^x (e^x + 2), as MindSpore computes it: NaN where n overflows."""
    x = builder.value()
    power = x.exp()
    ratio = power * (power + 2.0)
    return [(x * (ratio / (ratio + 2.0))).value]


@legalizes("FastGeLU", "FastGelu")
def legalize_fast_gelu(builder: MindirLegalizer) -> Results:
    """x * sigmoid(1.702 x)"""
    x = builder.value()
    return [(x * apply(SigmoidOp, x * 1.702)).value]


@legalizes("Round")
def legalize_round(builder: MindirLegalizer) -> Results:
    """Halves to even, at a number of decimals."""
    decimals = builder.integer("decimals", 0) if builder.has("decimals") else 0
    if decimals:
        return builder.torch("round.decimals", self=builder.input(), decimals=decimals)
    return builder.torch("round.default", self=builder.input())


@legalizes("AddN", "AccumulateNV2")
def legalize_add_n(builder: MindirLegalizer) -> Results:
    """The sum of all."""
    first, *rest = builder.inputs(next(iter(builder.op.schema.arguments)))
    total = TensorValue.of(builder, first)
    for value in rest:
        total = total + TensorValue.of(builder, value)
    return [total.value]


@legalizes("Cast", "ScalarCast", "TensorToScalar", "ScalarToTensor", "ToDtype", "TypeAs")
def legalize_cast(builder: MindirLegalizer) -> Results:
    """To the type of the result."""
    name = next(iter(builder.op.schema.arguments))
    if (x := builder.optional(name)) is None:
        return [builder.operand(name, builder.element()).value]
    x = builder.reshape(x, []) if builder.name == "TensorToScalar" else x
    return [builder.stated_cast(x)]


@legalizes("Select", "SelectV2")
def legalize_select(builder: MindirLegalizer) -> Results:
    """The second where the condition holds, else the third."""
    first, second = builder.common("input", "other")
    return builder.torch(
        "where.self", condition=builder.input("condition"), self=first, other=second
    )


@legalizes("MaskedFill")
def legalize_masked_fill(builder: MindirLegalizer) -> Results:
    """A number where the mask holds."""
    x, mask = builder.input("input_x"), builder.input("mask")
    if (value := builder.optional("value")) is not None:
        value = builder.reshape(builder.cast(value, x), [])
        return builder.torch("masked_fill.Tensor", self=x, mask=mask, value=value)
    number = builder.number("value")
    return builder.torch("masked_fill.Scalar", self=x, mask=mask, value=number)


# Numbers of the graph

_NUMBERS = pairs("""
    ScalarAdd=add ScalarSub=sub ScalarMul=mul ScalarMod=mod ScalarEq=eq ScalarNe=ne ScalarGt=gt
    ScalarGe=ge ScalarLt=lt ScalarLe=le ScalarMax=max ScalarMin=min ScalarPow=pow
""")


@legalizes(*_NUMBERS)
def legalize_numbers(builder: MindirLegalizer) -> Results:
    """Of two numbers, floats if one is."""
    return builder.stated_cast(PAIRS[_NUMBERS[builder.name]](*_scalars(builder)).value)


@legalizes("ScalarDiv", "ScalarFloorDiv")
def legalize_quotient(builder: MindirLegalizer) -> Results:
    """Quotients of numbers."""
    x, y = _scalars(builder)
    if builder.name == "ScalarDiv":
        found = x.cast(f32) / y.cast(f32)
    else:
        found = (x / y).floor() if is_float(x.element) else x // y
    return [builder.stated_cast(found.value)]


def _scalars(builder: MindirLegalizer) -> tuple[TensorValue, TensorValue]:
    first, second = builder.common("x", "y")
    values = [TensorValue.of(builder, value) for value in (first, second)]
    wide = next((value.element for value in values if is_float(value.element)), values[0].element)
    return values[0].cast(wide), values[1].cast(wide)


@legalizes("ScalarUsub", "ScalarUadd", "ScalarLog", "ScalarBool")
def legalize_number(builder: MindirLegalizer) -> Results:
    """Of one number."""
    x = builder.value()
    if builder.name == "ScalarUsub":
        x = -x
    elif builder.name == "ScalarLog":
        x = x.cast(f32).log()
    elif builder.name == "ScalarBool":
        x = x.ne(0)
    return [builder.stated_cast(x.value)]


# Sizes


@legalizes("Shape", "TensorShape", "DynamicShape")
def legalize_shape(builder: MindirLegalizer) -> Results:
    """The sizes, as numbers or as a vector."""
    dims = dims_of(builder.input())
    if len(builder.op.results) == 1 and builder.name != "Shape":
        return [builder.stated_cast(builder.dims(dims))]
    return [builder.stated_cast(builder.dims([dim], []), k) for k, dim in enumerate(dims)]


@legalizes("Size", "Rank")
def legalize_size(builder: MindirLegalizer) -> Results:
    """The number of elements, or of dimensions."""
    x = builder.input()
    count = rank_of(x) if builder.name == "Rank" else product(dims_of(x))
    return [builder.stated_cast(builder.dims([count], []))]
