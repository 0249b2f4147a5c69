"""
Places of elements in order, where equal ones may be in any order among themselves.

PaddlePaddle's `topk` and `argsort` leave that to an unstable sort of the C++ library. An output
that holds such places is right if the elements there are the expected ones, and no place is there
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.interpret import Interpreter, find_function

if TYPE_CHECKING:
    from models.corpus import Arrays, Case


def order_of(value: SSAValue) -> TopKOp | None:
    """The op whose places a value is, possibly as another type."""
    while isinstance(value.owner, CastOp):
        value = value.owner.input
    owner = value.owner
    return owner if isinstance(owner, TopKOp) and value is owner.indices else None


def are_places(
    source: NDArray[Any], axis: int, found: NDArray[Any], expected: NDArray[Any]
) -> bool:
    """True if both are places of the same elements along an axis, found ones all different."""
    if found.shape != expected.shape or found.dtype.kind not in "iu":
        return False
    inside = bool(((found >= 0) & (found < source.shape[axis])).all())
    if not inside or (np.diff(np.sort(found, axis), axis=axis) == 0).any():
        return False
    one, other = (
        np.take_along_axis(source, places.astype(np.int64), axis) for places in (found, expected)
    )
    return np.array_equal(one, other, equal_nan=source.dtype.kind == "f")


def without_equal_orders(
    case: Case, inputs: Arrays, found: Mapping[str, Any], expected: Arrays
) -> Arrays:
    """The expected outputs, with found places where these are of the same elements."""
    orders = _orders(case, inputs)
    same = {
        name: np.asarray(found[name])
        for name, (source, axis) in orders.items()
        if are_places(source, axis, np.asarray(found[name]), expected[name])
    }
    return {**expected, **same}


def _orders(case: Case, inputs: Arrays) -> Mapping[str, tuple[NDArray[Any], int]]:
    """By output what is put in order, and along which axis."""
    options = CompileOptions(outputs=case.outputs, input_shapes=case.input_shapes)
    module, _ = import_and_lower(str(case.model), "legal", options)
    block = find_function(module, "main").body.block
    arg_names = value_names(find_function(module, "main").arg_attrs, len(block.args))
    given = case.named(inputs, arg_names)
    values: dict[SSAValue, Any] = {
        argument: given[name] for name, argument in zip(arg_names, block.args, strict=True)
    }
    assert block.last_op is not None
    found = {
        name: order
        for name, value in zip(case.outputs, block.last_op.operands, strict=False)
        if (order := order_of(value)) is not None
    }
    sources = {order.input for order in found.values()}

    def observe(op: Operation, results: Sequence[Any]) -> None:
        values.update(
            (result, value)
            for result, value in zip(op.results, results, strict=False)
            if result in sources
        )

    arguments = [given[name] for name in arg_names]
    Interpreter(observe=observe).call(find_function(module, "main"), arguments)
    return {name: (values[order.input], order.axis.data) for name, order in found.items()}
