"""
The numbers of dimensions that operators of TensorFlow take, as their shape functions state them,
where handlers go by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

_Ranks = Mapping[str, "int | range"]
"""By formal input."""

_MATRICES = range(2, 1 << 16)
"""One matrix or more."""
_SOME = range(1, 1 << 16)
"""Anything but a scalar."""

_BOXES: _Ranks = {"boxes": 2, "scores": 1}
_IMAGES: _Ranks = {"images": 4, "size": 1}
_PEEPHOLES: _Ranks = {"wci": 1, "wcf": 1, "wco": 1, "b": 1}
_CELL: _Ranks = {"x": 2, "cs_prev": 2, "h_prev": 2, "w": 2, **_PEEPHOLES}
_BLOCK: _Ranks = {**_CELL, "x": 3}
_ROWS: _Ranks = {"value": _SOME}
_SCATTERED: _Ranks = {"indices": 1, "value": _SOME}
_LISTED: _Ranks = {"indices": 1, "tensor": _SOME}
_NORMALIZED: _Ranks = {"scale": 1, "offset": 1, "mean": 1, "variance": 1}
_SOLVED: _Ranks = {"matrix": _MATRICES, "rhs": _SOME}
_SQUARE: _Ranks = {"input": _MATRICES}

RANKS: Mapping[str, _Ranks] = MappingProxyType(
    {
        "AdjustContrastv2": {"images": range(3, 1 << 16)},
        "AudioSpectrogram": {"input": 2},
        "BatchNormWithGlobalNormalization": {"t": 4, "m": 1, "v": 1, "beta": 1, "gamma": 1},
        "BiasAdd": {"value": _MATRICES, "bias": 1},
        "BlockLSTM": _BLOCK,
        "BlockLSTMV2": _BLOCK,
        "Cholesky": _SQUARE,
        "CombinedNonMaxSuppression": {"boxes": 4, "scores": 3},
        "CropAndResize": {"image": 4, "boxes": 2, "box_ind": 1, "crop_size": 1},
        "DenseBincount": {"input": range(1, 3)},
        "DepthwiseConv2dNative": {"filter": 4},
        "Dilation2D": {"input": 4, "filter": 3},
        "FusedBatchNorm": _NORMALIZED,
        "FusedBatchNormV2": _NORMALIZED,
        "FusedBatchNormV3": _NORMALIZED,
        "GRUBlockCell": {"x": 2, "h_prev": 2, "w_ru": 2, "w_c": 2, "b_ru": 1, "b_c": 1},
        "InTopK": {"predictions": 2, "targets": 1},
        "InTopKV2": {"predictions": 2, "targets": 1},
        "ListDiff": {"x": 1, "y": 1},
        "LSTMBlockCell": _CELL,
        "MatrixBandPart": _SQUARE,
        "MatrixDeterminant": _SQUARE,
        "MatrixDiag": {"diagonal": _SOME},
        "MatrixDiagPart": _SQUARE,
        "MatrixDiagPartV2": _SQUARE,
        "MatrixDiagPartV3": _SQUARE,
        "MatrixDiagV2": {"diagonal": _SOME},
        "MatrixDiagV3": {"diagonal": _SOME},
        "MatrixInverse": _SQUARE,
        "MatrixSetDiag": {"input": _MATRICES, "diagonal": _SOME},
        "MatrixSetDiagV2": {"input": _MATRICES, "diagonal": _SOME},
        "MatrixSetDiagV3": {"input": _MATRICES, "diagonal": _SOME},
        "MatrixSolve": _SOLVED,
        "MatrixTriangularSolve": _SOLVED,
        "Mfcc": {"spectrogram": 3},
        "Multinomial": {"logits": 2},
        "NonMaxSuppression": _BOXES,
        "NonMaxSuppressionV2": _BOXES,
        "NonMaxSuppressionV3": _BOXES,
        "NonMaxSuppressionV4": _BOXES,
        "NonMaxSuppressionV5": _BOXES,
        "NonMaxSuppressionWithOverlaps": {"overlaps": 2, "scores": 1},
        "NthElement": {"input": _SOME},
        "ResizeArea": _IMAGES,
        "ResizeBicubic": _IMAGES,
        "ResizeBilinear": _IMAGES,
        "ResizeNearestNeighbor": _IMAGES,
        "ReverseSequence": {"input": _SOME, "seq_lengths": 1},
        "SelfAdjointEigV2": _SQUARE,
        "SoftmaxCrossEntropyWithLogits": {"features": 2, "labels": 2},
        "SparseSoftmaxCrossEntropyWithLogits": {"features": 2, "labels": 1},
        "SparseToDense": {"output_shape": 1},
        "TensorArrayGather": {"indices": 1},
        "TensorArrayGatherV2": {"indices": 1},
        "TensorArrayGatherV3": {"indices": 1},
        "TensorArrayScatter": _SCATTERED,
        "TensorArrayScatterV2": _SCATTERED,
        "TensorArrayScatterV3": _SCATTERED,
        "TensorArraySplit": {"value": _SOME, "lengths": 1},
        "TensorArraySplitV2": {"value": _SOME, "lengths": 1},
        "TensorArraySplitV3": {"value": _SOME, "lengths": 1},
        "TensorArrayUnpack": _ROWS,
        "TensorListFromTensor": {"tensor": _SOME},
        "TensorListGather": {"indices": 1},
        "TensorListScatter": _LISTED,
        "TensorListScatterIntoExistingList": _LISTED,
        "TensorListScatterV2": _LISTED,
        "TensorListSplit": {"tensor": _SOME, "lengths": 1},
        "TopK": {"input": _SOME},
        "TopKV2": {"input": _SOME},
        "TridiagonalMatMul": {
            "superdiag": _MATRICES,
            "maindiag": _MATRICES,
            "subdiag": _MATRICES,
            "rhs": _MATRICES,
        },
        "TridiagonalSolve": {"diagonals": _MATRICES, "rhs": _MATRICES},
        "UnravelIndex": {"dims": 1},
    }
)
"""By operator."""


def require_ranks(lower: Tf1Legalizer) -> None:
    """Refuse a node if an input has another number of dimensions than the operator takes."""
    for name, ranks in RANKS.get(lower.op_type, {}).items():
        lower.require_rank(lower.operand(name), ranks, name)
