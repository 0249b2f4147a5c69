"""Arrays as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

_SHOWN = 8
"""Elements of an array that are shown; of a longer one, the first ones."""


def described(name: str, array: Any) -> str:
    """
    One line: type and shape, the range of the finite elements and their mean, how many are not
    finite, and the first elements; of a sequence, its length and elements.
    """
    if array is None:
        return f"{name}: nothing"
    if isinstance(array, list | tuple):
        members = cast("Sequence[Any]", array)
        lines = [f"  {described(f'{name}[{k}]', one)}" for k, one in enumerate(members)]
        return "\n".join([f"{name}: {len(members)} tensors", *lines])
    values = np.asarray(array)
    shape = ", ".join(map(str, values.shape))
    parts = [f"{name}: {values.dtype}[{shape}]", *_statistics(values)]
    first = " ".join(_text(one) for one in values.ravel()[:_SHOWN])
    if values.size > _SHOWN:
        first += " ..."
    return ", ".join(parts) + (f": {first}" if values.size else "")


def _statistics(values: np.ndarray[Any, Any]) -> list[str]:
    if values.size == 0:
        return ["empty"]
    if values.dtype == np.bool_:
        return [f"{int(values.sum())} of {values.size} true"]
    if values.dtype.kind in "OSU" or values.size == 1:
        return []
    numbers = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    if values.dtype.kind == "c":
        numbers = np.abs(numbers)
    finite = numbers[np.isfinite(numbers)]
    found: list[str] = []
    if finite.size:
        found = [
            f"{_text(finite.min())} to {_text(finite.max())}",
            f"mean {_text(finite.mean())}",
        ]
    for count, what in (
        (int(np.isnan(numbers).sum()), "NaN"),
        (int(np.isinf(numbers).sum()), "infinite"),
    ):
        if count:
            found.append(f"{count} {what}")
    return found


def _text(value: Any) -> str:
    if isinstance(value, str | bytes):
        return repr(value)
    return f"{value:.6g}" if np.asarray(value).dtype.kind not in "biu" else str(value)
