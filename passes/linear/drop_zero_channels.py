"""`drop-zero-channels`: channels that are zero, or that nothing reads, are not computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import (
    ReshapeOp,
    SliceOp,
)
from lowerdeck.dialects.core.types import (
    DimsAttr,
    dims_of,
    element_type,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.channels import ChannelAnalysis
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns
from lowerdeck.passes.machinery.values import Array


def _has_zeros(op: Operation) -> bool:
    """True for a constant matrix, or filters, with a row or column of zeros; most have none."""
    owner = op.operands[1].owner if isinstance(op, ConvOp | MatmulOp) else None
    if not isinstance(owner, ConstantOp) or not is_float(element_type(owner.result)):
        return False
    try:
        array: Array = owner.array
    except ElidedBlobError:
        return False
    if array.ndim < 2 or not array.size:
        return False
    rows, columns = (
        np.flatnonzero(each.reshape(len(each), -1)[:, 0] == 0) for each in (array, array[0])
    )
    return any(not array[row].any() for row in rows) or any(
        not array[:, column].any() for column in columns
    )


@record
class _Change:
    """An op, and which channels of its operands and its result stay; None for all."""

    op: CoreOp
    operands: tuple[Array | None, ...]
    result: Array | None
    axis: int
    """That of the result, if channels of it are known."""


def _changes(block: Block) -> list[_Change]:
    """All ops of a block that have fewer channels then, in order."""
    if not any(map(_has_zeros, block.ops)):
        return []
    analysis = ChannelAnalysis()
    analysis.follow(block)
    if not analysis.settle():
        return []
    found: list[_Change] = []
    for op in block.ops:
        operands = tuple(map(analysis.kept, op.operands))
        result = analysis.kept(op.results[0]) if op.results else None
        if result is None and not any(each is not None for each in operands):
            continue
        assert isinstance(op, CoreOp)
        channels = analysis.channels.get(op.results[0])
        found.append(_Change(op, operands, result, 0 if channels is None else channels.axis))
    return found


def _changed(change: _Change, rewriter: Rewriter) -> CoreOp:
    """The op with fewer channels; its operands have them already."""
    op, kept = change.op, change.result

    def constant(array: Array) -> SSAValue:
        return rewriter.insert_before(op, ConstantOp.of(np.ascontiguousarray(array))).result

    match op:
        case ConvOp() | MatmulOp():
            return _changed_product(op, change, constant)
        case SliceOp():
            source = change.operands[0]
            starts, sizes = list(op.starts.data), list(op.sizes.data)
            axis = change.axis
            first = starts[axis].value or 0
            # What it takes may all stay where what it leaves out goes.
            starts[axis] = Expr.const(first if source is None else int(source[:first].sum()))
            sizes[axis] = sizes[axis] if kept is None else Expr.const(int(kept.sum()))
            properties: dict[str, Attribute] = {
                "starts": DimsAttr.of(starts),
                "sizes": DimsAttr.of(sizes),
            }
            return op.with_operands(op.operands, properties)
        case ReshapeOp():
            assert kept is not None
            dims = list(op.dims.data)
            dims[change.axis] = Expr.const(int(kept.sum()))
            return op.with_operands(op.operands, {"dims": DimsAttr.of(dims)})
        case _:
            rank = rank_of(op.results[0])
            operands = list(op.operands)
            if isinstance(op, ELEMENTWISE) and kept is not None:
                for number, value in enumerate(operands):
                    own = change.axis - rank + rank_of(value)
                    is_cut = isinstance(value.owner, ConstantOp) and own >= 0
                    if is_cut and dims_of(value)[own] != 1:
                        assert isinstance(value.owner, ConstantOp)
                        operands[number] = constant(np.compress(kept, value.owner.array, own))
            return op.with_operands(operands)


def _changed_product(
    op: ConvOp | MatmulOp, change: _Change, constant: Callable[[Array], SSAValue]
) -> CoreOp:
    source, _, *_ = change.operands
    weight = op.operands[1].owner
    assert isinstance(weight, ConstantOp)
    array: Array = weight.array
    if isinstance(op, MatmulOp):
        array = array if source is None else array[source]
        array = array if change.result is None else array[:, change.result]
        return op.with_operands([op.lhs, constant(array)])
    properties: dict[str, Attribute] = {}
    if op.groups.data == 1:
        array = array if source is None else array[:, source]
    elif source is not None:
        properties["groups"] = IntAttr(int(source.sum()))
    array = array if change.result is None else array[change.result]
    operands = [op.input, constant(array)]
    if op.bias is not None:
        assert isinstance(op.bias.owner, ConstantOp)
        bias: Array = op.bias.owner.array
        cut = change.result is not None
        operands.append(constant(bias[change.result]) if cut else op.bias)
    return op.with_operands(operands, properties)


class DropChannels(Pattern[list[_Change]]):
    """f(x, w) -> f(x without channels, w without channels)"""

    name = "drop-channels"
    roots = (FuncOp,)

    def match(self, op: FuncOp) -> Match[list[_Change]] | None:
        if op.is_declaration or not (changes := _changes(op.body.block)):
            return None
        lost = sum(
            int((~each.result).sum())
            for each in changes
            if each.result is not None and isinstance(each.op, ConvOp | MatmulOp)
        )
        consumed = tuple(each.op for each in changes)
        return Match((op, *consumed), f"{lost} channels are zero, or nothing reads them", changes)

    def rewrite(self, match: Match[list[_Change]], rewriter: Rewriter) -> None:
        for change in match.data:
            new = rewriter.insert_before(change.op, _changed(change, rewriter))
            rewriter.replace(change.op, new)


class DropZeroChannelsPass(ModulePass):
    """
    Channels of convolutions and products with constant weights are not computed if they are zero in
    every run, because their weights and biases are, or if nothing reads them, because the weights
    that would are zero:

    - conv(x, w, b) -> conv(x[:, i], w[o, i], b[o]); x @ w -> x[:, i] @ w[i, o]
    - f(x, y) -> f(x[:, i], y[:, i]), likewise of constants
      [f elementwise; a channel goes if all that meet in it may go, as in residual connections]
    - pools, reductions, concatenations, slices, transposes and reshapes of fewer channels

    Depthwise convolutions lose the channels that their inputs lose. A channel is zero, too, where
    ops make zero of zeros, such as activations, and where a factor is zero. A product of zero is
    taken for zero, whatever the other factor; weights are finite. Inputs, outputs and whatever else
    is read as a whole keep all channels.
    """

    name = "drop-zero-channels"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [DropChannels()]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
