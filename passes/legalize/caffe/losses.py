"""Layers that compare with labels or depend on data in their shapes: all are refused."""

from __future__ import annotations

from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes


@legalizes(
    "Accuracy",
    "ContrastiveLoss",
    "EuclideanLoss",
    "HingeLoss",
    "InfogainLoss",
    "MultinomialLogisticLoss",
    "SigmoidCrossEntropyLoss",
    "SoftmaxWithLoss",
)
def legalize_loss(builder: CaffeLegalizer) -> Results:
    builder.refuse(
        "a layer that compares with labels",
        "a net for deployment",
        "choose blobs before it with --output, or remove it from the net",
    )


@legalizes("DetectionOutput")
def legalize_detection_output(builder: CaffeLegalizer) -> Results:
    builder.refuse(
        "detections whose number depends on data",
        "shapes that are known",
        "choose blobs before it with --output",
    )
