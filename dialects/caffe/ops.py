"""
The ops of the `caffe` dialect: one class for each layer type of `layers.py`.

Operands are the bottoms, then the parameter blobs; results are the tops. The fields that are set
in the layer's parameter messages are properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from xdsl.dialects.builtin import DenseArrayBase, TensorType, UnrankedTensorType, f32, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter
from lowerdeck.dialects.caffe.layers import LayerType, blob_count, count_problem, layer_types
from lowerdeck.dialects.caffe.parameters import (
    attributes_of,
    fields_of,
    parse_fields,
    print_fields,
    set_fields,
)
from lowerdeck.dialects.frameworks import FrameworkOp

M = TypeVar("M", bound=Message)

BLOB = UnrankedTensorType(f32)
"""The type of a top before legalization: all blobs hold floats."""

_SEGMENTS = "operandSegmentSizes"


class CaffeOp(Operation, FrameworkOp):
    """
    A layer; the classes below it are made from the table of layer types.

    Constraints:

    - (C1) Properties are fields of the layer's parameter messages, of their types.
    - (C2) There are as many bottoms and tops as the layer type allows.
    - (C3) There are as many parameter blobs as the layer has with these parameters.
    - (C4) All operands and results are f32 tensors.

    Example:

    ```mlir
    %y = caffe.Convolution %x blobs(%w, %b) {kernel_size = [3], num_output = 8} : (tensor<*xf32>,
        tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<*xf32>
    ```
    """

    layer_type: ClassVar[LayerType]

    def __init__(
        self,
        layer: LayerParameter,
        bottoms: Sequence[SSAValue],
        blobs: Sequence[SSAValue] = (),
        tops: int = 1,
    ) -> None:
        """The op for `layer`, of which only the parameter messages are read."""
        properties: dict[str, Attribute] = {_SEGMENTS: _segments(len(bottoms), len(blobs))}
        for name in self.layer_type.parameters:
            properties |= attributes_of(getattr(layer, name))
        super().__init__(
            operands=[*bottoms, *blobs], result_types=[BLOB] * tops, properties=properties
        )

    # Reading

    @property
    def op_type(self) -> str:
        """The layer type, as messages about the layer name it."""
        return self.layer_type.name

    @property
    def bottoms(self) -> Sequence[SSAValue]:
        """The blobs that the layer reads."""
        return self.operands[: self._bottom_count]

    @property
    def blobs(self) -> Sequence[SSAValue]:
        """The parameter blobs: weights, then bias, and so on."""
        return self.operands[self._bottom_count :]

    @property
    def _bottom_count(self) -> int:
        segments = self.properties.get(_SEGMENTS)
        if not isinstance(segments, DenseArrayBase):
            raise VerifyException(f"'{_SEGMENTS}' is missing")
        return int(cast(Any, segments).get_values()[0])

    @property
    def fields(self) -> dict[str, Attribute]:
        """The fields of the parameter messages that are set."""
        return {name: value for name, value in self.properties.items() if name != _SEGMENTS}

    def layer(self) -> LayerParameter:
        """Type and parameters as Caffe's message; VerifyException if a property does not fit."""
        layer = LayerParameter(type=self.layer_type.name)
        for name, attribute in self.fields.items():
            if (message := _messages(type(self)).get(name)) is None:
                raise VerifyException(f"{self.layer_type.name} has no field '{name}'")
            set_fields(getattr(layer, message), {name: attribute})
        return layer

    def parameters(self, kind: type[M]) -> M:
        """The parameter message of this kind; fields that are not set have their defaults."""
        layer = self.layer()
        for name in self.layer_type.parameters:
            if isinstance(message := getattr(layer, name), kind):
                return message
        raise KeyError(f"{self.name} has no {kind.__name__}")

    # Verification

    def verify_(self) -> None:
        layer = self.layer()  # C1
        segments = cast(Any, self.properties.get(_SEGMENTS))
        if segments != _segments(self._bottom_count, len(self.operands) - self._bottom_count):
            raise VerifyException(f"'{_SEGMENTS}' does not fit the {len(self.operands)} operands")
        if problem := count_problem(layer, len(self.bottoms), len(self.results)):  # C2
            raise VerifyException(problem)
        expected = blob_count(layer, len(self.bottoms))  # C3
        if len(self.blobs) != expected:
            raise VerifyException(f"found {len(self.blobs)} blobs, expected {expected}")
        for value in (*self.operands, *self.results):  # C4
            if not _is_float_tensor(value.type):
                raise VerifyException(f"expected f32 tensors, found {value.type}")

    # Text

    def print(self, printer: Printer) -> None:
        if self.bottoms:
            printer.print_string(" ")
            printer.print_list(self.bottoms, printer.print_ssa_value)
        if self.blobs:
            printer.print_string(" blobs")
            with printer.in_parens():
                printer.print_list(self.blobs, printer.print_ssa_value)
        if self.fields:
            printer.print_string(" ")
            print_fields(printer, _descriptors(type(self)), self.fields)
        if self.attributes:
            printer.print_string(" attributes ")
            printer.print_attr_dict(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        bottoms = (
            parser.parse_optional_undelimited_comma_separated_list(
                parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
            )
            or []
        )
        blobs = []
        if parser.parse_optional_keyword("blobs") is not None:
            blobs = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
        fields = parse_fields(parser, _descriptors(cls))
        attributes: Mapping[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes") is not None:
            attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_function_type()
        return cls.create(
            operands=parser.resolve_operands([*bottoms, *blobs], type_.inputs.data, position),
            result_types=type_.outputs.data,
            properties={_SEGMENTS: _segments(len(bottoms), len(blobs)), **fields},
            attributes=attributes,
        )


def _segments(bottoms: int, blobs: int) -> Attribute:
    return cast(Attribute, DenseArrayBase.from_list(i32, [bottoms, blobs]))


def _is_float_tensor(type_: Attribute) -> bool:
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return False
    return cast(TensorType[Attribute], type_).element_type == f32


# Classes from the table


@cache
def op_class(layer_type: str) -> type[CaffeOp] | None:
    """The class of a layer type; None if the dialect does not know it."""
    return _classes().get(layer_type)


def op_classes() -> Iterator[type[CaffeOp]]:
    """The classes of all layer types."""
    return iter(_classes().values())


@cache
def _classes() -> dict[str, type[CaffeOp]]:
    return {name: _make_class(layer_types()[name]) for name in sorted(layer_types())}


def _make_class(layer_type: LayerType) -> type[CaffeOp]:
    members: dict[str, object] = {
        "name": f"caffe.{layer_type.name}",
        "layer_type": layer_type,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"Caffe's layer type {layer_type.name}.",
    }
    return type(f"{layer_type.name}Op", (CaffeOp,), members)


@cache
def _messages(cls: type[CaffeOp]) -> Mapping[str, str]:
    """The parameter message (as field of LayerParameter) that each field belongs to."""
    owners: dict[str, str] = {}
    for name in cls.layer_type.parameters:
        for field in fields_of(_message_class(name)):
            if owners.setdefault(field, name) != name:
                raise TypeError(f"{cls.name}: two messages have a field '{field}'")
    return owners


@cache
def _descriptors(cls: type[CaffeOp]) -> Mapping[str, FieldDescriptor]:
    fields: dict[str, FieldDescriptor] = {}
    for name in cls.layer_type.parameters:
        fields |= fields_of(_message_class(name))
    return fields


def _message_class(name: str) -> type[Message]:
    return cast(type[Message], type(getattr(LayerParameter(), name)))
