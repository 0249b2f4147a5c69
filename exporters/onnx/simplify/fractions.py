"""Formulas in a value x and one function of it, as quotients of polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.exporters.onnx.simplify.formulas import is_close, number_of
from lowerdeck.exporters.onnx.simplify.known import made_by

Polynomial: TypeAlias = Mapping[tuple[int, int], float]
"""Coefficients of x^i f^j."""
Fraction: TypeAlias = tuple[Polynomial, Polynomial]

_ONE: Polynomial = {(0, 0): 1.0}
_MOST_OPS = 24
_MOST_TERMS = 12
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Neg", "Pow")


@dataclass
class Formula:
    """What ops compute of x and of f, which is a value like x."""

    x: SSAValue
    f: SSAValue | None = None
    ops: list[Operation] = field(default_factory=list[Operation])
    _known: dict[SSAValue, Fraction | None] = field(
        default_factory=dict[SSAValue, "Fraction | None"]
    )

    def fraction(self, value: SSAValue) -> Fraction | None:
        """Numerator and denominator of a value; None if it has another form."""
        if value not in self._known:
            self._known[value] = self._fraction(value)
        return self._known[value]

    def _fraction(self, value: SSAValue) -> Fraction | None:
        if value is self.x:
            return {(1, 0): 1.0}, _ONE
        if value is self.f:
            return {(0, 1): 1.0}, _ONE
        if (number := number_of(value)) is not None:
            return {(0, 0): number}, _ONE
        op = made_by(value, *ARITHMETIC)
        if op is None or len(self.ops) >= _MOST_OPS:
            return None
        self.ops.append(op)
        parts = [self.fraction(operand) for operand in op.operands]
        known = [part for part in parts if part is not None]
        return _combined(op, known) if len(known) == len(parts) else None


def _combined(op: OnnxOp, parts: list[Fraction]) -> Fraction | None:
    numerator, denominator = parts[0]
    if op.op_type == "Neg":
        return _times(numerator, {(0, 0): -1.0}), denominator
    other, divisor = parts[1]
    match op.op_type:
        case "Mul":
            result = _times(numerator, other), _times(denominator, divisor)
        case "Div":
            result = _times(numerator, divisor), _times(denominator, other)
        case "Pow":
            power = other.get((0, 0))
            if len(other) != 1 or divisor != _ONE or power not in (2.0, 3.0):
                return None
            result = parts[0]
            for _ in range(int(power) - 1):
                result = _times(result[0], numerator), _times(result[1], denominator)
        case _:
            sign = -1.0 if op.op_type == "Sub" else 1.0
            right = _times(_times(other, {(0, 0): sign}), denominator)
            left = _times(numerator, divisor)
            total = {key: left.get(key, 0.0) + right.get(key, 0.0) for key in {**left, **right}}
            result = total, _times(denominator, divisor)
    return result if max(map(len, result)) <= _MOST_TERMS else None


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    result: dict[tuple[int, int], float] = {}
    for (i, j), a in left.items():
        for (k, m), b in right.items():
            result[i + k, j + m] = result.get((i + k, j + m), 0.0) + a * b
    return result


def is_fraction(found: Fraction | None, numerator: Polynomial, denominator: Polynomial) -> bool:
    """True if a fraction is the expected one, with the roundings of numbers in f32."""
    if found is None:
        return False
    left, right = _times(found[0], denominator), _times(numerator, found[1])
    keys = {**left, **right}
    is_zero = not any(right.values())
    return not is_zero and all(is_close(left.get(key, 0.0), right.get(key, 0.0)) for key in keys)
