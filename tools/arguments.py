"""Values of command line options that need parsing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.common import ToolError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def parse_shapes(options: Sequence[str]) -> dict[str, list[int]] | None:
    """`NAME=1,224,224,3` for each input; None without options. Names may hold `=` and `:`."""
    shapes: dict[str, list[int]] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        sizes = [part.strip() for part in text.split(",")] if text.strip() else []
        if not name or not equals or not all(size.isdecimal() for size in sizes):
            raise ToolError(f"--input-shape {option}: expected NAME=1,2,3")
        shapes[name] = [int(size) for size in sizes]
    return shapes or None


def parse_tags(option: str | None) -> list[str] | None:
    """`serve,gpu`; None without the option, no tags for an empty one."""
    return None if option is None else [tag for tag in map(str.strip, option.split(",")) if tag]


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """
    The arrays of an `.npz` file by tensor name.

    If some names begin with `input:`, only those are taken, without it: so a file may hold expected
    outputs too.
    """
    import zipfile

    import numpy as np

    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise ToolError(f"{path}: expected a file of numpy.savez: {error}") from error
    prefix = "input:"
    if any(name.startswith(prefix) for name in arrays):
        return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
    return arrays
