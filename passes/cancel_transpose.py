"""`cancel-transpose`: transposes are sunk toward their inverses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.reduce import ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp, ints
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.transposes import ComposeTransposes, ReshapeInsteadOfTranspose

_MOST_OPS = 64
"""The maximum number of ops searched after a transpose for its inverse."""

Permutation: TypeAlias = list[int]
Properties: TypeAlias = dict[str, Attribute]


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


_RULES: Mapping[type[Operation], Callable[[Operation, Permutation], Properties]] = {
    **dict.fromkeys(ELEMENTWISE, _same),
    SoftmaxOp: _with_axis,
    ConcatOp: _with_axis,
    BatchNormOp: _with_axis,
    SliceOp: _with_lists,
    PadOp: _with_lists,
}
"""Ops that a transpose can be sunk past, and their properties before it."""


def _data(op: Operation) -> Sequence[SSAValue]:
    """The operands that are transposed with the result; the others are parameters."""
    return op.operands[:1] if isinstance(op, BatchNormOp | PadOp) else op.operands


def _can_move(value: SSAValue, permutation: Permutation) -> bool:
    """True if `value`, which broadcasts to a transposed result, can be permuted without a copy."""
    transpose = producer(value, TransposeOp)
    if transpose is not None and ints(transpose.permutation) == permutation:
        return True
    dims = _padded(dims_of(value), len(permutation))
    return constant_array(value) is not None or moves_nothing(dims, inverse(permutation))


def _padded(dims: Sequence[Expr], rank: int) -> list[Expr]:
    return [*[Expr.const(1)] * (rank - len(dims)), *dims]


def _moved(value: SSAValue, permutation: Permutation, rewriter: Rewriter) -> SSAValue:
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


# Is it worth it?


def _cancels_later(value: SSAValue, permutation: Permutation) -> bool:
    """True if an inverse follows, after ops that a transpose can be sunk past."""
    seen: set[Operation] = set()
    pending = [value]
    while pending and len(seen) < _MOST_OPS:
        current = pending.pop()
        for op in _users(current):
            if op in seen:
                continue
            seen.add(op)
            if _undoes(op, current, permutation):
                return True
            if type(op) in _RULES and current in _data(op) and _keeps_rank(op, current):
                pending.extend(op.results)
    return False


def _users(value: SSAValue) -> Iterator[Operation]:
    for use in value.uses:
        yield use.operation


def _keeps_rank(op: Operation, value: SSAValue) -> bool:
    return rank_of(op.results[0]) == rank_of(value)


def _undoes(op: Operation, value: SSAValue, permutation: Permutation) -> bool:
    """True if `op` cancels the transpose of `value` completely."""
    if isinstance(op, TransposeOp):
        both = [permutation[axis] for axis in ints(op.permutation)]
        return moves_nothing([dims_of(value)[axis] for axis in inverse(permutation)], both)
    return isinstance(op, ReduceOp) and _is_reduced_away(op, permutation)


def _is_reduced_away(op: ReduceOp, permutation: Permutation) -> bool:
    """True if the dimensions that `op` keeps are in order before the transpose."""
    axes, dims = set(ints(op.axes)), dims_of(op.input)
    kept = [axis for place, axis in enumerate(permutation) if place not in axes]
    sizes = [dim for place, dim in enumerate(dims) if place not in axes]
    moved = [axis for axis, size in zip(kept, sizes, strict=True) if size != 1]
    return moved == sorted(moved)


# Patterns


@dataclass(frozen=True)
class Sinking:
    """The permutation of the operands that are transposed."""

    permutation: Permutation


class SinkTranspose(Pattern[Sinking]):
    """f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p)"""

    name = "sink-transpose"
    roots = tuple(_RULES)
    ranked = True

    def match(self, op: Operation) -> Match[Sinking] | None:
        data = _data(op)
        rank = rank_of(op.results[0])
        transposes = [
            found
            for value in dict.fromkeys(data)
            if (found := producer(value, TransposeOp)) is not None
            and rank_of(value) == rank
            and all(user is op for user in _users(value))
        ]
        if not transposes:
            return None
        permutation = ints(transposes[0].permutation)
        try:
            movable = all(_can_move(value, permutation) for value in data)
        except ElidedBlobError:
            return None
        if not movable or not _cancels_later(op.results[0], permutation):
            return None
        return Match((op, *transposes), "what undoes it follows", Sinking(permutation))

    def rewrite(self, match: Match[Sinking], rewriter: Rewriter) -> None:
        op, permutation = match.root, match.data.permutation
        data = _data(op)
        operands = [_moved(value, permutation, rewriter) for value in data]
        order = inverse(permutation)
        result = op.results[0]
        dims = [dims_of(result)[place] for place in order]
        new = type(op).create(
            operands=[*operands, *op.operands[len(data) :]],
            result_types=[tensor(element_type(result), dims)],
            properties=_RULES[type(op)](op, permutation),
        )
        rewriter.add(new)
        rewriter.replace(op, TransposeOp(new.results[0], permutation))


class ReduceOfTranspose(Pattern[tuple[ReduceOp, TransposeOp]]):
    """reduce(transpose(x, p), axes) -> reduce(x, p[axes]) [the other dimensions in order]"""

    name = "reduce-of-transpose"
    roots = (ReduceOp,)
    ranked = True

    def match(self, op: ReduceOp) -> Match[tuple[ReduceOp, TransposeOp]] | None:
        transpose = producer(op.input, TransposeOp)
        if transpose is None or not _is_reduced_away(op, ints(transpose.permutation)):
            return None
        return Match((op, transpose), "what it leaves is in order", (op, transpose))

    def rewrite(self, match: Match[tuple[ReduceOp, TransposeOp]], rewriter: Rewriter) -> None:
        op, transpose = match.data
        permutation = ints(transpose.permutation)
        axes = sorted(permutation[axis] for axis in ints(op.axes))
        keep = bool(op.keep_dims.value.data)
        new = rewriter.add(ReduceOp(op.kind.data, transpose.input, axes, keep)).result
        if new.type != op.result.type:
            new = rewriter.add(ReshapeOp(new, dims_of(op.result))).result
        rewriter.replace(op, new)


class CancelTransposePass(PatternPass):
    """
    Transposes with a later inverse are sunk toward it and cancel.

    - f(transpose(x, p), transpose(y, p), c) -> transpose(f(x, y, c'), p)
      [f elementwise, softmax, concat, pad, slice or batch_norm; c constant, or a view suffices for
      c'; the transposes have no other use; after f, and possibly more such ops, follows the inverse
      of p, or a reduction that leaves nothing to permute]
    - reduce(transpose(x, p), axes) -> reduce(x, p[axes]) [the other dimensions stay in order]
    - transpose(transpose(x, p), q) -> transpose(x, p[q]), a reshape or x, as in `simplify-movement`

    Each step moves a transpose down or removes one; none is added. A transpose without an inverse
    stays where it is: next to a map it is part of the map's kernel.
    """

    name = "cancel-transpose"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            ComposeTransposes(),
            ReshapeInsteadOfTranspose(),
            ReduceOfTranspose(),
            SinkTranspose(),
        ]
