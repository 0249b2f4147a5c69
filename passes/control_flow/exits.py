"""
Loops that end in several ways, of which each has Exits of its own.

Such a loop gives one more result, the number of the way in which it ended. An Exit is alive where
that is one of its ways; for the others the loop gives anything of its type in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.tf1.attributes import RESOURCE, VARIANT
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import is_loop_variable
from lowerdeck.passes.control_flow.graph import Kind, Node, Value
from lowerdeck.passes.control_flow.predicates import FALSE, Predicates

_MAX_WAYS = 16


def part_exits(
    flow: Flow, ended: int, loop: Node, exits: Sequence[Node], ends: Sequence[Value]
) -> tuple[tuple[Value, ...], list[Node], list[int]] | None:
    """
    What a loop gives, the nodes around it that its Exits read from now on, and the ways it ends.

    `ends` is what the Exits take, and `ended` when the loop is over. None, and nothing is changed,
    if every Exit is alive then, or if nothing tells the ways apart.
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
    number = flow.choice(Value(loop, 0), numbers, ended)
    given = [_given(flow, ended, end, ends) for end in ends]
    outputs = [value for value in (*given, number) if value is not None]
    if len(outputs) <= len(ends):
        return None
    made: list[Node] = []
    for position, (leaving, when) in enumerate(zip(exits, alive, strict=True)):
        if when == ended:
            continue
        inputs = [Value(loop, position), Value(loop, len(ends))]
        parted = Node(Kind.SWITCH_N, leaving.op, inputs, [], leaving.index, len(ways))
        taken = [k for k, way in enumerate(ways) if predicates.implies(way, when)]
        leaving.kind, leaving.inputs = Kind.MERGE, [Value(parted, k) for k in taken]
        made.append(parted)
    return tuple(outputs), made, ways


def _ways(predicates: Predicates, ended: int, alive: Sequence[int]) -> list[int]:
    """Predicates that exclude each other, of which one holds at the end and tells what is alive."""
    ways = [ended]
    for when in dict.fromkeys(alive):
        sides = (when, predicates.negate(when))
        ways = [p for way in ways for side in sides if (p := predicates.both(way, side)) != FALSE]
    return ways


def _given(flow: Flow, ended: int, end: Value, ends: Sequence[Value]) -> Value | None:
    """A value that is alive at the end, and is `end` where that is; None if there is none."""
    both, negate = flow.predicates.both, flow.predicates.negate
    variables = [Value(node, 0) for node in flow.frame.nodes if is_loop_variable(node)]
    inputs: list[tuple[int, Value]] = []
    missing = ended
    for value in (end, *ends, *variables):
        when = both(missing, flow.alive(value))
        if when != FALSE and _element(value) == _element(end):
            inputs.append((when, flow.stands_for(value)))
            missing = both(missing, negate(when))
    return flow.choice(end, inputs, ended) if missing == FALSE else None


def _element(value: Value) -> Attribute:
    type_ = value.node.value(value.output).type
    return type_ if type_ in (RESOURCE, VARIANT) else element_type(type_)
