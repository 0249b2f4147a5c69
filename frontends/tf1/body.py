"""The nodes of a graph or of a function of its library: checks, and the ops that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.dialects.tf1.advice import next_step
from lowerdeck.dialects.tf1.attributes import RESOURCE, shape_attr, value_type
from lowerdeck.dialects.tf1.functions import FUNCTIONAL, use_problem, uses_of
from lowerdeck.dialects.tf1.ops import (
    PLACEHOLDERS,
    VALUE,
    VARIABLES,
    Tf1Op,
    expected_types,
    op_class,
)
from lowerdeck.dialects.tf1.signatures import Signature, signature_of
from lowerdeck.frontends.errors import Problem
from lowerdeck.frontends.tf1.attributes import node_attributes
from lowerdeck.frontends.tf1.functions import Function, Library
from lowerdeck.frontends.tf1.graph import NEXT_ITERATION, Graph, Node, Port
from lowerdeck.frontends.tf1.restore import Variables
from lowerdeck.frontends.tf1.tensors import tensor_value

_CALL = "PartitionedCall"
"""What a node becomes whose operator is a function."""

PlaceholderType = Callable[["Checked", "Sequence[int] | None"], Attribute]


@dataclass
class Shared:
    """What the graph and its functions have in common while they are imported."""

    file: str
    path: str | None
    """Where the file is, if it is one."""
    library: Library
    variables: Variables | None = None
    """What its variables hold, if there is a checkpoint."""
    problems: list[Problem] = field(default_factory=list[Problem])

    def report(self, name: str, op: str, message: str) -> None:
        """Remember a problem of a node, or of the whole file."""
        self.problems.append(Problem(self.file, name, op, message))


class Checked:
    """A node whose attributes fit its operator."""

    def __init__(
        self, node: Node, op_type: str, signature: Signature, attributes: dict[str, Attribute]
    ) -> None:
        self.node = node
        self.op_type = op_type
        self.attributes = attributes
        self.inputs = expected_types(signature, attributes, signature.inputs)
        self.outputs = expected_types(signature, attributes, signature.outputs)
        self.result_types: list[Attribute] = [value_type(dtype) for dtype in self.outputs]


class BodyImport:
    """
    The import of the nodes of a graph, or of a function's body.

    `fed` are placeholders with given shapes, which need no inputs.
    """

    def __init__(
        self,
        shared: Shared,
        graph: Graph,
        function: Function | None = None,
        fed: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self._shared = shared
        self.graph = graph
        self._function = function
        self._fed = fed or {}
        self._arguments: Mapping[str, Sequence[str]] = function.arguments if function else {}
        self.nodes: list[Node] = []
        self._checked: dict[str, Checked | None] = {}

    def report(self, node: Node | None, message: str) -> None:
        """Remember a problem of a node, or of the whole graph or function."""
        name, op = ("", "") if node is None else (node.name, node.op)
        self._report(name, op, message)

    def _report(self, name: str, op: str, message: str) -> None:
        if self._function is None:
            self._shared.report(name, op, message)
        elif name:
            self._shared.report(self._full_name(name), op, message)
        else:
            self._shared.report("", "", f"function '{self._function.name}': {message}")

    def _full_name(self, name: str) -> str:
        return name if self._function is None else f"{self._function.name}/{name}"

    # Checks

    def check(self, results: Sequence[Port], effects: Sequence[str] = ()) -> None:
        """Read all nodes that results and effects need; what is wrong with them is reported."""
        for proto in self.graph.duplicates:
            self._report(proto.name, proto.op, "the name is that of another node, too")
        asked = [*(port.node for port in results), *effects]
        self.nodes = self.graph.needed(asked, self._fed)
        self._report_unreadable(asked)
        checked = (node for node in self.nodes if not self._is_argument(node))
        self._checked = {node.name: self._check(node) for node in checked}
        self._check_edges()
        found = [self._check_port(None, port) for port in results]
        if self._function is not None and None not in found:
            expected = [dtype.removesuffix("_ref") for dtype in self._function.outputs]
            if (given := [(dtype or "").removesuffix("_ref") for dtype in found]) != expected:
                self.report(None, f"its results are {given}, expected {expected}")

    def _report_unreadable(self, asked: Sequence[str]) -> None:
        """Nodes that are needed but are not there, or cannot be read."""
        for name, readers in self.graph.missing.items():
            if name in self.graph.broken:
                op = next((proto.op for proto in self.graph.protos if proto.name == name), "")
                self._report(name, op, self.graph.broken[name])
                continue
            if name in asked:
                self.report(None, f"there is no node '{name}' for an output; --output names others")
            for reader in dict.fromkeys(filter(None, readers)):
                self.report(self.graph.nodes[reader], f"its input '{name}' is not in the graph")

    def _is_argument(self, node: Node) -> bool:
        """Whether a node stands for an argument of the function; a graph can only pretend so."""
        return node.name in self._arguments

    def _check(self, node: Node) -> Checked | None:
        """The node with its attributes, and what is wrong with it reported."""
        try:
            if node.op in self._shared.library.definitions:
                attributes = self._shared.library.call(node.proto)
                return self._with_types(node, _CALL, attributes)
            return self._check_operator(node)
        except ValueError as error:
            self.report(node, str(error))
            return None

    def _check_operator(self, node: Node) -> Checked | None:
        """ValueError if the node is not valid."""
        signature = signature_of(node.op)
        if signature is None:
            step = next_step(node.op, is_known=False)
            raise ValueError(f"its operator is not one of TensorFlow's that are known; {step}")
        if self._function is not None and node.op in PLACEHOLDERS:
            raise ValueError("found an input inside a function, expected an argument")
        attributes = node_attributes(
            node.proto,
            signature,
            lambda message: self.report(node, message),
            self._shared.library.resolve,
        )
        return None if attributes is None else self._with_types(node, node.op, attributes)

    def _with_types(
        self, node: Node, op_type: str, attributes: dict[str, Attribute]
    ) -> Checked | None:
        """ValueError if the node is not valid."""
        signature = signature_of(op_type)
        assert signature is not None
        constant: tuple[Attribute, Attribute] | None = None
        if signature.attrs.get("value", None) and signature.attrs["value"].kind == "tensor":
            constant = tensor_value(node.proto.attr["value"].tensor, self._shared.path)
            attributes["value"] = constant[1]
        checked = Checked(node, op_type, signature, attributes)
        found = len(node.inputs)
        if found != len(checked.inputs):
            raise ValueError(f"found {found} inputs, expected {len(checked.inputs)}")
        if constant is not None:
            dtype = node.proto.attr["value"].tensor.dtype
            if dtype != node.proto.attr["dtype"].type:
                expected = checked.outputs[0]
                raise ValueError(f"its value is of element type {dtype}, expected {expected}")
            checked.result_types = [constant[0]]
        if op_type in VARIABLES:
            self._give_value(checked)
        if op_type in FUNCTIONAL:
            self._check_uses(signature, attributes)
        return checked

    def _give_value(self, checked: Checked) -> None:
        """The value of a variable as an attribute; ValueError if it is not known."""
        if self._shared.variables is None:
            raise ValueError(
                "is a variable, expected a constant; freeze the graph first, or give its "
                "checkpoint as --weights"
            )
        if self._function is not None:
            raise ValueError("is a variable inside a function, expected an argument")
        stored = self._shared.variables.value(checked.node)
        checked.attributes[VALUE] = BlobAttr(stored.data)
        checked.attributes["shape"] = shape_attr(static_shape(stored.type))
        if checked.result_types != [RESOURCE]:
            checked.result_types = [stored.type]

    def _check_uses(self, signature: Signature, attributes: Mapping[str, Attribute]) -> None:
        """ValueError if a node gives its functions what they do not take."""
        functions = self._shared.library.by_symbol
        uses = uses_of(signature, attributes)
        problems = [use_problem(use, *functions[use.function].types) for use in uses]
        if wrong := [problem for problem in problems if problem]:
            raise ValueError("; ".join(wrong))
        if not uses:
            raise ValueError("found no branches, expected at least one")

    def _check_edges(self) -> None:
        position = {node.name: index for index, node in enumerate(self.nodes)}
        for node in self.nodes:
            if node.name in self._fed or self._is_argument(node):
                continue
            for index, port in enumerate(node.inputs):
                found = self._check_port(node, port)
                consumer = self._checked[node.name]
                if found is None or consumer is None:
                    continue
                expected = consumer.inputs[index]
                if found.removesuffix("_ref") != expected.removesuffix("_ref"):
                    self.report(node, f"input {index}, '{port}', is {found}, expected {expected}")
            for producer in (*(port.node for port in node.inputs), *node.controls):
                if position.get(producer, -1) < position[node.name]:
                    continue
                if self.graph.nodes[producer].op not in NEXT_ITERATION:
                    self.report(node, f"a cycle without NextIteration goes through '{producer}'")

    def _check_port(self, node: Node | None, port: Port) -> str | None:
        """The element type of an output of a node; None if it is not known, which is reported."""
        if port.node in self._arguments:
            return self._arguments[port.node][port.index]
        producer = self._checked.get(port.node)
        if producer is None:
            return None
        if port.index < len(producer.outputs):
            return producer.outputs[port.index]
        what = f"output '{port}'" if node is None else f"its input '{port}'"
        count = len(producer.outputs)
        self.report(node, f"{what} is not there: '{port.node}' has {count} outputs")
        return None

    # Ops

    def build(
        self,
        results: Sequence[Port],
        effects: Sequence[str],
        arguments: Mapping[Port, SSAValue],
        placeholder_type: PlaceholderType,
    ) -> tuple[list[Operation], list[SSAValue]]:
        """The ops of all nodes, and the results followed by the tokens of effects."""
        depended_on = {name for node in self.nodes for name in node.controls} | {*effects}
        ops: dict[str, Tf1Op] = {}
        for node in self.nodes:
            if not self._is_argument(node):
                ops[node.name] = self._op(node, node.name in depended_on, placeholder_type)
        for node in self.nodes:
            # Cycles are closed only now that all results are there.
            if node.name in ops and node.name not in self._fed:
                data = [_value(ops, arguments, port) for port in node.inputs]
                tokens = [_token(ops, name) for name in node.controls]
                ops[node.name].operands = [*data, *tokens]
        values = [_value(ops, arguments, port) for port in results]
        return [*ops.values()], [*values, *(_token(ops, name) for name in effects)]

    def _op(self, node: Node, has_control: bool, placeholder_type: PlaceholderType) -> Tf1Op:
        checked = cast(Checked, self._checked[node.name])
        shape = self._fed.get(node.name)
        name = "Placeholder" if shape is not None else checked.op_type
        types = checked.result_types
        if name in PLACEHOLDERS:
            types = [placeholder_type(checked, shape)]
        cls = op_class(name)
        assert cls is not None
        op = cls([], checked.attributes, has_control=has_control, result_types=types)
        op.location = self._locate(node.name)
        return op

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(self._full_name(name)), file_location(self._shared.file))


@lru_cache(maxsize=16)
def file_location(file: str) -> FileLineColLoc:
    """The location of a whole file."""
    return FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))


def _value(ops: Mapping[str, Tf1Op], arguments: Mapping[Port, SSAValue], port: Port) -> SSAValue:
    return arguments[port] if port in arguments else ops[port.node].results[port.index]


def _token(ops: Mapping[str, Tf1Op], name: str) -> SSAValue:
    token = ops[name].control
    assert token is not None
    return token
