"""Operators that move elements: shapes, parts, pads, and what joins tensors or makes them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    f64,
    i1,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.generators import diagonals, range_of
from lowerdeck.passes.legalize.common.movement import (
    Bounds,
    concat,
    pad,
    places_of,
    sliced,
    tile,
    written,
)
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import UNBOUNDED, from_front, resolved_shape, sizes_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector

_ONE = Expr.const(1)

# Shapes


@legalizes("reshape", "view_shape")
def legalize_reshape(builder: PaddleLegalizer) -> Results:
    """Another shape: 0 is the old size, -1 what is left."""
    x, name = builder.input(builder.only), "shape" if builder.name == "reshape" else "dims"
    found = builder.get(name)
    if isinstance(found, SSAValue):
        shape = cast("SSAValue", found)
    elif isinstance(found, list) and any(isinstance(v, SSAValue) for v in cast("Any", found)):
        shape = builder.vector(name)
    else:
        shape = builder.dims(builder.exprs_of(name))
    shape = builder.cast(builder.reshape(shape, [product(dims_of(shape))]), i64)
    return builder.reshape(x, resolved_shape(builder, x, shape, allow_zero=False))


@legalizes("squeeze")
def legalize_squeeze(builder: PaddleLegalizer) -> Results:
    """Dimensions of one go; others stay."""
    x = builder.input("x")
    dims = dims_of(x)
    axes = builder.ints_of("axis") if builder.get("axis") is not None else []
    chosen = [builder.axis(axis, max(len(dims), 1)) for axis in axes] or list(range(len(dims)))
    return [builder.squeeze(x, [axis for axis in set(chosen) if dims[axis : axis + 1] == (_ONE,)])]


@legalizes("unsqueeze")
def legalize_unsqueeze(builder: PaddleLegalizer) -> Results:
    """New dimensions of one, each counted when those before it are there."""
    x = builder.input("x")
    for axis in builder.ints_of("axis"):
        x = builder.unsqueeze(x, [builder.axis(axis, rank_of(x) + 1)])
    return x


@legalizes("flatten")
def legalize_flatten(builder: PaddleLegalizer) -> Results:
    """Neighboring dimensions as one."""
    x = builder.input("x")
    dims = dims_of(x)
    if not dims:
        return builder.reshape(x, [1])
    names = ("start_axis", "stop_axis")
    first, last = (builder.axis(builder.integer(name), len(dims)) for name in names)
    return builder.reshape(x, [*dims[:first], product(dims[first : last + 1]), *dims[last + 1 :]])


@legalizes("expand")
def legalize_expand(builder: PaddleLegalizer) -> Results:
    """Dimensions of one repeated; -1 stands for the old size."""
    x, sizes = builder.input("x"), builder.exprs_of("shape")
    if len(sizes) < rank_of(x):
        builder.refuse(f"{len(sizes)} sizes for {rank_of(x)} dimensions", "as many or more")
    old = [_ONE] * (len(sizes) - rank_of(x)) + list(dims_of(x))
    dims = [before if size == -1 else size for before, size in zip(old, sizes, strict=True)]
    return builder.broadcast(x, dims)


@legalizes("tile", "expand_v1", "expand_as_v1")
def legalize_tile(builder: PaddleLegalizer) -> Results:
    """Copies side by side."""
    x = builder.input("x")
    if builder.name == "expand_as_v1":
        target = dims_of(builder.input("target_tensor"))
        repeats = [new // old for new, old in zip(target, dims_of(x), strict=True)]
    else:
        repeats = builder.exprs_of("repeat_times" if builder.name == "tile" else "expand_times")
    repeats = [_ONE] * (rank_of(x) - len(repeats)) + repeats
    x = builder.unsqueeze(x, list(range(len(repeats) - rank_of(x))))
    return tile(builder, x, repeats)


# Parts


@legalizes("slice")
def legalize_slice(builder: PaddleLegalizer) -> Results:
    """Bounds are clamped; some axes go afterwards."""
    x = builder.input("input")
    axes = [builder.axis(axis, rank_of(x)) for axis in builder.ints_of("axes")]
    gone = _axes(builder, "decrease_axis", x)
    starts, ends = builder.exprs_of("starts"), builder.exprs_of("ends")
    if not len(axes) == len(starts) == len(ends):
        builder.refuse(f"{len(starts)} starts and {len(ends)} ends", f"{len(axes)}")
    return _without(builder, _sliced(builder, x, axes, starts, ends, gone), gone)


def _axes(builder: PaddleLegalizer, name: str, x: SSAValue) -> list[int]:
    found = builder.ints_of(name) if builder.get(name) is not None else []
    return [builder.axis(axis, rank_of(x)) for axis in found]


def _sliced(
    builder: PaddleLegalizer,
    x: SSAValue,
    axes: Sequence[int],
    starts: Sequence[Expr],
    ends: Sequence[Expr],
    gone: Sequence[int],
) -> SSAValue:
    """A slice in which axes that go are the one element at the start."""
    kept = [k for k, axis in enumerate(axes) if axis not in gone]
    for axis, start in zip(axes, starts, strict=True):
        if axis in gone:
            x = builder.slice_axis(x, axis, from_front(builder, start, dims_of(x)[axis]), 1)
    places = [axes[k] for k in kept]
    firsts, lasts = ([bounds[k] for k in kept] for bounds in (starts, ends))
    return sliced(builder, x, places, firsts, lasts, [_ONE] * len(kept))


def _without(builder: PaddleLegalizer, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    return builder.squeeze(x, axes) if axes else x


@legalizes("strided_slice")
def legalize_strided_slice(builder: PaddleLegalizer) -> Results:
    """Slices with steps, which may go backward, where ends of a ProgramDesc are special."""
    x = builder.input("x")
    axes = [builder.axis(axis, rank_of(x)) for axis in builder.ints_of("axes")]
    starts, ends, steps = (builder.exprs_of(name) for name in ("starts", "ends", "strides"))
    if builder.is_old and len(axes) == len(ends) == len(steps):
        ends = [
            _old_end(builder, end, dims_of(x)[axis]) if (step.value or 0) < 0 else end
            for axis, end, step in zip(axes, ends, steps, strict=True)
        ]
    found = sliced(builder, x, axes, starts, ends, steps)
    return _without(builder, found, _axes(builder, "decrease_axis", x))


def _old_end(builder: PaddleLegalizer, end: Expr, dim: Expr) -> Expr:
    """The end of a slice that goes backward: -1 is before the first element, others at it."""
    if end == -1:
        return Expr.const(-UNBOUNDED)
    if end.value is None or end.value >= 0:
        return end
    return builder.symbols.largest(end + dim, 0)


@legalizes("set_value", "set_value_with_tensor")
def legalize_set_value(builder: PaddleLegalizer) -> Results:
    """x with other elements in a slice, to which they are broadcast."""
    x = builder.input("x")
    axes = [builder.axis(axis, rank_of(x)) for axis in builder.ints_of("axes")]
    starts, ends, steps = builder.exprs_along(axes, "starts", "ends", "steps")
    gone = _axes(builder, "decrease_axes", x)
    bounds: list[Bounds | None] = [None] * rank_of(x)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        first = from_front(builder, start, dims_of(x)[axis])
        bounds[axis] = (first, first + 1, _ONE) if axis in gone else (start, end, step)
    places = places_of(builder, x, bounds)
    counts = [place.dims[0] for place in places]
    value = _assigned(builder, x, counts, gone)
    is_whole = counts == list(dims_of(x)) and all(step == 1 for step in steps)
    return value if is_whole else written(builder, x, places, value)


def _assigned(
    builder: PaddleLegalizer, x: SSAValue, counts: Sequence[Expr], gone: Sequence[int]
) -> SSAValue:
    """The new elements, in the shape of the slice."""
    value = builder.optional("values")
    if value is None:
        value = _literal(builder, builder.get("values"), element_type(x))
    shown = [count for axis, count in enumerate(counts) if axis not in gone]
    for axis in builder.ints_of("none_axes") if builder.get("none_axes") else []:
        shown.insert(axis, _ONE)
    dims = list(dims_of(value))
    while len(dims) > len(shown) and dims[0] == 1:
        dims.pop(0)
    value = builder.cast(builder.reshape(value, dims), x)
    return builder.reshape(builder.broadcast(value, shown), counts)


@legalizes("crop")
def legalize_crop(builder: PaddleLegalizer) -> Results:
    """A part of a size, from a place on; -1 is all that is left."""
    x = builder.input("x")
    starts = builder.exprs_of("offsets") if builder.get("offsets") else [Expr.const(0)] * rank_of(x)
    (asked,) = builder.exprs_along(dims_of(x), "shape")
    pairs = zip(dims_of(x), starts, asked, strict=True)
    sizes = [dim - start if size == -1 else size for dim, start, size in pairs]
    return builder.slice(x, starts, sizes)


@legalizes("split", "split_with_num", "unbind", "unstack")
def legalize_split(builder: PaddleLegalizer) -> Results:
    """Consecutive parts; -1 is what is left. Of one element each, without the dimension."""
    x = builder.input("input" if builder.name == "unbind" else "x")
    axis = builder.along(x)
    dim, count = dims_of(x)[axis], len(builder.op.results)
    if builder.name.startswith("un"):
        parts = builder.split(x, axis, [_ONE] * count)
        return [builder.squeeze(part, [axis]) for part in parts]
    sections = builder.exprs_of("sections") if builder.name == "split" else []
    if builder.name == "split_with_num" or not sections:
        sections = [dim // count] * count
    known = [size for size in sections if size != -1]
    left = dim
    for size in known:
        left = left - size
    return list(builder.split(x, axis, [left if size == -1 else size for size in sections]))


# Joins


@legalizes("concat")
def legalize_concat(builder: PaddleLegalizer) -> Results:
    """Tensors one after the other."""
    values = builder.inputs("x")
    element = builder.kept(*values)
    values = [builder.cast(value, element) for value in values]
    return concat(builder, values, builder.along(values[0]))


@legalizes("stack")
def legalize_stack(builder: PaddleLegalizer) -> Results:
    """Tensors along a new dimension."""
    values = builder.inputs("x")
    element = builder.kept(*values)
    values = [builder.cast(value, element) for value in values]
    axis = builder.axis(builder.integer("axis"), rank_of(values[0]) + 1)
    return [concat(builder, [builder.unsqueeze(value, [axis]) for value in values], axis)]


@legalizes("partial_concat", "partial_sum")
def legalize_partial(builder: PaddleLegalizer) -> Results:
    """The same columns of all matrices, side by side or added."""
    values = builder.inputs("x")
    width = dims_of(values[0])[1]
    start = builder.integer("start_index")
    first = width + start if start < 0 else Expr.const(start)
    length = builder.integer("length")
    size = width - first if length < 0 else Expr.const(length)
    parts = [builder.slice_axis(value, 1, first, size) for value in values]
    if builder.name == "partial_concat":
        return concat(builder, parts, 1)
    return reduce(operator.add, (TensorValue.of(builder, part) for part in parts))


# Pads

_MODES = {"reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


@legalizes("pad", "pad3d", "pad2d")
def legalize_pad(builder: PaddleLegalizer) -> Results:
    """
    Around the last dimensions, from the first of them on, in `pad3d` from the last one: a number,
    the edge, or what lies opposite of it.
    """
    x = builder.first(builder.input("x")) if builder.name != "pad" else builder.input("x")
    amounts = builder.exprs_of("paddings")
    none = [Expr.const(0)] * (rank_of(x) - len(amounts) // 2)
    order = -1 if builder.name == "pad3d" else 1
    begin, end = ([*none, *amounts[k::2][::order]] for k in (0, 1))
    mode = builder.choice("mode", "constant", *_MODES) if builder.has("mode") else "constant"
    is_number = mode == "constant"
    value = builder.scalar_of("pad_value", element_type(x)).value if is_number else None
    found = pad(builder, x, begin, end, value, _MODES.get(mode, mode))
    return found if builder.name == "pad" else builder.back(found)


# Triangles and diagonals


def _triangle(builder: PaddleLegalizer) -> SSAValue:
    """Zero above or below a diagonal."""
    x, k = builder.input("x"), builder.integer("diagonal")
    name = "tril" if builder.name == "tril" and builder.flag("lower") else "triu"
    return builder.torch(f"{name}.default", self=x, diagonal=k)[0]


@legalizes("diag")
def legalize_diag(builder: PaddleLegalizer) -> Results:
    """The diagonal of a matrix, or a matrix with one and a number elsewhere."""
    x, offset = builder.input("x"), builder.integer("offset")
    (found,) = builder.torch("diag.default", self=x, diagonal=offset)
    if rank_of(x) != 1 or not builder.number("padding_value"):
        return found
    fill = builder.scalar_of("padding_value", element_type(x))
    return diagonals(builder, found).eq(offset).where(TensorValue(builder, found), fill)


@legalizes("fill_diagonal")
def legalize_fill_diagonal(builder: PaddleLegalizer) -> Results:
    """Other elements on a diagonal."""
    x = builder.input("x")
    dims = dims_of(x)
    if len(dims) != 2 or builder.flag("wrap"):
        builder.refuse("fill_diagonal that wraps, or of many dimensions", "a matrix")
    on = diagonals(builder, x).eq(builder.integer("offset"))
    return builder.select(on.value, builder.scalar_of("value", element_type(x)).value, x)


# Tensors that are made


@legalizes("full", "full_with_tensor", "ones", "zeros", "empty")
@legalizes("full_like", "ones_like", "zeros_like", "empty_like", "fill")
def legalize_full(builder: PaddleLegalizer) -> Results:
    """One number everywhere; what is not initialized is zero."""
    element = builder.element()
    if builder.has("value"):
        value = builder.scalar_of("value", element).value
    else:
        value = builder.scalar(int(builder.name.startswith("ones")), element)
    is_like = builder.name.endswith("like") or builder.name == "fill"
    if is_like:
        return builder.broadcast(value, dims_of(builder.input("x")))
    sizes = builder.dims(builder.exprs_of("shape"))
    return builder.broadcast(value, sizes_of(builder, sizes, "'shape'"))


def _literal(builder: PaddleLegalizer, given: Any, element: Attribute) -> SSAValue:
    """The numbers of an attribute, in the shape that another one says."""
    numbers = cast("list[Any]", given or [])
    shape = builder.ints_of("shape")
    is_list = isinstance(given, list | None) and all(type(n) in (bool, int, float) for n in numbers)
    if not is_list or len(numbers) != np.prod(shape, dtype=object):
        builder.refuse(f"{given} of shape {shape}", "as many numbers")
    return builder.tensor(np.array(numbers).astype(numpy_dtype(element)).reshape(shape))


@legalizes("arange", "range_v2")
def legalize_arange(builder: PaddleLegalizer) -> Results:
    """start + i * step"""
    element = builder.element()
    wide = f64 if is_float(element) else i64
    bounds = (builder.scalar_of(name, wide) for name in ("start", "end", "step"))
    return builder.cast(range_of(builder, *bounds), element)


def _eye(builder: PaddleLegalizer) -> SSAValue:
    rows, columns = builder.expr("num_rows"), builder.expr("num_columns")
    columns = rows if columns == -1 else columns
    on = index_vector(builder, rows, 2, 0).eq(index_vector(builder, columns, 2, 1))
    return builder.cast(on.value, builder.element())


@legalizes("sequence_mask")
def legalize_sequence_mask(builder: PaddleLegalizer) -> Results:
    """Whether each place is before a length."""
    x = builder.value("x")
    limit = builder.expr("max_len") if builder.get("max_len") is not None else Expr.const(-1)
    if limit.value is not None and limit.value < 0:
        longest = x.cast(i64).reduce("max", list(range(len(x.dims))))
        (limit,) = sizes_of(builder, longest.value, "the longest length")
    place = TensorValue.iota(builder, limit).column(len(x.dims) + 1, len(x.dims))
    return builder.cast(place.lt(x.cast(i64).reshape([*x.dims, 1])).value, builder.element())


def _literal_value(builder: PaddleLegalizer) -> SSAValue:
    names = ("values", "bool_values", "fp32_values", "fp64_values", "int32_values", "int64_values")
    given: Any = next((builder.get(name) for name in names if builder.get(name)), None)
    return _literal(builder, given, builder.element())


def _expanded_as(builder: PaddleLegalizer) -> SSAValue:
    other = builder.optional("y")
    dims = builder.exprs_of("target_shape") if other is None else dims_of(other)
    return builder.broadcast(builder.input("x"), dims)


def _padded_like(builder: PaddleLegalizer) -> SSAValue:
    """y with a number behind it, in the shape of x."""
    x, y = builder.input("x"), builder.input("y")
    end = [a - b for a, b in zip(dims_of(x), dims_of(y), strict=True)]
    value = builder.scalar_of("pad_value", element_type(y))
    return pad(builder, y, [Expr.const(0)] * len(end), end, value.value)


def _bits(builder: PaddleLegalizer) -> SSAValue:
    """The same bytes as elements of another type, of the same width."""
    x = builder.input("input")
    if element_type(x) == i1:
        builder.refuse("the bytes of truth values", "numbers")
    return builder.torch("view.dtype", self=x, dtype=builder.element())[0]


legalizes.rows(
    {
        "assign_value": _literal_value,
        "expand_as": _expanded_as,
        "eye": _eye,
        "flatten2": lambda b: b.flatten(b.input("x"), b.integer("axis")),
        "full_int_array": lambda b: b.cast(b.constant_of(b.ints_of("value")), b.element()),
        "pad_constant_like": _padded_like,
        "shape_broadcast": lambda b: b.cast(
            b.dims(broadcast([b.exprs_of("x"), b.exprs_of("y")])), b.element()
        ),
        "transpose": lambda b: b.transpose(
            b.input("x"), b.axes(b.ints_of("perm"), rank_of(b.input("x")))
        ),
        "tril": _triangle,
        "triu": _triangle,
        "view_dtype": _bits,
    }
)
