"""Estimated run time of a kernel, from its loops: only for comparison with thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import arith, math, scf
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.tiles import TILE, DotTilesOp
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.targets.base import Target

ASSUMED_SIZE = 64
"""The assumed value of a dimension that is known only at run time, and of an index from data."""

_SLOW = (arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, math.SqrtOp)
"""Ops as slow as a division."""

_FREE = (arith.ConstantOp, arith.IndexCastOp, kernel.ApplyOp, kernel.YieldOp, scf.YieldOp)
"""Ops that are part of others: numbers, addresses, the ends of loops."""

_FUNCTIONS = tuple(
    cls for cls in math.Math.operations if cls not in (math.AbsFOp, math.FmaOp, math.SqrtOp)
)
"""The ops that are functions of the C library."""

Values = Mapping[SSAValue, int]


def estimated_range(loop: kernel.ForOp, values: Values) -> tuple[int, int, int]:
    """Where a loop begins, before what it ends, and its step."""
    return _range(loop, values)


def estimated_trips(loop: kernel.ForOp, values: Values | None = None) -> int:
    """The trip count of a loop, with variables of enclosing loops in the middle of their ranges."""
    lower, upper, step = _range(loop, values or {})
    return max(-(-(upper - lower) // step), 0)


def middle_values(block: Block) -> dict[SSAValue, int]:
    """
    The variables of all loops in a block in the middle of their ranges, and the indices that are
    computed from them.
    """
    known: dict[SSAValue, int] = {}
    for op in block.walk():
        if isinstance(op, kernel.ForOp):
            known[op.body.block.args[0]] = _middle(op, known)
        elif isinstance(op, kernel.ApplyOp):
            known[op.result] = _evaluate(op.map.data[0], op.indices, known)
    return known


def estimated_steps(op: Operation, target: Target, values: Values | None = None) -> float:
    """The vector operations that an op executes, or what takes as long."""
    values = values or {}
    if isinstance(op, kernel.ForOp):
        inner = {**values, op.body.block.args[0]: _middle(op, values)}
        return estimated_trips(op, values) * (1 + steps_of_block(op.body.block, target, inner))
    if op.regions:
        blocks = [block for region in op.regions for block in region.blocks]
        steps = max(steps_of_block(block, target, values) for block in blocks)
        return steps if len(blocks) > 1 else steps / target.costs.rare_branch
    if isinstance(op, DotTilesOp):
        exprs = op.map.data[-3:]
        counts = (-(-_evaluate(expr, op.indices, values) // TILE) for expr in exprs)
        return prod(counts) * target.machine.tile_product_cycles
    if isinstance(op, _SLOW):
        return target.costs.division_steps
    if isinstance(op, _FUNCTIONS):
        return target.costs.function_steps
    if isinstance(op, _FREE):
        return 0
    values_of = (*op.operands, *op.results)
    return 1 if any(lanes_of(value.type) for value in values_of) else target.costs.scalar_steps


def steps_of_block(block: Block, target: Target, values: Values | None = None) -> float:
    """The same for all ops of a block; `values` holds the known values of computed indices."""
    known, total = dict(values or {}), 0.0
    for op in block.ops:
        if isinstance(op, kernel.ApplyOp):
            known[op.result] = _evaluate(op.map.data[0], op.indices, known)
        total += estimated_steps(op, target, known)
    return total


def _middle(loop: kernel.ForOp, values: Values) -> int:
    lower, upper, _ = _range(loop, values)
    return (lower + max(upper - 1, lower)) // 2


def _range(loop: kernel.ForOp, values: Values) -> tuple[int, int, int]:
    lower, upper, step = (_evaluate(expr, loop.indices, values) for expr in loop.range.data)
    return lower, upper, max(step, 1)


def _evaluate(expr: Expr, indices: Sequence[SSAValue], values: Values) -> int:
    operands = by_operand([values.get(value, ASSUMED_SIZE) for value in indices])
    return expr.evaluate({name: operands.get(name, ASSUMED_SIZE) for name in expr.symbols})
