"""Inputs that are fixed to a value: constants of a model of any format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.arguments import parse_values
from lowerdeck.tools.common import ToolError
from lowerdeck.tools.lowerdeck import main

from .caffe_nets import INPUT, write_net  # noqa: TID251  (tests, not the folder of sources)
from .onnx_models import info, model  # noqa: TID251
from .tf1_graphs import (  # noqa: TID251
    FLOAT,
    INT,
    Type,
    const,
    graph,
    node,
    placeholder,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
BOOL = Type("bool")


def results(module: ModuleOp, **inputs: Any) -> list[Any]:
    """What the interpreter makes of a module at once and of what it is legalized to."""
    context = LowerdeckContext(options=CompileOptions())
    before: list[Any] = list(run_module(module, inputs).values())
    run_to_phase(context, module, "optimized")
    after: list[Any] = list(run_module(module, inputs).values())
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    return after


def refused(path: Path | str, **fixed: Any) -> str:
    """The message of the refusal."""
    with pytest.raises(FrontendError) as caught:
        load_model(path, fixed=fixed)
    return str(caught.value)


def saved(proto: onnx.ModelProto, folder: Path) -> str:
    """The file of an ONNX model."""
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def dropout(folder: Path) -> str:
    """A Dropout whose training mode, ratio and scale are inputs."""
    nodes = [
        helper.make_node("Dropout", ["x", "ratio", "training"], ["d"]),
        helper.make_node("Mul", ["d", "scale"], ["y"]),
    ]
    inputs = [
        info("x", ["n", 3]),
        info("ratio", []),
        helper.make_tensor_value_info("training", TensorProto.BOOL, []),
        info("scale", [3]),
    ]
    return saved(model(nodes, inputs, ["y"]), folder)


def test_inputs_of_onnx(tmp_path: Path) -> None:
    path = dropout(tmp_path)
    with pytest.raises(CompileError, match="Dropout"):
        run_to_phase(Context(), load_model(path), "legal")
    module = load_model(path, fixed={"training": False, "ratio": 0.5, "scale": 2})
    np.testing.assert_array_equal(results(module, x=X), [2 * X])
    scale = np.array([1, 2, 3], np.float32)
    module = load_model(path, fixed={"training": False, "ratio": 0, "scale": scale, "x": X})
    np.testing.assert_array_equal(results(module), [X * scale])


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    path = dropout(tmp_path)
    assert "for 'y', but the inputs are 'x', 'ratio', 'training', 'scale'" in refused(path, y=1)
    assert "'scale' is given a value of shape [2], expected [3]" in refused(path, scale=[1, 2])
    assert "'x' is given a value of shape [], expected [?, 3]" in refused(path, x=1)
    assert "'training' is given 2, which i1 does not have" in refused(path, training=2)
    assert "an array of float64, expected f32" in refused(path, scale=np.zeros(3))
    assert "'ratio' is given 'a', expected f32" in refused(path, ratio="a")
    assert "1e+300, which f32 does not have" in refused(path, ratio=1e300)


def test_inputs_of_caffe_and_of_text(tmp_path: Path) -> None:
    add = 'layer { name: "a" type: "Eltwise" bottom: "x" bottom: "b" top: "y" }'
    net = write_net(tmp_path, INPUT + INPUT.replace('"x"', '"b"').replace('"in"', '"in2"') + add)
    np.testing.assert_array_equal(results(load_model(net, fixed={"b": 3}), x=X), [X + 3])
    np.testing.assert_array_equal(results(load_model(net, fixed={"b": X}), x=X), [X + X])
    text = tmp_path / "m.mlir"
    text.write_text(
        """func.func @main(%x : tensor<2x3xf32>, %k : tensor<i64>) -> tensor<2x3xf32> {
          %f = core.cast %k to f32 : (tensor<i64>) -> tensor<f32>
          %y = core.add %x, %f : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
          func.return %y : tensor<2x3xf32>
        }"""
    )
    np.testing.assert_array_equal(results(load_model(text, fixed={"1": 4}), **{"0": X}), [X + 4])
    assert "for 'k', but the inputs are '0', '1'" in refused(text, k=4)


def tf1(folder: Path, *nodes: Any) -> str:
    """The file of a graph."""
    path = folder / "m.pb"
    path.write_bytes(graph(*nodes).SerializeToString())
    return str(path)


def random_dropout(folder: Path, *, is_old: bool) -> str:
    """A dropout whose probability to keep is an input, as older and newer versions write it."""
    head = [
        placeholder("x", (2, 3)),
        placeholder("keep"),
        node("shape", "Shape", "x", T=FLOAT, out_type=INT),
        node("u", "RandomUniform", "shape", T=INT, dtype=FLOAT),
        node("scaled", "RealDiv", "x", "keep", T=FLOAT),
    ]
    if is_old:
        tail = [
            node("sum", "Add", "keep", "u", T=FLOAT),
            node("mask", "Floor", "sum", T=FLOAT),
            node("y", "Mul", "scaled", "mask", T=FLOAT),
        ]
    else:
        tail = [
            const("one", 1),
            const("zero", 0),
            node("rate", "Sub", "one", "keep", T=FLOAT),
            node("mask", "GreaterEqual", "u", "rate", T=FLOAT),
            node("y", "SelectV2", "mask", "scaled", "zero", T=FLOAT),
        ]
    return tf1(folder, *head, *tail)


@pytest.mark.parametrize("is_old", [False, True])
def test_random_numbers_that_make_no_difference(
    is_old: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = random_dropout(tmp_path, is_old=is_old)
    np.testing.assert_array_equal(results(load_model(path, fixed={"keep": 1}), **{"x:0": X}), [X])
    assert main(["ops", path]) == 1
    assert re.search(r"RandomUniform +NOT SUPPORTED: 'u'", capsys.readouterr().out)
    assert main(["ops", path, "--set", "keep=1"]) == 0
    assert re.search(r"RandomUniform +left out: no output needs it", capsys.readouterr().out)
    for keep in (0.5, float(np.nextafter(np.float32(1), np.float32(0)))):
        with pytest.raises(CompileError, match=r"'u' .*no legalization for RandomUniform"):
            run_to_phase(Context(), load_model(path, fixed={"keep:0": keep}), "legal")


def test_what_runs_in_a_branch_that_is_never_taken(tmp_path: Path) -> None:
    path = tf1(
        tmp_path,
        placeholder("x", (2, 3)),
        placeholder("mode", dtype=INT),
        const("one", 1, dtype=np.int32),
        const("v", 2),
        node("training", "Equal", "mode", "one", T=INT),
        node("side", "Switch", "training", "training", T=BOOL),
        node("v_in", "Switch", "v", "training", T=FLOAT),
        node("x_in", "Switch", "x", "training", T=FLOAT),
        node("pivot", "Identity", "side:1", T=BOOL),
        node("queue", "FIFOQueueV2", "^pivot", component_types=[FLOAT]),
        node("next", "QueueDequeueV2", "queue", component_types=[FLOAT]),
        node("assign", "Assign", "v_in:1", "next", T=FLOAT),
        node("seen", "Identity", "x_in:1", "^assign", T=FLOAT),
        node("scaled", "Mul", "x_in", "v_in", T=FLOAT),
        node("y", "Merge", "scaled", "seen", T=FLOAT, N=2),
    )
    np.testing.assert_array_equal(
        results(load_model(path, fixed={"mode": 0}), **{"x:0": X}), [2 * X]
    )
    for fixed in ({}, {"mode": 1}):
        with pytest.raises(CompileError, match="'assign'"):
            run_to_phase(Context(), load_model(path, fixed=fixed), "legal")
    assert "'mode' (Placeholder): as the input 'mode:0': is given" in refused(path, mode=[1, 2])
    assert "for 'nothing', but the inputs are 'mode:0', 'x:0'" in refused(path, nothing=1)


def test_values_on_a_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    file = f"--x={tmp_path}/a.npy".replace("--x=", "a:0=@")
    found = parse_values(["t=True", "k=-3", "f=1e-3", "l=[[1,2],[3,4]]", "s=1,2.5", "i=-inf", file])
    assert found is not None
    np.testing.assert_array_equal(found.pop("a:0"), X)
    expected = {"t": True, "k": -3, "f": 1e-3, "l": [[1, 2], [3, 4]], "s": [1, 2.5], "i": -np.inf}
    assert found == expected
    for wrong in ("t", "=1", "x=", "x=yes", "x=[1,[2]]", "x={}", "x=@nothing.npy"):
        with pytest.raises(ToolError, match="--set"):
            parse_values([wrong])


def test_values_are_part_of_the_key_of_the_cache() -> None:
    values: list[Any] = [None, {"x": 1}, {"x": 1.0}, {"x": X[0, :1]}, {"x": X}, {"x": X + 1}]
    keys = [CompileOptions(fixed=value).key for value in values]
    assert len(set(keys)) == len(keys)
    assert CompileOptions(fixed={"x": X.copy()}).key == keys[4]
