"""Legalized layers give the numbers of the reference interpreter, odd shapes included."""

from __future__ import annotations

import numpy as np
import pytest

from lowerdeck.dialects.caffe.layers import layer_types
from lowerdeck.dialects.caffe.shapes import Shape, ShapeError
from lowerdeck.passes.legalize.caffe.registry import legalizes

from .layer_cases import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    Case,
    legalized,
    random,
    results,
)

X = (2, 3, 5, 4)
SPECIAL = np.array([[np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5]], np.float32)

ACTIVATIONS = [
    'type: "AbsVal"',
    'type: "BNLL"',
    'type: "Clip" clip_param { min: -0.5 max: 0.25 }',
    'type: "Clip" clip_param { min: 0.5 max: -0.25 }',
    'type: "Dropout" dropout_param { dropout_ratio: 0.9 }',
    'type: "ELU"',
    'type: "ELU" elu_param { alpha: 0.3 }',
    'type: "Exp"',
    'type: "Exp" exp_param { base: 2 scale: -0.5 shift: 1.5 }',
    'type: "Exp" exp_param { scale: 0.5 shift: -2 }',
    'type: "Power"',
    'type: "Power" power_param { power: 2 scale: 0.5 shift: -1 }',
    'type: "Power" power_param { power: 3 }',
    'type: "Power" power_param { power: 0 scale: 3 shift: -1 }',
    'type: "Power" power_param { power: 3 scale: 0 shift: -2 }',
    'type: "ReLU"',
    'type: "ReLU6"',
    'type: "ReLU" relu_param { negative_slope: 0.1 }',
    'type: "ReLU" relu_param { negative_slope: -2 }',
    'type: "Sigmoid"',
    'type: "Softmax"',
    'type: "Softmax" softmax_param { axis: -1 }',
    'type: "Softmax" softmax_param { axis: 2 }',
    'type: "Swish"',
    'type: "Swish" swish_param { beta: -1.5 }',
    'type: "TanH"',
    'type: "Threshold"',
    'type: "Threshold" threshold_param { threshold: 0.5 }',
]


@pytest.mark.parametrize("text", ACTIVATIONS)
def test_activation(text: str) -> None:
    for shape in (X, (3, 1, 2)):
        Case(text, shape).check(open_batch=True)


def test_special_numbers() -> None:
    for text in (
        'type: "AbsVal"',
        'type: "BNLL"',
        'type: "Power" power_param { power: 0 }',
        'type: "Power" power_param { scale: 0 shift: 4 power: 0.5 }',
        'type: "ReLU"',
        'type: "ReLU" relu_param { negative_slope: 0.5 }',
        'type: "ReLU" relu_param { negative_slope: inf }',
        'type: "CReLU"',
        'type: "Threshold" threshold_param { threshold: 0.5 }',
    ):
        Case(text, SPECIAL).check()


def test_clip_replaces_nan_by_its_minimum() -> None:
    case = Case('type: "Clip" clip_param { min: -0.5 max: 0.25 }', SPECIAL)
    (found,) = results(legalized(case.module(constant=True)), {"0": SPECIAL})
    assert found.tolist() == [[-0.5, 0.25, -0.5, 0, 0, 0.25, -0.5, 0.25]]


def test_log() -> None:
    positive = abs(random((2, 5), 3)) + 0.5
    Case('type: "Log"', positive).check()
    Case('type: "Log" log_param { base: 10 scale: 2 shift: 1 }', positive).check()
    Case('type: "Log" log_param { base: 0.5 shift: 1 }', positive).check()


def test_prelu() -> None:
    Case('type: "PReLU"', X).check(open_batch=True)
    Case('type: "PReLU"', (4, 3)).check(open_batch=True)
    Case('type: "PReLU" prelu_param { channel_shared: true }', X).check()


@pytest.mark.parametrize(
    "parameters",
    ["", "operation: PROD", "operation: MAX", "coeff: 1 coeff: -2 coeff: 0.5", "operation: SUM"],
)
def test_eltwise(parameters: str) -> None:
    Case(f'type: "Eltwise" eltwise_param {{ {parameters} }}', X, X, X).check(open_batch=True)


def test_eltwise_reads_nothing_of_coefficient_zero() -> None:
    endless, x = np.array([np.nan, np.inf], np.float32), np.array([1, 2], np.float32)
    for factors, expected in (("coeff: 0 coeff: 3", 3 * x), ("coeff: 0 coeff: 0", 0 * x)):
        case = Case(f'type: "Eltwise" eltwise_param {{ {factors} }}', endless, x)
        case.check()
        np.testing.assert_array_equal(case.expected()[0], expected)


