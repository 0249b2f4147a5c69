"""Loops are found apart only if no two iterations touch an element that one of them stores."""

from __future__ import annotations

from itertools import product
from random import Random

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, LoadOp, StoreOp, YieldOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.entry.shared_loops import sharings

SIZE = 1 << 20
F32 = Float32Type()


class Nest:
    """
    A random nest: outer, shared and inner loop, with stores of vectors, and loads from the same
    buffer.
    """

    def __init__(self, rng: Random) -> None:
        self.trips = [rng.choice([1, 2, 3, 4]) for _ in range(3)]
        self.strides = [rng.choice([1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96]) for _ in range(3)]
        self.lanes = rng.choice([1, 2, 4, 8])
        starts = [0, 0, 4, 8, self.strides[0], 2 * self.strides[1], 100]
        self.stores = [rng.choice(starts) for _ in range(rng.choice([1, 2, 3]))]
        self.loads = [rng.choice(starts) for _ in range(rng.choice([0, 0, 1]))]

    def are_apart(self) -> bool:
        """By going through all iterations: of the same outer one, as of different ones."""
        touched: dict[int, set[int]] = {}
        stored: dict[int, set[int]] = {}
        for i, j, k in product(*map(range, self.trips)):
            base = sum(n * s for n, s in zip((i, j, k), self.strides, strict=True))
            for start in self.stores:
                stored.setdefault(j, set()).update(range(base + start, base + start + self.lanes))
            for start in (*self.stores, *self.loads):
                touched.setdefault(j, set()).update(range(base + start, base + start + self.lanes))
        return not any(
            stored[j] & touched[other] for j in stored for other in touched if other != j
        )

    def is_parallel(self) -> bool:
        """Whether iterations of the outer loop are apart, as those of a parallel one are."""
        places: dict[int, set[int]] = {}
        for i, j, k in product(*map(range, self.trips)):
            base = sum(n * s for n, s in zip((i, j, k), self.strides, strict=True))
            for start in (*self.stores, *self.loads):
                places.setdefault(i, set()).update(range(base + start, base + start + self.lanes))
        return not any(places[a] & places[b] for a in places for b in places if a < b)

    def build(self) -> ForOp:
        """The outer loop."""
        memory = Block(arg_types=[RefType.of(F32, [SIZE])]).args[0]
        return self._loop(memory, [])

    def _loop(self, memory: SSAValue, indices: list[SSAValue]) -> ForOp:
        depth = len(indices)
        body = Block(arg_types=[IndexType()])
        inner = [*indices, body.args[0]]
        if depth < 2:
            body.add_op(self._loop(memory, inner))
        else:
            base = sum(
                (Expr.symbol(f"d{n}") * s for n, s in enumerate(self.strides)), Expr.const(0)
            )
            value: SSAValue | None = None
            for start in [*self.loads, self.stores[0]]:
                load = LoadOp(memory, [base + start], inner, self.lanes if self.lanes > 1 else 0)
                body.add_op(load)
                value = load.result
            assert value is not None
            for start in self.stores:
                body.add_op(StoreOp(value, memory, [base + start], inner))
        body.add_op(YieldOp())
        is_outer, label = depth == 0, f"l{depth}"
        bounds = (Expr.const(0), Expr.const(self.trips[depth]), Expr.const(1))
        return ForOp(bounds, [], [], Region(body), parallel=is_outer, label=label)


def test_places_that_are_computed_are_not_known() -> None:
    """An index that goes back by as much as the loop goes on."""
    memory = Block(arg_types=[RefType.of(F32, [SIZE])]).args[0]
    body = Block(arg_types=[IndexType()])
    outer = Block(arg_types=[IndexType()])
    index, there = body.args[0], Expr.symbol("d0")
    back = ApplyOp(there * -1 + 8, [index])
    value = ConstantOp(FloatAttr(0.0, F32))
    both = there * 4 + Expr.symbol("d1") * 4
    body.add_ops([back, value, StoreOp(value.result, memory, [both], [index, back.result])])
    body.add_op(YieldOp())
    bounds = (Expr.const(0), Expr.const(8), Expr.const(1))
    outer.add_op(ForOp(bounds, [], [], Region(body), label="inner"))
    outer.add_op(YieldOp())
    loop = ForOp(bounds, [], [], Region(outer), parallel=True, label="outer")
    assert len([*sharings(loop)]) == 1


def test_ranges_that_depend_on_what_is_around_are_not_known() -> None:
    """An inner loop that goes the farther the farther the outermost one is."""
    memory = Block(arg_types=[RefType.of(F32, [SIZE])]).args[0]
    blocks = [Block(arg_types=[IndexType()]) for _ in range(3)]
    first, second, third = (block.args[0] for block in blocks)
    value, place = ConstantOp(FloatAttr(0.0, F32)), Expr.symbol("d0") * 4 + Expr.symbol("d1")
    blocks[2].add_ops([value, StoreOp(value.result, memory, [place], [second, third]), YieldOp()])
    farther = (Expr.const(0), Expr.symbol("d0") + 1, Expr.const(1))
    blocks[1].add_ops([ForOp(farther, [first], [], Region(blocks[2])), YieldOp()])
    bounds = (Expr.const(0), Expr.const(8), Expr.const(1))
    blocks[0].add_ops([ForOp(bounds, [], [], Region(blocks[1]), label="inner"), YieldOp()])
    loop = ForOp(bounds, [], [], Region(blocks[0]), parallel=True, label="outer")
    assert len([*sharings(loop)]) == 1


def test_loops_that_are_shared_are_apart() -> None:
    """Of many nests no wrong one is found, and most of those that are apart are."""
    rng, found, missed = Random(0), 0, 0
    for _ in range(1200):
        nest = Nest(rng)
        if not nest.is_parallel():
            continue
        second = [*sharings(nest.build())][1:2]
        if second:
            assert nest.are_apart(), vars(nest)
        found += bool(second)
        missed += nest.are_apart() and not second
    assert found > 80
    assert missed < found
