"""
Support vector machines of ai.onnx.ml.

What the specification leaves open is as ONNX Runtime has it.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations

import numpy as np
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.elementwise import PowOp, TanhOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import f32, i1, i64, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.onnx.learned import (
    ML,
    TRANSFORMS,
    best_label,
    floats,
    integer_labels,
    known,
    product_with,
    rows,
    transformed,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import Array, TensorValue, concat

_ROUNDS = 100
"""Most rounds of the search for probabilities of classes."""

_SURE = 1e-7
"""No probability of one of two classes is closer to 0 or 1."""


def _vectors(builder: OnnxLegalizer, count: int) -> Array:
    """The support vectors as rows."""
    found = floats(builder, "support_vectors")
    if found.size % count:
        builder.refuse(f"{found.size} numbers for {count} support vectors", "as many for each")
    return found.reshape(count, -1)


def _kernel(builder: OnnxLegalizer, x: TensorValue, vectors: Array) -> TensorValue:
    """What a kernel function makes of each row and each of the vectors."""
    kind = builder.attrs.string("kernel_type", among=("LINEAR", "POLY", "RBF", "SIGMOID"))
    given = [*builder.attrs.floats("kernel_params", default=[]), 0.0, 0.0, 0.0]
    gamma, constant, degree = (float(number) for number in given[:3])
    if kind == "RBF":
        differences = x.reshape([x.dims[0], 1, x.dims[1]]) - known(builder, vectors)
        return ((differences * differences).reduce("sum", [2]) * -gamma).exp()
    products = product_with(x, vectors.T)
    if kind == "LINEAR":
        return products
    products = products * gamma + constant
    if kind == "SIGMOID":
        return apply(TanhOp, products)
    return TensorValue(builder, builder.add(PowOp(products.value, builder.scalar(degree, f32))))


def _ignore_kernel(builder: OnnxLegalizer) -> None:
    """A model without vectors is linear."""
    builder.attrs.ignore("kernel_type", "kernel_params", "support_vectors")


@legalizes("SVMRegressor", domain=ML)
def legalize_svm_regressor(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The kernel of the row and each vector, weighted; without vectors, a linear model. With
    `one_class` 1 or -1: what is like the vectors, and what is not.
    """
    x, count = rows(builder), builder.attrs.int("n_supports")
    coefficients, rho = floats(builder, "coefficients"), floats(builder, "rho")
    if count:
        values = _kernel(builder, x, _vectors(builder, count))
    else:
        _ignore_kernel(builder)
        values = x
    scores = product_with(values, coefficients.reshape(-1, 1)) + float(rho[0])
    if not builder.attrs.flag("one_class"):
        return [transformed(builder, scores, builder.attrs.string("post_transform")).value]
    builder.attrs.ignore("post_transform")
    return [scores.gt(0).where(TensorValue.number(builder, 1, f32), -1).value]


