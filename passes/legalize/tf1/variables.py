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
def legalize_variable(builder: Tf1Legalizer) -> Results:
    """The bytes stay where they are; a handle is the value that it leads to."""
    builder.attrs.ignore(VALUE, "dtype", "allowed_devices", "debug_name")
    value = builder.op.properties.get(VALUE)
    if not isinstance(value, BlobAttr):
        builder.refuse("a variable without a value", "one from a checkpoint", "freeze the graph")
    return builder.insert(ConstantOp(value, variable_type(builder.op)))


@legalizes("ReadVariableOp")
def legalize_read(builder: Tf1Legalizer) -> Results:
    return [builder.operand("resource")]


@legalizes("VariableShape")
def legalize_variable_shape(builder: Tf1Legalizer) -> Results:
    return [integers(builder, dims_of(builder.operand("input")))]


@legalizes("IsVariableInitialized", "VarIsInitializedOp")
def legalize_is_initialized(builder: Tf1Legalizer) -> Results:
    """Always: what has no value is refused."""
    return [builder.scalar(True, builder.result_element())]


@legalizes("ResourceGather")
def legalize_resource_gather(builder: Tf1Legalizer) -> Results:
    """Along the axis that follows the `batch_dims` which the variable and the indices share."""
    x, indices = builder.operand("resource"), builder.operand("indices")
    rank, batch = rank_of(indices), builder.attrs.int("batch_dims")
    batch = batch + rank if batch < 0 else batch
    if not 0 <= batch <= min(rank, rank_of(x) - 1):
        builder.refuse(f"{batch} batch dimensions", f"0 to {min(rank, rank_of(x) - 1)}")
    if batch == 0:
        return [builder.add(GatherOp(x, indices, 0))]
    return [builder.add(GatherNdOp(x, builder.unsqueeze(indices, [rank]), batch))]


@legalizes("ResourceGatherNd")
def legalize_resource_gather_nd(builder: Tf1Legalizer) -> Results:
    return [builder.add(GatherNdOp(builder.operand("resource"), builder.operand("indices")))]
