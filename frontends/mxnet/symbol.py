"""
The symbol in a JSON file, in any version from 0.8 on: nodes, each with the ones before it.

What MXNet upgrades when it loads an older file (`src/nnvm/legacy_json_util.cc`) is upgraded here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, cast

from lowerdeck.dialects.mxnet.schema import targets

Json: TypeAlias = "dict[str, Any]"
Entry: TypeAlias = "tuple[int, int]"
"""The result of a node: the number of the node, and which of its results."""

MOST_BYTES = 1 << 28
"""Of a file with a symbol."""

MOST_RESULTS = 1 << 16
"""Of a node."""

MOST_DEPTH = 16
"""Subgraphs inside of one another."""

_FIRST = 800
"""The version of files that name none: 0.8.0."""

_WITH_STATES = 900
"""Since 0.9.0 nodes have their auxiliary states as inputs."""

_WITHOUT_LAST_AXIS = 905
"""Until 0.9.5 the axis -1 of argmax and argmin was all of them."""

_STATES = {"BatchNorm": ("moving_mean", "moving_var")}
_HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
_FORMER = {"CuDNNBatchNorm": "BatchNorm"}
"""Operators that went, and what they were another implementation of."""


class SymbolError(ValueError):
    """A symbol or its weights are broken."""


@dataclass
class Node:
    """A node: a variable (`null`) or an operator."""

    op_type: str
    """The operator by its first name; as the file has it if that is not known."""
    name: str
    attributes: dict[str, str]
    inputs: list[Entry]
    subgraphs: list[Symbol]

    @property
    def is_variable(self) -> bool:
        """True if the node is an input, a weight, or an argument of a subgraph."""
        return self.op_type == "null"


@dataclass
class Symbol:
    """A graph: nodes in order, those that are its arguments, and its results."""

    nodes: list[Node]
    arguments: list[int]
    heads: list[Entry]
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counts: Sequence[int] = ()
    """How many results each node has, if the file states it."""

    @property
    def version(self) -> int:
        """The version of MXNet that wrote it: 10901 for 1.9.1."""
        return self._fact("mxnet_version", _FIRST)

    @property
    def is_numpy(self) -> bool:
        """True if sizes of zero are sizes, and -1 stands for one that is not known."""
        return bool(self._fact("is_np_shape", 0))

    def _fact(self, name: str, default: int) -> int:
        found = self.facts.get(name)
        if isinstance(found, list):
            found = next(reversed(cast("list[Any]", found)), None)
        return found if isinstance(found, int) else default


def walk_nodes(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for inner in node.subgraphs:
            yield from walk_nodes(inner.nodes)


def read_symbol(path: str) -> Symbol:
    """The symbol in a file; SymbolError if it is broken, OSError if it cannot be read."""
    if os.path.getsize(path) > MOST_BYTES:
        raise SymbolError(f"more than {MOST_BYTES} bytes")
    with open(path, "rb") as file:
        try:
            data: Any = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            raise SymbolError(f"no JSON: {error}") from None
    symbol = _graph(data, 0)
    _upgrade(symbol)
    return symbol


def _graph(data: Any, depth: int) -> Symbol:
    if not isinstance(data, dict) or depth > MOST_DEPTH:
        raise SymbolError("a graph that is no object, or too deep inside of others")
    graph = cast("Json", data)
    nodes = [_node(entry, depth) for entry in _list(graph, "nodes")]
    for number, node in enumerate(nodes):
        if any(not 0 <= source < number for source, _ in node.inputs):
            raise SymbolError(f"node '{node.name}' has inputs that do not come before it")
    heads = [_entry(entry) for entry in _list(graph, "heads")]
    if any(not 0 <= source < len(nodes) for source, _ in heads) or not heads:
        raise SymbolError("the results are no nodes")
    for source, index in (entry for each in [*(n.inputs for n in nodes), heads] for entry in each):
        if index and nodes[source].is_variable:
            raise SymbolError(f"result {index} of '{nodes[source].name}', which is a variable")
    arguments = [number for number, node in enumerate(nodes) if node.is_variable]
    facts: Any = graph.get("attrs")
    facts = cast("Json", facts) if isinstance(facts, dict) else {}
    return Symbol(nodes, arguments, heads, facts, _counts(graph.get("node_row_ptr"), len(nodes)))


def _counts(bounds: Any, count: int) -> list[int]:
    """How many results each node has, by where its results begin among all of them."""
    numbers = cast("list[Any]", bounds) if isinstance(bounds, list) else []
    if len(numbers) != count + 1 or any(type(n) is not int for n in numbers):
        return []
    return [after - before for before, after in pairwise(numbers)]


def _list(graph: Json, name: str) -> list[Any]:
    found = graph.get(name)
    if not isinstance(found, list):
        raise SymbolError(f"no list of '{name}'")
    return cast("list[Any]", found)


def _node(data: Any, depth: int) -> Node:
    if not isinstance(data, dict):
        raise SymbolError("a node that is no object")
    entry = cast("Json", data)
    op_type, name = entry.get("op"), entry.get("name", "")
    if not isinstance(op_type, str) or not isinstance(name, str):
        raise SymbolError("a node without operator or name")
    attributes: dict[str, str] = {}
    for key in ("param", "attr", "attrs"):
        found: Any = entry.get(key, {})
        if not isinstance(found, dict):
            raise SymbolError(f"'{key}' of node '{name}' is no object")
        attributes.update({str(k): str(v) for k, v in cast("Json", found).items()})
    inputs = [_entry(each) for each in _list(entry, "inputs")]
    inner: list[Any] = _list(entry, "subgraphs") if "subgraphs" in entry else []
    subgraphs = [_graph(each, depth + 1) for each in inner]
    op_type = _FORMER.get(op_type, op_type)
    return Node(targets().get(op_type, op_type), name, attributes, inputs, subgraphs)


def _entry(data: Any) -> Entry:
    numbers: Sequence[Any] = cast("list[Any]", data) if isinstance(data, list) else [data]
    if not 1 <= len(numbers) <= 3 or any(
        type(n) is not int or not 0 <= n < MOST_RESULTS << 8 for n in numbers
    ):
        raise SymbolError("an entry that refers to no node")
    index = numbers[1] if len(numbers) > 1 else 0
    if index >= MOST_RESULTS:
        raise SymbolError(f"result {index} of a node")
    return numbers[0], index


# Upgrades


def _upgrade(symbol: Symbol) -> None:
    for node in walk_nodes(symbol.nodes):
        if not node.is_variable:
            node.attributes = {k: v for k, v in node.attributes.items() if not _is_hidden(k)}
        is_last = node.attributes.get("axis") == "-1"
        if node.op_type in ("argmax", "argmin") and is_last and symbol.version < _WITHOUT_LAST_AXIS:
            del node.attributes["axis"]
    if symbol.version < _WITH_STATES:
        _add_states(symbol)


def _is_hidden(name: str) -> bool:
    return name.startswith("__") or name.endswith(_HIDDEN)


def _add_states(symbol: Symbol) -> None:
    """Add the variables of auxiliary states, which were no nodes."""
    nodes: list[Node] = []
    place: dict[int, int] = {}
    for number, node in enumerate(symbol.nodes):
        node.inputs = [(place[source], index) for source, index in node.inputs]
        names = _STATES.get(node.op_type, ())
        if len(node.inputs) == 3:
            for name in names:
                node.inputs.append((len(nodes), 0))
                nodes.append(Node("null", f"{node.name}_{name}", {}, [], []))
        place[number] = len(nodes)
        nodes.append(node)
    symbol.nodes, symbol.counts = nodes, ()
    symbol.heads = [(place[source], index) for source, index in symbol.heads]
    symbol.arguments = [number for number, node in enumerate(nodes) if node.is_variable]
