"""
`legalize-tf1`: the walk over a function, and what a handler works with.

A handler sees one node whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("Relu6")
    def legalize_relu6(builder: Tf1Legalizer) -> Results:
        x = TensorValue.of(builder, builder.operand("features"))
        return [x.clip(0, 6).value]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.tf1.advice import next_step
from lowerdeck.dialects.tf1.attributes import RESOURCE, VARIANT, is_complex_value
from lowerdeck.dialects.tf1.ops import Tf1Op, op_class
from lowerdeck.passes.control_flow.places import place_of
from lowerdeck.passes.legalize.common.arrays import element_of
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import PoisonedError, RefusalError
from lowerdeck.passes.legalize.tf1.array_makers import CREATORS
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.random import DRAWS, Drawn, draw, follow, is_followed
from lowerdeck.passes.legalize.walk import FunctionWalk
from lowerdeck.passes.machinery.provenance import describe


class Tf1Walk(FunctionWalk):
    """The legalization of one function of tf1 ops."""

    def __init__(self, function: func.FuncOp) -> None:
        from lowerdeck.passes.legalize.tf1.tensor_array import give_flows
        from lowerdeck.passes.legalize.tf1.tensor_list import give_element_shapes

        super().__init__(function)
        self._drawn: dict[SSAValue, Drawn] = {}
        """Random numbers, and what is computed from them but not known."""
        give_flows(function)
        give_element_shapes(function)
        last = function.body.block.last_op
        for value in () if last is None else last.operands:
            if (refusal := _refused_output(value)) is not None:
                owner = value.owner
                where = "the model" if isinstance(owner, Block) else describe(owner)
                self.refusals.append(f"{where}: {refusal}")

    def place(self, op: Operation) -> str:
        place = place_of(op)
        if place is None:
            return self.where
        how = "repeated if" if isinstance(op, LoopOp) else "decided by"
        return f" in {place.frame}, {how} {place.predicate}"

    def converts(self, op: Operation) -> bool:
        return isinstance(op, Tf1Op | IfOp | LoopOp)

    def is_transient(self, op: Operation) -> bool:
        return isinstance(op, CREATORS) or any(r in self._drawn for r in op.results)

    def convert(self, op: Operation) -> None:
        from lowerdeck.passes.legalize.common.control_flow import legalize_if, legalize_loop

        match op:
            case IfOp():
                legalize_if(op, self)
            case LoopOp():
                legalize_loop(op, self)
            case Tf1Op():
                self._node(op)
            case _:
                raise TypeError(f"{op.name} is not converted")

    def _node(self, op: Tf1Op) -> None:
        from lowerdeck.passes.legalize.tf1.complex import complex_handler_of, is_complex
        from lowerdeck.passes.legalize.tf1.ranks import require_ranks
        from lowerdeck.passes.legalize.tf1.registry import legalizes

        if isinstance(op, CREATORS):
            # It stands for the array while that is used.
            element_of(op)
            return
        if _is_text_for_what_is_refused(op):
            # What reads it says more about what can be done.
            return
        if op.op_type in DRAWS:
            self._draw(op)
            return
        complex_ = is_complex(op)
        handler = complex_handler_of(op.op_type) if complex_ else legalizes.get(op.op_type)
        if handler is None and complex_:
            raise RefusalError(
                f"no legalization for {op.op_type} of complex numbers; compute with their real and "
                "imaginary parts"
            )
        if handler is None:
            raise RefusalError(_no_legalization(op))
        builder = Tf1Legalizer(op, self.symbols, self.companions)
        if any(value in self._drawn for value in op.inputs):
            self._follow(op, builder)
            return

        def results() -> Sequence[SSAValue | None]:
            require_ranks(builder)
            values = handler(builder)
            builder.attrs.require_read()
            return values

        self.handle(op, builder, results)

    def _draw(self, op: Tf1Op) -> None:
        """Let random numbers stand for themselves while what is computed from them may be known."""
        builder = Tf1Legalizer(op, self.symbols, self.companions)
        if op.op_type not in DRAWS or not is_followed(op.results[0]):
            raise RefusalError(_no_legalization(op))
        self._drawn[op.results[0]] = draw(builder)

    def _follow(self, op: Tf1Op, builder: Tf1Legalizer) -> None:
        """Replace what is known although it is computed from random numbers."""
        found = follow(builder, self._drawn)
        if isinstance(found, Drawn) and is_followed(op.results[0]):
            self._drawn[op.results[0]] = found
            return
        if not isinstance(found, SSAValue):
            origin = next(self._drawn[v].origin for v in op.inputs if v in self._drawn)
            text = f"{describe(origin)}{self.place(origin)}: {_no_legalization(origin)}"
            self.refusals.append(text)
            raise PoisonedError
        self.handle(op, builder, lambda: [found])


def _no_legalization(op: Tf1Op) -> str:
    return f"no legalization for {op.op_type}; {next_step(op.op_type, is_known=True)}"


def _refused_output(value: SSAValue) -> str | None:
    """Why a value cannot be an output, or None."""
    if value.type in (RESOURCE, VARIANT):
        return (
            f"found an output of type {value.type}, expected tensors; "
            "make what it holds outputs of their own (--output)"
        )
    if is_complex_value(value):
        return (
            "found an output of complex numbers, expected real ones; "
            "make Real and Imag of it outputs"
        )
    return None


def _is_text_for_what_is_refused(op: Tf1Op) -> bool:
    """True for a constant of strings if no operator that reads it has a legalization."""
    if not isinstance(op.properties.get("value"), ArrayAttr):
        return False
    users = [use.operation for result in op.results for use in result.uses]
    return bool(users) and all(
        isinstance(user, Tf1Op) and not is_legalized(user.op_type) for user in users
    )


class LegalizeTf1Pass(ModulePass):
    """
    Convert every tf1 op to `core` ops with exact types.

    Control flow must have been raised. What is carried by loops and yielded by branches gets the
    types that the bodies give; a dimension that changes becomes a symbol. All nodes that cannot be
    converted are listed in one LegalizationError.
    """

    name = "legalize-tf1"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and holds_nodes(function):
                Tf1Walk(function).run()


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of tf1 ops, as far as they can be found."""
    annotate(function, Tf1Walk)


def is_legalized(op_type: str) -> bool:
    """True if there is a legalization for an operator."""
    from lowerdeck.passes.legalize.tf1.complex import complex_handler_of
    from lowerdeck.passes.legalize.tf1.registry import legalizes
    from lowerdeck.passes.legalize.tf1.tensor_array import WITHOUT_FLOW

    if op_class(op_type) in (*CREATORS, *WITHOUT_FLOW):
        return True
    return legalizes.get(op_type) is not None or complex_handler_of(op_type) is not None


def holds_nodes(function: func.FuncOp) -> bool:
    """True if there is something to legalize in a function."""
    return any(isinstance(op, Tf1Op) for op in function.walk())
