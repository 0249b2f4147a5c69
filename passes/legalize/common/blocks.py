"""Blocks of places as channels, channels as blocks of places, and channels of groups in turn."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.builder import CoreBuilder


def depth_to_space(
    builder: CoreBuilder, x: SSAValue, block: int, *, blocks_first: bool = False
) -> SSAValue:
    """
    [..., C * block^2, H, W] as [..., C, H * block, W * block]; the places in a block are before
    the channels, or behind them.
    """
    *batch, c, h, w = dims_of(x)
    n, depth = len(batch), c // (block * block)
    sizes = [block, block, depth] if blocks_first else [depth, block, block]
    channel, row, column = (n + 2, n, n + 1) if blocks_first else (n, n + 1, n + 2)
    apart = builder.reshape(x, [*batch, *sizes, h, w])
    apart = builder.transpose(apart, [*range(n), channel, n + 3, row, n + 4, column])
    return builder.reshape(apart, [*batch, depth, h * block, w * block])


def space_to_depth(
    builder: CoreBuilder, x: SSAValue, block: int, *, blocks_first: bool = False
) -> SSAValue:
    """The inverse of `depth_to_space`."""
    *batch, c, h, w = dims_of(x)
    n = len(batch)
    apart = builder.reshape(x, [*batch, c, h // block, block, w // block, block])
    inner = [n + 2, n + 4, n] if blocks_first else [n, n + 2, n + 4]
    apart = builder.transpose(apart, [*range(n), *inner, n + 1, n + 3])
    return builder.reshape(apart, [*batch, c * (block * block), h // block, w // block])


def shuffled_channels(builder: CoreBuilder, x: SSAValue, groups: int) -> SSAValue:
    """The first channels of all groups of [N, C, ...], then the second ones, and so on."""
    n, channels, *rest = dims_of(x)
    parts = builder.reshape(x, [n, groups, channels // groups, *rest])
    order = [0, 2, 1, *range(3, rank_of(parts))]
    return builder.reshape(builder.transpose(parts, order), dims_of(x))
