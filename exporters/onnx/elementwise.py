"""Operations on elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import constant, elementwise
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import (
    element_type,
    i1,
    i32,
    i64,
    is_float,
    is_unsigned,
    numpy_dtype,
    ui64,
)
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts
from lowerdeck.passes.machinery.values import uniform_value

_UNARY: Mapping[type[Operation], str] = {
    elementwise.AbsOp: "Abs",
    elementwise.SignOp: "Sign",
    elementwise.ExpOp: "Exp",
    elementwise.LogOp: "Log",
    elementwise.SqrtOp: "Sqrt",
    elementwise.FloorOp: "Floor",
    elementwise.CeilOp: "Ceil",
    elementwise.RoundOp: "Round",
    elementwise.ErfOp: "Erf",
    elementwise.SinOp: "Sin",
    elementwise.CosOp: "Cos",
    elementwise.TanOp: "Tan",
    elementwise.AsinOp: "Asin",
    elementwise.AcosOp: "Acos",
    elementwise.AtanOp: "Atan",
    elementwise.SinhOp: "Sinh",
    elementwise.CoshOp: "Cosh",
    elementwise.TanhOp: "Tanh",
    elementwise.AsinhOp: "Asinh",
    elementwise.AcoshOp: "Acosh",
    elementwise.AtanhOp: "Atanh",
    elementwise.RectifyOp: "Relu",
    elementwise.SigmoidOp: "Sigmoid",
}


@converts(*_UNARY)
def _unary(graph: GraphBuilder, op: elementwise.UnaryOp) -> None:
    graph.set(op, graph.node(_UNARY[type(op)], [graph.value(op.input)]))


@converts(elementwise.NegOp)
def _neg(graph: GraphBuilder, op: elementwise.NegOp) -> None:
    x = graph.value(op.input)
    if is_unsigned(element_type(op.input)):
        graph.set(op, graph.node("Sub", [graph.like(op.input, 0), x]))
    else:
        graph.set(op, graph.node("Neg", [x]))


@converts(elementwise.NotOp)
def _not(graph: GraphBuilder, op: elementwise.NotOp) -> None:
    op_type = "Not" if element_type(op.input) == i1 else "BitwiseNot"
    graph.set(op, graph.node(op_type, [graph.value(op.input)]))


_BINARY: Mapping[type[Operation], str] = {
    elementwise.AddOp: "Add",
    elementwise.SubOp: "Sub",
    elementwise.MulOp: "Mul",
    elementwise.PowOp: "Pow",
}


_OF_TRUTHS: Mapping[type[Operation], str] = {
    elementwise.AddOp: "Or",
    elementwise.MulOp: "And",
    elementwise.MaxOp: "Or",
    elementwise.MinOp: "And",
}
"""ONNX has no arithmetic of truth values."""


@converts(*_BINARY)
def _binary(graph: GraphBuilder, op: elementwise.BinaryOp) -> None:
    _pair(graph, op, _BINARY[type(op)])


def _pair(graph: GraphBuilder, op: elementwise.BinaryOp, name: str) -> None:
    if element_type(op.lhs) == i1:
        name = _OF_TRUTHS.get(type(op), name)
    graph.set(op, graph.node(name, [graph.value(op.lhs), graph.value(op.rhs)]))


@converts(elementwise.MaxOp)
def _max(graph: GraphBuilder, op: elementwise.MaxOp) -> None:
    """Runtimes fuse Relu and Clip with what is before them, but not Max and Min."""
    bounded = _bounded(op)
    if bounded is not None and bounded[1] == 0:
        graph.set(op, graph.node("Relu", [graph.value(bounded[0])]))
    else:
        _pair(graph, op, "Max")


@converts(elementwise.MinOp)
def _min(graph: GraphBuilder, op: elementwise.MinOp) -> None:
    upper = _bounded(op)
    below = None if upper is None else upper[0].owner
    lower = _bounded(below) if isinstance(below, elementwise.MaxOp) else None
    if upper is not None and lower is not None:
        limits = [graph.like(op.lhs, bound) for bound in (lower[1], upper[1])]
        graph.set(op, graph.node("Clip", [graph.value(lower[0]), *limits]))
    else:
        _pair(graph, op, "Min")


def _bounded(op: elementwise.MaxOp | elementwise.MinOp) -> tuple[SSAValue, float] | None:
    """A value of floats and the number that bounds it, if the result has its shape."""
    if not is_float(element_type(op.lhs)):
        return None
    for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        bound = uniform_value(other)
        if bound is not None and x.type == op.results[0].type:
            return x, float(bound)
    return None


@converts(elementwise.DivOp)
def _div(graph: GraphBuilder, op: elementwise.DivOp) -> None:
    graph.set(op, _divided(graph, op, lambda x, y: graph.node("Div", [x, y])))


@converts(elementwise.RemOp)
def _rem(graph: GraphBuilder, op: elementwise.RemOp) -> None:
    graph.set(op, _divided(graph, op, lambda x, y: graph.node("Mod", [x, y], fmod=1)))


@converts(elementwise.ModOp)
def _mod(graph: GraphBuilder, op: elementwise.ModOp) -> None:
    if not is_float(element_type(op.lhs)):
        graph.set(op, _divided(graph, op, lambda x, y: graph.node("Mod", [x, y])))
        return
    # The remainder has the sign of x: move it by one y where that is the wrong one.
    x, y, zero = graph.value(op.lhs), graph.value(op.rhs), graph.like(op.lhs, 0)
    rest = graph.node("Mod", [x, y], fmod=1)
    signs = graph.node("Xor", [graph.node("Less", [rest, zero]), graph.node("Less", [y, zero])])
    nonzero = graph.node("Not", [graph.node("Equal", [rest, zero])])
    moves = graph.node("And", [signs, nonzero])
    graph.set(op, graph.node("Where", [moves, graph.node("Add", [rest, y]), rest]))


def _divided(
    graph: GraphBuilder, op: elementwise.BinaryOp, divide: Callable[[SSAValue, SSAValue], SSAValue]
) -> SSAValue:
    """Integer division by zero gives zero; ONNX leaves it open, and runtimes crash."""
    x, y = graph.value(op.lhs), graph.value(op.rhs)
    divisor = constant.constant_array(op.rhs)
    if is_float(element_type(op.lhs)) or (divisor is not None and divisor.all()):
        return divide(x, y)
    zero, one = graph.like(op.lhs, 0), graph.like(op.lhs, 1)
    by_zero = graph.node("Equal", [y, zero])
    quotient = divide(x, graph.node("Where", [by_zero, one, y]))
    return graph.node("Where", [by_zero, zero, quotient])


_BITWISE: Mapping[type[elementwise.BitwiseOp], str] = {
    elementwise.AndOp: "And",
    elementwise.OrOp: "Or",
    elementwise.XorOp: "Xor",
}


@converts(*_BITWISE)
def _bitwise(graph: GraphBuilder, op: elementwise.BitwiseOp) -> None:
    name = _BITWISE[type(op)]
    name = name if element_type(op.lhs) == i1 else f"Bitwise{name}"
    graph.set(op, graph.node(name, [graph.value(op.lhs), graph.value(op.rhs)]))


@converts(elementwise.ShlOp, elementwise.ShrOp)
def _shift(graph: GraphBuilder, op: elementwise.BitwiseOp) -> None:
    """In 64 unsigned bits, where only shifts by 64 or more are left open by BitShift."""
    element = element_type(op.lhs)
    if element == i1:
        graph.fail(op, "shifts of i1 are not exported")
        return
    width = 8 * numpy_dtype(element).itemsize
    # Bits, not values: a signed number must not be extended by its sign.
    same_width = IntegerType(width, Signedness.UNSIGNED)
    x, y = (graph.cast(graph.cast(graph.value(v), same_width), ui64) for v in (op.lhs, op.rhs))
    amount = graph.node("Min", [y, graph.literal(63, np.uint64)])
    direction = "LEFT" if isinstance(op, elementwise.ShlOp) else "RIGHT"
    shifted = graph.node("BitShift", [x, amount], direction=direction)
    if width == 64:
        fits = graph.node("Equal", [graph.cast(y, i64), graph.cast(amount, i64)])
        shifted = graph.node("Where", [fits, graph.cast(shifted, i64), graph.literal(0)])
        shifted = graph.cast(shifted, ui64)
    graph.set(op, graph.cast(graph.cast(shifted, same_width), element))


_PREDICATES = {
    Predicate.LT: "Less",
    Predicate.LE: "LessOrEqual",
    Predicate.GT: "Greater",
    Predicate.GE: "GreaterOrEqual",
}


@converts(elementwise.CompareOp)
def _compare(graph: GraphBuilder, op: elementwise.CompareOp) -> None:
    operands, predicate = [graph.value(op.lhs), graph.value(op.rhs)], op.predicate.data
    if predicate in (Predicate.EQ, Predicate.NE):
        equal = graph.node("Equal", operands)
        graph.set(op, equal if predicate == Predicate.EQ else graph.node("Not", [equal]))
        return
    if element_type(op.lhs) == i1:
        operands = [graph.cast(name, i32) for name in operands]
    graph.set(op, graph.node(_PREDICATES[predicate], operands))


@converts(elementwise.SelectOp)
def _select(graph: GraphBuilder, op: elementwise.SelectOp) -> None:
    graph.set(op, graph.node("Where", [graph.value(operand) for operand in op.operands]))


@converts(elementwise.CastOp)
def _cast(graph: GraphBuilder, op: elementwise.CastOp) -> None:
    graph.set(op, graph.cast(graph.value(op.input), op.to))
