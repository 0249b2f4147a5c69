"""The meaning of contractions, normalizations and attention, in sums of a fixed order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lowerdeck.dialects.core import attention, linear
from lowerdeck.dialects.core.enums import (
    Packing,
)
from lowerdeck.dialects.core.types import bf16, element_type, numpy_dtype
from lowerdeck.dialects.interpret.core_numbers import (
    FLOATS,
    Array,
    Symbols,
    ints,
    meaning_of,
    numbers,
    rounded,
    widened,
)
from lowerdeck.dialects.interpret.errors import InterpretError

_TILE = 1 << 15
"""Elements of a partial result that stay in the cache while the reduction runs over them."""

_COLUMNS_BYTES = 1 << 26
"""The largest unfolded input of a convolution held at a time."""


def matrix_product(lhs: Array, rhs: Array) -> Array:
    """
    [batch..., M, K] by [batch..., K, N], each sum in the order of K, in the operands' own type.

    Every element is a chain of one multiplication and one addition a step, so the result depends
    neither on the machine nor on a library.
    """
    (m, depth), n = lhs.shape[-2:], rhs.shape[-1]
    if depth != rhs.shape[-2]:
        raise InterpretError(f"a matrix of {depth} columns by one of {rhs.shape[-2]} rows")
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    result = np.zeros((*batch, m, n), lhs.dtype)
    if m * n <= 1024:
        _accumulate_product(lhs, rhs, result)
        return result
    lhs = np.broadcast_to(lhs, (*batch, m, depth))
    rhs = np.broadcast_to(rhs, (*batch, depth, n))
    for place in np.ndindex(batch):
        for rows, columns in _tiles(m, n):
            tile = result[place][rows, columns]
            _accumulate_product(lhs[place][rows], rhs[place][:, columns], tile)
    return result


def _tiles(m: int, n: int) -> Iterator[tuple[slice, slice]]:
    width = min(n, 4096)
    height = max(_TILE // width, 1)
    for row in range(0, m, height):
        for column in range(0, n, width):
            yield slice(row, row + height), slice(column, column + width)


def _accumulate_product(lhs: Array, rhs: Array, result: Array) -> None:
    """Add the product to `result`, one step of the reduction at a time."""
    term = np.empty_like(result)
    for k in range(lhs.shape[-1]):
        np.multiply(lhs[..., :, k, np.newaxis], rhs[..., k, np.newaxis, :], out=term)
        np.add(result, term, out=result)


def _factors(op: linear.ContractionOp, args: Sequence[Array]) -> tuple[Array, Array]:
    """Both factors as they are multiplied: without zero points, integers in the result's type."""
    known = dict(zip(op.operands, args, strict=True))
    dtype = _result_dtype(op)
    zeros = op.zero_points or (None, None)
    lhs, rhs = (
        _centered(known[factor], None if zero is None else known[zero], dtype)
        for factor, zero in zip(op.factors, zeros, strict=True)
    )
    return lhs, rhs


def _result_dtype(op: linear.ContractionOp) -> np.dtype[Any]:
    return numpy_dtype(element_type(op.results[0]))


