"""Operators of ONNX Runtime's own domain, beside ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.context import Context

import lowerdeck
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.contrib import operators
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.tools.lowerdeck import main

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    by_onnxruntime,
    factor,
    model_of,
    normal,
    quantized,
    results_of,
    scale,
)


def check(op_type: str, inputs: Mapping[str, Array], part: float = 0.01, **attributes: Any) -> None:
    """
    ONNX Runtime multiplies by quotients of scales, so a number in the middle may go either way:
    one step, of a part of the numbers.
    """
    model = model_of(op_type, inputs, **attributes)
    (expected,) = by_onnxruntime(model, inputs)
    found = lowerdeck.compile(model, cache=False)(dict(inputs))["y"]
    assert found.dtype == expected.dtype
    difference = np.abs(found.astype(int) - expected.astype(int))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= difference.size * part


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op_type: str, dtype: Any) -> None:
    """The second operand is broadcast."""
    inputs = {
        "a": quantized(dtype, 0, 5, 4, 60),
        "as": scale(0.031),
        "az": np.array(11, dtype),
        "b": quantized(dtype, 1, 4, 60),
        "bs": scale(0.047),
        "bz": np.array(90, dtype),
        "cs": scale(0.11),
        "cz": np.array(40, dtype),
    }
    check(op_type, inputs)


def one_input(dtype: Any) -> dict[str, Array]:
    return {
        "x": quantized(dtype, 0, 3, 6, 50),
        "xs": scale(0.041),
        "xz": np.array(17, dtype),
        "ys": scale(0.0041),
        "yz": np.array(3, dtype),
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_functions(dtype: Any) -> None:
    check("QLinearSigmoid", one_input(dtype))
    check("QLinearLeakyRelu", one_input(dtype) | {"ys": scale(0.05)}, alpha=0.2)


@pytest.mark.parametrize(("axis", "opset"), [(1, 11), (2, 11), (1, 13), (-1, 13)])
def test_softmax(axis: int, opset: int) -> None:
    """ONNX Runtime adds up powers from a table of rounded ones."""
    check("QLinearSoftmax", one_input(np.uint8), part=0.2, axis=axis, opset=opset)


# What is exact but for rounding errors: legalized and interpreted


def lstm_inputs(
    directions: int = 1,
    *,
    dtype: Any = np.uint8,
    by_channel: bool = False,
    lengths: Sequence[int] | None = None,
    has_states: bool = False,
    has_peepholes: bool = False,
) -> dict[str, Array | None]:
    """Five steps of three sequences with four features, and six hidden units."""
    d, time, batch, size, hidden = directions, 5, 3, 4, 6
    gates = (d, 4 * hidden) if by_channel else (d,)
    zero = 0 if dtype == np.int8 else 131
    states = [normal(k, d, batch, hidden) / 2 if has_states else None for k in (1, 2)]
    return {
        "X": normal(0, time, batch, size),
        "W": factor(dtype, 3, d, size, 4 * hidden),
        "R": factor(dtype, 4, d, hidden, 4 * hidden),
        "B": normal(5, d, 8 * hidden) / 3,
        "sequence_lens": None if lengths is None else np.array(lengths, np.int32),
        "initial_h": states[0],
        "initial_c": states[1],
        "P": normal(6, d, 3 * hidden) / 2 if has_peepholes else None,
        "W_scale": np.abs(normal(7, *gates)) / 100 + np.float32(0.004),
        "W_zero": np.full(gates, zero, dtype),
        "R_scale": np.abs(normal(8, *gates)) / 100 + np.float32(0.004),
        "R_zero": np.full(gates, zero, dtype),
    }


LSTM = "DynamicQuantizeLSTM"
STATES = ("Y", "Y_h", "Y_c")


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, (2, 4, 3), (5, 0, 1)])
def test_dynamic_lstm(direction: str, lengths: Sequence[int] | None) -> None:
    """Sequences that are shorter, or empty, do not count where the others are quantized."""
    count = 1 + (direction == "bidirectional")
    inputs = lstm_inputs(count, lengths=lengths, has_states=True)
    agree(LSTM, inputs, STATES, hidden_size=6, direction=direction)


@pytest.mark.parametrize("outputs", [("Y",), ("", "Y_h"), ("", "", "Y_c")])
def test_dynamic_lstm_of_some_outputs(outputs: Sequence[str]) -> None:
    inputs = lstm_inputs(lengths=(5, 2, 4))
    agree(LSTM, inputs, outputs, hidden_size=6)
    agree(LSTM, lstm_inputs(), outputs, hidden_size=6)


def test_dynamic_lstm_of_signed_weights_by_channel() -> None:
    inputs = lstm_inputs(2, dtype=np.int8, by_channel=True, has_peepholes=True)
    agree(LSTM, inputs, STATES, hidden_size=6, direction="bidirectional", clip=0.8)
    agree(
        LSTM,
        {**inputs, "B": None},
        STATES,
        hidden_size=6,
        direction="bidirectional",
        input_forget=1,
    )


@pytest.mark.parametrize(
    "names",
    [
        ("HardSigmoid", "Softsign", "Relu"),
        ("sigmoid", "LeakyRelu", "ScaledTanh"),
        ("Affine", "Elu", "ThresholdedRelu"),
        ("Softplus", "Tanh", "HardSigmoid"),
    ],
)
def test_dynamic_lstm_of_other_functions(names: Sequence[str]) -> None:
    agree(
        LSTM,
        lstm_inputs(),
        STATES,
        hidden_size=6,
        activations=names,
        activation_alpha=[0.3, 0.2],
        activation_beta=[0.4],
    )


def test_dynamic_lstm_in_c() -> None:
    inputs = lstm_inputs(2, lengths=(2, 4, 3), has_states=True)
    names = [name if array is not None else "" for name, array in inputs.items()]
    feeds = {name: array for name, array in inputs.items() if array is not None}
    model = model_of(LSTM, feeds, hidden_size=6, direction="bidirectional")
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend(names)
    (expected,) = by_onnxruntime(model, feeds)
    found = lowerdeck.compile(model, cache=False)(feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"direction": "up"}, "'direction' is 'up'"),
        ({"activations": ["Tanh"]}, "found 1 activations, expected 3"),
        ({"activations": ["Tanh", "Tanh", "Sine"]}, "found activation 'Sine'"),
        ({"activation_alpha": [float("nan")], "activations": ["Elu"] * 3}, "parameter nan"),
        ({"hidden": 6}, "found attribute 'hidden', expected one of: activation_alpha"),
        ({"clip": 1}, "attribute 'clip' is of kind INT, expected FLOAT"),
    ],
)
def test_dynamic_lstm_that_is_refused(attributes: dict[str, Any], message: str) -> None:
    feeds = {name: array for name, array in lstm_inputs().items() if array is not None}
    with pytest.raises(FrontendError, match=message):
        import_model(model_of(LSTM, feeds, **attributes))


# Quantized numbers


def test_where_and_concat() -> None:
    x = one_input(np.uint8)
    y = {"a": quantized(np.uint8, 1, 3, 6, 50), "as": scale(0.017), "az": np.array(200, np.uint8)}
    z = {"zs": scale(0.05), "zz": np.array(100, np.uint8)}
    test = np.random.default_rng(2).integers(0, 2, (3, 6, 50)).astype(bool)
    first = {name: x[name] for name in ("x", "xs", "xz")}
    step("QLinearConcat", {**z, **first, **y}, axis=-2)
    step("QLinearWhere", {"c": test, **first, **y, **z})


def step(op_type: str, inputs: Mapping[str, Array | None], **attributes: Any) -> None:
    """As `check`, by the interpreter."""
    found, (want,) = results_of(op_type, inputs, ("y",), **attributes)
    assert found["y"].dtype == want.dtype
    difference = np.abs(found["y"].astype(int) - want.astype(int))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= difference.size / 100


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_pools(dtype: Any) -> None:
    x = {**one_input(dtype), "x": quantized(dtype, 0, 2, 3, 8, 7), "ys": scale(0.03)}
    step("QLinearGlobalAveragePool", x)
    pads = [1, 0, 0, 1]
    for has in (0, 1):
        attributes: dict[str, Any] = {"kernel_shape": [3, 2], "count_include_pad": has}
        step("QLinearAveragePool", x, strides=[2, 1], pads=pads, **attributes)
    last = {**x, "x": np.moveaxis(x["x"], 1, -1).copy()}
    step("QLinearGlobalAveragePool", last, channels_last=1)
    windows: dict[str, Any] = {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1], "strides": [2, 1]}
    step("QLinearAveragePool", last, channels_last=1, **windows)
    agree("NhwcMaxPool", {"x": last["x"]}, **windows)


def test_to_and_from_integers() -> None:
    x = normal(0, 3, 4, 5)
    scales = np.abs(normal(1, 4)) / 40 + np.float32(0.02)
    zeros = np.array([3, 120, 200, 255], np.uint8)
    agree("QuantizeLinear", {"x": x, "s": scales, "z": zeros}, axis=1)
    agree("QuantizeLinear", {"x": x, "s": scale(0.03), "z": np.array(-7, np.int8)})
    agree("DequantizeLinear", {"x": quantized(np.uint8, 0, 3, 4, 5), "s": scales, "z": zeros})
    agree("DequantizeLinear", {"x": quantized(np.int16, 0, 3), "s": scale(0.1), "z": None})


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products(dtype: Any, by_column: bool) -> None:
    shape = (6,) if by_column else ()
    weights = {
        "B": factor(dtype, 1, 9, 6),
        "bs": np.asarray(np.abs(normal(2, *shape)) / 50 + 0.01, np.float32),
        "bz": np.full(shape, 4, dtype),
    }
    bias = normal(3, 6)
    a = normal(0, 2, 5, 9)
    agree("DynamicQuantizeMatMul", {"A": a, **weights, "bias": bias})
    agree("DynamicQuantizeMatMul", {"A": a, **weights, "bz": None})
    q = {"A": quantized(np.uint8, 0, 2, 5, 9), "B": weights["B"], "as": scale(0.03)}
    inputs = {**q, "bs": weights["bs"], "az": np.array(9, np.uint8), "bz": weights["bz"]}
    agree("MatMulIntegerToFloat", {**inputs, "bias": bias}, tolerance=1e-4)
    agree("MatMulIntegerToFloat", {**inputs, "az": None, "bz": None}, tolerance=1e-4)


@pytest.mark.parametrize("transposed", [0, 1])
def test_qgemm(transposed: int) -> None:
    a, b = quantized(np.uint8, 0, 5, 9), factor(np.int8, 1, 9, 6)
    inputs: dict[str, Array | None] = {
        "A": a.T.copy() if transposed else a,
        "as": scale(0.03),
        "az": np.array(7, np.uint8),
        "B": b.T.copy() if transposed else b,
        "bs": np.abs(normal(2, 6)) / 50 + np.float32(0.01),
        "bz": np.zeros(6, np.int8),
        "C": np.random.default_rng(3).integers(-900, 900, (1, 6), np.int32),
        "ys": scale(0.4),
        "yz": np.array(100, np.uint8),
    }
    attributes: dict[str, Any] = {"transA": transposed, "transB": transposed, "alpha": 0.5}
    step("QGemm", inputs, **attributes)
    agree("QGemm", {**inputs, "ys": None, "yz": None}, tolerance=1e-4, **attributes)
    agree("QGemm", {**inputs, "C": None, "ys": None, "yz": None}, tolerance=1e-4, **attributes)


@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (8, 16), (2, 16)])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_products_with_numbers_of_few_bits(bits: int, block: int, has_zeros: bool) -> None:
    """The last block of a row is not full, and 3 blocks are no whole number of bytes."""
    n, k = 5, 2 * block + 7
    zeros = quantized(np.uint8, 3, n, -(-3 * bits // 8)) if has_zeros else None
    inputs = {
        "A": normal(0, 2, 3, k),
        "B": quantized(np.uint8, 1, n, 3, block * bits // 8),
        "scales": np.abs(normal(2, n, 3)) / 20,
        "zeros": zeros,
    }
    attributes: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": block}
    agree("MatMulNBits", inputs, tolerance=1e-4, **attributes)
    if has_zeros:
        more = {**inputs, "g": None, "bias": normal(4, n)}
        agree("MatMulNBits", more, tolerance=1e-4, **attributes)
    if has_zeros and bits < 8:  # ONNX Runtime has no kernel of floats for 8
        between = np.abs(normal(5, n, 3)) * 3
        agree("MatMulNBits", {**inputs, "zeros": between}, tolerance=1e-4, **attributes)


# Operators in one


def test_activations_in_one() -> None:
    x, bias = normal(0, 3, 4, 5), normal(1, 5)
    agree("Gelu", {"x": x})
    agree("BiasGelu", {"x": x, "b": bias})
    agree("FastGelu", {"x": x})
    agree("FastGelu", {"x": x, "b": bias})
    agree("QuickGelu", {"x": x})
    agree("QuickGelu", {"x": x}, alpha=0.7)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_fused_matmul(batch: Sequence[int]) -> None:
    for left, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a = normal(0, *batch, *((5, 4) if left else (4, 5)))
        b = normal(1, *batch, *((6, 5) if right else (5, 6)))
        agree("FusedMatMul", {"a": a, "b": b}, alpha=0.3, transA=left, transB=right)
        if not batch:
            continue
        # The rows first, then the products side by side
        turned = {"a": np.moveaxis(a, -2, 0).copy(), "b": np.moveaxis(b, -2, 0).copy()}
        attributes: dict[str, Any] = {"transA": left, "transB": right}
        agree("FusedMatMul", turned, transBatchA=1, transBatchB=1, **attributes)


@pytest.mark.parametrize("name", ["Relu", "LeakyRelu", "Tanh", "Elu", "HardSigmoid"])
def test_fused_gemm(name: str) -> None:
    inputs = {"a": normal(0, 5, 4), "b": normal(1, 6, 5), "c": normal(2, 6)}
    parameters: dict[str, Any] = {"LeakyRelu": 1, "Elu": 1, "HardSigmoid": 2}
    given = dict(
        zip(("activation_alpha", "activation_beta"), (0.3, 0.4), strict=True),
    )
    chosen = dict(list(given.items())[: parameters.get(name, 0)])
    common: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}
    agree("FusedGemm", inputs, activation=name, **common, **chosen)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("Relu", []), ("Sigmoid", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 1.0])],
)
def test_fused_conv(name: str, parameters: list[float]) -> None:
    inputs = {"x": normal(0, 1, 4, 7, 6), "w": normal(1, 6, 2, 3, 3) / 3, "b": normal(2, 6)}
    common: dict[str, Any] = {"activation": name, "group": 2, "pads": [1, 0, 1, 0]}
    if parameters:
        common["activation_params"] = parameters
    agree("FusedConv", inputs, **common, strides=[2, 1])
    if name == "Relu":
        agree("FusedConv", {**inputs, "z": normal(3, 1, 6, 7, 4)}, **common)


@pytest.mark.parametrize("has_bias", [False, True])
def test_skip_normalization(has_bias: bool) -> None:
    x, gamma, beta = normal(0, 2, 3, 8), normal(1, 8), normal(2, 8)
    bias = normal(3, 8) if has_bias else None
    outputs = ("y", "", "", "s")
    for skip in (normal(4, 2, 3, 8), normal(4, 1, 3, 8), normal(4, 3, 8)):
        inputs = {"x": x, "skip": skip, "gamma": gamma}
        agree("SkipLayerNormalization", {**inputs, "beta": beta, "bias": bias}, outputs)
        agree("SkipSimplifiedLayerNormalization", {**inputs, "bias": bias}, outputs, epsilon=1e-5)
    agree("SkipLayerNormalization", {"x": x, "skip": x, "gamma": gamma}, epsilon=0.01)


def test_simplified_normalization() -> None:
    """Which is in the default domain."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8])
    gamma = helper.make_tensor_value_info("g", TensorProto.FLOAT, [8])
    results = [helper.make_empty_tensor_value_info(name) for name in "yd"]
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y", "d"], epsilon=1e-4)
    graph = helper.make_graph([node], "g", [x, gamma], results)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    feeds = {"x": normal(0, 2, 3, 8), "g": normal(1, 8)}
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    found = cast(dict[str, Array], run_module(module, feeds))
    for name, want in zip("yd", by_onnxruntime(model, feeds), strict=True):
        np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-5)
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 1))
    with pytest.raises(FrontendError, match="another axis"):
        import_model(model)


