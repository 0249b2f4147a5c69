"""NaN, infinities, signs of zeros and tensors of nothing, through the C of two targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, ValueInfoProto, helper

import lowerdeck

Array = NDArray[Any]
TARGETS = ("c99", "native")
OPEN_ON = [(False, "native"), (True, "c99")]
"""Whether sizes are open, and the target: what both are has one implementation."""
NAN, INF = np.nan, np.inf


@dataclass
class Nodes:
    """A model of many nodes that have nothing to do with each other: one call of the compiler."""

    opset: int = 20
    is_open: bool = False
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    infos: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    expected: dict[str, Array] = field(default_factory=dict[str, Array])

    def add(self, op_type: str, operands: Sequence[Any], expected: Any, **attributes: Any) -> None:
        """A node with one result."""
        number = len(self.nodes)
        names = ["" if operand is None else f"x{number}_{k}" for k, operand in enumerate(operands)]
        for name, operand in zip(names, operands, strict=True):
            if operand is None:
                continue
            array = np.asarray(operand)
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            open_dims = [f"{name}_{k}" for k in range(array.ndim)]
            shape = open_dims if self.is_open else array.shape
            self.infos.append(helper.make_tensor_value_info(name, element, shape))
            self.inputs[name] = array
        result = f"y{number}"
        self.nodes.append(helper.make_node(op_type, names, [result], **attributes))
        self.expected[result] = np.asarray(expected)

    @property
    def model(self) -> ModelProto:
        results = [helper.make_empty_tensor_value_info(name) for name in self.expected]
        graph = helper.make_graph(self.nodes, "nodes", self.infos, results)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def check(self, target: str) -> None:
        """All results, with the signs of zeros."""
        found = lowerdeck.compile(self.model, target=target, cache=False)(self.inputs)
        for node, (name, expected) in zip(self.nodes, self.expected.items(), strict=True):
            result, text = np.asarray(found[name]), str(node)
            np.testing.assert_allclose(result, expected, 1e-5, 1e-6, err_msg=text)
            if result.dtype.kind == "f":
                zeros = (result == 0) & (expected == 0)
                signs = np.signbit(result) == np.signbit(expected)
                assert np.all(signs | ~zeros), text


def _floats(*values: float, dtype: Any = np.float32) -> Array:
    return np.array(values, dtype)


@pytest.mark.parametrize("target", TARGETS)
def test_signs_of_zeros(target: str) -> None:
    nodes = Nodes()
    for dtype in (np.float32, np.float64, np.float16):
        x = _floats(-0.0, 0, -2, 3, NAN, -INF, -0.0, INF, dtype=dtype)
        signs = _floats(0, 0, -1, 1, NAN, -1, 0, 1, dtype=dtype)
        nodes.add("Sign", [x], signs)
        nodes.add("Sign", [np.tile(x, 9)], np.tile(signs, 9))
    zeros, axis = _floats(-0.0, -0.0, 0, -0.0, 1, -0.0), np.array(0)
    nodes.add("CumSum", [zeros, axis], _floats(-0.0, -0.0, 0, 0, 1, 1))
    nodes.add("CumSum", [zeros, axis], _floats(1, 1, 1, 1, 1, -0.0), reverse=1)
    nodes.add("CumSum", [zeros, axis], _floats(0, 0, 0, 0, 0, 1), exclusive=1)
    x, zero, two = _floats(-0.0, 0, 1, NAN, 3).repeat(9), _floats(0)[0], _floats(2)[0]
    nodes.add("Clip", [x, zero, two], _floats(-0.0, 0, 1, NAN, 2).repeat(9))
    nodes.add("Relu", [x], x)
    corners = _floats(0, -0.0, -0.0, -0.0).reshape(1, 1, 2, 2)
    region = [corners, _floats(0, 0, 1, 1).reshape(1, 4), np.array([0])]
    nodes.add("RoiAlign", region, _floats(0).reshape(1, 1, 1, 1), mode="max", sampling_ratio=1)
    for values, first in (((-0.0, 0.0), -0.0), ((0.0, -0.0), 0.0)):
        x = _floats(*values).reshape(1, 1, 1, 2)
        largest = _floats(first).reshape(1, 1, 1, 1)
        nodes.add("MaxPool", [x], largest, kernel_shape=[1, 2])
        nodes.add("MaxPool", [x.repeat(32, 1)], largest.repeat(32, 1), kernel_shape=[1, 2])
    nodes.check(target)


def _largest_numbers(x: Array, size: int, stride: int, dilation: int, pad: int) -> Array:
    """Of square windows over [n, c, h, w]."""
    lowest = np.full_like(x, -INF)
    framed = np.pad(
        np.where(np.isnan(x), lowest, x),
        [(0, 0), (0, 0), (pad, pad), (pad, pad)],
        constant_values=-INF,
    )
    extent = (size - 1) * dilation + 1
    windows = np.lib.stride_tricks.sliding_window_view(framed, (extent, extent), (2, 3))
    found: Array = windows[:, :, ::stride, ::stride, ::dilation, ::dilation].max((-2, -1))
    if dilation == 1:
        return found
    rows, columns = (_first_places(n, stride, dilation, pad) for n in found.shape[2:])
    first: Array = x[:, :, rows][..., columns]
    return np.where(np.isnan(first), first, found)


def _first_places(count: int, stride: int, dilation: int, pad: int) -> Array:
    """Of the first real elements of windows."""
    places: Array = np.arange(count) * stride - pad
    return np.where(places < 0, places % dilation, places)


@pytest.mark.parametrize(("is_open", "target"), OPEN_ON)
def test_max_pools_pass_over_nan(is_open: bool, target: str) -> None:
    """With dilations, NaN that comes first in its window stays."""
    generator = np.random.default_rng(3)
    nodes = Nodes(is_open=is_open)
    for channels, dtype in ((1, np.float32), (32, np.float32), (3, np.float64), (2, np.float16)):
        x = generator.standard_normal((2, channels, 9, 11)).astype(dtype)
        x[generator.random(x.shape) < 0.4] = NAN
        x[generator.random(x.shape) < 0.1] = INF
        for size, stride, dilation, pad in (
            (2, 1, 1, 0),
            (3, 2, 1, 1),
            (2, 1, 2, 1),
            (2, 3, 3, 0),
            (9, 1, 1, 4),
        ):
            nodes.add(
                "MaxPool",
                [x],
                _largest_numbers(x, size, stride, dilation, pad),
                kernel_shape=[size] * 2,
                strides=[stride] * 2,
                dilations=[dilation] * 2,
                pads=[pad] * 4,
            )
        x = np.where(np.isposinf(x), dtype(1), x)
        nodes.add("GlobalMaxPool", [x], np.nanmax(x, (2, 3), keepdims=True))
    nodes.add("GlobalMaxPool", [_floats(1, NAN).reshape(1, 2)], _floats(1, NAN).reshape(1, 2))
    nodes.check(target)


def test_places_of_largest_elements() -> None:
    """Where places are wanted, NaN that comes first in its window is the largest element."""
    x = _floats(NAN, 1, NAN, NAN, NAN, 2, 3, -INF).reshape(1, 1, 8)
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2], pads=[1, 0])
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "places")]
    info = helper.make_tensor_value_info("x", 1, x.shape)
    graph = helper.make_graph([node], "places", [info], results)
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    found = lowerdeck.compile(model, target="c99", cache=False)({"x": x})
    assert np.asarray(found["places"]).ravel().tolist() == [0, 0, 1, 2, 3, 4, 6, 6]
    largest = _floats(NAN, NAN, 1, NAN, NAN, NAN, 3, 3)
    np.testing.assert_array_equal(np.asarray(found["y"]).ravel(), largest)


@pytest.mark.parametrize("is_open", [False, True])
def test_windows_of_same_may_leave_elements_out(is_open: bool) -> None:
    """
    Where strides are longer than windows, padding would be negative: of what is left out, half (and
    an odd one at the end, or with SAME_LOWER at the beginning) stands before the first window.
    """
    nodes = Nodes(is_open=is_open)
    cases = (
        (3, 1, 3, [2], [1]),
        (6, 1, 3, [2, 5], [1, 4]),
        (5, 1, 3, [1, 4], [1, 4]),
        (4, 1, 4, [2], [2]),
        (8, 2, 4, [3, 7], [2, 6]),
        (7, 2, 3, [2, 5, 7], [1, 4, 7]),
    )
    for number, (size, kernel, stride, upper, lower) in enumerate(cases, is_open):
        x = np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, size)
        for auto_pad, expected in (("SAME_UPPER", upper), ("SAME_LOWER", lower)):
            window = {"kernel_shape": [kernel], "strides": [stride], "auto_pad": auto_pad}
            largest = _floats(*expected).reshape(1, 1, -1)
            nodes.add("MaxPool", [x], largest, **window)
            # The others, of one element, take turns.
            if kernel == 1 and number % 2:
                nodes.add("AveragePool", [x], largest, **window)
                w = np.ones((1, 1, 1), np.float32)
                nodes.add("Conv", [x, w], x[:, :, ::stride], **window)
            elif kernel == 1:
                nodes.add("LpPool", [x], largest, p=1, **window)
    nodes.check("c99")


@pytest.mark.parametrize("target", TARGETS)
def test_max_pools_of_caffe_pass_over_nan(target: str, tmp_path: Path) -> None:
    net = tmp_path / "net.prototxt"
    net.write_text(
        """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [1, 1, 1, 4] } } }
        layer { name: "y" type: "Pooling" bottom: "x" top: "y"
                pooling_param { pool: MAX kernel_h: 1 kernel_w: 2 } }
        """
    )
    x = _floats(1, NAN, 2, 3).reshape(1, 1, 1, 4)
    found = lowerdeck.compile(net, target=target, cache=False)({"x": x})
    assert np.asarray(found["y"]).ravel().tolist() == [1, 2, 3]


def _product(m: int, k: int, n: int) -> tuple[Array, Array, Array]:
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    return a, b, a @ b


SIZES = (
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
    (0, 0, 4),
    (0, 0, 0),
    (17, 0, 40),
    (1, 0, 64),
    (64, 64, 0),
)


@pytest.mark.parametrize(("is_open", "target"), OPEN_ON)
def test_products_of_nothing(is_open: bool, target: str) -> None:
    """Sums of no terms are 0; with a dimension of 0 there is nothing to compute."""
    nodes = Nodes(is_open=is_open)
    for number, (m, k, n) in enumerate(SIZES):
        a, b, c = _product(m, k, n)
        bias = np.arange(n, dtype=np.float32)
        # Each form on half of the sizes, and on the others where they are open.
        if (number + is_open) % 2:
            nodes.add("MatMul", [np.stack([a, a]), b], np.stack([c, c]))
            nodes.add("Gemm", [a.T, b.T, bias], 2 * c + bias, transA=1, transB=1, alpha=2.0)
            nodes.add("Einsum", [a, b], c.sum(), equation="ik,kj->")
        else:
            nodes.add("MatMul", [a, b], c)
            nodes.add("Gemm", [a, b, bias], c + bias)
            nodes.add("Einsum", [a, b.T], c, equation="ik,jk->ij")
    nodes.check(target)


@pytest.mark.parametrize("target", TARGETS)
def test_windows_of_nothing(target: str) -> None:
    nodes = Nodes()
    for n, c, o, size in (
        (0, 4, 8, 5),
        (1, 0, 8, 5),
        (0, 16, 16, 16),
        (1, 16, 0, 16),
        (1, 0, 0, 5),
    ):
        x, bias = np.ones((n, c, size, size), np.float32), np.arange(o, dtype=np.float32)
        full = np.zeros((n, o, size, size), np.float32) + bias.reshape(-1, 1, 1)
        if c == 0 or n == 0 or o == 0:
            w = np.ones((o, c, 3, 3), np.float32)
            nodes.add("Conv", [x, w, bias], full, pads=[1] * 4)
            w = w.transpose(1, 0, 2, 3)
            nodes.add("ConvTranspose", [x, w, bias], full, pads=[1] * 4)
        if o == 0:
            continue
        nodes.add("GlobalAveragePool", [x], np.zeros((n, c, 1, 1), np.float32))
        nodes.add("MaxPool", [x], x, kernel_shape=[3, 3], pads=[1] * 4)
        nodes.add("AveragePool", [x], x, kernel_shape=[3, 3], pads=[1] * 4)
    nodes.check(target)


@pytest.mark.parametrize(("is_open", "target"), OPEN_ON)
def test_places_of_nothing(is_open: bool, target: str) -> None:
    """Nothing is taken from tensors that have something, or nothing either."""
    nodes, none = Nodes(is_open=is_open), np.zeros((0, 2), np.int64)
    for shape in ((0, 3), (3, 0), (4, 5)):
        x = np.ones(shape, np.float32)
        nodes.add("Gather", [x, none], np.take(x, none, 0))
        nodes.add("Gather", [x, none.T], np.take(x, none.T, 1), axis=1)
        nodes.add("GatherElements", [x, np.zeros((0, shape[1]), np.int64)], x[:0])
        nodes.add("ScatterElements", [x, none[:, :0], np.zeros((0, 0), np.float32)], x)
        nodes.add("Transpose", [x], x.T)
        nodes.add("Concat", [x, x], np.concatenate([x, x], 1), axis=1)
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        x = np.ones(shape, np.float32)
        double = np.repeat(np.repeat(x, 2, 1), 2, 2)
        scales, sizes = np.array([1, 2, 2], np.float32), np.array(double.shape, np.int64)
        if not is_open:
            nodes.add("Resize", [x, None, scales], double, mode="nearest")
            nodes.add("Resize", [x, None, None, sizes], double, mode="nearest")
            nodes.add("Resize", [x, None, scales], double, mode="linear")
    nodes.check(target)


REDUCTIONS: dict[str, Callable[[Array], Any]] = {
    "ReduceSum": lambda x: x.sum(),
    "ReduceProd": lambda x: x.prod(),
    "ReduceL1": lambda x: x.sum(),
    "ReduceL2": lambda x: x.sum(),
    "ReduceMax": lambda x: np.float32(-INF),
    "ReduceMin": lambda x: np.float32(INF),
    "ReduceLogSum": lambda x: np.float32(-INF),
    "ReduceSumSquare": lambda x: x.sum(),
}


@pytest.mark.parametrize(("is_open", "target"), OPEN_ON)
def test_order_and_reductions_of_nothing(is_open: bool, target: str) -> None:
    nodes = Nodes(is_open=is_open)
    for number, shape in enumerate(((0,), (0, 3), (3, 0), (2, 0, 3)), is_open):
        x = np.zeros(shape, np.float32)
        # Each kind of half of the shapes, and of the others where sizes are open.
        for name in list(REDUCTIONS)[number % 2 :: 2]:
            nodes.add(name, [x], REDUCTIONS[name](x), keepdims=0)
        for axis in range(len(shape)):
            names = ("Softmax", "LogSoftmax", "LpNormalization")
            nodes.add(names[(number + axis) % 3], [x], x, axis=axis)
            if not is_open:
                nodes.add("Hardmax", [x], x, axis=axis)
        nodes.add("Unique", [x], np.zeros(0, np.float32))
        nodes.add("NonZero", [x], np.zeros((len(shape), 0), np.int64))
        nodes.add("Compress", [x, np.zeros(0, np.bool_)], np.zeros(0, np.float32))
    nodes.check(target)
