"""The work of a model, whatever runs it: multiply-adds, and bytes in use at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, FromDimsOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import find_function
from lowerdeck.lowering.buffers.work import multiply_adds


@dataclass(frozen=True)
class Work:
    """Multiply-adds of convolutions and matrix products."""

    multiply_adds: int
    is_exact: bool
    """False if a size or a number of iterations depends on data; it was left out or taken as 1."""


def count_work(module: ModuleOp, shapes: Mapping[str, Sequence[int]]) -> Work:
    """
    The work of `main` of a legal module for inputs of these shapes.

    Every tap of a window counts, also on padding: the usual way to count, and what the others do.
    Of the branches of an `if` the larger one counts.
    """
    function = find_function(module, "main")
    arguments = function.body.block.args
    counter = _Counter()
    for name, argument in zip(value_names(function.arg_attrs, len(arguments)), arguments):
        for dim, size in zip(dims_of(argument), shapes[name], strict=True):
            if str(dim) in dim.symbols:
                counter.symbols.setdefault(str(dim), size)
    total = counter.block(function.body.block)
    return Work(total, counter.is_exact)


class _Counter:
    def __init__(self) -> None:
        self.symbols: dict[str, int] = {}
        self.is_exact = True

    def block(self, block: Block) -> int:
        return sum(self._op(op) for op in block.ops)

    def _op(self, op: Operation) -> int:
        match op:
            case IfOp():
                return max(self.block(region.block) for region in op.regions)
            case LoopOp():
                return self._loop(op)
            case _:
                inner = sum(self.block(block) for region in op.regions for block in region.blocks)
                return self._known(multiply_adds(op)) + inner

    def _loop(self, op: LoopOp) -> int:
        trips = None if op.condition is not None else self._value(op.trip_count)
        if trips is not None and op.count is not None:
            self.symbols[op.count.data] = trips
        body = self.block(op.body.block)
        if trips is None and body:
            self.is_exact = False
        return body * (1 if trips is None else trips)

    def _value(self, value: SSAValue | None) -> int | None:
        """An integer that follows from constants and the shapes of inputs."""
        owner = None if value is None else value.owner
        if isinstance(owner, ConstantOp):
            return int(owner.array.reshape(-1)[0])
        return self._size(owner.values.data[0]) if isinstance(owner, FromDimsOp) else None

    def _size(self, dim: Expr) -> int | None:
        return dim.evaluate(self.symbols) if dim.symbols <= self.symbols.keys() else None

    def _known(self, work: Expr) -> int:
        if (size := self._size(work)) is None:
            self.is_exact = False
        return size or 0
