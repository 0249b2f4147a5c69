"""
Text for each step of raising a graph: frames, loops, choices and plans.

Nodes are numbered in the order in which a step is printed, so that the text depends on nothing but
the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import Frame
from lowerdeck.passes.control_flow.graph import Node, Value
from lowerdeck.passes.control_flow.loops import Loop
from lowerdeck.passes.control_flow.predicates import TRUE
from lowerdeck.passes.control_flow.regions import Choose, Forward, Make, Plan, Region

STEPS = ("frames", "loops", "choices", "plans")
"""What can be printed, in the order of the steps."""


class Names:
    """Numbers for nodes, in the order in which they are first mentioned."""

    def __init__(self) -> None:
        self._numbers: dict[Node, int] = {}

    def node(self, node: Node) -> str:
        """The name of a node."""
        return f"%{self._numbers.setdefault(node, len(self._numbers))}"

    def value(self, value: Value) -> str:
        """The name of an output of a node; the first has that of the node."""
        return self.node(value.node) + (f":{value.output}" if value.output else "")

    def values(self, values: Iterable[Value]) -> str:
        """The names of values, separated by commas."""
        return ", ".join(map(self.value, values))

    def definition(self, node: Node) -> str:
        """A node with all that it takes, and the name that it has in the graph."""
        text = f"{self.node(node)} = {_what(node)}"
        if node.inputs:
            text += f" {self.values(node.inputs)}"
        if node.controls:
            text += f" after {', '.join(map(self.node, node.controls))}"
        return f"{text}  // '{node.name}'"


def _what(node: Node) -> str:
    """The operator of a node, or its kind with what it is made of."""
    kind = node.kind
    if isinstance(kind, kinds.Operator):
        return node.op_type
    # Keys of frames hold nodes: their names say as much.
    shown = [f for f in fields(kind) if f.name != "key" and getattr(kind, f.name) != f.default]
    details = [f"{field.name} {getattr(kind, field.name)}" for field in shown]
    return f"{type(kind).__name__}({', '.join(details)})" if details else type(kind).__name__


def frames_text(frames: Sequence[Frame]) -> str:
    """The nodes of each frame, the outermost frame last."""
    names = Names()
    lines: list[str] = []
    for frame in frames:
        lines.append(f"{frame}:")
        lines += [f"  {names.definition(node)}" for node in frame.nodes]
    return "\n".join(lines)


def choices_text(flow: Flow) -> str:
    """When the nodes of each frame are alive, and what their values stand for."""
    names = Names()
    return "\n".join(_choices(flow, names))


def _choices(flow: Flow, names: Names) -> Iterator[str]:
    yield f"{flow.frame}, alive {_when(flow, flow.context)}:"
    shown: set[Node] = set()
    for node in flow.frame.nodes:
        if (why := flow.choices.unmerged(node)) is not None:
            yield f"  {names.definition(node)}: {why}"
            continue
        meant = [flow.stands_for(Value(node, output)) for output in (0, 1)]
        for value in meant:
            yield from _made(value, flow, names, shown)
        yield f"  {names.definition(node)}: alive {_when(flow, flow.node_alive(node))}"
        for output, value in enumerate(meant):
            if value != Value(node, output):
                yield f"    {names.value(Value(node, output))} is {names.value(value)}"
    for inner in flow.inner.values():
        yield from _choices(inner, names)


def _made(value: Value, flow: Flow, names: Names, shown: set[Node]) -> Iterator[str]:
    """The nodes that the analysis has made for a value, each before its users."""
    stack = [(value.node, False)]
    while stack:
        node, is_done = stack.pop()
        if node in shown or not node.is_a(kinds.Phi | kinds.Number | kinds.Truth | kinds.Test):
            continue
        if is_done:
            shown.add(node)
            yield f"  {names.definition(node)}: made"
            continue
        stack.append((node, True))
        stack += [(flow.stands_for(part).node, False) for part in node.inputs[::-1]]


def _when(flow: Flow, predicate: int) -> str:
    text = flow.predicates.describe(predicate)
    return text if predicate == TRUE else f"if {text}" if text != "never" else text


def plans_text(loops: Iterable[tuple[Node, Loop]], made: Plan) -> str:
    """What each loop and the function compute, region by region."""
    names = Names()
    lines: list[str] = []
    for node, loop in loops:
        lines.append(f"{loop.place.frame} as {names.node(node)}:")
        for what, values in (("carries", loop.carried), ("captures", loop.captured)):
            lines += [f"  {what} {names.value(value)}  // '{value.node.name}'" for value in values]
        for what, part in (("goes on", loop.condition), ("body", loop.body), ("after", loop.after)):
            lines += _plan(what, part, names)
    return "\n".join([*lines, "the function:", *_plan("body", made, names)])


def _plan(what: str, plan: Plan, names: Names) -> Iterator[str]:
    yield f"  {what}:"
    yield from _region(plan.region, names, "    ")
    yield f"    gives {names.values(plan.outputs)}"


def _region(region: Region, names: Names, indent: str) -> Iterator[str]:
    for step in region.steps:
        match step:
            case Make(node, inputs):
                taken = f" {names.values(inputs)}" if inputs else ""
                yield f"{indent}{names.node(node)} = {_what(node)}{taken}  // '{node.name}'"
            case Forward(phi, value):
                yield f"{indent}{names.node(phi)} = {names.value(value)}"
            case Choose():
                phis = ", ".join(map(names.node, step.phis))
                yield f"{indent}{phis} = if {names.value(step.condition)}"
                sides = ((step.yes, step.yes_values), (step.no, step.no_values))
                for word, (side, values) in zip(("then", "else"), sides, strict=True):
                    yield f"{indent}  {word}:"
                    yield from _region(side, names, f"{indent}    ")
                    yield f"{indent}    gives {names.values(values)}"
