"""`hoist-slice`: what a slice leaves out is not computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.index_maps import HasIndexMaps
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ReshapeOp, SliceOp, TransposeOp
from lowerdeck.dialects.core.types import DimsAttr, dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.symbols import symbols_of

_MOST_OPS = 64
"""The most ops above a slice that a search visits."""


@dataclass(frozen=True)
class Range:
    """What is taken of one dimension: elements start + i * step, i < size."""

    start: Expr
    size: Expr
    step: Expr

    def is_whole(self, dim: Expr) -> bool:
        """True if it is all of the dimension, in order."""
        return self.start == 0 and self.step == 1 and self.size == dim


Ranges: TypeAlias = list[Range]
Rule: TypeAlias = Callable[[Any, Ranges], "list[Ranges | None] | None"]
"""The parts of each operand (None: the operand as it is) that give parts of the result, if any."""


def _whole(dims: Sequence[Expr]) -> Ranges:
    return [Range(Expr.const(0), dim, Expr.const(1)) for dim in dims]


def _are_whole(parts: Sequence[Range], dims: Sequence[Expr]) -> bool:
    return all(part.is_whole(dim) for part, dim in zip(parts, dims, strict=True))


def _needed(parts: Ranges, value: SSAValue) -> Ranges | None:
    return None if _are_whole(parts, dims_of(value)) else parts


def _followed(op: HasIndexMaps, parts: Ranges) -> list[Ranges | None] | None:
    """The parts by where elements come from; None if they do not tell which parts are needed."""
    result = dims_of(op.results[0])
    at = [Expr.symbol(f"at.{axis}") for axis in range(len(result))]
    followed: set[int] = set()
    found: list[Ranges | None] = []
    for number, value in enumerate(op.operands):
        operand: Ranges = []
        for index, dim in zip(op.operand_index(number, at), dims_of(value), strict=True):
            if index is None or (index == 0 and dim == 1):
                operand.append(Range(Expr.const(0), dim, Expr.const(1)))
                continue
            axis = at.index(index) if index in at else None
            if axis is None or result[axis] != dim:
                return None
            followed.add(axis)
            operand.append(parts[axis])
        found.append(_needed(operand, value))
    rest = (axis for axis in range(len(result)) if axis not in followed)
    return found if all(parts[axis].is_whole(result[axis]) for axis in rest) else None


def _layer_norm(op: LayerNormOp, parts: Ranges) -> list[Ranges | None] | None:
    axis, dims = op.axis.data, dims_of(op.input)
    if not _are_whole(parts[axis:], dims[axis:]):
        return None
    if any(rank_of(parameter) > len(dims) - axis for parameter in op.operands[1:]):
        return None
    return [parts, *[None] * (len(op.operands) - 1)]


def _matmul(op: MatmulOp, parts: Ranges) -> list[Ranges | None] | None:
    if op.zero_points:
        return None
    lhs, rhs, result = dims_of(op.lhs), dims_of(op.rhs), dims_of(op.result)
    left, right = _whole(lhs), _whole(rhs)
    if not _are_whole(parts[:-2], result[:-2]):
        if len(rhs) != 2:
            return None
        left[:-2] = parts[:-2]
    left[-2], right[-1] = parts[-2], parts[-1]
    return [_needed(left, op.lhs), _needed(right, op.rhs)]


def _attention(op: AttentionOp, parts: Ranges) -> list[Ranges | None] | None:
    """A part of the queries."""
    dims, place = dims_of(op.result), rank_of(op.result) - 3
    if not _are_whole([*parts[:place], *parts[place + 1 :]], [*dims[:place], *dims[place + 1 :]]):
        return None
    query = _whole(dims_of(op.query))
    query[place] = parts[place]
    found: list[Ranges | None] = [query, None, None]
    if op.mask is not None:
        mask = _whole(dims_of(op.mask))
        if len(mask) > 1 and dims_of(op.mask)[-2] != 1:
            mask[-2] = parts[place]
        found.append(_needed(mask, op.mask))
    return found


def _reshape(op: ReshapeOp, parts: Ranges) -> list[Ranges | None] | None:
    """A part of the leading dimensions that both shapes have."""
    before, after = dims_of(op.input), op.dims.data
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    if not _are_whole(parts[same:], after[same:]):
        return None
    return [[*parts[:same], *_whole(before[same:])]]


_RULES: Mapping[type[Operation], Rule] = {
    **dict.fromkeys((*ELEMENTWISE, SoftmaxOp, TransposeOp), _followed),
    # Index maps do not tell that a row is normalized as a whole, which parts of a product pay, or
    # which dimensions a reshape keeps.
    LayerNormOp: _layer_norm,
    MatmulOp: _matmul,
    AttentionOp: _attention,
    ReshapeOp: _reshape,
}

_MOVES = (ReshapeOp, TransposeOp)
"""Ops that compute nothing: to slice before them saves nothing by itself."""

_TAKES_EPILOGUE = (ConvOp, ConvTransposeOp, PoolOp, ReduceOp, CumulativeOp)
"""Ops that no slice passes, and whose loops do what follows them on the way."""


class _Search:
    """Looks how far a slice can go."""

    def __init__(self) -> None:
        self._left = _MOST_OPS

    def pays(self, value: SSAValue, parts: Ranges) -> bool:
        """True if less is computed when only parts of `value` are."""
        op = value.owner
        self._left -= 1
        if self._left < 0 or not isinstance(op, Operation) or not _is_sliced_only(value):
            return False
        operands = _operand_parts(op, parts)
        if operands is None:
            return False
        if isinstance(op, _MOVES):
            return operands[0] is not None and self.pays(op.operands[0], operands[0])
        return not isinstance(op, ELEMENTWISE) or not any(
            self._loses_epilogue(operand, needed)
            for operand, needed in zip(op.operands, operands, strict=True)
            if needed is not None
        )

    def _loses_epilogue(self, value: SSAValue, parts: Ranges) -> bool:
        """True if the op that makes `value` stays as it is, and would not do what follows."""
        if isinstance(value.owner, _TAKES_EPILOGUE):
            return value.has_one_use()
        anchored = isinstance(value.owner, (*ELEMENTWISE, *_RULES)) and value.has_one_use()
        return anchored and not isinstance(value.owner, _MOVES) and not self.pays(value, parts)


def _operand_parts(op: Operation, parts: Ranges) -> list[Ranges | None] | None:
    rule = _RULES.get(type(op))
    return rule(op, parts) if rule is not None and is_ranked(op) else None


def _is_sliced_only(value: SSAValue) -> bool:
    """True if the uses of a value are one, or slices that all take the same, known with it."""
    if value.has_one_use():
        return True
    users = [use.operation for use in value.uses]
    first = users[0]
    if not isinstance(first, SliceOp) or not _symbols(first) <= symbols_of(value.type):
        return False
    return all(
        isinstance(user, SliceOp)
        and user.properties == first.properties
        and user.parent is first.parent
        for user in users
    )


def _symbols(op: SliceOp) -> set[str]:
    return set[str]().union(*(symbols_of(attribute) for attribute in op.properties.values()))


def _parts_of(op: SliceOp) -> Ranges:
    lists = zip(op.starts.data, op.sizes.data, op.steps.data, strict=True)
    return [Range(*values) for values in lists]


class HoistSlice(Pattern[list[Ranges | None]]):
    """slice(f(x, y)) -> f(slice(x), slice(y))"""

    name = "hoist-slice"
    roots = (SliceOp,)
    ranked = True

    def match(self, op: SliceOp) -> Match[list[Ranges | None]] | None:
        producer, parts = op.input.owner, _parts_of(op)
        # From inside of a loop it would be computed anew each time.
        if not isinstance(producer, Operation) or producer.parent is not op.parent:
            return None
        if not _Search().pays(op.input, parts):
            return None
        operands = _operand_parts(producer, parts)
        # A scalar has no parts.
        if operands is None or not any(operands):
            return None
        return Match((op, producer), "the rest is not needed", operands)

    def rewrite(self, match: Match[list[Ranges | None]], rewriter: Rewriter) -> None:
        op, producer = match.consumed
        assert isinstance(op, SliceOp)
        users = [use.operation for use in op.input.uses]
        # Some of the slices may stand before this one.
        anchor = op if len(users) == 1 else producer.next_op
        assert anchor is not None
        operands: list[SSAValue] = []
        for value, parts in zip(producer.operands, match.data, strict=True):
            if parts:
                starts, sizes, steps = zip(*((p.start, p.size, p.step) for p in parts), strict=True)
                part = SliceOp(value, starts, sizes, steps)
                value = rewriter.insert_before(anchor, part).result
            operands.append(value)
        properties: dict[str, Attribute] = dict(producer.properties)
        if isinstance(producer, ReshapeOp):
            properties["dims"] = DimsAttr.of(dims_of(op.result))
        new = type(producer).create(
            operands=operands, result_types=[op.result.type], properties=properties
        )
        rewriter.insert_before(anchor, new)
        for user in users:
            rewriter.replace(user, new.results)


class HoistSlicePass(PatternPass):
    """
    Slices move up to where what they leave out is computed.

    - slice(f(x, y)) -> f(slice(x), slice(y)) [f elementwise; softmax and layer_norm along whole
      dimensions; matmul without zero points; attention to a part of the queries; the result used
      only by slices that take the same, in the same block]
    - likewise for reshapes (of dimensions that stay) and transposes [if it reaches another f]

    A map behind a convolution, pool or reduction stays: it is done there on the way. So a model
    that reads one token of its last layer computes that one token.
    """

    name = "hoist-slice"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [HoistSlice()]
