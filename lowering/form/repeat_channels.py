"""`repeat-channels`: several filters for each channel as one filter for each copy of it."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import BroadcastOp, ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import product
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns


class RepeatChannels(Pattern[int]):
    """conv(x, w) of one channel a group -> conv(repeat(x), w) of one filter a group"""

    name = "repeat-channels"
    roots = (ConvOp,)

    def match(self, op: ConvOp) -> Match[int] | None:
        outputs, depth = dims_of(op.weight)[:2]
        groups = op.groups.data
        if groups == 1 or depth != 1 or outputs.value is None or outputs.value <= groups:
            return None
        filters = outputs.value // groups
        return Match((op,), f"{filters} filters for each of {groups} channels", filters)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        op, filters = match.root, match.data
        assert isinstance(op, ConvOp)
        batch, _, *space = dims_of(op.input)
        groups, size = op.groups.data, product(space)
        apart = rewriter.add(ReshapeOp(op.input, [batch, groups, 1, size])).result
        copies = rewriter.add(BroadcastOp(apart, [batch, groups, filters, size])).result
        repeated = rewriter.add(ReshapeOp(copies, [batch, groups * filters, *space])).result
        conv = op.with_operands(op.operands)
        conv.operands[0], conv.groups = repeated, IntAttr(groups * filters)
        rewriter.replace(op, conv)


class RepeatChannelsPass(ModulePass):
    """
    conv(x, w) with c groups and m * c filters -> conv(repeat(x, m), w) with m * c groups
        [one channel a group, m > 1; the target has vectors]

    Then every filter has a channel of its own, and the lanes of a vector are filters.
    """

    name = "repeat-channels"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_named(options_of(ctx).target).lanes > 1:
            patterns = [RepeatChannels()]
            apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
