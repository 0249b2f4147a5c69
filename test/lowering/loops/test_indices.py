"""Index values as symbols, across ops."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, f32
from xdsl.ir import Block, Region

from lowerdeck.dialects.buffer.kernel import ForOp, FuncOp, LoadOp, YieldOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.lowering.loops.indices import Cloner, Indices

N = Expr.symbol("s0")
D0, D1 = Expr.symbol("d0"), Expr.symbol("d1")


def loop(lower: int | Expr, upper: int | Expr) -> ForOp:
    """An empty one."""
    block = Block([YieldOp()], arg_types=[IndexType()])
    return ForOp((Expr.of(lower), Expr.of(upper), Expr.const(1)), [], [], Region(block))


def test_expressions_of_two_ops_share_symbols() -> None:
    """What is d0 of one op is d1 of another; operands are written in the order they were seen."""
    indices = Indices()
    a, b = Block(arg_types=[IndexType(), IndexType()]).args
    (first,) = indices.read([D0 + D1 * 2], [a, b])
    (second,) = indices.read([D0 - D1], [b, a])
    exprs, operands = indices.write([second, first + second])
    assert operands == [a, b]
    assert exprs == [D1 - D0, D1 * 3]
    assert indices.write([second * 0 + N])[1] == []
    assert indices.write([indices.symbol(b) * 4]) == ([D0 * 4], [b])


def test_ranges() -> None:
    """Loops of known bounds have them, loops without iterations and open ones none."""
    indices = Indices()
    known = indices.loop(loop(2, 6))
    assert indices.ranges[str(known)] == (2, 5)
    for other in (loop(3, 3), loop(0, N)):
        assert str(indices.loop(other)) not in indices.ranges
    indices.limit(known, 0, known)
    assert indices.ranges[str(known)] == (0, 4)
    assert indices.write([known % 5])[0] == [D0]
    assert indices.write([known % 4])[0] == [D0 % 4]


def test_extents() -> None:
    """What may be negative is cut off at zero; dimensions of buffers and their parts may not."""
    indices = Indices()
    other = Expr.symbol("s1")
    assert indices.extent(0, N) == maximum(N, 0)
    assert indices.extent(2, 1) == maximum(Expr.const(-1), 0)
    block = Block(arg_types=[RefType.of(f32, [N, N * 2 - 1])])
    indices.add_sizes(FuncOp("f", ["n"], 1, Region(block)))
    assert indices.extent(0, N) == N
    assert indices.extent(1, N * 2) == N * 2 - 1
    assert indices.extent(1, N) == maximum(N - 1, 0)
    assert indices.extent(0, N // 4) == N // 4
    assert indices.extent(0, minimum(N, other)) == maximum(minimum(N, other), 0)
    assert indices.extent(0, maximum(N, other)) == maximum(N, other)
    assert indices.extent(0, other % 8) == other % 8


def test_copies_read_where_they_are_moved() -> None:
    """A load at 2 d0 + 1, whose index is replaced by an expression of another one."""
    ref, old, new = Block(arg_types=[RefType.of(f32, [64]), IndexType(), IndexType()]).args
    load = LoadOp(ref, [D0 * 2 + 1], [old])
    indices = Indices()
    moved = {str(indices.symbol(old)): indices.symbol(new) * 4 + 3}
    copy = Cloner(indices, moved=moved).clone(load, Block())
    assert isinstance(copy, LoadOp)
    assert copy.map.data == (D0 * 8 + 7,)
    assert list(copy.operands) == [ref, new]
