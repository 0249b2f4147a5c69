"""
Reads checkpoints: an index of tensors by name, and files with their bytes, which are mapped.

A tensor may be stored in slices, each under an encoded key of its own. Only what is asked for is
read; its checksum is compared first.
"""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lowerdeck.dialects.blob import Blob
from lowerdeck.dialects.core.types import Tensor, numpy_dtype, tensor
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.saved_model_pb2 import (
    BundleEntryProto,
    BundleHeaderProto,
    TensorSliceProto,
)
from lowerdeck.frontends.tf1.table import TableError, is_table, masked_checksum, read_table
from lowerdeck.frontends.tf1.tensors import dtype_name, shape_dims

_VERSION = 1
"""The version of checkpoints that is known."""

_SHOWN = 5
"""Names that an error lists."""

_FRESH = "get a fresh copy of the checkpoint"


@record
class Slice:
    """Part of a tensor: of each dimension the first index, and how many."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(extents: Sequence[tuple[int, int | None]], dims: Sequence[int]) -> Slice:
        """ValueError unless the extents, of which None is all, are within the dimensions."""
        if len(extents) != len(dims):
            raise ValueError(f"a slice of {len(extents)} dimensions, expected {len(dims)}")
        sizes = [
            dim if size is None else size for (_, size), dim in zip(extents, dims, strict=True)
        ]
        for (start, _), size, dim in zip(extents, sizes, dims, strict=True):
            if not 0 <= start <= start + size <= dim:
                raise ValueError(f"a slice from {start} of {size} in a dimension of {dim}")
        return Slice(tuple(start for start, _ in extents), tuple(sizes))

    @staticmethod
    def parse(text: str, dims: Sequence[int]) -> Slice:
        """The slice that RestoreV2 asks for: `10 3 0,4:-`, after the tensor's own shape."""
        *shape, spec = text.split(" ")
        if shape != [str(dim) for dim in dims]:
            raise ValueError(f"the slice '{text}' is of another shape than {list(dims)}")
        return Slice.of([_extent(part) for part in spec.split(":")] if dims else [], dims)

    def within(self, outer: Slice) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where the common part lies in this slice, and where in the other; it may be empty."""
        here: list[slice] = []
        there: list[slice] = []
        for start, size, first, count in zip(
            self.starts, self.sizes, outer.starts, outer.sizes, strict=True
        ):
            low, high = max(start, first), min(start + size, first + count)
            high = max(low, high)
            here.append(slice(low - start, high - start))
            there.append(slice(low - first, high - first))
        return tuple(here), tuple(there)


def _extent(text: str) -> tuple[int, int | None]:
    if text == "-":
        return 0, None
    start, comma, size = text.partition(",")
    if not comma or not start.isdecimal() or not size.isdecimal():
        raise ValueError(f"'{text}' is not a part of a dimension")
    return int(start), int(size)


@record
class Stored:
    """A tensor of a checkpoint, or a slice of one."""

    type: Tensor
    dtype: str
    data: Blob


class Checkpoint:
    """
    The tensors of the checkpoint `prefix`: `prefix.index` and `prefix.data-00000-of-00001`, ...

    FrontendError if the index is not there, or is damaged.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.index = f"{prefix}.index"
        try:
            with open(self.index, "rb") as file:
                self._entries = read_table(file.read())
            self._header = BundleHeaderProto.FromString(self._entries.pop(b"", b""))
        except OSError as error:
            raise FrontendError.of_file(self.index, _unreadable(prefix, error)) from None
        except (TableError, DecodeError) as error:
            message = f"is not the index of a checkpoint, or is damaged: {error}; {_FRESH}"
            raise FrontendError.of_file(self.index, message) from None
        if self._header.num_shards < 1:
            raise FrontendError.of_file(self.index, f"names no file with tensors; {_FRESH}")
        if self._header.endianness != BundleHeaderProto.LITTLE:
            message = "was written on a big-endian machine; save it on a little-endian one"
            raise FrontendError.of_file(self.index, message)
        if self._header.version.min_consumer > _VERSION:
            message = f"asks for a reader of version {self._header.version.min_consumer}"
            raise FrontendError.of_file(
                self.index, f"{message}, expected {_VERSION}; save it with an older TensorFlow"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tensors that are not slices of others."""
        keys = (key for key in self._entries if not key.startswith(b"\0"))
        return tuple(key.decode("utf-8", "replace") for key in keys)

    def __contains__(self, name: str) -> bool:
        return name.encode() in self._entries

    def read(self, name: str, spec: str = "") -> Stored:
        """
        A tensor, or the slice of it that `spec` describes as RestoreV2 does.

        ValueError if it is not there, is damaged or has no numbers.
        """
        entry = self._entry(name.encode(), f"the tensor '{name}'")
        if entry is None:
            shown = ", ".join(f"'{other}'" for other in self.names[:_SHOWN])
            more = ", ..." if len(self.names) > _SHOWN else ""
            raise ValueError(f"{self.index} has no tensor '{name}', only {shown or 'none'}{more}")
        dtype, dims = _shape(entry)
        wanted = Slice.parse(spec, dims) if spec else Slice.of([(0, None)] * len(dims), dims)
        type_ = tensor(ELEMENTS[dtype], wanted.sizes)
        if entry.slices:
            return Stored(type_, dtype, self._joined(name, entry, wanted))
        whole = self._data(name, entry)
        if wanted.sizes == dims:
            return Stored(type_, dtype, whole)
        array = whole.array(_numpy(dtype), dims)
        part, _ = Slice.of([(0, None)] * len(dims), dims).within(wanted)
        return Stored(type_, dtype, Blob.of(array[part]))

    def _entry(self, key: bytes, what: str) -> BundleEntryProto | None:
        if (data := self._entries.get(key)) is None:
            return None
        try:
            return BundleEntryProto.FromString(data)
        except DecodeError:
            raise ValueError(f"{what} of {self.index} is damaged; {_FRESH}") from None

    def _joined(self, name: str, entry: BundleEntryProto, wanted: Slice) -> Blob:
        """A part of a tensor that is stored in slices; mapped if it is one of them."""
        dtype, dims = _shape(entry)
        found = 0
        pieces: list[tuple[tuple[slice, ...], NDArray[Any]]] = []
        for proto in entry.slices:
            part = Slice.of(_extents(proto), dims)
            here, there = part.within(wanted)
            count = math.prod(s.stop - s.start for s in here)
            if not count:
                continue
            what = f"a slice of '{name}'"
            stored = self._entry(_slice_key(name, proto), what)
            if stored is None or stored.dtype != entry.dtype or _shape(stored)[1] != part.sizes:
                raise ValueError(f"{self.index} lacks {what}; {_FRESH}")
            data = self._data(name, stored)
            if part == wanted:
                return data
            pieces.append((there, data.array(_numpy(dtype), part.sizes)[here]))
            found += count
        missing = f"{self.index} lacks a slice of '{name}'; {_FRESH}"
        # What is not in the files is not made room for.
        if found != math.prod(wanted.sizes):
            raise ValueError(missing)
        result, is_there = np.zeros(wanted.sizes, _numpy(dtype)), np.zeros(wanted.sizes, np.bool_)
        for there, piece in pieces:
            result[there], is_there[there] = piece, True
        if not is_there.all():
            raise ValueError(missing)
        return Blob.of(result)

    def _data(self, name: str, entry: BundleEntryProto) -> Blob:
        """The bytes of a tensor that is not stored in slices, mapped."""
        dtype, dims = _shape(entry)
        count = self._header.num_shards
        path = f"{self.prefix}.data-{entry.shard_id:05d}-of-{count:05d}"
        size = math.prod(dims) * _numpy(dtype).itemsize
        if entry.size != size:
            raise ValueError(
                f"{self.index} has {entry.size} bytes for '{name}', expected {size}; {_FRESH}"
            )
        try:
            data = Blob.map(path, entry.offset, entry.size)
        except OSError as error:
            raise ValueError(f"'{name}' is in {path}, which {_cannot(error)}") from None
        except ValueError as error:
            raise ValueError(f"'{name}' is cut off: {error}; {_FRESH}") from None
        if masked_checksum(data.data) != entry.crc32c:
            raise ValueError(f"'{name}' is damaged: its checksum in {path} differs; {_FRESH}")
        return data


def checkpoint_prefix(path: str) -> str:
    """The checkpoint that a user means by its prefix, or by one of its files."""
    stem, suffix = os.path.splitext(path)
    return stem if suffix in (".meta", ".index") or suffix.startswith(".data-") else path


def saved_prefix(graph: str) -> str:
    """The checkpoint of a SavedModel, of which `graph` is the file with the graph."""
    return os.path.join(os.path.dirname(graph), "variables", "variables")


def checkpoint_files(graph: str, weights: str | None) -> list[str]:
    """The files of the checkpoint that a graph may need: they all, if they are there."""
    is_beside = weights is None and not graph.endswith(".meta")
    prefix = saved_prefix(graph) if is_beside else checkpoint_prefix(weights or graph)
    found = sorted(glob.glob(f"{glob.escape(prefix)}.data-*-of-*"))
    return [path for path in (f"{prefix}.index", *found) if os.path.isfile(path)]


def _unreadable(prefix: str, error: OSError) -> str:
    if os.path.isfile(prefix) and is_table(prefix):
        return (
            "is missing: the checkpoint has the form of before TensorFlow 0.12; load it with "
            "tf.train.Saver, and save it again"
        )
    return f"{_cannot(error)}; the variables are to be in {prefix}.index and {prefix}.data-*"


def _cannot(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"


def _shape(entry: BundleEntryProto) -> tuple[str, tuple[int, ...]]:
    """The element type and dimensions; ValueError if they are not those of numbers."""
    dtype = dtype_name(entry.dtype).removesuffix("_ref")
    dims = shape_dims(entry.shape)
    if dims is None or -1 in dims:
        raise ValueError(f"the shape {dims} is not one of a tensor")
    if dtype not in ELEMENTS or dtype == "string":
        raise ValueError(f"its elements are of type {dtype}, expected numbers")
    return dtype, tuple(dims)


def _numpy(dtype: str) -> np.dtype[Any]:
    return numpy_dtype(ELEMENTS[dtype])


def _extents(proto: TensorSliceProto) -> list[tuple[int, int | None]]:
    return [
        (extent.start, extent.length if extent.HasField("length") else None)
        for extent in proto.extent
    ]


# The keys of slices: numbers and strings in a code that sorts as they do.


def _slice_key(name: str, slice_: TensorSliceProto) -> bytes:
    text = name.encode().replace(b"\0", b"\0\xff")
    numbers = [n for start, size in _extents(slice_) for n in (start, -1 if size is None else size)]
    return b"".join(
        [_unsigned(0), text, b"\0\1", _unsigned(len(slice_.extent)), *map(_signed, numbers)]
    )


def _unsigned(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _signed(value: int) -> bytes:
    """As many leading ones, or zeros of a negative number, as there are bytes; then the number."""
    size = 1
    while not -(1 << 7 * size - 1) <= value < 1 << 7 * size - 1:
        size += 1
    if size > 8:
        raise ValueError(f"{value} is not a size of a slice")
    header = 0xFF << 8 - size & 0xFF
    first, *rest = value.to_bytes(size, "big", signed=True)
    return bytes([first ^ header, *rest])
