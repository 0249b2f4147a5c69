"""`multiply-windows`: convolutions whose weights have open sizes as products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp, WindowsOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp, ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, static_shape
from lowerdeck.dialects.dims import Expr, ExprLike, constants, maximum, product
from lowerdeck.lowering.strategies.facts import is_of
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns


class _Builder:
    """Adds ops before the root of a match."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    def add(self, op: CoreOp) -> SSAValue:
        """The only result of a new op."""
        return self._rewriter.add(op).results[0]

    def padded(self, x: SSAValue, begin: Sequence[ExprLike], end: Sequence[ExprLike]) -> SSAValue:
        """Zeros around the spatial dimensions."""
        if all(amount == 0 for amount in (*begin, *end)):
            return x
        zero = self.add(scalar(0, element_type(x)))
        return self.add(PadOp(x, [0, 0, *begin], [0, 0, *end], zero))

    def product(
        self,
        x: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None,
        taps: Sequence[Expr],
        steps: tuple[Sequence[int], Sequence[int]],
    ) -> SSAValue:
        """
        The convolution of a padded image, with these strides and dilations: the product of the
        matrix of filters, one for each group if there are several, with that of the windows. `x`
        has the channels of a group whose taps lie side by side in a row of the first as its last
        dimension before the spatial ones.
        """
        seen = self.add(WindowsOp(x, taps, *steps, apart=True))
        counts, groups = dims_of(seen)[-len(taps) :], dims_of(weight)[:-2]
        rows, filters = dims_of(weight)[-1], product([*groups, dims_of(weight)[-2]])
        batch = dims_of(x)[0]
        columns = self.add(ReshapeOp(seen, [batch, *groups, rows, product(counts)]))
        found = self.add(MatmulOp(weight, columns))
        if bias is not None:
            column = [*dims_of(weight)[:-1], 1]
            found = self.add(AddOp(found, self.add(ReshapeOp(bias, column))))
        return self.add(ReshapeOp(found, [batch, filters, *counts]))


