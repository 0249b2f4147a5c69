"""Constants, and the operators that hand their operand on."""

from __future__ import annotations

from typing import cast

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import Tensor
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


@legalizes("Const", "HostConst")
def legalize_const(builder: Tf1Legalizer) -> Results:
    """The bytes stay where they are."""
    builder.attrs.ignore("value")
    value = builder.op.properties["value"]
    if not isinstance(value, BlobAttr):
        builder.refuse("a constant of strings", "numbers", "remove text processing from the graph")
    return builder.insert(ConstantOp(value, cast(Tensor, builder.op.outputs[0].type)))


@legalizes(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "CheckNumerics",
    "CheckNumericsV2",
    "GuaranteeConst",
    "Snapshot",
    "RefIdentity",
    "PlaceholderWithDefault",
)
def legalize_identity(builder: Tf1Legalizer) -> Results:
    """The operand; checks and marks for training have no effect on what is computed."""
    return [builder.operand(0)]


@legalizes("Print")
def legalize_print(builder: Tf1Legalizer) -> Results:
    """The operand; nothing is printed."""
    builder.attrs.ignore("first_n", "summarize")
    return [builder.operand("input")]


@legalizes("IdentityN")
def legalize_identities(builder: Tf1Legalizer) -> Results:
    return builder.op.inputs
