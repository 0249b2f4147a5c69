"""
Loops: a frame becomes one node of the frame around it.

A loop variable is a Merge of an Enter and a NextIteration. The condition is what LoopCond needs,
with the Merges as arguments; the body is what the NextIterations need; what is between the end of
the loop and the Exits runs once, after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lowerdeck.dialects.records import record
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.exits import part_exits
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import Frame, is_loop_variable
from lowerdeck.passes.control_flow.graph import Node, Problem, Value
from lowerdeck.passes.control_flow.numbering import Numbering
from lowerdeck.passes.control_flow.places import Place
from lowerdeck.passes.control_flow.predicates import FALSE, TRUE, Predicates
from lowerdeck.passes.control_flow.regions import Plan, is_leaf, needs_of, plan, unmerged


@record
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
    place: Place


@dataclass(eq=False)
class _Variables:
    """The loop variables of a frame, by the outputs of their Merges."""

    first: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The initial value, in the frame around the loop."""
    following: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """The value of the next iteration."""


@record
class _Ring:
    """A frame as one node of the frame around it."""

    frame: Frame
    node: Node
    conditions: tuple[Node, ...]
    """The LoopCond, if something needs it."""
    exits: tuple[Node, ...]
    ends: tuple[Value, ...]
    """What the Exits take."""
    guards: dict[Node, Node]
    """For each Enter a node outside that is alive when the Enter is."""


