"""
The functions of a graph's library: with values for their attributes, and with their nodes read as
those of a graph are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Attribute

from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.attributes import DTypeAttr, value_type
from lowerdeck.dialects.tf1.ops import COUNT_LIMIT
from lowerdeck.dialects.tf1.signatures import Argument, Signature, signature_of
from lowerdeck.frontends.tf1.graph import Graph, Node, Port, read_node
from lowerdeck.frontends.tf1.graph_pb2 import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    NameAttrList,
    NodeDef,
    OpDef,
)
from lowerdeck.frontends.tf1.tensors import dtype_name

ARGUMENT = "_Arg"
"""The operator of nodes that stand for the arguments of a function."""

_LIMIT = 1 << 14
"""Functions, each with values for its attributes, that one graph may use."""

_DEPTH = 32
"""How deep functions may be the values of attributes of functions that are."""

_INPUT = re.compile(r"(?P<node>[^:]+):(?P<output>[^:]+)(:(?P<index>\d{1,9}))?")

Values = Mapping[str, AttrValue]
"""Values for the attributes of a function."""


@record
class Function:
    """A function with values for its attributes."""

    symbol: str
    definition: FunctionDef
    values: Values
    arguments: Mapping[str, tuple[str, ...]]
    """The element types of the values that each argument stands for."""
    outputs: tuple[str, ...]
    """The element types of the results."""

    @property
    def name(self) -> str:
        """The name in the library."""
        return self.definition.signature.name

    @property
    def inputs(self) -> list[str]:
        """The element types of all arguments."""
        return [dtype for dtypes in self.arguments.values() for dtype in dtypes]

    @property
    def types(self) -> tuple[list[Attribute], list[Attribute]]:
        """The types of the arguments and of the results."""
        return list(map(value_type, self.inputs)), list(map(value_type, self.outputs))


@record
class Body:
    """The nodes of a function, and what it needs of them."""

    graph: Graph
    results: tuple[Port, ...]
    effects: tuple[str, ...]
    """The nodes that are run although no result may need them."""


class Library:
    """The functions of a graph; `used` has those that something asked for, in order."""

    def __init__(self, proto: FunctionDefLibrary, *taken: str) -> None:
        """`taken` are symbols that no function may have."""
        names = [function.signature.name for function in proto.function]
        self.duplicates = [name for name, count in Counter(names).items() if count > 1]
        self.definitions = dict(zip(names, proto.function, strict=True))
        self.used: list[Function] = []
        self.by_symbol: dict[str, Function] = {}
        self._known: dict[tuple[str, bytes], Function] = {}
        self._taken = set(taken)

    def function(self, name: str, attributes: Values) -> Function:
        """The function of a name with values for its attributes; ValueError if there is none."""
        definition = self.definitions.get(name)
        if definition is None:
            raise ValueError(f"the function '{name}' is not in the graph's library")
        values = {
            attribute.name: attribute.default_value
            for attribute in definition.signature.attr
            if attribute.HasField("default_value")
        } | {key: value for key, value in attributes.items() if not key.startswith("_")}
        if any(_is_deeper(value, _DEPTH) for value in values.values()):
            raise ValueError(f"its attributes name functions more than {_DEPTH} deep")
        key = name, _serialized(values)
        if key not in self._known:
            if len(self.used) >= _LIMIT:
                raise ValueError(f"more than {_LIMIT} functions are used")
            inputs = _dtypes_by_name(definition.signature.input_arg, values)
            outputs = _dtypes_by_name(definition.signature.output_arg, values)
            flat = tuple(dtype for dtypes in outputs.values() for dtype in dtypes)
            found = Function(self._symbol(name), definition, values, inputs, flat)
            self._known[key] = self.by_symbol[found.symbol] = found
            self.used.append(found)
        return self._known[key]

    def resolve(self, value: NameAttrList) -> str:
        """The symbol of the function that an attribute names; ValueError if there is none."""
        return self.function(value.name, value.attr).symbol

    def call(self, node: NodeDef) -> dict[str, Attribute]:
        """
        The attributes of the PartitionedCall that a node is whose operator is a function.

        ValueError if the function cannot have the node's attributes.
        """
        function = self.function(node.op, node.attr)
        return {
            "Tin": ArrayAttr(map(DTypeAttr, function.inputs)),
            "Tout": ArrayAttr(map(DTypeAttr, function.outputs)),
            "f": SymbolRefAttr(function.symbol),
        }

    def output_count(self, node: NodeDef) -> int:
        """How many outputs a node has; one if its operator is not known."""
        outputs = self._outputs(node)
        return 1 if outputs is None else sum(count for _, count in outputs)

    def body(self, function: Function) -> Body:
        """The nodes of a function, without placeholders; ValueError if a result is not there."""
        definition = function.definition
        protos = [_with_values(node, function.values) for node in definition.node_def]
        given = {name: Node(NodeDef(name=name, op=ARGUMENT), (), ()) for name in function.arguments}
        outputs = {node.name: self._outputs(node) for node in protos}
        ports = partial(_ports, function.arguments, outputs)

        def read(proto: NodeDef) -> Node:
            node = read_node(proto, ports)
            # Arguments are there before anything runs.
            controls = tuple(name for name in node.controls if name not in given)
            return Node(proto, node.inputs, controls)

        results: list[Port] = []
        for argument in definition.signature.output_arg:
            if argument.name not in definition.ret:
                raise ValueError(f"nothing is said to give its result '{argument.name}'")
            results += ports(definition.ret[argument.name])
        if len(results) != len(function.outputs):
            raise ValueError(f"{len(results)} values are {len(function.outputs)} results")
        effects = [*definition.control_ret.values(), *(n.name for n in protos if _has_effect(n))]
        if unknown := sorted(set(effects) - outputs.keys()):
            raise ValueError(f"it has to run '{unknown[0]}', which is not there")
        return Body(Graph(protos, read, given), tuple(results), tuple(dict.fromkeys(effects)))

    def _outputs(self, node: NodeDef) -> list[tuple[str, int]] | None:
        """How many values each formal output stands for; None if the operator is not known."""
        if (definition := self.definitions.get(node.op)) is not None:
            arguments = map(_argument, definition.signature.output_arg)
        elif (signature := signature_of(node.op)) is not None:
            arguments = iter(signature.outputs)
        else:
            return None
        return [(argument.name, _count(argument, node)) for argument in arguments]

    def _symbol(self, name: str) -> str:
        symbol, count = name, 0
        while symbol in self._taken:
            symbol, count = f"{name}_{count + 1}", count + 1
        self._taken.add(symbol)
        return symbol


def _serialized(values: Values) -> bytes:
    """Equal bytes for equal values."""
    return NameAttrList(attr=values).SerializeToString(deterministic=True)


def _argument(proto: OpDef.ArgDef) -> Argument:
    has_dtype = proto.type != DataType.DT_INVALID
    return Argument(
        proto.name,
        dtype_name(proto.type) if has_dtype else None,
        proto.type_attr or None,
        proto.number_attr or None,
        proto.type_list_attr or None,
        proto.is_ref,
    )


def _dtypes_by_name(
    arguments: Iterable[OpDef.ArgDef], values: Values
) -> dict[str, tuple[str, ...]]:
    """The element types that each argument stands for; ValueError if an attribute is missing."""
    found: dict[str, tuple[str, ...]] = {}
    for proto in arguments:
        if proto.name in found:
            raise ValueError(f"two of its arguments or results are called '{proto.name}'")
        found[proto.name] = _dtypes(_argument(proto), values)
    return found


def _dtypes(argument: Argument, values: Values) -> tuple[str, ...]:
    if argument.list_attr is not None:
        listed = _value(argument.list_attr, values).list.type
        return tuple(dtype_name(dtype) for dtype in listed)
    dtype = argument.dtype or dtype_name(_value(argument.type_attr or "", values).type)
    if argument.number_attr is None:
        return (dtype,)
    count = _value(argument.number_attr, values).i
    if not 0 <= count <= COUNT_LIMIT:
        raise ValueError(f"attribute '{argument.number_attr}' is {count}")
    return (dtype,) * count


def _value(name: str, values: Values) -> AttrValue:
    if name not in values:
        raise ValueError(f"its attribute '{name}' has no value")
    return values[name]


def _count(argument: Argument, node: NodeDef) -> int:
    """How many values of a node an argument stands for; those it should have are checked later."""
    name = argument.list_attr or argument.number_attr
    if name is None:
        return 1
    if name not in node.attr:
        return 0
    value = node.attr[name]
    return len(value.list.type) if argument.list_attr else min(max(value.i, 0), COUNT_LIMIT)


def _ports(
    arguments: Mapping[str, Sequence[str]],
    outputs: Mapping[str, list[tuple[str, int]] | None],
    text: str,
) -> list[Port]:
    """
    The values that an input of a node in a function stands for: `argument`, `argument:number`,
    `node:output` or `node:output:number`; ValueError if it is none of these.
    """
    name, _, number = text.partition(":")
    if name in arguments and (not number or number.isdecimal()):
        ports = [Port(name, k) for k in range(len(arguments[name]))]
        return ports if not number else _one(ports, int(number), text)
    match = _INPUT.fullmatch(text)
    if match is None or match["node"] not in outputs:
        raise ValueError(f"its input '{text}' is not in the function")
    found = outputs[match["node"]]
    if found is None:
        return [Port(match["node"], 0)]  # the node is refused
    first = 0
    for output, count in found:
        if output == match["output"]:
            ports = [Port(match["node"], first + k) for k in range(count)]
            return ports if match["index"] is None else _one(ports, int(match["index"]), text)
        first += count
    known = ", ".join(f"'{output}'" for output, _ in found) or "none"
    raise ValueError(f"its input '{text}' is not there: '{match['node']}' has the outputs {known}")


def _one(ports: Sequence[Port], number: int, text: str) -> list[Port]:
    if number >= len(ports):
        raise ValueError(f"its input '{text}' is not there: there are {len(ports)} of it")
    return [ports[number]]


def _has_effect(node: NodeDef) -> bool:
    """True if a node may change what others see: it is run whether a result needs it or not."""
    signature = signature_of(node.op)
    if signature is None or not signature.is_stateful:
        return False
    return any(_is_handle(argument, signature, node) for argument in signature.inputs)


def _is_handle(argument: Argument, signature: Signature, node: NodeDef) -> bool:
    if argument.list_attr is None:
        return argument.is_ref or argument.dtype == "resource"
    listed = node.attr[argument.list_attr].list.type if argument.list_attr in node.attr else ()
    return DataType.DT_RESOURCE in listed


# Placeholders of attributes


def _with_values(node: NodeDef, values: Values) -> NodeDef:
    """The node with values in place of placeholders; those that have none stay."""
    if not any(map(_has_placeholder, node.attr.values())):
        return node
    copy = NodeDef()
    copy.CopyFrom(node)
    for value in copy.attr.values():
        _substitute(value, values)
    return copy


def _nested(value: AttrValue) -> Iterator[AttrValue]:
    """The values of the attributes of functions that a value names."""
    which = value.WhichOneof("value")
    if which == "func":
        yield from value.func.attr.values()
    elif which == "list":
        for function in value.list.func:
            yield from function.attr.values()


def _is_deeper(value: AttrValue, depth: int) -> bool:
    """True if functions are nested more than so deep in a value."""
    return depth < 0 or any(_is_deeper(inner, depth - 1) for inner in _nested(value))


def _has_placeholder(value: AttrValue) -> bool:
    return value.WhichOneof("value") == "placeholder" or any(map(_has_placeholder, _nested(value)))


def _substitute(value: AttrValue, values: Values) -> None:
    if value.WhichOneof("value") == "placeholder":
        if value.placeholder in values:
            value.CopyFrom(values[value.placeholder])
        return
    for inner in _nested(value):
        _substitute(inner, values)
