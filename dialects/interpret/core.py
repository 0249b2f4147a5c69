"""
The meaning of every `core` op without regions, in numpy.

Integers are exact and wrap around. Narrow floats (f16, bf16) are computed in float32; sums, matrix
products and transcendental functions in float64 and in a fixed order without BLAS. Each result is
rounded once. So the values are the same from run to run, and constant folding may use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import attention, constant, elementwise, linear, reduce, tensor
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.enums import (
    CumulativeKind,
    ExtremumKind,
    Packing,
    PadMode,
    PoolKind,
    Predicate,
    ReduceKind,
    ScatterReduction,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, numpy_dtype
from lowerdeck.dialects.interpret.custom import compute, operator_named
from lowerdeck.dialects.interpret.errors import InterpretError, describe

Array: TypeAlias = NDArray[Any]
Symbols: TypeAlias = Mapping[str, int]
Evaluator: TypeAlias = Callable[[Any, Sequence[Array], Symbols], Any]
OpT = TypeVar("OpT", bound=Operation)

_BF16 = np.dtype(ml_dtypes.bfloat16)
_NARROW = frozenset({np.dtype(np.float16), _BF16})
_FLOATS = _NARROW | {np.dtype(np.float32), np.dtype(np.float64)}

_EVALUATORS: dict[type[Operation], Evaluator] = {}


def evaluate(op: Operation, args: Sequence[Array], symbols: Symbols) -> list[Array]:
    """
    The results of `op` for the values of its (present) operands.

    `symbols` holds every dimension symbol that the op's properties use. InterpretError if the op
    has no meaning here or its operands do not fit at run time (an index out of range, ...).
    """
    evaluator = _EVALUATORS.get(type(op))
    if evaluator is None:
        raise InterpretError(f"{describe(op)}: no meaning in the core interpreter")
    try:
        with np.errstate(all="ignore"):
            results = evaluator(op, args, symbols)
    except KeyError as error:
        raise InterpretError(f"{describe(op)}: the symbol {error} has no value here") from error
    except (InterpretError, TypeError, ValueError, IndexError) as error:
        raise InterpretError(f"{describe(op)}: {error}") from error
    if not isinstance(results, tuple):
        results = (results,)
    return [np.asarray(result) for result in cast(tuple[Any, ...], results)]


def is_evaluable(op: Operation) -> bool:
    """True if `evaluate` knows the op."""
    return type(op) in _EVALUATORS


def _meaning_of(*classes: type[Operation]) -> Callable[[Evaluator], Evaluator]:
    """Register a function of (op, operand values, symbols) for op classes."""

    def register(function: Evaluator) -> Evaluator:
        for cls in classes:
            _EVALUATORS[cls] = function
        return function

    return register


# Properties and number formats


def _numbers(dims: DimsAttr, symbols: Symbols) -> list[int]:
    return [dim.evaluate(symbols) for dim in dims.data]


def _ints(attribute: Any) -> list[int]:
    return tensor.ints(cast(DenseArrayBase[Any], attribute))


def _flag(attribute: Any) -> bool:
    return bool(attribute.value.data)


def _widened(array: Array) -> Array:
    """A form in which a chain of additions and products loses little: float64 for floats."""
    return array.astype(np.float64) if array.dtype in _FLOATS else array


def _rounded(array: Any, dtype: np.dtype[Any]) -> Array:
    """`array` in `dtype`, rounded once to nearest, halves to even."""
    array = np.asarray(array)
    if dtype == _BF16 and array.dtype.kind in "iuf" and array.dtype.itemsize > 2:
        return _to_bfloat16(array)
    return array.astype(dtype, copy=False)


def _to_bfloat16(array: Array) -> Array:
    """
    Without rounding twice: where float32 lands halfway between two bfloat16 and is not the exact
    value, step toward the exact value first.
    """
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        # 48 leading bits and a sticky one decide; float64 holds them.
        sticky = (array & array.dtype.type(0xFFFF)) != 0
        large = ((array >> array.dtype.type(16)) | sticky.astype(array.dtype)).astype(np.float64)
        exact = np.where(abs(array.astype(np.float64)) < 2**52, array, large * 65536.0)
    else:
        exact = array.astype(np.float64)
    near = exact.astype(np.float32)
    halfway = (near.view(np.uint32) & np.uint32(0xFFFF)) == 0x8000
    toward = np.where(exact > near, np.float32(np.inf), np.float32(-np.inf))
    nudged = np.nextafter(near, toward)
    return np.where(halfway & (exact != near), nudged, near).astype(ml_dtypes.bfloat16)


# Constants and symbols


@_meaning_of(constant.ConstantOp)
def _constant(op: constant.ConstantOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return op.array


@_meaning_of(constant.FromDimsOp)
def _from_dims(op: constant.FromDimsOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.array(_numbers(op.values, symbols), np.int64).reshape(_ints(op.shape))


@_meaning_of(constant.IotaOp)
def _iota(op: constant.IotaOp, args: Sequence[Array], symbols: Symbols) -> Array:
    shape = _numbers(op.dims, symbols)
    axis = op.axis.data
    line = np.arange(shape[axis], dtype=np.int64)
    return np.broadcast_to(line.reshape([-1] + [1] * (len(shape) - axis - 1)), shape)


@_meaning_of(CustomOp)
def _custom(op: CustomOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, ...]:
    results = compute(operator_named(op.operator.data), args, op.values)
    memory = op.results[len(results) :]  # of workspace, which nothing reads
    return (*results, *(np.zeros(_sizes(value, symbols), np.uint8) for value in memory))


def _sizes(value: SSAValue, symbols: Symbols) -> list[int]:
    return [dim.evaluate(symbols) for dim in dims_of(value)]


# Elementwise


def _register_unary(
    cls: type[Operation], function: Callable[[Array], Any], *, exact: bool = False
) -> None:
    """`exact` functions need no wider type than float32."""

    def run(op: Operation, args: Sequence[Array], symbols: Symbols) -> Array:
        (x,) = args
        if x.dtype not in _FLOATS or (exact and x.dtype not in _NARROW):
            return np.asarray(function(x)).astype(x.dtype, copy=False)
        wide = np.float32 if exact else np.float64
        return _rounded(function(x.astype(wide)), x.dtype)

    _EVALUATORS[cls] = run


def _not(x: Array) -> Array:
    return np.logical_not(x) if x.dtype == np.bool_ else np.invert(x)


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _rectify(x: Array) -> Array:
    return x - np.where(x < 0, x, x.dtype.type(0))


for _class, _function in (
    (elementwise.NegOp, np.negative),
    (elementwise.AbsOp, np.abs),
    (elementwise.SignOp, np.sign),
    (elementwise.NotOp, _not),
    (elementwise.SqrtOp, np.sqrt),
    (elementwise.FloorOp, np.floor),
    (elementwise.CeilOp, np.ceil),
    (elementwise.RoundOp, np.rint),
    (elementwise.RectifyOp, _rectify),
):
    _register_unary(_class, _function, exact=True)

for _class, _function in (
    (elementwise.ExpOp, np.exp),
    (elementwise.LogOp, np.log),
    (elementwise.ErfOp, _erf),
    (elementwise.SinOp, np.sin),
    (elementwise.CosOp, np.cos),
    (elementwise.TanOp, np.tan),
    (elementwise.AsinOp, np.arcsin),
    (elementwise.AcosOp, np.arccos),
    (elementwise.AtanOp, np.arctan),
    (elementwise.SinhOp, np.sinh),
    (elementwise.CoshOp, np.cosh),
    (elementwise.TanhOp, np.tanh),
    (elementwise.AsinhOp, np.arcsinh),
    (elementwise.AcoshOp, np.arccosh),
    (elementwise.AtanhOp, np.arctanh),
    (elementwise.SigmoidOp, _sigmoid),
):
    _register_unary(_class, _function)


def _register_binary(
    cls: type[Operation],
    on_floats: Callable[[Array, Array], Any],
    on_integers: Callable[[Array, Array], Any],
    *,
    wide: bool = False,
) -> None:
    """`wide` functions are computed in float64, the others in at least float32."""

    def run(op: Operation, args: Sequence[Array], symbols: Symbols) -> Array:
        x, y = args
        if x.dtype not in _FLOATS:
            # One dimension at least: numpy computes scalars by other, complaining rules.
            result = on_integers(np.atleast_1d(x), np.atleast_1d(y))
            shape = np.broadcast_shapes(x.shape, y.shape)
            return np.asarray(result).astype(x.dtype, copy=False).reshape(shape)
        if wide or x.dtype in _NARROW:
            kind = np.float64 if wide else np.float32
            return _rounded(on_floats(x.astype(kind), y.astype(kind)), x.dtype)
        return np.asarray(on_floats(x, y))

    _EVALUATORS[cls] = run


def _nonzero_divisor(y: Array) -> Array:
    return np.where(y == 0, y.dtype.type(1), y)


def _integer_quotient(x: Array, y: Array) -> Array:
    divisor = _nonzero_divisor(y)
    exact = x - np.fmod(x, divisor)
    return np.where(y == 0, x.dtype.type(0), exact // divisor)


def _integer_remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, x.dtype.type(0), np.fmod(x, _nonzero_divisor(y)))


def _integer_modulo(x: Array, y: Array) -> Array:
    return np.where(y == 0, x.dtype.type(0), np.mod(x, _nonzero_divisor(y)))


def _where(condition: Array, yes: Any, no: Any) -> Array:
    return cast(Array, np.where(condition, yes, no))


def _integer_power(x: Array, y: Array) -> Array:
    """By squaring, modulo 2^width; x to a negative power is the truncated 1 / x^-y."""
    base, exponent = np.broadcast_arrays(x, y)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    odd = (exponent & one) == one
    reciprocal = _where(base == one, one, zero)
    if x.dtype.kind == "i":
        minus_one = x.dtype.type(-1)
        reciprocal = _where(base == minus_one, _where(odd, minus_one, one), reciprocal)
    negative = exponent < zero
    rest = _where(negative, zero, exponent)
    result = np.ones(base.shape, x.dtype)
    while rest.any():
        result = _where((rest & one) == one, result * base, result)
        base = base * base
        rest = rest >> one
    return _where(negative, reciprocal, result)


def _shifted(x: Array, y: Array, shift: Callable[[Array, Array], Array]) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    width = unsigned.type(1 if x.dtype == np.bool_ else 8 * x.dtype.itemsize)
    bits, amount = x.view(unsigned), y.view(unsigned)
    fits = amount < width
    shifted = shift(bits, np.where(fits, amount, unsigned.type(0)))
    return np.where(fits, shifted, unsigned.type(0)).view(x.dtype)


def _shift_left(x: Array, y: Array) -> Array:
    return _shifted(x, y, np.left_shift)


def _shift_right(x: Array, y: Array) -> Array:
    return _shifted(x, y, np.right_shift)


for _class, _on_floats, _on_integers in (
    (elementwise.AddOp, np.add, np.add),
    (elementwise.SubOp, np.subtract, np.subtract),
    (elementwise.MulOp, np.multiply, np.multiply),
    (elementwise.DivOp, np.divide, _integer_quotient),
    (elementwise.RemOp, np.fmod, _integer_remainder),
    (elementwise.ModOp, np.mod, _integer_modulo),
    (elementwise.MaxOp, np.maximum, np.maximum),
    (elementwise.MinOp, np.minimum, np.minimum),
    (elementwise.AndOp, np.bitwise_and, np.bitwise_and),
    (elementwise.OrOp, np.bitwise_or, np.bitwise_or),
    (elementwise.XorOp, np.bitwise_xor, np.bitwise_xor),
    (elementwise.ShlOp, _shift_left, _shift_left),
    (elementwise.ShrOp, _shift_right, _shift_right),
):
    _register_binary(_class, _on_floats, _on_integers)
_register_binary(elementwise.PowOp, np.power, _integer_power, wide=True)


_PREDICATES: dict[Predicate, Callable[[Array, Array], Any]] = {
    Predicate.EQ: np.equal,
    Predicate.NE: np.not_equal,
    Predicate.LT: np.less,
    Predicate.LE: np.less_equal,
    Predicate.GT: np.greater,
    Predicate.GE: np.greater_equal,
}


@_meaning_of(elementwise.CompareOp)
def _compare(op: elementwise.CompareOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.asarray(_PREDICATES[op.predicate.data](*args)).astype(np.bool_)


@_meaning_of(elementwise.SelectOp)
def _select(op: elementwise.SelectOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.where(*args)


@_meaning_of(elementwise.CastOp)
def _cast(op: elementwise.CastOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return cast_array(args[0], numpy_dtype(op.to))


def cast_array(x: Array, dtype: np.dtype[Any]) -> Array:
    """`core.cast` of an array."""
    if dtype == np.bool_:
        return np.asarray(x != x.dtype.type(0))
    if x.dtype in _NARROW and dtype.kind in "iu":
        x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        return _rounded(x, dtype)


# Data movement


@_meaning_of(tensor.ReshapeOp)
def _reshape(op: tensor.ReshapeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return args[0].reshape(_numbers(op.dims, symbols))


@_meaning_of(tensor.TransposeOp)
def _transpose(op: tensor.TransposeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return args[0].transpose(_ints(op.permutation))


@_meaning_of(tensor.ChannelShuffleOp)
def _channel_shuffle(op: tensor.ChannelShuffleOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    batch, channels, *rest = x.shape
    groups = op.groups.data
    apart = x.reshape(batch, groups, channels // groups, *rest)
    return apart.swapaxes(1, 2).reshape(x.shape)


@_meaning_of(tensor.BroadcastOp)
def _broadcast(op: tensor.BroadcastOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.broadcast_to(args[0], _numbers(op.dims, symbols))


@_meaning_of(tensor.SliceOp)
def _slice(op: tensor.SliceOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    lists = (_numbers(values, symbols) for values in (op.starts, op.sizes, op.steps))
    return x[tuple(_python_slice(*rule) for rule in zip(x.shape, *lists, strict=True))]


def _python_slice(dim: int, start: int, size: int, step: int) -> slice:
    if step == 0 or size < 0:
        raise InterpretError(f"a slice of {size} elements with step {step}")
    if size == 0:
        return slice(0, 0)
    last = start + (size - 1) * step
    if not (0 <= start < dim and 0 <= last < dim):
        raise InterpretError(f"elements {start} to {last} of a dimension of {dim}")
    stop = last + (1 if step > 0 else -1)
    return slice(start, None if stop < 0 else stop, step)


@_meaning_of(tensor.PadOp)
def _pad(op: tensor.PadOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, begin, end = args[0], _numbers(op.begin, symbols), _numbers(op.end, symbols)
    if min((*begin, *end), default=0) < 0:
        raise InterpretError(f"padding by {begin} and {end} elements")
    if op.mode.data == PadMode.CONSTANT:
        value = args[1] if len(args) > 1 else x.dtype.type(0)
        shape = [b + dim + e for dim, b, e in zip(x.shape, begin, end, strict=True)]
        result = np.full(shape, value, x.dtype)
        result[tuple(slice(b, b + dim) for dim, b in zip(x.shape, begin, strict=True))] = x
        return result
    for axis, (b, e) in enumerate(zip(begin, end, strict=True)):
        if b + e:
            x = x.take(_padded_indices(x.shape[axis], b, e, op.mode.data), axis)
    return x


def _padded_indices(dim: int, begin: int, end: int, mode: PadMode) -> Array:
    if dim == 0:
        raise InterpretError(f"mode '{mode}' on a dimension of no elements")
    index = np.arange(-begin, dim + end)
    if mode == PadMode.EDGE:
        return index.clip(0, dim - 1)
    if mode == PadMode.WRAP:
        return index % dim
    folded = index % max(2 * (dim - 1), 1)
    return np.minimum(folded, 2 * (dim - 1) - folded)


@_meaning_of(tensor.ConcatOp)
def _concat(op: tensor.ConcatOp, args: Sequence[Array], symbols: Symbols) -> Array:
    return np.concatenate(args, op.axis.data)


@_meaning_of(tensor.SplitOp)
def _split(op: tensor.SplitOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, ...]:
    (x,), sizes, axis = args, _numbers(op.sizes, symbols), op.axis.data
    if min(sizes) < 0 or sum(sizes) != x.shape[axis]:
        raise InterpretError(f"parts of {sizes} elements of a dimension of {x.shape[axis]}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def _resolved(indices: Array, dim: int) -> Array:
    """Indices from the start; InterpretError if one is out of range."""
    index = indices.astype(np.int64)
    outside = (index < -dim) | (index >= dim)
    if outside.any():
        raise InterpretError(f"index {index[outside].flat[0]} in a dimension of {dim}")
    return np.where(index < 0, index + dim, index)


@_meaning_of(tensor.GatherOp)
def _gather(op: tensor.GatherOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    axis = op.axis.data
    return x.take(_resolved(indices, x.shape[axis]), axis)


def _along(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """The index of element (i..., indices[i..., j, k...], k...) for every element of `indices`."""
    places: list[Array] = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    places[axis] = _resolved(indices, x.shape[axis])
    return tuple(places)


@_meaning_of(tensor.GatherElementsOp)
def _gather_elements(op: tensor.GatherElementsOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    return x[_along(x, indices, op.axis.data)]


def _addressed(x: Array, indices: Array, batch: int) -> tuple[Array, ...]:
    """The index of the slices that the last dimension of `indices` names, after `batch` ones."""
    outer = indices.shape[:-1]
    grid: Sequence[Array] = np.ogrid[tuple(slice(size) for size in outer)] if outer else ()
    named = [_resolved(indices[..., k], x.shape[batch + k]) for k in range(indices.shape[-1])]
    return (*grid[:batch], *named)


@_meaning_of(tensor.GatherNdOp)
def _gather_nd(op: tensor.GatherNdOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices = args
    batch, depth = op.batch_dims.data, indices.shape[-1]
    if indices.shape[:batch] != x.shape[:batch]:
        raise InterpretError(f"indices of {indices.shape} for a tensor of {x.shape}")
    if batch + depth == 0:
        return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    result = x[_addressed(x, indices, batch)]
    # Without named dimensions only the batch ones were indexed: the rest still broadcasts.
    return np.broadcast_to(
        result.reshape(result.shape[: len(indices.shape) - 1] + x.shape[batch + depth :]),
        (*indices.shape[:-1], *x.shape[batch + depth :]),
    )


_ACCUMULATE: dict[ScatterReduction, Any] = {
    ScatterReduction.ADD: np.add,
    ScatterReduction.MUL: np.multiply,
    ScatterReduction.MAX: np.maximum,
    ScatterReduction.MIN: np.minimum,
}


def _scattered(
    x: Array, places: tuple[Array, ...], updates: Array, reduction: ScatterReduction
) -> Array:
    if reduction == ScatterReduction.NONE:
        result = x.copy()
        result[places] = updates
        return result
    wide = np.float64 if x.dtype in _FLOATS else x.dtype
    result = x.astype(wide)
    _ACCUMULATE[reduction].at(result, places, updates.astype(wide))
    return _rounded(result, x.dtype)


@_meaning_of(tensor.ScatterElementsOp)
def _scatter_elements(
    op: tensor.ScatterElementsOp, args: Sequence[Array], symbols: Symbols
) -> Array:
    x, indices, updates = args
    return _scattered(x, _along(x, indices, op.axis.data), updates, op.reduction.data)


@_meaning_of(tensor.ScatterNdOp)
def _scatter_nd(op: tensor.ScatterNdOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, indices, updates = args
    expected = (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
    if updates.shape != expected:
        raise InterpretError(f"updates have the shape {updates.shape}, not {expected}")
    if indices.shape[-1] == 0:
        # Every update meets the whole input.
        rows = updates.reshape(-1, 1, *x.shape)
        zero = np.zeros(1, np.int64)
        result = x[np.newaxis]
        for row in rows:
            result = _scattered(result, (zero,), row, op.reduction.data)
        return result[0]
    return _scattered(x, _addressed(x, indices, 0), updates, op.reduction.data)


@_meaning_of(tensor.TopKOp)
def _top_k(op: tensor.TopKOp, args: Sequence[Array], symbols: Symbols) -> tuple[Array, Array]:
    (x,) = args
    axis, (k,) = op.axis.data, _numbers(op.k, symbols)
    if not 0 <= k <= x.shape[axis]:
        raise InterpretError(f"{k} elements of a dimension of {x.shape[axis]}")
    keys = x.astype(np.float32) if x.dtype in _NARROW else x
    if _flag(op.largest):
        # Sorting backwards puts NaN first and, of equal elements, the lower index first.
        order = np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    order = order.take(range(k), axis).astype(np.int64)
    return np.take_along_axis(x, order, axis), order


@_meaning_of(tensor.CountNonzeroOp)
def _count_nonzero(op: tensor.CountNonzeroOp, args: Sequence[Array], symbols: Symbols) -> Any:
    return np.array(np.count_nonzero(args[0] != args[0].dtype.type(0)), np.int64)


@_meaning_of(tensor.NonzeroOp)
def _nonzero(op: tensor.NonzeroOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    holds = np.asarray(x != x.dtype.type(0))
    return np.argwhere(holds).T.astype(np.int64).reshape(x.ndim, np.count_nonzero(holds))


# Contractions and normalizations

_TILE = 1 << 15
"""Elements of a partial result that stay in the cache while the reduction runs over them."""

_COLUMNS_BYTES = 1 << 26
"""The largest unfolded input of a convolution held at a time."""


def matrix_product(lhs: Array, rhs: Array) -> Array:
    """
    [batch..., M, K] by [batch..., K, N], each sum in the order of K, in the operands' own type.

    Every element is a chain of one multiplication and one addition a step, so the result depends
    neither on the machine nor on a library.
    """
    (m, depth), n = lhs.shape[-2:], rhs.shape[-1]
    if depth != rhs.shape[-2]:
        raise InterpretError(f"a matrix of {depth} columns by one of {rhs.shape[-2]} rows")
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    result = np.zeros((*batch, m, n), lhs.dtype)
    if m * n <= 1024:
        _accumulate_product(lhs, rhs, result)
        return result
    lhs = np.broadcast_to(lhs, (*batch, m, depth))
    rhs = np.broadcast_to(rhs, (*batch, depth, n))
    for place in np.ndindex(batch):
        for rows, columns in _tiles(m, n):
            tile = result[place][rows, columns]
            _accumulate_product(lhs[place][rows], rhs[place][:, columns], tile)
    return result


def _tiles(m: int, n: int) -> Iterator[tuple[slice, slice]]:
    width = min(n, 4096)
    height = max(_TILE // width, 1)
    for row in range(0, m, height):
        for column in range(0, n, width):
            yield slice(row, row + height), slice(column, column + width)


def _accumulate_product(lhs: Array, rhs: Array, result: Array) -> None:
    """Add the product to `result`, one step of the reduction at a time."""
    term = np.empty_like(result)
    for k in range(lhs.shape[-1]):
        np.multiply(lhs[..., :, k, np.newaxis], rhs[..., k, np.newaxis, :], out=term)
        np.add(result, term, out=result)


def _factors(op: linear.ContractionOp, args: Sequence[Array]) -> tuple[Array, Array]:
    """Both factors as they are multiplied: without zero points, integers in the result's type."""
    known = dict(zip(op.operands, args, strict=True))
    dtype = _result_dtype(op)
    zeros = op.zero_points or (None, None)
    lhs, rhs = (
        _centered(known[factor], None if zero is None else known[zero], dtype)
        for factor, zero in zip(op.factors, zeros, strict=True)
    )
    return lhs, rhs


