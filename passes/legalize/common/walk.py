"""The walk of a legalization whose functions hold ops of a framework, `core.if` and `core.loop`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.ranks import Spans
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.control_flow import legalize_if, legalize_loop
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import Legalizer, RefusalError
from lowerdeck.passes.legalize.table import HandlerTable
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.walk import FunctionWalk

Results: TypeAlias = "SSAValue | TensorValue | Sequence[SSAValue | TensorValue | None]"
"""The only value, or one a result of the op, None for results that must not be used."""


class StructuredWalk(FunctionWalk):
    """The legalization of one function with structured control flow."""

    kind: ClassVar[type[Operation]]
    """The class of the framework's ops."""

    @abstractmethod
    def legalize(self, op: Operation) -> None:
        """Replace one of the framework's ops, as `convert`."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, (self.kind, IfOp, LoopOp))

    def convert(self, op: Operation) -> None:
        if isinstance(op, IfOp):
            legalize_if(op, self)
        elif isinstance(op, LoopOp):
            legalize_loop(op, self)
        else:
            self.legalize(op)

    @classmethod
    def run_on(cls, module: ModuleOp) -> None:
        """Legalize all functions that hold ops of the framework."""
        for function in list(module.walk()):
            if isinstance(function, func.FuncOp) and cls._is_needed(function):
                cls(function).run()

    @classmethod
    def infer(cls, function: func.FuncOp) -> None:
        """Set the types in a function of the framework's ops, as far as they can be found."""
        annotate(function, cls)

    @classmethod
    def _is_needed(cls, function: func.FuncOp) -> bool:
        return any(isinstance(op, cls.kind) for op in function.walk())


def listed(found: Results) -> list[SSAValue | None]:
    """A value a result of an op."""
    values = [found] if isinstance(found, SSAValue | TensorValue) else found
    return [value.value if isinstance(value, TensorValue) else value for value in values]


class HandlerWalk(StructuredWalk):
    """
    A walk in which a table has a handler for each operator.

    A handler sees one op whose operands are `core` values with exact types already, builds `core`
    ops before it, and returns a value for each of its results, or the only one:

        @legalizes("relu")
        def legalize_relu(builder: MxnetLegalizer) -> Results:
            return builder.value().maximum(0)
    """

    table: ClassVar[HandlerTable[Callable[[Any], Results]]]
    next_step: ClassVar[Callable[[str], str]]
    """What helps where an operator is not compiled."""

    @abstractmethod
    def builder(self, op: Any) -> Legalizer:
        """What the handler of an op works with."""

    def name_of(self, op: Any) -> str:
        """The name of an op in the table."""
        return op.op_type

    def before(self, op: Any, builder: Any) -> None:
        """Refuse what a handler is not called for."""

    def call(self, handler: Callable[[Any], Results], builder: Any) -> Results:
        """What a handler makes of an op."""
        return handler(builder)

    def after(self, op: Any, builder: Any, values: Sequence[SSAValue | None]) -> None:
        """Refuse an op for what its handler has found or left."""

    def legalize(self, op: Operation) -> None:
        name = self.name_of(op)
        handler = self.table.get(name)
        if handler is None:
            raise RefusalError(f"no legalization for {name}; {type(self).next_step(name)}")
        builder = self.builder(op)
        self.before(op, builder)

        def results() -> Sequence[SSAValue | None]:
            values = listed(self.call(handler, builder))
            self.after(op, builder, values)
            return values

        self.handle(op, builder, results)


class TableWalk(HandlerWalk):
    """A walk over operators with named arguments, whose results have the types that files state."""

    ranks: ClassVar[Spans] = MappingProxyType({})
    """How many dimensions the inputs of operators have, where that is not left open."""

    def before(self, op: Any, builder: ArgumentsLegalizer) -> None:
        builder.require_ranks(self.ranks.get(self.name_of(op), {}))

    def after(
        self, op: Any, builder: ArgumentsLegalizer, values: Sequence[SSAValue | None]
    ) -> None:
        for index, value in enumerate(values[: len(op.results)]):
            if value is not None:
                builder.require_element(index, value)