def embedding(has_segments: bool, has_mask: bool, has_positions: bool) -> dict[str, Array | None]:
    rng = np.random.default_rng(0)
    ids, positions = rng.integers(0, 9, (2, 4), np.int32), np.array([[3, 0, 1, 2]] * 2, np.int32)
    return {
        "ids": ids,
        "segments": ids % 2 if has_segments else None,
        "words": normal(1, 9, 8),
        "positions": normal(2, 5, 8),
        "segment_table": normal(3, 2, 8) if has_segments else None,
        "gamma": normal(4, 8),
        "beta": normal(5, 8),
        "mask": np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32) if has_mask else None,
        "ids_of_positions": positions if has_positions else None,
    }


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_mask", [False, True])
def test_embeddings(has_segments: bool, has_mask: bool) -> None:
    for has_positions in (False, True):
        inputs = embedding(has_segments, has_mask, has_positions)
        agree("EmbedLayerNormalization", inputs, ("y", "mask_index", "sum"))
    del inputs["ids_of_positions"]
    tables = ("words", "positions", "segment_table", "gamma", "beta")
    for name in tables:
        if (table := inputs[name]) is not None:
            inputs[name] = quantized(np.uint8, len(name), *table.shape)
    for k, name in enumerate(tables):
        inputs[f"{name}_scale"] = None if inputs[name] is None else scale(0.02 + k / 200)
    for k, name in enumerate(tables):
        inputs[f"{name}_zero"] = None if inputs[name] is None else np.array(100 + k, np.uint8)
    agree("QEmbedLayerNormalization", inputs, ("y", "mask_index"), tolerance=1e-4)


