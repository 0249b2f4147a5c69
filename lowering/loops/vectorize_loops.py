"""`vectorize-loops`: vectors for the loops of kernels without a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation

from lowerdeck.dialects.buffer.kernel import EXACT, ForOp, FuncOp, LoadOp, StoreOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.types import f64
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.accesses import Accesses
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Indices
from lowerdeck.lowering.loops.lane_forms import DIVISIONS
from lowerdeck.lowering.loops.loop_vectors import LoopVectorizer, is_lanes
from lowerdeck.lowering.loops.reductions import find_reductions
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.targets.base import FEWEST_LANES, Limits, Target

SHORT_ROW = 16
"""Loops of fewer iterations are no rows for vectors: several of them are computed side by side."""


def vectorize_loop(loop: ForOp, lanes: int, limits: Limits, *, far: bool = False) -> bool:
    """
    Replace a loop by vectors of at most `lanes` lanes, which with `far` may lie far apart in
    memory; False, without any change, if not.
    """
    if loop.mode is not None or loop.range.data[2] != 1:
        return False
    if any(isinstance(op, ForOp) and is_lanes(op) for op in all_ops(loop)):
        return False  # vectors already
    most, exact = lanes, _is_of_f64(loop)
    if (
        any(
            isinstance(op, scf.IfOp) and EXACT not in op.attributes and _gives_f64(op)
            for op in all_ops(loop)
        )
        and not exact
    ):
        return False
    reductions = find_reductions(loop, exact=exact)
    if reductions is None or (far and reductions):
        return False
    lower, upper, _ = loop.range.data
    if exact or _is_of_i64(loop) or any(map(_needs_f64, all_ops(loop))):
        lanes //= 2
    if (size := (upper - lower).value) is not None:
        while lanes > max(size, 1):
            lanes //= 2
    if lanes < FEWEST_LANES:
        return False
    indices = Indices()
    limit_by_parents(loop, indices)
    if not Accesses(loop, lanes, indices).are_independent(far=far):
        return False
    vectorizer = LoopVectorizer(loop, lanes, limits, reductions, most, far=far, exact=exact)
    return vectorizer.rewrite()


def _is_of_f64(loop: ForOp) -> bool:
    """True if a loop computes in f64 because of its elements, or multiplies many numbers there."""
    return any(
        (isinstance(op, LoadOp) and op.result.type == f64)
        or (isinstance(op, StoreOp) and op.value.type == f64)
        or (isinstance(op, ForOp) and _multiplies_in_f64(op))
        for op in all_ops(loop)
    )


def _multiplies_in_f64(loop: ForOp) -> bool:
    last = loop.body.block.last_op
    assert last is not None
    return any(
        value.type == f64 and isinstance(value.owner, arith.MulfOp) for value in last.operands
    )


def _is_of_i64(loop: ForOp) -> bool:
    return any(
        isinstance(op, LoadOp | StoreOp) and ref_type(op.ref).item_size == 8 for op in all_ops(loop)
    )


def _needs_f64(op: Operation) -> bool:
    return EXACT in op.attributes or isinstance(op, DIVISIONS)


def _has_short_rows(loop: ForOp) -> bool:
    """True if every loop in the body is too short for vectors."""
    inner = _loops_in(loop)
    return bool(inner) and all(0 < _all_trips(op) < SHORT_ROW for op in inner)


def _loops_in(loop: ForOp) -> list[ForOp]:
    return [op for op in loop.body.block.ops if isinstance(op, ForOp)]


def _all_trips(loop: ForOp) -> int:
    """The trip count of a loop with those of the loops in it; 0 if one is unknown."""
    lower, upper, _ = loop.range.data
    return ((upper - lower).value or 0) * max(map(_all_trips, _loops_in(loop)), default=1)


def _is_sequence(loop: ForOp) -> bool:
    """True if iterations are independent, and a loop in the body carries values."""
    is_parallel = bool(loop.parallel.value.data)
    return is_parallel and any(isinstance(op, ForOp) and op.inits for op in all_ops(loop.body))


def _gives_f64(op: scf.IfOp) -> bool:
    return any(result.type == f64 for result in op.results)


def vectorize_loops(block: Block, lanes: int, limits: Limits) -> bool:
    """
    Vectorize the outermost loops of a block that can be vectorized: along contiguous elements, but
    short rows side by side, and so sequences that have no other vectors. False if there are none.
    """
    found = False
    for op in list(block.ops):
        if isinstance(op, ForOp):
            found = (
                vectorize_loop(op, lanes, limits)
                or (_has_short_rows(op) and vectorize_loop(op, lanes, limits, far=True))
                or vectorize_loops(op.body.block, lanes, limits)
                or (_is_sequence(op) and vectorize_loop(op, lanes, limits, far=True))
                or found
            )
        else:
            for region in op.regions:
                for inner in region.blocks:
                    found = vectorize_loops(inner, lanes, limits) or found
    return found


@dataclass(frozen=True)
class VectorizeLoopsPass(FunctionPass):
    """
    Vectors for the loops of kernels without a `schedule`: the outermost ones whose iterations have
    contiguous accesses and are independent of each other, except for reductions.

    A reduction (a sum, a product or an extremum) has partial results in the lanes, in several
    chains, which are combined after the loop. f64 sums of f32 terms are computed in f32, and if
    the lanes are results, values computed from them in f64 are computed in f32. The remainder of a
    loop is computed in shorter vectors, then one by one; that of a reduction that only reads, in a
    vector that ends with it, whose first lanes do not count. So is that of an unknown number of
    iterations of a reduction, a row that is copied, or a row of sums: the widest vectors that it
    fills are all there are, and one by one what fills none.

    Rows that are too short for vectors, and sequences such as running sums, are computed side by
    side: then the lanes of a vector lie a row apart.

    `lanes` is that of the target by default.
    """

    name = "vectorize-loops"
    optional = True
    lanes: int | None = None

    def run(self, function: FuncOp, target: Target) -> None:
        lanes = self.lanes or target.lanes
        if function.schedule is None and lanes > 1:
            vectorize_loops(function.body.block, lanes, target.limits)
