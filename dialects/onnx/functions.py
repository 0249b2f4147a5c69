"""Operators that the schemas define by other operators: their bodies, and their expansion."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import AttributeProto, FunctionProto
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.onnx.convert import (
    ConversionError,
    GraphBuilder,
    op_to_node,
    opset_of,
)
from lowerdeck.dialects.onnx.ops import NONE, OnnxOp
from lowerdeck.dialects.onnx.types import type_to_proto


def function_body(op: OnnxOp) -> FunctionProto | None:
    """
    The function that the schema gives for `op`, or None.

    Some bodies depend on the types of the operands, which must be known as far as the schema asks;
    if they are not, there is no body either.
    """
    schema = op.schema
    if schema.has_function:
        return _parsed(schema.get_function_with_opset_version(_version(op, context=False)), op)
    if not schema.has_context_dependent_function:
        return None
    names = ["" if value.type == NONE else f"i{k}" for k, value in enumerate(op.operands)]
    outputs = ["" if value.type == NONE else f"o{k}" for k, value in enumerate(op.results)]
    node = op_to_node(op, names, outputs)
    types = [type_to_proto(value.type).SerializeToString() for value in op.operands]
    body = schema.get_context_dependent_function_with_opset_version(
        _version(op, context=True), node.SerializeToString(), types
    )
    return _parsed(body, op)


def expand_function(op: OnnxOp, body: FunctionProto) -> tuple[list[Operation], list[SSAValue]]:
    """
    Insert the ops of `body` before `op`; return them and the values that replace its results.

    All get the location of `op`. ConversionError if the body does not fit.
    """
    ops, results = build_function(op, body)
    Rewriter.insert_op(ops, InsertPoint.before(op))
    return ops, results


def build_function(op: OnnxOp, body: FunctionProto) -> tuple[list[Operation], list[SSAValue]]:
    """As `expand_function`, without inserting the ops anywhere."""
    builder = GraphBuilder(opset_of(body.opset_import), lambda name: op.location)
    ops, results = builder.function(body, op.operands, _attributes(op))
    if builder.problems:
        raise ConversionError(builder.problems)
    for built in ops:
        built.location = op.location
    return ops, results[: len(op.results)]


def _attributes(op: OnnxOp) -> dict[str, AttributeProto]:
    """The attributes of the op, with the defaults of its schema."""
    defaults = {
        name: attribute.default_value
        for name, attribute in op.schema.attributes.items()
        if attribute.default_value.type
    }
    node = op_to_node(op, ["" for _ in op.operands], ["" for _ in op.results])
    return defaults | {attribute.name: attribute for attribute in node.attribute}


def _version(op: OnnxOp, *, context: bool) -> int:
    """The oldest opset version that the schema has a body for."""
    schema = op.schema
    versions: Sequence[int] = (
        schema.context_dependent_function_opset_versions
        if context
        else schema.function_opset_versions
    )
    return min(versions, default=op.since_version)


def _parsed(body: FunctionProto | bytes | None, op: OnnxOp) -> FunctionProto | None:
    if not body:
        return None
    if isinstance(body, bytes):
        body = onnx.FunctionProto.FromString(body)
    if not body.opset_import:
        body.opset_import.add(domain=op.domain, version=op.since_version)
    return body
