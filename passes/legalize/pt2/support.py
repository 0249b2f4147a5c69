"""Which operators of PyTorch are compiled."""

from __future__ import annotations

from lowerdeck.dialects.pt2.schema import CONTROL_FLOW, functional, schemas
from lowerdeck.passes.legalize.pt2.registry import handler_of
from lowerdeck.passes.legalize.support import Support

_RANDOM = ("aten.rand", "aten.bernoulli", "aten.multinomial", "aten.native_dropout", "aten.normal")
_CHECKS = ("aten._assert", "aten.sym_constrain")


def next_step(op_type: str) -> str:
    """What helps where an operator is not compiled."""
    if op_type.startswith(_RANDOM):
        return "make the random numbers an input, or export after model.eval()"
    return "compute it outside of the model"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled, and what helps where it is not."""
    if op_type.startswith(("higher_order.", *_CHECKS)):
        is_known = op_type in CONTROL_FLOW or not op_type.startswith("higher_order.")
        return Support("at import" if is_known else None, next_step=next_step(op_type))
    target = functional(op_type)
    if target in schemas() and handler_of(target) is not None:
        return Support("legalized")
    return Support(None, next_step=next_step(op_type))
