"""
`legalize-keras`: the walk over a function.

A handler sees the call of one layer, builds `core` ops before it, and returns its results:

    @legalizes("Flatten")
    def legalize_flatten(builder: KerasLegalizer) -> Results:
        return [builder.flatten(builder.input(0), 1)]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.keras.ops import KerasOp
from lowerdeck.passes.legalize.common.walk import HandlerWalk
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import legalizes
from lowerdeck.passes.legalize.keras.support import next_step


class KerasWalk(HandlerWalk):
    """The legalization of one function of keras ops."""

    kind = KerasOp
    table = legalizes
    next_step = next_step

    def builder(self, op: KerasOp) -> KerasLegalizer:
        return KerasLegalizer(op, self.symbols)

    def after(
        self, op: KerasOp, builder: KerasLegalizer, values: Sequence[SSAValue | None]
    ) -> None:
        builder.require_read()


infer_types = KerasWalk.infer


class LegalizeKerasPass(ModulePass):
    """
    Convert every keras op to `core` ops with exact types.

    A layer means what it does in inference, in the words of the version that wrote the model, and
    computes in the type of its policy. All ops that cannot be converted are listed in one
    LegalizationError.
    """

    name = "legalize-keras"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        KerasWalk.run_on(op)
