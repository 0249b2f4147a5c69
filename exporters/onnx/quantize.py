"""Integers of one scale in another, by integer arithmetic that gives the same integers."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.enums import Rounding
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.types import f32, f64, i32, i64, ui32, ui64
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts

_RAISED = 1 << 62
"""What makes sums positive, so that their bits can be shifted as those of numbers without signs."""

_BEYOND = 1 << 20
"""Of numbers that are limited to 16 bits after a zero point of 16 bits was added."""


@converts(RequantizeOp)
def _requantize(graph: GraphBuilder, op: RequantizeOp) -> None:
    x, multiplier = graph.value(op.input), graph.value(op.multiplier)
    if op.rounding.data is Rounding.EVEN:
        nearest = _even_product(graph, x, multiplier)
    elif op.exponent is None:
        nearest = _real_product(graph, x, multiplier)
    else:
        rule = _doubly if op.rounding.data is Rounding.DOUBLE else _singly
        exponent = graph.cast(graph.value(op.exponent), i64)
        nearest = rule(graph, x, graph.cast(multiplier, i64), exponent)
    shifted = graph.node("Add", [nearest, graph.literal(op.zero.data)])
    limited = graph.node("Max", [shifted, graph.literal(op.low.data)])
    limited = graph.node("Min", [limited, graph.literal(op.high.data)])
    graph.set(op, graph.cast(limited, op.to))


def _even_product(graph: GraphBuilder, x: SSAValue, factor: SSAValue) -> SSAValue:
    """The product in f32 to the nearest integer, halves to even; limits have 16 bits."""
    rounded = graph.node("Round", [graph.node("Mul", [graph.cast(x, f32), factor])])
    most, least = (graph.literal(each, np.float32) for each in (_BEYOND, -_BEYOND))
    limited = graph.node("Max", [graph.node("Min", [rounded, most]), least])
    return graph.cast(limited, i64)


def _real_product(graph: GraphBuilder, x: SSAValue, factor: SSAValue) -> SSAValue:
    """The product in f64 to the nearest integer, halves away from zero."""
    product = graph.node("Mul", [graph.cast(x, f64), factor])
    size = graph.node("Abs", [product])
    whole = graph.node("Floor", [size])
    rest = graph.node("Sub", [size, whole])
    is_more = graph.node("GreaterOrEqual", [rest, graph.literal(0.5, np.float64)])
    rounded = graph.node("Add", [whole, graph.cast(is_more, f64)])
    return graph.cast(graph.node("Mul", [rounded, graph.node("Sign", [product])]), i64)


def _singly(graph: GraphBuilder, x: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """(x * multiplier + 2^(30 - exponent)) / 2^(31 - exponent)"""
    product = graph.node("Mul", [graph.cast(x, i64), multiplier])
    half = _power(graph, graph.node("Sub", [graph.literal(30), exponent]))
    amount = graph.node("Sub", [graph.literal(31), exponent])
    return _shifted_down(graph, graph.node("Add", [product, half]), amount)


def _doubly(graph: GraphBuilder, x: SSAValue, multiplier: SSAValue, exponent: SSAValue) -> SSAValue:
    """As the lowering to C: what is shifted left is lost beyond 32 bits."""
    left = graph.cast(graph.node("Max", [exponent, graph.literal(0)]), ui64)
    bits = graph.node("BitShift", [graph.cast(graph.cast(x, ui32), ui64), left], direction="LEFT")
    wide = graph.cast(graph.cast(graph.cast(bits, ui32), i32), i64)
    product = graph.node("Mul", [wide, multiplier])
    product = graph.node("Add", [product, graph.literal(1 << 30)])
    value = _shifted_down(graph, product, graph.literal(31))
    right = graph.node("Max", [graph.node("Neg", [exponent]), graph.literal(0)])
    half = graph.node("Div", [_power(graph, right), graph.literal(2)])
    is_negative = graph.cast(graph.node("Less", [value, graph.literal(0)]), i64)
    less = graph.node("Min", [is_negative, half])
    total = graph.node("Sub", [graph.node("Add", [value, half]), less])
    return _shifted_down(graph, total, right)


def _power(graph: GraphBuilder, exponent: SSAValue) -> SSAValue:
    one = graph.literal(1, np.uint64)
    amount = graph.cast(exponent, ui64)
    return graph.cast(graph.node("BitShift", [one, amount], direction="LEFT"), i64)


def _shifted_down(graph: GraphBuilder, x: SSAValue, amount: SSAValue) -> SSAValue:
    """Divided by a power of two, rounded down, for numbers of up to 62 bits."""
    raised = graph.cast(graph.node("Add", [x, graph.literal(_RAISED)]), ui64)
    by = graph.cast(amount, ui64)
    down = graph.node("BitShift", [raised, by], direction="RIGHT")
    start = graph.node("BitShift", [graph.literal(_RAISED, np.uint64), by], direction="RIGHT")
    return graph.node("Sub", [graph.cast(down, i64), graph.cast(start, i64)])
