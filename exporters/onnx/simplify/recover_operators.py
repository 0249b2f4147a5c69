"""`recover-operators`: operators of ONNX that a graph has as several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.exporters.onnx.simplify import activations, normalization
from lowerdeck.exporters.onnx.simplify.known import Known
from lowerdeck.exporters.onnx.simplify.raise_opset import can_raise, raise_opset
from lowerdeck.passes.machinery.driver import Pattern, PatternPass


class RecoverOperatorsPass(PatternPass):
    """
    Find operators of ONNX that exporters, or older opsets, spell as several nodes.

    - centered / sqrt(mean(centered^2) + epsilon) gamma + beta -> LayerNormalization(x, gamma, beta)
      [centered = x - mean(x), over the last dimensions]
    - x / sqrt(mean(x^2) + epsilon) gamma -> RMSNormalization(x, gamma)
      [for both: quotients, or products with a reciprocal or with a power of -1 / 2]
    - x / 2 (1 + erf(x / sqrt 2)) -> Gelu(x), in any arrangement; so with tanh
    - x clip(x + 3, 0, 6) / 6, x hard_sigmoid(x) -> HardSwish(x)
    - x tanh(softplus(x)), x tanh(log(1 + exp(x))) -> Mish(x); so without tanh, as
      x e / (e + 2), e = exp(x)^2 + 2 exp(x), in any arrangement

    The graph gets a newer opset if it needs one, and if all of its nodes mean the same there.
    """

    name = "recover-operators"
    works_on_all_dialects = True

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        known = Known(module)
        recoveries = [cls(known) for cls in (*normalization.PATTERNS, *activations.PATTERNS)]
        nodes = [op for op in module.walk() if isinstance(op, OnnxOp)]
        found = (each.found(op) for op in nodes for each in recoveries)
        needed = {one.since for one in found if one is not None}
        for opset in sorted(needed, reverse=True):
            if can_raise(module, opset):
                raise_opset(module, opset)
                known.choose_opsets(module)
                break
        return recoveries
