"""
Functions that lose too much in half precision: their expansion computes in f32 and rounds once.

The function bodies of the schemas are typed by their operands, so a node with casts around it
expands to a body in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.types import bf16, element_type, f16, f32
from lowerdeck.dialects.onnx.ops import NONE, OnnxOp, op_class
from lowerdeck.dialects.onnx.types import UNTYPED, element_to_proto

WIDENED = ("Attention", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
"""The operators, all of whose results of the type of the first operand are rounded."""

_CAST_OPSET = 13


def _is_half(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and element_type(value) in (f16, bf16)


def is_widened(op: OnnxOp) -> bool:
    """True if `op` has half precision, but should be computed in f32."""
    return op.op_type in WIDENED and not op.domain and _is_half(op.operands[0])


def widen(op: OnnxOp) -> tuple[Sequence[Operation], Sequence[SSAValue]]:
    """Insert the node with casts around it before `op`; the ops, and the values of its results."""
    element = element_type(op.operands[0])
    before = [_cast(value, f32) for value in op.operands if _is_half(value)]
    casts = iter(before)
    operands = [next(casts).results[0] if _is_half(v) else v for v in op.operands]
    absent = [result.type == NONE for result in op.results]
    wide = type(op).create(
        operands=operands,
        result_types=[NONE if is_absent else UNTYPED for is_absent in absent],
        properties=dict(op.properties),
    )
    after = [_cast(result, element) for result in wide.results if result.type != NONE]
    ops = [*before, wide, *after]
    for inner in ops:
        inner.location = op.location
    Rewriter.insert_op(ops, InsertPoint.before(op))
    rounded = iter(after)
    values = [
        result if is_absent else next(rounded).results[0]
        for result, is_absent in zip(wide.results, absent, strict=True)
    ]
    return ops, values


def _cast(value: SSAValue, to: Attribute) -> OnnxOp:
    cls = op_class("", "Cast", _CAST_OPSET)
    assert cls is not None
    return cls.create(
        operands=[value],
        result_types=[UNTYPED],
        properties={"to": IntegerAttr(element_to_proto(to), builtin_i64)},
    )
