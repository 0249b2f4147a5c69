"""
What a program computes with while it is imported: tensors and numbers that only a run knows, and
everything else as it is.

Numbers, texts, lists and dictionaries are Python's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.records import record
from lowerdeck.frontends.pt2.aliases import Alias, Storage

_MOST_LEAVES = 100_000
"""Values in lists in one another."""

_DEEPEST = 100


class ScriptError(ValueError):
    """What a program does cannot be imported."""


class RaisedError(Exception):
    """The program raises an exception itself."""


class UnknownError(Exception):
    """A value is not known, since what makes it was refused."""


@dataclass(eq=False)
class Number:
    """A number that only a run knows: a tensor without dimensions."""

    value: SSAValue
    kind: type[int | float | bool]


@dataclass(eq=False)
class Rows:
    """Items of a list, as many as only a run knows: the rows of a tensor."""

    tensor: Tensor | None = None
    """None while a loop adds them, of which the next iteration sees nothing."""


@dataclass(eq=False)
class Unknown:
    """A value of which nothing is known, since what makes it was refused, or why it is none."""

    reason: str = ""
    is_all: bool = False
    """True for the only item of a list of which nothing is known, not even how long it is."""


def is_unknown(value: Any) -> bool:
    """True for a list of which nothing is known."""
    return isinstance(value, list) and any(
        isinstance(item, Unknown) and item.is_all for item in cast("list[Any]", value)
    )


@dataclass(eq=False)
class Nothing:
    """A value that is never used."""


@dataclass(eq=False)
class Device:
    """A place where elements lie, which has no meaning here."""

    name: str = "cpu"


@dataclass(eq=False)
class Instance:
    """An object of a class of the program: a module, or a tuple with names."""

    type: str
    attributes: dict[str, Any]
    path: str = ""
    """Its place in the model: `layer1.0.conv`."""


@record
class Function:
    """A function of the program."""

    qualified: str
    """Its qualified name."""


@dataclass(eq=False)
class Cell(Storage):
    """Elements that a program may change, in order of their appearance."""

    born: int = 0


@dataclass(eq=False)
class Tensor(Alias):
    """A tensor of the program."""

    in_order: bool = False
    """True if its elements are known to lie in the order of their indices."""
    strides: tuple[int, ...] | None = None
    """If its elements lie in another order, how far apart those of each dimension are, if known."""
    requires_grad: bool = False
    number: int | float | bool | None = None
    """The number that a constant without dimensions is, as which some operators take it."""


Slot: TypeAlias = "tuple[Any, Any]"
"""A place that holds a value: a dictionary and a key, a list or a storage and None."""


@dataclass
class Journal:
    """What was changed, so that it can be undone."""

    entries: list[tuple[Any, Any, Any]] = field(default_factory=list[tuple[Any, Any, Any]])
    frozen: dict[int, Any] = field(default_factory=dict[int, Any])
    """By identity, lists and dictionaries of which only a run knows whether they are the same."""

    def freeze(self, *found: Any) -> None:
        """Let no list or dictionary in these be changed from now on."""
        self.frozen |= places_in(found)

    def _require_known(self, into: Any) -> None:
        if id(into) in self.frozen:
            raise ScriptError("a change of a list or dictionary that data decide which it is")

    def set(self, into: dict[Any, Any], key: Any, value: Any) -> None:
        """Let a dictionary have a value."""
        self._require_known(into)
        self.entries.append((into, key, into.get(key, _MISSING)))
        into[key] = value

    def drop(self, into: dict[Any, Any], key: Any) -> None:
        """Let a dictionary have no such value."""
        self._require_known(into)
        self.entries.append((into, key, into[key]))
        del into[key]

    def list(self, into: list[Any]) -> list[Any]:
        """The list, which is about to be changed."""
        self._require_known(into)
        self.entries.append((into, None, list(into)))
        return into

    def storage(self, into: Storage) -> None:
        """A storage is about to be changed."""
        self.entries.append((into, None, (into.value, into.version, into.unclear)))

    def alias(self, into: Alias) -> None:
        """What is known of a tensor's value is about to be changed."""
        self.entries.append((into, None, (into.value, into.version)))

    def undo(self, since: int) -> None:
        """Let everything be as it was."""
        while len(self.entries) > since:
            into, key, old = self.entries.pop()
            _restore(into, key, old)

    def changed(self, since: int) -> dict[tuple[int, Any], Slot]:
        """The places that were written and hold something else now, in order."""
        first: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        for into, key, old in self.entries[since:]:
            if not isinstance(into, Alias):
                first.setdefault((id(into), key), (into, key, old))
        return {
            place: (into, key)
            for place, (into, key, old) in first.items()
            if not isinstance(into, dict)
            or cast("dict[Any, Any]", into).get(key, _MISSING) is not old
        }


