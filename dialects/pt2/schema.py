"""The table of operators, `ops.txt`: a schema of PyTorch a line, as its own sources write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

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


def words(operator: str, argument: str) -> Sequence[str]:
    """What a text argument may be, or nothing where any text has a meaning."""
    return _WORDS.get(operator if argument == "reduce" else argument, ())


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
