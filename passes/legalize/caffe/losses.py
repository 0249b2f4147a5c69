"""Layers that compare with labels: all are refused."""

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
