"""
Reference semantics of caffe ops in numpy, written from what Caffe's layers compute on the CPU.

All blobs are float32. Sums run in float64 and are rounded once, so that results are those of Caffe
up to the rounding of its own sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lowerdeck.dialects.caffe.caffe_pb2 import (
    EltwiseParameter,
    HingeLossParameter,
    LayerParameter,
    LossParameter,
    LRNParameter,
    PoolingParameter,
    PriorBoxParameter,
    ReductionParameter,
)
from lowerdeck.dialects.caffe.layers import has_own_scale, has_static_input
from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.caffe.shapes import (
    ShapeError,
    Windows,
    axis_of,
    convolution_groups,
    convolution_windows,
    crop_offsets,
    layer_shapes,
    permutation,
    pool_windows,
    prior_ratios,
    pyramid_level,
    slice_bounds,
    windows_beyond,
)
from lowerdeck.dialects.interpret import caffe_forks as caffe_forks
from lowerdeck.dialects.interpret.caffe_call import (
    LARGEST,
    RULES,
    Array,
    Call,
    along,
    images,
    rule,
    sigmoid,
)
from lowerdeck.dialects.interpret.errors import InterpretError, describe

_SMALLEST = np.finfo(np.float32).tiny
_LOG_THRESHOLD = 1e-20


def run_op(op: CaffeOp, operands: Sequence[Array], run_region: object = None) -> list[Array]:
    """The tops of a layer; InterpretError if it has no meaning for these bottoms."""
    layer = op.layer()
    if (function := RULES.get(layer.type)) is None:
        raise InterpretError(f"{describe(op)}: the layer type cannot be interpreted")
    count = len(op.bottoms)
    wide = [np.asarray(operand, np.float64) for operand in operands]
    shapes = [operand.shape for operand in wide[:count]]
    try:
        expected = layer_shapes(layer, shapes, len(op.results))
        _check_blobs(wide[count:], expected.blobs)
        with np.errstate(all="ignore"):
            result = function(Call(layer, wide[:count], wide[count:], len(op.results)))
            tops = [result] if isinstance(result, np.ndarray) else result
            return [np.array(top, np.float32) for top in tops]
    except ShapeError as error:
        raise InterpretError(f"{describe(op)}: {error}") from None


def _check_blobs(blobs: Sequence[Array], expected: Sequence[tuple[int, ...]]) -> None:
    found = [blob.shape for blob in blobs]
    if found != list(expected):
        raise ShapeError(f"the blobs have the shapes {found}, expected {list(expected)}")


# Activations


def _rectify(x: Array, slope: Array | float) -> Array:
    return np.maximum(x, 0) + slope * np.minimum(x, 0)


@rule("AbsVal")
def _abs_val(call: Call) -> Array:
    return np.abs(call.x)


@rule("BNLL")
def _bnll(call: Call) -> Array:
    return np.maximum(call.x, 0) + np.log1p(np.exp(-np.abs(call.x)))


@rule("Clip")
def _clip(call: Call) -> Array:
    p = call.layer.clip_param
    return np.maximum(p.min, np.minimum(call.x, p.max))


@rule("Dropout")
def _dropout(call: Call) -> Array:
    """Nothing is dropped in tests; training has scaled already."""
    return call.x


@rule("ELU")
def _elu(call: Call) -> Array:
    x, alpha = call.x, call.layer.elu_param.alpha
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


@rule("Exp")
def _exp(call: Call) -> Array:
    p = call.layer.exp_param
    base = _base(p.base)
    return np.exp((p.shift + p.scale * call.x) * np.log(base))


@rule("Log")
def _log(call: Call) -> Array:
    p = call.layer.log_param
    return np.log(p.shift + p.scale * call.x) / np.log(_base(p.base))


def _base(base: float) -> float:
    """-1 means e."""
    if base == -1:
        return np.e
    if base <= 0:
        raise ShapeError(f"found base {base}, expected a positive number")
    return base


@rule("Power")
def _power(call: Call) -> Array:
    p = call.layer.power_param
    if p.power * p.scale == 0:
        # Then the bottom is not read, so that its NaN does not count.
        value = np.float64(1.0) if p.power == 0 else np.power(np.float64(p.shift), p.power)
        return np.full(call.x.shape, value)
    return np.power(p.shift + p.scale * call.x, p.power)


@rule("PReLU")
def _prelu(call: Call) -> Array:
    return _rectify(call.x, along(call.blobs[0], 1, call.x.ndim))


@rule("ReLU6")
def _relu6(call: Call) -> Array:
    return np.minimum(np.maximum(call.x, np.float32(0)), np.float32(6))


@rule("ReLU")
def _relu(call: Call) -> Array:
    return _rectify(call.x, call.layer.relu_param.negative_slope)


@rule("Sigmoid")
def _sigmoid_layer(call: Call) -> Array:
    return sigmoid(call.x)


@rule("Swish")
def _swish(call: Call) -> Array:
    return call.x * sigmoid(call.layer.swish_param.beta * call.x)


@rule("TanH")
def _tanh(call: Call) -> Array:
    return np.tanh(call.x)


@rule("Threshold")
def _threshold(call: Call) -> Array:
    return (call.x > call.layer.threshold_param.threshold).astype(np.float64)


# Convolutions


def _windows_of(x: Array, windows: Windows) -> Array:
    """The windows over a padded blob: its shape with counts in space, then the kernel's shape."""
    axis, rank = windows.axis, x.ndim
    space = range(axis + 1, rank)
    beyond = windows_beyond(x.shape[axis + 1 :], windows)
    ends = zip(windows.pad, beyond, strict=True)
    pads = [(0, 0)] * (axis + 1) + [(pad, pad + excess) for pad, excess in ends]
    extents = [d * (k - 1) + 1 for k, d in zip(windows.kernel, windows.dilation, strict=True)]
    if not extents:
        return x
    view = sliding_window_view(np.pad(x, pads), extents, axis=tuple(space))
    steps = [slice(None)] * (axis + 1) + [slice(None, None, step) for step in windows.stride]
    taps = [slice(None, None, dilation) for dilation in windows.dilation]
    return view[(*steps, *taps)]


