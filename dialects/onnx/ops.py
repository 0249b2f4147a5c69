"""
The ops of the `onnx` dialect: one class for each (domain, operator, since_version) of onnx.defs.

Operands and results correspond one to one to the inputs and outputs of a node: an absent optional
input is the value of an `onnx.none`, an absent optional output a result of type `none`. Attributes
are properties, subgraphs are regions in the order of their attributes' names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from onnx import defs
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    NoneType,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Attribute, Operation, OpTraits, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.operators import OPERATORS, CustomOperator, operator_of
from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.numbers import dense_floats, dense_ints, parse_float32, parse_int64
from lowerdeck.dialects.onnx.custom import schema_of
from lowerdeck.dialects.onnx.tensors import (
    SparseTensorAttr,
    TensorAttr,
    constant_array,
    verify_constant,
)
from lowerdeck.dialects.onnx.types import type_string

OPSET = "onnx.opset"
"""The attribute of a function that holds the version of the standard operators in its model."""

Schema = defs.OpSchema
Kind = defs.OpSchema.AttrType
Formal = defs.OpSchema.FormalParameter
_Option = defs.OpSchema.FormalParameterOption

NONE = NoneType()
"""The type of an absent operand or result."""

A = TypeVar("A", bound=Attribute)


@irdl_op_definition
class NoneOp(IRDLOperation):
    """The operand of a node that leaves out an optional input: `%0 = onnx.none : none`."""

    name = "onnx.none"

    output = result_def(NoneType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($output)"

    def __init__(self) -> None:
        super().__init__(result_types=[NONE])


@irdl_op_definition
class InitializerOp(IRDLOperation):
    """
    A constant of the graph: its bytes, or its strings.

    ```mlir
    %w = onnx.initializer #core.blob<"model.onnx", 1024, 256> : tensor<64xf32>
    ```
    """

    name = "onnx.initializer"

    value = prop_def(BlobAttr | ArrayAttr[StringAttr])
    output = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$value attr-dict `:` type($output)"

    def __init__(self, tensor: TensorAttr) -> None:
        super().__init__(properties={"value": tensor.value}, result_types=[tensor.type])

    @property
    def tensor(self) -> TensorAttr:
        """Type and value as one attribute."""
        return TensorAttr(self.output.type, self.value)

    def array(self) -> np.ndarray[Any, Any]:
        """The elements, read-only unless they are strings."""
        return constant_array(self.output.type, self.value)

    def verify_(self) -> None:
        verify_constant(self.output.type, self.value)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of a subgraph: its outputs."""

    name = "onnx.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])


