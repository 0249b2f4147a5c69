"""Slices that move up, past ops of which they leave something out: a search, and a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.reduce import CumulativeOp, PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter
from lowerdeck.passes.machinery.symbols import symbols_of
from lowerdeck.passes.movement.crop_rules import RULES, crop_of
from lowerdeck.passes.movement.ranges import Crop, Range, Ranges, parts_of, slice_of, whole

_MOST_OPS = 64
"""The most ops above a slice that a search visits."""

_MOVES = (ReshapeOp, TransposeOp, BroadcastOp)
"""Ops that compute nothing: to slice before them saves nothing by itself."""

_MAPS = (*ELEMENTWISE, BatchNormOp)
"""Ops that the loops of an op before them compute on the way."""

_TAKES_EPILOGUE = (ConvOp, ConvTransposeOp, PoolOp, ReduceOp, CumulativeOp)
"""Ops whose loops do what follows them on the way."""

_COPY = 16
"""The multiply-adds of a convolution that take as long as to copy an element."""

_OPEN = 1 << 10
"""What estimates take a size for that is not known."""

Accept: TypeAlias = Callable[[SliceOp], bool]


class Search:
    """Looks how far a slice can go."""

    def __init__(self) -> None:
        self._left = _MOST_OPS

    def pays(self, value: SSAValue, parts: Ranges) -> bool:
        """True if less is computed when slices take only `parts` of `value`."""
        return _is_sliced_only(value) and self.saves(value, parts)

    def saves(self, value: SSAValue, parts: Ranges) -> bool:
        """True if less is computed when only `parts` of `value` are."""
        op = value.owner
        self._left -= 1
        if self._left < 0 or not isinstance(op, Operation):
            return False
        if (crop := crop_of(op, parts)) is None:
            return False
        if isinstance(op, ConvOp | PoolOp):
            return self._saves_windows(op, crop, parts)
        if isinstance(op, ConcatOp) and len(crop.operands) == len(op.inputs):
            # Parts that are not computed are copied twice.
            return all(self.pays(v, needed) for v, needed in crop.operands if needed is not None)
        if isinstance(op, _MOVES):
            ((source, needed),) = crop.operands
            # Less is repeated, or something is computed less.
            return needed is None or self.pays(source, needed)
        return not isinstance(op, _MAPS) or not any(
            self._loses_epilogue(operand, needed)
            for operand, needed in crop.operands
            if needed is not None
        )

    def _saves_windows(self, op: ConvOp | PoolOp, crop: Crop, parts: Ranges) -> bool:
        """True if what fewer windows save is worth the copy of a part of the input, if any."""
        source, needed = crop.operands[0]
        if needed is None or isinstance(source.owner, ConstantOp) or self.pays(source, needed):
            return True
        window = dims_of(op.weight)[1:] if isinstance(op, ConvOp) else op.kernel.data
        left = product(part.size for part in parts)
        saved = (product(dims_of(op.result)) - left) * product(window)
        copied = product(part.size for part in needed) - left
        return _is_never_less(saved, copied * _COPY)

    def _loses_epilogue(self, value: SSAValue, parts: Ranges) -> bool:
        """True if the op that makes `value` stays as it is, and would not do what follows."""
        if not isinstance(value.owner, (*RULES, *_TAKES_EPILOGUE)) or not value.has_one_use():
            return False
        return not isinstance(value.owner, _MOVES) and not self.pays(value, parts)


def _is_never_less(left: Expr, right: Expr) -> bool:
    """True if the left side is at least the right one, with sizes that are no numbers as large."""
    difference = left - right
    return difference.evaluate(dict.fromkeys(difference.symbols, _OPEN)) >= 0


def _is_sliced_only(value: SSAValue) -> bool:
    """True if the uses of a value are one, or slices that all take the same, known with it."""
    if value.has_one_use():
        return True
    users = [use.operation for use in value.uses]
    first = users[0]
    if not isinstance(first, SliceOp) or not _symbols(first) <= symbols_of(value.type):
        return False
    return all(
        isinstance(user, SliceOp)
        and user.properties == first.properties
        and user.parent is first.parent
        for user in users
    )


def _symbols(op: SliceOp) -> set[str]:
    return set[str]().union(*(symbols_of(attribute) for attribute in op.properties.values()))


class HoistCrop(Pattern[Crop]):
    """slice(f(x, y)) -> f(slice(x), slice(y))"""

    name = "hoist-crop"
    roots = (SliceOp,)
    ranked = True

    def __init__(self, accepts: Accept | None = None) -> None:
        """With `accepts`, only slices for which it is true."""
        self._accepts = accepts

    def match(self, op: SliceOp) -> Match[Crop] | None:
        producer, parts = op.input.owner, parts_of(op)
        # From inside of a loop it would be computed anew each time.
        if not isinstance(producer, Operation) or producer.parent is not op.parent:
            return None
        if self._accepts is not None and not self._accepts(op):
            return None
        if not Search().pays(op.input, parts) or (crop := crop_of(producer, parts)) is None:
            return None
        # A scalar has no parts; of a concatenation just one operand may be left.
        is_same = not crop.properties and not any(parts for _, parts in crop.operands)
        if is_same and not isinstance(producer, ConcatOp):
            return None
        return Match((op, producer), "the rest is not needed", crop)

    def rewrite(self, match: Match[Crop], rewriter: Rewriter) -> None:
        op, producer = match.consumed
        assert isinstance(op, SliceOp)
        users = [use.operation for use in op.input.uses]
        # Some of the slices may stand before this one.
        anchor = op if len(users) == 1 else producer.next_op
        assert anchor is not None
        operands: list[SSAValue] = []
        for value, parts in match.data.operands:
            if parts is not None:
                value = rewriter.insert_before(anchor, slice_of(value, parts)).result
            operands.append(value)
        properties: dict[str, Attribute] = {**producer.properties, **match.data.properties}
        new = type(producer).create(
            operands=operands, result_types=[op.result.type], properties=properties
        )
        rewriter.insert_before(anchor, new)
        for user in users:
            rewriter.replace(user, new.results)


class CropBeforeSplit(Pattern[Ranges]):
    """y, z of _, y, z, _ = split(x) -> split(slice(x)) [less of x is computed]"""

    name = "crop-before-split"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[Ranges] | None:
        used = [k for k, part in enumerate(op.parts) if part.uses]
        if not used or used[-1] - used[0] + 1 == len(op.parts):
            return None
        axis = op.axis.data
        parts = whole(dims_of(op.input))
        size = sum(op.sizes.data[used[0] : used[-1] + 1], Expr.const(0))
        parts[axis] = Range.of(op.starts[used[0]], size)
        if not op.input.has_one_use() or not Search().saves(op.input, parts):
            return None
        return Match((op,), "the other parts are not used", parts)

    def rewrite(self, match: Match[Ranges], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, SplitOp)
        used = [k for k, part in enumerate(op.parts) if part.uses]
        read = slice(used[0], used[-1] + 1)
        part = rewriter.add(slice_of(op.input, match.data)).result
        split = rewriter.add(SplitOp(part, op.axis.data, op.sizes.data[read]))
        for old, new in zip(op.parts[read], split.parts, strict=True):
            rewriter.replace_value(old, new)
        rewriter.erase(op)
