"""Reductions, running sums and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise, tensor
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core.enums import CumulativeKind, PoolKind
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    i8,
    i32,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
    ui8,
    ui64,
)
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts
from lowerdeck.exporters.onnx.windows import padded_input, static


@converts(reductions.ReduceOp)
def _reduce(graph: GraphBuilder, op: reductions.ReduceOp) -> None:
    element, axes = element_type(op.input), tensor.ints(op.axes)
    x = graph.value(op.input)
    if not axes:
        graph.set(op, graph.node("Identity", [x]))
        return
    # The narrow integers are not among ONNX's types; modulo their width the result is the same.
    narrow = not is_float(element) and element not in (i32, i64, ui64)
    x = graph.cast(x, i64) if narrow else x
    inputs = [x, graph.literal(axes)]
    name = f"Reduce{op.kind.data.capitalize()}"
    result = graph.node(name, inputs, keepdims=int(bool(op.keep_dims.value.data)))
    graph.set(op, graph.cast(result, element) if narrow else result)


@converts(reductions.ArgReduceOp)
def _arg_reduce(graph: GraphBuilder, op: reductions.ArgReduceOp) -> None:
    result = graph.node(
        f"Arg{op.kind.data.capitalize()}",
        [graph.value(op.input)],
        axis=op.axis.data,
        keepdims=int(bool(op.keep_dims.value.data)),
        select_last_index=int(bool(op.last_index.value.data)),
    )
    graph.set(op, result)


@converts(reductions.SoftmaxOp)
def _softmax(graph: GraphBuilder, op: reductions.SoftmaxOp) -> None:
    name = "LogSoftmax" if op.is_log else "Softmax"
    graph.set(op, graph.node(name, [graph.value(op.input)], axis=op.axis.data))


@converts(reductions.CumulativeOp)
def _cumulative(graph: GraphBuilder, op: reductions.CumulativeOp) -> None:
    exclusive, reverse = (bool(flag.value.data) for flag in (op.exclusive, op.reverse))
    x, axis = graph.value(op.input), op.axis.data
    if op.kind.data == CumulativeKind.SUM:
        flags: dict[str, Any] = {"exclusive": int(exclusive), "reverse": int(reverse)}
        graph.set(op, graph.node("CumSum", [x, graph.literal(axis)], **flags))
        return
    # A product over those of a row of all elements that are not behind the one in question.
    dims = dims_of(op.input)
    size = graph.expression(dims[axis])
    line = graph.node(
        "Range",
        [graph.literal(0), graph.node("Squeeze", [size]), graph.literal(1)],
    )
    here = graph.node("Unsqueeze", [line, graph.literal([1])])
    other = graph.node("Unsqueeze", [line, graph.literal([0])])
    relation = ("Greater" if reverse else "Less") + ("" if exclusive else "OrEqual")
    taken = graph.node(relation, [other, here])
    behind = graph.literal(list(range(2, 2 + len(dims) - axis - 1)))
    taken = graph.node("Unsqueeze", [taken, behind]) if len(dims) - axis > 1 else taken
    rows = graph.node("Unsqueeze", [x, graph.literal([axis])])
    factors = graph.node("Where", [taken, rows, graph.like(op.input, 1)])
    graph.set(op, graph.node("ReduceProd", [factors, graph.literal([axis + 1])], keepdims=0))


_GLOBAL_POOLS = {
    PoolKind.MAX: "ReduceMax",
    PoolKind.SUM: "ReduceSum",
    PoolKind.AVERAGE: "ReduceMean",
}


@converts(reductions.PoolOp)
def _pool(graph: GraphBuilder, op: reductions.PoolOp) -> None:
    if _is_global(op):
        axes = graph.literal(list(range(2, rank_of(op.input))))
        name = _GLOBAL_POOLS[op.kind.data]
        graph.set(op, graph.node(name, [graph.value(op.input), axes], keepdims=1))
        return
    kernel = static(op.kernel)
    if kernel is not None and _is_sum_of_bytes(op, kernel[0]):
        graph.set(op, _sum_of_bytes(graph, op, kernel[0]))
        return
    is_of_bytes = op.kind.data == PoolKind.MAX and element_type(op.input) in (i8, ui8)
    if kernel is None or not (is_float(element_type(op.input)) or is_of_bytes):
        graph.fail(op, "windows of symbolic size and pools of integers are not exported")
        return
    graph.set(op, _window_pool(graph, op, kernel[0]))


_MOST_EXACT = 1 << 21
"""An average in f32 times the number of elements is nearer to such sums than to other integers."""


def _is_sum_of_bytes(op: reductions.PoolOp, kernel: Sequence[int]) -> bool:
    cast = op.input.owner
    if op.kind.data != PoolKind.SUM or not isinstance(cast, elementwise.CastOp):
        return False
    source = element_type(cast.input)
    if is_float(source) or is_float(element_type(op.input)):
        return False
    return bit_width(source) < 32 and int(np.prod(kernel)) << bit_width(source) <= _MOST_EXACT


def _sum_of_bytes(graph: GraphBuilder, op: reductions.PoolOp, kernel: Sequence[int]) -> SSAValue:
    """By averages of floats, which are rounded to the integers that they stand for."""
    x, _ = padded_input(graph, op, explicit=True)
    window: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": tensor.ints(op.strides),
        "dilations": tensor.ints(op.dilations),
    }
    average = graph.node("AveragePool", [graph.cast(x, f32)], **window)
    volume = graph.literal(float(np.prod(kernel)), np.float32)
    total = graph.node("Round", [graph.node("Mul", [average, volume])])
    return graph.cast(total, element_type(op.result))


def _is_global(op: reductions.PoolOp) -> bool:
    """True if the one window is the whole input."""
    pads = static(op.pads_begin, op.pads_end)
    unpadded = pads is not None and not any(pads[0]) and not any(pads[1])
    dense = set(tensor.ints(op.dilations)) <= {1}
    return unpadded and dense and tuple(op.kernel.data) == dims_of(op.input)[2:]


def _window_pool(graph: GraphBuilder, op: reductions.PoolOp, kernel: Sequence[int]) -> SSAValue:
    window: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": tensor.ints(op.strides),
        "dilations": tensor.ints(op.dilations),
    }
    if op.kind.data == PoolKind.MAX:
        # Padding as wide as the window is refused by runtimes.
        pads = static(op.pads_begin, op.pads_end)
        too_wide = pads is not None and any(
            p >= k for values in pads for p, k in zip(values, kernel, strict=True)
        )
        element = element_type(op.input)
        least = -np.inf if is_float(element) else float(np.iinfo(numpy_dtype(element)).min)
        x, amounts = padded_input(graph, op, least, explicit=too_wide)
        return graph.node("MaxPool", [x], pads=amounts, **window)
    if op.kind.data == PoolKind.AVERAGE and (pads := _pads_of_average(op, kernel)) is not None:
        window |= {"pads": pads, "count_include_pad": int(bool(op.count_pads.value.data))}
        return graph.node("AveragePool", [graph.value(op.input)], **window)
    x, _ = padded_input(graph, op, explicit=True)
    volume = graph.like(op.input, float(np.prod(kernel)))
    total = graph.node("Mul", [graph.node("AveragePool", [x], **window), volume])
    if op.kind.data == PoolKind.SUM:
        return total
    counted = graph.node("AveragePool", [_counted(graph, op)], **window)
    return graph.node("Div", [total, graph.node("Mul", [counted, volume])])


def _pads_of_average(op: reductions.PoolOp, kernel: Sequence[int]) -> list[int] | None:
    """The `pads` with which AveragePool counts as core does; None if it counts otherwise."""
    pads = static(op.pads_begin, op.pads_end, op.overhang)
    if pads is None or any(pads[2]) or set(tensor.ints(op.dilations)) > {1}:
        return None
    fits = all(max(b, e) < k for b, e, k in zip(*pads[:2], kernel, strict=True))
    return [*pads[0], *pads[1]] if fits else None


def _counted(graph: GraphBuilder, op: reductions.PoolOp) -> SSAValue:
    """Ones where an element takes part in the count of an average, padded like the input."""
    spatial = dims_of(op.input)[2:]
    begin, end, overhang = op.pads_begin.data, op.pads_end.data, op.overhang.data
    zero, one = graph.like(op.input, 0), graph.like(op.input, 1)
    if op.count_pads.value.data:
        inner = [e - o for e, o in zip(end, overhang, strict=True)]
        sizes = [d + b + e for d, b, e in zip(spatial, begin, inner, strict=True)]
        ones = graph.node("Expand", [one, graph.dims([1, 1, *sizes])])
        amounts = [0, 0, *[0] * len(begin), 0, 0, *overhang]
    else:
        ones = graph.node("Expand", [one, graph.dims([1, 1, *spatial])])
        amounts = [0, 0, *begin, 0, 0, *end]
    return graph.node("Pad", [ones, graph.dims(amounts), zero])
