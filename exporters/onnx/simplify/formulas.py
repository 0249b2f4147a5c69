"""Products, sums and quotients with numbers, however an exporter has arranged them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isclose

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.exporters.onnx.simplify.known import constant, made_by, only_user, scalar

_TOLERANCE = 1e-6
"""How far a number in f32 may be from the one that is meant, relatively."""


def is_close(value: float | None, expected: float, tolerance: float = _TOLERANCE) -> bool:
    """True if a number is the one that is meant, as f32 has it."""
    return value is not None and isclose(value, expected, rel_tol=tolerance)


@dataclass
class Product:
    """A number times values; each of the ops but the first is used by the next only."""

    number: float = 1.0
    factors: list[SSAValue] = field(default_factory=list[SSAValue])
    ops: list[Operation] = field(default_factory=list[Operation])


def product_of(root: OnnxOp) -> Product:
    """What an op for which `is_product` is true, with those before it, multiplies."""
    found = Product()
    pending: list[tuple[SSAValue, OnnxOp | None]] = [(root.results[0], root)]
    while pending:
        value, op = pending.pop()
        number = None if op is not None else number_of(value)
        if number is not None:
            found.number *= number
        elif op is None:
            found.factors.append(value)
        elif op.op_type == "Mul":
            found.ops.append(op)
            pending += [(v, _inner(v, op)) for v in reversed(op.operands)]
        else:
            found.ops.append(op)
            divisor = scalar(op.operands[1])
            assert divisor
            found.number /= divisor
            pending.append((op.operands[0], _inner(op.operands[0], op)))
    return found


def number_of(value: SSAValue) -> float | None:
    """A constant that has one element only: it changes no shape but that of a scalar."""
    array = constant(value)
    return scalar(value) if array is not None and array.size == 1 and array.ndim <= 1 else None


def _inner(value: SSAValue, user: OnnxOp) -> OnnxOp | None:
    op = made_by(value, "Mul", "Div")
    is_inner = op is not None and only_user(value) is user and is_product(op)
    return op if is_inner else None


def is_product(op: OnnxOp) -> bool:
    """True for a Mul, and for a Div by a number that is not zero."""
    return op.op_type == "Mul" or (op.op_type == "Div" and bool(number_of(op.operands[1])))


def plus_number(value: SSAValue) -> tuple[OnnxOp, SSAValue, float] | None:
    """For x + number: the op, x and the number."""
    op = made_by(value, "Add")
    if op is None:
        return None
    for x, other in (op.operands, tuple(op.operands)[::-1]):
        number = number_of(other)
        if number is not None:
            return op, x, number
    return None


def scaled(value: SSAValue) -> tuple[list[Operation], SSAValue, float]:
    """A value as a number times another one: the ops, the value and the number."""
    op = made_by(value, "Mul", "Div")
    if op is None or not is_product(op):
        return [], value, 1.0
    product = product_of(op)
    if len(product.factors) != 1:
        return [], value, 1.0
    return product.ops, product.factors[0], product.number


def used_inside(ops: Iterable[Operation]) -> bool:
    """True if only the ops themselves use the results of all but the first of them."""
    first, *others = ops
    inside = {first, *others}
    return all(
        use.operation in inside for op in others for result in op.results for use in result.uses
    )
