"""Functions of C from outside, as ops of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.base import require
from lowerdeck.dialects.core.operators import from_attributes


@irdl_op_definition
class InvokeOp(IRDLOperation):
    """
    Compute an operator that a plugin defines by its C function, which reads all elements of the
    inputs and writes all of the outputs. One output more than the operator has is its workspace.

    Constraints:

    - (C1) the elements of each buffer lie in C order, without gaps.

    Example:

    ```mlir
    buffer.invoke "com.acme.SoftClip"(%x) into(%y) {alpha = 0.5 : f64}
        : !buffer.ref<[s0, 3] x f32> -> !buffer.ref<[s0, 3] x f32>
    ```
    """

    name = "buffer.invoke"
    operator = prop_def(StringAttr)
    parameters = prop_def(DictionaryAttr)
    inputs = var_operand_def(RefType)
    outputs = var_operand_def(RefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$operator `(` $inputs `)` `into` `(` $outputs `)` $parameters "
        "`:` type($inputs) `->` type($outputs) attr-dict"
    )

    def __init__(
        self,
        operator: StringAttr,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        parameters: DictionaryAttr,
    ):
        super().__init__(
            operands=[inputs, outputs],
            properties={"operator": operator, "parameters": parameters},
        )

    @property
    def values(self) -> dict[str, Any]:
        """The parameters as Python has them."""
        return from_attributes(self.parameters)

    def verify_(self) -> None:
        for value in self.operands:
            type_ = ref_type(value)
            require(type_.is_dense, lambda type_=type_: f"{type_} has gaps", "C1")
