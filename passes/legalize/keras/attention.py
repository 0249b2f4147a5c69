"""Attention."""

from __future__ import annotations

import math
from typing import Any, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, rank_of
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.common.movement import enlarged
from lowerdeck.passes.legalize.keras.activation import (
    masked,
    masked_softmax,
    softmax,
    softmax_over,
    tanh,
)
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import truth
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _kernel(builder: KerasLegalizer, name: str) -> SSAValue:
    kernel = builder.require_weight(f"{name}_dense/kernel")
    if not is_float(element_type(kernel)):
        builder.refuse("quantized projections", "floats")
    return kernel


def _projected(builder: KerasLegalizer, x: SSAValue, name: str) -> TensorValue:
    """[..., D] by a kernel [D, heads, size], with a bias."""
    kernel = _kernel(builder, name)
    letters = _LETTERS[: rank_of(x) - 1]
    value = TensorValue(builder, einsum(builder, f"{letters}x,xyz->{letters}yz", [x, kernel]))
    bias = builder.weight(f"{name}_dense/bias")
    return value if bias is None else value + TensorValue(builder, bias)


def _combined(builder: KerasLegalizer, x: SSAValue, name: str) -> SSAValue:
    """[..., heads, size] by a kernel [heads, size, ...], with a bias."""
    kernel = _kernel(builder, name)
    letters = _LETTERS[: rank_of(x) - 2]
    more = "uvw"[: rank_of(kernel) - 2]
    value = einsum(builder, f"{letters}yz,yz{more}->{letters}{more}", [x, kernel])
    bias = builder.weight(f"{name}_dense/bias")
    return value if bias is None else builder.add(AddOp(value, bias))


def _truth(builder: KerasLegalizer, value: Any) -> TensorValue:
    if not isinstance(value, SSAValue):
        builder.refuse("a mask that is no tensor", "a tensor")
    return truth(TensorValue(builder, cast("SSAValue", value)))


def _both(first: TensorValue | None, second: TensorValue) -> TensorValue:
    return second if first is None else first & second


@legalizes("MultiHeadAttention")
def legalize_multi_head(builder: KerasLegalizer) -> Results:
    """Scaled products of queries and keys, by heads, over one axis or several."""
    builder.ignore("use_bias", "output_shape", "value_dim", "num_heads", "zero_masked")
    builder.ignore("flash_attention", "query_shape", "key_shape", "value_shape")
    query, value = builder.input(0, "query"), builder.input(1, "value")
    key = builder.input(2, "key") if builder.has(2, "key") else value
    rank = rank_of(query)
    axes = builder.config("attention_axes")
    axes = builder.axes_of([*range(1, rank - 1)] if axes is None else axes, rank)
    q, k = _projected(builder, query, "query"), _projected(builder, key, "key")
    v = _projected(builder, value, "value")
    q = q * (1 / math.sqrt(builder.integer("key_dim")))
    batch = [axis for axis in range(rank - 1) if axis not in axes]
    names = {axis: _LETTERS[axis] for axis in range(rank - 1)}
    left = "".join(names[axis] for axis in range(rank - 1))
    targets = {axis: _LETTERS[axis].upper() for axis in axes}
    right = "".join(targets.get(axis, names[axis]) for axis in range(rank - 1))
    shape = "".join(names[axis] for axis in batch) + "y"
    rows = "".join(names[builder.axis(axis, rank - 1)] for axis in axes)  # not the last one
    columns = "".join(targets[axis] for axis in axes)
    equation = f"{left}yz,{right}yz->{shape}{rows}{columns}"
    scores = TensorValue(builder, einsum(builder, equation, [q.value, k.value]))
    mask = _attention_mask(builder, query, value, axes, len(batch))
    last = range(len(scores.dims) - len(axes), len(scores.dims))
    returned = bool(builder.keyword("return_attention_scores"))
    as_layer = returned or bool(builder.config("dropout", 0)) or rank != 3
    weights = masked_softmax(
        builder, scores, mask, lambda x: softmax_over(x, last), as_layer=as_layer
    )
    equation = f"{shape}{rows}{columns},{right}yz->{left}yz"
    result = _combined(builder, einsum(builder, equation, [weights.value, v.value]), "output")
    return [result, weights.value] if returned else [result]


