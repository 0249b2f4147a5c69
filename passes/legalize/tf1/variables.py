"""
Variables that never change: they are constants, and so are their handles.

What would change one is refused, since nothing is kept from one run to the next.
"""

from __future__ import annotations

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.tf1.ops import VALUE, VARIABLES, variable_type
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.shape import integers


@legalizes(*sorted(VARIABLES))
def legalize_variable(lower: Tf1Legalizer) -> Results:
    """The bytes stay where they are; a handle is the value that it leads to."""
    lower.attrs.ignore(VALUE, "dtype", "allowed_devices", "debug_name")
    value = lower.op.properties.get(VALUE)
    if not isinstance(value, BlobAttr):
        lower.refuse("a variable without a value", "one from a checkpoint", "freeze the graph")
    return lower.insert(ConstantOp(value, variable_type(lower.op)))


@legalizes("ReadVariableOp")
def legalize_read(lower: Tf1Legalizer) -> Results:
    return [lower.operand("resource")]


@legalizes("VariableShape")
def legalize_variable_shape(lower: Tf1Legalizer) -> Results:
    return [integers(lower, dims_of(lower.operand("input")))]


@legalizes("IsVariableInitialized", "VarIsInitializedOp")
def legalize_is_initialized(lower: Tf1Legalizer) -> Results:
    """Always: what has no value is refused."""
    return [lower.scalar(True, lower.result_element())]


@legalizes("ResourceGather")
def legalize_resource_gather(lower: Tf1Legalizer) -> Results:
    """Along the axis that follows the `batch_dims` which the variable and the indices share."""
    x, indices = lower.operand("resource"), lower.operand("indices")
    rank, batch = rank_of(indices), lower.attrs.int("batch_dims")
    batch = batch + rank if batch < 0 else batch
    if not 0 <= batch <= min(rank, rank_of(x) - 1):
        lower.refuse(f"{batch} batch dimensions", f"0 to {min(rank, rank_of(x) - 1)}")
    if batch == 0:
        return [lower.add(GatherOp(x, indices, 0))]
    return [lower.add(GatherNdOp(x, lower.unsqueeze(indices, [rank]), batch))]


@legalizes("ResourceGatherNd")
def legalize_resource_gather_nd(lower: Tf1Legalizer) -> Results:
    return [lower.add(GatherNdOp(lower.operand("resource"), lower.operand("indices")))]
