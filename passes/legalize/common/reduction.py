"""Reductions along axes, known or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AbsOp, AddOp, DivOp, ExpOp, LogOp, SqrtOp, SubOp
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, NonzeroOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector


def mean(
    builder: CoreBuilder, value: SSAValue, axes: Sequence[int], keep_dims: bool = False
) -> SSAValue:
    """The mean along `axes`; of half precision it is computed in f32, where counts are exact."""
    element = element_type(value)
    wide = wide_element(value)
    dims = dims_of(value)
    total = builder.reduce("sum", builder.cast(value, wide), axes, keep_dims)
    count = builder.cast(builder.dims([product(dims[axis] for axis in axes)], []), wide)
    return builder.cast(builder.add(DivOp(total, count)), element)


def norm(x: TensorValue, axes: Sequence[int], keep: bool, order: float) -> TensorValue:
    """The p-norm of sizes, which are not negative; half precision is rounded once."""
    element, x = x.element, x.cast(wide_element(x.value))
    return _norm(x, axes, keep, order).cast(element)


def _norm(x: TensorValue, axes: Sequence[int], keep: bool, order: float) -> TensorValue:
    if abs(order) == math.inf:
        return x.reduce("max" if order > 0 else "min", axes, keep)
    if order == 0:
        return x.ne(0).cast(x.element).reduce("sum", axes, keep)
    if order == 1:
        return x.reduce("sum", axes, keep)
    if order == 2:
        return apply(SqrtOp, (x * x).reduce("sum", axes, keep))
    powers = PAIRS["pow"](x, TensorValue.number(x.builder, order, x.element))
    total = powers.reduce("sum", axes, keep)
    return PAIRS["pow"](total, TensorValue.number(x.builder, 1 / order, x.element))


class ReducedAxes:
    """Reduction along axes that are known."""

    def __init__(self, builder: Legalizer, rank: int, axes: Sequence[int]) -> None:
        self.builder, self.rank, self.axes = builder, rank, axes

    def reduce(self, kind: str, x: SSAValue, keep: bool) -> SSAValue:
        """The elements along the axes combined."""
        return self.builder.reduce(kind, x, self.axes, keep)

    def drop(self, x: SSAValue) -> SSAValue:
        """`x` without the axes, along which it has been reduced to one."""
        return self.builder.squeeze(x, self.axes)

    def mean(self, x: SSAValue, keep: bool) -> SSAValue:
        """The mean along the axes."""
        return mean(self.builder, x, self.axes, keep)


Reduction: TypeAlias = Callable[[ReducedAxes, SSAValue, bool], SSAValue]
"""A reduction of a value along axes; True if they stay, as dimensions of one element."""


def combined(kind: str) -> Reduction:
    """The reduction that combines elements as `core.reduce` of this kind does."""
    return lambda axes, x, keep: axes.reduce(kind, x, keep)


class DynamicAxes(ReducedAxes):
    """
    Reduction along `count` distinct axes that only the data tells.

    Along each dimension the reduced tensor is put before the tensor itself, and a slice takes
    either of them: its start and size follow from a symbol that is 1 for an axis, else 0.
    """

    def __init__(self, builder: Legalizer, rank: int, axes: SSAValue, count: int) -> None:
        super().__init__(builder, rank, [])
        self.count = count
        column = TensorValue(builder, builder.reshape(builder.cast(axes, i64), [count, 1]))
        index = index_vector(builder, rank, 2, 1)
        self.mask = (index.eq(column) | index.eq(column + rank)).reduce("max", [0])
        self.flags = builder.require_exprs(self.mask.cast(i64).value, "axes")

    def reduce(self, kind: str, x: SSAValue, keep: bool) -> SSAValue:
        builder = self.builder
        for axis, flag in enumerate(self.flags):
            reduced = builder.reduce(kind, x, [axis], keep_dims=True)
            size = 1 + (dims_of(x)[axis] - 1) * (1 - flag)
            x = builder.slice_axis(builder.add(ConcatOp([reduced, x], axis)), axis, 1 - flag, size)
        return x if keep else self.drop(x)

    def drop(self, x: SSAValue) -> SSAValue:
        builder = self.builder
        kept = builder.add(NonzeroOp((~self.mask).value, self.rank - self.count))
        indices = builder.reshape(kept, [self.rank - self.count])
        sizes = builder.add(GatherOp(builder.dims(dims_of(x)), indices, 0))
        return builder.reshape(x, builder.require_exprs(sizes, "sizes"))

    def mean(self, x: SSAValue, keep: bool) -> SSAValue:
        element = element_type(x)
        wide = self.builder.cast(x, wide_element(x))
        total = self.reduce("sum", wide, keep)
        count = product(
            1 + (dim - 1) * flag for dim, flag in zip(dims_of(x), self.flags, strict=True)
        )
        number = self.builder.cast(self.builder.dims([count], []), wide)
        return self.builder.cast(self.builder.add(DivOp(total, number)), element)


def log_sum_exp(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    """m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite."""
    builder = axes.builder
    top = axes.reduce("max", x, True)
    is_finite = builder.compare("lt", builder.add(AbsOp(top)), builder.scalar(math.inf, x))
    top = builder.select(is_finite, top, builder.scalar(0, x))
    total = axes.reduce("sum", builder.add(ExpOp(builder.add(SubOp(x, top)))), keep)
    top = top if keep else axes.drop(top)
    return builder.add(AddOp(builder.add(LogOp(total)), top))


def variance(
    x: TensorValue, axes: Sequence[int], keep: bool, correction: float
) -> tuple[TensorValue, TensorValue]:
    """The sum of squares of what differs from the mean, by the count less a number; the mean."""
    builder = x.builder
    center = mean(builder, x.value, axes, True)
    rest = x - TensorValue(builder, center)
    total = (rest * rest).reduce("sum", axes, keep)
    count = TensorValue.dim(builder, product(x.dims[axis] for axis in axes)).cast(x.element)
    center = center if keep else builder.squeeze(center, axes)
    return total / (count - correction).maximum(0.0), TensorValue(builder, center)
