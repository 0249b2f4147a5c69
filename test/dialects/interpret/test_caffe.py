"""What the layers of Caffe compute: its answers where they are recorded, else by other means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from google.protobuf import text_format
from numpy.typing import NDArray
from onnx import helper
from xdsl.ir import Block

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter
from lowerdeck.dialects.caffe.layers import layer_types
from lowerdeck.dialects.caffe.ops import op_class
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.core.types import tensor as tensor_type
from lowerdeck.dialects.interpret import caffe, run_module
from lowerdeck.dialects.interpret.caffe_call import RULES
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.frontends import load_model
from models.corpus import Case

Array = NDArray[Any]


def test_the_answers_of_caffe(caffe_case: Case) -> None:
    module = load_model(caffe_case.model)
    for inputs, expected in caffe_case.samples():
        assert caffe_case.difference(run_module(module, inputs), expected) == ""


def run(text: str, *bottoms: Any, blobs: Sequence[Any] = (), tops: int = 1) -> list[Array]:
    """The tops of a layer that is given as text."""
    layer = text_format.Parse(text, LayerParameter())
    arrays = [np.asarray(each, np.float32) for each in (*bottoms, *blobs)]
    block = Block(arg_types=[tensor_type(f32, array.shape) for array in arrays])
    count = len(bottoms)
    cls = op_class(layer.type)
    assert cls is not None
    op = cls(layer, block.args[:count], block.args[count:], tops)
    op.verify()
    return caffe.run_op(op, arrays)


def one(text: str, *bottoms: Any, blobs: Sequence[Any] = ()) -> Array:
    """The only top of a layer."""
    return run(text, *bottoms, blobs=blobs)[0]


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(found: Array, expected: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-5, atol=1e-6)


def test_every_layer_type_has_a_meaning() -> None:
    assert set(layer_types()) == set(RULES)


# Selections


def test_of_equal_maxima_the_last_comes_first() -> None:
    layer = 'type: "ArgMax" argmax_param { top_k: 3 out_max_val: true }'
    found = one(layer, [[1, 5, 5, 2]])
    np.testing.assert_array_equal(found, [[[2, 1, 3], [5, 5, 2]]])


def test_arg_max_keeps_trailing_dimensions() -> None:
    assert one('type: "ArgMax"', random(2, 3, 4, 5)).shape == (2, 1, 1, 1)


def test_maxima_of_nothing_and_of_nan() -> None:
    """The search starts from the lowest float, which nothing that is not above it replaces."""
    layer = 'type: "Pooling" pooling_param { kernel_size: 1 stride: 3 }'
    image = np.full((1, 1, 5, 2), np.nan, np.float32)
    image[0, 0, 3, 0] = 4
    found, mask = run(layer, image, tops=2)
    lowest = np.finfo(np.float32).min
    np.testing.assert_array_equal(found[0, 0], [[lowest, lowest], [4, lowest], [lowest, lowest]])
    np.testing.assert_array_equal(mask[0, 0], [[-1, -1], [6, -1], [-1, -1]])


def test_a_window_may_be_larger_than_the_image() -> None:
    layer = 'type: "Pooling" pooling_param { kernel_size: 3 stride: 2 pool: AVE }'
    close(one(layer, np.ones((1, 1, 2, 2))), [[[[1.0]]]])


def test_rows_are_chosen_by_index() -> None:
    found = one('type: "BatchReindex"', [[1, 2], [3, 4]], [1, 1, 0])
    np.testing.assert_array_equal(found, [[3, 4], [3, 4], [1, 2]])


@pytest.mark.parametrize(
    ("layer", "bottoms", "blobs"),
    [
        (
            'type: "Embed" embed_param { num_output: 1 input_dim: 2 bias_term: false }',
            [[2]],
            [[[1], [2]]],
        ),
        ('type: "BatchReindex"', [[[1]], [1]], []),
        ('type: "HingeLoss"', [[[1, 2]], [2]], []),
    ],
)
def test_indices_out_of_range(layer: str, bottoms: list[Any], blobs: list[Any]) -> None:
    with pytest.raises(InterpretError, match="is not from 0 to"):
        run(layer, *bottoms, blobs=blobs)


def onnx_operator(
    op_type: str, inputs: Sequence[Array | None], outputs: int, **attributes: Any
) -> list[Array]:
    """What onnxruntime computes for one operator."""
    arrays = {f"x{k}": a.astype(np.float32) for k, a in enumerate(inputs) if a is not None}
    names = ["" if array is None else f"x{k}" for k, array in enumerate(inputs)]
    results = [f"y{k}" for k in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)],
        "one",
        [helper.make_tensor_value_info(name, 1, array.shape) for name, array in arrays.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, arrays)


# Arithmetic


def test_power_does_not_read_what_cannot_count() -> None:
    x = [np.nan, np.inf, 2]
    close(one('type: "Power" power_param { power: 0 }', x), [1, 1, 1])
    close(one('type: "Power" power_param { scale: 0 shift: 3 power: 2 }', x), [9, 9, 9])
    close(one('type: "Power" power_param { scale: 2 shift: 1 power: 3 }', [1, -1]), [27, -1])


def test_statistics_of_the_batch_if_asked_for() -> None:
    x = random(4, 3, 5)
    layer = 'type: "BatchNorm" batch_norm_param { use_global_stats: false eps: 0.1 }'
    found = one(layer, x, blobs=[random(3), random(3), [2]])
    mean, variance = (f(x, (0, 2), keepdims=True) for f in (np.mean, np.var))
    close(found, (x - mean) / np.sqrt(variance + 0.1))


def test_reductions_end_at_the_last_axis() -> None:
    x = random(2, 3, 4)
    for operation, expected in (("ASUM", np.abs(x)), ("SUMSQ", x * x), ("SUM", x)):
        layer = f'type: "Reduction" reduction_param {{ operation: {operation} axis: 1 coeff: 2 }}'
        close(one(layer, x), 2 * expected.sum((1, 2)))


def test_data_of_constants() -> None:
    layer = """type: "DummyData" dummy_data_param { num: 1 num: 2 channels: 1 height: 2 width: 1
        data_filler { value: 3 } }"""
    first, second = run(layer, tops=2)
    np.testing.assert_array_equal(first, np.full((1, 1, 2, 1), 3))
    np.testing.assert_array_equal(second, np.full((2, 1, 2, 1), 3))


def test_deconvolution_with_dilation_and_groups() -> None:
    x, w = random(2, 4, 5, 6), random(4, 3, 2, 3, seed=1)
    layer = """type: "Deconvolution" convolution_param { num_output: 6 group: 2 bias_term: false
        kernel_h: 2 kernel_w: 3 stride_h: 3 stride_w: 1 pad_h: 1 pad_w: 0 dilation: 2 }"""
    window = {"strides": [3, 1], "pads": [1, 0, 1, 0], "dilations": [2, 2]}
    (expected,) = onnx_operator("ConvTranspose", [x, w], 1, group=2, **window)
    close(one(layer, x, blobs=[w]), expected)


# Recurrence


def lstm(x: Array, w: Array, b: Array, r: Array, h: Array, c: Array) -> Sequence[Array]:
    """ONNX's LSTM, with gates i, o, f, g, for Caffe's weights, with i, f, o, g."""
    i, f, o, g = np.split(np.arange(len(b)), 4)
    order = np.concatenate([i, o, f, g])
    bias = np.concatenate([b[order], np.zeros_like(b)])[None]
    inputs = [x, w[order][None], r[order][None], bias, None, h, c]
    y, hn, cn = onnx_operator("LSTM", inputs, 3, hidden_size=r.shape[1])
    return y[:, 0], hn, cn


def test_lstm_with_states() -> None:
    x, h, c = random(4, 2, 3), random(1, 2, 5, seed=1), random(1, 2, 5, seed=2)
    w, b, r = random(20, 3, seed=3), random(20, seed=4), random(20, 5, seed=5)
    layer = 'type: "LSTM" recurrent_param { num_output: 5 expose_hidden: true }'
    found = run(layer, x, np.ones((4, 2)), h, c, blobs=[w, b, r], tops=3)
    for got, expected in zip(found, lstm(x, w, b, r, h, c), strict=True):
        close(got, expected)


def test_lstm_with_a_static_input() -> None:
    x, still = random(4, 2, 3), random(2, 6, seed=1)
    w, b, s, r = (random(20, n, seed=n) for n in (3, 1, 6, 5))
    zero = np.zeros((1, 2, 5), np.float32)
    layer = 'type: "LSTM" recurrent_param { num_output: 5 }'
    found = one(layer, x, np.ones((4, 2)), still, blobs=[w, b[:, 0], s, r])
    both = np.concatenate([x, np.broadcast_to(still, (4, 2, 6))], 2)
    close(found, lstm(both, np.concatenate([w, s], 1), b[:, 0], r, zero, zero)[0])


def test_an_old_cell_is_not_read_without_continuation() -> None:
    """Not even if it is infinite; 0 * inf would be NaN."""
    found = run('type: "LSTMUnit"', [[[np.inf]]], [[[1, 2, 3, 4]]], [[0]], tops=2)
    assert all(np.isfinite(each).all() for each in found)


def test_rnn_with_states() -> None:
    x, h = random(3, 2, 4), random(1, 2, 5, seed=1)
    w, b, r, o, p = (random(5, n, seed=n) for n in (4, 1, 5, 6, 2))
    o = o[:, :5]
    layer = 'type: "RNN" recurrent_param { num_output: 5 expose_hidden: true }'
    blobs = [w, b[:, 0], r, o, p[:, 0]]
    y, last = run(layer, x, [[1, 1], [1, 0], [1, 1]], h, blobs=blobs, tops=2)
    state = h[0]
    for step, going in enumerate([[1, 1], [1, 0], [1, 1]]):
        state = np.tanh(x[step] @ w.T + b[:, 0] + (np.array(going)[:, None] * state) @ r.T)
        close(y[step], np.tanh(state @ o.T + p[:, 0]))
    close(last[0], state)


# Losses


def softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


SCORES, LABELS = random(3, 4, 5), np.array([[0, 1, 2, 3, 0], [3, 3, 1, 0, 2], [1, 1, 1, 2, 0]])


@pytest.mark.parametrize(
    ("settings", "divisor"),
    [
        ("", 12.0),
        ("normalization: FULL", 15.0),
        ("normalization: BATCH_SIZE", 3.0),
        ("normalization: NONE", 1.0),
        ("normalize: false", 3.0),
    ],
)
def test_softmax_with_loss(settings: str, divisor: float) -> None:
    layer = f'type: "SoftmaxWithLoss" loss_param {{ ignore_label: 2 {settings} }}'
    loss, powers = run(layer, SCORES, LABELS, tops=2)
    expected = softmax(SCORES)
    chosen = np.take_along_axis(expected, LABELS[:, None], 1)[:, 0]
    counted = LABELS != 2
    assert int(counted.sum()) == 12
    close(loss, -np.log(chosen[counted]).sum() / divisor)
    close(powers, expected)


def test_other_losses() -> None:
    x, t = random(3, 4), random(3, 4, seed=1)
    close(one('type: "EuclideanLoss"', x, t), ((x - t) ** 2).sum() / 6)
    binary = (t > 0).astype(np.float32)
    chances = 1 / (1 + np.exp(-x))
    expected = -(binary * np.log(chances) + (1 - binary) * np.log(1 - chances)).sum()
    close(one('type: "SigmoidCrossEntropyLoss"', x, binary), expected / 3)
    powers, labels = softmax(x), np.array([1, 3, 0])
    expected = -np.log(powers[np.arange(3), labels]).mean()
    close(one('type: "MultinomialLogisticLoss"', powers, labels), expected)
    matrix = np.eye(4)[None, None]
    close(one('type: "InfogainLoss"', x, labels, matrix), expected)
    signs = np.where(np.arange(4) == labels[:, None], -1, 1)
    margins = np.maximum(0, 1 + signs * x)
    close(one('type: "HingeLoss"', x, labels), margins.sum() / 3)
    layer = 'type: "HingeLoss" hinge_loss_param { norm: L2 }'
    close(one(layer, x, labels), (margins**2).sum() / 3)


@pytest.mark.parametrize("legacy", [False, True])
def test_contrastive_loss(legacy: bool) -> None:
    """Distances 1 (alike), 0.6 and 5 (both different) with the margin 2."""
    layer = f"""type: "ContrastiveLoss"
        contrastive_loss_param {{ margin: 2 legacy_version: {str(legacy).lower()} }}"""
    first, second = [[0, 0], [0, 0], [0, 0]], [[1, 0], [0, 0.6], [3, 4]]
    apart = 2 - 0.6**2 if legacy else (2 - 0.6) ** 2
    close(one(layer, first, second, [[1], [0], [0]]), (1 + apart) / 6)


def test_accuracy() -> None:
    scores = [[3, 2, 1], [1, 3, 2], [1, 2, 3], [1, 1, 0]]
    labels = [0, 2, 0, 1]
    layer = 'type: "Accuracy" accuracy_param { %s }'
    found, classes = run(layer % "", scores, labels, tops=2)
    # An equal score counts as better, so that the last row is wrong.
    close(found, 0.25)
    close(classes, [0.5, 0, 0])
    close(one(layer % "top_k: 2", scores, labels), 0.75)
    close(one(layer % "ignore_label: 0", scores, labels), 0.0)


# Boxes


def test_prior_boxes() -> None:
    layer = """type: "PriorBox" prior_box_param { min_size: 4 max_size: 9 aspect_ratio: 4
        aspect_ratio: 1 variance: [0.1, 0.1, 0.2, 0.2] }"""
    found = one(layer, np.zeros((1, 1, 1, 2)), np.zeros((1, 3, 10, 20)))
    assert found.shape == (1, 2, 2 * 4 * 4)
    boxes, variances = found[0].reshape(2, 2, 4, 4)
    sizes = [(4, 4), (6, 6), (8, 2), (2, 8)]
    for cell, center in enumerate((5, 15)):
        for box, (w, h) in zip(boxes[cell], sizes, strict=True):
            corners = [(center - w / 2) / 20, (5 - h / 2) / 10, (center + w / 2) / 20]
            close(box, [*corners, (5 + h / 2) / 10])
    close(variances[1, 3], [0.1, 0.1, 0.2, 0.2])
