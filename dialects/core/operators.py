"""
Operators from outside: what the compiler has to know of one, and the register of all.

`core.custom` applies them; plugins register them. An operator gives the types of its results and
their values in numpy, and to be compiled either a decomposition to ops of core or a C function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import Tensor
from lowerdeck.dialects.dims import ExprLike

Parameter: TypeAlias = "int | float | str | list[int] | list[float]"
Parameters: TypeAlias = Mapping[str, Any]
"""The values of all attributes of an operator: each a Parameter of the type that it declares."""
Declared: TypeAlias = "Parameter | type | GenericAlias"
"""An attribute: its default, or its type if it has none."""
Infer: TypeAlias = Callable[[Sequence[Tensor], Parameters], Sequence[Tensor]]
Compute: TypeAlias = Callable[[Sequence[NDArray[Any]], Parameters], Sequence[NDArray[Any]]]
Decompose: TypeAlias = Callable[[Any, Sequence[SSAValue], Parameters], Sequence[SSAValue]]
"""The first argument is a `passes.legalize.builder.CoreBuilder`."""
Workspace: TypeAlias = Callable[[Sequence[Tensor], Parameters], ExprLike]

KINDS: Mapping[object, str] = {
    int: "INT",
    float: "FLOAT",
    str: "STRING",
    list[int]: "INTS",
    list[float]: "FLOATS",
}
"""What ONNX calls the types of attributes."""

_DOMAIN = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z]\w*", re.ASCII)


@dataclass(frozen=True, eq=False, kw_only=True)
class CFunction:
    """
    A function in C that computes an operator.

    It takes three arguments for each input, then for each output: a pointer to the elements, which
    lie in row-major order without gaps, one to the sizes of the dimensions (`const int64_t *`), and
    their number (`int64_t`); for an optional input that is absent these are null, null and 0. Then
    a pointer to the `workspace` (`uint8_t *`), if there is any, and the `parameters`. It returns
    nothing. No output overlaps anything else. It is called by one thread at a time for one run;
    other runs may call it meanwhile, so it keeps no state.
    """

    name: str
    source: str
    """C99 that defines the function as `static`; it becomes part of the C of a model, once."""
    parameters: Sequence[str] = ()
    """Attributes that are arguments, in order: `int64_t`, `double`, `const char *`, or a pointer to
    `int64_t` or `double` and their number as `int64_t`."""
    workspace: Workspace | None = None
    """The bytes of memory that it needs besides, aligned to 64, from the types of the inputs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CustomOperator:
    """An operator from outside: `com.acme.SoftClip` is SoftClip of the domain com.acme."""

    domain: str
    op_type: str
    infer: Infer
    """The types of the results; ValueError (or VerifyException) if those of the inputs are wrong.
    Dimensions follow from those of the inputs and from attributes, never from data."""
    compute: Compute
    """The meaning: the values of the results, of exactly these types."""
    inputs: Sequence[str] = ("X",)
    optional_inputs: Sequence[str] = ()
    """Inputs after the others that a node may leave out, from the last one on."""
    outputs: Sequence[str] = ("Y",)
    attributes: Mapping[str, Declared] = field(default_factory=dict[str, Any])
    """By name: the default, or the type of one that a node must have (`int`, `list[float]`)."""
    decompose: Decompose | None = None
    """Builds ops of core; the values that replace the results, of their types."""
    c_function: CFunction | None = None

    def __post_init__(self) -> None:
        """ValueError for a definition that contradicts itself."""
        if not _DOMAIN.fullmatch(self.domain) or not _IDENTIFIER.fullmatch(self.op_type):
            raise ValueError(f"'{self.name}': expected a domain and a name like com.acme.SoftClip")
        if self.decompose is not None and self.c_function is not None:
            raise ValueError(f"{self.name}: a decomposition and a C function exclude each other")
        for name in self.attributes:
            if self.type_of(name) not in KINDS:
                raise ValueError(f"{self.name}: attribute '{name}' has no type that ONNX has")
        function = self.c_function
        if function is None:
            return
        name, text = function.name, function.source
        if not _IDENTIFIER.fullmatch(name):
            raise ValueError(f"{self.name}: '{name}' is no identifier of C")
        if not re.search(rf"\bstatic\b[^;{{}}]*\b{name}\s*\(", text):
            raise ValueError(f"{self.name}: its C defines no static function {name}")
        if unknown := [one for one in function.parameters if one not in self.attributes]:
            raise ValueError(f"{self.name}: the C takes '{unknown[0]}', which is no attribute")

    @property
    def name(self) -> str:
        """The name with the domain, by which `core.custom` refers to the operator."""
        return f"{self.domain}.{self.op_type}"

    @property
    def next_step(self) -> str:
        """What to do if it cannot be compiled; empty if it can."""
        if self.decompose is not None or self.c_function is not None:
            return ""
        return f"give the CustomOperator {self.name} a `c_function` or a `decompose`"

    def type_of(self, attribute: str) -> object:
        """The type of an attribute, one of KINDS."""
        value = self.attributes[attribute]
        if isinstance(value, list):
            return list[int] if all(isinstance(one, int) for one in value) else list[float]
        return value if isinstance(value, type | GenericAlias) else type(value)


OPERATORS: dict[str, CustomOperator] = {}
"""All operators from outside, by name."""


def operator_of(domain: str, op_type: str) -> CustomOperator | None:
    """The operator of a node, if it is one from outside."""
    return OPERATORS.get(f"{domain}.{op_type}")


# Parameters as attributes of an op


def to_attributes(parameters: Parameters) -> DictionaryAttr:
    """Parameters as a property."""
    return DictionaryAttr({name: _to_attribute(value) for name, value in parameters.items()})


def _to_attribute(value: Parameter) -> Attribute:
    match value:
        case str():
            return StringAttr(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case _:
            is_ints = all(isinstance(one, int) for one in value)
            type_ = cast(Any, i64 if is_ints else f64)
            return cast(Attribute, DenseArrayBase.from_list(type_, cast(Any, value)))


def from_attributes(attributes: DictionaryAttr) -> dict[str, Any]:
    """Parameters from a property; ValueError names one that is none."""
    return {name: _from_attribute(name, value) for name, value in attributes.data.items()}


def _from_attribute(name: str, value: Attribute) -> Parameter:
    match value:
        case StringAttr():
            return value.data
        case IntegerAttr() | FloatAttr():
            return cast(Any, value).value.data
        case DenseArrayBase():
            return list(cast(Any, value).get_values())
        case _:
            raise ValueError(f"parameter '{name}' is {value}")
