"""
Random models of Keras, with what Keras gives for them.

    python -m fuzz.make_in_keras FOLDER FIRST COUNT

It runs in a Python that has Keras 3 and needs nothing of this project. For each seed there are
`SEED.keras` (or `SEED.h5`) and `SEED.npz` with the inputs (`in/0`, ...) and outputs (`out/0`, ...),
in the order of the model, or `SEED.no` with what Keras says against it. Where Keras refuses a
layer, another one is drawn: `SEED.drawn` has a line for each that it refused.
"""

# Keras is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "numpy")
warnings.simplefilter("ignore")

import keras  # noqa: E402
from keras import layers as L  # noqa: E402
from keras import ops  # noqa: E402
from keras.src.applications.convnext import LayerScale  # noqa: E402

ACTIVATIONS = (
    "linear relu relu6 tanh sigmoid softplus softsign elu selu gelu silu hard_sigmoid hard_silu "
    "leaky_relu log_sigmoid exponential mish softmax log_softmax celu glu hard_tanh hard_shrink "
    "soft_shrink squareplus tanh_shrink threshold sparse_plus sparsemax sparse_sigmoid"
).split()
PLAIN = ACTIVATIONS[:13]


class Maker:
    """A model that grows: tensors without the batch's dimension are [size...]."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.inputs: list[Any] = []
        self.batch = self.rng.randint(1, 3)
        self.is_integer: dict[int, int] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.refused: list[str] = []

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def input(self, shape: tuple[int, ...], most: int = 0) -> Any:
        """An input, of numbers below `most` if it is given."""
        x = keras.Input(shape, dtype="int32" if most else "float32")
        self.is_integer[len(self.inputs)] = most
        self.inputs.append(x)
        self.shapes.append(shape)
        return x

    def activation(self, *, wide: bool = False) -> str:
        return self.rng.choice(ACTIVATIONS if wide else PLAIN)

    def feeds(self) -> list[Any]:
        found: list[Any] = []
        for k, shape in enumerate(self.shapes):
            full = (self.batch, *shape)
            if most := self.is_integer[k]:
                found.append(self.numbers.integers(0, most, full).astype(np.int32))
            else:
                found.append(self.numbers.normal(size=full).astype(np.float32))
        return found


# Layers by the rank of their input without the batch


def dense(m: Maker, x: Any) -> Any:
    kind = m.rng.random()
    if kind < 0.7 or len(x.shape) != 3:
        layer = L.Dense(m.rng.randint(1, 7), m.activation(), use_bias=m.chance(0.7))
        return layer(x)
    equation, shape, bias = m.rng.choice(
        [("abc,cde->abde", (3, 2), "de"), ("abc,cd->abd", (None, 5), "d"), ("abc,bcd->ad", 4, None)]
    )
    return L.EinsumDense(equation, output_shape=shape, bias_axes=bias, activation=m.activation())(x)


def activation(m: Maker, x: Any) -> Any:
    name = m.activation(wide=True)
    if name == "glu" and x.shape[-1] % 2:
        name = "relu"
    choices = [
        lambda: L.Activation(name),
        lambda: L.Activation(name),
        lambda: L.ReLU(
            max_value=m.rng.choice([None, 2.0]),
            negative_slope=m.rng.choice([0.0, 0.2]),
            threshold=m.rng.choice([0.0, 0.5]),
        ),
        lambda: L.LeakyReLU(negative_slope=0.15),
        lambda: L.ELU(alpha=1.5),
        lambda: L.PReLU(
            alpha_initializer="uniform",
            shared_axes=[1] if len(x.shape) > 2 and m.chance(0.5) else None,
        ),
        lambda: L.Softmax(axis=m.rng.choice([-1, *range(1, len(x.shape))])),
        lambda: L.Dropout(0.3),
        lambda: L.GaussianNoise(0.3),
        lambda: L.ActivityRegularization(0.1),
    ]
    return m.rng.choice(choices)()(x)


def normalization(m: Maker, x: Any) -> Any:
    rank = len(x.shape)
    choices: list[Callable[[], Any]] = [
        lambda: L.BatchNormalization(
            axis=m.rng.choice([-1, m.rng.randint(1, rank - 1)]),
            scale=m.chance(0.7),
            center=m.chance(0.7),
        ),
        lambda: L.LayerNormalization(
            axis=m.rng.choice([-1, rank - 1, list(range(1, rank))]),
            scale=m.chance(0.7),
            center=m.chance(0.7),
        ),
        lambda: L.RMSNormalization(axis=-1),
        lambda: L.UnitNormalization(axis=m.rng.choice([-1, list(range(1, rank))])),
    ]
    groups = [k for k in range(1, x.shape[-1] + 1) if x.shape[-1] % k == 0]
    if rank > 2:
        choices.append(lambda: L.GroupNormalization(m.rng.choice([*groups, -1])))
    choices.append(lambda: L.Normalization(axis=-1, mean=0.4, variance=2.5, invert=m.chance(0.3)))
    choices.append(lambda: L.Rescaling(1.5, offset=-0.25))
    choices.append(lambda: LayerScale(0.5, x.shape[-1]))
    return m.rng.choice(choices)()(x)


def shaped(m: Maker, x: Any) -> Any:
    sizes = list(x.shape[1:])
    if len(sizes) == 1:
        choices = [lambda: L.RepeatVector(m.rng.randint(1, 4)), lambda: L.Reshape((-1, 1))]
    else:
        order = m.rng.sample(range(1, len(sizes) + 1), len(sizes))
        choices = [
            lambda: L.Permute(order),
            lambda: L.Flatten(data_format=m.rng.choice(["channels_last", "channels_first"])),
            lambda: L.Reshape((sizes[0], -1)),
        ]
    return m.rng.choice(choices)()(x)


def merged(m: Maker, x: Any) -> Any:
    y = m.input(tuple(x.shape[1:])) if m.chance(0.5) else L.Dense(x.shape[-1])(x)
    kinds = [L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum]
    choices: list[Callable[[], Any]] = [
        lambda: m.rng.choice(kinds)()([x, y]),
        lambda: L.Concatenate(axis=m.rng.choice([-1, 1]))([x, y]),
    ]
    if len(x.shape) == 3:
        axes = m.rng.choice([1, 2, (1, 1), (2, 2)])
        choices.append(lambda: L.Dot(axes, normalize=m.chance(0.4))([x, y]))
    if len(x.shape) == 2:
        choices.append(lambda: L.Dot(1, normalize=m.chance(0.4))([x, y]))
    return m.rng.choice(choices)()


def sequence(m: Maker, x: Any) -> Any:
    """[steps, features]"""
    steps, count = x.shape[1:]
    causal = m.rng.choice(["valid", "same", "causal"])
    size = m.rng.randint(1, min(3, steps))
    dilation = m.rng.choice([1, 1, 2]) if (size - 1) * 2 < steps else 1
    strides = m.rng.choice([1, 2]) if dilation == 1 else 1
    window = {"padding": m.rng.choice(["valid", "same"]), "strides": m.rng.choice([None, 1, 2])}
    groups = m.rng.choice([k for k in range(1, count + 1) if count % k == 0])
    choices: list[Callable[[], Any]] = [
        lambda: L.Conv1D(
            groups * m.rng.randint(1, 3),
            size,
            strides,
            padding=causal,
            dilation_rate=dilation,
            groups=groups,
            activation=m.activation(),
        ),
        lambda: L.SeparableConv1D(3, size, strides, padding=causal, depth_multiplier=2),
        lambda: L.DepthwiseConv1D(size, strides, padding=window["padding"], depth_multiplier=2),
        lambda: L.Conv1DTranspose(3, size, m.rng.choice([1, 2]), padding=window["padding"]),
        lambda: L.MaxPooling1D(size, **window),
        lambda: L.AveragePooling1D(size, **window),
        lambda: L.GlobalAveragePooling1D(keepdims=m.chance(0.3)),
        lambda: L.GlobalMaxPooling1D(keepdims=m.chance(0.3)),
        lambda: L.ZeroPadding1D(m.rng.choice([1, (0, 2)])),
        lambda: L.UpSampling1D(2),
        lambda: L.TimeDistributed(L.Dense(3, m.activation())),
        lambda: L.SpatialDropout1D(0.2),
    ]
    if steps > 2:
        choices.append(lambda: L.Cropping1D(m.rng.choice([1, (0, 2)])))
    if hasattr(L, "AdaptiveMaxPooling1D"):
        sized = m.rng.choice([1, 2, 3])
        choices.append(
            lambda: m.rng.choice([L.AdaptiveMaxPooling1D, L.AdaptiveAveragePooling1D])(sized)
        )
    return m.rng.choice(choices)()(x)


def cell(m: Maker) -> Any:
    units = m.rng.randint(1, 5)
    common = {"use_bias": m.chance(0.7), "bias_initializer": "uniform"}
    gates = {"recurrent_activation": m.rng.choice(["sigmoid", "hard_sigmoid", "tanh"])}
    kind = m.rng.choice(["LSTM", "GRU", "SimpleRNN"])
    if kind == "LSTM":
        return L.LSTMCell(units, activation=m.activation(), **common, **gates)
    if kind == "GRU":
        return L.GRUCell(units, activation="tanh", reset_after=m.chance(0.5), **common, **gates)
    return L.SimpleRNNCell(units, activation=m.activation(), **common)


def recurrent(m: Maker, x: Any) -> Any:
    """RNNs of all forms, with masks at times."""
    if m.chance(0.3):
        x = L.Masking(mask_value=m.rng.choice([0.0, 1.0]))(ops.round(x) if m.chance(0.5) else x)
    common = {
        "return_sequences": m.chance(0.5),
        "go_backwards": m.chance(0.3),
        "unroll": m.chance(0.2),
    }
    kind = m.rng.choice(["LSTM", "GRU", "SimpleRNN", "RNN", "stacked"])
    units, bias = m.rng.randint(1, 5), {"bias_initializer": "uniform"}
    if kind == "LSTM":
        gate = m.rng.choice(["sigmoid", "hard_sigmoid"])
        layer = L.LSTM(units, recurrent_activation=gate, **bias, **common)
    elif kind == "GRU":
        layer = L.GRU(units, reset_after=m.chance(0.5), **bias, **common)
    elif kind == "SimpleRNN":
        layer = L.SimpleRNN(units, activation=m.activation(), **bias, **common)
    elif kind == "RNN":
        zeros = m.chance(0.3) and not common["unroll"]
        layer = L.RNN(cell(m), zero_output_for_mask=zeros, **common)
    else:
        layer = L.RNN([cell(m) for _ in range(m.rng.randint(1, 3))], **common)
    if m.chance(0.3) and kind != "stacked":
        mode = m.rng.choice(["concat", "sum", "mul", "ave"])
        # Where a mask does not hold, unrolled ones give zeros with TensorFlow and PyTorch alone.
        layer.unroll = False
        layer = L.Bidirectional(layer, merge_mode=mode)
    elif m.chance(0.2):
        layer.return_state = True
        y, *states = layer(x)
        return (
            y
            if m.chance(0.5)
            else L.Concatenate()([L.Flatten()(y), *states])
            if kind in ("LSTM", "GRU", "SimpleRNN")
            else y
        )
    return layer(x)


def attention(m: Maker, x: Any) -> Any:
    """Attention of [steps, features] to itself or to another sequence."""
    other = x if m.chance(0.4) else m.input((m.rng.randint(1, 5), x.shape[-1]))
    keys = other if m.chance(0.6) else L.Dense(x.shape[-1])(other)
    causal = {"use_causal_mask": True} if m.chance(0.3) else {}
    if m.chance(0.3):
        x = L.Masking()(ops.relu(x))
    kind = m.rng.choice(["multi", "multi", "group", "dot", "concat", "additive"])
    if kind == "multi":
        layer = L.MultiHeadAttention(
            m.rng.randint(1, 3),
            m.rng.randint(1, 4),
            value_dim=m.rng.choice([None, 3]),
            output_shape=m.rng.choice([None, 5]),
            use_bias=m.chance(0.7),
            bias_initializer="uniform",
        )
        if m.chance(0.3) and not causal:
            y, scores = layer(x, other, keys, return_attention_scores=True)
            return L.Concatenate()([L.Flatten()(y), L.Flatten()(scores)])
        return layer(x, other, keys, **causal)
    if kind == "group":
        return L.GroupQueryAttention(m.rng.randint(1, 4), 4, m.rng.choice([1, 2, 4]))(
            x, other, keys, **causal
        )
    if kind == "additive":
        return L.AdditiveAttention(use_scale=m.chance(0.5))([x, other, keys], **causal)
    layer = L.Attention(use_scale=m.chance(0.5), score_mode=kind)
    return layer([x, other] if m.chance(0.5) else [x, other, keys], **causal)


def image(m: Maker, x: Any) -> Any:
    """[rows, columns, channels]"""
    rows, columns, count = x.shape[1:]
    size = [m.rng.randint(1, min(3, k)) for k in (rows, columns)]
    padding = m.rng.choice(["valid", "same"])
    strides = m.rng.choice([1, 2, (2, 1)])
    dilation = 1
    if m.chance(0.3) and 2 * max(size) - 1 <= min(rows, columns):
        strides, dilation = 1, 2
    groups = m.rng.choice([k for k in range(1, count + 1) if count % k == 0])
    window = {"padding": padding, "strides": m.rng.choice([None, 1, 2])}
    both = m.rng.choice([1, 2])
    mode = m.rng.choice(["nearest", "bilinear"])
    choices: list[Callable[[], Any]] = [
        lambda: L.Conv2D(
            groups * m.rng.randint(1, 3),
            size,
            strides,
            padding,
            dilation_rate=dilation,
            groups=groups,
            activation=m.activation(),
        ),
        lambda: L.DepthwiseConv2D(size, both, padding, depth_multiplier=m.rng.choice([1, 2])),
        lambda: L.SeparableConv2D(4, size, both, padding, depth_multiplier=m.rng.choice([1, 2])),
        lambda: L.Conv2DTranspose(3, size, strides if dilation == 1 else 1, padding),
        lambda: L.MaxPooling2D(size, **window),
        lambda: L.AveragePooling2D(size, **window),
        lambda: L.GlobalAveragePooling2D(keepdims=m.chance(0.3)),
        lambda: L.GlobalMaxPooling2D(keepdims=m.chance(0.3)),
        lambda: L.ZeroPadding2D(m.rng.choice([1, (1, 2), ((0, 1), (2, 0))])),
        lambda: L.UpSampling2D(m.rng.choice([2, (1, 3)]), interpolation=mode),
        lambda: L.Resizing(m.rng.randint(1, 7), m.rng.randint(1, 7), interpolation=mode),
        lambda: L.CenterCrop(max(rows - 1, 1), max(columns - 2, 1)),
        lambda: L.SpatialDropout2D(0.2),
        lambda: L.TimeDistributed(L.LSTM(3)),
        lambda: L.RandomFlip(),
    ]
    if min(rows, columns) > 2:
        choices.append(lambda: L.Cropping2D(m.rng.choice([1, (1, 0), ((0, 1), (1, 1))])))
    if hasattr(L, "AdaptiveMaxPooling2D"):
        kinds = [L.AdaptiveMaxPooling2D, L.AdaptiveAveragePooling2D]
        choices.append(lambda: m.rng.choice(kinds)(m.rng.choice([1, 2, (2, 3)])))
    return m.rng.choice(choices)()(x)


def volume(m: Maker, x: Any) -> Any:
    """[depth, rows, columns, channels]"""
    padding = m.rng.choice(["valid", "same"])
    size = m.rng.randint(1, min(2, *x.shape[1:4]))
    choices: list[Callable[[], Any]] = [
        lambda: L.Conv3D(3, size, m.rng.choice([1, 2]), padding, activation=m.activation()),
        lambda: L.Conv3DTranspose(2, size, m.rng.choice([1, 2]), padding),
        lambda: L.MaxPooling3D(size, padding=padding),
        lambda: L.AveragePooling3D(size, padding=padding),
        lambda: L.GlobalAveragePooling3D(),
        lambda: L.ZeroPadding3D(1),
        lambda: L.UpSampling3D(2),
        lambda: L.ConvLSTM2D(2, size, padding=padding, return_sequences=m.chance(0.5)),
        lambda: L.TimeDistributed(L.Conv2D(2, size, padding=padding)),
    ]
    return m.rng.choice(choices)()(x)


def function(m: Maker, x: Any) -> Any:
    """Functions of `keras.ops`."""
    rank = len(x.shape)
    axis = m.rng.choice([-1, *range(1, rank)])
    last = x.shape[-1]

    def apart() -> Any:
        """What has no equal values along the axis, whose order depends on the processor."""
        places = ops.cumsum(ops.ones_like(x, "float32"), axis=axis)
        return ops.add(ops.cast(x, "float32"), ops.multiply(places, 0.0123))

    one = m.rng.choice(
        "abs negative square sin cos tanh floor ceil round sign exp arctan relu sigmoid silu erf "
        "expm1 softplus sinh cosh trunc deg2rad rad2deg arcsinh isfinite isnan isinf exp2 fabs "
        "reciprocal logical_not ones_like zeros_like copy stop_gradient isposinf isneginf cbrt "
        "signbit sinc erfc".split()
    )
    # The remainder of a number below zero is the last one: no half, which may be rounded next.
    y = ops.abs(x) + 0.7
    of_positive = m.rng.choice("log log10 log1p log2 rsqrt sqrt arccosh reciprocal".split())
    two = m.rng.choice(
        "add subtract multiply divide true_divide maximum minimum greater less equal not_equal "
        "greater_equal less_equal arctan2 fmax fmin hypot logaddexp logaddexp2 divide_no_nan "
        "heaviside logical_and logical_or logical_xor".split()
    )
    reduction = m.rng.choice(
        "sum mean max min prod var std any all logsumexp amax amin count_nonzero average ptp "
        "median nansum nanmax nanmin nanmean norm".split()
    )
    keep = {} if reduction in ("average",) else {"keepdims": m.chance(0.5)}
    other = x if m.chance(0.3) else ops.roll(x, 1, axis=axis) if m.chance(0.3) else x * 0.5 - 0.2
    choices: list[Callable[[], Any]] = [
        lambda: getattr(ops, one)(x),
        lambda: getattr(ops, one)(x),
        lambda: getattr(ops, of_positive)(y),
        lambda: getattr(ops, two)(x, other),
        lambda: getattr(ops, two)(x, other),
        lambda: getattr(ops, reduction)(x, axis=axis, **keep),
        lambda: getattr(ops, reduction)(x, axis=axis, **keep),
        lambda: ops.floor_divide(x, y),
        lambda: ops.mod(x, y),
        lambda: ops.fmod(x, y),
        lambda: ops.power(y, x),
        lambda: ops.clip(x, -0.5, 0.75),
        lambda: ops.where(ops.greater(x, 0), x, other),
        lambda: ops.cumsum(x, axis=axis),
        lambda: ops.cumprod(x, axis=axis),
        lambda: ops.flip(x, axis=axis),
        lambda: ops.roll(x, m.rng.randint(-2, 3), axis=axis),
        lambda: ops.sort(x, axis=axis),
        lambda: ops.argsort(apart(), axis=axis),
        lambda: ops.argmax(x, axis=axis, keepdims=m.chance(0.3)),
        lambda: ops.argmin(x, axis=axis),
        lambda: ops.top_k(x, max(1, last - 1))[0],
        lambda: ops.transpose(x, [0, *m.rng.sample(range(1, rank), rank - 1)]),
        lambda: ops.swapaxes(x, 1, rank - 1),
        lambda: ops.moveaxis(x, 1, -1),
        lambda: ops.expand_dims(x, axis),
        lambda: ops.repeat(x, 2, axis=axis),
        lambda: ops.tile(x, [1, *[m.rng.randint(1, 2) for _ in range(rank - 1)]]),
        lambda: ops.concatenate([x, other], axis=axis),
        lambda: ops.stack([x, other], axis=axis),
        lambda: ops.hstack([x, other]),
        lambda: ops.split(x, x.shape[axis], axis=axis)[0],
        lambda: ops.unstack(x, axis=axis)[-1],
        lambda: ops.take(x, [0, x.shape[axis] - 1, 0], axis=axis),
        lambda: ops.take_along_axis(x, ops.argsort(apart(), axis=axis), axis=axis),
        lambda: ops.pad(x, [(0, 0), *[(m.rng.randint(0, 2), 1)] * (rank - 1)]),
        lambda: x[:, ::2],
        lambda: x[..., -1],
        lambda: x[:, None, 0:1],
        lambda: ops.softmax(x, axis=axis),
        lambda: ops.log_softmax(x, axis=axis),
        lambda: ops.one_hot(ops.cast(ops.abs(x), "int32"), 3),
        lambda: ops.diff(ops.concatenate([x, other], axis=axis), axis=axis),
        lambda: ops.nan_to_num(ops.log(x)),
        lambda: ops.normalize(x, axis=axis),
        lambda: ops.leaky_relu(x, 0.3),
        lambda: ops.gelu(x, approximate=m.chance(0.5)),
        lambda: ops.elu(x, 0.7),
        lambda: ops.celu(x, 0.7),
        lambda: ops.threshold(x, 0.1, -3.0),
        lambda: ops.hard_shrink(x, 0.4),
        lambda: ops.soft_shrink(x, 0.4),
        lambda: ops.full_like(x, 2.5),
        lambda: ops.squeeze(ops.expand_dims(x, 1), 1),
        lambda: ops.cast(ops.cast(x, m.rng.choice(["int32", "bool", "int8"])), "float32"),
        lambda: ops.matmul(x, ops.swapaxes(other, -1, -2)) if rank > 2 else ops.square(x),
        lambda: ops.einsum("...a,...a->...", x, other),
        lambda: ops.tensordot(x, other, axes=[[-1], [-1]])[:, 0] if rank == 2 else ops.abs(x),
        lambda: ops.tril(x) if rank > 2 else ops.abs(x),
        lambda: ops.triu(x, 1) if rank > 2 else ops.abs(x),
        lambda: ops.diagonal(x, axis1=1, axis2=2) if rank > 2 else ops.abs(x),
        lambda: ops.trace(x, axis1=1, axis2=2) if rank > 3 else ops.abs(x),
        lambda: ops.layer_normalization(x, axis=-1),
        lambda: ops.rms_normalization(x, axis=-1),
        lambda: ops.moments(x, axes=[axis])[m.rng.randint(0, 1)],
        lambda: (
            ops.broadcast_to(ops.expand_dims(x, 1), (m.batch, 2, *x.shape[1:])) if False else x + 1
        ),
        lambda: ops.bitwise_and(ops.cast(x * 4, "int32"), 3),
        lambda: ops.bitwise_xor(ops.cast(x * 4, "int32"), 5),
        lambda: ops.left_shift(ops.cast(ops.abs(x), "int32"), 2),
        lambda: ops.right_shift(ops.cast(x * 9, "int32"), 1),
    ]
    found = m.rng.choice(choices)()
    return found if found.dtype == "float32" else ops.cast(found, "float32")


def embedding(m: Maker) -> Any:
    """Ids to vectors, with a mask at times, and what takes it."""
    size = m.rng.randint(2, 9)
    ids = m.input((m.rng.randint(1, 6),), size)
    x = L.Embedding(size, m.rng.randint(1, 6), mask_zero=m.chance(0.5))(ids)
    choices: list[Callable[[], Any]] = [
        lambda: x,
        lambda: L.GlobalAveragePooling1D()(x),
        lambda: recurrent_of_masked(m, x),
        lambda: L.TimeDistributed(L.Dense(2))(x),
        lambda: L.MultiHeadAttention(2, 3)(x, x),
        lambda: L.Attention()([x, x]),
        lambda: L.Softmax(axis=1)(x),
        lambda: L.LSTM(3)(L.Concatenate()([x, L.Dense(2)(x)])),
        lambda: L.CategoryEncoding(size, m.rng.choice(["multi_hot", "count"]))(ids),
    ]
    return m.rng.choice(choices)()


def recurrent_of_masked(m: Maker, x: Any) -> Any:
    sequences = {"return_sequences": m.chance(0.5)}
    layer = m.rng.choice([L.LSTM, L.GRU, L.SimpleRNN])(m.rng.randint(1, 4), **sequences)
    return L.Bidirectional(layer)(x) if m.chance(0.4) else layer(x)


ANY = [dense, activation, normalization, shaped, merged, function, function]
BY_RANK = {
    2: ANY,
    3: [*ANY, sequence, sequence, sequence, recurrent, recurrent, attention, attention],
    4: [*ANY, image, image, image, image, image],
    5: [*ANY, volume, volume, volume],
}


def model_of(m: Maker) -> Any:
    """A model of a few layers."""
    shapes = {1: (1, 6), 2: (2, 6), 3: (3, 6), 4: (3, 4)}
    rank = m.rng.choice([1, 2, 2, 2, 3, 3, 3, 4])
    low, high = shapes[rank]
    if m.chance(0.12):
        x = embedding(m)
    else:
        x = m.input(tuple(m.rng.randint(low, high) for _ in range(rank)))
    for _ in range(m.rng.choice([1, 1, 2, 3, 5])):
        if len(x.shape) not in BY_RANK or np.prod(x.shape[1:]) > 4000:
            break
        layer = m.rng.choice(BY_RANK[len(x.shape)])
        try:
            x = layer(m, x)
        except (ValueError, TypeError, IndexError, AttributeError, NotImplementedError) as error:
            reason = str(error).strip().partition("\n")[0]
            m.refused.append(f"{layer.__name__}: {type(error).__name__}: {reason}")
    if any(x is given for given in m.inputs):
        x = L.Dense(3)(x)
    inner = keras.Model(m.inputs, x)
    if m.chance(0.15):
        outer = [keras.Input(given.shape[1:], dtype=given.dtype) for given in m.inputs]
        y = inner(outer if len(outer) > 1 else outer[0])
        return keras.Model(outer, L.Activation("tanh")(y))
    return inner


def randomized(m: Maker, model: Any) -> None:
    """Weights of which none is special."""
    for variable in model.variables:
        if "seed" in variable.path or variable.dtype.startswith(("int", "uint")):
            continue
        value = m.numbers.normal(scale=0.4, size=variable.shape)
        if "variance" in variable.path:
            value = np.abs(value) + 0.3
        variable.assign(value.astype(np.float32))


_KEPT = ("TimeDistributed", "MultiHeadAttention", "GroupedQueryAttention")
"""Layers that are not quantized: Keras leaves scales out, or quantizes what is inside."""


def make(seed: int, folder: Path) -> None:
    """One model with its inputs and outputs."""
    keras.utils.set_random_seed(seed)
    keras.backend.clear_session()
    m = Maker(seed)
    model = model_of(m)
    if m.refused:
        (folder / f"{seed}.drawn").write_text("\n".join(m.refused))
    randomized(m, model)
    is_plain = all(type(layer).__name__ not in _KEPT for layer in model._flatten_layers())
    if m.chance(0.15) and is_plain:
        mode = m.rng.choice(["int8", "int8", "int4"])
        model.quantize(mode)
    feeds = m.feeds()
    found = model(feeds if len(feeds) > 1 else feeds[0], training=False)
    outputs = found if isinstance(found, list | tuple) else [found]
    arrays = {f"in/{k}": feed for k, feed in enumerate(feeds)}
    # Arrays of numpy may be wider than what Keras says of them.
    types = [np.dtype(output.dtype) for output in model.outputs]
    arrays |= {f"out/{k}": np.asarray(outputs[k], types[k]) for k in range(len(types))}
    path = folder / f"{seed}.{'h5' if m.chance(0.1) else 'keras'}"
    model.save(path)
    np.savez(folder / f"{seed}.npz", **arrays)


def main(folder: str, first: int, count: int) -> None:
    """Make models of some seeds."""
    for seed in range(first, first + count):
        try:
            make(seed, Path(folder))
        except Exception as error:  # whatever Keras says
            (Path(folder) / f"{seed}.no").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
