"""Functions as arithmetic: how far off they are, through C and through the interpreter."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.types import bf16, f16
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.lowering.targets import compiler_flags
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Call,
    compile_all,
    module_of,
    typed,
)

Array = NDArray[Any]

COUNT = 1 << 18
SPECIALS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)

BY_F64: dict[type[e.UnaryOp], Callable[[Array], Array]] = {
    e.SinOp: np.sin,
    e.CosOp: np.cos,
    e.TanOp: np.tan,
    e.SinhOp: np.sinh,
    e.CoshOp: np.cosh,
    e.AsinhOp: np.arcsinh,
    e.AcoshOp: np.arccosh,
    e.AtanhOp: np.arctanh,
}
"""Those that are computed in f64."""
OF_F64: dict[type[e.UnaryOp], Callable[[Array], Array]] = {
    e.ExpOp: np.exp,
    e.TanhOp: np.tanh,
    e.LogOp: np.log,
    e.SinOp: np.sin,
    e.CosOp: np.cos,
    e.AtanOp: np.arctan,
}
"""Those of f64, and numpy's, whose long doubles have 64 digits on x86."""

FUNCTIONS: tuple[type[e.UnaryOp], ...] = (
    *(e.ExpOp, e.TanhOp, e.ErfOp, e.LogOp, e.SigmoidOp, e.AsinOp, e.AcosOp, e.AtanOp),
    *BY_F64,
)
EXACT: tuple[Callable[[Array], Array], ...] = (
    np.exp,
    np.tanh,
    np.vectorize(math.erf, otypes=[np.float64]),
    np.log,
    lambda x: 1 / (1 + np.exp(-x)),
    np.arcsin,
    np.arccos,
    np.arctan,
    *BY_F64.values(),
)
ROUNDED = (0.51,) * len(BY_F64)
"""What is computed in f64 is rounded once."""

WITHOUT_FMA = ("-O2", "-std=c99", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


def lowered(count: int, *passes: str, functions: Sequence[type[e.UnaryOp]] = FUNCTIONS) -> ModuleOp:
    """All functions of one vector, in kernels."""
    module = module_of([typed(np.float32, count)], lambda x: [op(x) for op in functions])
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
    borders = np.concatenate([borders, [0.1733, 0.52, 0.5, 2.0**-5, 89.4159]])
    near = rng.choice([*borders, *-borders], COUNT - 3 * (COUNT // 4) - len(SPECIALS))
    near = near * (1 + rng.normal(0, 1e-5, near.size))
    # Beside multiples of a quarter of the circle, where there is least to be seen of an angle.
    angles = (rng.integers(-(1 << 30), 1 << 30, 64) * (np.pi / 2)).astype(np.float32)
    wide[: angles.size] = angles
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
        (tuple(compiler_flags("native")), (1.0, 2.0, 1.07, 0.9, 2.0, 1.1, 1.1, 1.55, *ROUNDED)),
        (WITHOUT_FMA, (1.2, 2.0, 1.25, 1.1, 2.0, 1.1, 1.1, 1.75, *ROUNDED)),
    ],
    ids=["fma", "no-fma"],
)
def test_errors_in_c(tmp_path: Path, flags: tuple[str, ...], limits: tuple[float, ...]) -> None:
    artifact = emit_c(lowered(COUNT, "plan-memory"), "p", "native")
    names = "exp tanh erf log sin cos tan asin acos atan sinh cosh asinh acosh atanh".split()
    text = artifact.files["p.c"]
    assert not any(f" {name}{suffix}(" in text for name in names for suffix in ("f", ""))
    x = arguments()
    library = compile_all([artifact], tmp_path, flags)
    call = Call(library, artifact).prepare([x], [COUNT] * len(FUNCTIONS))
    assert call.run() == 0
    check(call.results(), x, limits)


def test_errors_in_interpreter() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.choice(arguments(), 2000), SPECIALS])
    results = run_entry(lowered(len(x)), {"0": x})
    check(list(results.values()), x, (1.2, 2.0, 1.25, 1.1, 2.0, 1.1, 1.1, 1.75, *ROUNDED))


