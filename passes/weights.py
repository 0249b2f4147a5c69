"""How constant weights of convolutions and matrix products take over linear functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, rank_of
from lowerdeck.passes.affine import Affine, is_representable, is_shift_harmless, total
from lowerdeck.passes.values import Array, constant_values, rounded

Contraction: TypeAlias = ConvOp | ConvTransposeOp | MatmulOp

COPY_LIMIT = 1 << 20
"""The largest weight, in bytes, that is copied because others read it too."""


@dataclass(frozen=True)
class Edit:
    """New operands of an op, and what is added to its result, if anything."""

    op: Operation
    operands: tuple[SSAValue | ConstantOp, ...]
    shift: Array | None = None


@dataclass(frozen=True)
class _Product:
    """A convolution or matrix product with one constant factor, in float64."""

    op: Contraction
    place: int
    """The operand that is the constant factor."""
    weight: Array
    bias: Array | None = None

    @property
    def element(self) -> Attribute:
        return element_type(self.op.result)

    def edit(
        self, weight: Array | None, bias: Array | None, shift: Array | None = None
    ) -> Edit | None:
        """With another weight and bias (None: as they are); None if they lose digits."""
        operands: list[SSAValue | ConstantOp] = list(self.op.operands)
        if weight is not None:
            if not is_representable(weight, self.element, self._filter_axes):
                return None
            operands[self.place] = rounded(weight, self.op.result)
        for sums in (bias, shift):
            if sums is not None and not is_representable(sums, self.element):
                return None
        if bias is not None:
            operands[2:] = [rounded(bias, self.op.result)]
        return Edit(self.op, tuple(operands), shift)

    @property
    def _filter_axes(self) -> Sequence[int]:
        """The axes of the weights of one sum."""
        match self.op:
            case ConvOp():
                return range(1, self.weight.ndim)
            case ConvTransposeOp():
                return [0, *range(2, self.weight.ndim)]
            case MatmulOp():
                return [self.weight.ndim - (2 if self.place == 1 else 1)]


def _product(op: Contraction, place: int) -> _Product | None:
    """The op, if the operand at `place` and any bias are constants of the type of the result."""
    weight, found = op.operands[place], _biased(op)
    if found is None or not _may_replace(weight) or (values := constant_values(weight)) is None:
        return None
    return replace(found, place=place, weight=values[0])


def _biased(op: Contraction) -> _Product | None:
    """The op without its weight, if any bias is constant."""
    if not op.is_uniform or not is_float(element_type(op.result)):
        return None
    bias = None if isinstance(op, MatmulOp) else op.bias
    values = constant_values(*([] if bias is None else [bias]))
    if values is None:
        return None
    return _Product(op, 1, np.empty(0), values[0] if values else None)


def _may_replace(weight: SSAValue) -> bool:
    """False if others read a large weight: then it would be there twice."""
    if weight.has_one_use():
        return True
    return isinstance(weight.owner, ConstantOp) and weight.owner.value.data.size <= COPY_LIMIT


def _channels(factor: Array | None, axis: int, count: int) -> Array | None:
    """The numbers of the channels, if a factor varies along no other axis."""
    if factor is None or factor.size not in (1, factor.shape[axis]):
        return None
    return np.broadcast_to(factor.reshape(-1), (count,))


# What follows


def absorbed_after(op: Operation, affine: Affine) -> Edit | None:
    """The op that gives scale times its result plus shift."""
    if isinstance(op, MatmulOp):
        return _scaled_product(op, affine)
    if not isinstance(op, ConvOp | ConvTransposeOp):
        return None
    found = _biased(op) if affine.scale is None else _product(op, 1)
    count = dims_of(op.result)[1].value
    if found is None or count is None:
        return None
    scale, shift = (_channels(part, 1, count) for part in affine.parts)
    if (scale is None, shift is None) != (affine.scale is None, affine.shift is None):
        return None
    bias = found.bias
    if bias is not None and scale is not None:
        bias = bias * scale
    if shift is not None:
        bias = shift if bias is None else total(bias, shift, found.element)
        if bias is None:
            return None
    return found.edit(None if scale is None else _scaled_outputs(found, scale), bias)


def _scaled_outputs(found: _Product, scale: Array) -> Array:
    weight = found.weight
    if isinstance(found.op, ConvOp):
        return weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    assert isinstance(found.op, ConvTransposeOp)
    # [C, M / groups, kernel...]: the rows of group g make the channels of group g.
    groups = found.op.groups.data
    rows = weight.reshape(groups, -1, *weight.shape[1:])
    factors = scale.reshape(groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
    return (rows * factors).reshape(weight.shape)


def _scaled_product(op: MatmulOp, affine: Affine) -> Edit | None:
    """Columns of a constant on the right, or rows of one on the left."""
    scale = affine.scale
    if affine.shift is not None or scale is None:
        return None
    for place, inner in ((1, -2), (0, -1)):
        own = _last(scale, rank_of(op.operands[place]))
        if own is None or own.shape[inner] != 1 or (found := _product(op, place)) is None:
            continue
        if np.broadcast(found.weight, own).shape == found.weight.shape:
            return found.edit(found.weight * own, None)
    return None


def _last(factor: Array, rank: int) -> Array | None:
    """The last dimensions of a factor, if it does not vary along the others."""
    others = max(factor.ndim - rank, 0)
    if any(size != 1 for size in factor.shape[:others]):
        return None
    return factor.reshape(factor.shape[others:])


# What precedes


def absorbed_before(op: Operation, operand: int, affine: Affine) -> Edit | None:
    """The op that gives the same for x as it does for x * scale + shift."""
    if isinstance(op, MatmulOp):
        return _product_of_scaled(op, operand, affine)
    if operand != 0 or not isinstance(op, ConvOp | ConvTransposeOp):
        return None
    found, count = _product(op, 1), dims_of(op.input)[1].value
    if found is None or count is None:
        return None
    scale, shift = (_channels(part, 1, count) for part in affine.parts)
    if (scale is None, shift is None) != (affine.scale is None, affine.shift is None):
        return None
    bias = None
    if shift is not None:
        if not is_shift_harmless(affine, found.element):
            return None
        bias = _bias_of_inputs(found, shift)
        if bias is not None and found.bias is not None:
            bias = total(found.bias, bias, found.element)
        if bias is None:
            return None
    return found.edit(None if scale is None else _scaled_inputs(found, scale), bias)


def _by_group(found: _Product, channels: Array) -> Array:
    """One number for each input channel, as it meets [groups, M / groups, C / groups, taps]."""
    assert isinstance(found.op, ConvOp)
    return channels.reshape(found.op.groups.data, 1, found.weight.shape[1], 1)


def _grouped(found: _Product) -> Array:
    """The weight [M, C / groups, kernel...] as [groups, M / groups, C / groups, taps]."""
    assert isinstance(found.op, ConvOp)
    weight, groups = found.weight, found.op.groups.data
    return weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)


def _scaled_inputs(found: _Product, scale: Array) -> Array:
    weight = found.weight
    if isinstance(found.op, ConvTransposeOp):
        return weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return (_grouped(found) * _by_group(found, scale)).reshape(weight.shape)


def _bias_of_inputs(found: _Product, shift: Array) -> Array | None:
    """What a shift of all inputs adds to each sum; None where windows reach beyond the inputs."""
    op = found.op
    if not isinstance(op, ConvOp):
        return None  # Fewer taps reach what lies at the border.
    if any(pad != 0 for pad in (*op.pads_begin.data, *op.pads_end.data)):
        return None
    return (_grouped(found) * _by_group(found, shift)).sum((2, 3)).reshape(-1)


def _product_of_scaled(op: MatmulOp, operand: int, affine: Affine) -> Edit | None:
    """Rows of a constant on the right, or columns of one on the left."""
    place, axis, inner = (1, -1, -2) if operand == 0 else (0, -2, -1)
    if (found := _product(op, place)) is None:
        return None
    shape = [1] * found.weight.ndim
    shape[inner] = found.weight.shape[inner]
    vectors: list[Array | None] = []
    for part in affine.parts:
        if part is not None and part.size not in (1, part.shape[axis]):
            return None
        vectors.append(
            None if part is None else np.broadcast_to(part.reshape(-1), shape[inner]).reshape(shape)
        )
    scale, shift = vectors
    sums = None
    if shift is not None:
        if not is_shift_harmless(affine, found.element):
            return None
        sums = (found.weight * shift).sum(inner, keepdims=True)
    return found.edit(None if scale is None else found.weight * scale, None, sums)
