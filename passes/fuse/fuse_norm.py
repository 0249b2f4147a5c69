"""`fuse-norm`: layer normalization spelled out becomes one op, with scale and bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, SubOp
from lowerdeck.dialects.core.linear import LayerNormOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.passes.fuse.deviations import (
    Normalization,
    deviation_of,
    inverse_of,
    is_rounded,
    mean_of,
    unsigned,
)
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import constant_values, is_precise, number


def _is_centered(value: SSAValue, norm: Normalization) -> bool:
    """True if a value is x - mean(x); without a mean, x or one with other signs."""
    if norm.mean is None:
        return unsigned(value)[0] is norm.input
    sub = producer(value, SubOp)
    return sub is not None and sub.lhs is norm.input and sub.rhs is norm.mean


def _is_difference(value: SSAValue) -> bool:
    """True for x - mean(x)."""
    sub = producer(value, SubOp)
    mean = None if sub is None else mean_of(sub.rhs)
    return sub is not None and mean is not None and mean.input is sub.lhs


def _times_parameter(value: SSAValue) -> Iterator[tuple[SSAValue, SSAValue | None, list[MulOp]]]:
    """x and s for each way to see a value as x * s; and itself as a product without s."""
    yield value, None, []
    if (product := producer(value, MulOp)) is not None:
        yield product.lhs, product.rhs, [product]
        yield product.rhs, product.lhs, [product]


class FuseNormalization(Pattern[Normalization]):
    """
    d / sqrt(mean(d^2) + e), d * (1 / sqrt(...)) -> layer_norm(x) [d = x - mean(x)]

    The same for d = x, where a number may be at any place, and e behind the root.
    """

    name = "fuse-normalization"
    roots = (DivOp, MulOp)
    ranked = True

    def match(self, op: DivOp | MulOp) -> Match[Normalization] | None:
        if not is_precise(op.result):
            return None
        ways = self._quotient(op) if isinstance(op, DivOp) else self._product(op)
        for found in ways:
            if found.input.type == op.result.type:
                return Match((op, *found.consumed), "mean and deviation are taken off", found)
        return None

    @staticmethod
    def _quotient(op: DivOp) -> Iterator[Normalization]:
        """d / deviation, d * scale / deviation"""
        if (norm := deviation_of(op.rhs)) is not None:
            for centered, scale, between in _times_parameter(op.lhs):
                yield from _scaled(centered, scale, between, norm)

    @staticmethod
    def _product(op: MulOp) -> Iterator[Normalization]:
        """d * inverse, d * (inverse * scale), d * (scale / deviation), (d * scale) * inverse"""
        for side, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            for inverse, scale, between in _times_parameter(factor):
                if (norm := inverse_of(inverse)) is not None:
                    yield from _scaled(side, scale, between, norm)
            if (norm := inverse_of(factor)) is not None and norm.mean is None:
                for centered, scale, between in _times_parameter(side):
                    yield from _scaled(centered, scale, between, norm)
            quotient = producer(factor, DivOp)
            norm = None if quotient is None else deviation_of(quotient.rhs)
            if quotient is not None and norm is not None and norm.mean is None:
                yield from _scaled(side, quotient.lhs, [quotient], norm)

    def rewrite(self, match: Match[Normalization], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, _layer_norm(match.data, rewriter))


def _scaled(
    centered: SSAValue,
    scale: SSAValue | None,
    between: Sequence[Operation],
    norm: Normalization,
) -> Iterator[Normalization]:
    """The normalization with a scale, if it is one of this value by this parameter."""
    if not _is_centered(centered, norm) or not _may_scale(scale, norm):
        return
    consumed = (*between, *norm.consumed)
    if norm.mean is None:
        if norm.is_late and _is_difference(centered):
            return
        norm = replace(norm, input=centered)
    if is_rounded(norm.factor, 1, norm.input):
        yield replace(norm, scale=scale, consumed=consumed)
    elif scale is not None and is_rounded(number(scale) or 0.0, norm.factor, norm.input):
        yield replace(norm, consumed=consumed)


class FuseFactoredNormalization(Pattern[Normalization]):
    """x * f + (bias - mean(x) * f) -> layer_norm(x, scale, bias) [f = scale / sqrt(...)]"""

    name = "fuse-factored-normalization"
    roots = (AddOp,)
    ranked = True

    def match(self, op: AddOp) -> Match[Normalization] | None:
        if not is_precise(op.result):
            return None
        for scaled, shift in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            product, rest = producer(scaled, MulOp), producer(shift, SubOp)
            if product is None or rest is None:
                continue
            for x, factor in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
                found = _factored(x, factor, rest)
                if found is not None and x.type == op.result.type:
                    return Match((op, product, rest, *found.consumed), "x and its mean", found)
        return None

    def rewrite(self, match: Match[Normalization], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, _layer_norm(match.data, rewriter))


def _factored(x: SSAValue, factor: SSAValue, rest: SubOp) -> Normalization | None:
    """The normalization if `rest` is bias - mean(x) * factor, and the factor scale / sqrt(...)."""
    shift, product = producer(rest.rhs, MulOp), producer(factor, MulOp)
    if shift is None or product is None or factor not in shift.operands:
        return None
    middle = shift.lhs if shift.rhs is factor else shift.rhs
    for inverse, scale in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        norm = inverse_of(inverse)
        if norm is None or norm.input is not x or norm.mean is not middle:
            continue
        if all(_is_parameter(value, x, norm.axis) for value in (scale, rest.lhs)):
            consumed = (shift, product, *norm.consumed)
            return replace(norm, scale=scale, bias=rest.lhs, consumed=consumed)
    return None


def _may_scale(value: SSAValue | None, norm: Normalization) -> bool:
    return value is None or _is_parameter(value, norm.input, norm.axis)


def _is_parameter(value: SSAValue, x: SSAValue, axis: int) -> bool:
    """
    True if `value` broadcasts to the normalized dimensions of `x`; a constant, which is no sum with
    another path, to all of them.
    """
    dims = dims_of(x)
    own = dims if _is_constant(value) else dims[axis:]
    if element_type(value) != element_type(x) or rank_of(value) > len(own):
        return False
    return broadcast([own, dims_of(value)]) == own


def _is_constant(value: SSAValue) -> bool:
    """True for a constant, also in another shape."""
    return isinstance(_source(value).owner, ConstantOp)


def _source(value: SSAValue) -> SSAValue:
    """The value in front of a reshape."""
    reshape = producer(value, ReshapeOp)
    return value if reshape is None else reshape.input


def _hides_signs(value: SSAValue) -> bool:
    """True for a constant without a -0: added to -0, it gives the same as added to 0."""
    found = constant_values(_source(value))
    return found is not None and not (np.signbit(found[0]) & (found[0] == 0)).any()


def _layer_norm(norm: Normalization, rewriter: Rewriter) -> LayerNormOp:
    scale = norm.scale
    if scale is None:
        sizes = constants(dims_of(norm.input)[norm.axis :])
        assert sizes is not None
        ones = np.ones(sizes, numpy_dtype(element_type(norm.input)))
        scale = rewriter.add(ConstantOp.of(ones)).result
    return LayerNormOp(
        norm.input,
        scale,
        norm.bias,
        norm.epsilon,
        norm.axis,
        uncentered=norm.mean is None,
        late_epsilon=norm.is_late,
    )


Found: TypeAlias = tuple[LayerNormOp, SSAValue]
"""A normalization, and the parameter that its result meets."""


class ScaleNormalization(Pattern[Found]):
    """layer_norm(x, 1) * s -> layer_norm(x, s) [s along the normalized dimensions; used once]"""

    name = "scale-normalization"
    roots = (MulOp,)
    ranked = True

    def match(self, op: MulOp) -> Match[Found] | None:
        found = _normalized(op)
        return None if found is None else Match((op, found[0]), "it has no scale yet", found)

    def rewrite(self, match: Match[Found], rewriter: Rewriter) -> None:
        norm, parameter = match.data
        rewriter.replace(match.root, _with(norm, parameter, None))


class ShiftNormalization(Pattern[Found]):
    """layer_norm(x, s) + b -> layer_norm(x, s, b) [b along the normalized dimensions; used once]"""

    name = "shift-normalization"
    roots = (AddOp,)
    ranked = True

    def match(self, op: AddOp) -> Match[Found] | None:
        found = _normalized(op)
        return None if found is None else Match((op, found[0]), "it has no bias yet", found)

    def rewrite(self, match: Match[Found], rewriter: Rewriter) -> None:
        norm, parameter = match.data
        rewriter.replace(match.root, _with(norm, norm.scale, parameter))


def _normalized(op: MulOp | AddOp) -> Found | None:
    """The normalization that only `op` uses, and the parameter, for which it has a place."""
    if not is_precise(op.result):
        return None
    for value, parameter in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        norm = producer(value, LayerNormOp)
        if norm is None or not value.has_one_use() or not _has_place(norm, op, parameter):
            continue
        if value.type == op.result.type and _is_parameter(parameter, value, norm.axis.data):
            return norm, parameter
    return None


def _has_place(norm: LayerNormOp, op: MulOp | AddOp, parameter: SSAValue) -> bool:
    """
    True if there is no bias yet, or zeros whose loss shows nowhere; for a scale, if there are ones
    besides.
    """
    if isinstance(op, MulOp) and number(norm.scale) != 1:
        return False
    if norm.bias is None:
        return True
    bias = number(norm.bias)
    if bias is None or bias != 0:
        return False
    # It makes 0 of -0, and so does what is added next; but -0 changes nothing.
    added = parameter if isinstance(op, AddOp) else _added(op.result)
    return bool(np.signbit(bias)) or (added is not None and _hides_signs(added))


def _added(value: SSAValue) -> SSAValue | None:
    """What is added to a value, if that is its only use."""
    add = use.operation if (use := value.first_use) is not None else None
    if not value.has_one_use() or not isinstance(add, AddOp):
        return None
    return add.rhs if add.lhs is value else add.lhs


def _with(norm: LayerNormOp, scale: SSAValue, bias: SSAValue | None) -> LayerNormOp:
    return norm.with_operands([norm.input, scale, *([] if bias is None else [bias])])


@record
class Grouped:
    """A normalization of [N, groups, ...], seen as [N, C, ...] afterwards."""

    norm: LayerNormOp
    parameter: SSAValue
    dims: tuple[Expr, ...]
    """[N, groups, C / groups, ...]"""
    parameter_dims: tuple[Expr, ...]


class MeetInGroups(Pattern[Grouped]):
    """
    reshape(layer_norm(x, 1)) * s -> reshape(layer_norm(reshape(x), s)); the same for a bias

    [normalized are groups of channels, s is constant, with numbers for channels; used only here]
    """

    name = "meet-in-groups"
    roots = (MulOp, AddOp)
    ranked = True

    def match(self, op: MulOp | AddOp) -> Match[Grouped] | None:
        if not is_precise(op.result):
            return None
        for value, parameter in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            reshape = producer(value, ReshapeOp)
            norm = producer(reshape.input, LayerNormOp) if reshape is not None else None
            if reshape is None or norm is None or value.type != op.result.type:
                continue
            if not (value.has_one_use() and norm.result.has_one_use()):
                continue
            found = _grouped(norm, parameter, reshape.dims.data)
            if found is not None and _has_place(norm, op, parameter):
                return Match((op, reshape, norm), "parameters of channels in groups", found)
        return None

    def rewrite(self, match: Match[Grouped], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        norm, add = found.norm, rewriter.add
        parameter = add(ReshapeOp(found.parameter, found.parameter_dims)).result
        x = add(ReshapeOp(norm.input, found.dims)).result
        if isinstance(op, MulOp):
            scale, bias = parameter, None
        elif dims_of(norm.input) == found.dims:
            scale, bias = norm.scale, parameter
        else:
            scale, bias = add(scalar(1.0, element_type(x))).result, parameter
        operands = [x, scale, *([] if bias is None else [bias])]
        new = add(norm.with_operands(operands, {"axis": IntAttr(2)}))
        rewriter.replace(op, ReshapeOp(new.result, dims_of(op.results[0])))


def _grouped(norm: LayerNormOp, parameter: SSAValue, dims: Sequence[Expr]) -> Grouped | None:
    """How a parameter of [N, C, ...], which has the shape `dims`, meets [N, groups, C / groups]."""
    own = dims_of(norm.input)
    if norm.axis.data != 2 or len(dims) < 2 or own[0] != dims[0]:
        return None
    if not _is_constant(parameter) or rank_of(parameter) > len(dims):
        return None
    groups, channels = own[1].value, dims[1].value
    if not groups or not channels or channels % groups:
        return None
    one = Expr.const(1)
    first, numbers, *rest = (*[one] * (len(dims) - rank_of(parameter)), *dims_of(parameter))
    if first != 1:
        return None
    inside = [Expr.const(groups), Expr.const(channels // groups)]
    apart = (dims[0], *inside, *dims[2:])
    if own != apart and number(norm.scale) != 1:
        return None
    split = [one, one] if numbers == 1 else inside
    return Grouped(norm, parameter, apart, (*split, *rest))


class FuseNormPass(PatternPass):
    """
    Layer normalization as exporters spell it, as one op.

    With mean(x) = sum(x) / n over the last dimensions (kept as ones; n their number of elements)
    and d = x - mean(x):

    - d / sqrt(mean(d * d) + e), d * (1 / sqrt(mean(d * d) + e)) -> layer_norm(x, 1) {epsilon = e}
    - d * s / sqrt(mean(d * d) + e), d * (1 / sqrt(mean(d * d) + e) * s) -> layer_norm(x, s)
    - x * f + (b - mean(x) * f), f = s / sqrt(mean(d * d) + e) -> layer_norm(x, s, b)
    - x / sqrt(mean(x * x) + e), x / (sqrt(mean(x * x)) + e) -> layer_norm(x, 1) {uncentered}, and
      {late_epsilon} in the second; the same with a scale and by reciprocals [e >= 0; numbers may be
      anywhere, as in x * sqrt(n) / sqrt(sum(x * x)), if they make a mean of the sum; the second x
      is not centered]
    - layer_norm(x, 1) * s -> layer_norm(x, s); layer_norm(x, s) + b -> layer_norm(x, s, b)
      [used only here]
    - reshape(layer_norm(x, 1)) * s -> reshape(layer_norm(reshape(x), s)); the same with + b
      [groups of channels, [N, groups, ...], become [N, groups, C / groups, ...]; s and b constant,
      with numbers for the channels of [N, C, ...]; used only here]

    [f32 or f64; s and b have no other dimensions than the normalized ones, or are constants, such
    as those of the channels of an instance normalization]. Roots may be powers of 1 / 2 and -1 / 2,
    and squares those of -d or abs(d). The op computes mean and variance at least as exactly as the
    formula does. A bias of zeros counts as none where the next to be added is a constant without
    -0: both make 0 of -0. One of -0 always does.
    """

    name = "fuse-norm"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            FuseNormalization(),
            FuseFactoredNormalization(),
            ScaleNormalization(),
            ShiftNormalization(),
            MeetInGroups(),
        ]
