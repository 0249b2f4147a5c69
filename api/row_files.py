"""Files of rows for `lowerdeck.batching`: arrays, tables, and samples in tar files and folders."""

from __future__ import annotations

import importlib
import io
import math
import os
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import IO, Any, TypeAlias

import numpy as np

from lowerdeck.calibration import ARRAYS, TABLES, Array, by_name, division, load_file
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.frontends.numpy_files import read_numpy
from lowerdeck.metadata import TensorInfo

__all__ = ["SUFFIXES", "BatchError", "Loaded", "files_in", "heads_of", "load"]

_ARROW = (".arrow", ".feather")
_TAR = ".tar"
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp")
_CANDIDATES = 100
"""Rows of a table that are tried until one can be read, which says how rows are."""
SUFFIXES = (*ARRAYS, *TABLES, _TAR)

Inputs: TypeAlias = "tuple[TensorInfo, ...]"
Parts: TypeAlias = "Mapping[str, Callable[[], bytes]]"
"""Of a sample what it has, by the ends of the names of files."""


class BatchError(LowerdeckError, ValueError):
    """Files that do not fit a model, or too many rows that fail."""


@dataclass(frozen=True)
class Loaded:
    """Rows of a file."""

    arrays: Mapping[str, Array]
    """By input, rows side by side."""
    first: int = 0
    """The number of the first row that they have."""
    keys: Sequence[str] | None = None
    """What rows are called, from the first one on; None where that is their number."""
    problems: Mapping[int, str] = field(default_factory=dict[int, str])
    """By number, why a row cannot be read."""


def files_in(inputs: str) -> list[str]:
    """The files of rows at a path; a folder of images is one. BatchError if there is none."""
    if not os.path.isdir(inputs):
        return [inputs]
    names = sorted(os.listdir(inputs))
    files = [os.path.join(inputs, name) for name in names if name.endswith(SUFFIXES)]
    if _image_names(inputs):
        files.append(inputs)
    if not files:
        listed = ", ".join((*SUFFIXES, *_IMAGES))
        raise BatchError(f"{inputs}: holds no file of {listed}")
    return files


def heads_of(path: str, inputs: Sequence[TensorInfo]) -> Mapping[str, Array]:
    """
    Arrays of the shapes and types that a file has, by input, without their elements; of samples,
    those of the first one that can be read. BatchError or CalibrationError if there is none.
    """
    if _has_samples(path):
        samples = _samples(path, os.stat(path).st_mtime_ns)
        keys, problem = [*samples], "holds no samples"
        for key in keys:
            try:
                arrays = _sample(samples[key], inputs)
            except BatchError as error:
                problem = f"none of its {len(keys)} samples can be read: {key}: {error}"
                continue
            return {n: np.broadcast_to(a, (len(keys), *a.shape)) for n, a in arrays.items()}
        raise BatchError(f"{path}: {problem}")
    if path.endswith(TABLES):
        return by_name(path, _table_head(path, inputs), inputs)
    stored = _stored(path, os.stat(path).st_mtime_ns)
    return by_name(path, _given({name: one.zeros() for name, one in stored.items()}), inputs)


def load(
    path: str, inputs: Sequence[TensorInfo], start: int, stop: int, rows: int | None = None
) -> Loaded:
    """
    The rows of a file from `start` to `stop`. `rows` is how many entries of the first dimension a
    row has, where the model does not say so (see `lowerdeck.calibration.division`). BatchError or
    CalibrationError if they cannot be read.
    """
    version = os.stat(path).st_mtime_ns
    if path.endswith(TABLES):
        return _table_rows(path, inputs, start, stop)
    if not _has_samples(path):
        return Loaded(_array_rows(path, version, tuple(inputs), range(start, stop), rows), start)
    samples = _samples(path, version)
    keys = [*samples][start:stop]
    read: list[Mapping[str, Array] | None] = []
    problems: dict[int, str] = {}
    for number, key in enumerate(keys, start):
        try:
            read.append(_sample(samples[key], inputs))
        except BatchError as error:
            read.append(None)
            problems[number] = str(error)
    return Loaded(_together(read, start, problems), start, keys, problems)


