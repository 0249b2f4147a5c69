"""What the shapes before and after a reshape have in common."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, product

ROOTS = (ConvOp, ConvTransposeOp, MatmulOp, PoolOp, ReduceOp)
"""Ops whose loops do the maps behind them on the way, but not behind a reshape."""


def dim_groups(before: Sequence[Expr], after: Sequence[Expr]) -> list[tuple[slice, slice]]:
    """
    Consecutive dimensions of both shapes that hold equally many elements, as few as possible.

    Dimensions of one may be alone, with none of the other shape.
    """
    groups: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        m, n = min(i + 1, len(before)), min(j + 1, len(after))
        while (old := product(before[i:m])) != (new := product(after[j:n])):
            if m == len(before) and n == len(after):
                break
            less = old.value is not None and new.value is not None and old.value < new.value
            if m < len(before) and (less or n == len(after)):
                m += 1
            elif n < len(after):
                n += 1
            else:
                m += 1
        if product(before[m:]) != product(after[n:]):
            # Symbols may hide what the dimensions have in common.
            m, n = len(before), len(after)
        groups.append((slice(i, m), slice(j, n)))
        i, j = m, n
    return groups


def kept_axes(longer: Sequence[Expr], shorter: Sequence[Expr]) -> list[int] | None:
    """Where the dimensions of `shorter` stand in `longer`; None unless the others are ones."""
    axes: list[int] = []
    for axis, dim in enumerate(longer):
        if len(axes) < len(shorter) and shorter[len(axes)] == dim:
            axes.append(axis)
        elif dim != 1:
            return None
    return axes if len(axes) == len(shorter) else None


def drops_ones(op: ReshapeOp) -> bool:
    """True if a reshape does nothing else than to drop dimensions of one."""
    before, after = dims_of(op.input), dims_of(op.result)
    return len(after) < len(before) and kept_axes(before, after) is not None


def moved_dims(
    value: SSAValue, before: Sequence[Expr], after: Sequence[Expr]
) -> tuple[Expr, ...] | None:
    """
    The dimensions with which a value broadcasts to `before` as it does to `after`, the shapes
    before and after a reshape; None if there are none.
    """
    own = dims_of(value)
    if all(dim == 1 for dim in own):
        return own if len(own) <= len(before) else ()
    padded = (*[Expr.const(1)] * (len(after) - len(own)), *own)
    dims = [Expr.const(1)] * len(before)
    for old, new in dim_groups(before, after):
        part = padded[new]
        if all(dim == 1 for dim in part):
            continue
        if part != tuple(after[new]):
            return None
        dims[old] = before[old]
    return tuple(dims)
