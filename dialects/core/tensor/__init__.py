"""Data movement: ops that only choose where elements come from."""

from __future__ import annotations

from lowerdeck.dialects.core.base import CoreOp, Ints, ints
from lowerdeck.dialects.core.tensor.indexed import (
    CountNonzeroOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    NonzeroOp,
    ScatterElementsOp,
    ScatterNdOp,
    TopKOp,
)
from lowerdeck.dialects.core.tensor.parts import ConcatOp, PadOp, SliceOp, SplitOp
from lowerdeck.dialects.core.tensor.rearrange import (
    BroadcastOp,
    ChannelShuffleOp,
    ReshapeOp,
    TransposeOp,
)

__all__ = [
    "TENSOR",
    "BroadcastOp",
    "ChannelShuffleOp",
    "ConcatOp",
    "CountNonzeroOp",
    "GatherElementsOp",
    "GatherNdOp",
    "GatherOp",
    "Ints",
    "NonzeroOp",
    "PadOp",
    "ReshapeOp",
    "ScatterElementsOp",
    "ScatterNdOp",
    "SliceOp",
    "SplitOp",
    "TopKOp",
    "TransposeOp",
    "ints",
]

TENSOR: tuple[type[CoreOp], ...] = (
    ReshapeOp,
    TransposeOp,
    ChannelShuffleOp,
    BroadcastOp,
    SliceOp,
    PadOp,
    ConcatOp,
    SplitOp,
    GatherOp,
    GatherElementsOp,
    GatherNdOp,
    ScatterElementsOp,
    ScatterNdOp,
    TopKOp,
    CountNonzeroOp,
    NonzeroOp,
)
