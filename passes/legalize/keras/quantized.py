"""
Layers with quantized variables.

The rows of an input become bytes when the model runs, each by its largest element, if the
configuration has a quantizer for activations; the sums of products are integers, and divided by
both scales. Without one, and with scales for groups of rows, the variables become floats.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i8, i32
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

_EPSILON = 1e-7


def _steps(builder: KerasLegalizer) -> tuple[int, int] | None:
    """The least and the greatest integer of activations, by the largest magnitude; or None."""
    match builder.config("quantization_config"):
        case None:
            return (-127, 127) if builder.policy.mode == "int8" else None
        case {"config": {"activation_quantizer": {"class_name": "AbsMaxQuantizer"} as quantizer}}:
            match cast("dict[str, Any]", quantizer).get("config"):
                case {"value_range": [int(low), int(high)]}:
                    return low, high
                case _:
                    return -127, 127
        case {"config": {**settings}} if settings.get("activation_quantizer") is None:
            return None
        case given:
            builder.refuse(f"the quantization {given}", "AbsMaxQuantizer")


def _bytes(
    x: TensorValue, axes: list[int], steps: tuple[int, int]
) -> tuple[TensorValue, TensorValue]:
    """Numbers as integers, and the factors with which they were multiplied."""
    scale = steps[1] / (x.abs().reduce("max", axes, True) + _EPSILON)
    return (x * scale).round().clip(*steps).cast(i8), scale


def _nibbles(builder: KerasLegalizer, name: str, columns: int) -> NDArray[np.int8]:
    """Integers of four bits, two of a row to a byte, the low ones first."""
    packed = builder.constant(builder.require_weight(name))
    if packed is None or packed.dtype != np.int8 or packed.ndim != 2:
        builder.refuse(f"'{name}' of four bits", "bytes")
    low, high = (packed << 4).astype(np.int8) >> 4, packed >> 4
    return np.stack([low, high], -1).reshape(packed.shape[0], -1)[:, :columns]


def _table(builder: KerasLegalizer, name: str, columns: int) -> TensorValue:
    """The integers of a variable."""
    if builder.policy.mode == "int4":
        return TensorValue(builder, np.ascontiguousarray(_nibbles(builder, name, columns)))
    return TensorValue(builder, builder.require_weight(name))


def quantized_product(builder: KerasLegalizer, units: int) -> SSAValue:
    """The product of the last dimension and a kernel of integers."""
    x = builder.x()
    kernel = _table(builder, "kernel", units)
    scale = TensorValue.of(builder, builder.require_weight("kernel_scale"))
    rows = x.reshape([product(x.dims[:-1]), x.dims[-1]])
    steps = _steps(builder)
    if builder.policy.mode == "int4" and builder.policy.block > 0:
        groups = TensorValue.of(builder, builder.require_weight("g_idx")).cast(i32).value
        zero = TensorValue.of(builder, builder.require_weight("kernel_zero")).cast(x.element)
        scales, zeros = (builder.add(GatherOp(part.value, groups, 0)) for part in (scale, zero))
        real = (kernel.cast(x.element) - TensorValue.of(builder, zeros)) * TensorValue(
            builder, scales
        )
        result = TensorValue(builder, builder.add(MatmulOp(rows.value, real.value)))
    elif steps is None:
        real = kernel.cast(x.element)
        result = TensorValue(builder, builder.add(MatmulOp(rows.value, real.value))) / scale
    else:
        small, factor = _bytes(rows, [1], steps)
        op = MatmulOp(small.value, kernel.value, accumulator=i32)
        result = TensorValue(builder, builder.add(op)).cast(x.element) / (scale * factor)
    return result.reshape([*x.dims[:-1], units]).value


def quantized_einsum(builder: KerasLegalizer, equation: str) -> SSAValue:
    """Sums of products by labels with a kernel of integers."""
    x, kernel = builder.x(), TensorValue(builder, builder.require_weight("kernel"))
    scale = TensorValue.of(builder, builder.require_weight("kernel_scale"))
    left, _, wanted = equation.replace(" ", "").partition("->")
    own, others = left.split(",")
    if "." in equation:
        builder.refuse(f"the equation {equation} of quantized numbers", "a label a dimension")
    steps = _steps(builder)
    if steps is None:
        real = kernel.cast(x.element)
        return (
            TensorValue(builder, einsum(builder, equation, [x.value, real.value])) / scale
        ).value
    axes = [k for k, label in enumerate(own) if label in others and label not in wanted]
    small, factor = _bytes(x, axes, steps)
    # Bytes of a sum that i32 holds are exact in it.
    wide = [small.cast(i32).value, kernel.cast(i32).value]
    total = TensorValue(builder, einsum(builder, equation, wide)).cast(x.element)
    order = [own.index(label) for label in wanted if label in own]
    kept = [k for k in range(len(own)) if k not in order]
    dims = iter([dims_of(factor.value)[k] for k in order])
    spread = factor.transpose([*order, *kept])
    final = [next(dims) if label in own else Expr.const(1) for label in wanted]
    return (total / (spread.reshape(final) * scale)).value


def quantized_rows(builder: KerasLegalizer, indices: SSAValue) -> SSAValue:
    """Rows of a table of integers, each with a scale or with several."""
    columns = builder.integer("output_dim")
    table = _table(builder, "embeddings", columns)
    element = builder.element
    assert element is not None
    rows = TensorValue(builder, builder.add(GatherOp(table.value, indices, 0))).cast(element)
    scale = TensorValue(
        builder, builder.add(GatherOp(builder.require_weight("embeddings_scale"), indices, 0))
    )
    if builder.policy.mode == "int8" or builder.policy.block <= 0:
        return (rows / scale.reshape([*scale.dims, 1])).value
    zero = builder.add(GatherOp(builder.require_weight("embeddings_zero"), indices, 0))
    groups = TensorValue.of(builder, builder.require_weight("g_idx")).cast(i32).value
    axis = len(rows.dims) - 1
    scales, zeros = (
        TensorValue(builder, builder.add(GatherOp(part, groups, axis)))
        for part in (scale.value, zero)
    )
    return ((rows - zeros.cast(element)) * scales).value
