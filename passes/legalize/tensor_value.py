"""
Arithmetic on tensors in numpy's spelling: numbers where all is constant, ops of core elsewhere.

Interpolation weights, index tables and masks are a few lines of arithmetic over positions.
Written once with `TensorValue`, they become constants in static models and code in dynamic ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp, require, require_axis
from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    CeilOp,
    CompareOp,
    CosOp,
    DivOp,
    ExpOp,
    FloorOp,
    LogOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NegOp,
    NotOp,
    OrOp,
    RoundOp,
    SelectOp,
    SinOp,
    SubOp,
)
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import BroadcastOp, ConcatOp, ReshapeOp, SliceOp, TransposeOp
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_of,
    element_type,
    i1,
    i64,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Expr, ExprLike, constants, exprs

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.builder import CoreBuilder

Array: TypeAlias = NDArray[Any]
Operand: TypeAlias = "TensorValue | float"

LIMIT = 1 << 20
"""Constants of more elements than this are left to be computed by ops."""


@dataclass(frozen=True, eq=False)
class TensorValue:
    """
    A tensor that is known (an array) or made by an op.

    Operators are elementwise and broadcast; Python numbers take the element type of the other side.
    Comparisons are methods (`x.lt(y)`), and `//` and `%` round toward minus infinity.
    """

    builder: CoreBuilder
    data: Array | SSAValue

    # Making

    @staticmethod
    def of(builder: CoreBuilder, value: SSAValue) -> TensorValue:
        """A value, known if it is a constant."""
        array = builder.constant(value)
        return TensorValue(builder, value if array is None or array.size > LIMIT else array)

    @staticmethod
    def number(builder: CoreBuilder, value: float, element: Attribute) -> TensorValue:
        """A known scalar."""
        dtype = numpy_dtype(element)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            require(limits.min <= value <= limits.max, f"{value} is no number of type {element}")
        require(dtype.kind != "O", f"{value} is no number of type {element}")
        return TensorValue(builder, np.array(value, dtype))

    @staticmethod
    def dim(builder: CoreBuilder, value: ExprLike) -> TensorValue:
        """A dimension as an i64 scalar; VerifyException if a number is too large for one."""
        number = Expr.of(value).value
        if number is not None and abs(number) < 1 << 63:
            return TensorValue(builder, np.array(number, np.int64))
        return TensorValue(builder, builder.dims([value], []))

    @staticmethod
    def iota(builder: CoreBuilder, size: ExprLike) -> TensorValue:
        """The i64 vector 0 .. size - 1."""
        number = Expr.of(size).value
        if number is not None and number <= LIMIT:
            return TensorValue(builder, np.arange(number, dtype=np.int64))
        return TensorValue(builder, builder.add(IotaOp([size])))

    # Reading

    @property
    def array(self) -> Array | None:
        """The values, if they are known."""
        return self.data if isinstance(self.data, np.ndarray) else None

    @property
    def element(self) -> Attribute:
        """The element type."""
        if isinstance(self.data, np.ndarray):
            return element_of(self.data.dtype)
        return element_type(self.data)

    @property
    def dims(self) -> tuple[Expr, ...]:
        """The dimensions."""
        if isinstance(self.data, np.ndarray):
            return exprs(self.data.shape)
        return dims_of(self.data)

    @property
    def value(self) -> SSAValue:
        """The tensor as a value; known ones become a constant."""
        if isinstance(self.data, np.ndarray):
            return self.builder.tensor(np.asarray(self.data, order="C"))
        return self.data

    def is_all(self, number: float) -> bool:
        """True if every element is known to be `number`."""
        return isinstance(self.data, np.ndarray) and bool(np.all(self.data == number))

    # Arithmetic

    def __add__(self, other: Operand) -> TensorValue:
        return self._binary(other, AddOp, np.add)

    def __sub__(self, other: Operand) -> TensorValue:
        return self._binary(other, SubOp, np.subtract)

    def __rsub__(self, other: float) -> TensorValue:
        return self._like(other) - self

    def __mul__(self, other: Operand) -> TensorValue:
        return self._binary(other, MulOp, np.multiply)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> TensorValue:
        """The quotient of floats."""
        return self._binary(other, DivOp, np.divide)

    def __rtruediv__(self, other: float) -> TensorValue:
        return self._like(other) / self

    def __floordiv__(self, other: Operand) -> TensorValue:
        """The quotient of integers."""
        if (known := self._known(other)) is not None:
            return self._make(np.floor_divide(*known))
        return (self - self % other)._binary(other, DivOp, np.floor_divide)

    def quotient(self, other: TensorValue) -> TensorValue:
        """As `//`, also of numbers that are too close to the least or greatest one for that."""
        if (known := self._known(other)) is not None:
            return self._make(np.floor_divide(*known))
        rest, differs = self % other, self.lt(0).ne(other.lt(0))
        above = (self + (other - rest))._binary(other, DivOp, np.floor_divide) - 1
        return differs.where(above, (self - rest)._binary(other, DivOp, np.floor_divide))

    def __mod__(self, other: Operand) -> TensorValue:
        return self._binary(other, ModOp, np.mod)

    def __neg__(self) -> TensorValue:
        return self._unary(NegOp, np.negative)

    def __and__(self, other: Operand) -> TensorValue:
        return self._binary(other, AndOp, np.bitwise_and)

    def __or__(self, other: Operand) -> TensorValue:
        return self._binary(other, OrOp, np.bitwise_or)

    def __invert__(self) -> TensorValue:
        return self._unary(NotOp, np.invert)

    def minimum(self, other: Operand) -> TensorValue:
        return self._binary(other, MinOp, np.minimum)

    def maximum(self, other: Operand) -> TensorValue:
        return self._binary(other, MaxOp, np.maximum)

    def clip(self, low: Operand, high: Operand) -> TensorValue:
        """At least `low`, and then at most `high`."""
        return self.maximum(low).minimum(high)

    def abs(self) -> TensorValue:
        return self._unary(AbsOp, np.abs)

    def floor(self) -> TensorValue:
        return self._unary(FloorOp, np.floor)

    def ceil(self) -> TensorValue:
        return self._unary(CeilOp, np.ceil)

    def round(self) -> TensorValue:
        """Halves to even."""
        return self._unary(RoundOp, np.rint)

    def exp(self) -> TensorValue:
        return self._unary(ExpOp, np.exp)

    def log(self) -> TensorValue:
        return self._unary(LogOp, np.log)

    def sin(self) -> TensorValue:
        return self._unary(SinOp, np.sin)

    def cos(self) -> TensorValue:
        return self._unary(CosOp, np.cos)

    # Comparison

    def eq(self, other: Operand) -> TensorValue:
        return self._compare(other, "eq", np.equal)

    def ne(self, other: Operand) -> TensorValue:
        return self._compare(other, "ne", np.not_equal)

    def lt(self, other: Operand) -> TensorValue:
        return self._compare(other, "lt", np.less)

    def le(self, other: Operand) -> TensorValue:
        return self._compare(other, "le", np.less_equal)

    def gt(self, other: Operand) -> TensorValue:
        return self._compare(other, "gt", np.greater)

    def ge(self, other: Operand) -> TensorValue:
        return self._compare(other, "ge", np.greater_equal)

    def where(self, on_true: TensorValue, on_false: Operand) -> TensorValue:
        """`on_true` where this (i1) holds, else `on_false`."""
        other = on_true._like(on_false)
        arrays = (self.array, on_true.array, other.array)
        known = [array for array in arrays if array is not None]
        if len(known) == 3 and _small(known):
            return self._make(np.where(*known))
        return self._op(SelectOp(self.value, on_true.value, other.value))

    # Types and shapes

    def cast(self, element: Attribute) -> TensorValue:
        if element == self.element:
            return self
        if isinstance(self.data, np.ndarray):
            if element == i1:
                return self._make(self.data != 0)
            return self._make(self.data.astype(numpy_dtype(element)))
        return self._op(CastOp(self.value, element))

    def reshape(self, dims: Sequence[ExprLike]) -> TensorValue:
        numbers = constants(dims)
        if isinstance(self.data, np.ndarray) and numbers is not None:
            return self._make(_fitting(self.data.reshape, numbers))
        return self._op(ReshapeOp(self.value, dims))

    def column(self, rank: int, axis: int) -> TensorValue:
        """A vector as a tensor of `rank` dimensions that extends along `axis`."""
        dims: list[ExprLike] = [1] * rank
        require(len(self.dims) == 1, f"expected a vector, got {len(self.dims)} dimensions")
        require(-rank <= axis < rank, f"axis {axis} of {rank} dimensions")
        dims[axis] = self.dims[0]
        return self.reshape(dims)

    def broadcast(self, dims: Sequence[ExprLike]) -> TensorValue:
        numbers = constants(dims)
        if tuple(exprs(dims)) == self.dims:
            return self
        if (
            isinstance(self.data, np.ndarray)
            and numbers is not None
            and math.prod(numbers) <= LIMIT
        ):
            return self._make(_fitting(np.broadcast_to, self.data, numbers))
        return self._op(BroadcastOp(self.value, dims))

    def transpose(self, permutation: Sequence[int]) -> TensorValue:
        if list(permutation) == sorted(permutation):
            return self
        if isinstance(self.data, np.ndarray):
            return self._make(_fitting(self.data.transpose, permutation))
        return self._op(TransposeOp(self.value, permutation))

    def pick(self, axis: int, index: ExprLike) -> TensorValue:
        """The part at one position of `axis`, without that dimension."""
        number = Expr.of(index).value
        require_axis(axis, len(self.dims))
        if isinstance(self.data, np.ndarray) and number is not None:
            return self._make(_fitting(np.take, self.data, number, axis))
        starts: list[ExprLike] = [0] * len(self.dims)
        sizes: list[ExprLike] = list(self.dims)
        starts[axis], sizes[axis] = index, 1
        part = self._op(SliceOp(self.value, starts, sizes))
        return part.reshape([dim for k, dim in enumerate(self.dims) if k != axis])

    def reduce(self, kind: str, axes: Sequence[int], keep_dims: bool = False) -> TensorValue:
        """Combine elements along axes: sum, prod, max or min."""
        functions = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
        if isinstance(self.data, np.ndarray) and (self.data.size or kind in ("sum", "prod")):
            combine = partial(functions[kind], axis=tuple(axes), keepdims=keep_dims)
            result = _fitting(combine, self.data)
            return self._make(np.asarray(result, self.data.dtype))
        return self._op(ReduceOp(kind, self.value, sorted(axes), keep_dims))

    # Building

    def _make(self, data: Any) -> TensorValue:
        return TensorValue(self.builder, np.asarray(data))

    def _op(self, op: CoreOp) -> TensorValue:
        return TensorValue(self.builder, self.builder.add(op))

    def _like(self, other: Operand) -> TensorValue:
        if isinstance(other, TensorValue):
            return other
        return TensorValue.number(self.builder, other, self.element)

    def _known(self, *others: Operand) -> list[Array] | None:
        """All arrays, if they are known and what they broadcast to is not large."""
        arrays = [q.array for q in (self, *map(self._like, others))]
        known = [array for array in arrays if array is not None]
        return known if len(known) == len(arrays) and _small(known) else None

    def _unary(self, op: type[Any], function: Callable[..., Any]) -> TensorValue:
        if isinstance(self.data, np.ndarray):
            with np.errstate(all="ignore"):
                return self._make(function(self.data))
        return self._op(op(self.value))

    def _binary(self, other: Operand, op: type[Any], function: Callable[..., Any]) -> TensorValue:
        if (known := self._known(other)) is not None:
            with np.errstate(all="ignore"):
                return self._make(function(*known))
        return self._op(op(self.value, self._like(other).value))

    def _compare(self, other: Operand, predicate: str, function: Callable[..., Any]) -> TensorValue:
        if (known := self._known(other)) is not None:
            return self._make(function(*known))
        return self._op(CompareOp(predicate, self.value, self._like(other).value))


def broadcast_values(*values: TensorValue) -> list[TensorValue]:
    """Tensors in the shape to which they broadcast."""
    dims = broadcast([value.dims for value in values])
    return [value.broadcast(dims) for value in values]


def concat(parts: Sequence[TensorValue], axis: int) -> TensorValue:
    """Join tensors along an axis."""
    arrays = [part.array for part in parts]
    builder = parts[0].builder
    if all(array is not None for array in arrays):
        return TensorValue(builder, _fitting(np.concatenate, cast(list[Array], arrays), axis))
    return TensorValue(builder, builder.add(ConcatOp([part.value for part in parts], axis)))


def stack(parts: Sequence[TensorValue], axis: int) -> TensorValue:
    """Join tensors of one shape along a new axis."""
    dims = list(parts[0].dims)
    dims.insert(axis, Expr.const(1))
    return concat([part.reshape(dims) for part in parts], axis)


def index_vector(builder: CoreBuilder, size: ExprLike, rank: int, axis: int) -> TensorValue:
    """0 .. size - 1 along `axis` of a tensor of `rank` dimensions."""
    return TensorValue.iota(builder, size).column(rank, axis)


def as_index(value: TensorValue) -> TensorValue:
    """A tensor of whole numbers as i64."""
    return value.cast(i64)


def _small(arrays: Sequence[Array]) -> bool:
    shapes = [array.shape for array in arrays]
    return math.prod(_fitting(np.broadcast_shapes, *shapes)) <= LIMIT


def _fitting(function: Callable[..., Any], *operands: Any) -> Any:
    """What numpy makes of operands; VerifyException, as of an op, if their shapes do not fit."""
    try:
        return function(*operands)
    except (ValueError, IndexError) as error:
        raise VerifyException(str(error)) from None
