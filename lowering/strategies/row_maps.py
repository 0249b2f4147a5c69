"""Maps with row-major results: the lanes are the innermost dimension."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Use

from lowerdeck.dialects.buffer.kernel import lane_type
from lowerdeck.dialects.buffer.vector import lane_bits
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import element_type
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.nests.padding import lower_padded, open_pad
from lowerdeck.lowering.nests.scalars import compute_type
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy
from lowerdeck.lowering.strategies.channel_blocks import map_cycles
from lowerdeck.lowering.strategies.facts import layout_out


def _widest(kernel: KernelOp) -> int:
    """The bits of the widest elements in lanes: indices of whole rows are none."""
    body = kernel.body.block
    values = [*body.args, *(result for op in body.ops for result in op.results)]
    return max(
        lane_bits(lane_type(compute_type(element_type(value))))
        for value in values
        if not all(map(_is_of_indices, value.uses))
    )


def _is_of_indices(use: Use) -> bool:
    op = use.operation
    return isinstance(op, GatherOp | GatherNdOp) and op.operands[use.index] is op.indices


class RowMaps(Strategy):
    """
    Vectors along the innermost dimension. Only the loops show whether inputs are contiguous there,
    too, so the estimate is that of single elements. Rows of a padding of open sizes are cut where
    they lie on the input.
    """

    name = "row_maps"
    anchors = ()

    def candidates(self, kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
        if setting.target.lanes == 1 or len(kernel.results) != 1:
            return
        layout = layout_out(kernel)
        if layout.rank and layout.inner(layout.data.pieces[-1].axis) == 1:
            count = setting.target.vector_bits // _widest(kernel)
            lanes = ((f"d{len(layout.data.pieces) - 1}", count),)
            yield Candidate(
                map_cycles(kernel, setting.target.costs), Schedule(self.name, lanes=lanes)
            )

    def lower(self, k: KernelLowering, schedule: Schedule) -> None:
        if (pad := open_pad(k)) is not None:
            lower_padded(k, pad)
        else:
            k.lower_plain()
