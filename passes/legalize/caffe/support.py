"""Which layers of Caffe are compiled."""

from __future__ import annotations

from lowerdeck.passes.legalize.caffe.registry import legalizes
from lowerdeck.passes.legalize.support import Support


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How a layer type is compiled."""
    return Support(None if legalizes.get(op_type) is None else "legalized")
