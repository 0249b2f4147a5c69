"""
Operators that are those of TensorFlow, under another name: what moves elements, and what computes
with floats and plain integers. Quantized integers of one scale move the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.types import dims_of, element_type, i32, i64, is_float, rank_of, ui8
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.fourier import transformed
from lowerdeck.passes.legalize.common.movement import fitting, updated
from lowerdeck.passes.legalize.common.requantize import away, saturated
from lowerdeck.passes.legalize.common.tables import looked_up
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.torch_tables import overloads

# Operators that another name and its attributes are all of

_TABLE = """
    ARG_MAX: ArgMax 0 1:scalar output_type=type_0
    ARG_MIN: ArgMin 0 1:scalar output_type=type_0
    BATCH_TO_SPACE_ND: BatchToSpaceND all
    BITCAST: Bitcast 0 type=type_0
    BROADCAST_ARGS: BroadcastArgs all
    BROADCAST_TO: BroadcastTo all
    BUCKETIZE: Bucketize 0 boundaries
    CUMSUM: Cumsum 0 1:scalar exclusive reverse
    DENSIFY: Identity all
    DEPTH_TO_SPACE: DepthToSpace all block_size
    EXPAND_DIMS: ExpandDims all
    FILL: Fill all
    GATHER_ND: GatherNd all
    MATRIX_DIAG: MatrixDiag 0
    MATRIX_SET_DIAG: MatrixSetDiag 0 1
    MIRROR_PAD: MirrorPad all mode
    NON_MAX_SUPPRESSION_V4: NonMaxSuppressionV4 0 1 2 3 4 pad_to_max_output_size:True
    NON_MAX_SUPPRESSION_V5: NonMaxSuppressionV5 0 1 2 3 4 5 pad_to_max_output_size:True
    ONE_HOT: OneHot 0 1:i32 2 3 axis
    PACK: Pack list axis
    PADV2: PadV2 all
    RANGE: Range all
    RESIZE_NEAREST_NEIGHBOR: ResizeNearestNeighbor 0 1 align_corners half_pixel_centers
    REVERSE_SEQUENCE: ReverseSequence all seq_dim batch_dim
    REVERSE_V2: ReverseV2 all
    SCATTER_ND: ScatterNd all
    SEGMENT_SUM: SegmentSum all
    SELECT: Select 0 1 2
    SELECT_V2: SelectV2 0 1 2
    SHAPE: Shape 0 out_type=type_0
    SLICE: Slice all
    SPACE_TO_DEPTH: SpaceToDepth all block_size
    SPARSE_TO_DENSE: SparseToDense 0 1 2 3
    SPLIT: Split 0 1 num_split=results
    SPLIT_V: SplitV 0 1 2 num_split=results
    SQUEEZE: Squeeze all squeeze_dims
    TILE: Tile all
    TOPK_V2: TopKV2 0 1:i32 index_type=type_1
    TRANSPOSE: Transpose all
    UNIQUE: Unique 0 out_idx=type_1
    UNPACK: Unpack 0 num=results axis
    UNSORTED_SEGMENT_MAX: UnsortedSegmentMax all
    UNSORTED_SEGMENT_MIN: UnsortedSegmentMin all
    UNSORTED_SEGMENT_PROD: UnsortedSegmentProd all
    UNSORTED_SEGMENT_SUM: UnsortedSegmentSum all
    WHERE: Where 0
    ZEROS_LIKE: ZerosLike all
