"""
The archive that torch.export writes: a program in JSON, and weights that are mapped where they lie.

Nothing in it is executed: pickled objects are refused.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_of, numpy_dtype, tensor

_MAJOR = 8
"""The version of the schema of programs."""

_MOST_JSON = 1 << 28
"""Bytes of a program."""

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


class ArchiveError(ValueError):
    """An archive that is broken, or of another kind."""


def element(number: object) -> Attribute:
    """The element type with a number in the file."""
    if not isinstance(number, int) or number not in _ELEMENTS:
        raise ArchiveError(f"tensors of type number {number}")
    return _ELEMENTS[number]


class Archive:
    """An opened archive: its program, and where its weights are."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as file:
                self._open(file)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
            raise ArchiveError(f"the archive is broken: {error}") from None

    def _open(self, file: zipfile.ZipFile) -> None:
        self._entries = {info.filename: info for info in file.infolist()}
        if not self._entries:
            raise ArchiveError("an empty archive")
        self.root = next(iter(self._entries)).split("/")[0]
        self._require_kind(file)
        prefix = f"{self.root}/models/"
        models = [name for name in self._entries if name.startswith(prefix)]
        if not models:
            raise ArchiveError("an archive without a program (models/), as of compiled code")
        if len(models) > 1:
            raise ArchiveError(f"{len(models)} programs, expected one")
        name = models[0].removeprefix(prefix).removesuffix(".json")
        self.program = self._json(file, models[0])
        version: Any = self.program.get("schema_version") or {}
        major = version.get("major")
        if major != _MAJOR:
            raise ArchiveError(f"a program of schema version {major}, expected {_MAJOR}")
        self._payloads: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for folder in ("weights", "constants"):
            config = f"{self.root}/data/{folder}/{name}_{folder}_config.json"
            if config in self._entries:
                for key, value in self._json(file, config)["config"].items():
                    self._payloads[key] = (f"{self.root}/data/{folder}", value)

    def _require_kind(self, file: zipfile.ZipFile) -> None:
        if f"{self.root}/archive_format" not in self._entries:
            kind = "not one of torch.export"
            if f"{self.root}/constants.pkl" in self._entries:
                kind = "one of TorchScript"
            elif f"{self.root}/data.pkl" in self._entries:
                kind = "pickled weights or modules"
            elif "serialized_exported_program.json" in self._entries:
                kind = "of an older version of torch.export"
            raise ArchiveError(
                f"the archive is {kind}; write one with "
                "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
            )
        order = f"{self.root}/byteorder"
        if order in self._entries and self._read(file, order, 16).strip() != b"little":
            raise ArchiveError("numbers whose first byte is the highest")

    def _read(self, file: zipfile.ZipFile, name: str, most: int) -> bytes:
        info = self._entries[name]
        if info.file_size > most or info.compress_type != zipfile.ZIP_STORED:
            raise ArchiveError(f"'{name}' has {info.file_size} bytes or is compressed")
        return file.read(info)

    def _json(self, file: zipfile.ZipFile, name: str) -> dict[str, Any]:
        try:
            found: Any = json.loads(self._read(file, name, _MOST_JSON))
        except (ValueError, RecursionError) as error:
            raise ArchiveError(f"'{name}' is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ArchiveError(f"'{name}' is no object")
        return cast("dict[str, Any]", found)

    # Weights

    def constant(self, name: str) -> ConstantOp:
        """The constant that a parameter, a buffer or a lifted tensor is."""
        if name not in self._payloads:
            raise ArchiveError(f"no tensor is named '{name}'")
        folder, payload = self._payloads[name]
        if payload.get("use_pickle"):
            raise ArchiveError(f"'{name}' is a pickled object, which is not read")
        meta = payload["tensor_meta"]
        sizes, strides = ([_number(size) for size in meta[key]] for key in ("sizes", "strides"))
        offset = _number(meta["storage_offset"])
        kind = element(meta["dtype"])
        if meta["layout"] != 7 or len(sizes) != len(strides):
            raise ArchiveError(f"'{name}' is not strided")
        dtype = numpy_dtype(kind)
        start, size = self._range(f"{folder}/{payload['path_name']}")
        count = math.prod(sizes)
        last = offset + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
        if count == 0:
            return ConstantOp.of(np.empty(sizes, dtype))
        if (last + 1) * dtype.itemsize > size:
            raise ArchiveError(f"'{name}' lies beyond the {size} bytes of its storage")
        if is_contiguous(sizes, strides):
            begin = start + offset * dtype.itemsize
            blob = Blob.map(self.path, begin, count * dtype.itemsize)
            return ConstantOp(BlobAttr(blob), tensor(kind, sizes))
        if count > 1 << 28:
            raise ArchiveError(f"'{name}' of {count} elements that do not lie in order")
        return ConstantOp.of(self._strided(start, size, dtype, offset, sizes, strides))

    def _strided(
        self,
        start: int,
        size: int,
        dtype: np.dtype[Any],
        offset: int,
        sizes: list[int],
        strides: list[int],
    ) -> NDArray[Any]:
        data = Blob.map(self.path, start, size).array(dtype, [size // dtype.itemsize])
        steps = [stride * dtype.itemsize for stride in strides]
        view = np.lib.stride_tricks.as_strided(data[offset:], sizes, steps)
        return np.ascontiguousarray(view).reshape(sizes)

    def _range(self, name: str) -> tuple[int, int]:
        """Where the bytes of an entry are."""
        info = self._entries.get(name)
        if info is None:
            raise ArchiveError(f"no entry '{name}'")
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


def is_contiguous(sizes: list[int], strides: list[int]) -> bool:
    """True if elements lie in memory in the order of their indices."""
    expected = 1
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _number(size: Mapping[str, Any]) -> int:
    value = size.get("as_int")
    if not isinstance(value, int) or value < 0:
        raise ArchiveError(f"a size {size}")
    return value
