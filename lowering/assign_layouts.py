"""`assign-layouts`: how values between kernels lie in memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.lowering.kernels.depthwise import is_depthwise
from lowerdeck.lowering.kernels.lower import ANCHORS
from lowerdeck.lowering.targets import machine_of
from lowerdeck.passes.options import options_of


def anchor_of(kernel: KernelOp) -> Operation | None:
    """The op of a kernel that is not a map."""
    return next((op for op in kernel.body.block.ops if type(op) in ANCHORS), None)


class LayoutAssigner:
    """Chooses the layouts of one block's values, and puts conversions where they differ."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._layouts: dict[SSAValue, LayoutAttr] = {}
        self._converted: dict[tuple[SSAValue, LayoutAttr], SSAValue] = {}
        self._numbers = 0

    def assign(self, block: Block) -> None:
        """Every kernel of a block, and of the blocks in it."""
        for op in list(block.ops):
            for region in op.regions if not isinstance(op, KernelOp) else ():
                LayoutAssigner(self._lanes).assign(region.block)
            if isinstance(op, KernelOp):
                self._assign_kernel(op)
            else:
                self._make_row_major(op)

    def layout(self, value: SSAValue) -> LayoutAttr:
        """How a value lies in memory."""
        return self._layouts.get(value) or LayoutAttr.row_major(len(dims_of(value)))

    def _make_row_major(self, op: Operation) -> None:
        for number, value in enumerate(op.operands):
            if value in self._layouts:
                plain = LayoutAttr.row_major(len(dims_of(value)))
                op.operands[number] = self._convert(value, plain, op)

    def _convert(self, value: SSAValue, layout: LayoutAttr, before: Operation) -> SSAValue:
        """The value in another layout: a kernel that copies it."""
        if self.layout(value) == layout:
            return value
        key = (value, layout)
        if key not in self._converted:
            block = Block(arg_types=[value.type])
            block.add_op(YieldOp([block.args[0]]))
            kernel = KernelOp(f"layout_{self._numbers}", [value], Region(block))
            self._numbers += 1
            kernel.properties["layouts"] = ArrayAttr([self.layout(value), layout])
            if isinstance(value.owner, Operation):
                kernel.location = value.owner.location
            parent = before.parent
            assert parent is not None
            parent.insert_op_before(kernel, before)
            self._converted[key] = kernel.results[0]
            if not layout.is_row_major:
                self._layouts[kernel.results[0]] = layout
        return self._converted[key]

    def _assign_kernel(self, kernel: KernelOp) -> None:
        anchor = anchor_of(kernel)
        if isinstance(anchor, ConvOp):
            self._assign_conv(kernel, anchor)
        elif isinstance(anchor, PoolOp) or (anchor is None and self._is_elementwise(kernel)):
            self._assign_like_inputs(kernel)
        self._write(kernel)

    def _is_elementwise(self, kernel: KernelOp) -> bool:
        ops = list(kernel.body.block.ops)[:-1]
        return len(kernel.results) == 1 and all(
            isinstance(op, (*ELEMENTWISE, ConstantOp)) for op in ops
        )

    def _assign_conv(self, kernel: KernelOp, op: ConvOp) -> None:
        result = kernel.results[0]
        shape = static_shape(result)
        weight = static_shape(op.weight)
        if self._lanes == 1 or shape is None or weight is None or element_type(result) != f32:
            return
        if (op.groups.data != 1 and not is_depthwise(op)) or len(shape) < 3:
            return
        arguments = kernel.body.block.args
        position = next((k for k, a in enumerate(arguments) if a is op.input), None)
        if position is None:
            return
        begin = [pad.value or 0 for pad in op.pads_begin.data]
        end = [pad.value or 0 for pad in op.pads_end.data]
        current = self.layout(kernel.inputs[position])
        padded = current.padded([0, 0, *begin], [0, 0, *end])
        if op.groups.data != 1 and current.inner(1) != self._lanes:
            padded = LayoutAttr.blocked(
                len(shape), 1, self._lanes, padded.data.begin, padded.data.end
            )
        fits = all(
            have >= need
            for have, need in zip(
                (*current.data.begin[2:], *current.data.end[2:]), (*begin, *end), strict=True
            )
        )
        if not fits or padded.data.pieces != current.data.pieces:
            kernel.operands[position] = self._convert(kernel.inputs[position], padded, kernel)
        self._layouts[result] = self._blocked(result)

    def _blocked(self, value: SSAValue) -> LayoutAttr:
        rank = len(dims_of(value))
        begin, end = [0] * rank, [0] * rank
        for use in value.uses:
            if not isinstance(use.operation, KernelOp):
                continue
            anchor = anchor_of(use.operation)
            argument = use.operation.body.block.args[use.index]
            if isinstance(anchor, ConvOp) and anchor.input is argument:
                for axis, (low, high) in enumerate(
                    zip(anchor.pads_begin.data, anchor.pads_end.data, strict=True)
                ):
                    begin[axis + 2] = max(begin[axis + 2], low.value or 0)
                    end[axis + 2] = max(end[axis + 2], high.value or 0)
        return LayoutAttr.blocked(rank, 1, self._lanes, begin, end)

    def _assign_like_inputs(self, kernel: KernelOp) -> None:
        """Blocked, if what has the shape of the result is."""
        result = kernel.results[0]
        dims = dims_of(result)
        if element_type(result) != f32 or len(dims) < 3:
            return
        values = [v for v in kernel.inputs if not isinstance(v.owner, ConstantOp)]
        if not values or not any(
            self.layout(value).inner(1) > 1 for value in values if len(dims_of(value)) == len(dims)
        ):
            return
        if isinstance(anchor_of(kernel), PoolOp):
            self._layouts[result] = self._blocked(result).padded([0] * len(dims), [0] * len(dims))
            return
        for number, value in enumerate(kernel.inputs):
            if (
                isinstance(value.owner, ConstantOp) or self.layout(value).inner(1) > 1
                if len(dims_of(value)) == len(dims)
                else False
            ):
                continue
            if len(dims_of(value)) == len(dims) and dims_of(value)[1] == dims[1]:
                target = LayoutAttr.blocked(len(dims), 1, self._lanes)
                kernel.operands[number] = self._convert(value, target, kernel)
        self._layouts[result] = self._blocked(result)

    def _write(self, kernel: KernelOp) -> None:
        layouts = [self.layout(value) for value in (*kernel.inputs, *kernel.results)]
        if not all(layout.is_row_major for layout in layouts):
            kernel.properties["layouts"] = ArrayAttr(layouts)


@dataclass(frozen=True)
class AssignLayoutsPass(ModulePass):
    """
    Choose the layout of every value between kernels.
    """

    name = "assign-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = machine_of(options_of(ctx).target).lanes
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                LayoutAssigner(lanes).assign(function.body.block)
