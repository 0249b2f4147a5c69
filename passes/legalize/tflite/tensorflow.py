"""
Operators that are those of TensorFlow, under another name: what moves elements, and what computes
with floats and plain integers. Quantized integers of one scale move the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, element_type, i32, i64, is_float, rank_of, ui8
from lowerdeck.passes.legalize.common.requantize import away, looked_up
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes

Attributes = Callable[[TfliteLegalizer], Mapping[str, Any]]


def _none(builder: TfliteLegalizer) -> Mapping[str, Any]:
    return {}


# Movement: a name of TensorFlow, and attributes

_MOVES: Mapping[str, tuple[str, Attributes]] = {
    "TRANSPOSE": ("Transpose", _none),
    "SLICE": ("Slice", _none),
    "TILE": ("Tile", _none),
    "REVERSE_V2": ("ReverseV2", _none),
    "GATHER_ND": ("GatherNd", _none),
    "BATCH_TO_SPACE_ND": ("BatchToSpaceND", _none),
    "BROADCAST_TO": ("BroadcastTo", _none),
    "EXPAND_DIMS": ("ExpandDims", _none),
    "DENSIFY": ("Identity", _none),
    "PADV2": ("PadV2", _none),
    "SPACE_TO_DEPTH": ("SpaceToDepth", lambda b: {"block_size": b.option("block_size")}),
    "DEPTH_TO_SPACE": ("DepthToSpace", lambda b: {"block_size": b.option("block_size")}),
    "SQUEEZE": ("Squeeze", lambda b: {"squeeze_dims": b.option("squeeze_dims") or []}),
    "MIRROR_PAD": ("MirrorPad", lambda b: {"mode": b.option("mode") or "REFLECT"}),
    "REVERSE_SEQUENCE": (
        "ReverseSequence",
        lambda b: {"seq_dim": b.option("seq_dim"), "batch_dim": b.option("batch_dim")},
    ),
}


_EQUAL = {"BATCH_TO_SPACE_ND": (0,), "EXPAND_DIMS": (0,), "PADV2": (2,)}
"""Inputs that the kernels want to have the scale of the result."""


@legalizes(*_MOVES)
def legalize_move(builder: TfliteLegalizer) -> Results:
    """All inputs in order; integers as they are stored."""
    name, attributes = _MOVES[builder.op_type]
    builder.require_equal_scales(*_EQUAL.get(builder.op_type, ()))
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    return applied(builder, name, *operands, **attributes(builder))


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


@legalizes("SPLIT")
def legalize_split(builder: TfliteLegalizer) -> Results:
    """Equal parts; the axis comes first."""
    count = len(builder.op.results)
    return applied(builder, "Split", builder.input(0), builder.input(1), num_split=count)


@legalizes("SPLIT_V")
def legalize_split_sizes(builder: TfliteLegalizer) -> Results:
    """Parts of given sizes."""
    count = len(builder.op.results)
    x, sizes, axis = (builder.input(k) for k in range(3))
    return applied(builder, "SplitV", x, sizes, axis, num_split=count)


@legalizes("PACK")
def legalize_pack(builder: TfliteLegalizer) -> Results:
    """Tensors of one shape along a new axis."""
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    builder.require_equal_scales(*range(len(operands)))
    return applied(builder, "Pack", operands, axis=builder.option("axis"))


@legalizes("UNPACK")
def legalize_unpack(builder: TfliteLegalizer) -> Results:
    """The parts at each position of an axis."""
    count = len(builder.op.results)
    return applied(builder, "Unpack", builder.input(0), num=count, axis=builder.option("axis"))


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


@legalizes("SELECT", "SELECT_V2")
def legalize_select(builder: TfliteLegalizer) -> Results:
    """A vector as condition of SELECT picks rows; SELECT_V2 broadcasts."""
    name = "Select" if builder.op_type == "SELECT" else "SelectV2"
    return applied(builder, name, *(builder.input(k) for k in range(3)))


@legalizes("DYNAMIC_UPDATE_SLICE")
def legalize_update_slice(builder: TfliteLegalizer) -> Results:
    """The update replaces a part that begins where it fits, nearest to the given place."""
    x, update, start = builder.value(0), builder.value(1), builder.value(2).cast(i64)
    builder.require_rank(update.value, len(x.dims), "update")
    builder.require_rank(start.value, 1, "start")
    places = start.maximum(0)
    firsts = [
        places.pick(0, axis).minimum(TensorValue.dim(builder, dim - size))
        for axis, (dim, size) in enumerate(zip(x.dims, update.dims, strict=True))
    ]
    return [updated(builder, x, update, firsts)]


def updated(
    builder: TfliteLegalizer,
    x: TensorValue,
    update: TensorValue,
    firsts: Sequence[TensorValue],
) -> SSAValue:
    """`x` with an update in place of the part that begins at given places, i64 scalars."""
    from lowerdeck.dialects.core.tensor import ScatterNdOp

    rank = len(x.dims)
    if not rank:
        return update.value
    index: list[TensorValue] = []
    for axis, (first, size) in enumerate(zip(firsts, update.dims, strict=True)):
        here = first + TensorValue.iota(builder, size).column(rank, axis)
        index.append(here.broadcast(update.dims).reshape([*update.dims, 1]))
    return builder.add(ScatterNdOp(x.value, concat(index, rank).value, update.value))


# Shapes and sequences


@legalizes("SHAPE")
def legalize_shape(builder: TfliteLegalizer) -> Results:
    """The dimensions as integers of the result's type."""
    builder.ignore("out_type")
    return applied(builder, "Shape", builder.input(0), out_type=builder.element())


