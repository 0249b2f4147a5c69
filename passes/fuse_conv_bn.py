"""`fuse-conv-bn`: fold batch normalization into the weights of a convolution or matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import rank_of, static_shape
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.values import Array, constant_values, is_finite, rounded, scale_and_shift

Convolution: TypeAlias = ConvOp | ConvTransposeOp


def scaled_weight(op: Convolution | MatmulOp, weight: Array, scale: Array) -> Array:
    """The weight that scales the result by `scale` in each output channel."""
    if isinstance(op, MatmulOp):
        return weight * scale
    if isinstance(op, ConvOp):
        return weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    # [C, M / groups, kernel...]: the rows of group g make the channels of group g.
    groups = op.groups.data
    rows = weight.reshape(groups, -1, *weight.shape[1:])
    factors = scale.reshape(groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
    return (rows * factors).reshape(weight.shape)


@dataclass(frozen=True)
class Fusion:
    """The constants of the fused op."""

    weight: ConstantOp
    bias: ConstantOp


def _fusion(
    op: Convolution | MatmulOp, weight: SSAValue, bias: SSAValue | None, norm: BatchNormOp
) -> Fusion | None:
    """None unless all of it is constant, and finite after rounding."""
    affine = scale_and_shift(norm)
    arrays = constant_values(weight, *([] if bias is None else [bias]))
    if affine is None or arrays is None:
        return None
    scale, shift = affine
    if bias is not None:
        shift = shift + arrays[1].reshape(-1) * scale
    fusion = Fusion(
        rounded(scaled_weight(op, arrays[0], scale), norm.input), rounded(shift, norm.input)
    )
    return fusion if is_finite(fusion.weight.array, fusion.bias.array) else None


class FuseConvBatchNorm(Pattern[tuple[Convolution, Fusion]]):
    """batch_norm(conv(x, w, b)) -> conv(x, w * s, b * s + t) [conv used once; constants]"""

    name = "fuse-conv-batch-norm"
    roots = (BatchNormOp,)
    ranked = True

    def match(self, op: BatchNormOp) -> Match[tuple[Convolution, Fusion]] | None:
        conv = producer(op.input, ConvOp) or producer(op.input, ConvTransposeOp)
        if conv is None or op.axis.data != 1 or not conv.result.has_one_use():
            return None
        if not conv.is_uniform:
            return None
        fusion = _fusion(conv, conv.weight, conv.bias, op)
        if fusion is None:
            return None
        return Match((op, conv), f"its {conv.name} takes scale and shift", (conv, fusion))

    def rewrite(self, match: Match[tuple[Convolution, Fusion]], rewriter: Rewriter) -> None:
        conv, fusion = match.data
        weight, bias = (rewriter.add(part).result for part in (fusion.weight, fusion.bias))
        rewriter.replace(match.root, conv.with_operands([conv.input, weight, bias]))


class FuseMatmulBatchNorm(Pattern[tuple[MatmulOp, Fusion]]):
    """
    batch_norm(x @ w + b) -> x @ (w * s) + (b * s + t)

    [channels are the columns; w is one matrix, b one number a column, or absent; used once]
    """

    name = "fuse-matmul-batch-norm"
    roots = (BatchNormOp,)
    ranked = True

    def match(self, op: BatchNormOp) -> Match[tuple[MatmulOp, Fusion]] | None:
        consumed: list[Operation] = [op]
        value, bias = op.input, None
        if (add := producer(value, AddOp)) is not None and add.result.has_one_use():
            consumed.append(add)
            value, bias = add.lhs, add.rhs
        matmul = producer(value, MatmulOp)
        if matmul is None or not matmul.result.has_one_use() or rank_of(matmul.rhs) != 2:
            return None
        if not matmul.is_uniform:
            return None
        if op.axis.data != rank_of(op.input) - 1 or not _is_row(bias, matmul):
            return None
        fusion = _fusion(matmul, matmul.rhs, bias, op)
        if fusion is None:
            return None
        reason = "the matrix product takes scale and shift"
        return Match((*consumed, matmul), reason, (matmul, fusion))

    def rewrite(self, match: Match[tuple[MatmulOp, Fusion]], rewriter: Rewriter) -> None:
        matmul, fusion = match.data
        weight, bias = (rewriter.add(part).result for part in (fusion.weight, fusion.bias))
        product = rewriter.add(MatmulOp(matmul.lhs, weight))
        rewriter.replace(match.root, AddOp(product.result, bias))


def _is_row(bias: SSAValue | None, matmul: MatmulOp) -> bool:
    """True if `bias` has one number a column of the product, and no other dimension."""
    if bias is None:
        return True
    shape, columns = static_shape(bias), static_shape(matmul.rhs)
    if shape is None or columns is None or not shape:
        return False
    return shape[-1] == columns[1] and all(dim == 1 for dim in shape[:-1])


class FuseConvBnPass(PatternPass):
    """
    Batch normalization as part of the weights of what is before it.

    With s = scale / sqrt(variance + epsilon) and t = bias - mean * s, per channel:

    - batch_norm(conv(x, w, b)) -> conv(x, w * s, b * s + t), likewise for conv_transpose
    - batch_norm(x @ w + b) -> x @ (w * s) + (b * s + t)

    [all parameters constant and finite; the convolution or product is used only here, its factors
    have the type of its result, and its output channels are the normalized ones]. Computed in
    float64 and rounded once.
    """

    name = "fuse-conv-bn"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseConvBatchNorm(), FuseMatmulBatchNorm()]
