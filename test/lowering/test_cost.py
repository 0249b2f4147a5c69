"""Cycles of finished kernels, computed from their loops and a machine: by hand for small ones."""

from __future__ import annotations

from collections.abc import Sequence
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
    unit_bytes=32,
    instructions_per_cycle=6.0,
    instructions_ahead=200,
    operations_per_cycle=2.0,
    multiply_adds_per_cycle=1.0,
    shuffles_per_cycle=1.0,
    loads_per_cycle=2.0,
    stores_per_cycle=1.0,
    split_load_cycles=1.5,
    latency_cycles=4.0,
    division_cycles=10.0,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=16 << 20,
    line_bytes=64,
    l2_line_cycles=2.0,
    l2_copy_bytes_per_cycle=25.6,
    l2_return_bytes_per_cycle=6.4,
    shared_bytes_per_cycle=8.0,
    memory_bytes_per_cycle=4.0,
    jump_line_cycles=20.0,
    far_pages=1000,
    walk_cycles=50.0,
    loop_cycles=10.0,
)
"""A written line from the L2 cache takes 3 cycles, one from the shared cache 8 or 10, from memory
16, and 32 to come and go."""
TARGET = replace(target_named("x86-64-v4"), machine=MACHINE)

VECTOR = "vector<16xf32>"


def cost(body: str, *buffers: str, target: Target = TARGET) -> Cost:
    """Of a function on buffers %b0, %b1 and so on."""
    context = Context()
    register_dialects(context)
    arguments = ", ".join(f"%b{k}: !buffer.ref<{type_}>" for k, type_ in enumerate(buffers))
    names = '"s"' if any("s0" in type_ for type_ in buffers) else ""
    text = f"""
    buffer.func @kernel {{
    ^bb0({arguments}):
      {body}
      buffer.return
    }} {{symbols = [{names}], outputs = #builtin.int<1>}}
    """
    module = Parser(context, text).parse_module()
    (function,) = (op for op in module.walk() if isinstance(op, FuncOp))
    return cycles(function, target)


def loop(trips: int, body: str, variable: str = "%i") -> str:
    """A loop that carries nothing."""
    return f"""
    buffer.for <[0, {trips}, 1]> {{
    ^bb0({variable}: index):
      {body}
      buffer.yield
    }} {{parallel = false}}
    """


def load(name: str, buffer: str, map_: str, indices: str = "(%i)", type_: str = VECTOR) -> str:
    """A load from %b0 and so on, whose type is told."""
    number, _, ref = buffer.partition(" ")
    return f"{name} = buffer.load %b{number}{indices} <[{map_}]> : !buffer.ref<{ref}> -> {type_}"


def store(name: str, buffer: str, map_: str, indices: str = "(%i)", type_: str = VECTOR) -> str:
    """The same for a store."""
    number, _, ref = buffer.partition(" ")
    return f"buffer.store {name}, %b{number}{indices} <[{map_}]> : {type_}, !buffer.ref<{ref}>"


def scaled(count: int) -> str:
    """So many vectors, each multiplied by itself."""
    ref = f"[{count * 16}] x f32"
    product = f"%p = arith.mulf %v, %v : {VECTOR}"
    lines = [load("%v", f"0 {ref}", "d0 * 16"), product, store("%p", f"1 {ref}", "d0 * 16")]
    return loop(count, "\n".join(lines))


def of_scaled(count: int, target: Target = TARGET) -> Cost:
    ref = f"[{count * 16}] x f32"
    return cost(scaled(count), ref, ref, target=target)


def test_the_busiest_unit_counts() -> None:
    """A load, a product and a store a cycle; five instructions with those of the loop."""
    assert of_scaled(500).units == 500
    slow = replace(TARGET, machine=MACHINE.but("set: a test", instructions_per_cycle=2.0))
    assert of_scaled(500, slow).units == 500 * 5 / 2
    assert of_scaled(500).starts == 10
    assert of_scaled(500).total == max(500, of_scaled(500).l2) + 10


def test_lines_come_from_where_they_were_left() -> None:
    """All that a cache holds stays; else each line comes from the next one that holds all."""
    assert of_scaled(200).l2 == 0
    near, far, farthest = of_scaled(2_000), of_scaled(20_000), of_scaled(400_000)
    assert (near.l2, near.shared, near.memory) == pytest.approx((2_000 * (2 + 3), 0, 0))
    assert (far.l2, far.shared, far.memory) == pytest.approx((0, 20_000 * (8 + 10), 0))
    assert (farthest.l2, farthest.shared) == (0, 0)
    assert farthest.memory == 400_000 * (16 + 32)


