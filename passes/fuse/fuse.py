"""`fuse`: recognize formulas and replace them by fewer ops."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.fuse.fuse_activation import FuseActivationPass
from lowerdeck.passes.fuse.fuse_attention import FuseAttentionPass
from lowerdeck.passes.fuse.fuse_channel_shuffle import FuseChannelShufflePass
from lowerdeck.passes.fuse.fuse_mish import FuseMishPass
from lowerdeck.passes.fuse.fuse_norm import FuseNormPass
from lowerdeck.passes.fuse.fuse_softmax import FuseSoftmaxPass
from lowerdeck.passes.linear.decompose_linear import DecomposeLinearPass
from lowerdeck.passes.linear.fuse_linear import FuseLinearPass
from lowerdeck.passes.linear.merge_linear import MergeLinearPass
from lowerdeck.passes.machinery.driver import PassGroup
from lowerdeck.passes.movement.fuse_pad import FusePadPass


class FusePass(PassGroup):
    """
    The passes that replace several ops by one: `fuse-softmax`, `fuse-attention`,
    `fuse-channel-shuffle`, `fuse-activation`, `fuse-mish`, `fuse-norm`, and then `fuse-linear`,
    `fuse-pad`, `merge-linear`, `decompose-linear`.

    Formulas come first, because their constants tell them apart; softmax before attention, of which
    it is a part. Then linear ops become part of weights, and pads of windows; linear ops left in a
    row, a product and a sum; and normalizations still left, the same.
    """

    name = "fuse"
    members: ClassVar[tuple[type[ModulePass], ...]] = (
        FuseSoftmaxPass,
        FuseAttentionPass,
        FuseChannelShufflePass,
        FuseActivationPass,
        FuseMishPass,
        FuseNormPass,
        FuseLinearPass,
        FusePadPass,
        MergeLinearPass,
        DecomposeLinearPass,
    )
