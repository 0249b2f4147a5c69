"""`separate-conv`: a convolution whose filters are products becomes two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import constants
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import Array, constant_values, is_finite, is_precise

MOST_TERMS = 8
"""The maximum number of products that a filter is the sum of, if it has to be exact."""


@record
class Factors:
    """Weights of two convolutions, the first along the spatial axis `axis`, 0 or 1."""

    axis: int
    first: Array
    """[groups * terms, C / groups, k, 1], or with 1, k at the end"""
    second: Array
    """[M, terms, 1, k], or with k, 1 at the end"""
    products: int
    """Products of numbers for one image."""


def _sum_of_products(
    matrices: Array, terms: int, kind: np.dtype[Any]
) -> tuple[Array, Array] | None:
    """
    Matrices [groups, a, b] as [groups, a, t] @ [groups, t, b], with the fewest t up to `terms`, or
    None: elimination with complete pivoting. Each element is exact but for the rounding of the
    factors: those of one product that are zero are exact.
    """
    rest, numbers = matrices, np.arange(len(matrices))
    columns: list[Array] = []
    rows: list[Array] = []
    largest = np.zeros_like(matrices)
    for _ in range(terms):
        place = np.abs(rest).reshape(len(rest), -1).argmax(1)
        i, j = place // rest.shape[2], place % rest.shape[2]
        pivots = rest[numbers, i, j]
        # Not -0, which 0 / -1 is.
        column = rest[numbers, :, j] / np.where(pivots == 0, 1, pivots)[:, None] + 0.0
        columns.append(column.astype(kind).astype(np.float64))
        rows.append(rest[numbers, i, :].astype(kind).astype(np.float64))
        products = columns[-1][:, :, None] * rows[-1][:, None, :]
        rest, largest = rest - products, largest + np.abs(products)
        if (np.abs(rest) <= 2 * np.finfo(kind).eps * largest).all():
            return np.stack(columns, 2), np.stack(rows, 1)
    return None


def _nearest_products(matrices: Array, error: float) -> tuple[Array, Array]:
    """The same with the fewest t for which the norm of the difference is `error` of that of all."""
    largest = np.abs(matrices).max((1, 2))
    # So that squares neither overflow nor vanish.
    units = np.where(largest == 0, 1, largest)[:, None]
    left, values, right = np.linalg.svd(matrices / units[:, :, None], full_matrices=False)
    squares = np.cumsum(values[:, ::-1] ** 2, 1)[:, ::-1]
    fitting = squares <= error**2 * squares[:, :1]
    terms = max(1, int((~fitting).sum(1).max()))
    roots = np.sqrt(values[:, :terms]) * np.sqrt(units)
    return left[:, :, :terms] * roots[:, None, :], roots[:, :, None] * right[:, :terms]


def _factors(op: ConvOp, axis: int, error: float) -> Factors | None:
    """Those that have the axis first, if there are any with fewer products of numbers."""
    groups, other = op.groups.data, 1 - axis
    sizes = (constants(dims_of(value)[2:]) for value in (op.input, op.result))
    before, after = sizes
    values = constant_values(op.weight)
    if before is None or after is None or values is None or not is_finite(values[0]):
        return None
    outputs, inputs, *kernel = values[0].shape
    own = outputs * inputs * prod(kernel) * prod(after)
    # By term: the first convolution computes windows along its axis and all lines along the other.
    first = groups * inputs * kernel[axis] * after[axis] * before[other]
    second = outputs * kernel[other] * prod(after)
    terms = (own - 1) // (first + second) if own else 0
    if terms < 1:
        return None
    apart = values[0].reshape(groups, outputs // groups, inputs, *kernel)
    # [groups, C / groups, k of the axis, M / groups, k of the other]
    moved = apart.transpose(0, 2, 3 + axis, 1, 3 + other)
    matrices = moved.reshape(groups, inputs * kernel[axis], -1)
    if error:
        found = _nearest_products(matrices, error)
    else:
        kind = numpy_dtype(element_type(op.weight))
        found = _sum_of_products(matrices, min(terms, MOST_TERMS), kind)
    if found is None or found[0].shape[2] > terms:
        return None
    rank = found[0].shape[2]
    columns = found[0].reshape(groups, inputs, kernel[axis], rank).transpose(0, 3, 1, 2)
    rows = found[1].reshape(groups, rank, -1, kernel[other]).transpose(0, 2, 1, 3)
    # The other axis of each has a size of one.
    return Factors(
        axis,
        np.expand_dims(columns.reshape(groups * rank, inputs, -1), 3 - axis),
        np.expand_dims(rows.reshape(outputs, rank, -1), 2 + axis),
        rank * (first + second),
    )


class SeparateConv(Pattern[Factors]):
    """conv(x, w) -> conv(conv(x, u), v) [w[m, c, i, j] = sum_t u[t, c, i] * v[m, t, j]]"""

    name = "separate-conv"
    roots = (ConvOp,)
    ranked = True

    def __init__(self, error: float) -> None:
        self._error = error

    def match(self, op: ConvOp) -> Match[Factors] | None:
        kernel = constants(dims_of(op.weight)[2:])
        if kernel is None or len(kernel) != 2 or min(kernel) < 2:
            return None
        if not is_precise(op.result) or not op.is_uniform:
            return None
        ways = [_factors(op, axis, self._error) for axis in (0, 1)]
        found = [factors for factors in ways if factors is not None]
        if not found:
            return None
        best = min(found, key=lambda factors: factors.products)
        reason = f"filters are sums of {best.second.shape[1]} products along two axes"
        return Match((op,), reason, best)

    def rewrite(self, match: Match[Factors], rewriter: Rewriter) -> None:
        op, factors = match.root, match.data
        assert isinstance(op, ConvOp)
        axis = factors.axis
        first = self._along(op, axis, op.input, factors.first, None, rewriter)
        value = rewriter.add(first).result
        rewriter.replace(op, self._along(op, 1 - axis, value, factors.second, op.bias, rewriter))

    @staticmethod
    def _along(
        op: ConvOp,
        axis: int,
        value: SSAValue,
        weight: Array,
        bias: SSAValue | None,
        rewriter: Rewriter,
    ) -> ConvOp:
        """The convolution with the windows of `op` along one axis."""

        def own(numbers: Sequence[Any], other: Any) -> list[Any]:
            return [number if k == axis else other for k, number in enumerate(numbers)]

        rounded = weight.astype(numpy_dtype(element_type(op.weight)))
        constant = rewriter.add(ConstantOp.of(np.ascontiguousarray(rounded))).result
        return ConvOp(
            value,
            constant,
            bias,
            strides=own(ints(op.strides), 1),
            dilations=own(ints(op.dilations), 1),
            pads_begin=own(op.pads_begin.data, 0),
            pads_end=own(op.pads_end.data, 0),
            groups=op.groups.data,
        )


_LIGHT = 4
"""How many multiply-adds take as long as one of a depthwise convolution."""

_PASS = 16
"""The multiply-adds that take as long as to write and read an element."""


class SeparateChannels(Pattern[tuple[Array, Array]]):
    """conv(x, w) -> conv(conv(x, d), p) [w[m, c, k] = p[m, c] * d[c, k]]"""

    name = "separate-channels"
    roots = (ConvOp,)
    ranked = True

    def match(self, op: ConvOp) -> Match[tuple[Array, Array]] | None:
        sizes = constants(dims_of(op.weight))
        if sizes is None or op.groups.data != 1 or not is_precise(op.result) or not op.is_uniform:
            return None
        outputs, taps = sizes[0], prod(sizes[2:])
        # For each input channel and position.
        if outputs * taps < outputs + _LIGHT * taps + _PASS:
            return None
        try:
            array = constant_array(op.weight)
        except ElidedBlobError:
            return None
        if array is None or array.size == 0:
            return None
        kind = numpy_dtype(element_type(op.weight))
        matrices = array.reshape(outputs, sizes[1], taps).transpose(1, 0, 2)
        # One channel tells nearly always.
        for part in (matrices[:1], matrices):
            exact = part.astype(np.float64)
            if not is_finite(exact) or (found := _sum_of_products(exact, 1, kind)) is None:
                return None
        mix, filters = found
        weights = (filters.reshape(sizes[1], 1, *sizes[2:]), mix[:, :, 0].T)
        return Match((op,), "each channel has one filter", weights)

    def rewrite(self, match: Match[tuple[Array, Array]], rewriter: Rewriter) -> None:
        op, (filters, mix) = match.root, match.data
        assert isinstance(op, ConvOp)
        ones = [1] * (filters.ndim - 2)

        def constant(array: Array) -> SSAValue:
            kind = numpy_dtype(element_type(op.weight))
            return rewriter.add(ConstantOp.of(np.ascontiguousarray(array.astype(kind)))).result

        first = ConvOp(
            op.input,
            constant(filters),
            strides=ints(op.strides),
            dilations=ints(op.dilations),
            pads_begin=op.pads_begin.data,
            pads_end=op.pads_end.data,
            groups=len(filters),
        )
        second = ConvOp(
            rewriter.add(first).result,
            constant(mix.reshape(*mix.shape, *ones)),
            op.bias,
            strides=ones,
            dilations=ones,
            pads_begin=[0] * len(ones),
            pads_end=[0] * len(ones),
        )
        rewriter.replace(op, second)


@dataclass(frozen=True)
class SeparateConvPass(PatternPass):
    """
    Convolutions by filters that are products, as two convolutions.

    - conv(x, w, b) -> conv(conv(x, d), p, b), d with one filter a channel, p with windows of one
      element, where w[m, c, k] = p[m, c] * d[c, k] [f32 or f64; one group; w constant and finite;
      so many filters and taps that the products that are left, those of d as four, and an element
      to write and read, as 16, are fewer]

    With the option `axes`, also those along two axes, such as Gauss and Sobel filters and those of
    bilinear resizing:

    - conv(x, w, b) -> conv(conv(x, u), v, b), where in each group
      w[m, c, i, j] = u[1, c, i] * v[m, 1, j] + ... + u[t, c, i] * v[m, t, j],
      u with windows along the rows or columns only, and v along the others
      [f32 or f64; w constant and finite; sizes of images known; fewer products of numbers, counted
      with the lines that strides of the second skip; t up to 8]

    Both weights are computed in float64 and rounded once: w differs from their products by that
    rounding alone, which with several products (t > 1) is that of the largest of them. Sums have
    another order; between the two convolutions they may overflow, and with several products an
    infinite input, of which each has its own share, may give NaN. With the option `error` (0.01,
    say), filters along axes need only be near: u and v are the singular vectors of the largest
    singular values of w in each group, as few as leave the Frobenius norm of the difference at
    `error` times that of w. No phase runs it with `axes`: what lies between the two is written and
    read once more, which costs more than the products where filters are small.
    """

    name = "separate-conv"
    axes: bool = False
    error: float = 0.0

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        along_axes = [SeparateConv(self.error)] if self.axes or self.error else []
        return [SeparateChannels(), *along_axes]
