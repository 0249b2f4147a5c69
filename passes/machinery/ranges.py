"""What calibration has found: how the layers of one model are quantized, as a small JSON file."""

from __future__ import annotations

import json
import math
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.options import OptionError

VERSION = 1

PRECISIONS = ("f32", "int8")
"""Of one layer."""

_LARGEST = {1: 255, 2: 65535}
"""The largest number of so many bytes."""


@record
class Step:
    """(q - zero) * scale of whole numbers from 0 to the largest."""

    scale: float
    zero: int
    largest: int

    @staticmethod
    def of(low: float, high: float, count: int = 1) -> Step:
        """
        For the numbers from low to high, 0 among them, which is exact. The zero point of two bytes
        is one of the upper byte: so each of the two has a zero of its own.
        """
        largest = _LARGEST[count]
        if count == 1:
            scale = _single((high - low) / largest)
            return Step(scale, min(max(round(-low / scale), 0), largest), largest)
        scale = _single((high - low) / (largest - 256))
        return Step(scale, 256 * min(math.ceil(-low / scale / 256), 255), largest)


def _single(value: float) -> float:
    """A number as f32 holds it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


@record
class LayerRange:
    """How one layer is quantized: by the range of its input, or by that of each row in each run."""

    node: str
    """The source nodes of the layer, for those who read the file."""
    low: float | None = None
    """The least number that is not clipped; None if rows have ranges of their own."""
    high: float | None = None
    precision: str = "int8"
    """What `auto` computes it in."""
    bytes: int = 1
    """How many an input becomes: with two, the product is the sum of two products."""
    clipped: float = 0.0
    """The share of the input's elements outside of the range, when it was found."""
    share: float = 0.0
    """Of the multiplications of all layers."""
    error: float | None = None
    """What the outputs differ by if this layer alone is quantized, by norm; None if not known."""
    error_of_byte: float | None = None
    """The same if its inputs are one byte, whatever they are."""
    factors: tuple[float, ...] | None = None
    """By which each channel of its inputs is divided, and its weights are multiplied."""

    @property
    def step(self) -> Step | None:
        """How its inputs become bytes; None for rows with ranges of their own."""
        if self.low is None or self.high is None:
            return None
        return Step.of(self.low, self.high, self.bytes)


@record
class Ranges:
    """The layers of a model, in the order of its optimized form."""

    model: str
    """What identifies the layers: a digest of their weights."""
    layers: tuple[LayerRange, ...]
    method: str = ""
    """How ranges were found."""
    samples: int = 0
    """In how many samples."""
    metric: str | None = None
    """That of the budget, if there was one."""
    drop: float | None = None
    """What the choice of precisions loses on samples that were held back, by the metric."""
    bound: float | None = None
    """What it should not exceed on other samples, either."""

    @property
    def text(self) -> str:
        """The file."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""
        Path(path).write_text(self.text, encoding="utf-8")

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Ranges:
        """The ranges of a file; OptionError lists what is wrong with it."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise OptionError([("ranges", f"{path} cannot be read: {error}")]) from None
        return Ranges.of(content, str(path))

    @staticmethod
    def of(content: Any, where: str) -> Ranges:
        """The ranges that a JSON value holds; OptionError lists what is wrong with it."""
        problems = list(_problems(content))
        if problems:
            raise OptionError([("ranges", f"{where}: {text}") for text in problems])
        layers = tuple(map(_layer_of, content["layers"]))
        return Ranges(
            content["model"],
            layers,
            content.get("method") or "",
            content.get("samples", 0),
            content.get("metric"),
            content.get("drop"),
            content.get("bound"),
        )


def _layer_of(entry: Mapping[str, Any]) -> LayerRange:
    known = {name: entry[name] for name in LayerRange.__annotations__ if name in entry}
    if (factors := known.get("factors")) is not None:
        known["factors"] = tuple(map(float, factors))
    return LayerRange(**known)


_ENTRIES = ("version", *Ranges.__annotations__)


def _problems(content: Any) -> list[str]:
    if not isinstance(content, dict):
        return ["expected an object of JSON"]
    entries = cast("dict[str, Any]", content)
    version = entries.get("version")
    if type(version) is not int or version != VERSION:
        return [f"version {version!r}, expected {VERSION}"]
    if unknown := [name for name in entries if name not in _ENTRIES]:
        return [f"'{name}' is no entry of such files" for name in unknown]
    if not isinstance(entries.get("model"), str):
        return ["'model' is no text; `lowerdeck quantize` writes such files"]
    samples = entries.get("samples", 0)
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 0:
        return [f"'samples' is {samples!r}, expected a number"]
    for name, is_right, expected in (
        ("method", _is_text, "a text"),
        ("metric", _is_text, "a text"),
        ("drop", _is_number, "a number"),
        ("bound", _is_number, "a number"),
    ):
        if (found := entries.get(name)) is not None and not is_right(found):
            return [f"'{name}' is {found!r}, expected {expected}"]
    layers = entries.get("layers")
    if not isinstance(layers, list):
        return ["'layers' is no list; `lowerdeck quantize` writes such files"]
    return [
        f"layer {number}{_called(entry)}: {text}"
        for number, entry in enumerate(cast("Sequence[Any]", layers))
        for text in _problems_of_layer(entry)
    ]


def _called(entry: Any) -> str:
    node = cast("dict[str, Any]", entry).get("node") if isinstance(entry, dict) else None
    return f" ({node})" if isinstance(node, str) else ""


def _problems_of_layer(entry: Any) -> list[str]:
    if not isinstance(entry, Mapping):
        return ["expected an object of JSON"]
    values = cast("Mapping[str, Any]", entry)
    known = LayerRange.__annotations__
    problems = [f"'{name}' is no entry of a layer" for name in values if name not in known]
    if not isinstance(values.get("node"), str):
        problems.append("'node' is no text")
    if values.get("precision", "int8") not in PRECISIONS:
        problems.append(
            f"precision {values['precision']!r}, expected one of {', '.join(PRECISIONS)}"
        )
    count = values.get("bytes", 1)
    if type(count) is not int or count not in _LARGEST:
        problems.append(f"'bytes' is {values['bytes']!r}, expected 1 or 2")
    for name in ("clipped", "share", "error", "error_of_byte"):
        found = values.get(name, 0.0)
        if not (_is_number(found) or (name.startswith("error") and found is None)):
            problems.append(f"'{name}' is {values[name]!r}, expected a number")
    factors = values.get("factors")
    if factors is not None and not _are_factors(factors):
        problems.append("'factors' is no list of numbers from 2^-64 to 2^64")
    limits = [values.get(name) for name in ("low", "high")]
    if limits == [None, None]:
        return problems
    if not all(map(_is_number, limits)):
        return [*problems, f"a range from {limits[0]} to {limits[1]}, expected finite numbers"]
    low, high = map(float, cast("list[float]", limits))
    if not low <= 0 <= high:
        problems.append(f"a range from {low} to {high}, expected one that holds 0")
    elif not (high - low) / 255 >= 2.0**-126:
        problems.append(f"a range from {low} to {high}, whose scale is 0")
    elif not math.isfinite(2 * (high - low)) or high - low > 2.0**127:
        problems.append(f"a range from {low} to {high}, which has no scale in f32")
    return problems


def _are_factors(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(
        _is_number(each) and 2.0**-64 <= each <= 2.0**64 for each in cast("list[Any]", value)
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    """True for what a float holds, of JSON's integers, too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max
