"""Which operators of TensorFlow are compiled."""

from __future__ import annotations

from lowerdeck.dialects.tf1.advice import next_step
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.passes.control_flow.graph import is_raised
from lowerdeck.passes.legalize.support import Support
from lowerdeck.passes.legalize.tf1.framework import is_legalized


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled, and what helps where it is not."""
    signature = signature_of(op_type)
    if signature is not None and is_raised(op_type):
        return Support("raised")
    if signature is not None and not signature.outputs:
        return Support("left out: it computes nothing")
    if signature is not None and is_legalized(op_type):
        return Support("legalized")
    return Support(None, next_step=next_step(op_type, is_known=signature is not None))
