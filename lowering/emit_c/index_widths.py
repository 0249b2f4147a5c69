"""Whether the indices of a kernel are numbers of 32 bits, with all that they are computed from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.operands import by_operand
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.intervals import Interval, interval

_LIMIT = 1 << 31


def fits_in_32_bits(function: kernel.FuncOp) -> bool:
    """True if no index, and no term of one, is beyond 32 bits in any run; False if that is open."""
    return not function.symbols and _Ranges().holds(function.body.block)


class _Ranges:
    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval] = {}

    def holds(self, block: Block) -> bool:
        """True if everything in a block fits, whose arguments have ranges."""
        for op in block.ops:
            match op:
                case kernel.ForOp():
                    if not self._enter(op):
                        return False
                case kernel.ApplyOp():
                    found = self._read(op.map.data[0], op.indices)
                    if found is None:
                        return False
                    self._known[op.result] = found
                case kernel.CheckIndexOp():
                    bound = self._read(op.bound.data[0], op.indices)
                    if bound is None:
                        return False
                    self._known[op.result] = (0, max(bound[1] - 1, 0))
                case kernel.LoadOp() | kernel.StoreOp():
                    strides = ref_type(op.ref).strides.data
                    parts = (i * stride for i, stride in zip(op.map.data, strides, strict=True))
                    if self._read(sum(parts, Expr.const(0)), op.indices) is None:
                        return False
                case _:
                    if any(isinstance(result.type, IndexType) for result in op.results):
                        return False
                    if not all(self.holds(inner) for r in op.regions for inner in r.blocks):
                        return False
        return True

    def _enter(self, loop: kernel.ForOp) -> bool:
        bounds = [self._read(expr, loop.indices) for expr in loop.range.data]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return False
        (low, _), (_, high), (_, step) = known
        self._known[loop.body.block.args[0]] = (low, max(high - 1, low))
        # The variable is compared once more after the last step.
        return high + step < _LIMIT and self.holds(loop.body.block)

    def _read(self, expr: Expr, operands: Sequence[SSAValue]) -> Interval | None:
        """The bounds of an expression; None if they, or those of a part, are open or too large."""
        values = by_operand(operands)
        ranges = {
            name: self._known[values[name]]
            for name in expr.symbols
            if name in values and values[name] in self._known
        }
        if not _is_small(expr, ranges):
            return None
        return interval(expr, ranges)


def _is_small(expr: Expr, ranges: dict[str, Interval]) -> bool:
    terms = [interval(Expr((term,)), ranges) for term in expr.terms]
    known = [term for term in terms if term is not None]
    if len(known) < len(terms) or sum(max(map(abs, term)) for term in known) >= _LIMIT:
        return False
    arguments: Iterable[Expr] = (
        argument for monomial, _ in expr.terms for atom in monomial for argument in atom.args
    )
    return all(_is_small(argument, ranges) for argument in arguments)
