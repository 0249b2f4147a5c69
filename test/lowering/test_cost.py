"""Cycles of kernels, computed from loops, a schedule and a machine: by hand for small ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.context import Context
from xdsl.parser import Parser

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.lowering.cost.cycles import Cost, cycles
from lowerdeck.lowering.loops.parameters import average_tiles, parts_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target

MACHINE = target_named("x86-64-v4").machine.but(
    "set: a test",
    registers=32,
    multiply_adds_per_cycle=2.0,
    loads_per_cycle=2.0,
    stores_per_cycle=1.0,
    latency_cycles=4.0,
    division_cycles=10.0,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=16 << 20,
    line_bytes=64,
    l2_line_cycles=2.0,
    shared_bytes_per_cycle=8.0,
    memory_bytes_per_cycle=4.0,
    loop_cycles=10.0,
)
TARGET = replace(target_named("x86-64-v4"), machine=MACHINE)

PRODUCT = """
buffer.func @product {
^bb0(%x: !buffer.ref<[{m}, {k}] x f32>, %w: !buffer.ref<[{p}, {k}, 32] x f32>,
     %y: !buffer.ref<[{m}, {n}] x f32>):
  buffer.for <[0, {m}, 1]> {
  ^bb0(%i: index):
    buffer.for <[0, {n}, 1]> {
    ^bb0(%j: index):
      %zero = arith.constant 0.0 : f32
      %sum = buffer.for <[0, {k}, 1]> carry %zero : f32 -> f32 {
      ^bb0(%l: index, %s: f32):
        %a = buffer.load %w(%j, %l) <[d0 floordiv 32, d1, d0 mod 32]>
            : !buffer.ref<[{p}, {k}, 32] x f32> -> f32
        %b = buffer.load %x(%i, %l) <[d0, d1]> : !buffer.ref<[{m}, {k}] x f32> -> f32
        %c = math.fma %b, %a, %s : f32
        buffer.yield %c : f32
      } {parallel = false}
      buffer.store %sum, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[{m}, {n}] x f32>
      buffer.yield
    } {parallel = false, label = "n"}
    buffer.yield
  } {parallel = true, label = "m"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<tiled_matmul{schedule}>}
"""

TILED = ", tile {m = 12, n = 2}, order [n, m], lanes {n = 16}"


def _context() -> Context:
    context = Context()
    register_dialects(context)
    return context


def product(m: int, k: int, n: int, schedule: str = TILED, target: Target = TARGET) -> Cost:
    """The cost of a product of matrices."""
    text = PRODUCT
    sizes = {"m": m, "k": k, "n": n, "p": -(-n // 32), "schedule": schedule}
    for name, value in sizes.items():
        text = text.replace(f"{{{name}}}", str(value))
    module = Parser(_context(), text).parse_module()
    (function,) = (op for op in module.walk() if isinstance(op, FuncOp))
    return cycles(function, target)


CLIPPED = """
buffer.func @clipped {
^bb0(%x: !buffer.ref<[16, 16] x f32>, %y: !buffer.ref<[16] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    %zero = arith.constant 0.0 : f32
    %sum = buffer.for (%i) <RANGE> carry %zero : f32 -> f32 {
    ^bb0(%j: index, %s: f32):
      %a = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[16, 16] x f32> -> f32
      %c = arith.addf %a, %s : f32
      buffer.yield %c : f32
    } {parallel = false}
    buffer.store %sum, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
"""
"""A loop within another, in a range."""


@pytest.mark.parametrize(
    ("range_", "same"),
    [("max(-d0 + 1, 0), min(-d0 + 17, 3)", "0, 3"), ("d0, 16", "0, 9"), ("d0 - 7, 4", "0, 4")],
)
def test_ranges_are_those_in_the_middle_of_loops_around(range_: str, same: str) -> None:
    """Number seven of sixteen iterations: not a large one, in which there may be nothing."""
    units: list[float] = []
    for text in (range_, same):
        module = Parser(_context(), CLIPPED.replace("RANGE", f"[{text}, 1]")).parse_module()
        (function,) = (op for op in module.walk() if isinstance(op, FuncOp))
        units.append(cycles(function, TARGET).units)
    assert units[0] == units[1] > 0


def test_whole_tiles() -> None:
    """Each step of a tile is 24 multiply-adds, 14 loads; then 24 stores. Two tiles by four."""
    cost = product(48, 64, 64)
    assert cost.units == 4 * 2 * (64 * 12 + 24)
    # One loop over panels, one over rows in each, one over the depth in each tile.
    assert cost.starts == (1 + 2 + 8) * 10
    # 12 KiB of rows, 16 KiB of weights and 12 KiB of results do not stay in the L1 cache as a
    # whole, but what one panel needs does: each line comes once, and results go, too.
    assert cost.l2 == 2 * (48 * 64 / 16 + 64 * 64 / 16 + 2 * 48 * 64 / 16)
    assert cost.shared == cost.memory == 0
    assert cost.total == max(cost.units, cost.l2) + cost.starts


def test_what_the_caches_hold_costs_nothing() -> None:
    assert product(12, 32, 32).l2 == 0
    assert product(240, 1024, 640).shared > 0 == product(240, 1024, 640).memory
    assert product(2400, 1024, 2048).memory > 0


def test_remainders_are_tiles_of_their_own() -> None:
    """49 rows: a tile of one row waits for its sums, which are two at once."""
    whole, more = product(48, 64, 64), product(49, 64, 64)
    assert more.units - whole.units == 2 * (64 * 4 + 2)
    # 72 columns: one more vector of eight lanes takes as long as one of sixteen.
    assert product(48, 64, 72).units - whole.units == 4 * (64 * 6.5 + 12)


def test_few_sums_wait_and_wide_tiles_do_not() -> None:
    narrow = product(48, 64, 64, ", tile {m = 2, n = 2}, order [n, m], lanes {n = 16}")
    assert narrow.units == 24 * 2 * (64 * 4 + 4)
    assert narrow.starts > product(48, 64, 64).starts


def test_without_vectors_each_element_is_an_operation() -> None:
    plain = product(48, 64, 64, "")
    assert plain.units == 48 * 64 * (64 * 4 + 1)


@pytest.mark.parametrize(
    ("number", "value", "term"),
    [
        ("multiply_adds_per_cycle", 1.0, "units"),
        ("loop_cycles", 20.0, "starts"),
        ("l2_line_cycles", 4.0, "L2"),
        ("shared_bytes_per_cycle", 4.0, "shared"),
        ("memory_bytes_per_cycle", 2.0, "memory"),
    ],
)
def test_each_number_has_its_term(number: str, value: float, term: str) -> None:
    """A unit that is half as fast makes its own term longer, and no other one."""
    before = product(2400, 1024, 2048).terms()
    slower = replace(TARGET, machine=MACHINE.but("set: a test", **{number: value}))
    after = product(2400, 1024, 2048, target=slower).terms()
    changed = {name for name, cycles in after.items() if cycles != before[name]}
    assert changed == {term}
    assert after[term] > 1.8 * before[term]


@pytest.mark.parametrize("count", [1, 2, 6, 8, 14, 29])
def test_tiles_of_an_open_number_on_average(count: int) -> None:
    """As many of each size as the tiles of all numbers around it have."""
    size, middle = Expr.symbol("n"), 8 * count + (count - 1) / 2
    found: dict[int, float] = {}
    for part in parts_of(size, count, 1, 5):
        for number in range(8 * count, 9 * count):
            ends = [end.evaluate({"n": number}) for end in (part.lower, part.upper)]
            found[part.count] = found.get(part.count, 0) + (ends[1] - ends[0]) / part.step / count
    meant = average_tiles(middle, count, 5)
    assert {of: number for number, of in meant} == pytest.approx(
        {of: number for of, number in found.items() if number}
    )


COLUMNS = """
buffer.func @columns {
^bb0(%x: !buffer.ref<[20, 64] x f32>, %y: !buffer.ref<[20, 64] x f32>):
  buffer.for <[0, 64, 1]> {
  ^bb0(%i: index):
    %zero = arith.constant 0.0 : f32
    %sum = buffer.for <[0, 20, 1]> carry %zero : f32 -> f32 {
    ^bb0(%j: index, %s: f32):
      %a = buffer.load %x(%i, %j) <[d1, d0]> : !buffer.ref<[20, 64] x f32> -> f32
      %c = arith.addf %s, %a : f32
      buffer.yield %c : f32
    } {parallel = false}
    buffer.store %sum, %y(%i) <[0, d0]> : f32, !buffer.ref<[20, 64] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
"""
"""Sums along the first dimension, of columns side by side."""


def _units(text: str) -> float:
    module = Parser(_context(), text).parse_module()
    (function,) = (op for op in module.walk() if isinstance(op, FuncOp))
    return cycles(function, TARGET).units


def test_sums_side_by_side() -> None:
    """Four vectors of columns, whose sums do not wait for each other: an addition takes a cycle."""
    assert TARGET.limits.sum_vectors == 4
    assert _units(COLUMNS) == 4 * (20 * 4 / 4 + 1)


def test_running_sums_are_no_reductions() -> None:
    """What is stored on the way is computed one by one in a row, where each waits for the last."""
    row = """
    buffer.func @row {
    ^bb0(%x: !buffer.ref<[64] x f32>, %y: !buffer.ref<[64] x f32>):
      %zero = arith.constant 0.0 : f32
      %sum = buffer.for <[0, 64, 1]> carry %zero : f32 -> f32 {
      ^bb0(%j: index, %s: f32):
        %a = buffer.load %x(%j) <[d0]> : !buffer.ref<[64] x f32> -> f32
        %c = arith.addf %s, %a : f32
        buffer.store %c, %y(%j) <[d0]> : f32, !buffer.ref<[64] x f32>
        buffer.yield %c : f32
      } {parallel = false}
      buffer.return
    } {symbols = [], outputs = #builtin.int<1>}
    """
    assert _units(row) == 64 * 4


def test_units_of_their_own() -> None:
    """A square takes four shuffles a vector; tiles of a product what the machine says of each."""
    text = """
    buffer.func @tiles {
    ^bb0(%x: !buffer.ref<[32, 32] x i32>, %y: !buffer.ref<[32, 32] x i32>):
      %t = buffer.scratch : !buffer.ref<[16, 16] x f32>
      buffer.transpose %t : !buffer.ref<[16, 16] x f32>
      PRODUCT
      buffer.return
    } {symbols = [], outputs = #builtin.int<1>}
    """
    assert _units(text.replace("PRODUCT", "")) == 16 * 4
    product_ = """
      %s = buffer.scratch : !buffer.ref<[32, 32] x i32>
      buffer.dot_tiles %x, %y, %s <[0, 0, 0, 0, 32, 32, 32]> packed unsigned_left
          : !buffer.ref<[32, 32] x i32>, !buffer.ref<[32, 32] x i32>, !buffer.ref<[32, 32] x i32>
    """
    machine = TARGET.machine
    own = 8 * machine.tile_product_cycles + machine.tile_store_cycles
    assert _units(text.replace("PRODUCT", product_)) == 16 * 4 + own
