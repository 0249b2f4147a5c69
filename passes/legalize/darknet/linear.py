"""Convolutions, products with weights, and layers that remember."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import TanhOp
from lowerdeck.dialects.core.linear import ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.darknet.shapes import (
    Convolution,
    Shape,
    blur_of,
    conv_lstm_cells,
    crnn_cells,
    image_of,
    integer,
    own_convolution,
    positive,
)
from lowerdeck.dialects.dims import exprs
from lowerdeck.passes.legalize.common.pooling import MAX_TAPS, padded, tap
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.darknet.activation import logistic
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

# Convolutions


@legalizes("convolutional")
def legalize_convolutional(builder: DarknetLegalizer) -> Results:
    """Weights of square windows; with `antialiasing` a blur behind them has the strides."""
    image = image_of(builder.shapes[0])
    convolution = own_convolution(builder.keys, image[0])
    result = builder.convolved(builder.input(), convolution)
    # What follows takes signs alone, which no activation changes.
    is_plain = builder.flag("xnor") and builder.flag("bin_output")
    result = result if is_plain else builder.activated(result, among_channels=True)
    return [blurred(builder, result.value, convolution.result(image))]


def blurred(builder: DarknetLegalizer, x: SSAValue, image: Shape) -> SSAValue:
    """The blur of `antialiasing`: binomial weights of three, or of two with `antialiasing=2`."""
    blur = blur_of(builder.keys, image)
    if blur is None:
        return x
    row = np.array([1, 2, 1] if blur.size == 3 else [1, 1], np.float32)
    weights = np.outer(row, row) / row.sum() ** 2
    kernel = np.broadcast_to(weights, blur.kernel).astype(np.float32)
    return builder.correlated(x, builder.tensor(np.ascontiguousarray(kernel)), blur)


@legalizes("deconvolutional")
def legalize_deconvolutional(builder: DarknetLegalizer) -> Results:
    """A transposed convolution, whose weights are [channels, filters, size, size]."""
    keys = builder.keys
    size, stride = positive(keys, "size", "stride")
    padding = size // 2 if keys["pad"] else integer(keys, "padding")
    bias, *moments = [builder.take() for _ in range(4 if keys["batch_normalize"] else 1)]
    op = ConvTransposeOp(
        builder.input(),
        builder.take(),
        None if moments else bias,
        strides=[stride] * 2,
        dilations=[1, 1],
        pads_begin=[padding] * 2,
        pads_end=[padding] * 2,
        output_padding=[0, 0],
        groups=1,
    )
    result = TensorValue(builder, builder.add(op))
    if moments:
        result = builder.normalized(result.value, bias, moments)
    return [builder.activated(result).value]


@legalizes("local")
def legalize_local(builder: DarknetLegalizer) -> Results:
    """A convolution with weights of its own at each place."""
    keys, shape = builder.keys, builder.layer.result
    size, stride = positive(keys, "size", "stride")
    if size * size > MAX_TAPS:
        builder.refuse(f"size={size}", f"windows of at most {MAX_TAPS} numbers")
    biases, weights = builder.taken(), builder.take()
    filters, height, width = shape
    channels = image_of(builder.shapes[0])[0]
    pads = list(exprs([integer(keys, "pad")] * 2))
    zeros = list(exprs([0, 0]))
    window = Window(exprs([size, size]), [stride] * 2, [1, 1], pads, pads, zeros)
    images = padded(builder, builder.input(), window, builder.scalar(0, f32))
    whole = [builder.batch, *exprs([channels, height, width])]
    offsets = [(row, column) for row in range(size) for column in range(size)]
    taps = stack([tap(builder, images, window, whole, offset) for offset in offsets], 2)
    columns = taps.reshape([builder.batch, channels * size * size, height * width])
    # [places, batch, taps] times [places, taps, filters]
    places = height * width
    factors = builder.reshape(weights, [places, filters, channels * size * size])
    products = builder.add(
        MatmulOp(columns.transpose([2, 0, 1]).value, builder.transpose(factors, [0, 2, 1]))
    )
    result = TensorValue(builder, products).transpose([1, 2, 0])
    total = result.reshape([builder.batch, *shape]) + biases
    return [builder.activated(total).value]


# Products


@legalizes("connected")
def legalize_connected(builder: DarknetLegalizer) -> Results:
    """The numbers of an item times weights."""
    result = builder.activated(builder.connected(builder.row(builder.input())))
    return [result.reshape([builder.batch, *builder.layer.result]).value]


# Layers that remember


@legalizes("rnn")
def legalize_rnn(builder: DarknetLegalizer) -> Results:
    """The state is the sum of what the input and the old state give; its product is the result."""
    (old,) = builder.states
    name = {0: "", 1: "logistic", 2: "loggy"}.get(integer(builder.keys, "logistic"), "")
    own = builder.activated(builder.connected(builder.row(builder.input())))
    state = own + builder.activated(builder.connected(old.value), name)
    state = state + old if builder.flag("shortcut") else state
    result = builder.activated(builder.connected(state.value))
    return [result.reshape([builder.batch, *builder.layer.result]).value, state.value]


@legalizes("gru")
def legalize_gru(builder: DarknetLegalizer) -> Results:
    """Gates z and r; the candidate is a logistic function, and z is how much of the state stays."""
    (old,) = builder.states
    x = builder.row(builder.input())
    x_update, x_reset, x_new = (builder.connected(x) for _ in range(3))
    update = logistic(x_update + builder.connected(old.value))
    reset = logistic(x_reset + builder.connected(old.value))
    new = logistic(x_new + builder.connected((old * reset).value))
    state = update * old + (1 - update) * new
    return [state.value, state.value]


@legalizes("lstm")
def legalize_lstm(builder: DarknetLegalizer) -> Results:
    """Gates f, i, g and o, without peepholes."""
    hidden, memory = builder.states
    x = builder.row(builder.input())
    ahead = [builder.connected(hidden.value) for _ in range(4)]
    f, i, g, o = (part + builder.connected(x) for part in ahead)
    memory = memory * logistic(f) + logistic(i) * apply(TanhOp, g)
    hidden = logistic(o) * apply(TanhOp, memory)
    result = hidden.reshape([builder.batch, *builder.layer.result])
    return [result.value, hidden.value, memory.value]


def _cell(builder: DarknetLegalizer, x: SSAValue, convolution: Convolution) -> TensorValue:
    """A convolution with the layer's activation."""
    return builder.activated(builder.convolved(x, convolution), among_channels=True)


