"""`core.requantize` against its definition by integers of any size, interpreted and lowered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lowerdeck.compiler import CompileOptions, compile, import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.passes.legalize.common.requantize import multiplier_of

FACTORS = [0.25, 0.0007, 0.9999, 3.7]
X = [0, 1, -1, 2, -2, 3, 1000, -1000, 123456789, -123456789, 2**31 - 1, -(2**31)]


def twice(x: int, multiplier: int, exponent: int) -> int:
    """gemmlowp's rounding."""
    x = (x << max(exponent, 0)) + 2**31 & 2**32 - 1
    product = (x - 2**31) * multiplier
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    high = abs(nudged) // 2**31 * (1 if nudged >= 0 else -1)
    unit = 1 << max(-exponent, 0)
    return (high + unit // 2) // unit if high >= 0 else -((-high + unit // 2) // unit)


def once(x: int, multiplier: int, exponent: int) -> int:
    return (x * multiplier + 2 ** (30 - exponent)) >> (31 - exponent)


@pytest.mark.parametrize("phase", ["legal", "scheduled"])
@pytest.mark.parametrize(("rounding", "expected"), [("double", twice), ("single", once)])
def test_rounding(
    tmp_path: Path, rounding: str, expected: Callable[[int, int, int], int], phase: str
) -> None:
    count, width = len(X), len(FACTORS)
    kinds = f"tensor<{count}x1xi32>, tensor<{width}xi32>, tensor<{width}xi32>"
    result = f"tensor<{count}x{width}xi32>"
    op = f"core.requantize {rounding} %x, %m, %e zero 3 low -2000000000 high 2000000000 to i32"
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main(%x: tensor<{count}x1xi32>, %m: tensor<{width}xi32>, "
        f"%e: tensor<{width}xi32>) -> {result} {{\n"
        f"  %y = {op} : ({kinds}) -> {result}\n  func.return %y : {result}\n}}\n"
    )
    module, _ = import_and_lower(str(path), phase, CompileOptions(target="c99"))
    pairs = [multiplier_of(factor) for factor in FACTORS]
    arrays = [np.array(X).reshape(-1, 1), *map(np.array, zip(*pairs, strict=True))]
    inputs = {str(k): array.astype(np.int32) for k, array in enumerate(arrays)}
    (found,) = run_module(module, inputs).values()
    limited = [
        [max(min(expected(x, m, e) + 3, 2 * 10**9), -2 * 10**9) for m, e in pairs] for x in X
    ]
    assert np.asarray(found).tolist() == limited


SHIFTS = 3 * [
    *((1 << 30, exponent) for exponent in (-1, -3, -31)),
    *((2**31 - 1, exponent) for exponent in (-1, -31)),
    (0, -5),
]
"""
Multipliers and exponents that meet halves, and the largest and the least sums; enough for vectors.
"""


@pytest.mark.parametrize("target", ["c99", "x86-64", "native"])
@pytest.mark.parametrize("limits", [(-9, -9, 20), (0, 0, 2**31 - 1), (-9, 5, 20), (-9, -10, 20)])
def test_rounding_where_nothing_is_below_zero(
    tmp_path: Path, limits: tuple[int, int, int], target: str
) -> None:
    """What is negative is the lowest number; the last limits leave one number below zero."""
    zero, low, high = limits
    x = np.array([*X, 2**31 - 2, *range(-70, 70)], np.int32).reshape(-1, 1)
    width = len(SHIFTS)
    factors = [f"dense<{list(each)}> : tensor<{width}xi32>" for each in zip(*SHIFTS, strict=True)]
    result = f"tensor<{len(x)}x{width}xi32>"
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main(%x: tensor<{len(x)}x1xi32>) -> {result} {{\n"
        f"  %m = core.constant {factors[0]}\n  %e = core.constant {factors[1]}\n"
        f"  %y = core.requantize double %x, %m, %e zero {zero} low {low} high {high} to i32 "
        f": (tensor<{len(x)}x1xi32>, tensor<{width}xi32>, tensor<{width}xi32>) -> {result}\n"
        f"  func.return %y : {result}\n}}\n"
    )
    found = compile(str(path), target=target)(x)[0]
    expected = [
        [max(min(twice(int(each), m, e) + zero, high), low) for m, e in SHIFTS] for each in x[:, 0]
    ]
    assert np.asarray(found).tolist() == expected
    module, _ = import_and_lower(str(path), "scheduled", CompileOptions(target=target))
    (interpreted,) = run_entry(module, {"0": x}).values()
    assert interpreted.tolist() == expected


def test_halves_go_up_and_then_away_from_zero() -> None:
    multiplier, exponent = multiplier_of(0.25)
    assert [twice(x, multiplier, exponent) for x in (1, -1, 2, -2)] == [1, 0, 1, -1]
