"""`load-late`: what stands around a tile that fills the registers is loaded where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp, StoreOp
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.varying import varying_values
from lowerdeck.lowering.targets.base import Target


def load_late(loop: ForOp, written: set[SSAValue], registers: int) -> None:
    """Pin the loads beside a loop, if registers do not hold what they load and the tile."""
    carried = sum(map(_is_vector, loop.results))
    parent = loop.parent_op()
    if 2 * carried < registers or not isinstance(parent, ForOp) or parent.inits:
        return
    fixed = _fixed(parent.body.block)
    loads = [op for op in fixed if isinstance(op, LoadOp) and op.ref not in written]
    if loads and carried + _kept(loop) + len(fixed) >= registers:
        for op in loads:
            op.volatile = UnitAttr()


def _fixed(block: Block) -> Sequence[Operation]:
    """The ops of a loop's body that give the same vector in each iteration."""
    varying = varying_values(block, block.args)
    return [
        op
        for op in block.ops
        if not op.regions
        and any(map(_is_vector, op.results))
        and varying.isdisjoint((*op.operands, *op.results))
    ]


def _kept(loop: ForOp) -> int:
    """The vectors that an iteration of a tile keeps besides: inputs used again, and another one."""
    loads = (op for op in all_ops(loop) if isinstance(op, LoadOp) and _is_vector(op.result))
    return 1 + sum(len([*op.result.uses]) > 1 for op in loads)


def _is_vector(value: SSAValue) -> bool:
    return bool(lanes_of(value.type))


class LoadLatePass(FunctionPass):
    """
    for i { for tiles of j { sums of a tile in registers; %v = load x(i); use of %v } }
        -> the same, with a load that stays where it is

    What does not change from tile to tile, as biases and slopes of an epilogue, C compilers load
    once, before the loop over tiles. Where the sums of a tile and what it reads fill the registers
    already, they then keep inputs of the innermost loop on the stack.
    """

    name = "load-late"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        written = {op.ref for op in all_ops(function) if isinstance(op, StoreOp)}
        for loop in all_ops(function):
            if isinstance(loop, ForOp) and loop.results:
                load_late(loop, written, target.machine.registers)
