"""Reference semantics of layers of Caffe's forks, written from what they compute on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.caffe.caffe_pb2 import PriorBoxParameter
from lowerdeck.dialects.caffe.fork_shapes import (
    detection_classes,
    interp_sizes,
    proposals_of,
    upsample_factors,
)
from lowerdeck.dialects.caffe.layers import is_segnet_norm
from lowerdeck.dialects.caffe.shape_base import ShapeError, axis_of
from lowerdeck.dialects.interpret.caffe_call import LARGEST, Array, Call, rule, sigmoid

# Neurons and shapes


@rule("CReLU")
def _crelu(call: Call) -> Array:
    p = call.layer.crelu_param
    both = np.concatenate([call.x, -call.x], axis_of(p.concat_axis, call.x.ndim))
    return np.maximum(both, 0) + p.negative_slope * np.minimum(both, 0)


@rule("HardSwish", "HSwish")
def _hard_swish(call: Call) -> Array:
    return call.x * np.clip(call.x + 3, 0, 6) / 6


@rule("HSigmoid")
def _hard_sigmoid(call: Call) -> Array:
    return np.clip(call.x + 3, 0, 6) / 6


@rule("Mish")
def _mish(call: Call) -> Array:
    return call.x * np.tanh(np.logaddexp(0, call.x))


@rule("SiLU")
def _silu(call: Call) -> Array:
    return call.x * sigmoid(call.x)


@rule("Filter")
def _filter(call: Call) -> list[Array]:
    *values, selector = call.bottoms
    return [value[selector.reshape(-1) != 0] for value in values]


@rule("Reorg")
def _reorg(call: Call) -> Array:
    stride, (n, channels, height, width) = call.layer.reorg_param.stride, call.x.shape
    parts = call.x.reshape(n, channels, height // stride, stride, width // stride, stride)
    moved = parts.transpose(0, 3, 5, 1, 2, 4)
    return moved.reshape(n, channels * stride * stride, height // stride, width // stride)


@rule("ContinuationIndicator")
def _continuation_indicator(call: Call) -> Array:
    p = call.layer.continuation_indicator_param
    steps = np.arange(p.time_step, dtype=np.float32)
    return np.minimum(steps, 1)[:, None] + np.zeros((1, p.batch_size), np.float32)


@rule("Reverse")
def _reverse(call: Call) -> Array:
    return np.flip(call.x, axis_of(call.layer.reverse_param.axis, call.x.ndim))


@rule("ShuffleChannel")
def _shuffle_channel(call: Call) -> Array:
    n, channels, *rest = call.x.shape
    group = call.layer.shuffle_channel_param.group
    parts = call.x.reshape(n, group, channels // group, *rest)
    return parts.swapaxes(1, 2).reshape(call.x.shape)


@rule("Axpy")
def _axpy(call: Call) -> Array:
    scale, x, y = call.bottoms
    return scale.reshape(scale.shape[:2] + (1,) * (x.ndim - 2)) * x + y


@rule("BN")
def _bn(call: Call) -> Array:
    p, x = call.layer.bn_param, call.x
    scale, shift, *stored = (blob.reshape((-1,) + (1,) * (x.ndim - 2)) for blob in call.blobs)
    if stored:
        return (x - stored[0]) / np.sqrt(stored[1] + p.eps) * scale + shift
    if is_segnet_norm(call.layer) and p.bn_mode == p.INFERENCE:
        return x * scale + shift
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-9) * scale + shift


# Sizes


@rule("Interp")
def _interp(call: Call) -> Array:
    """Bilinear; the corners of top and bottom lie on each other."""
    p, x = call.layer.interp_param, call.x
    inner, outer = interp_sizes(p, *x.shape[2:])
    for axis, old, new in zip((2, 3), inner, outer, strict=True):
        x = np.take(x, range(-p.pad_beg, old - p.pad_beg), axis)
        ratio = np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
        place = ratio * np.arange(new, dtype=np.float32)
        low = np.minimum(place.astype(np.int64), old - 1)
        after = (place - low).reshape([-1 if k == axis else 1 for k in range(4)])
        high = np.minimum(low + 1, old - 1)
        x = (np.float32(1) - after) * np.take(x, low, axis) + after * np.take(x, high, axis)
    return x


@rule("Upsample")
def _upsample(call: Call) -> Array:
    p, x = call.layer.upsample_param, call.x
    high, wide = upsample_factors(p)
    n, channels, height, width = x.shape
    if len(call.bottoms) == 1:
        return x.repeat(high, 2).repeat(wide, 3)
    rows, columns = height * high - p.pad_out_h, width * wide - p.pad_out_w
    if p.HasField("upsample_h"):
        rows, columns = p.upsample_h, p.upsample_w
    places = call.bottoms[1].astype(np.int64).reshape(n, channels, -1)
    if places.size and not 0 <= places.min() <= places.max() < rows * columns:
        raise ShapeError(f"a place of the mask is not from 0 to {rows * columns - 1}")
    y = np.zeros((n, channels, rows * columns))
    values = x.reshape(n, channels, -1)
    for item, channel in np.ndindex(n, channels):
        for place, value in zip(places[item, channel], values[item, channel], strict=True):
            y[item, channel, place] = value
    return y.reshape(n, channels, rows, columns)


# Regions


def _round(x: Array) -> Array:
    """Halves away from zero, as C rounds; in double precision, where the sum is exact."""
    wide = x.astype(np.float64)
    return np.trunc(wide + np.copysign(0.5, wide)).astype(np.float32)


def _bins(start: int, size: np.float32, count: int, limit: int) -> list[tuple[int, int]]:
    """Where the bins of a region begin and end."""
    step = np.float32(size) / np.float32(count)
    edges = [
        (int(np.floor(np.float32(k) * step)), int(np.ceil(np.float32(k + 1) * step)))
        for k in range(count)
    ]
    return [
        (min(max(low + start, 0), limit), min(max(high + start, 0), limit)) for low, high in edges
    ]


@rule("ROIPooling")
def _roi_pooling(call: Call) -> Array:
    p, (x, regions) = call.layer.roi_pooling_param, call.bottoms
    rows = regions.reshape(-1, 5).astype(np.float32)
    y = np.zeros((len(rows), x.shape[1], p.pooled_h, p.pooled_w))
    for region, row in enumerate(rows):
        image = x[_image(row[0], len(x))]
        left, top, right, bottom = _round(row[1:] * np.float32(p.spatial_scale)).astype(int)
        tall, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, (a, b) in enumerate(_bins(top, np.float32(tall), p.pooled_h, x.shape[2])):
            for j, (c, d) in enumerate(_bins(left, np.float32(wide), p.pooled_w, x.shape[3])):
                if a < b and c < d:
                    window = image[:, a:b, c:d].reshape(len(image), -1)
                    y[region, :, i, j] = np.where(np.isnan(window), -np.inf, window).max(1)
    return y


@rule("PSROIPooling")
def _psroi_pooling(call: Call) -> Array:
    p, (x, regions) = call.layer.psroi_pooling_param, call.bottoms
    size, scale = p.group_size, np.float32(p.spatial_scale)
    rows = regions.reshape(-1, 5).astype(np.float32)
    y = np.zeros((len(rows), p.output_dim, size, size))
    for region, row in enumerate(rows):
        image = x[_image(row[0], len(x))].reshape(p.output_dim, size, size, *x.shape[2:])
        left, top = _round(row[1:3]) * scale
        right, bottom = (_round(row[3:]) + np.float32(1)) * scale
        steps = [
            np.maximum(end - start, np.float32(0.1)) / np.float32(size)
            for start, end in ((top, bottom), (left, right))
        ]
        for i, j in np.ndindex(size, size):
            a, b, c, d = (
                int(min(max(rounded(np.float32(k) * step + start), 0), limit))
                for index, step, start, limit in (
                    (i, steps[0], top, x.shape[2]),
                    (j, steps[1], left, x.shape[3]),
                )
                for k, rounded in ((index, np.floor), (index + 1, np.ceil))
            )
            if a < b and c < d:
                window = image[:, i, j, a:b, c:d]
                y[region, :, i, j] = window.sum((1, 2)) / ((b - a) * (d - c))
    return y


def _image(number: float, count: int) -> int:
    if not 0 <= int(number) < count:
        raise ShapeError(f"a region is of image {int(number)}, expected 0 to {count - 1}")
    return int(number)


@rule("Proposal", "Python")
def _proposal(call: Call) -> list[Array]:
    p = proposals_of(call.layer)
    scores, deltas, info = (bottom.astype(np.float32) for bottom in call.bottoms)
    height, width = scores.shape[2:]
    tall, wide, scale, *more = info.reshape(-1)
    base = np.array(p.anchors(), np.float32)
    count = len(base)
    y, x = np.mgrid[:height, :width].astype(np.float32) * p.stride
    shift = np.stack([x, y, x, y], -1)[:, :, None]
    boxes = (base + shift).reshape(-1, 4)
    score = scores[0, count:].transpose(1, 2, 0).reshape(-1)
    dx, dy, dw, dh = deltas[0].transpose(1, 2, 0).reshape(-1, 4).T
    w, h = boxes[:, 2] - boxes[:, 0] + 1, boxes[:, 3] - boxes[:, 1] + 1
    cx, cy = dx * w + (boxes[:, 0] + 0.5 * w), dy * h + (boxes[:, 1] + 0.5 * h)
    w, h = np.exp(dw) * w, np.exp(dh) * h
    found = np.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], 1)
    limits = np.array([wide - 1, tall - 1] * 2, np.float32)
    found = np.maximum(np.minimum(found, limits), 0).astype(np.float32)
    least_w = p.least * (more[0] if more and not p.drops_small else scale)
    is_large = (found[:, 2] - found[:, 0] + 1 >= least_w) & (
        found[:, 3] - found[:, 1] + 1 >= p.least * scale
    )
    if p.drops_small:
        found, score = found[is_large], score[is_large]
    else:
        score = score * is_large
    order = np.argsort(-score, kind="stable")
    order = order[: p.candidates] if p.candidates > 0 else order
    kept: list[int] = []
    for candidate in order:
        if 0 < p.regions <= len(kept):
            break
        overlaps = [_overlap(found[candidate], found[other], 1.0) for other in kept]
        if all(overlap <= np.float32(p.threshold) for overlap in overlaps):
            kept.append(int(candidate))
    regions = np.concatenate([np.zeros((len(kept), 1)), found[kept]], 1)
    second = score[kept] if call.layer.type == "Proposal" else score[kept][:, None]
    return [regions, second][: call.tops]


def _overlap(a: Array, b: Array, more: float) -> np.float32:
    """Intersection over union; `more` is 1 where corners are pixels inside the boxes."""
    one, zero = np.float32(more), np.float32(0)
    shared = np.float32(1)
    areas = [np.float32(1), np.float32(1)]
    for k in range(2):
        shared *= max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + one, zero)
        areas = [area * (c[k + 2] - c[k] + one) for area, c in zip(areas, (a, b), strict=True)]
    return shared / (areas[0] + areas[1] - shared) if shared > 0 else zero


# Detections


@rule("DetectionOutput")
def _detection_output(call: Call) -> Array:
    p = call.layer.detection_output_param
    classes, own = detection_classes(call.layer)
    locations, scores, priors = (bottom.astype(np.float32) for bottom in call.bottoms)
    count = priors.size // 8
    corners, variances = priors.reshape(2, count, 4)
    images = len(locations)
    boxes = _decoded(call, locations.reshape(images, count, own, 4), corners, variances)
    scores = scores.reshape(images, count, classes)
    least = p.confidence_threshold if p.HasField("confidence_threshold") else -LARGEST
    rows: list[Array] = []
    for image in range(images):
        found: list[tuple[int, int]] = []
        for label in range(classes):
            if label == p.background_label_id:
                continue
            mine = boxes[image, :, label if own > 1 else 0]
            score = scores[image, :, label]
            chosen = [k for k in np.argsort(-score, kind="stable") if score[k] > np.float32(least)]
            top = p.nms_param.top_k if p.nms_param.HasField("top_k") else -1
            kept = _suppressed(mine, chosen[:top] if top >= 0 else chosen, p.nms_param)
            found += [(label, k) for k in kept]
        if 0 <= p.keep_top_k < len(found):
            order = sorted(found, key=lambda pair: -scores[image, pair[1], pair[0]])
            found = sorted(order[: p.keep_top_k], key=lambda pair: pair[0])
        for label, k in found:
            box = boxes[image, k, label if own > 1 else 0]
            rows.append(np.array([image, label, scores[image, k, label], *box]))
    if not rows:
        rows = [np.array([image, *[-1.0] * 6]) for image in range(images)]
    return np.array(rows).reshape(1, 1, -1, 7)


def _suppressed(boxes: Array, order: Sequence[int], parameters: object) -> list[int]:
    limit, eta = (np.float32(getattr(parameters, name)) for name in ("nms_threshold", "eta"))
    kept: list[int] = []
    for candidate in order:
        if all(_overlap(boxes[candidate], boxes[other], 0.0) <= limit for other in kept):
            kept.append(int(candidate))
            if eta < 1 and limit > 0.5:
                limit = limit * eta
    return kept


def _decoded(call: Call, deltas: Array, corners: Array, variances: Array) -> Array:
    """Boxes [images, boxes, classes or 1, 4] from how they differ from the priors."""
    p = call.layer.detection_output_param
    if not p.variance_encoded_in_target:
        deltas = deltas * variances[:, None]
    low, high = corners[:, None, :2], corners[:, None, 2:]
    size = high - low
    match p.code_type:
        case PriorBoxParameter.CORNER:
            return corners[:, None] + deltas
        case PriorBoxParameter.CORNER_SIZE:
            return corners[:, None] + deltas * np.concatenate([size, size], -1)
        case _:
            center = deltas[..., :2] * size + (low + high) / 2
            half = np.exp(deltas[..., 2:]) * size / 2
            return np.concatenate([center - half, center + half], -1)
