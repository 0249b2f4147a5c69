"""Shapes of tops and parameter blobs of layers that forks of Caffe add."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, prod, sqrt
from typing import cast

from lowerdeck.dialects.caffe.caffe_pb2 import InterpParameter, LayerParameter, UpsampleParameter
from lowerdeck.dialects.caffe.layers import PROPOSALS, is_segnet_norm, python_layer
from lowerdeck.dialects.caffe.shape_base import (
    LayerShapes,
    Rule,
    Shape,
    ShapeError,
    axis_of,
    require,
    require_equal,
    require_rank,
)
from lowerdeck.dialects.records import record

# Shapes and neurons


def _crelu(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = list(bottoms[0])
    shape[axis_of(layer.crelu_param.concat_axis, len(shape))] *= 2
    return LayerShapes([tuple(shape)], [])


def _filter(_layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    """The first dimensions depend on data: here all items are chosen."""
    *values, selector = bottoms
    require(len(selector) > 0 and prod(selector[1:]) == 1, "the selector has several columns")
    for shape in values:
        fits = shape[:1] == selector[:1]
        require(fits, f"a bottom of shape {list(shape)} is not of {prod(selector)} items")
    return LayerShapes(values[:tops], [])


def _reorg(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.reorg_param, bottoms[0]
    require_rank(shape, 4)
    n, channels, height, width = shape
    area = p.stride * p.stride
    require(p.stride > 0, "the stride must be at least 1")
    require(not p.reverse, "found reverse, which is not defined alike everywhere")
    require(
        height % p.stride == 0 and width % p.stride == 0 and channels % area == 0,
        f"the stride {p.stride} does not divide the bottom {list(shape)}",
    )
    return LayerShapes([(n, channels * area, height // p.stride, width // p.stride)], [])


def _continuation_indicator(
    layer: LayerParameter, _bottoms: list[Shape], _tops: int
) -> LayerShapes:
    p = layer.continuation_indicator_param
    require(
        p.time_step > 0 and p.batch_size > 0,
        f"a time_step of {p.time_step} and a batch_size of {p.batch_size}, expected at least 1",
    )
    return LayerShapes([(p.time_step, p.batch_size)], [])


def _reverse(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    axis_of(layer.reverse_param.axis, len(bottoms[0]))
    return LayerShapes([bottoms[0]], [])


def _shuffle_channel(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape, group = bottoms[0], layer.shuffle_channel_param.group
    require(len(shape) >= 2, f"the bottom has {len(shape)} dimensions, expected at least 2")
    require(
        group > 0 and shape[1] % group == 0,
        f"the group of {group} does not divide {shape[1]} channels",
    )
    return LayerShapes([shape], [])


# Linear layers


def _axpy(_layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    scale, x, y = bottoms
    require_equal([x, y])
    fits = len(x) >= 2 and scale[:2] == x[:2] and prod(scale[2:]) == 1
    require(fits, f"the scale is {list(scale)}, expected one number for each plane of {list(x)}")
    return LayerShapes([x], [])


def _bn(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require(2 <= len(shape) <= 4, f"the bottom has {len(shape)} dimensions, expected 2 to 4")
    count = 2 if is_segnet_norm(layer) else 4
    return LayerShapes([shape], [(1, shape[1], 1, 1)] * count)


# Sizes


def interp_sizes(parameters: InterpParameter, height: int, width: int) -> tuple[Shape, Shape]:
    """The sizes that are left of the bottom, and those of the top."""
    p = parameters
    require(max(p.pad_beg, p.pad_end) <= 0, "found a padding, expected a crop: no positive pad")
    inner = height + p.pad_beg + p.pad_end, width + p.pad_beg + p.pad_end
    require(min(inner) > 0, f"the crop leaves nothing of {height} by {width}")
    factors = p.HasField("shrink_factor") + p.HasField("zoom_factor")
    if factors == 1 or (factors and not (p.HasField("height") and p.HasField("width"))):
        shrink, zoom = p.shrink_factor, p.zoom_factor
        require(shrink >= 1 and zoom >= 1, "zoom_factor and shrink_factor must be at least 1")
        small = [(size - 1) // shrink + 1 for size in inner]
        outer = tuple(size + (size - 1) * (zoom - 1) for size in small)
    else:
        outer = p.height, p.width
        require(min(outer) > 0, "found neither factors nor height and width")
    return inner, outer


def _interp(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    shape = bottoms[0]
    require_rank(shape, 4)
    _, outer = interp_sizes(layer.interp_param, shape[2], shape[3])
    return LayerShapes([(*shape[:2], *outer)], [])


def upsample_factors(parameters: UpsampleParameter) -> tuple[int, int]:
    """How many times higher and wider the top is, before anything is cut off."""
    p = parameters
    if p.HasField("scale_h") or p.HasField("scale_w"):
        require(
            p.HasField("scale_h") and p.HasField("scale_w") and not p.HasField("scale"),
            "found some of scale, scale_h and scale_w, expected scale, or the two others",
        )
        return p.scale_h, p.scale_w
    return p.scale, p.scale


def _upsample(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.upsample_param, bottoms[0]
    require_rank(shape, 4)
    high, wide = upsample_factors(p)
    if len(bottoms) == 1:
        given = any(
            p.HasField(name) for name in ("upsample_h", "upsample_w", "pad_out_h", "pad_out_w")
        )
        require(not given, "a layer without a mask has only factors")
        require(min(high, wide) > 0, "the scale must be at least 1")
        return LayerShapes([(*shape[:2], shape[2] * high, shape[3] * wide)], [])
    require_equal(bottoms)
    if p.HasField("upsample_h") or p.HasField("upsample_w"):
        sizes = p.upsample_h, p.upsample_w
        require(min(sizes) > 1, f"found the size {list(sizes)}, expected at least 2 by 2")
        return LayerShapes([(*shape[:2], *sizes)], [])
    require(min(high, wide) > 1, f"found the scale {high} by {wide}, expected at least 2")
    for pad, scale in ((p.pad_out_h, high), (p.pad_out_w, wide)):
        require(not pad or scale == 2, "pad_out_h and pad_out_w need a scale of 2")
    return LayerShapes(
        [(*shape[:2], shape[2] * high - p.pad_out_h, shape[3] * wide - p.pad_out_w)], []
    )


# Regions and detections


@record
class Proposals:
    """What a layer that proposes regions does, whichever layer says it."""

    stride: int
    base: int
    ratios: Sequence[float]
    scales: Sequence[float]
    candidates: int
    """The best ones before suppression; all if it is not positive."""
    regions: int
    """The most there may be afterwards; all if it is not positive."""
    threshold: float
    least: float
    """The least height and width, in the size of the original image."""
    drops_small: bool
    """Small boxes are left out; else their score becomes zero."""

    def anchors(self) -> list[tuple[float, float, float, float]]:
        """Corners of the boxes around the first place: all scales of a ratio, then the next."""
        # numpy, with which the Python layer rounds, rounds halves to even; C++ code adds a half.
        rounded: Callable[[float], int] = round if self.drops_small else lambda x: int(x + 0.5)
        center = 0.5 * (self.base - 1)
        boxes: list[tuple[float, float, float, float]] = []
        for ratio in self.ratios:
            width = rounded(sqrt(self.base * self.base / ratio))
            height = rounded(width * ratio)
            for scale in self.scales:
                w, h = 0.5 * (width * scale - 1), 0.5 * (height * scale - 1)
                boxes.append((center - w, center - h, center + w, center + h))
        return boxes


_MOST = 2.0**31
"""What strides and scales are less than."""


def proposals_of(layer: LayerParameter) -> Proposals:
    """What a Proposal layer, or the Python layer of Faster R-CNN, does; ShapeError if unclear."""
    if layer.type == "Proposal":
        p = layer.proposal_param
        require(len(p.ratio) > 0 and len(p.scale) > 0, "found no ratio or no scale")
        require(all(0 < ratio < inf for ratio in p.ratio), "the ratios must be positive numbers")
        require(all(map(isfinite, p.scale)), "the scales must be finite")
        return Proposals(
            p.feat_stride,
            p.base_size,
            list(p.ratio),
            list(p.scale),
            p.pre_nms_topn,
            p.post_nms_topn,
            p.nms_thresh,
            p.min_size,
            drops_small=False,
        )
    settings = _settings(layer.python_param.param_str)
    unknown = sorted(settings.keys() - {"feat_stride", "scales"})
    require(not unknown, f"found {', '.join(map(repr, unknown))} in param_str")
    stride, scales = settings.get("feat_stride"), settings.get("scales", (8, 16, 32))
    if not isinstance(stride, int) or not isinstance(scales, tuple | list):
        raise ShapeError(f"found the param_str {layer.python_param.param_str!r}")
    numbers = cast(Sequence[object], scales)
    if not all(isinstance(each, int | float) and abs(each) < _MOST for each in (stride, *numbers)):
        raise ShapeError(f"found the param_str {layer.python_param.param_str!r}")
    numbers = [float(each) for each in cast(Sequence[float], numbers)]
    return Proposals(stride, 16, (0.5, 1.0, 2.0), numbers, 6000, 300, 0.7, 16, drops_small=True)


def _settings(text: str) -> Mapping[str, object]:
    """The settings of a Python layer: lines `'name': value` of YAML, or a dictionary."""
    lines = [line.strip().rstrip(",") for line in text.strip().strip("{}").splitlines()]
    pairs: list[str] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if line and colon:
            pairs.append(f"{name.strip().strip(chr(39)).strip(chr(34))!r}: {value}")
        elif line:
            raise ShapeError(f"found the param_str {text!r}")
    try:
        found = ast.literal_eval("{" + ", ".join(pairs) + "}")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ShapeError(f"found the param_str {text!r}") from None
    return cast("Mapping[str, object]", found)


def _proposal(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    """The number of regions depends on data: here it is one, as Caffe has it before any data."""
    p = proposals_of(layer)
    scores, deltas, info = bottoms
    count = len(p.ratios) * len(p.scales)
    require_rank(scores, 4)
    require(scores[0] == 1, f"found {scores[0]} images, expected 1")
    n, channels, *plane = scores
    require(channels == 2 * count, f"found {channels} scores a place, expected {2 * count}")
    expected = (n, 4 * count, *plane)
    require(deltas == expected, f"the second bottom is {list(deltas)}, expected {list(expected)}")
    require(prod(info) >= 3, f"the third bottom is {list(info)}, expected 3 or more numbers")
    shapes: list[Shape] = [(1, 5), (1,) if layer.type == "Proposal" else (1, 1)]
    return LayerShapes(shapes[:tops], [])


def _python(layer: LayerParameter, bottoms: list[Shape], tops: int) -> LayerShapes:
    if python_layer(layer) == PROPOSALS:
        return _proposal(layer, bottoms, tops)
    raise ShapeError(f"the Python layer {'.'.join(python_layer(layer))} is not known")


def _roi_pooling(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p = layer.roi_pooling_param
    require(min(p.pooled_h, p.pooled_w) > 0, "pooled_h and pooled_w must be at least 1")
    return _pooled_regions(bottoms, bottoms[0][1:2], p.pooled_h, p.pooled_w)


def _psroi_pooling(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    p, shape = layer.psroi_pooling_param, bottoms[0]
    require(p.spatial_scale > 0, "found no spatial_scale above zero")
    require(min(p.output_dim, p.group_size) > 0, "output_dim and group_size must be at least 1")
    expected = p.output_dim * p.group_size * p.group_size
    found = shape[1] if len(shape) > 1 else 0
    require(found == expected, f"found {found} channels, expected {expected}")
    return _pooled_regions(bottoms, (p.output_dim,), p.group_size, p.group_size)


def _pooled_regions(bottoms: list[Shape], channels: Shape, height: int, width: int) -> LayerShapes:
    shape, regions = bottoms
    require_rank(shape, 4)
    columns = prod(regions[1:])
    require(len(regions) > 0 and columns == 5, f"the regions have {columns} numbers, expected 5")
    return LayerShapes([(*regions[:1], *channels, height, width)], [])


def detection_classes(layer: LayerParameter) -> tuple[int, int]:
    """How many classes there are, and with boxes of their own how many of these."""
    p = layer.detection_output_param
    require(p.num_classes > 0, "num_classes must be at least 1")
    return p.num_classes, 1 if p.share_location else p.num_classes


def _detection_output(layer: LayerParameter, bottoms: list[Shape], _tops: int) -> LayerShapes:
    """The number of rows depends on data: here it is one, as Caffe has it before any data."""
    p = layer.detection_output_param
    require(len(bottoms) == 3, "a fourth bottom is not defined alike everywhere")
    locations, scores, priors = bottoms
    classes, own = detection_classes(layer)
    require(p.HasField("nms_param") and p.nms_param.nms_threshold >= 0, "found no nms_threshold")
    require(0 < p.nms_param.eta <= 1, f"found eta {p.nms_param.eta}, expected above 0 to 1")
    require(
        not p.nms_param.HasField("top_k") or p.nms_param.top_k > 0 or p.nms_param.top_k == -1,
        f"found top_k {p.nms_param.top_k}, expected a positive number or -1",
    )
    require(
        p.keep_top_k > 0 or p.keep_top_k == -1,
        f"found keep_top_k {p.keep_top_k}, expected a positive number or -1",
    )
    require(
        len(priors) >= 3 and priors[0] == 1 and priors[1] == 2 and prod(priors[2:]) % 4 == 0,
        f"the priors are {list(priors)}, expected 1 x 2 x 4 numbers a box",
    )
    boxes = prod(priors[2:]) // 4
    for name, shape, each in (("locations", locations, 4 * own), ("scores", scores, classes)):
        found = prod(shape[1:])
        require(found == boxes * each, f"found {found} {name} an image, expected {boxes * each}")
    require(locations[0] == scores[0], "locations and scores are of different numbers of images")
    return LayerShapes([(1, 1, 1, 7)], [])


FORK_RULES: dict[str, Rule] = {
    "Axpy": _axpy,
    "BN": _bn,
    "ContinuationIndicator": _continuation_indicator,
    "CReLU": _crelu,
    "DetectionOutput": _detection_output,
    "Filter": _filter,
    "Interp": _interp,
    "Proposal": _proposal,
    "PSROIPooling": _psroi_pooling,
    "Python": _python,
    "Reorg": _reorg,
    "Reverse": _reverse,
    "ROIPooling": _roi_pooling,
    "ShuffleChannel": _shuffle_channel,
    "Upsample": _upsample,
}
