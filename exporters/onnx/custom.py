"""Operators from outside: nodes of their domains."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Attribute

from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.numbers import dense_floats
from lowerdeck.dialects.onnx.custom import VERSION
from lowerdeck.dialects.onnx.inference import result_types
from lowerdeck.dialects.onnx.ops import op_class
from lowerdeck.exporters.onnx.builder import GraphBuilder, converts


@converts(CustomOp)
def _custom(graph: GraphBuilder, op: CustomOp) -> None:
    """Workspace is no output of the node, and nothing reads it."""
    if (operator := op.definition) is None:
        graph.fail(op, f"no plugin defines {op.operator.data}; load the one that does")
        return
    cls = op_class(operator.domain, operator.op_type, VERSION)
    assert cls is not None
    inputs = [graph.value(value) for value in op.operands]
    properties = {
        name: _property(op.parameters.data[name], value)
        for name, value in op.values.items()
        if value != operator.attributes[name]
    }
    types = result_types(cls, inputs, properties, [], [True] * len(operator.outputs))
    node = cls.create(operands=inputs, result_types=types, properties=properties)
    results = graph.add(node).results
    graph.set(op, *results, *(graph.literal(0) for _ in op.results[len(results) :]))


def _property(attribute: Attribute, value: Any) -> Attribute:
    """Attributes of nodes have floats of 32 bits."""
    match value:
        case float():
            return FloatAttr(value, f32)
        case [float(), *_]:
            return cast(Attribute, dense_floats(cast("list[float]", value)))
        case _:
            return attribute
