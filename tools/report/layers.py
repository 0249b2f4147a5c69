"""
The layers of a model: what each of its nodes computes, moves and holds.

A layer is a node of the model file, with all the ops that legalization makes of it. Counts are
those of `passes/machinery/statistics.py`, before any optimization. Parameters belong to the first
node that uses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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

Count: TypeAlias = "int | Expr"
"""A number, or a formula of sizes that are open."""


def count_of(amount: Expr) -> Count:
    """A number where all sizes are known."""
    return amount if amount.value is None else max(amount.value, 0)


def sum_of(counts: Iterable[Count]) -> Count:
    """The sum of numbers and formulas."""
    return count_of(sum(map(Expr.of, counts), Expr.const(0)))


def plain(count: Count) -> int | str:
    """As JSON."""
    return count if isinstance(count, int) else str(count)


def written(count: Count, width: int | None = None) -> str:
    """For a person; formulas of more than so many characters are cut short."""
    if isinstance(count, int):
        return f"{count:,}"
    text = str(count)
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


@dataclass
class Layer:
    """One node of a model; the counts are those of one execution."""

    name: str
    operator: str
    """What its framework calls it."""
    ops: list[str] = field(default_factory=list[str])
    """Those of `core`, in the order of the program."""
    shape: tuple[Count, ...] | None = None
    """Of the last result; None if it is not known."""
    multiply_adds: Count = 0
    flops: Count = 0
    parameters: int = 0
    parameter_bytes: int = 0
    bytes_moved: Count = 0

    def data(self) -> dict[str, Any]:
        """As JSON: formulas are texts."""
        return {
            **vars(self),
            "shape": None if self.shape is None else [plain(dim) for dim in self.shape],
            **{name: plain(getattr(self, name)) for name in _WORK},
        }


_TYPICAL = 64
"""A size that is open, where formulas are put in order."""

_WORK = ("multiply_adds", "flops", "bytes_moved")


def operators_of(module: ModuleOp) -> dict[str, str]:
    """What the framework calls the operator of each source node, of a module as it was read."""
    found: dict[str, str] = {}
    for op in module.walk():
        if isinstance(op, FrameworkOp) and not is_constant(op):
            for name in source_names(op):
                found.setdefault(name, op.op_type)
    return found


def layers_of(module: ModuleOp, operators: Mapping[str, str]) -> list[Layer]:
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
        for work, count in zip(_WORK, (multiply_adds, flops, bytes_moved), strict=True):
            setattr(layer, work, sum_of([getattr(layer, work), _value(count, op)]))
        layer.shape = _shape(op)
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


def _value(count: Callable[[Operation], Expr], op: Operation) -> Count:
    try:
        return count_of(count(op))
    except VerifyException:
        return 0


def _shape(op: Operation) -> tuple[Count, ...] | None:
    if not op.results:
        return None
    try:
        return tuple(map(count_of, dims_of(op.results[-1])))
    except (VerifyException, AttributeError):
        return None


def shape_text(shape: tuple[Count, ...] | None, sign: str) -> str:
    """`1x3x8`; what is a formula has brackets."""
    if shape is None:
        return "?"
    return sign.join(str(n) if isinstance(n, int) or not n.is_compound else f"({n})" for n in shape)


def by_operator(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """Number and work of the layers of each operator; the most work first."""
    counts = Counter(layer.operator for layer in layers)
    rows: list[dict[str, Any]] = []
    for operator, count in counts.items():
        own = [layer for layer in layers if layer.operator == operator]
        sums = {
            name: sum_of(getattr(layer, name) for layer in own)
            for name in ("multiply_adds", "flops", "parameters", "bytes_moved")
        }
        rows.append({"operator": operator, "count": count, **sums})
    return sorted(rows, key=lambda row: (-_typical(row["flops"]), -row["count"], row["operator"]))


def _typical(count: Count) -> int:
    """What formulas are put in order by."""
    if isinstance(count, int):
        return count
    return count.evaluate(dict.fromkeys(count.symbols, _TYPICAL))
