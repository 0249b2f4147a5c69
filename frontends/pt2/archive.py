"""
The archive that torch.export writes: a program in JSON, and weights that are mapped where they lie.

Nothing in it is executed: pickled objects are refused.
"""

from __future__ import annotations

import json
import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_of, numpy_dtype, tensor
from lowerdeck.dialects.pt2.strides import is_contiguous
from lowerdeck.dialects.records import record

_MAJOR = 8
"""The version of the schema of programs."""

_MOST_JSON = 1 << 28
"""Bytes of a program."""

_MOST_COMPRESSED = 1 << 24
"""Bytes of an entry that is smaller in the file: PyTorch compresses nothing."""

_MOST_SPREAD = 1 << 26
"""Bytes of a constant that shows the elements of a smaller storage again and again."""

_HEADER = 30
"""Bytes of a local header of the archive, before the name."""

_ELEMENTS = {
    number: element_of(np.dtype(dtype))
    for number, dtype in {
        1: np.uint8,
        2: np.int8,
        3: np.int16,
        4: np.int32,
        5: np.int64,
        6: np.float16,
        7: np.float32,
        8: np.float64,
        10: np.complex64,
        11: np.complex128,
        12: np.bool_,
        13: ml_dtypes.bfloat16,
        28: np.uint16,
        34: np.uint32,
        35: np.uint64,
    }.items()
}

_UNREAD = {9: "complex numbers of half precision"} | dict.fromkeys(
    range(29, 34), "floats of eight bits"
)
"""Other types that PyTorch has."""


class ArchiveError(ValueError):
    """An archive that is broken, or of another kind."""


class UnreadError(ArchiveError):
    """One that holds what cannot be read."""


def told(error: Exception) -> str:
    """What is said of an archive."""
    return str(error) if isinstance(error, UnreadError) else f"the file is broken: {error}"


def element(number: object) -> Attribute:
    """The element type with a number in the file."""
    if not isinstance(number, int) or number not in _ELEMENTS:
        if isinstance(number, int) and number in _UNREAD:
            raise UnreadError(f"found {_UNREAD[number]}, which are not read")
        raise ArchiveError(f"tensors of type number {number}")
    return _ELEMENTS[number]


