"""Integers in place of real factors: the same results for every sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowerdeck.lowering.form.settle_factors import multiplier_of


def _by_product(x: NDArray[np.int64], factor: float) -> NDArray[np.int64]:
    product = x.astype(np.float64) * factor
    whole = np.floor(np.abs(product))
    return np.copysign(whole + (np.abs(product) - whole >= 0.5), product).astype(np.int64)


def _by_integers(x: NDArray[np.int64], multiplier: int, exponent: int) -> NDArray[np.int64]:
    half, amount = 1 << (30 - exponent), 31 - exponent
    return np.array([(number * multiplier + half) >> amount for number in x.tolist()], np.int64)


def _sums(
    factor: float, steps: int, largest: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Those around steps, of both signs, or all of them."""
    if largest <= 1000:
        return np.arange(-largest, largest + 1)
    where = np.ceil((random.integers(1, steps + 2, 40) - 0.5) / factor)
    near = np.clip(where, 0, largest).astype(np.int64)[:, None] + [-1, 0, 1]
    ends = [0, 1, largest - 1, largest]
    x = np.clip(np.concatenate([near.reshape(-1), ends]), 0, largest)
    return np.concatenate([x, -x])


def test_steps_lie_where_those_of_the_products_do() -> None:
    random = np.random.default_rng(3)
    found = 0
    for number in range(600):
        factor = 2.0 ** int(random.integers(-16, 3)) * float(random.random() + 1)
        if number % 4 == 0:  # halves are met, or nearly
            factor = 2.0 ** int(random.integers(-34, 30)) * int(random.integers(1, 9))
            factor = float(np.nextafter(factor, number % 3))
        steps = int(random.choice([1, 3, 128, 255, 300]))
        largest = int(random.choice([1, 7, 1000, 1 << 20, 1 << 31]))
        pair = multiplier_of(factor, steps, largest)
        if pair is None:
            continue
        found += 1
        x = _sums(factor, steps, largest, random)
        expected, y = (
            np.clip(values, -steps, steps)
            for values in (_by_product(x, factor), _by_integers(x, *pair))
        )
        assert np.array_equal(y, expected), (factor, steps, largest)
    assert found > 500


def test_factors_of_layers_are_found() -> None:
    factors = 2.0 ** np.random.default_rng(4).uniform(-12, 0, 200)
    assert all(multiplier_of(factor, 255, 1 << 31) for factor in factors.tolist())


def test_the_least_multiplier_may_not_do() -> None:
    """1/256 of -384 is -1.5, which is rounded away from zero: 2^30 would round it up."""
    assert multiplier_of(1 / 256, 255, 1 << 31) == ((1 << 30) + 1, -7)
    assert _by_integers(np.array([-384]), 1 << 30, -7) == -1
    assert _by_integers(np.array([-384]), (1 << 30) + 1, -7) == -2


def test_what_has_no_integer() -> None:
    for factor in (-0.5, float("nan"), float("inf"), 4.1e-8, 2.0**31):
        assert multiplier_of(factor, 255, 1 << 31) is None
    assert multiplier_of(0.0, 255, 1 << 31) == (0, 0)
