"""One-to-one import of TensorFlow graphs: nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.names import UNUSED
from lowerdeck.dialects.core.types import element_type, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.tf1.attributes import RESOURCE, VARIANT, value_type
from lowerdeck.dialects.tf1.ops import (
    FetchOp,
    GraphOp,
    Tf1Op,
    attribute_value,
    expected_types,
    op_class,
)
from lowerdeck.dialects.tf1.signatures import Signature, signature_of
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.frontends.tf1.attributes import node_attributes
from lowerdeck.frontends.tf1.graph import (
    NEXT_ITERATION,
    PLACEHOLDERS,
    WITH_DEFAULT,
    Graph,
    Node,
    Port,
    parse_port,
)
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.frontends.tf1.parse import (
    Serializable,
    parse_graph,
    parse_message,
    producer_version,
)
from lowerdeck.frontends.tf1.tensors import tensor_value

_SCALAR_MEANS_UNKNOWN = 21
"""Up to this version of the producer, a placeholder of rank 0 is one whose shape is not known."""

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp", "ReadVariableOp"})

_SHOWN = 10
"""Names that an error lists."""


def import_graph(
    source: str | os.PathLike[str] | Serializable,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    is_text: bool | None = None,
) -> ModuleOp:
    """
    The module for a frozen graph: `tf1.graph @main` with one tf1 op for each node that the outputs
    need.

    `outputs` names tensors (`y:0`, `y`), which may be any. Without it they are the outputs of
    nodes that no node reads: not of placeholders and constants, nor of what training, checks and
    summaries leave behind. They come in the order of their distance from what they are computed
    from, then of their names; the file's order means nothing.

    `input_shapes` replaces the shapes of placeholders (`x:0`, `x`). A PlaceholderWithDefault named
    there is an input, else it is its default. Unknown dimensions become symbols of their own.

    A file is text if its suffix is `.pbtxt`, or as `is_text` says. FrontendError lists everything
    that prevents the import.
    """
    if isinstance(source, str | os.PathLike):
        file = os.fspath(source)
        if is_text is None:
            is_text = file.lower().endswith(".pbtxt")
        importer = _Importer(file, parse_graph(file, is_text=is_text), file)
    else:
        importer = _Importer("model", parse_message("model", source), None)
    return importer.run(outputs, dict(input_shapes or {}))


class _Checked:
    """A node whose attributes fit its operator."""

    def __init__(self, node: Node, signature: Signature, attributes: dict[str, Attribute]) -> None:
        self.node = node
        self.attributes = attributes
        self.inputs = expected_types(signature, attributes, signature.inputs)
        self.outputs = expected_types(signature, attributes, signature.outputs)
        self.result_types: list[Attribute] = [value_type(dtype) for dtype in self.outputs]


class _Importer:
    """The import of one graph."""

    def __init__(self, file: str, proto: GraphDef, path: str | None) -> None:
        self.file = file
        self.path = path
        self.graph = Graph(proto)
        self.functions = {function.signature.name for function in proto.library.function}
        self.producer = producer_version(proto)
        self.file_location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.symbols = Symbols()

    def run(
        self, outputs: Sequence[str] | None, input_shapes: dict[str, Sequence[int]]
    ) -> ModuleOp:
        for proto in self.graph.duplicates:
            self.problems.append(
                Problem(self.file, proto.name, proto.op, "the name is that of another node, too")
            )
        fetches = self._fetches(outputs)
        shapes = self._shapes(input_shapes)
        nodes = self.graph.needed((port.node for port in fetches), shapes)
        self._report_unreadable(fetches)
        checked = {node.name: self._check(node, shapes) for node in nodes}
        self._check_edges(nodes, checked, shapes)
        for port in fetches:
            self._check_port(None, port, checked)
        if self.problems:
            raise FrontendError(self.problems)
        return self._module(nodes, cast("dict[str, _Checked]", checked), fetches, shapes)

    def _report(self, node: Node | None, message: str) -> None:
        name, op = ("", "") if node is None else (node.name, node.op)
        self.problems.append(Problem(self.file, name, op, message))

    # What is asked for

    def _fetches(self, outputs: Sequence[str] | None) -> list[Port]:
        if outputs is None:
            fetches = self.graph.results()
            if not fetches and not self.graph.broken:
                self._report(None, "no node looks like an output; name the outputs")
            return fetches
        fetches: list[Port] = []
        for name in outputs:
            try:
                fetches.append(parse_port(name))
            except ValueError as error:
                self._report(None, f"output {error}")
        if len(set(fetches)) < len(fetches):
            self._report(None, f"the outputs {list(outputs)} name a tensor twice")
        if not outputs:
            self._report(None, "the list of outputs is empty")
        return fetches

    def _shapes(self, input_shapes: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        """The shapes that are given, by node."""
        found: dict[str, list[int]] = {}
        for name, shape in input_shapes.items():
            if any(dim < 0 for dim in shape):
                self._report(None, f"the shape given for '{name}' is negative")
            node = self.graph.nodes.get(name.removesuffix(":0"))
            if node is None or node.op not in (*PLACEHOLDERS, WITH_DEFAULT):
                inputs = [n.name for n in self.graph.nodes.values() if n.op in PLACEHOLDERS]
                known = ", ".join(f"'{name}:0'" for name in sorted(inputs)[:_SHOWN]) or "none"
                self._report(None, f"a shape is given for '{name}', but the inputs are {known}")
            elif node.name in found:
                self._report(node, "two shapes are given for it")
            else:
                found[node.name] = [max(0, dim) for dim in shape]
        return found

    # Checks

    def _report_unreadable(self, fetches: Sequence[Port]) -> None:
        """Nodes that are needed but are not there, or cannot be read."""
        asked = {port.node for port in fetches}
        for name, readers in self.graph.missing.items():
            if name in self.graph.broken:
                op = next((proto.op for proto in self.graph.proto.node if proto.name == name), "")
                self.problems.append(Problem(self.file, name, op, self.graph.broken[name]))
                continue
            if name in asked:
                self._report(None, f"there is no node '{name}' for an output")
            for reader in dict.fromkeys(filter(None, readers)):
                self._report(self.graph.nodes[reader], f"its input '{name}' is not in the graph")

    def _check(self, node: Node, shapes: Mapping[str, object]) -> _Checked | None:
        """The node with its attributes, and what is wrong with it reported."""
        signature = signature_of(node.op)
        if node.op in self.functions:
            self._report(
                node,
                "calls a function of the graph's library; graphs with functions are not "
                "supported, inline them before freezing",
            )
            return None
        if signature is None:
            self._report(node, "its operator is not one of TensorFlow's that are known")
            return None
        if node.op in _VARIABLES:
            self._report(node, "is a variable, expected a constant; freeze the graph first")
            return None
        attributes = node_attributes(
            node.proto, signature, lambda message: self._report(node, message)
        )
        if attributes is None:
            return None
        try:
            return self._with_types(node, signature, attributes, shapes)
        except ValueError as error:
            self._report(node, str(error))
            return None

    def _with_types(
        self,
        node: Node,
        signature: Signature,
        attributes: dict[str, Attribute],
        shapes: Mapping[str, object],
    ) -> _Checked:
        """ValueError if the node is not valid."""
        constant: tuple[Attribute, Attribute] | None = None
        if signature.attrs.get("value", None) and signature.attrs["value"].kind == "tensor":
            constant = tensor_value(node.proto.attr["value"].tensor, self.path)
            attributes["value"] = constant[1]
        checked = _Checked(node, signature, attributes)
        found = len(node.inputs)
        if found != len(checked.inputs):
            raise ValueError(f"found {found} inputs, expected {len(checked.inputs)}")
        if constant is not None:
            dtype = node.proto.attr["value"].tensor.dtype
            if dtype != node.proto.attr["dtype"].type:
                expected = checked.outputs[0]
                raise ValueError(f"its value is of element type {dtype}, expected {expected}")
            checked.result_types = [constant[0]]
        return checked

    def _check_edges(
        self,
        nodes: Sequence[Node],
        checked: Mapping[str, _Checked | None],
        fed: Mapping[str, object],
    ) -> None:
        position = {node.name: index for index, node in enumerate(nodes)}
        for node in nodes:
            if node.name in fed:
                continue
            for index, port in enumerate(node.inputs):
                found = self._check_port(node, port, checked)
                consumer = checked[node.name]
                if found is None or consumer is None:
                    continue
                expected = consumer.inputs[index]
                if found.removesuffix("_ref") != expected.removesuffix("_ref"):
                    self._report(node, f"input {index}, '{port}', is {found}, expected {expected}")
            for producer in (*(port.node for port in node.inputs), *node.controls):
                if position.get(producer, -1) < position[node.name]:
                    continue
                if self.graph.nodes[producer].op not in NEXT_ITERATION:
                    self._report(node, f"a cycle without NextIteration goes through '{producer}'")

    def _check_port(
        self, node: Node | None, port: Port, checked: Mapping[str, _Checked | None]
    ) -> str | None:
        """The element type of an output of a node; None if it is not known, which is reported."""
        producer = checked.get(port.node)
        if producer is None:
            return None
        if port.index < len(producer.outputs):
            return producer.outputs[port.index]
        what = f"output '{port}'" if node is None else f"its input '{port}'"
        count = len(producer.outputs)
        self._report(node, f"{what} is not there: '{port.node}' has {count} outputs")
        return None

    # Ops

    def _module(
        self,
        nodes: Sequence[Node],
        checked: Mapping[str, _Checked],
        fetches: Sequence[Port],
        shapes: Mapping[str, Sequence[int]],
    ) -> ModuleOp:
        depended_on = {name for node in nodes for name in node.controls}
        ops: dict[str, Tf1Op] = {}
        for node in nodes:
            op = self._op(checked[node.name], shapes.get(node.name), node.name in depended_on)
            op.location = self._locate(node.name)
            ops[node.name] = op
        for node in nodes:
            # Cycles are closed only now that all results are there.
            if node.name not in shapes:
                data = [_output(ops, port) for port in node.inputs]
                ops[node.name].operands = [*data, *(_control(ops, name) for name in node.controls)]
        fetch = FetchOp([_output(ops, port) for port in fetches], [str(port) for port in fetches])
        fetch.location = self.file_location
        graph = GraphOp("main", Region(Block([*ops.values(), fetch])), self.producer)
        graph.location = self.file_location
        unused = sorted(
            f"{node.name}:0"
            for node in self.graph.nodes.values()
            if node.op in PLACEHOLDERS and node.name not in ops
        )
        if unused:
            graph.attributes[UNUSED] = ArrayAttr(map(StringAttr, unused))
        return ModuleOp([graph])

    def _op(self, checked: _Checked, shape: Sequence[int] | None, has_control: bool) -> Tf1Op:
        node, types = checked.node, checked.result_types
        name = "Placeholder" if shape is not None else node.op
        if name in PLACEHOLDERS:
            types = [self._placeholder_type(checked, shape)]
        cls = op_class(name)
        assert cls is not None
        return cls([], checked.attributes, has_control=has_control, result_types=types)

    def _placeholder_type(self, checked: _Checked, shape: Sequence[int] | None) -> Attribute:
        """The type of what will be fed: symbols stand for dimensions that are not known."""
        type_: Attribute = checked.result_types[0]
        if type_ in (RESOURCE, VARIANT):
            return type_
        element = element_type(type_)
        signature = signature_of(checked.node.op)
        assert signature is not None
        dims: Sequence[int] | None = shape
        if dims is None:
            dims = attribute_value(signature, checked.attributes, "shape")
            if not dims and self.producer <= _SCALAR_MEANS_UNKNOWN:
                dims = None
        if dims is None:
            return type_
        sizes: list[ExprLike] = [self.symbols.unnamed() if dim < 0 else dim for dim in dims]
        return tensor(element, sizes)

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(name), self.file_location)


def _output(ops: Mapping[str, Tf1Op], port: Port) -> SSAValue:
    return ops[port.node].results[port.index]


def _control(ops: Mapping[str, Tf1Op], name: str) -> SSAValue:
    control = ops[name].control
    assert control is not None
    return control
