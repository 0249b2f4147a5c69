"""
Inputs for a function when the user has none: seeded, and within what their consumers accept.

Indices stay within the dimension they address, trip counts are small, floats are of ordinary size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype

_SIZES = (2, 3, 4, 5)
"""The sizes of symbolic dimensions: small, and different ones are told apart."""

_INTEGERS = 4
"""Integers of which nothing is known are 0 to 3."""

_INDEX_OPERANDS: Mapping[str, tuple[int, int]] = {
    "Gather": (0, 1),
    "GatherElements": (0, 1),
    "ScatterElements": (0, 1),
    "gather": (0, 1),
    "gather_elements": (0, 1),
    "scatter_elements": (0, 1),
}
"""Ops that address dimension `axis` of one operand by the values of another."""

_INDEX_TUPLES: Mapping[str, tuple[int, int]] = {
    "GatherND": (0, 1),
    "ScatterND": (0, 1),
    "gather_nd": (0, 1),
    "scatter_nd": (0, 1),
}
"""Ops that address several dimensions of one operand; the smallest bounds all of them."""

_MOVES = frozenset(
    {
        *("Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Identity", "Slice", "Flatten"),
        *("cast", "reshape", "transpose", "slice", "broadcast", "concat", "Expand", "Concat"),
    }
)
"""Ops whose result holds the values of their operands."""


def sample_inputs(
    function: FuncOp, sizes: Mapping[str, int] | None = None, *, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """
    Arrays for the arguments of a function by tensor name.

    `sizes` gives dimension symbols their values; others get small ones. VerifyException if an
    argument is not a tensor of known rank.
    """
    generator = np.random.default_rng(seed)
    arguments = function.body.block.args
    known = dict(sizes or {})
    inputs: dict[str, NDArray[Any]] = {}
    for name, argument in zip(value_names(function.arg_attrs, len(arguments)), arguments):
        dims = dims_of(argument)
        for symbol in sorted(set[str]().union(*(dim.symbols for dim in dims))):
            known.setdefault(symbol, _SIZES[len(known) % len(_SIZES)])
        shape = [dim.evaluate(known) for dim in dims]
        dtype = numpy_dtype(element_type(argument))
        inputs[name] = _random(generator, dtype, shape, _bound(argument, known))
    return inputs


def _random(
    generator: np.random.Generator, dtype: np.dtype[Any], shape: list[int], bound: int
) -> NDArray[Any]:
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        return generator.integers(0, bound, shape).astype(dtype)
    if dtype == np.object_:
        return np.full(shape, "text", np.object_)
    return generator.standard_normal(shape).astype(dtype)


def _bound(value: SSAValue, sizes: Mapping[str, int]) -> int:
    """One more than the largest integer that every consumer of `value` takes."""
    bounds = list(_bounds(value, sizes, set()))
    return max(min(bounds), 1) if bounds else _INTEGERS


def _bounds(value: SSAValue, sizes: Mapping[str, int], seen: set[SSAValue]) -> Iterator[int]:
    if value in seen:
        return
    seen.add(value)
    for use in value.uses:
        op, kind = use.operation, _kind(use.operation)
        if kind in _MOVES:
            for result in op.results:
                yield from _bounds(result, sizes, seen)
        elif kind in _INDEX_OPERANDS and use.index == _INDEX_OPERANDS[kind][1]:
            yield from _dimensions(op.operands[_INDEX_OPERANDS[kind][0]], sizes, _axis(op))
        elif kind in _INDEX_TUPLES and use.index == _INDEX_TUPLES[kind][1]:
            yield from _dimensions(op.operands[_INDEX_TUPLES[kind][0]], sizes, None)


def _kind(op: Operation) -> str:
    """`Gather` of `onnx.Gather_13`, `gather` of `core.gather`."""
    dialect, _, name = op.name.partition(".")
    return name.rpartition("_")[0] if dialect == "onnx" and "_" in name else name


def _axis(op: Operation) -> int:
    """The `axis` property of a core or onnx op; ONNX's default is 0."""
    attribute: Any = op.properties.get("axis")
    if attribute is None:
        return 0
    number = getattr(attribute, "value", attribute)
    return int(number.data)


def _dimensions(value: SSAValue, sizes: Mapping[str, int], axis: int | None) -> Iterator[int]:
    try:
        dims = dims_of(value)
    except VerifyException:
        return  # before shapes are inferred
    for dim in dims if axis is None else dims[axis : axis + 1 or None]:
        if dim.symbols <= sizes.keys():
            yield dim.evaluate(sizes)
