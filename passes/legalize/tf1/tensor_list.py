"""
TensorLists: a handle is a value, the list as it was when the handle was made (`arrays`).

What changes a list gives another one: each user of a handle sees the list that it was given.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, element_type, i32, i64
from lowerdeck.dialects.dims import Expr, maximum
from lowerdeck.dialects.tf1.attributes import VARIANT, DTypeAttr
from lowerdeck.dialects.tf1.ops import Tf1Op, known_class
from lowerdeck.passes.legalize.common.arrays import Array, creator, is_unwritten, set_lengths
from lowerdeck.passes.legalize.tf1.array_makers import ReserveListOp, dims_in
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.origins import find_origins
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.tensor_array import split


def _list(builder: Tf1Legalizer, *, can_grow: bool = False) -> Array:
    """The list that the node is given, with what it states of the shape of elements."""
    names = [argument.name for argument in builder.op.signature.inputs]
    stated = (
        dims_in(builder, builder.operand("element_shape")) if "element_shape" in names else None
    )
    return Array(builder, builder.operand("input_handle"), can_grow, stated)


# From and to tensors


@legalizes("TensorListFromTensor")
def legalize_from_tensor(builder: Tf1Legalizer) -> Results:
    """The rows of a tensor."""
    return [builder.operand("tensor")]


@legalizes("TensorListStack")
def legalize_stack(builder: Tf1Legalizer) -> Results:
    """All elements, stacked; there have to be `num_elements`, if that is not -1."""
    stacked, count = _list(builder).stacked(), builder.attrs.int("num_elements")
    _, *rest = dims_of(stacked)
    return [stacked if count < 0 else builder.reshape(stacked, [count, *rest])]


@legalizes("TensorListGather")
def legalize_gather(builder: Tf1Legalizer) -> Results:
    """The elements at `indices`, stacked."""
    return [_list(builder).gathered(builder.operand("indices"))]


@legalizes("TensorListConcat", "TensorListConcatV2")
def legalize_concat(builder: Tf1Legalizer) -> Results:
    """The elements one after the other along their first dimension, and their lengths."""
    if builder.op_type == "TensorListConcatV2":
        leading = builder.operand("leading_dims")
        if dims_of(leading) != (Expr.const(0),):
            builder.refuse("lengths of elements that were not written", "none")
        return list(_list(builder).joined())
    stated = builder.attrs.shape("element_shape")
    dims = None if stated is None else [None if dim < 0 else Expr.const(dim) for dim in stated]
    return list(Array(builder, builder.operand("input_handle"), stated=dims).joined())


@legalizes("TensorListSplit")
def legalize_split(builder: Tf1Legalizer) -> Results:
    """Consecutive pieces of a tensor."""
    return [split(builder, builder.operand("tensor"), builder.operand("lengths"))]


@legalizes("TensorListScatter", "TensorListScatterV2")
def legalize_scatter(builder: Tf1Legalizer) -> Results:
    """
    The rows of a tensor at `indices`: a list up to the last of them, or of `num_elements` if that
    is more.
    """
    shape = builder.operand("element_shape")
    count = builder.cast(builder.dims([0], []), i32)
    if builder.op_type == "TensorListScatterV2":
        count = builder.operand("num_elements")
        number = builder.require_expr(count, "the number of elements")
        count = builder.cast(builder.dims([maximum(number, 0)], []), i32)
    made = Array(builder, _reserved(builder, builder.op, shape, count), can_grow=True)
    return [made.with_elements(builder.operand("indices"), builder.operand("tensor"))]


@legalizes("TensorListScatterIntoExistingList")
def legalize_scatter_into(builder: Tf1Legalizer) -> Results:
    """The list with the rows of a tensor at `indices`."""
    array = _list(builder, can_grow=True)
    return [array.with_elements(builder.operand("indices"), builder.operand("tensor"))]


def _reserved(builder: Tf1Legalizer, like: Tf1Op, shape: SSAValue, count: SSAValue) -> SSAValue:
    """A new list that was not written yet, of the type that an op has."""
    properties = {name: like.properties[name] for name in ("element_dtype", "shape_type")}
    return builder.insert(ReserveListOp([shape, count], properties))[0]


# Elements


@legalizes("TensorListSetItem")
def legalize_set_item(builder: Tf1Legalizer) -> Results:
    """The list with another element."""
    array = _list(builder, can_grow=builder.attrs.flag("resize_if_index_out_of_bounds"))
    return [array.with_element(builder.operand("index"), builder.operand("item"))]


@legalizes("TensorListGetItem")
def legalize_get_item(builder: Tf1Legalizer) -> Results:
    """An element."""
    return [_list(builder).at(builder.operand("index"))]


@legalizes("TensorListPushBack")
def legalize_push_back(builder: Tf1Legalizer) -> Results:
    """The list with one element more."""
    return [_list(builder).with_last(builder.operand("tensor"))]


@legalizes("TensorListPopBack")
def legalize_pop_back(builder: Tf1Legalizer) -> Results:
    """The list without its last element, and that."""
    array = _list(builder)
    elements = array.elements()
    size, *rest = dims_of(elements)
    if size == 0:
        builder.refuse("the last element of an empty list", "an element")
    if (builder.symbols.lower_bound(size) or 0) < 1:
        # Checked at run time.
        lengths = array.lengths
        elements = builder.reshape(elements, [maximum(size, 1), *rest])
        size = maximum(size, 1)
        if lengths is not None:
            set_lengths(builder, elements, builder.reshape(lengths, [size]))
    array = Array(builder, elements, stated=array.stated)
    return [array.resized(size - 1).value, array.at(builder.dims([size - 1], []))]


# Lists as wholes


@legalizes("TensorListLength")
def legalize_length(builder: Tf1Legalizer) -> Results:
    """The number of elements."""
    return [builder.cast(builder.dims([_list(builder).size], []), i32)]


@legalizes("TensorListResize")
def legalize_resize(builder: Tf1Legalizer) -> Results:
    """The list with more elements, or only its first ones."""
    array, size = _list(builder), builder.operand("size")
    if is_unwritten(array.value):
        op = creator(array.value)
        assert isinstance(op, Tf1Op)
        return [_reserved(builder, op, op.input_list("element_shape")[0], size)]
    number = builder.require_expr(size, "a size")
    builder.symbols.assume_nonnegative([number])
    return [array.resized(number).value]


@legalizes("TensorListConcatLists")
def legalize_concat_lists(builder: Tf1Legalizer) -> Results:
    """The elements of two lists."""
    lists = [Array(builder, builder.operand(name)) for name in ("input_a", "input_b")]
    written = [array for array in lists if not is_unwritten(array.value)]
    if any(array.lengths is not None for array in written):
        builder.refuse("lists of elements of different lengths", "one length")
    like = dims_of(written[0].value)[1:] if written else None
    parts = [
        array.elements() if like is None else array.fitting(like, "elements") for array in lists
    ]
    return [builder.add(ConcatOp(parts, 0))]


# The shape that was stated


@legalizes("TensorListElementShape")
def legalize_element_shape(builder: Tf1Legalizer) -> Results:
    """What `give_element_shapes` has left."""
    builder.refuse("the shape of elements of lists that were made with several", "one")


def give_element_shapes(function: FuncOp) -> None:
    """
    Let the shape of a list's elements be the one that all ops which may have made the list state.
    """
    for op in list(function.walk()):
        if isinstance(op, Tf1Op) and op.op_type == "TensorListElementShape":
            shape, kind = _stated_shape(op), op.attr("shape_type")
            if shape is not None:
                source = DTypeAttr("int64" if element_type(shape) == i64 else "int32")
                types = {"SrcT": source, "DstT": DTypeAttr(kind)}
                new = known_class("Cast")([shape], types)
                new.location = op.location
                Rewriter.replace_op(op, new)


def _stated_shape(op: Tf1Op) -> SSAValue | None:
    """A value before `op` that says what all that may have made its list state, if they agree."""
    origins = find_origins((op, 0), _version_of)
    makers = dict.fromkeys(user.operands[number].owner for user, number in origins)
    shapes = [
        maker.input_list("element_shape")[0]
        for maker in makers
        if isinstance(maker, Tf1Op) and _has_input(maker, "element_shape")
    ]
    if len(shapes) != len(makers):
        return None
    first = shapes[0]
    if all(shape is first for shape in shapes) and _is_before(first, op):
        return first
    constants = [shape.owner for shape in shapes if isinstance(shape.owner, Tf1Op)]
    values = {constant.properties.get("value") for constant in constants}
    if len(constants) != len(shapes) or len(values) != 1 or None in values:
        return None
    copy = constants[0].clone()
    Rewriter.insert_op(copy, InsertPoint.before(op))
    return copy.results[0]


def _version_of(op: Tf1Op) -> int | None:
    """Which operand is the list that an op changes."""
    is_list = bool(op.outputs) and op.outputs[0].type == VARIANT
    return 0 if is_list and _has_input(op, "input_handle") else None


def _has_input(op: Tf1Op, name: str) -> bool:
    return any(argument.name == name for argument in op.signature.inputs)


def _is_before(value: SSAValue, op: Operation) -> bool:
    """True if a value is defined in a block around an op, which is where it can be used."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return block is not None and block.find_ancestor_op_in_block(op) is not None
