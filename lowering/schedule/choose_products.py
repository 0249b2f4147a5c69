"""How matrix products run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd, prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.kernels.products import COLUMN, row_labels
from lowerdeck.lowering.schedule.parameters import Part, Schedule, parts_of
from lowerdeck.lowering.schedule.rules import (
    Choice,
    fits,
    is_constant,
    layout_in,
    schedule_rule,
)
from lowerdeck.lowering.targets import Machine

PAGE = 4096
"""Bytes between places that meet in one set of the first cache."""

WAYS = 8
"""Lines of one set of the first cache."""

APART = 2.0
"""Cycles between two lines that come from the second cache."""

VECTORS = 8
"""The most vectors in a row of a tile: what one stream of memory needs."""

LATENCY = 4.0
"""Cycles of a multiply-add."""

AROUND = 24.0
"""About how many cycles it takes to begin and end a tile, beside its sums."""

UNKNOWN = 64
"""What a dimension that is known only at run time is taken to be."""


@schedule_rule(MatmulOp)
def choose_matmul(kernel: KernelOp, op: MatmulOp, machine: Machine) -> Choice | None:
    """
    A tile of rows of the left matrix by vectors of columns. Panels of columns are the outer loop if
    the right matrix is larger than the left one, so that the larger one is read once. A constant
    right matrix is packed, panel after panel.
    """
    element = element_type(op.result)
    if machine.lanes == 1 or element not in (f32, f64):
        return None
    if element == f64:
        if any(element_type(value) != f64 for value in (*kernel.inputs, *kernel.results)):
            return None
        machine = _of_doubles(machine)
    result = kernel.layout_at(len(kernel.inputs))
    if not (result.is_row_major and layout_in(kernel, op.rhs).is_row_major):
        return None
    axis = _tiled_axis(op)
    dims = dims_of(op.result)
    rows, columns, depth = map(_number, (dims[axis], dims[-1], dims_of(op.lhs)[-1]))
    height, count = best_tile(machine, rows, columns, depth)
    rank = len(dims)
    labels = row_labels(rank)
    row = labels.pop(axis)
    order = [*labels, row, COLUMN]
    if (_size(op.rhs) > _size(op.lhs)) != machine.other_order:
        order = [*labels, COLUMN, row]
    layouts: dict[SSAValue, LayoutAttr] = {}
    ahead = None
    if is_constant(kernel, op.rhs):
        layouts[op.rhs] = panels(len(dims_of(op.rhs)), machine.lanes * count)
        # Where each panel is read but once, the machine finds out by itself what comes next.
        if order[-1] == row and rows >= 2 * height and len(dims_of(op.rhs)) == 2:
            ahead = kernel.body.block.args.index(op.rhs)
    tiles = ((row, height), (COLUMN, count))
    return Choice(Schedule(tiles, tuple(order), ((COLUMN, machine.lanes),), ahead), layouts)


def _of_doubles(machine: Machine) -> Machine:
    """The machine for elements of eight bytes: half of them in a vector, and in a cache."""
    return replace(machine, lanes=machine.lanes // 2, l1=machine.l1 // 2, l2=machine.l2 // 2)


def panels(rank: int, width: int) -> LayoutAttr:
    """[..., n / width][k][n % width] of a matrix [..., k, n]."""
    batch = [Piece(axis) for axis in range(rank - 2)]
    columns = rank - 1
    return LayoutAttr.of([*batch, Piece(columns, width), Piece(rank - 2), Piece(columns, 1, width)])


def _size(value: SSAValue) -> int:
    return prod(_number(dim) for dim in dims_of(value))


def _number(dim: Expr) -> int:
    return UNKNOWN if dim.value is None else dim.value


def _tiled_axis(op: MatmulOp) -> int:
    """The rows; where there is but one, matrices of a batch that meet the same right matrix."""
    dims, right = dims_of(op.result), dims_of(op.rhs)
    rows = axis = len(dims) - 2
    while axis and dims[axis] == 1:
        axis -= 1
        position = axis - len(dims) + len(right)
        if position >= 0 and right[position] != 1:
            return rows
    return rows if dims[axis] == 1 else axis


def best_tile(
    machine: Machine,
    rows: int,
    columns: int,
    depth: int,
    vectors: Iterable[int] | None = None,
) -> tuple[int, int]:
    """
    Rows and vectors of the tile that takes the least time for a product with sums of `depth`
    terms; `vectors` limits the choice.
    """
    if vectors is None:
        # A panel is read once for each tile of rows: it has to stay in the second cache.
        panel = machine.l2 // 2 // (depth * machine.lanes * 4)
        vectors = range(1, max(1, min(VECTORS, columns // machine.lanes, panel)) + 1)

    def cost(tile: tuple[int, int]) -> float:
        height, count = tile
        return sum(
            _trips(row)
            * _trips(column)
            * _cycles(row.count, column.count, depth, machine, is_last=rows <= height)
            for row in parts_of(Expr.const(rows), height, 1)
            for column in parts_of(Expr.const(columns), count, machine.lanes)
        )

    candidates = [
        (height, count)
        for count in vectors
        for height in range(1, min(rows, machine.registers) + 1)
        if fits(machine, height, count)
    ]
    return machine.best(candidates, cost)


def _cycles(rows: int, vectors: int, depth: int, machine: Machine, *, is_last: bool) -> float:
    """
    About how long one tile takes: two multiply-adds or two loads a cycle, no less than what their
    latency allows, nor than what the second cache takes for a panel that the first one cannot hold
    (or that no other tile reads: `is_last`), and for rows that displace each other because they lie
    a multiple of a page apart.
    """
    sums, loads = rows * vectors, rows + vectors
    panel = depth * vectors * machine.lanes * 4
    far = vectors if is_last or panel > machine.l1 // 2 else 0
    if rows > WAYS * (PAGE // gcd(PAGE, depth * 4)):
        far += rows
    return depth * max(sums / 2, loads / 2, LATENCY, far * APART) + AROUND + sums


def _trips(part: Part) -> int:
    return ((part.upper - part.lower).value or 0) // part.step
