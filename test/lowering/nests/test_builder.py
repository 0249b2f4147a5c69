"""What the builder of kernels makes of expressions, of what it remembers and of loops of one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, f32, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, LoadOp, StoreOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests.builder import KernelBuilder

N, M = Expr.symbol("n"), Expr.symbol("m")


def d(k: int) -> Expr:
    return Expr.symbol(f"d{k}")


def s(k: int) -> Expr:
    return Expr.symbol(f"s{k}")


@pytest.fixture
def block() -> Block:
    """A block with a row-major and a blocked buffer."""
    return Block(arg_types=[RefType.of(f32, [N, 8]), RefType.of(f32, [1, 2, 16])])


def loops(block: Block) -> list[ForOp]:
    return [op for op in block.walk() if isinstance(op, ForOp)]


def only(block: Block, type_: type[Operation]) -> Operation:
    (found,) = [op for op in block.walk() if isinstance(op, type_)]
    return found


def test_operands_are_numbered_from_the_outermost_loop(block: Block) -> None:
    """Whatever the order in which an expression names them; symbols in that of their first use."""
    k = KernelBuilder(block)
    with k.loop(N) as i, k.loop(M) as j:
        k.load(block.args[0], [j * N + i * M, i])
    outer, inner = loops(block)
    load = only(block, LoadOp)
    assert isinstance(load, LoadOp)
    assert load.map.data == (d(0) * s(0) + d(1) * s(1), d(0))
    assert list(load.indices) == [outer.body.block.args[0], inner.body.block.args[0]]
    assert k.symbols == ["m", "n"]
    assert outer.range.data[1] == s(1)


def test_ranges_of_loops_simplify(block: Block) -> None:
    """An index below 8 is its own remainder; one below 9 is not, nor one of an open loop."""
    k = KernelBuilder(block)
    for size in (8, 9, N):
        with k.loop(size) as i:
            assert k.bound([i % 8])[0] == [d(0) if size == 8 else d(0) % 8]
    with k.loop(16, lower=8) as i:
        assert k.bound([i // 8])[0] == [Expr.const(1)]


def test_a_dimension_of_one_needs_no_loop(block: Block) -> None:
    k = KernelBuilder(block)
    with k.nest([1, N, 1, 4], parallel=True) as (a, _, c, _):
        assert a == c == 0
    first, second = loops(block)
    assert [first.range.data[1], second.range.data[1]] == [s(0), 4]
    assert [bool(loop.parallel.value.data) for loop in (first, second)] == [True, False]


def test_labels(block: Block) -> None:
    k = KernelBuilder(block)
    with k.labeled_nest([("oc", 1), ("x0", N), ("x1", 4)]) as (a, _, _):
        assert a == 0
    assert [loop.label and loop.label.data for loop in loops(block)] == ["x0", "x1"]


def test_carried_values(block: Block) -> None:
    """A loop over one index is none: the body gets that index."""
    k = KernelBuilder(block)
    found: list[Sequence[Expr]] = []

    def body(at: Sequence[Expr], values: Sequence[SSAValue]) -> list[SSAValue]:
        found.append(at)
        return [k.fma(values[0], values[0], values[0])]

    start = k.floating(1.0, f32)
    (result,) = k.carry_nest([(3, 4), (0, N)], [start], body)
    (loop,) = loops(block)
    assert result is loop.results[0]
    assert list(loop.inits) == [start]
    assert found[0][0] == 3
    assert k.value_of(found[0][1]) is loop.body.block.args[0]


def test_what_is_remembered_ends_with_its_block(block: Block) -> None:
    k = KernelBuilder(block)
    outside = k.remember("a", k.integer(1, i64))
    with k.loop(N):
        inside = k.remember("b", k.integer(2, i64))
        assert (k.recall("a"), k.recall("b")) == (outside, inside)
        assert k.remember("a", inside) is k.recall("a")
    assert (k.recall("a"), k.recall("b")) == (outside, None)


def test_computed_once(block: Block) -> None:
    """Numbers are not computed; the range of what is computed goes on."""
    k = KernelBuilder(block)
    assert k.computed(Expr.const(5)) == 5
    with k.loop(4) as i:
        assert k.computed(i // 4) == 0
        assert len(block.ops) == 0
        twice = k.computed(i * 2)
        assert k.bound([twice % 7])[0] == [d(0)]
        assert k.bound([twice % 6])[0] == [d(0) % 6]
    apply = only(block, ApplyOp)
    assert k.value_of(twice) is apply.results[0]


def test_integers_wrap(block: Block) -> None:
    k = KernelBuilder(block)
    for value, type_, expected in (
        (200, IntegerType(8), -56),
        (-1, IntegerType(8), -1),
        (128, IntegerType(8), -128),
        (127, IntegerType(8), 127),
        (3, i1, -1),
        (1 << 63, i64, -(1 << 63)),
    ):
        constant = k.integer(value, type_).owner
        assert isinstance(constant, arith.ConstantOp)
        assert isinstance(constant.value, IntegerAttr)
        assert constant.value.value.data == expected


def test_layouts_say_where_elements_lie(block: Block) -> None:
    """Channel 19 of 32 is the third element of the second block of 16."""
    k = KernelBuilder(block)
    value = k.floating(0.0, f32)
    k.layouts[block.args[1]] = LayoutAttr.blocked(2, 1, 16)
    k.store(value, block.args[1], [0, 19])
    k.store_border(value, block.args[1], [0, 1, 3])
    stores = [op for op in block.ops if isinstance(op, StoreOp)]
    assert [store.map.data for store in stores] == [(0, 1, 3), (0, 1, 3)]
    assert [store.border is not None for store in stores] == [False, True]


@pytest.mark.parametrize("in_lanes", [False, True])
def test_loads_of_a_branch_are_volatile(block: Block, in_lanes: bool) -> None:
    """But for those that are alike for all lanes, which vectors replace."""
    k = KernelBuilder(block)
    with k.when(k.compare_index("slt", N, 3), in_lanes=in_lanes):
        k.load(block.args[0], [0, 0])
    load = only(block, LoadOp)
    assert isinstance(load, LoadOp)
    assert (load.volatile is None) == in_lanes