@legalizes("crnn")
def legalize_crnn(builder: DarknetLegalizer) -> Results:
    """As `rnn`, with convolutions."""
    (old,) = builder.states
    cells = crnn_cells(builder.keys, image_of(builder.shapes[0])[0]).parts
    state = _cell(builder, builder.input(), cells["input"])
    state = state + _cell(builder, old.value, cells["self"])
    state = state + old if builder.flag("shortcut") else state
    return [_cell(builder, state.value, cells["output"]).value, state.value]


@legalizes("conv_lstm")
def legalize_conv_lstm(builder: DarknetLegalizer) -> Results:
    """
    An LSTM of convolutions, each with the activation of the layer. With `peephole` the gates see
    the memory, o the new one. What is remembered is limited by `state_constrain`.
    """
    hidden, memory = builder.states
    cells = conv_lstm_cells(builder.keys, image_of(builder.shapes[0])[0]).parts
    see_output: list[SSAValue] = []
    peeped = [_cell(builder, memory.value, cells[name]) for name in ("vf", "vi") if name in cells]
    if "vo" in cells:
        see_output = [builder.take() for _ in cells["vo"].weights]
    sums = [_cell(builder, hidden.value, cells[f"w{gate}"]) for gate in "figo"]
    sums = [
        total + _cell(builder, builder.input(), cells[f"u{gate}"])
        for total, gate in zip(sums, "figo", strict=True)
    ]
    f, i, g, o = sums
    if peeped:
        f, i = f + peeped[0], i + peeped[1]
    memory = memory * logistic(f) + logistic(i) * apply(TanhOp, g)
    if see_output:
        o = o + builder.with_weights(see_output, lambda: _cell(builder, memory.value, cells["vo"]))
    result = logistic(o) * apply(TanhOp, memory)
    limit = abs(integer(builder.keys, "state_constrain"))
    memory = memory.clip(-limit, limit) if limit else memory
    return [result.value, result.value, memory.value]
