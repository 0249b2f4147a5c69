"""Constants, and numbers that are dimensions."""

from __future__ import annotations

from typing import cast

from lowerdeck.dialects.core import constant
from lowerdeck.dialects.core.types import Tensor, dims_of, i64
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts


@converts(constant.ConstantOp)
def _constant(graph: GraphBuilder, op: constant.ConstantOp) -> None:
    value = graph.shared.initializer(TensorAttr(cast(Tensor, op.result.type), op.value))
    value.name_hint = op.result.name_hint or "weight"
    graph.set(op, value)


@converts(constant.FromDimsOp)
def _from_dims(graph: GraphBuilder, op: constant.FromDimsOp) -> None:
    shape = [dim.value or 0 for dim in dims_of(op.result)]
    flat = graph.dims(op.values)
    graph.set(op, graph.node("Reshape", [flat, graph.literal(shape)], allowzero=1))


@converts(constant.BindSymbolsOp)
def _bind_symbols(graph: GraphBuilder, op: constant.BindSymbolsOp) -> None:
    wide = graph.cast(graph.value(op.input), i64)
    flat = graph.node("Reshape", [wide, graph.literal([-1])])
    for position, symbol in enumerate(op.made_symbols):
        taken = graph.node("Gather", [flat, graph.literal([position])], axis=0)
        graph.define_symbol(symbol, taken)


@converts(constant.IotaOp)
def _iota(graph: GraphBuilder, op: constant.IotaOp) -> None:
    dims, axis = op.dims.data, op.axis.data
    size = graph.node("Squeeze", [graph.expression(dims[axis]), graph.literal([0])])
    line = graph.node("Range", [graph.literal(0), size, graph.literal(1)])
    if len(dims) > 1:
        column = graph.literal([-1, *[1] * (len(dims) - axis - 1)])
        line = graph.node("Expand", [graph.node("Reshape", [line, column]), graph.dims(dims)])
    graph.set(op, line)
