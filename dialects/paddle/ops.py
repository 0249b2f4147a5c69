"""The ops of the `paddle` dialect: one class for each operator in `ops.txt`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute
from xdsl.irdl import traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.arguments import ArgumentsOp, Given
from lowerdeck.dialects.paddle.schema import Operator, schemas

_COUNTS, _OLD = "counts", "old"


class PaddleOp(ArgumentsOp):
    """
    An operator; the classes below it are made from the table.

    Properties besides the arguments: `counts` says how many results of the op each result of the
    operator is; `old` is the name of the operator in a ProgramDesc, if it comes from one.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the operator.
    - (C3) `counts` has an entry for each result of the operator, and together as many as the op.

    Example:

    ```mlir
    %r = "paddle.add"(%x, %y)
        <{places = {x = array<i64: 0>, y = array<i64: 1>}, counts = array<i64: 1>}>
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    ```
    """

    declared: ClassVar[Operator]

    def __init__(
        self,
        given: Mapping[str, Given],
        result_types: Sequence[Attribute],
        counts: Sequence[int],
        old: str = "",
    ) -> None:
        super().__init__(given, result_types)
        numbers = DenseArrayBase.from_list(builtin_i64, list(counts))
        self.properties[_COUNTS] = cast(Attribute, numbers)
        if old:
            self.properties[_OLD] = StringAttr(old)

    @property
    def op_type(self) -> str:
        """The operator as the model's file names it."""
        old = self.properties.get(_OLD)
        return old.data if isinstance(old, StringAttr) else super().op_type

    @property
    def is_old(self) -> bool:
        """True for an operator of a ProgramDesc."""
        return _OLD in self.properties

    @property
    def counts(self) -> list[int]:
        """How many results of the op each result of the operator is."""
        return list(cast(Any, self.properties[_COUNTS]).get_values())

    @property
    def named(self) -> set[str]:
        return super().named - {_COUNTS, _OLD}

    def verify_(self) -> None:
        super().verify_()
        found = self.properties.get(_COUNTS)
        counts = self.counts if isinstance(found, DenseArrayBase) else []
        if len(counts) != len(self.declared.results) or sum(counts) != len(self.results):
            raise VerifyException(
                f"{counts} of {len(self.results)} results for "
                f"{len(self.declared.results)} of the operator (C3)"
            )


@cache
def op_class(name: str) -> type[PaddleOp] | None:
    """The class of an operator, or None if the table does not have it."""
    schema = schemas().get(name)
    if schema is None:
        return None
    members: dict[str, object] = {
        "name": f"paddle.{name}",
        "schema": schema,
        "declared": schema,
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"PaddlePaddle's operator {name}.",
    }
    return type(f"{name}_Op", (PaddleOp,), members)


def known_class(name: str) -> type[PaddleOp]:
    """The class of an operator that the table has."""
    cls = op_class(name)
    assert cls is not None
    return cls


def op_classes() -> Iterator[type[PaddleOp]]:
    """The classes of all operators."""
    return map(known_class, schemas())
