"""What is combined over the taps of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.kernels.builder import KernelBuilder

UNROLLED_TAPS = 25
"""How many taps stand side by side at most."""

Bounds = tuple[Expr, Expr]


def add_taps(
    b: KernelBuilder,
    bounds: Sequence[Bounds],
    start: SSAValue,
    add: Callable[[Sequence[Expr], SSAValue], SSAValue],
    most: int,
) -> SSAValue:
    """
    `add` one tap after the other to a value, for all taps within bounds from the first to the last.

    The inner dimensions are unrolled as far as their bounds are known and no more than `most` taps
    come to stand side by side.
    """
    loops = unrolled_from(bounds, most)

    def add_unrolled(outer: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value = values[0]
        for inner in _indices(bounds[loops:]):
            value = add([*outer, *inner], value)
        return [value]

    return b.carry_nest(bounds[:loops], [start], add_unrolled)[0]


def unrolled_from(bounds: Sequence[Bounds], most: int) -> int:
    """The first dimension of a window from which on it is straight-line code."""
    sizes = [(upper - lower).value for lower, upper in bounds]
    first = len(sizes)
    total = 1
    while first:
        size = sizes[first - 1]
        if size is None or bounds[first - 1][0].value is None or total * size > most:
            break
        total *= size
        first -= 1
    return first


def _indices(bounds: Sequence[Bounds]) -> list[list[Expr]]:
    if not bounds:
        return [[]]
    (lower, upper), rest = bounds[0], _indices(bounds[1:])
    assert lower.value is not None
    assert upper.value is not None
    return [[Expr.const(k), *inner] for k in range(lower.value, upper.value) for inner in rest]
