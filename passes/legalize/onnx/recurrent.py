"""
LSTM, GRU and RNN: one `core.loop` over time for each direction.

The input is projected for all steps at once, outside of the loop; a step takes its slice by the
loop's `iteration` symbol, from the end for the reverse direction. With `sequence_lens` a step
leaves the state of sequences alone that do not reach it, and their output is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common import activation as formulas
from lowerdeck.passes.legalize.common.recurrent import State, parts, run_steps, times
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

Function: TypeAlias = Callable[[TensorValue], TensorValue]


# Activation functions


@record
class _Kind:
    """An activation function and its parameters; None for one without a default."""

    make: Callable[..., TensorValue]
    defaults: tuple[float | None, ...] = ()


def _affine(x: TensorValue, alpha: float, beta: float) -> TensorValue:
    return x * alpha + beta


def _scaled_tanh(x: TensorValue, alpha: float, beta: float) -> TensorValue:
    return apply(TanhOp, x * beta) * alpha


_FUNCTIONS = {
    "affine": _Kind(_affine, (None, None)),
    "elu": _Kind(formulas.elu, (1.0,)),
    "hardsigmoid": _Kind(formulas.hard_sigmoid, (0.2, 0.5)),
    "leakyrelu": _Kind(formulas.leaky_relu, (0.01,)),
    "relu": _Kind(formulas.relu),
    "scaledtanh": _Kind(_scaled_tanh, (None, None)),
    "sigmoid": _Kind(partial(apply, SigmoidOp)),
    "softplus": _Kind(formulas.softplus),
    "softsign": _Kind(formulas.softsign),
    "tanh": _Kind(partial(apply, TanhOp)),
    "thresholdedrelu": _Kind(formulas.thresholded_relu, (1.0,)),
}


def _functions(
    builder: OnnxLegalizer, defaults: Sequence[str], directions: int
) -> list[list[Function]]:
    """The functions of each direction; those with parameters take them in order."""
    expected = [*defaults] * directions
    names = builder.attrs.strings("activations", default=expected)
    # The default in some schemas is for two directions, whatever the direction.
    names = names if builder.attrs.has("activations") else expected
    alphas = iter(builder.attrs.floats("activation_alpha", default=[]))
    betas = iter(builder.attrs.floats("activation_beta", default=[]))
    clip = builder.attrs.opt_float("clip")
    count = len(defaults)
    if len(names) != len(expected):
        builder.refuse(f"{len(names)} activations", str(len(expected)))
    functions: list[Function] = []
    for name in names:
        if (kind := _FUNCTIONS.get(name.lower())) is None:
            builder.refuse(f"activation '{name}'", f"one of {', '.join(sorted(_FUNCTIONS))}")
        sources = (alphas, betas)
        parameters = [
            next(source, default) for source, default in zip(sources, kind.defaults, strict=False)
        ]
        if None in parameters:
            builder.refuse(f"activation '{name}' without parameters", "alpha and beta")
        # The cell state, argument of the third function of an LSTM, is not bounded: so has
        # ONNX Runtime it, where the specification leaves it open.
        bound = clip if len(functions) % count < 2 else None
        functions.append(_function(kind, parameters, bound))
    return [functions[k : k + count] for k in range(0, len(functions), count)]


def _function(kind: _Kind, parameters: Sequence[float | None], clip: float | None) -> Function:
    """`clip` bounds the argument."""

    def call(x: TensorValue) -> TensorValue:
        x = x if clip is None else x.clip(-clip, clip)
        return kind.make(x, *parameters)

    return call


# The loop


@record
class _Direction:
    """The weights and functions of one direction, and the initial states."""

    w: SSAValue
    """[gates * hidden, input]"""
    r: SSAValue
    """[gates * hidden, hidden]"""
    input_bias: SSAValue | None
    """[gates * hidden]"""
    state_bias: SSAValue | None
    peepholes: SSAValue | None
    states: list[SSAValue]
    functions: list[Function]
    is_reverse: bool


Step: TypeAlias = "Callable[[OnnxLegalizer, TensorValue, State], State]"
"""From the input's projection and the states to the next states; the first one is the output."""