# Linear layers


def test_maxima_of_special_numbers() -> None:
    first, second, third = (x.reshape(1, -1) for x in np.meshgrid(SPECIAL, SPECIAL, SPECIAL))
    text = 'type: "Eltwise" eltwise_param { operation: MAX }'
    Case(text, first, second).check()
    Case(text, first, second, third).check()
    x, y = np.array([[np.nan, 1]], np.float32), np.array([[1, np.nan]], np.float32)
    np.testing.assert_array_equal(Case(text, x, y).expected()[0], y)


CONVOLUTIONS = [
    ("num_output: 4 kernel_size: 3", X),
    ("num_output: 4 kernel_size: 3 bias_term: false pad: 2 stride: 2 dilation: 2", (1, 2, 9, 8)),
    ("num_output: 6 kernel_h: 1 kernel_w: 3 pad_w: 2 stride_h: 2 stride_w: 1 group: 3", X),
    (
        "num_output: 3 kernel_size: 2 kernel_size: 3 kernel_size: 1 pad: 1 pad: 0 pad: 2",
        (1, 2, 3, 4, 5),
    ),
    ("num_output: 4 kernel_size: 3 stride: 2", (2, 3, 7)),
    ("num_output: 3 kernel_size: 2 axis: 2", (2, 3, 2, 5)),
    ("num_output: 4 kernel_size: 2 axis: -3 group: 2", (3, 4, 5, 6)),
    ("num_output: 4 kernel_size: 2 axis: 0", (3, 4)),
    ("num_output: 4 kernel_size: 6 stride: 3 pad: 1 pad: 0", X),
    ("num_output: 4 kernel_h: 4 kernel_w: 2 dilation: 2 stride: 3", X),
]


@pytest.mark.parametrize("layer", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize(("parameters", "shape"), CONVOLUTIONS)
def test_convolution(layer: str, parameters: str, shape: Shape) -> None:
    if layer == "Deconvolution":
        parameters = parameters.replace("num_output: 4", "num_output: 2")
    text = f'type: "{layer}" convolution_param {{ {parameters} }}'
    Case(text, shape).check(open_batch=" axis: 0" not in parameters)


def test_convolution_without_spatial_dimensions() -> None:
    text = 'type: "Convolution" convolution_param { num_output: 4 kernel_size: 1 axis: -1 }'
    Case(text, (2, 5, 3)).check(open_batch=True)


@pytest.mark.parametrize("layer", ["Convolution", "Deconvolution"])
def test_convolution_of_two_bottoms(layer: str) -> None:
    text = f'type: "{layer}" convolution_param {{ num_output: 6 kernel_size: 2 group: 3 }}'
    Case(text, X, X, tops=2).check()


@pytest.mark.parametrize(
    ("parameters", "shape"),
    [
        ("kernel_size: 2", X),
        ("kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride: 2 dilation: 1 dilation: 2", X),
        ("kernel_size: 3 pad: 2 dilation: 2", (2, 1, 6)),
        ("kernel_size: 2 axis: 2", (2, 3, 4, 5)),
        ("kernel_h: 6 kernel_w: 2 stride: 2", X),
    ],
)
def test_im2col(parameters: str, shape: Shape) -> None:
    Case(f'type: "Im2col" convolution_param {{ {parameters} }}', shape).check(open_batch=True)


def test_a_window_that_is_larger_than_the_bottom() -> None:
    """By less than a stride: it sees zeros there, as in Caffe; else Caffe has no window."""
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2)
    case = Case('type: "Im2col" convolution_param { kernel_size: 3 stride: 2 }', x)
    np.testing.assert_array_equal(case.expected()[0].ravel(), [1, 2, 0, 3, 4, 0, 0, 0, 0])
    for layer in ("Convolution", "Im2col"):
        for kernel, stride in ((3, 1), (4, 2)):
            parameters = f"num_output: 1 kernel_size: {kernel} stride: {stride}"
            with pytest.raises(ShapeError, match=f"a window of {kernel} is larger than 2 and the"):
                Case(f'type: "{layer}" convolution_param {{ {parameters} }}', x)


@pytest.mark.parametrize(
    ("parameters", "shape"),
    [
        ("num_output: 7", X),
        ("num_output: 7 bias_term: false", (3, 5)),
        ("num_output: 7 axis: 2", X),
        ("num_output: 1 axis: -1 transpose: true", X),
        ("num_output: 6 transpose: true", X),
        ("num_output: 2 axis: 0", (3, 5)),
    ],
)
def test_inner_product(parameters: str, shape: Shape) -> None:
    text = f'type: "InnerProduct" inner_product_param {{ {parameters} }}'
    Case(text, shape).check(open_batch="axis: 0" not in parameters)


