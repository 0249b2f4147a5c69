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
    number_of,
    plus_number,
    product_of,
    used_inside,
)
from lowerdeck.exporters.onnx.simplify.fractions import (
    ARITHMETIC,
    Formula,
    Fraction,
    Polynomial,
    is_fraction,
)
from lowerdeck.exporters.onnx.simplify.known import made_by, scalar
from lowerdeck.exporters.onnx.simplify.recovery import Recovered, Recovery


class RecoverActivation(Recovery):
    """
    x and a function of x, in any arrangement

    - x / 2 (1 + erf(x / sqrt 2)) -> Gelu(x)
    - x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) -> Gelu(x) [approximate]
    - x clip(x + 3, 0, 6) / 6, x hard_sigmoid(x) -> HardSwish(x)
    - x tanh(softplus(x)), x tanh(log(1 + exp(x))) -> Mish(x)
    - x (exp(x)^2 + 2 exp(x)) / (exp(x)^2 + 2 exp(x) + 2) -> Mish(x) [x in exp(x) is limited to 20
      or more: without a limit there is NaN where the square is infinite]
    """

    name = "recover-activation"

    def find(self, op: OnnxOp) -> Recovered | None:
        if (found := _recovered_product(op)) is not None:
            return found
        functions, leaves = _inside(op)
        for function in functions:
            for x in _arguments(function, leaves):
                if _has_other_rank(x, op.results[0]):
                    continue
                formula = Formula(x, function.results[0])
                value = formula.fraction(op.results[0])
                for test in (_gelu, _gelu_by_tanh, _mish, _mish_by_exp):
                    if (found := test(x, function, value)) is None:
                        continue
                    op_type, properties, ops = found
                    consumed = tuple(dict.fromkeys((*formula.ops, function, *ops)))
                    if used_inside(consumed):
                        return Recovered(op_type, (x,), properties, consumed)
        return None


_Function: TypeAlias = "tuple[str, dict[str, Attribute], list[Operation]] | None"

_MOST_OPS = 16


def _inside(root: OnnxOp) -> tuple[list[OnnxOp], list[SSAValue]]:
    """The functions whose results an op combines, with those before it; and the other values."""
    functions: dict[OnnxOp, None] = {}
    leaves: dict[SSAValue, None] = {}
    pending = [root] if root.op_type in ARITHMETIC else []
    for op in pending:
        for value in op.operands:
            function = made_by(value, "Erf", "Tanh", "Exp")
            inner = made_by(value, *ARITHMETIC)
            if function is not None:
                functions[function] = None
            else:
                leaves[value] = None
            if inner is not None and inner not in pending and len(pending) < _MOST_OPS:
                pending.append(inner)
    return list(functions), list(leaves)


def _arguments(function: OnnxOp, leaves: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """What the x of a formula may be: a value outside of the function, and inside of it."""
    inside: dict[SSAValue, None] = dict.fromkeys(function.operands)
    for value in inside.copy():
        pending = [value]
        for each in pending:
            op = made_by(each, *ARITHMETIC, "Softplus", "Log", "Exp", "Min")
            if op is not None and len(pending) < _MOST_OPS:
                pending += [operand for operand in op.operands if operand not in inside]
                inside.update(dict.fromkeys(op.operands))
    return [value for value in leaves if value in inside and number_of(value) is None]


def _recovered_product(op: OnnxOp) -> Recovered | None:
    if not is_product(op):
        return None
    product = product_of(op)
    if len(product.factors) != 2:
        return None
    for x, factor in (product.factors, product.factors[::-1]):
        if _has_other_rank(x, op.results[0]):
            continue
        if (found := _hard_swish(x, factor, product)) is not None:
            op_type, properties, ops = found
            consumed = (*product.ops, *ops)
            if used_inside(consumed):
                return Recovered(op_type, (x,), properties, consumed)
    return None


def _has_other_rank(x: SSAValue, result: SSAValue) -> bool:
    """True for a scalar that a constant of the shape [1] has made a vector."""
    are_known = isinstance(x.type, TensorType) and isinstance(result.type, TensorType)
    return are_known and rank_of(x) != rank_of(result)


_ONE: Polynomial = {(0, 0): 1.0}


def _half_of(value: Fraction | None, sign: float) -> bool:
    """True for x (1 + f) / 2, or x (1 - f) / 2."""
    return is_fraction(value, {(1, 0): 0.5, (1, 1): 0.5 * sign}, _ONE)


def _gelu(x: SSAValue, function: OnnxOp, value: Fraction | None) -> _Function:
    if function.op_type != "Erf":
        return None
    inner = Formula(x)
    argument = inner.fraction(function.operands[0])
    for sign in (1.0, -1.0):
        if is_fraction(argument, {(1, 0): sign / sqrt(2)}, _ONE) and _half_of(value, sign):
            return "Gelu", {}, inner.ops
    return None


def _gelu_by_tanh(x: SSAValue, function: OnnxOp, value: Fraction | None) -> _Function:
    if function.op_type != "Tanh":
        return None
    inner, factor = Formula(x), sqrt(2 / pi)
    argument = inner.fraction(function.operands[0])
    for sign in (1.0, -1.0):
        expected = {(1, 0): sign * factor, (3, 0): sign * factor * 0.044715}
        if is_fraction(argument, expected, _ONE) and _half_of(value, sign):
            return "Gelu", {"approximate": StringAttr("tanh")}, inner.ops
    return None


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


def _mish(x: SSAValue, function: OnnxOp, value: Fraction | None) -> _Function:
    if function.op_type != "Tanh" or not is_fraction(value, {(1, 1): 1.0}, _ONE):
        return None
    softplus = made_by(function.operands[0], "Softplus")
    if softplus is not None:
        return ("Mish", {}, [softplus]) if softplus.operands[0] is x else None
    log = made_by(function.operands[0], "Log")
    sum_ = None if log is None else plus_number(log.operands[0])
    if log is None or sum_ is None or sum_[2] != 1:
        return None
    exp = made_by(sum_[1], "Exp")
    return ("Mish", {}, [log, sum_[0], exp]) if exp and exp.operands[0] is x else None


def _mish_by_exp(x: SSAValue, function: OnnxOp, value: Fraction | None) -> _Function:
    if function.op_type != "Exp":
        return None
    limit = made_by(function.operands[0], "Min")
    if limit is None or not _is_limit(limit, x):
        return None
    ratio = {(1, 2): 1.0, (1, 1): 2.0}, {(0, 2): 1.0, (0, 1): 2.0, (0, 0): 2.0}
    return ("Mish", {}, [limit]) if is_fraction(value, *ratio) else None


def _is_limit(op: OnnxOp, x: SSAValue) -> bool:
    """True for min(x, c) if from c on x tanh(log(1 + exp(x))) is x."""
    if len(op.operands) != 2 or op.operands[0] is not x:
        return False
    limit = number_of(op.operands[1])
    return limit is not None and limit >= 20


PATTERNS: Sequence[type[Recovery]] = (RecoverActivation,)
