"""Making ops of which kernels have many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue


def make(
    op: Operation,
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute | None] | None = None,
    result_types: Sequence[Attribute] = (),
    regions: Sequence[Region] = (),
) -> None:
    """
    Initialize an op whose parts are given one after the other; properties that are None are absent.

    `IRDLOperation` sorts the parts of any op into those of its definition, which takes several
    times as long as the rest.
    """
    there = {} if properties is None else {k: v for k, v in properties.items() if v is not None}
    Operation.__init__(
        op, operands=operands, result_types=result_types, properties=there, regions=regions
    )


@lru_cache(maxsize=1 << 10)
def segments(*counts: int) -> DenseArrayBase:
    """How many of the operands belong to each variadic one."""
    return DenseArrayBase.from_list(i32, counts)
