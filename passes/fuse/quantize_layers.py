"""`quantize-layers`: products with constant weights are computed from bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, YieldOp
from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    CastOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    RoundOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.names import named, value_names
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp, TransposeOp
from lowerdeck.dialects.core.types import f32, i1, i8, i32, rank_of, tensor, ui8
from lowerdeck.passes.fuse.layers import Layer, fingerprint, layers_of
from lowerdeck.passes.linear.rounding import MOST, as_bytes
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns
from lowerdeck.passes.machinery.options import CompileOptions, OptionError
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from lowerdeck.passes.machinery.values import Array, constant_values

SWITCHES = "lowerdeck.switches"
"""The name of the input that says of each layer whether it is quantized, for the search."""

_LEVELS = 255
"""Steps of a byte without a sign."""

_SMALLEST = 2.0**-100
"""The largest magnitude of a row that is quantized as if it were zeros."""


_LARGEST_BIAS = 1 << 30
"""In units of the sums."""

_MOVES = (ReshapeOp, TransposeOp, SliceOp)


@dataclass(frozen=True)
class Plan:
    """How a layer is quantized."""

    layer: Layer
    number: int
    range: LayerRange | None
    """None for rows with ranges of their own."""


@dataclass(frozen=True)
class Step:
    """(q - zero) * scale of bytes without signs."""

    scale: float
    zero: int

    @staticmethod
    def of(low: float, high: float) -> Step:
        """For the numbers from low to high, 0 among them, which is exact."""
        scale = float(np.float32((high - low) / _LEVELS))
        return Step(scale, min(max(round(-low / scale), 0), _LEVELS))


class QuantizeLayer(Pattern[Plan]):
    """f(x, w) -> f(dequantized(quantized(x)), dequantized(q_w))"""

    name = "quantize-layer"
    roots = (ConvOp, MatmulOp)

    def __init__(self, plans: Sequence[Plan], switches: SSAValue | None = None) -> None:
        self._plans: dict[Operation, Plan] = {plan.layer.op: plan for plan in plans}
        self._switches = switches

    def match(self, op: ConvOp | MatmulOp) -> Match[Plan] | None:
        plan = self._plans.get(op)
        if plan is None:
            return None
        found = plan.range
        how = "each row by its range" if found is None else f"from {found.low} to {found.high}"
        return Match((op,), how, plan)

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        plan, op = match.data, match.data.layer.op
        del self._plans[op]
        if self._switches is None:
            made = _quantized(plan)
            for each in made:
                rewriter.add(each)
            rewriter.replace(op, made[-1].results)
            return
        number = rewriter.add(SliceOp(self._switches, [plan.number], [1])).result
        is_on = rewriter.add(ReshapeOp(number, [])).result
        regions = [_region(_quantized(plan)), _region([op.clone()])]
        choice = IfOp(is_on, *regions, result_types=[op.result.type])
        rewriter.replace(op, rewriter.add(choice).results)


def _region(ops: Sequence[Operation]) -> Region:
    last = YieldOp(ops[-1].results)
    return Region(Block([*ops, last]))


def _quantized(plan: Plan) -> list[CoreOp]:
    """The ops that compute a layer from bytes, its result last."""
    made = _Ops()
    if plan.range is None:
        _by_rows(made, plan.layer)
    else:
        assert plan.range.low is not None
        assert plan.range.high is not None
        _by_range(made, plan.layer, Step.of(plan.range.low, plan.range.high))
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


def _by_range(made: _Ops, layer: Layer, step: Step) -> None:
    """The form that quantized models have, of which others make sums of bytes."""
    source, moves = _source(layer.input)
    x = made.add(MulOp(source, made.number(1 / step.scale)))
    x = made.add(RoundOp(x))
    if step.zero:
        x = made.add(AddOp(x, made.number(step.zero)))
    x = made.add(CastOp(made.limited(x, 0, _LEVELS, ui8), f32))
    if step.zero:
        x = made.add(SubOp(x, made.number(step.zero)))
    x = made.add(MulOp(x, made.number(step.scale)))
    for move in reversed(moves):
        x = made.add(move.with_operands([x, *move.operands[1:]]))
    op = layer.op
    axes = range(1, rank_of(op.weight)) if isinstance(op, ConvOp) else (0,)
    values, scale = as_bytes(layer.weight.array, axes)
    w = made.add(CastOp(made.add(ConstantOp.of(values)), f32))
    w = made.add(MulOp(w, made.add(ConstantOp.of(scale[0]))))
    bias = None if isinstance(op, MatmulOp) or op.bias is None else op.bias
    if bias is None:
        made.add(op.with_operands([x, w]))
        return
    unit = step.scale * scale.astype(np.float64).reshape(-1)
    made.add(op.with_operands([x, w, _rounded_bias(made, bias, unit)]))


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


def _by_rows(made: _Ops, layer: Layer) -> None:
    """Symmetric: the largest magnitude of a row is 127."""
    x, rank = layer.input, rank_of(layer.input)
    largest = made.add(ReduceOp(ReduceKind.MAX, made.add(AbsOp(x)), [rank - 1], keep_dims=True))
    largest = made.add(MaxOp(largest, made.number(_SMALLEST)))
    ratio = made.add(DivOp(made.number(MOST), largest))
    rounded = made.add(RoundOp(made.add(MulOp(x, ratio))))
    q = made.limited(rounded, -MOST, MOST, i8)
    values, scale = as_bytes(layer.weight.array, (0,))
    total = made.add(MatmulOp(q, made.add(ConstantOp.of(values)), accumulator=i32))
    total = made.add(MulOp(made.add(CastOp(total, f32)), made.add(ConstantOp.of(scale[0]))))
    made.add(MulOp(total, made.add(MulOp(largest, made.number(1 / MOST)))))


def plans_of(layers: Sequence[Layer], options: CompileOptions) -> list[Plan]:
    """How each layer that is to be quantized is; OptionError for ranges of another model."""
    ranges = options.ranges
    if ranges is None:
        dynamic = enumerate(layers) if options.precision == "int8" else ()
        return [Plan(layer, number, None) for number, layer in dynamic if layer.is_dynamic]
    if problem := _other_model(layers, ranges):
        raise OptionError([("ranges", problem)])
    plans: list[Plan] = []
    for number, (layer, found) in enumerate(zip(layers, ranges.layers, strict=True)):
        if options.precision == "auto" and found.precision == "f32":
            continue
        if layer.is_dynamic:
            plans.append(Plan(layer, number, None))
        elif found.low is not None:
            plans.append(Plan(layer, number, found))
    return plans


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


def _add_switches(module: ModuleOp, count: int) -> SSAValue | None:
    """One more input of the main function: which of so many layers are quantized."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    main = next((each for each in functions if each.sym_name.data == "main"), None)
    if main is None:
        return None
    block, type_ = main.body.block, tensor(i1, [count])
    names = value_names(main.arg_attrs, len(block.args))
    switches = block.insert_arg(type_, len(block.args))
    main.properties["arg_attrs"] = named([*names, SWITCHES])
    main.update_function_type()
    return switches


class QuantizeLayersPass(ModulePass):
    """
    With the bytes q of a constant w and a scale a channel, s, the largest magnitude of which is
    127, and a scale t and zero point z from a range of x, which `--ranges` gives, or from each row:

    - conv(x, w, b) -> conv((cast(quantized(x)) - z) * t, cast(q) * s, b)
    - x @ w -> (cast(quantized(x)) - z) * t @ (cast(q) * s)
      [quantized(x) = cast(clip(round(x / t) + z, 0, 255))]
    - x @ w -> cast(cast(clip(round(x / r))) @ q) * s * r
      [r the largest magnitude of each row of x / 127; the model has layer normalizations or
       attention, so that rows are tokens]

    In f32, with `--precision int8`, or `auto` where the ranges say so. `fuse-quantized` and
    `fold-quantize`, which come next, compute these products in integers. For the search of
    `lowerdeck quantize` an input says of each layer whether it is quantized.
    """

    name = "quantize-layers"
    optional = True
    rounds_numbers = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        if options.precision not in ("int8", "auto"):
            return
        layers = layers_of(op)
        plans = plans_of(layers, options)
        switches = _add_switches(op, len(layers)) if options.probe == "switch" else None
        pattern = QuantizeLayer(plans, switches)
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
