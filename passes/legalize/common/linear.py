"""Matrix products with numpy's rules, and sums of products by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import MulOp, SqrtOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def zero_points(
    builder: Legalizer, factors: Sequence[SSAValue], zeros: Sequence[SSAValue | None]
) -> list[SSAValue]:
    """The zero points of factors that have any; if only one has, that of the other one is zero."""
    if all(zero is None for zero in zeros):
        return []
    return [
        builder.scalar(0, factor) if zero is None else zero
        for factor, zero in zip(factors, zeros, strict=True)
    ]


def matmul(
    builder: Legalizer,
    lhs: SSAValue,
    rhs: SSAValue,
    zeros: Sequence[SSAValue] = (),
    accumulator: Attribute | None = None,
) -> SSAValue:
    """
    numpy.matmul: a vector is a row on the left, a column on the right.

    Zero points are those of what is multiplied in the end, matrices.
    """
    is_row, is_column = rank_of(lhs) == 1, rank_of(rhs) == 1
    lhs = builder.unsqueeze(lhs, [0]) if is_row else lhs
    rhs = builder.unsqueeze(rhs, [1]) if is_column else rhs
    result = builder.add(MatmulOp(lhs, rhs, zeros, accumulator=accumulator))
    rank = rank_of(result)
    return builder.squeeze(result, [rank - 2] * is_row + [rank - 1] * is_column)


def convolution(
    builder: CoreBuilder,
    x: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    window: Window,
    groups: int,
    zeros: Sequence[SSAValue] = (),
    accumulator: Attribute | None = None,
) -> SSAValue:
    """The convolution of [N, C, spatial...] by [O, C / groups, kernel...]."""
    op = ConvOp(
        x,
        weight,
        bias,
        zeros,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        groups=groups,
        accumulator=accumulator,
    )
    return builder.add(op)


def transposed_convolution(
    builder: Legalizer, x: SSAValue, weight: SSAValue, bias: SSAValue | None = None, **window: Any
) -> SSAValue:
    """
    A transposed convolution. Every input is added to many outputs where these lie in memory, so
    half precision is added up in f32 and rounded once.
    """
    element, wide = element_type(x), wide_element(x)
    x, weight = builder.cast(x, wide), builder.cast(weight, wide)
    bias = None if bias is None else builder.cast(bias, wide)
    return builder.cast(builder.add(ConvTransposeOp(x, weight, bias, **window)), element)


@record
class _Factor:
    """A tensor and a label for each of its dimensions, all distinct."""

    value: SSAValue
    labels: tuple[str, ...]

    def dim(self, label: str) -> Expr:
        return dims_of(self.value)[self.labels.index(label)]


def einsum(builder: Legalizer, equation: str, operands: Sequence[SSAValue]) -> SSAValue:
    """
    Sums of products by labels, from left to right: two factors at a time are one matrix product
    (labels that both have and that are not needed any more), or a broadcast product.
    """
    terms, output = _parse_equation(builder, equation, operands)
    factors = [
        _diagonal(builder, value, labels) for value, labels in zip(operands, terms, strict=True)
    ]
    total = _sum_out(builder, factors[0], [*output, *_labels(factors[1:])])
    for k, factor in enumerate(factors[1:], 2):
        needed = [*output, *_labels(factors[k:])]
        total = _multiply(builder, total, factor, needed)
    total = _sum_out(builder, total, output)
    return builder.transpose(total.value, [total.labels.index(label) for label in output])


def _labels(factors: Sequence[_Factor]) -> set[str]:
    return {label for factor in factors for label in factor.labels}


def _parse_equation(
    builder: Legalizer, equation: str, operands: Sequence[SSAValue]
) -> tuple[list[list[str]], list[str]]:
    """The labels of every operand and of the result; dimensions of `...` get labels `...0` etc."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        builder.refuse(f"'{equation}' for {len(operands)} operands", "a term for each")
    terms = [
        _term(builder, text, rank_of(value)) for text, value in zip(texts, operands, strict=True)
    ]
    flat = [label for term in terms for label in term]
    ellipsis = sorted({label for label in flat if label.startswith("...")}, reverse=True)
    if arrow:
        output = _term(
            builder, right, len(right.replace("...", "")) + len(ellipsis) * ("..." in right)
        )
    else:
        output = ellipsis + sorted(
            label for label in set(flat) if flat.count(label) == 1 and len(label) == 1
        )
    if len(set(output)) != len(output) or not set(output) <= set(flat):
        builder.refuse(f"the result '{right}'", "each of its labels once, and in an operand")
    return terms, output


