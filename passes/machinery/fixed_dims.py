"""Open dimensions of inputs that the user gives a size."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter as IRRewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.defaults import DefaultAttr, drop_unfit_defaults
from lowerdeck.dialects.core.names import DEFAULT
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret.graphs import graph_runner
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.symbols import substitute

_SHOWN = 10
"""Names that an error lists."""


def fix_dims(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """
    Give open dimensions of the inputs of a module, as it was read, these sizes, wherever their
    names occur. OptionError lists the names that no input has a dimension of.
    """
    require_dims(sizes, open_dims(module) if sizes else [])
    if not sizes:
        return
    values = {name: Expr.const(size) for name, size in sizes.items()}
    for op in module.walk():
        for attributes in (op.properties, op.attributes):
            for name, attribute in attributes.items():
                attributes[name] = substitute(attribute, values)
        args = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *args):
            if (type_ := substitute(value.type, values)) != value.type:
                IRRewriter.replace_value_with_new_type(value, type_)
        if (default := op.attributes.get(DEFAULT)) is not None and op.results:
            if isinstance(default, DefaultAttr) and not default.fits(op.results[0].type):
                del op.attributes[DEFAULT]
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp):
            drop_unfit_defaults(op)


def require_dims(sizes: Mapping[str, int], known: list[str]) -> None:
    """OptionError that lists the names in `sizes` that are none of open dimensions of inputs."""
    names = ", ".join(f"'{name}'" for name in known[:_SHOWN])
    there = f"those of the inputs are {names}" if known else "the inputs have none"
    problems = [
        ("dim", f"there is no open dimension '{name}'; {there}")
        for name in sizes
        if name not in known
    ]
    if problems:
        raise OptionError(problems)


def open_dims(module: ModuleOp) -> list[str]:
    """The symbols that are dimensions of inputs, in the order of the inputs."""
    found: dict[str, None] = {}
    for value in _inputs(module):
        try:
            dims = dims_of(value)
        except VerifyException:  # no tensor, or one of unknown rank
            continue
        found.update(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols)))
    return list(found)


def _inputs(module: ModuleOp) -> list[SSAValue]:
    for op in module.body.block.ops:
        if (runner := graph_runner(op)) is not None:
            return list(dict(runner.inputs(op)).values())
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    return [arg for one in functions for block in one.body.blocks for arg in block.args]
