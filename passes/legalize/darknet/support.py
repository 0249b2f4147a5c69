"""Which sections of DarkNet are compiled."""

from __future__ import annotations

from lowerdeck.dialects.darknet.sections import sections
from lowerdeck.passes.legalize.darknet.registry import legalizes
from lowerdeck.passes.legalize.support import Support


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How a section is compiled."""
    del domain, opset
    section = sections().get(op_type)
    is_known = section is not None and legalizes.get(section.name) is not None
    step = "compute it outside of the model: --output names the layer before it"
    return Support("legalized" if is_known else None, next_step=step)
