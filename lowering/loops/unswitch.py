"""`unswitch`: loops are there several times where open sizes may limit an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, FuncOp, LoadOp
from lowerdeck.dialects.dims import Atom, Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents
from lowerdeck.lowering.targets.base import Target

MOST_LIMITS = 12
"""Of indices that are tested before a loop."""

MOST_SINGLES = 3
"""Sizes that may be 1, for each of which a loop is there once more."""

Limits = dict[Atom, Expr]
"""The lesser of an index and of something else, and what it is in an arm."""


@record
class _Arm:
    """A loop for some sizes."""

    limits: Limits
    tests: Sequence[tuple[Expr, str]]
    """What is compared with zero, and how."""


class _Unswitcher:
    """Decides before a loop what limits of indices in it change."""

    def __init__(self, loop: ForOp) -> None:
        self._loop = loop
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._indices.loop(loop)
        self._largest = dict(self._largest_of_loops())
        self._inside = {str(self._indices.symbol(value)) for value in _indices_in(loop)}
        self._limits: Limits = {}
        """The indices, for where limits change nothing."""
        self._bounds: dict[Expr, list[Atom]] = {}
        """What is limited, by what alone limits it."""
        self._room: dict[Expr, dict[Expr, None]] = {}
        """By all that limits something, what is not negative if it changes nothing."""

    def rewrite(self) -> None:
        """Nothing, if nothing limits an index, or too much does."""
        loop, parent, following = self._loop, self._loop.parent, self._loop.next_op
        assert parent is not None
        assert following is not None
        for op in all_ops(loop.body):
            if isinstance(op, LoadOp):
                for expr in self._indices.read(op.map.data, op.indices):
                    self._find(expr)
        if not 0 < len(self._room_but_of()) <= MOST_LIMITS:
            return
        uses = [[*result.uses] for result in loop.results]
        loop.detach()
        block = Block()
        values = self._choose([*self._arms()], block)
        for each, value in zip(uses, values, strict=True):
            for use in each:
                use.operation.operands[use.index] = value
        for op in list(block.ops):
            op.detach()
            parent.insert_op_before(op, following)

    def _arms(self) -> Iterator[_Arm]:
        """That nothing is limited, and then that of one size there is one."""
        yield _Arm(self._limits, [(room, "sge") for room in self._room_but_of()])
        if len(self._room) == len(self._bounds) <= MOST_SINGLES:
            for bound, atoms in self._bounds.items():
                limits = {**self._limits, **dict.fromkeys(atoms, Expr.const(0))}
                others = [(room, "sge") for room in self._room_but_of(bound)]
                yield _Arm(limits, [(bound, "eq"), *others])

    def _room_but_of(self, *bounds: Expr) -> list[Expr]:
        rooms = [each for bound, each in self._room.items() if bound not in bounds]
        return list(dict.fromkeys(room for each in rooms for room in each))

    def _choose(self, arms: Sequence[_Arm], block: Block) -> Sequence[SSAValue]:
        """The results of the first arm whose tests are true; of the loop as it was, if none is."""
        loop = self._loop
        if not arms:
            block.add_op(loop)
            return loop.results
        then, otherwise = Block(), Block()
        copy = _Free(self._indices, arms[0].limits).clone(loop, then)
        then.add_op(scf.YieldOp(*copy.results))
        otherwise.add_op(scf.YieldOp(*self._choose(arms[1:], otherwise)))
        test, types = self._test(arms[0], block), [result.type for result in loop.results]
        choice = scf.IfOp(test, types, Region(then), Region(otherwise))
        choice.location = loop.location
        block.add_op(choice)
        return choice.results

    def _largest_of_loops(self) -> Iterator[tuple[str, Expr]]:
        """The last index of this loop, and of each in it whose bounds do not depend on others."""
        for op in all_ops(self._loop):
            if isinstance(op, ForOp):
                _, upper, _ = self._indices.read(op.range.data, op.indices)
                yield str(self._indices.symbol(op.body.block.args[0])), upper - 1

    def _find(self, expr: Expr) -> None:
        """Add the lesser of several that are factors of an expression, if one of them moves."""
        for monomial, _ in expr.terms:
            for atom in monomial:
                if atom.kind != "min" or atom in self._limits:
                    continue
                moving = [arg for arg in atom.args if arg.symbols & self._inside]
                if len(moving) != 1 or (largest := self._largest_value(moving[0])) is None:
                    continue
                bounds = [arg for arg in atom.args if arg is not moving[0]]
                if any((bound - largest).value is not None for bound in bounds):
                    continue
                self._limits[atom] = moving[0]
                for bound in bounds:
                    self._room.setdefault(bound, {})[bound - largest] = None
                if len(bounds) == 1:
                    self._bounds.setdefault(bounds[0], []).append(atom)

    def _largest_value(self, expr: Expr) -> Expr | None:
        """An expression of what is outside; None if it does not grow with all indices inside."""
        for monomial, coefficient in expr.terms:
            is_symbol = [atom.kind == "symbol" for atom in monomial] == [True]
            moves = not Expr(((monomial, 1),)).symbols.isdisjoint(self._inside)
            if moves and not (is_symbol and coefficient > 0):
                return None
        largest = expr.substitute(self._largest)
        return None if largest.symbols & self._inside else largest

    def _test(self, arm: _Arm, block: Block) -> SSAValue:
        zero = arith.ConstantOp(IntegerAttr(0, i64))
        block.add_op(zero)
        tests: list[SSAValue] = []
        for value, predicate in arm.tests:
            (expr,), operands = self._indices.write([value])
            apply = ApplyOp(expr, operands)
            number = arith.IndexCastOp(apply.result, i64)
            test = arith.CmpiOp(number.result, zero.result, predicate)
            block.add_ops([apply, number, test])
            tests.append(test.result)

        def both(a: SSAValue, b: SSAValue) -> SSAValue:
            op = arith.AndIOp(a, b)
            block.add_op(op)
            return op.result

        return reduce(both, tests)


class _Free(Cloner):
    """Copies ops whose indices nothing limits."""

    def __init__(self, indices: Indices, limits: Limits) -> None:
        super().__init__(indices)
        self._limits = limits

    def fork(self) -> _Free:
        inner = _Free(self.indices, self._limits)
        inner.values, inner.moved = dict(self.values), dict(self.moved)
        return inner

    def exprs(self, op: Operation) -> list[Expr]:
        if not isinstance(op, LoadOp):
            return super().exprs(op)
        found = self.indices.read(op.map.data, op.indices)
        return [self._freed(expr).substitute(self.moved) for expr in found]

    def _freed(self, expr: Expr) -> Expr:
        total = Expr.const(0)
        for monomial, coefficient in expr.terms:
            factors = [self._limits.get(atom) or Expr((((atom,), 1),)) for atom in monomial]
            total = total + product(factors) * coefficient
        return total


def _indices_in(loop: ForOp) -> Iterator[SSAValue]:
    """The index values that are made in a loop, with its own."""
    for op in all_ops(loop):
        arguments = (arg for region in op.regions for block in region.blocks for arg in block.args)
        for value in (*arguments, *(op.results if op is not loop else ())):
            if isinstance(value.type, IndexType):
                yield value


def unswitch(block: Block, most_ops: int) -> None:
    """Go through the loops in a block, to those that no other loops but of vectors are in."""
    for op in list(block.ops):
        if isinstance(op, ForOp) and op.mode is None and not _has_loops(op):
            ops = all_ops(op)
            if len(ops) <= most_ops and any(map(_is_limited, ops)):
                _Unswitcher(op).rewrite()
            continue
        for region in op.regions:
            for inner in region.blocks:
                unswitch(inner, most_ops)


def _is_limited(op: Operation) -> bool:
    """True if an index of what is read may be the lesser of two."""
    return isinstance(op, LoadOp) and not all(expr.is_plain for expr in op.map.data)


def _has_loops(loop: ForOp) -> bool:
    return any(isinstance(op, ForOp) and op.mode is None for op in all_ops(loop.body))


class UnswitchPass(FunctionPass):
    """
    Put an innermost loop into the arms of a choice if an index of what it reads is the lesser of
    one that goes up with the loop and of a bound outside of it, as where an open size may be 1 and
    be broadcast: where the bound is above all indices it is not there, so that loads lie side by
    side.

    The test compares the bound with the last index. For each of a few sizes there is another arm in
    which it is 1: the index is 0 then, and what is read the same for the whole loop. Bounds of
    known loops are numbers, where `peel` cuts.
    """

    name = "unswitch"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        if target.lanes > 1:
            unswitch(function.body.block, target.limits.copied_body_ops)
