"""Functions of f32 as arithmetic: how far off they are, through C and through the interpreter."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.lowering.targets import compiler_flags
from lowerdeck.passes.context import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Call,
    compile_all,
    module_of,
    typed,
)

Array = NDArray[Any]

COUNT = 1 << 18
SPECIALS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)

FUNCTIONS: tuple[type[e.UnaryOp], ...] = (e.ExpOp, e.TanhOp, e.ErfOp, e.LogOp, e.SigmoidOp)
EXACT: tuple[Callable[[Array], Array], ...] = (
    np.exp,
    np.tanh,
    np.vectorize(math.erf, otypes=[np.float64]),
    np.log,
    lambda x: 1 / (1 + np.exp(-x)),
)

WITHOUT_FMA = ("-O2", "-std=c99", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


def lowered(count: int, *passes: str) -> ModuleOp:
    """All functions of one vector, in kernels."""
    module = module_of([typed(np.float32, count)], lambda x: [op(x) for op in FUNCTIONS])
    context = LowerdeckContext()
    for name in (
        "form-kernels",
        "fuse-epilogue",
        "bufferize",
        "lower-kernels",
        "expand-math",
        *passes,
    ):
        ALL_PASSES[name]()().apply(context, module)
    module.verify()
    return module


def arguments() -> Array:
    """Numbers of every sign and size, more of them where functions bend, and special ones."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, COUNT // 4, np.uint32).view(np.float32)
    wide = rng.uniform(-110, 110, COUNT // 4).astype(np.float32)
    narrow = rng.uniform(-5, 5, COUNT // 4).astype(np.float32)
    # Where the two forms of tanh and erf meet, and where exp and the sigmoid leave the range.
    borders = np.array([0.625, 0.927734375, 9.02, 3.92, 88.72284, 87.33655, 88.0, 104.0, 1.0])
    near = rng.choice([*borders, *-borders], COUNT - 3 * (COUNT // 4) - len(SPECIALS))
    near = near * (1 + rng.normal(0, 1e-5, near.size))
    return np.concatenate([bits, wide, narrow, near.astype(np.float32), SPECIALS])


def errors(found: Array, exact: Array) -> Array:
    """Errors in units in the last place of f32; nothing of less than half of 2^-126 counts."""
    rounded = exact.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(rounded), np.float32(2**-126))).astype(np.float64)
    wide = found.astype(np.float64)
    same = (wide == exact) | (found == rounded) | (np.isnan(found) & np.isnan(exact))
    flushed = (np.abs(exact) < 2**-126) & (np.abs(wide - exact) < 0.75 * 2**-126)
    # One unit beyond the largest number lies infinity.
    limit = float(np.finfo(np.float32).max)
    units = np.abs(np.clip(wide, -limit, limit) - np.clip(exact, -limit, limit)) / unit
    return np.where(same | flushed, 0.0, np.where(np.isfinite(units), units, np.inf))


def check(results: list[Array], x: Array, limits: tuple[float, ...]) -> None:
    with np.errstate(all="ignore"):
        for function, exact, found, limit in zip(FUNCTIONS, EXACT, results, limits, strict=True):
            off = errors(found, exact(x.astype(np.float64)))
            worst = int(np.argmax(off))
            text = f"{function.name}({x[worst]!r}) is {found[worst]!r}: {off[worst]} ulp"
            assert off[worst] <= limit, text


@pytest.mark.parametrize(
    ("flags", "limits"),
    [
        (tuple(compiler_flags("native")), (1.0, 1.38, 1.07, 0.9, 2.5)),
        (WITHOUT_FMA, (1.2, 1.4, 1.25, 1.1, 2.5)),
    ],
    ids=["fma", "no-fma"],
)
def test_errors_in_c(tmp_path: Path, flags: tuple[str, ...], limits: tuple[float, ...]) -> None:
    artifact = emit_c(lowered(COUNT, "plan-memory"), "p", "native")
    assert not any(
        f"{name}(" in artifact.files["p.c"] for name in ("expf", "tanhf", "erff", "logf")
    )
    x = arguments()
    library = compile_all([artifact], tmp_path, flags)
    call = Call(library, artifact).prepare([x], [COUNT] * len(FUNCTIONS))
    assert call.run() == 0
    check(call.results(), x, limits)


def test_errors_in_interpreter() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.choice(arguments(), 2000), SPECIALS])
    results = run_entry(lowered(len(x)), {"0": x})
    check(list(results.values()), x, (1.2, 1.4, 1.25, 1.1, 2.5))


def test_signs_of_zero() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    _, tanh, erf, _, _ = run_entry(lowered(2), {"0": zeros}).values()
    assert not np.signbit(tanh[0])
    assert np.signbit(tanh[1])
    assert not np.signbit(erf[0])
    assert np.signbit(erf[1])


def test_f64_stays() -> None:
    module = module_of([typed(np.float64, 4)], lambda x: [op(x) for op in FUNCTIONS])
    context = LowerdeckContext()
    for name in ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels"):
        ALL_PASSES[name]()().apply(context, module)
    before = str(module)
    ALL_PASSES["expand-math"]()().apply(context, module)
    assert str(module) == before
