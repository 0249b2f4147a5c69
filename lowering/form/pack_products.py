"""`pack-products`: products of bytes as products of packed terms, convolutions as products."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array, scalar
from lowerdeck.dialects.core.elementwise import (
    ELEMENTWISE,
    AddOp,
    AndOp,
    CastOp,
    MulOp,
    OrOp,
    ShlOp,
    SubOp,
    XorOp,
)
from lowerdeck.dialects.core.enums import Packing
from lowerdeck.dialects.core.linear import COUNTED_ROWS, ContractionOp, ConvOp, MatmulOp, WindowsOp
from lowerdeck.dialects.core.quantize import PairHalvesOp, RequantizeOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, ints
from lowerdeck.dialects.core.types import (
    bf16,
    bit_width,
    dims_of,
    element_type,
    f32,
    i32,
    is_integer,
    is_unsigned,
    numpy_dtype,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.dialects.records import record
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.strategies.depthwise_words import DepthwiseWords, has_words
from lowerdeck.lowering.strategies.exact_winograd import (
    ExactWinograd,
    has_exact_tiles,
    is_exact,
    saves_products,
)
from lowerdeck.lowering.strategies.line_sums import is_finished_alike
from lowerdeck.lowering.strategies.window_products import can_be_in_bands
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import FEWEST_LANES, Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns

Array = NDArray[Any]

_EXACT: Exact[int] = 1 << 24
"""All integers up to this one are f32."""

_MOST_OF_TWO: Exact[int] = 128
"""The largest sum of two weights: of their products with bytes 16 bits hold the sum."""

_BYTE: Exact[int] = 8
"""Bits of a byte."""

_QUADS: Exact[int] = 4
"""Bytes of an i32."""

_SIGN: Exact[int] = 128
"""What makes a byte with a sign one without."""

_ONES: Exact[int] = 0x01010101
"""Ones in the bytes of an i32."""

_SHARE_OF_RESTS = 5
"""At most one element in so many of a tile may lack something, in the mean: more take longer."""

_FEW_VECTORS = 8
"""Vectors of columns that get columns beside them until short vectors hold all."""

_LARGEST_BYTE: Exact[int] = 255
"""No byte is larger without its zero point, or less than its negative."""


def _centered(op: ContractionOp, number: int) -> Array | None:
    """A constant factor without its zero point, in i32; None if one of both is not constant."""
    try:
        values = constant_array(op.factors[number])
        zero = constant_array(op.zero_points[number]) if op.zero_points else np.int32(0)
    except ElidedBlobError:
        # The weights are not there: nothing is compiled.
        return None
    if values is None or zero is None or not values.size:
        return None
    return values.astype(np.int32) - zero.astype(np.int32)


def _is_of_bytes(op: ContractionOp, number: int) -> bool:
    """True if a factor and its zero point have 8 bits, so that 16 bits hold the difference."""
    values = [op.factors[number], *([op.zero_points[number]] if op.zero_points else [])]
    return all(
        is_integer(element) and bit_width(element) == _BYTE for element in map(element_type, values)
    )


def _is_one(op: ContractionOp) -> bool:
    """True if the first factor has one zero point for all elements, or none."""
    return not op.zero_points or all(dim == 1 for dim in dims_of(op.zero_points[0]))


def _is_one_an_image(op: ConvOp) -> bool:
    """True if each image has one zero point, or all have one, or none."""
    if _is_one(op):
        return True
    dims = dims_of(op.zero_points[0])
    return len(dims) == rank_of(op.input) and all(dim == 1 for dim in dims[1:])


def _terms(target: Target, weights: Array | None) -> int:
    """How many terms of sums an i32 holds on a target: the weights may have to be signed bytes."""
    if target.isa.quads and _are_signed_bytes(weights):
        return _QUADS
    return 2 if target.isa.pairs else 1


def _are_signed_bytes(weights: Array | None) -> bool:
    """True if bytes with signs hold known weights."""
    limits = np.iinfo(np.int8)
    return weights is not None and limits.min <= weights.min() and weights.max() <= limits.max


def _has_few_rows(op: MatmulOp) -> bool:
    """True if the right factor is read so rarely that reading it takes longest."""
    return (product(dims_of(op.lhs)[:-1]).value or FEWEST_LANES) < FEWEST_LANES


def _starts(depth: int, terms: int) -> Iterator[tuple[int, int]]:
    """
    Where parts of equal length begin whose elements lie side by side, and how many of them belong
    to the part before: the last one ends with the last element.
    """
    size = -(-depth // terms)
    for end in range(0, depth, size):
        start = min(end, depth - size)
        yield start, end - start


def _packed(values: Array, terms: int) -> Array:
    """Terms along the last axis; those that stand there twice are zero once."""
    if terms == 1:
        return values
    bits, size = i32.width.data // terms, -(-values.shape[-1] // terms)
    words = np.zeros((*values.shape[:-1], size), np.uint32)
    for number, (start, known) in enumerate(_starts(values.shape[-1], terms)):
        part = values[..., start : start + size].astype(np.uint32) & np.uint32((1 << bits) - 1)
        part[..., :known] = 0
        words |= part << np.uint32(bits * number)
    return words.view(np.int32)


def _split(words: Array, depth: int) -> Array | None:
    """
    Rows of four bytes in the form of `split_left`; None for rows that have too many elements with
    large neighbors.
    """
    terms = np.ascontiguousarray(words).view(np.int8).reshape(*words.shape, 2, 2).astype(np.int32)
    sums = terms.sum(-1)
    over = sums - np.clip(sums, -_MOST_OF_TWO, _MOST_OF_TWO)
    terms[..., 1] -= over
    named = over.any(-1)
    counts = named.sum(-1)
    most = int(counts.max())
    if not most:
        return words
    # Those of each row and of the ones that may be in a tile with it.
    behind = [(0, 0)] * (counts.ndim - 1) + [(0, COUNTED_ROWS - 1)]
    around = sliding_window_view(np.pad(counts, behind), COUNTED_ROWS, axis=-1).max(-1)
    if around.mean() * _SHARE_OF_RESTS > depth:
        return None
    rests = np.zeros_like(terms)
    rests[..., 1] = over
    # Those that lack something first, by place; behind them zeros.
    places = np.argsort(~named, axis=-1, kind="stable")[..., :most].astype(np.int32)
    whole, rest = (part.astype(np.int8).reshape(*words.shape, _QUADS) for part in (terms, rests))
    rest = np.take_along_axis(rest, places[..., None], axis=-2)
    pairs = np.stack([places, rest.view(np.int32)[..., 0]], axis=-1)
    pairs = pairs.reshape(*words.shape[:-1], 2 * most)
    parts = [whole.view(np.int32)[..., 0], around[..., None].astype(np.int32), pairs]
    return np.concatenate(parts, axis=-1)


class Factor:
    """
    A computed factor of bytes with its zero point: becomes packed terms, in ops before the root of
    a match.
    """

    def __init__(
        self, rewriter: Rewriter, value: SSAValue, zero: SSAValue | None, terms: int
    ) -> None:
        self._rewriter = rewriter
        self._value = value
        self._terms = terms
        self.has_quads = terms == _QUADS
        """True if words hold four bytes, which keep their zero point."""
        self._shift = _SIGN if terms == _QUADS and not is_unsigned(element_type(value)) else 0
        array = None if zero is None else constant_array(zero)
        self._known = np.zeros((), np.int32) if zero is None else array
        if self._known is not None:
            self._known = self._known.astype(np.int32) + np.int32(self._shift)
        elif zero is not None:
            zero = self.add(CastOp(zero, i32))
            self._computed = self._plus(zero, self._shift)

    def add(self, op: CoreOp) -> SSAValue:
        """The result of a new op."""
        return self._rewriter.add(op).results[0]

    def number(self, value: int) -> SSAValue:
        """An i32."""
        return self.add(scalar(value, i32))

    def _plus(self, value: SSAValue, number: int) -> SSAValue:
        return self.add(AddOp(value, self.number(number))) if number else value

    @property
    def zero(self) -> SSAValue:
        """The zero point of the terms of bytes."""
        return self._computed if self._known is None else self.add(ConstantOp.of(self._known))

    def words(self, axis: int, *, once: bool = False) -> SSAValue:
        """
        The packed terms along an axis, zero points subtracted; the factor itself in i32 for one
        term. Bytes keep their zero points, and get one if they have signs. Pairs hold each term
        `once` if they are asked to, else the other factor has zeros.
        """
        if self._terms == 1:
            return self._without_zero(self.add(CastOp(self._value, i32)))
        depth, bits = dims_of(self._value)[axis].value, i32.width.data // self._terms
        assert depth is not None
        words = None
        size = -(-depth // self._terms)
        for number, (start, known) in enumerate(_starts(depth, self._terms)):
            skipped = known if once else 0
            part = self._part(axis, start + skipped, size - skipped)
            part = self.add(CastOp(part, i32))
            if self._terms == 2:
                part = self._without_zero(part)
            if skipped:
                none = [0] * rank_of(part)
                begin = [skipped if k == axis else 0 for k in range(len(none))]
                part = self.add(PadOp(part, begin, none))
            is_last = number == self._terms - 1
            if not is_last and (self._terms == 2 or self._shift):
                part = self.add(AndOp(part, self.number((1 << bits) - 1)))
            if number:
                part = self.add(ShlOp(part, self.number(bits * number)))
            words = part if words is None else self.add(OrOp(part, words))
        assert words is not None
        if self._shift:
            words = self.add(XorOp(words, self.number(_four(self._shift))))
        return words

    def around(self) -> SSAValue | None:
        """The packed terms of a zero point; None for 0."""
        if self._terms < _QUADS:
            return None
        if self._known is not None:
            zero = int(self._known.reshape(()))
            return self.number(_four(zero)) if zero else None
        zero = self.add(ReshapeOp(self._computed, []))
        return self.add(MulOp(zero, self.number(_four(1))))

    def excess(self, sums: Array) -> SSAValue | None:
        """What zero points that are kept add to products with weights that have these sums."""
        if not self.has_quads:
            return None
        if self._known is None:
            return self.add(MulOp(self._computed, self.add(ConstantOp.of(sums))))
        if not self._known.any() or not sums.any():
            return None
        if self._known.size == 1:
            return self.add(ConstantOp.of(sums * self._known.reshape(())))
        return self.add(MulOp(self.zero, self.add(ConstantOp.of(sums))))

    def _part(self, axis: int, start: int, size: int) -> SSAValue:
        dims = dims_of(self._value)
        starts = [start if k == axis else 0 for k in range(len(dims))]
        sizes = [Expr.const(size) if k == axis else dim for k, dim in enumerate(dims)]
        return self.add(SliceOp(self._value, starts, sizes))

    def _without_zero(self, x: SSAValue) -> SSAValue:
        if self._known is not None and not self._known.any():
            return x
        return self.add(SubOp(x, self.zero))


def _four(byte: int) -> int:
    """Four equal bytes, as an i32."""
    return int(np.uint32(_ONES * byte).view(np.int32))


def _zero_point(op: ContractionOp, number: int) -> SSAValue | None:
    return op.zero_points[number] if op.zero_points else None


class PackMatmul(Pattern[Array | None]):
    """matmul(x, w) of bytes -> matmul(packed(x), packed(w))"""

    name = "pack-matmul"
    roots = (MatmulOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: MatmulOp) -> Match[Array | None] | None:
        if op.accumulator != i32 or not _is_of_bytes(op, 0) or not _is_of_bytes(op, 1):
            return None
        depth = dims_of(op.lhs)[-1]
        if not depth.value or dims_of(op.rhs)[-2] != depth or not self._is_same_in_sums(op, 0):
            return None
        weights = _centered(op, 1)
        terms = _terms(self._target, weights)
        if terms == 1 or (terms == 2 and _has_few_rows(op) and not _are_signed_bytes(weights)):
            # What is read but once takes less time in bytes.
            return None
        is_constant = isinstance(op.rhs.owner, ConstantOp)
        if weights is None and (is_constant or not self._is_same_in_sums(op, 1)):
            return None
        return Match((op,), f"{depth} products, {terms} at a time", weights)

    @staticmethod
    def _is_same_in_sums(op: MatmulOp, number: int) -> bool:
        """True if the terms of a sum have the same zero point."""
        zero = _zero_point(op, number)
        if zero is None or rank_of(zero) == 0:
            return True
        dims = dims_of(zero)
        return dims[-1] == 1 if number == 0 else len(dims) == 1 or dims[-2] == 1

    def rewrite(self, match: Match[Array | None], rewriter: Rewriter) -> None:
        op, weights = match.root, match.data
        assert isinstance(op, MatmulOp)
        terms = _terms(self._target, weights)
        factor = Factor(rewriter, op.lhs, _zero_point(op, 0), terms)
        left = factor.words(rank_of(op.lhs) - 1)
        if weights is None:
            other = Factor(rewriter, op.rhs, _zero_point(op, 1), terms)
            right = other.words(rank_of(op.rhs) - 2, once=True)
        else:
            words = _packed(weights.swapaxes(-1, -2), terms).swapaxes(-1, -2)
            if terms == 2 and _has_few_rows(op):
                words = (words & _LARGEST_BYTE | words >> 2 * _BYTE << _BYTE).astype(np.int16)
            right = factor.add(ConstantOp.of(np.ascontiguousarray(words)))
        packing = Packing.PAIRS if terms == 2 else Packing.UNSIGNED_LEFT
        accumulator = None if element_type(right) == i32 else i32
        total = factor.add(MatmulOp(left, right, accumulator=accumulator, packing=packing))
        if weights is not None:
            excess = factor.excess(weights.sum(-2, dtype=np.int32, keepdims=True))
            total = _without(total, excess, factor)
        rewriter.replace(op, total)


@record
class _Maps:
    """The weights of a convolution, and maps behind it that may be computed in another shape."""

    weights: Array
    followers: tuple[Operation, ...]


def _constant_conv(op: ConvOp) -> _Maps | None:
    """The weights of a convolution of bytes whose images have one zero point, if they are known."""
    if op.accumulator != i32 or not _is_of_bytes(op, 0) or not _is_of_bytes(op, 1):
        return None
    if static_shape(op.weight) is None or not _is_one_an_image(op):
        return None
    weights = _centered(op, 1)
    return None if weights is None else _Maps(weights, tuple(_followers(op)))


@record
class _Rows:
    """The packed weights of a convolution as a left factor, in groups if there are several."""

    maps: _Maps
    words: Array
    packing: Packing | None

    @property
    def terms(self) -> int:
        return self.packing.terms if self.packing is not None else 1


class PackConv(Pattern[_Rows]):
    """conv(x, w) of bytes -> matmul(packed(w), packed(windows(x)))"""

    name = "pack-conv"
    roots = (ConvOp,)

    def __init__(self, target: Target, stays: Callable[[ConvOp], bool]) -> None:
        self._target = target
        self._stays = stays
        """Which convolutions have loops of their own."""
        self._words: dict[Hashable, SSAValue] = {}
        """Packed inputs, which several convolutions may read."""

    def match(self, op: ConvOp) -> Match[_Rows] | None:
        if self._stays(op) or (maps := _constant_conv(op)) is None:
            return None
        data, number = self._rows(op, maps), prod(maps.weights.shape[1:])
        consumed = (op, *maps.followers)
        return Match(consumed, f"{number} products, {data.terms} at a time", data)

    def _rows(self, op: ConvOp, maps: _Maps) -> _Rows:
        """Bytes keep their zero point, which is what padding is, only if it is one."""
        weights, isa, groups = maps.weights, self._target.isa, op.groups.data
        # [filters, taps, channels], then terms of several channels.
        rows = weights.reshape(*weights.shape[:2], -1).swapaxes(1, 2)
        bytes_ = _are_signed_bytes(weights) and _is_one(op)
        ways = [
            (Packing.UNSIGNED_RIGHT, bytes_ and bool(isa.quads)),
            (Packing.SPLIT_LEFT, bytes_ and bool(isa.small_quads)),
            (Packing.PAIRS, bool(isa.pairs)),
        ]
        for packing in (packing for packing, is_possible in ways if is_possible):
            words: Array | None = _packed(np.ascontiguousarray(rows), packing.terms)
            words = words.reshape(groups, weights.shape[0] // groups, -1)
            if packing is Packing.SPLIT_LEFT:
                words = _split(words, words.shape[-1])
            if words is not None:
                return _Rows(maps, words, packing)
        words = rows.reshape(groups, weights.shape[0] // groups, -1)
        return _Rows(maps, words, None)

    def rewrite(self, match: Match[_Rows], rewriter: Rewriter) -> None:
        op, maps, rows = match.root, match.data.maps, match.data.words
        assert isinstance(op, ConvOp)
        terms, groups, weights = match.data.terms, op.groups.data, maps.weights
        x = op.input
        if groups > 1:
            batch, channels, *space = dims_of(x)
            dims = [batch, groups, channels // groups, *space]
            x = rewriter.add(ReshapeOp(x, dims)).result
        factor = Factor(rewriter, x, _zero_of_images(op, rewriter, rank_of(x)), terms)
        left = factor.add(ConstantOp.of(np.ascontiguousarray(rows if groups > 1 else rows[0])))
        words = self._packed(op, factor, terms)
        in_tiles = self._target.isa.tiles is not None and factor.has_quads
        windows = _windows(op, words, factor.add, factor.around, self._target, in_tiles=in_tiles)
        dims, size = dims_of(op.result), dims_of(windows)[-1]
        total = factor.add(MatmulOp(left, windows, packing=match.data.packing))
        if groups > 1:
            total = factor.add(ReshapeOp(total, [*dims[:2], size]))
        total = _completed(op, total, factor, weights, rewriter)
        total, last = _followed(op, total, maps.followers, rewriter)
        if size != product(dims[2:]):
            sizes = [*dims[:2], product(dims[2:])]
            total = rewriter.insert_before(last, SliceOp(total, [0, 0, 0], sizes)).result
        rewriter.replace(last, rewriter.insert_before(last, ReshapeOp(total, dims)))

    def _packed(self, op: ConvOp, factor: Factor, terms: int) -> SSAValue:
        """The words of an input: those of a convolution before, in the same block, if they are."""
        groups, zero = op.groups.data, None if terms == _QUADS else _zero_point(op, 0)
        key = (op.parent, op.input, groups, terms, zero)
        if key not in self._words:
            self._words[key] = factor.words(2 if groups > 1 else 1)
        return self._words[key]


class ConvInFloats(Pattern[_Maps]):
    """conv(x, w) of bytes in groups of few filters -> cast(conv(cast(x), cast(w)))"""

    name = "conv-in-floats"
    roots = (ConvOp,)

    def __init__(self, stays: Callable[[ConvOp], bool]) -> None:
        self._stays = stays
        """Which convolutions have loops of their own."""

    def match(self, op: ConvOp) -> Match[_Maps] | None:
        if self._stays(op):
            return None
        shape = static_shape(op.weight)
        if shape is None or op.groups.data == 1 or shape[0] // op.groups.data >= FEWEST_LANES:
            return None
        if (maps := _constant_conv(op)) is None:
            return None
        sums = np.abs(maps.weights).reshape(shape[0], -1).sum(-1)
        if sums.max() * _LARGEST_BYTE > _EXACT:
            return None
        return Match((op,), f"{prod(shape[1:])} products that floats hold", maps)

    def rewrite(self, match: Match[_Maps], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, ConvOp)
        x = rewriter.add(CastOp(op.input, f32)).result
        if (zero := _zero_of_images(op, rewriter, rank_of(x))) is not None:
            x = rewriter.add(SubOp(x, rewriter.add(CastOp(zero, f32)).result)).result
        weights = rewriter.add(ConstantOp.of(match.data.weights.astype(np.float32))).result
        conv = ConvOp(
            x,
            weights,
            strides=ints(op.strides),
            dilations=ints(op.dilations),
            pads_begin=op.pads_begin.data,
            pads_end=op.pads_end.data,
            groups=op.groups.data,
        )
        total = rewriter.add(CastOp(rewriter.add(conv).result, i32, fits=True)).result
        if op.bias is not None:
            column = [*dims_of(op.bias), *[1] * (rank_of(total) - 2)]
            bias = _reshaped(rewriter.add, op.bias, column)
            total = rewriter.add(AddOp(total, bias)).result
        rewriter.replace(op, total)


def _zero_of_images(op: ConvOp, rewriter: Rewriter, rank: int) -> SSAValue | None:
    """The zero point of the input: a scalar, or one an image, with so many dimensions."""
    zero = _zero_point(op, 0)
    if zero is None or not rank_of(zero):
        return zero
    shape = [] if _is_one(op) else [dims_of(zero)[0], *[1] * (rank - 1)]
    return _reshaped(rewriter.add, zero, shape)


def _completed(
    op: ConvOp, total: SSAValue, factor: Factor, weights: Array, rewriter: Rewriter
) -> SSAValue:
    """Sums of a convolution in [N, M, ...], with the bias and without what zero points add."""
    tail = [1] * (rank_of(total) - 2)
    sums = weights.reshape(weights.shape[0], -1).sum(-1, dtype=np.int32)
    excess = factor.excess(sums.reshape(-1, *tail))
    bias = None
    if op.bias is not None:
        bias = _reshaped(rewriter.add, op.bias, [*dims_of(op.bias), *tail])
    if bias is not None and excess is not None:
        both = [constant_array(value) for value in (bias, excess)]
        if both[0] is not None and both[1] is not None:
            bias, excess = factor.add(ConstantOp.of(both[0] - both[1])), None
    total = _without(total, excess, factor)
    return total if bias is None else factor.add(AddOp(total, bias))


def _without(total: SSAValue, excess: SSAValue | None, factor: Factor) -> SSAValue:
    """What is left of sums: of a constant the negative is added, with which they may begin."""
    if excess is None:
        return total
    known = constant_array(excess)
    if known is None:
        return factor.add(SubOp(total, excess))
    return factor.add(AddOp(total, factor.add(ConstantOp.of(-known))))


def _windows(
    op: ConvOp,
    words: SSAValue,
    add: Callable[[CoreOp], SSAValue],
    border: Callable[[], SSAValue | None],
    target: Target,
    *,
    in_tiles: bool,
) -> SSAValue:
    """
    [N, (groups,) taps x channels, positions]: what each window sees of packed inputs. As one op if
    all of it is so large that it is better never in memory as a whole.
    """
    groups, dims = op.groups.data, dims_of(op.result)
    first = 2 if groups > 1 else 1
    outer = dims_of(words)[: first + 1]
    begin, end = op.pads_begin.data, op.pads_end.data
    if any(pad != 0 for pad in (*begin, *end)):
        around = [0] * len(outer)
        words = add(PadOp(words, [*around, *begin], [*around, *end], border()))
    taps = [dim.value or 0 for dim in dims_of(op.weight)[2:]]
    strides, dilations = ints(op.strides), ints(op.dilations)
    groups_and_batch, depth = outer[:first], outer[first]
    size = product(dims[2:])
    if can_be_in_bands(taps, depth * prod(taps), dims[2:], target):
        return add(WindowsOp(words, taps, strides, dilations))
    if prod(taps) > 1 or any(stride != 1 for stride in strides):
        words = add(ReshapeOp(words, [*groups_and_batch, 1, depth, *dims_of(words)[first + 1 :]]))
        parts: list[SSAValue] = []
        for tap in np.ndindex(*taps):
            offsets = [place * dilation for place, dilation in zip(tap, dilations, strict=True)]
            sizes = [*groups_and_batch, Expr.const(1), depth, *dims[2:]]
            around = [0] * (first + 2)
            steps = [*(1 for _ in around), *strides]
            parts.append(add(SliceOp(words, [*around, *offsets], sizes, steps)))
        words = add(ConcatOp(parts, first)) if len(parts) > 1 else parts[0]
        depth *= len(parts)
    words = add(ReshapeOp(words, [*groups_and_batch, depth, size]))
    rest = -(size.value or 0) % FEWEST_LANES
    is_short = (size.value or 0) < _FEW_VECTORS * target.lanes_of(i32)
    if rest and is_short and not in_tiles:
        # A single column takes as long as many in vectors. Behind many a vector begins within the
        # one before; behind few it would take long to read the left matrix again.
        none = [0] * (first + 2)
        words = add(PadOp(words, none, [*none[1:], rest]))
    return words


def _followers(op: ConvOp) -> list[Operation]:
    """
    The maps behind a convolution, each the only user of the one before, whose other operands are
    the same at all positions, or have a value for each.
    """
    dims, found = dims_of(op.result), list[Operation]()
    value: SSAValue = op.result
    while value.has_one_use():
        (use,) = value.uses
        user = use.operation
        if not isinstance(user, ELEMENTWISE) or user.parent is not op.parent:
            break
        others = [operand for operand in user.operands if operand is not value]
        if dims_of(user.results[0]) != dims or not all(_has_one_form(x, dims) for x in others):
            break
        found.append(user)
        value = user.results[0]
    return found


def _has_fewer_products(op: ConvOp, target: Target, *, is_asked: bool) -> bool:
    """True if Winograd's algorithm gives the same bytes, in less time unless it is asked for."""
    if not has_exact_tiles(op, target):
        return False
    last = next(reversed(_followers(op)), None)
    if last is None or not is_finished_alike(last.results, op):
        return False
    return is_exact(op) and (is_asked or saves_products(op, target))


