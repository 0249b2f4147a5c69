"""Attributes that the official node suite does not combine, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper
from xdsl.context import Context

from lowerdeck.dialects.interpret import InterpretError, run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass

Array = NDArray[Any]


def random(*shape: int, seed: int = 0) -> Array:
    """Normal numbers in float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def model_of(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: int,
    opset: int,
    dynamic: bool | Collection[str],
    **attrs: Any,
) -> ModelProto:
    """A model of one node; None stands for an absent input. All inputs are open, none, or some."""
    names = ["" if array is None else name for name, array in inputs.items()]
    results = [f"r{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, **attrs)
    values = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{k}" for k in range(array.ndim)]
            if dynamic is True or (dynamic and name in dynamic)
            else array.shape,
        )
        for name, array in inputs.items()
        if array is not None
    ]
    graph = helper.make_graph(
        [node], "test", values, [helper.make_empty_tensor_value_info(name) for name in results]
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=min(10, 3 + opset)
    )


def check(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: int = 1,
    opset: int = 21,
    dynamic: bool | Collection[str] = False,
    **attrs: Any,
) -> None:
    """Legalize and interpret a node, and compare all of its results with ONNX Runtime's."""
    model = model_of(op_type, inputs, outputs, opset, dynamic, **attrs)
    feeds = {name: array for name, array in inputs.items() if array is not None}
    session: Any = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected: Sequence[Any] = session.run(None, feeds)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    found = run_module(module, feeds)
    for k, want in enumerate(expected):
        result = found[f"r{k}"]
        assert isinstance(result, np.ndarray)
        assert result.dtype == want.dtype
        np.testing.assert_allclose(result, want, 1e-4, 1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(7, 3, 2), (8, 3, 2), (8, 2, 1), (9, 4, 3)])
def test_conv_auto_pad(auto_pad: str, size: int, kernel: int, stride: int, dynamic: bool) -> None:
    inputs = {"x": random(2, 4, size, size + 1), "w": random(6, 2, kernel, kernel)}
    check("Conv", inputs, dynamic=dynamic, auto_pad=auto_pad, strides=[stride] * 2, group=2)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_ranks(rank: int) -> None:
    inputs = {"x": random(1, 2, *[7] * rank), "w": random(3, 2, *[3] * rank), "b": random(3)}
    pads = [*range(rank), *[1] * rank]
    check("Conv", inputs, pads=pads, dilations=[2] * rank, strides=[*range(1, rank + 1)])


