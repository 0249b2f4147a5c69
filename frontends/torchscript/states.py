"""
What a program remembers from call to call: the attributes of its objects that it changes.

An attribute that has tensors and numbers of the same types before and after a call becomes states,
one for each of them. One that has another form from the first call on (it begins as None, as an
empty tensor, as a text) is what a further state decides: what the file says, or states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import NameLoc, StringAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import Tensor as TensorType
from lowerdeck.dialects.core.types import dims_of, i1, numpy_dtype, tensor
from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.pt2.aliases import IDENTITY, name_of
from lowerdeck.frontends.torchscript.archive import ScriptArchive
from lowerdeck.frontends.torchscript.code import Definition
from lowerdeck.frontends.torchscript.flow import Flow
from lowerdeck.frontends.torchscript.operators import KINDS, describe
from lowerdeck.frontends.torchscript.values import (
    Instance,
    Named,
    Number,
    ScriptError,
    Tensor,
    Unknown,
    copied,
    kind_of,
    leaves,
    rebuilt,
    same_form,
)

_Parts: TypeAlias = "list[tuple[str, Any]]"

_MOST_VALUES = 200_000
"""Tensors, numbers and other values in the attributes of one model."""


@record
class Kept:
    """A tensor or number that a later call finds."""

    type: TensorType
    kind: Any
    """Tensor, int, float or bool."""


@dataclass
class Place:
    """An attribute of an object of the model."""

    path: str
    into: dict[str, Any]
    key: str
    start: Any = None
    """What it has before a call."""
    is_shared: bool = False
    """True if another attribute has the same list or dictionary."""

    def now(self) -> Any:
        """What it has now."""
        return self.into[self.key]


@dataclass
class Remembered:
    """What is found out about the states of a program by following it."""

    changed: set[str] = field(default_factory=set[str])
    """The names of tensors and numbers in the place of which a call puts others."""
    written: set[str] = field(default_factory=set[str])
    """The names of tensors into which a call writes."""
    later: dict[str, Any] = field(default_factory=dict[str, Any])
    """
    By path, the attributes that have another form from the first call on: this form, whose leaves
    are `Kept`, or what they always are.
    """
    after_first: dict[str, Any] | None = None
    """The same of all attributes that the first call changes."""
    free: bool = False
    """True to follow the first call alone."""
    begins: bool = False
    """True to let `later` attributes have their later form from the start."""

    def settled(self) -> Remembered:
        """The same, where what the first call makes of plain numbers and texts is known, too."""
        plain = {
            path: form
            for path, form in (self.after_first or {}).items()
            if not any(isinstance(leaf, Kept) for leaf in leaves(form))
        }
        later = plain | self.later
        names = {name for path, form in later.items() for name, _ in parts_of(path, form)}
        changed, written = self.changed - names, self.written - names
        return replace(self, changed=changed, written=written, later=later)


def places_of(model: Any) -> list[Place]:
    """The attributes of a model's objects, in order; ScriptError if they hold too much."""
    found: list[Place] = []
    count = 0
    seen: set[int] = set()
    holders: dict[int, list[Place]] = {}
    open_: _Parts = [("", model)]
    while open_:
        path, value = open_.pop()
        if not isinstance(value, Instance) or id(value.attributes) in seen:
            continue
        seen.add(id(value.attributes))
        inner: _Parts = []
        for key, item in value.attributes.items():
            place = Place(f"{path}.{key}" if path else str(key), value.attributes, key)
            for _ in leaves(item):
                count += 1
                if count > _MOST_VALUES:
                    raise ScriptError(f"more than {_MOST_VALUES} values of attributes")
            inner += parts_of(place.path, item)
            found.append(place)
            for one in lists_of(item):
                holders.setdefault(one, []).append(place)
        open_ += reversed(inner)
    for sharing in holders.values():
        for place in sharing if len(sharing) > 1 else ():
            place.is_shared = True
    return found


def lists_of(value: Any) -> set[int]:
    """The lists and dictionaries that an attribute has, by identity."""
    seen: set[int] = set()
    found: set[int] = set()
    open_: list[Any] = [value]
    while open_:
        item = open_.pop()
        if isinstance(item, list | tuple | dict) and id(cast("Any", item)) not in seen:
            items = cast("Any", item)
            seen.add(id(items))
            found |= set() if isinstance(item, tuple) else {id(items)}
            open_ += items.values() if isinstance(item, dict) else items
    return found


def parts_of(name: str, value: Any) -> _Parts:
    """The leaves of a value, and what they are called."""
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in cast("dict[Any, Any]", value).items()]
    elif isinstance(value, list | tuple):
        items = [(str(k), item) for k, item in enumerate(cast("Sequence[Any]", value))]
    else:
        return [(name, value)]
    return [part for key, item in items for part in parts_of(f"{name}.{key}", item)]


