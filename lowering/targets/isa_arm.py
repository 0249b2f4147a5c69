"""The instructions of Arm's microcontrollers, which no compiler finds by itself."""

from __future__ import annotations

from itertools import product

from lowerdeck.lowering.targets.isa import Builtin, Isa

_PAIRS = Builtin(
    "__ARM_FEATURE_DSP", '__asm__("smlad %0, %1, %2, %3" : "=r"(r) : "r"(a), "r"(b), "r"(c))'
)


def _addition(*, odd: bool, unsigned: bool) -> Builtin:
    """Both bytes are widened and added at once."""
    name, turned = "uxtab16" if unsigned else "sxtab16", ", ror #8" if odd else ""
    call = f'__asm__("{name} %0, %1, %2{turned}" : "=r"(r) : "r"(base), "r"(word))'
    return Builtin("__ARM_FEATURE_DSP", call)


DSP = Isa(
    scalar_pairs=_PAIRS,
    byte_additions={
        (odd, unsigned): _addition(odd=odd, unsigned=unsigned)
        for odd, unsigned in product((False, True), repeat=2)
    },
)
"""The DSP extension (Armv7-M Architecture Reference Manual, DDI 0403, A4.4.3 and A4.5)."""
