"""
Linear ops by constants, y = x * scale + shift, and what becomes of them in a row.

Scales and shifts are float64 arrays with one dimension for each of the value: as long as it, or 1
where they do not vary along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, NegOp, SubOp
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import is_ranked
from lowerdeck.passes.machinery.values import Array, is_finite, scale_and_shift, small_constant

LINEAR_OPS: tuple[type[Operation], ...] = (MulOp, AddOp, SubOp, DivOp, NegOp, BatchNormOp)
"""Ops that are linear in an operand if the others are constants."""

_LONGEST = 8
"""The most ops of a chain: each op is looked at as the last one of its own."""

_NOISE = 2.0**-14
"""What a shift may add to the rounding error of a value that may be exact, and of size one."""


@record
class Affine:
    """y = x * scale + shift; None for ones, and for zeros."""

    scale: Array | None = None
    shift: Array | None = None

    @property
    def parts(self) -> tuple[Array | None, Array | None]:
        """Scale and shift."""
        return self.scale, self.shift

    @property
    def is_identity(self) -> bool:
        """True if y is x."""
        return self.scale is None and self.shift is None

    @property
    def size(self) -> int:
        """How many ops it takes."""
        return (self.scale is not None) + (self.shift is not None)


@record
class Chain:
    """Linear ops one after the other, each the only user of the one before; the last one first."""

    ops: tuple[Operation, ...]
    input: SSAValue
    affine: Affine

    @property
    def size(self) -> int:
        """How many ops it is; a normalization counts as two."""
        return len(self.ops) + sum(isinstance(op, BatchNormOp) for op in self.ops)


@record
class Limits:
    """The numbers that a floating-point type has."""

    largest: float
    smallest: float
    """The smallest positive one with all digits."""
    epsilon: float
    """From one to the next number."""


def limits_of(element: Attribute) -> Limits:
    """Those of a floating-point element type."""
    found = cast(Any, ml_dtypes).finfo(numpy_dtype(element))
    return Limits(float(found.max), float(found.tiny), float(found.eps))


# What ops compute


def linear_of(op: object) -> Chain | None:
    """The function that one op computes, if its constants are finite and it broadcasts nothing."""
    if not isinstance(op, LINEAR_OPS) or not is_ranked(op):
        return None
    result = op.results[0]
    if not is_float(element_type(result)):
        return None
    found = _normalization(op) if isinstance(op, BatchNormOp) else _elementwise(op)
    if found is None or found[0].type != result.type:
        return None
    value, affine = found
    parts = [part for part in affine.parts if part is not None]
    return Chain((op,), value, affine) if is_finite(*parts) else None


def _normalization(op: BatchNormOp) -> tuple[SSAValue, Affine] | None:
    parameters = scale_and_shift(op)
    if parameters is None or dims_of(op.input)[op.axis.data] != parameters[0].size:
        return None
    shape = [1] * rank_of(op.input)
    shape[op.axis.data] = -1
    scale, shift = (compressed(array.reshape(shape)) for array in parameters)
    return op.input, Affine(scale, shift)


def _elementwise(op: Operation) -> tuple[SSAValue, Affine] | None:
    if isinstance(op, NegOp):
        return op.input, Affine(-np.ones([1] * rank_of(op.input)))
    for place in (1, 0):
        value, constant = op.operands[1 - place], _factor(op.operands[place], op.results[0])
        if constant is not None and (affine := _of(op, constant, place)) is not None:
            return value, affine
    return None


def _of(op: Operation, constant: Array, place: int) -> Affine | None:
    match op:
        case MulOp():
            return Affine(constant)
        case AddOp():
            return Affine(None, constant)
        case SubOp():
            if place == 1:
                return Affine(None, -constant)
            return Affine(-np.ones([1] * constant.ndim), constant)
        case DivOp() if place == 1 and constant.all():
            return Affine(1.0 / constant)
        case _:
            return None


def _factor(value: SSAValue, like: SSAValue) -> Array | None:
    """A constant that broadcasts to `like`, with a dimension for each of its dimensions."""
    array = small_constant(value)
    if array is None or array.ndim > rank_of(like) or array.size == 0:
        return None
    array = array.astype(np.float64)
    return compressed(array.reshape([1] * (rank_of(like) - array.ndim) + list(array.shape)))


def compressed(array: Array) -> Array:
    """The array with a single element along each dimension along which all are equal."""
    for axis, size in enumerate(array.shape):
        if size > 1:
            first = array.take([0], axis)
            if (array == first).all():
                array = first
    return array


def chain_of(op: Operation) -> Chain | None:
    """
    The ops that end with `op` and are one linear function, as exact as the ops themselves.

    They are in one block: what a loop does not repeat is not moved into it.
    """
    chain = linear_of(op)
    while chain is not None and chain.input.has_one_use() and len(chain.ops) < _LONGEST:
        before = linear_of(chain.input.owner)
        if before is None or before.ops[0].parent is not op.parent:
            break
        affine = composed(before.affine, chain.affine, element_type(chain.input))
        if affine is None:
            break
        chain = Chain((*chain.ops, *before.ops), before.input, affine)
    return chain


# One after the other


def composed(first: Affine, second: Affine, element: Attribute) -> Affine | None:
    """
    (x * s1 + t1) * s2 + t2 as one function of x, if that loses nothing.

    None where constants cancel, or leave the range in which values of any size can be scaled, where
    a shift makes values that may be exact inexact, and where the constants get larger.
    """
    scale, shift = first.scale, first.shift
    if second.scale is not None:
        scale = second.scale if scale is None else _product(scale, second.scale)
        if scale is None or not all(
            is_moderate(part, element) for part in (first.scale, second.scale, scale)
        ):
            return None
        if shift is not None and (shift := _product(shift, second.scale)) is None:
            return None
    if not is_shift_harmless(Affine(first.scale, shift), element):
        return None
    if second.shift is not None:
        shift = second.shift if shift is None else total(shift, second.shift, element)
        if shift is None:
            return None
    return Affine(scale, shift)


def _product(a: Array, b: Array) -> Array | None:
    """The product, if it is finite and not larger than its factors."""
    if np.broadcast(a, b).size > max(a.size, b.size):
        return None
    with np.errstate(all="ignore"):
        found = a * b
    return found if is_finite(found) else None


def is_moderate(array: Array | None, element: Attribute) -> bool:
    """True if no factor brings values of a usual size out of the range of the type, or to zero."""
    if array is None:
        return True
    limits = limits_of(element)
    sizes = np.abs(array[array != 0])
    largest, smallest = limits.largest**0.75, limits.smallest**0.75
    return bool(((sizes <= largest) & (sizes >= smallest)).all())


def total(a: Array, b: Array, element: Attribute) -> Array | None:
    """
    The sum of two shifts, if it is not larger than they are, and they do not cancel: not to their
    last digits anywhere, and not to less than half of their digits everywhere.
    """
    if np.broadcast(a, b).size > max(a.size, b.size):
        return None
    found, epsilon = a + b, limits_of(element).epsilon
    if not is_finite(found):
        return None
    parts, both = np.maximum(np.abs(a), np.abs(b)), (a != 0) & (b != 0)
    if (both & (np.abs(found) <= 4 * epsilon * parts)).any():
        return None
    if both.any() and np.abs(found).max() < epsilon**0.5 * parts.max():
        return None
    return found


def is_shift_harmless(affine: Affine, element: Attribute) -> bool:
    """
    False if x + t may be exact, and adding t later, to what is made of x, is not.

    Where t = -x nearly, x + t has no rounding error, but a function of x before the sum has one
    of the size of t. A scale that is no power of two rounds in any case.
    """
    if affine.shift is None:
        return True
    if affine.scale is not None and not (np.abs(np.frexp(affine.scale)[0]) == 0.5).all():
        return True
    return float(np.abs(affine.shift).max(initial=0)) * limits_of(element).epsilon <= _NOISE


def is_representable(array: Array, element: Attribute, axes: Sequence[int] | None = None) -> bool:
    """
    True if rounding to a type keeps all of an array finite, and adds no error larger than that of
    the largest element along `axes` (all axes, if None).
    """
    if array.size == 0:
        return True
    limits, sizes = limits_of(element), np.abs(array)
    if not (sizes <= limits.largest).all():
        return False
    if not ((sizes < limits.smallest) & (sizes > 0)).any():
        return True
    with np.errstate(all="ignore"):
        error = np.abs(array - array.astype(numpy_dtype(element)).astype(np.float64))
    where = None if axes is None else tuple(axes)
    largest = sizes.max(axis=where, keepdims=True)
    return bool((error <= limits.epsilon * largest).all())
