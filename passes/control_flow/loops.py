"""
Loops: a frame becomes one node of the frame around it.

A loop variable is a Merge of an Enter and a NextIteration. The condition is what LoopCond needs,
with the Merges as arguments; the body is what the NextIterations need; what is between the end of
the loop and the Exits runs once, after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import Frame, is_loop_variable
from lowerdeck.passes.control_flow.graph import Kind, Node, Problem, Value
from lowerdeck.passes.control_flow.predicates import FALSE, TRUE, Predicates
from lowerdeck.passes.control_flow.regions import Plan, is_leaf, needs_of, plan, unmerged


@dataclass(frozen=True)
class Loop:
    """How to run a loop. Its node's inputs are `carried`'s initial values, then `captured`."""

    carried: tuple[Value, ...]
    """The values that change from iteration to iteration, as the plans call them."""
    captured: tuple[Value, ...]
    """The values that do not, as the plans call them."""
    condition: Plan
    body: Plan
    """Gives the next values of `carried`."""
    after: Plan
    """Gives the outputs of the loop, from the final values."""
    runs: bool
    """False if the condition is never true."""


@dataclass(eq=False)
class _Variables:
    """The loop variables of a frame, by the outputs of their Merges."""

    first: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The initial value, in the frame around the loop."""
    following: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The value of the next iteration."""


@dataclass(frozen=True)
class _Ring:
    """What a loop was made of."""

    frame: Frame
    condition: Node
    ends: tuple[Value, ...]
    """What the Exits took."""
    guards: dict[Node, Node]
    """For each Enter a node outside that is alive when the Enter is."""


class LoopRaiser:
    """Raises the frames of a graph, one after another from the inside."""

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self.loops: dict[Node, Loop] = {}
        """The loops made so far, by their nodes."""
        self._rings: dict[Node, _Ring] = {}

    @property
    def plans(self) -> list[Plan]:
        """All that is computed for loops."""
        loops = self.loops.values()
        return [part for loop in loops for part in (loop.condition, loop.body, loop.after)]

    def flow(self, frame: Frame) -> tuple[Flow, list[Problem]]:
        """The analysis of a frame whose inner frames are raised, and what is wrong with it."""
        flow = Flow(frame, self._predicates)
        if flow.cyclic:
            return flow, [_in_cycle(node) for node in flow.cyclic]
        loops = [node for node in frame.nodes if node.kind is Kind.LOOP]
        return flow, [problem for node in loops for problem in self._check_enters(flow, node)]

    def raise_frame(self, frame: Frame, parent: Frame) -> list[Problem]:
        """Make a frame a node of its parent; what is wrong with it if that cannot be done."""
        if problems := _check_form(frame):
            return problems
        flow, problems = self.flow(frame)
        if problems:
            return problems
        condition = next(node for node in frame.nodes if node.kind is Kind.COND)
        exits = [node for node in frame.nodes if node.kind is Kind.EXIT]
        return self._check_flow(flow, condition, exits) or self._build(
            flow, condition, exits, parent
        )

    # Building

    def _build(
        self, flow: Flow, condition: Node, exits: Sequence[Node], parent: Frame
    ) -> list[Problem]:
        going = flow.truth(condition.inputs[0])
        variables = _variables(flow, parent)
        ends = tuple(node.inputs[0] for node in exits)
        carried = tuple(
            value
            for value in _needed(flow, [condition.inputs[0], *ends], variables)
            if variables.following[value] != value
        )
        following = [variables.following[value] for value in carried]
        tasks = (
            ([condition.inputs[0]], TRUE),
            (following, going),
            (ends, self._predicates.negate(going)),
        )
        if problems := [p for values, _ in tasks for p in unmerged(flow, values)]:
            return problems
        plans = [plan(flow, values, context) for values, context in tasks]
        leaves = dict.fromkeys(leaf for made in plans for leaf in made.leaves)
        captured = tuple(
            leaf for leaf in leaves if leaf not in carried and leaf.node.kind is not Kind.ARGUMENT
        )
        loop = Loop(carried, captured, *plans, runs=going != FALSE)
        first = [variables.first.get(v) or v.node.inputs[0] for v in (*carried, *captured)]
        guards = {enter: _guard(enter) for enter in flow.frame.nodes if enter.kind is Kind.ENTER}
        node = Node(Kind.LOOP, condition.op, first, list(guards.values()), condition.index)
        self.loops[node] = loop
        self._rings[node] = _Ring(flow.frame, condition, ends, guards)
        parent.nodes += [*guards.values(), node, *exits]
        for position, leaving in enumerate(exits):
            leaving.kind = Kind.FORWARD
            leaving.inputs = [Value(node, position)]
        return []

    # Checks

    def _check_flow(self, flow: Flow, condition: Node, exits: Sequence[Node]) -> list[Problem]:
        """The loop has a condition in every iteration, and goes on and ends as it says."""
        going = flow.truth(condition.inputs[0])
        ends = self._predicates.negate(going)
        problems: list[Problem] = []

        def expect(node: Node, alive: int, expected: int, when: str) -> None:
            if alive != expected:
                found = self._predicates.describe(alive)
                text = f"found it alive in {flow.frame} {_if(found)}, expected {when}"
                wanted = "" if expected == TRUE else f", {_if(self._predicates.describe(expected))}"
                problems.append(Problem(node, text + wanted))

        expect(condition, flow.node_alive(condition), TRUE, "a condition in every iteration")
        if going == TRUE:
            text = (
                f"found a condition of {flow.frame} that is always true, expected the loop to end"
            )
            return [*problems, Problem(condition, text)]
        for node in flow.frame.nodes:
            if is_loop_variable(node):
                following = node.inputs[_ends(node)[1]]
                when = "it whenever the loop goes on, and only then"
                expect(following.node, flow.alive(following), going, when)
        for node in exits:
            when = "it when the loop ends, and only then"
            expect(node, flow.node_alive(node), ends, when)
        return problems

    def _check_enters(self, flow: Flow, node: Node) -> list[Problem]:
        """What goes into a loop is alive together, or all that comes out needs all of it."""
        ring = self._rings[node]
        alive = {enter: flow.node_alive(guard) for enter, guard in ring.guards.items()}
        together = flow.node_alive(node)
        if set(alive.values()) == {together}:
            return []
        for end in ring.ends:
            needed = _enters_of([end.node, ring.condition])
            if self._predicates.all(alive[enter] for enter in needed) != together:
                expected = f"expected one predicate for all Enters of {ring.frame}"
                return [
                    Problem(
                        enter, f"found it alive {_if(self._predicates.describe(when))}, {expected}"
                    )
                    for enter, when in alive.items()
                ]
        return []


def _check_form(frame: Frame) -> list[Problem]:
    """A frame has one LoopCond, and its loop variables one Enter and one NextIteration."""
    conditions = [node for node in frame.nodes if node.kind is Kind.COND]
    borders = [node for node in frame.nodes if node.kind in (Kind.ENTER, Kind.EXIT)]
    count = f"found {len(conditions)} LoopConds in {frame}, expected one"
    problems = [Problem(node, count) for node in conditions or borders if len(conditions) != 1]
    indexed = _indexed(frame)
    for node in filter(is_loop_variable, frame.nodes):
        kinds = {value.node.kind for value in node.inputs}
        if len(node.inputs) != 2 or kinds != {Kind.ENTER, Kind.NEXT}:
            found = ", ".join(value.node.op_type for value in node.inputs)
            text = f"found inputs from {found} in {frame}, expected Enters and NextIterations"
            problems.append(Problem(node, text))
        elif node in indexed and node.number:
            text = f"found the index of {node.number} inputs in {frame} in use, expected 2 inputs"
            problems.append(Problem(node, text))
    return problems


def _in_cycle(node: Node) -> Problem:
    text = "found it in a cycle through a whole loop, expected Enters that wait for no Exit of it"
    return Problem(node, text)


def _if(predicate: str) -> str:
    return predicate if predicate in ("always", "never") else f"if {predicate}"


def _ends(merge: Node) -> tuple[int, int]:
    """Which input of a loop variable's Merge is the Enter, and which the NextIteration."""
    return (0, 1) if merge.inputs[0].node.kind is Kind.ENTER else (1, 0)


