"""Which operators of TensorFlow Lite are compiled."""

from __future__ import annotations

from lowerdeck.passes.legalize.support import Support
from lowerdeck.passes.legalize.tflite.registry import legalizes

_AT_IMPORT = frozenset(
    "IF WHILE CALL CALL_ONCE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE "
    "STABLEHLO_WHILE STABLEHLO_CASE STABLEHLO_COMPOSITE".split()
)


def next_step(op_type: str) -> str:
    """What helps where an operator is not compiled."""
    if op_type.startswith("Flex"):
        return "it needs TensorFlow itself: convert without SELECT_TF_OPS"
    if op_type.startswith("HASHTABLE"):
        return "look words up before the model"
    if op_type.startswith(("RANDOM", "MULTINOMIAL")):
        return "make the random numbers an input"
    if op_type == "ethos-u":
        return "it is what Vela makes for an Ethos-U: give the file that Vela was given"
    return "compute it outside of the model"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled, and what helps where it is not."""
    if op_type in _AT_IMPORT:
        return Support("at import")
    if legalizes.get(op_type) is not None:
        return Support("legalized")
    return Support(None, next_step=next_step(op_type))
