"""`widen-half`: convolutions and products of half precision, and what lies between them, in f32."""

from __future__ import annotations

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import (
    BINARY,
    ELEMENTWISE,
    CastOp,
    CompareOp,
    MaxOp,
    MinOp,
    SelectOp,
)
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32
from lowerdeck.lowering.targets import target_named
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

_HALVES = (f16, bf16)
_MOVEMENT = (MovesElements, PadOp, ConcatOp)
_CHOICES = (MaxOp, MinOp, SelectOp)
_MAPS = (*BINARY, CompareOp, SelectOp)


class WidenHalf(Pattern):
    """f(x, w) -> cast(f(cast(x), cast(w)))"""

    name = "widen-half"
    roots = (ConvOp, ConvTransposeOp, MatmulOp)

    def __init__(self, *, keeps_constants: bool) -> None:
        """`keeps_constants`: they are stored as they are, and widened by each run."""
        self._keeps_constants = keeps_constants

    def match(self, op: CoreOp) -> Match | None:
        element = _half_of(op)
        return None if element is None else Match((op,), f"{element} in f32")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        self._widen(match, rewriter)

    def _widen(self, match: Match, rewriter: Rewriter) -> CoreOp:
        op = match.root
        assert isinstance(op, CoreOp)
        half = _half_of(op)
        assert half is not None
        wide = rewriter.add(
            op.with_operands([self._widened(value, rewriter) for value in op.operands])
        )
        results = [
            rewriter.add(CastOp(new, half)).result if element_type(old) == half else new
            for old, new in zip(op.results, wide.results, strict=True)
        ]
        rewriter.replace(op, results)
        return wide

    def _widened(self, value: SSAValue, rewriter: Rewriter) -> SSAValue:
        """A value of half precision in f32, others as they are; of constants it is known."""
        if element_type(value) not in _HALVES:
            return value
        try:
            array = None if self._keeps_constants else constant_array(value)
        except ElidedBlobError:
            array = None
        if array is None:
            return rewriter.add(CastOp(value, f32)).result
        return rewriter.add(ConstantOp.of(array.astype(np.float32))).result


class WidenBetween(WidenHalf):
    """
    The same for what computes rows and windows, broadcasts, or only moves or chooses elements that
    were computed: these are not rounded again.
    """

    name = "widen-between"
    roots = (*_MOVEMENT, PoolOp, ReduceOp, SoftmaxOp, LayerNormOp, *_MAPS)

    def __init__(self, unrounded: set[SSAValue], *, keeps_constants: bool) -> None:
        """What needs no rounding, because it was of half precision, goes to `unrounded`."""
        super().__init__(keeps_constants=keeps_constants)
        self._unrounded = unrounded

    def match(self, op: CoreOp) -> Match | None:
        values = [v for v in op.operands if element_type(v) in _HALVES and _is_computed(v)]
        if isinstance(op, _MAPS) and not isinstance(op, _CHOICES):
            # The others can be in one kernel with what computes their operands.
            values = [v for v in values if dims_of(v) != dims_of(op.results[0])]
        return super().match(op) if values else None

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        wide = self._widen(match, rewriter)
        if _chooses(wide):
            self._unrounded.update(wide.results)


class StoreWide(Pattern):
    """y = g(x), h(y) -> w = cast(g(x)), h(cast(w))"""

    name = "store-wide"
    roots = (CoreOp,)

    def __init__(self, unrounded: set[SSAValue]) -> None:
        self._unrounded = unrounded

    def match(self, op: CoreOp) -> Match | None:
        if isinstance(op, ConstantOp) or len(op.results) != 1:
            return None
        (result,) = op.results
        if element_type(result) not in _HALVES:
            return None
        users = {use.operation for use in result.uses}
        if all(user.has_trait(IsTerminator) for user in users):
            return None
        if len(users) == 1 and self._source(op) is None:
            (user,) = users
            if isinstance(user, ELEMENTWISE) and dims_of(user.results[0]) == dims_of(result):
                return None  # one kernel computes both
        return Match((op,), "kept in f32")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        op = match.root
        (result,) = op.results
        users = dict.fromkeys(use.operation for use in result.uses)
        wide = self._source(op)
        if wide is None:
            after = op.next_op
            assert after is not None
            wide = rewriter.insert_before(after, CastOp(result, f32)).result
        for user in users:
            if isinstance(user, CastOp) and element_type(user.result) == f32:
                rewriter.replace(user, wide)
                continue
            narrow = rewriter.insert_before(user, CastOp(wide, element_type(result))).result
            operands = [narrow if value is result else value for value in user.operands]
            rewriter.set_operands(user, operands)

    def _source(self, op: Operation) -> SSAValue | None:
        """The f32 value that a cast to half precision does not change."""
        return op.input if isinstance(op, CastOp) and op.input in self._unrounded else None


def _half_of(op: CoreOp) -> Attribute | None:
    """The type of the first operand of half precision."""
    elements = map(element_type, op.operands)
    return next((element for element in elements if element in _HALVES), None)


def _is_computed(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and not isinstance(value.owner, ConstantOp)


def _chooses(op: CoreOp) -> bool:
    """True if each element of the results is one of the operands'."""
    if isinstance(op, PoolOp):
        return op.kind.data is PoolKind.MAX
    if isinstance(op, ReduceOp):
        return op.kind.data in (ReduceKind.MAX, ReduceKind.MIN)
    return isinstance(op, (*_MOVEMENT, *_CHOICES))


class WidenHalfPass(ModulePass):
    """
    f(x, w) -> cast(f(cast(x), cast(w)))
        [f a convolution or product of f16 or bf16; the target has vectors]
    f(x) -> cast(f(cast(x)))
        [f of f16 or bf16 computes rows or windows, broadcasts, or moves or chooses elements that
        were computed; there are convolutions or products]
    y = g(x), h(y) -> w = cast(g(x)), h(cast(w))
        [g gives f16 or bf16, and is not computed in one kernel with its only user]

    Sums are those of f32, rounded once at the end, so every result stays what it is: products of
    two halves are exact in f32. Between kernels, numbers of half precision are stored as f32: what
    reads them in tiles and windows need not convert them again and again, and a root op has the
    epilogues and layouts of f32. A model without convolutions and products, which memory limits,
    stays as small as it is. Where weights are to stay small, or bf16 was asked for, constants are
    widened by each run.
    """

    name = "widen-half"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        if target_named(options.target).lanes == 1:
            return
        unrounded: set[SSAValue] = set()
        keeps = options.small_weights or options.precision == "bf16"
        patterns = (
            WidenHalf(keeps_constants=keeps),
            WidenBetween(unrounded, keeps_constants=keeps),
            StoreWide(unrounded),
        )
        for pattern in patterns:
            recorder = recorder_of(ctx)
            count = apply_patterns(op, [pattern], recorder, pass_name=self.name, recursive=False)
            if not count and type(pattern) is WidenHalf:
                return
