"""Products of matrices of bytes on processors without vectors: words along the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, rank_of, static_shape
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests.contraction import add_product, factor_element
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.byte_sums import (
    WORD,
    cycles_of_words,
    is_byte,
    pairs_of_word,
    tiles_of_words,
    with_pairs,
)
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    is_constant,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN, row_labels
from lowerdeck.lowering.targets.base import Target


class ByteProducts(Strategy):
    """
    Matrix products: words of adjacent terms, along the rows of the left matrix and the columns of
    the right one, a constant that is transposed, for tiles of rows by columns.
    """

    name = "byte_products"
    anchors = (MatmulOp,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op = the(MatmulOp, kernel)
        columns, depth = dims_of(op.result)[-1].value, dims_of(op.lhs)[-1].value
        if columns is None or depth is None or depth < WORD:
            return
        if not _has_byte_products(kernel, op, setting.target):
            return
        *batch, rows, _ = assumed_shape(op.result)
        labels = row_labels(rank_of(op.result))
        for tile in tiles_of_words(setting.target, (rows, columns)):
            names = (labels[-1], COLUMN)
            schedule = Schedule(self.name, tuple(zip(names, tile, strict=True)), (*labels, COLUMN))
            cycles = cycles_of_words(setting.target, (rows, columns), tile, -(-depth // WORD))
            yield Candidate(prod(batch) * cycles, schedule)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        count, rank = schedule.tile(COLUMN), rank_of(op.rhs)
        batch, k, n = [Piece(axis) for axis in range(rank - 2)], rank - 2, rank - 1
        depth, columns = (dims_of(op.rhs)[axis].value or 0 for axis in (k, n))
        if count == 1 or depth % WORD or columns % count:
            return {op.rhs: LayoutAttr.of([*batch, Piece(n), Piece(k)])}
        pieces = [Piece(n, count), Piece(k, WORD), Piece(n, 1, count), Piece(k, 1, WORD)]
        return {op.rhs: LayoutAttr.of([*batch, *pieces])}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(MatmulOp, k.kernel)
        dims = dims_of(op.result)
        labels = [*row_labels(len(dims)), COLUMN]
        with k.builder.labeled_nest(list(zip(labels, dims, strict=True)), parallel=True) as at:
            k.finish(op, at, _product(k, op, at))


def _has_byte_products(kernel: KernelOp, op: MatmulOp, target: Target) -> bool:
    """
    True for a product of bytes by a constant, each with one zero point or none, that lie in order,
    on a target that widens words.
    """
    if not target.isa.byte_additions or op.accumulator != i32 or op.packing is not None:
        return False
    if not all(value in kernel.body.block.args for value in op.factors):
        return False
    if not is_constant(kernel, op.rhs) or static_shape(op.rhs) is None:
        return False
    is_in_order = layout_out(kernel).is_row_major and layout_in(kernel, op.lhs).is_row_major
    is_single = all(dim == 1 for zero in op.zero_points for dim in dims_of(zero))
    return is_in_order and is_single and all(map(is_byte, op.operands))


def _product(k: KernelLowering, op: MatmulOp, at: Index) -> SSAValue:
    """An element of the result: words of terms before single ones."""
    b, dims, depth = k.builder, dims_of(op.result), dims_of(op.rhs)[-2].value
    assert depth is not None
    left, right = (
        broadcast_index(at[:-2], dims_of(factor)[:-2], dims[:-2]) for factor in op.factors
    )

    def add_word(word: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        x = pairs_of_word(k, op, 0, [*left, at[-2], word * WORD])
        w = pairs_of_word(k, op, 1, [*right, word * WORD, at[-1]])
        return [with_pairs(k, x, w, values[0])]

    def add_one(term: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        x = factor_element(k, op, 0, [*left, at[-2], term])
        w = factor_element(k, op, 1, [*right, term, at[-1]])
        return [add_product(k, op, x, w, values[0])]

    total = b.carry(depth // WORD, [b.integer(0, i32)], add_word)
    rest = (Expr.const(depth // WORD * WORD), Expr.const(depth))
    if depth % WORD == 0:
        return total[0]
    return b.carry_nest([rest], total, lambda i, values: add_one(i[0], values))[0]