def _together(
    rows: Sequence[Mapping[str, Array] | None], start: int, problems: dict[int, str]
) -> dict[str, Array]:
    """The arrays of rows side by side; those that are not as most of them are become problems."""
    kinds = Counter(_kind(row) for row in rows if row is not None)
    if not kinds:
        return {}
    (common, _), *_ = kinds.most_common(1)
    arrays = {name: np.zeros((len(rows), *shape), dtype) for name, dtype, shape in common}
    for place, row in enumerate(rows):
        if row is None:
            continue
        if row.keys() != arrays.keys():
            problems.setdefault(start + place, f"has {sorted(row)}, others have {sorted(arrays)}")
            continue
        for name, array in row.items():
            like = arrays[name][place]
            if array.shape == like.shape and np.can_cast(array.dtype, like.dtype, "safe"):
                arrays[name][place] = array
            else:
                text = f"'{name}' is {_shown(array)}, expected {_shown(like)}, as others have it"
                problems.setdefault(start + place, text)
    return arrays


def _kind(row: Mapping[str, Array]) -> tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]:
    return tuple((name, array.dtype, array.shape) for name, array in sorted(row.items()))


def _shown(array: Array) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


# Arrays

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What numpy and zipfile raise for files that are damaged, or of kinds that they do not know."""


@dataclass(frozen=True)
class _Stored:
    """An array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int | None
    """Where its elements lie as in memory; None if they do not."""

    def zeros(self) -> Array:
        """One of its type and shape, which takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def read(self, path: str, start: int, stop: int) -> Array:
        """So many entries of the first dimension."""
        count = (stop - start) * math.prod(self.shape[1:])
        first = start * math.prod(self.shape[1:]) * self.dtype.itemsize
        with open(path, "rb") as file:
            file.seek((self.offset or 0) + first)
            found = np.fromfile(file, self.dtype, count)
        if found.size != count:
            raise BatchError(f"{path}: cannot be read: it ends before its last row")
        return found.reshape(stop - start, *self.shape[1:])


@lru_cache(maxsize=1)
def _stored(path: str, version: int) -> Mapping[str, _Stored]:
    """What a file has, by name; that of the only array of an .npy file is empty."""
    del version  # of the file, which is read again when it has changed
    found: dict[str, _Stored] = {}
    try:
        with open(path, "rb") as file:
            if file.read(4) not in _ZIP:
                file.seek(0)
                return {"": _described(file, os.stat(path).st_size, 0)}
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    name, suffix = os.path.splitext(info.filename)
                    if suffix == ".npy":
                        with archive.open(info) as member:
                            begin = _begin(file, info)
                            found[name] = _described(member, info.file_size, begin)
    except _UNREADABLE as error:
        raise BatchError(f"{path}: cannot be read: {error}") from None
    return found


def _begin(file: IO[bytes], info: zipfile.ZipInfo) -> int | None:
    """Where the bytes of a member are; None if they are compressed (APPNOTE.TXT, 4.3.7)."""
    if info.compress_type != zipfile.ZIP_STORED:
        return None
    file.seek(info.header_offset + 26)
    name, extra = struct.unpack("<HH", file.read(4))
    return info.header_offset + 30 + name + extra


def _described(file: IO[bytes], size: int, begin: int | None) -> _Stored:
    """The array of an .npy file of `size` bytes, which are in another one from `begin` on."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if file.tell() + math.prod(shape) * dtype.itemsize > size:
        raise ValueError("it ends before its last element")
    is_plain = begin is not None and not is_fortran and len(shape) > 0
    return _Stored(dtype, shape, (begin or 0) + file.tell() if is_plain else None)


def _given(arrays: Mapping[str, Array]) -> Any:
    """What `by_name` takes: arrays by name, or one alone."""
    return arrays.get("", arrays)


def _array_rows(
    path: str, version: int, inputs: Inputs, numbers: range, rows: int | None
) -> Mapping[str, Array]:
    """
    Rows of an .npz or .npy file, by input: only they are read, where the file has them as memory
    has.
    """
    stored = _stored(path, version)
    is_there = all(one.offset is not None for one in stored.values())
    if is_there:
        heads = by_name(path, _given({name: one.zeros() for name, one in stored.items()}), inputs)
        if numbers.start == 0 and "" not in stored:
            _check_sums(path)
    else:
        heads = _whole(path, version, inputs)
    infos = {info.name: info for info in inputs}
    found: dict[str, Array] = {}
    for name, array in heads.items():
        count, size = division(array.shape, infos[name], rows)
        step = 1 if size is None else size
        start, stop = numbers.start * step, min(numbers.stop, count) * step
        if size == 0:  # all of it is the only row
            start, stop = 0, len(array) if array.ndim else 0
        if is_there:
            found[name] = (stored.get(name) or stored[""]).read(path, start, stop)
        else:
            found[name] = array[start:stop] if array.ndim else array
    return found


