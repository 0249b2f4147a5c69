"""How attention runs."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.lowering.kernels.attention_blocks import CHUNK, COLUMN, KEY, LANE, QUERY
from lowerdeck.lowering.schedule.choose_products import best_tile
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.schedule.rules import Choice, is_constant, schedule_rule
from lowerdeck.lowering.targets import Machine

VECTORS = 2
"""Vectors of queries in a block."""

LARGEST = 1 << 18
"""Bytes that a block may take on the stack."""

LENGTH = 128
"""How many keys' scores are kept, where those of all are too many or nobody knows."""


@schedule_rule(AttentionOp)
def choose_attention(kernel: KernelOp, op: AttentionOp, machine: Machine) -> Choice | None:
    """
    Blocks of as many queries as lie in two vectors, or in one if it is not known how many there
    are. Scores of all keys are kept, if they are known to be few; else of some at a time. Tiles of
    keys by queries for the scores, and of queries by columns for the results, as in other products.
    A constant mask is packed in blocks of queries.
    """
    if machine.lanes == 1 or element_type(op.result) != f32:
        return None
    count = len(kernel.inputs) + len(kernel.results)
    if not all(kernel.layout_at(position).is_row_major for position in range(count)):
        return None
    queries, _, depth = (dim.value for dim in dims_of(op.query)[-3:])
    keys, columns = dims_of(op.key)[-3].value, dims_of(op.result)[-1].value
    if 0 in (queries, keys) or not depth or not columns:
        return None
    most = 1 if queries is None else min(VECTORS, -(-queries // machine.lanes))
    widths = [vectors * machine.lanes for vectors in range(most, 0, -1)]
    fitting = [] if keys is None else [w for w in widths if (keys + depth + 1) * w * 4 <= LARGEST]
    width = (fitting or widths)[0]
    chunk = None if fitting else LENGTH
    if chunk is not None and (chunk + depth + columns + 2) * width * 4 > LARGEST:
        return None
    keys, queries = keys if chunk is None else chunk, width if queries is None else queries
    assert keys is not None
    vectors = width // machine.lanes
    rows, _ = best_tile(machine, keys, width, depth, [vectors])
    height, across = best_tile(machine, min(width, queries), columns, keys)
    tiles = ((KEY, rows), (LANE, vectors), (QUERY, height), (COLUMN, across))
    if chunk is not None:
        tiles += ((CHUNK, chunk),)
    lanes = ((LANE, machine.lanes), (COLUMN, machine.lanes))
    return Choice(Schedule(tiles, (), lanes), _mask_layout(kernel, op, width))


def _mask_layout(kernel: KernelOp, op: AttentionOp, width: int) -> dict[SSAValue, LayoutAttr]:
    """[..., t / width][s][t % width] for a constant mask that differs between queries."""
    if op.mask is None or not is_constant(kernel, op.mask):
        return {}
    rank = len(dims_of(op.mask))
    if rank < 2 or dims_of(op.mask)[-2] == 1:
        return {}
    batch = [Piece(axis) for axis in range(rank - 2)]
    blocks = [Piece(rank - 2, width), Piece(rank - 1), Piece(rank - 2, 1, width)]
    return {op.mask: LayoutAttr.of([*batch, *blocks])}