def replaced(value: Any, items: Iterator[Any]) -> Any:
    """A value of other leaves: the same lists and dictionaries, but new tuples."""
    match value:
        case list():
            found = cast("list[Any]", value)
            found[:] = [replaced(item, items) for item in found]
            return found
        case dict():
            pairs = cast("dict[Any, Any]", value)
            pairs |= {key: replaced(item, items) for key, item in pairs.items()}
            return pairs
        case Named():
            return Named(value.type, value.names, [replaced(item, items) for item in value])
        case tuple():
            return tuple(replaced(item, items) for item in cast("tuple[Any, ...]", value))
        case _:
            return next(items)


def is_number(value: Any) -> bool:
    """True for a plain number."""
    return type(value) in (int, float, bool)


def is_same(one: Any, other: Any) -> bool:
    """True for a leaf that has not become another one, but by operators that change nothing."""
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.storage is other.storage:
        further = other.steps[len(one.steps) :]
        same_steps = other.steps[: len(one.steps)] == one.steps
        return same_steps and all(name_of(op) in IDENTITY for op, _ in further)
    is_plain = is_number(one) or isinstance(one, str)
    return one is other or (is_plain and type(one) is type(other) and bool(one == other))


def _is_kept(value: Any) -> bool:
    return isinstance(value, Tensor | Number) or is_number(value)


def are_alike(start: Any, now: Any) -> bool:
    """True for values of one form, whose leaves may be the same states."""
    return same_form(start, now) and all(
        is_same(a, b) or (_is_kept(a) and _is_kept(b) and kind_of(a) is kind_of(b))
        for a, b in zip(leaves(start), leaves(now), strict=True)
    )


def unlike(form: Any, now: Any) -> str | None:
    """What an attribute is after a later call, if it has not its form after the first one."""
    if not same_form(form, now):
        return describe(now)
    for before, after in zip(leaves(form), leaves(now), strict=True):
        kind: Any = before.kind if isinstance(before, Kept) else kind_of(before)
        is_kept = isinstance(before, Kept) or is_number(before)
        if not is_same(before, after) and not (is_kept and kind_of(after) is kind):
            return describe(after)
    return None


def widened(form: Any, now: Any) -> Any:
    """A form whose numbers are kept where a later call changes them."""
    pairs = zip(leaves(form), leaves(now), strict=True)
    kept = (
        a if isinstance(a, Kept) or is_same(a, b) else Kept(tensor(KINDS[type(a)], []), type(a))
        for a, b in pairs
    )
    return rebuilt(form, kept)


def snapshot(value: Any) -> Any:
    """A value whose lists and dictionaries do not change any more."""
    return copied(value, {}, {})


@dataclass
class State:
    """A tensor or number of the model that a call changes."""

    argument: SSAValue
    """What holds it before a call."""
    first: Attribute
    """What it begins with."""
    now: Callable[[], Any]
    """What it is now."""


