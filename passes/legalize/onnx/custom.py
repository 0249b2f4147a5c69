"""Nodes of operators that plugins define."""

from __future__ import annotations

from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.operators import OPERATORS, operator_of
from lowerdeck.dialects.onnx.custom import parameters_of
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Handler, Results


def custom_handler(op: OnnxOp) -> Handler | None:
    """The legalization of a node whose operator comes from a plugin; None for any other."""
    return None if operator_of(op.domain, op.op_type) is None else legalize_custom


def legalize_custom(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """One op of core; inputs that are left out come last."""
    operator = OPERATORS[f"{op.domain}.{op.op_type}"]
    operands = [op.input(number) for number in range(len(op.operands))]
    while operands and operands[-1] is None:
        operands.pop()
    present = [value for value in operands if value is not None]
    if len(present) < len(operands):
        missing = op.schema.inputs[operands.index(None)].name
        builder.refuse(f"no input '{missing}' before others", "those that are left out to be last")
    builder.attrs.ignore(*operator.attributes)  # all are taken here
    new = CustomOp(operator, present, parameters_of(operator, op.properties))
    return list(builder.insert(new)[: len(op.results)])
