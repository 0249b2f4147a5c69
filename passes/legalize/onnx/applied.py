"""Operators of ONNX applied to values of `core`, for frameworks that have the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    NoneType,
    StringAttr,
    UnrankedTensorType,
)
from xdsl.dialects.builtin import f32 as builtin_f32
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import NoneOp, op_class
from lowerdeck.passes.legalize.common.linear import matmul
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.onnx.framework import OnnxWalk
from lowerdeck.passes.legalize.onnx.handlers import handler_of
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.ranks import require_ranks
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_OPSET = 22


def applied(
    builder: Legalizer,
    op_type: str,
    *operands: SSAValue | None,
    results: int = 1,
    **attributes: Any,
) -> list[SSAValue]:
    """
    What an operator without subgraphs gives for its inputs in order, of which None is left out.
    Attributes are plain.
    """
    cls = op_class("", op_type, _OPSET)
    assert cls is not None
    absent = NoneOp.create(result_types=[NoneType()])
    values = [absent.results[0] if operand is None else operand for operand in operands]
    op = cls.create(
        operands=values,
        result_types=[UnrankedTensorType(builtin_f32)] * results,
        properties={name: _attribute(value) for name, value in attributes.items()},
        location=builder.location,
    )
    for each in (absent, op):
        Rewriter.insert_op(each, builder.point)
    try:
        handler = handler_of(op)
        assert handler is not None
        walk = OnnxWalk(func.FuncOp("applied", ([], [])))
        walk.symbols = builder.symbols
        inner = OnnxLegalizer(op, walk)
        inner.created = builder.created
        require_ranks(inner)
        found = list(handler(op, inner))
        inner.attrs.require_read()
    finally:
        for each in (op, absent):
            each.detach()
            each.erase()
    return cast("list[SSAValue]", found)


def roi_align(
    builder: Legalizer,
    x: SSAValue,
    boxes: SSAValue,
    images: SSAValue,
    *,
    size: Sequence[int],
    samples: int,
    scale: float,
    is_aligned: bool,
) -> SSAValue:
    """
    The mean of samples of each of `size` (height, width) bins of regions of images [N, C, H, W],
    as many of each bin as it is large for `samples` below one. Corners lie on places unless they
    are aligned: then half a place before them.
    """
    (found,) = applied(
        builder,
        "RoiAlign",
        x,
        boxes,
        images,
        mode="avg",
        output_height=size[0],
        output_width=size[1],
        sampling_ratio=max(samples, 0),
        spatial_scale=scale,
        coordinate_transformation_mode="half_pixel" if is_aligned else "output_half_pixel",
    )
    return found


def deformable(
    builder: Legalizer,
    x: SSAValue,
    weight: SSAValue,
    offset: TensorValue,
    mask: TensorValue | None,
    numbers: Sequence[Sequence[int]],
    *,
    groups: int,
    parts: int,
    clamps: bool = False,
) -> TensorValue:
    """
    A convolution of images [N, C, H, W] whose taps are samples between pixels, moved by `offset`
    [N, parts * kernel * 2, ...] and weighted by `mask` (Dai et al., deformable convolutions).
    `numbers` are the strides, pads and dilations. Outside are zeros; samples that are less than one
    pixel outside are of both, or, if it `clamps`, zero before the image and its edge behind it.
    """
    batch, channels, *space = dims_of(x)
    kernel, out = dims_of(weight)[2:], offset.dims[2:]
    taps, many = product(kernel), batch * parts
    moved = offset.reshape([many, *kernel, 2, *out])
    places: list[TensorValue] = []
    for axis, (stride, pad, reach) in enumerate(zip(*numbers, strict=True)):
        place = moved.pick(3, axis)
        start = TensorValue.iota(builder, kernel[axis]).column(5, 1 + axis) * reach
        place = place + start.cast(place.element)
        start = TensorValue.iota(builder, out[axis]).column(5, 3 + axis) * stride - pad
        place = place + start.cast(place.element)
        size = TensorValue.dim(builder, space[axis]).cast(place.element)
        if clamps:
            inside = (place.ge(0) & place.lt(size)).reshape([many, 1, taps, *out])
            mask = inside.cast(place.element) if mask is None else inside.where(mask, 0)
            place = place.minimum(size - 1).maximum(0)
        places.insert(0, (place * 2 + 1) / size - 1.0)
    grid = stack(places, 5).reshape([many, taps * out[0], out[1], 2])
    images = builder.reshape(x, [many, channels // parts, *space])
    given: dict[str, Any] = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    (found,) = applied(builder, "GridSample", images, grid.value, **given)
    columns = TensorValue(builder, found).reshape([many, channels // parts, taps, *out])
    if mask is not None:
        columns = columns * mask.reshape([many, 1, taps, *out])
    rows = [channels // groups * taps, product(out)]
    columns = columns.reshape([batch, groups, *rows])
    filters = builder.reshape(weight, [1, groups, dims_of(weight)[0] // groups, rows[0]])
    y = builder.reshape(matmul(builder, filters, columns.value), [batch, dims_of(weight)[0], *out])
    return TensorValue(builder, y)


def _attribute(value: Any) -> Attribute:
    match value:
        case int():
            return IntegerAttr(int(value), 64)
        case float():
            return FloatAttr(value, builtin_f32)
        case str():
            return StringAttr(value)
        case _:
            items: Sequence[Any] = list(value)
            if items and isinstance(items[0], str):
                return ArrayAttr(map(StringAttr, items))
            element = builtin_f32 if any(isinstance(v, float) for v in items) else builtin_i64
            return cast(Attribute, DenseArrayBase.from_list(element, items))
