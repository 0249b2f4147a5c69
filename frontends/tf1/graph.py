"""
The nodes of a graph or function by name: what they read, what is needed, and what to fetch.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.ops import PLACEHOLDERS, VARIABLES
from lowerdeck.frontends.tf1.graph_pb2 import NodeDef

_NODE_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*")

WITH_DEFAULT = "PlaceholderWithDefault"
NEXT_ITERATION = frozenset({"NextIteration", "RefNextIteration"})

_NO_RESULT = frozenset(
    "Const HostConst Placeholder PlaceholderV2 PlaceholderWithDefault Switch RefSwitch _SwitchN "
    "Enter RefEnter NextIteration RefNextIteration LoopCond ControlTrigger NoOp Assert Print "
    "PrintV2 Variable VariableV2 VarHandleOp IsVariableInitialized VarIsInitializedOp "
    "TensorArrayCloseV3 StackCloseV2 TensorArrayV3 TensorArrayGradV3 StackV2".split()
)
"""Operators whose outputs are never what a graph computes, even if nothing reads them."""

_NO_RESULT_PATTERN = re.compile(r"Summary|^ReadVariableOp$")
"""The same for more of them."""

_EFFECTS = re.compile(
    r"^Assign|^Scatter(Nd)?(Update|Add|Sub|Mul|Div|Min|Max)$|^Save|^Restore|^MergeV2Checkpoints$"
    r"|^(Resource|Sparse|ResourceSparse)?Apply[A-Z]|^Resource(Scatter|StridedSliceAssign|CountUpTo)"
)
"""Operators that change variables or files: what training does, and what depends on it."""

_MAIN_OUTPUTS = {
    "Merge": 1,
    "RefMerge": 1,
    "FusedBatchNorm": 1,
    "FusedBatchNormV2": 1,
    "FusedBatchNormV3": 1,
    "_FusedBatchNormEx": 1,
}
"""How many outputs are results, where the rest are by-products."""


@dataclass(frozen=True, order=True)
class Port:
    """One output of a node: `name:index`."""

    node: str
    index: int

    def __str__(self) -> str:
        return f"{self.node}:{self.index}"


@record
class Node:
    """A node with its inputs read: data by position, then control by name."""

    proto: NodeDef
    inputs: tuple[Port, ...]
    controls: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.proto.name

    @property
    def op(self) -> str:
        return self.proto.op


def parse_port(text: str) -> Port:
    """`name` or `name:index`; ValueError if it is neither."""
    name, colon, index = text.rpartition(":")
    if not colon:
        name, index = text, "0"
    if not _NODE_NAME.fullmatch(name) or not index.isdecimal() or len(index) > 9:
        raise ValueError(f"'{text}' is not the name of a tensor, expected 'node' or 'node:1'")
    return Port(name, int(index))


def read_node(proto: NodeDef, ports: Callable[[str], Iterable[Port]]) -> Node:
    """The node, each of whose data inputs stands for `ports`; ValueError if a name is not valid."""
    inputs, controls = list[Port](), list[str]()
    if not _NODE_NAME.fullmatch(proto.name):
        raise ValueError("its name is not one that TensorFlow allows")
    for text in proto.input:
        if not text.startswith("^"):
            inputs += ports(text)
        elif _NODE_NAME.fullmatch(text[1:]):
            controls.append(text[1:])
        else:
            raise ValueError(f"'{text}' is not the name of a control input")
    return Node(proto, tuple(inputs), tuple(dict.fromkeys(controls)))


def _read_in_graph(proto: NodeDef) -> Node:
    return read_node(proto, lambda text: [parse_port(text)])


@dataclass
class Graph:
    """
    The nodes of a GraphDef, or of a function, where `read` knows how inputs are written and `given`
    are the arguments.

    `broken` has what is wrong with nodes that cannot be read, `missing` the nodes that were asked
    for in vain and who asked.
    """

    protos: Sequence[NodeDef]
    read: Callable[[NodeDef], Node] = _read_in_graph
    given: Mapping[str, Node] = field(default_factory=dict[str, Node])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    missing: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """All nodes that can be read, by name."""
        found = dict(self.given)
        for proto in self.protos:
            try:
                found[proto.name] = self.read(proto)
            except ValueError as error:
                self.broken[proto.name] = str(error)
        return found

    @property
    def duplicates(self) -> list[NodeDef]:
        """The nodes whose name another node or argument has, one for each name."""
        count = Counter([*self.given, *(proto.name for proto in self.protos)])
        by_name = {proto.name: proto for proto in self.protos}
        return [proto for name, proto in by_name.items() if count[name] > 1]

    def needed(self, fetches: Iterable[str], fed: Collection[str] = ()) -> list[Node]:
        """
        The nodes that the fetched ones depend on, each after those that it reads; only what comes
        in through NextIteration is later. Nodes in `fed` need nothing.
        """
        order: list[Node] = []
        seen: set[str] = set()
        roots = deque(fetches)
        stack: list[tuple[Node, Iterator[str]]] = []
        while roots or stack:
            if stack:
                reader, producers = stack[-1]
                if (name := next(producers, None)) is None:
                    order.append(stack.pop()[0])
                    continue
            else:
                name, reader = roots.popleft(), None
            if name in seen:
                continue
            node = self.nodes.get(name)
            if node is None:
                self.missing.setdefault(name, []).append("" if reader is None else reader.name)
            elif reader is not None and node.op in NEXT_ITERATION:
                roots.append(name)
            else:
                seen.add(name)
                stack.append((node, iter(() if name in fed else _producers(node))))
        return order

    # What to fetch if nothing is asked for

    def results(self, count: Callable[[NodeDef], int]) -> list[Port]:
        """
        The outputs of nodes that no node reads or depends on, without those of placeholders,
        constants, control flow and what training leaves behind: what depends on a change of a
        variable, or on variables alone. What is computed only in a loop or in a branch is no result
        if anything else is.

        Those that are fewer steps away from what they are computed from come first; ties go by
        name, numbers in it by value. `count` tells how many outputs the operators have.
        """
        read = {name for node in self.nodes.values() for name in _producers(node)}
        ends = [node for node in self.nodes.values() if node.name not in read and _is_result(node)]
        changed = self._depend_on(lambda node: _EFFECTS.search(node.op) is not None)
        ends = [node for node in ends if node.name not in changed] or ends
        nesting = self._nesting(sorted(node.name for node in ends))
        ends = [node for node in ends if nesting[node.name] == _OUTERMOST] or ends
        if any(node.op in VARIABLES for node in self.nodes.values()):
            fed = self._depend_on(lambda node: node.op in (*PLACEHOLDERS, WITH_DEFAULT))
            ends = [node for node in ends if node.name in fed] or ends
        depth: dict[str, int] = {}
        for node in self.needed(sorted(node.name for node in ends)):
            depth[node.name] = 1 + max((depth.get(name, 0) for name in _producers(node)), default=0)
        ends.sort(key=lambda node: (depth[node.name], _natural(node.name)))
        return [Port(node.name, k) for node in ends for k in range(_result_count(node, count))]

    def _nesting(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """
        For the nodes that are needed, in how many loops they are, and behind how many Switches of
        conditionals whose Merge has not come yet.

        An Exit or a Switch that nobody reads is left where loops and conditionals were pruned.
        """
        found: dict[str, tuple[int, int]] = {}
        for node in self.needed(names):
            op = node.op.removeprefix("Ref")
            sources = [found[name] for name in _producers(node) if name in found]
            data = [found[port.node] for port in node.inputs if port.node in found]
            loops, switches = (max(found, default=0) for found in _sides(sources))
            match op:
                case "Enter":
                    loops += 1
                case "Exit":
                    loops, switches = loops - 1, switches - 1
                case "Switch" | "_SwitchN":
                    switches += 1
                case "Merge" if len(data) == len(node.inputs):
                    switches = min(_sides(data)[1]) - 1
                case _:
                    pass
            found[node.name] = max(loops, 0), max(switches, 0)
        return found

    def _depend_on(self, is_root: Callable[[Node], bool]) -> set[str]:
        """The roots, and all nodes that depend on one."""
        consumers: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for name in _producers(node):
                consumers.setdefault(name, []).append(node.name)
        found: set[str] = set()
        stack = [node.name for node in self.nodes.values() if is_root(node)]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += consumers.get(name, ())
        return found


def _producers(node: Node) -> Sequence[str]:
    return (*(port.node for port in node.inputs), *node.controls)


_OUTERMOST = (0, 0)
"""In no loop, and in no branch of a conditional."""


def _sides(places: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [place[0] for place in places], [place[1] for place in places]


def _is_result(node: Node) -> bool:
    return node.op not in _NO_RESULT and _NO_RESULT_PATTERN.search(node.op) is None


def _result_count(node: Node, count: Callable[[NodeDef], int]) -> int:
    """How many outputs of a node are results."""
    return _MAIN_OUTPUTS.get(node.op) or min(count(node.proto), 64)


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts `x_2` before `x_10`."""
    return [
        # A number by its digits: it may have more than Python converts.
        (len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (-1, part)
        for part in re.split(r"(\d+)", name)
    ]