class Entries:
    """An opened ZIP archive: what its entries hold, and where."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self.opened() as file:
            self.entries = {info.filename: info for info in file.infolist()}
        if not self.entries:
            raise ArchiveError("an empty archive")
        self.root = next(iter(self.entries)).split("/")[0]

    @contextmanager
    def opened(self) -> Generator[zipfile.ZipFile]:
        """The archive; whatever is wrong with it is an ArchiveError."""
        try:
            with zipfile.ZipFile(self.path) as file:
                yield file
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            NotImplementedError,
            EOFError,
            RuntimeError,
            OverflowError,
            UnicodeError,
            struct.error,
        ) as error:
            raise ArchiveError(f"the archive is broken: {error}") from None

    def has(self, name: str) -> bool:
        """True if there is an entry of a name, under the root folder of the archive."""
        return f"{self.root}/{name}" in self.entries

    def under(self, folder: str) -> list[str]:
        """The names of the entries in a folder, without that of the root."""
        start = f"{self.root}/"
        names = (name.removeprefix(start) for name in self.entries if name.startswith(start))
        return [name for name in names if name.startswith(folder)]

    def read(self, name: str, most: int) -> bytes:
        """The bytes of an entry."""
        info = self._info(name)
        if info.compress_type != zipfile.ZIP_STORED:
            most = min(most, _MOST_COMPRESSED)
        if info.file_size > most:
            raise ArchiveError(f"'{name}' has {info.file_size} bytes, at most {most} are read")
        with self.opened() as file, file.open(info) as entry:
            return entry.read(most + 1)[:most]

    def json(self, name: str) -> dict[str, Any]:
        """The object of an entry in JSON."""
        try:
            found: Any = json.loads(self.read(name, _MOST_JSON))
        except (ValueError, RecursionError) as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"'{name}' is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ArchiveError(f"'{name}' is no object")
        return cast("dict[str, Any]", found)

    def require_order(self) -> None:
        """Refuse numbers of the other byte order."""
        if self.has("byteorder") and self.read("byteorder", 16).strip() != b"little":
            raise ArchiveError("numbers whose first byte is the highest")

    def range(self, name: str) -> tuple[int, int]:
        """Where the bytes of an entry are."""
        info = self._info(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise ArchiveError(f"'{name}' is compressed")
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            header = file.read(_HEADER)
            end = file.seek(0, os.SEEK_END)
        lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = info.header_offset + _HEADER + lengths
        if start + info.file_size > end:
            raise ArchiveError(f"'{name}' lies beyond the end of the file")
        return start, info.file_size

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self.entries.get(f"{self.root}/{name}")
        if info is None:
            raise ArchiveError(f"no entry '{name}'")
        return info


@record
class Strided:
    """A tensor in a storage: element type, and place, sizes and strides in elements."""

    element: Attribute
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def constant(self, path: str, start: int, size: int, name: str) -> ConstantOp:
        """The constant for a storage of `size` bytes from `start` on; `name` is for messages."""
        dtype = numpy_dtype(self.element)
        count = math.prod(self.sizes)
        if count == 0:
            return ConstantOp.of(np.empty(self.sizes, dtype))
        lasts = ((n - 1) * stride for n, stride in zip(self.sizes, self.strides, strict=True))
        if (self.offset + sum(lasts) + 1) * dtype.itemsize > size:
            raise ArchiveError(f"'{name}' lies beyond the {size} bytes of its storage")
        if is_contiguous(self.sizes, self.strides):
            begin = start + self.offset * dtype.itemsize
            blob = Blob.map(path, begin, count * dtype.itemsize)
            return ConstantOp(BlobAttr(blob), tensor(self.element, self.sizes))
        if count * dtype.itemsize > max(size, _MOST_SPREAD):
            raise ArchiveError(f"'{name}' of {count} elements in {size} bytes")
        data = Blob.map(path, start, size - size % dtype.itemsize).array(
            dtype, [size // dtype.itemsize]
        )
        steps = [stride * dtype.itemsize for stride in self.strides]
        view = np.lib.stride_tricks.as_strided(data[self.offset :], self.sizes, steps)
        return ConstantOp.of(np.ascontiguousarray(view).reshape(self.sizes))


class Archive(Entries):
    """An opened archive of torch.export: its program, and where its weights are."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._require_kind()
        models = self.under("models/")
        if not models:
            raise ArchiveError("an archive without a program (models/), as of compiled code")
        if len(models) > 1:
            raise ArchiveError(f"{len(models)} programs, expected one")
        name = models[0].removeprefix("models/").removesuffix(".json")
        self.program = self.json(models[0])
        version: Any = self.program.get("schema_version") or {}
        major = version.get("major")
        if major != _MAJOR:
            raise ArchiveError(f"a program of schema version {major}, expected {_MAJOR}")
        self._payloads: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for folder in ("weights", "constants"):
            config = f"data/{folder}/{name}_{folder}_config.json"
            if self.has(config):
                for key, value in self.json(config)["config"].items():
                    self._payloads[key] = (f"data/{folder}", value)

    def _require_kind(self) -> None:
        if not self.has("archive_format"):
            kind = "not one of torch.export"
            if self.has("constants.pkl"):
                kind = "one of TorchScript"
            elif self.has("data.pkl"):
                kind = "pickled weights or modules"
            elif "serialized_exported_program.json" in self.entries:
                kind = "of an older version of torch.export"
            raise ArchiveError(
                f"the archive is {kind}; write one with "
                "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
            )
        self.require_order()

    # Weights

    @property
    def weight_names(self) -> set[str]:
        """The names of parameters and of the buffers that a state_dict has."""
        kept = (name for name, (folder, _) in self._payloads.items() if folder == "data/weights")
        return set(kept)

    def constant(self, name: str) -> ConstantOp:
        """The constant that a parameter, a buffer or a lifted tensor is."""
        if name not in self._payloads:
            raise ArchiveError(f"no tensor is named '{name}'")
        folder, payload = self._payloads[name]
        if payload.get("use_pickle"):
            raise ArchiveError(f"'{name}' is a pickled object, which is not read")
        meta = payload["tensor_meta"]
        sizes, strides = (tuple(map(_number, meta[key])) for key in ("sizes", "strides"))
        if meta["layout"] != 7 or len(sizes) != len(strides):
            raise ArchiveError(f"'{name}' is not strided")
        form = Strided(element(meta["dtype"]), _number(meta["storage_offset"]), sizes, strides)
        start, size = self.range(f"{folder}/{payload['path_name']}")
        return form.constant(self.path, start, size, name)


def _number(size: Mapping[str, Any]) -> int:
    value = size.get("as_int")
    if not isinstance(value, int) or value < 0:
        raise ArchiveError(f"a size {size}")
    return value
