"""Control flow of random programs of `core`: what is decided, counted, scanned, and grows."""

from __future__ import annotations

from xdsl.ir import Region, SSAValue

from fuzz.core_programs import Builder, Unfit, recipe, sizes_of
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp, unequal_dims
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, ReshapeOp, ScatterNdOp, SliceOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    f64,
    i1,
    i64,
    rank_of,
    static_shape,
    tensor,
)
from lowerdeck.dialects.dims import Expr


def _truth(b: Builder) -> SSAValue:
    x = b.pick(i1)
    return b.add(ReduceOp("max", x, list(range(rank_of(x))))).result


@recipe(IfOp, weight=6, nests=True)
def _if(b: Builder) -> None:
    condition = _truth(b)
    wanted = [b.pick() for _ in range(b.random.randint(1, 2))]
    is_open = b.chance(2)
    regions: list[Region] = []
    for _ in range(2):
        inner = b.inner()
        found = [inner.like(value, is_open) for value in wanted]
        inner.block.add_op(YieldOp(found))
        regions.append(Region(inner.block))
    symbols = [b.fresh("r") for _ in unequal_dims(regions)]
    b.add(IfOp(condition, *regions, result_symbols=symbols))


@recipe(LoopOp, weight=8, nests=True)
def _loop(b: Builder) -> None:
    """Counted, with a condition in some, and of sizes that change in others."""
    count = b.of(b.random.randint(-1, 3))
    if b.chance(4):
        x = b.pick(i64)
        count = b.add(
            e.ModOp(b.add(ReduceOp("max", x, list(range(rank_of(x))))).result, b.of(4))
        ).result
    if rank_of(count):
        raise Unfit
    condition = _truth(b) if b.chance(3) else None
    inits = [b.pick() for _ in range(b.random.randint(0, 2))]
    inner = b.inner([tensor(i64, []), *(value.type for value in inits)])
    yields = [] if condition is None else [_truth(inner)]
    yields += [inner.like(arg) for arg in inner.block.args[1:]]
    scan = inner.values[-1] if b.chance(4) and inner.values[-1].owner is not inner.block else None
    if scan is not None:
        if static_shape(scan) is None:
            raise Unfit
        yields.append(scan)
    inner.block.add_op(YieldOp(yields))
    name = b.fresh("t")
    b.add(LoopOp(count, condition, inits, Region(inner.block), count=name))


@recipe("slices in a loop", weight=3, nests=True)
def _slices(b: Builder) -> None:
    """A loop that reads one slice of a value after the other, as recurrent layers do."""
    x = b.pick(rank=[1, 2, 3])
    size, *rest = dims_of(x)
    if not size.value or size.value < 1 or any(d.value is None for d in rest):
        raise Unfit
    count, name = b.random.randint(0, size.value), b.fresh("i")
    inner = Builder(b.random, b, [tensor(i64, []), tensor(element_type(x), rest)])
    if b.chance(5):
        read = inner.add(GatherOp(x, inner.block.args[0], 0)).result
    else:
        starts = [Expr.symbol(name), *(0 for _ in rest)]
        part = inner.add(SliceOp(x, starts, [1, *rest])).result
        read = inner.add(ReshapeOp(part, rest)).result
    if element_type(x) in (f32, f64) and len(rest) == 2 and rest[1].value:
        weight = b.constant(element_type(x), [rest[1].value, b.dim()])
        product = inner.add(MatmulOp(read, weight)).result
        inner.add(e.AddOp(product, b.constant(element_type(x), [1])))
    elif element_type(x) != i1:
        inner.add(e.MulOp(read, inner.block.args[1]))
    inner.grow(b.random.randint(0, 4))
    carried = inner.like(inner.block.args[1])
    inner.block.add_op(YieldOp([carried, carried] if b.chance(5) else [carried]))
    init = b.constant(element_type(x), [d.value or 0 for d in rest])
    loop = LoopOp(
        b.of(count), None, [init], Region(inner.block), iteration=name, count=b.fresh("t")
    )
    b.add(loop)


@recipe("growing loop", weight=1, nests=True)
def _growing(b: Builder) -> None:
    """A loop whose carried value becomes longer in each iteration."""
    x = b.pick(rank=[1, 2])
    if static_shape(x) is None:
        raise Unfit
    size, result = b.fresh("p"), b.fresh("r")
    rest = dims_of(x)[1:]
    inner = Builder(
        b.random, b, [tensor(i64, []), tensor(element_type(x), [Expr.symbol(size), *rest])]
    )
    inner.block.add_op(YieldOp([inner.add(ConcatOp([inner.block.args[1], x], 0)).result]))
    count = b.of(b.random.randint(0, 3))
    body = Region(inner.block)
    b.add(LoopOp(count, None, [x], body, carried_symbols=[size], result_symbols=[result]))


@recipe("writes in a loop", weight=2, nests=True)
def _writes(b: Builder) -> None:
    """A loop that writes one slice of a carried value after the other."""
    x = b.pick(rank=[1, 2])
    size, *rest = sizes_of(x)
    name = b.fresh("i")
    inner = Builder(b.random, b, [tensor(i64, []), x.type])
    row = inner.add(ReshapeOp(inner.constant(element_type(x), rest), [1, *rest])).result
    if element_type(x) != i1:
        number = inner.add(e.CastOp(inner.block.args[0], element_type(x))).result
        row = inner.add(e.AddOp(row, number)).result
    at = inner.add(ReshapeOp(inner.block.args[0], [1, 1])).result
    inner.block.add_op(YieldOp([inner.add(ScatterNdOp(inner.block.args[1], at, row)).result]))
    trips = b.of(size if b.chance(7) else b.random.randint(0, size))
    b.add(LoopOp(trips, None, [x], Region(inner.block), iteration=name, count=b.fresh("t")))
