"""The samples of a model's inputs, one after the other: `samples_of`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lowerdeck.calibration import (
    ARRAYS,
    TABLES,
    Array,
    CalibrationError,
    Data,
    Sample,
    by_name,
    division,
    has_batch,
    load_file,
    part,
)
from lowerdeck.metadata import TensorInfo
from lowerdeck.row_files import BatchError, heads_of, load

__all__ = ["samples_of"]

_PART = 64
"""Samples of a table that are in memory, at least."""


def samples_of(
    data: Data, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> Iterator[Sample]:
    """
    The samples, each with an array for each input; CalibrationError for one that is none, with the
    place, what was found, and what is expected, or if there is none at all.

    An array has the shape of its input, or one more dimension, the first, for samples; or a first
    dimension of n times the size that the input has there. An open size that is the first of all
    inputs and outputs is that of a batch, whose rows are samples.
    """
    is_batch = has_batch(inputs, outputs)
    count = 0
    for where, arrays in _groups(data, inputs):
        for sample in _apart(where, arrays, inputs, is_batch=is_batch):
            _check(where, sample, inputs)
            count += 1
            yield sample
    if not count:
        raise CalibrationError(f"calibration: {_named(data)} holds no samples")


def _named(data: Data) -> str:
    return os.fspath(data) if isinstance(data, str | os.PathLike) else "the data"


def _groups(data: Data, inputs: Sequence[TensorInfo]) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Arrays by input, with the place that they come from."""
    if isinstance(data, str | os.PathLike):
        yield from _files(os.fspath(data), inputs)
        return
    if isinstance(data, Mapping | np.ndarray):
        yield "calibration", by_name("calibration", data, inputs)
        return
    for number, sample in enumerate(data):
        where = f"calibration: sample {number}"
        yield where, by_name(where, sample, inputs)


def _files(path: str, inputs: Sequence[TensorInfo]) -> Iterator[tuple[str, Mapping[str, Array]]]:
    if not os.path.isdir(path):
        yield from _rows(path, inputs)
        return
    names = sorted(name for name in os.listdir(path) if name.endswith((*ARRAYS, *TABLES)))
    for name in names:
        yield from _rows(os.path.join(path, name), inputs)


def _rows(path: str, inputs: Sequence[TensorInfo]) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """The arrays of a file; those of a table some rows at a time."""
    if not path.endswith(TABLES):
        yield path, by_name(path, load_file(path), inputs)
        return
    try:
        count = max(map(len, heads_of(path, inputs).values()), default=0)
        # A sample may have several rows, and lies in one part.
        size = _PART * math.lcm(*filter(None, map(_rows_of_sample, inputs)))
        for start in range(0, count, size):
            rows = load(path, inputs, start, start + size)
            for number, problem in rows.problems.items():
                raise CalibrationError(f"{path}: row {number}: {problem}")
            yield path, rows.arrays
    except (BatchError, OSError) as error:
        raise CalibrationError(str(error)) from None


def _rows_of_sample(info: TensorInfo) -> int:
    """How many a sample has, if that is known; otherwise 0."""
    size = info.shape[0] if info.shape else 0
    return max(size, 0) if isinstance(size, int) else 0


def _apart(
    where: str, arrays: Mapping[str, Array], inputs: Sequence[TensorInfo], *, is_batch: bool
) -> Iterator[Sample]:
    """The samples that arrays hold side by side."""
    infos = {info.name: info for info in inputs}
    parts = {
        name: _parts(array, infos[name], 1 if is_batch else None) for name, array in arrays.items()
    }
    counts = {name: len(each) for name, each in parts.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise CalibrationError(f"{where}: different numbers of samples: {found}")
    for number in range(min(counts.values(), default=0)):
        yield {name: each[number] for name, each in parts.items()}


def _parts(array: Array, info: TensorInfo, rows: int | None) -> Sequence[Array]:
    """The samples in an array: of so many rows, or else as many as its input has."""
    count, size = division(array.shape, info, rows)
    return [part(array, size, number) for number in range(count)]


def _check(where: str, sample: Sample, inputs: Sequence[TensorInfo]) -> None:
    """CalibrationError for other shapes or types, and for what is not finite."""
    problems: list[str] = []
    for info in inputs:
        if (array := sample.get(info.name)) is None:
            continue
        if array.ndim != info.rank or any(
            isinstance(size, int) and size != own
            for size, own in zip(info.shape, array.shape, strict=False)
        ):
            shape = ", ".join(map(str, array.shape))
            problems.append(f"input '{info.name}' has the shape [{shape}], expected {info}")
        elif not _can_be(array.dtype, info.dtype):
            problems.append(f"input '{info.name}' is of {array.dtype}, expected {info}")
        elif _kind(array.dtype) == "f" and not np.isfinite(array).all():
            problems.append(f"input '{info.name}' has NaN or infinities, expected numbers")
        elif (held := _held(array, info.dtype)) is None:
            problems.append(f"input '{info.name}' has numbers too large for {info}")
        else:
            sample[info.name] = held
    if problems:
        raise CalibrationError("\n".join(f"{where}: {text}" for text in problems))


def _can_be(found: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """True for numbers of the same kind; floats may come as any real numbers."""
    return _kind(found) in ("fiub" if _kind(expected) == "f" else _kind(expected))


def _kind(dtype: np.dtype[Any]) -> str:
    """numpy's letter for a type; the floats that numpy itself does not have are such, too."""
    return "f" if dtype.kind == "V" and dtype.type is not np.void else dtype.kind


def _held(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """Numbers in a type of an input; None if there are some that are others in it."""
    with np.errstate(over="ignore"):
        held = np.asarray(array, dtype, order="C")
    is_held = np.isfinite(held) if _kind(dtype) == "f" else held == array
    return held if is_held.all() else None
