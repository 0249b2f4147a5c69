"""What stands for the values of a lane loop: vectors, masks, and scalars in all lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.buffer import vector
from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, ScratchOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import lane_bits, lanes_of, scalar_of, vector_type
from lowerdeck.dialects.core.types import bf16, f16, f32, f64, i1
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.loops.varying import varying_values

I32 = IntegerType(32)

_ELEMENTS = (f32, f64, f16, bf16, *(IntegerType(width) for width in (8, 16, 32, 64)))
"""What vectors are made of; truth values are masks, as wide as what they are made from."""


class NotVectorizableError(Exception):
    """An op has no vector form here."""


class LaneValues:
    """The values of a loop of so many lanes, and what replaces them in the blocks of a copy."""

    def __init__(self, loop: ForOp, lanes: int) -> None:
        self.lanes = lanes
        self.indices = Indices()
        limit_by_parents(loop, self.indices)
        self.index = self.indices.symbol(loop.body.block.args[0])
        self.varying = varying_values(loop.body.block, [loop.body.block.args[0]])
        self.exprs: dict[str, Expr] = {}
        """What indices that vary are computed from, by their symbols."""
        self._splats: dict[tuple[SSAValue, int, Block], SSAValue] = {}

    def type_for(self, type_: Attribute) -> VectorType[Attribute]:
        """The vector of elements of a type; NotVectorizableError if there is none."""
        if type_ not in _ELEMENTS:
            raise NotVectorizableError
        return vector_type(type_, self.lanes)

    def vectors(self, op: Operation, cloner: Cloner, block: Block) -> list[SSAValue]:
        """The vectors that replace the operands of an op."""
        return [self.vector(operand, cloner, block) for operand in op.operands]

    def vector(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """The vector that replaces a value: the same in all lanes if it does not vary."""
        new = cloner.value(value)
        if lanes_of(new.type):
            return new
        self.type_for(new.type)
        return self.splat(new, lane_bits(new.type), block)

    def mask(self, value: SSAValue, bits: int, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a truth value, as a mask with lanes of so many bits."""
        new = cloner.value(value)
        if not lanes_of(new.type):
            return self.splat(new, bits, block)
        return self.resized(new, bits, block)

    def masks(self, values: Sequence[SSAValue], cloner: Cloner, block: Block) -> list[SSAValue]:
        """Truth values as masks of the same width: that of the widest."""
        news = [cloner.value(value) for value in values]
        bits = max(lane_bits(new.type) for new in news if lanes_of(new.type))
        return [self.mask(value, bits, cloner, block) for value in values]

    def resized(self, mask: SSAValue, bits: int, block: Block) -> SSAValue:
        """A mask with lanes of so many bits."""
        if lane_bits(mask.type) == bits:
            return mask
        key = (mask, bits, block)
        if key not in self._splats:
            resized = vector.ConvertOp(mask, vector_type(IntegerType(bits), self.lanes))
            block.add_op(resized)
            self._splats[key] = resized.result
        return self._splats[key]

    def splat(self, value: SSAValue, bits: int, block: Block) -> SSAValue:
        """A scalar in all lanes; a truth value as a mask with lanes of so many bits."""
        key = (value, bits, block)
        if key not in self._splats:
            source = value
            if value.type == i1:
                minus_one = arith.ExtSIOp(value, IntegerType(bits))
                block.add_op(minus_one)
                source = minus_one.result
            splat = BroadcastOp(source, vector_type(source.type, self.lanes))
            block.add_op(splat)
            self._splats[key] = splat.vector
        return self._splats[key]

    def constant(self, value: float, type_: Attribute, block: Block) -> SSAValue:
        """A number in all lanes of a vector of a type."""
        scalar = scalar_of(type_)
        if isinstance(scalar, AnyFloat):
            number = arith.ConstantOp(FloatAttr(value, scalar))
        else:
            number = arith.ConstantOp(IntegerAttr(int(value), IntegerType(lane_bits(scalar))))
        splat = BroadcastOp(number.result, vector_type(scalar, self.lanes))
        block.add_ops([number, splat])
        return splat.vector

    def element(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a value as it lies in memory: truth values are bytes, 0 or 1."""
        if value.type != i1:
            return self.vector(value, cloner, block)
        mask = self.mask(value, 8, cloner, block)
        bits = arith.AndIOp(mask, self.constant(1, mask.type, block))
        block.add_op(bits)
        return bits.result

    def register(self, value: SSAValue, cloner: Cloner, block: Block) -> SSAValue:
        """What stands for a value that leaves its block: of a truth value the width is fixed."""
        is_truth = value.type == i1
        return (
            self.mask(value, 32, cloner, block) if is_truth else self.vector(value, cloner, block)
        )

    def register_type(self, type_: Attribute) -> VectorType[Attribute]:
        """The type of that."""
        return self.type_for(I32 if type_ == i1 else type_)

    def expr(self, op: ApplyOp) -> Expr:
        """What an index is computed from; its lanes differ by nothing but that of the loop."""
        (expr,) = self.indices.read(op.map.data, op.indices)
        known = {str(self.index), *self.exprs}
        for index in op.indices:
            if index in self.varying and str(self.indices.symbol(index)) not in known:
                raise NotVectorizableError
        return expr.substitute(self.exprs)

    def step(self, expr: Expr) -> int:
        """By how much an expression grows from lane to lane."""
        step = (expr.substitute({str(self.index): self.index + 1}) - expr).value
        if step is None:
            raise NotVectorizableError
        return step

    def memory(self, type_: Attribute, block: Block) -> SSAValue:
        """A buffer for a vector."""
        scratch = ScratchOp(RefType.of(scalar_of(type_), [self.lanes]))
        block.add_op(scratch)
        return scratch.ref


def append(block: Block, op: Operation) -> SSAValue:
    """The first result of an op that is added to a block."""
    block.add_op(op)
    return op.results[0]
