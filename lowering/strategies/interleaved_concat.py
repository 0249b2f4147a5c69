"""
Concatenations of a few elements in the innermost dimension, such as the halves of a complex number:
vectors along the dimension before it are interleaved in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import anchors_of
from lowerdeck.lowering.strategies.interleaved_maps import (
    AT_ONCE,
    interleave,
    interleaving_cycles,
    rows_at_once,
)
from lowerdeck.lowering.strategies.map_squares import LARGEST_SIDE


class InterleavedConcat(Strategy):
    """
    For a row-major result whose last dimension is made of single elements. Its last two dimensions
    become one, so that the vectors of interleaved elements lie side by side.
    """

    name = "interleaved_concat"
    anchors = (ConcatOp,)
    parameters = (AT_ONCE,)

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        (op,) = anchors_of(kernel)
        assert isinstance(op, ConcatOp)
        rank = len(dims_of(op.result))
        if setting.target.lanes == 1 or kernel.view is not None or rank < 2:
            return
        if op.axis.data != rank - 1 or any(dims_of(value)[-1] != 1 for value in op.inputs):
            return
        count = len(kernel.inputs) + len(kernel.results)
        if not all(kernel.layout_at(position).is_row_major for position in range(count)):
            return
        lanes = rows_at_once(kernel, setting)
        if lanes is None or not 2 <= len(op.inputs) <= LARGEST_SIDE:
            return
        cycles = interleaving_cycles(kernel, lanes, setting)
        yield Candidate(cycles, Schedule(self.name, parameters=((AT_ONCE, lanes),)))

    def joined(self, kernel: KernelOp, schedule: Schedule) -> int:
        return 2

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        """
        As many elements of each part as a vector has, side by side in memory then. The remainder is
        computed one by one.
        """
        op = next(op for op in k.kernel.body.block.ops if isinstance(op, ConcatOp))

        def element(at: Sequence[Expr]) -> SSAValue:
            *front, number = at
            assert number.value is not None  # rows are no loop
            return k.element(op.inputs[number.value], [*front, Expr.const(0)])

        k.bind(op.result, element)
        interleave(k, schedule)
