"""
Random quantized networks: each tensor of bytes against the exact formula, from the bytes before it;
and the same bytes by the interpreter and the C of every target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.core.elementwise import RoundOp
from lowerdeck.dialects.interpret import run_module
from lowerdeck.lowering import compile_to_c
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import some  # noqa: TID251  (these are tests)
from .targets import obstacle_to, run_on  # noqa: TID251  (these are tests)

Array = NDArray[Any]
Exact = Callable[[dict[str, Array]], Array]
"""What is quantized, in units of the result, from all bytes before."""

TIE = 1e-4
SHAPE = (2, 5, 9, 7)


@dataclass(frozen=True)
class Bytes:
    """A quantized tensor: its name, scale, zero point and shape."""

    name: str
    scale: np.float32
    zero: int
    shape: tuple[int, ...]


@dataclass
class Network:
    """A graph in the making, and what each of its quantized tensors should be."""

    seed: int
    dtype: Any
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    exact: dict[str, Exact] = field(default_factory=dict[str, Exact])
    known: dict[str, Bytes] = field(default_factory=dict[str, Bytes])

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def constant(self, array: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def real(self, x: Bytes, bytes_: dict[str, Array]) -> Array:
        return (bytes_[x.name].astype(np.float64) - x.zero) * np.float64(x.scale)

    def floats(self, x: Bytes) -> str:
        zero = self.constant(x.zero, self.dtype)
        return self.node("DequantizeLinear", x.name, self.constant(x.scale, np.float32), zero)

    def quantized(self, value: str, shape: tuple[int, ...], size: float, exact: Exact) -> Bytes:
        """Values up to a size, of which some are cut off, by a random scale and zero point."""
        limits = np.iinfo(self.dtype)
        scale = np.float32(size * self.random.uniform(0.7, 1.3) / 256)
        zero = int(self.random.choice([limits.min, int(self.random.integers(-40, 41)) + 1]))
        zero = max(zero, limits.min)
        name = self.node(
            "QuantizeLinear",
            value,
            self.constant(scale, np.float32),
            self.constant(zero, self.dtype),
        )
        found = self.known[name] = Bytes(name, scale, zero, shape)
        self.exact[name] = exact
        return found

    def conv(self, x: Bytes, filters: int, size: int, groups: int = 1, act: str = "") -> Bytes:
        depth = x.shape[1] // groups
        w = self.random.standard_normal((filters, depth, size, size)) * 40
        w = np.clip(np.rint(w), -128, 127).astype(np.int64)
        scales = self.random.uniform(0.001, 0.02, filters).astype(np.float32)
        both = np.float64(x.scale) * scales
        bias = self.random.integers(-3000, 3000, filters)
        stride, pads = (2, [0, 1, 1, 0]) if size > 1 and self.random.integers(2) else (1, [0] * 4)
        weight = self.node(
            "DequantizeLinear",
            self.constant(w, np.int8),
            self.constant(scales, np.float32),
            self.constant(np.zeros(filters), np.int8),
            axis=0,
        )
        shift = self.node(
            "DequantizeLinear",
            self.constant(bias, np.int32),
            self.constant(both.astype(np.float32), np.float32),
            self.constant(np.zeros(filters), np.int32),
            axis=0,
        )
        value = self.node(
            "Conv", self.floats(x), weight, shift, strides=[stride] * 2, pads=pads, group=groups
        )
        sizes = [
            (n + pads[k] + pads[k + 2] - size) // stride + 1 for k, n in enumerate(x.shape[2:])
        ]
        shape = (x.shape[0], filters, *sizes)

        def exact(bytes_: dict[str, Array]) -> Array:
            q = bytes_[x.name].astype(np.int64) - x.zero
            q = np.pad(q, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
            total = np.broadcast_to(bias.reshape(-1, 1, 1), shape).copy()
            each = filters // groups
            for f, i, j in np.ndindex(filters, size, size):
                first = f // each * depth
                rows = slice(i, i + stride * (sizes[0] - 1) + 1, stride)
                columns = slice(j, j + stride * (sizes[1] - 1) + 1, stride)
                part = q[:, first : first + depth, rows, columns]
                total[:, f] += (part * w[f, :, i, j].reshape(-1, 1, 1)).sum(1)
            return self.activated(total * both.reshape(-1, 1, 1), act)

        largest = float(127 * 60 * x.scale * scales.max() * np.sqrt(depth * size * size))
        if act:
            value = self.activation(value, act)
        return self.quantized(value, shape, largest, exact)

    def activation(self, value: str, act: str) -> str:
        if act == "Relu":
            return self.node("Relu", value)
        ends = [self.constant(end, np.float32) for end in (-0.3, 1.7)]
        return self.node("Clip", value, *ends)

    @staticmethod
    def activated(value: Array, act: str) -> Array:
        ends = (float(np.float32(-0.3)), float(np.float32(1.7)))
        limits = {"": (-np.inf, np.inf), "Relu": (0.0, np.inf), "Clip": ends}
        low, high = limits[act]
        return np.clip(value, low, high)

    def add(self, x: Bytes, y: Bytes, act: str = "") -> Bytes:
        value = self.node("Add", self.floats(x), self.floats(y))

        def exact(bytes_: dict[str, Array]) -> Array:
            return self.activated(self.real(x, bytes_) + self.real(y, bytes_), act)

        if act:
            value = self.activation(value, act)
        return self.quantized(value, x.shape, float(256 * max(x.scale, y.scale)), exact)

    def concat(self, *parts: Bytes) -> Bytes:
        value = self.node("Concat", *map(self.floats, parts), axis=1)
        shape = (parts[0].shape[0], sum(x.shape[1] for x in parts), *parts[0].shape[2:])

        def exact(bytes_: dict[str, Array]) -> Array:
            return np.concatenate([self.real(x, bytes_) for x in parts], 1)

        return self.quantized(value, shape, float(256 * parts[0].scale), exact)

    def mean(self, x: Bytes) -> Bytes:
        value = self.node("GlobalAveragePool", self.floats(x))

        def exact(bytes_: dict[str, Array]) -> Array:
            return self.real(x, bytes_).mean((2, 3), keepdims=True)

        return self.quantized(value, (*x.shape[:2], 1, 1), float(99 * x.scale), exact)

    def sigmoid(self, x: Bytes) -> Bytes:
        """A function of each byte."""
        value = self.node("Sigmoid", self.floats(x))

        def exact(bytes_: dict[str, Array]) -> Array:
            return 1 / (1 + np.exp(-self.real(x, bytes_)))

        return self.quantized(value, x.shape, 1.0, exact)

    def moved(self, x: Bytes) -> Bytes:
        """The maximum of windows, transposed there and back, with the same scale and zero point."""
        value = self.node("MaxPool", self.floats(x), kernel_shape=[3, 2], pads=[1, 1, 1, 0])
        value = self.node("Transpose", value, perm=[1, 0, 3, 2])
        scale, zero = self.constant(x.scale, np.float32), self.constant(x.zero, self.dtype)
        name = self.node("QuantizeLinear", value, scale, zero)
        shape = (x.shape[1], x.shape[0], x.shape[3], x.shape[2])

        def exact(bytes_: dict[str, Array]) -> Array:
            lowest = np.iinfo(self.dtype).min
            q = np.pad(bytes_[x.name], [(0, 0)] * 2 + [(1, 1), (1, 0)], constant_values=lowest)
            rows, columns = x.shape[2:]
            parts = [q[:, :, i : i + rows, j : j + columns] for i in range(3) for j in range(2)]
            best = np.max(parts, 0).transpose(1, 0, 3, 2)
            return (best.astype(np.float64) - x.zero) * np.float64(x.scale)

        self.exact[name] = exact
        self.known[name] = Bytes(name, x.scale, x.zero, shape)
        return self.known[name]

    def model(self) -> onnx.ModelProto:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)]
        outputs = [
            helper.make_tensor_value_info(x.name, kind, x.shape) for x in self.known.values()
        ]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def network(seed: int) -> Network:
    """Each kind of layer at least once."""
    net = Network(seed, (np.uint8, np.int8)[seed % 2])
    x = net.quantized("x", SHAPE, 6.0, lambda bytes_: bytes_["x"].astype(np.float64))
    first = net.conv(x, 16, 3, act="Relu")
    one = net.conv(first, 12, 1, act=("", "Clip")[seed % 2])
    other = net.conv(first, 12, 1)
    both = net.add(one, other, act=("Relu", "")[seed % 2])
    deep = net.conv(both, 24, 3, groups=12, act="Relu")
    each = net.conv(deep, 24, 1, groups=24, act="Clip")
    joined = net.concat(deep, each)
    net.moved(joined)
    net.sigmoid(joined)
    net.conv(net.mean(joined), 10, 1)
    return net


def lowered(net: Network, folder: Path, phase: str) -> ModuleOp:
    path = folder / f"net{net.seed}.onnx"
    path.write_bytes(net.model().SerializeToString())
    return import_and_lower(str(path), phase, CompileOptions())[0]


def interpreted(module: ModuleOp, x: Array) -> dict[str, Array]:
    results = run_module(module, {"x": x})
    return {name: np.asarray(value) for name, value in results.items()}


def image(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def check_exact(net: Network, bytes_: dict[str, Array]) -> None:
    limits = np.iinfo(net.dtype)
    for name, exact in net.exact.items():
        x = net.known[name]
        ratio = exact(bytes_) / np.float64(x.scale)
        expected = np.clip(np.rint(ratio) + x.zero, limits.min, limits.max)
        steps = bytes_[name].astype(np.float64) - expected
        is_tie = np.abs(np.abs(ratio - np.floor(ratio)) - 0.5) < TIE
        wrong = np.abs(steps) > is_tie
        assert not wrong.any(), (name, np.argwhere(wrong)[:3], steps[wrong][:3])


@pytest.mark.parametrize("seed", range(2))
def test_exact(tmp_path: Path, seed: int) -> None:
    """Nothing but the input, and what is no sum of bytes, is rounded as a float."""
    net, x = network(seed), image(seed)
    module = lowered(net, tmp_path, "optimized")
    assert sum(isinstance(op, RoundOp) for op in module.walk()) == 2
    check_exact(net, {"x": x, **interpreted(module, x)})


@pytest.mark.parametrize("target", some(["x86-64-amx", "x86-64-v3", "c99", "aarch64"]))
def test_same_bytes(tmp_path: Path, target: str) -> None:
    if (reason := obstacle_to(target)) is not None:
        pytest.skip(reason)
    net = network(7)
    module = lowered(net, tmp_path, "imported")
    x = image(7)
    expected = interpreted(lowered(net, tmp_path, "optimized"), x)
    options = CompileOptions(target=target, threads=2 if target == "x86-64-v3" else 1)
    artifact = compile_to_c(LowerdeckContext(options=options), module, "net")
    found = run_on(target, artifact, [x], tmp_path)
    for name, value in zip(net.known, found, strict=True):
        want = np.asarray(expected[name])
        np.testing.assert_array_equal(value.reshape(want.shape), want, err_msg=name)