def _term(builder: Legalizer, text: str, rank: int) -> list[str]:
    """The labels of one term; the last dimension of `...` is number 0."""
    before, dots, after = text.partition("...")
    hidden = rank - len(before) - len(after)
    letters = before + after
    if not all(letter.isalpha() for letter in letters) or hidden < 0 or (hidden and not dots):
        builder.refuse(f"the term '{text}' for {rank} dimensions", "a letter for each")
    return [*before, *(f"...{k:03}" for k in reversed(range(hidden))), *after]


def _diagonal(builder: Legalizer, value: SSAValue, labels: Sequence[str]) -> _Factor:
    """A factor in which a label that occurs twice is one dimension: the diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            value = _on_diagonal(builder, value, first, second)
            del labels[second]
    return _Factor(value, tuple(labels))


def _on_diagonal(builder: Legalizer, value: SSAValue, first: int, second: int) -> SSAValue:
    # Side by side, the two are one dimension in which its elements are equally far apart. Sizes
    # that are open are equal in each run that does not fail: the reshape needs as many elements.
    dims = dims_of(value)
    size = dims[first]
    others = [axis for axis in range(len(dims)) if axis != second]
    at = others.index(first) + 1
    value = builder.transpose(value, [*others[:at], second, *others[at:]])
    kept = [dims[axis] for axis in others]
    value = builder.reshape(value, [*kept[: at - 1], size * size, *kept[at:]])
    steps: list[Expr | int] = [1] * len(kept)
    steps[at - 1] = size + 1
    return builder.slice(value, [0] * len(kept), kept, steps)


def _sum_out(builder: Legalizer, factor: _Factor, needed: Sequence[str]) -> _Factor:
    """The factor summed over the labels that are not needed any more."""
    axes = [k for k, label in enumerate(factor.labels) if label not in needed]
    kept = tuple(label for label in factor.labels if label in needed)
    return _Factor(builder.reduce("sum", factor.value, axes), kept)


def _multiply(builder: Legalizer, lhs: _Factor, rhs: _Factor, needed: Sequence[str]) -> _Factor:
    """The product of two factors, summed over the labels that are not needed any more."""
    lhs = _sum_out(builder, lhs, [*needed, *rhs.labels])
    rhs = _sum_out(builder, rhs, [*needed, *lhs.labels])
    shared = [label for label in lhs.labels if label in rhs.labels]
    batch = [label for label in shared if label in needed]
    summed = [label for label in shared if label not in needed]
    rows = [label for label in lhs.labels if label not in shared]
    columns = [label for label in rhs.labels if label not in shared]
    sizes = {label: _size(label, lhs, rhs) for label in summed}
    left = _matrix(builder, lhs, batch, rows, summed, sizes)
    right = _matrix(builder, rhs, batch, summed, columns, sizes)
    if summed:
        result = builder.add(MatmulOp(left, right))
    else:
        result = builder.add(MulOp(left, right))
    dims = [
        *dims_of(result)[: len(batch)],
        *map(lhs.dim, rows),
        *map(rhs.dim, columns),
    ]
    return _Factor(builder.reshape(result, dims), (*batch, *rows, *columns))


def _size(label: str, lhs: _Factor, rhs: _Factor) -> Expr:
    """The size of a summed dimension; one broadcasts."""
    return rhs.dim(label) if lhs.dim(label) == 1 else lhs.dim(label)


def _matrix(
    builder: Legalizer,
    factor: _Factor,
    batch: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
    sizes: Mapping[str, Expr],
) -> SSAValue:
    """The factor as [batch..., rows, columns]."""
    order = [*batch, *rows, *columns]
    value = builder.transpose(factor.value, [factor.labels.index(label) for label in order])
    dims = [sizes.get(label, factor.dim(label)) for label in order]
    value = builder.broadcast(value, dims)
    head, row = len(batch), len(batch) + len(rows)
    return builder.reshape(value, [*dims[:head], product(dims[head:row]), product(dims[row:])])


def contracted(
    builder: Legalizer,
    x: SSAValue,
    y: SSAValue,
    batch: tuple[Sequence[int], Sequence[int]],
    summed: tuple[Sequence[int], Sequence[int]],
    accumulator: Attribute | None = None,
) -> SSAValue:
    """
    Products summed along pairs of dimensions. Those that both share (`batch`) come first in the
    result, then what is left of either.
    """
    if len(batch[0]) != len(batch[1]) or len(summed[0]) != len(summed[1]):
        builder.refuse(f"{len(batch[0])} and {len(summed[0])} dimensions", "as many of both inputs")
    free_x, free_y = (
        [k for k in range(rank_of(value)) if k not in (*shared, *gone)]
        for value, shared, gone in zip((x, y), batch, summed, strict=True)
    )
    kept = [dims_of(x)[k] for k in (*batch[0], *free_x)] + [dims_of(y)[k] for k in free_y]
    left = _grouped(builder, x, batch[0], free_x, summed[0])
    right = _grouped(builder, y, batch[1], summed[1], free_y)
    return builder.reshape(builder.add(MatmulOp(left, right, accumulator=accumulator)), kept)


def _grouped(builder: Legalizer, x: SSAValue, *parts: Sequence[int]) -> SSAValue:
    """Each group of dimensions as one."""
    dims = dims_of(x)
    y = builder.transpose(x, [k for part in parts for k in part])
    return builder.reshape(y, [product([dims[k] for k in part]) for part in parts])


def cross(a: TensorValue, b: TensorValue, axis: int) -> TensorValue:
    """a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0 along an axis, which is three."""
    left, right = ([value.pick(axis, k) for k in range(3)] for value in (a, b))
    parts = [left[k] * right[m] - left[m] * right[k] for k, m in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis)


def pads_for_target(
    builder: Legalizer,
    x: SSAValue,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    target: Sequence[int],
) -> tuple[list[int], list[int]]:
    """The padding, and what is added at the end, with which the result has a size."""
    pads: list[int] = []
    more: list[int] = []
    spatial = zip(dims_of(x)[2:], kernel, strides, dilations, target, strict=True)
    for dim, size, stride, dilation, wanted in spatial:
        if dim.value is None:
            builder.refuse("'target_shape' with an open size", "a known one", "give its shape")
        whole = stride * (dim.value - 1) + dilation * (size - 1) + 1 - wanted
        if whole < 0:
            builder.refuse(f"'target_shape' {list(target)}", "a smaller one")
        pads.append((whole + 1) // 2)
        more.append(whole % 2)
    return pads, more


def blocks_of_products(a: TensorValue, b: TensorValue) -> TensorValue:
    """Kronecker's product: in place of each element of the first tensor, it times the second."""
    rank = max(len(a.dims), len(b.dims))
    left, right = ([1] * (rank - len(x.dims)) + list(x.dims) for x in (a, b))
    wide = a.reshape([size for dim in left for size in (dim, 1)])
    wide = wide * b.reshape([size for dim in right for size in (1, dim)])
    return wide.reshape([m * n for m, n in zip(left, right, strict=True)])


