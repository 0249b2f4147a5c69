"""TFLite_Detection_PostProcess: boxes from their codes, and those that are shown."""

from __future__ import annotations

import numpy as np

from lowerdeck.dialects.core.types import element_type, f32, f64, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.shown_boxes import Shown, by_best_score, by_class
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _floats(builder: TfliteLegalizer, index: int) -> TensorValue:
    """An input of floats, or of bytes as floats."""
    x = builder.value(index)
    if element_type(builder.input(index)) != ui8:
        return x
    q = builder.quantization(index)
    return (x.cast(f32) - q.zero) * q.scale


def _decoded(builder: TfliteLegalizer) -> TensorValue:
    """[N, 4]: the corners y1, x1, y2, x2 of boxes, whose codes are relative to anchors."""
    codes, anchors = _floats(builder, 0), _floats(builder, 2)
    if codes.dims[0] != Expr.const(1):
        builder.refuse(f"{codes.dims[0]} images", "1")
    names = ("y_scale", "x_scale", "h_scale", "w_scale")
    y, x, h, w = (
        codes.pick(0, 0).pick(1, k).cast(f64) / float(np.float32(builder.option(name)))
        for k, name in enumerate(names)
    )
    at = [anchors.pick(1, k).cast(f64) for k in range(4)]
    center = [(y * at[2] + at[0]).cast(f32), (x * at[3] + at[1]).cast(f32)]
    half = [(h.exp() * 0.5 * at[2]).cast(f32), (w.exp() * 0.5 * at[3]).cast(f32)]
    first = [c - s for c, s in zip(center, half, strict=True)]
    last = [c + s for c, s in zip(center, half, strict=True)]
    return stack([*first, *last], 1)


@legalizes("TFLite_Detection_PostProcess")
def legalize_detection(builder: TfliteLegalizer) -> Results:
    """
    The best boxes that do not overlap: of the best class of each anchor, or of each class by
    itself. What lies behind their number is zero.
    """
    boxes, scores = _decoded(builder), _floats(builder, 1).pick(0, 0)
    classes, most = int(builder.option("num_classes")), int(builder.option("max_detections"))
    per_class = int(builder.option("detections_per_class")) or 100
    each = min(int(builder.option("max_classes_per_detection")), classes)
    if each < 1 or most < 1:
        builder.refuse(f"{most} detections of {each} classes", "at least one of each")
    first = (scores.dims[1] - classes).value
    if first not in (0, 1):
        builder.refuse(f"{scores.dims[1]} scores for {classes} classes", f"{classes} or one more")
    kept = builder.slice_axis(scores.value, 1, first, classes)
    scores = TensorValue(builder, kept)
    least, share = (
        float(np.float32(builder.option(f"nms_{name}_threshold"))) for name in ("score", "iou")
    )
    shown = Shown(least, share, most)
    if builder.flag("use_regular_nms"):
        return by_class(builder, boxes, scores, shown, min(per_class, most))
    wanted = int(builder.option("max_classes_per_detection"))
    return by_best_score(builder, boxes, scores, shown, each, wanted)
