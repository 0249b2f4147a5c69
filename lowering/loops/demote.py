"""Copies of ops that compute in f32 what the source computes in f64."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import EXACT, ForOp
from lowerdeck.dialects.core.types import f32, f64
from lowerdeck.lowering.loops.indices import Cloner


class Demoter(Cloner):
    """
    Copies ops with f32 in place of f64, for values only: memory keeps its types, so ops that read
    or write f64 cannot be copied.
    """

    def fork(self) -> Demoter:
        """A cloner that begins with the mapping of this one."""
        return Demoter(self.indices, dict(self.values), dict(self.moved))

    def clone(self, op: Operation, block: Block) -> Operation:
        """Copy an op; conversions between the two types disappear. What is exact stays so."""
        if EXACT in op.attributes:
            return self._clone_exactly(op, block)
        if isinstance(op, arith.ExtFOp | arith.TruncFOp) and _types(op) == {f32, f64}:
            self.values[op.results[0]] = self.operand(op.operands[0], block)
            return op
        if isinstance(op, ForOp) and any(value.type == f64 for value in op.inits):
            return self._clone_carrying(op, block)
        touched = [value.type for value in (*op.operands, *op.results)]
        if f64 not in touched or op.regions:
            return super().clone(op, block)
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, FloatAttr)
            new: Operation = arith.ConstantOp(FloatAttr(op.value.value.data, f32))
        else:
            new = type(op).create(
                operands=[self.operand(operand, block) for operand in op.operands],
                result_types=[_demoted(result.type) for result in op.results],
                properties=op.properties,
                attributes=op.attributes,
            )
        new.location = op.location
        self.add(new, op, block)
        return new

    def _clone_exactly(self, op: Operation, block: Block) -> Operation:
        exact = _Exact(self.indices, self.values, self.moved)
        return exact.clone(op, block)

    def operand(self, value: SSAValue, block: Block) -> SSAValue:
        """The replacement of a value, in f32."""
        new = super().operand(value, block)
        if new.type != f64:
            return new
        truncate = arith.TruncFOp(new, f32)
        block.add_op(truncate)
        return truncate.result

    def _clone_carrying(self, op: ForOp, block: Block) -> ForOp:
        inits = [self.operand(init, block) for init in op.inits]
        new, inner = self.open_loop(op, [init.type for init in inits], inits)
        inner.values.update(zip(op.body.block.args[1:], new.body.block.args[1:], strict=True))
        for member in op.body.block.ops:
            inner.clone(member, new.body.block)
        self.add(new, op, block)
        return new


class _Exact(Cloner):
    """Copies ops as they are; of what was computed in f32 they take that, in f64."""

    def fork(self) -> _Exact:
        """A cloner that begins with what this one knows."""
        return _Exact(self.indices, dict(self.values), dict(self.moved))

    def operand(self, value: SSAValue, block: Block) -> SSAValue:
        """What stands for a value, in its type."""
        new = super().operand(value, block)
        if value.type != f64 or new.type != f32:
            return new
        extend = arith.ExtFOp(new, f64)
        block.add_op(extend)
        return extend.result


def _types(op: Operation) -> set[Attribute]:
    return {op.operands[0].type, op.results[0].type}


def _demoted(type_: Attribute) -> Attribute:
    return f32 if type_ == f64 else type_
