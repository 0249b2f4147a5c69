"""Contractions, normalizations and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from lowerdeck.dialects.core import attention, linear, tensor
from lowerdeck.dialects.core.types import dims_of, element_type, i8, i32, is_float, rank_of, ui8
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts
from lowerdeck.exporters.onnx.windows import padded_input, static
from lowerdeck.passes.machinery.values import uniform_value


@converts(linear.ConvOp)
def _conv(graph: GraphBuilder, op: linear.ConvOp) -> None:
    if not is_float(element_type(op.input)):
        _conv_integer(graph, op)
        return
    x, pads = padded_input(graph, op)
    bias = [] if op.bias is None else [graph.value(op.bias)]
    factors = _in_sum_type(graph, op, [x, graph.value(op.weight)])
    graph.set(op, graph.node("Conv", [*factors, *bias], **window_attributes(op, pads)))


def window_attributes(op: linear.ConvOp, pads: Sequence[int]) -> dict[str, Any]:
    """Those of a convolution."""
    return {
        "strides": tensor.ints(op.strides),
        "dilations": tensor.ints(op.dilations),
        "pads": pads,
        "group": op.groups.data,
    }


def _in_sum_type(
    graph: GraphBuilder, op: linear.ContractionOp, factors: Sequence[SSAValue]
) -> list[SSAValue]:
    """Values that stand for the factors, in the type of the result, which holds them exactly."""
    to = element_type(op.results[0])
    pairs = zip(factors, op.factors, strict=True)
    return [x if element_type(old) == to else graph.cast(x, to) for x, old in pairs]


def _conv_integer(graph: GraphBuilder, op: linear.ConvOp) -> None:
    """ConvInteger takes bytes; one zero point for the input, and one, or one a filter."""
    zeros = zero_points_of_bytes(graph, op, 0)
    if zeros is None:
        graph.fail(op, "convolutions of integers are exported of bytes, with a zero point a filter")
        return
    x, pads = padded_input(graph, op, zeros[0] if zeros else 0)
    result = graph.node(
        "ConvInteger", [x, graph.value(op.weight), *zeros], **window_attributes(op, pads)
    )
    if op.bias is not None:
        shape = graph.literal([-1, *[1] * (rank_of(op.input) - 2)])
        bias = graph.node("Reshape", [graph.value(op.bias), shape])
        result = graph.node("Add", [result, bias])
    graph.set(op, result)


def zero_points_of_bytes(
    graph: GraphBuilder, op: linear.ContractionOp, axis: int
) -> list[SSAValue] | None:
    """
    The zero points of a product of bytes in i32: of the first factor one, of the second one, or a
    vector along an axis. None if the op is something else.
    """
    elements = [element_type(factor) for factor in op.factors]
    if element_type(op.results[0]) != i32 or not all(e in (i8, ui8) for e in elements):
        return None
    if [element_type(zero) for zero in op.zero_points] not in ([], elements):
        return None
    found = [
        _flattened(graph, zero, axis - rank_of(factor) + rank_of(zero) if number else -1)
        for number, (zero, factor) in enumerate(zip(op.zero_points, op.factors, strict=False))
    ]
    known = [zero for zero in found if zero is not None]
    return known if len(known) == len(found) else None


def _flattened(graph: GraphBuilder, zero: SSAValue, axis: int) -> SSAValue | None:
    """A tensor of one element as a scalar, one along an axis as a vector; None if it is neither."""
    dims = dims_of(zero)
    if any(dim != 1 for k, dim in enumerate(dims) if k != axis):
        return None
    shape = [] if all(dim == 1 for dim in dims) else [-1]
    if len(dims) == len(shape):
        return graph.value(zero)
    return graph.node("Reshape", [graph.value(zero), graph.dims(shape)])


@converts(linear.ConvTransposeOp)
def _conv_transpose(graph: GraphBuilder, op: linear.ConvTransposeOp) -> None:
    if not is_float(element_type(op.input)):
        graph.fail(op, "transposed convolutions of integers are not exported")
        return
    spatial = len(op.pads_begin.data)
    pads = static(op.pads_begin, op.pads_end)
    result = graph.node(
        "ConvTranspose",
        [
            *_in_sum_type(graph, op, [graph.value(value) for value in op.factors]),
            *([] if op.bias is None else [graph.value(op.bias)]),
        ],
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
    """MatMulInteger for bytes; other integers are centered before they are multiplied."""
    values = [graph.value(value) for value in op.factors]
    zeros = zero_points_of_bytes(graph, op, rank_of(op.rhs) - 1)
    if zeros is not None:
        graph.set(op, graph.node("MatMulInteger", [*values, *zeros]))
        return
    factors = _in_sum_type(graph, op, values)
    for number, zero in enumerate(op.zero_points):
        value = graph.value(zero)
        if element_type(zero) != element_type(op.result):
            value = graph.cast(value, element_type(op.result))
        factors[number] = graph.node("Sub", [factors[number], value])
    graph.set(op, graph.node("MatMul", factors))


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
    is_plain = op.uncentered is None and op.late_epsilon is None
    if is_plain and all(dims_of(parameter) == dims[axis:] for parameter in op.operands[1:]):
        graph.set(op, graph.node("LayerNormalization", names, axis=axis, epsilon=epsilon))
        return
    axes = graph.literal(list(range(axis, len(dims))))
    centered = names[0]
    if op.uncentered is None:
        centered = graph.node("Sub", [centered, graph.node("ReduceMean", [centered, axes])])
    variance = graph.node("ReduceMean", [graph.node("Mul", [centered, centered]), axes])
    if op.late_epsilon is None:
        normal = _normalized(graph, op.input, centered, variance, epsilon)
    else:
        root = graph.node("Sqrt", [variance])
        deviation = graph.node("Add", [root, graph.like(op.input, epsilon)])
        normal = graph.node("Div", [centered, deviation])
    result = normal if uniform_value(op.scale) == 1 else graph.node("Mul", [normal, names[1]])
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
    if op.factor is not None:
        scores = graph.node("Mul", [scores, graph.value(op.factor)])
    if op.mask is not None:
        scores = graph.node("Add", [scores, graph.value(op.mask)])
    if op.keep is not None and op.fill is not None:
        fill = graph.like(op.query, op.fill.value.data)
        scores = graph.node("Where", [graph.value(op.keep), scores, fill])
    weights = graph.node("Softmax", [scores], axis=-1)
    if op.zero_nan is not None:
        zero = graph.like(op.query, 0.0)
        weights = graph.node("Where", [graph.node("IsNaN", [weights]), zero, weights])
    if op.keep is not None and op.zero_hidden is not None:
        zero = graph.like(op.query, 0.0)
        weights = graph.node("Where", [graph.value(op.keep), weights, zero])
    result = graph.node("MatMul", [weights, laid_out(op.value, rows)])
    graph.set(op, graph.node("Transpose", [result], perm=rows))
