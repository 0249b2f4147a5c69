"""Products of bf16: the C computes what the interpreter does, on targets with and without them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.func import FuncOp

from lowerdeck.compiler import compile_with, generate, import_and_lower
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.dialects.interpret import run_module
from lowerdeck.lowering.targets import obstacle
from lowerdeck.passes.machinery.options import CompileOptions

Array = NDArray[Any]

RANDOM = np.random.default_rng(8)

FORMS: dict[str, tuple[tuple[int, ...], tuple[int, int]]] = {
    # Shapes of both factors: an odd number of terms, blocks that are not full, several matrices.
    "odd": ((5, 67), (67, 50)),
    "many": ((70, 64), (64, 40)),
    "batch": ((2, 9, 48), (48, 24)),
    "few": ((2, 64), (64, 32)),
    "row": ((1, 64), (64, 32)),
}


def write_model(path: Path) -> dict[str, Array]:
    """A model of all forms, with a maximum behind each; its inputs."""
    inputs = {name: RANDOM.standard_normal(x).astype(np.float32) for name, (x, _) in FORMS.items()}
    inputs["odd"][1, 3] = np.inf
    inputs["odd"][2, 66] = np.nan
    inputs["many"][3, 5] = -np.inf
    weights = {f"{name}_w": RANDOM.standard_normal(w) for name, (_, w) in FORMS.items()}
    nodes = [
        node
        for name in FORMS
        for node in (
            helper.make_node("MatMul", [name, f"{name}_w"], [f"{name}_p"]),
            helper.make_node("Relu", [f"{name}_p"], [f"{name}_y"]),
        )
    ]
    graph = helper.make_graph(
        nodes,
        "halves",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in inputs.items()],
        [helper.make_tensor_value_info(f"{n}_y", TensorProto.FLOAT, None) for n in FORMS],
        [numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return inputs


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Array]]:
    path = tmp_path_factory.mktemp("halves") / "halves.onnx"
    return str(path), write_model(path)


@pytest.mark.parametrize("target", ["x86-64-amx", "x86-64-zen4", "x86-64-v3", "c99"])
def test_the_c_rounds_as_the_interpreter_does(
    model: tuple[str, dict[str, Array]], target: str
) -> None:
    path, inputs = model
    options = CompileOptions(target=target, precision="bf16")
    module, _ = import_and_lower(path, "optimized", options)
    assert str(module).count("in f32") == len(FORMS)
    expected = run_module(module, inputs)
    scheduled, _ = import_and_lower(path, "scheduled", options)
    runs: list[Mapping[str, Any]] = [run_module(scheduled, inputs)]
    if obstacle(target) is None:
        runs.append({**compile_with(path, options, cache=False)(inputs)})
    for results in runs:
        for name, value in expected.items():
            np.testing.assert_allclose(
                np.asarray(results[name]), np.asarray(value), 1e-5, 1e-5, err_msg=name
            )
    exact, _ = import_and_lower(path, "optimized", CompileOptions(target=target))
    for name, value in run_module(exact, inputs).items():
        is_finite = np.isfinite(np.asarray(value))
        found, wanted = (np.asarray(each)[is_finite] for each in (expected[name], value))
        difference = np.abs(found - wanted)
        assert 0 < difference.max() < 0.1, name


@pytest.mark.parametrize(
    ("target", "mark"), [("x86-64-amx", "_tile_dpbf16ps"), ("x86-64-zen4", "vdpbf16ps")]
)
def test_the_instruction_of_a_target_is_used(
    model: tuple[str, dict[str, Array]], target: str, mark: str, tmp_path: Path
) -> None:
    path, _ = model
    for precision in ("bf16", None):
        options = CompileOptions(target=target, precision=precision)
        generate(path, str(tmp_path), options)
        assert (mark in (tmp_path / "halves.c").read_text()) == (precision == "bf16")


CONVS = """
func.func @main(%x: tensor<2x19x9x28xf32>, %z: tensor<1x40x11x13xf32>)
    -> (tensor<2x37x9x28xf32>, tensor<1x21x11x13xf32>, tensor<1x33x5x7xf32>) {
  %w = core.constant dense<{w}> : tensor<37x19x3x3xf32>
  %v = core.constant dense<{v}> : tensor<21x40x1x1xf32>
  %u = core.constant dense<{u}> : tensor<33x40x3x3xf32>
  %b = core.constant dense<{b}> : tensor<37xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %a = core.conv %x, %w, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1
      : (tensor<2x19x9x28xf32>, tensor<37x19x3x3xf32>, tensor<37xf32>) -> tensor<2x37x9x28xf32>
  %r = core.max %a, %zero : (tensor<2x37x9x28xf32>, tensor<f32>) -> tensor<2x37x9x28xf32>
  %c = core.conv %z, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1
      : (tensor<1x40x11x13xf32>, tensor<21x40x1x1xf32>) -> tensor<1x21x11x13xf32>
  %d = core.conv %z, %u strides [2, 2] dilations [1, 1] pads [0, 1] [0, 1] groups 1
      : (tensor<1x40x11x13xf32>, tensor<33x40x3x3xf32>) -> tensor<1x33x5x7xf32>
  func.return %r, %c, %d
      : tensor<2x37x9x28xf32>, tensor<1x21x11x13xf32>, tensor<1x33x5x7xf32>
}
"""
"""An odd number of channels, of which tiles are loaded in place; one tap; steps of 2."""


@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions_of_halves(tmp_path: Path, threads: int) -> None:
    """Sums of products of what is rounded to bf16, in f32."""
    random = np.random.default_rng(3)
    shapes = {"w": (37, 19, 3, 3), "v": (21, 40, 1, 1), "u": (33, 40, 3, 3), "b": (37,)}
    text = CONVS
    for name, shape in shapes.items():
        values = random.standard_normal(shape).astype(np.float32) / 16
        text = text.replace(f"{{{name}}}", str(values.tolist()))
    path = tmp_path / "convs.mlir"
    path.write_text(text)
    x, z = ((2, 19, 9, 28), (1, 40, 11, 13))
    inputs = {n: random.standard_normal(s).astype(np.float32) for n, s in (("0", x), ("1", z))}
    exact, _ = import_and_lower(str(path), "optimized", CompileOptions())
    wanted = run_module(exact, inputs)
    options = CompileOptions(target="x86-64-amx", precision="bf16", threads=threads)
    formed, _ = import_and_lower(str(path), "kernels", options)
    assert str(formed).count("packed halves") == len(shapes) - 1
    scheduled, _ = import_and_lower(str(path), "scheduled", options)
    runs: list[Mapping[str, Any]] = [run_module(scheduled, inputs)]
    if obstacle("x86-64-amx") is None:
        runs.append({**compile_with(str(path), options, cache=False)(inputs)})
    for results in runs:
        for name, value in run_module(formed, inputs).items():
            found = np.asarray(results[name])
            np.testing.assert_allclose(found, np.asarray(value), 1e-5, 1e-5, err_msg=name)
            difference = np.abs(found - np.asarray(wanted[name]))
            assert 0 < difference.max() < 0.1, name


ATTENTION = """
func.func @main(%q0: tensor<1x40x2x6xf32>, %k0: tensor<1x33x2x6xf32>, %v0: tensor<1x33x2x10xf32>,
             %m0: tensor<33xf32>, %q1: tensor<2x16x3x32xf32>, %k1: tensor<2x16x3x32xf32>,
             %v1: tensor<2x16x3x16xf32>, %c1: tensor<16x16xi1>, %q2: tensor<1x32x1x8xf32>,
             %k2: tensor<1x2111x1x8xf32>, %v2: tensor<1x2111x1x4xf32>)
    -> (tensor<1x40x2x10xf32>, tensor<2x16x3x16xf32>, tensor<1x32x1x4xf32>) {
  %a = core.attention %q0, %k0, %v0, %m0 {scale = 0.25 : f64}
      : (tensor<1x40x2x6xf32>, tensor<1x33x2x6xf32>, tensor<1x33x2x10xf32>, tensor<33xf32>)
      -> tensor<1x40x2x10xf32>
  %b = core.attention %q1, %k1, %v1, %c1 {scale = 0.5 : f64, fill = -1.0e30 : f64}
      : (tensor<2x16x3x32xf32>, tensor<2x16x3x32xf32>, tensor<2x16x3x16xf32>, tensor<16x16xi1>)
      -> tensor<2x16x3x16xf32>
  %c = core.attention %q2, %k2, %v2 {scale = 1.0 : f64}
      : (tensor<1x32x1x8xf32>, tensor<1x2111x1x8xf32>, tensor<1x2111x1x4xf32>)
      -> tensor<1x32x1x4xf32>
  func.return %a, %b, %c : tensor<1x40x2x10xf32>, tensor<2x16x3x16xf32>, tensor<1x32x1x4xf32>
}
"""
"""An odd number of keys and blocks that are not full; some keys hidden; too many to keep scores."""


def test_attention_of_halves(tmp_path: Path) -> None:
    """The last one rounds weights that belong to another maximum."""
    path = tmp_path / "attention.mlir"
    path.write_text(ATTENTION)
    options = CompileOptions(target="x86-64-zen4", precision="bf16")
    module, _ = import_and_lower(str(path), "kernels", options)
    assert str(module).count("in_halves") == 3
    assert str(module).count("halves = 2") == 3
    entry, _ = import_and_lower(str(path), "optimized", CompileOptions())
    (function,) = (op for op in entry.body.block.ops if isinstance(op, FuncOp))
    shapes = [static_shape(argument) or () for argument in function.body.block.args]
    inputs: dict[str, Array] = {
        name: RANDOM.standard_normal(shape).astype(np.float32)
        for name, shape in zip(map(str, range(len(shapes))), shapes, strict=True)
    }
    inputs["7"] = np.tri(16, dtype=np.bool_)
    exact, expected = (list(run_module(each, inputs).values()) for each in (entry, module))
    scheduled, _ = import_and_lower(str(path), "scheduled", options)
    runs: list[Mapping[str, Any]] = [run_module(scheduled, inputs)]
    if obstacle("x86-64-zen4") is None:
        runs.append({**compile_with(str(path), options, cache=False)(inputs)})
    for results in runs:
        for found, wanted, limit in zip(
            results.values(), expected, (1e-4, 1e-4, 3e-3), strict=True
        ):
            np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), 0, limit)
    for found, wanted in zip(expected, exact, strict=True):
        assert 1e-4 < np.abs(np.asarray(found) - np.asarray(wanted)).max() < 0.05
