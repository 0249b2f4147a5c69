"""The element types of results where no file states them: PyTorch's rules, by operator."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue, TypeAttribute

from lowerdeck.dialects.core.types import element_type, f32, f64, i1, i32, i64, is_float, ui8
from lowerdeck.passes.legalize.common.promotion import category, promoted_elements
from lowerdeck.passes.legalize.pt2.complex import complex_element
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer

_BOOLEAN = frozenset(
    "eq ne lt le gt ge greater greater_equal less less_equal not_equal logical_and logical_or "
    "logical_xor logical_not isnan isinf isfinite isneginf isposinf isclose isin signbit and_ or_ "
    "sym_not all any".split()
)
_INDEX = frozenset(
    "argmax argmin argsort nonzero argwhere nonzero_numpy count_nonzero one_hot randperm "
    "tril_indices triu_indices sym_size sym_numel sym_stride sym_storage_offset "
    "_shape_as_tensor nms".split()
)
_INDEX_SECOND = frozenset(
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d topk sort median nanmedian kthvalue cummax cummin _pack_padded_sequence "
    "_pad_packed_sequence _unique _unique2 unique_dim unique_consecutive".split()
)
_SUMS = frozenset("sum prod cumsum cumprod nansum trace vander".split())
_FLOATING = frozenset(
    "acos acosh angle asin asinh atan atanh atan2 arctan2 arccos arccosh arcsin arcsinh arctan "
    "arctanh copysign cos cosh deg2rad digamma div divide i0 ldexp polygamma "
    "true_divide erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 logaddexp logit mean "
    "rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh xlogy softmax log_softmax std "
    "var logsumexp selu elu trapezoid trapz cumulative_trapezoid cov corrcoef "
    "celu gelu silu mish softplus log_sigmoid nanmean cosine_similarity pairwise_distance cdist "
    "dist linalg_vector_norm linalg_matrix_norm norm logcumsumexp margin_ranking_loss".split()
)
_FLOATS_BY_DEFAULT = frozenset(
    "zeros ones empty empty_strided eye rand randn linspace logspace scalar_tensor hann_window "
    "hamming_window blackman_window bartlett_window kaiser_window fft_fftfreq fft_rfftfreq".split()
)
_PROMOTING = (
    "self",
    "other",
    "exponent",
    "end",
    "min",
    "max",
    "tensor1",
    "tensor2",
    "input",
    "value",
    "vec2",
)
"""Arguments that count where an operator promotes."""

_OF_FIRST = frozenset(
    "masked_fill index_fill fill copy view_as expand_as reshape_as threshold hardtanh leaky_relu "
    "constant_pad_nd pad full_like scatter index_put masked_scatter put take hardshrink "
    "softshrink nan_to_num new_full".split()
)
"""Operators of the type of their first tensor, whatever the others are."""


def result_element(builder: Pt2Legalizer, index: int) -> Attribute:
    """
    The element type of a result for the types of the operands.

    It is what PyTorch gives for the operators that have rules of their own; otherwise that of what
    is combined.
    """
    name = builder.name if builder.op.op_type.startswith("aten.") else builder.op.op_type
    name = name.rpartition(".")[2] if not name.startswith("aten") else name
    if (dtype := _asked(builder)) is not None:
        return dtype
    if (complex_ := complex_element(builder)) is not None:
        return complex_
    first = _first(builder)
    if name in _BOOLEAN:
        return ui8 if name in ("all", "any") and first == ui8 else i1
    if (
        name in _INDEX
        or (name == "where" and not builder.has("self"))
        or (index and name in _INDEX_SECOND)
        or (index == 1 and _is_extremum(builder, name))
    ):
        return i64
    if name == "bincount":
        weights = builder.optional("weights")
        return i64 if weights is None else f32 if element_type(weights) == f32 else f64
    if name in ("searchsorted", "bucketize"):
        return i32 if builder.flag("out_int32") else i64
    if name in _SUMS and first is not None:
        return first if is_float(first) else i64
    if name in ("truediv", "float_power"):
        return f64
    if name in ("item", "_local_scalar_dense") and first is not None:
        return (i1, i64, f64)[category(first)]
    if name in _FLOATS_BY_DEFAULT:
        return f32
    if name in ("full", "arange"):
        return _of_numbers(builder)
    if name in ("to", "type_as") and builder.has("other"):
        return element_type(builder.input("other"))
    if name.startswith("dequantize"):
        return f32
    found = _combined(builder, name, first)
    rounds = name in ("div", "divide") and builder.has("rounding_mode")
    is_sum = name in ("l1_loss", "mse_loss") and builder.get("reduction") == 2
    if not is_float(found) and (is_sum or (name == "square" and found == i1)):
        return i64
    is_special = builder.op.op_type.startswith("aten.special_") and name != "round"
    is_floating = name in _FLOATING or is_special
    if is_floating and not is_float(found) and not (rounds and builder.get("rounding_mode")):
        return f32
    return found


def _asked(builder: Pt2Legalizer) -> Attribute | None:
    """The element type that is an argument."""
    dtype = builder.get("dtype") if builder.has("dtype") else None
    return cast(Attribute, dtype) if isinstance(dtype, TypeAttribute) else None


def _first(builder: Pt2Legalizer) -> Attribute | None:
    """The element type of the first operand."""
    operands = builder.op.operands
    return element_type(operands[0]) if operands else None


def _is_extremum(builder: Pt2Legalizer, name: str) -> bool:
    return name in ("max", "min", "aminmax") and builder.has("dim")


def _of_numbers(builder: Pt2Legalizer) -> Attribute:
    """The type that plain numbers have together."""
    kinds = [1] if builder.name == "arange" else []
    for name in ("fill_value", "start", "end", "step"):
        value: Any = builder.get(name) if builder.has(name) else None
        if isinstance(value, SSAValue):
            kinds.append(category(element_type(cast(SSAValue, value))))
        elif value is not None:
            kinds.append(2 if isinstance(value, float) else int(not isinstance(value, bool)))
    return (i1, i64, f32)[max(kinds, default=2)]


def _combined(builder: Pt2Legalizer, name: str, first: Attribute | None) -> Attribute:
    schema = builder.op.schema.arguments
    if name == "where" or builder.op.op_type.startswith(("_operator.", "torch.")):
        names = [key for key in schema if key != "condition"]
        return builder.promoted(*names)
    if name in _OF_FIRST and first is not None:
        return first
    tensors = builder.inputs("tensors") if builder.has("tensors") else []
    if tensors:
        return reduce(promoted_elements, map(element_type, tensors))
    names = [key for key in _PROMOTING if key in schema and _is_number(builder.get(key))]
    if names and any(isinstance(builder.get(key), SSAValue) for key in names):
        return builder.promoted(*names)
    return f32 if first is None else first


def _is_number(value: Any) -> bool:
    return isinstance(value, SSAValue | int | float)
