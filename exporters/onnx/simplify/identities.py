"""Nodes that return an operand as it is, and movements that are one with the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.numbers import dense_ints
from lowerdeck.dialects.onnx.ops import NONE, InitializerOp, OnnxOp
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.exporters.onnx.simplify.known import constant, made_by, numbers, only_user, scalar
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter

_LONGEST = 16
"""Movements that are followed back."""


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
        if (
            made_by(op.results[0] if op.results else None, "Reshape") is None
            or len(op.operands) < 2
        ):
            return None
        before = made_by(op.operands[0], "Reshape", "Squeeze", "Unsqueeze", "Flatten")
        target = numbers(op.operands[1])
        if before is None or target is None or (0 in target and op.get_int("allowzero") != 1):
            return None
        return Match((op, before), "only the last shape counts", before.operands[0])

    def rewrite(self, match: Match[SSAValue], rewriter: Rewriter) -> None:
        rewriter.set_operands(match.root, [match.data, *match.root.operands[1:]])


class UnsqueezeOnce(Pattern[tuple[SSAValue, list[int]]]):
    """unsqueeze(unsqueeze(x, a), b) -> unsqueeze(x, the axes of both)"""

    name = "unsqueeze-once"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[tuple[SSAValue, list[int]]] | None:
        if made_by(op.results[0] if op.results else None, "Unsqueeze") is None:
            return None
        before = made_by(op.operands[0], "Unsqueeze")
        if before is None or not isinstance(op.results[0].type, TensorType):
            return None
        rank, inner, outer = rank_of(op.results[0]), _new_axes(before), _new_axes(op)
        if inner is None or outer is None or only_user(op.operands[0]) is not op:
            return None
        added = {axis % rank for axis in outer}
        kept = [axis for axis in range(rank) if axis not in added]
        axes = sorted(added | {kept[axis % len(kept)] for axis in inner})
        return Match((op, before), "an unsqueeze of an unsqueeze", (before.operands[0], axes))

    def rewrite(self, match: Match[tuple[SSAValue, list[int]]], rewriter: Rewriter) -> None:
        root = match.root
        value, axes = match.data
        if "axes" in root.properties:
            root.properties["axes"] = dense_ints(axes)
            return rewriter.set_operands(root, [value])
        added = rewriter.add(InitializerOp(TensorAttr.of(np.array(axes, np.int64))))
        return rewriter.set_operands(root, [value, added.output])


class DropZeroState(Pattern[list[SSAValue]]):
    """rnn(x, ..., zeros) -> rnn(x, ...), whose initial states are zeros without operands"""

    name = "drop-zero-state"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[list[SSAValue]] | None:
        if op.op_type not in ("LSTM", "GRU", "RNN") or op.domain:
            return None
        states = range(5, min(len(op.operands), 7))
        if not any(op.operands[k].type != NONE for k in states):
            return None
        if not all(op.operands[k].type == NONE or _is_zeros(op.operands[k]) for k in states):
            return None
        if len(op.operands) > 7 and op.operands[7].type != NONE:
            return None  # peepholes come behind
        return Match((op,), "starts from zeros", list(op.operands[:5]))

    def rewrite(self, match: Match[list[SSAValue]], rewriter: Rewriter) -> None:
        rewriter.set_operands(match.root, match.data)


def _is_zeros(value: SSAValue) -> bool:
    """True for zeros of a size that may be computed."""
    for _ in range(_LONGEST):
        if scalar(value) == 0:
            return True
        if (fill := made_by(value, "ConstantOfShape")) is not None:
            given = fill.get_tensor("value")
            return given is None or not given.array().any()
        moved = made_by(value, "Slice", "Expand", "Reshape", "Squeeze", "Unsqueeze", "Transpose")
        if moved is None:
            return False
        value = moved.operands[0]
    return False


def _new_axes(op: OnnxOp) -> Sequence[int] | None:
    return op.get_ints("axes") if op.since_version < 13 else numbers(op.operands[1])


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


PATTERNS: Sequence[Pattern[Any]] = (
    RemoveIdentity(),
    ComposeTransposes(),
    ReshapeOnce(),
    UnsqueezeOnce(),
    DropZeroState(),
)
