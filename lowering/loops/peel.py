"""`peel`: loops are cut where what they read begins to lie otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.buffer.kernel import ApplyOp, ForOp, FuncOp, LoadOp, StoreOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.dims import Atom, Expr, constants
from lowerdeck.dialects.intervals import interval
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.loops.indices import Cloner, Indices
from lowerdeck.lowering.loops.unroll_tiles import limit_by_parents, replace
from lowerdeck.lowering.nests.lower import remove_unused
from lowerdeck.lowering.targets.base import Target

Values = NDArray[np.int64]

MOST_PARTS = 8
"""Parts that a loop is cut into at most."""

FEWEST_BY_TESTS, FEWEST_BY_INDICES = 2, 4
"""Iterations that a part has at least, on average: a test costs more than an index that bends. If
there are loops in each iteration, one is enough to be rid of tests in them."""

_NOTHING: Values = np.zeros(0, np.int64)

MOST_ITERATIONS = 1 << 16
"""Of loops that are looked at, one iteration after the other."""


class Peeler:
    """Cuts one loop, if its index is one of those that decide what is read."""

    def __init__(self, loop: ForOp, most_ops: int, steps: Mapping[str, int]) -> None:
        self._loop = loop
        self._most_ops = most_ops
        self._step = 0 if loop.label is None else steps.get(loop.label.data, 0)
        self._indices = Indices()
        limit_by_parents(loop, self._indices)
        self._index = self._indices.loop(loop)

    def rewrite(self, *, by_tests: bool) -> list[ForOp]:
        """
        The parts, cut by what tests decide or by where indices are; none, and nothing changes, if
        all iterations are alike or the parts become too many.
        """
        bounds = constants(self._loop.range.data)
        if bounds is None or bounds[2] != 1 or self._loop.inits:
            return []
        if self._loop.mode is not None and not by_tests:
            return []
        lower, upper, _ = bounds
        size = upper - lower
        if not 2 <= size <= MOST_ITERATIONS:
            return []
        places = np.arange(lower, upper, dtype=np.int64)
        cuts = sorted(self._changes(places) if by_tests else self._bends(places))
        if not by_tests and self._step and all(cut % self._step == 0 for cut in cuts):
            # Tiles begin there, as at every panel of what is packed for them.
            return []
        count = len(cuts) + 1
        fewest = count * (FEWEST_BY_TESTS if by_tests else FEWEST_BY_INDICES)
        if by_tests and any(isinstance(op, ForOp) for op in self._loop.body.block.ops):
            fewest = count
        is_much = count * len(all_ops(self._loop.body)) > self._most_ops
        if not cuts or count > MOST_PARTS or size < fewest or is_much:
            return []
        block = Block()
        parts = [
            self._part(lower + start, end - start, block)
            for start, end in pairwise([0, *cuts, size])
        ]
        replace(self._loop, block)
        return parts

    def _part(self, lower: int, size: int, block: Block) -> ForOp:
        loop = self._loop
        body = Block(arg_types=[IndexType()])
        number = self._indices.symbol(body.args[0])
        self._indices.limit(number, 0, size)
        cloner = _Folder(self._indices, moved={str(self._index): number + lower})
        cloner.is_choice = _is_choice(loop)
        for op in loop.body.block.ops:
            cloner.clone(op, body)
        new = ForOp(
            (Expr.const(0), Expr.const(size), Expr.const(1)),
            [],
            [],
            Region(body),
            parallel=bool(loop.parallel.value.data),
            label=None if loop.label is None else loop.label.data,
            mode=None if loop.mode is None else loop.mode.data,
        )
        new.location = loop.location
        block.add_op(new)
        return new

    def _bends(self, places: Values) -> set[int]:
        """The iterations before which an address begins to go another way."""
        cuts: set[int] = set()
        for op in all_ops(self._loop.body):
            if isinstance(op, LoadOp | StoreOp):
                # Of rows in line, the bends of one index make up for those of another.
                buffer, at = ref_type(op.ref), self._indices.read(op.map.data, op.indices)
                if all(expr.is_plain for expr in (*at, *buffer.strides.data)):
                    continue
                offset = buffer.offset(at)
                for atom in self._bent(offset):
                    cuts |= _bends(_of_atom(atom, places))
        return cuts

    def _changes(self, places: Values) -> set[int]:
        """The iterations before which a test begins to come out otherwise."""
        cuts: set[int] = set()
        for op in all_ops(self._loop.body):
            if isinstance(op, ForOp):
                self._indices.loop(op)
            test = _test_of(op, self._indices)
            if test is None or str(self._index) not in test[0].symbols:
                continue
            least, largest = self._bounds(test[0], places)
            first, last = _passes(op, least, test[1]), _passes(op, largest, test[1])
            if first is not None and last is not None:
                cuts |= {int(k) + 1 for k in np.flatnonzero(np.diff(first) | np.diff(last))}
        return cuts

    def _bounds(self, expr: Expr, places: Values) -> tuple[Values, Values]:
        """
        The least and the greatest value of an expression in each iteration; none unless it goes on
        by more than what other loops add, as from one block of channels to the next.
        """
        alone, others = Expr.const(0), Expr.const(0)
        for term in expr.terms:
            each = Expr((term,))
            if str(self._index) not in each.symbols:
                others = others + each
            elif len(each.symbols) == 1:
                alone = alone + each
            else:
                return _NOTHING, _NOTHING
        values, bounds = _of(alone, places), interval(others, self._indices.ranges)
        if bounds is None or (np.abs(np.diff(values)) <= bounds[1] - bounds[0]).any():
            return _NOTHING, _NOTHING
        return values + bounds[0], values + bounds[1]

    def _bent(self, expr: Expr) -> Iterator[Atom]:
        """What is not a sum of multiples of indices and depends on that of the loop alone."""
        for monomial, _ in expr.terms:
            for atom in monomial:
                if atom.kind == "symbol":
                    continue
                names = Expr((((atom,), 1),)).symbols
                if names == frozenset([str(self._index)]):
                    yield atom
                elif str(self._index) in names:
                    for argument in atom.args:
                        yield from self._bent(argument)


def _is_choice(op: Operation) -> bool:
    """True if an op runs under some condition only."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.IfOp):
        parent = parent.parent_op()
    return parent is not None


