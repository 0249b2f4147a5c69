"""Reductions, scans, arg-reductions, sorting and segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import (
    Array,
    dtype_of,
    ints,
    kernel,
    positive_axis,
    require,
    scalar,
    where,
    widened,
)
from lowerdeck.dialects.tf1.ops import Tf1Op


def _axes(value: Array, rank: int) -> tuple[int, ...]:
    axes = tuple(positive_axis(axis, rank) for axis in ints(value))
    require(len(set(axes)) == len(axes), f"the axes {list(axes)} repeat")
    return axes


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least value of a type."""
    return dtype.type(-np.inf) if dtype.kind not in "iub" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The greatest value of a type."""
    return dtype.type(np.inf) if dtype.kind not in "iub" else np.iinfo(dtype).max


def _mean(x: Array, **how: Any) -> Array:
    """Of integers, cut off towards zero; those of less than 32 bits are summed in 64."""
    if x.dtype.kind not in "iu":
        return _sum(x, **how) / x.dtype.type(_fold(x, **how))
    total = np.asarray(np.sum(x, dtype=x.dtype if x.dtype.itemsize >= 4 else np.int64, **how))
    return np.trunc(total / max(1, _fold(x, **how)))


def _fold(x: Array, *, axis: tuple[int, ...], **_: Any) -> int:
    """How many elements become one."""
    return math.prod(x.shape[k] for k in axis)


def _maximum(x: Array, **how: Any) -> Array:
    return np.max(x, initial=lowest(x.dtype), **how)


def _minimum(x: Array, **how: Any) -> Array:
    return np.min(x, initial=highest(x.dtype), **how)


def _sum(x: Array, **how: Any) -> Array:
    return np.sum(x, dtype=x.dtype, **how)


def _product(x: Array, **how: Any) -> Array:
    return np.prod(x, dtype=x.dtype, **how)


def _length(x: Array, **how: Any) -> Array:
    return np.sqrt(_sum(x * x, **how))


_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "Sum": _sum,
    "Mean": _mean,
    "Prod": _product,
    "Max": _maximum,
    "Min": _minimum,
    "All": np.all,
    "Any": np.any,
    "EuclideanNorm": _length,
}


@kernel(*_REDUCTIONS)
def run_reduction(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Over the given axes, which may be none; sums of narrow floats are made in wider ones."""
    x = args[0]
    function = _REDUCTIONS[op.op_type]
    axes = _axes(args[1], x.ndim)
    result = function(widened(x), axis=axes, keepdims=op.attr("keep_dims"))
    return np.asarray(result).astype(x.dtype)


