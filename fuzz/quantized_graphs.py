"""
Random quantized ONNX graphs: chains and branches of operators between DequantizeLinear and
QuantizeLinear, and products whose quantization is computed.

Outputs are integers. Scales are powers of two now and then, so that values lie between two
integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log2
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]

_OPSET = 17
_LARGEST = 2000
"""Elements of a tensor."""


@dataclass(frozen=True)
class Program:
    """A model and its input."""

    model: ModelProto
    feed: Mapping[str, Array]


@dataclass(frozen=True)
class Value:
    """Bytes, with what they stand for."""

    name: str
    shape: tuple[int, ...]
    scale: float
    zero: int
    dtype: type[np.generic]

    @property
    def size(self) -> float:
        """The magnitude that numbers usually have."""
        return self.scale * 64


def some_weights(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Bytes of any size, or as those of trained networks: most of them small."""
    info = np.iinfo(dtype)
    middle = (info.min + info.max + 1) // 2
    if rng.random() < 0.5:
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    numbers = np.rint(rng.standard_normal(shape) * rng.choice([10, 40])) + middle
    return np.clip(numbers, info.min, info.max).astype(dtype)


@dataclass
class Graph:
    """What is there of a graph."""

    random: Random
    nodes: list[Any] = field(default_factory=list[Any])
    constants: list[Any] = field(default_factory=list[Any])
    values: list[Value] = field(default_factory=list[Value])

    @property
    def numbers(self) -> np.random.Generator:
        """For arrays."""
        return np.random.default_rng(self.random.getrandbits(32))

    def constant(self, array: Any) -> str:
        """A new initializer."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A new node with one result."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def scale(self, size: float) -> float:
        """A scale for numbers that are usually of a magnitude."""
        scale = max(size, 1e-6) / 64 * self.random.uniform(0.7, 1.5)
        return 2.0 ** round(log2(scale)) if self.random.random() < 0.4 else scale

    def floats(self, x: Value) -> str:
        """What bytes stand for."""
        scale, zero = np.float32(x.scale), np.asarray(x.zero, x.dtype)
        return self.node("DequantizeLinear", x.name, self.constant(scale), self.constant(zero))

    def bytes(self, x: str, shape: tuple[int, ...], size: float) -> Value:
        """Floats as bytes; a new value."""
        dtype = self.random.choice((np.uint8, np.uint8, np.int8))
        info = np.iinfo(dtype)
        middle = (info.min + info.max + 1) // 2
        zero = self.random.choice((middle, info.min, 0, middle + self.random.randint(-20, 20)))
        scale = float(np.float32(self.scale(size)))
        name = self.node(
            "QuantizeLinear",
            x,
            self.constant(np.float32(scale)),
            self.constant(np.asarray(zero, dtype)),
        )
        value = Value(name, shape, scale, zero, dtype)
        self.values.append(value)
        return value

    def weights(self, shape: tuple[int, ...], axis: int) -> tuple[str, Array]:
        """Dequantized weights, and their scales."""
        rng, count = self.numbers, shape[axis]
        is_signed = self.random.random() < 0.8
        dtype = np.int8 if is_signed else np.uint8
        info = np.iinfo(dtype)
        integers = some_weights(rng, shape, dtype)
        if self.random.random() < 0.2:
            integers = np.full(shape, self.random.choice((info.min, info.max)), dtype)
        is_each = self.random.random() < 0.6
        scales = rng.uniform(0.002, 0.02, count if is_each else ()).astype(np.float32)
        zero = 0 if is_signed else 128 + self.random.randint(-3, 3)
        zeros = np.full(scales.shape, zero, dtype)
        attributes = {"axis": axis} if is_each else {}
        name = self.node(
            "DequantizeLinear",
            self.constant(integers),
            self.constant(scales),
            self.constant(zeros),
            **attributes,
        )
        return name, scales

    def bias(self, count: int, x: Value, scales: Array) -> str | None:
        """As integers in the scale of sums, as floats, or none."""
        kind = self.random.random()
        if kind < 0.3:
            return None
        if kind < 0.5:
            return self.constant(self.numbers.normal(0, x.size, count).astype(np.float32))
        own = np.broadcast_to(np.float32(x.scale) * scales, (count,)).astype(np.float32)
        integers = self.numbers.integers(-9000, 9000, count).astype(np.int32)
        zeros = np.zeros(count, np.int32)
        parts = map(self.constant, (integers, own, zeros))
        return self.node("DequantizeLinear", *parts, axis=0)

    def after(self, x: str, size: float) -> tuple[str, float]:
        """An activation behind a sum, or nothing."""
        kind = self.random.choice(("", "", "Relu", "Clip", "LeakyRelu", "HardSigmoid"))
        if kind == "Clip":
            limits = (self.constant(np.float32(v)) for v in (0, size))
            return self.node("Clip", x, *limits), size
        if kind == "HardSigmoid":
            return self.node(kind, x, alpha=float(1 / max(size, 1e-6)), beta=0.5), 1.0
        return (self.node(kind, x), size) if kind else (x, size)


Recipe = Callable[[Graph, Value], object]


def _conv(g: Graph, x: Value) -> object:
    if len(x.shape) != 4:
        return None
    batch, channels, *space = x.shape
    groups = g.random.choice((1, 1, channels, *(k for k in (2, 3) if channels % k == 0)))
    filters = groups * g.random.randint(1, max(1, 24 // groups))
    kernel = [g.random.randint(1, min(3, size)) for size in space]
    stride, dilation = g.random.choice((1, 1, 2)), g.random.choice((1, 1, 1, 2))
    pads = [g.random.randint(0, 2) for _ in range(4)]
    reach = [(k - 1) * dilation + 1 for k in kernel]
    whole = [n + pads[d] + pads[d + 2] for d, n in enumerate(space)]
    if any(n < r for n, r in zip(whole, reach, strict=True)):
        return None
    depth = channels // groups
    weights, scales = g.weights((filters, depth, *kernel), 0)
    inputs = [g.floats(x), weights]
    bias = g.bias(filters, x, scales)
    if bias is not None:
        inputs.append(bias)
    strides, dilations = [stride] * 2, [dilation] * 2
    y = g.node("Conv", *inputs, group=groups, strides=strides, dilations=dilations, pads=pads)
    sizes = [(n - r) // stride + 1 for n, r in zip(whole, reach, strict=True)]
    size = x.size * float(scales.max()) * 74 * (depth * kernel[0] * kernel[1]) ** 0.5
    return g.bytes(*_shaped(g.after(y, size), (batch, filters, *sizes)))


def _transposed(g: Graph, x: Value) -> object:
    """Where steps are as large as the kernel, each result is one product of channels."""
    if len(x.shape) != 4:
        return None
    batch, channels, *space = x.shape
    filters, kernel = g.random.randint(1, 9), [g.random.randint(1, 3) for _ in space]
    strides = kernel if g.random.random() < 0.7 else [1, 2]
    weights, scales = g.weights((channels, filters, *kernel), 1)
    inputs = [g.floats(x), weights]
    bias = g.bias(filters, x, scales)
    if bias is not None:
        inputs.append(bias)
    y = g.node("ConvTranspose", *inputs, strides=strides, kernel_shape=kernel)
    steps = zip(space, strides, kernel, strict=True)
    sizes = [(size - 1) * stride + taps for size, stride, taps in steps]
    size = x.size * float(scales.max()) * 74 * channels**0.5
    return g.bytes(*_shaped(g.after(y, size), (batch, filters, *sizes)))


def _shaped(
    result: tuple[str, float], shape: tuple[int, ...]
) -> tuple[str, tuple[int, ...], float]:
    return result[0], shape, result[1]


def _product(g: Graph, x: Value) -> object:
    """With constant weights, in the last dimension."""
    if len(x.shape) < 2:
        return None
    depth, columns = x.shape[-1], g.random.randint(1, 40)
    weights, scales = g.weights((depth, columns), 1)
    y = g.node("MatMul", g.floats(x), weights)
    bias = g.bias(columns, x, scales)
    if bias is not None:
        y = g.node("Add", y, bias)
    size = x.size * float(scales.max()) * 74 * depth**0.5
    return g.bytes(*_shaped(g.after(y, size), (*x.shape[:-1], columns)))


def _square(g: Graph, x: Value) -> object:
    """Of two computed matrices."""
    if len(x.shape) < 3:
        return None
    axes = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
    other = g.node("Transpose", x.name, perm=axes)
    turned = Value(other, tuple(x.shape[axis] for axis in axes), x.scale, x.zero, x.dtype)
    y = g.node("MatMul", g.floats(x), g.floats(turned))
    return g.bytes(y, (*x.shape[:-1], x.shape[-2]), x.size**2 * x.shape[-1] ** 0.5)


def _pair(g: Graph, x: Value) -> object:
    """A sum, difference or product of two values, or of one with numbers."""
    others = [v for v in g.values if v.shape == x.shape]
    other, op_type = g.random.choice(others), g.random.choice(("Add", "Add", "Sub", "Mul"))
    y = g.node(op_type, g.floats(x), g.floats(other))
    size = x.size * other.size if op_type == "Mul" else x.size + other.size
    return g.bytes(*_shaped(g.after(y, size), x.shape))


def _join(g: Graph, x: Value) -> object:
    if len(x.shape) < 2:
        return None
    others = [v for v in g.values if (v.shape[0], *v.shape[2:]) == (x.shape[0], *x.shape[2:])]
    parts = [x, g.random.choice(others)]
    y = g.node("Concat", *map(g.floats, parts), axis=1)
    channels = sum(part.shape[1] for part in parts)
    return g.bytes(y, (x.shape[0], channels, *x.shape[2:]), max(part.size for part in parts))


def _unary(g: Graph, x: Value) -> object:
    kind = g.random.choice(("Sigmoid", "Tanh", "Relu", "Abs", "Neg", "HardSwish", "Exp"))
    size = {"Sigmoid": 1.0, "Tanh": 1.0, "Exp": float(np.exp(min(x.size, 20)))}.get(kind, x.size)
    return g.bytes(g.node(kind, g.floats(x)), x.shape, size)


def _pool(g: Graph, x: Value) -> object:
    if len(x.shape) != 4 or min(x.shape[2:]) < 2:
        return None
    kind = g.random.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if kind == "GlobalAveragePool":
        return g.bytes(g.node(kind, g.floats(x)), (*x.shape[:2], 1, 1), x.size)
    stride = g.random.choice((1, 2))
    y = g.node(kind, g.floats(x), kernel_shape=[2, 2], strides=[stride, stride])
    sizes = [(n - 2) // stride + 1 for n in x.shape[2:]]
    return g.bytes(y, (*x.shape[:2], *sizes), x.size)


def _move(g: Graph, x: Value) -> object:
    """Bytes that are moved, and stay what they are."""
    kind, rank = g.random.choice(("Transpose", "Reshape", "Slice")), len(x.shape)
    if kind == "Transpose":
        axes = g.random.sample(range(rank), rank)
        shape = tuple(x.shape[axis] for axis in axes)
        name = g.node(kind, x.name, perm=axes)
    elif kind == "Reshape":
        shape = (x.shape[0], int(np.prod(x.shape[1:])))
        name = g.node(kind, x.name, g.constant(np.array(shape, np.int64)))
    else:
        axis = g.random.randrange(rank)
        end = g.random.randint(1, x.shape[axis])
        shape = tuple(end if k == axis else n for k, n in enumerate(x.shape))
        parts = (np.array([k], np.int64) for k in (0, end, axis))
        name = g.node(kind, x.name, *map(g.constant, parts))
    value = Value(name, shape, x.scale, x.zero, x.dtype)
    g.values.append(value)
    return value


def _dynamic(g: Graph, x: Value) -> object:
    """A product whose scale and zero point are those of the data."""
    kind = g.random.choice(("ConvInteger", "MatMulInteger"))
    if len(x.shape) != 4 and kind == "ConvInteger":
        return None
    if len(x.shape) < 2:
        return None
    floats, names = g.floats(x), [f"d{len(g.nodes)}_{k}" for k in range(3)]
    g.nodes.append(helper.make_node("DynamicQuantizeLinear", [floats], names))
    shape = (5, x.shape[1], 1, 1) if kind == "ConvInteger" else (x.shape[-1], 7)
    weights = g.constant(some_weights(g.numbers, shape, np.int8))
    sums = g.node(kind, names[0], weights, names[2])
    y = g.node("Cast", sums, to=TensorProto.FLOAT)
    depth = shape[1] if kind == "ConvInteger" else shape[0]
    found = (x.shape[0], 5, *x.shape[2:]) if kind == "ConvInteger" else (*x.shape[:-1], 7)
    return g.bytes(y, found, 64 * 74 * depth**0.5)


RECIPES: tuple[Recipe, ...] = (
    _conv,
    _conv,
    _conv,
    _transposed,
    _product,
    _product,
    _square,
    _pair,
    _pair,
    _join,
    _unary,
    _pool,
    _move,
    _dynamic,
)


def random_program(seed: int) -> Program:
    """The graph of a seed; its outputs are all values that nothing else reads."""
    random = Random(seed)
    g = Graph(random)
    if random.random() < 0.75:
        shape = (
            random.choice((1, 1, 2)),
            random.randint(1, 20),
            *random.choices(range(1, 13), k=2),
        )
    else:
        shape = (random.randint(1, 9), *random.choices(range(1, 40), k=random.randint(1, 2)))
    dtype = random.choice((np.uint8, np.int8))
    x = Value(
        "x", shape, 0.02, random.randint(*((0, 255) if dtype is np.uint8 else (-9, 9))), dtype
    )
    g.values.append(x)
    for _ in range(random.randint(1, 6)):
        recipe = random.choice(RECIPES)
        values = [v for v in g.values[-3:] if np.prod(v.shape) <= _LARGEST]
        if values:
            recipe(g, random.choice(values))
    if not g.nodes:
        _unary(g, x)
    read = {name for node in g.nodes for name in node.input}
    results = [v for v in g.values[1:] if v.name not in read]
    code = helper.np_dtype_to_tensor_dtype
    ports = [
        helper.make_tensor_value_info(v.name, code(np.dtype(v.dtype)), v.shape)
        for v in (x, *results)
    ]
    graph = helper.make_graph(g.nodes, f"quantized_{seed}", ports[:1], ports[1:], g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    info = np.iinfo(dtype)
    numbers = g.numbers.integers(info.min, info.max + 1, shape).astype(dtype)
    return Program(model, {"x": numbers})
