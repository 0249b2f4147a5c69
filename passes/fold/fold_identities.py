"""`fold-identities`: replace ops by the operand that they return unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.elementwise import CastOp, SelectOp
from lowerdeck.dialects.core.index_maps import MovesElements, any_index
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import dims_of, element_type, i1
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import uniform_value


def _select(op: SelectOp) -> SSAValue | None:
    condition = uniform_value(op.condition)
    if condition is not None:
        return op.on_true if condition else op.on_false
    if element_type(op.result) != i1:
        return None
    is_true, is_false = uniform_value(op.on_true), uniform_value(op.on_false)
    if is_true is None or is_false is None:
        return None
    return op.condition if is_true and not is_false else None


def _pad(op: PadOp) -> SSAValue | None:
    return op.input if all(pad == 0 for pad in (*op.begin.data, *op.end.data)) else None


def _concat(op: ConcatOp) -> SSAValue | None:
    return op.inputs[0] if len(op.inputs) == 1 else None


def _reduce(op: ReduceOp) -> SSAValue | None:
    return op.input if not ints(op.axes) else None


def _moved(op: MovesElements) -> SSAValue | None:
    """The operand of a one-result op that leaves every element in its position."""
    at = any_index(dims_of(op.results[0]))
    is_same = len(op.results) == 1 and op.operand_index(0, at) == at
    return op.operands[0] if is_same else None


def _input(op: ReshapeOp | CastOp) -> SSAValue | None:
    return op.input  # if the type stays, so does everything


_IDENTITIES: Mapping[type[Operation], Callable[[Any], SSAValue | None]] = {
    ReshapeOp: _input,
    BroadcastOp: _moved,
    CastOp: _input,
    TransposeOp: _moved,
    SliceOp: _moved,
    PadOp: _pad,
    ConcatOp: _concat,
    SplitOp: _moved,
    ReduceOp: _reduce,
    SelectOp: _select,
}


class FoldIdentity(Pattern[SSAValue]):
    """f(x) -> x"""

    name = "fold-identity"
    roots = tuple(_IDENTITIES)
    ranked = True

    def match(self, op: CoreOp) -> Match[SSAValue] | None:
        value = _IDENTITIES[type(op)](op)
        if value is None or value.type != op.results[0].type:
            return None
        return Match((op,), "gives its operand back", value)

    def rewrite(self, match: Match[SSAValue], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, match.data)


class DropEmptyOperands(Pattern[list[SSAValue]]):
    """concat(x, [], y) -> concat(x, y)"""

    name = "drop-empty-operands"
    roots = (ConcatOp,)
    ranked = True

    def match(self, op: ConcatOp) -> Match[list[SSAValue]] | None:
        axis = op.axis.data
        first = dims_of(op.inputs[0])
        full = [value for value in op.inputs if dims_of(value)[axis] != 0]
        if not full or len(full) == len(op.inputs):
            return None
        # The first operand determines the result's other dimensions.
        kept = dims_of(full[0])
        if (*kept[:axis], *kept[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            return None
        return Match((op,), "operands without elements", full)

    def rewrite(self, match: Match[list[SSAValue]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConcatOp)
        rewriter.replace(op, ConcatOp(match.data, op.axis.data))


class DropZeroPoints(Pattern[list[SSAValue]]):
    """conv(x, w, zero points 0, 0) -> conv(x, w)"""

    name = "drop-zero-points"
    roots = (ConvOp, MatmulOp)
    ranked = True

    def match(self, op: ConvOp | MatmulOp) -> Match[list[SSAValue]] | None:
        zeros = list(op.zero_points)
        if not zeros or any(uniform_value(zero) != 0 for zero in zeros):
            return None
        kept = list(op.operands[: -len(zeros)])
        return Match((op,), "its zero points are zero", kept)

    def rewrite(self, match: Match[list[SSAValue]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp | MatmulOp)
        rewriter.replace(op, op.with_operands(match.data))


class FoldIdentitiesPass(PatternPass):
    """
    Ops that return an operand unchanged, as their types and properties show.

    - reshape, broadcast, cast x to its own type -> x
    - transpose(x, identity) -> x
    - slice(x, everything), pad(x, nothing) -> x
    - concat(x) -> x; concat(x, empty, y) -> concat(x, y)
    - split(x) -> x [one part]
    - reduce(x, no axes) -> x
    - select(constant, x, y) -> x or y [all elements of the constant are equal; no broadcasting]
    - select(c, true, false) -> c [no broadcasting]
    - conv, matmul with zero points 0 -> without [both constant]
    """

    name = "fold-identities"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FoldIdentity(), DropEmptyOperands(), DropZeroPoints()]
