"""Maps: ops whose result elements are expressions of elements of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core import tensor as core
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, IotaOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.index_maps import Broadcasts, MovesElements
from lowerdeck.dialects.core.linear import BatchNormOp, WindowsOp
from lowerdeck.dialects.core.quantize import MIDDLE, DequantizeOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i32, i64
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import Index, KernelLowering, map_rule

Indexed: TypeAlias = (
    core.GatherOp
    | core.GatherElementsOp
    | core.GatherNdOp
    | core.ScatterElementsOp
    | core.ScatterNdOp
)
"""Ops with indices from data."""

MOVES: tuple[type[CoreOp], ...] = (
    core.TransposeOp,
    core.ChannelShuffleOp,
    core.BroadcastOp,
    core.ReshapeOp,
    core.SliceOp,
    WindowsOp,
)
"""One-result maps whose result elements are elements of their operand."""


@map_rule(*ELEMENTWISE)
def lower_elementwise(k: KernelLowering, op: CoreOp, at: Index) -> SSAValue:
    """The scalar form, of elements at the broadcast index."""
    assert isinstance(op, Broadcasts)
    indices = [op.operand_index(number, at) for number in range(len(op.operands))]
    values = [k.element(value, index) for value, index in zip(op.operands, indices, strict=True)]
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


@map_rule(*MOVES)
def lower_move(k: KernelLowering, op: MovesElements, at: Index) -> SSAValue:
    """The operand element that it moves."""
    return k.element(op.operands[0], op.operand_index(0, at))


@map_rule(DequantizeOp)
def lower_dequantize(k: KernelLowering, op: DequantizeOp, at: Index) -> SSAValue:
    """(code - zero) * scale"""
    number = scalars.sub(k.builder, code_of(k, op, at), zero_of(k, op, at))
    return scalars.mul(k.builder, number, scale_of(k, op, at))


_CODE_BITS: Exact[int] = 4
"""Of the numbers of which a byte holds two."""


def code_of(k: KernelLowering, op: DequantizeOp, at: Index) -> SSAValue:
    """The integer that stands for a number of four bits, in f32."""
    b, axis = k.builder, op.axis.data
    byte = k.element(op.codes, [*at[:axis], at[axis] // 2, *at[axis + 1 :]])
    code = b.add(arith.ExtUIOp(byte, i32))
    if (upper := at[axis] % 2) != 0:
        code = b.add(arith.ShRUIOp(code, b.as_integer(upper * _CODE_BITS, i32)))
    if upper != 1:
        code = b.add(arith.AndIOp(code, b.integer((1 << _CODE_BITS) - 1, i32)))
    return b.add(arith.SIToFPOp(code, f32))


def scale_of(k: KernelLowering, op: DequantizeOp, at: Index) -> SSAValue:
    """The scale of the block of a number, in f32."""
    return scalars.cast(k.builder, *_of_block(k, op, op.scale, at), f32)


def zero_of(k: KernelLowering, op: DequantizeOp, at: Index) -> SSAValue:
    """The zero point of the block of a number, in f32."""
    if op.zero is None:
        return scalars.constant(k.builder, MIDDLE, f32)
    return scalars.cast(k.builder, *_of_block(k, op, op.zero, at), f32)


def _of_block(
    k: KernelLowering, op: DequantizeOp, value: SSAValue, at: Index
) -> tuple[SSAValue, Attribute]:
    """What the block of a number has, and its type."""
    axis = op.axis.data
    place = [*at[:axis], at[axis] // op.block.data, *at[axis + 1 :]]
    return k.element(value, place), element_type(value)


@map_rule(core.PadOp)
def lower_pad(k: KernelLowering, op: core.PadOp, at: Index) -> SSAValue:
    """Inside the input its element, outside the value that the mode defines."""
    is_constant, inner = op.mode.data is PadMode.CONSTANT, op.operand_index(0, at)
    if (is_inside := k.pads.get(op)) is None:
        tests = _tests(k, op, inner) if is_constant else []
        return _added(k, op) if tests is None else _when_all(k, op, tests, inner)
    if is_inside:
        place = at[-1] - op.begin.data[-1]
        return k.element(op.input, [*inner[:-1], place])
    return _added(k, op) if is_constant else k.element(op.input, inner)


def _tests(k: KernelLowering, op: core.PadOp, inner: Index) -> list[SSAValue] | None:
    """Whether an index is inside of the input, where that is open; None if none of them is."""
    b, tests = k.builder, list[SSAValue]()
    sides = zip(inner, dims_of(op.input), op.begin.data, op.end.data, strict=True)
    for index, dim, begin, end in sides:
        is_before, is_within = b.is_less(index, 0), b.is_less(index, dim)
        if is_before is True or is_within is False:
            return None
        if begin != 0 and is_before is None:
            tests.append(b.compare_index("sge", index, 0))
        if end != 0 and is_within is None:
            tests.append(b.compare_index("slt", index, dim))
    return tests


def _when_all(
    k: KernelLowering, op: core.PadOp, tests: Sequence[SSAValue], inner: Index
) -> SSAValue:
    if not tests:
        return k.element(op.input, inner)
    return k.builder.choose(
        reduce(lambda a, b: k.builder.add(arith.AndIOp(a, b)), tests),
        lambda: k.element(op.input, inner),
        lambda: _added(k, op),
        scalars.value_type(element_type(op.input)),
    )


def _added(k: KernelLowering, op: core.PadOp) -> SSAValue:
    """What lies beside the input."""
    if op.value is not None:
        return k.element(op.value, ())
    element = element_type(op.input)
    return scalars.narrow(k.builder, scalars.constant(k.builder, 0, element), element)


@map_rule(core.GatherOp, core.GatherElementsOp)
def lower_gather(
    k: KernelLowering, op: core.GatherOp | core.GatherElementsOp, at: Index
) -> SSAValue:
    """The index along the axis comes from data."""
    axis = op.axis.data
    place = [index for index in op.operand_index(1, at) if index is not None]
    position = data_index(k, op, place, dims_of(op.input)[axis])
    return k.element(op.input, _with_data(op.operand_index(0, at), [position]))


@map_rule(core.GatherNdOp)
def lower_gather_nd(k: KernelLowering, op: core.GatherNdOp, at: Index) -> SSAValue:
    """The last dimension of the indices holds one index per addressed dimension."""
    batch, dims = op.batch_dims.data, dims_of(op.input)
    *leading, _ = op.operand_index(1, at)
    place = [index for index in leading if index is not None]
    depth = dims_of(op.indices)[-1].value or 0
    positions = [data_index(k, op, [*place, Expr.const(d)], dims[batch + d]) for d in range(depth)]
    return k.element(op.input, _with_data(op.operand_index(0, at), positions))


def _with_data(index: Sequence[Expr | None], positions: Sequence[Expr]) -> list[Expr]:
    """The index with the components from data filled in, in order."""
    data = iter(positions)
    return [next(data) if part is None else part for part in index]


def data_index(k: KernelLowering, op: Indexed, at: Index, bound: Expr) -> Expr:
    """The index that an element of an op's indices denotes, checked unless it is inside."""
    key = ("index", op.indices, tuple(at), bound)
    value = k.element(op.indices, at)
    wide = scalars.cast(k.builder, value, element_type(op.indices), i64)
    if (known := k.builder.recall(key)) is not None:
        return k.builder.index(known)
    is_inside = op.inside is not None
    index = k.builder.from_integer(wide) if is_inside else k.builder.checked(wide, bound)
    k.builder.remember(key, k.builder.value_of(index))
    return index
