"""`settle-indices`: indices that are constants are checked now."""

from __future__ import annotations

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
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    ScatterElementsOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

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
    rows = array.reshape(-1, len(bounds))
    least, most = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    sizes = [bound or 0 for bound in bounds]
    if any(low < -size or high >= size for low, high, size in zip(least, most, sizes, strict=True)):
        return None
    # There may be very many.
    found = rows.astype(np.int32)
    if min(least) < 0:
        np.add(found, np.array(sizes, np.int32), out=found, where=found < 0)
    # A number stays one: it takes a dimension away.
    return found.reshape(array.shape)


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


class SettleIndicesPass(ModulePass):
    """
    gather(x, i) -> gather(x, i) inside [i constant and in range; so are other such ops]

    What a run would check each time is known before.
    """

    name = "settle-indices"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = SettleIndices()
        apply_patterns(op, [pattern], recorder_of(ctx), pass_name=self.name, recursive=False)