def test_short_error_function(tmp_path: Path) -> None:
    """Its error, with a fused multiply-add and without; beyond its limit it is exactly one."""
    artifact = emit_c(lowered(COUNT, "plan-memory", functions=(e.ShortErfOp,)), "p", "native")
    x = arguments()
    for number, flags in enumerate((tuple(compiler_flags("native")), WITHOUT_FMA)):
        (folder := tmp_path / str(number)).mkdir()
        call = Call(compile_all([artifact], folder, flags), artifact).prepare([x], [COUNT])
        assert call.run() == 0
        (found,) = call.results()
        with np.errstate(all="ignore"):
            exact = EXACT[FUNCTIONS.index(e.ErfOp)](x.astype(np.float64))
        assert np.nanmax(np.abs(found - exact)) < e.SHORT_ERF_ERROR
        assert (np.isnan(found) == np.isnan(x)).all()
        far = np.abs(x) >= e.SHORT_ERF_LIMIT
        assert (found[far] == np.sign(x[far])).all()


def test_signs_of_zero() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    odd = (e.TanhOp, e.ErfOp, e.SinOp, e.TanOp, e.AsinOp, e.AtanOp, e.SinhOp, e.AsinhOp, e.AtanhOp)
    results = dict(zip(FUNCTIONS, run_entry(lowered(2), {"0": zeros}).values(), strict=True))
    for op in odd:
        assert np.signbit(results[op]).tolist() == [False, True], op.name


def lowered_f64(count: int, ops: Sequence[type[e.UnaryOp]], *passes: str) -> ModuleOp:
    """Functions of one vector of f64, in kernels."""
    module = module_of([typed(np.float64, count)], lambda x: [op(x) for op in ops])
    context = LowerdeckContext()
    passes = ("lower-kernels", "expand-math", *passes)
    for name in ("form-kernels", "fuse-epilogue", "bufferize", *passes):
        ALL_PASSES[name]()().apply(context, module)
    module.verify()
    return module


