"""Reductions along axes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp
from lowerdeck.dialects.core.types import dims_of, element_type, i8, i16, i32, i64, ui8
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.common.requantize import multiplier_of, reduced, rescaled, type_range
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import require_type, to_result, without_zero
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.tensorflow import REDUCTIONS, plain_reduction, reduced_axes


@legalizes(*(name for name in REDUCTIONS if name not in ("MEAN", "SUM", "REDUCE_PROD")))
def legalize_reduction(builder: TfliteLegalizer) -> Results:
    """Extrema and truth values; integers as they are stored."""
    return [plain_reduction(builder)]


@legalizes("SUM")
def legalize_sum(builder: TfliteLegalizer) -> Results:
    """
    The sum; of quantized integers in the scale of the result. (TensorFlow Lite's reference kernel
    reads signed bytes as unsigned ones; that for microcontrollers does not.)
    """
    if not builder.is_quantized():
        return [plain_reduction(builder)]
    total, _ = _total(builder)
    factor = builder.quantization(0).scale / builder.result_quantization().scale
    return [to_result(builder, total.value, factor, limits=type_range(builder.element()))]


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
    total, count = _total(builder)
    own, q = builder.quantization(0), builder.result_quantization()
    multiplier, exponent = multiplier_of(own.scale / q.scale)
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    multiplier = (multiplier << shift) // count
    return rescaled(total, multiplier, exponent - shift, builder.element(), zero=q.zero)


def _total(builder: TfliteLegalizer) -> tuple[TensorValue, int]:
    """The sums of quantized integers less their zero points, and of how many each is."""
    x = builder.input(0)
    require_type(builder, x, i8, ui8, i16)
    axes = reduced_axes(builder)
    count = product([dims_of(x)[axis] for axis in axes]).value
    if not count:
        builder.refuse("an open number of elements, or none", "a number")
    keep = builder.flag("keep_dims")
    total = TensorValue(builder, builder.cast(x, i32)).reduce("sum", axes, keep)
    return total - count * builder.quantization(0).zero, count


@legalizes("REDUCE_PROD")
def legalize_product(builder: TfliteLegalizer) -> Results:
    """
    The product; of quantized integers from the first on, with a root of the result's scale taken
    away at each step.
    """
    if not builder.is_quantized():
        return [plain_reduction(builder)]
    x = without_zero(builder, 0)
    require_type(builder, builder.input(0), i8, i16)
    keep, axes = builder.flag("keep_dims"), reduced_axes(builder)
    kept = [k for k in range(len(x.dims)) if k not in axes]
    count = product([x.dims[axis] for axis in axes]).value
    if not count:
        builder.refuse("an open number of elements, or none", "a number")
    dims = [x.dims[k] for k in kept]
    factors = x.transpose([*axes, *kept]).reshape([count, *dims])
    q, to = builder.result_quantization(), builder.element()
    multiplier, exponent = multiplier_of(builder.quantization(0).scale / q.scale ** (1 / count))
    multiplier, shift = reduced(multiplier), 15 - exponent
    if not 1 <= shift <= 46:
        builder.refuse(f"a factor of about 2^{exponent}", "one from 2^-31 to 2^14")

    def scaled(x: TensorValue) -> TensorValue:
        """In the next scale; what is too large wraps around, as in the kernel."""
        return ((x * multiplier + (1 << (shift - 1))) // (1 << shift)).cast(i32)

    def step(inner: TfliteLegalizer, k: Expr, state: State) -> tuple[State, State]:
        factor = TensorValue(inner, factors.value).pick(0, k + 1)
        return (scaled(state[0].cast(i64) * factor.cast(i64)),), ()

    first = factors.pick(0, 0).value
    (total,), _ = run_steps(builder, Expr.const(count - 1), [first], step)
    last = scaled(TensorValue(builder, total).cast(i64)) + q.zero
    result = last.clip(*type_range(to)).cast(to).value
    final = [Expr.const(1) if k in axes else dim for k, dim in enumerate(x.dims)] if keep else dims
    return [builder.reshape(result, final)]


def _mean_of_integers(builder: TfliteLegalizer) -> SSAValue:
    """The sum in 64 bits by the number of elements, toward zero."""
    x = builder.input(0)
    keep = builder.flag("keep_dims")
    axes = reduced_axes(builder)
    total = TensorValue(builder, builder.cast(x, i64)).reduce("sum", axes, keep)
    count = builder.dims([product([dims_of(x)[axis] for axis in axes])], [])
    return builder.cast(builder.add(DivOp(total.value, count)), element_type(x))
