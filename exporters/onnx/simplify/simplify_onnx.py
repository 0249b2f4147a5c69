"""`simplify-onnx`: a graph of the onnx dialect with as few nodes as give the same results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.exporters.onnx.simplify import identities, linear
from lowerdeck.exporters.onnx.simplify.constants import FoldKnown, FoldNode, FoldTarget
from lowerdeck.exporters.onnx.simplify.known import Known
from lowerdeck.passes.driver import Pattern, PatternPass


@dataclass(frozen=True)
class SimplifyOnnxPass(PatternPass):
    """
    Simplify nodes; what nothing simplifies stays the operator that it was, with its name.
    """

    name = "simplify-onnx"
    works_on_all_dialects = True

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        known = Known(module)
        return [
            FoldKnown(known),
            FoldNode(),
            FoldTarget(known),
            *identities.PATTERNS,
            *linear.patterns(known),
        ]
