"""Contractions, normalizations and attention."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core import attention, linear, tensor
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, rank_of
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts
from lowerdeck.exporters.onnx.windows import padded_input, static


@converts(linear.ConvOp)
def _conv(graph: GraphBuilder, op: linear.ConvOp) -> None:
    if not is_float(element_type(op.input)):
        graph.fail(op, "convolutions of integers are not exported")
        return
    x, pads = padded_input(graph, op)
    inputs = [x, *(graph.value(value) for value in op.operands[1:])]
    result = graph.node(
        "Conv",
        inputs,
        strides=tensor.ints(op.strides),
        dilations=tensor.ints(op.dilations),
        pads=pads,
        group=op.groups.data,
    )
    graph.set(op, result)


@converts(linear.ConvTransposeOp)
def _conv_transpose(graph: GraphBuilder, op: linear.ConvTransposeOp) -> None:
    if not is_float(element_type(op.input)):
        graph.fail(op, "convolutions of integers are not exported")
        return
    spatial = len(op.pads_begin.data)
    pads = static(op.pads_begin, op.pads_end)
    result = graph.node(
        "ConvTranspose",
        [graph.value(value) for value in op.operands],
        strides=tensor.ints(op.strides),
        dilations=tensor.ints(op.dilations),
        output_padding=tensor.ints(op.output_padding),
        pads=[*pads[0], *pads[1]] if pads else [0] * (2 * spatial),
        group=op.groups.data,
    )
    if pads is None:
        crops = [0, 0, *(-b for b in op.pads_begin.data), 0, 0, *(-e for e in op.pads_end.data)]
        result = graph.node("Pad", [result, graph.dims(crops)])
    graph.set(op, result)


@converts(linear.MatmulOp)
def _matmul(graph: GraphBuilder, op: linear.MatmulOp) -> None:
    graph.set(op, graph.node("MatMul", [graph.value(op.lhs), graph.value(op.rhs)]))


@converts(linear.BatchNormOp)
def _batch_norm(graph: GraphBuilder, op: linear.BatchNormOp) -> None:
    epsilon, axis, rank = op.epsilon.value.data, op.axis.data, rank_of(op.input)
    names = [graph.value(operand) for operand in op.operands]
    if axis == 1:
        graph.set(op, graph.node("BatchNormalization", names, epsilon=epsilon))
        return
    shape = graph.literal([-1, *[1] * (rank - axis - 1)])
    x, *parameters = names
    scale, bias, mean, variance = (graph.node("Reshape", [p, shape]) for p in parameters)
    centered = graph.node("Sub", [x, mean])
    normal = _normalized(graph, op.input, centered, variance, epsilon)
    graph.set(op, graph.node("Add", [graph.node("Mul", [normal, scale]), bias]))


def _normalized(
    graph: GraphBuilder, value: SSAValue, centered: SSAValue, variance: SSAValue, epsilon: float
) -> SSAValue:
    shifted = graph.node("Add", [variance, graph.like(value, epsilon)])
    return graph.node("Div", [centered, graph.node("Sqrt", [shifted])])


@converts(linear.LayerNormOp)
def _layer_norm(graph: GraphBuilder, op: linear.LayerNormOp) -> None:
    epsilon, axis, dims = op.epsilon.value.data, op.axis.data, dims_of(op.input)
    names = [graph.value(operand) for operand in op.operands]
    if all(dims_of(parameter) == dims[axis:] for parameter in op.operands[1:]):
        graph.set(op, graph.node("LayerNormalization", names, axis=axis, epsilon=epsilon))
        return
    axes = graph.literal(list(range(axis, len(dims))))
    centered = graph.node("Sub", [names[0], graph.node("ReduceMean", [names[0], axes])])
    variance = graph.node("ReduceMean", [graph.node("Mul", [centered, centered]), axes])
    normal = _normalized(graph, op.input, centered, variance, epsilon)
    result = graph.node("Mul", [normal, names[1]])
    graph.set(op, graph.node("Add", [result, names[2]]) if len(names) > 2 else result)


@converts(attention.AttentionOp)
def _attention(graph: GraphBuilder, op: attention.AttentionOp) -> None:
    rank = rank_of(op.query)
    batch = list(range(rank - 3))
    rows, columns = [*batch, rank - 2, rank - 3, rank - 1], [*batch, rank - 2, rank - 1, rank - 3]

    def laid_out(value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        return graph.node("Transpose", [graph.value(value)], perm=permutation)

    scores = graph.node("MatMul", [laid_out(op.query, rows), laid_out(op.key, columns)])
    scores = graph.node("Mul", [scores, graph.like(op.query, op.scale.value.data)])
    if op.mask is not None:
        scores = graph.node("Add", [scores, graph.value(op.mask)])
    weights = graph.node("Softmax", [scores], axis=-1)
    result = graph.node("MatMul", [weights, laid_out(op.value, rows)])
    graph.set(op, graph.node("Transpose", [result], perm=rows))
