"""
Branches and loops: those that constants decide are followed, others become `core.if` and
`core.loop`, with what they change as results.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.types import Tensor as TensorTypeOf
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i64, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.frontends.pt2.aliases import Storage
from lowerdeck.frontends.torchscript.functions import CODES
from lowerdeck.frontends.torchscript.operators import KINDS, describe
from lowerdeck.frontends.torchscript.run import Env, Program
from lowerdeck.frontends.torchscript.values import (
    Cell,
    Named,
    Nothing,
    Number,
    RaisedError,
    Rows,
    ScriptError,
    Slot,
    Tensor,
    Unknown,
    UnknownError,
    copied,
    has,
    held,
    kind_of,
    leaves,
    places_in,
    rebuilt,
    same_form,
)

Slots: TypeAlias = "dict[tuple[int, Any], Slot]"

_UNROLLED = 64
"""Iterations up to which a loop is unrolled in any case."""

_MOST_ITERATIONS = 512
"""Iterations of a loop that is unrolled because it makes lists."""

_TRIALS = 24
"""Attempts at the types of a loop: each time a dimension becomes open, or more is carried."""


class LoopFormError(Exception):
    """A loop changes what cannot be carried from iteration to iteration."""


@dataclass
class _End:
    """What a branch or body leaves behind."""

    block: Block
    slots: Slots
    values: dict[tuple[int, Any], Any]
    """What the changed places hold."""
    known: dict[int, SSAValue]
    """The values of the tensors in them, by identity."""

    def read(self, leaf: Any) -> Any:
        """A tensor's value, or anything else as it is."""
        return self.known.get(id(leaf), leaf)


