"""The example of a small network: its gradients are right, and training brings accuracy back."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper, parser
from onnx import numpy_helper as arrays

Array = NDArray[Any]

COMPRESS = Path(__file__).parents[2] / "examples" / "compress"


@pytest.fixture(scope="module")
def example() -> Any:
    """The program as a module."""
    sys.path.insert(0, str(COMPRESS))
    spec = importlib.util.spec_from_file_location("compress_example", COMPRESS / "compress.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(COMPRESS))
    return module


GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 2, 4, 6] x) => (float[N, 3] y) {
      a = Conv <pads = [1, 0, 1, 0]> (x, w, b)  c = Relu (a)
      d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
      e = ReduceSum <keepdims = 1> (d, axes)  n = Shape <start = 0, end = 1> (x)
      s = Concat <axis = 0> (n, rest)  f = Reshape (e, s)  y = Gemm (f, v, o) }"""


def test_gradients_are_differences(example: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    model = parser.parse_model(GRAPH)
    shapes = {"w": (5, 2, 3, 3), "b": (5,), "v": (5, 3), "o": (3,)}
    weights = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    constants = {**weights, "axes": np.array([2, 3]), "rest": np.array([5])}
    model.graph.initializer.extend(arrays.from_array(a, name) for name, a in constants.items())
    (path := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    network = example.Network(path)
    x, direction = random.standard_normal((3, 2, 4, 6)), random.standard_normal((3, 3))
    _, gradients = network.run(x)
    found = gradients(direction)
    assert found.keys() == weights.keys()
    whole: dict[str, Array] = dict(network.weights)
    for name, weight in whole.items():
        step = random.standard_normal(weight.shape)
        ends: list[float] = []
        for sign in (1, -1):
            network.weights[name] = weight + sign * 1e-6 * step
            ends.append(float((network.run(x)[0] * direction).sum()))
        network.weights[name] = weight
        expected = float((np.asarray(found[name]) * step).sum())
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(expected, 1e-5)


def test_other_operators_are_refused(example: Any, tmp_path: Path) -> None:
    """Each with its node: those without a gradient, and forms that would have a wrong one."""
    node = helper.make_node("Erf", ["x"], ["y"], name="its name")
    values = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    (path := tmp_path / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(ValueError, match=r"model.onnx: node 'its name' \(Erf\): no gradient"):
        example.Network(path)


@pytest.mark.usefixtures("optimized_c")
def test_training_brings_accuracy_back(
    example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a few of its epochs; and the exit status tells that more than half a point is lost."""
    assert not example.compress(tmp_path, 0.5, 6)
    shown = capsys.readouterr().out
    whole, pruned, taught, last = (float(one) for one in re.findall(r": +([0-9.]+)%", shown))
    assert whole == 98.89
    assert pruned < 50
    assert taught > 90
    assert abs(last - taught) < 1
    assert (tmp_path / "small.onnx").stat().st_size < 30_000
    assert (tmp_path / "ranges.json").exists()
