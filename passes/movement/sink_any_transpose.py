"""`sink-any-transpose`: ops are done before transposes wherever they can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.core.tensor import TransposeOp
from lowerdeck.passes.machinery.driver import Pattern, PatternPass
from lowerdeck.passes.movement.transposes import (
    ComposeTransposes,
    ReshapeInsteadOfTranspose,
    SinkTranspose,
)


def _worth(op: Operation, transposes: Sequence[TransposeOp]) -> str | None:
    return "the layers before it have another order"


class SinkAnyTransposePass(PatternPass):
    """
    Transposes are sunk as far as they go, for a framework whose layers want channels first.

    - f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p)
      [f elementwise, softmax, concat, pad, slice or batch_norm; c constant, or a view suffices for
      c'; the transposes have no other use]
    - transpose(transpose(x, p), q) -> transpose(x, p[q]), a reshape or x, as in `simplify-movement`

    Unlike `cancel-transpose` and `sink-transpose`, it does not ask what follows.
    """

    name = "sink-any-transpose"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [ComposeTransposes(), ReshapeInsteadOfTranspose(), SinkTranspose(_worth)]
