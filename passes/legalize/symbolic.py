"""
Small integer tensors as arrays of dimension expressions: shape arithmetic without data.

`SymbolicValues` follows a value through constants, `core.from_dims` and integer ops of `core`.
Where that ends, an element is unknown, or gets a symbol by `core.bind_symbols` if the caller asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, IotaOp
from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    DivOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NegOp,
    NotOp,
    OrOp,
    RemOp,
    SelectOp,
    SignOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import Predicate, ReduceKind
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    GatherOp,
    ints,
)
from lowerdeck.dialects.core.types import (
    element_type,
    i1,
    i32,
    i64,
    is_integer,
    numpy_dtype,
    static_shape,
    ui32,
    ui64,
)
from lowerdeck.dialects.dims import Atom, Expr, ExprLike, constants, exprs, maximum, minimum
from lowerdeck.dialects.sizes import is_never_negative, largest, smallest

Element: TypeAlias = Expr | None
"""An expression, or None for an element that is not known."""
Elements: TypeAlias = NDArray[Any]
"""An array of `Element` objects in the shape of the tensor."""

SMALL = 256
"""Tensors of more elements are data, not shapes."""


class SymbolicValues:
    """What is known about the integer tensors of one function, and its symbols."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self._taken = set(symbols)
        self._nonnegative = set(self._taken)
        self._below: dict[str, Expr] = {}
        self._known: dict[SSAValue, Elements] = {}
        self._counter = 0

    # Symbols

    def fresh(self, *, nonnegative: bool = False) -> str:
        """A symbol that the function does not have yet; dimensions and counts are nonnegative."""
        while (name := f"u{self._counter}") in self._taken:
            self._counter += 1
        self._taken.add(name)
        if nonnegative:
            self._nonnegative.add(name)
        return name

    def declare(self, names: Iterable[str]) -> None:
        """Symbols of dimensions that the function has, too."""
        self._taken |= set(names)
        self._nonnegative |= set(names)

    def assume_nonnegative(self, values: Iterable[Expr]) -> None:
        """State that expressions that are a lone symbol are sizes: never negative."""
        for value in values:
            if len(value.symbols) == 1 and value == Expr.symbol(name := next(iter(value.symbols))):
                self._nonnegative.add(name)

    def assume_below(self, symbol: str, limit: Expr) -> None:
        """State that a symbol is always less than an expression, which does not depend on it."""
        self._below[symbol] = limit

    def lower_bound(self, value: Expr) -> int | None:
        """A number that `value` is never below, if one is known."""
        for name in sorted(value.symbols & self._below.keys()):
            symbol = Expr.symbol(name)
            factor = dict(value.terms).get(symbol.terms[0][0], 0)
            if factor < 0:
                # The value is lowest where the symbol is highest.
                value = value + (self._below[name] - 1 - symbol) * factor
        total = 0
        for monomial, coefficient in value.terms:
            bounds = [self._atom_bound(atom) for atom in monomial]
            if monomial and (coefficient < 0 or not all(map(_is_nonnegative, bounds))):
                return None
            total += coefficient * math.prod(bound or 0 for bound in bounds)
        return total

    def _atom_bound(self, atom: Atom) -> int | None:
        args = [self.lower_bound(arg) for arg in atom.args]
        match atom.kind:
            case "symbol":
                return 0 if atom.name in self._nonnegative else None
            case "floordiv" | "mod":
                divisor = args[1]
                positive = divisor is not None and divisor >= 0
                return (
                    0
                    if positive and (atom.kind == "mod" or (args[0] or -1) >= 0 or args[0] == 0)
                    else None
                )
            case "min":
                return None if None in args else min(arg for arg in args if arg is not None)
            case _:
                return max((arg for arg in args if arg is not None), default=None)

    def is_nonnegative(self, value: Expr) -> bool:
        """True if an expression is known to be at least zero."""
        bound = self.lower_bound(value)
        if bound is not None and bound >= 0:
            return True
        return self._is_of_sizes(value) and is_never_negative(value)

    def largest(self, *values: ExprLike) -> Expr:
        """The maximum, without what is known never to decide."""
        exprs_ = exprs(values)
        return (largest if all(map(self._is_of_sizes, exprs_)) else maximum)(*exprs_)

    def smallest(self, *values: ExprLike) -> Expr:
        """The minimum, without what is known never to decide."""
        exprs_ = exprs(values)
        return (smallest if all(map(self._is_of_sizes, exprs_)) else minimum)(*exprs_)

    def _is_of_sizes(self, value: Expr) -> bool:
        return value.symbols <= self._nonnegative

    # Values

    def know(self, value: SSAValue, elements: Sequence[ExprLike]) -> None:
        """State the elements of `value` in C order."""
        self._known[value] = _array(map(Expr.of, elements), static_shape(value) or ())

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements as far as they are known; None for tensors that are not small integers."""
        return self._analyze(value, bind=False)

    def complete(self, value: SSAValue) -> Elements | None:
        """
        The elements, all of them: unknown ones get symbols right after they are computed.

        None if the tensor is not a small one of integers.
        """
        return self._analyze(value, bind=True)

    def _analyze(self, value: SSAValue, *, bind: bool) -> Elements | None:
        if (found := self._known.get(value)) is not None and not (bind and _has_unknown(found)):
            return found
        if (shape := _small_shape(value)) is None:
            return None
        found = self._transfer(value, shape, bind=bind)
        if bind and _has_unknown(found):
            found = self._bind(value, found)
        self._known[value] = found
        return found

    def _transfer(self, value: SSAValue, shape: tuple[int, ...], *, bind: bool) -> Elements:
        if not isinstance(value, OpResult):
            return _unknown(shape)
        op, rule = value.op, _RULES.get(type(value.op))
        if rule is None and not isinstance(op, MovesElements):
            return _unknown(shape)
        operands: list[Elements] = []
        for operand in op.operands:
            elements = self._analyze(operand, bind=bind and type(op) not in _DECISIONS)
            if elements is None:
                return _unknown(shape)
            operands.append(elements)
        found = _moved(value, operands, shape) if rule is None else rule(self, op, operands, shape)
        return _wrapped(found, element_type(value))

    def _bind(self, value: SSAValue, found: Elements) -> Elements:
        names = [self.fresh() for _ in range(found.size)]
        op = BindSymbolsOp(value, names)
        if isinstance(owner := value.owner, Block):
            point = InsertPoint.at_start(owner)
        else:
            op.location = owner.location
            point = InsertPoint.after(owner)
        Rewriter.insert_op(op, point)
        pairs = zip(found.reshape(-1), names, strict=True)
        return _array((Expr.symbol(n) if e is None else e for e, n in pairs), found.shape)


Rule: TypeAlias = Callable[[SymbolicValues, Any, Sequence[Elements], tuple[int, ...]], Elements]


def _small_shape(value: SSAValue) -> tuple[int, ...] | None:
    try:
        element, shape = element_type(value), static_shape(value)
    except VerifyException:
        return None
    # numpy's limit holds for the other sizes of an empty array, too.
    if shape is None or math.prod(size or 1 for size in shape) > SMALL:
        return None
    return shape if is_integer(element) or element == i1 else None


def _is_nonnegative(bound: int | None) -> bool:
    return bound is not None and bound >= 0


def _array(values: Iterable[Element], shape: Sequence[int]) -> Elements:
    result = np.empty(math.prod(shape), object)
    result[:] = list(values)
    return result.reshape(tuple(shape))


def _unknown(shape: Sequence[int]) -> Elements:
    return np.full(tuple(shape), None, object)


def _has_unknown(elements: Elements) -> bool:
    return any(element is None for element in elements.reshape(-1))


def _wrapped(elements: Elements, element: Attribute) -> Elements:
    """Numbers as the type holds them; expressions only in types that hold every size."""
    if element in (i1, i64):
        return elements
    dtype = numpy_dtype(element)
    if dtype.kind not in "iu":
        return _unknown(elements.shape)
    holds_sizes = element in (i32, ui32, ui64)

    def wrapped(value: Element) -> Element:
        number = None if value is None else value.value
        if number is None:
            return value if holds_sizes else None
        low = int(np.iinfo(dtype).min)
        return Expr.const((number - low) % (1 << 8 * dtype.itemsize) + low)

    return _array(map(wrapped, elements.reshape(-1)), elements.shape)


# Rules: the elements of an op's result from those of its operands


def _constant(values: SymbolicValues, op: ConstantOp, _: Any, shape: tuple[int, ...]) -> Elements:
    del values
    return _array((Expr.const(int(number)) for number in op.array.reshape(-1)), shape)


def _from_dims(values: SymbolicValues, op: FromDimsOp, _: Any, shape: tuple[int, ...]) -> Elements:
    del values
    return _array(op.values.data, shape)


def _iota(values: SymbolicValues, op: IotaOp, _: Any, shape: tuple[int, ...]) -> Elements:
    del values
    return _array(map(Expr.const, np.indices(shape)[op.axis.data].reshape(-1).tolist()), shape)


Unary: TypeAlias = Callable[[SymbolicValues, Expr], Element]
Binary: TypeAlias = Callable[[SymbolicValues, Expr, Expr], Element]


def _unary(function: Unary) -> Rule:
    """A rule for an elementwise op from its function of a known element."""

    def rule(
        values: SymbolicValues, op: Any, operands: Sequence[Elements], shape: tuple[int, ...]
    ) -> Elements:
        del op
        column = operands[0].reshape(-1)
        return _array((None if x is None else function(values, x) for x in column), shape)

    return rule


def _binary(function: Binary) -> Rule:
    """A rule for an elementwise op from its function of two known elements."""

    def rule(
        values: SymbolicValues, op: Any, operands: Sequence[Elements], shape: tuple[int, ...]
    ) -> Elements:
        del op
        left, right = (np.broadcast_to(operand, shape).reshape(-1) for operand in operands)
        return _array(
            (
                None if x is None or y is None else function(values, x, y)
                for x, y in zip(left, right, strict=True)
            ),
            shape,
        )

    return rule


def _truncating(values: SymbolicValues, x: Expr, y: Expr) -> bool:
    """True if rounding the quotient down is rounding it toward zero, and the divisor is not 0."""
    if y.value == 0:
        return False
    dividend, divisor = values.lower_bound(x), values.lower_bound(y)
    return dividend is not None and divisor is not None and min(dividend, divisor) >= 0


def _div(values: SymbolicValues, x: Expr, y: Expr) -> Element:
    if (numbers := constants([x, y])) is not None:
        a, b = numbers
        return Expr.const(0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1))
    return x // y if _truncating(values, x, y) else None


def _rem(values: SymbolicValues, x: Expr, y: Expr) -> Element:
    if (quotient := _div(values, x, y)) is None:
        return None
    return Expr.const(0) if y.value == 0 else x - quotient * y


def _mod(values: SymbolicValues, x: Expr, y: Expr) -> Element:
    del values
    if y.value is None:
        return None
    return x % y if y.value else Expr.const(0)


def _abs(values: SymbolicValues, x: Expr) -> Element:
    if x.value is not None:
        return Expr.const(abs(x.value))
    return x if values.is_nonnegative(x) else values.largest(x, -x)


def _sign(values: SymbolicValues, x: Expr) -> Element:
    bound = values.lower_bound(x)
    if x.value is not None:
        return Expr.const((x.value > 0) - (x.value < 0))
    return Expr.const(1) if bound is not None and bound > 0 else None


def _order(values: SymbolicValues, x: Expr, y: Expr) -> tuple[bool, bool] | None:
    """Whether x < y and x == y, if both are known."""
    difference = x - y
    if (number := difference.value) is not None:
        return number < 0, number == 0
    if (values.lower_bound(difference) or 0) > 0:
        return False, False
    if (values.lower_bound(-difference) or 0) > 0:
        return True, False
    return None


_PREDICATES: dict[Predicate, Callable[[bool, bool], bool]] = {
    Predicate.EQ: lambda less, equal: equal,
    Predicate.NE: lambda less, equal: not equal,
    Predicate.LT: lambda less, equal: less,
    Predicate.LE: lambda less, equal: less or equal,
    Predicate.GT: lambda less, equal: not (less or equal),
    Predicate.GE: lambda less, equal: not less,
}


def _compare(
    values: SymbolicValues, op: CompareOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    def decide(values: SymbolicValues, x: Expr, y: Expr) -> Element:
        if (order := _order(values, x, y)) is None:
            return None
        return Expr.const(_PREDICATES[op.predicate.data](*order))

    return _binary(decide)(values, op, operands, shape)


def _select(
    values: SymbolicValues, op: SelectOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    del values, op
    condition, yes, no = (np.broadcast_to(x, shape).reshape(-1) for x in operands)
    return _array(map(_chosen, condition, yes, no), shape)


def _chosen(condition: Element, yes: Element, no: Element) -> Element:
    if condition is None or condition.value is None:
        return yes if yes == no else None
    return yes if condition.value else no


def _cast(
    values: SymbolicValues, op: CastOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    if op.to == i1:
        zero = [*operands, _array([Expr.const(0)], ())]
        return _binary(_known_ne)(values, op, zero, shape)
    return operands[0]


def _known_ne(values: SymbolicValues, x: Expr, y: Expr) -> Element:
    order = _order(values, x, y)
    return None if order is None else Expr.const(not order[1])


def _not(
    values: SymbolicValues, op: NotOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    is_bool = element_type(op.result) == i1
    flip = _unary(lambda values, x: 1 - x if is_bool else -1 - x)
    return flip(values, op, operands, shape)


def _bits(function: Callable[[int, int], int]) -> Rule:
    def decide(values: SymbolicValues, x: Expr, y: Expr) -> Element:
        del values
        numbers = constants([x, y])
        return None if numbers is None else Expr.const(function(*numbers))

    return _binary(decide)


def _moved(value: OpResult, operands: Sequence[Elements], shape: tuple[int, ...]) -> Elements:
    """The elements of a result of an op that only moves elements."""
    op, result = value.op, _unknown(shape)
    assert isinstance(op, MovesElements)
    for at in np.ndindex(*shape):
        index = constants(op.operand_index(0, list(map(Expr.const, at)), value.index))
        if index is None:
            return _unknown(shape)
        result[at] = operands[0][tuple(index)]
    return result


def _concat(
    values: Any, op: ConcatOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    del values, shape
    return np.concatenate(list(operands), op.axis.data)


def _gather(
    values: Any, op: GatherOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    del values
    data, indices = operands
    size = data.shape[op.axis.data]
    numbers = [None if e is None else e.value for e in indices.reshape(-1)]
    known = [n for n in numbers if n is not None and -size <= n < size]
    if len(known) != len(numbers):
        return _unknown(shape)
    taken = np.take(data, np.array(known, np.int64).reshape(indices.shape), op.axis.data)
    return np.asarray(taken, object)  # numpy unpacks what has no dimensions


_FOLDS: dict[ReduceKind, Callable[[Expr, Expr], Expr]] = {
    ReduceKind.SUM: lambda x, y: x + y,
    ReduceKind.PROD: lambda x, y: x * y,
    ReduceKind.MAX: maximum,
    ReduceKind.MIN: minimum,
}


def _reduce(
    values: Any, op: ReduceOp, operands: Sequence[Elements], shape: tuple[int, ...]
) -> Elements:
    del values
    axes = ints(op.axes)
    rest = [k for k in range(operands[0].ndim) if k not in axes]
    count = math.prod(operands[0].shape[axis] for axis in axes)
    rows = operands[0].transpose([*rest, *axes]).reshape(math.prod(shape), count)
    fold = _FOLDS[op.kind.data]
    identity = {ReduceKind.SUM: 0, ReduceKind.PROD: 1}.get(op.kind.data)

    def folded(row: Elements) -> Element:
        if any(element is None for element in row) or (len(row) == 0 and identity is None):
            return None
        total: Expr = row[0] if len(row) else Expr.const(identity or 0)
        for element in row[1:]:
            total = fold(total, element)
        return total

    return _array(map(folded, rows), shape)


_DECISIONS = (AndOp, CompareOp, NotOp, OrOp)
"""Ops that a symbol in an operand seldom decides: their own results get symbols instead."""

_RULES: dict[type[Operation], Rule] = {
    ConstantOp: _constant,
    FromDimsOp: _from_dims,
    IotaOp: _iota,
    AddOp: _binary(lambda values, x, y: x + y),
    SubOp: _binary(lambda values, x, y: x - y),
    MulOp: _binary(lambda values, x, y: x * y),
    DivOp: _binary(_div),
    RemOp: _binary(_rem),
    ModOp: _binary(_mod),
    MaxOp: _binary(lambda values, x, y: values.largest(x, y)),
    MinOp: _binary(lambda values, x, y: values.smallest(x, y)),
    NegOp: _unary(lambda values, x: -x),
    AbsOp: _unary(_abs),
    SignOp: _unary(_sign),
    AndOp: _bits(lambda x, y: x & y),
    OrOp: _bits(lambda x, y: x | y),
    NotOp: _not,
    CompareOp: _compare,
    SelectOp: _select,
    CastOp: _cast,
    ConcatOp: _concat,
    GatherOp: _gather,
    ReduceOp: _reduce,
}