class LoopRaiser:
    """
    Raises the loops of a graph.

    Frames are closed first: each becomes a node of the one around it. Then one analysis goes from
    the outside to the inside, for what is known around a loop holds in it. Last, loops are built
    from the inside to the outside.
    """

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self.loops: dict[Node, Loop] = {}
        """The loops built so far, by their nodes."""
        self._rings: dict[Frame, _Ring] = {}
        self._flows: dict[Frame, Flow] = {}
        self._frames: dict[Node, Frame] = {}
        self._outputs: dict[Frame, tuple[Value, ...]] = {}
        """What loops give whose Exits are not all alive at the end."""
        self._ways: dict[Node, list[int]] = {}
        """The predicates of how these loops end, by the number that they give then."""

    @property
    def plans(self) -> list[Plan]:
        """All that is computed for loops."""
        loops = self.loops.values()
        return [part for loop in loops for part in (loop.condition, loop.body, loop.after)]

    def close(self, frame: Frame, parent: Frame) -> list[Problem]:
        """Make a frame a node of its parent; what is wrong with it if that cannot be done."""
        if problems := _check_form(frame):
            return problems
        conditions = tuple(node for node in frame.nodes if node.is_a(kinds.LoopCond))
        exits = [node for node in frame.nodes if node.is_a(kinds.Exit)]
        guards = {enter: _copied(enter) for enter in frame.nodes if enter.is_a(kinds.Enter)}
        ends = [_copied(leaving) for leaving in exits]
        origin = next(iter((*conditions, *guards)))
        node = Node(kinds.RaisedLoop(), origin.op, [], list(guards.values()), origin.index)
        self._rings[frame] = _Ring(
            frame, node, conditions, tuple(exits), tuple(Value(end, 0) for end in ends), guards
        )
        self._frames[node] = frame
        frame.nodes = [other for other in frame.nodes if not other.is_a(kinds.Exit)] + ends
        parent.nodes += [*guards.values(), node, *exits]
        for position, leaving in enumerate(exits):
            leaving.become(kinds.Forward(), [Value(node, position)])
        return []

    def analyze(self, root: Frame) -> Flow:
        """What is known of the outermost frame, and of those inside."""
        flow = Flow(root, self._predicates, Numbering(), self)
        flows = [flow]
        for found in flows:
            flows += found.inner.values()
        self._flows = {found.frame: found for found in flows}
        return flow

    def frame_of(self, node: Node) -> Frame:
        """The frame that has become a node."""
        return self._frames[node]

    def leave(self, inner: Flow) -> list[Node]:
        """Let what a loop gives tell in which way it ended, if its Exits depend on that."""
        ring = self._rings[inner.frame]
        ended = self._ended(inner, self._going(inner))
        if inner.cyclic or ended == FALSE:
            return []
        parted = part_exits(inner, ended, ring.node, ring.exits, ring.ends)
        if parted is None:
            return []
        self._outputs[inner.frame], made, self._ways[ring.node] = parted
        return made

    def way(self, node: Node, number: int) -> str:
        """In which way a loop ended that gave a number, for messages."""
        when = self._predicates.describe(self._ways[node][number])
        return f"{self._frames[node]} ends with {when}"

    def effects(self, nodes: Sequence[Node], frames: Mapping[Node, Frame]) -> list[Problem]:
        """Those of `nodes` that change what others see, and may run."""
        problems: list[Problem] = []
        for node in nodes:
            flow = self._flows.get(frames[node])
            if flow is None or flow.cyclic:
                continue  # never runs, or is refused for that
            alive = self._predicates.both(flow.context, flow.node_alive(node))
            if alive == FALSE:
                continue
            where, step = "", ""
            if alive != TRUE:
                where = f" {self._if(alive)}"
                step = ", or fix what decides it with --set"
            text = (
                f"found a node that changes state before others run{where}, expected none; name "
                f"outputs that do not need it (--output), or remove the control dependency{step}"
            )
            problems.append(Problem(node, text))
        return problems

    def check(self, frame: Frame) -> list[Problem]:
        """What is wrong with a frame, and with what goes into the loops in it."""
        if (flow := self._flows.get(frame)) is None:
            return []
        if flow.cyclic:
            return [_in_cycle(node, frame) for node in flow.cyclic if flow.context != FALSE]
        problems = [
            problem for inner in flow.inner.values() for problem in self._check_enters(flow, inner)
        ]
        runs = frame in self._rings and flow.context != FALSE
        return problems + (self._check_flow(flow) if runs else [])

    def build(self, frame: Frame) -> list[Problem]:
        """Make the loop of a frame in which nothing is wrong, unless it never runs."""
        ring, flow = self._rings[frame], self._flows.get(frame)
        if flow is None or flow.context == FALSE:
            return []
        going = self._going(flow)
        condition = self._condition(flow, going)
        if condition is None:
            text = f"found no value in {frame} that tells if it goes on, {self._if(going)}"
            return [Problem(ring.node, f"{text}; expected a LoopCond")]
        variables = _variables(flow)
        outputs = self._outputs.get(frame, ring.ends)
        carried = tuple(
            value
            for value in _needed(flow, [condition, *outputs], variables)
            if variables.following[value] != value
        )
        following = [variables.following[value] for value in carried]
        tasks = (
            ([condition], flow.context),
            (following, going),
            (outputs, self._ended(flow, going)),
        )
        if problems := [p for values, _ in tasks for p in unmerged(flow, values)]:
            return problems
        plans = [plan(flow, values, context) for values, context in tasks]
        leaves = dict.fromkeys(leaf for made in plans for leaf in made.leaves)
        captured = tuple(
            leaf for leaf in leaves if leaf not in carried and not leaf.node.is_a(kinds.Argument)
        )
        predicate, names = self._predicates.describe(going), tuple(v.node.name for v in carried)
        place = Place(str(frame), predicate, (predicate,), names)
        self.loops[ring.node] = Loop(carried, captured, *plans, runs=going != FALSE, place=place)
        ring.node.inputs = [
            variables.first.get(v) or v.node.inputs[0] for v in (*carried, *captured)
        ]
        return []

    def _going(self, flow: Flow) -> int:
        """When another iteration follows."""
        both = self._predicates.both
        followings = {both(flow.context, flow.alive(value)) for value in _followings(flow.frame)}
        conditions = self._rings[flow.frame].conditions
        if not conditions:
            return self._predicates.any(followings)
        going = both(flow.context, flow.truths.of(conditions[0].inputs[0]))
        # The body may end the loop, too, if all variables agree on it.
        breaks = len(followings) == 1 and self._predicates.implies(min(followings), going)
        return min(followings) if breaks else going

    def _ended(self, flow: Flow, going: int) -> int:
        return self._predicates.both(flow.context, self._predicates.negate(going))

    def _condition(self, flow: Flow, going: int) -> Value | None:
        """The value that tells whether another iteration follows."""
        ring = self._rings[flow.frame]
        for condition in ring.conditions:
            if self._predicates.both(flow.context, flow.truths.of(condition.inputs[0])) == going:
                return condition.inputs[0]
        return flow.choices.decided(going, ring.node)

    # Checks

    def _check_flow(self, flow: Flow) -> list[Problem]:
        """The loop has a condition in every iteration, and goes on and ends as it says."""
        ring, context = self._rings[flow.frame], flow.context
        going = self._going(flow)
        ends = self._ended(flow, going)
        problems: list[Problem] = []

        def expect(node: Node, found: int, expected: int, when: str) -> None:
            alive = self._predicates.both(found, context)
            if alive != expected:
                text = f"found it alive in {flow.frame} {self._if(alive)}, expected {when}"
                wanted = "" if expected == TRUE else f", {self._if(expected)}"
                problems.append(Problem(node, text + wanted))

        for condition in ring.conditions:
            expect(condition, flow.node_alive(condition), context, "a condition in every iteration")
        if going == context:
            text = (
                f"found a condition of {flow.frame} that is always true, expected the loop to end"
            )
            return [*problems, Problem(next(iter((*ring.conditions, ring.node))), text)]
        for following in _followings(flow.frame):
            when = "it whenever the loop goes on, and only then"
            expect(following.node, flow.alive(following), going, when)
        for end in () if flow.frame in self._outputs else ring.ends:
            when = "it when the loop ends, and only then"
            expect(end.node, flow.alive(end), ends, when)
        return problems

    def _check_enters(self, flow: Flow, inner: Flow) -> list[Problem]:
        """Nothing comes out of a loop, nor goes on in it, if not all that goes in is alive."""
        if inner.cyclic:
            return []
        ring, implies = self._rings[inner.frame], self._predicates.implies
        leaving = [*ring.ends, *_followings(ring.frame)]
        if all(implies(inner.alive(value), inner.context) for value in leaving):
            return []
        expected = f"expected one predicate for all Enters of {ring.frame}"
        return [
            Problem(enter, f"found it alive {self._if(flow.node_alive(guard))}, {expected}")
            for enter, guard in ring.guards.items()
        ]

    def _if(self, predicate: int) -> str:
        text = self._predicates.describe(predicate)
        return text if predicate in (TRUE, FALSE) else f"if {text}"


