"""Steps over time as a `core.loop`, whose outputs are stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TypeAlias, TypeVar

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.elementwise import SigmoidOp, TanhOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import Legalizer, RefusalError
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

L = TypeVar("L", bound=CoreBuilder)
State: TypeAlias = "tuple[TensorValue, ...]"
Factor: TypeAlias = "Callable[[TensorValue], TensorValue]"

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""The cells that are known, and into how many parts their weights fall."""


def run_steps(
    builder: L,
    count: Expr,
    states: Sequence[SSAValue],
    step: Callable[[L, Expr, State], tuple[State, State]],
) -> tuple[list[SSAValue], list[SSAValue]]:
    """
    The states after `count` steps, and the outputs of all steps along a new first dimension.

    `step` gets a builder inside of the loop, the number of the step and the states, and gives the
    next states and the outputs.
    """
    symbol = builder.symbols.fresh(nonnegative=True)
    block = Block(arg_types=[tensor(i64, []), *(state.type for state in states)])
    number, *before = block.args
    index = Expr.symbol(symbol)
    builder.symbols.know(number, [index])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    after, outputs = step(inner, index, tuple(TensorValue(inner, state) for state in before))
    inner.insert(YieldOp([*(state.value for state in after), *(out.value for out in outputs)]))
    made = builder.symbols.fresh(nonnegative=True) if outputs else None
    trips = builder.dims([count], [])
    loop = LoopOp(trips, None, list(states), Region(block), iteration=symbol, count=made)
    results = list(builder.insert(loop))
    stacked = [_with_length(value, count) for value in results[len(states) :]]
    return results[: len(states)], stacked


def _with_length(value: SSAValue, count: Expr) -> SSAValue:
    """A stacked output, which has as many elements as there are steps."""
    type_ = tensor(element_type(value), [count, *dims_of(value)[1:]])
    return Rewriter.replace_value_with_new_type(value, type_)


def times(x: TensorValue, weights: SSAValue) -> TensorValue:
    """The matrix product of `x` and weights."""
    return TensorValue(x.builder, x.builder.add(MatmulOp(x.value, weights)))


def parts(x: TensorValue, count: int, size: Expr) -> list[TensorValue]:
    """The last dimension in `count` parts."""
    axis = len(x.dims) - 1
    return [
        TensorValue(x.builder, x.builder.slice_axis(x.value, axis, size * k, size))
        for k in range(count)
    ]


def cell(name: str, x: TensorValue, ahead: TensorValue, state: State, hidden: Expr) -> State:
    """
    The next states of `lstm`, `gru`, `rnn_tanh` or `rnn_relu`, for the inputs and the last output
    times weights: gates i, f, g, o of an LSTM and r, z, n of a GRU, reset after.
    """
    if len(state) != (count := 2 if name == "lstm" else 1):
        raise RefusalError(f"found {len(state)} states, expected {count}")
    if name == "lstm":
        i, f, g, o = parts(x + ahead, 4, hidden)
        kept = apply(SigmoidOp, f) * state[1]
        memory = kept + apply(SigmoidOp, i) * apply(TanhOp, g)
        return apply(SigmoidOp, o) * apply(TanhOp, memory), memory
    if name == "gru":
        (xr, xz, xn), (hr, hz, hn) = (parts(value, 3, hidden) for value in (x, ahead))
        reset, update = apply(SigmoidOp, xr + hr), apply(SigmoidOp, xz + hz)
        new = apply(TanhOp, xn + reset * hn)
        return (new + update * (state[0] - new),)
    total = x + ahead
    return (apply(TanhOp, total) if name == "rnn_tanh" else total.maximum(0),)


def direction_of(
    builder: CoreBuilder,
    kind: str,
    x: SSAValue,
    states: Sequence[SSAValue],
    weights: Sequence[SSAValue],
    *,
    is_back: bool,
    lengths: TensorValue | None = None,
    factor: Factor | None = None,
) -> tuple[list[SSAValue], SSAValue]:
    """
    The last states, and the outputs of all steps, of one direction of a layer over x [time, batch,
    size]. `weights` are those of the input and of the state, [gates * hidden, ...], maybe their
    biases, and maybe what the output is multiplied by, [outputs, hidden]. Beyond the `lengths` of
    sequences (i64 [batch]) nothing changes, and outputs are zero. `factor` is what weights are
    multiplied by in place of all inputs, and of the state at a step, zero beyond the end.
    """
    w, r = (builder.transpose(weight, [1, 0]) for weight in weights[:2])
    biases = [TensorValue.of(builder, bias) for bias in weights[2:4]] if len(weights) > 3 else []
    project = builder.transpose(weights[-1], [1, 0]) if len(weights) % 2 else None
    hidden = dims_of(r)[1] // GATES[kind]
    source = TensorValue(builder, x)
    inputs = times(source if factor is None else factor(source), w)
    inputs = inputs + biases[0] if biases else inputs
    length = dims_of(x)[0]
    column = None if lengths is None else lengths.reshape([dims_of(x)[1], 1])

    def step(inner: CoreBuilder, number: Expr, state: State) -> tuple[State, State]:
        place = length - 1 - number if is_back else number
        row = inner.add(GatherOp(inputs.value, inner.dims([place], []), 0, inside=True))
        before, is_on = TensorValue(inner, state[0].value), None
        if column is not None:
            is_on = TensorValue(inner, column.value).gt(TensorValue.dim(inner, place))
        if factor is not None:
            before = factor(before if is_on is None else is_on.where(before, 0))
        ahead = times(before, r)
        ahead = ahead + biases[1] if biases else ahead
        following = cell(kind, TensorValue(inner, row), ahead, state, hidden)
        if project is not None:
            following = (times(following[0], project), *following[1:])
        if is_on is None:
            return following, (following[0],)
        kept = tuple(is_on.where(new, old) for new, old in zip(following, state, strict=True))
        return kept, (is_on.where(following[0], 0),)

    after, outputs = run_steps(builder, length, states, step)
    return after, reversed_steps(builder, outputs[0]) if is_back else outputs[0]


