"""
Loops that end in several ways, each with its own Exits.

Such a loop has one more result, the number of the exit path that it took. An Exit is alive if that
is one of its paths; for the others the loop yields a placeholder value that is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.tf1.attributes import RESOURCE
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.graph import Node, Value
from lowerdeck.passes.control_flow.predicates import FALSE, Predicates

_MAX_WAYS = 16


def part_exits(
    flow: Flow, ended: int, loop: Node, exits: Sequence[Node], ends: Sequence[Value]
) -> tuple[tuple[Value, ...], list[Node], list[int]] | None:
    """
    The results of a loop, the nodes around it that its Exits read from now on, and its exit paths.

    `ends` is what the Exits take, and `ended` when the loop is over. None, without any change, if
    every Exit is alive then, or if nothing distinguishes the paths.
    """
    predicates = flow.predicates
    alive = [flow.alive(end) for end in ends]
    if set(alive) == {ended} or not all(
        when != FALSE and predicates.implies(when, ended) for when in alive
    ):
        return None
    ways = _ways(predicates, ended, alive)
    if len(ways) > _MAX_WAYS:
        return None
    numbers = [(way, flow.number(k, loop)) for k, way in enumerate(ways)]
    number = flow.choices.choice(Value(loop, 0), numbers, ended)
    given = [_given(flow, ended, end) for end in ends]
    outputs = [value for value in (*given, number) if value is not None]
    if len(outputs) <= len(ends):
        return None
    made: list[Node] = []
    for position, (leaving, when) in enumerate(zip(exits, alive, strict=True)):
        if when == ended:
            continue
        inputs = [Value(loop, position), Value(loop, len(ends))]
        parted = Node(kinds.SwitchN(len(ways)), leaving.op, inputs, [], leaving.index)
        taken = [k for k, way in enumerate(ways) if predicates.implies(way, when)]
        leaving.become(kinds.Merge(), [Value(parted, k) for k in taken])
        made.append(parted)
    return tuple(outputs), made, ways


def _ways(predicates: Predicates, ended: int, alive: Sequence[int]) -> list[int]:
    """Disjoint predicates, one of which holds at the end and determines which values are alive."""
    ways = [ended]
    for when in dict.fromkeys(alive):
        sides = (when, predicates.negate(when))
        ways = [p for way in ways for side in sides if (p := predicates.both(way, side)) != FALSE]
    return ways


def _given(flow: Flow, ended: int, end: Value) -> Value | None:
    """
    A value that is there whenever the loop ends, and is `end` where that is alive; None if there is
    none. The handle of a resource has to be one and the same.
    """
    meant, alive = flow.stands_for(end), flow.alive(end)
    if flow.predicates.implies(ended, flow.alive(meant)):
        return meant
    if end.node.value(end.output).type == RESOURCE:
        return None
    other = flow.predicates.both(ended, flow.predicates.negate(alive))
    return flow.choices.choice(end, [(alive, meant), (other, flow.anything(end))], ended)
