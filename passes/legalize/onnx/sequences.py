"""
Sequences and optionals: lists of tensors that are resolved here, as `core` has none.

While a function is legalized, a sequence is the result of a `ListOp`, and its tensors the operands.
Operators on sequences read and make such ops; at the end none is used any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp
from lowerdeck.dialects.core.types import (
    OptionalType,
    SequenceType,
    dims_of,
    element_type,
    f32,
    rank_of,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import single, sizes_of


@irdl_op_definition
class ListOp(IRDLOperation):
    """The elements of a sequence, or of an optional (none or one)."""

    name = "onnx.list"
    elements = var_operand_def()
    result = result_def(SequenceType | OptionalType)
    traits = traits_def(Pure())

    def __init__(self, elements: Sequence[SSAValue], type: Attribute):
        super().__init__(operands=[elements], result_types=[type])


@record
class Structure:
    """How tensors make up a value: a tensor itself, or a list of structures."""

    type: Attribute
    parts: tuple[Structure, ...] | None = None


def make_list(builder: OnnxLegalizer, elements: Sequence[SSAValue], type: Attribute) -> SSAValue:
    """A sequence or optional of known elements."""
    return builder.insert(ListOp(elements, type))[0]


def elements_of(builder: OnnxLegalizer, value: SSAValue) -> list[SSAValue]:
    """The elements of a sequence or optional; refused if they are not known here."""
    if not isinstance(value.owner, ListOp):
        builder.refuse(
            f"a value of type {value.type}",
            "a sequence whose elements are known when compiling",
            "give the tensors as inputs of their own, or unroll the loop that makes the sequence",
        )
    return list(value.owner.elements)


def flatten(builder: OnnxLegalizer, value: SSAValue) -> tuple[list[SSAValue], Structure]:
    """The tensors in a value, and how they make it up."""
    if not isinstance(value.type, SequenceType | OptionalType):
        return [value], Structure(value.type)
    pairs = [flatten(builder, element) for element in elements_of(builder, value)]
    tensors = [tensor for flat, _ in pairs for tensor in flat]
    return tensors, Structure(value.type, tuple(structure for _, structure in pairs))


def rebuild(builder: OnnxLegalizer, tensors: Iterator[SSAValue], structure: Structure) -> SSAValue:
    """The value that the next tensors make up; the inverse of `flatten`."""
    if structure.parts is None:
        return next(tensors)
    parts = [rebuild(builder, tensors, part) for part in structure.parts]
    return make_list(builder, parts, structure.type)


def erase_unused_lists(block: Block) -> None:
    """Erase the lists of a block that nothing uses, last first."""
    for op in reversed(list(block.ops)):
        if isinstance(op, ListOp) and op.result.first_use is None:
            op.detach()
            op.erase()


def _sequence_type(element: Attribute) -> SequenceType:
    return SequenceType(UnrankedTensorType(element))


@legalizes("SequenceEmpty")
def legalize_sequence_empty(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    number = builder.attrs.opt_int("dtype")
    element = f32 if number is None else builder.element(number)
    return [make_list(builder, [], _sequence_type(element))]


@legalizes("SequenceConstruct")
def legalize_sequence_construct(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    return [make_list(builder, builder.inputs, _sequence_type(element_type(builder.inputs[0])))]


@legalizes("SequenceInsert")
def legalize_sequence_insert(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    sequence, tensor = builder.operand("input_sequence"), builder.operand("tensor")
    elements = elements_of(builder, sequence)
    elements.insert(_position(builder, len(elements), len(elements) + 1), tensor)
    return [make_list(builder, elements, sequence.type)]


@legalizes("SequenceErase")
def legalize_sequence_erase(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    sequence = builder.operand("input_sequence")
    elements = elements_of(builder, sequence)
    del elements[_position(builder, len(elements) - 1, len(elements))]
    return [make_list(builder, elements, sequence.type)]


def _position(builder: OnnxLegalizer, default: int, count: int) -> int:
    """The operand `position`; negative ones count from the end of the sequence as it is."""
    value = builder.input("position")
    if value is None:
        return default
    position = builder.require_int(value, "a position")
    length = len(elements_of(builder, builder.operand("input_sequence")))
    position = position + length if position < 0 else position
    if not 0 <= position < count:
        builder.refuse(f"position {position}", f"0 to {count - 1}")
    return position


@legalizes("SequenceAt")
def legalize_sequence_at(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A position that only data decides needs elements of one shape."""
    elements = elements_of(builder, builder.operand("input_sequence"))
    position = builder.operand("position")
    if builder.ints(position) is not None:
        return [elements[_position(builder, 0, len(elements))]]
    types = {element.type for element in elements}
    if len(types) != 1:
        builder.refuse(
            f"a position that depends on data in {len(elements)} elements of "
            f"{len(types)} different types",
            "elements of one type",
        )
    stacked = concat(builder, [builder.unsqueeze(element, [0]) for element in elements], 0)
    return [builder.add(GatherOp(stacked, builder.reshape(position, []), 0))]


