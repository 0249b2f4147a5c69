"""What TensorFlow's ops that make arrays say of them."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.types import rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.ops import Tf1Op, known_class
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.arrays import MAKERS, Dims, Maker
from lowerdeck.passes.legalize.legalizer import refuse

TensorArrayOp = known_class("TensorArrayV3")
EmptyListOp = known_class("EmptyTensorList")
ReserveListOp = known_class("TensorListReserve")
CREATORS = (TensorArrayOp, EmptyListOp, ReserveListOp)


def _initial_size(builder: CoreBuilder, op: Operation) -> Expr:
    assert isinstance(op, Tf1Op)
    if isinstance(op, EmptyListOp):
        return Expr.const(0)
    found = builder.exprs(
        op.input_list("size" if isinstance(op, TensorArrayOp) else "num_elements")[0]
    )
    if found is None or len(found) != 1:
        refuse("an array whose size is no scalar")
    if found[0].value is not None and found[0].value < 0:
        refuse(f"an array of {found[0]} elements", "no negative number")
    return found[0]


def _element_of(op: Operation) -> Attribute:
    assert isinstance(op, Tf1Op)
    dtype = cast(str, op.attr("dtype" if isinstance(op, TensorArrayOp) else "element_dtype"))
    if (element := ELEMENTS.get(dtype)) is None:
        refuse(f"elements of type {dtype}", "tensors")
    return element


def _stated_dims(builder: CoreBuilder, op: Operation) -> Dims:
    assert isinstance(op, Tf1Op)
    if not isinstance(op, TensorArrayOp):
        return dims_in(builder, op.input_list("element_shape")[0])
    shape = cast("tuple[int, ...] | None", op.attr("element_shape"))
    return None if shape is None else [None if dim < 0 else Expr.const(dim) for dim in shape]


def dims_in(builder: CoreBuilder, shape: SSAValue) -> Dims:
    """The shape of elements in an operand: -1 leaves open a dimension, or as a scalar all."""
    found = builder.exprs(shape) if rank_of(shape) == 1 else None
    return None if found is None else [None if dim == -1 else dim for dim in found]


MAKERS.update(dict.fromkeys(CREATORS, Maker(_initial_size, _element_of, _stated_dims)))
