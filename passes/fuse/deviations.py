"""Means, and roots of means of squares, as exporters spell them."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, prod, sqrt

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    DivOp,
    MulOp,
    NegOp,
    PowOp,
    SqrtOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import ReduceKind
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, numpy_dtype
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.values import number

_MOST_STEPS = 4
"""Ops with constants around a sum or a root."""


@record
class Sum:
    """The sum of `input` over the dimensions from `axis` on."""

    input: SSAValue
    axis: int
    count: int
    """The number of terms."""
    consumed: tuple[Operation, ...]

    def is_kept_in(self, value: SSAValue) -> bool:
        """True if a value has ones where sums are taken, and so meets the terms of its own sum."""
        dims = dims_of(self.input)
        ones = [Expr.const(1)] * (len(dims) - self.axis)
        return dims_of(value) == (*dims[: self.axis], *ones)


def _sum(value: SSAValue) -> Sum | None:
    """The sum that a value is, in whatever shape."""
    value, shapes = _without_reshape(value)
    reduce = producer(value, ReduceOp)
    if reduce is None or reduce.kind.data != ReduceKind.SUM:
        return None
    dims, axes = dims_of(reduce.input), ints(reduce.axes)
    sizes = constants(dims[axis] for axis in axes)
    if not axes or sizes is None or axes != list(range(axes[0], len(dims))):
        return None
    return Sum(reduce.input, axes[0], prod(sizes), (*shapes, reduce))


def _without_reshape(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    reshape = producer(value, ReshapeOp)
    return (value, []) if reshape is None else (reshape.input, [reshape])


def mean_of(value: SSAValue) -> Sum | None:
    """The sum whose mean a value is, with ones for what is summed over."""
    inner, shapes = _without_reshape(value)
    op = inner.owner
    if not isinstance(op, DivOp | MulOp):
        return None
    total, divisor = _sum(op.lhs), number(op.rhs)
    if total is None or divisor is None or op.lhs.type != op.result.type:
        return None
    if not total.is_kept_in(value) or not _divides(op, divisor, total.count):
        return None
    return replace(total, consumed=(*shapes, op, *total.consumed))


def _divides(op: DivOp | MulOp, constant: float, count: int) -> bool:
    """True if `op` divides by `count`, or multiplies with its rounded reciprocal."""
    if isinstance(op, DivOp):
        return constant == count
    return count != 0 and constant == numpy_dtype(element_type(op.result)).type(1.0 / count)


@record
class Normalization:
    """
    (input - mean) / sqrt(variance + epsilon) over the dimensions from `axis` on.

    Without a mean `input` is divided by its root mean square; with `is_late` epsilon is added to
    that. `factor` is what the divisor has besides.
    """

    input: SSAValue
    mean: SSAValue | None
    axis: int
    epsilon: float
    consumed: tuple[Operation, ...]
    is_late: bool = False
    factor: float = 1.0
    scale: SSAValue | None = None
    bias: SSAValue | None = None


def deviation_of(value: SSAValue) -> Normalization | None:
    """What has a value as its deviation: of the mean, or of 0."""
    if (power := _power(value, 0.5)) is not None:
        if (found := _variance(power[1])) is not None:
            return replace(found, consumed=(power[0], *found.consumed))
    line = _line(value)
    if line.factor <= 0 or (power := _power(line.base, 0.5)) is None:
        return None
    norm = _root_mean_square(power[1], value, line.factor, line.shift)
    return norm and replace(norm, consumed=(*line.consumed, power[0], *norm.consumed))


def inverse_of(value: SSAValue) -> Normalization | None:
    """What has the deviation of which a value is the reciprocal."""
    if (power := _power(value, -0.5)) is not None:
        found = _variance(power[1]) or _root_mean_square(power[1], value)
        return found and replace(found, consumed=(power[0], *found.consumed))
    if (power := _power(value, 0.5)) is not None:
        square = producer(power[1], DivOp)
        if square is None or number(square.lhs) != 1 or square.rhs.type != value.type:
            return None
        found = _root_mean_square(square.rhs, value)
        return found and replace(found, consumed=(power[0], square, *found.consumed))
    division = producer(value, DivOp)
    if division is None or division.rhs.type != value.type:
        return _inverse_times_number(value)
    if not (dividend := number(division.lhs)) or dividend < 0:
        return _inverse_times_number(value)
    norm = deviation_of(division.rhs)
    if norm is None or (norm.mean is not None and dividend != 1):
        return None
    factor = norm.factor / dividend
    return replace(norm, factor=factor, consumed=(division, *norm.consumed))


def _inverse_times_number(value: SSAValue) -> Normalization | None:
    """The same of a reciprocal root mean square that meets a number."""
    line = _line(value)
    if not line.consumed or line.shift or line.factor <= 0 or line.base.type != value.type:
        return None
    norm = inverse_of(line.base)
    if norm is None or norm.mean is not None:
        return None
    factor = norm.factor / line.factor
    return replace(norm, factor=factor, consumed=(*line.consumed, *norm.consumed))


def _power(value: SSAValue, exponent: float) -> tuple[Operation, SSAValue] | None:
    """The op and y if `value` is y to a power; that of 1 / 2 may be a root."""
    op = value.owner
    match op:
        case SqrtOp() if exponent == 0.5:
            return op, op.input
        case PowOp() if number(op.rhs) == exponent and op.lhs.type == value.type:
            return op, op.lhs
        case _:
            return None


@record
class _Line:
    """factor * base + shift"""

    base: SSAValue
    factor: float = 1.0
    shift: float = 0.0
    consumed: tuple[Operation, ...] = ()


def _line(value: SSAValue) -> _Line:
    """A value as a line in what has met numbers in it, in whatever shape."""
    factor, shift, consumed = 1.0, 0.0, list[Operation]()
    for _ in range(_MOST_STEPS):
        op = value.owner
        if isinstance(op, ReshapeOp):
            consumed.append(op)
            value = op.input
            continue
        if not isinstance(op, AddOp | MulOp | DivOp):
            break
        constant, base = number(op.rhs), op.lhs
        if constant is None and not isinstance(op, DivOp):
            constant, base = number(op.lhs), op.rhs
        if constant is None or base.type != value.type:
            break
        match op:
            case AddOp():
                shift += factor * constant
            case MulOp():
                factor *= constant
            case _:
                factor = factor / constant if constant else 0.0
        consumed.append(op)
        value = base
    return _Line(value, factor, shift, tuple(consumed))


def _variance(value: SSAValue) -> Normalization | None:
    """What has the variance v, if a value is v + epsilon, v = mean((x - mean(x))^2)."""
    add = producer(value, AddOp)
    if add is None or (epsilon := number(add.rhs)) is None or epsilon < 0:
        return None
    if add.lhs.type != add.result.type or (variance := mean_of(add.lhs)) is None:
        return None
    square = _square(variance.input)
    difference = None if square is None else producer(square[0], SubOp)
    if square is None or difference is None:
        return None
    for x, middle in (difference.operands, difference.operands[::-1]):
        mean = mean_of(middle)
        if mean is None or mean.input is not x or mean.axis != variance.axis:
            continue
        consumed = (add, *variance.consumed, *square[1], difference, *mean.consumed)
        return Normalization(x, middle, mean.axis, epsilon, consumed)
    return None


def _root_mean_square(
    value: SSAValue, root: SSAValue, factor: float = 1.0, shift: float = 0.0
) -> Normalization | None:
    """
    What has the deviation `factor * sqrt(value) + shift` from 0, in the shape of `root`, where the
    value is a line in a sum of squares, and one of the two shifts is 0.
    """
    line = _line(value)
    total = _sum(line.base)
    square = None if total is None else _square(total.input)
    if total is None or square is None or not total.is_kept_in(root):
        return None
    if line.factor <= 0 or min(line.shift, shift) < 0 or (line.shift and shift) or not total.count:
        return None
    spread = line.factor * total.count  # by which the mean is larger than it should be
    whole = factor * sqrt(spread)
    epsilon = shift / whole if shift else line.shift / spread
    consumed = (*line.consumed, *total.consumed, *square[1])
    return Normalization(square[0], None, total.axis, epsilon, consumed, bool(shift), whole)


def _square(value: SSAValue) -> tuple[SSAValue, list[Operation]] | None:
    """What a value is the square of, but for signs, and the ops."""
    product = producer(value, MulOp)
    if product is None or product.lhs is not product.rhs:
        return None
    base, signs = unsigned(product.lhs)
    return base, [product, *signs]


def unsigned(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """What a value is but for signs, and the ops that change them."""
    signs: list[Operation] = []
    while isinstance(op := value.owner, AbsOp | NegOp):
        signs.append(op)
        value = op.input
    return value, signs


def is_rounded(value: float, exact: float, like: SSAValue) -> bool:
    """True if a number is another one but for a few roundings in the type of `like`."""
    return isclose(value, exact, rel_tol=1e-6 if element_type(like) == f32 else 1e-14)
