"""Nodes that return an operand as it is, and movements that are one with the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.numbers import dense_ints
from lowerdeck.dialects.onnx.ops import NONE, OnnxOp
from lowerdeck.exporters.onnx.simplify.known import constant, made_by, numbers
from lowerdeck.passes.driver import Match, Pattern, Rewriter


def _always(op: OnnxOp) -> bool:
    return True


def _keeps_type(op: OnnxOp) -> bool:
    """True if the result has the type of the input, down to its sizes."""
    type_ = op.operands[0].type
    return isinstance(type_, TensorType) and type_ == op.results[0].type


def _dropout(op: OnnxOp) -> bool:
    """True for inference, where nothing else is asked for."""
    if op.since_version < 7:
        return op.get_int("is_test") == 1
    training = op.input(2) if len(op.operands) > 2 else None
    array = constant(training)
    return training is None or (array is not None and not array.any())


def _transpose(op: OnnxOp) -> bool:
    order = order_of(op)
    return order is not None and order == sorted(order)


def _slice(op: OnnxOp) -> bool:
    """True if the steps are one: a slice of all sizes is the whole then."""
    if op.since_version < 10 or op.input("steps") is None:
        return _keeps_type(op)
    return _keeps_type(op) and set(numbers(op.input("steps")) or [0]) == {1}


def _pad(op: OnnxOp) -> bool:
    return set(pads_of(op) or [1]) == {0}


def _one_operand(op: OnnxOp) -> bool:
    return len(op.operands) == 1


_IDENTITIES: Mapping[str, Callable[[OnnxOp], bool]] = {
    "Identity": _always,
    "Dropout": _dropout,
    "Cast": _keeps_type,
    "CastLike": _keeps_type,
    "Reshape": _keeps_type,
    "Flatten": _keeps_type,
    "Expand": _keeps_type,
    "Squeeze": _keeps_type,
    "Unsqueeze": _keeps_type,
    "Tile": _keeps_type,
    "Split": _keeps_type,
    "Transpose": _transpose,
    "Slice": _slice,
    "Pad": _pad,
    "Concat": _one_operand,
    "Sum": _one_operand,
    "Max": _one_operand,
    "Min": _one_operand,
    "Mean": _one_operand,
}


class RemoveIdentity(Pattern[SSAValue]):
    """f(x) -> x"""

    name = "remove-identity"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[SSAValue] | None:
        test = None if op.domain else _IDENTITIES.get(op.op_type)
        if test is None or not op.operands:
            return None
        if any(r.type != NONE and r.first_use is not None for r in op.results[1:]) or not test(op):
            return None
        return Match((op,), "returns its input", op.operands[0])

    def rewrite(self, match: Match[SSAValue], rewriter: Rewriter) -> None:
        rewriter.replace_value(match.root.results[0], match.data)
        rewriter.erase(match.root)


class ComposeTransposes(Pattern[tuple[SSAValue, list[int]]]):
    """transpose(transpose(x, p), q) -> transpose(x, p[q])"""

    name = "compose-transposes"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[tuple[SSAValue, list[int]]] | None:
        if made_by(op.results[0] if op.results else None, "Transpose") is None:
            return None
        before = made_by(op.operands[0], "Transpose")
        if before is None or (outer := order_of(op)) is None or (inner := order_of(before)) is None:
            return None
        order = [inner[axis] for axis in outer]
        return Match((op, before), "a transpose of a transpose", (before.operands[0], order))

    def rewrite(self, match: Match[tuple[SSAValue, list[int]]], rewriter: Rewriter) -> None:
        root = match.root
        value, order = match.data
        root.properties["perm"] = dense_ints(order)
        rewriter.set_operands(root, [value])


class ReshapeOnce(Pattern[SSAValue]):
    """
    reshape(g(x), shape) -> reshape(x, shape)
    [g: Reshape, Squeeze, Unsqueeze or Flatten; shape copies no size of g's result]
    """

    name = "reshape-once"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[SSAValue] | None:
        if made_by(op.results[0] if op.results else None, "Reshape") is None or len(op.operands) < 2:
            return None
        before = made_by(op.operands[0], "Reshape", "Squeeze", "Unsqueeze", "Flatten")
        target = numbers(op.operands[1])
        if before is None or target is None or (0 in target and op.get_int("allowzero") != 1):
            return None
        return Match((op, before), "only the last shape counts", before.operands[0])

    def rewrite(self, match: Match[SSAValue], rewriter: Rewriter) -> None:
        rewriter.set_operands(match.root, [match.data, *match.root.operands[1:]])


def order_of(op: OnnxOp) -> list[int] | None:
    """The permutation of a Transpose; None if it reverses dimensions of unknown number."""
    if (given := op.get_ints("perm")) is not None:
        return list(given)
    if not isinstance(op.operands[0].type, TensorType):
        return None
    return list(range(rank_of(op.operands[0])))[::-1]


def pads_of(op: OnnxOp) -> Sequence[int] | None:
    """The constant amounts of a Pad of all dimensions."""
    if op.since_version < 11:
        return op.get_ints("pads" if op.since_version > 1 else "paddings")
    pads = numbers(op.input("pads"))
    axes = numbers(op.input("axes")) if op.since_version >= 18 else None
    if pads is None or (axes is None and op.since_version >= 18 and op.input("axes") is not None):
        return None
    if axes is None:
        return pads
    if not isinstance(op.operands[0].type, TensorType):
        return None
    rank = len(dims_of(op.operands[0]))
    whole = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        whole[axis % rank] = pads[position]
        whole[axis % rank + rank] = pads[position + len(axes)]
    return whole


PATTERNS: Sequence[Pattern[Any]] = (RemoveIdentity(), ComposeTransposes(), ReshapeOnce())
