"""
The two kinds of files: what they say of the model, and where the variables of its layers are.

Nothing in them is run: a configuration is JSON, and variables are arrays.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError

_LARGEST = 1 << 30
"""Bytes of a configuration."""

_BROKEN = (
    OSError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    EOFError,
    OverflowError,
    zlib.error,
    zipfile.BadZipFile,
)
"""What readers raise for files that are damaged."""

_RATIO = 2000
"""How many bytes of an array a byte of the file may stand for."""

Array = NDArray[Any]


@record
class Stored:
    """A model file."""

    path: str
    config: Mapping[str, Any]
    """The configuration of the model: `class_name` and `config`."""
    version: int
    """The major version of Keras that wrote it."""
    minor: int
    is_old: bool
    """True if it is from before Keras 2.3."""
    groups: Mapping[str, Sequence[Array]]
    """
    The variables: of each folder `.../vars` in a `.keras` file, or of each layer of an `.h5` file.
    """
    names: Mapping[str, Sequence[str]] | None
    """The names of the variables of each layer of an `.h5` file; None for a `.keras` file."""


def open_model(path: str) -> Stored:
    """The contents of a file; FrontendError if it is no model."""
    h5py = _h5py(path)
    try:
        if zipfile.is_zipfile(path):
            return _zipped(path, h5py)
        with open(path, "rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _require_heaps_that_end(data)
            _require_texts_of_the_file(data)
        with h5py.File(path, "r") as file:
            return _plain(path, file, h5py)
    except _BROKEN as error:
        message = f"is not a valid model of Keras, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None


def _h5py(path: str) -> Any:
    try:
        return import_module("h5py")
    except ImportError:
        raise FrontendError.of_file(
            path,
            "models of Keras hold their weights in the HDF5 format, which needs the package h5py; "
            "install lowerdeck[hdf5]",
        ) from None


def _zipped(path: str, h5py: Any) -> Stored:
    with zipfile.ZipFile(path) as archive:
        for name in ("config.json", "model.weights.h5"):
            if name not in archive.namelist():
                raise FrontendError.of_file(path, f"has no '{name}', expected a model of Keras 3")
            if archive.getinfo(name).file_size > _LARGEST and name == "config.json":
                raise ValueError(f"a '{name}' of {archive.getinfo(name).file_size} bytes")
            # Room is made for what an entry claims before it is read.
            if archive.getinfo(name).compress_size > os.path.getsize(path):
                raise ValueError(f"a '{name}' that is longer than the file")
        config = json.loads(archive.read("config.json"))
        version = "3"
        if "metadata.json" in archive.namelist():
            metadata = json.loads(archive.read("metadata.json"))
            version = str(metadata.get("keras_version", "3"))
        data = archive.read("model.weights.h5")
        _require_heaps_that_end(data)
        with h5py.File(io.BytesIO(data), "r") as file:
            groups = dict(_folders(h5py, file, ""))
    return Stored(path, _model(path, config), *_numbers(version), False, groups, None)


_HEAP, _HEAP_START = b"GCOL\x01\0\0\0", 16
_OBJECT = struct.Struct("<H6xQ")
"""Its index and the bytes of its content, which begins behind them."""


def _require_heaps_that_end(data: bytes | mmap.mmap) -> None:
    """
    Refuse heaps of texts that go on behind the file, for which HDF5 makes room, or in which the
    space that is free has no bytes, or a text more of them than 64 bits count: it reads those for
    ever (HDF5 File Format Specification, III.E, "Disk Format: Level 1E - Global Heap").
    """
    heap = data.find(_HEAP)
    while heap >= 0:
        place = heap + _HEAP_START
        end = heap + int.from_bytes(data[heap + 8 : place], "little")
        if end > len(data):
            raise ValueError(f"a heap of {end - heap} bytes at byte {heap}")
        while place + _OBJECT.size <= end:
            index, size = _OBJECT.unpack_from(data, place)
            if not index and not size:
                raise ValueError(f"a heap without an end at byte {heap}")
            place += size if not index else _OBJECT.size + -(-size // 8) * 8
            if place > end:
                raise ValueError(f"{size} bytes in the heap at byte {heap}, which has fewer")
        heap = data.find(_HEAP, heap + 1)


_TEXTS = ("model_config", "keras_version", "layer_names", "weight_names")
_MESSAGE = struct.Struct("<BxHHH")
"""The version of an attribute, and the bytes of its name, type and shape."""
_REFERENCE = struct.Struct("<I12x")
"""How long a text is, before its place in a heap."""


def _require_texts_of_the_file(data: bytes | mmap.mmap) -> None:
    """
    Refuse texts of attributes that are longer than the file: HDF5 makes room for them before it
    looks for them (HDF5 File Format Specification, IV.A.2.m, "The Attribute Message").
    """
    for name in _TEXTS:
        word = name.encode() + b"\0"
        place = data.find(word)
        while place >= 0:
            for version, head, align in ((1, 8, 8), (3, 9, 1)):
                if place < head:
                    continue
                found, *sizes = _MESSAGE.unpack_from(data, place - head)
                if found != version or sizes[0] != len(word):
                    continue
                _, kind, shape, texts = accumulate(
                    [-(-size // align) * align for size in sizes], initial=place
                )
                is_variable = any(byte % 16 == 9 for byte in data[kind : kind + 1])
                if is_variable and _longest(data[shape:texts], data, texts) > len(data):
                    raise ValueError(f"an attribute '{name}' that is longer than the file")
            place = data.find(word, place + 1)


def _longest(shape: bytes, data: bytes | mmap.mmap, place: int) -> int:
    """The most elements that a text of an attribute has; its shape is in version 1 or 2."""
    if len(shape) < 4:
        return 0
    start = 8 if shape[0] == 1 else 4
    dims = struct.unpack_from(f"<{shape[1]}Q", shape.ljust(start + 8 * shape[1], b"\0"), start)
    count = min(math.prod(dims), (len(data) - place) // _REFERENCE.size)
    return max((_REFERENCE.unpack_from(data, place + 16 * k)[0] for k in range(count)), default=0)


def _folders(h5py: Any, group: Any, prefix: str) -> Iterator[tuple[str, list[Array]]]:
    """The numbered arrays of each group that has some, by its path."""
    if prefix.startswith("optimizer"):
        return
    arrays: dict[int, Array] = {}
    for name in group:
        path = f"{prefix}/{name}".lstrip("/")
        item = _item(h5py, group, name)
        if isinstance(item, h5py.Group):
            yield from _folders(h5py, item, path)
        elif isinstance(item, h5py.Dataset) and name.isdecimal():
            arrays[int(name)] = _array(item)
        elif isinstance(item, h5py.Dataset) and "quantiz" not in name:
            raise ValueError(f"an array '{path}'")
    if arrays:
        yield prefix, [arrays[number] for number in sorted(arrays)]


def _item(h5py: Any, group: Any, path: str) -> Any:
    """What a group has at a path, without links to other places or files."""
    for name in path.split("/"):
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"no '{path}', or a link to somewhere else")
        group = group[name]
    return group


def _array(dataset: Any) -> Array:
    """The elements of a dataset, which have to be numbers and in the file itself."""
    if dataset.external or dataset.is_virtual or dataset.dtype.kind not in "biufV":
        raise ValueError(f"an array '{dataset.name}' of {dataset.dtype} that is not in the file")
    stored = min(dataset.id.get_storage_size(), dataset.file.id.get_filesize())
    if dataset.nbytes > 4096 + _RATIO * stored:
        raise ValueError(f"an array '{dataset.name}' of {dataset.nbytes} bytes")
    return np.asarray(dataset)


def _plain(path: str, file: Any, h5py: Any) -> Stored:
    if "model_config" not in file.attrs:
        if "layer_names" in file.attrs or "layers" in file:
            raise FrontendError.of_file(
                path,
                "has weights, but no model; build the model and save all of it (model.save)",
            )
        raise FrontendError.of_file(path, "has no attribute 'model_config', expected a model")
    config = json.loads(_text(_attribute(h5py, file, "model_config")))
    weights = _item(h5py, file, "model_weights")
    holder = file if "keras_version" in file.attrs else weights
    is_stated = "keras_version" in holder.attrs
    version = _text(_attribute(h5py, holder, "keras_version")) if is_stated else "1"
    groups: dict[str, list[Array]] = {}
    names: dict[str, list[str]] = {}
    for layer in _listed(h5py, weights, "layer_names"):
        group = _item(h5py, weights, layer)
        names[layer] = _listed(h5py, group, "weight_names")
        groups[layer] = [_array(_item(h5py, group, name)) for name in names[layer]]
    numbers = _numbers(version)
    is_old = numbers < (2, 3)
    return Stored(path, _model(path, config), *numbers, is_old, groups, names)


def _attribute(h5py: Any, group: Any, name: str) -> Any:
    """
    A text or a list of texts that is in the file: HDF5 makes room for what an attribute says, and
    trusts its type. An empty list is one of numbers in files of Keras.
    """
    stored = group.attrs.get_id(name)
    size = math.prod(stored.shape) * stored.dtype.itemsize
    if not size:
        return []
    if h5py.check_string_dtype(stored.dtype) is None or size > group.file.id.get_filesize():
        raise ValueError(f"an attribute '{name}' of {stored.dtype} with shape {stored.shape}")
    return group.attrs[name]


def _listed(h5py: Any, group: Any, name: str) -> list[str]:
    """A list of names, which may be in pieces `name0`, `name1`, ..."""
    found: list[Any] = []
    if name in group.attrs:
        found = list(_attribute(h5py, group, name))
    else:
        while f"{name}{len(found)}" in group.attrs:
            found.append(_attribute(h5py, group, f"{name}{len(found)}"))
        found = [item for piece in found for item in piece]
    return [_text(item) for item in found]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _numbers(version: str) -> tuple[int, int]:
    """The major and minor version; 3.0 for what is no version."""
    first, _, rest = version.partition(".")
    second = rest.partition(".")[0]
    if not first.isdecimal():
        return 3, 0
    return int(first), int(second) if second.isdecimal() else 0


def _model(path: str, config: Any) -> Mapping[str, Any]:
    if not isinstance(config, dict) or "class_name" not in config or "config" not in config:
        raise FrontendError.of_file(path, "its configuration is not that of a model")
    return cast("Mapping[str, Any]", config)