def _check_sums(path: str) -> None:
    """BatchError if an .npz file is damaged: who reads parts of it does not see that."""
    try:
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:
                raise BatchError(f"{path}: cannot be read: '{damaged}' is damaged")
    except BatchError:
        raise
    except _UNREADABLE as error:
        raise BatchError(f"{path}: cannot be read: {error}") from None


@lru_cache(maxsize=1)
def _whole(path: str, version: int, inputs: Inputs) -> Mapping[str, Array]:
    """The arrays of a file by input; tasks of one file come one after the other."""
    del version
    return by_name(path, load_file(path), inputs)


# Tables


def _table_head(path: str, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    """Arrays as the columns that are inputs give them, without elements, by the first whole row."""
    table, count = _table(path, inputs, 0, _CANDIDATES)
    problem = ""
    for part in [table.slice(k, 1) for k in range(len(table))] or [table]:
        try:
            arrays = _columns(part, inputs)
        except BatchError as error:
            problem = problem or str(error)
            continue
        heads = {name: np.zeros((1, *a.shape[1:]), a.dtype) for name, a in arrays.items()}
        return {n: np.broadcast_to(a[0], (count, *a.shape[1:])) for n, a in heads.items()}
    raise BatchError(f"{path}: none of its first {len(table)} rows can be read: {problem}")


def _table_rows(path: str, inputs: Sequence[TensorInfo], start: int, stop: int) -> Loaded:
    """Rows of a table; those with missing values, or lists of other lengths, have problems."""
    table, _ = _table(path, inputs, start, stop)
    with suppress(BatchError):  # which of the rows it is, is found below
        return Loaded(by_name(path, _columns(table, inputs), inputs), start)
    read: list[Mapping[str, Array] | None] = []
    problems: dict[int, str] = {}
    for k in range(len(table)):
        try:
            arrays = by_name(path, _columns(table.slice(k, 1), inputs), inputs)
            read.append({name: np.asarray(array[0]) for name, array in arrays.items()})
        except BatchError as error:
            read.append(None)
            problems[start + k] = str(error)
    return Loaded(_together(read, start, problems), start, None, problems)


def _table(path: str, inputs: Sequence[TensorInfo], start: int, stop: int) -> tuple[Any, int]:
    """Rows of the columns that are inputs, and how many rows there are."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise BatchError(f"{path}: needs pyarrow: pip install pyarrow") from None
    version = os.stat(path).st_mtime_ns
    names = frozenset(info.name for info in inputs)
    try:
        if path.endswith(_ARROW):
            table = _arrow_table(path, version, names)
            return table.slice(start, stop - start), len(table)
        metadata = parquet.read_metadata(path)
        sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        firsts = [*accumulate(sizes, initial=0)]
        needed = [k for k in range(len(sizes)) if firsts[k] < stop and start < firsts[k + 1]]
        if not needed:
            table = parquet.read_schema(path).empty_table()
            return table.select([n for n in table.column_names if n in names]), firsts[-1]
        table = arrow.concat_tables([_row_group(path, version, names, k) for k in needed])
        return table.slice(start - firsts[needed[0]], stop - start), firsts[-1]
    except (OSError, ValueError, NotImplementedError) as error:
        # pyarrow's errors are of these classes; the last one is for what it cannot decode.
        raise BatchError(f"{path}: cannot be read: {error}") from None


@lru_cache(maxsize=1)
def _arrow_table(path: str, version: int, names: frozenset[str]) -> Any:
    """The columns of a file, where they lie in it unless they are compressed."""
    del version
    arrow: Any = importlib.import_module("pyarrow")
    with arrow.memory_map(path) as file:
        table = arrow.ipc.open_file(file).read_all()
    return table.select([name for name in table.column_names if name in names])


@lru_cache(maxsize=1)
def _row_group(path: str, version: int, names: frozenset[str], number: int) -> Any:
    """The columns of a part of a .parquet file."""
    del version
    parquet: Any = importlib.import_module("pyarrow.parquet")
    with parquet.ParquetFile(path) as file:
        own = [name for name in file.schema_arrow.names if name in names]
        return file.read_row_group(number, columns=own)


def _columns(table: Any, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    """The columns as arrays; lists of numbers become the dimensions of a row."""
    infos = {info.name: info for info in inputs}
    return {name: _column(table.column(name), infos[name]) for name in table.column_names}


def _column(column: Any, info: TensorInfo) -> Array:
    """A column as an array of rows; BatchError for missing values and lists of several lengths."""
    compute: Any = importlib.import_module("pyarrow.compute")
    values, shape = column.combine_chunks(), [len(column)]
    while not values.null_count and hasattr(values.type, "value_type"):
        lengths = compute.unique(compute.list_value_length(values)).to_pylist()
        if len(lengths) > 1:
            listed = ", ".join(map(str, sorted(lengths)))
            raise BatchError(f"column '{info.name}' has lists of the lengths {listed}")
        shape += lengths
        values = values.flatten()
    if values.null_count:
        raise BatchError(f"column '{info.name}' has missing values")
    array = np.asarray(values.to_numpy(zero_copy_only=False))
    sizes = [size for size in info.shape[1:] if isinstance(size, int)]
    if len(sizes) == info.rank - 1 and math.prod(shape[1:]) == math.prod(sizes):
        return array.reshape(shape[0], *sizes)
    return array.reshape(shape)


# Samples


def _has_samples(path: str) -> bool:
    return path.endswith(_TAR) or os.path.isdir(path)


def _image_names(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.lower().endswith(_IMAGES))


@lru_cache(maxsize=1)
def _samples(path: str, version: int) -> Mapping[str, Parts]:
    """
    The samples of a file by their keys: the images of a folder by name, or, as WebDataset has them,
    the members of a tar file by what is before the first dot of their names.
    """
    del version
    if os.path.isdir(path):
        return {
            name: {os.path.splitext(name)[1][1:].lower(): _reader(os.path.join(path, name))}
            for name in _image_names(path)
        }
    found: dict[str, dict[str, Callable[[], bytes]]] = {}
    try:
        for key, end, read in _members(path):
            found.setdefault(key, {})[end] = read
    except (OSError, tarfile.TarError, EOFError, zlib.error) as error:
        raise BatchError(f"{path}: cannot be read: {error}") from None
    return found


def _reader(path: str, start: int = 0, size: int = -1) -> Callable[[], bytes]:
    def read() -> bytes:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(size)

    return read


def _members(path: str) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Of each member of a tar file key, end of the name, and what reads it."""
    with tarfile.open(path, "r:") as archive:  # not compressed: members are read by their places
        for member in archive:
            folder, name = os.path.split(member.name)
            stem, dot, end = name.partition(".")
            if member.isfile() and dot and stem:
                read = _reader(path, member.offset_data, member.size)
                yield os.path.join(folder, stem), end.lower(), read


def _sample(parts: Parts, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    """The arrays of a sample by input; BatchError says which input it has none for, or why."""
    needed = [info for info in inputs if info.default is None]
    found: dict[str, Array] = {}
    for info in inputs:
        own = [end for end in parts if end.rpartition(".")[0] == info.name.lower()]
        if not own and len(needed) == 1 and info in needed:
            own = [end for end in parts if f".{end}" in (".npy", *_IMAGES)]
        if len(own) > 1:
            raise BatchError(f"input '{info.name}' could be any of {sorted(own)}")
        if own:
            found[info.name] = _decoded(own[0], parts[own[0]](), info)
        elif info in needed:
            raise BatchError(f"has nothing for input '{info.name}', but {sorted(parts)}")
    return found


def _decoded(end: str, data: bytes, info: TensorInfo) -> Array:
    """An array from an .npy file or an image; BatchError if it is damaged."""
    suffix = f".{end.rpartition('.')[2]}"
    if suffix == ".npy":
        try:
            array = read_numpy(io.BytesIO(data))
        except (OSError, ValueError) as error:
            raise BatchError(f"'{end}' cannot be read: {error}") from None
        if isinstance(array, dict):
            raise BatchError(f"'{end}' cannot be read: it holds several arrays")
        return array
    if suffix not in _IMAGES:
        raise BatchError(f"'{end}' is neither .npy nor an image ({', '.join(_IMAGES)})")
    try:
        pillow: Any = importlib.import_module("PIL.Image")
    except ImportError:
        raise BatchError("images need Pillow: pip install pillow") from None
    try:
        with pillow.open(io.BytesIO(data)) as image:
            return _as_input(image, info)
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise BatchError(f"'{end}' is no image that can be read: {error}") from None


def _as_input(image: Any, info: TensorInfo) -> Array:
    """Bytes of an image as [channels, rows, columns] or with channels last, as the input has it."""
    counts = (1, 3)
    sizes = info.shape
    if info.rank > 3 or (info.rank == 3 and not {sizes[0], sizes[-1]} & {*counts}):
        sizes = sizes[1:]  # the first dimension goes over rows
    if len(sizes) != 3:
        return np.asarray(image.convert("L"))
    is_first = sizes[0] in counts
    channels = sizes[0] if is_first else sizes[-1]
    pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return pixels.transpose(2, 0, 1) if is_first else pixels
