"""Recurrent layers: steps over time, with states that a mask holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.linear import convolution
from lowerdeck.passes.legalize.common.recurrent import State, parts, run_steps, times
from lowerdeck.passes.legalize.keras.activation import activated
from lowerdeck.passes.legalize.keras.convolution import first_kernel, window_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat

Step = Callable[[KerasLegalizer, TensorValue, State], State]
"""The next states, of which the first is the output, for what comes from the input."""


@legalizes("LSTM")
def legalize_lstm(builder: KerasLegalizer) -> Results:
    """Gates i, f, c, o side by side."""
    x, recurrent, units = _prepared(builder, 4)

    def step(inner: KerasLegalizer, now: TensorValue, states: State) -> State:
        hidden, cell = states
        gates = parts(now + times(hidden, recurrent), 4, Expr.const(units))
        return _lstm(builder, inner, gates, cell)

    return _run(builder, x, step, 2, [units])


def _lstm(
    builder: KerasLegalizer, inner: KerasLegalizer, gates: Sequence[TensorValue], cell: TensorValue
) -> State:
    """The hidden state and the cell after a step."""
    kind, outer = builder.config("recurrent_activation", "sigmoid"), builder.config("activation")
    i, f, o = (activated(inner, gates[k], kind) for k in (0, 1, 3))
    cell = f * cell + i * activated(inner, gates[2], outer)
    return o * activated(inner, cell, outer), cell


@legalizes("GRU")
def legalize_gru(builder: KerasLegalizer) -> Results:
    """Gates z, r, h side by side; a bias of two rows if the state is reset after its product."""
    reset_after = bool(builder.config("reset_after", True))
    x, recurrent, units = _prepared(builder, 3, second_bias=reset_after)
    kind, outer = builder.config("recurrent_activation", "sigmoid"), builder.config("activation")
    bias = builder.weight("bias")
    size = Expr.const(units)
    second = None
    if reset_after and bias is not None:
        second = TensorValue(builder, bias).pick(0, 1).value
    halves = builder.slice_axis(recurrent, 1, 0, 2 * units)
    candidate = builder.slice_axis(recurrent, 1, 2 * units, units)

    def step(inner: KerasLegalizer, now: TensorValue, states: State) -> State:
        (hidden,) = states
        xs = parts(now, 3, size)
        if reset_after:
            product = times(hidden, recurrent)
            if second is not None:
                product = product + TensorValue(inner, second)
            z, r, h = parts(product, 3, size)
            z, r = activated(inner, xs[0] + z, kind), activated(inner, xs[1] + r, kind)
            fresh = activated(inner, xs[2] + r * h, outer)
        else:
            z, r = parts(times(hidden, halves), 2, size)
            z, r = activated(inner, xs[0] + z, kind), activated(inner, xs[1] + r, kind)
            fresh = activated(inner, xs[2] + times(r * hidden, candidate), outer)
        return (z * hidden + (1 - z) * fresh,)

    return _run(builder, x, step, 1, [units])


@legalizes("SimpleRNN")
def legalize_simple(builder: KerasLegalizer) -> Results:
    """One product of the input, one of the state."""
    x, recurrent, units = _prepared(builder, 1)
    kind = builder.config("activation")

    def step(inner: KerasLegalizer, now: TensorValue, states: State) -> State:
        return (activated(inner, now + times(states[0], recurrent), kind),)

    return _run(builder, x, step, 1, [units])


def _prepared(
    builder: KerasLegalizer, gates: int, *, second_bias: bool = False
) -> tuple[TensorValue, SSAValue, int]:
    """The products of all steps of the input, the recurrent weights, and the number of units."""
    builder.ignore("use_bias")
    units = builder.integer("units")
    x = builder.x()
    builder.require_rank(x.value, 3, "the input")
    builder.require_shape("kernel", x.dims[2].value, gates * units)
    builder.require_shape("recurrent_kernel", units, gates * units)
    bias = builder.weight("bias")
    total = times(x, builder.require_weight("kernel"))
    if bias is not None:
        builder.require_shape("bias", *([2] if second_bias else []), gates * units)
        value = TensorValue(builder, bias)
        total = total + (value.pick(0, 0) if second_bias else value)
    return total, builder.require_weight("recurrent_kernel"), units


@legalizes("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def legalize_conv_lstm(builder: KerasLegalizer) -> Results:
    """An LSTM whose products are convolutions; that of the state is padded to its size."""
    builder.ignore("use_bias")
    count = int(builder.op_type[-2])
    x = builder.input()
    builder.require_rank(x, count + 3, "the input")
    if builder.is_first():
        builder.refuse("channels_first", "channels_last")
    filters = builder.integer("filters")
    sizes, strides = builder.numbers("kernel_size", count), builder.numbers("strides", count)
    dilations = builder.numbers("dilation_rate", count)
    padding = str(builder.config("padding", "valid"))
    dims = dims_of(x)
    images = builder.reshape(x, [dims[0] * dims[1], *dims[2:]])
    images = builder.channels_first(images)
    window = window_of(builder, dims_of(images)[2:], sizes, strides, dilations, padding)
    kernel = first_kernel(builder, builder.require_weight("kernel"))
    value = builder.channels_last(convolution(builder, images, kernel, None, window, 1))
    if (bias := builder.weight("bias")) is not None:
        value = (TensorValue(builder, value) + TensorValue(builder, bias)).value
    spatial = dims_of(value)[1:-1]
    total = TensorValue(builder, builder.reshape(value, [*dims[:2], *dims_of(value)[1:]]))
    recurrent = first_kernel(builder, builder.require_weight("recurrent_kernel"))
    ones = [1] * count

    def step(inner: KerasLegalizer, now: TensorValue, states: State) -> State:
        hidden, cell = states
        image = inner.channels_first(hidden.value)
        own = window_of(inner, dims_of(image)[2:], sizes, ones, ones, "same")
        product = inner.channels_last(convolution(inner, image, recurrent, None, own, 1))
        gates = parts(now + TensorValue(inner, product), 4, Expr.const(filters))
        return _lstm(builder, inner, gates, cell)

    return _run(builder, total, step, 2, [*spatial, filters])


def _run(
    builder: KerasLegalizer,
    total: TensorValue,
    step: Step,
    count: int,
    shape: Sequence[Expr | int],
) -> Results:
    """The steps of [N, T, ...]: all outputs or the last one, and the last states if wanted."""
    batch, steps = total.dims[:2]
    rank = len(total.dims)
    backwards = bool(builder.config("go_backwards", False))
    whole = builder.config("return_sequences", False)
    zeros = bool(builder.config("zero_output_for_mask", False))
    builder.ignore("stateful")
    mask = builder.argument(len(builder.positional()), "mask")
    value = total.transpose([1, 0, *range(2, rank)]).value
    initial = [builder.input(k) for k in range(1, len(builder.positional()))]
    if initial and len(initial) != count:
        builder.refuse(f"{len(initial)} initial states", str(count))
    zero = TensorValue(builder, builder.scalar(0, value)).broadcast([batch, *shape])
    states = initial or [zero.value] * count
    states = [builder.cast(state, element_type(value)) for state in states]
    ones: SSAValue | None = None
    if mask is not None:
        ones = builder.transpose(builder.reshape(mask, dims_of(mask)[:2]), [1, 0])
        # What is returned for a masked step is the last output, which begins with zeros.
        states = [*states, zero.value]

    def one(inner: KerasLegalizer, index: Expr, before: State) -> tuple[State, State]:
        place = steps - 1 - index if backwards else index
        now = TensorValue(inner, value).pick(0, place)
        after = step(inner, now, before[:count])
        if ones is None:
            return after, (after[0],) if whole else ()
        held = TensorValue(inner, ones).pick(0, place)
        held = held.reshape([batch, *[1] * len(shape)]).broadcast([batch, *shape])
        kept = tuple(held.where(a, b) for a, b in zip(after, before, strict=False))
        output = held.where(after[0], before[count])
        shown = held.where(after[0], 0) if zeros else output
        return (*kept, output), (shown,) if whole else ()

    last, outputs = run_steps(builder, steps, states, one)
    if whole:
        result = TensorValue(builder, outputs[0])
        result = result.transpose([1, 0, *range(2, len(result.dims))]).value
    else:
        result = last[0] if mask is None else last[count]
        if ones is not None and zeros:
            held = TensorValue(builder, ones).pick(0, 0 if backwards else steps - 1)
            held = held.reshape([batch, *[1] * len(shape)]).broadcast([batch, *shape])
            result = held.where(TensorValue(builder, result), 0).value
    return [result, *(last[:count] if builder.config("return_state") else [])]


@legalizes("MergeDirections")
def legalize_merge_directions(builder: KerasLegalizer) -> Results:
    """The outputs of both directions, the second turned around if it is a sequence."""
    first, second = builder.x(0), builder.x(1)
    if builder.config("return_sequences"):
        second = TensorValue(builder, builder.flip(second.value, [1]))
    match builder.config("merge_mode"):
        case "concat":
            return [concat([first, second], len(first.dims) - 1).value]
        case "sum":
            return [(first + second).value]
        case "ave":
            return [((first + second) / 2).value]
        case "mul":
            return [(first * second).value]
        case None:
            return [first.value, second.value]
        case mode:
            builder.refuse(f"merge_mode '{mode}'", "concat, sum, ave, mul or none")
