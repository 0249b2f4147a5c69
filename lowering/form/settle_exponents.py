"""`settle-exponents`: constant factors of requantization that only divide."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.enums import Rounding
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns


class SettleExponents(Pattern[None]):
    """requantize double -> requantize double right [e < 0, m >= 0; constants]"""

    name = "settle-exponents"
    roots = (RequantizeOp,)

    def match(self, op: Operation) -> Match[None] | None:
        assert isinstance(op, RequantizeOp)
        if op.rounding.data is not Rounding.DOUBLE or op.right is not None or op.exponent is None:
            return None
        try:
            exponents, multipliers = constant_array(op.exponent), constant_array(op.multiplier)
        except ElidedBlobError:
            return None
        if exponents is None or multipliers is None:
            return None
        if (exponents >= 0).any() or (multipliers < 0).any():
            return None
        return Match((op,), "every factor divides", None)

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, RequantizeOp)
        rewriter.replace(op, op.with_operands(op.operands, {"right": UnitAttr()}))


class SettleExponentsPass(ModulePass):
    """
    requantize double(x, m, e) -> requantize double right(x, m, e) [e < 0, m >= 0; constants]

    Kernels read these constants from memory, and would shift both ways whatever they are.
    """

    name = "settle-exponents"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = SettleExponents()
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