class Flow(Program):
    """A program with its control flow."""

    # If

    def follow_if(self, node: ast.If, env: Env) -> None:
        condition = self.truth(node.test, env)
        if isinstance(condition, bool):
            self.statements(node.body if condition else node.orelse, env)
            return
        if isinstance(condition, Unknown):
            if condition.reason:
                self.report("if", f"found a condition that is {condition.reason}")
            for body in (node.body, node.orelse):
                self._follow_unknown(body, env)
            return
        self._both(node, condition, env)

    def truth(self, test: ast.expr, env: Env) -> bool | Number | Unknown:
        """A condition: known, or decided by a run."""
        found = self._guarded(test, env)
        if isinstance(found, Tensor):
            found = self.item(found)
        return found if isinstance(found, Number | Unknown) else bool(found)

    def _follow_unknown(self, body: Sequence[ast.stmt], env: Env) -> None:
        """Follow statements for what is refused in them; what they change is unknown."""
        since = len(self.journal.entries)
        self.blocks.append(Block())
        try:
            self.statements(body, env)
        except RaisedError:
            pass
        finally:
            self.blocks.pop()
        slots = self.journal.changed(since)
        self.journal.undo(since)
        for into, key in slots.values():
            if isinstance(into, dict):
                self.journal.set(cast("dict[Any, Any]", into), key, Unknown())

    def _both(self, node: ast.If, condition: Number, env: Env) -> None:
        self.either(
            condition,
            lambda: self.statements(node.body, env),
            lambda: self.statements(node.orelse, env),
        )

    def either(self, condition: Number, one: Callable[[], Any], other: Callable[[], Any]) -> None:
        """Follow one or the other, as a run decides: `core.if`, and what both leave behind."""
        born, line, old = self.made, self._line, places_in(self.held)
        ends: list[_End] = []
        for follow, instead in ((one, other), (other, one)):
            self._line = line
            end = self._branch(follow, old)
            if end is None:
                # The program raises an error there, which no run is expected to meet.
                instead()
                return
            ends.append(end)
        slots: Slots = {**ends[0].slots, **ends[1].slots}
        slots = {
            key: slot
            for key, slot in slots.items()
            if self._is_there(key, slot, ends) and self.was_there(slot[0], born, old)
        }
        merge = _Merge(self, ends, born)
        merged = {key: merge.place(key, slot) for key, slot in slots.items()}
        results = merge.finish(condition)
        for key, slot in slots.items():
            self.put(slot, merged[key](results))
        merge.freeze()

    def was_there(self, into: Any, born: int, old: Mapping[int, Any]) -> bool:
        """True for what can be changed outside of a branch or an iteration."""
        if isinstance(into, Storage):
            return not _is_local(into, born)
        return id(into) in old

    def _is_there(self, key: tuple[int, Any], slot: Slot, ends: Sequence[_End]) -> bool:
        """True for a place that holds something after both branches."""
        return has(slot) or all(key in end.values for end in ends)

    def _branch(self, follow: Callable[[], Any], old: Mapping[int, Any]) -> _End | None:
        """What statements leave behind in a block of their own; None if they raise an error."""
        since = len(self.journal.entries)
        block = Block()
        self.blocks.append(block)
        try:
            follow()
            return self._end(block, since, old)
        except RaisedError:
            return None
        finally:
            self.journal.undo(since)
            self.blocks.pop()

    def _end(self, block: Block, since: int, old: Mapping[int, Any]) -> _End:
        slots = self.journal.changed(since)
        # Lists that were made here lose what they got since when the changes are undone.
        made: dict[int, Any] = {}
        values = {key: _held_then(slot, old, made) for key, slot in slots.items() if has(slot)}
        known: dict[int, SSAValue] = {}
        for value in values.values():
            for leaf in leaves(value):
                if isinstance(leaf, Tensor):
                    known[id(leaf)] = self.read(leaf)
        return _End(block, slots, values, known)

    def put(self, slot: Slot, value: Any) -> None:
        """Let a place hold a value."""
        into, key = slot
        if isinstance(into, Storage):
            self.journal.storage(into)
            self.made += 1
            into.value, into.version = value, self.made
        elif isinstance(into, list):
            is_known = isinstance(value, list)
            items = cast("list[Any]", value) if is_known else [Unknown(describe(value), True)]
            self.journal.list(cast("list[Any]", into))[:] = items
        else:
            self.journal.set(cast("dict[Any, Any]", into), key, value)

    # Loops

    def follow_for(self, node: ast.For, env: Env) -> None:
        call = node.iter
        is_range = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range"
        if not isinstance(node.target, ast.Name) or not is_range:
            self.report("for", "found a loop over something else than a range")
            return
        count = self._guarded(cast(ast.Call, call).args[0], env)
        name = node.target.id
        if isinstance(count, Unknown):
            self._follow_unknown(node.body, {**env, name: Unknown()})
            return
        if isinstance(count, int):
            self._counted(node, name, count, env)
            return
        since, marks = len(self.journal.entries), len(self.problems)
        try:
            self._rolled(node.body, count, name, None, env, grows=True)
        except LoopFormError as error:
            self.journal.undo(since)
            if len(self.problems) == marks:
                self.report("for", f"found a loop of unknown length with {error}")

    def _counted(self, node: ast.For, name: str, count: int, env: Env) -> None:
        """A loop of known length: rolled if it is long and carries tensors only."""
        if count > _UNROLLED:
            since, marks, made = len(self.journal.entries), len(self.problems), self.made
            last, frozen, lost = self.block.last_op, dict(self.journal.frozen), self.lost
            try:
                self._rolled(node.body, count, name, None, env, grows=count > _MOST_ITERATIONS)
                return
            except LoopFormError:
                self.journal.undo(since)
                self.journal.frozen, self.lost = frozen, lost
                del self.problems[marks:]
                self.made = max(self.made, made)
                self._erase_after(last)
        if count > _MOST_ITERATIONS:
            self.report("for", f"found a loop of {count} iterations that makes lists")
            return
        for index in range(count):
            self.journal.set(env, name, index)
            self.statements(node.body, env)

    def _erase_after(self, last: Any) -> None:
        """Erase what was added to the block after an op, which nothing uses."""
        while (op := self.block.last_op) is not None and op is not last:
            op.detach()

    def follow_while(self, node: ast.While, env: Env) -> None:
        for _ in range(_MOST_ITERATIONS):
            going = self.truth(node.test, env)
            if isinstance(going, Unknown):
                self._follow_unknown(node.body, env)
                return
            if isinstance(going, Number):
                since, marks = len(self.journal.entries), len(self.problems)
                try:
                    self._rolled(node.body, going, None, node.test, env)
                except LoopFormError as error:
                    self.journal.undo(since)
                    if len(self.problems) == marks:
                        self.report("while", f"found a loop with {error}")
                return
            if not going:
                return
            self.statements(node.body, env)
        self.report("while", f"found a loop of more than {_MOST_ITERATIONS} iterations")

    def _rolled(
        self,
        body: Sequence[ast.stmt],
        going: Any,
        counter: str | None,
        test: ast.expr | None,
        env: Env,
        *,
        grows: bool = False,
    ) -> None:
        """
        A `core.loop`: as long as `test` holds, or `going` times with `counter` as the number.

        LoopFormError if what it changes cannot be carried; lists may become longer if it `grows`.
        """
        carried = _Carried(self, self.made, going if grows else None)
        line, lost = self._line, self.lost
        for _ in range(_TRIALS):
            self._line, self.lost = line, lost
            block = Block(arg_types=[tensor(i64, [])])
            self.follower.declare(block.args[0], tensor(i64, []))
            marks = len(self.problems)

            def follow(block: Block = block) -> list[SSAValue]:
                carried.enter(block)
                number = Number(block.args[0], int)
                if counter is not None:
                    self.journal.set(env, counter, number)
                self.statements(body, env)
                if test is not None:
                    going_on = self.truth(test, env)
                else:
                    following = self.builtin("torch.add", [number, 1], {})
                    going_on = self.builtin("torch.lt", [following, going], {})
                if isinstance(going_on, Unknown):
                    raise LoopFormError("a condition that is not known")
                last = [self.value_of(going_on)]
                return [*last, *carried.leave(), *carried.append(block.args[0])]

            since = len(self.journal.entries)
            self.blocks.append(block)
            try:
                yielded = follow()
                slots = self.journal.changed(since)
            except RaisedError:
                raise LoopFormError("an error that it raises in any case") from None
            except (UnknownError, ScriptError) as error:
                raise LoopFormError(str(error) or "values that are not known") from None
            finally:
                more = carried.more(self.journal.changed(since), counter, env)
                self.journal.undo(since)
                self.blocks.pop()
            if len(self.problems) > marks:
                raise LoopFormError("what is refused")
            del slots
            if carried.take(more) or carried.fill() or carried.widen(yielded[1:]) or carried.grow():
                continue
            self.blocks.append(block)
            block.add_op(YieldOp(yielded))
            self.blocks.pop()
            start = going if test is not None else self.builtin("torch.lt", [0, going], {})
            self.located("loop")
            condition = self.value_of(start)
            inits = carried.inits()
            op = LoopOp(None, condition, inits, Region(block))
            self.add(op)
            carried.finish(op.results)
            return
        raise LoopFormError(f"types that still change after {_TRIALS} attempts")


