"""Elements combined where tensors say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ScatterElementsOp
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i64, is_float, numpy_dtype
from lowerdeck.passes.legalize.common.promotion import wide_type
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

REDUCTIONS: Mapping[str, str] = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}
"""PyTorch's names of combinations."""


def scattered(
    builder: Legalizer,
    x: SSAValue,
    index: SSAValue,
    source: SSAValue,
    axis: int,
    kind: str,
    *,
    include: bool,
) -> SSAValue:
    """
    Elements at places along an axis combined with what is there, or only with each other, as
    a kind says (sum, prod, amax, amin, mean); they are set if it is empty. Half precision is
    combined in f32.
    """
    element, wide = element_type(x), wide_type(element_type(x))
    if kind in ("sum", "prod", "mean") and wide != element:
        x, source = builder.cast(x, wide), builder.cast(source, wide)
        found = scattered(builder, x, index, source, axis, kind, include=include)
        return builder.cast(found, element)
    if include and kind != "mean":
        reduction = REDUCTIONS[kind] if kind else "none"
        return builder.add(ScatterElementsOp(x, index, source, axis, reduction))
    one = builder.broadcast(builder.scalar(1, i64), dims_of(index))
    zeros = builder.broadcast(builder.scalar(0, i64), dims_of(x))
    count = TensorValue(builder, builder.add(ScatterElementsOp(zeros, index, one, axis, "add")))
    start = x
    if not include:
        element = element_type(x)
        dtype = numpy_dtype(element)
        if is_float(element):
            low, high = -np.inf, np.inf
        else:
            low, high = (0, 1) if element == i1 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[kind]
        start = builder.select(count.gt(0).value, builder.scalar(neutral, x), x)
    reduction = "add" if kind == "mean" else REDUCTIONS[kind]
    found = TensorValue(
        builder, builder.add(ScatterElementsOp(start, index, source, axis, reduction))
    )
    if kind != "mean":
        return found.value
    total = (count + int(include)).maximum(1).cast(found.element)
    if not is_float(found.element):
        return found.quotient(total).value
    return (found / total).value
