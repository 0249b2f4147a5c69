"""
Weights outside text and outside Python objects: `#core.blob`, a range of bytes in a mapped file.

Untouched weights point into the model file. New ones of more than `SPILL_BYTES` go to an unlinked
temporary file and are mapped back, so that the compiler's anonymous memory does not grow with them;
of those in which one element is repeated, only that is stored.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.files import FileState, record_file
from lowerdeck.dialects.walking import all_ops

SPILL_BYTES = 1 << 16
"""Arrays of at least this many bytes are spilled to a temporary file."""

INLINE_BYTES = 1024
"""Constants up to this size are printed in the text; larger ones by reference, or elided."""

_SAMPLE_BYTES = 4096


class ElidedBlobError(LowerdeckError, ValueError):
    """The bytes of a constant that was printed elided were asked for."""


class Blob:
    """
    A read-only range of bytes, of a file (`file`, `offset`) or of memory (`file` is None).

    Blobs compare by content: by identity of the range first, then byte by byte. A `uniform` blob
    repeats one element, which is all that it stores until its bytes are read.
    """

    def __init__(self, data: memoryview | None, size: int, file: str | None, offset: int) -> None:
        self._data = data
        self.size = size
        self.file = file
        self.offset = offset
        self.element: bytes | None = None
        """What is repeated, if the blob was made of that."""

    @staticmethod
    def of(array: NDArray[Any]) -> Blob:
        """The bytes of `array` in C order (a scalar of a sub-byte type takes one byte)."""
        if array.nbytes >= SPILL_BYTES and (element := _repeated(array)) is not None:
            return Blob.uniform(element, array.nbytes)
        contiguous = np.ascontiguousarray(array)
        if contiguous.nbytes < SPILL_BYTES:
            return Blob(memoryview(contiguous.tobytes()), contiguous.nbytes, None, 0)
        with tempfile.TemporaryFile(prefix="lowerdeck-") as spill:
            contiguous.reshape(-1).view(np.uint8).tofile(spill)
            spill.flush()
            mapped = mmap.mmap(spill.fileno(), contiguous.nbytes, access=mmap.ACCESS_READ)
        return Blob(memoryview(mapped), contiguous.nbytes, None, 0)

    @staticmethod
    def uniform(element: bytes, size: int) -> Blob:
        """`size` bytes that repeat `element`; ValueError if they do not end with a whole one."""
        if not element or size % len(element):
            raise ValueError(f"{size} bytes are not a number of elements of {len(element)} bytes")
        blob = Blob(None, size, None, 0)
        blob.element = element
        return blob

    @staticmethod
    def map(path: str, offset: int, size: int) -> Blob:
        """`size` bytes of the file at `path` from `offset`; OSError or ValueError if not there."""
        if size == 0:
            return Blob(memoryview(b""), 0, path, offset)
        whole = _mapped(os.path.abspath(path), record_file(path))
        if offset < 0 or size < 0 or offset + size > len(whole):
            raise ValueError(
                f"{path}: holds {len(whole)} bytes, but bytes {offset} to {offset + size} are used"
            )
        return Blob(whole[offset : offset + size], size, path, offset)

    @staticmethod
    def elided(size: int = 0) -> Blob:
        """A blob whose bytes were left out of the text."""
        return Blob(None, size, None, 0)

    @property
    def is_elided(self) -> bool:
        """True if the bytes were left out of the text that was read."""
        return self._data is None and self.element is None

    @property
    def is_anonymous(self) -> bool:
        """True if text cannot say what the bytes are: they are in no file, many and different."""
        return self.file is None and self.element is None and self.size > INLINE_BYTES

    @property
    def data(self) -> memoryview:
        """The bytes; ElidedBlobError if they were left out of the text that was read."""
        if self._data is None and self.element is not None:
            self._data = _written_out(self.element, self.size)
        if self._data is None:
            raise ElidedBlobError(
                "the bytes of this constant were elided when it was printed; "
                "print it with --weights-out=FILE to keep them"
            )
        return self._data

    def array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> NDArray[Any]:
        """A read-only view of the bytes; ValueError if their number does not fit."""
        if self.element is not None and len(self.element) == dtype.itemsize:
            if dtype.itemsize * math.prod(shape) != self.size:
                raise ValueError(f"{self.size} bytes are not an array of shape {tuple(shape)}")
            return np.broadcast_to(np.frombuffer(self.element, dtype).reshape(()), tuple(shape))
        return np.frombuffer(self.data, dtype).reshape(tuple(shape))

    @cached_property
    def _digest(self) -> int:
        if self.element is not None:
            sample = self.element * -(-_SAMPLE_BYTES // len(self.element))
            size = min(_SAMPLE_BYTES, self.size)
            # Whole elements: the end of the bytes is the end of one.
            return hash((self.size, sample[:size], sample[len(sample) - size :]))
        if self._data is None:
            return 0
        head, tail = self._data[:_SAMPLE_BYTES], self._data[-_SAMPLE_BYTES:]
        return hash((self.size, head.tobytes(), tail.tobytes()))

    def __hash__(self) -> int:
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Blob) or self.size != other.size:
            return False
        if self.is_elided or other.is_elided:
            return False
        if self.element is not None and self.element == other.element:
            return True
        if self._digest != other._digest:
            return False
        # A name is no identity: the file may have been mapped again after it was replaced.
        same_file = self.file is not None and self.data.obj is other.data.obj
        if same_file and (self.file, self.offset) == (other.file, other.offset):
            return True
        mine, others = (np.frombuffer(blob.data, np.uint8) for blob in (self, other))
        return np.array_equal(mine, others)


@irdl_attr_definition
class BlobAttr(Data[Blob]):
    """
    Raw little-endian bytes: `#core.blob<"file", offset, size>`, `#core.blob<"0x0000803F">` for
    bytes in the text, `#core.blob<uniform "0x0000803F", size>` for elements that are all the same,
    or `#core.blob<elided>`.
    """

    name = "core.blob"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Blob:
        with parser.in_angle_brackets():
            if parser.parse_optional_keyword("elided") is not None:
                return Blob.elided()
            if parser.parse_optional_keyword("uniform") is not None:
                return _parse_uniform(parser)
            start = parser.pos
            text = parser.parse_str_literal()
            if parser.parse_optional_punctuation(",") is None:
                if re.fullmatch("0x([0-9A-Fa-f]{2})*", text) is None:
                    parser.raise_error("expected '0x' and hexadecimal digits", start, parser.pos)
                data = bytes.fromhex(text[2:])
                return Blob(memoryview(data), len(data), None, 0)
            offset = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_punctuation(",")
            size = parser.parse_integer(allow_boolean=False, allow_negative=False)
            try:
                return Blob.map(text, offset, size)
            except (OSError, ValueError) as error:
                parser.raise_error(f"cannot read the blob: {error}", start, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        blob = self.data
        with printer.in_angle_brackets():
            if blob.is_elided:
                printer.print_string("elided")
            elif blob.element is not None:
                printer.print_string(f'uniform "0x{blob.element.hex().upper()}", {blob.size}')
            elif blob.file is not None:
                printer.print_string_literal(blob.file)
                printer.print_string(f", {blob.offset}, {blob.size}")
            elif blob.size <= INLINE_BYTES:
                printer.print_string_literal("0x" + blob.data.hex().upper())
            else:
                printer.print_string("elided")


def _parse_uniform(parser: AttrParser) -> Blob:
    start = parser.pos
    text = parser.parse_str_literal()
    parser.parse_punctuation(",")
    size = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if re.fullmatch("0x([0-9A-Fa-f]{2})+", text) is None:
        parser.raise_error("expected '0x' and hexadecimal digits", start, parser.pos)
    try:
        return Blob.uniform(bytes.fromhex(text[2:]), size)
    except ValueError as error:
        parser.raise_error(f"cannot read the blob: {error}", start, parser.pos)


def _repeated(array: NDArray[Any]) -> bytes | None:
    """The bytes of one element if all are the same, bit by bit."""
    if array.itemsize not in (1, 2, 4, 8):
        return None
    # Along a dimension that was broadcast one element says it all.
    first_of = tuple(slice(0, 1 if stride == 0 else None) for stride in array.strides)
    bits = array[first_of].view(f"u{array.itemsize}")
    first = bits.flat[0]
    if bits.flat[bits.size // 2] != first or bits.flat[bits.size - 1] != first:
        return None
    return first.tobytes() if bool((bits == first).all()) else None


def _written_out(element: bytes, size: int) -> memoryview:
    """`element` again and again, in a temporary file that is mapped."""
    run = element * max(SPILL_BYTES // len(element), 1)
    with tempfile.TemporaryFile(prefix="lowerdeck-") as spill:
        for start in range(0, size, len(run)):
            spill.write(run[: size - start])
        spill.flush()
        return memoryview(mmap.mmap(spill.fileno(), size, access=mmap.ACCESS_READ))


@lru_cache(maxsize=64)
def _mapped(path: str, state: FileState) -> memoryview:
    """The whole file, mapped once; its state is part of the key so that a new file is read anew."""
    del state
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def bytes_of_constants(op: Operation) -> int:
    """The bytes of all blobs in an op and in its regions, one that several ops share once."""
    found: dict[int, BlobAttr] = {}
    for each in all_ops(op):
        for attribute in (*each.properties.values(), *each.attributes.values()):
            for blob in _blobs(attribute):
                found[id(blob)] = blob
    return sum(blob.data.size for blob in found.values())


def _blobs(attribute: Attribute) -> Iterator[BlobAttr]:
    match attribute:
        case BlobAttr():
            yield attribute
        case ArrayAttr():
            for item in attribute.data:
                yield from _blobs(item)
        case DictionaryAttr():
            for item in attribute.data.values():
                yield from _blobs(item)
        case ParametrizedAttribute():
            for item in attribute.parameters:
                yield from _blobs(item)
        case _:
            return
