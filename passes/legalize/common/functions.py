"""Functions of one float, by the names that they have in most frameworks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.passes.legalize.common.special import apply, digamma, expm1, lgamma, log1p
from lowerdeck.passes.legalize.tensor_value import TensorValue

FUNCTIONS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "exp": lambda x: x.exp(),
    "expm1": expm1,
    "log": lambda x: x.log(),
    "log2": lambda x: x.log() * (1 / math.log(2)),
    "log10": lambda x: x.log() * (1 / math.log(10)),
    "log1p": log1p,
    "sqrt": lambda x: apply(core.SqrtOp, x),
    "rsqrt": lambda x: 1 / apply(core.SqrtOp, x),
    "reciprocal": lambda x: 1 / x,
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tan": lambda x: apply(core.TanOp, x),
    "asin": lambda x: apply(core.AsinOp, x),
    "acos": lambda x: apply(core.AcosOp, x),
    "atan": lambda x: apply(core.AtanOp, x),
    "sinh": lambda x: apply(core.SinhOp, x),
    "cosh": lambda x: apply(core.CoshOp, x),
    "tanh": lambda x: apply(core.TanhOp, x),
    "asinh": lambda x: apply(core.AsinhOp, x),
    "acosh": lambda x: apply(core.AcoshOp, x),
    "atanh": lambda x: apply(core.AtanhOp, x),
    "erf": lambda x: apply(core.ErfOp, x),
    "lgamma": lgamma,
    "digamma": digamma,
    "sigmoid": lambda x: apply(core.SigmoidOp, x),
    "silu": lambda x: x * apply(core.SigmoidOp, x),
}
"""Of tensors in at least single precision."""
