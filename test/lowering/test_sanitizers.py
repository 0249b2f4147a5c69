"""Whole models as C without warnings under two compilers, clean under ASan, UBSan and TSan."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from fuzz.c_harness import SANITIZERS, Limits, build, missing, run, write_harness
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import f32, i64, tensor
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .forms import EVERY_FORM  # noqa: TID251  (these are tests, not the folder of sources)
from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    module_of,
    symbol,
    typed,
)

N, H, W = symbol("n"), symbol("h"), symbol("w")
PADDED: dict[str, Any] = {"dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1]}


def weights(*shape: int) -> Any:
    """A constant tensor."""
    values = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    return ConstantOp.of(values / 4).result


def relu(x: Any) -> Any:
    return e.MaxOp(x, scalar(0.0, f32).result).result


def cnn() -> ModuleOp:
    """Convolutions, pools, a residual, a classifier: all sizes are known."""

    def body(x: Any) -> Any:
        y = relu(ConvOp(x, weights(4, 3, 3, 3), weights(4), strides=[2, 2], **PADDED).result)
        z = ConvOp(y, weights(4, 2, 3, 3), strides=[1, 1], groups=2, **PADDED).result
        pooled = PoolOp("max", e.AddOp(y, relu(z)).result, kernel=[2, 2], strides=[2, 2], **PADDED)
        mean = ReduceOp("sum", pooled.result, [2, 3])
        product = MatmulOp(mean.result, weights(4, 10))
        return SoftmaxOp(e.AddOp(product.result, weights(10)).result, 1)

    return module_of([typed(np.float32, 1, 3, 9, 8)], body)


def dynamic() -> ModuleOp:
    """Batch, height and width are arguments."""

    def body(x: Any) -> Any:
        y = relu(ConvOp(x, weights(4, 2, 3, 3), strides=[2, 2], **PADDED).result)
        up = ConvTransposeOp(
            y, weights(4, 2, 2, 2), strides=[2, 2], dilations=[1, 1], pads_begin=[0, 0],
            pads_end=[H % 2, W % 2], output_padding=[0, 0],
        ).result  # fmt: skip
        total = e.AddOp(x, up).result
        flat = t.ReshapeOp(t.TransposeOp(total, [0, 2, 3, 1]).result, [N, H * W, 2])
        return [LayerNormOp(flat.result, weights(2), None, 1e-5, 2), ArgReduceOp("max", y, 1)]

    return module_of([typed(np.float32, N, 2, H, W)], body)


def loop() -> ModuleOp:
    """A loop that stops early, with a branch in it and a scan output."""

    def body(x: Any, limit: Any) -> Any:
        block = Block(arg_types=[tensor(i64, []), x.type, x.type])
        with ImplicitBuilder(block) as (index, a, b):
            total = ReduceOp("sum", e.AbsOp(a).result, [0, 1]).result
            grows = e.CompareOp("lt", total, scalar(50.0, f32).result).result
            branches = [Block(), Block()]
            for branch, op in zip(branches, (e.AddOp, e.SubOp), strict=True):
                with ImplicitBuilder(branch):
                    YieldOp([op(a, b).result])
            chosen = IfOp(grows, Region(branches[0]), Region(branches[1])).results[0]
            small = e.CompareOp("lt", index, scalar(6, i64).result).result
            YieldOp([small, b, chosen, total])
        start = ConstantOp.of(np.array(True)).result
        results = LoopOp(limit, start, [x, x], Region(block), iteration="i", count="t").results
        return list(results)

    return module_of([typed(np.float32, N, 3), typed(np.int64)], body)


def allocating() -> ModuleOp:
    """Sizes from data, also inside of a loop."""

    def body(x: Any) -> Any:
        BindSymbolsOp(t.CountNonzeroOp(x).result, ["count"])
        found = t.NonzeroOp(x, symbol("count")).result
        block = Block(arg_types=[tensor(i64, []), tensor(i64, [])])
        with ImplicitBuilder(block) as (index, last):
            shifted = e.SubOp(x, e.CastOp(index, f32).result).result
            BindSymbolsOp(t.CountNonzeroOp(shifted).result, ["inner"])
            inner = t.NonzeroOp(shifted, symbol("inner")).result
            YieldOp([e.AddOp(last, ReduceOp("sum", inner, [0, 1]).result).result])
        trips, zero = scalar(3, i64).result, scalar(0, i64).result
        sums = LoopOp(trips, None, [zero], Region(block), iteration="i").results[0]
        return [
            t.TransposeOp(found, [1, 0]),
            sums,
            t.GatherOp(x, t.SliceOp(found, [0, 0], [1, symbol("count")]).result, 0),
        ]

    return module_of([typed(np.float32, N, 3)], body)


def changing() -> ModuleOp:
    """Carried values that change their size and places, in and around a branch and another loop."""
    s, u = symbol("s"), symbol("u")

    def grown(limit: Any, value: Any, row: Any) -> Any:
        block = Block(arg_types=[tensor(i64, []), tensor(f32, [symbol("p"), 3])])
        with ImplicitBuilder(block) as (_, v):
            YieldOp([t.ConcatOp([v, row], 0).result])
        names: dict[str, Any] = {"carried_symbols": ["p"], "result_symbols": ["q"]}
        return LoopOp(limit, None, [value], Region(block), **names).results[0]

    def body(x: Any, limit: Any) -> Any:
        block = Block(arg_types=[tensor(i64, []), tensor(f32, [s, 3]), tensor(f32, [u, 3])])
        with ImplicitBuilder(block) as (index, a, b):
            small = e.CompareOp("lt", index, scalar(2, i64).result).result
            branches = [Block(), Block()]
            with ImplicitBuilder(branches[0]):
                YieldOp([grown(index, a, t.SliceOp(x, [0, 0], [1, 3]).result)])
            with ImplicitBuilder(branches[1]):
                YieldOp([t.SliceOp(a, [s // 2, 0], [s - s // 2, 3]).result])
            regions = [Region(branch) for branch in branches]
            chosen = IfOp(small, *regions, result_symbols=["r"]).results[0]
            YieldOp([b, e.NegOp(chosen).result])
        names: dict[str, Any] = {"carried_symbols": ["s", "u"], "result_symbols": ["v", "w"]}
        results = LoopOp(limit, None, [x, x], Region(block), iteration="i", **names).results
        return [*results, ReduceOp("sum", t.ConcatOp(list(results), 0).result, [0])]

    return module_of([typed(np.float32, N, 3), typed(np.int64)], body)


def lstm() -> ModuleOp:
    """A recurrent layer: gates i, o, f, c, one step an iteration."""
    hidden = 4

    def body(x: Any, h0: Any, c0: Any) -> Any:
        kernel, recurrent, bias = weights(3, 16), weights(4, 16), weights(16)
        block = Block(arg_types=[tensor(i64, []), h0.type, c0.type])
        with ImplicitBuilder(block) as (index, h, c):
            step = t.GatherOp(x, index, 0).result
            product = e.AddOp(MatmulOp(step, kernel).result, MatmulOp(h, recurrent).result)
            gates = e.AddOp(product.result, bias).result
            i, o, f, g = (t.SliceOp(gates, [0, k * hidden], [N, hidden]).result for k in range(4))
            kept = e.MulOp(e.SigmoidOp(f).result, c).result
            new = e.MulOp(e.SigmoidOp(i).result, e.TanhOp(g).result).result
            cell = e.AddOp(kept, new).result
            out = e.MulOp(e.SigmoidOp(o).result, e.TanhOp(cell).result).result
            YieldOp([out, cell, out])
        trips = ConstantOp.of(np.array(5)).result
        return list(LoopOp(trips, None, [h0, c0], Region(block), iteration="i", count="t").results)

    types = [typed(np.float32, 5, N, 3), *[typed(np.float32, N, hidden)] * 2]
    return module_of(types, body)


MODELS: dict[str, tuple[Callable[[], ModuleOp], str]] = {
    "cnn": (cnn, ""),
    "dynamic": (dynamic, ""),
    "loop": (loop, ""),
    "allocating": (allocating, ""),
    "changing": (changing, ""),
    "lstm": (lstm, ""),
}

POOLED = {
    "cnn": "tsan",
    "dynamic": "asan",
    "loop": "tsan",
    "allocating": "asan",
    "changing": "asan",
    "lstm": "tsan",
}
"""What the threads of a pool are watched by; `make test-slow` takes both."""

LIMITS: dict[str, Limits] = {
    "loop": Limits({"x1": (-2, 8)}),
    "changing": Limits({"x1": (-2, 5)}),
}
"""Inputs that say how long loops run."""


def artifact_of(name: str, threads: int = 1) -> CArtifact:
    """The C of a model."""
    module = MODELS[name][0]()
    for pass_name in (
        "form-kernels",
        "fuse-epilogue",
        "view-parts",
        "bufferize",
        "lower-kernels",
        "compute-in-place",
        "parallelize",
        "plan-memory",
        "open-outputs",
    ):
        if pass_name != "parallelize":
            ALL_PASSES[pass_name]()().apply(LowerdeckContext(), module)
        elif threads > 1:
            ParallelizePass(worth=0).apply(LowerdeckContext(), module)
    return emit_c(module, name, "native")


def build_and_run(
    folder: Path,
    name: str,
    compiler: str,
    *flags: str,
    threads: int = 1,
    callers: int = 1,
    runs: int = 40,
) -> None:
    """Compile a model with the harness, without a warning, and make some runs."""
    artifact = artifact_of(name, threads)
    write_harness(artifact, folder, LIMITS.get(name), callers)
    failed = build(artifact, folder, compiler, flags)
    assert failed is None, failed.text[:3000]
    found = run(artifact, folder, seed=0, runs=runs)
    assert not found.findings, [(finding.key, finding.text[:3000]) for finding in found.findings]
    assert found.statuses[0] > 5


def require(compiler: str, sanitizer: str | None = None) -> None:
    """Skip, and say why, where there is no such compiler or runtime."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if sanitizer is not None and (reason := missing(compiler, sanitizer)) is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("name", MODELS if EVERY_FORM else ["cnn", "loop", "lstm"])
