"""Choice of boxes: ties, opposite corners, boxes without area, thresholds, soft scores."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def build(record: Recorder) -> None:
    random = np.random.default_rng(21)
    corners = (random.integers(0, 9, (14, 2, 2)) / 8).astype(np.float32)
    boxes = corners.reshape(14, 4)
    boxes[3] = boxes[7] + np.float32(1 / 64)
    boxes[5] = boxes[2][[2, 3, 0, 1]]
    scores = (random.integers(0, 12, 14) / 16).astype(np.float32)
    _one_image(record, boxes, scores, np.float32)
    _one_image(record, boxes, scores, np.float16)
    _special(record, boxes, scores)
    _overlaps(record, scores)
    _combined(record, random)


def _one_image(record: Recorder, boxes: Any, scores: Any, dtype: Any) -> None:
    boxes, scores = record.input(boxes.astype(dtype)), record.input(scores.astype(dtype))
    name = np.dtype(dtype).name
    given = {"boxes": boxes, "scores": scores}
    limits_ = ((20, 0.1, -1.0), (5, 0.5, 0.2), (20, 1.0, 0.45), (0, 0.5, 0.0))
    for most, overlap, least in limits_ if dtype == np.float32 else limits_[:1]:
        suffix = f"{name}_{most}_{overlap:.1f}"
        limits = {"max_output_size": most, "iou_threshold": np.array(overlap, dtype)}
        if dtype == np.float32:
            found = raw.NonMaxSuppression(**given, max_output_size=most, iou_threshold=overlap)
            record.case(f"V1_{suffix}", found)
        record.case(f"V2_{suffix}", raw.NonMaxSuppressionV2(**given, **limits))
        limits["score_threshold"] = np.array(least, dtype)
        record.case(f"V3_{suffix}", raw.NonMaxSuppressionV3(**given, **limits))
        for padded in (False, True):
            found = raw.NonMaxSuppressionV4(**given, **limits, pad_to_max_output_size=padded)
            record.case(f"V4_{suffix}_{padded:d}", found.selected_indices)
            record.case(f"V4_{suffix}_{padded:d}_count", found.valid_outputs)
            for sigma in (0.0, 0.5) if padded else (0.5,):
                soft = {"soft_nms_sigma": np.array(sigma, dtype), "pad_to_max_output_size": padded}
                found = raw.NonMaxSuppressionV5(**given, **limits, **soft)
                for part in ("selected_indices", "selected_scores", "valid_outputs"):
                    own = f"V5_{suffix}_{padded:d}_{sigma:.1f}_{part}"
                    record.case(own, getattr(found, part))


def _special(record: Recorder, boxes: Any, scores: Any) -> None:
    scores = scores.copy()
    scores[[1, 4, 6]] = np.nan, np.inf, -np.inf
    given = {"boxes": record.input(boxes), "scores": record.input(scores)}
    most = record.input(np.array(6, np.int32))
    record.case("Special_V1", raw.NonMaxSuppression(**given, max_output_size=most))
    limits = {"max_output_size": most, "iou_threshold": 0.3, "score_threshold": -np.inf}
    record.case("Special_V3", raw.NonMaxSuppressionV3(**given, **limits))
    empty = {"boxes": record.input(np.zeros((0, 4), np.float32)), "max_output_size": 3}
    scores = record.input(np.zeros(0, np.float32))
    record.case("Nothing", raw.NonMaxSuppression(**empty, scores=scores))


def _overlaps(record: Recorder, scores: Any) -> None:
    random = np.random.default_rng(22)
    overlaps = record.input(random.random((14, 14)).astype(np.float32))
    for least in (-1.0, 0.3):
        found = raw.NonMaxSuppressionWithOverlaps(
            overlaps=overlaps,
            scores=record.input(scores),
            max_output_size=9,
            overlap_threshold=0.6,
            score_threshold=least,
        )
        record.case(f"WithOverlaps_{least}", found)


def _combined(record: Recorder, random: Any) -> None:
    """Scores differ: TensorFlow orders equal ones of different classes as it likes."""
    scores = (random.permutation(2 * 7 * 3).reshape(2, 7, 3) / 64).astype(np.float32)
    scores = record.input(scores)
    for shared in (True, False):
        corners = random.integers(-2, 11, (2, 7, 1 if shared else 3, 4)) / 8
        boxes = record.input(corners.astype(np.float32), [None, None, 1 if shared else 3, 4])
        for per_class, total, least, pad, clip in (
            (4, 6, 0.1, False, True),
            (2, 9, 0.3, True, False),
            (9, 40, 0.25, False, False),
            (1, 2, 0.9, True, True),
        ):
            found = raw.CombinedNonMaxSuppression(
                boxes=boxes,
                scores=scores,
                max_output_size_per_class=per_class,
                max_total_size=total,
                iou_threshold=0.4,
                score_threshold=least,
                pad_per_class=pad,
                clip_boxes=clip,
            )
            suffix = f"Combined_{shared:d}_{per_class}_{total}"
            for part in ("boxes", "scores", "classes"):
                record.case(f"{suffix}_{part}", getattr(found, f"nmsed_{part}"))
            record.case(f"{suffix}_count", found.valid_detections)
