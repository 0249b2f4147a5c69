"""Maps: ops of which one element is an expression of elements of the operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import tensor as core
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, IotaOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, i64
from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import (
    Index,
    KernelLowering,
    linear_index,
    map_rule,
    unravel,
)


@map_rule(*ELEMENTWISE)
def lower_elementwise(k: KernelLowering, op: CoreOp, at: Index) -> SSAValue:
    """Operands at the broadcast index, then the scalar form."""
    dims = dims_of(op.results[0])
    values = [k.operand(value, at, dims) for value in op.operands]
    return scalars.elementwise(k.builder, op, values)


@map_rule(BatchNormOp)
def lower_batch_norm(k: KernelLowering, op: BatchNormOp, at: Index) -> SSAValue:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + bias, half precision in f32."""
    b, element, channel = k.builder, element_type(op.input), [at[op.axis.data]]
    x = scalars.widen(b, k.element(op.input, at))
    scale, bias, mean, variance = (
        scalars.widen(b, k.element(value, channel)) for value in op.operands[1:]
    )
    epsilon = scalars.constant(b, op.epsilon.value.data, element)
    deviation = b.add(math.SqrtOp(scalars.add(b, variance, epsilon)))
    factor = b.add(arith.DivfOp(scale, deviation))
    scaled = scalars.mul(b, scalars.sub(b, x, mean), factor)
    return scalars.narrow(b, scalars.add(b, scaled, bias), element)


@map_rule(ConstantOp)
def lower_constant(k: KernelLowering, op: ConstantOp, at: Index) -> SSAValue:
    """A constant of one element."""
    array = op.array
    if array.size != 1:
        raise LoweringError(op, "is a constant of more than one element inside a kernel")
    element = element_type(op.result)
    value = scalars.constant(k.builder, array.reshape(()).item(), element)
    return scalars.narrow(k.builder, value, element)


@map_rule(IotaOp)
def lower_iota(k: KernelLowering, op: IotaOp, at: Index) -> SSAValue:
    """The index along the axis."""
    return k.builder.as_integer(at[op.axis.data])


@map_rule(core.TransposeOp)
def lower_transpose(k: KernelLowering, op: core.TransposeOp, at: Index) -> SSAValue:
    """Dimension permutation[k] of the input has the index of dimension k of the result."""
    permutation = ints(op.permutation)
    return k.element(op.input, [at[permutation.index(axis)] for axis in range(len(at))])


@map_rule(core.ChannelShuffleOp)
def lower_channel_shuffle(k: KernelLowering, op: core.ChannelShuffleOp, at: Index) -> SSAValue:
    """Channel c of the result is number c // groups of group c % groups."""
    groups = op.groups.data
    members = dims_of(op.input)[1] // groups
    channel = at[1] % groups * members + at[1] // groups
    return k.element(op.input, [at[0], channel, *at[2:]])


@map_rule(core.BroadcastOp)
def lower_broadcast(k: KernelLowering, op: core.BroadcastOp, at: Index) -> SSAValue:
    """The broadcast index."""
    return k.operand(op.input, at, op.dims.data)


@map_rule(core.ReshapeOp)
def lower_reshape(k: KernelLowering, op: core.ReshapeOp, at: Index) -> SSAValue:
    """The same position in C order."""
    return k.element(op.input, unravel(linear_index(at, op.dims.data), dims_of(op.input)))


@map_rule(core.SliceOp)
def lower_slice(k: KernelLowering, op: core.SliceOp, at: Index) -> SSAValue:
    """start + index * step."""
    lists = zip(at, op.starts.data, op.steps.data, strict=True)
    return k.element(op.input, [start + index * step for index, start, step in lists])


