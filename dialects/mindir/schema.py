"""
The table of primitives, `ops.txt`: inputs and their defaults, and behind `;` attributes.

An input that is a list of tensors is written `x[]`. Older files have as attributes of the primitive
what are inputs with defaults now, so both are arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from lowerdeck.dialects.arguments import Argument, Schema

STRUCTURE = frozenset(
    """
    Assign AssignAdd AssignSub Depend Load MakeList MakeTuple Partial Print StopGradient Switch
    TensorMove TupleGetItem UpdateState make_list list_getitem make_tuple partial switch
    switch_layer tuple_getitem
    """.split()
)
"""Primitives that have no op: they say what goes where."""


@cache
def schemas() -> Mapping[str, Schema]:
    """The known primitives by name."""
    lines = (Path(__file__).parent / "ops.txt").read_text().splitlines()
    return {schema.target: schema for schema in map(_parse, lines)}


def _parse(line: str) -> Schema:
    target, _, rest = line.partition("(")
    inputs, _, attributes = rest[:-1].partition(";")
    formals = ", ".join(filter(None, (inputs.strip(), attributes.strip())))
    formals = re.sub(r"(\w)\[\]", r"\1: list", formals)
    function = ast.parse(f"def f({formals}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    return Schema(target, {argument.name: argument for argument in _arguments(function)})


def _arguments(function: ast.FunctionDef) -> Iterator[Argument]:
    arguments = function.args.args
    defaults = function.args.defaults
    missing = len(arguments) - len(defaults)
    for k, formal in enumerate(arguments):
        default: Any = None if k < missing else ast.literal_eval(defaults[k - missing])
        if isinstance(default, tuple):
            default = list(cast("tuple[Any, ...]", default))
        yield Argument(formal.arg, "[]" if formal.annotation is not None else "", default)
