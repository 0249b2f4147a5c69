"""Polynomials in one value, as ops compute them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.passes.machinery.values import number

_MOST_OPS = 16
"""The maximum number of ops in a polynomial."""


class Polynomial:
    """Recognizes polynomials in one value, up to degree three: coefficients by rising degree."""

    def __init__(self, x: SSAValue) -> None:
        self._x = x
        self.consumed: list[Operation] = []

    def coefficients(self, value: SSAValue) -> list[float] | None:
        """The coefficients of `value`, or None if it is not such a polynomial."""
        if value is self._x:
            return [0.0, 1.0, 0.0, 0.0]
        if (constant := number(value)) is not None:
            return [constant, 0.0, 0.0, 0.0]
        op = value.owner
        if not isinstance(op, e.BinaryOp | e.NegOp) or len(self.consumed) >= _MOST_OPS:
            return None
        self.consumed.append(op)
        if isinstance(op, e.NegOp):
            inner = self.coefficients(op.input)
            return inner and [-each for each in inner]
        left = self.coefficients(op.lhs)
        right = self.coefficients(op.rhs) if left is not None else None
        if left is None or right is None:
            return None
        return _combined(op, left, right)


def _combined(op: e.BinaryOp, left: Sequence[float], right: Sequence[float]) -> list[float] | None:
    match op:
        case e.AddOp():
            return [a + b for a, b in zip(left, right, strict=True)]
        case e.SubOp():
            return [a - b for a, b in zip(left, right, strict=True)]
        case e.MulOp():
            return _times(left, right)
        case e.DivOp() if right[0] != 0 and not any(right[1:]):
            return [a / right[0] for a in left]
        case e.PowOp() if right[0] in (2.0, 3.0) and not any(right[1:]):
            square = _times(left, left)
            return square if square is None or right[0] == 2.0 else _times(square, left)
        case _:
            return None


def _times(left: Sequence[float], right: Sequence[float]) -> list[float] | None:
    result = [0.0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] += a * b
    return None if any(result[len(left) :]) else result[: len(left)]
