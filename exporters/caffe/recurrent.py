"""
An LSTM whose loop is unrolled and has no `cont`, as other frameworks have it, as a layer LSTM.

Each step is recognized by its formula, from the last one on: h' = o * tanh(c'), c' = f * c + i * g,
with gates that are parts, in any order, of a part of one product of all inputs, plus h times a
matrix. States of zero before the first step come from a `cont` that is 0 there. For others, and for
the cell after the last step, which is also a top then, the layer exposes its states.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, SplitOp
from lowerdeck.dialects.core.types import element_type, f32
from lowerdeck.exporters.caffe.movement import MOST_PARTS, picked, transposed
from lowerdeck.exporters.caffe.net import Array, Blob, Net, State, Weight, recognizes
from lowerdeck.exporters.caffe.products import has_weights
from lowerdeck.passes.machinery.driver import producer

GATES = "ifog"
"""The order of Caffe's gates."""


@recognizes(e.MulOp)
def _hidden(net: Net, op: e.MulOp) -> Blob | None:
    """The hidden state after a step"""
    found = _state(net, op.result)
    if found is None:
        return None
    return net.reshaped(net.cut(found.states, 0, found.step, 1), net.shape(op.result))


@recognizes(e.AddOp)
def _last_cell(net: Net, op: e.AddOp) -> Blob | None:
    """The cell after the last step"""
    found = net.states.get(op.result)
    return None if found is None else net.reshaped(found.states, net.shape(op.result))


@recognizes(ConcatOp)
def _all_hidden(net: Net, op: ConcatOp) -> Blob | None:
    """The hidden states after all steps, in their order or from the last one on"""
    values = [_unshaped(part) for part in op.inputs]
    for value in (values[-1], values[0]):
        _state(net, value)  # one of them is the last one, which has all others before it
    found = [net.states.get(value) for value in values]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or len({each.states for each in known}) > 1:
        return None
    states, order = known[0].states, [each.step for each in known]
    steps, batch, _ = states.shape
    shape, axis = net.shape(op.result), op.axis.data
    is_outer = prod(shape[:axis]) == 1
    if not is_outer and (axis != 1 or shape != (batch, len(order), states.shape[2])):
        return None
    if order != list(range(steps)):
        if len(order) > MOST_PARTS:
            return None
        states = picked(net, states, 0, order)
    if not is_outer:
        if min(len(order), batch) > MOST_PARTS and not net.has("Permute"):
            return None
        states = transposed(net, states, [1, 0, 2])
    return net.reshaped(states, shape)


def _unshaped(value: SSAValue) -> SSAValue:
    """What a value is a reshape of."""
    while (reshape := producer(value, ReshapeOp)) is not None:
        value = reshape.input
    return value


# Formulas


class _Gate(NamedTuple):
    """Where a gate is among the gates of a step, and what is added to it."""

    gates: SSAValue
    start: int
    shift: Array


class _Step(NamedTuple):
    """What a step is made of."""

    hidden: SSAValue
    cell: SSAValue
    before: SSAValue | None
    """The hidden state before; None at the first step, where it is zero."""
    cell_before: SSAValue | None
    rows: SSAValue
    """The inputs of the gates, of which the step reads a part."""
    start: int
    matrix: SSAValue | None
    bias: Array
    gates: dict[str, _Gate]