def _check_form(frame: Frame) -> list[Problem]:
    """A frame has one LoopCond at most, and its loop variables one Enter and one NextIteration."""
    conditions = [node for node in frame.nodes if node.is_a(kinds.LoopCond)]
    count = f"found {len(conditions)} LoopConds in {frame}, expected one"
    problems = [Problem(node, count) for node in conditions if len(conditions) > 1]
    indexed = _indexed(frame)
    for node in filter(is_loop_variable, frame.nodes):
        found_kinds = {type(value.node.kind) for value in node.inputs}
        if len(node.inputs) != 2 or found_kinds != {kinds.Enter, kinds.NextIteration}:
            found = ", ".join(value.node.op_type for value in node.inputs)
            text = f"found inputs from {found} in {frame}, expected Enters and NextIterations"
            problems.append(Problem(node, text))
        elif node in indexed and isinstance(node.kind, kinds.Merge) and node.kind.joined:
            text = (
                f"found the index of {node.kind.joined} inputs in {frame} in use, expected 2 inputs"
            )
            problems.append(Problem(node, text))
    return problems


def _in_cycle(node: Node, frame: Frame) -> Problem:
    text = f"found it in {frame} in a cycle through a whole loop"
    return Problem(node, f"{text}, expected Enters that wait for no Exit of it")


def _ends(merge: Node) -> tuple[int, int]:
    """Which input of a loop variable's Merge is the Enter, and which the NextIteration."""
    return (0, 1) if merge.inputs[0].node.is_a(kinds.Enter) else (1, 0)


def _followings(frame: Frame) -> list[Value]:
    """What the NextIterations of loop variables give."""
    return [node.inputs[_ends(node)[1]] for node in frame.nodes if is_loop_variable(node)]


def _copied(node: Node) -> Node:
    """A node that forwards what an Enter or Exit takes, and is alive when that is."""
    return Node(kinds.Forward(), node.op, list(node.inputs), list(node.controls), node.index)


def _variables(flow: Flow) -> _Variables:
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
            assert flow.outer is not None
            found.first[Value(merge, 1)] = flow.outer.number(enter, merge)
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