@pytest.mark.parametrize(
    ("rows", "vectors", "jumps"),
    [
        # Fewer pages than are known: lines without a stream take 20 cycles rather than 16.
        (800, 1, 800 * 1024 * 4),
        (800, 4, 800 * 1024 * 4),
        # More: each column walks to every page again; wide ones wait for lines all the same.
        (2000, 1, 2000 * 1024 * 50),
        (2000, 4, 2000 * 256 * 50),
        (2000, 64, 2000 * 1024 * 4),
        # Rows of four pages: a stream has begun after two of them.
        (800, 256, 800 * 512 * 4),
    ],
)
def test_columns_of_memory_have_no_stream(rows: int, vectors: int, jumps: int) -> None:
    """So many vectors of each row, then those of the next row; whole rows are one stream."""
    ref, count = f"[{rows}, 16384] x f32", 1024 // vectors
    inner = loop(vectors, load("%v", f"0 {ref}", "d0, d1 * 16 + d2 * WIDTH", "(%k, %i, %j)"))
    column = loop(rows, inner.replace("WIDTH", str(16 * vectors)), "%k")
    assert cost(loop(count, column, "%j"), ref).jumps == pytest.approx(jumps)
    row = loop(count, inner.replace("WIDTH", str(16 * vectors)), "%j")
    assert cost(loop(rows, row, "%k"), ref).jumps == 0


def test_rows_side_by_side_are_one_stream() -> None:
    """Copies of a loop's body may read the rows between one iteration and the next."""
    ref = "[2000, 16384] x f32"
    lines = [load(f"%v{k}", f"0 {ref}", f"d1 * 4 + {k}, d0 * 16", "(%i, %j)") for k in range(4)]
    assert cost(loop(500, loop(1024, "\n".join(lines)), "%j"), ref).jumps == 0
    apart = [line.replace("d1 * 4 + ", "d1 + 500 * ") for line in lines]
    assert cost(loop(1024, loop(500, "\n".join(apart), "%j")), ref).jumps > 0


@pytest.mark.parametrize(
    ("number", "value", "term", "size"),
    [
        ("multiply_adds_per_cycle", 0.4, "units", 2_000),
        ("stores_per_cycle", 0.4, "units", 2_000),
        ("instructions_per_cycle", 2.0, "units", 2_000),
        ("loop_cycles", 25.0, "starts", 2_000),
        ("l2_line_cycles", 5.0, "L2", 2_000),
        ("shared_bytes_per_cycle", 1.0, "shared", 20_000),
        ("memory_bytes_per_cycle", 2.0, "memory", 400_000),
    ],
)
def test_each_number_has_its_term(number: str, value: float, term: str, size: int) -> None:
    """A unit that is half as fast makes its own term longer, and no other one."""
    before = of_scaled(size).terms()
    slower = replace(TARGET, machine=MACHINE.but("set: a test", **{number: value}))
    after = of_scaled(size, slower).terms()
    assert {name for name, cycles in after.items() if cycles != before[name]} == {term}
    assert after[term] > 1.8 * before[term]


def sums(steps: int, chains: int) -> str:
    """So many sums side by side."""
    names = [f"%s{k}" for k in range(chains)]
    types = ", ".join([VECTOR] * chains)
    ref = f"0 [{chains}, {steps * 16}] x f32"
    lines: Sequence[str] = [
        f"""{load(f"%v{k}", ref, f"{k}, d0 * 16")}
            %t{k} = arith.addf {names[k]}, %v{k} : {VECTOR}"""
        for k in range(chains)
    ]
    carried = ", ".join(f"{name}: {VECTOR}" for name in names)
    return f"""
    %zero = arith.constant 0.0 : f32
    %z = vector.broadcast %zero : f32 to {VECTOR}
    {", ".join(f"%r{k}" for k in range(chains))} = buffer.for <[0, {steps}, 1]>
        carry {", ".join(["%z"] * chains)} : {types} -> {types} {{
    ^bb0(%i: index, {carried}):
      {chr(10).join(lines)}
      buffer.yield {", ".join(f"%t{k}" for k in range(chains))} : {types}
    }} {{parallel = false}}
    """


