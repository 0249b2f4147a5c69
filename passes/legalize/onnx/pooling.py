"""Pools over windows and over all spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import AbsOp, PowOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.pooling import largest, pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.windows import Window, round_up, surplus
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_window


def _window(op: OnnxOp, builder: OnnxLegalizer, dims: Sequence[Expr]) -> tuple[Window, list[Expr]]:
    """
    The window of a pool, rounded up if the node says so, over what is left of the dimensions; and
    where that begins.
    """
    schema = op.schema.attributes
    kernel = [Expr.const(size) for size in builder.attrs.ints("kernel_shape")]
    window = read_window(builder, dims[2:], kernel, has_dilations="dilations" in schema)
    starts = [Expr.const(0)] * len(dims)
    if (auto_pad := builder.attrs.string("auto_pad")).startswith("SAME"):
        # It has as many windows as rounding up gives already.
        starts[2:] = surplus(window, dims[2:], upper=auto_pad == "SAME_UPPER")
        builder.attrs.ignore("ceil_mode")
    elif "ceil_mode" in schema and builder.attrs.flag("ceil_mode"):
        window = round_up(window, dims[2:])
    return window, starts


def _from(builder: OnnxLegalizer, x: SSAValue, starts: Sequence[Expr]) -> SSAValue:
    """The elements from `starts` on."""
    sizes = [dim - start for dim, start in zip(dims_of(x), starts, strict=True)]
    return builder.slice(x, starts, sizes)


@legalizes("MaxPool")
def legalize_max_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The largest element of each window, and its place in the flattened input.

    NaN is passed over, but for one that comes first in a window with dilations or places: there
    onnxruntime and onnx's reference both keep it.
    """
    whole = builder.operand("X")
    window, starts = _window(op, builder, dims_of(whole))
    builder.attrs.ignore("storage_order")
    x = _from(builder, whole, starts)
    is_dilated = max(window.dilations, default=1) > 1
    keeps_first = is_dilated and is_float(element_type(x))
    result = pool(builder, "max", x, window, keeps_first=keeps_first)
    if builder.wants(1):
        places = _from(builder, _places(builder, dims_of(whole)), starts)
        dims = dims_of(result)
        return list(largest(builder, x, places, window, dims, keeps_first=True))
    return [result]


def _places(builder: OnnxLegalizer, dims: Sequence[Expr]) -> SSAValue:
    """The place of each element in the flattened tensor, by rows or (spatially) by columns."""
    places = builder.add(IotaOp([product(dims)]))
    if builder.attrs.int("storage_order", default=0) == 0:
        return builder.reshape(places, dims)
    spatial = list(reversed(range(2, len(dims))))
    flipped = builder.reshape(places, [*dims[:2], *(dims[k] for k in spatial)])
    return builder.transpose(flipped, [0, 1, *spatial])


@legalizes("AveragePool")
def legalize_average_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The mean of each window, with or without the padding in it."""
    x = builder.operand("X")
    window, starts = _window(op, builder, dims_of(x))
    x = _from(builder, x, starts)
    count_pads = op.since_version >= 7 and builder.attrs.flag("count_include_pad")
    return [pool(builder, "average", x, window, count_pads=count_pads)]


@legalizes("LpPool", since=2)
def legalize_lp_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The p-norm of each window."""
    x = builder.operand("X")
    window, starts = _window(op, builder, dims_of(x))
    x = _from(builder, x, starts)
    p = builder.attrs.int("p")
    return [_root(builder, pool(builder, "sum", _power(builder, x, p), window), p)]


def _power(builder: OnnxLegalizer, x: SSAValue, p: float) -> SSAValue:
    """|x| to the power p"""
    x = builder.add(AbsOp(x))
    return x if p == 1 else builder.add(PowOp(x, builder.scalar(p, x)))


def _root(builder: OnnxLegalizer, x: SSAValue, p: float) -> SSAValue:
    return x if p == 1 else builder.add(PowOp(x, builder.scalar(1 / p, x)))


# All spatial dimensions


def _spatial(value: SSAValue) -> list[int]:
    return list(range(2, rank_of(value)))


@legalizes("GlobalAveragePool")
def legalize_global_average_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The mean over the spatial dimensions."""
    x = builder.operand("X")
    return [mean(builder, x, _spatial(x), keep_dims=True)]


@legalizes("GlobalMaxPool")
def legalize_global_max_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A max pool whose window is the image, as the specification has it: NaN is passed over."""
    x = builder.operand("X")
    if not (axes := _spatial(x)):
        return [x]
    count, zeros = len(axes), [Expr.const(0)] * len(axes)
    kernel = tuple(dims_of(x)[axis] for axis in axes)
    window = Window(kernel, [1] * count, [1] * count, zeros, zeros, zeros)
    return [pool(builder, "max", x, window)]


@legalizes("GlobalLpPool")
def legalize_global_lp_pool(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The p-norm over the spatial dimensions."""
    x = builder.operand("X")
    p: Any = builder.attrs.float("p") if op.since_version == 1 else builder.attrs.int("p")
    total = builder.reduce("sum", _power(builder, x, p), _spatial(x), keep_dims=True)
    return [_root(builder, total, p)]