"""
"""
The operator of TensorFlow; its inputs, by their numbers, in order or as one list; its attributes:
options, the types and the number of the results. Integers that are quantized stay as they are.
"""

_EQUAL = {"BATCH_TO_SPACE_ND": [0], "EXPAND_DIMS": [0], "PACK": None, "PADV2": [2]}
"""Inputs that the kernels want to have the scale of the result; None for all."""

_DEFAULTS: Mapping[str, Any] = {"boundaries": [], "mode": "REFLECT", "squeeze_dims": []}


@legalizes(*overloads(_TABLE))
def legalize_as_tensorflow(builder: TfliteLegalizer) -> Results:
    """One of the table."""
    builder.ignore("output_type", "out_type", "idx_out_type")
    name, row = builder.op_type, overloads(_TABLE)[builder.op_type]
    inputs = [builder.input(k) for k in range(len(builder.inputs))]
    if name in _EQUAL:
        builder.require_equal_scales(*(_EQUAL[name] or range(len(inputs))))
    operands: list[SSAValue | list[SSAValue]] = []
    attributes: dict[str, Any] = {}
    for key, source in row.sources.items():
        if key.isdigit():
            operands.append(_shaped(builder, builder.input(int(key)), source))
        elif key == "all":
            operands += inputs
        elif key == "list":
            operands.append(inputs)
        else:
            attributes[key] = _attribute(builder, source)
    return applied(builder, row.target, *operands, **attributes)


def _shaped(builder: TfliteLegalizer, value: SSAValue, source: str) -> SSAValue:
    """An input as the operator of TensorFlow has it."""
    match source:
        case ":i32":
            return builder.cast(value, i32)
        case ":scalar":
            return builder.reshape(builder.cast(value, i32), [])
        case _:
            return value


def _attribute(builder: TfliteLegalizer, source: str) -> Any:
    """What an attribute is: something plain, the type or the number of results, or an option."""
    match source:
        case ":True":
            return True
        case "results":
            return len(builder.op.results)
        case "type_0" | "type_1":
            return builder.element(int(source[-1]))
        case _:
            return builder.option(source) or _DEFAULTS.get(source, 0)


# Movement


@legalizes("PAD")
def legalize_pad(builder: TfliteLegalizer) -> Results:
    """What is added stands for zero."""
    x = builder.input(0)
    zero = builder.result_quantization().zero if builder.is_quantized() else 0
    return applied(builder, "PadV2", x, builder.input(1), builder.scalar(zero, x))


@legalizes("SPACE_TO_BATCH_ND")
def legalize_space_to_batch(builder: TfliteLegalizer) -> Results:
    """What is added before blocks are taken apart stands for zero."""
    builder.require_equal_scales(0)
    x, blocks, pads = builder.input(0), builder.input(1), builder.value(2)
    zero = builder.quantization(0).zero if builder.is_quantized() else 0
    if zero:
        none = pads * 0
        first = TensorValue(builder, builder.slice_axis(none.value, 0, 0, 1))
        rest = [first] * (rank_of(x) - 1 - (pads.dims[0].value or 0))
        whole = concat([first, pads, *rest], 0)
        x = applied(builder, "PadV2", x, whole.value, builder.scalar(zero, x))[0]
        pads = none
    return applied(builder, "SpaceToBatchND", x, blocks, pads.value)


@legalizes("STRIDED_SLICE")
def legalize_strided_slice(builder: TfliteLegalizer) -> Results:
    """
    With `offset` an end counts from the beginning. An entry that takes one position, and has no
    beginning, takes the first, which it does not in TensorFlow.
    """
    x, begin, end, strides = (builder.input(k) for k in range(4))
    if builder.flag("offset"):
        end = (TensorValue.of(builder, begin) + TensorValue.of(builder, end)).value
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    attributes = {name: int(builder.option(name)) for name in masks}
    if both := attributes["begin_mask"] & attributes["shrink_axis_mask"]:
        given = TensorValue.of(builder, begin)
        size = given.dims[0].value or 0
        firsts = np.array([not both >> k & 1 for k in range(size)])
        begin = (given * TensorValue(builder, firsts).cast(given.element)).value
        attributes["begin_mask"] &= ~both
    if both := attributes["end_mask"] & attributes["shrink_axis_mask"]:
        attributes["end_mask"] &= ~both  # an end means nothing there
    return applied(builder, "StridedSlice", x, begin, end, strides, **attributes)


@legalizes("GATHER")
def legalize_gather(builder: TfliteLegalizer) -> Results:
    """The axis counts the dimensions of the input, and so does the number of batch dimensions."""
    x, indices = builder.input(0), builder.input(1)
    batch = builder.option("batch_dims")
    axis = builder.tensor(np.array(builder.axis(builder.option("axis"), rank_of(x)), np.int32))
    batch = batch % rank_of(indices) if batch < 0 else batch
    if element_type(indices) not in (i32, i64):
        indices = builder.cast(indices, i32)
    return applied(builder, "GatherV2", x, indices, axis, batch_dims=batch)


@legalizes("RESHAPE")
def legalize_reshape(builder: TfliteLegalizer) -> Results:
    """The shape is the second input, or else an option, in which a lone 0 is a scalar."""
    builder.ignore("new_shape")
    x, shape = builder.input(0), builder.optional(1)
    if shape is None:
        given: list[int] = builder.option("new_shape") or []
        given = [] if given == [0] else given
        shape = builder.tensor(np.array(given, np.int32))
    return applied(builder, "Reshape", x, shape)


@legalizes("CONCATENATION")
def legalize_concatenation(builder: TfliteLegalizer) -> Results:
    """Unsigned bytes of another scale than the result's are brought to that, in f32."""
    if builder.activation() != "NONE":
        builder.refuse(f"the activation {builder.activation()}", "none")
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    if builder.is_quantized():
        operands = [_rescaled(builder, k) for k in range(len(operands))]
    axis = builder.axis(builder.option("axis"), rank_of(builder.input(0)))
    return applied(builder, "ConcatV2", operands, builder.tensor(np.array(axis, np.int32)))


