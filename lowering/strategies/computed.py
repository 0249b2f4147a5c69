"""Cycles of a kernel by loops that are not built for good: of strategies that estimate nothing."""

from __future__ import annotations

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.lowering.cost.cycles import cycles
from lowerdeck.lowering.loops.check_ahead import CheckAheadPass
from lowerdeck.lowering.loops.peel import PeelPass
from lowerdeck.lowering.loops.tile import TilePass
from lowerdeck.lowering.loops.unroll_tiles import UnrollTilesPass
from lowerdeck.lowering.loops.unswitch import UnswitchPass
from lowerdeck.lowering.loops.vectorize_lanes import VectorizeLanesPass
from lowerdeck.lowering.loops.vectorize_loops import VectorizeLoopsPass
from lowerdeck.lowering.targets.base import Target

_PASSES = (
    *(PeelPass(), CheckAheadPass(), TilePass(), UnswitchPass()),
    *(VectorizeLoopsPass(), VectorizeLanesPass(), UnrollTilesPass()),
)
"""What gives loops their form, in the order in which they run."""


def cycles_of_loops(function: FuncOp, target: Target) -> float:
    """What the loops of a kernel take once they have vectors and tiles, which they get."""
    for each in _PASSES:
        each.run(function, target)
    return cycles(function, target).total
