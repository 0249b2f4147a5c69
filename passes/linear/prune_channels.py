"""`prune-channels`: the weakest channels of convolutions and products become zero."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.channels import ChannelAnalysis
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns
from lowerdeck.passes.machinery.values import Array


@record
class _Pruned:
    """A product, and which of its channels stay."""

    op: ConvOp | MatmulOp
    kept: Array


def _scores(analysis: ChannelAnalysis) -> dict[int, float]:
    """For each set of channels that go together, the squares of their weights by the mean."""
    find, scores = analysis.numbers.find, dict[int, float]()
    for op in analysis.products:
        owner = op.operands[1].owner
        assert isinstance(owner, ConstantOp)
        weight: Array = np.moveaxis(owner.array, 0 if isinstance(op, ConvOp) else 1, 0)
        squares = np.square(weight.astype(np.float64)).reshape(len(weight), -1).sum(1)
        shares = squares / (squares.mean() or 1.0)
        ids = analysis.channels[op.result].ids
        for number, share in zip(ids.tolist(), shares.tolist(), strict=True):
            scores[find(number)] = scores.get(find(number), 0.0) + share
    return scores


def _weakest(analysis: ChannelAnalysis, keep: float) -> set[int]:
    """
    The sets of channels that go: of those that products compute together, all but a part, and none
    of what is read as a whole.
    """
    find = analysis.numbers.find
    whole = {find(number) for number in analysis.whole}
    scores = _scores(analysis)
    # Products whose channels meet, such as those around a residual connection, are one layer.
    layers: dict[int, int] = {}

    def root(number: int) -> int:
        while layers.setdefault(number, number) != number:
            number = layers[number]
        return number

    for op in analysis.products:
        ids = list(map(find, analysis.channels[op.result].ids.tolist()))
        for number in ids[1:]:
            layers[root(number)] = root(ids[0])
    members: dict[int, list[int]] = {}
    for number in scores:
        members.setdefault(root(number), []).append(number)
    gone: set[int] = set()
    for numbers in members.values():
        free = sorted((n for n in numbers if n not in whole), key=lambda n: (scores[n], n))
        gone.update(free[: max(0, len(numbers) - max(1, ceil(keep * len(numbers))))])
    return gone


class PruneChannels(Pattern[list[_Pruned]]):
    """f(x, w, b) -> f(x, w * mask, b * mask)"""

    name = "prune-channels"
    roots = (FuncOp,)

    def __init__(self, keep: float) -> None:
        self._keep = keep

    def match(self, op: FuncOp) -> Match[list[_Pruned]] | None:
        if op.is_declaration:
            return None
        analysis = ChannelAnalysis()
        analysis.follow(op.body.block)
        gone = _weakest(analysis, self._keep)
        found: list[_Pruned] = []
        for product in analysis.products:
            ids = map(analysis.numbers.find, analysis.channels[product.result].ids.tolist())
            kept = np.array([number not in gone for number in ids], bool)
            if not kept.all():
                found.append(_Pruned(product, kept))
        if not found:
            return None
        lost = sum(int((~each.kept).sum()) for each in found)
        consumed = tuple(each.op for each in found)
        return Match((op, *consumed), f"{lost} channels are the weakest of their layers", found)

    def rewrite(self, match: Match[list[_Pruned]], rewriter: Rewriter) -> None:
        for each in match.data:
            op = each.op

            def masked(value: SSAValue, axis: int, each: _Pruned = each) -> SSAValue:
                assert isinstance(value.owner, ConstantOp)
                array: Array = np.moveaxis(value.owner.array.copy(), axis, 0)
                array[~each.kept] = 0
                made = ConstantOp.of(np.ascontiguousarray(np.moveaxis(array, 0, axis)))
                return rewriter.insert_before(each.op, made).result

            operands = list(op.operands)
            operands[1] = masked(operands[1], 0 if isinstance(op, ConvOp) else 1)
            if len(operands) > 2:
                operands[2] = masked(operands[2], 0)
            rewriter.replace(op, rewriter.insert_before(op, op.with_operands(operands)))


@dataclass(frozen=True)
class PruneChannelsPass(ModulePass):
    """
    - f(x, w, b) -> f(x, w * mask, b * mask)
      [f a convolution or product with constant weights; the mask is 0 for the channels whose
       weights have the smallest squares, all but the part `keep` of each layer]

    Channels that meet, as in a residual connection, go together, by the sum of their squares in
    proportion to the mean of each layer (https://arxiv.org/abs/1608.08710, section 3). Channels
    that are outputs, or read as a whole, stay. `drop-zero-channels` then drops what has become
    zero. Results change: it is part of no phase; `lowerdeck prune` runs it.
    """

    name = "prune-channels"
    optional = True
    rounds_numbers = True
    keep: float = 1.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [PruneChannels(self.keep)]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
