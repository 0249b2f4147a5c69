"""Which primitives of MindSpore are compiled."""

from __future__ import annotations

from lowerdeck.dialects.mindir.schema import STRUCTURE, schemas
from lowerdeck.passes.legalize.mindir.registry import legalizes
from lowerdeck.passes.legalize.support import Support

_RANDOM = ("Rand", "Normal", "Uniform", "Standard", "Bernoulli", "Multinomial", "Gamma", "Poisson")


def next_step(op_type: str) -> str:
    """What helps where a primitive is not compiled."""
    if op_type.startswith(_RANDOM):
        return "make the random numbers an input"
    return "compute it outside of the model"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How a primitive is compiled, and what helps where it is not."""
    del domain, opset
    if op_type in STRUCTURE:
        return Support("at import")
    is_known = op_type in schemas() and legalizes.get(op_type) is not None
    return Support("legalized" if is_known else None, next_step=next_step(op_type))