def test_operators_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for op_type, status in (("QLinearSigmoid", 0), ("QLinearWhatever", 1)):
        (path := tmp_path / f"{op_type}.onnx").write_bytes(
            model_of(op_type, one_input(np.uint8)).SerializeToString()
        )
        assert main(["ops", str(path)]) == status
    text = capsys.readouterr().out.splitlines()
    assert text[0].split()[1] == "com.microsoft.QLinearSigmoid"
    assert text[0].endswith("function of the importer")
    assert "NOT SUPPORTED" in text[-1]


def test_operators_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
    found = {
        "Of ONNX Runtime's own": ("", "com.microsoft"),
        "Of `com.microsoft.nchwc`": ("com.microsoft.nchwc",),
        "Of `com.ms.internal.nhwc`": ("com.ms.internal.nhwc",),
    }
    for beginning, domains in found.items():
        paragraph = text.partition(beginning)[2].partition("\n\n")[0].partition(". ")[0]
        listed = re.findall(r"`(\w+)`", paragraph)
        ours = [name for domain, name in operators() if domain in domains]
        assert listed == sorted(ours, key=str.lower)


@pytest.mark.parametrize(
    ("op_type", "message"),
    [
        ("BeamSearch", "is a whole loop of text generation .* compile its decoder"),
        ("Tokenizer", "splits strings; split them before"),
        ("SparseAttention", "export the model with GroupQueryAttention"),
        ("Inverse", "inverts matrices, .* define the operator in a plugin"),
        ("MaxpoolWithMask", "select with Where before MaxPool"),
        ("QMoE", "export the model with MoE"),
    ],
)
def test_refused(op_type: str, message: str) -> None:
    """With what to do instead; and they are not listed as supported."""
    model = model_of(op_type, {"x": normal(0, 2)})
    with pytest.raises(FrontendError, match=f"'com.microsoft.{op_type}' {message}|{message}"):
        import_model(model)
    assert ("com.microsoft", op_type) not in operators()


def test_others_are_unknown() -> None:
    model = model_of("QLinearWhatever", one_input(np.uint8))
    with pytest.raises(FrontendError, match=r"'com\.microsoft\.QLinearWhatever' is unknown"):
        import_model(model)