def test_embed() -> None:
    index = np.array([[0, 4, 2], [4, 1, 3]], np.float32)
    Case('type: "Embed" embed_param { num_output: 3 input_dim: 5 }', index).check(open_batch=True)
    text = 'type: "Embed" embed_param { num_output: 2 input_dim: 5 bias_term: false }'
    Case(text, index[0]).check()


# Normalization


def statistics(channels: int, factor: float) -> list[Array]:
    """Mean, variance and factor as BatchNorm keeps them."""
    variance = abs(random((channels,), 21)) + 0.1
    return [random((channels,), 20), variance, np.array([factor], np.float32)]


@pytest.mark.parametrize("factor", [1, 999.5, 0, 0.25])
@pytest.mark.parametrize("shape", [X, (4, 3), (6,), (2, 3, 4)])
def test_batch_norm(factor: float, shape: Shape) -> None:
    blobs = statistics(1 if len(shape) == 1 else shape[1], factor)
    text = 'type: "BatchNorm" batch_norm_param { eps: 0.01 }'
    Case(text, shape, blobs=blobs).check(open_batch=True)


@pytest.mark.parametrize("shape", [X, (4, 3), (6,)])
def test_batch_norm_by_own_statistics(shape: Shape) -> None:
    Case('type: "BatchNorm" batch_norm_param { use_global_stats: false }', shape).check()


@pytest.mark.parametrize(
    ("parameters", "shapes"),
    [
        ("", [X]),
        ("bias_term: true", [X]),
        ("axis: 0 num_axes: -1 bias_term: true", [(2, 3)]),
        ("axis: 1 num_axes: 2 bias_term: true", [X]),
        ("axis: -1", [X]),
        ("num_axes: 0 bias_term: true", [X]),
        ("axis: 2", [X, (5, 4)]),
        ("axis: 0 bias_term: true", [X, (2, 3)]),
        ("bias_term: true", [X, ()]),
    ],
)
def test_scale_and_bias(parameters: str, shapes: list[Shape]) -> None:
    Case(f'type: "Scale" scale_param {{ {parameters} }}', *shapes).check()
    parameters = parameters.replace("bias_term: true", "")
    Case(f'type: "Bias" bias_param {{ {parameters} }}', *shapes).check()


@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "local_size: 3 alpha: 0.5 beta: 0.6 k: 2",
        "local_size: 1",
        "local_size: 9 alpha: 2",
        "norm_region: WITHIN_CHANNEL local_size: 3 alpha: 0.5 k: 7",
        "norm_region: WITHIN_CHANNEL local_size: 7 beta: 2",
    ],
)
def test_lrn(parameters: str) -> None:
    Case(f'type: "LRN" lrn_param {{ {parameters} }}', X).check()


@pytest.mark.parametrize("parameters", ["", "across_channels: true", "normalize_variance: false"])
@pytest.mark.parametrize("shape", [X, (2, 3, 4), (2, 6), (4,)])
def test_mvn(parameters: str, shape: Shape) -> None:
    case = Case(f'type: "MVN" mvn_param {{ eps: 0.1 {parameters} }}', shape)
    case.check()
    assert case.expected()[0].shape == (*shape, 1, 1, 1)[:4]


@pytest.mark.parametrize("across", ["true", "false"])
@pytest.mark.parametrize("shared", ["true", "false"])
@pytest.mark.parametrize("shape", [X, (2, 3, 4), (2, 6)])
def test_normalize(across: str, shared: str, shape: Shape) -> None:
    text = f"across_spatial: {across} channel_shared: {shared} eps: 0.01"
    Case(f'type: "Normalize" norm_param {{ {text} }}', shape).check(open_batch=True)


