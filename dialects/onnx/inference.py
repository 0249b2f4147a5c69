"""Result types of onnx ops as far as the schema tells: kinds and element types, never shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, UnrankedTensorType
from xdsl.ir import Attribute, Region, SSAValue

from lowerdeck.dialects.core.types import OptionalType, SequenceType
from lowerdeck.dialects.onnx.ops import (
    NONE,
    Formal,
    OnnxOp,
    YieldOp,
    formal_of,
    is_variadic,
)
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.dialects.onnx.types import (
    UNTYPED,
    element_from_proto,
    type_from_string,
    type_string,
    without_rank,
)


def result_types(
    cls: type[OnnxOp],
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
    regions: Sequence[Region],
    present: Sequence[bool],
) -> list[Attribute]:
    """The types of the results; absent ones (`present` is false) have type none."""
    if regions:
        types = _region_results(cls, operands, regions, len(present))
    else:
        types = _schema_results(cls, operands, properties, len(present))
    return [type_ if there else NONE for type_, there in zip(types, present, strict=True)]


def _schema_results(
    cls: type[OnnxOp],
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
    count: int,
) -> list[Attribute]:
    value = properties.get("value")
    if isinstance(value, TensorAttr) and cls.schema.name == "Constant":
        return [cast(Attribute, value.type)]
    if cls.schema.name in _CONTAINERS and operands:
        return [_CONTAINERS[cls.schema.name](without_rank(operands[0].type))] * count
    bound = _bindings(cls, tuple([operand.type for operand in operands]))
    chosen = _chosen_element(properties)
    types: list[Attribute] = []
    for index in range(count):
        formal = formal_of(cls.schema.outputs, index)
        if formal is None:
            types.append(UNTYPED)
        elif formal.type_str in bound:
            types.append(bound[formal.type_str])
        elif len(formal.types) == 1:
            types.append(type_from_string(next(iter(formal.types))))
        else:
            types.append(_of_kind(formal, chosen))
    return types


def _content(type_: Attribute) -> Attribute:
    """What a sequence or a present optional value holds."""
    return type_.element if isinstance(type_, SequenceType | OptionalType) else type_


_CONTAINERS: Mapping[str, Callable[[Attribute], Attribute]] = {
    "SequenceConstruct": SequenceType,
    "SplitToSequence": SequenceType,
    "SequenceAt": _content,
    "ConcatFromSequence": _content,
    "Optional": OptionalType,
    "OptionalGetElement": _content,
}
"""Result types of the operators that put their first operand into a container or out of it."""


@lru_cache(maxsize=1 << 12)
def _bindings(cls: type[OnnxOp], operands: tuple[Attribute, ...]) -> Mapping[str, Attribute]:
    """What the operands' types make of the schema's type variables."""
    bound: dict[str, Attribute] = {}
    for index, type_ in enumerate(operands):
        formal = formal_of(cls.schema.inputs, index)
        if formal is None or (is_variadic(formal) and not formal.is_homogeneous):
            continue
        if type_string(type_) is not None:
            bound.setdefault(formal.type_str, without_rank(type_))
    return bound


def _chosen_element(properties: Mapping[str, Attribute]) -> Attribute | None:
    """The element type that an attribute asks for: Cast's `to`, EyeLike's `dtype`."""
    value = properties.get("value")
    if isinstance(value, TensorAttr):
        return value.type.element_type
    for name in ("to", "dtype", "output_datatype", "output_dtype"):
        if isinstance(value := properties.get(name), IntegerAttr):
            try:
                return element_from_proto(cast(Any, value).value.data)
            except ValueError:
                return None
    return None


def _of_kind(formal: Formal, element: Attribute | None) -> Attribute:
    """The tensor or sequence type with this element type, whichever the formal result allows."""
    if element is None:
        return UNTYPED
    for type_ in (UnrankedTensorType(element), SequenceType(UnrankedTensorType(element))):
        if type_string(type_) in formal.types:
            return type_
    return UNTYPED


def _region_results(
    cls: type[OnnxOp], operands: Sequence[SSAValue], regions: Sequence[Region], count: int
) -> list[Attribute]:
    """Results of If, Loop, Scan and SequenceMap follow from what their subgraphs yield."""
    if not regions[0].blocks:
        return [UNTYPED] * count
    yielded = [without_rank(type_) for type_ in _yielded(regions[0])]
    match cls.schema.name:
        case "If":
            other = [without_rank(type_) for type_ in _yielded(regions[1])]
            types = [a if a == b else UNTYPED for a, b in zip(yielded, other, strict=False)]
        case "Loop":
            types = yielded[1:]
        case "Scan":
            types = yielded
        case _:
            types = []
    return [*types, *[UNTYPED] * count][:count]


def _yielded(region: Region) -> Sequence[Attribute]:
    last = region.block.last_op
    return last.values.types if isinstance(last, YieldOp) else ()
