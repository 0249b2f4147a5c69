"""
Types of `core`: tensors whose dimensions have identity, and element types with their numpy forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.dims import Expr, ExprLike, constants, exprs, maximum, parse_exprs

_LARGEST_DIM = 2**63 - 1

Tensor: TypeAlias = TensorType[Attribute]

f64, f32, f16, bf16 = builtin.f64, builtin.f32, builtin.f16, builtin.bf16
i1, i8, i16, i32, i64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))
ui8, ui16, ui32, ui64 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64))


@irdl_attr_definition
class DimsAttr(Data[tuple[Expr, ...]]):
    """A list of integer expressions: `#core.dims<[n, 3, (w + 1) floordiv 2]>`."""

    name = "core.dims"

    @staticmethod
    def of(values: Iterable[ExprLike]) -> DimsAttr:
        return DimsAttr(exprs(values))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        with parser.in_angle_brackets():
            return parse_exprs(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")


@irdl_attr_definition
class TensorEncoding(Data[tuple[Expr, ...]]):
    """
    The identity of a tensor's dimensions: `#core.tensor<dims = [n, 3, h, w]>`.

    It is present exactly on tensors with a dimension that is not a number, and lists all of them.
    """

    name = "core.tensor"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        with parser.in_angle_brackets():
            parser.parse_keyword("dims")
            parser.parse_punctuation("=")
            return parse_exprs(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<dims = [{', '.join(map(str, self.data))}]>")


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """Text of any length; it has no C form."""

    name = "core.string"


@irdl_attr_definition
class SequenceType(ParametrizedAttribute, TypeAttribute):
    """A list of tensors of one element type: `!core.sequence<tensor<*xf32>>`."""

    name = "core.sequence"
    element: Attribute


@irdl_attr_definition
class OptionalType(ParametrizedAttribute, TypeAttribute):
    """A value that may be absent: `!core.optional<tensor<2xf32>>`."""

    name = "core.optional"
    element: Attribute


UNKNOWN = NoneAttr()
"""The element type of a tensor before legalization has found it."""

_ELEMENTS: dict[Attribute, np.dtype[Any]] = {
    f64: np.dtype(np.float64),
    f32: np.dtype(np.float32),
    f16: np.dtype(np.float16),
    bf16: np.dtype(ml_dtypes.bfloat16),
    i1: np.dtype(np.bool_),
    i8: np.dtype(np.int8),
    i16: np.dtype(np.int16),
    i32: np.dtype(np.int32),
    i64: np.dtype(np.int64),
    ui8: np.dtype(np.uint8),
    ui16: np.dtype(np.uint16),
    ui32: np.dtype(np.uint32),
    ui64: np.dtype(np.uint64),
    IntegerType(2): np.dtype(ml_dtypes.int2),
    IntegerType(4): np.dtype(ml_dtypes.int4),
    IntegerType(2, Signedness.UNSIGNED): np.dtype(ml_dtypes.uint2),
    IntegerType(4, Signedness.UNSIGNED): np.dtype(ml_dtypes.uint4),
    builtin.Float8E4M3FNType(): np.dtype(ml_dtypes.float8_e4m3fn),
    builtin.Float8E4M3FNUZType(): np.dtype(ml_dtypes.float8_e4m3fnuz),
    builtin.Float8E5M2Type(): np.dtype(ml_dtypes.float8_e5m2),
    builtin.Float8E5M2FNUZType(): np.dtype(ml_dtypes.float8_e5m2fnuz),
    builtin.Float8E8M0FNUType(): np.dtype(ml_dtypes.float8_e8m0fnu),
    builtin.Float4E2M1FNType(): np.dtype(ml_dtypes.float4_e2m1fn),
    builtin.Float6E2M3FNType(): np.dtype(ml_dtypes.float6_e2m3fn),
    builtin.Float6E3M2FNType(): np.dtype(ml_dtypes.float6_e3m2fn),
    ComplexType(f32): np.dtype(np.complex64),
    ComplexType(f64): np.dtype(np.complex128),
    StringType(): np.dtype(np.object_),
}
_TYPES = {dtype: element for element, dtype in _ELEMENTS.items()}
_NAMED: dict[str, Attribute] = {dtype.name: element for dtype, element in _TYPES.items()}

COMPUTABLE = frozenset({f64, f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64})
"""The element types that have a C form."""


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy form of an element type; KeyError if it has none."""
    return _ELEMENTS[element]


def element_of(dtype: np.dtype[Any]) -> Attribute:
    """The element type for a numpy dtype; KeyError if there is none."""
    return _TYPES[dtype]


def element_named(name: object) -> Attribute | None:
    """
    The element type by numpy's name of its form, as `int8`; None if there is none. For names in
    files: numpy reads more than names.
    """
    return _NAMED.get(name) if isinstance(name, str) else None


def is_float(element: Attribute) -> TypeGuard[AnyFloat]:
    """True for the floating-point element types that C computes with."""
    return element in (f64, f32, f16, bf16)


def is_integer(element: Attribute) -> bool:
    """True for signed and unsigned integers, not for i1."""
    return isinstance(element, IntegerType) and element != i1


def _is_integer_type(type_: Attribute) -> TypeGuard[IntegerType]:
    """`isa` takes several times as long."""
    return isinstance(type_, IntegerType)


