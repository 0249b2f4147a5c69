"""Sizes of products that are long expressions: names in a kernel, to which calls give values."""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.index_maps import Broadcasts
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.symbols import symbols_of

_LONGEST = 64
"""Characters of an expression that may stand in every loop and every index of a kernel."""


def name_sizes(op: KernelOp) -> dict[str, Expr]:
    """
    Give long dimensions in a kernel names, which may be those in another kernel, too; what the
    names stand for. Only of products and maps, which ask of dimensions whether they are equal.
    """
    ops = list(op.body.block.ops)
    if not all(
        isinstance(each, MatmulOp | Broadcasts | YieldOp)
        and not any(map(symbols_of, each.properties.values()))
        for each in ops
    ):
        return {}
    values = [*op.body.block.args, *(result for each in ops for result in each.results)]
    dims = dict.fromkeys(dim for value in values for dim in dims_of(value))
    # No dimension of a model has a dot in its name.
    names = {
        dim: f"size.{number}"
        for number, dim in enumerate(dims)
        if dim.value is None and len(str(dim)) > _LONGEST
    }
    for value in values:
        own = dims_of(value)
        if not names.keys().isdisjoint(own):
            short = [Expr.symbol(names[dim]) if dim in names else dim for dim in own]
            Rewriter.replace_value_with_new_type(value, tensor(element_type(value), short))
    return {name: dim for dim, name in names.items()}
