"""
From a `tf1.graph` to its nodes, with what calls of functions stand for in their place.

A call takes the nodes of the function in; a While becomes the frame, an If the Switches and Merges
that do the same, around the nodes of their functions. So there is one form of control flow for all
that follows, and what a loop or branch of functions needs is found as for any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.records import record
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
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, Tf1Op, expected_types
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.arrays import READERS, WRITERS
from lowerdeck.passes.control_flow.graph import (
    Graph,
    Node,
    Problem,
    Value,
    data_reachable,
    forwarded,
    kind_of,
    refuse,
    sources,
)
from lowerdeck.passes.control_flow.kinds import Kind
from lowerdeck.passes.machinery.order import post_order
from lowerdeck.passes.machinery.provenance import describe

_NODE_LIMIT = 1 << 18
"""Nodes that functions may make in the place of their calls."""


def read_graph(graph: GraphOp, functions: Mapping[str, FunctionOp]) -> Graph:
    """
    The nodes of a graph that its fetches need, functions included.

    CompileError lists calls that are not valid.
    """
    fetch = graph.body.block.last_op
    if not isinstance(fetch, FetchOp):
        raise CompileError(f"{describe(graph)}: the graph has no fetches")
    reader = _Reader(functions)
    values = reader.read(graph.body.block)
    fetches = tuple(values[value] for value in fetch.values)
    reached = data_reachable(fetches)
    effects = [node for node in reader.effects if _is_seen(node, reached)]
    nodes = post_order((*(value.node for value in fetches), *effects), sources)
    for index, node in enumerate(nodes):
        node.index = index
    names = tuple(name.data for name in fetch.names)
    return Graph(tuple(nodes), fetches, names, tuple(effects))


@record
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
        self.effects: list[Node] = []
        """The nodes that are only run for their effect."""
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
                raise CompileError(
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
    ) -> Node:
        self._count += 1
        return Node(kind, op, list(inputs), list(controls), self._count)

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
        ops = post_order(_producers(end.operands), lambda op: _producers(op.operands))
        nodes: dict[Operation, Node] = {}
        taps: dict[Operation, list[Node]] = {}
        values = dict(given)
        for op in ops:
            if isinstance(op, Tf1Op) and op.op_type in FUNCTIONAL:
                nodes[op] = self._node(kinds.Gate(), op)
                taps[op] = [
                    self._node(kinds.Forward(), op, controls=[nodes[op]]) for _ in op.inputs
                ]
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
        self._find_effects(end.operands, nodes)
        return values

    def _ordinary(self, op: Operation, gate: Node | None) -> Node:
        node = self._node(_kind(op, gate), op)
        if gate is not None and node.is_a(kinds.Argument):
            text = "found an input inside a function, expected an argument"
            self._problems.append(Problem(node, text))
        return node

    def _find_effects(self, ends: Sequence[SSAValue], nodes: Mapping[Operation, Node]) -> None:
        kept = _data_reachable([value for value in ends if value.type != CONTROL])
        self.effects += [n for op, n in nodes.items() if op not in kept and _has_effect(op)]

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
        results = [self._node(kinds.Forward(), op) for _ in function.end.data]
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
        test = Value(self._node(kinds.Bool(), op, [arguments[0]], [gate]), 0)
        switches = [self._node(kinds.Switch(), op, [v, test]) for v in (test, *arguments[1:])]
        return self._branches(op, [(1, uses[0]), (0, uses[1])], switches, path)

    def _case(
        self, op: Tf1Op, uses: Sequence[Use], arguments: Sequence[Value], path: tuple[str, ...]
    ) -> list[Value]:
        """The same with _SwitchN, the last output of which takes what is out of range."""
        index, count = arguments[0], len(uses)
        switches = [self._node(kinds.SwitchN(count), op, [v, index]) for v in arguments]
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
            gate = self._node(kinds.Gate(), op, [pivot])
            results.append(self._call(op, use, inputs, gate, path))
        merges = [self._node(kinds.Merge(), op, values) for values in zip(*results, strict=True)]
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
        entering = kinds.Enter(gate, gate.name)
        enters = [self._node(entering, op, [value]) for value in arguments]
        merges = [self._node(kinds.Merge(), op, [Value(enter, 0)]) for enter in enters]
        for merge, result in zip(merges, op.outputs, strict=True):
            merge.result = result
        variables = [Value(merge, 0) for merge in merges]
        testing = self._node(kinds.Gate(), op, variables[:1])
        (going,) = self._call(op, uses[0], variables, testing, path)
        truth = self._node(kinds.Bool(), op, [going])
        condition = Value(self._node(kinds.LoopCond(), op, [Value(truth, 0)]), 0)
        switches = [self._node(kinds.Switch(), op, [value, condition]) for value in variables]
        inside = [Value(switch, 1) for switch in switches]
        running = self._node(kinds.Gate(), op, inside[:1])
        for merge, value in zip(
            merges, self._call(op, uses[1], inside, running, path), strict=True
        ):
            merge.inputs.append(Value(self._node(kinds.NextIteration(), op, [value]), 0))
        return [Value(self._node(kinds.Exit(), op, [Value(s, 0)]), 0) for s in switches]


def _kind(op: Operation, gate: Node | None) -> Kind:
    """What an op means to control flow, in the graph or in a function."""
    kind = kind_of(op)
    if kind is kinds.SwitchN:
        return kinds.SwitchN(sum(result.type != CONTROL for result in op.results))
    if kind is kinds.Enter:
        assert isinstance(op, Tf1Op)
        name = op.attr("frame_name")
        # Each call of a function has frames of its own.
        return kinds.Enter((gate, name), name)
    return kind()


def _producers(values: Iterable[SSAValue]) -> list[Operation]:
    return [_owner(value) for value in values if not isinstance(value, BlockArgument)]


def _owner(value: SSAValue) -> Operation:
    if not isinstance(value, OpResult):
        raise CompileError("a tf1.graph has no arguments: its inputs are Placeholders")
    return value.op


def _data_reachable(values: Sequence[SSAValue]) -> set[Operation]:
    """The ops that values depend on by data."""
    return set(post_order(_data_producers(values), lambda op: _data_producers(op.operands)))


def _data_producers(values: Iterable[SSAValue]) -> list[Operation]:
    return [v.op for v in values if isinstance(v, OpResult) and v.type != CONTROL]


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
    if not isinstance(op, Tf1Op) or kind_of(op) is not kinds.Operator:
        return False
    if op.op_type in _OBSERVERS | READERS | WRITERS:
        return False  # what reads after a write is given the flow of the write
    if op.op_type in FUNCTIONAL:
        return any(value.type == RESOURCE for value in op.inputs)
    return any(part.is_ref or part.dtype == "resource" for part in op.signature.inputs)


def _is_seen(effect: Node, reached: Collection[Node]) -> bool:
    """
    True if one of the nodes that outputs are computed from may see an effect: if it has the state
    that is changed, a variable or what else a handle or reference stands for.
    """
    op = effect.op
    assert isinstance(op, Tf1Op)
    if op.op_type in FUNCTIONAL:
        is_state = [value.type == RESOURCE for value in op.inputs]
    else:
        parts = expected_types(op.signature, op.properties, op.signature.inputs)
        is_state = [dtype == "resource" for dtype in parts]
        if len(op.signature.inputs) == len(parts):
            is_state = [
                found or part.is_ref
                for found, part in zip(is_state, op.signature.inputs, strict=True)
            ]
    values = [v for v, found in zip(effect.inputs, is_state, strict=True) if found]
    origins = post_order((value.node for value in values), forwarded)
    return any(node in reached for node in origins if not forwarded(node))
