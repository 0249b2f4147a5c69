"""`widen-half`: convolutions and products of half precision, in f32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import bf16, element_type, f16, f32
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.context import options_of, recorder_of
from lowerdeck.passes.driver import Match, Pattern, Rewriter, apply_patterns


class WidenHalf(Pattern):
    """f(x, w) -> cast(f(cast(x), cast(w)))"""

    name = "widen-half"
    roots = (ConvOp, ConvTransposeOp, MatmulOp)

    def match(self, op: ConvOp | ConvTransposeOp | MatmulOp) -> Match | None:
        element = element_type(op.operands[0])
        return Match((op,), f"{element} in f32") if element in (f16, bf16) else None

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp | ConvTransposeOp | MatmulOp)
        wide = rewriter.add(op.with_operands([_widened(value, rewriter) for value in op.operands]))
        element = element_type(op.result)
        rewriter.replace(op, wide if element == f32 else CastOp(wide.result, element))


def _widened(value: SSAValue, rewriter: Rewriter) -> SSAValue:
    """A value in f32; what a constant becomes is known."""
    try:
        array = constant_array(value)
    except ElidedBlobError:
        array = None
    if array is None:
        return rewriter.add(CastOp(value, f32)).result
    return rewriter.add(ConstantOp.of(array.astype(np.float32))).result


@dataclass(frozen=True)
class WidenHalfPass(ModulePass):
    """
    f(x, w) -> cast(f(cast(x), cast(w)))
        [f a convolution or product of f16 or bf16; the target has vectors]

    Their sums are those of f32, rounded once at the end, so every result stays what it is: products
    of two halves are exact in f32.
    """

    name = "widen-half"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_named(options_of(ctx).target).lanes > 1:
            patterns = [WidenHalf()]
            apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
