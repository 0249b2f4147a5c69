"""
Import of a MindIR model: one mindir op for each application of a primitive.

Graphs that call one another are raised by `graphs.py`. A parameter that the model assigns is a
state: an input holds it before the call, an output after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import (
    ModuleOp,
)
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.types import MAX_RANK, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.mindir.ops import op_class
from lowerdeck.dialects.mindir.schema import STRUCTURE
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.main import State, fresh, main_module
from lowerdeck.frontends.mindir.emitter import ChangedError, Emitter
from lowerdeck.frontends.mindir.graphs import Evaluator
from lowerdeck.frontends.mindir.mind_ir_pb2 import ValueInfoProto
from lowerdeck.frontends.mindir.model import ELEMENTS, MindirError, Model
from lowerdeck.frontends.mindir.values import Memory, Value
from lowerdeck.frontends.symbols import Symbols


def import_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module for a model: `func.func @main`.

    Arguments are the model's inputs, then its states. Results are its outputs, or those of them
    that `outputs` names, then its states. `input_shapes` replaces the shapes of inputs.
    FrontendError lists everything that prevents the import.
    """
    file = os.fspath(path)
    model = Model(file)
    changed: set[str] = set()
    while True:
        importer = _Importer(Emitter(model, changed))
        try:
            return importer.run(outputs, input_shapes or {})
        except ChangedError as error:
            # A parameter that turns out to be assigned is an argument the next time.
            changed.add(error.name)
        except (MindirError, VerifyException, RecursionError) as error:
            raise FrontendError.of_file(file, f"the model is broken: {error}"[:500]) from None


class _Importer:
    """The import of one model."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.model = emitter.model
        self.file = emitter.file
        self.changed = emitter.changed
        self._problems: list[Problem] = []
        self._symbols = Symbols()

    def run(self, outputs: Sequence[str] | None, shapes: Mapping[str, Sequence[int]]) -> ModuleOp:
        """The module; FrontendError lists everything that is wrong."""
        self._check()
        evaluator = Evaluator(self.emitter)
        graph = self.model.main
        arguments: list[Value] = []
        for info in graph.proto.input:
            arguments.append(self._input(info, shapes, evaluator))
        self._require_names(shapes, graph.inputs, "input")
        self._raise_problems()
        memory = Memory({name: self._state(name, evaluator) for name in sorted(self.changed)})
        done = evaluator.result_of(graph.name, arguments, self.emitter.main, memory)
        names, values = self._outputs(done.value, outputs, evaluator)
        self._raise_problems()
        return self._module(graph.inputs, names, values, done.memory)

    def _module(
        self, inputs: Sequence[str], names: Sequence[str], values: Sequence[SSAValue], after: Memory
    ) -> ModuleOp:
        states = sorted(self.changed)
        taken = {*inputs, *names}
        befores = [fresh(name.rpartition(":")[2], taken) for name in states]
        kept = [
            State(
                before,
                fresh(f"{before}_next", taken),
                after.held[name],
                self.emitter.initial(name).value,
            )
            for name, before in zip(states, befores, strict=True)
        ]
        results = list(zip(names, values, strict=True))
        return main_module(self.emitter.main, inputs, results, kept, self.emitter.whole())

    # Problems and places

    def _check(self) -> None:
        """Report all primitives that have no op, in all graphs that the model calls."""
        main = self.model.main.name
        for name in (main, *sorted(self.model.reached(main))):
            for node in self.model.graphs[name].nodes.values():
                primitive = self.model.primitive_name(node)
                if primitive is None or primitive in STRUCTURE or op_class(primitive) is not None:
                    continue
                text = "the primitive is not known"
                self._problems.append(Problem(self.file, node.output, primitive, text))
        self._raise_problems()

    def _report(self, message: str) -> None:
        self._problems.append(Problem(self.file, "", "", message))

    def _raise_problems(self) -> None:
        if self._problems:
            raise FrontendError(self._problems)

    def _require_names(self, given: Mapping[str, object], known: Sequence[str], what: str) -> None:
        for name in given.keys() - set(known):
            some = ", ".join(f"'{one}'" for one in known)
            self._report(f"a shape is given for '{name}', but the {what}s are {some}")

    # Inputs, outputs, states

    def _input(
        self, info: ValueInfoProto, shapes: Mapping[str, Sequence[int]], evaluator: Evaluator
    ) -> Value:
        proto = info.tensor[0] if len(info.tensor) == 1 else None
        kind = None if proto is None else ELEMENTS.get(proto.data_type)
        if proto is None or kind is None:
            self._report(f"input '{info.name}': found something else than a tensor of numbers")
            return None
        sizes = list(proto.dims)
        if info.name in shapes:
            given = list(shapes[info.name])
            if -2 not in sizes and (len(given) != len(sizes) or any(n < 0 for n in given)):
                self._report(f"the shape {given} is given for '{info.name}' of {len(sizes)} sizes")
            sizes = given
        if -2 in sizes or len(sizes) > MAX_RANK:
            self._report(
                f"input '{info.name}': found an open number of dimensions or over {MAX_RANK}; "
                f"give its shape (--input-shape '{info.name}=...')"
            )
            return None
        dims: list[ExprLike] = [self._symbols.unnamed() if n < 0 else n for n in sizes]
        argument = self.emitter.main.insert_arg(tensor(kind, dims), len(self.emitter.main.args))
        argument.location = self.emitter.locate(info.name)
        self.emitter.dims[argument] = tuple(sizes)
        return argument

    def _outputs(
        self, value: Value, wanted: Sequence[str] | None, evaluator: Evaluator
    ) -> tuple[list[str], list[SSAValue]]:
        """Names and values of the results: those of tuples are numbered."""
        found: list[SSAValue] = []
        for one in _flattened(value):
            if isinstance(one, SSAValue):
                found.append(one)
            elif isinstance(one, int | float):
                found.append(self.emitter.number(one, self.emitter.main))
            elif one is not None:
                self._report("found an output that is no tensor, expected tensors")
        name = self.model.main.output
        names = [f"{name}:{k}" for k in range(len(found))] if isinstance(value, tuple) else [name]
        if wanted is None:
            return names, found
        by_name = dict(zip(names, found, strict=True))
        for one in wanted:
            if one not in by_name:
                some = ", ".join(f"'{known}'" for known in names)
                self._report(f"no output is named '{one}'; the outputs are {some}")
        kept = [one for one in wanted if one in by_name]
        return kept, [by_name[one] for one in kept]

    def _state(self, name: str, evaluator: Evaluator) -> SSAValue:
        """The argument that holds a parameter before the call."""
        type_ = self.emitter.initial(name).result.type
        argument = self.emitter.main.insert_arg(type_, len(self.emitter.main.args))
        self.emitter.dims[argument] = tuple(self.model.parameters[name].dims)
        return argument


def _flattened(value: Value) -> Iterator[Value]:
    if isinstance(value, tuple):
        for item in value:
            yield from _flattened(item)
    else:
        yield value
