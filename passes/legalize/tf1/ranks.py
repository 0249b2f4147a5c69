"""
The numbers of dimensions that operators of TensorFlow take, as their shape functions and kernels
state them, so that no handler meets others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.tf1.ops import expected_types
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

ONE: Literal["one"] = "one"
"""A scalar, or the vector of one number that old graphs have in its place."""

_Ranks = Mapping[str, "int | range | Literal['one']"]
"""By formal input."""

_MATRICES = range(2, 1 << 16)
"""One matrix or more."""
_SOME = range(1, 1 << 16)
"""Anything but a scalar."""
_THREE_OR_MORE, _FOUR_OR_MORE, _FIVE_OR_MORE = (range(least, 1 << 16) for least in (3, 4, 5))
_FEW = range(2)
"""A scalar or a vector."""

_TABLE: Sequence[tuple[str, _Ranks]] = (
    ("_FusedBatchNormEx", {"x": range(4, 6), "scale": 1, "offset": 1, "mean": 1, "variance": 1}),
    ("_FusedConv2D _FusedDepthwiseConv2dNative", {"input": 4, "filter": 4}),
    ("_FusedMatMul MatMul", {"a": 2, "b": 2}),
    ("AdjustContrastv2", {"images": _THREE_OR_MORE, "contrast_factor": ONE}),
    ("AdjustHue", {"images": _THREE_OR_MORE, "delta": ONE}),
    ("AdjustSaturation", {"images": _THREE_OR_MORE, "scale": ONE}),
    ("ArgMax ArgMin", {"dimension": ONE}),
    ("AudioSpectrogram", {"input": 2}),
    ("AvgPool", {"value": 4}),
    ("AvgPool3D ExtractVolumePatches MaxPool3D", {"input": 5}),
    (
        "BatchCholesky BatchMatrixDeterminant BatchMatrixDiagPart BatchMatrixInverse "
        "Cholesky DiagPart FFT2D IFFT2D LogMatrixDeterminant MatrixDeterminant "
        "MatrixDiagPart MatrixInverse",
        {"input": _MATRICES},
    ),
    ("BatchMatMul BatchMatMulV2 BatchMatMulV3", {"x": _MATRICES, "y": _MATRICES}),
    (
        "BatchMatrixBandPart MatrixBandPart",
        {"input": _MATRICES, "num_lower": ONE, "num_upper": ONE},
    ),
    ("BatchMatrixDiag Diag MatrixDiag", {"diagonal": _SOME}),
    ("BatchMatrixSetDiag MatrixSetDiag", {"input": _MATRICES, "diagonal": _SOME}),
    (
        "BatchMatrixSolve BatchMatrixTriangularSolve MatrixSolve MatrixTriangularSolve",
        {"matrix": _MATRICES, "rhs": _SOME},
    ),
    ("BatchNormWithGlobalNormalization", {"t": 4, "m": 1, "v": 1, "beta": 1, "gamma": 1}),
    ("BatchToSpace", {"input": 4, "crops": 2}),
    ("BatchToSpaceND", {"input": _SOME, "block_shape": 1, "crops": 2}),
    ("BiasAdd BiasAddV1", {"value": _MATRICES, "bias": 1}),
    ("Bincount TensorListResize", {"size": ONE}),
    (
        "BlockLSTM BlockLSTMV2",
        {
            "x": 3,
            "cs_prev": 2,
            "h_prev": 2,
            "w": 2,
            "wci": 1,
            "wcf": 1,
            "wco": 1,
            "b": 1,
            "seq_len_max": ONE,
        },
    ),
    ("BroadcastArgs", {"s0": 1, "s1": 1}),
    ("BroadcastTo Empty Reshape", {"shape": _FEW}),
    (
        "CombinedNonMaxSuppression",
        {
            "boxes": 4,
            "scores": 3,
            "max_output_size_per_class": ONE,
            "max_total_size": ONE,
            "iou_threshold": ONE,
            "score_threshold": ONE,
        },
    ),
    ("Concat ConcatOffset QuantizedConcat", {"concat_dim": ONE}),
    ("ConcatV2 Cumprod Cumsum CumulativeLogsumexp", {"axis": ONE}),
    ("ConjugateTranspose Transpose", {"perm": 1}),
    ("Conv2D", {"input": _FOUR_OR_MORE, "filter": 4}),
    (
        "Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput",
        {"input_sizes": 1, "filter": 4, "out_backprop": 4},
    ),
    ("Conv3D", {"input": _FIVE_OR_MORE, "filter": 5}),
    ("Conv3DBackpropInputV2", {"input_sizes": 1, "filter": 5, "out_backprop": 5}),
    ("CTCGreedyDecoder", {"inputs": 3, "sequence_length": 1}),
    ("CropAndResize", {"image": 4, "boxes": 2, "box_ind": 1, "crop_size": 1}),
    ("Cross", {"a": _SOME, "b": _SOME}),
    ("DataFormatVecPermute", {"x": range(1, 3)}),
    ("DenseBincount", {"input": range(1, 3), "size": ONE}),
    ("DepthToSpace LRN MaxPool MaxPoolWithArgmax SpaceToDepth", {"input": 4}),
    ("DepthwiseConv2dNative", {"filter": 4, "input": 4}),
    ("Dilation2D", {"input": 4, "filter": 3}),
    ("ExpandDims", {"dim": ONE}),
    ("ExtractImagePatches", {"images": 4}),
    ("FakeQuantWithMinMaxVars", {"min": ONE, "max": ONE}),
    ("FakeQuantWithMinMaxVarsPerChannel", {"inputs": _SOME, "min": 1, "max": 1}),
    ("FFT IFFT TopK", {"input": _SOME}),
    ("FFT3D IFFT3D", {"input": _THREE_OR_MORE}),
    ("Fill", {"dims": _FEW, "value": ONE}),
    (
        "FusedBatchNorm FusedBatchNormV2",
        {"scale": 1, "offset": 1, "mean": 1, "variance": 1, "x": 4},
    ),
    ("FusedBatchNormV3", {"scale": 1, "offset": 1, "mean": 1, "variance": 1, "x": range(4, 6)}),
    ("FusedPadConv2D", {"input": 4, "paddings": 2, "filter": 4}),
    ("FusedResizeAndPadConv2D", {"input": 4, "size": 1, "paddings": 2, "filter": 4}),
    ("Gather", {"params": _SOME}),
    ("GatherNd ResourceGatherNd", {"indices": _SOME}),
    ("GatherV2", {"params": _SOME, "axis": ONE}),
    ("GRUBlockCell", {"x": 2, "h_prev": 2, "w_ru": 2, "w_c": 2, "b_ru": 1, "b_c": 1}),
    ("HistogramFixedWidth", {"value_range": 1, "nbins": ONE}),
    ("HSVToRGB RGBToHSV", {"images": _SOME}),
    ("ImageProjectiveTransformV2", {"images": 4, "transforms": 2, "output_shape": 1}),
    (
        "ImageProjectiveTransformV3",
        {"images": 4, "transforms": 2, "output_shape": 1, "fill_value": ONE},
    ),
    ("InplaceAdd InplaceSub InplaceUpdate", {"x": _SOME, "i": _FEW}),
    ("InTopK", {"predictions": 2, "targets": 1}),
    ("InTopKV2", {"predictions": 2, "targets": 1, "k": ONE}),
    ("InvertPermutation Unique UniqueWithCounts", {"x": 1}),
    ("IRFFT RFFT", {"input": _SOME, "fft_length": 1}),
    ("IRFFT2D RFFT2D", {"input": _MATRICES, "fft_length": 1}),
    ("IRFFT3D RFFT3D", {"input": _THREE_OR_MORE, "fft_length": 1}),
    ("LinSpace", {"start": ONE, "stop": ONE, "num": ONE}),
    ("ListDiff", {"x": 1, "y": 1}),
    ("LogSoftmax Softmax", {"logits": _SOME}),
    ("LowerBound UpperBound", {"sorted_inputs": 2, "values": 2}),
    (
        "LSTMBlockCell",
        {"x": 2, "cs_prev": 2, "h_prev": 2, "w": 2, "wci": 1, "wcf": 1, "wco": 1, "b": 1},
    ),
    ("MatrixDiagPartV2 MatrixDiagPartV3", {"input": _MATRICES, "k": _FEW, "padding_value": ONE}),
    (
        "MatrixDiagV2 MatrixDiagV3",
        {"diagonal": _SOME, "k": _FEW, "num_rows": ONE, "num_cols": ONE, "padding_value": ONE},
    ),
    ("MatrixSetDiagV2 MatrixSetDiagV3", {"input": _MATRICES, "diagonal": _SOME, "k": _FEW}),
    ("MaxPoolV2", {"input": 4, "ksize": 1, "strides": 1}),
    ("Mfcc", {"spectrogram": 3, "sample_rate": ONE}),
    ("MirrorPad Pad", {"paddings": 2}),
    ("NonMaxSuppression", {"boxes": 2, "scores": 1, "max_output_size": ONE}),
    (
        "NonMaxSuppressionV2",
        {"boxes": 2, "scores": 1, "max_output_size": ONE, "iou_threshold": ONE},
    ),
    (
        "NonMaxSuppressionV3 NonMaxSuppressionV4",
        {
            "boxes": 2,
            "scores": 1,
            "max_output_size": ONE,
            "iou_threshold": ONE,
            "score_threshold": ONE,
        },
    ),
    (
        "NonMaxSuppressionV5",
        {
            "boxes": 2,
            "scores": 1,
            "max_output_size": ONE,
            "iou_threshold": ONE,
            "score_threshold": ONE,
            "soft_nms_sigma": ONE,
        },
    ),
    (
        "NonMaxSuppressionWithOverlaps",
        {
            "overlaps": 2,
            "scores": 1,
            "max_output_size": ONE,
            "score_threshold": ONE,
            "overlap_threshold": ONE,
        },
    ),
    ("NthElement", {"input": _SOME, "n": ONE}),
    ("OneHot", {"depth": ONE, "on_value": ONE, "off_value": ONE}),
    ("PadV2", {"paddings": 2, "constant_values": ONE}),
    ("QuantizeAndDequantizeV3", {"num_bits": ONE}),
    ("QuantizedAvgPool QuantizedMaxPool", {"input": 4, "min_input": ONE, "max_input": ONE}),
    (
        "QuantizedBiasAdd",
        {
            "input": _SOME,
            "bias": 1,
            "min_input": ONE,
            "max_input": ONE,
            "min_bias": ONE,
            "max_bias": ONE,
        },
    ),
    (
        "QuantizedConv2D",
        {
            "input": 4,
            "filter": 4,
            "min_input": ONE,
            "max_input": ONE,
            "min_filter": ONE,
            "max_filter": ONE,
        },
    ),
    ("QuantizedMatMul", {"a": 2, "b": 2, "min_a": ONE, "max_a": ONE, "min_b": ONE, "max_b": ONE}),
    ("QuantizedMul", {"min_x": ONE, "max_x": ONE, "min_y": ONE, "max_y": ONE}),
    ("QuantizeDownAndShrinkRange RequantizationRange", {"input_min": ONE, "input_max": ONE}),
    ("QuantizedRelu QuantizedRelu6", {"min_features": ONE, "max_features": ONE}),
    ("QuantizedReshape", {"input_min": ONE, "input_max": ONE, "shape": _FEW}),
    ("Range", {"start": ONE, "limit": ONE, "delta": ONE}),
    (
        "Requantize",
        {
            "input_min": ONE,
            "input_max": ONE,
            "requested_output_min": ONE,
            "requested_output_max": ONE,
        },
    ),
    ("ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor", {"images": 4, "size": 1}),
    ("ResourceGather", {"resource": _SOME}),
    ("Reverse UnravelIndex", {"dims": 1}),
    ("ReverseSequence", {"input": _SOME, "seq_lengths": 1}),
    ("ReverseV2", {"axis": 1}),
    ("Roll", {"input": _SOME, "shift": _FEW, "axis": _FEW}),
    ("ScatterNd", {"indices": _SOME, "shape": 1}),
    ("ScatterNdNonAliasingAdd", {"indices": _SOME, "input": _SOME}),
    ("SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum", {"data": _SOME, "segment_ids": 1}),
    ("Slice", {"begin": 1, "size": 1}),
    ("SoftmaxCrossEntropyWithLogits", {"features": 2, "labels": 2}),
    ("SpaceToBatch", {"input": 4, "paddings": 2}),
    ("SpaceToBatchND", {"input": _SOME, "block_shape": 1, "paddings": 2}),
    ("ScaleAndTranslate", {"images": 4, "size": 1, "scale": 1, "translation": 1}),
    (
        "SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul",
        {"sp_indices": 2, "sp_values": 1, "sp_shape": 1},
    ),
    (
        "SparseFillEmptyRows",
        {"indices": 2, "values": 1, "dense_shape": 1, "default_value": ONE},
    ),
    ("SparseMatMul", {"a": 2, "b": 2}),
    (
        "SparseReduceMax SparseReduceSum",
        {"input_indices": 2, "input_values": 1, "input_shape": 1, "reduction_axes": _FEW},
    ),
    ("SparseReorder", {"input_indices": 2, "input_values": 1, "input_shape": 1}),
    ("SparseReshape", {"input_indices": 2, "input_shape": 1, "new_shape": 1}),
    ("SparseTensorDenseAdd", {"a_indices": 2, "a_values": 1, "a_shape": 1}),
    ("SparseTensorDenseMatMul", {"a_indices": 2, "a_values": 1, "a_shape": 1, "b": 2}),
    (
        "SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum",
        {"data": _SOME, "indices": 1, "segment_ids": 1},
    ),
    (
        "SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments "
        "SparseSegmentSumWithNumSegments",
        {"data": _SOME, "indices": 1, "segment_ids": 1, "num_segments": ONE},
    ),
    ("SparseSoftmaxCrossEntropyWithLogits", {"features": 2, "labels": 1}),
    (
        "SparseToDense",
        {
            "output_shape": 1,
            "sparse_indices": range(0, 3),
            "sparse_values": _FEW,
            "default_value": ONE,
        },
    ),
    ("Split", {"split_dim": ONE, "value": _SOME}),
    ("SplitV", {"value": _SOME, "size_splits": 1, "split_dim": ONE}),
    ("StridedSlice TensorStridedSliceUpdate", {"begin": 1, "end": 1, "strides": 1}),
    ("TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorListGather", {"indices": 1}),
    (
        "TensorArrayRead TensorArrayReadV2 TensorArrayReadV3 TensorArrayWrite "
        "TensorArrayWriteV2 TensorArrayWriteV3 TensorListGetItem TensorListSetItem",
        {"index": ONE},
    ),
    (
        "TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3",
        {"indices": 1, "value": _SOME},
    ),
    ("TensorArraySplit TensorArraySplitV2 TensorArraySplitV3", {"value": _SOME, "lengths": 1}),
    ("TensorArrayUnpack Unpack", {"value": _SOME}),
    ("TensorListConcatV2", {"leading_dims": 1}),
    ("TensorListFromTensor", {"tensor": _SOME}),
    ("TensorListScatter TensorListScatterIntoExistingList", {"indices": 1, "tensor": _SOME}),
    ("TensorListScatterV2", {"indices": 1, "tensor": _SOME, "num_elements": ONE}),
    ("TensorListSplit", {"tensor": _SOME, "lengths": 1}),
    (
        "TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate",
        {"tensor": _SOME, "indices": _SOME},
    ),
    ("Tile", {"multiples": 1}),
    ("TopKV2", {"input": _SOME, "k": ONE}),
    (
        "TridiagonalMatMul",
        {"superdiag": _MATRICES, "maindiag": _MATRICES, "subdiag": _MATRICES, "rhs": _MATRICES},
    ),
    ("UniqueV2 UniqueWithCountsV2", {"axis": _FEW}),
    (
        "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum",
        {"num_segments": ONE},
    ),
)

RANKS: Mapping[str, _Ranks] = MappingProxyType(
    {operator: ranks for operators, ranks in _TABLE for operator in operators.split()}
)
"""By operator."""


def require_ranks(builder: Tf1Legalizer) -> None:
    """Refuse a node if an input has another number of dimensions than the operator takes."""
    ranks = RANKS.get(builder.op_type, {})
    for argument in builder.op.signature.inputs:
        if argument.name not in ranks:
            continue
        (type_,) = expected_types(builder.op.signature, builder.op.properties, [argument])[:1] or [
            ""
        ]
        for value in builder.operands(argument.name):
            _require(builder, value, ranks[argument.name], argument.name, "complex" in type_)


def _require(
    builder: Tf1Legalizer,
    value: SSAValue,
    ranks: int | range | Literal["one"],
    name: str,
    is_complex: bool,
) -> None:
    if ranks == ONE:
        builder.require_rank(value, _FEW, name)
        is_tensor = isinstance(value.type, TensorType)
        if is_tensor and (count := product(dims_of(value)).value) not in (None, 1):
            builder.refuse(f"{count} numbers as '{name}'", "one")
        return
    if is_complex:  # with their parts along a dimension more
        ranks = ranks + 1 if isinstance(ranks, int) else range(ranks.start + 1, ranks.stop + 1)
    builder.require_rank(value, ranks, name)
