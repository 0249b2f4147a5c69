"""Reductions along axes."""

from __future__ import annotations

from lowerdeck.dialects.core.types import dims_of, element_type, i8, i16, i32, i64, rank_of, ui8
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.requantize import multiplier_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import require_type
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.tensorflow import REDUCTIONS, plain_reduction


@legalizes(*(name for name in REDUCTIONS if name not in ("MEAN", "SUM", "REDUCE_PROD")))
def legalize_reduction(builder: TfliteLegalizer) -> Results:
    """Extrema and truth values; integers as they are stored."""
    builder.require_equal_scales(0)
    return [plain_reduction(builder)]


@legalizes("SUM", "REDUCE_PROD")
def legalize_sum(builder: TfliteLegalizer) -> Results:
    """Sums and products of floats and plain integers."""
    if builder.is_quantized():
        builder.refuse(
            "quantized integers, for which the kernels do not agree", "floats", "dequantize first"
        )
    return [plain_reduction(builder)]


@legalizes("MEAN")
def legalize_mean(builder: TfliteLegalizer) -> Results:
    """
    The mean; of quantized integers the sum by a factor that has the number of elements in its
    multiplier.
    """
    if not builder.is_quantized():
        if element_type(builder.input(0)) in (i32, i64):
            return [_mean_of_integers(builder)]
        return [plain_reduction(builder)]
    x = builder.input(0)
    require_type(builder, x, i8, ui8, i16)
    keep = builder.flag("keep_dims")
    given = builder.require_ints(builder.input(1), "axes")
    axes = sorted({builder.axis(axis, rank_of(x)) for axis in given})
    count = product([dims_of(x)[axis] for axis in axes]).value
    if not count:
        builder.refuse("a mean of an open number of elements", "a number")
    total = TensorValue(builder, builder.cast(x, i32)).reduce("sum", axes, keep)
    own, q = builder.quantization(0), builder.result_quantization()
    total = total - count * own.zero
    multiplier, exponent = multiplier_of(own.scale / q.scale)
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    multiplier = (multiplier << shift) // count
    from lowerdeck.dialects.core.quantize import RequantizeOp
    from lowerdeck.passes.legalize.common.requantize import type_range

    low, high = type_range(builder.element())
    op = RequantizeOp(
        "double",
        total.value,
        builder.scalar(multiplier, i32),
        builder.scalar(exponent - shift, i32),
        zero=q.zero,
        low=low,
        high=high,
        to=builder.element(),
    )
    return [builder.add(op)]


def _mean_of_integers(builder: TfliteLegalizer):
    """The sum in 64 bits by the number of elements, toward zero."""
    from lowerdeck.dialects.core.elementwise import DivOp

    x = builder.input(0)
    keep = builder.flag("keep_dims")
    given = builder.require_ints(builder.input(1), "axes")
    axes = sorted({builder.axis(axis, rank_of(x)) for axis in given})
    total = TensorValue(builder, builder.cast(x, i64)).reduce("sum", axes, keep)
    count = builder.dims([product([dims_of(x)[axis] for axis in axes])], [])
    return builder.cast(builder.add(DivOp(total.value, count)), element_type(x))