def _is_written(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.storage.version != 0


class Remembering(Flow):
    """A program with its states."""

    def __init__(self, archive: ScriptArchive, remembered: Remembered) -> None:
        super().__init__(archive, {})
        self.remembered = remembered
        self.found = replace(
            remembered,
            changed={*remembered.changed},
            written={*remembered.written},
            later={**remembered.later},
        )
        """What the next attempt has to know."""
        self.places: list[Place] = []
        self.states: dict[str, State] = {}
        self.stored: dict[int, tuple[Tensor, ConstantOp]] = {}
        """By identity, the tensors of the file."""
        self._written: set[str] = set()
        """The tensors into which a call writes, by any of their names."""
        self._joined: set[frozenset[str]] = set()
        """Tensors that a call lets have elements in common."""

    def raise_problems(self) -> None:
        """FrontendError if something has been refused."""
        if self.lost is not None and not self.problems:
            self.problems.append(self.lost)
        if self.problems:
            raise FrontendError(list(dict.fromkeys(self.problems)))

    def problem(self, message: str) -> None:
        """Take note of what is refused."""
        self.problems.append(Problem(self.file, "", "", message))

    def argument(self, name: str, type_: TensorType) -> SSAValue:
        """A new argument of the module."""
        block = self.blocks[0]
        argument = block.insert_arg(type_, len(block.args))
        argument.location = NameLoc(StringAttr(name), self.location)
        argument.name_hint = name if name.isidentifier() else None
        self.follower.declare(argument, type_)
        return argument

    def begin(self, model: Any) -> None:
        """Put states in the place of what calls change."""
        self.held.append(model)
        self.places = places_of(model)
        known, shown = self.remembered, dict[int, Tensor]()
        for place in self.places:
            if known.begins and place.path in known.later:
                place.into[place.key] = self._later(place)
            parts = parts_of(place.path, place.now())
            names = {name for name, _ in parts} & (known.changed | known.written)
            if names and place.path not in known.later:
                items = [
                    self._state(place, k, name, leaf, shown) if name in names else leaf
                    for k, (name, leaf) in enumerate(parts)
                ]
                place.into[place.key] = replaced(place.now(), iter(items))
            place.start = snapshot(place.now())
        held = {id(leaf) for place in self.places for leaf in leaves(place.start)}
        for stored, constant in self.stored.values():
            if id(stored) not in held and constant.result.first_use is None:
                constant.detach()

    def _state(
        self, place: Place, index: int, name: str, leaf: Any, shown: dict[int, Tensor]
    ) -> Any:
        """A state in the place of a tensor or number."""
        if id(leaf) in shown and name in self.remembered.written:
            return shown[id(leaf)]
        if isinstance(leaf, Tensor):
            if id(leaf) not in self.stored:
                raise ScriptError(f"'{name}', which changes and is no tensor of the file")
            constant = self.stored[id(leaf)][1]
        else:
            constant = ConstantOp.of(np.array(leaf))
        argument = self.argument(name, cast(TensorType, constant.result.type))
        self.states[name] = State(
            argument, constant.value, lambda: parts_of(name, place.now())[index][1]
        )
        if not isinstance(leaf, Tensor):
            return Number(argument, kind_of(leaf))
        found = self.tensor(argument, in_order=leaf.in_order)
        found.requires_grad, found.storage.unclear = leaf.requires_grad, leaf.storage.unclear
        if name in self.remembered.written:
            shown[id(leaf)] = found
        return found

    def result(self, forward: Definition, args: Sequence[Any]) -> Any:
        """What the program returns; where it has two forms, a state decides."""
        known = self.remembered
        later = [place for place in self.places if place.path in known.later]
        if not later or known.free or known.begins:
            return self._one_call(forward, args)
        forms = [self._later(place) for place in later]
        self.raise_problems()
        started = Number(self.argument("started", tensor(i1, [])), bool)
        first = ConstantOp.of(np.array(False)).value
        self.states["started"] = State(started.value, first, lambda: True)
        given: dict[str, Any] = {}
        self.held.append(given)

        def call() -> None:
            self.journal.set(given, "result", self._one_call(forward, args))

        def call_again() -> None:
            for place, form in zip(later, forms, strict=True):
                self.journal.set(place.into, place.key, snapshot(form))
            call()

        self.either(started, call_again, call)
        return given["result"]

    def _one_call(self, forward: Definition, args: Sequence[Any]) -> Any:
        tensors, lists = self._sharing()
        before = [part for place in self.places for part in parts_of(place.path, place.now())]
        found = self.call_function(forward, args, {})
        now = [part for place in self.places for part in parts_of(place.path, place.now())]
        self._written |= {name for name, leaf in (*before, *now) if _is_written(leaf)}
        tensors_now, lists_now = self._sharing()
        self._joined |= tensors_now - tensors
        for names in lists_now - lists:
            self._refuse_joined(names)
        return found

    def _refuse_joined(self, names: frozenset[str]) -> None:
        text = " and ".join(f"'{name}'" for name in sorted(names))
        self.problem(
            f"{text} may become one tensor or list by a call, into which calls write; give it a "
            "copy (clone)"
        )

    def _sharing(self) -> tuple[set[frozenset[str]], set[frozenset[str]]]:
        """
        The names of tensors of the model that have elements in common, or may have, and of
        attributes that have the same lists.
        """
        tensors: dict[int, list[str]] = {}
        lists: dict[int, list[str]] = {}
        unclear: set[frozenset[str]] = set()
        for place in self.places:
            for one in lists_of(place.now()):
                lists.setdefault(one, []).append(place.path)
            for name, leaf in parts_of(place.path, place.now()):
                if isinstance(leaf, Tensor):
                    tensors.setdefault(id(leaf.storage), []).append(name)
                    unclear |= {frozenset([name])} if leaf.storage.unclear else set()
        shared = [
            {frozenset(names) for names in each.values() if len(names) > 1}
            for each in (tensors, lists)
        ]
        return unclear | shared[0], shared[1]

    def _later(self, place: Place) -> Any:
        """What an attribute has in later calls."""
        form = self.remembered.later[place.path]
        items: list[Any] = []
        for index, (name, leaf) in enumerate(parts_of(place.path, form)):
            if not isinstance(leaf, Kept):
                items.append(leaf)
                continue
            sizes = [dim.value for dim in dims_of(leaf.type)]
            known = [size for size in sizes if size is not None]
            if len(known) < len(sizes) and not self.remembered.begins:
                self.problem(f"'{name}' becomes a state of type {leaf.type}, expected known sizes")
                continue
            argument = self.argument(name, leaf.type)
            zeros = np.zeros(known, numpy_dtype(leaf.type.element_type))
            self.states[name] = State(
                argument,
                ConstantOp.of(zeros).value,
                lambda name=name, index=index: parts_of(name, place.now())[index][1],
            )
            is_tensor = leaf.kind is Tensor
            items.append(self.tensor(argument) if is_tensor else Number(argument, leaf.kind))
        return rebuilt(form, iter(items)) if not self.problems else None

    def drop_unread(self) -> bool:
        """
        Let there be no states for attributes that have their later form from the start; False if
        the program reads one.
        """
        names = {
            name
            for path, form in self.remembered.later.items()
            for name, _ in parts_of(path, form)
            if name in self.states
        }
        if any(self.states[name].argument.first_use is not None for name in names):
            return False
        block = self.blocks[0]
        for argument in [self.states.pop(name).argument for name in names]:
            block.erase_arg(cast(BlockArgument, argument))
        return True

    def find_changed(self) -> None:
        """Find out what this call has changed that was not known to be a state."""
        for names in self._joined:
            if names & self._written:
                self._refuse_joined(names)
        found, new = self.found, dict[str, Any]()
        for place in self.places:
            if place.path in found.later:
                self._follow_later(place)
            elif self._is_changed(place):
                new[place.path] = place
        if found.after_first is None:
            found.after_first = {path: self._form(place.now()) for path, place in new.items()}
        for path, place in new.items():
            unknown = [leaf for leaf in leaves(place.now()) if isinstance(leaf, Unknown)]
            if unknown:
                self.problem(f"'{path}' becomes {describe(unknown[0])}")
            elif place.is_shared:
                self.problem(f"'{path}' is changed, and another attribute has the same list")
            elif are_alike(place.start, place.now()) and self._has_its_types(place):
                self._take_changed(place)
            else:
                self._take_later(path, found.after_first)

    def _is_changed(self, place: Place) -> bool:
        now = place.now()
        if not same_form(place.start, now):
            return True
        pairs = list(zip(leaves(place.start), leaves(now), strict=True))
        return any(not is_same(a, b) or _is_written(b) for a, b in pairs)

    def _form(self, value: Any) -> Any:
        """The form of an attribute's value, with the types of what it has."""
        return rebuilt(value, (self._kept(leaf) for leaf in leaves(value)))

    def _kept(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor | Number):
            return leaf
        value = self.value_of(leaf)
        if not self.follower.knows(value):
            raise ScriptError("a state of a type that is not known")
        return Kept(self.follower.type_of(value), kind_of(leaf))

    def _has_its_types(self, place: Place) -> bool:
        """True if the states of an attribute have the types after a call that they had before."""
        for name, leaf in parts_of(place.path, place.now()):
            state = self.states.get(name)
            if state is not None:
                before = self.follower.type_of(state.argument)
                if before != self._kept(self._as_number(leaf)).type:
                    return False
        return True

    def _as_number(self, leaf: Any) -> Any:
        return Number(self.value_of(leaf), kind_of(leaf)) if is_number(leaf) else leaf

    def _take_changed(self, place: Place) -> None:
        pairs = zip(
            parts_of(place.path, place.start), parts_of(place.path, place.now()), strict=True
        )
        for (name, before), (_, after) in pairs:
            if not is_same(before, after):
                if name in self.remembered.written and name not in self.states:
                    text = "is written to and replaced, and another attribute has the same tensor"
                    self.problem(f"'{name}' {text}; give it a copy (clone)")
                self.found.changed.add(name)
            elif _is_written(after):
                self.found.written.add(name)

    def _take_later(self, path: str, after_first: Mapping[str, Any]) -> None:
        found = self.found
        if path not in after_first:
            self.problem(f"'{path}' gets another form by a call that is not the first one")
            return
        found.later[path] = after_first[path]
        self.found = found.settled()

    def _follow_later(self, place: Place) -> None:
        form, now = self.found.later[place.path], place.now()
        if (text := unlike(form, now)) is not None:
            self.problem(f"'{place.path}' becomes {text}, expected what the first call makes of it")
            return
        self.found.later[place.path] = form = widened(form, now)
        for (name, before), (_, after) in zip(
            parts_of(place.path, form), parts_of(place.path, now), strict=True
        ):
            if isinstance(before, Kept) and before.kind is Tensor:
                kept = self._kept(after)
                if kept.type != before.type:
                    text = f"'{name}' of type {before.type} becomes one of {kept.type}"
                    self.problem(f"{text}, expected the same")
