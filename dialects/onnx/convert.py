"""Nodes as ops, and graphs as regions; `nodes.py` has the other direction."""

from __future__ import annotations

import heapq
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, StringAttr
from xdsl.dialects.builtin import NameLoc as BuiltinNameLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.onnx.attributes import TensorReader, attribute_from_proto
from lowerdeck.dialects.onnx.inference import result_types
from lowerdeck.dialects.onnx.ops import (
    InitializerOp,
    NoneOp,
    OnnxOp,
    YieldOp,
    attribute_kinds,
    formal_of,
    is_optional,
    kind_name,
    kind_number,
    latest_opset,
    op_class,
)
from lowerdeck.dialects.onnx.tensors import TensorAttr, sparse_from_proto, tensor_from_proto
from lowerdeck.dialects.onnx.types import UNTYPED, ShapeReader, no_dims, type_from_proto
from lowerdeck.dialects.records import record

Opset: TypeAlias = Mapping[str, int]
"""The version of each operator domain; the default domain is the empty string."""
Scope: TypeAlias = MutableMapping[str, SSAValue]
RegionBuilder: TypeAlias = Callable[[GraphProto], Region]
FunctionKey: TypeAlias = tuple[str, str, str]
FunctionMaker: TypeAlias = Callable[[NodeProto], FunctionProto]
"""The function that a node calls; ValueError if it has none for this node."""

MAX_NODES = 1_000_000
"""Functions that expand to more nodes than this are refused."""


@record
class NodeProblem:
    """One thing that is wrong with a node (None: with the graph itself)."""

    node: NodeProto | None
    message: str

    def __str__(self) -> str:
        if self.node is None:
            return self.message
        return f"node '{node_name(self.node)}' ({self.node.op_type}): {self.message}"


