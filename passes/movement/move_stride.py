"""`move-stride`: what a convolution with strides passes over is not computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import int_array
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import SliceOp, ints
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.movement.crops import HoistCrop, Search
from lowerdeck.passes.movement.ranges import Range, Ranges, slice_of


@record
class Strides:
    """Strides that all users of a value have in common."""

    users: tuple[ConvOp | PoolOp, ...]
    common: tuple[int, ...]
    """One number a spatial dimension."""
    parts: Ranges
    """What the users read of the value."""


def _strides(op: ConvOp | PoolOp) -> list[int]:
    """The strides of an op, 1 for a dimension in which its windows are not single elements."""
    kernel = dims_of(op.weight)[2:] if isinstance(op, ConvOp) else op.kernel.data
    lists = zip(ints(op.strides), kernel, op.pads_begin.data, op.pads_end.data, strict=True)
    return [
        stride if size == 1 and begin == 0 and end == 0 else 1 for stride, size, begin, end in lists
    ]


def _users(value: SSAValue) -> tuple[ConvOp | PoolOp, ...] | None:
    """The users of a value if all of them are convolutions or pools of it, in one block."""
    users = dict.fromkeys(use.operation for use in value.uses)
    found = [
        user
        for user in users
        if isinstance(user, ConvOp | PoolOp)
        and value not in user.operands[1:]
        and is_ranked(user)
        and isinstance(value.owner, Operation)
        and user.parent is value.owner.parent
    ]
    return tuple(found) if len(found) == len(users) else None


def _is_regular(op: SliceOp) -> bool:
    """True if a slice takes every second, third, ... element, beginning with the first."""
    lists = zip(dims_of(op.input), op.starts.data, op.sizes.data, op.steps.data, strict=True)
    return all(
        start == 0 and (step.value or 0) > 0 and size == _taken(dim, step.value or 1)
        for dim, start, size, step in lists
    )


class StrideBeforeWindows(Pattern[Strides]):
    """conv(x, w) {strides = s * t} -> conv(slice(x, steps s), w) {strides = t}"""

    name = "stride-before-windows"
    roots = (ConvOp, PoolOp)
    ranked = True

    def match(self, op: ConvOp | PoolOp) -> Match[Strides] | None:
        if max(_strides(op), default=1) == 1 or (users := _users(op.input)) is None:
            return None
        common = tuple(gcd(*each) for each in zip(*map(_strides, users), strict=True))
        dims = dims_of(op.input)
        if max(common) == 1 or any(dim == 1 for dim in dims[2:]):
            return None
        parts = [Range.of(0, dim) for dim in dims[:2]]
        parts += [Range.of(0, _taken(dim, s), s) for dim, s in zip(dims[2:], common, strict=True)]
        if not Search().saves(op.input, parts):
            return None
        others = (user for user in users if user is not op)
        reason = f"strides of {', '.join(map(str, common))} leave out what is computed before"
        return Match((op, *others), reason, Strides(users, common, parts))

    def rewrite(self, match: Match[Strides], rewriter: Rewriter) -> None:
        found = match.data
        value = found.users[0].input
        producer = value.owner
        assert isinstance(producer, Operation)
        assert producer.next_op is not None
        part = rewriter.insert_before(producer.next_op, slice_of(value, found.parts)).result
        for user in found.users:
            lists = zip(ints(user.strides), found.common, strict=True)
            strides = int_array([stride // common for stride, common in lists])
            new = user.with_operands([part, *user.operands[1:]], {"strides": strides})
            rewriter.replace(user, new)


def _taken(dim: Expr, step: int) -> Expr:
    return (dim - 1) // step + 1


class MoveStridePass(PatternPass):
    """
    Strides move up to where what they pass over is computed.

    Convolutions and pools with windows of one element read every s-th element only:

    - conv(x, w) {strides = s * t} -> conv(x[::s], w) {strides = t}, along each dimension in which
      the kernel is 1 and nothing is padded [s is common to all users of x, which are such
      convolutions and pools; x[::s] gets as far as one of the following ops]
    - f(x, y)[::s] -> f(x[::s], y[::s]) [f elementwise]
    - conv(x, w)[::s] -> conv(x, w) {strides times s}; likewise for pools, of any window

    and so on, as far as `hoist-crop` moves a slice. If one operand of a sum is a convolution, its
    strides take the step; if another one is needed as a whole elsewhere, a slice of it is left: a
    pool with a kernel of one element, but for NaN, which pools pass over.
    """

    name = "move-stride"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [StrideBeforeWindows(), HoistCrop(_is_regular)]
