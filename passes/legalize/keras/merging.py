"""Layers of several inputs. Operations of the same names take two arguments instead of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.common.linear import einsum
from lowerdeck.passes.legalize.common.normalization import by_length
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float, both, common_type, pair
from lowerdeck.passes.legalize.keras.reduction import reduced_axes
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_MERGES: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "Add": lambda a, b: a + b,
    "Average": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Maximum": lambda a, b: a.maximum(b),
    "Minimum": lambda a, b: a.minimum(b),
}


@legalizes(*_MERGES)
def legalize_merge(builder: KerasLegalizer) -> Results:
    """Inputs combined one after the other; those of fewer dimensions get more after the batch."""
    function = _MERGES[builder.op_type]
    if not isinstance(builder.argument(0, "x1"), list):
        if builder.op_type == "Average":
            return [_mean(builder).value]
        first, second = pair(builder)
        return [function(first, second).value]
    values = common_type(builder, builder.operands())
    rank = max(rank_of(value) for value in values)
    operands = [TensorValue(builder, _widened(builder, value, rank)) for value in values]
    if masks := builder.keyword("mask"):
        return [_within(builder, operands, masks).value]
    total = operands[0]
    for value in operands[1:]:
        total = function(total, value)
    if builder.op_type == "Average":
        total = total / len(operands)
    return [total.value]


def _mean(builder: KerasLegalizer) -> TensorValue:
    """That of the operation `Average`, whose elements may have weights of the same shape."""
    x = as_float(builder.x())
    axes, keep = reduced_axes(builder, x)
    weights = builder.argument(1, "weights")
    if weights is None:
        return TensorValue(builder, mean(builder, x.value, axes, keep))
    x, shares = both(builder, x.value, weights)
    if len(shares.dims) != len(x.dims):
        builder.refuse(f"weights of {len(shares.dims)} dimensions", f"{len(x.dims)}")
    shares = as_float(shares).broadcast(x.dims)
    return (x * shares).reduce("sum", axes) / shares.reduce("sum", axes)


def _within(
    builder: KerasLegalizer, operands: Sequence[TensorValue], masks: Sequence[SSAValue | None]
) -> TensorValue:
    """Products and extrema of what masks do not exclude; the first where they exclude all."""
    function = _MERGES[builder.op_type]
    held = [_mask_of(builder, mask) for mask in masks]
    known = [mask for mask in held if mask is not None]
    total, mask = operands[0], held[0]
    if builder.op_type == "Multiply":
        factors = [x if m is None else m.where(x, 1) for x, m in zip(operands, held, strict=True)]
        total = reduce(function, factors)
        return (
            total if len(known) < len(held) else reduce(TensorValue.__or__, known).where(total, 0)
        )
    for value, own in zip(operands[1:], held[1:], strict=True):
        other = value if own is None else own.where(value, total)
        total = function(total if mask is None else mask.where(total, other), other)
        mask = mask | own if mask is not None and own is not None else None
    return total


def _mask_of(builder: KerasLegalizer, mask: SSAValue | None) -> TensorValue | None:
    if mask is None:
        return None
    value = TensorValue.of(builder, mask)
    return value.reshape([*value.dims, 1])


def _widened(builder: KerasLegalizer, value: SSAValue, rank: int) -> SSAValue:
    dims = dims_of(value)
    return builder.reshape(value, [dims[0], *[1] * (rank - len(dims)), *dims[1:]])


@legalizes("Concatenate")
def legalize_concatenate(builder: KerasLegalizer) -> Results:
    """One after the other along an axis."""
    values = common_type(builder, builder.operands())
    axis = builder.axis(builder.integer("axis", -1), rank_of(values[0]))
    return [builder.add(ConcatOp(values, axis)) if len(values) > 1 else values[0]]


@legalizes("Dot")
def legalize_dot(builder: KerasLegalizer) -> Results:
    """Sums of products along an axis of each, for each batch; axes count the batch."""
    values = builder.operands()
    if not isinstance(builder.argument(0, "x1"), list) or len(values) != 2:
        builder.refuse("no pair, or the operation Dot", "two tensors, or Matmul or Einsum")
    x, y = (TensorValue.of(builder, value) for value in values)
    ((first, second),) = builder.sides("axes", 1, in_pairs=True)
    first, second = builder.axis(first, len(x.dims)), builder.axis(second, len(y.dims))
    if not first or not second:
        builder.refuse("a sum over the batch", "over another axis")
    if builder.config("normalize", False):
        x, y = by_length(x, [first], 1e-12), by_length(y, [second], 1e-12)
    left = "".join(chr(ord("b") + k) for k in range(len(x.dims) - 1))
    right = "".join(chr(ord("n") + k) for k in range(len(y.dims) - 1))
    right = right[: second - 1] + left[first - 1] + right[second:]
    result = (left + right).replace(left[first - 1], "")
    value = einsum(builder, f"a{left},a{right}->a{result}", [x.value, y.value])
    if rank_of(value) == 1:
        value = builder.reshape(value, [dims_of(value)[0], 1])
    return [value]