def test_few_sums_wait_and_many_do_not() -> None:
    """An addition takes four cycles; eight of them side by side are made in as many."""
    for chains, cycles_ in ((1, 4), (2, 4), (8, 4), (16, 8)):
        found = cost(sums(100, chains), f"[{chains}, 1600] x f32")
        assert found.units == 100 * cycles_, chains


def test_a_short_loop_is_part_of_what_is_around_it() -> None:
    """
    A sum of eight waits 32 cycles, but the processor sees six such sums at a time: what counts is
    how many instructions it takes, 34 of them for each and two for the loop around.
    """
    body = sums(8, 1).replace("0, d0 * 16", "0, d0 * 16") + store(
        "%r0", "1 [500, 16] x f32", "d0, 0", "(%j)"
    )
    found = cost(loop(500, body, "%j"), "[1, 128] x f32", "[500, 16] x f32")
    number = 8 * 4 + 1 + 2
    # The first load comes before, and the last sum is stored.
    waiting = 8 * 4 + 4
    assert found.units == pytest.approx(500 * max(number / 6, waiting * number / 200))
    assert found.starts == 10


def test_loops_in_a_loop_are_entered_each_time() -> None:
    found = cost(loop(50, sums(100, 1), "%j"), "[1, 1600] x f32")
    # Each loop begins once more for what is around it, which has two instructions of its own.
    assert (found.units, found.starts) == (pytest.approx(50 * (100 * 4 + 2 / 6)), 51 * 10)


def test_short_vectors_take_as_long_as_half_of_one() -> None:
    """Units of 32 bytes: eight lanes and one take half a cycle, two registers two."""
    for type_, size in (("vector<16xf32>", 1), ("vector<8xf32>", 0.5), ("f32", 0.5)):
        body = loop(500, f"%p = arith.mulf %v, %v : {type_}")
        first = load("%v", "0 [16] x f32", "0", "", type_)
        assert cost(f"{first}\n{body}", "[16] x f32").units == pytest.approx(500 * size, rel=0.02)
    first = load("%v", "0 [16] x f64", "0", "", "vector<16xf64>")
    body = loop(500, "%p = arith.mulf %v, %v : vector<16xf64>")
    assert cost(f"{first}\n{body}", "[16] x f64").units == pytest.approx(1_000, rel=0.01)


def test_loads_in_two_lines_take_longer() -> None:
    """A load takes half a cycle, in two lines one and a half; of 16 places, one lies in one."""
    units: list[float] = []
    for offset in (0, 1):
        lines = [load(f"%v{k}", "0 [80] x f32", f"{16 * (k % 4) + offset}", "") for k in range(8)]
        units.append(cost(loop(500, "\n".join(lines)), "[80] x f32").units)
    assert units == pytest.approx([500 * 4, 500 * 8 * (0.5 + 15 / 16)])


def test_what_is_read_with_a_stride_is_merged() -> None:
    """Two vectors are read for one: their shuffle is what takes longest."""
    text = load("%v", "0 [64] x f32", "0", "") + " {stride = #builtin.int<2>}"
    assert cost(loop(500, text), "[64] x f32").units == pytest.approx(500)


def test_divisions() -> None:
    """One by one, those of f64 twice as long; integers without vectors, as long as they wait."""
    for element, cycles_ in (("f32", 10), ("f64", 20)):
        lanes = 16 if element == "f32" else 8
        first = load("%v", f"0 [16] x {element}", "0", "", f"vector<{lanes}x{element}>")
        body = loop(500, f"%q = arith.divf %v, %v : vector<{lanes}x{element}>")
        assert cost(f"{first}\n{body}", f"[16] x {element}").units == pytest.approx(
            500 * cycles_, rel=0.01
        )
    first = load("%v", "0 [8] x i64", "0", "", "vector<8xi64>")
    body = loop(500, "%q = arith.divsi %v, %v : vector<8xi64>")
    assert cost(f"{first}\n{body}", "[8] x i64").units == pytest.approx(4_000 * (4 + 10), rel=0.01)


def test_lines_that_data_choose_come_once_for_each_choice() -> None:
    """Of a long table one line for each index, and not the whole table each time."""
    table, rows = "[1000000] x f32", "[4000] x i64"
    body = f"""
    {load("%k", f"1 {rows}", "d0", "(%i)", "i64")}
    %at = arith.index_cast %k : i64 to index
    {load("%v", f"0 {table}", "d0", "(%at)", "f32")}
    {store("%v", "2 [4000] x f32", "d0", "(%i)", "f32")}
    """
    found = cost(loop(4_000, body), table, rows, "[4000] x f32")
    assert found.l2 == pytest.approx((4_000 + 4_000 / 8) * 2 + 4_000 / 16 * 3)
    assert found.shared == found.memory == 0


