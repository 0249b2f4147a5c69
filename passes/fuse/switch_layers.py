"""`switch-layers`: inputs say which layers are quantized, and how, for the search of a budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    CastOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    RoundOp,
    SelectOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import ReduceKind
from lowerdeck.dialects.core.names import named, value_names
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import f32, i1, rank_of, tensor
from lowerdeck.passes.fuse.layers import PRODUCTS, Layer, Product, layers_of
from lowerdeck.passes.linear.rounding import LEAST, MOST, as_bytes
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

SWITCHES = "lowerdeck.switches"
"""The input that says of each layer whether it is quantized: i1, one a layer."""

STEPS = "lowerdeck.steps"
"""The input with the scale, the zero point and the largest number of each layer: f32 [n, 3]."""


class SwitchLayer(Pattern[int]):
    """f(x, w) -> f(on ? rounded(x) : x, on ? cast(q) * s : w)"""

    name = "switch-layer"
    roots = PRODUCTS

    def __init__(self, layers: Sequence[Layer], switches: SSAValue, steps: SSAValue) -> None:
        self._layers: dict[Operation, tuple[int, Layer]] = {
            layer.op: (number, layer) for number, layer in enumerate(layers)
        }
        self._switches = switches
        self._steps = steps

    def match(self, op: Product) -> Match[int] | None:
        found = self._layers.get(op)
        return None if found is None else Match((op,), f"layer {found[0]}", found[0])

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        number, layer = self._layers.pop(match.root)
        is_on = _element(self._switches, [number], rewriter)
        if layer.is_dynamic:
            x = _rounded_rows(layer.input, rewriter)
        else:
            steps = [_element(self._steps, [number, k], rewriter) for k in range(3)]
            x = _rounded(layer.input, steps, rewriter)
        op, add = layer.op, rewriter.add
        values, scale = as_bytes(layer.weight.array, layer.summed_axes)
        w = add(CastOp(add(ConstantOp.of(values)).result, f32)).result
        w = add(MulOp(w, add(ConstantOp.of(scale[0])).result)).result
        x = add(SelectOp(is_on, x, layer.input)).result
        w = add(SelectOp(is_on, w, layer.weight.result)).result
        rewriter.replace(op, add(op.with_operands([x, w, *op.operands[2:]])).results)


def _element(vector: SSAValue, index: Sequence[int], rewriter: Rewriter) -> SSAValue:
    part = rewriter.add(SliceOp(vector, index, [1] * len(index))).result
    return rewriter.add(ReshapeOp(part, [])).result


def _rounded(x: SSAValue, steps: Sequence[SSAValue], rewriter: Rewriter) -> SSAValue:
    """(clip(round(x / scale) + zero, 0, largest) - zero) * scale"""
    scale, zero, largest = steps
    add = rewriter.add
    x = add(AddOp(add(RoundOp(add(DivOp(x, scale)).result)).result, zero)).result
    x = add(MinOp(x, largest)).result
    x = add(MaxOp(x, _number(0, rewriter))).result
    return add(MulOp(add(SubOp(x, zero)).result, scale)).result


def _rounded_rows(x: SSAValue, rewriter: Rewriter) -> SSAValue:
    """round(x / r) * r, 127 times r the largest magnitude of each row"""
    add, rank = rewriter.add, rank_of(x)
    largest = add(ReduceOp(ReduceKind.MAX, add(AbsOp(x)).result, [rank - 1], keep_dims=True))
    limit = add(MaxOp(largest.result, _number(LEAST, rewriter))).result
    ratio = add(DivOp(_number(MOST, rewriter), limit)).result
    rounded = add(RoundOp(add(MulOp(x, ratio)).result)).result
    return add(MulOp(rounded, add(DivOp(limit, _number(MOST, rewriter))).result)).result


def _number(value: float, rewriter: Rewriter) -> SSAValue:
    return rewriter.add(ConstantOp.of(np.array(value, np.float32))).result


def _add_inputs(main: FuncOp, count: int) -> tuple[SSAValue, SSAValue]:
    block = main.body.block
    names = value_names(main.arg_attrs, len(block.args))
    switches = block.insert_arg(tensor(i1, [count]), len(block.args))
    steps = block.insert_arg(tensor(f32, [count, 3]), len(block.args))
    main.properties["arg_attrs"] = named([*names, SWITCHES, STEPS])
    main.update_function_type()
    return switches, steps


class SwitchLayersPass(ModulePass):
    """
    With two more inputs of the main function, which say of each layer whether it is on, and the
    scale t, the zero point z and the largest number m of what it reads; q and s bytes of the
    constant w and their scales:

    - f(x, w) -> f(on ? (clip(round(x / t) + z, 0, m) - z) * t : x, on ? cast(q) * s : w)
    - x @ w -> (on ? round(x / r) * r : x) @ (on ? cast(q) * s : w)
      [r for each row of x the largest magnitude / 127, where layers go by rows]

    So one compiled model, in f32, gives what any choice of layers and ranges loses: the numbers are
    those of `quantize-layers`, but for roundings of sums. Only `lowerdeck quantize` asks for it.
    """

    name = "switch-layers"
    rounds_numbers = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if options_of(ctx).probe != "switch":
            return
        layers = layers_of(op)
        functions = [each for each in op.body.block.ops if isinstance(each, FuncOp)]
        main = next((each for each in functions if each.sym_name.data == "main"), None)
        if main is None:
            return
        pattern = SwitchLayer(layers, *_add_inputs(main, len(layers)))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
