"""
The layers of a model: what each of its nodes computes, moves and holds.

A layer is a node of the model file, with all the ops that legalization makes of it. Counts are
those of `passes/machinery/statistics.py`, before any optimization. Parameters belong to the first
node that uses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.statistics import (
    bytes_moved,
    flops,
    is_constant,
    multiply_adds,
    parameter_bytes,
    parameters,
)

Sizes = Mapping[str, int]
"""The values of dimension symbols; others count as one."""


@dataclass
class Layer:
    """One node of a model; the counts are those of one execution."""

    name: str
    operator: str
    """What its framework calls it."""
    ops: list[str] = field(default_factory=list[str])
    """Those of `core`, in the order of the program."""
    shape: tuple[int, ...] | None = None
    """Of the last result; None if it is not known."""
    multiply_adds: int = 0
    flops: int = 0
    parameters: int = 0
    parameter_bytes: int = 0
    bytes_moved: int = 0

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def operators_of(module: ModuleOp) -> dict[str, str]:
    """What the framework calls the operator of each source node, of a module as it was read."""
    found: dict[str, str] = {}
    for op in module.walk():
        if isinstance(op, FrameworkOp) and not is_constant(op):
            for name in source_names(op):
                found.setdefault(name, op.op_type)
    return found


def layers_of(module: ModuleOp, operators: Mapping[str, str], sizes: Sizes) -> list[Layer]:
    """The layers of a module in `core`, in the order of the program."""
    found: dict[str, Layer] = {}
    counted: set[Operation] = set()
    for op in module.walk():
        if not _is_of_layer(op):
            continue
        names = source_names(op)
        name = ", ".join(names) or op.name
        operator = next((operators[one] for one in names if one in operators), op.name)
        layer = found.setdefault(name, Layer(name, operator))
        layer.ops.append(op.name)
        layer.multiply_adds += _value(multiply_adds, op, sizes)
        layer.flops += _value(flops, op, sizes)
        layer.bytes_moved += _value(bytes_moved, op, sizes)
        layer.shape = _shape(op, sizes)
        for operand in op.operands:
            owner = operand.owner
            if not isinstance(owner, Operation) or not is_constant(owner) or owner in counted:
                continue
            counted.add(owner)
            # What legalization has made has the name of a node; what the model holds has its own.
            if not any(one in operators for one in source_names(owner)):
                layer.parameters += parameters(owner)
                layer.parameter_bytes += parameter_bytes(owner)
    return list(found.values())


def _is_of_layer(op: Operation) -> bool:
    other = isinstance(op, ModuleOp | func.FuncOp) or op.has_trait(IsTerminator)
    return not other and not is_constant(op) and (isinstance(op, CoreOp) or bool(op.regions))


def _value(count: Callable[[Operation], Expr], op: Operation, sizes: Sizes) -> int:
    try:
        amount = count(op)
    except VerifyException:
        return 0
    return max(evaluated(amount, sizes), 0)


def evaluated(amount: Expr, sizes: Sizes) -> int:
    """An expression, with what is not known as one."""
    return amount.evaluate({symbol: sizes.get(symbol, 1) for symbol in amount.symbols})


def _shape(op: Operation, sizes: Sizes) -> tuple[int, ...] | None:
    if not op.results:
        return None
    try:
        return tuple(evaluated(dim, sizes) for dim in dims_of(op.results[-1]))
    except (VerifyException, AttributeError):
        return None


def by_operator(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """Number and work of the layers of each operator; the most work first."""
    counts = Counter(layer.operator for layer in layers)
    rows: list[dict[str, Any]] = []
    for operator, count in counts.items():
        own = [layer for layer in layers if layer.operator == operator]
        sums = {
            name: sum(getattr(layer, name) for layer in own)
            for name in ("multiply_adds", "flops", "parameters", "bytes_moved")
        }
        rows.append({"operator": operator, "count": count, **sums})
    return sorted(rows, key=lambda row: (-row["flops"], -row["count"], row["operator"]))
