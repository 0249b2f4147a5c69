"""
Random numbers whose values make no difference.

A dropout that keeps everything draws numbers, too: `floor(1 + u)` and `u >= 0` are known, whatever
`u` in [0, 1) is. So what is drawn stays as it is, and the nodes that read it are followed until
their results are known; if one is not, the draw is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import element_type, i1, numpy_dtype
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

DRAWS = frozenset({"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"})
"""Operators that draw numbers of [0, 1)."""

_DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""Binary digits of what is drawn: multiples of 2^-n."""


@record
class Drawn:
    """Numbers that are random, or computed from such: between `low` and `high`."""

    low: NDArray[Any]
    high: NDArray[Any]
    dims: tuple[Expr, ...]
    origin: Tf1Op
    """The node that draws."""


def draw(builder: Tf1Legalizer) -> Drawn:
    """What an operator of DRAWS gives."""
    dtype = numpy_dtype(builder.result_element())
    dims = tuple(sizes_of(builder, builder.operand("shape"), "the shape"))
    one = np.array(1, dtype)
    return Drawn(
        np.array(0, dtype), one - np.array(2.0 ** -_DIGITS[dtype.name], dtype), dims, builder.op
    )


def is_followed(value: SSAValue) -> bool:
    """True if all that reads a value may give something known, although it is random."""
    users = [use.operation for use in value.uses]
    return all(isinstance(op, Tf1Op) and op.op_type in _FOLLOWED for op in users)


def follow(builder: Tf1Legalizer, drawn: Mapping[SSAValue, Drawn]) -> Drawn | SSAValue | None:
    """What a node makes of random numbers and constants; None if that cannot be told."""
    inputs = builder.op.inputs
    source = next(drawn[value] for value in inputs if value in drawn)
    low, high = [list[NDArray[Any]]() for _ in range(2)]
    for value in inputs:
        if value in drawn:
            known: Sequence[NDArray[Any]] = (drawn[value].low, drawn[value].high)
            if drawn[value].dims != source.dims:
                return None
        elif (array := builder.constant(value)) is not None and array.size == 1:
            if array.ndim > len(source.dims):
                return None
            known = (array.reshape(()), array.reshape(()))
        else:
            return None
        low.append(known[0])
        high.append(known[1])
    corners = [(a, b) for a in (low[0], high[0]) for b in (low[-1], high[-1])]
    function = _FOLLOWED[builder.op.op_type]
    with np.errstate(all="ignore"):
        # Each is monotonic in each operand, rounding included.
        found = [np.asarray(function(*pair[: len(inputs)])) for pair in corners]
    least, most = min(found), max(found)
    element = builder.result_element()
    if any(np.isnan(number) for number in found if number.dtype != np.bool_):
        return None
    if least == most:
        return _filled(builder, least, element, source.dims)
    return None if element == i1 else Drawn(least, most, source.dims, source.origin)


def _filled(
    builder: Tf1Legalizer, number: NDArray[Any], element: Attribute, dims: Sequence[Expr]
) -> SSAValue:
    value = builder.tensor(number.astype(numpy_dtype(element)))
    assert element_type(value) == element
    return builder.broadcast(value, dims)


_FOLLOWED: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Identity": np.positive,
    "StopGradient": np.positive,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
}
"""Operators that are monotonic in each operand."""
