"""`count-iterations`: loops that count have a trip count, and number their iterations."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import FromDimsOp, scalar
from lowerdeck.dialects.core.control_flow import LoopOp, yielded
from lowerdeck.dialects.core.elementwise import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    MaxOp,
    MinOp,
    MulOp,
    SelectOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type, i64, is_integer, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.loops.loops import (
    FreshSymbols,
    constant_int,
    is_outside,
    iteration_symbol,
    limits,
    most_trips,
    replace_loop,
    yield_values,
)
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import uniform_value

_MIRRORED = {
    Predicate.LT: Predicate.GT,
    Predicate.LE: Predicate.GE,
    Predicate.GT: Predicate.LT,
    Predicate.GE: Predicate.LE,
}


@record
class Test:
    """`value predicate bound`, as it stands in a condition, with `value` on the left."""

    value: SSAValue
    predicate: Predicate
    bound: SSAValue

    @property
    def key(self) -> Hashable:
        """What tests have in common that say the same about the same value."""
        bound = constant_int(self.bound)
        return self.predicate, self.bound if bound is None else bound

    def holds(self, value: int) -> bool | None:
        """Whether a number passes the test; None if the bound is not known."""
        if (bound := constant_int(self.bound)) is None:
            return None
        match self.predicate:
            case Predicate.LT:
                return value < bound
            case Predicate.LE:
                return value <= bound
            case Predicate.GT:
                return value > bound
            case _:
                return value >= bound


@record
class Limit:
    """A test of the next iteration: of `first` after the first one, and of `step` more each time"""

    test: Test
    first: int
    step: int

    @property
    def bound(self) -> int | None:
        """The bound, if it is known, as one that is itself out of bounds."""
        if (bound := constant_int(self.test.bound)) is None:
            return None
        within = self.test.predicate in (Predicate.LE, Predicate.GE)
        return bound + (1 if self.step > 0 else -1) * within

    def passes(self, first: int) -> int:
        """The number of tests that hold one after the other, from one of `first` on."""
        assert self.bound is not None
        distance = (self.bound - first) * (1 if self.step > 0 else -1)
        return max(-(-distance // abs(self.step)), 0)

    def is_exact(self) -> bool:
        """True if no number that is tested, and none that is computed from them, wraps around."""
        least, greatest = limits(element := element_type(self.test.bound))
        if not least <= self.first <= greatest or greatest > 2**63 - 1:
            return False
        upward = self.test.predicate in (Predicate.LT, Predicate.LE)
        if upward != (self.step > 0):
            return False
        if self.bound is not None:
            last = self.bound - (1 if upward else -1) + self.step
            return least <= last <= greatest
        # Of a bound that is not known only so much is certain: it has the type of the counter.
        if self.test.predicate not in (Predicate.LT, Predicate.GT) or abs(self.step) != 1:
            return False
        return element != i64 or (upward and self.first >= 1)


def _conjuncts(value: SSAValue) -> Iterator[SSAValue]:
    """What has to hold for a condition to hold, without constants that do."""
    if isinstance(op := value.owner, AndOp):
        yield from _conjuncts(op.lhs)
        yield from _conjuncts(op.rhs)
    elif uniform_value(value) != np.True_:
        yield value


def _tests(values: Iterable[SSAValue], loop: LoopOp) -> Iterator[Test | None]:
    """Comparisons with what no iteration changes; None for any other condition."""
    for value in values:
        op = value.owner
        if not isinstance(op, CompareOp) or rank_of(op.lhs) or rank_of(op.rhs):
            yield None
            continue
        predicate = op.predicate.data
        if predicate not in _MIRRORED or not is_integer(element_type(op.lhs)):
            yield None
        elif _is_fixed(op.rhs, loop) and not _is_bound(op.lhs, loop):
            yield Test(op.lhs, predicate, op.rhs)
        elif _is_fixed(op.lhs, loop):
            yield Test(op.rhs, _MIRRORED[predicate], op.lhs)
        else:
            yield None


def _is_fixed(value: SSAValue, loop: LoopOp) -> bool:
    return is_outside(value, loop) or constant_int(value) is not None


def _is_bound(value: SSAValue, loop: LoopOp) -> bool:
    """True for what can only be the bound: it is outside, and not the number to start with."""
    return is_outside(value, loop) and constant_int(value) is None


def _progress(loop: LoopOp, index: int) -> int | None:
    """What each iteration adds to a carried integer."""
    argument, after = loop.carried_args[index], loop.yielded_carried[index].owner
    if rank_of(argument) or not is_integer(element_type(argument)):
        return None
    if isinstance(after, AddOp) and argument in after.operands:
        other = after.rhs if after.lhs is argument else after.lhs
        return constant_int(other)
    if isinstance(after, SubOp) and after.lhs is argument:
        amount = constant_int(after.rhs)
        return None if amount is None else -amount
    return None


def _sequence(value: SSAValue, loop: LoopOp) -> tuple[int, int] | None:
    """First number and step of an integer that each iteration computes from a counter."""
    if value in loop.carried_args:
        index = loop.carried_args.index(value)
        start, step = constant_int(loop.inits[index]), _progress(loop, index)
        return None if start is None or not step else (start, step)
    match value.owner:
        case AddOp() as op:
            pairs = ((op.lhs, op.rhs, 1), (op.rhs, op.lhs, 1))
        case SubOp() as op:
            pairs = ((op.lhs, op.rhs, -1),)
        case _:
            return None
    for base, amount, sign in pairs:
        number = constant_int(amount)
        if number is not None and base in loop.carried_args:
            found = _sequence(base, loop)
            return None if found is None else (found[0] + sign * number, found[1])
    return None


@record
class Plan:
    """How often a loop runs."""

    limits: Sequence[Limit]
    is_aligned: bool
    """The first condition is that of the iteration before the first one."""


class CountIterations(Pattern[Plan]):
    """loop(i; i < n) { i + 1 } -> loop(trip n)"""

    name = "count-iterations"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[Plan] | None:
        if op.condition is None or op.yielded_condition is None:
            return None
        found = [_limit(t, op) for t in _tests(_conjuncts(op.yielded_condition), op)]
        counted = [limit for limit in found if limit is not None and limit.is_exact()]
        if len(counted) < len(found) or (not counted and op.trip_count is None):
            return None
        if any(dim != 1 for dim in dims_of(op.condition)):
            return None
        reason = f"{len(counted)} bounds" if counted else "the condition holds again each time"
        return Match((op,), reason, Plan(counted, _is_aligned(op, counted)))

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        op, plan = match.root, match.data
        assert isinstance(op, LoopOp)
        trips = _trips(op, plan, rewriter)
        yield_values(op, yielded(op.body)[1:], rewriter)
        replace_loop(op, rewriter, trip_count=trips, condition=None)


def _limit(test: Test | None, loop: LoopOp) -> Limit | None:
    if test is None or (sequence := _sequence(test.value, loop)) is None:
        return None
    return Limit(test, *sequence)


def _is_aligned(op: LoopOp, counted: Sequence[Limit]) -> bool:
    """
    True if the initial condition says of the initial counters what the next one says of the next.
    """
    assert op.condition is not None
    tested: set[Hashable] = set()
    for test in _tests(_conjuncts(op.condition), op):
        if test is None or (start := constant_int(test.value)) is None:
            return False
        tested.add((test.key, start))
    expected = {(limit.test.key, limit.first - limit.step) for limit in counted}
    if not tested <= expected:
        return False
    starts = ((limit.test, limit.first - limit.step) for limit in counted)
    return all((test.key, start) in tested or test.holds(start) for test, start in starts)


def _trips(op: LoopOp, plan: Plan, rewriter: Rewriter) -> SSAValue:
    """The trip count: of the bounds that are numbers, then of the others, and of the loop's own."""

    def constant(value: int) -> SSAValue:
        return rewriter.add(scalar(value, i64)).result

    numbers: list[int] = []
    values: list[SSAValue] = []
    seen: set[Hashable] = set()
    for limit in plan.limits:
        if (key := (limit.test.key, limit.first, limit.step)) in seen:
            continue
        seen.add(key)
        # The first iteration needs no test but the initial condition.
        first = limit.first - limit.step if plan.is_aligned else limit.first
        more = 0 if plan.is_aligned else 1
        if limit.bound is not None:
            numbers.append(limit.passes(first) + more)
            continue
        bound, zero = _as_i64(limit.test.bound, rewriter), constant(first)
        if limit.step > 0:
            distance = rewriter.add(SubOp(rewriter.add(MaxOp(bound, zero)).result, zero))
        else:
            distance = rewriter.add(SubOp(zero, rewriter.add(MinOp(bound, zero)).result))
        result = distance.result
        values.append(rewriter.add(AddOp(result, constant(1))).result if more else result)
    if op.trip_count is not None:
        own = op.trip_count
        values.append(own if not rank_of(own) else rewriter.add(ReshapeOp(own, [])).result)
    if numbers:
        values.insert(0, constant(min(numbers)))
    trips = values[0]
    for value in values[1:]:
        trips = rewriter.add(MinOp(trips, value)).result
    assert op.condition is not None
    if (plan.is_aligned and plan.limits) or uniform_value(op.condition) == np.True_:
        return trips
    condition = op.condition
    if rank_of(condition):
        condition = rewriter.add(ReshapeOp(condition, [])).result
    return rewriter.add(SelectOp(condition, trips, constant(0))).result