# Pools


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
@pytest.mark.parametrize(
    "parameters",
    [
        "kernel_size: 2 stride: 2",
        "kernel_size: 3 stride: 2",
        "kernel_size: 3 stride: 2 pad: 1",
        "kernel_size: 3 stride: 3 pad: 2",
        "kernel_size: 2 stride: 3 pad: 1",
        "kernel_size: 2 stride: 5 pad: 1",
        "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 3 pad_h: 2 pad_w: 0",
        "kernel_size: 3 stride: 2 round_mode: FLOOR",
        "kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR",
        "kernel_size: 5 stride: 4 pad: 2",
        "kernel_size: 1 stride: 2",
        "kernel_size: 1 stride: 3",
        "kernel_size: 2 stride: 4",
        "global_pooling: true",
    ],
)
def test_pool(pool: str, parameters: str) -> None:
    text = f'type: "Pooling" pooling_param {{ pool: {pool} {parameters} }}'
    for height, width in ((4, 4), (5, 7), (6, 4)):
        x = random((2, 3, height, width), height)
        Case(text, x, tops=1).check(open_batch=True)
        if pool == "MAX" and height < 6:
            Case(text, np.round(x), tops=2).check(open_batch=True)


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("stride", [1, 3, 5])
def test_pool_of_nothing_above_the_lowest_number(stride: int, pad: int) -> None:
    lowest = np.finfo(np.float32).min
    x = np.array([np.nan, -np.inf, lowest, -1], np.float32)[
        np.random.default_rng(0).integers(0, 4, (1, 3, 9, 8))
    ]
    x[0, 0], x[0, 1, :, :4] = -np.inf, np.nan
    text = f'type: "Pooling" pooling_param {{ kernel_size: 2 stride: {stride} pad: {pad} }}'
    for tops in (1, 2):
        Case(text, x, tops=tops).check()


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 2, 7, 6), (2, 1, 8, 11)])
def test_spp(pool: str, shape: Shape) -> None:
    for height in (1, 2, 3):
        Case(f'type: "SPP" spp_param {{ pool: {pool} pyramid_height: {height} }}', shape).check()


# Recurrence

CONT = np.array([[0, 1, 0], [1, 1, 0.5], [1, 0, 1], [1, 1, 1]], np.float32)


@pytest.mark.parametrize("layer", ["LSTM", "RNN"])
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("static", [(), (3, 2, 2)])
@pytest.mark.parametrize("exposed", [False, True])
def test_recurrence(layer: str, steps: int, static: Shape, exposed: bool) -> None:
    states = (2 if layer == "LSTM" else 1) * exposed
    hidden = f"expose_hidden: {str(exposed).lower()}"
    bottoms = [(steps, 3, 2, 3), CONT[:steps], *[static] * bool(static), *[(1, 3, 5)] * states]
    text = f'type: "{layer}" recurrent_param {{ num_output: 5 {hidden} }}'
    Case(text, *bottoms, tops=1 + states).check()


def test_recurrence_that_ignores_an_endless_cell() -> None:
    endless = np.full((1, 3, 5), np.inf, np.float32)
    text = 'type: "LSTM" recurrent_param { num_output: 5 expose_hidden: true }'
    state = np.zeros((1, 3, 5), np.float32)
    still = np.zeros((2, 3), np.float32)
    Case(text, (2, 3, 4), still, state, endless, tops=3).check()


def test_lstm_unit() -> None:
    gates, cont = random((1, 3, 20), 1), np.array([[0, 1, 0.5]], np.float32)
    Case('type: "LSTMUnit"', (1, 3, 5), gates, cont, tops=2).check()


# Movement


@pytest.mark.parametrize(
    ("text", "shapes", "tops"),
    [
        ('type: "Split"', [X], 3),
        ('type: "Concat"', [X, (2, 1, 5, 4)], 1),
        ('type: "Concat" concat_param { axis: -1 }', [X, X, X], 1),
        ('type: "Concat" concat_param { concat_dim: 0 }', [X, (1, 3, 5, 4)], 1),
        ('type: "Concat" concat_param { axis: 2 }', [X], 1),
        ('type: "Slice"', [X], 3),
        ('type: "Slice" slice_param { axis: 2 slice_point: 1 slice_point: 4 }', [X], 3),
        ('type: "Slice" slice_param { slice_dim: 0 }', [X], 2),
        ('type: "Slice" slice_param { axis: -2 }', [X], 1),
        ('type: "Crop"', [X, (7, 7, 2, 3)], 1),
        ('type: "Crop" crop_param { axis: 1 offset: 1 offset: 3 offset: 0 }', [X, (1, 2, 2, 3)], 1),
        ('type: "Crop" crop_param { axis: -1 offset: 2 }', [X, (9, 9, 9, 2)], 1),
        ('type: "Flatten"', [X], 1),
        ('type: "Flatten" flatten_param { axis: 0 end_axis: -2 }', [X], 1),
        ('type: "Flatten" flatten_param { axis: 2 end_axis: 1 }', [X], 1),
        ('type: "Flatten" flatten_param { axis: -1 end_axis: 2 }', [X], 1),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } }', [X], 1),
        ('type: "Reshape" reshape_param { shape { dim: 5 dim: 3 } axis: 1 num_axes: 2 }', [X], 1),
        ('type: "Reshape" reshape_param { shape { dim: 1 dim: 1 } axis: -1 num_axes: 0 }', [X], 1),
        ('type: "Reshape" reshape_param { shape { } axis: 2 num_axes: 1 }', [(2, 3, 1, 2)], 1),
        ('type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }', [X], 1),
        ('type: "Permute" permute_param { order: 3 }', [X], 1),
        ('type: "Tile" tile_param { tiles: 3 }', [X], 1),
        ('type: "Tile" tile_param { axis: -1 tiles: 2 }', [X], 1),
    ],
)
def test_movement(text: str, shapes: list[Shape], tops: int) -> None:
    Case(text, *shapes, tops=tops).check()


