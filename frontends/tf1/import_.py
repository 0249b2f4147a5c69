"""One-to-one import of TensorFlow graphs: nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.names import UNUSED
from lowerdeck.dialects.core.types import element_type, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.tf1.attributes import RESOURCE, VARIANT
from lowerdeck.dialects.tf1.functions import FunctionOp, ReturnOp
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, attribute_value
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.frontends.tf1.body import BodyImport, Checked, Shared, file_location
from lowerdeck.frontends.tf1.functions import Body, Function, Library
from lowerdeck.frontends.tf1.graph import (
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

_SCALAR_MEANS_UNKNOWN = 21
"""Up to this version of the producer, a placeholder of rank 0 is one whose shape is not known."""

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
    need, and a `tf1.function` for each function of its library that is called there, or in one of
    these. A node whose operator is a function becomes a PartitionedCall of it.

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


class _Importer:
    """The import of one graph."""

    def __init__(self, file: str, proto: GraphDef, path: str | None) -> None:
        self.shared = Shared(file, path, Library(proto.library, "main"))
        self.graph = Graph(proto.node)
        self.producer = producer_version(proto)
        self.symbols = Symbols()

    def run(
        self, outputs: Sequence[str] | None, input_shapes: dict[str, Sequence[int]]
    ) -> ModuleOp:
        for name in self.shared.library.duplicates:
            self._report(None, f"two functions of its library are called '{name}'")
        fetches = self._fetches(outputs)
        main = BodyImport(self.shared, self.graph, fed=self._shapes(input_shapes))
        main.check(fetches)
        functions = self._functions()
        if self.shared.problems:
            raise FrontendError(self.shared.problems)
        graph = self._graph(main, fetches)
        return ModuleOp([graph, *(self._function(*parts) for parts in functions)])

    def _report(self, node: Node | None, message: str) -> None:
        name, op = ("", "") if node is None else (node.name, node.op)
        self.shared.report(name, op, message)

    # What is asked for

    def _fetches(self, outputs: Sequence[str] | None) -> list[Port]:
        if outputs is None:
            fetches = self.graph.results(self.shared.library.output_count)
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

    # Functions

    def _functions(self) -> list[tuple[Function, Body, BodyImport]]:
        """The functions that are used, with their bodies checked."""
        library = self.shared.library
        found: list[tuple[Function, Body, BodyImport]] = []
        for function in library.used:  # which grows: functions call functions
            try:
                body = library.body(function)
            except ValueError as error:
                self._report(None, f"function '{function.name}': {error}")
                continue
            checked = BodyImport(self.shared, body.graph, function)
            checked.check(body.results, body.effects)
            found.append((function, body, checked))
        return found

    # Ops

    def _graph(self, body: BodyImport, fetches: Sequence[Port]) -> GraphOp:
        location = file_location(self.shared.file)
        ops, values = body.build(fetches, (), {}, self._placeholder_type)
        fetch = FetchOp(values, [str(port) for port in fetches])
        fetch.location = location
        graph = GraphOp("main", Region(Block([*ops, fetch])), self.producer)
        graph.location = location
        needed = {node.name for node in body.nodes}
        unused = sorted(
            f"{node.name}:0"
            for node in self.graph.nodes.values()
            if node.op in PLACEHOLDERS and node.name not in needed
        )
        if unused:
            graph.attributes[UNUSED] = ArrayAttr(map(StringAttr, unused))
        return graph

    def _function(self, function: Function, body: Body, checked: BodyImport) -> FunctionOp:
        block = Block(arg_types=function.types[0])
        ports = [Port(a, k) for a, dtypes in function.arguments.items() for k in range(len(dtypes))]
        arguments = dict(zip(ports, block.args, strict=True))
        for port, argument in arguments.items():
            argument.name_hint = port.node if SSAValue.is_valid_name(port.node) else None
        ops, values = checked.build(body.results, body.effects, arguments, self._placeholder_type)
        end = ReturnOp(values)
        op = FunctionOp(function.symbol, Region(block))
        op.location = end.location = file_location(self.shared.file)
        block.add_ops([*ops, end])
        return op

    def _placeholder_type(self, checked: Checked, shape: Sequence[int] | None) -> Attribute:
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
