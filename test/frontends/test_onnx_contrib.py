"""Operators of ONNX Runtime's own domain, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import helper
from xdsl.context import Context

import lowerdeck
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.tools.lowerdeck import main

Array = NDArray[Any]


def model_of(op_type: str, inputs: Mapping[str, Array], **attributes: Any) -> Any:
    node = helper.make_node(op_type, list(inputs), ["y"], domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    first = next(iter(inputs.values()))
    element = helper.np_dtype_to_tensor_dtype(first.dtype)
    result = helper.make_tensor_value_info("y", element, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, [result])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def by_onnxruntime(model: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """On one thread: with more, batches are quantized in parts."""
    options = cast(Any, onnxruntime).SessionOptions()
    options.intra_op_num_threads = 1
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))


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


def quantized(dtype: Any, seed: int, *shape: int) -> Array:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


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


def agree(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str] = ("y",),
    tolerance: float = 1e-5,
    **attributes: Any,
) -> dict[str, Array]:
    """The outputs, which are ONNX Runtime's; None is an absent input, "" an absent output."""
    feeds = {name: array for name, array in inputs.items() if array is not None}
    names = [name if name in feeds else "" for name in inputs]
    node = helper.make_node(op_type, names, outputs, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, results)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    expected = by_onnxruntime(model, feeds)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    found = cast(dict[str, Array], run_module(module, feeds))
    for name, want in zip(filter(None, outputs), expected, strict=True):
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape), name
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(found[name], want, err_msg=name)
        else:
            np.testing.assert_allclose(
                found[name], want, rtol=tolerance, atol=tolerance, err_msg=name
            )
    return found


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


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
        "W": quantized(dtype, 3, d, size, 4 * hidden),
        "R": quantized(dtype, 4, d, hidden, 4 * hidden),
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


def test_others_are_unknown() -> None:
    model = model_of("QLinearWhatever", one_input(np.uint8))
    with pytest.raises(FrontendError, match=r"'com\.microsoft\.QLinearWhatever' is unknown"):
        import_model(model)
