"""Operators from outside as ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import TYPES, CoreOp, require
from lowerdeck.dialects.core.operators import (
    KINDS,
    OPERATORS,
    CustomOperator,
    Parameters,
    from_attributes,
    to_attributes,
)
from lowerdeck.dialects.core.types import Tensor, tensor, ui8
from lowerdeck.dialects.dims import Expr


@irdl_op_definition
class CustomOp(CoreOp):
    """
    An operator that a plugin defines: it gives the types of the results and their values. Where
    nobody knows the operator, the op is what its text says, and can be neither run nor compiled.

    Operands that are absent are the last ones. If the C function of the operator needs workspace,
    the last result is that memory, in bytes; nothing reads it.

    Constraints:

    - (C1) a known operator has this number of operands.
    - (C2) `parameters` gives each attribute of a known operator a value of its type, and no other.
    - (C3) a known operator infers its results from operands of these types.

    Example:

    ```mlir
    %y = core.custom "com.acme.SoftClip" %x {alpha = 0.5 : f64}
        : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "core.custom"
    operator = prop_def(StringAttr)
    parameters = prop_def(DictionaryAttr)
    arguments = var_operand_def()
    outputs = var_result_def()
    traits = traits_def(Pure())
    assembly_format = f"$operator operands $parameters {TYPES}"

    def __init__(
        self, operator: CustomOperator, arguments: Sequence[SSAValue], parameters: Parameters
    ):
        function = operator.c_function
        has_workspace = function is not None and function.workspace is not None
        super().__init__(
            [arguments],
            {"operator": StringAttr(operator.name), "parameters": to_attributes(parameters)},
            results=len(operator.outputs) + has_workspace,
            variadic=True,
        )

    @property
    def definition(self) -> CustomOperator | None:
        """The operator, if a plugin has defined it."""
        return OPERATORS.get(self.operator.data)

    @property
    def known(self) -> CustomOperator:
        """The operator; VerifyException if no plugin has defined it."""
        if (found := self.definition) is None:
            raise VerifyException(
                f"the operator {self.operator.data} is not known; load the plugin that defines it"
            )
        return found

    @property
    def values(self) -> dict[str, Any]:
        """The parameters as Python has them."""
        return from_attributes(self.parameters)

    @property
    def is_inferable(self) -> bool:
        return self.definition is not None and super().is_inferable

    def infer(self) -> Sequence[Attribute]:
        operator, types = self.known, [cast(Tensor, value.type) for value in self.operands]
        least, most = len(operator.inputs), len(operator.inputs) + len(operator.optional_inputs)
        require(
            least <= len(types) <= most,
            f"{operator.name} has {least} to {most} operands, not {len(types)}",
            "C1",
        )
        values = self._checked_values(operator)
        try:
            found = list(operator.infer(types, values))
            function = operator.c_function
            if function is not None and function.workspace is not None:
                found.append(tensor(ui8, [Expr.of(function.workspace(types, values))]))
        except Exception as error:  # whatever the code of a plugin raises
            raise VerifyException(f"{operator.name}: {error} (C3)") from error
        require(
            len(found) == len(self.results),
            lambda: f"{operator.name} infers {len(found)} results, not {len(self.results)}",
            "C3",
        )
        return found

    def _checked_values(self, operator: CustomOperator) -> dict[str, Any]:
        try:
            values = self.values
        except ValueError as error:
            raise VerifyException(f"{operator.name}: {error} (C2)") from None
        names, expected = sorted(values), sorted(operator.attributes)
        require(names == expected, f"{operator.name} has {expected}, not {names}", "C2")
        for name, value in values.items():
            wanted = operator.type_of(name)
            found = _type_of(value, wanted)
            text = (
                f"parameter '{name}' of {operator.name} is {value!r}, which is no {KINDS[wanted]}"
            )
            require(found == wanted, text, "C2")
        return values


def _type_of(value: Any, wanted: object) -> object:
    """That of a parameter; an empty list is one of the type that is wanted."""
    if not isinstance(value, list):
        return cast(object, type(value))
    items = cast("list[Any]", value)
    return list[type(items[0])] if items else wanted