def _is_local(into: Any, born: int) -> bool:
    """True for elements that were not there before a branch or an iteration."""
    return isinstance(into, Cell) and into.born > born


def _held_then(slot: Slot, old: Mapping[int, Any], made: dict[int, Any]) -> Any:
    """What a place holds now, which does not change any more."""
    value = held(slot)
    if isinstance(slot[0], list):
        return [copied(item, old, made) for item in value]
    return copied(value, old, made)


class _Merge:
    """What two branches give together."""

    def __init__(self, program: Flow, ends: Sequence[_End], born: int) -> None:
        self._program = program
        self._ends = ends
        self._born = born
        self._places: dict[tuple[int, int], _Place] = {}
        """Lists and dictionaries that two of them become."""
        self._pairs: list[tuple[Any, Any]] = []
        self._types: list[tuple[Attribute, TensorTypeOf | None]] = []
        self._shown: dict[int, list[Storage]] = {}
        """The merged tensors that show a storage of a branch."""

    def place(self, key: tuple[int, Any], slot: Slot) -> Callable[[Sequence[SSAValue]], Any]:
        """What a place holds afterwards, for the results of the op."""
        before = held(slot) if has(slot) else None
        one, other = (end.values.get(key, before) for end in self._ends)
        if isinstance(slot[0], list):
            lists = cast("list[list[Any]]", [one, other])
            if len(lists[0]) != len(lists[1]):
                return self._leaf(one, other)
            items = [self._merged(a, b) for a, b in zip(*lists, strict=True)]
            return lambda results: [item(results) for item in items]
        return self._merged(one, other)

    def _merged(self, one: Any, other: Any) -> Callable[[Sequence[SSAValue]], Any]:
        if one is other:
            return lambda results: one
        sides = self._then(one, 0), self._then(other, 1)
        if isinstance(one, Nothing) and not _is_leaf(other):
            sides = rebuilt(sides[1], itertools.repeat(one)), sides[1]
        elif isinstance(other, Nothing) and not _is_leaf(one):
            sides = sides[0], rebuilt(sides[0], itertools.repeat(other))
        if not _are_alike(*sides):
            return self._leaf(one, other)
        both = id(one), id(other)
        if both not in self._places:
            pairs = zip(*map(_children_of, sides), strict=True)
            made = [self._merged(a, b) for a, b in pairs]
            self._places[both] = _Place(one, other, sides[0], made)
        return self._places[both].read

    def _then(self, value: Any, side: int) -> Any:
        """A list or dictionary as it was at the end of a branch."""
        values = self._ends[side].values
        if isinstance(value, list):
            return values.get((id(cast("Any", value)), None), cast("Any", value))
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            return {key: values.get((id(items), key), item) for key, item in items.items()}
        return value

    def freeze(self) -> None:
        """
        Freeze lists and dictionaries that are held elsewhere, too, or that one branch alone has in
        two places, and what they have become: a change would have to reach both.
        """
        now = places_in(self._program.held)
        sides = [Counter(both[side] for both in self._places) for side in range(2)]
        for both, place in self._places.items():
            sources = place.one, place.other
            for each, source, counts in zip(both, sources, sides, strict=True):
                if each in now or counts[each] > 1:
                    self._program.journal.freeze(source, *place.made)

    def _leaf(self, one: Any, other: Any) -> Callable[[Sequence[SSAValue]], Any]:
        if one is other or (_is_plain(one) and type(one) is type(other) and one == other):
            return lambda results: one
        for value in (one, other):
            if isinstance(value, Unknown):
                return lambda results: value
        if isinstance(one, SSAValue) or isinstance(other, SSAValue):
            place = self._pair(one, other)
            return lambda results: results[place]
        kinds = {kind for value in (one, other) if (kind := _kind(value)) is not None}
        if len(kinds) != 1 or any(isinstance(kind, str) for kind in kinds):
            reason = f"{describe(one)} or {describe(other)}, as a condition decides"
            return lambda results: Unknown(reason)
        (kind,) = kinds
        place = self._pair(one, other)
        if kind is not Tensor:
            return lambda results: Number(results[place], kind)
        tensors = [x for x in (one, other) if isinstance(x, Tensor)]
        in_order = all(x.in_order for x in tensors)

        def made(results: Sequence[SSAValue]) -> Tensor:
            found = self._program.tensor(results[place], in_order=in_order)
            for source in tensors:
                self._share(source.storage, found.storage)
            return found

        return made

    def _share(self, source: Storage, merged: Storage) -> None:
        """
        Take note that a merged tensor may share elements with all others that a branch has in the
        same storage, and with that one if it was there before.
        """
        others = self._shown.setdefault(id(source), [])
        sharing = [*others, *([] if _is_local(source, self._born) else [source])]
        for storage in [*sharing, merged] if sharing else []:
            self._program.journal.storage(storage)
            storage.unclear = True
        others.append(merged)

    def _pair(self, one: Any, other: Any) -> int:
        self._pairs.append((one, other))
        return len(self._pairs) - 1

    def finish(self, condition: Number) -> Sequence[SSAValue]:
        """Add the op; its results."""
        program, regions = self._program, list[Region]()
        columns: list[list[SSAValue]] = []
        types = [self._type(pair) for pair in self._pairs]
        for side, end in enumerate(self._ends):
            program.blocks.append(end.block)
            values = [
                self._value(pair[side], end, type_)
                for pair, type_ in zip(self._pairs, types, strict=True)
            ]
            program.blocks.pop()
            end.block.add_op(YieldOp(values))
            regions.append(Region(end.block))
            columns.append(values)
        program.located("if")
        result_types = [UnrankedTensorType(type_) for type_ in types]
        op = IfOp(condition.value, regions[0], regions[1], result_types=result_types)
        program.add(op)
        for result, one, other in zip(op.results, *columns, strict=True):
            self._declare(result, one, other)
        return op.results

    def _declare(self, result: SSAValue, one: SSAValue, other: SSAValue) -> None:
        follower = self._program.follower
        known = [value for value in (one, other) if not isinstance(value.owner, PoisonOp)]
        if not all(follower.knows(value) for value in known):
            return
        types = [follower.type_of(value) for value in known]
        joined = types[0] if len(types) == 1 else follower.joined(*types)
        if joined is not None:
            follower.declare(result, joined)
        else:
            text = " or ".join(f"one of type {type_}" for type_ in types)
            self._program.undecided[result] = f"a tensor that is {text}, as a condition decides"

    def _type(self, pair: tuple[Any, Any]) -> Attribute:
        for value, end in zip(pair, self._ends, strict=True):
            found = end.read(value)
            if isinstance(found, Tensor):
                found = self._program.read(found)
            if isinstance(found, SSAValue):
                return element_type(cast(SSAValue, found))
            if isinstance(found, Number):
                return element_type(found.value)
            if not isinstance(found, Nothing):
                return KINDS[type(found)]
        return i1

    def _value(self, value: Any, end: _End, type_: Attribute) -> SSAValue:
        found = end.read(value)
        if isinstance(found, SSAValue):
            return cast(SSAValue, found)
        if isinstance(found, Nothing):
            op = PoisonOp(UnrankedTensorType(type_))
            self._program.add(op)
            return op.result
        return self._program.value_of(found)


