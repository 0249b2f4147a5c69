"""
The C of target c99 for other compilers: Microsoft's dialect, which clang checks, and mingw-w64
(Debian package `gcc-mingw-w64-x86-64`); and under all warnings that people ask for.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import element_of
from lowerdeck.lowering import compile_to_c
from lowerdeck.lowering.emit_c.interface import RUNTIME
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.lowering.targets.isa_x86 import X86, X86_VNNI
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, symbol, typed, write_artifact  # noqa: TID251  (tests, not sources)

WARNINGS = (
    "-Werror -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wdouble-promotion"
).split()

ELEMENTS = {
    **{f"i{8 * size}": (f"int{8 * size}_t", size) for size in (1, 2, 4, 8)},
    **{"f32": ("float", 4), "f64": ("double", 8)},
}
VECTORS = [
    (name, c, width // size, width)
    for name, (c, size) in ELEMENTS.items()
    for width in (8, 16, 32, 64)
    if size < width
]
"""Names of elements, what C calls them, and the lanes and bytes of vectors of them."""

ROUNDED = ("rint", "floor", "ceil")

MATH = """\
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
float expf(float); float sqrtf(float); float rintf(float); float fabsf(float); float floorf(float);
float ceilf(float); float powf(float, float); float fmodf(float, float); float logf(float);
double ldexp(double, int); double fabs(double); double exp(double); double floor(double);
"""
"""What the C takes of math.h; the headers of Microsoft's compiler are not there."""

STRING = """\
#include <stddef.h>
void *memcpy(void *, const void *, size_t); int memcmp(const void *, const void *, size_t);
"""