def product_of_groups(
    builder: Legalizer, x: SSAValue, weight: SSAValue, ends: SSAValue
) -> TensorValue:
    """
    Groups of consecutive rows [N, K], each times a matrix of [groups, K, M]; the i64 `ends` are
    where they end.
    """
    (count, width), groups = dims_of(x), dims_of(weight)[0]
    limits = TensorValue.of(builder, ends)
    place = TensorValue.iota(builder, count).column(2, 1)
    is_before = place.lt(limits.column(2, 0))
    group = (~is_before).cast(i64).reduce("sum", [0])
    mask = group.column(2, 1).eq(TensorValue.iota(builder, groups).column(2, 0))
    rows = TensorValue(builder, x).reshape([1, count, width])
    zero = TensorValue.number(builder, 0, rows.element)
    kept = mask.reshape([groups, count, 1]).where(rows, zero)
    return TensorValue(builder, matmul(builder, kept.value, weight)).reduce("sum", [0])


def power_of_matrix(builder: Legalizer, x: SSAValue, count: int) -> SSAValue:
    """The product of so many equal matrices, at least one, by squares."""
    found: SSAValue | None = None
    while count:
        if count & 1:
            found = x if found is None else matmul(builder, found, x)
        count >>= 1
        x = matmul(builder, x, x) if count else x
    assert found is not None
    return found


def covariance(
    builder: Legalizer, x: SSAValue, correction: float
) -> tuple[TensorValue, TensorValue]:
    """How much rows vary together, by the count less a number; and the rows less their means."""
    count = TensorValue.dim(builder, dims_of(x)[1]).cast(element_type(x))
    rest = TensorValue(builder, x) - TensorValue(builder, mean(builder, x, [1], True))
    found = TensorValue(builder, matmul(builder, rest.value, rest.transpose([1, 0]).value))
    return found / (count - correction).maximum(0.0), rest


def correlations(builder: Legalizer, x: SSAValue) -> TensorValue:
    """The covariance of rows by both of their deviations, between -1 and 1."""
    found, rest = covariance(builder, x, 1.0)
    count = TensorValue.dim(builder, dims_of(x)[1]).cast(element_type(x))
    sizes = apply(SqrtOp, (rest * rest).reduce("sum", [1]) / (count - 1.0))
    return (found / sizes.column(2, 0) / sizes.column(2, 1)).clip(-1.0, 1.0)