class MultiplyWindows(Pattern[None]):
    """conv(x, w, b) -> w @ windows(x) + b"""

    name = "multiply-windows"
    roots = (ConvOp,)

    def match(self, op: ConvOp) -> Match[None] | None:
        if static_shape(op.weight) is not None or not is_of(op, f32, f64):
            return None
        return Match((op,), "weights of open sizes", None)

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op, b = match.root, _Builder(rewriter)
        assert isinstance(op, ConvOp)
        x = b.padded(op.input, op.pads_begin.data, op.pads_end.data)
        steps, groups = (ints(op.strides), ints(op.dilations)), op.groups.data
        filters, depth, *taps = dims_of(op.weight)
        # Weights are read as they lie, a channel with all its taps after the other.
        x = b.add(ReshapeOp(x, [*dims_of(x)[:2], 1, *dims_of(x)[2:]]))
        apart = [groups, filters // groups] if groups > 1 else [filters]
        weight = b.add(ReshapeOp(op.weight, [*apart, depth * product(taps)]))
        value = b.product(x, weight, op.bias, taps, steps)
        rewriter.replace(op, b.add(ReshapeOp(value, dims_of(op.result))))


class MultiplyPhases(Pattern[tuple[int, ...]]):
    """conv_transpose(x, w, b) -> interleaved(w_p @ windows(x) + b)"""

    name = "multiply-phases"
    roots = (ConvTransposeOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: ConvTransposeOp) -> Match[tuple[int, ...]] | None:
        if static_shape(op.weight) is not None or not is_of(op, f32, f64):
            return None
        pads, strides = constants(op.pads_begin.data), ints(op.strides)
        is_plain = op.groups.data == 1 and all(dilation == 1 for dilation in ints(op.dilations))
        # Each phase is a product of its own.
        if pads is None or not is_plain or prod(strides) > self._target.lanes:
            return None
        return Match((op,), "weights of open sizes", pads)

    def rewrite(self, match: Match[tuple[int, ...]], rewriter: Rewriter) -> None:
        op, pads, b = match.root, match.data, _Builder(rewriter)
        assert isinstance(op, ConvTransposeOp)
        strides, rank = ints(op.strides), len(pads)
        dims, image, (_, _, *sizes) = (dims_of(v) for v in (op.result, op.input, op.weight))
        counts = [dim.ceildiv(stride) for dim, stride in zip(dims[2:], strides, strict=True)]
        # As much around the image as any phase reads of it.
        begin = [size.ceildiv(stride) for size, stride in zip(sizes, strides, strict=True)]
        end = [
            maximum(count - size + (stride - 1 + pad) // stride, 0)
            for count, size, stride, pad in zip(counts, image[2:], strides, pads, strict=True)
        ]
        x = b.padded(op.input, begin, end)
        # Channels last: phases then are slices of rows.
        weight = b.add(TransposeOp(op.weight, [1, *range(2, 2 + rank), 0]))
        parts: list[SSAValue] = []
        for phase in combinations(*(range(stride) for stride in strides)):
            places = [
                divmod(at + pad, stride)
                for at, pad, stride in zip(phase, pads, strides, strict=True)
            ]
            taps, turned = _taps(weight, places, strides, b)
            value = b.product(x, turned, op.bias, taps, ([1] * rank, [1] * rank))
            starts = [
                before - tap + 1 + whole
                for before, tap, (whole, _) in zip(begin, taps, places, strict=True)
            ]
            parts.append(b.add(SliceOp(value, [0, 0, *starts], [*dims[:2], *counts])))
        joined = b.add(ConcatOp(parts, 2)) if len(parts) > 1 else parts[0]
        apart = b.add(ReshapeOp(joined, [*dims[:2], *strides, *counts]))
        order = [0, 1, *(axis for k in range(rank) for axis in (2 + rank + k, 2 + k))]
        whole = [count * stride for count, stride in zip(counts, strides, strict=True)]
        value = b.add(ReshapeOp(b.add(TransposeOp(apart, order)), [*dims[:2], *whole]))
        rewriter.replace(op, b.add(SliceOp(value, [0] * len(dims), dims)))


def _taps(
    weight: SSAValue, places: Sequence[tuple[int, int]], strides: Sequence[int], b: _Builder
) -> tuple[list[Expr], SSAValue]:
    """
    The taps of a phase, and the matrix of these in reverse, of filters with all taps. With padding,
    result 0 of the phase is at `stride * whole + rest`, and result q the sum over t of
    x[q + whole - t] * w[rest + stride * t].
    """
    filters, *sizes, channels = dims_of(weight)
    lists = list(zip(sizes, places, strides, strict=True))
    taps = [(size - rest).ceildiv(stride) for size, (_, rest), stride in lists]
    lasts = [
        rest + (tap - 1) * stride for tap, (_, (_, rest), stride) in zip(taps, lists, strict=True)
    ]
    steps = [1, *(-stride for stride in strides), 1]
    turned = b.add(SliceOp(weight, [0, *lasts, 0], [filters, *taps, channels], steps))
    return taps, b.add(ReshapeOp(turned, [filters, product([*taps, channels])]))


class MultiplyWindowsPass(ModulePass):
    """
    - conv(x, w, b) -> w @ windows(x) + b
    - conv_transpose(x, w, b) -> interleaved(w_p @ windows(x) + b)
      [one group; no dilations; no more phases than a vector has lanes; w_p has the taps of phase p
       in reverse]

    Where w has open sizes: f32 and f64, on targets with vectors. How many taps and channels there
    are is not known, but rows and columns of a product may be any number. The matrix of the windows
    is in memory as a whole.
    """

    name = "multiply-windows"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_named(options_of(ctx).target)
        if target.lanes > 1:
            patterns = [MultiplyWindows(), MultiplyPhases(target)]
            apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
