"""`fuse-grouped-conv`: convolutions of the parts of the channels are one, of groups."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.tensor import ConcatOp, SliceOp, SplitOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, numpy_dtype
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    only_user,
    producer,
)
from lowerdeck.passes.machinery.values import Array, small_constant

_MOST_MAPS = 32
"""The most maps between a convolution and the concatenation."""

_FEWEST_CHANNELS, _FEWEST_PRODUCTS = 16, 256
"""Results of an arm, and products of each of them, for which one convolution takes less time than
the pass over memory that the different maps behind it are."""

Conv: TypeAlias = ConvOp | ConvTransposeOp
Alike: TypeAlias = tuple[SSAValue, ...]
"""What is computed in the same way in each arm: one value of each."""


@dataclass
class Arms:
    """The operands of a concatenation: the same maps of a convolution of some channels each."""

    convs: list[Conv] = field(default_factory=list["Conv"])
    maps: dict[Alike, list[Alike]] = field(default_factory=dict[Alike, "list[Alike]"])
    """The operands of the maps, in the order in which they are computed."""
    numbers: dict[Alike, Array] = field(default_factory=dict[Alike, "Array"])
    """The constants of which each arm has its own, for all channels."""

    @property
    def roots(self) -> Alike:
        """What the maps are of."""
        return tuple(conv.result for conv in self.convs)

    @property
    def ops(self) -> list[Operation]:
        """From the last map up."""
        found = [value.owner for values in reversed(self.maps) for value in values]
        return [*(op for op in found if isinstance(op, Operation)), *self.convs]

    def computes(self, values: Alike) -> bool:
        """True if all arms compute these values in the same way, from one convolution each."""
        if values in self.maps or (self.convs and values == self.roots):
            return True
        ops = [value.owner for value in values]
        if convs := [op for op in ops if isinstance(op, Conv)]:
            found, self.convs = self.convs, convs
            return not found and len(convs) == len(ops) and len(set(map(_kind, convs))) == 1
        maps = [op for op in ops if isinstance(op, (*ELEMENTWISE, BatchNormOp)) and is_ranked(op)]
        kinds = {(type(op), *sorted(op.properties.items())) for op in maps}
        if len(maps) < len(ops) or len(kinds) > 1 or len(self.maps) == _MOST_MAPS:
            return False
        operands: list[Alike] = list(zip(*(op.operands for op in maps), strict=True))
        computed = [each for each in operands if not _are_constant(each)]
        if not computed or not all(map(self.computes, computed)):
            return False
        self.maps[values] = operands
        own = dims_of(self.convs[0].result)
        if any(dims_of(value) != own for value in values):
            return False
        if isinstance(maps[0], BatchNormOp):
            return maps[0].axis.data == 1 and len(computed) == 1
        return all(self._joins(each) for each in operands if each not in computed)

    def _joins(self, values: Alike) -> bool:
        """True if constants of the arms are equal numbers, or can be one for all channels."""
        own = dims_of(self.convs[0].result)
        arrays = [array for value in values if (array := small_constant(value)) is not None]
        if len(arrays) < len(values):
            return False
        arrays = [array.reshape([1] * (len(own) - array.ndim) + [*array.shape]) for array in arrays]
        outside = {(array.shape[0], *array.shape[2:]) for array in arrays}
        channels = own[1].value
        if len(outside) > 1 or channels is None:
            return False
        if len({(array.shape, array.tobytes()) for array in arrays}) > 1 or arrays[0].shape[1] > 1:
            repeated = [array.repeat(channels // array.shape[1], 1) for array in arrays]
            self.numbers[values] = np.concatenate(repeated, 1)
        return True

    def are_used_only_by(self, others: Iterable[Operation]) -> bool:
        """True if nothing else reads what the arms compute."""
        own = {*others, *self.ops}
        values = (value for op in self.ops for value in op.results)
        return all(use.operation in own for value in values for use in value.uses)


def _are_constant(values: Alike) -> bool:
    return all(isinstance(value.owner, ConstantOp) for value in values)


def _kind(conv: Conv) -> Hashable:
    """What convolutions have in common that can be one: a bias may be missing."""
    weight = conv.weight
    properties = tuple(sorted(conv.properties.items()))
    return type(conv), properties, conv.input.type, weight.type, conv.result.type


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


@record
class Plan:
    """The arms, what all of them read channels of, and what they compute in the same way."""

    arms: Arms
    source: SSAValue
    values: Alike
    rest: tuple[CoreOp, ...] = ()
    """What each arm does else, each op after what it reads."""


def _plan(root: ConcatOp, arms: Arms, values: Alike, rest: Sequence[CoreOp]) -> Match[Plan] | None:
    """The arms as one, if convolutions can be joined and nothing else reads what is inside."""
    if not all(map(_can_be_joined, arms.convs)) or (found := _takers(arms.convs)) is None:
        return None
    if not arms.are_used_only_by([root, *rest]):
        return None
    source, takers = found
    consumed = dict.fromkeys((root, *rest, *arms.ops, *takers))
    reason = "all channels, in their order"
    return Match(tuple(consumed), reason, Plan(arms, source, values, tuple(rest)))


def _takers(convs: list[Conv]) -> tuple[SSAValue, list[Operation]] | None:
    """What convolutions take all channels of, in their order, and the ops that take them."""
    takers: list[Operation] = []
    sources: set[SSAValue] = set()
    start = Expr.const(0)
    for conv in convs:
        taken = _channels(conv.input)
        if taken is None or taken[1] != start:
            return None
        sources.add(taken[0])
        takers.append(taken[2])
        start = start + dims_of(conv.input)[1]
    source = sources.pop()
    return None if sources or start != dims_of(source)[1] else (source, takers)


def _can_be_joined(conv: Conv) -> bool:
    parameters = conv.operands[1:]
    has_zero_points = isinstance(conv, ConvOp) and bool(conv.zero_points)
    return not has_zero_points and _are_constant(tuple(parameters))


class FuseGroupedConv(Pattern[Plan]):
    """concat(f(conv(x[:c], v)), f(conv(x[c:], w))) -> f(conv(x, [v, w]) in groups)"""

    name = "fuse-grouped-conv"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[Plan] | None:
        arms, values = Arms(), tuple(op.inputs)
        if op.axis.data != 1 or len(values) < 2:
            return None
        if arms.computes(values):
            return _plan(op, arms, values, ())
        return _of_different_maps(op)

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        plan, root = match.data, match.root
        assert isinstance(root, ConcatOp)
        joined = _joined(plan, rewriter)
        if not plan.rest:
            rewriter.replace(root, joined)
            return
        sizes = [dims_of(value)[1] for value in plan.values]
        parts = rewriter.add(SplitOp(joined, 1, sizes)).parts
        new: dict[SSAValue, SSAValue] = dict(zip(plan.values, parts, strict=True))
        for op in plan.rest:
            operands = [new.get(value, value) for value in op.operands]
            new[op.results[0]] = rewriter.add(op.with_operands(operands)).results[0]
        rewriter.replace(root, ConcatOp([new[value] for value in root.inputs], 1))


def _of_different_maps(root: ConcatOp) -> Match[Plan] | None:
    """Arms that begin with convolutions, and go on differently."""
    rest = _maps_to_convs(root.inputs)
    if rest is None or not all(map(_is_large, rest.convs)):
        return None
    values = tuple(conv.result for conv in rest.convs)
    arms = Arms()
    if not arms.computes(values):
        return None
    # As far as the maps are the same.
    while (following := _following(values)) is not None and (more := Arms()).computes(following):
        values, arms = following, more
    inside = set(arms.ops)
    maps = [op for op in rest.maps if op not in inside]
    own = {root, *maps}
    if any(use.operation not in own for op in maps for use in op.results[0].uses):
        return None
    return _plan(root, arms, values, maps) if maps else None


def _is_large(conv: Conv) -> bool:
    """True if the convolution itself takes most of the time, with what comes behind it."""
    channels, size = dims_of(conv.result)[1].value, product(dims_of(conv.weight)).value
    if channels is None or size is None or channels < _FEWEST_CHANNELS:
        return False
    return size >= _FEWEST_PRODUCTS * channels


@dataclass
class _Tree:
    """What is between convolutions and a concatenation."""

    convs: list[Conv] = field(default_factory=list["Conv"])
    maps: list[CoreOp] = field(default_factory=list[CoreOp])
    """Each after what it reads."""


def _maps_to_convs(values: Sequence[SSAValue]) -> _Tree | None:
    """The maps that compute values, of one convolution each."""
    tree, seen = _Tree(), set[Operation]()

    def visit(value: SSAValue, dims: Sequence[Expr]) -> bool:
        op = value.owner
        if not isinstance(op, (ConvOp, ConvTransposeOp, *ELEMENTWISE, BatchNormOp)) or op in seen:
            return True
        if not is_ranked(op) or dims_of(value) != dims:
            return False
        seen.add(op)
        if isinstance(op, Conv):
            tree.convs.append(op)
            return True
        if len(tree.maps) == _MOST_MAPS * len(values):
            return False
        found = all(visit(each, dims) for each in op.operands if dims_of(each) == dims)
        tree.maps.append(op)
        return found

    for number, value in enumerate(values):
        if not visit(value, dims_of(value)) or len(tree.convs) != number + 1:
            return None
    return tree


def _following(values: Alike) -> Alike | None:
    """The results of the maps that alone read values, one each."""
    users = [only_user(value) for value in values]
    maps = [op for op in users if isinstance(op, (*ELEMENTWISE, BatchNormOp))]
    return tuple(op.results[0] for op in maps) if len({*maps}) == len(values) else None


def _joined(plan: Plan, rewriter: Rewriter) -> SSAValue:
    """What all arms compute in the same way, of all channels."""
    arms = plan.arms
    new = {arms.roots: _joined_conv(arms.convs, plan.source, rewriter)}
    for values, operands in arms.maps.items():
        op = values[0].owner
        assert isinstance(op, CoreOp)
        for each in operands:
            if each in new:
                continue
            if isinstance(op, BatchNormOp):
                new[each] = rewriter.add(ConcatOp(each, 0)).result
            elif (array := arms.numbers.get(each)) is not None:
                new[each] = rewriter.add(ConstantOp.of(array)).result
            else:
                new[each] = each[0]
        joined = op.with_operands([new[each] for each in operands])
        new[values] = rewriter.add(joined).results[0]
    return new[plan.values]


def _joined_conv(convs: list[Conv], source: SSAValue, rewriter: Rewriter) -> SSAValue:
    """The convolution of all channels."""
    first = convs[0]
    parameters = [[conv.weight for conv in convs]]
    if any(conv.bias is not None for conv in convs):
        biases = [_no_bias(conv, rewriter) if conv.bias is None else conv.bias for conv in convs]
        parameters.append(biases)
    joined = [rewriter.add(ConcatOp(parts, 0)).result for parts in parameters]
    groups = IntAttr(first.groups.data * len(convs))
    return rewriter.add(first.with_operands([source, *joined], {"groups": groups})).result


def _no_bias(conv: Conv, rewriter: Rewriter) -> SSAValue:
    """The bias that adds nothing, not even to a negative zero."""
    element, channels = element_type(conv.result), dims_of(conv.result)[1].value
    zero = -0.0 if is_float(element) else 0
    return rewriter.add(ConstantOp.of(np.full(channels or 0, zero, numpy_dtype(element)))).result


class FuseGroupedConvPass(PatternPass):
    """
    Convolutions of the parts of the channels, joined again, as one convolution in groups.

    - concat(conv(x0, w0, b0), conv(x1, w1, b1), ...) along channels
      -> conv(x, [w0, w1, ...], [b0, b1, ...]) {groups = number of parts}, times their own groups
      [x0, x1, ... are all channels of x in order, as a split or slices take them; the convolutions
      have the same windows, numbers of channels and groups, constant weights and biases, if any,
      and are used only here; likewise for transposed convolutions]
    - likewise with the same maps behind each convolution: elementwise ops and batch normalizations,
      with constants of each arm's own, which become one for all channels
    - concat(f(conv(x0, w0)), g(conv(x1, w1)), ...) -> concat(f(y0), g(y1), ...), y0, y1, ... the
      parts of one convolution, and of the maps that all arms begin with [16 channels of 256
      products each, or more: the maps are a pass of their own then]

    The parts are neither cut out nor joined, and there is one loop in place of several.
    """

    name = "fuse-grouped-conv"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseGroupedConv()]
