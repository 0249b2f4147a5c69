"""The description of a compiled model, as `NAME.json` has it, and the ports that it describes."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np

from lowerdeck.dialects.dims import parse_text
from lowerdeck.lowering.abi import argument_fields
from lowerdeck.lowering.targets import target_names

Symbols = Mapping[str, int]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]
    """Sizes; a string is a dimension symbol or an expression of them."""
    default: tuple[int, ...] | None = None
    """The sizes of what an input is if it is left out; None if it has to be given."""
    classes: tuple[str, ...] = ()
    """The classes that the numbers in an output stand for, where the model names them."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        optional = "" if self.default is None else " (optional)"
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]{optional}"


@dataclass(frozen=True)
class StateInfo:
    """What a model remembers."""

    info: TensorInfo
    """With the name of the input that holds it before a call."""
    after: str
    """The output that holds it after the call."""
    offset: int
    """Where it begins, in bytes of the struct of C."""


class Dimension:
    """A dimension expression, ready to be evaluated; ValueError if the text is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._expr = parse_text(text)
        self.symbols = self._expr.symbols

    @property
    def is_symbol(self) -> bool:
        """True if the expression is one symbol."""
        return self.symbols == frozenset([self.text])

    def evaluate(self, values: Symbols) -> int:
        """The number for values of all symbols, where a zero divisor gives zero as in C."""
        return self._expr.evaluate(values)


def read_metadata(folder: str) -> dict[str, Any]:
    """
    What is written beside the C of a model.

    FileNotFoundError if the folder holds none, ValueError if it has been damaged.
    """
    for entry in sorted(os.listdir(folder)):
        if entry.endswith(".json"):
            path = os.path.join(folder, entry)
            with open(path, encoding="utf-8") as file:
                try:
                    data: object = json.load(file)
                except RecursionError:
                    raise ValueError(f"{path}: nested too deeply") from None
                except ValueError as error:
                    raise ValueError(f"{path}: {error}") from None
            if isinstance(data, dict) and "abi" in data:
                found = cast("dict[str, Any]", data)
                _check_metadata(found, path)
                return found
    raise FileNotFoundError(2, "there is no compiled model", folder)


_PORT: Mapping[str, type] = {"name": str, "field": str, "dtype": str, "dims": list}

_METADATA: Mapping[str, type | tuple[type, ...]] = {
    **{"name": str, "abi": int, "target": str, "inputs": list, "outputs": list},
    **{"arguments": dict},
    **{"workspace": (int, str), "weights_size": int, "embeds_weights": bool},
    **{"is_parallel": bool, "sources": list, "cflags": list, "libraries": list},
}
"""The types of what the description of a model always has."""

_DTYPES = frozenset(
    [
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float16", "bfloat16", "float32", "float64"),
    ]
)
"""The names of the element types of ports."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def argument_fields_of(metadata: Mapping[str, Any]) -> dict[str, int]:
    ranks = [{p["field"]: len(p["dims"]) for p in metadata[key]} for key in ("inputs", "outputs")]
    return argument_fields(*ranks, has_state=bool(metadata.get("states")))


def _check_metadata(data: Mapping[str, Any], path: str) -> None:
    """ValueError if the description of a model has not the form that `interface.metadata` gives."""
    _check_types(data, _METADATA, path)
    if not _IDENTIFIER.fullmatch(data["name"]) or data["target"] not in target_names():
        raise ValueError(f"{path}: has no valid name or target")
    for key in ("sources", "cflags", "libraries"):
        if not all(isinstance(item, str) for item in data[key]):
            raise ValueError(f"{path}: '{key}' are no texts")
    states = data.get("states", [])
    if not isinstance(states, list):
        raise ValueError(f"{path}: 'states' is no list")
    for item in (*data["inputs"], *data["outputs"], *cast("list[object]", states)):
        if not isinstance(item, dict):
            raise ValueError(f"{path}: an input or output is not described")
        port = cast("dict[str, Any]", item)
        _check_types(port, _PORT, path)
        for dim in cast("list[object]", port["dims"]):
            if not isinstance(dim, int | str) or (isinstance(dim, int) and dim < 0):
                raise ValueError(f"{path}: {dim!r} is no dimension")
            if isinstance(dim, str):
                parse_text(dim)
        default: object = port.get("default")
        if default is not None and not _is_shape(default, len(cast("list[object]", port["dims"]))):
            raise ValueError(f"{path}: {default!r} are no sizes of a default")
        classes: object = port.get("classes", [])
        if not isinstance(classes, list) or not all(
            isinstance(name, str) for name in cast("list[object]", classes)
        ):
            raise ValueError(f"{path}: {classes!r} are no names of classes")
        if port["dtype"] not in _DTYPES:
            raise ValueError(f"{path}: '{port['dtype']}' is no element type")
    fields = [port["field"] for port in (*data["inputs"], *data["outputs"])]
    if len({*fields}) != len(fields) or data.get("arguments") != argument_fields_of(data):
        raise ValueError(f"{path}: its arguments do not lie where those of this ABI do")
    if isinstance(data["workspace"], str):
        parse_text(data["workspace"])
    for state in cast("list[dict[str, Any]]", states):
        _check_types(state, {"after": str, "offset": int}, path)
        sizes, width = state["dims"], np.dtype(tensor_info(state).dtype).itemsize
        is_known = all(isinstance(size, int) for size in sizes) and state["offset"] >= 0
        size = data.get("state_size")
        if not is_known or not isinstance(size, int):
            raise ValueError(f"{path}: '{state['name']}' is no state")
        if state["offset"] + math.prod(sizes) * width > size:
            raise ValueError(f"{path}: the state '{state['name']}' is larger than all of it")


def _is_shape(value: object, rank: int) -> bool:
    sizes = cast("list[object]", value) if isinstance(value, list) else [None]
    return len(sizes) == rank and all(isinstance(size, int) and size >= 0 for size in sizes)


def _check_types(
    data: Mapping[str, Any], types: Mapping[str, type | tuple[type, ...]], path: str
) -> None:
    for key, type_ in types.items():
        if not isinstance(data.get(key), type_):
            raise ValueError(f"{path}: damaged: '{key}' is missing or of another type")


def tensor_info(port: Mapping[str, Any]) -> TensorInfo:
    dtype = ml_dtypes.bfloat16 if port["dtype"] == "bfloat16" else port["dtype"]
    default = None if port.get("default") is None else tuple(port["default"])
    classes = tuple(port.get("classes", ()))
    return TensorInfo(port["name"], np.dtype(dtype), tuple(port["dims"]), default, classes)


def dimensions_of(shape: Sequence[int | str]) -> list[int | Dimension]:
    return [size if isinstance(size, int) else Dimension(size) for size in shape]


def evaluated(dims: Sequence[int | Dimension], symbols: Symbols) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else dim.evaluate(symbols) for dim in dims)
