"""
The operators of ai.onnx.ml on numbers: scaling, encoding, linear models and support vectors.

What the specification leaves open is as ONNX Runtime has it. Trees are in `trees.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import PowOp, SigmoidOp, SqrtOp, TanhOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, is_float, rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.linear import matmul
from lowerdeck.passes.legalize.onnx.conversion import convert
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Array, Quantity, concat
from lowerdeck.passes.legalize.special import apply

ML = "ai.onnx.ml"


def known(lower: OnnxLegalizer, array: Array) -> Quantity:
    """A constant."""
    return Quantity(lower, array)


def floats(lower: OnnxLegalizer, name: str) -> Array:
    """A list attribute as f32; empty if it is absent."""
    return np.array(lower.attrs.floats(name, default=[]), np.float32)


def rows(lower: OnnxLegalizer, name: str = "X") -> Quantity:
    """An input in f32 as a matrix whose rows are samples; a vector is one."""
    x = lower.operand(name)
    if rank_of(x) not in (1, 2):
        lower.refuse(f"'{name}' of {rank_of(x)} dimensions", "1 or 2")
    x = x if rank_of(x) == 2 else lower.unsqueeze(x, [0])
    return Quantity.of(lower, convert(lower, x, f32))


def product_with(x: Quantity, weights: Array) -> Quantity:
    """The matrix product with a constant."""
    lower = x.lower
    assert isinstance(lower, OnnxLegalizer)
    return Quantity(lower, matmul(lower, x.value, lower.tensor(np.ascontiguousarray(weights))))


# Preparation


@legalizes("Scaler", domain=ML)
def legalize_scaler(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(x - offset) * scale in f32, for all features or one by one."""
    x = Quantity.of(lower, convert(lower, lower.operand("X"), f32))
    offset, scale = floats(lower, "offset"), floats(lower, "scale")
    _require_sizes(lower, x, offset, scale)
    if offset.size:
        x = x - known(lower, offset)
    return [(x * known(lower, scale) if scale.size else x).value]


def _require_sizes(lower: OnnxLegalizer, x: Quantity, *arrays: Array) -> None:
    size = x.dims[-1].value
    for array in arrays:
        if array.size > 1 and array.size != size:
            lower.refuse(f"{array.size} numbers", f"1 or {size}, as there are features")


@legalizes("Normalizer", domain=ML)
def legalize_normalizer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Each row by its largest element, the sum of its absolute values, or its length."""
    x = Quantity.of(lower, convert(lower, lower.operand("X"), f32))
    axis = [len(x.dims) - 1]
    match lower.attrs.string("norm", among=("MAX", "L1", "L2")):
        case "MAX":
            size = x.reduce("max", axis, keep_dims=True)
        case "L1":
            size = x.abs().reduce("sum", axis, keep_dims=True)
        case _:
            size = apply(SqrtOp, (x * x).reduce("sum", axis, keep_dims=True))
    one = Quantity.number(lower, 1, f32)
    return [(x / size.eq(0).where(one, size)).value]


@legalizes("Imputer", domain=ML)
def legalize_imputer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """One value, which may be NaN, replaced by others, for all features or one by one."""
    value = lower.operand("X")
    x, is_real = Quantity.of(lower, value), is_float(element_type(value))
    kind = "float" if is_real else "int64"
    lower.attrs.ignore("imputed_value_floats", "imputed_value_int64s")
    lower.attrs.ignore("replaced_value_float", "replaced_value_int64")
    if is_real:
        replaced = lower.attrs.float("replaced_value_float", default=0.0)
        given = lower.attrs.floats("imputed_value_floats")
    else:
        replaced = lower.attrs.int("replaced_value_int64", default=0)
        given = lower.attrs.ints("imputed_value_int64s")
    imputed = np.array(given, np.float64 if is_real else np.int64)
    if not imputed.size:
        lower.refuse(f"no attribute 'imputed_value_{kind}s'", "it to be given")
    _require_sizes(lower, x, imputed)
    missing = x.ne(x) if math.isnan(replaced) else x.eq(replaced)
    return [missing.where(known(lower, imputed).cast(x.element), x).value]


@legalizes("Binarizer", domain=ML)
def legalize_binarizer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """1 above the threshold, 0 else."""
    x = Quantity.of(lower, lower.operand("X"))
    threshold = Quantity.number(lower, lower.attrs.float("threshold"), f32)
    return [x.cast(f32).gt(threshold).cast(x.element).value]


@legalizes("FeatureVectorizer", domain=ML)
def legalize_feature_vectorizer(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The features of all inputs side by side, in f32."""
    lower.attrs.ignore("inputdimensions")  # the inputs have them
    parts: list[Quantity] = []
    for value in lower.inputs:
        value = value if rank_of(value) > 1 else lower.unsqueeze(value, [0])
        parts.append(Quantity.of(lower, convert(lower, value, f32)))
    return [concat(parts, 1).value]


