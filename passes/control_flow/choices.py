"""The meaning of Merges: choices between values, by values that tell which of them is alive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.frames import Frame
from lowerdeck.passes.control_flow.graph import Node, Value
from lowerdeck.passes.control_flow.kinds import Kind
from lowerdeck.passes.control_flow.predicates import FALSE, Predicates
from lowerdeck.passes.control_flow.truths import Truths


class Analysis(Protocol):
    """The part of a frame's analysis that choices need; `Flow` documents it."""

    predicates: Predicates
    frame: Frame
    context: int
    truths: Truths

    def alive(self, value: Value) -> int: ...

    def stands_for(self, value: Value) -> Value: ...

    def let_stand_for(self, value: Value, meant: Value) -> None: ...

    def number(self, number: int, origin: Node) -> Value: ...

    def boolean(self, holds: bool, origin: Node) -> Value: ...

    def make(
        self,
        kind: Kind,
        origin: Node,
        inputs: Sequence[Value],
        alive: int,
        result: SSAValue | None = None,
    ) -> Node: ...

    def position(self, value: Value) -> int: ...

    def place_at(self, made: Node, value: Value) -> None: ...


class Choices:
    """The choices of one frame."""

    def __init__(self, flow: Analysis) -> None:
        self._flow = flow
        self._predicates = flow.predicates
        self._phis: dict[tuple[Value, Value, Value, int], Node] = {}
        self._unmerged: dict[Node, str] = {}

    def unmerged(self, node: Node) -> str | None:
        """The reason why a Merge cannot become a choice, if it cannot."""
        return self._unmerged.get(node)

    def decided(self, predicate: int, origin: Node) -> Value | None:
        """A Boolean value that tells whether a predicate holds; None if nothing decides."""
        both, context = self._predicates.both, self._flow.context
        for atom in self._predicates.atoms_of(predicate):
            for value, truth in self._flow.truths.that_tell(atom):
                if both(context, truth) == predicate:
                    if self._predicates.implies(context, self._flow.alive(value)):
                        return value
        other = both(context, self._predicates.negate(predicate))
        yes, no = self._flow.boolean(True, origin), self._flow.boolean(False, origin)
        return self.choice(Value(origin, 0), [(predicate, yes), (other, no)], context)

    def merge(self, node: Node) -> None:
        """Let the outputs of a Merge stand for choices between its inputs."""
        seen = FALSE
        inputs = [(self._flow.alive(value), value, k) for k, value in enumerate(node.inputs)]
        for alive, _, _ in inputs:
            if not self._predicates.disjoint(seen, alive):
                when = "; ".join(self._predicates.describe(alive) for alive, _, _ in inputs)
                self._unmerged[node] = (
                    f"found inputs in {self._flow.frame} that may be alive together ({when}), "
                    "expected at most one"
                )
                return
            seen = self._predicates.either(seen, alive)
        values = [(alive, self._flow.stands_for(value)) for alive, value, _ in inputs]
        indices = [(alive, self._flow.number(k, node)) for alive, _, k in inputs]
        for index, choices in enumerate((values, indices)):
            choice = self.choice(Value(node, index), choices, seen)
            if choice is None:
                when = "; ".join(self._predicates.describe(alive) for alive, _ in choices)
                self._unmerged[node] = (
                    f"found inputs in {self._flow.frame} alive under {when}, "
                    "expected a predicate that decides between them"
                )
                return
            self._flow.let_stand_for(Value(node, index), choice)

    def choice(
        self, merge: Value, inputs: Sequence[tuple[int, Value]], context: int
    ) -> Value | None:
        """The value among `inputs` that is alive in a context; None if nothing decides."""
        both, negate = self._predicates.both, self._predicates.negate
        live = [(when, value) for alive, value in inputs if (when := both(alive, context))]
        if not live:
            return inputs[0][1]  # never used
        if len({value for _, value in live}) == 1:
            return live[0][1]
        decider = self._decider(live, context)
        if decider is None:
            return None
        truth = self._flow.truths.of(decider)
        yes = self.choice(merge, live, both(context, truth))
        no = self.choice(merge, live, both(context, negate(truth)))
        if yes is None or no is None or yes == no:
            return yes if yes == no else None
        return self._phi(merge, decider, yes, no, context)

    def _decider(self, live: Sequence[tuple[int, Value]], context: int) -> Value | None:
        """The first value that separates the inputs, or else one that does so for some of them."""
        atoms = {atom for when, _ in live for atom in self._predicates.atoms_of(when)}
        found = {
            value: truth
            for atom in atoms
            for value, truth in self._flow.truths.that_tell(atom)
            if self._may_decide(value, truth, context)
        }
        ordered = sorted(found, key=lambda value: (self._flow.position(value), value.output))
        for value in ordered:
            if all(self._is_decided(when, found[value]) for when, _ in live):
                return value
        return ordered[0] if ordered else None

    def _may_decide(self, value: Value, truth: int, context: int) -> bool:
        implies, negate = self._predicates.implies, self._predicates.negate
        if implies(context, truth) or implies(context, negate(truth)):
            return False
        return implies(context, self._flow.alive(value))

    def _is_decided(self, when: int, truth: int) -> bool:
        implies, negate = self._predicates.implies, self._predicates.negate
        return implies(when, truth) or implies(when, negate(truth))

    def _phi(self, merge: Value, decider: Value, yes: Value, no: Value, context: int) -> Value:
        key = (decider, yes, no, context)
        if key not in self._phis:
            origin, output = merge
            inputs = [decider, yes, no]
            node = self._flow.make(kinds.Phi(output), origin, inputs, context, origin.result)
            self._flow.place_at(node, merge)
            self._phis[key] = node
        return Value(self._phis[key], 0)
