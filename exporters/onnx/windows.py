"""Padding of windows, as convolutions and pools have it."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import constants
from lowerdeck.exporters.onnx.builder import GraphBuilder


def static(*lists: DimsAttr) -> list[list[int]] | None:
    """Numbers that none of which is negative, or None."""
    found = [constants(dims.data) for dims in lists]
    numbers = [list(values) for values in found if values is not None]
    if len(numbers) < len(lists) or any(value < 0 for values in numbers for value in values):
        return None
    return numbers


def padded_input(
    graph: GraphBuilder, op: Any, value: float | SSAValue = 0.0, *, explicit: bool = False
) -> tuple[SSAValue, list[int]]:
    """The input of a window op and its `pads`; those that are not numbers become a Pad."""
    x, begin, end = graph.value(op.input), op.pads_begin, op.pads_end
    pads = static(begin, end)
    if pads is not None and not explicit:
        return x, [*pads[0], *pads[1]]
    amounts = [0, 0, *begin.data, 0, 0, *end.data]
    padding = value if isinstance(value, SSAValue) else graph.like(op.input, value)
    padded = graph.node("Pad", [x, graph.dims(amounts), padding])
    return padded, [0] * (2 * len(begin.data))