def _attention_mask(
    builder: KerasLegalizer, query: SSAValue, value: SSAValue, axes: list[int], batches: int
) -> TensorValue | None:
    """What each query may look at, for [batch..., heads, queries, keys]."""
    found: TensorValue | None = None
    given = {
        name: builder.keyword(name)
        for name in ("query_mask", "value_mask", "key_mask", "attention_mask")
    }
    causal = builder.keyword("use_causal_mask")
    if all(mask is None for mask in given.values()) and not causal:
        return None
    if given["attention_mask"] is not None and len(builder.positional()) > 3:
        builder.refuse("an attention mask without its name", "attention_mask=")
    if axes != [1] or batches != 1:
        if causal or any(given[name] is not None for name in given if name != "attention_mask"):
            builder.refuse("masks of several axes", "one axis")
    if given["query_mask"] is not None:
        mask = _truth(builder, given["query_mask"])
        found = _both(found, mask.reshape([*mask.dims, 1]))
    for name in ("value_mask", "key_mask"):
        if given[name] is not None:
            mask = _truth(builder, given[name])
            found = _both(found, mask.reshape([mask.dims[0], 1, mask.dims[1]]))
    if causal:
        found = _both(found, _causal(builder, query, value))
    if given["attention_mask"] is not None:
        found = _both(found, _truth(builder, given["attention_mask"]))
    assert found is not None
    dims = found.dims
    wanted = batches + 1 + 2 * len(axes)
    if len(dims) < wanted:
        split = len(dims) - 2 * len(axes)
        found = found.reshape([*dims[:split], *[1] * (wanted - len(dims)), *dims[split:]])
    return found


def _causal(builder: KerasLegalizer, query: SSAValue, value: SSAValue) -> TensorValue:
    """True where a key is not after its query."""
    rows = index_vector(builder, dims_of(query)[1], 3, 1)
    columns = index_vector(builder, dims_of(value)[1], 3, 2)
    return rows.ge(columns)


@legalizes("GroupQueryAttention")
def legalize_group_query(builder: KerasLegalizer) -> Results:
    """Attention in which several heads of queries share one of keys and values."""
    builder.ignore("use_bias", "flash_attention", "zero_masked")
    query, value = builder.input(0, "query"), builder.input(1, "value")
    key = builder.input(2, "key") if builder.has(2, "key") else value
    times = builder.integer("num_query_heads") // builder.integer("num_key_value_heads")
    q = _projected(builder, query, "_query") * (1 / math.sqrt(builder.integer("head_dim")))
    k = enlarged(_projected(builder, key, "_key"), 2, [times])
    v = enlarged(_projected(builder, value, "_value"), 2, [times])
    scores = TensorValue(builder, einsum(builder, "btnh,bsnh->bnts", [q.value, k.value]))
    mask = _attention_mask(builder, query, value, [1], 1)
    returned = bool(builder.keyword("return_attention_scores"))
    as_layer = returned or bool(builder.config("dropout", 0))
    weights = masked_softmax(builder, scores, mask, softmax, as_layer=as_layer)
    found = einsum(builder, "bnts,bsnh->btnh", [weights.value, v.value])
    result = _combined(builder, found, "_output")
    return [result, weights.value] if returned else [result]


@legalizes("Attention", "AdditiveAttention")
def legalize_attention(builder: KerasLegalizer) -> Results:
    """Of queries, values and perhaps keys; scores are products, or sums of tanh."""
    builder.ignore("use_scale")
    values = [TensorValue(builder, v) for v in builder.operands()]
    for value in values:
        builder.require_rank(value.value, 3, "sequence")
    q, v, k = (*values, values[1])[:3]
    scale = builder.weight("scale")
    if builder.op_type == "Attention" and builder.config("score_mode", "dot") == "dot":
        scores = TensorValue(builder, einsum(builder, "btd,bsd->bts", [q.value, k.value]))
        scores = scores if scale is None else scores * TensorValue(builder, scale)
    else:
        queries = q.reshape([q.dims[0], q.dims[1], 1, q.dims[2]])
        keys = k.reshape([k.dims[0], 1, k.dims[1], k.dims[2]])
        total, share = queries + keys, builder.weight("concat_score_weight")
        number = None if scale is None else TensorValue(builder, scale)
        if share is None:
            total = tanh(total) if number is None else tanh(total) * number
            scores = total.reduce("sum", [3])
        else:
            total = tanh(total if number is None else total * number)
            scores = total.reduce("sum", [3]) * TensorValue(builder, share)
    masks = cast("list[Any]", builder.argument(1, "mask") or [])
    allowed: TensorValue | None = None
    if len(masks) > 1 and masks[1] is not None:
        mask = _truth(builder, masks[1])
        allowed = mask.reshape([mask.dims[0], 1, mask.dims[1]])
    if builder.config("causal", False) or builder.keyword("use_causal_mask"):
        allowed = _both(allowed, _causal(builder, q.value, v.value))
    scores = masked(scores, allowed, 65504.0)
    weights = softmax(scores)
    result = TensorValue(builder, einsum(builder, "bts,bsd->btd", [weights.value, v.value]))
    if masks and masks[0] is not None:
        mask = _truth(builder, masks[0]).cast(result.element)
        result = result * mask.reshape([*mask.dims, 1])
    returned = builder.keyword("return_attention_scores")
    return [result.value, weights.value] if returned else [result.value]
