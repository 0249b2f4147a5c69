"""`settle-indices`: indices that are constants are checked now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ReshapeOp,
    ScatterElementsOp,
    ScatterNdOp,
    SliceOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.context import recorder_of
from lowerdeck.passes.driver import Match, Pattern, Rewriter, apply_patterns

_ALONG_AXIS = (GatherOp, GatherElementsOp, ScatterElementsOp)
_BY_ROWS = (GatherNdOp, ScatterNdOp)


def _settled(op: Operation) -> NDArray[np.int32] | None:
    """Constant indices, none of them negative; None if there are others, or one is wrong."""
    assert isinstance(op, _ALONG_AXIS + _BY_ROWS)
    try:
        array = constant_array(op.indices)
    except ElidedBlobError:
        return None
    if array is None or not array.size:
        return None
    dims = [dim.value for dim in dims_of(op.input)]
    if isinstance(op, _ALONG_AXIS):
        bounds = [dims[op.axis.data]]
    else:
        first = op.batch_dims.data if isinstance(op, GatherNdOp) else 0
        bounds = dims[first : first + array.shape[-1]]
    if not all(bound is not None and bound <= np.iinfo(np.int32).max for bound in bounds):
        return None
    sizes = np.array(bounds, np.int64)
    wide = array.astype(np.int64)
    if (array.dtype == np.uint64 and (wide < 0).any()) or ((wide < -sizes) | (wide >= sizes)).any():
        return None
    return np.where(wide < 0, wide + sizes, wide).astype(np.int32)


class SettleIndices(Pattern[Any]):
    """gather(x, i) -> gather(x, i) inside [i constant and in range; so are other such ops]"""

    name = "settle-indices"
    roots = (*_ALONG_AXIS, *_BY_ROWS)
    ranked = True

    def match(self, op: Operation) -> Match[Any] | None:
        assert isinstance(op, _ALONG_AXIS + _BY_ROWS)
        if op.inside is not None or (found := _settled(op)) is None:
            return None
        return Match((op,), "the indices are constants", found)

    def rewrite(self, match: Match[Any], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, CoreOp)
        indices = rewriter.add(ConstantOp.of(match.data)).result
        operands = [op.operands[0], indices, *op.operands[2:]]
        rewriter.replace(op, op.with_operands(operands, {"inside": UnitAttr()}))


@dataclass(frozen=True)
class _Repeat:
    """Elements of one dimension, evenly spaced, each some times."""

    axis: int
    start: int
    count: int
    step: int
    times: int


def _repeat(op: GatherOp) -> _Repeat | None:
    places = _settled(op)
    if places is None or places.ndim != 1:
        return None
    changes = np.flatnonzero(np.diff(places))
    times = int(changes[0]) + 1 if changes.size else places.size
    if times < 2 or places.size % times:
        return None
    rows = places.reshape(-1, times)
    firsts = rows[:, 0].astype(np.int64)
    steps = np.unique(np.diff(firsts))
    if (rows != rows[:, :1]).any() or steps.size > 1:
        return None
    step = int(steps[0]) if steps.size else 1
    return _Repeat(op.axis.data, int(firsts[0]), firsts.size, step, times)


def _repeats(op: GatherOp) -> Iterator[tuple[GatherOp, _Repeat]]:
    """A gather that repeats elements, and those before it along other dimensions."""
    axes: set[int] = set()
    while (found := _repeat(op)) is not None and found.axis not in axes:
        yield op, found
        axes.add(found.axis)
        inner = op.input.owner
        if not isinstance(inner, GatherOp) or not op.input.has_one_use():
            return
        op = inner


def _is_part_of_another(op: GatherOp, axes: set[int]) -> bool:
    """True if the only use is by a gather that repeats elements of a dimension of its own."""
    if not op.result.has_one_use():
        return False
    (use,) = op.result.uses
    user = use.operation
    if not isinstance(user, GatherOp) or user.input is not op.result:
        return False
    return (found := _repeat(user)) is not None and found.axis not in axes


class RepeatInsteadOfGather(Pattern[list[_Repeat]]):
    """gather(x, [a, a, a + s, a + s, ...]) -> reshape(broadcast(reshape(slice(x)))) [in range]"""

    name = "repeat-instead-of-gather"
    roots = (GatherOp,)
    ranked = True

    def match(self, op: GatherOp) -> Match[list[_Repeat]] | None:
        found = list(_repeats(op))
        if not found or _is_part_of_another(op, {part.axis for _, part in found}):
            return None
        consumed = tuple(gather for gather, _ in found)
        return Match(consumed, "each index occurs several times", [part for _, part in found])

    def rewrite(self, match: Match[list[_Repeat]], rewriter: Rewriter) -> None:
        op, last = match.root, match.consumed[-1]
        assert isinstance(op, GatherOp)
        assert isinstance(last, GatherOp)
        sizes, by_axis = list(dims_of(last.input)), {part.axis: part for part in match.data}
        starts, steps = [Expr.const(0)] * len(sizes), [Expr.const(1)] * len(sizes)
        narrow: list[Expr] = []
        wide: list[Expr] = []
        for axis in range(len(sizes)):
            if (part := by_axis.get(axis)) is not None:
                starts[axis], sizes[axis] = Expr.const(part.start), Expr.const(part.count)
                steps[axis] = Expr.const(part.step)
            narrow.append(sizes[axis])
            wide.append(sizes[axis])
            if part is not None:
                narrow.append(Expr.const(1))
                wide.append(Expr.const(part.times))
        value = last.input
        if list(dims_of(value)) != sizes or any(step != 1 for step in steps):
            value = rewriter.add(SliceOp(value, starts, sizes, steps)).result
        value = rewriter.add(ReshapeOp(value, narrow)).result
        value = rewriter.add(BroadcastOp(value, wide)).result
        rewriter.replace(op, ReshapeOp(value, dims_of(op.result)))


@dataclass(frozen=True)
class SettleIndicesPass(ModulePass):
    """
    - gather(x, [a, a, a + s, a + s, ...]) -> reshape(broadcast(reshape(slice(x)))) [in range]
    - gather(x, i) -> gather(x, i) inside [i constant and in range; so are other such ops]

    What a run would check each time is known, and elements side by side are moved as such.
    """

    name = "settle-indices"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for pattern in (RepeatInsteadOfGather(), SettleIndices()):
            apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
