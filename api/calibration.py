"""Samples of a model's inputs, one at a time: from files, folders, arrays or an iterator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.frontends.numpy_files import read_numpy
from lowerdeck.metadata import TensorInfo

Array: TypeAlias = NDArray[Any]
Sample: TypeAlias = "dict[str, Array]"
Data: TypeAlias = "str | os.PathLike[str] | Array | Mapping[str, Array] | Iterable[Any]"
"""
A file (.npz or .npy), a folder of them, arrays of samples, or samples one after the other: each an
array, a sequence of arrays, or a mapping by name.
"""


class CalibrationError(LowerdeckError, ValueError):
    """Samples that a model does not take, or cannot be calibrated with."""


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


def has_batch(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> bool:
    """True if one open size is the first of all inputs and outputs."""
    first = {info.shape[0] if info.shape else 1 for info in (*inputs, *outputs)}
    return len(first) == 1 and all(isinstance(size, str) for size in first)


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
        yield path, by_name(path, load_file(path), inputs)
        return
    names = sorted(name for name in os.listdir(path) if name.endswith((".npz", ".npy")))
    for name in names:
        file = os.path.join(path, name)
        yield file, by_name(file, load_file(file), inputs)


def load_file(path: str) -> Any:
    """The array of an .npy file, or those of an .npz file by name; CalibrationError."""
    try:
        return read_numpy(path)
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{path}: cannot be read: {error}") from None


def by_name(where: str, sample: Any, inputs: Sequence[TensorInfo]) -> Mapping[str, Array]:
    """Arrays by input; CalibrationError for names that are none, or inputs without an array."""
    needed = [info for info in inputs if info.default is None]
    if isinstance(sample, Mapping):
        arrays = {
            str(name): np.asarray(array)
            for name, array in cast("Mapping[str, Any]", sample).items()
        }
    else:
        is_list = isinstance(sample, list | tuple)
        values = cast("Sequence[Any]", sample) if is_list else [sample]
        if len(values) != len(needed):
            raise CalibrationError(
                f"{where}: {len(values)} arrays for {len(needed)} inputs: {_listed(inputs)}"
            )
        pairs = zip(needed, values, strict=True)
        arrays = {info.name: np.asarray(array) for info, array in pairs}
    known = {info.name for info in inputs}
    problems = [f"'{name}' is no input" for name in arrays if name not in known]
    problems += [f"input '{info.name}' is missing" for info in needed if info.name not in arrays]
    if problems:
        lines = [f"{where}: {text}; the inputs are {_listed(inputs)}" for text in problems]
        raise CalibrationError("\n".join(lines))
    return arrays


def _listed(inputs: Sequence[TensorInfo]) -> str:
    return ", ".join(map(str, inputs))


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


def division(shape: Sequence[int], info: TensorInfo, rows: int | None) -> tuple[int, int | None]:
    """
    How many samples an array of this shape holds, and how many of its rows each has: None if it
    has one more dimension than a sample, 0 if it is the sample.
    """
    if len(shape) == info.rank + 1:
        return shape[0], None
    first = rows or info.shape[0] if info.shape and len(shape) == info.rank else None
    if isinstance(first, int) and first > 0 and shape[0] % first == 0:
        return shape[0] // first, first
    return 1, 0


def part(array: Array, size: int | None, number: int) -> Array:
    """One of the samples that `division` tells apart."""
    if size is None:
        return np.asarray(array[number])
    return array[number * size : (number + 1) * size] if size else array


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
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            problems.append(f"input '{info.name}' has NaN or infinities, expected numbers")
        else:
            sample[info.name] = np.asarray(array, info.dtype, order="C")
    if problems:
        raise CalibrationError("\n".join(f"{where}: {text}" for text in problems))


def _can_be(found: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    """True for numbers of the same kind; floats may come as any real numbers."""
    return found.kind in ("fiub" if expected.kind == "f" else expected.kind)
