"""Operators that move elements: views, slices, pads, and what joins tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp, ScatterElementsOp
from lowerdeck.dialects.core.types import broadcast, dims_of, f64, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.pt2.strides import overlaps
from lowerdeck.passes.legalize.common.blocks import (
    depth_to_space,
    shuffled_channels,
    space_to_depth,
)
from lowerdeck.passes.legalize.common.combined_windows import windows_as_columns
from lowerdeck.passes.legalize.common.diagonals import (
    diagonal,
    embedded,
    on_block_diagonal,
    with_diagonal,
)
from lowerdeck.passes.legalize.common.functions import PAIRS
from lowerdeck.passes.legalize.common.generators import diagonals, evenly_spaced, range_of
from lowerdeck.passes.legalize.common.movement import (
    concat,
    enlarged,
    pad,
    positive_part,
    recast_rows,
    rolled,
    scattered_rows,
    sliced,
    strided_places,
    tile,
    windows_along,
)
from lowerdeck.passes.legalize.common.promotion import promoted
from lowerdeck.passes.legalize.onnx.applied import applied as applied_onnx
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import UNBOUNDED, from_front, is_nonnegative
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector

# Shapes


def resolved(builder: Pt2Legalizer, dims: Sequence[Expr], shape: Sequence[Expr]) -> list[Expr]:
    """A shape of which one entry may be -1."""
    missing = [axis for axis, size in enumerate(shape) if size == -1]
    if not missing:
        return list(shape)
    if len(missing) > 1:
        builder.refuse("more than one -1 in a shape", "one")
    rest = product(size for axis, size in enumerate(shape) if axis != missing[0])
    if rest == 0:
        builder.refuse("-1 beside dimensions of 0", "sizes")
    found = list(shape)
    found[missing[0]] = product(dims) // rest
    return found


@legalizes("view", "reshape", "_unsafe_view")
def legalize_view(builder: Pt2Legalizer) -> Results:
    """Another shape."""
    x = builder.input()
    shape = builder.exprs_of("shape" if builder.name == "reshape" else "size")
    return builder.reshape(x, resolved(builder, dims_of(x), shape))


@legalizes("view_as", "reshape_as")
def legalize_view_as(builder: Pt2Legalizer) -> Results:
    """The shape of another tensor."""
    return builder.reshape(builder.input(), dims_of(builder.input("other")))


@legalizes("expand", "expand_as", "broadcast_to")
def legalize_expand(builder: Pt2Legalizer) -> Results:
    """Dimensions of one repeated; -1 stands for the old size."""
    x = builder.input()
    if builder.name == "expand_as":
        return builder.broadcast(x, dims_of(builder.input("other")))
    sizes = builder.exprs_of("size")
    builder.require_ranks({"self": (0, len(sizes))})
    old = [Expr.const(1)] * (len(sizes) - rank_of(x)) + list(dims_of(x))
    dims = [before if size == -1 else size for before, size in zip(old, sizes, strict=True)]
    return builder.broadcast(x, dims)


@legalizes("flatten", "ravel")
def legalize_flatten(builder: Pt2Legalizer) -> Results:
    """Neighboring dimensions as one."""
    x = builder.input()
    dims = dims_of(x)
    if builder.name == "ravel" or not dims:
        return builder.reshape(x, [product(dims)])
    first, last = (builder.axis(builder.integer(n), len(dims)) for n in ("start_dim", "end_dim"))
    return builder.reshape(x, [*dims[:first], product(dims[first : last + 1]), *dims[last + 1 :]])


@legalizes("unflatten")
def legalize_unflatten(builder: Pt2Legalizer) -> Results:
    """One dimension as several."""
    x = builder.input()
    dims, axis = dims_of(x), builder.dim()
    sizes = resolved(builder, [dims[axis]], builder.exprs_of("sizes"))
    return builder.reshape(x, [*dims[:axis], *sizes, *dims[axis + 1 :]])


@legalizes("unsqueeze")
def legalize_unsqueeze(builder: Pt2Legalizer) -> Results:
    """A new dimension of one."""
    x = builder.input()
    return builder.unsqueeze(x, [builder.axis(builder.integer("dim"), rank_of(x) + 1)])


@legalizes("squeeze")
def legalize_squeeze(builder: Pt2Legalizer) -> Results:
    """Dimensions of one go; others stay, also those whose size is open."""
    x = builder.input()
    dims = dims_of(x)
    axes = builder.axes_of("dim", len(dims)) if builder.has("dim") else list(range(len(dims)))
    return builder.squeeze(x, [axis for axis in axes if dims[axis] == 1])


def _with_dims(builder: Pt2Legalizer, x: SSAValue, least: int) -> SSAValue:
    """Dimensions of one where there are too few: the third is the last one, others come first."""
    dims = list(dims_of(x))
    while len(dims) < least:
        dims = [*dims, Expr.const(1)] if len(dims) == 2 else [Expr.const(1), *dims]
    return builder.reshape(x, dims)


@legalizes("atleast_1d", "atleast_2d", "atleast_3d")
def legalize_atleast(builder: Pt2Legalizer) -> Results:
    """Dimensions of one where there are too few."""
    values = builder.inputs("tensors") if builder.has("tensors") else [builder.input()]
    return [_with_dims(builder, value, int(builder.name[-2])) for value in values]


@legalizes("permute", "transpose", "swapaxes", "swapdims", "t", "mT", "mH", "numpy_T")
@legalizes("movedim", "moveaxis")
def legalize_permute(builder: Pt2Legalizer) -> Results:
    """Dimensions in another order."""
    x = builder.input()
    rank = rank_of(x)
    order = list(range(rank))
    if not rank:
        return x
    match builder.name:
        case "permute":
            order = builder.axes(builder.ints_of("dims"), rank)
        case "numpy_T":
            order.reverse()
        case "movedim" | "moveaxis":
            sources = builder.axes(builder.ints_of("source"), rank)
            targets = builder.axes(builder.ints_of("destination"), rank)
            rest = [axis for axis in order if axis not in sources]
            for target, source in sorted(zip(targets, sources, strict=True)):
                rest.insert(target, source)
            order = rest
        case "t" | "mT" | "mH":
            if rank > 1:
                order[-2:] = reversed(order[-2:])
        case _:
            keys = ("dim0", "dim1") if builder.has("dim0") else ("axis0", "axis1")
            a, b = (builder.axis(builder.integer(key), rank) for key in keys)
            order[a], order[b] = order[b], order[a]
    return builder.transpose(x, order)


# Parts


def _bounds(builder: Pt2Legalizer) -> tuple[Expr, Expr]:
    start = Expr.const(0) if builder.get("start") is None else builder.expr("start")
    end = Expr.const(UNBOUNDED) if builder.get("end") is None else builder.expr("end")
    return start, end


def _along(builder: Pt2Legalizer) -> tuple[SSAValue, int]:
    x = builder.input()
    if not rank_of(x):
        builder.refuse("a scalar", "a tensor with dimensions")
    return x, builder.dim()


@legalizes("slice")
def legalize_slice(builder: Pt2Legalizer) -> Results:
    """Bounds are clamped; negative ones count from the end."""
    x, axis = _along(builder)
    start, end = _bounds(builder)
    return sliced(builder, x, [axis], [start], [end], [builder.expr("step")])


@legalizes("narrow")
def legalize_narrow(builder: Pt2Legalizer) -> Results:
    """A number of elements from a place on."""
    x, axis = _along(builder)
    start = _place(builder, builder.expr("start"), dims_of(x)[axis])
    return builder.slice_axis(x, axis, start, builder.expr("length"))


def _place(builder: Pt2Legalizer, index: Expr, dim: Expr) -> Expr:
    if index.value is not None:
        return dim + index if index.value < 0 else index
    if not is_nonnegative(builder, index):
        return from_front(builder, index, dim)
    return index


@legalizes("select")
def legalize_select(builder: Pt2Legalizer) -> Results:
    """One position of a dimension, which goes."""
    x, axis = _along(builder)
    place = _place(builder, builder.expr("index"), dims_of(x)[axis])
    return builder.squeeze(builder.slice_axis(x, axis, place, 1), [axis])


@legalizes("slice_scatter", "select_scatter")
def legalize_put(builder: Pt2Legalizer) -> Results:
    """A tensor in which a slice, or one position, is another one."""
    x, axis = _along(builder)
    source, dims = builder.cast(builder.input("src"), x), list(dims_of(x))
    if builder.name == "select_scatter":
        source = builder.unsqueeze(source, [axis])
        place = TensorValue.dim(builder, _place(builder, builder.expr("index"), dims[axis]))
        places = place.reshape([1])
    else:
        (start, end), step = _bounds(builder), builder.expr("step")
        number = TensorValue.iota(builder, dims[axis]).value
        places = TensorValue.of(builder, sliced(builder, number, [0], [start], [end], [step]))
    is_whole, dims[axis] = places.dims[0] == dims[axis], places.dims[0]
    source = builder.broadcast(source, dims)
    return source if is_whole else scattered_rows(builder, x, source, axis, places)


@legalizes("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
@legalizes("chunk", "unsafe_chunk", "tensor_split", "unbind")
def legalize_split(builder: Pt2Legalizer) -> Results:
    """Consecutive parts."""
    x, axis = _along(builder)
    dim, count = dims_of(x)[axis], len(builder.op.results)
    if builder.name == "unbind":
        parts = builder.split(x, axis, [Expr.const(1)] * count)
        return [builder.squeeze(part, [axis]) for part in parts]
    if builder.name == "tensor_split":
        if not builder.has("sections"):
            return _split_at(builder, x, axis)
        sizes = [(dim + (count - 1 - k)) // count for k in range(count)]
    elif builder.has("split_sizes"):
        sizes = builder.exprs_of("split_sizes")
    else:
        if builder.has("chunks"):
            chunks = builder.integer("chunks")
            each = (dim + chunks - 1) // chunks
        elif builder.overload == "sizes":
            return list(builder.split(x, axis, builder.exprs_of("split_size")))
        else:
            each = builder.expr("split_size")
        sizes = [each] * (count - 1) + [dim - each * (count - 1)]
    return list(builder.split(x, axis, sizes))


def _split_at(builder: Pt2Legalizer, x: SSAValue, axis: int) -> Results:
    """The parts between places, as slices have them."""
    name = next(name for name in builder.op.schema.arguments if name.startswith(("ind", "tensor_")))
    places = builder.exprs_of(name)
    if len(builder.op.results) != len(places) + 1:  # a tensor without dimensions: sections
        builder.refuse("a number of sections as a tensor", "a list")
    pairs = zip([Expr.const(0), *places], [*places, Expr.const(UNBOUNDED)], strict=True)
    step = [Expr.const(1)]
    return [sliced(builder, x, [axis], [start], [end], step) for start, end in pairs]


@legalizes("flip", "fliplr", "flipud")
def legalize_flip(builder: Pt2Legalizer) -> Results:
    """The elements along dimensions in reverse."""
    x = builder.input()
    fixed = {"fliplr": [1], "flipud": [0]}.get(builder.name)
    given = builder.ints_of("dims") if fixed is None and rank_of(x) else []
    return builder.flip(x, fixed or builder.axes(given, rank_of(x)))


@legalizes("roll")
def legalize_roll(builder: Pt2Legalizer) -> Results:
    """What leaves at one end comes back at the other."""
    x = builder.input()
    shifts, axes = builder.exprs_of("shifts"), builder.ints_of("dims")
    dims = dims_of(x)
    if len(shifts) != max(len(axes), 1):
        builder.refuse(f"{len(shifts)} shifts along {len(axes)} dimensions", "one each")
    if not axes:
        flat = builder.reshape(x, [product(dims)])
        return builder.reshape(rolled(builder, flat, 0, shifts[0]), dims)
    for shift, axis in zip(shifts, axes, strict=True):  # a dimension may come again
        x = rolled(builder, x, builder.axis(axis, len(dims)), shift)
    return x


# Joins


@legalizes("cat", "concat", "concatenate")
def legalize_cat(builder: Pt2Legalizer) -> Results:
    """Tensors one after the other; empty vectors are nothing."""
    values, element = builder.inputs("tensors"), builder.element()
    rank = max(map(rank_of, values))
    kept = [v for v in values if rank_of(v) == rank or dims_of(v) != (Expr.const(0),)]
    axis = builder.axis(builder.integer("dim"), rank)
    return concat(builder, [builder.cast(value, element) for value in kept], axis)


@legalizes("stack")
def legalize_stack(builder: Pt2Legalizer) -> Results:
    """Tensors along a new dimension."""
    values = [builder.cast(value, builder.element()) for value in builder.inputs("tensors")]
    axis = builder.axis(builder.integer("dim"), rank_of(values[0]) + 1)
    return concat(builder, [builder.unsqueeze(value, [axis]) for value in values], axis)


@legalizes("hstack", "vstack", "row_stack", "dstack")
def legalize_stacks(builder: Pt2Legalizer) -> Results:
    """Joins along the second, first or third dimension."""
    least = {"hstack": 1, "dstack": 3}.get(builder.name, 2)
    values = [_with_dims(builder, value, least) for value in builder.inputs("tensors")]
    wide = [builder.cast(value, builder.element()) for value in values]
    axis = {"hstack": min(1, rank_of(wide[0]) - 1), "dstack": 2}.get(builder.name, 0)
    return concat(builder, wide, axis)


@legalizes("sum_to_size")
def legalize_sum_to_size(builder: Pt2Legalizer) -> Results:
    """The sum over all dimensions that are one, or are not, in the result."""
    x, sizes = builder.stated(), builder.exprs_of("size")
    lead = len(x.dims) - len(sizes)
    axes = [k for k, dim in enumerate(x.dims) if k < lead or (sizes[k - lead] == 1 and dim != 1)]
    return x.reduce("sum", axes).reshape(sizes).value if axes else x.value


@legalizes("repeat", "tile")
def legalize_repeat(builder: Pt2Legalizer) -> Results:
    """Copies side by side."""
    x = builder.input()
    repeats = builder.exprs_of("repeats" if builder.name == "repeat" else "dims")
    repeats = [Expr.const(1)] * (rank_of(x) - len(repeats)) + repeats
    x = builder.unsqueeze(x, list(range(len(repeats) - rank_of(x))))
    return tile(builder, x, repeats)


@legalizes("repeat_interleave.self_int")
def legalize_repeat_interleave(builder: Pt2Legalizer) -> Results:
    """Each element several times."""
    x, axis = builder.value(), 0
    if builder.get("dim") is None:
        x = x.reshape([product(x.dims)])
    else:
        axis = builder.dim()
    return enlarged(x, axis, [builder.expr("repeats")])


@legalizes("meshgrid", "broadcast_tensors", "cartesian_prod")
def legalize_meshgrid(builder: Pt2Legalizer) -> Results:
    """Vectors along a dimension each, repeated over the others."""
    values = builder.inputs("tensors")
    if builder.name == "broadcast_tensors":
        dims = broadcast([dims_of(value) for value in values])
        return [builder.broadcast(value, dims) for value in values]
    sizes = [product(dims_of(value)) for value in values]
    if builder.name == "cartesian_prod" and len(values) == 1:
        return values
    swaps = builder.text("indexing", "ij") == "xy" if builder.has("indexing") else False
    order = list(range(len(values)))
    if swaps and len(order) > 1:
        order[:2] = [1, 0]
    results: list[SSAValue] = []
    for number, value in enumerate(values):
        dims = [Expr.const(1)] * len(values)
        dims[order.index(number)] = sizes[number]
        wide = builder.reshape(value, dims)
        results.append(builder.broadcast(wide, [sizes[k] for k in order]))
    if builder.name == "meshgrid":
        return results
    rank = len(values)
    columns = [builder.unsqueeze(r, [rank]) for r in results]
    return builder.reshape(concat(builder, columns, rank), [product(sizes), rank])


# Padding


def _spread(builder: Pt2Legalizer, rank: int, name: str) -> tuple[list[Expr], list[Expr]]:
    amounts = builder.exprs_of(name)
    if len(amounts) not in range(0, 2 * rank + 1, 2):
        builder.refuse(f"{len(amounts)} amounts for {rank} dimensions", "two for each of some")
    amounts += [Expr.const(0)] * (2 * rank - len(amounts))
    return amounts[-2::-2], amounts[::-2]


@legalizes("constant_pad_nd", "pad")
def legalize_pad(builder: Pt2Legalizer) -> Results:
    """What is around, from the last dimension on."""
    x = builder.input()
    mode = builder.text("mode", "constant") if builder.has("mode") else "constant"
    begin, end = _spread(builder, rank_of(x), "pad")
    if mode != "constant":
        name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
        return _surrounded(builder, x, begin, end, name)
    value = builder.number("value", 0)
    return pad(builder, x, begin, end, builder.scalar(value, x))


@legalizes(*(f"{mode}_pad{k}d" for mode in ("reflection", "replication") for k in (1, 2, 3)))
def legalize_edge_pad(builder: Pt2Legalizer) -> Results:
    """What is around repeats the elements."""
    x = builder.input()
    begin, end = _spread(builder, rank_of(x), "padding")
    mode = "reflect" if builder.name.startswith("reflection") else "edge"
    return _surrounded(builder, x, begin, end, mode)


def _surrounded(
    builder: Pt2Legalizer, x: SSAValue, begin: list[Expr], end: list[Expr], mode: str
) -> SSAValue:
    """
    Elements are repeated first, also those that are taken away then; but what goes around is what
    is left.
    """
    if mode != "wrap":
        first, last = ([positive_part(builder, each) for each in side] for side in (begin, end))
        x = pad(builder, x, first, last, None, mode)
        begin = [-positive_part(builder, -amount) for amount in begin]
        end = [-positive_part(builder, -amount) for amount in end]
    return pad(builder, x, begin, end, None, mode)


# Triangles and diagonals


@legalizes("tril", "triu")
def legalize_triangle(builder: Pt2Legalizer) -> Results:
    """Zero above or below a diagonal."""
    x = builder.input()
    place, k = diagonals(builder, x), builder.integer("diagonal")
    kept = place.le(k) if builder.name == "tril" else place.ge(k)
    return builder.select(kept.value, x, builder.scalar(0, x))


@legalizes("diagonal", "diag", "trace")
def legalize_diagonal(builder: Pt2Legalizer) -> Results:
    """The elements of a diagonal as the last dimension; a matrix with one."""
    x = builder.input()
    rank = rank_of(x)
    if builder.name == "diag" and rank == 1:
        return embedded(builder, x, builder.integer("diagonal"), 0, 1)
    offset, first, second = 0, 0, 1
    if builder.name == "diagonal":
        first, second = (builder.axis(builder.integer(n), rank) for n in ("dim1", "dim2"))
        offset = builder.integer("offset")
    elif builder.name == "diag":
        offset = builder.integer("diagonal")
    found = diagonal(builder, x, offset, first, second)
    if builder.name == "trace":
        found = builder.reduce("sum", builder.cast(found, builder.element()), [0])
    return found


@legalizes("diagonal_scatter")
def legalize_diagonal_scatter(builder: Pt2Legalizer) -> Results:
    """A tensor with another diagonal."""
    x = builder.input()
    source = builder.cast(builder.input("src"), x)
    first, second = (builder.axis(builder.integer(n), rank_of(x)) for n in ("dim1", "dim2"))
    return with_diagonal(builder, x, source, builder.integer("offset"), first, second)


@legalizes("diag_embed")
def legalize_diag_embed(builder: Pt2Legalizer) -> Results:
    """Matrices whose diagonal is the last dimension."""
    x = builder.input()
    rank = rank_of(x) + 1
    first, second = (builder.axis(builder.integer(n), rank) for n in ("dim1", "dim2"))
    return embedded(builder, x, builder.integer("offset"), first, second)


# Blocks of images


@legalizes("channel_shuffle")
def legalize_channel_shuffle(builder: Pt2Legalizer) -> Results:
    """Channels of groups in turn."""
    return shuffled_channels(builder, builder.input(), builder.integer("groups"))


@legalizes("pixel_shuffle", "pixel_unshuffle")
def legalize_pixel_shuffle(builder: Pt2Legalizer) -> Results:
    """Channels as places, or places as channels."""
    if builder.name == "pixel_shuffle":
        return depth_to_space(builder, builder.input(), builder.integer("upscale_factor"))
    return space_to_depth(builder, builder.input(), builder.integer("downscale_factor"))


@legalizes("unfold")
def legalize_unfold(builder: Pt2Legalizer) -> Results:
    """Windows along a dimension, as the last dimension."""
    x = builder.input()
    if not rank_of(x):
        return builder.broadcast(builder.reshape(x, [1]), [builder.expr("size")])
    axis = builder.axis(builder.integer("dimension"), rank_of(x))
    found = windows_along(builder, x, axis, builder.expr("size"), builder.expr("step"))
    order = [k for k in range(rank_of(found)) if k != axis + 1]
    return builder.transpose(found, [*order, axis + 1])


# Tensors that are made


_FILLED = ("full", "zeros", "ones", "empty")


@legalizes(*_FILLED, *(f"new_{n}" for n in _FILLED), *(f"{n}_like" for n in _FILLED))
@legalizes("scalar_tensor", "empty_strided", "empty_permuted", "new_empty_strided", "fill", "zero")
def legalize_full(builder: Pt2Legalizer) -> Results:
    """One number everywhere; what is not initialized is zero."""
    name, element = builder.name, builder.element()
    if builder.has("fill_value"):
        value = builder.operand("fill_value", element)
    elif name == "scalar_tensor":
        value = builder.operand("s", element)
    elif name == "fill":
        value = builder.operand("value", element)
    else:
        value = builder.known(1 if "ones" in name else 0, element)
    if name == "scalar_tensor":
        return value
    by_self = name.endswith("_like") or name in ("fill", "zero")
    dims = dims_of(builder.input()) if by_self else builder.exprs_of("size")
    return builder.broadcast(value.value, dims)


@legalizes("arange")
def legalize_arange(builder: Pt2Legalizer) -> Results:
    """start + i * step; the length is found in double precision."""
    element = builder.element()
    start = 0 if not builder.has("start") else builder.get("start")
    step = builder.get("step") if builder.has("step") else 1
    plain = [start, builder.get("end"), step]
    if all(isinstance(number, int | float) for number in plain):
        first, end, each = plain
        count = max(0, int(np.ceil((float(end) - float(first)) / float(each))))
        wide = f64 if is_float(element) else i64
        number = TensorValue.iota(builder, count).cast(wide)
        return (number * each + first).cast(element)
    wide = f64 if is_float(promoted([n for n in plain], [True] * 3)) else i64
    names = {"start": 0, "end": 0, "step": 1}
    given = [
        builder.operand(n, wide) if builder.has(n) else builder.known(k, wide)
        for n, k in names.items()
    ]
    return builder.cast(range_of(builder, given[0], given[1], given[2]), element)


@legalizes("eye")
def legalize_eye(builder: Pt2Legalizer) -> Results:
    """Ones on the diagonal."""
    rows = builder.expr("n")
    columns = builder.expr("m") if builder.has("m") else rows
    on = index_vector(builder, rows, 2, 0).eq(index_vector(builder, columns, 2, 1))
    return builder.cast(on.value, builder.element())


@legalizes("linspace", "logspace")
def legalize_linspace(builder: Pt2Legalizer) -> Results:
    """Evenly spaced numbers between two, or powers with such exponents."""
    element, steps = builder.element(), builder.integer("steps")
    is_whole = not is_float(element) or builder.name == "logspace"
    wide = f64 if is_whole else element
    start, end = (builder.operand(n, wide) for n in ("start", "end"))
    found = evenly_spaced(start, end, steps)
    if builder.name == "logspace":
        found = PAIRS["pow"](builder.known(float(builder.number("base")), wide), found)
    return found.cast(element)


@legalizes("tril_indices", "triu_indices")
def legalize_indices(builder: Pt2Legalizer) -> Results:
    """Where a triangle is."""
    make = np.tril_indices if builder.name == "tril_indices" else np.triu_indices
    rows, columns = builder.integer("row"), builder.integer("col")
    found = np.stack(make(rows, builder.integer("offset"), columns)).astype(np.int64)
    return builder.cast(builder.tensor(found), builder.element())


@legalizes("as_strided")
def legalize_asstrided_places(builder: Pt2Legalizer) -> Results:
    """The elements at strides of a tensor that lies in order."""
    x = builder.input()
    dims, sizes = dims_of(x), builder.exprs_of("size")
    strides = builder.exprs_of("stride")
    if len(strides) != len(sizes):
        builder.refuse(f"{len(strides)} strides", f"{len(sizes)}")
    offset = builder.expr("storage_offset") if builder.get("storage_offset") is not None else 0
    steps = [product(sizes[k + 1 :]) for k in range(len(sizes))]
    in_order = all(
        size == 1 or step == stride
        for size, step, stride in zip(sizes, steps, strides, strict=True)
    )
    if offset == 0 and in_order and product(dims) == product(sizes):
        return builder.reshape(x, sizes)
    flat = builder.reshape(x, [product(dims)])
    return builder.add(GatherOp(flat, strided_places(builder, sizes, strides, offset).value, 0))


@legalizes("as_strided_scatter")
def legalize_as_strided_scatter(builder: Pt2Legalizer) -> Results:
    """A tensor that lies in order with other elements at strides."""
    x, source = builder.input(), builder.input("src")
    sizes, strides = builder.exprs_of("size"), builder.exprs_of("stride")
    known = [number.value for number in (*sizes, *strides) if number.value is not None]
    if len(known) == 2 * len(sizes) and overlaps(known[: len(sizes)], known[len(sizes) :]):
        builder.refuse("strides that show elements twice", "each element once")
    offset = builder.expr("storage_offset") if builder.get("storage_offset") is not None else 0
    count = [product(sizes)]
    places = strided_places(builder, sizes, strides, offset).reshape(count).value
    values = builder.reshape(builder.broadcast(builder.cast(source, x), sizes), count)
    flat = builder.reshape(x, [product(dims_of(x))])
    found = builder.add(ScatterElementsOp(flat, places, values, 0))
    return builder.reshape(found, dims_of(x))


@legalizes("block_diag")
def legalize_block_diag(builder: Pt2Legalizer) -> Results:
    """Matrices along the diagonal, zeros elsewhere."""
    values = [builder.cast(value, builder.element()) for value in builder.inputs("tensors")]
    return on_block_diagonal(
        builder, [builder.unsqueeze(v, list(range(2 - rank_of(v)))) for v in values]
    )


@legalizes("im2col", "col2im")
def legalize_columns(builder: Pt2Legalizer) -> Results:
    """Windows as columns, and the sum of columns where they lie in the image."""
    kernel, dilation, padding, stride = (
        builder.ints_of(name, 2) for name in ("kernel_size", "dilation", "padding", "stride")
    )
    if not all(0 < k < 1 << 16 for k in kernel) or min(*dilation, *stride) < 1:
        builder.refuse(f"windows of {kernel}, {stride} and {dilation} apart", "1 to 65535, from 1")
    if builder.name == "col2im":
        x, back = builder.batched(builder.input(), 3)
        given = builder.dims(builder.exprs_of("output_size")), builder.constant_of(kernel)
        lists: dict[str, Any] = {
            "strides": stride,
            "dilations": dilation,
            "pads": [*padding, *padding],
        }
        return back(*applied_onnx(builder, "Col2Im", x, *given, **lists))
    x, back = builder.batched(builder.input(), 4)
    return back(windows_as_columns(builder, x, kernel, stride, dilation, padding))


@legalizes("view.dtype")
def legalize_bits(builder: Pt2Legalizer) -> Results:
    """The same bytes as elements of another type."""
    return recast_rows(builder, builder.input(), builder.element())