class OnnxOp(Operation, FrameworkOp):
    """
    A node of one operator at one version; the classes below it are made from the schemas.

    Constraints:

    - (C1) There are as many operands and results as the schema allows.
    - (C2) Only operands and results that are optional in the schema are absent.
    - (C3) Properties are attributes of the schema, of its kinds; required ones are present.
    - (C4) There is one region, of one block that ends with `onnx.yield`, for each subgraph; it is
      empty for an optional subgraph that is absent.
    - (C5) Types that are known are among those that the schema allows, and equal where the schema
      has one type variable.

    Example:

    ```mlir
    %y = onnx.Conv_11 %x, %w {pads = [1, 1, 1, 1]} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %z = onnx.If_13 %c then_branch {
      onnx.yield %y : tensor<*xf32>
    } else_branch {
      onnx.yield %x : tensor<*xf32>
    } : (tensor<i1>) -> tensor<*xf32>
    ```
    """

    schema: ClassVar[Schema]
    graph_names: ClassVar[tuple[str, ...]]
    """The attributes that are subgraphs, in the order of the regions."""

    # Reading

    @property
    def op_type(self) -> str:
        """The operator's name, without domain and version."""
        return self.schema.name

    @property
    def domain(self) -> str:
        """The operator's domain; empty for the default one."""
        return self.schema.domain

    @property
    def since_version(self) -> int:
        """The opset version that introduced this version of the operator."""
        return self.schema.since_version

    @classmethod
    def index_of_input(cls, name: str) -> int:
        """The position of a formal input; KeyError if the operator has none of that name."""
        for index, formal in enumerate(cls.schema.inputs):
            if formal.name == name:
                return index
        raise KeyError(f"{cls.name} has no input '{name}'")

    def input(self, name: str | int) -> SSAValue | None:
        """The operand for a formal input (by name or position), or None if it is absent."""
        index = name if isinstance(name, int) else self.index_of_input(name)
        if index >= len(self.operands) or self.operands[index].type == NONE:
            return None
        return self.operands[index]

    def attribute(self, name: str) -> Attribute | None:
        """A property, or its default in the schema; None without either."""
        if (value := self.properties.get(name)) is not None:
            return value
        return _default(type(self), name)

    def is_given(self, name: str) -> bool:
        """True for a property that says something else than the default in the schema."""
        return self.properties.get(name) not in (None, _default(type(self), name))

    def _typed(self, name: str, kind: type[A]) -> A | None:
        value = self.attribute(name)
        if value is not None and not isinstance(value, kind):
            raise VerifyException(f"property '{name}' of '{self.name}' has an unexpected kind")
        return value

    def get_int(self, name: str) -> int | None:
        """An integer attribute, or its default."""
        value = self._typed(name, IntegerAttr)
        return None if value is None else cast(IntegerAttr[Any], value).value.data

    def get_float(self, name: str) -> float | None:
        """A float attribute, or its default."""
        value = self._typed(name, FloatAttr)
        return None if value is None else cast(FloatAttr[Any], value).value.data

    def get_string(self, name: str) -> str | None:
        """A string attribute, or its default."""
        value = self._typed(name, StringAttr)
        return None if value is None else value.data

    def get_ints(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, or its default."""
        value = self._typed(name, DenseArrayBase)
        return None if value is None else tuple(map(int, cast(Any, value).get_values()))

    def get_floats(self, name: str) -> tuple[float, ...] | None:
        """A list of floats, or its default."""
        value = self._typed(name, DenseArrayBase)
        return None if value is None else tuple(map(float, cast(Any, value).get_values()))

    def get_strings(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or its default."""
        value = self._typed(name, ArrayAttr)
        return None if value is None else strings_of(value)

    def get_tensor(self, name: str) -> TensorAttr | None:
        """A tensor attribute."""
        return self._typed(name, TensorAttr)

    def region(self, name: str) -> Region:
        """The region of a subgraph attribute; without a block if the subgraph is absent."""
        return self.regions[self.graph_names.index(name)]

    # Verification

    def verify_(self) -> None:
        operands = tuple([operand.type for operand in self.operands])
        _verify_signature(type(self), operands, tuple(self.result_types))  # C1, C2, C5
        self._verify_properties()  # C3
        self._verify_regions()  # C4

    def _verify_properties(self) -> None:
        kinds = attribute_kinds(type(self))
        for name, value in self.properties.items():
            if (kind := kinds.get(name)) is None or kind == Kind.GRAPH:
                raise VerifyException(f"{self.op_type} has no attribute '{name}'")
            if not _is_of_kind(value, kind):
                raise VerifyException(
                    f"attribute '{name}' is not of kind {kind_name(kind)}: {value}"
                )
        for name in _required(type(self)):
            if name not in self.properties and name not in self.graph_names:
                raise VerifyException(f"the required attribute '{name}' is missing")

    def _verify_regions(self) -> None:
        if len(self.regions) != len(self.graph_names):
            expected = ", ".join(self.graph_names) or "none"
            raise VerifyException(f"found {len(self.regions)} subgraphs, expected {expected}")
        for name, region in zip(self.graph_names, self.regions, strict=True):
            block = region.blocks.first
            if block is None and name not in _required(type(self)):
                continue
            if block is None or block.next_block is not None:
                raise VerifyException(f"subgraph '{name}' is not a single block")
            if not isinstance(block.last_op, YieldOp):
                raise VerifyException(f"subgraph '{name}' does not end with onnx.yield")

    # Text

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        if self.properties:
            printer.print_string(" ")
            with printer.in_braces():
                printer.print_list(
                    sorted(self.properties.items()), lambda item: _print_property(printer, *item)
                )
        for name, region in zip(self.graph_names, self.regions, strict=False):
            if region.blocks:
                printer.print_string(f" {name} ")
                printer.print_region(region)
        if self.attributes:
            printer.print_string(" attributes ")
            printer.print_attr_dict(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        properties = dict(
            parser.parse_optional_comma_separated_list(
                parser.Delimiter.BRACES, lambda: _parse_property(parser, cls)
            )
            or ()
        )
        regions: list[Region] = []
        for name in cls.graph_names:
            is_present = parser.parse_optional_keyword(name) is not None
            regions.append(parser.parse_region() if is_present else Region())
        attributes: Mapping[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes") is not None:
            attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands(operands or [], type_.inputs.data, position),
            result_types=type_.outputs.data,
            properties=properties,
            attributes=attributes,
            regions=regions,
        )


# Classes from schemas


def op_name(domain: str, op_type: str, version: int) -> str:
    """
    The name of the op for an operator: `onnx.Conv_11`, `onnx.ml.Scaler_1`.

    Other domains are named without the leading `ai.onnx`.
    """
    prefix = domain.removeprefix("ai.onnx.") + "." if domain else ""
    return f"onnx.{prefix}{op_type}_{version}"


def op_class(domain: str, op_type: str, version: int) -> type[OnnxOp] | None:
    """
    The class of the newest operator version that is not newer than the opset `version`; that of an
    operator that a plugin defines, whatever the version.
    """
    if (operator := operator_of(domain, op_type)) is not None and version >= 1:
        return _custom_class(operator)
    return _standard_class(domain, op_type, version)


@cache
def _standard_class(domain: str, op_type: str, version: int) -> type[OnnxOp] | None:
    domain = "" if domain == "ai.onnx" else domain
    if version < 1 or not defs.has(op_type, version, domain):
        return None
    schema = defs.get_schema(op_type, version, domain)
    return _class_of(domain, op_type, schema.since_version)


@cache
def latest_opset(domain: str) -> int | None:
    """The newest opset version of a domain that is known; None for an unknown domain."""
    domain = "" if domain == "ai.onnx" else domain
    versions = defs.C.schema_version_map()
    return versions[domain][1] if domain in versions else None


def op_classes() -> Iterator[type[OnnxOp]]:
    """The classes of all operator versions, and those of operators that plugins define."""
    schemas = defs.get_all_schemas_with_history()
    classes = (_class_of(one.domain, one.name, one.since_version) for one in schemas)
    yield from sorted(classes, key=lambda cls: cls.name)
    yield from map(_custom_class, OPERATORS.values())


@cache
def _custom_class(operator: CustomOperator) -> type[OnnxOp]:
    return _make_class(schema_of(operator))


@cache
def _class_of(domain: str, op_type: str, since: int) -> type[OnnxOp]:
    """That of the version that came with an opset; a model uses few of some hundreds."""
    return _make_class(defs.get_schema(op_type, since, domain))


def _make_class(schema: Schema) -> type[OnnxOp]:
    graphs = sorted(
        name for name, attribute in schema.attributes.items() if attribute.type == Kind.GRAPH
    )
    members: dict[str, object] = {
        "name": op_name(schema.domain, schema.name, schema.since_version),
        "schema": schema,
        "graph_names": tuple(graphs),
        "traits": _traits(schema, bool(graphs)),
        "__module__": __name__,
        "__doc__": f"{schema.name}, version {schema.since_version}, of onnx.defs.",
    }
    return type(f"{schema.name}_{schema.since_version}Op", (OnnxOp,), members)


_PURE = traits_def(Pure())
_RECURSIVE = traits_def(RecursiveMemoryEffect())
_EFFECTS = traits_def()


def _traits(schema: Schema, has_regions: bool) -> OpTraits:
    determinism = cast(Any, schema).node_determinism
    if determinism == cast(Any, defs.OpSchema).NodeDeterminism.NonDeterministic:
        return _EFFECTS
    return _RECURSIVE if has_regions else _PURE


# What a class needs of its schema, read once


@cache
def attribute_kinds(cls: type[OnnxOp]) -> Mapping[str, Kind]:
    """The kind of each attribute of an operator, subgraphs included."""
    return {name: attribute.type for name, attribute in cls.schema.attributes.items()}


@cache
def _required(cls: type[OnnxOp]) -> tuple[str, ...]:
    return tuple(
        name for name, attribute in sorted(cls.schema.attributes.items()) if attribute.required
    )


@cache
def _allowed_types(cls: type[OnnxOp]) -> Mapping[str, frozenset[str]]:
    return {
        constraint.type_param_str: frozenset(constraint.allowed_type_strs)
        for constraint in cls.schema.type_constraints
    }


@cache
def _default(cls: type[OnnxOp], name: str) -> Attribute | None:
    from lowerdeck.dialects.onnx.attributes import attribute_from_proto

    if (attribute := cls.schema.attributes.get(name)) is None:
        raise KeyError(f"{cls.name} has no attribute '{name}'")
    proto = attribute.default_value
    return attribute_from_proto(proto) if proto.type else None


def formal_of(formals: Sequence[Formal], index: int) -> Formal | None:
    """The formal parameter of an actual one; the last one repeats if it is variadic."""
    if index < len(formals):
        return formals[index]
    return formals[-1] if formals and formals[-1].option == _Option.Variadic else None


def is_variadic(formal: Formal) -> bool:
    """True for a formal parameter that stands for any number of values."""
    return formal.option == _Option.Variadic


def is_optional(formal: Formal) -> bool:
    """True for a formal parameter that may be absent."""
    return formal.option == _Option.Optional


# Verification


@lru_cache(maxsize=1 << 12)
def _verify_signature(
    cls: type[OnnxOp], operands: tuple[Attribute, ...], results: tuple[Attribute, ...]
) -> None:
    """What is there and of which types; equal nodes are looked at once."""
    schema, allowed = cls.schema, _allowed_types(cls)
    _verify_count("operand", len(operands), schema.min_input, schema.max_input)  # C1
    _verify_count("result", len(results), schema.min_output, schema.max_output)
    _verify_present("operand", operands, schema.inputs)  # C2
    _verify_present("result", results, schema.outputs)
    bound: dict[str, str] = {}  # C5
    _verify_types(operands, schema.inputs, allowed, bound)
    _verify_types(results, schema.outputs, allowed, bound)


def _verify_count(what: str, found: int, least: int, most: int) -> None:
    if not least <= found <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        if most >= 1 << 30:
            expected = f"at least {least}"
        raise VerifyException(f"found {found} {what}s, expected {expected}")


def _verify_present(what: str, types: Sequence[Attribute], formals: Sequence[Formal]) -> None:
    for index, type_ in enumerate(types):
        formal = formal_of(formals, index)
        if type_ == NONE and formal is not None and not is_optional(formal):
            raise VerifyException(f"{what} '{formal.name}' is absent, but it is not optional")


def _verify_types(
    types: Sequence[Attribute],
    formals: Sequence[Formal],
    allowed: Mapping[str, frozenset[str]],
    bound: dict[str, str],
) -> None:
    for index, type_ in enumerate(types):
        found = type_string(type_)
        formal = formal_of(formals, index)
        if found is None or formal is None:
            continue
        variable = formal.type_str
        if found not in allowed.get(variable, (variable,)):
            raise VerifyException(
                f"'{formal.name}' has type {found}, which is not among the types of {variable}"
            )
        if variable not in allowed or (is_variadic(formal) and not formal.is_homogeneous):
            continue
        if bound.setdefault(variable, found) != found:
            raise VerifyException(
                f"'{formal.name}' has type {found}, but {variable} is {bound[variable]} already"
            )


# Properties


def kind_name(kind: Kind) -> str:
    """The name of a kind: INT, FLOATS, ..."""
    return str(cast(Any, kind).name)


def kind_number(kind: Kind) -> int:
    """The AttributeProto.AttributeType of a kind."""
    return int(cast(Any, kind).value)


def strings_of(value: ArrayAttr[Any]) -> tuple[str, ...]:
    """The texts of a list of strings."""
    return tuple(text.data for text in cast(ArrayAttr[StringAttr], value))


def _is_array(value: Attribute, element: Attribute) -> bool:
    return isinstance(value, DenseArrayBase) and cast(Any, value).elt_type == element


def _is_strings(value: Attribute) -> bool:
    return isinstance(value, ArrayAttr) and all(
        isinstance(text, StringAttr) for text in cast(ArrayAttr[Attribute], value)
    )


_CHECKS: Mapping[Kind, Callable[[Attribute], bool]] = {
    Kind.INT: lambda value: isinstance(value, IntegerAttr) and cast(Any, value).type == i64,
    Kind.FLOAT: lambda value: isinstance(value, FloatAttr) and cast(Any, value).type == f32,
    Kind.STRING: lambda value: isinstance(value, StringAttr),
    Kind.INTS: lambda value: _is_array(value, i64),
    Kind.FLOATS: lambda value: _is_array(value, f32),
    Kind.STRINGS: _is_strings,
    Kind.TENSOR: lambda value: isinstance(value, TensorAttr),
    Kind.SPARSE_TENSOR: lambda value: isinstance(value, SparseTensorAttr),
    Kind.TYPE_PROTO: lambda value: isinstance(value, TypeAttribute),
}


def _is_of_kind(value: Attribute, kind: Kind) -> bool:
    return kind in _CHECKS and _CHECKS[kind](value)


def _print_property(printer: Printer, name: str, value: Attribute) -> None:
    printer.print_string(f"{name} = ")
    if _is_of_kind(value, Kind.INT):
        printer.print_string(str(cast(IntegerAttr[Any], value).value.data))
    elif _is_of_kind(value, Kind.FLOAT):
        printer.print_string(_float_text(cast(FloatAttr[Any], value).value.data))
    elif isinstance(value, DenseArrayBase):
        array = cast(DenseArrayBase[Any], value)
        texts = map(str if array.elt_type == i64 else _float_text, array.get_values())
        printer.print_string(f"[{', '.join(texts)}]")
    else:
        printer.print_attribute(value)


def _float_text(value: float) -> str:
    """The shortest text that reads back as the same float32; a string for NaN and infinities."""
    if not np.isfinite(value):
        return f'"{value}"'
    text = str(np.float32(value))
    return text if "." in text else text.replace("e", ".0e")


def _parse_property(parser: Parser, cls: type[OnnxOp]) -> tuple[str, Attribute]:
    start = parser.pos
    name = parser.parse_identifier(" as name of an attribute")
    kind = attribute_kinds(cls).get(name)
    if kind is None or kind == Kind.GRAPH:
        parser.raise_error(f"{cls.schema.name} has no attribute '{name}'", start, parser.pos)
    parser.parse_punctuation("=")
    match kind:
        case Kind.INT:
            return name, IntegerAttr(parse_int64(parser), i64)
        case Kind.FLOAT:
            return name, FloatAttr(parse_float32(parser), f32)
        case Kind.INTS:
            values = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_int64(parser)
            )
            return name, cast(Attribute, dense_ints(values))
        case Kind.FLOATS:
            numbers = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_float32(parser)
            )
            return name, cast(Attribute, dense_floats(numbers))
        case _:
            return name, parser.parse_attribute()
