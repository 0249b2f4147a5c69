"""
Sequences and optionals: lists of tensors that are resolved here, as `core` has none.

While a function is legalized, a sequence is the result of a `ListOp`, and its tensors the operands.
Operators on sequences read and make such ops; at the end none is used any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from lowerdeck.passes.legalize.movement import concat
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


@dataclass(frozen=True)
class Structure:
    """How tensors make up a value: a tensor itself, or a list of structures."""

    type: Attribute
    parts: tuple[Structure, ...] | None = None


def make_list(lower: OnnxLegalizer, elements: Sequence[SSAValue], type: Attribute) -> SSAValue:
    """A sequence or optional of known elements."""
    return lower.insert(ListOp(elements, type))[0]


def elements_of(lower: OnnxLegalizer, value: SSAValue) -> list[SSAValue]:
    """The elements of a sequence or optional; refused if they are not known here."""
    if not isinstance(value.owner, ListOp):
        lower.refuse(
            f"a value of type {value.type}",
            "a sequence whose elements are known when compiling",
            "give the tensors as inputs of their own, or unroll the loop that makes the sequence",
        )
    return list(value.owner.elements)


def flatten(lower: OnnxLegalizer, value: SSAValue) -> tuple[list[SSAValue], Structure]:
    """The tensors in a value, and how they make it up."""
    if not isinstance(value.type, SequenceType | OptionalType):
        return [value], Structure(value.type)
    pairs = [flatten(lower, element) for element in elements_of(lower, value)]
    tensors = [tensor for flat, _ in pairs for tensor in flat]
    return tensors, Structure(value.type, tuple(structure for _, structure in pairs))


def rebuild(lower: OnnxLegalizer, tensors: Iterator[SSAValue], structure: Structure) -> SSAValue:
    """The value that the next tensors make up; the inverse of `flatten`."""
    if structure.parts is None:
        return next(tensors)
    parts = [rebuild(lower, tensors, part) for part in structure.parts]
    return make_list(lower, parts, structure.type)


def erase_unused_lists(block: Block) -> None:
    """Erase the lists of a block that nothing uses, last first."""
    for op in reversed(list(block.ops)):
        if isinstance(op, ListOp) and op.result.first_use is None:
            op.detach()
            op.erase()


def _sequence_type(element: Attribute) -> SequenceType:
    return SequenceType(UnrankedTensorType(element))


@legalizes("SequenceEmpty")
def legalize_sequence_empty(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    number = lower.attrs.opt_int("dtype")
    element = f32 if number is None else lower.element(number)
    return [make_list(lower, [], _sequence_type(element))]


@legalizes("SequenceConstruct")
def legalize_sequence_construct(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    return [make_list(lower, lower.inputs, _sequence_type(element_type(lower.inputs[0])))]


@legalizes("SequenceInsert")
def legalize_sequence_insert(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    sequence, tensor = lower.operand("input_sequence"), lower.operand("tensor")
    elements = elements_of(lower, sequence)
    elements.insert(_position(lower, len(elements), len(elements) + 1), tensor)
    return [make_list(lower, elements, sequence.type)]


@legalizes("SequenceErase")
def legalize_sequence_erase(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    sequence = lower.operand("input_sequence")
    elements = elements_of(lower, sequence)
    del elements[_position(lower, len(elements) - 1, len(elements))]
    return [make_list(lower, elements, sequence.type)]


def _position(lower: OnnxLegalizer, default: int, count: int) -> int:
    """The operand `position`; negative ones count from the end of the sequence as it is."""
    value = lower.input("position")
    if value is None:
        return default
    position = lower.require_int(value, "a position")
    length = len(elements_of(lower, lower.operand("input_sequence")))
    position = position + length if position < 0 else position
    if not 0 <= position < count:
        lower.refuse(f"position {position}", f"0 to {count - 1}")
    return position


@legalizes("SequenceAt")
def legalize_sequence_at(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A position that only data decides needs elements of one shape."""
    elements = elements_of(lower, lower.operand("input_sequence"))
    position = lower.operand("position")
    if lower.ints(position) is not None:
        return [elements[_position(lower, 0, len(elements))]]
    types = {element.type for element in elements}
    if len(types) != 1:
        lower.refuse(
            f"a position that depends on data in {len(elements)} elements of "
            f"{len(types)} different types",
            "elements of one type",
        )
    stacked = concat(lower, [lower.unsqueeze(element, [0]) for element in elements], 0)
    return [lower.add(GatherOp(stacked, lower.reshape(position, []), 0))]


