"""The type of a buffer: where elements lie, in numbers or dimension expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.types import DimsAttr, numpy_dtype
from lowerdeck.dialects.dims import Expr, ExprLike, exprs, parse_exprs, product


def row_major(dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides, in elements, of a dense buffer in C order."""
    return tuple(product(dims[axis + 1 :]) for axis in range(len(dims)))


@irdl_attr_definition
class RefType(ParametrizedAttribute, TypeAttribute):
    """
    A buffer of elements: `!buffer.ref<[4, n] x f32>`, with strides in elements if they are not
    those of C order: `!buffer.ref<[4, n] x f32, [1, 4]>`.
    """

    name = "buffer.ref"
    dims: DimsAttr
    element: Attribute
    strides: DimsAttr

    @staticmethod
    def of(
        element: Attribute, dims: Iterable[ExprLike], strides: Iterable[ExprLike] | None = None
    ) -> RefType:
        return _ref(element, exprs(dims), None if strides is None else exprs(strides))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            dims = parse_exprs(parser)
            parser.parse_keyword("x")
            element = parser.parse_type()
            strides = row_major(dims)
            if parser.parse_optional_punctuation(",") is not None:
                strides = parse_exprs(parser)
        return [DimsAttr(dims), element, DimsAttr(strides)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"[{', '.join(map(str, self.dims.data))}] x ")
            printer.print_attribute(self.element)
            if not self.is_dense:
                printer.print_string(f", [{', '.join(map(str, self.strides.data))}]")

    def verify(self) -> None:
        if len(self.dims.data) != len(self.strides.data):
            raise VerifyException("a buffer has as many strides as dimensions")

    @property
    def is_dense(self) -> bool:
        """True if the elements lie in C order without gaps."""
        return self.strides.data == row_major(self.dims.data)

    @property
    def elements(self) -> Expr:
        """The number of elements."""
        return product(self.dims.data)

    @property
    def item_size(self) -> int:
        """Bytes an element takes."""
        return numpy_dtype(self.element).itemsize

    @property
    def bytes(self) -> Expr:
        """Bytes that a dense buffer of this type takes."""
        return self.elements * self.item_size

    @property
    def innermost(self) -> int:
        """The last dimension that is not 1, along which elements lie side by side; 0 if all are."""
        return max((axis for axis, dim in enumerate(self.dims.data) if dim != 1), default=0)

    def offset(self, indices: Sequence[Expr]) -> Expr:
        """The distance of an element from the first one, in elements."""
        pairs = zip(indices, self.strides.data, strict=True)
        return sum((index * stride for index, stride in pairs), Expr.const(0))


def ref_type(value: SSAValue) -> RefType:
    """The type of a value that is a buffer."""
    if not isinstance(value.type, RefType):
        raise VerifyException(f"expected a buffer, got {value.type}")
    return value.type


@lru_cache(maxsize=1 << 9)
def _ref(element: Attribute, dims: tuple[Expr, ...], strides: tuple[Expr, ...] | None) -> RefType:
    """Equal layers have equal buffers."""
    steps = row_major(dims) if strides is None else strides
    return RefType(DimsAttr(dims), element, DimsAttr(steps))
