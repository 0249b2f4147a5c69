"""
Reads a sorted table of strings: the format of LevelDB, in which TensorFlow keeps indexes.

A file is blocks, then a footer that says where the block is that lists all others. Keys of a block
share prefixes; each block has a checksum and may be compressed with Snappy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import google_crc32c

from lowerdeck.frontends.wire import ScanError, read_varint

_MAGIC = 0xDB4775248B80FB57
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_CHUNK_BYTES = 1 << 20
_UNCOMPRESSED, _SNAPPY = 0, 1
_MAX_EXPANSION = 64
"""No Snappy stream is this many times larger when it is decompressed."""


class TableError(ValueError):
    """The bytes are not a table, or are damaged."""


class _Range(NamedTuple):
    offset: int
    size: int


def read_table(data: bytes) -> dict[bytes, bytes]:
    """All entries of a table; TableError if it is damaged."""
    if len(data) < _FOOTER_BYTES:
        raise TableError(f"has {len(data)} bytes, fewer than the end of an index has")
    footer = data[-_FOOTER_BYTES:]
    if int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise TableError("does not end as an index does")
    _, position = _range(footer, 0)
    index, _ = _range(footer, position)
    entries: dict[bytes, bytes] = {}
    for _, where in _entries(_block(data, index)):
        block, _ = _range(where, 0)
        entries.update(_entries(_block(data, block)))
    return entries


def is_table(path: str) -> bool:
    """True for a file that ends as a table does."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 8))
        return int.from_bytes(file.read(), "little") == _MAGIC


def masked_checksum(data: memoryview | bytes) -> int:
    """The CRC-32C of some bytes in the form in which files have it, which is never its own CRC."""
    checksum = 0
    for start in range(0, len(data), _CHUNK_BYTES):
        chunk = bytes(data[start : start + _CHUNK_BYTES])
        checksum = int(cast(Any, google_crc32c).extend(checksum, chunk))
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _block(data: bytes, where: _Range) -> bytes:
    """The contents of a block."""
    end = where.offset + where.size
    trailer = data[end : end + _TRAILER_BYTES]
    if len(trailer) < _TRAILER_BYTES:
        raise TableError(f"ends before its byte {end + _TRAILER_BYTES}")
    expected = int.from_bytes(trailer[1:], "little")
    if masked_checksum(data[where.offset : end + 1]) != expected:
        raise TableError(f"bytes {where.offset} to {end} do not have the checksum that follows")
    contents = data[where.offset : end]
    if trailer[0] == _UNCOMPRESSED:
        return contents
    if trailer[0] == _SNAPPY:
        return decompress(contents)
    raise TableError(f"byte {end}: {trailer[0]} is not a kind of compression")


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block; what follows them, for search, is not needed."""
    count = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (count + 1)
    if end < 0:
        raise TableError("a block is shorter than it says")
    position, key = 0, b""
    while position < end:
        shared, position = _varint(block, position)
        added, position = _varint(block, position)
        size, position = _varint(block, position)
        if shared > len(key) or position + added + size > end:
            raise TableError("an entry is longer than its block")
        key = key[:shared] + block[position : position + added]
        position += added
        yield key, block[position : position + size]
        position += size


def _range(data: bytes, position: int) -> tuple[_Range, int]:
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return _Range(offset, size), position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    try:
        return read_varint(data, position, len(data))
    except ScanError:
        raise TableError("a number does not end") from None


def decompress(data: bytes) -> bytes:
    """What a Snappy stream stands for; TableError if it is damaged."""
    size, position = _varint(data, 0)
    if size > _MAX_EXPANSION * len(data):
        raise TableError(f"{len(data)} compressed bytes cannot stand for {size}")
    out = bytearray()
    while position < len(data) and len(out) <= size:
        tag = data[position]
        position += 1
        kind, rest = tag & 3, tag >> 2
        if kind == 0:
            extra = max(0, rest - 59)
            length = 1 + (_number(data, position, extra) if extra else rest)
            position += extra
            out += data[position : position + length]
            position += length
            continue
        if kind == 1:
            length, offset = 4 + (rest & 7), (tag >> 5) << 8 | _number(data, position, 1)
            position += 1
        else:
            width = 2 if kind == 2 else 4
            length, offset = 1 + rest, _number(data, position, width)
            position += width
        _copy(out, offset, length)
    if len(out) != size or position != len(data):
        raise TableError("a compressed block does not have the size that it says")
    return bytes(out)


def _number(data: bytes, position: int, width: int) -> int:
    if position + width > len(data):
        raise TableError("a compressed block ends too early")
    return int.from_bytes(data[position : position + width], "little")


def _copy(out: bytearray, offset: int, length: int) -> None:
    """Repeat what is `offset` bytes back; it may overlap what it makes."""
    if not 0 < offset <= len(out):
        raise TableError("a compressed block refers to what is before it")
    start = len(out) - offset
    pattern = bytes(out[start : start + length])
    out += (pattern * (length // len(pattern) + 1))[:length]
