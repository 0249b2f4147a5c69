"""One-to-one import of TensorFlow graphs: nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from numpy.typing import ArrayLike
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.names import DEFAULT, NAME, UNUSED
from lowerdeck.dialects.core.types import COMPUTABLE, element_type, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.tf1.attributes import RESOURCE, VARIANT
from lowerdeck.dialects.tf1.functions import FunctionOp, ReturnOp
from lowerdeck.dialects.tf1.ops import PLACEHOLDERS, FetchOp, GraphOp, attribute_value
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.fixed import unknown_input
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.frontends.tf1.body import BodyImport, Checked, Shared, file_location
from lowerdeck.frontends.tf1.feeds import Feed, with_feeds
from lowerdeck.frontends.tf1.functions import Body, Function, Library
from lowerdeck.frontends.tf1.graph import WITH_DEFAULT, Graph, Node, Port, parse_port
from lowerdeck.frontends.tf1.optional import default_of, optional_placeholders
from lowerdeck.frontends.tf1.parse import (
    Serializable,
    parse_graph,
    parse_message,
    producer_version,
)
from lowerdeck.frontends.tf1.restore import Variables
from lowerdeck.frontends.tf1.source import Interface, Source
from lowerdeck.frontends.tf1.tensors import tensor_value

_SCALAR_MEANS_UNKNOWN = 21
"""Up to this version of the producer, a placeholder of rank 0 is one whose shape is not known."""

_SHOWN = 10
"""Names that an error lists."""


def import_graph(
    source: str | os.PathLike[str] | Serializable,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    optional: Collection[str] | None = None,
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

    `input_shapes` replaces the shapes of placeholders (`x:0`, `x`). Unknown dimensions become
    symbols of their own. A PlaceholderWithDefault that is named there or in the signature is an
    input, and so is one that `optional` names, or without it `optional_placeholders` finds; it may
    be left out if its default is a constant. Others are their defaults.

    Any other tensor that is named there becomes an input, too, and what computes it is not needed.
    `fixed` gives tensors values, placeholders or any: each becomes a constant.

    A file is text if its suffix is `.pbtxt`, or as `is_text` says. FrontendError lists everything
    that prevents the import.
    """
    if isinstance(source, str | os.PathLike):
        file = os.fspath(source)
        if is_text is None:
            is_text = file.lower().endswith(".pbtxt")
        found = Source(file, file, parse_graph(file, is_text=is_text))
    else:
        found = Source("model", None, parse_message("model", source))
    return import_source(
        found, outputs=outputs, input_shapes=input_shapes, fixed=fixed, optional=optional
    )


def import_source(
    source: Source,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    optional: Collection[str] | None = None,
) -> ModuleOp:
    """
    `import_graph` for a graph with what belongs to it.

    With a signature, its inputs and outputs have the names that they have there; `outputs`,
    `input_shapes`, `fixed` and `optional` may be these names, or tensors. Variables have the values
    of the checkpoint.
    """
    return _Importer(source).run(outputs, dict(input_shapes or {}), fixed or {}, optional)


