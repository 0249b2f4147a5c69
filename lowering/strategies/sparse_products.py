"""Products with matrices of which only some blocks are there: one element per lane, in tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import SparseProductOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.sparse import sum_of_blocks
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.costs import Scored, fits, reduction_cycles, scored
from lowerdeck.lowering.strategies.facts import (
    assumed_shape,
    assumed_size,
    blocked_constants,
    layout_in,
    layout_out,
    the,
)
from lowerdeck.lowering.targets.base import F32_BYTES, FEWEST_LANES, Target

PANEL = "panel"
"""The label of the loop over panels of columns."""

COLUMN = "oc"
"""The label of the loop over the vectors of a panel."""

POSITION = "x"
"""
The label of the loop over the vectors of an image, or of a row of it, or over rows of a matrix;
`b0`, `b1`, ... are those around it.
"""


class SparseProducts(Strategy):
    """
    Tiles of vectors of the input by the columns of a panel, whose blocks are read one after the
    other. Panels are the outer loop if there is more in blocks than in the input.
    """

    name = "sparse_products"
    anchors = (SparseProductOp,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(SparseProductOp, kernel), setting.target
        panels, width, _ = op.sizes
        lanes = lanes_along(kernel, op.result, op.axis.data, target)
        if lanes is None or width % lanes:
            return
        outer, space = _loops(op, _outer(kernel, op))
        images = prod(assumed_size(dim) for _, dim in outer)
        blocks, size = assumed_shape(op.blocks)[0], assumed_size(space)
        labels = [label for label, _ in outer]
        orders = ((PANEL, *labels, POSITION), (*labels, POSITION, PANEL))
        is_small = blocks * width < prod(assumed_shape(op.input))
        ways = sparse_tiles(target, (panels, width // lanes), lanes, (images, size), blocks)
        for cycles, columns in ways:
            best = orders[::-1] if is_small else orders
            for factor, order in zip((1.0, target.costs.other_order), best, strict=True):
                tiles = ((POSITION, columns), (COLUMN, width // lanes))
                schedule = Schedule(self.name, tiles, (*order, COLUMN))
                yield Candidate(cycles * factor / setting.threads, schedule)

    def packed(self, kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
        lanes = layout_out(kernel).inner(1)
        return blocked_constants(kernel, lanes) if lanes > 1 else {}

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op = the(SparseProductOp, k.kernel)
        (panels, width, _), axis = op.sizes, op.axis.data
        vectors = schedule.tile(COLUMN)
        own = {PANEL, POSITION, COLUMN}
        outer, space = _loops(op, len([label for label in schedule.order if label not in own]))
        loops = [*outer, (PANEL, Expr.const(panels)), (POSITION, space)]
        b = k.builder
        dims = dims_of(op.result)
        inner = [*dims[:axis], *dims[axis + 1 :]][len(outer) :]
        with (
            b.labeled_nest([*loops, (COLUMN, Expr.const(vectors))], parallel=True) as at,
            b.loop(width // vectors, label="lane", mode="lanes") as lane,
        ):
            *around, panel, position, vector = at
            column = vector * (width // vectors) + lane
            where = [*around, *_unraveled(position, inner)]
            where.insert(axis, panel * width + column)
            k.finish(op, where, sum_of_blocks(k, op, where, (panel, column)))


def lanes_along(kernel: KernelOp, result: SSAValue, axis: int, target: Target) -> int | None:
    """
    How many elements along an axis are computed side by side: those of a block of channels, or of
    rows whose elements lie side by side. None if they lie otherwise.
    """
    layout, dims = layout_out(kernel), dims_of(result)
    if target.lanes == 1:
        return 1 if layout.is_row_major else None
    lanes = layout.inner(axis)
    if layout.is_row_major and axis == len(dims) - 1:
        lanes = gcd(dims[axis].value or 0, target.lanes)
    return lanes if lanes >= FEWEST_LANES else None


def sparse_tiles(
    target: Target, panels: tuple[int, int], lanes: int, images: tuple[int, int], blocks: int
) -> Scored[int]:
    """
    Vectors of the input in a tile: for a number of panels, and how many vectors one has, a number
    of images, and how many vectors of the input one has.
    """
    (number, vectors), (count, size) = panels, images
    sizes, depth = (number * vectors, size), -(-blocks // number)
    read = blocks * vectors * lanes * F32_BYTES / target.machine.memory_bytes_per_cycle

    def cost(columns: int) -> float:
        tile = (vectors, columns)
        # The row of a block is read, too.
        cycles = reduction_cycles(target, sizes, tile, depth, lambda extents: sum(extents) + 1)
        return max(count * cycles / target.costs.efficiency, read)

    most = min(size, target.machine.registers)
    return scored((k for k in range(1, most + 1) if fits(target, k, vectors)), cost)


def _loops(op: SparseProductOp, outer: int) -> tuple[list[tuple[str, Expr]], Expr]:
    """So many loops around that over vectors of the input, and how many of these there are."""
    dims = list(dims_of(op.result))
    del dims[op.axis.data]
    return [(f"b{k}", dim) for k, dim in enumerate(dims[:outer])], product(dims[outer:])


def _outer(kernel: KernelOp, op: SparseProductOp) -> int:
    """
    How many dimensions lie around vectors of the input that are in line: all but one, or those
    before the axis where the next vector lies beside one even where a row ends, in the input as in
    the result.
    """
    axis, dims = op.axis.data, dims_of(op.result)
    layouts = (layout_in(kernel, op.input), layout_out(kernel))
    edges = [e for at in layouts for e in (*at.data.begin[axis + 1 :], *at.data.end[axis + 1 :])]
    is_stored = op.input in kernel.body.block.args
    is_in_line = is_stored and not any(edges) and all(dim != 0 for dim in dims)
    return axis if is_in_line and axis < len(dims) - 1 else len(dims) - 2


def _unraveled(index: Expr, dims: Sequence[Expr]) -> list[Expr]:
    """An index in line as one along each dimension; not by `mod`: an address is in line again."""
    found: list[Expr] = []
    for axis in range(1, len(dims)):
        size = product(dims[axis:])
        found.append(index // size)
        index -= found[-1] * size
    return [*found, index]