def test_batch_reindex() -> None:
    Case('type: "BatchReindex"', (3, 2, 2), np.array([2, 0, 0, 1], np.float32)).check()


# Reductions


@pytest.mark.parametrize("operation", ["SUM", "ASUM", "SUMSQ", "MEAN"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("coeff", [1, -0.5])
def test_reduction(operation: str, axis: int, coeff: float) -> None:
    text = f"operation: {operation} axis: {axis} coeff: {coeff}"
    Case(f'type: "Reduction" reduction_param {{ {text} }}', X).check(open_batch=True)


@pytest.mark.parametrize("parameters", ["", "out_max_val: true"])
@pytest.mark.parametrize("top_k", [1, 3])
@pytest.mark.parametrize("axis", [None, 1, -1, 0])
def test_argmax(parameters: str, top_k: int, axis: int | None) -> None:
    text = f"{parameters} top_k: {top_k}" + ("" if axis is None else f" axis: {axis}")
    for shape in ((3, 4, 5, 3), (4, 6)):
        # Few different numbers: of equal ones the last counts.
        x = np.round(random(shape, 2))
        Case(f'type: "ArgMax" argmax_param {{ {text} }}', x).check(open_batch=axis != 0)


def test_argmax_of_five_dimensions() -> None:
    Case('type: "ArgMax" argmax_param { top_k: 2 out_max_val: true }', (2, 3, 1, 2, 2)).check()


# Sources


@pytest.mark.parametrize(
    ("parameters", "tops"),
    [
        ("shape { dim: 2 dim: 3 }", 1),
        ('shape { dim: 2 dim: 3 } data_filler { type: "constant" value: 1.5 }', 2),
        ("num: 1 num: 2 channels: 3 height: 4 width: 5", 2),
        (
            "shape { dim: 300 } shape { } data_filler { value: 2 } data_filler { value: 3 }",
            2,
        ),
    ],
)
def test_dummy_data(parameters: str, tops: int) -> None:
    Case(f'type: "DummyData" dummy_data_param {{ {parameters} }}', tops=tops).check()


def test_parameter() -> None:
    Case('type: "Parameter" parameter_param { shape { dim: 2 dim: 3 } }').check()


@pytest.mark.parametrize(
    "parameters",
    [
        "min_size: 3",
        "min_size: 3 max_size: 5 aspect_ratio: 2 aspect_ratio: 3 variance: 0.1 clip: true",
        "min_size: 3 min_size: 4 max_size: 5 max_size: 9 flip: false aspect_ratio: 2"
        " variance: 0.1 variance: 0.2 variance: 0.3 variance: 0.4 step: 2 offset: 0.25",
        "min_size: 3 img_h: 50 img_w: 20 step_h: 4 step_w: 3 aspect_ratio: 1 aspect_ratio: 2",
    ],
)
def test_prior_box(parameters: str) -> None:
    text = f'type: "PriorBox" prior_box_param {{ {parameters} }}'
    Case(text, (1, 2, 3, 4), (1, 3, 30, 40)).check()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ("min_size: 3 max_size: 3", "the maximal size 3 is no more than the minimal 3"),
        ("min_size: 3 min_size: 5 max_size: 4 max_size: 4.5", "the maximal size 4.5 is no more"),
        ("min_size: 0", "found a minimal size of 0"),
        ("min_size: 3 min_size: 4 max_size: 5", "found 2 minimal and 1 maximal sizes"),
    ],
)
def test_prior_boxes_of_no_size(parameters: str, problem: str) -> None:
    text = f'type: "PriorBox" prior_box_param {{ {parameters} }}'
    with pytest.raises(ShapeError, match=problem):
        Case(text, (1, 2, 3, 4), (1, 3, 30, 40))


# The table


def test_every_layer_type_is_handled() -> None:
    assert [name for name in layer_types() if legalizes.get(name) is None] == []
