"""The meaning of reductions, running sums and pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.core import reduce
from lowerdeck.dialects.core.enums import (
    CumulativeKind,
    ExtremumKind,
    PoolKind,
    ReduceKind,
)
from lowerdeck.dialects.interpret.core_elementwise import integer_quotient
from lowerdeck.dialects.interpret.core_linear import framed, positions
from lowerdeck.dialects.interpret.core_numbers import (
    FLOATS,
    NARROW,
    Array,
    Symbols,
    flag,
    ints,
    meaning_of,
    numbers,
    rounded,
    widened,
)
from lowerdeck.dialects.interpret.errors import InterpretError


def _lowest(dtype: np.dtype[Any]) -> Any:
    """The value that every other one exceeds."""
    if dtype == np.bool_:
        return False
    return -np.inf if dtype in FLOATS else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    """The value that exceeds every other one."""
    if dtype == np.bool_:
        return True
    return np.inf if dtype in FLOATS else np.iinfo(dtype).max


@meaning_of(reduce.ReduceOp)
def _reduce(op: reduce.ReduceOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    kind, axes, keep = op.kind.data, tuple(ints(op.axes)), flag(op.keep_dims)
    if not axes:
        return x
    wide = widened(x)
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        is_max = kind == ReduceKind.MAX
        combine = np.maximum if is_max else np.minimum
        initial = _lowest(x.dtype) if is_max else _highest(x.dtype)
        return rounded(combine.reduce(wide, axes, keepdims=keep, initial=initial), x.dtype)
    combine = np.add if kind == ReduceKind.SUM else np.multiply
    return rounded(combine.reduce(wide, axes, wide.dtype, keepdims=keep), x.dtype)


@meaning_of(reduce.ArgReduceOp)
def _arg_reduce(op: reduce.ArgReduceOp, args: Sequence[Array], symbols: Symbols) -> Any:
    (x,) = args
    axis, keep = op.axis.data, flag(op.keep_dims)
    if x.shape[axis] == 0:
        raise InterpretError(f"the {op.kind.data} of dimension {axis}, which has no elements")
    keys = x.astype(np.float32) if x.dtype in NARROW else x
    choose = np.argmax if op.kind.data == ExtremumKind.MAX else np.argmin
    if not flag(op.last_index):
        return np.asarray(choose(keys, axis, keepdims=keep), np.int64)
    return np.asarray(
        x.shape[axis] - 1 - choose(np.flip(keys, axis), axis, keepdims=keep), np.int64
    )


@meaning_of(reduce.SoftmaxOp)
def _softmax(op: reduce.SoftmaxOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, axis, dtype = widened(args[0]), op.axis.data, args[0].dtype

    def step(value: Array) -> Array:
        return widened(rounded(value, dtype))

    differences = step(x - x.max(axis, keepdims=True, initial=-np.inf))
    powers = step(np.exp(differences))
    total = step(powers.sum(axis, keepdims=True))
    result = differences - step(np.log(total)) if op.is_log else powers / total
    return rounded(result, dtype)


@meaning_of(reduce.CumulativeOp)
def _cumulative(op: reduce.CumulativeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, axis = widened(args[0]), op.axis.data
    if x.shape[axis] == 0:
        return args[0]
    x = np.flip(x, axis) if flag(op.reverse) else x
    combine = np.add if op.kind.data == CumulativeKind.SUM else np.multiply
    result = combine.accumulate(x, axis, x.dtype)
    if flag(op.exclusive):
        first = np.full_like(result.take([0], axis), combine.identity)
        rest = combine(result.take(range(x.shape[axis] - 1), axis), combine.identity)
        result = np.concatenate([first, rest.astype(x.dtype)], axis)
    result = np.flip(result, axis) if flag(op.reverse) else result
    return rounded(result, args[0].dtype)


_MOST_TAPS = 1 << 18
"""Places of a window: one with more of them than its image is mostly padding, and not worth it."""


@meaning_of(reduce.PoolOp)
def _pool(op: reduce.PoolOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    begin, end = numbers(op.pads_begin, symbols), numbers(op.pads_end, symbols)
    kernel = numbers(op.kernel, symbols)
    if math.prod(kernel) > max(_MOST_TAPS, math.prod(x.shape[2:])):
        raise InterpretError(f"windows of {list(kernel)} over an image of {list(x.shape[2:])}")
    if op.kind.data == PoolKind.MAX:
        lowest = np.finfo(x.dtype).min if flag(op.from_lowest) else _lowest(x.dtype)
        wide = widened(x)
        larger = np.maximum if flag(op.keeps_nan) else _larger
        total = _pooled(op, framed(wide, begin, end, lowest), kernel, larger, lowest)
        if flag(op.keeps_first):
            kinds = framed(np.where(np.isnan(wide), 2, 1), begin, end, 0)
            is_nan = _pooled(op, kinds, kernel, _first_nonzero, 0) == 2
            total = np.where(is_nan, total.dtype.type(np.nan), total)
        return rounded(total, x.dtype)
    zero = x.dtype.type(0)
    total = _pooled(op, widened(framed(x, begin, end, zero)), kernel, np.add, 0)
    if op.kind.data == PoolKind.SUM:
        return rounded(total, x.dtype)
    counted = np.ones((1, 1, *x.shape[2:]), np.int64)
    if flag(op.count_pads):
        overhang = numbers(op.overhang, symbols)
        inner = [e - o for e, o in zip(end, overhang, strict=True)]
        counted = framed(framed(counted, begin, inner, 1), [0] * len(begin), overhang, 0)
    else:
        counted = framed(counted, begin, end, 0)
    count = _pooled(op, counted, kernel, np.add, 0)
    if x.dtype in FLOATS:
        return rounded(total / count, x.dtype)
    return integer_quotient(total, count.astype(x.dtype))


def _pooled(
    op: reduce.PoolOp, padded: Array, kernel: Sequence[int], combine: Any, initial: Any
) -> Array:
    """Combine the windows of a padded input, tap by tap in C order."""
    counts = positions(padded.shape[2:], kernel, op)
    result = np.full((*padded.shape[:2], *counts), initial, padded.dtype)
    strides, dilations = ints(op.strides), ints(op.dilations)
    for tap in np.ndindex(*kernel) if result.size and min(kernel) > 0 else ():
        taken = tuple(
            slice(k * dilation, k * dilation + (count - 1) * stride + 1, stride)
            for k, dilation, count, stride in zip(tap, dilations, counts, strides, strict=True)
        )
        result = combine(result, padded[(slice(None), slice(None), *taken)])
    return result


def _larger(total: Array, values: Array) -> Array:
    """NaN is never larger, nor is one zero than another."""
    return np.where(values > total, values, total)


def _first_nonzero(total: Array, values: Array) -> Array:
    return np.where(total == 0, values, total)
