"""`fold-symbols`: replace dimension symbols of known value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ModuleOp,
)
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, names_in, symbol_list, yielded
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.symbols import (
    region_symbols_made_by,
    symbols_made_by,
    symbols_made_within,
)
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.sizes import largest
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.fold.known_symbols import Values, guarded_ops, substitute_symbols, suits
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    apply_patterns,
)
from lowerdeck.passes.machinery.recorder import Recorder
from lowerdeck.passes.machinery.symbols import symbols_used_by

ELEMENT_LIMIT = 64
"""The maximum number of elements of an integer tensor that are tracked."""


def known_elements(value: SSAValue) -> list[Expr] | None:
    """The elements of an integer tensor in C order, as expressions, if they are known."""
    match value.owner:
        case ConstantOp() as op:
            return _constant_elements(op)
        case FromDimsOp() as op:
            return list(op.values.data)
        case ReshapeOp() as op:
            return known_elements(op.input)
        case CastOp() as op if _keeps_integers(op):
            return known_elements(op.input)
        case ConcatOp() as op if op.axis.data == 0 and len(op.inputs) <= ELEMENT_LIMIT:
            parts = [known_elements(part) for part in op.inputs]
            return [e for part in parts for e in part or ()] if None not in parts else None
        case _:
            return None


def _constant_elements(op: ConstantOp) -> list[Expr] | None:
    dtype = numpy_dtype(element_type(op.result))
    if dtype.kind not in "iub" or op.value.data.size > ELEMENT_LIMIT * dtype.itemsize:
        return None
    try:
        return [Expr.const(int(element)) for element in op.array.reshape(-1)]
    except ElidedBlobError:
        return None


def _keeps_integers(op: CastOp) -> bool:
    before, after = numpy_dtype(element_type(op.input)), numpy_dtype(op.to)
    return before.kind in "iub" and after.kind in "iu" and np.can_cast(before, after)


class FoldSymbol(Pattern[Values]):
    """
    A symbol that is bound to a known integer, counts a known number of iterations, or names a size
    that is always the same is replaced by that value.

    The match only records the values: all types and properties are rewritten later, in one sweep.
    Where they do not suit an op of a region, that region never runs: then the symbol stays.
    """

    name = "fold-symbol"
    roots = (BindSymbolsOp, IfOp, LoopOp)

    def __init__(
        self,
        makers: Mapping[str, int],
        guarded: Mapping[str, Sequence[CoreOp]],
        used: Container[str],
    ) -> None:
        self._makers = makers
        self._guarded = guarded
        self._used = used
        self.values: Values = {}

    def match(self, op: BindSymbolsOp | IfOp | LoopOp) -> Match[Values] | None:
        values = _known(op, self._makers)
        if isinstance(op, LoopOp) and op.count is not None and op.count.data not in self._used:
            # What is collected needs a name for the iterations, also if all sizes are known.
            values = {k: value for k, value in (values or {}).items() if k != op.count.data}
        # A name that several scopes define would need the bounds of each.
        if not values or any(self._makers[name] > 1 for name in values):
            return None
        values = {name: value.substitute(self.values) for name, value in values.items()}
        if values.keys() & self.values.keys():
            return None
        whole = {**self.values, **values}
        if not all(suits(user, whole) for name in values for user in self._guarded.get(name, ())):
            return None
        text = ", ".join(f"{name} is {value}" for name, value in values.items())
        return Match((op,), text, values)

    def rewrite(self, match: Match[Values], rewriter: Rewriter) -> None:
        self.values.update(match.data)
        if isinstance(match.root, BindSymbolsOp):
            rewriter.erase(match.root)
        for key in ("carried_symbols", "result_symbols"):
            if (names := match.root.properties.get(key)) is not None:
                left = [n for n in names_in(cast(Any, names)) if n not in match.data]
                _set_property(match.root, key, symbol_list(left))


def _set_property(op: Operation, key: str, value: Attribute | None) -> None:
    op.properties.pop(key)
    if value is not None:
        op.properties[key] = value


def _known(op: BindSymbolsOp | IfOp | LoopOp, made: Container[str]) -> Values | None:
    match op:
        case BindSymbolsOp():
            return _bound(op)
        case IfOp():
            return _equal_sizes(op)
        case LoopOp():
            return {**_kept_sizes(op), **(_counted(op, made) or {})}


def _equal_sizes(op: IfOp) -> Values:
    """Sizes that are equal in both branches, in terms of values known outside."""
    inner = {name for region in op.regions for name in symbols_made_within(region)}
    found: Values = {}
    for index, axes in enumerate(op.made_dims):
        for axis, name in axes.items():
            dims = {dims_of(yielded(region)[index])[axis] for region in op.regions}
            if len(dims) == 1 and not (dim := dims.pop()).symbols & inner:
                found[name] = dim
    return found


def _kept_sizes(op: LoopOp) -> Values:
    """Sizes of carried values that no iteration changes."""
    found: Values = {}
    pairs = zip(op.made_dims, op.made_result_dims, strict=True)
    for index, (axes, results) in enumerate(pairs):
        for axis, name in axes.items():
            first = dims_of(op.inits[index])[axis]
            after = dims_of(op.yielded_carried[index])[axis]
            if after in (first, Expr.symbol(name)):
                found[name] = found[results[axis]] = first
    return found


def _bound(op: BindSymbolsOp) -> Values | None:
    elements = known_elements(op.input)
    return None if elements is None else dict(zip(op.made_symbols, elements, strict=True))


def _counted(op: LoopOp, made: Container[str]) -> Values | None:
    """The iterations of a loop without condition, which are its trip count."""
    if op.count is None or op.trip_count is None or op.condition is not None:
        return None
    trips = known_elements(op.trip_count)
    if trips is None:
        return None
    # What ops make may be any number; all other symbols are dimensions of inputs.
    is_of_sizes = not any(name in made for name in trips[0].symbols)
    return {op.count.data: (largest if is_of_sizes else maximum)(trips[0], Expr.const(0))}


class FoldSymbolsPass(PatternPass):
    """
    Dimension symbols whose value is known at compile time.

    - core.bind_symbols of a constant, or of core.from_dims: the symbols are those expressions
    - core.loop {count = t}, without condition and with a known trip count: t = max(trip count, 0)
    - core.loop: the symbols for a size of a carried value that each iteration leaves unchanged, or
      equal to the initial one: that size
    - core.if: the symbol for a size that is equal in both branches: that size

    All types and properties are rewritten together, and all types are inferred again. A symbol of
    which an op in a branch or a loop cannot have the value stays: the op never runs, or fails when
    it does.
    """

    name = "fold-symbols"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        ops = all_ops(module)
        makers = Counter(
            name for op in ops for name in (*symbols_made_by(op), *region_symbols_made_by(op))
        )
        used = {name for op in ops for name in symbols_used_by(op)} if makers else set[str]()
        return [FoldSymbol(makers, guarded_ops(module), used)]

    def run(self, module: ModuleOp, recorder: Recorder) -> None:
        (pattern,) = self.patterns(module)
        assert isinstance(pattern, FoldSymbol)
        apply_patterns(module, [pattern], recorder, pass_name=self.name, recursive=False)
        if pattern.values:
            substitute_symbols(module, pattern.values)
