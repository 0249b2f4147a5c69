"""Builds graphs of the onnx dialect from core; the topics beside this file say how for each op."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, TensorType, f32
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.control_flow import YieldOp as CoreYieldOp
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, i64, numpy_dtype
from lowerdeck.dialects.dims import Atom, Expr, ExprLike, constants
from lowerdeck.dialects.numbers import dense_ints
from lowerdeck.dialects.onnx.inference import result_types
from lowerdeck.dialects.onnx.ops import InitializerOp, NoneOp, OnnxOp, YieldOp, op_class
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.dialects.onnx.types import element_to_proto
from lowerdeck.exporters.onnx.opset import NEW_OPSET
from lowerdeck.passes.machinery.provenance import describe

Op = TypeVar("Op", bound=Operation)
Converter: TypeAlias = Callable[["GraphBuilder", Any], None]
CONVERTERS: dict[type[Operation], Converter] = {}
"""What turns an op of core into nodes, by class."""


def converts(*classes: type[Operation]) -> Callable[[Converter], Converter]:
    """Register the converter of some classes."""

    def register(converter: Converter) -> Converter:
        for cls in classes:
            CONVERTERS[cls] = converter
        return converter

    return register


class Shared:
    """What all graphs of a model share: initializers and problems."""

    def __init__(self) -> None:
        self.initializers: list[Operation] = []
        """To be put at the beginning of the main graph."""
        self.problems: list[str] = []
        self._literals: dict[tuple[str, tuple[int, ...], bytes], SSAValue] = {}
        self._absent: SSAValue | None = None

    def initializer(self, tensor: TensorAttr) -> SSAValue:
        """A constant of the main graph."""
        op = InitializerOp(tensor)
        self.initializers.append(op)
        return op.output

    def literal(self, values: Any, dtype: Any) -> SSAValue:
        """A small constant of our own; equal ones are one."""
        array = np.asarray(values, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._literals:
            self._literals[key] = self.initializer(TensorAttr.of(array))
        return self._literals[key]

    @property
    def absent(self) -> SSAValue:
        """The operand for an optional input that is left out."""
        if self._absent is None:
            self.initializers.append(op := NoneOp())
            self._absent = op.output
        return self._absent


class GraphBuilder:
    """One graph: the main one, or the body of an If or Loop, which sees the values around it."""

    def __init__(
        self,
        shared: Shared,
        block: Block,
        values: ChainMap[SSAValue, SSAValue],
        symbols: ChainMap[str, Callable[[GraphBuilder], SSAValue] | SSAValue],
        expressions: ChainMap[Expr, SSAValue],
    ) -> None:
        self.shared = shared
        self.block = block
        self.values = values
        """What stands for the values of core."""
        self._symbols = symbols
        self._expressions = expressions

    @staticmethod
    def main(block: Block) -> GraphBuilder:
        """The builder of the main graph."""
        return GraphBuilder(Shared(), block, ChainMap(), ChainMap(), ChainMap())

    def nested(self, arg_types: Sequence[Attribute] = ()) -> GraphBuilder:
        """An empty graph inside of this one."""
        return GraphBuilder(
            self.shared,
            Block(arg_types=arg_types),
            self.values.new_child(),
            self._symbols.new_child(),
            self._expressions.new_child(),
        )

    # Values

    def value(self, value: SSAValue) -> SSAValue:
        """What stands for a value of core."""
        return self.values[value]

    def add(self, op: Op) -> Op:
        """Append an op."""
        self.block.add_op(op)
        return op

    def nodes(
        self,
        op_type: str,
        inputs: Sequence[SSAValue],
        count: int,
        regions: Mapping[str, Region] | None = None,
        **attributes: Any,
    ) -> list[SSAValue]:
        """Add a node with `count` outputs."""
        cls = op_class("", op_type, NEW_OPSET)
        assert cls is not None, op_type
        properties = {name: _attribute(value) for name, value in attributes.items()}
        ordered = [(regions or {})[name] for name in cls.graph_names]
        types = result_types(cls, inputs, properties, ordered, [True] * count)
        op = cls.create(operands=inputs, result_types=types, properties=properties, regions=ordered)
        return list(self.add(op).results)

    def node(self, op_type: str, inputs: Sequence[SSAValue], **attributes: Any) -> SSAValue:
        """Add a node with one output."""
        return self.nodes(op_type, inputs, 1, **attributes)[0]

    def set(self, op: Operation, *values: SSAValue) -> None:
        """What stands for the results of `op`; it has their types."""
        for result, value in zip(op.results, values, strict=True):
            self.values[result] = typed(value, result.type, result.name_hint)

    def literal(self, values: Any, dtype: Any = np.int64) -> SSAValue:
        """A small constant."""
        return self.shared.literal(values, dtype)

    def like(self, value: SSAValue, number: float) -> SSAValue:
        """The scalar `number` in the element type of `value`."""
        return self.literal(number, numpy_dtype(element_type(value)))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value in another element type."""
        return self.node("Cast", [value], to=element_to_proto(element))

    def fail(self, op: Operation, why: str) -> None:
        """Note that `op` cannot be exported; the rest goes on so that all are listed."""
        self.shared.problems.append(f"{describe(op)}: {why}")
        missing = Block(arg_types=op.result_types)
        self.values.update(zip(op.results, missing.args, strict=True))

    # Dimensions

    def define_symbols_of(self, value: SSAValue) -> None:
        """Symbols that are a dimension of `value` and not known yet are read from its shape."""
        if not isinstance(value.type, TensorType):
            return
        for axis, dim in enumerate(dims_of(value)):
            if str(dim) in dim.symbols and str(dim) not in self._symbols:
                source = self.value(value)
                self._symbols[str(dim)] = lambda graph, axis=axis, source=source: graph.node(
                    "Shape", [source], start=axis, end=axis + 1
                )

    def define_symbol(self, symbol: str, value: SSAValue) -> None:
        """`value` holds that of a symbol as an i64 tensor of shape [1]."""
        self._symbols[symbol] = value

    def dims(self, values: Iterable[ExprLike] | DimsAttr) -> SSAValue:
        """A vector with the values of expressions."""
        exprs = [Expr.of(v) for v in (values.data if isinstance(values, DimsAttr) else values)]
        if (numbers := constants(exprs)) is not None:
            return self.literal(list(numbers))
        parts = [self.expression(expr) for expr in exprs]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)

    def expression(self, expr: Expr) -> SSAValue:
        """An i64 tensor of shape [1] with the value of an expression."""
        if expr.value is not None:
            return self.literal([expr.value])
        if expr not in self._expressions:
            terms = [self._term(monomial, factor) for monomial, factor in expr.terms]
            self._expressions[expr] = reduce(lambda a, b: self.node("Add", [a, b]), terms)
        return self._expressions[expr]

    def _term(self, monomial: Sequence[Atom], factor: int) -> SSAValue:
        factors = [self._atom(atom) for atom in monomial]
        if factor != 1 or not factors:
            factors.append(self.literal([factor]))
        return reduce(lambda a, b: self.node("Mul", [a, b]), factors)

    def _atom(self, atom: Atom) -> SSAValue:
        if atom.kind == "symbol":
            source = self._symbols[atom.name]
            if callable(source):
                # Read here, and not where the symbol is defined: many are never needed.
                source = self._symbols[atom.name] = source(self)
            return source
        args = [self.expression(arg) for arg in atom.args]
        match atom.kind:
            case "min" | "max":
                return self.node(atom.kind.capitalize(), args)
            case "mod":
                return self.node("Mod", args)
            case _:
                # Div rounds toward zero; without the remainder it has nothing to round.
                rest = self.node("Mod", args)
                return self.node("Div", [self.node("Sub", [args[0], rest]), args[1]])

    # Ops

    def add_block(self, block: Block) -> None:
        """Convert all ops but the terminator."""
        for op in block.ops:
            if op is block.last_op and isinstance(op, ReturnOp | CoreYieldOp):
                return
            before = self.block.last_op
            converter = CONVERTERS.get(type(op))
            if converter is None:
                self.fail(op, "has no ONNX form; export core ops, legalize before")
            else:
                converter(self, op)
            new = self.block.first_op if before is None else before.next_op
            while new is not None:
                new.location = op.location
                new = new.next_op

    def output(self, value: SSAValue) -> SSAValue:
        """A value of core as an output: a node's own, also where it comes from outside."""
        return typed(self.node("Identity", [self.value(value)]), value.type)

    def region(self, outputs: Sequence[SSAValue]) -> Region:
        """The finished graph, as a subgraph with these outputs."""
        self.add(YieldOp(outputs))
        return Region(self.block)


def typed(value: SSAValue, type_: Attribute, hint: str | None = None) -> SSAValue:
    """A value with this type if it is a node's; what only the schema tells has no shape."""
    if not isinstance(value, OpResult) or not isinstance(value.op, OnnxOp):
        return value
    if value.type != type_:
        value = Rewriter.replace_value_with_new_type(value, type_)
    if value.name_hint is None:
        value.name_hint = hint
    return value


def _attribute(value: Any) -> Attribute:
    match value:
        case Attribute():
            return value
        case bool() | int():
            return IntegerAttr(int(value), i64)
        case float():
            return FloatAttr(value, f32)
        case str():
            return StringAttr(value)
        case _:
            return dense_ints(list(value))
