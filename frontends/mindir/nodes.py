"""
The nodes of a graph: what their names stand for, and what they do to parameters.

Effects are ordered by memory: a `Load` reads what the assignments before it left.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.control_flow import IfOp, YieldOp
from lowerdeck.dialects.core.types import element_type, i1
from lowerdeck.dialects.mindir.schema import STRUCTURE
from lowerdeck.dialects.records import record
from lowerdeck.frontends.mindir.emitter import Emitter, is_order
from lowerdeck.frontends.mindir.model import Graph, MindirError, Node
from lowerdeck.frontends.mindir.values import (
    Choice,
    Closure,
    Memory,
    Parameter,
    Pending,
    Value,
    is_alike,
    leaves,
    rebuilt,
)

_IS_VIEW = re.compile(
    "View|Reshape|Transpose|Squeeze|Expand|Broadcast|Flatten|Slice|Split|Chunk|Unstack|Narrow|Select"
    "|Identity|Detach|Contiguous|Diagonal"
)
"""Primitives whose results may show the elements of their operands."""

_COUNTS: Mapping[str, tuple[int, int | None]] = {
    **dict.fromkeys(("TupleGetItem", "list_getitem", "tuple_getitem"), (2, None)),
    **dict.fromkeys(("Depend", "Load", "Assign", "AssignAdd", "AssignSub"), (2, None)),
    **dict.fromkeys(("TensorMove", "StopGradient", "UpdateState", "Partial", "partial"), (1, None)),
    **dict.fromkeys(("Switch", "switch"), (3, 3)),
    "switch_layer": (2, 2),
}
"""The least and the largest number of inputs."""

_ASSIGNING = {"Assign": "", "AssignAdd": "Add", "AssignSub": "Sub"}


@record
class Done:
    """A graph ends with a value, and the memory after it."""

    value: Value
    memory: Memory

    @property
    def carried(self) -> tuple[Value, ...]:
        """What goes out of a region."""
        return (self.value, self.memory)


@dataclass
class Scope:
    """A graph that is added to a block, and what its names stand for."""

    graph: Graph
    block: Block
    memory: Memory
    """What parameters hold when the graph is called."""
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    effects: dict[str, Memory] = field(default_factory=dict[str, Memory])
    """What they hold after a node, by its name, if it changes that."""


class NodeEvaluator(ABC):
    """Gives the names of a graph their values."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.model = emitter.model

    @abstractmethod
    def call(self, callee: Value, arguments: Sequence[Value], scope: Scope) -> Done:
        """The value of a call that is not the end of a graph."""

    # Nodes

    def in_order(self, scope: Scope, output: str) -> Iterator[str]:
        """The nodes of a graph that a result needs, each after those that it needs."""
        nodes = scope.graph.nodes
        seen: set[str] = set()
        waiting: set[str] = set()
        pending: list[tuple[str, bool]] = [(output, False)]
        while pending:
            name, is_ready = pending.pop()
            if is_ready:
                waiting.discard(name)
                yield name
                continue
            if name in waiting:
                raise MindirError(f"node '{name}' needs itself")
            if name in seen or name not in nodes or name in scope.values:
                continue
            seen.add(name)
            waiting.add(name)
            pending.append((name, True))
            node = nodes[name]
            pending += [(used, False) for used in (node.callee, *reversed(node.proto.input))]

    def value_of(self, name: str, scope: Scope) -> Value:
        """What a name stands for in a graph."""
        if name in scope.values:
            return scope.values[name]
        if (constant := self.model.constants.get(name)) is not None:
            return scope.memory if is_order(constant) else self.emitter.constant(constant)
        if name in self.model.graphs:
            return Closure(name)
        if name in self.model.parameters:
            return Parameter(name)
        raise MindirError(f"nothing is named '{name}' in graph '{scope.graph.name}'")

    def inputs_of(self, node: Node, scope: Scope) -> list[Value]:
        return [self.value_of(name, scope) for name in node.proto.input]

    def add_node(self, node: Node, scope: Scope) -> None:
        name = node.output
        if node.is_constant:
            return
        with self.emitter.located(node):
            inputs = self.inputs_of(node, scope)
            primitive = self.model.primitive_name(node)
            if primitive is None:
                done = self.call(self.value_of(node.callee, scope), inputs, scope)
                scope.values[name], scope.effects[name] = done.value, done.memory
            elif primitive in STRUCTURE:
                self._structure(primitive, node, inputs, scope)
            else:
                self._primitive(primitive, node, inputs, scope)

    def _structure(self, primitive: str, node: Node, inputs: Sequence[Value], scope: Scope) -> None:
        name = node.output
        least, most = _COUNTS.get(primitive, (0, None))
        if len(inputs) < least or (most is not None and len(inputs) > most):
            span = f"{least}" if least == most else f"at least {least}"
            raise MindirError(f"found {len(inputs)} inputs of {primitive}, expected {span}")
        match primitive:
            case "MakeTuple" | "MakeList" | "make_list" | "make_tuple":
                scope.values[name] = tuple(inputs)
            case "TupleGetItem" | "list_getitem" | "tuple_getitem":
                scope.values[name] = self._item(*inputs[:2])
                self._hand_on(name, node.proto.input[0], scope)
            case "Depend":
                scope.values[name] = inputs[0]
                if isinstance(inputs[1], Memory):
                    scope.effects[name] = inputs[1]
                else:
                    self._hand_on(name, node.proto.input[1], scope)
            case "TensorMove" | "StopGradient":
                scope.values[name] = inputs[0]
                self._hand_on(name, node.proto.input[0], scope)
            case "UpdateState":
                scope.values[name] = self._updated(inputs, node, scope)
            case "Load":
                memory = inputs[1] if isinstance(inputs[1], Memory) else scope.memory
                scope.values[name] = self.settled(inputs[0], memory)
            case "Print":
                scope.values[name] = None
            case "Partial" | "partial":
                callee, *bound = inputs
                if not isinstance(callee, Closure):
                    raise MindirError("a closure of what is no graph")
                scope.values[name] = Closure(callee.graph, (*callee.bound, *bound))
            case "Switch" | "switch" | "switch_layer":
                scope.values[name] = self._chosen(primitive, inputs, scope)
            case _:
                self._assign(primitive, node, inputs, scope)

    def _hand_on(self, name: str, source: str, scope: Scope) -> None:
        """A node changes what its input changes."""
        if source in scope.effects:
            scope.effects[name] = scope.effects[source]

    def _item(self, value: Value, index: Value) -> Value:
        if not isinstance(value, tuple) or not isinstance(index, int):
            raise MindirError(f"found an element {index} of {value}, expected one of a tuple")
        if not -len(value) <= index < len(value):
            raise MindirError(f"found element {index} of a tuple of {len(value)}")
        return value[index]

    def _updated(self, inputs: Sequence[Value], node: Node, scope: Scope) -> Memory:
        """The memory after several nodes."""
        before = inputs[0] if isinstance(inputs[0], Memory) else scope.memory
        held = dict(before.held)
        for name in node.proto.input[1:]:
            for parameter, value in scope.effects.get(name, before).held.items():
                if value is not before.held.get(parameter):
                    held[parameter] = value
        return Memory(held)

    def _chosen(self, primitive: str, inputs: Sequence[Value], scope: Scope) -> Value:
        """One of several values by a condition, or by a number."""
        selector, *values = inputs
        if primitive == "switch_layer":
            (values,) = values
            if not isinstance(values, tuple):
                raise MindirError("a choice among what is no tuple")
        else:
            values = list(reversed(values))
        known = self.emitter.known(selector)
        if known is not None:
            index = int(known)
            if not -len(values) <= index < len(values):
                raise MindirError(f"found choice {index} of {len(values)}")
            return values[index]
        if not isinstance(selector, SSAValue) or not values:
            raise MindirError(f"found a choice of {len(values)} values by {selector}")
        if len(values) == 1:
            return values[0]
        if primitive == "switch_layer":
            selector = self._index(selector, len(values), scope.block)
        elif element_type(selector) != i1:
            selector = self.emitter.call("Cast", [selector, i1], i1, (), scope.block)
        choice = Choice(selector, tuple(values))
        if all(isinstance(value, Closure | Choice) for value in values):
            return choice
        return self._selected(choice, scope)

    def _index(self, selector: SSAValue, count: int, block: Block) -> SSAValue:
        """A choice from the front, as an i1 if there are two: negative ones count from the end."""
        zero = self.emitter.call("ScalarLt", [selector, 0], i1, (), block)
        wrapped = self.emitter.call(
            "ScalarAdd", [selector, count], element_type(selector), (), block
        )
        kind = element_type(selector)
        found = self.emitter.call("Select", [zero, wrapped, selector], kind, (), block)
        return self.emitter.call("Cast", [found, i1], i1, (), block) if count == 2 else found

    def _selected(self, choice: Choice, scope: Scope) -> Value:
        """The value itself of a choice among values that are no closures."""
        if len(choice.values) != 2:
            raise MindirError("a choice among more than two values that are no graphs")
        block = scope.block
        values = [self.settled(value, scope.memory) for value in reversed(choice.values)]
        if not is_alike(values[0], values[1]):
            raise MindirError("a choice among values of several kinds")
        regions: list[Region] = []
        for value in values:
            inner = Block()
            self.finish(inner, leaves(value, lambda n, b=inner: self.emitter.number(n, b)))
            regions.append(Region(inner))
        return rebuilt(values[0], iter(self.conditional(choice.number, regions, block)))

    # Effects

    def _assign(self, primitive: str, node: Node, inputs: Sequence[Value], scope: Scope) -> None:
        """A parameter holds another value after the node."""
        place, value, *rest = inputs
        memory = next((a for a in rest if isinstance(a, Memory)), scope.memory)
        if not isinstance(place, Parameter):
            raise MindirError(f"found {primitive} to what is no parameter of the model")
        self.emitter.change(place.name)
        new = self.settled(value, memory)
        before = self.settled(place, memory)
        operator = _ASSIGNING[primitive]
        if isinstance(new, int | float):
            new = self.emitter.number(new, scope.block)
        if not isinstance(new, SSAValue) or not isinstance(before, SSAValue):
            raise MindirError(f"found {primitive} of what is no tensor")
        kind, dims = element_type(before), self.emitter.dims.get(before)
        if operator:
            new = self.emitter.call(operator, [before, new], kind, dims, scope.block)
        elif element_type(new) != kind:
            new = self.emitter.call("Cast", [new, kind], kind, dims, scope.block)
        scope.values[node.output] = new
        scope.effects[node.output] = memory.after(place.name, new)

    def settled(self, value: Value, memory: Memory) -> Value:
        """A value in which parameters are what they hold."""
        match value:
            case Parameter(name=name):
                held = memory.held.get(name)
                return self.emitter.parameter(name) if held is None else held
            case tuple():
                return tuple(self.settled(item, memory) for item in value)
            case Pending():
                return self._forced(value, memory)
            case _:
                return value

    def _forced(self, pending: Pending, memory: Memory) -> Value:
        for known, value in pending.known:
            if known == memory:
                return value
        with self.emitter.located(pending.node):
            inputs = [self.settled(value, memory) for value in pending.inputs]
            value = self.emitter.primitive(pending.node, inputs, pending.block)
        pending.known.append((memory, value))
        return value

    # Primitives

    def _primitive(self, primitive: str, node: Node, inputs: Sequence[Value], scope: Scope) -> None:
        memory = next((value for value in inputs if isinstance(value, Memory)), None)
        if memory is None and any(map(self._is_pending, inputs)):
            scope.values[node.output] = Pending(node, tuple(inputs), scope.block)
            return
        memory = memory or scope.memory
        settled = [self.settled(value, memory) for value in inputs]
        found = self.emitter.primitive(node, settled, scope.block)
        scope.values[node.output] = found
        effect = self.model.attributes(node).get("side_effect_mem")
        if effect is None or not effect.i:
            return
        place = inputs[0] if inputs else None
        if isinstance(place, SSAValue):
            self._require_last_use(node, scope)
            return
        if not isinstance(place, Parameter) or not isinstance(found, SSAValue):
            raise MindirError("a write to what is no tensor")
        # What it gives is what the parameter holds after it.
        self.emitter.change(place.name)
        scope.effects[node.output] = memory.after(place.name, found)

    def _require_last_use(self, node: Node, scope: Scope) -> None:
        """
        Refuse a write to what may be more than one tensor: a constant, which would hold it in the
        next call, an input of the graph, a view, or what is read afterwards, or in no order, under
        its old name. What comes before the write is what it needs.
        """
        name = node.proto.input[0]
        maker = scope.graph.nodes.get(name)
        primitive = None if maker is None else self.model.primitive_name(maker)
        if primitive is None or primitive in STRUCTURE or _IS_VIEW.search(primitive):
            raise MindirError(
                f"a write in place to '{name}', which may be held elsewhere, too; write x = x + 1 "
                "instead of x += 1"
            )
        before = set(self.in_order(Scope(scope.graph, scope.block, scope.memory), node.output))
        for other in scope.graph.nodes.values():
            if name not in other.proto.input or other.output in before:
                continue
            if self.model.primitive_name(other) != "UpdateState":
                raise MindirError(f"a write to '{name}', which '{other.output}' reads, too")

    def _is_pending(self, value: Value) -> bool:
        match value:
            case Pending():
                return True
            case Parameter(name=name):
                return name in self.emitter.changed
            case tuple():
                return any(map(self._is_pending, value))
            case _:
                return False

    # Regions

    def conditional(
        self, condition: SSAValue, regions: Sequence[Region], block: Block
    ) -> list[SSAValue]:
        ends = [region.block.last_op for region in regions]
        first, second = (end.operands for end in ends if end is not None)
        op = IfOp(condition, regions[0], regions[1], result_types=list(map(unranked, first)))
        self.emitter.add(op, block)
        for result, one, other in zip(op.results, first, second, strict=True):
            dims = self.emitter.dims.get(one)
            self.emitter.dims[result] = dims if dims == self.emitter.dims.get(other) else None
        return list(op.results)

    def finish(self, block: Block, values: Sequence[SSAValue]) -> None:
        self.emitter.add(YieldOp(values), block)


def unranked(value: SSAValue) -> Attribute:
    """The type of a value of the same elements and any shape."""
    return UnrankedTensorType(element_type(value))
