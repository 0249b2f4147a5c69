"""Arrays of the files that numpy writes, `.npy` and `.npz`."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

_BROKEN = (
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy and zipfile raise for damaged files; numpy reads headers as tokens of Python."""


def read_numpy(file: str | IO[bytes]) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """
    The array of an `.npy` file, or those of an `.npz` file by name; OSError, or ValueError for what
    is neither. No pickles are read.
    """
    try:
        loaded: Any = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return cast("NDArray[Any]", loaded)
        with loaded as entries:
            return {name: entries[name] for name in entries.files}
    except _BROKEN as error:
        raise ValueError(str(error) or type(error).__name__) from None