@dataclass
class _Place:
    """A list, tuple or dictionary that two of them become."""

    one: Any
    other: Any
    form: Any
    """What the merged one looks like."""
    parts: Sequence[Callable[[Sequence[SSAValue]], Any]]
    made: list[Any] = field(default_factory=list[Any])

    def read(self, results: Sequence[SSAValue]) -> Any:
        """The merged one: always the same."""
        if not self.made:
            items = [part(results) for part in self.parts]
            self.made.append(_with_children(self.form, items))
        return self.made[0]


def _are_alike(one: Any, other: Any) -> bool:
    """True for two lists, tuples or dictionaries of as many items, and of the same keys."""
    if isinstance(one, dict):
        return isinstance(other, dict) and [*cast("Any", one)] == [*cast("Any", other)]
    kinds: tuple[Any, Any] = kind_of(one), kind_of(other)
    return (
        isinstance(one, list | tuple)
        and kinds[0] is kinds[1]
        and len(cast("Any", one)) == len(other)
    )


def _children_of(value: Any) -> list[Any]:
    return list(cast("Any", value).values() if isinstance(value, dict) else value)


def _with_children(value: Any, items: Sequence[Any]) -> Any:
    """A list, tuple or dictionary of the same kind with other items."""
    match value:
        case dict():
            return dict(zip(cast("dict[Any, Any]", value), items, strict=True))
        case Named():
            return Named(value.type, value.names, items)
        case list():
            return list(items)
        case _:
            return tuple(items)


