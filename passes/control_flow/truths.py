"""When the Boolean values of a frame are true, as predicates, and which values tell of an atom."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.types import StringType, element_type, static_shape
from lowerdeck.dialects.interpret.tf1 import run_op
from lowerdeck.dialects.tf1.constants import constant_array
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.graph import SAME, Node, Value
from lowerdeck.passes.control_flow.numbering import Identities, is_pure
from lowerdeck.passes.control_flow.predicates import FALSE, TRUE, Predicates
from lowerdeck.passes.machinery.order import post_order

_ATOMS = 20
"""Predicates that one may be composed of; beyond that it is one by itself."""

_ELEMENTS = 64
"""Numbers of constants that are computed to find out which branch is taken."""


class Ways(Protocol):
    """Knows how loops end."""

    def way(self, node: Node, number: int) -> str:
        """In which way a loop ended that gave a number, for messages."""
        ...


class Truths:
    """The predicates of the Boolean values of one frame."""

    def __init__(
        self,
        predicates: Predicates,
        stands_for: Callable[[Value], Value],
        identities: Identities,
        ways: Ways,
        outer: Truths | None,
    ) -> None:
        """`stands_for` is what a value is behind all that forwards it, `outer` those around."""
        self._predicates = predicates
        self._stands_for = stands_for
        self._identities = identities
        self._ways = ways
        self._outer = outer
        self._known: dict[Value, int] = {}
        self._constants: dict[Value, NDArray[Any] | None] = {}
        # By atom: the values that tell whether it holds, with their predicates.
        self._atoms: dict[int, dict[Value, int]] = {}
        # By atom: the values that can decide a core.if, with their predicates.
        self._deciders: dict[int, dict[Value, int]] = {}

    def of(self, value: Value) -> int:
        """
        The predicate that holds where a Boolean value is true.

        It is composed through logical operators, constants and what forwards values.
        """
        for current in post_order([value], lambda v: self._parts(v)[::-1], self._known):
            self._known[current] = self._composed(current, self._parts(current))
        return self._known[value]

    def add_decider(self, value: Value) -> None:
        """Remember what can decide between branches: a predicate, without its negations."""
        stands_for = self._stands_for
        value = stands_for(value)
        while _is_any_of(value.node, (*SAME, "LogicalNot")):
            value = stands_for(value.node.inputs[0])
        truth = self.of(value)
        for atom in self._predicates.atoms_of(truth):
            self._deciders.setdefault(atom, {})[value] = truth

    def that_tell(self, atom: int) -> Iterator[tuple[Value, int]]:
        """The values that say something about an atom, with their predicates."""
        yield from self._atoms.get(atom, {}).items()
        yield from self._deciders.get(atom, {}).items()

    def _parts(self, value: Value) -> list[Value]:
        """The Boolean values that a Boolean value is composed of."""
        node = value.node
        if (behind := self._stands_for(value)) != value:
            return [behind]
        if _is_any_of(node, (*SAME, "LogicalNot")):
            return node.inputs[:1]
        if node.is_a(kinds.Phi) or node.op_type in ("LogicalAnd", "LogicalOr"):
            return node.inputs
        return []

    def _composed(self, value: Value, parts: Sequence[Value]) -> int:
        truths = [self._known[part] for part in parts]
        if not truths:
            return self._atom(value)
        if value.node.is_a(kinds.Phi):
            condition, yes, no = truths
            composed = self._predicates.choice(condition, yes, no)
            is_small = len(self._predicates.atoms_of(composed)) <= _ATOMS
            return composed if is_small else self._atom(value)
        if value.node.is_a(kinds.Operator):
            match value.node.op_type:
                case "LogicalNot":
                    return self._predicates.negate(truths[0])
                case "LogicalAnd":
                    return self._predicates.all(truths)
                case "LogicalOr":
                    return self._predicates.any(truths)
                case _:
                    pass
        return truths[0]

    def _atom(self, value: Value) -> int:
        node = value.node
        if (constant := self._constant(value)) is not None and constant.size == 1:
            return TRUE if constant.item() else FALSE
        match node.kind:
            case kinds.Enter() if self._outer is not None:
                return self._telling(value, self._outer.of(node.inputs[0]))
            case kinds.Bool():
                if (constant := self._constant(node.inputs[0])) is not None:
                    # A scalar counts by its value, others by their size.
                    truth = constant.size > 0 if constant.ndim else bool(constant != 0)
                    return TRUE if truth else FALSE
                text = f"'{self._stands_for(node.inputs[0]).node.name}'"
            case kinds.Test(number):
                source = node.inputs[0].node
                if (constant := self._constant(node.inputs[0])) is not None:
                    return TRUE if constant.item() == number else FALSE
                text = f"'{source.name}' == {number}"
                if source.is_a(kinds.RaisedLoop):
                    text = self._ways.way(source, number)
            case _:
                text = f"'{node.name}'" if value.output == 0 else f"'{node.name}:{value.output}'"
        identity = self._identities.of(value)
        truth = self._predicates.atom(identity.number, text)
        if identity.is_negated:
            truth = self._predicates.negate(truth)
        return self._telling(value, truth)

    def _constant(self, value: Value) -> NDArray[Any] | None:
        """The numbers that a value always has, where they follow from a few constants."""
        for current in post_order([value], lambda v: self._sources(v)[::-1], self._constants):
            sources = [self._constants[source] for source in self._sources(current)]
            self._constants[current] = self._evaluated(current, sources)
        return self._constants[value]

    def _sources(self, value: Value) -> Sequence[Value]:
        """What a value is computed from by operators that give equal results for equal operands."""
        if (behind := self._stands_for(value)) != value:
            return [behind]
        node = value.node
        if _is_any_of(node, SAME):
            return node.inputs[:1]
        return node.inputs if is_pure(node) else []

    def _evaluated(
        self, value: Value, sources: Sequence[NDArray[Any] | None]
    ) -> NDArray[Any] | None:
        node = value.node
        if node.is_a(kinds.Enter) and self._outer is not None:
            return self._outer._constant(node.inputs[0])
        if _is_any_of(node, ("Const",)):
            return _small(node.op)
        if self._stands_for(value) != value or _is_any_of(node, SAME):
            return sources[0]
        known = [source for source in sources if source is not None]
        if not known or len(known) < len(sources) or not is_pure(node):
            return None
        try:
            results = run_op(node.op, [*known, *[None] * (len(node.op.operands) - len(known))])
        except InterpretationError:
            return None  # what is wrong with it is told where it is legalized
        found = results[value.output]
        if not isinstance(found, np.ndarray | np.generic):
            return None
        array = np.asarray(cast("Any", found))
        return array if array.size <= _ELEMENTS else None

    def _telling(self, value: Value, truth: int) -> int:
        """Remember a value that tells whether a single atom holds."""
        atoms = self._predicates.atoms_of(truth)
        if len(atoms) == 1:
            self._atoms.setdefault(atoms[0], {})[value] = truth
        return truth


def _is_any_of(node: Node, op_types: Collection[str]) -> bool:
    return node.is_a(kinds.Operator) and node.op_type in op_types


def _small(op: Operation) -> NDArray[Any] | None:
    """The numbers of a constant that has but a few."""
    shape = static_shape(op.results[0].type)
    if shape is None or element_type(op.results[0]) == StringType():
        return None
    return constant_array(op) if math.prod(shape) <= _ELEMENTS else None
