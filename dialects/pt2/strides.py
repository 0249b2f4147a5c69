"""What strides say: whether a tensor shows elements twice, and which other shapes see them."""

from __future__ import annotations

from collections.abc import Sequence


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """True if two places of a tensor may be one: a stride is less than what the finer ones span."""
    if 0 in sizes:
        return False
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def can_view(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> bool:
    """
    True if a tensor of these sizes and strides can be seen in another shape without a copy.

    Neighboring dimensions that lie one in the other are a chunk, and each dimension of the shape
    has to be a part of one.
    """
    if 0 in sizes:
        return True
    kept = [pair for pair in zip(sizes, strides, strict=True) if pair[0] != 1]
    chunks: list[int] = []
    for k, (size, stride) in enumerate(kept):
        if k and kept[k - 1][1] == size * stride:
            chunks[-1] *= size
        else:
            chunks.append(size)
    rest = 1
    for size in reversed([size for size in shape if size != 1]):
        if rest == 1:
            rest = chunks.pop() if chunks else 0
        if rest == 0 or rest % size:
            return False
        rest //= size
    return rest == 1
