"""Which values are equal because they are computed alike, wherever in the graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from lowerdeck.dialects.core.types import element_type, is_integer
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.control_flow.graph import SAME, Kind, Node, Value

_MIRRORED = {"Greater": "Less", "GreaterEqual": "LessEqual"}
"""Comparisons, and what they are with their operands exchanged."""

_SYMMETRIC = frozenset({"Equal", "NotEqual", "LogicalAnd", "LogicalOr", "AddV2", "Mul"})
"""Operators whose two operands may be exchanged."""

_NEGATED = {"NotEqual": "Equal"}
"""What an operator is the negation of, whatever the operands; NaN is not equal to itself."""

_NEGATED_ON_INTEGERS = {"LessEqual": "Less"}
"""The same where any two numbers can be ordered, with the operands exchanged."""


class Identity(NamedTuple):
    """Values of one identity are equal; a Boolean may be the negation of what has the number."""

    number: int
    is_negated: bool = False

    @property
    def negated(self) -> Identity:
        """That of the negation of a Boolean."""
        return Identity(self.number, not self.is_negated)


class Numbering:
    """Numbers for what values are computed from, over all frames of a graph."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> Identity:
        """The identity for a key."""
        return Identity(self._numbers.setdefault(key, len(self._numbers)))

    def of_op(self, value: Value, operands: Sequence[Identity]) -> Identity:
        """The identity of what a pure operator makes of its operands."""
        node = value.node
        op_type = node.op_type
        if op_type in _MIRRORED:
            op_type, operands = _MIRRORED[op_type], operands[::-1]
        if op_type in _SYMMETRIC:
            operands = sorted(operands)
        is_negated = op_type in _NEGATED
        op_type = _NEGATED.get(op_type, op_type)
        if op_type in _NEGATED_ON_INTEGERS and is_integer(element_type(node.op.operands[0])):
            op_type, operands = _NEGATED_ON_INTEGERS[op_type], operands[::-1]
            is_negated = True
        properties = frozenset(node.op.properties.items())
        shape = node.op.results[0].type if op_type == "Const" else None
        found = self.of((op_type, value.output, properties, shape, *operands))
        return found.negated if is_negated else found


def is_pure(node: Node) -> bool:
    """True for an operator that gives equal results for equal operands."""
    op = node.op
    if node.kind is not Kind.OP or not isinstance(op, Tf1Op) or op.op_type in SAME:
        return False
    return not op.signature.is_stateful and not any(part.is_ref for part in op.signature.inputs)
