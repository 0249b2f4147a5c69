"""
What is known of the nodes of one frame: when they are alive, and what their values stand for.

A frame is looked at as one iteration sees it: NextIterations lead nowhere, and loops inside are
single nodes. That is acyclic. What an Enter brings in is alive when it is outside, a loop variable
when its first value is. The loop runs where all of that is there, its `context`; with less, there
is only what a first iteration makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.types import StringType, element_type, static_shape
from lowerdeck.dialects.tf1.constants import constant_array
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.control_flow.frames import Frame, first_enter, is_loop_variable
from lowerdeck.passes.control_flow.graph import FORWARDING, SAME, Kind, Node, Value
from lowerdeck.passes.control_flow.numbering import Identity, Numbering, is_pure
from lowerdeck.passes.control_flow.predicates import FALSE, TRUE, Predicates

_ATOMS = 20
"""Predicates that one may be composed of; beyond that it is one by itself."""


class Loops(Protocol):
    """What the analysis of a frame asks about the loops in it."""

    def frame_of(self, node: Node) -> Frame:
        """The frame that has become a node."""
        ...

    def leave(self, inner: Flow) -> list[Node]:
        """What there is to do where a loop is left: the nodes that its Exits then read."""
        ...

    def way(self, node: Node, number: int) -> str:
        """In which way a loop ended that gave a number, for messages."""
        ...


class Flow:
    """The analysis of one frame."""

    def __init__(
        self,
        frame: Frame,
        predicates: Predicates,
        numbering: Numbering,
        loops: Loops,
        context: int = TRUE,
        outer: Flow | None = None,
    ) -> None:
        """
        `loops` knows the frames inside; `context` is when all that goes into the frame is alive,
        and `outer` what is known around it.
        """
        self.frame = frame
        self.predicates = predicates
        self.context = context
        self._numbering = numbering
        self._loops = loops
        self.outer = outer
        self.inner: dict[Node, Flow] = {}
        """What is known of the loops inside, by their nodes."""
        self._identities: dict[Value, Identity] = {}
        self.cyclic: list[Node] = []
        """Nodes of a cycle through a loop inside; if there are any, nothing else is known."""
        self._alive: dict[Node, int] = {}
        self._stands_for: dict[Value, Value] = {}
        self._truths: dict[Value, int] = {}
        self._tests: dict[tuple[Value, int], Node] = {}
        self._numbers: dict[int, Node] = {}
        self._phis: dict[tuple[Value, Value, Value, int], Node] = {}
        self._unmerged: dict[Node, str] = {}
        self._entered: dict[Value, Node] = {}
        # By atom: the values that tell whether it holds, with their predicates.
        self._atoms: dict[int, dict[Value, int]] = {}
        # By atom: the values that can decide a core.if, with their predicates.
        self._deciders: dict[int, dict[Value, int]] = {}
        self._order: dict[Node, int] = {}
        members = set(frame.nodes)
        order = self._sorted(members)
        for position, node in enumerate(order):
            self._order[node] = position
            self._visit(node)

    # What is asked

    def alive(self, value: Value) -> int:
        """When a value is alive, within an iteration of this frame."""
        return self.predicates.both(self._alive[value.node], self._side(value))

    def node_alive(self, node: Node) -> int:
        """When a node is alive."""
        return self._alive[node]

    def arrives(self, node: Node) -> int:
        """When all that a node takes is alive; an Enter takes it from this frame."""
        data = (self.alive(value) for value in node.inputs)
        return self.predicates.all([*data, *(self._alive[source] for source in node.controls)])

    def stands_for(self, value: Value) -> Value:
        """The value behind Switches, Merges, and all else that only forwards it."""
        return self._stands_for.get(value, value)

    def truth(self, value: Value) -> int:
        """
        The predicate that holds where a Boolean value is true.

        It is composed through logical operators, constants and what forwards values.
        """
        stack = [value]
        while stack:
            current = stack[-1]
            parts = self._parts(current)
            if current in self._truths:
                stack.pop()
            elif unknown := [part for part in parts if part not in self._truths]:
                stack.extend(unknown)
            else:
                self._truths[current] = self._composed(current, parts)
                stack.pop()
        return self._truths[value]

    def unmerged(self, node: Node) -> str | None:
        """Why a Merge cannot become a choice, if it cannot."""
        return self._unmerged.get(node)

    def number(self, number: int, origin: Node) -> Value:
        """The i32 constant of a number."""
        if number not in self._numbers:
            node = Node(Kind.NUMBER, origin.op, [], [], origin.index, number)
            self._alive[node] = self.context
            self._numbers[number] = node
        return Value(self._numbers[number], 0)

    def anything(self, like: Value) -> Value:
        """Some value of the type of another one, for where nobody looks at it."""
        node = like.node
        made = Node(Kind.ANYTHING, node.op, [], [], node.index, like.output, result=node.result)
        self._alive[made] = self.context
        return Value(made, 0)

    def identity(self, value: Value) -> Identity:
        """What is the same for values that are equal because they are computed alike."""
        stack = [value]
        while stack:
            current = stack[-1]
            operands = self._operands(current)
            if current in self._identities:
                stack.pop()
            elif unknown := [v for v in operands if v not in self._identities]:
                stack.extend(unknown)
            else:
                known = [self._identities[v] for v in operands]
                self._identities[current] = self._identified(current, known)
                stack.pop()
        return self._identities[value]

    # One sweep

    def _sorted(self, members: set[Node]) -> list[Node]:
        """The nodes of the frame, each after what it needs within an iteration."""
        done: list[Node] = []
        entered: set[Node] = set()
        finished: set[Node] = set()
        for root in sorted(members, key=lambda node: node.index):
            path = [(root, iter(self._needs(root, members)))] if root not in finished else []
            entered.update(node for node, _ in path)
            while path:
                node, rest = path[-1]
                following = next((n for n in rest if n not in finished), None)
                if following is None:
                    path.pop()
                    finished.add(node)
                    done.append(node)
                elif following in entered:
                    names = [step for step, _ in path]
                    self.cyclic = names[names.index(following) :]
                    return []
                else:
                    entered.add(following)
                    path.append((following, iter(self._needs(following, members))))
        return done

    def _needs(self, node: Node, members: set[Node]) -> list[Node]:
        if node.kind is Kind.ENTER or is_loop_variable(node):
            return []
        sources = [*(value.node for value in node.inputs), *node.controls]
        return [source for source in sources if source in members]

    def _visit(self, node: Node) -> None:
        self._alive[node] = self._when_alive(node)
        if node.kind in FORWARDING:
            self._forward(node)
        if node.kind is Kind.ENTER:
            # Each use of a value may have its own Enter.
            first = self._entered.setdefault(_origin(node.inputs[0]), node)
            self._stands_for[Value(node, 0)] = Value(first, 0)
        elif node.kind is Kind.SWITCH:
            self._add_decider(node.inputs[1])
        elif node.kind is Kind.SWITCH_N:
            for number in range(node.number - 1):
                self._add_decider(self._test(node, number))
        elif node.kind is Kind.MERGE and not is_loop_variable(node):
            self._merge(node)
        elif node.kind is Kind.LOOP:
            frame, context = self._loops.frame_of(node), self._alive[node]
            inner = Flow(frame, self.predicates, self._numbering, self._loops, context, self)
            self.inner[node] = inner
            for made in self._loops.leave(inner):
                self._order[made] = self._order[node]
                self._visit(made)

    def _when_alive(self, node: Node) -> int:
        if node.kind is Kind.ENTER and self.outer is not None:
            return self.outer.arrives(node)
        if is_loop_variable(node) and self.outer is not None:
            return self.outer.arrives(first_enter(node))
        if node.kind is Kind.MERGE:  # a dead control input does not kill a Merge
            return self.predicates.any(self.alive(value) for value in node.inputs)
        if node.op_type == "ControlTrigger":
            return self.predicates.either(self.context, self._any_control(node))
        return self.arrives(node)

    def _any_control(self, node: Node) -> int:
        return self.predicates.any(self._alive[source] for source in node.controls)

    def _side(self, value: Value) -> int:
        """When a Switch sends its input to this output."""
        node = value.node
        if node.kind is Kind.SWITCH:
            truth = self.truth(node.inputs[1])
            return truth if value.output == 1 else self.predicates.negate(truth)
        if node.kind is not Kind.SWITCH_N:
            return TRUE
        tests = [self.truth(self._test(node, k)) for k in range(node.number - 1)]
        before = self.predicates.negate(self.predicates.any(tests[: value.output]))
        if value.output == len(tests):  # also takes what is out of range
            return before
        return self.predicates.both(before, tests[value.output])

    def _test(self, switch: Node, number: int) -> Value:
        index = self.stands_for(switch.inputs[1])
        if (index, number) not in self._tests:
            node = Node(Kind.TEST, switch.op, [switch.inputs[1]], [], switch.index, number)
            self._tests[index, number] = node
            self._alive[node] = self.alive(switch.inputs[1])
            self._order[node] = self._order[switch]
        return Value(self._tests[index, number], 0)

    def _forward(self, node: Node) -> None:
        meant = self.stands_for(node.inputs[0])
        outputs = {Kind.SWITCH: 2, Kind.SWITCH_N: node.number}.get(node.kind, 1)
        for index in range(outputs):
            self._stands_for[Value(node, index)] = meant

    # Predicates

    def _parts(self, value: Value) -> list[Value]:
        """The Boolean values that a Boolean value is composed of."""
        node = value.node
        if (behind := self.stands_for(value)) != value:
            return [behind]
        if node.kind is Kind.OP and node.op_type in (*SAME, "LogicalNot"):
            return node.inputs[:1]
        if node.kind is Kind.PHI or node.op_type in ("LogicalAnd", "LogicalOr"):
            return node.inputs
        return []

    def _composed(self, value: Value, parts: Sequence[Value]) -> int:
        truths = [self._truths[part] for part in parts]
        if not truths:
            return self._atom(value)
        if value.node.kind is Kind.PHI:
            condition, yes, no = truths
            composed = self.predicates.choice(condition, yes, no)
            is_small = len(self.predicates.atoms_of(composed)) <= _ATOMS
            return composed if is_small else self._atom(value)
        if value.node.kind is Kind.OP:
            match value.node.op_type:
                case "LogicalNot":
                    return self.predicates.negate(truths[0])
                case "LogicalAnd":
                    return self.predicates.all(truths)
                case "LogicalOr":
                    return self.predicates.any(truths)
                case _:
                    pass
        return truths[0]

    def _atom(self, value: Value) -> int:
        node = value.node
        if (constant := _constant(node)) is not None:
            return TRUE if constant else FALSE
        if node.kind is Kind.ENTER and self.outer is not None:
            return self._known(value, self.outer.truth(node.inputs[0]))
        if node.kind is Kind.BOOL:
            source = self.stands_for(node.inputs[0]).node
            if (truth := _truth_of_constant(source)) is not None:
                return TRUE if truth else FALSE
            text = f"'{source.name}'"
        elif node.kind is Kind.TEST:
            source = node.inputs[0].node
            if (constant := _constant(source)) is not None:
                return TRUE if constant == node.number else FALSE
            is_way = source.kind is Kind.LOOP
            text = f"'{source.name}' == {node.number}"
            text = self._loops.way(source, node.number) if is_way else text
        else:
            text = f"'{node.name}'" if value.output == 0 else f"'{node.name}:{value.output}'"
        identity = self.identity(value)
        truth = self.predicates.atom(identity.number, text)
        if identity.is_negated:
            truth = self.predicates.negate(truth)
        return self._known(value, truth)

    def _known(self, value: Value, truth: int) -> int:
        """Remember a value that tells whether a single atom holds."""
        atoms = self.predicates.atoms_of(truth)
        if len(atoms) == 1:
            self._atoms.setdefault(atoms[0], {})[value] = truth
        return truth

    # Values that are computed alike

    def _operands(self, value: Value) -> Sequence[Value]:
        """The values that the identity of a value depends on."""
        node = value.node
        if (behind := self.stands_for(value)) != value:
            return [behind]
        if node.kind is Kind.OP and node.op_type in SAME:
            return node.inputs[:1]
        is_made = node.kind in (Kind.PHI, Kind.TEST, Kind.BOOL)
        return node.inputs if is_made or is_pure(node) else ()

    def _identified(self, value: Value, operands: Sequence[Identity]) -> Identity:
        node = value.node
        if self.stands_for(value) != value or (node.op_type in SAME and node.kind is Kind.OP):
            return operands[0]
        match node.kind:
            case Kind.ENTER if self.outer is not None:
                return self.outer.identity(node.inputs[0])
            case Kind.NUMBER:
                return self._numbering.of(("number", node.number))
            case Kind.TEST:
                return self._numbering.of(("test", node.number, operands[0]))
            case Kind.BOOL:
                return self._numbering.of(("bool", operands[0]))
            case Kind.PHI:
                condition, yes, no = operands
                if condition.is_negated:
                    condition, yes, no = condition.negated, no, yes
                return self._numbering.of(("choice", condition, yes, no))
            case Kind.OP if node.op_type == "LogicalNot":
                return operands[0].negated
            case Kind.OP if is_pure(node):
                return self._numbering.of_op(value, operands)
            case _:
                return self._numbering.of(value)

    def decided(self, predicate: int, origin: Node) -> Value | None:
        """A Boolean value that tells whether a predicate holds; None if nothing decides."""
        both, context = self.predicates.both, self.context
        for atom in self.predicates.atoms_of(predicate):
            for value, truth in self._that_tell(atom):
                if both(context, truth) == predicate:
                    if self.predicates.implies(context, self.alive(value)):
                        return value
        other = both(context, self.predicates.negate(predicate))
        sides = [(predicate, self._constant(True, origin)), (other, self._constant(False, origin))]
        return self.choice(Value(origin, 0), sides, context)

    def _constant(self, truth: bool, origin: Node) -> Value:
        node = Node(Kind.TRUTH, origin.op, [], [], origin.index, truth)
        self._alive[node] = self.context
        return Value(node, 0)

    # Merges

    def _add_decider(self, value: Value) -> None:
        """Remember what can decide between branches: a predicate, without its negations."""
        value = self.stands_for(value)
        while value.node.kind is Kind.OP and value.node.op_type in (*SAME, "LogicalNot"):
            value = self.stands_for(value.node.inputs[0])
        truth = self.truth(value)
        for atom in self.predicates.atoms_of(truth):
            self._deciders.setdefault(atom, {})[value] = truth

    def _merge(self, node: Node) -> None:
        """Let the outputs of a Merge stand for choices between its inputs."""
        seen = FALSE
        inputs = [(self.alive(value), value, k) for k, value in enumerate(node.inputs)]
        for alive, _, _ in inputs:
            if not self.predicates.disjoint(seen, alive):
                when = "; ".join(self.predicates.describe(alive) for alive, _, _ in inputs)
                self._unmerged[node] = (
                    f"found inputs in {self.frame} that may be alive together ({when}), "
                    "expected at most one"
                )
                return
            seen = self.predicates.either(seen, alive)
        values = [(alive, self.stands_for(value)) for alive, value, _ in inputs]
        indices = [(alive, self.number(k, node)) for alive, _, k in inputs]
        for index, choices in enumerate((values, indices)):
            choice = self.choice(Value(node, index), choices, seen)
            if choice is None:
                when = "; ".join(self.predicates.describe(alive) for alive, _ in choices)
                self._unmerged[node] = (
                    f"found inputs in {self.frame} alive under {when}, "
                    "expected a predicate that decides between them"
                )
                return
            self._stands_for[Value(node, index)] = choice

    def choice(
        self, merge: Value, inputs: Sequence[tuple[int, Value]], context: int
    ) -> Value | None:
        """The value among `inputs` that is alive in a context; None if nothing decides."""
        both, negate = self.predicates.both, self.predicates.negate
        live = [(when, value) for alive, value in inputs if (when := both(alive, context))]
        if not live:
            return inputs[0][1]  # never used
        if len({value for _, value in live}) == 1:
            return live[0][1]
        decider = self._decider(live, context)
        if decider is None:
            return None
        truth = self.truth(decider)
        yes = self.choice(merge, live, both(context, truth))
        no = self.choice(merge, live, both(context, negate(truth)))
        if yes is None or no is None or yes == no:
            return yes if yes == no else None
        return self._phi(merge, decider, yes, no, context)

    def _decider(self, live: Sequence[tuple[int, Value]], context: int) -> Value | None:
        """The first value that separates the inputs, or else one that does so for some of them."""
        atoms = {atom for when, _ in live for atom in self.predicates.atoms_of(when)}
        found = {
            value: truth
            for atom in atoms
            for value, truth in self._that_tell(atom)
            if self._may_decide(value, truth, context)
        }
        ordered = sorted(found, key=lambda value: (self._position(value), value.output))
        for value in ordered:
            if all(self._is_decided(when, found[value]) for when, _ in live):
                return value
        return ordered[0] if ordered else None

    def _that_tell(self, atom: int) -> Iterator[tuple[Value, int]]:
        """The values that say something about an atom, with their predicates."""
        yield from self._atoms.get(atom, {}).items()
        yield from self._deciders.get(atom, {}).items()

    def _position(self, value: Value) -> int:
        return self._order.get(value.node, len(self._order))

    def _may_decide(self, value: Value, truth: int, context: int) -> bool:
        implies, negate = self.predicates.implies, self.predicates.negate
        if implies(context, truth) or implies(context, negate(truth)):
            return False
        return implies(context, self.alive(value))

    def _is_decided(self, when: int, truth: int) -> bool:
        implies, negate = self.predicates.implies, self.predicates.negate
        return implies(when, truth) or implies(when, negate(truth))

    def _phi(self, merge: Value, decider: Value, yes: Value, no: Value, context: int) -> Value:
        key = (decider, yes, no, context)
        if key not in self._phis:
            origin, output = merge
            node = Node(Kind.PHI, origin.op, [decider, yes, no], [], origin.index, output)
            node.result = origin.result
            self._phis[key] = node
            self._alive[node] = context
            self._order[node] = self._position(merge)
        return Value(self._phis[key], 0)


def _origin(value: Value) -> Value:
    """Where a value comes from, through all that forwards it, into frames, too."""
    while value.node.kind in (*FORWARDING, Kind.ENTER) or value.node.op_type in SAME:
        value = value.node.inputs[0]
    return value


def _constant(node: Node) -> int | None:
    """The value of a Boolean or integer constant of one element."""
    if not isinstance(node.op, Tf1Op) or node.kind is not Kind.OP or node.op_type != "Const":
        return None
    value = node.op.attr("value")
    if isinstance(value, BlobAttr):
        return int.from_bytes(value.data.data, "little", signed=True)
    if isinstance(value, DenseIntOrFPElementsAttr):
        return int(value.get_values()[0])
    return None


def _truth_of_constant(node: Node) -> bool | None:
    """Whether a constant of numbers counts as true: a scalar by its value, others by their size."""
    if node.op_type != "Const" or node.kind is not Kind.OP:
        return None
    shape = static_shape(node.op.results[0].type)
    if shape is None or element_type(node.op.results[0]) == StringType():
        return None
    array = constant_array(node.op)
    return bool(array != 0) if not shape else array.size > 0