def _as_i64(value: SSAValue, rewriter: Rewriter) -> SSAValue:
    return value if element_type(value) == i64 else rewriter.add(CastOp(value, i64)).result


class NumberIterations(Pattern[list[int]]):
    """loop(trip n, i = a) { i + s } -> a + s * (the number of the iteration)"""

    name = "number-iterations"
    roots = (LoopOp,)

    def __init__(self, fresh: FreshSymbols) -> None:
        self._fresh = fresh

    def match(self, op: LoopOp) -> Match[list[int]] | None:
        if op.condition is not None or op.trip_count is None:
            return None
        found = [
            index
            for index in range(len(op.inits))
            if _progress(op, index) is not None
            and (any(_users(op, index)) or op.results[index].first_use is not None)
        ]
        is_number_used = op.body.block.args[0].first_use is not None
        if not found and not is_number_used:
            return None
        return Match((op,), f"{len(found) + is_number_used} counters", found)

    def rewrite(self, match: Match[list[int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, LoopOp)
        number = iteration_symbol(op, self._fresh)
        argument = op.body.block.args[0]
        users = [use.operation for use in argument.uses]
        _replace(op, Numbers(argument, number, None, i64, fits=True), users, rewriter)
        for index in match.data:
            _number(op, index, number, rewriter)
            _count(op, index, rewriter)


def _users(op: LoopOp, index: int) -> tuple[list[Operation], list[Operation]]:
    """The ops that use a counter, but for the sum that it is next, and those that use the sum."""
    after, last = op.yielded_carried[index], op.body.block.last_op
    uses = op.carried_args[index].uses
    before = [use.operation for use in uses if use.operation is not after.owner]
    behind = [use.operation for use in after.uses if use.operation is not last]
    return before, behind


@record
class Numbers:
    """An integer of the body, and what it is in each iteration."""

    value: SSAValue
    number: Expr
    start: SSAValue | None
    """What has to be added, modulo 2^width, where it is not part of the expression."""
    element: Attribute
    fits: bool
    """The expression never wraps around in the integer's own type."""


def _number(op: LoopOp, index: int, number: Expr, rewriter: Rewriter) -> None:
    """Replace a counter in the body by the number that it is in this iteration."""
    argument, init, step = op.carried_args[index], op.inits[index], _progress(op, index)
    after = op.yielded_carried[index]
    assert step is not None
    start, element, most = constant_int(init), element_type(init), most_trips(op)
    base = None if start is not None else init
    grown = number * step + (start or 0)
    fits = start is not None and _fits(start, step, most, element)
    before, behind = _users(op, index)
    _replace(op, Numbers(argument, grown, base, element, fits), before, rewriter)
    fits = start is not None and _fits(start + step, step, most, element)
    _replace(op, Numbers(after, grown + step, base, element, fits), behind, rewriter)


def _replace(op: LoopOp, numbers: Numbers, users: Sequence[Operation], rewriter: Rewriter) -> None:
    if not users:
        return
    anchor, value, element = op.body.block.first_op, numbers.value, numbers.element
    assert anchor is not None
    wide = rewriter.insert_before(anchor, FromDimsOp([numbers.number], [])).result
    number: SSAValue = wide
    if element != i64:
        number = rewriter.insert_before(anchor, CastOp(wide, element)).result
    if numbers.start is not None:
        number = rewriter.insert_before(anchor, AddOp(numbers.start, number)).result
    for user in dict.fromkeys(users):
        if numbers.fits and isinstance(user, CastOp) and user.to == i64:
            rewriter.replace(user, wide)
            continue
        rewriter.set_operands(user, [number if old is value else old for old in user.operands])


def _fits(start: int, step: int, most: int | None, element: Attribute) -> bool:
    """True if no number of a counter wraps around."""
    if most is None:
        return False
    ends = (start, start + step * max(most - 1, 0))
    least, greatest = limits(element)
    return least <= min(ends) and max(ends) <= greatest


def _count(op: LoopOp, index: int, rewriter: Rewriter) -> None:
    """Replace a counter after the loop by its last number."""
    result, init, step = op.results[index], op.inits[index], _progress(op, index)
    if result.first_use is None:
        return
    assert op.trip_count is not None
    assert step is not None
    element = element_type(init)
    start, known = constant_int(init), most_trips(op)
    if start is not None and known is not None and constant_int(op.trip_count) is not None:
        least, greatest = limits(element)
        last = (start + step * known - least) % (greatest - least + 1) + least
        rewriter.replace_value(result, rewriter.add(scalar(last, element)).result)
        return
    trips = op.trip_count
    if rank_of(trips):
        trips = rewriter.add(ReshapeOp(trips, [])).result
    total = rewriter.add(MaxOp(trips, rewriter.add(scalar(0, i64)).result)).result
    if step != 1:
        total = rewriter.add(MulOp(total, rewriter.add(scalar(step, i64)).result)).result
    total = total if element == i64 else rewriter.add(CastOp(total, element)).result
    rewriter.replace_value(result, rewriter.add(AddOp(init, total)).result)


class CountIterationsPass(PatternPass):
    """
    Loops whose condition compares counters with bounds, as loops with a trip count.

    - loop(i = a, cond) { ...; yield i + s < n and j + t < m and ..., i + s, ... }
      -> loop(trip min(ceil((n - a) / s), ceil((m - b) / t), ...)) [the first condition is a < n and
      b < m and ...; otherwise one more than the tests that hold after the first iteration, or none
      if the first condition is false; a, s constant; n does not change; s > 0 (with >: s < 0); no
      counter wraps around: n is constant, or s = 1 and the comparison is <; a trip count that the
      loop has is one more bound]
    - loop(trip n, cond c) { yield true, ... } -> loop(trip n if c, else 0)
    - loop(trip n, i = a) { f(i); yield i + s } -> f(a + s * k) in iteration k, and a + s * n after
      the loop [s constant; modulo 2^width, so that any sum may wrap around]; i64(i) -> a + s * k as
      an expression [a constant, and no sum wraps around]

    An expression of the number of the iteration is an index that `loop-to-scan` understands.
    """

    name = "count-iterations"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [CountIterations(), NumberIterations(FreshSymbols(module))]
