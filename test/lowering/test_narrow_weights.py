"""Weights in fewer bits: the C computes with what the pass rounds, on every target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck.compiler import compile_with, generate, import_and_lower
from lowerdeck.dialects.core.quantize import pairs_of
from lowerdeck.dialects.interpret import run_module
from lowerdeck.lowering.targets import obstacle
from lowerdeck.passes.linear.rounding import as_halves
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import EVERY_FORM  # noqa: TID251  (these are tests, not the folder of sources)

Array = NDArray[Any]

RANDOM = np.random.default_rng(5)

Numbers = tuple[int, ...]

FORMS: dict[str, tuple[str, list[Numbers], dict[str, Any]]] = {
    # The name of each: operator, shapes of the input and the weights, attributes.
    "conv": ("Conv", [(1, 32, 9, 9), (40, 32, 3, 3), (40,)], {"pads": [1, 1, 1, 1]}),
    "point": ("Conv", [(2, 64, 5, 5), (48, 64, 1, 1)], {}),
    "strided": ("Conv", [(1, 3, 16, 16), (16, 3, 7, 7), (16,)], {"strides": [2, 2]}),
    "grouped": ("Conv", [(1, 64, 6, 6), (64, 16, 3, 3)], {"group": 4}),
    "line": ("Conv", [(1, 24, 40), (32, 24, 5), (32,)], {"dilations": [2]}),
    "depthwise": ("Conv", [(1, 128, 8, 8), (128, 1, 5, 5), (128,)], {"group": 128}),
    "backward": ("ConvTranspose", [(1, 24, 5, 5), (24, 20, 3, 3), (20,)], {"strides": [2, 2]}),
    "backward_groups": ("ConvTranspose", [(1, 32, 4, 4), (32, 12, 3, 3)], {"group": 2}),
    "row": ("MatMul", [(1, 64), (64, 100)], {}),
    "many": ("MatMul", [(2, 23, 64), (64, 103)], {}),
    "rows": ("MatMul", [(3, 7, 48), (48, 50)], {}),
    "batch": ("MatMul", [(3, 5, 32), (3, 32, 20)], {}),
    "column": ("MatMul", [(4, 300), (300, 4)], {}),
    "biased": ("Gemm", [(5, 40), (33, 40), (33,)], {"transB": 1}),
    "recurrent": ("LSTM", [(6, 2, 24), (1, 80, 24), (1, 80, 20), (1, 160)], {"hidden_size": 20}),
}


def of_ranges(shape: Numbers) -> Array:
    """Weights whose channels have different ranges."""
    ranges = RANDOM.uniform(0.05, 1, (*shape[:1], *[1] * (len(shape) - 1)))
    return np.asarray(RANDOM.standard_normal(shape) * ranges, np.float32)


def write_model(path: Path, forms: dict[str, Any]) -> dict[str, Array]:
    """A model of all forms, a product from the left and a table; its inputs."""
    nodes: list[Any] = []
    weights: dict[str, Array] = {}
    inputs: dict[str, Array] = {}
    for name, (kind, (shape, *others), attributes) in forms.items():
        inputs[f"{name}_x"] = np.asarray(RANDOM.standard_normal(shape), np.float32)
        parameters = [f"{name}_{number}" for number in range(len(others))]
        for parameter, size in zip(parameters, others, strict=True):
            weights[parameter] = of_ranges(size)
        outputs = [name] if kind != "LSTM" else [name, "", ""]
        nodes.append(helper.make_node(kind, [f"{name}_x", *parameters], outputs, **attributes))
    weights["table"] = RANDOM.standard_normal((70, 32)).astype(np.float32)
    weights["left"] = RANDOM.standard_normal((48, 32)).astype(np.float32)
    inputs["index"] = np.array([[3, -1, 69], [0, 1, 3]], np.int64)
    inputs["right_x"] = RANDOM.standard_normal((2, 32, 9)).astype(np.float32)
    nodes.append(helper.make_node("Gather", ["table", "index"], ["gathered"]))
    nodes.append(helper.make_node("MatMul", ["left", "right_x"], ["right"]))
    graph = helper.make_graph(
        nodes,
        "forms",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, None)
            for n in [*forms, "gathered", "right"]
        ],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return inputs


ERRORS = {"bf16": 2.0**-8, "fp16": 2.0**-11, "int8": 2.0**-7, "int4": 2.0**-3, "int4:10": 2.0**-3}
"""The largest difference of a weight, by the largest of its channel."""


FEW = ("conv", "row", "many", "rows", "column", "recurrent")
"""Forms for formats and targets beside the first."""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Array]]:
    path = tmp_path_factory.mktemp("few") / "forms.onnx"
    return str(path), write_model(path, {name: FORMS[name] for name in FEW})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Array]]:
    path = tmp_path_factory.mktemp("model") / "forms.onnx"
    return str(path), write_model(path, FORMS)


@pytest.mark.parametrize(
    ("weight_format", "target"),
    [
        ("int8", "native"),
        *([("int8", "x86-64-v3")] if EVERY_FORM else []),
        ("int8", "c99"),
        ("bf16", "native"),
        ("fp16", "native"),
        ("int4:10", "native"),
        ("int4", "c99"),
    ],
)
def test_the_c_computes_with_rounded_weights(
    model: tuple[str, dict[str, Array]],
    few: tuple[str, dict[str, Array]],
    weight_format: str,
    target: str,
) -> None:
    path, inputs = model if (weight_format, target) == ("int8", "native") else few
    options = CompileOptions(target="c99", weight_format=weight_format)
    module, _ = import_and_lower(path, "optimized", options)
    rounded = run_module(module, inputs)
    module, _ = import_and_lower(path, "optimized", CompileOptions(target="c99"))
    exact = run_module(module, inputs)
    for name, value in exact.items():
        difference = np.abs(np.asarray(rounded[name]) - np.asarray(value))
        # Random roundings: sums of products differ by far less than the sum of all.
        largest = float(np.abs(np.asarray(value)).max()) if name != "recurrent" else 4.0
        assert 0 < difference.max() < 3 * ERRORS[weight_format] * largest, name
    if obstacle(target) is not None:
        pytest.skip(f"{target} does not run here")
    compiled = lowerdeck.compile(path, target=target, weight_format=weight_format, cache=False)
    found = compiled(inputs)
    for name, value in rounded.items():
        expected = np.asarray(value)
        tolerance = 2e-5 * max(np.abs(expected).max(), 1)
        np.testing.assert_allclose(found[name], expected, 0, tolerance, err_msg=name)
    whole = Path(path).stat().st_size
    assert compiled.weights_size < whole * (0.33 if weight_format.startswith("int") else 0.65)


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_many_rows_read_are_widened_once(threads: int, tmp_path: Path) -> None:
    """Panels of all columns, and of those left over; each thread has its own."""
    forms: dict[str, Any] = {"many": ("MatMul", [(200, 128), (128, 260)], {})}
    path = str(tmp_path / "many.onnx")
    inputs = write_model(tmp_path / "many.onnx", forms)
    options = CompileOptions(target="x86-64-v3", weight_format="int4:24", threads=threads)
    module, _ = import_and_lower(path, "kernels", options)
    assert "wide = 1" in str(module)
    module, _ = import_and_lower(path, "optimized", options)
    expected = run_module(module, inputs)
    if obstacle("x86-64-v3") is not None:
        pytest.skip("x86-64-v3 does not run here")
    found = compile_with(path, options, cache=False)(inputs)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.asarray(value), 0, 1e-4, err_msg=name)


MAP = """
func.func @main(%q : tensor<3x4xui8>, %s : tensor<3x3xf16>, %z : tensor<3x3xui8>)
    -> tensor<3x7xf32> {
  %w = core.dequantize %q, %s, %z axis 1 size 7 block 3
      : (tensor<3x4xui8>, tensor<3x3xf16>, tensor<3x3xui8>) -> tensor<3x7xf32>
  func.return %w : tensor<3x7xf32>
}
"""


def test_halves_of_bytes_by_their_definition(tmp_path: Path) -> None:
    """Number by number: the interpreter, and C of computed codes."""
    codes, zeros = RANDOM.integers(0, 256, (3, 4)), RANDOM.integers(0, 16, (3, 3))
    scales = RANDOM.standard_normal((3, 3)).astype(np.float16)
    inputs = {"0": codes.astype(np.uint8), "1": scales, "2": zeros.astype(np.uint8)}
    expected = [
        [
            ((int(codes[i, k // 2]) >> (4 * (k % 2)) & 15) - int(zeros[i, k // 3]))
            * float(scales[i, k // 3])
            for k in range(7)
        ]
        for i in range(3)
    ]
    (tmp_path / "map.mlir").write_text(MAP)
    module, _ = import_and_lower(str(tmp_path / "map.mlir"), "optimized", CompileOptions())
    compiled = lowerdeck.compile(tmp_path / "map.mlir", cache=False)
    for found in (run_module(module, inputs), compiled(inputs)):
        np.testing.assert_array_equal(next(iter(found.values())), np.array(expected, np.float32))


BLOCKED: dict[str, tuple[Numbers, int, int, Numbers]] = {
    # How a dequantized tensor of four bits is read: its shape, axis, block, the shape of the input.
    "MatMul": ((70, 33), 0, 32, (4, 70)),
    "Gemm": ((33, 70), 1, 16, (4, 70)),
    "MatMul_channels": ((70, 33), 1, 0, (1, 70)),
    "MatMul_across": ((70, 33), 1, 16, (4, 70)),
    "MatMul_one": ((70, 33), 1, 0, (4, 70)),
    "Gather": ((40, 50), 1, 16, (2, 3)),
    "Conv": ((8, 16, 3, 3), 1, 16, (1, 16, 5, 5)),
    "Mul": ((70,), 0, 0, (70,)),
}


def blocked_model(path: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """A model of all of these, with signs and without; its inputs, and the numbers of weights."""
    nodes: list[Any] = []
    constants: list[Any] = []
    inputs: dict[str, Array] = {}
    numbers: dict[str, Array] = {}
    for kind, low in (("INT4", -8), ("UINT4", 0)):
        for form, (shape, axis, block, source) in BLOCKED.items():
            name = f"{form}_{kind}"
            scales = [-(-n // block) if block and k == axis else n for k, n in enumerate(shape)]
            scales = scales if block else [shape[1]] if form.endswith("channels") else []
            codes, zeros = (RANDOM.integers(low, low + 16, size) for size in (shape, scales))
            scale = np.asarray(RANDOM.uniform(0.1, 1, scales), np.float32)
            for suffix, array in (("q", codes), ("z", zeros)):
                flat = np.asarray(array).reshape(-1).tolist()
                type_ = getattr(TensorProto, kind)
                constants.append(helper.make_tensor(f"{name}_{suffix}", type_, array.shape, flat))
            constants.append(numpy_helper.from_array(scale, f"{name}_s"))
            parts = [f"{name}_{suffix}" for suffix in "qsz"]
            options: dict[str, Any] = {"axis": axis}
            options |= {"block_size": block} if block else {}
            nodes.append(helper.make_node("DequantizeLinear", parts, [f"{name}_w"], **options))
            operator, operands = form.split("_")[0], [f"{name}_x", f"{name}_w"]
            attributes: dict[str, Any] = {"transB": 1} if operator == "Gemm" else {}
            operands = operands[::-1] if operator == "Gather" else operands
            nodes.append(helper.make_node(operator, operands, [name], **attributes))
            if block:
                scale, zeros = (
                    np.repeat(a, block, axis).take(range(shape[axis]), axis) for a in (scale, zeros)
                )
            numbers[name] = np.asarray((codes - zeros) * scale, np.float32)
            x = RANDOM.standard_normal(source).astype(np.float32)
            if operator == "Gather":
                x = RANDOM.integers(-shape[0], shape[0], source)
            inputs[f"{name}_x"] = x
    graph = helper.make_graph(
        nodes,
        "blocked",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in numbers],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return inputs, numbers


def test_weights_of_a_model_stay_in_four_bits(tmp_path: Path) -> None:
    """Those of products and tables; others are what they stand for."""
    inputs, numbers = blocked_model(tmp_path / "blocked.onnx")
    compiled = lowerdeck.compile(tmp_path / "blocked.onnx", target="x86-64-v3", cache=False)
    options = CompileOptions(target="x86-64-v3")
    module, _ = import_and_lower(str(tmp_path / "blocked.onnx"), "optimized", options)
    assert str(module).count("core.dequantize") == 8
    found: list[Mapping[str, Any]] = [run_module(module, inputs)]
    if obstacle("x86-64-v3") is None:
        found.append(compiled(inputs))
    for results in found:
        for name, weight in numbers.items():
            x, y = inputs[f"{name}_x"], np.asarray(results[name])
            match name.split("_")[0]:
                case "Gather":
                    np.testing.assert_array_equal(y, weight[x], name)
                case "Mul":
                    np.testing.assert_array_equal(y, x * weight, name)
                case "Conv":
                    window = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2))
                    expected = np.einsum("cyxij,ocij->oyx", window.astype(float), weight)[None]
                    np.testing.assert_allclose(y, expected, 0, 1e-4, err_msg=name)
                case operator:
                    factor = weight.T if operator == "Gemm" else weight
                    expected = x.astype(float) @ factor.astype(float)
                    np.testing.assert_allclose(y, expected, 0, 1e-4, err_msg=name)


@pytest.mark.parametrize("has_zeros", [False, True])
def test_matmul_n_bits_stays_in_four_bits(has_zeros: bool, tmp_path: Path) -> None:
    rows, columns, blocks = 33, 70, 5
    halves = RANDOM.integers(0, 16, (rows, blocks, 16))
    zeros = RANDOM.integers(0, 16, (rows, 6))
    scale = RANDOM.uniform(0.1, 1, (rows, blocks)).astype(np.float32)
    constants = {"b": halves[..., ::2] | halves[..., 1::2] << 4, "s": scale}
    if has_zeros:
        constants["z"] = zeros[:, ::2] | zeros[:, 1::2] << 4
    numbers: dict[str, Any] = {"K": columns, "N": rows, "bits": 4, "block_size": 16}
    operands = ["x", *constants]
    node = helper.make_node("MatMulNBits", operands, ["y"], domain="com.microsoft", **numbers)
    graph = helper.make_graph(
        [node],
        "bits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, rows])],
        [
            numpy_helper.from_array(array if name == "s" else array.astype(np.uint8), name)
            for name, array in constants.items()
        ],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    (tmp_path / "bits.onnx").write_bytes(model.SerializeToString())
    module, _ = import_and_lower(str(tmp_path / "bits.onnx"), "optimized", CompileOptions())
    assert f"tensor<35x{rows}xui8>" in str(module)
    centered = halves - (zeros[:, :blocks, None] if has_zeros else 8)
    weight = (centered * scale[..., None]).reshape(rows, -1)[:, :columns]
    x = RANDOM.standard_normal((4, columns)).astype(np.float32)
    found = np.asarray(run_module(module, {"x": x})["y"])
    np.testing.assert_allclose(found, x @ weight.T, 0, 1e-4)


def test_scales_of_blocks_round_least() -> None:
    """No scale in place of the found one, for a block, would make a smaller error by much."""
    weights = of_ranges((70, 12))
    codes, scales = as_halves(weights, 0, 32)
    assert codes.max() <= 15
    assert scales.shape == (3, 12)
    numbers = (codes.astype(np.float32) - 8) * np.repeat(scales.astype(np.float32), 32, 0)[:70]
    plain = np.abs(weights[:32]).max(0) / 7
    rounded = np.clip(np.rint(weights[:32] / plain), -8, 7) * plain
    error = np.square(numbers - weights)[:32].sum(0)
    assert (error <= 1.02 * np.square(rounded - weights[:32]).sum(0)).all()
    pairs = pairs_of(codes, 0)
    assert pairs.shape == (35, 12)
    np.testing.assert_array_equal(pairs & 15, codes[0::2])
    np.testing.assert_array_equal(pairs >> 4, codes[1::2])


@pytest.mark.parametrize(
    "weight_format", ["int4:", "int4:7", "int4:4", "int4:x", "int3", "int8:32"]
)
def test_other_formats_are_refused(weight_format: str, tmp_path: Path) -> None:
    (tmp_path / "map.mlir").write_text(MAP)
    with pytest.raises(lowerdeck.LowerdeckError, match="is not one of bf16, fp16, int8, int4"):
        lowerdeck.compile(tmp_path / "map.mlir", weight_format=weight_format)


@pytest.mark.parametrize("weight_format", [None, *ERRORS])
def test_memory_is_asked_ahead_where_a_row_reads_it(
    weight_format: str | None, tmp_path: Path
) -> None:
    """Lines of narrow weights are used up before others would come by themselves."""
    forms: dict[str, Any] = {"row": ("MatMul", [(1, 512), (512, 3072)], {})}
    write_model(tmp_path / "row.onnx", forms)
    options = CompileOptions(target="x86-64-v4", weight_format=weight_format)
    generate(str(tmp_path / "row.onnx"), str(tmp_path), options)
    is_asked = "__builtin_prefetch" in (tmp_path / "row.c").read_text()
    assert is_asked == (weight_format is not None)


def test_a_format_that_there_is_not_is_no_file(tmp_path: Path) -> None:
    """What looks like a format is refused as one, for models whose weights may be a file, too."""
    (tmp_path / "map.mlir").write_text(MAP)
    with pytest.raises(lowerdeck.LowerdeckError, match="'int5' is not one of bf16, fp16, int8"):
        lowerdeck.compile(tmp_path / "map.mlir", weights="int5")


@pytest.mark.parametrize("scale", [0.0, -0.5, np.nan, np.inf])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_that_are_none_are_refused(operator: str, scale: float, tmp_path: Path) -> None:
    element = TensorProto.FLOAT if operator == "QuantizeLinear" else TensorProto.UINT8
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "s"], ["y"], name="node")],
        "scale",
        [helper.make_tensor_value_info("x", element, [4])],
        [helper.make_tensor_value_info("y", 0, None)],
        [numpy_helper.from_array(np.array(scale, np.float32), "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "scale.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(lowerdeck.LowerdeckError, match=r"'node' .*found a scale of .*above 0"):
        lowerdeck.compile(tmp_path / "scale.onnx", cache=False)
