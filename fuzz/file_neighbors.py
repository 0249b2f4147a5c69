"""
Neighbors of model files: one tensor of another rank, size or type, one list of another length, one
number at its limits, one field or operand less or more. Unlike the damage of `file_mutants` this is
all there is of each kind, for one model of each combination of operators.
"""

from __future__ import annotations

import contextlib
import math
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import Any, cast

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import numpy_helper as arrays

from fuzz.file_mutants import Mutant, is_map, message_kind, messages, parsed, serialized
from fuzz.file_seeds import Seed
from fuzz.file_trees import Path, Tree, changed, neighbors, tree_of, written
from lowerdeck.frontends.tf1.graph_pb2 import DataType

Change = tuple[str, Callable[[Any], None]]
"""What is done to a part of a message, and that."""

Step = tuple[str, Callable[[Seed, str], bytes]]
"""What is done to a file, and what the file is then."""

_SHAPES = (
    *((), (0,), (1,), (2,), (5,), (2, 3), (0, 2), (3, 0, 2), (2, 1, 3)),
    *((1, 2, 3, 4), (1, 1, 1, 1), (1, 0, 3, 3), (1, 2, 1, 3, 2), (1, 1, 2, 1, 2, 1)),
)
_STRIDE = 1_000_003
_MOST_PARTS = 60
"""Of one file: those that follow repeat them."""


