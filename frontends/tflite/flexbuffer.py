"""FlexBuffers: the maps of numbers that custom operators have as options."""

from __future__ import annotations

import struct
from typing import Any

from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError

_INTS = {1: "b", 2: "h", 4: "i", 8: "q"}
_UINTS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FLOATS = {2: "e", 4: "f", 8: "d"}
_MAP = 9
_SCALARS = frozenset({1, 2, 3, 6, 7, 8, 26})
_ELEMENTS = {11: 1, 12: 2, 13: 3, 36: 26}
"""By the kind of a list, that of its elements; other lists have one for each."""


def read_map(data: bytes) -> dict[str, Any]:
    """
    The numbers, bools and texts of the map that a buffer holds, and lists of them; other values are
    left out.
    """
    if len(data) < 3:
        raise FlatbufferError(f"options of {len(data)} bytes")
    width, packed = data[-1], data[-2]
    place = len(data) - 2 - width
    if packed >> 2 != _MAP:
        raise FlatbufferError(f"options of kind {packed >> 2}, expected a map")
    return _map(data, _indirect(data, place, width), 1 << (packed & 3))


def _map(data: bytes, place: int, width: int) -> dict[str, Any]:
    keys = _indirect(data, place - 3 * width, width)
    key_width = _number(data, place - 2 * width, width, _UINTS)
    count = _number(data, place - width, width, _UINTS)
    found: dict[str, Any] = {}
    for index in range(count):
        start = _indirect(data, keys + index * key_width, key_width)
        end = data.find(0, start)
        if end < 0:
            raise FlatbufferError("a key without an end")
        packed = _number(data, place + count * width + index, 1, _UINTS)
        value = _value(data, place + index * width, width, packed)
        if value is not None:
            found[data[start:end].decode("utf-8", "replace")] = value
    return found


def _value(data: bytes, place: int, width: int, packed: int) -> Any:
    kind, own = packed >> 2, 1 << (packed & 3)
    match kind:
        case 1 | 2 | 3:
            return _number(data, place, width, {1: _INTS, 2: _UINTS, 3: _FLOATS}[kind])
        case 6 | 7 | 8:
            tables = {6: _INTS, 7: _UINTS, 8: _FLOATS}[kind]
            return _number(data, _indirect(data, place, width), own, tables)
        case 26:
            return bool(_number(data, place, width, _UINTS))
        case 5:
            start = _indirect(data, place, width)
            size = _number(data, start - own, own, _UINTS)
            return data[start : start + size].decode("utf-8", "replace")
        case 10 | 11 | 12 | 13 | 36:
            return _vector(data, _indirect(data, place, width), own, kind)
        case _:
            return None


def _vector(data: bytes, place: int, width: int, kind: int) -> list[Any] | None:
    """Scalars of one type, or of a type each; their number stands before them."""
    count = _number(data, place - width, width, _UINTS)
    if count * width > len(data):
        raise FlatbufferError(f"a list of {count} values at {place} of {len(data)}")
    places = range(place, place + count * width, width)
    if kind in _ELEMENTS:
        types = [_ELEMENTS[kind] << 2] * count
    else:
        types = [_number(data, place + count * width + k, 1, _UINTS) for k in range(count)]
    if any(packed >> 2 not in _SCALARS for packed in types):
        return None
    return [_value(data, each, width, packed) for each, packed in zip(places, types, strict=True)]


def _indirect(data: bytes, place: int, width: int) -> int:
    return place - _number(data, place, width, _UINTS)


def _number(data: bytes, place: int, width: int, codes: dict[int, str]) -> Any:
    if width not in codes or place < 0 or place + width > len(data):
        raise FlatbufferError(f"a number of {width} bytes at {place} of {len(data)}")
    return struct.unpack_from(f"<{codes[width]}", data, place)[0]
