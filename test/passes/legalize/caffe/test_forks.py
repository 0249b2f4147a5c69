"""Layers of Caffe's forks give the numbers of the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from lowerdeck.dialects.caffe.fork_shapes import proposals_of
from lowerdeck.dialects.caffe.shapes import Shape, ShapeError

from .layer_cases import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    Case,
    parse,
    random,
)

X = (2, 6, 5, 4)
SPECIAL = np.array([[np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, -3.5]], np.float32)

NEURONS = [
    'type: "CReLU"',
    'type: "CReLU" crelu_param { negative_slope: 0.25 concat_axis: -1 }',
    'type: "HardSwish"',
    'type: "HSigmoid"',
    'type: "HSwish"',
    'type: "Mish"',
    'type: "SiLU"',
]


@pytest.mark.parametrize("text", NEURONS)
def test_neuron(text: str) -> None:
    for shape in (X, (3, 2, 2)):
        Case(text, shape).check(open_batch=True)


def test_axpy() -> None:
    Case('type: "Axpy"', (2, 6, 1, 1), X, X).check(open_batch=True)
    Case('type: "Axpy"', (2, 6), X, X).check()


def test_continuation_indicator() -> None:
    given = "continuation_indicator_param {{ time_step: {} batch_size: {} }}"
    text = f'type: "ContinuationIndicator" {given}'
    Case(text.format(5, 2)).check()
    Case(text.format(1, 3)).check()
    with pytest.raises(ShapeError, match="a time_step of 0 and a batch_size of 3"):
        Case(text.format(0, 3))


@pytest.mark.parametrize("text", ['type: "ConvolutionDepthwise"', 'type: "DepthwiseConvolution"'])
def test_depthwise_convolution(text: str) -> None:
    group = "group: 6" if text.endswith('"DepthwiseConvolution"') else ""
    p = f"convolution_param {{ num_output: 6 kernel_size: 3 stride: 2 pad: 1 {group} }}"
    case = Case(f"{text} {p}", X)
    assert case.blobs[0].shape == (6, 1, 3, 3)
    case.check()


def test_dilation_under_its_first_name() -> None:
    for hole in ("hole: 2", "hole_h: 1 hole_w: 2"):
        text = f'type: "Convolution" convolution_param {{ num_output: 2 kernel_size: 2 {hole} }}'
        new = text.replace("hole_h: 1 hole_w: 2", "dilation: 1 dilation: 2")
        Case(text, X).check()
        assert Case(text, X).same_as(Case(new.replace("hole", "dilation"), X))


def test_pool_that_rounds_down_under_another_name() -> None:
    text = 'type: "Pooling" pooling_param { kernel_size: 2 stride: 2 ceil_mode: false }'
    Case(text, X).check()
    assert Case(text, X).same_as(Case(text.replace("ceil_mode: false", "round_mode: FLOOR"), X))


def stored(*, factor: float) -> list[Array]:
    variance = abs(random((6,), 21)) + 0.1
    given = [random((6,), 20), variance, np.array([factor], np.float32)]
    return [*given, random((6,), 22), random((6,), 23)]


@pytest.mark.parametrize("parameters", ["scale_bias: true", "scale_filler {}", "bias_filler {}"])
def test_batch_norm_with_a_scale_of_its_own(parameters: str) -> None:
    """The factor of other files does not count."""
    text = f'type: "BatchNorm" batch_norm_param {{ {parameters} eps: 0.1 }}'
    case = Case(text, X, blobs=stored(factor=3))
    case.check(open_batch=True)
    mean, variance, _, scale, bias = (blob.reshape(-1, 1, 1) for blob in case.blobs)
    expected = (case.bottoms[0] - mean) / np.sqrt(variance + 0.1) * scale + bias
    np.testing.assert_allclose(case.expected()[0], expected, rtol=1e-5, atol=1e-5)
    own = f'type: "BatchNorm" batch_norm_param {{ {parameters} use_global_stats: false }}'
    Case(own, X, blobs=stored(factor=3)).check()


def test_batch_norm_of_segnet() -> None:
    case = Case('type: "BN" bn_param { bn_mode: INFERENCE }', X)
    scale, shift = (blob.reshape(1, 6, 1, 1) for blob in case.blobs)
    case.check(open_batch=True)
    np.testing.assert_allclose(
        case.expected()[0], case.bottoms[0] * scale + shift, rtol=1e-5, atol=1e-6
    )
    Case('type: "BN" bn_param { scale_filler {} }', X).check()
    Case('type: "BN" bn_param { bn_mode: INFERENCE }', (4, 6)).check()


def test_batch_norm_with_four_blobs() -> None:
    variance = abs(random((1, 6, 1, 1), 5)) + 0.1
    blobs = [*(random((1, 6, 1, 1), k) for k in range(3)), variance]
    case = Case('type: "BN" bn_param { slope_filler {} frozen: true eps: 0.01 }', X, blobs=blobs)
    case.check(open_batch=True)
    slope, bias, mean, _ = blobs
    expected = (case.bottoms[0] - mean) / np.sqrt(variance + 0.01) * slope + bias
    np.testing.assert_allclose(case.expected()[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('type: "Reorg" reorg_param { stride: 2 }', (2, 4, 4, 6)),
        ('type: "Reverse"', X),
        ('type: "Reverse" reverse_param { axis: -2 }', X),
        ('type: "ShuffleChannel"', X),
        ('type: "ShuffleChannel" shuffle_channel_param { group: 3 }', X),
        ('type: "ShuffleChannel" shuffle_channel_param { group: 2 }', (2, 6)),
        ('type: "Upsample"', X),
        ('type: "Upsample" upsample_param { scale_h: 1 scale_w: 3 }', X),
    ],
)
def test_movement(text: str, shape: Shape) -> None:
    Case(text, shape).check()


def test_shuffled_channels() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    case = Case('type: "ShuffleChannel" shuffle_channel_param { group: 2 }', x)
    assert case.expected()[0].tolist() == [[0, 3, 1, 4, 2, 5]]


def test_filter() -> None:
    chosen = np.array([[0], [1], [np.nan], [-0.0], [2]], np.float32)
    Case('type: "Filter"', (5, 3), (5, 2, 2), chosen, tops=2).check()
    Case('type: "Filter"', (5, 3), np.zeros((5, 1), np.float32)).check()


@pytest.mark.parametrize(
    "parameters",
    [
        "height: 9 width: 3",
        "zoom_factor: 3",
        "shrink_factor: 2",
        "zoom_factor: 2 shrink_factor: 3",
        "zoom_factor: 2 pad_beg: -1 pad_end: -2",
        "height: 5 width: 4",
        "height: 1 width: 1",
        "height: 7 width: 6 zoom_factor: 2 shrink_factor: 2",
    ],
)
def test_interp(parameters: str) -> None:
    Case(f'type: "Interp" interp_param {{ {parameters} }}', X).check()


def test_corners_stay_where_they_are() -> None:
    x = np.array([[[[0, 2], [4, 6]]]], np.float32)
    found = Case('type: "Interp" interp_param { height: 3 width: 3 }', x).expected()[0]
    assert found.tolist() == [[[[0, 1, 2], [2, 3, 4], [4, 5, 6]]]]


@pytest.mark.parametrize(
    "parameters",
    ["", "scale: 3", "pad_out_h: true", "upsample_h: 7 upsample_w: 9", "scale_h: 2 scale_w: 4"],
)
def test_upsample_by_a_mask(parameters: str) -> None:
    """Of several elements for one place the last one stays."""
    mask = np.random.default_rng(3).integers(0, 20, (2, 3, 4, 3)).astype(np.float32)
    text = f'type: "Upsample" upsample_param {{ {parameters} }}'
    Case(text, (2, 3, 4, 3), mask).check()


# Regions

REGIONS = np.array(
    [
        [0, 0, 0, 7, 5],
        [1, 2.5, 1.5, 6.5, 4.4],
        [0, 3, 3, 3, 3],
        [1, -4, -2.5, 20, 30],
        [0, 5, 4, 2, 1],
        [1, 100, 100, 120, 120],
    ],
    np.float32,
)


@pytest.mark.parametrize("regions", [REGIONS, REGIONS.reshape(6, 5, 1, 1), REGIONS[:0]])
@pytest.mark.parametrize("scale", [1, 0.5, 0.0625])
def test_roi_pooling(regions: Array, scale: float) -> None:
    p = f"pooled_h: 3 pooled_w: 2 spatial_scale: {scale}"
    x = random((2, 4, 6, 8), 1)
    x[0, 1, 2] = np.nan
    text = f'type: "ROIPooling" roi_pooling_param {{ {p} }}'
    Case(text, x, regions).check()


@pytest.mark.parametrize("regions", [REGIONS, REGIONS[:0]])
@pytest.mark.parametrize("scale", [1, 0.5, 0.0625])
def test_psroi_pooling(regions: Array, scale: float) -> None:
    p = f"output_dim: 2 group_size: 3 spatial_scale: {scale}"
    text = f'type: "PSROIPooling" psroi_pooling_param {{ {p} }}'
    Case(text, random((2, 18, 6, 8), 1), regions).check()


PROPOSALS = [
    'type: "Proposal" proposal_param { ratio: 0.5 ratio: 1 ratio: 2 scale: 1 scale: 2 min_size: 9 '
    "nms_thresh: 0.3 pre_nms_topn: 40 post_nms_topn: 9 }",
    'type: "Proposal" proposal_param { ratio: 0.5 ratio: 1 ratio: 2 scale: 1 scale: 2 '
    "feat_stride: 8 pre_nms_topn: 0 post_nms_topn: 0 }",
    'type: "Python" python_param { module: "rpn.proposal_layer" layer: "ProposalLayer" '
    "param_str: \"'feat_stride': 16\\n'scales': (1, 2)\" }",
]


@pytest.mark.parametrize(
    "text",
    [
        'type: "Proposal" proposal_param { ratio: 0.5 ratio: inf scale: 1 }',
        'type: "Proposal" proposal_param { ratio: nan scale: 1 }',
        'type: "Proposal" proposal_param { ratio: 1 scale: 1 scale: -inf }',
        'type: "Proposal" proposal_param { ratio: 1 scale: nan }',
        *(
            'type: "Python" python_param { module: "rpn.proposal_layer" layer: "ProposalLayer" '
            f"param_str: \"'feat_stride': {stride}\\n'scales': {scales}\" }}"
            for stride, scales in (
                (16, "(1, None)"),
                (16, "('8',)"),
                (16, "(1e999,)"),
                (16, f"(1{'0' * 400},)"),
                (f"1{'0' * 400}", "(8,)"),
            )
        ),
    ],
)
def test_proposals_of_no_size(text: str) -> None:
    with pytest.raises(ShapeError, match=r"found the param_str|must be (positive|finite)"):
        proposals_of(parse(text))


@pytest.mark.parametrize("text", PROPOSALS)
@pytest.mark.parametrize("info", [[80, 96, 1.5], [80, 96, 1.5, 2.0], [12, 10, 4]])
def test_proposals(text: str, info: list[float]) -> None:
    scores, deltas = random((1, 12, 5, 6), 1), random((1, 24, 5, 6), 2) * np.float32(0.3)
    case = Case(text, scores, deltas, np.array([info], np.float32), tops=2)
    case.check()
    Case(text, scores, deltas, np.array([info], np.float32)).check()


# Detections


def detections(
    parameters: str, *, own: int = 1, images: int = 2, boxes: int = 30, scale: float = 0.3
) -> Case:
    generator = np.random.default_rng(boxes)
    centers, sizes = generator.random((boxes, 2)), generator.random((boxes, 2)) * 0.4 + 0.05
    priors = np.concatenate([centers - sizes / 2, centers + sizes / 2], 1).reshape(-1)
    spread = np.tile([0.1, 0.1, 0.2, 0.2], boxes)
    locations = random((images, boxes * own * 4), 3) * np.float32(scale)
    scores = generator.random((images, boxes * 4)).astype(np.float32)
    both = np.stack([priors, spread])[None].astype(np.float32)
    text = f'type: "DetectionOutput" detection_output_param {{ num_classes: 4 {parameters} }}'
    return Case(text, locations, scores, both)


@pytest.mark.parametrize(
    "parameters",
    [
        "nms_param {}",
        "nms_param { nms_threshold: 0.45 top_k: 12 } keep_top_k: 15 code_type: CENTER_SIZE",
        "nms_param { nms_threshold: 0.6 } code_type: CORNER_SIZE confidence_threshold: 0.5",
        "nms_param { nms_threshold: 0.8 eta: 0.9 } keep_top_k: 500 background_label_id: -1",
        "nms_param { nms_threshold: 0.55 eta: 0.5 top_k: 20 } background_label_id: 2 "
        "variance_encoded_in_target: true code_type: CENTER_SIZE",
        "nms_param { nms_threshold: 0 top_k: 100 } confidence_threshold: 2",
    ],
)
@pytest.mark.parametrize("images", [1, 2])
def test_detection_output(parameters: str, images: int) -> None:
    detections(parameters, images=images).check()
    detections(f"share_location: false {parameters}", own=4, images=images).check()


def two_boxes(parameters: str, second: float) -> Case:
    """Two boxes of 1 x 1 and 1 x 2 with the scores 0.75 and `second`: they share one half."""
    priors = np.array([[[0, 0, 1, 1, 0, 0, 1, 2], [0.1] * 8]], np.float32)
    scores = np.array([[0, 0.75, 0, second]], np.float32)
    text = f'type: "DetectionOutput" detection_output_param {{ num_classes: 2 {parameters} }}'
    return Case(text, np.zeros((1, 8), np.float32), scores, priors)


@pytest.mark.parametrize(("threshold", "count"), [(0.5, 2), (0.49, 1)])
def test_a_box_at_the_threshold_is_kept(threshold: float, count: int) -> None:
    case = two_boxes(f"nms_param {{ nms_threshold: {threshold} }}", 0.5)
    case.check()
    assert case.expected()[0].shape[2] == count


@pytest.mark.parametrize(("least", "count"), [(0.5, 1), (0.25, 2)])
def test_a_score_at_the_threshold_is_none(least: float, count: int) -> None:
    p = f"nms_param {{ nms_threshold: 0.9 }} confidence_threshold: {least}"
    case = two_boxes(p, 0.5)
    case.check()
    assert case.expected()[0].shape[2] == count


def test_anchors_are_those_of_faster_rcnn() -> None:
    """As the comment of its `generate_anchors` lists them, counted from 0 instead of 1."""
    listed = """-83 -39 100 56  -175 -87 192 104  -359 -183 376 200  -55 -55 72 72
        -119 -119 136 136  -247 -247 264 264  -35 -79 52 96  -79 -167 96 184  -167 -343 184 360"""
    anchors = np.array(listed.split(), float).reshape(9, 4) - 1
    text = PROPOSALS[2].replace("'scales': (1, 2)", "'scales': (8, 16, 32)")
    found = proposals_of(Case(text, (1, 18, 2, 2), (1, 36, 2, 2), (1, 3), tops=2).layer)
    np.testing.assert_array_equal(found.anchors(), anchors)
    short = parse(text.replace("\\n'scales': (8, 16, 32)", ""))
    assert proposals_of(short) == found


def test_no_detections() -> None:
    case = detections("nms_param {} confidence_threshold: 2")
    assert case.expected()[0].tolist() == [[[[0, *[-1] * 6], [1, *[-1] * 6]]]]
