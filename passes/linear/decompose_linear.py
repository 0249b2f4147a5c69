"""`decompose-linear`: batch normalizations become a product and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, SqrtOp, SubOp
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter
from lowerdeck.passes.machinery.values import rounded, scale_and_shift


class DecomposeConstantBatchNorm(Pattern[tuple[Any, Any]]):
    """batch_norm(x) -> x * s + t [constant, finite parameters]"""

    name = "decompose-constant-batch-norm"
    roots = (BatchNormOp,)
    ranked = True

    def match(self, op: BatchNormOp) -> Match[tuple[Any, Any]] | None:
        affine = scale_and_shift(op)
        return None if affine is None else Match((op,), "constant parameters", affine)

    def rewrite(self, match: Match[tuple[Any, Any]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, BatchNormOp)
        shape = [-1, *[1] * (rank_of(op.input) - op.axis.data - 1)]
        scale, shift = (
            rewriter.add(rounded(array.reshape(shape), op.input)).result for array in match.data
        )
        scaled = rewriter.add(MulOp(op.input, scale))
        _replace(op, rewriter.add(AddOp(scaled.result, shift)).result, rewriter)


class DecomposeComputedBatchNorm(Pattern):
    """batch_norm(x) -> (x - mean) * (scale / sqrt(variance + epsilon)) + bias"""

    name = "decompose-computed-batch-norm"
    roots = (BatchNormOp,)
    ranked = True

    def match(self, op: BatchNormOp) -> Match | None:
        return Match((op,), "computed parameters")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, BatchNormOp)

        def add(new: Operation) -> SSAValue:
            return rewriter.add(new).results[0]

        def column(value: SSAValue) -> SSAValue:
            ones = [1] * (rank_of(op.input) - op.axis.data - 1)
            return add(ReshapeOp(value, [*dims_of(value), *ones])) if ones else value

        epsilon = add(scalar(op.epsilon.value.data, element_type(op.input)))
        deviation = add(SqrtOp(add(AddOp(op.variance, epsilon))))
        scale = column(add(DivOp(op.scale, deviation)))
        centered = add(SubOp(op.input, column(op.mean)))
        result = add(AddOp(add(MulOp(centered, scale)), column(op.bias)))
        _replace(op, result, rewriter)


def _replace(op: BatchNormOp, value: SSAValue, rewriter: Rewriter) -> None:
    """The parameters may have a constant channel count where the input has a symbol."""
    if value.type != op.result.type:
        value = rewriter.add(ReshapeOp(value, dims_of(op.result))).result
    rewriter.replace(op, value)


class DecomposeLinearPass(PatternPass):
    """
    Batch normalization by elementwise ops.

    With s = scale / sqrt(variance + epsilon) and t = bias - mean * s, per channel:

    - batch_norm(x) -> x * s + t [parameters constant and finite; in float64, rounded once]
    - batch_norm(x) -> (x - mean) * s + bias [otherwise]

    Runs after `fuse-linear` and `merge-linear`, which read a batch normalization as s and t before
    these are rounded; so this leaves the elementwise ops of those that nothing took over.
    """

    name = "decompose-linear"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [DecomposeConstantBatchNorm(), DecomposeComputedBatchNorm()]
