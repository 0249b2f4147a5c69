"""`spread-phases`: transposed convolutions as convolutions of their phases."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import groupby, product
from math import inf, prod
from typing import Any, TypeAlias

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, static_shape
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.strategies.facts import assumed_size, is_of
from lowerdeck.lowering.strategies.transposed import Phase, is_narrow, phases_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.fold.fold_constants import FoldConstants
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

LEAST_WASTE = 2
"""Vectors of filters that hold so many times as many elements as there are filters."""

LEAST_DEPTH = 16
"""Channels from which on products take more time than sums of their results."""

LEAST_IMAGE = 256
"""Results of a channel, each of which reads the taps of computed weights."""

MOST_GROWTH = 4
"""How much larger than the image the products with all taps may be."""


@record
class _Line:
    """
    Phases of one dimension that have as many taps: output q of a phase is output `q + shift` of a
    convolution with so much padding.
    """

    phases: Sequence[Phase]
    before: int
    end: int

    @property
    def taps(self) -> int:
        return self.phases[0].taps

    @property
    def dilation(self) -> int:
        return self.phases[0].back

    def shift(self, phase: Phase) -> int:
        return _lowest(phase) + self.before

    @staticmethod
    def of(phases: Sequence[Phase], size: Expr, count: Expr) -> _Line | None:
        """Of an input of this size, with so many outputs of each; None if that is not enough."""
        before = max(0, *(-_lowest(phase) for phase in phases))
        behind = max(_lowest(phase) for phase in phases) + count + _reach(phases[0]) - size
        return None if behind.value is None else _Line(phases, before, max(0, behind.value))


def _reach(phase: Phase) -> int:
    """How far the last input that an output is computed of is behind the first one."""
    return (phase.taps - 1) * phase.back


def _lowest(phase: Phase) -> int:
    """The first input that output 0 of a phase is computed of."""
    return phase.first - _reach(phase)


def lines_of(op: ConvTransposeOp) -> list[list[_Line]] | None:
    """
    The phases of each spatial dimension that have taps, together with those that have as many; None
    if there are none, or it is not known how far they reach.
    """
    known = (dims_of(op.weight), op.pads_begin.data)
    if any(constants(values) is None for values in known):
        return None
    found: list[list[_Line]] = []
    for size, own in zip(dims_of(op.input)[2:], phases_of(op), strict=True):
        by_taps = sorted((p for p in own if p.taps), key=lambda phase: phase.taps)
        groups = [list(group) for _, group in groupby(by_taps, lambda phase: phase.taps)]
        lines = [_Line.of(group, size, own[0].count) for group in groups]
        if not lines or None in lines:
            return None
        found.append([line for line in lines if line is not None])
    return found


def _is_large(op: ConvTransposeOp) -> bool:
    """True if weights are read so often that it does not matter what it takes to turn them."""
    return prod(map(assumed_size, dims_of(op.result)[2:])) >= LEAST_IMAGE


def _is_one_phase(op: ConvTransposeOp) -> bool:
    """True if every output has the same taps, but for those beyond the borders."""
    return all(stride == 1 for stride in ints(op.strides))


_Lines: TypeAlias = Sequence[Sequence[_Line]]
"""By spatial dimension."""


class SpreadPhases(Pattern[_Lines]):
    """conv_transpose(x, w) -> interleave(conv(x, taps of each phase))"""

    name = "spread-phases"
    roots = (ConvTransposeOp,)

    def __init__(self, target: Target) -> None:
        self._lanes = target.lanes

    def match(self, op: ConvTransposeOp) -> Match[_Lines] | None:
        if static_shape(op.weight) is None or not is_of(op, f32, f64) or not self._pays(op):
            return None
        if (lines := lines_of(op)) is None:
            return None
        number = prod(ints(op.strides))
        return Match((op,), f"{dims_of(op.weight)[1]} filters of {number} phases", lines)

    def _pays(self, op: ConvTransposeOp) -> bool:
        """True if filters fill no vectors, or there is only one phase."""
        if self._lanes == 1:
            return False
        if _is_one_phase(op) and (isinstance(op.weight.owner, ConstantOp) or _is_large(op)):
            return True
        filters = dims_of(op.weight)[1].value or 1
        waste = -(-filters // self._lanes) * self._lanes / filters
        if not is_of(op, f32) or is_narrow(op, self._lanes):
            waste = inf
        elif op.groups.data > 1:
            waste = 1
        return waste >= LEAST_WASTE

    def rewrite(self, match: Match[_Lines], rewriter: Rewriter) -> None:
        op, lines_of_axes = match.root, match.data
        assert isinstance(op, ConvTransposeOp)
        phases = phases_of(op)
        counts = [own[0].count for own in phases]
        if _are_products_apart(op):
            value = _joined(op, _sums(op, lines_of_axes, counts, rewriter), rewriter)
        else:
            ways = list(product(*lines_of_axes))
            convs = [_conv(op, lines, rewriter) for lines in ways]
            value = convs[0]
            number = sum(len(line.phases) for line in ways[0])
            if number < sum(map(len, phases)) or _is_cut(value, ways[0], counts):
                parts: _Parts = _without_taps(op, counts, rewriter)
                for lines, conv in zip(ways, convs, strict=True):
                    parts |= _parts(conv, lines, counts, rewriter)
                value = _joined(op, parts, rewriter)
        batch, channels, *sizes = dims_of(op.result)
        numbers = [len(own) for own in phases]
        if prod(numbers) > 1:
            value = _interleaved(op, value, numbers, rewriter)
        counts = [count * number for count, number in zip(counts, numbers, strict=True)]
        whole: list[Expr] = [batch, channels, *counts]
        if whole != list(dims_of(value)):
            value = rewriter.add(ReshapeOp(value, whole)).result
        if counts != sizes:
            value = rewriter.add(SliceOp(value, [0] * len(whole), [batch, channels, *sizes])).result
        rewriter.replace(op, value)


_Parts: TypeAlias = dict[tuple[int, ...], SSAValue]
"""The outputs of each combination of phases, by where these start."""


def _joined(op: ConvTransposeOp, parts: _Parts, rewriter: Rewriter) -> SSAValue:
    """All phases, in order."""
    ordered = [parts[phase] for phase in sorted(parts)]
    if len(ordered) == 1:
        return ordered[0]
    return rewriter.add(ConcatOp(ordered, _axis_of_filters(op))).result


def _are_products_apart(op: ConvTransposeOp) -> bool:
    """True if all taps are filters of one convolution with one tap, whose results are added up."""
    depth, *filters = _shape(op.weight)
    is_deep = depth >= LEAST_DEPTH and prod(filters) <= MOST_GROWTH * depth
    return is_deep and op.groups.data == 1 and not _is_one_phase(op)


def _shape(weight: SSAValue) -> tuple[int, ...]:
    shape = static_shape(weight)
    assert shape is not None
    return shape


def _sums(
    op: ConvTransposeOp, lines_of_axes: _Lines, counts: Sequence[Expr], rewriter: Rewriter
) -> _Parts:
    """Of the products of the image, with zeros around it, with all taps."""
    depth, filters, *taps = _shape(op.weight)
    before = [max(line.before for line in lines) for lines in lines_of_axes]
    ones = [1 for _ in taps]
    order = [*range(2, len(taps) + 2), 1, 0]
    turned = rewriter.add(TransposeOp(op.weight, order)).result
    conv = ConvOp(
        op.input,
        rewriter.add(ReshapeOp(turned, [filters * prod(taps), depth, *ones])).result,
        strides=ones,
        dilations=ones,
        pads_begin=before,
        pads_end=[max(line.end for line in lines) for lines in lines_of_axes],
    )
    products = rewriter.add(conv).result
    batch = dims_of(products)[0]
    sums: _Parts = _without_taps(op, counts, rewriter)
    for phases in product(*phases_of(op)):
        if not all(phase.taps for phase in phases):
            continue
        total = None
        for number in product(*(range(phase.taps) for phase in phases)):
            place = [phase.tap + j * phase.step for phase, j in zip(phases, number, strict=True)]
            inputs = [phase.first - j * phase.back for phase, j in zip(phases, number, strict=True)]
            channel = _flat(place, taps) * filters
            starts = [0, channel, *(at + pad for at, pad in zip(inputs, before, strict=True))]
            part = rewriter.add(SliceOp(products, starts, [batch, filters, *counts])).result
            total = part if total is None else rewriter.add(AddOp(total, part)).result
        assert total is not None
        if op.bias is not None:
            bias = rewriter.add(ReshapeOp(op.bias, [filters, *ones])).result
            total = rewriter.add(AddOp(total, bias)).result
        sums[tuple(phase.start for phase in phases)] = total
    return sums


def _flat(place: Sequence[int], sizes: Sequence[int]) -> int:
    """The number of an element in row-major order."""
    number = 0
    for index, size in zip(place, sizes, strict=True):
        number = number * size + index
    return number


def _without_taps(op: ConvTransposeOp, counts: Sequence[Expr], rewriter: Rewriter) -> _Parts:
    """Of the phases that are computed of no input: the bias alone."""
    filters, groups = _shape(op.weight)[1], op.groups.data
    apart = [groups, filters] if _axis_of_filters(op) == 2 else [filters * groups]
    found: _Parts = {}
    for phases in product(*phases_of(op)):
        if all(phase.taps for phase in phases):
            continue
        bias = op.bias
        if bias is None:
            bias = rewriter.add(scalar(0, element_type(op.result))).result
        else:
            bias = rewriter.add(ReshapeOp(bias, [*apart, *(1 for _ in counts)])).result
        value = BroadcastOp(bias, [dims_of(op.result)[0], *apart, *counts])
        found[tuple(phase.start for phase in phases)] = rewriter.add(value).result
    return found


def _axis_of_filters(op: ConvTransposeOp) -> int:
    """Of the results of convolutions, which have several groups of several phases apart."""
    return 1 if op.groups.data == 1 or _is_one_phase(op) else 2


def _conv(op: ConvTransposeOp, lines: Sequence[_Line], rewriter: Rewriter) -> SSAValue:
    """All combinations of some phases, those of a group side by side."""
    weight, bias = _stacked(op, lines, rewriter)
    conv = ConvOp(
        op.input,
        weight,
        bias,
        strides=[1] * len(lines),
        dilations=[line.dilation for line in lines],
        pads_begin=[line.before for line in lines],
        pads_end=[line.end for line in lines],
        groups=op.groups.data,
    )
    value, groups = rewriter.add(conv).result, op.groups.data
    if groups == 1 or _is_one_phase(op):
        return value
    batch, channels, *sizes = dims_of(value)
    return rewriter.add(ReshapeOp(value, [batch, groups, channels // groups, *sizes])).result


def _is_cut(conv: SSAValue, lines: Sequence[_Line], counts: Sequence[Expr]) -> bool:
    """True if the phases of a convolution do not begin and end with it."""
    is_shifted = any(line.shift(phase) for line in lines for phase in line.phases)
    return is_shifted or list(dims_of(conv)[-len(counts) :]) != list(counts)


def _parts(
    conv: SSAValue, lines: Sequence[_Line], counts: Sequence[Expr], rewriter: Rewriter
) -> _Parts:
    """Those of one convolution."""
    parts: _Parts = {}
    *outer, filters = dims_of(conv)[: -len(counts)]
    ways = list(product(*(line.phases for line in lines)))
    each = filters // len(ways)
    for number, phases in enumerate(ways):
        shifts = [line.shift(phase) for line, phase in zip(lines, phases, strict=True)]
        starts = [*(Expr.const(0) for _ in outer), each * number, *shifts]
        part = SliceOp(conv, starts, [*outer, each, *counts])
        parts[tuple(phase.start for phase in phases)] = rewriter.add(part).result
    return parts


def _interleaved(
    op: ConvTransposeOp, value: SSAValue, numbers: Sequence[int], rewriter: Rewriter
) -> SSAValue:
    """[..., phases and filters, outputs of a phase] as [..., filters, outputs, phases, ...]."""
    axis, rank = _axis_of_filters(op), len(numbers)
    dims = dims_of(value)
    filters = dims[axis] // prod(numbers)
    apart = [*dims[:axis], *numbers, filters, *dims[axis + 1 :]]
    value = rewriter.add(ReshapeOp(value, apart)).result
    pairs = [(axis + rank + 1 + k, axis + k) for k in range(rank)]
    order = [*range(axis), axis + rank, *(place for pair in pairs for place in pair)]
    return rewriter.add(TransposeOp(value, order)).result


def _stacked(
    op: ConvTransposeOp, lines: Sequence[_Line], rewriter: Rewriter
) -> tuple[SSAValue, SSAValue | None]:
    """Filters of all combinations of phases, those of a group side by side, and their biases."""
    inputs, filters, *_ = _shape(op.weight)
    groups = op.groups.data
    ways = list(product(*(line.phases for line in lines)))
    taps, rank = [line.taps for line in lines], len(lines) + 2
    parts: list[SSAValue] = []
    for phases in ways:
        last = [phase.tap + (phase.taps - 1) * phase.step for phase in phases]
        steps = [-phase.step for phase in phases]
        part = SliceOp(op.weight, [0, 0, *last], [inputs, filters, *taps], [1, 1, *steps])
        dims = [groups, inputs // groups, filters, *taps]
        apart = rewriter.add(ReshapeOp(rewriter.add(part).result, dims)).result
        order = [0, 2, 1, *range(rank + 1 - len(taps), rank + 1)]
        parts.append(rewriter.add(TransposeOp(apart, order)).result)
    value = parts[0] if len(parts) == 1 else rewriter.add(ConcatOp(parts, 1)).result
    number = groups * len(ways) * filters
    weight = rewriter.add(ReshapeOp(value, [number, inputs // groups, *taps])).result
    if op.bias is None or len(ways) == 1:
        return weight, op.bias
    bias = rewriter.add(ReshapeOp(op.bias, [groups, 1, filters])).result
    bias = rewriter.add(BroadcastOp(bias, [groups, len(ways), filters])).result
    return weight, rewriter.add(ReshapeOp(bias, [number])).result


class _FoldNew(FoldConstants):
    """What is made of constant weights is constant; what was there before stays as it was meant."""

    def __init__(self, known: Container[Operation]) -> None:
        super().__init__()
        self._known = known

    def match(self, op: CoreOp) -> Match[list[NDArray[Any]]] | None:
        return None if op in self._known else super().match(op)


class SpreadPhasesPass(ModulePass):
    """
    conv_transpose(x, w, b) -> reshape(transpose(concat_p(conv(x, w_p, b)[shift_p :])))
        [a stride of 1, or filters, of a group if there are several, that fill less than half of a
         vector; of computed weights with a stride of 1, 256 results of a channel]

    w_p has the taps of phase p in reverse: phases with as many taps are one convolution. The lanes
    are then columns or groups, not filters. With a stride of 1 there is one phase, and it is all.
    Many channels are multiplied with all taps by one convolution of one tap, and phase p is a sum
    of parts of its result.
    """

    name = "spread-phases"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = set(all_ops(op))
        if not any(isinstance(each, ConvTransposeOp) for each in known):
            return
        pattern = SpreadPhases(target_named(options_of(ctx).target))
        recorder = recorder_of(ctx)
        apply_patterns(op, [pattern], recorder, pass_name=self.name, recursive=False)
        apply_patterns(op, [_FoldNew(known)], recorder, pass_name=self.name)
