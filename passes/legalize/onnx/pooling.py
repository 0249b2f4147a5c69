"""Pools over windows and over all spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import AbsOp, PowOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_window
from lowerdeck.passes.legalize.pooling import max_places, pool
from lowerdeck.passes.legalize.reduction import mean
from lowerdeck.passes.legalize.windows import Window, round_up


def _window(op: OnnxOp, lower: OnnxLegalizer, dims: Sequence[Expr]) -> Window:
    """The window of a pool, rounded up if the node says so."""
    schema = op.schema.attributes
    kernel = [Expr.const(size) for size in lower.attrs.ints("kernel_shape")]
    window = read_window(lower, dims[2:], kernel, has_dilations="dilations" in schema)
    if "ceil_mode" not in schema or not lower.attrs.flag("ceil_mode"):
        return window
    # SAME has as many windows as rounding up gives already.
    is_same = lower.attrs.string("auto_pad").startswith("SAME")
    return window if is_same else round_up(window, dims[2:])


@legalizes("MaxPool")
def legalize_max_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The largest element of each window, and its place in the flattened input."""
    x = lower.operand("X")
    window = _window(op, lower, dims_of(x))
    lower.attrs.ignore("storage_order")
    result = pool(lower, "max", x, window)
    if not lower.wants(1):
        return [result]
    return [result, max_places(lower, x, _places(lower, dims_of(x)), window, dims_of(result))]


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
    window = _window(op, lower, dims_of(x))
    count_pads = op.since_version >= 7 and lower.attrs.flag("count_include_pad")
    return [pool(lower, "average", x, window, count_pads=count_pads)]


@legalizes("LpPool", since=2)
def legalize_lp_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The p-norm of each window."""
    x = lower.operand("X")
    window = _window(op, lower, dims_of(x))
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
