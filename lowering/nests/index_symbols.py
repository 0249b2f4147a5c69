"""Index values as symbols of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.operands import operand
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.intervals import Interval, interval, simplified
from lowerdeck.dialects.records import record


@record
class _Index:
    """An index value and its number."""

    number: int
    value: SSAValue


class IndexSymbols:
    """
    Symbols for index values: loop variables, and values computed from them. Their names differ from
    those of all dimensions, so that expressions of different ops can be combined.
    """

    def __init__(self) -> None:
        self._indices: dict[str, _Index] = {}
        self.ranges: dict[str, Interval] = {}
        """The known ranges of symbols."""

    def new(self, value: SSAValue) -> Expr:
        """A symbol for an index value."""
        symbol = Expr.symbol(f"%{len(self._indices)}")
        self._indices[str(symbol)] = _Index(len(self._indices), value)
        return symbol

    def value_of(self, symbol: Expr) -> SSAValue:
        """The value that a symbol stands for."""
        return self._indices[str(symbol)].value

    def limit(self, symbol: Expr, lower: ExprLike, upper: ExprLike) -> None:
        """A symbol is at least `lower` and below `upper`."""
        first = interval(Expr.of(lower), self.ranges)
        last = interval(Expr.of(upper), self.ranges)
        if first is not None and last is not None and first[0] < last[1]:
            self.ranges[str(symbol)] = (first[0], last[1] - 1)

    def simplified(self, exprs: Iterable[ExprLike]) -> list[Expr]:
        """Simplified expressions, equal wherever symbols are in their ranges."""
        return [simplified(Expr.of(expr), self.ranges) for expr in exprs]

    def operands_in(self, exprs: Sequence[Expr]) -> tuple[dict[str, Expr], list[SSAValue]]:
        """
        The index values in expressions, in the order in which they became symbols, and the
        expressions for their symbols as operands: d0, d1, ...
        """
        found = {name for expr in exprs for name in expr.symbols}
        if not found:
            return {}, []
        known = ((self._indices.get(name), name) for name in found)
        used = sorted((i.number, name, i.value) for i, name in known if i is not None)
        names = {name: operand(place) for place, (_, name, _) in enumerate(used)}
        return names, [value for _, _, value in used]
