"""
From a `tf1.graph` to its nodes, with what calls of functions stand for in their place.

A call takes the nodes of the function in; a While becomes the frame, an If the Switches and Merges
that do the same, around the nodes of their functions. So there is one form of control flow for all
that follows, and what a loop or branch of functions needs is found as for any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.tf1.attributes import CONTROL, RESOURCE
from lowerdeck.dialects.tf1.functions import (
    CALLS,
    CASES,
    FUNCTIONAL,
    IFS,
    FunctionOp,
    Use,
    use_problem,
    uses_of,
)
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, Tf1Op
from lowerdeck.passes.control_flow.arrays import READERS, WRITERS
from lowerdeck.passes.control_flow.graph import (
    Graph,
    Kind,
    Node,
    Problem,
    Value,
    kind_of,
    refuse,
)
from lowerdeck.passes.provenance import describe

_NODE_LIMIT = 1 << 18
"""Nodes that functions may make in the place of their calls."""


def read_graph(graph: GraphOp, functions: Mapping[str, FunctionOp]) -> Graph:
    """
    The nodes of a graph that its fetches need, functions included.

    PassFailedException lists calls that are not valid, and nodes that are only run for an effect.
    """
    fetch = graph.body.block.last_op
    if not isinstance(fetch, FetchOp):
        raise PassFailedException(f"{describe(graph)}: the graph has no fetches")
    values = _Reader(functions).read(graph.body.block)
    fetches = tuple(values[value] for value in fetch.values)
    nodes = _needed(fetches)
    for index, node in enumerate(nodes):
        node.index = index
    return Graph(tuple(nodes), fetches, tuple(name.data for name in fetch.names))


@dataclass(frozen=True)
class _Call:
    """A function that is to be read into the place of a call."""

    function: FunctionOp
    arguments: Sequence[Value]
    gate: Node
    results: Sequence[Node]
    path: tuple[str, ...]


class _Reader:
    """Reads a graph, and the functions that it calls one after the other."""

    def __init__(self, functions: Mapping[str, FunctionOp]) -> None:
        self._functions = functions
        self._queue: deque[_Call] = deque()
        self._problems: list[Problem] = []
        self._read: set[Block] = set()
        self._count = 0
        self._in_functions = 0

    def read(self, block: Block) -> Mapping[SSAValue, Value]:
        """What the values of a graph's block are; its problems and those of functions refused."""
        values = self._block(block, {}, None, ())
        while self._queue:
            call = self._queue.popleft()
            body = call.function.body.block
            given: dict[SSAValue, Value] = dict(zip(body.args, call.arguments, strict=True))
            before = self._count
            inner = self._block(body, given, call.gate, call.path)
            self._in_functions += self._count - before
            if self._in_functions > _NODE_LIMIT:
                raise PassFailedException(
                    f"{describe(call.gate.op)}: found over {_NODE_LIMIT} nodes with functions in "
                    "the place of their calls, expected fewer; call functions less often"
                )
            for node, value in zip(call.results, call.function.end.data, strict=True):
                node.inputs.append(inner[value])
        refuse(self._problems)
        return values

    def _node(
        self,
        kind: Kind,
        op: Operation,
        inputs: Sequence[Value] = (),
        controls: Sequence[Node] = (),
        number: int = 0,
    ) -> Node:
        self._count += 1
        return Node(kind, op, list(inputs), list(controls), self._count, number)

    # One block

    def _block(
        self,
        block: Block,
        given: Mapping[SSAValue, Value],
        gate: Node | None,
        path: tuple[str, ...],
    ) -> Mapping[SSAValue, Value]:
        """
        The values of what the end of a block needs.

        In a function, `gate` is alive when it runs, and what has no inputs waits for it.
        """
        end = block.last_op
        assert end is not None
        ops = _completed(end.operands)
        nodes: dict[Operation, Node] = {}
        taps: dict[Operation, list[Node]] = {}
        values = dict(given)
        for op in ops:
            if isinstance(op, Tf1Op) and op.op_type in FUNCTIONAL:
                nodes[op] = self._node(Kind.GATE, op)
                taps[op] = [self._node(Kind.FORWARD, op, controls=[nodes[op]]) for _ in op.inputs]
                results = self._run(op, [Value(tap, 0) for tap in taps[op]], nodes[op], path)
            else:
                nodes[op] = self._ordinary(op, gate)
                results = [Value(nodes[op], result.index) for result in op.results]
            values.update(zip(op.results, results, strict=False))
        for op, node in nodes.items():
            for operand in op.operands:
                if operand.type == CONTROL:
                    node.controls.append(nodes[_owner(operand)])
                else:
                    node.inputs.append(values[operand])
            for tap, value in zip(taps.get(op, ()), node.inputs, strict=bool(op in taps)):
                tap.inputs.append(value)
            if gate is not None and not op.operands:
                node.controls.append(gate)
        self._check(block, nodes)
        return values

    def _ordinary(self, op: Operation, gate: Node | None) -> Node:
        node = self._node(kind_of(op), op)
        match node.kind:
            case Kind.SWITCH_N:
                node.number = sum(result.type != CONTROL for result in op.results)
            case Kind.ENTER:
                assert isinstance(op, Tf1Op)
                name = op.attr("frame_name")
                # Each call of a function has frames of its own.
                node.frame = (gate, name), name
            case Kind.ARGUMENT if gate is not None:
                text = "found an input inside a function, expected an argument"
                self._problems.append(Problem(node, text))
            case _:
                pass
        return node

    def _check(self, block: Block, nodes: Mapping[Operation, Node]) -> None:
        """Nodes that are only run for their effect, which what is raised cannot have."""
        if block in self._read:
            return
        self._read.add(block)
        end = block.last_op
        assert end is not None
        kept = _data_reachable([value for value in end.operands if value.type != CONTROL])
        self._problems += [
            Problem(
                node,
                "found a node that changes state before others run, expected none; name outputs "
                "that do not need it, or remove the control dependency",
            )
            for op, node in nodes.items()
            if op not in kept and _has_effect(op)
        ]

    # Functions

    def _run(
        self, op: Tf1Op, arguments: Sequence[Value], gate: Node, path: tuple[str, ...]
    ) -> list[Value]:
        """The outputs of a node that runs functions, for arguments that are alive together."""
        uses = uses_of(op.signature, op.properties)
        if problems := self._use_problems(uses, path):
            self._problems += [Problem(gate, problem) for problem in problems]
            return [Value(gate, index) for index, _ in enumerate(op.outputs)]
        if op.op_type in CALLS:
            return self._call(op, uses[0], arguments, gate, path)
        if op.op_type in IFS:
            return self._if(op, uses, arguments, gate, path)
        if op.op_type in CASES:
            return self._case(op, uses, arguments, path)
        return self._while(op, uses, arguments, gate, path)

    def _use_problems(self, uses: Sequence[Use], path: tuple[str, ...]) -> list[str]:
        problems: list[str] = [] if uses else ["found no branches, expected at least one"]
        for use in uses:
            function = self._functions.get(use.function)
            if function is None:
                problems.append(f"its {use.role} '{use.function}' is not in the module")
            elif use.function in path:
                cycle = [*path[path.index(use.function) :], use.function]
                steps = " > ".join(f"'{name}'" for name in cycle)
                problems.append(f"found a function that calls itself: {steps}, expected none")
            else:
                inputs = [argument.type for argument in function.body.block.args]
                outputs = [value.type for value in function.end.data]
                if problem := use_problem(use, inputs, outputs):
                    problems.append(problem)
        return problems

    def _call(
        self,
        op: Tf1Op,
        use: Use,
        arguments: Sequence[Value],
        gate: Node,
        path: tuple[str, ...],
    ) -> list[Value]:
        """What a function gives, which runs when `gate` is alive."""
        function = self._functions[use.function]
        results = [self._node(Kind.FORWARD, op) for _ in function.end.data]
        self._queue.append(_Call(function, arguments, gate, results, (*path, use.function)))
        return [Value(node, 0) for node in results]

    def _if(
        self,
        op: Tf1Op,
        uses: Sequence[Use],
        arguments: Sequence[Value],
        gate: Node,
        path: tuple[str, ...],
    ) -> list[Value]:
        """A Switch for each argument, and a Merge for each result."""
        test = Value(self._node(Kind.BOOL, op, [arguments[0]], [gate]), 0)
        switches = [self._node(Kind.SWITCH, op, [v, test]) for v in (test, *arguments[1:])]
        return self._branches(op, [(1, uses[0]), (0, uses[1])], switches, path)

    def _case(
        self, op: Tf1Op, uses: Sequence[Use], arguments: Sequence[Value], path: tuple[str, ...]
    ) -> list[Value]:
        """The same with _SwitchN, the last output of which takes what is out of range."""
        index, count = arguments[0], len(uses)
        switches = [self._node(Kind.SWITCH_N, op, [v, index], (), count) for v in arguments]
        return self._branches(op, list(enumerate(uses)), switches, path)

    def _branches(
        self,
        op: Tf1Op,
        branches: Sequence[tuple[int, Use]],
        switches: Sequence[Node],
        path: tuple[str, ...],
    ) -> list[Value]:
        """The results of the functions on the sides of Switches, the first of which is no input."""
        results: list[list[Value]] = []
        for side, use in branches:
            pivot, *inputs = (Value(switch, side) for switch in switches)
            gate = self._node(Kind.GATE, op, [pivot])
            results.append(self._call(op, use, inputs, gate, path))
        merges = [self._node(Kind.MERGE, op, values) for values in zip(*results, strict=True)]
        for merge, result in zip(merges, op.outputs, strict=True):
            merge.result = result
        return [Value(merge, 0) for merge in merges]

    def _while(
        self,
        op: Tf1Op,
        uses: Sequence[Use],
        arguments: Sequence[Value],
        gate: Node,
        path: tuple[str, ...],
    ) -> list[Value]:
        """A frame with a variable for each argument."""
        if not arguments:
            return []
        enters = [self._node(Kind.ENTER, op, [value]) for value in arguments]
        merges = [self._node(Kind.MERGE, op, [Value(enter, 0)]) for enter in enters]
        for enter, merge, result in zip(enters, merges, op.outputs, strict=True):
            enter.frame = gate, gate.name
            merge.result = result
        variables = [Value(merge, 0) for merge in merges]
        testing = self._node(Kind.GATE, op, variables[:1])
        (going,) = self._call(op, uses[0], variables, testing, path)
        truth = self._node(Kind.BOOL, op, [going])
        condition = Value(self._node(Kind.COND, op, [Value(truth, 0)]), 0)
        switches = [self._node(Kind.SWITCH, op, [value, condition]) for value in variables]
        inside = [Value(switch, 1) for switch in switches]
        running = self._node(Kind.GATE, op, inside[:1])
        for merge, value in zip(
            merges, self._call(op, uses[1], inside, running, path), strict=True
        ):
            merge.inputs.append(Value(self._node(Kind.NEXT, op, [value]), 0))
        return [Value(self._node(Kind.EXIT, op, [Value(s, 0)]), 0) for s in switches]