class _Importer:
    """The import of one graph."""

    def __init__(self, source: Source) -> None:
        proto = source.graph
        self.interface = source.interface or Interface({}, {}, {})
        self.graph = Graph(proto.node)
        variables = None
        if source.prefix is not None:
            variables = Variables(
                self.graph,
                proto.library,
                source.path,
                source.prefix,
                source.restore,
                source.initialize,
            )
        library = Library(proto.library, "main")
        self.shared = Shared(source.file, source.path, library, variables)
        self.input_names: Mapping[str, str] = {}
        self.producer = producer_version(proto)
        self.symbols = Symbols()
        self.defaults: dict[str, DefaultAttr] = {}
        """What inputs are if they are left out, by the names of their nodes."""

    def run(
        self,
        outputs: Sequence[str] | None,
        input_shapes: dict[str, Sequence[int]],
        fixed: Mapping[str, ArrayLike],
        optional: Collection[str] | None,
    ) -> ModuleOp:
        for name in self.shared.library.duplicates:
            self._report(None, f"two functions of its library are called '{name}'")
        fetches = self._fetches(outputs)
        shapes = self._shapes(input_shapes)
        given = self._fixed(fixed)
        feeds = self._feeds(input_shapes, given, self._optional(optional, fetches))
        self._find_defaults(feeds, shapes)
        fed = with_feeds(
            self.graph,
            feeds,
            self.shared.report,
            has_unknown_scalars=self.producer <= _SCALAR_MEANS_UNKNOWN,
        )
        self.graph, self.input_names = fed.graph, fed.names
        names = [name for name, _ in fetches]
        ports = [fed.moved.get(port, port) for _, port in fetches]
        shapes = {
            fed.moved.get(port, port).node: shape
            for port, shape in shapes.items()
            if port not in given
        }
        main = BodyImport(self.shared, self.graph, fed=shapes)
        main.check(ports)
        functions = self._functions()
        if self.shared.problems:
            raise FrontendError(self.shared.problems)
        graph = self._graph(main, names, ports)
        return ModuleOp([graph, *(self._function(*parts) for parts in functions)])

    def _report(self, node: Node | None, message: str) -> None:
        name, op = ("", "") if node is None else (node.name, node.op)
        self.shared.report(name, op, message)

    # What is asked for

    def _fetches(self, outputs: Sequence[str] | None) -> list[tuple[str, Port]]:
        """The outputs by name."""
        if outputs is None and self.interface.outputs:
            return list(self.interface.outputs.items())
        if outputs is None:
            found = self.graph.results(self.shared.library.output_count)
            if not found and not self.graph.broken:
                self._report(None, "no node looks like an output; name the outputs with --output")
            return [(str(port), port) for port in found]
        fetches: list[tuple[str, Port]] = []
        for name in outputs:
            if name in self.interface.outputs:
                fetches.append((name, self.interface.outputs[name]))
                continue
            try:
                port = parse_port(name)
                fetches.append((str(port), port))
            except ValueError as error:
                self._report(None, f"output {error}")
        if len(set(fetches)) < len(fetches):
            self._report(None, f"the outputs {list(outputs)} name a tensor twice")
        if not outputs:
            self._report(None, "the list of outputs is empty")
        return fetches

    def _input(self, name: str) -> Port | None:
        """The tensor that a user means by the name of an input."""
        if name in self.interface.inputs:
            return self.interface.inputs[name]
        try:
            return parse_port(name)
        except ValueError:
            return None

    def _shapes(self, input_shapes: Mapping[str, Sequence[int]]) -> dict[Port, list[int]]:
        """The shapes that are given."""
        found: dict[Port, list[int]] = {}
        for name, shape in input_shapes.items():
            if any(dim < 0 for dim in shape):
                self._report(None, f"the shape given for '{name}' is negative")
            port = self._input(name)
            if port is None or port.node not in self.graph.nodes:
                known = ", ".join(f"'{name}'" for name in self._inputs()[:_SHOWN]) or "none"
                self._report(None, f"a shape is given for '{name}', but the inputs are {known}")
            elif port in found:
                self._report(self.graph.nodes[port.node], "two shapes are given for it")
            else:
                found[port] = [max(0, dim) for dim in shape]
        return found

    def _inputs(self) -> list[str]:
        """The names of the inputs, for messages."""
        inputs = [f"{n.name}:0" for n in self.graph.nodes.values() if n.op in PLACEHOLDERS]
        return sorted(self.interface.inputs or inputs)

    def _fixed(self, fixed: Mapping[str, ArrayLike]) -> dict[Port, ArrayLike]:
        """The values that are given."""
        found: dict[Port, ArrayLike] = {}
        for name, value in fixed.items():
            port = self._input(name)
            if port is None or port.node not in self.graph.nodes:
                self._report(None, unknown_input(name, self._inputs()))
            elif port in found:
                self._report(self.graph.nodes[port.node], "two values are given for it")
            else:
                found[port] = value
        return found

    def _optional(
        self, names: Collection[str] | None, fetches: Sequence[tuple[str, Port]]
    ) -> list[Port]:
        """The placeholders that are inputs because they may be left out."""
        if names is None:
            asked = [port.node for _, port in fetches]
            return [Port(name, 0) for name in optional_placeholders(self.graph, asked)]
        found: list[Port] = []
        for name in names:
            port = self._input(name)
            node = None if port is None else self.graph.nodes.get(port.node)
            if port is not None and node is not None and node.op == WITH_DEFAULT:
                found.append(port)
                continue
            nodes = self.graph.nodes.values()
            known = [f"'{node.name}:0'" for node in nodes if node.op == WITH_DEFAULT]
            listed = ", ".join(sorted(known)[:_SHOWN]) or "none"
            text = f"'{name}' is called optional, but the placeholders with a default are {listed}"
            self._report(None, text)
        return found

    def _find_defaults(self, feeds: Mapping[Port, Feed], shapes: dict[Port, list[int]]) -> None:
        """
        The constants that inputs are if they are left out. One of which no rank is known gets the
        shape of its default.
        """
        for port, feed in feeds.items():
            node = self.graph.nodes.get(port.node)
            if feed.value is not None or node is None or node.op != WITH_DEFAULT:
                continue
            if (constant := default_of(self.graph, port.node)) is None:
                continue
            try:
                type_, value = tensor_value(constant.attr["value"].tensor, self.shared.path)
            except ValueError as error:
                self.shared.report(constant.name, constant.op, str(error))
                continue
            if isinstance(value, BlobAttr) and element_type(type_) in COMPUTABLE:
                default = self.defaults[port.node] = DefaultAttr(type_, value)
                shape = node.proto.attr["shape"].shape
                old = self.producer <= _SCALAR_MEANS_UNKNOWN and not shape.dim
                if shape.unknown_rank or old:
                    shapes.setdefault(port, list(default.shape))

    def _feeds(
        self,
        input_shapes: Mapping[str, Sequence[int]],
        fixed: Mapping[Port, ArrayLike],
        optional: Sequence[Port],
    ) -> dict[Port, Feed]:
        """
        The inputs of the signature, others for which a shape or a value is given, and those that
        may be left out.
        """
        named = {port: name for name, port in self.interface.inputs.items()}
        given = [port for name in input_shapes if (port := self._input(name)) is not None]
        return {
            port: Feed(
                named.get(port, str(port)),
                self.interface.shapes.get(named.get(port, "")),
                fixed.get(port),
            )
            for port in (*named, *given, *fixed, *optional)
            if port in named or port.node in self.graph.nodes
        }

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

    def _graph(self, body: BodyImport, names: Sequence[str], fetches: Sequence[Port]) -> GraphOp:
        location = file_location(self.shared.file)
        ops, values = body.build(fetches, (), {}, self._placeholder_type)
        for node, op in zip(body.nodes, ops, strict=True):
            if node.name in self.input_names:
                op.attributes[NAME] = StringAttr(self.input_names[node.name])
            default = self.defaults.get(node.name)
            if default is not None and default.fits(op.results[0].type):
                op.attributes[DEFAULT] = default
        fetch = FetchOp(values, names)
        fetch.location = location
        graph = GraphOp("main", Region(Block([*ops, fetch])), self.producer)
        graph.location = location
        needed = {node.name for node in body.nodes}
        unused = sorted(
            self.input_names.get(node.name, f"{node.name}:0")
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
