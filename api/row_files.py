"""Files of rows for `lowerdeck.batching`: arrays, tables, and samples in tar files and folders."""

from __future__ import annotations

import importlib
import io
import math
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, TypeAlias

import numpy as np

from lowerdeck.calibration import Array, by_name, load_file
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.metadata import TensorInfo

__all__ = ["SUFFIXES", "BatchError", "Loaded", "files_in", "heads_of", "load"]

_ARRAYS = (".npz", ".npy")
_ARROW = (".arrow", ".feather")
_TABLES = (".parquet", *_ARROW)
_TAR = ".tar"
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp")
SUFFIXES = (*_ARRAYS, *_TABLES, _TAR)

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
    if path.endswith(_TABLES):
        return by_name(path, _table(path, inputs), inputs)
    try:
        if not zipfile.is_zipfile(path):
            return by_name(path, np.load(path, mmap_mode="r"), inputs)
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            heads: dict[str, Array] = {}
            for name in names:
                with archive.open(name) as file:
                    heads[name.removesuffix(".npy")] = _head(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BatchError(f"{path}: cannot be read: {error}") from None
    return by_name(path, heads, inputs)


def _head(file: IO[bytes]) -> Array:
    """An array as an .npy file describes it, of zeros that take no memory."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return np.broadcast_to(np.zeros((), dtype), shape)


def load(path: str, inputs: Sequence[TensorInfo], start: int, stop: int) -> Loaded:
    """The rows of a file from `start` to `stop`, and perhaps others."""
    version = os.stat(path).st_mtime_ns
    if not _has_samples(path):
        return Loaded(_whole(path, version, tuple(inputs)))
    samples = _samples(path, version)
    keys = [*samples][start:stop]
    rows: list[Mapping[str, Array] | None] = []
    problems: dict[int, str] = {}
    for number, key in enumerate(keys, start):
        try:
            rows.append(_sample(samples[key], inputs))
        except BatchError as error:
            rows.append(None)
            problems[number] = str(error)
    return Loaded(_together(rows, start, problems), start, keys, problems)


def _together(
    rows: list[Mapping[str, Array] | None], start: int, problems: dict[int, str]
) -> dict[str, Array]:
    """The arrays of samples side by side; those of another shape than the first are problems."""
    read = [row for row in rows if row is not None]
    if not read:
        return {}
    arrays = {name: np.zeros((len(rows), *a.shape), a.dtype) for name, a in read[0].items()}
    for place, row in enumerate(rows):
        for name, array in (row or {}).items():
            like = arrays[name][place]
            if array.shape == like.shape and np.can_cast(array.dtype, like.dtype, "safe"):
                arrays[name][place] = array
            else:
                text = f"'{name}' is {_shown(array)}, expected {_shown(like)}, as others have it"
                problems.setdefault(start + place, text)
    return arrays


def _shown(array: Array) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


@lru_cache(maxsize=1)
def _whole(path: str, version: int, inputs: Inputs) -> Mapping[str, Array]:
    """The arrays of a file by input; tasks of one file come one after the other."""
    del version  # of the file, which is read again when it has changed
    read = _table(path, inputs) if path.endswith(_TABLES) else load_file(path)
    return by_name(path, read, inputs)


# Tables


def _table(path: str, inputs: Sequence[TensorInfo]) -> dict[str, Array]:
    """The columns that are inputs; lists of numbers become the dimensions of a row."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise BatchError(f"{path}: needs pyarrow: pip install pyarrow") from None
    infos = {info.name: info for info in inputs}
    try:
        if path.endswith(_ARROW):
            with arrow.memory_map(path) as file:
                table = arrow.ipc.open_file(file).read_all()
            table = table.select([name for name in table.column_names if name in infos])
        else:
            names = [name for name in parquet.read_schema(path).names if name in infos]
            table = parquet.read_table(path, columns=names)
    except (OSError, ValueError) as error:
        raise BatchError(f"{path}: cannot be read: {error}") from None
    return {name: _column(path, table.column(name), infos[name]) for name in table.column_names}


def _column(path: str, column: Any, info: TensorInfo) -> Array:
    """A column as an array of rows; BatchError for missing values and lists of several lengths."""
    compute: Any = importlib.import_module("pyarrow.compute")
    values, shape = column.combine_chunks(), [len(column)]
    while not values.null_count and hasattr(values.type, "value_type"):
        lengths = compute.unique(compute.list_value_length(values)).to_pylist()
        if len(lengths) > 1:
            listed = ", ".join(map(str, sorted(lengths)))
            raise BatchError(f"{path}: column '{info.name}' has lists of the lengths {listed}")
        shape += lengths
        values = values.flatten()
    if values.null_count:
        raise BatchError(f"{path}: column '{info.name}' has missing values")
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
            return np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise BatchError(f"'{end}' cannot be read: {error}") from None
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
