"""What is compiled of Keras, and what helps where it is not."""

from __future__ import annotations

from lowerdeck.dialects.keras.classes import INACTIVE
from lowerdeck.passes.legalize.keras.registry import legalizes
from lowerdeck.passes.legalize.support import Support

_AT_IMPORT = frozenset(
    """
    Bidirectional SpectralNormalization TimeDistributed RNN StackedRNNCells LSTMCell GRUCell
    SimpleRNNCell
    """.split()
)


def next_step(op_type: str) -> str:
    """What helps where a class is not compiled."""
    if op_type == "Lambda":
        return "write it as layers of Keras, or as keras.ops"
    return "compute it outside of the model, or write it as layers that are known"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How a class is compiled, and what helps where it is not."""
    if op_type in _AT_IMPORT or op_type in INACTIVE:
        return Support("at import")
    if legalizes.get(op_type) is not None:
        return Support("legalized")
    return Support(None, next_step=next_step(op_type))