def _of(expr: Expr, places: Values) -> Values:
    """The values of an expression of one symbol."""
    total = np.zeros_like(places)
    for monomial, coefficient in expr.terms:
        factors = np.full_like(places, coefficient)
        for atom in monomial:
            factors = factors * _of_atom(atom, places)
        total = total + factors
    return total


def _of_atom(atom: Atom, places: Values) -> Values:
    if atom.kind == "symbol":
        return places
    first, *others = (_of(argument, places) for argument in atom.args)
    for other in others:
        match atom.kind:
            case "min":
                first = np.minimum(first, other)
            case "max":
                first = np.maximum(first, other)
            case "floordiv":
                first = first // np.where(other == 0, 1, other)
            case _:
                first = first % np.where(other == 0, 1, other)
    return first


def _bends(values: Values) -> set[int]:
    """Where one straight line ends and another one begins: long ones are taken whole."""
    steps = np.diff(values)
    starts = [0, *(int(k) + 1 for k in np.flatnonzero(np.diff(steps))), len(steps)]
    if len(starts) > 4 * MOST_PARTS:
        return set(range(1, len(values)))
    owners = np.full(len(values), -1)
    lines = list(pairwise(starts))
    for number, (first, last) in sorted(enumerate(lines), key=lambda line: _steps(line[1])):
        # So many steps go through one value more, which may be the first one of the next line.
        part = owners[first : last + 1]
        part[part == -1] = number
    return {int(k) + 1 for k in np.flatnonzero(np.diff(owners))}


def _steps(line: tuple[int, int]) -> int:
    return line[0] - line[1]


def _test_of(op: Operation, indices: Indices) -> tuple[Expr, int] | None:
    """The index expression and the number that are compared, if an op does that."""
    if not isinstance(op, arith.CmpiOp):
        return None
    cast_, number = op.lhs.owner, op.rhs.owner
    if not isinstance(cast_, arith.IndexCastOp) or not isinstance(number, arith.ConstantOp):
        return None
    apply = cast_.input.owner
    if not isinstance(apply, ApplyOp) or not isinstance(number.value, IntegerAttr):
        return None
    (expr,) = indices.read(apply.map.data, apply.indices)
    return expr, number.value.value.data


def _passes(op: Operation, values: Values, number: int) -> NDArray[np.bool_] | None:
    """Which of the values pass a test of signed integers; None for other tests."""
    assert isinstance(op, arith.CmpiOp)
    match op.predicate.value.data:
        case 0:
            return values == number
        case 1:
            return values != number
        case 2:
            return values < number
        case 3:
            return values <= number
        case 4:
            return values > number
        case 5:
            return values >= number
        case _:
            return None


