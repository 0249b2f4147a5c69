"""
The ops of the `tf1` dialect: one class for each operator in `ops.txt`, and the graph around them.

An op has the node's data inputs as operands, then its control inputs, of type `!tf1.control`. Its
results are the node's outputs, and a last one of type `!tf1.control` if a node depends on it.
Attributes are properties; absent ones have the default of the signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import FORMAT
from lowerdeck.dialects.core.types import Tensor, i1, tensor
from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.graph_regions import HasGraphRegion
from lowerdeck.dialects.tf1.attributes import (
    CONTROL,
    ELEMENTS,
    DTypeAttr,
    ShapeAttr,
    fits,
    value_type,
)
from lowerdeck.dialects.tf1.constants import verify_constant
from lowerdeck.dialects.tf1.signatures import Argument, Signature, known_operators, signature_of

PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
"""Operators that make a variable; one that never changes has a `value`, as a constant has."""

VALUE = "value"


@irdl_op_definition
class GraphOp(IRDLOperation):
    """
    A GraphDef: one region whose ops are in no order, with the cycles of control flow.

    `producer` is the version of the GraphDef's producer, which decides the meaning of some ops.

    ```mlir
    tf1.graph @main {
      %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
      %y = tf1.Relu %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
      tf1.fetch %y : tensor<*xf32> {names = ["y:0"]}
    }
    ```
    """

    name = "tf1.graph"
    sym_name = prop_def(SymbolNameConstraint())
    producer = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), HasGraphRegion())
    assembly_format = "$sym_name attr-dict-with-keyword $body"

    def __init__(self, sym_name: str, body: Region, producer: int | None = None):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "producer": None if producer is None else IntegerAttr(producer, 64),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        if not isinstance(self.body.block.last_op, FetchOp):
            raise VerifyException("a graph ends with tf1.fetch")


@irdl_op_definition
class FetchOp(IRDLOperation):
    """The end of a graph: the tensors that are asked for, by `names` such as `y:0`."""

    name = "tf1.fetch"
    values = var_operand_def()
    names = prop_def(ArrayAttr[StringAttr])
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue], names: Sequence[str]):
        super().__init__(
            operands=[values], properties={"names": ArrayAttr([StringAttr(n) for n in names])}
        )

    def verify_(self) -> None:
        if len(self.values) != len(self.names):
            raise VerifyException(f"{len(self.values)} values with {len(self.names)} names")


class Tf1Op(IRDLOperation, FrameworkOp):
    """
    A node of one operator; the classes below it are made from the signatures.

    Constraints:

    - (C1) There are as many data operands as the signature and the attributes say, of their types.
    - (C2) So for the results; the last one may be a control token.
    - (C3) Attributes without a default are present.
    - (C4) A constant has as many elements as its result.
    - (C5) The value of a variable has as many elements as its shape, which is static.
    """

    operands_ = var_operand_def()
    results_ = var_result_def()

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        *,
        has_control: bool = False,
        result_types: Sequence[Attribute] | None = None,
    ):
        """
        `result_types` replaces the unranked types that the signature gives the results.

        KeyError or VerifyException if the attributes do not give them.
        """
        if result_types is None:
            dtypes = expected_types(self.signature, attributes, self.signature.outputs)
            result_types = [value_type(dtype) for dtype in dtypes]
        tokens = [CONTROL] if has_control else []
        super().__init__(
            operands=[operands],
            properties=dict(attributes),
            result_types=[[*result_types, *tokens]],
        )

    # Operands and results

    @property
    def op_type(self) -> str:
        """The operator's name in TensorFlow."""
        return self.name.partition(".")[2]

    @property
    def signature(self) -> Signature:
        """The operator as TensorFlow registers it."""
        signature = signature_of(self.op_type)
        assert signature is not None
        return signature

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The data operands."""
        return tuple(value for value in self.operands if value.type != CONTROL)

    @property
    def controls(self) -> tuple[SSAValue, ...]:
        """The control operands."""
        return tuple(value for value in self.operands if value.type == CONTROL)

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The data results."""
        return tuple(value for value in self.results if value.type != CONTROL)

    @property
    def control(self) -> SSAValue | None:
        """The control result, if some node depends on it."""
        last = self.results[-1] if self.results else None
        return last if last is not None and last.type == CONTROL else None

    def input_list(self, name: str) -> tuple[SSAValue, ...]:
        """The operands of the formal input `name`; KeyError if there is none."""
        start = 0
        for argument in self.signature.inputs:
            count = len(_types_of(self.signature, self.properties, argument))
            if argument.name == name:
                return self.inputs[start : start + count]
            start += count
        raise KeyError(name)

    def attr(self, name: str) -> Any:
        """The value of an attribute, as `attribute_value` gives it."""
        return attribute_value(self.signature, self.properties, name)

    def verify_(self) -> None:
        for name, definition in self.signature.attrs.items():  # C3
            if not definition.has_default and name not in self.properties:
                raise VerifyException(f"attribute '{name}' is missing")
        for name, attribute in self.properties.items():
            if self.op_type in VARIABLES and name == VALUE:  # C5
                verify_constant(variable_type(self), attribute)
            elif self.signature.attrs[name].kind == "tensor":  # C4
                verify_constant(self.results[0].type, attribute)
        self._verify_values("operands", self.inputs, self.signature.inputs)  # C1
        self._verify_values("results", self.outputs, self.signature.outputs)  # C2
        if len(self.outputs) < len(self.results) - 1:
            raise VerifyException("only the last result may be a control token")

    def _verify_values(
        self, what: str, values: Sequence[SSAValue], arguments: Sequence[Argument]
    ) -> None:
        expected = expected_types(self.signature, self.properties, arguments)
        if len(values) != len(expected):
            raise VerifyException(f"{len(values)} {what}, expected {len(expected)}")
        for index, (value, dtype) in enumerate(zip(values, expected, strict=True)):
            if not fits(value.type, dtype):
                raise VerifyException(f"{what} {index} has type {value.type}, expected {dtype}")


