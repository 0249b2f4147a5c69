"""
The nodes of a `tf1.graph` that its fetches need, as plain records that can be taken apart.

Nodes are numbered in the order in which a walk back from the fetches completes them, so nothing
depends on their names or on their order in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.tf1.attributes import CONTROL
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, Tf1Op
from lowerdeck.passes.provenance import describe, source_names


class Kind(Enum):
    """What a node means to control flow."""

    OP = auto()
    """An ordinary node."""
    ARGUMENT = auto()
    """A Placeholder."""
    SWITCH = auto()
    SWITCH_N = auto()
    MERGE = auto()
    ENTER = auto()
    EXIT = auto()
    NEXT = auto()
    """NextIteration."""
    COND = auto()
    """LoopCond."""
    FORWARD = auto()
    """A node whose output is its input: PlaceholderWithDefault, and Exits of raised loops."""
    LOOP = auto()
    """A raised loop: initial values and captured ones in, what its Exits give out."""
    PHI = auto()
    """One of two values: inputs are the condition, the value if true, and the one if false."""
    NUMBER = auto()
    """An i32 constant, for the index of a Merge."""
    TEST = auto()
    """Whether an integer is a number, for _SwitchN."""


_KINDS = {
    "Placeholder": Kind.ARGUMENT,
    "PlaceholderV2": Kind.ARGUMENT,
    "PlaceholderWithDefault": Kind.FORWARD,
    "LoopCond": Kind.COND,
    "_SwitchN": Kind.SWITCH_N,
    **{f"{ref}Switch": Kind.SWITCH for ref in ("", "Ref")},
    **{f"{ref}Merge": Kind.MERGE for ref in ("", "Ref")},
    **{f"{ref}Enter": Kind.ENTER for ref in ("", "Ref")},
    **{f"{ref}Exit": Kind.EXIT for ref in ("", "Ref")},
    **{f"{ref}NextIteration": Kind.NEXT for ref in ("", "Ref")},
}


def is_raised(op_type: str) -> bool:
    """True for the operators that raising takes out of a graph."""
    return op_type in _KINDS


@dataclass(eq=False)
class Node:
    """A node; `op` is the one of the graph that it is, or that it was made for."""

    kind: Kind
    op: Operation
    inputs: list[Value] = field(default_factory=list["Value"], repr=False)
    controls: list[Node] = field(default_factory=list["Node"], repr=False)
    index: int = 0
    """The place in the order of all nodes."""
    number: int = 0
    """
    The constant of a NUMBER or TEST; how many outputs a _SwitchN has, or inputs a loop's Merge had
    before they became two; which output of a Merge a PHI is.
    """

    @property
    def op_type(self) -> str:
        """The operator of the graph's node."""
        return self.op.op_type if isinstance(self.op, Tf1Op) else self.op.name

    @property
    def name(self) -> str:
        """The name of the graph's node, for messages."""
        names = source_names(self.op, 1)
        hints = (result.name_hint for result in self.op.results if result.name_hint)
        return names[0] if names else next(hints, self.op_type)


class Value(NamedTuple):
    """An output of a node."""

    node: Node
    output: int


class Problem(NamedTuple):
    """What is wrong at a node."""

    node: Node
    text: str

    def __str__(self) -> str:
        return f"{describe(self.node.op)}: {self.text}"


FORWARDING = frozenset({Kind.SWITCH, Kind.SWITCH_N, Kind.NEXT, Kind.COND, Kind.FORWARD})
"""Kinds of nodes all outputs of which are their first input."""


def refuse(problems: Sequence[Problem]) -> None:
    """PassFailedException that lists all problems in the order of the nodes, if there are any."""
    if problems:
        ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.node.index)
        raise PassFailedException("\n".join(map(str, ordered)))


@dataclass(frozen=True)
class Graph:
    """What the fetches of a graph need, by data or by control."""

    nodes: tuple[Node, ...]
    fetches: tuple[Value, ...]
    names: tuple[str, ...]


def read_graph(graph: GraphOp) -> Graph:
    """The nodes of a graph that its fetches need."""
    fetch = graph.body.block.last_op
    if not isinstance(fetch, FetchOp):
        raise PassFailedException(f"{describe(graph)}: the graph has no fetches")
    ops = _completed(fetch.values)
    nodes = {op: Node(_kind(op), op, index=index) for index, op in enumerate(ops)}
    for op, node in nodes.items():
        for operand in op.operands:
            source = nodes[_owner(operand)]
            if operand.type == CONTROL:
                node.controls.append(source)
            else:
                node.inputs.append(_value(source, operand))
        if node.kind is Kind.SWITCH_N:
            node.number = sum(result.type != CONTROL for result in op.results)
    fetches = tuple(_value(nodes[_owner(value)], value) for value in fetch.values)
    return Graph(tuple(nodes.values()), fetches, tuple(name.data for name in fetch.names))


def placeholders(graph: GraphOp) -> list[Node]:
    """All placeholders of a graph, needed or not."""
    return [Node(kind, op) for op in graph.body.block.ops if (kind := _kind(op)) is Kind.ARGUMENT]


def data_reachable(values: Sequence[Value]) -> set[Node]:
    """The nodes that values depend on by data."""
    seen: set[Node] = set()
    stack = [value.node for value in values]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(value.node for value in node.inputs)
    return seen


def _kind(op: Operation) -> Kind:
    return _KINDS.get(op.op_type, Kind.OP) if isinstance(op, Tf1Op) else Kind.OP


def _owner(value: SSAValue) -> Operation:
    if not isinstance(value, OpResult):
        raise PassFailedException("a tf1.graph has no arguments: its inputs are Placeholders")
    return value.op


def _value(node: Node, value: SSAValue) -> Value:
    assert isinstance(value, OpResult)
    return Value(node, value.index)


def _completed(values: Sequence[SSAValue]) -> list[Operation]:
    """The producers of values and theirs, each after what it needs, except along cycles."""
    done: list[Operation] = []
    seen: set[Operation] = set()
    for value in values:
        stack = [(_owner(value), 0)]
        while stack:
            op, position = stack.pop()
            if position == 0 and op in seen:
                continue
            seen.add(op)
            operands = op.operands
            if position == len(operands):
                done.append(op)
                continue
            stack.append((op, position + 1))
            stack.append((_owner(operands[position]), 0))
    return done
