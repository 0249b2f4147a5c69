"""Short spellings for building `core` ops, and what is known about their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp, require, require_axis
from lowerdeck.dialects.core.constant import ConstantOp, FromDimsOp, constant_array
from lowerdeck.dialects.core.elementwise import CastOp, CompareOp, SelectOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import BroadcastOp, ReshapeOp, SliceOp, SplitOp, TransposeOp
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    dims_of,
    element_type,
    numpy_dtype,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr, ExprLike, constants, exprs, product
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.passes.legalize.symbolic import SMALL, SymbolicValues


class CoreBuilder:
    """
    Builds `core` ops one after the other at `point`.

    Every method returns the value that it built, or its argument if there is nothing to do.
    """

    def __init__(
        self, point: InsertPoint, symbols: SymbolicValues, location: LocationAttr = UNKNOWN_LOC
    ) -> None:
        self.point = point
        self.symbols = symbols
        self.location = location
        self.created: list[Operation] = []
        """The ops built here, in order."""

    def at(self, point: InsertPoint) -> CoreBuilder:
        """A builder for another place, with the same location and knowledge."""
        builder = CoreBuilder(point, self.symbols, self.location)
        builder.created = self.created
        return builder

    # Ops

    def insert(self, op: Operation) -> Sequence[SSAValue]:
        """Insert an op; its results."""
        op.location = self.location
        Rewriter.insert_op(op, self.point)
        self.created.append(op)
        return op.results

    def add(self, op: CoreOp) -> SSAValue:
        """Insert an op; its only (or first) result. What small constants decide is a constant."""
        if (array := _folded(op)) is not None:
            op.erase()
            return self.tensor(array)
        return self.insert(op)[0]

    def tensor(self, array: NDArray[Any]) -> SSAValue:
        """A constant with the values and dtype of `array`."""
        return self.insert(ConstantOp.of(array))[0]

    def scalar(self, value: float, like: Attribute | SSAValue) -> SSAValue:
        """A constant of rank 0, of an element type or of that of a value."""
        element = element_type(like) if isinstance(like, SSAValue) else like
        dtype = numpy_dtype(element)
        require(dtype.kind != "O", f"{value} is no number of type {element}")
        return self.tensor(np.array(value).astype(dtype))

    def dims(self, values: Sequence[ExprLike], shape: Sequence[int] | None = None) -> SSAValue:
        """An i64 tensor of expressions: a constant if all are numbers."""
        shape = [len(values)] if shape is None else shape
        if (numbers := constants(values)) is not None:
            fits = all(-(1 << 63) <= number < 1 << 63 for number in numbers)
            require(fits, lambda: f"a number of elements of {max(numbers, key=abs)}, in 64 bits")
            return self.tensor(np.array(numbers, np.int64).reshape(tuple(shape)))
        return self.add(FromDimsOp(values, shape))

    def reshape(self, value: SSAValue, dims: Sequence[ExprLike]) -> SSAValue:
        """`value` with the dimensions `dims`."""
        return value if dims_of(value) == exprs(dims) else self.add(ReshapeOp(value, dims))

    def flatten(self, value: SSAValue, axis: int) -> SSAValue:
        """The matrix whose rows are the dimensions before `axis`."""
        dims = dims_of(value)
        return self.reshape(value, [product(dims[:axis]), product(dims[axis:])])

    def unsqueeze(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` with dimensions of one at the positions `axes` of the result (none negative)."""
        dims = list(dims_of(value))
        for axis in sorted(axes):
            dims.insert(axis, Expr.const(1))
        return self.reshape(value, dims)

    def squeeze(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` without the dimensions `axes` (none negative), which are one."""
        dims = [dim for k, dim in enumerate(dims_of(value)) if k not in axes]
        return self.reshape(value, dims)

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """`value` with its dimensions permuted."""
        if list(permutation) == list(range(rank_of(value))):
            return value
        return self.add(TransposeOp(value, permutation))

    def channels_first(self, image: SSAValue) -> SSAValue:
        """[N, spatial..., C] as [N, C, spatial...]."""
        rank = rank_of(image)
        return self.transpose(image, [0, rank - 1, *range(1, rank - 1)])

    def channels_last(self, image: SSAValue) -> SSAValue:
        """[N, C, spatial...] as [N, spatial..., C]."""
        return self.transpose(image, [0, *range(2, rank_of(image)), 1])

    def broadcast(self, value: SSAValue, dims: Sequence[ExprLike]) -> SSAValue:
        """`value` repeated up to the dimensions `dims`."""
        return value if dims_of(value) == exprs(dims) else self.add(BroadcastOp(value, dims))

    def cast(self, value: SSAValue, element: Attribute | SSAValue) -> SSAValue:
        """`value` in an element type, or in that of another value."""
        element = element_type(element) if isinstance(element, SSAValue) else element
        return value if element_type(value) == element else self.add(CastOp(value, element))

    def slice(
        self,
        value: SSAValue,
        starts: Sequence[ExprLike],
        sizes: Sequence[ExprLike],
        steps: Sequence[ExprLike] | None = None,
    ) -> SSAValue:
        """The elements from `starts` on."""
        whole = all(Expr.of(start) == 0 for start in starts) and dims_of(value) == exprs(sizes)
        if whole and (steps is None or all(Expr.of(step) == 1 for step in steps)):
            return value
        return self.add(SliceOp(value, starts, sizes, steps))

    def slice_axis(self, value: SSAValue, axis: int, start: ExprLike, size: ExprLike) -> SSAValue:
        """The elements `start .. start + size - 1` along one dimension."""
        require_axis(axis, rank_of(value))
        starts: list[ExprLike] = [0] * rank_of(value)
        sizes: list[ExprLike] = list(dims_of(value))
        starts[axis], sizes[axis] = start, size
        return self.slice(value, starts, sizes)

    def flip(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """The elements along `axes` (none negative) in reverse."""
        if not axes:
            return value
        dims = dims_of(value)
        starts = [dim - 1 if k in axes else 0 for k, dim in enumerate(dims)]
        return self.slice(value, starts, dims, [-1 if k in axes else 1 for k in range(len(dims))])

    def split(self, value: SSAValue, axis: int, sizes: Sequence[ExprLike]) -> list[SSAValue]:
        """Consecutive parts of `value` along one dimension, which they fill."""
        if len(sizes) == 1 and dims_of(value)[axis] == Expr.of(sizes[0]):
            return [value]
        return list(self.insert(SplitOp(value, axis, sizes)))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`lhs predicate rhs` as i1."""
        return self.add(CompareOp(predicate, lhs, rhs))

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        """`on_true` where the condition holds, else `on_false`."""
        return self.add(SelectOp(condition, on_true, on_false))

    def reduce(
        self, kind: str, value: SSAValue, axes: Sequence[int], keep_dims: bool = False
    ) -> SSAValue:
        """The elements along `axes` combined by sum, prod, max or min."""
        return self.add(ReduceOp(kind, value, sorted(axes), keep_dims)) if axes else value

    # Knowledge

    def constant(self, value: SSAValue) -> NDArray[Any] | None:
        """The elements of a value that are numbers now: of a constant, or of shape arithmetic."""
        if (array := constant_array(value)) is not None:
            return array
        if (elements := self.symbols.elements(value)) is None:
            return None
        numbers = [None if e is None else e.value for e in elements.reshape(-1)]
        if None in numbers:
            return None
        array = np.array(numbers, object).astype(numpy_dtype(element_type(value)))
        return array.reshape(elements.shape)

    def computed(self, value: SSAValue) -> NDArray[Any] | None:
        """The elements of a value that only constants decide, whatever their number."""
        if (array := constant_array(value)) is not None:
            return array
        op = value.owner
        if not isinstance(op, CoreOp) or not op.operands or not is_evaluable(op):
            return None
        arrays = [array for each in op.operands if (array := self.computed(each)) is not None]
        if len(arrays) != len(op.operands):
            return None
        try:
            return evaluate(op, arrays, {})[value.index if isinstance(value, OpResult) else 0]
        except InterpretError:
            return None

    def ints(self, value: SSAValue) -> list[int] | None:
        """The elements of a tensor of integers in C order if they are numbers now."""
        array = self.constant(value)
        return None if array is None else whole_numbers(value, array)

    def exprs(self, value: SSAValue) -> list[Expr] | None:
        """
        The elements of a small integer tensor in C order as dimension expressions.

        What is known only at run time gets a symbol, by a `core.bind_symbols` after its definition.
        None if the tensor is not small, has no static shape, or is not of integers.
        """
        elements = self.symbols.complete(value)
        return None if elements is None else list(elements.reshape(-1))


def whole_numbers(value: SSAValue, array: NDArray[Any]) -> list[int]:
    """The elements of a value, in C order, as integers; VerifyException if some are none."""
    if array.dtype.kind not in "biu":
        numbers = array.astype(np.float64)
        if not (np.isfinite(numbers) & (np.floor(numbers) == numbers)).all():
            raise VerifyException(f"expected integers, got {element_type(value)}")
    return [int(number) for number in array.reshape(-1)]


def _folded(op: CoreOp) -> NDArray[Any] | None:
    """The only result of an op of constants, if all of them and the result are small."""
    if not op.operands or len(op.results) != 1 or not is_evaluable(op):
        return None
    # Elements that C has no type for are none of the results: what is made of them is known now.
    is_narrow = any(element_type(operand) not in COMPUTABLE for operand in op.operands)
    if not is_narrow and not all(map(_is_small, (*op.operands, *op.results))):
        return None
    arrays = [constant_array(operand) for operand in op.operands]
    known = [array for array in arrays if array is not None]
    if len(known) != len(arrays):
        return None
    try:
        return np.ascontiguousarray(evaluate(op, known, {})[0]).reshape(
            static_shape(op.results[0]) or ()
        )
    except InterpretError:
        return None


def _is_small(value: SSAValue) -> bool:
    shape = static_shape(value)
    return shape is not None and math.prod(shape) <= SMALL
