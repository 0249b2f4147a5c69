"""`pre`: what is known, and what is equal."""

from __future__ import annotations

from lowerdeck.passes.machinery.stages import Stage


class PrePass(Stage):
    """
    The passes that clean up after legalization: `fuse-quantized`, `fold`, `reorder-binary`,
    `simplify`, `cse`, `dce`.
    """

    name = "pre"
