"""Patterns that passes share: consecutive transposes, and transposes past other ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp, ints
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, producer
from lowerdeck.passes.machinery.equation import Equation, Rule

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
    SliceOp: _with_lists,
    PadOp: _with_lists,
}
"""Ops that a transpose can be sunk past, and their properties before it."""


def data_of(op: Operation) -> Sequence[SSAValue]:
    """The operands that are transposed with the result; the others are parameters."""
    return op.operands[:1] if isinstance(op, BatchNormOp | PadOp) else op.operands


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
        data = data_of(op)
        operands = [moved_before(value, permutation, rewriter) for value in data]
        order = inverse(permutation)
        result = op.results[0]
        dims = [dims_of(result)[place] for place in order]
        new = type(op).create(
            operands=[*operands, *op.operands[len(data) :]],
            result_types=[tensor(element_type(result), dims)],
            properties=RULES[type(op)](op, permutation),
        )
        rewriter.add(new)
        rewriter.replace(op, TransposeOp(new.results[0], permutation))
