"""Which operators of MXNet are compiled."""

from __future__ import annotations

from lowerdeck.dialects.mxnet.schema import targets
from lowerdeck.passes.legalize.mxnet.registry import legalizes
from lowerdeck.passes.legalize.support import Support

_RANDOM = ("_random_", "_sample_", "_npi_normal", "_npi_uniform", "_image_random", "_shuffle")
_FUSED = ("_sg_mkldnn", "_CachedOp", "_contrib_quantized", "_TensorRT")


def next_step(op_type: str) -> str:
    """What helps where an operator is not compiled."""
    if op_type.startswith(_RANDOM):
        return "make the random numbers an input"
    if op_type.startswith(_FUSED):
        return "save the symbol before it is quantized or fused for a backend"
    return "compute it outside of the model"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled, and what helps where it is not."""
    del domain, opset
    target = targets().get(op_type, "")
    is_compiled = target and legalizes.get(target) is not None
    return Support("legalized" if is_compiled else None, next_step=next_step(op_type))
