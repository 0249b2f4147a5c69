"""Operators that the schemas define by other operators: their bodies, and their expansion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import onnx
from onnx import AttributeProto, FunctionProto
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.onnx.convert import ConversionError, GraphBuilder, opset_of
from lowerdeck.dialects.onnx.nodes import op_to_node
from lowerdeck.dialects.onnx.ops import NONE, OnnxOp
from lowerdeck.dialects.onnx.types import type_string, type_to_proto

Expansion: TypeAlias = tuple[list[Operation], list[SSAValue | None]]
"""The ops of a function's body, and the values that replace the results of its call."""


def function_body(op: OnnxOp) -> FunctionProto | None:
    """
    The function that the schema gives for `op`, or None.

    Some bodies depend on the element types of the operands; until all of them are known, there is
    no such body. VerifyException if onnx finds something wrong with the node.
    """
    schema = cast(Any, op.schema)  # onnx's stubs lack the methods below
    if schema.has_function:
        return _parsed(schema.get_function_with_opset_version(_version(op, context=False)), op)
    if not schema.has_context_dependent_function or not all(map(_is_typed, op.operands)):
        return None
    names = ["" if value.type == NONE else f"i{k}" for k, value in enumerate(op.operands)]
    outputs = ["" if value.type == NONE else f"o{k}" for k, value in enumerate(op.results)]
    node = op_to_node(op, names, outputs)
    types = [type_to_proto(value.type).SerializeToString() for value in op.operands]
    try:
        body = schema.get_context_dependent_function_with_opset_version(
            _version(op, context=True), node.SerializeToString(), types
        )
    except (RuntimeError, ValueError) as error:  # of the C++ that makes the body
        raise VerifyException(f"onnx makes no function of it: {error}") from error
    return _parsed(body, op)


def expand_function(op: OnnxOp, body: FunctionProto) -> Expansion:
    """
    Insert the ops of `body` before `op`; return them and the values that replace its results (None
    for a result that is absent).

    All get the location of `op`. ConversionError if the body does not fit.
    """
    ops, results = build_function(op, body)
    Rewriter.insert_op(ops, InsertPoint.before(op))
    return ops, results


def build_function(op: OnnxOp, body: FunctionProto) -> Expansion:
    """As `expand_function`, without inserting the ops anywhere."""
    builder = GraphBuilder(opset_of(body.opset_import), lambda name: op.location)
    wanted = [result.type != NONE for result in op.results]
    ops, results = builder.function(body, op.operands, _attributes(op), wanted)
    if builder.problems:
        raise ConversionError(builder.problems)
    for built in ops:
        built.location = op.location
    return ops, results


def _attributes(op: OnnxOp) -> dict[str, AttributeProto]:
    """The attributes of the op, with the defaults of its schema."""
    defaults = {
        name: attribute.default_value
        for name, attribute in op.schema.attributes.items()
        if attribute.default_value.type
    }
    node = op_to_node(op, ["" for _ in op.operands], ["" for _ in op.results])
    return defaults | {attribute.name: attribute for attribute in node.attribute}


def _is_typed(value: SSAValue) -> bool:
    return value.type == NONE or type_string(value.type) is not None


def _version(op: OnnxOp, *, context: bool) -> int:
    """The oldest opset version that the schema has a body for."""
    schema = cast(Any, op.schema)
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
    if "" not in opset_of(body.opset_import):
        version = op.since_version if not op.domain else onnx.defs.onnx_opset_version()
        body.opset_import.add(domain="", version=version)
    return body
