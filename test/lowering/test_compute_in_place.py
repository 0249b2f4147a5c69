"""Results written over operands: random programs give the same numbers, without a race."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.reduce import CumulativeOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry import compute_in_place
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import difference, module_of, symbol, typed  # noqa: TID251  (these are tests)
from .targets import run_together  # noqa: TID251  (as above)

Array = NDArray[Any]

SIZE = 21
"""Rows and columns: whole vectors of all targets and more."""

FLAGS = ("-std=c99", "-O0", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi")


def _shift(x: SSAValue) -> SSAValue:
    """Rows move by one, the last one to the front."""
    last = t.SliceOp(x, [SIZE - 1, 0], [1, SIZE]).result
    return t.ConcatOp([last, t.SliceOp(x, [0, 0], [SIZE - 1, SIZE]).result], 0).result


def _scaled(x: SSAValue) -> SSAValue:
    """By sums of rows, which are read in the same kernel or another one."""
    return e.MulOp(x, ReduceOp("sum", x, [1], True).result).result


UNARY: list[Callable[[SSAValue], SSAValue]] = [
    lambda x: SoftmaxOp(x, 1).result,
    lambda x: SoftmaxOp(x, 0).result,
    lambda x: CumulativeOp("sum", x, 0).result,
    lambda x: CumulativeOp("sum", x, 1).result,
    lambda x: t.TransposeOp(x, [1, 0]).result,
    lambda x: e.TanhOp(x).result,
    lambda x: (
        t.ReshapeOp(e.NegOp(t.ReshapeOp(x, [SIZE * SIZE]).result).result, [SIZE, SIZE]).result
    ),
    _shift,
    _scaled,
]


def random_program(seed: int, *inputs: SSAValue) -> list[SSAValue]:
    """Values of one shape, each of a late one or two: some die at once, others are read again."""
    rng, known = Random(seed), [*inputs]
    for _ in range(9):
        x, y = (known[-min(rng.choice([1, 1, 1, 2, 3, 5]), len(known))] for _ in range(2))
        if rng.random() < 0.4:
            known.append(e.AddOp(x, e.SigmoidOp(y).result).result)
        else:
            known.append(rng.choice(UNARY)(x))
    return known[-2:]


def lowered(name: str, module: ModuleOp, threads: int) -> tuple[CArtifact, int]:
    """The C of a program, and in how many calls the result lies over an operand."""
    context = LowerdeckContext(options=CompileOptions(target="native", threads=threads))
    # However small: these kernels have a few elements.
    worth = {"parallelize": ParallelizePass(worth=0)}
    saved = _Saved()
    run_to_phase(context, module, "scheduled", saved, after="optimized", instead=worth)
    module.verify()
    return emit_c(module, name, "native"), saved.buffers


class _Saved(Observer):
    """Counts the buffers that compute-in-place saves."""

    def __init__(self) -> None:
        self.buffers = 0

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name == "compute-in-place":
            self.buffers += _buffers(module)

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name == "compute-in-place":
            self.buffers -= _buffers(module)


def _buffers(module: ModuleOp) -> int:
    return sum(isinstance(op, entry_ops.AllocOp) for op in module.walk())


def inputs_of(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize(("threads", "sanitizer"), [(1, "address,undefined"), (2, "thread")])
def test_random_programs(tmp_path: Path, threads: int, sanitizer: str) -> None:
    models: list[tuple[CArtifact, list[Array]]] = []
    expected: list[list[Array]] = []
    saved = 0
    for seed in range(5 if threads == 1 else 3):
        inputs = inputs_of(seed)
        types = [typed(x.dtype, *x.shape) for x in inputs]
        module = module_of(types, partial(random_program, seed))
        values = Interpreter().call(find_function(module, "main"), list(inputs))
        expected.append([np.asarray(value) for value in values])
        artifact, count = lowered(f"p{seed}", module, threads)
        models.append((artifact, inputs))
        saved += count
    assert saved > 4
    flags = [*FLAGS, f"-fsanitize={sanitizer}", "-fno-sanitize-recover"]
    outcomes = run_together("native", models, tmp_path, flags, SIZE * SIZE)
    for (status, outputs), wanted in zip(outcomes, expected, strict=True):
        assert status == 0
        problems = [difference(*pair, 64, 1) for pair in zip(outputs, wanted, strict=True)]
        assert problems == [None, None]


def test_open_sizes() -> None:
    """By the interpreter: what is proved holds for every size."""
    n = symbol("n")

    def body(x: SSAValue) -> list[SSAValue]:
        first = SoftmaxOp(x, 1).result
        second = SoftmaxOp(first, 0).result
        total = e.AddOp(second, e.TanhOp(first).result).result
        return [SoftmaxOp(total, 0).result, SoftmaxOp(second, 1).result]

    for size in (1, 16, 37):
        module = module_of([typed(np.float32, n, n)], body)
        x = np.random.default_rng(size).standard_normal((size, size)).astype(np.float32)
        wanted = Interpreter().call(find_function(module, "main"), [x])
        _, saved = lowered("p", module, 1)
        assert saved > 0
        for found, value in zip(run_entry(module, {"0": x}).values(), wanted, strict=True):
            assert difference(found, np.asarray(value), 64, 1) is None


@pytest.mark.parametrize(("largest", "copies"), [(1 << 20, 1), (1, 0)])
def test_copies(monkeypatch: pytest.MonkeyPatch, largest: int, copies: int) -> None:
    """The first softmax keeps its input; a large function stays as it is for the others, too."""
    monkeypatch.setattr(compute_in_place, "LARGEST_COPY", largest)

    def body(x: SSAValue) -> SSAValue:
        return SoftmaxOp(SoftmaxOp(SoftmaxOp(x, 1).result, 1).result, 1).result

    x = inputs_of(0)[0]
    module = module_of([typed(x.dtype, *x.shape)], body)
    (wanted,) = Interpreter().call(find_function(module, "main"), [x])
    _, saved = lowered("p", module, 1)
    assert saved == copies
    assert sum("_over_" in name for name in kernel.functions_of(module)) == copies
    (found,) = run_entry(module, {"0": x}).values()
    assert difference(found, np.asarray(wanted), 64, 1) is None
