"""`merge-products`: the projections that attention reads are one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SplitOp
from lowerdeck.dialects.core.types import dims_of, rank_of, static_shape
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer

Array: TypeAlias = NDArray[Any]
Kind: TypeAlias = tuple[SSAValue, bool, tuple[Expr, ...]]


@record
class Projection:
    """One operand of an attention: reshape(x @ weight + bias, [rows..., heads, width])."""

    operand: int
    input: SSAValue
    weight: Array
    bias: Array | None
    rows: tuple[Expr, ...]
    """The dimensions of the result before `heads` and `width`."""
    heads: Expr
    width: Expr
    consumed: tuple[Operation, ...]

    @property
    def kind(self) -> Kind:
        """What projections that can be merged have in common."""
        return self.input, self.bias is None, (*self.rows, self.width)


def _projection(op: AttentionOp, index: int) -> Projection | None:
    """How an operand is made, if it is used only here; weight and bias are constant."""
    value = op.operands[index]
    reshape = producer(value, ReshapeOp)
    if reshape is None or not value.has_one_use() or not reshape.input.has_one_use():
        return None
    add = producer(reshape.input, AddOp)
    matmul = producer(reshape.input if add is None else add.lhs, MatmulOp)
    if matmul is None or not matmul.result.has_one_use() or rank_of(matmul.rhs) != 2:
        return None
    if not matmul.is_uniform:
        return None
    *rows, heads, width = reshape.dims.data
    *before, columns = dims_of(matmul.result)
    if heads * width != columns or product(rows) != product(before):
        return None
    try:
        weight = constant_array(matmul.rhs)
        bias = None if add is None else _row(add.rhs, columns)
    except ElidedBlobError:
        return None
    if weight is None or (add is not None and bias is None):
        return None
    consumed = (reshape, matmul) if add is None else (reshape, add, matmul)
    return Projection(index, matmul.lhs, weight, bias, tuple(rows), heads, width, consumed)


def _row(value: SSAValue, columns: Expr) -> Array | None:
    """The numbers of a constant with one number a column, and no other dimension."""
    array, shape = constant_array(value), static_shape(value)
    if array is None or not shape or columns != shape[-1] or array.size != shape[-1]:
        return None
    return array.reshape(-1)


class MergeProducts(Pattern[list[Projection]]):
    """attention(x @ a, x @ b, ...) -> attention of the parts of x @ [a, b]"""

    name = "merge-products"
    roots = (AttentionOp,)
    ranked = True

    def match(self, op: AttentionOp) -> Match[list[Projection]] | None:
        found = [_projection(op, index) for index in range(3)]
        groups: dict[Kind, list[Projection]] = {}
        for projection in found:
            if projection is not None:
                groups.setdefault(projection.kind, []).append(projection)
        for members in groups.values():
            if len(members) > 1:
                consumed = [part for member in members for part in member.consumed]
                return Match((op, *consumed), "products of the same rows", members)
        return None

    def rewrite(self, match: Match[list[Projection]], rewriter: Rewriter) -> None:
        op, members = match.root, match.data
        weight = ConstantOp.of(np.concatenate([member.weight for member in members], 1))
        value = rewriter.add(MatmulOp(members[0].input, rewriter.add(weight).result)).result
        biases = [member.bias for member in members if member.bias is not None]
        if biases:
            bias = rewriter.add(ConstantOp.of(np.concatenate(biases))).result
            value = rewriter.add(AddOp(value, bias)).result
        heads = [member.heads for member in members]
        total = sum(heads, Expr.const(0))
        dims = [*members[0].rows, total, members[0].width]
        apart = rewriter.add(ReshapeOp(value, dims)).result
        split = rewriter.add(SplitOp(apart, len(dims) - 2, heads))
        operands = list(op.operands)
        for member, part in zip(members, split.parts, strict=True):
            operands[member.operand] = part
        rewriter.set_operands(op, operands)


class MergeProductsPass(PatternPass):
    """
    Matrix products of the same rows, whose results attention reads, as one.

    - attention(reshape(x @ a + c), reshape(x @ b + d), ...)
      -> attention(p, q, ...), p and q the parts of reshape(x @ [a, b] + [c, d])
      [a, b, c, d constant; the reshapes split columns into heads of one width; used only here]

    It pays there: the rows are read once, one product is easier to divide than several small ones,
    and attention reads a part of the heads where it lies. Other users would have to copy their
    part, or lose their place in the epilogue of the product.
    """

    name = "merge-products"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [MergeProducts()]
