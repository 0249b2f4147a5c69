"""`lowerdeck report`: counts as made by hand and as published, and the plan of memory."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import CompileOptions, KernelTimes, import_and_lower
from lowerdeck.passes.machinery.statistics import statistics_of
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.report.report import Report, amount, report
from lowerdeck.tools.report.roofline import Point, Roofline

C99 = CompileOptions(target="c99")


class Net:
    """A model, layer by layer; weights are inputs, so that they need no memory."""

    def __init__(self, shape: Sequence[Any], *, weights_are_inputs: bool = False) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))]
        self._weights: list[onnx.TensorProto] = []
        self._weights_are_inputs = weights_are_inputs
        self.last = "x"

    def weight(self, *shape: int) -> str:
        name = f"w{len(self._nodes)}_{len(self._weights)}_{len(self._inputs)}"
        if self._weights_are_inputs:
            self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        else:
            count = math.prod(shape)
            array = np.linspace(-1, 1, count, dtype=np.float32).reshape(shape)
            self._weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op_type: str, *others: str, source: str | None = None, **attributes: Any) -> str:
        inputs = [source or self.last, *others]
        self.last = f"v{len(self._nodes)}"
        name = f"{op_type}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [self.last], name=name, **attributes))
        return self.last

    def conv(
        self,
        channels: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        source: str | None = None,
    ) -> str:
        """A square convolution without bias, padded so that only its stride makes it smaller."""
        weight = self.weight(channels[1], channels[0] // groups, kernel, kernel)
        return self.add(
            "Conv",
            weight,
            source=source,
            pads=[kernel // 2] * 4,
            strides=[stride] * 2,
            group=groups,
        )

    def write(self, path: Path) -> str:
        result = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, "g", self._inputs, [result], self._weights)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        path.write_bytes(model.SerializeToString())
        return str(path)


# Small nets


def mlp() -> Net:
    net = Net([2, 3])
    net.add("MatMul", net.weight(3, 5))
    net.add("Add", net.weight(5))
    net.add("Relu")
    return net


def convolutions() -> Net:
    net = Net([1, 3, 8, 8])
    net.conv((3, 4), 3, stride=2)
    net.conv((4, 4), 3, groups=4)
    net.conv((4, 6), 1)
    return net


def classifier() -> Net:
    net = Net([1, 2, 4, 4])
    scale, bias, mean, variance = (net.weight(2) for _ in range(4))
    net.add("BatchNormalization", scale, bias, mean, variance)
    net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("Gemm", net.weight(2, 10), net.weight(10))
    net.add("Softmax")
    return net


def residual() -> Net:
    net = Net([1, 4, 6, 6])
    net.conv((4, 4), 3)
    net.add("Relu")
    net.add("Add", "x")
    return net


def upsampling() -> Net:
    net = Net([1, 2, 3, 3])
    net.add("ConvTranspose", net.weight(2, 5, 2, 2), strides=[2, 2])
    net.add("Sigmoid")
    net.add("Mul", net.weight(5, 1, 1))
    return net


SMALL = [
    # 2 x 5 results of 3 products and sums; a sum; a maximum.
    (mlp, 2 * 5 * 3, 2 * (2 * 5 * 3) + 10 + 10, 15 + 5),
    # 4x4x4 results of 27 taps, of 9 taps; 6x4x4 of 4.
    (
        convolutions,
        64 * 27 + 64 * 9 + 96 * 4,
        2 * (64 * 27 + 64 * 9 + 96 * 4),
        4 * 27 + 4 * 9 + 6 * 4,
    ),
    # Normalization: four steps an element, two a channel. Pools: 8 results of 4, 2 of 4 and a
    # quotient. Product and bias. Softmax: five steps an element.
    (classifier, 20, (32 * 4 + 2 * 2) + 8 * 4 + (8 + 2) + (2 * 20 + 10) + 50, 4 * 2 + 20 + 10),
    (residual, 4 * 36 * 36, 2 * 4 * 36 * 36 + 144 + 144, 4 * 4 * 9),
    # Each of 2x3x3 inputs goes to 5x2x2 results.
    (upsampling, 18 * 20, 2 * 18 * 20 + 180 + 180, 40 + 5),
]


@pytest.mark.parametrize(("net", "products", "flops", "parameters"), SMALL)
def test_small_nets_counted_by_hand(
    net: Any, products: int, flops: int, parameters: int, tmp_path: Path
) -> None:
    found = report(net().write(tmp_path / "m.onnx"), C99)
    assert found.total.multiply_adds == products
    assert found.total.flops == flops
    assert found.read.parameters == parameters
    assert sum(layer.multiply_adds for layer in found.layers) == products
    assert sum(layer.flops for layer in found.layers) == flops
    assert sum(layer.parameters for layer in found.layers) == parameters
    assert sum(layer.bytes_moved for layer in found.layers) == found.total.bytes_moved


def test_layers(tmp_path: Path) -> None:
    found = report(classifier().write(tmp_path / "m.onnx"), C99)
    assert [(layer.name, layer.operator, layer.shape) for layer in found.layers] == [
        ("BatchNormalization_0", "BatchNormalization", (1, 2, 4, 4)),
        ("MaxPool_1", "MaxPool", (1, 2, 2, 2)),
        ("GlobalAveragePool_2", "GlobalAveragePool", (1, 2, 1, 1)),
        ("Flatten_3", "Flatten", (1, 2)),
        ("Gemm_4", "Gemm", (1, 10)),
        ("Softmax_5", "Softmax", (1, 10)),
    ]


# Published numbers of multiply-adds


def vgg16() -> Net:
    net = Net([1, 3, 224, 224], weights_are_inputs=True)
    before = 3
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            net.conv((before, channels), 3)
            before = channels
        net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.add("Flatten")
    for size in ((512 * 49, 4096), (4096, 4096), (4096, 1000)):
        net.add("MatMul", net.weight(*size))
    return net


def resnet50() -> Net:
    net = Net([1, 3, 224, 224], weights_are_inputs=True)
    net.conv((3, 64), 7, stride=2)
    net.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    before = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            source = net.last
            net.conv((before, inner), 1)
            net.conv((inner, inner), 3, stride=stride)
            main_way = net.conv((inner, 4 * inner), 1)
            if not block:
                source = net.conv((before, 4 * inner), 1, stride=stride, source=source)
            net.add("Add", main_way, source=source)
            before = 4 * inner
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("MatMul", net.weight(2048, 1000))
    return net


def mobilenet_v2() -> Net:
    net = Net([1, 3, 224, 224], weights_are_inputs=True)
    net.conv((3, 32), 3, stride=2)
    before = 32
    rows = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    for factor, channels, count, stride in [*rows, (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(count):
            inner = before * factor
            if factor != 1:
                net.conv((before, inner), 1)
            net.conv((inner, inner), 3, stride=stride if not block else 1, groups=inner)
            net.conv((inner, channels), 1)
            before = channels
    net.conv((320, 1280), 1)
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("MatMul", net.weight(1280, 1000))
    return net


@pytest.mark.parametrize(
    ("net", "published"), [(resnet50, 4.1e9), (mobilenet_v2, 0.30e9), (vgg16, 15.5e9)]
)
def test_published_multiply_adds(net: Any, published: float, tmp_path: Path) -> None:
    path = net().write(tmp_path / "m.onnx")
    module, _ = import_and_lower(path, "legal", C99)
    assert statistics_of(module).multiply_adds == pytest.approx(published, rel=0.01)


# Memory


@pytest.fixture
def found(tmp_path: Path) -> Report:
    return report(residual().write(tmp_path / "m.onnx"), C99)


def test_memory_is_that_of_the_compiled_model(found: Report, tmp_path: Path) -> None:
    import lowerdeck

    memory = found.memory
    assert memory is not None
    path = residual().write(tmp_path / "m.onnx")
    model = lowerdeck.compile(path, target="c99", cache=False)
    assert memory.weights == model.weights_size
    # The workspace of a call has room to begin at a multiple of 64.
    workspace = model.workspace_size
    assert isinstance(workspace, int)
    assert isinstance(memory.arena, int)
    assert memory.arena <= workspace <= memory.arena + 64
    assert (memory.inputs, memory.outputs) == (4 * 144, 4 * 144)
    assert memory.total == memory.arena + memory.weights + 8 * 144
    assert memory.is_exact


@pytest.mark.parametrize("threads", [1, 2])
def test_plan(threads: int, tmp_path: Path) -> None:
    """Buffers that are live together do not overlap, and the sums are those of the plan."""
    net = Net([1, 8, 16, 16])
    for _ in range(3):
        source = net.last
        net.conv((8, 8), 3)
        net.add("Sin")
        net.add("Add", source)
    path = net.write(tmp_path / "m.onnx")
    memory = report(path, CompileOptions(target="c99", threads=threads)).memory
    assert memory is not None
    assert isinstance(memory.arena, int)
    assert memory.buffers is not None
    assert memory.steps is not None
    assert len(memory.buffers) > 1
    for k, one in enumerate(memory.buffers):
        assert one.offset + one.size <= memory.arena
        assert 0 <= one.start <= one.end < len(memory.steps)
        for other in memory.buffers[:k]:
            apart = one.end < other.start or other.end < one.start
            below = one.offset + one.size <= other.offset
            above = other.offset + other.size <= one.offset
            assert apart or below or above
    for k, step in enumerate(memory.steps):
        own = [one.size for one in memory.buffers if one.start <= k <= one.end]
        assert step.live == sum(own)
    assert memory.peak == memory.arena
    assert sum(step.weights for step in memory.steps) >= 3 * 4 * 8 * 8 * 9


@pytest.mark.parametrize("given", [{"input_shapes": {"x": [7, 3, 8]}}, {"dims": {"n": 7, "w": 3}}])
def test_open_sizes_are_formulas_unless_given(given: Any, tmp_path: Path) -> None:
    net = Net(["n", "w", 8])
    net.add("Relu")
    net.add("MatMul", net.weight(8, 5))
    path = net.write(tmp_path / "m.onnx")
    found = report(path, C99)
    layers = found.data()["layers"]
    assert [layer["shape"] for layer in layers] == [["n", "w", 8], ["n", "w", 5]]
    assert [layer["flops"] for layer in layers] == ["n * w * 8", "n * w * 80"]
    assert found.data()["total"]["multiply_adds"] == "n * w * 40"
    memory = found.memory
    assert memory is not None
    assert not memory.is_exact
    assert (memory.data()["inputs"], memory.buffers) == ("n * w * 32", None)
    text = found.text()
    assert "n×w×8" in text
    assert "n * w * 40 multiply-adds" in text
    assert "sizes are open: --dim NAME=N or --input-shape gives numbers" in text
    sized = report(path, CompileOptions(target="c99", **given))
    assert [layer.flops for layer in sized.layers] == [7 * 3 * 8, 7 * 3 * 80]
    assert sized.total.multiply_adds == 7 * 3 * 40
    assert not sized.total.inexact
    assert sized.memory is not None
    assert sized.memory.is_exact


# Text, JSON and HTML


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = classifier().write(tmp_path / "m.onnx")
    data, page = tmp_path / "r.json", tmp_path / "r.html"
    command = ["report", path, "--target", "c99", "--json", str(data), "--html", str(page)]
    assert main(command) == 0
    text = capsys.readouterr().out
    for words in (
        "6 layers, 38 parameters in 152 bytes",
        "20 multiply-adds, 274 FLOPs",
        "memory for c99: ",
        "Gemm_4",
        "fuse-linear/",
    ):
        assert words in text
    read = json.loads(data.read_text())
    assert read["parameters"] == 38
    assert read["total"]["flops"] == 274
    assert [layer["operator"] for layer in read["layers"]][-1] == "Softmax"
    (gemm,) = (row for row in read["operators"] if row["operator"] == "Gemm")
    assert gemm == {
        "operator": "Gemm",
        "count": 1,
        "multiply_adds": 20,
        "flops": 50,
        "parameters": 30,
        "bytes_moved": 4 * (2 + 20 + 10) + 4 * (10 + 10 + 10),
    }
    fuse = next(one for one in read["passes"] if one["pass"] == "fuse")
    assert sum(fuse["rewrites"].values()) > 0
    html = page.read_text()
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert html.count('<rect class="buffer"') == len(read["memory"]["buffers"])
    assert "$" not in html


def _kernel(name: str, seconds: float, multiply_adds: int, size: int) -> Point:
    nodes = [f"{name}<b>"]
    return Point(KernelTimes(name, nodes, "", "", 8, 1, seconds, seconds, multiply_adds, size))


def test_roofline() -> None:
    """By hand: 100 GFLOP/s and 10 GB/s meet at 10 FLOPs a byte."""
    one = _kernel("one", 1e-3, 25_000_000, 1_000_000)  # 50 a byte, 50 GFLOP/s
    two = _kernel("two", 2e-3, 1_000_000, 1_000_000)  # 2 a byte, 1 GFLOP/s, of 20
    three = _kernel("three", 3e-3, 0, 15_000_000)  # 5 GB/s
    found = Roofline([one, two, three], 1e11, 1e10)
    assert found.ridge == pytest.approx(10)
    kernels = found.data()["kernels"]
    shares = [kernel["share_of_roof"] for kernel in kernels]
    assert shares == pytest.approx([0.5, 0.05, 0.5])
    assert [kernel["limit"] for kernel in kernels] == ["processor", "memory", "memory"]
    assert [kernel["roof"] for kernel in kernels] == [1e11, pytest.approx(2e10), None]
    rows = [line.split()[0] for line in found.lines(None)[-3:]]
    assert rows == ["three", "two", "one"]
    picture = found.picture()
    assert picture.count("<circle") == 2
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture
    places = [float(x) for x in re.findall(r'(?:cx|cy)="([^"]+)"', picture)]
    (x_one, y_one), (x_two, y_two) = places[:2], places[2:]
    assert x_one > x_two
    assert y_one < y_two
    assert all(0 < place < 760 for place in places)


def test_roofline_without_products() -> None:
    found = Roofline([_kernel("copy", 1e-3, 0, 1000)], 1e11, 1e10)
    assert "<polyline" in found.picture()
    assert found.data()["kernels"][0]["flops_per_byte"] is None


@pytest.mark.parametrize("threads", [1, 2])
def test_roofline_of_a_run(
    tmp_path: Path, threads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data, page = (
        residual().write(tmp_path / "m.onnx"),
        tmp_path / "r.json",
        tmp_path / "r.html",
    )
    command = ["report", path, "--profile", "--json", str(data), "--html", str(page), "--no-cache"]
    assert main([*command, f"--threads={threads}"]) == 0
    assert "GB/s from memory" in capsys.readouterr().out
    found = json.loads(data.read_text())["roofline"]
    assert found["peak_flops"] > 1e8
    assert found["bytes_per_second"] > 1e8
    assert any(kernel["flops"] for kernel in found["kernels"])
    assert '<svg class="roofline"' in page.read_text()
    assert main(["report", path, "--json", str(data)]) == 0
    assert json.loads(data.read_text())["roofline"] is None


def test_names_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = residual().write(tmp_path / "<b>.onnx")
    page = tmp_path / "r.html"
    assert main(["report", path, "--html", str(page)]) == 0
    assert "&lt;b&gt;.onnx" in page.read_text()
    assert "<b>" not in page.read_text()


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "?"), (0, "0"), (999, "999"), (1_000, "1 k"), (4_089_000_000, "4.09 G")],
)
def test_amount(value: int | None, text: str) -> None:
    assert amount(value) == text
