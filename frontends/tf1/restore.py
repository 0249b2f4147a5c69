"""
Which variable has which value once a model is loaded: by the operations that restore it.

A saver's operation assigns parts of a checkpoint to variables; what the names of these parts are is
written there and nowhere else. An operation that runs after it may assign constants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.types import static_shape, tensor
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.functions import CALLS
from lowerdeck.dialects.tf1.ops import VARIABLES
from lowerdeck.frontends.tf1.checkpoint import Checkpoint, Stored
from lowerdeck.frontends.tf1.functions import ARGUMENT, Library
from lowerdeck.frontends.tf1.graph import Graph, Node, Port
from lowerdeck.frontends.tf1.graph_pb2 import FunctionDefLibrary
from lowerdeck.frontends.tf1.tensors import dtype_name, shape_dims, tensor_value

_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_FORWARDS = frozenset({"Identity", "RefIdentity"})
"""Operators whose result is their input."""

_MAX_CALLS = 1 << 10
"""Calls of functions that restoring may need."""

Value: TypeAlias = "Part | Node | None"
"""What is assigned: a part of the checkpoint, a constant, or what is not known here."""


@record
class Part:
    """A tensor of a checkpoint, or the slice of it that `spec` describes."""

    name: str
    spec: str = ""


@record
class Assignment:
    """A value that a node gives a variable."""

    variable: str
    value: Value
    node: str


def _distinct(values: Iterable[Value]) -> list[Value]:
    """The values, each once; a node is known by its name."""
    return list({v.name if isinstance(v, Node) else v: v for v in values}.values())


@record
class _Scope:
    """A graph, or the body of a function with what its arguments are."""

    graph: Graph
    arguments: Mapping[Port, tuple[_Scope, Port]]


class Variables:
    """
    The values of the variables of a graph in the file `path`.

    `restore` is the node that restores them; without it, all nodes may be part of doing so. What
    `initialize` needs is run after that.
    """

    def __init__(
        self,
        graph: Graph,
        library: FunctionDefLibrary,
        path: str | None,
        prefix: str,
        restore: str | None = None,
        initialize: Iterable[str] = (),
    ) -> None:
        self._graph = graph
        self._path = path
        self._library = Library(library)
        self._prefix = prefix
        self._restore = restore
        self._initialize = tuple(initialize)

    def value(self, node: Node) -> Stored:
        """
        What a variable holds, of the type that its node says.

        ValueError if that is not known, or not readable; FrontendError if there is no checkpoint.
        """
        stored = self._stored(node)
        dtype = dtype_name(node.proto.attr["dtype"].type).removesuffix("_ref")
        if stored.dtype != dtype:
            raise ValueError(f"its value is of element type {stored.dtype}, expected {dtype}")
        found = static_shape(stored.type) or ()
        expected = shape_dims(node.proto.attr["shape"].shape)
        if expected is None or _fits(found, expected):
            return stored
        raise ValueError(f"its value has the shape {list(found)}, expected {expected}")

    def _stored(self, node: Node) -> Stored:
        if node.name in self._initialized:
            return _constant(self._initialized[node.name], self._path)
        parts = _distinct(self._restored.get(node.name, ()))
        if self._restore is None and (not parts or Part(node.name) in parts):
            # As a saver does that is given no names.
            parts = [Part(node.name)]
        match parts:
            case [Part(name, spec)]:
                return self._checkpoint.read(name, spec)
            case []:
                found = "nothing restores it"
            case [_]:
                found = "what restores it is computed"
            case _:
                found = "it is restored in several ways"
        raise ValueError(
            f"is a variable, but {found}, expected one value in the checkpoint; name outputs that "
            "do not need it, or freeze the graph"
        )

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self._prefix)

    @cached_property
    def _restored(self) -> dict[str, list[Value]]:
        """What each variable is restored from."""
        found: dict[str, list[Value]] = {}
        for assignment in self._assignments(None if self._restore is None else [self._restore]):
            # Without a node that restores, initial values are among what is assigned.
            if self._restore is not None or isinstance(assignment.value, Part):
                found.setdefault(assignment.variable, []).append(assignment.value)
        return found

    @cached_property
    def _initialized(self) -> dict[str, Assignment]:
        """What is assigned to each variable after restoring."""
        return {a.variable: a for a in self._assignments(self._initialize)}

    def _assignments(self, roots: Iterable[str] | None) -> Iterator[Assignment]:
        """Those that the roots need, or all of the graph."""
        nodes = self._graph.nodes.values() if roots is None else self._graph.needed(roots)
        scopes: deque[tuple[_Scope, Iterable[Node]]] = deque([(_Scope(self._graph, {}), nodes)])
        for _ in range(_MAX_CALLS):
            if not scopes:
                return
            scope, nodes = scopes.popleft()
            for node in nodes:
                if node.op in _ASSIGNS and len(node.inputs) == 2:
                    if (variable := _variable(scope, node.inputs[0])) is not None:
                        yield Assignment(variable, _value(scope, node.inputs[1]), node.name)
                elif node.op in CALLS and (inner := self._called(scope, node)) is not None:
                    scopes.append((inner, inner.graph.nodes.values()))

    def _called(self, scope: _Scope, node: Node) -> _Scope | None:
        """The body of the function that a node calls; None if it is not valid."""
        called = node.proto.attr["f"].func
        try:
            function = self._library.function(called.name, called.attr)
            graph = self._library.body(function).graph
        except ValueError:
            return None
        ports = [Port(a, k) for a, dtypes in function.arguments.items() for k in range(len(dtypes))]
        if len(ports) != len(node.inputs):
            return None
        return _Scope(
            graph, {p: (scope, given) for p, given in zip(ports, node.inputs, strict=True)}
        )


def _constant(assignment: Assignment, path: str | None) -> Stored:
    """The value that a variable gets when the model is loaded."""
    node = assignment.value
    if not isinstance(node, Node):
        raise ValueError(
            f"'{assignment.node}' computes its value when the model is loaded, expected one in the "
            "checkpoint; export the model without that operation"
        )
    type_, value = tensor_value(node.proto.attr["value"].tensor, path)
    if not isinstance(value, BlobAttr):
        raise ValueError("its elements are of type string, expected numbers")
    dtype = dtype_name(node.proto.attr["dtype"].type)
    return Stored(tensor(ELEMENTS[dtype], static_shape(type_) or ()), dtype, value.data)


def _fits(found: tuple[int, ...], expected: list[int]) -> bool:
    return len(found) == len(expected) and all(
        want in (-1, size) for size, want in zip(found, expected, strict=True)
    )


def _source(scope: _Scope, port: Port) -> tuple[_Scope, Port, Node | None]:
    """Where a value comes from, through functions and what only hands it on."""
    for _ in range(1 << 16):
        if port in scope.arguments:
            scope, port = scope.arguments[port]
            continue
        node = scope.graph.nodes.get(port.node)
        if node is None or node.op not in _FORWARDS or not node.inputs:
            return scope, port, node
        port = node.inputs[0]
    return scope, port, None


def _variable(scope: _Scope, port: Port) -> str | None:
    """The variable of the graph that a handle or reference leads to."""
    _, port, node = _source(scope, port)
    return port.node if node is not None and node.op in VARIABLES else None


def _value(scope: _Scope, port: Port) -> Value:
    scope, port, node = _source(scope, port)
    if node is None or node.op == ARGUMENT:
        return None
    if node.op == "Const":
        return node
    if node.op != "RestoreV2" or len(node.inputs) != 3:
        return None
    names, specs = (_strings(scope, source) for source in node.inputs[1:])
    if names is None or specs is None or not port.index < len(names) == len(specs):
        return None
    return Part(names[port.index], specs[port.index])


def _strings(scope: _Scope, port: Port) -> list[str] | None:
    """The elements of a constant of strings."""
    _, _, node = _source(scope, port)
    if node is None or node.op != "Const":
        return None
    try:
        _, value = tensor_value(node.proto.attr["value"].tensor, None)
    except ValueError:
        return None
    if not isinstance(value, ArrayAttr):
        return None
    return [text.data.encode("latin-1").decode("utf-8", "replace") for text in value]