@legalizes("SVMClassifier", domain=ML)
def legalize_svm_classifier(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    Each two classes have a score, whose sign is a vote for one of them; most votes decide, of as
    many the first class. The second result are these scores, or with `prob_a` and `prob_b` a
    probability of each class. Without vectors each class has a linear score, and the largest wins.
    """
    labels = integer_labels(builder, "classlabels_ints")
    counts = [int(count) for count in builder.attrs.ints("vectors_per_class", default=[])]
    kind = builder.attrs.string("post_transform", among=TRANSFORMS)
    a, b = floats(builder, "prob_a"), floats(builder, "prob_b")
    x = rows(builder)
    if not sum(counts):
        return _linear(builder, x, labels, kind, is_probability=a.size > 0)
    if len(counts) != labels.size or labels.size < 2 or min(counts) < 0:
        found = f"{labels.size} classes, and vectors of {len(counts)}"
        builder.refuse(found, "as many, 2 at least")
    scores = _pair_scores(builder, x, counts)
    wins = scores.gt(0).cast(f32)
    label = best_label(builder, _square(wins, 1 - wins, labels.size).reduce("sum", [2]), labels)
    if a.size:
        probabilities = _probabilities(builder, scores, labels.size, a, b)
        return [label, transformed(builder, probabilities, kind).value]
    if labels.size > 2:
        return [label, transformed(builder, scores, kind).value]
    if kind == "PROBIT":
        builder.refuse("post_transform 'PROBIT' of one score", "another one")
    if kind in ("NONE", "LOGISTIC"):
        return [label, transformed(builder, concat([-scores, scores], 1), kind).value]
    return [label, concat([1 - scores, scores], 1).value]


def _linear(
    builder: OnnxLegalizer, x: TensorValue, labels: Array, kind: str, *, is_probability: bool
) -> Results:
    _ignore_kernel(builder)
    coefficients, rho = floats(builder, "coefficients"), floats(builder, "rho")
    if not labels.size or coefficients.size % labels.size or not rho.size:
        found = f"{coefficients.size} coefficients and {rho.size} numbers rho"
        builder.refuse(found, f"as many for each of {labels.size} classes, and one rho")
    scores = product_with(x, coefficients.reshape(labels.size, -1).T) + float(rho[0])
    if labels.size == 1:  # nothing to compare with
        kind = kind if kind == "PROBIT" else "NONE"
    result = transformed(builder, scores, kind).value
    if labels.size != 2 or is_probability:
        return [best_label(builder, scores, labels), result]
    # The second of two classes has it wherever one of the scores is large.
    is_large, most = bool((coefficients >= 0).all()), scores.reduce("max", [1], keep_dims=True)
    second = most.ge(0.5) if is_large else most.gt(0)
    ahead = TensorValue(builder, np.array([[0, 1]])).cast(f32)
    return [best_label(builder, second.where(ahead, scores), labels), result]


def _pair_scores(builder: OnnxLegalizer, x: TensorValue, counts: list[int]) -> TensorValue:
    """
    The scores of all pairs of classes, [samples, pairs]: what the vectors of each of the two make
    with their coefficients against the other one.
    """
    size, total = len(counts), sum(counts)
    coefficients, rho = floats(builder, "coefficients"), floats(builder, "rho")
    pairs = list(combinations(range(size), 2))
    if coefficients.size != (size - 1) * total or rho.size != len(pairs):
        found = f"{coefficients.size} coefficients and {rho.size} numbers rho"
        builder.refuse(found, f"{(size - 1) * total} and {len(pairs)}")
    table = coefficients.reshape(size - 1, total)
    values = _kernel(builder, x, _vectors(builder, total)).value
    parts: list[TensorValue] = []  # of each class against all others
    for start, count in zip(np.cumsum([0, *counts[:-1]]).tolist(), counts, strict=True):
        own = TensorValue(builder, builder.slice_axis(values, 1, start, count))
        parts.append(product_with(own, table[:, start : start + count].T))
    all_parts = concat(parts, 1)
    firsts = _columns(all_parts, [i * (size - 1) + j - 1 for i, j in pairs])
    seconds = _columns(all_parts, [j * (size - 1) + i for i, j in pairs])
    return firsts + seconds + known(builder, rho)


def _columns(x: TensorValue, numbers: list[int]) -> TensorValue:
    index = x.builder.tensor(np.array(numbers, np.int64))
    return TensorValue(x.builder, x.builder.add(GatherOp(x.value, index, 1)))


def _square(above: TensorValue, below: TensorValue, size: int) -> TensorValue:
    """What pairs have, as a matrix a sample, of two sides and zeros on the diagonal."""
    count = size * (size - 1) // 2
    numbers = np.full((size, size), 2 * count)
    for pair, (i, j) in enumerate(combinations(range(size), 2)):
        numbers[i, j], numbers[j, i] = pair, pair + count
    zero = TensorValue.number(above.builder, 0, f32).broadcast([above.dims[0], 1])
    both = concat([above, below, zero], 1)
    return _columns(both, numbers.reshape(-1).tolist()).reshape([above.dims[0], size, size])


# Probabilities


def _probabilities(
    builder: OnnxLegalizer, scores: TensorValue, size: int, a: Array, b: Array
) -> TensorValue:
    """The probability of each class by Platt's sigmoids of the scores of pairs."""
    count = size * (size - 1) // 2
    if a.size != count or b.size != count:
        builder.refuse(f"{a.size} numbers prob_a and {b.size} prob_b", f"{count} of each")
    x = scores * known(builder, a) + known(builder, b)
    large = 1 / ((-x.abs()).exp() + 1)
    first = (1 - x.lt(0).where(1 - large, large)).clip(_SURE, 1 - _SURE)
    return _coupled(builder, _square(first, 1 - first, size))


def _coupled(builder: OnnxLegalizer, ratios: TensorValue) -> TensorValue:
    """
    The probabilities p of classes, from those r of each class against each other one: p minimizes
    p^T Q p with Q[i, i] = sum of r[j, i]^2 and Q[i, j] = -r[j, i] r[i, j] (Wu, Lin and Weng,
    "Probability estimates for multi-class classification by pairwise coupling"). As in libsvm one
    probability after the other is improved, until the error of a sample is small.
    """
    samples, size = ratios.dims[:2]
    classes = size.value or 0
    others = ratios.transpose([0, 2, 1])
    is_own = known(builder, np.eye(classes, dtype=bool))
    squares = (others * others).reduce("sum", [2], keep_dims=True)
    form = is_own.where(squares, -(others * ratios))
    start = TensorValue.number(builder, 1 / classes, f32).broadcast([samples, size])

    block = Block(arg_types=[tensor(i64, []), start.value.type])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    p = TensorValue(inner, block.args[1])
    q = TensorValue(inner, form.value)
    slopes = (q * p.reshape([samples, 1, size])).reduce("sum", [2])
    total = (p * slopes).reduce("sum", [1], keep_dims=True)
    errors = (slopes - total).abs().reduce("max", [1], keep_dims=True)
    is_open = errors.ge(0.005 / classes)
    improved = _improved(inner, q, (p, slopes, total))
    is_any_open = is_open.cast(i64).reduce("sum", [0, 1]).cast(i1)
    inner.insert(YieldOp([is_any_open.value, is_open.where(improved, p).value]))
    rounds, goes_on = builder.dims([_ROUNDS], []), builder.tensor(np.array(True))
    iteration = builder.symbols.fresh(nonnegative=True)
    loop = LoopOp(rounds, goes_on, [start.value], Region(block), iteration=iteration)
    return TensorValue(builder, builder.insert(loop)[0])


def _improved(builder: OnnxLegalizer, form: TensorValue, state: State) -> TensorValue:
    """One round over all classes: the probabilities, from them, Q p and p^T Q p."""
    samples, size = state[0].dims

    def step(inner: OnnxLegalizer, number: Expr, before: State) -> tuple[State, State]:
        p, slopes, total = before
        row = TensorValue(inner, form.value).pick(1, number)
        own, slope = (value.pick(1, number).reshape([samples, 1]) for value in (row, slopes))
        change = (total - slope) / own
        scale = change + 1
        is_this = TensorValue.iota(inner, size).eq(TensorValue.dim(inner, number))
        p = (p + is_this.cast(f32) * change) / scale
        total = (total + change * (change * own + slope * 2)) / scale / scale
        return (p, (slopes + row * change) / scale, total), ()

    states, _ = run_steps(builder, size, [value.value for value in state], step)
    return TensorValue(builder, states[0])
