"""LSTM and SVDF of integers: sums of 32 bits, gates and cell of 16, outputs of 8."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, i8, i16, i32, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common import fixed_point as fixed
from lowerdeck.passes.legalize.common.integer_functions import halved, inverse_roots
from lowerdeck.passes.legalize.common.recurrent import State, matrices, run_steps
from lowerdeck.passes.legalize.common.requantize import requantized, rescaled
from lowerdeck.passes.legalize.common.tables import entries
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import as_f32, require_type
from lowerdeck.passes.legalize.tflite.registry import Results

_PEEPHOLES = {0: 9, 1: 10, 3: 11}
"""The inputs with weights of the cell, by gate."""

_LOW, _HIGH = -(1 << 15), (1 << 15) - 1


def _product(*factors: float) -> float:
    """A product that is rounded to f32 after each factor."""
    total = 1.0
    for factor in factors:
        total = as_f32(total * as_f32(factor))
    return total


class _Cell:
    """The numbers and matrices of a cell."""

    def __init__(self, builder: TfliteLegalizer) -> None:
        self.builder = builder
        self.gates = [0, 1, 2, 3] if builder.optional(1) is not None else [1, 2, 3]
        self.has_norm = builder.optional(21) is not None
        cell = builder.quantization(19)
        self.power = round(math.log2(cell.scale or 1))
        if not 0 <= 15 + self.power <= 6:
            builder.refuse(f"a cell of scale {cell.scale}", "a power of two from 2^-15 to 2^-9")
        cell_clip, clip = float(builder.option("cell_clip")), float(builder.option("proj_clip"))
        self.cell_clip = int(min(max(as_f32(cell_clip) / cell.scale, _LOW), _HIGH))
        result = builder.result_quantization()
        self.clip = int(min(max(as_f32(clip) / result.scale, -128), 127))
        hidden = builder.op.intermediate(4)
        if hidden is None:
            builder.refuse("no quantization of the hidden state", "that of the fifth intermediate")
        self.hidden = hidden
        self.logistic = self._table(fixed.logistic_table())
        self.tanh = self._table(fixed.tanh_table(3))
        self.tanh_of_cell = self._table(fixed.tanh_table(15 + self.power))
        self.recurrent = self._matrix([5 + gate for gate in self.gates])
        builder.ignore("fused_activation_function")

    def _table(self, values: NDArray[np.int64]) -> SSAValue:
        return self.builder.tensor(values.astype(np.int16))

    def _matrix(self, indices: Sequence[int]) -> SSAValue:
        parts = [self.builder.value(index).transpose([1, 0]) for index in indices]
        if max((dim.value or 0 for part in parts for dim in part.dims), default=0) > 1 << 24:
            self.builder.refuse(f"weights of {parts[0].dims}", "at most 2^24 units")
        return concat(parts, 1).value

    def scale_of(self, gate: int) -> float:
        """The scale of the sums of a gate."""
        if not self.has_norm:
            return 2.0**-12
        found = self.builder.op.intermediate(gate)
        if found is None:
            self.builder.refuse("no quantization of a gate", "that of an intermediate")
        return found.scale

    def factors(self, first: int, other: float) -> list[float]:
        """What sums of products with the weights of gates are multiplied by, by column."""
        found: list[float] = []
        for gate in self.gates:
            own = self.builder.quantization(first + gate).scale
            size = dims_of(self.builder.input(first + gate))[0].value or 0
            found += [as_f32(_product(own, other) / self.scale_of(gate))] * size
        return found

    def sums(self, x: SSAValue) -> SSAValue:
        """What the input of all steps, [T, B, I], adds to the gates."""
        builder = self.builder
        q = builder.quantization(0)
        matrix = self._matrix([1 + gate for gate in self.gates])
        zeros = [builder.scalar(q.zero, x), builder.scalar(0, matrix)] if q.zero else []
        total = TensorValue(builder, builder.add(MatmulOp(x, matrix, zeros, accumulator=i32)))
        if not self.has_norm:
            total = total + concat([builder.value(12 + gate) for gate in self.gates], 0)
        factors = self.factors(1, q.scale)
        return requantized(builder, total.value, factors, i16, shape=[len(factors)])

    # One step, with a builder inside of the loop

    def step(
        self, inner: TfliteLegalizer, now: TensorValue, output: TensorValue, cell: TensorValue
    ) -> tuple[TensorValue, TensorValue]:
        """The next output and cell."""
        q = self.builder.quantization(18)
        zeros = [inner.scalar(q.zero, i8), inner.scalar(0, i8)] if q.zero else []
        products = inner.add(MatmulOp(output.value, self.recurrent, zeros, accumulator=i32))
        factors = self.factors(5, q.scale)
        added = requantized(inner, products, factors, i32, shape=[len(factors)])
        total = _limited(TensorValue(inner, added) + now.cast(i32))
        size = cell.dims[1]
        self._gates = {
            gate: TensorValue(inner, inner.slice_axis(total.value, 1, size * k, size))
            for k, gate in enumerate(self.gates)
        }
        old = cell.cast(i32)
        forget = self._gate(inner, 1, old)
        given = self._gate(inner, 0, old) if 0 in self.gates else forget * -1 + _HIGH
        new = self._gate(inner, 2, None)
        kept = _sixteen(halved(forget * old, 15))
        more = _sixteen(halved(given * new, 30 + self.power))
        cell_ = _limited(kept + more)
        if self.cell_clip > 0:
            cell_ = cell_.clip(-self.cell_clip, self.cell_clip)
        shown = self._gate(inner, 3, cell_) * _entry(self.tanh_of_cell, cell_)
        return self._output(inner, shown), cell_.cast(i16)

    def _gate(self, inner: TfliteLegalizer, gate: int, cell: TensorValue | None) -> TensorValue:
        total = self._gates[gate]
        index = _PEEPHOLES.get(gate)
        if cell is not None and index is not None and self.builder.optional(index) is not None:
            q = self.builder.quantization(index)
            factor = as_f32(2.0**self.power * q.scale / self.scale_of(gate))
            weights = TensorValue(inner, inner.cast(self.builder.input(index), i32))
            product = requantized(inner, (weights * cell).value, factor, i32)
            total = _limited(total + TensorValue(inner, product))
        if self.has_norm:
            total = self._normalized(inner, total, gate)
        return _entry(self.tanh if gate == 2 else self.logistic, total)

    def _normalized(self, inner: TfliteLegalizer, total: TensorValue, gate: int) -> TensorValue:
        """Rows without mean and with unit variance, with ten bits more."""
        size = total.dims[1].value
        if size is None:
            self.builder.refuse("a cell of open size", "a number")
        scale = self.builder.quantization(20 + gate).scale
        wide = total.cast(i64)
        sums = wide.reduce("sum", [1], keep_dims=True)
        squares = (total * total).cast(i64).reduce("sum", [1], keep_dims=True)
        mean = _quotient(inner, sums * 1024, size)
        variance = squares * ((1 << 20) // size) - mean * mean
        variance = _quotient(inner, variance, 1 << 20).cast(i32)
        guard = max(1, int(as_f32(10000 * as_f32(scale))))
        variance = variance.lt(1).where(TensorValue.number(inner, guard, i32), variance)
        multiplier, exponent = inverse_roots(variance)
        shifted = total * 1024 - mean.cast(i32)
        scaled = rescaled(shifted, multiplier, exponent)
        weights = TensorValue(inner, inner.cast(self.builder.input(20 + gate), i32))
        bias = TensorValue(inner, self.builder.input(12 + gate))
        value = (scaled * weights + bias).cast(i64)
        moved = value.gt(0).where(value + 512, value - 512)
        whole = _quotient(inner, moved, 1024).cast(i32)
        factor = as_f32(scale) * 2.0**12
        return TensorValue(inner, inner.cast(requantized(inner, whole.value, factor, i16), i32))

    def _output(self, inner: TfliteLegalizer, value: TensorValue) -> TensorValue:
        factor = as_f32(2.0**-15 / self.hidden.scale * 2.0**-15)
        zero = self.hidden.zero
        if self.builder.optional(16) is None:
            return TensorValue(inner, requantized(inner, value.value, factor, i8, zero=zero))
        hidden = requantized(inner, value.value, factor, i8, zero=-zero)
        weights = self.builder.value(16).transpose([1, 0])
        products = inner.add(MatmulOp(hidden, weights.value, accumulator=i32))
        # -zero need not be an integer of 8 bits.
        sums = weights.cast(i32).reduce("sum", [0]) * zero
        total = TensorValue(inner, products) + TensorValue(inner, sums.value)
        if (bias := self.builder.optional(17)) is not None:
            total = total + TensorValue(inner, bias)
        q = self.builder.quantization(18)
        own = self.builder.quantization(16).scale
        ratio = as_f32(_product(own, self.hidden.scale) / q.scale)
        result = TensorValue(inner, requantized(inner, total.value, ratio, i8, zero=q.zero))
        return result.clip(-self.clip, self.clip) if self.clip > 0 else result


def _limited(x: TensorValue) -> TensorValue:
    """Within 16 bits."""
    return x.clip(_LOW, _HIGH)


def _sixteen(x: TensorValue) -> TensorValue:
    """What 16 bits keep."""
    return x.cast(i16).cast(i32)


def _quotient(builder: TfliteLegalizer, x: TensorValue, divisor: int) -> TensorValue:
    """Toward zero."""
    return TensorValue(builder, builder.add(DivOp(x.value, builder.scalar(divisor, x.value))))


def _entry(table: SSAValue, x: TensorValue) -> TensorValue:
    """The entry of a table for each integer of 16 bits, in 32."""
    return entries(x.cast(i64) + (1 << 15), table).cast(i32)


def run(builder: TfliteLegalizer, x: SSAValue) -> list[SSAValue]:
    """The outputs for [T, B, I], then the last output and cell."""
    if builder.flag("diagonal_recurrent_tensors"):
        builder.refuse("diagonal recurrent weights", "matrices")
    cell = _Cell(builder)
    total, steps = cell.sums(x), dims_of(x)[0]

    def step(inner: TfliteLegalizer, index: Expr, states: State) -> tuple[State, State]:
        output, state = cell.step(inner, TensorValue(inner, total).pick(0, index), *states)
        return (output, state), (output,)

    states = matrices(builder, [builder.input(18), builder.input(19)])
    last, (outputs,) = run_steps(builder, steps, states, step)
    return [outputs, *last]


def svdf(builder: TfliteLegalizer) -> Results:
    """
    Features that live on by weights in time, both of 16 bits, or of 8 as TensorFlow Lite Micro has
    them, whose features have a zero point that is added, and wraps, behind the clamp.
    """
    memories = builder.input(4)
    require_type(builder, memories, i8, i16)
    require_type(builder, builder.input(2), element_type(memories))
    rank = int(builder.option("rank")) or 1
    builder.ignore("fused_activation_function", "asymmetric_quantize_inputs")
    qx, qf, qt, qs = (builder.quantization(k) for k in (0, 1, 2, 4))
    zero = qs.zero if element_type(memories) == i8 else 0
    result = builder.result_quantization()
    x, feature = builder.input(0), builder.transpose(builder.input(1), [1, 0])
    zeros = [builder.scalar(qx.zero, x), builder.scalar(0, feature)] if qx.zero else []
    sums = builder.add(MatmulOp(x, feature, zeros, accumulator=i32))
    first = as_f32(_product(qx.scale, qf.scale) / qs.scale)
    new = TensorValue(builder, requantized(builder, sums, first, element_type(memories)))
    if zero:
        new = new + zero
    time = builder.value(2)
    filters, memory = time.dims
    batch = dims_of(x)[0]
    state = TensorValue(builder, memories).reshape([batch, filters, memory])
    kept = builder.slice_axis(state.value, 2, 1, memory - 1)
    moved = concat([TensorValue(builder, kept), new.reshape([batch, filters, 1])], 2)
    features = moved.cast(i32)
    if zero:
        features = features - zero
    weighted = features * time.cast(i32)
    units = weighted.reduce("sum", [2]).reshape([batch, filters // rank, rank])
    total = units.reduce("sum", [2])
    if (bias := builder.optional(3)) is not None:
        total = total + TensorValue(builder, bias)
    second = as_f32(_product(qs.scale, qt.scale) / result.scale)
    output = requantized(builder, total.value, second, i8, zero=result.zero)
    return [output, moved.reshape([batch, filters * memory]).value]
