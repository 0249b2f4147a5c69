"""The times of kernels: what is counted, where it comes from, and that nothing is left without."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck import compiler
from lowerdeck.tools.kernel_times import Report

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
    assert profile.kernels[0].shapes == "nx7 7x3 -> nx3"
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
        "matmul_0", ["a"], "1x2 -> 1x3", "tile 8x3", 1, 1e-3, 2e-3, 10**6, 4 * 10**6
    )
    second = compiler.KernelTimes("copy", [], "4 -> 4", "", 2, 3e-3, 3e-3, 0, None)
    report = Report("m", 2, compiler.Profile([first, second], 5e-3, 6e-3, 7), peak_flops=1e10)
    by_time, by_source = (report.text(by).splitlines() for by in ("time", "source"))
    assert by_time[-2:] == by_source[:-3:-1]
    # Of the sum of both; 2 Mflop in 1 ms are 2 GFLOP/s, and 4 MB are 4 GB/s.
    cells = ["matmul_0", "1", "1000.0", "2000.0", "25.0%", "2.0", "20.0%", "4.00", "4.0"]
    assert by_source[-2].split() == [*cells, *"tile 8x3 1x2 -> 1x3 a".split()]
    assert by_source[-1].split() == [
        "copy",
        "2",
        "3000.0",
        "3000.0",
        "75.0%",
        *"--?--",
        "4",
        "->",
        "4",
    ]
    assert report.data()["kernels"][0]["share_of_peak"] == 0.2
    assert report.data()["kernels"][1]["flops_per_second"] is None
