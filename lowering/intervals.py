"""Between which expressions an index lies, and whether two parts of a buffer can overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.buffer.vector import lanes_of
from lowerdeck.dialects.dims import Atom, Expr, maximum, minimum


@dataclass(frozen=True)
class Interval:
    """Integers from `low` to `high`, both included."""

    low: Expr
    high: Expr

    @staticmethod
    def only(value: Expr) -> Interval:
        """A single number."""
        return Interval(value, value)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def is_before(self, other: Interval) -> bool:
        """True if everything here is plainly less than everything there."""
        gap = (other.low - self.high).value
        return gap is not None and gap > 0


Intervals = Mapping[SSAValue, Interval]
"""Where loop variables lie."""


def interval_of(expr: Expr, operands: Sequence[SSAValue], known: Intervals) -> Interval | None:
    """Where an expression over operands d0, d1, ... lies; None if that is not plain."""
    names = {f"d{number}": known.get(value) for number, value in enumerate(operands)}
    return _of(expr, names)


def range_of(loop: kernel.ForOp, known: Intervals) -> Interval | None:
    """Where the variable of a loop lies, if it runs at all."""
    lower, upper, step = (interval_of(expr, loop.indices, known) for expr in loop.range.data)
    if lower is None or upper is None:
        return None
    last = upper.high - 1
    if step is not None and (stride := step.low.value) and lower.low == lower.high:
        last = lower.low + (last - lower.low) // stride * stride
    return Interval(lower.low, last)


def _of(expr: Expr, names: Mapping[str, Interval | None]) -> Interval | None:
    total = Interval.only(Expr.const(0))
    for monomial, coefficient in expr.terms:
        term = _monomial(monomial, names)
        if term is None:
            return None
        ends = (term.low * coefficient, term.high * coefficient)
        total += Interval(*(ends if coefficient >= 0 else ends[::-1]))
    return total


def _monomial(monomial: tuple[Atom, ...], names: Mapping[str, Interval | None]) -> Interval | None:
    if not any(_symbols(atom) & names.keys() for atom in monomial):
        return Interval.only(Expr(((monomial, 1),)))
    if len(monomial) != 1:
        return None
    (atom,) = monomial
    if atom.kind == "symbol":
        return names[atom.name]
    parts = [_of(argument, names) for argument in atom.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if atom.kind in ("min", "max"):
        choose = minimum if atom.kind == "min" else maximum
        return Interval(choose(*(p.low for p in known)), choose(*(p.high for p in known)))
    divisor = atom.args[1].value
    if divisor is None or divisor <= 0:
        return None
    if atom.kind == "mod":
        return Interval(Expr.const(0), Expr.const(divisor - 1))
    return Interval(known[0].low // divisor, known[0].high // divisor)


def _symbols(atom: Atom) -> frozenset[str]:
    return Expr((((atom,), 1),)).symbols


@dataclass(frozen=True)
class Access:
    """A load or store: the buffer, and where each index lies, None if unknown."""

    ref: SSAValue
    is_store: bool
    indices: tuple[Interval | None, ...]

    def meets(self, other: Access) -> bool:
        """False if the two are of different buffers, or differ in an index for certain."""
        if self.ref is not other.ref:
            return False
        return not any(
            a is not None and b is not None and (a.is_before(b) or b.is_before(a))
            for a, b in zip(self.indices, other.indices, strict=True)
        )


def accesses_in(op: Operation, known: Intervals | None = None) -> list[Access]:
    """Every load and store of an op and of what is in it."""
    inner = dict(known or {})
    if isinstance(op, kernel.ForOp) and (own := range_of(op, inner)) is not None:
        inner[op.body.block.args[0]] = own
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        return [_access(op, inner)]
    found: list[Access] = []
    for nested in (op for region in op.regions for block in region.blocks for op in block.ops):
        if isinstance(nested, kernel.ApplyOp):
            place = interval_of(nested.map.data[0], nested.indices, inner)
            if place is not None:
                inner[nested.result] = place
        found += accesses_in(nested, inner)
    return found


def _access(op: kernel.LoadOp | kernel.StoreOp, known: Intervals) -> Access:
    is_store = isinstance(op, kernel.StoreOp)
    lanes = lanes_of((op.value if isinstance(op, kernel.StoreOp) else op.result).type)
    indices = [interval_of(expr, op.indices, known) for expr in op.map.data]
    if lanes and (last := indices[-1]) is not None:
        indices[-1] = Interval(last.low, last.high + lanes - 1)
    return Access(op.ref, is_store, tuple(indices))


def are_independent(ops: Sequence[Operation]) -> bool:
    """True if none of the ops stores what another one loads or stores."""
    accesses = [accesses_in(op) for op in ops]
    return not any(
        (mine.is_store or other.is_store) and mine.meets(other)
        for number, first in enumerate(accesses)
        for second in accesses[:number]
        for mine in first
        for other in second
    )
