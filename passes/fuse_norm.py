"""`fuse-norm`: layer normalization spelled out becomes one op, with scale and bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp, BinaryOp, DivOp, MulOp, SqrtOp, SubOp
from lowerdeck.dialects.core.enums import ReduceKind
from lowerdeck.dialects.core.linear import LayerNormOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import constants
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.values import is_precise, number


@dataclass(frozen=True)
class Mean:
    """sum(input) / count over the dimensions from `axis` on, which are kept as ones."""

    input: SSAValue
    axis: int
    consumed: tuple[Operation, ...]


def _mean(value: SSAValue) -> Mean | None:
    op = value.owner
    if not isinstance(op, DivOp | MulOp):
        return None
    reduce, divisor = producer(op.lhs, ReduceOp), number(op.rhs)
    if reduce is None or divisor is None or op.lhs.type != op.result.type:
        return None
    rank, axes = rank_of(reduce.input), ints(reduce.axes)
    sizes = constants(dims_of(reduce.input)[axis] for axis in axes)
    is_kept_sum = reduce.kind.data == ReduceKind.SUM and bool(reduce.keep_dims.value.data)
    if not is_kept_sum or not axes or sizes is None:
        return None
    if axes != list(range(axes[0], rank)) or not _divides(op, divisor, int(np.prod(sizes))):
        return None
    return Mean(reduce.input, axes[0], (op, reduce))


def _divides(op: DivOp | MulOp, constant: float, count: int) -> bool:
    """True if `op` divides by `count`, or multiplies with its rounded reciprocal."""
    if isinstance(op, DivOp):
        return constant == count
    return count != 0 and constant == numpy_dtype(element_type(op.result)).type(1.0 / count)


@dataclass(frozen=True)
class Normalization:
    """(input - mean) / sqrt(variance + epsilon) over the dimensions from `axis` on."""

    input: SSAValue
    axis: int
    epsilon: float
    consumed: tuple[Operation, ...]
    scale: SSAValue | None = None
    bias: SSAValue | None = None


def _deviation(value: SSAValue) -> tuple[SSAValue, Normalization] | None:
    """x - mean, and what it is divided by, if `value` is sqrt(mean((x - mean)^2) + epsilon)."""
    sqrt = producer(value, SqrtOp)
    add = producer(sqrt.input, AddOp) if sqrt is not None else None
    if sqrt is None or add is None or (epsilon := number(add.rhs)) is None or epsilon < 0:
        return None
    if add.lhs.type != add.result.type or (variance := _mean(add.lhs)) is None:
        return None
    square = producer(variance.input, MulOp)
    if square is None or square.lhs is not square.rhs:
        return None
    centered = producer(square.lhs, SubOp)
    mean = _mean(centered.rhs) if centered is not None else None
    if centered is None or mean is None or mean.axis != variance.axis:
        return None
    if mean.input is not centered.lhs:
        return None
    consumed = (sqrt, add, *variance.consumed, square, centered, *mean.consumed)
    return centered.result, Normalization(centered.lhs, mean.axis, epsilon, consumed)


def _reciprocal(value: SSAValue) -> tuple[DivOp, SSAValue] | None:
    """The op and y if `value` is 1 / y."""
    division = producer(value, DivOp)
    if division is None or number(division.lhs) != 1 or division.rhs.type != value.type:
        return None
    return division, division.rhs


class FuseNormalization(Pattern[Normalization]):
    """d / sqrt(mean(d^2) + e), d * (1 / sqrt(...)) -> layer_norm(x) [d = x - mean(x)]"""

    name = "fuse-normalization"
    roots = (DivOp, MulOp)
    ranked = True

    def match(self, op: DivOp | MulOp) -> Match[Normalization] | None:
        if not is_precise(op.result):
            return None
        if isinstance(op, DivOp):
            found = _deviation(op.rhs)
            return self._matched(op, op.lhs, found, ())
        for centered, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if (reciprocal := _reciprocal(factor)) is not None:
                division, deviation = reciprocal
                match = self._matched(op, centered, _deviation(deviation), (division,))
                if match is not None:
                    return match
        return None

    @staticmethod
    def _matched(
        op: DivOp | MulOp,
        centered: SSAValue,
        found: tuple[SSAValue, Normalization] | None,
        between: tuple[Operation, ...],
    ) -> Match[Normalization] | None:
        if found is None or found[0] is not centered or centered.type != op.result.type:
            return None
        consumed = (op, *between, *found[1].consumed)
        return Match(consumed, "mean and deviation are taken off", found[1])

    def rewrite(self, match: Match[Normalization], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, _layer_norm(match.data, rewriter))


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
        reciprocal = _reciprocal(inverse)
        found = _deviation(reciprocal[1]) if reciprocal is not None else None
        if reciprocal is None or found is None:
            continue
        norm = found[1]
        mean = _mean(middle)
        if mean is None or mean.input is not x or norm.input is not x or mean.axis != norm.axis:
            continue
        if not all(_is_parameter(value, x, norm.axis) for value in (scale, rest.lhs)):
            continue
        consumed = (shift, product, reciprocal[0], *norm.consumed)
        return Normalization(x, norm.axis, norm.epsilon, consumed, scale, rest.lhs)
    return None


def _is_parameter(value: SSAValue, x: SSAValue, axis: int) -> bool:
    """True if `value` broadcasts to the normalized dimensions of `x`."""
    dims = dims_of(x)[axis:]
    if element_type(value) != element_type(x) or rank_of(value) > len(dims):
        return False
    return broadcast([dims, dims_of(value)]) == dims


def _layer_norm(norm: Normalization, rewriter: Rewriter) -> LayerNormOp:
    scale = norm.scale
    if scale is None:
        sizes = constants(dims_of(norm.input)[norm.axis :])
        assert sizes is not None
        ones = np.ones(sizes, numpy_dtype(element_type(norm.input)))
        scale = rewriter.add(ConstantOp.of(ones)).result
    return LayerNormOp(norm.input, scale, norm.bias, norm.epsilon, norm.axis)


Found: TypeAlias = tuple[LayerNormOp, SSAValue]
"""A normalization, and the parameter that its result meets."""


class ScaleNormalization(Pattern[Found]):
    """layer_norm(x, 1) * s -> layer_norm(x, s) [s along the normalized dimensions; used once]"""

    name = "scale-normalization"
    roots = (MulOp,)
    ranked = True

    def match(self, op: MulOp) -> Match[Found] | None:
        found = _normalized(op)
        if found is None or number(found[0].scale) != 1:
            return None
        return Match((op, found[0]), "it has no scale yet", found)

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


def _normalized(op: BinaryOp) -> Found | None:
    """The normalization without bias that only `op` uses, and the parameter that it meets."""
    if not is_precise(op.result):
        return None
    for value, parameter in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        norm = producer(value, LayerNormOp)
        if norm is None or norm.bias is not None or not value.has_one_use():
            continue
        if value.type == op.result.type and _is_parameter(parameter, value, norm.axis.data):
            return norm, parameter
    return None


def _with(norm: LayerNormOp, scale: SSAValue, bias: SSAValue | None) -> LayerNormOp:
    return LayerNormOp(norm.input, scale, bias, norm.epsilon.value.data, norm.axis.data)


class FuseNormPass(PatternPass):
    """
    Layer normalization as exporters spell it, as one op.

    With mean(x) = sum(x) / n over the last dimensions (kept as ones; n their number of elements)
    and d = x - mean(x):

    - d / sqrt(mean(d * d) + e), d * (1 / sqrt(mean(d * d) + e)) -> layer_norm(x, 1) {epsilon = e}
    - x * f + (b - mean(x) * f), f = s / sqrt(mean(d * d) + e) -> layer_norm(x, s, b)
    - layer_norm(x, 1) * s -> layer_norm(x, s); layer_norm(x, s) + b -> layer_norm(x, s, b)
      [s and b have no other dimensions than the normalized ones; used only here]

    [f32 or f64]. The op computes mean and variance at least as exactly as the formula does.
    """

    name = "fuse-norm"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            FuseNormalization(),
            FuseFactoredNormalization(),
            ScaleNormalization(),
            ShiftNormalization(),
        ]