def test_sanitizers(tmp_path: Path, name: str) -> None:
    """Those of clang; `test_pool` has gcc's."""
    require("clang", "asan")
    build_and_run(tmp_path, name, "clang", *SANITIZERS["asan"])


@pytest.mark.parametrize(
    ("name", "compiler"),
    [(name, ("gcc", "clang")[number % 2]) for number, name in enumerate(MODELS)],
)
def test_warnings_of_optimizers(tmp_path: Path, name: str, compiler: str) -> None:
    """Optimization finds more to warn of, and vectorization more to go wrong."""
    require(compiler)
    build_and_run(tmp_path, name, compiler, "-O3", "-march=native", "-Wshadow")


@pytest.mark.parametrize("name", MODELS if EVERY_FORM else ["allocating"])
def test_two_callers(tmp_path: Path, name: str) -> None:
    """Two threads run one model at once, each with its own workspace."""
    require("gcc", "tsan")
    build_and_run(tmp_path, name, "gcc", *SANITIZERS["tsan"], callers=16)


@pytest.mark.parametrize(
    ("name", "sanitizer"),
    [
        (name, sanitizer)
        for name, found in POOLED.items()
        for sanitizer in (("asan", "tsan") if EVERY_FORM else (found,))
    ],
)
def test_pool(tmp_path: Path, name: str, sanitizer: str) -> None:
    """The threads of a pool share one run; of more threads than cores, a run takes its time."""
    require("gcc", sanitizer)
    runs = 40 if EVERY_FORM else 15
    flags = SANITIZERS[sanitizer]
    build_and_run(tmp_path, name, "gcc", *flags, threads=3, callers=4, runs=runs)
