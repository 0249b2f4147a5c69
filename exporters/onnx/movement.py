"""Moving elements: shapes, slices, pads, gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import tensor
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i32, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts

_INT64_MIN = -(1 << 63)


@converts(tensor.ReshapeOp)
def _reshape(graph: GraphBuilder, op: tensor.ReshapeOp) -> None:
    shape = graph.dims(op.dims)
    # Without allowzero a zero means "as before".
    empty = any(dim.value in (0, None) for dim in op.dims.data)
    graph.set(op, graph.node("Reshape", [graph.value(op.input), shape], allowzero=int(empty)))


@converts(tensor.TransposeOp)
def _transpose(graph: GraphBuilder, op: tensor.TransposeOp) -> None:
    order = tensor.ints(op.permutation)
    graph.set(op, graph.node("Transpose", [graph.value(op.input)], perm=order))


@converts(tensor.ChannelShuffleOp)
def _channel_shuffle(graph: GraphBuilder, op: tensor.ChannelShuffleOp) -> None:
    dims, groups = dims_of(op.input), op.groups.data
    apart = graph.dims([dims[0], groups, dims[1] // groups, *dims[2:]])
    split = graph.node("Reshape", [graph.value(op.input), apart], allowzero=1)
    dealt = graph.node("Transpose", [split], perm=[0, 2, 1, *range(3, len(dims) + 1)])
    graph.set(op, graph.node("Reshape", [dealt, graph.dims(dims)], allowzero=1))


@converts(tensor.BroadcastOp)
def _broadcast(graph: GraphBuilder, op: tensor.BroadcastOp) -> None:
    graph.set(op, graph.node("Expand", [graph.value(op.input), graph.dims(op.dims)]))


@converts(tensor.SliceOp)
def _slice(graph: GraphBuilder, op: tensor.SliceOp) -> None:
    starts, sizes, steps = op.starts.data, op.sizes.data, op.steps.data
    ends = [
        _slice_end(graph, start, size, step)
        for start, size, step in zip(starts, sizes, steps, strict=True)
    ]
    result = graph.value(op.input)
    if ends:
        axes = graph.literal(list(range(len(ends))))
        end = graph.node("Concat", ends, axis=0)
        result = graph.node("Slice", [result, graph.dims(starts), end, axes, graph.dims(steps)])
    graph.set(op, graph.node("Identity", [result]))


def _slice_end(graph: GraphBuilder, start: Expr, size: Expr, step: Expr) -> SSAValue:
    """Going down, an end before the first element must not count from the end of the dimension."""
    end = start + size * step
    if (step.value or 0) > 0 or size.value == 0:
        return graph.expression(end)
    lowest = graph.literal([_INT64_MIN])
    if end.value is not None and size.value is not None:
        return lowest if end.value < 0 else graph.expression(end)
    name, zero = graph.expression(end), graph.literal([0])
    reached = graph.node("Where", [graph.node("Less", [name, zero]), lowest, name])
    if size.value is not None:
        return reached
    nothing = graph.node("Equal", [graph.expression(size), zero])
    return graph.node("Where", [nothing, name, reached])


@converts(tensor.PadOp)
def _pad(graph: GraphBuilder, op: tensor.PadOp) -> None:
    inputs = [graph.value(op.input), graph.dims([*op.begin.data, *op.end.data])]
    if op.value is not None:
        inputs.append(graph.value(op.value))
    graph.set(op, graph.node("Pad", inputs, mode=op.mode.data.value))


@converts(tensor.ConcatOp)
def _concat(graph: GraphBuilder, op: tensor.ConcatOp) -> None:
    inputs = [graph.value(value) for value in op.inputs]
    graph.set(op, graph.node("Concat", inputs, axis=op.axis.data))


@converts(tensor.SplitOp)
def _split(graph: GraphBuilder, op: tensor.SplitOp) -> None:
    inputs = [graph.value(op.input), graph.dims(op.sizes)]
    graph.set(op, *graph.nodes("Split", inputs, len(op.results), axis=op.axis.data))


def _indices(graph: GraphBuilder, value: SSAValue) -> SSAValue:
    """ONNX takes i32 and i64 only."""
    name = graph.value(value)
    return name if element_type(value) in (i32, i64) else graph.cast(name, i64)


@converts(tensor.GatherOp, tensor.GatherElementsOp)
def _gather(graph: GraphBuilder, op: tensor.GatherOp | tensor.GatherElementsOp) -> None:
    op_type = "Gather" if isinstance(op, tensor.GatherOp) else "GatherElements"
    inputs = [graph.value(op.input), _indices(graph, op.indices)]
    graph.set(op, graph.node(op_type, inputs, axis=op.axis.data))


@converts(tensor.GatherNdOp)
def _gather_nd(graph: GraphBuilder, op: tensor.GatherNdOp) -> None:
    inputs = [graph.value(op.input), graph.cast(graph.value(op.indices), i64)]
    graph.set(op, graph.node("GatherND", inputs, batch_dims=op.batch_dims.data))


@converts(tensor.ScatterElementsOp)
def _scatter_elements(graph: GraphBuilder, op: tensor.ScatterElementsOp) -> None:
    inputs = [graph.value(op.input), _indices(graph, op.indices), graph.value(op.updates)]
    attributes: dict[str, Any] = {"axis": op.axis.data, "reduction": op.reduction.data.value}
    graph.set(op, graph.node("ScatterElements", inputs, **attributes))


@converts(tensor.ScatterNdOp)
def _scatter_nd(graph: GraphBuilder, op: tensor.ScatterNdOp) -> None:
    indices = graph.cast(graph.value(op.indices), i64)
    inputs = [graph.value(op.input), indices, graph.value(op.updates)]
    graph.set(op, graph.node("ScatterND", inputs, reduction=op.reduction.data.value))


@converts(tensor.TopKOp)
def _top_k(graph: GraphBuilder, op: tensor.TopKOp) -> None:
    outputs = graph.nodes(
        "TopK",
        [graph.value(op.input), graph.dims(op.k)],
        2,
        axis=op.axis.data,
        largest=int(bool(op.largest.value.data)),
        sorted=1,
    )
    graph.set(op, *outputs)


@converts(tensor.CountNonzeroOp)
def _count_nonzero(graph: GraphBuilder, op: tensor.CountNonzeroOp) -> None:
    ones = graph.cast(graph.cast(graph.value(op.input), i1), i64)
    graph.set(op, graph.node("ReduceSum", [ones], keepdims=0))


@converts(tensor.NonzeroOp)
def _nonzero(graph: GraphBuilder, op: tensor.NonzeroOp) -> None:
    if rank_of(op.input) == 0:
        zero = TensorAttr.of(np.zeros(1, np.int64))
        shape = graph.dims([0, *op.count.data])
        graph.set(op, graph.node("ConstantOfShape", [shape], value=zero))
        return
    graph.set(op, graph.node("NonZero", [graph.cast(graph.value(op.input), i1)]))