@rule("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
def _convolution(call: Call) -> list[Array]:
    return [_convolve(call, x) for x in call.bottoms]


def _convolve(call: Call, x: Array) -> Array:
    p = call.layer.convolution_param
    windows = convolution_windows(p, x.ndim)
    axis, space = windows.axis, len(windows.kernel)
    seen = _windows_of(x, windows)  # [batch..., channels, counts..., kernel...]
    weight = call.blobs[0]
    summed = [axis, *range(seen.ndim - space, seen.ndim)]
    parts: list[Array] = []
    groups = convolution_groups(call.layer, x.shape[axis])
    for data, filters in zip(
        np.split(seen, groups, axis), np.split(weight, groups, 0), strict=True
    ):
        part = np.tensordot(data, filters, (summed, range(1, filters.ndim)))
        parts.append(np.moveaxis(part, -1, axis))
    return _add_bias(call, np.concatenate(parts, axis), axis)


def _add_bias(call: Call, y: Array, axis: int) -> Array:
    return y + along(call.blobs[1], axis, y.ndim) if len(call.blobs) > 1 else y


@rule("Deconvolution")
def _deconvolution(call: Call) -> list[Array]:
    return [_deconvolve(call, x) for x in call.bottoms]


def _deconvolve(call: Call, x: Array) -> Array:
    """Each element of the bottom adds its multiple of the kernel to the top."""
    p = call.layer.convolution_param
    windows = convolution_windows(p, x.ndim)
    axis, sizes = windows.axis, x.shape[windows.axis + 1 :]
    spread = list(zip(sizes, windows.kernel, windows.stride, windows.dilation, strict=True))
    full = [s * (size - 1) + d * (k - 1) + 1 for size, k, s, d in spread]
    y = np.zeros((*x.shape[:axis], p.num_output, *full))
    outputs = p.num_output // p.group
    weight = call.blobs[0]
    for group, (data, filters) in enumerate(
        zip(np.split(x, p.group, axis), np.split(weight, p.group, 0), strict=True)
    ):
        channels = slice(group * outputs, (group + 1) * outputs)
        for tap in np.ndindex(*windows.kernel):
            part = np.tensordot(data, filters[(slice(None), slice(None), *tap)], ([axis], [0]))
            places = [
                slice(t * d, t * d + s * (size - 1) + 1, s)
                for t, (size, _, s, d) in zip(tap, spread, strict=True)
            ]
            y[(*[slice(None)] * axis, channels, *places)] += np.moveaxis(part, -1, axis)
    inner = [slice(pad, size - pad) for pad, size in zip(windows.pad, full, strict=True)]
    return _add_bias(call, y[(*[slice(None)] * (axis + 1), *inner)], axis)


@rule("Im2col")
def _im2col(call: Call) -> Array:
    windows = convolution_windows(call.layer.convolution_param, call.x.ndim)
    axis, space = windows.axis, len(windows.kernel)
    seen = _windows_of(call.x, windows)
    rank = seen.ndim
    order = [*range(axis + 1), *range(rank - space, rank), *range(axis + 1, rank - space)]
    moved = seen.transpose(order)
    return moved.reshape(*call.x.shape[:axis], -1, *moved.shape[axis + 1 + space :])


# Pooling


@rule("Pooling")
def _pooling(call: Call) -> list[Array]:
    return _pool(call.x, call.layer.pooling_param)[: call.tops]


def _pool(x: Array, parameters: PoolingParameter) -> list[Array]:
    """The pooled blob and, for maxima, the positions that they come from."""
    height, width = x.shape[2:]
    windows = pool_windows(parameters, height, width)
    y = np.zeros((*x.shape[:2], *windows.counts))
    mask = np.full(y.shape, -1.0)
    is_max = parameters.pool == PoolingParameter.MAX
    for row, column in np.ndindex(*windows.counts):
        top, left = (
            index * stride - pad
            for index, stride, pad in zip((row, column), windows.stride, windows.pad, strict=True)
        )
        bottom = min(top + windows.kernel[0], height + windows.pad[0])
        right = min(left + windows.kernel[1], width + windows.pad[1])
        area = (bottom - top) * (right - left)  # padding counts, what is behind it does not
        top, left = max(top, 0), max(left, 0)
        bottom, right = min(bottom, height), min(right, width)
        window = x[:, :, top:bottom, left:right]
        if not is_max:
            y[:, :, row, column] = window.sum((2, 3)) / np.float64(area)
            continue
        flat = window.reshape(*x.shape[:2], -1)
        best, where = _first_maximum(flat)
        y[:, :, row, column] = best
        if flat.shape[2]:
            span = right - left
            index = (top + where // span) * width + left + where % span
            mask[:, :, row, column] = np.where(best > -LARGEST, index, -1)
    return [y, mask] if is_max else [y]


def _first_maximum(values: Array) -> tuple[Array, Array]:
    """Maximum and its first index along the last axis, from the lowest float on: no NaN counts."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], -LARGEST), np.zeros(values.shape[:-1], np.int64)
    clean = np.where(values > -LARGEST, values, -LARGEST)
    return clean.max(-1), clean.argmax(-1)


@rule("SPP")
def _spp(call: Call) -> Array:
    p, x = call.layer.spp_param, call.x
    levels = [
        _pool(x, pyramid_level(p, level, *x.shape[2:]))[0] for level in range(p.pyramid_height)
    ]
    if len(levels) == 1:
        return levels[0]
    return np.concatenate([level.reshape(len(x), -1) for level in levels], 1)


# Normalization


@rule("BatchNorm")
def _batch_norm(call: Call) -> Array:
    p, x = call.layer.batch_norm_param, call.x
    if p.HasField("use_global_stats") and not p.use_global_stats:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1 or x.ndim == 1)
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    else:
        # NVIDIA's fork, which has the scale here, does not divide.
        factor = 1.0 if has_own_scale(call.layer) else call.blobs[2][0]
        scale = 0.0 if factor == 0 else 1.0 / factor
        axis = 1 if x.ndim > 1 else 0
        mean, variance = (along(blob * scale, axis, x.ndim) for blob in call.blobs[:2])
    y = (x - mean) / np.sqrt(variance + p.eps)
    if not has_own_scale(call.layer):
        return y
    axis = 1 if x.ndim > 1 else 0
    return y * along(call.blobs[3], axis, x.ndim) + along(call.blobs[4], axis, x.ndim)


@rule("LRN")
def _lrn(call: Call) -> Array:
    p, x = call.layer.lrn_param, call.x
    before = (p.local_size - 1) // 2
    if p.norm_region == LRNParameter.WITHIN_CHANNEL:
        pooling = PoolingParameter(pool="AVE", kernel_size=p.local_size, pad=before)
        (mean,) = _pool(x * x, pooling)
        return x * np.power(1 + p.alpha * mean, -p.beta)
    padded = np.pad(x * x, [(0, 0), (before, before), (0, 0), (0, 0)])
    total = sliding_window_view(padded, p.local_size, 1).sum(-1)
    return x * np.power(p.k + p.alpha / p.local_size * total, -p.beta)


@rule("MVN")
def _mvn(call: Call) -> Array:
    p = call.layer.mvn_param
    x = images(call.x)
    axes = (1, 2, 3) if p.across_channels else (2, 3)
    y = x - x.mean(axes, keepdims=True)
    if p.normalize_variance:
        y = y / (np.sqrt((y * y).mean(axes, keepdims=True)) + p.eps)
    return y


@rule("Normalize")
def _normalize(call: Call) -> Array:
    p = call.layer.norm_param
    x = images(call.x)
    axes = (1, 2, 3) if p.across_spatial else (1,)
    y = x / np.sqrt((x * x).sum(axes, keepdims=True) + p.eps)
    return (y * along(call.blobs[0], 1, 4)).reshape(call.x.shape)


@rule("Softmax")
def _softmax_layer(call: Call) -> Array:
    return _softmax(call.x, axis_of(call.layer.softmax_param.axis, call.x.ndim))


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


# Linear layers


@rule("InnerProduct")
def _inner_product(call: Call) -> Array:
    p, x = call.layer.inner_product_param, call.x
    axis = axis_of(p.axis, x.ndim)
    weight = call.blobs[0] if p.transpose else call.blobs[0].T
    y = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:])) @ weight
    if p.bias_term:
        y = y + call.blobs[1]
    return y.reshape(*x.shape[:axis], p.num_output)


@rule("Embed")
def _embed(call: Call) -> Array:
    p = call.layer.embed_param
    index = call.x.astype(np.int64)
    if index.size and not 0 <= index.min() <= index.max() < p.input_dim:
        raise ShapeError(f"an index is not from 0 to {p.input_dim - 1}")
    y = call.blobs[0][index]
    return y + call.blobs[1] if p.bias_term else y


@rule("Scale")
def _scale(call: Call) -> Array:
    p, x = call.layer.scale_param, call.x
    factors = call.bottoms[1] if len(call.bottoms) == 2 else call.blobs[0]
    y = x * along(factors, _start(p.axis, factors, x.ndim), x.ndim)
    if p.bias_term:
        bias = call.blobs[-1]
        y = y + along(bias, _start(p.axis, bias, x.ndim), x.ndim)
    return y


@rule("Bias")
def _bias(call: Call) -> Array:
    x = call.x
    bias = call.bottoms[1] if len(call.bottoms) == 2 else call.blobs[0]
    return x + along(bias, _start(call.layer.bias_param.axis, bias, x.ndim), x.ndim)


def _start(axis: int, values: Array, rank: int) -> int:
    """Where values of a Scale or Bias layer begin; a single number has no place."""
    return axis_of(axis, rank) if values.ndim else 0


@rule("LSTM")
def _lstm(call: Call) -> list[Array]:
    size, blobs = call.layer.recurrent_param.num_output, call.blobs
    steps, cont, static, (h, c) = _recurrence(call, 2)
    outputs: list[Array] = []
    for step, going in zip(steps, cont, strict=True):
        gates = step + blobs[1] + static + (going * h) @ blobs[-1].T
        c, h = _lstm_step(c, gates, going, size)
        outputs.append(h)
    return [np.stack(outputs), h[None], c[None]][: call.tops]


def _lstm_step(c: Array, gates: Array, going: Array, size: int) -> tuple[Array, Array]:
    """The cell and the hidden state after one step; gates are i, f, o, g."""
    i, f, o = (sigmoid(gates[..., size * k : size * (k + 1)]) for k in range(3))
    g = np.tanh(gates[..., 3 * size :])
    # Without continuation the old cell is not read at all, whatever it holds.
    kept = np.where(going == 0, 0, going * f * c)
    c = kept + i * g
    return c, o * np.tanh(c)


@rule("LSTMUnit")
def _lstm_unit(call: Call) -> list[Array]:
    c, gates, cont = call.bottoms
    return list(_lstm_step(c, gates, cont[..., None], c.shape[2]))


@rule("RNN")
def _rnn(call: Call) -> list[Array]:
    blobs = call.blobs
    steps, cont, static, (h,) = _recurrence(call, 1)
    outputs: list[Array] = []
    for step, going in zip(steps, cont, strict=True):
        h = np.tanh(step + blobs[1] + static + (going * h) @ blobs[-3].T)
        outputs.append(np.tanh(h @ blobs[-2].T + blobs[-1]))
    return [np.stack(outputs), h[None]][: call.tops]


def _recurrence(call: Call, states: int) -> tuple[Array, Array, Array | float, list[Array]]:
    """Transformed inputs, continuation, transformed static input, and initial states."""
    x, cont = call.bottoms[:2]
    steps = x.reshape(*x.shape[:2], -1) @ call.blobs[0].T
    static: Array | float = 0.0
    given = list(call.bottoms[2:])
    if has_static_input(call.layer, len(call.bottoms)):
        first = given.pop(0)
        static = first.reshape(len(first), -1) @ call.blobs[2].T
    size = call.layer.recurrent_param.num_output
    initial = [state[0] for state in given] or [np.zeros((x.shape[1], size))] * states
    return steps, cont[..., None], static, initial


# Shapes


@rule("Concat")
def _concat(call: Call) -> Array:
    p = call.layer.concat_param
    axis = p.concat_dim if p.HasField("concat_dim") else axis_of(p.axis, call.x.ndim)
    return np.concatenate(call.bottoms, axis)


@rule("Crop")
def _crop(call: Call) -> Array:
    x, reference = call.bottoms
    axis = axis_of(call.layer.crop_param.axis, x.ndim)
    offsets = crop_offsets(call.layer, [x.shape, reference.shape])
    places = [slice(None)] * axis
    for offset, size in zip(offsets[axis:], reference.shape[axis:], strict=True):
        places.append(slice(offset, offset + size))
    return x[tuple(places)]


@rule("Flatten", "Reshape")
def _reshape(call: Call) -> Array:
    return call.x.reshape(layer_shapes(call.layer, [call.x.shape], 1).tops[0])


@rule("Permute")
def _permute(call: Call) -> Array:
    return call.x.transpose(permutation(call.layer, call.x.ndim))


@rule("Slice")
def _slice(call: Call) -> list[Array]:
    axis, bounds = slice_bounds(call.layer, call.x.shape, call.tops)
    return np.split(call.x, bounds[1:-1], axis)


@rule("Split")
def _split(call: Call) -> list[Array]:
    return [call.x] * call.tops


@rule("Silence", "HDF5Output")
def _silence(_call: Call) -> list[Array]:
    return []


@rule("Tile")
def _tile(call: Call) -> Array:
    p = call.layer.tile_param
    return np.concatenate([call.x] * p.tiles, axis_of(p.axis, call.x.ndim))


@rule("BatchReindex")
def _batch_reindex(call: Call) -> Array:
    x, index = call.bottoms
    rows = index.astype(np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() < len(x):
        raise ShapeError(f"an index is not from 0 to {len(x) - 1}")
    return x[rows]


# Others


@rule("ArgMax")
def _argmax(call: Call) -> Array:
    p, x = call.layer.argmax_param, call.x
    axis = axis_of(p.axis, x.ndim) if p.HasField("axis") else 1
    values = x if p.HasField("axis") else x.reshape(len(x), -1)
    # Of equal values the last one comes first.
    order = np.flip(np.argsort(values, axis, kind="stable"), axis)
    index = np.take(order, range(p.top_k), axis)
    best = np.take_along_axis(values, index, axis)
    if p.HasField("axis"):
        return best if p.out_max_val else index
    found = [index, best] if p.out_max_val else [index]
    return np.stack(found, 1).reshape(layer_shapes(call.layer, [x.shape], 1).tops[0])


@rule("DummyData")
def _dummy_data(call: Call) -> list[Array]:
    fillers = call.layer.dummy_data_param.data_filler
    if any(filler.type != "constant" for filler in fillers):
        raise ShapeError("a filler is random")
    values = [filler.value for filler in fillers] or [0.0]
    values = values * call.tops if len(values) == 1 else values
    shapes = layer_shapes(call.layer, [], call.tops).tops
    return [np.full(shape, value) for shape, value in zip(shapes, values, strict=True)]


@rule("Eltwise")
def _eltwise(call: Call) -> Array:
    p, bottoms = call.layer.eltwise_param, list(call.bottoms)
    if p.operation == EltwiseParameter.PROD:
        return np.prod(bottoms, 0)
    if p.operation == EltwiseParameter.MAX:
        largest = np.where(bottoms[0] > bottoms[1], bottoms[0], bottoms[1])
        for x in bottoms[2:]:
            largest = np.where(x > largest, x, largest)
        return largest
    factors = list(p.coeff) or [1.0] * len(bottoms)
    terms = [factor * x for factor, x in zip(factors, bottoms, strict=True) if factor]
    return np.sum(terms, 0) if terms else np.zeros_like(bottoms[0])


@rule("Parameter")
def _parameter(call: Call) -> Array:
    return call.blobs[0]


@rule("Reduction")
def _reduction(call: Call) -> Array:
    p, x = call.layer.reduction_param, call.x
    axes = tuple(range(axis_of(p.axis, x.ndim), x.ndim))
    match p.operation:
        case ReductionParameter.ASUM:
            total = np.abs(x).sum(axes)
        case ReductionParameter.SUMSQ:
            total = (x * x).sum(axes)
        case ReductionParameter.MEAN:
            total = x.mean(axes)
        case _:
            total = x.sum(axes)
    return np.asarray(p.coeff * total)


@rule("PriorBox")
def _prior_box(call: Call) -> Array:
    """Boxes around the centers of the first bottom's cells, as parts of the second one's size."""
    p = call.layer.prior_box_param
    rows, columns = call.x.shape[2:]
    height = p.img_h or p.img_size or call.bottoms[1].shape[2]
    width = p.img_w or p.img_size or call.bottoms[1].shape[3]
    step_h = p.step_h or p.step or height / rows
    step_w = p.step_w or p.step or width / columns
    sizes = _prior_sizes(call.layer)
    boxes: list[list[float]] = []
    for row, column in np.ndindex(rows, columns):
        x, y = (column + p.offset) * step_w, (row + p.offset) * step_h
        for w, h in sizes:
            left, right = (x - w / 2) / width, (x + w / 2) / width
            boxes.append([left, (y - h / 2) / height, right, (y + h / 2) / height])
    found = np.array(boxes).reshape(-1)
    if p.clip:
        found = np.clip(found, 0, 1)
    variances = np.resize(list(p.variance) or [0.1], found.size)
    return np.stack([found, variances])[None]


def _prior_sizes(layer: LayerParameter) -> list[tuple[float, float]]:
    p: PriorBoxParameter = layer.prior_box_param
    sizes: list[tuple[float, float]] = []
    for index, least in enumerate(p.min_size):
        sizes.append((least, least))
        if p.max_size:
            middle = float(np.sqrt(least * p.max_size[index]))
            sizes.append((middle, middle))
        for ratio in prior_ratios(layer)[1:]:
            sizes.append((least * ratio**0.5, least / ratio**0.5))
    return sizes


# Losses


def _outer_inner(x: Array, axis: int) -> Array:
    """With all dimensions before the axis as one, and all behind it."""
    return x.reshape(prod(x.shape[:axis]), x.shape[axis], -1)


@rule("Accuracy")
def _accuracy(call: Call) -> list[Array]:
    p = call.layer.accuracy_param
    scores = _outer_inner(call.x, axis_of(p.axis, call.x.ndim))
    labels = call.bottoms[1].reshape(len(scores), -1).astype(np.int64)
    valid = labels != p.ignore_label if p.HasField("ignore_label") else np.ones_like(labels, bool)
    chosen = _chosen(scores, np.where(valid, labels, 0))
    better = (scores >= chosen[:, None]).sum(1) - 1
    right = valid & (better < p.top_k)
    per_class = [
        _ratio(right[valid & (labels == label)].sum(), (valid & (labels == label)).sum())
        for label in range(scores.shape[1])
    ]
    return [np.array(_ratio(right.sum(), valid.sum())), np.array(per_class)][: call.tops]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _chosen(scores: Array, labels: Array) -> Array:
    """The scores of the labels: [outer, classes, inner] -> [outer, inner]."""
    if labels.size and not 0 <= labels.min() <= labels.max() < scores.shape[1]:
        raise ShapeError(f"a label is not from 0 to {scores.shape[1] - 1}")
    return np.take_along_axis(scores, labels[:, None], 1)[:, 0]


@rule("SoftmaxWithLoss")
def _softmax_with_loss(call: Call) -> list[Array]:
    axis = axis_of(call.layer.softmax_param.axis, call.x.ndim)
    powers = _softmax(call.x, axis)
    scores = _outer_inner(powers, axis)
    labels = call.bottoms[1].reshape(len(scores), -1).astype(np.int64)
    p = call.layer.loss_param
    valid = labels != p.ignore_label if p.HasField("ignore_label") else np.ones_like(labels, bool)
    chosen = np.maximum(_chosen(scores, np.where(valid, labels, 0)), _SMALLEST)
    loss = -np.log(chosen[valid]).sum()
    return [np.array(loss / _normalizer(p, valid)), powers][: call.tops]


def _normalizer(parameters: LossParameter, valid: Array, default: str = "VALID") -> float:
    """What a loss is divided by; `valid` is [outer, inner]."""
    p, mode = parameters, default
    if p.HasField("normalization"):
        mode = LossParameter.NormalizationMode.Name(p.normalization)
    elif p.HasField("normalize"):
        mode = "VALID" if p.normalize else "BATCH_SIZE"
    counts = {"FULL": valid.size, "VALID": valid.sum(), "BATCH_SIZE": len(valid), "NONE": 1}
    return max(1.0, float(counts[mode]))


@rule("InfogainLoss")
def _infogain_loss(call: Call) -> list[Array]:
    if len(call.bottoms) < 3:
        raise ShapeError("the infogain matrix is in another file; give it as third bottom")
    axis = axis_of(call.layer.infogain_loss_param.axis, call.x.ndim)
    powers = _softmax(call.x, axis)
    scores = _outer_inner(powers, axis)
    labels = call.bottoms[1].reshape(len(scores), -1).astype(np.int64)
    p = call.layer.loss_param
    valid = labels != p.ignore_label if p.HasField("ignore_label") else np.ones_like(labels, bool)
    _chosen(scores, np.where(valid, labels, 0))
    gains = call.bottoms[2].reshape(-1, scores.shape[1])[np.where(valid, labels, 0)]
    logs = np.log(np.maximum(np.moveaxis(scores, 1, 2), _LOG_THRESHOLD))
    loss = -(gains * logs).sum(-1)[valid].sum()
    return [np.array(loss / _normalizer(p, valid)), powers][: call.tops]


@rule("EuclideanLoss")
def _euclidean_loss(call: Call) -> Array:
    first, second = call.bottoms
    return np.array(((first - second.reshape(first.shape)) ** 2).sum() / len(first) / 2)


@rule("SigmoidCrossEntropyLoss")
def _sigmoid_cross_entropy_loss(call: Call) -> Array:
    p, x = call.layer.loss_param, call.x.reshape(len(call.x), -1)
    target = call.bottoms[1].reshape(x.shape)
    ignored = target.astype(np.int64) == p.ignore_label
    valid = ~ignored if p.HasField("ignore_label") else np.ones(x.shape, bool)
    terms = np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))
    total = np.where(valid, terms, 0).sum()
    return np.array(total / _normalizer(p, valid, "BATCH_SIZE"))


@rule("HingeLoss")
def _hinge_loss(call: Call) -> Array:
    x = call.x.reshape(len(call.x), -1)
    labels = call.bottoms[1].reshape(-1).astype(np.int64)
    _chosen(x[..., None], labels[:, None])
    signs = np.ones(x.shape)
    signs[range(len(x)), labels] = -1
    margins = np.maximum(0, 1 + signs * x)
    if call.layer.hinge_loss_param.norm == HingeLossParameter.L2:
        margins = margins * margins
    return np.array(margins.sum() / len(x))


@rule("MultinomialLogisticLoss")
def _multinomial_logistic_loss(call: Call) -> Array:
    x = call.x.reshape(len(call.x), -1)
    labels = call.bottoms[1].reshape(-1, 1).astype(np.int64)
    chosen = np.maximum(_chosen(x[..., None], labels), _LOG_THRESHOLD)
    return np.array(-np.log(chosen).sum() / len(x))


@rule("ContrastiveLoss")
def _contrastive_loss(call: Call) -> Array:
    p = call.layer.contrastive_loss_param
    first, second, similar = (bottom.reshape(len(bottom), -1) for bottom in call.bottoms)
    squares: Array = ((first - second) ** 2).sum(1)
    apart: Array
    if p.legacy_version:
        apart = np.maximum(p.margin - squares, 0)
    else:
        apart = np.maximum(p.margin - np.sqrt(squares), 0) ** 2
    is_similar = similar[:, 0].astype(np.int64) != 0
    total = squares[is_similar].sum() + apart[~is_similar].sum()
    return np.array(total / len(first) / 2)