class _Missing:
    pass


_MISSING = _Missing()


def _restore(into: Any, key: Any, old: Any) -> None:
    if isinstance(into, Storage):
        into.value, into.version, into.unclear = old
    elif isinstance(into, Alias):
        into.value, into.version = old
    elif isinstance(into, list):
        cast("list[Any]", into)[:] = old
    elif old is _MISSING:
        into.pop(key, None)
    else:
        into[key] = old


def has(slot: Slot) -> bool:
    """True if a place holds something."""
    into, key = slot
    return not isinstance(into, dict) or key in into


def held(slot: Slot) -> Any:
    """What a place holds."""
    into, key = slot
    if isinstance(into, Storage):
        return into.value
    return list(cast("list[Any]", into)) if isinstance(into, list) else into[key]


def leaves(value: Any) -> Iterator[Any]:
    """The tensors, numbers and other values that tuples, lists and dictionaries consist of."""
    open_: list[Iterator[Any]] = [iter([value])]
    for _ in range(_MOST_LEAVES):
        item: Any = _MISSING
        while open_ and item is _MISSING:
            item = next(open_[-1], _MISSING)
            if item is _MISSING:
                open_.pop()
        if not open_:
            return
        if isinstance(item, list | tuple):
            open_.append(iter(cast("Sequence[Any]", item)))
        elif isinstance(item, dict):
            open_.append(iter(cast("Mapping[Any, Any]", item).values()))
        else:
            yield item
        if len(open_) > _DEEPEST:
            break
    raise ScriptError("lists that are too long, or too deep inside of one another")


def places_in(values: Iterable[Any]) -> dict[int, Any]:
    """
    The lists, dictionaries and attributes of objects that are in values, or in what these hold, by
    identity.
    """
    seen: dict[int, Any] = {}
    open_: list[Any] = list(values)
    while open_:
        item = open_.pop()
        if isinstance(item, Instance):
            item = item.attributes
        if isinstance(item, list | tuple | dict) and id(cast("Any", item)) not in seen:
            items = seen[id(cast("Any", item))] = cast("Any", item)
            open_ += items.values() if isinstance(item, dict) else items
    return {key: one for key, one in seen.items() if not isinstance(one, tuple)}


def copied(value: Any, old: Mapping[int, Any], made: dict[int, Any]) -> Any:
    """
    A value whose lists and dictionaries, but the `old` ones, are copies: one for each, by identity
    in `made`.
    """
    if isinstance(value, Named):
        return Named(value.type, value.names, [copied(item, old, made) for item in value])
    if isinstance(value, tuple):
        return tuple(copied(item, old, made) for item in cast("tuple[Any, ...]", value))
    if not isinstance(value, list | dict) or id(cast("Any", value)) in old:
        return cast("Any", value)
    place = id(cast("Any", value))
    if place in made:
        return made[place]
    if isinstance(value, list):
        items: list[Any] = made.setdefault(place, [])
        items += [copied(item, old, made) for item in cast("list[Any]", value)]
        return items
    pairs: dict[Any, Any] = made.setdefault(place, {})
    pairs |= {key: copied(item, old, made) for key, item in cast("Any", value).items()}
    return pairs


def rebuilt(value: Any, items: Iterator[Any]) -> Any:
    """The same tuples, lists and dictionaries of other leaves."""
    if isinstance(value, Named):
        return Named(value.type, value.names, [rebuilt(item, items) for item in value])
    if isinstance(value, list | tuple):
        found = [rebuilt(item, items) for item in cast("Sequence[Any]", value)]
        return found if isinstance(value, list) else tuple(found)
    if isinstance(value, dict):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {key: rebuilt(item, items) for key, item in pairs}
    return next(items)


def kind_of(value: Any) -> Any:
    """The type of a value, or of the number that it stands for."""
    return value.kind if isinstance(value, Number) else type(cast("object", value))


def same_form(one: Any, other: Any) -> bool:
    """True if two values consist of leaves in the same way."""
    if isinstance(one, list | tuple):
        if kind_of(one) is not kind_of(other) or len(cast("Any", one)) != len(other):
            return False
        pairs = zip(cast("Sequence[Any]", one), other, strict=True)
        return all(same_form(a, b) for a, b in pairs)
    if isinstance(one, dict):
        if not isinstance(other, dict):
            return False
        mine, others = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return list(mine) == list(others) and all(same_form(mine[k], others[k]) for k in mine)
    return not isinstance(other, list | tuple | dict)


class Named(tuple[Any, ...]):
    """A tuple whose items have names."""

    type: str
    names: tuple[str, ...]

    def __new__(cls, type: str, names: Sequence[str], items: Sequence[Any]) -> Self:
        made = super().__new__(cls, items)
        made.type, made.names = type, tuple(names)
        return made