def _needed(values: Sequence[Value]) -> list[Node]:
    """The nodes that values need by data or control, each after what it needs, but for cycles."""
    done: list[Node] = []
    seen: set[Node] = set()
    for value in values:
        stack = [(value.node, iter(_sources(value.node)))] if value.node not in seen else []
        seen.add(value.node)
        while stack:
            rest = stack[-1][1]
            if (following := next((n for n in rest if n not in seen), None)) is None:
                done.append(stack.pop()[0])
                continue
            seen.add(following)
            stack.append((following, iter(_sources(following))))
    return done


def _sources(node: Node) -> list[Node]:
    return [*(value.node for value in node.inputs), *node.controls]


def _completed(values: Sequence[SSAValue]) -> list[Operation]:
    """The producers of values and theirs, each after what it needs, except along cycles."""
    done: list[Operation] = []
    seen: set[Operation] = set()
    for value in values:
        stack = [] if isinstance(value, BlockArgument) else [(_owner(value), 0)]
        while stack:
            op, position = stack.pop()
            if position == 0 and op in seen:
                continue
            seen.add(op)
            operands = op.operands
            if position == len(operands):
                done.append(op)
                continue
            stack.append((op, position + 1))
            if not isinstance(operands[position], BlockArgument):
                stack.append((_owner(operands[position]), 0))
    return done


