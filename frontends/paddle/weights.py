"""Weights: tensors one after the other, without names, that are mapped where they lie."""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import MAX_RANK, numpy_dtype, tensor
from lowerdeck.frontends.paddle.elements import ProgramError, element_numbered
from lowerdeck.frontends.wire import ScanError, decoded, read_varint

_MOST_LEVELS = 16


def read_combined(path: str, names: Sequence[str]) -> dict[str, ConstantOp]:
    """The tensors of a file that holds those of all `names`, in this order."""
    found = list(_tensors(path, len(names)))
    return dict(zip(names, found, strict=True))


def read_single(path: str) -> ConstantOp:
    """The tensor of a file that holds one."""
    (found,) = _tensors(path, 1)
    return found


def _tensors(path: str, count: int) -> Iterator[ConstantOp]:
    size = os.path.getsize(path)
    if not count:
        if size:
            raise ProgramError(f"{path} holds {size} bytes, but the program has no weights")
        return
    if not size:
        raise ProgramError(f"{path} is empty, but the program has {count} weights")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            position = 0
            for number in range(count):
                if position >= size:
                    raise ProgramError(
                        f"{path} ends after {number} of the program's {count} weights"
                    )
                constant, position = _tensor(path, view, position)
                yield constant
            if position != size:
                raise ProgramError(
                    f"{path} goes on for {size - position} bytes after the {count} weights of the "
                    "program; it may be that of another model"
                )
        finally:
            view.release()


def _tensor(path: str, view: memoryview, position: int) -> tuple[ConstantOp, int]:
    """One tensor, and where the next one begins."""
    version, levels = _numbers(path, view, position, "<IQ")
    if version or levels > _MOST_LEVELS:
        raise ProgramError(f"{path}: byte {position} begins no tensor of version 0")
    position += 12
    for _ in range(levels):
        (length,) = _numbers(path, view, position, "<Q")
        position += 8 + length
    version, length = _numbers(path, view, position, "<Ii")
    position += 8
    if version or not 0 <= length <= len(view) - position:
        raise ProgramError(f"{path}: byte {position} describes no tensor of version 0")
    element, dims = _described(path, bytes(view[position : position + length]))
    position += length
    size = math.prod(dims) * numpy_dtype(element).itemsize
    if size > len(view) - position:
        raise ProgramError(f"{path} ends within a tensor of {size} bytes")
    blob = BlobAttr(Blob.map(path, position, size))
    return ConstantOp(blob, tensor(element, dims)), position + size


def _numbers(path: str, view: memoryview, position: int, form: str) -> tuple[int, ...]:
    if not 0 <= position <= len(view) - struct.calcsize(form):
        raise ProgramError(f"{path} ends within a tensor")
    return struct.unpack_from(form, view, position)


def _described(path: str, data: bytes) -> tuple[Attribute, list[int]]:
    try:
        fields = decoded(memoryview(data))
        dims: list[int] = []
        for entry in fields.get(2, ()):
            dims += [entry] if isinstance(entry, int) else list(packed(entry))
    except ScanError as error:
        raise ProgramError(f"{path}: {error}") from None
    (number,) = fields.get(1, [-1])[-1:]
    if not isinstance(number, int) or len(dims) > MAX_RANK or any(d >= 1 << 48 for d in dims):
        raise ProgramError(f"{path}: a tensor of {len(dims)} dimensions")
    return element_numbered(number), dims


def packed(data: memoryview) -> Iterator[int]:
    """The numbers in a packed field."""
    position = 0
    while position < len(data):
        number, position = read_varint(data, position, len(data))
        yield number
