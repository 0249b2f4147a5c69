"""Value numbering: which values are equal because they are computed in the same way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from lowerdeck.dialects.core.types import element_type, is_integer
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.graph import SAME, Node, Value
from lowerdeck.passes.machinery.order import post_order

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
    if not node.is_a(kinds.Operator) or not isinstance(op, Tf1Op) or op.op_type in SAME:
        return False
    return not op.signature.is_stateful and not any(part.is_ref for part in op.signature.inputs)


class Identities:
    """What the values of one frame are computed from."""

    def __init__(
        self,
        numbering: Numbering,
        stands_for: Callable[[Value], Value],
        outer: Identities | None,
    ) -> None:
        """`stands_for` is what a value is behind all that forwards it, `outer` those around."""
        self._numbering = numbering
        self._stands_for = stands_for
        self._outer = outer
        self._known: dict[Value, Identity] = {}

    def of(self, value: Value) -> Identity:
        """The number of a value: the same for values that are computed in the same way."""
        for current in post_order([value], lambda v: self._operands(v)[::-1], self._known):
            known = [self._known[operand] for operand in self._operands(current)]
            self._known[current] = self._identified(current, known)
        return self._known[value]

    def _operands(self, value: Value) -> Sequence[Value]:
        """The values that the identity of a value depends on."""
        node = value.node
        if (behind := self._stands_for(value)) != value:
            return [behind]
        if node.is_a(kinds.Operator) and node.op_type in SAME:
            return node.inputs[:1]
        is_made = node.is_a(kinds.Phi | kinds.Test | kinds.Bool)
        return node.inputs if is_made or is_pure(node) else ()

    def _identified(self, value: Value, operands: Sequence[Identity]) -> Identity:
        node = value.node
        if self._stands_for(value) != value or (node.op_type in SAME and node.is_a(kinds.Operator)):
            return operands[0]
        match node.kind:
            case kinds.Enter() if self._outer is not None:
                return self._outer.of(node.inputs[0])
            case kinds.Number(number):
                return self._numbering.of(("number", number))
            case kinds.Test(number):
                return self._numbering.of(("test", number, operands[0]))
            case kinds.Bool():
                return self._numbering.of(("bool", operands[0]))
            case kinds.Phi():
                condition, yes, no = operands
                if condition.is_negated:
                    condition, yes, no = condition.negated, no, yes
                return self._numbering.of(("choice", condition, yes, no))
            case kinds.Operator() if node.op_type == "LogicalNot":
                return operands[0].negated
            case kinds.Operator() if is_pure(node):
                return self._numbering.of_op(value, operands)
            case _:
                return self._numbering.of(value)
