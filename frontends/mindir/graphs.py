"""
Graphs of closures and tail calls become structured control flow.

A graph is a function; a loop is one that calls itself last, at any distance, and a conditional
calls one of two closures. `Evaluator` adds the ops of one graph to a block and finds how it ends:
with a value (`Done`), with a call of another graph (`Jump`), or with one of two ends (`Fork`), and
follows the calls. What comes after a conditional is a graph that both of its arms call at last:
they are joined there by a `core.if`, so that it is added once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.types import element_type, i1, i64, numpy_dtype, tensor
from lowerdeck.dialects.records import record
from lowerdeck.frontends.mindir.emitter import Emitter
from lowerdeck.frontends.mindir.model import Graph, MindirError, Node
from lowerdeck.frontends.mindir.nodes import Done, NodeEvaluator, Scope, unranked
from lowerdeck.frontends.mindir.values import (
    Choice,
    Closure,
    Memory,
    Value,
    is_alike,
    leaves,
    rebuilt,
)

_MOST = 20_000
"""Graphs that are added in all: a conditional in a loop without end would go on."""

_DEEPEST = 400
"""Calls inside of one another."""


@record
class Jump:
    """A graph ends with the call of another one."""

    graph: str
    arguments: tuple[Value, ...]
    memory: Memory

    @property
    def carried(self) -> tuple[Value, ...]:
        """What goes out of a region."""
        return (*self.arguments, self.memory)


@record
class Fork:
    """A graph ends with one of two ends, each in a block of its own."""

    condition: SSAValue
    on_true: tuple[Block, End]
    on_false: tuple[Block, End]


Leaf: TypeAlias = "Done | Jump"
End: TypeAlias = "Done | Jump | Fork"


class Evaluator(NodeEvaluator):
    """Adds graphs to blocks."""

    def __init__(self, emitter: Emitter) -> None:
        super().__init__(emitter)
        self._stack: list[str] = []
        self._count = 0

    # Graphs

    def result_of(
        self, graph: str, arguments: Sequence[Value], block: Block, memory: Memory
    ) -> Done:
        """The value of a call, whose ops go to a block."""
        if len(self._stack) > _DEEPEST:
            raise MindirError("graphs that call each other too deep, or without end")
        jump = Jump(graph, tuple(arguments), memory)
        end = self._joined(self._expand(jump, block, (), frozenset()), block)
        if not isinstance(end, Done):
            raise MindirError(
                f"graph '{graph}' calls itself, and not as the last thing that it does"
            )
        return end

    def _run(self, jump: Jump, block: Block) -> End:
        """Add one graph to a block; how it ends."""
        self._count += 1
        if self._count > _MOST:
            raise MindirError(f"more than {_MOST} calls of graphs")
        graph = self.model.graphs[jump.graph]
        if len(jump.arguments) != len(graph.inputs):
            raise MindirError(
                f"graph '{graph.name}' has {len(graph.inputs)} inputs, given {len(jump.arguments)}"
            )
        memory = next((a for a in jump.arguments if isinstance(a, Memory)), jump.memory)
        scope = Scope(graph, block, memory)
        scope.values.update(zip(graph.inputs, jump.arguments, strict=True))
        self._stack.append(graph.name)
        try:
            return self._end(scope)
        finally:
            self._stack.pop()

    def _end(self, scope: Scope) -> End:
        output = self._last(scope.graph)
        last = scope.graph.nodes.get(output)
        is_call = last is not None and self._is_call(last)
        for name in self.in_order(scope, output):
            if name != output or not is_call:
                self.add_node(scope.graph.nodes[name], scope)
        if last is not None and is_call:
            with self.emitter.located(last):
                callee = self.value_of(last.callee, scope)
                return self._call_end(callee, self.inputs_of(last, scope), scope)
        memory = scope.effects.get(output, scope.memory)
        return Done(self.settled(self.value_of(output, scope), memory), memory)

    def _last(self, graph: Graph) -> str:
        """The node with which a graph ends: a call, although something waits for its effects."""
        name = graph.output
        while (node := graph.nodes.get(name)) is not None:
            if self._is_call(node):
                return name
            if self.model.primitive_name(node) != "Depend" or len(node.proto.input) != 2:
                break
            name, after = node.proto.input
            update = graph.nodes.get(after)
            if update is None or self.model.primitive_name(update) != "UpdateState":
                break
            if any(other != name for other in update.proto.input[1:]):
                break
        return graph.output

    def call(self, callee: Value, arguments: Sequence[Value], scope: Scope) -> Done:
        end = self._call_end(callee, arguments, scope)
        if isinstance(end, Jump):
            return self.result_of(end.graph, end.arguments, scope.block, end.memory)
        found = self._joined(self._expand(end, scope.block, (), frozenset()), scope.block)
        if not isinstance(found, Done):
            raise MindirError(f"the arms of a conditional in '{scope.graph.name}' differ in kind")
        return found

    def _is_call(self, node: Node) -> bool:
        return not node.is_constant and self.model.primitive_name(node) is None

    def _call_end(self, callee: Value, arguments: Sequence[Value], scope: Scope) -> End:
        """The end of a graph whose last node calls something."""
        memory = next((a for a in arguments if isinstance(a, Memory)), scope.memory)
        match callee:
            case Closure():
                return Jump(callee.graph, (*callee.bound, *arguments), memory)
            case Choice():
                return self._fork(callee, arguments, scope, 0)
            case _:
                raise MindirError(f"a call in graph '{scope.graph.name}' of what is no graph")

    def _fork(self, choice: Choice, arguments: Sequence[Value], scope: Scope, first: int) -> Fork:
        """One of the closures of a choice from the `first` on."""
        blocks = [Block(), Block()]
        scopes = [Scope(scope.graph, block, scope.memory) for block in blocks]
        if len(choice.values) == 2:
            condition = choice.number
            ends = [
                self._call_end(value, arguments, inner)
                for value, inner in zip(reversed(choice.values), scopes, strict=True)
            ]
            return Fork(condition, (blocks[0], ends[0]), (blocks[1], ends[1]))
        condition = self.emitter.call("ScalarEq", [choice.number, first], i1, (), scope.block)
        here = self._call_end(choice.values[first], arguments, scopes[0])
        if first + 2 == len(choice.values):
            other: End = self._call_end(choice.values[first + 1], arguments, scopes[1])
        else:
            other = self._fork(choice, arguments, scopes[1], first + 1)
        return Fork(condition, (blocks[0], here), (blocks[1], other))

    # Ends

    def _expand(self, end: End, block: Block, active: tuple[str, ...], stop: frozenset[str]) -> End:
        """Follow calls, but not those of loops that are `active`, or of graphs to `stop` at."""
        while True:
            match end:
                case Done():
                    return end
                case Jump(graph=graph):
                    if graph in active or graph in stop:
                        return end
                    if graph in self._stack:
                        raise MindirError(f"graph '{graph}' calls itself while it is computed")
                    end = self._followed(end, block, active)
                case Fork():
                    joined = self._fork_expanded(end, block, active, stop)
                    if isinstance(joined, Fork):
                        return joined
                    end = joined

    def _followed(self, jump: Jump, block: Block, active: tuple[str, ...]) -> End:
        away = frozenset(active)
        if jump.graph in self.model.reached(jump.graph, away):
            return self._loop(jump, block, active)
        return self._run(jump, block)

    def _fork_expanded(
        self, fork: Fork, block: Block, active: tuple[str, ...], stop: frozenset[str]
    ) -> End:
        """A fork whose arms are followed up to where they meet."""
        arms = (fork.on_true, fork.on_false)
        first, second = (self._ahead(end, frozenset(active)) for _, end in arms)
        meeting = frozenset(first & second)
        ends = [(inner, self._expand(end, inner, active, stop | meeting)) for inner, end in arms]
        found = Fork(fork.condition, ends[0], ends[1])
        joined = self._joined(found, block)
        if not isinstance(joined, Fork):
            return joined
        # They do not meet in one place: each arm goes its own way.
        ends = [(inner, self._expand(end, inner, active, stop)) for inner, end in ends]
        return self._joined(Fork(fork.condition, ends[0], ends[1]), block)

    def _ahead(self, end: End, active: frozenset[str]) -> set[str]:
        """The graphs that may be called at last."""
        match end:
            case Done():
                return set()
            case Jump(graph=graph):
                return {graph} | (set() if graph in active else self.model.reached(graph, active))
            case Fork():
                return self._ahead(end.on_true[1], active) | self._ahead(end.on_false[1], active)

    def _joined(self, end: End, block: Block) -> End:
        """One end for a fork whose ends are alike, by a `core.if` in the block."""
        if not isinstance(end, Fork):
            return end
        arms: list[tuple[Block, Leaf]] = []
        for inner, arm in (end.on_true, end.on_false):
            leaf = self._joined(arm, inner)
            if isinstance(leaf, Fork):
                return end
            arms.append((inner, leaf))
        (first_block, first), (second_block, second) = arms
        if _place(first) != _place(second) or not is_alike(first.carried, second.carried):
            return end
        regions: list[Region] = []
        for inner, leaf in ((first_block, first), (second_block, second)):
            self.finish(inner, leaves(leaf.carried, lambda n, b=inner: self.emitter.number(n, b)))
            regions.append(Region(inner))
        results = self.conditional(end.condition, regions, block)
        return _ended(first, rebuilt(first.carried, iter(results)))

    # Loops

    def _loop(self, jump: Jump, block: Block, active: tuple[str, ...]) -> End:
        """The loop of a graph that calls itself."""
        head, inner = jump.graph, (*active, jump.graph)
        first = self._run(jump, block)
        if isinstance(first, Fork):
            backward = [
                any(name == head for name in self._ahead(end, frozenset(active)))
                for _, end in (first.on_true, first.on_false)
            ]
            empty = all(not arm.ops for arm, _ in (first.on_true, first.on_false))
            if backward.count(True) == 1 and empty:
                found = self._while(jump, first, backward[0], block, inner)
                if found is not None:
                    return found
        return self._general_loop(jump, block, inner)

    def _while(
        self, jump: Jump, first: Fork, goes_on_true: bool, block: Block, inner: tuple[str, ...]
    ) -> End | None:
        """A loop whose head decides whether it goes on; None if its body can leave it, too."""
        inits = leaves(jump.carried, lambda n: self.emitter.number(n, block))
        body, inside = self._body(inits, jump)
        fork = self._run(inside, body)
        assert isinstance(fork, Fork)
        repeat, end = fork.on_true if goes_on_true else fork.on_false
        last = self._joined(self._expand(end, repeat, inner, frozenset()), repeat)
        if not isinstance(last, Jump) or last.graph != jump.graph:
            _drop(repeat)
            _drop(body)
            return None
        for op in list(repeat.ops):
            op.detach()
            body.add_op(op)
        again = self._run(last, body)
        assert isinstance(again, Fork)
        following = leaves(last.carried, lambda n: self.emitter.number(n, body))
        if not is_alike(last.carried, jump.carried):
            raise MindirError(f"the loop of graph '{jump.graph}' changes what it carries")
        self.finish(body, [self._going(again, goes_on_true, body), *following])
        results = self._add_loop(self._going(first, goes_on_true, block), inits, body, block)
        after = self._run(_with(jump, results), block)
        assert isinstance(after, Fork)
        return (after.on_false if goes_on_true else after.on_true)[1]

    def _going(self, fork: Fork, goes_on_true: bool, block: Block) -> SSAValue:
        if goes_on_true:
            return fork.condition
        return self.emitter.call("LogicalNot", [fork.condition], i1, (), block)

    def _body(self, inits: Sequence[SSAValue], jump: Jump) -> tuple[Block, Jump]:
        """The block of a loop, and the call of its head there."""
        body = Block(arg_types=[tensor(i64, []), *map(unranked, inits)])
        for init, argument in zip(inits, body.args[1:], strict=True):
            self.emitter.dims[argument] = self.emitter.dims.get(init)
        return body, _with(jump, body.args[1:])

    def _add_loop(
        self, condition: SSAValue, inits: Sequence[SSAValue], body: Block, block: Block
    ) -> list[SSAValue]:
        op = LoopOp(None, condition, inits, Region(body))
        self.emitter.add(op, block)
        for result, init in zip(op.results, inits, strict=True):
            self.emitter.dims[result] = self.emitter.dims.get(init)
        return list(op.results)

    def _general_loop(self, jump: Jump, block: Block, inner: tuple[str, ...]) -> End:
        """
        A loop that is left from anywhere: it carries the number of the way out, and for each way
        the values that go with it, zeros before it is taken.
        """
        own = leaves(jump.carried, lambda n: self.emitter.number(n, block))
        trial, inside = self._body(own, jump)
        ways: dict[str, Leaf] = {}
        end = self._expand(self._run(inside, trial), trial, inner, frozenset())
        _find_ways(end, jump.graph, ways)
        if not ways:
            raise MindirError(f"the loop of graph '{jump.graph}' has no end")
        zeros = {
            way: [self._zeros(leaf, block) for leaf in leaves(found.carried, self._counted)]
            for way, found in ways.items()
        }
        _drop(trial)
        number = self.emitter.number(0, block)
        inits = [*own, number, *(zero for each in zeros.values() for zero in each)]
        body, inside = self._body(inits, jump)
        end = self._expand(self._run(inside, body), body, inner, frozenset())
        carried = list(body.args[1:])
        self.finish(body, self._step(end, jump, ways, carried, len(own), body))
        results = self._add_loop(self.emitter.number(True, block), inits, body, block)
        chosen, rest = results[len(own)], iter(results[len(own) + 1 :])
        ends: list[Leaf] = []
        for way in ways.values():
            found = rebuilt(way.carried, rest)
            ends.append(_ended(way, found))
        return self._by_number(chosen, ends, 0, block)

    def _by_number(self, chosen: SSAValue, ends: Sequence[Leaf], first: int, block: Block) -> End:
        if first + 1 >= len(ends):
            return ends[first]
        condition = self.emitter.call("ScalarEq", [chosen, first], i1, (), block)
        blocks = Block(), Block()
        other = self._by_number(chosen, ends, first + 1, blocks[1])
        return Fork(condition, (blocks[0], ends[first]), (blocks[1], other))

    def _step(
        self,
        end: End,
        jump: Jump,
        ways: Mapping[str, Leaf],
        carried: Sequence[SSAValue],
        own: int,
        block: Block,
    ) -> list[SSAValue]:
        """What an iteration yields: whether it goes on, and all that is carried."""
        if isinstance(end, Fork):
            regions: list[Region] = []
            for inner, arm in (end.on_true, end.on_false):
                self.finish(inner, self._step(arm, jump, ways, carried, own, inner))
                regions.append(Region(inner))
            return self.conditional(end.condition, regions, block)
        values = leaves(end.carried, lambda n: self.emitter.number(n, block))
        if isinstance(end, Jump) and end.graph == jump.graph:
            if not is_alike(end.carried, jump.carried):
                raise MindirError(f"the loop of graph '{jump.graph}' changes what it carries")
            return [self.emitter.number(True, block), *values, *carried[own:]]
        place = own + 1
        for number, (way, found) in enumerate(ways.items()):
            count = len(leaves(found.carried, self._counted))
            if way == _place(end):
                if not is_alike(end.carried, found.carried):
                    raise MindirError(f"the loop of graph '{jump.graph}' returns different things")
                return [
                    self.emitter.number(False, block),
                    *carried[:own],
                    self.emitter.number(number, block),
                    *carried[own + 1 : place],
                    *values,
                    *carried[place + count :],
                ]
            place += count
        raise MindirError(f"the loop of graph '{jump.graph}' has no end")

    def _counted(self, number: float | bool) -> SSAValue:
        """A tensor for a plain number, of which only the type matters."""
        return self.emitter.number(number, Block())

    def _zeros(self, like: SSAValue, block: Block) -> SSAValue:
        """Zeros of the type that the file states for a value; open sizes are 0."""
        dims = self.emitter.dims.get(like)
        shape = [max(size, 0) for size in dims] if dims is not None else []
        op = ConstantOp.of(np.zeros(shape, numpy_dtype(element_type(like))))
        self.emitter.add(op, block)
        self.emitter.dims[op.result] = dims
        return op.result


def _with(jump: Jump, values: Sequence[SSAValue]) -> Jump:
    """A call with other tensors."""
    found = _ended(jump, rebuilt(jump.carried, iter(values)))
    assert isinstance(found, Jump)
    return found


def _ended(like: Leaf, carried: Value) -> Leaf:
    """An end as `like`, with what came out of a region."""
    assert isinstance(carried, tuple)
    *values, memory = carried
    assert isinstance(memory, Memory)
    if isinstance(like, Jump):
        return Jump(like.graph, tuple(values), memory)
    return Done(values[0], memory)


def _place(end: Leaf) -> str:
    """Where a graph ends: in a call of another graph, or, with "", by a value."""
    return end.graph if isinstance(end, Jump) else ""


def _drop(block: Block) -> None:
    """Let the ops of a block that is thrown away use nothing any more."""
    for op in block.ops:
        op.drop_all_references()


def _find_ways(end: End, head: str, ways: dict[str, Leaf]) -> None:
    """The ways out of a loop, one end of each kind."""
    if isinstance(end, Fork):
        for _, arm in (end.on_true, end.on_false):
            _find_ways(arm, head, ways)
    elif _place(end) != head:
        ways.setdefault(_place(end), end)
