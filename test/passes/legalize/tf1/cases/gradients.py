"""Gradients: of elements, parts, pools, convolutions, normalizations and images."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(11)

    def floats(*shape: int, dtype: type[Any] = np.float32) -> Any:
        return random.normal(size=shape).astype(dtype)

    def gradients(name: str, y: Any, *xs: Any, shift: float = 0) -> None:
        # Elements have gradients of their own; none are negative, so that sums do not cancel.
        weights = tf.cast(tf.range(tf.size(y)) * 7 % 11 + 1, y.dtype)
        found = tf.gradients(tf.reshape(y, [-1]) * weights, list(xs))
        for number, gradient in enumerate(found):
            record.case(f"{name}_{number}", gradient + shift if shift else gradient)

    _elements(record, gradients, floats)
    _parts(record, gradients, floats)
    _windows(record, gradients, floats)
    _statistics(record, gradients, floats)


def _elements(record: Recorder, gradients: Any, floats: Any) -> None:
    nn = tf.nn
    x = record.input(floats(3, 4) * 2)
    positive = tf.abs(x) + 0.5
    gradients("relu6", nn.relu6(x * 4), x)
    gradients("tanh", tf.tanh(x / 4), x)
    functions = [tf.sigmoid, nn.relu, nn.elu, nn.selu, nn.softplus, nn.softsign]
    for function in (*functions, nn.leaky_relu, nn.softmax, nn.log_softmax, tf.sin, tf.math.erf):
        gradients(function.__name__, function(x), x)
    for function in (tf.sqrt, tf.math.rsqrt, tf.math.reciprocal, tf.math.log):
        gradients(function.__name__, function(positive), x)
    record.case("InvGrad", raw.InvGrad(y=x, dy=x))
    half = record.input(floats(3, 4, dtype=np.float16))
    gradients("half", tf.tanh(half), half)
    double = record.input(floats(3, 4, dtype=np.float64))
    gradients("double", tf.nn.elu(double), double)


def _parts(record: Recorder, gradients: Any, floats: Any) -> None:
    x = record.input(floats(3, 5), [3, 5])
    gradients("slice", x[::-1, 1:4:2], x)
    gradients("masks", x[1, tf.newaxis, ..., 2:], x)
    gradients("tile", tf.tile(x, [2, 3]), x)
    for mode in ("REFLECT", "SYMMETRIC"):
        gradients(f"pad_{mode}", tf.pad(x, [[1, 2], [0, 3]], mode), x)
    gradients("bias", tf.nn.bias_add(tf.ones([2, 3, 5]), x[0]), x)
    first = raw.BiasAddGrad(out_backprop=tf.reshape(tf.tile(x, [2, 2]), [2, 3, 2, 5]))
    record.case("bias_channels_last", first)
    dy = tf.reshape(tf.tile(x, [2, 2]), [2, 3, 2, 5])
    record.case("bias_channels_first", raw.BiasAddGrad(out_backprop=dy, data_format="NCHW"))
    gradients("broadcast", x * x[:1] + x[:, :1], x)
    axes = raw.BroadcastGradientArgs(s0=[3, 1, 1], s1=[5, 1])
    record.case("broadcast_first", axes.r0)
    record.case("broadcast_second", axes.r1)
    for kind in ("Sum", "Mean", "SqrtN"):
        function = getattr(raw, f"SparseSegment{kind}Grad")
        rows = {"indices": [0, 3, 1, 3], "segment_ids": [0, 0, 1, 2], "output_dim0": 5}
        record.case(f"segments_{kind}", function(grad=x, **rows))


def _windows(record: Recorder, gradients: Any, floats: Any) -> None:
    image = floats(2, 5, 6, 4)
    x = record.input(image, [None, None, None, 4])
    known = record.input(abs(image), [2, 5, 6, 4])
    ties = record.input(image.round(), [None, None, None, 4])
    volume = record.input(floats(1, 3, 4, 5, 2), [None, None, None, None, 2])
    for padding in ("SAME", "VALID"):
        for size, stride in ((3, 2), (2, 3)):
            suffix = f"{size}_{stride}_{padding}"
            gradients(f"max_{suffix}", tf.nn.max_pool2d(ties, size, stride, padding), ties)
            gradients(f"mean_{suffix}", tf.nn.avg_pool2d(x, size, stride, padding), x)
        for in_batch in (False, True):
            best = tf.nn.max_pool_with_argmax(
                x, 3, 2, padding, include_batch_in_index=in_batch
            ).output
            gradients(f"places_{padding}_{in_batch:d}", best, x)
        inner = tf.gradients(tf.square(tf.nn.max_pool2d(tf.tanh(x), 3, 2, padding)), x)[0]
        gradients(f"second_{padding}", inner, x)
        weights = tf.constant(abs(floats(3, 2, 4, 6)))
        y = tf.nn.conv2d(known, weights, 2, padding)
        gradients(f"conv_{padding}", y, known, weights)
        weights = tf.constant(abs(floats(3, 2, 4, 2)))
        y = tf.nn.depthwise_conv2d(known, weights, [1, 2, 2, 1], padding)
        gradients(f"depthwise_{padding}", y, known, weights)
        weights = tf.constant(abs(floats(2, 2, 1, 2, 3)))
        y = tf.nn.conv3d(volume, weights, [1, 1, 2, 1, 1], padding)
        gradients(f"conv3_{padding}", y, volume, weights)
    gradients("max3", tf.nn.max_pool3d(volume, 2, [1, 2, 1], "SAME"), volume)
    gradients("mean3", tf.nn.avg_pool3d(volume, 2, [1, 2, 1], "SAME"), volume)
    pads = [[0, 0], [1, 2], [0, 1], [0, 0]]
    weights = tf.constant(abs(floats(3, 3, 4, 2)))
    gradients("conv_pads", tf.nn.conv2d(known, weights, 2, pads), known, weights)
    for function in ("bilinear", "nearest_neighbor", "bicubic"):
        resize = getattr(tf.compat.v1.image, f"resize_{function}")
        for corners, half in ((True, False), (False, True)):
            y = resize(x, [9, 7], align_corners=corners, half_pixel_centers=half)
            gradients(f"{function}_{corners:d}{half:d}", y, x)


def _statistics(record: Recorder, gradients: Any, floats: Any) -> None:
    x = record.input(floats(2, 3, 4, 5), [None, None, None, 5])
    scale, offset = (record.input(floats(5), [5]) for _ in range(2))
    for training in (False, True):
        given = [None] * 2 if training else [tf.constant(floats(5)), tf.constant(floats(5) ** 2)]
        y = tf.compat.v1.nn.fused_batch_norm(x, scale, offset, *given, is_training=training)[0]
        # Differences of sums: errors are small only beside the largest of them.
        gradients(f"norm_{training:d}", y, x, scale, offset, shift=8)
    gradients("neighbors", tf.nn.local_response_normalization(x, 2, 1.5, 0.3, 0.6), x)