@pytest.mark.parametrize(
    "attrs",
    [
        {"output_padding": [1, 0], "strides": [2, 2], "pads": [1, 0, 0, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        {"output_shape": [12, 11], "strides": [3, 3]},
        {"output_shape": [9, 10], "strides": [2, 2]},
        {"dilations": [2, 1], "group": 2},
    ],
)
def test_conv_transpose(attrs: dict[str, Any]) -> None:
    group = attrs.get("group", 1)
    inputs = {"x": random(1, 4, 4, 4), "w": random(4, 6 // group, 3, 3), "b": random(6)}
    check("ConvTranspose", inputs, **attrs)


WINDOWS = [
    {"kernel_shape": [3, 2], "strides": [2, 2]},
    {"kernel_shape": [2, 3], "strides": [2, 3], "pads": [1, 1, 0, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 3], "dilations": [2, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 1]},
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pool(window: dict[str, Any], ceil_mode: int, dynamic: bool) -> None:
    inputs = {"x": random(2, 3, 8, 9)}
    check("MaxPool", inputs, 1, dynamic=dynamic, ceil_mode=ceil_mode, **window)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("window", WINDOWS)
def test_max_pool_indices(window: dict[str, Any], storage_order: int) -> None:
    inputs = {"x": np.round(random(2, 3, 8, 9))}
    check("MaxPool", inputs, 2, storage_order=storage_order, **window)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("ceil_mode", "count_include_pad"), list(product([0, 1], [0, 1])))
@pytest.mark.parametrize("window", WINDOWS)
def test_average_pool(
    window: dict[str, Any], ceil_mode: int, count_include_pad: int, dynamic: bool
) -> None:
    check(
        "AveragePool",
        {"x": random(2, 3, 8, 9)},
        dynamic=dynamic,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        **window,
    )


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (1, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij,jk->ki", [(3, 3, 4), (4, 2)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij,kj,lk->il", [(2, 3), (4, 3), (5, 4)]),
        ("ij->", [(2, 3)]),
        ("ba", [(2, 3)]),
        ("hgfedcba", [(2, 3, 1, 2, 1, 2, 1, 2)]),
        ("abc,ad,dc->bd", [(2, 3, 4), (2, 5), (5, 4)]),
        ("i...->...", [(2, 3, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
    ],
)
def test_einsum(equation: str, shapes: Sequence[tuple[int, ...]]) -> None:
    inputs = {f"x{k}": random(*shape, seed=k) for k, shape in enumerate(shapes)}
    check("Einsum", inputs, equation=equation)


@pytest.mark.parametrize(("equation", "shape"), [("ii->i", (3, 3)), ("ijki->jik", (2, 3, 4, 2))])
def test_einsum_of_an_open_diagonal(equation: str, shape: tuple[int, ...]) -> None:
    check("Einsum", {"x": random(*shape)}, dynamic=True, equation=equation)


def test_an_open_diagonal_of_no_square() -> None:
    """onnxruntime refuses it, too."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", "m"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["k"])
    node = helper.make_node("Einsum", ["x"], ["y"], equation="ii->i")
    opsets = [helper.make_opsetid("", 17)]
    graph = helper.make_graph([node], "g", [x], [y])
    module = import_model(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    LegalizeOnnxPass().apply(Context(), module)
    for shape in ((3, 4), (4, 3)):
        with pytest.raises(InterpretError, match="reshape"):
            run_module(module, {"x": np.ones(shape, np.float32)})


@pytest.mark.parametrize("c", [None, (), (5,), (4, 1), (1, 5), (4, 5)])
@pytest.mark.parametrize(("ta", "tb"), list(product([0, 1], [0, 1])))
def test_gemm(ta: int, tb: int, c: tuple[int, ...] | None) -> None:
    a, b = random(*((3, 4) if ta else (4, 3))), random(*((5, 3) if tb else (3, 5)))
    inputs = {"a": a, "b": b, "c": None if c is None else np.asarray(random(*c))}
    check("Gemm", inputs, transA=ta, transB=tb, alpha=0.5, beta=2.0)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,))])
def test_matmul_vectors(shapes: Sequence[tuple[int, ...]]) -> None:
    check("MatMul", {"a": random(*shapes[0]), "b": random(*shapes[1])})


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax(op_type: str, axis: int, opset: int) -> None:
    check(op_type, {"x": random(2, 3, 4)}, opset=opset, axis=axis)


# Recurrent layers

TIME, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {
    "RNN": ["Relu"],
    "GRU": ["HardSigmoid", "Softsign"],
    "LSTM": ["HardSigmoid", "Elu", "Tanh"],
}


def recurrent_inputs(
    op_type: str, directions: int, *, lengths: bool, states: bool
) -> dict[str, Array | None]:
    """The operands of a recurrent node, all of them random."""
    rows = GATES[op_type] * HIDDEN
    inputs: dict[str, Array | None] = {
        "x": random(TIME, BATCH, INPUT, seed=1),
        "w": random(directions, rows, INPUT, seed=2),
        "r": random(directions, rows, HIDDEN, seed=3),
        "b": random(directions, 2 * rows, seed=4),
        "lens": np.array([5, 2, 3], np.int32) if lengths else None,
        "h": random(directions, BATCH, HIDDEN, seed=5) if states else None,
    }
    if op_type == "LSTM":
        inputs["c"] = random(directions, BATCH, HIDDEN, seed=6) if states else None
        inputs["p"] = random(directions, 3 * HIDDEN, seed=7) if states else None
    return inputs


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_recurrent(op_type: str, direction: str, states: bool, lengths: bool) -> None:
    directions = 1 + (direction == "bidirectional")
    inputs = recurrent_inputs(op_type, directions, lengths=lengths, states=states)
    outputs = 3 if op_type == "LSTM" else 2
    check(op_type, inputs, outputs, hidden_size=HIDDEN, direction=direction)


@pytest.mark.parametrize("opened", ["x", "h", "xh", "xl", "xhl"])
@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_recurrent_with_open_inputs(op_type: str, opened: str) -> None:
    inputs = recurrent_inputs(op_type, 1, lengths=True, states=True)
    names = {"x": ["x"], "h": ["h", "c"], "l": ["lens"]}
    is_open = [name for letter in opened for name in names[letter]]
    check(op_type, inputs, 2, dynamic=is_open, hidden_size=HIDDEN)


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_recurrent_activations_and_clip(op_type: str) -> None:
    inputs = recurrent_inputs(op_type, 1, lengths=False, states=False)
    check(op_type, inputs, 2, hidden_size=HIDDEN, activations=ACTIVATIONS[op_type], clip=0.4)


def test_gru_linear_before_reset() -> None:
    inputs = recurrent_inputs("GRU", 2, lengths=True, states=True)
    check("GRU", inputs, 2, hidden_size=HIDDEN, direction="bidirectional", linear_before_reset=1)


def test_lstm_input_forget() -> None:
    inputs = recurrent_inputs("LSTM", 1, lengths=False, states=False)
    check("LSTM", inputs, 3, hidden_size=HIDDEN, input_forget=1)


# Others


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    check("LRN", {"x": random(2, 6, 3, 3)}, size=size, alpha=0.3, beta=0.6, bias=1.5)


@pytest.mark.parametrize(("num_groups", "opset"), [(1, 21), (2, 21), (6, 21)])
def test_group_norm(num_groups: int, opset: int) -> None:
    inputs = {"x": random(2, 6, 3, 3), "s": random(6), "b": random(6, seed=1)}
    check("GroupNormalization", inputs, opset=opset, num_groups=num_groups)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_signs(fmod: int) -> None:
    x = np.array([7, -7, 7, -7, 0], np.int32)
    check("Mod", {"x": x, "y": np.array([3, 3, -3, -3, 5], np.int32)}, fmod=fmod)


def test_clip_bounds_in_disorder() -> None:
    bounds = {"low": np.array(2, np.float32), "high": np.array(-1, np.float32)}
    check("Clip", {"x": random(5), **bounds}, opset=13)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantize_rounds_to_even_and_saturates(dtype: type[np.generic]) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1000, -1000, 63.75], np.float32)
    inputs = {"x": x, "s": np.array(0.5, np.float32), "z": np.array(3).astype(dtype)}
    check("QuantizeLinear", inputs, opset=13)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [-1, 0], [0, 1, 2]])
@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceLogSumExp", "ReduceMax"])
def test_reduction_along_axes_from_data(op_type: str, axes: list[int], keepdims: int) -> None:
    inputs = {"x": random(2, 3, 4), "axes": np.array(axes, np.int64)}
    check(op_type, inputs, opset=18, keepdims=keepdims)


@pytest.mark.parametrize("axes", [[1], [0, 1]])
def test_log_sum_exp_of_infinities(axes: list[int]) -> None:
    """The largest element is subtracted, but not if that gives NaN."""
    x = np.array([[-np.inf, -np.inf], [-np.inf, 3], [1, 2]], np.float32)
    check("ReduceLogSumExp", {"x": x, "axes": np.array(axes, np.int64)}, opset=18)
    check("ReduceLogSumExp", {"x": np.array([[np.inf, 1]], np.float32)}, opset=18)


def test_scan_directions_and_axes() -> None:
    """Every input and output of a scan has its own direction and axis."""
    rows = helper.make_graph(
        [
            helper.make_node("Add", ["state", "a"], ["sum"]),
            helper.make_node("Sub", ["sum", "b"], ["difference"]),
            helper.make_node("Identity", ["sum"], ["copy"]),
        ],
        "body",
        [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
            for name in ("state", "a", "b")
        ],
        [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])
            for name in ("sum", "difference", "copy")
        ],
    )
    inputs = {"s": random(2), "x": random(3, 2, seed=1), "y": random(2, 3, seed=2)}
    check(
        "Scan",
        inputs,
        3,
        body=rows,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_input_directions=[0, 1],
        scan_output_axes=[1, 0],
        scan_output_directions=[0, 1],
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_non_max_suppression(dynamic: bool) -> None:
    """No box, none that is good enough, an end before the limit, and at the limit."""
    numbers = np.random.default_rng(3)
    for batch, count, threshold, most in ((1, 20, 0.4, 9), (2, 7, 0.0, 2), (1, 5, 2.0, 5)):
        boxes = numbers.random((batch, count, 4), np.float32)
        boxes[..., 2:] += boxes[..., :2]
        inputs = {
            "boxes": boxes,
            "scores": numbers.random((batch, 2, count), np.float32),
            "most": np.array([most]),
            "overlap": np.array([0.3], np.float32),
            "least": np.array([threshold], np.float32),
        }
        check("NonMaxSuppression", inputs, opset=11, dynamic=dynamic)


def test_suppression_without_a_least_score() -> None:
    """Boxes of scores that are minus infinity are as good as others, each of them once."""
    numbers = np.random.default_rng(4)
    corners = numbers.integers(0, 12, (2, 15, 4)).astype(np.float32) / 4
    scores = numbers.integers(0, 4, (2, 3, 15)).astype(np.float32)
    scores[scores == 1] = -np.inf
    for overlap, most in ((0.0, 15), (0.25, 6), (1.0, 15)):
        inputs = {
            "boxes": corners,
            "scores": scores,
            "most": np.array([most]),
            "overlap": np.array([overlap], np.float32),
        }
        check("NonMaxSuppression", inputs, opset=11)


def test_mel_weights_from_a_frequency_above_zero() -> None:
    numbers = {"bins": 8, "length": 64, "rate": 8000}
    inputs = {name: np.array(number, np.int64) for name, number in numbers.items()}
    edges = {"low": np.array(300, np.float32), "high": np.array(3500, np.float32)}
    check("MelWeightMatrix", inputs | edges)