def test_errors_of_f64(tmp_path: Path) -> None:
    """Against long doubles, where these have more digits."""
    if np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant:
        pytest.skip("there is no longer type here")
    rng = np.random.default_rng(2)
    count = COUNT // 4
    bits = rng.integers(0, 1 << 64, count, np.uint64).view(np.float64)
    angles = rng.integers(-(1 << 20), 1 << 20, count) * (np.pi / 2)
    small = np.exp(rng.uniform(-40, 4, count)) * rng.choice([-1, 1], count)
    specials = SPECIALS.astype(np.float64)
    wide = rng.uniform(-760, 720, COUNT - 3 * count - specials.size)
    x = np.concatenate([bits, angles, small, wide, specials])
    artifact = emit_c(lowered_f64(COUNT, list(OF_F64), "plan-memory"), "p", "native")
    library = compile_all([artifact], tmp_path, tuple(compiler_flags("native")))
    call = Call(library, artifact).prepare([x], [COUNT] * len(OF_F64))
    assert call.run() == 0
    with np.errstate(all="ignore"):
        for (op, function), found in zip(OF_F64.items(), call.results(), strict=True):
            exact = function(x.astype(np.longdouble))
            rounded = exact.astype(np.float64)
            unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(np.float64).tiny))
            same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
            off = np.where(same, 0, np.abs(found.astype(np.longdouble) - exact) / unit)
            worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            text = f"{op.name}({x[worst]!r}) is {found[worst]!r}: {off[worst]} ulp"
            assert off[worst] <= 1.4, text
            zero = (rounded == 0) & (np.abs(x) < 1)
            assert (np.signbit(found[zero]) == np.signbit(rounded[zero])).all(), op.name


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_f64_is_rounded_to_half_once(tmp_path: Path, half: str) -> None:
    """Beside the middle between two numbers, what f32 has no digits for decides."""
    type_ = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}[half]
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        numbers = bits.view(type_).astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    middles = (np.sort(numbers)[1:] + np.sort(numbers)[:-1]) / 2
    near = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    rare = [*SPECIALS, 1e300, -1e300, 5e-324, -5e-324, 65519.999999999, 65520.0, 65504.0]
    x = np.concatenate([numbers, middles, near, np.array(rare, np.float64)])
    x = x[: x.size // 8 * 8]
    to = {"f16": f16, "bf16": bf16}[half]
    module = module_of([typed(np.float64, x.size)], lambda v: [e.CastOp(v, to)])
    compile_passes = ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels", "expand-math")
    for name in (*compile_passes, "plan-memory"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    artifact = emit_c(module, "p", "native")
    assert "f64_to_" not in artifact.files["p.c"]
    library = compile_all([artifact], tmp_path, tuple(compiler_flags("native")))
    call = Call(library, artifact).prepare([x], [x.size])
    assert call.run() == 0
    (found,) = call.results()
    with np.errstate(all="ignore"):
        expected = x.astype(type_) if half == "f16" else exact_bfloat16(x)
    kept = np.isnan(x)
    same = found.view(np.uint16) == expected.view(np.uint16)
    assert (same | kept).all(), x[~(same | kept)][:5]
    assert np.isnan(found.astype(np.float64)[kept]).all()


def exact_bfloat16(x: Array) -> Array:
    """Rounded once, to the even of two neighbors: their middle has all its digits in f64."""
    low = (x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    # The neighbor toward zero, also where rounding to f32 went up to it from below.
    above = np.abs(low.astype(np.float64)) > np.abs(x)
    low = np.where(above, (low.view(np.uint32) - 0x10000).view(np.float32), low)
    high = (low.view(np.uint32) + 0x10000).view(np.float32)
    size, below, over = np.abs(x), np.abs(low.astype(np.float64)), np.abs(high.astype(np.float64))
    over = np.where(np.isinf(over), 2.0**128, over)
    middle = (below + over) / 2
    is_odd = (low.view(np.uint32) >> 16) & 1 == 1
    up = (size > middle) | ((size == middle) & is_odd)
    chosen = np.where(np.isinf(x), x.astype(np.float32), np.where(up, high, low))
    return chosen.astype(np.float32).astype(ml_dtypes.bfloat16)


def test_others_of_f64_stay() -> None:
    module = module_of([typed(np.float64, 4)], lambda x: [op(x) for op in (e.ErfOp, e.SinhOp)])
    context = LowerdeckContext()
    for name in ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels"):
        ALL_PASSES[name]()().apply(context, module)
    before = str(module)
    ALL_PASSES["expand-math"]()().apply(context, module)
    assert str(module) == before


def test_powers(tmp_path: Path) -> None:
    """Signs and special values as C has them, of every pair, and errors of others."""
    rng = np.random.default_rng(3)
    ends = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.0**24, 2.0**24 + 2, 1e-40]
    ends += [np.inf, -np.inf, np.nan, 1e30, -1e30, 1.5, -1.5, 33.0, -33.0]
    left, right = (axis.ravel() for axis in np.meshgrid(ends, ends))
    x = np.concatenate([left, np.exp(rng.uniform(-80, 80, COUNT)), -rng.uniform(0, 4, COUNT)])
    y = np.concatenate([right, rng.uniform(-2, 2, COUNT), rng.integers(-40, 40, COUNT)])
    x, y = x.astype(np.float32), y.astype(np.float32)
    module = module_of([typed(np.float32, x.size)] * 2, lambda x, y: [e.PowOp(x, y)])
    context = LowerdeckContext()
    passes = ("lower-kernels", "expand-math", "plan-memory")
    for name in ("form-kernels", "fuse-epilogue", "bufferize", *passes):
        ALL_PASSES[name]()().apply(context, module)
    artifact = emit_c(module, "p", "native")
    library = compile_all([artifact], tmp_path, tuple(compiler_flags("native")))
    call = Call(library, artifact).prepare([x, y], [x.size])
    assert call.run() == 0
    (found,) = call.results()
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        off = errors(found, exact)
        worst = int(np.argmax(off))
        assert off[worst] <= 0.51, (x[worst], y[worst], found[worst], off[worst])
        zero = found == 0
        assert (np.signbit(found[zero]) == np.signbit(exact[zero])).all()
