"""
The nodes of a `tf1.graph` that its fetches need, as plain records that can be taken apart.

Nodes are numbered in the order in which a walk back from the fetches completes them, so nothing
depends on their names or on their order in the file.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.tf1.functions import FUNCTIONAL
from lowerdeck.dialects.tf1.ops import GraphOp, Tf1Op
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
    TRUTH = auto()
    """A Boolean constant, for the condition of a loop that has no LoopCond."""
    ANYTHING = auto()
    """A value that is never looked at, where there has to be one."""
    TEST = auto()
    """Whether an integer is a number, for _SwitchN."""
    BOOL = auto()
    """Whether a value counts as true, for operators that run functions."""
    GATE = auto()
    """Alive where a function runs; it gives nothing."""


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
    number: int = 0
    """
    The constant of a NUMBER, TRUTH or TEST; how many outputs a _SwitchN has, or inputs a loop's
    Merge had before they became two; which output of the op a PHI or ANYTHING is.
    """
    frame: tuple[Hashable, str] | None = None
    """What an Enter leads to: frames with equal keys in one frame are the same; and its name."""
    result: SSAValue | None = None
    """The value of the graph that a Merge stands for, if it is not the op's of that number."""

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


FORWARDING = frozenset({Kind.SWITCH, Kind.SWITCH_N, Kind.NEXT, Kind.COND, Kind.FORWARD})
"""Kinds of nodes all outputs of which are their first input."""


SAME = frozenset({"Identity", "RefIdentity", "StopGradient", "PreventGradient", "Snapshot"})
"""Operators whose value is their input."""


def refuse(problems: Sequence[Problem]) -> None:
    """
    PassFailedException that lists all problems in the order of the nodes, if there are any; those
    of a function that is called several times once.
    """
    if problems:
        ordered = sorted(problems, key=lambda problem: problem.node.index)
        raise PassFailedException("\n".join(dict.fromkeys(map(str, ordered))))


@dataclass(frozen=True)
class Graph:
    """What the fetches of a graph need, by data or by control."""

    nodes: tuple[Node, ...]
    fetches: tuple[Value, ...]
    names: tuple[str, ...]


def placeholders(graph: GraphOp) -> list[Node]:
    """All placeholders of a graph, needed or not."""
    return [Node(kind, op) for op in graph.body.block.ops if (kind := kind_of(op)) is Kind.ARGUMENT]


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


def kind_of(op: Operation) -> Kind:
    """What an op means to control flow."""
    return _KINDS.get(op.op_type, Kind.OP) if isinstance(op, Tf1Op) else Kind.OP
