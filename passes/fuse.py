"""`fuse`: recognize formulas and replace them by fewer ops."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.driver import PassGroup
from lowerdeck.passes.fuse_activation import FuseActivationPass
from lowerdeck.passes.fuse_attention import FuseAttentionPass
from lowerdeck.passes.fuse_channel_shuffle import FuseChannelShufflePass
from lowerdeck.passes.fuse_conv_bn import FuseConvBnPass
from lowerdeck.passes.fuse_norm import FuseNormPass


class FusePass(PassGroup):
    """
    The passes that replace several ops by one: `fuse-conv-bn`, `fuse-attention`,
    `fuse-channel-shuffle`, `fuse-activation`, `fuse-norm`.
    """

    name = "fuse"
    members: ClassVar[tuple[type[ModulePass], ...]] = (
        FuseConvBnPass,
        FuseAttentionPass,
        FuseChannelShufflePass,
        FuseActivationPass,
        FuseNormPass,
    )
