"""Activation functions that exporters decompose, as the operators that they are."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import TypeAlias

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.types import rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.exporters.onnx.simplify.formulas import (
    Product,
    is_close,
    is_product,
    plus_number,
    product_of,
    scaled,
    used_inside,
)
from lowerdeck.exporters.onnx.simplify.known import made_by, scalar
from lowerdeck.exporters.onnx.simplify.recovery import Recovered, Recovery


class RecoverActivation(Recovery):
    """
    Products of x and a function of x, in any arrangement

    - x / 2 (1 + erf(x / sqrt 2)) -> Gelu(x)
    - x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) -> Gelu(x) [approximate]
    - x clip(x + 3, 0, 6) / 6, x hard_sigmoid(x) -> HardSwish(x)
    - x tanh(softplus(x)) -> Mish(x)
    """

    name = "recover-activation"

    def find(self, op: OnnxOp) -> Recovered | None:
        if not is_product(op):
            return None
        product = product_of(op)
        if len(product.factors) != 2:
            return None
        for x, factor in (product.factors, product.factors[::-1]):
            if _has_other_rank(x, op.results[0]):
                continue
            for test in (_gelu, _gelu_by_tanh, _hard_swish, _mish):
                if (found := test(x, factor, product)) is not None:
                    op_type, properties, ops = found
                    consumed = (*product.ops, *ops)
                    if used_inside(consumed):
                        return Recovered(op_type, (x,), properties, consumed)
        return None


_Function: TypeAlias = "tuple[str, dict[str, Attribute], list[Operation]] | None"


def _has_other_rank(x: SSAValue, result: SSAValue) -> bool:
    """True for a scalar that a constant of the shape [1] has made a vector."""
    are_known = isinstance(x.type, TensorType) and isinstance(result.type, TensorType)
    return are_known and rank_of(x) != rank_of(result)


def _half_of(
    op_type: str, factor: SSAValue, product: Product
) -> tuple[list[Operation], SSAValue, float] | None:
    """For a product with (1 + f(number * value)) / 2: the ops of the sum, value and number."""
    if not is_close(product.number, 0.5) or (sum_ := plus_number(factor)) is None:
        return None
    add, value, one = sum_
    function = made_by(value, op_type)
    if function is None or one != 1:
        return None
    ops, argument, number = scaled(function.operands[0])
    return [add, function, *ops], argument, number


def _gelu(x: SSAValue, factor: SSAValue, product: Product) -> _Function:
    if (found := _half_of("Erf", factor, product)) is None:
        return None
    ops, argument, number = found
    return ("Gelu", {}, ops) if argument is x and is_close(number, 1 / sqrt(2)) else None


def _gelu_by_tanh(x: SSAValue, factor: SSAValue, product: Product) -> _Function:
    if (found := _half_of("Tanh", factor, product)) is None:
        return None
    ops, argument, number = found
    inner = made_by(argument, "Add")
    if inner is None or not is_close(number, sqrt(2 / pi)) or x not in inner.operands:
        return None
    other = inner.operands[1] if inner.operands[0] is x else inner.operands[0]
    weight, more = _times_cube(x, other)
    if not is_close(weight, 0.044715):
        return None
    return "Gelu", {"approximate": StringAttr("tanh")}, [*ops, inner, *more]


def _times_cube(x: SSAValue, value: SSAValue) -> tuple[float, list[Operation]]:
    """The number by which a value is x^3, a power or products, and its ops; 0 if it is not."""
    ops, cube, weight = scaled(value)
    power = made_by(cube, "Pow")
    if power is not None and power.operands[0] is x and scalar(power.operands[1]) == 3:
        return weight, [*ops, power]
    last = made_by(value, "Mul", "Div")
    product = None if last is None else product_of(last)
    if product is None or len(product.factors) != 3 or {*product.factors} != {x}:
        return 0.0, []
    return product.number, list(product.ops)


def _hard_swish(x: SSAValue, factor: SSAValue, product: Product) -> _Function:
    sigmoid = made_by(factor, "HardSigmoid")
    if sigmoid is not None and sigmoid.operands[0] is x and product.number == 1:
        alpha, beta = sigmoid.get_float("alpha"), sigmoid.get_float("beta")
        return ("HardSwish", {}, [sigmoid]) if is_close(alpha, 1 / 6) and beta == 0.5 else None
    clip = made_by(factor, "Clip")
    if clip is None or not is_close(product.number, 1 / 6) or _limits(clip) != (0, 6):
        return None
    sum_ = plus_number(clip.operands[0])
    if sum_ is None or sum_[1] is not x or sum_[2] != 3:
        return None
    return "HardSwish", {}, [clip, sum_[0]]


def _limits(clip: OnnxOp) -> tuple[float | None, float | None]:
    if clip.since_version < 11:
        return clip.get_float("min"), clip.get_float("max")
    return scalar(clip.input("min")), scalar(clip.input("max"))


def _mish(x: SSAValue, factor: SSAValue, product: Product) -> _Function:
    tanh = made_by(factor, "Tanh")
    softplus = None if tanh is None else made_by(tanh.operands[0], "Softplus")
    if tanh is None or softplus is None or softplus.operands[0] is not x or product.number != 1:
        return None
    return "Mish", {}, [tanh, softplus]


PATTERNS: Sequence[type[Recovery]] = (RecoverActivation,)
