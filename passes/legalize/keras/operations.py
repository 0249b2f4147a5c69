"""Functions of `keras.ops` that move elements, choose among them, or multiply matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherOp, PadOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    i8,
    i32,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.linear import einsum, matmul
from lowerdeck.passes.legalize.common.movement import concat, enlarged
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import common_type, inputs, named_element
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.keras.torch import as_torch
from lowerdeck.passes.legalize.pt2.applied import aten_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.applied import applied

# Products


@legalizes("Matmul")
def legalize_matmul(builder: KerasLegalizer) -> Results:
    """numpy.matmul; products of bytes are added up in 32 bits."""
    first, second = (value.value for value in inputs(builder, 2))
    wide = i32 if element_type(first) == i8 else None
    return [matmul(builder, first, second, accumulator=wide)]


@legalizes("Einsum")
def legalize_einsum(builder: KerasLegalizer) -> Results:
    """Sums of products by labels; those of bytes in 32 bits."""
    operands = [value.value for value in inputs(builder, len(builder.positional()))]
    if all(element_type(value) == i8 for value in operands):
        operands = [builder.cast(value, i32) for value in operands]
    return [einsum(builder, str(builder.config("subscripts")), operands)]


@legalizes("Tensordot")
def legalize_tensordot(builder: KerasLegalizer) -> Results:
    """Sums of products along pairs of axes."""
    x, y = inputs(builder, 2)
    axes = builder.config("axes", 2)
    if isinstance(axes, int):
        axes = [list(range(len(x.dims) - axes, len(x.dims))), list(range(axes))]
    if not isinstance(axes, list) or len(cast("list[Any]", axes)) != 2:
        builder.refuse(f"the axes {axes}", "those of two tensors")
    first, second = (builder.integers(part, "axes") for part in cast("list[Any]", axes))
    given = {"dims_self": first, "dims_other": second}
    return aten_of(builder, "tensordot.default", x.element, x.value, y.value, **given)


@legalizes("Outer", "Vdot")
def legalize_vectors(builder: KerasLegalizer) -> Results:
    """Products of all elements, of each with each or of pairs that are added up."""
    flat = [builder.reshape(x.value, [product(x.dims)]) for x in inputs(builder, 2)]
    return [einsum(builder, "m,n->mn" if builder.op_type == "Outer" else "m,m->", flat)]


@legalizes("Trace")
def legalize_trace(builder: KerasLegalizer) -> Results:
    """The sum of the elements whose indices along two axes are equal."""
    x = builder.x()
    lines = as_torch(builder, [x.value], x.element, "Diagonal")
    return [lines.reduce("sum", [len(lines.dims) - 1]).value]


# Movement


@legalizes("Transpose")
def legalize_transpose(builder: KerasLegalizer) -> Results:
    """Dimensions in another order, reversed without one."""
    x = builder.input()
    axes = builder.config("axes")
    order = builder.axes_of(axes, rank_of(x))
    return [builder.transpose(x, order[::-1] if axes is None else order)]


@legalizes("Tile")
def legalize_tile(builder: KerasLegalizer) -> Results:
    """Repeated along each dimension."""
    x, times = builder.input(), builder.integers(builder.config("repeats"), "repetitions")
    if len(times) != rank_of(x):
        builder.refuse(f"{times} repetitions", "a number for each dimension")
    return applied(builder, "Tile", x, builder.tensor(np.array(times, np.int32)))


@legalizes("ExpandDims")
def legalize_expand_dims(builder: KerasLegalizer) -> Results:
    """More dimensions of one element."""
    x, axis = builder.input(), builder.config("axis")
    axes = builder.integers(axis, "axes")
    return [builder.unsqueeze(x, builder.axes(axes, rank_of(x) + len(axes)))]


@legalizes("Squeeze")
def legalize_squeeze(builder: KerasLegalizer) -> Results:
    """Without dimensions of one element."""
    x, axis = builder.input(), builder.config("axis")
    if axis is None:
        axis = [k for k, dim in enumerate(dims_of(x)) if dim == 1]
    return [builder.squeeze(x, builder.axes_of(axis, rank_of(x)))]


@legalizes("Stack")
def legalize_stack(builder: KerasLegalizer) -> Results:
    """Tensors of one shape along a new axis."""
    values = common_type(builder, builder.operands())
    axis = builder.axis(builder.integer("axis", 0), rank_of(values[0]) + 1)
    return [stack([TensorValue.of(builder, value) for value in values], axis).value]


@legalizes("Unstack")
def legalize_unstack(builder: KerasLegalizer) -> Results:
    """The parts along an axis, without it."""
    x = builder.x()
    builder.ignore("num")
    axis = builder.one_axis(len(x.dims), 0)
    return [x.pick(axis, k).value for k in range(len(builder.op.results))]


@legalizes("Append")
def legalize_append(builder: KerasLegalizer) -> Results:
    """Two tensors along an axis, or all their elements."""
    parts = [builder.along(x) for x in inputs(builder, 2)]
    return [concat(builder, [x.value for x, _ in parts], parts[0][1])]


@legalizes("Repeat")
def legalize_repeat(builder: KerasLegalizer) -> Results:
    """Each element several times along an axis."""
    x, times, axis = builder.x(), builder.config("repeats"), builder.config("axis")
    if not isinstance(times, int) or axis is None:
        builder.refuse(f"{times} repetitions along {axis}", "one number, and an axis")
    return [enlarged(x, builder.one_axis(len(x.dims)), [times]).value]


@legalizes("Pad")
def legalize_pad(builder: KerasLegalizer) -> Results:
    """One number, or mirrored elements, around a tensor."""
    x = builder.input()
    widths = builder.sides("pad_width", rank_of(x), in_pairs=True)
    mode = builder.config("mode", "constant")
    constant = builder.argument(1, "constant_values", 0)
    if mode == "constant" and isinstance(constant, int | float):
        begin, end = ([side[k] for side in widths] for k in (0, 1))
        return [builder.add(PadOp(x, begin, end, builder.scalar(constant, x)))]
    if mode not in ("reflect", "symmetric"):
        builder.refuse(f"the mode '{mode}'", "constant, reflect or symmetric")
    sides = builder.tensor(np.array(widths, np.int32))
    return applied(builder, "MirrorPad", x, sides, mode=mode.upper())


# Parts


@legalizes("GetItem")
def legalize_get_item(builder: KerasLegalizer) -> Results:
    """Python's `x[key]`."""
    key = builder.argument(1, "key")
    keys = cast("list[Any]", key) if isinstance(key, list) else [key]
    return [item(builder, builder.input(), keys)]


