"""`fuse`: fewer ops by formulas."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.driver import PassGroup
from lowerdeck.passes.fuse_conv_bn import FuseConvBnPass


class FusePass(PassGroup):
    """The passes that put a formula in place of two: `fuse-conv-bn`."""

    name = "fuse"
    members: ClassVar[tuple[type[ModulePass], ...]] = (FuseConvBnPass,)
