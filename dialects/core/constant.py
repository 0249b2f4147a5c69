"""Constants, and the border between tensors of integers and dimension symbols."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, NoMemoryEffect, Pure
from xdsl.utils.hints import isa

from lowerdeck.dialects.blob import INLINE_BYTES, Blob, BlobAttr
from lowerdeck.dialects.core.base import CoreOp, Ints, int_array, ints, require, require_axis
from lowerdeck.dialects.core.symbols import MakesSymbols
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    DimsAttr,
    Tensor,
    dims_of,
    element_of,
    element_type,
    f32,
    f64,
    i1,
    i64,
    is_integer,
    numpy_dtype,
    static_shape,
    tensor,
)
from lowerdeck.dialects.dims import ExprLike, product


@irdl_op_definition
class ConstantOp(CoreOp):
    """
    A constant tensor: its values, or the location of its bytes.

    Constraints:

    - (C1) the shape is static.
    - (C2) the blob has exactly the bytes of the tensor; or none, if it is elided.

    Example:

    ```mlir
    %c = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %d = core.constant #core.blob<"0x0000803F00000040"> : tensor<2xf32>
    ```
    """

    name = "core.constant"
    value = prop_def(BlobAttr)
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: BlobAttr, type: Tensor):
        super(CoreOp, self).__init__(properties={"value": value}, result_types=[type])

    @staticmethod
    def of(array: NDArray[Any]) -> ConstantOp:
        """The constant with the values and dtype of `array`."""
        type_ = tensor(element_of(array.dtype), array.shape)
        return ConstantOp(BlobAttr(Blob.of(array)), type_)

    @property
    def array(self) -> NDArray[Any]:
        """A read-only view of the values; nothing is copied."""
        shape = static_shape(self.result)
        require(
            shape is not None, lambda: f"a constant has the dynamic type {self.result.type}", "C1"
        )
        return self.value.data.array(numpy_dtype(element_type(self.result)), shape or ())

    def infer(self) -> Sequence[Attribute]:
        shape = static_shape(self.result)
        require(
            shape is not None, lambda: f"a constant has the dynamic type {self.result.type}", "C1"
        )
        blob = self.value.data
        size = numpy_dtype(element_type(self.result)).itemsize * prod(shape or ())
        require(
            blob.size in (size, 0), f"the blob has {blob.size} bytes, but {size} are expected", "C2"
        )
        return [self.result.type]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self._is_readable:
            printer.print_string(f"dense<{_nested(self.array.tolist())}>")
        else:
            printer.print_attribute(self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @property
    def _is_readable(self) -> bool:
        """True if there are few values, each with a decimal form that parses to the same bits."""
        blob = self.value.data
        element = element_type(self.result)
        if blob.file is not None or not 0 < blob.size <= INLINE_BYTES:
            return False
        if numpy_dtype(element).kind in "iub":
            return element in COMPUTABLE
        return element in (f32, f64) and bool(np.isfinite(self.array).all())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        attribute = parser.parse_attribute()
        if isinstance(attribute, BlobAttr):
            attributes = parser.parse_optional_attr_dict()
            parser.parse_punctuation(":")
            type_ = parser.parse_type()
        elif isa(attribute, DenseIntOrFPElementsAttr):
            attributes = parser.parse_optional_attr_dict()
            type_ = attribute.type
            attribute = BlobAttr(Blob.of(_array_of(attribute)))
        else:
            parser.raise_error("expected dense<...> or #core.blob<...>", start, parser.pos)
        op = cls(attribute, cast(Tensor, type_))
        op.attributes.update(attributes)
        return op


def _array_of(dense: DenseIntOrFPElementsAttr[Any]) -> NDArray[Any]:
    """The values of a dense attribute; one that all of them are is unpacked once."""
    element, shape, data = dense.get_element_type(), dense.type.get_shape(), dense.data.data
    dtype = numpy_dtype(element)
    first = data[: element.compile_time_size]
    if len(data) > len(first) and data == first * (len(data) // len(first)):
        return np.broadcast_to(np.array(element.unpack(first, 1), dtype).reshape(()), shape)
    return np.array(dense.get_values(), dtype).reshape(shape)


@irdl_op_definition
class FromDimsOp(CoreOp):
    """
    An i64 tensor made of dimension expressions.

    The result has the shape `shape` (static; `[]` for a scalar) and the values in C order.

    Constraints:

    - (C1) there are as many values as the shape has elements.

    Example:

    ```mlir
    %s = core.from_dims [n, h * w] shape [2] : tensor<2xi64>
    ```
    """

    name = "core.from_dims"
    values = prop_def(DimsAttr)
    shape = prop_def(Ints)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "custom<Dims>($values) `shape` $shape attr-dict `:` type(results)"

    def __init__(self, values: Sequence[ExprLike], shape: Sequence[int] | None = None):
        sizes = [len(values)] if shape is None else shape
        super().__init__([], {"values": DimsAttr.of(values), "shape": int_array(sizes)})

    def infer(self) -> Sequence[Attribute]:
        shape = ints(self.shape)
        count = len(self.values.data)
        require(int(np.prod(shape)) == count, f"{count} values do not fill the shape {shape}", "C1")
        return [tensor(i64, shape)]


@irdl_op_definition
class BindSymbolsOp(CoreOp, MakesSymbols):
    """
    Give names to integers that are only known at run time.

    The symbols denote the elements in C order from here to the end of the enclosing block, in every
    type and expression. The op defines symbols, so it is dead only if nothing uses them.

    Constraints:

    - (C1) the elements are integers or i1.
    - (C2) the shape is static, and there is one symbol for each element.

    Example:

    ```mlir
    core.bind_symbols %sizes ["u0", "u1"] : tensor<2xi64>
    ```
    """

    name = "core.bind_symbols"
    input = operand_def()
    symbols = prop_def(ArrayAttr[StringAttr])
    traits = traits_def(NoMemoryEffect())
    assembly_format = "operands $symbols attr-dict `:` type(operands)"

    def __init__(self, input: SSAValue, symbols: Sequence[str]):
        names = ArrayAttr([StringAttr(name) for name in symbols])
        super().__init__([input], {"symbols": names}, results=0)

    @property
    def made_symbols(self) -> list[str]:
        """The symbols, one per element."""
        return [name.data for name in self.symbols]

    def infer(self) -> Sequence[Attribute]:
        element = element_type(self.input)
        require(
            is_integer(element) or element == i1, lambda: f"expected integers, got {element}", "C1"
        )
        count = product(dims_of(self.input)).value
        require(
            count == len(self.symbols),
            lambda: f"{len(self.symbols)} symbols for {self.input.type}",
            "C2",
        )
        return []


@irdl_op_definition
class IotaOp(CoreOp):
    """
    The i64 tensor of shape `dims` whose elements are their own index along `axis`.

    Constraints:

    - (C1) `axis` is one of the dimensions.

    Example:

    ```mlir
    %i = core.iota [2, 3] axis 1 : tensor<2x3xi64>
    ```
    """

    name = "core.iota"
    dims = prop_def(DimsAttr)
    axis = prop_def(IntAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "custom<Dims>($dims) `axis` custom<Number>($axis) attr-dict `:` type(results)"

    def __init__(self, dims: Sequence[ExprLike], axis: int = 0):
        super().__init__([], {"dims": DimsAttr.of(dims), "axis": IntAttr(axis)})

    def infer(self) -> Sequence[Attribute]:
        require_axis(self.axis.data, len(self.dims.data), "C1")
        return [tensor(i64, self.dims.data)]


def constant_array(value: SSAValue) -> NDArray[Any] | None:
    """The values if `value` is a constant, else None."""
    return value.owner.array if isinstance(value.owner, ConstantOp) else None


def scalar(value: float, element: Attribute) -> ConstantOp:
    """The rank 0 constant `value` of an element type."""
    return ConstantOp.of(np.array(value, numpy_dtype(element)))


def _nested(values: Any) -> str:
    """MLIR's spelling of nested lists of numbers."""
    if isinstance(values, list):
        return f"[{', '.join(map(_nested, cast(list[Any], values)))}]"
    if isinstance(values, bool):
        return str(values).lower()
    if isinstance(values, float):
        mantissa, exponent = f"{values!r}e0".split("e")[:2]
        mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
        return mantissa if exponent == "0" else f"{mantissa}e{exponent}"
    return str(values)
