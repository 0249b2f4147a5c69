"""
The operators of ai.onnx.ml on numbers: scaling, encoding and linear models.

What the specification leaves open is as ONNX Runtime has it. Trees are in `trees.py`, support
vectors in `support_vectors.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SigmoidOp, SqrtOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i64, is_float, rank_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.linear import matmul
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.onnx.conversion import convert
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import Array, TensorValue, concat

ML = "ai.onnx.ml"


def known(builder: OnnxLegalizer, array: Array) -> TensorValue:
    """A constant."""
    return TensorValue(builder, array)


def floats(builder: OnnxLegalizer, name: str) -> Array:
    """A list attribute as f32; empty if it is absent."""
    return np.array(builder.attrs.floats(name, default=[]), np.float32)


def rows(builder: OnnxLegalizer, name: str = "X") -> TensorValue:
    """An input in f32 as a matrix whose rows are samples; a vector is one."""
    x = builder.operand(name)
    if rank_of(x) not in (1, 2):
        builder.refuse(f"'{name}' of {rank_of(x)} dimensions", "1 or 2")
    x = x if rank_of(x) == 2 else builder.unsqueeze(x, [0])
    return TensorValue.of(builder, convert(builder, x, f32))


def product_with(x: TensorValue, weights: Array) -> TensorValue:
    """The matrix product with a constant."""
    builder = x.builder
    assert isinstance(builder, OnnxLegalizer)
    return TensorValue(
        builder, matmul(builder, x.value, builder.tensor(np.ascontiguousarray(weights)))
    )


# Preparation


@legalizes("Scaler", domain=ML)
def legalize_scaler(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """(x - offset) * scale in f32, for all features or one by one."""
    x = TensorValue.of(builder, convert(builder, builder.operand("X"), f32))
    offset, scale = floats(builder, "offset"), floats(builder, "scale")
    _require_sizes(builder, x, offset, scale)
    if offset.size:
        x = x - known(builder, offset)
    return [(x * known(builder, scale) if scale.size else x).value]


def _require_sizes(builder: OnnxLegalizer, x: TensorValue, *arrays: Array) -> None:
    size = x.dims[-1].value
    for array in arrays:
        if array.size > 1 and array.size != size:
            builder.refuse(f"{array.size} numbers", f"1 or {size}, as there are features")


@legalizes("Normalizer", domain=ML)
def legalize_normalizer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Each row by its largest element, the sum of its absolute values, or its length."""
    x = TensorValue.of(builder, convert(builder, builder.operand("X"), f32))
    axis = [len(x.dims) - 1]
    match builder.attrs.string("norm", among=("MAX", "L1", "L2")):
        case "MAX":
            size = x.reduce("max", axis, keep_dims=True)
        case "L1":
            size = x.abs().reduce("sum", axis, keep_dims=True)
        case _:
            size = apply(SqrtOp, (x * x).reduce("sum", axis, keep_dims=True))
    one = TensorValue.number(builder, 1, f32)
    return [(x / size.eq(0).where(one, size)).value]


@legalizes("Imputer", domain=ML)
def legalize_imputer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """One value, which may be NaN, replaced by others, for all features or one by one."""
    value = builder.operand("X")
    x, is_real = TensorValue.of(builder, value), is_float(element_type(value))
    kind = "float" if is_real else "int64"
    builder.attrs.ignore("imputed_value_floats", "imputed_value_int64s")
    builder.attrs.ignore("replaced_value_float", "replaced_value_int64")
    if is_real:
        replaced = builder.attrs.float("replaced_value_float", default=0.0)
        given = builder.attrs.floats("imputed_value_floats")
    else:
        replaced = builder.attrs.int("replaced_value_int64", default=0)
        given = builder.attrs.ints("imputed_value_int64s")
    imputed = np.array(given, np.float64 if is_real else np.int64)
    if not imputed.size:
        builder.refuse(f"no attribute 'imputed_value_{kind}s'", "it to be given")
    _require_sizes(builder, x, imputed)
    missing = x.ne(x) if math.isnan(replaced) else x.eq(replaced)
    return [missing.where(known(builder, imputed).cast(x.element), x).value]


