"""
A recurrent network as a loop of TensorFlow 1, and the same network as one operator of ONNX.

The loop is that of `dynamic_rnn`: TensorArrays, two counters, and a cell that joins input and state
before the product with one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.frontends.tf1.graph_pb2 import GraphDef

Array = NDArray[Any]

_FLOAT, _INT, _BOOL, _RESOURCE = 1, 3, 10, 20
_TYPES = {"T", "dtype", "Tidx", "Index", "Tperm", "Tlen", "index_type"}
_FRAME = "while"


@dataclass(frozen=True)
class Network:
    """A recurrent network with random weights, from zeros on or from initial states."""

    cell: str = "lstm"
    """lstm, gru, or rnn: h' = tanh([x, h] w + b)."""
    steps: int = 5
    batch: int = 2
    inputs: int = 3
    hidden: int = 4
    is_time_major: bool = False
    has_lengths: bool = False
    """The number of steps of each sequence is an input `n`: zeros follow, and the state stays."""
    is_reversed: bool = False
    forget_bias: float = 1.0

    @property
    def weights(self) -> list[Array]:
        """Kernel and bias of each product."""
        rng, rows = np.random.default_rng(self.hidden), self.inputs + self.hidden
        gates = {"lstm": [4], "gru": [2, 1], "rnn": [1]}[self.cell]
        return [
            part.astype(np.float32)
            for count in gates
            for part in (
                rng.standard_normal((rows, count * self.hidden)) / np.sqrt(rows),
                rng.standard_normal(count * self.hidden) / 4,
            )
        ]

    @property
    def states(self) -> int:
        """How many tensors the cell carries."""
        return 2 if self.cell == "lstm" else 1

    def drawn(self, seed: int) -> dict[str, Array]:
        """Random inputs by name."""
        rng = np.random.default_rng(seed)
        shape = [self.batch, self.steps, self.inputs]
        if self.is_time_major:
            shape[:2] = shape[1::-1]
        inputs: dict[str, Array] = {"x": rng.standard_normal(shape).astype(np.float32)}
        if self.has_lengths:
            inputs["n"] = rng.integers(0, self.steps + 1, self.batch).astype(np.int32)
        return inputs

    def expected(self, inputs: dict[str, Array]) -> list[Array]:
        """The outputs of all steps and the last states, in double precision."""
        x = np.asarray(inputs["x"], np.float64)
        x = x if self.is_time_major else x.transpose(1, 0, 2)
        x = x[::-1] if self.is_reversed else x
        lengths = inputs.get("n", np.full(self.batch, self.steps))
        last = min(self.steps, max(1, int(lengths.max())))
        states = [np.zeros((self.batch, self.hidden)) for _ in range(self.states)]
        rows = np.zeros((self.steps, self.batch, self.hidden))
        for step in range(last):
            after = self._step(x[step], states)
            over = (step >= lengths)[:, None]
            rows[step] = np.where(over, 0, after[-1])
            states = [np.where(over, old, new) for old, new in zip(states, after, strict=True)]
        rows = rows[::-1] if self.is_reversed else rows
        return [rows if self.is_time_major else rows.transpose(1, 0, 2), *states]

    def _step(self, x: Array, states: Sequence[Array]) -> list[Array]:
        weights = [np.asarray(w, np.float64) for w in self.weights]
        h = states[-1]

        def layer(state: Array, index: int) -> Array:
            return np.concatenate([x, state], 1) @ weights[index] + weights[index + 1]

        if self.cell == "rnn":
            return [np.tanh(layer(h, 0))]
        if self.cell == "gru":
            r, u = np.split(_sigmoid(layer(h, 0)), 2, 1)
            return [u * h + (1 - u) * np.tanh(layer(r * h, 2))]
        i, j, f, o = np.split(layer(h, 0), 4, 1)
        c = states[0] * _sigmoid(f + self.forget_bias) + _sigmoid(i) * np.tanh(j)
        return [c, np.tanh(c) * _sigmoid(o)]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


