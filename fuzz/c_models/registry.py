"""How a model is registered, with the limits of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
import onnx
import onnx.parser
from numpy.typing import NDArray
from onnx import numpy_helper

from fuzz.c_harness import Limits
from lowerdeck.compiler import CompileOptions

Array: TypeAlias = NDArray[Any]

TREE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Made:
    """A model as a file, and how it is compiled and run."""

    path: Path
    limits: Limits = field(default_factory=Limits)
    options: CompileOptions = field(default_factory=CompileOptions)


Maker: TypeAlias = Callable[[Path], Made]
"""Writes a model into a folder."""

MODELS: dict[str, Maker] = {}
"""By name; each topic adds its own."""


def onnx_model(
    name: str,
    inputs: str,
    outputs: str,
    nodes: str,
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 18,
    values: Mapping[str, tuple[int, int]] | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Register a model in the notation of onnx.parser; weights are arrays, or shapes."""

    def make(folder: Path) -> Made:
        text = f'<ir_version: 9, opset_import: ["" : {opset}]>\n{name} ({inputs}) => ({outputs}) {{'
        model = onnx.parser.parse_model(f"{text}{nodes}}}")
        rng = np.random.default_rng(len(name))
        for key, value in (weights or {}).items():
            array = np.asarray(value) if not _is_shape(value) else random_weights(rng, value)
            model.graph.initializer.append(numpy_helper.from_array(array, key))
        path = folder / f"{name}.onnx"
        cast(Any, onnx).save(model, str(path))
        return Made(path, Limits(values or {}, sizes or {}))

    MODELS[name] = make


def _is_shape(value: Any) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple)


def random_weights(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """Numbers around 0 that keep results small."""
    return (rng.standard_normal(tuple(shape)) / 2).astype(np.float32)


IMAGE: Mapping[str, Sequence[int]] = {
    "n": (1, 2),
    "h": (5, 8, 9, 12, 16),
    "w": (4, 6, 7, 8, 15, 16),
}
"""Sizes of images with open dimensions."""