@legalizes("RANK")
def legalize_rank(builder: TfliteLegalizer) -> Results:
    """The number of dimensions."""
    return [builder.tensor(np.array(rank_of(builder.input(0)), np.int32))]


@legalizes("FILL", "RANGE", "BROADCAST_ARGS", "ZEROS_LIKE")
def legalize_made(builder: TfliteLegalizer) -> Results:
    """Tensors that are made of sizes and numbers."""
    names = {
        "FILL": "Fill",
        "RANGE": "Range",
        "BROADCAST_ARGS": "BroadcastArgs",
        "ZEROS_LIKE": "ZerosLike",
    }
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    return applied(builder, names[builder.op_type], *operands)


@legalizes("ONE_HOT")
def legalize_one_hot(builder: TfliteLegalizer) -> Results:
    """Where the index along a new axis is that of the element, the one value, else the other."""
    indices, depth, on, off = (builder.input(k) for k in range(4))
    depth = builder.cast(depth, i32)
    return applied(builder, "OneHot", indices, depth, on, off, axis=builder.option("axis"))


@legalizes("WHERE")
def legalize_where(builder: TfliteLegalizer) -> Results:
    """The indices of what is not zero."""
    return applied(builder, "Where", builder.input(0))


@legalizes("UNIQUE")
def legalize_unique(builder: TfliteLegalizer) -> Results:
    """Distinct elements in the order of their appearance, and which of them each element is."""
    builder.ignore("idx_out_type")
    return applied(builder, "Unique", builder.input(0), out_idx=builder.element(1))


@legalizes("TOPK_V2")
def legalize_top_k(builder: TfliteLegalizer) -> Results:
    """The largest elements of the last dimension, and where they are."""
    x, k = builder.input(0), builder.cast(builder.input(1), i32)
    return applied(builder, "TopKV2", x, k, index_type=builder.element(1))


@legalizes("ARG_MAX", "ARG_MIN")
def legalize_arg_extremum(builder: TfliteLegalizer) -> Results:
    """The first place of the extremum along an axis."""
    builder.ignore("output_type")
    name = "ArgMax" if builder.op_type == "ARG_MAX" else "ArgMin"
    axis = builder.cast(builder.input(1), i32)
    axis = builder.reshape(axis, [])
    return applied(builder, name, builder.input(0), axis, output_type=builder.element())


@legalizes("CUMSUM")
def legalize_cumulative(builder: TfliteLegalizer) -> Results:
    """Running sums."""
    flags = {name: builder.flag(name) for name in ("exclusive", "reverse")}
    axis = builder.reshape(builder.input(1), [])
    return applied(builder, "Cumsum", builder.input(0), axis, **flags)


@legalizes("MATRIX_DIAG")
def legalize_diagonal(builder: TfliteLegalizer) -> Results:
    """Matrices with given diagonals."""
    return applied(builder, "MatrixDiag", builder.input(0))


@legalizes("MATRIX_SET_DIAG")
def legalize_set_diagonal(builder: TfliteLegalizer) -> Results:
    """Matrices with other diagonals."""
    return applied(builder, "MatrixSetDiag", builder.input(0), builder.input(1))


# Scatters and segments

_INDEXED = {
    "SCATTER_ND": "ScatterNd",
    "SEGMENT_SUM": "SegmentSum",
    "UNSORTED_SEGMENT_SUM": "UnsortedSegmentSum",
    "UNSORTED_SEGMENT_PROD": "UnsortedSegmentProd",
    "UNSORTED_SEGMENT_MAX": "UnsortedSegmentMax",
    "UNSORTED_SEGMENT_MIN": "UnsortedSegmentMin",
    "SPARSE_TO_DENSE": "SparseToDense",
    "BUCKETIZE": "Bucketize",
    "BITCAST": "Bitcast",
}


@legalizes("SCATTER_ND", "SEGMENT_SUM", *(name for name in _INDEXED if "UNSORTED" in name))
def legalize_indexed(builder: TfliteLegalizer) -> Results:
    """Sums of the updates, or of the segments, in their order."""
    operands = [builder.input(k) for k in range(len(builder.inputs))]
    return applied(builder, _INDEXED[builder.op_type], *operands)


@legalizes("SPARSE_TO_DENSE")
def legalize_sparse_to_dense(builder: TfliteLegalizer) -> Results:
    """Values at indices, another value elsewhere."""
    operands = [builder.input(k) for k in range(4)]
    return applied(builder, "SparseToDense", *operands)


