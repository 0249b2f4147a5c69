"""`narrow-weights`: constant weights in fewer bits, which kernels widen where they read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp, CastOp, MulOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.quantize import MIDDLE, DequantizeOp, pairs_of
from lowerdeck.dialects.core.tensor import GatherOp, ReshapeOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.rounding import as_bytes, as_halves
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns, is_ranked
from lowerdeck.passes.machinery.options import block_of, is_weight_format
from lowerdeck.passes.machinery.values import Array

_FLOATS = {"bf16": bf16, "fp16": f16}
"""The element types of the formats that are floats."""

_HALVES = "halves of bytes"

_FEWEST = 1024
"""Elements of a constant that is worth it."""

_SHORTEST = 16
"""Of the sums that share a scale: fewer weights are not much larger than their scales."""

_NARROWEST = 8
"""Columns of a matrix in four bits: fewer would be filled up to vectors."""

HalvesRule: TypeAlias = Callable[[Array, int, int], "tuple[Array, ...] | None"]
"""
How a matrix becomes integers from 0 to 15, scales, and zero points where these are not all 8, along
an axis in blocks; None for one that stays.
"""

Contraction: TypeAlias = ConvOp | ConvTransposeOp | MatmulOp


@record
class Narrow:
    """A constant in fewer bits; its elements times the scale, if there is one, are those it had."""

    values: ConstantOp
    scale: Array | None
    """With one dimension more than the values, the first, for parts of their first."""


@record
class Halves:
    """A constant in four bits a number, with a scale for each block along an axis."""

    parts: tuple[ConstantOp, ...]
    """The codes, the scales, and zero points if there are any."""
    axis: int
    size: int
    block: int


class _Store:
    """What constants have become, so that what several ops read is stored once."""

    def __init__(
        self, format_: str, rule: HalvesRule, *, keeps_others: bool, only_if_faster: bool
    ) -> None:
        self._rule, self._keeps_others = rule, keeps_others
        self.only_if_faster = only_if_faster
        """True if weights stay as they are that take longer to compute with than to read."""
        self._element = _FLOATS.get(format_)
        self._block = block_of(format_)
        self._narrow: dict[tuple[ConstantOp, tuple[int, ...]], Narrow | None] = {}
        self._halves: dict[tuple[ConstantOp, int], Halves | None] = {}

    @property
    def name(self) -> str:
        """What is stored."""
        return "bytes" if self._element is None else str(self._element)

    def narrow(self, value: SSAValue, axes: Sequence[int], parts: int = 1) -> Narrow | None:
        """
        A constant in fewer bits; bytes have one scale for all elements along `axes`, in as many
        parts of the first axis. None for what stays: what is computed, small or not finite.
        """
        op = value.owner
        if not isinstance(op, ConstantOp) or element_type(value) != f32 or self._keeps_others:
            return None
        key = (op, (*axes, parts))
        if key not in self._narrow:
            self._narrow[key] = self._of(op, axes, parts)
        return self._narrow[key]

    def halves(self, value: SSAValue, axis: int) -> Halves | None:
        """A matrix in four bits a number, in blocks along an axis; None for what is none so."""
        op = value.owner
        if self._block is None or not isinstance(op, ConstantOp) or element_type(value) != f32:
            return None
        if rank_of(value) != 2:
            return None
        key = (op, axis)
        if key not in self._halves:
            array = _weights_of(op)
            self._halves[key] = None if array is None else self._as_halves(array, axis, self._block)
        return self._halves[key]

    def _as_halves(self, array: Array, axis: int, block: int) -> Halves | None:
        is_worth_it = array.shape[axis] >= _SHORTEST and array.shape[1 - axis] >= _NARROWEST
        if not is_worth_it or not np.isfinite(array).all():
            return None
        if (found := self._rule(array, axis, block)) is None:
            return None
        codes, scale, *zero = found
        if np.abs(scale.astype(np.float32)).max() > np.finfo(np.float32).max / MIDDLE:
            return None
        pairs = ConstantOp.of(pairs_of(codes, axis))
        parts = (pairs, *map(ConstantOp.of, (scale, *zero)))
        return Halves(parts, axis, array.shape[axis], block)

    def _of(self, op: ConstantOp, axes: Sequence[int], parts: int) -> Narrow | None:
        if (array := _weights_of(op)) is None:
            return None
        length = prod(array.shape[axis] for axis in axes) // parts
        if self._element is None and length < _SHORTEST:
            return None
        if self._element is not None:
            return _as_floats(array, self._element)
        return _as_bytes(array, axes, parts)


def _reads_once(op: Contraction) -> bool:
    """True if each weight meets one row or position, so that reading it is what takes time."""
    dims = dims_of(op.results[0])
    others = dims[:-1] if isinstance(op, MatmulOp) else (dims[0], *dims[2:])
    return product(others) == 1


def _weights_of(op: ConstantOp) -> Array | None:
    """The elements of a constant that only narrow ones take the place of."""
    try:
        array = op.array
    except ElidedBlobError:
        return None
    is_weight = all(_is_used_so(use.operation, use.index) for use in op.result.uses)
    return array if array.size >= _FEWEST and is_weight else None


def _is_used_so(op: object, number: int) -> bool:
    """True for a use as a weight or a table: others would need the constant as it was."""
    if isinstance(op, ConvOp | ConvTransposeOp):
        return number == 1
    return isinstance(op, MatmulOp) or (isinstance(op, GatherOp) and number == 0)


def _as_floats(array: Array, element: Attribute) -> Narrow | None:
    with np.errstate(over="ignore"):
        narrow = array.astype(numpy_dtype(element))
    if not np.isfinite(narrow).all():
        return None
    return Narrow(ConstantOp.of(narrow), None)


def _as_bytes(array: Array, axes: Sequence[int], parts: int) -> Narrow | None:
    if not np.isfinite(array).all():
        return None
    values, scale = as_bytes(array, axes, parts)
    return Narrow(ConstantOp.of(values), scale)


@record
class _Factor:
    """Which operand of a product is narrow, as what, and the scale that its result takes."""

    operand: int
    narrow: Narrow | Halves
    scale: Array | None


class NarrowProduct(Pattern[_Factor]):
    """f(x, w) -> f(x, cast(q)) * s of a product or convolution f"""

    name = "narrow-product"
    roots = (ConvOp, ConvTransposeOp, MatmulOp)

    def __init__(self, store: _Store) -> None:
        self._store = store

    def match(self, op: Contraction) -> Match[_Factor] | None:
        if not op.is_uniform or not is_ranked(op):
            return None
        if self._store.only_if_faster and not _reads_once(op):
            return None
        factor = self._factor(op)
        if factor is None:
            return None
        is_halves = isinstance(factor.narrow, Halves)
        return Match((op,), _HALVES if is_halves else self._store.name, factor)

    def _factor(self, op: Contraction) -> _Factor | None:
        if isinstance(op, MatmulOp):
            return self._of_matmul(op)
        rank, groups = rank_of(op.weight), op.groups.data
        if isinstance(op, ConvOp):
            narrow = self._store.narrow(op.weight, range(1, rank))
        else:
            narrow = self._store.narrow(op.weight, (0, *range(2, rank)), groups)
        if narrow is None:
            return None
        column = [-1, *[1] * (rank - 2)]
        return _Factor(1, narrow, None if narrow.scale is None else narrow.scale.reshape(column))

    def _of_matmul(self, op: MatmulOp) -> _Factor | None:
        if (halves := self._store.halves(op.rhs, 0)) is not None:
            return _Factor(1, halves, None)
        for number, axis in ((1, -2), (0, -1)):
            rank = rank_of(op.operands[number])
            if narrow := self._store.narrow(op.operands[number], (rank + axis,)):
                scale = narrow.scale
                return _Factor(number, narrow, None if scale is None else scale[0])
        return None

    def rewrite(self, match: Match[_Factor], rewriter: Rewriter) -> None:
        op, factor = match.root, match.data
        assert isinstance(op, ConvOp | ConvTransposeOp | MatmulOp)
        operands = list(op.operands)
        wide = _widened(operands[factor.operand], factor.narrow, rewriter)
        operands[factor.operand] = wide
        bias = None if isinstance(op, MatmulOp) else op.bias
        if factor.scale is None:
            rewriter.replace(op, rewriter.add(op.with_operands(operands)).results)
            return
        total = rewriter.add(op.with_operands(operands[:2])).results[0]
        scale = rewriter.add(ConstantOp.of(factor.scale)).result
        total = rewriter.add(MulOp(total, scale)).result
        if bias is not None:
            column = [*dims_of(bias), *[1] * (rank_of(total) - 2)]
            total = rewriter.add(AddOp(total, _reshaped(bias, column, rewriter))).result
        rewriter.replace(op, total)


class NarrowTable(Pattern["Narrow | Halves"]):
    """gather(m, i) -> cast(gather(q, i)) * gather(s, i)"""

    name = "narrow-table"
    roots = (GatherOp,)
    ranked = True

    def __init__(self, store: _Store) -> None:
        self._store = store

    def match(self, op: GatherOp) -> Match[Narrow | Halves] | None:
        axis = op.axis.data
        if axis == 0 and (halves := self._store.halves(op.input, 1)) is not None:
            return Match((op,), _HALVES, halves)
        others = [k for k in range(rank_of(op.input)) if k != axis]
        narrow = self._store.narrow(op.input, others)
        return None if narrow is None else Match((op,), self._store.name, narrow)

    def rewrite(self, match: Match[Narrow | Halves], rewriter: Rewriter) -> None:
        op, narrow = match.root, match.data
        assert isinstance(op, GatherOp)
        axis, inside = op.axis.data, op.inside is not None
        if isinstance(narrow, Halves):
            parts = [
                rewriter.add(GatherOp(part, op.indices, axis, inside=inside)).result
                for part in _stored_halves(op.input, narrow, rewriter)
            ]
            last = rank_of(parts[0]) - 1
            value = DequantizeOp(*parts, axis=last, size=narrow.size, block=narrow.block)
            rewriter.replace(op, rewriter.add(value))
            return
        table = _stored(op.input, narrow.values, rewriter)
        rows = rewriter.add(GatherOp(table, op.indices, axis, inside=inside)).result
        value = rewriter.add(CastOp(rows, f32)).result
        if narrow.scale is not None:
            scale = rewriter.add(ConstantOp.of(narrow.scale[0])).result
            scales = rewriter.add(GatherOp(scale, op.indices, axis, inside=inside)).result
            value = rewriter.add(MulOp(value, scales)).result
        rewriter.replace(op, value)


def _stored(old: SSAValue, new: ConstantOp, rewriter: Rewriter) -> SSAValue:
    """A narrow constant, where the first op that reads it finds the one that it replaces."""
    assert isinstance(old.owner, ConstantOp)
    if new.parent is None:
        rewriter.insert_before(old.owner, new)
        new.result.name_hint = old.name_hint
    return new.result


def _stored_halves(old: SSAValue, halves: Halves, rewriter: Rewriter) -> list[SSAValue]:
    return [_stored(old, part, rewriter) for part in halves.parts]


def _widened(old: SSAValue, narrow: Narrow | Halves, rewriter: Rewriter) -> SSAValue:
    if isinstance(narrow, Narrow):
        return rewriter.add(CastOp(_stored(old, narrow.values, rewriter), f32)).result
    parts = _stored_halves(old, narrow, rewriter)
    axis, size, block = narrow.axis, narrow.size, narrow.block
    return rewriter.add(DequantizeOp(*parts, axis=axis, size=size, block=block)).result


def _reshaped(bias: SSAValue, dims: Sequence[Any], rewriter: Rewriter) -> SSAValue:
    """A bias along the channels; a constant stays one."""
    if isinstance(bias.owner, ConstantOp):
        array = bias.owner.array.reshape(-1, *[1] * (len(dims) - 1))
        return rewriter.add(ConstantOp.of(array)).result
    return rewriter.add(ReshapeOp(bias, dims)).result


class NarrowWeightsPass(ModulePass):
    """
    With a constant w of f32, q its elements rounded to nearest, to `--weight-format`:

    - conv(x, w, b) -> conv(x, cast(q)) * s + b, likewise of a transposed convolution
    - x @ w -> (x @ cast(q)) * s; w @ x -> (cast(q) @ x) * s
    - gather(w, i) -> cast(gather(q, i)) * gather(s, i)
      [w has at least 1024 elements, finite in q; only such ops read it]

    - x @ w -> x @ dequantize(q, s), and gather(w, i) -> dequantize(gather(q, i), gather(s, i)), of
      a matrix w in four bits, with a scale s for each block of a column or of a row of the table

    Bytes have a scale s for each output channel, column, row or entry of a table, in which the
    largest magnitude of its elements is 127 (https://arxiv.org/abs/1806.08342, section 3.1.1); sums
    of fewer than 16 products keep their weights. With `int4`, other weights than matrices that are
    multiplied from the right, and tables, are bytes. Halves have no scales. All else is computed in
    f32 as before, so no data is needed. Part of no pipeline but that of `--weight-format`, and of
    `--precision bf16`: there, weights of products and convolutions with more than one row or
    position, which take longer to compute with than to read, stay as they are.
    """

    name = "narrow-weights"
    optional = True
    rounds_numbers = True
    keeps_others: ClassVar[bool] = False
    """True if what is not stored in four bits a number stays as it is."""

    def halves(self, array: Array, axis: int, block: int) -> tuple[Array, ...] | None:
        """Integers from 0 to 15 and scales for a matrix, rounded to nearest; None if it stays."""
        return as_halves(array, axis, block)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of(ctx)
        format_ = options.weight_format or options.precision
        if not is_weight_format(format_):
            return
        assert format_ is not None
        is_permission = options.weight_format is None
        store = _Store(
            format_, self.halves, keeps_others=self.keeps_others, only_if_faster=is_permission
        )
        patterns = [NarrowProduct(store), NarrowTable(store)]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name)
