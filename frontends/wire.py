"""
A scan of a serialized model before protobuf parses it: weights stay in the file.

`detach` copies a message except for the large fields that a format's table names, each of which
becomes a reference into the file. protobuf then holds kilobytes instead of the whole model.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import NamedTuple

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lowerdeck.dialects.records import record

MIN_BYTES = 1024
"""A field of at least this many bytes becomes a reference."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""

_MAX_DEPTH = 100


class ScanError(ValueError):
    """The bytes are not a protobuf message."""


@record
class Holder:
    """
    A kind of message with large fields.

    `references` maps the number of each to the replacement for a range (offset, size) of the file:
    serialized fields of the message, or nothing. A message with one of the fields `unless` stays
    unchanged; the fields `dropped` are omitted where a reference is inserted.
    """

    references: Mapping[int, Callable[[int, int], bytes]]
    unless: frozenset[int] = field(default=frozenset())
    dropped: frozenset[int] = field(default=frozenset())


@record
class Format:
    """
    The locations of large fields in a kind of file.

    `nested` has the fields through which holders are reached, by kind of message, and the kind of
    message that each leads to; `root` is the kind of the whole file.
    """

    root: str
    nested: Mapping[str, Mapping[int, str]]
    holders: Mapping[str, Holder]


class _Field(NamedTuple):
    number: int
    wire: int
    start: int
    """The start of the field, tag included."""
    body: int
    """The start of its payload (of a LENGTH field, after the length)."""
    end: int


