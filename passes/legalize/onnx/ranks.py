"""The numbers of dimensions that operators state for their inputs, where handlers go by them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer

_IMAGE = range(3, 1 << 16)
"""[N, C, spatial...]"""

_Ranks = Mapping[str, "int | range"]
"""By formal input."""

_CONVOLUTION: _Ranks = {"X": _IMAGE, "W": _IMAGE, "B": 1}

_RECURRENT: _Ranks = {"X": 3, "W": 3, "R": 3, "B": 2, "sequence_lens": 1, "initial_h": 3}

_RANKS: Mapping[str, _Ranks] = MappingProxyType(
    {
        "AffineGrid": {"theta": 3, "size": 1},
        "Col2Im": {"input": 3, "image_shape": 1, "block_shape": 1},
        "Conv": _CONVOLUTION,
        "ConvTranspose": _CONVOLUTION,
        "DepthToSpace": {"input": 4},
        "GridSample": {"X": _IMAGE, "grid": _IMAGE},
        "GroupNormalization": {"X": range(2, 1 << 16), "scale": 1, "bias": 1},
        "GRU": _RECURRENT,
        "LRN": {"X": range(2, 1 << 16)},
        "LSTM": {**_RECURRENT, "initial_c": 3, "P": 2},
        "MaxRoiPool": {"X": 4, "rois": 2},
        "NonMaxSuppression": {"boxes": 3, "scores": 3},
        "ReverseSequence": {"input": range(2, 1 << 16), "sequence_lens": 1},
        "RNN": _RECURRENT,
        "RoiAlign": {"X": 4, "rois": 2, "batch_indices": 1},
        "SpaceToDepth": {"input": 4},
    }
)
"""By operator."""


def require_ranks(builder: OnnxLegalizer) -> None:
    """Refuse a node if an input has another number of dimensions than the operator takes."""
    for name, ranks in _RANKS.get(builder.op.op_type, {}).items():
        if not any(formal.name == name for formal in builder.op.schema.inputs):
            continue
        if (value := builder.input(name)) is not None:
            builder.require_rank(value, ranks, name)