@legalizes("Binarizer", domain=ML)
def legalize_binarizer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """1 above the threshold, 0 else."""
    x = TensorValue.of(builder, builder.operand("X"))
    threshold = TensorValue.number(builder, builder.attrs.float("threshold"), f32)
    return [x.cast(f32).gt(threshold).cast(x.element).value]


@legalizes("FeatureVectorizer", domain=ML)
def legalize_feature_vectorizer(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The features of all inputs side by side, in f32."""
    builder.attrs.ignore("inputdimensions")  # the inputs have them
    parts: list[TensorValue] = []
    for value in builder.inputs:
        value = value if rank_of(value) > 1 else builder.unsqueeze(value, [0])
        parts.append(TensorValue.of(builder, convert(builder, value, f32)))
    return [concat(parts, 1).value]


@legalizes("OneHotEncoder", domain=ML)
def legalize_one_hot_encoder(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """1 in the place of the category along a new last dimension, 0 else."""
    x = builder.operand("X")
    if builder.attrs.has("cats_strings"):
        builder.refuse("categories that are strings", "integers")
    if not builder.attrs.flag("zeros"):
        builder.refuse("an error for what is no category", "zeros = 1")
    categories = np.array(builder.attrs.ints("cats_int64s"), np.int64)
    index = TensorValue.of(builder, convert(builder, x, i64))
    return [index.reshape([*dims_of(x), 1]).eq(known(builder, categories)).cast(f32).value]


_KINDS = ("tensor", "floats", "int64s")


@legalizes("LabelEncoder", domain=ML, since=2)
def legalize_label_encoder(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The value that belongs to a key, of keys that are equal the first; a default else. From version
    4 on NaN is a key like others.
    """
    x = TensorValue(builder, builder.operand("X"))
    keys, values = (_table(builder, side) for side in ("keys", "values"))
    if is_float(x.element) != (keys.dtype.kind == "f"):
        builder.refuse(f"keys of {keys.dtype} for {x.element}", "one type")
    if keys.size != values.size:
        builder.refuse(f"{keys.size} keys and {values.size} values", "as many")
    builder.attrs.ignore("default_float", "default_int64", "default_string", "default_tensor")
    if (given := _optional_tensor(builder, "default_tensor")) is not None:
        default = given.reshape(-1)[:1].astype(values.dtype)
    elif values.dtype.kind == "f":
        default = np.array([builder.attrs.float("default_float", default=-0.0)], values.dtype)
    else:
        default = np.array([builder.attrs.int("default_int64", default=-1)], values.dtype)
    table = known(builder, keys).cast(x.element)
    column = x.reshape([*x.dims, 1])
    found = column.eq(table)
    if is_float(x.element) and op.since_version >= 4:
        found = found | (column.ne(column) & table.ne(table))
    last = len(x.dims)
    place = builder.add(ArgReduceOp("max", found.cast(i64).value, last, False))
    value = TensorValue(builder, builder.add(GatherOp(builder.tensor(values), place, 0)))
    is_known = TensorValue(builder, found.cast(i64).reduce("max", [last]).value).gt(0)
    return [is_known.where(value, known(builder, default.reshape(()))).value]


def _table(builder: OnnxLegalizer, side: str) -> Array:
    """The keys or the values, whichever attribute has them."""
    if builder.attrs.has(f"{side}_strings"):
        builder.refuse(f"{side} that are strings", "numbers")
    if (given := _optional_tensor(builder, f"{side}_tensor")) is not None:
        return given.reshape(-1)
    if builder.attrs.has(f"{side}_floats"):
        return np.array(builder.attrs.floats(f"{side}_floats"), np.float32)
    return np.array(builder.attrs.ints(f"{side}_int64s"), np.int64)


def _optional_tensor(builder: OnnxLegalizer, name: str) -> Array | None:
    if not builder.attrs.has(name):
        return None
    found = builder.attrs.tensor(name)
    if found is not None and found.dtype == object:
        builder.refuse(f"strings in '{name}'", "numbers")
    return found


# What becomes of scores

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def transformed(builder: OnnxLegalizer, scores: TensorValue, kind: str) -> TensorValue:
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
            zero = TensorValue.number(builder, 0, f32)
            powers = scores.abs().gt(1e-7).where(powers, zero)
            total = powers.reduce("sum", [last], keep_dims=True)
            return powers / total.eq(0).where(TensorValue.number(builder, 1, f32), total)
        case "PROBIT":
            return _probit(scores)
        case _:
            return builder.refuse(f"post_transform '{kind}'", f"one of {', '.join(TRANSFORMS)}")


def _probit(scores: TensorValue) -> TensorValue:
    """sqrt(2) * erfinv(2 x - 1) by Winitzki's formula; no number outside of 0 to 1."""
    x, a = scores * 2 - 1, 0.147
    log = ((1 - x) * (1 + x)).log()
    half = log * 0.5 + 2 / (math.pi * a)
    size = apply(SqrtOp, apply(SqrtOp, half * half - log * (1 / a)) - half)
    return x.lt(0).where(-size, size) * math.sqrt(2)


def integer_labels(builder: OnnxLegalizer, name: str) -> Array:
    """The classes of a classifier; those that are strings are numbered."""
    if texts := builder.attrs.opt_strings("classlabels_strings"):
        if builder.attrs.has(name):
            builder.refuse("classes that are strings and integers", "one of them")
        return np.arange(len(texts), dtype=np.int64)
    return np.array(builder.attrs.ints(name, default=[]), np.int64)


def best_label(builder: OnnxLegalizer, scores: TensorValue, labels: Array) -> SSAValue:
    """The label of the largest score in each row, the first of equal ones."""
    place = builder.add(ArgReduceOp("max", scores.value, 1, False))
    return (
        place if _is_counting(labels) else builder.add(GatherOp(builder.tensor(labels), place, 0))
    )


def _is_counting(labels: Array) -> bool:
    return np.array_equal(labels, np.arange(labels.size))


def chosen(builder: OnnxLegalizer, condition: TensorValue, labels: Sequence[int]) -> SSAValue:
    """The second label where a condition holds, the first else."""
    yes, no = (TensorValue.number(builder, labels[k], i64) for k in (1, 0))
    return condition.where(yes, no).value


# Linear models


@legalizes("LinearRegressor", domain=ML)
def legalize_linear_regressor(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x * coefficients^T + intercepts"""
    targets = builder.attrs.int("targets")
    scores = _linear(builder, rows(builder), floats(builder, "coefficients"), targets)
    return [transformed(builder, scores, builder.attrs.string("post_transform")).value]


def _linear(builder: OnnxLegalizer, x: TensorValue, coefficients: Array, count: int) -> TensorValue:
    features = x.dims[1].value
    if not count or coefficients.size % count or features != coefficients.size // count:
        builder.refuse(
            f"{coefficients.size} coefficients", f"{count} for each of {x.dims[1]} features"
        )
    scores = product_with(x, coefficients.reshape(count, -1).T)
    intercepts = floats(builder, "intercepts")
    return scores + known(builder, intercepts) if intercepts.size else scores


@legalizes("ZipMap", domain=ML)
def legalize_zip_map(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The scores as they are: which class each column has is said of the label that goes along."""
    builder.attrs.ignore("classlabels_strings", "classlabels_int64s")
    return [builder.operand("X")]


@legalizes("LinearClassifier", domain=ML)
def legalize_linear_classifier(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The class with the largest score, and all scores; a single score decides between two classes by
    its sign, and the first class has what it leaves of one.
    """
    labels = integer_labels(builder, "classlabels_ints")
    coefficients, kind = floats(builder, "coefficients"), builder.attrs.string("post_transform")
    builder.attrs.ignore("multi_class")
    count = len(builder.attrs.floats("intercepts", default=[])) or len(labels)
    scores = _linear(builder, rows(builder), coefficients, count)
    if count > 1:
        return [best_label(builder, scores, labels), transformed(builder, scores, kind).value]
    if len(labels) != 2:
        builder.refuse(f"one score and {len(labels)} classes", "2 classes")
    label = chosen(builder, scores.gt(0), labels.tolist())
    label = builder.reshape(label, [scores.dims[0]])
    if kind not in ("NONE", "LOGISTIC"):
        builder.refuse(f"post_transform '{kind}' of one score", "NONE or LOGISTIC")
    second = transformed(builder, scores, kind)
    return [label, concat([1 - second, second], 1).value]
