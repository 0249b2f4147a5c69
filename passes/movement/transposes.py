"""Patterns that passes share: consecutive transposes, and transposes past other ops."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeGuard, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    Rewriter,
    is_ranked,
    producer,
)
from lowerdeck.passes.machinery.equation import Equation, Rule
from lowerdeck.passes.movement.reshapes import dim_groups

_MOST_JOINED = 16
"""The most maps that a transpose with several users is sunk past at once."""

Permutation: TypeAlias = list[int]
Properties: TypeAlias = dict[str, Attribute]
Worth: TypeAlias = Callable[[Operation, Sequence[TransposeOp]], "str | None"]
"""Why an op should be done before the transposes of its operands, if it should."""


class ComposeTransposes(Equation):
    """transpose(transpose(x, p), q) -> transpose(x, p[q]), or x if that is the identity"""

    name = "compose-transposes"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        if (inner := producer(op.input, TransposeOp)) is None:
            return None
        x, first = inner.input, ints(inner.permutation)
        permutation = [first[axis] for axis in ints(op.permutation)]
        if permutation == sorted(permutation):
            return "two permutations cancel", x, (inner,)
        return "one permutation after the other", lambda: TransposeOp(x, permutation), (inner,)


class ReshapeInsteadOfTranspose(Equation):
    """transpose(x, p) -> reshape(x) [p keeps the order of all dimensions but those of one]"""

    name = "reshape-instead-of-transpose"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        x, permutation = op.input, ints(op.permutation)
        dims = dims_of(x)
        moved = [axis for axis in permutation if dims[axis] != 1]
        if moved != sorted(moved) or permutation == sorted(permutation):
            return None
        return "only dimensions of one move", lambda: ReshapeOp(x, dims_of(op.result)), ()


# Past other ops


def users_of(value: SSAValue) -> Iterator[Operation]:
    for use in value.uses:
        yield use.operation


def inverse(permutation: Sequence[int]) -> Permutation:
    """The inverse permutation."""
    result = [0] * len(permutation)
    for place, axis in enumerate(permutation):
        result[axis] = place
    return result


def moves_nothing(dims: Sequence[Expr], permutation: Sequence[int]) -> bool:
    """True if only dimensions of size one change position."""
    kept = [axis for axis in permutation if dims[axis] != 1]
    return kept == sorted(kept)


# What an op becomes when its operands are not transposed


def _same(op: Operation, permutation: Permutation) -> Properties:
    return dict(op.properties)


def _with_axis(op: Operation, permutation: Permutation) -> Properties:
    axis = cast(IntAttr, op.properties["axis"]).data
    return {**op.properties, "axis": IntAttr(permutation[axis])}


def _with_lists(op: Operation, permutation: Permutation) -> Properties:
    order = inverse(permutation)
    properties: Properties = {}
    for name, value in op.properties.items():
        if isinstance(value, DimsAttr):
            value = DimsAttr.of([value.data[place] for place in order])
        properties[name] = value
    return properties


RULES: Mapping[type[Operation], Callable[[Operation, Permutation], Properties]] = {
    **dict.fromkeys(ELEMENTWISE, _same),
    SoftmaxOp: _with_axis,
    ConcatOp: _with_axis,
    BatchNormOp: _with_axis,
    GatherOp: _same,
    SliceOp: _with_lists,
    PadOp: _with_lists,
}
"""Ops that a transpose can be sunk past, and their properties before it."""


def data_of(op: Operation) -> Sequence[SSAValue]:
    """The operands that are transposed with the result; the others are parameters."""
    if isinstance(op, GatherOp):
        return op.operands[1:] if op.is_lookup else ()
    return op.operands[:1] if isinstance(op, BatchNormOp | PadOp) else op.operands


def _with_data(op: Operation, data: Sequence[SSAValue]) -> list[SSAValue]:
    """The operands with others that are transposed."""
    if isinstance(op, GatherOp):
        return [op.input, *data]
    return [*data, *op.operands[len(data) :]]


def is_map(op: Operation | Block) -> TypeGuard[Operation]:
    """True if each element of the result is of those at its place in the operands."""
    return isinstance(op, (*ELEMENTWISE, BatchNormOp)) or (
        isinstance(op, GatherOp) and op.is_lookup
    )


def can_move(value: SSAValue, permutation: Permutation) -> bool:
    """True if `value`, which broadcasts to a transposed result, can be permuted without a copy."""
    transpose = producer(value, TransposeOp)
    if transpose is not None and ints(transpose.permutation) == permutation:
        return True
    dims = _padded(dims_of(value), len(permutation))
    return constant_array(value) is not None or moves_nothing(dims, inverse(permutation))


def _padded(dims: Sequence[Expr], rank: int) -> list[Expr]:
    return [*[Expr.const(1)] * (rank - len(dims)), *dims]


def moved_before(value: SSAValue, permutation: Permutation, rewriter: Rewriter) -> SSAValue:
    """`value` as it is before a transpose by `permutation`."""
    transpose = producer(value, TransposeOp)
    if transpose is not None and ints(transpose.permutation) == permutation:
        return transpose.input
    dims, order = _padded(dims_of(value), len(permutation)), inverse(permutation)
    if all(dim == 1 for dim in dims):
        return value
    if (array := constant_array(value)) is not None:
        whole = array.reshape([1] * (len(dims) - array.ndim) + list(array.shape))
        return rewriter.add(ConstantOp.of(whole.transpose(order).copy())).result
    return rewriter.add(ReshapeOp(value, [dims[axis] for axis in order])).result


class SinkTranspose(Pattern[Permutation]):
    """f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p)"""

    name = "sink-transpose"
    roots = tuple(RULES)
    ranked = True

    def __init__(self, worth: Worth) -> None:
        self._worth = worth

    def match(self, op: Operation) -> Match[Permutation] | None:
        data = data_of(op)
        rank = rank_of(op.results[0])
        transposes = [
            found
            for value in dict.fromkeys(data)
            if (found := producer(value, TransposeOp)) is not None
            and rank_of(value) == rank
            and all(user is op for user in users_of(value))
        ]
        if not transposes:
            return None
        permutation = ints(transposes[0].permutation)
        try:
            movable = all(can_move(value, permutation) for value in data)
        except ElidedBlobError:
            return None
        if not movable or (reason := self._worth(op, transposes)) is None:
            return None
        return Match((op, *transposes), reason, permutation)

    def rewrite(self, match: Match[Permutation], rewriter: Rewriter) -> None:
        op, permutation = match.root, match.data
        operands = [moved_before(value, permutation, rewriter) for value in data_of(op)]
        order = inverse(permutation)
        result = op.results[0]
        dims = [dims_of(result)[place] for place in order]
        new = type(op).create(
            operands=_with_data(op, operands),
            result_types=[tensor(element_type(result), dims)],
            properties=RULES[type(op)](op, permutation),
        )
        rewriter.add(new)
        rewriter.replace(op, TransposeOp(new.results[0], permutation))


# Past several ops at once


@record
class Joined:
    """Maps of a transposed value, of which only the last one is used elsewhere."""

    permutation: Permutation
    ops: list[CoreOp]
    """In the order in which they are computed."""


def _joined(transpose: TransposeOp, permutation: Permutation) -> list[CoreOp] | None:
    """The fewest maps that are all that read a transposed value, up to one result."""
    ops: list[CoreOp] = []
    values = [transpose.result]
    while len(ops) < _MOST_JOINED:
        known = {transpose.result, *(op.results[0] for op in ops)}
        users = [op for value in values for op in users_of(value) if op not in ops]
        found = next((op for op in users if _is_map_of(op, transpose, known, permutation)), None)
        if not isinstance(found, CoreOp):
            return None
        ops.append(found)
        values = [value for value in (*values, found.results[0]) if _is_read(value, ops)]
        if values == [found.results[0]]:
            return ops
    return None


def _is_read(value: SSAValue, ops: Sequence[Operation]) -> bool:
    """True if others than `ops` read a value, or it is the last one that they compute."""
    return value is ops[-1].results[0] or any(user not in ops for user in users_of(value))


def _is_map_of(
    op: Operation, transpose: TransposeOp, known: Container[SSAValue], permutation: Permutation
) -> bool:
    """True for a map of values of one shape, which can be transposed by moving its parameters."""
    if not is_map(op) or op.parent is not transpose.parent:
        return False
    if not is_ranked(op) or dims_of(op.results[0]) != dims_of(transpose.result):
        return False
    return all(value in known or can_move(value, permutation) for value in data_of(op))


class SinkSharedTranspose(Pattern[Joined]):
    """f(transpose(x, p), g(transpose(x, p))) -> transpose(f(x, g(x)), p)"""

    name = "sink-shared-transpose"
    roots = (TransposeOp,)
    ranked = True

    def __init__(self, worth: Worth) -> None:
        self._worth = worth

    def match(self, op: TransposeOp) -> Match[Joined] | None:
        if op.result.has_one_use() or not op.result.uses:
            return None
        permutation = ints(op.permutation)
        try:
            ops = _joined(op, permutation)
        except ElidedBlobError:
            return None
        if ops is None or (reason := self._worth(ops[-1], [op])) is None:
            return None
        return Match((*reversed(ops), op), reason, Joined(permutation, ops))

    def rewrite(self, match: Match[Joined], rewriter: Rewriter) -> None:
        permutation, ops = match.data.permutation, match.data.ops
        transpose = match.consumed[-1]
        assert isinstance(transpose, TransposeOp)
        moved: dict[SSAValue, SSAValue] = {transpose.result: transpose.input}
        for op in ops:
            operands = [
                moved[value] if value in moved else moved_before(value, permutation, rewriter)
                for value in data_of(op)
            ]
            new = type(op).create(
                operands=_with_data(op, operands),
                result_types=[tensor(element_type(op.results[0]), dims_of(transpose.input))],
                properties=RULES[type(op)](op, permutation),
            )
            moved[op.results[0]] = rewriter.add(new).results[0]
        rewriter.replace(ops[-1], TransposeOp(moved[ops[-1].results[0]], permutation))


# Past reshapes


@record
class Regrouped:
    """What a transpose and a reshape behind it are in the other order."""

    dims: tuple[Expr, ...]
    permutation: Permutation


def regrouped(op: ReshapeOp, permutation: Sequence[int]) -> Regrouped | None:
    """
    How a value that is transposed and then reshaped can be reshaped first: the dimensions that the
    reshape takes together or apart are side by side before the transpose, too.
    """
    before, after = dims_of(op.input), op.dims.data
    places: list[tuple[int, slice]] = []
    last = -1
    for old, new in dim_groups(before, after):
        axes = [permutation[k] for k in range(*old.indices(len(before))) if before[k] != 1]
        between = [axis for axis in permutation if before[permutation.index(axis)] != 1]
        if axes and sorted(a for a in between if axes[0] <= a <= axes[-1]) != axes:
            return None
        # Dimensions of one go with what stands before them.
        last = axes[0] if axes else last
        places.append((last, new))
    places.sort(key=lambda place: place[0])
    order = [k for _, new in places for k in range(*new.indices(len(after)))]
    return Regrouped(tuple(after[k] for k in order), inverse(order))


class SinkTransposePastReshape(Pattern[Regrouped]):
    """reshape(transpose(x, p)) -> transpose(reshape(x), q)"""

    name = "sink-transpose-past-reshape"
    roots = (ReshapeOp,)
    ranked = True

    def __init__(self, cancels: Callable[[SSAValue, Permutation], bool]) -> None:
        """`cancels` tells if a transpose of a value is undone later."""
        self._cancels = cancels

    def match(self, op: ReshapeOp) -> Match[Regrouped] | None:
        transpose = producer(op.input, TransposeOp)
        if transpose is None or not op.input.has_one_use():
            return None
        found = regrouped(op, ints(transpose.permutation))
        if found is None or not self._cancels(op.result, found.permutation):
            return None
        return Match((op, transpose), "what undoes the transpose follows", found)

    def rewrite(self, match: Match[Regrouped], rewriter: Rewriter) -> None:
        op, transpose = match.consumed
        assert isinstance(transpose, TransposeOp)
        value = rewriter.add(ReshapeOp(transpose.input, match.data.dims)).result
        rewriter.replace(op, TransposeOp(value, match.data.permutation))