@map_rule(core.PadOp)
def lower_pad(k: KernelLowering, op: core.PadOp, at: Index) -> SSAValue:
    """Inside the input its element, outside what the mode says."""
    dims = dims_of(op.input)
    inner = [index - begin for index, begin in zip(at, op.begin.data, strict=True)]
    if op.mode.data != "constant":
        fold = {"edge": _clamp, "reflect": _reflect, "wrap": _wrap}[op.mode.data]
        pads = zip(op.begin.data, op.end.data, strict=True)
        padded = [begin != 0 or end != 0 for begin, end in pads]
        folded = [
            fold(index, dim) if pad else index
            for index, dim, pad in zip(inner, dims, padded, strict=True)
        ]
        return k.element(op.input, folded)
    conditions: list[SSAValue] = []
    for index, dim, begin, end in zip(inner, dims, op.begin.data, op.end.data, strict=True):
        if begin != 0:
            conditions.append(k.builder.compare_index("sge", index, 0))
        if end != 0:
            conditions.append(k.builder.compare_index("slt", index, dim))
    return _when_all(k, op, conditions, inner)


def _when_all(
    k: KernelLowering, op: core.PadOp, conditions: Sequence[SSAValue], inner: Index
) -> SSAValue:
    if not conditions:
        return k.element(op.input, inner)
    inside = conditions[0]
    for condition in conditions[1:]:
        inside = k.builder.add(arith.AndIOp(inside, condition))
    element = element_type(op.input)

    def outside() -> SSAValue:
        if op.value is not None:
            return k.element(op.value, ())
        zero = scalars.constant(k.builder, 0, element)
        return scalars.narrow(k.builder, zero, element)

    def input_element() -> SSAValue:
        return k.element(op.input, inner)

    return k.builder.choose(inside, input_element, outside, scalars.value_type(element))


def _clamp(index: Expr, dim: Expr) -> Expr:
    return minimum(maximum(index, 0), dim - 1)


def _reflect(index: Expr, dim: Expr) -> Expr:
    if dim == 1:
        return Expr.const(0)
    # A dimension of one at run time has period 0: it reads element 0 through a period of 1.
    period = maximum((dim - 1) * 2, 1)
    phase = index % period
    return minimum(phase, period - phase)


def _wrap(index: Expr, dim: Expr) -> Expr:
    # The driver refuses a dimension of none before it comes to this.
    return index % (1 if dim == 0 else dim)


@map_rule(core.GatherOp)
def lower_gather(k: KernelLowering, op: core.GatherOp, at: Index) -> SSAValue:
    """The index along the axis comes from data."""
    axis, rank = op.axis.data, len(dims_of(op.indices))
    position = data_index(k, op.indices, at[axis : axis + rank], dims_of(op.input)[axis])
    return k.element(op.input, [*at[:axis], position, *at[axis + rank :]])


@map_rule(core.GatherElementsOp)
def lower_gather_elements(k: KernelLowering, op: core.GatherElementsOp, at: Index) -> SSAValue:
    """As gather, with an index for every element."""
    axis = op.axis.data
    position = data_index(k, op.indices, at, dims_of(op.input)[axis])
    return k.element(op.input, [*at[:axis], position, *at[axis + 1 :]])


@map_rule(core.GatherNdOp)
def lower_gather_nd(k: KernelLowering, op: core.GatherNdOp, at: Index) -> SSAValue:
    """The last dimension of the indices holds one index per addressed dimension."""
    batch, dims = op.batch_dims.data, dims_of(op.input)
    leading = len(dims_of(op.indices)) - 1
    depth = dims_of(op.indices)[-1].value or 0
    positions = [
        data_index(k, op.indices, [*at[:leading], Expr.const(d)], dims[batch + d])
        for d in range(depth)
    ]
    return k.element(op.input, [*at[:batch], *positions, *at[leading:]])


def data_index(k: KernelLowering, indices: SSAValue, at: Index, bound: Expr) -> Expr:
    """The checked index that an element of a tensor of indices stands for."""
    key = ("index", indices, tuple(at), bound)
    value = k.element(indices, at)
    wide = scalars.cast(k.builder, value, element_type(indices), i64)
    if (known := k.builder.recall(key)) is not None:
        return k.builder.index(known)
    index = k.builder.checked(wide, bound)
    k.builder.remember(key, k.builder.value_of(index))
    return index