def _centered(factor: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    if factor.dtype in FLOATS:
        return widened(factor)
    factor = factor.astype(dtype, copy=False)
    return factor if zero is None else factor - zero.astype(dtype)


def _terms(x: Array, packing: Packing, *, is_unsigned: bool) -> Iterator[Array]:
    """The terms that each element holds, in i32."""
    bits = 8 * x.dtype.itemsize // packing.terms
    part = np.dtype(f"{'u' if is_unsigned else ''}int{bits}")
    for number in range(packing.terms):
        yield (x >> x.dtype.type(bits * number)).astype(part).astype(np.int32)


def _joined(x: Array, depth: int) -> Iterator[Array]:
    """The terms of a factor that is split, with those that stand behind its rows."""
    places, words = x[..., depth + 1 :: 2], x[..., depth + 2 :: 2]
    rows = np.indices(places.shape)[:-1]
    parts = (
        _terms(part, Packing.SPLIT_LEFT, is_unsigned=False) for part in (x[..., :depth], words)
    )
    for whole, rest in zip(*parts, strict=True):
        np.add.at(whole, (*rows, places), rest)
        yield whole


def _halves(x: Array) -> Iterator[Array]:
    """The two numbers of bf16 that each element holds."""
    for shift in (0, 16):
        bits = (x.view(np.uint32) >> np.uint32(shift)) << np.uint32(16)
        yield widened(bits.view(np.float32))


@meaning_of(linear.MatmulOp)
def _matmul(op: linear.MatmulOp, args: Sequence[Array], symbols: Symbols) -> Array:
    if op.packing is not None:
        packing = op.packing.data
        if packing is Packing.HALVES:
            parts = zip(*(_halves(x) for x in args), strict=True)
            total = sum(matrix_product(lhs, rhs) for lhs, rhs in parts)
            return rounded(np.asarray(total), _result_dtype(op))
        left = _terms(args[0], packing, is_unsigned=packing is Packing.UNSIGNED_LEFT)
        if packing is Packing.SPLIT_LEFT:
            left = _joined(args[0], args[1].shape[-2])
        is_unsigned = packing in (Packing.UNSIGNED_RIGHT, Packing.SPLIT_LEFT)
        terms = zip(left, _terms(args[1], packing, is_unsigned=is_unsigned), strict=True)
        products = [matrix_product(lhs, rhs) for lhs, rhs in terms]
        return np.asarray(sum(products[1:], products[0]))
    return rounded(matrix_product(*_factors(op, args)), _result_dtype(op))


@meaning_of(linear.SparseProductOp)
def _sparse_product(op: linear.SparseProductOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, blocks, rows, starts, *bias = args
    panels, width, _ = op.sizes
    x = np.moveaxis(x, op.axis.data, -1)
    found = [
        matrix_product(x[..., rows[first:last]], blocks[first:last])
        for first, last in starts[:, (0, -1)].tolist()
    ]
    total = np.stack(found, axis=-2).reshape(*x.shape[:-1], panels * width)
    return np.moveaxis(np.add(total, *bias) if bias else total, -1, op.axis.data)


@meaning_of(linear.WindowsOp)
def _windows(op: linear.WindowsOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,), taps = args, [size.evaluate(symbols) for size in op.taps.data]
    counts = [count.evaluate(symbols) for count in op.counts]
    parts: list[Array] = []
    for tap in np.ndindex(*taps):
        steps = zip(tap, counts, ints(op.strides), ints(op.dilations), strict=True)
        spans = [
            slice(place * dilation, place * dilation + max((count - 1) * stride + 1, 0), stride)
            for place, count, stride, dilation in steps
        ]
        part = x[(..., *spans)]
        parts.append(part.reshape(*part.shape[: -len(taps)], -1))
    rows = [*x.shape[: -len(taps) - 1], 0, math.prod(counts)]
    found = np.concatenate([*parts, np.empty(rows, x.dtype)], axis=-2)
    apart = [*x.shape[: -len(taps) - 1], *taps, x.shape[-len(taps) - 1], *counts]
    return found if op.is_apart is None else found.reshape(apart)


_LARGEST_FRAME = 1 << 28
"""Elements of what is padded: a constant with more padding is not worth to be folded."""


def framed(x: Array, begin: Sequence[int], end: Sequence[int], value: Any) -> Array:
    """The spatial dimensions of [N, C, spatial...] padded with `value`; negative amounts crop."""
    pads = [(0, 0), (0, 0), *zip(begin, end, strict=True)]
    shape = [b + dim + e for dim, (b, e) in zip(x.shape, pads, strict=True)]
    if min(shape, default=0) < 0 or math.prod(shape) > max(_LARGEST_FRAME, x.size):
        raise InterpretError(f"windows over a shape of {shape}")
    result = np.full(shape, value, x.dtype)
    target = tuple(slice(max(b, 0), size - max(e, 0)) for size, (b, e) in zip(shape, pads))
    source = tuple(
        slice(max(-b, 0), dim - max(-e, 0)) for dim, (b, e) in zip(x.shape, pads, strict=True)
    )
    result[target] = x[source]
    return result


def positions(dims: Sequence[int], kernel: Sequence[int], op: Any) -> list[int]:
    """The number of windows in each spatial dimension of a padded input."""
    rules = zip(dims, kernel, ints(op.strides), ints(op.dilations), strict=True)
    counts = [(dim - (k - 1) * dilation - 1) // stride + 1 for dim, k, stride, dilation in rules]
    if min(counts, default=0) < 0:
        raise InterpretError(f"a kernel of {list(kernel)} exceeds an input of {list(dims)}")
    return counts


@meaning_of(linear.ConvOp)
def _conv(op: linear.ConvOp, args: Sequence[Array], symbols: Symbols) -> Array:
    begin, end = numbers(op.pads_begin, symbols), numbers(op.pads_end, symbols)
    x, weight = _factors(op, args)
    x, groups = framed(x, begin, end, x.dtype.type(0)), op.groups.data
    kernel = weight.shape[2:]
    counts = positions(x.shape[2:], kernel, op)
    channels, filters = x.shape[1] // groups, weight.shape[0] // groups
    if weight.shape[1] != channels or filters * groups != weight.shape[0]:
        raise InterpretError(
            f"{x.shape[1]} channels in {groups} groups with a weight of {weight.shape}"
        )
    result = np.zeros((x.shape[0], weight.shape[0], *counts), x.dtype)
    if result.size:
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, ints(op.dilations), strict=True)]
        windows = sliding_window_view(x, extents, tuple(range(2, x.ndim)))
        strides = tuple(slice(None, None, stride) for stride in ints(op.strides))
        taps = tuple(slice(None, None, dilation) for dilation in ints(op.dilations))
        windows = windows[(slice(None), slice(None), *strides, *taps)]
        for image, group in np.ndindex(x.shape[0], groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters, (group + 1) * filters)
            _correlate(windows[image, inputs], weight[outputs], result[image, outputs])
    if op.bias is not None:
        result += widened(args[2]).reshape(-1, *[1] * len(kernel))
    return rounded(result, _result_dtype(op))


def _correlate(windows: Array, weight: Array, result: Array) -> None:
    """[C, positions..., kernel...] by [M, C, kernel...] into [M, positions...], in row blocks."""
    spatial = len(weight.shape) - 2
    order = (0, *range(1 + spatial, 1 + 2 * spatial), *range(1, 1 + spatial))
    columns = windows.transpose(order)
    depth = math.prod(weight.shape[1:])
    rows = result.shape[1]
    row_bytes = depth * math.prod(result.shape[2:]) * result.itemsize
    step = max(_COLUMNS_BYTES // max(row_bytes, 1), 1)
    flat = weight.reshape(weight.shape[0], depth)
    for row in range(0, rows, step):
        part = columns[(slice(None),) * (1 + spatial) + (slice(row, row + step),)]
        target = result[:, row : row + step]
        product = matrix_product(flat, part.reshape(depth, math.prod(target.shape[1:])))
        target[...] = product.reshape(target.shape)


@meaning_of(linear.ConvTransposeOp)
def _conv_transpose(op: linear.ConvTransposeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x, weight), groups = _factors(op, args), op.groups.data
    begin, end = numbers(op.pads_begin, symbols), numbers(op.pads_end, symbols)
    strides, dilations = ints(op.strides), ints(op.dilations)
    dims, kernel = x.shape[2:], weight.shape[2:]
    count = math.prod(dims)
    if x.shape[1] != weight.shape[0]:
        raise InterpretError(f"{x.shape[1]} channels with a weight of {weight.shape}")
    rules = zip(dims, strides, kernel, dilations, ints(op.output_padding), strict=True)
    sizes = [(d - 1) * s + (k - 1) * dilation + 1 + extra for d, s, k, dilation, extra in rules]
    channels, filters = x.shape[1] // groups, weight.shape[1]
    full = np.zeros((x.shape[0], filters * groups, *sizes), x.dtype)
    for tap in np.ndindex(*kernel):
        places = tuple(
            slice(k * dilation, k * dilation + (dim - 1) * stride + 1, stride)
            for k, dilation, dim, stride in zip(tap, dilations, dims, strides, strict=True)
        )
        for image, group in np.ndindex(x.shape[0], groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters, (group + 1) * filters)
            product = matrix_product(
                weight[(inputs, slice(None), *tap)].T,
                x[image, inputs].reshape(channels, count),
            )
            full[(image, outputs, *places)] += product.reshape(filters, *dims)
    result = framed(full, [-b for b in begin], [-e for e in end], x.dtype.type(0))
    if op.bias is not None:
        result += widened(args[2]).reshape(-1, *[1] * len(kernel))
    return rounded(result, _result_dtype(op))


@meaning_of(linear.BatchNormOp)
def _batch_norm(op: linear.BatchNormOp, args: Sequence[Array], symbols: Symbols) -> Array:
    shape = [1] * args[0].ndim
    shape[op.axis.data] = -1
    x, *parameters = (widened(value) for value in args)
    scale, bias, mean, variance = (value.reshape(shape) for value in parameters)
    result = (x - mean) / np.sqrt(variance + op.epsilon.value.data) * scale + bias
    return rounded(result, args[0].dtype)


@meaning_of(linear.LayerNormOp)
def _layer_norm(op: linear.LayerNormOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, scale, *bias = (widened(value) for value in args)
    axes = tuple(range(op.axis.data, x.ndim))
    centered = x if op.uncentered is not None else x - x.mean(axes, keepdims=True)
    variance = np.square(centered).mean(axes, keepdims=True)
    epsilon = op.epsilon.value.data
    is_late = op.late_epsilon is not None
    deviation = np.sqrt(variance) + epsilon if is_late else np.sqrt(variance + epsilon)
    result = centered / deviation * scale
    return rounded(result + bias[0] if bias else result, args[0].dtype)


@meaning_of(attention.AttentionOp)
def _attention(op: attention.AttentionOp, args: Sequence[Array], symbols: Symbols) -> Array:
    query, key, value = (np.swapaxes(widened(operand), -2, -3) for operand in args[:3])
    scale = op.scale.value.data
    if op.in_halves is not None:
        query, key, value = (_in_bf16(x) for x in (query * scale, key, value))
        scale = 1.0
    scores = matrix_product(query, np.swapaxes(key, -1, -2)) * scale
    masks = list(args[3:])
    if op.has_factor is not None:
        scores = scores * widened(masks.pop(0))
    for mask in masks:
        if mask.dtype != np.bool_:
            scores = widened(rounded(scores + widened(mask), mask.dtype))
            continue
        assert op.fill is not None
        scores = np.where(mask, scores, args[0].dtype.type(op.fill.value.data))
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    parts = powers if op.in_halves is None else _in_bf16(powers)
    weights: Array = parts / powers.sum(-1, keepdims=True)
    if op.zero_nan is not None:
        weights[np.isnan(weights)] = 0
    if op.zero_hidden is not None:
        weights = np.where(args[-1], weights, weights.dtype.type(0))
    result = matrix_product(weights, value)
    return rounded(np.swapaxes(result, -2, -3), args[0].dtype)


def _in_bf16(x: Array) -> Array:
    """Rounded to it, by way of f32."""
    with np.errstate(all="ignore"):
        return x.astype(np.float32).astype(numpy_dtype(bf16)).astype(x.dtype)
