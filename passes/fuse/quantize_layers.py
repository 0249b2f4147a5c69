"""`quantize-layers`: products with constant weights are computed from bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    CastOp,
    DivOp,
    FloorOp,
    MaxOp,
    MinOp,
    MulOp,
    RoundOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from lowerdeck.dialects.core.types import f32, i8, i32, rank_of, ui8
from lowerdeck.dialects.records import record
from lowerdeck.passes.fuse.layers import PRODUCTS, Layer, Product, fingerprint, layers_of
from lowerdeck.passes.linear.rounding import LEAST, MOST, as_bytes
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns
from lowerdeck.passes.machinery.options import CompileOptions, OptionError
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges, Step
from lowerdeck.passes.machinery.values import Array, constant_values

_BYTE = 255
"""The largest number of one."""

_LARGEST_BIAS = 1 << 30
"""In units of the sums."""

_MOVES = (ReshapeOp, TransposeOp, SliceOp)


@record
class Plan:
    """How a layer is quantized."""

    layer: Layer
    number: int
    range: LayerRange | None
    """None for rows with ranges of their own."""
    factors: tuple[float, ...] | None = None


class QuantizeLayer(Pattern[Plan]):
    """f(x, w) -> f(dequantized(quantized(x)), dequantized(q_w))"""

    name = "quantize-layer"
    roots = PRODUCTS

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans: dict[Operation, Plan] = {plan.layer.op: plan for plan in plans}

    def match(self, op: Product) -> Match[Plan] | None:
        plan = self._plans.get(op)
        if plan is None:
            return None
        found = plan.range
        how = "each row by its range" if found is None else f"from {found.low} to {found.high}"
        if plan.factors is not None:
            how += " with factors of channels"
        if found is not None and found.bytes > 1:
            how += f" in {found.bytes} bytes"
        return Match((op,), how, plan)

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        plan, op = match.data, match.data.layer.op
        del self._plans[op]
        made = _quantized(plan)
        for each in made:
            rewriter.add(each)
        rewriter.replace(op, made[-1].results)


def _quantized(plan: Plan) -> list[CoreOp]:
    """The ops that compute a layer from bytes, its result last."""
    made = _Ops()
    step = None if plan.range is None else plan.range.step
    factors = _with_factors(made, plan)
    if step is None:
        _by_rows(made, factors)
    else:
        _by_range(made, plan.layer, factors, step)
    return made.ops


class _Ops:
    """Ops one after the other, which stand nowhere yet."""

    def __init__(self) -> None:
        self.ops: list[CoreOp] = []

    def add(self, op: CoreOp) -> SSAValue:
        """The result of one more op."""
        self.ops.append(op)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        """An f32."""
        return self.add(ConstantOp.of(np.array(value, np.float32)))

    def limited(self, value: SSAValue, low: int, high: int, to: Attribute) -> SSAValue:
        """Whole numbers as integers, at least low and at most high."""
        value = self.add(MinOp(value, self.number(high)))
        return self.add(CastOp(self.add(MaxOp(value, self.number(low))), to))


@record
class _Factors:
    """What a layer multiplies."""

    input: SSAValue
    weights: Array


def _with_factors(made: _Ops, plan: Plan) -> _Factors:
    """x / f and f * w, for each channel"""
    layer, array = plan.layer, plan.layer.weight.array
    axis = layer.input_axis
    if plan.factors is None or axis is None:
        return _Factors(layer.input, array)
    inverse = np.reciprocal(np.array(plan.factors, np.float32))
    if not isinstance(layer.op, MatmulOp):
        inverse = inverse.reshape(-1, *[1] * (array.ndim - 2))
    x = made.add(MulOp(layer.input, made.add(ConstantOp.of(inverse))))
    return _Factors(x, _times(array, plan.factors, axis))


def _by_range(made: _Ops, layer: Layer, factors: _Factors, step: Step) -> None:
    """The form that quantized models have, of which others make sums of bytes."""
    op, bias = layer.op, layer.op.operands[2:]
    if step.largest > _BYTE:
        high, low = _two_bytes(made, factors.input, step)
        w, _ = _weights(made, layer, factors)
        upper = made.add(op.with_operands([high, w, *bias]))
        made.add(AddOp(upper, made.add(op.with_operands([low, w]))))
        return
    x = _one_byte(made, factors.input, step)
    w, scale = _weights(made, layer, factors)
    if bias:
        unit = step.scale * scale.astype(np.float64).reshape(-1)
        bias = [_rounded_bias(made, bias[0], unit)]
    made.add(op.with_operands([x, w, *bias]))


def _weights(made: _Ops, layer: Layer, factors: _Factors) -> tuple[SSAValue, Array]:
    """cast(q) * s, and s"""
    values, scale = as_bytes(factors.weights, layer.summed_axes)
    w = made.add(CastOp(made.add(ConstantOp.of(values)), f32))
    return made.add(MulOp(w, made.add(ConstantOp.of(scale[0])))), scale


def _one_byte(made: _Ops, value: SSAValue, step: Step) -> SSAValue:
    """(cast(q) - z) * t"""
    source, moves = _source(value)
    q = made.add(CastOp(_parts_in_bytes(made, source, step), f32))
    x = _dequantized(made, q, step.zero, step.scale)
    for move in reversed(moves):
        x = made.add(move.with_operands([x, *move.operands[1:]]))
    return x


def _parts_in_bytes(made: _Ops, value: SSAValue, step: Step) -> SSAValue:
    """A value in bytes; what is put together is so in bytes, where nothing else reads it."""
    concat = value.owner
    if isinstance(concat, ConcatOp) and value.has_one_use():
        parts = [_parts_in_bytes(made, part, step) for part in concat.inputs]
        return made.add(ConcatOp(parts, concat.axis.data))
    return made.limited(_in_steps(made, value, step), 0, _BYTE, ui8)


def _two_bytes(made: _Ops, value: SSAValue, step: Step) -> tuple[SSAValue, SSAValue]:
    """(cast(high) - z / 256) * 256 t and cast(low) * t"""
    q = _in_steps(made, value, step)
    q = made.add(MaxOp(made.add(MinOp(q, made.number(step.largest))), made.number(0)))
    upper = made.add(FloorOp(made.add(MulOp(q, made.number(2.0**-8)))))
    lower = made.add(SubOp(q, made.add(MulOp(upper, made.number(256)))))
    high, low = (made.add(CastOp(made.add(CastOp(each, ui8)), f32)) for each in (upper, lower))
    return (
        _dequantized(made, high, step.zero // 256, step.scale * 256),
        _dequantized(made, low, 0, step.scale),
    )


def _in_steps(made: _Ops, x: SSAValue, step: Step) -> SSAValue:
    """round(x / t) + z"""
    x = made.add(RoundOp(made.add(MulOp(x, made.number(1 / step.scale)))))
    return made.add(AddOp(x, made.number(step.zero))) if step.zero else x


def _dequantized(made: _Ops, q: SSAValue, zero: int, scale: float) -> SSAValue:
    if zero:
        q = made.add(SubOp(q, made.number(zero)))
    return made.add(MulOp(q, made.number(scale)))


def _source(value: SSAValue) -> tuple[SSAValue, list[CoreOp]]:
    """
    What ops that nothing else reads select the elements of a value from, and these, last to first:
    bytes are selected in the same way.
    """
    moves: list[CoreOp] = []
    while (op := value.owner) and isinstance(op, (PoolOp, *_MOVES)) and value.has_one_use():
        if isinstance(op, PoolOp) and op.kind.data is not PoolKind.MAX:
            break
        moves.append(op)
        value = op.operands[0]
    return value, moves


def _rounded_bias(made: _Ops, bias: SSAValue, unit: Array) -> SSAValue:
    """A constant bias as a multiple of the scale of sums, if 32 bits hold the factor."""
    values = constant_values(bias)
    if values is None:
        return bias
    steps = np.rint(values[0] / unit)
    if not (np.abs(steps) < _LARGEST_BIAS).all():
        return bias
    return made.add(ConstantOp.of((steps * unit).astype(np.float32)))


def _by_rows(made: _Ops, factors: _Factors) -> None:
    """Symmetric: the largest magnitude of a row is 127."""
    x, rank = factors.input, rank_of(factors.input)
    largest = made.add(ReduceOp(ReduceKind.MAX, made.add(AbsOp(x)), [rank - 1], keep_dims=True))
    largest = made.add(MaxOp(largest, made.number(LEAST)))
    ratio = made.add(DivOp(made.number(MOST), largest))
    rounded = made.add(RoundOp(made.add(MulOp(x, ratio))))
    q = made.limited(rounded, -MOST, MOST, i8)
    values, scale = as_bytes(factors.weights, (0,))
    total = made.add(MatmulOp(q, made.add(ConstantOp.of(values)), accumulator=i32))
    total = made.add(MulOp(made.add(CastOp(total, f32)), made.add(ConstantOp.of(scale[0]))))
    made.add(MulOp(total, made.add(MulOp(largest, made.number(1 / MOST)))))


def plans_of(layers: Sequence[Layer], options: CompileOptions) -> list[Plan]:
    """How each layer that is to be quantized is; OptionError for ranges of another model."""
    ranges = options.ranges
    if ranges is None:
        found = [Plan(layer, k, None) for k, layer in enumerate(layers) if layer.is_dynamic]
        if rest := len(layers) - len(found):
            _tell_of_ranges(rest, has_others=bool(found), options=options)
        return found
    if problem := _other_model(layers, ranges) or _other_factors(layers, ranges):
        raise OptionError([("ranges", problem)])
    plans: list[Plan] = []
    for number, (layer, found) in enumerate(zip(layers, ranges.layers, strict=True)):
        if options.precision == "auto" and found.precision == "f32":
            continue
        if layer.is_dynamic:
            plans.append(Plan(layer, number, None, found.factors))
        elif found.low is not None:
            plans.append(Plan(layer, number, found, found.factors))
    return plans


def _tell_of_ranges(count: int, *, has_others: bool, options: CompileOptions) -> None:
    """OptionError if no layer can be quantized without ranges, a warning if some can."""
    what = "1 layer needs" if count == 1 else f"{count} layers need"
    text = f"{what} ranges, which `lowerdeck quantize` finds and --ranges gives"
    if not has_others:
        raise OptionError([("precision", text)])
    options.warn(f"precision: {text}; until then, they stay in f32")


def _other_factors(layers: Sequence[Layer], ranges: Ranges) -> str | None:
    """The layer that does not have as many input channels as there are factors."""
    for number, (layer, found) in enumerate(zip(layers, ranges.layers, strict=True)):
        if found.factors is None:
            continue
        axis = layer.input_axis
        count = None if axis is None else layer.weight.array.shape[axis]
        if axis is None or count != len(found.factors):
            has = "groups of channels" if count is None else f"{count} channels"
            return f"layer {number} ({found.node}) has {len(found.factors)} factors for {has}"
        if not np.isfinite(_times(layer.weight.array, found.factors, axis)).all():
            return f"layer {number} ({found.node}) has factors that make infinities of weights"
    return None


def _times(array: Array, factors: Sequence[float], axis: int) -> Array:
    """Weights times the factors of their input channels."""
    each = np.array(factors, np.float32).reshape(-1, *[1] * (array.ndim - 1 - axis))
    with np.errstate(over="ignore"):
        return array * each


def _other_model(layers: Sequence[Layer], ranges: Ranges) -> str | None:
    """How a model differs from the one that ranges are for."""
    own = f"it has {len(layers)} layers" if len(layers) != len(ranges.layers) else ""
    if not own and fingerprint(layers) == ranges.model:
        return None
    where = next(
        (
            f"; layer {number} is {', '.join(source_names(layer.op)) or layer.op.name}"
            f" here, and {found.node} there"
            for number, (layer, found) in enumerate(zip(layers, ranges.layers, strict=False))
            if ", ".join(source_names(layer.op)) != found.node
        ),
        "",
    )
    own = own or "its weights are others"
    return (
        f"they are those of another model, or of other options: {own}, the ranges are of "
        f"{len(ranges.layers)} layers{where}; run `lowerdeck quantize` on this model"
    )


class QuantizeLayersPass(ModulePass):
    """
    With the bytes q of a constant w and a scale a channel, s, the largest magnitude of which is
    127, and a scale t and zero point z from a range of x, which `--ranges` gives, or from each row:

    - conv(x, w, b) -> conv((cast(quantized(x)) - z) * t, cast(q) * s, b)
      [or a transposed one whose steps are its kernel, without padding]
    - x @ w -> (cast(quantized(x)) - z) * t @ (cast(q) * s)
      [quantized(x) = cast(clip(round(x / t) + z, 0, 255)); of a concatenation, reshape, transpose,
       slice or maximum of windows that nothing else reads it is that of the quantized parts]
    - f(x, w) -> f((cast(high) - z / 256) * 256 t, cast(q) * s) + f(cast(low) * t, cast(q) * s)
      [high and low bytes of clip(round(x / t) + z, 0, 65535), where the ranges say two bytes]
    - x @ w -> cast(cast(clip(round(x / r))) @ q) * s * r
      [r the largest magnitude of each row of x / 127; the model has layer normalizations or
       attention, so that rows are tokens, or the product is in a loop]
    - f(x, w) -> f(x / f, f * w), then as above, where the ranges give factors f of input channels

    In f32, with `--precision int8`, or `auto` where the ranges say so. `fuse-quantized` and
    `fold-quantize`, which come next, compute these products in integers.
    """

    name = "quantize-layers"
    optional = True
    rounds_numbers = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        if options.precision not in ("int8", "auto"):
            return
        layers = layers_of(op)
        pattern = QuantizeLayer(plans_of(layers, options))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