def detach_file(path: str, format_: Format) -> bytes:
    """`detach` for a whole file, which may not be empty; ScanError or OSError if not readable."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ScanError("the file is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                return detach(view, format_)
            finally:
                view.release()


def detach(data: memoryview, format_: Format) -> bytes:
    """The serialized message with references in place of its large fields; ScanError if broken."""
    return b"".join(_message(data, format_, format_.root, 0, len(data), 0))


def _message(
    data: memoryview, format_: Format, kind: str, start: int, end: int, depth: int
) -> list[bytes]:
    """The pieces of a message in which large fields are replaced."""
    if depth > _MAX_DEPTH:
        raise ScanError("messages are nested too deeply")
    if kind in format_.holders:
        return _holder(data, format_.holders[kind], start, end)
    pieces: list[bytes] = []
    copied = start
    for field_ in _fields(data, start, end):
        nested = format_.nested[kind].get(field_.number)
        if nested is None or field_.wire != LENGTH or field_.end - field_.body < MIN_BYTES:
            continue
        pieces.append(bytes(data[copied : field_.start]))
        inner = _message(data, format_, nested, field_.body, field_.end, depth + 1)
        pieces += [_tag(field_.number), _varint(sum(map(len, inner))), *inner]
        copied = field_.end
    pieces.append(bytes(data[copied:end]))
    return pieces


def _holder(data: memoryview, holder: Holder, start: int, end: int) -> list[bytes]:
    """The pieces of a message whose large fields are replaced."""
    occurrences: Counter[int] = Counter()
    large: set[int] = set()
    for field_ in _fields(data, start, end):
        occurrences[field_.number] += 1
        if field_.wire == LENGTH and field_.end - field_.body >= MIN_BYTES:
            large.add(field_.number)
    # A field in several parts is left to protobuf, which joins them.
    replaced = {number for number in large & holder.references.keys() if occurrences[number] == 1}
    if not replaced or not holder.unless.isdisjoint(occurrences):
        return [bytes(data[start:end])]
    pieces: list[bytes] = []
    copied = start
    for field_ in _fields(data, start, end):
        if field_.number not in replaced | holder.dropped:
            continue
        pieces.append(bytes(data[copied : field_.start]))
        if field_.number in replaced:
            refer = holder.references[field_.number]
            pieces.append(refer(field_.body, field_.end - field_.body))
        copied = field_.end
    pieces.append(bytes(data[copied:end]))
    return pieces


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start = position
        tag, position = read_varint(data, position, end)
        wire = tag & 7
        body = position
        if wire == VARINT:
            _, position = read_varint(data, position, end)
        elif wire == FIXED64:
            position += 8
        elif wire == FIXED32:
            position += 4
        elif wire == LENGTH:
            size, body = read_varint(data, position, end)
            position = body + size
        else:
            raise ScanError(f"byte {start}: no field of a message has wire type {wire}")
        if position > end:
            raise ScanError(f"byte {start}: a field ends {position - end} bytes after its message")
        yield _Field(tag >> 3, wire, start, body, position)


def read_varint(data: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """The number at a position, and the position after it; ScanError if it does not end."""
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ScanError(f"byte {position}: a number ends too late")


def decoded(data: memoryview) -> dict[int, list[int | memoryview]]:
    """
    The fields of a message by number, in order: numbers of VARINT fields, the bytes of others;
    ScanError if it is broken.
    """
    found: dict[int, list[int | memoryview]] = {}
    for field_ in _fields(data, 0, len(data)):
        value = (
            read_varint(data, field_.body, field_.end)[0]
            if field_.wire == VARINT
            else data[field_.body : field_.end]
        )
        found.setdefault(field_.number, []).append(value)
    return found


# Fields that represent a range


def range_field(number: int) -> Callable[[int, int], bytes]:
    """
    The representation of a range as a field that the message does not declare: protobuf keeps it,
    and `range_of` reads it.
    """

    def refer(offset: int, size: int) -> bytes:
        return text_field(number, f"{offset},{size}")

    return refer


def range_of(message: Message, number: int) -> tuple[int, int] | None:
    """The range, from `range_field`, that represents a field of `message`."""
    for unknown in UnknownFieldSet(message):
        if unknown.field_number == number and isinstance(unknown.data, bytes):
            offset, _, size = unknown.data.partition(b",")
            if offset.isdigit() and size.isdigit() and len(unknown.data) < 40:
                return int(offset), int(size)
    return None


def number_field(number: int, value: int) -> bytes:
    """A serialized field that holds a number from 0."""
    return _varint(number << 3 | VARINT) + _varint(value)


def text_field(number: int, text: str) -> bytes:
    """A serialized field that holds ASCII text."""
    return bytes_field(number, text.encode("ascii"))


def bytes_field(number: int, data: bytes) -> bytes:
    """A serialized field that holds bytes or a message."""
    return _tag(number) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int) -> bytes:
    return _varint(number << 3 | LENGTH)


# The outline of a file


_OUTLINE_FIELDS = 4096
"""The maximum number of fields in an outline."""


@record
class Outline:
    """The first fields of a message, as far as they can be read."""

    data: memoryview
    fields: tuple[_Field, ...]
    is_whole: bool
    """True if no error was found in the fields read."""

    def first(self, number: int) -> int | None:
        """The wire type of the first field of this number, or None."""
        return next((field_.wire for field_ in self.fields if field_.number == number), None)

    def count(self, number: int) -> int:
        """The number of fields with this number."""
        return sum(field_.number == number for field_ in self.fields)

    def inside(self, number: int) -> Outline:
        """The outline of the message in the first field of this number."""
        for field_ in self.fields:
            if field_.number == number and field_.wire == LENGTH:
                return _outline(self.data, field_.body, field_.end)
        return Outline(self.data, (), False)


def outline(path: str) -> Outline:
    """The outline of a file that is not empty; OSError if it cannot be read."""
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return _outline(memoryview(mapped), 0, len(mapped))


def _outline(data: memoryview, start: int, end: int) -> Outline:
    found: list[_Field] = []
    try:
        found.extend(islice(_fields(data, start, end), _OUTLINE_FIELDS))
    except ScanError:
        return Outline(data, tuple(found), False)
    return Outline(data, tuple(found), True)