def is_unsigned(element: Attribute) -> bool:
    """True for unsigned integers and i1, which compare and divide as unsigned."""
    return element == i1 or (
        _is_integer_type(element) and element.signedness.data == Signedness.UNSIGNED
    )


def bit_width(type_: Attribute) -> int:
    """The bits of an integer type; VerifyException if it is none."""
    if not _is_integer_type(type_):
        raise VerifyException(f"expected an integer type, got {type_}")
    return type_.width.data


def tensor(element: Attribute, dims: Iterable[ExprLike]) -> Tensor:
    """
    The tensor type with these dimensions; numbers print as a plain `tensor<2x3xf32>`.

    VerifyException if a number is none that memory has.
    """
    dims = exprs(dims)
    if (known := _tensors.get((element, dims))) is not None:
        return known
    if len(_tensors) > _MOST_KNOWN:
        _tensors.clear()
    made = _tensors[element, dims] = _tensor(element, dims)
    return made


_tensors: dict[tuple[Attribute, tuple[Expr, ...]], Tensor] = {}
"""Types that were made: those of a model are few, but asked for again and again."""


def _tensor(element: Attribute, dims: tuple[Expr, ...]) -> Tensor:
    if (least := min((dim.value or 0 for dim in dims), default=0)) < 0:
        raise VerifyException(f"a dimension is {least}, which is negative")
    if (numbers := constants(dims)) is not None:
        if any(number > _LARGEST_DIM for number in numbers):
            raise VerifyException(f"a dimension is over {_LARGEST_DIM}")
        return TensorType(element, numbers)
    shape = [DYNAMIC_INDEX if (n := dim.value) is None else n for dim in dims]
    return TensorType(element, shape, TensorEncoding(dims))


def dims_of(type_: Attribute | SSAValue) -> tuple[Expr, ...]:
    """
    The dimensions of a ranked tensor type (or of a value's type).

    VerifyException if the type is not a ranked tensor or has a dimension without identity.
    """
    # What is known is looked up first: it answers almost all questions.
    if isinstance(type_, SSAValue):
        type_ = type_.type
    if (known := _dims.get(id(type_))) is not None:
        return known[1]
    if not isinstance(type_, TensorType):
        raise VerifyException(f"expected a ranked tensor, got {type_}")
    return _learn(cast(Tensor, type_))[1]


def _learn(type_: Tensor) -> _Known:
    if len(_dims) > _MOST_KNOWN:
        _dims.clear()
    dims = _dims_of(type_)
    known = _dims[id(type_)] = type_, dims, constants(dims)
    return known


_Known: TypeAlias = "tuple[Tensor, tuple[Expr, ...], tuple[int, ...] | None]"
"""A type, its dimensions, and their numbers if all are constants."""

_dims: dict[int, _Known] = {}
"""What is known of types that were asked for, by their identity: they live as long."""

_MOST_KNOWN = 1 << 10


def _dims_of(type_: Tensor) -> tuple[Expr, ...]:
    encoding = type_.encoding
    if isinstance(encoding, TensorEncoding):
        return encoding.data
    shape = type_.get_shape()
    if DYNAMIC_INDEX in shape:
        raise VerifyException(
            f"{type_} has a dimension without identity: write its dimensions as "
            "#core.tensor<dims = [...]> (T2)"
        )
    return exprs(shape)


_TENSORS = (TensorType, UnrankedTensorType)


def element_type(type_: Attribute | SSAValue) -> Attribute:
    """The element type of a ranked or unranked tensor type (or of a value's type)."""
    if isinstance(type_, SSAValue):
        type_ = type_.type
    if not isinstance(type_, _TENSORS):
        raise VerifyException(f"expected a tensor, got {type_}")
    return cast(Tensor, type_).element_type


MAX_RANK = 64
"""The most dimensions of a tensor, which is what numpy has."""


def rank_of(type_: Attribute | SSAValue) -> int:
    """The number of dimensions of a ranked tensor."""
    return len(dims_of(type_))


def static_shape(type_: Attribute | SSAValue) -> tuple[int, ...] | None:
    """The shape as numbers, or None if a dimension depends on a symbol."""
    if isinstance(type_, SSAValue):
        type_ = type_.type
    if (known := _dims.get(id(type_))) is None:
        dims_of(type_)
        known = _dims[id(type_)]
    return known[2]


def broadcast(shapes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """
    The shape of numpy broadcasting; VerifyException if two dimensions can never agree.

    Two different dimensions that are not known to be one give their maximum: at run time they must
    be equal or one of them 1.
    """
    alike = {tuple(shape) for shape in shapes} - {()}
    if len(alike) < 2:  # as most are
        return next(iter(alike), ())
    rank = max(map(len, alike))
    result: list[Expr] = []
    for axis in range(-rank, 0):
        dims = {shape[axis] for shape in shapes if len(shape) >= -axis} - {Expr.const(1)}
        numbers = {dim for dim in dims if dim.value is not None}
        if len(numbers) > 1:
            raise VerifyException(
                "cannot broadcast "
                + " with ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
            )
        # A number other than one decides: the other dimensions must be it, or one.
        chosen = numbers or dims
        result.append(maximum(*chosen) if chosen else Expr.const(1))
    return tuple(result)
