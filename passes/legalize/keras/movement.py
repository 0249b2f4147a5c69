"""What moves elements: shapes, order, padding, cropping, and repetition."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.common.movement import enlarged
from lowerdeck.passes.legalize.common.reshaping import completed
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


@legalizes("Flatten")
def legalize_flatten(builder: KerasLegalizer) -> Results:
    """All dimensions after the batch as one, with the channels last."""
    x = builder.input()
    if rank_of(x) > 2 and builder.is_first():
        x = builder.channels_last(x)
    dims = dims_of(x)
    builder.ignore("data_format")
    return [builder.reshape(x, [dims[0], product(dims[1:])])]


def reshaped(builder: KerasLegalizer, x: SSAValue, shape: list[int], kept: int) -> SSAValue:
    """Other dimensions after the first `kept`; one of them may be -1."""
    dims = dims_of(x)
    sizes = [None if size == -1 else Expr.const(size) for size in shape]
    return builder.reshape(x, [*dims[:kept], *completed(builder, dims[kept:], sizes)])


@legalizes("Reshape")
def legalize_reshape(builder: KerasLegalizer) -> Results:
    """A layer keeps the batch, an operation does not."""
    x = builder.input()
    shape = builder.config("target_shape")
    if shape is not None:
        return [reshaped(builder, x, [-1 if s is None else int(s) for s in shape], 1)]
    shape = builder.config("newshape", builder.argument(1, "newshape"))
    sizes = cast("list[Any]", shape) if isinstance(shape, list) else [shape]
    if any(not isinstance(size, int | None) for size in sizes):
        builder.refuse("a shape that is computed", "numbers")
    return [reshaped(builder, x, [-1 if size is None else size for size in sizes], 0)]


@legalizes("Permute")
def legalize_permute(builder: KerasLegalizer) -> Results:
    """The dimensions after the batch in another order, counted from 1."""
    return [builder.transpose(builder.input(), [0, *map(int, builder.config("dims"))])]


@legalizes("RepeatVector")
def legalize_repeat_vector(builder: KerasLegalizer) -> Results:
    """[N, C] as [N, n, C]."""
    x, count = builder.x(), builder.integer("n")
    batch, size = x.dims
    return [x.reshape([batch, 1, size]).broadcast([batch, count, size]).value]


def _spatial(builder: KerasLegalizer, count: int) -> int:
    """The first spatial axis."""
    builder.require_rank(builder.input(), count + 2, "the input")
    return 2 if builder.is_first() else 1


@legalizes("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def legalize_zero_padding(builder: KerasLegalizer) -> Results:
    """Zeros around the image."""
    count = int(builder.op_type[-2])
    x, first = builder.input(), _spatial(builder, count)
    begin: list[ExprLike] = [0] * rank_of(x)
    end: list[ExprLike] = [0] * rank_of(x)
    for k, (before, after) in enumerate(builder.sides("padding", count, in_pairs=count == 1)):
        begin[first + k], end[first + k] = before, after
    return [builder.add(PadOp(x, begin, end, builder.scalar(0, x)))]


@legalizes("Cropping1D", "Cropping2D", "Cropping3D")
def legalize_cropping(builder: KerasLegalizer) -> Results:
    """The image without its borders."""
    count = int(builder.op_type[-2])
    x, first = builder.input(), _spatial(builder, count)
    for k, (before, after) in enumerate(builder.sides("cropping", count, in_pairs=count == 1)):
        size = dims_of(x)[first + k] - before - after
        if size.value is not None and size.value <= 0:
            builder.refuse(f"{dims_of(x)[first + k]} elements, of which none is left", "more")
        x = builder.slice_axis(x, first + k, before, size)
    return [x]


@legalizes("UpSampling1D", "UpSampling2D", "UpSampling3D")
def legalize_up_sampling(builder: KerasLegalizer) -> Results:
    """Each element many times, or elements between them."""
    count = int(builder.op_type[-2])
    first = _spatial(builder, count)
    sizes = builder.numbers("size", count)
    x = builder.x()
    kind = builder.config("interpolation", "nearest")
    for k, size in enumerate(sizes):
        if kind == "nearest":
            x = enlarged(x, first + k, [size])
        elif kind == "bilinear":
            x = _between(x, first + k, size)
        else:
            builder.refuse(f"the interpolation '{kind}'", "nearest or bilinear")
    return [x.value]


def _between(x: TensorValue, axis: int, times: int) -> TensorValue:
    """Each element `times` times, mixed with its neighbors by distance (half-pixel centers)."""
    if times == 1:
        return x
    builder, size = x.builder, x.dims[axis]
    first = TensorValue(builder, builder.slice_axis(x.value, axis, 0, 1))
    last = TensorValue(builder, builder.slice_axis(x.value, axis, size - 1, 1))
    padded = concat([first, x, last], axis)
    parts: list[TensorValue] = []
    for k in range(times):
        place = (k + 0.5) / times - 0.5  # from the element, in elements
        start = 1 if place >= 0 else 0
        share = place if place >= 0 else place + 1
        low = TensorValue(builder, builder.slice_axis(padded.value, axis, start, size))
        high = TensorValue(builder, builder.slice_axis(padded.value, axis, start + 1, size))
        parts.append(low + (high - low) * share)
    dims = list(x.dims)
    wide = [part.reshape([*dims[: axis + 1], 1, *dims[axis + 1 :]]) for part in parts]
    joined = concat(wide, axis + 1)
    return joined.reshape([*dims[:axis], size * times, *dims[axis + 1 :]])


@legalizes("FoldTime")
def legalize_fold_time(builder: KerasLegalizer) -> Results:
    """[N, T, ...] as [N * T, ...]."""
    x = builder.input()
    dims = dims_of(x)
    return [builder.reshape(x, [dims[0] * dims[1], *dims[2:]])]


@legalizes("UnfoldTime")
def legalize_unfold_time(builder: KerasLegalizer) -> Results:
    """[N * T, ...] as [N, T, ...], as the second argument has them."""
    x, like = builder.input(), builder.input(1)
    batch, steps = dims_of(like)[:2]
    return [builder.reshape(x, [batch, steps, *dims_of(x)[1:]])]


@legalizes("Masking")
def legalize_masking(builder: KerasLegalizer) -> Results:
    """Steps in which everything has one value are zero."""
    x = builder.x()
    value = builder.real("mask_value", 0.0)
    counts = x.ne(value).reduce("max", [len(x.dims) - 1], True)
    return [(x * counts.cast(x.element)).value]
