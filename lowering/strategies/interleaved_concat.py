"""
Concatenations of a few elements in the innermost dimension, such as the halves of a complex number:
vectors along the dimension before it are interleaved in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.kernel import lane_type
from lowerdeck.dialects.buffer.vector import factors_of, lane_bits
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.facts import anchors_of, assumed_shape
from lowerdeck.lowering.strategies.interleaved_maps import AT_ONCE, interleave
from lowerdeck.lowering.strategies.map_squares import LARGEST_SIDE, fewest_lanes


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
        few, along = len(op.inputs), dims_of(op.result)[-2].value
        bits = lane_bits(lane_type(element_type(kernel.results[0])))
        lanes = min(setting.target.lanes * 32 // bits, LARGEST_SIDE)
        while along is not None and lanes > max(along, 1):
            lanes //= 2
        if not 2 <= few <= LARGEST_SIDE or lanes < fewest_lanes(bits):
            return
        # A vector is loaded, goes through the steps of each factor, and is stored.
        steps = setting.target.costs.element_cycles + sum(f - 1 for f in factors_of(few))
        cycles = prod(assumed_shape(kernel.results[0])) * steps / lanes
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