@legalizes("OneHotEncoder", domain=ML)
def legalize_one_hot_encoder(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """1 in the place of the category along a new last dimension, 0 else."""
    x = lower.operand("X")
    if lower.attrs.has("cats_strings"):
        lower.refuse("categories that are strings", "integers")
    if not lower.attrs.flag("zeros"):
        lower.refuse("an error for what is no category", "zeros = 1")
    categories = np.array(lower.attrs.ints("cats_int64s"), np.int64)
    index = Quantity.of(lower, convert(lower, x, i64))
    return [index.reshape([*dims_of(x), 1]).eq(known(lower, categories)).cast(f32).value]


_KINDS = ("tensor", "floats", "int64s")


@legalizes("LabelEncoder", domain=ML, since=2)
def legalize_label_encoder(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    The value that belongs to a key, of keys that are equal the first; a default else. From version
    4 on NaN is a key like others.
    """
    x = Quantity(lower, lower.operand("X"))
    keys, values = (_table(lower, side) for side in ("keys", "values"))
    if is_float(x.element) != (keys.dtype.kind == "f"):
        lower.refuse(f"keys of {keys.dtype} for {x.element}", "one type")
    if keys.size != values.size:
        lower.refuse(f"{keys.size} keys and {values.size} values", "as many")
    lower.attrs.ignore("default_float", "default_int64", "default_string", "default_tensor")
    if (given := _optional_tensor(lower, "default_tensor")) is not None:
        default = given.reshape(-1)[:1].astype(values.dtype)
    elif values.dtype.kind == "f":
        default = np.array([lower.attrs.float("default_float", default=-0.0)], values.dtype)
    else:
        default = np.array([lower.attrs.int("default_int64", default=-1)], values.dtype)
    table = known(lower, keys).cast(x.element)
    column = x.reshape([*x.dims, 1])
    found = column.eq(table)
    if is_float(x.element) and op.since_version >= 4:
        found = found | (column.ne(column) & table.ne(table))
    last = len(x.dims)
    place = lower.add(ArgReduceOp("max", found.cast(i64).value, last, False))
    value = Quantity(lower, lower.add(GatherOp(lower.tensor(values), place, 0)))
    is_known = Quantity(lower, found.cast(i64).reduce("max", [last]).value).gt(0)
    return [is_known.where(value, known(lower, default.reshape(()))).value]


def _table(lower: OnnxLegalizer, side: str) -> Array:
    """The keys or the values, whichever attribute has them."""
    if lower.attrs.has(f"{side}_strings"):
        lower.refuse(f"{side} that are strings", "numbers")
    if (given := _optional_tensor(lower, f"{side}_tensor")) is not None:
        return given.reshape(-1)
    if lower.attrs.has(f"{side}_floats"):
        return np.array(lower.attrs.floats(f"{side}_floats"), np.float32)
    return np.array(lower.attrs.ints(f"{side}_int64s"), np.int64)


def _optional_tensor(lower: OnnxLegalizer, name: str) -> Array | None:
    if not lower.attrs.has(name):
        return None
    found = lower.attrs.tensor(name)
    if found is not None and found.dtype == object:
        lower.refuse(f"strings in '{name}'", "numbers")
    return found


# What becomes of scores

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def transformed(lower: OnnxLegalizer, scores: Quantity, kind: str) -> Quantity:
    """A `post_transform` along the last dimension."""
    last = len(scores.dims) - 1
    match kind:
        case "NONE":
            return scores
        case "LOGISTIC":
            return apply(SigmoidOp, scores)
        case "SOFTMAX":
            powers = (scores - scores.reduce("max", [last], keep_dims=True)).exp()
            return powers / powers.reduce("sum", [last], keep_dims=True)
        case "SOFTMAX_ZERO":
            powers = (scores - scores.reduce("max", [last], keep_dims=True)).exp()
            zero = Quantity.number(lower, 0, f32)
            powers = scores.abs().gt(1e-7).where(powers, zero)
            total = powers.reduce("sum", [last], keep_dims=True)
            return powers / total.eq(0).where(Quantity.number(lower, 1, f32), total)
        case _:
            return lower.refuse(f"post_transform '{kind}'", f"one of {', '.join(TRANSFORMS[:4])}")


def integer_labels(lower: OnnxLegalizer, name: str) -> Array:
    """The classes of a classifier."""
    if lower.attrs.has("classlabels_strings"):
        lower.refuse("classes that are strings", "integers")
    return np.array(lower.attrs.ints(name, default=[]), np.int64)


def best_label(lower: OnnxLegalizer, scores: Quantity, labels: Array) -> SSAValue:
    """The label of the largest score in each row, the first of equal ones."""
    place = lower.add(ArgReduceOp("max", scores.value, 1, False))
    return place if _is_counting(labels) else lower.add(GatherOp(lower.tensor(labels), place, 0))


def _is_counting(labels: Array) -> bool:
    return np.array_equal(labels, np.arange(labels.size))


def chosen(lower: OnnxLegalizer, condition: Quantity, labels: Sequence[int]) -> SSAValue:
    """The second label where a condition holds, the first else."""
    yes, no = (Quantity.number(lower, labels[k], i64) for k in (1, 0))
    return condition.where(yes, no).value


# Linear models


@legalizes("LinearRegressor", domain=ML)
def legalize_linear_regressor(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x * coefficients^T + intercepts"""
    targets = lower.attrs.int("targets")
    scores = _linear(lower, rows(lower), floats(lower, "coefficients"), targets)
    return [transformed(lower, scores, lower.attrs.string("post_transform")).value]


def _linear(lower: OnnxLegalizer, x: Quantity, coefficients: Array, count: int) -> Quantity:
    features = x.dims[1].value
    if not count or coefficients.size % count or features != coefficients.size // count:
        lower.refuse(
            f"{coefficients.size} coefficients", f"{count} for each of {x.dims[1]} features"
        )
    scores = product_with(x, coefficients.reshape(count, -1).T)
    intercepts = floats(lower, "intercepts")
    return scores + known(lower, intercepts) if intercepts.size else scores


@legalizes("LinearClassifier", domain=ML)
def legalize_linear_classifier(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    The class with the largest score, and all scores; a single score decides between two classes by
    its sign, and the first class has what it leaves of one.
    """
    labels = integer_labels(lower, "classlabels_ints")
    coefficients, kind = floats(lower, "coefficients"), lower.attrs.string("post_transform")
    lower.attrs.ignore("multi_class")
    count = len(lower.attrs.floats("intercepts", default=[])) or len(labels)
    scores = _linear(lower, rows(lower), coefficients, count)
    if count > 1:
        return [best_label(lower, scores, labels), transformed(lower, scores, kind).value]
    if len(labels) != 2:
        lower.refuse(f"one score and {len(labels)} classes", "2 classes")
    label = chosen(lower, scores.gt(0), labels.tolist())
    label = lower.reshape(label, [scores.dims[0]])
    if kind not in ("NONE", "LOGISTIC"):
        lower.refuse(f"post_transform '{kind}' of one score", "NONE or LOGISTIC")
    second = transformed(lower, scores, kind)
    return [label, concat([1 - second, second], 1).value]


# Support vectors


def _kernel(lower: OnnxLegalizer, x: Quantity, vectors: Array) -> Quantity:
    """What a kernel function makes of each row and each of the vectors."""
    kind = lower.attrs.string("kernel_type", among=("LINEAR", "POLY", "RBF", "SIGMOID"))
    given = [*lower.attrs.floats("kernel_params", default=[]), 0.0, 0.0, 0.0]
    gamma, constant, degree = (float(number) for number in given[:3])
    if kind == "RBF":
        differences = x.reshape([x.dims[0], 1, x.dims[1]]) - known(lower, vectors)
        return ((differences * differences).reduce("sum", [2]) * -gamma).exp()
    products = product_with(x, vectors.T)
    if kind == "LINEAR":
        return products
    products = products * gamma + constant
    if kind == "SIGMOID":
        return apply(TanhOp, products)
    return Quantity(lower, lower.add(PowOp(products.value, lower.scalar(degree, f32))))


@legalizes("SVMRegressor", domain=ML)
def legalize_svm_regressor(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The kernel of the row and each vector, weighted; without vectors, a linear model."""
    x, count = rows(lower), lower.attrs.int("n_supports")
    coefficients, rho = floats(lower, "coefficients"), floats(lower, "rho")
    if lower.attrs.flag("one_class"):
        lower.refuse("a model of one class", "a regression")
    if count:
        values = _kernel(lower, x, floats(lower, "support_vectors").reshape(count, -1))
    else:
        lower.attrs.ignore("kernel_type", "kernel_params", "support_vectors")
        values = x
    scores = product_with(values, coefficients.reshape(-1, 1)) + float(rho[0])
    return [transformed(lower, scores, lower.attrs.string("post_transform")).value]
