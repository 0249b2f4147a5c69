"""Several modules become one, so that what lowering costs once is paid once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core.symbols import symbols_made_within
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import find_function
from lowerdeck.passes.fold.known_symbols import substitute_symbols
from lowerdeck.passes.machinery.symbols import symbols_of

MOST = 16
"""Modules of one. More would make entry functions that no program alone has."""


def can_be_joined(module: ModuleOp) -> bool:
    """True if all its dimensions are known, or are those of its inputs, which have no names."""
    if len(module.body.block.ops) > 1 or symbols_made_within(module.body):
        return False
    main = find_function(module, "main")
    return main.arg_attrs is None and main.res_attrs is None


def join(modules: Sequence[ModuleOp]) -> ModuleOp:
    """
    A module that has the inputs of all, in order, and their results. The modules are used up.
    """
    block = Block()
    results: list[SSAValue] = []
    for number, module in enumerate(modules):
        _rename_symbols(module, number)
        inner = find_function(module, "main").body.block
        for argument in list(inner.args):
            argument.replace_all_uses_with(block.insert_arg(argument.type, len(block.args)))
        ops = list(inner.ops)
        results += ops[-1].operands
        ops[-1].detach()
        ops[-1].erase()
        for op in ops[:-1]:
            op.detach()
            block.add_op(op)
    block.add_op(func.ReturnOp(*results))
    types = [value.type for value in block.args], [value.type for value in results]
    return ModuleOp([func.FuncOp("main", types, Region(block))])


def _rename_symbols(module: ModuleOp, number: int) -> None:
    """Equal names of two modules are different sizes."""
    types = find_function(module, "main").body.block.arg_types
    names = sorted(set[str]().union(*map(symbols_of, types)))
    if names:
        substitute_symbols(module, {name: Expr.symbol(f"{name}_{number}") for name in names})
