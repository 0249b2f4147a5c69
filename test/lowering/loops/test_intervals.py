"""Accesses are found apart only if no element is in both."""

from __future__ import annotations

from itertools import product
from random import Random

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.loops.intervals import are_independent

F32 = Float32Type()


class Stores:
    """A loop in a loop with a store, at multiples of their indices."""

    def __init__(self, rng: Random) -> None:
        self.trips = [rng.choice([1, 2, 3, 4]) for _ in range(2)]
        self.strides = [rng.choice([1, 2, 4, 8, 12, 16, 24, 32, -4]) for _ in range(2)]
        self.first = rng.choice([0, 1, 2, 4, 8, 12, 16, 24, 32, 40]) + 16

    def elements(self) -> set[int]:
        """All that they store."""
        return {
            self.first + sum(n * s for n, s in zip(at, self.strides, strict=True))
            for at in product(*map(range, self.trips))
        }

    def build(self, memory: SSAValue) -> ForOp:
        """The outer loop."""
        blocks = [Block(arg_types=[IndexType()]) for _ in self.trips]
        indices = [block.args[0] for block in blocks]
        value = ConstantOp(FloatAttr(0.0, F32))
        place = sum(
            (Expr.symbol(f"d{k}") * n for k, n in enumerate(self.strides)), Expr.const(self.first)
        )
        blocks[1].add_ops([value, StoreOp(value.result, memory, [place], indices), YieldOp()])
        bounds = [(Expr.const(0), Expr.const(n), Expr.const(1)) for n in self.trips]
        blocks[0].add_ops([ForOp(bounds[1], [], [], Region(blocks[1])), YieldOp()])
        return ForOp(bounds[0], [], [], Region(blocks[0]))


def test_what_is_apart() -> None:
    """No wrong one is found, and most of those that are apart are."""
    rng, found, missed = Random(0), 0, 0
    for _ in range(2000):
        one, other = Stores(rng), Stores(rng)
        memory = Block(arg_types=[RefType.of(F32, [1000])]).args[0]
        are_apart = are_independent([one.build(memory), other.build(memory)])
        if are_apart:
            assert one.elements().isdisjoint(other.elements()), (vars(one), vars(other))
        found += are_apart
        missed += not are_apart and one.elements().isdisjoint(other.elements())
    assert found > 300
    assert missed < found
