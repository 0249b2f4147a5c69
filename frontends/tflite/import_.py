"""
One-to-one import of a signature of a model: one tflite op for each operator.

Subgraphs that control flow calls are regions of `core.if` and `core.loop`. What a model remembers
between calls becomes values: an input holds it before the call, an output after it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnitAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.names import STATES, named
from lowerdeck.dialects.core.types import Tensor, element_type, i1, i64, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.records import record
from lowerdeck.dialects.tflite.ops import op_class
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError, Table
from lowerdeck.frontends.tflite.model import VELA, Model, Node, Subgraph, TensorInfo

CONTROL_FLOW = frozenset(
    "WHILE IF CALL_ONCE CALL STABLEHLO_WHILE STABLEHLO_CASE STABLEHLO_COMPOSITE".split()
)
_CHOOSING = frozenset({"IF", "STABLEHLO_CASE"})
"""Operators whose first input chooses among subgraphs, which have the others."""
VARIABLES = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})

_DEEPEST = 64
"""Subgraphs that call one another."""

_SHAPED = frozenset(
    "STABLEHLO_RESHAPE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_IOTA "
    "STABLEHLO_RNG_BIT_GENERATOR".split()
)
"""Operators whose results have shapes that nothing but the file says."""

_TYPES_OF_LAST = frozenset(("output_type", "out_type", "idx_out_type"))
"""Options that are the type of the last result."""

_BODIES = {
    "STABLEHLO_REDUCE": "body_subgraph_index",
    "STABLEHLO_REDUCE_WINDOW": "body_subgraph_index",
    "STABLEHLO_SCATTER": "update_computation_subgraph_index",
    "STABLEHLO_SORT": "comparator_subgraph_index",
}
"""Operators that call a subgraph for each element."""


def import_model(
    path: str | os.PathLike[str],
    *,
    signature: str | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module for a signature, or for the first subgraph without one: `func.func @main`.

    Arguments are the subgraph's inputs, then its states. Results are its outputs, or the tensors
    `outputs` of its own, then its states. `input_shapes` replaces the shapes of inputs.
    FrontendError lists everything that prevents the import.
    """
    file = os.fspath(path)
    try:
        model = Model(file)
        graph = model.subgraph(_entry(model, signature))
        return _Importer(model, file).run(graph, outputs, input_shapes or {})
    except (FlatbufferError, UnicodeDecodeError, OverflowError) as error:
        raise FrontendError.of_file(file, f"the file is broken: {error}") from None


def _entry(model: Model, name: str | None) -> int:
    """The subgraph of a signature."""
    if name is None:
        return 0
    found: dict[str, Table] = {table["signature_key"]: table for table in model.signatures()}
    if name not in found:
        known = ", ".join(f"'{key}'" for key in found) or "none"
        raise FrontendError.of_file(model.path, f"no signature '{name}'; the model has {known}")
    return found[name]["subgraph_index"]


def unique_names(tensors: Sequence[TensorInfo], kind: str) -> list[str]:
    """The names of inputs or outputs: their tensors', or `input_K` where that is not unique."""
    counts = Counter(info.name for info in tensors)
    return [
        info.name if info.name and counts[info.name] == 1 else f"{kind}_{number}"
        for number, info in enumerate(tensors)
    ]


@record
class _Key:
    """What identifies a variable: its names, or the tensor that it is."""

    container: str
    name: str
    graph: int = -1
    tensor: int = -1


@dataclass
class _State:
    """A variable: its type, and what it begins with."""

    name: str
    type: Tensor
    initial: ConstantOp | None = None


@dataclass
class _Scope:
    """Where ops go, and what they know."""

    block: Block
    states: dict[_Key, SSAValue]
    depth: int = 0


