"""`halve-products`: products with constant matrices are those of bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import bf16, f32, numpy_dtype, rank_of
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns, is_ranked
from lowerdeck.passes.machinery.values import Array

_FEWEST = 1024
"""Elements of a matrix that is worth it, as of one that is stored in fewer bits."""

_SHORTEST = 16
"""Products of a sum: shorter ones take longer to round than to compute."""


class HalveProduct(Pattern[Array]):
    """x @ w -> cast(x) @ w of bf16, added up in f32"""

    name = "halve-product"
    roots = (MatmulOp,)

    def match(self, op: MatmulOp) -> Match[Array] | None:
        if not op.is_uniform or not is_ranked(op) or rank_of(op.rhs) != 2:
            return None
        if not isinstance(op.rhs.owner, ConstantOp) or isinstance(op.lhs.owner, ConstantOp):
            return None
        try:
            array = op.rhs.owner.array
        except ElidedBlobError:
            return None
        if array.dtype != np.float32 or array.shape[0] < _SHORTEST:
            return None
        with np.errstate(over="ignore"):
            halves = array.astype(numpy_dtype(bf16))
        if array.size < _FEWEST or not np.isfinite(halves.astype(np.float32)).all():
            return None
        return Match((op,), "bf16", halves)

    def rewrite(self, match: Match[Array], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, MatmulOp)
        x = rewriter.add(CastOp(op.lhs, bf16)).result
        w = rewriter.add(ConstantOp.of(match.data)).result
        rewriter.replace(op, rewriter.add(MatmulOp(x, w, accumulator=f32)))


class HalveProductsPass(ModulePass):
    """
    x @ w -> cast(x) @ cast(w) of bf16, added up in f32
        [w a constant matrix of at least 1024 elements, 16 of a column, which is finite in bf16; x
         of f32]

    With `--precision bf16`. The rounding of x is the same on every target; where there is an
    instruction for sums of two such products, it is used (`pack-products`), else they are those of
    f32, which are exact. Sums of the instruction take subnormal numbers for zeros.
    """

    name = "halve-products"
    optional = True
    rounds_numbers = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if options_of(ctx).precision != "bf16":
            return
        patterns: list[Pattern[Any]] = [HalveProduct()]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
