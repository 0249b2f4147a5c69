"""`hoist-invariants`: what each iteration of a loop would compute again, computed before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.linear import LINEAR
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.symbols import region_symbols_made_by, symbols_made_within
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, TransposeOp
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.loops.loops import is_outside
from lowerdeck.passes.machinery.assumptions import assumptions
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.machinery.symbols import symbols_used_by

_TOTAL = (
    *ELEMENTWISE,
    *LINEAR,
    MovesElements,
    ArgReduceOp,
    AttentionOp,
    ConcatOp,
    CumulativeOp,
    PadOp,
    PoolOp,
    ReduceOp,
    SoftmaxOp,
)
"""Ops that no value of their operands makes fail, if there is one. Those with indices from data are
not among them: an index may be outside."""

_MOST_GROWTH = 1 << 20
"""The greatest number of bytes by which a hoisted result may be larger than its operands."""

_OPEN = 1 << 10
"""What is taken for a size that is not known."""

Hoisted: TypeAlias = "list[Operation]"


class HoistInvariants(Pattern[Hoisted]):
    """loop { f(a) } -> b = f(a); loop { b }"""

    name = "hoist-invariants"
    roots = (LoopOp,)

    def match(self, op: LoopOp) -> Match[Hoisted] | None:
        fixed: dict[Operation, None] = {}
        made = {*region_symbols_made_by(op), *symbols_made_within(op.body)}
        for inner in op.body.block.ops:
            if _may_move(inner, made) and all(
                is_outside(value, op) or value.owner in fixed for value in inner.operands
            ):
                fixed[inner] = None
        wanted: dict[Operation, None] = {}
        for inner in reversed(fixed):
            used = any(user in wanted for user in _users(inner))
            if used or not _is_free(inner):
                wanted[inner] = None
        moved = [inner for inner in fixed if inner in wanted]
        return Match((op, *moved), f"{len(moved)} ops", moved) if moved else None

    def rewrite(self, match: Match[Hoisted], rewriter: Rewriter) -> None:
        for op in match.data:
            op.detach()
            rewriter.insert_before(match.root, op)


def _users(op: Operation) -> list[Operation]:
    return [use.operation for result in op.results for use in result.uses]


def _may_move(op: Operation, made: set[str]) -> bool:
    """True for an op that cannot fail, and does not make much out of little."""
    if isinstance(op, ConstantOp):
        return True
    if not isinstance(op, _TOTAL) or op.regions or symbols_used_by(op) & made:
        return False
    # Sizes that are not numbers are checked at run time, where the op is, unless they are equal.
    return is_ranked(op) and not any(assumptions(op)) and _grows_little(op)


def _grows_little(op: Operation) -> bool:
    """True if the results are hardly larger than the operands, with open sizes as `_OPEN`."""
    growth = _bytes(op.results) - _bytes(op.operands)
    return growth.evaluate(dict.fromkeys(growth.symbols, _OPEN)) <= _MOST_GROWTH


def _bytes(values: Sequence[SSAValue[Attribute]]) -> Expr:
    """What values take in memory together."""
    sizes = (numpy_dtype(element_type(v)).itemsize * product(dims_of(v)) for v in values)
    return sum(sizes, Expr.const(0))


def _is_free(op: Operation) -> bool:
    """True for what the op that reads the result does on its way, by other indices."""
    return isinstance(op, MovesElements) and not isinstance(op, TransposeOp)


class HoistInvariantsPass(PatternPass):
    """
    What a loop computes from values that it does not change, before the loop.

    - loop { f(a) } -> b = f(a); loop { b } [a is defined before the loop; f cannot fail; b is at
      most 1 MB larger than a, with 1024 for each size that is no number]
    - loop { constant } -> constant; loop

    The loop may not run at all. So only ops move that are defined for all values: none that reads
    or writes at indices from data, of which one may be outside, none that looks for the place of an
    extremum among no elements, none with a region, and none whose sizes are checked at run time.
    Reshapes, slices and broadcasts stay unless what moves reads them: where they are, they only
    change indices. Inner loops come first, so that an op moves out of all loops that leave its
    operands alone.
    """

    name = "hoist-invariants"
    recursive = False
    region_first = True

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [HoistInvariants()]
