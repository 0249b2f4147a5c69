"""Functions of a graph's library, and the operators that run them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.graph_regions import HasGraphRegion
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tf1.attributes import CONTROL, fits
from lowerdeck.dialects.tf1.ops import attribute_value
from lowerdeck.dialects.tf1.signatures import Signature


@irdl_op_definition
class FunctionOp(IRDLOperation):
    """
    A FunctionDef: like a `tf1.graph` one region whose ops are in no order, but with arguments.

    One that is used with different values of its attributes is there once for each of them.

    ```mlir
    tf1.function @twice {
    ^bb0(%x : tensor<*xf32>):
      %y = tf1.AddV2 %x, %x {T = #tf1.dtype<float>} : ...
      tf1.return %y : tensor<*xf32>
    }
    ```
    """

    name = "tf1.function"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), HasGraphRegion())
    assembly_format = "$sym_name attr-dict-with-keyword $body"

    def __init__(self, sym_name: str, body: Region):
        super().__init__(properties={"sym_name": StringAttr(sym_name)}, regions=[body])

    @property
    def end(self) -> ReturnOp:
        """The op that says what the function gives."""
        return cast(ReturnOp, self.body.block.last_op)

    def verify_(self) -> None:
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("a function ends with tf1.return")
        if any(argument.type == CONTROL for argument in self.body.block.args):
            raise VerifyException("a function has no control arguments")


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a function: its results, then control tokens of what is run for its effect."""

    name = "tf1.return"
    values = var_operand_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])

    @property
    def data(self) -> tuple[SSAValue, ...]:
        """The results of the function."""
        return tuple(value for value in self.values if value.type != CONTROL)


CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
"""Operators that run a function once."""

WHILES = frozenset({"While", "StatelessWhile", "_While"})
"""Operators that run one function as long as another one says so."""

IFS = frozenset({"If", "StatelessIf", "_If"})
"""Operators that run one of two functions."""

CASES = frozenset({"Case", "StatelessCase"})
"""Operators that run one of several functions: the last one if there is no such number."""

FUNCTIONAL = CALLS | WHILES | IFS | CASES
"""All operators that run functions in a way that is known."""


@record
class Use:
    """A function that a node runs, in a `role`, and the element types that the role asks for."""

    role: str
    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None
    """None for one output of any type, which is tested."""


def uses_of(signature: Signature, attributes: Mapping[str, Attribute]) -> list[Use]:
    """The functions that a node of one of the FUNCTIONAL operators runs."""

    def types(name: str) -> tuple[str, ...]:
        return tuple(attribute_value(signature, attributes, name))

    def use(role: str, outputs: tuple[str, ...] | None, inputs: str = "Tin") -> Use:
        return Use(role, attribute_value(signature, attributes, role), types(inputs), outputs)

    if signature.name in WHILES:
        return [use("cond", None, "T"), use("body", types("T"), "T")]
    if signature.name in IFS:
        return [use(role, types("Tout")) for role in ("then_branch", "else_branch")]
    if signature.name in CALLS:
        return [use("f", types("Tout"))]
    branches = cast(Sequence[str], attribute_value(signature, attributes, "branches"))
    return [
        Use(f"branches[{number}]", branch, types("Tin"), types("Tout"))
        for number, branch in enumerate(branches)
    ]


def use_problem(use: Use, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> str:
    """What is wrong with a use of a function of these types; empty if nothing is."""
    gives = len(outputs) == 1 if use.outputs is None else _fit(outputs, use.outputs)
    if gives and _fit(inputs, use.inputs):
        return ""
    expected = "one value" if use.outputs is None else f"({', '.join(use.outputs)})"
    return (
        f"its {use.role} '{use.function}' takes {_list(inputs)} and gives {_list(outputs)}, "
        f"expected ({', '.join(use.inputs)}) and {expected}"
    )


def _fit(types: Sequence[Attribute], dtypes: Sequence[str]) -> bool:
    return len(types) == len(dtypes) and all(map(fits, types, dtypes))


def _list(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"