def _owner(value: SSAValue) -> Operation:
    if not isinstance(value, OpResult):
        raise PassFailedException("a tf1.graph has no arguments: its inputs are Placeholders")
    return value.op


def _data_reachable(values: Sequence[SSAValue]) -> set[Operation]:
    """The ops that values depend on by data."""
    seen: set[Operation] = set()
    stack = [value.op for value in values if isinstance(value, OpResult)]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            data = (value for value in op.operands if value.type != CONTROL)
            stack += [value.op for value in data if isinstance(value, OpResult)]
    return seen


_OBSERVERS = frozenset(
    {
        "IsVariableInitialized",
        "LookupTableFindV2",
        "LookupTableSizeV2",
        "ReadVariableOp",
        "RefIdentity",
        "ResourceGather",
        "ResourceGatherNd",
        "VarIsInitializedOp",
        "VariableShape",
    }
)
"""Operators on handles and references that change nothing that another node can see."""


def _has_effect(op: Operation) -> bool:
    """True if an op may change what others read; printing and checking does not."""
    if not isinstance(op, Tf1Op) or kind_of(op) is not Kind.OP:
        return False
    if op.op_type in _OBSERVERS | READERS | WRITERS:
        return False  # who sees what was written to an array is given the flow of the write
    if op.op_type in FUNCTIONAL:
        return any(value.type == RESOURCE for value in op.inputs)
    return any(part.is_ref or part.dtype == "resource" for part in op.signature.inputs)
