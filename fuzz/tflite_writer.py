"""
Models of TensorFlow Lite, written as flatbuffers by the tables of the schema.

A table is a mapping from fields to numbers, names of an enumeration's members, texts, bytes,
arrays, lists of texts or tables, and tables; a union is its table's kind beside its fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.tflite.schema import SCALARS, Field, builtins, schema

Fields = Mapping[str, Any]

_ALIGNED = 16
"""Bytes to which vectors are aligned, as the runtime wants of constants."""


def flatbuffer(kind: str, fields: Fields, identifier: bytes = b"TFL3") -> bytes:
    """A buffer that holds a table."""
    writer = _Writer(identifier)
    struct.pack_into("<I", writer.data, 0, writer.table(kind, fields))
    return bytes(writer.data)


class _Writer:
    """Tables come before what they point to, as offsets are not negative."""

    def __init__(self, identifier: bytes) -> None:
        self.data = bytearray(4) + identifier

    def table(self, kind: str, fields: Fields) -> int:
        """Where a table is."""
        known = schema().tables[kind]
        present = {name: value for name, value in fields.items() if value is not None}
        slots = max((known[name].slot for name in present), default=-1) + 1
        self._align(8, -(4 + 2 * slots))
        offsets, start = [0] * slots, len(self.data)
        self.data += bytes(4 + 2 * slots)
        place = len(self.data)
        self.data += struct.pack("<i", place - start)
        pending: list[tuple[int, Field, Any]] = []
        for name, value in present.items():
            field = known[name]
            if field.kind in schema().unions:
                self._scalar(offsets, place, field.slot - 1, "B", _member(field.kind, value[0]))
            code = None if field.is_list else _code(field.kind)
            number = 0 if code is None else _number(field.kind, value)
            at = self._scalar(offsets, place, field.slot, code or "I", number)
            if code is None:
                pending.append((at, field, value))
        header = (4 + 2 * slots, len(self.data) - place, *offsets)
        struct.pack_into(f"<{len(header)}H", self.data, start, *header)
        for at, field, value in pending:
            struct.pack_into("<I", self.data, at, self._target(field, value) - at)
        return place

    def _scalar(self, offsets: list[int], place: int, slot: int, code: str, value: Any) -> int:
        self._align(struct.calcsize(code))
        at = len(self.data)
        offsets[slot] = at - place
        self.data += struct.pack(f"<{code}", value)
        return at

    def _target(self, field: Field, value: Any) -> int:
        if field.kind in schema().unions:
            return self.table(value[0], value[1])
        if field.is_list:
            return self._vector(field, value)
        if field.kind == "string":
            return self._string(value)
        return self.table(field.kind, value)

    def _vector(self, field: Field, value: Any) -> int:
        code = _code(field.kind)
        if code is not None:
            items = _bytes(value, code)
            return self._items(len(items) // struct.calcsize(code), items)
        values = cast("Sequence[Any]", value)
        place = self._items(len(values), bytes(4 * len(values)))
        for k, item in enumerate(values):
            is_text = field.kind == "string"
            target = self._string(item) if is_text else self.table(field.kind, item)
            at = place + 4 + 4 * k
            struct.pack_into("<I", self.data, at, target - at)
        return place

    def _string(self, text: str) -> int:
        data = text.encode()
        place = self._items(len(data), data)
        self.data.append(0)
        return place

    def _items(self, count: int, data: bytes) -> int:
        self._align(_ALIGNED, -4)
        place = len(self.data)
        self.data += struct.pack("<I", count) + data
        return place

    def _align(self, size: int, offset: int = 0) -> None:
        self.data += bytes((offset - len(self.data)) % size)


def _code(kind: str) -> str | None:
    return SCALARS.get(schema().widths.get(kind, kind))


def _member(union: str, kind: str) -> int:
    return schema().unions[union].index(kind) + 1


def _number(kind: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {name: number for number, name in schema().enums[kind].items()}[value]


def _bytes(value: Any, code: str) -> bytes:
    if isinstance(value, bytes):
        return value
    return struct.pack(f"<{len(value)}{code}", *value)


# Models


def operator_code(builtin: str, version: int = 1) -> Fields:
    """The table of an operator's code."""
    number = {name: code for code, name in builtins().items()}[builtin]
    return {
        "deprecated_builtin_code": min(number, 127),
        "builtin_code": builtin,
        "version": version,
    }


def quantization(scales: Sequence[float], zeros: Sequence[int], axis: int = 0) -> Mapping[str, Any]:
    """The table of a tensor's scales and zero points."""
    return {"scale": scales, "zero_point": zeros, "quantized_dimension": axis}


def nibbles(values: NDArray[np.int8]) -> bytes:
    """Integers of four bits, the low ones of a byte first."""
    flat = values.reshape(-1) & 15
    flat = np.append(flat, np.zeros(flat.size % 2, flat.dtype))
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
