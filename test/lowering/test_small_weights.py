"""With `small_weights` the weights take what those of the model do, and results are the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck.compiler import generate, import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.lowering.targets import obstacle
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import some  # noqa: TID251  (these are tests, not the folder of sources)

Array = NDArray[Any]

_HEADER = 64
_ALIGNMENT = 64


@dataclass(frozen=True)
class Net:
    """A model of nodes, its constants and the shape of its input `x`."""

    nodes: list[onnx.NodeProto]
    weights: Mapping[str, Array]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return next(iter(self.weights.values())).dtype

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.weights.values())

    def write(self, path: Path) -> Path:
        element = helper.np_dtype_to_tensor_dtype(self.dtype)
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", element, self.shape)],
            [helper.make_tensor_value_info("y", element, None)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 17)]
        path.write_bytes(
            helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        )
        return path


def dense(*shape: int, dtype: str = "f4") -> Array:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:] or shape))).astype(dtype)


def conv(x: str, w: str, y: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", [x, w], [y], **attributes)


def winograd() -> Net:
    nodes = [conv("x", "w", "a", pads=[1] * 4), conv("a", "v", "y", pads=[1] * 4)]
    return Net(nodes, {"w": dense(64, 64, 3, 3), "v": dense(64, 64, 3, 3)}, (1, 64, 24, 24))


def odd_channels() -> Net:
    """60 and 10 channels, of which blocks of 16 have a rest; depthwise and transposed ones."""
    nodes = [
        conv("x", "w", "a", pads=[1] * 4),
        conv("a", "d", "b", pads=[1] * 4, group=60),
        helper.make_node("ConvTranspose", ["b", "t"], ["c"], strides=[2, 2]),
        conv("c", "v", "y", pads=[2] * 4),
    ]
    weights = {
        "w": dense(60, 60, 3, 3),
        "d": dense(60, 1, 3, 3),
        "t": dense(60, 10, 4, 4),
        "v": dense(10, 10, 5, 5),
    }
    return Net(nodes, weights, (1, 60, 12, 12))


def half() -> Net:
    nodes = [
        conv("x", "w", "a", pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["a"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    weights = {"w": dense(64, 64, 3, 3, dtype="f2"), "m": dense(64, 100, dtype="f2")}
    return Net(nodes, weights, (1, 64, 8, 8))


def products() -> Net:
    """Columns that no vector divides; one matrix for two products."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["c"]),
        helper.make_node("MatMul", ["c", "u"], ["y"]),
    ]
    weights = {"w": dense(90, 90), "v": dense(90, 34), "u": dense(34, 18)}
    return Net(nodes, weights, (3, 90))


def recurrent() -> Net:
    """Gates of 50 cells."""
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["h"], hidden_size=50),
        helper.make_node("ReduceMax", ["h"], ["y"], axes=[0, 1]),
    ]
    return Net(nodes, {"w": dense(1, 200, 30), "r": dense(1, 200, 50)}, (4, 1, 30))


def read_in_two_orders() -> Net:
    """A table of rows and a matrix at once: panels would be a second copy."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["w", "i"], ["s"], axis=0),
        helper.make_node("ReduceSum", ["s"], ["t"], keepdims=0),
        helper.make_node("Add", ["a", "t"], ["y"]),
    ]
    return Net(nodes, {"w": dense(96, 96)}, (5, 96))


def tied() -> Net:
    """A table of embeddings whose transpose is the last matrix; some rows count from the end."""
    nodes = [
        helper.make_node("Cast", ["x"], ["n"], to=TensorProto.INT64),
        helper.make_node("Sub", ["n", "three"], ["i"]),
        helper.make_node("Gather", ["w", "i"], ["e"], axis=0),
        helper.make_node("Sin", ["e"], ["s"]),
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["s", "t"], ["y"]),
    ]
    return Net(nodes, {"w": dense(200, 96), "three": np.array(3, np.int64)}, (2, 7))


GROWING: list[Callable[[], Net]] = [
    winograd,
    odd_channels,
    half,
    recurrent,
    read_in_two_orders,
    tied,
]
"""Those of which more is made unless something is said."""


@pytest.mark.parametrize(
    ("net", "target"),
    some(list(itertools.product([*GROWING, products], ["native", "x86-64-v3", "c99"])), 3),
)
def test_weights_are_those_of_the_model(
    net: Callable[[], Net], target: str, tmp_path: Path
) -> None:
    model = net()
    path = str(model.write(tmp_path / "m.onnx"))
    if obstacle(target) is not None:
        pytest.skip(f"{target} does not run here")
    compiled = lowerdeck.compile(path, target=target, small_weights=True, cache=False)
    size = int(compiled.weights_size) - _HEADER
    assert size <= model.bytes * 1.04 + _ALIGNMENT * (len(model.weights) + 2)
    x = np.random.default_rng(1).uniform(0, 6, model.shape).astype(model.dtype)
    module, _ = import_and_lower(path, "legal", CompileOptions(target="c99"))
    expected = np.asarray(run_module(module, {"x": x})["y"], np.float64)
    tolerance = (4e-3 if model.dtype == np.float16 else 2e-5) * np.abs(expected).max()
    np.testing.assert_allclose(compiled({"x": x})["y"], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("net", some(GROWING))
def test_they_are_more_if_nothing_is_said(net: Callable[[], Net], tmp_path: Path) -> None:
    """Or the test above would show nothing."""
    model = net()
    path = str(model.write(tmp_path / "m.onnx"))
    if obstacle("x86-64-v4") is not None:
        pytest.skip("the sizes are those of vectors of 16")
    sizes: dict[bool, int] = {}
    for small in (False, True):
        generate(path, str(tmp_path), CompileOptions(target="x86-64-v4", small_weights=small))
        sizes[small] = (tmp_path / "m.weights").stat().st_size
    assert sizes[False] > sizes[True] * 1.05
