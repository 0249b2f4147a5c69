"""One-to-one import of ONNX models, without any decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import onnx
from numpy.typing import ArrayLike
from onnx import GraphProto, ModelProto, TensorShapeProto
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region

from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import dims_of, element_type, i64, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.onnx.convert import (
    FunctionKey,
    FunctionMaker,
    GraphBuilder,
    NodeProblem,
    Scope,
    domain_of,
    names_used,
    node_name,
)
from lowerdeck.dialects.onnx.ops import OPSET, InitializerOp
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.fixed import fixed_array, unknown_input
from lowerdeck.frontends.onnx.contrib import ModelWeights, function_makers
from lowerdeck.frontends.onnx.parse import TensorLoader, check_model, model_opset, parse_model
from lowerdeck.frontends.symbols import Symbols


def import_model(
    source: str | os.PathLike[str] | ModelProto,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
) -> ModuleOp:
    """
    The module for a model: `func.func @main` with one onnx op for each node.

    `outputs` names the tensors of the main graph to return in place of its outputs; nodes that they
    do not need are left out. `input_shapes` replaces the shapes of inputs. An input that has an
    initializer is a constant, not an argument, and so is one to which `fixed` gives a value. Calls
    of the model's own functions are inlined. FrontendError lists everything that prevents the
    import.
    """
    if isinstance(source, ModelProto):
        file, model, loader = "model", source, TensorLoader(None)
        check_model(file, model)
    else:
        file = os.fspath(source)
        model, loader = parse_model(file), TensorLoader(file)
    try:
        return _Importer(file, model, loader).run(outputs, dict(input_shapes or {}), fixed or {})
    except RecursionError:
        raise FrontendError.of_file(file, "its subgraphs are nested too deeply") from None


def _same(function: onnx.FunctionProto, node: onnx.NodeProto) -> onnx.FunctionProto:
    """A function of the model, which is the same for all nodes."""
    del node
    return function


_UNKNOWN = ("none", "null", "nan", "unk", "unknown")
"""Placeholders for an unknown dimension that exporters write as its name, in lower case."""


class _Importer:
    """The import of one model."""

    def __init__(self, file: str, model: ModelProto, loader: TensorLoader) -> None:
        self.file = file
        self.model = model
        self.file_location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.builder = GraphBuilder(
            model_opset(model),
            self.locate,
            loader,
            self._functions(),
        )
        self.symbols = Symbols()

    def locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(name), self.file_location)

    def _functions(self) -> dict[FunctionKey, FunctionMaker]:
        found = dict(function_makers(model_opset(self.model), ModelWeights(self.model)))
        for function in self.model.functions:
            key = domain_of(function.domain), function.name, function.overload
            found[key] = partial(_same, function)
        return found

    def run(
        self,
        outputs: Sequence[str] | None,
        input_shapes: dict[str, Sequence[int]],
        fixed: Mapping[str, ArrayLike],
    ) -> ModuleOp:
        graph, builder = self.model.graph, self.builder
        needed = None if outputs is None else needed_names(graph, outputs)
        constants = {tensor.name for tensor in graph.initializer}
        constants |= {sparse.values.name for sparse in graph.sparse_initializer}
        inputs = [value for value in graph.input if value.name not in {*constants, *fixed}]
        nodes: Sequence[onnx.NodeProto] = graph.node
        if needed is not None:
            nodes = [node for node in nodes if not needed.isdisjoint(node.output)]
        scope: Scope = {}
        block = self._arguments(inputs, input_shapes, scope)
        block.add_ops(builder.initializers(graph, scope, needed, fixed))
        block.add_ops(self._fixed(fixed, scope))
        block.add_ops(builder.nodes(nodes, scope))
        names = [value.name for value in graph.output] if outputs is None else list(outputs)
        values = builder.outputs(names, scope, block)
        self._raise_problems()
        block.add_op(func.ReturnOp(*values))
        main = self._function(block, [value.name for value in inputs], names)
        return ModuleOp([main])

    def _raise_problems(self) -> None:
        if self.builder.problems:
            raise FrontendError(self._problem(problem) for problem in self.builder.problems)

    def _problem(self, problem: NodeProblem) -> Problem:
        if problem.node is None:
            return Problem(self.file, "", "", problem.message)
        return Problem(self.file, node_name(problem.node), problem.node.op_type, problem.message)

    def _arguments(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        shapes: dict[str, Sequence[int]],
        scope: Scope,
    ) -> Block:
        block = Block()
        for value in inputs:
            type_ = self.builder.type_of(value, self._dims)
            if value.name in shapes:
                shape = shapes.pop(value.name)
                if any(dim < 0 for dim in shape):
                    self.builder.report(None, f"the shape given for '{value.name}' is negative")
                if isinstance(type_, TensorType | UnrankedTensorType):
                    element = cast(TensorType[Attribute], type_).element_type
                    type_ = tensor(element, [max(0, dim) for dim in shape])
                else:
                    self.builder.report(None, f"a shape is given for '{value.name}': {type_}")
            arg = block.insert_arg(type_, len(block.args))
            arg.location = self.locate(value.name)
            self.builder.define(None, value.name, arg, scope)
        for name in shapes:
            known = ", ".join(f"'{value.name}'" for value in inputs[:10]) or "none"
            self.builder.report(None, f"a shape is given for '{name}', but the inputs are {known}")
        return block

    def _fixed(self, fixed: Mapping[str, ArrayLike], scope: Scope) -> list[Operation]:
        """The constants in place of inputs with these names."""
        declared = {value.name: value for value in self.model.graph.input}
        ops: list[Operation] = []
        for name, value in fixed.items():
            if name not in declared:
                self.builder.report(None, unknown_input(name, list(declared)))
                continue
            type_ = self.builder.type_of(declared[name], self._dims)
            try:
                if not isinstance(type_, TensorType | UnrankedTensorType):
                    raise ValueError(f"is of type {type_}, expected a tensor")
                ranked = isinstance(type_, TensorType)
                declared_type = cast(Attribute, type_)
                dims = [dim.value for dim in dims_of(declared_type)] if ranked else None
                array = fixed_array(value, element_type(declared_type), dims)
                op = InitializerOp(TensorAttr.of(array))
            except ValueError as error:
                self.builder.report(None, f"input '{name}' {error}")
                continue
            op.location = self.locate(name)
            ops.append(op)
            self.builder.define(None, name, op.output, scope)
        return ops

    def _dims(self, shape: TensorShapeProto) -> list[ExprLike]:
        """The dimensions of a shape: numbers, and symbols for the rest."""
        return [self._dim(dim) for dim in shape.dim]

    def _dim(self, dim: TensorShapeProto.Dimension) -> ExprLike:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return dim.dim_value
        name = dim.dim_param if dim.HasField("dim_param") else ""
        return self.symbols.named(name) if _is_name(name) else self.symbols.unnamed()

    def _function(self, block: Block, inputs: Sequence[str], outputs: Sequence[str]) -> func.FuncOp:
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        main = func.FuncOp(
            "main",
            (block.arg_types, last.arguments.types),
            Region(block),
            arg_attrs=named(inputs),
            res_attrs=named(outputs),
        )
        main.location = last.location = self.file_location
        main.attributes[OPSET] = IntegerAttr(self.builder.opset.get("", 0), i64)
        return main


def _is_name(text: str) -> bool:
    """
    False for placeholders that exporters write for an unknown dimension: dimensions with the same
    name are equal, but two of them are not equal because both are `?`, `-1` or `None`.
    """
    return any(c.isalpha() for c in text) and text.lower() not in _UNKNOWN


def needed_names(graph: GraphProto, outputs: Sequence[str]) -> set[str]:
    """The names of the tensors that the outputs depend on, themselves included."""
    producers = {name: node for node in graph.node for name in node.output if name}
    needed = set[str]()
    pending = list(outputs)
    while pending:
        if (name := pending.pop()) in needed:
            continue
        needed.add(name)
        if (node := producers.get(name)) is not None:
            pending += [used for used in names_used(node) if used not in needed]
    return needed
