"""Functions of `keras.ops` of whole arrays: reductions, running sums, orders, parts, matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, TopKOp
from lowerdeck.dialects.core.types import f32, i32, i64
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import common_type
from lowerdeck.passes.legalize.keras.operations import as_float, axes_of, named_element
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, index_vector
from lowerdeck.passes.legalize.tf1.applied import applied

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _axis(builder: KerasLegalizer, rank: int, default: int = -1) -> int:
    axis = builder.config("axis", default)
    if not isinstance(axis, int):
        builder.refuse(f"the axis {axis}", "one")
    return builder.axis(axis, rank)


def _keep(builder: KerasLegalizer) -> bool:
    return bool(builder.config("keepdims", False))


# Reductions


@legalizes("Amax", "Amin", "Ptp")
def legalize_extremum(builder: KerasLegalizer) -> Results:
    """The largest element, the least, or how far they are apart."""
    x, keep = builder.x(), _keep(builder)
    axes = axes_of(builder, len(x.dims))
    if builder.op_type == "Ptp":
        return [(x.reduce("max", axes, keep) - x.reduce("min", axes, keep)).value]
    return [x.reduce("max" if builder.op_type == "Amax" else "min", axes, keep).value]


@legalizes("CountNonzero")
def legalize_count(builder: KerasLegalizer) -> Results:
    """How many elements are not zero."""
    x = builder.x()
    axes = axes_of(builder, len(x.dims))
    return [x.ne(0).cast(i32).reduce("sum", axes).value]


@legalizes("Nansum", "Nanmax", "Nanmin", "Nanmean", "Nanprod")
def legalize_known(builder: KerasLegalizer) -> Results:
    """Reductions of what is not NaN; the extremum and the mean of nothing are."""
    x, keep = as_float(builder.x()), _keep(builder)
    axes = axes_of(builder, len(x.dims))
    is_none, kind = x.ne(x), builder.op_type.removeprefix("Nan")
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[kind]
    known = is_none.where(TensorValue.number(builder, neutral, x.element), x)
    if kind in ("sum", "prod"):
        return [known.reduce(kind, axes, keep).value]
    count = (~is_none).cast(x.element).reduce("sum", axes, keep)
    if kind == "mean":
        return [(known.reduce("sum", axes, keep) / count).value]
    nan = TensorValue.number(builder, math.nan, x.element)
    return [count.eq(0).where(nan, known.reduce(kind, axes, keep)).value]


@legalizes("Norm")
def legalize_norm(builder: KerasLegalizer) -> Results:
    """The length of vectors, in the usual sense or by another power."""
    x, order = as_float(builder.x()), builder.config("ord")
    axis = builder.config("axis")
    given = [axis] if isinstance(axis, int) else axis
    axes = list(range(len(x.dims))) if given is None else builder.axes(given, len(x.dims))
    if order is not None and len(axes) != 1 and order != "fro":
        builder.refuse(f"the norm {order} of matrices", "of vectors, or 'fro'")
    return [length(x, axes, 2 if order in (None, "fro") else order, _keep(builder)).value]


def length(x: TensorValue, axes: Sequence[int], order: Any, keep: bool) -> TensorValue:
    """The p-norm along axes."""
    builder, size = x.builder, x.abs()
    if order in (math.inf, "inf"):
        return size.reduce("max", axes, keep)
    if order == 2:
        return apply(core.SqrtOp, (x * x).reduce("sum", axes, keep))
    if order == 1:
        return size.reduce("sum", axes, keep)
    power = TensorValue.number(builder, float(order), x.element)
    inverse = TensorValue.number(builder, 1 / float(order), x.element)
    total = TensorValue(builder, builder.add(core.PowOp(size.value, power.value)))
    total = total.reduce("sum", axes, keep)
    return TensorValue(builder, builder.add(core.PowOp(total.value, inverse.value)))


@legalizes("Normalize")
def legalize_normalize(builder: KerasLegalizer) -> Results:
    """Vectors by their lengths, which are at least the epsilon."""
    x, order = as_float(builder.x()), builder.config("order", 2)
    axes = builder.axes([builder.integer("axis", -1)], len(x.dims))
    epsilon = builder.config("epsilon")
    epsilon = 1e-7 if epsilon is None else float(epsilon)
    if order == 2:
        total = (x * x).reduce("sum", axes, True).maximum(epsilon * epsilon)
        return [(x / apply(core.SqrtOp, total)).value]
    return [(x / length(x, axes, order, True).maximum(epsilon)).value]


@legalizes("Moments")
def legalize_moments(builder: KerasLegalizer) -> Results:
    """The mean, and the mean square of what differs from it."""
    builder.ignore("synchronized")
    x, keep = as_float(builder.x()), _keep(builder)
    given = builder.config("axes")
    axes = builder.axes([given] if isinstance(given, int) else list(given), len(x.dims))
    middle = TensorValue(builder, mean(builder, x.value, axes, keep_dims=True))
    rest = x - middle
    square = mean(builder, (rest * rest).value, axes, keep)
    return [mean(builder, x.value, axes, keep), square]


@legalizes("Median")
def legalize_median(builder: KerasLegalizer) -> Results:
    """The middle of the elements in order, or the mean of the two."""
    x = as_float(builder.x())
    axes = axes_of(builder, len(x.dims))
    kept = [k for k in range(len(x.dims)) if k not in axes]
    count = product([x.dims[k] for k in axes]).value
    if not count:
        builder.refuse("an open number of elements", "a number")
    rows = x.transpose([*kept, *axes]).reshape([*(x.dims[k] for k in kept), count])
    ordered = _ordered(rows, len(kept))[0]
    low, high = (ordered.pick(len(kept), k) for k in ((count - 1) // 2, count // 2))
    found = (low + high) * 0.5
    final: list[ExprLike] = [1 if k in axes else dim for k, dim in enumerate(x.dims)]
    return [(found.reshape(final) if _keep(builder) else found).value]


# Along an axis


def _ordered(x: TensorValue, axis: int) -> tuple[TensorValue, TensorValue]:
    """The elements from the least on, and where they are."""
    values, places = x.builder.insert(TopKOp(x.value, x.dims[axis], axis, largest=False))
    return TensorValue(x.builder, values), TensorValue(x.builder, places)


@legalizes("Sort", "Argsort")
def legalize_sort(builder: KerasLegalizer) -> Results:
    """From the least element on, or where these are."""
    x = builder.x()
    values, places = _ordered(x, _axis(builder, len(x.dims)))
    return [values.value if builder.op_type == "Sort" else places.cast(i32).value]


@legalizes("TopK")
def legalize_top_k(builder: KerasLegalizer) -> Results:
    """The largest elements of the last dimension, and where they are."""
    builder.ignore("sorted")
    x = builder.x()
    values, places = builder.insert(TopKOp(x.value, builder.integer("k"), len(x.dims) - 1))
    return [values, builder.cast(places, i32)]


@legalizes("Cumsum", "Cumprod")
def legalize_running(builder: KerasLegalizer) -> Results:
    """Sums or products of all elements up to each."""
    x = builder.x()
    if builder.config("dtype") is not None:
        x = x.cast(named_element(builder, builder.config("dtype")))
    elif x.element == i1:
        x = x.cast(i32)
    if builder.config("axis") is None:
        x = x.reshape([product(x.dims)])
    axis = _axis(builder, len(x.dims)) if builder.config("axis") is not None else 0
    kind = "sum" if builder.op_type == "Cumsum" else "prod"
    return [builder.add(CumulativeOp(kind, x.value, axis))]


@legalizes("Flip")
def legalize_flip(builder: KerasLegalizer) -> Results:
    """The last element first, along some axes or all."""
    x = builder.x()
    axes = axes_of(builder, len(x.dims))
    starts = [dim - 1 if k in axes else Expr.const(0) for k, dim in enumerate(x.dims)]
    steps = [-1 if k in axes else 1 for k in range(len(x.dims))]
    return [builder.slice(x.value, starts, x.dims, steps)]


@legalizes("Roll")
def legalize_roll(builder: KerasLegalizer) -> Results:
    """Elements move toward the end, and around."""
    x, shift, axis = builder.x(), builder.config("shift"), builder.config("axis")
    flat = x.reshape([product(x.dims)]) if axis is None else x
    axes = [0] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    given = [builder.tensor(np.array(part, np.int32)) for part in (shifts, axes)]
    (value,) = applied(builder, "Roll", flat.value, *given)
    return [builder.reshape(value, x.dims)]


@legalizes("Diff")
def legalize_difference(builder: KerasLegalizer) -> Results:
    """Each element less the one before it, several times."""
    x = TensorValue.of(builder, builder.input(0, "a"))
    axis = _axis(builder, len(x.dims))
    for _ in range(builder.integer("n", 1)):
        size = x.dims[axis] - 1
        after, before = (builder.slice_axis(x.value, axis, first, size) for first in (1, 0))
        x = TensorValue(builder, after) - TensorValue(builder, before)
    return [x.value]


@legalizes("TakeAlongAxis")
def legalize_taken(builder: KerasLegalizer) -> Results:
    """The element at an index along an axis, for each index."""
    x, places = builder.x(0, "x"), TensorValue.of(builder, builder.input(1, "indices"))
    if builder.config("axis") is None:
        x, places, axis = x.reshape([product(x.dims)]), places.reshape([product(places.dims)]), 0
    else:
        axis = _axis(builder, len(x.dims))
    dims = [
        p if k == axis or p != 1 else d
        for k, (d, p) in enumerate(zip(x.dims, places.dims, strict=True))
    ]
    own = [d if k == axis else p for k, (d, p) in enumerate(zip(x.dims, dims, strict=True))]
    index = places.cast(i64)
    index = index.lt(0).where(index + TensorValue.dim(builder, x.dims[axis]), index)
    op = GatherElementsOp(x.broadcast(own).value, index.broadcast(dims).value, axis)
    return [builder.add(op)]


@legalizes("OneHot")
def legalize_one_hot(builder: KerasLegalizer) -> Results:
    """One where an index is that of the place along a new axis."""
    x, count = builder.x(), builder.integer("num_classes")
    dtype = builder.config("dtype")
    element = f32 if dtype is None else named_element(builder, dtype)
    axis = builder.axis(builder.integer("axis", -1), len(x.dims) + 1)
    return [one_hot(x.cast(i64), Expr.const(count), axis).cast(element).value]


# Parts


@legalizes("Unstack")
def legalize_unstack(builder: KerasLegalizer) -> Results:
    """The parts along an axis, without it."""
    x = builder.x()
    builder.ignore("num")
    axis = _axis(builder, len(x.dims), 0)
    return [x.pick(axis, k).value for k in range(len(builder.op.results))]


def _joined(builder: KerasLegalizer, values: Sequence[SSAValue], axis: int) -> SSAValue:
    found = common_type(builder, values)
    return concat([TensorValue(builder, value) for value in found], axis).value


@legalizes("Hstack", "Vstack")
def legalize_side_by_side(builder: KerasLegalizer) -> Results:
    """Along the second dimension, of vectors the first; or as rows."""
    values = builder.operands()
    rank = len(TensorValue(builder, values[0]).dims)
    if builder.op_type == "Vstack" and rank == 1:
        values = [builder.unsqueeze(value, [0]) for value in values]
    axis = 1 if builder.op_type == "Hstack" and rank > 1 else 0
    return [_joined(builder, values, axis)]


@legalizes("Append")
def legalize_append(builder: KerasLegalizer) -> Results:
    """Two tensors along an axis, or all their elements."""
    x, y = builder.x(0, "x1"), builder.x(1, "x2")
    if builder.config("axis") is None:
        flat = [value.reshape([product(value.dims)]).value for value in (x, y)]
        return [_joined(builder, flat, 0)]
    return [_joined(builder, [x.value, y.value], _axis(builder, len(x.dims)))]


@legalizes("Ravel")
def legalize_ravel(builder: KerasLegalizer) -> Results:
    """All elements in a row."""
    x = builder.x()
    return [x.reshape([product(x.dims)]).value]


@legalizes("Moveaxis")
def legalize_moved(builder: KerasLegalizer) -> Results:
    """Dimensions at other places; the others keep their order."""
    x = builder.input()
    rank = len(TensorValue(builder, x).dims)
    source, target = (
        builder.axes([given] if isinstance(given, int) else list(given), rank)
        for given in (builder.config("source"), builder.config("destination"))
    )
    rest = iter(k for k in range(rank) if k not in source)
    order = [source[target.index(k)] if k in target else next(rest) for k in range(rank)]
    return [builder.transpose(x, order)]


@legalizes("BroadcastTo")
def legalize_broadcast(builder: KerasLegalizer) -> Results:
    """To a shape of numbers."""
    shape = builder.config("shape")
    if not isinstance(shape, list) or not all(isinstance(k, int) for k in cast("list[Any]", shape)):
        builder.refuse(f"the shape {shape}", "numbers")
    return [builder.broadcast(builder.input(), cast("list[int]", shape))]


@legalizes("FullLike")
def legalize_full(builder: KerasLegalizer) -> Results:
    """A number in the shape of a tensor."""
    x = builder.x()
    dtype = builder.config("dtype")
    element = x.element if dtype is None else named_element(builder, dtype)
    number = builder.number_like(builder.argument(1, "fill_value"), None)
    value = TensorValue.of(builder, number).cast(element)
    return [value.broadcast(x.dims).value]


# Matrices


@legalizes("Tril", "Triu")
def legalize_triangle(builder: KerasLegalizer) -> Results:
    """Matrices with zeros above, or below, a diagonal."""
    x, k = builder.x(), builder.integer("k", 0)
    rank = len(x.dims)
    rows = index_vector(builder, x.dims[-2], rank, rank - 2) + k
    columns = index_vector(builder, x.dims[-1], rank, rank - 1)
    inside = rows.ge(columns) if builder.op_type == "Tril" else rows.le(columns)
    return [inside.where(x, TensorValue.number(builder, 0, x.element)).value]


@legalizes("Diagonal", "Trace")
def legalize_diagonal(builder: KerasLegalizer) -> Results:
    """The elements whose indices along two axes are equal, as the last dimension, or their sum."""
    x, offset = builder.x(), builder.integer("offset", 0)
    first, second = (builder.axis(builder.integer(f"axis{k}", k - 1), len(x.dims)) for k in (1, 2))
    kept = [k for k in range(len(x.dims)) if k not in (first, second)]
    rows, columns = x.dims[first].value, x.dims[second].value
    if rows is None or columns is None:
        builder.refuse("matrices of open size", "numbers")
    start, other = max(-offset, 0), max(offset, 0)
    count = max(min(rows - start, columns - other), 0)
    flat = x.transpose([*kept, first, second])
    dims = [x.dims[k] for k in kept]
    flat = flat.reshape([*dims, rows * columns])
    places = (TensorValue.iota(builder, count) + start) * columns
    places = places + TensorValue.iota(builder, count) + other
    axis = builder.tensor(np.array(len(kept), np.int32))
    (found,) = applied(builder, "GatherV2", flat.value, places.value, axis)
    if builder.op_type == "Diagonal":
        return [found]
    return [builder.reduce("sum", found, [len(kept)])]


@legalizes("Tensordot")
def legalize_tensordot(builder: KerasLegalizer) -> Results:
    """Sums of products along pairs of axes."""
    x, y = (
        TensorValue(builder, v) for v in common_type(builder, [builder.input(k) for k in (0, 1)])
    )
    axes = builder.config("axes", 2)
    if isinstance(axes, int):
        pairs = [list(range(len(x.dims) - axes, len(x.dims))), list(range(axes))]
    else:
        pairs = [[part] if isinstance(part, int) else list(part) for part in axes]
    left, right = builder.axes(pairs[0], len(x.dims)), builder.axes(pairs[1], len(y.dims))
    names = list(_LETTERS[: len(x.dims)])
    others = list(_LETTERS[len(x.dims) : len(x.dims) + len(y.dims)])
    for a, b in zip(left, right, strict=True):
        others[b] = names[a]
    kept = [names[k] for k in range(len(names)) if k not in left]
    kept += [others[k] for k in range(len(others)) if k not in right]
    equation = f"{''.join(names)},{''.join(others)}->{''.join(kept)}"
    return [einsum(builder, equation, [x.value, y.value])]


@legalizes("Outer", "Inner", "Vdot")
def legalize_vectors(builder: KerasLegalizer) -> Results:
    """Products of vectors, or of the last dimensions of tensors."""
    x, y = (
        TensorValue(builder, v) for v in common_type(builder, [builder.input(k) for k in (0, 1)])
    )
    if builder.op_type == "Inner" and min(len(x.dims), len(y.dims)):
        a, b = _LETTERS[: len(x.dims) - 1], _LETTERS[-len(y.dims) + 1 :] if len(y.dims) > 1 else ""
        return [einsum(builder, f"{a}m,{b}m->{a}{b}", [x.value, y.value])]
    flat = [value.reshape([product(value.dims)]).value for value in (x, y)]
    equation = "m,n->mn" if builder.op_type == "Outer" else "m,m->"
    return [einsum(builder, equation, flat)]


# Normalization


@legalizes("LayerNorm", "RMSNorm")
def legalize_normalized(builder: KerasLegalizer) -> Results:
    """By mean and deviation, or by the root of the mean square, along an axis or several."""
    x = as_float(builder.x())
    axis, epsilon = builder.config("axis", -1), builder.config("epsilon")
    axes = builder.axes([axis] if isinstance(axis, int) else list(axis), len(x.dims))
    is_root = builder.op_type == "RMSNorm" or bool(builder.config("rms_scaling", False))
    rest = x
    if builder.op_type == "LayerNorm" and not is_root:
        rest = x - TensorValue(builder, mean(builder, x.value, axes, keep_dims=True))
    square = TensorValue(builder, mean(builder, (rest * rest).value, axes, keep_dims=True))
    y = rest / apply(core.SqrtOp, square + float(1e-7 if epsilon is None else epsilon))
    names = ("scale",) if builder.op_type == "RMSNorm" else ("gamma", "beta")
    for k, name in enumerate(names, 1):
        given = builder.argument(k, name)
        if given is not None:
            other = TensorValue.of(builder, builder.number_like(given, y.value)).cast(y.element)
            y = y + other if name == "beta" else y * other
    return [y.value]