class _Graph:
    """A GraphDef that grows; nodes are named by their operator and number."""

    def __init__(self) -> None:
        self.graph = GraphDef()

    def node(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        node = self.graph.node.add()
        node.op, node.name = op, name or f"{op}_{len(self.graph.node)}"
        node.input.extend(inputs)
        for key, value in attributes.items():
            attribute: Any = node.attr[key]
            match value:
                case bool():
                    attribute.b = value
                case int() if key in _TYPES:
                    attribute.type = value
                case int():
                    attribute.i = value
                case str():
                    attribute.s = value.encode()
                case tuple():
                    attribute.shape.SetInParent()
                    for size in value:  # pyright: ignore[reportUnknownVariableType]
                        attribute.shape.dim.add().size = size
                case _:
                    array = np.asarray(value)
                    attribute.tensor.dtype = {"f": _FLOAT, "i": _INT}[array.dtype.kind]
                    attribute.tensor.tensor_shape.SetInParent()
                    for size in array.shape:
                        attribute.tensor.tensor_shape.dim.add().size = size
                    attribute.tensor.tensor_content = array.tobytes()
        return node.name

    def constant(self, value: Any, dtype: Any = np.int32, after: str | None = None) -> str:
        array = np.asarray(value, dtype)
        kind = _FLOAT if array.dtype.kind == "f" else _INT
        controls = () if after is None else (f"^{after}",)
        return self.node("Const", *controls, dtype=kind, value=array)

    def enter(self, value: str, kind: int, *, is_constant: bool = False) -> str:
        return self.node("Enter", value, T=kind, frame_name=_FRAME, is_constant=is_constant)

    def array(self, size: str, kind: int = _FLOAT) -> str:
        return self.node("TensorArrayV3", size, dtype=kind, element_shape=())


def dynamic_rnn(network: Network) -> GraphDef:
    """The graph of `tf.nn.dynamic_rnn`: outputs `y`, then `c` (of an LSTM) and `h`."""
    g = _Graph()
    steps, zero, one = g.constant(network.steps), g.constant(0), g.constant(1)
    x = g.node("Placeholder", name="x", dtype=_FLOAT, shape=network.drawn(0)["x"].shape)
    swap = g.constant([1, 0, 2])
    x = x if network.is_time_major else g.node("Transpose", x, swap, T=_FLOAT, Tperm=_INT)
    first = g.constant([0])
    if network.is_reversed:
        x = g.node("ReverseV2", x, first, T=_FLOAT, Tidx=_INT)
    # What the loop reads and writes.
    every = g.node("Range", zero, steps, one, Tidx=_INT)
    source, target = g.array(steps), g.array(steps)
    flow = g.node("TensorArrayScatterV3", source, every, x, f"{source}:1", T=_FLOAT)
    last, lengths = steps, ""
    if network.has_lengths:
        lengths = g.node("Placeholder", name="n", dtype=_INT, shape=(network.batch,))
        longest = g.node("Max", lengths, first, T=_INT, Tidx=_INT, keep_dims=False)
        last = g.node("Minimum", steps, g.node("Maximum", one, longest, T=_INT), T=_INT)
    # The loop: two counters, the flow of the outputs, the states.
    zeros = g.constant(np.zeros((network.batch, network.hidden)), np.float32)
    kinds = [_INT, _INT, _FLOAT, *[_FLOAT] * network.states]
    inits = [zero, zero, f"{target}:1", *[zeros] * network.states]
    enters = [g.enter(init, kind) for init, kind in zip(inits, kinds, strict=True)]
    nexts = [f"next_{index}" for index in range(len(inits))]
    merges = [
        g.node("Merge", enter, name, T=kind, N=2)
        for enter, name, kind in zip(enters, nexts, kinds, strict=True)
    ]
    tests = [
        g.node("Less", merge, g.enter(bound, _INT, is_constant=True), T=_INT)
        for merge, bound in zip(merges[:2], (steps, last), strict=True)
    ]
    going = g.node("LoopCond", g.node("LogicalAnd", *tests))
    pairs = zip(merges, kinds, strict=True)
    switches = [g.node("Switch", merge, going, T=kind) for merge, kind in pairs]
    counter, time, written, *states = (
        g.node("Identity", f"{switch}:1", T=kind)
        for switch, kind in zip(switches, kinds, strict=True)
    )
    inner = g.constant(1, after=counter)
    arrays = [g.enter(value, _RESOURCE, is_constant=True) for value in (source, target)]
    held = g.enter(flow, _FLOAT, is_constant=True)
    row = g.node("TensorArrayReadV3", arrays[0], time, held, dtype=_FLOAT)
    after = _cell(g, network, row, states)
    output = after[-1]
    if network.has_lengths:
        own = g.enter(lengths, _INT, is_constant=True)
        over = g.node("GreaterEqual", time, own, T=_INT)
        output = g.node("Select", over, g.enter(zeros, _FLOAT), output, T=_FLOAT)
        after = [
            g.node("Select", over, old, new, T=_FLOAT)
            for old, new in zip(states, after, strict=True)
        ]
    written = g.node("TensorArrayWriteV3", arrays[1], time, output, written, T=_FLOAT)
    counts = [g.node("AddV2", value, inner, T=_INT) for value in (counter, time)]
    for name, value, kind in zip(nexts, [*counts, written, *after], kinds, strict=True):
        g.node("NextIteration", value, name=name, T=kind)
    exits = [g.node("Exit", switch, T=_FLOAT) for switch in switches[2:]]
    y = g.node("TensorArrayGatherV3", target, every, exits[0], dtype=_FLOAT, element_shape=())
    if network.is_reversed:
        y = g.node("ReverseV2", y, first, T=_FLOAT, Tidx=_INT)
    y = y if network.is_time_major else g.node("Transpose", y, swap, T=_FLOAT, Tperm=_INT)
    g.node("Identity", y, name="y", T=_FLOAT)
    for name, value in zip(("c", "h")[-network.states :], exits[1:], strict=True):
        g.node("Identity", value, name=name, T=_FLOAT)
    return g.graph


def outputs(network: Network) -> list[str]:
    """The names of the outputs, in the order of `Network.expected`."""
    return ["y:0", "c:0", "h:0"] if network.states == 2 else ["y:0", "h:0"]


def _cell(g: _Graph, network: Network, x: str, states: Sequence[str]) -> list[str]:
    """The next states."""
    weights = [
        g.enter(g.constant(w, np.float32), _FLOAT, is_constant=True) for w in network.weights
    ]
    axis, h = g.constant(1, after=x), states[-1]

    def binary(op: str, lhs: str, rhs: str) -> str:
        return g.node(op, lhs, rhs, T=_FLOAT)

    def unary(op: str, value: str) -> str:
        return g.node(op, value, T=_FLOAT)

    def layer(state: str, index: int) -> str:
        joined = g.node("ConcatV2", x, state, axis, T=_FLOAT, N=2, Tidx=_INT)
        return binary("BiasAdd", binary("MatMul", joined, weights[index]), weights[index + 1])

    if network.cell == "rnn":
        return [unary("Tanh", layer(h, 0))]
    if network.cell == "gru":
        gates = g.node("Split", axis, unary("Sigmoid", layer(h, 0)), T=_FLOAT, num_split=2)
        r, u = gates, f"{gates}:1"
        new = unary("Tanh", layer(binary("Mul", r, h), 2))
        rest = binary("Sub", g.constant(1, np.float32, after=x), u)
        return [binary("AddV2", binary("Mul", u, h), binary("Mul", rest, new))]
    gates = g.node("Split", axis, layer(h, 0), T=_FLOAT, num_split=4)
    i, j, f, o = gates, f"{gates}:1", f"{gates}:2", f"{gates}:3"
    kept = binary("AddV2", f, g.constant(network.forget_bias, np.float32, after=x))
    old = binary("Mul", unary("Sigmoid", kept), states[0])
    c = binary("AddV2", old, binary("Mul", unary("Sigmoid", i), unary("Tanh", j)))
    return [c, binary("Mul", unary("Tanh", c), unary("Sigmoid", o))]


def operator(network: Network) -> onnx.ModelProto:
    """The network as one LSTM or GRU of ONNX, time-major, without lengths."""
    hidden, inputs = network.hidden, network.inputs
    kernels, biases = network.weights[::2], network.weights[1::2]
    count = 4 if network.cell == "lstm" else 3
    # i, j, f, o -> i, o, f, j; and r, u, c -> u, r, c.
    order = [0, 3, 2, 1] if network.cell == "lstm" else [1, 0, 2]
    kernel, bias = np.concatenate(kernels, 1), np.concatenate(biases)
    if network.cell == "lstm":
        bias[2 * hidden : 3 * hidden] += np.float32(network.forget_bias)
    columns = np.concatenate([np.arange(k * hidden, (k + 1) * hidden) for k in order])
    kernel, bias = kernel[:, columns], bias[columns]
    parameters = {
        "w": kernel[:inputs].T[None],
        "r": kernel[inputs:].T[None],
        "b": np.concatenate([bias, np.zeros(count * hidden, np.float32)])[None],
    }
    results = ["y4", "h3", "c3"][: 1 + network.states]
    node = helper.make_node(network.cell.upper(), ["x", "w", "r", "b"], results, hidden_size=hidden)
    steps, batch = network.steps, network.batch
    graph = helper.make_graph(
        [node],
        network.cell,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, inputs])],
        [helper.make_tensor_value_info("y4", TensorProto.FLOAT, [steps, 1, batch, hidden])]
        + [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, batch, hidden])
            for name in results[1:]
        ],
        [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in parameters.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
