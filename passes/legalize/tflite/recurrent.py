"""Recurrent cells of floats, with weights that are floats or integers: LSTM, RNN and SVDF."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i8, is_float, is_integer
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.recurrent import State, matrices, run_steps
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.linear import hybrid_rows
from lowerdeck.passes.legalize.tflite.ranges import channel_scales
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


@record
class Weights:
    """Matrices side by side, [depth, units], of floats, or of integers with a scale a column."""

    matrix: SSAValue
    scales: tuple[float, ...] | None
    asymmetric: bool

    @staticmethod
    def of(builder: TfliteLegalizer, indices: Sequence[int]) -> Weights:
        """The inputs at `indices`, each [units, depth]."""
        asymmetric = builder.flag("asymmetric_quantize_inputs")
        values = [TensorValue.of(builder, builder.input(index)) for index in indices]
        matrix = concat([value.transpose([1, 0]) for value in values], 1).value
        if is_float(element_type(matrix)):
            return Weights(matrix, None, asymmetric)
        scales: list[float] = []
        for index, value in zip(indices, values, strict=True):
            units = value.dims[0].value or 0
            scales += channel_scales(builder, index, units)
        return Weights(matrix, tuple(scales), asymmetric)

    def times(self, builder: TfliteLegalizer, rows: TensorValue) -> TensorValue:
        """Products of rows [..., depth] with all columns."""
        if self.scales is None:
            return TensorValue(builder, builder.add(MatmulOp(rows.value, self.matrix)))
        scales = self.scales if len(set(self.scales)) > 1 else self.scales[:1]
        return hybrid_rows(builder, rows.value, self.matrix, scales, self.asymmetric)


def time_first(builder: TfliteLegalizer, x: SSAValue, is_first: bool) -> SSAValue:
    """[T, B, ...] of a sequence, or back again."""
    builder.require_rank(x, 3, "sequence")
    return x if is_first else builder.transpose(x, [1, 0, 2])


# LSTM


@record
class _Places:
    """Where the inputs of a cell are."""

    weights: int
    recurrent: int
    peephole: int
    bias: int
    projection: int
    state: int
    norm: int | None
    auxiliary: int | None = None


_ONE = _Places(1, 5, 9, 12, 16, 18, 20)
_FORWARD = _Places(1, 5, 9, 12, 16, 35, None, 40)
_BACKWARD = _Places(18, 22, 26, 29, 33, 37, None, 44)


class _Cell:
    """One cell over a sequence."""

    def __init__(self, builder: TfliteLegalizer, at: _Places) -> None:
        self.at = at
        self.kind = builder.activation()
        self.cell_clip = float(builder.option("cell_clip"))
        self.projection_clip = float(builder.option("proj_clip"))
        self.has_input_gate = builder.optional(at.weights) is not None
        self.gates = [0, 1, 2, 3] if self.has_input_gate else [1, 2, 3]
        if builder.flag("diagonal_recurrent_tensors"):
            builder.refuse("diagonal recurrent weights", "matrices")

    def run(
        self,
        builder: TfliteLegalizer,
        x: SSAValue,
        auxiliary: SSAValue | None,
        *,
        backward: bool = False,
    ) -> list[SSAValue]:
        """The outputs for [T, B, I], then the last output and the last state of the cell."""
        at = self.at
        given = Weights.of(builder, [at.weights + g for g in self.gates])
        recurrent = Weights.of(builder, [at.recurrent + g for g in self.gates])
        total = given.times(builder, TensorValue(builder, x))
        if auxiliary is not None and at.auxiliary is not None:
            more = Weights.of(builder, [at.auxiliary + g for g in self.gates])
            total = total + more.times(builder, TensorValue(builder, auxiliary))
        has_norm = at.norm is not None and any(
            builder.optional(at.norm + g) is not None for g in self.gates
        )
        if not has_norm:
            total = total + concat([builder.value(at.bias + g) for g in self.gates], 0)
        projection = self._projection(builder)
        steps, whole = dims_of(x)[0], total.value

        def step(inner: TfliteLegalizer, index: Expr, states: State) -> tuple[State, State]:
            output, cell = states
            place = steps - 1 - index if backward else index
            now = TensorValue(inner, whole).pick(0, place) + recurrent.times(inner, output)
            output, cell = self._step(inner, now, cell, has_norm, projection)
            return (output, cell), (output,)

        states = matrices(builder, [builder.input(at.state), builder.input(at.state + 1)])
        last, (outputs,) = run_steps(builder, steps, states, step)
        if backward:
            outputs = builder.flip(outputs, [0])
        return [outputs, *last]

    def _projection(self, builder: TfliteLegalizer) -> Weights | None:
        place = self.at.projection
        return None if builder.optional(place) is None else Weights.of(builder, [place])

    def _step(
        self,
        builder: TfliteLegalizer,
        now: TensorValue,
        cell: TensorValue,
        has_norm: bool,
        projection: Weights | None,
    ) -> tuple[TensorValue, TensorValue]:
        """The next output and cell state; `now` holds the sums of all gates."""
        size = cell.dims[-1]
        sums = {
            gate: TensorValue(builder, builder.slice_axis(now.value, 1, size * k, size))
            for k, gate in enumerate(self.gates)
        }

        def gate(number: int, state: TensorValue | None, kind: str = "SIGMOID") -> TensorValue:
            total = sums[number]
            peephole = {0: 0, 1: 1, 3: 2}.get(number)
            if state is not None and peephole is not None:
                total = self._peeped(builder, total, state, self.at.peephole + peephole)
            if has_norm:
                total = self._normalized(builder, total, number)
            return builder.by_name(total, kind)

        forget = gate(1, cell)
        added = gate(2, None, self.kind)
        given = gate(0, cell) if self.has_input_gate else 1 - forget
        cell = forget * cell + given * added
        if self.cell_clip > 0:
            cell = cell.clip(-self.cell_clip, self.cell_clip)
        output = gate(3, cell) * builder.by_name(cell, self.kind)
        if projection is None:
            return output, cell
        output = projection.times(builder, output)
        if (bias := builder.optional(self.at.projection + 1)) is not None:
            output = output + TensorValue(builder, bias)
        if self.projection_clip > 0:
            output = output.clip(-self.projection_clip, self.projection_clip)
        return output, cell

    def _peeped(
        self, builder: TfliteLegalizer, total: TensorValue, state: TensorValue, index: int
    ) -> TensorValue:
        """What a gate sees of the cell, if it does."""
        value = builder.optional(index)
        if value is None:
            return total
        weights = TensorValue(builder, value)
        if is_integer(element_type(value)):
            weights = weights.cast(f32) * builder.quantization(index).scale
        return total + state * weights

    def _normalized(self, builder: TfliteLegalizer, total: TensorValue, number: int) -> TensorValue:
        """Rows without mean and with unit variance, by coefficients, plus the bias."""
        assert self.at.norm is not None
        size = TensorValue.dim(builder, total.dims[1]).cast(f32)
        mean = total.reduce("sum", [1], keep_dims=True) / size
        rest = total - mean
        variance = (rest * rest).reduce("sum", [1], keep_dims=True) / size
        deviation = builder.add(SqrtOp((variance + 1e-8).value))
        factor = TensorValue(builder, builder.input(self.at.norm + number))
        bias = TensorValue(builder, builder.input(self.at.bias + number))
        return rest / TensorValue(builder, deviation) * factor + bias


@legalizes("UNIDIRECTIONAL_SEQUENCE_LSTM")
def legalize_lstm_sequence(builder: TfliteLegalizer) -> Results:
    """A cell over a sequence; its states live on."""
    is_first = builder.flag("time_major")
    x = time_first(builder, builder.input(0), is_first)
    if element_type(x) == i8:
        from lowerdeck.passes.legalize.tflite.lstm_of_bytes import run

        outputs, *states = run(builder, x)
    else:
        outputs, *states = _Cell(builder, _ONE).run(builder, x, None)
    return [time_first(builder, outputs, is_first), *states]


@legalizes("LSTM")
def legalize_lstm(builder: TfliteLegalizer) -> Results:
    """One step of a cell; scratch buffers, which some files have as results, have no value."""
    if builder.option("kernel_type") not in (0, "FULL"):
        builder.refuse(f"a kernel {builder.option('kernel_type')}", "FULL")
    x = builder.unsqueeze(builder.input(0), [0])
    outputs, *states = _Cell(builder, _ONE).run(builder, x, None)
    return [builder.squeeze(outputs, [0]), *states]


@legalizes("BIDIRECTIONAL_SEQUENCE_LSTM")
def legalize_lstm_both_ways(builder: TfliteLegalizer) -> Results:
    """A cell in each direction; both give their outputs in the order of time."""
    builder.ignore("time_major")
    is_first = builder.op.option("time_major") in (None, True)
    x = time_first(builder, builder.input(0), is_first)
    given = builder.optional(39)
    auxiliary = None if given is None else time_first(builder, given, is_first)
    forward, backward = _Cell(builder, _FORWARD), _Cell(builder, _BACKWARD)
    if auxiliary is not None and builder.optional(41) is None:
        there = forward.run(builder, x, None)
        back = backward.run(builder, auxiliary, None, backward=True)
    else:
        there = forward.run(builder, x, auxiliary)
        back = backward.run(builder, x, auxiliary, backward=True)
    return _both(builder, there, back, is_first)


def _both(
    builder: TfliteLegalizer, there: Sequence[SSAValue], back: Sequence[SSAValue], is_first: bool
) -> Results:
    """Outputs of both directions, side by side or apart, then the states."""
    pair = [time_first(builder, outputs, is_first) for outputs in (there[0], back[0])]
    if builder.flag("merge_outputs"):
        pair = [concat([TensorValue(builder, value) for value in pair], 2).value]
    return [*pair, *there[1:], *back[1:]]


# RNN


def _simple(
    builder: TfliteLegalizer,
    x: SSAValue,
    first: int,
    auxiliary: tuple[SSAValue, int] | None = None,
    *,
    backward: bool = False,
) -> list[SSAValue]:
    """activation(W x + R h + b) over [T, B, I]; the inputs are W, R, b and h from `first` on."""
    kind = builder.activation()
    weights, recurrent = (Weights.of(builder, [first + k]) for k in (0, 1))
    total = weights.times(builder, TensorValue(builder, x)) + builder.value(first + 2)
    if auxiliary is not None:
        other, index = auxiliary
        total = total + Weights.of(builder, [index]).times(builder, TensorValue(builder, other))
    steps, whole = dims_of(x)[0], total.value

    def step(inner: TfliteLegalizer, index: Expr, states: State) -> tuple[State, State]:
        place = steps - 1 - index if backward else index
        now = TensorValue(inner, whole).pick(0, place) + recurrent.times(inner, states[0])
        output = inner.by_name(now, kind)
        return (output,), (output,)

    states = matrices(builder, [builder.input(first + 3)])
    last, (outputs,) = run_steps(builder, steps, states, step)
    if backward:
        outputs = builder.flip(outputs, [0])
    return [outputs, *last]


@legalizes("RNN")
def legalize_rnn(builder: TfliteLegalizer) -> Results:
    """One step."""
    x = builder.unsqueeze(builder.input(0), [0])
    outputs, *states = _simple(builder, x, 1)
    return [builder.squeeze(outputs, [0]), *states]


@legalizes("UNIDIRECTIONAL_SEQUENCE_RNN")
def legalize_rnn_sequence(builder: TfliteLegalizer) -> Results:
    """A cell over a sequence."""
    is_first = builder.flag("time_major")
    outputs, *states = _simple(builder, time_first(builder, builder.input(0), is_first), 1)
    return [time_first(builder, outputs, is_first), *states]


@legalizes("BIDIRECTIONAL_SEQUENCE_RNN")
def legalize_rnn_both_ways(builder: TfliteLegalizer) -> Results:
    """A cell in each direction."""
    is_first = builder.flag("time_major")
    x = time_first(builder, builder.input(0), is_first)
    given = builder.optional(9)
    if given is None:
        there, back = _simple(builder, x, 1), _simple(builder, x, 5, backward=True)
    else:
        other = time_first(builder, given, is_first)
        if builder.optional(10) is None:
            there = _simple(builder, x, 1)
            back = _simple(builder, other, 5, backward=True)
        else:
            there = _simple(builder, x, 1, (other, 10))
            back = _simple(builder, x, 5, (other, 11), backward=True)
    return _both(builder, there, back, is_first)


# SVDF


@legalizes("SVDF")
def legalize_svdf(builder: TfliteLegalizer) -> Results:
    """
    A feature of each filter joins the features of the calls before, of which the oldest goes; all
    are weighted, and those of `rank` filters are added up.
    """
    matrices(builder, [builder.input(k) for k in (0, 1, 2)])
    if element_type(builder.input(0)) == i8:
        from lowerdeck.passes.legalize.tflite.lstm_of_bytes import svdf

        return svdf(builder)
    rank = int(builder.option("rank")) or 1
    x = builder.value(0)
    feature = Weights.of(builder, [1]).times(builder, x)
    time = builder.value(2)
    if is_integer(element_type(builder.input(2))):
        time = time.cast(f32) * builder.quantization(2).scale
    filters, memory = time.dims
    batch = x.dims[0]
    state = builder.value(4).reshape([batch, filters, memory])
    kept = builder.slice_axis(state.value, 2, 1, memory - 1)
    moved = concat([TensorValue(builder, kept), feature.reshape([batch, filters, 1])], 2)
    weighted = (moved * time).reduce("sum", [2]).reshape([batch, filters // rank, rank])
    total = weighted.reduce("sum", [2])
    if (bias := builder.optional(3)) is not None:
        total = total + TensorValue(builder, bias)
    output = builder.by_name(total, builder.activation())
    return [output.value, moved.reshape([batch, filters * memory]).value]
