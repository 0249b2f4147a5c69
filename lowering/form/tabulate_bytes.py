"""`tabulate-bytes`: what is computed of one byte, and becomes a byte, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import (
    BINARY,
    UNARY,
    CastOp,
    CeilOp,
    CompareOp,
    FloatUnaryOp,
    FloorOp,
    PowOp,
    RectifyOp,
    RoundOp,
    SelectOp,
    SqrtOp,
)
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    is_integer,
    is_unsigned,
    ui8,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.interpret.core import evaluate
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

Array = NDArray[Any]

MAPS = (*UNARY, *BINARY, CompareOp, SelectOp, CastOp)
"""Ops whose elements depend on those in their place alone."""

CHEAP = (RoundOp, FloorOp, CeilOp, SqrtOp, RectifyOp)
"""Functions that processors have instructions for."""

_BYTES: Exact[int] = 256
"""Different bytes."""

FEWEST_ELEMENTS = _BYTES
"""Of fewer a table would have more."""

MOST_MAPS = 64
"""Of a formula that is looked through."""

LOOKUP_STEPS = 2
"""Ops on vectors as slow as one element from a table, for each lane."""


@record
class Formula:
    """Maps between a tensor of bytes and the bytes that they make, in order."""

    source: SSAValue
    maps: tuple[CoreOp, ...]


def _is_byte(value: SSAValue) -> bool:
    element = element_type(value)
    return is_integer(element) and 1 << bit_width(element) == _BYTES


def _is_scalar(value: SSAValue) -> bool:
    """True for a constant of one element, which has no more dimensions than what it meets."""
    return isinstance(value.owner, ConstantOp) and product(dims_of(value)) == 1


def _is_lookup(op: object) -> bool:
    """True for an element of a constant table for each index."""
    if not isinstance(op, GatherOp) or len(dims_of(op.input)) != 1:
        return False
    return isinstance(op.input.owner, ConstantOp)


def _is_of_bytes(op: GatherOp) -> bool:
    """True for a lookup as this pass makes them."""
    return op.inside is not None and _is_byte(op.indices)


def _factors(op: CoreOp) -> list[SSAValue]:
    """The operands that a map of elements depends on."""
    return [op.operands[1]] if isinstance(op, GatherOp) else [*op.operands]


def formula_of(op: CastOp | GatherOp) -> Formula | None:
    """
    What ends in a cast or a lookup, as far back as it is about one tensor of bytes; None if it
    depends on anything else.
    """
    return _formula(op, through_bytes=True) or _formula(op, through_bytes=False)


def _formula(op: CastOp | GatherOp, *, through_bytes: bool) -> Formula | None:
    dims, sources = dims_of(op.result), dict[SSAValue, None]()
    order = dict[CoreOp, None]()
    # Each op is met twice: before its operands and after them.
    pending: list[tuple[SSAValue, bool]] = [(op.result, False)]
    while pending:
        value, is_done = pending.pop()
        owner = value.owner
        is_map = isinstance(owner, MAPS) or _is_lookup(owner)
        if is_done:
            assert isinstance(owner, CoreOp)
            order[owner] = None
            continue
        if owner in order or _is_scalar(value):
            continue
        if dims_of(value) != dims or len(order) > MOST_MAPS:
            return None
        is_end = value is not op.result and _is_byte(value)
        if is_end and not (through_bytes and is_map):
            sources[value] = None
            continue
        if not is_map or not isinstance(owner, CoreOp) or owner.parent is not op.parent:
            return None
        pending.append((value, True))
        pending += ((operand, False) for operand in _factors(owner))
    if len(sources) != 1:
        return None
    (source,) = sources
    return Formula(source, tuple(order))


def _table(formula: Formula) -> Array | None:
    """
    The results for all bytes, by the numbers that they are without signs; None if some have none.
    """
    signs = "u" if is_unsigned(element_type(formula.source)) else ""
    every = np.arange(_BYTES, dtype=np.uint8).view(f"{signs}int8")
    values: dict[SSAValue, Array] = {formula.source: every}
    for op in formula.maps:
        if isinstance(op, GatherOp):
            known, places = _known(op.input), values[op.indices]
            if not ((places >= -len(known)) & (places < len(known))).all():
                return None
            found = known[places]
        else:
            args = [values[x] if x in values else _known(x).reshape(()) for x in op.operands]
            found = evaluate(op, args, {})[0]
        values[op.results[0]] = np.broadcast_to(found, every.shape)
    return np.ascontiguousarray(values[formula.maps[-1].results[0]])


def _known(value: SSAValue) -> Array:
    array = constant_array(value)
    assert array is not None
    return array


class TabulateBytes(Pattern[tuple[SSAValue, Array]]):
    """f(q) -> gather(table of f, q)"""

    name = "tabulate-bytes"
    roots = (CastOp, GatherOp)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: CastOp | GatherOp) -> Match[tuple[SSAValue, Array]] | None:
        if isinstance(op, GatherOp):
            if not _is_lookup(op) or _is_of_bytes(op):
                return None
        elif not _is_byte(op.result) or is_integer(element_type(op.input)):
            return None
        if (product(dims_of(op.result)).value or FEWEST_ELEMENTS) < FEWEST_ELEMENTS:
            return None
        if (formula := formula_of(op)) is None:
            return None
        if sum(map(self._steps, formula.maps)) <= LOOKUP_STEPS * self._target.lanes:
            return None
        if (table := _table(formula)) is None:
            return None
        text = f"{len(formula.maps)} maps of a byte"
        return Match((op, *formula.maps[:-1]), text, (formula.source, table))

    def _steps(self, op: CoreOp) -> int:
        if isinstance(op, GatherOp):
            return LOOKUP_STEPS * self._target.lanes
        is_function = isinstance(op, FloatUnaryOp | PowOp) and not isinstance(op, CHEAP)
        return self._target.costs.function_steps if is_function else 1

    def rewrite(self, match: Match[tuple[SSAValue, Array]], rewriter: Rewriter) -> None:
        op, (source, values) = match.root, match.data
        if not is_unsigned(element_type(source)):
            source = rewriter.add(CastOp(source, ui8)).result
        table = rewriter.add(ConstantOp.of(values)).result
        rewriter.replace(op, rewriter.add(GatherOp(table, source, 0, inside=True)))


class TabulateBytesPass(ModulePass):
    """
    f(q) -> gather(table of f, q)
        [f maps with scalar constants of one tensor of bytes, which end in bytes and take longer
         than a load for each element, or in an element of a constant table]

    The table has the 256 results of the interpreter. So all targets give the same bytes, whatever
    their functions round like: swish and gelu between quantized layers, for example.
    """

    name = "tabulate-bytes"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [TabulateBytes(target_named(options_of(ctx).target))]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