def made(folder: Path) -> Path:
    """Weights, vectors of several types, infinities, NaN, conversions: the folder of the C."""

    def body(x: Any, z: Any) -> Any:
        weights = ConstantOp.of(np.ones((3, 4), np.float32)).result
        limit = ConstantOp.of(np.array(np.inf)).result
        whole = e.CastOp(x, element_of(np.dtype(np.int32))).result
        low = ConstantOp.of(np.array(-1, np.int8)).result
        small = e.CastOp(e.CastOp(z, element_of(np.dtype(np.int8))).result, z.type.element_type)
        found = e.MinOp(e.CastOp(whole, z.type.element_type).result, limit).result
        nothing = e.AddOp(small.result, ConstantOp.of(np.array(np.nan)).result).result
        bytes_ = e.AddOp(e.CastOp(z, element_of(np.dtype(np.int8))).result, low).result
        return [SoftmaxOp(MatmulOp(x, weights).result, 1).result, found, nothing, bytes_]

    n = symbol("n")
    module = module_of([typed(np.float32, n, 3), typed(np.float64, 4)], body)
    names = ("form-kernels", "fuse-epilogue", "bufferize", "lower-kernels", "expand-math")
    for name in (*names, "move-scratch", "plan-memory", "open-outputs"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    write_artifact(emit_c(module, "m", "c99"), folder)
    return folder


def check(folder: Path, *command: str) -> None:
    """Compile; a warning is a failure, and so is a note."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:3000]) == (0, "")


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
def test_no_warnings(tmp_path: Path, c_compiler: str) -> None:
    made(tmp_path)
    pool = str(RUNTIME / "lowerdeck_pool.c")
    check(tmp_path, c_compiler, "-std=c99", *WARNINGS, "-fsyntax-only", "m.c", "example.c", pool)


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
def test_no_warnings_of_vectors(tmp_path: Path, c_compiler: str) -> None:
    """Extrema of f64 by a builtin function, and ranks that are sums of comparisons."""

    def body(x: Any, z: Any, w: Any) -> Any:
        return [*TopKOp(x, 6, 0, largest=False).results, e.MaxOp(z, w).result]

    types = [typed(np.int32, 6), typed(np.float64, 64), typed(np.float64, 64)]
    context = LowerdeckContext(options=CompileOptions(target="x86-64-v4"))
    write_artifact(compile_to_c(context, module_of(types, body), "m"), tmp_path)
    text = (tmp_path / "m.c").read_text()
    assert "maxpd512_mask" in text
    assert " > " in text
    check(tmp_path, c_compiler, "-march=x86-64-v4", *WARNINGS, "-fsyntax-only", "m.c", "example.c")


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
def test_no_warnings_of_wide_vectors(tmp_path: Path, c_compiler: str) -> None:
    """Vectors of several registers are passed by address: gcc has notes on how it passes them."""

    def body(x: Any, y: Any) -> Any:
        # Ranks by counting: as many lanes of i64 as of f32, and a part of a vector at the end.
        smaller = e.CompareOp("lt", x, y).result
        return [
            ReduceOp("sum", e.CastOp(smaller, element_of(np.dtype(np.int64))).result, (1,)).result
        ]

    module = module_of([typed(np.float32, 24, 1), typed(np.float32, 1, 21)], body)
    context = LowerdeckContext(options=CompileOptions(target="x86-64"))
    write_artifact(compile_to_c(context, module, "m"), tmp_path)
    assert "_by_address(const lowerdeck_i64x" in (tmp_path / "m.c").read_text()
    check(tmp_path, c_compiler, "-O1", *WARNINGS, "-S", "-o", "m.s", "m.c")


def test_no_warnings_of_builtins(tmp_path: Path) -> None:
    """Each function of gcc that code for x86-64 calls, with all vectors that it is called with."""
    lines = [
        f"typedef {c} {t}x{n} __attribute__((vector_size({size})));" for t, c, n, size in VECTORS
    ]
    number = 0

    def add(result: str, parameters: str, call: str, width: int) -> None:
        nonlocal number
        number += 1
        kind = f"{result}x{width}" if width else result
        cast = f"({kind})" if width else ""
        lines.append(f"{kind} f{number}({parameters});")
        lines.append(f"{kind} f{number}({parameters}) {{ return {cast}({call}); }}")

    for (name, element, n), builtin in X86.functions.items():
        kind = f"{element}x{n}"
        if name == "any":
            add("int", f"{kind} mask", f"{builtin.call} != 0", 0)
        elif name in ("sqrt", *ROUNDED):
            add(element, f"{kind} x", builtin.call, n)
        else:
            add(element, f"{kind} a, {kind} b", builtin.call, n)
    for n, builtin in X86.widening_of_f16.items():
        add("f32", f"i16x{n} x", builtin.call.format("x", f"f32x{n}"), n)
    for n, builtins in X86_VNNI.pairs.items():
        halves = f"i16x{2 * n} x, i16x{2 * n} y, i32x{n} a, i32x{n} b, i32x{n} c"
        for builtin in builtins:
            add("i32", halves, builtin.call.format("x", "y", f"i32x{n}"), n)
    for n, builtin in X86.wide_products.items():
        add("i64", f"i32x{n} a, i32x{n} b", builtin.call.format("a", "b"), n // 2)
    for n, builtin in X86_VNNI.quads.items():
        add("i32", f"i32x{n} a, i32x{n} b, i32x{n} c", builtin.call.format("a", "b", f"i32x{n}"), n)
    wide = X86.narrowing_to_f16[16].call.format("x", "", "i16x16")
    add("i16", "f32x16 x", wide, 16)
    (tmp_path / "all.c").write_text("\n".join(["#include <stdint.h>", *lines, ""]))
    check(
        tmp_path, "gcc", "-march=sapphirerapids", *WARNINGS, "-Wno-unused-parameter", "-c", "all.c"
    )


def test_microsoft(tmp_path: Path) -> None:
    """As it is by default, which does not say that it is C99, and has no word `restrict`."""
    made(tmp_path)
    (tmp_path / "math.h").write_text(MATH)
    (tmp_path / "string.h").write_text(STRING)
    target = ["--target=x86_64-pc-windows-msvc", "-fms-compatibility", "-ffreestanding"]
    for dialect in (["-U__STDC_VERSION__"], ["-std=c11"]):
        warned = [*WARNINGS, "-Wno-pedantic", "-Wno-builtin-macro-redefined", "-isystem", "."]
        check(tmp_path, "clang", *target, *dialect, *warned, "-fsyntax-only", "m.c")
    text = subprocess.run(
        ["clang", *target, "-U__STDC_VERSION__", "-isystem", ".", "-E", "-P", "m.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "__restrict" in text
    assert "*restrict" not in text


def test_mingw(tmp_path: Path) -> None:
    """Beside windows.h, before and after the header of the model; the pool, too."""
    made(tmp_path)
    (tmp_path / "both.c").write_text('#include <windows.h>\n#include "m.h"\n#include "m.c"\n')
    sources = ["both.c", "example.c", str(RUNTIME / "lowerdeck_pool.c")]
    check(tmp_path, "x86_64-w64-mingw32-gcc", "-std=c99", "-Wall", "-Wextra", "-c", *sources)
