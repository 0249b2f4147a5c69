"""Functions that differ in numbers only: one is left, and the results keep every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import f32, ui8
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.targets import compiler_flags
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .forms import some  # noqa: TID251  (these are tests)
from .programs import difference, module_of, typed  # noqa: TID251  (these are tests)
from .targets import run_together  # noqa: TID251  (as above)

Array = NDArray[Any]

SIZE = 21
"""Rows and columns: whole vectors of all targets and more."""


def number(value: float, dtype: Any = np.float32) -> SSAValue:
    """A constant that becomes a number in the code."""
    return ConstantOp.of(np.array(value, dtype)).result


def layer(x: SSAValue, seed: int) -> SSAValue:
    """A quantized product with scales, a zero point and a bound of its own, and a matrix."""
    rng = np.random.default_rng(seed)
    scale, zero = number(0.03 + seed / 100), number(100 + seed)
    rounded = e.AddOp(e.RoundOp(e.DivOp(x, scale).result).result, zero).result
    limited = e.MinOp(e.MaxOp(rounded, number(0.0)).result, number(250.0 - seed)).result
    shifted = e.SubOp(e.CastOp(e.CastOp(limited, ui8).result, f32).result, zero).result
    matrix = ConstantOp.of(rng.standard_normal((SIZE, SIZE)).astype(np.float32)).result
    product = MatmulOp(e.MulOp(shifted, scale).result, matrix).result
    return e.TanhOp(e.MulOp(product, number(0.2 + seed / 50)).result).result


def layers(x: SSAValue, count: int) -> SSAValue:
    for seed in range(count):
        x = layer(x, seed)
    return x


def maps_of(dtype: Any) -> Callable[[SSAValue], list[SSAValue]]:
    """Three maps of one type; what differs is what is added, not what is multiplied by."""

    def body(x: SSAValue) -> list[SSAValue]:
        results: list[SSAValue] = []
        for value in (1, 5, 120):
            product = e.MulOp(x, number(3, dtype)).result
            results.append(e.AddOp(product, number(value, dtype)).result)
        return results

    return body


def lowered(
    name: str, module: ModuleOp, target: str, *, disable: Sequence[str] = (), threads: int = 1
) -> CArtifact:
    options = CompileOptions(target=target, disable=disable, threads=threads)
    # However small: these kernels have a few elements.
    worth = {"parallelize": ParallelizePass(worth=0)}
    context = LowerdeckContext(options=options)
    run_to_phase(context, module, "scheduled", after="optimized", instead=worth)
    module.verify()
    return emit_c(module, name, target)


@pytest.mark.parametrize(("target", "threads"), [("c99", 1), ("native", 2)])
def test_layers_share_functions_and_keep_every_bit(
    target: str, threads: int, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)

    def module(count: int) -> ModuleOp:
        return module_of([typed(x.dtype, *x.shape)], partial(layers, count=count))

    (wanted,) = Interpreter().call(find_function(module(4), "main"), [x])
    counts: dict[tuple[int, Sequence[str]], int] = {}
    models: list[tuple[CArtifact, list[Array]]] = []
    for disable in ((), ("merge-functions",)):
        for count in (2, 4):
            built, name = module(count), f"m{len(counts)}"
            artifact = lowered(name, built, target, disable=disable, threads=threads)
            counts[count, disable] = len(kernel.functions_of(built))
            models.append((artifact, [x]))
    assert counts[4, ()] == counts[2, ()]
    assert counts[4, ("merge-functions",)] > counts[2, ("merge-functions",)]
    outcomes = run_together(target, models[1::2], tmp_path, compiler_flags(target), x.size)
    (status, (merged,)), (other_status, (apart,)) = outcomes
    assert (status, other_status) == (0, 0)
    assert merged.tobytes() == apart.tobytes()
    assert difference(merged, np.asarray(wanted), 64, 1) is None


@pytest.mark.parametrize(
    "dtype", some([np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64])
)
def test_numbers_of_every_type(dtype: Any, tmp_path: Path) -> None:
    x = (np.random.default_rng(1).standard_normal((SIZE, SIZE)) * 9).astype(dtype)
    module = module_of([typed(x.dtype, *x.shape)], maps_of(dtype))
    wanted = Interpreter().call(find_function(module, "main"), [x])
    artifact = lowered("p", module, "native")
    assert len(kernel.functions_of(module)) == 1
    flags = compiler_flags("native")
    ((status, found),) = run_together("native", [(artifact, [x])], tmp_path, flags, x.size)
    assert status == 0
    for result, value in zip(found, wanted, strict=True):
        assert difference(result, np.asarray(value), 1, 1) is None


def test_half_precision_stays_apart() -> None:
    """Its numbers are converted where they are read."""
    module = module_of([typed(np.float16, SIZE)], maps_of(np.float16))
    lowered("p", module, "c99")
    assert len(kernel.functions_of(module)) == 3