@legalizes("SequenceLength")
def legalize_sequence_length(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    elements = elements_of(builder, builder.operand("input_sequence"))
    return [builder.tensor(np.array(len(elements), np.int64))]


@legalizes("SplitToSequence")
def legalize_split_to_sequence(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Parts of the given sizes, of one size, or of one element, which `keepdims` keeps."""
    x, sizes = builder.operand("input"), builder.input("split")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    keep = builder.attrs.flag("keepdims")
    parts = builder.split(x, axis, _part_sizes(builder, dims_of(x)[axis], sizes))
    if sizes is None and not keep:
        parts = [builder.squeeze(part, [axis]) for part in parts]
    return [make_list(builder, parts, _sequence_type(element_type(x)))]


def _part_sizes(builder: OnnxLegalizer, dim: Expr, sizes: SSAValue | None) -> list[Expr]:
    if sizes is not None and rank_of(sizes) == 1:
        return sizes_of(builder, sizes, "the sizes of the parts")
    part = Expr.const(1)
    if sizes is not None:
        part = single(builder, sizes_of(builder, sizes, "the size of a part"), "the size of a part")
    if dim.value is None or not part.value:
        builder.refuse(
            f"{dim} elements in parts of {part}",
            "a number of parts that is known when compiling",
            "fix the input shape of the model",
        )
    whole, rest = divmod(dim.value, part.value)
    return [part] * whole + [Expr.const(rest)] * (rest > 0)


@legalizes("ConcatFromSequence")
def legalize_concat_from_sequence(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    elements = elements_of(builder, builder.operand("input_sequence"))
    if not elements:
        builder.refuse("an empty sequence", "at least one tensor")
    new = builder.attrs.flag("new_axis")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(elements[0]) + new)
    if new:
        elements = [builder.unsqueeze(element, [axis]) for element in elements]
    return [elements[0] if len(elements) == 1 else builder.add(ConcatOp(elements, axis))]


@legalizes("Optional")
def legalize_optional(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The value, or nothing of the type that the attribute gives."""
    value, given = builder.input("input"), builder.attrs.raw("type")
    if value is not None:
        return [make_list(builder, [value], OptionalType(value.type))]
    if given is None:
        builder.refuse("neither a value nor a type", "one of them")
    return [make_list(builder, [], OptionalType(given))]


@legalizes("OptionalHasElement")
def legalize_optional_has_element(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A tensor or sequence, allowed from version 18 on, is there; nothing is not."""
    value = builder.input("input")
    has = value is not None
    if value is not None and isinstance(value.type, OptionalType):
        has = bool(elements_of(builder, value))
    return [builder.tensor(np.array(has, np.bool_))]


@legalizes("OptionalGetElement")
def legalize_optional_get_element(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    value = builder.operand("input")
    if not isinstance(value.type, OptionalType):
        return [value]
    elements = elements_of(builder, value)
    if not elements:
        builder.refuse("an optional without a value", "a value")
    return [elements[0]]


@legalizes(
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "RegexFullMatch",
    "TfIdfVectorizer",
)
def legalize_text(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    builder.refuse("text processing", "tensors of numbers", "do it before the model runs")


@legalizes("ImageDecoder")
def legalize_image_decoder(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    builder.refuse("a compressed image", "a tensor of pixels", "decode it before the model runs")