class _Folder(Cloner):
    """Copies ops, but for tests that come out alike wherever the indices are in their ranges."""

    def __init__(
        self,
        indices: Indices,
        values: dict[SSAValue, SSAValue] | None = None,
        moved: dict[str, Expr] | None = None,
    ) -> None:
        super().__init__(indices, values, moved)
        self.truths: dict[SSAValue, bool] = {}
        self.is_choice = False
        """Whether what is copied runs under some condition only."""

    def fork(self) -> _Folder:
        inner = _Folder(self.indices, dict(self.values), dict(self.moved))
        inner.truths, inner.is_choice = dict(self.truths), self.is_choice
        return inner

    def clone(self, op: Operation, block: Block) -> Operation:
        if isinstance(op, ApplyOp):
            # It is computed where it is used, as one expression of what is outside.
            (self.moved[str(self.indices.symbol(op.result))],) = self.exprs(op)
            return op
        if isinstance(op, scf.IfOp):
            return self._choose(op, block)
        if isinstance(op, arith.AndIOp) and op.result.type == i1:
            return self._both(op, block)
        if (truth := self._truth(op)) is not None:
            return self._known(op, truth, block)
        new = super().clone(op, block)
        if isinstance(new, LoadOp) and not self.is_choice:
            new.volatile = None
        return new

    def _truth(self, op: Operation) -> bool | None:
        test = _test_of(op, self.indices)
        if test is None:
            return None
        assert isinstance(op, arith.CmpiOp)
        bounds = interval(test[0].substitute(self.moved), self.indices.ranges)
        if bounds is None:
            return None
        passes = _passes(op, np.asarray(bounds), test[1])
        is_order = op.predicate.value.data > 1
        if passes is None or not (is_order or bounds[0] == bounds[1]):
            return None
        return bool(passes[0]) if passes[0] == passes[1] else None

    def _known(self, op: Operation, truth: bool, block: Block) -> Operation:
        new = arith.ConstantOp(IntegerAttr(int(truth), i1))
        self.add(new, op, block)
        self.truths[op.results[0]] = truth
        return new

    def _both(self, op: arith.AndIOp, block: Block) -> Operation:
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            truth = self.truths.get(one)
            if truth is False:
                return self._known(op, truth, block)
            if truth is True:
                if other in self.truths:
                    return self._known(op, self.truths[other], block)
                self.values[op.result] = self.value(other)
                return op
        return super().clone(op, block)

    def _choose(self, op: scf.IfOp, block: Block) -> Operation:
        truth = self.truths.get(op.cond)
        if truth is None:
            was_choice, self.is_choice = self.is_choice, True
            new = super().clone(op, block)
            self.is_choice = was_choice
            return new
        region = op.true_region if truth else op.false_region
        if not region.blocks:
            return op
        for inner in region.block.ops:
            if isinstance(inner, scf.YieldOp):
                for result, value in zip(op.results, inner.operands, strict=True):
                    self.values[result] = self.value(value)
                    if value in self.truths:
                        self.truths[result] = self.truths[value]
            else:
                self.clone(inner, block)
        return op


def peel_by_tests(block: Block, most_ops: int) -> bool:
    """Cut the loops of a block, outer ones first: a test that is gone is so in all inner ones."""
    found = False
    for op in list(block.ops):
        parts = Peeler(op, most_ops, {}).rewrite(by_tests=True) if isinstance(op, ForOp) else []
        found = found or bool(parts)
        for region in (region for part in parts or [op] for region in part.regions):
            for inner in region.blocks:
                found = peel_by_tests(inner, most_ops) or found
    return found


def peel_by_indices(block: Block, most_ops: int, steps: Mapping[str, int]) -> bool:
    """
    Cut the loops of a block, inner ones first: those are the ones that become vectors. `steps` are
    the iterations of a tile of the loops with labels.
    """
    found = False
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                found = peel_by_indices(inner, most_ops, steps) or found
        if isinstance(op, ForOp):
            found = bool(Peeler(op, most_ops, steps).rewrite(by_tests=False)) or found
    return found


def _has_tests(function: FuncOp) -> bool:
    """True if something is compared: most kernels have nothing of the kind."""
    return any(isinstance(op, arith.CmpiOp) for op in all_ops(function))


def _has_bends(function: FuncOp) -> bool:
    """True if an address is not a sum of multiples of indices."""
    for op in all_ops(function):
        if isinstance(op, LoadOp | StoreOp):
            strides = ref_type(op.ref).strides.data
            if not all(expr.is_plain for expr in (*op.map.data, *strides)):
                return True
    return False


def _steps_of_tiles(function: FuncOp) -> dict[str, int]:
    """By label, the iterations of the tiles that the schedule of a function asks for."""
    if function.schedule is None:
        return {}
    schedule = function.schedule.data
    return {label: count * schedule.vector(label) for label, count in schedule.tiles}


class PeelPass(FunctionPass):
    """
    Cut loops where what is read begins to lie otherwise, as at the border of what is padded, so
    that in each part an index is a sum of multiples of indices of loops, and tests of indices that
    come out alike in all of it are gone. Loops whose tiles, by the schedule, begin at all of these
    places stay whole.

    Only loops of known size are cut, into a few parts, and as far as that does not make too much of
    their bodies.
    """

    name = "peel"
    optional = True

    def run(self, function: FuncOp, target: Target) -> None:
        body, most_ops = function.body.block, target.limits.copied_body_ops
        is_cut = _has_tests(function) and peel_by_tests(body, most_ops)
        if _has_bends(function):
            steps = _steps_of_tiles(function)
            is_cut = peel_by_indices(body, most_ops, steps) or is_cut
        if is_cut:
            remove_unused(body)