@legalizes("SequenceLength")
def legalize_sequence_length(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    elements = elements_of(lower, lower.operand("input_sequence"))
    return [lower.tensor(np.array(len(elements), np.int64))]


@legalizes("SplitToSequence")
def legalize_split_to_sequence(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Parts of the given sizes, of one size, or of one element, which `keepdims` keeps."""
    x, sizes = lower.operand("input"), lower.input("split")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    keep = lower.attrs.flag("keepdims")
    parts = lower.split(x, axis, _part_sizes(lower, dims_of(x)[axis], sizes))
    if sizes is None and not keep:
        parts = [lower.squeeze(part, [axis]) for part in parts]
    return [make_list(lower, parts, _sequence_type(element_type(x)))]


def _part_sizes(lower: OnnxLegalizer, dim: Expr, sizes: SSAValue | None) -> list[Expr]:
    if sizes is not None and rank_of(sizes) == 1:
        return sizes_of(lower, sizes, "the sizes of the parts")
    part = Expr.const(1)
    if sizes is not None:
        part = single(lower, sizes_of(lower, sizes, "the size of a part"), "the size of a part")
    if dim.value is None or not part.value:
        lower.refuse(
            f"{dim} elements in parts of {part}",
            "a number of parts that is known when compiling",
            "fix the input shape of the model",
        )
    whole, rest = divmod(dim.value, part.value)
    return [part] * whole + [Expr.const(rest)] * (rest > 0)


@legalizes("ConcatFromSequence")
def legalize_concat_from_sequence(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    elements = elements_of(lower, lower.operand("input_sequence"))
    if not elements:
        lower.refuse("an empty sequence", "at least one tensor")
    new = lower.attrs.flag("new_axis")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(elements[0]) + new)
    if new:
        elements = [lower.unsqueeze(element, [axis]) for element in elements]
    return [elements[0] if len(elements) == 1 else lower.add(ConcatOp(elements, axis))]


@legalizes("Optional")
def legalize_optional(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The value, or nothing of the type that the attribute gives."""
    value, given = lower.input("input"), lower.attrs.raw("type")
    if value is not None:
        return [make_list(lower, [value], OptionalType(value.type))]
    if given is None:
        lower.refuse("neither a value nor a type", "one of them")
    return [make_list(lower, [], OptionalType(given))]


@legalizes("OptionalHasElement")
def legalize_optional_has_element(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A tensor or sequence, allowed from version 18 on, is there; nothing is not."""
    value = lower.input("input")
    has = value is not None
    if value is not None and isinstance(value.type, OptionalType):
        has = bool(elements_of(lower, value))
    return [lower.tensor(np.array(has, np.bool_))]


@legalizes("OptionalGetElement")
def legalize_optional_get_element(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    value = lower.operand("input")
    if not isinstance(value.type, OptionalType):
        return [value]
    elements = elements_of(lower, value)
    if not elements:
        lower.refuse("an optional without a value", "a value")
    return [elements[0]]


@legalizes(
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "RegexFullMatch",
    "TfIdfVectorizer",
)
def legalize_text(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    lower.refuse("text processing", "tensors of numbers", "do it before the model runs")


@legalizes("ImageDecoder")
def legalize_image_decoder(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    lower.refuse("a compressed image", "a tensor of pixels", "decode it before the model runs")
