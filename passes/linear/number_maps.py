"""Maps of one value: functions, and operators whose other operands are numbers."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.passes.machinery.driver import is_ranked
from lowerdeck.passes.machinery.values import uniform_value


def mapped(op: Operation) -> SSAValue | None:
    """What `op` maps, if it is such a map with a result of the same shape."""
    if not isinstance(op, ELEMENTWISE) or not is_ranked(op):
        return None
    others = [value for value in op.operands if not _is_number(value)]
    if len(others) != 1 or dims_of(others[0]) != dims_of(op.results[0]):
        return None
    return others[0]


def map_kind(op: Operation) -> Hashable:
    """What maps that do the same to different values have in common."""
    numbers = [uniform_value(value) for value in op.operands]
    places = tuple(None if number is None else number.tobytes() for number in numbers)
    return type(op), places, tuple(sorted(op.properties.items()))


def _is_number(value: SSAValue) -> bool:
    return all(dim == 1 for dim in dims_of(value)) and uniform_value(value) is not None
