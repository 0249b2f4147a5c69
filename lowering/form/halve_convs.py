"""`halve-convs`: convolutions whose products tiles of matrices compute are those of bf16."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.buffer.tiles import TILE
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import bf16, dims_of, f32, numpy_dtype
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns, rounds
from lowerdeck.passes.machinery.values import Array

_FEWEST, _SHORTEST = TILE, 2 * TILE
"""Filters, and products of a sum: as many as a tile has rows, and numbers in each of them."""


class HalveConv(Pattern[Array]):
    """conv(x, w) -> conv(cast(x), cast(w)) of bf16, added up in f32"""

    name = "halve-conv"
    roots = (ConvOp,)

    def match(self, op: ConvOp) -> Match[Array] | None:
        if not op.is_uniform or op.groups.data != 1 or not isinstance(op.weight.owner, ConstantOp):
            return None
        try:
            array = op.weight.owner.array
        except ElidedBlobError:
            return None
        filters, depth = array.shape[0], prod(array.shape[1:])
        if array.dtype != np.float32 or filters < _FEWEST or depth < _SHORTEST:
            return None
        sizes = constants([*dims_of(op.input)[1:], *dims_of(op.result)[1:]])
        if sizes is None or 0 in sizes:
            return None
        with np.errstate(over="ignore"):
            halves = array.astype(numpy_dtype(bf16))
        if not np.isfinite(halves.astype(np.float32)).all():
            return None
        return Match((op,), "bf16", halves)

    def rewrite(self, match: Match[Array], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp)
        new = ConvOp(
            rewriter.add(CastOp(op.input, bf16)).result,
            rewriter.add(ConstantOp.of(match.data)).result,
            op.bias,
            strides=ints(op.strides),
            dilations=ints(op.dilations),
            pads_begin=op.pads_begin.data,
            pads_end=op.pads_end.data,
            accumulator=f32,
        )
        rewriter.replace(op, rewriter.add(new))


class HalveConvsPass(ModulePass):
    """
    conv(x, w) -> conv(cast(x), cast(w)) of bf16, added up in f32
        [the target multiplies tiles of bf16; w constant, finite in bf16, in one group, of 16
         filters of 32 elements at least; known sizes; x of f32]

    With `--precision bf16`. Elsewhere a convolution takes longer to round than it saves, and
    Winograd's algorithm would be lost.
    """

    name = "halve-convs"
    optional = True
    rounds_numbers = True
    precisions = ("bf16",)
    """With which it does something."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not rounds(self, options_of(ctx)):
            return
        if target_named(options_of(ctx).target).isa.tiles is None:
            return
        patterns: list[Pattern[Any]] = [HalveConv()]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
