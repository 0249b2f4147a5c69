"""`reorder-binary`: operands of commutative and associative operators, in the better order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import broadcast, dims_of, element_type, is_integer
from lowerdeck.dialects.dims import product
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter, producer

_COMMUTATIVE = (e.AddOp, e.MulOp, e.AndOp, e.OrOp, e.XorOp)
"""Of every element type: the sum of two floats is rounded once, whichever comes first."""

_OF_INTEGERS = (e.MaxOp, e.MinOp)
"""Of floats, 0 and -0 are equal, and the larger one may be either."""

_MIRRORED = {
    Predicate.EQ: Predicate.EQ,
    Predicate.NE: Predicate.NE,
    Predicate.LT: Predicate.GT,
    Predicate.GT: Predicate.LT,
    Predicate.LE: Predicate.GE,
    Predicate.GE: Predicate.LE,
}


def _commutes(op: Operation) -> bool:
    if isinstance(op, _OF_INTEGERS):
        return is_integer(element_type(op.lhs))
    return isinstance(op, (*_COMMUTATIVE, e.CompareOp))


class SameOrder(Pattern[None]):
    """
    z * x -> x * z, y > x -> x < y [x * z or x < y is computed earlier]

    What is computed alike, but for the order of operands, counts as one value, so that the order of
    what is computed from it is found, too.
    """

    name = "same-order"

    def __init__(self) -> None:
        self._numbers: dict[SSAValue, int] = {}
        self._first: dict[Hashable, tuple[bool, list[int]]] = {}
        """Of the first op with a key: whether its operands are swapped, and what it gives."""
        self._count = 0

    def match(self, op: Operation) -> Match[None] | None:
        if op.regions or not op.results:
            return None
        operands = [self._number(value) for value in op.operands]
        properties = tuple(sorted(op.properties.items()))
        swapped = False
        if _commutes(op):
            swapped = operands[0] > operands[1]
            operands.sort()
            if isinstance(op, e.CompareOp):
                predicate = op.predicate.data
                properties = _MIRRORED[predicate] if swapped else predicate
        key = (type(op), tuple(operands), properties, tuple(op.result_types))
        if key not in self._first:
            self._first[key] = (swapped, [self._number(result) for result in op.results])
        before, numbers = self._first[key]
        self._numbers.update(zip(op.results, numbers, strict=True))
        return None if swapped == before else Match((op,), "the order of an op before")

    def _number(self, value: SSAValue) -> int:
        if value not in self._numbers:
            self._numbers[value] = self._count
            self._count += 1
        return self._numbers[value]

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, e.BinaryOp | e.CompareOp)
        if isinstance(op, e.CompareOp):
            rewriter.replace(op, e.CompareOp(_MIRRORED[op.predicate.data], op.rhs, op.lhs))
        else:
            rewriter.set_operands(op, [op.rhs, op.lhs])


@dataclass(frozen=True)
class Chain:
    """(x + y) + z, the operands in the order that they are to be added in."""

    cls: type[e.BinaryOp]
    values: tuple[SSAValue, SSAValue, SSAValue]
    """The first two are added first."""


class Reassociate(Pattern[Chain]):
    """
    (x + c) + y -> (x + y) + c [c constant, y is not; x + y has no more elements than x + c]

    (x + y) + z -> (y + z) + x [y + z has fewer elements than x + y]
    """

    name = "reassociate"
    roots = (*_COMMUTATIVE, *_OF_INTEGERS)
    ranked = True

    def match(self, op: e.BinaryOp) -> Match[Chain] | None:
        element, cls = element_type(op.result), type(op)
        if not is_integer(element) and not isinstance(op, e.BitwiseOp):
            return None  # floats are rounded after each step
        for outer, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = producer(outer, cls)
            if inner is None or not outer.has_one_use() or outer is other:
                continue
            for kept, moved in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
                if (reason := _reason(kept, moved, other)) is not None:
                    return Match((op, inner), reason, Chain(cls, (kept, other, moved)))
        return None

    def rewrite(self, match: Match[Chain], rewriter: Rewriter) -> None:
        chain = match.data
        first, second, last = chain.values
        value = rewriter.add(chain.cls(first, second)).result
        both = (value, last) if isinstance(last.owner, ConstantOp) else (last, value)
        rewriter.replace(match.root, chain.cls(*both))


def _reason(kept: SSAValue, moved: SSAValue, other: SSAValue) -> str | None:
    """Why (kept + other) + moved is better than (kept + moved) + other, if it is."""
    before, after = _elements(kept, moved), _elements(kept, other)
    if before is None or after is None:
        return None
    constants = [isinstance(value.owner, ConstantOp) for value in (kept, moved, other)]
    if after < before and not (constants[0] and constants[1]):
        return "fewer elements first"
    if after == before and constants == [False, True, False]:
        return "constants last"
    return None


def _elements(x: SSAValue, y: SSAValue) -> int | None:
    """The number of elements of an operator of two values."""
    return product(broadcast([dims_of(x), dims_of(y)])).value


class ReorderBinaryPass(PatternPass):
    """
    The order of operands: equal ops become visible to `cse`, constants meet, and little is computed
    before much.

    - z * x -> x * z, z > x -> x < z [x * z, or x < z, is computed before; likewise for +, and, or,
      xor, ==, != and max and min of integers; x and z are equal up to such changes]
    - (x + c) + y -> (x + y) + c [integers, which wrap, and bits; c constant, x and y are not; as
      many elements; likewise for *, and, or, xor, max and min]
    - (x + y) + z -> (x + z) + y [the same ops; x + z has fewer elements than x + y]

    Sums and products of floats commute, but for which NaN comes out; they are not associative. The
    maximum of 0 and -0 may be either, in either order.
    """

    name = "reorder-binary"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SameOrder(), Reassociate()]
