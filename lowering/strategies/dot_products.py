"""Matrix products of few columns: the lanes are terms of a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.nests.sums import PART, sum_in_parts
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.costs import fits, reduction_cycles, scored
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    assumed_size,
    can_be_packed,
    in_blocks,
    is_constant,
    is_of,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN, row_labels

TERMS = "terms"
"""The parameter of a schedule: those in a vector."""


class DotProducts(Strategy):
    """
    Vectors along the rows of the left matrix, whose lanes are added up at the end: for sums that
    are long, of fewer columns than would fill a vector. The right matrix is transposed, at run time
    if it is no constant, or has one column.
    """

    name = "dot_products"
    anchors = (MatmulOp,)
    parameters = (TERMS,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        lanes = target.lanes_of(element_type(op.result))
        columns, depth = (dims_of(value)[-1].value for value in (op.result, op.lhs))
        if (
            lanes == 1
            or columns is None
            or not 0 < columns < target.lanes
            or not is_of(op, f32, f64)
        ):
            return
        if depth is None and columns == 1:
            depth = assumed_size(op.depth)
        if depth is None or depth < lanes or in_blocks(op.rhs) is not None:
            return
        if not (layout_out(kernel).is_row_major and layout_in(kernel, op.lhs).is_row_major):
            return
        if columns == 1 and not is_constant(kernel, op.rhs):
            if not layout_in(kernel, op.rhs).is_row_major:
                return
        elif not can_be_packed(kernel, op.rhs):
            return
        *batch, rows, _ = assumed_shape(op.result)
        steps = -(-depth // lanes)
        ways = [
            (height, width)
            for height in range(1, min(rows, 8) + 1)
            for width in range(1, columns + 1)
            if columns % width == 0 and fits(target, height, width)
        ]
        # The lanes of each sum are added up in about as many steps as it has lanes.
        sums = rows * columns * lanes

        def cost(tile: Sequence[int]) -> float:
            return sums + reduction_cycles(target, [rows, columns], tile, steps, sum)

        labels = row_labels(len(dims_of(op.result)))
        count = 1
        for size in batch:
            count *= size
        for cycles, (height, width) in scored(ways, cost):
            tiles, order = ((labels[-1], height), (COLUMN, width)), (*labels, COLUMN)
            schedule = Schedule(self.name, tiles, order, parameters=((TERMS, lanes),))
            yield Candidate(cycles * count, schedule)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        op = the(MatmulOp, kernel)
        rank = len(dims_of(op.rhs))
        if dims_of(op.rhs)[-1] == 1 and not is_constant(kernel, op.rhs):
            return {}
        axes = [*range(rank - 2), rank - 1, rank - 2]
        return {op.rhs: LayoutAttr.of([Piece(axis) for axis in axes])}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """Independent loops over the elements of the result, and a sum in lanes in each of them."""
        op = the(MatmulOp, k.kernel)
        dims = dims_of(op.result)
        labels = [*row_labels(len(dims)), COLUMN]
        with k.builder.labeled_nest(list(zip(labels, dims, strict=True)), parallel=True) as at:
            k.finish(op, at, _sum(k, op, at, schedule.parameter(TERMS)))


def _sum(k: KernelLowering, op: MatmulOp, at: Index, lanes: int) -> SSAValue:
    """The sum of products; what does not fill a vector is in one that begins before it."""
    b, dims, element = k.builder, dims_of(op.result), element_type(op.result)
    left = [*broadcast_index(at[:-2], dims_of(op.lhs)[:-2], dims[:-2]), at[-2]]
    right = broadcast_index(at[:-2], dims_of(op.rhs)[:-2], dims[:-2])
    zero = scalars.constant(b, 0, element)

    def factors(i: Expr) -> tuple[SSAValue, SSAValue]:
        return k.element(op.lhs, [*left, i]), k.element(op.rhs, [*right, i, at[-1]])

    def add_vectors(lane: Expr, first: Expr, count: ExprLike, start: SSAValue) -> SSAValue:
        return b.carry(
            count,
            [start],
            lambda i, values: [b.fma(*factors((first + i) * lanes + lane), values[0])],
        )[0]

    if (depth := op.depth.value) is None:
        return _open_sum(k, op.depth, lanes, (add_vectors, factors), zero)

    def add_lane(lane: Expr, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
        def add(first: Expr, count: int, start: SSAValue) -> SSAValue:
            return add_vectors(lane, first, count, start)

        total = sum_in_parts(b, depth // lanes, PART, zero, add)
        if rest := depth % lanes:
            number, first = b.as_integer(lane, i32), b.integer(lanes - rest, i32)
            x, y = factors(lane + (depth - lanes))
            is_new = b.add(arith.CmpiOp(number, first, "sge"))
            product = b.add(arith.SelectOp(is_new, scalars.mul(b, x, y), zero))
            total = scalars.add(b, total, product)
        return [scalars.add(b, totals[0], total)]

    return b.carry(lanes, [zero], add_lane, mode="lanes")[0]


def _open_sum(
    k: KernelLowering,
    depth: Expr,
    lanes: int,
    parts: tuple[
        Callable[[Expr, Expr, ExprLike, SSAValue], SSAValue],
        Callable[[Expr], tuple[SSAValue, SSAValue]],
    ],
    zero: SSAValue,
) -> SSAValue:
    """The sum of an unknown number of products: what does not fill a vector comes one by one."""
    b, (add_vectors, factors) = k.builder, parts
    whole = depth // lanes
    total = b.carry(
        lanes,
        [zero],
        lambda lane, totals: [
            scalars.add(b, totals[0], add_vectors(lane, Expr.const(0), whole, zero))
        ],
        mode="lanes",
    )
    return b.carry(depth, total, lambda i, values: [b.fma(*factors(i), values[0])], whole * lanes)[
        0
    ]
