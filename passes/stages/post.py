"""`post`: types, once more."""

from __future__ import annotations

from typing import ClassVar

from lowerdeck.passes.machinery.stages import Stage


class PostPass(Stage):
    """
    The last passes on core before kernels are formed: `infer-shapes`.
    """

    name = "post"
    optional: ClassVar[bool] = False
