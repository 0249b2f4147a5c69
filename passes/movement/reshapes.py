"""What the shapes before and after a reshape have in common."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.dims import Expr, product


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
