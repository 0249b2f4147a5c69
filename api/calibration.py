"""What samples of a model's inputs are: arrays by name, and files of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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
A file (.npz, .npy, .parquet, .arrow or .feather), a folder of them, arrays of samples, or samples
one after the other: each an array, a sequence of arrays, or a mapping by name.
"""

ARRAYS = (".npz", ".npy")
TABLES = (".parquet", ".arrow", ".feather")
"""Files with a column for each input."""


class CalibrationError(LowerdeckError, ValueError):
    """Samples that a model does not take, or cannot be calibrated with."""


def has_batch(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> bool:
    """True if one open size is the first of all inputs and outputs."""
    first = {info.shape[0] if info.shape else 1 for info in (*inputs, *outputs)}
    return len(first) == 1 and all(isinstance(size, str) for size in first)


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
