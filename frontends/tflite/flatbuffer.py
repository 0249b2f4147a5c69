"""
Flatbuffers, read by the tables of a schema: every offset and length is checked.

A table is a `Table`, whose fields are attributes' values by name; nothing is copied, and a field
that the file leaves out has its default.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.tflite.schema import SCALARS, Field, schema


class FlatbufferError(ValueError):
    """An offset or a length that points out of the file."""


class Table:
    """A table at a place of a buffer."""

    def __init__(self, data: memoryview, place: int, kind: str) -> None:
        self._data, self._place = data, place
        self.kind = kind
        start = place - int(_scalar(data, place, "i"))
        size = int(_scalar(data, start, "H"))
        if size < 4 or size % 2:
            raise FlatbufferError(f"a table of {size} bytes of offsets")
        _require(data, start, size)
        self._offsets = struct.unpack_from(f"<{size // 2}H", data, start)[2:]

    @staticmethod
    def root(data: memoryview, kind: str) -> Table:
        """The table that a buffer holds."""
        return Table(data, _target(data, 0), kind)

    def __getitem__(self, name: str) -> Any:
        """
        A field: a number, a bool, a text, the name of an enumeration's member (a number that is not
        known stays one), a Table, an array of numbers or a list of texts or tables; None for what
        is not there.
        """
        field = schema().tables[self.kind][name]
        if field.kind in schema().unions:
            return self._union(field)
        place = self._at(field.slot)
        if field.is_list:
            return None if place is None else self._list(field, place)
        if field.kind == "string":
            return None if place is None else _string(self._data, _target(self._data, place))
        if (code := _code(field.kind)) is not None:
            return _named(field.kind, self._number(field, place, code))
        return None if place is None else Table(self._data, _target(self._data, place), field.kind)

    def span(self, name: str) -> tuple[int, int] | None:
        """Where the bytes of a list of bytes are: offset and size."""
        place = self._at(schema().tables[self.kind][name].slot)
        return None if place is None else _vector(self._data, place, 1)

    def has(self, name: str) -> bool:
        """True if the file has the field."""
        return self._at(schema().tables[self.kind][name].slot) is not None

    def union_kind(self, name: str) -> str | None:
        """The table that a union holds; None for none."""
        field = schema().tables[self.kind][name]
        place = self._at(field.slot - 1)
        number = 0 if place is None else int(_scalar(self._data, place, "B"))
        members = schema().unions[field.kind]
        if number > len(members):
            raise FlatbufferError(f"the field '{name}' holds a table of the unknown kind {number}")
        return members[number - 1] if number else None

    def _union(self, field: Field) -> Table | None:
        kind, place = self.union_kind(field.name), self._at(field.slot)
        if kind is None or place is None:
            return None
        return Table(self._data, _target(self._data, place), kind)

    def _at(self, slot: int) -> int | None:
        offset = self._offsets[slot] if slot < len(self._offsets) else 0
        return self._place + offset if offset else None

    def _number(self, field: Field, place: int | None, code: str) -> Any:
        if place is not None:
            return _scalar(self._data, place, code)
        match field.default:
            case "" | "false":
                return struct_type(code)(0)
            case "true":
                return True
            case text:
                members = schema().enums.get(field.kind, {})
                numbers = {name: number for number, name in members.items()}
                return numbers[text] if text in numbers else struct_type(code)(float(text))

    def _list(self, field: Field, place: int) -> Any:
        code = _code(field.kind)
        start, count = _vector(self._data, place, 4 if code is None else struct.calcsize(code))
        if code is not None:
            return np.frombuffer(self._data, _dtype(code), count, start)
        targets = (_target(self._data, start + 4 * k) for k in range(count))
        if field.kind == "string":
            return [_string(self._data, target) for target in targets]
        return [Table(self._data, target, field.kind) for target in targets]


def numbers(values: NDArray[Any] | None) -> list[int]:
    """The integers of a list; none for one that is not there."""
    return [] if values is None else [int(value) for value in values]


def struct_type(code: str) -> type[bool | int | float]:
    """The Python type of a scalar."""
    return bool if code == "?" else float if code in "fd" else int


def _code(kind: str) -> str | None:
    return SCALARS.get(schema().widths.get(kind, kind))


def _dtype(code: str) -> str:
    return "<" + {"?": "?", "b": "i1", "B": "u1", "h": "i2", "H": "u2"}.get(
        code, {"i": "i4", "I": "u4", "q": "i8", "Q": "u8", "f": "f4", "d": "f8"}.get(code, code)
    )


def _named(kind: str, number: Any) -> Any:
    members = schema().enums.get(kind)
    if members is None:
        return number
    return members.get(int(number), int(number))


def _require(data: memoryview, start: int, size: int) -> None:
    if start < 0 or size < 0 or start + size > len(data):
        raise FlatbufferError(f"bytes {start} to {start + size} of {len(data)} are used")


def _scalar(data: memoryview, place: int, code: str) -> Any:
    _require(data, place, struct.calcsize(code))
    return struct.unpack_from(f"<{code}", data, place)[0]


def _target(data: memoryview, place: int) -> int:
    """Where the offset at a place leads."""
    return place + int(_scalar(data, place, "I"))


def _vector(data: memoryview, place: int, width: int) -> tuple[int, int]:
    """The first byte of a vector, and its number of items."""
    start = _target(data, place)
    count = int(_scalar(data, start, "I"))
    _require(data, start + 4, count * width)
    return start + 4, count


def _string(data: memoryview, place: int) -> str:
    size = int(_scalar(data, place, "I"))
    _require(data, place + 4, size)
    return bytes(data[place + 4 : place + 4 + size]).decode("utf-8", "replace")
