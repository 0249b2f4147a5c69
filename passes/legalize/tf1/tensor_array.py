"""
TensorArrays as values: the flow of an array is the tensor of its elements, stacked.

An array has no tensor until the first write gives its elements a shape; until then its flow is that
of the `tf1.TensorArrayV3` op itself. Elements that were not written are zero. Elements may differ
in their length (`uneven`), and in nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.tensor import GatherOp, PadOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, element_type, i32, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.uneven import (
    element_at,
    joined_rows,
    split_rows,
    stacked,
    uniform_lengths,
    with_element,
)

ARRAY = "tf1.TensorArrayV3"
"""The op that makes an array; it stays while something refers to its handle."""


def is_unwritten(value: SSAValue) -> bool:
    """True for the flow of an array that has no elements yet."""
    return isinstance(value.owner, Operation) and value.owner.name == ARRAY


def zeros(builder: CoreBuilder, type_: Attribute) -> SSAValue:
    """The elements, all zero, of an array that is a tensor of `type_` once it is written."""
    return builder.broadcast(builder.scalar(0, element_type(type_)), dims_of(type_))


def empty_array(builder: CoreBuilder, like: SSAValue, *, is_uneven: bool) -> SSAValue:
    """An array of elements like those of another one: all zero, or of length zero if uneven."""
    count, *dims = dims_of(like)
    dims = [Expr.const(0), *dims[1:]] if is_uneven else dims
    return zeros(builder, tensor(element_type(like), [count, *dims]))


def first_elements(
    lower: Legalizer, flow: SSAValue, elements: SSAValue, *, is_uneven: bool
) -> SSAValue:
    """An array that was not written yet, with elements like those of a tensor, as they begin."""
    array = flow.owner
    assert isinstance(array, Tf1Op)
    dims = list(dims_of(elements)[1:])
    dims = [Expr.const(0), *dims[1:]] if is_uneven else dims
    return zeros(lower, tensor(element_type(elements), [_size(lower, array), *dims]))


def _array(lower: Tf1Legalizer) -> Tf1Op:
    """The op that made the array; refused if the handle does not lead there."""
    owner = lower.operand("handle").owner
    if isinstance(owner, Tf1Op) and owner.name == ARRAY:
        return owner
    return lower.refuse("a handle that control flow decides on", "the handle of one TensorArrayV3")


def _size(lower: Legalizer, array: Tf1Op) -> Expr:
    """The number of elements that the array was made with."""
    found = lower.exprs(array.inputs[0])
    return lower.refuse("an array whose size is no scalar") if found is None else found[0]


def _lengths(lower: Tf1Legalizer) -> SSAValue | None:
    """The lengths of the elements, if they are not known to be equal."""
    return lower.lengths_of(lower.operand("flow_in"))


def _elements(lower: Tf1Legalizer, dims: Sequence[Expr], what: str) -> SSAValue:
    """
    The array as a tensor, for elements of shape `dims`: they may differ in one dimension that is
    not known, which has to turn out to be the same.
    """
    value = lower.operand("flow_in")
    if not is_unwritten(value):
        found = dims_of(value)[1:]
        if len(found) != len(dims) or _differing(found, dims) > 1:
            lower.refuse(
                f"{what} of shape [{', '.join(map(str, dims))}] in an array of elements of shape "
                f"[{', '.join(map(str, found))}]",
                "elements of one shape",
            )
        return value
    array = _array(lower)
    element = ELEMENTS[array.attr("dtype")]
    return zeros(lower, tensor(element, [_size(lower, array), *dims]))


def _differing(found: Sequence[Expr], dims: Sequence[Expr]) -> int:
    """The number of different dimensions; more than their number if two can never be equal."""
    pairs = [pair for pair in zip(found, dims, strict=True) if pair[0] != pair[1]]
    if any(None not in (one.value, other.value) for one, other in pairs):
        return len(dims) + 1
    return len(pairs)


def _grown(lower: Tf1Legalizer, elements: SSAValue, size: Expr) -> SSAValue:
    """The array with room for `size` elements, if it may grow."""
    if not _array(lower).attr("dynamic_size"):
        return elements
    count = dims_of(elements)[0]
    wanted = maximum(count, size)
    if wanted == count:
        return elements
    rest = [0] * (rank_of(elements) - 1)
    zero = lower.scalar(0, elements)
    padded = lower.add(PadOp(elements, [0, *rest], [wanted - count, *rest], zero))
    return lower.reshape(padded, [wanted, *dims_of(elements)[1:]])


def _is_whole_range(indices: SSAValue, count: Expr) -> bool:
    """True if the indices are 0, 1, ..., count - 1."""
    owner = indices.owner
    while isinstance(owner, CastOp):
        owner = owner.input.owner
    return isinstance(owner, IotaOp) and owner.dims.data == (count,)


def _covers(lower: Tf1Legalizer, indices: SSAValue, count: Expr) -> bool:
    if _is_whole_range(indices, count):
        return True
    known = lower.ints(indices)
    return known is not None and count.value == len(known) and known == list(range(len(known)))


@legalizes("TensorArrayWriteV3")
def legalize_write(lower: Tf1Legalizer) -> Results:
    """The array with another element at `index`."""
    value, index = lower.operand("value"), lower.operand("index")
    if _is_uneven(lower, dims_of(value)):
        return [_write_uneven(lower, value, lower.cast(index, i64))]
    elements = _elements(lower, dims_of(value), "an element")
    if _array(lower).attr("dynamic_size"):
        number = lower.exprs(index)
        assert number is not None
        elements = _grown(lower, elements, number[0] + 1)
    position = lower.reshape(lower.cast(index, i64), [1, 1])
    update = lower.reshape(value, [1, *dims_of(elements)[1:]])
    return [lower.add(ScatterNdOp(elements, position, update))]


def _is_uneven(lower: Tf1Legalizer, dims: Sequence[Expr]) -> bool:
    """True if the array has lengths, or needs them for an element of shape `dims`."""
    flow = lower.operand("flow_in")
    if is_unwritten(flow) or rank_of(flow) != len(dims) + 1 or not dims:
        return False
    length, *rest = dims
    found = dims_of(flow)
    known = None not in (found[1].value, length.value)
    return list(found[2:]) == rest and (
        lower.lengths_of(flow) is not None or (known and found[1] != length)
    )


def _write_uneven(lower: Tf1Legalizer, value: SSAValue, index: SSAValue) -> SSAValue:
    if _array(lower).attr("dynamic_size"):
        lower.refuse("elements of different lengths in an array that may grow", "one length")
    flow = lower.operand("flow_in")
    lengths = _lengths(lower)
    lengths = uniform_lengths(lower, flow) if lengths is None else lengths
    return lower.set_lengths(*with_element(lower, flow, lengths, index, value))


@legalizes("TensorArrayReadV3")
def legalize_read(lower: Tf1Legalizer) -> Results:
    """The element at `index`."""
    elements = _written(lower)
    index = lower.cast(lower.operand("index"), i64)
    if (lengths := _lengths(lower)) is not None:
        return [element_at(lower, elements, lengths, index)]
    return [lower.add(GatherOp(elements, index, 0))]


def _written(lower: Tf1Legalizer) -> SSAValue:
    """The array as a tensor; one that was never written must state the shape of its elements."""
    value = lower.operand("flow_in")
    if not is_unwritten(value):
        return value
    array = _array(lower)
    shape = array.attr("element_shape")
    if shape is None or min(cast("tuple[int, ...]", shape), default=0) < 0:
        lower.refuse("an array that is read and never written", "a write before it")
    dims = [Expr.const(dim) for dim in shape]
    return zeros(lower, tensor(ELEMENTS[array.attr("dtype")], [_size(lower, array), *dims]))


@legalizes("TensorArrayGatherV3")
def legalize_gather(lower: Tf1Legalizer) -> Results:
    """The elements at `indices`, stacked."""
    lower.attrs.ignore("element_shape")
    elements, indices = _written(lower), lower.operand("indices")
    if (lengths := _lengths(lower)) is not None:
        return [stacked(lower, elements, lengths, lower.cast(indices, i64))]
    if _covers(lower, indices, dims_of(elements)[0]):
        return [elements]
    return [lower.add(GatherOp(elements, lower.cast(indices, i64), 0))]


@legalizes("TensorArrayScatterV3")
def legalize_scatter(lower: Tf1Legalizer) -> Results:
    """The rows of `value` become the elements at `indices`."""
    value, indices = lower.operand("value"), lower.operand("indices")
    count, *rest = dims_of(value)
    array = _array(lower)
    if _covers(lower, indices, count):
        size = dims_of(lower.operand("flow_in"))[0] if _has_elements(lower) else _size(lower, array)
        if array.attr("dynamic_size") and (maximum(size, count) == count):
            return [value]
        if size == count:
            return [value]
    if _lengths(lower) is not None:
        lower.refuse("scattering into an array of elements of different lengths", "one length")
    elements = _elements(lower, rest, "elements")
    positions = lower.unsqueeze(lower.cast(indices, i64), [1])
    if array.attr("dynamic_size"):
        if not _covers(lower, indices, count):
            lower.refuse("scattering into an array that may grow", "the indices 0, 1, ...")
        elements = _grown(lower, elements, count)
    rows = lower.reshape(value, [count, *dims_of(elements)[1:]])
    return [lower.add(ScatterNdOp(elements, positions, rows))]


def _has_elements(lower: Tf1Legalizer) -> bool:
    return not is_unwritten(lower.operand("flow_in"))


@legalizes("TensorArraySizeV3")
def legalize_size(lower: Tf1Legalizer) -> Results:
    """The number of elements."""
    value = lower.operand("flow_in")
    size = _size(lower, _array(lower)) if is_unwritten(value) else dims_of(value)[0]
    return [lower.cast(lower.dims([size], []), i32)]


@legalizes("TensorArrayConcatV3")
def legalize_concat(lower: Tf1Legalizer) -> Results:
    """The elements one after the other along their first dimension, and their lengths."""
    lower.attrs.ignore("element_shape_except0")
    elements = _written(lower)
    if rank_of(elements) < 2:
        lower.refuse("elements of rank 0", "elements with a first dimension")
    if (own := _lengths(lower)) is not None:
        return [joined_rows(lower, elements, own), own]
    count, length, *rest = dims_of(elements)
    joined = lower.reshape(elements, [count * length, *rest])
    lengths = lower.broadcast(lower.dims([length], []), [count])
    return [joined, lengths]


@legalizes("TensorArraySplitV3")
def legalize_split(lower: Tf1Legalizer) -> Results:
    """Consecutive pieces of `value` become the elements."""
    value, lengths = lower.operand("value"), lower.operand("lengths")
    count = dims_of(lengths)[0]
    if _has_elements(lower) or _size(lower, _array(lower)) != count:
        lower.refuse("a split into a part of an array", "as many pieces as elements")
    known = lower.symbols.elements(lengths)
    pieces: list[Expr | None] = [] if known is None else list(known.reshape(-1))
    if pieces and (length := pieces[0]) is not None and all(p == length for p in pieces):
        total, *rest = dims_of(value)
        if length * len(pieces) != total:
            lower.refuse(f"pieces of {length} of {total} rows", "pieces that are all of them")
        return [lower.reshape(value, [count, length, *rest])]
    return [lower.set_lengths(*split_rows(lower, value, lengths))]


@legalizes("TensorArrayCloseV3")
def legalize_close(lower: Tf1Legalizer) -> Results:
    return []
