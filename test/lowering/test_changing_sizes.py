"""Loops whose carried values grow and shrink, and branches of different sizes, in three ways."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.types import dims_of, f32, i64, tensor
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.emit_c.module import emit_c
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

Values = Sequence[SSAValue]


def loop(
    trips: SSAValue | None,
    inits: Values,
    arguments: Sequence[Any],
    body: Callable[..., Values],
    symbols: Sequence[tuple[str, str]],
    **options: Any,
) -> tuple[Any, ...]:
    """A loop; `body` gives what it yields for the iteration number and the carried values."""
    block = Block(arg_types=[tensor(i64, []), *arguments])
    with ImplicitBuilder(block) as args:
        YieldOp(list(body(*args)))
    names = {"carried_symbols": [s for s, _ in symbols], "result_symbols": [r for _, r in symbols]}
    condition = options.pop("condition", None)
    return tuple(LoopOp(trips, condition, inits, Region(block), **names, **options).results)


def branch(
    condition: Any, then: Callable[[], Values], otherwise: Callable[[], Values], *symbols: str
) -> tuple[Any, ...]:
    """An if."""
    regions = [Region(Block()), Region(Block())]
    for region, build in zip(regions, (then, otherwise), strict=True):
        with ImplicitBuilder(region.block):
            YieldOp(list(build()))
    return tuple(IfOp(condition, *regions, result_symbols=symbols).results)


def concat(*values: SSAValue) -> SSAValue:
    return t.ConcatOp(list(values), 0).result


def vector(name: str) -> Any:
    return typed(np.float32, symbol(name))


def size_of(value: Any) -> Any:
    """The first dimension, as a tensor."""
    return FromDimsOp([dims_of(value)[0]], []).result


def trips(count: int) -> np.ndarray[Any, Any]:
    return np.array(count, np.int64)


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def grows(n: Any, x: Any) -> Any:
    """Two rows more an iteration; the result is used by ops of its size."""

    def body(index: Any, v: Any) -> Values:
        row = e.AddOp(x, e.CastOp(index, f32).result).result
        return [concat(e.NegOp(v).result, row)]

    argument = typed(np.float32, symbol("s"), 3)
    (result,) = loop(n, [x], [argument], body, [("s", "r")])
    twice = concat(result, e.AbsOp(result).result)
    return [twice, size_of(twice), ReduceOp("sum", result, [0])]


def shrinks(x: Any, limit: Any) -> Any:
    """Cut in half until the sum is small: the number of iterations depends on data."""

    def body(_: Any, v: Any) -> Values:
        half = t.SliceOp(v, [0], [symbol("s") // 2]).result
        total = ReduceOp("sum", half, [0]).result
        return [e.CompareOp("gt", total, limit).result, half]

    start = ConstantOp.of(np.array(True)).result
    results = loop(
        None, [x], [vector("s")], body, [("s", "r")], condition=start, count="c", iteration="i"
    )
    return [results[0], FromDimsOp([symbol("c"), symbol("r")])]


def nested(n: Any, x: Any) -> Any:
    """An inner loop grows what the outer one carries and cuts."""

    def outer(index: Any, v: Any) -> Values:
        def inner(_: Any, w: Any) -> Values:
            return [concat(w, t.SliceOp(w, [0], [1]).result)]

        (grown,) = loop(index, [v], [vector("p")], inner, [("p", "q")])
        BindSymbolsOp(e.ModOp(index, scalar(2, i64).result).result, ["cut"])
        q, cut = symbol("q"), symbol("cut")
        return [t.SliceOp(grown, [cut], [q - cut]).result]

    return loop(n, [x], [vector("s")], outer, [("s", "r")])


def swaps(n: Any, x: Any, y: Any, z: Any) -> Any:
    """Two values change places, and one of them grows; a third keeps its size."""

    def body(_: Any, a: Any, c: Any, b: Any) -> Values:
        total = e.AddOp(c, ReduceOp("sum", a, [0]).result).result
        return [b, total, concat(a, z)]

    types = [vector("s"), typed(np.float32), vector("u")]
    inits = [x, scalar(0.0, f32).result, y]
    return loop(n, inits, types, body, [("s", "p"), ("u", "q")])


def rotates(n: Any, x: Any, y: Any) -> Any:
    """Both only change places, and one value is carried twice."""

    def body(_: Any, a: Any, b: Any, c: Any) -> Values:
        return [b, c, a]

    names = [("s", "p"), ("u", "q"), ("v", "o")]
    return loop(n, [x, y, y], [vector(s) for s, _ in names], body, names)


def branches(n: Any, x: Any, y: Any) -> Any:
    """Results of different sizes inside of a loop, used there; a branch yields what is outside."""

    def body(index: Any, v: Any) -> Values:
        even = e.ModOp(index, scalar(2, i64).result).result
        condition = e.CompareOp("eq", even, scalar(0, i64).result).result
        longer, _, same = branch(
            condition,
            lambda: [concat(v, y), scalar(1.0, f32).result, e.NegOp(y).result],
            lambda: [v, scalar(2.0, f32).result, y],
            "k",
        )
        return [e.AddOp(longer, ReduceOp("sum", same, [0]).result).result]

    (result,) = loop(n, [x], [vector("s")], body, [("s", "r")])
    return [result, ReduceOp("max", concat(result, y), [0])]


def chooses(flag: Any, x: Any, y: Any) -> Any:
    """Both values of a branch are one, and a size is known only in it."""

    def found() -> Values:
        BindSymbolsOp(t.CountNonzeroOp(x).result, ["inner"])
        rows = t.NonzeroOp(x, symbol("inner")).result
        picked = t.GatherOp(x, t.ReshapeOp(rows, [symbol("inner")]).result, 0).result
        return [picked, picked, y]

    results = branch(flag, found, lambda: [y, x, y], "a", "b")
    return [*results, FromDimsOp([symbol("a") + symbol("b")])]


def stays(n: Any, x: Any) -> Any:
    """What changes only sometimes; the initial value is used after the loop."""

    def body(index: Any, v: Any, w: Any) -> Values:
        BindSymbolsOp(e.MinOp(index, scalar(1, i64).result).result, ["less"])
        s, less = symbol("s"), symbol("less")
        return [t.SliceOp(v, [less], [s - less]).result, v]

    first = t.SliceOp(x, [0], [1]).result
    (grown,) = loop(n, [x], [vector("k")], lambda _, v: [concat(v, first)], [("k", "r")])
    (once,) = loop(n, [grown], [vector("l")], lambda _, v: [concat(first, v)], [("l", "m")])
    (once,) = loop(n, [once], [vector("t")], lambda _, v: [concat(v, first)], [("t", "o")])
    results = loop(n, [grown, grown], [vector("s"), vector("u")], body, [("s", "p"), ("u", "q")])
    return [*results, once, e.NegOp(grown)]


def collects(n: Any, x: Any) -> Any:
    """Scan outputs beside a value that grows from nothing."""

    def body(index: Any, v: Any) -> Values:
        total = ReduceOp("sum", v, [0]).result
        return [concat(v, x), total]

    empty = ConstantOp.of(np.zeros(0, np.float32)).result
    return loop(n, [empty], [vector("s")], body, [("s", "r")], count="c")


COUNTS = (0, 1, 2, 5)


@pytest.mark.parametrize("threads", [1, 2])
def test_changing_sizes(tmp_path: Path, threads: int) -> None:
    suite = Suite(tmp_path)
    x, y, z = numbers(5), numbers(2), numbers(1)
    for count in COUNTS:
        n = trips(count)
        suite.on(grows, n, numbers(2, 3), threads=threads)
        suite.on(nested, n, x, threads=threads)
        suite.on(swaps, n, x, y, z, threads=threads)
        suite.on(rotates, n, x, y, threads=threads)
        suite.on(branches, n, x, y, threads=threads)
        suite.on(stays, n, x, threads=threads)
        suite.on(collects, n, y, threads=threads)
    for limit in (0.0, 0.5, 1e9):
        suite.on(shrinks, np.abs(numbers(40)), np.array(limit, np.float32), threads=threads)
    for flag in (True, False):
        values = np.array([1, 0, 2, 0, 0, 3], np.float32)
        suite.on(chooses, np.array(flag), values, y, threads=threads)
    dynamic = [typed(np.int64), vector("n"), vector("m"), vector("l")]
    suite.add(dynamic, swaps, trips(4), x, y, z, threads=threads)
    suite.check()


def lowered(types: Sequence[Any], body: Any, name: str) -> Any:
    module = module_of(types, body)
    for step in (
        "form-kernels",
        "fuse-epilogue",
        "view-parts",
        "bufferize",
        "lower-kernels",
        "plan-memory",
        "open-outputs",
    ):
        ALL_PASSES[step]()().apply(LowerdeckContext(), module)
    return module, emit_c(module, name, "native")


def window(n: Any, x: Any) -> Any:
    """The last three of what was appended, and a value that is as long as the iteration is odd."""

    def body(index: Any, v: Any, w: Any) -> Values:
        row = t.ReshapeOp(e.CastOp(index, f32).result, [1]).result
        longer = concat(v, row)
        keep = symbol("keep")
        BindSymbolsOp(e.MinOp(size_of(longer), scalar(3, i64).result).result, ["keep"])
        last = t.SliceOp(longer, [symbol("s") + 1 - keep], [keep]).result
        BindSymbolsOp(e.ModOp(index, scalar(2, i64).result).result, ["odd"])
        return [last, t.SliceOp(last, [0], [symbol("odd")]).result]

    names = [("s", "p"), ("u", "q")]
    return loop(n, [x, x], [vector("s"), vector("u")], body, names)


def test_long_loop_is_bounded(tmp_path: Path) -> None:
    count = 100_000
    inputs = [trips(count), np.zeros(1, np.float32)]
    types = [typed(np.int64), typed(np.float32, 1)]
    _, artifact = lowered(types, window, "window")
    call = Call(compile_all([artifact], tmp_path), artifact).prepare(inputs, [8, 8])

    memory = np.zeros((16, 1024), np.uint8)
    free = [memory.ctypes.data + 1024 * k for k in range(16)]

    class Few(Allocator):
        """Sixteen pieces of a thousand bytes, which have to be enough."""

        def _on_allocate(self, context: int | None, size: int) -> int | None:
            assert size <= 1024
            self.calls += 1
            return free.pop() if free else None

        def _on_release(self, context: int | None, memory: int) -> None:
            free.append(memory)

    allocator = Few()
    call["allocator"] = allocator.address
    assert call.run() == 0
    last, odd = call.results()
    assert last.tolist() == [count - 3, count - 2, count - 1]
    assert odd.tolist() == [count - 3]
    assert allocator.calls > 2 * count
    assert len(free) == 16


FAILING = {
    "grows": (grows, [trips(3), numbers(2, 3)]),
    "nested": (nested, [trips(3), numbers(5)]),
    "branches": (branches, [trips(3), numbers(5), numbers(2)]),
}


@pytest.mark.parametrize("name", FAILING)
def test_every_failing_allocation_leaks_nothing(tmp_path: Path, name: str) -> None:
    body, inputs = FAILING[name]
    _, artifact = lowered([typed(value.dtype, *value.shape) for value in inputs], body, name)
    library = compile_all([artifact], tmp_path)
    outputs: Any = artifact.metadata["outputs"]
    call = Call(library, artifact).prepare(inputs, [4096] * len(outputs))
    assert call.run() == 0
    calls = call.allocator.calls
    assert not call.allocator.live
    for fail_at in range(1, calls + 1):
        allocator = Allocator(fail_at)
        call["allocator"] = allocator.address
        assert call.run() == 12
        assert not allocator.live


def test_sizes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """A slice of three where the value has shrunk to two."""

    def body(n: Any, x: Any) -> Any:
        def step(_: Any, v: Any) -> Values:
            first = t.SliceOp(v, [0], [3]).result
            rest = t.SliceOp(v, [1], [symbol("s") - 1]).result
            return [e.AddOp(rest, ReduceOp("sum", first, [0]).result).result]

        return loop(n, [x], [vector("s")], step, [("s", "r")])

    suite = Suite(tmp_path)
    suite.on(body, trips(3), numbers(5), may_fail=True)
    suite.on(body, trips(4), numbers(5), may_fail=True)
    suite.check()
    assert [program.is_refused for program in suite.programs] == [False, True]


def test_loops_of_one_size_need_no_allocator() -> None:
    """Values that keep their size stay in two slots of the workspace."""
    _, artifact = lowered(
        [typed(np.int64), typed(np.float32, 4)],
        lambda n, x: loop(n, [x], [x.type], lambda _, v: [e.NegOp(v).result], []),
        "fixed",
    )
    assert not artifact.metadata["needs_allocator"]


def test_simulated_threads_agree() -> None:
    module = module_of([typed(np.int64), typed(np.float32, 5), typed(np.float32, 2)], branches)
    for step in (
        "form-kernels",
        "fuse-epilogue",
        "view-parts",
        "bufferize",
        "lower-kernels",
        "parallelize",
        "plan-memory",
    ):
        ALL_PASSES[step]()().apply(LowerdeckContext(), module)
    inputs = {"0": trips(3), "1": numbers(5), "2": numbers(2)}
    assert run_entry(module, inputs)["0"].shape == (9,)
