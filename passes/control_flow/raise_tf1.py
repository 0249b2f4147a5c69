"""`raise-tf1-control-flow`: graphs of TensorFlow 1 become functions with loops and branches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.names import (
    DEFAULT,
    NAME,
    UNUSED,
    given_name,
    named,
    unused_inputs,
)
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.tf1.functions import FunctionOp
from lowerdeck.dialects.tf1.ops import GraphOp, Tf1Op
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.arrays import refresh_flows
from lowerdeck.passes.control_flow.emit import Emitter
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import find_frames
from lowerdeck.passes.control_flow.graph import (
    Graph,
    Node,
    Problem,
    Value,
    data_reachable,
    placeholders,
    refuse,
)
from lowerdeck.passes.control_flow.loops import LoopRaiser
from lowerdeck.passes.control_flow.predicates import TRUE, Predicates
from lowerdeck.passes.control_flow.read import read_graph
from lowerdeck.passes.control_flow.regions import Plan, plan, unmerged
from lowerdeck.passes.control_flow.show import STEPS, choices_text, frames_text, plans_text
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.driver import is_enabled

Observer: TypeAlias = Callable[[str, Callable[[], str]], None]
"""Told of each of the `STEPS` when it is done, and how to get its text."""


def raise_graph(
    graph: GraphOp,
    functions: Mapping[str, FunctionOp],
    observer: Observer = lambda step, text: None,
) -> FuncOp:
    """
    The function that computes what a graph's fetches ask for; `functions` are those of its library.

    CompileError lists every node that cannot be raised, with its frame and predicate.
    """
    read = read_graph(graph, functions)
    refuse(_calls(read))
    *inner, root = find_frames(read)
    frames = {node: frame for frame in (root, *reversed(inner)) for node in frame.nodes}
    refuse(refresh_flows(list(frames), frames))
    observer("frames", lambda: frames_text([*inner, root]))
    reached = data_reachable(read.fetches)  # raising takes the graph apart
    predicates = Predicates()
    raiser = LoopRaiser(predicates)
    problems: list[Problem] = []
    for frame in inner:
        assert frame.parent is not None
        problems += raiser.close(frame, frame.parent)
    refuse(problems)
    observer("loops", lambda: frames_text([*inner, root]))
    flow = raiser.analyze(root)
    refuse(raiser.effects(read.effects, frames))
    observer("choices", lambda: choices_text(flow))
    for frame in (*inner, root):
        # What is wrong inside makes more seem wrong outside.
        problems += raiser.check(frame) or ([] if frame is root else raiser.build(frame))
        refuse(problems)
    refuse([*_dead_fetches(read, flow), *unmerged(flow, read.fetches)])
    made = plan(flow, read.fetches, TRUE)
    observer("plans", lambda: plans_text(raiser.loops.items(), made))
    arguments = _arguments(reached, [made, *raiser.plans])
    block = Block(arg_types=[node.op.results[0].type for node in arguments])
    for node, argument in zip(arguments, block.args, strict=True):
        argument.name_hint = node.op.results[0].name_hint
    values = dict(zip((Value(node, 0) for node in arguments), block.args, strict=True))
    results = Emitter(raiser.loops, values).emit(made, {}, block)
    block.add_op(ReturnOp(*results))
    types = ([value.type for value in block.args], [value.type for value in results])
    function = FuncOp(
        graph.sym_name.data,
        types,
        Region(block),
        arg_attrs=ArrayAttr(map(_attributes, arguments)),
        res_attrs=named(read.names),
    )
    # Inputs that are there only for what they control may be given, but change nothing.
    names = set(map(_input_name, arguments))
    others = {name for name in map(_input_name, placeholders(graph)) if name not in names}
    if unused := sorted(others.union(unused_inputs(graph))):
        function.attributes[UNUSED] = ArrayAttr(map(StringAttr, unused))
    return function


def _arguments(reached: Iterable[Node], plans: Sequence[Plan]) -> list[Node]:
    """
    The placeholders that the fetches need, by name. Not those that are needed only to run before
    others, unless they decide what is alive.
    """
    leaves = (leaf.node for made in plans for leaf in made.leaves)
    found = {node for node in (*reached, *leaves) if node.is_a(kinds.Argument)}
    return sorted(found, key=lambda node: given_name(node.op, node.name))


def _input_name(node: Node) -> str:
    return given_name(node.op, f"{node.name}:0")


def _attributes(node: Node) -> DictionaryAttr:
    """Those of the argument that an input becomes: its name, and what it is if it is left out."""
    default = node.op.attributes.get(DEFAULT)
    entries: dict[str, Attribute] = {NAME: StringAttr(_input_name(node))}
    return DictionaryAttr(entries if default is None else {**entries, DEFAULT: default})


def _calls(graph: Graph) -> list[Problem]:
    return [
        Problem(node, "found an operator that calls a function in a way that is not supported")
        for node in graph.nodes
        if isinstance(node.op, Tf1Op)
        and node.is_a(kinds.Operator)
        and any(attr.kind in ("func", "list(func)") for attr in node.op.signature.attrs.values())
    ]


def _dead_fetches(graph: Graph, flow: Flow) -> list[Problem]:
    return [
        Problem(
            value.node,
            f"found the fetch '{name}' alive only if {flow.predicates.describe(alive)}, "
            "expected always; name what a Merge gives as --output",
        )
        for value, name in zip(graph.fetches, graph.names, strict=True)
        if (alive := flow.alive(value)) != TRUE
    ]


@dataclass(frozen=True)
class RaiseTf1ControlFlowPass(ModulePass):
    """
    Raise every `tf1.graph` to a function with `core.loop` and `core.if` around tf1 ops.

    - Enter, Exit, NextIteration and the Merges that they feed -> core.loop
    - Switch and Merge -> core.if
    - While, If, Case -> what they are in this form; calls -> the nodes of the `tf1.function`
    - A Placeholder -> an argument; control edges -> nothing, once it is known what is alive

    The structure of the graph decides, never names or the order of nodes. What cannot be raised is
    refused, all of it at once: each node with its frame, and its predicate where there is one.

    `show` names steps whose outcome goes to stderr as text: `frames` (which nodes make one loop),
    `loops` (each frame as a node of the one around it), `choices` (when nodes are alive, and what
    Merges stand for) and `plans` (what is computed in which region).
    """

    name = "raise-tf1-control-flow"
    optional: ClassVar[bool] = False
    show: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not is_enabled(self, options_of(ctx)):
            return
        if unknown := [step for step in self.show if step not in STEPS]:
            raise CompileError(
                f"{self.name}: found no steps {', '.join(unknown)}, expected of {', '.join(STEPS)}"
            )
        inner = list(op.body.block.ops)
        functions = {f.sym_name.data: f for f in inner if isinstance(f, FunctionOp)}
        for graph in inner:
            if isinstance(graph, GraphOp):
                function = raise_graph(graph, functions, self._print)
                Rewriter.replace_op(graph, [function], [])
        for function in functions.values():
            Rewriter.erase_op(function)

    def _print(self, step: str, text: Callable[[], str]) -> None:
        if step in self.show:
            print(f"{step}\n{text()}\n", file=sys.stderr)
