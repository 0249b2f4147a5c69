"""
The types of a framework's ops: those of the `core` values that they are legalized to.

There is one definition of what shape an operator gives, its legalization. So types are found by
legalizing a copy, and written to the ops they were found for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

from xdsl.dialects.builtin import FunctionType, IntAttr, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.types import UNKNOWN, dims_of, element_type
from lowerdeck.passes.legalize.walk import FunctionWalk

_NUMBER = "lowerdeck.number"
"""The attribute by which an op finds its copies."""

_Types = dict[Operation, Sequence[Attribute | None]]


def annotate(function: FuncOp, walk: Callable[[FuncOp], FunctionWalk]) -> None:
    """
    Set the types of results and of loops' arguments, as far as symbols of the arguments give them.

    Ops that cannot be legalized, and what depends on them, keep their types.
    """
    results: _Types = {}
    arguments: _Types = {}

    def note_results(op: Operation, values: Sequence[SSAValue | None], _: FunctionWalk) -> None:
        results[op] = [None if value is None else value.type for value in values]

    # A loop's last trial decides.
    observe(function, walk, note_results, arguments.__setitem__)
    known = {name for value in function.body.block.args for name in _symbols(value.type)}
    for op in list(function.body.walk()):
        set_types(op.results, results.get(op, ()), known)
        if op in arguments:
            set_types(op.regions[0].block.args, arguments[op], known)
    declare_results(function)


def observe(
    function: FuncOp,
    walk: Callable[[FuncOp], FunctionWalk],
    on_results: Callable[[Operation, Sequence[SSAValue | None], FunctionWalk], None],
    on_arguments: Callable[[Operation, Sequence[Attribute]], None] = lambda op, types: None,
) -> None:
    """
    Legalize a copy of a function, and tell what becomes of each op of the function itself.

    `on_results` gets the values of `core` that take the place of its results, `on_arguments` the
    types of the arguments of a loop's region. What is in a region may be legalized several times.
    """
    ops = list(function.body.walk())
    for number, op in enumerate(ops):
        op.attributes[_NUMBER] = IntAttr(number)
    copy = function.clone()
    for op in ops:
        del op.attributes[_NUMBER]
    legalization = walk(copy)

    def note_results(op: Operation, values: Sequence[SSAValue | None]) -> None:
        if (number := _number_of(op)) is not None:
            on_results(ops[number], values, legalization)

    def note_arguments(op: Operation, types: Sequence[Attribute]) -> None:
        if (number := _number_of(op)) is not None:
            on_arguments(ops[number], types)

    legalization.on_results, legalization.on_arguments = note_results, note_arguments
    legalization.block(copy.body.block)


def declare_results(function: FuncOp) -> None:
    """Let the type of a function be that of the values that it takes and returns."""
    last = function.body.block.last_op
    assert last is not None
    function.function_type = FunctionType.from_lists(
        function.body.block.arg_types, [value.type for value in last.operands]
    )


def _number_of(op: Operation) -> int | None:
    found: Attribute | None = op.attributes.get(_NUMBER)
    return cast(IntAttr, found).data if isinstance(found, IntAttr) else None


def set_types(
    values: Sequence[SSAValue],
    types: Sequence[Attribute | None],
    known: AbstractSet[str] | None = None,
) -> None:
    """Give values the types found for them, if their symbols are among the `known` ones."""
    for value, type_ in zip(tuple(values), types, strict=False):
        if type_ is None or not (_is_ranked(type_) and _is_tensor(value.type)):
            continue
        if element_type(value) not in (UNKNOWN, element_type(type_)):
            continue  # the flow of an array stands for its elements
        if (known is None or _symbols(type_) <= known) and value.type != type_:
            Rewriter.replace_value_with_new_type(value, type_)


def _symbols(type_: Attribute) -> set[str]:
    if not _is_ranked(type_):
        return set()
    return {name for dim in dims_of(type_) for name in dim.symbols}


def _is_ranked(type_: Attribute) -> bool:
    return isinstance(type_, TensorType)


def _is_tensor(type_: Attribute) -> bool:
    return isinstance(type_, TensorType | UnrankedTensorType)
