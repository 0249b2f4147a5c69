"""`reorder-binary`: operands of commutative and associative operators, in the better order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.types import broadcast, dims_of, element_type, is_integer
from lowerdeck.dialects.dims import product
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer

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
        """Equal for what is computed alike; the later a value is seen first, the larger."""
        self._first: dict[Hashable, tuple[bool, list[int]]] = {}
        """Of the first op with a key: whether its operands are swapped, and what it gives."""

    def match(self, op: Operation) -> Match[None] | None:
        if op.regions or not op.results:
            return None
        numbers = self._numbers
        operands = [numbers.setdefault(value, len(numbers)) for value in op.operands]
        properties: object = tuple(op.properties.items())
        if len(op.properties) > 1:
            properties = tuple(sorted(op.properties.items()))
        swapped = False
        if _commutes(op):
            swapped = operands[0] > operands[1]
            operands.sort()
            if isinstance(op, e.CompareOp):
                predicate = op.predicate.data
                properties = _MIRRORED[predicate] if swapped else predicate
        key = (type(op), tuple(operands), properties, tuple(op.result_types))
        if (first := self._first.get(key)) is None:
            own = [numbers.setdefault(result, len(numbers)) for result in op.results]
            self._first[key] = (swapped, own)
            return None
        before, given = first
        numbers.update(zip(op.results, given, strict=True))
        return None if swapped == before else Match((op,), "the order of an op before")

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, e.BinaryOp | e.CompareOp)
        if isinstance(op, e.CompareOp):
            rewriter.replace(op, e.CompareOp(_MIRRORED[op.predicate.data], op.rhs, op.lhs))
        else:
            rewriter.set_operands(op, [op.rhs, op.lhs])


def _is_associative(op: Operation) -> bool:
    """True for operators of integers, which wrap, and of bits: floats are rounded each time."""
    if not isinstance(op, (*_COMMUTATIVE, *_OF_INTEGERS)):
        return False
    return is_integer(element_type(op.result)) or isinstance(op, e.BitwiseOp)


def _inner(value: SSAValue, cls: type[Operation]) -> e.BinaryOp | None:
    """The op of a class that makes a value with no other user."""
    op = producer(value, cls)
    return op if isinstance(op, e.BinaryOp) and value.has_one_use() else None


class ConstantsMeet(Pattern[frozenset[SSAValue]]):
    """(x + c) + (y + d) -> (x + y) + (c + d)"""

    name = "constants-meet"
    roots = (*_COMMUTATIVE, *_OF_INTEGERS)
    ranked = True

    def match(self, op: e.BinaryOp) -> Match[frozenset[SSAValue]] | None:
        if not _is_associative(op) or _is_part(op):
            return None
        ops = _tree(op)
        known = _known(ops)
        rest = [each for each in ops if each.result not in known]
        constants = [value for each in rest for value in each.operands if value in known]
        if len(constants) < 2:
            return None
        return Match((*rest,), f"{len(constants)} constants", known)

    def rewrite(self, match: Match[frozenset[SSAValue]], rewriter: Rewriter) -> None:
        top = match.root
        assert isinstance(top, e.BinaryOp)
        constants: list[SSAValue] = []
        left: dict[SSAValue, SSAValue | None] = {}
        for op in reversed(match.consumed):
            constants += [value for value in op.operands if value in match.data]
            others = [value for value in op.operands if value not in match.data]
            values = [v for each in others if (v := left.get(each, each)) is not None]
            if len(values) == 2:
                left[op.results[0]] = rewriter.add(type(top)(*values)).result
            else:
                left[op.results[0]] = values[0] if values else None
        total = constants[0]
        for value in constants[1:]:
            total = rewriter.add(type(top)(total, value)).result
        rest = left[top.result]
        assert rest is not None
        rewriter.replace(top, type(top)(rest, total))


def _is_part(op: e.BinaryOp) -> bool:
    """True if the only use of an op is in one of its class."""
    use = op.result.first_use
    return op.result.has_one_use() and use is not None and type(use.operation) is type(op)


def _tree(top: e.BinaryOp) -> list[e.BinaryOp]:
    """The ops of one class, each before its operands, that compute a value from all others."""
    ops = [top]
    for op in ops:
        inner = (_inner(value, type(top)) for value in op.operands)
        ops += [each for each in inner if each is not None]
    return ops


def _known(ops: Sequence[e.BinaryOp]) -> frozenset[SSAValue]:
    """The constants among the operands of a tree, and what it computes from constants only."""
    known = {v for op in ops for v in op.operands if isinstance(v.owner, ConstantOp)}
    for op in reversed(ops):
        if known.issuperset(op.operands):
            known.add(op.result)
    return frozenset(known)


def _is_known(value: SSAValue, cls: type[Operation]) -> bool:
    """True if ops of one class compute a value from constants only."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ConstantOp):
            continue
        # What is not known is seen before a long chain of constants beside it is followed.
        if (op := _inner(value, cls)) is None or not all(map(_may_be_known, op.operands)):
            return False
        pending += op.operands
    return True


def _may_be_known(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) or (
        isinstance(value.owner, e.BinaryOp) and value.has_one_use()
    )


class FewElementsFirst(Pattern[tuple[SSAValue, SSAValue, SSAValue]]):
    """(x + y) + z -> x + (y + z) [y + z has fewer elements than x + y]"""

    name = "few-elements-first"
    roots = (*_COMMUTATIVE, *_OF_INTEGERS)
    ranked = True

    def match(self, op: e.BinaryOp) -> Match[tuple[SSAValue, SSAValue, SSAValue]] | None:
        if not _is_associative(op):
            return None
        for outer, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if (inner := _inner(outer, type(op))) is None or outer is other:
                continue
            before = product(dims_of(outer)).value
            for kept, moved in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
                after = product(broadcast([dims_of(kept), dims_of(other)])).value
                if before is None or after is None or after >= before:
                    continue
                # Constants that have met stay together.
                if not _is_known(outer, type(op)):
                    return Match((op, inner), "fewer elements first", (moved, kept, other))
        return None

    def rewrite(
        self, match: Match[tuple[SSAValue, SSAValue, SSAValue]], rewriter: Rewriter
    ) -> None:
        op = match.root
        assert isinstance(op, e.BinaryOp)
        moved, kept, other = match.data
        few = rewriter.add(type(op)(kept, other)).result
        rewriter.replace(op, type(op)(moved, few))


class ReorderBinaryPass(PatternPass):
    """
    The order of operands: equal ops become visible to `cse`, constants meet, and little is computed
    before much.

    - z * x -> x * z, z > x -> x < z [x * z, or x < z, is computed before; likewise for +, and, or,
      xor, ==, != and max and min of integers; x and z are equal up to such changes]
    - (x + c) + (y + d) -> (x + y) + (c + d) [integers, which wrap, and bits; c and d constant,
      wherever in a tree of such sums they are; likewise for *, and, or, xor, max and min]
    - (x + y) + z -> x + (y + z) [the same ops; y + z has fewer elements than x + y]

    Sums and products of floats commute, but for which NaN comes out; they are not associative. The
    maximum of 0 and -0 may be either, in either order.
    """

    name = "reorder-binary"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SameOrder(), ConstantsMeet(), FewElementsFirst()]
