"""What quantized operators share: limits of fused activations, factors, integers without zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import element_type, i32
from lowerdeck.dialects.tflite.quantization import Quantization
from lowerdeck.passes.legalize.common.requantize import away, requantized, type_range
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer

_BOUNDS = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}


def limits_of(
    builder: TfliteLegalizer, kind: str, q: Quantization, element: Attribute
) -> tuple[int, int]:
    """The least and the greatest integer that an activation leaves."""
    if kind not in _BOUNDS:
        builder.refuse(f"the activation {kind} of integers", ", ".join(_BOUNDS))
    least, most = type_range(element)
    low, high = _BOUNDS[kind]
    if low is not None:
        least = max(least, quantized(low, q))
    if high is not None:
        most = min(most, quantized(high, q))
    return min(least, most), most


def quantized(number: float, q: Quantization) -> int:
    """The integer of a real number, which f32 computes."""
    with np.errstate(all="ignore"):
        steps = np.float32(number) / np.float32(q.scale)
    if not np.isfinite(steps):
        refuse(f"a scale of {q.scale}", f"a step of which f32 can tell how many are {number}")
    return q.zero + int(away(steps))


def fused_limits(builder: TfliteLegalizer) -> tuple[int, int]:
    """The limits of the first result with the fused activation."""
    q = builder.result_quantization()
    return limits_of(builder, builder.activation(), q, builder.element())


def without_zero(builder: TfliteLegalizer, index: int) -> TensorValue:
    """The integers of an input less its zero point, in 32 bits."""
    x = TensorValue(builder, builder.cast(builder.input(index), i32))
    zero = builder.quantization(index).zero
    return x - zero if zero else x


def channel_scales(builder: TfliteLegalizer, index: int, count: int) -> list[float]:
    """The scales of an input for its `count` channels."""
    scales = builder.quantization(index).scales
    if len(scales) not in (1, count) or count > 1 << 24:
        builder.refuse(f"{len(scales)} scales of {count} channels", "one for each of 2^24 at most")
    return [*scales] * (1 if len(scales) == count else count)


def to_result(
    builder: TfliteLegalizer,
    x: SSAValue,
    factors: Sequence[float] | float,
    *,
    shape: Sequence[int] = (),
    rounding: str = "",
    limits: tuple[int, int] | None = None,
) -> SSAValue:
    """Sums in the scale of the first result, within the limits of its activation."""
    return requantized(
        builder,
        x,
        factors,
        builder.element(),
        zero=builder.result_quantization().zero,
        limits=fused_limits(builder) if limits is None else limits,
        shape=shape,
        rounding=rounding,
    )


def as_f32(value: float) -> float:
    """A number rounded to f32."""
    return float(np.float32(value))


def require_type(builder: TfliteLegalizer, value: SSAValue, *elements: Attribute) -> None:
    """Refuse a value of another element type."""
    if element_type(value) not in elements:
        names = ", ".join(map(str, elements))
        builder.refuse(f"{builder.op_type} of {element_type(value)}", names)
