"""Recurrent layers: one loop over the steps of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TypeAlias

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.caffe.layers import has_static_input
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.elementwise import AddOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue

State: TypeAlias = "tuple[TensorValue, ...]"
Step: TypeAlias = "Callable[[TensorValue, TensorValue, State], tuple[TensorValue, State]]"
"""From the input's product, the continuation [batch, 1] and the states to the output and states."""


@legalizes("LSTM")
def legalize_lstm(builder: CaffeLegalizer) -> Results:
    """
    i, f, o = sigmoid(...), g = tanh(...) of x Wx^T + (cont * h) Wh^T + b; c' = cont * f * c + i * g
    and h' = o * tanh(c').

    Blobs are Wx, b, the weight of the static input if there is one, and Wh. The states before the
    first step are zero unless they are bottoms.
    """
    weight = builder.transpose(builder.blobs[-1], [1, 0])
    size = dims_of(weight)[0]

    def step(x: TensorValue, cont: TensorValue, states: State) -> tuple[TensorValue, State]:
        h, c = states
        gates = x + _matmul(h * cont, weight)
        c, h = _lstm_unit(c, gates, cont, size)
        return h, (h, c)

    return _run(builder, 2, size, step)


@legalizes("LSTMUnit")
def legalize_lstm_unit(builder: CaffeLegalizer) -> Results:
    """One step of an LSTM: the cell and the hidden state from the cell, the gates and `cont`."""
    c, gates, cont = (TensorValue(builder, bottom) for bottom in builder.bottoms)
    states = _lstm_unit(c, gates, cont.reshape([*cont.dims, 1]), c.dims[-1])
    return [state.value for state in states]


def _lstm_unit(
    c: TensorValue, gates: TensorValue, cont: TensorValue, size: Expr
) -> tuple[TensorValue, TensorValue]:
    """The next cell and hidden state; gates are i, f, o and g."""
    builder = gates.builder
    parts = builder.split(gates.value, len(gates.dims) - 1, [size] * 4)
    i, f, o, g = (TensorValue(builder, part) for part in parts)
    i, f, o = (apply(SigmoidOp, gate) for gate in (i, f, o))
    # Without continuation the old cell is not read, whatever it holds.
    kept = cont.eq(0).where(TensorValue.number(builder, 0, f32), cont * f * c)
    c = kept + i * apply(TanhOp, g)
    return c, o * apply(TanhOp, c)


@legalizes("RNN")
def legalize_rnn(builder: CaffeLegalizer) -> Results:
    """
    h' = tanh(x Wx^T + (cont * h) Wh^T + b), and the output is tanh(h' Wo^T + bo).

    Blobs are Wx, b, the weight of the static input if there is one, Wh, Wo and bo.
    """
    weight, output = (builder.transpose(blob, [1, 0]) for blob in builder.blobs[-3:-1])
    bias = builder.blobs[-1]

    def step(x: TensorValue, cont: TensorValue, states: State) -> tuple[TensorValue, State]:
        h = apply(TanhOp, x + _matmul(states[0] * cont, weight))
        o = apply(TanhOp, _matmul(h, output) + TensorValue(x.builder, bias))
        return o, (h,)

    return _run(builder, 1, dims_of(weight)[0], step)


def _matmul(x: TensorValue, weight: SSAValue) -> TensorValue:
    return TensorValue(x.builder, x.builder.add(MatmulOp(x.value, weight)))


def _run(builder: CaffeLegalizer, count: int, size: Expr, step: Step) -> Results:
    """The outputs of all steps, and the last of the `count` states if they are tops."""
    batch = builder.shape[1]
    given = list(builder.bottoms[2 + has_static_input(builder.layer, len(builder.bottoms)) :])
    states = [builder.reshape(state, [batch, size]) for state in given]
    if not states:
        states = [builder.broadcast(builder.scalar(0, f32), [batch, size])] * count
    output, *states = _loop(builder, _projected(builder), states, step)
    return [output, *(builder.unsqueeze(state, [0]) for state in states)][: len(builder.op.results)]


def _projected(builder: CaffeLegalizer) -> SSAValue:
    """All steps times the input's weight, plus what is the same in each: [time, batch, gates]."""
    time, batch = builder.shape[:2]
    weight = builder.transpose(builder.blobs[0], [1, 0])
    product = builder.add(MatmulOp(builder.flatten(builder.x, 2), weight))
    whole = builder.reshape(product, [time, batch, dims_of(weight)[1]])
    result = builder.add(AddOp(whole, builder.blobs[1]))
    if not has_static_input(builder.layer, len(builder.bottoms)):
        return result
    rows = builder.flatten(builder.bottoms[2], 1)
    static = builder.add(MatmulOp(rows, builder.transpose(builder.blobs[2], [1, 0])))
    return builder.add(AddOp(result, static))


def _loop(
    builder: CaffeLegalizer, projected: SSAValue, states: Sequence[SSAValue], step: Step
) -> list[SSAValue]:
    """All outputs, then the final states."""
    time, batch = builder.shape[:2]
    symbol, count = (builder.symbols.fresh(nonnegative=True) for _ in range(2))
    index = Expr.symbol(symbol)
    block = Block(arg_types=[tensor(i64, []), *(state.type for state in states)])
    number, *carried = block.args
    builder.symbols.know(number, [index])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    x = inner.squeeze(inner.slice_axis(projected, 0, index, 1), [0])
    cont = inner.reshape(inner.slice(builder.bottoms[1], [index, 0], [1, batch]), [batch, 1])
    before = tuple(TensorValue(inner, state) for state in carried)
    output, after = step(TensorValue(inner, x), TensorValue(inner, cont), before)
    inner.insert(YieldOp([*(state.value for state in after), output.value]))
    trips = builder.dims([time], [])
    loop = LoopOp(trips, None, states, Region(block), iteration=symbol, count=count)
    *final, outputs = builder.insert(loop)
    type_ = tensor(element_type(outputs), [time, *dims_of(outputs)[1:]])
    return [Rewriter.replace_value_with_new_type(outputs, type_), *final]
