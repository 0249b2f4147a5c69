"""
The table of operators, `ops.txt`: a schema of PyTorch a line, as its own sources write them.
Objects of packed weights, which quantized layers take, are their tensors there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from xdsl.ir import SSAValue, TypeAttribute

from lowerdeck.dialects.arguments import Argument, Schema

_ALIAS = re.compile(r"\([a-z!|*> -]+\)")
_ARGUMENT = re.compile(r"(?P<type>\S+) (?P<name>\w+)(?:=(?P<default>.*))?")


CONTROL_FLOW = frozenset(
    f"higher_order.{name}"
    for name in (
        "cond",
        "while_loop",
        "scan",
        "map_impl",
        "wrap_with_set_grad_enabled",
        "wrap_with_autocast",
    )
)
"""Operators that call graphs."""


_AROUND = "constant reflect replicate circular"
_WORDS = {
    name: tuple(words.split())
    for name, words in {
        "approximate": "none tanh",
        "indexing": "ij xy",
        "interpolation": "linear lower higher midpoint nearest",
        "mode": _AROUND,
        "norm": "backward forward ortho",
        "pad_mode": _AROUND,
        "padding": "valid same",
        "padding_side": "left right",
        "rounding_mode": "floor trunc",
        "side": "left right",
        "index_reduce": "prod mean amax amin",
        "scatter": "add multiply",
        "scatter_reduce": "sum prod mean amax amin",
        "segment_reduce": "sum mean max min prod",
    }.items()
}


_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((int, float, SSAValue), "a tensor"),
    "int": ((int, SSAValue), "an integer"),
    "SymInt": ((int, SSAValue), "an integer"),
    "bool": ((int, SSAValue), "true or false"),
    "float": ((int, float, SSAValue), "a number"),
    "Scalar": ((int, float, SSAValue), "a number"),
    "ScalarType": ((TypeAttribute,), "a type"),
    "str": ((str,), "a text"),
}
_LISTED = re.compile(r"(?P<item>\w+\??)(?P<list>\[\d*\])?(?P<optional>\?)?")


def expected(operator: str, argument: Argument, value: Any) -> str:
    """What a value ought to be that is none of those an argument can be; nothing if it is one."""
    match = _LISTED.fullmatch(argument.type)
    kind = _KINDS.get(match["item"].rstrip("?")) if match is not None else None
    if match is None or kind is None or (value is not None and value == argument.default):
        return ""
    types, what = kind
    words = _WORDS.get(operator if argument.name == "reduce" else argument.name, ())
    if types == (str,) and words:
        leaves_out = value is None and argument.type.endswith("?")
        return "" if value in words or leaves_out else "one of " + ", ".join(words)
    if match["list"] and not isinstance(value, types if match["list"] != "[]" else SSAValue):
        if value is None:
            return "" if match["optional"] else "a list"
        if not isinstance(value, list) or (argument.type == "Tensor[]" and not value):
            return f"a list, each {what}"
        leaves_out = match["item"].endswith("?")
        items = cast("list[Any]", value)
        fits = all(leaves_out if item is None else isinstance(item, types) for item in items)
        return "" if fits else f"a list, each {what}"
    may_be_none = argument.type not in ("ScalarType", "str")
    return "" if isinstance(value, types) or (value is None and may_be_none) else what


@cache
def schemas() -> Mapping[str, Schema]:
    """The known operators by their targets."""
    lines = (Path(__file__).parent / "ops.txt").read_text().splitlines()
    return {schema.target: schema for schema in map(_parse, lines)}


@cache
def _lines() -> Mapping[str, str]:
    """The table's text of each operator, without what it says of shared elements."""
    lines = (Path(__file__).parent / "ops.txt").read_text().splitlines()
    return {line.partition("(")[0]: _ALIAS.sub("", line.partition("(")[2]) for line in lines}


@cache
def results_of(target: str) -> Sequence[str]:
    """The types of an operator's results; `Tensor[]` is any number of tensors."""
    text = _lines()[target].rpartition(") -> ")[2]
    return [part.split()[0] for part in text.strip("()").split(", ") if part]


@cache
def positional(target: str) -> int:
    """How many arguments of an operator may be given without their names."""
    before = re.split(r"(?:^|, )\*, ", _lines()[target])[0]
    return len(schemas()[target].arguments) if before == _lines()[target] else _count(before)


def _count(text: str) -> int:
    return len([part for part in re.split(r", (?![^\[]*\])", text) if part])


@cache
def overloads(name: str) -> Sequence[str]:
    """The targets of an operator with its namespace, `aten.add`, in the order of the table."""
    found = [target for target in schemas() if target.rpartition(".")[0] == name]
    return found or [name] * (name in schemas())


def _parse(line: str) -> Schema:
    target, _, rest = line.partition("(")
    text = _ALIAS.sub("", rest.rpartition(") -> ")[0])
    arguments = [_argument(part) for part in re.split(r", (?![^\[]*\])", text) if part != "*"]
    return Schema(target, {argument.name: argument for argument in arguments if argument.name})


def _argument(text: str) -> Argument:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        return Argument("", "", None)
    return Argument(match["name"], match["type"], _default(match["default"]))


def _default(text: str | None) -> Any:
    """A literal, or a name as a text."""
    try:
        return None if text is None else ast.literal_eval(text)
    except ValueError:
        return text


def functional(target: str) -> str:
    """The operator that computes what one in place writes; others are themselves."""
    space, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    if space != "aten":
        return target
    if name.startswith("__i"):
        return f"aten.__{name[3:]}.{overload}"
    return (
        target
        if not name.endswith("_") or name.startswith("__")
        else f"aten.{name[:-1]}.{overload}"
    )
