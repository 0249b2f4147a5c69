"""Pools over windows and over all spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import AbsOp, PowOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_window
from lowerdeck.passes.legalize.pooling import largest, padded, pool, tap
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.reduction import mean
from lowerdeck.passes.legalize.windows import Window, round_up, surplus


def _window(op: OnnxOp, lower: OnnxLegalizer, dims: Sequence[Expr]) -> tuple[Window, list[Expr]]:
    """
    The window of a pool, rounded up if the node says so, over what is left of the dimensions; and
    where that begins.
    """
    schema = op.schema.attributes
    kernel = [Expr.const(size) for size in lower.attrs.ints("kernel_shape")]
    window = read_window(lower, dims[2:], kernel, has_dilations="dilations" in schema)
    starts = [Expr.const(0)] * len(dims)
    if (auto_pad := lower.attrs.string("auto_pad")).startswith("SAME"):
        # It has as many windows as rounding up gives already.
        starts[2:] = surplus(window, dims[2:], upper=auto_pad == "SAME_UPPER")
    elif "ceil_mode" in schema and lower.attrs.flag("ceil_mode"):
        window = round_up(window, dims[2:])
    return window, starts


def _from(lower: OnnxLegalizer, x: SSAValue, starts: Sequence[Expr]) -> SSAValue:
    """The elements from `starts` on."""
    sizes = [dim - start for dim, start in zip(dims_of(x), starts, strict=True)]
    return lower.slice(x, starts, sizes)


@legalizes("MaxPool")
def legalize_max_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    The largest element of each window, and its place in the flattened input.

    NaN is passed over, but for one that comes first in a window with dilations or places: there
    onnxruntime and onnx's reference both keep it.
    """
    whole = lower.operand("X")
    window, starts = _window(op, lower, dims_of(whole))
    lower.attrs.ignore("storage_order")
    x = _from(lower, whole, starts)
    result = pool(lower, "max", x, window)
    if lower.wants(1):
        places = _from(lower, _places(lower, dims_of(whole)), starts)
        dims = dims_of(result)
        return list(largest(lower, x, places, window, dims, keeps_first=True))
    if max(window.dilations, default=1) > 1 and is_float(element_type(x)):
        result = _with_first_nan(lower, x, window, result)
    return [result]


def _with_first_nan(
    lower: OnnxLegalizer, x: SSAValue, window: Window, result: SSAValue
) -> SSAValue:
    """NaN in place of the result where it is the first element of the window."""
    dims = dims_of(result)
    if all(pad == 0 for pad in window.begin):
        inside = padded(lower, x, window, lower.scalar(0, x))
        first = tap(lower, inside, window, dims, [0] * len(window.strides))
        return first.ne(first).where(first, Quantity(lower, result)).value
    places = lower.broadcast(lower.scalar(0, i64), dims_of(x))
    return largest(lower, x, places, window, dims, keeps_first=True)[0]


def _places(lower: OnnxLegalizer, dims: Sequence[Expr]) -> SSAValue:
    """The place of each element in the flattened tensor, by rows or (spatially) by columns."""
    places = lower.add(IotaOp([product(dims)]))
    if lower.attrs.int("storage_order", default=0) == 0:
        return lower.reshape(places, dims)
    spatial = list(reversed(range(2, len(dims))))
    flipped = lower.reshape(places, [*dims[:2], *(dims[k] for k in spatial)])
    return lower.transpose(flipped, [0, 1, *spatial])


@legalizes("AveragePool")
def legalize_average_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The mean of each window, with or without the padding in it."""
    x = lower.operand("X")
    window, starts = _window(op, lower, dims_of(x))
    x = _from(lower, x, starts)
    count_pads = op.since_version >= 7 and lower.attrs.flag("count_include_pad")
    return [pool(lower, "average", x, window, count_pads=count_pads)]


@legalizes("LpPool", since=2)
def legalize_lp_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The p-norm of each window."""
    x = lower.operand("X")
    window, starts = _window(op, lower, dims_of(x))
    x = _from(lower, x, starts)
    p = lower.attrs.int("p")
    return [_root(lower, pool(lower, "sum", _power(lower, x, p), window), p)]


def _power(lower: OnnxLegalizer, x: SSAValue, p: float) -> SSAValue:
    """|x| to the power p"""
    x = lower.add(AbsOp(x))
    return x if p == 1 else lower.add(PowOp(x, lower.scalar(p, x)))


def _root(lower: OnnxLegalizer, x: SSAValue, p: float) -> SSAValue:
    return x if p == 1 else lower.add(PowOp(x, lower.scalar(1 / p, x)))


# All spatial dimensions


def _spatial(value: SSAValue) -> list[int]:
    return list(range(2, rank_of(value)))


@legalizes("GlobalAveragePool")
def legalize_global_average_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The mean over the spatial dimensions."""
    x = lower.operand("X")
    return [mean(lower, x, _spatial(x), keep_dims=True)]


@legalizes("GlobalMaxPool")
def legalize_global_max_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A max pool whose window is the image, as the specification has it: NaN is passed over."""
    x = lower.operand("X")
    if not (axes := _spatial(x)):
        return [x]
    count, zeros = len(axes), [Expr.const(0)] * len(axes)
    kernel = tuple(dims_of(x)[axis] for axis in axes)
    window = Window(kernel, [1] * count, [1] * count, zeros, zeros, zeros)
    return [pool(lower, "max", x, window)]


@legalizes("GlobalLpPool")
def legalize_global_lp_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The p-norm over the spatial dimensions."""
    x = lower.operand("X")
    p: Any = lower.attrs.float("p") if op.since_version == 1 else lower.attrs.int("p")
    total = lower.reduce("sum", _power(lower, x, p), _spatial(x), keep_dims=True)
    return [_root(lower, total, p)]
