"""Building ops from plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from typing_extensions import TypeVar
from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.types import element_type, i1, i64, tensor
from lowerdeck.dialects.tf1.attributes import DTypeAttr, dtype_attr
from lowerdeck.dialects.tf1.ops import Tf1Op, known_class
from lowerdeck.passes.control_flow import kinds, regions
from lowerdeck.passes.control_flow.graph import Node, Value
from lowerdeck.passes.control_flow.loops import Loop
from lowerdeck.passes.control_flow.regions import Choose, Forward, Make, Plan
from lowerdeck.passes.machinery.provenance import derive

Op = TypeVar("Op", bound=Operation)
Values = Mapping[Value, SSAValue]


class Emitter:
    """Executes plans; `arguments` are the values of Placeholders."""

    def __init__(self, loops: Mapping[Node, Loop], arguments: Values) -> None:
        self._loops = loops
        self._arguments = arguments

    def emit(self, plan: Plan, given: Values, block: Block) -> list[SSAValue]:
        """The outputs of a plan, computed at the end of `block` from the leaves in `given`."""
        values = {**self._arguments, **given}
        self._emit_region(plan.region, values, block)
        return [values[output] for output in plan.outputs]

    def _emit_region(
        self, region: regions.Region, values: dict[Value, SSAValue], block: Block
    ) -> None:
        for step in region.steps:
            match step:
                case Make():
                    self._emit_node(step, values, block)
                case Forward():
                    values[Value(step.phi, 0)] = values[step.value]
                case Choose():
                    self._emit_choice(step, values, block)

    def _emit_node(self, step: Make, values: dict[Value, SSAValue], block: Block) -> None:
        node, inputs = step.node, [values[value] for value in step.inputs]
        match node.kind:
            case kinds.RaisedLoop():
                results = self._emit_loop(node, inputs, block)
            case kinds.Number(value):
                results = [_add(block, _number(value), node).results[0]]
            case kinds.Truth(holds):
                truth = ConstantOp.of(np.array(holds))
                results = [_add(block, truth, node).results[0]]
            case kinds.Anything(output):
                anything = PoisonOp(node.value(output).type)
                results = [_add(block, anything, node).results[0]]
            case kinds.Test(wanted):
                number = _add(block, _number(wanted), node).results[0]
                results = [_add(block, _equal(inputs[0], number), node).results[0]]
            case kinds.Bool():
                results = [_truth(inputs[0], block, node)]
            case _:
                results = _add(block, _without_control(node, inputs), node).results
        values.update((Value(node, index), result) for index, result in enumerate(results))

    def _emit_choice(self, step: Choose, values: dict[Value, SSAValue], block: Block) -> None:
        branches: list[Region] = []
        for region, outputs in ((step.yes, step.yes_values), (step.no, step.no_values)):
            inner = Block()
            self._emit_region(region, values, inner)
            _add(inner, YieldOp([values[output] for output in outputs]), step.phis[0])
            branches.append(Region(inner))
        types = [
            _common_type(yes.type, no.type)
            for yes, no in zip(*map(_yielded_by, branches), strict=True)
        ]
        op = IfOp(values[step.condition], *branches, result_types=types)
        op.location = derive((phi.op.location for phi in step.phis), step.place)
        block.add_op(op)
        for phi, result in zip(step.phis, op.results, strict=True):
            assert isinstance(phi.kind, kinds.Phi)
            result.name_hint = phi.value(phi.kind.output).name_hint
            values[Value(phi, 0)] = result

    def _emit_loop(self, node: Node, inputs: Sequence[SSAValue], block: Block) -> list[SSAValue]:
        """
        The condition on the initial values, the loop, and what comes after it on the final ones.

        The body ends with the condition on the next values.
        """
        loop = self._loops[node]
        count = len(loop.carried)
        captured = dict(zip(loop.captured, inputs[count:], strict=True))
        first = inputs[:count]
        if not loop.runs:
            return self._emit_after(loop, first, captured, block)

        def given(values: Sequence[SSAValue]) -> Values:
            return {**captured, **dict(zip(loop.carried, values, strict=True))}

        condition = self.emit(loop.condition, given(first), block)
        types = [merged.type for merged in _merges(loop)]
        body = Block(arg_types=[tensor(i64, []), *types])
        arguments = body.args[1:]
        for merged, argument in zip(_merges(loop), arguments, strict=True):
            argument.name_hint = merged.name_hint
        following = self.emit(loop.body, given(arguments), body)
        again = self.emit(loop.condition, given(following), body)
        _add(body, YieldOp([*again, *following]), node)
        op = _add(block, LoopOp(None, condition[0], first, Region(body)), node)
        op.location = derive([op.location], loop.place)
        results = [
            Rewriter.replace_value_with_new_type(result, type_)
            for result, type_ in zip(tuple(op.results), types, strict=True)
        ]
        for merged, result in zip(_merges(loop), results, strict=True):
            result.name_hint = merged.name_hint
        return self._emit_after(loop, results, captured, block)

    def _emit_after(
        self, loop: Loop, final: Sequence[SSAValue], captured: Values, block: Block
    ) -> list[SSAValue]:
        given = {**captured, **dict(zip(loop.carried, final, strict=True))}
        return self.emit(loop.after, given, block)


def _merges(loop: Loop) -> list[SSAValue]:
    """The results of the graph's Merges that stand for the carried values."""
    return [value.node.value(value.output) for value in loop.carried]


def _add(block: Block, op: Op, node: Node) -> Op:
    op.location = node.op.location
    block.add_op(op)
    return op


def _number(number: int) -> ConstantOp:
    return ConstantOp.of(np.array(number, np.int32))


def _equal(index: SSAValue, number: SSAValue) -> Tf1Op:
    return known_class("Equal")([index, number], {"T": DTypeAttr("int32")})


def _truth(value: SSAValue, block: Block, node: Node) -> SSAValue:
    """Whether a value counts as true: a scalar Boolean is returned unchanged."""
    if value.type == tensor(i1, []):
        return value
    to_bool = known_class("ToBool")([value], {"T": dtype_attr(value)})
    return _add(block, to_bool, node).results[0]


def _without_control(node: Node, inputs: Sequence[SSAValue]) -> Tf1Op:
    """The op of a node with other inputs and without control edges."""
    op = node.op
    assert isinstance(op, Tf1Op)
    cls = known_class("Identity") if op.op_type == "RefIdentity" else type(op)
    types = [result.type for result in op.outputs]
    new = cls(inputs, op.properties, result_types=types)
    new.attributes = dict(op.attributes)
    for result, old in zip(new.results, op.results, strict=False):
        result.name_hint = old.name_hint
    return new


def _yielded_by(region: Region) -> Sequence[SSAValue]:
    last = region.block.last_op
    assert last is not None
    return last.operands


def _common_type(one: Attribute, other: Attribute) -> Attribute:
    return one if one == other else UnrankedTensorType(element_type(one))
