"""
GPT-2 with any number of layers, in the operators that PyTorch's exporter writes for it, in floats
or with the quantized products that ONNX Runtime's quantizer makes of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]

HEADS, WORDS = 4, 100
_FAR = -10000.0
"""What is added to the scores of words that come later."""


@dataclass
class _Graph:
    """Nodes and weights; the methods add a node and return the name of its result."""

    random: Callable[[Sequence[int]], Array]
    quantized: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: dict[str, onnx.TensorProto] = field(default_factory=dict[str, onnx.TensorProto])

    def add(self, op_type: str, *operands: str, **attributes: Any) -> str:
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [name], name=name, **attributes))
        return name

    def weight(self, name: str, array: Array) -> str:
        """A weight; equal ones have equal names."""
        self.weights.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: np.generic) -> str:
        return self.weight(f"{value.dtype}_{value}", np.array(value))

    def linear(self, x: str, name: str, width: int, count: int) -> str:
        array = self.random([width, count]) / np.float32(math.sqrt(width))
        if self.quantized:
            x, weight = self.rounded(x), self.bytes(f"{name}.weight", array)
        else:
            weight = self.weight(f"{name}.weight", array)
        bias = self.weight(f"{name}.bias", self.random([count]))
        return self.add("Add", bias, self.add("MatMul", x, weight))

    def rounded(self, x: str) -> str:
        """A value as bytes, with a scale and a zero point of its own."""
        number = len(self.nodes)
        scale = self.scalar(np.float32(0.02 + number / 10000))
        zero = self.scalar(np.uint8(100 + number % 56))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, scale, zero), scale, zero)

    def bytes(self, name: str, array: Array) -> str:
        """A weight as bytes, with a scale of its own."""
        scale = np.float32(np.abs(array).max() / 127)
        weight = self.weight(name, np.rint(array / scale, dtype=np.float32).astype(np.int8))
        return self.add("DequantizeLinear", weight, self.scalar(scale), self.scalar(np.int8(0)))

    def norm(self, x: str, name: str, width: int) -> str:
        scale = self.weight(f"{name}.weight", 1 + self.random([width]) / np.float32(10))
        bias = self.weight(f"{name}.bias", self.random([width]))
        return self.add("LayerNormalization", x, scale, bias)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        name = "shape_" + "_".join(map(str, shape))
        return self.add("Reshape", x, self.weight(name, np.array(shape, np.int64)))

    def gelu(self, x: str) -> str:
        """Its approximation by tanh."""
        cube = self.add("Mul", self.add("Mul", x, x), x)
        inner = self.add("Add", x, self.add("Mul", cube, self.scalar(np.float32(0.044715))))
        tanh = self.add(
            "Tanh", self.add("Mul", inner, self.scalar(np.float32(math.sqrt(2 / math.pi))))
        )
        factor = self.add("Add", tanh, self.scalar(np.float32(1)))
        return self.add("Mul", self.add("Mul", x, self.scalar(np.float32(0.5))), factor)


def gpt2(
    layers: int, *, quantized: bool = False, width: int = 64, length: int = 16
) -> onnx.ModelProto:
    """Scores of the next word after each of `length` words, by the ids of words below `WORDS`."""
    rng = np.random.default_rng(0)
    graph = _Graph(lambda shape: rng.standard_normal(shape).astype(np.float32), quantized)
    words = graph.weight("words.weight", graph.random([WORDS, width]))
    x = graph.add("Gather", words, "input_ids")
    x = graph.add("Add", x, graph.weight("positions.weight", graph.random([length, width])))
    mask = graph.weight("mask", np.triu(np.full([length, length], _FAR, np.float32), 1))
    for layer in range(layers):
        name = f"layers.{layer}"
        x = graph.add("Add", x, _attention(graph, x, name, mask, width, length))
        inner = graph.linear(graph.norm(x, f"{name}.norm2", width), f"{name}.up", width, 4 * width)
        x = graph.add("Add", x, graph.linear(graph.gelu(inner), f"{name}.down", 4 * width, width))
    x = graph.norm(x, "norm", width)
    logits = graph.add("MatMul", x, graph.add("Transpose", words, perm=[1, 0]))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, length])
    result = helper.make_tensor_value_info(logits, TensorProto.FLOAT, [1, length, WORDS])
    built = helper.make_graph(graph.nodes, "gpt2", [ids], [result], list(graph.weights.values()))
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _attention(graph: _Graph, x: str, name: str, mask: str, width: int, length: int) -> str:
    x = graph.norm(x, f"{name}.norm1", width)
    size = width // HEADS
    heads: list[str] = []
    for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        y = graph.linear(x, f"{name}.{part}", width, width)
        y = graph.reshape(y, [1, length, HEADS, size])
        heads.append(graph.add("Transpose", y, perm=order))
    scores = graph.add("MatMul", heads[0], heads[1])
    scores = graph.add("Div", scores, graph.scalar(np.float32(math.sqrt(size))))
    weights = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)
    y = graph.add("Transpose", graph.add("MatMul", weights, heads[2]), perm=[0, 2, 1, 3])
    return graph.linear(graph.reshape(y, [1, length, width]), f"{name}.out", width, width)
