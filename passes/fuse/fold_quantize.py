"""`fold-quantize`: what is quantized again is computed in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import (
    AddOp,
    CastOp,
    MaxOp,
    MinOp,
    MulOp,
    RectifyOp,
    RoundOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind, Rounding
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp, TransposeOp, ints
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f32,
    i32,
    is_integer,
    is_unsigned,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.affine import linear_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import Array, broadcast_constant, is_finite, number

_STEP = 2.0**-15
"""What constants that become integers may move a result by, in its last digit: with the roundings
of sum, factor and product to f32, results differ from exact ones by less than 1e-4 before they are
rounded."""

_MOST_STEPS = 256
"""Of what is quantized: floats of more digits are rounded by more than that."""

_LARGEST = 1 << 30
"""Of a shift, and of the sum that it is added to."""

_SUM_LIMIT = 0.99 * (1 << 31)
"""Of all products and the shift together, roundings aside."""

_TRIALS = 1024
"""Numbers that are tried as the common factor of scales."""

_DEEPEST = 12
"""Ops from a quantized value to the integers that it is made of."""

_MOST_TERMS = 4


@record
class Term:
    """A part of a sum: integers, up to a size, times a scale."""

    integers: SSAValue
    size: int
    scale: Array


@record
class Sum:
    """Terms and a constant; scales and shift have a dimension for each of the value."""

    terms: tuple[Term, ...]
    shift: Array


def _most(value: SSAValue) -> int | None:
    """No integer of a value is larger, or less than its negative; None if that is not known."""
    element, op = element_type(value), value.owner
    if bit_width(element) < 32:
        return 1 << bit_width(element) - (0 if is_unsigned(element) else 1)
    if isinstance(op, ReduceOp) and op.kind.data is ReduceKind.SUM:
        wide, count = producer(op.input, CastOp), _terms_of(op)
        is_of_bytes = wide is not None and bit_width(element_type(wide.input)) == 8
        return count << 8 if is_of_bytes and count is not None else None
    if not isinstance(op, ConvOp | MatmulOp) or (isinstance(op, ConvOp) and op.bias is not None):
        return None
    if any(bit_width(element_type(factor)) > 8 for factor in op.factors):
        return None
    dims = dims_of(op.weight)[1:] if isinstance(op, ConvOp) else dims_of(op.lhs)[-1:]
    sizes = [dim.value for dim in dims]
    return None if None in sizes else math.prod(size or 0 for size in sizes) << 16


def _sum_of(value: SSAValue, depth: int = _DEEPEST) -> Sum | None:
    """A value in f32 as a sum of scaled integers of its own shape, if it is one."""
    op, one = value.owner, np.ones([1] * rank_of(value))
    if depth == 0 or element_type(value) != f32:
        return None
    if isinstance(op, CastOp) and is_integer(element := element_type(op.input)):
        if bit_width(element) > 32 or (bit_width(element) == 32 and is_unsigned(element)):
            return None
        size = _most(op.input)
        return Sum((Term(op.input, size or 1 << 31, one),), 0 * one)
    if isinstance(op, AddOp | SubOp) and not any(
        isinstance(operand.owner, ConstantOp) for operand in op.operands
    ):
        return _total(op, depth)
    chain = linear_of(op)
    if chain is None or dims_of(chain.input) != dims_of(value):
        return None
    if (inner := _sum_of(chain.input, depth - 1)) is None:
        return None
    scale = one if chain.affine.scale is None else chain.affine.scale
    shift = 0 * one if chain.affine.shift is None else chain.affine.shift
    terms = tuple(Term(t.integers, t.size, t.scale * scale) for t in inner.terms)
    return Sum(terms, inner.shift * scale + shift)


def _total(op: AddOp | SubOp, depth: int) -> Sum | None:
    parts: list[Sum] = []
    for operand in op.operands:
        part = _sum_of(operand, depth - 1) if dims_of(operand) == dims_of(op.result) else None
        if part is None:
            return None
        parts.append(part)
    left, right = parts
    sign = -1.0 if isinstance(op, SubOp) else 1.0
    terms = (*left.terms, *(Term(t.integers, t.size, sign * t.scale) for t in right.terms))
    found = Sum(terms, left.shift + sign * right.shift)
    return found if len(terms) <= _MOST_TERMS else None


@record
class Steps:
    """Where floats become integers: clip(round(value * scale + shift) + zero, low, high)."""

    value: SSAValue
    scale: float
    shift: float
    zero: int
    low: int
    high: int
    ops: tuple[Operation, ...]

    def of(self, total: Sum) -> Sum:
        """What is rounded, of the sum that a value is."""
        terms = tuple(Term(t.integers, t.size, t.scale * self.scale) for t in total.terms)
        return Sum(terms, total.shift * self.scale + self.shift)


@dataclass
class _Walk:
    """From a cast to integers back to what is quantized: what the ops so far do to a value."""

    low: float
    high: float
    zero: float = 0.0
    scale: float = 1.0
    shift: float = 0.0
    is_rounded: bool = False

    def step(self, op: object) -> SSAValue | None:
        """What an op of the walk reads; None where it ends."""
        if isinstance(op, RoundOp) and not self.is_rounded:
            self.is_rounded = True
            return op.input
        if isinstance(op, RectifyOp) and self.is_rounded:
            self._limit(0.0, is_least=True)
            return op.input
        if isinstance(op, MaxOp | MinOp):
            limit = number(op.rhs)
            if limit is None or dims_of(op.lhs) != dims_of(op.result):
                return None
            self._limit(limit, is_least=isinstance(op, MaxOp))
            return op.lhs
        return self._linear(op)

    def _linear(self, op: object) -> SSAValue | None:
        chain = linear_of(op)
        if chain is None or dims_of(chain.input) != dims_of(chain.ops[0].results[0]):
            return None
        if any(part is not None and part.size != 1 for part in chain.affine.parts):
            return None
        scale, shift = (
            default if part is None else float(part.item())
            for part, default in zip(chain.affine.parts, (1.0, 0.0), strict=True)
        )
        if not self.is_rounded:
            self.zero += shift
            return chain.input if scale == 1 else None
        if not scale > 0:
            return None
        self.shift += shift * self.scale
        self.scale *= scale
        return chain.input

    def _limit(self, limit: float, *, is_least: bool) -> None:
        """The walk has come to a maximum or minimum: one of what is rounded, or has been."""
        if self.is_rounded:
            limit = float(np.rint(limit * self.scale + self.shift))
        limit = min(max(limit + self.zero, self.low), self.high)
        self.low, self.high = (limit, self.high) if is_least else (self.low, limit)


def _steps(op: CastOp) -> Steps | None:
    """How a cast to integers ends a quantization, if it does."""
    to = op.to
    if not is_integer(to) or bit_width(to) > 16 or element_type(op.input) != f32:
        return None
    limits = np.iinfo(numpy_dtype(to))
    walk, value, ops = _Walk(float(limits.min), float(limits.max)), op.input, list[Operation]()
    while len(ops) < _DEEPEST and (before := walk.step(value.owner)) is not None:
        assert isinstance(value.owner, Operation)
        ops.append(value.owner)
        value = before
    numbers = (walk.zero, walk.low, walk.high)
    is_whole = all(each.is_integer() and abs(each) < 1 << 16 for each in numbers)
    if not walk.is_rounded or not is_whole or walk.high - walk.low >= _MOST_STEPS:
        return None
    zero, low, high = map(int, numbers)
    return Steps(value, walk.scale, walk.shift, zero, low, high, (op, *ops))


@record
class Factor:
    """(terms * multipliers + shift) * factor, all integers but the factor."""

    multipliers: tuple[Array | None, ...]
    shift: Array
    factor: Array


def _factor(total: Sum) -> Factor | None:
    """A sum of integers in i32, times a number, that is the sum but for less than a `_STEP`."""
    scales = [term.scale for term in total.terms]
    largest = max(float(np.abs(scale).max()) for scale in scales)
    if not is_finite(*scales, total.shift) or not 2.0**-40 < largest < 2.0**40:
        return None
    found = _of_one(total) if len(scales) == 1 else None
    return found if found is not None else _of_several(total)


def _of_one(total: Sum) -> Factor | None:
    (term,) = total.terms
    if (np.abs(term.scale) < 2.0**-100).any():
        return None
    exact = total.shift / term.scale
    shift = np.rint(exact)
    if (np.abs((exact - shift) * term.scale) > _STEP).any() or np.abs(shift).max() > _LARGEST:
        return None
    if shift.any() and term.size > _LARGEST:
        return None
    return Factor((None,), shift, term.scale)


def _of_several(total: Sum) -> Factor | None:
    """
    Of bytes: their scales as multiples of one number, of which the largest is an integer, so that
    one is looked for of which the others nearly are.
    """
    scales = np.array([term.scale.item() for term in total.terms if term.scale.size == 1])
    sizes = np.array([term.size for term in total.terms], np.float64)
    if scales.size < sizes.size or sizes.max() > 256 or total.shift.size != 1:
        return None
    shift, largest = float(total.shift.item()), float(np.abs(scales).max())
    most = math.floor(_SUM_LIMIT / (float(np.abs(scales) @ sizes + abs(shift)) / largest))
    if most <= 2 * _TRIALS:
        return None
    units = (largest / np.arange(most - _TRIALS, most)).astype(np.float32).astype(np.float64)
    values = np.append(scales, shift)[:, None] / units
    errors = np.append(sizes, 1.0) @ np.abs(values - np.rint(values)) * units
    best = int(np.argmin(errors))
    if errors[best] > _STEP:
        return None
    *multipliers, added = np.rint(values[:, best])
    return Factor(tuple(map(np.atleast_1d, multipliers)), np.array([added]), units[[best]])


@record
class Quantized:
    """A quantized value: the integers that it is made of, and how."""

    steps: Steps
    total: Sum
    factor: Factor
    to: Attribute


def _quantized(steps: Steps, value: SSAValue, to: Attribute) -> Quantized | None:
    if (total := _sum_of(value)) is None:
        return None
    total = steps.of(total)
    factor = _factor(total)
    return None if factor is None else Quantized(steps, total, factor, to)


def _is_kept(found: Quantized) -> bool:
    """True if bytes are quantized as they were."""
    if len(found.total.terms) != 1 or (term := found.total.terms[0]).size > 256:
        return False
    steps, limits = found.steps, np.iinfo(numpy_dtype(found.to))
    is_whole = (steps.low, steps.high) == (limits.min, limits.max)
    is_same = element_type(term.integers) == found.to and is_whole
    moved = found.factor.shift + steps.zero
    return is_same and not moved.any() and bool((np.abs(term.scale - 1) * 256 < _STEP).all())


def _built(found: Quantized, rewriter: Rewriter) -> SSAValue:
    """The integers, in ops before the root of a match."""
    if _is_kept(found):
        return found.total.terms[0].integers

    def add(op: CoreOp) -> SSAValue:
        return rewriter.add(op).results[0]

    def integers(numbers: Array, like: SSAValue) -> SSAValue:
        return add(broadcast_constant(numbers, like))

    total: SSAValue | None = None
    for term, multiplier in zip(found.total.terms, found.factor.multipliers, strict=True):
        value = term.integers
        if element_type(value) != i32:
            value = add(CastOp(value, i32))
        if multiplier is not None:
            value = add(MulOp(value, integers(multiplier, value)))
        total = value if total is None else add(AddOp(total, value))
    assert total is not None
    if found.factor.shift.any():
        total = add(AddOp(total, integers(found.factor.shift, total)))
    multiplier = add(ConstantOp.of(_fewest(found.factor.factor)))
    steps = found.steps
    return add(
        RequantizeOp(
            Rounding.EVEN,
            total,
            multiplier,
            None,
            zero=steps.zero,
            low=steps.low,
            high=steps.high,
            to=found.to,
        )
    )


def _fewest(numbers: Array) -> Array:
    """In f32, with the fewest dimensions that broadcast alike."""
    shape = list(numbers.shape)
    while shape and shape[0] == 1:
        del shape[0]
    return numbers.reshape(shape).astype(np.float32)


class FoldQuantize(Pattern[Quantized]):
    """cast(clip(round(cast(q) * s + t) + z)) -> requantize even (q + t / s), s"""

    name = "fold-quantize"
    roots = (CastOp,)
    ranked = True

    def match(self, op: CastOp) -> Match[Quantized] | None:
        if (steps := _steps(op)) is None:
            return None
        if (found := _quantized(steps, steps.value, op.to)) is None:
            return None
        return Match(steps.ops, "integers in another scale", found)

    def rewrite(self, match: Match[Quantized], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, _built(match.data, rewriter))


class FoldQuantizedLayout(Pattern[Quantized]):
    """quantized(f(x)) -> f(quantized(x)), f reshapes and transposes"""

    name = "fold-quantized-layout"
    roots = (CastOp,)
    ranked = True

    def match(self, op: CastOp) -> Match[Quantized] | None:
        if (steps := _steps(op)) is None:
            return None
        value, moves = steps.value, list[Operation]()
        while (move := producer(value, ReshapeOp) or producer(value, TransposeOp)) is not None:
            if not value.has_one_use():
                return None
            moves.append(move)
            value = move.input
        found = _quantized(steps, value, op.to) if moves else None
        return None if found is None else Match((*steps.ops, *moves), "before it is moved", found)

    def rewrite(self, match: Match[Quantized], rewriter: Rewriter) -> None:
        value = _built(match.data, rewriter)
        moves = match.consumed[len(match.data.steps.ops) :]
        for move in reversed(moves):
            assert isinstance(move, ReshapeOp | TransposeOp)
            value = rewriter.add(move.with_operands([value])).results[0]
        rewriter.replace(match.root, value)


class FoldQuantizedConcat(Pattern[list[Quantized]]):
    """quantized(concat(x, y)) -> concat(quantized(x), quantized(y))"""

    name = "fold-quantized-concat"
    roots = (CastOp,)
    ranked = True

    def match(self, op: CastOp) -> Match[list[Quantized]] | None:
        if (steps := _steps(op)) is None:
            return None
        concat = producer(steps.value, ConcatOp)
        if concat is None or not concat.result.has_one_use():
            return None
        found = [_quantized(steps, part, op.to) for part in concat.inputs]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return Match((*steps.ops, concat), "parts in another scale", known)

    def rewrite(self, match: Match[list[Quantized]], rewriter: Rewriter) -> None:
        concat = match.consumed[-1]
        assert isinstance(concat, ConcatOp)
        parts = [_built(part, rewriter) for part in match.data]
        rewriter.replace(match.root, ConcatOp(parts, concat.axis.data))


@record
class Moved:
    """(integers + zero) * scale, with one zero point and one scale for all."""

    integers: SSAValue
    zero: int
    scale: float


def _moved(value: SSAValue) -> Moved | None:
    if (found := _sum_of(value)) is None or len(found.terms) != 1:
        return None
    (term,) = found.terms
    if term.size > 256 or term.scale.size != 1 or found.shift.size != 1:
        return None
    scale, shift = float(term.scale.item()), float(found.shift.item())
    zero = np.rint(shift / scale) if scale != 0 else math.inf
    if not abs(zero) < _MOST_STEPS or abs(zero * scale - shift) > 2.0**-20 * abs(scale):
        return None
    return Moved(term.integers, int(zero), scale)


class FoldQuantizedMove(Pattern[Moved]):
    """f((cast(q) + t) * s) -> (cast(f(q)) + t) * s, of an f that selects elements"""

    name = "fold-quantized-move"
    roots = (PoolOp, TransposeOp, ReshapeOp, SliceOp)
    ranked = True

    def match(self, op: PoolOp | TransposeOp | ReshapeOp | SliceOp) -> Match[Moved] | None:
        if isinstance(op, PoolOp) and (
            op.kind.data is not PoolKind.MAX
            or op.from_lowest.value.data
            or op.keeps_first.value.data
            or _sees_pads_alone(op)
        ):
            return None
        found = _moved(op.input)
        if found is None or (isinstance(op, PoolOp) and not found.scale > 0):
            return None
        return Match((op,), "bytes", found)

    def rewrite(self, match: Match[Moved], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        assert isinstance(op, PoolOp | TransposeOp | ReshapeOp | SliceOp)
        bytes_ = rewriter.add(op.with_operands([found.integers, *op.operands[1:]])).results[0]
        rewriter.replace(op, _scaled(bytes_, found, rewriter))


def _sees_pads_alone(op: PoolOp) -> bool:
    """True if a window may hold nothing but padding, whose maximum is no byte."""
    sides = zip(op.kernel.data, op.pads_begin.data, op.pads_end.data, strict=True)
    return any(
        None in (kernel.value, begin.value, end.value)
        or max(begin.value or 0, end.value or 0) >= (kernel.value or 0)
        for kernel, begin, end in sides
    ) or any(each != 1 for each in ints(op.dilations))


class FoldQuantizedSum(Pattern[Moved]):
    """reduce sum((cast(q) + t) * s) -> cast(reduce sum(q) + n * t) * s"""

    name = "fold-quantized-sum"
    roots = (ReduceOp,)
    ranked = True

    def match(self, op: ReduceOp) -> Match[Moved] | None:
        count = _terms_of(op)
        if op.kind.data is not ReduceKind.SUM or (found := _moved(op.input)) is None:
            return None
        if count is None or not 0 < count < _LARGEST >> 8:
            return None
        return Match((op,), "bytes", Moved(found.integers, found.zero * count, found.scale))

    def rewrite(self, match: Match[Moved], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        assert isinstance(op, ReduceOp)
        wide = rewriter.add(CastOp(found.integers, i32)).result
        total = rewriter.add(op.with_operands([wide])).results[0]
        rewriter.replace(op, _scaled(total, found, rewriter))


def _terms_of(op: ReduceOp) -> int | None:
    """How many elements are combined."""
    sizes = [dims_of(op.input)[axis].value for axis in ints(op.axes)]
    return None if None in sizes else math.prod(size or 0 for size in sizes)


def _scaled(value: SSAValue, found: Moved, rewriter: Rewriter) -> SSAValue:
    """cast(value + zero) * scale, where only the product is rounded, and sums beyond 2^24."""
    if found.zero and element_type(value) == i32:
        zero = rewriter.add(ConstantOp.of(np.array(found.zero, np.int32))).result
        value = rewriter.add(AddOp(value, zero)).result
    is_added = not found.zero or element_type(value) == i32
    value = rewriter.add(CastOp(value, f32)).result
    if not is_added:
        zero = rewriter.add(ConstantOp.of(np.array(found.zero, np.float32))).result
        value = rewriter.add(AddOp(value, zero)).result
    if found.scale != 1:
        scale = rewriter.add(ConstantOp.of(np.array(found.scale, np.float32))).result
        value = rewriter.add(MulOp(value, scale)).result
    return value


class FoldQuantizePass(PatternPass):
    """
    With bytes q, sums of products of bytes a, constants s and t, and quantized(x, z) =
    cast(clip(round(x) + z)), whose limits may be activations of x, too:

    - quantized(cast(a) * s + t, z) -> requantize even (a + t / s), s
      [t / s integers, as biases in the scale of the products are]
    - quantized(cast(q1) * s1 + cast(q2) * s2 + t, z) -> requantize even (q1 * m1 + q2 * m2 + n), u
      [u a power of two, m and n integers near s / u and t / u, whose sums an i32 holds]
    - quantized(cast(q) * s + t, z) -> q [the scale and zero point that q has]
    - quantized(f(x), z) -> f(quantized(x, z)) [f reshapes and transposes; x as above]
    - quantized(concat(x1, x2), z) -> concat(quantized(x1, z), quantized(x2, z)) [likewise]
    - f((cast(q) + t) * s) -> (cast(f(q)) + t) * s
      [f a transpose, reshape, slice, or the maximum of windows and s > 0; one s, one integer t]
    - reduce sum ((cast(q) + t) * s) -> cast(reduce sum (q) + n * t) * s [of n elements; likewise]

    In f32, with at most 256 steps. Between one product and the next no floats are left, and the
    bytes are the same on every target. They are those of the exact formula, or the neighbors where
    that is less than 1e-4 from the middle between two.
    """

    name = "fold-quantize"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            FoldQuantizedMove(),
            FoldQuantizedSum(),
            FoldQuantize(),
            FoldQuantizedLayout(),
            FoldQuantizedConcat(),
        ]
