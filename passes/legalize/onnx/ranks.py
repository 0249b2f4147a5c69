"""The numbers of dimensions that operators state for their inputs, where handlers go by them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import TensorType

from lowerdeck.dialects.core.types import rank_of
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer

_RECURRENT = {"X": 3, "W": 3, "R": 3, "B": 2, "sequence_lens": 1, "initial_h": 3}

_RANKS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "AffineGrid": {"theta": 3, "size": 1},
        "Col2Im": {"input": 3, "image_shape": 1, "block_shape": 1},
        "DepthToSpace": {"input": 4},
        "GRU": _RECURRENT,
        "LSTM": {**_RECURRENT, "initial_c": 3, "P": 2},
        "MaxRoiPool": {"X": 4, "rois": 2},
        "NonMaxSuppression": {"boxes": 3, "scores": 3},
        "RNN": _RECURRENT,
        "RoiAlign": {"X": 4, "rois": 2, "batch_indices": 1},
        "SpaceToDepth": {"input": 4},
    }
)
"""By operator and formal input."""


def require_ranks(lower: OnnxLegalizer) -> None:
    """Refuse a node if an input has another number of dimensions than the operator takes."""
    for name, rank in _RANKS.get(lower.op.op_type, {}).items():
        if not any(formal.name == name for formal in lower.op.schema.inputs):
            continue
        value = lower.input(name)
        if value is not None and isinstance(value.type, TensorType) and rank_of(value) != rank:
            lower.refuse(f"'{name}' of type {value.type}", f"{rank} dimensions")
