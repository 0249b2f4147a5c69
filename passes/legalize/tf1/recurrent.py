"""Cells of recurrent networks that are one operator, and LSTMs over blocks of steps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.recurrent import State, parts, run_steps, times
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@record
class _Lstm:
    """The parameters of an LSTM: its four gates have `hidden` columns each in the weights."""

    hidden: Expr
    input_weights: SSAValue
    state_weights: SSAValue
    bias: SSAValue
    peepholes: tuple[SSAValue, ...] | None
    """Of the input, forget and output gates."""
    forget_bias: float
    cell_clip: float
    order: str
    """Which gate comes where: input, forget, output, and the candidate `c`."""

    @staticmethod
    def of(builder: Tf1Legalizer, inputs: Expr) -> _Lstm:
        """The parameters that a node has for `inputs` columns of input."""
        weights = number(builder, "w")
        rows, columns = dims_of(weights)
        names = ("wci", "wcf", "wco")
        has_peepholes = builder.attrs.flag("use_peephole")
        is_second = builder.op_type == "BlockLSTMV2"
        return _Lstm(
            hidden=columns // 4,
            input_weights=builder.slice_axis(weights, 0, 0, inputs),
            state_weights=builder.slice_axis(weights, 0, inputs, rows - inputs),
            bias=number(builder, "b"),
            peepholes=tuple(number(builder, name) for name in names) if has_peepholes else None,
            forget_bias=0.0 if is_second else builder.attrs.float("forget_bias"),
            cell_clip=builder.attrs.float("cell_clip"),
            order="ifco" if is_second else "icfo",
        )

    def project(self, builder: CoreBuilder, x: SSAValue) -> SSAValue:
        """The part of the gates that comes from rows of input."""
        return builder.add(AddOp(builder.add(MatmulOp(x, self.input_weights)), self.bias))

    def step(self, projected: TensorValue, before: TensorValue, output: TensorValue) -> State:
        """The operator's results i, cs, f, o, ci, co and h from the cell and output before."""
        gates = parts(projected + times(output, self.state_weights), 4, self.hidden)
        gate = dict(zip(self.order, gates, strict=True))
        i = apply(SigmoidOp, self._peeked(gate["i"], before, 0))
        f = apply(SigmoidOp, self._peeked(gate["f"] + self.forget_bias, before, 1))
        ci = apply(TanhOp, gate["c"])
        cs = ci * i + before * f
        cs = cs.clip(-self.cell_clip, self.cell_clip) if self.cell_clip > 0 else cs
        o = apply(SigmoidOp, self._peeked(gate["o"], cs, 2))
        co = apply(TanhOp, cs)
        return i, cs, f, o, ci, co, co * o

    def _peeked(self, gate: TensorValue, cell: TensorValue, index: int) -> TensorValue:
        if self.peepholes is None:
            return gate
        return gate + cell * TensorValue(gate.builder, self.peepholes[index])


_CELL, _OUTPUT = 1, 6
"""Where the next states are among the results."""


@legalizes("LSTMBlockCell")
def legalize_lstm_cell(builder: Tf1Legalizer) -> Results:
    """One step of an LSTM."""
    x = number(builder, "x")
    lstm = _Lstm.of(builder, dims_of(x)[1])
    before, output = (TensorValue(builder, number(builder, name)) for name in ("cs_prev", "h_prev"))
    projected = TensorValue(builder, lstm.project(builder, x))
    return [value.value for value in lstm.step(projected, before, output)]


@legalizes("BlockLSTM", "BlockLSTMV2")
def legalize_lstm(builder: Tf1Legalizer) -> Results:
    """The first `seq_len_max` steps of an LSTM over x [time, batch, inputs]; zeros behind them."""
    x = number(builder, "x")
    time, batch, inputs = dims_of(x)
    lstm = _Lstm.of(builder, inputs)
    rows = lstm.project(builder, builder.reshape(x, [product([time, batch]), inputs]))
    projected = builder.reshape(rows, [time, batch, lstm.hidden * 4])
    states = [number(builder, name) for name in ("cs_prev", "h_prev")]
    wanted = [index for index in range(7) if builder.wants(index)]

    def step(inner: Tf1Legalizer, index: Expr, before: State) -> tuple[State, State]:
        own = inner.squeeze(inner.slice_axis(projected, 0, index, 1), [0])
        results = lstm.step(TensorValue(inner, own), *before)
        after = (results[_CELL], results[_OUTPUT])
        return _fitted(after, states), tuple(results[index] for index in wanted)

    count = size_of(builder, builder.operand("seq_len_max"), "the number of steps")
    _, outputs = run_steps(builder, count, states, step)
    found = {index: _padded(builder, out, time) for index, out in zip(wanted, outputs, strict=True)}
    return [found.get(index) for index in range(7)]


def _fitted(after: State, states: Sequence[SSAValue]) -> State:
    """The next states with the dimensions of the first ones, which name the same sizes."""
    return tuple(
        TensorValue(value.builder, value.builder.reshape(value.value, dims_of(state)))
        for value, state in zip(after, states, strict=True)
    )


def _padded(builder: Tf1Legalizer, output: SSAValue, time: Expr) -> SSAValue:
    count = dims_of(output)[0]
    if count == time:
        return output
    return builder.add(PadOp(output, [0, 0, 0], [time - count, 0, 0]))


@legalizes("GRUBlockCell")
def legalize_gru_cell(builder: Tf1Legalizer) -> Results:
    """
    r, u = sigmoid([x, h] w_ru + b_ru), c = tanh([x, r * h] w_c + b_c), h' = u * h + (1 - u) * c
    """
    x, h = number(builder, "x"), TensorValue(builder, number(builder, "h_prev"))
    hidden = dims_of(number(builder, "w_c"))[1]

    def layer(state: TensorValue, weights: str, bias: str) -> TensorValue:
        joined = TensorValue(builder, concat(builder, [x, state.value], 1))
        return times(joined, number(builder, weights)) + TensorValue(builder, number(builder, bias))

    r, u = parts(apply(SigmoidOp, layer(h, "w_ru", "b_ru")), 2, hidden)
    c = apply(TanhOp, layer(r * h, "w_c", "b_c"))
    return [value.value for value in (r, u, c, u * h + (1 - u) * c)]
