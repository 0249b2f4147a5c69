"""
Runs a tf1.graph as TensorFlow's executor does, cycles included.

An op runs when all its operands have arrived, a Merge with the first data operand that does.
Switch passes its data to one result only. Enter passes it into a frame, Exit out of it,
NextIteration to the next iteration: what has arrived is kept for each frame and iteration.

TensorFlow also sends dead tokens, so that its bookkeeping ends. They make nothing alive: every
op with a dead operand is dead, a Merge whose operands are all dead is, and they do not go round
a loop. So what has not run when nothing is left to do is what is dead, and none need be sent.
Two operators wait for tokens, dead or alive: a Merge for its control operands, which change nothing
of what it gives, so here it does not wait; and a ControlTrigger, which then runs in any case. That
one runs at once outside of loops, and inside with the first operand that is alive.

An op that runs functions has them run to their end, each as a graph of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import NameLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import InterpretationError

from lowerdeck.dialects.core.defaults import default_of
from lowerdeck.dialects.core.names import given_name, unused_inputs
from lowerdeck.dialects.interpret.errors import (
    InterpretError,
    StepLimitError,
    describe,
    no_values_for,
)
from lowerdeck.dialects.interpret.graphs import GraphRunner
from lowerdeck.dialects.interpret.tf1 import run_op
from lowerdeck.dialects.interpret.tf1.functions import run_functions
from lowerdeck.dialects.tf1.attributes import CONTROL
from lowerdeck.dialects.tf1.functions import FUNCTIONAL, FunctionOp
from lowerdeck.dialects.tf1.ops import PLACEHOLDERS, FetchOp, GraphOp, Tf1Op

_SWITCHES = frozenset({"Switch", "RefSwitch", "_SwitchN"})
_MERGES = frozenset({"Merge", "RefMerge"})
_ENTERS = frozenset({"Enter", "RefEnter"})
_EXITS = frozenset({"Exit", "RefExit"})
_NEXTS = frozenset({"NextIteration", "RefNextIteration"})


@dataclass(eq=False)
class _Frame:
    """One execution of a loop; the outermost one, the graph itself, has no parent."""

    parent: _Frame | None
    parent_iteration: int
    arrived: list[dict[Operation, _Arrived]] = field(default_factory=list[Any])
    """By iteration."""
    invariants: list[tuple[SSAValue, Any]] = field(default_factory=list[Any])
    """What every iteration is given."""
    inner: dict[tuple[int, str], _Frame] = field(default_factory=dict[Any, Any])
    """The frames that were entered from this one, by iteration and name."""


@dataclass
class _Arrived:
    """The operands of an op that are there; `has_run` once it is on its way."""

    values: dict[int, Any] = field(default_factory=dict[int, Any])
    has_run: bool = False


_Use: TypeAlias = tuple[Operation, int]
_Task: TypeAlias = tuple[Operation, list[Any], _Frame, int]


def placeholders(graph: GraphOp) -> dict[str, Tf1Op]:
    """The inputs of a graph by tensor name."""
    found: dict[str, Tf1Op] = {}
    for op in graph.body.block.ops:
        if isinstance(op, Tf1Op) and op.op_type in PLACEHOLDERS:
            name = op.location.desc.data if isinstance(op.location, NameLoc) else str(len(found))
            found[given_name(op, f"{name}:0")] = op
    return found


def run_graph(
    graph: GraphOp, inputs: Mapping[str, Any], *, max_steps: int | None = None
) -> dict[str, Any]:
    """
    The fetched tensors by name for the inputs by name.

    InterpretError if a name is missing or unknown, an op cannot be run, or a fetched tensor is
    dead; StepLimitError after `max_steps` ops.
    """
    known = placeholders(graph)
    defaults = {name: default_of(op.results[0]) for name, op in known.items()}
    left_out = {name: each.array() for name, each in defaults.items() if each is not None}
    inputs = {**left_out, **inputs}
    if missing := [name for name in known if name not in inputs]:
        raise InterpretError(no_values_for(missing, inputs))
    allowed = {*known, *unused_inputs(graph)}
    if unknown := [name for name in inputs if name not in allowed]:
        raise InterpretError(f"{unknown} are not inputs; the inputs are {list(known)}")
    fed: dict[SSAValue, Any] = {
        op.results[0]: np.asarray(inputs[name]) for name, op in known.items()
    }
    around = graph.parent_op()
    ops = around.regions[0].block.ops if around is not None else ()
    functions = {op.sym_name.data: op for op in ops if isinstance(op, FunctionOp)}
    found = _Executor(graph.body.block, fed, functions, _Budget(max_steps)).run()
    fetch = graph.body.block.last_op
    assert isinstance(fetch, FetchOp)
    names = [name.data for name in fetch.names]
    if dead := [name for index, name in enumerate(names) if index not in found]:
        raise InterpretError(f"the outputs {dead} are dead, or inside a loop")
    return {name: found[index] for index, name in enumerate(names)}


@dataclass
class _Budget:
    """The ops that may still be run; None for any number."""

    left: int | None

    def spend(self) -> None:
        """Count one op."""
        if self.left is None:
            return
        if self.left <= 0:
            raise StepLimitError("the step limit is used up")
        self.left -= 1


class _Executor:
    """One run of one graph or function; `fed` are the values of placeholders or arguments."""

    def __init__(
        self,
        block: Block,
        fed: Mapping[SSAValue, Any],
        functions: Mapping[str, FunctionOp],
        budget: _Budget,
    ) -> None:
        self.block = block
        self.fed = fed
        self.functions = functions
        self.budget = budget
        self.tasks: deque[_Task] = deque()
        self.fetched: dict[int, Any] = {}
        self.uses: dict[SSAValue, list[_Use]] = {}

    def run(self) -> dict[int, Any]:
        """The operands of the block's last op by position, as far as they are alive."""
        root = _Frame(None, 0, [{}])
        for argument in self.block.args:
            self._deliver(argument, self.fed[argument], root, 0)
        for op in self.block.ops:
            is_source = not op.operands or (_is_trigger(op) and not _is_in_loop(op))
            if is_source and op is not self.block.last_op:
                self.tasks.append((op, [], root, 0))
        while self.tasks:
            self.budget.spend()
            self._execute(*self.tasks.popleft())
        return self.fetched

    def _call(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The results of a function."""
        if (function := self.functions.get(name)) is None:
            raise InterpretError(f"there is no function '{name}'")
        block = function.body.block
        fed: dict[SSAValue, Any] = dict(zip(block.args, args, strict=True))
        found = _Executor(block, fed, self.functions, self.budget).run()
        count = len(function.end.data)
        if any(index not in found for index in range(count)):
            raise InterpretError(f"a result of the function '{name}' is dead, or inside a loop")
        return [found[index] for index in range(count)]

    # One op

    def _execute(self, op: Operation, args: list[Any], frame: _Frame, iteration: int) -> None:
        """Run an op and pass on what it makes."""
        assert isinstance(op, Tf1Op)
        kind = op.op_type
        if kind in _ENTERS:
            self._enter(op, args, frame, iteration)
        elif kind in _EXITS:
            if frame.parent is None:
                raise InterpretError(f"{describe(op)} is in no frame")
            self._send(op, [args[0]], frame.parent, frame.parent_iteration)
        elif kind in _NEXTS:
            self._start_iteration(frame, iteration + 1)
            self._send(op, [args[0]], frame, iteration + 1)
        elif kind in _SWITCHES:
            self._switch(op, args, frame, iteration)
        else:
            self._send(op, self._outputs(op, args), frame, iteration)

    def _outputs(self, op: Tf1Op, args: list[Any]) -> list[Any]:
        if op.results and op.results[0] in self.fed:
            return [self.fed[op.results[0]]]
        if op.op_type in _MERGES:
            return args
        if op.op_type == "LoopCond":
            return [args[0]]
        if _is_trigger(op):
            return []
        try:
            if op.op_type in FUNCTIONAL:
                data = zip(args, op.operands, strict=True)
                return run_functions(op, [a for a, v in data if v.type != CONTROL], self._call)
            return run_op(op, args)
        except InterpretError:
            raise
        except InterpretationError as error:
            raise InterpretError(f"{describe(op)}: {error}") from error

    def _enter(self, op: Tf1Op, args: list[Any], frame: _Frame, iteration: int) -> None:
        key = iteration, op.attr("frame_name")
        if (inner := frame.inner.get(key)) is None:
            inner = frame.inner[key] = _Frame(frame, iteration, [{}])
        if not op.attr("is_constant"):
            self._send(op, [args[0]], inner, 0)
            return
        inner.invariants += [(result, args[0]) for result in op.results]
        for number in range(len(inner.arrived)):
            self._send(op, [args[0]], inner, number)

    def _start_iteration(self, frame: _Frame, iteration: int) -> None:
        if iteration < len(frame.arrived):
            return
        frame.arrived.append({})
        for value, token in frame.invariants:
            self._deliver(value, token, frame, iteration)

    def _switch(self, op: Tf1Op, args: list[Any], frame: _Frame, iteration: int) -> None:
        """The data goes to one result: of _SwitchN to the last one if there is no such number."""
        data, selector = args[0], args[1]
        count = len(op.outputs)
        chosen = int(selector.reshape(-1)[0])
        if op.op_type == "_SwitchN" and not 0 <= chosen < count:
            chosen = count - 1
        self._deliver(op.outputs[chosen], data, frame, iteration)
        if (control := op.control) is not None:
            self._deliver(control, None, frame, iteration)

    # Tokens

    def _send(self, op: Tf1Op, values: Sequence[Any], frame: _Frame, iteration: int) -> None:
        for index, result in enumerate(op.results):
            value = values[index] if index < len(values) else None
            self._deliver(result, value, frame, iteration)

    def _deliver(self, value: SSAValue, token: Any, frame: _Frame, iteration: int) -> None:
        uses = self.uses.get(value)
        if uses is None:
            uses = self.uses[value] = [(use.operation, use.index) for use in value.uses]
        for op, index in uses:
            if op is self.block.last_op:
                if frame.parent is None:
                    self.fetched[index] = token
                continue
            self._arrive(op, index, token, frame, iteration)

    def _arrive(self, op: Operation, index: int, token: Any, frame: _Frame, iteration: int) -> None:
        arrived = frame.arrived[iteration].setdefault(op, _Arrived())
        is_merge = isinstance(op, Tf1Op) and op.op_type in _MERGES
        if is_merge and op.operands[index].type != CONTROL:
            if any(op.operands[k].type != CONTROL for k in arrived.values):
                raise InterpretError(f"{describe(op)}: two of its inputs are alive")
        arrived.values[index] = token
        if is_merge:
            self._merge(op, arrived, frame, iteration)
        elif _is_trigger(op):
            if not arrived.has_run and _is_in_loop(op):
                arrived.has_run = True
                self.tasks.append((op, [], frame, iteration))
        elif len(arrived.values) == len(op.operands):
            args = [arrived.values[k] for k in range(len(op.operands))]
            del frame.arrived[iteration][op]
            self.tasks.append((op, args, frame, iteration))

    def _merge(self, op: Operation, arrived: _Arrived, frame: _Frame, iteration: int) -> None:
        """The data that arrived and its number; it does not matter when its control operands do."""
        data = [k for k in arrived.values if op.operands[k].type != CONTROL]
        if not data or arrived.has_run:
            return
        arrived.has_run = True
        args = [arrived.values[data[0]], np.array(data[0], np.int32)]
        arrived.values = dict.fromkeys(arrived.values)  # the data itself is not needed any more
        self.tasks.append((op, args, frame, iteration))


def _is_trigger(op: Operation) -> bool:
    return isinstance(op, Tf1Op) and op.op_type == "ControlTrigger"


def _is_in_loop(op: Operation) -> bool:
    """True if one way to what an op waits for leads into a loop: they all are in the same frame."""
    depth = 0
    while op.operands:
        kind = op.op_type if isinstance(op, Tf1Op) else ""
        depth += (kind in _ENTERS) - (kind in _EXITS)
        sources = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
        ways = [s for s in sources if not (isinstance(s, Tf1Op) and s.op_type in _NEXTS)]
        if not ways:
            break
        op = ways[0]
    return depth > 0


def _run(graph: GraphOp, inputs: Mapping[str, Any], max_steps: int | None) -> dict[str, Any]:
    return run_graph(graph, inputs, max_steps=max_steps)


def _inputs(graph: GraphOp) -> dict[str, SSAValue]:
    return {name: node.results[0] for name, node in placeholders(graph).items()}


GRAPHS = GraphRunner(GraphOp, _run, _inputs)
"""What the register of frameworks names."""
