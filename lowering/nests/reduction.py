"""Reductions, one result element (or line) at a time; sums of floats accumulate in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.enums import (
    CumulativeKind,
    ExtremumKind,
    PoolKind,
    Predicate,
    ReduceKind,
)
from lowerdeck.dialects.core.linear import LayerNormOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, is_float, is_unsigned
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor
from lowerdeck.lowering.nests.taps import first_of, larger_one, least, window_count, window_range


def sum_type(element: Attribute) -> Attribute:
    """The accumulation type of sums of an element type."""
    return f64 if is_float(element) else element


def _start(b: KernelBuilder, kind: ReduceKind, element: Attribute) -> SSAValue:
    if kind == ReduceKind.MAX:
        return scalars.lowest(b, element)
    if kind == ReduceKind.MIN:
        return scalars.highest(b, element)
    return scalars.constant(b, int(kind == ReduceKind.PROD), sum_type(element))


def _combine(
    b: KernelBuilder, kind: ReduceKind, total: SSAValue, value: SSAValue, element: Attribute
) -> SSAValue:
    """`total` combined with one more element."""
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        choose = scalars.maximum if kind == ReduceKind.MAX else scalars.minimum
        # In this order: whether the second one is NaN is not asked, and of equal ones it stays.
        return choose(b, scalars.widen(b, value), total, element)
    wide = scalars.cast(b, value, element, sum_type(element))
    return (scalars.mul if kind == ReduceKind.PROD else scalars.add)(b, total, wide)


def _result(b: KernelBuilder, kind: ReduceKind, total: SSAValue, element: Attribute) -> SSAValue:
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        return scalars.narrow(b, total, element)
    return scalars.cast(b, total, sum_type(element), element)


@anchor(ReduceOp)
def lower_reduce(k: KernelLowering, op: ReduceOp) -> None:
    """A loop nest over the reduced dimensions for each result element."""
    with k.builder.nest(dims_of(op.result), parallel=True) as at:
        k.finish(op, at, _reduced(k, op, at))


def _reduced(k: KernelLowering, op: ReduceOp, at: Index) -> SSAValue:
    """An element of the result."""
    b, dims, axes = k.builder, dims_of(op.input), ints(op.axes)
    element, kind = element_type(op.input), op.kind.data
    if not axes:
        return k.element(op.input, at)
    keep = bool(op.keep_dims.value.data)

    def combine(inner: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value = k.element(op.input, _merge(at, inner, axes, len(dims), keep))
        return [_combine(b, kind, values[0], value, element)]

    bounds = [(Expr.const(0), dims[axis]) for axis in axes]
    total = b.carry_nest(bounds, [_start(b, kind, element)], combine)[0]
    return _result(b, kind, total, element)


def _merge(at: Index, inner: Index, axes: Sequence[int], rank: int, keep: bool) -> list[Expr]:
    """The input's index: `inner` along the reduced axes, the result's elsewhere."""
    reduced, kept = iter(inner), iter(at)
    index: list[Expr] = []
    for axis in range(rank):
        if axis in axes:
            index.append(next(reduced))
            if keep:
                next(kept)
        else:
            index.append(next(kept))
    return index


@anchor(ArgReduceOp)
def lower_arg_reduce(k: KernelLowering, op: ArgReduceOp) -> None:
    """Carry the best element and its index; NaN is better than any number."""
    b = k.builder
    with b.nest(dims_of(op.result), parallel=True) as at:
        start = [arg_element(k, op, at, Expr.const(0)), b.integer(0, i64)]

        def step(position: Expr, values: Sequence[SSAValue], at: Index = at) -> Sequence[SSAValue]:
            return arg_step(k, op, at, position, values)

        k.finish(op, at, b.carry(dims_of(op.input)[op.axis.data], start, step, 1)[1])


def arg_element(k: KernelLowering, op: ArgReduceOp, at: Index, position: Expr) -> SSAValue:
    """An element of the line that the result at an index is about."""
    keep = bool(op.keep_dims.value.data)
    index = _merge(at, [position], [op.axis.data], len(dims_of(op.input)), keep)
    return scalars.widen(k.builder, k.element(op.input, index))


def arg_step(
    k: KernelLowering, op: ArgReduceOp, at: Index, position: Expr, values: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """The best element so far and its index, after one more."""
    b, (best, where) = k.builder, values
    value = arg_element(k, op, at, position)
    wins = is_better(b, op, value, best)
    return [
        b.add(arith.SelectOp(wins, value, best)),
        b.add(arith.SelectOp(wins, b.as_integer(position), where)),
    ]


def is_better(
    b: KernelBuilder, op: ArgReduceOp, value: SSAValue, best: SSAValue, *, or_equal: bool = True
) -> SSAValue:
    """
    True if a value wins over the best one before it. Equal ones do if the last is asked for, unless
    `or_equal` is False.
    """
    element, last = element_type(op.input), bool(op.last_index.value.data) and or_equal
    if op.kind.data == ExtremumKind.MAX:
        predicate = Predicate.GE if last else Predicate.GT
    else:
        predicate = Predicate.LE if last else Predicate.LT
    wins = scalars.compare(b, predicate, value, best, element)
    return _or_first_nan(b, wins, value, best, last=last) if is_float(element) else wins


def _or_first_nan(
    b: KernelBuilder, wins: SSAValue, value: SSAValue, best: SSAValue, *, last: bool
) -> SSAValue:
    """A NaN wins over numbers, and over an earlier NaN if the last one is requested."""
    is_nan = b.add(arith.CmpfOp(value, value, "uno"))
    if last:
        return b.add(arith.OrIOp(wins, is_nan))
    number = b.add(arith.CmpfOp(best, best, "ord"))
    return b.add(arith.OrIOp(wins, b.add(arith.AndIOp(is_nan, number))))


@anchor(SoftmaxOp, accumulating=True)
def lower_softmax(k: KernelLowering, op: SoftmaxOp) -> None:
    """
    Three passes over each line: maximum; exponentials, which the output keeps unless their
    logarithms are asked for, and their sum; quotients, or differences to its logarithm.
    """
    b, dims, axis = k.builder, dims_of(op.input), op.axis.data
    element = element_type(op.input)
    with b.nest([*dims[:axis], *dims[axis + 1 :]], parallel=True) as at:

        def place(position: Expr, at: Index = at) -> Index:
            return [*at[:axis], position, *at[axis:]]

        def value_at(position: Expr) -> SSAValue:
            return scalars.widen(b, k.element(op.input, place(position)))

        def larger(position: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            # NaN makes the sum NaN, so the maximum may skip it.
            value = value_at(position)
            is_larger = scalars.compare(b, "gt", value, values[0], element)
            return [b.add(arith.SelectOp(is_larger, value, values[0]))]

        top = b.carry(dims[axis], [scalars.lowest(b, element)], larger)[0]

        def difference_at(position: Expr) -> SSAValue:
            return scalars.rounded(b, scalars.sub(b, value_at(position), top), element)

        def add_exponential(position: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            power = scalars.exp_at_most_one(b, difference_at(position))
            term = scalars.narrow(b, power, element)
            if not op.is_log:
                b.store(term, k.outputs[0], place(position))
            return [scalars.add(b, values[0], scalars.cast(b, term, element, f64))]

        total = b.carry(dims[axis], [b.floating(0.0, f64)], add_exponential)[0]
        sum_ = scalars.cast(b, total, f64, element)
        if op.is_log:
            log = scalars.rounded(b, b.add(math.LogOp(scalars.widen(b, sum_))), element)
            with b.loop(dims[axis]) as position:
                result = scalars.sub(b, difference_at(position), log)
                k.finish(op, place(position), scalars.narrow(b, result, element))
            return
        divide = _divider(b, sum_, element)
        with b.loop(dims[axis]) as position:
            where = place(position)
            k.finish(op, where, divide(b.load(k.outputs[0], where)))


def _divider(
    b: KernelBuilder, total: SSAValue, element: Attribute
) -> Callable[[SSAValue], SSAValue]:
    """
    The division by a sum: for f32 a multiplication by the reciprocal. Quotients of half precision
    are those of f32, rounded: it has over twice as many bits.
    """
    if element == f32:
        factor = b.add(arith.DivfOp(b.floating(1.0, f32), total))
        return lambda value: scalars.mul(b, value, factor)
    if scalars.compute_type(element) == f32:
        wide = scalars.widen(b, total)
        return lambda value: scalars.narrow(
            b, b.add(arith.DivfOp(scalars.widen(b, value), wide)), element
        )
    total = scalars.cast(b, total, element, f64)

    def divide(value: SSAValue) -> SSAValue:
        quotient = b.add(arith.DivfOp(scalars.cast(b, value, element, f64), total))
        return scalars.cast(b, quotient, f64, element)

    return divide


@anchor(LayerNormOp)
def lower_layer_norm(k: KernelLowering, op: LayerNormOp) -> None:
    """
    Mean, then variance around it, then the normalized elements. Sums are computed in f64, f32
    elements in f32 and all others in f64.
    """
    b, dims, axis = k.builder, dims_of(op.input), op.axis.data
    element = element_type(op.input)
    is_centered = op.uncentered is None
    inner = [(Expr.const(0), dim) for dim in dims[axis:]]
    type_ = f32 if element == f32 else f64
    with b.nest(dims[:axis], parallel=True) as at:
        count = b.add(arith.SIToFPOp(b.as_integer(product(dims[axis:])), f64))
        zero = b.floating(0.0, f64)

        def value_at(where: Sequence[Expr], at: Index = at) -> SSAValue:
            return scalars.cast(b, k.element(op.input, [*at, *where]), element, type_)

        def add_value(where: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [scalars.add(b, values[0], scalars.cast(b, value_at(where), type_, f64))]

        mean = None
        if is_centered:
            total = b.carry_nest(inner, [zero], add_value)[0]
            mean = scalars.cast(b, b.add(arith.DivfOp(total, count)), f64, type_)

        def difference_at(
            where: Sequence[Expr],
            value_at: Callable[[Sequence[Expr]], SSAValue] = value_at,
            mean: SSAValue | None = mean,
        ) -> SSAValue:
            value = value_at(where)
            return value if mean is None else scalars.sub(b, value, mean)

        def add_square(where: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            difference = difference_at(where)
            square = scalars.mul(b, difference, difference)
            return [scalars.add(b, values[0], scalars.cast(b, square, type_, f64))]

        squares = b.carry_nest(inner, [zero], add_square)[0]
        variance = b.add(arith.DivfOp(squares, count))
        epsilon = b.floating(op.epsilon.value.data, f64)
        if op.late_epsilon is None:
            deviation = b.add(math.SqrtOp(scalars.add(b, variance, epsilon)))
        else:
            deviation = scalars.add(b, b.add(math.SqrtOp(variance)), epsilon)
        reciprocal = b.add(arith.DivfOp(b.floating(1.0, f64), deviation))
        factor = scalars.cast(b, reciprocal, f64, type_)
        with b.nest(dims[axis:]) as where:
            index = [*at, *where]
            value = scalars.mul(b, difference_at(where), factor)
            for parameter, combine in ((op.scale, scalars.mul), (op.bias, scalars.add)):
                if parameter is not None:
                    operand = k.operand(parameter, index, dims)
                    value = combine(b, value, scalars.cast(b, operand, element, type_))
            k.finish(op, index, scalars.cast(b, value, type_, element))


@anchor(CumulativeOp)
def lower_cumulative(k: KernelLowering, op: CumulativeOp) -> None:
    """Carry the running value along each line."""
    b, dims, axis = k.builder, dims_of(op.input), op.axis.data
    element = element_type(op.input)
    is_sum = op.kind.data == CumulativeKind.SUM
    kind = ReduceKind.SUM if is_sum else ReduceKind.PROD
    with b.nest([*dims[:axis], *dims[axis + 1 :]], parallel=True) as at:

        def step(position: Expr, values: Sequence[SSAValue], at: Index = at) -> Sequence[SSAValue]:
            if op.reverse.value.data:
                position = dims[axis] - 1 - position
            index = [*at[:axis], position, *at[axis:]]
            following = _combine(b, kind, values[0], k.element(op.input, index), element)
            running = values[0] if op.exclusive.value.data else following
            k.finish(op, index, _result(b, kind, running, element))
            return [following]

        # A sum of -0 alone is -0; one of nothing is 0.
        starts_at_none = is_sum and is_float(element) and not op.exclusive.value.data
        start = b.floating(-0.0, sum_type(element)) if starts_at_none else _start(b, kind, element)
        b.carry(dims[axis], [start], step)


@anchor(PoolOp)
def lower_pool(k: KernelLowering, op: PoolOp) -> None:
    """A loop nest over each window, clipped to the input."""
    b, dims, kernel = k.builder, dims_of(op.input), op.kernel.data
    element = element_type(op.input)
    is_max = op.kind.data == PoolKind.MAX
    kind = ReduceKind.MAX if is_max else ReduceKind.SUM
    strides, dilations = ints(op.strides), ints(op.dilations)
    begin, end = op.pads_begin.data, op.pads_end.data
    with b.nest(dims_of(op.result), parallel=True) as at:
        bounds = [
            window_range(at[d + 2], kernel[d], dims[d + 2], strides[d], dilations[d], begin[d], e)
            for d, e in enumerate(end)
        ]

        def element_under(taps: Sequence[Expr], at: Index = at) -> SSAValue:
            where = [
                at[d + 2] * strides[d] + tap * dilations[d] - begin[d] for d, tap in enumerate(taps)
            ]
            return k.element(op.input, [*at[:2], *where])

        def combine(taps: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = element_under(taps)
            if is_max:
                return [larger_one(b, op, values[0], scalars.widen(b, value))]
            return [_combine(b, kind, values[0], value, element)]

        def keep_nan(taps: Sequence[Expr], values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [scalars.unless_nan(b, scalars.widen(b, element_under(taps)), values[0])]

        start = least(b, op) if is_max else _start(b, kind, element)
        total = b.carry_nest(bounds, [start], combine)[0]
        if op.keeps_first.value.data:
            total = b.carry_nest(first_of(bounds), [total], keep_nan)[0]
        if op.kind.data == PoolKind.AVERAGE:
            count = b.as_integer(window_count(op, at, bounds))
            total = _divide(b, total, count, sum_type(element))
        k.finish(op, at, _result(b, kind, total, element))


def _divide(b: KernelBuilder, total: SSAValue, count: SSAValue, element: Attribute) -> SSAValue:
    if is_float(element):
        return b.add(arith.DivfOp(total, scalars.cast(b, count, i64, element)))
    divide = arith.DivUIOp if is_unsigned(element) else arith.DivSIOp
    return b.add(divide(total, scalars.cast(b, count, i64, element)))
