"""
Model files that are trees of tables, lists and values: flatbuffers, and JSON in files, archives
and HDF5. They are read, changed at one place and written again.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fuzz.file_seeds import Seed
from fuzz.tflite_writer import flatbuffer
from lowerdeck.dialects.tflite.schema import schema
from lowerdeck.frontends.tflite.flatbuffer import Table

Tree = Any
"""Dicts and lists, down to numbers, texts, bytes, None, and pairs of a union's kind and table."""

Path = tuple[str | int, ...]
"""Keys and places from the root to a value."""

Step = tuple[str, Callable[[Tree], Tree]]
"""What becomes of a value, and how."""

_MOST_VALUES = 4000
"""Of one file: those that follow repeat them."""


def tree_of(seed: Seed, file: str) -> Tree | None:
    """What a file says; None if it is no tree."""
    data = seed.files[file]
    if file.endswith(".tflite"):
        return _fields(Table.root(memoryview(data), "Model"))
    if file.endswith(".h5"):
        return _of_h5(data)
    if file.endswith((".keras", ".pt2")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return json.loads(archive.read(_entry(archive)))
    is_json = file.endswith(".json") and seed.format not in ("compiled", "ranges")
    return json.loads(data) if is_json else None


def written(seed: Seed, file: str, tree: Tree) -> bytes:
    """The file that says this, and is otherwise the seed's."""
    data = seed.files[file]
    if file.endswith(".tflite"):
        return flatbuffer("Model", tree)
    if file.endswith(".h5"):
        return _with_h5(data, tree)
    text = json.dumps(tree).encode()
    if not file.endswith((".keras", ".pt2")):
        return text
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as target:
        changed = _entry(archive)
        for name in archive.namelist():
            content = text if name == changed else archive.read(name)
            target.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def _entry(archive: zipfile.ZipFile) -> str:
    """The program in an archive, or the configuration."""
    (found,) = (
        name
        for name in archive.namelist()
        if name.endswith(("models/model.json", "serialized_exported_program.json"))
        or name == "config.json"
    )
    return found


def _h5(file: io.BytesIO, mode: str) -> Any:
    return import_module("h5py").File(file, mode)


def _of_h5(data: bytes) -> Tree | None:
    with _h5(io.BytesIO(data), "r") as file:
        text: Any = file.attrs.get("model_config")
        return None if text is None else json.loads(text)


def _with_h5(data: bytes, tree: Tree) -> bytes:
    out = io.BytesIO(data)
    with _h5(out, "r+") as file:
        del file.attrs["model_config"]
        file.attrs["model_config"] = json.dumps(tree)
    return out.getvalue()


def _fields(table: Table) -> dict[str, Any]:
    """The fields that a file gives a table."""
    fields: dict[str, Any] = {}
    for name, field in schema().tables[table.kind].items():
        if not table.has(name):
            continue
        value = table[name]
        if field.kind in schema().unions:
            if value is not None:
                fields[name] = (table.union_kind(name), _fields(value))
        else:
            fields[name] = _value(value)
    return fields


def _value(value: Any) -> Any:
    match value:
        case Table():
            return _fields(value)
        case list():
            return [_value(item) for item in cast("list[Any]", value)]
        case np.ndarray():
            array = cast("NDArray[Any]", value)
            return array.tobytes() if array.dtype == np.uint8 else array.tolist()
        case _:
            return value


# Changes

_SHAPES: tuple[list[int], ...] = (
    *([], [0], [1], [2], [5], [2, 3], [0, 2], [3, 0, 2], [2, 1, 3], [1, 2, 3, 4], [1, 1, 1, 1]),
    *([1, 0, 3, 3], [1, 2, 1, 3, 2], [2**31 - 1], [2**20, 2**12], [1, 2**16, 2**16, 1]),
)
_INTEGERS = (-(2**31), -7, -1, 0, 1, 2, 5, 2**24, 2**31 - 1)
_FLOATS = (0.0, -1.0, math.nan, math.inf, 1e38, 1e-38)
_TYPES = ("FLOAT32", "INT32", "UINT8", "INT64", "BOOL", "INT16", "INT8", "INT4", "FLOAT16")


def neighbors(tree: Tree) -> list[tuple[Path, str, Callable[[Tree], Tree]]]:
    """All changes of one value of a tree."""
    found: list[tuple[Path, str, Callable[[Tree], Tree]]] = []
    for count, (path, value) in enumerate(_values(tree, ())):
        if count == _MOST_VALUES:
            break
        found += [(path, what, step) for what, step in _steps(path, value)]
    return found


def changed(tree: Tree, path: Path, step: Callable[[Tree], Tree]) -> Tree:
    """A tree where a value is another; nothing else is copied."""
    if not path:
        return step(tree)
    key, rest = path[0], path[1:]
    is_tuple = isinstance(tree, tuple)
    new: Any = list(cast(Any, tree)) if is_tuple else copy(tree)
    value = changed(new[key], rest, step)
    if value is not _GONE:
        new[key] = value
    else:
        del new[key]
    return tuple(new) if is_tuple else new


_GONE = object()


def _values(value: Tree, path: Path) -> Iterator[tuple[Path, Tree]]:
    """All values below one, but for names and what bytes hold."""
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
            pairs: list[tuple[str | int, Any]] = [(k, v) for k, v in items if k not in _NAMES]
        case tuple():
            pairs = [(1, value[1])]
        case list() if value and isinstance(value[0], (int, float)):
            return
        case list():
            pairs = list(enumerate(cast("list[Any]", value)))
        case _:
            return
    for key, item in pairs:
        yield (*path, key), item
        yield from _values(item, (*path, key))


_NAMES = frozenset(("name", "metadata", "description", "stack_trace", "nn_module_stack"))


def _steps(path: Path, value: Tree) -> Iterator[Step]:
    name = path[-1]
    yield f"no {name}", lambda _: _GONE
    match value:
        case bool():
            yield f"{name} is {not value}", lambda value: not value
        case int():
            for number in _INTEGERS:
                yield f"{name} is {number}", lambda _, number=number: number
        case float():
            for real in _FLOATS:
                yield f"{name} is {real}", lambda _, real=real: real
        case str():
            for text in _TYPES if value in _TYPES else ("", "x", "valid", "same", "linear"):
                yield f"{name} is {text}", lambda _, text=text: text
        case bytes():
            yield f"half {name}", lambda value: value[: len(value) // 2]
            for byte in (0, 1, 2, 0x7F, 0xFF):
                yield f"{name} of {byte}", lambda value, byte=byte: bytes([byte]) * len(value)
        case list():
            yield from _steps_of_list(str(name), cast("list[Any]", value))
        case _:
            pass


def _steps_of_list(name: str, value: Sequence[Any]) -> Iterator[Step]:
    if value:
        yield f"less {name}", lambda value: value[:-1]
        yield f"without the first {name}", lambda value: value[1:]
        yield f"more {name}", lambda value: [*value, value[-1]]
        yield f"{name} backwards", lambda value: value[::-1]
    if all(isinstance(item, int) for item in value):
        for shape in _SHAPES:
            yield f"{name} is {shape}", lambda _, shape=shape: shape
    if not value or not isinstance(value[0], (int, float)):
        return
    others: Sequence[int | float] = _INTEGERS if isinstance(value[0], int) else _FLOATS
    for at in sorted({0, len(value) // 2, len(value) - 1}):
        for other in others:
            yield (
                f"{name} {other} at {at}",
                lambda value, at=at, other=other: [*value[:at], other, *value[at + 1 :]],
            )
    for other in others:
        yield f"all {name} {other}", lambda value, other=other: [other] * len(value)