class Neighbors:
    """All neighbors of the models, in the same order each time."""

    def __init__(self, seeds: Sequence[Seed]) -> None:
        first = {_operators(seed): seed for seed in reversed(seeds)}
        self._files = [
            (seed, file) for seed in reversed(first.values()) for file in sorted(seed.files)
        ]
        counts = [len(_steps(seed, file)) for seed, file in self._files]
        self._ends = list(accumulate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def mutant(self, number: int) -> Mutant:
        """The neighbor of this number; those that follow each other are of different models."""
        place = number * _STRIDE % len(self)
        index = bisect_right(self._ends, place)
        seed, file = self._files[index]
        steps = _steps(seed, file)
        what, step = steps[place - self._ends[index]]
        files = {**seed.files, file: step(seed, file)}
        return Mutant(number, seed, files, file, (what,))


def _message(seed: Seed, file: str) -> Any:
    kind = message_kind(seed, file)
    return None if kind is None else parsed(kind, file, seed.files[file])


def _operators(seed: Seed) -> object:
    """What a model has to be different in from those that were there before."""
    message = _message(seed, seed.entry)
    if message is None or seed.format not in ("onnx", "quantized", "tf1"):
        return seed.format, seed.name
    if seed.format == "tf1":
        return seed.format, frozenset(node.op for node in message.node)
    return (
        seed.format,
        bool(message.graph.initializer),
        tuple(o.version for o in message.opset_import),
        frozenset(node.op_type for node in message.graph.node),
    )


def _steps(seed: Seed, file: str) -> Sequence[Step]:
    """What can be done to a file."""
    message = _message(seed, file)
    if message is None:
        tree = tree_of(seed, file)
        return (
            []
            if tree is None
            else [
                (what, partial(_written_tree, path=path, step=step))
                for path, what, step in neighbors(tree)
            ]
        )
    steps: list[Change] = []
    parts = [(at, list(_changes(part))) for at, part in enumerate(messages(message))]
    for at, changes in [(at, changes) for at, changes in parts if changes][:_MOST_PARTS]:
        steps += [(what, _at(at, change)) for what, change in changes]
    steps += [
        (f"type {old} is {new}", partial(_swap, old=old, new=new)) for old, new in _swaps(message)
    ]
    return [(what, partial(_written, change=change)) for what, change in steps]


def _written(seed: Seed, file: str, change: Callable[[Any], None]) -> bytes:
    message = _message(seed, file)
    with contextlib.suppress(TypeError, ValueError, IndexError, AttributeError, OverflowError):
        change(message)
    return serialized(file, message)


def _written_tree(seed: Seed, file: str, path: Path, step: Callable[[Tree], Tree]) -> bytes:
    """The file as it is, where it can not hold what the step makes."""
    try:
        return written(seed, file, changed(tree_of(seed, file), path, step))
    except (struct.error, LookupError, AttributeError, ValueError, TypeError, OverflowError):
        return seed.files[file]


def _at(position: int, change: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda message: change(next(islice(messages(message), position, None)))


def _changes(part: Any) -> Iterator[Change]:
    """The changes to one message (without those in it)."""
    match part.DESCRIPTOR.name:
        case "TensorShapeProto" | "BlobShape":
            for shape in _SHAPES:
                yield f"shape {shape}", lambda part, shape=shape: _set_shape(part, shape)
            return
        case "TensorProto":
            for shape in _SHAPES:
                yield f"shape {shape}", lambda part, shape=shape: _fill(part, shape)
            for number in (-1, 2, 7):
                yield f"all {number}", lambda part, number=number: _fill(part, None, number)
            return
        case "Tensor":
            yield "no shape", lambda part: part.ClearField("shape")
        case _:
            pass
    for field, value in part.ListFields():
        if not is_map(field) and field.name not in _NAMES:
            yield from _changes_of_field(field, value)


_NAMES = frozenset(
    (
        *("name", "op", "op_type", "output", "domain", "key", "dim_param", "versions"),
        *("doc_string", "producer_name", "ir_version", "opset_import", "value_info", "raw_data"),
    )
)
"""Fields that are not changed."""


def _changes_of_field(field: FieldDescriptor, value: Any) -> Iterator[Change]:
    name = field.name
    yield f"no {name}", lambda part: part.ClearField(name)
    if field.is_repeated:
        yield f"less {name}", lambda part: getattr(part, name).__delitem__(-1)
        yield f"without the first {name}", lambda part: getattr(part, name).__delitem__(0)
        if field.message_type is None:
            for times in (1, 2, 7):
                yield (
                    f"more {name}",
                    lambda part, times=times: getattr(part, name).extend(
                        [getattr(part, name)[-1]] * times
                    ),
                )
        else:
            yield f"twice {name}", lambda part: getattr(part, name).add().CopyFrom(value[-1])
    if field.message_type is not None:
        return
    for other in _others(field):
        if field.is_repeated:
            for at in sorted({0, len(value) - 1}):
                yield (
                    f"{name} {other}",
                    lambda part, at=at, other=other: getattr(part, name).__setitem__(at, other),
                )
            yield (
                f"all {name} {other}",
                lambda part, other=other: getattr(part, name).__setitem__(
                    slice(None), [other] * len(value)
                ),
            )
        else:
            yield f"{name} {other}", lambda part, other=other: setattr(part, name, other)


def _others(field: FieldDescriptor) -> Sequence[Any]:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return (False, True)
        case FieldDescriptor.CPPTYPE_ENUM:
            if cast(Any, field.enum_type).name == "DataType":
                return ()
            numbers = [value.number for value in cast(Any, field.enum_type).values]
            return [number for number in numbers if number < 100]
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return (0.0, -1.0, math.nan, math.inf, 1e38)
        case FieldDescriptor.CPPTYPE_STRING:
            return (b"", b"x") if field.type == FieldDescriptor.TYPE_BYTES else ("", "x")
        case FieldDescriptor.CPPTYPE_UINT32 | FieldDescriptor.CPPTYPE_UINT64:
            return (0, 1, 2, 5, 2**31)
        case _:
            return (-(2**31), -7, -1, 0, 1, 2, 5, 2**31 - 1)


# Shapes and types


def _is_onnx(part: Any) -> bool:
    return part.DESCRIPTOR.full_name.startswith("onnx.")


def _set_shape(part: Any, shape: Sequence[int]) -> None:
    del part.dim[:]
    for size in shape:
        if part.DESCRIPTOR.name == "BlobShape":
            part.dim.append(size)
        elif _is_onnx(part):
            part.dim.add(dim_value=size)
        else:
            part.dim.add(size=size)


def _fill(part: Any, shape: Sequence[int] | None, number: int = 1) -> None:
    """Give a tensor this shape, if it is given, and this number everywhere."""
    if _is_onnx(part):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(part.data_type)
        dims = list(part.dims) if shape is None else shape
        array = np.full(dims, b"1" if dtype.kind == "O" else number).astype(dtype)
        part.CopyFrom(arrays.from_array(array, part.name))
        return
    for field, _ in part.ListFields():
        if field.name.endswith("_val") or field.name == "tensor_content":
            part.ClearField(field.name)
    values = getattr(part, _VALUES.get(part.dtype, "int_val"))
    values.append(float(number) if part.dtype in (1, 2) else number)
    if shape is not None:
        _set_shape(part.tensor_shape, shape)


_VALUES = {1: "float_val", 2: "double_val", 9: "int64_val", 10: "bool_val", 19: "half_val"}

_ONNX_TYPES = (1, 2, 3, 6, 7, 9, 10, 11, 16, 8, 14)
_TF1_TYPES = tuple(
    getattr(DataType, f"DT_{name}")
    for name in "FLOAT DOUBLE INT8 UINT8 INT32 INT64 BOOL HALF BFLOAT16 STRING COMPLEX64".split()
)


def _type_fields(part: Any) -> Iterator[str]:
    """The fields with an element type."""
    for field, _ in part.ListFields():
        kind = field.enum_type
        is_number = field.message_type is None and not field.is_repeated
        if is_number and (
            field.name in ("elem_type", "data_type") or (kind and kind.name == "DataType")
        ):
            yield field.name


def _swaps(message: Any) -> Iterator[tuple[int, int]]:
    """The types that are there, and what each may be instead."""
    there = sorted({getattr(part, n) for part in messages(message) for n in _type_fields(part)})
    others = _ONNX_TYPES if _is_onnx(message) else _TF1_TYPES
    yield from ((old, new) for old in there for new in others if new != old)


def _swap(message: Any, old: int, new: int) -> None:
    """Have all of a message one type instead of the other."""
    for part in list(messages(message)):
        for name in [name for name in _type_fields(part) if getattr(part, name) == old]:
            setattr(part, name, new)
            if part.DESCRIPTOR.name == "TensorProto":
                with contextlib.suppress(TypeError, ValueError):
                    _fill(part, None)