def _rescaled(builder: TfliteLegalizer, index: int) -> SSAValue:
    """An input in the scale of the result."""
    x = builder.input(index)
    own, q = builder.quantization(index), builder.result_quantization()
    if (own.scale, own.zero) == (q.scale, q.zero):
        return x
    if element_type(x) != ui8:
        builder.require_equal_scales(index)
    scale = np.float32(own.scale) * (np.float32(1) / np.float32(q.scale))
    bias = np.float32(-own.zero) * scale
    reals = np.arange(256, dtype=np.float32) * scale + bias
    values = np.clip(away(reals.astype(np.float32)) + q.zero, 0, 255)
    return looked_up(builder, x, values.astype(np.uint8))


@legalizes("DYNAMIC_UPDATE_SLICE")
def legalize_update_slice(builder: TfliteLegalizer) -> Results:
    """The update replaces a part that begins where it fits, nearest to the given place."""
    x, update, start = builder.value(0), builder.value(1), builder.value(2).cast(i64)
    builder.require_rank(update.value, len(x.dims), "update")
    builder.require_rank(start.value, 1, "start")
    places = [start.pick(0, axis) for axis in range(len(x.dims))]
    return [updated(builder, x, update, fitting(builder, places, x.dims, update.dims))]


# Shapes and sequences


@legalizes("RANK")
def legalize_rank(builder: TfliteLegalizer) -> Results:
    """The number of dimensions."""
    return [builder.tensor(np.array(rank_of(builder.input(0)), np.int32))]


# Arithmetic of floats and plain integers

UNARY = pairs("""
    ABS=Abs CEIL=Ceil COS=Cos ELU=Elu EXP=Exp FLOOR=Floor LOG=Log LOGICAL_NOT=LogicalNot
    LOGISTIC=Sigmoid NEG=Neg RELU6=Relu6 RELU=Relu ROUND=Round RSQRT=Rsqrt SIGN=Sign SIN=Sin
    SQRT=Sqrt SQUARE=Square TANH=Tanh
""")

BINARY = pairs("""
    ADD=AddV2 ATAN2=Atan2 BITWISE_XOR=BitwiseXor DIV=Div EQUAL=Equal FLOOR_DIV=FloorDiv
    FLOOR_MOD=FloorMod GREATER=Greater GREATER_EQUAL=GreaterEqual LESS=Less LESS_EQUAL=LessEqual
    LOGICAL_AND=LogicalAnd LOGICAL_OR=LogicalOr MAXIMUM=Maximum MINIMUM=Minimum MUL=Mul
    NOT_EQUAL=NotEqual POW=Pow RIGHT_SHIFT=RightShift SQUARED_DIFFERENCE=SquaredDifference SUB=Sub
""")


def plain_unary(builder: TfliteLegalizer) -> SSAValue:
    """A function of floats or plain integers."""
    return applied(builder, UNARY[builder.op_type], builder.input(0))[0]


def plain_binary(builder: TfliteLegalizer) -> SSAValue:
    """A function of two floats or plain integers, without the activation."""
    builder.ignore("pot_scale_int16")
    return applied(builder, BINARY[builder.op_type], builder.input(0), builder.input(1))[0]


