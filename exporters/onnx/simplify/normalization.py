"""Normalizations that exporters decompose, as the operators that they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f32
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import constants
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.exporters.onnx.simplify.formulas import plus_number, used_inside
from lowerdeck.exporters.onnx.simplify.known import constant, made_by, numbers, only_user, scalar
from lowerdeck.exporters.onnx.simplify.recovery import Recovered, Recovery


class RecoverLayerNorm(Recovery):
    """
    centered / sqrt(mean(centered^2) + epsilon) gamma + beta -> LayerNormalization(x, gamma, beta)
    [centered = x - mean(x), over the last dimensions]; without the mean RMSNormalization
    """

    name = "recover-layer-norm"

    def find(self, op: OnnxOp) -> Recovered | None:
        if op.op_type == "Mul":
            return _scaled(op, None, ())
        if op.op_type == "Add":
            for value, bias in (op.operands, tuple(op.operands)[::-1]):
                product = made_by(value, "Mul")
                if product is not None and only_user(value) is op:
                    if (found := _scaled(product, bias, (op,))) is not None:
                        return found
        return None


def _scaled(
    product: OnnxOp, bias: SSAValue | None, consumed: tuple[Operation, ...]
) -> Recovered | None:
    """The normalization that ends with a product, or with the sum that consumes it."""
    for normal, scale in (product.operands, tuple(product.operands)[::-1]):
        quotient = made_by(normal, "Div", "Mul")
        if quotient is None or only_user(normal) is not product:
            continue
        found = _normalized(quotient)
        if found is None:
            continue
        x, axis, epsilon, is_centered, ops = found
        if bias is None and is_centered and _is_added_to(product.results[0]):
            return None  # the sum is the whole
        if bias is not None and not is_centered:
            return None
        if not all(_is_parameter(p, x, axis) for p in (scale, bias) if p is not None):
            continue
        all_ops = (*consumed, product, *ops)
        if not used_inside(all_ops):
            continue
        operands = [x, scale] if bias is None else [x, scale, bias]
        properties = {"axis": IntegerAttr(axis, i64), "epsilon": FloatAttr(epsilon, f32)}
        name = "LayerNormalization" if is_centered else "RMSNormalization"
        return Recovered(name, operands, properties, all_ops)
    return None


def _is_added_to(value: SSAValue) -> bool:
    user = only_user(value)
    return (
        isinstance(user, OnnxOp)
        and user.op_type == "Add"
        and any(constant(operand) is not None for operand in user.operands)
    )


_Normalized: TypeAlias = "tuple[SSAValue, int, float, bool, list[Operation]] | None"


def _normalized(quotient: OnnxOp) -> _Normalized:
    """
    For y / sqrt(mean(y^2) + epsilon): x, the first of the dimensions, epsilon, whether y is
    x - mean(x) and not x itself, and the ops. A product with the reciprocal is a quotient.
    """
    left, right = quotient.operands
    if quotient.op_type == "Div":
        root = _power(right, 0.5)
        return None if root is None else _of_root(left, root, [quotient])
    for y, other in ((left, right), (right, left)):
        root = _reciprocal_root(other)
        found = None if root is None else _of_root(y, root, [quotient])
        if found is not None:
            return found
    return None


_Power: TypeAlias = "tuple[SSAValue, list[Operation]] | None"


def _power(value: SSAValue, exponent: float) -> _Power:
    """y and the op of y to a power; that of 1 / 2 may be a root."""
    root, power = made_by(value, "Sqrt"), made_by(value, "Pow")
    if root is not None and exponent == 0.5:
        return root.operands[0], [root]
    if power is not None and scalar(power.operands[1]) == exponent:
        return power.operands[0], [power]
    return None


def _reciprocal_root(value: SSAValue) -> _Power:
    """y and the ops of y^(-1 / 2)."""
    if (found := _power(value, -0.5)) is not None:
        return found
    inverse, quotient = made_by(value, "Reciprocal"), made_by(value, "Div")
    if quotient is not None and scalar(quotient.operands[0]) == 1:
        op, root = quotient, _power(quotient.operands[1], 0.5)
    elif inverse is not None:
        op, root = inverse, _power(inverse.operands[0], 0.5)
    else:
        return None
    return None if root is None else (root[0], [op, *root[1]])


def _of_root(
    centered: SSAValue, root: tuple[SSAValue, list[Operation]], before: list[Operation]
) -> _Normalized:
    """What `_normalized` finds for y, given mean(y^2) + epsilon and the ops up to it."""
    sum_ = plus_number(root[0])
    if sum_ is None:
        return None
    add, variance, epsilon = sum_
    mean = made_by(variance, "ReduceMean")
    square = None if mean is None else _squared(mean.operands[0])
    if mean is None or square is None or square[1] is not centered:
        return None
    if not isinstance(centered.type, TensorType):
        return None
    axis = _trailing(mean, rank_of(centered))
    if axis is None:
        return None
    ops: list[Operation] = [*before, *root[1], add, mean, square[0]]
    difference = made_by(centered, "Sub")
    if difference is not None:
        x, average = difference.operands
        first = made_by(average, "ReduceMean")
        if (
            first is not None
            and first.operands[0] is x
            and _trailing(first, rank_of(centered)) == axis
        ):
            return x, axis, epsilon, True, [*ops, difference, first]
    return centered, axis, epsilon, False, ops


def _squared(value: SSAValue) -> tuple[OnnxOp, SSAValue] | None:
    power, product = made_by(value, "Pow"), made_by(value, "Mul")
    if power is not None and scalar(power.operands[1]) == 2:
        return power, power.operands[0]
    if product is not None and product.operands[0] is product.operands[1]:
        return product, product.operands[0]
    return None


def _trailing(mean: OnnxOp, rank: int) -> int | None:
    """The first of the dimensions that are reduced, if they are the last ones and are kept."""
    given = mean.get_ints("axes") if mean.since_version < 18 else numbers(mean.input("axes"))
    if not given or mean.get_int("keepdims") == 0:
        return None
    axes = sorted(axis % rank for axis in given)
    return axes[0] if axes == list(range(axes[0], rank)) else None


def _is_parameter(value: SSAValue, x: SSAValue, axis: int) -> bool:
    """True for a constant of the shape of the normalized dimensions."""
    array, sizes = constant(value), constants(dims_of(x)[axis:])
    return array is not None and sizes is not None and array.shape == tuple(sizes)


PATTERNS: Sequence[type[Recovery]] = (RecoverLayerNorm,)
