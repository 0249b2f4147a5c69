"""Which operators of ONNX are compiled."""

from __future__ import annotations

from typing import Any, cast

from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.support import Support


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator of an opset is compiled; None as opset for a domain without a version."""
    from lowerdeck.dialects.core.operators import operator_of
    from lowerdeck.dialects.onnx.ops import op_class
    from lowerdeck.passes.legalize.onnx.handlers import handler_of

    cls = None if opset is None else op_class(domain, op_type, opset)
    if cls is None:
        return Support(None)
    schema = cast(Any, cls.schema)
    if (operator := operator_of(domain, op_type)) is not None:
        step = operator.next_step
        return Support(None if step else "by a plugin", next_step=step)
    if handler_of(cast(Any, _Reference(domain, op_type, schema.since_version))) is not None:
        return Support("legalized", schema.since_version)
    if schema.has_function or schema.has_context_dependent_function:
        return Support("by the function in its schema", schema.since_version)
    return Support(None, schema.since_version)


@record
class _Reference:
    """What a handler is found by."""

    domain: str
    op_type: str
    since_version: int
