"""
The facts about the nodes of one frame: when they are alive, and what their values stand for.

The analysis covers one iteration: NextIterations lead nowhere, and inner loops are single nodes,
so the graph is acyclic. The value of an Enter is alive when it is alive outside, a loop variable
when its initial value is. The loop runs when all of these are alive, its `context`; otherwise only
the nodes of a first iteration that do not need the missing values run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.choices import Choices
from lowerdeck.passes.control_flow.frames import Frame, first_enter, is_loop_variable
from lowerdeck.passes.control_flow.graph import SAME, Node, Value
from lowerdeck.passes.control_flow.graph import sources as sources_of
from lowerdeck.passes.control_flow.kinds import FORWARDING, Kind
from lowerdeck.passes.control_flow.numbering import Identities, Numbering
from lowerdeck.passes.control_flow.predicates import TRUE, Predicates
from lowerdeck.passes.control_flow.truths import Truths, Ways
from lowerdeck.passes.machinery.order import post_order


class Loops(Ways, Protocol):
    """The queries of a frame's analysis about its inner loops."""

    def frame_of(self, node: Node) -> Frame:
        """The frame that has been collapsed to a node."""
        ...

    def leave(self, inner: Flow) -> list[Node]:
        """What there is to do where a loop is left: the nodes that its Exits then read."""
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
        `loops` knows the inner frames; `context` is when all values that enter the frame are alive,
        and `outer` the analysis of the enclosing frame.
        """
        self.frame = frame
        self.predicates = predicates
        self.context = context
        self._numbering = numbering
        self._loops = loops
        self.identities = Identities(
            numbering, self.stands_for, None if outer is None else outer.identities
        )
        """The operands that values are computed from."""
        self.truths = Truths(
            predicates,
            self.stands_for,
            self.identities,
            loops,
            None if outer is None else outer.truths,
        )
        """When Boolean values are true."""
        self.choices = Choices(self)
        """The meaning of Merges."""
        self.outer = outer
        self.inner: dict[Node, Flow] = {}
        """The analyses of inner loops, by their nodes."""
        self.cyclic: list[Node] = []
        """Nodes of a cycle through an inner loop; if there are any, nothing else is known."""
        self._alive: dict[Node, int] = {}
        self._stands_for: dict[Value, Value] = {}
        self._tests: dict[tuple[Value, int], Node] = {}
        self._numbers: dict[int, Node] = {}
        self._entered: dict[Value, Node] = {}
        self._order: dict[Node, int] = {}
        members = set(frame.nodes)
        order = self._sorted(members)
        for position, node in enumerate(order):
            self._order[node] = position
            self._visit(node)

    # Queries

    def alive(self, value: Value) -> int:
        """When a value is alive, within an iteration of this frame."""
        return self.predicates.both(self._alive[value.node], self._side(value))

    def node_alive(self, node: Node) -> int:
        """When a node is alive."""
        return self._alive[node]

    def arrives(self, node: Node) -> int:
        """When all operands of a node are alive; those of an Enter are from this frame."""
        data = (self.alive(value) for value in node.inputs)
        return self.predicates.all([*data, *(self._alive[source] for source in node.controls)])

    def stands_for(self, value: Value) -> Value:
        """The value behind Switches, Merges, and other nodes that only forward it."""
        return self._stands_for.get(value, value)

    # New nodes

    def make(
        self,
        kind: Kind,
        origin: Node,
        inputs: Sequence[Value],
        alive: int,
        result: SSAValue | None = None,
    ) -> Node:
        """A node that the graph does not contain, created for one that it contains."""
        node = Node(kind, origin.op, list(inputs), [], origin.index, result)
        self._alive[node] = alive
        return node

    def number(self, number: int, origin: Node) -> Value:
        """The i32 constant of a number."""
        if number not in self._numbers:
            self._numbers[number] = self.make(kinds.Number(number), origin, [], self.context)
        return Value(self._numbers[number], 0)

    def boolean(self, holds: bool, origin: Node) -> Value:
        """A Boolean constant."""
        return Value(self.make(kinds.Truth(holds), origin, [], self.context), 0)

    def anything(self, like: Value) -> Value:
        """Any value of the type of another one, where it is not used."""
        node = like.node
        made = self.make(kinds.Anything(like.output), node, [], self.context, node.result)
        return Value(made, 0)

    def let_stand_for(self, value: Value, meant: Value) -> None:
        """State what a value stands for."""
        self._stands_for[value] = meant

    def position(self, value: Value) -> int:
        """The place of a value in the sweep; what is made later comes last."""
        return self._order.get(value.node, len(self._order))

    def place_at(self, made: Node, value: Value) -> None:
        """Let a node that was made have the place of a value in the sweep."""
        self._order[made] = self.position(value)

    # One sweep

    def _sorted(self, members: set[Node]) -> list[Node]:
        """The nodes of the frame, each after what it needs within an iteration."""
        roots = sorted(members, key=lambda node: node.index)
        order = post_order(roots, lambda node: self._needs(node, members), cycle=self.cyclic)
        return [] if self.cyclic else order

    def _needs(self, node: Node, members: set[Node]) -> list[Node]:
        if node.is_a(kinds.Enter) or is_loop_variable(node):
            return []
        return [source for source in sources_of(node) if source in members]

    def _visit(self, node: Node) -> None:
        self._alive[node] = self._when_alive(node)
        if node.is_a(FORWARDING):
            self._forward(node)
        match node.kind:
            case kinds.Enter():
                # Each use of a value may have its own Enter.
                first = self._entered.setdefault(_origin(node.inputs[0]), node)
                self._stands_for[Value(node, 0)] = Value(first, 0)
            case kinds.Switch():
                self.truths.add_decider(node.inputs[1])
            case kinds.SwitchN(outputs):
                for number in range(outputs - 1):
                    self.truths.add_decider(self._test(node, number))
            case kinds.Merge() if not is_loop_variable(node):
                self.choices.merge(node)
            case kinds.RaisedLoop():
                self._look_inside(node)
            case _:
                pass

    def _look_inside(self, node: Node) -> None:
        """Analyze a loop, and what it makes to tell how it ended."""
        frame, context = self._loops.frame_of(node), self._alive[node]
        inner = Flow(frame, self.predicates, self._numbering, self._loops, context, self)
        self.inner[node] = inner
        for made in self._loops.leave(inner):
            self._order[made] = self._order[node]
            self._visit(made)

    def _when_alive(self, node: Node) -> int:
        if node.is_a(kinds.Enter) and self.outer is not None:
            return self.outer.arrives(node)
        if is_loop_variable(node) and self.outer is not None:
            return self.outer.arrives(first_enter(node))
        if node.is_a(kinds.Merge):  # a dead control input does not kill a Merge
            return self.predicates.any(self.alive(value) for value in node.inputs)
        if node.op_type == "ControlTrigger":
            return self.predicates.either(self.context, self._any_control(node))
        return self.arrives(node)

    def _any_control(self, node: Node) -> int:
        return self.predicates.any(self._alive[source] for source in node.controls)

    def _side(self, value: Value) -> int:
        """When a Switch sends its input to this output."""
        node, kind = value.node, value.node.kind
        if isinstance(kind, kinds.Switch):
            truth = self.truths.of(node.inputs[1])
            return truth if value.output == 1 else self.predicates.negate(truth)
        if not isinstance(kind, kinds.SwitchN):
            return TRUE
        tests = [self.truths.of(self._test(node, k)) for k in range(kind.outputs - 1)]
        before = self.predicates.negate(self.predicates.any(tests[: value.output]))
        if value.output == len(tests):  # also takes what is out of range
            return before
        return self.predicates.both(before, tests[value.output])

    def _test(self, switch: Node, number: int) -> Value:
        index = self.stands_for(switch.inputs[1])
        if (index, number) not in self._tests:
            source = switch.inputs[1]
            node = self.make(kinds.Test(number), switch, [source], self.alive(source))
            self._tests[index, number] = node
            self._order[node] = self._order[switch]
        return Value(self._tests[index, number], 0)

    def _forward(self, node: Node) -> None:
        meant = self.stands_for(node.inputs[0])
        for index in range(_outputs(node.kind)):
            self._stands_for[Value(node, index)] = meant


def _outputs(kind: Kind) -> int:
    """How many outputs a node that forwards its input has."""
    if isinstance(kind, kinds.SwitchN):
        return kind.outputs
    return 2 if isinstance(kind, kinds.Switch) else 1


def _origin(value: Value) -> Value:
    """Where a value comes from, through all that forwards it, into frames, too."""
    while value.node.is_a((*FORWARDING, kinds.Enter)) or value.node.op_type in SAME:
        value = value.node.inputs[0]
    return value
