"""C that lowering makes rarely or not at all, run beside the interpreter."""

from __future__ import annotations

from operator import add, mul
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser

import lowerdeck.lowering.emit_c
from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import BindSymbolsOp
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import CountNonzeroOp, NonzeroOp, SliceOp
from lowerdeck.dialects.core.types import i64, tensor
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.emit_c.writer import CWriter, c_expr
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Allocator,
    Call,
    Suite,
    compile_all,
    module_of,
    symbol,
    typed,
)

INPUT_DIMS = 2
"""The status of dimensions that do not fit."""

MODULE = """
buffer.func @kernel {{
^bb0(%x : !buffer.ref<[2] x i64>, %y : !buffer.ref<[2] x i64>):
{body}
  buffer.return
}} {{symbols = [], outputs = #builtin.int<1>}}
buffer.entry ["x"] -> ["y"] {{
^bb0(%x : !buffer.ref<[2] x i64>, %y : !buffer.ref<[2] x i64>):
  buffer.call @kernel(%x, %y) <[]> : (!buffer.ref<[2] x i64>, !buffer.ref<[2] x i64>)
  buffer.return
}} {{workspace = #core.dims<[0]>, weights = #builtin.int<64>}}
"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Arith, Core, Buffer):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def both_ways(body: str, x: list[int], folder: Path) -> tuple[list[int], list[int]]:
    """What the interpreter and C give for a kernel of x: 2 x i64 to y: 2 x i64."""
    module = parse(MODULE.format(body=body))
    array = np.array(x, np.int64)
    expected = run_entry(module, {"x": array})["y"].tolist()
    artifact = emit_c(module, "model", "native")
    call = Call(compile_all([artifact], folder), artifact).prepare([array], [2])
    assert call.run() == 0
    return call.results()[0].tolist(), expected


def test_carried_values_that_change_places(tmp_path: Path) -> None:
    """(a, b) -> (b, a), three times."""
    body = """
    %a = buffer.load %x <[0]> : !buffer.ref<[2] x i64> -> i64
    %b = buffer.load %x <[1]> : !buffer.ref<[2] x i64> -> i64
    %c, %d = buffer.for <[0, 3, 1]> carry %a, %b : i64, i64 -> i64, i64 {
    ^bb1(%i : index, %p : i64, %q : i64):
      buffer.yield %q, %p : i64, i64
    } {parallel = false}
    buffer.store %c, %y <[0]> : i64, !buffer.ref<[2] x i64>
    buffer.store %d, %y <[1]> : i64, !buffer.ref<[2] x i64>"""
    found, expected = both_ways(body, [3, 5], tmp_path)
    assert found == expected == [5, 3]


def test_lowest_bit(tmp_path: Path) -> None:
    """An integer cut to one bit."""
    body = "".join(
        f"""
    %v{k} = buffer.load %x <[{k}]> : !buffer.ref<[2] x i64> -> i64
    %b{k} = arith.trunci %v{k} : i64 to i1
    %w{k} = arith.extui %b{k} : i1 to i64
    buffer.store %w{k}, %y <[{k}]> : i64, !buffer.ref<[2] x i64>"""
        for k in range(2)
    )
    found, expected = both_ways(body, [6, -3], tmp_path)
    assert found == expected == [0, 1]


class Watched(Allocator):
    """Knows how much was in use at most."""

    peak = 0

    def _on_allocate(self, context: int | None, size: int) -> int | None:
        address = super()._on_allocate(context, size)
        self.peak = max(self.peak, len(self.live))
        return address


def test_temporaries_of_an_iteration_end_with_it(tmp_path: Path) -> None:
    """Memory of sizes that depend on data does not grow with the number of iterations."""

    def body(x: SSAValue, trips: SSAValue) -> SSAValue:
        block = Block(arg_types=[tensor(i64, []), x.type])
        with ImplicitBuilder(block):
            count = CountNonzeroOp(block.args[1])
            BindSymbolsOp(count.result, ["count"])
            found = NonzeroOp(block.args[1], symbol("count"))
            total = ReduceOp("sum", found.result, [0, 1])
            YieldOp([e.AddOp(block.args[1], total.result).result])
        return LoopOp(trips, None, [x], Region(block)).results[0]

    module = module_of([typed(np.int64, 3), typed(np.int64)], body)
    for name in ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels", "plan-memory"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    artifact = emit_c(module, "model", "native")
    library = compile_all([artifact], tmp_path)
    peaks: list[int] = []
    for trips in (1, 5):
        call = Call(library, artifact).prepare([np.array([0, 1, 1]), np.array(trips)], [3])
        allocator = Watched()
        call["allocator"] = allocator.address
        assert call.run() == 0
        assert allocator.calls >= trips
        assert not allocator.live
        peaks.append(allocator.peak)
    assert peaks[0] == peaks[1]


def test_slots_of_a_loop_take_turns(tmp_path: Path) -> None:
    """Each iteration reads what it would overwrite if both slots were one: x + reversed x."""

    def body(x: SSAValue, trips: SSAValue) -> SSAValue:
        block = Block(arg_types=[tensor(i64, []), x.type])
        with ImplicitBuilder(block):
            backward = SliceOp(block.args[1], [2], [3], [-1])
            doubled = e.AddOp(block.args[1], block.args[1])
            YieldOp([e.AddOp(doubled.result, backward.result).result])
        return LoopOp(trips, None, [x], Region(block)).results[0]

    suite = Suite(tmp_path)
    for trips in (1, 2, 3):
        suite.on(body, np.array([1, 5, 20]), np.array(trips))
    suite.check()


def test_a_dimension_of_two_inputs_is_one(tmp_path: Path) -> None:
    n = symbol("n")
    module = module_of([typed(np.int64, n), typed(np.int64, n)], e.AddOp)
    for name in ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels", "plan-memory"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    artifact = emit_c(module, "model", "native")
    library = compile_all([artifact], tmp_path)
    for size, status in ((3, 0), (2, INPUT_DIMS), (4, INPUT_DIMS)):
        call = Call(library, artifact).prepare([np.arange(3), np.arange(size)], [3])
        assert call.run() == status


def test_workspace_has_room_to_be_aligned(tmp_path: Path) -> None:
    """Buffers lie at multiples of 64 bytes, wherever the caller's memory begins."""

    def twice(x: SSAValue) -> SSAValue:
        return SoftmaxOp(SoftmaxOp(x, 0).result, 0).result

    suite = Suite(tmp_path)
    suite.on(twice, np.ones(4, np.float32))
    ((_, artifact, _),) = suite.lowered
    assert artifact.metadata["workspace"] == 64 + 64