def _result_dtype(op: linear.ContractionOp) -> np.dtype[Any]:
    return numpy_dtype(element_type(op.results[0]))


def _centered(factor: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    if factor.dtype in _FLOATS:
        return _widened(factor)
    factor = factor.astype(dtype, copy=False)
    return factor if zero is None else factor - zero.astype(dtype)


def _terms(x: Array, packing: Packing, *, is_unsigned: bool) -> Iterator[Array]:
    """The terms that each element holds, in i32."""
    bits = 32 // packing.terms
    part = np.dtype(f"{'u' if is_unsigned else ''}int{bits}")
    for number in range(packing.terms):
        yield (x >> np.int32(bits * number)).astype(part).astype(np.int32)


@_meaning_of(linear.MatmulOp)
def _matmul(op: linear.MatmulOp, args: Sequence[Array], symbols: Symbols) -> Array:
    if op.packing is not None:
        packing = op.packing.data
        terms = zip(
            _terms(args[0], packing, is_unsigned=packing is Packing.UNSIGNED_LEFT),
            _terms(args[1], packing, is_unsigned=packing is Packing.UNSIGNED_RIGHT),
            strict=True,
        )
        products = [matrix_product(lhs, rhs) for lhs, rhs in terms]
        return np.asarray(sum(products[1:], products[0]))
    return _rounded(matrix_product(*_factors(op, args)), _result_dtype(op))


def _framed(x: Array, begin: Sequence[int], end: Sequence[int], value: Any) -> Array:
    """The spatial dimensions of [N, C, spatial...] padded with `value`; negative amounts crop."""
    pads = [(0, 0), (0, 0), *zip(begin, end, strict=True)]
    shape = [b + dim + e for dim, (b, e) in zip(x.shape, pads, strict=True)]
    if min(shape, default=0) < 0:
        raise InterpretError(f"windows over a shape of {shape}")
    result = np.full(shape, value, x.dtype)
    target = tuple(slice(max(b, 0), size - max(e, 0)) for size, (b, e) in zip(shape, pads))
    source = tuple(
        slice(max(-b, 0), dim - max(-e, 0)) for dim, (b, e) in zip(x.shape, pads, strict=True)
    )
    result[target] = x[source]
    return result


def _positions(dims: Sequence[int], kernel: Sequence[int], op: Any) -> list[int]:
    """The number of windows in each spatial dimension of a padded input."""
    rules = zip(dims, kernel, _ints(op.strides), _ints(op.dilations), strict=True)
    counts = [(dim - (k - 1) * dilation - 1) // stride + 1 for dim, k, stride, dilation in rules]
    if min(counts, default=0) < 0:
        raise InterpretError(f"a kernel of {list(kernel)} exceeds an input of {list(dims)}")
    return counts


@_meaning_of(linear.ConvOp)
def _conv(op: linear.ConvOp, args: Sequence[Array], symbols: Symbols) -> Array:
    begin, end = _numbers(op.pads_begin, symbols), _numbers(op.pads_end, symbols)
    x, weight = _factors(op, args)
    x, groups = _framed(x, begin, end, x.dtype.type(0)), op.groups.data
    kernel = weight.shape[2:]
    counts = _positions(x.shape[2:], kernel, op)
    channels, filters = x.shape[1] // groups, weight.shape[0] // groups
    if weight.shape[1] != channels or filters * groups != weight.shape[0]:
        raise InterpretError(
            f"{x.shape[1]} channels in {groups} groups with a weight of {weight.shape}"
        )
    result = np.zeros((x.shape[0], weight.shape[0], *counts), x.dtype)
    if result.size:
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, _ints(op.dilations), strict=True)]
        windows = sliding_window_view(x, extents, tuple(range(2, x.ndim)))
        strides = tuple(slice(None, None, stride) for stride in _ints(op.strides))
        taps = tuple(slice(None, None, dilation) for dilation in _ints(op.dilations))
        windows = windows[(slice(None), slice(None), *strides, *taps)]
        for image, group in np.ndindex(x.shape[0], groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters, (group + 1) * filters)
            _correlate(windows[image, inputs], weight[outputs], result[image, outputs])
    if op.bias is not None:
        result += _widened(args[2]).reshape(-1, *[1] * len(kernel))
    return _rounded(result, _result_dtype(op))