class _Importer:
    """The import of one signature."""

    def __init__(self, model: Model, file: str) -> None:
        self.model = model
        self.file = file
        self.location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.states: dict[_Key, _State] = {}
        self.active: list[int] = []

    def run(
        self,
        graph: Subgraph,
        outputs: Sequence[str] | None,
        shapes: Mapping[str, Sequence[int]],
    ) -> ModuleOp:
        self._find_states(graph)
        self._check(graph)
        self._raise_problems()
        names = unique_names([graph.tensors[k] for k in graph.inputs], "input")
        block = Block(arg_types=self._input_types(graph, names, shapes))
        self._raise_problems()
        arguments: list[SSAValue | _Key] = list(block.args)
        for argument, name in zip(block.args, names, strict=True):
            argument.location = self._locate(name)
        scope = _Scope(block, {})
        for key, state in self.states.items():
            scope.states[key] = block.insert_arg(state.type, len(block.args))
        wanted, result_names = self._wanted(graph, outputs)
        self._raise_problems()
        results = self._inline(graph, arguments, scope, wanted)
        self._raise_problems()
        values = [value for value in results if isinstance(value, SSAValue)]
        for value, name in zip(results, result_names, strict=True):
            if isinstance(value, _Key):
                self._report("", "", f"the output '{name}' is a variable, expected numbers")
        self._raise_problems()
        taken = {*names, *result_names}
        befores = [_fresh(state.name, taken) for state in self.states.values()]
        afters = [_fresh(f"{name}_next", taken) for name in befores]
        values += [scope.states[key] for key in self.states]
        last = func.ReturnOp(*values)
        block.add_op(last)
        main = func.FuncOp(
            "main",
            (block.arg_types, last.arguments.types),
            Region(block),
            arg_attrs=named([*names, *befores]),
            res_attrs=named([*result_names, *afters]),
        )
        main.location = last.location = self.location
        if self.states:
            main.attributes[STATES] = ArrayAttr(
                ArrayAttr([StringAttr(before), StringAttr(after), _initial(state)])
                for before, after, state in zip(befores, afters, self.states.values(), strict=True)
            )
        return ModuleOp([main])

    # Problems

    def _report(self, node: str, op_type: str, message: str) -> None:
        self.problems.append(Problem(self.file, node, op_type, message))

    def _raise_problems(self) -> None:
        if self.problems:
            raise FrontendError(self.problems)

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(name), self.location)

    def _check(self, graph: Subgraph) -> None:
        """Report all operators that have no op, in all subgraphs that the graph calls."""
        for each in self._reached(graph):
            for node in each.nodes:
                if node.builtin not in CONTROL_FLOW and op_class(node.builtin) is None:
                    self._report(node_name(each, node), node.op_type, "the operator is not known")
                elif node.custom_code == VELA:
                    step = "give the .tflite file that Vela was given"
                    text = f"holds commands for a processor of neural networks; {step}"
                    self._report(node_name(each, node), node.op_type, text)

    def _reached(self, graph: Subgraph) -> list[Subgraph]:
        found: dict[int, Subgraph] = {}
        pending = [graph]
        while pending:
            each = pending.pop()
            if each.index not in found:
                found[each.index] = each
                pending += [self.model.subgraph(k) for node in each.nodes for k in called_by(node)]
        return [found[index] for index in sorted(found)]

    # Inputs and outputs

    def _input_types(
        self, graph: Subgraph, names: Sequence[str], shapes: Mapping[str, Sequence[int]]
    ) -> list[Attribute]:
        symbols = Symbols()
        types: list[Attribute] = []
        for name in shapes.keys() - set(names):
            known = ", ".join(f"'{known}'" for known in names)
            self._report("", "", f"a shape is given for '{name}', but the inputs are {known}")
        for index, name in zip(graph.inputs, names, strict=True):
            info = graph.tensors[index]
            if info.element is None:
                self._report(name, "input", f"found a tensor of type {info.type}, expected numbers")
                continue
            dims: list[ExprLike] = [
                symbols.unnamed() if size < 0 else size for size in info.signature
            ]
            if name in shapes:
                dims = self._given(name, list(shapes[name]), dims)
            types.append(tensor(info.element, dims))
        return types

    def _given(self, name: str, given: list[int], dims: list[ExprLike]) -> list[ExprLike]:
        fits = len(given) == len(dims) and all(size >= 0 for size in given)
        if not fits:
            self._report("", "", f"the shape {given} is given for '{name}' of rank {len(dims)}")
        return [*given]

    def _wanted(
        self, graph: Subgraph, outputs: Sequence[str] | None
    ) -> tuple[list[int], list[str]]:
        """The tensors that are returned, and their names."""
        known = unique_names([graph.tensors[k] for k in graph.outputs], "output")
        if outputs is None:
            return list(graph.outputs), known
        places = {info.name: index for index, info in enumerate(graph.tensors) if info.name}
        places |= zip(known, graph.outputs, strict=True)
        for name in outputs:
            if name not in places:
                some = ", ".join(f"'{name}'" for name in known)
                self._report("", "", f"no tensor is named '{name}'; the outputs are {some}")
        return [places[name] for name in outputs if name in places], list(outputs)

    # States

    def _find_states(self, graph: Subgraph) -> None:
        """The variables that a graph, and what it calls, reads or writes."""
        handles = self._find_handles(graph)
        assigned: set[_Key] = set()
        for each in self._reached(graph):
            own = handles[each.index]
            for node in each.nodes:
                if node.builtin == "READ_VARIABLE" and len(node.inputs) == len(node.outputs) == 1:
                    self._add_states(each, node, own.get(node.inputs[0], ()), node.outputs[0])
                elif node.builtin == "ASSIGN_VARIABLE" and len(node.inputs) == 2:
                    assigned.update(keys := own.get(node.inputs[0], ()))
                    self._add_states(each, node, keys, node.inputs[1])
                for index in self._own_states(each, node):
                    assigned.add(key := _Key("", each.tensors[index].name, each.index, index))
                    self._add_states(each, node, [key], index)
        for key in self.states.keys() - assigned:
            self._report(key.name, "READ_VARIABLE", "the variable is read, but nothing assigns it")

    def _find_handles(self, graph: Subgraph) -> dict[int, dict[int, dict[_Key, None]]]:
        """The variables that tensors of each reached graph may be handles of."""
        reached = self._reached(graph)
        found = {each.index: dict[int, dict[_Key, None]]() for each in reached}
        for each in reached:
            for node in each.nodes:
                if node.builtin == "VAR_HANDLE" and node.outputs:
                    found[each.index][node.outputs[0]] = {_key(node): None}
        pending = reached
        while pending:
            each = pending.pop()
            for node in each.nodes:
                given = node.inputs[1:] if node.builtin in _CHOOSING else node.inputs
                for called in map(self.model.subgraph, called_by(node)):
                    for index, argument in zip(called.inputs, given, strict=False):
                        keys = found[each.index].get(argument, {})
                        known = found[called.index].setdefault(index, {})
                        if keys.keys() - known.keys():
                            known.update(keys)
                            pending.append(called)
        return found

    def _own_states(self, graph: Subgraph, node: Node) -> Iterator[int]:
        """The variable tensors that an operator reads and writes."""
        for index in node.inputs:
            if index >= 0 and graph.tensors[index].is_variable and index not in graph.written:
                yield index

    def _add_states(self, graph: Subgraph, node: Node, keys: Iterable[_Key], index: int) -> None:
        for key in keys:
            if key not in self.states:
                self._add_state(graph, node, key, index)

    def _add_state(self, graph: Subgraph, node: Node, key: _Key, index: int) -> None:
        info = graph.tensors[index]
        if info.element is None or any(size < 0 for size in info.signature):
            self._report(
                node_name(graph, node), node.op_type, f"a variable of type {info.type} of open size"
            )
            return
        name = key.name or f"state_{len(self.states)}"
        self.states[key] = _State(name, tensor(info.element, info.shape), _first(info))

    # Graphs

    def _inline(
        self,
        graph: Subgraph,
        arguments: Sequence[SSAValue | _Key],
        scope: _Scope,
        wanted: Sequence[int] | None = None,
    ) -> list[SSAValue | _Key]:
        """Add the ops of a subgraph to a block; the values of its outputs."""
        if graph.index in self.active or scope.depth > _DEEPEST:
            raise FlatbufferError(f"subgraph {graph.index} calls itself")
        if len(arguments) != len(graph.inputs):
            raise FlatbufferError(
                f"subgraph {graph.index} has {len(graph.inputs)} inputs, given {len(arguments)}"
            )
        self.active.append(graph.index)
        values: dict[int, SSAValue | _Key] = dict(zip(graph.inputs, arguments, strict=True))
        for node in graph.nodes:
            self._node(graph, node, values, scope)
        wanted = graph.outputs if wanted is None else wanted
        results = [self._value(graph, index, values, scope) for index in wanted]
        self.active.pop()
        return results

    def _value(
        self, graph: Subgraph, index: int, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> SSAValue | _Key:
        """The value of a tensor: computed, a state or a constant."""
        if index in values:
            return values[index]
        info = graph.tensors[index]
        key = _Key("", info.name, graph.index, index)
        if info.is_variable and key in scope.states:
            return scope.states[key]
        op = self.model.constant(info)
        if op is None:
            raise FlatbufferError(
                f"tensor {index} '{info.name}' of type {info.type} has no data, and no operator "
                "before computes it"
            )
        op.location = self._locate(info.name or f"tensor_{index}")
        scope.block.add_op(op)
        values[index] = op.result
        return op.result

    def _operand(
        self, graph: Subgraph, index: int, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> SSAValue:
        value = self._value(graph, index, values, scope)
        if isinstance(value, _Key):
            self._raise_problems()
            raise FlatbufferError(f"tensor {index} is a handle of a variable")
        return value

    def _node(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> None:
        if len(node.inputs) < (least := _LEAST_INPUTS.get(node.builtin, 0)):
            raise FlatbufferError(
                f"operator {node.index} has {len(node.inputs)} inputs, expected {least}"
            )
        match node.builtin:
            case "VAR_HANDLE":
                values[_one(node.outputs)] = _key(node)
            case "READ_VARIABLE":
                values[_one(node.outputs)] = self._variable(graph, node, values, scope)[1]
            case "ASSIGN_VARIABLE":
                key, _ = self._variable(graph, node, values, scope)
                scope.states[key] = self._operand(graph, node.inputs[1], values, scope)
            case "CALL_ONCE":
                self._initialize(self.model.subgraph(called_by(node)[0]))
            case "IF":
                self._if(graph, node, values, scope)
            case "STABLEHLO_CASE":
                self._case(graph, node, values, scope)
            case "WHILE" | "STABLEHLO_WHILE":
                self._while(graph, node, values, scope)
            case "CALL" | "STABLEHLO_COMPOSITE":
                inner = [self._value(graph, k, values, scope) for k in node.inputs]
                deeper = _Scope(scope.block, scope.states, scope.depth + 1)
                called = self.model.subgraph(called_by(node)[0])
                _give(node, values, self._inline(called, inner, deeper))
            case _:
                self._op(graph, node, values, scope)

    def _op(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> None:
        cls = op_class(node.builtin)
        assert cls is not None
        present = [k for k in node.inputs if k >= 0]
        changed = list(self._own_states(graph, node))
        results = [*node.outputs, *changed]
        if any(graph.tensors[k].element is None for k in (*present, *results)):
            types = {graph.tensors[k].type for k in (*present, *results)}
            text = f"tensors of type {', '.join(sorted(types))}, expected numbers"
            self._report(node_name(graph, node), node.op_type, text)
            values.update((index, _Key("", node.op_type)) for index in results)
            return
        inputs = [None if k < 0 else self._operand(graph, k, values, scope) for k in node.inputs]
        infos = [graph.tensors[k] for k in results]
        op = cls(
            inputs,
            [UnrankedTensorType(info.element or i64) for info in infos],
            self._options(graph, node),
            [graph.tensors[k].quantization for k in (*present, *results)],
            [None if k < 0 else graph.tensors[k].quantization for k in node.intermediates],
        )
        op.location = self._locate(node_name(graph, node))
        scope.block.add_op(op)
        for index, result in zip(node.outputs, op.results, strict=False):
            values[index] = result
        for index, result in zip(changed, op.results[len(node.outputs) :], strict=True):
            scope.states[_Key("", graph.tensors[index].name, graph.index, index)] = result

    def _options(self, graph: Subgraph, node: Node) -> dict[str, Any]:
        """The options; what is not among them, but in the file: a shape, a subgraph's operator."""
        options = node.options()
        if node.builtin in _SHAPED and node.outputs and node.outputs[-1] >= 0:
            options["shape"] = list(graph.tensors[node.outputs[-1]].shape)
        if (name := _BODIES.get(node.builtin)) is not None:
            options["body"] = body_of(self.model.subgraph(options.pop(name, 0)))
        for stated in (options.keys() & _TYPES_OF_LAST) if node.outputs else ():
            last = graph.tensors[node.outputs[-1]]
            if options[stated] != last.type:
                raise FlatbufferError(
                    f"operator {node.index} with {stated} {options[stated]} has the result "
                    f"'{last.name}' of {last.type}"
                )
        return options

    def _variable(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> tuple[_Key, SSAValue]:
        """The variable that an operator reads or writes, and what it holds now."""
        key = self._value(graph, node.inputs[0], values, scope) if node.inputs else None
        if not isinstance(key, _Key) or key not in scope.states:
            raise FlatbufferError(f"operator {node.index} has no variable as its first input")
        return key, scope.states[key]

    def _initialize(self, graph: Subgraph) -> None:
        """What the subgraph of the first call assigns is what variables begin with."""
        scope = _Scope(Block(), {})
        for key, state in self.states.items():
            scope.states[key] = Block(arg_types=[state.type]).args[0]
        before = dict(scope.states)
        self._inline(graph, [], scope)
        for key, value in scope.states.items():
            if value is before[key]:
                continue
            owner = value.owner
            if not isinstance(owner, ConstantOp):
                node = "" if isinstance(owner, Block) else owner.name
                self._report(
                    key.name, node, "a variable begins with what is computed, not with a constant"
                )
                continue
            self.states[key].initial = owner

    # Control flow

    def _if(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> None:
        condition = self._operand(graph, node.inputs[0], values, scope)
        given = [self._value(graph, k, values, scope) for k in node.inputs[1:]]
        branches = called_by(node)
        kept, results = self._branch(graph, node, given, branches, [condition], scope)
        self._take(node, kept, results, values, scope)

    def _case(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> None:
        """One of several subgraphs, by number; the last one for a number that none has."""
        index = self._operand(graph, node.inputs[0], values, scope)
        given = [self._value(graph, k, values, scope) for k in node.inputs[1:]]
        branches = called_by(node)
        if not branches:
            raise FlatbufferError(f"operator {node.index} has no branches")
        conditions: list[SSAValue] = []
        cls = op_class("EQUAL")
        assert cls is not None
        for number in range(len(branches) - 1):
            constant = ConstantOp.of(np.array(number, np.int32))
            equal = cls([index, constant.result], [UnrankedTensorType(i1)], {})
            constant.location = equal.location = self._locate(node_name(graph, node))
            scope.block.add_ops([constant, equal])
            conditions.append(equal.results[0])
        kept, results = self._branch(graph, node, given, branches, conditions, scope)
        self._take(node, kept, results, values, scope)

    def _branch(
        self,
        graph: Subgraph,
        node: Node,
        given: Sequence[SSAValue | _Key],
        branches: Sequence[int],
        conditions: Sequence[SSAValue],
        scope: _Scope,
    ) -> tuple[list[SSAValue | _Key], list[SSAValue]]:
        """
        What the first subgraph whose condition holds, or else the last one, gives; and these
        results with the states, as values of the scope.
        """
        if not conditions:
            kept = self._inline(self.model.subgraph(branches[0]), given, scope)
            yields = [value for value in kept if isinstance(value, SSAValue)]
            return kept, [*yields, *scope.states.values()]
        regions: list[Region] = []
        types: list[Attribute] = []
        kept: list[SSAValue | _Key] = []
        none: Sequence[SSAValue] = ()
        for others, rest in ((branches[:1], none), (branches[1:], conditions[1:])):
            block = Block()
            inner = _Scope(block, dict(scope.states), scope.depth + 1)
            kept, yields = self._branch(graph, node, given, others, rest, inner)
            block.add_op(YieldOp(yields))
            regions.append(Region(block))
            types = [_unranked(value) for value in yields]
        op = IfOp(conditions[0], regions[0], regions[1], result_types=types)
        op.location = self._locate(node_name(graph, node))
        scope.block.add_op(op)
        return kept, list(op.results)

    def _while(
        self, graph: Subgraph, node: Node, values: dict[int, SSAValue | _Key], scope: _Scope
    ) -> None:
        given = [self._value(graph, k, values, scope) for k in node.inputs]
        decide, repeat = (self.model.subgraph(index) for index in called_by(node))
        first = _Scope(scope.block, scope.states, scope.depth + 1)
        condition = _value_of(self._inline(decide, given, first))
        tensors = [value for value in given if isinstance(value, SSAValue)]
        inits = [*tensors, *scope.states.values()]
        block = Block(arg_types=[tensor(i64, []), *map(_unranked, inits)])
        _, *carried = block.args
        arguments = iter(carried)
        inside: list[SSAValue | _Key] = [
            value if isinstance(value, _Key) else next(arguments) for value in given
        ]
        states: dict[_Key, SSAValue] = dict(zip(scope.states, carried[len(tensors) :], strict=True))
        inner = _Scope(block, states, scope.depth + 1)
        after = self._inline(repeat, inside, inner)
        going = _value_of(self._inline(decide, after, inner))
        yields = [value for value in after if isinstance(value, SSAValue)]
        if len(yields) != len(tensors):
            raise FlatbufferError(f"operator {node.index} changes the number of its tensors")
        block.add_op(YieldOp([going, *yields, *inner.states.values()]))
        op = LoopOp(None, condition, inits, Region(block))
        op.location = self._locate(node_name(graph, node))
        scope.block.add_op(op)
        self._take(node, after, list(op.results), values, scope)

    def _take(
        self,
        node: Node,
        yielded: Sequence[SSAValue | _Key],
        results: list[SSAValue],
        values: dict[int, SSAValue | _Key],
        scope: _Scope,
    ) -> None:
        """Let results of control flow be the node's outputs, and what states hold after it."""
        rest = iter(results)
        given = [value if isinstance(value, _Key) else next(rest) for value in yielded]
        _give(node, values, given)
        for key in scope.states:
            scope.states[key] = next(rest)


_SUBGRAPHS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "CALL_ONCE": ("init_subgraph_index",),
    "CALL": ("subgraph",),
    "STABLEHLO_WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "STABLEHLO_COMPOSITE": ("decomposition_subgraph_index",),
}
"""Options that name a subgraph."""


def called_by(node: Node) -> list[int]:
    """The subgraphs that an operator calls, in the order of its options."""
    if node.builtin not in CONTROL_FLOW:
        return []
    options = node.options()
    if node.builtin == "STABLEHLO_CASE":
        return list(options.get("branch_subgraph_indices", ()))
    found = [options.get(name, 0) for name in _SUBGRAPHS[node.builtin]]
    return [value if isinstance(value, int) else 0 for value in found]


def body_of(graph: Subgraph) -> str:
    """
    The operator that a subgraph of two elements consists of, of a comparison its direction; empty
    if it gives the second element. Anything else has a name that no operator has.
    """
    if not graph.nodes and graph.outputs == graph.inputs[1:2]:
        return ""
    if len(graph.nodes) != 1 or graph.nodes[0].outputs != graph.outputs:
        return f"subgraph {graph.index} of {len(graph.nodes)} operators"
    node = graph.nodes[0]
    name = node.builtin.removeprefix("STABLEHLO_").removeprefix("LOGICAL_")
    if name == "COMPARE":
        name = str(node.options().get("comparison_direction", "EQ")).rpartition("_")[2]
    name = {"LESS": "LT", "GREATER": "GT"}.get(name, name)
    is_turned = node.inputs == graph.inputs[1::-1]
    if is_turned and name in ("LT", "GT"):
        return "GT" if name == "LT" else "LT"
    return name if is_turned or node.inputs == graph.inputs[:2] else f"{name} of other tensors"


def node_name(graph: Subgraph, node: Node) -> str:
    """How messages call an operator: by its first output, or by its number."""
    name = graph.tensors[node.outputs[0]].name if node.outputs and node.outputs[0] >= 0 else ""
    return name or f"{node.op_type}_{node.index}"


def _key(node: Node) -> _Key:
    options = node.options()
    return _Key(str(options.get("container", "")), str(options.get("shared_name", "")))


_LEAST_INPUTS = {"ASSIGN_VARIABLE": 2, "IF": 1, "STABLEHLO_CASE": 1}


def _one(outputs: Sequence[int]) -> int:
    if len(outputs) != 1:
        raise FlatbufferError(f"{len(outputs)} outputs, expected 1")
    return outputs[0]


def _give(
    node: Node, values: dict[int, SSAValue | _Key], results: Sequence[SSAValue | _Key]
) -> None:
    if len(results) != len(node.outputs):
        raise FlatbufferError(
            f"operator {node.index} has {len(node.outputs)} outputs, its subgraph {len(results)}"
        )
    values.update(zip(node.outputs, results, strict=True))


def _value_of(results: Sequence[SSAValue | _Key]) -> SSAValue:
    (value,) = results if len(results) == 1 else (None,)
    if not isinstance(value, SSAValue):
        raise FlatbufferError("a condition that is no tensor")
    return value


def _unranked(value: SSAValue) -> Attribute:
    return UnrankedTensorType(element_type(value))


def _fresh(name: str, taken: set[str]) -> str:
    found, count = name, 1
    while found in taken:
        found, count = f"{name}_{count}", count + 1
    taken.add(found)
    return found


def _first(info: TensorInfo) -> ConstantOp | None:
    """What a variable begins with: zero, which quantized bytes have another integer for."""
    q = info.quantization
    if info.type != "INT8" or not info.is_variable or q is None or not q.zero:
        return None
    return ConstantOp.of(np.broadcast_to(np.array(q.zero, np.int8), info.shape))


def _initial(state: _State) -> Attribute:
    return UnitAttr() if state.initial is None else state.initial.value