def test_open_sizes_are_assumed() -> None:
    """Also where an access names one: beside the variables of loops that jump from page to page."""
    ref = "[s0, 100000] x f32"
    row = load("%v", f"0 {ref}", "d0 + s0 - 1, d1 * 16", "(%i, %j)")
    found = cost(loop(6_000, loop(500, row), "%j"), ref)
    assert found.jumps > 0


def test_copies_of_a_tile_touch_what_lies_between_them() -> None:
    """Loads that differ in a constant are one access: together they read a whole row."""
    ref = "0 [40000] x f32"
    lines = [load(f"%v{k}", ref, f"d0 * 64 + {16 * k}") for k in range(4)]
    found = cost(loop(625, "\n".join(lines)), "[40000] x f32")
    assert found.l2 == 2_500 * 2


def test_branches_that_hardly_ever_are_taken() -> None:
    """What one of many lanes may need costs the question; what a number needs now and then more."""
    body = loop(100, f"%w = math.fma %v, %v, %v : {VECTOR}", "%k")
    first = load("%v", "0 [16] x f32", "0", "")
    lanes = f"""
    %m = buffer.compare gt %v, %v : {VECTOR} -> vector<16xi32>
    %c = buffer.any %m : vector<16xi32>
    scf.if %c {{ {body} }}
    """
    number = f"""
    %s = buffer.reduce add %v : {VECTOR} -> f32
    %c = arith.cmpf ogt, %s, %s : f32
    scf.if %c {{ {body} }}
    """
    rare, now_and_then = (
        cost(f"{first}\n{loop(500, text)}", "[16] x f32").units for text in (lanes, number)
    )
    assert rare < 500 * 3 < 500 * 100 / TARGET.costs.rare_branch <= now_and_then


CLIPPED = """
buffer.for <[0, 16, 1]> {
^bb0(%i: index):
  %zero = arith.constant 0.0 : f32
  %sum = buffer.for (%i) <RANGE> carry %zero : f32 -> f32 {
  ^bb0(%j: index, %s: f32):
    %a = buffer.load %b0(%i, %j) <[d0, d1]> : !buffer.ref<[16, 16] x f32> -> f32
    %c = arith.addf %a, %s : f32
    buffer.yield %c : f32
  } {parallel = false}
  buffer.store %sum, %b1(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
  buffer.yield
} {parallel = false}
"""
"""A loop within another, in a range."""


@pytest.mark.parametrize(
    ("range_", "same"),
    [("max(-d0 + 1, 0), min(-d0 + 17, 3)", "0, 3"), ("d0, 16", "0, 9"), ("d0 - 7, 4", "0, 4")],
)
def test_ranges_are_those_in_the_middle_of_loops_around(range_: str, same: str) -> None:
    """Number seven of sixteen iterations: not a large one, in which there may be nothing."""
    units = [
        cost(CLIPPED.replace("RANGE", f"[{text}, 1]"), "[16, 16] x f32", "[16] x f32").units
        for text in (range_, same)
    ]
    assert units[0] == units[1] > 0


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


def test_units_of_their_own() -> None:
    """
    A square takes four rounds of shuffles, of all its vectors; three interleaved ones less. Tiles
    of a product take what the machine says of each.
    """
    square = """
    %t = buffer.scratch : !buffer.ref<[16, 16] x f32>
    buffer.transpose %t : !buffer.ref<[16, 16] x f32>
    """
    assert cost(loop(500, square)).units == 500 * 16 * 4
    assert cost(loop(500, square.replace("[16, 16]", "[4, 16]"))).units == 500 * 4 * 2
    ref = "[32, 32] x i32"
    product_ = f"""
    %s = buffer.scratch : !buffer.ref<{ref}>
    buffer.dot_tiles %b0, %b1, %s <[0, 0, 0, 0, 32, 32, 32]> packed unsigned_left
        : !buffer.ref<{ref}>, !buffer.ref<{ref}>, !buffer.ref<{ref}>
    """
    own = 8 * MACHINE.tile_product_cycles + MACHINE.tile_store_cycles
    assert cost(loop(500, product_), ref, ref).units == max(500 * own, 500 * 3 / 6)