def _correlate(windows: Array, weight: Array, result: Array) -> None:
    """[C, positions..., kernel...] by [M, C, kernel...] into [M, positions...], in row blocks."""
    spatial = len(weight.shape) - 2
    order = (0, *range(1 + spatial, 1 + 2 * spatial), *range(1, 1 + spatial))
    columns = windows.transpose(order)
    depth = math.prod(weight.shape[1:])
    rows = result.shape[1]
    row_bytes = depth * math.prod(result.shape[2:]) * result.itemsize
    step = max(_COLUMNS_BYTES // max(row_bytes, 1), 1)
    flat = weight.reshape(weight.shape[0], depth)
    for row in range(0, rows, step):
        part = columns[(slice(None),) * (1 + spatial) + (slice(row, row + step),)]
        target = result[:, row : row + step]
        product = matrix_product(flat, part.reshape(depth, math.prod(target.shape[1:])))
        target[...] = product.reshape(target.shape)


@_meaning_of(linear.ConvTransposeOp)
def _conv_transpose(op: linear.ConvTransposeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x, weight), groups = _factors(op, args), op.groups.data
    begin, end = _numbers(op.pads_begin, symbols), _numbers(op.pads_end, symbols)
    strides, dilations = _ints(op.strides), _ints(op.dilations)
    dims, kernel = x.shape[2:], weight.shape[2:]
    count = math.prod(dims)
    if x.shape[1] != weight.shape[0]:
        raise InterpretError(f"{x.shape[1]} channels with a weight of {weight.shape}")
    rules = zip(dims, strides, kernel, dilations, _ints(op.output_padding), strict=True)
    sizes = [(d - 1) * s + (k - 1) * dilation + 1 + extra for d, s, k, dilation, extra in rules]
    channels, filters = x.shape[1] // groups, weight.shape[1]
    full = np.zeros((x.shape[0], filters * groups, *sizes), x.dtype)
    for tap in np.ndindex(*kernel):
        places = tuple(
            slice(k * dilation, k * dilation + (dim - 1) * stride + 1, stride)
            for k, dilation, dim, stride in zip(tap, dilations, dims, strides, strict=True)
        )
        for image, group in np.ndindex(x.shape[0], groups):
            inputs = slice(group * channels, (group + 1) * channels)
            outputs = slice(group * filters, (group + 1) * filters)
            product = matrix_product(
                weight[(inputs, slice(None), *tap)].T,
                x[image, inputs].reshape(channels, count),
            )
            full[(image, outputs, *places)] += product.reshape(filters, *dims)
    result = _framed(full, [-b for b in begin], [-e for e in end], x.dtype.type(0))
    if op.bias is not None:
        result += _widened(args[2]).reshape(-1, *[1] * len(kernel))
    return _rounded(result, _result_dtype(op))


@_meaning_of(linear.BatchNormOp)
def _batch_norm(op: linear.BatchNormOp, args: Sequence[Array], symbols: Symbols) -> Array:
    shape = [1] * args[0].ndim
    shape[op.axis.data] = -1
    x, *parameters = (_widened(value) for value in args)
    scale, bias, mean, variance = (value.reshape(shape) for value in parameters)
    result = (x - mean) / np.sqrt(variance + op.epsilon.value.data) * scale + bias
    return _rounded(result, args[0].dtype)


@_meaning_of(linear.LayerNormOp)
def _layer_norm(op: linear.LayerNormOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, scale, *bias = (_widened(value) for value in args)
    axes = tuple(range(op.axis.data, x.ndim))
    centered = x - x.mean(axes, keepdims=True)
    variance = np.square(centered).mean(axes, keepdims=True)
    result = centered / np.sqrt(variance + op.epsilon.value.data) * scale
    return _rounded(result + bias[0] if bias else result, args[0].dtype)


@_meaning_of(attention.AttentionOp)
def _attention(op: attention.AttentionOp, args: Sequence[Array], symbols: Symbols) -> Array:
    query, key, value = (np.swapaxes(_widened(operand), -2, -3) for operand in args[:3])
    scores = matrix_product(query, np.swapaxes(key, -1, -2)) * op.scale.value.data
    for mask in args[3:]:
        scores = scores + _widened(mask)
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights = powers / powers.sum(-1, keepdims=True)
    result = matrix_product(weights, value)
    return _rounded(np.swapaxes(result, -2, -3), args[0].dtype)


# Reductions


def _lowest(dtype: np.dtype[Any]) -> Any:
    """The value that every other one exceeds."""
    if dtype == np.bool_:
        return False
    return -np.inf if dtype in _FLOATS else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    """The value that exceeds every other one."""
    if dtype == np.bool_:
        return True
    return np.inf if dtype in _FLOATS else np.iinfo(dtype).max


@_meaning_of(reduce.ReduceOp)
def _reduce(op: reduce.ReduceOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    kind, axes, keep = op.kind.data, tuple(_ints(op.axes)), _flag(op.keep_dims)
    wide = _widened(x)
    if kind in (ReduceKind.MAX, ReduceKind.MIN):
        is_max = kind == ReduceKind.MAX
        combine = np.maximum if is_max else np.minimum
        initial = _lowest(x.dtype) if is_max else _highest(x.dtype)
        return _rounded(combine.reduce(wide, axes, keepdims=keep, initial=initial), x.dtype)
    combine = np.add if kind == ReduceKind.SUM else np.multiply
    return _rounded(combine.reduce(wide, axes, wide.dtype, keepdims=keep), x.dtype)


@_meaning_of(reduce.ArgReduceOp)
def _arg_reduce(op: reduce.ArgReduceOp, args: Sequence[Array], symbols: Symbols) -> Any:
    (x,) = args
    axis, keep = op.axis.data, _flag(op.keep_dims)
    if x.shape[axis] == 0:
        raise InterpretError(f"the {op.kind.data} of dimension {axis}, which has no elements")
    keys = x.astype(np.float32) if x.dtype in _NARROW else x
    choose = np.argmax if op.kind.data == ExtremumKind.MAX else np.argmin
    if not _flag(op.last_index):
        return np.asarray(choose(keys, axis, keepdims=keep), np.int64)
    return np.asarray(
        x.shape[axis] - 1 - choose(np.flip(keys, axis), axis, keepdims=keep), np.int64
    )


@_meaning_of(reduce.SoftmaxOp)
def _softmax(op: reduce.SoftmaxOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, axis, dtype = _widened(args[0]), op.axis.data, args[0].dtype

    def step(value: Array) -> Array:
        return _widened(_rounded(value, dtype))

    differences = step(x - x.max(axis, keepdims=True, initial=-np.inf))
    powers = step(np.exp(differences))
    total = step(powers.sum(axis, keepdims=True))
    result = differences - step(np.log(total)) if op.is_log else powers / total
    return _rounded(result, dtype)


@_meaning_of(reduce.CumulativeOp)
def _cumulative(op: reduce.CumulativeOp, args: Sequence[Array], symbols: Symbols) -> Array:
    x, axis = _widened(args[0]), op.axis.data
    if x.shape[axis] == 0:
        return args[0]
    x = np.flip(x, axis) if _flag(op.reverse) else x
    combine = np.add if op.kind.data == CumulativeKind.SUM else np.multiply
    result = combine.accumulate(x, axis, x.dtype)
    if _flag(op.exclusive):
        first = np.full_like(result.take([0], axis), combine.identity)
        rest = combine(result.take(range(x.shape[axis] - 1), axis), combine.identity)
        result = np.concatenate([first, rest.astype(x.dtype)], axis)
    result = np.flip(result, axis) if _flag(op.reverse) else result
    return _rounded(result, args[0].dtype)


@_meaning_of(reduce.PoolOp)
def _pool(op: reduce.PoolOp, args: Sequence[Array], symbols: Symbols) -> Array:
    (x,) = args
    begin, end = _numbers(op.pads_begin, symbols), _numbers(op.pads_end, symbols)
    kernel = _numbers(op.kernel, symbols)
    if op.kind.data == PoolKind.MAX:
        lowest = np.finfo(x.dtype).min if _flag(op.from_lowest) else _lowest(x.dtype)
        wide = _widened(x)
        total = _pooled(op, _framed(wide, begin, end, lowest), kernel, _larger, lowest)
        if _flag(op.keeps_first):
            kinds = _framed(np.where(np.isnan(wide), 2, 1), begin, end, 0)
            is_nan = _pooled(op, kinds, kernel, _first_nonzero, 0) == 2
            total = np.where(is_nan, total.dtype.type(np.nan), total)
        return _rounded(total, x.dtype)
    zero = x.dtype.type(0)
    total = _pooled(op, _widened(_framed(x, begin, end, zero)), kernel, np.add, 0)
    if op.kind.data == PoolKind.SUM:
        return _rounded(total, x.dtype)
    counted = np.ones((1, 1, *x.shape[2:]), np.int64)
    if _flag(op.count_pads):
        overhang = _numbers(op.overhang, symbols)
        inner = [e - o for e, o in zip(end, overhang, strict=True)]
        counted = _framed(_framed(counted, begin, inner, 1), [0] * len(begin), overhang, 0)
    else:
        counted = _framed(counted, begin, end, 0)
    count = _pooled(op, counted, kernel, np.add, 0)
    if x.dtype in _FLOATS:
        return _rounded(total / count, x.dtype)
    return _integer_quotient(total, count.astype(x.dtype))


def _pooled(
    op: reduce.PoolOp, framed: Array, kernel: Sequence[int], combine: Any, initial: Any
) -> Array:
    """Combine the windows of a padded input, tap by tap in C order."""
    counts = _positions(framed.shape[2:], kernel, op)
    result = np.full((*framed.shape[:2], *counts), initial, framed.dtype)
    strides, dilations = _ints(op.strides), _ints(op.dilations)
    for tap in np.ndindex(*kernel):
        taken = tuple(
            slice(k * dilation, k * dilation + (count - 1) * stride + 1, stride)
            for k, dilation, count, stride in zip(tap, dilations, counts, strides, strict=True)
        )
        if result.size:
            result = combine(result, framed[(slice(None), slice(None), *taken)])
    return result


def _larger(total: Array, values: Array) -> Array:
    """NaN is never larger, nor is one zero than another."""
    return np.where(values > total, values, total)


def _first_nonzero(total: Array, values: Array) -> Array:
    return np.where(total == 0, values, total)
