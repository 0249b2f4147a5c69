"""
Pickled data without Python's unpickler: nothing is imported, called or built.

What a pickle names is a `Name`, and what it would call, make and fill is recorded as `Made`. Who
asked for the data decides what that means.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast

from lowerdeck.dialects.records import record

_MOST = 5_000_000
"""Operations of a pickle."""

_LONGEST = 1 << 26
"""Bytes of a number, a text or a name, of which there may be arrays in some files."""


class PickleError(ValueError):
    """A pickle that is broken, or says something that data does not."""


@record
class Name:
    """Something that a module defines: only its name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Made:
    """What a call would have given: of `what`, with arguments, then a state and items."""

    what: Any
    args: tuple[Any, ...]
    state: Any = None
    items: list[Any] = field(default_factory=list[Any])
    pairs: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])

    @property
    def name(self) -> str:
        """What would have been called."""
        return str(self.what) if isinstance(self.what, Name) else ""


@dataclass(eq=False)
class Stored:
    """What a pickle refers to outside of it, by an identity of its writer's."""

    key: Any


class _Mark:
    pass


_MARK = _Mark()

_LITERALS = frozenset(
    "BININT BININT1 BININT2 LONG1 LONG4 LONG INT FLOAT BINFLOAT UNICODE BINUNICODE "
    "SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 STRING BINSTRING "
    "SHORT_BINSTRING BYTEARRAY8".split()
)
_WITHOUT_MEANING = frozenset("PROTO FRAME STOP".split())


def read_pickle(file: IO[bytes]) -> Any:
    """The data of one pickle, from where the file stands up to its end; PickleError."""
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
            if count > _MOST:
                raise PickleError(f"more than {_MOST} operations")
            machine.step(opcode.name, argument)
        return machine.pop()
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise PickleError(f"a broken pickle: {str(error)[:200]}") from None


class _Machine:
    """The stack machine of pickles, as far as data needs it."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._steps: Mapping[str, Callable[[Any], None]] = {
            "NONE": lambda _: self._push(None),
            "NEWTRUE": lambda _: self._push(True),
            "NEWFALSE": lambda _: self._push(False),
            "MARK": lambda _: self._push(_MARK),
            "POP": lambda _: self._drop(),
            "POP_MARK": lambda _: self._drop_items(),
            "DUP": lambda _: self._push(self._stack[-1]),
            "EMPTY_LIST": lambda _: self._push([]),
            "EMPTY_TUPLE": lambda _: self._push(()),
            "EMPTY_DICT": lambda _: self._push({}),
            "LIST": lambda _: self._push(self._items()),
            "TUPLE": lambda _: self._push(tuple(self._items())),
            "DICT": lambda _: self._push(_paired(self._items())),
            "TUPLE1": lambda _: self._push((self.pop(),)),
            "TUPLE2": lambda _: self._push(self._last(2)),
            "TUPLE3": lambda _: self._push(self._last(3)),
            "APPEND": lambda _: self._extend([self.pop()]),
            "APPENDS": lambda _: self._extend(self._items()),
            "SETITEM": lambda _: self._update(self._last(2)),
            "SETITEMS": lambda _: self._update(self._items()),
            "GLOBAL": lambda name: self._push(Name(*str(name).split(" ", 1))),
            "STACK_GLOBAL": lambda _: self._push(Name(*map(_text, self._last(2)))),
            "REDUCE": lambda _: self._make(),
            "NEWOBJ": lambda _: self._make(),
            "BUILD": lambda _: self._build(),
            "BINPERSID": lambda _: self._push(Stored(self.pop())),
            "MEMOIZE": lambda _: self._put(len(self._memo)),
            **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), self._put),
            **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), self._get),
        }

    def step(self, name: str, argument: Any) -> None:
        """One operation."""
        if name in _LITERALS:
            if isinstance(argument, str | bytes | bytearray) and len(argument) > _LONGEST:
                raise PickleError(f"a text of {len(argument)} characters")
            self._push(argument)
        elif name not in _WITHOUT_MEANING:
            if name not in self._steps:
                raise PickleError(f"the operation {name}, which data does not have")
            self._steps[name](argument)

    def pop(self) -> Any:
        """What is on top of the stack."""
        value = self._stack.pop()
        if value is _MARK:
            raise PickleError("a mark in the place of a value")
        return value

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _drop(self) -> None:
        self._stack.pop()

    def _drop_items(self) -> None:
        self._items()

    def _items(self) -> list[Any]:
        """What is above the last mark, which goes."""
        for place in reversed(range(len(self._stack))):
            if self._stack[place] is _MARK:
                found = self._stack[place + 1 :]
                del self._stack[place:]
                return found
        raise PickleError("no mark")

    def _last(self, count: int) -> tuple[Any, ...]:
        return tuple(reversed([self.pop() for _ in range(count)]))

    def _put(self, key: Any) -> None:
        self._memo[int(key)] = self._stack[-1]

    def _get(self, key: Any) -> None:
        self._push(self._memo[int(key)])

    def _extend(self, items: list[Any]) -> None:
        into = self._stack[-1]
        found: Any = into.items if isinstance(into, Made) else into
        if not isinstance(found, list):
            raise PickleError("items of what is no list")
        cast("list[Any]", found).extend(items)

    def _update(self, items: Any) -> None:
        into, pairs = self._stack[-1], _paired(list(items))
        if isinstance(into, Made):
            into.pairs += pairs.items()
        elif isinstance(into, dict):
            cast("dict[Any, Any]", into).update(pairs)
        else:
            raise PickleError("items of what is no dictionary")

    def _make(self) -> None:
        what, args = self._last(2)
        if not isinstance(args, tuple):
            raise PickleError("a call without arguments")
        self._push(Made(what, cast("tuple[Any, ...]", args)))

    def _build(self) -> None:
        state, made = self.pop(), self._stack[-1]
        if not isinstance(made, Made):
            raise PickleError("a state of what is no object")
        made.state = state


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise PickleError("a name that is no text")
    return value


def _paired(items: list[Any]) -> dict[Any, Any]:
    """Keys and values in turn; what cannot be a key raises TypeError."""
    if len(items) % 2:
        raise PickleError("a key without a value")
    return dict(zip(items[::2], items[1::2], strict=True))
