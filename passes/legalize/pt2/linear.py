"""Convolutions, products of matrices, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, element_type, f64, i1, i32, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.activation import safe_softmax
from lowerdeck.passes.legalize.common.decomposition import swapped
from lowerdeck.passes.legalize.common.linear import (
    blocks_of_products,
    contracted,
    convolution,
    cross,
    einsum,
    matmul,
    power_of_matrix,
    product_of_groups,
    transposed_convolution,
)
from lowerdeck.passes.legalize.common.movement import enlarged
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, broadcast_values
from lowerdeck.passes.legalize.tf1.applied import applied


def _in_result(builder: Pt2Legalizer, *names: str) -> list[SSAValue]:
    """Tensors in the type of the result, into which autocast casts them."""
    return [builder.cast(builder.input(name), builder.element()) for name in names]


def _optional(builder: Pt2Legalizer, name: str) -> SSAValue | None:
    value = builder.optional(name)
    return None if value is None else builder.cast(value, builder.element())


# Convolutions


@legalizes("convolution", "_convolution", "_convolution_mode")
@legalizes(*(f"conv{kind}{k}d" for kind in ("", "_transpose") for k in (1, 2, 3)))
def legalize_convolution(builder: Pt2Legalizer) -> Results:
    """
    Images with or without a batch; `same` puts the odd cell at the end. Weights of transposed
    convolutions are [in, out / groups, ...].
    """
    x, weight = _in_result(builder, "input", "weight")
    bias, rank = _optional(builder, "bias"), rank_of(weight) - 2
    x, back = builder.batched(x, rank + 2)
    strides, dilations = (builder.ints_of(name, rank) for name in ("stride", "dilation"))
    groups = builder.integer("groups")
    if "transpose" in builder.name or (builder.has("transposed") and builder.flag("transposed")):
        padding, more = (builder.ints_of(name, rank) for name in ("padding", "output_padding"))
        return back(
            transposed_convolution(
                builder,
                x,
                weight,
                bias,
                strides=strides,
                dilations=dilations,
                pads_begin=padding,
                pads_end=padding,
                output_padding=more,
                groups=groups,
            )
        )
    begin, end = _padding(builder, weight, dilations, rank)
    window = Window(dims_of(weight)[2:], strides, dilations, begin, end, [Expr.const(0)] * rank)
    return back(convolution(builder, x, weight, bias, window, groups))


def _padding(
    builder: Pt2Legalizer, weight: SSAValue, dilation: Sequence[int], rank: int
) -> tuple[list[Expr], list[Expr]]:
    given = builder.get("padding")
    if not isinstance(given, str):
        amounts = [Expr.const(number) for number in builder.ints_of("padding", rank)]
        return amounts, amounts
    if given == "valid":
        return [Expr.const(0)] * rank, [Expr.const(0)] * rank
    totals = [(k - 1) * d for k, d in zip(dims_of(weight)[2:], dilation, strict=True)]
    begin = [total // 2 for total in totals]
    return begin, [total - half for total, half in zip(totals, begin, strict=True)]


# Products


@legalizes("linear")
def legalize_linear(builder: Pt2Legalizer) -> Results:
    """x times the transposed weights, plus the bias; half precision is rounded once."""
    x, weight = _in_result(builder, "input", "weight")
    bias = _optional(builder, "bias")
    order = list(range(rank_of(weight)))[::-1]
    found = _wide_product(builder, x, builder.transpose(weight, order))
    found = found if bias is None else found + TensorValue.of(builder, bias).cast(found.element)
    return found.cast(element_type(x)).value


def _wide_product(builder: Pt2Legalizer, a: SSAValue, b: SSAValue) -> TensorValue:
    """A product to which something is added before half precision is rounded."""
    wide = wide_element(a)
    accumulator = None if wide == element_type(a) else wide
    return TensorValue(builder, matmul(builder, a, b, accumulator=accumulator))


_PAIRS = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "matmul": ("self", "other"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
}


@legalizes(*_PAIRS)
def legalize_product(builder: Pt2Legalizer) -> Results:
    """Products of matrices, batches of them, and vectors."""
    a, b = _in_result(builder, *_PAIRS[builder.name])
    return matmul(builder, a, b)


@legalizes("addmm", "addmv", "baddbmm", "addr", "addbmm")
def legalize_sum_of_product(builder: Pt2Legalizer) -> Results:
    """beta * self + alpha * product; half precision is rounded once."""
    names = {"addmm": ("mat1", "mat2"), "addmv": ("mat", "vec"), "addr": ("vec1", "vec2")}
    a, b = _in_result(builder, *names.get(builder.name, ("batch1", "batch2")))
    if builder.name == "addr":
        a, b = builder.unsqueeze(a, [1]), builder.unsqueeze(b, [0])
    found = _wide_product(builder, a, b)
    if builder.name == "addbmm":
        found = found.reduce("sum", [0])
    element = found.element
    alpha, beta = builder.get("alpha"), builder.get("beta")
    found = found if alpha == 1 else found * builder.operand("alpha", element)
    if beta == 0:
        return found.cast(builder.element())
    x = TensorValue.of(builder, builder.cast(builder.input(), element))
    x = x if beta == 1 else x * builder.operand("beta", element)
    return (found + x).cast(builder.element())


@legalizes("_grouped_mm", "transformers.grouped_mm_fallback", "_int_mm")
def legalize_grouped(builder: Pt2Legalizer) -> Results:
    """Groups of consecutive rows, each times a matrix of its own; `offs` is where they end."""
    if builder.name == "_int_mm":
        a, b = (builder.cast(builder.input(name), i32) for name in ("self", "mat2"))
        return matmul(builder, a, b)
    names = ("self", "mat2") if builder.has("mat2") else ("input", "weight")
    x, weight = _in_result(builder, *names)
    offs = builder.optional("offs")
    if offs is None or rank_of(x) != 2 or rank_of(weight) != 3:
        builder.refuse("groups of other dimensions", "rows and a matrix for each group")
    return product_of_groups(builder, x, weight, builder.cast(offs, i64))


@legalizes("outer", "ger", "inner", "kron")
def legalize_outer(builder: Pt2Legalizer) -> Results:
    """Products of all pairs, of last dimensions, or of blocks."""
    names = ("self", "vec2") if builder.has("vec2") else ("self", "other")
    a, b = (TensorValue.of(builder, value) for value in _in_result(builder, *names))
    if builder.name == "kron":
        return blocks_of_products(a, b)
    if builder.name != "inner":
        return a.column(2, 0) * b.column(2, 1)
    if not a.dims or not b.dims:
        return a * b
    last = [len(a.dims) - 1], [len(b.dims) - 1]
    return contracted(builder, a.value, b.value, ([], []), last)


@legalizes("einsum")
def legalize_einsum(builder: Pt2Legalizer) -> Results:
    """Sums of products by labels."""
    values = [builder.cast(value, builder.element()) for value in builder.inputs("tensors")]
    return einsum(builder, builder.text("equation").replace(" ", ""), values)


@legalizes("bilinear")
def legalize_bilinear(builder: Pt2Legalizer) -> Results:
    """x1 weight x2, plus the bias."""
    a, weight, b = _in_result(builder, "input1", "weight", "input2")
    found = TensorValue(builder, einsum(builder, "...i,oij,...j->...o", [a, weight, b]))
    bias = _optional(builder, "bias")
    return found.value if bias is None else (found + TensorValue.of(builder, bias)).value


@legalizes("_trilinear")
def legalize_trilinear(builder: Pt2Legalizer) -> Results:
    """The product of three tensors with new dimensions, summed."""
    values: list[TensorValue] = []
    for number in "123":
        value = builder.input(f"i{number}")
        axes = builder.get(f"expand{number}")
        value = builder.unsqueeze(value, sorted(axes)) if axes else value
        values.append(TensorValue.of(builder, value))
    total = values[0] * values[1] * values[2]
    summed = builder.get("sumdim")
    return total.reduce("sum", sorted(summed)).value if summed else total.value


@legalizes("tensordot")
def legalize_tensordot(builder: Pt2Legalizer) -> Results:
    """Products summed over dimensions of each side."""
    a, b = _in_result(builder, "self", "other")
    left, right = list("abcdefgh"[: rank_of(a)]), list("ijklmnop"[: rank_of(b)])
    firsts, seconds = ([], [])
    if builder.get("dims_self"):
        firsts = builder.axes(builder.ints_of("dims_self"), rank_of(a))
        seconds = builder.axes(builder.ints_of("dims_other"), rank_of(b))
    for first, second in zip(firsts, seconds, strict=True):
        right[second] = left[first]
    kept = [c for k, c in enumerate(left) if k not in firsts]
    kept += [c for k, c in enumerate(right) if k not in seconds]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(kept)}"
    return einsum(builder, equation, [a, b])


@legalizes("linalg_multi_dot", "chain_matmul")
def legalize_chain(builder: Pt2Legalizer) -> Results:
    """A product of several matrices, from the left."""
    first, *rest = [
        builder.cast(value, builder.element())
        for value in builder.inputs("tensors" if builder.has("tensors") else "matrices")
    ]
    for value in rest:
        first = matmul(builder, first, value)
    return first


@legalizes("matrix_power", "linalg_matrix_power")
def legalize_matrix_power(builder: Pt2Legalizer) -> Results:
    """Products of a matrix with itself."""
    x, count = builder.input(), builder.integer("n")
    if abs(count) > _MOST_FACTORS:
        builder.refuse(f"the power {count}", f"-{_MOST_FACTORS} to {_MOST_FACTORS}")
    side = dims_of(x)[-1]
    if count == 0:
        row = TensorValue.iota(builder, side)
        eye = row.column(2, 0).eq(row.column(2, 1)).cast(element_type(x))
        return builder.broadcast(eye.value, dims_of(x))
    if count < 0:
        (x,), count = applied(builder, "MatrixInverse", x), -count
    return power_of_matrix(builder, x, count)


_MOST_FACTORS = 64


@legalizes("cross", "linalg_cross")
def legalize_cross(builder: Pt2Legalizer) -> Results:
    """The cross product of vectors of three."""
    a, b = broadcast_values(builder.stated("self"), builder.stated("other"))
    rank = len(a.dims)
    if builder.get("dim") is None:
        axis = next(k for k, dim in enumerate(a.dims) if dim == 3)
    else:
        axis = builder.axis(builder.integer("dim"), rank)
    return cross(a, b, axis)


# Attention


@legalizes(
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
)
def legalize_attention(builder: Pt2Legalizer) -> Results:
    """
    softmax(q k^T * scale + mask) v. Where a mask hides every key of a query the result is zero;
    a causal mask is aligned at the upper left.
    """
    if builder.number("dropout_p", 0.0):
        builder.refuse("random numbers", "dropout_p 0", "call model.eval()")
    q, k, v = _in_result(builder, "query", "key", "value")
    if builder.has("enable_gqa") and builder.flag("enable_gqa"):
        parts, heads = [TensorValue(builder, x) for x in (k, v)], dims_of(q)[-3]
        k, v = (enlarged(x, len(x.dims) - 3, [heads // x.dims[-3]]).value for x in parts)
    length = dims_of(q)[-1]
    scale: TensorValue | float
    if builder.get("scale") is not None:
        scale = float(builder.number("scale"))
    elif length.value is not None:
        scale = 1 / math.sqrt(max(length.value, 1))
    else:
        root = apply(SqrtOp, TensorValue.dim(builder, length).cast(f64))
        scale = (1 / root).cast(wide_element(q))
    name = "attn_mask" if builder.has("attn_mask") else "attn_bias"
    mask = builder.optional(name) if builder.has(name) else None
    if mask is not None and rank_of(mask) < 2:
        mask = builder.unsqueeze(mask, list(range(2 - rank_of(mask))))
    if builder.flag("is_causal"):
        rows, columns = dims_of(q)[-2], dims_of(k)[-2]
        here = TensorValue.iota(builder, columns).column(2, 1)
        causal = here.le(TensorValue.iota(builder, rows).column(2, 0))
        mask = causal.value
    scores = _wide_product(builder, q, swapped(builder, k)) * scale
    element = scores.element
    if mask is None:
        weights = builder.add(SoftmaxOp(scores.value, len(scores.dims) - 1))
        return matmul(builder, builder.cast(weights, element_type(v)), v)
    if TensorValue(builder, mask).element == i1:
        zero, low = (builder.scalar(number, element) for number in (0.0, -math.inf))
        mask = builder.select(mask, zero, low)
    scores = scores + TensorValue.of(builder, builder.cast(mask, element))
    shares = safe_softmax(scores, len(scores.dims) - 1).cast(element_type(v))
    return matmul(builder, shares.value, v)