def _products(value: SSAValue) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The factors of a product, either one first."""
    if (product := producer(value, e.MulOp)) is not None:
        yield product.lhs, product.rhs
        yield product.rhs, product.lhs


def _gated(net: Net, value: SSAValue) -> tuple[_Gate, SSAValue] | None:
    """A gate and what it lets pass, which is a hyperbolic tangent."""
    for gate, other in _products(value):
        tanh = producer(other, e.TanhOp)
        if tanh is not None and (found := _sigmoid(net, gate)) is not None:
            return found, tanh.input
    return None


def _sigmoid(net: Net, value: SSAValue) -> _Gate | None:
    sigmoid = producer(value, e.SigmoidOp)
    return None if sigmoid is None else _gate(net, sigmoid.input)


def _gate(net: Net, value: SSAValue) -> _Gate | None:
    """One of four parts of the gates, with a constant."""
    if not net.shape(value):
        return None
    size = net.shape(value)[-1]
    shift = np.zeros(size, np.float32)
    add = producer(value, e.AddOp)
    if add is not None and (constant := net.array(add.rhs)) is not None:
        if constant.size not in (1, size) or net.shape(add.lhs) != net.shape(value):
            return None
        value, shift = add.lhs, shift + constant.reshape(-1)
    owner = value.owner
    shape = net.shape(value)
    if isinstance(owner, SliceOp):
        source, starts = owner.input, [dim.value for dim in owner.starts.data]
        is_plain = all(dim.value == 1 for dim in owner.steps.data) and not any(starts[:-1])
        start = starts[-1]
    elif isinstance(owner, SplitOp):
        source, is_plain = owner.input, owner.axis.data == len(shape) - 1
        place = owner.results.index(value)
        start = sum(net.shape(each)[-1] for each in owner.results[:place])
    else:
        return None
    if start is None or not is_plain or net.shape(source) != (*shape[:-1], 4 * size):
        return None
    return _Gate(source, start, shift)


def _step(net: Net, hidden: SSAValue) -> _Step | None:
    """What a hidden state is made of; None if it is none."""
    if element_type(hidden) != f32 or (outer := _gated(net, hidden)) is None:
        return None
    output, cell = outer
    add = producer(cell, e.AddOp)
    sums = [(cell, None)] if add is None else [(add.lhs, add.rhs), (add.rhs, add.lhs)]
    for new, kept in sums:
        if (inner := _gated(net, new)) is None or (other := _gate(net, inner[1])) is None:
            continue
        gates = {"o": output, "i": inner[0], "g": other}
        cell_before = None
        if kept is not None:
            for gate, before in _products(kept):
                if (forget := _sigmoid(net, gate)) is not None:
                    gates["f"], cell_before = forget, before
                    break
            else:
                continue
        if len({gate.gates for gate in gates.values()}) == 1:
            return _with_inputs(net, hidden, cell, cell_before, gates)
    return None


def _with_inputs(
    net: Net,
    hidden: SSAValue,
    cell: SSAValue,
    cell_before: SSAValue | None,
    gates: dict[str, _Gate],
) -> _Step | None:
    """A step with what its gates are a sum of: a part of the inputs, a product, and constants."""
    whole = gates["o"].gates
    width = net.shape(whole)[-1]
    bias = np.zeros(width, np.float32)
    product: MatmulOp | None = None
    rows: SSAValue | None = None
    pending = [whole]
    while pending:
        value = pending.pop()
        constant = net.array(value)
        matmul = producer(value, MatmulOp)
        if constant is not None:
            wide = np.broadcast_to(constant, np.broadcast_shapes(constant.shape, (1, width)))
            if (wide != wide.reshape(-1, width)[0]).any():
                return None
            bias = bias + wide.reshape(-1, width)[0]
        elif (add := producer(value, e.AddOp)) is not None:
            pending += add.operands
        elif matmul is not None and product is None and has_weights(net, matmul):
            product = matmul
        elif rows is None and net.shape(value) == net.shape(whole):
            rows = value
        else:
            return None
    found = None if rows is None else _part(net, rows)
    if found is None:
        return None
    before, matrix = (None, None) if product is None else (product.lhs, product.rhs)
    source, start = found
    return _Step(hidden, cell, before, cell_before, source, start, matrix, bias, gates)


def _part(net: Net, rows: SSAValue) -> tuple[SSAValue, int] | None:
    """What a value is some rows of, and how many are before them."""
    part = producer(_unshaped(rows), SliceOp)
    if part is None:
        return None
    starts = [dim.value for dim in part.starts.data]
    whole, shape = net.shape(part.input), net.shape(part.result)
    is_plain = all(dim.value == 1 for dim in part.steps.data)
    if not is_plain or starts[0] is None or any(starts[1:]) or shape[1:] != whole[1:]:
        return None
    return _unshaped(part.input), starts[0] * prod(whole[1:-1])


# Layers


def _state(net: Net, hidden: SSAValue) -> State | None:
    """What the layer makes that a hidden state is one step of; it is planned once for all steps."""
    if hidden in net.states:
        return net.states[hidden]
    steps: list[_Step] = []
    value: SSAValue | None = hidden
    while value is not None and (step := _step(net, value)) is not None:
        if steps and step.cell is not steps[-1].cell_before:
            break
        steps.append(step)
        value = step.before
    steps.reverse()
    tops = _layer(net, steps) if len(steps) > 1 and _are_alike(steps) else None
    for place, step in enumerate(steps):
        net.states[step.hidden] = None if tops is None else State(tops[0], place)
    if tops is not None and len(tops) > 1:
        net.states[steps[-1].cell] = State(tops[2], 0)
    return net.states.setdefault(hidden, None)


def _is_zero(net: Net, value: SSAValue | None) -> bool:
    constant = None if value is None else net.array(value)
    return value is None or (constant is not None and not constant.any())


def _are_alike(steps: list[_Step]) -> bool:
    """True if steps differ by nothing but their inputs and states."""
    last = steps[-1]
    return all(
        step.rows is last.rows
        and (step.matrix is last.matrix or step.matrix is None)
        and (step.bias == last.bias).all()
        and all(
            gate.start == last.gates[name].start and (gate.shift == last.gates[name].shift).all()
            for name, gate in step.gates.items()
        )
        for step in steps
    )


def _layer(net: Net, steps: list[_Step]) -> list[Blob] | None:
    """The tops of the layer of all steps; with states before and behind them if it needs them."""
    first, last = steps[0], steps[-1]
    if len(net.shape(last.hidden)) != 2:
        return None
    batch, size = net.shape(last.hidden)
    width = 4 * size
    starts = sorted(gate.start for gate in last.gates.values())
    if starts != [size * k for k in range(4)] or last.matrix is None:
        return None
    value, bias = last.rows, last.bias
    if (add := producer(value, e.AddOp)) is not None:
        constant = net.array(add.rhs)
        if constant is None or constant.size != width or constant.shape[-1] != width:
            return None
        value, bias = _unshaped(add.lhs), bias + constant.reshape(-1)
    product = producer(value, MatmulOp)
    if product is None or not has_weights(net, product):
        return None
    weight, matrix = net.array(product.rhs), net.array(last.matrix)
    assert weight is not None
    assert matrix is not None
    count = prod(net.shape(product.lhs)[:-1]) // batch
    forward = [batch * k for k in range(count)]
    found = [step.start for step in steps]
    if found not in (forward, forward[::-1]):
        return None
    is_backward = found[0] != 0
    if is_backward and count > MOST_PARTS:
        return None
    x = net.blob(_unshaped(product.lhs))
    x = net.reshaped(x, [count, batch, weight.shape[0]])
    if is_backward:
        x = picked(net, x, 0, list(range(count))[::-1], "reverse")
    places = np.concatenate([last.gates[name].start + np.arange(size) for name in GATES])
    shifts = np.concatenate([last.gates[name].shift for name in GATES])
    weights = [weight[:, places].T, bias[places] + shifts, matrix[:, places].T]
    blobs = [Weight.of(np.ascontiguousarray(each)) for each in weights]
    has_states = not (_is_zero(net, first.before) and _is_zero(net, first.cell_before))
    if not has_states and last.cell.has_one_use():
        return net.layers("LSTM", [x, _continuation(net, count, batch)], blobs, num_output=size)
    bottoms = [x, net.filled([count, batch], 1.0)]
    for value in (first.before, first.cell_before):
        shape = [1, batch, size]
        bottoms.append(
            net.filled(shape, 0.0)
            if value is None or _is_zero(net, value)
            else net.reshaped(net.tiled(net.blob(value), [batch, size]), shape)
        )
    return net.layers("LSTM", bottoms, blobs, tops=3, num_output=size, expose_hidden=True)


def _continuation(net: Net, steps: int, batch: int) -> Blob:
    """0 at the first step, 1 behind it."""
    parts = [net.filled([1, batch], 0.0), net.filled([steps - 1, batch], 1.0)]
    return net.layer("Concat", parts, suffix="cont", axis=0)
