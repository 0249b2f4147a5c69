"""Pools over windows and over all spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import AbsOp, PowOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, is_float, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.reduction import mean
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.windows import read_window
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.windows import Window, round_up

MAX_TAPS = 1024
"""Indices are computed with a few ops for each element of the window, up to this many."""


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


def _pool(
    lower: OnnxLegalizer, kind: str, x: SSAValue, window: Window, *, count_pads: bool = False
) -> SSAValue:
    pool = PoolOp(
        kind,
        x,
        kernel=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads_begin=window.begin,
        pads_end=window.end,
        overhang=window.overhang,
        count_pads=count_pads,
    )
    return lower.add(pool)


@legalizes("MaxPool")
def legalize_max_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The largest element of each window, and its place in the flattened input."""
    x = lower.operand("X")
    window = _window(op, lower, dims_of(x))
    lower.attrs.ignore("storage_order")
    result = _pool(lower, "max", x, window)
    if not lower.wants(1):
        return [result]
    return [result, _max_indices(lower, x, window, dims_of(result))]


def _max_indices(
    lower: OnnxLegalizer, value: SSAValue, window: Window, dims: Sequence[Expr]
) -> SSAValue:
    """
    The places of the first largest elements: one comparison for each element of the window, each
    a strided slice of the padded input. Padding has index -1 and is replaced by any real element.
    """
    kernel = constants(window.kernel)
    if kernel is None or np.prod(kernel) > MAX_TAPS:
        lower.refuse(f"indices of windows of {list(map(str, window.kernel))}", "small windows")
    places = _places(lower, dims_of(value))
    element = element_type(value)
    lowest = -np.inf if is_float(element) else np.iinfo(numpy_dtype(element)).min
    x = _padded(lower, value, window, lower.scalar(lowest, value))
    index = _padded(lower, places, window, lower.scalar(-1, i64))
    best: Quantity | None = None
    where = Quantity(lower, index)
    for tap in cartesian(*map(range, kernel)):
        here = _tap(lower, x, window, dims, tap)
        place = _tap(lower, index, window, dims, tap)
        if best is None:
            best, where = here, place
            continue
        better = here.gt(best) | (where.lt(0) & place.ge(0))
        best, where = better.where(here, best), better.where(place, where)
    return where.value


def _places(lower: OnnxLegalizer, dims: Sequence[Expr]) -> SSAValue:
    """The place of each element in the flattened tensor, by rows or (spatially) by columns."""
    places = lower.add(IotaOp([product(dims)]))
    if lower.attrs.int("storage_order", default=0) == 0:
        return lower.reshape(places, dims)
    spatial = list(reversed(range(2, len(dims))))
    flipped = lower.reshape(places, [*dims[:2], *(dims[k] for k in spatial)])
    return lower.transpose(flipped, [0, 1, *spatial])


def _padded(lower: OnnxLegalizer, x: SSAValue, window: Window, value: SSAValue) -> SSAValue:
    if window.is_whole:
        return x
    return lower.add(PadOp(x, [0, 0, *window.begin], [0, 0, *window.end], value))


def _tap(
    lower: OnnxLegalizer, x: SSAValue, window: Window, dims: Sequence[Expr], tap: Sequence[int]
) -> Quantity:
    """One element of every window."""
    starts = [0, 0, *(t * d for t, d in zip(tap, window.dilations, strict=True))]
    return Quantity(lower, lower.slice(x, starts, dims, [1, 1, *window.strides]))


@legalizes("AveragePool")
def legalize_average_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The mean of each window, with or without the padding in it."""
    x = lower.operand("X")
    window = _window(op, lower, dims_of(x))
    count_pads = op.since_version >= 7 and lower.attrs.flag("count_include_pad")
    return [_pool(lower, "average", x, window, count_pads=count_pads)]


@legalizes("LpPool", since=2)
def legalize_lp_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The p-norm of each window."""
    x = lower.operand("X")
    window = _window(op, lower, dims_of(x))
    p = lower.attrs.int("p")
    return [_root(lower, _pool(lower, "sum", _power(lower, x, p), window), p)]


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
    """The largest element over the spatial dimensions."""
    x = lower.operand("X")
    return [lower.reduce("max", x, _spatial(x), keep_dims=True)]


@legalizes("GlobalLpPool")
def legalize_global_lp_pool(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The p-norm over the spatial dimensions."""
    x = lower.operand("X")
    p: Any = lower.attrs.float("p") if op.since_version == 1 else lower.attrs.int("p")
    total = lower.reduce("sum", _power(lower, x, p), _spatial(x), keep_dims=True)
    return [_root(lower, total, p)]
