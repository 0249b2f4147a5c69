"""`prune-channels`, and the command that drops what it leaves zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.interpret import run_module
from lowerdeck.tools.lowerdeck import main


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Channels of two convolutions meet; 1 is weak in the first and strong in the second."""
    random = np.random.default_rng(3)
    first, second = random.uniform(1, 2, (6, 4, 1, 1)), random.uniform(1, 2, (6, 6, 3, 3))
    first[[1, 2, 4]] *= 0.1
    second[[2, 4, 5]] *= 0.1
    second[1] *= 3
    last = random.standard_normal((2, 6, 1, 1))
    arrays = {"a": first, "b": second, "c": last, "s": random.standard_normal(6)}
    nodes = [
        helper.make_node("Conv", ["x", "a", "s"], ["u"], name="u"),
        helper.make_node("Relu", ["u"], ["r"], name="r"),
        helper.make_node("Conv", ["r", "b", "s"], ["v"], name="v", pads=[1] * 4),
        helper.make_node("Add", ["v", "r"], ["t"], name="t"),
        helper.make_node("Conv", ["t", "c"], ["y"], name="y"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 5, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.asarray(array, np.float32), name)
            for name, array in arrays.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def options(passes: str) -> CompileOptions:
    return CompileOptions(target="c99", extra_passes=passes)


def image(seed: int) -> NDArray[Any]:
    return np.asarray(np.random.default_rng(seed).standard_normal((1, 4, 5, 5)), np.float32)


def test_channels_that_meet_go_together(residual: str) -> None:
    pruned, _ = import_and_lower(residual, "optimized", options("prune-channels{keep=0.6}"))
    weights = [constant_array(op.weight) for op in pruned.walk() if isinstance(op, ConvOp)]
    gone = [
        np.flatnonzero(~each.reshape(len(each), -1).any(1)) for each in weights if each is not None
    ]
    assert [list(each) for each in gone] == [[2, 4], [2, 4], []]
    dropped, _ = import_and_lower(
        residual, "optimized", options("prune-channels{keep=0.6},drop-zero-channels")
    )
    sizes = [
        each.shape
        for op in dropped.walk()
        if isinstance(op, ConvOp) and (each := constant_array(op.weight)) is not None
    ]
    assert sizes == [(4, 4, 1, 1), (4, 4, 3, 3), (2, 4, 1, 1)]
    x = image(0)
    got, want = (np.asarray(run_module(each, {"x": x})["y"]) for each in (dropped, pruned))
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_the_command_writes_what_is_left(
    residual: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out.onnx")
    assert main(["prune", residual, "--keep", "60%", "-o", out]) == 0
    assert "multiplications: 4,200 of 9,000" in capsys.readouterr().out
    written, _ = import_and_lower(out, "optimized", options(""))
    passes = "prune-channels{keep=0.6},drop-zero-channels"
    expected, _ = import_and_lower(residual, "optimized", options(passes))
    x = image(1)
    got, want = (np.asarray(run_module(each, {"x": x})["y"]) for each in (written, expected))
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("keep", "out", "text"),
    [
        ("0", "o.onnx", "expected a part, above 0 and at most 1"),
        ("nan", "o.onnx", "expected a part"),
        ("many", "o.onnx", "--keep many: expected a part"),
        ("1", "o.onnx", "no channel can go"),
        ("0.5", "o.prototxt", "expected an .onnx file"),
        ("0.5", "o.txt", "the format is not known"),
    ],
)
def test_what_cannot_be_is_named(
    residual: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    keep: str,
    out: str,
    text: str,
) -> None:
    assert main(["prune", residual, "--keep", keep, "-o", str(tmp_path / out)]) == 1
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
