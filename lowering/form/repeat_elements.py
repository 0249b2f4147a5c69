"""`repeat-elements`: gathers that repeat each element of rows become broadcasts."""

from __future__ import annotations

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.tensor import BroadcastOp, GatherOp, ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.provenance import derive


@record
class _Repeat:
    """A kernel that gives every element of a dimension some times, one after the other."""

    kernel: KernelOp
    source: SSAValue
    axis: int
    times: int


def _repeat_of(kernel: object) -> _Repeat | None:
    """What a row-major kernel of one gather repeats; None for other kernels."""
    if not isinstance(kernel, KernelOp) or kernel.view is not None or len(kernel.inputs) != 2:
        return None
    gather, *others = kernel.body.block.ops
    if not isinstance(gather, GatherOp) or len(others) != 1:
        return None
    count = len(kernel.inputs) + len(kernel.results)
    if not all(kernel.layout_at(position).is_row_major for position in range(count)):
        return None
    arguments: list[SSAValue] = list(kernel.body.block.args)
    source, indices = (
        kernel.inputs[arguments.index(value)] for value in (gather.input, gather.indices)
    )
    axis, size = gather.axis.data, dims_of(source)[gather.axis.data].value
    try:
        places = constant_array(indices)
    except ElidedBlobError:
        return None
    if places is None or places.ndim != 1 or not size or places.size % size:
        return None
    times = places.size // size
    if times < 2 or not np.array_equal(places, np.arange(size).repeat(times)):
        return None
    return _Repeat(kernel, source, axis, times)


def _repeats(kernel: KernelOp) -> list[_Repeat]:
    """Those of the last dimension, and of others before; none if vectors do not repeat so often."""
    last = _repeat_of(kernel)
    if last is None or last.axis != len(dims_of(last.source)) - 1 or last.times not in (2, 4):
        return []
    first = _repeat_of(last.source.owner)
    is_alone = first is not None and first.kernel.results[0].has_one_use()
    return [last] if first is None or first.axis == last.axis or not is_alone else [last, first]


def _replace(repeats: list[_Repeat]) -> None:
    last, source = repeats[0].kernel, repeats[-1].source
    times = {repeat.axis: repeat.times for repeat in repeats}
    narrow: list[Expr] = []
    wide: list[Expr] = []
    for axis, dim in enumerate(dims_of(source)):
        narrow.append(dim)
        wide.append(dim)
        if axis in times:
            narrow.append(Expr.const(1))
            wide.append(Expr.const(times[axis]))
    block = Block(arg_types=[source.type])
    split = ReshapeOp(block.args[0], narrow)
    spread = BroadcastOp(split.result, wide)
    joined = ReshapeOp(spread.result, dims_of(last.results[0]))
    block.add_ops([split, spread, joined, YieldOp([joined.result])])
    new = KernelOp(last.sym_name.data, [source], Region(block))
    new.location = derive(repeat.kernel.location for repeat in repeats)
    for op in (split, spread, joined):
        op.location = new.location
    Rewriter.insert_op(new, InsertPoint.before(last))
    new.results[0].name_hint = last.results[0].name_hint
    Rewriter.replace_op(last, [], new.results)
    for repeat in repeats[1:]:
        Rewriter.erase_op(repeat.kernel)


class RepeatElementsPass(ModulePass):
    """
    gather(x, [0, 0, 1, 1, ...]) -> reshape(broadcast(reshape(x)))
        [along the last dimension, row-major; another dimension of x may be repeated, too]

    Images become larger without an index for each element: vectors repeat what they load.
    """

    name = "repeat-elements"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        recorder = recorder_of(ctx)
        if target_named(options_of(ctx).target).lanes == 1:
            return
        for kernel in [k for k in all_ops(op) if isinstance(k, KernelOp)]:
            repeats = _repeats(kernel)
            kernels = [repeat.kernel for repeat in repeats]
            if repeats and recorder.decide(
                self.name, "repeat-elements", kernels, "each index occurs as often"
            ):
                _replace(repeats)
