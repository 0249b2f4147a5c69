"""Losses, and what becomes of many of them."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.types import i64, is_float
from lowerdeck.passes.legalize.common.ctc import log_likelihood, rows_of_labels
from lowerdeck.passes.legalize.common.losses import (
    angles,
    binary_entropy,
    binary_entropy_of_logits,
    divergence,
    hinge,
    huber,
    loss_of_classes,
    loss_of_shares,
    margin_of_class,
    margin_of_classes,
    poisson,
    ranking,
)
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import log1p
from lowerdeck.passes.legalize.pt2.applied import torch_value
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _reduction(builder: Pt2Legalizer) -> int:
    """0 for no reduction, 1 for the mean, which is the default, 2 for the sum."""
    return 1 if builder.get("reduction") == "Mean" else builder.integer("reduction")


def _reduced(builder: Pt2Legalizer, loss: TensorValue) -> Results:
    """All of them, their mean, or their sum."""
    kind = _reduction(builder)
    axes = list(range(len(loss.dims)))
    if kind == 0:
        return loss
    if kind == 1:
        return mean(builder, loss.value, axes, False)
    return loss.cast(builder.element()).reduce("sum", axes).value


@legalizes("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div")
def legalize_loss(builder: Pt2Legalizer) -> Results:
    """Distances from a target."""
    element = builder.promoted("self", "target")
    x, target = builder.operand("self", element), builder.operand("target", element)
    gap = (x - target).abs()
    match builder.name:
        case "l1_loss":
            loss = gap
        case "mse_loss":
            loss = gap * gap
        case "smooth_l1_loss":
            beta = float(builder.number("beta"))
            loss = huber(gap, beta) / beta if beta else gap
        case "huber_loss":
            loss = huber(gap, float(builder.number("delta")))
        case "soft_margin_loss":
            loss = log1p((-(x * target)).exp())
        case _:
            loss = divergence(x, target, is_log=builder.flag("log_target"))
    return _reduced(builder, loss)


@legalizes("binary_cross_entropy", "binary_cross_entropy_with_logits")
def legalize_binary_loss(builder: Pt2Legalizer) -> Results:
    """Of probabilities, or of what a sigmoid makes of numbers."""
    x, target = builder.stated(), builder.stated("target")
    if builder.name == "binary_cross_entropy":
        loss = binary_entropy(x, target)
    else:
        is_weighted = builder.optional("pos_weight") is not None
        weight = builder.stated("pos_weight") if is_weighted else None
        loss = binary_entropy_of_logits(x, target, weight)
    if builder.optional("weight") is not None:
        loss = loss * builder.stated("weight")
    return _reduced(builder, loss)


@legalizes(
    "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward",
    "nll_loss2d_forward",
)  # fmt: skip
def legalize_class_loss(builder: Pt2Legalizer) -> Results:
    """The opposite of what the target's class has, by weights of classes."""
    x, target = builder.stated(), builder.value("target")
    axis = 1 if len(x.dims) > 1 else 0
    is_entropy = builder.name == "cross_entropy_loss"
    if is_entropy:
        x = torch_value(builder, "log_softmax.int", x.element, self=x.value, dim=axis)
    smoothing = float(builder.number("label_smoothing", 0.0)) if is_entropy else 0.0
    weight = None
    if builder.optional("weight") is not None:
        weight = builder.stated("weight").column(len(x.dims), axis)
    if is_float(target.element):
        return _reduced(builder, loss_of_shares(x, target, axis, weight, smoothing))
    ignored = builder.integer("ignore_index")
    loss, weights = loss_of_classes(x, target, axis, weight, smoothing, ignored)
    axes = list(range(len(loss.dims)))
    total = weights.reduce("sum", axes)
    if kind := _reduction(builder):
        loss = loss.reduce("sum", axes)
        loss = loss / total if kind == 1 else loss
    return [loss.value, total.value][: len(builder.op.results)]


@legalizes("hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss")
def legalize_margin(builder: Pt2Legalizer) -> Results:
    """How far pairs are from what 1 or -1 says of them."""
    target, margin = builder.value("target"), float(builder.number("margin"))
    if builder.has("self"):
        return _reduced(builder, hinge(builder.stated(), target, margin))
    a, b = builder.stated("input1"), builder.stated("input2")
    if builder.name == "margin_ranking_loss":
        return _reduced(builder, ranking(a, b, target.cast(a.element), margin))
    return _reduced(builder, angles(a, b, target, len(target.dims), margin))


@legalizes("triplet_margin_loss")
def legalize_triplet(builder: Pt2Legalizer) -> Results:
    """How far the distance from what is unlike is below a margin above that from what is alike."""
    names = ["anchor", "positive"], ["anchor", "negative"], ["positive", "negative"]
    like, unlike, other = (
        torch_value(
            builder, "pairwise_distance.default", builder.element(),
            x1=builder.input(first), x2=builder.input(second),
            p=float(builder.number("p")), eps=float(builder.number("eps")),
        )
        for first, second in names
    )  # fmt: skip
    unlike = unlike.minimum(other) if builder.flag("swap") else unlike
    return _reduced(builder, (like - unlike + builder.number("margin")).maximum(0))


@legalizes("multi_margin_loss", "multilabel_margin_loss")
def legalize_class_margin(builder: Pt2Legalizer) -> Results:
    """How far other classes are above the right ones."""
    x, target = builder.stated(), builder.value("target")
    if builder.name == "multilabel_margin_loss":
        return _reduced(builder, margin_of_classes(x, target))
    weight = None if builder.optional("weight") is None else builder.stated("weight")
    margin, power = (float(builder.number(name)) for name in ("margin", "p"))
    return _reduced(builder, margin_of_class(x, target, weight, margin, power))


@legalizes("poisson_nll_loss")
def legalize_poisson(builder: Pt2Legalizer) -> Results:
    """Of a mean or its logarithm."""
    flags = {"is_log": builder.flag("log_input"), "is_full": builder.flag("full")}
    x, target = builder.stated("input"), builder.stated("target")
    return _reduced(builder, poisson(x, target, float(builder.number("eps")), **flags))


@legalizes("ctc_loss")
def legalize_ctc(builder: Pt2Legalizer) -> Results:
    """Labels in rows, or all behind each other; of one sequence or several."""
    builder.require_ranks({"log_probs": (2, 3), "targets": (1, 2)})
    x, labels = builder.stated("log_probs"), builder.value("targets").cast(i64)
    is_known = builder.overload != "Tensor"
    times, lengths = (
        TensorValue.of(builder, builder.constant_of(builder.ints_of(name))) if is_known
        else builder.value(name).cast(i64)
        for name in ("input_lengths", "target_lengths")
    )  # fmt: skip
    if single := len(x.dims) == 2:
        x = x.reshape([x.dims[0], 1, x.dims[1]])
        labels, times, lengths = (
            labels.reshape([1, labels.dims[-1]]),
            times.reshape([1]),
            lengths.reshape([1]),
        )
    elif len(labels.dims) == 1:
        labels = rows_of_labels(labels, lengths)
    loss = -log_likelihood(builder, x, labels, times, lengths, builder.integer("blank"))
    if builder.flag("zero_infinity"):
        loss = loss.eq(math.inf).where(builder.known(0, loss.element), loss)
    if _reduction(builder) == 1:
        loss = loss / lengths.maximum(1).cast(loss.element)
    return _reduced(builder, loss.reshape([]) if single else loss)