@kernel("ArgMax", "ArgMin")
def run_arg(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The first index of the extreme value; NaN is never chosen before a number."""
    is_max, x = op.op_type == "ArgMax", args[0]
    if x.dtype.kind not in "iub":
        x = where(np.isnan(x), lowest(x.dtype) if is_max else highest(x.dtype), x)
    find: Any = np.argmax if is_max else np.argmin
    axis = positive_axis(scalar(args[1]), x.ndim)
    return find(x, axis=axis).astype(dtype_of(op, "output_type"))


@kernel("Cumsum", "Cumprod")
def run_cumulative(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Along an axis, from its end if `reverse`, without the element itself if `exclusive`."""
    x = np.moveaxis(widened(args[0]), positive_axis(scalar(args[1]), args[0].ndim), 0)
    is_sum = op.op_type == "Cumsum"
    if op.attr("reverse"):
        x = x[::-1]
    total = np.cumsum(x, axis=0, dtype=x.dtype) if is_sum else np.cumprod(x, axis=0, dtype=x.dtype)
    if op.attr("exclusive"):
        neutral = np.full((min(1, len(x)), *x.shape[1:]), 0 if is_sum else 1, x.dtype)
        total = np.concatenate([neutral, total[:-1]])
    if op.attr("reverse"):
        total = total[::-1]
    return np.moveaxis(total, 0, scalar(args[1])).astype(args[0].dtype)


@kernel("Softmax", "LogSoftmax")
def run_softmax(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Over the last dimension."""
    x = widened(args[0])
    x = x - np.max(x, axis=-1, keepdims=True, initial=lowest(x.dtype))
    total = np.sum(np.exp(x), axis=-1, keepdims=True)
    result = np.exp(x) / total if op.op_type == "Softmax" else x - np.log(total)
    return result.astype(args[0].dtype)


@kernel("L2Loss")
def run_l2_loss(_: Tf1Op, args: Sequence[Any]) -> Array:
    """sum(t ** 2) / 2"""
    return (np.sum(widened(args[0]) ** 2) / 2).astype(args[0].dtype)


@kernel("TopK", "TopKV2")
def run_top_k(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """The greatest first; of equal ones the lower index."""
    k = op.attr("k") if op.op_type == "TopK" else scalar(args[1])
    x = args[0]
    require(0 <= k <= x.shape[-1], f"k is {k}, expected 0 to {x.shape[-1]}")
    # A stable sort of the reversed row, read backwards, keeps the lower index first.
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = (x.shape[-1] - 1 - order)[..., :k]
    dtype = np.dtype(np.int32) if op.op_type == "TopK" else dtype_of(op, "index_type")
    return np.take_along_axis(x, order, -1), order.astype(dtype)


@kernel("Unique")
def run_unique(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """In the order of first occurrence."""
    values, first, inverse = np.unique(args[0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    return values[order], rank[inverse.reshape(-1)].astype(dtype_of(op, "out_idx"))


_SEGMENTS: dict[str, tuple[Any, Callable[[np.dtype[Any]], Any]]] = {
    "Sum": (np.add, lambda _: 0),
    "Prod": (np.multiply, lambda _: 1),
    "Max": (np.maximum, lowest),
    "Min": (np.minimum, highest),
}


@kernel(*(f"UnsortedSegment{name}" for name in _SEGMENTS))
def run_unsorted_segment(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Negative ids are left out; segments without elements have the neutral value."""
    data, ids, count = args[0], args[1], scalar(args[2])
    function, neutral = _SEGMENTS[op.op_type.removeprefix("UnsortedSegment")]
    require(data.shape[: ids.ndim] == ids.shape, "the ids do not fit the data")
    require(np.all(ids < count), f"an id is not below {count}")
    rows = data.reshape(-1, *data.shape[ids.ndim :])
    initial = neutral(data.dtype)
    if op.op_type in ("UnsortedSegmentMax", "UnsortedSegmentMin") and data.dtype.kind == "f":
        limits = np.finfo(data.dtype)
        initial = limits.min if op.op_type == "UnsortedSegmentMax" else limits.max
    result = np.full((count, *rows.shape[1:]), initial, data.dtype)
    kept = ids.reshape(-1) >= 0
    function.at(result, ids.reshape(-1)[kept], rows[kept])
    return result


@kernel(*(f"Segment{name}" for name in _SEGMENTS), "SegmentMean")
def run_segment(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Ids ascend; segments without elements are zero, their product is one."""
    data, ids = args
    require(np.all(np.diff(ids) >= 0) and np.all(ids >= 0), "the ids do not ascend from 0")
    kind = op.op_type.removeprefix("Segment")
    function, neutral = _SEGMENTS["Sum" if kind == "Mean" else kind]
    count = int(ids[-1]) + 1 if len(ids) else 0
    result = np.full((count, *data.shape[1:]), neutral(data.dtype), data.dtype)
    function.at(result, ids, data)
    sizes = np.bincount(ids, minlength=count).reshape(-1, *[1] * (data.ndim - 1))
    if kind == "Mean":
        result = (result / np.maximum(sizes, 1)).astype(data.dtype)
    empty = data.dtype.type(1 if kind == "Prod" else 0)
    return where(sizes == 0, empty, result).astype(data.dtype)