def variable_type(op: Tf1Op) -> Tensor:
    """The type of what a variable with a value holds; VerifyException if its shape is open."""
    shape, dtype = op.attr("shape"), op.attr("dtype")
    if shape is None or -1 in shape:
        raise VerifyException("a variable with a value needs a static shape")
    if dtype not in ELEMENTS:
        raise VerifyException(f"a variable with a value cannot be of type {dtype}")
    return tensor(ELEMENTS[dtype], shape)


def attribute_value(signature: Signature, properties: Mapping[str, Attribute], name: str) -> Any:
    """
    The value of an attribute, or its default: a number, bool or str, the name of an element type,
    a tuple for a shape (None: no rank; -1: a dimension that is not known), a list of these, or the
    xDSL attribute of a tensor. KeyError if there is neither.
    """
    found = properties.get(name)
    if found is not None:
        return python_value(found)
    definition = signature.attrs[name]
    if not definition.has_default:
        raise KeyError(name)
    if definition.kind == "shape" and definition.default is not None:
        return tuple(definition.default)
    return definition.default


COUNT_LIMIT = 1 << 16
"""Values that one formal input or output may stand for."""


def expected_types(
    signature: Signature, properties: Mapping[str, Attribute], arguments: Sequence[Argument]
) -> list[str]:
    """
    The element types of the values of formal inputs or outputs.

    KeyError if an attribute that decides them is missing.
    """
    return [dtype for argument in arguments for dtype in _types_of(signature, properties, argument)]


def _types_of(
    signature: Signature, properties: Mapping[str, Attribute], argument: Argument
) -> list[str]:
    if argument.list_attr is not None:
        return list(attribute_value(signature, properties, argument.list_attr))
    dtype = argument.dtype
    if dtype is None:
        assert argument.type_attr is not None
        dtype = cast(str, attribute_value(signature, properties, argument.type_attr))
    if argument.number_attr is None:
        return [dtype]
    count = int(attribute_value(signature, properties, argument.number_attr))
    if not 0 <= count <= COUNT_LIMIT:
        name = argument.number_attr
        raise VerifyException(f"attribute '{name}' is {count}, expected 0 to {COUNT_LIMIT}")
    return [dtype] * count


def python_value(attribute: Attribute) -> Any:
    """The plain form of an attribute, as `Tf1Op.attr` gives it."""
    match attribute:
        case IntegerAttr():
            number = attribute.value.data
            return bool(number) if attribute.type == i1 else number
        case FloatAttr():
            return attribute.value.data
        case StringAttr() | DTypeAttr() | ShapeAttr():
            return attribute.data
        case SymbolRefAttr():
            return attribute.string_value()
        case DenseArrayBase():
            return list(cast(DenseArrayBase[Any], attribute).get_values())
        case ArrayAttr():
            return [python_value(item) for item in cast(Sequence[Attribute], attribute.data)]
        case _:
            return attribute


@cache
def op_class(op_type: str) -> type[Tf1Op] | None:
    """The class of an operator, or None if it is not known."""
    signature = signature_of(op_type)
    if signature is None:
        return None
    fields = {
        "__doc__": f"TensorFlow's operator {op_type}.",
        "__module__": __name__,
        "name": f"tf1.{op_type}",
        "assembly_format": FORMAT,
        **{f"attr_{name}": opt_prop_def(prop_name=name) for name in signature.attrs},
    }
    if op_type in VARIABLES:
        fields[f"attr_{VALUE}"] = opt_prop_def(prop_name=VALUE)
    return irdl_op_definition(type(f"{op_type}Op", (Tf1Op,), fields))


def known_class(op_type: str) -> type[Tf1Op]:
    """The class of an operator that is known."""
    cls = op_class(op_type)
    assert cls is not None
    return cls


def op_classes() -> Iterator[type[Operation]]:
    """The classes of all operators."""
    return map(known_class, known_operators())
