"""Dimension symbols whose value is known: whether ops may have it, and that all have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.rewriter import Rewriter as IRRewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import is_ranked
from lowerdeck.passes.machinery.provenance import describe
from lowerdeck.passes.machinery.symbols import substitute, symbols_of
from lowerdeck.passes.machinery.type_inference import infer_types

Values = dict[str, Expr]
"""What symbols stand for."""


def guarded_ops(module: ModuleOp) -> Mapping[str, Sequence[CoreOp]]:
    """The ops that may never run, by the symbols in the types of their operands."""
    found: dict[str, list[CoreOp]] = {}
    for op in all_ops(module):
        is_guarded = isinstance(op.parent_op(), IfOp | LoopOp)
        if is_guarded and isinstance(op, CoreOp) and is_ranked(op):
            types = [value.type for value in op.operands]
            for name in frozenset[str]().union(*map(symbols_of, types)):
                found.setdefault(name, []).append(op)
    return found


def suits(op: CoreOp, values: Values) -> bool:
    """True if an op may have the sizes that symbols stand for."""
    try:
        copy = type(op).create(
            operands=Block(arg_types=[substitute(v.type, values) for v in op.operands]).args,
            properties={key: substitute(each, values) for key, each in op.properties.items()},
            result_types=[result.type for result in op.results],
        )
        copy.infer()
    except VerifyException:
        return False
    return True


def substitute_symbols(module: ModuleOp, values: Values) -> None:
    """
    Replace symbols everywhere in a module, in one sweep, and infer all types anew.

    CompileError lists all ops that cannot have the sizes which the values give them.
    """
    errors: list[str] = []
    for op in module.walk(region_first=True):  # the function after its ops
        try:
            _substitute(op, values)
        except VerifyException as error:
            errors.append(f"{describe(op)}: {error}")
    if errors:
        raise CompileError("\n".join(errors))
    infer_types(module)


def _substitute(op: Operation, values: Values) -> None:
    for attributes in (op.properties, op.attributes):
        for name, attribute in attributes.items():
            if (new := substitute(attribute, values)) != attribute:
                attributes[name] = new
    _substitute_types(op, lambda type_: substitute(type_, values))


def _substitute_types(op: Operation, change: Callable[[Attribute], Attribute]) -> None:
    args = [arg for region in op.regions for block in region.blocks for arg in block.args]
    for value in (*op.results, *args):
        if (type_ := change(value.type)) != value.type:
            IRRewriter.replace_value_with_new_type(value, type_)
