"""PyTorch's promotion of types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    bf16,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    is_float,
    rank_of,
    ui8,
)

Number: TypeAlias = "SSAValue | float"


def wide_element(value: SSAValue) -> Attribute:
    """The type in which sums and functions of `value` are computed: f32 for half precision."""
    return wide_type(element_type(value))


def wide_type(element: Attribute) -> Attribute:
    """f32 for half precision."""
    return f32 if element in (f16, bf16) else element


_ORDER: tuple[Attribute, ...] = (i1, ui8, i8, i16, i32, i64, f16, bf16, f32, f64)


def promoted_elements(one: Attribute, other: Attribute) -> Attribute:
    """The type to which two types of elements are promoted."""
    pair = {one, other}
    if pair == {ui8, i8}:
        return i16
    if pair == {f16, bf16}:
        return f32
    return max(one, other, key=_ORDER.index)


def category(element: Attribute) -> int:
    """Booleans, integers and floats, in this order."""
    return 2 if is_float(element) else int(element != i1)


def promoted(operands: Sequence[Number], symbolic: Sequence[bool] = ()) -> Attribute:
    """
    The type in which operands are combined: that of the tensors with dimensions, unless a scalar
    tensor, or else a plain (or `symbolic`) number, is of a higher category.
    """
    levels: list[list[Attribute]] = [[], [], []]
    flags = symbolic or [False] * len(operands)
    for operand, is_symbolic in zip(operands, flags, strict=True):
        if not isinstance(operand, SSAValue):
            plain = i1 if isinstance(operand, bool) else i64 if isinstance(operand, int) else f32
            levels[2].append(plain)
        elif is_symbolic:
            levels[2].append(element_type(operand))
        else:
            levels[0 if rank_of(operand) else 1].append(element_type(operand))
    if levels[0] or levels[1]:  # a float beside tensors is one of PyTorch's default type
        levels[2] = [f32 if is_float(element) else element for element in levels[2]]
    found: Attribute | None = None
    for level in filter(None, levels):
        best = reduce(promoted_elements, level)
        if found is None or category(best) > category(found):
            found = best
    assert found is not None
    return found