@legalizes("ADD_N")
def legalize_add_n(builder: TfliteLegalizer) -> Results:
    """The sum of all inputs, from the first on."""
    total = builder.value(0)
    for index in range(1, len(builder.inputs)):
        total = total + builder.value(index)
    return [total.value]


@legalizes("CAST")
def legalize_cast(builder: TfliteLegalizer) -> Results:
    """Elements of another type, integers within its range; of complex numbers the real parts."""
    x, to = builder.input(0), builder.element()
    for value in (x, builder.op.results[0]):
        if isinstance(element_type(value), ComplexType):
            builder.refuse("complex numbers", "real ones")
    if x in builder.pairs:
        x = TensorValue(builder, x).pick(rank_of(x) - 1, 0).value
    if is_float(element_type(x)) and not is_float(to):
        return [saturated(TensorValue(builder, x), to).value]
    return applied(builder, "Cast", x, DstT=to)


REDUCTIONS = pairs("""
    MEAN=Mean REDUCE_ALL=All REDUCE_ANY=Any REDUCE_MAX=Max REDUCE_MIN=Min REDUCE_PROD=Prod SUM=Sum
""")

_LARGEST = float(np.finfo(np.float32).max)
_EXTREMA = {"REDUCE_MAX": -_LARGEST, "REDUCE_MIN": _LARGEST}
"""What an extremum of floats begins with."""


def reduced_axes(builder: TfliteLegalizer) -> list[int]:
    """The axes of a reduction, each once."""
    given = builder.require_ints(builder.input(1), "axes")
    return sorted({builder.axis(axis, rank_of(builder.input(0))) for axis in given})


def plain_reduction(builder: TfliteLegalizer) -> SSAValue:
    """A reduction of floats or plain integers along axes that are an input."""
    x, axes, keep = builder.value(0), reduced_axes(builder), builder.flag("keep_dims")
    if builder.op_type not in _EXTREMA or not is_float(x.element):
        along = builder.tensor(np.array(axes, np.int32))
        return applied(builder, REDUCTIONS[builder.op_type], x.value, along, keep_dims=keep)[0]
    # The kernels keep what is not less, or greater, than a number: one that is none is skipped.
    start = TensorValue.number(builder, _EXTREMA[builder.op_type], x.element)
    y = x.ne(x).where(start, x).reduce(builder.op_type[-3:].lower(), axes, keep)
    if len(axes) == len(x.dims):  # What is reduced whole begins with the first element.
        first = concat([x.reshape([product(x.dims)]), start.reshape([1])], 0).pick(0, 0)
        y = first.ne(first).where(first, y)
    return y.value


# Images and spectra


@legalizes("LOCAL_RESPONSE_NORMALIZATION")
def legalize_by_neighbors(builder: TfliteLegalizer) -> Results:
    """Each element by the sum of squares of its neighboring channels."""
    builder.require_float()
    attributes = {name: builder.option(name) for name in ("bias", "alpha", "beta")}
    radius = builder.option("radius")
    return applied(builder, "LRN", builder.input(0), depth_radius=radius, **attributes)


@legalizes("RFFT2D")
def legalize_spectrum(builder: TfliteLegalizer) -> Results:
    """The transform of real matrices, as a last dimension of real and imaginary parts."""
    x = builder.input(0)
    builder.require_rank(x, range(2, 1 << 16), "matrices")
    rows, columns = builder.sizes(1, 2, "lengths of the transform")
    y = builder.reshape(x, [*dims_of(x), 1])
    axis = rank_of(x) - 2
    y = transformed(builder, y, axis + 1, columns, inverse=False, onesided=True)
    return [transformed(builder, y, axis, rows, inverse=False, onesided=False)]


@legalizes("REAL", "IMAG", "COMPLEX_ABS")
def legalize_part(builder: TfliteLegalizer) -> Results:
    """A part of complex numbers, or their size."""
    x = builder.input(0)
    if isinstance(element_type(x), ComplexType):
        builder.refuse("an input of complex numbers", "the result of RFFT2D")
    value = TensorValue(builder, x)
    axis = rank_of(x) - 1
    if builder.op_type == "COMPLEX_ABS":
        total = (value * value).reduce("sum", [axis])
        return [builder.add(SqrtOp(total.value))]
    return [value.pick(axis, 0 if builder.op_type == "REAL" else 1).value]
