"""`fuse-channel-shuffle`: a channel shuffle written as a transpose becomes one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.tensor import ChannelShuffleOp, ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import product
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer


class FuseChannelShuffle(Pattern[int]):
    """reshape(transpose(reshape(x, [N, g, C / g, ...]), 1 <-> 2), [N, C, ...]) -> shuffle(x, g)"""

    name = "fuse-channel-shuffle"
    roots = (ReshapeOp,)
    ranked = True

    def match(self, op: ReshapeOp) -> Match[int] | None:
        transpose = producer(op.input, TransposeOp)
        apart = producer(transpose.input, ReshapeOp) if transpose is not None else None
        if transpose is None or apart is None or op.result.type != apart.input.type:
            return None
        dims, split = dims_of(apart.input), apart.dims.data
        if len(dims) < 2 or len(split) < 3 or not _swaps_channels(ints(transpose.permutation)):
            return None
        if split[0] != dims[0] or split[1] * split[2] != dims[1]:
            return None
        groups = split[1].value
        if groups is None or groups < 1 or product(split[3:]) != product(dims[2:]):
            return None
        return Match((op, transpose, apart), "the channels are dealt out", groups)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        apart = match.consumed[2]
        assert isinstance(apart, ReshapeOp)
        rewriter.replace(match.root, ChannelShuffleOp(apart.input, match.data))


def _swaps_channels(permutation: Sequence[int]) -> bool:
    return list(permutation) == [0, 2, 1, *range(3, len(permutation))]


class FuseChannelShufflePass(PatternPass):
    """
    The order of channels as one op, which a layout can absorb without moving data.

    - reshape(transpose(reshape(x, [N, g, C / g, ...]), [0, 2, 1, ...]), [N, C, ...])
      -> channel_shuffle(x) {groups = g} [x has the shape of the result; g is a constant]
    """

    name = "fuse-channel-shuffle"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseChannelShuffle()]
