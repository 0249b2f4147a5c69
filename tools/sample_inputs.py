"""
Inputs for a module when the user has none: seeded, and within what their consumers accept.

Indices stay within the dimension they address, trip counts are small, floats are of ordinary size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.core.defaults import default_of
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ReshapeOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr, parse_text
from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.interpret.graphs import graph_runner


@dataclass(frozen=True)
class Choice:
    """What is chosen where a model leaves it open."""

    sizes: tuple[int, ...]
    """Of symbolic dimensions, in turn."""
    integers: int
    """Integers of which nothing is known are below this."""


CHOICES = (
    Choice((2, 3, 4, 5), 4),
    Choice((4,), 4),
    Choice((8,), 2),
    Choice((32,), 2),
    Choice((64, 96), 2),
    Choice((224,), 2),
    Choice((1,), 1),
)
"""
What to try, the best first: small sizes, different ones of which are told apart, then such as
broadcast, then such as many strides leave something of. What says least is last.
"""

_Kind: TypeAlias = "str | type[Operation]"
"""What a framework calls an operator, or the class of an op of `core`."""

_INDEXED: frozenset[_Kind] = frozenset(
    {
        *(GatherOp, GatherElementsOp, ScatterElementsOp),
        *("Gather", "GatherElements", "ScatterElements", "GatherV2", "ResourceGather"),
    }
)
"""Ops that address dimension `axis` of their first operand by the values of the second."""

_INDEXED_BY_TUPLES: frozenset[_Kind] = frozenset(
    {
        *(GatherNdOp, ScatterNdOp),
        *("GatherND", "ScatterND", "GatherNd", "ResourceGatherNd"),
        *("TensorScatterUpdate", "TensorScatterAdd"),
    }
)
"""Ops that address several dimensions of it; the smallest bounds all of them."""

_MOVES: frozenset[_Kind] = frozenset(
    {
        *(CastOp, ReshapeOp, TransposeOp, SliceOp, BroadcastOp, ConcatOp),
        *("Cast", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Identity", "Slice", "Flatten"),
        *("Expand", "Concat"),
        *("ExpandDims", "Pack", "ConcatV2", "StridedSlice", "Enter", "Switch", "Unpack"),
    }
)
"""Ops whose result holds the values of their operands."""

_FORWARDING = frozenset({"Identity", "ReadVariableOp", "Enter", "Switch"})
"""Ops of TensorFlow, where types have no shapes yet, that hand on their first operand."""


def inputs_of(module: ModuleOp) -> dict[str, SSAValue]:
    """
    The inputs by tensor name: arguments of `@main`, or those of a framework's graph; of a module
    that has neither, those of each function, `double:x` for the input `x` of `@double`.

    InterpretError if the module has no function.
    """
    for op in module.body.block.ops:
        if (runner := graph_runner(op)) is not None:
            return dict(runner.inputs(op))
    if names := functions_without_main(module):
        return {
            f"{name}:{argument}": value
            for name in names
            for argument, value in _arguments(find_function(module, name))
        }
    return dict(_arguments(find_function(module, "main")))


def functions_without_main(module: ModuleOp) -> list[str]:
    """The public functions of a module, as passes have them in their tests; none beside a main."""
    ops = list(module.body.block.ops)
    if find_entry(module) is not None or any(graph_runner(op) is not None for op in ops):
        return []
    functions = [op for op in ops if isinstance(op, FuncOp) and op.body.blocks]
    if any(one.sym_name.data == "main" for one in functions):
        return []
    private = StringAttr("private")
    return [one.sym_name.data for one in functions if one.sym_visibility != private]


def _arguments(function: FuncOp) -> Iterator[tuple[str, SSAValue]]:
    arguments = function.body.block.args
    names = value_names(function.arg_attrs, len(arguments))
    return zip(names, arguments, strict=True)


def sample_inputs(
    inputs: Mapping[str, SSAValue],
    sizes: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
    choice: Choice = CHOICES[0],
) -> dict[str, NDArray[Any]]:
    """
    Arrays for inputs by tensor name.

    `sizes` gives dimension symbols their values; others get those of `choice`. An input that may
    be left out has its default, if it is of these sizes. VerifyException if an input is not a
    tensor of known rank.
    """
    generator = np.random.default_rng(seed)
    defaults = {name: default_of(value) for name, value in inputs.items()}
    known = dict(sizes or {})
    for name, default in defaults.items():
        if default is not None:
            for dim, size in zip(dims_of(inputs[name]), default.shape, strict=True):
                if dim == Expr.symbol(str(dim)):
                    known.setdefault(str(dim), size)
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in inputs.items():
        try:
            dims = dims_of(value)
        except VerifyException as error:
            raise VerifyException(f"input '{name}' of type {value.type}: {error}") from error
        for symbol in sorted(set[str]().union(*(dim.symbols for dim in dims))):
            known.setdefault(symbol, choice.sizes[len(known) % len(choice.sizes)])
        shape = [dim.evaluate(known) for dim in dims]
        if (default := defaults[name]) is not None and list(default.shape) == shape:
            arrays[name] = default.array()
            continue
        dtype = numpy_dtype(element_type(value))
        bounds = list(_bounds(value, known, set()))
        bound = max(min(bounds), 1) if bounds else choice.integers
        arrays[name] = _random(generator, dtype, shape, bound)
    return arrays


def arrays_of(
    types: Mapping[str, tuple[np.dtype[Any], Sequence[int | str]]],
    sizes: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
) -> dict[str, NDArray[Any]]:
    """
    Arrays by tensor name of which only types and shapes are known; strings in shapes are symbols or
    expressions of them. Integers are 0 or 1, for they may be indices.
    """
    generator, choice = np.random.default_rng(seed), CHOICES[0]
    known = dict(sizes or {})
    arrays: dict[str, NDArray[Any]] = {}
    for name, (dtype, shape) in types.items():
        dims = [parse_text(str(size)) for size in shape]
        for symbol in sorted(set[str]().union(*(dim.symbols for dim in dims))):
            known.setdefault(symbol, choice.sizes[len(known) % len(choice.sizes)])
        arrays[name] = _random(generator, dtype, [dim.evaluate(known) for dim in dims], 2)
    return arrays


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


def _bounds(value: SSAValue, sizes: Mapping[str, int], seen: set[SSAValue]) -> Iterator[int]:
    """One more than the largest integer that a consumer of `value` takes, for each."""
    if value in seen:
        return
    seen.add(value)
    for use in value.uses:
        op, kind = use.operation, _kind(use.operation)
        if kind in _MOVES:
            for result in op.results:
                yield from _bounds(result, sizes, seen)
        elif kind in _INDEXED and use.index == 1:
            yield from _dimensions(op.operands[0], sizes, _axis(op))
        elif kind in _INDEXED_BY_TUPLES and use.index == 1:
            yield from _dimensions(op.operands[0], sizes, None)


def _kind(op: Operation) -> _Kind:
    return op.op_type if isinstance(op, FrameworkOp) else type(op)


def _axis(op: Operation) -> int | None:
    """The axis of an index: a property, of GatherV2 a constant operand; None if it is unknown."""
    if _kind(op) == "GatherV2":
        value = op.operands[2].owner
        blob = value.properties.get("value") if isinstance(value, Operation) else None
        if not isinstance(blob, BlobAttr):
            return None
        return int.from_bytes(blob.data.data, "little", signed=True)
    attribute: Any = op.properties.get("axis")
    if attribute is None:
        return 0  # ONNX's default
    number = getattr(attribute, "value", attribute)
    return int(number.data)


def _dimensions(value: SSAValue, sizes: Mapping[str, int], axis: int | None) -> Iterator[int]:
    """The sizes of one dimension, or of all if the axis is None, as far as they are known."""
    try:
        dims = _dims(value)
    except VerifyException:
        return  # before shapes are inferred
    for dim in dims if axis is None else dims[axis : axis + 1 or None]:
        if dim.symbols <= sizes.keys():
            yield dim.evaluate(sizes)


def _dims(value: SSAValue) -> tuple[Expr, ...]:
    """Those of a value, or of what a tf1.graph has it from; VerifyException if unknown."""
    if not isinstance(value.owner, FrameworkOp):
        return dims_of(value)
    from lowerdeck.dialects.tf1.ops import VARIABLES, Tf1Op, variable_type

    while isinstance(op := value.owner, Tf1Op) and op.op_type in _FORWARDING:
        value = op.operands[0]
    if isinstance(op, Tf1Op) and op.op_type in VARIABLES:
        return dims_of(variable_type(op))
    return dims_of(value)