@legalizes("BUCKETIZE")
def legalize_bucketize(builder: TfliteLegalizer) -> Results:
    """The number of boundaries that are not above each element."""
    boundaries: list[float] = builder.option("boundaries") or []
    return applied(builder, "Bucketize", builder.input(0), boundaries=boundaries)


@legalizes("BITCAST")
def legalize_bitcast(builder: TfliteLegalizer) -> Results:
    """The same bytes as elements of another type."""
    return applied(builder, "Bitcast", builder.input(0), type=builder.element())


# Arithmetic of floats and plain integers; `quantized.py` has that of quantized integers

UNARY = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "LOG": "Log",
    "LOGICAL_NOT": "LogicalNot",
    "NEG": "Neg",
    "ROUND": "Round",
    "RSQRT": "Rsqrt",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "SQUARE": "Square",
    "RELU": "Relu",
    "RELU6": "Relu6",
    "ELU": "Elu",
    "TANH": "Tanh",
    "LOGISTIC": "Sigmoid",
}

BINARY = {
    "ADD": "AddV2",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "MAXIMUM": "Maximum",
    "MINIMUM": "Minimum",
    "FLOOR_DIV": "FloorDiv",
    "FLOOR_MOD": "FloorMod",
    "POW": "Pow",
    "SQUARED_DIFFERENCE": "SquaredDifference",
    "ATAN2": "Atan2",
    "LOGICAL_AND": "LogicalAnd",
    "LOGICAL_OR": "LogicalOr",
    "BITWISE_XOR": "BitwiseXor",
    "RIGHT_SHIFT": "RightShift",
    "EQUAL": "Equal",
    "NOT_EQUAL": "NotEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessEqual",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterEqual",
}


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
    """Elements of another type; of complex numbers the real parts."""
    x = builder.input(0)
    for value in (x, builder.op.results[0]):
        if isinstance(element_type(value), ComplexType):
            builder.refuse("complex numbers", "real ones")
    if x in builder.pairs:
        x = TensorValue(builder, x).pick(rank_of(x) - 1, 0).value
    return applied(builder, "Cast", x, DstT=builder.element())


REDUCTIONS = {
    "SUM": "Sum",
    "MEAN": "Mean",
    "REDUCE_PROD": "Prod",
    "REDUCE_MAX": "Max",
    "REDUCE_MIN": "Min",
    "REDUCE_ANY": "Any",
    "REDUCE_ALL": "All",
}


_EXTREMA = {
    "REDUCE_MAX": float(np.finfo(np.float32).min),
    "REDUCE_MIN": float(np.finfo(np.float32).max),
}
"""What an extremum of floats begins with."""


def plain_reduction(builder: TfliteLegalizer) -> SSAValue:
    """A reduction of floats or plain integers along axes that are an input."""
    keep = builder.flag("keep_dims")
    operands = [builder.input(0), builder.input(1)]
    if builder.op_type in _EXTREMA and is_float(element_type(operands[0])):
        # The kernels keep what is not less, or greater, than a number: one that is none is skipped.
        x = builder.value(0)
        start = TensorValue.number(builder, _EXTREMA[builder.op_type], x.element)
        operands[0] = x.ne(x).where(start, x).value
    return applied(builder, REDUCTIONS[builder.op_type], *operands, keep_dims=keep)[0]


# Images, detection and spectra


@legalizes("LOCAL_RESPONSE_NORMALIZATION")
def legalize_by_neighbors(builder: TfliteLegalizer) -> Results:
    """Each element by the sum of squares of its neighboring channels."""
    builder.require_float()
    attributes = {name: builder.option(name) for name in ("bias", "alpha", "beta")}
    radius = builder.option("radius")
    return applied(builder, "LRN", builder.input(0), depth_radius=radius, **attributes)


@legalizes("NON_MAX_SUPPRESSION_V4")
def legalize_suppression(builder: TfliteLegalizer) -> Results:
    """Indices are padded with zeros."""
    boxes, scores, count, overlap, least = (builder.input(k) for k in range(5))
    return applied(
        builder,
        "NonMaxSuppressionV4",
        boxes,
        scores,
        count,
        overlap,
        least,
        pad_to_max_output_size=True,
    )


@legalizes("NON_MAX_SUPPRESSION_V5")
def legalize_soft_suppression(builder: TfliteLegalizer) -> Results:
    """Scores decay by overlaps; the results are padded with zeros."""
    operands = [builder.input(k) for k in range(6)]
    found = applied(builder, "NonMaxSuppressionV5", *operands, pad_to_max_output_size=True)
    return found


@legalizes("RFFT2D")
def legalize_spectrum(builder: TfliteLegalizer) -> Results:
    """The transform of real matrices, as a last dimension of real and imaginary parts."""
    from lowerdeck.passes.legalize.common.fourier import transformed

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
        from lowerdeck.dialects.core.elementwise import SqrtOp

        total = (value * value).reduce("sum", [axis])
        return [builder.add(SqrtOp(total.value))]
    return [value.pick(axis, 0 if builder.op_type == "REAL" else 1).value]
