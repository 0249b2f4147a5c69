"""`simplify-onnx`: a graph of the onnx dialect with as few nodes as give the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.exporters.onnx.simplify import identities, linear
from lowerdeck.exporters.onnx.simplify.constants import FoldKnown, FoldNode, FoldTarget
from lowerdeck.exporters.onnx.simplify.known import Known
from lowerdeck.passes.machinery.driver import Pattern, PatternPass


class SimplifyOnnxPass(PatternPass):
    """
    Fewer nodes of the same operators; what nothing simplifies stays what it was, with its name.

    - f(constants) -> constants [not much larger; integer products keep what is around them]
    - f(shapes) -> constants [all elements are known]
    - reshape(x, shape), expand(x, shape) -> with a constant for shape [its sizes are known, or
      those of x]
    - f(x) -> x [Identity, Dropout, and movements and casts that change nothing]
    - transpose(transpose(x)), unsqueeze(unsqueeze(x)) -> one
    - reshape(g(x), shape) -> reshape(x, shape) [g: Reshape, Squeeze, Unsqueeze, Flatten]
    - affine(conv(x, w, b)) -> conv(x, w', b') [affine: BatchNormalization, or Mul, Add, Sub, Div
      with a constant a channel; conv: Conv, ConvTranspose]
    - conv(pad(x)) -> conv(x) with pads
    - matmul(a, b) + row -> gemm(a, b, row) [matrices]
    - gemm(transpose(a), b, c) -> gemm(a, b, c) with transA; so for b
    - rnn(x, ..., zeros) -> rnn(x, ...) [LSTM, GRU, RNN]

    Shapes are those that legalizing a copy finds. Operators that cannot be legalized stay, too.
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
