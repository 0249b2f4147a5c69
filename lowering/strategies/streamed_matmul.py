"""Products of one row with a large matrix that is not packed: its rows are read as they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.types import dims_of, element_type, f32
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.costs import are_shared, of_busiest
from lowerdeck.lowering.strategies.facts import assumed_shape, is_constant, the
from lowerdeck.lowering.strategies.tiled_matmul import COLUMN, row_labels, tiled_axis

ROWS = 8
"""Rows of the right matrix that are added up before the result takes their sum."""

CHUNK = "chunk"
"""The parameter of a schedule: columns that one part has."""
CHUNKS = (4096, 2048, 1024, 512)
"""Columns of a part, whose sums so far stay in the L1 cache; shorter ones for threads to share. The
longer streams of memory are, the faster they are read."""
PARTS_OF_A_THREAD = 4
"""The parts that each thread should have, so that one that is left over is not much."""


class StreamedMatmul(Strategy):
    """
    A few rows of the right matrix at a time, from beginning to end: memory is read in long streams,
    where a panel of columns would jump from row to row. The sums so far lie in the output.
    """

    name = "streamed_matmul"
    anchors = (MatmulOp,)
    parameters = (CHUNK,)
    looks_around = False

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        op, target = the(MatmulOp, kernel), setting.target
        values = (*kernel.inputs, *kernel.results)
        layouts = [kernel.layout_at(position) for position in range(len(values))]
        if target.lanes == 1 or not all(layout.is_row_major for layout in layouts):
            return
        if {element_type(v) for v in (op.lhs, op.rhs, op.result, kernel.results[0])} != {f32}:
            return
        if dims_of(op.result)[tiled_axis(op)] != 1 or is_constant(kernel, op.rhs):
            return
        depth, columns = assumed_shape(op.rhs)[-2:]
        if columns < target.lanes:
            return
        # Beside the lines of the matrix, the sums so far are read and written once for some rows.
        # Where there are few columns, each waits for the sum before.
        costs, machine = target.costs, target.machine
        vectors = -(-columns // target.lanes)
        group = vectors * (ROWS * machine.l2_line_cycles + 3)
        cycles = depth / ROWS * max(group, ROWS * machine.latency_cycles + costs.row_cycles)
        matrices = prod(assumed_shape(op.result)[:-1])
        cycles *= matrices
        chunk = _chunk(matrices, columns, cycles, setting)
        cycles = of_busiest(cycles, matrices * max(columns // chunk, 1), setting)
        own = Schedule(self.name, lanes=((COLUMN, target.lanes),), parameters=((CHUNK, chunk),))
        yield Candidate(cycles, own)

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        op, b = the(MatmulOp, k.kernel), k.builder
        dims, lanes = dims_of(op.result), schedule.vector(COLUMN)
        labels = row_labels(len(dims))
        batch = list(zip(labels, dims[:-1], strict=True))
        columns, chunk = dims[-1], schedule.parameter(CHUNK)
        whole = columns // chunk
        if whole != 0:
            with b.labeled_nest([*batch, ("chunk", whole)], parallel=True) as at:
                _columns(k, op, at[:-1], at[-1] * chunk, (Expr.const(chunk // lanes), lanes))
        done = whole * chunk
        for width in (lanes, 1):
            count = (columns - done) // width
            if count != 0:
                with b.labeled_nest(batch, parallel=True) as at:
                    _columns(k, op, at, done, (count, width))
            done = done + count * width


def _chunk(matrices: int, columns: int, cycles: float, setting: Setting) -> int:
    """The columns of a part: so many that threads get equal work."""
    fewest = PARTS_OF_A_THREAD * setting.threads if setting.threads > 1 else 0
    for size in CHUNKS:
        if matrices * (columns // size) >= fewest:
            return size
    shortest, lanes = CHUNKS[-1], setting.target.lanes
    if matrices >= setting.threads or not are_shared(cycles, setting):
        return shortest
    number = -(-columns // shortest // setting.threads) * setting.threads
    return max(columns // number // lanes, 1) * lanes


def _columns(
    k: KernelLowering, op: MatmulOp, row: Index, first: Expr, vectors: tuple[Expr, int]
) -> None:
    """Of one row of the result, as many vectors as there are, and their lanes."""
    b, out = k.builder, k.outputs[0]
    batch, depth = dims_of(op.result)[:-2], dims_of(op.lhs)[-1]
    left = broadcast_index(row[:-1], dims_of(op.lhs)[:-2], batch)
    right = broadcast_index(row[:-1], dims_of(op.rhs)[:-2], batch)
    count, lanes = vectors

    def each(factors: Sequence[SSAValue], rows: Sequence[Expr]) -> None:
        """Add some rows of the right matrix, weighted, to the sums so far."""
        with b.loop(count) as number, b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
            column = first + number * lanes + lane
            total = scalars.constant(b, 0, f32)
            for factor, i in zip(factors, rows, strict=True):
                total = b.fma(factor, k.element(op.rhs, [*right, i, column]), total)
            if rows:
                total = scalars.add(b, b.load(out, [*row, column]), total)
            b.store(total, out, [*row, column])

    def add_rows(begin: Expr, number: int) -> None:
        rows = [begin + i for i in range(number)]
        each([k.element(op.lhs, [*left, row[-1], i]) for i in rows], rows)

    each([], [])
    groups = depth // ROWS
    with b.loop(groups) as group:
        add_rows(group * ROWS, ROWS)
    if depth - groups * ROWS != 0:
        with b.loop(depth, groups * ROWS) as i:
            add_rows(i, 1)
    if k.has_epilogue(op):
        with b.loop(count) as number, b.loop(lanes, mode="lanes" if lanes > 1 else None) as lane:
            k.finish_in_place(op, [*row, first + number * lanes + lane])
