"""`scale-channels`: convolutions of one tap and one channel as products with a number."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp, ints
from lowerdeck.dialects.core.types import dims_of, f32, f64
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns


class ScaleChannels(Pattern[None]):
    """conv(x, w, b) of one tap and one filter a channel -> x * w + b"""

    name = "scale-channels"
    roots = (ConvOp,)

    def match(self, op: ConvOp) -> Match[None] | None:
        filters, depth, *taps = dims_of(op.weight)
        if not is_of(op, f32, f64) or op.groups.data == 1:
            return None
        if depth != 1 or filters != op.groups.data or any(tap != 1 for tap in taps):
            return None
        pads = constants((*op.pads_begin.data, *op.pads_end.data))
        if pads is None or any(pads):
            return None
        return Match((op,), f"{filters} channels with one number each")

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp)
        x, dims, strides = op.input, dims_of(op.result), ints(op.strides)
        if any(stride != 1 for stride in strides):
            x = rewriter.add(SliceOp(x, [0] * len(dims), dims, [1, 1, *strides])).result
        shape = [dims[1], *(1 for _ in strides)]

        def numbers(values: SSAValue) -> SSAValue:
            return rewriter.add(ReshapeOp(values, shape)).result

        value = rewriter.add(MulOp(x, numbers(op.weight))).result
        if op.bias is not None:
            value = rewriter.add(AddOp(value, numbers(op.bias))).result
        rewriter.replace(op, value)


class ScaleChannelsPass(ModulePass):
    """
    conv(x, w, b) with c groups and filters -> slice(x) * reshape(w) + reshape(b)
        [one channel a group, one tap, no padding; f32 or f64]

    Maps are computed where their values are made or read, and in any layout.
    """

    name = "scale-channels"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(
            op, [ScaleChannels()], recorder_of(ctx), pass_name=self.name, recursive=False
        )
