"""
The ops of the `pt2` dialect: one class for each overload in `ops.txt`.

Operands are the tensors and symbolic numbers that an operator is given, in order; all other
arguments are properties under their names in the schema. An argument that is left out has the
schema's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from lowerdeck.dialects.arguments import ArgumentsOp, Given
from lowerdeck.dialects.pt2.schema import schemas

_IN_PLACE = "in_place"


class Pt2Op(ArgumentsOp):
    """
    An overload of an operator; the classes below it are made from the table.

    Properties besides the arguments: `places` has for each argument that is a value the operands
    that it is, -1 for one of a list that is left out; `in_place` is set where the operator wrote
    into its first operand: the result has the type of that.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the schema.

    Example:

    ```mlir
    %r = "pt2.aten.add.Tensor"(%x, %y) <{places = {self = array<i64: 0>, other = array<i64: 1>}}>
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    ```
    """

    def __init__(
        self, given: Mapping[str, Given], result_types: Sequence[Attribute], in_place: bool = False
    ) -> None:
        super().__init__(given, result_types)
        if in_place:
            self.properties[_IN_PLACE] = UnitAttr()

    @property
    def is_in_place(self) -> bool:
        """True if the operator wrote into its first operand."""
        return _IN_PLACE in self.properties

    @property
    def named(self) -> set[str]:
        return super().named - {_IN_PLACE}


@cache
def op_class(target: str) -> type[Pt2Op] | None:
    """The class of an overload, or None if the table does not have it."""
    schema = schemas().get(target)
    if schema is None:
        return None
    members: dict[str, object] = {
        "name": f"pt2.{target}",
        "schema": schema,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"PyTorch's operator {target}.",
    }
    return type(f"{target.replace('.', '_')}_Op", (Pt2Op,), members)


def op_classes() -> Iterator[type[Pt2Op]]:
    """The classes of all overloads."""
    for target in schemas():
        cls = op_class(target)
        assert cls is not None
        yield cls