class _Sequence:
    """What all directions share: the input, and the sizes."""

    def __init__(
        self, op: OnnxOp, builder: OnnxLegalizer, gates: int, functions: Sequence[str]
    ) -> None:
        self.op, self.builder, self.gates = op, builder, gates
        has_layout = "layout" in op.schema.attributes
        self.is_batch_major = has_layout and builder.attrs.flag("layout")
        self.lengths = builder.input("sequence_lens")
        x = self._time_major(builder.operand("X"))
        self.time, batch, size = dims_of(x)
        self.batch = self._agreed(batch)
        self.x = x if batch == self.batch else builder.reshape(x, [self.time, self.batch, size])
        self.hidden = dims_of(builder.operand("R"))[2]
        builder.attrs.ignore("hidden_size", "output_sequence")  # the weights and outputs have them
        direction = builder.attrs.string("direction", among=("forward", "reverse", "bidirectional"))
        self.reversals = {"forward": [False], "reverse": [True]}.get(direction, [False, True])
        if (count := dims_of(builder.operand("W"))[0]) != len(self.reversals):
            builder.refuse(f"weights of {count} directions", f"{len(self.reversals)}: {direction}")
        self.functions = _functions(builder, functions, len(self.reversals))

    def _time_major(self, value: SSAValue) -> SSAValue:
        return self.builder.transpose(value, [1, 0, 2]) if self.is_batch_major else value

    def _agreed(self, batch: Expr) -> Expr:
        """The number of sequences: of the input, or of another operand where it is open there."""
        builder, formals = self.builder, {formal.name for formal in self.op.schema.inputs}
        found = [batch]
        for name in ("initial_h", "initial_c"):
            if name in formals and (state := builder.input(name)) is not None:
                found.append(dims_of(state)[0 if self.is_batch_major else 1])
        if self.lengths is not None:
            found.append(dims_of(self.lengths)[0])
        known = sorted({size.value for size in found if size.value is not None})
        if len(known) > 1:
            numbers = " and ".join(map(str, known))
            builder.refuse(f"inputs for {numbers} sequences", "the same number in each")
        return Expr.const(known[0]) if known else batch

    def _own(self, value: SSAValue, index: int) -> SSAValue:
        """The part of a parameter that belongs to one direction."""
        return self.builder.squeeze(self.builder.slice_axis(value, 0, index, 1), [0])

    def direction(self, index: int, states: Sequence[str]) -> _Direction:
        """The parameters of a direction."""
        builder = self.builder
        bias, half = builder.input("B"), self.hidden * self.gates
        own = None if bias is None else self._own(bias, index)
        has_peepholes = any(formal.name == "P" for formal in self.op.schema.inputs)
        peepholes = builder.input("P") if has_peepholes else None
        return _Direction(
            w=self._own(builder.operand("W"), index),
            r=self._own(builder.operand("R"), index),
            input_bias=None if own is None else builder.slice(own, [0], [half]),
            state_bias=None if own is None else builder.slice(own, [half], [half]),
            peepholes=None if peepholes is None else self._own(peepholes, index),
            states=[self._state(name, index) for name in states],
            functions=self.functions[index],
            is_reverse=self.reversals[index],
        )

    def _state(self, name: str, index: int) -> SSAValue:
        builder = self.builder
        if (given := builder.input(name)) is None:
            zero = builder.scalar(0, self.x)
            return builder.broadcast(zero, [self.batch, self.hidden])
        state = self._own(self._time_major(given), index)
        return builder.reshape(state, [self.batch, self.hidden])

    def project(self, w: SSAValue, bias: SSAValue | None) -> SSAValue:
        """x * w^T + bias for all steps: [time, batch, gates * hidden]."""
        builder = self.builder
        rows = builder.reshape(self.x, [product([self.time, self.batch]), dims_of(self.x)[2]])
        result = builder.add(MatmulOp(rows, builder.transpose(w, [1, 0])))
        result = result if bias is None else builder.add(AddOp(result, bias))
        return builder.reshape(result, [self.time, self.batch, dims_of(w)[0]])

    def run(self, direction: _Direction, projected: SSAValue, step: Step) -> list[SSAValue]:
        """The outputs of all steps in order (if they are wanted), and the final states."""

        def one(inner: OnnxLegalizer, number: Expr, before: State) -> tuple[State, State]:
            index = self.time - 1 - number if direction.is_reverse else number
            slice_ = inner.squeeze(inner.slice_axis(projected, 0, index, 1), [0])
            after = step(inner, TensorValue(inner, slice_), before)
            output, after = self._masked(inner, index, before, after)
            return after, (output,) if self.builder.wants(0) else ()

        states, outputs = run_steps(self.builder, self.time, direction.states, one)
        last = [self._of_runs(state) for state in states]
        return [*(self._in_order(output, direction) for output in outputs), *last]

    def _of_runs(self, state: SSAValue) -> SSAValue:
        """A sequence without a step ends with zeros, as in ONNX Runtime, whatever it began with."""
        if self.lengths is None:
            return state
        builder = self.builder
        lengths = builder.cast(builder.reshape(self.lengths, [self.batch, 1]), i64)
        has_run = TensorValue(builder, lengths).gt(0)
        return has_run.where(TensorValue(builder, state), 0).value

    def _in_order(self, output: SSAValue, direction: _Direction) -> SSAValue:
        """The steps of the reverse direction ran from the last one."""
        if not direction.is_reverse:
            return output
        return self.builder.slice(output, [self.time - 1, 0, 0], dims_of(output), [-1, 1, 1])

    def _masked(
        self, inner: OnnxLegalizer, index: Expr, before: State, after: State
    ) -> tuple[TensorValue, State]:
        """Sequences that are over keep their states and give zeros."""
        if self.lengths is None:
            return after[0], after
        lengths = inner.cast(inner.reshape(self.lengths, [self.batch, 1]), i64)
        runs = TensorValue.dim(inner, index).lt(TensorValue(inner, lengths))
        kept = tuple(runs.where(new, old) for new, old in zip(after, before, strict=True))
        return runs.where(after[0], 0), kept

    def results(self, directions: Sequence[Sequence[SSAValue]]) -> Results:
        """The outputs of all directions joined: Y along axis 1, the states along axis 0."""
        columns = [list(values) for values in zip(*directions, strict=True)]
        results: list[SSAValue | None] = [] if self.builder.wants(0) else [None]
        for column in columns:
            is_sequence = rank_of(column[0]) == 3
            results.append(self._joined(column, int(is_sequence)))
        return results[: len(self.op.results)]

    def _joined(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        builder = self.builder
        parts = [builder.unsqueeze(value, [axis]) for value in values]
        result = parts[0] if len(parts) == 1 else builder.add(ConcatOp(parts, axis))
        if not self.is_batch_major:
            return result
        return builder.transpose(result, [2, 0, 1, 3] if axis else [1, 0, 2])


def _sum(builder: OnnxLegalizer, one: SSAValue | None, other: SSAValue | None) -> SSAValue | None:
    return one if one is None or other is None else builder.add(AddOp(one, other))


# Cells


@legalizes("RNN")
def legalize_rnn(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """H = f(x W^T + H R^T + Wb + Rb)"""
    sequence = _Sequence(op, builder, 1, ["Tanh"])

    def run(index: int) -> list[SSAValue]:
        own = sequence.direction(index, ["initial_h"])
        bias = _sum(builder, own.input_bias, own.state_bias)
        weights = builder.transpose(own.r, [1, 0])
        (f,) = own.functions

        def step(inner: OnnxLegalizer, x: TensorValue, state: State) -> State:
            del inner
            return (f(x + times(state[0], weights)),)

        return sequence.run(own, sequence.project(own.w, bias), step)

    return sequence.results([run(index) for index in range(len(sequence.reversals))])


@legalizes("GRU")
def legalize_gru(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    z, r = f(...), h = g(x Wh^T + Wbh + (r * H) Rh^T + Rbh), H' = (1 - z) * h + z * H; with
    `linear_before_reset` h = g(x Wh^T + Wbh + r * (H Rh^T + Rbh)).
    """
    sequence = _Sequence(op, builder, 3, ["Sigmoid", "Tanh"])
    attributes = op.schema.attributes
    is_linear = "linear_before_reset" in attributes and builder.attrs.flag("linear_before_reset")

    def run(index: int) -> list[SSAValue]:
        own = sequence.direction(index, ["initial_h"])
        make = _gru_linear_step if is_linear else _gru_step
        bias, step = make(builder, own, sequence.hidden)
        return sequence.run(own, sequence.project(own.w, bias), step)

    return sequence.results([run(index) for index in range(len(sequence.reversals))])


def _gru_step(
    builder: OnnxLegalizer, own: _Direction, hidden: Expr
) -> tuple[SSAValue | None, Step]:
    """The bias of the projection, and the step."""
    gates = builder.transpose(builder.slice(own.r, [0, 0], [hidden * 2, hidden]), [1, 0])
    candidate = builder.transpose(builder.slice(own.r, [hidden * 2, 0], [hidden, hidden]), [1, 0])
    f, g = own.functions

    def step(inner: OnnxLegalizer, x: TensorValue, state: State) -> State:
        del inner
        (h,) = state
        xz, xr, xh = parts(x, 3, hidden)
        hz, hr = parts(times(h, gates), 2, hidden)
        z, r = f(xz + hz), f(xr + hr)
        new = g(xh + times(r * h, candidate))
        return ((1 - z) * new + z * h,)

    return _sum(builder, own.input_bias, own.state_bias), step


def _gru_linear_step(
    builder: OnnxLegalizer, own: _Direction, hidden: Expr
) -> tuple[SSAValue | None, Step]:
    weights, bias = builder.transpose(own.r, [1, 0]), own.state_bias
    f, g = own.functions

    def step(inner: OnnxLegalizer, x: TensorValue, state: State) -> State:
        (h,) = state
        xz, xr, xh = parts(x, 3, hidden)
        projected = times(h, weights)
        projected = projected if bias is None else projected + TensorValue(inner, bias)
        hz, hr, hh = parts(projected, 3, hidden)
        z, r = f(xz + hz), f(xr + hr)
        new = g(xh + r * hh)
        return ((1 - z) * new + z * h,)

    return own.input_bias, step


@legalizes("LSTM")
def legalize_lstm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    i, o, f = f(...) with peepholes into C (o into the new one), c = g(...), C' = f * C + i * c and
    H' = o * h(C'); with `input_forget` f = 1 - i.
    """
    sequence = _Sequence(op, builder, 4, ["Sigmoid", "Tanh", "Tanh"])
    is_coupled = builder.attrs.flag("input_forget", default=False)

    def run(index: int) -> list[SSAValue]:
        own = sequence.direction(index, ["initial_h", "initial_c"])
        bias = _sum(builder, own.input_bias, own.state_bias)
        step = _lstm_step(builder, own, sequence.hidden, is_coupled=is_coupled)
        return sequence.run(own, sequence.project(own.w, bias), step)

    return sequence.results([run(index) for index in range(len(sequence.reversals))])


def _lstm_step(builder: OnnxLegalizer, own: _Direction, hidden: Expr, *, is_coupled: bool) -> Step:
    weights = builder.transpose(own.r, [1, 0])
    peepholes = (
        None if own.peepholes is None else parts(TensorValue(builder, own.peepholes), 3, hidden)
    )
    f, g, h = own.functions

    def peek(gate: TensorValue, cell: TensorValue, which: int) -> TensorValue:
        if peepholes is None:
            return gate
        return gate + cell * TensorValue(gate.builder, peepholes[which].value)

    def step(inner: OnnxLegalizer, x: TensorValue, state: State) -> State:
        del inner
        hidden_state, cell = state
        i, o, forget, c = parts(x + times(hidden_state, weights), 4, hidden)
        i = f(peek(i, cell, 0))
        forget = 1 - i if is_coupled else f(peek(forget, cell, 2))
        cell = forget * cell + i * g(c)
        return f(peek(o, cell, 1)) * h(cell), cell

    return step
