"""`spread-phases`: transposed convolutions with few filters as convolutions of their phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of, f32, f64, static_shape
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.context import options_of, recorder_of
from lowerdeck.passes.driver import Match, Pattern, Rewriter, apply_patterns

Array = NDArray[Any]


@dataclass(frozen=True)
class _Axis:
    """
    A spatial dimension: output `q * stride + p` is the sum over t below `taps` of input
    `q + shift(p) + t - before` times tap `tap(p, t)`.
    """

    stride: int
    taps: int
    begin: int
    count: Expr
    """Of outputs of a phase."""
    end: int
    """Padding behind the input, so that each phase has all of its outputs."""

    @property
    def before(self) -> int:
        """Padding before the input."""
        return self.taps - 1 - self.begin // self.stride

    def shift(self, phase: int) -> int:
        """How many outputs of the convolution come before the first one of a phase: one or none."""
        return (phase + self.begin) // self.stride - self.begin // self.stride

    @property
    def shifts(self) -> int:
        """The largest of them."""
        return self.shift(self.stride - 1)

    def tap(self, phase: int, number: int) -> int:
        """The tap of the transposed convolution that `number` of a phase is."""
        return (phase + self.begin) % self.stride + (self.taps - 1 - number) * self.stride


def axes_of(op: ConvTransposeOp) -> list[_Axis] | None:
    """
    The spatial dimensions; None if some phases have other taps than others, or it is not known how
    far they reach.
    """
    taps, pads = static_shape(op.weight), constants((*op.pads_begin.data, *op.pads_end.data))
    if taps is None or pads is None or any(d != 1 for d in ints(op.dilations)):
        return None
    found: list[_Axis] = []
    sizes = zip(dims_of(op.input)[2:], dims_of(op.result)[2:], strict=True)
    for k, (before, after) in enumerate(sizes):
        stride = ints(op.strides)[k]
        if taps[k + 2] % stride:
            return None
        count = after // stride
        axis = _Axis(stride, taps[k + 2] // stride, pads[k], count, 0)
        end = (count + axis.shifts + axis.taps - 1 - axis.before - before).value
        if count * stride != after or end is None or end < 0 or axis.before < 0:
            return None
        found.append(_Axis(stride, axis.taps, pads[k], count, end))
    return found


@dataclass(frozen=True)
class _Plan:
    axes: Sequence[_Axis]
    weight: Array
    bias: Array | None


class SpreadPhases(Pattern[_Plan]):
    """conv_transpose(x, w) -> interleave(conv(x, taps of each phase))"""

    name = "spread-phases"
    roots = (ConvTransposeOp,)

    def __init__(self, target: Target) -> None:
        self._lanes = target.lanes

    def match(self, op: ConvTransposeOp) -> Match[_Plan] | None:
        shape = static_shape(op.weight)
        if shape is None or op.groups.data != 1 or not is_of(op, f32, f64):
            return None
        if shape[1] * 2 > self._lanes or all(stride == 1 for stride in ints(op.strides)):
            return None
        if (axes := axes_of(op)) is None:
            return None
        try:
            weight = constant_array(op.weight)
            bias = None if op.bias is None else constant_array(op.bias)
        except ElidedBlobError:
            return None  # nothing is compiled then
        if weight is None or (op.bias is not None and bias is None):
            return None
        number = prod(axis.stride for axis in axes)
        return Match((op,), f"{shape[1]} filters of {number} phases", _Plan(axes, weight, bias))

    def rewrite(self, match: Match[_Plan], rewriter: Rewriter) -> None:
        op, axes = match.root, match.data.axes
        assert isinstance(op, ConvTransposeOp)
        weight, bias = _stacked(match.data)
        conv = ConvOp(
            op.input,
            rewriter.add(ConstantOp.of(weight)).result,
            rewriter.add(ConstantOp.of(bias)).result,
            strides=[1] * len(axes),
            dilations=[1] * len(axes),
            pads_begin=[axis.before for axis in axes],
            pads_end=[axis.end for axis in axes],
        )
        batch, filters, *sizes = dims_of(op.result)
        value = rewriter.add(conv).result
        if any(axis.shifts for axis in axes):
            value = rewriter.add(ConcatOp(list(self._parts(value, axes, rewriter)), 1)).result
        counts = [axis.count for axis in axes]
        strides = [axis.stride for axis in axes]
        value = rewriter.add(ReshapeOp(value, [batch, *strides, filters, *counts])).result
        rank = len(axes)
        pairs = [(rank + 2 + k, 1 + k) for k in range(rank)]
        order = [0, rank + 1, *(axis for pair in pairs for axis in pair)]
        value = rewriter.add(TransposeOp(value, order)).result
        rewriter.replace(op, rewriter.add(ReshapeOp(value, [batch, filters, *sizes])).result)

    def _parts(
        self, value: SSAValue, axes: Sequence[_Axis], rewriter: Rewriter
    ) -> Iterator[SSAValue]:
        """The outputs of each phase, which begin one later in some."""
        batch, channels, *_ = dims_of(value)
        phases = list(product(*(range(axis.stride) for axis in axes)))
        each = channels // len(phases)
        for number, phase in enumerate(phases):
            shifts = [axis.shift(p) for axis, p in zip(axes, phase, strict=True)]
            sizes = [batch, each, *(axis.count for axis in axes)]
            yield rewriter.add(SliceOp(value, [0, each * number, *shifts], sizes)).result


def _stacked(plan: _Plan) -> tuple[Array, Array]:
    """Filters of all phases, those of one phase side by side, and their biases."""
    parts: list[Array] = []
    for phase in product(*(range(axis.stride) for axis in plan.axes)):
        places = [
            [axis.tap(p, number) for number in range(axis.taps)]
            for axis, p in zip(plan.axes, phase, strict=True)
        ]
        every = range(plan.weight.shape[0]), range(plan.weight.shape[1])
        parts.append(plan.weight[np.ix_(*every, *places)].swapaxes(0, 1))
    filters = plan.weight.shape[1]
    bias = np.zeros(filters, plan.weight.dtype) if plan.bias is None else plan.bias
    return np.concatenate(parts), np.tile(bias, len(parts))


@dataclass(frozen=True)
class SpreadPhasesPass(ModulePass):
    """
    conv_transpose(x, w, b) -> reshape(transpose(concat_p(conv(x, w_p, b)[shift_p :])))
        [w, b constant; one group, no dilation, the stride divides the taps and the result along
         each dimension; so few filters that they fill less than half of a vector]

    w_p has the taps of phase p in reverse. The lanes are then columns, not filters.
    """

    name = "spread-phases"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = SpreadPhases(target_named(options_of(ctx).target))
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