def item(builder: KerasLegalizer, x: SSAValue, keys: list[Any]) -> SSAValue:
    """What numpy gives for numbers, slices, `...` and None between brackets."""
    rank = rank_of(x)
    taken = sum(1 for key in keys if key is not None and key != "...")
    if "..." in keys:
        at = keys.index("...")
        keys = [*keys[:at], *[_ALL] * (rank - taken), *keys[at + 1 :]]
    else:
        keys = [*keys, *[_ALL] * (rank - taken)]
    bounds: list[tuple[int, int, int]] = []
    masks = {"begin_mask": 0, "end_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for place, key in enumerate(keys):
        start, stop, step = 0, 0, 1
        if key is None:
            masks["new_axis_mask"] |= 1 << place
        elif isinstance(key, dict) and "slice" in key:
            first, last, by = cast("dict[str, Any]", key)["slice"]
            if not all(isinstance(value, int | None) for value in (first, last, by)):
                builder.refuse("a slice that is computed", "numbers")
            masks["begin_mask"] |= (first is None) << place
            masks["end_mask"] |= (last is None) << place
            start, stop, step = first or 0, last or 0, 1 if by is None else by
        elif isinstance(key, int) and not isinstance(key, bool):
            masks["shrink_axis_mask"] |= 1 << place
            start, stop = key, key + 1
        else:
            builder.refuse("an index that is computed", "numbers and slices")
        bounds.append((start, stop, step))
    # A place beyond all elements is their end, as in Python.
    limits = np.clip(np.array(bounds, object).reshape(-1, 3), -_MOST, _MOST).astype(np.int32)
    rows = [builder.tensor(row) for row in limits.T.copy()]
    return applied(builder, "StridedSlice", x, *rows, ellipsis_mask=0, **masks)[0]


_MOST = 2**31 - 1
_ALL = {"slice": [None, None, None]}


@legalizes("Split")
def legalize_split(builder: KerasLegalizer) -> Results:
    """Equal parts, or parts up to places along an axis."""
    x, sections = builder.input(), builder.config("indices_or_sections")
    axis = builder.one_axis(rank_of(x), 0)
    size = dims_of(x)[axis]
    if isinstance(sections, int):
        if (size.value or 0) % sections:
            builder.refuse(f"{sections} parts of {size}", "parts of one size")
        return builder.split(x, axis, [size // sections] * sections)
    if size.value is None:
        builder.refuse("parts of a size that is not known", "a number")
    places = [min(place, size.value) for place in builder.integers(sections, "places")]
    places = [0, *places, size.value]
    return builder.split(x, axis, [Expr.const(b - a) for a, b in pairwise(places)])


def _from_front(indices: TensorValue, size: Expr) -> TensorValue:
    """Indices of which those below zero count from the end."""
    whole = TensorValue.dim(indices.builder, size).cast(indices.element)
    return indices.lt(0).where(indices + whole, indices)


@legalizes("Take")
def legalize_take(builder: KerasLegalizer) -> Results:
    """Parts along an axis at indices."""
    x = builder.input()
    if builder.config("axis") is None:
        builder.refuse("elements of a flat tensor", "an axis")
    axis = builder.one_axis(rank_of(x))
    given = builder.number_like(builder.argument(1, "indices"), None)
    if is_float(element_type(given)):
        builder.refuse("indices that are floats", "integers")
    indices = _from_front(TensorValue.of(builder, given), dims_of(x)[axis])
    return [builder.add(GatherOp(x, indices.value, axis))]


@legalizes("TakeAlongAxis")
def legalize_taken(builder: KerasLegalizer) -> Results:
    """The element at an index along an axis, for each index."""
    x, axis = builder.along(builder.x(0, "x"))
    places, _ = builder.along(TensorValue.of(builder, builder.input(1, "indices")))
    dims = _broadcast(places.dims, x.dims, axis)
    own = _broadcast(x.dims, dims, axis)
    index = _from_front(places.cast(i64), x.dims[axis]).broadcast(dims)
    return [builder.add(GatherElementsOp(x.broadcast(own).value, index.value, axis))]


def _broadcast(dims: Sequence[Expr], others: Sequence[Expr], axis: int) -> list[Expr]:
    """Dimensions of which ones are as large as others', but for those along an axis."""
    pairs = enumerate(zip(dims, others, strict=True))
    return [dim if k == axis or dim != 1 else other for k, (dim, other) in pairs]


@legalizes("OneHot")
def legalize_one_hot(builder: KerasLegalizer) -> Results:
    """One where an index is that of the place along a new axis."""
    x, count = builder.x(), builder.integer("num_classes")
    dtype = builder.config("dtype")
    element = f32 if dtype is None else named_element(builder, dtype)
    axis = builder.one_axis(len(x.dims) + 1)
    return [one_hot(x.cast(i64), Expr.const(count), axis).cast(element).value]
