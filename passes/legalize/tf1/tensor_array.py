"""
TensorArrays: the flow of an array is the value that it has at that point (`arrays`).

The handle leads to the op that made the array. The operators have three versions. In the first two
the op that makes an array gives no flow: a constant is the first one, and `give_flows` replaces it.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.types import dims_of, i32
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.tf1.ops import Tf1Op, known_class
from lowerdeck.passes.legalize.common.arrays import Array, Dims, is_unwritten, set_lengths
from lowerdeck.passes.legalize.common.uneven import split_rows
from lowerdeck.passes.legalize.tf1.array_makers import TensorArrayOp
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.origins import find_origins
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


def _maker(builder: Tf1Legalizer) -> Tf1Op:
    """The op that made the array; refused if the handle does not lead there."""
    owner = builder.operand("handle").owner
    if isinstance(owner, TensorArrayOp):
        return owner
    return builder.refuse("a handle that control flow decides on", "the handle of one TensorArray")


def _array(builder: Tf1Legalizer) -> Array:
    """The array as it is at the node."""
    can_grow = bool(_maker(builder).attr("dynamic_size"))
    return Array(builder, builder.operand("flow_in"), can_grow)


def _stated(builder: Tf1Legalizer, name: str) -> Dims:
    """The shape of elements in an attribute."""
    shape = builder.attrs.shape(name)
    return None if shape is None else [None if dim < 0 else Expr.const(dim) for dim in shape]


@legalizes("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3")
def legalize_write(builder: Tf1Legalizer) -> Results:
    """The array with another element at `index`."""
    return [_array(builder).with_element(builder.operand("index"), builder.operand("value"))]


@legalizes("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def legalize_read(builder: Tf1Legalizer) -> Results:
    """The element at `index`."""
    return [_array(builder).at(builder.operand("index"))]


@legalizes("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3")
def legalize_gather(builder: Tf1Legalizer) -> Results:
    """The elements at `indices`, stacked."""
    array = replace(_array(builder), stated=_stated(builder, "element_shape"))
    return [array.gathered(builder.operand("indices"))]


@legalizes("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3")
def legalize_scatter(builder: Tf1Legalizer) -> Results:
    """The rows of `value` become the elements at `indices`."""
    return [_array(builder).with_elements(builder.operand("indices"), builder.operand("value"))]


@legalizes("TensorArrayPack")
def legalize_pack(builder: Tf1Legalizer) -> Results:
    """All elements, stacked."""
    return [replace(_array(builder), stated=_stated(builder, "element_shape")).stacked()]


@legalizes("TensorArrayUnpack")
def legalize_unpack(builder: Tf1Legalizer) -> Results:
    """The rows of `value` become the elements."""
    value = builder.operand("value")
    return [_array(builder).with_elements(builder.add(IotaOp([dims_of(value)[0]])), value)]


@legalizes("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3")
def legalize_size(builder: Tf1Legalizer) -> Results:
    """The number of elements."""
    return [builder.cast(builder.dims([_array(builder).size], []), i32)]


@legalizes("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def legalize_concat(builder: Tf1Legalizer) -> Results:
    """The elements one after the other along their first dimension, and their lengths."""
    builder.attrs.ignore("element_shape_except0")
    return list(_array(builder).joined())


@legalizes("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3")
def legalize_split(builder: Tf1Legalizer) -> Results:
    """Consecutive pieces of `value` become the elements."""
    lengths, array = builder.operand("lengths"), _array(builder)
    (count,) = dims_of(lengths)
    size = maximum(array.size, count) if array.can_grow else array.size
    if not is_unwritten(array.value) or (size - count).value:
        builder.refuse("a split into a part of an array", "as many pieces as elements")
    return [split(builder, builder.operand("value"), builder.reshape(lengths, [size]))]


def split(builder: Tf1Legalizer, value: SSAValue, lengths: SSAValue) -> SSAValue:
    """The array of consecutive pieces of a tensor."""
    count = dims_of(lengths)[0]
    known = builder.symbols.elements(lengths)
    pieces: list[Expr | None] = [] if known is None else list(known.reshape(-1))
    if pieces and (length := pieces[0]) is not None and all(p == length for p in pieces):
        total, *rest = dims_of(value)
        if (length * len(pieces) - total).value:
            builder.refuse(f"pieces of {length} of {total} rows", "pieces that are all of them")
        return builder.reshape(value, [count, length, *rest])
    return set_lengths(builder, *split_rows(builder, value, lengths))


@legalizes("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3")
def legalize_close(builder: Tf1Legalizer) -> Results:
    return []


# The first two versions

WITHOUT_FLOW = (known_class("TensorArray"), known_class("TensorArrayV2"))
"""The ops of the first two versions that make an array."""


def give_flows(function: FuncOp) -> None:
    """
    Let arrays of the first two versions be made by the operator of the third, and their first flow
    be its.
    """
    makers = [op for op in function.walk() if isinstance(op, WITHOUT_FLOW)]
    for op in makers:
        new = TensorArrayOp(op.inputs, op.properties)
        new.location = op.location
        Rewriter.replace_op(op, new, [new.results[0]])
    for op in list(function.walk()) if makers else ():
        if isinstance(op, Tf1Op) and (position := _flow_position(op)) is not None:
            _give_flow(op, position)


def _give_flow(op: Tf1Op, position: int) -> None:
    """Replace what does not come from an array, on all ways to the flow of an op."""
    handles = find_origins((op, 0), lambda _: None)
    maker, *others = {user.operands[number].owner for user, number in handles}
    if others or not isinstance(maker, TensorArrayOp):
        return  # refused where the handle is used
    for user, number in find_origins((op, position), _flow_position):
        if user.operands[number].owner is not maker:
            user.operands[number] = maker.results[1]


def _flow_position(op: Tf1Op) -> int | None:
    """Which operand is the flow of an array."""
    names = [argument.name for argument in op.signature.inputs]
    return names.index("flow_in") if "flow_in" in names else None
