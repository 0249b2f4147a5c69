"""Losses of predicted classes, and their gradients."""

from __future__ import annotations

from lowerdeck.dialects.core.types import element_type, i1, i64
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import widened
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("SoftmaxCrossEntropyWithLogits")
def legalize_cross_entropy(builder: Tf1Legalizer) -> Results:
    """-sum(labels * log(softmax(features))) of each row, and softmax(features) - labels."""
    return _cross_entropy(builder, widened(builder, "labels"))


@legalizes("SparseSoftmaxCrossEntropyWithLogits")
def legalize_sparse_cross_entropy(builder: Tf1Legalizer) -> Results:
    """The same for labels that are the numbers of classes, of which others have no part."""
    x = widened(builder, "features")
    numbers = TensorValue.of(builder, builder.operand("labels")).cast(i64)
    return _cross_entropy(builder, one_hot(numbers, x.dims[1], 1))


def _cross_entropy(builder: Tf1Legalizer, labels: TensorValue) -> Results:
    x = widened(builder, "features")
    low = x - x.reduce("max", [1], keep_dims=True)
    powers = low.exp()
    total = powers.reduce("sum", [1], keep_dims=True)
    rest = total.log() - low
    if labels.element == i1:
        terms, labels = labels.where(rest, 0), labels.cast(x.element)
    else:
        terms = rest * labels
    element = element_type(builder.operand("features"))
    results = (terms.reduce("sum", [1]), powers / total - labels)
    return [result.cast(element).value for result in results]