def _guard(enter: Node) -> Node:
    return Node(Kind.FORWARD, enter.op, list(enter.inputs), list(enter.controls), enter.index)


def _variables(flow: Flow, parent: Frame) -> _Variables:
    """The loop variables, and which input their Merges took where that is used."""
    found = _Variables()
    indexed = _indexed(flow.frame)
    for merge in flow.frame.nodes:
        if not is_loop_variable(merge):
            continue
        enter, following = _ends(merge)
        found.first[Value(merge, 0)] = merge.inputs[enter].node.inputs[0]
        found.following[Value(merge, 0)] = flow.stands_for(merge.inputs[following])
        if merge in indexed:
            first = Node(Kind.NUMBER, merge.op, [], [], merge.index, enter)
            parent.nodes.append(first)
            found.first[Value(merge, 1)] = Value(first, 0)
            found.following[Value(merge, 1)] = flow.number(following, merge)
    return found


def _indexed(frame: Frame) -> set[Node]:
    """The nodes the second output of which is used, as that of a Merge."""
    return {v.node for node in frame.nodes for v in node.inputs if v.output == 1}


def _needed(flow: Flow, values: Sequence[Value], variables: _Variables) -> list[Value]:
    """The loop variables that values depend on in this iteration or a later one."""
    needed: dict[Value, None] = {}
    seen: set[Node] = set()
    queue = [flow.stands_for(value) for value in values]
    for value in queue:
        if value in variables.first and value not in needed:
            needed[value] = None
            queue.append(variables.following[value])
        if value.node not in seen and not is_leaf(value.node):
            seen.add(value.node)
            queue += needs_of(flow, value.node)
    return list(needed)


def _enters_of(nodes: Sequence[Node]) -> set[Node]:
    """The Enters that nodes of a frame depend on, through all iterations."""
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.kind is not Kind.ENTER:
            stack += [*(value.node for value in node.inputs), *node.controls]
    return {node for node in seen if node.kind is Kind.ENTER}