@dataclass
class _Grown:
    """A list to which each iteration adds one item: rows of a tensor, written in order."""

    item: Tensor
    """What the last trial added."""
    value: SSAValue
    """Its value at the end of an iteration."""
    type: TensorTypeOf
    rows: SSAValue | None = None
    """The tensor before the loop; None until it is known what the items are."""
    argument: SSAValue | None = None


class _Carried:
    """What a loop carries from iteration to iteration."""

    def __init__(self, program: Flow, born: int, count: Any) -> None:
        self._program = program
        self._born = born
        self._old = places_in(program.held)
        self._count = count
        """How many iterations there are; None where lists have to keep their length."""
        self._slots: Slots = {}
        self._types: dict[tuple[tuple[int, Any], int], TensorTypeOf] = {}
        self._forms: dict[tuple[int, Any], Any] = {}
        self._grown: dict[tuple[int, Any], _Grown] = {}
        self._unset: dict[tuple[int, Any], tuple[Any, TensorTypeOf | None]] = {}
        """Places that have nothing before the loop: what kind of value they get, and its type."""

    def _leaves(self) -> Iterator[tuple[tuple[int, Any], int, Any]]:
        """The carried tensors and numbers: place, number in it, and value before the loop."""
        for key, slot in self._slots.items():
            value = held(slot)
            for index, leaf in enumerate([value] if _is_leaf(value) else leaves(value)):
                if isinstance(leaf, Tensor | Number | SSAValue | bool | int | float):
                    yield key, index, leaf

    def enter(self, block: Block) -> None:
        """Let the places hold the arguments of a body."""
        program = self._program
        made: dict[tuple[tuple[int, Any], int], Any] = {}
        for key, index, leaf in list(self._leaves()):
            argument = self._argument(block, self._type(key, index, leaf))
            made[key, index] = self._held(leaf, argument)
        copies: list[tuple[Any, Any]] = []
        for key, slot in self._slots.items():
            value = held(slot)
            if _is_leaf(value):
                program.put(slot, made.get((key, 0), value))
            else:
                items = [made.get((key, k), leaf) for k, leaf in enumerate(leaves(value))]
                now = rebuilt(value, iter(items))
                program.put(slot, [*now, Rows()] if self._has_rows(key) else now)
                copies.append((value, now))
            self._forms[key] = held(slot)
        self._freeze(copies)
        for grown in self._grown.values():
            if grown.rows is not None:
                grown.argument = self._argument(block, program.follower.type_of(grown.rows))

    def _freeze(self, copies: Sequence[tuple[Any, Any]]) -> None:
        """Freeze lists that are held elsewhere, too, and their copies."""
        held_now = places_in(self._program.held)
        for before, now in copies:
            if places_in([before]).keys() & held_now:
                self._program.journal.freeze(before, now)

    def _has_rows(self, key: tuple[int, Any]) -> bool:
        return key in self._grown and self._grown[key].rows is not None

    def _argument(self, block: Block, type_: TensorTypeOf) -> SSAValue:
        unranked = UnrankedTensorType(element_type_of(type_))
        found = block.insert_arg(unranked, len(block.args))
        self._program.follower.declare(found, type_)
        return found

    def _held(self, leaf: Any, value: SSAValue) -> Any:
        """What stands for a carried value where its place is read."""
        if isinstance(leaf, SSAValue):
            return value
        if isinstance(leaf, Tensor):
            found = self._program.tensor(value, in_order=leaf.in_order)
            storage = leaf.storage
            found.storage.unclear = not isinstance(storage, Cell) or storage.born <= self._born
            return found
        return Number(value, kind_of(leaf))

    def _type(self, key: tuple[int, Any], index: int, leaf: Any) -> TensorTypeOf:
        if (key, index) not in self._types:
            program = self._program
            if isinstance(leaf, bool | int | float):
                self._types[key, index] = tensor(KINDS[type(leaf)], [])
            else:
                value = program.value_of(leaf)
                if not program.follower.knows(value):
                    raise UnknownError
                self._types[key, index] = program.follower.type_of(value)
        return self._types[key, index]

    def leave(self) -> list[SSAValue]:
        """The values of the carried places at the end of the body."""
        found: list[SSAValue] = []
        for key, slot in self._slots.items():
            before, now = self._forms[key], held(slot)
            if self._count is not None and _is_longer(before, now):
                self._add(key, now[-1])
                now = now[:-1]
            if not same_form(before, now):
                raise LoopFormError(
                    "a list that changes its length" if isinstance(now, list) else "other values"
                )
            olds = [before] if _is_leaf(before) else list(leaves(before))
            news = [now] if _is_leaf(now) else list(leaves(now))
            for old, new in zip(olds, news, strict=True):
                if isinstance(old, Tensor | Number | SSAValue):
                    found.append(self._left(old, new))
                elif isinstance(before, Nothing) and _kind(new) in (Tensor, *KINDS):
                    self._unset[key] = self._kind_of(new)
                elif old is not new and not (_is_plain(new) and old == new):
                    raise LoopFormError(f"{describe(old)} that becomes {describe(new)}")
        return found

    def _add(self, key: tuple[int, Any], item: Any) -> None:
        """Take note of what an iteration adds to a list."""
        program = self._program
        if not isinstance(item, Tensor):
            raise LoopFormError(f"a list that gets {describe(item)}")
        if any(into is item.storage for into, _ in self._slots.values()):
            raise LoopFormError("a list that gets a tensor into which it writes")
        value = program.value_of(item)
        if not program.follower.knows(value):
            raise UnknownError
        type_ = program.follower.type_of(value)
        known = self._grown.get(key)
        is_same = known is not None and known.type == type_
        self._grown[key] = _Grown(
            item, value, type_, *((known.rows, known.argument) if known and is_same else ())
        )

    def append(self, number: SSAValue) -> list[SSAValue]:
        """The rows of lists with those of this iteration."""
        program, found = self._program, list[SSAValue]()
        for grown in self._grown.values():
            if grown.argument is not None:
                program.located("append")
                into, row = program.tensor(grown.argument), program.tensor(grown.value)
                place = Number(number, int)
                made = program.call("aten.select_scatter", [into, row, 0, place], {})
                found.append(program.value_of(made))
        return found

    def grow(self) -> bool:
        """Make rows for lists of which it is now known what they get; False if there are none."""
        program = self._program
        new = [grown for grown in self._grown.values() if grown.rows is None]
        for grown in new:
            program.located("append")
            sizes = [self._size(dim) for dim in dims_of(grown.type)]
            code = CODES[element_type_of(grown.type)]
            zeros = program.call("aten.zeros", [[self._count, *sizes]], {"dtype": code})
            grown.rows = program.value_of(zeros)
        return bool(new)

    def _kind_of(self, value: Any) -> tuple[Any, TensorTypeOf | None]:
        if not isinstance(value, Tensor):
            return _kind(value), None
        found = self._program.value_of(value)
        if not self._program.follower.knows(found):
            raise UnknownError
        return Tensor, self._program.follower.type_of(found)

    def fill(self) -> bool:
        """Let places have zeros that have nothing before the loop; False if there are none."""
        program, unset = self._program, self._unset
        self._unset = {}
        for key, (kind, type_) in unset.items():
            program.located("zeros")
            if type_ is not None:
                sizes = [self._size(dim) for dim in dims_of(type_)]
                zeros = program.call(
                    "aten.zeros", [sizes], {"dtype": CODES[element_type_of(type_)]}
                )
            else:
                zeros = kind(0)
            program.put(self._slots[key], zeros)
        return bool(unset)

    def _size(self, dim: Expr) -> Any:
        """A dimension as a number before the loop."""
        if dim.value is not None:
            return dim.value
        program = self._program
        for value in program.follower.values():
            owner = value.owner if isinstance(value.owner, Block) else value.owner.parent
            dims = program.follower.dims(value)
            if dim in dims and any(owner is block for block in program.blocks):
                return program.size(program.tensor(value), dims.index(dim))
        raise LoopFormError(f"a list of tensors of a size {dim} that only its iterations know")

    def _left(self, old: Any, new: Any) -> SSAValue:
        if isinstance(new, SSAValue):
            return cast(SSAValue, new)
        if isinstance(old, Number) and old.kind is float and type(new) is int:
            new = float(new)
        if _kind(old) is not _kind(new):
            raise LoopFormError(f"{describe(old)} that becomes {describe(new)}")
        return self._program.value_of(new)

    def more(self, changed: Slots, counter: str | None, env: Env) -> Slots:
        """The places that a body changes and that are not carried yet."""
        return {
            key: slot
            for key, slot in changed.items()
            if key not in self._slots and not (slot[0] is env and slot[1] == counter)
        }

    def take(self, more: Slots) -> bool:
        """Carry more, as far as it was there before; False if there is no more."""
        is_old = self._program.was_there
        found = {
            key: slot
            for key, slot in more.items()
            if has(slot) and is_old(slot[0], self._born, self._old)
        }
        self._slots.update(found)
        return bool(found)

    def widen(self, yielded: Sequence[SSAValue]) -> bool:
        """Let dimensions that an iteration changes be open; False if there are none."""
        follower, changed = self._program.follower, False
        for (key, index, _), value in zip(list(self._leaves()), yielded, strict=False):
            before = self._types[key, index]
            if not follower.knows(value):
                raise LoopFormError("values that are not known")
            after = follower.type_of(value)
            if before == after:
                continue
            joined = follower.joined(before, after)
            if joined is None:
                raise LoopFormError(f"a value of type {before} that becomes {after}")
            self._types[key, index] = joined
            changed = True
        return changed

    def inits(self) -> list[SSAValue]:
        """The carried values before the loop."""
        program = self._program
        values = [program.value_of(leaf) for _, _, leaf in list(self._leaves())]
        return [*values, *(cast(SSAValue, grown.rows) for grown in self._grown.values())]

    def finish(self, results: Sequence[SSAValue]) -> None:
        """Let the places hold what the loop gives."""
        program = self._program
        made: dict[tuple[tuple[int, Any], int], Any] = {}
        carried = list(self._leaves())
        for (key, index, leaf), result in zip(carried, results, strict=False):
            program.follower.declare(result, self._types[key, index])
            made[key, index] = self._held(leaf, result)
            if isinstance(leaf, Tensor):
                program.journal.storage(leaf.storage)
                leaf.storage.unclear = True
        rows: dict[tuple[int, Any], Rows] = {}
        for (key, grown), result in zip(self._grown.items(), results[len(carried) :], strict=True):
            program.follower.declare(result, program.follower.type_of(cast(SSAValue, grown.rows)))
            rows[key] = Rows(program.tensor(result, in_order=True))
            # A write to what the list has would change it, too.
            program.journal.storage(grown.item.storage)
            grown.item.storage.unclear = True
        copies: list[tuple[Any, Any]] = []
        for key, slot in list(self._slots.items()):
            value = held(slot)
            if _is_leaf(value):
                program.put(slot, made.get((key, 0), value))
            else:
                items = [made.get((key, k), leaf) for k, leaf in enumerate(leaves(value))]
                now = rebuilt(value, iter(items))
                program.put(slot, [*now, rows[key]] if key in rows else now)
                copies.append((value, now))
        self._freeze(copies)


def element_type_of(type_: TensorTypeOf) -> Attribute:
    """The element type of a type."""
    return type_.element_type


def _is_longer(before: Any, now: Any) -> bool:
    """True for a list that has got one item more."""
    if not isinstance(before, list) or not isinstance(now, list):
        return False
    old, new = cast("list[Any]", before), cast("list[Any]", now)
    return len(new) == len(old) + 1 and same_form(old, new[:-1])


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, list | tuple | dict)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _kind(value: Any) -> Any:
    """What a value is, so far as branches have to agree in it."""
    match value:
        case Tensor():
            return Tensor
        case Number():
            return value.kind
        case bool() | int() | float():
            return type(value)
        case Nothing():
            return None
        case _:
            return f"{describe(value)}"