def _has_one_form(value: SSAValue, dims: Sequence[Expr]) -> bool:
    """True if an operand of a map has all dimensions of its result, or none behind the channels."""
    own = dims_of(value)
    return own == dims or all(dim == 1 for dim in own[2 - len(dims) :])


def _widening(value: SSAValue) -> list[Operation]:
    """
    The maps, last to first, that make a value of one with fewer bytes at each position, and that
    nothing else reads; none if there is no such value.
    """
    dims, size, found = dims_of(value), _bytes(value), list[Operation]()
    while value.has_one_use():
        source = value.owner
        if not isinstance(source, ELEMENTWISE):
            break
        wide = [operand for operand in source.operands if dims_of(operand) == dims]
        if len(wide) != 1 or not all(_has_one_form(each, dims) for each in source.operands):
            break
        found.append(source)
        (value,) = wide
        if _bytes(value) < size:
            return found
    return []


def _bytes(value: SSAValue) -> int:
    return numpy_dtype(element_type(value)).itemsize


@record
class _Columns:
    """Maps on [N, M, D...] become maps on [N, M, columns], of which some may be left over."""

    rewriter: Rewriter
    dims: Sequence[Expr]
    columns: Expr

    def operand(self, value: SSAValue, before: Operation) -> SSAValue:
        """An operand of a map: what widens it is computed of columns, too."""
        maps = _widening(value) if dims_of(value) == self.dims else []
        (source,) = (
            [each for each in maps[-1].operands if dims_of(each) == self.dims] if maps else [value]
        )
        made = {source: self._reshaped(source, before)}
        for op in reversed(maps):
            operands = [made.get(each) or self._reshaped(each, before) for each in op.operands]
            made[op.results[0]] = self.map(op, operands, before)
        return made[value]

    def map(
        self,
        op: Operation,
        operands: Sequence[SSAValue],
        before: Operation,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """The result of a map of columns, some properties of which may be others."""
        assert isinstance(op, CoreOp)
        new = op.with_operands(operands, properties)
        return self.rewriter.insert_before(before, new).results[0]

    def _reshaped(self, value: SSAValue, before: Operation) -> SSAValue:
        own, add = dims_of(value), partial(self.rewriter.insert_before, before)
        if not own:
            return value
        if own != self.dims:
            space = len(self.dims) - 2
            return _reshaped(add, value, [*own[:-space], 1] if len(own) > space else [])
        size = product(own[2:])
        value = _reshaped(add, value, [*own[:2], size])
        rest = self.columns - size
        return value if rest == 0 else add(PadOp(value, [0, 0, 0], [0, 0, rest])).results[0]


def _followed(
    op: ConvOp, total: SSAValue, followers: Sequence[Operation], rewriter: Rewriter
) -> tuple[SSAValue, Operation]:
    """
    What maps compute of the result of a convolution that has another shape, `total`, and the op
    that is to be replaced.
    """
    columns = _Columns(rewriter, dims_of(op.result), dims_of(total)[-1])
    value, last = op.results[0], op
    for number, follower in enumerate(followers):
        operands = [
            total if operand is value else columns.operand(operand, follower)
            for operand in follower.operands
        ]
        value, last = follower.results[0], follower
        if isinstance(follower, CastOp) and element_type(total) == element_type(value):
            continue  # of a number that was made so wide
        wide = _widened(follower, followers[number + 1 :])
        total = columns.map(follower, operands, follower, wide)
    return total, last


def _widened(op: Operation, behind: Sequence[Operation]) -> Mapping[str, Attribute]:
    """Properties with which an op gives the integers to which the next op would widen its bytes."""
    if not isinstance(op, RequantizeOp) or not behind or not isinstance(behind[0], CastOp):
        return {}
    return {"to": i32} if element_type(behind[0].result) == i32 else {}


def _reshaped(
    add: Callable[[CoreOp], CoreOp], value: SSAValue, shape: Sequence[Expr | int]
) -> SSAValue:
    """A value in another shape; a constant stays one."""
    array = constant_array(value)
    if array is None:
        return add(ReshapeOp(value, shape)).results[0]
    sizes = [Expr.of(dim).value or 0 for dim in shape]
    return add(ConstantOp.of(array.reshape(sizes))).results[0]


def _pairs(rewriter: Rewriter, x: SSAValue, axis: int) -> SSAValue:
    """Numbers of bf16 in pairs, element k of a dimension beside one in its second half."""
    source = x.owner
    if isinstance(source, CastOp) and element_type(source.input) == f32:
        x = source.input  # pairs are rounded
    else:
        x = rewriter.add(CastOp(x, f32)).result
    dims = dims_of(x)
    depth = dims[axis].value or 0
    size, none = -(-depth // 2), [0] * len(dims)
    parts: list[SSAValue] = []
    for start, count in ((0, size), (size, depth - size)):
        starts, sizes, rest = [*none], [*dims], [*none]
        starts[axis], sizes[axis], rest[axis] = start, Expr.const(count), 1
        part = rewriter.add(SliceOp(x, starts, sizes)).result
        if count < size:
            part = rewriter.add(PadOp(part, none, rest)).result
        parts.append(part)
    return rewriter.add(PairHalvesOp(*parts)).result


def _pairs_of(weights: Array, axis: int) -> Array:
    """The same of constants."""
    depth = weights.shape[axis]
    size = -(-depth // 2)
    shape = [*weights.shape]
    shape[axis] = 2 * size
    bits = np.zeros(shape, np.uint32)
    whole = [slice(None)] * axis
    bits[(*whole, slice(depth))] = np.ascontiguousarray(weights).view(np.uint16)
    pairs = bits[(*whole, slice(size))] | bits[(*whole, slice(size, None))] << np.uint32(2 * _BYTE)
    return pairs.view(np.int32)


class PackHalves(Pattern[Array]):
    """matmul(x, w) of bf16 in f32 -> matmul(pairs(x), pairs(w))"""

    name = "pack-halves"
    roots = (MatmulOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: MatmulOp) -> Match[Array] | None:
        elements = {element_type(value) for value in op.factors}
        if op.accumulator != f32 or elements != {bf16} or op.packing is not None:
            return None
        try:
            weights = constant_array(op.rhs)
        except ElidedBlobError:
            return None
        depth = dims_of(op.lhs)[-1]
        if weights is None or not weights.size or dims_of(op.rhs)[-2] != depth:
            return None
        if not self._target.isa.halves and _has_few_rows(op):
            return None  # tiles would be almost empty
        return Match((op,), f"{depth} products, 2 at a time", weights)

    def rewrite(self, match: Match[Array], rewriter: Rewriter) -> None:
        op, weights = match.root, match.data
        assert isinstance(op, MatmulOp)
        words = _pairs(rewriter, op.lhs, rank_of(op.lhs) - 1)
        right = rewriter.add(ConstantOp.of(_pairs_of(weights, weights.ndim - 2))).result
        new = MatmulOp(words, right, accumulator=f32, packing=Packing.HALVES)
        rewriter.replace(op, rewriter.add(new))


class PackHalvesOfConv(Pattern[_Maps]):
    """conv(x, w) of bf16 in f32 -> matmul(pairs(w), windows(pairs(x)))"""

    name = "pack-halves-of-conv"
    roots = (ConvOp,)

    def __init__(self, target: Target) -> None:
        self._target = target
        self._words: dict[Hashable, SSAValue] = {}
        """Pairs of inputs, which several convolutions may read."""

    def match(self, op: ConvOp) -> Match[_Maps] | None:
        elements = {element_type(value) for value in op.factors}
        if op.accumulator != f32 or elements != {bf16} or op.groups.data != 1:
            return None
        if constants([*dims_of(op.input)[1:], *dims_of(op.result)[1:]]) is None:
            return None
        try:
            weights = constant_array(op.weight)
        except ElidedBlobError:
            return None
        if weights is None or not weights.size:
            return None
        maps = _Maps(weights, tuple(_followers(op)))
        number = prod(weights.shape[1:])
        return Match((op, *maps.followers), f"{number} products, 2 at a time", maps)

    def rewrite(self, match: Match[_Maps], rewriter: Rewriter) -> None:
        op, weights = match.root, match.data.weights
        assert isinstance(op, ConvOp)
        # [filters, taps, channels]
        rows = weights.reshape(*weights.shape[:2], -1).swapaxes(1, 2)
        left = np.ascontiguousarray(_pairs_of(rows, 2)).reshape(weights.shape[0], -1)
        words = self._packed(op, rewriter)

        def add(new: CoreOp) -> SSAValue:
            return rewriter.add(new).results[0]

        windows = _windows(op, words, add, lambda: None, self._target, in_tiles=True)
        product_ = MatmulOp(
            rewriter.add(ConstantOp.of(left)).result,
            windows,
            accumulator=f32,
            packing=Packing.HALVES,
        )
        total = rewriter.add(product_).result
        if op.bias is not None:
            bias = _reshaped(rewriter.add, op.bias, [*dims_of(op.bias), 1])
            total = rewriter.add(AddOp(total, bias)).result
        total, last = _followed(op, total, match.data.followers, rewriter)
        dims = dims_of(op.result)
        rewriter.replace(last, rewriter.insert_before(last, ReshapeOp(total, dims)))

    def _packed(self, op: ConvOp, rewriter: Rewriter) -> SSAValue:
        key = (op.parent, op.input)
        if key not in self._words:
            self._words[key] = _pairs(rewriter, op.input, 1)
        return self._words[key]


class PackProductsPass(ModulePass):
    """
    matmul(x, w) of bytes -> matmul(packed(x), packed(w))
        [the target adds up products of parts of an i32; w constant, or pairs]
    conv(x, w) of bytes -> matmul(packed(w), packed(windows(x)))
        [w constant]
    matmul(x, w) of bf16 in f32 -> matmul(pairs(x), pairs(w))
        [the target adds up products of two numbers of bf16; w constant; 4 rows or more for tiles]
    conv(x, w) of bf16 in f32 -> matmul(pairs(w), windows(pairs(x)))
        [the target has tiles; w constant, in one group; known sizes]
    conv(x, w) of bytes -> cast(conv(cast(x), cast(w)))
        [w constant; several groups of fewer than 4 filters; no sum is larger than 2^24, so that f32
         holds all of them, whatever the order; depthwise ones not where the target loads words that
         have bytes in common]

    Of sums in i32, on targets with vectors. Packed are four bytes, where the target multiplies
    bytes without signs by bytes with signs and the weights without zero points are such: the zero
    points of x are kept, padding is one of them, and what they add is subtracted from the sums.
    So are weights of convolutions where the target adds up two products of bytes in 16 bits: of two
    neighbors with a sum beyond 128 a part stands behind the row, in few elements (`split_left`).
    Else pairs of 16 bits, where the target multiplies those, without zero points; where fewer than
    4 rows read the weights, these are pairs of bytes. Else single terms. An i32 holds terms that
    are a part of the channels, or of the columns of x, apart, so that what is read for several of
    them lies side by side. A window is a column of a matrix. Maps behind a convolution are computed
    for the matrix, and so are those that widen
    what is added to it. Convolutions that read the same bytes read the same words.
    """

    name = "pack-products"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_named(options_of(ctx).target)
        if target.lanes_of(i32) == 1:
            return
        options = options_of(ctx)

        def stays(op: ConvOp) -> bool:
            if not isinstance(op.weight.owner, ConstantOp):
                return False
            if DepthwiseWords.name not in options.disable_strategy and has_words(op, target):
                return True
            if ExactWinograd.name in options.disable_strategy or options.small_weights:
                return False
            is_asked = ExactWinograd.name in options.strategy
            return _has_fewer_products(op, target, is_asked=is_asked)

        patterns: list[Pattern[Any]] = [
            PackMatmul(target),
            ConvInFloats(stays),
            PackConv(target, stays),
        ]
        if target.isa.halves or target.isa.tiles:
            patterns.append(PackHalves(target))
        if target.isa.tiles:
            patterns.append(PackHalvesOfConv(target))
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
