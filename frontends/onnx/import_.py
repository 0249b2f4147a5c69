"""One-to-one import of ONNX models, without any decisions."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

import onnx
from numpy.typing import ArrayLike
from onnx import GraphProto, ModelProto, TensorShapeProto
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
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

from lowerdeck.dialects.core.names import DEFAULT, NAME, UNUSED, named
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
from lowerdeck.frontends.onnx.optional import (
    FIRST_IR_VERSION,
    default_of,
    listed_initializers,
    weights_among,
)
from lowerdeck.frontends.onnx.parse import TensorLoader, check_model, model_opset, parse_model
from lowerdeck.frontends.symbols import Symbols


def import_model(
    source: str | os.PathLike[str] | ModelProto,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    optional: Collection[str] | None = None,
) -> ModuleOp:
    """
    The module for a model: `func.func @main` with one onnx op for each node.

    `outputs` names the tensors of the main graph to return in place of its outputs; nodes that they
    do not need are left out. `input_shapes` replaces the shapes of inputs. An input with a value in
    `fixed` is a constant, not an argument. Calls of the model's own functions are inlined.

    An initializer that is listed among the inputs, too, is one with a default from version 4 of the
    IR on, unless one of those that are listed is a weight by its role: then all are constants.
    `optional` names those that are inputs instead. FrontendError lists everything that prevents the
    import.
    """
    if isinstance(source, ModelProto):
        file, model, loader = "model", source, TensorLoader(None)
        check_model(file, model)
    else:
        file = os.fspath(source)
        model, loader = parse_model(file), TensorLoader(file)
    try:
        importer = _Importer(file, model, loader)
        return importer.run(outputs, dict(input_shapes or {}), fixed or {}, optional)
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
        chosen: Collection[str] | None,
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
        if len(set(names)) < len(names):
            builder.report(None, f"the outputs {names} name a tensor twice")
        values = builder.outputs(names, scope, block)
        self._raise_problems()
        block.add_op(func.ReturnOp(*values))
        given = [value.name for value in inputs]
        attributes = dict(zip(given, named(given), strict=True))
        left_out = self._make_optional(attributes, chosen, fixed, block, scope, input_shapes)
        self._check_shapes(input_shapes, attributes)
        self._raise_problems()
        main = self._function(block, [*attributes.values()], names)
        if left_out:
            main.attributes[UNUSED] = ArrayAttr(map(StringAttr, left_out))
        return ModuleOp([main])

    def _make_optional(
        self,
        attributes: dict[str, DictionaryAttr],
        chosen: Collection[str] | None,
        fixed: Container[str],
        block: Block,
        scope: Scope,
        shapes: dict[str, Sequence[int]],
    ) -> list[str]:
        """
        Let initializers that are defaults be arguments: those that are `chosen`, or by the rule.

        `attributes`, those of the arguments by name, gets them, too, in the order of the graph's
        inputs. The result are the names of such inputs that the outputs do not need.
        """
        listed = [name for name in listed_initializers(self.model) if name not in fixed]
        for name in chosen or ():
            if name not in listed:
                known = ", ".join(f"'{each}'" for each in listed[:10]) or "none"
                text = (
                    f"'{name}' is called optional, but the inputs with an initializer are {known}"
                )
                self.builder.report(None, text)
        ops = {name: scope[name].owner for name in listed if name in scope}
        found = {name: op for name, op in ops.items() if isinstance(op, InitializerOp)}
        if chosen is None:
            is_default = self.model.ir_version >= FIRST_IR_VERSION and (
                weights_among(block).isdisjoint(found.values())
            )
            left = [name for name in listed if name not in found or default_of(found[name])]
            chosen = left if is_default else []
        required = dict(attributes)
        attributes.clear()
        for value in self.model.graph.input:
            if value.name in required:
                attributes[value.name] = required[value.name]
            elif value.name in chosen and (op := found.get(value.name)) is not None:
                entry = self._make_argument(value, op, block, len(attributes), shapes)
                attributes[value.name] = entry
        return [name for name in listed if name in chosen and name not in found]

    def _make_argument(
        self,
        value: onnx.ValueInfoProto,
        op: InitializerOp,
        block: Block,
        position: int,
        shapes: dict[str, Sequence[int]],
    ) -> DictionaryAttr:
        """Let an initializer be an argument at a position; the attributes of the argument."""
        is_given = value.name in shapes
        type_, default = self._type_of(value, shapes), default_of(op)
        if isinstance(type_, UnrankedTensorType):
            type_ = op.output.type  # the only rank that is known to be meant
        entries: dict[str, Attribute] = {NAME: StringAttr(value.name)}
        if default is not None and default.fits(type_):
            entries[DEFAULT] = default
        elif default is None or not is_given:
            text = f"input '{value.name}' of type {type_} has an initializer of {op.output.type}"
            self.builder.report(None, text)
        argument = block.insert_arg(type_, position)
        argument.location = op.location
        argument.name_hint = op.output.name_hint
        op.output.replace_all_uses_with(argument)
        op.detach()
        op.erase()
        return DictionaryAttr(entries)

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
            arg = block.insert_arg(self._type_of(value, shapes), len(block.args))
            arg.location = self.locate(value.name)
            self.builder.define(None, value.name, arg, scope)
        return block

    def _type_of(self, value: onnx.ValueInfoProto, shapes: dict[str, Sequence[int]]) -> Attribute:
        """The type of an input, with the shape that is given; it is taken out of `shapes`."""
        type_ = self.builder.type_of(value, self._dims)
        if value.name not in shapes:
            return type_
        shape = shapes.pop(value.name)
        if any(dim < 0 for dim in shape):
            self.builder.report(None, f"the shape given for '{value.name}' is negative")
        if not isinstance(type_, TensorType | UnrankedTensorType):
            self.builder.report(None, f"a shape is given for '{value.name}': {type_}")
            return type_
        element = cast(TensorType[Attribute], type_).element_type
        return tensor(element, [max(0, dim) for dim in shape])

    def _check_shapes(self, rest: Iterable[str], inputs: Iterable[str]) -> None:
        """Shapes that are left over were given for something else."""
        known = ", ".join(f"'{name}'" for name in [*inputs][:10]) or "none"
        for name in rest:
            self.builder.report(None, f"a shape is given for '{name}', but the inputs are {known}")

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

    def _function(
        self, block: Block, inputs: Sequence[DictionaryAttr], outputs: Sequence[str]
    ) -> func.FuncOp:
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        main = func.FuncOp(
            "main",
            (block.arg_types, last.arguments.types),
            Region(block),
            arg_attrs=ArrayAttr(inputs),
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
