"""The times of kernels: what is counted, where it comes from, and that nothing is left without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck import compiler
from lowerdeck.tools.kernel_times import Report

pytestmark = pytest.mark.usefixtures("optimized_c")

ROWS, DEPTH, COLUMNS = 5, 7, 3


def product_and_softmax() -> onnx.ModelProto:
    """[n, 7] by [7, 3], and softmax of each row; n is not known."""
    weight = np.random.default_rng(0).standard_normal((DEPTH, COLUMNS)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["p"], name="the/product"),
            helper.make_node("Softmax", ["p"], ["y"], name="the/softmax"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", COLUMNS])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def repeated() -> onnx.ModelProto:
    """Four times v @ v in a loop."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["v", "v"], ["w"], name="in/loop"),
            helper.make_node("Identity", ["c"], ["d"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [4, 4]),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 4]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["four", "", "x"], ["y"], body=body)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])],
        [numpy_helper.from_array(np.array(4, np.int64), "four")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("threads", [1, 2])
def test_profile(threads: int) -> None:
    # A target without vectors: nothing is packed.
    model = lowerdeck.compile(product_and_softmax(), profile=True, threads=threads, target="c99")
    x = np.ones((ROWS, DEPTH), np.float32)
    profile = model.profile({"x": x}, seconds=0.01)
    assert [kernel.nodes for kernel in profile.kernels] == [["the/product"], ["the/softmax"]]
    assert [kernel.calls for kernel in profile.kernels] == [1, 1]
    assert profile.kernels[0].shapes == f"{ROWS}x{DEPTH} {DEPTH}x{COLUMNS} -> {ROWS}x{COLUMNS}"
    product = ROWS * DEPTH * COLUMNS
    assert [kernel.multiply_adds for kernel in profile.kernels] == [product, 0]
    in_out = ROWS * COLUMNS
    sizes = [ROWS * DEPTH + DEPTH * COLUMNS + in_out, 2 * in_out]
    assert [kernel.bytes for kernel in profile.kernels] == [4 * size for size in sizes]
    times = [kernel.seconds for kernel in profile.kernels]
    assert all(time > 0 for time in times)
    assert sum(times) <= profile.seconds <= profile.median
    assert profile.runs >= 5
    np.testing.assert_allclose(model(x)[0].sum(axis=1), np.ones(ROWS), rtol=1e-5)


def test_calls_in_loops_add_up() -> None:
    model = lowerdeck.compile(repeated(), profile=True)
    profile = model.profile({"x": np.eye(4, dtype=np.float32)}, seconds=0.01)
    (kernel,) = (kernel for kernel in profile.kernels if kernel.multiply_adds)
    assert (kernel.nodes, kernel.calls, kernel.multiply_adds) == (["in/loop"], 4, 4 * 64)


def test_without_the_option_there_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    cast(Any, onnx).save(product_and_softmax(), str(path))
    texts: list[str] = []
    for profile in (False, True):
        folder = tmp_path / str(profile)
        folder.mkdir()
        compiler.generate(str(path), str(folder), compiler.CompileOptions(profile=profile))
        texts.append("".join(file.read_text() for file in folder.glob("*.[ch]")))
    assert ["profile" in text for text in texts] == [False, True]
    model = lowerdeck.compile(path)
    with pytest.raises(ValueError, match="not compiled with profile"):
        model.profile({"x": np.ones((ROWS, DEPTH), np.float32)})


def test_report() -> None:
    first = compiler.KernelTimes(
        "matmul_0", ["a"], "1x2 -> 1x3", "tile 8x3", 16, 1, 1e-3, 2e-3, 10**6, 4 * 10**6
    )
    second = compiler.KernelTimes("copy", [], "4 -> 4", "", 0, 2, 3e-3, 3e-3, 0, None)
    report = Report("m", 2, compiler.Profile([first, second], 5e-3, 6e-3, 7), peak_flops=1e10)
    by_time, by_source = (report.text(by).splitlines() for by in ("time", "source"))
    assert by_time[-2:] == by_source[:-3:-1]
    # Of the sum of both; 2 Mflop in 1 ms are 2 GFLOP/s, and 4 MB are 4 GB/s.
    cells = ["matmul_0", "1", "1000.0", "2000.0", "25.0%", "2.0", "20.0%", "4.00", "4.0", "16"]
    assert by_source[-2].split() == [*cells, *"tile 8x3 1x2 -> 1x3 a".split()]
    assert by_source[-1].split() == [
        "copy",
        "2",
        "3000.0",
        "3000.0",
        "75.0%",
        *"--?---",
        "4",
        "->",
        "4",
    ]
    assert report.data()["kernels"][0]["share_of_peak"] == 0.2
    assert report.data()["kernels"][1]["flops_per_second"] is None


def test_kernels_above_the_peak_are_explained() -> None:
    """By what the strategy leaves out, or by load on the machine."""

    def said(schedule: str, flops: float) -> list[str]:
        times = compiler.KernelTimes("k", [], "", schedule, 16, 1, 1e-3, 1e-3, int(flops / 2e3), 4)
        report = Report("m", 1, compiler.Profile([times], 1e-3, 1e-3, 7), peak_flops=1e10)
        assert (report.data()["kernels"][0]["share_of_peak"] is None) == ("winograd" in schedule)
        return [line for line in report.text().splitlines() if " the peak: " in line]

    assert said("direct tile oc=2", 1e10) == []
    (text,) = said("winograd tile oc=2", 1.9e10)
    assert text.startswith("no share of the peak")
    assert "winograd makes fewer" in text
    (text,) = said("direct tile oc=2", 1.9e10)
    assert "measure again while nothing else runs" in text


def network(
    nodes: str, inputs: str, outputs: str, weights: dict[str, tuple[int, ...]]
) -> onnx.ModelProto:
    """A model in the notation of onnx.parser, with random weights."""
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    parse: Any = import_module("onnx.parser").parse_model
    model = parse(text)
    rng = np.random.default_rng(0)
    for name, shape in weights.items():
        array = (rng.standard_normal(shape) * 0.1).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def convolutions() -> onnx.ModelProto:
    """Grouped and depthwise convolutions, channels scaled by their means, pools, upsampling."""
    return network(
        """
        a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w0)
        b = HardSwish (a)
        c = Conv <group = 8, pads = [1, 1, 1, 1]> (b, w1)
        d = Conv <group = 32, pads = [2, 2, 2, 2]> (c, w2)
        e = GlobalAveragePool (d)
        f = Conv (e, w3)
        g = Sigmoid (f)
        h = Mul (d, g)
        i = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (h)
        s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
        j = Resize <mode = "nearest", nearest_mode = "floor",
                    coordinate_transformation_mode = "asymmetric"> (i, , s)
        k = Concat <axis = 1> (j, h)
        l = ConvTranspose <strides = [2, 2]> (k, w4)
        y = LeakyRelu (l)
        """,
        "float[1, 3, 56, 56] x",
        "float[1, 16, 56, 56] y",
        {
            "w0": (32, 3, 3, 3),
            "w1": (32, 4, 3, 3),
            "w2": (32, 1, 5, 5),
            "w3": (32, 32, 1, 1),
            "w4": (64, 16, 2, 2),
        },
    )


def words() -> onnx.ModelProto:
    """A layer of a transformer, with a mask, rotated halves and chosen best words."""
    return network(
        """
        r = Gather (table, words)
        n = LayerNormalization <axis = -1> (r, scale)
        q0 = MatMul (n, wq)
        k0 = MatMul (n, wk)
        v0 = MatMul (n, wv)
        parts = Constant <value_ints = [1, 48, 4, 16]> ()
        flat = Constant <value_ints = [1, 48, 64]> ()
        q1 = Reshape (q0, parts)
        k1 = Reshape (k0, parts)
        v1 = Reshape (v0, parts)
        q2 = Transpose <perm = [0, 2, 1, 3]> (q1)
        k2 = Transpose <perm = [0, 2, 3, 1]> (k1)
        v2 = Transpose <perm = [0, 2, 1, 3]> (v1)
        low, high = Split <axis = -1, num_outputs = 2> (q2)
        minus = Neg (high)
        turned = Concat <axis = -1> (minus, low)
        far = Sin (turned)
        q3 = Add (q2, far)
        s0 = MatMul (q3, k2)
        s1 = Where (mask, s0, least)
        s2 = Softmax <axis = -1> (s1)
        o0 = MatMul (s2, v2)
        o1 = Transpose <perm = [0, 2, 1, 3]> (o0)
        o2 = Reshape (o1, flat)
        o3 = Add (o2, r)
        up = MatMul (o3, wu)
        gelu = Erf (up)
        z = MatMul (gelu, wd)
        ten = Constant <value_ints = [10]> ()
        best, places = TopK <axis = -1> (z, ten)
        """,
        "int64[1, 48] words, bool[1, 1, 48, 48] mask",
        "float[1, 48, 10] best, int64[1, 48, 10] places",
        {
            "table": (50, 64),
            "scale": (64,),
            **dict.fromkeys(("wq", "wk", "wv"), (64, 64)),
            "wu": (64, 256),
            "wd": (256, 64),
            "least": (1,),
        },
    )


def sound() -> onnx.ModelProto:
    """Dilated convolutions over time with gates, in half precision between casts."""
    return network(
        """
        a = Conv <pads = [3, 3], strides = [2]> (x, w0)
        pads = Constant <value_ints = [0, 0, 4, 0, 0, 0]> ()
        b = Pad (a, pads)
        c = Conv <dilations = [4]> (b, w1)
        d, e = Split <axis = 1, num_outputs = 2> (c)
        f = Tanh (d)
        g = Sigmoid (e)
        h = Mul (f, g)
        i = Cast <to = 10> (h)
        j = Cast <to = 10> (w2)
        k = Conv (i, j)
        l = Cast <to = 1> (k)
        m = Add (a, l)
        n = Transpose <perm = [0, 2, 1]> (m)
        y = LogSoftmax <axis = -1> (n)
        """,
        "float[1, 8, 400] x",
        "float[1, 200, 32] y",
        {"w0": (32, 8, 7), "w1": (64, 32, 2), "w2": (32, 32, 1)},
    )


def some(kind: str, shape: Sequence[int | str]) -> Any:
    """Numbers below 50, truth values, or floats, all random."""
    rng, size = np.random.default_rng(0), [int(dim) for dim in shape]
    if kind == "i":
        return rng.integers(0, 50, size)
    return rng.random(size) < 0.8 if kind == "b" else rng.standard_normal(size, np.float32)


@pytest.mark.parametrize("build", [convolutions, words, sound])
def test_what_takes_long_has_vectors(build: Callable[[], onnx.ModelProto]) -> None:
    model = lowerdeck.compile(build(), profile=True)
    inputs = {info.name: some(info.dtype.kind, info.shape) for info in model.inputs}
    profile = model.profile(inputs, seconds=0.02)
    assert not profile.scalar_kernels()


def test_what_has_no_vectors_is_named() -> None:
    model = lowerdeck.compile(product_and_softmax(), profile=True, target="c99")
    profile = model.profile({"x": np.ones((ROWS, DEPTH), np.float32)}, seconds=0.01)
    assert profile.scalar_kernels() == profile.kernels
    assert profile.scalar_kernels(1.0) == []
    text = Report("m", 1, profile, peak_flops=1e10).text()
    names = ", ".join(kernel.kernel for kernel in profile.kernels)
    assert text.endswith(f"without vectors, though above 2 % of a run: {names}")
