"""The ops of the `mxnet` dialect: one class for each operator in `ops.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import ClassVar

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from lowerdeck.dialects.arguments import ArgumentsOp
from lowerdeck.dialects.mxnet.schema import Operator, schemas


class MxnetOp(ArgumentsOp):
    """
    An operator of MXNet; the classes below it are made from the table.

    Operands are the node's inputs; `places` has for each argument that is a tensor the operands
    that it is. Other arguments are properties. The op has as many results as are used. Subgraphs of
    control flow are regions, which take nothing from outside and end with `core.yield`.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the table.

    Example:

    ```mlir
    %r = "mxnet.softmax"(%x) <{places = {data = array<i64: 0>}, axis = 1 : i64}>
        : (tensor<2x3xf32>) -> tensor<*xnone>
    ```
    """

    declared: ClassVar[Operator]


@cache
def op_class(target: str) -> type[MxnetOp] | None:
    """The class of an operator by the name that files have, or None if the table has none."""
    schema = schemas().get(target)
    if schema is None:
        return None
    members: dict[str, object] = {
        "name": f"mxnet.{target}",
        "schema": schema,
        "declared": schema,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"MXNet's operator {target}.",
    }
    return type(f"{target}Op", (MxnetOp,), members)


def op_classes() -> Iterator[type[MxnetOp]]:
    """The classes of all operators."""
    for target in schemas():
        cls = op_class(target)
        assert cls is not None
        yield cls
