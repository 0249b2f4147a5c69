"""The ops of the `mindir` dialect: one class for each primitive in `ops.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from lowerdeck.dialects.arguments import ArgumentsOp
from lowerdeck.dialects.mindir.schema import schemas


class MindirOp(ArgumentsOp):
    """
    A primitive of MindSpore; the classes below it are made from the table.

    Operands are the tensors that it is given, in order; numbers, texts and tuples of them are
    properties, whether the file has them as inputs or as attributes of the primitive. `places` has
    for each argument that is a value the operands that it is.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the table.

    Example:

    ```mlir
    %r = "mindir.Softmax"(%x) <{places = {input = array<i64: 0>}, axis = [-1 : i64]}>
        : (tensor<2x3xf32>) -> tensor<*xf32>
    ```
    """


@cache
def op_class(op_type: str) -> type[MindirOp] | None:
    """The class of a primitive, or None if the table does not have it."""
    schema = schemas().get(op_type)
    if schema is None:
        return None
    members: dict[str, object] = {
        "name": f"mindir.{op_type}",
        "schema": schema,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"MindSpore's primitive {op_type}.",
    }
    return type(f"{op_type}Op", (MindirOp,), members)


def op_classes() -> Iterator[type[MindirOp]]:
    """The classes of all primitives."""
    for op_type in schemas():
        cls = op_class(op_type)
        assert cls is not None
        yield cls
