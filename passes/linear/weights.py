"""How constant weights of convolutions and matrix products take over linear functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, rank_of
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.affine import (
    LINEAR_OPS,
    Affine,
    chain_of,
    is_representable,
    is_shift_harmless,
    total,
)
from lowerdeck.passes.machinery.values import Array, constant_values, rounded

Contraction: TypeAlias = ConvOp | ConvTransposeOp | MatmulOp

COPY_LIMIT = 1 << 20
"""The largest weight, in bytes, that is copied because others read it too."""

_SLAB = 1 << 20
"""How many elements of a weight are in float64 at a time."""


@record
class Edit:
    """New operands of an op, and what is added to its result, if anything."""

    op: Operation
    operands: tuple[SSAValue | ConstantOp, ...]
    shift: Array | None = None


@record
class _Weight:
    """A constant factor of a convolution or product, as it is stored."""

    op: Contraction
    place: int
    """The operand that it is."""
    array: Array

    @property
    def element(self) -> Attribute:
        return element_type(self.op.result)

    @property
    def sum_axes(self) -> Sequence[int]:
        """The axes along which products are added up, for one element of the result."""
        match self.op:
            case ConvOp():
                return range(1, self.array.ndim)
            case ConvTransposeOp():
                return [0, *range(2, self.array.ndim)]
            case MatmulOp():
                return [self.array.ndim - (2 if self.place == 1 else 1)]

    @property
    def axes_of_input(self) -> Sequence[int]:
        """Axes along which the weight meets one channel of the input (in groups, not all)."""
        match self.op:
            case ConvOp() if self.op.groups.data > 1:
                return range(2, self.array.ndim)
            case ConvOp():
                return [0, *range(2, self.array.ndim)]
            case ConvTransposeOp():
                return range(1, self.array.ndim)
            case MatmulOp():
                return [self.array.ndim - (1 if self.place == 1 else 2)]

    def products(self, factor: Array) -> Iterator[tuple[slice, Array]]:
        """The products with a factor that broadcasts to it, in float64, some rows at a time."""
        whole = np.broadcast_to(factor, self.array.shape)
        rows = max(_SLAB * len(self.array) // max(self.array.size, 1), 1)
        for start in range(0, len(self.array), rows):
            part = slice(start, start + rows)
            with np.errstate(all="ignore"):
                yield part, self.array[part].astype(np.float64) * whole[part]

    def scaled(self, factor: Array, axes: Sequence[int]) -> ConstantOp | None:
        """The rounded products, if they keep their digits, in proportion to those along `axes`."""
        new = np.empty(self.array.shape, self.array.dtype)
        for part, exact in self.products(factor):
            if not is_representable(exact, self.element, axes):
                return None
            with np.errstate(all="ignore"):
                new[part] = exact.astype(new.dtype)
        return ConstantOp.of(new)

    def sums(self, factor: Array) -> Array:
        """The sums of the products, where those of the op are made, with ones for their axes."""
        axes = tuple(self.sum_axes)
        parts = [exact.sum(axes, keepdims=True) for _, exact in self.products(factor)]
        return np.sum(parts, axis=0) if 0 in axes else np.concatenate(parts)


def _weight(op: Contraction, place: int) -> _Weight | None:
    """The operand at `place`, if it is a constant that may be replaced."""
    value = op.operands[place]
    if not isinstance(value.owner, ConstantOp):
        return None
    # A large weight that others read would be there twice, if they keep it.
    is_large = value.owner.value.data.size > COPY_LIMIT
    if is_large and not value.has_one_use() and not _is_scaled_everywhere(value):
        return None
    try:
        array = constant_array(value)
    except ElidedBlobError:
        return None
    return None if array is None or array.size == 0 else _Weight(op, place, array)


def _is_scaled_everywhere(value: SSAValue) -> bool:
    """True if what follows each reader of a weight scales it: two readers, or all in one way."""
    scales: list[Array] = []
    for use in value.uses:
        reader = use.operation
        scale = _following_scale(reader) if isinstance(reader, Contraction) else None
        if scale is None:
            return False
        scales.append(scale)
    return len(scales) == 2 or all(np.array_equal(scale, scales[0]) for scale in scales)


def _following_scale(op: Contraction) -> Array | None:
    """What the linear ops scale the result by that follow it and nothing else."""
    value: SSAValue = op.result
    last = None
    while value.has_one_use() and (use := value.first_use) is not None:
        if not isinstance(use.operation, LINEAR_OPS):
            break
        value, last = use.operation.results[0], use.operation
    chain = None if last is None else chain_of(last)
    return chain.affine.scale if chain is not None and chain.input is op.result else None


def _channels(affine: Affine, axis: int, count: int | None) -> Affine | None:
    """The numbers of each channel, if a function varies along no other axis."""
    if count is None:
        return None
    found: list[Array | None] = []
    for part in affine.parts:
        if part is not None and part.size not in (1, part.shape[axis]):
            return None
        found.append(None if part is None else np.broadcast_to(part.reshape(-1), (count,)))
    return Affine(*found)


def _along(vector: Array, axis: int, rank: int) -> Array:
    """A vector as it meets an axis of an array."""
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


def _in_groups(channels: Array, groups: int, weight: Array) -> Array:
    """
    The numbers of channels as they meet dimension 1 of a weight, whose rows (dimension 0) belong
    to groups in turn: each row has the channels of its group.
    """
    rows = channels.reshape(groups, -1)
    if groups > 1:
        rows = np.repeat(rows, len(weight) // groups, 0)
    return rows.reshape(*rows.shape, *[1] * (weight.ndim - 2))


def _is_plain(op: Contraction) -> bool:
    """True for floats of one type, without zero points."""
    return op.is_uniform and is_float(element_type(op.result))


def _with_bias(
    op: ConvOp | ConvTransposeOp,
    weight: ConstantOp | None,
    scale: Array | None,
    shift: Array | None,
) -> Edit | None:
    """The op with another weight (None: the one it has), and bias * scale + shift."""
    element = element_type(op.result)
    operands: list[SSAValue | ConstantOp] = [op.input, op.weight if weight is None else weight]
    if op.bias is None:
        bias = shift
    elif scale is None and shift is None:
        return Edit(op, (*operands, op.bias))
    else:
        values = constant_values(op.bias)
        if values is None:
            return None
        bias = values[0] if scale is None else values[0] * scale
        bias = bias if shift is None else total(bias, shift, element)
        if bias is None:
            return None
    if bias is None:
        return Edit(op, tuple(operands))
    if not is_representable(bias, element):
        return None
    return Edit(op, (*operands, rounded(bias, op.result)))


# What follows


def absorbed_after(op: Operation, affine: Affine) -> Edit | None:
    """The op that gives its result times scale plus shift."""
    if isinstance(op, MatmulOp):
        return _scaled_product(op, affine) if _is_plain(op) else None
    if not isinstance(op, ConvOp | ConvTransposeOp) or not _is_plain(op):
        return None
    channels = _channels(affine, 1, dims_of(op.result)[1].value)
    if channels is None or (scale := channels.scale) is None:
        return None if channels is None else _with_bias(op, None, None, channels.shift)
    if (weight := _weight(op, 1)) is None:
        return None
    if isinstance(op, ConvOp):
        factor = _along(scale, 0, weight.array.ndim)
    else:
        factor = _in_groups(scale, op.groups.data, weight.array)
    scaled = weight.scaled(factor, weight.sum_axes)
    return None if scaled is None else _with_bias(op, scaled, scale, channels.shift)


def _scaled_product(op: MatmulOp, affine: Affine) -> Edit | None:
    """Columns of a constant on the right, or rows of one on the left."""
    scale = affine.scale
    if affine.shift is not None or scale is None:
        return None
    for place, inner in ((1, -2), (0, -1)):
        factor = _last(scale, rank_of(op.operands[place]))
        if factor is None or factor.shape[inner] != 1 or (weight := _weight(op, place)) is None:
            continue
        if np.broadcast(weight.array, factor).shape == weight.array.shape:
            return _with_factor(op, place, weight.scaled(factor, weight.sum_axes))
    return None


def _last(factor: Array, rank: int) -> Array | None:
    """The last dimensions of a factor, if it does not vary along the others."""
    others = max(factor.ndim - rank, 0)
    if any(size != 1 for size in factor.shape[:others]):
        return None
    return factor.reshape(factor.shape[others:])


def _with_factor(op: MatmulOp, place: int, factor: ConstantOp | None) -> Edit | None:
    if factor is None:
        return None
    return Edit(op, (op.lhs, factor) if place == 1 else (factor, op.rhs))


# What precedes


def absorbed_before(op: Operation, operand: int, affine: Affine) -> Edit | None:
    """The op that gives the same for x as it does for x * scale + shift."""
    if isinstance(op, MatmulOp):
        return _product_of_scaled(op, operand, affine) if _is_plain(op) else None
    if not isinstance(op, ConvOp | ConvTransposeOp) or operand != 0 or not _is_plain(op):
        return None
    channels = _channels(affine, 1, dims_of(op.input)[1].value)
    if channels is None or not _may_shift(op, affine) or (weight := _weight(op, 1)) is None:
        return None
    scaled = bias = None
    if channels.scale is not None:
        factor = _of_inputs(op, channels.scale, weight.array)
        if (scaled := weight.scaled(factor, weight.axes_of_input)) is None:
            return None
    if channels.shift is not None:
        bias = weight.sums(_of_inputs(op, channels.shift, weight.array)).reshape(-1)
    return _with_bias(op, scaled, None, bias)


def _of_inputs(op: ConvOp | ConvTransposeOp, channels: Array, weight: Array) -> Array:
    """The numbers of input channels, as they meet the weight."""
    if isinstance(op, ConvTransposeOp):
        return _along(channels, 0, weight.ndim)
    return _in_groups(channels, op.groups.data, weight)


def _may_shift(op: ConvOp | ConvTransposeOp, affine: Affine) -> bool:
    """False if a shift of the inputs is no shift of all sums alike, or loses digits."""
    if affine.shift is None:
        return True
    if not isinstance(op, ConvOp):
        return False  # Fewer taps reach what lies at the border.
    if any(pad != 0 for pad in (*op.pads_begin.data, *op.pads_end.data)):
        return False
    return is_shift_harmless(affine, element_type(op.result))


def _product_of_scaled(op: MatmulOp, operand: int, affine: Affine) -> Edit | None:
    """Rows of a constant on the right, or columns of one on the left."""
    place, axis, inner = (1, -1, -2) if operand == 0 else (0, -2, -1)
    weight = _weight(op, place)
    if weight is None or not is_shift_harmless(affine, element_type(op.result)):
        return None
    rank = weight.array.ndim
    channels = _channels(affine, axis, weight.array.shape[inner])
    if channels is None:
        return None
    edit: Edit | None = Edit(op, (op.lhs, op.rhs))
    if channels.scale is not None:
        edit = _with_factor(
            op, place, weight.scaled(_along(channels.scale, inner, rank), weight.axes_of_input)
        )
    if edit is None or channels.shift is None:
        return edit
    shift = weight.sums(_along(channels.shift, inner, rank))
    return replace(edit, shift=shift) if is_representable(shift, weight.element) else None
