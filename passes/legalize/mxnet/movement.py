"""Reshapes, transposes, parts, concatenation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, exprs, product
from lowerdeck.passes.legalize.common.movement import (
    Bounds,
    concat,
    pad,
    places_of,
    sliced,
    written,
)
from lowerdeck.passes.legalize.common.reshaping import by_codes, by_numpy_codes, completed
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_MOST_PARTS = 1 << 16

# Reshape


@legalizes("Reshape")
def legalize_reshape(builder: MxnetLegalizer) -> Results:
    """
    Sizes of the result, or: 0 the size there, -1 what is left, -2 all sizes from there on, -3 two
    sizes as one, -4 one size as the next two.
    """
    x = builder.input()
    codes = builder.sizes("shape")
    if not codes:
        codes = builder.sizes("target_shape")
        if builder.flag("keep_highest"):
            codes = [0, *codes[1:]]
        else:
            # An older form, in which 0 is what is left.
            codes = [size or -1 for size in codes]
    if not codes:
        builder.refuse("no shape", "one")
    if min(codes) < -4:
        builder.refuse(f"'shape' {codes}", "sizes and codes from -4 on")
    dims = list(dims_of(x))
    if builder.flag("reverse"):
        found = by_codes(builder, dims[::-1], codes[::-1])[::-1]
    else:
        found = by_codes(builder, dims, codes)
    return builder.reshape(x, completed(builder, dims, found))


@legalizes("_np_reshape", "_npx_reshape")
def legalize_numpy_reshape(builder: MxnetLegalizer) -> Results:
    """As numpy reshapes, or as codes tell."""
    if builder.text("order") != "C":
        builder.refuse(f"the order {builder.text('order')}", "C")
    x, codes = builder.input("a"), builder.sizes("newshape")
    dims = list(dims_of(x))
    if builder.name == "_np_reshape":
        found = [None if size == -1 else Expr.const(size) for size in codes]
    elif 0 in codes:
        builder.refuse(f"'newshape' {codes}", "no size of 0")
    else:
        found = by_numpy_codes(builder, dims, codes, builder.flag("reverse"))
    return builder.reshape(x, completed(builder, dims, found))


@legalizes("reshape_like")
def legalize_reshape_like(builder: MxnetLegalizer) -> Results:
    """Some dimensions of one tensor as some of another."""
    x, like = builder.input("lhs"), builder.input("rhs")
    bounds: list[int] = []
    for name, value in (("lhs", x), ("rhs", like)):
        rank = rank_of(value)
        for end, default in (("begin", 0), ("end", rank)):
            given = builder.get(f"{name}_{end}")
            place = default if given is None else int(given)
            bounds.append(min(max(place + rank if place < 0 else place, 0), rank))
    dims, other = dims_of(x), dims_of(like)
    sizes = [*dims[: bounds[0]], *other[bounds[2] : bounds[3]], *dims[bounds[1] :]]
    return builder.reshape(x, sizes)


def _flattened(builder: MxnetLegalizer) -> SSAValue:
    """A matrix with a row for each element of the first dimension."""
    x = builder.input()
    builder.axis(0, rank_of(x))
    return builder.flatten(x, 1)


@legalizes("squeeze", "_np_squeeze")
def legalize_squeeze(builder: MxnetLegalizer) -> Results:
    """Without dimensions of one; what is left of older operators has one dimension at least."""
    x = builder.input()
    dims = dims_of(x)
    if builder.get("axis") is None:
        axes = [axis for axis, dim in enumerate(dims) if dim == 1]
    else:
        axes = builder.axes(builder.sizes("axis"), len(dims))
    if any(dims[axis] != 1 for axis in axes):
        builder.refuse(f"axes {axes} of {x.type}", "dimensions of one")
    if len(axes) == len(dims) and axes and not builder.is_numpy:
        axes = axes[:-1]
    return builder.squeeze(x, axes)


# Transposes


@legalizes("transpose", "_np_transpose")
def legalize_transpose(builder: MxnetLegalizer) -> Results:
    """Dimensions in another order, by default the opposite one."""
    x = builder.input()
    rank = rank_of(x)
    order = builder.axes(builder.sizes("axes"), rank) or list(range(rank))[::-1]
    if len(order) != rank:
        builder.refuse(f"axes {order}", f"{rank} of them")
    return builder.transpose(x, order)


@legalizes("_np_roll")
def legalize_roll(builder: MxnetLegalizer) -> Results:
    """Elements moved along axes, those at the end to the front."""
    x = builder.input()
    shifts, axes = builder.sizes("shift"), builder.sizes("axis")
    shifts = shifts * len(axes) if len(shifts) == 1 and axes else shifts
    return builder.torch("roll.default", self=x, shifts=shifts, dims=axes)


def _in_blocks(builder: MxnetLegalizer, target: str) -> SSAValue:
    """Blocks of channels as places, or the other way round."""
    return builder.onnx(target, builder.input(), blocksize=builder.integer("block_size"))


# Parts


def _bounds(builder: MxnetLegalizer, x: SSAValue) -> tuple[list[int], list[list[Expr]]]:
    """The axes of a slice, and its starts, ends and steps."""
    begin, end = (cast("list[int | None]", builder.get(name) or []) for name in ("begin", "end"))
    steps = cast("list[int | None]", builder.get("step") or [None] * len(begin))
    if not len(begin) == len(end) == len(steps) <= rank_of(x):
        builder.refuse(f"{len(begin)} begins, {len(end)} ends", f"up to {rank_of(x)} of each")
    most = (1 << 63) - 1
    found: list[list[Expr]] = [[], [], []]
    for first, last, step in zip(begin, end, steps, strict=True):
        step = 1 if step is None else step
        if step == 0:
            builder.refuse("a step of 0", "another number")
        whole = (0, most) if step > 0 else (-1, -most)
        numbers = (whole[0] if first is None else first, whole[1] if last is None else last, step)
        for listed, number in zip(found, numbers, strict=True):
            listed.append(Expr.const(number))
    return list(range(len(begin))), found


def _sliced(builder: MxnetLegalizer) -> SSAValue:
    """As numpy slices the first axes."""
    x = builder.input()
    axes, (starts, ends, steps) = _bounds(builder, x)
    return sliced(builder, x, axes, starts, ends, steps)


def _sliced_along(builder: MxnetLegalizer) -> SSAValue:
    """As numpy slices one axis."""
    x = builder.input()
    bounds = builder.integer("begin"), builder.integer("end", (1 << 63) - 1), 1
    return sliced(builder, x, [builder.along(x)], *([Expr.const(n)] for n in bounds))


@legalizes("slice_like")
def legalize_slice_like(builder: MxnetLegalizer) -> Results:
    """As many elements from the front as another tensor has."""
    x, like = builder.input(), builder.input("shape_like")
    rank = rank_of(x)
    axes = builder.axes(builder.sizes("axes"), rank) or list(range(rank))
    if any(axis >= rank_of(like) for axis in axes):
        builder.refuse(f"axes {axes}", f"those of {like.type}")
    sizes = [dims_of(like)[k] if k in axes else dim for k, dim in enumerate(dims_of(x))]
    return builder.slice(x, [0] * rank, sizes)


@legalizes("Crop")
def legalize_crop(builder: MxnetLegalizer) -> Results:
    """A part of an image, of the size of another one or of a given size."""
    x, *others = builder.inputs("data")
    dims = dims_of(x)
    size = list(dims_of(others[0])[2:]) if others else exprs(builder.sizes("h_w"))
    offset: list[Expr] = list(exprs(builder.sizes("offset") or [0, 0]))
    if builder.flag("center_crop"):
        offset = [(dim - n) // 2 for dim, n in zip(dims[2:], size, strict=True)]
    return builder.slice(x, [0, 0, *offset], [*dims[:2], *size])


@legalizes("SliceChannel")
def legalize_slice_channel(builder: MxnetLegalizer) -> Results:
    """Parts of one size."""
    x = builder.input()
    axis = builder.along(x)
    sizes = _equal(builder, dims_of(x)[axis], builder.integer("num_outputs"))
    return [_part(builder, part, axis) for part in builder.split(x, axis, sizes)]


def _equal(builder: MxnetLegalizer, dim: Expr, count: int) -> list[Expr]:
    if not 1 <= count <= _MOST_PARTS:
        builder.refuse(f"{count} parts", f"1 to {_MOST_PARTS}")
    return [dim // count] * count


def _part(builder: MxnetLegalizer, part: SSAValue, axis: int) -> SSAValue:
    return builder.squeeze(part, [axis]) if builder.flag("squeeze_axis") else part


@legalizes("_split_v2", "_npi_hsplit", "_npi_dsplit")
def legalize_split(builder: MxnetLegalizer) -> Results:
    """Parts of one size, or between indices."""
    x = builder.input()
    rank = rank_of(x)
    if builder.name == "_split_v2":
        axis = builder.along(x)
    else:
        axis = 2 if builder.name == "_npi_dsplit" else min(1, rank - 1)
    dim = dims_of(x)[axis]
    if count := builder.integer("sections"):
        sizes = _equal(builder, dim, count)
    else:
        places = [Expr.const(place) for place in builder.sizes("indices")]
        places = places if places and places[0] == 0 else [Expr.const(0), *places]
        sizes = [b - a for a, b in zip(places, [*places[1:], dim], strict=True)]
    return [_part(builder, part, axis) for part in builder.split(x, axis, sizes)]


@legalizes("_slice_assign", "_slice_assign_scalar")
def legalize_slice_assign(builder: MxnetLegalizer) -> Results:
    """A part of a tensor replaced."""
    is_scalar = builder.name.endswith("scalar")
    x = builder.input("data" if is_scalar else "lhs")
    axes, columns = _bounds(builder, x)
    bounds: list[Bounds | None] = [None] * rank_of(x)
    for axis, *given in zip(axes, *columns, strict=True):
        bounds[axis] = (given[0], given[1], given[2])
    places = places_of(builder, x, bounds)
    value = builder.scalar(builder.number("scalar"), x) if is_scalar else builder.input("rhs")
    value = builder.broadcast(builder.cast(value, x), [place.dims[0] for place in places])
    return written(builder, x, places, value)


# Concatenation


@legalizes("_npi_concatenate")
def legalize_numpy_concat(builder: MxnetLegalizer) -> Results:
    """Joined along an axis; without one, as vectors."""
    values = builder.inputs("data")
    if builder.get("axis") is None:
        values = [builder.reshape(value, [product(dims_of(value))]) for value in values]
        return concat(builder, values, 0)
    return concat(builder, values, builder.along(values[0]))


# Repetition


@legalizes("broadcast_axis", "broadcast_to", "_npi_broadcast_to", "broadcast_like")
def legalize_broadcast(builder: MxnetLegalizer) -> Results:
    """Dimensions of one repeated."""
    x = builder.input()
    dims = list(dims_of(x))
    match builder.name:
        case "broadcast_axis":
            axes = builder.axes(builder.sizes("axis"), len(dims))
            sizes = builder.sizes("size")
            if len(axes) != len(sizes):
                builder.refuse(f"{len(sizes)} sizes", f"{len(axes)}")
            for axis, size in zip(axes, sizes, strict=True):
                dims[axis] = Expr.const(size)
        case "broadcast_like":
            like = builder.input("rhs")
            left, right = builder.sizes("lhs_axes"), builder.sizes("rhs_axes")
            if len(left) != len(right):
                builder.refuse(f"{len(left)} axes for {len(right)}", "as many")
            if not left:
                dims = list(dims_of(like))
            for axis, other in zip(left, right, strict=True):
                size = dims_of(like)[builder.axis(other, rank_of(like))]
                dims[builder.axis(axis, len(dims))] = size
        case "broadcast_to":
            sizes = builder.sizes("shape")
            if len(sizes) != len(dims):
                builder.refuse(f"'shape' {sizes}", f"{len(dims)} sizes")
            dims = [Expr.const(n) if n else dim for n, dim in zip(sizes, dims, strict=True)]
        case _:
            sizes = builder.sizes("shape")
            own = [Expr.const(1)] * (len(sizes) - len(dims)) + dims
            dims = [
                dim if n in (-1, -2) else Expr.const(n) for n, dim in zip(sizes, own, strict=True)
            ]
    return builder.broadcast(x, dims)


# Padding


def _padded_by_numbers(builder: MxnetLegalizer) -> SSAValue:
    """With a number, the edge, or what lies opposite of it."""
    return _padded(builder, builder.input(), exprs(builder.sizes("pad_width")))


@legalizes("_npi_pad")
def legalize_numpy_pad(builder: MxnetLegalizer) -> Results:
    """As numpy pads."""
    x = builder.input()
    pairs = cast("list[list[int]]", builder.get("pad_width"))
    pairs = pairs * rank_of(x) if len(pairs) == 1 else pairs
    if any(len(pair) != 2 for pair in pairs):
        builder.refuse(f"'pad_width' {pairs}", "pairs")
    return [_padded(builder, x, exprs([n for pair in pairs for n in pair]))]


def _padded(builder: MxnetLegalizer, x: SSAValue, amounts: Sequence[Expr]) -> SSAValue:
    mode = builder.choice("mode", "constant", "edge", "reflect")
    if builder.has("reflect_type") and builder.text("reflect_type") != "even":
        builder.refuse(f"the reflection {builder.text('reflect_type')}", "even")
    value = builder.scalar(builder.number("constant_value"), x) if mode == "constant" else None
    return pad(builder, x, amounts[::2], amounts[1::2], value, mode)


# Diagonals


@legalizes("diag", "_np_diag", "_np_diagonal", "_np_diagflat", "_np_trace")
def legalize_diagonal(builder: MxnetLegalizer) -> Results:
    """A diagonal, the matrix with a vector as its diagonal, or the sum of a diagonal."""
    x = builder.input()
    if builder.name == "_np_diagflat":
        x = builder.reshape(x, [product(dims_of(x))])
    offset = builder.integer("offset" if builder.has("offset") else "k")
    if rank_of(x) == 1:
        return builder.torch("diag_embed.default", self=x, offset=offset)
    given: dict[str, Any] = {"dim1": 0, "dim2": 1}
    if builder.has("axis1"):
        given = {"dim1": builder.integer("axis1"), "dim2": builder.integer("axis2")}
    found = builder.torch("diagonal.default", self=x, offset=offset, **given)
    if builder.name == "_np_trace":
        return builder.reduce("sum", found, [rank_of(found) - 1])
    return found


@legalizes("im2col", "col2im")
def legalize_columns(builder: MxnetLegalizer) -> Results:
    """Windows as columns, or the sum of columns where they lie in the image."""
    rank = len(builder.sizes("kernel"))
    given: dict[str, Any] = {
        "self": builder.input(),
        "kernel_size": builder.sizes("kernel"),
        "dilation": builder.positive("dilate", rank),
        "padding": builder.spatial("pad", rank, 0),
        "stride": builder.positive("stride", rank),
    }
    if builder.name == "col2im":
        given["output_size"] = builder.sizes("output_size")
    return builder.torch(f"{builder.name}.default", **given)


@legalizes("_image_to_tensor", "_image_normalize", "_image_crop")
def legalize_image(builder: MxnetLegalizer) -> Results:
    """What prepares images: [H, W, C] or, to be normalized, [C, H, W], with a batch or without."""
    x = builder.value()
    rank = len(x.dims)
    if rank not in (3, 4):
        builder.refuse(f"an image of {rank} dimensions", "3 or 4")
    rows = rank - 3
    if builder.name == "_image_to_tensor":
        return x.transpose([*range(rows), rank - 1, rows, rows + 1]).cast(f32) / 255.0
    if builder.name == "_image_normalize":
        mean, deviation = (_per_channel(builder, name, x.value) for name in ("mean", "std"))
        return (x - mean) / deviation
    starts: list[ExprLike] = [*[0] * rows, builder.integer("y"), builder.integer("x"), 0]
    sizes = (builder.integer("height"), builder.integer("width"))
    return builder.slice(x.value, starts, [*x.dims[:rows], *sizes, x.dims[-1]])


def _per_channel(builder: MxnetLegalizer, name: str, x: SSAValue) -> TensorValue:
    """Numbers for the channels of [C, H, W]; one stands for all."""
    numbers = builder.get(name)
    count = dims_of(x)[-3].value
    if len(numbers) not in (1, count):
        numbers = numbers[:count]
    array = builder.cast(builder.constant_of(numbers, "float64"), element_type(x))
    return TensorValue.of(builder, array).reshape([len(numbers), 1, 1])


@legalizes("fill_element_0index")
def legalize_fill_element(builder: MxnetLegalizer) -> Results:
    """An element of each row replaced."""
    x, value, place = (builder.input(name) for name in ("lhs", "mhs", "rhs"))
    rows = dims_of(x)[0]
    index = builder.reshape(builder.cast(place, i64), [rows, 1])
    return builder.add(ScatterElementsOp(x, index, builder.reshape(value, [rows, 1]), 1))


legalizes.rows(
    {
        "Flatten": _flattened,
        "Pad": _padded_by_numbers,
        "depth_to_space": lambda b: _in_blocks(b, "DepthToSpace"),
        "shape_array": lambda b: b.dims(dims_of(b.input())),
        "size_array": lambda b: b.dims([product(dims_of(b.input()))]),
        "slice": _sliced,
        "slice_axis": _sliced_along,
        "space_to_depth": lambda b: _in_blocks(b, "SpaceToDepth"),
    }
)
