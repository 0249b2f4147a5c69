"""`fuse-grouped-conv`: convolutions of the parts of the channels are one, of groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ConcatOp, SliceOp, SplitOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.linear.number_maps import map_kind, mapped, with_value
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    producer,
)


@dataclass(frozen=True)
class Arm:
    """One operand of the concatenation: maps of a convolution of some channels of `source`."""

    conv: ConvOp
    maps: tuple[CoreOp, ...]
    """From the convolution down."""
    source: SSAValue
    start: Expr
    part: Operation
    """What takes the channels."""

    @property
    def kind(self) -> Hashable:
        """What arms of one convolution have in common."""
        conv = self.conv
        operands = tuple((element_type(value), dims_of(value)) for value in conv.operands[1:])
        return (
            self.source,
            dims_of(conv.input),
            operands,
            tuple(sorted(conv.properties.items())),
            tuple(map_kind(op) for op in self.maps),
        )


def _arm(value: SSAValue) -> Arm | None:
    """The arm that computes a value; None unless the value and what leads to it is used once."""
    maps: list[CoreOp] = []
    while isinstance(op := value.owner, CoreOp) and isinstance(op, ELEMENTWISE):
        source = mapped(op)
        if source is None or not value.has_one_use():
            return None
        maps.insert(0, op)
        value = source
    conv = producer(value, ConvOp)
    if conv is None or not value.has_one_use() or conv.zero_points:
        return None
    if not all(isinstance(operand.owner, ConstantOp) for operand in conv.operands[1:]):
        return None
    if (taken := _channels(conv.input)) is None:
        return None
    return Arm(conv, tuple(maps), *taken)


def _channels(value: SSAValue) -> tuple[SSAValue, Expr, Operation] | None:
    """What a value is channels of, from which one on, and the op that takes them."""
    op = value.owner
    if isinstance(op, SplitOp) and is_ranked(op):
        if op.axis.data != 1:
            return None
        place = next(k for k, part in enumerate(op.parts) if part is value)
        return op.input, op.starts[place], op
    if (part := producer(value, SliceOp)) is None:
        return None
    lists = (dims_of(part.input), part.starts.data, part.sizes.data, part.steps.data)
    for axis, (dim, start, size, step) in enumerate(zip(*lists, strict=True)):
        if step != 1 or (axis != 1 and (start != 0 or size != dim)):
            return None
    return part.input, part.starts.data[1], part


class FuseGroupedConv(Pattern[list[Arm]]):
    """concat(f(conv(x[:c], v)), f(conv(x[c:], w))) -> f(conv(x, [v, w]) in groups)"""

    name = "fuse-grouped-conv"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[list[Arm]] | None:
        if op.axis.data != 1 or len(op.inputs) < 2:
            return None
        arms: list[Arm] = []
        start = Expr.const(0)
        for value in op.inputs:
            arm = _arm(value)
            if arm is None or arm.start != start or arm.kind != (arms or [arm])[0].kind:
                return None
            arms.append(arm)
            start = start + dims_of(arm.conv.input)[1]
        if start != dims_of(arms[0].source)[1]:
            return None
        ops = [op for arm in arms for op in (*arm.maps, arm.conv, arm.part)]
        return Match((op, *dict.fromkeys(ops)), "all channels, in their order", arms)

    def rewrite(self, match: Match[list[Arm]], rewriter: Rewriter) -> None:
        arms = match.data
        first = arms[0].conv
        parameters: list[SSAValue] = []
        for number in range(1, len(first.operands)):
            parts = [arm.conv.operands[number] for arm in arms]
            parameters.append(rewriter.add(ConcatOp(parts, 0)).result)
        groups = IntAttr(first.groups.data * len(arms))
        conv = first.with_operands([arms[0].source, *parameters], {"groups": groups})
        value = rewriter.add(conv).result
        for op in arms[0].maps:
            # The maps of all arms take the same numbers.
            value = rewriter.add(with_value(op, value)).results[0]
        rewriter.replace(match.root, value)


class FuseGroupedConvPass(PatternPass):
    """
    Convolutions of the parts of the channels, joined again, as one convolution in groups.

    - concat(conv(x0, w0, b0), conv(x1, w1, b1), ...) along channels
      -> conv(x, [w0, w1, ...], [b0, b1, ...]) {groups = number of parts}, times their own groups
      [x0, x1, ... are all channels of x in order, as a split or slices take them; the convolutions
      have the same windows, numbers of channels and groups, constant weights and biases, and are
      used only here]
    - likewise with the same maps behind each convolution: functions of one value, and operators
      whose other operands are the same numbers

    The parts are neither cut out nor joined, and there is one loop in place of several.
    """

    name = "fuse-grouped-conv"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseGroupedConv()]
