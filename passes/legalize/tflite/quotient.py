"""Quotients of bytes: fixed point with as many bits as the dividend leaves."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import element_type, i32, i64
from lowerdeck.passes.legalize.common import fixed_point as fixed
from lowerdeck.passes.legalize.common.integer_functions import bit_length, by_bits
from lowerdeck.passes.legalize.common.requantize import multiplier_of, rescaled, type_range
from lowerdeck.passes.legalize.common.tables import looked_up
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import as_f32, fused_limits, without_zero


def quotient(builder: TfliteLegalizer) -> SSAValue:
    """
    The dividend, shifted left as far as it goes, by the reciprocal of the divisor; then by the
    ratio of scales, with all shifts at once.
    """
    least, most = type_range(element_type(builder.input(1)))
    divisors = np.arange(least, most + 1) - builder.quantization(1).zero
    inverses, shifts = zip(*(fixed.reciprocal_of(abs(int(d))) for d in divisors), strict=True)
    y = builder.input(1)
    inverse = TensorValue(builder, looked_up(builder, y, np.array(inverses, np.int32)))
    shift = TensorValue(builder, looked_up(builder, y, np.array(shifts, np.int32)))
    x, divisor = without_zero(builder, 0), without_zero(builder, 1)
    x = divisor.lt(0).where(x * -1, x)
    # The leading sign bits but one: of a negative number those of its complement.
    size = x.lt(0).where(x * -1 - 1, x)
    bits = bit_length(size)
    room = by_bits(bits, [31 - k for k in range(32)])
    wide = (x.cast(i64) * by_bits(bits, [1 << (31 - k) for k in range(32)])).cast(i32)
    scales = [as_f32(builder.quantization(k).scale) for k in (0, 1)]
    q = builder.result_quantization()
    factor = as_f32(scales[0] / as_f32(scales[1] * as_f32(q.scale)))
    multiplier, exponent = multiplier_of(factor)
    power = (shift.cast(i64) + room) * -1 + exponent
    scaled = rescaled(wide, inverse)
    to, limits = builder.element(), fused_limits(builder)
    return rescaled(scaled, multiplier, power.cast(i32), to, zero=q.zero, limits=limits).value
