"""
`legalize-pt2`: the walk over a function.

A handler sees one op whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("relu")
    def legalize_relu(builder: Pt2Legalizer) -> Results:
        return [builder.value("self").maximum(0).value]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ComplexType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.pt2.ops import Pt2Op
from lowerdeck.dialects.pt2.schema import expected
from lowerdeck.passes.legalize.common.walk import StructuredWalk, listed
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.pt2.complex import complex_values, is_complex
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import handler_of
from lowerdeck.passes.legalize.pt2.support import next_step


def core_values(op: Pt2Op, builder: Pt2Legalizer) -> list[SSAValue | None]:
    """What takes the place of the results of an op; RefusalError if it has no form in `core`."""
    if is_complex(builder):
        return complex_values(builder)
    handler = handler_of(op.op_type)
    if handler is None:
        raise RefusalError(f"no legalization for {op.op_type}; {next_step(op.op_type)}")
    values = listed(handler(builder))
    if op.is_in_place and values[0] is not None:
        into = op.operands[0]
        value = builder.cast(values[0], element_type(into))
        values[0] = builder.broadcast(value, dims_of(into))
    return values


class Pt2Walk(StructuredWalk):
    """The legalization of one function of pt2 ops."""

    kind = Pt2Op
    returns_pairs: ClassVar[bool] = False
    """Whether the function may return complex numbers, as pairs."""

    def __init__(self, function: func.FuncOp) -> None:
        super().__init__(function)
        self._pairs: set[SSAValue] = set()
        """Complex numbers: the real and the imaginary part are the last dimension."""

    def adopt(self, value: SSAValue, type_: Attribute) -> None:
        if isinstance(element_type(type_), ComplexType) and element_type(value) != element_type(
            type_
        ):
            self._pairs.add(value)

    def is_transient(self, op: Operation) -> bool:
        """Constants of complex numbers, in whose place those of their parts are used."""
        return isinstance(op, ConstantOp) and isinstance(element_type(op.result), ComplexType)

    def convert(self, op: Operation) -> None:
        if isinstance(op, IfOp | LoopOp) and any(
            value in self._pairs or isinstance(element_type(value), ComplexType)
            for value in (*op.operands, *op.results)
        ):
            raise RefusalError(
                "found complex numbers in control flow, expected view_as_real of them"
            )
        super().convert(op)

    def _check_results(self, block: Block) -> None:
        super()._check_results(block)
        last = block.last_op
        for value in () if last is None or self.returns_pairs else last.operands:
            if value in self._pairs or isinstance(element_type(value), ComplexType):
                self.refusals.append(
                    "the model: found an output of complex numbers, expected real ones; "
                    "return view_as_real of it"
                )

    def legalize(self, op: Operation) -> None:
        assert isinstance(op, Pt2Op)
        builder = Pt2Legalizer(op, self.symbols, self._pairs)

        def results() -> Sequence[SSAValue | None]:
            for name, formal in op.schema.arguments.items():
                found = builder.get(name)
                if wanted := expected(builder.name, formal, found):
                    builder.refuse(f"'{name}' is {found}", wanted)
            values = core_values(op, builder)
            for index, value in enumerate(values):
                if value is not None and not op.is_in_place and value not in self._pairs:
                    builder.require_element(index, value)
            return values

        self.handle(op, builder, results)


infer_types = Pt2Walk.infer


class LegalizePt2Pass(ModulePass):
    """
    Convert every pt2 op to `core` ops with exact types.

    Operands of several types become what PyTorch's promotion says, which is compared with the type
    that the file states. What is carried by loops and yielded by branches gets the types that the
    bodies give. All ops that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-pt2"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        Pt2Walk.run_on(op)
