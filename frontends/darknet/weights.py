"""
The weights of a net: one list of numbers after the other, in the order of the layers.

A header says the version, and how many images were seen in training: in 64 bits from version 0.2
on (`load_weights_upto` of `src/parser.c`). Nothing says which layer the numbers are for.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from math import prod

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.darknet.shapes import Shape
from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError

SUFFIX = ".weights"
_FLOAT = 4
_VERSIONS = struct.Struct("<3i")
_LARGEST_VERSION = 1_000_000


@record
class Header:
    """What a file says before its numbers."""

    version: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Its bytes, with the count of images."""
        major, minor, _ = self.version
        return _VERSIONS.size + (8 if major * 10 + minor >= 2 else 4)

    @property
    def is_transposed(self) -> bool:
        """True if the weights of connected layers are stored by columns, as in old files."""
        major, minor, _ = self.version
        return major > 1000 or minor > 1000


def find_weights(cfg: str) -> str | None:
    """The weights beside a cfg: of the same name, or the only ones there."""
    stem, _ = os.path.splitext(cfg)
    if os.path.isfile(stem + SUFFIX):
        return stem + SUFFIX
    folder = os.path.dirname(cfg)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    found = sorted(name for name in names if name.lower().endswith(SUFFIX))
    return os.path.join(folder, found[0]) if len(found) == 1 else None


def read_header(path: str) -> Header:
    """The header of a file; FrontendError if it has none."""
    try:
        with open(path, "rb") as file:
            head = file.read(_VERSIONS.size + 8)
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    if len(head) >= _VERSIONS.size:
        header = Header(_VERSIONS.unpack(head[: _VERSIONS.size]))
        if all(0 <= part <= _LARGEST_VERSION for part in header.version):
            if len(head) >= header.size:
                return header
            head = head[: _VERSIONS.size]
    message = (
        "found no header of a weights file of DarkNet, expected a version and a count of images"
    )
    raise FrontendError.of_file(path, f"{message}; get a fresh copy")


class Weights:
    """The numbers of a file, taken in order."""

    def __init__(self, path: str, header: Header, size: int) -> None:
        self.path = path
        self._size = size
        self._offset = header.size

    def take(self, shape: Shape) -> BlobAttr:
        """The next numbers; the file has them (`check_size`)."""
        size = _FLOAT * prod(shape)
        blob = Blob.map(self.path, self._offset, size)
        self._offset += size
        return BlobAttr(blob)


def open_weights(path: str, layers: Sequence[tuple[str, Sequence[Shape]]]) -> Iterator[BlobAttr]:
    """
    The numbers of layers by name, one list after the other; FrontendError if the file has fewer
    or more of them.
    """
    header = read_header(path)
    size = os.path.getsize(path)
    needed = header.size
    for name, shapes in layers:
        needed += _FLOAT * sum(map(prod, shapes))
        if needed > size:
            total = header.size + _FLOAT * sum(prod(shape) for _, all_ in layers for shape in all_)
            raise FrontendError.of_file(
                path,
                f"found {size} bytes, expected {total}: the file ends in the weights of '{name}'; "
                "it is cut off, is for the first layers only, or is of another cfg",
            )
    if needed < size:
        raise FrontendError.of_file(
            path,
            f"found {size} bytes, expected {needed} for the layers of the cfg: it is of another "
            "cfg; DarkNet would leave the rest aside",
        )
    weights = Weights(path, header, size)
    return (weights.take(shape) for _, shapes in layers for shape in shapes)
