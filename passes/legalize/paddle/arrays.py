"""Arrays of tensors, which grow where something is written behind their end."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, i32, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.paddle.ops import known_class
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.arrays import MAKERS, Array, Dims, Maker, is_unwritten
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes


def _no_elements(builder: CoreBuilder, op: Operation) -> Expr:
    del builder, op
    return Expr.const(0)


def _element(op: Operation) -> Attribute:
    return element_type(op.results[0])


def _any_shape(builder: CoreBuilder, op: Operation) -> Dims:
    del builder, op
    return None


CreateArrayOp = known_class("create_array")
MAKERS[CreateArrayOp] = Maker(_no_elements, _element, _any_shape)


def _array(builder: PaddleLegalizer, name: str) -> Array:
    return Array(builder, builder.input(name), can_grow=True)


def _index(builder: PaddleLegalizer) -> SSAValue:
    """A number of an element: a tensor of one element, however many dimensions that has."""
    return builder.reshape(builder.input("i"), [])


@legalizes("array_write")
def legalize_write(builder: PaddleLegalizer) -> Results:
    """The array with another element, behind the last one or instead of one."""
    array, x, index = _array(builder, "array"), builder.input("x"), _index(builder)
    is_first = is_unwritten(array.value) and builder.ints(index) == [0]
    return array.with_last(x) if is_first else array.with_element(index, x)


legalizes.rows(
    {
        "array_length": lambda b: b.cast(b.dims([_array(b, "x").size], [1]), b.element()),
        "array_read": lambda b: _array(b, "array").at(_index(b)),
    }
)


@legalizes("array_pop")
def legalize_pop(builder: PaddleLegalizer) -> Results:
    """The array without its last element, and that."""
    array = _array(builder, "input")
    if builder.integer("index") != -1:
        builder.refuse(f"element {builder.integer('index')} taken out of an array", "the last one")
    last = array.at(builder.dims([array.size - 1], []))
    return builder.results(array_out=array.resized(array.size - 1).value, out=last)


@legalizes("array_to_tensor")
def legalize_to_tensor(builder: PaddleLegalizer) -> Results:
    """The elements stacked along a new axis or joined along one of theirs; their lengths there."""
    array, axis = _array(builder, "x"), builder.integer("axis")
    elements = array.stacked() if builder.flag("use_stack") else array.elements()
    axis = builder.axis(axis, rank_of(elements) - (not builder.flag("use_stack")))
    count, *dims = dims_of(elements)
    if builder.flag("use_stack"):
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank_of(elements))]
        joined = builder.transpose(elements, order)
        # What the index says then is the size of an element, where it has the axis.
        length = dims[axis] if axis < len(dims) else Expr.const(1)
    elif array.lengths is not None:
        if axis:
            builder.refuse(f"elements of different lengths along axis {axis}", "one length")
        joined, lengths = array.joined()
        return builder.results(out=joined, out_index=builder.cast(lengths, i32))
    else:
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank_of(elements))]
        sizes = [*dims[:axis], count * dims[axis], *dims[axis + 1 :]]
        joined = builder.reshape(builder.transpose(elements, order), sizes)
        length = dims[axis]
    index = builder.broadcast(builder.dims([length], []), [count])
    return builder.results(out=joined, out_index=builder.cast(index, i32))