def test_no_text_is_searched() -> None:
    """What is used is known where it is written; the C just printed is not read for it."""
    sources = list(Path(lowerdeck.lowering.emit_c.__path__[0]).glob("*.py"))
    imports = [line for source in sources for line in source.read_text().splitlines()]
    assert len(sources) > 5
    assert "import re" not in imports


def test_long_sizes_have_parts() -> None:
    """Equal parts are named once, in a scope that reaches where they are read."""
    a, b = Expr.symbol("a"), Expr.symbol("b")
    quotient = (a * b + 63) // 64
    size = Expr.const(0)
    for k in range(1, 9):
        size = maximum(size + quotient * k, (a + k) // 3 * b, a * a * (7 * k))
    functions: dict[str, Any] = {
        "lowerdeck_max": max,
        "lowerdeck_size_max": max,
        "lowerdeck_add": add,
        "lowerdeck_mul": mul,
        "lowerdeck_floordiv": int.__floordiv__,
        "lowerdeck_size_floordiv": int.__floordiv__,
    }
    for is_size in (False, True):
        c = CWriter([])
        for name in ("a", "b"):
            c.bind_symbol(name)
        with c.block("if (a > 0)"):
            c.short(size)
        count = len(c.lines)
        text = c.short_size(size) if is_size else c.short(size)
        named = [line.strip().removeprefix("const int64_t ") for line in c.lines[count:]]
        parts = [line.rstrip(";").split(" = ") for line in named]
        assert max(map(len, (text, *named))) < 250 < len(c_expr(size, c.symbols))
        assert len(dict(parts)) == len({value for _, value in parts}) == len(parts)
        values: dict[str, Any] = {**functions, "a": 3, "b": 50}
        for name, value in parts:
            values[name] = eval(value, values)
        assert eval(text, values) == size.evaluate({"a": 3, "b": 50})
