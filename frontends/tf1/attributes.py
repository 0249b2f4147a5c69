"""From AttrValue to attributes of the dialect, checked against an operator's signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import f32, i1
from lowerdeck.dialects.numbers import dense_floats, dense_ints
from lowerdeck.dialects.tf1.attributes import DTypeAttr, shape_attr
from lowerdeck.dialects.tf1.ops import COUNT_LIMIT
from lowerdeck.dialects.tf1.signatures import Signature
from lowerdeck.frontends.tf1.graph_pb2 import (
    AttrValue,
    NameAttrList,
    NodeDef,
    TensorShapeProto,
)
from lowerdeck.frontends.tf1.tensors import dtype_name, shape_dims

Report = Callable[[str], None]
Resolve = Callable[[NameAttrList], str]
"""The symbol of a function with values for its attributes; ValueError if there is none."""

_KINDS: dict[str, str] = {
    "s": "string",
    "i": "int",
    "f": "float",
    "b": "bool",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
"""The kind of attribute that a field of AttrValue holds."""


def node_attributes(
    node: NodeDef, signature: Signature, report: Report, resolve: Resolve
) -> dict[str, Attribute] | None:
    """
    The attributes of a node except for its tensors; None if something is wrong with them.

    Those that begin with `_` are remarks for TensorFlow's own passes and left out.
    """
    is_valid, found = True, dict[str, Attribute]()

    def refuse(message: str) -> None:
        nonlocal is_valid
        is_valid = False
        report(message)

    for name in sorted(node.attr):
        if name.startswith("_"):
            continue
        definition = signature.attrs.get(name)
        if definition is None:
            known = ", ".join(sorted(signature.attrs)) or "none"
            refuse(f"found the attribute '{name}', expected only {known}")
        elif problem := _kind_problem(node.attr[name], definition.kind):
            refuse(f"attribute '{name}' is {problem}, expected {definition.kind}")
        elif definition.kind != "tensor":
            try:
                found[name] = _attribute(node.attr[name], definition.kind, resolve)
            except ValueError as error:
                refuse(f"attribute '{name}': {error}")
    for name, definition in signature.attrs.items():
        if not definition.has_default and name not in node.attr:
            refuse(f"the attribute '{name}' is missing, expected a {definition.kind}")
    for argument in (*signature.inputs, *signature.outputs):
        count = found.get(argument.number_attr or "")
        if isinstance(count, IntegerAttr) and not 0 <= count.value.data <= COUNT_LIMIT:
            number = count.value.data
            refuse(f"attribute '{argument.number_attr}' is {number}, expected 0 to {COUNT_LIMIT}")
    return found if is_valid else None


def _kind_problem(value: AttrValue, kind: str) -> str:
    """What kind of value was found if it is not of the expected one, else nothing."""
    if has_unknown_fields(value):
        return "of a kind that is not known, or damaged"
    which = cast("str | None", value.WhichOneof("value"))
    if which is None:
        return "without a value"
    if which == "placeholder":
        return f"the placeholder '{value.placeholder}' of a function"
    if which != "list":
        found = _KINDS[which]
        return "" if found == kind else f"a value of kind {found}"
    if not kind.startswith("list("):
        return "a list"
    others = [_KINDS[field.name] for field, _ in value.list.ListFields()]
    wrong = [other for other in others if f"list({other})" != kind]
    return f"a list of {wrong[0]}" if wrong else ""


def has_unknown_fields(message: Message) -> bool:
    """True if a field in `message`, at any depth, is not one of its definition."""
    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        nested = value.values() if field.message_type.GetOptions().map_entry else value
        repeated = nested if _is_repeated(field) else [value]
        if any(isinstance(item, Message) and has_unknown_fields(item) for item in repeated):
            return True
    return False


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _attribute(value: AttrValue, kind: str, resolve: Resolve) -> Attribute:
    """ValueError if the value has no meaning."""
    if not kind.startswith("list("):
        field = cast(str, value.WhichOneof("value"))
        return _scalar(getattr(value, field), kind, resolve)
    fields = value.list.ListFields()
    items = cast(Sequence[Any], fields[0][1]) if fields else ()
    match kind:
        case "list(int)":
            return cast(Attribute, dense_ints(items))
        case "list(float)":
            return cast(Attribute, dense_floats(items))
        case _:
            return _list(items, kind[len("list(") : -1], resolve)


def _list(items: Sequence[Any], kind: str, resolve: Resolve) -> Attribute:
    """The list of attributes; equal ones are one object, however many there are."""
    made: dict[Any, Attribute] = {}
    attributes: list[Attribute] = []
    for item in items:
        key = item.SerializeToString(deterministic=True) if isinstance(item, Message) else item
        if (attribute := made.get(key)) is None:
            attribute = made[key] = _scalar(item, kind, resolve)
        attributes.append(attribute)
    return ArrayAttr(attributes)


def _scalar(value: Any, kind: str, resolve: Resolve) -> Attribute:
    match kind:
        case "int":
            return IntegerAttr(value, 64)
        case "bool":
            return IntegerAttr(int(value), i1)
        case "float":
            return FloatAttr(value, f32)
        case "string":
            return StringAttr(cast(bytes, value).decode("latin-1"))
        case "type":
            return DTypeAttr(dtype_name(value))
        case "shape":
            return shape_attr(shape_dims(cast(TensorShapeProto, value)))
        case "func":
            return SymbolRefAttr(resolve(cast(NameAttrList, value)))
        case _:
            raise ValueError(f"values of kind {kind} are not supported here")
