"""`halve-attention`: the products of attention are those of bf16."""

from __future__ import annotations

from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.strategies.blocked_attention import can_be_halved
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns, rounds


class HalveAttention(Pattern[None]):
    """attention(q, k, v) -> attention(q, k, v) {in_halves}"""

    name = "halve-attention"
    roots = (AttentionOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: AttentionOp) -> Match[None] | None:
        if op.in_halves is not None or not can_be_halved(op, self._target):
            return None
        return Match((op,), f"{dims_of(op.query)[-1]} products, 2 at a time")

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, AttentionOp)
        rewriter.replace(op, op.with_operands(op.operands, {"in_halves": UnitAttr()}))


class HalveAttentionPass(ModulePass):
    """
    attention(q, k, v) -> attention(q, k, v) {in_halves}
        [the target adds up products of two numbers of bf16; as many queries as a vector has lanes;
         an even number of components; a known number of keys]

    In f32, with `--precision` other than f32: what is made of bytes has fewer digits than bf16.
    """

    name = "halve-attention"
    optional = True
    rounds_numbers = True
    precisions = ("bf16", "int8", "auto")
    """With which it does something."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not rounds(self, options_of(ctx)):
            return
        target = target_named(options_of(ctx).target)
        patterns: list[Pattern[Any]] = [HalveAttention(target)]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
