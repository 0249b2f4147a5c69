"""Operators of PyTorch applied to values of `core`, for frameworks that have the same ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.pt2.ops import op_class
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.walk import listed
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import handler_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


def aten(
    builder: Legalizer, target: str, elements: Sequence[Attribute], /, **arguments: Any
) -> list[SSAValue | None]:
    """
    What an overload gives, by its name without `aten.`, for arguments that are values, lists of
    values, or plain. `elements` are the element types of the results.
    """
    cls, handler = op_class(f"aten.{target}"), handler_of(f"aten.{target}")
    assert cls is not None
    assert handler is not None
    given = {name: _given(builder, value) for name, value in arguments.items()}
    op = cls(given, [UnrankedTensorType(element) for element in elements])
    op.location = builder.location
    Rewriter.insert_op(op, builder.point)
    try:
        inner = Pt2Legalizer(op, builder.symbols)
        inner.created = builder.created
        inner.wants = _wants(builder, len(elements))
        found = listed(handler(inner))
        for value, element in zip(found, elements, strict=False):
            if value is not None and element_type(value) != element:
                builder.refuse(f"a result of {element_type(value)}", f"{element}")
    finally:
        op.detach()
        op.erase()
    return [*found, *[None] * len(elements)][: len(elements)]


def aten_of(
    builder: Legalizer, target: str, element: Attribute, *operands: SSAValue, **arguments: Any
) -> list[SSAValue]:
    """
    What an overload with one result gives for its first operands, in order. Arguments that are
    None, or that it does not have, are left out.
    """
    cls = op_class(f"aten.{target}")
    assert cls is not None
    names = cls.schema.arguments
    given = {name: v for name, v in arguments.items() if name in names and v is not None}
    (found,) = aten(builder, target, [element], **dict(zip(names, operands, strict=False)), **given)
    assert found is not None
    return [found]


def torch_value(
    builder: Legalizer, target: str, element: Attribute, *operands: SSAValue, **arguments: Any
) -> TensorValue:
    """What an overload with one result gives, as `aten_of`, for arithmetic."""
    (found,) = aten_of(builder, target, element, *operands, **arguments)
    return TensorValue(builder, found)


def _wants(builder: Legalizer, count: int) -> Callable[[int], bool]:
    """Which results are computed: those of the op that has as many, or all of them."""
    if isinstance(builder, ArgumentsLegalizer) and len(builder.op.results) == count:
        return builder.wants
    return lambda index: index < count


def _given(builder: Legalizer, value: Any) -> Given:
    if isinstance(value, SSAValue):
        return cast("SSAValue", value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, SSAValue) for item in items):
            return [
                builder.dims([item], []) if isinstance(item, int) else cast("SSAValue | None", item)
                for item in items
            ]
    return plain_attribute(value)
