"""
How an operator of ONNX Runtime is defined: by a function in onnx's text form.

    @defines("QuickGelu <alpha: float = 1.702> (X) => (Y)")
    def quick_gelu(call: Call) -> str:
        return "..."

The body may depend on the node's attributes, on which of its inputs and outputs are there, and on
what the model's weights say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias, cast

from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper, parser

from lowerdeck.dialects.onnx.convert import FunctionKey, FunctionMaker
from lowerdeck.dialects.onnx.ops import op_class
from lowerdeck.dialects.records import record
from lowerdeck.frontends.onnx.contrib.weights import ModelWeights

DOMAIN = "com.microsoft"

_HEADER = f'<domain: "{DOMAIN}", opset_import: ["" : 24, "{DOMAIN}" : 1]>\n'

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


class Call:
    """A node: which inputs and outputs it has, the values of its attributes, and its model."""

    def __init__(self, node: NodeProto, signature: FunctionProto, weights: ModelWeights) -> None:
        self.weights = weights
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

    def dims(self, name: str) -> Sequence[int]:
        """The shape of an input that is a weight; ValueError if it is computed."""
        if (found := self.weights.dims(self._inputs.get(name, ""))) is None:
            raise ValueError(f"found the input '{name}' computed, expected a weight")
        return found

    def is_weight(self, name: str) -> bool:
        """True for an input that is a weight."""
        return self.weights.dims(self._inputs.get(name, "")) is not None

    def is_float(self, name: str) -> bool:
        """True if an input of the model, or a weight, is known to have floats."""
        return self.element_type(name) in _FLOATS

    def element_type(self, name: str) -> int | None:
        """The element type, as in onnx, of such an input; None of what is computed."""
        return self.weights.element_type(self._inputs.get(name, ""))

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


@record
class _Definition:
    signature: str
    body: Body
    is_variadic: bool


_DEFINITIONS: dict[tuple[str, str], _Definition] = {}
"""By the domain and name of the operator."""

_REFUSED: dict[str, str] = {}
"""By name, what is said about operators of our domain that have no definition."""


def defines(
    signature: str, *, domain: str = DOMAIN, is_variadic: bool = False
) -> Callable[[Body], Body]:
    """
    Register what an operator is: its name, attributes with defaults, inputs and outputs, and the
    nodes that are computed for it. ValueError says that a node has no such form. If `is_variadic`
    any number of further inputs are rest_0, rest_1, ...
    """

    def register(body: Body) -> Body:
        key = domain, signature.split()[0]
        if key in _DEFINITIONS:
            raise ValueError(f"{key[1]} has two definitions")
        _DEFINITIONS[key] = _Definition(signature, body, is_variadic)
        return body

    return register


def define(text: str, *, domain: str = DOMAIN) -> None:
    """Register an operator whose nodes are always the same: a whole function."""
    signature, _, body = text.partition("{")
    defines(signature.strip(), domain=domain)(lambda call: body.rpartition("}")[0])


def refuse(names: str, what: str, instead: str) -> None:
    """Register operators without a definition: what they are, and what to do instead."""
    for name in names.split():
        if (DOMAIN, name) in _DEFINITIONS or name in _REFUSED:
            raise ValueError(f"{name} has a definition or is refused already")
        _REFUSED[name] = f"'{DOMAIN}.{name}' {what}; {instead}"


def is_defined(domain: str, op_type: str) -> bool:
    """True for an operator that has a definition."""
    return (domain, op_type) in _DEFINITIONS


def function_makers(
    domains: Container[str], weights: ModelWeights
) -> Mapping[FunctionKey, FunctionMaker]:
    """What makes the function for a node, or says why there is none, of all in some domains."""
    found: dict[FunctionKey, FunctionMaker] = {
        (domain, name, ""): partial(_function, (domain, name), weights)
        for domain, name in _DEFINITIONS
        if domain in domains
    }
    if DOMAIN in domains:
        for name, message in _REFUSED.items():
            if op_class(DOMAIN, name, 1) is None:  # a plugin may define it
                found[DOMAIN, name, ""] = partial(_refuse, message)
    return found


def _refuse(message: str, node: NodeProto) -> FunctionProto:
    del node
    raise ValueError(message)


def operators() -> Sequence[tuple[str, str]]:
    """The domain and name of each operator that has a definition."""
    return sorted(_DEFINITIONS)


def number(value: float) -> str:
    """A float in the text of a function."""
    if not math.isfinite(value):
        raise ValueError(f"found the parameter {value}, expected a number")
    return f"{value:.9e}"


def scales(*names: str) -> str:
    """Nodes for `{name}_number` of each scale: the same, refused if it is known and not above 0."""
    return "\n".join(
        f"""
        {name}_row = Constant <value_ints = [-1]> ()
        {name}_flat = Reshape ({name}, {name}_row)
        {name}_count = Shape ({name}_flat)
        {name}_one = Constant <value = int8 {{1}}> ()
        {name}_ones = Expand ({name}_one, {name}_count)
        {name}_checked = DequantizeLinear <axis = 0> ({name}_ones, {name}_flat)
        {name}_shape = Shape ({name})
        {name}_number = Reshape ({name}_checked, {name}_shape)"""
        for name in names
    )


def _function(key: tuple[str, str], weights: ModelWeights, node: NodeProto) -> FunctionProto:
    known, call = _DEFINITIONS[key], Call(node, _signature(key), weights)
    function = _parsed(known.signature, known.body(call))
    if known.is_variadic:
        function.input.extend(f"rest_{k}" for k in range(call.rest))
    return function


@cache
def _signature(key: tuple[str, str]) -> FunctionProto:
    return _parsed(_DEFINITIONS[key].signature)


def _parsed(signature: str, body: str = "") -> FunctionProto:
    parse: Any = cast(Any, parser).parse_function
    return parse(f"{_HEADER}{signature} {{ {body} }}")
