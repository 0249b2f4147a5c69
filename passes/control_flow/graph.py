"""
The nodes of a `tf1.graph` that its fetches need, as plain records that can be taken apart.

Nodes are numbered in the order in which a walk back from the fetches completes them, so nothing
depends on their names or on their order in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.functions import FUNCTIONAL
from lowerdeck.dialects.tf1.ops import GraphOp, Tf1Op
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.kinds import FORWARDING, Kind
from lowerdeck.passes.machinery.order import post_order
from lowerdeck.passes.machinery.provenance import describe, source_names

_KINDS: Mapping[str, type[Kind]] = {
    "Placeholder": kinds.Argument,
    "PlaceholderV2": kinds.Argument,
    "PlaceholderWithDefault": kinds.Forward,
    "LoopCond": kinds.LoopCond,
    "_SwitchN": kinds.SwitchN,
    **{f"{ref}Switch": kinds.Switch for ref in ("", "Ref")},
    **{f"{ref}Merge": kinds.Merge for ref in ("", "Ref")},
    **{f"{ref}Enter": kinds.Enter for ref in ("", "Ref")},
    **{f"{ref}Exit": kinds.Exit for ref in ("", "Ref")},
    **{f"{ref}NextIteration": kinds.NextIteration for ref in ("", "Ref")},
}


def is_raised(op_type: str) -> bool:
    """True for the operators that raising takes out of a graph."""
    return op_type in _KINDS or op_type in FUNCTIONAL


@dataclass(eq=False)
class Node:
    """A node; `op` is the one of the graph that it is, or that it was made for."""

    kind: Kind
    op: Operation
    inputs: list[Value] = field(default_factory=list["Value"], repr=False)
    controls: list[Node] = field(default_factory=list["Node"], repr=False)
    index: int = 0
    """The place in the order of all nodes."""
    result: SSAValue | None = None
    """The value of the graph that a Merge stands for, if it is not the op's of that number."""

    def is_a(self, kinds: type[Kind] | UnionType | tuple[type[Kind], ...]) -> bool:
        """True if the node is of one of some kinds."""
        return isinstance(self.kind, kinds)

    def become(self, kind: Kind, inputs: list[Value]) -> None:
        """Make another node of it, which waits for its inputs only; its users stay."""
        self.kind, self.inputs, self.controls = kind, inputs, []

    @property
    def op_type(self) -> str:
        """The operator of the graph's node."""
        return self.op.op_type if isinstance(self.op, Tf1Op) else self.op.name

    def value(self, output: int) -> SSAValue:
        """The value of the graph that an output is, which has its type and its name."""
        return self.op.results[output] if self.result is None else self.result

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


SAME = frozenset({"Identity", "RefIdentity", "StopGradient", "PreventGradient", "Snapshot"})
"""Operators whose value is their input."""


def refuse(problems: Sequence[Problem]) -> None:
    """
    CompileError that lists all problems in the order of the nodes, if there are any; those
    of a function that is called several times once.
    """
    if problems:
        ordered = sorted(problems, key=lambda problem: problem.node.index)
        raise CompileError("\n".join(dict.fromkeys(map(str, ordered))))


@record
class Graph:
    """What the fetches of a graph need, by data or by control."""

    nodes: tuple[Node, ...]
    fetches: tuple[Value, ...]
    names: tuple[str, ...]
    effects: tuple[Node, ...] = ()
    """Nodes that are only run to change what other nodes may see."""


def placeholders(graph: GraphOp) -> list[Node]:
    """All placeholders of a graph, needed or not."""
    ops = graph.body.block.ops
    return [Node(kinds.Argument(), op) for op in ops if kind_of(op) is kinds.Argument]


def data_reachable(values: Sequence[Value]) -> set[Node]:
    """The nodes that values depend on by data."""
    roots = [value.node for value in values]
    return set(post_order(roots, lambda node: [value.node for value in node.inputs]))


def sources(node: Node) -> list[Node]:
    """The nodes that a node waits for, by data or by control."""
    return [*(value.node for value in node.inputs), *node.controls]


def forwarded(node: Node) -> list[Node]:
    """The nodes whose values a node may forward."""
    if node.is_a(kinds.Merge):
        return [value.node for value in node.inputs]
    is_same = node.is_a(FORWARDING) or node.is_a(kinds.Enter | kinds.Exit)
    if is_same or (node.is_a(kinds.Operator) and node.op_type in ("Identity", "RefIdentity")):
        return [node.inputs[0].node]
    return []


def kind_of(op: Operation) -> type[Kind]:
    """What an op means to control flow."""
    return _KINDS.get(op.op_type, kinds.Operator) if isinstance(op, Tf1Op) else kinds.Operator
