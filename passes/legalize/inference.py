"""
The types of a framework's ops: those of the `core` values that they are legalized to.

There is one definition of what shape an operator gives, its legalization. So types are found by
legalizing a copy, and written to the ops they were found for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects.builtin import FunctionType, IntAttr, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.passes.legalize.walk import FunctionWalk

_NUMBER = "lowerdeck.number"
"""The attribute by which an op finds its copies."""

_Types = dict[int, Sequence[Attribute | None]]


def annotate(function: FuncOp, walk: Callable[[FuncOp], FunctionWalk]) -> None:
    """
    Set the types of results and of loops' arguments, as far as symbols of the arguments give them.

    Ops that cannot be legalized, and what depends on them, keep their types.
    """
    ops = list(function.body.walk())
    for number, op in enumerate(ops):
        op.attributes[_NUMBER] = IntAttr(number)
    copy = function.clone()
    for op in ops:
        del op.attributes[_NUMBER]
    results, arguments = _types_found(walk(copy), copy)
    known = {name for value in function.body.block.args for name in _symbols(value.type)}
    for number, op in enumerate(ops):
        _set_types(op.results, results.get(number, ()), known)
        if number in arguments:
            _set_types(op.regions[0].block.args, arguments[number], known)
    last = function.body.block.last_op
    assert last is not None
    function.function_type = FunctionType.from_lists(
        function.body.block.arg_types, [value.type for value in last.operands]
    )


def _types_found(walk: FunctionWalk, copy: FuncOp) -> tuple[_Types, _Types]:
    """The types of results and of regions' arguments, by number; a loop's last trial decides."""
    results: _Types = {}
    arguments: _Types = {}

    def note_results(op: Operation, values: Sequence[SSAValue | None]) -> None:
        if (number := _number_of(op)) is not None:
            results[number] = [None if value is None else value.type for value in values]

    def note_arguments(op: Operation, types: Sequence[Attribute]) -> None:
        if (number := _number_of(op)) is not None:
            arguments[number] = types

    walk.on_results, walk.on_arguments = note_results, note_arguments
    walk.block(copy.body.block)
    return results, arguments


def _number_of(op: Operation) -> int | None:
    found: Attribute | None = op.attributes.get(_NUMBER)
    return cast(IntAttr, found).data if isinstance(found, IntAttr) else None


def _set_types(
    values: Sequence[SSAValue], types: Sequence[Attribute | None], known: set[str]
) -> None:
    for value, type_ in zip(tuple(values), types, strict=False):
        if type_ is None or not (_is_ranked(type_) and _is_tensor(value.type)):
            continue
        if element_type(type_) != element_type(value):
            continue  # the flow of an array stands for its elements
        if _symbols(type_) <= known and value.type != type_:
            Rewriter.replace_value_with_new_type(value, type_)


def _symbols(type_: Attribute) -> set[str]:
    if not _is_ranked(type_):
        return set()
    return {name for dim in dims_of(type_) for name in dim.symbols}


def _is_ranked(type_: Attribute) -> bool:
    return isinstance(type_, TensorType)


def _is_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType | UnrankedTensorType)