def layers_of(
    builder: Legalizer,
    x: SSAValue,
    states: Sequence[SSAValue],
    layers: int,
    directions: int,
    run: Callable[[int, SSAValue, Sequence[SSAValue]], tuple[list[SSAValue], SSAValue]],
) -> tuple[SSAValue, list[SSAValue]]:
    """
    The outputs of the last layer [time, batch, ...], and the last states of all layers and
    directions. `run` gives the last states, and the outputs, of one of them by its number, its
    input and its first states, which are parts of `states` [layers * directions, ...].
    """
    finals: list[list[TensorValue]] = []
    for layer in range(layers):
        outputs: list[SSAValue] = []
        for place in range(layer * directions, (layer + 1) * directions):
            first = [
                builder.squeeze(builder.slice_axis(state, 0, place, 1), [0]) for state in states
            ]
            after, output = run(place, x, first)
            outputs.append(output)
            finals.append([TensorValue(builder, value) for value in after])
        x = concat(builder, outputs, 2)
    return x, [stack(list(values), 0).value for values in zip(*finals, strict=True)]


def recurrent(
    builder: Legalizer,
    kind: str,
    x: SSAValue,
    states: Sequence[SSAValue],
    weights: Sequence[Sequence[SSAValue]],
    directions: int,
    lengths: TensorValue | None = None,
    factor: Factor | None = None,
) -> tuple[SSAValue, list[SSAValue]]:
    """As `layers_of`, of cells that are known, by the weights of each layer and direction."""
    expected = [(x, 3), *((state, 3) for state in states)]
    ranks = {2: (2, 2), 3: (2, 2, 2), 4: (2, 2, 1, 1), 5: (2, 2, 1, 1, 2)}
    for own in weights:
        if len(own) not in ranks:
            builder.refuse(f"{len(own)} weights of a direction", "2 to 5")
        expected += zip(own, ranks[len(own)], strict=True)
    for value, rank in expected:
        if rank_of(value) != rank:
            builder.refuse(f"{value.type} in a layer that remembers", f"{rank} dimensions")
    if len(states) != (count := 2 if kind == "lstm" else 1):
        builder.refuse(f"{len(states)} states", f"{count}")

    def run(
        place: int, source: SSAValue, first: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], SSAValue]:
        return direction_of(
            builder, kind, source, first, weights[place],
            is_back=place % directions == 1, lengths=lengths, factor=factor,
        )  # fmt: skip

    return layers_of(builder, x, states, len(weights) // directions, directions, run)


def matrices(builder: Legalizer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The values, such as the states of a cell, [B, units] each; others are refused."""
    for value in values:
        builder.require_rank(value, 2, "matrix")
    return values


def reversed_steps(builder: CoreBuilder, x: SSAValue) -> SSAValue:
    """The steps from the last to the first."""
    dims = dims_of(x)
    starts = [dims[0] - 1, *[Expr.const(0)] * (len(dims) - 1)]
    return builder.slice(x, starts, dims, [-1, *[1] * (len(dims) - 1)])


_MOST_LAYERS = 1024


def flat_weights(
    builder: Legalizer,
    parameters: SSAValue,
    gates: int,
    layers: int,
    directions: int,
    hidden: int,
    width: int,
) -> list[list[SSAValue]]:
    """
    For each layer and direction the weights of input and state, and their biases, of one vector:
    the weights of all, then their biases.
    """
    if not 1 <= layers <= _MOST_LAYERS:
        builder.refuse(f"{layers} layers", f"1 to {_MOST_LAYERS}")
    rows, place = gates * hidden, 0
    found: list[list[SSAValue]] = []
    sizes: list[Sequence[Sequence[int]]] = []
    for layer in range(layers):
        size = width if layer == 0 else hidden * directions
        sizes += [[(rows, size), (rows, hidden)]] * directions
    total = sum(a * b for pair in sizes for a, b in pair) + 2 * rows * len(sizes)
    if rank_of(parameters) != 1 or dims_of(parameters)[0] != total:
        builder.refuse(f"parameters {parameters.type}", f"{total} of them")
    for pair in sizes:
        own: list[SSAValue] = []
        for shape in pair:
            count = shape[0] * shape[1]
            own.append(builder.reshape(builder.slice(parameters, [place], [count]), shape))
            place += count
        found.append(own)
    for own in found:
        for _ in range(2):
            own.append(builder.slice(parameters, [place], [rows]))
            place += rows
    return found
