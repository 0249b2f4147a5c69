"""Percentiles and timelines of `lowerdeck bench`."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any, cast

import numpy as np
import pytest

import lowerdeck
from lowerdeck.tools.bench import histogram, measure, percentile
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.trace import trace_data


@pytest.mark.parametrize(
    ("times", "share", "expected"),
    [
        ([5.0], 99, 5.0),
        ([3.0, 1.0, 2.0, 4.0], 50, 2.0),
        ([3.0, 1.0, 2.0, 4.0], 51, 3.0),
        (list(range(1, 101)), 90, 90),
        (list(range(1, 101)), 99, 99),
        ([1.0, 2.0], 0, 1.0),
    ],
)
def test_percentile(times: list[float], share: int, expected: float) -> None:
    assert percentile(times, share) == expected


def test_histogram() -> None:
    """Every run is in one bin; few slow ones do not make the others one bar."""
    times = [1.0 + k / 1000 for k in range(1000)] + [50.0, 60.0]
    *bins, (end, most, above) = histogram(times)
    assert sum(count for *_, count in bins) + above == len(times)
    assert (bins[0][0], most) == (1.0, 60.0)
    assert bins[-1][1] == pytest.approx(end)
    assert end < 2
    assert above == sum(time > end for time in times)
    assert max(count for *_, count in bins) <= 2 * min(count for *_, count in bins)
    assert [count for *_, count in histogram([2.0, 2.0])] == [2] + [0] * 24


class _Sleeper:
    """A model whose runs take a while, and that knows how many of them there are at once."""

    name, weights_size = "sleeper", 0

    def __init__(self) -> None:
        self.lock, self.at_once, self.most = Lock(), 0, 0

    def workspace_for(self, shapes: object) -> int:
        return 64

    def __call__(self, inputs: object) -> None:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        sleep(0.01)
        with self.lock:
            self.at_once -= 1


@pytest.mark.parametrize("streams", [1, 4])
def test_streams_run_at_once(streams: int) -> None:
    model = _Sleeper()
    found = measure(cast("lowerdeck.Model", model), {}, seconds=0.2, streams=streams)
    assert model.most == streams
    data = found.data()
    assert len(found.times) == data["runs"] >= 5 * streams
    assert found.seconds < sum(found.times) * 1.2 / streams + 0.1
    assert data["runs_per_second"] == len(found.times) / found.seconds <= 100 * streams
    assert ("in 4 streams" in found.text()) == (streams == 4)


def test_a_model_that_remembers(capsys: pytest.CaptureFixture[str]) -> None:
    """Its states are no inputs."""
    model = Path(__file__).parents[1] / "frontends" / "tflite_models" / "counter.tflite"
    assert main(["bench", str(model), "--seconds", "0.01", "--target", "c99"]) == 0
    assert "x: float32[1, 4] (random)" in capsys.readouterr().out


def test_streams_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = chain(tmp_path / "m.onnx", False), tmp_path / "bench.json"
    command = ["bench", str(path), "--seconds", "0.05"]
    assert main([*command, "--streams", "2", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "runs a second in 2 streams" in text
    assert "bytes for each stream" in text
    read: dict[str, Any] = json.loads(out.read_text())
    assert read["streams"] == 2
    assert sum(one["runs"] for one in read["histogram"]) == read["runs"]
    assert main([*command, "--streams", "0"]) == 1
    assert main([*command, "--streams", "2", "--profile"]) == 1
    assert "of one run at a time" in capsys.readouterr().err


def chain(path: Path, counted: bool) -> Path:
    """Three kernels in a row, or one in a loop of five iterations."""
    from onnx import TensorProto, helper, numpy_helper

    value = helper.make_tensor_value_info
    if counted:
        body = helper.make_graph(
            [
                helper.make_node("Sin", ["c"], ["s"], name="in/loop"),
                helper.make_node("Identity", ["go"], ["on"]),
            ],
            "body",
            [
                value("k", TensorProto.INT64, []),
                value("go", TensorProto.BOOL, []),
                value("c", TensorProto.FLOAT, [8, 64]),
            ],
            [value("on", TensorProto.BOOL, []), value("s", TensorProto.FLOAT, [8, 64])],
        )
        nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)]
        weights = [numpy_helper.from_array(np.array(40, np.int64), "n")]
    else:
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["a"], name="one"),
            helper.make_node("Softmax", ["a"], ["b"], name="two"),
            helper.make_node("MatMul", ["b", "w"], ["y"], name="three"),
        ]
        weights = [numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [8, 64])],
        [value("y", TensorProto.FLOAT, [8, 64])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("threads", [1, 2])
def test_events_follow_one_another(threads: int, tmp_path: Path) -> None:
    model = lowerdeck.compile(
        chain(tmp_path / "m.onnx", False), profile=True, threads=threads, cache=False
    )
    inputs = {"x": np.ones((8, 64), np.float32)}
    events = model.trace(inputs, seconds=0)
    kernels = model.profile(inputs, seconds=0).kernels
    assert [event.position for event in events] == list(range(len(kernels)))
    assert [event.kernel for event in events] == [one.kernel for one in kernels]
    assert events[0].start >= 0
    assert all(event.start <= event.end for event in events)
    assert all(one.end <= two.start for one, two in pairwise(events))


def test_threads_have_parts_of_kernels(tmp_path: Path) -> None:
    """Each part lies in its kernel; parts of one thread follow one another."""
    from onnx import TensorProto, helper, numpy_helper

    value = helper.make_tensor_value_info
    weight = numpy_helper.from_array(np.ones((512, 512), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="one"),
        helper.make_node("MatMul", ["a", "w"], ["y"], name="two"),
    ]
    ends = [value(name, TensorProto.FLOAT, [256, 512]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    model = lowerdeck.compile(path, profile=True, threads=2, cache=False)
    inputs = {"x": np.ones((256, 512), np.float32)}
    events = model.trace(inputs, seconds=0.2)
    products = [event for event in events if event.kernel.startswith("matmul")]
    assert len(products) == 2
    assert all(event.parts for event in products)
    threads = {part.thread for event in products for part in event.parts}
    assert threads <= {0, 1}
    first, last = products
    assert all(part.start < part.end for event in products for part in event.parts)
    assert max(part.end for part in first.parts) <= first.end
    assert min(part.start for part in last.parts) > max(part.start for part in first.parts)
    for thread in threads:
        own = [part for event in events for part in event.parts if part.thread == thread]
        assert all(one.end <= two.start for one, two in pairwise(own))
    # What is measured stays what it was: a profile has nothing of the parts.
    assert model.profile(inputs, seconds=0).runs >= 5
    data: Any = trace_data("m", events, None)
    rows = {one["tid"] for one in data["traceEvents"] if one["ph"] == "X"}
    assert rows == {0, 1, *(2 + thread for thread in threads)}


def test_iterations_are_events_of_their_own(tmp_path: Path) -> None:
    model = lowerdeck.compile(chain(tmp_path / "m.onnx", True), profile=True, cache=False)
    inputs = {"x": np.ones((8, 64), np.float32)}
    (kernel,) = (one for one in model.profile(inputs, seconds=0).kernels if one.calls == 40)
    events = model.trace(inputs, seconds=0)
    assert sum(event.kernel == kernel.kernel for event in events) == 40


def test_trace_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = chain(tmp_path / "m.onnx", False), tmp_path / "trace.json"
    assert main(["bench", str(path), "--seconds", "0", "--trace", str(out)]) == 0
    assert "GFLOP/s" in capsys.readouterr().out
    read: dict[str, Any] = json.loads(out.read_text())
    events = read["traceEvents"]
    rows = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    whole, *kernels = (one for one in events if one["ph"] == "X")
    assert rows[whole["tid"]] == "run"
    assert {rows[one["tid"]].split(" ")[0] for one in kernels} == {"kernels"}
    assert sum(one["dur"] for one in kernels) <= whole["dur"] * 1.0001
    product = next(one for one in kernels if "one" in one["args"]["nodes"])
    assert product["args"]["GFLOP/s"] > 0
    assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} == set(product)


def test_traces_need_a_model_compiled_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(chain(tmp_path / "m.onnx", False)), "-o", str(out)]) == 0
    assert main(["bench", str(out), "--trace", str(tmp_path / "t.json")]) == 1
    assert "profile=True (--profile)" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()
