"""
A look at a serialized model before protobuf sees it: weights stay where they are.

`detach_weights` copies a ModelProto except for the large `raw_data` of its tensors, which become
references into the file (as onnx's external data, with a key of their own). protobuf then holds
kilobytes instead of the whole model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MIN_BYTES = 1024
"""Raw data of at least this many bytes becomes a reference."""

SELF_KEY = "lowerdeck.self"
"""The key of the external-data entry that holds `offset,size` in the model file itself."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""

_NESTED: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
}
"""The fields through which large tensors are reached, by kind of message."""

_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_MAX_DEPTH = 100


class ScanError(ValueError):
    """The bytes are not a protobuf message."""


class _Field(NamedTuple):
    number: int
    wire: int
    start: int
    """Where the field begins, tag included."""
    body: int
    """Where its payload begins (of a LENGTH field, after the length)."""
    end: int


def detach_weights(data: memoryview) -> bytes:
    """The serialized model with references in place of its large raw data; ScanError if broken."""
    return b"".join(_message(data, "model", 0, len(data), 0))


def _message(data: memoryview, kind: str, start: int, end: int, depth: int) -> list[bytes]:
    """The pieces of a message in which large tensors are replaced."""
    if depth > _MAX_DEPTH:
        raise ScanError("messages are nested too deeply")
    if kind == "tensor":
        return _tensor(data, start, end)
    pieces: list[bytes] = []
    copied = start
    for field in _fields(data, start, end):
        nested = _NESTED[kind].get(field.number)
        if nested is None or field.wire != LENGTH or field.end - field.body < MIN_BYTES:
            continue
        pieces.append(bytes(data[copied : field.start]))
        inner = _message(data, nested, field.body, field.end, depth + 1)
        pieces += [_tag(field.number), _varint(sum(map(len, inner))), *inner]
        copied = field.end
    pieces.append(bytes(data[copied:end]))
    return pieces


def _tensor(data: memoryview, start: int, end: int) -> list[bytes]:
    raw: _Field | None = None
    is_external = False
    fields = list(_fields(data, start, end))
    for field in fields:
        if field.number == _RAW_DATA and field.wire == LENGTH:
            raw = field
        is_external |= field.number == _EXTERNAL_DATA
    if raw is None or is_external or raw.end - raw.body < MIN_BYTES:
        return [bytes(data[start:end])]
    dropped = (_RAW_DATA, _DATA_LOCATION)
    kept = [bytes(data[f.start : f.end]) for f in fields if f.number not in dropped]
    entry = _text(1, SELF_KEY) + _text(2, f"{raw.body},{raw.end - raw.body}")
    location = _varint(_DATA_LOCATION << 3 | VARINT) + _varint(1)
    return [*kept, _tag(_EXTERNAL_DATA), _varint(len(entry)), entry, location]


def _fields(data: memoryview, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start = position
        tag, position = _read_varint(data, position, end)
        wire = tag & 7
        body = position
        if wire == VARINT:
            _, position = _read_varint(data, position, end)
        elif wire == FIXED64:
            position += 8
        elif wire == FIXED32:
            position += 4
        elif wire == LENGTH:
            size, body = _read_varint(data, position, end)
            position = body + size
        else:
            raise ScanError(f"byte {start}: no field of a message has wire type {wire}")
        if position > end:
            raise ScanError(f"byte {start}: a field ends {position - end} bytes after its message")
        yield _Field(tag >> 3, wire, start, body, position)


def _read_varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ScanError(f"byte {position}: a number ends too late")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int) -> bytes:
    return _varint(number << 3 | LENGTH)


def _text(number: int, text: str) -> bytes:
    return _tag(number) + _varint(len(text)) + text.encode()
