"""
How an operator of ONNX Runtime is defined: by a function in onnx's text form.

    @defines("QuickGelu <alpha: float = 1.702> (X) => (Y)")
    def quick_gelu(call: Call) -> str:
        return "..."

The body may depend on the node's attributes, and on which of its inputs and outputs are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias, cast

from onnx import AttributeProto, FunctionProto, NodeProto, helper, parser

from lowerdeck.dialects.onnx.convert import FunctionKey, FunctionMaker

DOMAIN = "com.microsoft"

_HEADER = f'<domain: "{DOMAIN}", opset_import: ["" : 24, "{DOMAIN}" : 1]>\n'


class Call:
    """A node: which inputs and outputs it has, and the values of its attributes."""

    def __init__(self, node: NodeProto, signature: FunctionProto) -> None:
        self._inputs = dict(zip(signature.input, node.input, strict=False))
        self.rest = len(node.input) - len(signature.input)
        """How many inputs come after those of the signature."""
        self._outputs = dict(zip(signature.output, node.output, strict=False))
        self._attributes = {one.name: one for one in signature.attribute_proto}
        known = {*self._attributes, *signature.attribute}
        for one in node.attribute:
            if one.name not in known:
                expected = ", ".join(sorted(known)) or "none"
                raise ValueError(f"found attribute '{one.name}', expected one of: {expected}")
            self._attributes[one.name] = one
        self._given = {one.name for one in node.attribute}
        if missing := sorted(known - self._attributes.keys()):
            raise ValueError(f"the required attribute '{missing[0]}' is missing")

    def has(self, name: str) -> bool:
        """True if the node has this input."""
        return bool(self._inputs.get(name))

    def wants(self, name: str) -> bool:
        """True if the node has this output."""
        return bool(self._outputs.get(name))

    def gives(self, name: str) -> bool:
        """True if the node has this attribute."""
        return name in self._given

    def int(self, name: str) -> int:
        """An attribute, or its default in the signature; so for the other kinds."""
        return self._value(name, AttributeProto.INT)

    def float(self, name: str) -> float:
        return self._value(name, AttributeProto.FLOAT)

    def string(self, name: str, *among: str) -> str:
        """One of `among`, if that is given."""
        found = self._value(name, AttributeProto.STRING).decode(errors="replace")
        if among and found not in among:
            raise ValueError(f"attribute '{name}' is '{found}', expected one of {', '.join(among)}")
        return found

    def ints(self, name: str) -> list[int]:
        return list(self._value(name, AttributeProto.INTS))

    def floats(self, name: str) -> list[float]:
        return list(self._value(name, AttributeProto.FLOATS))

    def strings(self, name: str) -> list[str]:
        found: list[bytes] = self._value(name, AttributeProto.STRINGS)
        return [one.decode(errors="replace") for one in found]

    def _value(self, name: str, kind: Any) -> Any:
        found = self._attributes[name]
        if found.type != kind:
            names = AttributeProto.AttributeType.Name
            raise ValueError(
                f"attribute '{name}' is of kind {names(found.type)}, expected {names(kind)}"
            )
        return helper.get_attribute_value(found)


Body: TypeAlias = Callable[[Call], str]


@dataclass(frozen=True)
class _Definition:
    signature: str
    body: Body
    domain: str
    is_variadic: bool


_DEFINITIONS: dict[str, _Definition] = {}


def defines(
    signature: str, *, domain: str = DOMAIN, is_variadic: bool = False
) -> Callable[[Body], Body]:
    """
    Register what an operator is: its name, attributes with defaults, inputs and outputs, and the
    nodes that are computed for it. ValueError says that a node has no such form. If `is_variadic`
    any number of further inputs are rest_0, rest_1, ...
    """

    def register(body: Body) -> Body:
        name = signature.split()[0]
        if name in _DEFINITIONS:
            raise ValueError(f"{name} has two definitions")
        _DEFINITIONS[name] = _Definition(signature, body, domain, is_variadic)
        return body

    return register


def define(text: str) -> None:
    """Register an operator whose nodes are always the same: a whole function."""
    signature, _, body = text.partition("{")
    defines(signature.strip())(lambda call: body.rpartition("}")[0])


def is_defined(domain: str, op_type: str) -> bool:
    """True for an operator that has a definition."""
    return op_type in _DEFINITIONS and _DEFINITIONS[op_type].domain == domain


def function_makers(domains: Container[str]) -> Mapping[FunctionKey, FunctionMaker]:
    """What makes the function for a node, of each operator of some domains."""
    return {
        (known.domain, name, ""): partial(_function, name)
        for name, known in _DEFINITIONS.items()
        if known.domain in domains
    }


def number(value: float) -> str:
    """A float in the text of a function."""
    if not math.isfinite(value):
        raise ValueError(f"found the parameter {value}, expected a number")
    return f"{value:.9e}"


def _function(name: str, node: NodeProto) -> FunctionProto:
    known, call = _DEFINITIONS[name], Call(node, _signature(name))
    function = _parsed(known.signature, known.body(call))
    if known.is_variadic:
        function.input.extend(f"rest_{k}" for k in range(call.rest))
    return function


@cache
def _signature(name: str) -> FunctionProto:
    return _parsed(_DEFINITIONS[name].signature)


def _parsed(signature: str, body: str = "") -> FunctionProto:
    parse: Any = cast(Any, parser).parse_function
    return parse(f"{_HEADER}{signature} {{ {body} }}")