class ConversionError(ValueError):
    """Nodes that have no op; `problems` lists all of them."""

    def __init__(self, problems: Sequence[NodeProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def node_name(node: NodeProto) -> str:
    """The node's name, or the name of its first output."""
    return node.name or next((name for name in node.output if name), "")


def domain_of(domain: str) -> str:
    """The domain without its aliases: the default domain is the empty string."""
    return "" if domain == "ai.onnx" else domain


# Node to op


def node_to_op(
    node: NodeProto,
    operands: Mapping[str, SSAValue],
    opset: Opset,
    location: LocationAttr = UNKNOWN_LOC,
    region: RegionBuilder | None = None,
    tensors: TensorReader = tensor_from_proto,
) -> OnnxOp:
    """
    The op for `node`, of the newest operator version that `opset` allows; ConversionError if there
    is none or the node does not fit its schema.

    `operands` has a value for each input name, for the empty name that of an `onnx.none`. Subgraphs
    are built by `region`; tensors in attributes are read by `tensors`.
    """
    cls = op_class(node.domain, node.op_type, opset.get(domain_of(node.domain), 0))
    if cls is None:
        raise ConversionError([NodeProblem(node, unknown_operator(node, opset))])
    cls = _meant(node, cls)
    problems = [NodeProblem(node, message) for message in _misfits(node, cls)]
    if problems:
        raise ConversionError(problems)
    properties: dict[str, Attribute] = {}
    regions: dict[str, Region] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            if region is None:
                raise ValueError(f"{node.op_type}: its subgraphs cannot be built here")
            regions[attribute.name] = region(attribute.g)
            continue
        try:
            properties[attribute.name] = attribute_from_proto(attribute, tensors)
        except UnicodeDecodeError:
            problems.append(NodeProblem(node, f"attribute '{attribute.name}' is not UTF-8 text"))
        except ValueError as error:
            problems.append(NodeProblem(node, f"attribute '{attribute.name}': {error}"))
    if problems:
        raise ConversionError(problems)
    values = [operands[name] for name in node.input]
    ordered = [regions.get(name) or Region() for name in cls.graph_names]
    present = [bool(name) or not _may_lack(cls, k) for k, name in enumerate(node.output)]
    return cls.create(
        operands=values,
        result_types=result_types(cls, values, properties, ordered, present),
        properties=properties,
        regions=ordered,
        location=location,
    )


def _may_lack(cls: type[OnnxOp], index: int) -> bool:
    """True for an optional output; others without a name have an unused value."""
    formal = formal_of(cls.schema.outputs, index)
    return formal is not None and is_optional(formal)


def unknown_operator(node: NodeProto, opset: Opset) -> str:
    """Why there is no operator for `node`."""
    domain = domain_of(node.domain)
    operator = f"'{domain}.{node.op_type}'" if domain else f"'{node.op_type}'"
    if domain not in opset:
        return f"the model imports no opset for the domain '{domain}' of operator {operator}"
    return (
        f"operator {operator} is unknown in opset {opset[domain]} of onnx {onnx.__version__}; "
        "export the model without it, give it as a function of the model, or load a plugin that "
        "defines it"
    )


def _meant(node: NodeProto, cls: type[OnnxOp]) -> type[OnnxOp]:
    """
    The version of the operator that a node was written for: the next one that has all of its
    attributes, if the opset's own has not, and the other one adds nothing but attributes.
    """
    names = {attribute.name for attribute in node.attribute}
    own = cls.schema
    if names <= own.attributes.keys() or (latest := latest_opset(node.domain)) is None:
        return cls
    for version in range(cls.schema.since_version + 1, latest + 1):
        later = op_class(node.domain, node.op_type, version)
        if later is None or not names <= later.schema.attributes.keys():
            continue
        return later if _extends(later, cls) else cls
    return cls


def _extends(later: type[OnnxOp], cls: type[OnnxOp]) -> bool:
    """True if a version of an operator differs from an older one by attributes that it adds."""
    new, old = later.schema, cls.schema
    if (new.min_input, new.min_output) != (old.min_input, old.min_output):
        return False
    shared = [(new.attributes.get(name), found) for name, found in old.attributes.items()]
    return new.max_input >= old.max_input and all(
        other is not None
        and other.type == found.type
        and other.required == found.required
        and other.default_value == found.default_value
        for other, found in shared
    )


def _misfits(node: NodeProto, cls: type[OnnxOp]) -> Iterator[str]:
    """What in the node contradicts its schema: attributes and the numbers of inputs and outputs."""
    schema = cls.schema
    if not schema.min_input <= len(node.input) <= schema.max_input:
        expected = _range(schema.min_input, schema.max_input)
        yield f"found {len(node.input)} inputs, expected {expected}"
    if not schema.min_output <= len(node.output) <= schema.max_output:
        expected = _range(schema.min_output, schema.max_output)
        yield f"found {len(node.output)} outputs, expected {expected}"
    kinds = attribute_kinds(cls)
    names = Counter(attribute.name for attribute in node.attribute)
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"attribute '{name}' is given twice"
    for attribute in node.attribute:
        if (kind := kinds.get(attribute.name)) is None:
            expected = ", ".join(sorted(kinds)) or "none"
            yield f"found attribute '{attribute.name}', expected one of: {expected}"
        elif attribute.ref_attr_name:
            yield f"attribute '{attribute.name}' refers to an attribute of a function"
        elif attribute.type != kind_number(kind):
            found = AttributeProto.AttributeType.Name(attribute.type)
            yield f"attribute '{attribute.name}' is of kind {found}, expected {kind_name(kind)}"
    for name, attribute in sorted(schema.attributes.items()):
        if attribute.required and name not in names:
            yield f"the required attribute '{name}' is missing"


def _range(least: int, most: int) -> str:
    if most >= 1 << 30:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"


# Graph to ops


@dataclass
class GraphBuilder:
    """
    Builds the ops of nodes in the order of their dependencies; what is wrong goes to `problems`.

    Calls of `functions` are replaced by the function's nodes.
    """

    opset: Opset
    locate: Callable[[str], LocationAttr] = lambda name: BuiltinNameLoc(
        StringAttr(name), UNKNOWN_LOC
    )
    """The location for a node's name."""
    tensors: TensorReader = tensor_from_proto
    functions: Mapping[FunctionKey, FunctionMaker] = field(
        default_factory=dict[FunctionKey, FunctionMaker]
    )
    problems: list[NodeProblem] = field(default_factory=list[NodeProblem])
    prefix: str = ""
    """Put before the names of nodes: the names of the function calls they come from."""
    calls: tuple[FunctionKey, ...] = ()
    budget: list[int] = field(default_factory=lambda: [MAX_NODES])
    """The number of nodes that may still be built, shared with nested builders."""
    unread: set[str] = field(default_factory=set[str])
    """The names of initializers that could not be read: their users are not at fault."""

    def report(self, node: NodeProto | None, message: str) -> None:
        """Note a problem and go on."""
        self.problems.append(NodeProblem(node, message))

    def nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> list[Operation]:
        """The ops for `nodes`; their outputs are added to `scope`."""
        ops: list[Operation] = []
        if any("" in node.input for node in nodes):
            ops.append(none := NoneOp())
            scope[""] = none.output
        for node in self._in_order(nodes, scope):
            self.budget[0] -= 1
            if self.budget[0] < 0:
                self.report(node, f"the model's functions expand to more than {MAX_NODES} nodes")
                break
            ops += self._node(node, scope)
        return ops

    def graph_region(self, graph: GraphProto, scope: Scope) -> Region:
        """The region of a subgraph, which sees the values in `scope`."""
        inner: Scope = ChainMap({}, scope)
        names = [value.name for value in graph.input]
        block = Block(arg_types=[self.type_of(value, no_dims) for value in graph.input])
        for name, arg in zip(names, block.args, strict=True):
            self.define(None, name, arg, inner)
        block.add_ops(self.initializers(graph, inner))
        block.add_ops(self.nodes(graph.node, inner))
        block.add_op(YieldOp(self.outputs([value.name for value in graph.output], inner, block)))
        return Region(block)

    def type_of(self, value: onnx.ValueInfoProto, shape: ShapeReader) -> Attribute:
        """The declared type of an input."""
        try:
            return type_from_proto(value.type, shape)
        except ValueError as error:
            self.report(None, f"input '{value.name}': {error}")
            return UNTYPED

    def initializers(
        self,
        graph: GraphProto,
        scope: Scope,
        needed: AbstractSet[str] | None = None,
        left_out: Container[str] = (),
    ) -> list[Operation]:
        """
        The ops for constants (of the `needed` names, without those that are `left_out`); they
        replace inputs of the same name.
        """
        ops: list[Operation] = []
        for tensor in graph.initializer:
            if tensor.name in left_out or (needed is not None and tensor.name not in needed):
                continue
            self._initializer(tensor.name, lambda t=tensor: self.tensors(t), scope, ops)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            if name in left_out or (needed is not None and name not in needed):
                continue
            self._initializer(
                name,
                lambda s=sparse: TensorAttr.of(sparse_from_proto(s).array()),
                scope,
                ops,
            )
        return ops

    def _initializer(
        self, name: str, read: Callable[[], TensorAttr], scope: Scope, ops: list[Operation]
    ) -> None:
        try:
            op = InitializerOp(read())
        except ValueError as error:
            is_text = isinstance(error, UnicodeDecodeError)
            found = "a string is not UTF-8 text" if is_text else error
            self.unread.add(name)
            return self.report(None, f"initializer '{name}': {found}")
        op.location = self.locate(self.prefix + name)
        ops.append(op)
        local = scope.maps[0] if isinstance(scope, ChainMap) else scope
        if isinstance(getattr(local.get(name), "owner", None), InitializerOp):
            return self.report(None, f"initializer '{name}' is given twice")
        local.pop(name, None)
        self.define(None, name, op.output, scope)

    def outputs(self, names: Sequence[str], scope: Scope, block: Block) -> list[SSAValue]:
        """The values of a graph's outputs; missing ones are reported and replaced."""
        values: list[SSAValue] = []
        for name in names:
            if name not in scope:
                if name not in self.unread:
                    self.report(None, f"output '{name}' is not computed by any node")
                block.add_op(none := NoneOp())
                scope[name] = none.output
            values.append(scope[name])
        return values

    def define(self, node: NodeProto | None, name: str, value: SSAValue, scope: Scope) -> None:
        """Bind a name; it is reported if this graph has a value of that name already."""
        local = scope.maps[0] if isinstance(scope, ChainMap) else scope
        if not name or name in local:
            found = f"tensor '{name}' is defined twice" if name else "a tensor has no name"
            self.report(node, found)
        scope[name] = value
        value.name_hint = name_hint(name)

    def _in_order(self, nodes: Sequence[NodeProto], scope: Scope) -> Sequence[NodeProto]:
        """The nodes, each after those it depends on, otherwise in the given order."""
        needed = [names_used(node) for node in nodes]
        known = set[str]()
        for node, names in zip(nodes, needed, strict=True):
            if not all(name in known or name in scope for name in names):
                return self._sorted(nodes, needed)
            known.update(node.output)
        return nodes

    def _sorted(
        self, nodes: Sequence[NodeProto], needed: Sequence[Sequence[str]]
    ) -> Sequence[NodeProto]:
        producers = {name: k for k, node in enumerate(nodes) for name in node.output if name}
        waiting = [{producers[n] for n in names if n in producers} for names in needed]
        consumers: list[list[int]] = [[] for _ in nodes]
        for index, sources in enumerate(waiting):
            for source in sources:
                consumers[source].append(index)
        ready = [index for index, sources in enumerate(waiting) if not sources]
        order: list[int] = []
        while ready:
            order.append(index := heapq.heappop(ready))
            for consumer in consumers[index]:
                waiting[consumer].discard(index)
                if not waiting[consumer]:
                    heapq.heappush(ready, consumer)
        for index in sorted(set(range(len(nodes))) - set(order)):
            others = ", ".join(f"'{node_name(nodes[k])}'" for k in sorted(waiting[index])[:4])
            self.report(nodes[index], f"it is part of or behind a cycle, waiting for {others}")
        return [nodes[index] for index in order]

    def _node(self, node: NodeProto, scope: Scope) -> list[Operation]:
        missing = [name for name in names_used(node) if name not in scope]
        for name in (name for name in missing if name not in self.unread):
            self.report(node, f"input '{name}' is not the name of any tensor before it")
        key = (domain_of(node.domain), node.op_type, node.overload)
        if missing:
            ops = self._placeholders(node, scope)
        elif key in self.functions:
            ops = self._call(node, key, scope)
        else:
            ops = self._op(node, scope)
        return ops

    def _op(self, node: NodeProto, scope: Scope) -> list[Operation]:
        try:
            op = node_to_op(
                node,
                scope,
                self.opset,
                self.locate(self.prefix + node_name(node)),
                lambda graph: self.graph_region(graph, scope),
                self.tensors,
            )
        except ConversionError as error:
            self.problems += error.problems
            return self._placeholders(node, scope)
        try:
            op.verify_()
        except VerifyException as error:
            self.report(node, str(error))
        for name, result in zip(node.output, op.results, strict=True):
            if name:
                self.define(node, name, result, scope)
        return [op]

    def _placeholders(self, node: NodeProto, scope: Scope) -> list[Operation]:
        """Values for the outputs of a node that could not be built, so that others still can."""
        for name in node.output:
            if name and name not in scope:
                scope[name] = Block(arg_types=[UNTYPED]).args[0]
        return []

    def _call(self, node: NodeProto, key: FunctionKey, scope: Scope) -> list[Operation]:
        """The nodes of a function in place of its call."""
        if key in self.calls:
            self.report(node, f"function '{node.op_type}' calls itself")
            return self._placeholders(node, scope)
        try:
            function = self.functions[key](node)
        except ValueError as error:
            self.report(node, str(error))
            return self._placeholders(node, scope)
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            self.report(
                node,
                f"found {len(node.input)} inputs and {len(node.output)} outputs, but the function "
                f"has {len(function.input)} and {len(function.output)}",
            )
            return self._placeholders(node, scope)
        given = {attribute.name: attribute for attribute in node.attribute}
        inner = GraphBuilder(
            opset_of(function.opset_import),
            self.locate,
            self.tensors,
            self.functions,
            self.problems,
            f"{self.prefix}{node_name(node)}/",
            (*self.calls, key),
            self.budget,
        )
        wanted = [bool(name) for name in node.output]
        operands = [scope[name] for name in node.input]
        ops, results = inner.function(function, operands, given, wanted)
        for name, value in zip(node.output, results, strict=False):
            if name and value is not None:
                self.define(node, name, value, scope)
        return ops

    def function(
        self,
        function: FunctionProto,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, AttributeProto],
        wanted: Sequence[bool],
    ) -> tuple[list[Operation], list[SSAValue | None]]:
        """
        The ops and results of a function's body for the operands and attributes of a call.

        `wanted` tells which of the first outputs are used; the others are None.
        """
        ops: list[Operation] = []
        scope: Scope = dict(zip(function.input, operands, strict=False))
        if len(operands) < len(function.input):
            ops.append(none := NoneOp())
            scope |= {name: none.output for name in function.input[len(operands) :]}
        bindings = {
            **{default.name: default for default in function.attribute_proto},
            **attributes,
        }
        hints = {value: value.name_hint for value in scope.values()}
        ops += self.nodes([bind_attributes(node, bindings) for node in function.node], scope)
        for value, hint in hints.items():
            value.name_hint = hint
        results: list[SSAValue | None] = []
        for name, is_wanted in zip(function.output, wanted, strict=False):
            if is_wanted and name not in scope:
                self.report(None, f"output '{name}' of a function is not computed by any node")
            results.append(scope.get(name) if is_wanted else None)
        return ops, results


def opset_of(imports: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The imported version of each domain."""
    return {domain_of(entry.domain): entry.version for entry in imports}


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-$]")


def name_hint(name: str) -> str | None:
    """A name for the text form: the tensor's, with other characters replaced."""
    text = _NOT_IN_NAMES.sub("_", name)
    if not text:
        return None
    # A hint loses `_` and digits at its end, and what is left must be a name.
    text = f"v{text}" if text[0].isdigit() or text[0] == "_" else text
    return text if SSAValue.is_valid_name(text) else None


def bind_attributes(node: NodeProto, bindings: Mapping[str, AttributeProto]) -> NodeProto:
    """
    The node with its references to the attributes of a function replaced by their values, in
    subgraphs too; a reference to an attribute without a value disappears.
    """
    if not _refers(node):
        return node
    bound = NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if (value := bindings.get(attribute.ref_attr_name)) is not None and value.type:
                bound.attribute.add().CopyFrom(value)
                bound.attribute[-1].name = attribute.name
            continue
        bound.attribute.add().CopyFrom(attribute)
        if attribute.type == AttributeProto.GRAPH:
            inner = [bind_attributes(n, bindings) for n in attribute.g.node]
            del bound.attribute[-1].g.node[:]
            bound.attribute[-1].g.node.extend(inner)
    return bound


def _refers(node: NodeProto) -> bool:
    return any(
        attribute.ref_attr_name
        or (attribute.type == AttributeProto.GRAPH and any(map(_refers, attribute.g.node)))
        for attribute in node.attribute
    )


def names_used(node: NodeProto) -> list[str]:
    """The node's inputs, and what its subgraphs use of the values around the node."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            names += free_names(attribute.g)
    return names


def free_names(graph: GraphProto) -> list[str]:
    """The names that a graph uses without defining them."""
    defined = {value.name for value in graph.input}
    defined.update(tensor.name for tensor in graph.initializer)
    defined.update(sparse.values.name for sparse in graph.sparse_initializer)
    defined.update(name for node in graph.node for name in node.output)
    used = [name for node in graph.node for name in names_used(node)]
    used += [value.name for value in graph.output]
    return [name for name in dict.fromkeys(used) if name not in defined]
